/* walk.c: gradients of one node, and from one value back to others. */
#include "autodiff/rule.h"
#include "pass/pass.h"

/* ---- rules ---- */

struct rule {
    vjp_rule make;
    bool (*applies)(const struct ir_graph *g, const struct ir_node *n); /* NULL: always */
    vjp_check check;                                                    /* NULL: nothing to ask */
    definition define;                                                  /* instead of a rule */
    bool refused;
};

static const struct rule rules[FAMILY_count] = {
#define RULE(family) [FAMILY_##family] = {.make = vjp_##family},
#define RULE_IF(family) [FAMILY_##family] = {vjp_##family, .applies = vjp_##family##_applies},
#define RULE_ASKS(family) [FAMILY_##family] = {vjp_##family, .check = vjp_##family##_check},
#define EXPANDS_IF(family) [FAMILY_##family] = {.applies = vjp_##family##_applies},
#define DEFINED(family) [FAMILY_##family] = {.define = define_##family},
#define NO_RULE(family) [FAMILY_##family] = {.refused = true},
#include "autodiff/rules.def"
};

static bool can_have_gradient(const struct ir_type *t)
{
    return dtype_is(t->dtype, CLASS_F | CLASS_C);
}

/* Whatever the type is. */
static bool nothing_flows(const struct ir_node *n)
{
    return n->op == RLX_OP_stop_gradient ||
           (n->op == RLX_OP_topk && n->attr.topk.result == RLX_TOPK_RESULT_indices);
}

/* Straight through (ops-core.md 19.2): on its way from a quantised op to another, the gradient of
 * an i8 is an f32, as if the i8 were not rounded. Here: does this op hand one on? */
static bool goes_straight(const struct ir_node *n)
{
    return op_has_trait(n->op, CARRIES_I8) || op_info(n->op)->category == CATEGORY_MOVEMENT;
}

static bool takes_gradient(const struct ir_node *n, const struct ir_type *t)
{
    return can_have_gradient(t) || (t->dtype == RLX_DTYPE_i8 && goes_straight(n));
}

bool grad_can_expand(const struct ir_graph *g, const struct ir_node *n)
{
    return rules[op_info(n->op)->family].define || pass_can_expand(g, n);
}

enum grad_way grad_way(const struct ir_graph *g, const struct ir_node *n)
{
    const struct op_info *op = op_info(n->op);
    const struct rule *r = &rules[op->family];

    if (!takes_gradient(n, &n->type) || nothing_flows(n))
        return GRAD_STOPS;
    if (r->refused || (r->applies && !r->applies(g, n)))
        return GRAD_MISSING;
    if (!(op->flags & OP_DIFF))
        return op->category == CATEGORY_GRADIENT ? GRAD_MISSING : GRAD_STOPS;
    if (r->make)
        return GRAD_RULE;
    return grad_can_expand(g, n) ? GRAD_EXPANDS : GRAD_MISSING;
}

bool grad_has_rule(rlx_op op)
{
    const struct op_info *o = op_info(op);

    return (o->flags & OP_DIFF) && !rules[o->family].refused &&
           (rules[o->family].make || rules[o->family].define || rules[o->family].applies ||
            pass_expands(o->family));
}

void vjp_add(struct vjp *v, int32_t i, ir_value dx)
{
    if (!vjp_wanted(v, i) || v->f.status != RLX_OK)
        return;
    struct ir_type t = *vjp_type(v, i);
    rlx_dtype to = can_have_gradient(&t) ? t.dtype : RLX_DTYPE_f32;
    v->dx[i] = formula_cast(&v->f, formula_unbroadcast(&v->f, dx, &t), to);
}

/* ---- one node ---- */

static rlx_status missing(const struct ir_graph *g, const struct ir_node *n, struct diag *d)
{
    diag_at(d, op_info(n->op)->name, ir_id(g, n), n->label);
    return diag_fail(d, RLX_ERROR_NO_RULE, "%s has no gradient rule%s", op_info(n->op)->name,
                     rules[op_info(n->op)->family].applies ? " in this form" : "");
}

static int32_t first_place(const struct ir_node *n, int32_t i)
{
    int32_t first = 0;

    while (n->in[first] != n->in[i])
        first++;
    return first;
}

/* Can the gradients of those operands be computed? */
static rlx_status check_node(const struct ir_graph *g, const struct ir_node *n, const bool *wanted,
                             struct diag *d)
{
    const struct rule *r = &rules[op_info(n->op)->family];

    if (grad_way(g, n) == GRAD_MISSING)
        return missing(g, n, d);
    if (grad_way(g, n) != GRAD_RULE || !r->check)
        return RLX_OK;
    diag_at(d, op_info(n->op)->name, ir_id(g, n), n->label);
    return r->check(g, n, wanted, d);
}

