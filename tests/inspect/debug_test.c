/* debug_test.c: looking into runs: NaN, watchers, traces, flags, schedules, estimates. Where steps
 * are counted nodes stay apart; debug_fused_test.c looks at what fusion made. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "context/trace.h"
#include "debug_world.h"
#include "rlx/graph.h"

/* A step per node. */
static const rlx_session_desc per_node = {RLX_SIZED(rlx_session_desc),
                                          .debug = DEBUG(.no_fusion = true)},
                              per_node_report = {RLX_SIZED(rlx_session_desc),
                                                 .check_numerics = RLX_NUMERICS_REPORT,
                                                 .debug = DEBUG(.no_fusion = true)};

TEST_DEVICES(numerics, the_first_bad_step_is_found_with_its_operands)
{
    struct world w;
    float good[6] = {1, 2, 3, 4, 5, 6}, bad[6] = {1, 2, 3, -4, 0, 6};
    rlx_numerics n;
    char text[4096] = "";

    if (!open_world(t, &w, LOGS, NULL, &per_node_report))
        return close_world(&w);
    expect_ok(t, run_logs(&w, good));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, -1);
    expect_eq(t, n.steps, 4);
    rlx_numerics_print(&n, collect, text);
    expect_contains(t, text, "clean");

    expect_ok(t, run_logs(&w, bad));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, 1);
    expect_str(t, n.step_name, "log");
    expect_eq(t, n.bad_values, 3); /* b, c and d */
    expect_eq(t, n.bad_count, 3);
    expect_str(t, n.bad[0].name, "b");
    expect_eq(t, n.bad[0].nan_count, 1);
    expect_eq(t, n.bad[0].inf_count, 1);
    expect_eq(t, n.bad[0].first_index, 3);
    expect_eq(t, n.bad[0].around_first, 1);
    expect_eq(t, n.bad[0].around_count, 5);
    expect_near(t, n.bad[0].around[0], logf(2), 1e-6);
    expect(t, isnan(n.bad[0].around[2]) && isinf(n.bad[0].around[3]));
    expect_eq(t, n.operand_count, 1);
    expect_str(t, n.operand[0].name, "x");
    expect_near(t, n.operand[0].min, -4, 0);
    expect_near(t, n.operand[0].max, 6, 0);
    expect(t, n.has_previous);
    expect_str(t, n.previous.name, "a");
    expect_near(t, n.previous.max_abs, 36, 0);
    text[0] = 0;
    rlx_numerics_print(&n, collect, text);
    expect_contains(t, text, "step 1 (log) is the first of 3 values");
    expect_contains(t, text, "last finite value: a (mul) f32[6]: min 0, max 36");
    expect_ok(t, run_logs(&w, good)); /* a clean run after it is clean again */
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, -1);
    close_world(&w);
}

TEST_DEVICES(numerics, operands_are_known_although_their_bytes_are_reused)
{
    /* s is overwritten in place by r, whose reciprocal is infinite */
    const char *text = "rlx 1\ngraph (input %x: f32[6]) {\n    %s = sub %x, %x\n"
                       "    %r = recip %s\n    return %r\n}\n";
    struct world w;
    float x[6] = {1, 2, 3, 4, 5, 6}, r[6];
    rlx_numerics n;

    if (!open_world(t, &w, text, NULL, &per_node_report))
        return close_world(&w);
    rlx_binding in = {"x", vector(x, 6)}, out = {"r", vector(r, 6)};
    expect_ok(t, rlx_session_run(w.session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                                 &w.err));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, 1);
    expect_eq(t, n.bad[0].inf_count, 6);
    expect_str(t, n.operand[0].name, "s");
    expect(t, n.operand[0].known);
    expect_near(t, n.operand[0].max_abs, 0, 0);
    close_world(&w);
}

