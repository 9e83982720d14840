/* slice.c: part of an axis (narrow), every step-th element of it (slice), axes back to front
 * (reverse). */
#include "backend/cpu/kernels/move/move.h"

static void cut(const struct cpu_call *c, int64_t axis, int64_t start, int64_t step)
{
    const struct cpu_tensor *x = &c->in[0], *y = c->out;
    struct move m = move_between(y, x);

    if (y->count == 0)
        return;
    int64_t inner = cpu_product(x, axis + 1, x->rank);
    m.src += start * inner * m.size;
    move_axis(&m, cpu_product(x, 0, axis), y->dim[axis] * inner, x->dim[axis] * inner);
    move_axis(&m, y->dim[axis], inner, step * inner);
    move_axis(&m, inner, 1, 1);
    move_run(c->pool, &m);
}

static void narrow(const struct cpu_call *c)
{
    cut(c, c->attr->narrow.axis, c->attr->narrow.start, 1);
}

static void slice(const struct cpu_call *c)
{
    const struct attr_slice *a = &c->attr->slice;

    /* With one element or none the step is never taken, and may be any number. */
    cut(c, a->axis, a->start, c->out->dim[a->axis] > 1 ? a->step : 1);
}

static void reverse(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0];
    const rlx_list *axes = &c->attr->reverse.axes;
    int64_t to[RLX_MAX_RANK], from[RLX_MAX_RANK];
    struct move m = move_between(c->out, x);

    if (x->count == 0)
        return;
    cpu_strides(x, to);
    cpu_strides(x, from);
    for (int32_t i = 0; i < axes->count; i++) {
        int64_t axis = axes->at[i];
        m.src += (x->dim[axis] - 1) * to[axis] * m.size;
        from[axis] = -to[axis];
    }
    for (int32_t i = 0; i < x->rank; i++)
        move_axis(&m, x->dim[i], to[i], from[i]);
    move_run(c->pool, &m);
}

extern const struct cpu_kernel CPU_NAME(cpu_narrow), CPU_NAME(cpu_slice), CPU_NAME(cpu_reverse);
const struct cpu_kernel CPU_NAME(cpu_narrow) = {.run = narrow};
const struct cpu_kernel CPU_NAME(cpu_slice) = {.run = slice};
const struct cpu_kernel CPU_NAME(cpu_reverse) = {.run = reverse};
