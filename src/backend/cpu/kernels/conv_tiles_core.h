/* conv_tiles_core.h: what the two files of conv_tiles.h share: the sizes of everything. */
#ifndef CPU_CONV_TILES_CORE_H
#define CPU_CONV_TILES_CORE_H

#include "backend/cpu/kernels/conv_tiles.h"
#include "backend/cpu/kernels/gemm_vec.h"

/* A tile of sums: rows are output channels, columns positions, as many as registers hold. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { TILE_ROWS = 8, TILE_VECS = 3 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 4, TILE_VECS = 3 };
#else
enum { TILE_ROWS = 4, TILE_VECS = 2 };
#endif

enum { VEC_LANES = GEMM_VEC / 4, TILE_COLS = TILE_VECS * VEC_LANES };
enum { TASK_LEAST = 1 << 18 }; /* products worth a task */

/* Everything that follows from shapes. */
struct tiles {
    struct conv_planes planes;
    bool own;           /* workers lay out bands of their own, and do all rows of them */
    int64_t rows;       /* of a panel: TILE_ROWS, or 1 */
    int64_t row_panels; /* of a group */
    int64_t taps, k;    /* of a channel; of an output */
    int64_t stretch;    /* channels of each but the last */
    int64_t stretches;
    int64_t row_task;    /* panels of a task */
    int64_t col_task;    /* the same, of positions, in a whole part */
    int64_t image_bytes; /* scratch: the planes */
    int64_t pack_bytes;  /* panels of weights */
    int64_t tap_bytes;   /* offsets of taps */
    int64_t tile_bytes;  /* sums, per worker */
    int64_t tail_bytes;  /* a panel of positions, per worker */
};

/* A packed copy begins with this. */
struct packed_head {
    uint32_t special; /* a weight is an infinity or a NaN */
    uint32_t unused[15];
};

static inline int64_t conv_up(int64_t x, int64_t by)
{
    return (x + by - 1) / by;
}

static inline int64_t conv_panels(int64_t positions)
{
    return conv_up(conv_up(positions, VEC_LANES), TILE_VECS);
}

#define conv_tiles_make CPU_NAME(conv_tiles_make)
#define conv_tiles_pack_all CPU_NAME(conv_tiles_pack_all)
#define conv_tiles_packs CPU_NAME(conv_tiles_packs)

/* false: v is not done by tiles. */
bool conv_tiles_make(const struct conv *v, struct tiles *t);
/* Whether weights have to be packed at all; and packing them. */
bool conv_tiles_packs(const struct conv *v, const struct tiles *t);
void conv_tiles_pack_all(const struct conv *v, const struct tiles *t, struct pool *pool, float *to);

#endif
