/* gated_delta_net_backward.c: the gradients of gated_delta_net without carry, packed flat
 * (ops-special.md 3.2).
 *
 * A task is a head of one item. It goes forward once and keeps one state per stretch, then goes
 * backward stretch by stretch, computing the states of a stretch again. Rows of its matrices are
 * whole vectors, filled up with zeros; sums across a row leave those out. */
#include "backend/cpu/kernels/sequence/lanes.h"

enum { STATES = 128 }; /* at most, says the shape rule; and a whole number of vectors */

struct job {
    const struct cpu_call *c;
    int64_t steps, heads, n;
    int64_t ld;      /* from row to row: n, in whole vectors */
    int64_t stretch; /* steps between states that are kept */
    char *room;      /* of worker 0: gs, then kept and made states [n][ld] */
    uint64_t room_bytes;
};

/* A token's operands in f32, and what is computed from them. */
struct token {
    int64_t at;
    float decay, beta;
    _Alignas(64) float q[STATES], k[STATES], v[STATES], dy[STATES];
    _Alignas(64) float p[STATES], d[STATES]; /* held for the key; written */
};

static void take(const struct job *j, int32_t i, int64_t at, float *to)
{
    cpu_load_f32(j->c->in[i].dtype, cpu_at(&j->c->in[i], at * j->n), to, j->n);
    for (int64_t k = j->n; k < j->ld; k++)
        to[k] = 0;
}

static void take_token(const struct job *j, int64_t head, int64_t step, bool back, struct token *t)
{
    const struct cpu_tensor *in = j->c->in;

    t->at = (head / j->heads * j->steps + step) * j->heads + head % j->heads;
    t->decay = math_exp((float)cpu_get_f64(in[3].dtype, in[3].data, t->at));
    t->beta = (float)cpu_get_f64(in[4].dtype, in[4].data, t->at);
    take(j, 1, t->at, t->k);
    take(j, 2, t->at, t->v);
    if (!back)
        return;
    take(j, 0, t->at, t->q);
    take(j, 5, t->at, t->dy);
}

/* p = s1^T k and d = beta (v - p), s1 being s with its decay. */
static void read_state(const struct job *j, const float *s, struct token *t)
{
    for (int64_t u = 0; u < j->ld; u += VEC_F32) {
        vec_f32 even = {0}, odd = {0};
        int64_t i = 0;
        for (; i + 2 <= j->n; i += 2) {
            even = F32_MADD(vec_load(s + i * j->ld + u) * t->decay, vec_all(t->k[i]), even);
            odd = F32_MADD(vec_load(s + (i + 1) * j->ld + u) * t->decay, vec_all(t->k[i + 1]), odd);
        }
        if (i < j->n)
            even = F32_MADD(vec_load(s + i * j->ld + u) * t->decay, vec_all(t->k[i]), even);
        vec_store(t->p + u, even + odd);
        vec_store(t->d + u, (vec_load(t->v + u) - (even + odd)) * t->beta);
    }
}

/* next = s1 + k d^T, at the same place or another. */
static void write_state(const struct job *j, const struct token *t, const float *s, float *next)
{
    for (int64_t i = 0; i < j->n; i++)
        for (int64_t u = i * j->ld, k = 0; k < j->ld; k += VEC_F32)
            vec_store(next + u + k, F32_MADD(vec_load(t->d + k), vec_all(t->k[i]),
                                             vec_load(s + u + k) * t->decay));
}

static void put(const struct job *j, int32_t operand, int64_t at, const float *from, int64_t n)
{
    const struct cpu_tensor *out = j->c->out;

    for (int32_t i = 0; i < operand; i++)
        at += j->c->in[i].count;
    cpu_store_f32(out->dtype, from, cpu_at(out, at), n);
}

/* ---- one step back ------------------------------------------------------------------------- */

/* gs += q dy^T / sqrt(n); dq = s2 dy / sqrt(n); gd = gs^T k. */
static void back_through_reading(const struct job *j, const struct token *t, const float *s,
                                 float *gs, float *gd)
{
    float root = 1 / sqrtf((float)j->n), dq[STATES];

    memset(gd, 0, (size_t)j->ld * sizeof *gd);
    for (int64_t i = 0; i < j->n; i++) {
        vec_f32 sum = {0};
        for (int64_t k = 0; k < j->ld; k += VEC_F32) {
            vec_f32 dy = vec_load(t->dy + k) * root;
            vec_f32 s2 = F32_MADD(vec_load(t->d + k), vec_all(t->k[i]),
                                  vec_load(s + i * j->ld + k) * t->decay);
            vec_f32 g = F32_MADD(dy, vec_all(t->q[i]), vec_load(gs + i * j->ld + k));
            sum += lanes_only(lanes_mask(j->n - k), s2 * dy);
            vec_store(gs + i * j->ld + k, g);
            vec_store(gd + k, F32_MADD(g, vec_all(t->k[i]), vec_load(gd + k)));
        }
        dq[i] = (float)vec_sum(sum);
    }
    put(j, 0, t->at * j->n, dq, j->n);
}

