/* lower_dense.h: what the lowerings of dense linear algebra share. Matrices are computed with in R,
 * f64 where the device has it: see kernels/lib/dense.rlk. */
#ifndef LOWER_DENSE_H
#define LOWER_DENSE_H

#include "lower/gpu.h"

#define DENSE_BLOCK 32 /* as in the kernels */

static inline rlx_dtype dense_real(const struct gpu_call *c)
{
    return c->features->f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
}

static inline uint64_t dense_bytes(const struct gpu_call *c)
{
    return rlx_dtype_size(dense_real(c));
}

/* How large the call's first operand is, as a word: see kernels/dense.rlk. */
struct gpu_arg dense_measure(struct gpu_call *c);

/* Matrices [n][pitch] side by side with their right sides from column n on; swaps [items][n]. */
struct dense_lu {
    struct gpu_arg w, swaps;
    uint64_t items, n, r, pitch;
};

/* a [items][n][n] and b [items][n][r], b nothing where r is 0. */
struct dense_lu dense_factor(struct gpu_call *c, struct gpu_arg a, struct gpu_arg b, uint64_t items,
                             uint64_t n, uint64_t r);

#endif
