/* moe_gate.c: the choice of experts, built from ops: the first part of rlx/moe.h.
 *
 *     logits -> p -> p + bias -> best groups -> ids [.., k]
 *                p, ids -> weights [.., k]
 *
 * Experts outside of the best groups are taken for the worst there can be. */
#include <inttypes.h>
#include <math.h>

#include "base/desc.h"
#include "graph/moe_part.h"
#include "rlx/moe.h"

/* What a sum of weights is divided by at least: the smallest normal f16. */
#define LEAST_SUM 0x1p-14

struct choice {
    rlx_graph *g;
    const char *name;       /* of the function, for messages */
    struct moe_part logits; /* in f32 or f64 */
    rlx_value bias;         /* of the same type, or RLX_NO_VALUE */
    rlx_gate_desc desc;
};

#define FAIL(c, ...) build_fail_in((c)->g, RLX_ERROR_ATTRIBUTE, (c)->name, __VA_ARGS__)

/* ---- checks ---- */

static bool has_groups(const rlx_gate_desc *d)
{
    return d->group_count > 1;
}

static bool check_groups(const struct choice *c)
{
    const rlx_gate_desc *d = &c->desc;
    rlx_dim experts = moe_last(&c->logits);

    if (d->group_count < 0)
        return FAIL(c, "group_count is %" PRId64, d->group_count);
    if (!has_groups(d))
        return true;
    if (experts < 0)
        return FAIL(c, "how many experts there are must be known, to be put into groups");
    if (experts % d->group_count != 0)
        return FAIL(c, "group_count %" PRId64 " does not divide the %" PRId64 " experts",
                    d->group_count, experts);
    if (d->group_used < 1 || d->group_used > d->group_count)
        return FAIL(c, "group_used is %" PRId64 "; it must be from 1 to group_count, %" PRId64,
                    d->group_used, d->group_count);
    if (d->k > experts / d->group_count * d->group_used)
        return FAIL(c, "k is %" PRId64 ", but %" PRId64 " groups have only %" PRId64 " experts",
                    d->k, d->group_used, experts / d->group_count * d->group_used);
    return true;
}

static bool check(const struct choice *c)
{
    rlx_dim experts = moe_last(&c->logits);

    if (c->desc.k < 1)
        return FAIL(c, "k is %" PRId64 "; it must be at least 1", c->desc.k);
    if (experts >= 0 && c->desc.k > experts)
        return FAIL(c, "k is %" PRId64 ", of %" PRId64 " experts", c->desc.k, experts);
    if (!isfinite(c->desc.scale))
        return FAIL(c, "scale is %g; it must be finite", (double)c->desc.scale);
    if ((unsigned)c->desc.function > RLX_GATE_SQRT_SOFTPLUS)
        return FAIL(c, "there is no function number %d", (int)c->desc.function);
    return check_groups(c);
}

static bool look_at_bias(struct choice *c, rlx_value bias)
{
    struct moe_part b;

    c->bias = RLX_NO_VALUE;
    if (bias == RLX_NO_VALUE)
        return true;
    if (!moe_look_at_floats(&b, c->g, c->name, "bias", bias))
        return false;
    if (b.shape.count != 1 || b.shape.at[0] != moe_last(&c->logits))
        return build_fail_in(c->g, RLX_ERROR_SHAPE, c->name,
                             "bias must be one number for each of the experts");
    c->bias = rlx_cast(c->g, bias, c->logits.dtype);
    return c->bias != RLX_NO_VALUE;
}

/* ---- nodes ---- */

static rlx_value p_of(const struct choice *c)
{
    rlx_value l = c->logits.v;

    switch (c->desc.function) {
    case RLX_GATE_SIGMOID: return rlx_sigmoid(c->g, l);
    case RLX_GATE_SQRT_SOFTPLUS: return rlx_sqrt(c->g, rlx_softplus(c->g, l));
    case RLX_GATE_SOFTMAX_OF_CHOSEN: return l;
    default: return rlx_softmax(c->g, l, -1);
    }
}

static rlx_value largest(const struct choice *c, rlx_value x, int64_t k)
{
    return rlx_topk(c->g, x, k, -1, RLX_TOPK_RESULT_indices, RLX_DTYPE_i32);
}

static rlx_value values_of_largest(const struct choice *c, rlx_value x, int64_t k)
{
    return rlx_topk(c->g, x, k, -1, RLX_TOPK_RESULT_values, RLX_DTYPE_i32);
}

