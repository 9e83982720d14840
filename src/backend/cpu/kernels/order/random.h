/* random.h: rows of random numbers from counters (ops-core.md 9.1), for loops that become vector
 * code. base/rng.h has the same generator for single numbers. */
#ifndef BACKEND_RANDOM_H
#define BACKEND_RANDOM_H

#include "backend/cpu/kernels/common.h"
#include "base/rng.h"

#define RANDOM_ROUND(turn) \
    x0 += x1;              \
    x1 = (x1 << (turn) | x1 >> (32 - (turn))) ^ x0

#define RANDOM_EVEN(k0, k1, group) \
    RANDOM_ROUND(13);              \
    RANDOM_ROUND(15);              \
    RANDOM_ROUND(26);              \
    RANDOM_ROUND(6);               \
    x0 += (k0);                    \
    x1 += (k1) + (group)

#define RANDOM_ODD(k0, k1, group) \
    RANDOM_ROUND(17);             \
    RANDOM_ROUND(29);             \
    RANDOM_ROUND(16);             \
    RANDOM_ROUND(24);             \
    x0 += (k0);                   \
    x1 += (k1) + (group)

/* Threefry-2x32, 20 rounds, without a loop or a table. */
static inline struct rng_pair random_words(uint32_t c0, uint32_t c1, struct rng_pair key)
{
    uint32_t a = key.x0, b = key.x1, c = a ^ b ^ 0x1bd11bdau;
    uint32_t x0 = c0 + a, x1 = c1 + b;

    RANDOM_EVEN(b, c, 1u);
    RANDOM_ODD(c, a, 2u);
    RANDOM_EVEN(a, b, 3u);
    RANDOM_ODD(b, c, 4u);
    RANDOM_EVEN(c, a, 5u);
    return (struct rng_pair){x0, x1};
}

/* In [0, 1), a multiple of 2^-24. */
static inline float random_unit(uint32_t x)
{
    return (float)(int32_t)(x >> 8) * 0x1p-24f; /* signed converts faster, and fits */
}

/* The working key: seed, and the offset that is input i if there is one. */
static inline struct rng_pair random_key(const struct cpu_call *c, uint64_t seed, int32_t i)
{
    int64_t offset = 0;

    if (c->in_count > i)
        cpu_load_i64(c->in[i].dtype, c->in[i].data, &offset, 1);
    return rng_key(seed, (uint64_t)offset);
}

#endif
