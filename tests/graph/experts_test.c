/* experts_test.c: gates and experts in every form that files of language models ask for, against
 * plain loops in double precision, on every device. */
#include "moe_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/autodiff.h"
#include "rlx/quant.h"

/* ---- gates --------------------------------------------------------------------------------- */

enum { TOKENS = 23, MANY = 12, MOST_K = 6 };

static void scores(const float *logits, rlx_gate_function f, double *p)
{
    double top = -INFINITY, sum = 0;

    for (int e = 0; e < MANY; e++)
        top = fmax(top, (double)logits[e]);
    for (int e = 0; e < MANY; e++) {
        double l = (double)logits[e];
        p[e] = f == RLX_GATE_SIGMOID         ? 1 / (1 + exp(-l))
               : f == RLX_GATE_SQRT_SOFTPLUS ? sqrt(log1p(exp(l)))
               : f == RLX_GATE_SOFTMAX       ? exp(l - top)
                                             : l;
        sum += p[e];
    }
    for (int e = 0; e < MANY && f == RLX_GATE_SOFTMAX; e++)
        p[e] /= sum;
}

/* The largest of by[0..n) that is not taken yet. */
static int best_of(const double *by, const bool *taken, int n)
{
    int best = -1;

    for (int i = 0; i < n; i++)
        if (!taken[i] && (best < 0 || by[i] > by[best]))
            best = i;
    return best;
}

/* Experts outside of the best groups become -inf. */
static void limit(const rlx_gate_desc *d, double *by)
{
    int groups = (int)d->group_count, each = groups > 1 ? MANY / groups : 0;
    double score[MANY];
    bool used[MANY] = {false};

    if (groups < 2)
        return;
    for (int i = 0; i < groups; i++) {
        bool taken[MANY] = {false};
        int first = best_of(by + i * each, taken, each);
        score[i] = by[i * each + first];
        taken[first] = true;
        if (each > 1)
            score[i] += by[i * each + best_of(by + i * each, taken, each)];
    }
    for (int i = 0; i < d->group_used; i++)
        used[best_of(score, used, groups)] = true;
    for (int e = 0; e < MANY; e++)
        if (!used[e / each])
            by[e] = -INFINITY;
}

static void choose(const rlx_gate_desc *d, const float *logits, const float *bias, int *id,
                   double *weight)
{
    double p[MANY], by[MANY], sum = 0, top = -INFINITY;
    bool taken[MANY] = {false};
    bool late = d->function == RLX_GATE_SOFTMAX_OF_CHOSEN;

    scores(logits, d->function, p);
    for (int e = 0; e < MANY; e++)
        by[e] = (d->choose_by_logits ? (double)logits[e] : p[e]) + (bias ? (double)bias[e] : 0);
    limit(d, by);
    for (int j = 0; j < d->k; j++) {
        id[j] = best_of(by, taken, MANY);
        taken[id[j]] = true;
        top = fmax(top, p[id[j]]);
    }
    for (int j = 0; j < d->k; j++)
        sum += weight[j] = late ? exp(p[id[j]] - top) : p[id[j]];
    for (int j = 0; j < d->k; j++)
        weight[j] *= (d->scale != 0 ? (double)d->scale : 1) / (late           ? sum
                                                               : d->normalise ? fmax(sum, 0x1p-14)
                                                                              : 1);
}

