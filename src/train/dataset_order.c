/* dataset_order.c: random orders and places that depend on nothing but a seed and a number. */
#include "base/rng.h"
#include "train/dataset.h"

static void begin(struct rng_philox *r, uint64_t seed, uint64_t which)
{
    uint64_t z = seed + which * 0x9e3779b97f4a7c15u; /* neighbours must not look alike */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    rng_philox_init(r, z ^ z >> 31);
}

/* Each of n alike: what would make some of them likelier is drawn again. */
static uint64_t below(struct rng_philox *r, uint64_t n)
{
    uint64_t x, most = UINT64_MAX - UINT64_MAX % n;

    do {
        x = (uint64_t)rng_philox_next(r) << 32;
        x |= rng_philox_next(r);
    } while (x >= most);
    return x % n;
}

void order_shuffle(uint32_t *order, uint32_t n, uint64_t seed, uint64_t which)
{
    struct rng_philox r;

    begin(&r, seed, which);
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)below(&r, i), kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

uint64_t order_pick(uint64_t n, uint64_t seed, uint64_t i)
{
    struct rng_philox r;

    begin(&r, seed, i);
    return below(&r, n);
}
