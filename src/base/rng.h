/* rng.h: counter-based random numbers. Threefry-2x32 (20 rounds) serves graphs, Philox-4x32 (10
 * rounds) host-side initialisers. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng_pair {
    uint32_t x0, x1;
};
struct rng_pair rng_threefry(uint32_t c0, uint32_t c1, uint32_t k0, uint32_t k1);
/* The key that seed and offset give: T((lo,hi of offset), (lo,hi of seed)). */
struct rng_pair rng_key(uint64_t seed, uint64_t offset);
float rng_uniform(uint32_t x); /* (x >> 8) * 2^-24, in [0,1) */

struct rng_philox {
    uint32_t key[2], counter[4], word[4];
    uint32_t used; /* words of the current block that are used up */
};
void rng_philox_init(struct rng_philox *r, uint64_t seed);
uint32_t rng_philox_next(struct rng_philox *r);
float rng_philox_normal(struct rng_philox *r); /* mean 0, variance 1; takes two words */

#endif
