/* infer.h: one node through its shape rule, with everything around it that holds for all ops. */
#ifndef IR_INFER_H
#define IR_INFER_H

#include "ir/graph.h"

/* Arity, attribute ranges, then the op's rule. attr may be normalised; node_id is the one the node
 * has or will have. note_checks: record what only binding can decide. */
rlx_status ir_infer_node(struct ir_graph *g, rlx_op op, union ir_attr *attr, const ir_value *in,
                         int32_t in_count, int32_t node_id, bool note_checks, struct ir_type *out,
                         struct diag *d);
/* The same for operands of these types: what the node would be if `in` had them. */
rlx_status ir_infer_types(struct ir_graph *g, rlx_op op, union ir_attr *attr,
                          const struct ir_type *const *types, const ir_value *in, int32_t in_count,
                          int32_t node_id, bool note_checks, struct ir_type *out, struct diag *d);

#endif
