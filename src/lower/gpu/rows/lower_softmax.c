/* lower_softmax.c: rows along an axis (kernels/softmax.rlk).
 *
 *     rows that a group can hold:  softmax
 *     longer ones:                 parts  =>  join  =>  scale */
#include "lower/gpu/rows/lower_rows.h"

static void whole_rows(struct gpu_call *c, const struct gpu_rows *r)
{
    gpu_kernel(c, "softmax", "softmax");
    gpu_type(c, "T", c->out->dtype);
    gpu_row_consts(c, r, c->out->dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_row_words(c, r);
    gpu_groups(c, gpu_row_groups(r));
}

static void launch_parts(struct gpu_call *c, const struct gpu_rows *r, rlx_dtype type,
                         struct gpu_arg x, struct gpu_arg parts)
{
    gpu_kernel(c, "softmax", "parts");
    gpu_type(c, "T", type);
    gpu_row_consts(c, r, type);
    gpu_bind(c, x);
    gpu_bind(c, parts);
    gpu_row_words(c, r);
    gpu_u32(c, "chunks", r->chunks);
    gpu_groups(c, gpu_row_groups(r));
}

struct gpu_arg gpu_softmax_stats(struct gpu_call *c, const struct gpu_rows *r, rlx_dtype type,
                                 struct gpu_arg x)
{
    uint64_t pair = 2 * rlx_dtype_size(gpu_sum_type(type));
    struct gpu_arg stats = gpu_temp(c, r->rows * pair), parts;

    if (r->chunks == 1) {
        launch_parts(c, r, type, x, stats);
        return stats;
    }
    parts = gpu_temp(c, gpu_row_chunks(r) * pair);
    parts.bytes = r->rows * r->chunks * pair;
    launch_parts(c, r, type, x, parts);
    gpu_kernel(c, "softmax", "join");
    gpu_type(c, "A", gpu_sum_type(type));
    gpu_bind(c, parts);
    gpu_bind(c, stats);
    gpu_u32(c, "rows", r->rows);
    gpu_u32(c, "chunks", r->chunks);
    gpu_groups(c, r->rows);
    return stats;
}

static void cut_rows(struct gpu_call *c, const struct gpu_rows *r)
{
    struct gpu_arg stats = gpu_softmax_stats(c, r, c->out->dtype, gpu_in(c, 0));

    gpu_kernel(c, "softmax", "scale");
    gpu_type(c, "T", c->out->dtype);
    gpu_row_consts(c, r, c->out->dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, stats);
    gpu_bind(c, gpu_out(c));
    gpu_row_words(c, r);
    gpu_u32(c, "chunks", r->chunks);
    gpu_groups(c, gpu_row_groups(r));
}

void gpu_lower_softmax(struct gpu_call *c)
{
    rlx_dtype type = c->out->dtype;
    struct gpu_rows r;

    if (gpu_count(c->out) == 0)
        return;
    gpu_rows_along(&r, c->out, c->attr->softmax.axis);
    gpu_share_rows(&r, type, 1,
                   gpu_by_four(c, gpu_in(c, 0), type) && gpu_by_four(c, gpu_out(c), type));
    if (r.chunks == 1)
        whole_rows(c, &r);
    else
        cut_rows(c, &r);
}
