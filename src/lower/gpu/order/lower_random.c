/* lower_random.c: tensors of random numbers (ops-core.md 9.3). Without an offset the key is known
 * here; with one the kernels find it. */
#include "base/rng.h"
#include "lower/gpu.h"

/* Which form of a kernel: seeds and keys are two words alike. */
static void begin(struct gpu_call *c, bool moves)
{
    gpu_kernel(c, "random", moves ? "moving" : "fixed");
    if (moves)
        gpu_type(c, "O", c->in[c->in_count - 1].dtype);
}

static void add_key(struct gpu_call *c, uint64_t seed, bool moves)
{
    struct rng_pair key = rng_key(seed, 0);

    gpu_u32(c, moves ? "seed_low" : "key_low", moves ? (uint32_t)seed : key.x0);
    gpu_u32(c, moves ? "seed_high" : "key_high", moves ? seed >> 32 : key.x1);
}

/* ---- whole tensors ---- */

static void lower_numbers(struct gpu_call *c, bool normal, uint64_t seed, double a, double b)
{
    bool moves = c->in_count > 0;
    uint64_t count = gpu_count(c->out);

    begin(c, moves);
    gpu_flag(c, "NORMAL", normal);
    if (moves)
        gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    add_key(c, seed, moves);
    gpu_f32(c, "a", a);
    gpu_f32(c, "b", b);
    gpu_f32(c, "b_low", b - (double)(float)b);
    gpu_invocations(c, count, GPU_GROUP);
}

void gpu_lower_rng_normal(struct gpu_call *c)
{
    const struct attr_rng_normal *a = &c->attr->rng_normal;

    lower_numbers(c, true, a->seed, (double)a->mean, (double)a->scale);
}

void gpu_lower_rng_uniform(struct gpu_call *c)
{
    const struct attr_rng_uniform *a = &c->attr->rng_uniform;

    lower_numbers(c, false, a->seed, (double)a->low, (double)a->high - (double)a->low);
}
