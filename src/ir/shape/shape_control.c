/* shape_control.c: shape rules of control flow and of functions (ops-core.md 17, 18.2).
 *
 * A sub-graph's inputs, in the order of their ids, are what the node gives it: count and types must
 * match exactly. Symbols are the module's, so equal types are equal handles. */
#include <inttypes.h>

#include "ir/shape/shape_need.h"

/* How deep sub-graphs may name sub-graphs. */
#define MAX_NESTING 64

/* ---- sub-graphs ---------------------------------------------------------------------------- */

/* Depth of what a graph names: 0 not looked at yet, n+1 it nests n deep. */
struct nesting {
    struct shape_call *c;
    uint8_t *depth;
};

static rlx_status measure_nesting(struct nesting *n, int32_t id, int32_t level);

/* The graphs that one node names; *deepest is raised to the deepest of them. */
static rlx_status measure_node(struct nesting *n, const struct ir_node *node, int32_t level,
                               uint8_t *deepest)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(node->op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        if (a[i].kind != ATTR_GRAPH)
            continue;
        int32_t id = *(const int32_t *)((const char *)&node->attr + a[i].offset);
        if (id < 0 || (size_t)id >= n->c->mod->graph.len)
            continue; /* absent; a bad one is refused where it stands */
        TRY(measure_nesting(n, id, level + 1));
        if (n->depth[id] > *deepest)
            *deepest = n->depth[id];
    }
    return RLX_OK;
}

static rlx_status measure_nesting(struct nesting *n, int32_t id, int32_t level)
{
    struct shape_call *c = n->c;
    const struct ir_graph *g = c->mod->graph.at[id];
    uint8_t deepest = 0;

    if (id == c->graph->id)
        return SHAPE_FAIL(c, GRAPH, "%s: the sub-graph names, in the end, the graph it is used in",
                          c->name);
    if (level > MAX_NESTING)
        return SHAPE_FAIL(c, LIMIT, "%s: sub-graphs nest deeper than %d, or in a circle", c->name,
                          MAX_NESTING);
    if (n->depth[id]) {
        if (level + n->depth[id] - 1 > MAX_NESTING)
            return SHAPE_FAIL(c, LIMIT, "%s: sub-graphs nest deeper than %d", c->name, MAX_NESTING);
        return RLX_OK;
    }
    IR_EACH(node, g) {
        if (op_info(node->op)->family == FAMILY_leaf && node->op != RLX_OP_input)
            return SHAPE_FAIL(c, GRAPH, "%s: the sub-graph \"%.*s\" holds a %s", c->name,
                              STR_ARG(g->name), op_info(node->op)->name);
        if (op_info(node->op)->category == CATEGORY_CONTROL ||
            op_info(node->op)->category == CATEGORY_GRADIENT)
            TRY(measure_node(n, node, level, &deepest));
    }
    n->depth[id] = (uint8_t)(deepest + 1);
    return RLX_OK;
}

/* Sub-graph `id`, known to exist: closed, with outputs, and not coming back to this graph. */
static rlx_status sub_graph(struct shape_call *c, const char *what, int32_t id,
                            const struct ir_graph **out)
{
    size_t count = c->mod->graph.len;
    struct nesting n = {c, NULL};

    n.depth = mem_alloc(c->mod->mem, count);
    if (!n.depth)
        return diag_no_memory(c->diag, count);
    rlx_status s = measure_nesting(&n, id, 1);
    mem_free(c->mod->mem, n.depth, count);
    TRY(s);
    *out = c->mod->graph.at[id];
    if ((*out)->output.len == 0)
        return SHAPE_FAIL(c, GRAPH, "%s: %s has no output", c->name, what);
    return RLX_OK;
}

static rlx_status need_type(struct shape_call *c, const char *graph, const char *role, size_t i,
                            const struct ir_type *have, const struct ir_type *want)
{
    if (type_same(have, want))
        return RLX_OK;
    if (have->dtype != want->dtype)
        return SHAPE_FAIL(c, DTYPE, "%s: %s %zu of %s is %s, must be %s", c->name, role, i, graph,
                          type_text(c, have), type_text(c, want));
    return SHAPE_FAIL(c, SHAPE, "%s: %s %zu of %s is %s, must be %s", c->name, role, i, graph,
                      type_text(c, have), type_text(c, want));
}

