/* gpu_parts.c: tensors that are larger than what a device binds at once.
 *
 * Many nodes compute each row of their result, along some outer axis, from the same row of some
 * operands and from all of the others. Such a node is lowered as several of fewer rows, one after
 * the other. Elementwise kernels do so themselves. What is too large even then, a row, or an
 * operand that all rows need, is seen through several windows (kc_bind). A packed weight of which
 * not even those show enough goes in columns of the result. */
#include <string.h>

#include "ir/op.h"
#include "ir/quant/quant_scheme.h"
#include "lower/gpu/gpu_core.h"
#include "lower/gpu/move/lower_move.h"

/* Rows of which axis, and of which operands; the others are seen whole. */
struct split {
    int32_t axis;
    uint64_t follows; /* bit i: operand i */
    int32_t in_axis[64];
};

static void follow(struct split *s, int32_t i, int32_t axis)
{
    s->follows |= UINT64_C(1) << i;
    s->in_axis[i] = axis;
}

/* An operand that is broadcast to the result, from its last axis on. */
static void follow_broadcast(const struct gpu_call *c, struct split *s, int32_t i)
{
    int32_t axis = s->axis - (c->out->rank - c->in[i].rank);

    if (axis >= 0 && c->in[i].dim[axis] != 1)
        follow(s, i, axis);
}

/* Columns of a single row, each the product with a row of the weights. */
static bool split_columns(const struct gpu_call *c, struct split *s)
{
    if (s->axis != c->out->rank - 1 || c->in[1].rank != 2)
        return false;
    follow(s, 1, 0);
    for (int32_t i = 2; i < c->in_count; i++)
        follow_broadcast(c, s, i);
    return true;
}

static bool split_product(const struct gpu_call *c, struct split *s, bool turned, bool weight_rows)
{
    int32_t rows = c->out->rank - 2;

    if (weight_rows && split_columns(c, s))
        return true;
    if (s->axis > rows || c->in[0].rank < 2 || c->in[1].rank < 2 || (turned && s->axis == rows))
        return false;
    for (int32_t i = 0; i < c->in_count; i++)
        if (i != 1 || s->axis < rows)
            follow_broadcast(c, s, i);
    return true;
}

static bool split_reduce(const struct gpu_call *c, struct split *s)
{
    for (int32_t i = 0; i < c->attr->reduce.axes.count; i++)
        if (c->attr->reduce.axes.at[i] <= s->axis)
            return false;
    follow(s, 0, s->axis);
    return true;
}

static bool split_transpose(const struct gpu_call *c, struct split *s)
{
    for (int32_t i = 0; i <= s->axis; i++)
        if (c->attr->transpose.perm.at[i] != i)
            return false;
    follow(s, 0, s->axis);
    return true;
}

static bool split_pad(const struct gpu_call *c, struct split *s)
{
    for (int32_t i = 0; i <= s->axis; i++)
        if (c->attr->pad.before.at[i] || c->attr->pad.after.at[i])
            return false;
    follow(s, 0, s->axis);
    return true;
}

static bool split_concat(const struct gpu_call *c, struct split *s)
{
    for (int32_t i = 0; i < c->in_count && i < 64; i++)
        follow(s, i, s->axis);
    return s->axis < c->attr->concat.axis && c->in_count <= 64;
}

/* What each row has of operands that are broadcast; rows are along the last axis. */
static bool split_broadcast(const struct gpu_call *c, struct split *s)
{
    for (int32_t i = 0; i < c->in_count; i++)
        follow_broadcast(c, s, i);
    return s->axis < c->out->rank - 1;
}

/* These operands, a bit each, have the result's rows up to the axis that is worked along. */
static bool split_before(const struct gpu_call *c, struct split *s, int64_t axis, uint32_t operands)
{
    for (int32_t i = 0; i < c->in_count && i < 32; i++) {
        if (!(operands >> i & 1))
            continue;
        if (s->axis >= c->in[i].rank || c->in[i].dim[s->axis] != c->out->dim[s->axis])
            return false;
        follow(s, i, s->axis);
    }
    return s->axis < axis;
}

/* Images of a batch; of a single image channels, each with weights of its own. */
static bool split_images(const struct gpu_call *c, struct split *s, int64_t groups)
{
    if (s->axis != 1 || groups != 1)
        return split_before(c, s, 1, 1);
    follow(s, 1, 0);
    return true;
}

/* Of the gradients of a norm, that for its input; the operand behind the weights is dy. */
static bool split_gradient(const struct gpu_call *c, struct split *s, rlx_op of_input, int64_t axis)
{
    return c->op == of_input && split_before(c, s, axis, 1u | 1u << (c->in_count - 1));
}

