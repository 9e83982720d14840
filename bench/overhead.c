/* overhead.c: what rlx itself costs, apart from kernels: compiling a graph of 2,000 nodes, and
 * running a step. The limits are 100 ms and 1 us. */
#include <stdio.h>

#include "rlx/debug.h"
#include "support/job.h"

/* Layers of the kind networks are made of, about eight nodes each. */
static rlx_model *network(rlx_context *ctx, int nodes)
{
    rlx_graph *g;
    rlx_model *m;
    rlx_error err;

    check(rlx_graph_create(ctx, &g, &err), &err);
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(8, 32));
    for (int i = 0; i < nodes / 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "w%d", i);
        rlx_value w = rlx_param(g, name, RLX_DTYPE_f32, RLX_LIST(32, 32));
        snprintf(name, sizeof name, "g%d", i);
        rlx_value gamma = rlx_param(g, name, RLX_DTYPE_f32, RLX_LIST(32));
        rlx_value n = rlx_rms_norm(g, x, gamma, RLX_NO_VALUE, -1, 1e-5f);
        rlx_value h = rlx_silu(g, rlx_matmul(g, n, w, false, false));
        x = rlx_add(g, x, rlx_mul(g, h, rlx_sigmoid(g, h)));
    }
    rlx_output(g, x);
    check(rlx_model_create(g, &m, &err), &err);
    return m;
}

/* A chain of one-element ops: nothing but overhead. */
static rlx_model *chain(rlx_context *ctx, int steps)
{
    rlx_graph *g;
    rlx_model *m;
    rlx_error err;

    check(rlx_graph_create(ctx, &g, &err), &err);
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(1));
    for (int i = 0; i < steps; i++)
        x = rlx_neg(g, x);
    rlx_output(g, x);
    check(rlx_model_create(g, &m, &err), &err);
    return m;
}

int main(int argc, char **argv)
{
    rlx_context *ctx;
    rlx_device *dev;
    rlx_session *s;
    rlx_error err;
    enum { STEPS = 1000, RUNS = 50, COMPILES = 5 };
    double build = 1e9, compile = 1e9, run = 1e9;
    float x = 1, y;

    (void)options_read(argc, argv); /* all it measures is on one thread */
    check(rlx_context_create(RLX_VERSION,
                             &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 1}, &ctx,
                             &err),
          &err);
    check(rlx_device_open(ctx, "cpu", &dev, &err), &err);
    for (int i = 0; i < COMPILES; i++) {
        double start = now();
        rlx_model *m = network(ctx, 2000);
        double built = now();
        check(rlx_session_create(m, dev, NULL, &s, &err), &err);
        double end = now();
        build = built - start < build ? built - start : build;
        compile = end - built < compile ? end - built : compile;
        rlx_session_destroy(s);
        rlx_model_destroy(m);
    }
    rlx_model *m = chain(ctx, STEPS);
    const rlx_debug_desc no_passes = {RLX_SIZED(rlx_debug_desc), .no_optimize = true};
    const rlx_session_desc as_written = {RLX_SIZED(rlx_session_desc), .debug = &no_passes};
    check(rlx_session_create(m, dev, &as_written, &s, &err), &err);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {1}, &x, sizeof x}};
    rlx_binding out = {"out0", {RLX_DTYPE_f32, 1, {0}, &y, sizeof y}};
    rlx_run_desc desc = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    for (int i = 0; i < RUNS; i++) {
        double start = now();
        check(rlx_session_run(s, &desc, &err), &err);
        double took = now() - start;
        run = took < run ? took : run;
    }
    compare_limit("building a graph of 2,000 nodes", 1, "ms", build * 1e3, 100, "limit");
    compare_limit("compiling a graph of 2,000 nodes", 1, "ms", compile * 1e3, 100, "limit");
    compare_limit("overhead of a step", 1, "us", run / STEPS * 1e6, 1, "limit");
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return 0;
}