/* Inputs of a sub-graph, one after another; ends with RLX_NO_VALUE. */
static ir_value next_input(const struct ir_graph *g, ir_value after)
{
    for (size_t i = (size_t)after + 1; i < g->node.len; i++)
        if (g->node.at[i].op == RLX_OP_input)
            return (ir_value)i;
    return RLX_NO_VALUE;
}

static rlx_status need_count(struct shape_call *c, const char *graph, const char *role, size_t have,
                             size_t want)
{
    if (have == want)
        return RLX_OK;
    return SHAPE_FAIL(c, GRAPH, "%s: %s has %zu %s, must have %zu", c->name, graph, have, role,
                      want);
}

/* The inputs of g are these types, in order. */
static rlx_status need_inputs(struct shape_call *c, const struct ir_graph *g, const char *what,
                              const struct ir_type *const *type, size_t count)
{
    ir_value v = RLX_NO_VALUE;

    TRY(need_count(c, what, "inputs", ir_inputs(g, NULL, 0), count));
    for (size_t i = 0; i < count; i++) {
        v = next_input(g, v);
        TRY(need_type(c, what, "input", i, ir_type_of(g, v), type[i]));
    }
    return RLX_OK;
}

static const struct ir_type *output_type(const struct ir_graph *g, size_t i)
{
    return ir_type_of(g, g->output.at[i]);
}

static rlx_status need_result(struct shape_call *c, int64_t result, size_t count)
{
    if (result >= 0 && (uint64_t)result < count)
        return RLX_OK;
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: result is %" PRId64 ", there are %zu outputs", c->name,
                      result, count);
}

/* ---- if, while ----------------------------------------------------------------------------- */

rlx_status shape_if_(struct shape_call *c)
{
    const struct attr_if_ *attr = &c->attr->if_;
    const struct ir_graph *yes, *no;
    const struct ir_type *pred = c->in[0];

    TRY(shape_need_class(c, 0, CLASS_B | CLASS_REAL));
    for (int32_t i = 0; i < pred->rank; i++)
        if (!shape_agree(c, pred->dim[i], 1, "sizes of the predicate and 1"))
            return SHAPE_FAIL(c, SHAPE, "%s: predicate must have one element, not %s", c->name,
                              type_text(c, pred));
    TRY(sub_graph(c, "then_graph", attr->then_graph, &yes));
    TRY(sub_graph(c, "else_graph", attr->else_graph, &no));
    TRY(need_inputs(c, yes, "then_graph", c->in + 1, (size_t)c->in_count - 1));
    TRY(need_inputs(c, no, "else_graph", c->in + 1, (size_t)c->in_count - 1));
    TRY(need_count(c, "else_graph", "outputs", no->output.len, yes->output.len));
    for (size_t i = 0; i < yes->output.len; i++)
        TRY(need_type(c, "else_graph", "output", i, output_type(no, i), output_type(yes, i)));
    TRY(need_result(c, attr->result, yes->output.len));
    *c->out = *output_type(yes, (size_t)attr->result);
    return RLX_OK;
}

rlx_status shape_while_(struct shape_call *c)
{
    const struct attr_while_ *attr = &c->attr->while_;
    const struct ir_graph *cond, *body;
    size_t count = (size_t)c->in_count;

    TRY(sub_graph(c, "cond_graph", attr->cond_graph, &cond));
    TRY(sub_graph(c, "body_graph", attr->body_graph, &body));
    if (attr->max_iterations != RLX_ABSENT)
        TRY(shape_need_range(c, "max_iterations", attr->max_iterations, 0, INT64_MAX));
    TRY(need_inputs(c, cond, "cond_graph", c->in, count));
    TRY(need_count(c, "cond_graph", "outputs", cond->output.len, 1));
    if (!dtype_is(output_type(cond, 0)->dtype, CLASS_B | CLASS_REAL))
        return SHAPE_FAIL(c, DTYPE, "%s: cond_graph yields %s, which is neither true nor false",
                          c->name, type_text(c, output_type(cond, 0)));
    TRY(need_inputs(c, body, "body_graph", c->in, count));
    TRY(need_count(c, "body_graph", "outputs", body->output.len, count));
    for (size_t i = 0; i < count; i++)
        TRY(need_type(c, "body_graph", "output", i, output_type(body, i), c->in[i]));
    TRY(need_result(c, attr->result, count));
    return shape_result_like(c, (int32_t)attr->result);
}

