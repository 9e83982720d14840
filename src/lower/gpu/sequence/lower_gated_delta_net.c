/* lower_gated_delta_net.c: the gated delta rule; a group has a block of columns of one head's
 * state. */
#include <math.h>

#include "lower/gpu/sequence/lower_sequence.h"

/* The value whose bytes v lies in. */
static ir_value root_of(const struct ir_graph *g, ir_value v)
{
    uint64_t offset;

    while (lower_is_view(g, ir_node(g, v), &offset))
        v = ir_node(g, v)->in[0];
    return v;
}

/* Operand i. Where it lies in the state that others write, a copy. */
static struct gpu_arg operand(struct gpu_call *c, int32_t i)
{
    uint64_t count = gpu_count(&c->in[i]), bytes = 0;

    if (!c->attr->gated_delta_net.carry_state ||
        root_of(c->graph, c->node->in[i]) != root_of(c->graph, c->node->in[5]))
        return gpu_in(c, i);
    type_bytes(&c->in[i], &bytes);
    struct gpu_arg copy = gpu_temp(c, bytes);
    gpu_kernel(c, "gated_delta_net", "copy");
    gpu_type(c, "T", c->in[i].dtype);
    gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, copy);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, GPU_GROUP);
    return copy;
}

void gpu_lower_gated_delta_net(struct gpu_call *c)
{
    const struct attr_gated_delta_net *a = &c->attr->gated_delta_net;
    const int64_t *dim = c->in[0].dim;
    uint64_t n = (uint64_t)a->state_size, heads = (uint64_t)dim[2];
    uint64_t lanes = sequence_power(gpu_ceil(n, 32), 4), each = gpu_ceil(n, lanes);
    uint64_t columns = lanes == 2 ? 64 : 32, blocks = gpu_ceil(n, columns);
    uint64_t tasks = (uint64_t)dim[0] * heads * blocks;
    struct gpu_arg in[5];

    if (gpu_count(c->out) == 0)
        return;
    for (int32_t i = 0; i < 5; i++)
        in[i] = operand(c, i);
    gpu_kernel(c, "gated_delta_net", "gated_delta_net");
    gpu_type(c, "T", c->out->dtype);
    gpu_const(c, "RL", (int64_t)lanes);
    gpu_const(c, "K", (int64_t)each);
    gpu_const(c, "CW", (int64_t)columns);
    gpu_flag(c, "EXACT", lanes * each == n);
    gpu_flag(c, "CARRY", a->carry_state);
    for (int32_t i = 0; i < 5; i++)
        gpu_bind(c, in[i]);
    gpu_bind(c, gpu_out(c));
    gpu_bind(c, a->carry_state ? gpu_in(c, 5) : gpu_temp(c, 16)); /* without it nothing is there */
    gpu_u32(c, "steps", (uint64_t)dim[1]);
    gpu_u32(c, "heads", heads);
    gpu_u32(c, "n", n);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "tasks", tasks);
    gpu_f32(c, "root", 1 / sqrt((double)n));
    gpu_groups(c, tasks);
}
