/* example.h: what the larger examples share: opening and closing, and stopping with a message. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#include "rlx/graph.h"
#include "rlx/session.h"

/* Ends the example with the error's sentence when a call failed. */
static inline void check(rlx_status s, const rlx_error *err)
{
    if (s == RLX_OK)
        return;
    fprintf(stderr, "%s: %s\n", rlx_status_name(s), err->message);
    exit(1);
}

struct world {
    rlx_context *ctx;
    rlx_device *dev;
};

static inline struct world open_world(const rlx_context_desc *desc)
{
    struct world w;
    rlx_error err;

    check(rlx_context_create(RLX_VERSION, desc, &w.ctx, &err), &err);
    check(rlx_device_open(w.ctx, "auto", &w.dev, &err), &err);
    return w;
}

static inline void close_world(struct world w)
{
    rlx_device_close(w.dev);
    rlx_context_destroy(w.ctx);
}

/* A small, repeatable value for element i of tensor t. */
static inline float pattern(int t, size_t i)
{
    return (float)((i * 7 + (size_t)t * 13) % 23) / 23.0f - 0.5f;
}

/* Sets every param of a model to the pattern. */
static inline void set_params(rlx_context *ctx, rlx_model *m)
{
    (void)ctx;
    for (size_t p = 0; p < rlx_model_io_count(m, RLX_IO_PARAM); p++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_error err;
        char name[64];
        size_t count = 1;
        check(rlx_model_io(m, RLX_IO_PARAM, p, &info, &err), &err);
        rlx_tensor t = {.dtype = RLX_DTYPE_f32, .rank = info.rank};
        for (int32_t i = 0; i < info.rank; i++)
            count *= (size_t)(t.dim[i] = info.dim[i]);
        t.bytes = count * sizeof(float);
        float *data = malloc(t.bytes);
        for (size_t i = 0; i < count; i++)
            data[i] = pattern((int)p, i);
        t.data = data;
        snprintf(name, sizeof name, "%.*s", (int)info.name.len, info.name.ptr);
        check(rlx_model_set_param(m, name, &t, &err), &err);
        free(data);
    }
}

#endif
