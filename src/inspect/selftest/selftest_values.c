/* selftest_values.c: numbers that find mistakes, the same ones for the same seed. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "inspect/selftest/selftest.h"
#include "ir/quant/quant_scheme.h"

const char *profile_name(enum value_profile p)
{
    static const char *const names[VALUES_COUNT] = {"plain", "wide", "nasty", "special"};
    return names[p];
}

static uint32_t bits_at(uint64_t seed, int64_t k, uint32_t stream)
{
    return rng_threefry((uint32_t)k, stream, (uint32_t)seed, (uint32_t)(seed >> 32)).x0;
}

static double uniform_at(uint64_t seed, int64_t k, double lo, double hi)
{
    return lo + (hi - lo) * (double)rng_uniform(bits_at(seed, k, 0));
}

static double nasty_float(uint32_t pick, rlx_dtype t)
{
    bool half = t == RLX_DTYPE_f16;
    const double values[] = {
        0.0,
        -0.0,
        1,
        -1,
        (double)NAN,
        (double)INFINITY,
        -(double)INFINITY,
        0.5,
        1.5,
        2.5,
        -2.5,
        3,
        -3,
        6,
        1e-3,
        -1e-3,
        100,
        -100,
        half ? 65504 : 3.4e38,
        half ? -65504 : -3.4e38,
        half ? 6.1e-5 : 1.2e-38,
        half ? 6e-8 : 1e-45,
        0.1,
        -0.1,
        1000,
        1e-7,
    };
    return values[pick % (sizeof values / sizeof values[0])];
}

static double float_at(uint64_t seed, int64_t k, enum value_profile p, rlx_dtype t)
{
    uint32_t pick = bits_at(seed, k, 1);

    switch (p) {
    case VALUES_NASTY:
        if (pick % 4)
            return nasty_float(pick / 4, t);
        break;
    case VALUES_SPECIAL:
        if (pick % 13 == 0) {
            const double v[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0.0};
            return v[pick / 13 % 4];
        }
        break;
    case VALUES_WIDE: {
        double reach = t == RLX_DTYPE_f16 ? 8 : 30;
        double v = exp2(uniform_at(seed ^ 0x77, k, -reach, reach));
        return pick & 1 ? v : -v;
    }
    case VALUES_PLAIN:
    case VALUES_COUNT: break;
    }
    return uniform_at(seed, k, -2, 2);
}

static int64_t wrap(rlx_dtype t, int64_t v)
{
    switch (t) {
    case RLX_DTYPE_i8: return (int8_t)(uint8_t)v;
    case RLX_DTYPE_i16: return (int16_t)(uint16_t)v;
    case RLX_DTYPE_i32: return (int32_t)(uint32_t)v;
    case RLX_DTYPE_u8: return (uint8_t)v;
    case RLX_DTYPE_u16: return (uint16_t)v;
    case RLX_DTYPE_u32: return (uint32_t)v;
    case RLX_DTYPE_bool: return v & 1;
    default: return v;
    }
}

static int64_t int_at(uint64_t seed, int64_t k, enum value_profile p, rlx_dtype t)
{
    uint32_t hi = bits_at(seed, k, 2), lo = bits_at(seed, k, 3);
    int64_t any = (int64_t)((uint64_t)hi << 32 | lo);

    if (t == RLX_DTYPE_bool)
        return lo & 1;
    if (p == VALUES_NASTY && hi % 4) {
        int bits = 8 * (int)rlx_dtype_size(t);
        int64_t top = dtype_is(t, CLASS_U) ? -1 : (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
        const int64_t v[] = {0, 1, -1, 2, top, wrap(t, ~top), 7, -8};
        return wrap(t, v[hi / 4 % 8]);
    }
    if (p == VALUES_WIDE || p == VALUES_NASTY)
        return wrap(t, any);
    return dtype_is(t, CLASS_U) ? (int64_t)(lo % 9) : (int64_t)(lo % 17) - 8;
}

static void fill_spd(struct eval_tensor *t, uint64_t seed)
{
    int64_t n = t->type.rank ? t->type.dim[t->type.rank - 1] : 0;

    for (int64_t k = 0; n > 0 && k < t->count; k++) {
        int64_t i = k / n % n, j = k % n, base = k / (n * n) * n * n;
        double v = uniform_at(seed, base + (i < j ? i * n + j : j * n + i), -1, 1);
        t->at[k].f = i == j ? (double)n + fabs(v) : v;
    }
}

static void fill_triangle(struct eval_tensor *t, uint64_t seed)
{
    int64_t n = t->type.rank ? t->type.dim[t->type.rank - 1] : 0;

    for (int64_t k = 0; n > 0 && k < t->count; k++)
        t->at[k].f = uniform_at(seed, k, -1, 1) + (k / n % n == k % n ? 3 : 0);
}

static void fill_turns(struct eval_tensor *t, uint64_t seed)
{
    for (int64_t k = 0; k + 4 <= t->count; k += 4) {
        double square = 0;
        for (int64_t i = k; i < k + 4; i++) {
            t->at[i].f = uniform_at(seed, i, -1, 1);
            square += t->at[i].f * t->at[i].f;
        }
        for (int64_t i = k; i < k + 4; i++)
            t->at[i].f /= sqrt(square);
    }
}

/* From about four away, not quite on an axis, at the origin; a background of three colours. */
static void fill_camera(struct eval_tensor *t, uint64_t seed)
{
    const double fixed[] = {0, 0, -4, 0, 0, 0, 0, 1, 0, 60, 0.1, 100, 0.2, 0.4, 0.7};

    for (int64_t k = 0; k < t->count; k++)
        t->at[k].f = (k < 15 ? fixed[k] : 0) + (k < 3 ? uniform_at(seed, k, -0.5, 0.5) : 0);
}

