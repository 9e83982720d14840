/* lower_sample.c: indices drawn from rows of logits (ops-core.md 9.2): a group per row, or where
 * rows are few and long, several of them and a launch per step of the way. */
#include <math.h>

#include "base/rng.h"
#include "lower/gpu.h"

#define LONG_ROW 2048
#define PART 4096         /* of a row, at least, where several groups share it */
#define ENOUGH_GROUPS 256 /* for a device to be busy */
#define STATE_BYTES 64    /* of a row, between launches */
#define BINS_BYTES 64     /* of a part of a row */
#define DIGIT_BITS 4

struct sample {
    struct gpu_call *c;
    const struct attr_sample *a;
    rlx_dtype dtype;
    uint64_t rows, cols, parts, span;
    bool moves, greedy, top_k, top_p;
    double temperature, least;
    struct gpu_arg state, keys, part;
};

static void describe(struct sample *s, struct gpu_call *c)
{
    const struct attr_sample *a = &c->attr->sample;
    const struct ir_type *x = &c->in[0];
    int64_t cols = x->dim[x->rank - 1];

    *s = (struct sample){.c = c, .a = a, .dtype = x->dtype};
    s->rows = gpu_count(c->out);
    s->cols = (uint64_t)cols;
    s->moves = c->in_count > 1;
    s->greedy = a->top_k == 1 || (double)a->temperature < 1e-6;
    s->top_k = a->top_k > 0 && a->top_k < cols;
    s->top_p = (double)a->top_p < 1 - 1e-6;
    s->temperature = s->greedy ? 1 : (double)a->temperature;
    s->least = log((double)a->min_p); /* p / largest p = e^(z - top); -Inf: off */
}

/* Seeds and keys are two words alike. */
static void add_key(struct sample *s)
{
    struct rng_pair key = rng_key(s->a->seed, 0);

    gpu_u32(s->c, s->moves ? "seed_low" : "key_low", s->moves ? (uint32_t)s->a->seed : key.x0);
    gpu_u32(s->c, s->moves ? "seed_high" : "key_high", s->moves ? s->a->seed >> 32 : key.x1);
}

/* ---- a group per row ---- */

static void lower_rows(struct sample *s)
{
    struct gpu_call *c = s->c;

    gpu_kernel(c, "sample", s->moves ? "moving" : "fixed");
    if (s->moves)
        gpu_type(c, "O", c->in[1].dtype);
    gpu_type(c, "T", s->dtype);
    gpu_type(c, "I", c->out->dtype);
    gpu_flag(c, "GREEDY", s->greedy);
    gpu_flag(c, "TOP_K", s->top_k);
    gpu_flag(c, "TOP_P", s->top_p);
    gpu_const(c, "WG", s->cols > LONG_ROW && c->features->max_group >= 512 ? 512 : GPU_GROUP);
    gpu_bind(c, gpu_in(c, 0));
    if (s->moves)
        gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "rows", s->rows);
    gpu_u32(c, "cols", s->cols);
    add_key(s);
    gpu_u32(c, "k", s->top_k ? (uint64_t)s->a->top_k : s->cols);
    gpu_f32(c, "temperature", s->temperature);
    gpu_f32(c, "p", (double)s->a->top_p);
    gpu_f32(c, "least", s->least);
    gpu_groups(c, s->rows);
}

/* ---- several groups per row ---- */

/* A kernel over parts of rows: the words that all of them have. */
static void add_parts(struct sample *s)
{
    gpu_u32(s->c, "rows", s->rows);
    gpu_u32(s->c, "cols", s->cols);
    gpu_u32(s->c, "parts", s->parts);
    gpu_u32(s->c, "span", s->span);
    gpu_f32(s->c, "temperature", s->temperature);
    gpu_f32(s->c, "least", s->least);
}

static void find_best(struct sample *s, bool draws)
{
    struct gpu_call *c = s->c;

    gpu_kernel(c, "sample_wide", "best");
    gpu_type(c, "T", s->dtype);
    gpu_flag(c, "DRAWS", draws);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, s->state);
    gpu_bind(c, s->keys);
    gpu_bind(c, s->part);
    add_parts(s);
    gpu_groups(c, s->rows * s->parts);
}

static void begin_state(struct sample *s)
{
    struct gpu_call *c = s->c;

    gpu_kernel(c, "sample_wide", "begin");
    gpu_bind(c, s->part);
    gpu_bind(c, s->state);
    gpu_u32(c, "rows", s->rows);
    gpu_u32(c, "cols", s->cols);
    gpu_u32(c, "parts", s->parts);
    gpu_f32(c, "target", (double)s->a->top_k);
    gpu_invocations(c, s->rows, 64);
}

