/* graph_world.h: a context, the CPU and a graph to build in, for tests of what is made of builders.
 */
#ifndef TESTS_API_GRAPH_WORLD_H
#define TESTS_API_GRAPH_WORLD_H

#include "rlx/graph.h"
#include "test.h"

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_graph *g; /* NULL once a model has it */
};

static inline bool open_world(struct test *t, struct world *w)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w->ctx, NULL)) &&
           expect_ok(t, rlx_device_open(w->ctx, "cpu", &w->dev, NULL)) &&
           expect_ok(t, rlx_graph_create(w->ctx, &w->g, NULL));
}

static inline void close_world(struct world *w)
{
    rlx_graph_destroy(w->g);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

#endif
