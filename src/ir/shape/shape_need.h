/* shape_need.h: refusals that many shape rules share, each a status with its sentence.
 *
 * shape.h answers questions about dims; these turn the answers into failures. All of them wait for
 * binding where a symbol leaves the answer open; an overflowed size (RLX_DIM_FAILED) is LIMIT. */
#ifndef IR_SHAPE_NEED_H
#define IR_SHAPE_NEED_H

#include "ir/shape/shape.h"

/* f32 counts exactly up to here: the most that ops with f32 indices can tell apart. */
#define SHAPE_MAX_INDEXED ((int64_t)1 << 24)

/* SHAPE, with both sizes: "<op>: <what> differ: 8 and 9". `what` is a literal, in the plural. */
rlx_status shape_need_equal(struct shape_call *c, ir_dim a, ir_dim b, const char *what);
/* a >= b, else SHAPE. */
rlx_status shape_need_least(struct shape_call *c, ir_dim a, ir_dim b, const char *what);
/* a <= limit, else SHAPE. */
rlx_status shape_need_most(struct shape_call *c, ir_dim a, int64_t limit, const char *what);
/* by divides a, else SHAPE. */
rlx_status shape_need_multiple(struct shape_call *c, ir_dim a, int64_t by, const char *what);
/* a / by, where there is no remainder. */
rlx_status shape_divided(struct shape_call *c, ir_dim a, int64_t by, const char *what, ir_dim *out);
/* The operand has exactly this shape, else SHAPE naming it and both shapes. */
rlx_status shape_need_dims(struct shape_call *c, int32_t operand, const ir_dim *dim, int32_t rank);
/* Shape and element type. */
rlx_status shape_need_same_type(struct shape_call *c, int32_t operand, int32_t as);

rlx_status shape_need_dtype(struct shape_call *c, int32_t operand, rlx_dtype dtype);
/* The operand's dtype is that of x, or f32 where x is f16 or bf16: norms' scales, rope's tables. */
rlx_status shape_need_dtype_or_f32(struct shape_call *c, int32_t operand, int32_t x);
/* The first `count` operands: floats, all of one type. */
rlx_status shape_need_floats(struct shape_call *c, int32_t count);
/* Floats, i32, i64, c64: what contractions take. */
rlx_status shape_need_contractable(struct shape_call *c, int32_t operand);

/* lo <= v <= hi, else ATTRIBUTE. hi INT64_MAX: no upper end. */
rlx_status shape_need_range(struct shape_call *c, const char *attr, int64_t v, int64_t lo,
                            int64_t hi);
/* eps of a norm, or the like: finite and not negative. */
rlx_status shape_need_nonnegative(struct shape_call *c, const char *attr, float v);
/* A unary op that takes this type, or none. */
rlx_status shape_need_activation(struct shape_call *c, rlx_op activation, rlx_dtype dtype);

/* Rules that other rules are made of. */

/* The gradients of the first `count` operands one after another, flat: [|a| + |b| + ..]. */
rlx_status shape_packed_gradients(struct shape_call *c, int32_t count);

/* The dims of [..., m, k] x [..., k, n], rank >= 2 each, into out[RLX_MAX_RANK]. */
rlx_status shape_matmul_dims(struct shape_call *c, const struct ir_type *a, const struct ir_type *b,
                             bool transpose_a, bool transpose_b, ir_dim *out, int32_t *rank);
/* Rotary tables [P,T] or [batch,P,T], P >= seq, T >= pairs: the operand and the one after it. */
rlx_status shape_need_rope_tables(struct shape_call *c, int32_t operand, ir_dim batch, ir_dim seq,
                                  int64_t pairs);
/* A mask: [b,sk], [b,sq,sk] or [b,h,sq,sk], where b, h and sq may be 1. */
rlx_status shape_need_mask(struct shape_call *c, int32_t operand, ir_dim batch, int64_t heads,
                           ir_dim queries, ir_dim keys);
/* Head counts of attention: kv_heads made definite. */
rlx_status shape_need_heads(struct shape_call *c, int64_t heads, int64_t *kv_heads,
                            int64_t head_dim);
/* logit_softcap is above 0, or NaN, which is absence. */
rlx_status shape_need_softcap(struct shape_call *c, float softcap);

#endif
