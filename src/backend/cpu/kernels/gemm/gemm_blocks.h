/* gemm_blocks.h: how gemm cuts a product into blocks, and what scratch that takes.
 *
 *     slab     rows x columns whose panels are in scratch together; slabs follow one another
 *     block    mc rows x nc columns of a slab: a task
 *     stretch  of k: what is packed together, and summed in registers
 *     split    of k: where blocks are few and k is long, a block is several tasks
 *
 * All of it follows from sizes alone. A product that is smaller in any way never takes more
 * scratch, so that what was planned for the largest sizes serves all of them. */
#ifndef BACKEND_GEMM_BLOCKS_H
#define BACKEND_GEMM_BLOCKS_H

#include "backend/cpu/kernels/gemm/gemm_kind.h"

/* Where a block finds the panels of an operand. */
enum gemm_source {
    GEMM_READY, /* made beforehand, outside of scratch */
    GEMM_WHOLE, /* packed for the whole slab before its blocks: more than one of them reads it */
    GEMM_OWN    /* packed by each block for itself, a stretch at a time */
};

struct gemm_blocks {
    const struct gemm_loop *loop;
    int64_t mc, nc;               /* rows and columns of a block: whole panels */
    int64_t rows, cols;           /* blocks per item */
    int64_t slab_rows, slab_cols; /* blocks per slab */
    int64_t stretch, stretches;   /* k per stretch, whole lanes; stretches in k */
    int64_t splits;
    int64_t split_k; /* k per split, a multiple of the stretch */
    int64_t grain;   /* blocks per task */
    enum gemm_source a, b;
};

/* Bytes of scratch. Those of a whole operand are for all workers, others for each. */
struct gemm_room {
    int64_t a, b;
    int64_t wide;  /* a panel of b, widened */
    int64_t tile;  /* a block's sums; 0: they live in c */
    int64_t tiles; /* how many */
    int64_t total;
};

/* From row to row of a tile of `cols` sums: a line of the cache more, as rows a power of two apart
 * would drive one another out of it. */
static inline int64_t gemm_tile_ld(const struct gemm_loop *l, int64_t cols)
{
    return cols + 64 / l->sum;
}

#define gemm_cut CPU_NAME(gemm_cut)
#define gemm_measure CPU_NAME(gemm_measure)

void gemm_cut(const struct gemm *g, struct gemm_blocks *b);
/* For what gemm_cut decided. */
void gemm_measure(const struct gemm *g, const struct gemm_blocks *b, int64_t workers,
                  struct gemm_room *r);

#endif
