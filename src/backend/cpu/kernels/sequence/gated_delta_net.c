/* gated_delta_net.c: the gated delta rule (ops-special.md 3.2).
 *
 *     S = e^g S;  d = beta (v - S^T k);  S = S + k d^T;  o = S^T q / sqrt(n)
 *
 * The columns of a head's state [key, value] know nothing of one another: a task is a block of
 * them, from the first token to the last, in two passes over its part of the state per token. */
#include "backend/cpu/kernels/sequence/carried.h"
#include "backend/cpu/kernels/sequence/lanes.h"

enum { STATES = 128 }; /* at most, says the shape rule */

struct job {
    const struct cpu_call *c;
    struct cpu_tensor in[6];
    int64_t steps, heads, n, blocks;
    const struct cpu_tensor *state; /* NULL: begins with zeros, and is forgotten */
};

/* A row of the state in the first pass: s = decay s; sum += s k. And in the second: s += k d;
 * sum += s q. */
static inline __attribute__((always_inline)) void decay_row(float decay, float k, float *s,
                                                            vec_f32 *sum)
{
    GEMM_UNROLL
    for (int v = 0; v < LANES_VECS; v++) {
        vec_f32 x = vec_load(s + v * VEC_F32) * decay;
        vec_store(s + v * VEC_F32, x);
        sum[v] = F32_MADD(x, vec_all(k), sum[v]);
    }
}

static inline __attribute__((always_inline)) void write_row(float k, const vec_f32 *d, float q,
                                                            float *s, vec_f32 *sum)
{
    GEMM_UNROLL
    for (int v = 0; v < LANES_VECS; v++) {
        vec_f32 x = F32_MADD(d[v], vec_all(k), vec_load(s + v * VEC_F32));
        vec_store(s + v * VEC_F32, x);
        sum[v] = F32_MADD(x, vec_all(q), sum[v]);
    }
}

/* s *= decay; what it then holds for k comes out in p. Sums run in two, for speed and error. */
static void decay_and_read(int64_t n, float decay, const float *k, float *s, float *p)
{
    vec_f32 even[LANES_VECS] = {{0}}, odd[LANES_VECS] = {{0}};
    int64_t i = 0;

    for (; i + 2 <= n; i += 2) {
        decay_row(decay, k[i], s + i * LANES, even);
        decay_row(decay, k[i + 1], s + (i + 1) * LANES, odd);
    }
    if (i < n)
        decay_row(decay, k[i], s + i * LANES, even);
    for (int v = 0; v < LANES_VECS; v++)
        vec_store(p + v * VEC_F32, even[v] + odd[v]);
}

/* s += k d^T; what it then holds for q comes out in o. */
static void write_and_read(int64_t n, const float *k, const float *d, const float *q, float *s,
                           float *o)
{
    vec_f32 dv[LANES_VECS], even[LANES_VECS] = {{0}}, odd[LANES_VECS] = {{0}};
    int64_t i = 0;

    for (int v = 0; v < LANES_VECS; v++)
        dv[v] = vec_load(d + v * VEC_F32);
    for (; i + 2 <= n; i += 2) {
        write_row(k[i], dv, q[i], s + i * LANES, even);
        write_row(k[i + 1], dv, q[i + 1], s + (i + 1) * LANES, odd);
    }
    if (i < n)
        write_row(k[i], dv, q[i], s + i * LANES, even);
    for (int v = 0; v < LANES_VECS; v++)
        vec_store(o + v * VEC_F32, even[v] + odd[v]);
}

/* One token of w columns from `first` on. */
static void run_token(const struct job *j, int64_t token, int64_t first, int64_t w, float *s)
{
    const struct cpu_tensor *in = j->in;
    rlx_dtype t = in[0].dtype;
    int64_t n = j->n, at = token * n;
    _Alignas(64) float q_room[STATES], k_room[STATES];
    const float *q = cpu_as_f32(t, cpu_at(&in[0], at), q_room, n);
    const float *k = cpu_as_f32(t, cpu_at(&in[1], at), k_room, n);
    float decay = math_exp((float)cpu_get_f64(t, in[3].data, token));
    float beta = (float)cpu_get_f64(t, in[4].data, token), root = 1 / sqrtf((float)n);
    LANES_OF(d);
    LANES_OF(p);

    lanes_load(t, cpu_at(&in[2], at + first), w, d);
    decay_and_read(n, decay, k, s, p);
    for (int l = 0; l < LANES; l++)
        d[l] = (d[l] - p[l]) * beta;
    write_and_read(n, k, d, q, s, p);
    for (int l = 0; l < LANES; l++)
        p[l] *= root;
    cpu_store_f32(t, p, cpu_at(j->c->out, at + first), w);
}

static void run_block(const struct job *j, int64_t block, float *s)
{
    int64_t head = block / j->blocks, first = block % j->blocks * LANES, n = j->n;
    int64_t item = head / j->heads, w = cpu_min_i64(LANES, n - first);

    memset(s, 0, (size_t)(n * LANES) * sizeof *s);
    for (int64_t i = 0; j->state && i < n; i++)
        lanes_load(j->state->dtype, cpu_at(j->state, (head * n + i) * n + first), w, s + i * LANES);
    for (int64_t t = 0; t < j->steps; t++)
        run_token(j, (item * j->steps + t) * j->heads + head % j->heads, first, w, s);
    for (int64_t i = 0; j->state && i < n; i++) {
        int64_t to = (head * n + i) * n + first;
        cpu_store_f32(j->state->dtype, s + i * LANES, cpu_at(j->state, to), w);
    }
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    _Alignas(64) float s[STATES * LANES];

    (void)worker;
    for (int64_t at = begin; at < end; at++)
        run_block(ctx, at, s);
}

static int32_t state_of(const struct cpu_call *c)
{
    return c->attr->gated_delta_net.carry_state ? 5 : -1;
}

static uint64_t scratch(const struct cpu_call *c)
{
    return carried_scratch(c, state_of(c));
}

static void run(const struct cpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    struct job j = {.c = c, .steps = dim[1], .heads = dim[2], .n = dim[3]};

    if (c->out->count == 0)
        return;
    j.blocks = lanes_blocks(j.n);
    if (state_of(c) >= 0)
        j.state = &c->in[state_of(c)];
    carried_operands(c, state_of(c), j.in, c->scratch);
    cpu_for(c->pool, dim[0] * j.heads * j.blocks,
            lanes_grain(4.0 * (double)(j.steps * j.n) * LANES), run_blocks, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_gated_delta_net);
const struct cpu_kernel CPU_NAME(cpu_gated_delta_net) = {.run = run, .scratch = scratch};
