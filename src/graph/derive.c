/* derive.c: derivatives of values of a graph that is being built: rlx/autodiff.h. The walk is
 * autodiff's; here are the arguments, the seeds, and zeros where nothing flows. */
#include "rlx/autodiff.h"

#include "autodiff/autodiff.h"
#include "base/str.h"
#include "graph/builder.h"
#include "ir/formula.h"

/* ---- arguments ---- */

static rlx_status check_values(const rlx_graph *g, const char *what, const rlx_value *v,
                               size_t count, struct diag *d)
{
    if (count && !v)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", what);
    for (size_t i = 0; i < count; i++)
        if (v[i] < 0 || (size_t)v[i] >= g->g->node.len)
            return diag_fail(d, RLX_ERROR_GRAPH, "%s[%zu] is not a node of this graph (%d)", what,
                             i, (int)v[i]);
    return RLX_OK;
}

static rlx_status check_graph(const rlx_graph *g, struct diag *d)
{
    if (!g)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "g is NULL");
    if (g->root->first.status != RLX_OK)
        return diag_again(d, &g->root->first, g->root->first.status);
    return RLX_OK;
}

static rlx_status check_floats(const rlx_graph *g, const char *what, const rlx_value *v,
                               size_t count, struct diag *d)
{
    TRY(check_values(g, what, v, count, d));
    for (size_t i = 0; i < count; i++) {
        const struct ir_node *n = ir_node(g->g, v[i]);
        rlx_str name = ir_leaf_name(n);
        if (!dtype_is(n->type.dtype, CLASS_F | CLASS_C))
            return diag_fail(d, RLX_ERROR_DTYPE,
                             "%s[%zu], node %d%s%.*s, is %s: only floats have gradients", what, i,
                             (int)v[i], name.len ? " " : "", STR_ARG(name),
                             rlx_dtype_name(n->type.dtype));
    }
    return RLX_OK;
}

static rlx_status check_scalar(const rlx_graph *g, rlx_value of, struct diag *d)
{
    int64_t count = 0;

    TRY(check_values(g, "of", &of, 1, d));
    const struct ir_type *t = ir_type_of(g->g, of);
    if (!type_is_static(t))
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "a gradient is of a single number, and node %d has a symbolic size: sum "
                         "it first, or give rlx_vjp a weight for each element",
                         (int)of);
    if (!type_count(t, &count) || count != 1)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "a gradient is of a single number, and node %d has %lld elements: sum it "
                         "first, or give rlx_vjp a weight for each element",
                         (int)of, (long long)count);
    if (!dtype_is(t->dtype, CLASS_F))
        return diag_fail(d, RLX_ERROR_DTYPE, "node %d is %s: only floats have gradients", (int)of,
                         rlx_dtype_name(t->dtype));
    return RLX_OK;
}

static rlx_status check_weights(const rlx_graph *g, const rlx_value *of, const rlx_value *weight,
                                size_t count, struct diag *d)
{
    TRY(check_floats(g, "of", of, count, d));
    TRY(check_floats(g, "weight", weight, count, d));
    for (size_t i = 0; i < count; i++)
        if (!type_same(ir_type_of(g->g, of[i]), ir_type_of(g->g, weight[i])))
            return diag_fail(d, RLX_ERROR_SHAPE,
                             "weight[%zu], node %d, must have the type of of[%zu], node %d", i,
                             (int)weight[i], i, (int)of[i]);
    return RLX_OK;
}

static rlx_status check_tangents(const rlx_graph *g, const char *what, const rlx_value *wrt,
                                 const rlx_value *tangent, size_t count, struct diag *d)
{
    TRY(check_floats(g, "wrt", wrt, count, d));
    TRY(check_values(g, what, tangent, count, d));
    for (size_t i = 0; i < count; i++)
        if (!type_same(ir_type_of(g->g, wrt[i]), ir_type_of(g->g, tangent[i])))
            return diag_fail(d, RLX_ERROR_SHAPE,
                             "%s[%zu], node %d, must have the type of wrt[%zu], node %d", what, i,
                             (int)tangent[i], i, (int)wrt[i]);
    return RLX_OK;
}

static rlx_status check_room(const rlx_value *out, size_t count, struct diag *d)
{
    return count && !out ? diag_fail(d, RLX_ERROR_ARGUMENT, "out is NULL") : RLX_OK;
}

