/* dce.c: drop what no output and no writer needs.
 *
 *     %a = exp %x
 *     %y = neg %x                =>      %y = neg %x
 *     return %y                          return %y
 *
 * Needs:  nothing.      Keeps: order, labels; a sub-graph's inputs, whose number and order are its
 * interface. */
#include "pass/pass.h"
#include "pass/rebuild.h"

static rlx_status sweep(struct pass_run *p, struct ir_graph *g, const bool *live)
{
    struct rebuild r;
    rlx_status s = rebuild_begin(&r, g, p->diag);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++)
        if (live[i])
            s = rebuild_keep(&r, &g->node.at[i]);
    return rebuild_finish(&r, s);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    for (size_t i = 0; i < m->graph.len; i++) {
        struct ir_graph *g = m->graph.at[i];
        size_t dead = 0, nodes = g->node.len;
        bool *live = mem_alloc(m->mem, nodes + 1);
        rlx_status s = live ? RLX_OK : diag_no_memory(p->diag, nodes);

        if (live)
            ir_mark_live(g, live);
        for (size_t k = 0; live && k < nodes; k++)
            dead += !live[k];
        if (dead)
            s = sweep(p, g, live);
        mem_free(m->mem, live, nodes + 1);
        TRY(s);
        p->changes += dead;
    }
    return RLX_OK;
}

const struct pass pass_dce = {"dce", "drop nodes that nothing needs", run};
