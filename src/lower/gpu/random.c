/* random.c: random numbers, and indices drawn from rows of logits (ops-core 9). Without an offset
 * the key is known here; with one the kernels find it. */
#include <math.h>

#include "base/rng.h"
#include "lower/gpu.h"

#define LONG_ROW 2048

/* Which form of a kernel: seeds and keys are two words alike. */
static void begin(struct gpu_call *c, const char *file, bool moves)
{
    gpu_kernel(c, file, moves ? "moving" : "fixed");
    if (moves)
        gpu_type(c, "O", c->in[c->in_count - 1].dtype);
}

static void add_key(struct gpu_call *c, uint64_t seed, bool moves)
{
    struct rng_pair key = rng_key(seed, 0);

    gpu_u32(c, moves ? (uint32_t)seed : key.x0);
    gpu_u32(c, moves ? seed >> 32 : key.x1);
}

/* ---- whole tensors ---- */

static void lower_numbers(struct gpu_call *c, bool normal, uint64_t seed, double a, double b)
{
    bool moves = c->in_count > 0;
    uint64_t count = gpu_count(c->out);

    begin(c, "random", moves);
    gpu_flag(c, "NORMAL", normal);
    if (moves)
        gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, count);
    add_key(c, seed, moves);
    gpu_f32(c, a);
    gpu_f32(c, b);
    gpu_f32(c, b - (double)(float)b);
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

/* ---- indices ---- */

void gpu_lower_sample(struct gpu_call *c)
{
    const struct attr_sample *a = &c->attr->sample;
    const struct ir_type *x = &c->in[0];
    int64_t cols = x->dim[x->rank - 1];
    bool moves = c->in_count > 1, greedy = a->top_k == 1 || (double)a->temperature < 1e-6;
    uint64_t rows = gpu_count(c->out);

    begin(c, "sample", moves);
    gpu_type(c, "T", x->dtype);
    gpu_type(c, "I", c->out->dtype);
    gpu_flag(c, "GREEDY", greedy);
    gpu_flag(c, "TOP_K", a->top_k > 0 && a->top_k < cols);
    gpu_flag(c, "TOP_P", (double)a->top_p < 1 - 1e-6);
    gpu_const(c, "WG", cols > LONG_ROW && c->features->max_group >= 512 ? 512 : GPU_GROUP);
    gpu_bind(c, gpu_in(c, 0));
    if (moves)
        gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, rows);
    gpu_u32(c, (uint64_t)cols);
    add_key(c, a->seed, moves);
    gpu_u32(c, (uint64_t)(a->top_k < cols ? a->top_k : cols));
    gpu_f32(c, greedy ? 1 : (double)a->temperature);
    gpu_f32(c, (double)a->top_p);
    gpu_f32(c, log((double)a->min_p)); /* p / largest p = e^(z - top); -Inf: off */
    gpu_groups(c, rows);
}
