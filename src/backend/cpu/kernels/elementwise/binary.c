/* binary.c: two operands of one type, element by element (ops-core.md 5.1).
 *
 * f32 and f64 arithmetic has separate loops for a single element on either side. Everything else
 * works on full rows: a single element is spread over a tile first. */
#include "backend/cpu/kernels/elementwise/row.h"

#define PAIR_LOOP(type, a_at, b_at, value) \
    CPU_INDEPENDENT                        \
    for (int64_t i = 0; i < n; i++) {      \
        type a = a_at, b = b_at;           \
        q_[i] = (type)(value);             \
    }

/* Both operands are rows. */
#define PAIR(type, value)                      \
    do {                                       \
        const type *pa_ = va, *pb_ = vb;       \
        type *q_ = vout;                       \
        PAIR_LOOP(type, pa_[i], pb_[i], value) \
    } while (0)

/* Either may be a single element. */
#define STEPPED(type, value)                       \
    do {                                           \
        const type *pa_ = va, *pb_ = vb;           \
        const type a0_ = pa_[0], b0_ = pb_[0];     \
        type *q_ = vout;                           \
        if (as && bs) {                            \
            PAIR_LOOP(type, pa_[i], pb_[i], value) \
        } else if (as) {                           \
            PAIR_LOOP(type, pa_[i], b0_, value)    \
        } else {                                   \
            PAIR_LOOP(type, a0_, pb_[i], value)    \
        }                                          \
    } while (0)

/* ---- floats -------------------------------------------------------------------------------- */

/* Powers that need no pow; each keeps every special case of C's. */
#define POWER_BY(type, sqrt_, inf)                                        \
    do {                                                                  \
        const type e_ = ((const type *)vb)[0];                            \
        if (e_ == 2)                                                      \
            STEPPED(type, ((void)b, a * a));                              \
        else if (e_ == 1)                                                 \
            STEPPED(type, ((void)b, a));                                  \
        else if (e_ == -1)                                                \
            STEPPED(type, ((void)b, 1 / a));                              \
        else if (e_ == (type)0.5)                                         \
            STEPPED(type, ((void)b, a == -(inf) ? (inf) : sqrt_(a + 0))); \
        else                                                              \
            return false;                                                 \
        return true;                                                      \
    } while (0)

static bool power_f32(const void *va, int as, const void *vb, int bs, void *vout, int64_t n)
{
    POWER_BY(float, __builtin_sqrtf, INFINITY);
}

static bool power_f64(const void *va, int as, const void *vb, int bs, void *vout, int64_t n)
{
    POWER_BY(double, __builtin_sqrt, (double)INFINITY);
}

/* Calls into the C library: the steps cost nothing beside them. */
#define CALLED(type, call)                          \
    do {                                            \
        const type *pa_ = va, *pb_ = vb;            \
        type *q_ = vout;                            \
        for (int64_t i = 0; i < n; i++)             \
            q_[i] = call(pa_[i * as], pb_[i * bs]); \
    } while (0)

#define FLOAT_CASES(type, max, min)                   \
    switch ((int)op) {                                \
    case RLX_OP_add: STEPPED(type, a + b); break;     \
    case RLX_OP_sub: STEPPED(type, a - b); break;     \
    case RLX_OP_mul: STEPPED(type, a *b); break;      \
    case RLX_OP_div: STEPPED(type, a / b); break;     \
    case RLX_OP_max: STEPPED(type, max(a, b)); break; \
    case RLX_OP_min: STEPPED(type, min(a, b)); break; \
    default: break;                                   \
    }

#define CALLED_CASES(type, pow_short, pow, mod, atan2) \
    switch ((int)op) {                                 \
    case RLX_OP_pow:                                   \
        if (bs || !pow_short(va, as, vb, bs, vout, n)) \
            CALLED(type, pow);                         \
        break;                                         \
    case RLX_OP_mod: CALLED(type, mod); break;         \
    case RLX_OP_atan2: CALLED(type, atan2); break;     \
    default: break;                                    \
    }

static void binary_f32(rlx_op op, const void *va, int as, const void *vb, int bs, void *vout,
                       int64_t n)
{
    FLOAT_CASES(float, cpu_max_f32, cpu_min_f32)
    CALLED_CASES(float, power_f32, powf, fmodf, atan2f)
}

static void binary_f64(rlx_op op, const void *va, int as, const void *vb, int bs, void *vout,
                       int64_t n)
{
    FLOAT_CASES(double, cpu_max_f64, cpu_min_f64)
    CALLED_CASES(double, power_f64, pow, fmod, atan2)
}

