/* inline_custom_fn.c: put the forward graph of a custom_fn in its place.
 *
 *     %y = custom_fn %x fwd_graph=@f      =>      the nodes of @f, with %x for its input
 *
 * Needs:  nothing.      Keeps: types, order, labels. Runs before differentiation has any use for
 * the node, or after it; a plain compile never differentiates. */
#include "pass/pass.h"
#include "pass/rebuild.h"

/* Copies the nodes of a sub-graph into the graph being made; out[i] is its i-th output. */
static rlx_status inline_graph(struct rebuild *r, const struct ir_graph *sub, const ir_value *in,
                               ir_value *out)
{
    struct arena *arena = &r->old->mod->arena;
    ir_value *map = arena_array(arena, ir_value, sub->node.len);
    size_t taken = 0;

    if (!map)
        return diag_no_memory(r->diag, sub->node.len * sizeof *map);
    for (size_t i = 0; i < sub->node.len; i++) {
        const struct ir_node *n = &sub->node.at[i];
        ir_value *operand = arena_array(arena, ir_value, (size_t)n->in_count);
        if (!operand)
            return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *operand);
        if (n->op == RLX_OP_input) {
            map[i] = in[taken++];
            continue;
        }
        for (int32_t k = 0; k < n->in_count; k++)
            operand[k] = map[n->in[k]];
        TRY(rebuild_add(r, n->op, operand, n->in_count, &n->attr, &map[i]));
    }
    *out = map[sub->output.at[0]];
    return RLX_OK;
}

static rlx_status rewrite(struct pass_run *p, struct ir_graph *g)
{
    struct rebuild r;
    rlx_status s = rebuild_begin(&r, g, p->diag);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        ir_value *in, out = RLX_NO_VALUE;

        if (n->op != RLX_OP_custom_fn) {
            s = rebuild_keep(&r, n);
            continue;
        }
        in = arena_array(&g->mod->arena, ir_value, (size_t)n->in_count);
        if (!in) {
            s = diag_no_memory(p->diag, (size_t)n->in_count * sizeof *in);
            break;
        }
        for (int32_t k = 0; k < n->in_count; k++)
            in[k] = rebuild_map(&r, n->in[k]);
        s = inline_graph(&r, g->mod->graph.at[n->attr.custom_fn.fwd_graph], in, &out);
        if (s == RLX_OK)
            rebuild_replace(&r, n, out);
        p->changes++;
    }
    if (s == RLX_OK)
        s = rebuild_finish(&r);
    if (s != RLX_OK)
        rebuild_drop(&r);
    return s;
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