static void check_gate(struct test *t, struct world *w, const rlx_gate_desc *d, float *logits,
                       float *bias)
{
    static float ids[TOKENS * MOST_K], weights[TOKENS * MOST_K];
    rlx_binding in[2] = {bind("logits", RLX_LIST(1, TOKENS, MANY), logits)};
    rlx_binding out[2] = {bind("out0", RLX_LIST(1, TOKENS, d->k), ids),
                          bind("out1", RLX_LIST(1, TOKENS, d->k), weights)};
    rlx_error err = {0};
    rlx_value b = RLX_NO_VALUE;

    require_ok(t, rlx_graph_create(w->ctx, &w->g, &err));
    rlx_value x =
        rlx_input(w->g, "logits", RLX_DTYPE_f32, RLX_LIST(1, rlx_dim_symbol(w->g, "tokens"), MANY));
    if (bias) {
        b = rlx_input(w->g, "bias", RLX_DTYPE_f32, RLX_LIST(MANY));
        in[1] = bind("bias", RLX_LIST(MANY), bias);
    }
    rlx_gate gate = rlx_gate_experts(w->g, x, b, d);
    rlx_output(w->g, gate.ids);
    rlx_output(w->g, gate.weights);
    if (run(w, in, bias ? 2 : 1, out, 2, &err) != RLX_OK)
        fail(t, "%s", err.message);
    for (int r = 0; r < TOKENS; r++) {
        int id[MOST_K];
        double want[MOST_K];
        choose(d, logits + r * MANY, bias, id, want);
        for (int j = 0; j < d->k; j++) {
            expect_near(t, ids[r * d->k + j], id[j], 0);
            expect_near(t, weights[r * d->k + j], want[j], 2e-6 * fmax(1, fabs(want[j])));
        }
    }
    rlx_graph_destroy(w->g);
    w->g = NULL;
}

#define GATE(...)                             \
    {                                         \
        RLX_SIZED(rlx_gate_desc), __VA_ARGS__ \
    }

TEST_DEVICES(experts, gates_choose_and_weigh)
{
    static const struct {
        rlx_gate_desc d;
        bool biased;
    } rows[] = {
        {GATE(.k = 3), false},
        {GATE(.k = 3, .normalise = true, .scale = 1.5f), true},
        {GATE(.k = 4, .function = RLX_GATE_SIGMOID), false},
        {GATE(.k = 4, .function = RLX_GATE_SIGMOID, .normalise = true, .scale = 2.5f), true},
        {GATE(.k = 1, .function = RLX_GATE_SIGMOID, .choose_by_logits = true), false},
        {GATE(.k = 4, .function = RLX_GATE_SOFTMAX_OF_CHOSEN), false},
        {GATE(.k = 2, .function = RLX_GATE_SOFTMAX_OF_CHOSEN), true},
        {GATE(.k = 6, .function = RLX_GATE_SQRT_SOFTPLUS, .normalise = true), true},
        {GATE(.k = 4, .group_count = 1, .group_used = 1), false},
        {GATE(.k = 4, .function = RLX_GATE_SIGMOID, .normalise = true, .scale = 2.5f,
              .group_count = 4, .group_used = 2),
         true},
        {GATE(.k = 3, .group_count = 3, .group_used = 1), false},
        {GATE(.k = 3, .group_count = 3, .group_used = 3), false},
        {GATE(.k = 5, .function = RLX_GATE_SIGMOID, .group_count = 12, .group_used = 5), false},
        {GATE(.k = 2, .function = RLX_GATE_SOFTMAX_OF_CHOSEN, .group_count = 2, .group_used = 1),
         true},
    };
    static float logits[TOKENS * MANY], bias[MANY];
    struct world w;

    fill(logits, TOKENS * MANY, 3);
    for (int i = 0; i < TOKENS * MANY; i++) /* many ties */
        logits[i] = roundf(2 * (logits[i] + 1)) / 2;
    fill(bias, MANY, 4);
    if (open_world_on(t, &w)) {
        rlx_graph_destroy(w.g);
        w.g = NULL;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            test_note(t, "gate %zu", i);
            check_gate(t, &w, &rows[i].d, logits, rows[i].biased ? bias : NULL);
        }
    }
    close_world(&w);
}

