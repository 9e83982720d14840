/* lower_svd.c: singular values and vectors (ops-core.md 21). */
#include "lower/gpu/linalg/lower_dense.h"

enum {
    SWEEPS = 30,    /* as in the kernel */
    ROUNDS_OF = 15, /* sweeps of what is large: each round is a launch, and six or so suffice */
    SMALL = 64,     /* columns that one group turns */
    PAIRS = 8       /* per group of a round */
};

struct svd {
    uint64_t m, n, length, even;
    bool wide;
    struct gpu_arg w, v, state, flags, order, top;
};

static void begin(struct gpu_call *c, const struct svd *s)
{
    uint64_t count = s->even * (s->length + s->even) + SWEEPS + 1;

    gpu_kernel(c, "svd", "begin");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "R", dense_real(c));
    gpu_flag(c, "WIDE", s->wide);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, s->top);
    gpu_bind(c, s->w);
    gpu_bind(c, s->v);
    gpu_bind(c, s->flags);
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "n", s->n);
    gpu_u32(c, "even", s->even);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
}

static void begin_turns(struct gpu_call *c, const struct svd *s, const char *kernel)
{
    gpu_kernel(c, "svd", kernel);
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, s->w);
    gpu_bind(c, s->v);
    gpu_bind(c, s->flags);
    gpu_u32(c, "even", s->even);
    gpu_u32(c, "length", s->length);
}

static void turn(struct gpu_call *c, const struct svd *s)
{
    begin_turns(c, s, "turn");
    gpu_groups(c, 1);
}

static void turn_round(struct gpu_call *c, const struct svd *s, uint64_t sweep, uint64_t number)
{
    uint64_t groups = gpu_ceil(s->even / 2, PAIRS);

    begin_turns(c, s, "round");
    gpu_u32(c, "sweep", sweep);
    gpu_u32(c, "number", number);
    gpu_u32(c, "count", groups);
    gpu_groups(c, groups);
}

static void finish(struct gpu_call *c, const struct svd *s)
{
    rlx_svd_part part = (rlx_svd_part)c->attr->svd.part;

    gpu_kernel(c, "svd", "finish");
    gpu_type(c, "R", dense_real(c));
    gpu_flag(c, "WIDE", s->wide);
    gpu_flag(c, "SIGNS", part != RLX_SVD_PART_s);
    gpu_flag(c, "OF_W", (part == RLX_SVD_PART_u) != s->wide);
    gpu_bind(c, s->w);
    gpu_bind(c, s->v);
    gpu_bind(c, s->state);
    gpu_bind(c, s->order);
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "n", s->n);
    gpu_u32(c, "even", s->even);
    gpu_groups(c, 1);
}

static void put(struct gpu_call *c, const struct svd *s)
{
    rlx_svd_part part = (rlx_svd_part)c->attr->svd.part;

    gpu_kernel(c, "svd", "put");
    gpu_type(c, "R", dense_real(c));
    gpu_type(c, "O", c->out->dtype);
    gpu_flag(c, "WIDE", s->wide);
    gpu_const(c, "PART", part == RLX_SVD_PART_u ? 0 : part == RLX_SVD_PART_s ? 1 : 2);
    gpu_bind(c, s->w);
    gpu_bind(c, s->v);
    gpu_bind(c, s->state);
    gpu_bind(c, s->order);
    gpu_bind(c, s->top);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "n", s->n);
    gpu_u32(c, "even", s->even);
    gpu_u32(c, "count", gpu_count(c->out));
    gpu_invocations(c, gpu_count(c->out), GPU_GROUP);
}

void gpu_lower_svd(struct gpu_call *c)
{
    uint64_t m = (uint64_t)c->in[0].dim[0], n = (uint64_t)c->in[0].dim[1], t = m < n ? m : n;
    uint64_t real = dense_bytes(c);
    struct svd s = {.m = m, .n = n, .length = m > n ? m : n, .even = t + t % 2, .wide = m < n};

    if (gpu_count(c->out) == 0)
        return;
    s.w = gpu_temp(c, s.even * s.length * real);
    s.v = gpu_temp(c, s.even * s.even * real);
    s.state = gpu_temp(c, 2 * t * real);
    s.flags = gpu_temp(c, (SWEEPS + 1) * 4);
    s.order = gpu_temp(c, t * 4);
    s.top = dense_measure(c);
    begin(c, &s);
    if (s.even <= SMALL)
        turn(c, &s);
    for (uint64_t sweep = 0; s.even > SMALL && sweep < ROUNDS_OF; sweep++)
        for (uint64_t number = 0; number < s.even - 1; number++)
            turn_round(c, &s, sweep, number);
    finish(c, &s);
    put(c, &s);
}
