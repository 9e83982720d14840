/* random.c: tensors of uniform and of normal random numbers. Element e depends on its own counter
 * alone, so any part can be made at any time. */
#include "backend/cpu/kernels/random.h"
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/move.h"

struct random_job {
    float *y;
    struct rng_pair key;
    float mean, scale, low, high;
};

/* Numbers of elements first .. first+n-1, in [0, 1): from the first word and from the second. */
static void unit_row(struct rng_pair key, int64_t first, int64_t n, float *restrict u0,
                     float *restrict u1)
{
    uint32_t low = (uint32_t)first, high = (uint32_t)((uint64_t)first >> 32);

    /* The upper word changes within a row only where the lower one wraps. */
    for (int64_t i = 0; i < n; i++) {
        uint32_t at = low + (uint32_t)i;
        struct rng_pair x = random_words(at, high + (at < low ? 1u : 0u), key);
        u0[i] = random_unit(x.x0);
        u1[i] = random_unit(x.x1);
    }
}

/* cos(2 pi u). u is a multiple of 2^-24: taking whole quarter turns off is exact. */
static inline float cos_turns(float u)
{
    float quarters = math_round(u * 4.0f);
    float rest = u - quarters * 0.25f;
    return math_sin_turned(rest * 6.28318531f, (int32_t)quarters + 1);
}

static void normal_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct random_job *j = ctx;
    float mean = j->mean, scale = j->scale;
    CPU_TILE_OF(float, u0);
    CPU_TILE_OF(float, u1);

    (void)worker;
    for (int64_t at = begin; at < end; at += CPU_TILE) {
        int64_t n = cpu_min_i64(end - at, CPU_TILE);
        float *y = j->y + at;
        unit_row(j->key, at, n, u0, u1);
        for (int64_t i = 0; i < n; i++) {
            u0[i] = u0[i] > 0x1p-25f ? u0[i] : 0x1p-25f;
            u1[i] = cos_turns(u1[i]);
        }
        for (int64_t i = 0; i < n; i++)
            y[i] = mean + scale * (sqrtf(-2.0f * math_log_core(u0[i], 0.0f)) * u1[i]);
    }
}

static void uniform_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct random_job *j = ctx;
    double low = (double)j->low, width = (double)j->high - low;
    CPU_TILE_OF(float, u0);
    CPU_TILE_OF(float, u1);

    (void)worker;
    for (int64_t at = begin; at < end; at += CPU_TILE) {
        int64_t n = cpu_min_i64(end - at, CPU_TILE);
        float *y = j->y + at;
        unit_row(j->key, at, n, u0, u1);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(low + width * (double)u0[i]);
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