/* Where p rounds to 1, logits still tell which is larger. */
TEST(experts, logits_choose_where_p_is_the_same)
{
    static float logits[MANY] = {20, 40, 30};
    float ids[2], weights[2];
    rlx_gate_desc d = GATE(.k = 2, .function = RLX_GATE_SIGMOID, .choose_by_logits = true);
    rlx_binding in = bind("logits", RLX_LIST(MANY), logits);
    rlx_binding out[2] = {bind("out0", RLX_LIST(2), ids), bind("out1", RLX_LIST(2), weights)};
    rlx_error err = {0};
    struct world w;

    require(t, open_world(t, &w));
    rlx_gate gate = rlx_gate_experts(w.g, rlx_input(w.g, "logits", RLX_DTYPE_f32, RLX_LIST(MANY)),
                                     RLX_NO_VALUE, &d);
    rlx_output(w.g, gate.ids);
    rlx_output(w.g, gate.weights);
    expect_ok(t, run(&w, &in, 1, out, 2, &err));
    expect_near(t, ids[0], 1, 0);
    expect_near(t, ids[1], 2, 0);
    expect_near(t, weights[0], 1, 0);
    close_world(&w);
}

TEST(experts, gates_that_make_no_sense_are_refused)
{
    static const struct {
        rlx_gate_desc d;
        rlx_status want;
        const char *says;
        int bias; /* how many; 0: none */
    } rows[] = {
        {GATE(.k = 0), RLX_ERROR_ATTRIBUTE, "gate_experts: k is 0", 0},
        {GATE(.k = MANY + 1), RLX_ERROR_ATTRIBUTE, "k is 13, of 12 experts", 0},
        {GATE(.k = 1, .scale = NAN), RLX_ERROR_ATTRIBUTE, "scale is", 0},
        {GATE(.k = 1, .function = (rlx_gate_function)9), RLX_ERROR_ATTRIBUTE, "number 9", 0},
        {GATE(.k = 1, .group_count = -1), RLX_ERROR_ATTRIBUTE, "group_count is -1", 0},
        {GATE(.k = 1, .group_count = 5, .group_used = 1), RLX_ERROR_ATTRIBUTE, "divide the 12", 0},
        {GATE(.k = 1, .group_count = 4), RLX_ERROR_ATTRIBUTE, "group_used is 0", 0},
        {GATE(.k = 1, .group_count = 4, .group_used = 5), RLX_ERROR_ATTRIBUTE, "group_used is 5",
         0},
        {GATE(.k = 4, .group_count = 4, .group_used = 1), RLX_ERROR_ATTRIBUTE,
         "1 groups have only 3", 0},
        {GATE(.k = 1), RLX_ERROR_SHAPE, "bias must be one number", 3},
    };
    rlx_error err;
    struct world w;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        require(t, open_world(t, &w));
        test_note(t, "gate %zu", i);
        rlx_value x = rlx_input(w.g, "x", RLX_DTYPE_f32, RLX_LIST(4, MANY)), b = RLX_NO_VALUE;
        if (rows[i].bias)
            b = rlx_input(w.g, "b", RLX_DTYPE_f32, RLX_LIST(rows[i].bias));
        rlx_gate gate = rlx_gate_experts(w.g, x, b, &rows[i].d);
        expect_eq(t, gate.ids, RLX_NO_VALUE);
        expect_eq(t, gate.weights, RLX_NO_VALUE);
        rlx_graph_check(w.g, &err);
        expect_error(t, rows[i].want, rows[i].says, &err);
        close_world(&w);
    }
}

/* ---- experts ------------------------------------------------------------------------------- */

enum { D = 64, HIDDEN = 96, EXPERTS = 5, K = 2, ROWS = 7 };

struct form {
    const char *name;
    rlx_expert_function function;
    int scheme; /* of all matrices; -1: floats */
    bool fused, weights_first, biased, scaled, q8;
};

/* A matrix of every expert, as the graph has it and as numbers. */
struct stack {
    int out, in;
    float *w, *bias, *scale;
    void *packed;
    size_t bytes;
};

struct layer {
    const struct form *f;
    struct stack up, gate, down;
    float x[ROWS * D], ids[ROWS * K], weights[ROWS * K], y[ROWS * D];
};

