/* gpu_index_check.h: indices that a kernel reads: what type they are, and telling of those out of
 * range.
 */
#ifndef LOWER_GPU_INDEX_CHECK_H
#define LOWER_GPU_INDEX_CHECK_H

#include "lower/gpu.h"

/* The constants I and IK of a kernel that uses lib/index. */
void gpu_index_type(struct gpu_call *c, rlx_dtype t);

/* What a kernel that tells of bad indices itself, with tell_fault of lib/index, binds for it; it
 * takes c->step as a word too. */
static inline struct gpu_arg gpu_fault(void)
{
    return (struct gpu_arg){.operand = GPU_FAULT, .bytes = 64};
}

/* A launch before the op's own: the first of the indices below `lowest` or not below `limit` is
 * reported to the run. It says nothing about whether the run wants to know: ask c->check_indices,
 * unless the op always tells. */
void gpu_check_indices(struct gpu_call *c, struct gpu_arg index, rlx_dtype dtype, uint64_t count,
                       int64_t lowest, int64_t limit);

/* The same for coordinates: index k must be within 0 .. limit[k % parts]-1. */
void gpu_check_coordinates(struct gpu_call *c, struct gpu_arg index, rlx_dtype dtype,
                           uint64_t count, const int64_t *limit, int32_t parts);

#endif
