/* sampling_test.c: counts of tokens and penalties against plain loops, and what they refuse. */
#include <math.h>
#include <string.h>

#include "graph_world.h"
#include "rlx/sampling.h"

/* The graph with this output, run on what is bound; it takes the graph. */
static void run(struct test *t, struct world *w, rlx_value y, const rlx_binding *in, size_t count,
                float *out, size_t n)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;
    rlx_tensor shape;

    rlx_output(w->g, y);
    if (expect_ok(t, rlx_model_create(w->g, &m, &err))) {
        w->g = NULL;
        if (expect_ok(t, rlx_session_create(m, w->dev, NULL, &s, &err)) &&
            expect_ok(t, rlx_session_output_shape(s, 0, &shape, &err))) {
            rlx_binding o = {"out0", shape};
            o.tensor.dtype = RLX_DTYPE_f32;
            o.tensor.bytes = n * sizeof *out;
            o.tensor.data = out;
            expect_status(
                t,
                rlx_session_run(
                    s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, &o, 1, NULL, 0}, &err),
                RLX_OK);
        }
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
}

static rlx_tensor tensor(rlx_dtype dtype, int64_t rows, int64_t columns, void *data)
{
    rlx_tensor r = {.dtype = dtype, .rank = 2, .dim = {rows, columns}, .data = data};

    r.bytes = (size_t)(rows * columns) * rlx_dtype_size(dtype);
    return r;
}

TEST(sampling, counts_tokens_by_row)
{
    int32_t tokens[2 * 6] = {3, 0, 3, 3, 1, -1, 4, 4, 5, 99, 0, -7};
    float got[2 * 5], want[2 * 5] = {1, 1, 0, 3, 0, 1, 0, 0, 0, 2};
    rlx_binding in = {"tokens", tensor(RLX_DTYPE_i32, 2, 6, tokens)};
    struct world w;

    require(t, open_world(t, &w));
    rlx_value x = rlx_input(w.g, "tokens", RLX_DTYPE_i32, RLX_LIST(2, 6));
    run(t, &w, rlx_count_tokens(w.g, x, 5), &in, 1, got, 10);
    expect_bytes(t, got, want, sizeof want);
    close_world(&w);
}

enum { ROWS = 3, V = 40 };

static float penalized(float z, float n, float repetition, float frequency, float presence)
{
    if (n > 0)
        z = z > 0 ? z / repetition : z * repetition;
    z -= frequency * n;
    return n > 0 ? z - presence : z;
}

TEST(sampling, penalties_come_in_their_order)
{
    static const float row[][3] = {{1, 0, 0},    {1.3f, 0, 0},  {1, 0.5f, 0},
                                   {1, 0, 0.7f}, {0.8f, -1, 2}, {1.5f, 0.25f, 0.5f}};
    float z[ROWS * V], n[ROWS * V], got[ROWS * V], want[ROWS * V];

    for (int i = 0; i < ROWS * V; i++) {
        z[i] = (float)((i * 37) % 23 - 11) / 4;
        n[i] = (float)(i * 7 % 5 > 2 ? i % 4 : 0);
    }
    z[3] = -INFINITY;
    z[4] = INFINITY;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        rlx_binding in[2] = {{"z", tensor(RLX_DTYPE_f32, ROWS, V, z)},
                             {"n", tensor(RLX_DTYPE_f32, ROWS, V, n)}};
        struct world w;
        test_note(t, "row %zu", r);
        require(t, open_world(t, &w));
        rlx_value x = rlx_input(w.g, "z", RLX_DTYPE_f32, RLX_LIST(ROWS, V));
        rlx_value c = rlx_input(w.g, "n", RLX_DTYPE_f32, RLX_LIST(ROWS, V));
        run(t, &w, rlx_penalize(w.g, x, c, row[r][0], row[r][1], row[r][2]), in, 2, got, ROWS * V);
        for (int i = 0; i < ROWS * V; i++)
            want[i] = penalized(z[i], n[i], row[r][0], row[r][1], row[r][2]);
        expect_close(t, got, want, ROWS * V, 1e-6, 1e-6);
        close_world(&w);
    }
}

