/* expand.h: what an op that a device has no kernels for becomes. */
#ifndef PASS_EXPAND_H
#define PASS_EXPAND_H

#include "pass/rebuild.h"

/* Adds the nodes that stand for n; in[] are its operands in the new graph. */
typedef rlx_status (*expander)(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                               ir_value *out);
expander expander_of(enum op_family f); /* NULL: it has none */

/* Shorthands. Types are those of the new graph. */
static inline const struct ir_type *expand_type(const struct rebuild *r, ir_value v)
{
    return ir_type_of(&r->made, v);
}
rlx_status expand_1(struct rebuild *r, rlx_op op, ir_value a, ir_value *out);
rlx_status expand_2(struct rebuild *r, rlx_op op, ir_value a, ir_value b, ir_value *out);
rlx_status expand_narrow(struct rebuild *r, ir_value x, int64_t axis, ir_dim start, ir_dim len,
                         ir_value *out);
rlx_status expand_reshape(struct rebuild *r, ir_value x, rlx_list shape, ir_value *out);
rlx_status expand_transpose(struct rebuild *r, ir_value x, rlx_list perm, ir_value *out);
rlx_status expand_cast(struct rebuild *r, ir_value x, rlx_dtype to,
                       ir_value *out); /* or x itself */
/* x unchanged when there is no activation. */
rlx_status expand_activation(struct rebuild *r, rlx_op activation, ir_value x, ir_value *out);

/* expand_blocks.c */
rlx_status expand_attention_block(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                  ir_value *out);
rlx_status expand_transformer_layer(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                    ir_value *out);
/* expand_dot.c */
rlx_status expand_dot_general(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out);
/* expand_region.c */
rlx_status expand_region(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out);
rlx_status expand_batch_region(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                               ir_value *out);
rlx_status expand_transform(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                            ir_value *out);

#endif
