/* conv_tiles_core.h: what the files of conv_tiles.h share: the sizes of everything. */
#ifndef BACKEND_CONV_TILES_CORE_H
#define BACKEND_CONV_TILES_CORE_H

#include "backend/cpu/kernels/conv/conv_tiles.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

/* A tile of sums: rows are output channels, columns positions, as many as registers hold. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { TILE_ROWS = 8, TILE_VECS = 3 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 4, TILE_VECS = 3 };
#else
enum { TILE_ROWS = 4, TILE_VECS = 2 };
#endif

enum { VEC_LANES = GEMM_VEC / 4, TILE_COLS = TILE_VECS * VEC_LANES };

/* The same with channels in vectors, LANE_VECS of them, and two runs of positions as rows. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { LANE_RUN = 7 };
#else
enum { LANE_RUN = 3 };
#endif
enum { LANE_VECS = 2, LANE_CHANNELS = LANE_VECS * VEC_LANES };

enum { TASK_LEAST = 1 << 18 }; /* products worth a task */

/* Everything that follows from shapes. */
struct tiles {
    struct conv_planes planes;
    bool lanes;         /* vectors are channels (conv_lanes.c), not positions */
    bool own;           /* each worker lays out its own bands, and computes all their rows */
    int64_t rows;       /* of a panel: TILE_ROWS, or 1, or LANE_CHANNELS */
    int64_t row_panels; /* of a group */
    int64_t taps, k;    /* of a channel; of an output */
    int64_t stretch;    /* channels of each but the last */
    int64_t stretches;
    int64_t row_task;    /* panels of a task */
    int64_t col_task;    /* the same, of positions, in a whole part; pairs of runs for lanes */
    int64_t image_bytes; /* scratch: the planes */
    int64_t pack_bytes;  /* panels of weights */
    int64_t tap_bytes;   /* offsets of taps */
    int64_t tile_bytes;  /* sums, per worker */
    int64_t tail_bytes;  /* a panel of positions, per worker */
};

/* A packed copy begins with this. */
struct packed_head {
    uint32_t special; /* a weight is an infinity or a NaN */
    uint32_t lanes;   /* the panels are those of struct tiles with the same `lanes` */
    uint32_t unused[14];
};

static inline int64_t conv_up(int64_t x, int64_t by)
{
    return (x + by - 1) / by;
}

static inline int64_t conv_panels(int64_t positions)
{
    return conv_up(conv_up(positions, VEC_LANES), TILE_VECS);
}

/* Positions as lanes take them: lines of outputs whose neighbours are neighbours in the planes too,
 * cut into runs of equal length. The last run of a line reaches back over those before it, so that
 * nothing past the line is read; what it has in common with them is dropped. */
struct lines {
    int64_t count, length;
    int64_t run;  /* positions of a run: LANE_RUN, or 1 where lines are shorter */
    int64_t runs; /* of a line */
};

static inline struct lines conv_lines(const struct conv_planes *p, const struct conv_band *b)
{
    struct lines l = {b->out[0] * b->out[1], b->out[2], LANE_RUN, 0};

    if (p->extra[1] == 0 && p->extra[2] == 0)
        l = (struct lines){1, l.count * l.length, LANE_RUN, 0};
    if (l.length < LANE_RUN)
        l.run = 1;
    l.runs = conv_up(l.length, l.run);
    return l;
}

#define conv_tiles_make CPU_NAME(conv_tiles_make)
#define conv_tiles_offsets CPU_NAME(conv_tiles_offsets)
#define conv_tiles_pack_all CPU_NAME(conv_tiles_pack_all)
#define conv_tiles_packs CPU_NAME(conv_tiles_packs)
#define conv_rows_run CPU_NAME(conv_rows_run)
#define conv_lanes_run CPU_NAME(conv_lanes_run)

/* false: v is not done by tiles. */
bool conv_tiles_make(const struct conv *v, bool lanes, struct tiles *t);
/* Where each tap is, from a position's own place. */
void conv_tiles_offsets(const struct conv *v, const struct tiles *t, const struct conv_band *b,
                        int64_t *offset);
/* Whether weights have to be packed at all; and packing them. */
bool conv_tiles_packs(const struct conv *v, const struct tiles *t);
void conv_tiles_pack_all(const struct conv *v, const struct tiles *t, struct pool *pool, float *to);

/* Scratch of conv_tiles_run, shared out. */
struct conv_room {
    const float *weights; /* in panels */
    char *layout;         /* planes, then offsets of taps; per worker if they have their own */
    char *own;            /* sums, per worker */
};
void conv_rows_run(const struct conv *v, const struct tiles *t, const struct conv_room *room,
                   struct pool *pool);
void conv_lanes_run(const struct conv *v, const struct tiles *t, const struct conv_room *room,
                    struct pool *pool);

#endif
