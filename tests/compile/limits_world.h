/* limits_world.h: sessions with limits, for the tests of buffers and memory. */
#ifndef TESTS_API_LIMITS_WORLD_H
#define TESTS_API_LIMITS_WORLD_H

#include <string.h>

#include "rlx/graph.h"
#include "test.h"

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static inline void close_world(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
    *w = (struct world){0};
}

static inline bool open_device(struct test *t, struct world *w, const char *device)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .threads = 2};

    *w = (struct world){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, &desc, &w->ctx, &w->err)))
        return false;
    rlx_status s = rlx_device_open(w->ctx, device, &w->dev, &w->err);
    if (!test_no_device(t, device, s, w->err.message))
        return true;
    close_world(w);
    return false;
}

static inline bool open_text(struct test *t, struct world *w, const char *device, const char *text)
{
    if (open_device(t, w, device) &&
        expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &w->model, &w->err)))
        return true;
    if (w->dev)
        fail(t, "%s", w->err.message);
    return false;
}

static inline bool open_session(struct test *t, struct world *w, const rlx_session_desc *desc)
{
    rlx_session_destroy(w->session);
    w->session = NULL;
    if (expect_ok(t, rlx_session_create(w->model, w->dev, desc, &w->session, &w->err)))
        return true;
    fail(t, "%s", w->err.message);
    return false;
}

static inline rlx_memory_info memory(struct test *t, struct world *w)
{
    rlx_memory_info m = {RLX_SIZED(rlx_memory_info)};

    expect_ok(t, rlx_session_memory(w->session, &m, &w->err));
    return m;
}

/* Params and states of 400 bytes each. */
#define SPREAD                                                                             \
    "rlx 1\ngraph (input %x: f32[100], param %a: f32[100], param %b: f32[100],\n"          \
    "    param %c: f32[100], state %s: f32[100], state %u: f32[100], input %n: i32[]) {\n" \
    "    %k = const f32[2] {1 2}\n"                                                        \
    "    %p = mul %x, %a\n    %q = add %p, %b\n    %r = mul %q, %c\n    %v = add %r, %s\n" \
    "    %y = add %v, %u\n    %z = cos %q\n    return %y, %z, %k\n}\n"

static inline rlx_tensor row100(float *data)
{
    return (rlx_tensor){RLX_DTYPE_f32, 1, {100}, data, 100 * sizeof *data};
}

static inline void fill(float *to, float seed)
{
    for (int i = 0; i < 100; i++)
        to[i] = seed * (float)(i % 13) - 1.0f;
}

#endif
