/* selftest_compare.c: how far a result may be from its definition (ops-core.md 22). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "inspect/selftest/selftest.h"

enum tolerance {
    TOLERANCE_EXACT,
    TOLERANCE_ROUNDED,  /* correctly rounded; f16, bf16: one unit in the last place */
    TOLERANCE_ULP,      /* one unit */
    TOLERANCE_FUNCTION, /* exp, log and their kind */
    TOLERANCE_TRIG,
    TOLERANCE_SUM,       /* grows with the number and size of the terms */
    TOLERANCE_ACTIVATED, /* a sum, and a function of it whose slope is about 1 at most */
    TOLERANCE_PRODUCT,   /* of many factors */
    TOLERANCE_SOFTMAX,
    TOLERANCE_NORM,
    TOLERANCE_ATTENTION, /* relative to the largest |v|, where the caller knows it */
    TOLERANCE_GRADIENT,  /* relative to the largest value */
    TOLERANCE_SPECTRUM   /* relative to the row (ops-special.md 5.1) */
};

static enum tolerance unary_tolerance(rlx_op op)
{
    switch (op) {
    case RLX_OP_relu:
    case RLX_OP_neg:
    case RLX_OP_abs:
    case RLX_OP_round:
    case RLX_OP_floor:
    case RLX_OP_ceil:
    case RLX_OP_sign:
    case RLX_OP_not: return TOLERANCE_EXACT;
    case RLX_OP_sqrt:
    case RLX_OP_recip: return TOLERANCE_ULP;
    case RLX_OP_sin:
    case RLX_OP_cos:
    case RLX_OP_tan: return TOLERANCE_TRIG;
    default: return TOLERANCE_FUNCTION;
    }
}

static enum tolerance binary_tolerance(rlx_op op)
{
    switch (op) {
    case RLX_OP_add:
    case RLX_OP_sub:
    case RLX_OP_mul: return TOLERANCE_ROUNDED;
    case RLX_OP_div: return TOLERANCE_ULP;
    case RLX_OP_pow:
    case RLX_OP_atan2: return TOLERANCE_FUNCTION;
    default: return TOLERANCE_EXACT;
    }
}

static bool scatter_adds(const struct ir_node *n)
{
    int32_t how = n->op == RLX_OP_scatter_nd ? n->attr.scatter_nd.reduction
                                             : n->attr.scatter_elements.reduction;
    return how == RLX_SCATTER_REDUCTION_add || how == RLX_SCATTER_REDUCTION_mul;
}

static enum tolerance tolerance_of(const struct ir_node *n)
{
    const struct op_info *o = op_info(n->op);

