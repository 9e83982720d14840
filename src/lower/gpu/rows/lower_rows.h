/* lower_rows.h: how the invocations of a group share rows (kernels/lib/reduce.rlk). */
#ifndef LOWER_ROWS_H
#define LOWER_ROWS_H

#include "lower/gpu.h"

/* The least power of two that is not below n. */
static inline uint64_t gpu_pow2(uint64_t n)
{
    uint64_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

static inline uint64_t gpu_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gpu_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- rows along an axis, held by the invocations of a group (lower_rows.c) - */

/* [outer, size, inner], rows along size. A group has GPU_GROUP / lanes of them; each lane holds
 * `hold` vectors of `width` elements of its row, or of a chunk of it. */
struct gpu_rows {
    uint64_t rows, size, inner;
    bool side; /* rows lie side by side */
    uint64_t width, lanes, hold, chunks;
};

void gpu_rows_along(struct gpu_rows *r, const struct ir_type *t, int64_t axis);
/* How groups take them. arrays: how many such tensors a group holds; vectors: their elements can be
 * read four at a time. */
void gpu_share_rows(struct gpu_rows *r, rlx_dtype type, uint64_t arrays, bool vectors);
uint64_t gpu_row_groups(const struct gpu_rows *r);
/* Chunks of all rows, at most, of any smaller tensor too. */
uint64_t gpu_row_chunks(const struct gpu_rows *r);
/* The constants A, V, LANES, HOLD and SIDE; the words rows, size and inner. */
void gpu_row_consts(struct gpu_call *c, const struct gpu_rows *r, rlx_dtype type);
void gpu_row_words(struct gpu_call *c, const struct gpu_rows *r);
/* Can all of the tensor be read in vectors of four? */
bool gpu_by_four(const struct gpu_call *c, struct gpu_arg a, rlx_dtype type);

/* Launches that leave the top of each row and its sum of e^(x - top) (lower_softmax.c). */
struct gpu_arg gpu_softmax_stats(struct gpu_call *c, const struct gpu_rows *r, rlx_dtype type,
                                 struct gpu_arg x);

/* ---- sets of elements that become one (lower_reduce.c) ---- */

/* A walk through a tensor, its last axis fastest; at least one axis. */
struct gpu_walk {
    uint64_t size[RLX_MAX_RANK], step[RLX_MAX_RANK], count;
    int32_t rank;
};

/* The axes of a tensor that stay and those that go, neighbours joined. */
struct gpu_sets {
    struct gpu_walk kept, gone;
    bool side; /* sets lie side by side: the fastest axis stays */
    /* how groups take them: rows are sets */
    uint64_t lanes, turn, chunk, chunks;
};

/* gone: a bit for each axis. */
void gpu_find_sets(struct gpu_sets *s, const struct ir_type *t, uint32_t gone);
/* Groups of a launch over them. */
uint64_t gpu_set_groups(const struct gpu_sets *s);
/* The launch's constants that follow from them, and its last words. */
void gpu_set_consts(struct gpu_call *c, const struct gpu_sets *s);
void gpu_set_words(struct gpu_call *c, const struct gpu_sets *s);
/* Where chunks of sets of a tensor of so many elements leave what they come to. The same for all
 * sizes from some on, so that smaller ones never need more. */
struct gpu_arg gpu_chunk_room(struct gpu_call *c, uint64_t elements);

/* Elements of `type`, summed up (or whatever OP says) in `sum`, become `result`. */
struct gpu_reduction {
    rlx_dtype type, sum, result;
    int64_t op; /* REDUCE_SUM, ... of kernels/lib/reduce.rlk */
    bool mean;
    uint64_t count; /* of a mean */
};
/* elements: of the whole tensor; 0: its sets are never cut. */
void gpu_reduce_sets(struct gpu_call *c, const struct gpu_reduction *r, struct gpu_sets *s,
                     struct gpu_arg x, struct gpu_arg y, uint64_t elements);
/* What the chunks have left at `room` becomes y. */
void gpu_join_chunks(struct gpu_call *c, const struct gpu_reduction *r, const struct gpu_sets *s,
                     struct gpu_arg room, struct gpu_arg y);
/* y: `count` times what reducing nothing gives. */
void gpu_reduce_nothing(struct gpu_call *c, const struct gpu_reduction *r, struct gpu_arg y,
                        uint64_t count);

#endif
