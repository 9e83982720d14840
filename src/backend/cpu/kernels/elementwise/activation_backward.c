/* activation_backward.c: dy times the derivative of a unary op, recomputed from x
 * (ops-core.md 5.3).
 *
 * A product with a derivative of 0 is still a product, NaN where dy is infinite; and where an
 * infinite x makes a formula infinity times 0, the result is NaN. In f32 a derivative that may
 * overflow or vanish is multiplied on in parts, so that the product is right whenever it fits; and
 * a tile with an infinite dy is computed in double, where fewer derivatives vanish. */
#include "backend/cpu/kernels/elementwise/row.h"
#include "backend/cpu/kernels/math.h"

/* ---- f32 ----------------------------------------------------------------------------------- */

#define EACH(value)                       \
    do {                                  \
        CPU_INDEPENDENT                   \
        for (int64_t i = 0; i < n; i++) { \
            float x = px[i], dy = pdy[i]; \
            (void)x;                      \
            out[i] = (value);             \
        }                                 \
    } while (0)

/* dy e^x. 2^k is multiplied in four parts, so it may be far outside the range of f32. */
static inline float times_exp(float x, float dy)
{
    int32_t k;
    float e = 1.0f + math_expm1_core(math_reduce_exp(math_clamp(x, -200.0f, 200.0f), &k));
    float part = math_pow2(k >> 2);
    float r = dy * part * part * part * e * math_pow2(k - 3 * (k >> 2));

    r = x > 709.8f ? dy * INFINITY : r; /* what e^x is even in double */
    return x < -745.2f ? dy * 0.0f : r;
}

static inline float times_sqrt_slope(float x, float dy)
{
    float d = 0.5f / __builtin_sqrtf(x);
    return dy * (x == 0 ? 0.0f : d);
}

static inline float times_rsqrt_slope(float x, float dy)
{
    float y = 1.0f / __builtin_sqrtf(x);
    y = x == 0 ? 0.0f : y;
    return -0.5f * dy * y * y * y;
}

/* 1 / (1 + x^2), from the reciprocal where x^2 might overflow. */
static inline float times_atan_slope(float x, float dy)
{
    float r = 1.0f / x;
    float far = dy * r * (r / (1.0f + r * r));
    float near = dy / (1.0f + x * x);
    return math_abs(x) > 1.0f ? far : near;
}

static inline float times_softsign_slope(float x, float dy)
{
    float w = 1.0f / (1.0f + math_abs(x));
    return dy * w * w;
}

/* y (1 - y), without the difference. */
static inline float sigmoid_slope(float x)
{
    float e = math_exp(-math_abs(x));
    float w = 1.0f + e;
    return e / (w * w);
}

/* 1 - y^2, likewise. */
static inline float tanh_slope(float x)
{
    return 4.0f * sigmoid_slope(2.0f * x);
}

/* The clamps below stand where the rest has reached its limit; x - x is NaN for an infinite x. */
static inline float gelu_slope(float x)
{
    float c = math_clamp(x, -15.0f, 15.0f);
    float tail = math_upper_tail(math_abs(c));
    float below = c < 0 ? tail : 1.0f - tail;
    return MATH_FMA(0.398942280f * c, math_exp(-0.5f * c * c), below) + (x - x);
}

static inline float gelu_approx_slope(float x)
{
    float c = math_clamp(x, -15.0f, 15.0f);
    float u = math_gelu_approx_arg(c);
    float rest = c * sigmoid_slope(u) * 1.595769122f * (1.0f + 0.134145f * c * c);
    return math_sigmoid(u) + rest + (x - x);
}

static inline float silu_slope(float x)
{
    float c = math_clamp(x, -128.0f, 128.0f);
    return math_sigmoid(c) + c * sigmoid_slope(c) + (x - x);
}