/* ---- scan ---------------------------------------------------------------------------------- */

/* x without its first axis, which is `length`. */
static rlx_status slice_of(struct shape_call *c, int32_t operand, ir_dim length,
                           struct ir_type *out)
{
    const struct ir_type *x = c->in[operand];

    TRY(shape_need_rank(c, operand, 1, RLX_MAX_RANK));
    TRY(shape_need_equal(c, x->dim[0], length, "first axes of xs and length"));
    out->dtype = x->dtype;
    out->rank = x->rank - 1;
    for (int32_t i = 0; i < out->rank; i++)
        out->dim[i] = x->dim[i + 1];
    return RLX_OK;
}

/* [rows] ++ carry, rows the number of carries that are kept. */
static rlx_status trajectory_dims(struct shape_call *c, ir_dim length, int64_t checkpoints,
                                  ir_dim dim[RLX_MAX_RANK + 1], int32_t *rank)
{
    const struct ir_type *carry = c->in[0];

    dim[0] = checkpoints ? checkpoints : length;
    for (int32_t i = 0; i < carry->rank; i++)
        dim[i + 1] = carry->dim[i];
    *rank = carry->rank + 1;
    if (*rank > RLX_MAX_RANK)
        return SHAPE_FAIL(c, LIMIT, "%s: the trajectory would have rank %d, at most %d is allowed",
                          c->name, *rank, RLX_MAX_RANK);
    return RLX_OK;
}

/* The counts of a scan; K checkpoints need as many steps. */
static rlx_status need_scan_counts(struct shape_call *c, ir_dim length, int64_t xs,
                                   int64_t checkpoints)
{
    TRY(shape_need_size(c, "length", length));
    TRY(shape_need_range(c, "num_xs", xs, 0, INT32_MAX));
    TRY(shape_need_range(c, "num_checkpoints", checkpoints, 0, INT64_MAX));
    if (!shape_check(c, CHECK_AT_LEAST, length, checkpoints, RLX_ERROR_ATTRIBUTE,
                     "length and num_checkpoints"))
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: num_checkpoints %" PRId64 " is above length %s",
                          c->name, checkpoints, dim_text(c, length));
    return RLX_OK;
}

/* The inputs of a body: carry, then operands as they are, then slices of xs, then perhaps d_next.
 */
static rlx_status need_body_inputs(struct shape_call *c, const struct ir_graph *g, const char *what,
                                   int32_t bcasts, int32_t first_xs, ir_dim length, bool d_next)
{
    int32_t xs = c->in_count - first_xs, count = 1 + bcasts + xs + (d_next ? 1 : 0);
    ir_value v = RLX_NO_VALUE;
    struct ir_type slice;

    TRY(need_count(c, what, "inputs", ir_inputs(g, NULL, 0), (size_t)count));
    for (int32_t i = 0; i < count; i++) {
        const struct ir_type *want = c->in[i <= bcasts ? i : 0]; /* d_next is like the carry */
        if (i > bcasts && i <= bcasts + xs) {
            TRY(slice_of(c, first_xs + i - 1 - bcasts, length, &slice));
            want = &slice;
        }
        v = next_input(g, v);
        TRY(need_type(c, what, "input", (size_t)i, ir_type_of(g, v), want));
    }
    return RLX_OK;
}

static rlx_status need_next_carry(struct shape_call *c, const struct ir_graph *body)
{
    TRY(need_count(c, "body", "outputs", body->output.len, 1));
    return need_type(c, "body", "output", 0, output_type(body, 0), c->in[0]);
}