rlx_status grad_expand(struct ir_graph *g, ir_value node, ir_value *out, struct diag *d)
{
    const struct ir_node n = *ir_node(g, node);
    definition define = rules[op_info(n.op)->family].define;
    struct formula f = {.g = g, .diag = d, .dtype = formula_dtype(n.type.dtype)};

    if (!define)
        return pass_expand_node(g, node, out, d);
    *out = formula_cast(&f, define(&f, &n), n.type.dtype);
    return f.status;
}

/* The node is rewritten with simpler ops after all others, and differentiated through those. An
 * operand that occurs twice gets all of its gradient at its first place. */
static rlx_status through_expansion(struct ir_graph *g, ir_value node, ir_value dy,
                                    const bool *want, ir_value *dx, struct diag *d)
{
    const struct ir_node n = *ir_node(g, node);
    ir_value first = (ir_value)g->node.len, out;
    ir_value *wrt = arena_array(&g->mod->arena, ir_value, 2 * (size_t)n.in_count + 1);
    ir_value *found = wrt + n.in_count;
    size_t count = 0;

    if (!wrt)
        return diag_no_memory(d, (size_t)n.in_count * sizeof *wrt);
    TRY(grad_expand(g, node, &out, d));
    for (int32_t i = 0; i < n.in_count; i++)
        if (want[i] && first_place(&n, i) == i)
            wrt[count++] = n.in[i];
    TRY(grad_walk(g, first, out, dy, wrt, count, found, d));
    count = 0;
    for (int32_t i = 0; i < n.in_count; i++)
        if (want[i] && first_place(&n, i) == i)
            dx[i] = found[count++];
    return RLX_OK;
}

rlx_status grad_node(struct ir_graph *g, ir_value node, ir_value dy, const bool *wanted,
                     ir_value *dx, struct diag *d)
{
    const struct ir_node n = *ir_node(g, node); /* nodes move when others are added */
    bool *want = arena_array(&g->mod->arena, bool, (size_t)n.in_count + 1), any = false;

    if (!want)
        return diag_no_memory(d, (size_t)n.in_count);
    for (int32_t i = 0; i < n.in_count; i++) {
        dx[i] = RLX_NO_VALUE;
        want[i] = wanted[i] && takes_gradient(&n, ir_type_of(g, n.in[i]));
        any |= want[i];
    }
    switch (any ? grad_way(g, &n) : GRAD_STOPS) {
    case GRAD_MISSING: return missing(g, ir_node(g, node), d);
    case GRAD_EXPANDS: return through_expansion(g, node, dy, want, dx, d);
    case GRAD_RULE: TRY(check_node(g, ir_node(g, node), want, d)); break;
    default: return RLX_OK;
    }
    struct vjp v = {.f = {.g = g, .diag = d, .dtype = formula_dtype(ir_type_of(g, dy)->dtype)},
                    .n = &n,
                    .y = node,
                    .dy = dy,
                    .wanted_ = want,
                    .dx = dx};
    rules[op_info(n.op)->family].make(&v);
    return v.f.status;
}

/* ---- the walk ---- */

struct walk {
    struct ir_graph *g;
    ir_value floor, last; /* nodes before floor are not looked into; there are none after last */
    bool *reaches; /* by value: does it depend on something in wrt, so that a gradient is needed? */
    ir_value *grad; /* by value: what has arrived so far */
    struct diag *diag;
};

static ir_value last_of(const ir_value *v, size_t count)
{
    ir_value last = RLX_NO_VALUE;

    for (size_t i = 0; i < count; i++)
        last = v[i] > last ? v[i] : last;
    return last;
}

/* Which values between floor and last depend on wrt? */
static rlx_status find_paths(struct walk *w, const ir_value *wrt, size_t count)
{
    w->reaches = arena_array(&w->g->mod->arena, bool, (size_t)w->last + 1);
    if (!w->reaches)
        return diag_no_memory(w->diag, (size_t)w->last);
    for (size_t i = 0; i < count; i++) {
        if (!can_have_gradient(ir_type_of(w->g, wrt[i])))
            return diag_fail(w->diag, RLX_ERROR_DTYPE, "value %d is %s: only floats have gradients",
                             (int)wrt[i], rlx_dtype_name(ir_type_of(w->g, wrt[i])->dtype));
        if (wrt[i] <= w->last)
            w->reaches[wrt[i]] = true;
    }
    for (ir_value v = w->floor; v <= w->last; v++) {
        const struct ir_node *n = ir_node(w->g, v);
        bool depends = false;
        for (int32_t i = 0; i < n->in_count; i++)
            depends |= w->reaches[n->in[i]];
        w->reaches[v] |= depends && grad_way(w->g, n) != GRAD_STOPS;
    }
    return RLX_OK;
}

