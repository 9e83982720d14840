/* moe_test.c: the choice of experts and a layer of them against plain loops, and what is refused.
 */
#include <math.h>

#include "moe_world.h"
#include "rlx/moe.h"

enum { ROWS = 7, D = 6, HIDDEN = 5, EXPERTS = 9, K = 3 };

/* By the manual (ops-special.md 10.4), in double. */
static void choose(const float *logits, bool normalise, double scale, int *id, double *weight)
{
    double p[EXPERTS], top = -INFINITY, sum = 0, chosen = 0;
    bool taken[EXPERTS] = {false};

    for (int e = 0; e < EXPERTS; e++)
        top = fmax(top, (double)logits[e]);
    for (int e = 0; e < EXPERTS; e++)
        sum += p[e] = exp((double)logits[e] - top);
    for (int j = 0; j < K; j++) {
        id[j] = -1;
        for (int e = 0; e < EXPERTS; e++)
            if (!taken[e] && (id[j] < 0 || p[e] > p[id[j]]))
                id[j] = e;
        taken[id[j]] = true;
        weight[j] = p[id[j]] / sum;
        chosen += weight[j];
    }
    for (int j = 0; j < K; j++)
        weight[j] *= scale / (normalise ? fmax(chosen, 0x1p-14) : 1);
}

TEST(moe, gate_takes_the_largest_and_the_smaller_id)
{
    static float logits[ROWS * EXPERTS];

    fill(logits, ROWS * EXPERTS, 3);
    for (int i = 0; i < ROWS * EXPERTS; i++)
        logits[i] = roundf(logits[i] * 2); /* many ties */
    for (int normalise = 0; normalise < 2; normalise++)
        for (int s = 0; s < 2; s++) {
            float scale = s ? 2.5f : 1, got[ROWS * K], weights[ROWS * K];
            rlx_binding in = bind("logits", RLX_LIST(ROWS, EXPERTS), logits), out[2];
            rlx_error err;
            struct world w;
            require(t, open_world(t, &w));
            rlx_value x = rlx_input(w.g, "logits", RLX_DTYPE_f32, RLX_LIST(ROWS, EXPERTS));
            rlx_gate gate = rlx_topk_gate(w.g, x, K, normalise != 0, scale);
            rlx_output(w.g, gate.ids);
            rlx_output(w.g, gate.weights);
            out[0] = bind("out0", RLX_LIST(ROWS, K), got);
            out[1] = bind("out1", RLX_LIST(ROWS, K), weights);
            require_ok(t, run(&w, &in, 1, out, 2, &err));
            for (int r = 0; r < ROWS; r++) {
                int id[K];
                double want[K];
                choose(logits + r * EXPERTS, normalise != 0, (double)scale, id, want);
                for (int j = 0; j < K; j++) {
                    expect_near(t, got[r * K + j], id[j], 0);
                    expect_near(t, weights[r * K + j], want[j], 1e-6);
                }
            }
            close_world(&w);
        }
}

/* Sums too small to divide by. */
TEST(moe, gate_has_a_floor)
{
    static float logits[EXPERTS];
    float weights[2];
    rlx_binding in = bind("logits", RLX_LIST(1, EXPERTS), logits);
    rlx_binding out = bind("out0", RLX_LIST(1, 2), weights);
    rlx_error err;
    struct world w;

    for (int e = 0; e < EXPERTS; e++)
        logits[e] = -(float)INFINITY; /* softmax: all zeros */
    require(t, open_world(t, &w));
    rlx_value x = rlx_input(w.g, "logits", RLX_DTYPE_f32, RLX_LIST(1, EXPERTS));
    rlx_output(w.g, rlx_topk_gate(w.g, x, 2, true, 1).weights);
    require_ok(t, run(&w, &in, 1, &out, 1, &err));
    expect_near(t, weights[0], 0, 0);
    expect_near(t, weights[1], 0, 0);
    close_world(&w);
}

struct layer {
    float x[ROWS * D], logits[ROWS * EXPERTS], out[ROWS * D];
    float gate[EXPERTS * D * HIDDEN], up[EXPERTS * D * HIDDEN], down[EXPERTS * HIDDEN * D];
};

static void expected(const struct layer *l, int row, double *y)
{
    int id[K];
    double weight[K];

    choose(l->logits + row * EXPERTS, true, 1.5, id, weight);
    for (int c = 0; c < D; c++)
        y[c] = 0;
    for (int j = 0; j < K; j++)
        for (int h = 0; h < HIDDEN; h++) {
            double g = 0, u = 0;
            for (int c = 0; c < D; c++) {
                g += (double)l->x[row * D + c] * (double)l->gate[(id[j] * D + c) * HIDDEN + h];
                u += (double)l->x[row * D + c] * (double)l->up[(id[j] * D + c) * HIDDEN + h];
            }
            for (int c = 0; c < D; c++)
                y[c] += weight[j] * g / (1 + exp(-g)) * u *
                        (double)l->down[(id[j] * HIDDEN + h) * D + c];
        }
}