/* With w = e^x (e^x + 2): t = w / (w + 2), and 1 - t^2 = 4 (w + 1) / (w + 2)^2. */
static inline float mish_slope(float x)
{
    float c = math_clamp(x, -106.0f, 20.0f);
    float e = math_exp(c);
    float w = e * (e + 2.0f);
    float d = 1.0f / (w + 2.0f);
    return w * d + c * math_sigmoid(c) * (4.0f * (w + 1.0f) * d * d) + (x - x);
}

static inline float elu_slope(float x)
{
    float e = math_exp(x);
    return x > 0 ? 1.0f : e;
}

static inline float hard_swish_slope(float x)
{
    float d = (2.0f * x + 3.0f) / 6.0f;
    d = x <= -3.0f ? 0.0f : d;
    return x >= 3.0f ? 1.0f : d;
}

/* sin, cos and tan: their derivatives are others of the family. */
static void grad_circle(rlx_op op, const float *px, const float *pdy, float *out, int64_t n)
{
    rlx_op other = op == RLX_OP_sin ? RLX_OP_cos : op == RLX_OP_cos ? RLX_OP_sin : RLX_OP_tan;
    CPU_TILE_OF(float, y);

    cpu_row_unary(other, RLX_DTYPE_f32, px, y, n);
    if (op == RLX_OP_sin)
        EACH(dy * y[i]);
    else if (op == RLX_OP_cos)
        EACH(dy * -y[i]);
    else
        EACH(dy * (1.0f + y[i] * y[i]));
}

/* n <= CPU_TILE; out may be px or pdy. */
static void grad_finite(rlx_op op, const float *px, const float *pdy, float *out, int64_t n)
{
    switch ((int)op) {
    case RLX_OP_relu: EACH(dy * (x > 0 ? 1.0f : 0.0f)); break;
    case RLX_OP_sigmoid: EACH(dy * sigmoid_slope(x)); break;
    case RLX_OP_tanh: EACH(dy * tanh_slope(x)); break;
    case RLX_OP_exp: EACH(times_exp(x, dy)); break;
    case RLX_OP_log: EACH(dy / x); break;
    case RLX_OP_sqrt: EACH(times_sqrt_slope(x, dy)); break;
    case RLX_OP_rsqrt: EACH(times_rsqrt_slope(x, dy)); break;
    case RLX_OP_neg: EACH(-dy); break;
    case RLX_OP_abs: EACH(dy * (x > 0 ? 1.0f : x < 0 ? -1.0f : x)); break;
    case RLX_OP_gelu: EACH(dy * gelu_slope(x)); break;
    case RLX_OP_gelu_approx: EACH(dy * gelu_approx_slope(x)); break;
    case RLX_OP_silu: EACH(dy * silu_slope(x)); break;
    case RLX_OP_round: EACH(dy); break;
    case RLX_OP_sin:
    case RLX_OP_cos:
    case RLX_OP_tan: grad_circle(op, px, pdy, out, n); break;
    case RLX_OP_atan: EACH(times_atan_slope(x, dy)); break;
    case RLX_OP_recip: EACH(-(dy / x) / x); break;
    case RLX_OP_softplus: EACH(dy * math_sigmoid(x)); break;
    case RLX_OP_elu: EACH(dy * elu_slope(x)); break;
    case RLX_OP_erf: EACH(dy * (1.128379167f * math_exp(-x * x))); break;
    case RLX_OP_hard_swish: EACH(dy * hard_swish_slope(x)); break;
    case RLX_OP_hard_sigmoid: EACH(dy * (x > -3.0f && x < 3.0f ? 1.0f / 6.0f : 0.0f)); break;
    case RLX_OP_mish: EACH(dy * mish_slope(x)); break;
    case RLX_OP_softsign: EACH(times_softsign_slope(x, dy)); break;
    case RLX_OP_log_sigmoid: EACH(dy * math_sigmoid(-x)); break;
    default: EACH(dy * 0.0f); break; /* floor, ceil, sign */
    }
}

/* ---- f64 ----------------------------------------------------------------------------------- */

#define FACTOR(value)                     \
    do {                                  \
        for (int64_t i = 0; i < n; i++) { \
            double x = px[i];             \
            (void)x;                      \
            factor[i] = (value);          \
        }                                 \
    } while (0)