/* Which operands of n does the walk need gradients of? NULL: no memory. */
static bool *wanted_of(const struct walk *w, const struct ir_node *n)
{
    bool *want = arena_array(&w->g->mod->arena, bool, (size_t)n->in_count + 1);

    for (int32_t i = 0; want && i < n->in_count; i++)
        want[i] = w->reaches[n->in[i]];
    return want;
}

/* Of those, the ones that the values of out are made of; the first without a rule ends it. */
static rlx_status check_rules(struct walk *w, const ir_value *out, size_t count)
{
    bool *used = arena_array(&w->g->mod->arena, bool, (size_t)w->last + 1);

    if (!used)
        return diag_no_memory(w->diag, (size_t)w->last);
    for (size_t i = 0; i < count; i++)
        used[out[i]] = true;
    for (ir_value v = w->last; v >= w->floor; v--) {
        const struct ir_node *n = ir_node(w->g, v);
        bool depends = false;
        for (int32_t i = 0; used[v] && w->reaches[v] && i < n->in_count; i++) {
            depends |= w->reaches[n->in[i]];
            used[n->in[i]] = true;
        }
        if (!depends)
            continue;
        bool *want = wanted_of(w, n);
        if (!want)
            return diag_no_memory(w->diag, (size_t)n->in_count);
        TRY(check_node(w->g, n, want, w->diag));
    }
    return RLX_OK;
}

static rlx_status arrive(struct walk *w, ir_value at, ir_value dx)
{
    struct formula f = {.g = w->g, .diag = w->diag};

    if (dx == RLX_NO_VALUE)
        return RLX_OK;
    w->grad[at] = w->grad[at] == RLX_NO_VALUE ? dx : formula_2(&f, RLX_OP_add, w->grad[at], dx);
    return f.status;
}

static rlx_status pass_back(struct walk *w, ir_value v)
{
    const struct ir_node n = *ir_node(w->g, v);
    bool *want = wanted_of(w, &n);
    ir_value *dx = arena_array(&w->g->mod->arena, ir_value, (size_t)n.in_count + 1);

    if (!want || !dx)
        return diag_no_memory(w->diag, (size_t)n.in_count * sizeof *dx);
    TRY(grad_node(w->g, v, w->grad[v], want, dx, w->diag));
    for (int32_t i = 0; i < n.in_count; i++)
        TRY(arrive(w, n.in[i], dx[i]));
    return RLX_OK;
}

rlx_status grad_walk_all(struct ir_graph *g, ir_value floor, const ir_value *out,
                         const ir_value *dy, size_t out_count, const ir_value *wrt, size_t count,
                         ir_value *dx, struct diag *d)
{
    struct walk w = {.g = g, .floor = floor, .last = last_of(out, out_count), .diag = d};

    w.grad = arena_array(&g->mod->arena, ir_value, (size_t)w.last + 1);
    if (!w.grad)
        return diag_no_memory(d, (size_t)w.last * sizeof *w.grad);
    for (ir_value v = 0; v <= w.last; v++)
        w.grad[v] = RLX_NO_VALUE;
    TRY(find_paths(&w, wrt, count));
    TRY(check_rules(&w, out, out_count));
    for (size_t i = 0; i < out_count; i++)
        TRY(arrive(&w, out[i], dy[i]));
    for (ir_value v = w.last; v >= floor; v--)
        if (w.grad[v] != RLX_NO_VALUE && w.reaches[v])
            TRY(pass_back(&w, v));
    for (size_t i = 0; i < count; i++)
        dx[i] = wrt[i] <= w.last ? w.grad[wrt[i]] : RLX_NO_VALUE;
    return RLX_OK;
}

rlx_status grad_walk(struct ir_graph *g, ir_value floor, ir_value out, ir_value dy,
                     const ir_value *wrt, size_t count, ir_value *dx, struct diag *d)
{
    return grad_walk_all(g, floor, &out, &dy, 1, wrt, count, dx, d);
}

rlx_status grad_flows(struct ir_graph *g, const ir_value *out, size_t out_count,
                      const ir_value *wrt, size_t count, bool *flows, struct diag *d)
{
    struct walk w = {.g = g, .last = last_of(out, out_count), .diag = d};

    TRY(find_paths(&w, wrt, count));
    for (size_t i = 0; i < out_count; i++)
        flows[i] = w.reaches[out[i]];
    return RLX_OK;
}

rlx_status grad_check(struct ir_graph *g, const ir_value *out, size_t out_count,
                      const ir_value *wrt, size_t count, struct diag *d)
{
    struct walk w = {.g = g, .last = last_of(out, out_count), .diag = d};

    TRY(find_paths(&w, wrt, count));
    return check_rules(&w, out, out_count);
}
