/* eval_unary.c: functions of one element, and their derivatives (ops-core.md 5.3).
 *
 * The formulas are the manual's, put so that nothing overflows or cancels on the way. Where an
 * infinite x makes a formula 0 * Inf, NaN is the answer unless the manual gives a limit. */
#include <math.h>

#include "ir/eval/eval.h"

#define ROOT_HALF 0.70710678118654752440        /* sqrt(1/2) */
#define ROOT_2_OVER_PI 0.79788456080286535588   /* sqrt(2/pi) */
#define INV_ROOT_2PI 0.39894228040143267794     /* 1/sqrt(2 pi) */
#define TWO_OVER_ROOT_PI 1.12837916709551257390 /* 2/sqrt(pi) */

/* ---- values -------------------------------------------------------------------------------- */

double eval_sigmoid(double x)
{
    double e = exp(-fabs(x));

    return x >= 0 ? 1 / (1 + e) : e / (1 + e); /* NaN takes either */
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * ROOT_HALF); /* exact in the tail, where 1 + erf cancels */
}

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* Half of 1 + tanh u is sigmoid(2u). */
static double gelu_gate(double x)
{
    return eval_sigmoid(2 * ROOT_2_OVER_PI * (x + 0.044715 * x * x * x));
}

/* x * gate, where the gate goes to 0 faster than x to -Inf. */
static double gated(double x, double gate)
{
    return x == -INFINITY ? 0 : x * gate;
}

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x; /* NaN stays */
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
}

double eval_unary_value(rlx_op op, double x)
{
    switch (op) {
    case RLX_OP_relu: return x > 0 || isnan(x) ? x : 0;
    case RLX_OP_sigmoid: return eval_sigmoid(x);
    case RLX_OP_tanh: return tanh(x);
    case RLX_OP_exp: return exp(x);
    case RLX_OP_log: return log(x);
    case RLX_OP_sqrt: return sqrt(x);
    case RLX_OP_rsqrt: return x == 0 ? INFINITY : 1 / sqrt(x);
    case RLX_OP_neg: return -x;
    case RLX_OP_abs: return fabs(x);
    case RLX_OP_gelu: return gated(x, normal_cdf(x));
    case RLX_OP_gelu_approx: return gated(x, gelu_gate(x));
    case RLX_OP_silu: return gated(x, eval_sigmoid(x));
    case RLX_OP_round: return rint(x);
    case RLX_OP_sin: return sin(x);
    case RLX_OP_cos: return cos(x);
    case RLX_OP_tan: return tan(x);
    case RLX_OP_atan: return atan(x);
    case RLX_OP_recip: return 1 / x;
    case RLX_OP_floor: return floor(x);
    case RLX_OP_ceil: return ceil(x);
    case RLX_OP_sign: return sign(x);
    case RLX_OP_softplus: return softplus(x);
    case RLX_OP_elu: return x > 0 ? x : expm1(x);
    case RLX_OP_erf: return erf(x);
    case RLX_OP_hard_swish: return x * clamp(x + 3, 0, 6) / 6;
    case RLX_OP_hard_sigmoid: return clamp(x / 6 + 0.5, 0, 1);
    case RLX_OP_mish: return x * tanh(softplus(x));
    case RLX_OP_softsign: return x / (1 + fabs(x));
    case RLX_OP_log_sigmoid: return (x < 0 ? x : 0) - log1p(exp(-fabs(x)));
    default: return NAN;
    }
}

static int64_t int_unary(rlx_op op, rlx_dtype t, int64_t x)
{
    bool negative = dtype_is(t, CLASS_I) && x < 0;

    switch (op) {
    case RLX_OP_relu: return negative ? 0 : x;
    case RLX_OP_neg: return eval_wrap(t, 0 - (uint64_t)x);
    case RLX_OP_abs: return negative ? eval_wrap(t, 0 - (uint64_t)x) : x;
    case RLX_OP_sign: return negative ? -1 : x != 0;
    case RLX_OP_not: return !x;
    default: return 0;
    }
}

