/* debug_fused_test.c: looking into runs of what was compiled as usual: several nodes are one step,
 * sizes change from run to run, and reports say what became of the graph. */
#include <math.h>
#include <stdio.h>

#include "debug_world.h"
#include "rlx/graph.h"

/* LOGS is one region, which carries the label of its last node. */
TEST_DEVICES(numerics, a_bad_value_in_a_region_is_found_by_its_label)
{
    struct world w;
    float good[6] = {1, 2, 3, 4, 5, 6}, bad[6] = {1, 2, 3, -4, 0, 6};
    rlx_numerics n;

    if (!open_world(t, &w, LOGS, NULL,
                    &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                        .check_numerics = RLX_NUMERICS_REPORT}))
        return close_world(&w);
    expect_ok(t, run_logs(&w, good));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, -1);
    expect_eq(t, n.steps, 1);
    expect_ok(t, run_logs(&w, bad));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, 0);
    expect_str(t, n.step_name, "elementwise_region");
    expect_eq(t, n.bad_values, 1);
    expect_str(t, n.bad[0].name, "d");
    expect_str(t, n.bad[0].op, "elementwise_region");
    expect_eq(t, n.bad[0].nan_count, 1);
    expect_eq(t, n.bad[0].inf_count, 1);
    expect_eq(t, n.bad[0].first_index, 3);
    expect_eq(t, n.operand_count, 1);
    expect_str(t, n.operand[0].name, "x");
    expect_near(t, n.operand[0].min, -4, 0);
    expect(t, !n.has_previous);
    close_world(&w);
}

TEST_DEVICES(numerics, a_region_fails_by_its_label)
{
    struct world w;
    float bad[6] = {1, 2, 3, -4, 0, 6};

    if (!open_world(
            t, &w, LOGS, NULL,
            &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .check_numerics = RLX_NUMERICS_FAIL}))
        return close_world(&w);
    expect_status(t, run_logs(&w, bad), RLX_ERROR_NUMERIC);
    expect_contains(t, w.err.message, "step 0 (elementwise_region)");
    expect_str(t, w.err.label, "d");
    close_world(&w);
}

/* The operand of the step that goes wrong is a region itself, whose bytes were taken over. */
TEST_DEVICES(numerics, a_region_is_known_as_an_operand)
{
    const char *text = "rlx 1\ngraph (input %x: f32[2,3]) {\n    %s = sub %x, %x\n"
                       "    %r = recip %s\n    %y = softmax %r axis=1\n    %z = neg %y\n"
                       "    return %z\n}\n";
    struct world w;
    float x[6] = {1, 2, 3, 4, 5, 6}, z[6];
    rlx_numerics n;

    if (!open_world(t, &w, text, NULL,
                    &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                        .check_numerics = RLX_NUMERICS_REPORT}))
        return close_world(&w);
    rlx_tensor in_x = {RLX_DTYPE_f32, 2, {2, 3}, x, sizeof x}, out_z = in_x;
    out_z.data = z;
    rlx_binding in = {"x", in_x}, out = {"z", out_z};
    expect_ok(t, rlx_session_run(w.session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                                 &w.err));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, 0);
    expect_str(t, n.bad[0].name, "r");
    expect_eq(t, n.bad[0].inf_count, 6);
    expect_str(t, n.bad[1].name, "y"); /* Inf less Inf */
    expect_eq(t, n.bad[1].nan_count, 6);
    expect_str(t, n.operand[0].name, "x");
    expect(t, n.operand[0].known);
    close_world(&w);
}

static uint64_t submit_logs(struct test *t, struct world *w, float *x)
{
    rlx_binding in = {"x", vector(x, 6)};
    uint64_t ticket = 0;

    expect_ok(t, rlx_session_submit(
                     w->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0},
                     &ticket, &w->err));
    return ticket;
}

/* Whatever was submitted since: a run that went wrong fails when it is waited for, and no other. */
TEST_DEVICES(numerics, each_run_in_flight_has_its_own)
{
    struct world w;
    float good[6] = {1, 2, 3, 4, 5, 6}, bad[6] = {1, 2, 3, -4, 0, 6};
    rlx_numerics n;

    if (!open_world(
            t, &w, LOGS, NULL,
            &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .check_numerics = RLX_NUMERICS_FAIL}))
        return close_world(&w);
    uint64_t first = submit_logs(t, &w, bad), second = submit_logs(t, &w, good);
    expect_ok(t, rlx_session_wait(w.session, second, NULL, &w.err));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, -1);
    second = submit_logs(t, &w, good);
    expect_status(t, rlx_session_wait(w.session, first, NULL, &w.err), RLX_ERROR_NUMERIC);
    expect_str(t, w.err.label, "d");
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, 0);
    expect_eq(t, n.bad[0].first_index, 3);
    expect_ok(t, rlx_session_wait(w.session, second, NULL, &w.err));
    close_world(&w);
}

