/* lower_control_flow.c: branches and loops as straight lines, for devices without them.
 *
 *     %y = if %p, %x then_graph=@a else_graph=@b   =>   the nodes of @a and of @b, and
 *                                                       %y = where %p, a's output, b's output
 *
 * Needs:  nothing.      Keeps: types, order, labels.
 * A while with a bound carries whether it is still running: each round computes the condition and
 * the body, and keeps the old values where it has stopped. A scan is its body, length times. Both
 * are unrolled only where rounds times nodes stay within a limit and their number is known; what
 * stays is for the device to run, or to refuse. A device that has `if` and would rather compute
 * both branches keeps those that may go on for ever. Inner graphs come first, so that what they
 * grow to counts. `where` selects: nothing of a side that is not taken reaches the result. */
#include "pass/expand/expand.h"
#include "pass/inline.h"
#include "pass/pass.h"

#define MOST_NODES 4096     /* of all rounds of a loop */
#define MOST_MADE (1 << 17) /* in a module; or 16 times what it had */

static const struct ir_graph *graph_of(const struct rebuild *r, attr_GRAPH id)
{
    return r->old->mod->graph.at[id];
}

static rlx_status select(struct rebuild *r, ir_value cond, ir_value a, ir_value b, ir_value *out)
{
    return rebuild_add(r, RLX_OP_where, (const ir_value[]){cond, a, b}, 3, NULL, out);
}

/* ---- if ---- */

static rlx_status lower_if(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                           ir_value *out)
{
    const struct attr_if_ *a = &n->attr.if_;
    const struct ir_graph *then = graph_of(r, a->then_graph), *other = graph_of(r, a->else_graph);
    ir_value *made = arena_array(&r->old->mod->arena, ir_value, then->output.len), taken, cond;

    if (!made)
        return diag_no_memory(r->diag, then->output.len * sizeof *made);
    TRY(inline_graph(r, then, in + 1, made)); /* both have as many outputs */
    taken = made[a->result];
    TRY(inline_graph(r, other, in + 1, made));
    TRY(expand_reshape_to(r, in[0], RLX_EMPTY, &cond)); /* a scalar broadcasts to any shape */
    return select(r, cond, taken, made[a->result], out);
}

/* ---- while ---- */

/* 1 if every element is other than 0, NaN included, else 0: a scalar. */
static rlx_status all_true(struct rebuild *r, ir_value cond, ir_value *out)
{
    const struct ir_type t = *expand_type(r, cond);
    union ir_attr attr;
    ir_value zero;
    int64_t count;

    if (t.dtype != RLX_DTYPE_bool) {
        TRY(rebuild_scalar(r, t.dtype, 0, &zero));
        TRY(expand_2(r, RLX_OP_ne, cond, zero, &cond));
    }
    TRY(expand_cast(r, cond, RLX_DTYPE_i32, out));
    if (type_count(&t, &count) && count == 1)
        return expand_reshape_to(r, *out, RLX_EMPTY, out);
    attr_defaults(RLX_OP_reduce_prod, &attr);
    for (int64_t i = 0; i < t.rank; i++)
        attr.reduce.axes.at[attr.reduce.axes.count++] = i;
    return rebuild_add(r, RLX_OP_reduce_prod, out, 1, &attr, out);
}

static rlx_status while_round(struct rebuild *r, const struct ir_node *n, ir_value *now,
                              ir_value *active)
{
    const struct attr_while_ *a = &n->attr.while_;
    size_t count = (size_t)n->in_count;
    ir_value *next = arena_array(&r->old->mod->arena, ir_value, count + 1), truth;

    if (!next)
        return diag_no_memory(r->diag, count * sizeof *next);
    TRY(inline_graph(r, graph_of(r, a->cond_graph), now, &truth));
    TRY(all_true(r, truth, &truth));
    if (*active == RLX_NO_VALUE)
        *active = truth;
    else
        TRY(expand_2(r, RLX_OP_mul, *active, truth, active));
    TRY(inline_graph(r, graph_of(r, a->body_graph), now, next));
    for (size_t i = 0; i < count; i++)
        TRY(select(r, *active, next[i], now[i], &now[i]));
    return RLX_OK;
}

