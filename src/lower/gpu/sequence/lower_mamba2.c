/* lower_mamba2.c: the state-space duality layer; a group has a block of rows of one head's state.
 */
#include "lower/gpu/sequence/lower_sequence.h"

void gpu_lower_mamba2(struct gpu_call *c)
{
    const struct attr_mamba2 *a = &c->attr->mamba2;
    const int64_t *dim = c->in[0].dim;
    uint64_t n = (uint64_t)a->state_size, width = (uint64_t)a->head_dim, heads = (uint64_t)dim[2];
    uint64_t each = n < 16 ? 1 : 4, lanes = sequence_power(gpu_ceil(n, each), 32);
    /* Several rows of one invocation share what it reads for their columns. */
    uint64_t side_by_side = SEQUENCE_GROUP / lanes, rows = width >= 4 * side_by_side ? 4 : 1;
    uint64_t blocks = gpu_ceil(width, side_by_side * rows);
    uint64_t tasks = (uint64_t)dim[0] * heads * blocks, groups = (uint64_t)c->in[3].dim[2];
    int32_t state = a->carry_state ? 5 : -1;
    int64_t together = dim[1] == 1 ? 1
                       : each == 1 ? 8
                                   : 4; /* what these steps need fits in registers */
    struct gpu_arg in[5];

    if (gpu_count(c->out) == 0)
        return;
    for (int32_t i = 0; i < 5; i++)
        in[i] = sequence_operand(c, i, state);
    gpu_kernel(c, "mamba2", "mamba2");
    gpu_const(c, "NL", (int64_t)lanes);
    gpu_const(c, "K", (int64_t)each);
    gpu_const(c, "RI", (int64_t)rows);
    gpu_const(c, "T", together);
    gpu_flag(c, "CARRY", a->carry_state);
    for (int32_t i = 0; i < 5; i++)
        gpu_bind(c, in[i]);
    gpu_bind(c, gpu_out(c));
    sequence_bind_state(c, state);
    gpu_u32(c, "steps", (uint64_t)dim[1]);
    gpu_u32(c, "heads", heads);
    gpu_u32(c, "groups", groups);
    gpu_u32(c, "width", width);
    gpu_u32(c, "n", n);
    gpu_u32(c, "blocks", blocks);
    gpu_u32(c, "tasks", tasks);
    gpu_groups(c, tasks);
}