/* A recurrence with larger ones would amplify roundings from step to step. */
static void fill_layer(struct eval_tensor *t, uint64_t seed)
{
    int64_t n = t->type.rank ? t->type.dim[t->type.rank - 1] : 1;

    for (int64_t k = 0; k < t->count; k++)
        t->at[k].f = uniform_at(seed, k, -1, 1) / sqrt((double)n);
}

/* ---- packed weights ---- */

static void put_bytes(struct eval_tensor *t, int64_t at, uint32_t bits, int bytes)
{
    for (int i = 0; i < bytes; i++)
        t->at[at + i].i = bits >> 8 * i & 255;
}

/* Scale times code is at most about this large for a scale of 1. */
static double largest_code(int64_t scheme)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_tq1_0:
    case RLX_QUANT_SCHEME_tq2_0: return 1;
    case RLX_QUANT_SCHEME_q4_0:
    case RLX_QUANT_SCHEME_q4_1: return 12;
    case RLX_QUANT_SCHEME_q5_0:
    case RLX_QUANT_SCHEME_q5_1: return 24;
    case RLX_QUANT_SCHEME_q2_k: return 45;
    case RLX_QUANT_SCHEME_q3_k: return 128;
    case RLX_QUANT_SCHEME_q4_k: return 945;
    case RLX_QUANT_SCHEME_q5_k: return 1953;
    case RLX_QUANT_SCHEME_q6_k:
    case RLX_QUANT_SCHEME_iq4_xs: return 4096;
    default: return 128;
    }
}

/* Any codes, and scales of either sign. */
static void fill_packed(struct eval_tensor *t, int64_t scheme, uint64_t seed)
{
    const struct quant_scheme *s = quant_scheme((int32_t)scheme);
    double top = largest_code(scheme);

    for (int64_t k = 0; k < t->count; k++)
        t->at[k].i = bits_at(seed, k, 5) & (s->is_gguf ? 255 : 0x97); /* E4M3 up to 2^-2 */
    for (int64_t b = 0; s->is_gguf && b + s->block_bytes <= t->count; b += s->block_bytes) {
        double sign = bits_at(seed, b, 6) & 1 ? 1 : -1;
        float scale = (float)(sign * uniform_at(seed, b, 0.25, 2) / top);
        float offset = (float)(uniform_at(seed, b + 1, -1, 1) / (s->block_elems == 32 ? 1 : 63));
        if (scheme == RLX_QUANT_SCHEME_mxfp4) /* 2^-4 to 2^-1, times codes up to 12 */
            put_bytes(t, b, 124 + (bits_at(seed, b, 6) & 3), 1);
        else if (scheme == RLX_QUANT_SCHEME_nvfp4) /* up to 2 */
            for (int i = 0; i < 4; i++)
                t->at[b + i].i &= 0x3f;
        else if (scheme == RLX_QUANT_SCHEME_q8_k)
            put_bytes(t, b + s->scale_at, half_f32_bits(scale), 4);
        else
            put_bytes(t, b + s->scale_at, f32_to_f16(scale), 2);
        if (s->offset_at)
            put_bytes(t, b + s->offset_at, f32_to_f16(offset), 2);
    }
}