static rlx_status lower_while(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out)
{
    size_t count = (size_t)n->in_count;
    ir_value *now = arena_array(&r->old->mod->arena, ir_value, count + 1), active = RLX_NO_VALUE;

    if (!now)
        return diag_no_memory(r->diag, count * sizeof *now);
    for (size_t i = 0; i < count; i++)
        now[i] = in[i];
    for (int64_t t = 0; t < n->attr.while_.max_iterations; t++)
        TRY(while_round(r, n, now, &active));
    *out = now[n->attr.while_.result];
    return RLX_OK;
}

rlx_status pass_append_round(struct ir_graph *g, const struct ir_node *n, ir_value *now,
                             ir_value *active, struct diag *d)
{
    struct rebuild r = rebuild_append(g, d);

    return rebuild_appended(&r, while_round(&r, n, now, active));
}

/* ---- scan ---- */

/* Row t of a sequence, without the axis of length 1. */
static rlx_status row(struct rebuild *r, ir_value xs, int64_t t, ir_value *out)
{
    const struct ir_type type = *expand_type(r, xs);

    TRY(expand_narrow(r, xs, 0, t, 1, out));
    return expand_reshape(r, *out, rlx_list_of(type.rank - 1, type.dim + 1), out);
}

static rlx_status as_row(struct rebuild *r, ir_value carry, ir_value *out)
{
    const struct ir_type type = *expand_type(r, carry);
    rlx_list shape = {.count = type.rank + 1, .at = {1}};

    for (int32_t i = 0; i < type.rank; i++)
        shape.at[i + 1] = type.dim[i];
    return expand_reshape(r, carry, shape, out);
}

/* The carries that were saved, one under the other. */
static rlx_status stack(struct rebuild *r, const ir_value *rows, int32_t count, ir_value init,
                        ir_value *out)
{
    union ir_attr attr;

    if (count == 0) { /* no row of that shape */
        TRY(as_row(r, init, out));
        return expand_narrow(r, *out, 0, 0, 0, out);
    }
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = 0;
    return rebuild_add(r, RLX_OP_concat, rows, count, &attr, out);
}

static rlx_status lower_scan(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                             ir_value *out)
{
    const struct attr_scan *a = &n->attr.scan;
    int64_t length = a->length, first_xs = 1 + a->num_bcast;
    int64_t rows = a->num_checkpoints ? a->num_checkpoints : length;
    struct arena *arena = &r->old->mod->arena;
    ir_value *operand = arena_array(arena, ir_value, (size_t)n->in_count);
    ir_value *saved = arena_array(arena, ir_value, (size_t)rows);
    int32_t kept = 0;

    if (!operand || !saved)
        return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *operand);
    for (int64_t i = 0; i < first_xs; i++)
        operand[i] = in[i];
    for (int64_t t = 0; t < length; t++) {
        for (int64_t i = first_xs; i < n->in_count; i++)
            TRY(row(r, in[i], t, &operand[i]));
        TRY(inline_graph(r, graph_of(r, a->body), operand, &operand[0]));
        /* Row k is the carry after step ceil((k + 1) length / rows) - 1. */
        if (a->save_trajectory && t == ((kept + 1) * length + rows - 1) / rows - 1)
            TRY(as_row(r, operand[0], &saved[kept++]));
    }
    *out = operand[0];
    return a->save_trajectory ? stack(r, saved, kept, in[0], out) : RLX_OK;
}

/* ---- what to lower, and in what order ---- */

static bool within_limit(int64_t rounds, size_t nodes)
{
    return rounds >= 0 && nodes <= MOST_NODES &&
           (rounds == 0 || (int64_t)nodes <= MOST_NODES / rounds);
}

bool pass_can_unroll(const struct ir_module *m, const struct ir_node *n)
{
    const struct attr_while_ *w = &n->attr.while_;

    if (n->op == RLX_OP_while)
        return w->max_iterations != RLX_ABSENT &&
               within_limit(w->max_iterations, m->graph.at[w->cond_graph]->node.len +
                                                   m->graph.at[w->body_graph]->node.len);
    return dim_is_static(n->attr.scan.length) &&
           within_limit(n->attr.scan.length, m->graph.at[n->attr.scan.body]->node.len);
}

struct lowering {
    struct pass_run *run;
    bool *done;        /* by graph: it was looked at */
    bool *endless;     /* by graph: it holds a loop without a bound */
    size_t made, most; /* nodes of graphs that were lowered; and how many there may be */
};