static bool open_stack(struct test *t, struct stack *s, const struct form *f, int out, int in,
                       uint32_t seed)
{
    rlx_error err = {0};
    size_t row = 0;
    int rows = EXPERTS * out;

    *s = (struct stack){.out = out, .in = in};
    s->w = malloc((size_t)(rows * in) * sizeof *s->w);
    s->bias = malloc((size_t)rows * sizeof *s->bias);
    s->scale = malloc(EXPERTS * sizeof *s->scale);
    if (!expect(t, s->w && s->bias && s->scale))
        return false;
    fill(s->w, rows * in, seed);
    fill(s->bias, rows, seed + 1);
    fill(s->scale, EXPERTS, seed + 2);
    for (int i = 0; i < rows * in; i++)
        s->w[i] *= 0.25f;
    if (f->scheme < 0)
        return true;
    rlx_quant_scheme scheme = (rlx_quant_scheme)f->scheme;
    if (!expect_ok(t, rlx_quant_row_bytes(scheme, in, &row, &err)))
        return false;
    s->bytes = row * (size_t)rows;
    s->packed = malloc(s->bytes);
    return expect(t, s->packed) &&
           expect_ok(t, rlx_quantize_rows(scheme, s->w, rows, in, s->packed, s->bytes, &err)) &&
           expect_ok(t, rlx_dequantize_rows(scheme, s->packed, s->bytes, rows, in, s->w, &err));
}

static void close_stack(struct stack *s)
{
    free(s->w);
    free(s->bias);
    free(s->scale);
    free(s->packed);
}

static double apply(const struct layer *l, const struct stack *s, int e, int row, const double *x)
{
    double y = 0;

    for (int i = 0; i < s->in; i++)
        y += (double)s->w[(e * s->out + row) * s->in + i] * x[i];
    if (l->f->biased)
        y += (double)s->bias[e * s->out + row];
    return l->f->scaled ? y * (double)s->scale[e] : y;
}

static double gelu(double v)
{
    return v / 2 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
}

static double between(rlx_expert_function f, double g, double u)
{
    switch (f) {
    case RLX_EXPERT_GEGLU: return gelu(g) * u;
    case RLX_EXPERT_CLAMPED:
        g = fmin(g, 7);
        return g / (1 + exp(-1.702 * g)) * (fmax(-7, fmin(u, 7)) + 1);
    case RLX_EXPERT_RELU_SQUARED: return u > 0 ? u * u : 0;
    case RLX_EXPERT_GELU: return gelu(u);
    default: return g / (1 + exp(-g)) * u;
    }
}

static bool has_gate(const struct form *f)
{
    return f->function != RLX_EXPERT_RELU_SQUARED && f->function != RLX_EXPERT_GELU;
}

static void expected(const struct layer *l, int row, double *y)
{
    memset(y, 0, D * sizeof *y);
    for (int j = 0; j < K; j++) {
        int e = (int)l->ids[row * K + j];
        double weight = (double)l->weights[row * K + j], x[D], hidden[HIDDEN];
        for (int i = 0; i < D; i++)
            x[i] = (double)l->x[row * D + i] * (l->f->weights_first ? weight : 1);
        for (int h = 0; h < HIDDEN; h++) {
            double g = l->f->fused      ? apply(l, &l->up, e, h, x)
                       : has_gate(l->f) ? apply(l, &l->gate, e, h, x)
                                        : 0;
            hidden[h] =
                between(l->f->function, g, apply(l, &l->up, e, l->f->fused ? HIDDEN + h : h, x));
        }
        for (int i = 0; i < D; i++)
            y[i] += (l->f->weights_first ? 1 : weight) * apply(l, &l->down, e, i, hidden);
    }
}

/* ---- the same as a graph ---- */

struct params {
    rlx_binding at[9];
    size_t count;
};

static rlx_value param(rlx_graph *g, struct params *p, const char *name, rlx_list shape, void *data,
                       bool packed)
{
    rlx_binding *b = &p->at[p->count++];

    *b = bind(name, shape, data);
    if (packed) {
        b->tensor.dtype = RLX_DTYPE_u8;
        b->tensor.bytes /= sizeof(float);
    }
    return rlx_param(g, name, b->tensor.dtype, shape);
}