TEST_DEVICES(numerics, failing_is_asked_for)
{
    struct world w;
    float bad[6] = {1, 2, 3, -4, 0, 6}, good[6] = {1, 1, 1, 1, 1, 1};
    rlx_numerics n;

    if (!open_world(t, &w, LOGS, NULL,
                    &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                        .check_numerics = RLX_NUMERICS_FAIL,
                                        .debug = DEBUG(.no_fusion = true)}))
        return close_world(&w);
    expect_status(t, run_logs(&w, bad), RLX_ERROR_NUMERIC);
    expect_contains(t, w.err.message, "step 1 (log)");
    expect_str(t, w.err.label, "b");
    expect_ok(t, run_logs(&w, good));
    close_world(&w);
    if (!open_world(t, &w, LOGS, NULL, NULL))
        return close_world(&w);
    expect_ok(t, run_logs(&w, bad));
    expect_status(t, rlx_session_numerics(w.session, &n, &w.err), RLX_ERROR_STATE);
    close_world(&w);
    struct world none = {0};
    if (!open_world(t, &none, LOGS,
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                        .flags = &(rlx_flag){"DEBUG_NANS", "fail"},
                                        .flag_count = 1},
                    NULL))
        return close_world(&none);
    expect_status(t, run_logs(&none, bad), RLX_ERROR_NUMERIC);
    close_world(&none);
}

TEST_DEVICES(numerics, nothing_is_allocated_once_it_runs)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct world w;
    float bad[6] = {1, 2, 3, -4, 0, 6};

    if (!open_world(t, &w, LOGS,
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = &mem},
                    &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                        .check_numerics = RLX_NUMERICS_REPORT}))
        return close_world(&w);
    expect_ok(t, run_logs(&w, bad));
    uint64_t before = count.calls;
    for (int i = 0; i < 3; i++)
        expect_ok(t, run_logs(&w, bad));
    expect_eq(t, count.calls, before);
    close_world(&w);
    expect_no_leak(t, &count);
}

/* ---- watchers ---- */

struct seen {
    int events;
    char names[64];
    double last_first; /* the first element of the last value, read while it was there */
};

static void see(void *user, const rlx_watch_event *e)
{
    struct seen *s = user;

    s->events++;
    s->names[strlen(s->names)] = e->value.name[0]; /* zeros follow */
    rlx_session_peek(e->session, e->value.node, 0, 1, &s->last_first, NULL);
}

TEST_DEVICES(watch, sees_every_value_right_after_its_step)
{
    struct world w;
    float x[6] = {2, 1, 1, 1, 1, 1};
    struct seen s = {0};
    double out;

    if (!open_world(t, &w, LOGS, NULL, &per_node))
        return close_world(&w);
    expect_ok(t, rlx_session_set_watch(w.session, see, &s, &w.err));
    expect_ok(t, run_logs(&w, x));
    expect_eq(t, s.events, 4);
    expect_str(t, s.names, "abcd");
    expect_near(t, s.last_first, -(4 + log(2)), 1e-5);
    expect_status(t, rlx_session_peek(w.session, 99, 0, 1, &out, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_peek(w.session, 1, 6, 1, &out, &w.err), RLX_ERROR_ARGUMENT);
    expect_ok(t, rlx_session_set_watch(w.session, NULL, NULL, &w.err));
    expect_ok(t, run_logs(&w, x));
    expect_eq(t, s.events, 4);
    close_world(&w);
}

/* ---- traces ---- */

/* neg, then abs, with a label that JSON has to escape. */
static bool build_labelled(struct test *t, struct world *w, const char *trace)
{
    rlx_graph *g;

    *w = (struct world){0};
    if (!expect_ok(
            t, rlx_context_create(RLX_VERSION,
                                  &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .trace = trace},
                                  &w->ctx, &w->err)) ||
        test_no_device(t, test_device(t), rlx_device_open(w->ctx, test_device(t), &w->dev, &w->err),
                       w->err.message) ||
        !expect_ok(t, rlx_graph_create(w->ctx, &g, &w->err)))
        return false;
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(6)), a = rlx_neg(g, x);
    rlx_label(g, a, "say \"a\"\n\xff");
    rlx_value d = rlx_abs(g, a);
    rlx_label(g, d, "d");
    rlx_output(g, d);
    return expect_ok(t, rlx_model_create(g, &w->model, &w->err)) &&
           expect_ok(t, rlx_session_create(w->model, w->dev, &per_node, &w->session, &w->err));
}

