/* unary.c: functions of one element (ops-core.md 5.3). f16 and bf16 are computed in f32 tiles. */
#include "backend/cpu/kernels/elementwise/row.h"
#include "backend/cpu/kernels/math.h"

#define EACH(type, value)                 \
    do {                                  \
        const type *p_ = px;              \
        type *q_ = pout;                  \
        CPU_INDEPENDENT                   \
        for (int64_t i = 0; i < n; i++) { \
            type x = p_[i];               \
            q_[i] = (value);              \
        }                                 \
    } while (0)

/* ---- f32 ----------------------------------------------------------------------------------- */

/* Angles too large for the short reduction, infinities and NaN. */
static bool any_beyond(const float *x, int64_t n, float most)
{
    int beyond = 0;

    for (int64_t i = 0; i < n; i++)
        beyond |= !(math_abs(x[i]) <= most);
    return beyond != 0;
}

/* By the angle alone: what an element becomes must not depend on which others are in its row. */
static float sin_any(float x, int32_t turn)
{
    if (math_abs(x) <= MATH_CIRCLE_MOST)
        return math_sin_turned(x, turn);
    return turn ? cosf(x) : sinf(x);
}

static void sin_row(const void *px, void *pout, int64_t n, int32_t turn)
{
    if (any_beyond(px, n, MATH_CIRCLE_MOST))
        EACH(float, sin_any(x, turn));
    else
        EACH(float, math_sin_turned(x, turn));
}

static inline float elu_f32(float x)
{
    float e = math_expm1(x);
    return x > 0 ? x : e;
}

/* tanh(ln(1 + e^x)) = w / (w + 2) with w = e^x (e^x + 2). */
static inline float mish_f32(float x)
{
    float e = math_exp(math_clamp(x, -106.0f, 20.0f));
    float w = e * (e + 2.0f);
    return x * (w / (w + 2.0f));
}

/* What one or two instructions do. */
static bool plain_f32(rlx_op op, const void *px, void *pout, int64_t n)
{
    switch ((int)op) {
    case RLX_OP_relu: EACH(float, x < 0 ? 0.0f : x); return true;
    case RLX_OP_sqrt: EACH(float, __builtin_sqrtf(x)); return true;
    case RLX_OP_rsqrt: EACH(float, 1.0f / math_abs(__builtin_sqrtf(x))); return true;
    case RLX_OP_neg: EACH(float, -x); return true;
    case RLX_OP_abs: EACH(float, math_abs(x)); return true;
    case RLX_OP_round: EACH(float, math_round(x)); return true;
    case RLX_OP_recip: EACH(float, 1.0f / x); return true;
    case RLX_OP_floor: EACH(float, math_floor(x)); return true;
    case RLX_OP_ceil: EACH(float, math_ceil(x)); return true;
    case RLX_OP_sign: EACH(float, x > 0 ? 1.0f : x < 0 ? -1.0f : x); return true;
    case RLX_OP_hard_swish: EACH(float, x *(math_clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f)); return true;
    case RLX_OP_hard_sigmoid: EACH(float, math_clamp(x / 6.0f + 0.5f, 0.0f, 1.0f)); return true;
    case RLX_OP_softsign: EACH(float, x / (1.0f + math_abs(x))); return true;
    default: return false;
    }
}

static void unary_f32(rlx_op op, const void *px, void *pout, int64_t n)
{
    if (plain_f32(op, px, pout, n))
        return;
    switch ((int)op) {
    case RLX_OP_sigmoid: EACH(float, math_sigmoid(x)); break;
    case RLX_OP_tanh: EACH(float, math_tanh(x)); break;
    case RLX_OP_exp: EACH(float, math_exp(x)); break;
    case RLX_OP_log: EACH(float, math_log(x)); break;
    case RLX_OP_gelu: EACH(float, math_gelu(x)); break;
    case RLX_OP_gelu_approx: EACH(float, math_gate(x, math_gelu_approx_arg(x))); break;
    case RLX_OP_silu: EACH(float, math_gate(x, x)); break;
    case RLX_OP_sin: sin_row(px, pout, n, 0); break;
    case RLX_OP_cos: sin_row(px, pout, n, 1); break;
    case RLX_OP_tan: EACH(float, tanf(x)); break;
    case RLX_OP_atan: EACH(float, atanf(x)); break;
    case RLX_OP_softplus: EACH(float, (x < 0 ? 0.0f : x) + math_log1p_exp_neg(x)); break;
    case RLX_OP_elu: EACH(float, elu_f32(x)); break;
    case RLX_OP_erf: EACH(float, math_erf(x)); break;
    case RLX_OP_mish: EACH(float, mish_f32(x)); break;
    case RLX_OP_log_sigmoid: EACH(float, (x > 0 ? 0.0f : x) - math_log1p_exp_neg(x)); break;
    default: break;
    }
}

