/* rng.c: random words as pure functions of a counter and a key. */
#include "base/rng.h"

#include <math.h>

static uint32_t rotl(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

/* ---- Threefry-2x32, 20 rounds ------------------------------------------------------------ */

struct rng_pair rng_threefry(uint32_t c0, uint32_t c1, uint32_t k0, uint32_t k1)
{
    static const unsigned char turn[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const uint32_t key[3] = {k0, k1, k0 ^ k1 ^ 0x1bd11bdau};
    struct rng_pair x = {c0 + k0, c1 + k1};

    for (uint32_t group = 1; group <= 5; group++) {
        for (uint32_t r = 0; r < 4; r++) {
            x.x0 += x.x1;
            x.x1 = rotl(x.x1, turn[(group + 1) % 2 * 4 + r]) ^ x.x0;
        }
        x.x0 += key[group % 3];
        x.x1 += key[(group + 1) % 3] + group;
    }
    return x;
}

struct rng_pair rng_key(uint64_t seed, uint64_t offset)
{
    return rng_threefry((uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)seed,
                        (uint32_t)(seed >> 32));
}

float rng_uniform(uint32_t x)
{
    return (float)(x >> 8) * 0x1p-24f;
}

/* ---- Philox-4x32, 10 rounds -------------------------------------------------------------- */

void rng_philox_init(struct rng_philox *r, uint64_t seed)
{
    *r = (struct rng_philox){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)}, .used = 4};
}

static void philox_block(struct rng_philox *r)
{
    uint32_t c0 = r->counter[0], c1 = r->counter[1], c2 = r->counter[2], c3 = r->counter[3];
    uint32_t k0 = r->key[0], k1 = r->key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c0 * 0xd2511f53u, p1 = (uint64_t)c2 * 0xcd9e8d57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    r->word[0] = c0;
    r->word[1] = c1;
    r->word[2] = c2;
    r->word[3] = c3;
    r->used = 0;
    for (int i = 0; i < 4 && ++r->counter[i] == 0; i++)
        continue; /* 128 bits, least significant word first: carry on a wrap */
}

uint32_t rng_philox_next(struct rng_philox *r)
{
    if (r->used >= 4)
        philox_block(r);
    return r->word[r->used++];
}

/* Box-Muller; its second value is not used, so that each normal takes the same two words. */
float rng_philox_normal(struct rng_philox *r)
{
    const double two_pi = 6.283185307179586, least = 1.17549435e-38;
    double u1 = (double)rng_uniform(rng_philox_next(r));
    double u2 = (double)rng_uniform(rng_philox_next(r));

    return (float)(sqrt(-2.0 * log(u1 > least ? u1 : least)) * cos(two_pi * u2));
}
