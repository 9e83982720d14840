/* lower_sequence.h: how the kernels of state-space scans share a state among invocations, and what
 * they are given where they carry one. */
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

/* Operand i of an op that writes its operand `state`: where it is the same leaf, a copy, as some
 * groups write while others read. state is negative where nothing is written. */
struct gpu_arg sequence_operand(struct gpu_call *c, int32_t i, int32_t state);
/* Binds the state, or in its place a few bytes that the kernel does not look at. */
void sequence_bind_state(struct gpu_call *c, int32_t state);

#endif
