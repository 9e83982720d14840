/* rule_control.c: branches, loops, and functions that come with their derivatives (ops-core.md 17,
 * 18). What runs a graph forward runs a graph of gradients in the backward pass. */
#include "autodiff/rule.h"
#include "autodiff/sub_graph.h"
#include "ir/custom.h"
#include "pass/pass.h"

static struct ir_graph *graph_at(const struct ir_graph *g, attr_GRAPH id)
{
    return g->mod->graph.at[id];
}

/* A choice of one of `count` outputs. NULL: no memory, which is noted. */
static bool *only(const struct ir_graph *g, size_t count, int64_t which, struct diag *d)
{
    bool *b = arena_array(&g->mod->arena, bool, count + 1);

    if (!b)
        diag_no_memory(d, count);
    else
        b[which] = true;
    return b;
}

static ir_value *new_values(struct vjp *v, size_t count)
{
    ir_value *room = arena_array(&v->f.g->mod->arena, ir_value, count + 1);

    if (!room && v->f.status == RLX_OK)
        v->f.status = diag_no_memory(v->f.diag, count * sizeof *room);
    return room;
}

/* ---- if: the gradients of the branch that was taken ---- */

static struct grad_sub branch(const struct ir_graph *g, attr_GRAPH id, const bool *given,
                              const bool *wanted)
{
    return (struct grad_sub){.of = graph_at(g, id), .given = given, .wanted = wanted};
}

rlx_status vjp_if__check(const struct ir_graph *g, const struct ir_node *n, const bool *wanted,
                         struct diag *d)
{
    const struct attr_if_ *a = &n->attr.if_;
    const bool *given = only(g, graph_at(g, a->then_graph)->output.len, a->result, d);

    if (!given)
        return RLX_ERROR_MEMORY;
    const struct grad_sub yes = branch(g, a->then_graph, given, wanted + 1);
    const struct grad_sub no = branch(g, a->else_graph, given, wanted + 1);
    TRY(grad_sub_check(&yes, d));
    return grad_sub_check(&no, d);
}

void vjp_if_(struct vjp *v)
{
    struct attr_if_ a = v->n->attr.if_;
    struct ir_graph *g = v->f.g;
    const bool *given = only(g, graph_at(g, a.then_graph)->output.len, a.result, v->f.diag);
    ir_value *in = new_values(v, (size_t)v->n->in_count + 1);
    union ir_attr attr;

    if (!given || !in) {
        v->f.status = RLX_ERROR_MEMORY;
        return;
    }
    const struct grad_sub yes = branch(g, a.then_graph, given, v->wanted_ + 1);
    const struct grad_sub no = branch(g, a.else_graph, given, v->wanted_ + 1);
    attr_defaults(RLX_OP_if, &attr);
    v->f.status = grad_sub_build(&yes, &attr.if_.then_graph, v->f.diag);
    if (v->f.status == RLX_OK)
        v->f.status = grad_sub_build(&no, &attr.if_.else_graph, v->f.diag);
    for (int32_t i = 0; i < v->n->in_count; i++)
        in[i] = v->n->in[i];
    in[v->n->in_count] = v->dy;
    for (int32_t i = 1; i < v->n->in_count; i++)
        if (vjp_wanted(v, i)) {
            vjp_add(v, i, formula_node(&v->f, RLX_OP_if, in, v->n->in_count + 1, &attr));
            attr.if_.result++;
        }
}

/* ---- while: written out round by round, and back through the rounds that took place ---- */

/* The values that gradients flow through, as inputs of the body and as outputs alike: those wanted,
 * and those that depend on any of these. Done once a round adds none. */
static rlx_status find_active(const struct ir_graph *g, const struct ir_node *n, const bool *wanted,
                              bool **out, struct diag *d)
{
    struct ir_graph *body = graph_at(g, n->attr.while_.body_graph);
    size_t count = (size_t)n->in_count, found, before = 0;
    ir_value *input = arena_array(&g->mod->arena, ir_value, 2 * count + 1), *wrt = input + count;
    bool *active = arena_array(&g->mod->arena, bool, 2 * count + 1), *flows = active + count;

    if (!input || !active)
        return diag_no_memory(d, 2 * count * sizeof *input);
    ir_inputs(body, input, count);
    for (size_t i = 0; i < count; i++)
        active[i] = wanted[i];
    for (;; before = found) {
        found = 0;
        for (size_t i = 0; i < count; i++)
            if (active[i])
                wrt[found++] = input[i];
        *out = active;
        if (found == before)
            return RLX_OK;
        TRY(grad_flows(body, body->output.at, count, wrt, found, flows, d));
        for (size_t i = 0; i < count; i++)
            active[i] |= flows[i];
    }
}

