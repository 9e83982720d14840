/* memory_test.c: what a model will take, computed before a session is made, is what the session
 * then takes; and all that tells of it says the same. */
#include <stdio.h>

#include "inspect/debug_world.h"

/* Weights that are joined beforehand, and constants that are worked out when it is compiled. */
#define JOINED                                                                               \
    "rlx 1\ngraph (input %x: f32[8,64], param %q: f32[64,64], param %k: f32[64,64],"         \
    " param %g: f32[64], param %unused: f32[100], state %s: f32[3]) {\n"                     \
    "    %a = const f32[5] {1 2 3 4 5}\n    %b = expand %a shape=[200,5]\n    %c = exp %b\n" \
    "    %w = mul %q, %g\n    %y = matmul %x, %w\n    %z = matmul %x, %k\n"                  \
    "    %t = neg %s\n    return %y, %z, %c, %t\n}\n"
#define WIDE                                                                                \
    "rlx 1\ngraph (input %x: f32[127,250], param %w: f32[250,510], param %b: f32[510]) {\n" \
    "    %m = matmul %x, %w\n    %a = add %m, %b\n    %r = relu %a\n    %s = softmax %r\n"  \
    "    %n = transpose %s perm=[1,0]\n    %y = softmax %n\n    return %y\n}\n"
#define SIZED                                                            \
    "dim n%s\n\ngraph (input %%x: f32[n,40], param %%w: f32[40,24]) {\n" \
    "    %%m = matmul %%x, %%w\n    %%y = softmax %%m\n    return %%y\n}\n"

static void compare(struct test *t, struct world *w, const rlx_dim_size *dims, size_t count)
{
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .dims = dims, .dim_count = count};
    rlx_memory_estimate e;
    rlx_memory_info m = {RLX_SIZED(rlx_memory_info)};
    rlx_plan_summary p;

    if (!expect_ok(t, rlx_model_memory(w->model, w->dev, dims, count, 0, &e, &w->err)) ||
        !expect_ok(t, rlx_session_prepare(w->session, &run, &w->err)) ||
        !expect_ok(t, rlx_session_memory(w->session, &m, &w->err)) ||
        !expect_ok(t, rlx_session_plan(w->session, RLX_PLAN_TEXT, NULL, NULL, &p, &w->err))) {
        fail(t, "%s", w->err.message);
        return;
    }
    expect_eq(t, e.weights, m.weights);
    expect_eq(t, e.weight_copies, m.weight_copies);
    expect_eq(t, e.constants, m.constants);
    expect_eq(t, e.activations, m.activations);
    expect_eq(t, e.states, m.state);
    expect_eq(t, e.total, e.weights + e.weight_copies + e.constants + e.activations + e.states);
    expect_eq(t, p.arena, m.activations);
    expect_eq(t, p.lower_bound, m.lower_bound);
    expect_eq(t, p.unshared, m.unshared);
}

static void check(struct test *t, const char *graph, const rlx_context_desc *ctx,
                  const rlx_session_desc *desc, const rlx_dim_size *dims, size_t count)
{
    struct world w;

    if (open_world(t, &w, graph, ctx, desc))
        compare(t, &w, dims, count);
    close_world(&w);
}

TEST_DEVICES(memory, is_told_beforehand)
{
    char bounded[512], open[512];
    const rlx_dim_size n = {"n", 9};

    snprintf(bounded, sizeof bounded, "rlx 1\n" SIZED, " <= 100");
    snprintf(open, sizeof open, "rlx 1\n" SIZED, "");
    check(t, JOINED, NULL, NULL, NULL, 0);
    check(t, WIDE, NULL, NULL, NULL, 0);
    check(t, bounded, NULL, NULL, &n, 1);
    check(t, open, NULL, NULL, &n, 1);
}

/* A context's flags hold for the estimate as they do for sessions. */
TEST_DEVICES(memory, follows_the_flags)
{
    const rlx_flag align = {"ARENA_ALIGN", "4096"}, apart = {"ARENA_NO_REUSE", "1"},
                   whole = {"NO_STATIC_PACK", "1"};

    check(t, WIDE,
          &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &align, .flag_count = 1}, NULL,
          NULL, 0);
    check(t, WIDE,
          &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &apart, .flag_count = 1}, NULL,
          NULL, 0);
    check(t, JOINED,
          &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &whole, .flag_count = 1}, NULL,
          NULL, 0);
}

/* Where buffers are small the arena is cut up, and its parts are not all full. */
TEST(memory, counts_what_is_allocated)
{
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .max_buffer = 600000};
    struct world w;
    rlx_memory_info m = {RLX_SIZED(rlx_memory_info)};
    rlx_plan_summary p;
    char text[16384] = "", want[64];

    if (open_world(t, &w, WIDE, NULL, &desc) &&
        expect_ok(t, rlx_session_memory(w.session, &m, &w.err)) &&
        expect_ok(t, rlx_session_plan(w.session, RLX_PLAN_TEXT, collect, text, &p, &w.err))) {
        expect(t, m.buffers > 1);
        expect_eq(t, p.arena, m.activations);
        snprintf(want, sizeof want, "# arena_size=%llu ", (unsigned long long)m.activations);
        expect_contains(t, text, want);
    }
    close_world(&w);
}

/* The estimate takes nothing: it can tell of what would not fit, and the model stays open. */
TEST(memory, is_not_taken_by_asking)
{
    struct world w = {0};
    rlx_memory_estimate e;
    float g[64] = {0};

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &w.ctx, &w.err));
    require_ok(t, rlx_device_open(w.ctx, "cpu", &w.dev, &w.err));
    require_ok(t, rlx_model_parse(w.ctx,
                                  rlx_cstr("rlx 1\ngraph (input %x: f32[1048576,1048576], param "
                                           "%g: f32[64]) {\n    %y = neg %x\n    return %y\n}\n"),
                                  &w.model, &w.err));
    if (expect_ok(t, rlx_model_memory(w.model, w.dev, NULL, 0, 0, &e, &w.err))) {
        expect_eq(t, e.activations, UINT64_C(8) << 40);
        expect(t, e.deficit > 0);
    }
    const rlx_tensor value = {RLX_DTYPE_f32, 1, {64}, g, sizeof g};
    expect_ok(t, rlx_model_set_param(w.model, "g", &value, &w.err));
    close_world(&w);
}
