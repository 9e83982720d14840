/* parts_world.h: a graph whose sizes depend on data, and the model in parts it becomes.
 *
 *     sum = x's sum                                      part 1
 *     padded = x's elements, the largest first
 *     count = how many of them are above 0
 *     kept = the first `count` of padded                 a cut
 *     y = kept * w + bias + sum                          part 2
 *     total = y's sum
 *     big = the first of kept that are above 1           a cut after it, which is an output */
#ifndef TESTS_PARTS_WORLD_H
#define TESTS_PARTS_WORLD_H

#include <string.h>

#include "graph/builder.h"
#include "rlx/ops.h"
#include "session/session.h"
#include "test.h"

struct parts_world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_graph *g;
    rlx_model *model;
    rlx_value x, sum, count, padded, kept, bias, y, total;
    struct ir_cut cut[4];
    size_t cuts;
    rlx_error err;
};

/* A leaf for the first `count` of a list. */
static inline rlx_value world_cut(struct parts_world *w, const char *name, rlx_value padded,
                                  rlx_value count)
{
    struct ir_cut *c = &w->cut[w->cuts];
    rlx_dim n = rlx_dim_symbol(w->g, name);
    rlx_value leaf = rlx_input(w->g, name, RLX_DTYPE_f32, RLX_LIST(n));

    *c = (struct ir_cut){.count = count, .padded = padded, .leaf = leaf};
    if (leaf != RLX_NO_VALUE && dim_find_symbol(w->g->mod->dims, rlx_cstr(name), &c->symbol))
        w->cuts++;
    return leaf;
}

static inline rlx_value world_count(struct parts_world *w, rlx_value x, double above)
{
    rlx_value mask = rlx_gt(w->g, x, rlx_scalar(w->g, x, above));

    return rlx_reduce_sum(w->g, rlx_cast(w->g, mask, RLX_DTYPE_i64), RLX_LIST(0), false);
}

/* n: 8, or 0 for a symbol. */
static inline rlx_status world_graph(struct parts_world *w, const rlx_allocator *mem, int64_t n)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};

    memset(w, 0, sizeof *w);
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &w->ctx, &w->err);
    if (s == RLX_OK)
        s = rlx_graph_create(w->ctx, &w->g, &w->err);
    if (s != RLX_OK)
        return s;
    rlx_graph *g = w->g;
    w->x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(n ? n : rlx_dim_symbol(g, "n")));
    w->sum = rlx_reduce_sum(g, w->x, RLX_LIST(0), false);
    w->padded = rlx_sort(g, w->x, 0, true);
    w->count = world_count(w, w->x, 0);
    w->kept = world_cut(w, "kept", w->padded, w->count);
    if (n)
        rlx_dim_bound(g, "kept", n, NULL);
    w->bias = rlx_state(g, "bias", RLX_DTYPE_f32, RLX_LIST(1));
    w->y = rlx_mul(g, w->kept, rlx_param(g, "w", RLX_DTYPE_f32, RLX_LIST(1)));
    w->y = rlx_add(g, rlx_add(g, w->y, w->bias), w->sum);
    w->total = rlx_reduce_sum(g, w->y, RLX_LIST(0), false);
    rlx_value big = world_cut(w, "big", w->kept, world_count(w, w->kept, 1));
    rlx_label(g, w->y, "y");
    rlx_label(g, w->total, "total");
    rlx_output(g, w->y);
    rlx_output(g, w->total);
    rlx_output(g, big);
    if (dim_no_memory(g->mod->dims))
        return RLX_ERROR_MEMORY; /* whatever was made of that failure */
    return rlx_graph_check(g, &w->err);
}

static inline rlx_status world_model(struct parts_world *w, const rlx_allocator *mem, int64_t n,
                                     const char *device)
{
    struct diag d;
    const float two = 2;

    diag_init(&d, "build");
    rlx_status s = world_graph(w, mem, n);
    if (s == RLX_OK && (s = rlx_model_create(w->g, &w->model, &w->err)) == RLX_OK)
        w->g = NULL;
    if (s == RLX_OK && (s = model_cut(w->model, w->cut, w->cuts, &d)) != RLX_OK)
        diag_report(&d, &w->err);
    if (s == RLX_OK)
        s = rlx_device_open(w->ctx, device, &w->dev, &w->err);
    if (s == RLX_OK)
        s = rlx_model_set_param(
            w->model, "w",
            &(rlx_tensor){
                .dtype = RLX_DTYPE_f32, .rank = 1, .dim = {1}, .data = (void *)&two, .bytes = 4},
            &w->err);
    return s;
}

static inline void world_close(struct parts_world *w)
{
    rlx_graph_destroy(w->g);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

#endif