    if (n->op == RLX_OP_gather_backward || n->op == RLX_OP_cumsum_backward)
        return TOLERANCE_SUM;
    if (o->category == CATEGORY_GRADIENT)
        return n->op == RLX_OP_rope_backward ? TOLERANCE_NORM : TOLERANCE_GRADIENT;
    switch (o->family) {
    case FAMILY_unary: return unary_tolerance(n->op);
    case FAMILY_binary: return binary_tolerance(n->op);
    case FAMILY_fma: return TOLERANCE_ROUNDED;
    case FAMILY_reduce:
        return n->op == RLX_OP_reduce_prod                                ? TOLERANCE_PRODUCT
               : n->op == RLX_OP_reduce_max || n->op == RLX_OP_reduce_min ? TOLERANCE_EXACT
                                                                          : TOLERANCE_SUM;
    case FAMILY_cumulative:
        return n->op == RLX_OP_cumsum    ? TOLERANCE_SUM
               : n->op == RLX_OP_cumprod ? TOLERANCE_PRODUCT
                                         : TOLERANCE_EXACT;
    case FAMILY_pool:
        return n->attr.pool.kind <= RLX_POOL_KIND_mean   ? TOLERANCE_SUM
               : n->attr.pool.kind == RLX_POOL_KIND_prod ? TOLERANCE_PRODUCT
                                                         : TOLERANCE_EXACT;
    case FAMILY_scatter_elements:
    case FAMILY_scatter_nd: return scatter_adds(n) ? TOLERANCE_NORM : TOLERANCE_EXACT;
    case FAMILY_scatter_add:
    case FAMILY_matmul:
    case FAMILY_dot_general:
    case FAMILY_grouped_matmul:
    case FAMILY_dequant_matmul:
    case FAMILY_dequant_grouped_matmul:
    case FAMILY_grouped_matmul_backward_weight:
    case FAMILY_conv:
    case FAMILY_conv_transpose:
    case FAMILY_complex_norm_sq: return TOLERANCE_SUM;
    case FAMILY_fused_matmul_bias_act:
    case FAMILY_fused_conv_bias_act: return TOLERANCE_ACTIVATED;
    case FAMILY_softmax:
    case FAMILY_softmax_cross_entropy:
    case FAMILY_softmax_cross_entropy_with_logits: return TOLERANCE_SOFTMAX;
    case FAMILY_attention: return TOLERANCE_ATTENTION;
    case FAMILY_group_limited_gate:
    case FAMILY_gaussian_splat:
    case FAMILY_gaussian_splat_rasterize: return TOLERANCE_NORM;
    case FAMILY_dequant_moe_weights: return TOLERANCE_EXACT;
    case FAMILY_fft: return TOLERANCE_SPECTRUM;
    case FAMILY_rng_normal:
    case FAMILY_rng_uniform: return TOLERANCE_FUNCTION;
    default: break;
    }
    switch (o->category) {
    case CATEGORY_NORMALISATION:
    case CATEGORY_SEQUENCE:
    case CATEGORY_CONTRACTION:
    case CATEGORY_FUSED:
    case CATEGORY_CONTROL: return TOLERANCE_NORM;
    default: break;
    }
    return o->family == FAMILY_fake_quantize || o->family == FAMILY_fake_quantize_lsq
               ? TOLERANCE_NORM
               : TOLERANCE_EXACT;
}

bool selftest_wants_abs(rlx_op op)
{
    struct ir_node n = {.op = op};
    enum tolerance t = tolerance_of(&n);

    return t == TOLERANCE_SUM || t == TOLERANCE_ACTIVATED;
}

/* The distance between neighbouring values of that type at v. */
static double unit_at(rlx_dtype t, double v)
{
    int exponent, mantissa = t == RLX_DTYPE_f16    ? 11
                             : t == RLX_DTYPE_bf16 ? 8
                             : t == RLX_DTYPE_f64  ? 53
                                                   : 24;
    int least = t == RLX_DTYPE_f16    ? -24
                : t == RLX_DTYPE_bf16 ? -133
                : t == RLX_DTYPE_f64  ? -1074
                                      : -149;

    if (v == 0 || !isfinite(v))
        return ldexp(1, least);
    frexp(v, &exponent);
    return ldexp(1, exponent - mantissa > least ? exponent - mantissa : least);
}

/* How many terms go into one element of the result. */
static double terms(const struct ir_graph *g, const struct ir_node *n)
{
    int64_t in = 1, out = 1, k = 1;
    const struct ir_type *a = n->in_count ? ir_type_of(g, n->in[0]) : &n->type;

    type_count(a, &in);
    type_count(&n->type, &out);
    switch (op_info(n->op)->family) {
    case FAMILY_matmul: k = a->dim[a->rank - (n->attr.matmul.transpose_a ? 2 : 1)]; break;
    case FAMILY_fused_matmul_bias_act:
        k = a->dim[a->rank - (n->attr.fused_matmul_bias_act.transpose_a ? 2 : 1)];
        break;
    case FAMILY_grouped_matmul: k = a->dim[1]; break;
    case FAMILY_dequant_matmul:
    case FAMILY_dequant_grouped_matmul: k = a->dim[a->rank - 1]; break;
    case FAMILY_grouped_matmul_backward_weight: k = a->dim[0]; break;
    case FAMILY_dot_general:
        for (int32_t i = 0; i < n->attr.dot_general.lhs_contracting.count; i++)
            k *= a->dim[n->attr.dot_general.lhs_contracting.at[i]];
        break;
    case FAMILY_conv:
    case FAMILY_fused_conv_bias_act:
    case FAMILY_conv_transpose: {
        const struct ir_type *w = ir_type_of(g, n->in[1]);
        for (int32_t i = 1; i < w->rank; i++)
            k *= w->dim[i];
        break;
    }
    case FAMILY_cumulative: k = a->dim[n->attr.cumulative.axis]; break;
    case FAMILY_cumsum_backward: k = a->dim[n->attr.cumsum_backward.axis]; break;
    case FAMILY_pool:
        for (int32_t i = 0; i < n->attr.pool.kernel_size.count; i++)
            k *= n->attr.pool.kernel_size.at[i];
        break;
    case FAMILY_complex_norm_sq: k = 2; break;
    case FAMILY_reduce: k = out ? in / out : 1; break;
    default: k = in; break;
    }
    return (double)(k < 1 ? 1 : k);
}