/* scan: init, bcasts, xs [length] ++ s -> the last carry, or [rows] ++ carry. */
rlx_status shape_scan(struct shape_call *c)
{
    const struct attr_scan *attr = &c->attr->scan;
    const struct ir_graph *body;
    ir_dim dim[RLX_MAX_RANK + 1];
    int32_t rank;

    TRY(need_scan_counts(c, attr->length, attr->num_xs, attr->num_checkpoints));
    TRY(shape_need_range(c, "num_bcast", attr->num_bcast, 0, INT32_MAX));
    if (1 + attr->num_bcast + attr->num_xs != c->in_count)
        return SHAPE_FAIL(c, GRAPH,
                          "%s: takes init, %" PRId64 " bcasts and %" PRId64 " xs, got %d inputs",
                          c->name, attr->num_bcast, attr->num_xs, c->in_count);
    TRY(sub_graph(c, "body", attr->body, &body));
    TRY(need_body_inputs(c, body, "body", (int32_t)attr->num_bcast, 1 + (int32_t)attr->num_bcast,
                         attr->length, false));
    TRY(need_next_carry(c, body));
    if (!attr->save_trajectory)
        return shape_result_like(c, 0);
    TRY(trajectory_dims(c, attr->length, attr->num_checkpoints, dim, &rank));
    return shape_result(c, c->in[0]->dtype, rank, dim);
}

/* body_vjp yields d_carry and a gradient for each slice of xs. */
static rlx_status need_vjp_outputs(struct shape_call *c, const struct ir_graph *vjp, ir_dim length)
{
    int32_t xs = c->in_count - 3;
    struct ir_type slice;

    TRY(need_count(c, "body_vjp", "outputs", vjp->output.len, (size_t)xs + 1));
    TRY(need_type(c, "body_vjp", "output", 0, output_type(vjp, 0), c->in[0]));
    for (int32_t i = 0; i < xs; i++) {
        TRY(slice_of(c, 3 + i, length, &slice));
        TRY(need_type(c, "body_vjp", "output", (size_t)i + 1, output_type(vjp, (size_t)i + 1),
                      &slice));
    }
    return RLX_OK;
}

/* The kept carries, and the gradient of what the scan yielded: all of them, or the last one. */
static rlx_status need_kept_carries(struct shape_call *c)
{
    const struct attr_scan_backward *attr = &c->attr->scan_backward;
    ir_dim dim[RLX_MAX_RANK + 1];
    int32_t rank;

    TRY(trajectory_dims(c, attr->length, attr->num_checkpoints, dim, &rank));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_need_dims(c, 1, dim, rank));
    TRY(shape_need_same_dtype(c, 0, 2));
    if (attr->save_trajectory)
        return shape_need_dims(c, 2, dim, rank);
    return shape_need_same_shape(c, 2, 0);
}

/* init, trajectory, upstream, xs -> like init, or like xs[xs_idx]. */
rlx_status shape_scan_backward(struct shape_call *c)
{
    const struct attr_scan_backward *attr = &c->attr->scan_backward;
    const struct ir_graph *body, *vjp;

    TRY(need_scan_counts(c, attr->length, attr->num_xs, attr->num_checkpoints));
    if (3 + attr->num_xs != c->in_count)
        return SHAPE_FAIL(c, GRAPH,
                          "%s: takes init, trajectory, upstream and %" PRId64 " xs, got %d inputs",
                          c->name, attr->num_xs, c->in_count);
    TRY(sub_graph(c, "body", attr->body, &body));
    TRY(sub_graph(c, "body_vjp", attr->body_vjp, &vjp));
    TRY(need_body_inputs(c, body, "body", 0, 3, attr->length, false));
    TRY(need_next_carry(c, body));
    TRY(need_body_inputs(c, vjp, "body_vjp", 0, 3, attr->length, true));
    TRY(need_vjp_outputs(c, vjp, attr->length));
    TRY(need_kept_carries(c));
    if (c->op == RLX_OP_scan_backward)
        return shape_result_like(c, 0);
    if (attr->xs_idx < 0 || attr->xs_idx >= attr->num_xs)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: xs_idx is %" PRId64 ", there are %" PRId64 " xs",
                          c->name, attr->xs_idx, attr->num_xs);
    return shape_result_like(c, 3 + (int32_t)attr->xs_idx);
}

/* ---- custom_fn ----------------------------------------------------------------------------- */

