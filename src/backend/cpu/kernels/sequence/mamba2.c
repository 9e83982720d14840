/* mamba2.c: the state-space duality layer (ops-core.md 21): per head M = e^(dt a) M + (dt x) b^T,
 * y = M c.
 *
 * The rows of a head's matrix [head_dim, n] know nothing of one another: a task is a block of them,
 * held as [n][LANES], or where the carried state is. */
#include "backend/cpu/kernels/sequence/carried.h"
#include "backend/cpu/kernels/sequence/lanes.h"

struct job {
    const struct cpu_call *c;
    struct cpu_tensor in[6];
    int64_t steps, heads, groups, width, n, blocks;
    float *state; /* NULL: begins with zeros, and is forgotten */
    char *room;   /* of worker 0: [n][LANES] */
};

/* Rows of one head. */
struct block {
    int64_t item, head, first, w;
};

/* What a step brings to the head of a block. */
struct token {
    const float *b, *c;
    int64_t at; /* of its first row in x and y */
    float dt, decay;
};

static struct token token_at(const struct job *j, const struct block *k, int64_t t)
{
    const struct cpu_tensor *in = j->in;
    int64_t place = k->item * j->steps + t, at = place * j->heads + k->head;
    int64_t line = place * j->groups + k->head / (j->heads / j->groups);
    float dt = ((const float *)in[1].data)[at];

    return (struct token){.b = cpu_at(&in[3], line * j->n),
                          .c = cpu_at(&in[4], line * j->n),
                          .at = at * j->width + k->first,
                          .dt = dt,
                          .decay = math_exp(dt * ((const float *)in[2].data)[k->head])};
}

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

static void run_lanes(const struct job *j, const struct block *k, float *m)
{
    LANES_OF(x);
    LANES_OF(y);

    for (int64_t t = 0; t < j->steps; t++) {
        struct token in = token_at(j, k, t);
        lanes_load(RLX_DTYPE_f32, cpu_at(&j->in[0], in.at), k->w, x);
        for (int l = 0; l < LANES; l++)
            x[l] *= in.dt;
        step(j->n, in.decay, x, in.b, in.c, m, y);
        memcpy(cpu_at(j->c->out, in.at), y, (size_t)k->w * sizeof *y);
    }
}

/* One step of one row, which is n numbers one after another: m = decay m + x b; the sum of m c. */
static float row_step(int64_t n, const struct token *in, float x, float *m)
{
    vec_f32 sum = {0}, xv = vec_all(x);
    int64_t j = 0;

    for (; j + VEC_F32 <= n; j += VEC_F32) {
        vec_f32 s = F32_MADD(xv, vec_load(in->b + j), vec_load(m + j) * in->decay);
        vec_store(m + j, s);
        sum = F32_MADD(s, vec_load(in->c + j), sum);
    }
    if (j < n) {
        vec_f32 held = lanes_load_some(m + j, n - j) * in->decay;
        vec_f32 s = F32_MADD(xv, lanes_load_some(in->b + j, n - j), held);
        lanes_store_some(m + j, s, n - j);
        s = lanes_only(lanes_mask(n - j), s);
        sum = F32_MADD(s, lanes_load_some(in->c + j, n - j), sum);
    }
    return (float)vec_sum(sum);
}

static void run_rows(const struct job *j, const struct block *k, float *state)
{
    for (int64_t t = 0; t < j->steps; t++) {
        struct token in = token_at(j, k, t);
        const float *x = cpu_at(&j->in[0], in.at);
        float *y = cpu_at(j->c->out, in.at);
        for (int64_t i = 0; i < k->w; i++)
            y[i] = row_step(j->n, &in, x[i] * in.dt, state + i * j->n);
    }
}

static void run_block(const struct job *j, int64_t at, float *m)
{
    int64_t head = at / j->blocks, first = at % j->blocks * LANES;
    struct block k = {.item = head / j->heads,
                      .head = head % j->heads,
                      .first = first,
                      .w = cpu_min_i64(LANES, j->width - first)};
    float *state = j->state ? j->state + (head * j->width + first) * j->n : NULL;

    if (state && j->steps <= LANES_FEW_STEPS)
        return run_rows(j, &k, state);
    if (state)
        lanes_turn(state, k.w, j->n, m);
    else
        memset(m, 0, (size_t)(j->n * LANES) * sizeof *m);
    run_lanes(j, &k, m);
    if (state)
        lanes_turn_back(m, k.w, j->n, state);
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    char *m = j->room + (uint64_t)worker * lanes_bytes(j->n * LANES);

    for (int64_t at = begin; at < end; at++)
        run_block(j, at, (float *)(void *)m);
}

static int32_t state_of(const struct cpu_call *c)
{
    return c->attr->mamba2.carry_state ? 5 : -1;
}

static uint64_t room_bytes(const struct cpu_call *c)
{
    return (uint64_t)gemm_workers(c->pool) * lanes_bytes(c->attr->mamba2.state_size * LANES);
}

static uint64_t scratch(const struct cpu_call *c)
{
    if (c->out->count == 0)
        return 0;
    return room_bytes(c) + carried_scratch(c, state_of(c));
}

static void run(const struct cpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    int32_t state = state_of(c);
    struct job j = {.c = c,
                    .steps = dim[1],
                    .heads = dim[2],
                    .groups = c->in[3].dim[2],
                    .width = dim[3],
                    .n = c->attr->mamba2.state_size,
                    .blocks = lanes_blocks(dim[3]),
                    .state = state < 0 ? NULL : c->in[state].data,
                    .room = c->scratch};

    if (c->out->count == 0)
        return;
    carried_operands(c, state, j.in, j.room + room_bytes(c));
    cpu_for(c->pool, dim[0] * j.heads * j.blocks,
            lanes_grain(2.0 * (double)(j.steps * j.n) * LANES), run_blocks, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_mamba2);
const struct cpu_kernel CPU_NAME(cpu_mamba2) = {.run = run, .scratch = scratch};