static void binary_half(rlx_op op, rlx_dtype dtype, const void *va, int as, const void *vb, int bs,
                        void *vout, int64_t n)
{
    CPU_TILE_OF(float, a);
    CPU_TILE_OF(float, b);
    CPU_TILE_OF(float, y);

    cpu_load_f32(dtype, va, a, 1);
    cpu_load_f32(dtype, vb, b, 1);
    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(n - at, CPU_TILE);
        if (as)
            cpu_load_f32(dtype, (const uint16_t *)va + at, a, part);
        if (bs)
            cpu_load_f32(dtype, (const uint16_t *)vb + at, b, part);
        binary_f32(op, a, as, b, bs, y, part);
        cpu_store_f32(dtype, y, (uint16_t *)vout + at, part);
    }
}

/* ---- integers ------------------------------------------------------------------------------ */

/* Sums and products wrap alike in signed and unsigned types. uint32_t at least, or the product of
 * two uint16_t would be one of ints, and overflow. */
#define BITS_CASES(type, wide)                                           \
    switch ((int)op) {                                                   \
    case RLX_OP_add: PAIR(type, (type)((wide)a + (wide)b)); return true; \
    case RLX_OP_sub: PAIR(type, (type)((wide)a - (wide)b)); return true; \
    case RLX_OP_mul: PAIR(type, (type)((wide)a * (wide)b)); return true; \
    case RLX_OP_bit_and: PAIR(type, a &b); return true;                  \
    case RLX_OP_bit_or: PAIR(type, a | b); return true;                  \
    case RLX_OP_bit_xor: PAIR(type, a ^ b); return true;                 \
    default: return false;                                               \
    }

static bool binary_bits(rlx_op op, size_t size, const void *va, const void *vb, void *vout,
                        int64_t n)
{
    switch (size) {
    case 1: BITS_CASES(uint8_t, uint32_t)
    case 2: BITS_CASES(uint16_t, uint32_t)
    case 4: BITS_CASES(uint32_t, uint32_t)
    default: BITS_CASES(uint64_t, uint64_t)
    }
}

/* x / 0 = 0 and x % 0 = 0; dividing by -1 is negating, which leaves the smallest value as it is. A
 * shift by less than 0 or by the width or more leaves only the sign. */
#define DIVIDE(type, utype, wide) \
    (b == 0 ? 0 : b == -1 ? (type)(utype)((wide)0 - (wide)(utype)a) : (type)(a / b))
#define WIDTH(type) ((type)(8 * sizeof(type)))
#define IN_WIDTH(type) (b >= 0 && b < WIDTH(type))

#define SIGNED_CASES(type, utype, wide)                                                          \
    switch ((int)op) {                                                                           \
    case RLX_OP_div: PAIR(type, DIVIDE(type, utype, wide)); break;                               \
    case RLX_OP_mod: PAIR(type, b == 0 || b == -1 ? 0 : (type)(a % b)); break;                   \
    case RLX_OP_max: PAIR(type, a > b ? a : b); break;                                           \
    case RLX_OP_min: PAIR(type, a < b ? a : b); break;                                           \
    case RLX_OP_shl: PAIR(type, IN_WIDTH(type) ? (type)(utype)((wide)(utype)a << b) : 0); break; \
    case RLX_OP_shr: PAIR(type, (type)(a >> (IN_WIDTH(type) ? b : (type)(WIDTH(type) - 1))));    \
        break;                                                                                   \
    default: break;                                                                              \
    }

#define UNSIGNED_CASES(type, wide)                                                  \
    switch ((int)op) {                                                              \
    case RLX_OP_div: PAIR(type, b == 0 ? 0 : (type)(a / b)); break;                 \
    case RLX_OP_mod: PAIR(type, b == 0 ? 0 : (type)(a % b)); break;                 \
    case RLX_OP_max: PAIR(type, a > b ? a : b); break;                              \
    case RLX_OP_min: PAIR(type, a < b ? a : b); break;                              \
    case RLX_OP_shl: PAIR(type, b < WIDTH(type) ? (type)((wide)a << b) : 0); break; \
    case RLX_OP_shr: PAIR(type, b < WIDTH(type) ? (type)(a >> b) : 0); break;       \
    default: break;                                                                 \
    }

static void binary_bool(rlx_op op, const void *va, const void *vb, void *vout, int64_t n)
{
    switch ((int)op) {
    case RLX_OP_max:
    case RLX_OP_bit_or: PAIR(uint8_t, (a | b) != 0); break;
    case RLX_OP_min:
    case RLX_OP_bit_and: PAIR(uint8_t, (a != 0) & (b != 0)); break;
    case RLX_OP_bit_xor: PAIR(uint8_t, (a != 0) ^ (b != 0)); break;
    default: break;
    }
}

