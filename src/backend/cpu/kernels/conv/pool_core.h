/* pool_core.h: the windows of pooling, for pooling.c and max_pool_backward.c. */
#ifndef BACKEND_POOL_CORE_H
#define BACKEND_POOL_CORE_H

#include "backend/cpu/kernels/conv/conv_core.h"

struct pool_windows {
    int64_t planes; /* images times channels */
    int64_t in[3], pos[3], kernel[3], stride[3], pad[3];
};

/* x and what it is pooled to. */
static inline void pool_windows_of(struct pool_windows *w, const struct cpu_tensor *x,
                                   const struct cpu_tensor *y, const rlx_list *kernel,
                                   const rlx_list *stride, const rlx_list *padding)
{
    int32_t spatial = x->rank - 2;

    w->planes = x->dim[0] * x->dim[1];
    conv_three(x->dim + 2, spatial, 1, w->in);
    conv_three(y->dim + 2, spatial, 1, w->pos);
    conv_three(kernel->at, kernel->count, 1, w->kernel);
    conv_three(stride->at, stride->count, 1, w->stride);
    conv_three(padding->at, padding->count, 0, w->pad);
}

/* Along one axis: the source elements *first .. *first + result - 1 are in a position's window. */
static inline int64_t pool_inside(const struct pool_windows *w, int axis, int64_t pos,
                                  int64_t *first)
{
    int64_t start = pos * w->stride[axis] - w->pad[axis];
    int64_t end = cpu_min_i64(start + w->kernel[axis], w->in[axis]);

    *first = cpu_max_i64(start, 0);
    return end - *first;
}

#define pool_rows_run CPU_NAME(pool_rows_run)

/* pool_rows.c: pools c's input, which is not empty, and returns true; or false, and does nothing,
 * where the windows or the type are not for it. */
bool pool_rows_run(const struct cpu_call *c, const struct pool_windows *w);

#endif
