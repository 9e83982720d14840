/* lower_tiles.h: products made in tiles of shared memory (kernels/lib/tile): how large these are,
 * and how the depth is split where there are too few of them. */
#ifndef LOWER_TILES_H
#define LOWER_TILES_H

#include "lower/gpu/gemm/lower_epilogue.h"

#define GPU_PROCESSORS 128  /* of a device, about */
#define GPU_BUSY_GROUPS 512 /* that keep a device at work which waits for memory */

/* items x [m,k] x [k,n] */
struct gpu_product {
    uint64_t items, m, n, k;
    uint64_t split_sums; /* of all parts of a depth that is split, at most: gpu_split_sums */
};

struct gpu_split {
    uint64_t parts, part; /* how many, and how deep each is; the last may be less */
};
struct gpu_tiling {
    uint32_t tile; /* lines of its side: 32, 64, 128 */
    struct gpu_split split;
    uint64_t groups;
    double cost; /* in products of f32 */
};

struct gpu_tiling gpu_tiling_of(const struct gpu_product *p, uint32_t tile, bool may_split);
struct gpu_tiling gpu_best_tiling(const struct gpu_product *p, bool may_split);
/* Few lines meet many, in teams that go along the latter (kernels/lib/teams). */
struct gpu_teams {
    uint64_t at_once; /* of the few */
    uint64_t lines;   /* of the many, per team */
    uint64_t teams;   /* of a group */
    uint64_t groups;  /* for all of the many, and at_once of the few */
};
/* items: how often over. steps: how many of a team's members have something to do on a line. most:
 * lines and teams where there is enough to do for every processor. */
struct gpu_teams gpu_teams_of(uint64_t few, uint64_t many, uint64_t items, uint64_t steps,
                              struct gpu_teams most);
/* MM, R and TEAMS. */
void gpu_team_constants(struct gpu_call *c, const struct gpu_teams *t);

/* L, TM and TN. */
void gpu_tile_constants(struct gpu_call *c, uint32_t tile);

/* The depth in so many parts that about `want` groups run. Each is a multiple of `step` deep. */
struct gpu_split gpu_split_depth(const struct gpu_product *p, uint64_t groups, uint64_t want,
                                 uint64_t step);
/* So many sums of parts does a kernel see at once. */
uint64_t gpu_split_sums(const struct gpu_call *c);
/* Room for the sums of all parts, f32 or words. It grows with every size, so that what fits the
 * largest sizes fits all: ask for it even where nothing is split now. */
struct gpu_arg gpu_split_room(struct gpu_call *c, const struct gpu_product *p);
/* Sums of the parts in x, [part][y's elements], become y. */
void gpu_add_parts(struct gpu_call *c, const struct gpu_epilogue *end, struct gpu_arg x,
                   struct gpu_arg y, uint64_t count, uint64_t parts);

#endif
