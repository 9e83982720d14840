/* lower.h: how a backend says which steps a node becomes. The steps have operands but no addresses;
 * lower/select.c calls the backend for every node that is neither a leaf nor a view. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "base/arena.h"
#include "ir/graph.h"
#include "plan/steps.h"

struct step_builder; /* lower/select.c */

struct select_options {
    bool check_indices;
    int64_t loop_limit; /* iterations of a loop without a bound of its own; 0: no limit */
};

struct select_call {
    const struct ir_graph *graph;
    const struct ir_node *node;
    ir_value id;
    const struct select_options *options;
    struct arena *arena; /* lives as long as the program */
    struct diag *diag;
    struct step_builder *steps;
};

/* Begin a step; its operands follow, in the order the work expects them. */
rlx_status select_step(struct select_call *c, const char *name, void *work);
rlx_status select_read(struct select_call *c, ir_value v, bool in_place);
rlx_status select_update(struct select_call *c, ir_value v);
rlx_status select_write(struct select_call *c, ir_value v);
/* Bytes that live during this step only; they come last among the operands. */
rlx_status select_scratch(struct select_call *c, uint64_t bytes);

/* lower/select.c: the steps of a whole graph. leaf_offset[v]: where a param or state lies in its
 * region (other entries unused). Values are numbered like nodes; scratch follows. */
struct backend;
rlx_status lower_select(const struct ir_graph *g, struct backend *b,
                        const struct select_options *options, const uint64_t *leaf_offset,
                        struct arena *arena, struct steps **out, struct diag *d);
/* Does the node's value lie inside its first operand's, `offset` bytes in, with no step at all?
 * Only where a state under it is written before it is last read, select gives it bytes and a step
 * of its own. */
bool lower_is_view(const struct ir_graph *g, const struct ir_node *n, uint64_t *offset);

#endif
