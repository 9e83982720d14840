/* lower_sort.h: rows in order, as numbers of their elements (kernels/sort.rlk). */
#ifndef LOWER_SORT_H
#define LOWER_SORT_H

#include "lower/gpu.h"

/* The constants T, K, WIDE and KIND of a kernel that uses lib/order. */
void gpu_order_type(struct gpu_call *c, rlx_dtype t);
/* Bytes of a key. */
uint64_t gpu_key_bytes(rlx_dtype t);

/* Elements [n] of each row, `inner` apart; rows of a tensor [.., n, inner]. */
struct gpu_sort_rows {
    struct gpu_arg x;
    rlx_dtype dtype;
    uint64_t rows, n, inner;
    bool down; /* the largest first */
    bool near; /* x [n,n] is distances: only those that count, and to others; see knn */
};

/* The first k of each row in order: u32 numbers ids[row * m + i] in scratch, and their keys. What
 * does not count is 0xffffffff, and comes last. */
struct gpu_order {
    struct gpu_arg keys, ids;
    uint64_t m;
};
struct gpu_order gpu_order_rows(struct gpu_call *c, const struct gpu_sort_rows *r, uint64_t k);

#endif
