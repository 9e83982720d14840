/* mamba2.c: the state-space duality layer (ops-core.md 21): per head M = e^(dt a) M + (dt x) b^T,
 * y = M c.
 *
 * The rows of a head's matrix [head_dim, n] know nothing of one another: a task is a block of them,
 * held as [n][LANES]. */
#include "backend/cpu/kernels/sequence/lanes.h"

struct job {
    const struct cpu_call *c;
    int64_t steps, heads, width, n, blocks;
    char *room; /* of worker 0: [n][LANES] */
};

/* State j: m = decay m + x b; sum += m c. */
static inline __attribute__((always_inline)) void row(float decay, const vec_f32 *x, float b,
                                                      float c, float *m, vec_f32 *sum)
{
    GEMM_UNROLL
    for (int v = 0; v < LANES_VECS; v++) {
        vec_f32 s = F32_MADD(x[v], vec_all(b), vec_load(m + v * VEC_F32) * decay);
        vec_store(m + v * VEC_F32, s);
        sum[v] = F32_MADD(s, vec_all(c), sum[v]);
    }
}

/* Sums over j run in two, for speed and for their error. */
static void step(int64_t n, float decay, const float *x, const float *b, const float *c, float *m,
                 float *y)
{
    vec_f32 xv[LANES_VECS], even[LANES_VECS] = {{0}}, odd[LANES_VECS] = {{0}};
    int64_t j = 0;

    for (int v = 0; v < LANES_VECS; v++)
        xv[v] = vec_load(x + v * VEC_F32);
    for (; j + 2 <= n; j += 2) {
        row(decay, xv, b[j], c[j], m + j * LANES, even);
        row(decay, xv, b[j + 1], c[j + 1], m + (j + 1) * LANES, odd);
    }
    if (j < n)
        row(decay, xv, b[j], c[j], m + j * LANES, even);
    for (int v = 0; v < LANES_VECS; v++)
        vec_store(y + v * VEC_F32, even[v] + odd[v]);
}

static void run_block(const struct job *j, int64_t block, float *m)
{
    const struct cpu_tensor *in = j->c->in;
    int64_t head = block / j->blocks, first = block % j->blocks * LANES;
    int64_t item = head / j->heads, h = head % j->heads, w = cpu_min_i64(LANES, j->width - first);
    float a = ((const float *)in[2].data)[h];
    LANES_OF(x);
    LANES_OF(y);

    memset(m, 0, (size_t)(j->n * LANES) * sizeof *m);
    for (int64_t t = 0; t < j->steps; t++) {
        int64_t token = (item * j->steps + t) * j->heads + h;
        float dt = ((const float *)in[1].data)[token];
        lanes_load(RLX_DTYPE_f32, cpu_at(&in[0], token * j->width + first), w, x);
        for (int l = 0; l < LANES; l++)
            x[l] *= dt;
        step(j->n, math_exp(dt * a), x, cpu_at(&in[3], token * j->n), cpu_at(&in[4], token * j->n),
             m, y);
        memcpy(cpu_at(j->c->out, token * j->width + first), y, (size_t)w * sizeof *y);
    }
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    char *m = j->room + (uint64_t)worker * lanes_bytes(j->n * LANES);

    for (int64_t at = begin; at < end; at++)
        run_block(j, at, (float *)(void *)m);
}

static uint64_t scratch(const struct cpu_call *c)
{
    if (c->out->count == 0)
        return 0;
    return (uint64_t)gemm_workers(c->pool) * lanes_bytes(c->attr->mamba2.state_size * LANES);
}

static void run(const struct cpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    struct job j = {.c = c,
                    .steps = dim[1],
                    .heads = dim[2],
                    .width = dim[3],
                    .n = c->attr->mamba2.state_size,
                    .blocks = lanes_blocks(dim[3]),
                    .room = c->scratch};

    if (c->out->count == 0)
        return;
    cpu_for(c->pool, dim[0] * j.heads * j.blocks,
            lanes_grain(2.0 * (double)(j.steps * j.n) * LANES), run_blocks, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_mamba2);
const struct cpu_kernel CPU_NAME(cpu_mamba2) = {.run = run, .scratch = scratch};