/* Which tangent "tangent_12" is: below count, and written as a number is; else false. */
static bool tangent_index(rlx_str name, int32_t count, int32_t *out)
{
    const rlx_str prefix = STR("tangent_");
    int64_t i;

    if (!str_starts(name, prefix))
        return false;
    name.ptr += prefix.len;
    name.len -= prefix.len;
    if (!str_to_i64(name, &i) || i < 0 || i >= count || (name.ptr[0] == '0' && name.len > 1))
        return false;
    *out = (int32_t)i;
    return true;
}

/* The inputs of a derivative: those of the function in order, and among them, by name, its output
 * y, the output's gradient (vjp) or the inputs' tangents (jvp). */
static rlx_status need_derivative_inputs(struct shape_call *c, const struct ir_graph *g,
                                         const char *what, bool jvp, const struct ir_type *y)
{
    int32_t plain = 0, tangents = 0, k;
    bool has_primal = false, has_upstream = false;

    for (ir_value v = next_input(g, RLX_NO_VALUE); v != RLX_NO_VALUE; v = next_input(g, v)) {
        rlx_str name = ir_leaf_name(ir_node(g, v));
        const struct ir_type *want;
        if (str_eq(name, STR("primal_output"))) {
            has_primal = true;
            want = y;
        } else if (!jvp && str_eq(name, STR("d_output"))) {
            has_upstream = true;
            want = y;
        } else if (jvp && tangent_index(name, c->in_count, &k)) {
            tangents++;
            want = c->in[k];
        } else if (plain < c->in_count) {
            want = c->in[plain++];
        } else {
            return SHAPE_FAIL(c, GRAPH,
                              "%s: %s has more than %d inputs besides the named ones: "
                              "\"%.*s\"",
                              c->name, what, c->in_count, STR_ARG(name));
        }
        TRY(need_type(c, what, "input, node", (size_t)v, ir_type_of(g, v), want));
    }
    TRY(need_count(c, what, "inputs besides the named ones", (size_t)plain, (size_t)c->in_count));
    if (jvp)
        return need_count(c, what, "inputs named tangent_", (size_t)tangents, (size_t)c->in_count);
    if (has_primal && has_upstream)
        return RLX_OK;
    return SHAPE_FAIL(c, GRAPH, "%s: %s has no input named %s", c->name, what,
                      has_primal ? "d_output" : "primal_output");
}

static rlx_status need_vjp(struct shape_call *c, int32_t id, const struct ir_type *y)
{
    const struct ir_graph *g;

    TRY(sub_graph(c, "vjp_graph", id, &g));
    TRY(need_derivative_inputs(c, g, "vjp_graph", false, y));
    TRY(need_count(c, "vjp_graph", "outputs", g->output.len, (size_t)c->in_count));
    for (size_t i = 0; i < g->output.len; i++)
        TRY(need_type(c, "vjp_graph", "output", i, output_type(g, i), c->in[i]));
    return RLX_OK;
}

static rlx_status need_jvp(struct shape_call *c, int32_t id, const struct ir_type *y)
{
    const struct ir_graph *g;

    TRY(sub_graph(c, "jvp_graph", id, &g));
    TRY(need_derivative_inputs(c, g, "jvp_graph", true, y));
    TRY(need_count(c, "jvp_graph", "outputs", g->output.len, 1));
    return need_type(c, "jvp_graph", "output", 0, output_type(g, 0), y);
}

/* custom_fn: what fwd_graph yields on the operands. */
rlx_status shape_custom_fn(struct shape_call *c)
{
    const struct attr_custom_fn *attr = &c->attr->custom_fn;
    const struct ir_graph *fwd;

    TRY(sub_graph(c, "fwd_graph", attr->fwd_graph, &fwd));
    TRY(need_inputs(c, fwd, "fwd_graph", c->in, (size_t)c->in_count));
    TRY(need_count(c, "fwd_graph", "outputs", fwd->output.len, 1));
    if (attr->vjp_graph != -1)
        TRY(need_vjp(c, attr->vjp_graph, output_type(fwd, 0)));
    if (attr->jvp_graph != -1)
        TRY(need_jvp(c, attr->jvp_graph, output_type(fwd, 0)));
    *c->out = *output_type(fwd, 0);
    return RLX_OK;
}
