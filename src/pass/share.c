/* share.c: see share.h. */
#include "pass/share.h"

#include "pass/facts.h"

bool share_operands(const struct ir_graph *g, const struct ir_node *a, const struct ir_node *b)
{
    if (a->in_count != b->in_count)
        return false;
    for (int32_t i = 0; i < a->in_count; i++)
        if (a->in[i] != b->in[i] || value_is_written_state(g, a->in[i]))
            return false;
    return true;
}

static rlx_status share(struct rebuild *r, const struct ir_node *n, const struct ir_node *keeper,
                        const struct sharing *s)
{
    ir_value kept = ir_id(r->old, keeper), out;

    if (rebuild_map(r, kept) == RLX_NO_VALUE)
        TRY(rebuild_keep(r, keeper));
    TRY(s->take(r, n, rebuild_map(r, kept), &out));
    rebuild_replace(r, n, out);
    return RLX_OK;
}

static rlx_status rewrite(struct pass_run *p, struct ir_graph *g, const struct sharing *how)
{
    struct rebuild r;
    rlx_status s = rebuild_begin(&r, g, p->diag);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i], *keeper = how->keeper_of(g, n);
        if (keeper)
            s = share(&r, n, keeper, how);
        else if (rebuild_map(&r, (ir_value)i) == RLX_NO_VALUE)
            s = rebuild_keep(&r, n);
        p->changes += keeper != NULL;
    }
    return rebuild_finish(&r, s);
}

rlx_status share_nodes(struct pass_run *p, struct ir_module *m, const struct sharing *s)
{
    for (size_t i = 0; i < m->graph.len; i++) {
        bool any = false;
        IR_EACH(n, m->graph.at[i])
            any = any || s->keeper_of(m->graph.at[i], n);
        if (any)
            TRY(rewrite(p, m->graph.at[i], s));
    }
    return RLX_OK;
}
