/* sequence_test.c: scans and recurrent layers on the CPU: the worked vectors of
 * ops-special.md 11.3, the properties of 11.5, states, long sequences, and the same bits for any
 * number of threads. */
#include <math.h>

#include "../../ops/device_run.h"
#include "session/required.h"

/* Numbers between lo and hi that look random. */
static void fill(float *x, size_t n, uint32_t seed, float lo, float hi)
{
    uint32_t state = seed * 747796405u + 1;

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = lo + (hi - lo) * (float)(state >> 8) / 16777216.0f;
    }
}

static rlx_tensor tensor(float *data, size_t n)
{
    return (rlx_tensor){.dtype = RLX_DTYPE_f32, .data = data, .bytes = n * sizeof *data};
}

/* One run: inputs by their shapes in the model, from one array each. */
static bool run(struct test *t, struct place *p, float *const *value, float *out, size_t room)
{
    rlx_binding in[8], to = {"out0", tensor(out, room)};
    char name[8][32];
    size_t count = rlx_model_io_count(p->model, RLX_IO_INPUT);

    for (size_t i = 0; i < count && i < 8; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        size_t n = 1;
        rlx_model_io(p->model, RLX_IO_INPUT, i, &info, NULL);
        snprintf(name[i], sizeof name[i], "%.*s", (int)info.name.len, info.name.ptr);
        in[i] = (rlx_binding){name[i], {.dtype = RLX_DTYPE_f32, .rank = info.rank}};
        for (int32_t a = 0; a < info.rank; a++)
            n *= (size_t)(in[i].tensor.dim[a] = info.dim[a]);
        in[i].tensor.data = value[i];
        in[i].tensor.bytes = n * sizeof(float);
    }
    if (!expect_ok(
            t, rlx_session_run(p->session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, &to, 1, NULL, 0},
                               &p->err)))
        return fail(t, "%s", p->err.message);
    return true;
}

TEST(cpu_sequence, worked_vectors)
{
    struct device_run r;

    if (!device_open(t, &r, "cpu"))
        return;
    device_gives(t, &r,
                 "%x = const f32[1,2,1] {1 2} %d = const f32[1,2,1] {0.5 0.25} "
                 "%a = const f32[1,2] {-1 -2} %b = const f32[1,2,2] {1 0.5 0.5 1} "
                 "%c = const f32[1,2,2] {1 1 2 -1} "
                 "%y = selective_scan %x, %d, %a, %b, %c state_size=2 return %y",
                 "0.75 0.6271681", 1e-6);
    device_gives(t, &r,
                 "%q = const f32[1,2,1,2] {1 0 0 1} %k = const f32[1,2,1,2] {1 0 .6 .8} "
                 "%v = const f32[1,2,1,2] {2 4 1 -1} %g = const f32[1,2,1] {0 -.5} "
                 "%b = const f32[1,2,1] {.5 1} "
                 "%y = gated_delta_net %q, %k, %v, %g, %b state_size=2 return %y",
                 "0.7071068 1.4142136 0.3598221 -0.9774121", 1e-6);
    device_close(&r);
}

TEST(cpu_sequence, worked_state)
{
    static const float want[4] = {0.9881796f, 0.1763592f, 0.5088653f, -1.3822694f};
    struct place p;
    float q[4] = {1, 0, 0, 1}, y[4], got[4];

    if (place_open(t, &p, "cpu", NULL) &&
        expect_ok(t,
                  place_build(&p,
                              "graph (input %q: f32[1,2,1,2], state %s: f32[1,1,2,2]) { "
                              "%k = const f32[1,2,1,2] {1 0 .6 .8} "
                              "%v = const f32[1,2,1,2] {2 4 1 -1} %g = const f32[1,2,1] {0 -.5} "
                              "%b = const f32[1,2,1] {.5 1} %y = gated_delta_net %q, %k, %v, %g, "
                              "%b, %s state_size=2 carry_state=true return %y }",
                              NULL)) &&
        run(t, &p, (float *const[]){q}, y, 4)) {
        rlx_tensor state = tensor(got, 4);
        expect_ok(t, rlx_session_get_state(p.session, "s", &state, &p.err));
        expect_close(t, got, want, 4, 1e-6, 1e-6);
    }
    place_close(&p);
}

/* ---- token by token ------------------------------------------------------------------------ */

enum { ITEMS = 2, STEPS = 12, HEADS = 3, N = 37, WIDE = HEADS * N };

#define DELTA_NET(type, steps)                                                  \
    "graph (input %q: " type "[2," steps ",3,37], input %k: " type "[2," steps  \
    ",3,37], input %v: " type "[2," steps ",3,37], input %g: " type "[2," steps \
    ",3], input %b: " type "[2," steps ",3], state %s: " type "[2,3,37,37]) { " \
    "%y = gated_delta_net %q, %k, %v, %g, %b, %s state_size=37 carry_state=true return %y }"

