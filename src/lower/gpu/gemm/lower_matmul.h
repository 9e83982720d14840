/* lower_matmul.h: a product of matrices as kernels see it (kernels/matmul). */
#ifndef LOWER_MATMUL_H
#define LOWER_MATMUL_H

#include "lower/gpu/gemm/lower_tiles.h"

/* Innermost batch axes that b does not have are rows of a; what remains of the batch are items. */
struct gpu_matmul {
    struct gpu_arg a, b, y;
    struct gpu_arg room; /* for sums of parts of the depth */
    rlx_dtype dtype, sum;
    bool a_half, b_half; /* f16, whatever the dtype */
    bool at, bt;         /* stored as [k,m], as [n,k] */
    uint64_t b_apart;    /* elements from row to row of b; 0: as many as a row has */
    struct gpu_product of;
    int32_t rank; /* of the items, at least 1 */
    uint64_t size[RLX_MAX_RANK], a_step[RLX_MAX_RANK], b_step[RLX_MAX_RANK];
    struct gpu_epilogue end;
};

static inline rlx_dtype gpu_a_type(const struct gpu_matmul *p)
{
    return p->a_half ? RLX_DTYPE_f16 : p->dtype;
}
static inline rlx_dtype gpu_b_type(const struct gpu_matmul *p)
{
    return p->b_half ? RLX_DTYPE_f16 : p->dtype;
}

/* From row to row, as they are stored. */
static inline uint64_t gpu_a_row(const struct gpu_matmul *p)
{
    return p->at ? p->of.m : p->of.k;
}
static inline uint64_t gpu_b_row(const struct gpu_matmul *p)
{
    return p->b_apart ? p->b_apart : p->bt ? p->of.k : p->of.n;
}

/* The words size, a_step and b_step: where items lie. */
void gpu_matmul_item_words(struct gpu_call *c, const struct gpu_matmul *p);
/* The kernel of the table that costs least; several times where operands are too large. */
void gpu_matmul_launch(struct gpu_call *c, const struct gpu_matmul *p);
/* Where a kernel cannot see all of it at once, the launches of its pieces; false: it can, or there
 * are none. */
bool gpu_matmul_in_pieces(struct gpu_call *c, const struct gpu_matmul *p);

#endif
