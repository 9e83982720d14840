/* onnx_build.h: pieces that several families of ONNX ops are made of. */
#ifndef IMPORT_ONNX_BUILD_H
#define IMPORT_ONNX_BUILD_H

#include "import/onnx/read/onnx_call.h"

/* 0, 1, 2 ..: n of them; n may hold symbols. */
ir_value onnx_iota(struct onnx_call *c, ir_dim n, rlx_dtype dtype);
/* Numbers that a handler worked out. */
ir_value onnx_table_of(struct onnx_call *c, const struct ir_type *t, const void *data);
/* A size as a scalar of that type. */
ir_value onnx_dim_value(struct formula *f, ir_dim d, rlx_dtype dtype);
/* Indices into an axis of n, of which negative ones count from its end; input i. */
ir_value onnx_index_in(struct onnx_call *c, size_t i, ir_dim n);
ir_value onnx_wrap_index(struct onnx_call *c, ir_value index, ir_dim n);
/* x[start], x[start+step] .. along an axis, len of them. */
ir_value onnx_slice_of(struct formula *f, ir_value x, int32_t axis, ir_dim start, ir_dim len,
                       int64_t step);
/* Elements of that value around x. */
ir_value onnx_pad_of(struct formula *f, ir_value x, rlx_list before, rlx_list after, double value);
ir_value onnx_cumsum_of(struct formula *f, ir_value x, int32_t axis, bool exclusive);
ir_value onnx_clamp_of(struct formula *f, ir_value x, double lo, double hi);
ir_value onnx_times(struct formula *f, ir_value x, double by);
ir_value onnx_plus(struct formula *f, ir_value x, double n);
/* onnx_contract.c: alpha A B + beta C of the node's inputs and attributes. */
ir_value onnx_gemm_of(struct onnx_call *c);
/* The product of dims [from, to) of a type; a failure where it has no expression. */
ir_dim onnx_product(struct onnx_call *c, const struct ir_type *t, int32_t from, int32_t to);

/* onnx_select.c: the indices for which a list of booleans holds, in order; after them, up to its
 * length, zeros. And how many there are. */
struct onnx_kept {
    ir_value index; /* i64 [n] */
    ir_value count; /* i64 [] */
};
struct onnx_kept onnx_keep(struct onnx_call *c, ir_value mask);
/* what[i] written to place[i] of a list as long; a place past its end leaves it out, and where
 * nothing is written is 0. */
ir_value onnx_place(struct onnx_call *c, ir_value place, ir_value what);
/* x / by and x % by, of integers from 0 on. */
ir_value onnx_quotient(struct formula *f, ir_value x, ir_dim by);
ir_value onnx_remainder(struct formula *f, ir_value x, ir_dim by);
/* Values of an axis, by index. */
ir_value onnx_pick(struct formula *f, ir_value x, ir_value index, int32_t axis);

#endif