/* batched[i] is wrt[i] with the axis of the examples in front, which is *size long. */
static rlx_status check_batched(const rlx_graph *g, const rlx_value *wrt, const rlx_value *batched,
                                size_t count, ir_dim *size, struct diag *d)
{
    if (count == 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "wrt is empty, so the number of examples is unknown");
    TRY(check_values(g, "wrt", wrt, count, d));
    TRY(check_values(g, "batched", batched, count, d));
    for (size_t i = 0; i < count; i++) {
        struct ir_type all = *ir_type_of(g->g, batched[i]), one = *ir_type_of(g->g, wrt[i]);
        bool same = all.rank == one.rank + 1 && all.dtype == one.dtype;
        for (int32_t k = 0; same && k < one.rank; k++)
            same = all.dim[k + 1] == one.dim[k];
        if (!same)
            return diag_fail(d, RLX_ERROR_SHAPE,
                             "batched[%zu], node %d, must have the type of wrt[%zu], node %d, with "
                             "one axis more in front",
                             i, (int)batched[i], i, (int)wrt[i]);
        if (i > 0 && all.dim[0] != *size)
            return diag_fail(d, RLX_ERROR_SHAPE,
                             "batched[%zu], node %d, has a different number of examples than "
                             "batched[0], node %d",
                             i, (int)batched[i], (int)batched[0]);
        *size = all.dim[0];
    }
    return RLX_OK;
}

/* ---- what is added ---- */

/* Zeros for what does not depend on anything. */
static rlx_status fill_zeros(rlx_graph *g, const rlx_value *like, size_t count, rlx_value *out,
                             struct diag *d)
{
    struct formula f = {.g = g->g, .diag = d};

    for (size_t i = 0; i < count && f.status == RLX_OK; i++)
        if (out[i] == RLX_NO_VALUE) {
            const struct ir_type t = *ir_type_of(g->g, like[i]);
            out[i] = formula_fill(&f, &t, 0);
        }
    return f.status;
}

static rlx_status slope(rlx_graph *g, rlx_value of, const rlx_value *wrt, size_t count,
                        rlx_value *out, struct diag *d)
{
    struct formula f = {.g = g->g, .diag = d};
    const struct ir_type t = *ir_type_of(g->g, of);
    ir_value one = formula_fill(&f, &t, 1);

    TRY(f.status);
    return grad_walk(g->g, 0, of, one, wrt, count, out, d);
}

/* How the gradient moves: only what there is of it. */
static rlx_status slope_along(rlx_graph *g, rlx_value of, const rlx_value *wrt,
                              const rlx_value *direction, size_t count, rlx_value *out,
                              struct diag *d)
{
    rlx_value *first = arena_array(&g->mod->arena, rlx_value, 2 * count + 1);
    rlx_value *moved = first + count;
    size_t some = 0;

    if (!first)
        return diag_no_memory(d, 2 * count * sizeof *first);
    TRY(slope(g, of, wrt, count, out, d));
    for (size_t i = 0; i < count; i++)
        if (out[i] != RLX_NO_VALUE)
            first[some++] = out[i];
    TRY(grad_push(g->g, first, some, wrt, direction, count, moved, d));
    some = 0;
    for (size_t i = 0; i < count; i++)
        if (out[i] != RLX_NO_VALUE)
            out[i] = moved[some++];
    return RLX_OK;
}

/* Nothing stays of what failed. */
static rlx_status settle(rlx_graph *g, const struct ir_extent *before, rlx_status s)
{
    if (s != RLX_OK)
        ir_shrink(g->g, before);
    return s;
}

/* ---- gradients ---- */

static rlx_status gradient(rlx_graph *g, rlx_value of, const rlx_value *wrt, size_t count,
                           rlx_value *out, struct diag *d)
{
    TRY(check_graph(g, d));
    TRY(check_room(out, count, d));
    TRY(check_scalar(g, of, d));
    TRY(check_floats(g, "wrt", wrt, count, d));
    const struct ir_extent before = ir_extent_of(g->g);
    rlx_status s = slope(g, of, wrt, count, out, d);
    if (s == RLX_OK)
        s = fill_zeros(g, wrt, count, out, d);
    return settle(g, &before, s);
}

rlx_status rlx_gradient(rlx_graph *g, rlx_value of, const rlx_value *wrt, size_t count,
                        rlx_value *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "gradient");
    gradient(g, of, wrt, count, out, &d);
    return diag_report(&d, err);
}

