/* selective_scan.c: the selective state-space scan (ops-special.md 3.1).
 *
 * A task is a block of channels of one item. Its state and its part of A are ordered by state
 * index, with channels side by side, so that no sum runs across a vector. */
#include "backend/cpu/kernels/sequence/lanes.h"

struct job {
    const struct cpu_call *c;
    int64_t steps, channels, n, blocks;
    char *room; /* of worker 0: h and a, [n][LANES] each */
};

static void take_a(const struct job *j, int64_t first, int64_t w, float *a)
{
    const float *from = (const float *)j->c->in[2].data + first * j->n;

    for (int64_t i = 0; i < j->n; i++)
        for (int64_t l = 0; l < LANES; l++)
            a[i * LANES + l] = l < w ? from[l * j->n + i] : 0;
}

/* One step: the state, and the sums of what is read from it. */
static void step(int64_t n, const float *x, const float *delta, const float *a, const float *in,
                 const float *out, float *h, float *y)
{
    vec_f32 xv[LANES_VECS], dv[LANES_VECS], sum[LANES_VECS] = {{0}};

    for (int v = 0; v < LANES_VECS; v++) {
        xv[v] = vec_load(x + v * VEC_F32);
        dv[v] = vec_load(delta + v * VEC_F32);
    }
    for (int64_t i = 0; i < n; i++, a += LANES, h += LANES) {
        GEMM_UNROLL
        for (int v = 0; v < LANES_VECS; v++) {
            vec_f32 root = lanes_exp_root(dv[v] * vec_load(a + v * VEC_F32));
            vec_f32 held = root * vec_load(h + v * VEC_F32);
            vec_f32 s = F32_MADD(root, held, dv[v] * in[i] * xv[v]);
            vec_store(h + v * VEC_F32, s);
            sum[v] = F32_MADD(s, vec_all(out[i]), sum[v]);
        }
    }
    for (int v = 0; v < LANES_VECS; v++)
        vec_store(y + v * VEC_F32, sum[v]);
}

static void run_block(const struct job *j, int64_t block, float *h, float *a)
{
    const struct cpu_tensor *in = j->c->in;
    int64_t item = block / j->blocks, first = block % j->blocks * LANES;
    int64_t w = cpu_min_i64(LANES, j->channels - first);
    LANES_OF(x);
    LANES_OF(delta);
    LANES_OF(y);

    take_a(j, first, w, a);
    memset(h, 0, (size_t)(j->n * LANES) * sizeof *h);
    for (int64_t t = 0; t < j->steps; t++) {
        int64_t row = item * j->steps + t, at = row * j->channels + first;
        lanes_load(RLX_DTYPE_f32, cpu_at(&in[0], at), w, x);
        lanes_load(RLX_DTYPE_f32, cpu_at(&in[1], at), w, delta);
        step(j->n, x, delta, a, cpu_at(&in[3], row * j->n), cpu_at(&in[4], row * j->n), h, y);
        memcpy(cpu_at(j->c->out, at), y, (size_t)w * sizeof *y);
    }
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    float *h = (float *)(void *)(j->room + 2 * (uint64_t)worker * lanes_bytes(j->n * LANES));

    for (int64_t at = begin; at < end; at++)
        run_block(j, at, h, h + j->n * LANES);
}

static uint64_t scratch(const struct cpu_call *c)
{
    int64_t n = c->attr->selective_scan.state_size;

    return 2 * (uint64_t)gemm_workers(c->pool) * lanes_bytes(n * LANES);
}

static void run(const struct cpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    struct job j = {.c = c,
                    .steps = dim[1],
                    .channels = dim[2],
                    .n = c->attr->selective_scan.state_size,
                    .blocks = lanes_blocks(dim[2]),
                    .room = c->scratch};

    if (c->out->count == 0)
        return;
    cpu_for(c->pool, dim[0] * j.blocks, lanes_grain(20.0 * (double)(j.steps * j.n) * LANES),
            run_blocks, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_selective_scan);
const struct cpu_kernel CPU_NAME(cpu_selective_scan) = {.run = run, .scratch = scratch};
