/* transpose.c: the axes in another order. */
#include "backend/cpu/kernels/move/move.h"

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0], *y = c->out;
    const rlx_list *perm = &c->attr->transpose.perm;
    int64_t from[RLX_MAX_RANK], to[RLX_MAX_RANK];
    struct move m = move_between(y, x);

    if (y->count == 0)
        return;
    cpu_strides(x, from);
    cpu_strides(y, to);
    for (int32_t i = 0; i < y->rank; i++)
        move_axis(&m, y->dim[i], to[i], from[perm->at[i]]);
    move_run(c->pool, &m);
}

extern const struct cpu_kernel CPU_NAME(cpu_transpose);
const struct cpu_kernel CPU_NAME(cpu_transpose) = {.run = run};
