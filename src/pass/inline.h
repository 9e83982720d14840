/* inline.h: the nodes of one graph in the middle of another. */
#ifndef PASS_INLINE_H
#define PASS_INLINE_H

#include "pass/rebuild.h"

/* Copies a sub-graph of the same module into the graph being made. in[i] stands for its i-th input,
 * in the order of ids; out[i] is then its i-th output. */
rlx_status inline_graph(struct rebuild *r, const struct ir_graph *sub, const ir_value *in,
                        ir_value *out);

#endif
