/* copy.c: stop_gradient, which is the identity (ops-core.md 5.4), and reshape and bitcast where
 * they are not views. */
#include "backend/cpu/kernels/elementwise/row.h"

static void copy_span(const struct cpu_call *c, const struct cpu_span *s)
{
    if (s->out != s->in[0])
        memcpy(s->out, s->in[0], (size_t)s->n * cpu_size(c->out->dtype));
}

static void run(const struct cpu_call *c)
{
    cpu_elementwise(c, cpu_row_grain(c->op), copy_span);
}

extern const struct cpu_kernel CPU_NAME(cpu_stop_gradient);
const struct cpu_kernel CPU_NAME(cpu_stop_gradient) = {.run = run, .in_place = 1};

/* Rare: a state's content kept while the state itself is written. */
static void copy_all(const struct cpu_call *c)
{
    if (c->out->count && c->out->data != c->in[0].data)
        memcpy(c->out->data, c->in[0].data, (size_t)c->out->count * cpu_size(c->out->dtype));
}

extern const struct cpu_kernel CPU_NAME(cpu_reshape);
const struct cpu_kernel CPU_NAME(cpu_reshape) = {.run = copy_all};

extern const struct cpu_kernel CPU_NAME(cpu_bitcast);
const struct cpu_kernel CPU_NAME(cpu_bitcast) = {.run = copy_all};