/* Matrices of a batch. */
static bool split_matrices(const struct gpu_call *c, struct split *s)
{
    return split_before(c, s, c->in[0].rank - 2, (1u << c->in_count) - 1);
}

/* Items of a batch, which comes first in all operands; a mask may be the same for all of them. */
static bool split_attention(const struct gpu_call *c, struct split *s, int32_t layout,
                            int32_t operands)
{
    bool batched = layout != RLX_ATTENTION_LAYOUT_folded;
    bool masked = c->in_count > operands && c->in[operands].dim[0] != 1;

    return batched && split_before(c, s, 1, (1u << (operands + masked)) - 1);
}

/* Rows that are picked, or rows of what they are picked from. Where indices are told of by their
 * place, they are seen whole. */
static bool split_gather(const struct gpu_call *c, struct split *s, int64_t axis)
{
    if (c->check_indices || s->axis >= axis + c->in[1].rank)
        return false;
    if (s->axis < axis)
        follow(s, 0, s->axis);
    else
        follow(s, 1, s->axis - (int32_t)axis);
    return true;
}

/* What is worked along an axis, or along the last one. */
static bool find_lines(const struct gpu_call *c, struct split *s)
{
    const union ir_attr *a = c->attr;
    int32_t last = c->out->rank - 1;

    switch (op_info(c->op)->family) {
    case FAMILY_softmax: return split_before(c, s, a->softmax.axis, 1);
    case FAMILY_cumulative: return split_before(c, s, a->cumulative.axis, 1);
    case FAMILY_cumsum_backward: return split_before(c, s, a->cumsum_backward.axis, 1);
    case FAMILY_sort: return split_before(c, s, a->sort.axis, 1);
    case FAMILY_argsort: return split_before(c, s, a->argsort.axis, 1);
    case FAMILY_topk: return split_before(c, s, a->topk.axis, 1);
    case FAMILY_arg_extreme: return split_before(c, s, a->arg_extreme.axis, 1);
    case FAMILY_narrow: return split_before(c, s, a->narrow.axis, 1);
    case FAMILY_layer_norm: return split_before(c, s, a->layer_norm.axis, 1);
    case FAMILY_rms_norm: return split_before(c, s, a->rms_norm.axis, 1);
    case FAMILY_layer_norm_backward:
        return split_gradient(c, s, RLX_OP_layer_norm_backward_input, a->layer_norm_backward.axis);
    case FAMILY_rms_norm_backward:
        return split_gradient(c, s, RLX_OP_rms_norm_backward_input, a->rms_norm_backward.axis);
    case FAMILY_batch_norm_inference_backward:
        return split_gradient(c, s, RLX_OP_batch_norm_inference_backward_input, last);
    case FAMILY_batch_norm_inference:
    case FAMILY_fft:
    case FAMILY_log_mel:
    case FAMILY_fused_swiglu:
    case FAMILY_dequant_matmul: return split_before(c, s, last, 1);
    case FAMILY_fused_residual_norm: return split_before(c, s, last, 3);
    case FAMILY_softmax_cross_entropy_backward: return split_before(c, s, last, 7);
    case FAMILY_softmax_cross_entropy_with_logits:
    case FAMILY_softmax_cross_entropy: return split_before(c, s, last + 1, 3);
    default: return false;
    }
}

/* Items of a batch: images, matrices, sequences. */
static bool find_items(const struct gpu_call *c, struct split *s)
{
    const union ir_attr *a = c->attr;

    switch (op_info(c->op)->family) {
    case FAMILY_group_norm:
    case FAMILY_layer_norm_2d:
    case FAMILY_conv_transpose:
    case FAMILY_conv_backward_input:
    case FAMILY_qconv_2d:
    case FAMILY_pool: return split_before(c, s, 1, 1);
    case FAMILY_conv: return split_images(c, s, a->conv.groups);
    case FAMILY_max_pool_backward: return split_before(c, s, 1, 3);
    case FAMILY_fused_conv_bias_act: return split_before(c, s, 1, 1u | 1u << 3);
    case FAMILY_group_norm_backward:
        return split_gradient(c, s, RLX_OP_group_norm_backward_input, 1);
    case FAMILY_eigh:
    case FAMILY_dense_solve: return split_matrices(c, s);
    case FAMILY_attention: return split_attention(c, s, a->attention.layout, 3);
    case FAMILY_attention_backward: return split_attention(c, s, a->attention_backward.layout, 4);
    default: return find_lines(c, s);
    }
}

