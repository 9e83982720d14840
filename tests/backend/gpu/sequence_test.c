/* sequence_test.c: scans, layers and transforms on a GPU where runs differ from the
 * self-test's: states that are carried on, states that are operands too, and sizes below a bound.
 */
#include "session/sized.h"
#include "world.h"

/* false: there is no such device here, and the test is skipped. */
static bool open_place(struct test *t, struct place *p)
{
    *p = (struct place){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &p->ctx, &p->err)))
        return false;
    rlx_status s = rlx_device_open(p->ctx, test_device(t), &p->dev, &p->err);
    if (s != RLX_OK)
        test_no_device(t, test_device(t), s, p->err.message);
    return s == RLX_OK;
}

static rlx_tensor tensor(float *data, size_t n)
{
    return (rlx_tensor){.dtype = RLX_DTYPE_f32, .data = data, .bytes = n * sizeof *data};
}

/* ---- states -------------------------------------------------------------------------------- */

enum { STEPS = 11, HEADS = 2, N = 37, WIDE = HEADS * N, STATE = HEADS * N * N };

#define DELTA_NET(steps)                                                            \
    "graph (input %q: f32[1," steps ",2,37], input %k: f32[1," steps                \
    ",2,37], input %g: f32[1," steps                                                \
    ",2], state %s: f32[1,2,37,37]) { %y = gated_delta_net %q, %k, %q, %g, %g, %s " \
    "state_size=37 carry_state=true return %y }"

static bool run(struct test *t, struct place *p, int64_t steps, float *q, float *k, float *g,
                float *y)
{
    size_t n = (size_t)steps;
    rlx_binding in[3] = {
        {"q", tensor(q, n * WIDE)}, {"k", tensor(k, n * WIDE)}, {"g", tensor(g, n * HEADS)}};
    rlx_binding out = {"out0", tensor(y, n * WIDE)};

    for (int i = 0; i < 3; i++) {
        in[i].tensor.rank = i < 2 ? 4 : 3;
        memcpy(in[i].tensor.dim, (const int64_t[]){1, steps, HEADS, N}, 4 * sizeof(int64_t));
    }
    return expect_ok(
        t, rlx_session_run(p->session,
                           &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 3, &out, 1, NULL, 0},
                           &p->err));
}

TEST_GPUS(gpu_sequence, tokens_one_by_one_equal_one_prefill)
{
    static float q[STEPS * WIDE], k[STEPS * WIDE], g[STEPS * HEADS], all[STEPS * WIDE], y[WIDE],
        s[2][STATE];
    struct place p;

    if (!open_place(t, &p))
        return place_close(&p);
    for (size_t i = 0; i < STEPS * WIDE; i++) {
        q[i] = (float)(i * 7919 % 101) / 101 - 0.5f;
        k[i] = (float)(i * 104729 % 89) / 178 - 0.25f;
    }
    for (size_t i = 0; i < STEPS * HEADS; i++)
        g[i] = -0.1f * (float)(i % 7);
    rlx_tensor state[2] = {tensor(s[0], STATE), tensor(s[1], STATE)};
    bool ok = expect_ok(t, place_build(&p, DELTA_NET("11"), NULL)) &&
              run(t, &p, STEPS, q, k, g, all) &&
              expect_ok(t, rlx_session_get_state(p.session, "s", &state[0], &p.err)) &&
              expect_ok(t, place_build(&p, DELTA_NET("1"), NULL));
    for (size_t i = 0; ok && i < STEPS; i++) {
        ok = run(t, &p, 1, q + i * WIDE, k + i * WIDE, g + i * HEADS, y);
        expect_close(t, y, all + i * WIDE, WIDE, 1e-5, 1e-5);
    }
    if (ok && expect_ok(t, rlx_session_get_state(p.session, "s", &state[1], &p.err)))
        expect_close(t, s[0], s[1], STATE, 1e-5, 1e-5);
    place_close(&p);
}