static rlx_expert_matrix matrix(rlx_graph *g, struct params *p, const struct form *f,
                                const struct stack *s, const char *const *names)
{
    rlx_expert_matrix m = RLX_EXPERT_MATRIX_INIT;
    int64_t row = s->packed ? (int64_t)s->bytes / (EXPERTS * s->out) : s->in;

    m.w = param(g, p, names[0], RLX_LIST(EXPERTS, s->out, row), s->packed ? s->packed : s->w,
                s->packed != NULL);
    if (s->packed)
        m.scheme = (rlx_quant_scheme)f->scheme;
    if (f->biased)
        m.bias = param(g, p, names[1], RLX_LIST(EXPERTS, s->out), s->bias, false);
    if (f->scaled)
        m.scale = param(g, p, names[2], RLX_LIST(EXPERTS), s->scale, false);
    return m;
}

/* With `rows` rows, a number that the graph does not know. */
static rlx_status run_layer(struct world *w, struct layer *l, int rows, rlx_error *err)
{
    static const char *const up[] = {"up", "up_b", "up_s"}, *const down[] = {"d", "d_b", "d_s"},
                             *const gate[] = {"gate", "gate_b", "gate_s"};
    rlx_binding in[3] = {bind("x", RLX_LIST(1, rows, D), l->x),
                         bind("ids", RLX_LIST(1, rows, K), l->ids),
                         bind("weights", RLX_LIST(1, rows, K), l->weights)};
    rlx_binding out = bind("out0", RLX_LIST(1, rows, D), l->y);
    rlx_expert_desc desc = RLX_EXPERT_DESC_INIT;
    struct params p = {.count = 0};
    rlx_status s = rlx_graph_create(w->ctx, &w->g, err);

    if (s != RLX_OK)
        return s;
    rlx_dim n = rlx_dim_symbol(w->g, "rows");
    rlx_value x = rlx_input(w->g, "x", RLX_DTYPE_f32, RLX_LIST(1, n, D));
    rlx_gate chosen;
    chosen.ids = rlx_input(w->g, "ids", RLX_DTYPE_f32, RLX_LIST(1, n, K));
    chosen.weights = rlx_input(w->g, "weights", RLX_DTYPE_f32, RLX_LIST(1, n, K));
    desc.function = l->f->function;
    desc.fused = l->f->fused;
    desc.weights_first = l->f->weights_first;
    desc.act = l->f->q8 ? RLX_ACT_PRECISION_q8 : RLX_ACT_PRECISION_exact;
    desc.up = matrix(w->g, &p, l->f, &l->up, up);
    if (has_gate(l->f) && !l->f->fused)
        desc.gate = matrix(w->g, &p, l->f, &l->gate, gate);
    desc.down = matrix(w->g, &p, l->f, &l->down, down);
    rlx_output(w->g, rlx_experts(w->g, x, chosen, &desc));
    s = run_with(w, p.at, p.count, in, 3, &out, 1, err);
    rlx_graph_destroy(w->g);
    w->g = NULL;
    return s;
}

static void check_form(struct test *t, struct world *w, const struct form *f)
{
    static struct layer l;
    rlx_error err = {0};

    test_note(t, "%s", f->name);
    l.f = f;
    fill(l.x, ROWS * D, 1);
    fill(l.weights, ROWS * K, 2);
    for (int i = 0; i < ROWS * K; i++) /* the last expert has no rows */
        l.ids[i] = (float)((3 * i + i / K) % (EXPERTS - 1));
    bool ok = open_stack(t, &l.up, f, (f->fused ? 2 : 1) * HIDDEN, D, 10);
    ok = open_stack(t, &l.gate, f, HIDDEN, D, 20) && ok;
    ok = open_stack(t, &l.down, f, D, HIDDEN, 30) && ok;
    for (int rows = ROWS; ok && rows >= 1; rows -= ROWS - 1) {
        if (run_layer(w, &l, rows, &err) != RLX_OK)
            fail(t, "%s: %s", f->name, err.message);
        for (int r = 0; r < rows; r++) {
            double y[D], size = 0;
            expected(&l, r, y);
            for (int i = 0; i < D; i++)
                size = fmax(size, fabs(y[i]));
            for (int i = 0; i < D; i++)
                expect_near(t, l.y[r * D + i], y[i], (f->q8 ? 3e-2 : 1e-5) * size);
        }
    }
    close_stack(&l.up);
    close_stack(&l.gate);
    close_stack(&l.down);
}

