/* shape_quantised.c: shape rules of ops on quantised weights, and of the gate and the neighbour
 * search (ops-core.md 19.2, ops-special.md 1.6, 4 and 6). */
#include <inttypes.h>

#include "ir/quant/quant_scheme.h"
#include "ir/shape/shape_need.h"

/* qmatmul: i8 x [...,k], i8 w [k,n], i32 bias [n] -> i8 [...,n]. */
rlx_status shape_qmatmul(struct shape_call *c)
{
    const struct attr_qmatmul *attr = &c->attr->qmatmul;
    const struct ir_type *x = c->in[0], *w = c->in[1];

    TRY(shape_need_dtype(c, 0, RLX_DTYPE_i8));
    TRY(shape_need_dtype(c, 1, RLX_DTYPE_i8));
    TRY(shape_need_dtype(c, 2, RLX_DTYPE_i32));
    TRY(shape_need_range(c, "x_zp", attr->x_zp, INT8_MIN, INT8_MAX));
    TRY(shape_need_range(c, "w_zp", attr->w_zp, INT8_MIN, INT8_MAX));
    TRY(shape_need_range(c, "out_zp", attr->out_zp, INT8_MIN, INT8_MAX));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_need_rank(c, 1, 2, 2));
    TRY(shape_need_equal(c, x->dim[x->rank - 1], w->dim[0], "inner dimensions"));
    TRY(shape_need_dims(c, 2, &w->dim[1], 1));
    TRY(shape_result_like(c, 0));
    c->out->dim[x->rank - 1] = w->dim[1];
    return RLX_OK;
}

/* ---- packed weights ------------------------------------------------------------------------ */

/* The scheme of a packed operand u8 [..., row], and its row's bytes for k elements. */
static rlx_status packed_row(struct shape_call *c, int32_t operand, int32_t word, int64_t k)
{
    const struct quant_scheme *s = quant_scheme(word);
    const struct ir_type *w = c->in[operand];
    int64_t bytes;

    TRY(shape_need_dtype(c, operand, RLX_DTYPE_u8));
    TRY(shape_need_range(c, "k", k, 0, INT64_MAX));
    if (!s->is_gguf)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: scheme %s is not a block format", c->name,
                          enum_word("quant_scheme", word));
    if (k % s->block_elems != 0)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: k %" PRId64 " is not a multiple of the block of %d",
                          c->name, k, s->block_elems);
    if (!quant_row_bytes(s, k, &bytes))
        return SHAPE_FAIL(c, LIMIT, "%s: a row of %" PRId64 " elements overflows 64 bits", c->name,
                          k);
    return shape_need_equal(c, w->dim[w->rank - 1], bytes, "row bytes of the packed weight");
}

/* q8 activations exist for block formats, exact ones for all. */
static rlx_status need_act(struct shape_call *c, int32_t act, const struct quant_scheme *s)
{
    if (act == RLX_ACT_PRECISION_exact || s->is_gguf)
        return RLX_OK;
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: act q8 needs a block format, not %s", c->name, s->display);
}

/* FP8's scale: [1], [1,n], or nothing. */
static rlx_status need_fp8_scale(struct shape_call *c, ir_dim n)
{
    const struct ir_type *t = c->in[2];

    TRY(shape_need_dtype(c, 2, RLX_DTYPE_f32));
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0)
            return RLX_OK;
    if (t->rank == 2)
        return shape_need_dims(c, 2, (const ir_dim[]){1, n}, 2);
    return shape_need_dims(c, 2, (const ir_dim[]){1}, 1);
}

/* Scales and zero points beside the weight, one per group of rows and column. */
static rlx_status need_side_tensors(struct shape_call *c, const struct quant_scheme *s, ir_dim n)
{
    const struct attr_dequant_matmul *attr = &c->attr->dequant_matmul;
    int64_t group = s->group ? s->group : attr->block_size;
    ir_dim per_group[] = {attr->k / group + (attr->k % group != 0), n};

    if (!s->has_scale)
        return need_fp8_scale(c, n);
    TRY(shape_need_dtype(c, 2, s->scale_is_fp8 ? RLX_DTYPE_u8 : RLX_DTYPE_f32));
    TRY(shape_need_dims(c, 2, per_group, 2));
    if (!s->scale_is_fp8 && !s->has_zero_point)
        return RLX_OK;
    TRY(shape_need_dtype(c, 3, RLX_DTYPE_f32));
    if (s->scale_is_fp8)
        return shape_need_dims(c, 3, (const ir_dim[]){1}, 1);
    return shape_need_dims(c, 3, per_group, 2);
}