struct allowance {
    enum tolerance class;
    rlx_dtype dtype;
    double terms, largest; /* largest finite |want| */
    double shrink;         /* f64 is that much tighter than f32 */
    double row;            /* root of the mean square of the row's numbers, times what 5.1 allows */
    bool half;
};

static double norm_allowed(const struct allowance *a, double unit, double size)
{
    return a->half ? 2 * unit + 2e-3 * fmax(1, size) : a->shrink * 2e-5 * fmax(1, size);
}

static double sum_allowed(const struct allowance *a, double abs_want)
{
    return a->shrink * (4 + sqrt(a->terms)) * 0x1p-22 * abs_want;
}

static double allowed(const struct allowance *a, double want, double abs_want)
{
    double u = unit_at(a->dtype, want), y = fabs(want), s = a->shrink;

    switch (a->class) {
    case TOLERANCE_EXACT: return 0;
    case TOLERANCE_ROUNDED: return a->half ? u : 0;
    case TOLERANCE_ULP: return u;
    case TOLERANCE_FUNCTION: return a->half ? 2 * u : s * (1e-6 * y + 1e-7);
    case TOLERANCE_TRIG: return a->half ? 2 * u : s * 1e-6 * (1 + y);
    case TOLERANCE_SUM: return sum_allowed(a, abs_want) + (a->half ? u : 0);
    case TOLERANCE_ACTIVATED: return norm_allowed(a, u, y) + sum_allowed(a, abs_want);
    case TOLERANCE_PRODUCT: return s * (2 + a->terms) * 0x1p-23 * y + (a->half ? u : 0);
    case TOLERANCE_SOFTMAX: return a->half ? 2 * u : s * (2e-6 + 1e-5 * y);
    case TOLERANCE_NORM: return norm_allowed(a, u, y);
    case TOLERANCE_ATTENTION: return norm_allowed(a, u, fmax(y, abs_want));
    case TOLERANCE_GRADIENT:
        return (a->half ? 2 * u + 4e-3 * a->largest : 0) + s * 1e-4 * fmax(a->largest, 1e-3);
    case TOLERANCE_SPECTRUM: return 5 * a->row; /* the bound is for the mean of all errors */
    }
    return 0;
}

static double largest_finite(const struct eval_tensor *t)
{
    double most = 0;

    for (int64_t k = 0; k < t->count; k++)
        if (isfinite(t->at[k].f) && fabs(t->at[k].f) > most)
            most = fabs(t->at[k].f);
    return most;
}

/* What ops-special.md 5.1 allows for a transform's row that begins at element k, per number. */
static double row_allowed(const struct eval_tensor *t, int64_t k)
{
    bool wide = t->type.dtype == RLX_DTYPE_f64, pairs = t->type.dtype == RLX_DTYPE_c64;
    int64_t extent = t->type.dim[t->type.rank - 1], n = pairs ? extent : extent / 2;
    double sum = 0, bound = (n & (n - 1)) == 0 ? (wide ? 1e-15 : 3e-7) : (wide ? 1e-14 : 2e-6);

    for (int64_t i = k; i < k + extent; i++)
        sum += t->at[i].f * t->at[i].f + t->at[i].im * t->at[i].im;
    return bound * (4 + log2((double)n)) * sqrt(sum / (double)(2 * n));
}

static void note(struct comparison *c, int64_t k, double got, double want, double error)
{
    if (!(error > c->worst))
        return;
    *c = (struct comparison){error, k, got, want, error <= 1};
}