TEST_DEVICES(trace, has_a_span_per_step_and_stage_and_is_whole_at_any_time)
{
    const char *path = test_temp(t, "trace.json");
    struct world w;
    float x[6] = {1, 1, 1, 1, 1, 1};
    char kind[32];

    if (!build_labelled(t, &w, path))
        return close_world(&w);
    expect_ok(t, run_logs(&w, x));
    expect_ok(t, run_logs(&w, x));
    const char *text = test_read(t, path, NULL); /* the context is still there */
    if (!text)
        return close_world(&w);
    expect_eq(t, count_of(text, "\"step\":"), 4);
    expect_eq(t, count_of(text, "\"node\":\"say \\u0022a\\u0022\\u000a?\""), 2);
    expect_eq(t, count_of(text, "\"name\":\"compile\""), 1);
    expect_eq(t, count_of(text, "\"name\":\"dce\""), 2); /* of a clean-up, and at the end */
    expect_eq(t, count_of(text, "\"name\":\"upload\""), 2);
    expect_eq(t, count_of(text, "\"name\":\"readback\""), 2);
    snprintf(kind, sizeof kind, "\"cat\":\"%s\"", test_device(t));
    expect_eq(t, count_of(text, kind), count_of(text, "\"ph\":\"X\""));
    expect_eq(t, strncmp(text, "[\n{", 3), 0);
    expect_eq(t, strcmp(text + strlen(text) - 4, "}\n]\n"), 0);
    close_world(&w);
    expect_str(t, test_read(t, path, NULL), text); /* closing adds nothing */
}

#define SPANS 200

static void *write_spans(void *user)
{
    for (int i = 0; i < SPANS; i++)
        trace_span(user, "work", trace_now(user), 0,
                   &(struct trace_args){.is_step = true, .step = i, .label = rlx_cstr("x")});
    return NULL;
}

TEST_DEVICES(trace, threads_do_not_mix_their_events)
{
    const char *path = test_temp(t, "trace.json");
    pthread_t thread[4];
    struct trace *trace;
    struct diag d;

    diag_init(&d, "test");
    require_ok(t, trace_open(&trace, path, mem_default(), &d));
    for (int i = 0; i < 4; i++)
        require(t, pthread_create(&thread[i], NULL, write_spans, trace) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    trace_close(trace);
    const char *text = test_read(t, path, NULL);
    require(t, text);
    expect_eq(t, count_of(text, "{\"name\":\"work\",\"cat\":\"rlx\",\"ph\":\"X\",\"ts\":"),
              4 * SPANS);
    expect_eq(t, count_of(text, ",\"node\":\"x\",\"bytes\":0}}"), 4 * SPANS);
    expect_eq(t, count_of(text, "\"thread_name\",\"ph\":\"M\""), 4);
    expect_eq(t, count_of(text, "\n"), 4 * SPANS + 4 + 2);
}

TEST(trace, a_file_that_cannot_be_written_is_said)
{
    rlx_context *ctx;
    rlx_error err;

    expect_status(t,
                  rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                         .trace = "/no/such/folder/trace.json"},
                                     &ctx, &err),
                  RLX_ERROR_IO);
    expect_contains(t, err.message, "/no/such/folder");
}

/* ---- flags ---- */

TEST(context_flags, decide_what_auto_means_and_what_may_be_opened)
{
    const rlx_flag flags[] = {{"DEVICE", "null"}, {"DEVICES", "cpu, null"}},
                   narrow[] = {{"DEVICES", "cpu:baseline"}};
    rlx_context *ctx;
    rlx_device *dev;
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                         .flags = flags, .flag_count = 2},
                                     &ctx, &err));
    expect_ok(t, rlx_device_open(ctx, "auto", &dev, &err));
    rlx_device_close(dev);
    expect_ok(t, rlx_device_open(ctx, "cpu:baseline", &dev, &err));
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    require_ok(t, rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                         .flags = narrow, .flag_count = 1},
                                     &ctx, &err));
    expect_status(t, rlx_device_open(ctx, "cpu", &dev, &err), RLX_ERROR_NO_DEVICE);
    expect_contains(t, err.message, "RLX_DEVICES");
    expect_ok(t, rlx_device_open(ctx, "auto", &dev, &err));
    rlx_device_close(dev);
    expect(t, rlx_device_at(ctx, 0, &info, NULL) == RLX_OK &&
                  info.present); /* a kind of cpu may be opened */
    expect(t, rlx_device_at(ctx, 1, &info, NULL) == RLX_OK && !info.present);
    rlx_context_destroy(ctx);
}

