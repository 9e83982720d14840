/* moe_world.h: graphs of gates and experts, run once on numbers. */
#ifndef TESTS_MOE_WORLD_H
#define TESTS_MOE_WORLD_H

#include "graph_world.h"
#include "rlx/moe.h"

/* A world whose device is the test's. False: there is no such device. */
static inline bool open_world_on(struct test *t, struct world *w)
{
    rlx_error err = {0};

    *w = (struct world){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w->ctx, &err)))
        return false;
    rlx_status s = rlx_device_open(w->ctx, test_device(t), &w->dev, &err);
    return !test_no_device(t, test_device(t), s, err.message) &&
           expect_ok(t, rlx_graph_create(w->ctx, &w->g, &err));
}

/* Whether it ran; the failure is in err. Takes the graph, whose outputs are these. */
static inline rlx_status run_with(struct world *w, const rlx_binding *param, size_t params,
                                  const rlx_binding *in, size_t count, rlx_binding *out,
                                  size_t outs, rlx_error *err)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_status status = rlx_model_create(w->g, &m, err);

    if (status == RLX_OK)
        w->g = NULL;
    for (size_t i = 0; i < params && status == RLX_OK; i++)
        status = rlx_model_set_param(m, param[i].name, &param[i].tensor, err);
    if (status == RLX_OK)
        status = rlx_session_create(m, w->dev, NULL, &s, err);
    if (status == RLX_OK)
        status = rlx_session_run(
            s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, out, outs, NULL, 0}, err);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return status;
}

static inline rlx_status run(struct world *w, const rlx_binding *in, size_t count, rlx_binding *out,
                             size_t outs, rlx_error *err)
{
    return run_with(w, NULL, 0, in, count, out, outs, err);
}

static inline rlx_binding bind(const char *name, rlx_list shape, float *data)
{
    rlx_binding b = {.name = name, .tensor = {.dtype = RLX_DTYPE_f32, .rank = shape.count}};

    b.tensor.bytes = sizeof *data;
    for (int32_t i = 0; i < shape.count; i++) {
        b.tensor.dim[i] = shape.at[i];
        b.tensor.bytes *= (size_t)shape.at[i];
    }
    b.tensor.data = data;
    return b;
}

static inline void fill(float *x, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
}

#endif
