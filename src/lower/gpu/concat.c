/* concat.c: parts one after another along an axis, and rows written into a state. */
#include "lower/gpu/index_check.h"
#include "lower/gpu/move.h"

void gpu_lower_concat(struct gpu_call *c)
{
    int64_t axis = c->attr->concat.axis;
    uint64_t outer = gpu_product(c->out, 0, axis), first = 0;
    uint64_t inner = gpu_product(c->out, axis + 1, c->out->rank);
    uint64_t stride = (uint64_t)c->out->dim[axis] * inner;

    for (int32_t i = 0; i < c->in_count; i++) {
        uint64_t width = (uint64_t)c->in[i].dim[axis] * inner;
        gpu_place_rows(c, gpu_in(c, i), gpu_out(c), outer, width, stride, first, c->out->dtype);
        first += width;
    }
}

/* Rows that do not fit are told of, always, and not written. */
void gpu_lower_cache_append(struct gpu_call *c)
{
    const struct ir_type *rows = &c->in[1];
    int64_t axis = c->attr->cache_append.axis, room = c->out->dim[axis] - rows->dim[axis];
    uint64_t inner = gpu_product(rows, axis + 1, rows->rank), size = rlx_dtype_size(rows->dtype);
    uint64_t wide = gpu_wide(c, gpu_in(c, 1), gpu_out(c), inner, size), each = wide / size;
    uint64_t count = gpu_count(rows) / each;

    if (count == 0) {
        gpu_check_indices(c, gpu_in(c, 2), c->in[2].dtype, 1, 0, room + 1);
        return;
    }
    gpu_kernel(c, "concat", "append");
    gpu_name(c, "W", gpu_word(wide));
    gpu_index_type(c, c->in[2].dtype);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, gpu_out(c));
    gpu_bind(c, gpu_fault());
    gpu_u32(c, count);
    gpu_u32(c, (uint64_t)rows->dim[axis] * inner / each);
    gpu_u32(c, (uint64_t)c->out->dim[axis] * inner / each);
    gpu_u32(c, inner / each);
    gpu_u32(c, (uint64_t)room + 1);
    gpu_u32(c, (uint64_t)c->step);
    gpu_invocations(c, count, GPU_GROUP);
}
