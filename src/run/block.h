/* block.h: copying part of a dense tensor to part of another, along any axis.
 *
 *     at most one run of bytes per index of the outer axes; a single run where both sides are dense
 */
#ifndef RUN_BLOCK_H
#define RUN_BLOCK_H

#include "ir/type.h"

struct block_side {
    const int64_t *dim;   /* of the whole tensor */
    const int64_t *start; /* where the block begins; NULL: at the start of every axis */
};

struct block {
    int32_t rank;
    const int64_t *dim; /* of the block */
    size_t size;        /* bytes per element */
    struct block_side to, from;
};

/* Calls fn for every run of bytes that is contiguous on both sides, in ascending order (reverse:
 * in descending order, for moving to higher places of the same memory). */
typedef rlx_status (*block_fn)(void *user, uint64_t to, uint64_t from, uint64_t bytes);
rlx_status block_each(const struct block *b, bool reverse, block_fn fn, void *user);

#endif
