/* activation_backward.c: dy times the derivative of a unary op, recomputed from x
 * (ops-core.md 5.3), by the rows of unary.def.
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

/* sin, cos and tan: their derivatives are others of the family. n <= CPU_TILE. */
static void gradient_f32_sin(const float *px, const float *pdy, float *out, int64_t n)
{
    CPU_TILE_OF(float, y);

    cpu_row_unary(RLX_OP_cos, RLX_DTYPE_f32, px, y, n);
    EACH(dy * y[i]);
}

static void gradient_f32_cos(const float *px, const float *pdy, float *out, int64_t n)
{
    CPU_TILE_OF(float, y);

    cpu_row_unary(RLX_OP_sin, RLX_DTYPE_f32, px, y, n);
    EACH(dy * -y[i]);
}

static void gradient_f32_tan(const float *px, const float *pdy, float *out, int64_t n)
{
    CPU_TILE_OF(float, y);

    cpu_row_unary(RLX_OP_tan, RLX_DTYPE_f32, px, y, n);
    EACH(dy * (1.0f + y[i] * y[i]));
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

/* ---- the table ----------------------------------------------------------------------------- */

/* n <= CPU_TILE; out may be px or pdy. */
#define UNARY(op, effort, f32, f64, gradient, slope)                                        \
    static void gradient_f32_##op(const float *px, const float *pdy, float *out, int64_t n) \
    {                                                                                       \
        EACH(gradient);                                                                     \
    }
#include "backend/cpu/kernels/elementwise/unary.def"

#define UNARY(op, effort, f32, f64, gradient, slope)                        \
    static void slope_f64_##op(const double *px, double *factor, int64_t n) \
    {                                                                       \
        FACTOR(slope);                                                      \
    }
#define CIRCLE(op, effort, f64, slope) UNARY(op, effort, 0, f64, 0, slope)
#include "backend/cpu/kernels/elementwise/unary.def"

static const struct {
    void (*gradient_f32)(const float *px, const float *pdy, float *out, int64_t n);
    void (*slope_f64)(const double *px, double *factor, int64_t n);
} table[RLX_OP_count] = {
#define UNARY(op, effort, f32, f64, gradient, slope) \
    [RLX_OP_##op] = {gradient_f32_##op, slope_f64_##op},
#define CIRCLE(op, effort, f64, slope) UNARY(op, effort, 0, f64, 0, slope)
#include "backend/cpu/kernels/elementwise/unary.def"
};

/* ---- all together -------------------------------------------------------------------------- */

static void grad_f64(rlx_op op, const double *x, const double *dy, double *out, int64_t n)
{
    CPU_TILE_OF(double, factor);

    table[op].slope_f64(x, factor, n);
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
        table[op].gradient_f32(x, dy, out, n);
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
