/* quant_side.c: weights with their scales beside them, by the formulas of ops-special.md 1.2.
 *
 * An encoder goes column by column and group by group: the largest number of a group, or its
 * extremes, tell the scale, and the codes follow from it. */
#include "ir/quant/quant_side.h"

#include <math.h>
#include <string.h>

#include "ir/quant/quant_decode.h"
#include "rlx/graph.h"

/* ---- sizes --------------------------------------------------------------------------------- */

int64_t quant_side_group(const struct quant_side_weight *w)
{
    int64_t group = quant_scheme(w->scheme)->group;

    return group ? group : w->block_size;
}

int64_t quant_side_groups(const struct quant_side_weight *w)
{
    int64_t group = quant_side_group(w);

    return w->k / group + (w->k % group != 0);
}

bool quant_side_code_bytes(const struct quant_side_weight *w, int64_t *out)
{
    int64_t count;

    if (__builtin_mul_overflow(w->k, w->n, &count))
        return false;
    *out = quant_scheme(w->scheme)->nibbles ? count / 2 + count % 2 : count;
    return true;
}

bool quant_side_group_count(const struct quant_side_weight *w, int64_t *out)
{
    return !__builtin_mul_overflow(quant_side_groups(w), w->n, out);
}

/* ---- small floats -------------------------------------------------------------------------- */

/* Codes count the representable numbers from 0 up: `mantissa` bits of them per power of two, from
 * exponent `least` on, below which they are as far apart as above. */
static uint8_t small_float(float v, int mantissa, int least, int largest)
{
    float a = fabsf(v);

    if (a == 0)
        return 0;
    if (a >= 0x1p30f)
        return (uint8_t)largest;
    int e = ilogbf(a);
    e = e > least ? e : least;
    int code = ((e - least) << mantissa) + (int)rintf(ldexpf(a, mantissa - e));
    return (uint8_t)(code < largest ? code : largest);
}

uint8_t quant_to_e4m3(float v)
{
    uint8_t sign = signbit(v) ? 0x80 : 0;

    return isnan(v) ? 0x7f : (uint8_t)(sign | small_float(v, 3, -6, 0x7e));
}

uint8_t quant_to_e5m2(float v)
{
    uint8_t sign = signbit(v) ? 0x80 : 0;

    return isnan(v) ? 0x7f : (uint8_t)(sign | small_float(v, 2, -14, 0x7b));
}

uint8_t quant_to_e2m1(float v)
{
    uint8_t sign = signbit(v) ? 8 : 0;

    return isnan(v) ? 0 : (uint8_t)(sign | small_float(v, 1, 0, 7));
}

/* ---- numbers into codes -------------------------------------------------------------------- */

static void put_code(const struct quant_side_weight *w, int64_t j, int64_t i, int code)
{
    int64_t e = j * w->n + i;

    if (quant_scheme(w->scheme)->nibbles)
        w->code[e / 2] = (uint8_t)(w->code[e / 2] | (code & 15) << 4 * (e % 2));
    else
        w->code[e] = (uint8_t)code;
}

/* Some rows of one column. */
struct run {
    int64_t from, to, column;
    int64_t at; /* of its scale in [groups,n] */
};

static float largest(const struct quant_side_weight *w, const float *x, const struct run *r)
{
    float a = 0;

    for (int64_t j = r->from; j < r->to; j++)
        a = fmaxf(a, fabsf(x[j * w->n + r->column]));
    return a;
}

static int clamped(float v, int low, int high)
{
    return isnan(v) ? 0 : v < (float)low ? low : v > (float)high ? high : (int)v;
}

/* most: 127 or 7. */
static void encode_symmetric(const struct quant_side_weight *w, const float *x, const struct run *r,
                             int most)
{
    float s = largest(w, x, r) / (float)most;

    w->scale[r->at] = s;
    for (int64_t j = r->from; j < r->to; j++) {
        float v = x[j * w->n + r->column];
        put_code(w, j, r->column, s != 0 ? clamped(roundf(v / s), -most, most) : 0);
    }
}

/* Zero is one of the numbers that codes stand for. */
static void encode_asymmetric(const struct quant_side_weight *w, const float *x,
                              const struct run *r)
{
    float low = 0, high = 0;

    for (int64_t j = r->from; j < r->to; j++) {
        low = fminf(low, x[j * w->n + r->column]);
        high = fmaxf(high, x[j * w->n + r->column]);
    }
    float s = (float)(((double)high - (double)low) / 255);
    float zero = s != 0 ? roundf(-128 - low / s) : 0;
    w->scale[r->at] = s;
    w->zero[r->at] = zero;
    for (int64_t j = r->from; j < r->to; j++) {
        float v = x[j * w->n + r->column];
        put_code(w, j, r->column, s != 0 ? clamped(roundf(v / s) + zero, -128, 127) : 0);
    }
}