/* Step `at` of [ITEMS, STEPS, width]. */
static void take_step(float *to, const float *from, size_t width, size_t at)
{
    for (size_t b = 0; b < ITEMS; b++)
        memcpy(to + b * width, from + (b * STEPS + at) * width, width * sizeof *to);
}

static void check_prefill(struct test *t, const char *whole, const char *single, double tol)
{
    static float in[5][ITEMS * STEPS * WIDE], one[5][ITEMS * WIDE], all[ITEMS * STEPS * WIDE],
        y[ITEMS * WIDE], s[2][ITEMS * HEADS * N * N], begin[ITEMS * HEADS * N * N];
    struct place a, b;

    for (uint32_t i = 0; i < 5; i++)
        fill(in[i], sizeof in[i] / sizeof in[i][0], i + 1, i == 3 ? -0.5f : -0.2f,
             i == 3   ? 0
             : i == 4 ? 0.9f
                      : 0.2f);
    fill(begin, ITEMS * HEADS * N * N, 9, -1, 1);
    rlx_tensor first = tensor(begin, ITEMS * HEADS * N * N);
    first.rank = 4;
    memcpy(first.dim, (const int64_t[]){ITEMS, HEADS, N, N}, 4 * sizeof first.dim[0]);
    bool opened = place_open(t, &a, "cpu", NULL), also = place_open(t, &b, "cpu", NULL);
    if (opened && also && expect_ok(t, place_build(&a, whole, NULL)) &&
        expect_ok(t, place_build(&b, single, NULL)) &&
        expect_ok(t, rlx_session_set_state(a.session, "s", &first, &a.err)) &&
        expect_ok(t, rlx_session_set_state(b.session, "s", &first, &b.err)) &&
        run(t, &a, (float *const[]){in[0], in[1], in[2], in[3], in[4]}, all,
            sizeof all / sizeof all[0])) {
        for (size_t step = 0; step < STEPS; step++) {
            for (int i = 0; i < 5; i++)
                take_step(one[i], in[i], i < 3 ? WIDE : HEADS, step);
            if (!run(t, &b, (float *const[]){one[0], one[1], one[2], one[3], one[4]}, y,
                     sizeof y / sizeof y[0]))
                break;
            for (size_t k = 0; k < ITEMS * WIDE; k++)
                expect_near(t, y[k], all[(k / WIDE * STEPS + step) * WIDE + k % WIDE], tol);
        }
        for (int i = 0; i < 2; i++) {
            rlx_tensor state = tensor(s[i], ITEMS * HEADS * N * N);
            expect_ok(t, rlx_session_get_state(i ? b.session : a.session, "s", &state, NULL));
        }
        expect_close(t, s[0], s[1], ITEMS * HEADS * N * N, tol, tol);
    }
    place_close(&a);
    place_close(&b);
}

TEST(cpu_sequence, tokens_one_by_one_equal_one_prefill)
{
    check_prefill(t, DELTA_NET("f32", "12"), DELTA_NET("f32", "1"), 1e-5);
    /* the state is rounded after every token, not once */
    check_prefill(t, DELTA_NET("f16", "12"), DELTA_NET("f16", "1"), 1e-2);
}

/* q is the state itself: every head reads it as it was before. */
TEST(cpu_sequence, a_state_may_be_an_operand_too)
{
    enum { M = 4, ALL = M * M * M };
    struct place p;
    float s[ALL], k[ALL], y[ALL], got[ALL];

    fill(s, ALL, 1, -1, 1);
    fill(k, ALL, 2, -1, 1);
    rlx_tensor first = tensor(s, ALL), last = tensor(got, ALL);
    first.rank = 4;
    memcpy(first.dim, (const int64_t[]){1, M, M, M}, 4 * sizeof first.dim[0]);
    static const char *const source[] = {
        "graph (state %s: f32[1,4,4,4], input %k: f32[1,4,4,4], input %q: f32[1,4,4,4]) { "
        "%z = reduce_sum %k axes=[3] %g = neg %z %b = sigmoid %z "
        "%y = gated_delta_net %s, %k, %k, %g, %b, %s state_size=4 carry_state=true return %y }",
        "graph (state %s: f32[1,4,4,4], input %k: f32[1,4,4,4], input %q: f32[1,4,4,4]) { "
        "%z = reduce_sum %k axes=[3] %g = neg %z %b = sigmoid %z "
        "%y = gated_delta_net %q, %k, %k, %g, %b, %s state_size=4 carry_state=true return %y }"};
    float result[2][ALL], state[2][ALL];
    for (int i = 0; i < 2; i++) {
        if (place_open(t, &p, "cpu", NULL) && expect_ok(t, place_build(&p, source[i], NULL)) &&
            expect_ok(t, rlx_session_set_state(p.session, "s", &first, &p.err)) &&
            run(t, &p, (float *const[]){k, s}, y, ALL) &&
            expect_ok(t, rlx_session_get_state(p.session, "s", &last, &p.err))) {
            memcpy(result[i], y, sizeof y);
            memcpy(state[i], got, sizeof got);
        }
        place_close(&p);
    }
    expect_bytes(t, result[0], result[1], sizeof y);
    expect_bytes(t, state[0], state[1], sizeof got);
}

