/* random.c: tensors of uniform and of normal random numbers. Element e depends on its own counter
 * alone, so any part can be made at any time. */
#include "backend/cpu/kernels/order/random.h"
#include "backend/cpu/kernels/move/move.h"

struct random_job {
    float *y;
    struct rng_pair key;
    float mean, scale, low, high;
};

/* Of elements first .. first+n-1: a number in [0, 1) from the first word, and 24 bits of the
 * second. */
static void word_row(struct rng_pair key, int64_t first, int64_t n, float *restrict u,
                     uint32_t *restrict word)
{
    uint32_t low = (uint32_t)first, high = (uint32_t)((uint64_t)first >> 32);

    /* The upper word changes within a row only where the lower one wraps. */
    for (int64_t i = 0; i < n; i++) {
        uint32_t at = low + (uint32_t)i;
        struct rng_pair x = random_words(at, high + (at < low ? 1u : 0u), key);
        u[i] = random_unit(x.x0);
        word[i] = x.x1 >> 8;
    }
}

/* ---- normal numbers ------------------------------------------------------------------------
 *
 * The same bits on every device: sums and products in the order of kernels/lib/normal.rlk, none of
 * them fused (the build says -ffp-contract=off), and a root that is rounded correctly. */

/* ln u for a normal u > 0, as math_log_core has it. */
static inline float normal_log(float u)
{
    uint32_t bits = half_f32_bits(u);
    uint32_t k = (bits - 0x3f3504f3u) & 0xff800000u;
    float f = half_bits_f32(bits - k) - 1.0f;
    float n = (float)((int32_t)k >> 23);
    float p = -0.07865450116f * f + 0.1287920069f;

    p = p * f + -0.1312529531f;
    p = p * f + 0.1418142004f;
    p = p * f + -0.1662496985f;
    p = p * f + 0.2000228253f;
    p = p * f + -0.2500079656f;
    p = p * f + 0.3333331678f;

    float square = f * f;
    float low = (square * f * p + n * 1.42860682e-6f) - 0.5f * square;
    return n * 0x1.62e4p-1f + (low + f);
}

/* cos(2 pi u), u being word 2^-24. */
static inline float normal_cos(uint32_t word)
{
    uint32_t quarters = (word + 0x200000u) >> 22, q = quarters + 1;
    float part = (float)((int32_t)word - (int32_t)(quarters << 22)) * 0x1p-24f;
    float r = part * 6.28318531f, z = r * r;
    float s = -1.951668458e-4f * z + 8.33217381e-3f;
    float c = 2.443783147e-5f * z + -1.388736247e-3f;

    s = s * z + -0.1666665488f;
    s = s * z * r + r;
    c = c * z + 4.166664677e-2f;
    c = c * z * z + (z * -0.5f + 1.0f);

    float v = q & 1u ? c : s;
    return half_bits_f32(half_f32_bits(v) ^ ((q & 2u) << 30));
}

static void normal_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct random_job *j = ctx;
    float mean = j->mean, scale = j->scale;
    CPU_TILE_OF(float, u);
    CPU_TILE_OF(uint32_t, word);

    (void)worker;
    for (int64_t at = begin; at < end; at += CPU_TILE) {
        int64_t n = cpu_min_i64(end - at, CPU_TILE);
        float *y = j->y + at;
        word_row(j->key, at, n, u, word);
        for (int64_t i = 0; i < n; i++) {
            float least = u[i] > 0x1p-25f ? u[i] : 0x1p-25f;
            y[i] = scale * (sqrtf(-2.0f * normal_log(least)) * normal_cos(word[i])) + mean;
        }
    }
}

/* ---- uniform ones -------------------------------------------------------------------------- */

static void uniform_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct random_job *j = ctx;
    double low = (double)j->low, width = (double)j->high - low;
    CPU_TILE_OF(float, u);
    CPU_TILE_OF(uint32_t, word);

    (void)worker;
    for (int64_t at = begin; at < end; at += CPU_TILE) {
        int64_t n = cpu_min_i64(end - at, CPU_TILE);
        float *y = j->y + at;
        word_row(j->key, at, n, u, word);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(low + width * (double)u[i]);
    }
}

static void normal(const struct cpu_call *c)
{
    const struct attr_rng_normal *a = &c->attr->rng_normal;
    struct random_job j = {.y = c->out->data, .mean = a->mean, .scale = a->scale};

    if (c->out->count == 0)
        return;
    j.key = random_key(c, a->seed, 0);
    cpu_for(c->pool, c->out->count, 4096, normal_range, &j);
}

static void uniform(const struct cpu_call *c)
{
    const struct attr_rng_uniform *a = &c->attr->rng_uniform;
    struct random_job j = {.y = c->out->data, .low = a->low, .high = a->high};

    if (c->out->count == 0)
        return;
    j.key = random_key(c, a->seed, 0);
    cpu_for(c->pool, c->out->count, 4096, uniform_range, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_rng_normal), CPU_NAME(cpu_rng_uniform);
const struct cpu_kernel CPU_NAME(cpu_rng_normal) = {.run = normal};
const struct cpu_kernel CPU_NAME(cpu_rng_uniform) = {.run = uniform};
