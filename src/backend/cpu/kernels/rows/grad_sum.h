/* grad_sum.h: gradients that are sums: of terms over the axes on which an operand was broadcast. */
#ifndef BACKEND_GRAD_SUM_H
#define BACKEND_GRAD_SUM_H

#include "backend/cpu/kernels/common.h"

/* Axes of a dense tensor, and how far apart their elements lie. */
struct grad_axes {
    int32_t rank;
    int64_t dim[RLX_MAX_RANK], stride[RLX_MAX_RANK];
    int64_t count;
};

/* Terms in the shape of a tensor, of which some axes stay and the others are summed up. Neighbours
 * of one kind are joined; `inner` is the last axis that results, and what it is decides how the
 * work goes:
 *
 *     columns   it stays: rows of `inner` terms are added to `inner` sums side by side
 *     else      it goes: `inner` terms at a time become part of one sum */
struct grad_sum {
    struct grad_axes kept, gone; /* without `inner` */
    int64_t inner;
    bool columns;
    bool empty;            /* no terms: all sums are 0 */
    int64_t outputs;       /* sums */
    int64_t set;           /* columns: rows per sum; otherwise terms per sum */
    int64_t tiles;         /* columns: of CPU_TILE sums */
    int64_t chunk, chunks; /* the set is cut where there are few sums; chunks are added in order */
};

/* The terms that elements pos .. pos+n-1 of the tensor give, n <= CPU_TILE. */
typedef void (*grad_term_fn)(const void *ctx, int64_t pos, int64_t n, double *out);

#define grad_sum_like CPU_NAME(grad_sum_like)
#define grad_sum_axis CPU_NAME(grad_sum_axis)
#define grad_sum_scratch CPU_NAME(grad_sum_scratch)
#define grad_sum_run CPU_NAME(grad_sum_run)

/* Terms in the shape of t, un-broadcast to the shape of `like` (ops-core.md 1.10). */
void grad_sum_like(struct grad_sum *g, const struct cpu_tensor *t, const struct cpu_tensor *like);
/* Terms in the shape of t, summed over all axes but one. */
void grad_sum_axis(struct grad_sum *g, const struct cpu_tensor *t, int64_t axis);
/* Doubles of scratch. */
uint64_t grad_sum_scratch(const struct grad_sum *g);
/* The sums, as elements of type `to` from dst on. */
void grad_sum_run(const struct grad_sum *g, struct pool *pool, grad_term_fn term, const void *ctx,
                  double *scratch, rlx_dtype to, void *dst);

#endif
