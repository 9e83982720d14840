/* lower_batch_norm.c: norms with given statistics, and their gradients (kernels/batch_norm.rlk). */
#include "lower/gpu/rows/lower_norm_backward.h"

/* How all elements are gone over: in rows of one channel, or along the channels. */
struct spread {
    struct gpu_rows rows;
    uint64_t channels;
    bool planes;
};

static void share(struct gpu_call *c, struct spread *s, int64_t axis)
{
    const struct ir_type *x = &c->in[0];
    bool vectors = gpu_by_four(c, gpu_out(c), x->dtype);

    gpu_rows_along(&s->rows, x, axis);
    s->channels = s->rows.size;
    s->planes = s->rows.inner > 1;
    if (s->planes) {
        s->rows.rows = gpu_count(x) / s->rows.inner;
        s->rows.size = s->rows.inner;
        s->rows.inner = 1;
    }
    for (int32_t i = 0; i < c->in_count; i++)
        if (!s->planes || c->in[i].rank == x->rank)
            vectors = vectors && gpu_by_four(c, gpu_in(c, i), c->in[i].dtype);
    gpu_share_rows(&s->rows, x->dtype, 1, vectors);
}

static void operand_type(struct gpu_call *c, const char *name, int32_t i)
{
    gpu_type(c, name, c->in[i].dtype);
}

static void begin(struct gpu_call *c, const char *kernel, const struct spread *s)
{
    gpu_kernel(c, "batch_norm", kernel);
    gpu_type(c, "T", c->in[0].dtype);
    gpu_row_consts(c, &s->rows, c->in[0].dtype);
    gpu_const(c, "W", s->planes ? 1 : (int64_t)s->rows.width);
    gpu_flag(c, "PLANES", s->planes);
}

static void end(struct gpu_call *c, const struct spread *s, float eps)
{
    gpu_row_words(c, &s->rows);
    gpu_u32(c, "chunks", s->rows.chunks);
    gpu_u32(c, "channels", s->channels);
    gpu_f32(c, "eps", (double)eps);
    gpu_groups(c, gpu_row_groups(&s->rows));
}

void gpu_lower_batch_norm_inference(struct gpu_call *c)
{
    const struct attr_batch_norm_inference *a = &c->attr->batch_norm_inference;
    struct spread s;

    if (gpu_count(c->out) == 0)
        return;
    share(c, &s, a->axis);
    begin(c, "normalise", &s);
    operand_type(c, "G", 1);
    operand_type(c, "H", 2);
    operand_type(c, "M", 3);
    operand_type(c, "S", 4);
    for (int32_t i = 0; i < c->in_count; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    end(c, &s, a->eps);
}

/* ---- gradients ---- */

/* x, gamma, mean, variance, dy */
static void lower_input(struct gpu_call *c, int64_t axis, float eps)
{
    struct spread s;

    if (gpu_count(c->out) == 0)
        return;
    share(c, &s, axis);
    begin(c, "backward", &s);
    operand_type(c, "G", 1);
    operand_type(c, "S", 3);
    gpu_bind(c, gpu_in(c, 4));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 3));
    gpu_bind(c, gpu_out(c));
    end(c, &s, eps);
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
    gpu_u32(c, "channels", channels);
    gpu_f32(c, "eps", (double)eps);
    gpu_invocations(c, channels, GPU_GROUP);
    return stats;
}

void gpu_lower_batch_norm_inference_backward(struct gpu_call *c)
{
    const struct attr_batch_norm_inference_backward *a = &c->attr->batch_norm_inference_backward;
    const struct ir_type *x = &c->in[0];
    uint32_t gone = ((1u << x->rank) - 1) & ~(1u << a->axis);
    struct gpu_products p = {.t = x, .gone = gone, .dy = c->in_count - 1, .inner = 1, .own = true};

    if (c->op == RLX_OP_batch_norm_inference_backward_input) {
        lower_input(c, a->axis, a->eps);
    } else if (c->op == RLX_OP_batch_norm_inference_backward_gamma) {
        p.stats = channel_stats(c, a->eps);
        gpu_sum_products(c, &p, c->out->dtype, gpu_out(c));
    } else {
        gpu_sum_gradients(c, x, gone, c->in_count - 1, c->out->dtype, gpu_out(c));
    }
}
