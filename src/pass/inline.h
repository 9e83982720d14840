/* inline.h: the nodes of one graph in the middle of another, of the same module or of another one.
 */
#ifndef PASS_INLINE_H
#define PASS_INLINE_H

#include "pass/rebuild.h"

/* Copies a sub-graph of the same module into the graph being made. in[i] stands for its i-th input,
 * in the order of ids; out[i] is then its i-th output. */
rlx_status inline_graph(struct rebuild *r, const struct ir_graph *sub, const ir_value *in,
                        ir_value *out);

/* A leaf of the graph that is copied, and the value that stands for it. */
struct inline_binding {
    rlx_str name;
    ir_value value;
};
/* Copies the entry of another module to the end of g, its sub-graphs to g's module; out[i] is then
 * its i-th output. Leaves that are bound must be so to values of their types; the others become
 * leaves of g by their own names. On failure g and its module are as they were. */
rlx_status inline_module(struct ir_graph *g, const struct ir_module *from,
                         const struct inline_binding *bind, size_t count, ir_value *out,
                         struct diag *d);
/* NAME: a binding of no leaf, which may be a misspelt one; MISSING_INPUT: an input has none. */
rlx_status inline_check_names(const struct ir_module *from, const struct inline_binding *bind,
                              size_t count, struct diag *d);

#endif
