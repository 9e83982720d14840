/* conv_tiles.h: forward convolutions of f32, f16 and bf16, from planes: conv_tiles.c cuts them,
 * conv_tiles_run.c runs them with vectors of positions, conv_lanes.c with vectors of channels. */
#ifndef BACKEND_CONV_TILES_H
#define BACKEND_CONV_TILES_H

#include "backend/cpu/kernels/conv/conv_planes.h"

#define conv_tiles_fit CPU_NAME(conv_tiles_fit)
#define conv_tiles_scratch CPU_NAME(conv_tiles_scratch)
#define conv_tiles_run CPU_NAME(conv_tiles_run)
#define conv_tiles_pack_size CPU_NAME(conv_tiles_pack_size)
#define conv_tiles_pack CPU_NAME(conv_tiles_pack)
#define conv_tiles_packed_special CPU_NAME(conv_tiles_packed_special)

/* Whether v is one of them; the others are products over windows (conv_core.c). */
bool conv_tiles_fit(const struct conv *v);
uint64_t conv_tiles_scratch(const struct conv *v, const struct pool *pool);
void conv_tiles_run(const struct conv *v, struct pool *pool, void *scratch);

/* The packed copy of v->w, which conv_tiles_run takes from v->w->packed; 0 bytes: none is made. */
struct cpu_pack conv_tiles_pack_size(const struct conv *v);
void conv_tiles_pack(const struct conv *v, struct pool *pool, void *to);
/* Whether the weights that were packed have an infinity or a NaN. */
bool conv_tiles_packed_special(const struct conv *v);

#endif
