/* softmax.c: rows along an axis, one group each. */
#include "lower/gpu.h"

void gpu_lower_softmax(struct gpu_call *c)
{
    const struct ir_type *t = c->out;
    int32_t axis = (int32_t)c->attr->softmax.axis;
    uint64_t inner = 1, cols = (uint64_t)t->dim[axis], all = gpu_count(t);

    for (int32_t i = axis + 1; i < t->rank; i++)
        inner *= (uint64_t)t->dim[i];
    if (all == 0)
        return;
    gpu_kernel(c, "softmax", "softmax");
    gpu_type(c, "T", t->dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, cols);
    gpu_u32(c, inner);
    gpu_u32(c, all / cols);
    gpu_groups(c, all / cols);
}
