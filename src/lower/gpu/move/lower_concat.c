/* lower_concat.c: parts one after another along an axis, and rows written into a state. */
#include "lower/gpu/gpu_index_check.h"
#include "lower/gpu/move/lower_move.h"

#define AT_ONCE 4 /* parts that a launch joins */

/* Rows of the result, and how much of them is there already. */
struct joined {
    uint64_t rows, stride, first;
};

/* As many elements as move at once from these parts, all of them: their common divisor. */
static uint64_t wide_of(const struct gpu_call *c, const struct joined *j, int32_t part,
                        const uint64_t *width, int32_t count)
{
    uint64_t size = rlx_dtype_size(c->out->dtype), run = gpu_common(j->stride, j->first);
    uint64_t wide = 16;

    for (int32_t i = 0; i < count; i++)
        run = gpu_common(run, width[i]);
    for (int32_t i = 0; i < count; i++) {
        uint64_t most = gpu_wide(c, gpu_in(c, part + i), gpu_out(c), run, size);
        wide = most < wide ? most : wide;
    }
    return wide;
}

/* Parts [part, part + count) side by side; returns how many elements of a row they take. */
static uint64_t join_parts(struct gpu_call *c, const struct joined *j, int32_t part,
                           const uint64_t *width, int32_t count)
{
    uint64_t wide = wide_of(c, j, part, width, count), all = 0;
    uint64_t each = wide / rlx_dtype_size(c->out->dtype);

    for (int32_t i = 0; i < count; i++)
        all += width[i];
    if (all == 0)
        return 0;
    gpu_kernel(c, "concat", "join");
    gpu_name(c, "W", gpu_word(wide));
    for (int32_t i = 0; i < AT_ONCE; i++)
        gpu_bind(c, gpu_in(c, part + (i < count ? i : 0)));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "rows", j->rows);
    gpu_u32(c, "stride", j->stride / each);
    gpu_u32(c, "first", j->first / each);
    for (int32_t i = 0; i < AT_ONCE; i++)
        gpu_u32(c, "width", i < count ? width[i] / each : 0);
    gpu_invocations(c, gpu_ceil(j->rows * all / each, GPU_MOVES), GPU_GROUP);
    return all;
}

void gpu_lower_concat(struct gpu_call *c)
{
    int64_t axis = c->attr->concat.axis;
    uint64_t inner = gpu_product(c->out, axis + 1, c->out->rank), width[AT_ONCE];
    uint64_t size = rlx_dtype_size(c->out->dtype);
    struct joined j = {.rows = gpu_product(c->out, 0, axis),
                       .stride = (uint64_t)c->out->dim[axis] * inner};

    if (gpu_count(c->out) == 0)
        return;
    for (int32_t i = 0; i < c->in_count;) {
        if (j.rows == 1) { /* each has a place of its own, and need not wait for the others */
            struct gpu_arg from = gpu_in(c, i++);
            gpu_copy(c, from, gpu_part(gpu_out(c), j.first * size, from.bytes), c->out->dtype);
            j.first += from.bytes / size;
            continue;
        }
        int32_t count = c->in_count - i < AT_ONCE ? c->in_count - i : AT_ONCE;
        for (int32_t k = 0; k < count; k++)
            width[k] = (uint64_t)c->in[i + k].dim[axis] * inner;
        j.first += join_parts(c, &j, i, width, count);
        i += count;
    }
}

/* Rows that do not fit are always reported, and not written. */
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
    gpu_u32(c, "count", count);
    gpu_u32(c, "width", (uint64_t)rows->dim[axis] * inner / each);
    gpu_u32(c, "stride", (uint64_t)c->out->dim[axis] * inner / each);
    gpu_u32(c, "inner", inner / each);
    gpu_u32(c, "limit", (uint64_t)room + 1);
    gpu_u32(c, "step", (uint64_t)c->step);
    gpu_invocations(c, count, GPU_GROUP);
}