/* ---- prefixes, long sequences, threads ----------------------------------------------------- */

#define SCAN(steps)                                                                              \
    "graph (input %x: f32[1," steps ",70], input %d: f32[1," steps ",70], input %a: f32[70,5], " \
    "input %b: f32[1," steps ",5], input %c: f32[1," steps ",5]) { "                             \
    "%y = selective_scan %x, %d, %a, %b, %c state_size=5 return %y }"

TEST(cpu_sequence, a_prefix_is_scanned_alike)
{
    enum { LONG = 23, SHORT = 11, H = 70 };
    static float in[5][LONG * H], y[2][LONG * H];
    struct place p;

    for (uint32_t i = 0; i < 5; i++)
        fill(in[i], LONG * H, i + 1, i == 1 ? 0 : i == 2 ? -2 : -1, i == 2 ? 0 : 1);
    if (!place_open(t, &p, "cpu", NULL))
        return place_close(&p);
    for (int i = 0; i < 2; i++)
        if (!expect_ok(t, place_build(&p, i ? SCAN("11") : SCAN("23"), NULL)) ||
            !run(t, &p, (float *const[]){in[0], in[1], in[2], in[3], in[4]}, y[i], LONG * H))
            return place_close(&p);
    expect_bytes(t, y[0], y[1], SHORT * H * sizeof y[0][0]);
    place_close(&p);
}

/* So many sums that inputs are weighed a stretch of steps at a time, in both directions; item 1
 * ends early, and is the same as on its own. */
TEST(cpu_sequence, long_layers_go_in_stretches)
{
    enum { S = 3000, I = 3, H = 64, ENDS = 1000, W = 2 * 4 * H };
    float *x = malloc(3 * S * I * sizeof *x), *wi = malloc(W * I * sizeof *wi);
    float *wh = malloc(W * H * sizeof *wh), *b = malloc(W * sizeof *b);
    float *y = malloc((size_t)3 * S * 2 * H * sizeof *y), *z = malloc(ENDS * 2 * H * sizeof *z);
    float lengths[3] = {2999, ENDS, 0};
    struct place p = {0};

    if (!expect(t, x && wi && wh && b && y && z) || !place_open(t, &p, "cpu", NULL))
        goto out;
    fill(x, 3 * S * I, 1, -1, 1);
    fill(wi, W * I, 2, -1, 1);
    fill(wh, W * H, 3, -0.3f, 0.3f);
    fill(b, W, 4, -0.5f, 0.5f);
    if (!expect_ok(t, place_build(&p,
                                  "graph (input %x: f32[3,3000,3], input %i: f32[2,256,3], "
                                  "input %h: f32[2,256,64], input %b: f32[2,256], input %l: "
                                  "i32[3]) { %y = lstm %x, %i, %h, %b, %b, %l hidden_size=64 "
                                  "bidirectional=true has_lengths=true return %y }",
                                  NULL)) ||
        !run(t, &p, (float *const[]){x, wi, wh, b, lengths}, y, (size_t)3 * S * 2 * H) ||
        !expect_ok(t, place_build(&p,
                                  "graph (input %x: f32[1,1000,3], input %i: f32[2,256,3], "
                                  "input %h: f32[2,256,64], input %b: f32[2,256]) { "
                                  "%y = lstm %x, %i, %h, %b, %b hidden_size=64 "
                                  "bidirectional=true return %y }",
                                  NULL)) ||
        !run(t, &p, (float *const[]){x + S * I, wi, wh, b}, z, ENDS * 2 * H))
        goto out;
    expect_close(t, y + (size_t)S * 2 * H, z, ENDS * 2 * H, 1e-5, 1e-5);
    expect_near(t, y[(size_t)(S + ENDS) * 2 * H], 0, 0);
    expect_near(t, y[(size_t)2 * S * 2 * H], 0, 0);
    expect(t, y[(size_t)2998 * 2 * H] != 0 && y[(size_t)2999 * 2 * H] == 0);
out:
    free(x);
    free(wi);
    free(wh);
    free(b);
    free(y);
    free(z);
    place_close(&p);
}

