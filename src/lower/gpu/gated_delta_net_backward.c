/* gated_delta_net_backward.c: a group has one head; it keeps about sqrt(steps) states on its way
 * forth, and makes as many again for each stretch of the way back. */
#include <math.h>

#include "lower/gpu.h"

void gpu_lower_gated_delta_net_backward(struct gpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    uint64_t n = (uint64_t)c->attr->gated_delta_net_backward.state_size;
    uint64_t steps = (uint64_t)dim[1], heads = (uint64_t)dim[2], tasks = (uint64_t)dim[0] * heads;
    uint64_t side = gpu_ceil(n, 16), stretch = 1;

    if (gpu_count(&c->in[0]) == 0)
        return;
    while (stretch * stretch < steps)
        stretch++;
    uint64_t tiles = gpu_ceil(steps, stretch);
    uint64_t each = tiles * side * side + stretch * (side * side + side); /* of an invocation */
    gpu_kernel(c, "gated_delta_net_backward", "back");
    gpu_type(c, "T", c->out->dtype);
    gpu_const(c, "K", (int64_t)side);
    gpu_flag(c, "EXACT", n == 16 * side);
    for (int32_t i = 0; i < 6; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_bind(c, gpu_temp(c, tasks * each * GPU_GROUP * sizeof(float)));
    gpu_u32(c, steps);
    gpu_u32(c, heads);
    gpu_u32(c, n);
    gpu_u32(c, stretch);
    gpu_u32(c, tiles);
    gpu_u32(c, (uint64_t)dim[0] * steps * heads);
    gpu_u32(c, tasks);
    gpu_f32(c, 1 / sqrt((double)n));
    gpu_groups(c, tasks);
}
