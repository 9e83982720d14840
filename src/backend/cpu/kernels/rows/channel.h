/* channel.h: a tensor as [outer, channels, inner]: a value per channel spread over it, or gathered
 * from it. */
#ifndef BACKEND_CHANNEL_H
#define BACKEND_CHANNEL_H

#include "backend/cpu/kernels/common.h"

struct cpu_channels {
    int64_t outer, count, inner;
};

/* axis RLX_ABSENT: the whole tensor is one channel. */
static inline struct cpu_channels cpu_channels_of(const struct cpu_tensor *t, int64_t axis)
{
    struct cpu_channels g = {1, 1, 1};

    if (axis == RLX_ABSENT) {
        g.inner = t->count;
        return g;
    }
    for (int32_t a = 0; a < t->rank; a++) {
        int64_t *part = a < axis ? &g.outer : a == axis ? &g.count : &g.inner;
        *part *= t->dim[a];
    }
    return g;
}

/* A row of one value per channel, as an operand of the whole tensor. */
static inline void cpu_channels_view(struct cpu_view *v, const struct cpu_channels *g,
                                     const void *values, rlx_dtype dtype)
{
    const int64_t dim[3] = {g->outer, g->count, g->inner}, stride[3] = {0, 1, 0};
    cpu_view_make(v, values, dtype, 3, dim, stride);
}

enum cpu_channel_op { CHANNEL_SUM, CHANNEL_MAX }; /* NaN propagates through both; start from 0 */

/* term(ctx, pos, n, out): what elements pos .. pos+n-1 contribute, n <= CPU_TILE. */
typedef void (*cpu_channel_fn)(void *ctx, int64_t pos, int64_t n, double *out);

#define cpu_channel_reduce CPU_NAME(cpu_channel_reduce)
#define cpu_channel_scratch CPU_NAME(cpu_channel_scratch)

/* Doubles of scratch that the reduction needs besides its result. */
uint64_t cpu_channel_scratch(const struct cpu_channels *g);
/* result[channel]: the terms of its elements combined, in an order that the sizes fix. */
void cpu_channel_reduce(struct pool *pool, const struct cpu_channels *g, enum cpu_channel_op op,
                        cpu_channel_fn term, void *ctx, double *scratch, double *result);

#endif