rlx_status vjp_while__check(const struct ir_graph *g, const struct ir_node *n, const bool *wanted,
                            struct diag *d)
{
    struct grad_sub sub = {.of = graph_at(g, n->attr.while_.body_graph)};
    bool *active;

    if (n->attr.while_.max_iterations == RLX_ABSENT)
        return diag_fail(d, RLX_ERROR_NO_RULE, "while has no gradient rule without max_iterations");
    if (!pass_can_unroll(g->mod, n))
        return diag_fail(d, RLX_ERROR_NO_RULE,
                         "while has no gradient rule where %lld rounds are too many to write out; "
                         "a scan has one",
                         (long long)n->attr.while_.max_iterations);
    TRY(find_active(g, n, wanted, &active, d));
    sub.given = sub.wanted = active;
    return grad_sub_check(&sub, d);
}

/* The loop forward: value[t] are its values before round t, ran[t] whether that took place. */
struct rounds {
    int64_t count;
    ir_value *value, *ran;
};

static void unroll(struct vjp *v, struct rounds *r)
{
    size_t width = (size_t)v->n->in_count;
    ir_value *now = new_values(v, width), active = RLX_NO_VALUE;

    r->count = v->n->attr.while_.max_iterations;
    r->value = new_values(v, (size_t)r->count * width);
    r->ran = new_values(v, (size_t)r->count);
    for (size_t i = 0; v->f.status == RLX_OK && i < width; i++)
        now[i] = v->n->in[i];
    for (int64_t t = 0; v->f.status == RLX_OK && t < r->count; t++) {
        for (size_t i = 0; i < width; i++)
            r->value[(size_t)t * width + i] = now[i];
        v->f.status = pass_append_round(v->f.g, v->n, now, &active, v->f.diag);
        r->ran[t] = active;
    }
}

/* dv[], by value, goes back through round t; those that are not active stay RLX_NO_VALUE. */
static void back_through(struct vjp *v, const struct rounds *r, int64_t t, int32_t vjp,
                         const bool *active, ir_value *dv, ir_value *in, ir_value *out)
{
    size_t width = (size_t)v->n->in_count, given = width, made = 0;

    for (size_t i = 0; i < width; i++)
        in[i] = r->value[(size_t)t * width + i];
    for (size_t i = 0; i < width; i++)
        if (active[i])
            in[given++] = dv[i];
    v->f.status = pass_append_graph(v->f.g, graph_at(v->f.g, vjp), in, out, v->f.diag);
    for (size_t i = 0; v->f.status == RLX_OK && i < width; i++)
        if (active[i])
            dv[i] = formula_where(&v->f, r->ran[t], out[made++], dv[i]);
}

void vjp_while_(struct vjp *v)
{
    const struct attr_while_ *a = &v->n->attr.while_;
    size_t width = (size_t)v->n->in_count;
    ir_value *dv = new_values(v, width), *in = new_values(v, 2 * width),
             *out = new_values(v, width);
    struct grad_sub sub = {.of = graph_at(v->f.g, a->body_graph)};
    struct rounds r;
    bool *active = NULL;
    int32_t vjp = -1;

    if (v->f.status == RLX_OK)
        v->f.status = find_active(v->f.g, v->n, v->wanted_, &active, v->f.diag);
    if (v->f.status != RLX_OK || !active[a->result])
        return;
    sub.given = sub.wanted = active;
    v->f.status = grad_sub_build(&sub, &vjp, v->f.diag);
    for (size_t i = 0; i < width; i++)
        dv[i] = (int64_t)i == a->result ? v->dy : RLX_NO_VALUE;
    for (int32_t i = 0; i < v->n->in_count; i++)
        if (v->f.status == RLX_OK && active[i] && dv[i] == RLX_NO_VALUE) {
            const struct ir_type t = *vjp_type(v, i);
            dv[i] = formula_fill(&v->f, &t, 0);
        }
    unroll(v, &r);
    for (int64_t t = r.count; v->f.status == RLX_OK && t-- > 0;)
        back_through(v, &r, t, vjp, active, dv, in, out);
    for (int32_t i = 0; i < v->n->in_count; i++)
        vjp_add(v, i, dv[i]);
}

/* ---- custom_fn: its own derivative, or that of its forward graph ---- */

rlx_status vjp_custom_fn_check(const struct ir_graph *g, const struct ir_node *n,
                               const bool *wanted, struct diag *d)
{
    const struct attr_custom_fn *a = &n->attr.custom_fn;
    struct grad_sub s = {.of = graph_at(g, a->fwd_graph), .wanted = wanted};

    if (a->vjp_graph >= 0)
        return RLX_OK;
    s.given = only(g, 1, 0, d);
    return s.given ? grad_sub_check(&s, d) : RLX_ERROR_MEMORY;
}