/* One real number; `rounded` is want in the result's own type. */
static double error_of(const struct allowance *a, double got, double want, double rounded,
                       double abs_want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : (double)INFINITY;
    if (got == rounded)
        return 0;
    if (isinf(got) || isinf(rounded))
        return (double)INFINITY;
    /* A correctly rounded result is at most half a unit from the exact one. */
    double tolerance = allowed(a, want, abs_want), difference = fabs(got - want);
    double slack = a->class == TOLERANCE_EXACT || a->class == TOLERANCE_ROUNDED
                       ? 0
                       : 0.5 * unit_at(a->dtype, want);
    if (a->class == TOLERANCE_ROUNDED || a->class == TOLERANCE_ULP)
        difference = fabs(got - rounded);
    if (tolerance + slack == 0)
        return (double)INFINITY;
    return difference / (tolerance + slack);
}

static double flushed(double x)
{
    return fabs(x) < (double)FLT_MIN ? copysign(0, x) : x;
}

void selftest_flush(struct eval_tensor *t)
{
    rlx_dtype d = t->type.dtype;

    if (d != RLX_DTYPE_f32 && d != RLX_DTYPE_bf16 && d != RLX_DTYPE_c64)
        return;
    for (int64_t k = 0; k < t->count; k++) {
        t->at[k].f = flushed(t->at[k].f);
        t->at[k].im = flushed(t->at[k].im);
    }
}

static struct allowance allowance_of(const struct ir_graph *g, const struct ir_node *n,
                                     const struct eval_tensor *want)
{
    rlx_dtype t = want->type.dtype;
    struct allowance a = {
        .class = tolerance_of(n),
        .dtype = t == RLX_DTYPE_c64 ? RLX_DTYPE_f32 : t,
        .terms = terms(g, n),
        .largest = largest_finite(want),
        .shrink = t == RLX_DTYPE_f64 ? 0x1p-27 : 1,
        .half = t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16,
    };

    if (t == RLX_DTYPE_c64 && a.class != TOLERANCE_EXACT && a.class != TOLERANCE_SUM &&
        a.class != TOLERANCE_SPECTRUM)
        a.class = TOLERANCE_NORM;
    return a;
}

static bool begins_row(const struct allowance *a, const struct eval_tensor *want, int64_t k)
{
    return a->class == TOLERANCE_SPECTRUM && k % want->type.dim[want->type.rank - 1] == 0;
}

void selftest_allowed(const struct ir_graph *g, const struct ir_node *n,
                      const struct eval_tensor *want, const struct eval_tensor *abs_want,
                      double *out)
{
    struct allowance a = allowance_of(g, n, want);

    for (int64_t k = 0; k < want->count; k++) {
        struct eval_cell w = want->at[k];
        double size = fmax(fabs(w.f), fabs(w.im));
        if (begins_row(&a, want, k))
            a.row = row_allowed(want, k);
        out[k] = dtype_is(want->type.dtype, CLASS_INT | CLASS_B)
                     ? 0
                     : allowed(&a, size, abs_want ? fabs(abs_want->at[k].f) : size);
    }
}

void selftest_compare(const struct ir_graph *g, const struct ir_node *n,
                      const struct eval_tensor *want, const struct eval_tensor *abs_want,
                      const struct eval_tensor *got, struct comparison *out)
{
    rlx_dtype t = want->type.dtype;
    struct allowance a = allowance_of(g, n, want);

    *out = (struct comparison){.position = -1, .ok = true};
    for (int64_t k = 0; k < want->count; k++) {
        struct eval_cell w = want->at[k], r = w, one;
        struct eval_tensor cell = {.type = want->type, .count = 1, .at = &one};
        double size = abs_want ? fabs(abs_want->at[k].f) : fabs(w.f);

        if (begins_row(&a, want, k))
            a.row = row_allowed(want, k);
        if (dtype_is(t, CLASS_INT | CLASS_B)) {
            if (got->at[k].i != w.i)
                note(out, k, (double)got->at[k].i, (double)w.i, (double)INFINITY);
            continue;
        }
        one = r;
        eval_round(&cell);
        r = one;
        note(out, k, got->at[k].f, w.f, error_of(&a, got->at[k].f, w.f, r.f, size));
        if (t == RLX_DTYPE_c64)
            note(out, k, got->at[k].im, w.im,
                 error_of(&a, got->at[k].im, w.im, r.im, abs_want ? size : fabs(w.im)));
    }
}
