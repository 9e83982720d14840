/* lower_gather.c: slices and elements picked by index. Indices out of range read the nearest. */
#include "lower/gpu/gpu_index_check.h"
#include "lower/gpu/move/lower_move.h"

void gpu_lower_gather(struct gpu_call *c)
{
    const struct ir_type *table = &c->in[0], *indices = &c->in[1];
    int64_t axis = c->attr->gather.axis;
    uint64_t width = gpu_product(table, axis + 1, table->rank), picks = gpu_count(indices);
    uint64_t size = rlx_dtype_size(table->dtype);
    uint64_t wide = gpu_wide(c, gpu_in(c, 0), gpu_out(c), width, size), each = wide / size;
    uint64_t count = gpu_count(c->out) / each;

    if (count == 0)
        return;
    if (c->check_indices)
        gpu_check_indices(c, gpu_in(c, 1), indices->dtype, picks, 0, table->dim[axis]);
    gpu_kernel(c, "gather", "gather");
    gpu_name(c, "W", gpu_word(wide));
    gpu_index_type(c, indices->dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "width", width / each);
    gpu_u32(c, "picks", picks);
    gpu_u32(c, "n", (uint64_t)table->dim[axis]);
    gpu_invocations(c, gpu_ceil(count, GPU_MOVES), GPU_GROUP);
}

void gpu_lower_gather_nd(struct gpu_call *c)
{
    const struct ir_type *data = &c->in[0], *indices = &c->in[1];
    int64_t batch = c->attr->gather_nd.batch_dims, parts = indices->dim[indices->rank - 1];
    uint64_t width = gpu_product(data, batch + parts, data->rank);
    uint64_t size = rlx_dtype_size(data->dtype);
    uint64_t wide = gpu_wide(c, gpu_in(c, 0), gpu_out(c), width, size), each = wide / size;
    uint64_t count = gpu_count(c->out) / each;

    if (count == 0)
        return;
    if (parts == 0) { /* each pick is all of a batch item */
        gpu_repeat_rows(c, gpu_count(c->out) / width / gpu_product(data, 0, batch), width);
        return;
    }
    if (c->check_indices)
        gpu_check_coordinates(c, gpu_in(c, 1), indices->dtype, gpu_count(indices),
                              data->dim + batch, (int32_t)parts);
    gpu_kernel(c, "gather", "gather_nd");
    gpu_name(c, "W", gpu_word(wide));
    gpu_index_type(c, indices->dtype);
    gpu_const(c, "PARTS", parts);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "width", width / each);
    gpu_u32(c, "picks", gpu_count(c->out) / width / gpu_product(data, 0, batch));
    for (int64_t i = 0; i < parts; i++)
        gpu_u32(c, "n", (uint64_t)data->dim[batch + i]);
    gpu_invocations(c, count, GPU_GROUP);
}

void gpu_lower_gather_elements(struct gpu_call *c)
{
    const struct ir_type *data = &c->in[0], *y = c->out;
    int64_t axis = c->attr->gather_elements.axis;
    uint64_t count = gpu_count(y);

    if (count == 0)
        return;
    if (c->check_indices)
        gpu_check_indices(c, gpu_in(c, 1), c->in[1].dtype, count, 0, data->dim[axis]);
    gpu_kernel(c, "gather", "gather_elements");
    gpu_name(c, "W", gpu_word(rlx_dtype_size(data->dtype)));
    gpu_index_type(c, c->in[1].dtype);
    gpu_const(c, "RANK", y->rank);
    gpu_const(c, "AXIS", axis);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_dims(c, "size", y->dim, y->rank);
    gpu_dims(c, "n", data->dim, y->rank);
    gpu_invocations(c, count, GPU_GROUP);
}
