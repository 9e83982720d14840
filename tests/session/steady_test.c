/* steady_test.c: runtime.md 10, line 15: once a session has run, running it again asks for
 * no memory: with the same sizes, with any sizes under its bounds, with handles and feeds, with
 * several runs in flight, watched or not. An allocator that counts sees every request. */
#include "rlx/tools.h"
#include "sized.h"

struct steady {
    struct test_alloc count;
    rlx_allocator mem;
    struct place p;
};

static bool open_steady(struct test *t, struct steady *s, const char *graph,
                        const rlx_context_desc *context, const rlx_session_desc *desc)
{
    rlx_context_desc with = context ? *context : (rlx_context_desc){RLX_SIZED(rlx_context_desc)};

    *s = (struct steady){0};
    s->mem = test_allocator(&s->count);
    with.allocator = &s->mem;
    if (!place_open(t, &s->p, test_device(t), &with))
        return false;
    if (!expect_ok(t, place_build(&s->p, graph, desc)))
        return fail(t, "%s", s->p.err.message);
    return sized_params(t, &s->p);
}

static void close_steady(struct test *t, struct steady *s)
{
    place_close(&s->p);
    expect_no_leak(t, &s->count);
}

/* A bit of everything that runs: products, a region, a norm, rows that are summed, a loop. */
#define BLOCK                                                                                    \
    "graph @main (input %x: f32[n,m,8], param %w: f32[8,8], param %g: f32[8], param %b: f32[8])" \
    " { %q = matmul %x, %w %a = add %q, %b %h = gelu %a %r = add %h, %x"                         \
    " %l = layer_norm %r, %g, %b %s = softmax %l axis=1"                                         \
    " %t = attention %l, %s, %l num_heads=2 head_dim=4 layout=packed mask_kind=causal"           \
    " %z = exp %t %k = tanh %z %c = concat %k, %x axis=1 %o = sort %c axis=1"                    \
    " %e = const f32[8] {0 0 0 0 0 0 0 0} %v = reduce_sum %o axes=[0]"                           \
    " %y = scan %e, %v body=@add length=2*m num_xs=1 return %y, %o }"                            \
    " graph @add (input %c: f32[8], input %x: f32[8]) { %d = add %c, %x return %d }"

static void expect_steady(struct test *t, struct steady *s, const int64_t (*size)[2], size_t sizes)
{
    static struct sized r;
    uint64_t first = 0;

    r.calls = &s->count.calls;
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < sizes; i++) {
            const rlx_dim_size dims[] = {{"n", size[i][0]}, {"m", size[i][1]}};
            sized_run(&s->p, dims, 2, &r);
            if (!expect_ok(t, r.status))
                fail(t, "%s", s->p.err.message);
            if (round == 0)
                first += r.asked; /* all that is to be compiled is */
            else
                expect_eq_u64(t, r.asked, 0);
        }
    expect(t, first > 0);
}

static const rlx_session_desc modes[] = {
    {RLX_SIZED(rlx_session_desc)},
    {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_fusion = true, .no_reuse = true)},
    {RLX_SIZED(rlx_session_desc), .precision = RLX_PRECISION_MIXED},
    {RLX_SIZED(rlx_session_desc), .check_indices = true, .debug = DEBUG(.no_packed_weights = true)},
    {RLX_SIZED(rlx_session_desc), .check_numerics = RLX_NUMERICS_REPORT},
    {RLX_SIZED(rlx_session_desc), .uploads = RLX_UPLOADS_CHANGED},
};

TEST_DEVICES_SLOW(steady, the_same_sizes)
{
    static const int64_t size[][2] = {{2, 3}};

    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct steady s;
        test_note(t, "mode %zu", i);
        if (open_steady(t, &s, "dim n dim m " BLOCK, NULL, &modes[i]))
            expect_steady(t, &s, size, 1);
        close_steady(t, &s);
    }
}

/* As many bindings as programs are kept. */
TEST_DEVICES_SLOW(steady, sizes_in_turn)
{
    static const int64_t size[][2] = {{2, 3}, {1, 7}, {3, 1}, {2, 4}};
    struct steady s;

    if (open_steady(t, &s, "dim n dim m " BLOCK, NULL, NULL))
        expect_steady(t, &s, size, COUNT_OF(size));
    close_steady(t, &s);
}

/* From the second run on any size is as good as those before, also one never seen. */
TEST_DEVICES_SLOW(steady, any_sizes_under_the_bounds)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct steady s;
        static struct sized r;
        test_note(t, "mode %zu", i);
        if (open_steady(t, &s, "dim n <= 3 dim m <= 7 " BLOCK, NULL, &modes[i])) {
            const rlx_dim_size first[] = {{"n", 2}, {"m", 2}};
            r.calls = &s.count.calls;
            sized_run(&s.p, first, 2, &r);
            expect(t, r.status == RLX_OK && r.asked > 0);
            for (int64_t n = 0; n <= 3; n++)
                for (int64_t m = 1; m <= 7; m++) {
                    const rlx_dim_size dims[] = {{"n", n}, {"m", m}};
                    sized_run(&s.p, dims, 2, &r);
                    expect_ok(t, r.status);
                    expect_eq_u64(t, r.asked, 0);
                }
        }
        close_steady(t, &s);
    }
}

/* ---- handles, flights ---- */