TEST(context_flags, reach_sessions)
{
    const rlx_flag flags[] = {{"RLX_ARENA_NO_REUSE", "1"}, {"RLX_ARENA_ALIGN", "256"}};
    const rlx_flag wrong = {"RLX_ARENA_ALIGN", "3"};
    rlx_memory_info plain = {RLX_SIZED(rlx_memory_info)}, apart = {RLX_SIZED(rlx_memory_info)};
    struct world w;

    if (!open_world(t, &w, LOGS, NULL, &per_node))
        return close_world(&w);
    expect_ok(t, rlx_session_memory(w.session, &plain, &w.err));
    close_world(&w);
    if (!open_world(
            t, &w, LOGS,
            &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = flags, .flag_count = 2},
            &per_node))
        return close_world(&w);
    expect_ok(t, rlx_session_memory(w.session, &apart, &w.err));
    expect_eq(t, apart.in_place, 0);
    expect_eq(t, apart.activations, 5 * 256);
    expect(t, apart.activations > plain.activations);
    close_world(&w);
    w = (struct world){0};
    require_ok(t, rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                         .flags = &wrong, .flag_count = 1},
                                     &w.ctx, &w.err));
    expect_ok(t, rlx_device_open(w.ctx, "cpu", &w.dev, &w.err));
    expect_ok(t, rlx_model_parse(w.ctx, rlx_cstr(LOGS), &w.model, &w.err));
    expect_status(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err),
                  RLX_ERROR_ARGUMENT);
    close_world(&w);
}

TEST(context_flags, are_listed_with_their_values)
{
    rlx_context *ctx;
    rlx_flag_row row;
    rlx_error err;
    bool found = false;

    require_ok(t, rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                         .flags = &(rlx_flag){"VERBOSE", "2"},
                                                         .flag_count = 1},
                                     &ctx, &err));
    for (size_t i = 0; rlx_flag_at(ctx, i, &row); i++) {
        expect(t, row.summary[0] && row.layer[0] && row.stability[0] && row.values[0]);
        if (strcmp(row.name, "RLX_VERBOSE") != 0)
            continue;
        found = true;
        expect_str(t, row.value, "2");
        expect_str(t, row.source, "override");
        expect(t, row.on);
    }
    expect(t, found);
    rlx_context_destroy(ctx);
}

static void count_lines(void *user, int level, const char *line)
{
    int *lines = user;

    (void)line;
    lines[level]++;
}

TEST(context_flags, verbose_logs_passes_and_graphs)
{
    int lines[4] = {0};
    struct world w;
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .log = count_lines, .log_user = lines,
                             .flags = &(rlx_flag){"VERBOSE", "2"}, .flag_count = 1};

    if (open_world(t, &w, LOGS, &desc, &per_node)) {
        expect(t, lines[2] >= 4); /* each pass, and the sum */
        expect(t, lines[3] >= 2 * 8);
    }
    close_world(&w);
}

TEST(context_flags, ir_dump_writes_every_stage)
{
    const char *path = test_temp(t, "dump.txt");
    struct world w;

    if (open_world(t, &w, LOGS,
                   &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                       .flags = &(rlx_flag){"IR_DUMP", path}, .flag_count = 1},
                   &per_node)) {
        const char *text = test_read(t, path, NULL);
        require(t, text);
        expect_contains(t, text, "==== graph as built\n\nrlx 1\n");
        expect_contains(t, text, "==== what the passes changed");
        expect_contains(t, text, "==== optimised graph");
        expect_contains(t, text, "==== fusion\n\n");
        expect_contains(t, text, "     1  log\n");
        expect_contains(t, text, "4 steps");
        expect_contains(t, text, "# arena_size=");
    }
    close_world(&w);
}

/* ---- schedules, estimates, differences ---- */