TEST_DEVICES(experts, every_form_is_the_sum_of_its_experts)
{
    enum {
        FLOATS = -1,
        Q4_0 = RLX_QUANT_SCHEME_q4_0,
        MXFP4 = RLX_QUANT_SCHEME_mxfp4,
        Q8_0 = RLX_QUANT_SCHEME_q8_0
    };
    static const struct form forms[] = {
        {"swiglu", RLX_EXPERT_SWIGLU, FLOATS, .biased = false},
        {"swiglu, fused", RLX_EXPERT_SWIGLU, FLOATS, .fused = true},
        {"swiglu, packed and fused", RLX_EXPERT_SWIGLU, Q8_0, .fused = true, .scaled = true},
        {"swiglu, weights first", RLX_EXPERT_SWIGLU, Q4_0, .weights_first = true},
        {"swiglu, eight bits", RLX_EXPERT_SWIGLU, Q8_0, .q8 = true},
        {"geglu", RLX_EXPERT_GEGLU, FLOATS, .scaled = true},
        {"geglu, packed", RLX_EXPERT_GEGLU, Q4_0, .fused = true},
        {"clamped, as gpt-oss", RLX_EXPERT_CLAMPED, MXFP4, .biased = true},
        {"clamped, floats", RLX_EXPERT_CLAMPED, FLOATS, .biased = true, .scaled = true},
        {"relu squared", RLX_EXPERT_RELU_SQUARED, Q4_0, .biased = false},
        {"relu squared, floats", RLX_EXPERT_RELU_SQUARED, FLOATS, .weights_first = true},
        {"gelu", RLX_EXPERT_GELU, FLOATS, .biased = true},
    };
    struct world w;

    if (open_world_on(t, &w)) {
        rlx_graph_destroy(w.g);
        w.g = NULL;
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
            check_form(t, &w, &forms[i]);
    }
    close_world(&w);
}

/* Which matrices a desc has, as [4, rows, 64] of floats. */
struct wrong {
    rlx_expert_function function;
    int up, gate, down; /* rows; 0: there is none; -1: u8 without a scheme */
    bool fused;
    rlx_status want;
    const char *says;
};

static rlx_value given(rlx_graph *g, const char *name, int rows)
{
    if (rows == 0)
        return RLX_NO_VALUE;
    if (rows < 0)
        return rlx_input(g, name, RLX_DTYPE_u8, RLX_LIST(4, 64, 34));
    return rlx_input(g, name, RLX_DTYPE_f32, RLX_LIST(4, rows, 64));
}