static void encode_nvfp4(const struct quant_side_weight *w, const float *x, const struct run *r)
{
    float all = w->all[0];
    uint8_t code = quant_to_e4m3(largest(w, x, r) / (6 * all));
    float s = quant_e4m3(code) * all;

    w->scale_code[r->at] = code;
    for (int64_t j = r->from; j < r->to; j++) {
        float v = x[j * w->n + r->column];
        put_code(w, j, r->column, s != 0 ? quant_to_e2m1(v / s) : 0);
    }
}

static void encode_group(const struct quant_side_weight *w, const float *x, const struct run *r)
{
    switch (w->scheme) {
    case RLX_QUANT_SCHEME_int8_block: encode_symmetric(w, x, r, 127); break;
    case RLX_QUANT_SCHEME_int8_block_asym: encode_asymmetric(w, x, r); break;
    case RLX_QUANT_SCHEME_int4_block: encode_symmetric(w, x, r, 7); break;
    default: encode_nvfp4(w, x, r); break;
    }
}

/* Where there are scales, the largest number that each is for becomes the largest code. */
static void encode_fp8(const struct quant_side_weight *w, const float *x)
{
    bool wide = w->scheme == RLX_QUANT_SCHEME_fp8_e5m2;
    float top = wide ? 57344 : 448;

    for (int64_t i = 0; i < w->scale_count; i++)
        w->scale[i] = 0;
    for (int64_t e = 0; e < w->k * w->n && w->scale_count; e++) {
        float *s = &w->scale[w->scale_count == 1 ? 0 : e % w->n];
        *s = fmaxf(*s, fabsf(x[e]) / top);
    }
    for (int64_t e = 0; e < w->k * w->n; e++) {
        float s = w->scale_count ? w->scale[w->scale_count == 1 ? 0 : e % w->n] : 1;
        float v = s != 0 ? x[e] / s : 0;
        w->code[e] = wide ? quant_to_e5m2(v) : quant_to_e4m3(v);
    }
}

void quant_side_encode(const struct quant_side_weight *w, const float *x)
{
    int64_t group = quant_side_group(w), bytes = 0;

    if (w->scheme == RLX_QUANT_SCHEME_fp8_e4m3 || w->scheme == RLX_QUANT_SCHEME_fp8_e5m2) {
        encode_fp8(w, x);
        return;
    }
    quant_side_code_bytes(w, &bytes);
    if (bytes)
        memset(w->code, 0, (size_t)bytes);
    if (w->scheme == RLX_QUANT_SCHEME_nvfp4_block) {
        float most = 0;
        for (int64_t e = 0; e < w->k * w->n; e++)
            most = fmaxf(most, fabsf(x[e]));
        most /= 6 * 448;
        w->all[0] = most != 0 ? most : 1;
    }
    for (int64_t j = 0, g = 0; j < w->k; j += group, g++)
        for (int64_t i = 0; i < w->n; i++) {
            struct run r = {j, w->k - j < group ? w->k : j + group, i, g * w->n + i};
            encode_group(w, x, &r);
        }
}

/* ---- codes into numbers -------------------------------------------------------------------- */

static float signed_code(uint8_t code, int bits)
{
    int half = 1 << (bits - 1);

    return (float)(code < half ? code : code - 2 * half);
}

float quant_side_value(const struct quant_side_weight *w, int64_t j, int64_t i)
{
    int64_t e = j * w->n + i, g = j / quant_side_group(w) * w->n + i;
    bool nibbles = quant_scheme(w->scheme)->nibbles;
    uint8_t q = (uint8_t)(nibbles ? w->code[e / 2] >> 4 * (e % 2) & 15 : w->code[e]);
    float fp8 = w->scale_count ? w->scale[w->scale_count == 1 ? 0 : i] : 1;

    switch (w->scheme) {
    case RLX_QUANT_SCHEME_int8_block: return signed_code(q, 8) * w->scale[g];
    case RLX_QUANT_SCHEME_int8_block_asym: return (signed_code(q, 8) - w->zero[g]) * w->scale[g];
    case RLX_QUANT_SCHEME_int4_block: return signed_code(q, 4) * w->scale[g];
    case RLX_QUANT_SCHEME_fp8_e4m3: return quant_e4m3(q) * fp8;
    case RLX_QUANT_SCHEME_fp8_e5m2: return quant_e5m2(q) * fp8;
    default: {
        float v = quant_e2m1(q) * quant_e4m3(w->scale_code[g]);
        return v * w->all[0];
    }
    }
}
