/* lower_sequence.h: how the kernels of state-space scans share a state among invocations. */
#ifndef LOWER_SEQUENCE_H
#define LOWER_SEQUENCE_H

#include "lower/gpu.h"

#define SEQUENCE_GROUP 128 /* invocations */

/* The least power of two from n on, at most `most`, which is one. */
static inline uint64_t sequence_power(uint64_t n, uint64_t most)
{
    uint64_t p = 1;

    while (p < n && p < most)
        p *= 2;
    return p;
}

/* A state of n numbers: `lanes` invocations have `each` of them, or fewer. */
struct sequence_share {
    uint64_t lanes, each;
};
static inline struct sequence_share sequence_share(uint64_t n)
{
    uint64_t lanes = sequence_power(n, 32);

    return (struct sequence_share){lanes, gpu_ceil(n, lanes)};
}

#endif
