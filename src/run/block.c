/* block.c: a rectangular part of a tensor as runs of contiguous bytes. */
#include "run/block.h"

/* How many axes from the end on are whole on both sides: these are one run with the next one. */
static int32_t joined_axes(const struct block *b)
{
    int32_t n = 0;

    for (int32_t i = b->rank - 1; i > 0; i--, n++)
        if (b->dim[i] != b->to.dim[i] || b->dim[i] != b->from.dim[i])
            break;
    return n;
}

static uint64_t place(const struct block *b, const struct block_side *s, const int64_t *index)
{
    uint64_t at = 0;

    for (int32_t i = 0; i < b->rank; i++) {
        int64_t k = index[i] + (s->start ? s->start[i] : 0);
        at = at * (uint64_t)s->dim[i] + (uint64_t)k;
    }
    return at * b->size;
}

/* The outer index number n, and zeros for the axes of a run. */
static void index_of(const struct block *b, int32_t outer, uint64_t n, int64_t *index)
{
    for (int32_t i = b->rank - 1; i >= 0; i--) {
        index[i] = i < outer ? (int64_t)(n % (uint64_t)b->dim[i]) : 0;
        n = i < outer ? n / (uint64_t)b->dim[i] : n;
    }
}

rlx_status block_each(const struct block *b, bool reverse, block_fn fn, void *user)
{
    int64_t index[RLX_MAX_RANK] = {0};
    uint64_t bytes = b->size, runs = 1;
    int32_t outer = b->rank ? b->rank - 1 - joined_axes(b) : 0;

    for (int32_t i = 0; i < b->rank; i++) {
        if (i < outer)
            runs *= (uint64_t)b->dim[i];
        else
            bytes *= (uint64_t)b->dim[i];
    }
    if (bytes == 0)
        return RLX_OK;
    for (uint64_t n = 0; n < runs; n++) {
        index_of(b, outer, reverse ? runs - 1 - n : n, index);
        TRY(fn(user, place(b, &b->to, index), place(b, &b->from, index), bytes));
    }
    return RLX_OK;
}