#define PRODUCT                                           \
    "rlx 1\n"                                             \
    "graph (input %x: f32[n,8], param %w: f32[8,16]) {\n" \
    "    %y = matmul %x, %w\n    %z = relu %y\n    return %z\n}\n"

TEST_DEVICES(schedule, counts_steps_bytes_and_arithmetic)
{
    struct world w;
    char text[4096] = "";
    rlx_dim_size n = {"n", 4};
    float x[32] = {0};

    if (!open_world(t, &w, PRODUCT, NULL, NULL))
        return close_world(&w);
    expect_status(t, rlx_session_schedule(w.session, false, collect, text, &w.err),
                  RLX_ERROR_STATE);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {4, 8}, x, sizeof x}};
    expect_ok(t, rlx_session_prepare(
                     w.session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, &n, 1},
                     &w.err));
    expect_ok(t, rlx_session_schedule(w.session, true, collect, text, &w.err));
    expect_contains(t, text,
                    "\"step\":\"matmul\",\"count\":1,\"bytes_read\":640,"
                    "\"bytes_written\":256,\"flops\":1024");
    expect_contains(t, text, "\"step\":\"relu\",\"count\":1,\"bytes_read\":256");
    close_world(&w);
}

TEST(estimate, adds_up_before_anything_is_loaded)
{
    struct world w;
    rlx_dim_size n = {"n", 4}, wrong = {"m", 4};
    rlx_memory_estimate e;

    if (!open_world(t, &w, PRODUCT, NULL, NULL))
        return close_world(&w);
    expect_ok(t, rlx_model_memory(w.model, w.dev, &n, 1, 700, &e, &w.err));
    expect_eq(t, e.weights, 512);
    expect_eq(t, e.inputs, 128);
    expect_eq(t, e.activations, 384); /* x, and y which z takes over */
    expect_eq(t, e.total, e.weights + e.constants + e.activations + e.states);
    expect_eq(t, e.deficit, e.total - 700);
    expect_ok(t, rlx_model_memory(w.model, w.dev, &n, 1, 1 << 20, &e, &w.err));
    expect_eq(t, e.deficit, 0);
    expect_status(t, rlx_model_memory(w.model, w.dev, &wrong, 1, 0, &e, &w.err), RLX_ERROR_NAME);
    expect_status(t, rlx_model_memory(w.model, w.dev, NULL, 0, 0, &e, &w.err),
                  RLX_ERROR_UNBOUND_DIM);
    close_world(&w);
}

TEST_DEVICES(bindings, tell_places_and_groups)
{
    const char *graph = "rlx 1\ngraph (input %x: f32[8], input %u: f32[2], param %b0.w: f32[8], "
                        "param %b0.b: f32[8],"
                        " param %top: f32[8], state %s: f32[4]) {\n    %a = fma %x, %b0.w, %b0.b\n"
                        "    %y = add %a, %top\n    %z = neg %s\n    return %y, %z\n}\n";
    struct world w;
    char text[4096] = "";

    if (!open_world(t, &w, graph, NULL, NULL))
        return close_world(&w);
    expect_ok(t, rlx_session_bindings(w.session, true, collect, text, &w.err));
    expect_contains(t, text,
                    "{\"kind\":\"input\",\"name\":\"u\",\"type\":\"f32[2]\","
                    "\"region\":\"unused\"");
    expect_contains(t, text,
                    "\"name\":\"b0.w\",\"type\":\"f32[8]\",\"region\":\"weights\","
                    "\"offset\":0,\"bytes\":32");
    expect_contains(t, text, "\"region\":\"states\",\"offset\":0,\"bytes\":16");
    expect_contains(t, text, "{\"kind\":\"output\",\"name\":\"z\"");
    expect_contains(t, text,
                    "\"groups\":[{\"name\":\"b0\",\"params\":2,\"bytes\":64},"
                    "{\"name\":\"\",\"params\":1,\"bytes\":32}]");
    text[0] = 0;
    expect_ok(t, rlx_session_bindings(w.session, false, collect, text, &w.err));
    expect_contains(t, text, "(no group)");
    expect_status(t, rlx_session_bindings(NULL, false, collect, text, &w.err), RLX_ERROR_ARGUMENT);
    close_world(&w);
}