struct eval_cell eval_cell_unary(rlx_op op, rlx_dtype t, struct eval_cell x)
{
    if (dtype_is(t, CLASS_C)) /* neg is all there is */
        return (struct eval_cell){.f = -x.f, .im = -x.im};
    if (dtype_is(t, CLASS_F))
        return (struct eval_cell){.f = eval_unary_value(op, x.f)};
    return (struct eval_cell){.i = int_unary(op, t, x.i)};
}

/* ---- derivatives --------------------------------------------------------------------------- */

/* 1 - tanh(x)^2 */
static double sech_squared(double x)
{
    double c = cosh(x);

    return 1 / (c * c);
}

static double gelu_approx_slope(double x)
{
    double rest = sech_squared(ROOT_2_OVER_PI * (x + 0.044715 * x * x * x));

    if (rest == 0 && isfinite(x))
        return gelu_gate(x); /* whatever it is multiplied by */
    return gelu_gate(x) + x / 2 * rest * ROOT_2_OVER_PI * (1 + 0.134145 * x * x);
}

static double silu_slope(double x)
{
    return eval_sigmoid(x) * (1 + x * eval_sigmoid(-x));
}

static double hard_swish_slope(double x)
{
    return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
}

static double rsqrt_slope(double x)
{
    double y = 1 / sqrt(x);

    return x == 0 ? 0 : -y * y * y / 2;
}

double eval_unary_slope(rlx_op op, double x)
{
    switch (op) {
    case RLX_OP_relu: return x > 0;
    case RLX_OP_sigmoid: return eval_sigmoid(x) * eval_sigmoid(-x);
    case RLX_OP_tanh: return sech_squared(x);
    case RLX_OP_exp: return exp(x);
    case RLX_OP_log: return 1 / x;
    case RLX_OP_sqrt: return x == 0 ? 0 : 1 / (2 * sqrt(x));
    case RLX_OP_rsqrt: return rsqrt_slope(x);
    case RLX_OP_neg: return -1;
    case RLX_OP_abs: return sign(x);
    case RLX_OP_gelu: return normal_cdf(x) + x * exp(-x * x / 2) * INV_ROOT_2PI;
    case RLX_OP_gelu_approx: return gelu_approx_slope(x);
    case RLX_OP_silu: return silu_slope(x);
    case RLX_OP_round: return 1;
    case RLX_OP_sin: return cos(x);
    case RLX_OP_cos: return -sin(x);
    case RLX_OP_tan: return 1 + tan(x) * tan(x);
    case RLX_OP_atan: return 1 / (1 + x * x);
    case RLX_OP_recip: return -(1 / x) * (1 / x);
    case RLX_OP_softplus: return eval_sigmoid(x);
    case RLX_OP_elu: return x > 0 ? 1 : exp(x);
    case RLX_OP_erf: return TWO_OVER_ROOT_PI * exp(-x * x);
    case RLX_OP_hard_swish: return hard_swish_slope(x);
    case RLX_OP_hard_sigmoid: return x > -3 && x < 3 ? 1.0 / 6 : 0;
    case RLX_OP_mish: return tanh(softplus(x)) + x * eval_sigmoid(x) * sech_squared(softplus(x));
    case RLX_OP_softsign: return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
    case RLX_OP_log_sigmoid: return eval_sigmoid(-x);
    default: return 0; /* floor, ceil, sign */
    }
}

/* ---- the families -------------------------------------------------------------------------- */

rlx_status eval_unary(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0];

    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k] = eval_cell_unary(c->op, x->type.dtype, x->at[k]);
    return RLX_OK;
}

/* dy times the derivative at x. For c64 that derivative is neg's, which is real. */
static rlx_status backward(struct eval_call *c, rlx_op kind)
{
    const struct eval_tensor *x = c->in[0], *dy = c->in[1];

    for (int64_t k = 0; k < c->out->count; k++) {
        double slope = eval_unary_slope(kind, x->at[k].f);
        c->out->at[k].f = dy->at[k].f * slope;
        c->out->at[k].im = dy->at[k].im * slope;
    }
    return RLX_OK;
}

rlx_status eval_relu_backward(struct eval_call *c)
{
    return backward(c, RLX_OP_relu);
}

rlx_status eval_activation_backward(struct eval_call *c)
{
    return backward(c, c->attr->activation_backward.kind);
}