static void run_layer(struct test *t, struct layer *l, rlx_list x_shape, rlx_list logits_shape,
                      bool open_rows)
{
    struct world w;
    rlx_error err;
    rlx_binding in[5] = {bind("x", x_shape, l->x), bind("logits", logits_shape, l->logits),
                         bind("gate", RLX_LIST(EXPERTS, D, HIDDEN), l->gate),
                         bind("up", RLX_LIST(EXPERTS, D, HIDDEN), l->up),
                         bind("down", RLX_LIST(EXPERTS, HIDDEN, D), l->down)};
    rlx_binding out = bind("out0", x_shape, l->out);
    rlx_value v[5];

    require(t, open_world(t, &w));
    if (open_rows)
        x_shape.at[0] = logits_shape.at[0] = rlx_dim_symbol(w.g, "rows");
    v[0] = rlx_input(w.g, "x", RLX_DTYPE_f32, x_shape);
    v[1] = rlx_input(w.g, "logits", RLX_DTYPE_f32, logits_shape);
    v[2] = rlx_input(w.g, "gate", RLX_DTYPE_f32, RLX_LIST(EXPERTS, D, HIDDEN));
    v[3] = rlx_input(w.g, "up", RLX_DTYPE_f32, RLX_LIST(EXPERTS, D, HIDDEN));
    v[4] = rlx_input(w.g, "down", RLX_DTYPE_f32, RLX_LIST(EXPERTS, HIDDEN, D));
    rlx_gate gate = rlx_topk_gate(w.g, v[1], K, true, 1.5f);
    rlx_output(w.g, rlx_moe_ffn(w.g, v[0], gate, v[2], v[3], v[4]));
    rlx_status status = run(&w, in, 5, &out, 1, &err);
    if (status != RLX_OK)
        fail(t, "%s", err.message);
    for (int r = 0; status == RLX_OK && r < ROWS; r++) {
        double y[D];
        expected(l, r, y);
        for (int c = 0; c < D; c++)
            expect_near(t, l->out[r * D + c], y[c], 1e-5);
    }
    close_world(&w);
}

TEST(moe, layer_is_the_sum_of_its_experts)
{
    static struct layer l;

    fill(l.x, ROWS * D, 1);
    fill(l.logits, ROWS * EXPERTS, 2);
    fill(l.gate, EXPERTS * D * HIDDEN, 3);
    fill(l.up, EXPERTS * D * HIDDEN, 4);
    fill(l.down, EXPERTS * HIDDEN * D, 5);
    run_layer(t, &l, RLX_LIST(ROWS, D), RLX_LIST(ROWS, EXPERTS), false);
    run_layer(t, &l, RLX_LIST(1, ROWS, D), RLX_LIST(1, ROWS, EXPERTS), false);
    run_layer(t, &l, RLX_LIST(ROWS, D), RLX_LIST(ROWS, EXPERTS), true);
}

TEST(moe, refuses_what_makes_no_sense)
{
    static const struct {
        int64_t k;
        float scale;
        rlx_dtype dtype;
        rlx_status want;
        const char *says;
    } rows[] = {
        {0, 1, RLX_DTYPE_f32, RLX_ERROR_ATTRIBUTE, "k is 0"},
        {EXPERTS + 1, 1, RLX_DTYPE_f32, RLX_ERROR_ATTRIBUTE, "10"},
        {2, INFINITY, RLX_DTYPE_f32, RLX_ERROR_ATTRIBUTE, "scale"},
        {2, 1, RLX_DTYPE_i32, RLX_ERROR_DTYPE, "i32"},
    };
    rlx_error err;
    struct world w;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        require(t, open_world(t, &w));
        rlx_value x = rlx_input(w.g, "x", rows[i].dtype, RLX_LIST(4, EXPERTS));
        rlx_gate gate = rlx_topk_gate(w.g, x, rows[i].k, true, rows[i].scale);
        expect_eq(t, gate.ids, RLX_NO_VALUE);
        expect_eq(t, gate.weights, RLX_NO_VALUE);
        rlx_graph_check(w.g, &err);
        expect_error(t, rows[i].want, rows[i].says, &err);
        expect_eq(t, rlx_moe_ffn(w.g, x, gate, x, x, x), RLX_NO_VALUE);
        close_world(&w);
    }
    expect_eq(t, rlx_topk_gate(NULL, 0, 1, true, 1).ids, RLX_NO_VALUE);
}

/* An id that is no expert's is reported, with its row. */
TEST(moe, ids_out_of_range_are_index)
{
    static float x[ROWS * D], w[EXPERTS * D * HIDDEN], ids[ROWS], y[ROWS * HIDDEN];
    rlx_binding in[3] = {bind("x", RLX_LIST(ROWS, D), x),
                         bind("w", RLX_LIST(EXPERTS, D, HIDDEN), w),
                         bind("ids", RLX_LIST(ROWS), ids)};
    rlx_binding out = bind("out0", RLX_LIST(ROWS, HIDDEN), y);
    rlx_error err;
    struct world v;

    ids[4] = EXPERTS;
    require(t, open_world(t, &v));
    rlx_value a = rlx_input(v.g, "x", RLX_DTYPE_f32, RLX_LIST(ROWS, D));
    rlx_value b = rlx_input(v.g, "w", RLX_DTYPE_f32, RLX_LIST(EXPERTS, D, HIDDEN));
    rlx_value c = rlx_input(v.g, "ids", RLX_DTYPE_f32, RLX_LIST(ROWS));
    rlx_output(v.g, rlx_grouped_matmul(v.g, a, b, c));
    expect_status(t, run(&v, in, 3, &out, 1, &err), RLX_ERROR_INDEX);
    expect_error(t, RLX_ERROR_INDEX, "index 9 at position 4", &err);
    close_world(&v);
}
