/* softmax.c: rows along an axis (kernels/softmax.rlk).
 *
 *     rows that a group can hold:  softmax
 *     longer ones:                 parts  =>  join  =>  scale */
#include "lower/gpu/rows.h"

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

/* One of the kernels that go over all chunks. */
static void chunk_launch(struct gpu_call *c, const struct gpu_rows *r, const char *kernel,
                         const struct gpu_arg *arg, int args)
{
    gpu_kernel(c, "softmax", kernel);
    gpu_type(c, "T", c->out->dtype);
    gpu_row_consts(c, r, c->out->dtype);
    for (int i = 0; i < args; i++)
        gpu_bind(c, arg[i]);
    gpu_row_words(c, r);
    gpu_u32(c, r->chunks);
    gpu_groups(c, gpu_row_groups(r));
}

static void cut_rows(struct gpu_call *c, const struct gpu_rows *r)
{
    uint64_t pair = 2 * rlx_dtype_size(gpu_sum_type(c->out->dtype));
    struct gpu_arg parts = gpu_temp(c, gpu_row_chunks(r) * pair);
    struct gpu_arg stats = gpu_temp(c, gpu_row_chunks(r) * pair);

    parts.bytes = r->rows * r->chunks * pair;
    stats.bytes = r->rows * pair;
    chunk_launch(c, r, "parts", (const struct gpu_arg[]){gpu_in(c, 0), parts}, 2);

    gpu_kernel(c, "softmax", "join");
    gpu_type(c, "A", gpu_sum_type(c->out->dtype));
    gpu_bind(c, parts);
    gpu_bind(c, stats);
    gpu_u32(c, r->rows);
    gpu_u32(c, r->chunks);
    gpu_groups(c, r->rows);

    chunk_launch(c, r, "scale", (const struct gpu_arg[]){gpu_in(c, 0), stats, gpu_out(c)}, 3);
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