static rlx_status vjp(rlx_graph *g, const rlx_value *of, const rlx_value *weight, size_t of_count,
                      const rlx_value *wrt, size_t count, rlx_value *out, struct diag *d)
{
    TRY(check_graph(g, d));
    TRY(check_room(out, count, d));
    if (of_count == 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "of is empty");
    TRY(check_weights(g, of, weight, of_count, d));
    TRY(check_floats(g, "wrt", wrt, count, d));
    const struct ir_extent before = ir_extent_of(g->g);
    rlx_status s = grad_walk_all(g->g, 0, of, weight, of_count, wrt, count, out, d);
    if (s == RLX_OK)
        s = fill_zeros(g, wrt, count, out, d);
    return settle(g, &before, s);
}

rlx_status rlx_vjp(rlx_graph *g, const rlx_value *of, const rlx_value *weight, size_t of_count,
                   const rlx_value *wrt, size_t count, rlx_value *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "gradient");
    vjp(g, of, weight, of_count, wrt, count, out, &d);
    return diag_report(&d, err);
}

/* ---- along a direction ---- */

static rlx_status jvp(rlx_graph *g, const rlx_value *of, size_t of_count, const rlx_value *wrt,
                      const rlx_value *tangent, size_t count, rlx_value *out, struct diag *d)
{
    TRY(check_graph(g, d));
    TRY(check_room(out, of_count, d));
    TRY(check_floats(g, "of", of, of_count, d));
    TRY(check_tangents(g, "tangent", wrt, tangent, count, d));
    const struct ir_extent before = ir_extent_of(g->g);
    rlx_status s = grad_push(g->g, of, of_count, wrt, tangent, count, out, d);
    if (s == RLX_OK)
        s = fill_zeros(g, of, of_count, out, d);
    return settle(g, &before, s);
}

rlx_status rlx_jvp(rlx_graph *g, const rlx_value *of, size_t of_count, const rlx_value *wrt,
                   const rlx_value *tangent, size_t count, rlx_value *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "jvp");
    jvp(g, of, of_count, wrt, tangent, count, out, &d);
    return diag_report(&d, err);
}

static rlx_status hvp(rlx_graph *g, rlx_value of, const rlx_value *wrt, const rlx_value *direction,
                      size_t count, rlx_value *out, struct diag *d)
{
    TRY(check_graph(g, d));
    TRY(check_room(out, count, d));
    TRY(check_scalar(g, of, d));
    TRY(check_tangents(g, "direction", wrt, direction, count, d));
    const struct ir_extent before = ir_extent_of(g->g);
    rlx_status s = slope_along(g, of, wrt, direction, count, out, d);
    if (s == RLX_OK)
        s = fill_zeros(g, wrt, count, out, d);
    return settle(g, &before, s);
}

rlx_status rlx_hvp(rlx_graph *g, rlx_value of, const rlx_value *wrt, const rlx_value *direction,
                   size_t count, rlx_value *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "hvp");
    hvp(g, of, wrt, direction, count, out, &d);
    return diag_report(&d, err);
}

/* ---- for many examples ---- */

static rlx_status vmap(rlx_graph *g, const rlx_value *of, size_t of_count, const rlx_value *wrt,
                       const rlx_value *batched, size_t count, rlx_value *out, struct diag *d)
{
    ir_dim size = 0;

    TRY(check_graph(g, d));
    TRY(check_room(out, of_count, d));
    TRY(check_values(g, "of", of, of_count, d));
    TRY(check_batched(g, wrt, batched, count, &size, d));
    const struct ir_extent before = ir_extent_of(g->g);
    return settle(g, &before, grad_batch(g->g, of, of_count, wrt, batched, count, size, out, d));
}

rlx_status rlx_vmap(rlx_graph *g, const rlx_value *of, size_t of_count, const rlx_value *wrt,
                    const rlx_value *batched, size_t count, rlx_value *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "vmap");
    vmap(g, of, of_count, wrt, batched, count, out, &d);
    return diag_report(&d, err);
}

/* ---- asking ---- */

rlx_status rlx_gradient_reaches(rlx_graph *g, rlx_value of, const rlx_value *wrt, size_t count,
                                bool *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "gradient");
    if (check_graph(g, &d) != RLX_OK)
        return diag_report(&d, err);
    if (count && !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "out is NULL");
    else if (check_values(g, "of", &of, 1, &d) == RLX_OK &&
             check_floats(g, "wrt", wrt, count, &d) == RLX_OK)
        for (size_t i = 0; i < count; i++)
            if (grad_flows(g->g, &of, 1, &wrt[i], 1, &out[i], &d) != RLX_OK)
                break;
    return diag_report(&d, err);
}