TEST(experts, what_does_not_go_together_is_refused)
{
    static const struct wrong rows[] = {
        {RLX_EXPERT_SWIGLU, 0, 64, 64, false, RLX_ERROR_ATTRIBUTE, "experts: up has no matrix"},
        {RLX_EXPERT_SWIGLU, 64, 0, 64, false, RLX_ERROR_ATTRIBUTE, "gate has no matrix"},
        {RLX_EXPERT_SWIGLU, 64, 64, 0, false, RLX_ERROR_ATTRIBUTE, "down has no matrix"},
        {RLX_EXPERT_SWIGLU, -1, 64, 64, false, RLX_ERROR_ATTRIBUTE, "scheme is not set"},
        {RLX_EXPERT_SWIGLU, 64, 32, 64, false, RLX_ERROR_SHAPE, "gate has 32 rows, and up 64"},
        {RLX_EXPERT_SWIGLU, 128, 64, 64, true, RLX_ERROR_ATTRIBUTE, "said to be in up's"},
        {RLX_EXPERT_SWIGLU, 63, 0, 64, true, RLX_ERROR_SHAPE, "up has 63 rows"},
        {RLX_EXPERT_GELU, 64, 64, 64, false, RLX_ERROR_ATTRIBUTE, "the function has none"},
        {RLX_EXPERT_GELU, 64, 0, 64, true, RLX_ERROR_ATTRIBUTE, "fused is set"},
        {RLX_EXPERT_GELU, 64, 0, 65, false, RLX_ERROR_SHAPE, "down has 65 rows, for an x of 64"},
        {RLX_EXPERT_GELU, 60, 0, 64, false, RLX_ERROR_SHAPE, "grouped_matmul"},
        {(rlx_expert_function)5, 64, 0, 64, false, RLX_ERROR_ATTRIBUTE, "function number 5"},
    };
    rlx_error err;
    struct world w;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        require(t, open_world(t, &w));
        test_note(t, "layer %zu", i);
        rlx_expert_desc d = RLX_EXPERT_DESC_INIT;
        rlx_value x = rlx_input(w.g, "x", RLX_DTYPE_f32, RLX_LIST(3, 64));
        rlx_gate gate = {rlx_input(w.g, "ids", RLX_DTYPE_i32, RLX_LIST(3, 2)),
                         rlx_input(w.g, "weights", RLX_DTYPE_f32, RLX_LIST(3, 2))};
        d.function = rows[i].function;
        d.fused = rows[i].fused;
        d.up.w = given(w.g, "up", rows[i].up);
        d.gate.w = given(w.g, "gate", rows[i].gate);
        d.down.w = given(w.g, "down", rows[i].down);
        expect_eq(t, rlx_experts(w.g, x, gate, &d), RLX_NO_VALUE);
        rlx_graph_check(w.g, &err);
        expect_error(t, rows[i].want, rows[i].says, &err);
        close_world(&w);
    }
}

TEST(experts, a_layer_without_rows_is_empty)
{
    static float none[1];
    rlx_binding in[2] = {bind("x", RLX_LIST(0, 64), none), bind("l", RLX_LIST(0, 4), none)};
    rlx_binding out = bind("out0", RLX_LIST(0, 64), none);
    rlx_gate_desc d = GATE(.k = 2, .function = RLX_GATE_SIGMOID, .group_count = 2, .group_used = 1);
    rlx_expert_desc e = RLX_EXPERT_DESC_INIT;
    rlx_error err = {0};
    struct world w;

    require(t, open_world(t, &w));
    rlx_dim n = rlx_dim_symbol(w.g, "n");
    rlx_value x = rlx_input(w.g, "x", RLX_DTYPE_f32, RLX_LIST(n, 64));
    rlx_value l = rlx_input(w.g, "l", RLX_DTYPE_f32, RLX_LIST(n, 4));
    e.function = RLX_EXPERT_GELU;
    e.up.w = e.down.w = rlx_param(w.g, "w", RLX_DTYPE_f32, RLX_LIST(4, 64, 64));
    rlx_output(w.g, rlx_experts(w.g, x, rlx_gate_experts(w.g, l, RLX_NO_VALUE, &d), &e));
    static float weight[4 * 64 * 64];
    rlx_binding p = bind("w", RLX_LIST(4, 64, 64), weight);
    if (run_with(&w, &p, 1, in, 2, &out, 1, &err) != RLX_OK)
        fail(t, "%s", err.message);
    close_world(&w);
}

