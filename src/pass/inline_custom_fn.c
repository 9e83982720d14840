/* inline_custom_fn.c: put the forward graph of a custom_fn in its place.
 *
 *     %y = custom_fn %x fwd_graph=@f      =>      the nodes of @f, with %x for its input
 *
 * Needs:  nothing.      Keeps: types, order, labels. Runs before differentiation has any use for
 * the node, or after it; a plain compile never differentiates.
 * Leaves: functions that nothing names any more as they are. Every graph that the entry still comes
 * to has grown by no more than ir_check_unfolded counted. */
#include "pass/inline.h"
#include "pass/pass.h"

static rlx_status replace(struct rebuild *r, const struct ir_node *n)
{
    const struct ir_graph *sub = r->old->mod->graph.at[n->attr.custom_fn.fwd_graph];
    struct arena *arena = &r->old->mod->arena;
    ir_value *in = arena_array(arena, ir_value, (size_t)n->in_count);
    ir_value *out = arena_array(arena, ir_value, sub->output.len);

    if (!in || !out)
        return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *in);
    for (int32_t k = 0; k < n->in_count; k++)
        in[k] = rebuild_map(r, n->in[k]);
    TRY(inline_graph(r, sub, in, out));
    rebuild_replace(r, n, out[0]);
    return RLX_OK;
}

static rlx_status rewrite(struct pass_run *p, struct ir_graph *g)
{
    struct rebuild r;
    rlx_status s = rebuild_begin(&r, g, p->diag);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        bool is_call = n->op == RLX_OP_custom_fn;

        s = is_call ? replace(&r, n) : rebuild_keep(&r, n);
        p->changes += is_call;
    }
    return rebuild_finish(&r, s);
}

static bool has_custom_fn(const struct ir_graph *g)
{
    IR_EACH(n, g) {
        if (n->op == RLX_OP_custom_fn)
            return true;
    }
    return false;
}

/* The graph itself before those it names: what only functions named is not among these then. */
static rlx_status inline_into(struct pass_run *p, struct ir_module *m, int32_t id, bool *done)
{
    struct ir_graph *g = m->graph.at[id];

    if (done[id])
        return RLX_OK;
    done[id] = true;
    while (has_custom_fn(g)) /* its forward graph may hold another; graphs do not recurse */
        TRY(rewrite(p, g));
    for (size_t i = 0; i < g->node.len; i++) {
        size_t count;
        const struct attr_info *a = family_attrs(op_info(g->node.at[i].op)->family, &count);
        for (size_t k = 0; k < count; k++) {
            const void *at = (const char *)&g->node.at[i].attr + a[k].offset;
            if (a[k].kind == ATTR_GRAPH && *(const attr_GRAPH *)at >= 0)
                TRY(inline_into(p, m, *(const attr_GRAPH *)at, done));
        }
    }
    return RLX_OK;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    bool *done = mem_alloc(m->mem, m->graph.len);

    if (!done)
        return diag_no_memory(p->diag, m->graph.len);
    rlx_status s = inline_into(p, m, 0, done);
    mem_free(m->mem, done, m->graph.len);
    return s;
}

const struct pass pass_inline_custom_fn = {"inline-custom-fn", "inline functions of the graph",
                                           run};
