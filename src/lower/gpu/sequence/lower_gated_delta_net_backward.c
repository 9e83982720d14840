/* lower_gated_delta_net_backward.c: a group has one head; it keeps about sqrt(steps) states on its
 * forward pass, and makes as many again for each stretch of the backward pass. */
#include <math.h>

#include "lower/gpu.h"

#define WORK_MOST                                                                  \
    (UINT64_C(1) << 30) /* bytes of scratch; heads beyond that wait for their turn \
                         */

struct job {
    uint64_t items, steps, heads, n;
    uint64_t side;           /* rows and columns of an invocation */
    uint64_t stretch, tiles; /* steps between states kept, and how many are */
    struct gpu_arg work;
};

static void go_back(struct gpu_call *c, const struct job *j, uint64_t first, uint64_t end)
{
    gpu_kernel(c, "gated_delta_net_backward", "back");
    gpu_type(c, "T", c->out->dtype);
    gpu_const(c, "K", (int64_t)j->side);
    gpu_flag(c, "EXACT", j->n == 16 * j->side);
    for (int32_t i = 0; i < 6; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_bind(c, j->work);
    gpu_u32(c, "steps", j->steps);
    gpu_u32(c, "heads", j->heads);
    gpu_u32(c, "n", j->n);
    gpu_u32(c, "stretch", j->stretch);
    gpu_u32(c, "tiles", j->tiles);
    gpu_u32(c, "tokens", j->items * j->steps * j->heads);
    gpu_u32(c, "first_task", first);
    gpu_u32(c, "tasks", end);
    gpu_f32(c, "root", 1 / sqrt((double)j->n));
    gpu_groups(c, end - first);
}

void gpu_lower_gated_delta_net_backward(struct gpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    struct job j = {.items = (uint64_t)dim[0],
                    .steps = (uint64_t)dim[1],
                    .heads = (uint64_t)dim[2],
                    .n = (uint64_t)c->attr->gated_delta_net_backward.state_size,
                    .stretch = 1};
    uint64_t tasks = j.items * j.heads;

    if (gpu_count(&c->in[0]) == 0)
        return;
    j.side = gpu_ceil(j.n, 16);
    while (j.stretch * j.stretch < j.steps)
        j.stretch++;
    j.tiles = gpu_ceil(j.steps, j.stretch);
    uint64_t state = j.side * j.side, own = j.tiles * state + j.stretch * (state + j.side);
    uint64_t head = own * GPU_GROUP * sizeof(float), at_once = WORK_MOST / head;
    at_once = at_once < 1 ? 1 : at_once > tasks ? tasks : at_once;
    /* Where heads take turns, shorter ones fill it better. */
    j.work = gpu_temp(c, at_once < tasks && head < WORK_MOST ? WORK_MOST : at_once * head);
    for (uint64_t first = 0; first < tasks; first += at_once)
        go_back(c, &j, first, first + at_once < tasks ? first + at_once : tasks);
}