/* ---- sizes below a bound ---- */

#define BOUNDED                    \
    "rlx 1\ndim n <= 8\n"          \
    "graph (input %x: f32[n]) {\n" \
    "    %a = log %x\n    %b = neg %a\n    return %b\n}\n"

static rlx_status run_bounded(struct world *w, float *x, int64_t n)
{
    float b[8];
    rlx_binding in = {"x", vector(x, n)}, out = {"b", vector(b, n)};

    return rlx_session_run(
        w->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &w->err);
}

static void expect_only_present_sizes_count(struct test *t, rlx_session_desc desc, uint64_t steps)
{
    struct world w;
    float x[8] = {1, 2, 3, 4, 5, 6, -7, 0};
    rlx_numerics n;

    desc.check_numerics = RLX_NUMERICS_REPORT;
    if (!open_world(t, &w, BOUNDED, NULL, &desc))
        return close_world(&w);
    expect_ok(t, run_bounded(&w, x, 8));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, 0);
    expect_eq(t, n.bad[0].first_index, 6);
    expect_eq(t, n.bad[0].count, 8);
    expect_ok(t, run_bounded(&w, x, 3)); /* what is left of the run before lies after it */
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, -1);
    expect_eq(t, n.steps, steps);
    expect_ok(t, run_bounded(&w, x + 5, 3));
    expect_ok(t, rlx_session_numerics(w.session, &n, &w.err));
    expect_eq(t, n.step, 0);
    expect_eq(t, n.bad[0].count, 3);
    expect_eq(t, n.bad[0].dim[0], 3);
    expect_eq(t, n.bad[0].first_index, 1);
    expect_eq(t, n.operand[0].count, 3);
    close_world(&w);
}

TEST_DEVICES(numerics, counts_what_a_run_below_the_bound_wrote)
{
    expect_only_present_sizes_count(
        t, (rlx_session_desc){RLX_SIZED(rlx_session_desc), .strict_extent = true}, 1);
    expect_only_present_sizes_count(t,
                                    (rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                       .strict_extent = true,
                                                       .debug = DEBUG(.no_fusion = true)},
                                    2);
}

/* ---- watchers ---- */

struct seen {
    int events;
    char name[64], op[48];
    double first;
};

static void see(void *user, const rlx_watch_event *e)
{
    struct seen *s = user;

    s->events++;
    snprintf(s->name, sizeof s->name, "%s", e->value.name);
    snprintf(s->op, sizeof s->op, "%s", e->step_name);
    rlx_session_peek(e->session, e->value.node, 0, 1, &s->first, NULL);
}

TEST_DEVICES(watch, sees_a_region_as_one_value)
{
    struct world w;
    float x[6] = {2, 1, 1, 1, 1, 1};
    struct seen s = {0};

    if (!open_world(t, &w, LOGS, NULL, NULL))
        return close_world(&w);
    expect_ok(t, rlx_session_set_watch(w.session, see, &s, &w.err));
    expect_ok(t, run_logs(&w, x));
    expect_eq(t, s.events, 1);
    expect_str(t, s.name, "d");
    expect_str(t, s.op, "elementwise_region");
    expect_near(t, s.first, -(4 + log(2)), 1e-5);
    close_world(&w);
}

TEST_DEVICES(trace, a_region_is_one_span)
{
    const char *path = test_temp(t, "trace.json");
    struct world w;
    float x[6] = {1, 1, 1, 1, 1, 1};

    if (!open_world(t, &w, LOGS, &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .trace = path},
                    NULL))
        return close_world(&w);
    expect_ok(t, run_logs(&w, x));
    const char *text = test_read(t, path, NULL);
    if (text) {
        expect_eq(t, count_of(text, "\"step\":"), 1);
        expect_eq(t, count_of(text, "\"name\":\"elementwise_region\""), 1);
        expect_eq(t, count_of(text, "\"node\":\"d\",\"bytes\":48"), 1);
        expect_eq(t, count_of(text, "\"name\":\"mark-regions\""), 1);
    }
    close_world(&w);
}

/* ---- flags ---- */