/* ---- f64 ----------------------------------------------------------------------------------- */

static inline double sigmoid_f64(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* x sigmoid(u), 0 at -Inf. */
static inline double gate_f64(double x, double u)
{
    return (x < -1024.0 ? -1024.0 : x) * sigmoid_f64(u);
}

static inline double clamp_f64(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static inline double gelu_f64(double x)
{
    double t = x < -64.0 ? -64.0 : x; /* where the rest is 0 already */
    return 0.5 * t * erfc(-0.70710678118654752440 * t);
}

static inline double gelu_approx_f64(double x)
{
    return gate_f64(x, 1.59576912160573071176 * (x + 0.044715 * x * x * x));
}

static inline double log1p_exp_neg_f64(double x)
{
    return log1p(exp(-fabs(x)));
}

static inline double mish_f64(double x)
{
    double e = exp(x > 40.0 ? 40.0 : x);
    double w = e * (e + 2.0);
    return x * (w / (w + 2.0));
}

static void unary_f64(rlx_op op, const void *px, void *pout, int64_t n)
{
    switch ((int)op) {
    case RLX_OP_relu: EACH(double, x < 0 ? 0.0 : x); break;
    case RLX_OP_sigmoid: EACH(double, sigmoid_f64(x)); break;
    case RLX_OP_tanh: EACH(double, tanh(x)); break;
    case RLX_OP_exp: EACH(double, exp(x)); break;
    case RLX_OP_log: EACH(double, log(x)); break;
    case RLX_OP_sqrt: EACH(double, sqrt(x)); break;
    case RLX_OP_rsqrt: EACH(double, 1.0 / fabs(sqrt(x))); break;
    case RLX_OP_neg: EACH(double, -x); break;
    case RLX_OP_abs: EACH(double, fabs(x)); break;
    case RLX_OP_gelu: EACH(double, gelu_f64(x)); break;
    case RLX_OP_gelu_approx: EACH(double, gelu_approx_f64(x)); break;
    case RLX_OP_silu: EACH(double, gate_f64(x, x)); break;
    case RLX_OP_round: EACH(double, rint(x)); break;
    case RLX_OP_sin: EACH(double, sin(x)); break;
    case RLX_OP_cos: EACH(double, cos(x)); break;
    case RLX_OP_tan: EACH(double, tan(x)); break;
    case RLX_OP_atan: EACH(double, atan(x)); break;
    case RLX_OP_recip: EACH(double, 1.0 / x); break;
    case RLX_OP_floor: EACH(double, floor(x)); break;
    case RLX_OP_ceil: EACH(double, ceil(x)); break;
    case RLX_OP_sign: EACH(double, x > 0 ? 1.0 : x < 0 ? -1.0 : x); break;
    case RLX_OP_softplus: EACH(double, (x < 0 ? 0.0 : x) + log1p_exp_neg_f64(x)); break;
    case RLX_OP_elu: EACH(double, x > 0 ? x : expm1(x)); break;
    case RLX_OP_erf: EACH(double, erf(x)); break;
    case RLX_OP_hard_swish: EACH(double, x *(clamp_f64(x + 3.0, 0.0, 6.0) / 6.0)); break;
    case RLX_OP_hard_sigmoid: EACH(double, clamp_f64(x / 6.0 + 0.5, 0.0, 1.0)); break;
    case RLX_OP_mish: EACH(double, mish_f64(x)); break;
    case RLX_OP_softsign: EACH(double, x / (1.0 + fabs(x))); break;
    case RLX_OP_log_sigmoid: EACH(double, (x > 0 ? 0.0 : x) - log1p_exp_neg_f64(x)); break;
    default: break;
    }
}

/* ---- other types --------------------------------------------------------------------------- */

/* Negation goes through the unsigned type: the smallest value stays as it is. */
#define SIGNED_CASES(type, utype)                                                 \
    switch ((int)op) {                                                            \
    case RLX_OP_relu: EACH(type, x < 0 ? 0 : x); break;                           \
    case RLX_OP_neg: EACH(utype, (utype)(0u - x)); break;                         \
    case RLX_OP_abs: EACH(type, x < 0 ? (type)(utype)(0u - (utype)x) : x); break; \
    case RLX_OP_sign: EACH(type, (type)((x > 0) - (x < 0))); break;               \
    default: break;                                                               \
    }

#define UNSIGNED_CASES(type)                             \
    switch ((int)op) {                                   \
    case RLX_OP_relu:                                    \
    case RLX_OP_abs: EACH(type, x); break;               \
    case RLX_OP_sign: EACH(type, (type)(x != 0)); break; \
    default: break;                                      \
    }

static void unary_half(rlx_op op, rlx_dtype dtype, const void *px, void *pout, int64_t n)
{
    CPU_TILE_OF(float, tile);

    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(n - at, CPU_TILE);
        cpu_load_f32(dtype, (const uint16_t *)px + at, tile, part);
        unary_f32(op, tile, tile, part);
        cpu_store_f32(dtype, tile, (uint16_t *)pout + at, part);
    }
}

void cpu_row_unary(rlx_op op, rlx_dtype dtype, const void *px, void *pout, int64_t n)
{
    switch (dtype) {
    case RLX_DTYPE_f32: unary_f32(op, px, pout, n); break;
    case RLX_DTYPE_f64: unary_f64(op, px, pout, n); break;
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: unary_half(op, dtype, px, pout, n); break;
    case RLX_DTYPE_i8: SIGNED_CASES(int8_t, uint8_t) break;
    case RLX_DTYPE_i16: SIGNED_CASES(int16_t, uint16_t) break;
    case RLX_DTYPE_i32: SIGNED_CASES(int32_t, uint32_t) break;
    case RLX_DTYPE_i64: SIGNED_CASES(int64_t, uint64_t) break;
    case RLX_DTYPE_u8: UNSIGNED_CASES(uint8_t) break;
    case RLX_DTYPE_u16: UNSIGNED_CASES(uint16_t) break;
    case RLX_DTYPE_u32: UNSIGNED_CASES(uint32_t) break;
    case RLX_DTYPE_u64: UNSIGNED_CASES(uint64_t) break;
    case RLX_DTYPE_bool: EACH(uint8_t, x == 0); break; /* not */
    case RLX_DTYPE_c64:                                /* neg */
        n *= 2;
        EACH(float, -x);
        break;
    default: break;
    }
}

bool cpu_row_is_costly(rlx_op op)
{
    switch ((int)op) {
    case RLX_OP_relu:
    case RLX_OP_sqrt:
    case RLX_OP_rsqrt:
    case RLX_OP_neg:
    case RLX_OP_abs:
    case RLX_OP_round:
    case RLX_OP_recip:
    case RLX_OP_floor:
    case RLX_OP_ceil:
    case RLX_OP_sign:
    case RLX_OP_hard_swish:
    case RLX_OP_hard_sigmoid:
    case RLX_OP_softsign:
    case RLX_OP_not: return false;
    case RLX_OP_pow:
    case RLX_OP_mod:
    case RLX_OP_atan2: return true;
    default: return op_info(op)->family == FAMILY_unary;
    }
}

static void unary_span(const struct cpu_call *c, const struct cpu_span *s)
{
    cpu_row_unary(c->op, c->out->dtype, s->in[0], s->out, s->n);
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), unary_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_unary);
const struct cpu_kernel CPU_NAME(cpu_unary) = {.run = run, .in_place = 1};
