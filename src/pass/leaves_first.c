/* leaves_first.c: inputs, params and states before everything else. */
#include "pass/pass.h"
#include "pass/rebuild.h"

static bool is_leaf(const struct ir_node *n)
{
    return op_info(n->op)->family == FAMILY_leaf;
}

static bool has_leaves_first(const struct ir_graph *g)
{
    bool others = false;

    IR_EACH(n, g) {
        if (is_leaf(n) && others)
            return false;
        others |= !is_leaf(n);
    }
    return true;
}

static rlx_status reorder(struct rebuild *r, const struct ir_graph *g)
{
    for (int others = 0; others < 2; others++) {
        IR_EACH(n, g) {
            if (is_leaf(n) == !others)
                TRY(rebuild_keep(r, n));
        }
    }
    return RLX_OK;
}

rlx_status pass_leaves_first(struct ir_module *m, struct diag *d)
{
    for (size_t i = 0; i < m->graph.len; i++) {
        struct ir_graph *g = m->graph.at[i];
        struct rebuild r;
        if (has_leaves_first(g))
            continue;
        TRY(rebuild_begin(&r, g, d));
        TRY(rebuild_finish(&r, reorder(&r, g)));
    }
    return RLX_OK;
}
