/* matmul.h: a product of matrices as kernels see it (kernels/matmul). */
#ifndef LOWER_GPU_MATMUL_H
#define LOWER_GPU_MATMUL_H

#include "lower/gpu/tiles.h"

/* Innermost batch axes that b does not have are rows of a; what remains of the batch are items. */
struct gpu_matmul {
    struct gpu_arg a, b, y;
    struct gpu_arg room; /* for sums of parts of the depth */
    rlx_dtype dtype, sum;
    bool at, bt; /* stored as [k,m], as [n,k] */
    struct gpu_product of;
    int32_t rank; /* of the items, at least 1 */
    uint64_t size[RLX_MAX_RANK], a_step[RLX_MAX_RANK], b_step[RLX_MAX_RANK];
    struct gpu_epilogue end;
};

/* The kernel of the table that costs least. */
void gpu_matmul_launch(struct gpu_call *c, const struct gpu_matmul *p);

#endif