/* dk = gs d + s1 gp; gs += k gp^T; dg = sum of gs s1; gs *= decay. */
static void back_through_writing(const struct job *j, const struct token *t, const float *s,
                                 const float *gp, float *gs)
{
    float dk[STATES], dg;
    double total = 0;

    for (int64_t i = 0; i < j->n; i++) {
        vec_f32 sum = {0}, both = {0};
        for (int64_t k = 0; k < j->ld; k += VEC_F32) {
            vec_i32 real = lanes_mask(j->n - k);
            vec_f32 s1 = vec_load(s + i * j->ld + k) * t->decay, g = vec_load(gs + i * j->ld + k);
            vec_f32 gpv = vec_load(gp + k);
            sum += lanes_only(real, F32_MADD(s1, gpv, g * vec_load(t->d + k)));
            g = F32_MADD(gpv, vec_all(t->k[i]), g);
            both += lanes_only(real, g * s1);
            vec_store(gs + i * j->ld + k, g * t->decay);
        }
        dk[i] = (float)vec_sum(sum);
        total += vec_sum(both);
    }
    dg = (float)total;
    put(j, 1, t->at * j->n, dk, j->n);
    put(j, 3, t->at, &dg, 1);
}

static void step_back(const struct job *j, struct token *t, const float *s, float *gs)
{
    _Alignas(64) float gd[STATES], gp[STATES], dv[STATES];
    float dbeta;
    double total = 0;

    read_state(j, s, t);
    back_through_reading(j, t, s, gs, gd);
    for (int64_t k = 0; k < j->ld; k++) {
        dv[k] = t->beta * gd[k];
        gp[k] = -dv[k];
    }
    for (int64_t k = 0; k < j->n; k++)
        total += (double)(gd[k] * (t->v[k] - t->p[k]));
    dbeta = (float)total;
    put(j, 2, t->at * j->n, dv, j->n);
    put(j, 4, t->at, &dbeta, 1);
    back_through_writing(j, t, s, gp, gs);
}

/* ---- one head ------------------------------------------------------------------------------ */

static void run_head(const struct job *j, int64_t head, float *room)
{
    int64_t state = j->n * j->ld;
    float *gs = room, *kept = gs + state, *made = kept + j->stretch * state;
    struct token t;

    memset(made, 0, (size_t)state * sizeof *made);
    for (int64_t step = 0; step < j->steps; step++) {
        if (step % j->stretch == 0)
            memcpy(kept + step / j->stretch * state, made, (size_t)state * sizeof *made);
        take_token(j, head, step, false, &t);
        read_state(j, made, &t);
        write_state(j, &t, made, made);
    }
    memset(gs, 0, (size_t)state * sizeof *gs);
    for (int64_t from = (j->steps - 1) / j->stretch * j->stretch; from >= 0; from -= j->stretch) {
        int64_t count = cpu_min_i64(j->stretch, j->steps - from);
        memcpy(made, kept + from / j->stretch * state, (size_t)state * sizeof *made);
        for (int64_t i = 0; i + 1 < count; i++) {
            take_token(j, head, from + i, false, &t);
            read_state(j, made + i * state, &t);
            write_state(j, &t, made + i * state, made + (i + 1) * state);
        }
        for (int64_t i = count - 1; i >= 0; i--) {
            take_token(j, head, from + i, true, &t);
            step_back(j, &t, made + i * state, gs);
        }
    }
}

static void run_heads(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    char *room = j->room + (uint64_t)worker * j->room_bytes;

    for (int64_t at = begin; at < end; at++)
        run_head(j, at, (float *)(void *)room);
}

static void describe(const struct cpu_call *c, struct job *j)
{
    const int64_t *dim = c->in[0].dim;

    *j = (struct job){.c = c,
                      .steps = dim[1],
                      .heads = dim[2],
                      .n = dim[3],
                      .ld = gemm_up(dim[3], VEC_F32),
                      .stretch = lanes_stretch(dim[1])};
    j->room_bytes = lanes_bytes((1 + 2 * j->stretch) * j->n * j->ld);
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct job j;

    if (c->out->count == 0)
        return 0;
    describe(c, &j);
    return (uint64_t)gemm_workers(c->pool) * j.room_bytes;
}

static void run(const struct cpu_call *c)
{
    struct job j;

    if (c->out->count == 0)
        return;
    describe(c, &j);
    j.room = c->scratch;
    cpu_for(c->pool, c->in[0].dim[0] * j.heads, 1, run_heads, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_gated_delta_net_backward);
const struct cpu_kernel CPU_NAME(cpu_gated_delta_net_backward) = {.run = run, .scratch = scratch};
