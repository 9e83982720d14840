/* lower_selective_scan.c: the selective state-space scan; a group has a block of channels of one
 * item. */
#include "lower/gpu/sequence/lower_sequence.h"

void gpu_lower_selective_scan(struct gpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    uint64_t n = (uint64_t)c->attr->selective_scan.state_size, channels = (uint64_t)dim[2];
    struct sequence_share share = sequence_share(n);
    uint64_t blocks = gpu_ceil(channels, SEQUENCE_GROUP / share.lanes);
    uint64_t tasks = (uint64_t)dim[0] * blocks;
    int32_t state = c->attr->selective_scan.carry_state ? 5 : -1;
    int64_t together = share.each <= 2 ? 8 : share.each <= 4 ? 4 : 2; /* they fit in registers */
    struct gpu_arg in[5];

    if (gpu_count(c->out) == 0)
        return;
    for (int32_t i = 0; i < 5; i++)
        in[i] = sequence_operand(c, i, state);
    gpu_kernel(c, "selective_scan", "selective_scan");
    gpu_const(c, "NL", (int64_t)share.lanes);
    gpu_const(c, "K", (int64_t)share.each);
    gpu_const(c, "T", dim[1] == 1 ? 1 : together);
    gpu_flag(c, "CARRY", state >= 0);
    for (int32_t i = 0; i < 5; i++)
        gpu_bind(c, in[i]);
    gpu_bind(c, gpu_out(c));
    sequence_bind_state(c, state);
    gpu_u32(c, "steps", (uint64_t)dim[1]);
    gpu_u32(c, "channels", channels);
    gpu_u32(c, "n", n);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "tasks", tasks);
    gpu_groups(c, tasks);
}
