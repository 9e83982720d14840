/* joint_run.h: a graph whose nodes may share steps (lower/joint.h), beside the same graph where
 * each has its own. */
#ifndef TESTS_API_JOINT_RUN_H
#define TESTS_API_JOINT_RUN_H

#include "inspect/fusion_run.h"

static inline bool open_device(struct test *t, const char *device, rlx_context **ctx,
                               rlx_device **dev)
{
    rlx_error err = {0};

    *ctx = NULL;
    *dev = NULL;
    if (!expect_ok(
            t, rlx_context_create(RLX_VERSION,
                                  &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 2},
                                  ctx, NULL)))
        return false;
    rlx_status s = rlx_device_open(*ctx, device, dev, &err);
    if (!test_no_device(t, device, s, err.message))
        return true;
    rlx_context_destroy(*ctx);
    return false;
}

static inline void close_device(rlx_context *ctx, rlx_device *dev)
{
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

/* ---- schedules ---- */

struct schedule {
    char text[8192];
    size_t len;
    uint32_t steps;
};

static inline void collect(void *user, const char *text, size_t len)
{
    struct schedule *s = user;
    size_t room = sizeof s->text - 1 - s->len, n = len < room ? len : room;

    memcpy(s->text + s->len, text, n);
    s->len += n;
    s->text[s->len] = 0;
}

static inline bool schedule_of(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                               const rlx_session_desc *desc, struct schedule *out)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_memory_info info = {RLX_SIZED(rlx_memory_info)};
    rlx_error err = {0};

    *out = (struct schedule){0};
    bool ok = rlx_model_parse(ctx, rlx_cstr(text), &m, &err) == RLX_OK &&
              rlx_session_create(m, dev, desc, &s, &err) == RLX_OK &&
              rlx_session_schedule(s, false, collect, out, &err) == RLX_OK &&
              rlx_session_memory(s, &info, &err) == RLX_OK;
    out->steps = info.steps;
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    if (!ok)
        fail(t, "%s in\n%s", err.message, text);
    return ok;
}

static const rlx_session_desc apart = {
    RLX_SIZED(rlx_session_desc),
    .debug = DEBUG(.no_qkv_split = true, .no_packed_qkv = true, .no_norm_tee = true)};

/* The step is there, and the results are those of separate steps and of the CPU. */
static inline void compare_with(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                                const rlx_session_desc *without, const char *step, double tolerance)
{
    struct schedule joint, separate;
    struct outcome want = {0}, got = {0}, cpu = {0};
    rlx_device *host = NULL;

    test_note(t, "%s", step);
    if (!schedule_of(t, ctx, dev, text, &(rlx_session_desc){RLX_SIZED(rlx_session_desc)}, &joint) ||
        !schedule_of(t, ctx, dev, text, without, &separate))
        return;
    if (!strstr(joint.text, step) || strstr(separate.text, step) || joint.steps >= separate.steps)
        fail(t, "%u and %u steps:\n%s%s in\n%s", joint.steps, separate.steps, joint.text,
             separate.text, text);
    bool runs = run_source(
        t, ctx, dev, text,
        &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = DEBUG(.check_plan = true)}, 2,
        &got);
    if (runs && run_source(t, ctx, dev, text, without, 2, &want))
        same_outcome(t, &got, &want, tolerance, "apart", text);
    if (runs && expect_ok(t, rlx_device_open(ctx, "cpu", &host, NULL)) &&
        run_source(t, ctx, host, text, without, 2, &cpu))
        same_outcome(t, &got, &cpu, strstr(text, "16[") ? 2e-2 : fmax(2e-5, tolerance), "the CPU",
                     text);
    rlx_device_close(host);
    outcome_free(&got);
    outcome_free(&want);
    outcome_free(&cpu);
}

static inline void compare(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                           const char *step, double tolerance)
{
    compare_with(t, ctx, dev, text, &apart, step, tolerance);
}

/* Steps are as many as apart: nothing may be joined. */
static inline void refuse(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text)
{
    struct schedule joint, separate;

    if (schedule_of(t, ctx, dev, text, &(rlx_session_desc){RLX_SIZED(rlx_session_desc)}, &joint) &&
        schedule_of(t, ctx, dev, text, &apart, &separate) && joint.steps != separate.steps)
        fail(t, "%u steps, not %u:\n%s in\n%s", joint.steps, separate.steps, joint.text, text);
}

#endif
