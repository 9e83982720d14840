/* lower_gated_delta_net.c: the gated delta rule; a group has a block of columns of one head's
 * state. */
#include <math.h>

#include "lower/gpu/sequence/lower_sequence.h"

void gpu_lower_gated_delta_net(struct gpu_call *c)
{
    const struct attr_gated_delta_net *a = &c->attr->gated_delta_net;
    const int64_t *dim = c->in[0].dim;
    uint64_t n = (uint64_t)a->state_size, heads = (uint64_t)dim[2];
    uint64_t lanes = sequence_power(gpu_ceil(n, 32), 4), each = gpu_ceil(n, lanes);
    uint64_t columns = lanes == 2 ? 64 : 32, blocks = gpu_ceil(n, columns);
    uint64_t tasks = (uint64_t)dim[0] * heads * blocks;
    int32_t state = a->carry_state ? 5 : -1;
    struct gpu_arg in[5];

    if (gpu_count(c->out) == 0)
        return;
    for (int32_t i = 0; i < 5; i++)
        in[i] = sequence_operand(c, i, state);
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
    sequence_bind_state(c, state);
    gpu_u32(c, "steps", (uint64_t)dim[1]);
    gpu_u32(c, "heads", heads);
    gpu_u32(c, "n", n);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "tasks", tasks);
    gpu_f32(c, "root", 1 / sqrt((double)n));
    gpu_groups(c, tasks);
}