#define DECODE                                                                 \
    "dim past <= 16 graph (input %x: f32[2,1,4], input %old: f32[2,past,4]) {" \
    " %k = neg %x %all = concat %old, %k axis=1"                               \
    " %y = attention %x, %all, %all num_heads=1 head_dim=4 layout=packed"      \
    " return %y, %k, %all }"

/* Rows are appended after a batch axis, so that the handle is also staged before each run. */
TEST_DEVICES_SLOW(steady, handles_with_feeds)
{
    struct steady s;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8], none[1] = {0};
    rlx_tensor empty = {RLX_DTYPE_f32, 3, {2, 0, 4}, none, 0};
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_BATCH, .output = 1, .dst_row = "past"};
    uint64_t before = 0;

    if (!open_steady(t, &s, DECODE, NULL, NULL))
        return close_steady(t, &s);
    expect_ok(t, rlx_session_bind_handle(s.p.session, "old", &empty, &s.p.err));
    expect_ok(t, rlx_session_set_feed(s.p.session, "old", &feed, &s.p.err));
    for (int64_t past = 0; past < 16; past++) {
        rlx_binding in = {"x", {RLX_DTYPE_f32, 3, {2, 1, 4}, x, sizeof x}};
        rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
        const rlx_dim_size dim = {"past", past};
        expect_ok(
            t, rlx_session_run(s.p.session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, &dim, 1},
                               &s.p.err));
        if (past == 0)
            before = s.count.calls;
    }
    expect_eq_u64(t, s.count.calls, before);
    close_steady(t, &s);
}

/* A handle that is an output and fed in the same run: its old value is kept aside. */
TEST_DEVICES_SLOW(steady, handles_that_are_outputs)
{
    struct steady s;
    float h[4] = {1, 2, 3, 4}, y[4];
    rlx_tensor v = {RLX_DTYPE_f32, 1, {4}, h, sizeof h};
    rlx_feed feed = {RLX_SIZED(rlx_feed), .mode = RLX_FEED_WHOLE, .output = 1};
    uint64_t before = 0;

    if (!open_steady(t, &s, "graph (input %h: f32[4]) { %y = neg %h return %h, %y }", NULL, NULL))
        return close_steady(t, &s);
    expect_ok(t, rlx_session_bind_handle(s.p.session, "h", &v, &s.p.err));
    expect_ok(t, rlx_session_set_feed(s.p.session, "h", &feed, &s.p.err));
    for (int i = 0; i < 6; i++) {
        rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
        expect_ok(
            t, rlx_session_run(s.p.session,
                               &(rlx_run_desc){RLX_SIZED(rlx_run_desc), NULL, 0, &out, 1, NULL, 0},
                               &s.p.err));
        expect_near(t, y[1], i % 2 ? -2 : 2, 0);
        if (i == 0)
            before = s.count.calls;
    }
    expect_eq_u64(t, s.count.calls, before);
    close_steady(t, &s);
}

TEST_DEVICES_SLOW(steady, runs_in_flight)
{
    struct steady s;
    float x[8], y[8];
    uint64_t ticket[3], before = 0;
    const rlx_session_desc three = {RLX_SIZED(rlx_session_desc), .in_flight = 3};

    if (!open_steady(t, &s, "dim n <= 8 graph (input %x: f32[n]) { %y = neg %x return %y }", NULL,
                     &three))
        return close_steady(t, &s);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 3; i++) {
            /* the largest first, so that the room made for its outputs is enough for all */
            size_t n = round ? (size_t)(round + i) % 8 + 1 : 8;
            for (size_t k = 0; k < n; k++)
                x[k] = (float)(i + 1);
            rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {(int64_t)n}, x, n * 4}};
            expect_ok(t, rlx_session_submit(
                             s.p.session,
                             &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0},
                             &ticket[i], &s.p.err));
        }
        for (int i = 2; i >= 0; i--) {
            rlx_binding out = {"out0", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
            rlx_run_desc take = {RLX_SIZED(rlx_run_desc), NULL, 0, &out, 1, NULL, 0};
            expect_ok(t, rlx_session_wait(s.p.session, ticket[i], &take, &s.p.err));
            expect_near(t, y[0], -(i + 1), 0);
        }
        if (round == 0)
            before = s.count.calls;
    }
    expect_eq_u64(t, s.count.calls, before);
    close_steady(t, &s);
}

/* ---- watched ---- */

static void count_step(void *user, const rlx_profile_event *e)
{
    *(uint64_t *)user += e->step != NULL;
}

static void count_value(void *user, const rlx_watch_event *e)
{
    *(uint64_t *)user += e->step >= 0;
}

TEST_DEVICES_SLOW(steady, profiled_traced_and_watched)
{
    static const int64_t size[][2] = {{2, 3}, {1, 5}};
    const rlx_context_desc traced = {RLX_SIZED(rlx_context_desc),
                                     .trace = test_temp(t, "trace.json")};
    struct steady s;
    uint64_t steps = 0, values = 0;

    if (open_steady(t, &s, "dim n dim m " BLOCK, &traced, NULL)) {
        rlx_session_set_profile(s.p.session, count_step, &steps);
        expect_ok(t, rlx_session_set_watch(s.p.session, count_value, &values, &s.p.err));
        expect_steady(t, &s, size, COUNT_OF(size));
        expect(t, steps > 8 && values >= steps);
    }
    close_steady(t, &s);
}