static void find_digit(struct sample *s, bool by_key, bool likely, uint32_t shift)
{
    struct gpu_call *c = s->c;
    bool counts_likely = likely && by_key;

    gpu_kernel(c, "sample_wide", "bins");
    gpu_type(c, "T", s->dtype);
    gpu_flag(c, "BY_KEY", by_key);
    gpu_flag(c, "LIKELY", counts_likely);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, s->state);
    gpu_bind(c, s->part);
    add_parts(s);
    gpu_u32(c, "shift", shift);
    gpu_groups(c, s->rows * s->parts);

    gpu_kernel(c, "sample_wide", "choose");
    gpu_flag(c, "BY_KEY", by_key);
    gpu_flag(c, "LIKELY", counts_likely);
    gpu_flag(c, "LAST", shift == 0);
    gpu_bind(c, s->part);
    gpu_bind(c, s->state);
    gpu_u32(c, "rows", s->rows);
    gpu_u32(c, "cols", s->cols);
    gpu_u32(c, "parts", s->parts);
    gpu_u32(c, "shift", shift);
    gpu_invocations(c, s->rows, 64);
}

/* The key of the last that is kept, then the last index of those that share it. */
static void find_cut(struct sample *s, bool likely)
{
    uint32_t bits = 0;

    while (s->cols >> bits)
        bits += DIGIT_BITS;
    for (uint32_t shift = 32; shift > 0;)
        find_digit(s, true, likely, shift -= DIGIT_BITS);
    for (uint32_t shift = bits; shift > 0;)
        find_digit(s, false, likely, shift -= DIGIT_BITS);
}

static void weigh(struct sample *s)
{
    struct gpu_call *c = s->c;

    gpu_kernel(c, "sample_wide", "weigh");
    gpu_type(c, "T", s->dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, s->state);
    gpu_bind(c, s->part);
    add_parts(s);
    gpu_groups(c, s->rows * s->parts);

    gpu_kernel(c, "sample_wide", "scales");
    gpu_bind(c, s->part);
    gpu_bind(c, s->state);
    gpu_u32(c, "rows", s->rows);
    gpu_u32(c, "parts", s->parts);
    gpu_f32(c, "target", (double)s->a->top_p);
    gpu_invocations(c, s->rows, 64);
}

static void make_key(struct sample *s)
{
    struct gpu_call *c = s->c;

    gpu_kernel(c, "sample_wide", s->moves ? "moving_key" : "fixed_key");
    if (s->moves) {
        gpu_type(c, "O", c->in[1].dtype);
        gpu_bind(c, gpu_in(c, 1));
    }
    gpu_bind(c, s->keys);
    add_key(s);
    gpu_groups(c, 1);
}

static void finish(struct sample *s)
{
    struct gpu_call *c = s->c;

    gpu_kernel(c, "sample_wide", "finish");
    gpu_type(c, "I", c->out->dtype);
    gpu_flag(c, "GREEDY", s->greedy);
    gpu_bind(c, s->part);
    gpu_bind(c, s->state);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "rows", s->rows);
    gpu_u32(c, "cols", s->cols);
    gpu_u32(c, "parts", s->parts);
    gpu_invocations(c, s->rows, 64);
}

static void lower_parts(struct sample *s)
{
    find_best(s, false);
    begin_state(s);
    if (!s->greedy) {
        make_key(s);
        if (s->top_k)
            find_cut(s, false);
        if (s->top_p) {
            weigh(s);
            find_cut(s, true);
        }
        find_best(s, true);
    }
    finish(s);
}

/* As much as any number of rows may need, so that it does not grow when there are fewer. */
static void take_scratch(struct sample *s)
{
    s->state = gpu_temp(s->c, ENOUGH_GROUPS * STATE_BYTES);
    s->keys = gpu_temp(s->c, 2 * sizeof(uint32_t));
    s->part = gpu_temp(s->c, 2 * ENOUGH_GROUPS * BINS_BYTES);
}

void gpu_lower_sample(struct gpu_call *c)
{
    struct sample s;

    describe(&s, c);
    if (s.rows == 0 || s.cols == 0)
        return;
    s.parts = gpu_ceil(s.cols, PART);
    if (s.parts > gpu_ceil(ENOUGH_GROUPS, s.rows))
        s.parts = gpu_ceil(ENOUGH_GROUPS, s.rows);
    s.span = gpu_ceil(s.cols, s.parts);
    if (s.cols > PART)
        take_scratch(&s);
    if (s.parts > 1)
        lower_parts(&s);
    else
        lower_rows(&s);
}
