/* loss.c: losses put together from ops: the first part of rlx/train.h. Each ends in one number,
 * computed in f32 or better. */
#include <math.h>

#include "base/desc.h"
#include "graph/builder.h"
#include "rlx/train.h"

/* What a loss is made of, under the loss's name. */
struct part {
    rlx_graph *g;
    const char *loss, *what;
    rlx_value v;
    rlx_dtype dtype;
    rlx_list shape;
};

#define FAIL(p, status, ...) build_fail_in((p)->g, RLX_ERROR_##status, (p)->loss, __VA_ARGS__)

static bool look_at(struct part *p, rlx_graph *g, const char *loss, const char *what, rlx_value v)
{
    rlx_error err;

    *p = (struct part){.g = g, .loss = loss, .what = what, .v = v};
    if (!g || (v == RLX_NO_VALUE && rlx_graph_check(g, NULL) != RLX_OK))
        return false;
    if (rlx_value_type(g, v, &p->dtype, &p->shape, &err) != RLX_OK)
        return FAIL(p, GRAPH, "%s: %s", what, err.message);
    return true;
}

/* Floats, halves as f32 from here on. */
static bool look_at_floats(struct part *p, rlx_graph *g, const char *loss, const char *what,
                           rlx_value v)
{
    if (!look_at(p, g, loss, what, v))
        return false;
    if (!dtype_is(p->dtype, CLASS_F))
        return FAIL(p, DTYPE, "%s must be floats, not %s", what, rlx_dtype_name(p->dtype));
    if (p->dtype != RLX_DTYPE_f64)
        p->v = rlx_cast(g, v, p->dtype = RLX_DTYPE_f32);
    return p->v != RLX_NO_VALUE;
}

static bool same_shapes(const struct part *a, const struct part *b)
{
    if (a->shape.count != b->shape.count)
        return FAIL(a, SHAPE, "%s has rank %d and %s has rank %d", a->what, a->shape.count, b->what,
                    b->shape.count);
    for (int32_t i = 0; i < a->shape.count; i++)
        if (a->shape.at[i] != b->shape.at[i])
            return FAIL(a, SHAPE, "%s and %s differ in the size of axis %d", a->what, b->what, i);
    return true;
}

/* Two of one shape. */
static bool look_at_both(struct part *a, struct part *b, rlx_graph *g, const char *loss,
                         const char *first, rlx_value x, const char *second, rlx_value y)
{
    return look_at_floats(a, g, loss, first, x) && look_at_floats(b, g, loss, second, y) &&
           same_shapes(a, b);
}

/* The mean of all there is. */
static rlx_value mean_of(const struct part *p, rlx_value x)
{
    rlx_list axes = {.count = p->shape.count};

    for (int32_t i = 0; i < axes.count; i++)
        axes.at[i] = i;
    return axes.count ? rlx_reduce_mean(p->g, x, axes, false) : x;
}

static rlx_value scaled(rlx_graph *g, rlx_value x, double by)
{
    return rlx_mul(g, x, rlx_scalar(g, x, by));
}

/* ln of the sum of e^x along the last axis, which stays with size 1. The largest is taken out, so
 * that nothing overflows; that moves no gradient. */
static rlx_value log_sum_exp(rlx_graph *g, rlx_value x)
{
    rlx_value top = rlx_stop_gradient(g, rlx_reduce_max(g, x, RLX_LIST(-1), true));
    rlx_value sum = rlx_reduce_sum(g, rlx_exp(g, rlx_sub(g, x, top)), RLX_LIST(-1), true);

    return rlx_add(g, rlx_log(g, sum), top);
}

/* ---- cross entropy ---- */