TEST(model_diff, shows_the_node_that_changed)
{
    struct world a, b;
    char text[4096] = "";

    if (open_world(t, &a, LOGS, NULL, NULL) &&
        expect_ok(t, rlx_model_parse(a.ctx,
                                     rlx_cstr("rlx 1\ngraph (input %x: f32[6]) {\n"
                                              "    %a = mul %x, %x\n    %b = sqrt %x\n"
                                              "    %c = add %b, %a\n    %d = neg %c\n"
                                              "    return %d\n}\n"),
                                     &b.model, &a.err))) {
        expect_ok(t, rlx_model_diff(a.model, b.model, "A", "B", collect, text, &a.err));
        expect_contains(t, text, "--- A\n+++ B\n@@");
        expect_contains(t, text, "-    %b = log %x: f32[6]\n+    %b = sqrt %x: f32[6]\n");
        text[0] = 0;
        expect_ok(t, rlx_model_diff(a.model, a.model, "A", "A", collect, text, &a.err));
        expect_str(t, text, "");
        rlx_model_destroy(b.model);
    }
    close_world(&a);
}

/* Another file per GPU; its own figures, not the host's. */
TEST_GPUS(ceilings, of_a_gpu_are_its_own)
{
    const char *folder = test_temp(t, "ceilings");
    const rlx_flag no_pipelines = {"GPU_CACHE", "0"}; /* nothing else is to be in the folder */
    struct world w;
    rlx_ceilings c, again;
    char path[512], *old = getenv("XDG_CACHE_HOME");

    old = old ? strdup(old) : NULL;
    setenv("XDG_CACHE_HOME", folder, 1);
    if (open_world(t, &w, LOGS,
                   &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &no_pipelines,
                                       .flag_count = 1},
                   NULL)) {
        expect_ok(t, rlx_ceilings_measure(w.dev, true, &c, &w.err));
        expect(t, !c.cached && c.threads == 0 && c.flops > 1e7 && c.copy_bytes > 1e7);
        expect(t, c.device[0] && !strstr(c.device, "CPU"));
        expect_ok(t, rlx_ceilings_measure(w.dev, false, &again, &w.err));
        expect(t, again.cached);
        expect_near(t, again.flops, c.flops, 0);
        snprintf(path, sizeof path, "%s/rlx/ceilings-%s", folder, test_device(t));
        expect_eq(t, remove(path), 0);
        snprintf(path, sizeof path, "%s/rlx", folder);
        expect_eq(t, remove(path), 0);
    }
    close_world(&w);
    if (old)
        setenv("XDG_CACHE_HOME", old, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(old);
}

TEST(ceilings, are_measured_once_and_believed_only_if_they_make_sense)
{
    const char *folder = test_temp(t, "cache");
    rlx_context *ctx;
    rlx_device *dev;
    rlx_ceilings c, again;
    rlx_error err;
    char path[512], *old = getenv("XDG_CACHE_HOME");

    old = old ? strdup(old) : NULL;
    setenv("XDG_CACHE_HOME", folder, 1);
    if (expect_ok(t,
                  rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 1},
                                     &ctx, &err)) &&
        expect_ok(t, rlx_device_open(ctx, "cpu", &dev, &err))) {
        expect_ok(t, rlx_ceilings_measure(dev, false, &c, &err));
        expect(t,
               !c.cached && c.threads == 1 && c.flops > 1e8 && c.copy_bytes > 1e7 && c.device[0]);
        expect_ok(t, rlx_ceilings_measure(dev, false, &again, &err));
        expect(t, again.cached);
        expect_near(t, again.flops, c.flops, 0);
        snprintf(path, sizeof path, "%s/rlx/ceilings-1", folder);
        expect(t, test_write(t, path, "rlx ceilings 1\nx\n1\n1e300\n-5\n", 28));
        expect_ok(t, rlx_ceilings_measure(dev, false, &again, &err));
        expect(t, !again.cached && again.flops > 1e8);
        remove(path);
        snprintf(path, sizeof path, "%s/rlx", folder);
        remove(path);
        rlx_device_close(dev);
        rlx_context_destroy(ctx);
    }
    if (old)
        setenv("XDG_CACHE_HOME", old, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(old);
}
