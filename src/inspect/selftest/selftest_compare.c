/* selftest_compare.c: how far a result may be from its definition (ops-core.md 22). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "inspect/selftest/selftest.h"

/* Where an attribute says what is done with the elements, it says how exact that is. */
static enum tolerance_class tolerance_of(const struct ir_node *n)
{
    enum tolerance_class class = op_tolerance(n->op);
    int64_t reduction = attr_integer(n->op, &n->attr, "reduction", -1);

    if (reduction >= 0)
        return reduction == RLX_SCATTER_REDUCTION_add || reduction == RLX_SCATTER_REDUCTION_mul
                   ? class
                   : TOLERANCE_EXACT;
    if (n->op == RLX_OP_pool && n->attr.pool.kind > RLX_POOL_KIND_mean)
        return n->attr.pool.kind == RLX_POOL_KIND_prod ? TOLERANCE_PRODUCT : TOLERANCE_EXACT;
    return class;
}

bool selftest_wants_abs(rlx_op op)
{
    struct ir_node n = {.op = op};
    enum tolerance_class t = tolerance_of(&n);

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

struct allowance {
    enum tolerance_class class;
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
        .terms = selftest_terms(g, n),
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
