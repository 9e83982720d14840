/* gpu_joints.h: steps that several nodes share (lower/joint.h), on a GPU. */
#ifndef LOWER_GPU_JOINTS_H
#define LOWER_GPU_JOINTS_H

#include "lower/gpu.h"

/* x [.., k], w [3 n, k] and b [3 n], whose product is [.., 3 n], become those of three products of
 * one x: [1, m, k], [3, n, k], [3, 1, n] and [3, m, n]. The bytes are the same. Of a w [k, 3 n] the
 * three are columns: it becomes [3, k, n], whose rows lie as far apart as is returned; else 0. */
uint64_t gpu_split_types(const struct ir_node *n, struct ir_type *in, int32_t in_count,
                         struct ir_type *out);

/* A norm, and the sum of operands 0 and 1 that it is of; gamma and beta follow them. */
void gpu_lower_norm_tee(struct gpu_call *c);
/* Of the last cell of an lstm, at the sizes of the call. */
uint64_t gpu_cell_bytes(const struct gpu_call *c);

#endif
