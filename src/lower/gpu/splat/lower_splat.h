/* lower_splat.h: what the lowerings of Gaussian splatting share (ops-special.md 7).
 *
 *     operands -> splat_project -> prepared scene, footprints
 *              -> splat_list    -> ids by tile, nearest first
 *              -> splat_draw    -> image
 *
 * A prepared scene is a row of f32, what gaussian_splat_prepare gives. Rendering makes one in
 * scratch and draws from that, so drawing at once and in two steps are the same bits. */
#ifndef LOWER_SPLAT_H
#define LOWER_SPLAT_H

#include "lower/gpu/linalg/lower_dense.h"

enum { SPLAT_SHAPE = 13 }; /* numbers of a shape, as in kernels/lib/splat.rlk */

/* Sizes and limits, from attributes and shapes. */
struct splat_canvas {
    uint64_t width, height, pixels, tile; /* pixels */
    uint64_t across, down, tiles;         /* tiles */
    uint64_t count;                       /* splats */
    uint64_t list;                        /* ids that a prepared scene has room for */
    uint64_t most;                        /* of them that can be in use */
    uint64_t coeffs;                      /* per splat and channel; only with operands */
    float radius_scale, cutoff, threshold;
};

struct splat_canvas splat_canvas_of(const struct gpu_call *c);
uint64_t splat_scene_bytes(const struct splat_canvas *s);
/* Where the rays begin in a scene. */
uint64_t splat_rays_at(const struct splat_canvas *s);
/* The words of kernels that go through tiles: count, list, width, height, tile and across. */
void splat_canvas_words(struct gpu_call *c, const struct splat_canvas *s);

/* Splats by distance and entries by tile, four words each; where a splat's entries begin, by sums
 * inside of parts and of the parts. */
struct splat_lists {
    struct gpu_arg order, entry, first, sums;
    uint64_t order_room, entry_room, parts;
};
/* Made on the way to a scene. */
struct splat_made {
    struct gpu_arg camera, flags, footprint;
    struct splat_lists lists;
};
/* All of a prepared scene, from the operands. */
struct splat_made splat_make(struct gpu_call *c, const struct splat_canvas *s,
                             struct gpu_arg scene);
/* Its list and ranges (lower_splat_tiles.c). */
struct splat_lists splat_list(struct gpu_call *c, const struct splat_canvas *s,
                              struct gpu_arg scene, struct gpu_arg footprint);
/* Splats as rays meet them. */
struct gpu_arg splat_shapes(struct gpu_call *c, const struct splat_canvas *s, struct gpu_arg scene);

#endif