/* Counts of one row serve all rows of logits; half precision comes back as such. */
TEST(sampling, counts_broadcast_and_types_stay)
{
    struct world w;
    rlx_dtype dtype;
    rlx_list shape;

    require(t, open_world(t, &w));
    rlx_value z = rlx_input(w.g, "z", RLX_DTYPE_bf16, RLX_LIST(ROWS, V));
    rlx_value n = rlx_input(w.g, "n", RLX_DTYPE_i32, RLX_LIST(V));
    rlx_value y = rlx_penalize(w.g, z, n, 1.1f, 0.1f, 0.1f);
    require_ok(t, rlx_value_type(w.g, y, &dtype, &shape, NULL));
    expect_eq(t, dtype, RLX_DTYPE_bf16);
    expect_eq(t, shape.count, 2);
    expect_eq(t, shape.at[0], ROWS);
    expect_eq(t, shape.at[1], V);
    close_world(&w);
}

TEST(sampling, a_whole_step_with_an_open_length)
{
    float z[V] = {0}, got[1];
    int64_t history[7] = {0, 1, 2, 3, 4, 5, 6};
    struct world w;

    require(t, open_world(t, &w));
    for (int i = 0; i < V; i++)
        z[i] = i < 8 ? 5.0f : -5.0f; /* of the likely ones, only 7 has not been there */
    rlx_dim length = rlx_dim_symbol(w.g, "length");
    rlx_value x = rlx_input(w.g, "z", RLX_DTYPE_f32, RLX_LIST(1, V));
    rlx_value past = rlx_input(w.g, "past", RLX_DTYPE_i64, RLX_LIST(1, length));
    rlx_value fair = rlx_penalize(w.g, x, rlx_count_tokens(w.g, past, V), 1, 0, 50);
    rlx_sample_desc drawn = RLX_SAMPLE_DESC_INIT;
    drawn.min_p = 0.5f;
    drawn.seed = 1;
    rlx_value y = rlx_sample(w.g, fair, RLX_NO_VALUE, &drawn);
    rlx_output(w.g, y);
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;
    require_ok(t, rlx_model_create(w.g, &m, &err));
    w.g = NULL;
    require_ok(t, rlx_session_create(m, w.dev, NULL, &s, &err));
    rlx_binding in[2] = {{"z", tensor(RLX_DTYPE_f32, 1, V, z)},
                         {"past", tensor(RLX_DTYPE_i64, 1, 7, history)}};
    rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .rank = 1, .dim = {1}}};
    out.tensor.data = got;
    out.tensor.bytes = sizeof got;
    expect_ok(t, rlx_session_run(
                     s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0}, &err));
    expect_near(t, got[0], 7, 0);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    close_world(&w);
}

TEST(sampling, refuses_what_makes_no_sense)
{
    static const float bad[][3] = {{0, 0, 0},          {-1, 0, 0},         {INFINITY, 0, 0},
                                   {(float)NAN, 0, 0}, {1, (float)NAN, 0}, {1, 0, INFINITY}};
    static const char *const names[] = {"repetition", "repetition", "repetition",
                                        "repetition", "frequency",  "presence"};
    rlx_error err;
    struct world w;

    for (size_t i = 0; i < 6; i++) {
        require(t, open_world(t, &w));
        rlx_value z = rlx_input(w.g, "z", RLX_DTYPE_f32, RLX_LIST(V));
        expect_eq(t, rlx_penalize(w.g, z, z, bad[i][0], bad[i][1], bad[i][2]), RLX_NO_VALUE);
        rlx_graph_check(w.g, &err);
        expect_error(t, RLX_ERROR_ATTRIBUTE, names[i], &err);
        close_world(&w);
    }
    require(t, open_world(t, &w));
    rlx_value i = rlx_input(w.g, "i", RLX_DTYPE_i32, RLX_EMPTY);
    expect_eq(t, rlx_penalize(w.g, i, i, 1, 0, 0), RLX_NO_VALUE);
    rlx_graph_check(w.g, &err);
    expect_error(t, RLX_ERROR_DTYPE, "i32", &err);
    close_world(&w);
    require(t, open_world(t, &w));
    i = rlx_input(w.g, "i", RLX_DTYPE_i32, RLX_EMPTY);
    expect_eq(t, rlx_count_tokens(w.g, i, 5), RLX_NO_VALUE);
    rlx_graph_check(w.g, &err);
    expect_error(t, RLX_ERROR_SHAPE, "axis", &err);
    close_world(&w);
    require(t, open_world(t, &w));
    expect_eq(t, rlx_count_tokens(w.g, 77, 5), RLX_NO_VALUE);
    rlx_graph_check(w.g, &err);
    expect_error(t, RLX_ERROR_GRAPH, "tokens", &err);
    expect_eq(t, rlx_count_tokens(NULL, 0, 5), RLX_NO_VALUE);
    expect_eq(t, rlx_penalize(NULL, 0, 0, 1, 0, 0), RLX_NO_VALUE);
    close_world(&w);
}
