/* batch_norm.c: norms with given statistics, and their gradients (kernels/batch_norm.rlk). */
#include "lower/gpu/norm_backward.h"

enum { EACH = 4 }; /* elements of an invocation, as in the kernels */

static void operand_type(struct gpu_call *c, const char *name, int32_t i)
{
    gpu_type(c, name, c->in[i].dtype);
}

/* One launch over all elements of x; types and buffers have been given. */
static void over_elements(struct gpu_call *c, int64_t axis, float eps)
{
    const struct ir_type *x = &c->in[0];
    struct gpu_rows r;

    gpu_rows_along(&r, x, axis);
    gpu_u32(c, gpu_count(x));
    gpu_u32(c, r.size);
    gpu_u32(c, r.inner);
    gpu_f32(c, (double)eps);
    gpu_invocations(c, gpu_count(x), GPU_GROUP * EACH);
}

void gpu_lower_batch_norm_inference(struct gpu_call *c)
{
    const struct attr_batch_norm_inference *a = &c->attr->batch_norm_inference;

    gpu_kernel(c, "batch_norm", "normalise");
    gpu_type(c, "T", c->out->dtype);
    gpu_type(c, "A", gpu_sum_type(c->out->dtype));
    operand_type(c, "G", 1);
    operand_type(c, "H", 2);
    operand_type(c, "M", 3);
    operand_type(c, "S", 4);
    for (int32_t i = 0; i < c->in_count; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    over_elements(c, a->axis, a->eps);
}

/* ---- gradients ---- */

static void lower_input(struct gpu_call *c, int64_t axis, float eps)
{
    gpu_kernel(c, "batch_norm", "backward");
    gpu_type(c, "T", c->out->dtype);
    gpu_type(c, "A", gpu_sum_type(c->out->dtype));
    operand_type(c, "G", 1);
    operand_type(c, "S", 3);
    gpu_bind(c, gpu_in(c, 4));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 3));
    gpu_bind(c, gpu_out(c));
    over_elements(c, axis, eps);
}

static struct gpu_arg channel_stats(struct gpu_call *c, float eps)
{
    rlx_dtype type = gpu_sum_type(c->in[0].dtype);
    uint64_t channels = gpu_count(&c->in[1]);
    struct gpu_arg stats = gpu_temp(c, channels * 3 * rlx_dtype_size(type));

    gpu_kernel(c, "batch_norm", "stats");
    gpu_type(c, "A", type);
    operand_type(c, "M", 1);
    operand_type(c, "S", 2);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, stats);
    gpu_u32(c, channels);
    gpu_f32(c, (double)eps);
    gpu_invocations(c, channels, GPU_GROUP);
    return stats;
}

void gpu_lower_batch_norm_inference_backward(struct gpu_call *c)
{
    const struct attr_batch_norm_inference_backward *a = &c->attr->batch_norm_inference_backward;
    const struct ir_type *x = &c->in[0];
    uint32_t gone = ((1u << x->rank) - 1) & ~(1u << a->axis);
    struct gpu_products p = {
        .t = x, .gone = gone, .dy = c->in_count - 1, .span = 1, .inner = 1, .own = true};

    if (c->op == RLX_OP_batch_norm_inference_backward_input) {
        lower_input(c, a->axis, a->eps);
    } else if (c->op == RLX_OP_batch_norm_inference_backward_gamma) {
        p.stats = channel_stats(c, a->eps);
        gpu_sum_products(c, &p, c->out->dtype, gpu_out(c));
    } else {
        gpu_sum_gradients(c, x, gone, c->in_count - 1, c->out->dtype, gpu_out(c));
    }
}