/* w as bytes [k,n], or as nibbles, flat, with n from the attribute. */
static rlx_status side_tensor_weight(struct shape_call *c, const struct quant_scheme *s, ir_dim *n)
{
    const struct attr_dequant_matmul *attr = &c->attr->dequant_matmul;
    int64_t count;

    TRY(shape_need_dtype(c, 1, RLX_DTYPE_u8));
    TRY(shape_need_range(c, "k", attr->k, 0, INT64_MAX));
    if (!s->nibbles) {
        *n = c->in[1]->dim[1];
        return shape_need_dims(c, 1, (const ir_dim[]){attr->k, *n}, 2);
    }
    if (attr->n == RLX_ABSENT)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: scheme %s needs n", c->name, s->display);
    TRY(shape_need_range(c, "n", attr->n, 0, INT64_MAX));
    if (__builtin_mul_overflow(attr->k, attr->n, &count))
        return SHAPE_FAIL(c, LIMIT, "%s: k %" PRId64 " times n %" PRId64 " overflows 64 bits",
                          c->name, attr->k, attr->n);
    *n = attr->n;
    return shape_need_dims(c, 1, (const ir_dim[]){count / 2 + count % 2}, 1);
}

/* dequant_matmul: x [...,k] -> [...,n]. Block formats: w [n,row]; others have scale and zp. */
rlx_status shape_dequant_matmul(struct shape_call *c)
{
    const struct attr_dequant_matmul *attr = &c->attr->dequant_matmul;
    const struct quant_scheme *s = quant_scheme(attr->scheme);
    const struct ir_type *x = c->in[0];
    ir_dim n = c->in[1]->dim[0];

    TRY(shape_need_inputs(c, s->is_gguf ? 2 : 4,
                          s->is_gguf ? "a block format" : "a scheme with side tensors"));
    TRY(shape_need_range(c, "block_size", attr->block_size, 1, INT64_MAX));
    TRY(need_act(c, attr->act, s));
    if (attr->n != RLX_ABSENT && !s->nibbles)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: n %" PRId64 " is superfluous: w determines it",
                          c->name, attr->n);
    TRY(shape_need_dtype(c, 0, RLX_DTYPE_f32));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    if (s->is_gguf) {
        TRY(shape_need_rank(c, 1, 2, 2));
        TRY(packed_row(c, 1, attr->scheme, attr->k));
    } else {
        TRY(side_tensor_weight(c, s, &n));
        TRY(need_side_tensors(c, s, n));
    }
    TRY(shape_need_equal(c, x->dim[x->rank - 1], attr->k, "last axes of x and k"));
    TRY(shape_result_like(c, 0));
    c->out->dim[x->rank - 1] = n;
    return RLX_OK;
}

/* dequant_grouped_matmul: x [m,k], w [e,n,row], expert [m] -> [m,n]. */
rlx_status shape_dequant_grouped_matmul(struct shape_call *c)
{
    const struct attr_dequant_grouped_matmul *attr = &c->attr->dequant_grouped_matmul;
    const struct ir_type *x = c->in[0], *w = c->in[1];

    TRY(shape_need_dtype(c, 0, RLX_DTYPE_f32));
    TRY(shape_need_index(c, 2));
    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(shape_need_rank(c, 1, 3, 3));
    TRY(packed_row(c, 1, attr->scheme, attr->k));
    TRY(shape_need_equal(c, x->dim[1], attr->k, "columns of x and k"));
    TRY(shape_need_dims(c, 2, &x->dim[0], 1));
    TRY(shape_need_least(c, w->dim[0], 1, "experts"));
    TRY(shape_need_most(c, w->dim[0], SHAPE_MAX_INDEXED, "experts"));
    TRY(shape_need_most(c, x->dim[0], SHAPE_MAX_INDEXED, "rows"));
    return shape_result(c, RLX_DTYPE_f32, 2, (const ir_dim[]){x->dim[0], w->dim[1]});
}

