/* conv.c: conv, conv_transpose and conv_backward_input (ops-core 12.1, 12.2).
 *
 * The gradient for the input is the transposed convolution of dy with the same weights: w has the
 * layout [channels of dy, channels of x per group, taps] that conv_transpose takes. */
#include "backend/cpu/kernels/conv_core.h"

#define LISTS(a)                                    \
    {                                               \
        &(a)->stride, &(a)->padding, &(a)->dilation \
    }

static void describe(const struct cpu_call *c, struct conv *v)
{
    *v = (struct conv){.src = &c->in[0], .w = &c->in[1], .out = c->out, .call = c};
    if (c->op == RLX_OP_conv) {
        const struct attr_conv *a = &c->attr->conv;
        const struct conv_lists l = LISTS(a);
        conv_prepare(v, &l, a->groups);
    } else if (c->op == RLX_OP_conv_transpose) {
        const struct attr_conv_transpose *a = &c->attr->conv_transpose;
        const struct conv_lists l = LISTS(a);
        v->transposed = true;
        conv_prepare(v, &l, a->groups);
    } else {
        const struct attr_conv_backward_input *a = &c->attr->conv_backward_input;
        const struct conv_lists l = LISTS(a);
        v->transposed = true;
        conv_prepare(v, &l, a->groups);
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct conv v;

    if (c->out->count == 0)
        return 0;
    describe(c, &v);
    return conv_scratch(&v, c->pool);
}

static void run(const struct cpu_call *c)
{
    struct conv v;

    if (c->out->count == 0)
        return;
    describe(c, &v);
    conv_run(&v, c->pool, c->scratch);
}

extern const struct cpu_kernel CPU_NAME(cpu_conv);
extern const struct cpu_kernel CPU_NAME(cpu_conv_transpose);
extern const struct cpu_kernel CPU_NAME(cpu_conv_backward_input);
const struct cpu_kernel CPU_NAME(cpu_conv) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_conv_transpose) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_conv_backward_input) = {.run = run, .scratch = scratch};