/* The mean square of what a gate and packed experts make of x and logits, and its gradients. */
static rlx_status loss_of(struct world *w, const struct form *f, struct layer *l, float *logits,
                          float *loss, float *dx, float *dl, rlx_error *err)
{
    static const char *const up[] = {"up", "up_b", "up_s"}, *const down[] = {"d", "d_b", "d_s"};
    const rlx_gate_desc choose = GATE(.k = 2, .function = RLX_GATE_SIGMOID, .normalise = true,
                                      .scale = 1.5f, .group_count = 2, .group_used = 1);
    rlx_binding in[2] = {bind("x", RLX_LIST(2, D), l->x), bind("l", RLX_LIST(2, 4), logits)};
    rlx_binding out[3] = {bind("out0", RLX_EMPTY, loss), bind("out1", RLX_LIST(2, D), dx),
                          bind("out2", RLX_LIST(2, 4), dl)};
    rlx_expert_desc desc = RLX_EXPERT_DESC_INIT;
    struct params p = {.count = 0};
    rlx_status s = rlx_graph_create(w->ctx, &w->g, err);

    if (s != RLX_OK)
        return s;
    rlx_value wrt[2], d[2];
    wrt[0] = rlx_input(w->g, "x", RLX_DTYPE_f32, RLX_LIST(2, D));
    wrt[1] = rlx_input(w->g, "l", RLX_DTYPE_f32, RLX_LIST(2, 4));
    desc.function = f->function;
    desc.fused = f->fused;
    desc.up = matrix(w->g, &p, f, &l->up, up);
    desc.down = matrix(w->g, &p, f, &l->down, down);
    rlx_value y =
        rlx_experts(w->g, wrt[0], rlx_gate_experts(w->g, wrt[1], RLX_NO_VALUE, &choose), &desc);
    rlx_value mean = rlx_reduce_mean(w->g, rlx_mul(w->g, y, y), RLX_LIST(0, 1), false);
    s = rlx_gradient(w->g, mean, wrt, 2, d, err);
    rlx_output(w->g, mean);
    if (s == RLX_OK) {
        rlx_output(w->g, d[0]);
        rlx_output(w->g, d[1]);
        s = run_with(w, p.at, p.count, in, 2, out, 3, err);
    }
    rlx_graph_destroy(w->g);
    w->g = NULL;
    return s;
}

TEST(experts, gradients_go_through_gate_and_experts)
{
    static const struct form f = {"packed", RLX_EXPERT_SWIGLU, RLX_QUANT_SCHEME_q8_0, .fused = true,
                                  .biased = true};
    static struct layer l;
    float logits[8] = {1, 0.5f, -0.5f, -1, -1, 0.25f, 2, 0.75f}, dx[2 * D], dl[8], unused[2 * D];
    rlx_error err = {0};
    struct world w;

    require(t, open_world(t, &w));
    rlx_graph_destroy(w.g);
    w.g = NULL;
    l.f = &f;
    fill(l.x, ROWS * D, 1);
    bool ok = open_stack(t, &l.up, &f, 2 * HIDDEN, D, 10);
    ok = open_stack(t, &l.down, &f, D, HIDDEN, 30) && ok;
    float at, above, below;
    if (ok && loss_of(&w, &f, &l, logits, &at, dx, dl, &err) != RLX_OK)
        fail(t, "%s", err.message);
    for (int i = 0; i < 8 && ok; i++) { /* eight of x, and all logits */
        float *const which[] = {&l.x[i * 13], &logits[i]};
        const float want[] = {dx[i * 13], dl[i]};
        for (int k = 0; k < 2; k++) {
            float was = *which[k];
            *which[k] = was + 0.01f;
            ok = expect_ok(t, loss_of(&w, &f, &l, logits, &above, unused, unused, &err)) && ok;
            *which[k] = was - 0.01f;
            ok = expect_ok(t, loss_of(&w, &f, &l, logits, &below, unused, unused, &err)) && ok;
            *which[k] = was;
            double slope = ((double)above - (double)below) / 0.02;
            expect_near(t, want[k], slope, 2e-3 * (double)at + 0.02 * fabs(slope));
        }
    }
    close_stack(&l.up);
    close_stack(&l.down);
    close_world(&w);
}