/* q is the state itself: every head reads it as it was before. */
TEST_GPUS(gpu_sequence, a_state_may_be_an_operand_too)
{
    enum { M = 8, ALL = M * M * M };
    static const char *const source[] = {
        "graph (state %s: f32[1,8,8,8], input %k: f32[1,8,8,8], input %q: f32[1,8,8,8], "
        "input %g: f32[1,8,8]) { %y = gated_delta_net %s, %k, %k, %g, %g, %s state_size=8 "
        "carry_state=true return %y }",
        "graph (state %s: f32[1,8,8,8], input %k: f32[1,8,8,8], input %q: f32[1,8,8,8], "
        "input %g: f32[1,8,8]) { %y = gated_delta_net %q, %k, %k, %g, %g, %s state_size=8 "
        "carry_state=true return %y }"};
    static float s[ALL], k[ALL], g[M * M], y[2][ALL], got[2][ALL];
    struct place p;
    bool ok = open_place(t, &p);

    sized_fill(s, ALL, 1, false);
    sized_fill(k, ALL, 2, false);
    sized_fill(g, M * M, 3, false);
    rlx_binding in[3] = {{"k", tensor(k, ALL)}, {"q", tensor(s, ALL)}, {"g", tensor(g, M * M)}};
    rlx_tensor first = tensor(s, ALL);
    first.rank = 4;
    memcpy(first.dim, (const int64_t[]){1, M, M, M}, 4 * sizeof(int64_t));
    for (int i = 0; i < 3; i++) {
        in[i].tensor.rank = i < 2 ? 4 : 3;
        memcpy(in[i].tensor.dim, first.dim, sizeof first.dim);
    }
    for (int i = 0; ok && i < 2; i++) {
        rlx_binding out = {"out0", tensor(y[i], ALL)};
        rlx_tensor last = tensor(got[i], ALL);
        ok = expect_ok(t, place_build(&p, source[i], NULL)) &&
             expect_ok(t, rlx_session_set_state(p.session, "s", &first, &p.err)) &&
             expect_ok(t, rlx_session_run(
                              p.session,
                              &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 3, &out, 1, NULL, 0},
                              &p.err)) &&
             expect_ok(t, rlx_session_get_state(p.session, "s", &last, &p.err));
    }
    if (ok) {
        expect_bytes(t, y[0], y[1], sizeof y[0]);
        expect_bytes(t, got[0], got[1], sizeof got[0]);
    }
    place_close(&p);
}

/* ---- sizes below a bound ------------------------------------------------------------------- */

static const struct {
    const char *graph;
    int64_t bound, size[5];
} bounded[] = {
    /* a chirp and two passes where the bound needs one pass */
    {"graph (input %x: f32[2*n]) { %y = fft %x norm=ortho return %y }", 2048, {2048, 2039, 1, 17}},
    {"graph (input %x: f32[n,34]) { %y = fft %x inverse=true return %y }", 40, {40, 3, 0, 1}},
    {"graph (input %x: f32[2,n,3], param %i: f32[2,20,3], param %h: f32[2,20,5], param %b: "
     "f32[2,20]) { %y = lstm %x, %i, %h, %b, %b hidden_size=5 bidirectional=true return %y }",
     12,
     {12, 8, 7, 1, 0}},
    {"graph (input %x: f32[n,9,3], param %i: f32[1,15,3], param %h: f32[1,15,5], param %b: "
     "f32[1,15]) { %y = gru %x, %i, %h, %b, %b hidden_size=5 result=h return %y }",
     12,
     {12, 5, 0, 1}},
    {"graph (input %q: f32[1,n,2,5], input %g: f32[1,n,2]) { %y = gated_delta_net_backward %q, "
     "%q, %q, %g, %g, %q state_size=5 return %y }",
     12,
     {12, 10, 3, 1, 0}},
    {"graph (input %x: f32[2,n,5], param %a: f32[5,4], input %b: f32[2,n,4]) { %y = "
     "selective_scan_backward %x, %x, %a, %b, %b, %x state_size=4 return %y }",
     12,
     {12, 9, 8, 1, 0}},
    {"graph (input %x: f32[2*n,16]) { %y = welch_peaks %x k=3 n_segments=2 return %y }",
     12,
     {12, 5, 0, 1}},
};

/* A program compiled at the bound gives the bits of one compiled for the size. */
TEST_GPUS(gpu_sequence, sizes_below_a_bound)
{
    static struct sized a, b;
    struct place one, other = {0};
    bool ok = open_place(t, &one) && open_place(t, &other);

    for (size_t i = 0; ok && i < COUNT_OF(bounded); i++) {
        char text[512];
        snprintf(text, sizeof text, "dim n <= %lld %s", (long long)bounded[i].bound,
                 bounded[i].graph);
        ok = expect_ok(t, place_build(&one, text, NULL)) && sized_params(t, &one);
        snprintf(text, sizeof text, "dim n %s", bounded[i].graph);
        ok = ok && expect_ok(t, place_build(&other, text, NULL)) && sized_params(t, &other);
        for (size_t k = 0; ok && k < COUNT_OF(bounded[i].size); k++) {
            rlx_dim_size dim = {"n", bounded[i].size[k]};
            test_note(t, "%s, n %lld", bounded[i].graph, (long long)dim.size);
            sized_run(&one, &dim, 1, &a);
            sized_run(&other, &dim, 1, &b);
            if (!sized_same(t, &a, &b))
                fail(t, "%s / %s", one.err.message, other.err.message);
        }
    }
    place_close(&one);
    place_close(&other);
}
