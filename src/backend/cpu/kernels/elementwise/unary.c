/* unary.c: functions of one element (ops-core.md 5.3), by the rows of unary.def. f16 and bf16 are
 * computed in f32 tiles. */
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

static void value_f32_sin(const void *px, void *pout, int64_t n)
{
    sin_row(px, pout, n, 0);
}

static void value_f32_cos(const void *px, void *pout, int64_t n)
{
    sin_row(px, pout, n, 1);
}

static void value_f32_tan(const void *px, void *pout, int64_t n)
{
    EACH(float, tanf(x));
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

/* ---- the table ----------------------------------------------------------------------------- */

#define UNARY(op, effort, f32, f64, gradient, slope)                  \
    static void value_f32_##op(const void *px, void *pout, int64_t n) \
    {                                                                 \
        EACH(float, f32);                                             \
    }
#include "backend/cpu/kernels/elementwise/unary.def"

#define UNARY(op, effort, f32, f64, gradient, slope)                  \
    static void value_f64_##op(const void *px, void *pout, int64_t n) \
    {                                                                 \
        EACH(double, f64);                                            \
    }
#define CIRCLE(op, effort, f64, slope) UNARY(op, effort, 0, f64, 0, slope)
#include "backend/cpu/kernels/elementwise/unary.def"

enum effort { PLAIN, COSTLY };

static const struct {
    void (*f32)(const void *px, void *pout, int64_t n);
    void (*f64)(const void *px, void *pout, int64_t n);
    enum effort effort;
} table[RLX_OP_count] = {
#define UNARY(op, effort, f32, f64, gradient, slope) \
    [RLX_OP_##op] = {value_f32_##op, value_f64_##op, effort},
#define CIRCLE(op, effort, f64, slope) UNARY(op, effort, 0, f64, 0, slope)
#include "backend/cpu/kernels/elementwise/unary.def"
};

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
        table[op].f32(tile, tile, part);
        cpu_store_f32(dtype, tile, (uint16_t *)pout + at, part);
    }
}

void cpu_row_unary(rlx_op op, rlx_dtype dtype, const void *px, void *pout, int64_t n)
{
    switch (dtype) {
    case RLX_DTYPE_f32: table[op].f32(px, pout, n); break;
    case RLX_DTYPE_f64: table[op].f64(px, pout, n); break;
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
    bool called = op == RLX_OP_pow || op == RLX_OP_mod || op == RLX_OP_atan2;

    return called || table[op].effort == COSTLY;
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