/* dequant_moe_weights: w [e,n,row] -> [e,k,n]. */
rlx_status shape_dequant_moe_weights(struct shape_call *c)
{
    const struct attr_dequant_moe_weights *attr = &c->attr->dequant_moe_weights;
    const struct ir_type *w = c->in[0];

    TRY(shape_need_rank(c, 0, 3, 3));
    TRY(packed_row(c, 0, attr->scheme, attr->k));
    return shape_result(c, RLX_DTYPE_f32, 3, (const ir_dim[]){w->dim[0], attr->k, w->dim[1]});
}

/* dequant_gather: table [v,row], indices of any shape -> indices' shape, then k. */
rlx_status shape_dequant_gather(struct shape_call *c)
{
    const struct attr_dequant_gather *attr = &c->attr->dequant_gather;
    const struct ir_type *indices = c->in[1];
    ir_dim dim[RLX_MAX_RANK + 1];

    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(packed_row(c, 0, attr->scheme, attr->k));
    TRY(shape_need_index(c, 1));
    for (int32_t i = 0; i < indices->rank; i++)
        dim[i] = indices->dim[i];
    dim[indices->rank] = attr->k;
    TRY(shape_result(c, RLX_DTYPE_f32, indices->rank + 1, dim));
    return shape_need_elements(c, c->in[0]->dim[0], "rows of the table");
}

/* ---- gate and neighbours ------------------------------------------------------------------- */

/* group_limited_gate: sig and route [...,e] -> [..., 2 top_k], ids and then weights. */
rlx_status shape_group_limited_gate(struct shape_call *c)
{
    const struct attr_group_limited_gate *attr = &c->attr->group_limited_gate;
    const struct ir_type *sig = c->in[0];
    int64_t candidates;

    TRY(shape_need_dtype(c, 0, RLX_DTYPE_f32));
    TRY(shape_need_dtype(c, 1, RLX_DTYPE_f32));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_need_same_shape(c, 0, 1));
    ir_dim experts = sig->dim[sig->rank - 1];
    TRY(shape_need_static(c, experts, "the number of experts"));
    TRY(shape_need_least(c, experts, 1, "experts"));
    TRY(shape_need_most(c, experts, SHAPE_MAX_INDEXED, "experts"));
    TRY(shape_need_range(c, "n_group", attr->n_group, 1, INT64_MAX));
    if (experts % attr->n_group != 0)
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: n_group %" PRId64 " does not divide the %" PRId64 " experts",
                          c->name, attr->n_group, experts);
    TRY(shape_need_range(c, "topk_group", attr->topk_group, 1, attr->n_group));
    candidates = attr->topk_group * (experts / attr->n_group); /* at most experts */
    TRY(shape_need_range(c, "top_k", attr->top_k, 1, candidates));
    TRY(shape_result_like(c, 0));
    c->out->dim[sig->rank - 1] = 2 * attr->top_k;
    return RLX_OK;
}

/* d [n,n], more neighbours than k to choose from. */
static rlx_status need_distances(struct shape_call *c, int64_t k)
{
    const struct ir_type *d = c->in[0];

    TRY(shape_need_dtype(c, 0, RLX_DTYPE_f32));
    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(shape_need_equal(c, d->dim[0], d->dim[1], "rows and columns of d"));
    TRY(shape_need_most(c, d->dim[0], SHAPE_MAX_INDEXED, "points"));
    TRY(shape_need_range(c, "k", k, 1, SHAPE_MAX_INDEXED));
    if (!shape_check(c, CHECK_AT_LEAST, d->dim[0], k + 1, RLX_ERROR_ATTRIBUTE, "points and k"))
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: k %" PRId64 " is not below the %s points", c->name, k,
                          dim_text(c, d->dim[0]));
    return RLX_OK;
}

/* knn: [n,n] -> [n,2k], ids and then distances. */
rlx_status shape_knn(struct shape_call *c)
{
    int64_t k = c->attr->knn.k;

    TRY(need_distances(c, k));
    return shape_result(c, RLX_DTYPE_f32, 2, (const ir_dim[]){c->in[0]->dim[0], 2 * k});
}

/* knn_backward: d, dd [n,k] -> like d. */
rlx_status shape_knn_backward(struct shape_call *c)
{
    int64_t k = c->attr->knn_backward.k;

    TRY(need_distances(c, k));
    TRY(shape_need_dtype(c, 1, RLX_DTYPE_f32));
    TRY(shape_need_dims(c, 1, (const ir_dim[]){c->in[0]->dim[0], k}, 2));
    return shape_result_like(c, 0);
}
