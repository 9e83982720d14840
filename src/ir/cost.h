/* cost.h: how much arithmetic a node asks for, by its definition: what profiles divide by. */
#ifndef IR_COST_H
#define IR_COST_H

#include "ir/graph.h"

/* A multiply-add is two; an elementwise function of any kind is one per element; moving data is
 * none. 0 also where it is not known: dims that are not static, loops whose length the data tells,
 * custom ops, decompositions. */
uint64_t ir_node_flops(const struct ir_graph *g, const struct ir_node *n);

#endif