/* A sum of n outer products; symmetric where the matrix is square. */
static void fill_low_rank(struct eval_tensor *t, int64_t n, uint64_t seed)
{
    int64_t columns = t->type.rank ? t->type.dim[t->type.rank - 1] : 0;

    for (int64_t k = 0; columns > 0 && k < t->count; k++) {
        t->at[k].f = 0;
        for (int64_t i = 0; i < n; i++) {
            double left = bits_at(seed + (uint64_t)i, k / columns, 6) % 7;
            double right = bits_at(seed + (uint64_t)i, k % columns, 6) % 7;
            t->at[k].f += (left - 3) * (right - 3);
        }
    }
}

/* On the diagonal 1, -2, 3, -4, .. n, and again. */
static void fill_repeated(struct eval_tensor *t, int64_t n)
{
    int64_t columns = t->type.rank ? t->type.dim[t->type.rank - 1] : 0;

    for (int64_t k = 0; columns > 0 && k < t->count; k++) {
        int64_t i = k / columns, value = i % n + 1;
        t->at[k].f = i != k % columns ? 0 : value % 2 ? (double)value : -(double)value;
    }
}

/* A shuffle by sorting keys would do; a fixed stride that is coprime to the count is enough. */
static int64_t distinct_at(int64_t k, int64_t count)
{
    static const int64_t strides[] = {7919, 104729, 1299709};

    for (int i = 0; i < 3; i++)
        if (count % strides[i])
            return (int64_t)((__int128)k * strides[i] % count);
    return k;
}

static double number_of_kind(const struct value_spec *s, uint64_t seed, int64_t k, int64_t count)
{
    int64_t half = count / 2;

    switch (s->kind) {
    case KIND_INDEX: return (double)(bits_at(seed, k, 4) % (uint32_t)(s->n + 2)) - 1;
    case KIND_VALID: return s->n > 0 ? (double)(bits_at(seed, k, 4) % (uint32_t)s->n) : 0;
    case KIND_POSITIVE: return uniform_at(seed, k, 0.1, 2);
    case KIND_SMALL: return uniform_at(seed, k, 0.001, 0.02);
    case KIND_UNIT: return uniform_at(seed, k, -1, 1);
    case KIND_LOG: return uniform_at(seed, k, -3, -0.5);
    case KIND_DISTINCT: return 0.25 * (double)(distinct_at(k, count) - half);
    default: return 0;
    }
}

/* Kinds whose elements depend on where they are. */
static bool fill_whole(struct eval_tensor *t, const struct value_spec *spec, uint64_t seed)
{
    switch (spec->kind) {
    case KIND_SPD: fill_spd(t, seed); return true;
    case KIND_TRIANGLE: fill_triangle(t, seed); return true;
    case KIND_TURN: fill_turns(t, seed); return true;
    case KIND_CAMERA: fill_camera(t, seed); return true;
    case KIND_LAYER: fill_layer(t, seed); return true;
    case KIND_LOW_RANK: fill_low_rank(t, spec->n, seed); return true;
    case KIND_REPEATED: fill_repeated(t, spec->n); return true;
    default: return false;
    }
}

void selftest_fill(struct eval_tensor *t, const struct value_spec *spec, enum value_profile profile,
                   uint64_t seed)
{
    rlx_dtype d = t->type.dtype;

    if (fill_whole(t, spec, seed)) {
        eval_round(t);
        return;
    }
    if (spec->kind == KIND_PACKED) {
        fill_packed(t, spec->n, seed);
        return;
    }
    for (int64_t k = 0; k < t->count; k++) {
        struct eval_cell *c = &t->at[k];
        if (spec->kind == KIND_BYTES)
            c->i = wrap(d, bits_at(seed, k, 5));
        else if (spec->kind != KIND_ANY)
            eval_set(t, k, number_of_kind(spec, seed, k, t->count));
        else if (dtype_is(d, CLASS_INT | CLASS_B))
            c->i = int_at(seed, k, profile, d);
        else {
            c->f = float_at(seed, k, profile, d);
            c->im = d == RLX_DTYPE_c64 ? float_at(seed ^ 0x1111, k, profile, d) : 0;
        }
    }
    eval_round(t);
}
