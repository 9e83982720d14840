/* batch.c: values for many examples at once. Node by node from the first that depends on an example
 * to the last that is wanted; what depends on none stays as it is, and is computed once. */
#include "autodiff/batch.h"

#include <string.h>

static const struct {
    batch_rule make;
    const char *operands;
} rules[FAMILY_count] = {
#define BATCH(family, rule, operands) [FAMILY_##family] = {batch_##rule, operands},
#include "ir/ops.def"
};

struct batch_walk {
    struct ir_graph *g;
    ir_dim size;
    ir_value *to; /* by value: the same for all examples; RLX_NO_VALUE: it is the same in each */
    bool *used;   /* by value: something that is wanted depends on it */
    struct diag *diag;
};

static rlx_status cannot(const struct ir_graph *g, const struct ir_node *n, struct diag *d)
{
    diag_at(d, op_info(n->op)->name, ir_id(g, n), n->label);
    return diag_fail(d, RLX_ERROR_NO_RULE, "%s cannot be done for many examples at once: %s",
                     op_info(n->op)->name,
                     op_is(n->op, OP_RANDOM) ? "each would draw the same numbers"
                                             : "there is one state for all");
}

/* Operands as they are for all examples; false: none depends on one. */
static bool take_operands(const struct batch_walk *w, struct batch *b)
{
    bool any = false;

    for (int32_t i = 0; i < b->n->in_count; i++) {
        ir_value to = w->to[b->n->in[i]];
        b->has[i] = to != RLX_NO_VALUE;
        b->in[i] = b->has[i] ? to : b->n->in[i];
        any |= b->has[i];
    }
    return any;
}

static rlx_status batch_value(struct batch_walk *w, ir_value v)
{
    struct ir_node n = *ir_node(w->g, v); /* nodes move when others are added */
    size_t room = (size_t)n.in_count + 1;
    batch_rule rule = rules[op_info(n.op)->family].make;
    struct batch b = {.f = {.g = w->g, .diag = w->diag, .dtype = n.type.dtype},
                      .n = &n,
                      .node = v,
                      .size = w->size,
                      .operands = rule ? rules[op_info(n.op)->family].operands : "",
                      .in = arena_array(&w->g->mod->arena, ir_value, room),
                      .has = arena_array(&w->g->mod->arena, bool, room)};

    if (!b.in || !b.has)
        return diag_no_memory(w->diag, room * sizeof *b.in);
    if (!take_operands(w, &b))
        return RLX_OK;
    if (op_is(n.op, OP_RANDOM) || ir_written_state(w->g, ir_node(w->g, v)) != RLX_NO_VALUE)
        return cannot(w->g, ir_node(w->g, v), w->diag);
    w->to[v] = rule ? rule(&b) : RLX_NO_VALUE;
    if (w->to[v] == RLX_NO_VALUE && b.f.status == RLX_OK) {
        n = *ir_node(w->g, v);
        take_operands(w, &b);
        w->to[v] = batch_one_by_one(&b);
    }
    return b.f.status;
}

/* Marks what the marked values after `first` are made of. */
static void find_used(struct batch_walk *w, ir_value first, ir_value last)
{
    for (ir_value v = last; v >= first; v--) {
        const struct ir_node *n = ir_node(w->g, v);
        for (int32_t i = 0; w->used[v] && w->to[v] == RLX_NO_VALUE && i < n->in_count; i++)
            w->used[n->in[i]] = true;
    }
}

static rlx_status open_walk(struct batch_walk *w, size_t values)
{
    w->to = arena_array(&w->g->mod->arena, ir_value, values);
    w->used = arena_array(&w->g->mod->arena, bool, values);
    if (!w->to || !w->used)
        return diag_no_memory(w->diag, values * sizeof *w->to);
    for (size_t v = 0; v < values; v++)
        w->to[v] = RLX_NO_VALUE;
    return RLX_OK;
}

static rlx_status run_walk(struct batch_walk *w, ir_value first, ir_value last)
{
    find_used(w, first, last);
    for (ir_value v = first; v <= last; v++)
        if (w->used[v] && w->to[v] == RLX_NO_VALUE)
            TRY(batch_value(w, v));
    return RLX_OK;
}

ir_value batch_nodes(struct batch *b, ir_value first, ir_value out)
{
    struct batch_walk w = {.g = b->f.g, .size = b->size, .diag = b->f.diag};

    b->f.status = open_walk(&w, b->f.g->node.len);
    if (b->f.status != RLX_OK)
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < b->n->in_count; i++)
        if (b->has[i])
            w.to[b->n->in[i]] = b->in[i];
    w.used[out] = true;
    b->f.status = run_walk(&w, first, out);
    return w.to[out];
}

/* What is the same in each example, as often as there are examples. */
static rlx_status repeat(struct ir_graph *g, ir_value v, ir_dim size, ir_value *out, struct diag *d)
{
    struct formula f = {.g = g, .diag = d};
    struct ir_node n = {.op = RLX_OP_expand, .in = &v, .in_count = 1};
    bool has = false;
    struct batch b = {.f = f, .n = &n, .size = size, .in = &v, .has = &has};

    *out = batch_lifted(&b, 0);
    return b.f.status;
}

rlx_status grad_batch(struct ir_graph *g, const ir_value *of, size_t of_count, const ir_value *wrt,
                      const ir_value *batched, size_t count, ir_dim size, ir_value *out,
                      struct diag *d)
{
    struct batch_walk w = {.g = g, .size = size, .diag = d};
    ir_value last = RLX_NO_VALUE;

    TRY(open_walk(&w, g->node.len));
    for (size_t i = 0; i < count; i++)
        w.to[wrt[i]] = batched[i];
    for (size_t i = 0; i < of_count; i++) {
        w.used[of[i]] = true;
        last = of[i] > last ? of[i] : last;
    }
    TRY(run_walk(&w, 0, last));
    for (size_t i = 0; i < of_count; i++) {
        out[i] = w.to[of[i]];
        if (out[i] == RLX_NO_VALUE)
            TRY(repeat(g, of[i], size, &out[i], d));
    }
    return RLX_OK;
}
