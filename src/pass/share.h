/* share.h: nodes whose result another node of the graph, their keeper, has computed already. */
#ifndef PASS_SHARE_H
#define PASS_SHARE_H

#include "pass/pass.h"
#include "pass/rebuild.h"

struct sharing {
    /* The node that has n's result in its own; NULL: there is none. */
    const struct ir_node *(*keeper_of)(const struct ir_graph *g, const struct ir_node *n);
    /* n's result, taken out of what its keeper, now `kept`, gives. */
    rlx_status (*take)(struct rebuild *r, const struct ir_node *n, ir_value kept, ir_value *out);
};

/* In every graph of the module. A keeper moves to where the first of its sharers was; its operands
 * are theirs, so they are there. */
rlx_status share_nodes(struct pass_run *p, struct ir_module *m, const struct sharing *s);
/* Have both the same operands, and none that is written in between? */
bool share_operands(const struct ir_graph *g, const struct ir_node *a, const struct ir_node *b);

#endif
