/* channel.c: one value per channel from all of its elements.
 *
 * The tensor is [outer, channels, inner]. It is cut into boxes of some ten thousand elements: of a
 * few channels and whole inner rows where those are short, of one channel and part of its inner row
 * where they are long. Each box adds up its channels, and then the boxes are combined in order.
 *
 *     inner rows long:    channels x parts of a row            each box takes all of outer
 *     inner rows short:   parts of outer x groups of channels  each box takes whole rows */
#include "backend/cpu/kernels/rows/channel.h"

enum { BOX = 32768, PARTS_MOST = 256 };

struct cut {
    int64_t parts; /* partial results per channel */
    int64_t group; /* channels per box */
    int64_t groups;
    int64_t outer_len, inner_len; /* of a part */
};

static int64_t pieces(int64_t n, int64_t len)
{
    return n / len + (n % len != 0);
}

static struct cut cut_of(const struct cpu_channels *g)
{
    struct cut c = {.parts = 1, .group = 1, .outer_len = g->outer, .inner_len = g->inner};

    if (g->inner >= BOX) {
        c.inner_len = cpu_max_i64(BOX, pieces(g->inner, PARTS_MOST));
        c.parts = pieces(g->inner, c.inner_len);
    } else {
        int64_t inner = cpu_max_i64(g->inner, 1);
        c.group = cpu_max_i64(1, cpu_min_i64(BOX / inner, g->count));
        /* No more parts than leave the partial results small beside the tensor. */
        int64_t most = cpu_min_i64(cpu_max_i64(g->outer * inner / 16, 1), PARTS_MOST);
        int64_t rows = cpu_max_i64(1, BOX / (c.group * inner));
        c.outer_len = cpu_max_i64(cpu_max_i64(rows, pieces(g->outer, most)), 1);
        c.parts = cpu_max_i64(1, pieces(g->outer, c.outer_len));
    }
    c.groups = pieces(g->count, c.group);
    return c;
}

uint64_t cpu_channel_scratch(const struct cpu_channels *g)
{
    return (uint64_t)cut_of(g).parts * (uint64_t)g->count;
}

struct job {
    const struct cpu_channels *g;
    struct cut cut;
    enum cpu_channel_op op;
    cpu_channel_fn term;
    void *ctx;
    double *partial; /* [parts, channels] */
};

static double combine(enum cpu_channel_op op, double a, double b)
{
    return op == CHANNEL_SUM ? a + b : cpu_max_f64(a, b);
}

static double gather_run(enum cpu_channel_op op, const double *v, int64_t n)
{
    double lane[4] = {0};
    int64_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int64_t k = 0; k < 4; k++)
            lane[k] = combine(op, lane[k], v[i + k]);
    for (; i < n; i++)
        lane[0] = combine(op, lane[0], v[i]);
    return combine(op, combine(op, lane[0], lane[1]), combine(op, lane[2], lane[3]));
}

/* Elements pos .. pos+n-1 of consecutive channels, into the values of their channels. */
static void take_row(const struct job *j, int64_t pos, int64_t n, double *part)
{
    const struct cpu_channels *g = j->g;
    CPU_TILE_OF(double, v);

    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t len = cpu_min_i64(n - at, CPU_TILE), first = pos + at;
        int64_t channel = first / g->inner % g->count;

        j->term(j->ctx, first, len, v);
        if (g->inner == 1) {
            for (int64_t i = 0; i < len; i++)
                part[channel + i] = combine(j->op, part[channel + i], v[i]);
            continue;
        }
        for (int64_t i = 0; i < len; channel++) {
            int64_t run = cpu_min_i64(len - i, g->inner - (first + i) % g->inner);
            part[channel] = combine(j->op, part[channel], gather_run(j->op, v + i, run));
            i += run;
        }
    }
}

static void box_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    const struct cpu_channels *g = j->g;
    const struct cut *c = &j->cut;

    (void)worker;
    for (int64_t box = begin; box < end; box++) {
        int64_t part = box / c->groups, c0 = box % c->groups * c->group;
        int64_t channels = cpu_min_i64(c->group, g->count - c0);
        double *values = j->partial + part * g->count;
        bool split_inner = c->inner_len < g->inner;
        int64_t o0 = split_inner ? 0 : part * c->outer_len;
        int64_t o1 = cpu_min_i64(o0 + c->outer_len, g->outer);
        int64_t i0 = split_inner ? part * c->inner_len : 0;
        int64_t len = split_inner ? cpu_min_i64(c->inner_len, g->inner - i0) : channels * g->inner;

        for (int64_t k = 0; k < channels; k++)
            values[c0 + k] = 0;
        for (int64_t o = o0; o < o1; o++)
            take_row(j, (o * g->count + c0) * g->inner + i0, len, values);
    }
}

void cpu_channel_reduce(struct pool *pool, const struct cpu_channels *g, enum cpu_channel_op op,
                        cpu_channel_fn term, void *ctx, double *scratch, double *result)
{
    struct job j = {
        .g = g, .cut = cut_of(g), .op = op, .term = term, .ctx = ctx, .partial = scratch};
    bool none = g->inner == 0 || g->outer == 0;

    if (!none)
        cpu_for(pool, j.cut.parts * j.cut.groups, 1, box_range, &j);
    for (int64_t c = 0; c < g->count; c++) {
        result[c] = 0;
        for (int64_t p = 0; p < j.cut.parts && !none; p++)
            result[c] = combine(op, result[c], scratch[p * g->count + c]);
    }
}