/* Weights that are params are turned when they are set, both of them where there are few steps. */
#define GRU(type, kind, steps)                                                                    \
    "graph (input %x: " type "[2," steps ",5], " kind " %i: " type "[2,60,5], " kind " %h: " type \
    "[2,60,20], " kind " %b: " type "[2,60]) { "                                                  \
    "%y = gru %x, %i, %h, %b, %b hidden_size=20 bidirectional=true return %y }"

static void check_turned(struct test *t, const char *as_params, const char *as_inputs,
                         int64_t steps, double tol)
{
    enum { LONGEST = 9, OUT = 2 * LONGEST * 40 };
    static const char *const name[] = {"i", "h", "b"};
    static const int64_t k[] = {5, 20, 1};
    static float x[2 * LONGEST * 5], w[3][2 * 60 * 20], y[2][OUT];
    struct place p;

    fill(x, sizeof x / sizeof x[0], 1, -1, 1);
    for (uint32_t i = 0; i < 3; i++)
        fill(w[i], sizeof w[i] / sizeof w[i][0], i + 2, -0.5f, 0.5f);
    bool ok = place_open(t, &p, "cpu", NULL) && expect_ok(t, place_build(&p, as_params, NULL));
    for (int i = 0; ok && i < 3; i++) {
        rlx_tensor v = tensor(w[i], (size_t)(120 * k[i]));
        v.rank = i < 2 ? 3 : 2;
        memcpy(v.dim, (const int64_t[]){2, 60, k[i]}, 3 * sizeof v.dim[0]);
        ok = expect_ok(t, rlx_session_set_param(p.session, name[i], &v, &p.err));
    }
    ok = ok && run(t, &p, (float *const[]){x}, y[0], OUT) &&
         expect_ok(t, place_build(&p, as_inputs, NULL)) &&
         run(t, &p, (float *const[]){x, w[0], w[1], w[2]}, y[1], OUT);
    if (ok)
        expect_close(t, y[0], y[1], (size_t)(2 * steps * 40), tol, tol);
    place_close(&p);
}

TEST(cpu_sequence, weights_are_turned_beforehand)
{
    check_turned(t, GRU("f32", "param", "1"), GRU("f32", "input", "1"), 1, 1e-6);
    check_turned(t, GRU("f32", "param", "9"), GRU("f32", "input", "9"), 9, 1e-6);
    check_turned(t, GRU("f16", "param", "3"), GRU("f16", "input", "3"), 3, 2e-3);
}

#define RANDOM(name, shape, seed) \
    "%" name " = rng_uniform shape=" shape " low=-0.5 high=0.5 seed=" seed " "

TEST(cpu_sequence, any_number_of_threads_gives_the_same_bits)
{
    static const char *const graph[] = {
        RANDOM("x", "[2,9,300]", "1") RANDOM("a", "[300,7]", "2") RANDOM(
            "b", "[2,9,7]",
            "3") "%y = selective_scan_backward %x, %x, %a, %b, %b, %x state_size=7 return %y",
        RANDOM("x", "[2,9,5,33]", "1") RANDOM(
            "g", "[2,9,5]", "2") "%y = gated_delta_net %x, %x, %x, %g, %g state_size=33 return %y",
        RANDOM("x", "[2,9,5,33]", "1") RANDOM(
            "g", "[2,9,5]",
            "2") "%y = gated_delta_net_backward %x, %x, %x, %g, %g, %x state_size=33 return %y",
        RANDOM("x", "[2,9,5,33]", "1") RANDOM("g", "[2,9,5]", "2") RANDOM(
            "a", "[5]", "3") "%y = mamba2 %x, %g, %a, %x, %x head_dim=33 state_size=33 return %y",
        RANDOM("x", "[5,9,33]", "1") RANDOM("i", "[2,600,33]", "2") RANDOM("h", "[2,600,200]", "3")
            RANDOM("b", "[2,600]",
                   "4") "%y = gru %x, %i, %h, %b, %b hidden_size=200 bidirectional=true return %y",
    };
    enum { MOST = 40000 };
    double *y = malloc(2 * MOST * sizeof *y);
    struct device_run r;

    require(t, y);
    for (size_t i = 0; i < sizeof graph / sizeof graph[0]; i++) {
        long count[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            rlx_error err;
            r = (struct device_run){0};
            if (expect_ok(t, rlx_context_create(RLX_VERSION,
                                                &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                                    .threads = k ? 5 : 1},
                                                &r.ctx, &err)) &&
                expect_ok(t, rlx_device_open(r.ctx, "cpu", &r.dev, &err)))
                count[k] = device_numbers(t, &r, graph[i], 0, y + k * MOST, MOST);
            device_close(&r);
        }
        test_note(t, "%s", graph[i]);
        expect(t, count[0] == count[1] && count[0] > 0 && count[0] <= MOST);
        expect_bytes(t, y, y + MOST, (size_t)count[0] * sizeof *y);
    }
    free(y);
}
