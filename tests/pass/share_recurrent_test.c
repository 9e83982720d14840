/* share_recurrent_test.c: a recurrent layer whose sequence, last state and last cell are wanted
 * runs once, and gives the bits that a run for each of them gives. */
#include "session/required.h"

static const char *const layers[] = {
    "graph (input %x: f32[2,3,5], param %w: f32[1,12,5], param %u: f32[1,12,4], param %b: "
    "f32[1,12])"
    " { %h = gru %x, %w, %u, %b, %b hidden_size=4 result=h"
    "   %s = gru %x, %w, %u, %b, %b hidden_size=4 return %h, %s }",
    "graph (input %x: f32[2,3,5], param %w: f32[2,16,5], param %u: f32[2,16,4], param %b: "
    "f32[2,16])"
    " { %s = lstm %x, %w, %u, %b, %b hidden_size=4 bidirectional=true"
    "   %h = lstm %x, %w, %u, %b, %b hidden_size=4 bidirectional=true result=h return %h, %s }",
    "graph (input %x: f32[2,3,5], param %w: f32[2,4,5], param %u: f32[2,4,4], param %b: f32[2,4])"
    " { %s = rnn %x, %w, %u, %b, %b hidden_size=4 bidirectional=true"
    "   %h = rnn %x, %w, %u, %b, %b hidden_size=4 bidirectional=true result=h return %h, %s }",
    "graph (input %x: f32[2,3,5], param %w: f32[1,16,5], param %u: f32[1,16,4], param %b: "
    "f32[1,16])" /* as ONNX's LSTM becomes */
    " { %s = lstm %x, %w, %u, %b, %b hidden_size=4 %h = lstm %x, %w, %u, %b, %b hidden_size=4"
    "   result=h %c = lstm %x, %w, %u, %b, %b hidden_size=4 result=c return %h, %s, %c }",
};

enum { MOST = 256 };

static void fill(float *x, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 37 + seed * 11) % 61) / 61.0f - 0.5f;
}

static void count_layers(void *user, const rlx_profile_event *e)
{
    *(int *)user += strcmp(e->step, "gru") == 0 || strncmp(e->step, "lstm", 4) == 0 ||
                    strcmp(e->step, "rnn") == 0;
}

static int run(struct test *t, struct place *p, const char *graph, bool as_written,
               float y[3][MOST])
{
    static float x[30], value[3][2 * 16 * 5];
    static const char *const name[] = {"w", "u", "b"};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                   .debug = DEBUG(.no_optimize = as_written)};
    int layers_run = 0;

    if (!expect_ok(t, place_build(p, graph, &desc)))
        return 0;
    for (unsigned i = 0; i < 3; i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        rlx_tensor v = {.dtype = RLX_DTYPE_f32, .data = value[i]};
        expect_ok(t, rlx_model_io(p->model, RLX_IO_PARAM, i, &io, NULL));
        size_t count = 1;
        v.rank = io.rank;
        for (int32_t k = 0; k < io.rank; k++)
            count *= (size_t)(v.dim[k] = io.dim[k]);
        v.bytes = count * sizeof(float);
        fill(value[i], count, i + 1);
        expect_ok(t, rlx_session_set_param(p->session, name[i], &v, &p->err));
    }
    fill(x, 30, 9);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 3, {2, 3, 5}, x, sizeof x}};
    rlx_binding out[3] = {{"h", {RLX_DTYPE_f32, 0, {0}, y[0], sizeof y[0]}},
                          {"s", {RLX_DTYPE_f32, 0, {0}, y[1], sizeof y[1]}},
                          {"c", {RLX_DTYPE_f32, 0, {0}, y[2], sizeof y[2]}}};
    size_t outputs = rlx_model_io_count(p->model, RLX_IO_OUTPUT);
    rlx_session_set_profile(p->session, count_layers, &layers_run);
    expect_ok(
        t, rlx_session_run(p->session,
                           &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, out, outputs, NULL, 0},
                           &p->err));
    return layers_run;
}

TEST(share_recurrent, a_layer_runs_once_for_sequence_and_state)
{
    static float once[3][MOST], twice[3][MOST];
    struct place p;

    if (!place_open(t, &p, "cpu", NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(layers); i++) {
        test_note(t, "layer %zu", i);
        memset(once, 0, sizeof once);
        memset(twice, 0, sizeof twice);
        expect_eq(t, run(t, &p, layers[i], false, once), 1);
        expect_eq(t, run(t, &p, layers[i], true, twice), strstr(layers[i], "%c") ? 3 : 2);
        expect_bytes(t, once, twice, sizeof once);
        expect(t, once[0][0] != 0);
    }
    place_close(&p);
}

/* A program that may have fewer steps than its bound, down to none: then the cell is the first. */
TEST_DEVICES(share_recurrent, a_sequence_without_steps_has_a_cell)
{
    static const char text[] =
        "dim T <= 4 graph (input %x: f32[2,T,5], input %h: f32[1,2,4], input %c: f32[1,2,4],"
        " param %w: f32[1,16,5], param %u: f32[1,16,4], param %b: f32[1,16])"
        " { %s = lstm %x, %w, %u, %b, %b, %h, %c hidden_size=4 has_state=true"
        "   %d = lstm %x, %w, %u, %b, %b, %h, %c hidden_size=4 has_state=true result=c"
        "   return %s, %d }";
    static float x[2 * 4 * 5], state[8], s[2 * 4 * 4], d[8];
    const rlx_session_desc zeros = {RLX_SIZED(rlx_session_desc), .params_default_zero = true};
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (!expect_ok(t, place_build(&p, text, &zeros)))
        return place_close(&p);
    fill(x, COUNT_OF(x), 1);
    fill(state, COUNT_OF(state), 2);
    for (int64_t steps = 4; steps >= 0; steps -= 2) {
        size_t many = (size_t)steps;
        rlx_binding in[3] = {
            {"x", {RLX_DTYPE_f32, 3, {2, steps, 5}, x, 2 * many * 5 * sizeof(float)}},
            {"h", {RLX_DTYPE_f32, 3, {1, 2, 4}, state, sizeof state}},
            {"c", {RLX_DTYPE_f32, 3, {1, 2, 4}, state, sizeof state}}};
        rlx_binding out[2] = {{"s", {RLX_DTYPE_f32, 0, {0}, s, sizeof s}},
                              {"d", {RLX_DTYPE_f32, 0, {0}, d, sizeof d}}};
        memset(d, 0xff, sizeof d);
        test_note(t, "%d steps", (int)steps);
        if (!expect_ok(
                t, rlx_session_run(p.session,
                                   &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 3, out, 2, NULL, 0},
                                   &p.err)))
            fail(t, "%s", p.err.message);
        /* Without weights every gate is 1/2, and nothing comes in: the cell is halved each step. */
        for (size_t i = 0; i < COUNT_OF(d); i++)
            expect(t, d[i] == state[i] / (float)(1 << steps));
    }
    place_close(&p);
}
