/* expand_axes.c: elements repeated: broadcast (expand), whole copies side by side (tile), pixels
 * doubled (resize_nearest_2x). A repetition is an axis along which the source does not advance. */
#include "backend/cpu/kernels/move/move.h"

static void expand(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0], *y = c->out;
    int32_t lead = y->rank - x->rank;
    int64_t to[RLX_MAX_RANK] = {0}, from[RLX_MAX_RANK] = {0};
    struct move m = move_between(y, x);

    if (y->count == 0)
        return;
    cpu_strides(y, to);
    cpu_strides(x, from);
    for (int32_t i = 0; i < y->rank; i++) {
        bool repeats = i < lead || x->dim[i - lead] == 1;
        move_axis(&m, y->dim[i], to[i], repeats ? 0 : from[i - lead]);
    }
    move_run(c->pool, &m);
}

static void tile(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0], *y = c->out;
    int64_t to[RLX_MAX_RANK], from[RLX_MAX_RANK];
    struct move m = move_between(y, x);

    if (y->count == 0)
        return;
    cpu_strides(y, to);
    cpu_strides(x, from);
    for (int32_t i = 0; i < x->rank; i++) {
        move_axis(&m, c->attr->tile.reps.at[i], x->dim[i] * to[i], 0);
        move_axis(&m, x->dim[i], to[i], from[i]);
    }
    move_run(c->pool, &m);
}

static void resize_nearest_2x(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0];
    struct move m = move_between(c->out, x);

    if (x->count == 0)
        return;
    int64_t h = x->dim[2], w = x->dim[3];
    move_axis(&m, x->dim[0] * x->dim[1], 4 * h * w, h * w);
    move_axis(&m, h, 4 * w, w);
    move_axis(&m, 2, 2 * w, 0);
    move_axis(&m, w, 2, 1);
    move_axis(&m, 2, 1, 0);
    move_run(c->pool, &m);
}

extern const struct cpu_kernel CPU_NAME(cpu_expand), CPU_NAME(cpu_tile),
    CPU_NAME(cpu_resize_nearest_2x);
const struct cpu_kernel CPU_NAME(cpu_expand) = {.run = expand};
const struct cpu_kernel CPU_NAME(cpu_tile) = {.run = tile};
const struct cpu_kernel CPU_NAME(cpu_resize_nearest_2x) = {.run = resize_nearest_2x};