/* The inputs of vjp_graph are those of the function in order, and among them two by name. */
static void own_derivative(struct vjp *v)
{
    const struct ir_graph *sub = graph_at(v->f.g, v->n->attr.custom_fn.vjp_graph);
    ir_value *in = new_values(v, (size_t)v->n->in_count + 2);
    ir_value *out = new_values(v, (size_t)v->n->in_count);
    size_t bound = 0, plain = 0;

    if (!in || !out)
        return;
    IR_EACH(n, sub) {
        rlx_str name = ir_leaf_name(n);
        if (n->op != RLX_OP_input)
            continue;
        if (str_eq(name, STR("primal_output")))
            in[bound++] = v->y;
        else if (str_eq(name, STR("d_output")))
            in[bound++] = v->dy;
        else
            in[bound++] = v->n->in[plain++];
    }
    v->f.status = pass_append_graph(v->f.g, sub, in, out, v->f.diag);
    for (int32_t i = 0; i < v->n->in_count; i++)
        vjp_add(v, i, out[i]);
}

/* An operand that occurs twice gets all of its gradient at its first place. */
static bool stands_before(const struct ir_node *n, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (n->in[k] == n->in[i])
            return true;
    return false;
}

static void through_forward(struct vjp *v)
{
    const struct ir_graph *sub = graph_at(v->f.g, v->n->attr.custom_fn.fwd_graph);
    ir_value *wrt = new_values(v, (size_t)v->n->in_count);
    ir_value *dx = new_values(v, (size_t)v->n->in_count);
    ir_value first = (ir_value)v->f.g->node.len, out = RLX_NO_VALUE;
    size_t count = 0;

    if (!wrt || !dx)
        return;
    for (int32_t i = 0; i < v->n->in_count; i++)
        if (vjp_wanted(v, i) && !stands_before(v->n, i))
            wrt[count++] = v->n->in[i];
    v->f.status = pass_append_graph(v->f.g, sub, v->n->in, &out, v->f.diag);
    if (v->f.status == RLX_OK)
        v->f.status = grad_walk(v->f.g, first, out, v->dy, wrt, count, dx, v->f.diag);
    count = 0;
    for (int32_t i = 0; v->f.status == RLX_OK && i < v->n->in_count; i++)
        if (vjp_wanted(v, i) && !stands_before(v->n, i))
            v->dx[i] = dx[count++];
}

void vjp_custom_fn(struct vjp *v)
{
    if (v->n->attr.custom_fn.vjp_graph >= 0)
        own_derivative(v);
    else
        through_forward(v);
}

/* ---- custom: as it was registered ---- */

static const rlx_custom_op *registered(const struct ir_graph *g, const struct ir_node *n)
{
    const struct attr_custom *a = &n->attr.custom;

    return custom_find(g->mod->customs, (rlx_str){a->name.ptr, a->name.len});
}

rlx_status vjp_custom_check(const struct ir_graph *g, const struct ir_node *n, const bool *wanted,
                            struct diag *d)
{
    const rlx_custom_op *op = registered(g, n);

    (void)wanted;
    if (op && op->vjp && custom_results(op) > 1)
        return diag_fail(
            d, RLX_ERROR_NO_RULE,
            "custom: \"%s\" has %d results, but only an op with one can have a gradient", op->name,
            custom_results(op));
    if (op && (op->non_differentiable || (op->vjp && g->mod->customs->vjp)))
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_NO_RULE, "custom: \"%s\" was registered without a gradient",
                     op ? op->name : "?");
}

/* What the registered op returned is not trusted. */
static void take_custom(struct vjp *v, const char *name, int32_t i, ir_value dx)
{
    if (dx < 0 || (size_t)dx >= v->f.g->node.len)
        formula_fail(&v->f, RLX_ERROR_GRAPH,
                     "custom: \"%s\" gives no value of the graph (%d) as gradient %d", name, dx, i);
    else if (!type_same(ir_type_of(v->f.g, dx), vjp_type(v, i)))
        formula_fail(&v->f, RLX_ERROR_SHAPE,
                     "custom: \"%s\" gives gradient %d a different type than that of operand %d",
                     name, i, i);
    else
        v->dx[i] = dx;
}

void vjp_custom(struct vjp *v)
{
    const struct ir_customs *c = v->f.g->mod->customs;
    const rlx_custom_op *op = registered(v->f.g, v->n);
    ir_value *dx = new_values(v, (size_t)v->n->in_count);

    if (op->non_differentiable || !dx)
        return;
    for (int32_t i = 0; i < v->n->in_count; i++)
        dx[i] = RLX_NO_VALUE;
    v->f.status = c->vjp(c->owner, op, v->f.g, v->n, v->y, v->dy, dx, v->f.diag);
    for (int32_t i = 0; v->f.status == RLX_OK && i < v->n->in_count; i++)
        if (vjp_wanted(v, i) && dx[i] != RLX_NO_VALUE)
            take_custom(v, op->name, i, dx[i]);
}