static bool find_rows(const struct gpu_call *c, struct split *s)
{
    const union ir_attr *a = c->attr;

    switch (op_info(c->op)->family) {
    case FAMILY_reduce: return split_reduce(c, s);
    case FAMILY_transpose: return split_transpose(c, s);
    case FAMILY_pad: return split_pad(c, s);
    case FAMILY_concat: return split_concat(c, s);
    case FAMILY_expand: follow_broadcast(c, s, 0); return true;
    case FAMILY_gather: return split_gather(c, s, a->gather.axis);
    case FAMILY_dequant_gather: return split_gather(c, s, 0);
    case FAMILY_ada_layer_norm: return split_broadcast(c, s);
    case FAMILY_matmul: return split_product(c, s, a->matmul.transpose_a, a->matmul.transpose_b);
    case FAMILY_fused_matmul_bias_act:
        return split_product(c, s, a->fused_matmul_bias_act.transpose_a,
                             a->fused_matmul_bias_act.transpose_b);
    default: return find_items(c, s);
    }
}

/* The first axis that has something to cut: what is before it has one element. */
static bool find_split(const struct gpu_call *c, struct split *s)
{
    *s = (struct split){0};
    while (s->axis < c->out->rank && c->out->dim[s->axis] == 1)
        s->axis++;
    return s->axis < c->out->rank && c->out->dim[s->axis] > 0 && find_rows(c, s);
}

static bool is_too_large(const struct gpu_call *c)
{
    bool any = c->arg_out.bytes > gpu_seen(c, c->arg_out);

    for (int32_t i = 0; i < c->in_count; i++)
        any |= c->arg_in[i].bytes > gpu_seen(c, c->arg_in[i]);
    return any;
}

uint64_t gpu_aligned_rows(uint64_t row)
{
    uint64_t each = 1;

    while (each * row % GPU_ALIGN)
        each *= 2;
    return each;
}

/* How many rows of so many bytes a kernel can see, from wherever they begin. */
static uint64_t rows_seen(const struct gpu_call *c, struct gpu_arg a, uint64_t row, uint64_t all)
{
    uint64_t seen = row % GPU_ALIGN ? c->max_binding - GPU_ALIGN : gpu_seen(c, a);

    return row ? seen / row : all;
}

/* How many rows at a time, so that parts begin where a buffer can, if that is possible; one where
 * not even that can be seen, which may be cut along the next axis. */
static uint64_t rows_at_once(const struct gpu_call *c, const struct split *s)
{
    uint64_t all = (uint64_t)c->out->dim[s->axis], row = c->arg_out.bytes / all;
    uint64_t each = gpu_aligned_rows(row), most = rows_seen(c, c->arg_out, row, all), fit;

    for (int32_t i = 0; i < c->in_count && i < 64; i++)
        if (s->follows >> i & 1) {
            row = c->arg_in[i].bytes / all;
            fit = rows_seen(c, c->arg_in[i], row, all);
            most = fit < most ? fit : most;
            each = gpu_aligned_rows(row) > each ? gpu_aligned_rows(row) : each;
        }
    most = most < each ? most : most / each * each;
    return most ? most : 1;
}

static struct gpu_arg rows_of(struct gpu_arg a, uint64_t all, uint64_t first, uint64_t count)
{
    return gpu_part(a, a.bytes / all * first, a.bytes / all * count);
}

/* Tiles of matrices do not cross windows. */
static void lower_in_windows(struct gpu_call *c, gpu_lower_fn lower)
{
    const struct kc_features *all = c->features;
    struct kc_features plain = *all;

    plain.coop = plain.coop_group = plain.coop_bf16 = plain.coop_rows = false;
    c->features = &plain;
    lower(c);
    c->features = all;
}

/* ---- columns ---- */

/* A packed weight, which every row meets, has a row of its own for each column of the result. */
static bool has_weight_rows(const struct gpu_call *c)
{
    return op_info(c->op)->family == FAMILY_dequant_matmul &&
           quant_scheme(c->attr->dequant_matmul.scheme)->is_gguf;
}

/* Of how many columns a kernel sees the weight at once; 0: of all. Beside it there is x, up to
 * three times, in one form or another. */
static uint64_t columns_at_once(const struct gpu_call *c)
{
    uint64_t most = c->max_bindings, n = (uint64_t)c->in[1].dim[0];
    uint64_t others = 3 * gpu_windows(c, gpu_in(c, 0)) + gpu_windows(c, gpu_out(c));

    if (others + gpu_windows(c, gpu_in(c, 1)) <= most)
        return 0;
    uint64_t row = gpu_in(c, 1).bytes / n, each = gpu_aligned_rows(row);
    uint64_t fit = ((most > others ? most - others : 1) * c->max_binding - GPU_ALIGN) / row;
    fit = fit < each ? fit : fit / each * each;
    return fit ? fit : 1;
}