static inline double clamp_f64(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static inline double sigmoid_f64(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

static inline double sigmoid_slope_f64(double x)
{
    double e = exp(-fabs(x));
    return e / ((1.0 + e) * (1.0 + e));
}

static inline double rsqrt_slope_f64(double x)
{
    double y = 1.0 / sqrt(x);
    return x == 0 ? 0.0 : -0.5 * y * y * y;
}

static inline double tanh_slope_f64(double x)
{
    double c = cosh(x);
    return 1.0 / (c * c);
}

static inline double gelu_slope_f64(double x)
{
    double c = clamp_f64(x, -64.0, 64.0);
    return 0.5 * erfc(-0.70710678118654752440 * c) +
           0.39894228040143267794 * c * exp(-0.5 * c * c) + (x - x);
}

static inline double gelu_approx_slope_f64(double x)
{
    double c = clamp_f64(x, -64.0, 64.0);
    double u = 1.59576912160573071176 * (c + 0.044715 * c * c * c);
    return sigmoid_f64(u) +
           c * sigmoid_slope_f64(u) * 1.59576912160573071176 * (1.0 + 0.134145 * c * c) + (x - x);
}

static inline double silu_slope_f64(double x)
{
    double c = clamp_f64(x, -1024.0, 1024.0);
    return sigmoid_f64(c) + c * sigmoid_slope_f64(c) + (x - x);
}

static inline double mish_slope_f64(double x)
{
    double c = clamp_f64(x, -1024.0, 40.0);
    double e = exp(c), w = e * (e + 2.0), d = 1.0 / (w + 2.0);
    return w * d + c * sigmoid_f64(c) * (4.0 * (w + 1.0) * d * d) + (x - x);
}

static inline double hard_swish_slope_f64(double x)
{
    return x <= -3.0 ? 0.0 : x >= 3.0 ? 1.0 : (2.0 * x + 3.0) / 6.0;
}

static inline double tan_slope_f64(double x)
{
    double y = tan(x);
    return 1.0 + y * y;
}

static void factor_f64(rlx_op op, const double *px, double *factor, int64_t n)
{
    switch ((int)op) {
    case RLX_OP_relu: FACTOR(x > 0 ? 1.0 : 0.0); break;
    case RLX_OP_sigmoid: FACTOR(sigmoid_slope_f64(x)); break;
    case RLX_OP_tanh: FACTOR(tanh_slope_f64(x)); break;
    case RLX_OP_exp: FACTOR(exp(x)); break;
    case RLX_OP_log: FACTOR(1.0 / x); break;
    case RLX_OP_sqrt: FACTOR(x == 0 ? 0.0 : 0.5 / sqrt(x)); break;
    case RLX_OP_rsqrt: FACTOR(rsqrt_slope_f64(x)); break;
    case RLX_OP_neg: FACTOR(-1.0); break;
    case RLX_OP_abs: FACTOR(x > 0 ? 1.0 : x < 0 ? -1.0 : x); break;
    case RLX_OP_gelu: FACTOR(gelu_slope_f64(x)); break;
    case RLX_OP_gelu_approx: FACTOR(gelu_approx_slope_f64(x)); break;
    case RLX_OP_silu: FACTOR(silu_slope_f64(x)); break;
    case RLX_OP_round: FACTOR(1.0); break;
    case RLX_OP_sin: FACTOR(cos(x)); break;
    case RLX_OP_cos: FACTOR(-sin(x)); break;
    case RLX_OP_tan: FACTOR(tan_slope_f64(x)); break;
    case RLX_OP_atan: FACTOR(1.0 / (1.0 + x * x)); break;
    case RLX_OP_recip: FACTOR(-(1.0 / x) * (1.0 / x)); break;
    case RLX_OP_softplus: FACTOR(sigmoid_f64(x)); break;
    case RLX_OP_elu: FACTOR(x > 0 ? 1.0 : exp(x)); break;
    case RLX_OP_erf: FACTOR(1.12837916709551257390 * exp(-x * x)); break;
    case RLX_OP_hard_swish: FACTOR(hard_swish_slope_f64(x)); break;
    case RLX_OP_hard_sigmoid: FACTOR(x > -3.0 && x < 3.0 ? 1.0 / 6.0 : 0.0); break;
    case RLX_OP_mish: FACTOR(mish_slope_f64(x)); break;
    case RLX_OP_softsign: FACTOR(1.0 / ((1.0 + fabs(x)) * (1.0 + fabs(x)))); break;
    case RLX_OP_log_sigmoid: FACTOR(sigmoid_f64(-x)); break;
    default: FACTOR(0.0); break; /* floor, ceil, sign */
    }
}

/* ---- all together -------------------------------------------------------------------------- */

static void grad_f64(rlx_op op, const double *x, const double *dy, double *out, int64_t n)
{
    CPU_TILE_OF(double, factor);

    factor_f64(op, x, factor, n);
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = dy[i] * factor[i];
}

static bool any_infinite(const float *v, int64_t n)
{
    int found = 0;

    for (int64_t i = 0; i < n; i++)
        found |= math_abs(v[i]) == INFINITY;
    return found != 0;
}

static void grad_f32(rlx_op op, const float *x, const float *dy, float *out, int64_t n)
{
    if (!any_infinite(dy, n)) {
        grad_finite(op, x, dy, out, n);
        return;
    }
    CPU_TILE_OF(double, x_tile);
    CPU_TILE_OF(double, dy_tile);
    cpu_load_f64(RLX_DTYPE_f32, x, x_tile, n);
    cpu_load_f64(RLX_DTYPE_f32, dy, dy_tile, n);
    grad_f64(op, x_tile, dy_tile, dy_tile, n);
    cpu_store_f64(RLX_DTYPE_f32, dy_tile, out, n);
}

static void grad_half(rlx_op op, rlx_dtype dtype, const void *x, const void *dy, void *out,
                      int64_t n)
{
    CPU_TILE_OF(float, x_tile);
    CPU_TILE_OF(float, dy_tile);

    cpu_load_f32(dtype, x, x_tile, n);
    cpu_load_f32(dtype, dy, dy_tile, n);
    grad_f32(op, x_tile, dy_tile, dy_tile, n);
    cpu_store_f32(dtype, dy_tile, out, n);
}

void cpu_row_unary_grad(rlx_op op, rlx_dtype dtype, const void *x, const void *dy, void *out,
                        int64_t n)
{
    size_t size = cpu_size(dtype);

    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(n - at, CPU_TILE);
        const void *xp = cpu_row_part(x, 1, size, at), *dyp = cpu_row_part(dy, 1, size, at);
        void *to = (char *)out + at * (int64_t)size;

        switch (dtype) {
        case RLX_DTYPE_f32: grad_f32(op, xp, dyp, to, part); break;
        case RLX_DTYPE_f64: grad_f64(op, xp, dyp, to, part); break;
        case RLX_DTYPE_c64: cpu_row_unary(RLX_OP_neg, dtype, dyp, to, part); break; /* of neg */
        default: grad_half(op, dtype, xp, dyp, to, part); break;
        }
    }
}

static rlx_op kind_of(const struct cpu_call *c)
{
    return c->op == RLX_OP_relu_backward ? RLX_OP_relu : c->attr->activation_backward.kind;
}

static void grad_span(const struct cpu_call *c, const struct cpu_span *s)
{
    cpu_row_unary_grad(kind_of(c), c->out->dtype, s->in[0], s->in[1], s->out, s->n);
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(kind_of(c)), grad_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_relu_backward);
const struct cpu_kernel CPU_NAME(cpu_relu_backward) = {.run = run, .in_place = 3};

extern const struct cpu_kernel CPU_NAME(cpu_activation_backward);
const struct cpu_kernel CPU_NAME(cpu_activation_backward) = {.run = run, .in_place = 3};
