/* matmul.h: a product of matrices as kernels see it (kernels/matmul). */
#ifndef LOWER_GPU_MATMUL_H
#define LOWER_GPU_MATMUL_H

#include "lower/gpu/epilogue.h"

/* Innermost batch axes that b does not have are rows of a; what remains of the batch are items. */
struct gpu_matmul {
    struct gpu_arg a, b, y;
    rlx_dtype dtype, sum;
    bool at, bt; /* stored as [k,m], as [n,k] */
    uint64_t items, m, n, k;
    int32_t rank; /* of the items, at least 1 */
    uint64_t size[RLX_MAX_RANK], a_step[RLX_MAX_RANK], b_step[RLX_MAX_RANK];
    struct gpu_epilogue end;
};

/* The kernel of the table that costs least. */
void gpu_matmul_launch(struct gpu_call *c, const struct gpu_matmul *p);

/* Sums of `parts` parts in x, [part][y's elements], become y. */
void gpu_add_parts(struct gpu_call *c, const struct gpu_epilogue *end, struct gpu_arg x,
                   struct gpu_arg y, uint64_t count, uint64_t parts);

/* How many parts of the depth, so that about `want` groups run: no part is shorter than `least`,
 * and the scratch of the sums of all parts stays small. Each is a multiple of `step` deep. */
struct gpu_split {
    uint64_t parts, part;
};
struct gpu_split gpu_split_depth(uint64_t depth, uint64_t outputs, uint64_t groups, uint64_t want,
                                 uint64_t least, uint64_t step);
/* Room for such sums. It grows with every size, so that what fits the largest sizes fits all. */
struct gpu_arg gpu_split_room(struct gpu_call *c, uint64_t depth, uint64_t outputs, uint64_t least);

#endif