/* Some columns after others; where there are several rows, by way of scratch. */
static void lower_columns(struct gpu_call *c, gpu_lower_fn lower, uint64_t each)
{
    const struct gpu_call whole = *c;
    uint64_t n = (uint64_t)c->in[1].dim[0], rows = gpu_count(c->out) / n;
    uint64_t size = rlx_dtype_size(c->out->dtype), scratch;
    struct gpu_arg arg[GPU_OPERANDS], some = {0};
    struct ir_type in[GPU_OPERANDS], out = *c->out;

    memcpy(arg, c->arg_in, (size_t)c->in_count * sizeof *arg);
    memcpy(in, c->in, (size_t)c->in_count * sizeof *in);
    if (rows > 1)
        some = gpu_temp(c, rows * each * size);
    scratch = c->scratch;
    for (uint64_t first = 0, before = scratch; first < n && c->status == RLX_OK; first += each) {
        uint64_t count = n - first < each ? n - first : each;
        struct gpu_arg to = gpu_part(whole.arg_out, first * size,
                                     rows > 1 ? whole.arg_out.bytes - first * size : count * size);
        arg[1] = rows_of(whole.arg_in[1], n, first, count);
        in[1].dim[0] = out.dim[out.rank - 1] = (int64_t)count;
        c->in = in;
        c->out = &out;
        c->arg_in = arg;
        c->arg_out = rows > 1 ? gpu_part(some, 0, rows * count * size) : to;
        c->scratch = before;
        lower_in_windows(c, lower);
        scratch = c->scratch > scratch ? c->scratch : scratch;
        if (rows > 1)
            gpu_copy_columns(c, c->arg_out, count, to, n, rows, count, out.dtype);
    }
    c->in = whole.in;
    c->out = whole.out;
    c->arg_in = whole.arg_in;
    c->arg_out = whole.arg_out;
    c->scratch = scratch;
}

static void lower_large(struct gpu_call *c, gpu_lower_fn lower)
{
    uint64_t columns = has_weight_rows(c) ? columns_at_once(c) : 0;

    if (columns)
        lower_columns(c, lower, columns);
    else
        lower_in_windows(c, lower);
}

/* ---- rows ---- */

static void lower_rows(const struct gpu_call *whole, const struct split *s, uint64_t first,
                       uint64_t count, gpu_lower_fn lower, struct gpu_call *c)
{
    struct gpu_arg arg[GPU_OPERANDS];
    struct ir_type in[GPU_OPERANDS], out = *whole->out;
    uint64_t all = (uint64_t)out.dim[s->axis];

    for (int32_t i = 0; i < whole->in_count; i++) {
        bool cut = i < 64 && (s->follows >> i & 1);
        in[i] = whole->in[i];
        arg[i] = cut ? rows_of(whole->arg_in[i], all, first, count) : whole->arg_in[i];
        if (cut)
            in[i].dim[s->in_axis[i]] = (int64_t)count;
    }
    out.dim[s->axis] = (int64_t)count;
    c->in = in;
    c->out = &out;
    c->arg_in = arg;
    c->arg_out = rows_of(whole->arg_out, all, first, count);
    if (count == 1) {
        gpu_lower_in_parts(c, lower);
    } else if (is_too_large(c)) { /* operands that are not cut */
        lower_large(c, lower);
    } else {
        lower(c);
    }
}

void gpu_lower_in_parts(struct gpu_call *c, gpu_lower_fn lower)
{
    const struct gpu_call whole = *c;
    uint64_t all, most, scratch = 0;
    struct split s;

    if (!is_too_large(c)) {
        lower(c);
        return;
    }
    if (!find_split(c, &s)) {
        lower_large(c, lower);
        return;
    }
    all = (uint64_t)c->out->dim[s.axis];
    most = rows_at_once(c, &s);
    for (uint64_t first = 0; first < all && c->status == RLX_OK; first += most) {
        c->scratch = whole.scratch; /* each has it after the one before */
        lower_rows(&whole, &s, first, all - first < most ? all - first : most, lower, c);
        scratch = c->scratch > scratch ? c->scratch : scratch;
    }
    c->in = whole.in;
    c->out = whole.out;
    c->arg_in = whole.arg_in;
    c->arg_out = whole.arg_out;
    c->scratch = scratch;
}