static bool check_labels(const struct part *x, const struct part *labels)
{
    if (!dtype_is(labels->dtype, CLASS_INT))
        return FAIL(x, DTYPE, "labels must be integers, not %s", rlx_dtype_name(labels->dtype));
    if (x->shape.count < 1)
        return FAIL(x, SHAPE, "logits must have at least one axis");
    if (x->shape.at[x->shape.count - 1] < 0)
        return FAIL(x, SHAPE, "how many classes there are must be known");
    if (labels->shape.count != x->shape.count - 1)
        return FAIL(x, SHAPE, "logits have rank %d, so that labels must have rank %d, not %d",
                    x->shape.count, x->shape.count - 1, labels->shape.count);
    for (int32_t i = 0; i < labels->shape.count; i++)
        if (labels->shape.at[i] != x->shape.at[i])
            return FAIL(x, SHAPE, "logits and labels differ in the size of axis %d", i);
    return true;
}

/* Labels in a type that has -1, and -1 for the one that is ignored. */
static rlx_value plain_labels(const struct part *labels, const rlx_cross_entropy_desc *desc)
{
    rlx_graph *g = labels->g;
    bool wide = labels->dtype == RLX_DTYPE_i64 || labels->dtype == RLX_DTYPE_u64 ||
                labels->dtype == RLX_DTYPE_u32;
    rlx_value v = rlx_cast(g, labels->v, wide ? RLX_DTYPE_i64 : RLX_DTYPE_i32);

    v = rlx_reshape(g, v, RLX_LIST(RLX_DIM_INFER));
    if (!desc->ignore || (!wide && desc->ignored != (int32_t)desc->ignored))
        return v; /* no label of that type is it */
    return rlx_where(g, rlx_eq(g, v, rlx_scalar(g, v, (double)desc->ignored)), rlx_scalar(g, v, -1),
                     v);
}

rlx_value rlx_cross_entropy(rlx_graph *g, rlx_value logits, rlx_value labels,
                            const rlx_cross_entropy_desc *desc)
{
    rlx_cross_entropy_desc own = {RLX_SIZED(rlx_cross_entropy_desc)};
    struct part x, y;

    if (!build_desc(g, &own, sizeof own, desc, "rlx_cross_entropy_desc") ||
        !look_at_floats(&x, g, "cross_entropy", "logits", logits) ||
        !look_at(&y, g, "cross_entropy", "labels", labels) || !check_labels(&x, &y))
        return RLX_NO_VALUE;
    if (!(own.smoothing >= 0 && own.smoothing <= 1)) {
        FAIL(&x, ATTRIBUTE, "smoothing is %g; it must be from 0 to 1", (double)own.smoothing);
        return RLX_NO_VALUE;
    }
    int64_t classes = x.shape.at[x.shape.count - 1];
    rlx_value rows = rlx_reshape(g, x.v, RLX_LIST(RLX_DIM_INFER, classes));
    rlx_value label = plain_labels(&y, &own);
    rlx_value is_class =
        rlx_mul(g, rlx_cast(g, rlx_ge(g, label, rlx_scalar(g, label, 0)), x.dtype),
                rlx_cast(g, rlx_lt(g, label, rlx_scalar(g, label, (double)classes)), x.dtype));
    rlx_value count = rlx_reduce_sum(g, is_class, RLX_LIST(0), false);
    rlx_value each = rlx_softmax_cross_entropy_with_logits(g, rows, label);
    if (own.smoothing > 0) {
        rlx_value mean = rlx_reduce_mean(g, rows, RLX_LIST(-1), true);
        rlx_value even = rlx_sub(g, log_sum_exp(g, rows), mean);
        even = rlx_reshape(g, even, RLX_LIST(RLX_DIM_INFER));
        even = rlx_where(g, rlx_cast(g, is_class, RLX_DTYPE_bool), even, rlx_scalar(g, even, 0));
        each = rlx_add(g, scaled(g, each, 1 - (double)own.smoothing),
                       scaled(g, even, (double)own.smoothing));
    }
    return rlx_div(g, rlx_reduce_sum(g, each, RLX_LIST(0), false),
                   rlx_max(g, count, rlx_scalar(g, count, 1)));
}

/* ---- element by element ---- */

