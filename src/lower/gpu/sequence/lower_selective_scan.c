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

    if (gpu_count(c->out) == 0)
        return;
    gpu_kernel(c, "selective_scan", "selective_scan");
    gpu_const(c, "NL", (int64_t)share.lanes);
    gpu_const(c, "K", (int64_t)share.each);
    gpu_const(c, "T", share.each <= 2 ? 8 : share.each <= 4 ? 4 : 2); /* they fit in registers */
    for (int32_t i = 0; i < 5; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "steps", (uint64_t)dim[1]);
    gpu_u32(c, "channels", channels);
    gpu_u32(c, "n", n);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "tasks", tasks);
    gpu_groups(c, tasks);
}