/* As large as `like`, whatever the sizes of its axes will be. */
static rlx_value filled(const struct choice *c, rlx_value type, double v, rlx_value like)
{
    rlx_list shape = RLX_EMPTY;

    if (rlx_value_type(c->g, like, NULL, &shape, NULL) != RLX_OK)
        return RLX_NO_VALUE;
    return rlx_expand(c->g, rlx_scalar(c->g, type, v), shape);
}

/* by [.., experts], with -inf for experts that are not in the best groups:
 *
 *     [r, groups, each] -> two largest -> [r, groups] -> best -> [r, used] -> 0 and 1 [r, groups]
 */
static rlx_value in_best_groups(const struct choice *c, rlx_value by)
{
    rlx_graph *g = c->g;
    int64_t groups = c->desc.group_count, each = moe_last(&c->logits) / groups;
    rlx_value all = rlx_reshape(g, by, RLX_LIST(RLX_DIM_INFER, groups, each));
    rlx_value two = values_of_largest(c, all, each < 2 ? each : 2);
    rlx_value score = rlx_reduce_sum(g, two, RLX_LIST(-1), false);
    rlx_value best = largest(c, score, c->desc.group_used);
    rlx_value none = filled(c, score, 0, score), ones = filled(c, score, 1, best);
    rlx_value is_best = rlx_scatter_elements(g, none, best, ones, -1, RLX_SCATTER_REDUCTION_none);
    rlx_value per_group = rlx_reshape(g, is_best, RLX_LIST(RLX_DIM_INFER, groups, 1));
    rlx_value keep = rlx_gt(g, per_group, rlx_scalar(g, per_group, 0));

    return rlx_reshape(g, rlx_where(g, keep, all, rlx_scalar(g, all, -(double)INFINITY)),
                       c->logits.shape);
}

static rlx_value weights_of(const struct choice *c, rlx_value w)
{
    rlx_graph *g = c->g;

    if (c->desc.function == RLX_GATE_SOFTMAX_OF_CHOSEN)
        w = rlx_softmax(g, w, -1);
    if (c->desc.normalise) {
        rlx_value sum = rlx_reduce_sum(g, w, RLX_LIST(-1), true);
        w = rlx_div(g, w, rlx_max(g, sum, rlx_scalar(g, sum, LEAST_SUM)));
    }
    if (c->desc.scale != 1)
        w = rlx_mul(g, w, rlx_scalar(g, w, (double)c->desc.scale));
    return w;
}

/* c: the desc is set, its scale as it is. */
static rlx_gate build(struct choice *c, rlx_value logits, rlx_value bias)
{
    const rlx_gate none = {RLX_NO_VALUE, RLX_NO_VALUE};
    rlx_gate gate;

    if (!moe_look_at_floats(&c->logits, c->g, c->name, "logits", logits) || !check(c))
        return none;
    c->logits.dtype = c->logits.dtype == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    c->logits.v = rlx_cast(c->g, logits, c->logits.dtype);
    if (!look_at_bias(c, bias))
        return none;
    rlx_value p = p_of(c), by = c->desc.choose_by_logits ? c->logits.v : p;
    if (c->bias != RLX_NO_VALUE)
        by = rlx_add(c->g, by, c->bias);
    if (has_groups(&c->desc) && c->desc.group_used < c->desc.group_count)
        by = in_best_groups(c, by);
    gate.ids = largest(c, by, c->desc.k);
    rlx_value chosen =
        by == p ? values_of_largest(c, p, c->desc.k) : rlx_gather_elements(c->g, p, gate.ids, -1);
    gate.weights = weights_of(c, chosen);
    return gate.ids == RLX_NO_VALUE || gate.weights == RLX_NO_VALUE ? none : gate;
}

rlx_gate rlx_topk_gate(rlx_graph *g, rlx_value logits, int64_t k, bool normalise, float scale)
{
    struct choice c = {
        .g = g,
        .name = "topk_gate",
        .desc = {RLX_SIZED(rlx_gate_desc), .k = k, .normalise = normalise, .scale = scale}};

    return build(&c, logits, RLX_NO_VALUE);
}

rlx_gate rlx_gate_experts(rlx_graph *g, rlx_value logits, rlx_value bias, const rlx_gate_desc *desc)
{
    struct choice c = {.g = g, .name = "gate_experts", .desc = {RLX_SIZED(rlx_gate_desc)}};

    if (!build_desc(g, &c.desc, sizeof c.desc, desc, "rlx_gate_desc"))
        return (rlx_gate){RLX_NO_VALUE, RLX_NO_VALUE};
    if (c.desc.scale == 0)
        c.desc.scale = 1;
    return build(&c, logits, bias);
}
