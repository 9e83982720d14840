/* facts.h: what several passes ask about a node before they touch it. */
#ifndef PASS_FACTS_H
#define PASS_FACTS_H

#include "ir/graph.h"

/* Always the same result for the same operands, and nothing besides: not a leaf, writer, random or
 * custom op, nor control flow over graphs that hold one. */
bool node_is_pure(const struct ir_module *m, const struct ir_node *n);
/* No attribute holds a symbolic dim. */
bool node_attrs_are_static(const struct ir_node *n);
bool node_has_graphs(const struct ir_node *n); /* control flow */
/* used[i]: graph i is the entry, or the entry comes to it. used: all false, as many as there are.
 */
void graphs_in_use(const struct ir_module *m, bool *used);
/* A state that some node of the graph writes: where it is read decides what is read. */
bool value_is_written_state(const struct ir_graph *g, ir_value v);

/* One value stands for another in every later operand and output. A pass that only redirects walks
 * the nodes in order, calls forward_operands for each, and forward_to where one is replaced; what
 * nothing reads any more is left for dce. */
struct forward {
    struct ir_graph *g;
    ir_value *to; /* by value */
};
rlx_status forward_begin(struct forward *f, struct ir_graph *g, struct diag *d);
void forward_operands(const struct forward *f, struct ir_node *n);
/* `by` is an earlier value; it takes the label over if it has none. */
void forward_to(const struct forward *f, const struct ir_node *n, ir_value by);
void forward_end(struct forward *f); /* redirects the outputs */

#endif