/* A branch that is not taken is computed too, and must end. */
static bool keeps_if(const struct lowering *l, const struct attr_if_ *a)
{
    const struct target *t = l->run->target;

    return t && t->native[FAMILY_if_] &&
           (!t->joins_branches || l->endless[a->then_graph] || l->endless[a->else_graph]);
}

static expander lowering_of(const struct lowering *l, const struct ir_module *m,
                            const struct ir_node *n)
{
    const struct target *t = l->run->target;

    if (n->op == RLX_OP_if)
        return keeps_if(l, &n->attr.if_) ? NULL : lower_if;
    if (t && t->native[op_info(n->op)->family])
        return NULL;
    switch (n->op) {
    case RLX_OP_while: return pass_can_unroll(m, n) ? lower_while : NULL;
    case RLX_OP_scan: return pass_can_unroll(m, n) ? lower_scan : NULL;
    default: return NULL;
    }
}

static rlx_status replace(struct rebuild *r, const struct ir_node *n, expander lower)
{
    ir_value *in = arena_array(&r->old->mod->arena, ir_value, (size_t)n->in_count), out;

    if (!in)
        return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *in);
    for (int32_t i = 0; i < n->in_count; i++)
        in[i] = rebuild_map(r, n->in[i]);
    TRY(lower(r, n, in, &out));
    rebuild_replace(r, n, out);
    return RLX_OK;
}

/* Branches in branches grow with every level. */
static rlx_status check_growth(const struct lowering *l, const struct rebuild *r)
{
    if (l->made + r->made.node.len <= l->most)
        return RLX_OK;
    return diag_fail(r->diag, RLX_ERROR_LIMIT,
                     "branches and loops make more than %zu nodes where they are written out, as "
                     "this device needs them",
                     l->most);
}

static rlx_status lower_graph(struct lowering *l, struct ir_graph *g)
{
    struct pass_run *p = l->run;
    struct rebuild r;
    bool any = false;

    IR_EACH(n, g)
        any = any || lowering_of(l, g->mod, n);
    if (!any)
        return RLX_OK;
    rlx_status s = rebuild_begin(&r, g, p->diag);
    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        expander lower = lowering_of(l, g->mod, n);
        p->changes += lower != NULL;
        s = lower ? replace(&r, n, lower) : rebuild_keep(&r, n);
        if (s == RLX_OK && lower)
            s = check_growth(l, &r);
    }
    l->made += r.made.node.len;
    return rebuild_finish(&r, s);
}

/* The graphs that g names before g itself; the verifier bounds how deep they nest. */
static rlx_status lower_inner_first(struct lowering *l, struct ir_graph *g)
{
    if (l->done[g->id])
        return RLX_OK;
    l->done[g->id] = true;
    IR_EACH(n, g) {
        size_t count;
        const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);
        for (size_t i = 0; i < count; i++) {
            const void *at = (const char *)&n->attr + a[i].offset;
            attr_GRAPH inner = a[i].kind == ATTR_GRAPH ? *(const attr_GRAPH *)at : -1;
            if (inner < 0)
                continue;
            TRY(lower_inner_first(l, g->mod->graph.at[inner]));
            l->endless[g->id] |= l->endless[inner];
        }
        l->endless[g->id] |= n->op == RLX_OP_while && n->attr.while_.max_iterations == RLX_ABSENT;
    }
    return lower_graph(l, g);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    size_t count = m->graph.len;
    bool *marks = mem_alloc(m->mem, 2 * count + 1);
    struct lowering l = {.run = p, .done = marks, .endless = marks ? marks + count : NULL};
    rlx_status s = marks ? RLX_OK : diag_no_memory(p->diag, 2 * count);
    size_t written = 0;

    for (size_t i = 0; i < count; i++)
        written += m->graph.at[i]->node.len;
    l.most = written > MOST_MADE / 16 ? 16 * written : MOST_MADE;
    if (s == RLX_OK) /* graphs that nothing comes to stay as they are */
        s = lower_inner_first(&l, ir_entry(m));
    mem_free(m->mem, marks, 2 * count + 1);
    return s;
}

const struct pass pass_lower_control_flow = {
    "lower-control-flow", "branches and loops as straight lines, where the device lacks them", run};