/* ---- complex ------------------------------------------------------------------------------- */

/* In double, where products of floats are exact and their sums do not overflow. */
static void complex_mul_div(rlx_op op, const float *va, const float *vb, float *vout, int64_t n)
{
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        double ar = (double)va[2 * i], ai = (double)va[2 * i + 1];
        double br = (double)vb[2 * i], bi = (double)vb[2 * i + 1];
        double re, im;

        if (op == RLX_OP_mul) {
            re = ar * br - ai * bi;
            im = ar * bi + ai * br;
        } else {
            double norm = br * br + bi * bi;
            re = (ar * br + ai * bi) / norm;
            im = (ai * br - ar * bi) / norm;
        }
        vout[2 * i] = (float)re;
        vout[2 * i + 1] = (float)im;
    }
}

static void binary_complex(rlx_op op, const void *va, const void *vb, void *vout, int64_t n)
{
    if (op == RLX_OP_add || op == RLX_OP_sub)
        binary_f32(op, va, 1, vb, 1, vout, 2 * n);
    else
        complex_mul_div(op, va, vb, vout, n);
}

/* ---- all together -------------------------------------------------------------------------- */

/* Rows of every type but the floats. */
static void binary_rows(rlx_op op, rlx_dtype dtype, const void *va, const void *vb, void *vout,
                        int64_t n)
{
    if (dtype == RLX_DTYPE_bool)
        binary_bool(op, va, vb, vout, n);
    else if (dtype == RLX_DTYPE_c64)
        binary_complex(op, va, vb, vout, n);
    else if (!binary_bits(op, cpu_size(dtype), va, vb, vout, n)) {
        switch (dtype) {
        case RLX_DTYPE_i8: SIGNED_CASES(int8_t, uint8_t, uint32_t) break;
        case RLX_DTYPE_i16: SIGNED_CASES(int16_t, uint16_t, uint32_t) break;
        case RLX_DTYPE_i32: SIGNED_CASES(int32_t, uint32_t, uint32_t) break;
        case RLX_DTYPE_i64: SIGNED_CASES(int64_t, uint64_t, uint64_t) break;
        case RLX_DTYPE_u8: UNSIGNED_CASES(uint8_t, uint32_t) break;
        case RLX_DTYPE_u16: UNSIGNED_CASES(uint16_t, uint32_t) break;
        case RLX_DTYPE_u32: UNSIGNED_CASES(uint32_t, uint32_t) break;
        case RLX_DTYPE_u64: UNSIGNED_CASES(uint64_t, uint64_t) break;
        default: break;
        }
    }
}

static void binary_spread(rlx_op op, rlx_dtype dtype, const void *va, int as, const void *vb,
                          int bs, void *vout, int64_t n)
{
    size_t size = cpu_size(dtype);
    CPU_TILE_ANY(tile);

    if (as && bs) {
        binary_rows(op, dtype, va, vb, vout, n);
        return;
    }
    if (!as)
        va = cpu_row_spread(va, size, tile, n);
    else
        vb = cpu_row_spread(vb, size, tile, n);
    for (int64_t at = 0; at < n; at += CPU_TILE)
        binary_rows(op, dtype, cpu_row_part(va, as, size, at), cpu_row_part(vb, bs, size, at),
                    (char *)vout + at * (int64_t)size, cpu_min_i64(n - at, CPU_TILE));
}

void cpu_row_binary(rlx_op op, rlx_dtype dtype, const void *va, int as, const void *vb, int bs,
                    void *vout, int64_t n)
{
    if (!as && !bs && n > 1) {
        cpu_row_binary(op, dtype, va, 1, vb, 1, vout, 1);
        int32_t size = (int32_t)cpu_size(dtype);
        cpu_copy_strided((char *)vout + size, vout, size, n - 1, 0);
        return;
    }
    if (!as && !bs)
        as = bs = 1;
    switch (dtype) {
    case RLX_DTYPE_f32: binary_f32(op, va, as, vb, bs, vout, n); break;
    case RLX_DTYPE_f64: binary_f64(op, va, as, vb, bs, vout, n); break;
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: binary_half(op, dtype, va, as, vb, bs, vout, n); break;
    default: binary_spread(op, dtype, va, as, vb, bs, vout, n); break;
    }
}

static void binary_span(const struct cpu_call *c, const struct cpu_span *s)
{
    cpu_row_binary(c->op, c->out->dtype, s->in[0], s->step[0], s->in[1], s->step[1], s->out, s->n);
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), binary_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_binary);
const struct cpu_kernel CPU_NAME(cpu_binary) = {.run = run, .in_place = 3};
