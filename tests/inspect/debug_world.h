/* debug_world.h: a context with everything in it, and a graph whose numbers go wrong, for tests of
 * what looks into runs. */
#ifndef TESTS_API_DEBUG_WORLD_H
#define TESTS_API_DEBUG_WORLD_H

#include <string.h>

#include "rlx/tools.h"
#include "test.h"

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static inline bool open_world(struct test *t, struct world *w, const char *text,
                              const rlx_context_desc *ctx, const rlx_session_desc *session)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, ctx, &w->ctx, &w->err)) &&
           !test_no_device(t, test_device(t),
                           rlx_device_open(w->ctx, test_device(t), &w->dev, &w->err),
                           w->err.message) &&
           expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &w->model, &w->err)) &&
           expect_ok(t, rlx_session_create(w->model, w->dev, session, &w->session, &w->err));
}

static inline void close_world(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

static inline rlx_tensor vector(float *data, int64_t n)
{
    return (rlx_tensor){RLX_DTYPE_f32, 1, {n}, data, (size_t)n * sizeof *data};
}

/* a is finite, b is not where x is negative, c takes b's place, d does c's. */
#define LOGS                       \
    "rlx 1\n"                      \
    "graph (input %x: f32[6]) {\n" \
    "    %a = mul %x, %x\n"        \
    "    %b = log %x\n"            \
    "    %c = add %b, %a\n"        \
    "    %d = neg %c\n    return %d\n}\n"

static inline rlx_status run_logs(struct world *w, float *x)
{
    float d[6];
    rlx_binding in = {"x", vector(x, 6)}, out = {"d", vector(d, 6)};

    return rlx_session_run(
        w->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &w->err);
}

static inline void collect(void *user, const char *text, size_t len)
{
    char *to = user;

    strncat(to, text, len);
}

static inline size_t count_of(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

#endif
