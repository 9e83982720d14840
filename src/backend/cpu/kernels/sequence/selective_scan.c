/* selective_scan.c: the selective state-space scan (ops-special.md 3.1).
 *
 * A task is a block of channels of one item. Its state and its part of A are ordered by state
 * index, with channels side by side, so that no sum runs across a vector; where few steps begin
 * from a carried state, they are left as they lie in memory. */
#include "backend/cpu/kernels/sequence/carried.h"
#include "backend/cpu/kernels/sequence/lanes.h"

struct job {
    const struct cpu_call *c;
    struct cpu_tensor in[6];
    int64_t steps, channels, n, blocks;
    float *state; /* NULL: begins with zeros, and is forgotten */
    char *room;   /* of worker 0: h and a, [n][LANES] each */
};

/* Channels of one item. */
struct block {
    int64_t item, first, w;
};

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

static void run_lanes(const struct job *j, const struct block *k, const float *a, float *h)
{
    const struct cpu_tensor *in = j->in;
    LANES_OF(x);
    LANES_OF(delta);
    LANES_OF(y);

    for (int64_t t = 0; t < j->steps; t++) {
        int64_t row = k->item * j->steps + t, at = row * j->channels + k->first;
        lanes_load(RLX_DTYPE_f32, cpu_at(&in[0], at), k->w, x);
        lanes_load(RLX_DTYPE_f32, cpu_at(&in[1], at), k->w, delta);
        step(j->n, x, delta, a, cpu_at(&in[3], row * j->n), cpu_at(&in[4], row * j->n), h, y);
        memcpy(cpu_at(j->c->out, at), y, (size_t)k->w * sizeof *y);
    }
}

/* One step of one channel, whose states are one after another, and the sum read from them. */
static float row_step(int64_t n, float x, float delta, const float *a, const float *in,
                      const float *out, float *h)
{
    vec_f32 sum = {0}, xv = vec_all(x), dv = vec_all(delta);

    for (int64_t i = 0; i < n; i += VEC_F32) {
        int64_t w = n - i;
        vec_f32 root = lanes_exp_root(dv * lanes_load_some(a + i, w));
        vec_f32 held = root * lanes_load_some(h + i, w);
        vec_f32 s = F32_MADD(root, held, dv * lanes_load_some(in + i, w) * xv);
        lanes_store_some(h + i, s, w);
        sum = F32_MADD(lanes_only(lanes_mask(w), s), lanes_load_some(out + i, w), sum);
    }
    return (float)vec_sum(sum);
}

static void run_rows(const struct job *j, const struct block *k, const float *a, float *h)
{
    for (int64_t t = 0; t < j->steps; t++) {
        int64_t row = k->item * j->steps + t, at = row * j->channels + k->first;
        const float *x = cpu_at(&j->in[0], at), *delta = cpu_at(&j->in[1], at);
        const float *in = cpu_at(&j->in[3], row * j->n), *out = cpu_at(&j->in[4], row * j->n);
        float *y = cpu_at(j->c->out, at);
        for (int64_t l = 0; l < k->w; l++)
            y[l] = row_step(j->n, x[l], delta[l], a + l * j->n, in, out, h + l * j->n);
    }
}

static void run_block(const struct job *j, int64_t block, float *h, float *a)
{
    struct block k = {.item = block / j->blocks, .first = block % j->blocks * LANES};
    const float *rates = (const float *)j->in[2].data + k.first * j->n;
    float *state = j->state ? j->state + (k.item * j->channels + k.first) * j->n : NULL;

    k.w = cpu_min_i64(LANES, j->channels - k.first);
    if (state && j->steps <= LANES_FEW_STEPS)
        return run_rows(j, &k, rates, state);
    lanes_turn(rates, k.w, j->n, a);
    if (state)
        lanes_turn(state, k.w, j->n, h);
    else
        memset(h, 0, (size_t)(j->n * LANES) * sizeof *h);
    run_lanes(j, &k, a, h);
    if (state)
        lanes_turn_back(h, k.w, j->n, state);
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    float *h = (float *)(void *)(j->room + 2 * (uint64_t)worker * lanes_bytes(j->n * LANES));

    for (int64_t at = begin; at < end; at++)
        run_block(j, at, h, h + j->n * LANES);
}

static int32_t state_of(const struct cpu_call *c)
{
    return c->attr->selective_scan.carry_state ? 5 : -1;
}

static uint64_t room_bytes(const struct cpu_call *c)
{
    int64_t n = c->attr->selective_scan.state_size;

    return 2 * (uint64_t)gemm_workers(c->pool) * lanes_bytes(n * LANES);
}

static uint64_t scratch(const struct cpu_call *c)
{
    return room_bytes(c) + carried_scratch(c, state_of(c));
}

static void run(const struct cpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    int32_t state = state_of(c);
    struct job j = {.c = c,
                    .steps = dim[1],
                    .channels = dim[2],
                    .n = c->attr->selective_scan.state_size,
                    .blocks = lanes_blocks(dim[2]),
                    .state = state < 0 ? NULL : c->in[state].data,
                    .room = c->scratch};

    if (c->out->count == 0)
        return;
    carried_operands(c, state, j.in, j.room + room_bytes(c));
    cpu_for(c->pool, dim[0] * j.blocks, lanes_grain(20.0 * (double)(j.steps * j.n) * LANES),
            run_blocks, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_selective_scan);
const struct cpu_kernel CPU_NAME(cpu_selective_scan) = {.run = run, .scratch = scratch};
