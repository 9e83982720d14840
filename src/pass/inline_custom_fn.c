/* inline_custom_fn.c: put the forward graph of a custom_fn in its place.
 *
 *     %y = custom_fn %x fwd_graph=@f      =>      the nodes of @f, with %x for its input
 *
 * Needs:  nothing.      Keeps: types, order, labels. Runs before differentiation has any use for
 * the node, or after it; a plain compile never differentiates. */
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

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    /* The forward graph may hold another custom_fn; graphs do not recurse, so this ends. */
    for (size_t i = 0; i < m->graph.len; i++)
        while (has_custom_fn(m->graph.at[i]))
            TRY(rewrite(p, m->graph.at[i]));
    return RLX_OK;
}

const struct pass pass_inline_custom_fn = {"inline-custom-fn", "inline functions of the graph",
                                           run};