rlx_value rlx_mse(rlx_graph *g, rlx_value x, rlx_value target)
{
    struct part a, b;

    if (!look_at_both(&a, &b, g, "mse", "x", x, "target", target))
        return RLX_NO_VALUE;
    rlx_value off = rlx_sub(g, a.v, b.v);
    return mean_of(&a, rlx_mul(g, off, off));
}

/* -t ln p - (1 - t) ln(1 - p) is softplus(x) - t x. */
rlx_value rlx_bce(rlx_graph *g, rlx_value logits, rlx_value target)
{
    struct part x, t;

    if (!look_at_both(&x, &t, g, "bce", "logits", logits, "target", target))
        return RLX_NO_VALUE;
    return mean_of(&x, rlx_sub(g, rlx_softplus(g, x.v), rlx_mul(g, t.v, x.v)));
}

rlx_value rlx_kl(rlx_graph *g, rlx_value logits, rlx_value target)
{
    struct part q, p;

    if (!look_at_both(&q, &p, g, "kl", "logits", logits, "target", target))
        return RLX_NO_VALUE;
    if (q.shape.count < 1) {
        FAIL(&q, SHAPE, "logits must have at least one axis");
        return RLX_NO_VALUE;
    }
    rlx_value ln_q = rlx_sub(g, q.v, log_sum_exp(g, q.v));
    rlx_value ln_p = rlx_sub(g, p.v, log_sum_exp(g, p.v));
    rlx_value far = rlx_mul(g, rlx_exp(g, ln_p), rlx_sub(g, ln_p, ln_q));
    q.shape.count--;
    return mean_of(&q, rlx_reduce_sum(g, far, RLX_LIST(-1), false));
}

/* ---- pairs ---- */

static rlx_value unit_rows(rlx_graph *g, rlx_value x)
{
    rlx_value square = rlx_reduce_sum(g, rlx_mul(g, x, x), RLX_LIST(-1), true);

    return rlx_div(g, x, rlx_sqrt(g, rlx_max(g, square, rlx_scalar(g, square, 1e-12))));
}

/* The mean over rows of what each is away from its own: s [n, n], own [n]. */
static rlx_value far_from_own(rlx_graph *g, rlx_value s, rlx_value own)
{
    rlx_value all = rlx_reshape(g, log_sum_exp(g, s), RLX_LIST(RLX_DIM_INFER));

    return rlx_reduce_mean(g, rlx_sub(g, all, own), RLX_LIST(0), false);
}

rlx_value rlx_contrastive(rlx_graph *g, rlx_value a, rlx_value b, const rlx_contrastive_desc *desc)
{
    rlx_contrastive_desc own = {RLX_SIZED(rlx_contrastive_desc)};
    struct part x, y;

    if (!build_desc(g, &own, sizeof own, desc, "rlx_contrastive_desc") ||
        !look_at_both(&x, &y, g, "contrastive", "a", a, "b", b))
        return RLX_NO_VALUE;
    if (x.shape.count != 2) {
        FAIL(&x, SHAPE, "a and b must have rank 2, not %d", x.shape.count);
        return RLX_NO_VALUE;
    }
    if (own.temperature < 0 || !isfinite(own.temperature)) {
        FAIL(&x, ATTRIBUTE, "temperature is %g; it must be positive", (double)own.temperature);
        return RLX_NO_VALUE;
    }
    double sharper = 1 / (own.temperature > 0 ? (double)own.temperature : 0.07);
    rlx_value u = scaled(g, unit_rows(g, x.v), sharper), v = unit_rows(g, y.v);
    rlx_value same = rlx_reduce_sum(g, rlx_mul(g, u, v), RLX_LIST(-1), false);
    rlx_value forth = far_from_own(g, rlx_matmul(g, u, v, false, true), same);
    if (own.one_way)
        return forth;
    rlx_value back = far_from_own(g, rlx_matmul(g, v, u, false, true), same);
    return scaled(g, rlx_add(g, forth, back), 0.5);
}
