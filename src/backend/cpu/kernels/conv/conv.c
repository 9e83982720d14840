/* conv.c: conv, conv_transpose, conv_backward_input and fused_conv_bias_act
 * (ops-core.md 12.1, 12.2, 15).
 *
 * The gradient for the input is the transposed convolution of dy with the same weights: w has the
 * layout [channels of dy, channels of x per group, taps] that conv_transpose takes. */
#include "backend/cpu/kernels/conv/conv_tiles.h"
#include "backend/cpu/kernels/conv/conv_turned.h"

#define LISTS(a)                                    \
    {                                               \
        &(a)->stride, &(a)->padding, &(a)->dilation \
    }

static void describe(const struct cpu_call *c, struct conv *v)
{
    *v = (struct conv){
        .src = &c->in[0], .w = &c->in[1], .out = c->out, .call = c, .act = RLX_OP_none};
    if (c->op == RLX_OP_conv) {
        const struct attr_conv *a = &c->attr->conv;
        const struct conv_lists l = LISTS(a);
        conv_prepare(v, &l, a->groups);
    } else if (c->op == RLX_OP_fused_conv_bias_act) {
        const struct attr_fused_conv_bias_act *a = &c->attr->fused_conv_bias_act;
        const struct conv_lists l = LISTS(a);
        conv_prepare(v, &l, a->groups);
        v->bias = &c->in[2];
        v->residual = a->has_residual ? &c->in[3] : NULL;
        v->act = a->activation;
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
    struct conv_turned t;
    struct conv v;

    if (c->out->count == 0)
        return 0;
    describe(c, &v);
    uint64_t plain = conv_scratch(&v, c->pool);
    uint64_t turned = conv_turned_make(&v, &t) ? conv_turned_scratch(&t, c->pool) : 0;
    return turned > plain ? turned : plain; /* smaller sizes may choose the other way */
}

static void run(const struct cpu_call *c)
{
    struct conv_turned t;
    struct conv v;

    if (c->out->count == 0)
        return;
    describe(c, &v);
    if (conv_turned_make(&v, &t))
        conv_turned_run(&v, &t, c->pool, c->scratch);
    else
        conv_run(&v, c->pool, c->scratch);
}

static struct cpu_pack pack_size(const struct cpu_call *c, int32_t i)
{
    struct conv v;

    if (i != 1 || c->in[1].count == 0)
        return (struct cpu_pack){0};
    describe(c, &v);
    return conv_tiles_pack_size(&v);
}

static void pack(const struct cpu_call *c, int32_t i, void *to)
{
    struct conv v;

    (void)i;
    describe(c, &v);
    conv_tiles_pack(&v, c->pool, to);
}

extern const struct cpu_kernel CPU_NAME(cpu_conv);
extern const struct cpu_kernel CPU_NAME(cpu_fused_conv_bias_act);
extern const struct cpu_kernel CPU_NAME(cpu_conv_transpose);
extern const struct cpu_kernel CPU_NAME(cpu_conv_backward_input);
const struct cpu_kernel CPU_NAME(cpu_conv) = {
    .run = run, .scratch = scratch, .pack_size = pack_size, .pack = pack};
const struct cpu_kernel CPU_NAME(cpu_fused_conv_bias_act) = {
    .run = run, .scratch = scratch, .in_place = 1u << 3, .pack_size = pack_size, .pack = pack};
const struct cpu_kernel CPU_NAME(cpu_conv_transpose) = {.run = run, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_conv_backward_input) = {.run = run, .scratch = scratch};
