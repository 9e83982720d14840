/* device_test.c: the gradients of cases.def on GPUs, in f32. cases_test.c holds the same rules
 * against central differences; here every kernel that their graphs run is held against ir/eval. */
#include "central.h"

enum { GRAPH_MOST = 4096 };

/* The graph with f32 for f64, which few GPUs have; false: it is too long. */
static bool narrowed(const char *graph, char *to)
{
    size_t n = strlen(graph);

    if (n >= GRAPH_MOST)
        return false;
    memcpy(to, graph, n + 1);
    for (char *at = to; (at = strstr(at, "f64"));)
        memcpy(at, "f32", 3);
    return true;
}

static void hold_body(struct test *t, struct central *c, const struct on_cpu *gpu,
                      const char *source)
{
    struct ir_graph *g = ir_entry(c->s.run.mod);
    struct diag *d = &c->s.run.diag;
    struct on_cpu run = {.ctx = gpu->ctx, .dev = gpu->dev, .device = gpu->device, .tol = gpu->tol};
    ir_value wrt[16], dx[16];
    size_t count = central_wrt(g, wrt, 16);

    if (central_seed(c, d) || grad_walk(g, 0, c->out, c->dy, wrt, count, dx, d) ||
        !central_inputs(c))
        fail(t, "%s\n  in: %s", d->first.message, source);
    else if (central_run(t, c, 0, (ir_value)g->node.len - 1))
        on_device(t, &run, c->s.run.mod, c->value, dx, count, source);
}

static void hold(struct test *t, const struct on_cpu *gpu, const char *graph)
{
    struct central c = {0};
    char text[GRAPH_MOST];

    require(t, narrowed(graph, text));
    if (!central_open(t, &c, text))
        return;
    hold_body(t, &c, gpu, text);
    run_close(&c.s.run);
}

TEST_GPUS_SLOW(grad_devices, every_rule_gives_what_its_definition_does)
{
    struct on_cpu gpu = {.tol = 1e-4};
    bool opened = on_cpu_open(&gpu, test_device(t));

    if (!test_no_device(t, gpu.device, opened ? RLX_OK : gpu.err.status, gpu.err.message)) {
#define GRAD(op, tol, graph) hold(t, &gpu, graph);
#define FLAT(op, graph) hold(t, &gpu, graph);
#define LIKE(op, tol, graph, like) hold(t, &gpu, graph);
#define GIVEN(op, graph, x, dy, want) hold(t, &gpu, graph);
#include "cases.def"
    }
    on_cpu_close(&gpu);
}