TEST(context_flags, reach_sessions_that_fuse)
{
    const rlx_flag flags[] = {{"RLX_ARENA_NO_REUSE", "1"}, {"RLX_ARENA_ALIGN", "256"}};
    rlx_memory_info plain = {RLX_SIZED(rlx_memory_info)}, roomy = {RLX_SIZED(rlx_memory_info)};
    struct world w;

    if (!open_world(t, &w, LOGS, NULL, NULL))
        return close_world(&w);
    expect_ok(t, rlx_session_memory(w.session, &plain, &w.err));
    expect_eq(t, plain.steps, 1);
    close_world(&w);
    if (!open_world(
            t, &w, LOGS,
            &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = flags, .flag_count = 2},
            NULL))
        return close_world(&w);
    expect_ok(t, rlx_session_memory(w.session, &roomy, &w.err));
    expect_eq(t, roomy.steps, 1);
    expect_eq(t, roomy.in_place, 0);
    expect_eq(t, roomy.activations % 256, 0);
    expect(t, roomy.activations > plain.activations);
    close_world(&w);
}

struct log {
    char text[16384];
};

static void keep_lines(void *user, int level, const char *line)
{
    struct log *log = user;
    size_t len = strlen(log->text);

    snprintf(log->text + len, sizeof log->text - len, "%d %s\n", level, line);
}

/* What a compile of LOGS says with one flag set. */
static const char *log_with(struct test *t, struct log *log, const char *flag, const char *value,
                            const rlx_session_desc *session)
{
    struct world w;
    const rlx_flag set = {flag, value};

    log->text[0] = 0;
    open_world(t, &w, LOGS,
               &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .log = keep_lines, .log_user = log,
                                   .flags = &set, .flag_count = 1},
               session);
    close_world(&w);
    return log->text;
}

TEST(context_flags, reports_are_logged_when_asked_for)
{
    static struct log log;
    static const char fused[] = "2 elementwise_region                  0        1\n",
                      apart[] = "2 nodes                               4        4\n",
                      dispatched[] = "2 log                                   1  native\n",
                      schedule[] = "2 1 steps, arena ";
    const char *text = log_with(t, &log, "FUSION_REPORT", "1", NULL);

    expect_contains(t, text, fused);
    expect_contains(t, text, "2 0 missed\n");
    expect_eq(t, count_of(text, dispatched) + count_of(text, schedule), 0);
    text = log_with(
        t, &log, "FUSION_REPORT", "1",
        &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_fusion = true)});
    expect_contains(t, text, apart); /* of this compile, not of the usual one */
    text = log_with(t, &log, "DISPATCH_REPORT", "1", NULL);
    expect_contains(t, text, "everything runs");
    expect_contains(t, text, dispatched);
    expect_contains(t, text, schedule);
    expect_eq(t, count_of(text, fused), 0);
    text = log_with(t, &log, "VERBOSE", "1", NULL);
    expect_contains(t, text, dispatched);
    expect_eq(t, count_of(text, schedule), 0);
    text = log_with(t, &log, "DISPATCH_REPORT", "0", NULL);
    expect_eq(t, count_of(text, dispatched) + count_of(text, schedule), 0);
}

static void count_line(void *user, int level, const char *line)
{
    (void)level;
    *(size_t *)user += line[0] != 0;
}

/* Reports are extras: a compile that has no memory left for them says less, or fails with MEMORY.
 */
TEST(context_flags, reports_survive_every_allocation_failure)
{
    const rlx_flag flags[] = {{"FUSION_REPORT", "1"}, {"DISPATCH_REPORT", "1"}};
    bool done = false;

    for (uint64_t at = 1; !done && at < 20000; at++) {
        struct test_alloc a = {.fail_at = at};
        rlx_allocator mem = test_allocator(&a);
        size_t lines = 0;
        struct world w = {0};
        rlx_context_desc desc = {
            RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1,   .log = count_line,
            .log_user = &lines,          .flags = flags,    .flag_count = 2};
        rlx_status s = rlx_context_create(RLX_VERSION, &desc, &w.ctx, &w.err);
        if (s == RLX_OK)
            s = rlx_device_open(w.ctx, "cpu", &w.dev, &w.err);
        if (s == RLX_OK)
            s = rlx_model_parse(w.ctx, rlx_cstr(LOGS), &w.model, &w.err);
        if (s == RLX_OK)
            s = rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err);
        expect(t, s == RLX_OK || s == RLX_ERROR_MEMORY);
        done = !a.refused;
        expect(t, !done || lines > 10);
        close_world(&w);
        expect_no_leak(t, &a);
    }
    expect(t, done);
}

TEST(context_flags, ir_dump_tells_what_fusion_made)
{
    const char *path = test_temp(t, "dump.txt");
    struct world w;

    if (open_world(t, &w, LOGS,
                   &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                       .flags = &(rlx_flag){"IR_DUMP", path}, .flag_count = 1},
                   NULL)) {
        const char *text = test_read(t, path, NULL);
        require(t, text);
        expect_contains(t, text, "==== fusion\n\n");
        expect_contains(t, text, "elementwise_region                  0        1\n");
        expect_contains(t, text, "     1  elementwise_region\n");
        expect_contains(t, text, "1 steps");
    }
    close_world(&w);
}
