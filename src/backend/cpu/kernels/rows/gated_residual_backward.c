/* gated_residual_backward.c: gradients of x + gate y (ops-core.md 11.3), one after another:
 *
 *     dx = dz    dy = dz gate    dgate = sum of dz y over what shares a gate */
#include "backend/cpu/kernels/elementwise/row.h"
#include "backend/cpu/kernels/rows/grad_sum.h"

struct gated {
    const struct cpu_call *c;
    const struct cpu_tensor *y, *gate, *dz;
    struct cpu_view view; /* of the gate */
};

static void describe(const struct cpu_call *c, struct gated *g)
{
    *g = (struct gated){.c = c, .y = &c->in[1], .gate = &c->in[2], .dz = &c->in[3]};
    if (g->dz->count > 0)
        cpu_view_broadcast(&g->view, g->gate, g->dz);
}

/* dx and dy. */
static void products(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct gated *g = ctx;
    const struct cpu_tensor *out = g->c->out;
    rlx_dtype dtype = out->dtype;
    CPU_TILE_ANY(buffer);

    (void)worker;
    while (begin < end) {
        int64_t n = cpu_view_span(&g->view, 1, begin, end - begin);
        int step;
        const void *gate = cpu_view_read(&g->view, begin, n, buffer, &step);
        const void *dz = cpu_at(g->dz, begin);
        memcpy(cpu_at(out, begin), dz, (size_t)n * cpu_size(dtype));
        cpu_row_binary(RLX_OP_mul, dtype, dz, 1, gate, step, cpu_at(out, g->dz->count + begin), n);
        begin += n;
    }
}

static void gate_term(const void *ctx, int64_t pos, int64_t n, double *out)
{
    const struct gated *g = ctx;
    CPU_TILE_OF(double, y);

    cpu_load_f64(g->y->dtype, cpu_at(g->y, pos), y, n);
    cpu_load_f64(g->dz->dtype, cpu_at(g->dz, pos), out, n);
    for (int64_t i = 0; i < n; i++)
        out[i] *= y[i];
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct grad_sum sum;

    if (c->out->count == 0)
        return 0;
    grad_sum_like(&sum, &c->in[3], &c->in[2]);
    return grad_sum_scratch(&sum) * sizeof(double);
}

static void run(const struct cpu_call *c)
{
    struct gated g;
    struct grad_sum sum;

    if (c->out->count == 0)
        return;
    describe(c, &g);
    cpu_for(c->pool, g.dz->count, 32768, products, &g);
    grad_sum_like(&sum, g.dz, g.gate);
    grad_sum_run(&sum, c->pool, gate_term, &g, c->scratch, c->out->dtype,
                 cpu_at(c->out, 2 * g.dz->count));
}

extern const struct cpu_kernel CPU_NAME(cpu_gated_residual_backward);
const struct cpu_kernel CPU_NAME(cpu_gated_residual_backward) = {.run = run, .scratch = scratch};
