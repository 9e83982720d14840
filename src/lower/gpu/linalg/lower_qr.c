/* lower_qr.c: the thin QR factors of a matrix, one part (ops-core.md 21). Both parts need Q, whose
 * signs decide those of R. */
#include "lower/gpu/linalg/lower_dense.h"

/* Columns per group, 32 lanes each; and as many in a block: all of its columns at once. */
enum { COLUMNS = GPU_GROUP / 32, BLOCK = COLUMNS };

struct qr {
    uint64_t m, n, t;
    struct gpu_arg w, q, state, top;
};

static void step(struct gpu_call *c, const char *kernel)
{
    gpu_kernel(c, "qr", kernel);
    gpu_type(c, "R", dense_real(c));
}

static void begin(struct gpu_call *c, const struct qr *s)
{
    step(c, "begin");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, s->top);
    gpu_bind(c, s->w);
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "n", s->n);
    gpu_u32(c, "count", s->m * s->n);
    gpu_invocations(c, s->m * s->n, GPU_GROUP);
}

static void reduce_block(struct gpu_call *c, const struct qr *s, uint64_t first, uint64_t last)
{
    uint64_t groups = gpu_ceil(s->n - last, COLUMNS);

    step(c, "panel");
    gpu_bind(c, s->w);
    gpu_bind(c, s->state);
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "first", first);
    gpu_u32(c, "last", last);
    gpu_groups(c, 1);
    step(c, "trailing");
    gpu_bind(c, s->w);
    gpu_bind(c, s->state);
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "n", s->n);
    gpu_u32(c, "first", first);
    gpu_u32(c, "last", last);
    gpu_u32(c, "groups_used", groups);
    gpu_groups(c, groups);
}

static void make_q(struct gpu_call *c, const struct qr *s)
{
    step(c, "gather");
    gpu_bind(c, s->w);
    gpu_bind(c, s->q);
    gpu_bind(c, s->state);
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "t", s->t);
    gpu_u32(c, "groups_used", gpu_ceil(s->t, COLUMNS));
    gpu_groups(c, gpu_ceil(s->t, COLUMNS));
    step(c, "signs");
    gpu_bind(c, s->q);
    gpu_bind(c, s->state);
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "t", s->t);
    gpu_invocations(c, s->t, GPU_GROUP);
}

static void finish(struct gpu_call *c, const struct qr *s)
{
    step(c, "finish");
    gpu_type(c, "O", c->out->dtype);
    gpu_flag(c, "WHICH_R", c->attr->qr.part == RLX_QR_PART_r);
    gpu_bind(c, s->w);
    gpu_bind(c, s->q);
    gpu_bind(c, s->state);
    gpu_bind(c, s->top);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "m", s->m);
    gpu_u32(c, "n", s->n);
    gpu_u32(c, "t", s->t);
    gpu_u32(c, "count", gpu_count(c->out));
    gpu_invocations(c, gpu_count(c->out), GPU_GROUP);
}

void gpu_lower_qr(struct gpu_call *c)
{
    uint64_t m = (uint64_t)c->in[0].dim[0], n = (uint64_t)c->in[0].dim[1], t = m < n ? m : n;
    uint64_t real = dense_bytes(c);
    struct qr s = {.m = m, .n = n, .t = t};

    if (gpu_count(c->out) == 0)
        return;
    s.w = gpu_temp(c, m * n * real);
    s.q = gpu_temp(c, m * t * real);
    s.state = gpu_temp(c, 2 * t * real);
    s.top = dense_measure(c);
    begin(c, &s);
    for (uint64_t first = 0; first < t; first += BLOCK)
        reduce_block(c, &s, first, t - first < BLOCK ? t : first + BLOCK);
    make_q(c, &s);
    finish(c, &s);
}
