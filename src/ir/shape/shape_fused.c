/* shape_fused.c: shape rules of fused ops (ops-core.md 15). Each refuses what its expansion
 * refuses.
 */
#include <inttypes.h>

#include "ir/shape/shape_need.h"

/* act(a b + bias), a and b stored as for matmul; bias broadcasts to the product without enlarging
 * it. */
rlx_status shape_fused_matmul_bias_act(struct shape_call *c)
{
    const struct attr_fused_matmul_bias_act *attr = &c->attr->fused_matmul_bias_act;
    ir_dim dim[RLX_MAX_RANK];
    int32_t rank;

    TRY(shape_need_contractable(c, 0));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_need_same_dtype(c, 0, 2));
    TRY(shape_need_activation(c, attr->activation, c->in[0]->dtype));
    TRY(shape_need_rank(c, 0, 2, RLX_MAX_RANK));
    TRY(shape_need_rank(c, 1, 2, RLX_MAX_RANK));
    TRY(shape_matmul_dims(c, c->in[0], c->in[1], attr->transpose_a, attr->transpose_b, dim, &rank));
    TRY(shape_result(c, c->in[0]->dtype, rank, dim));
    return shape_broadcasts_to(c, c->in[2], c->out, "bias");
}

/* norm(x + residual + bias) over the last axis; gamma, beta and bias are [d]. */
rlx_status shape_fused_residual_norm(struct shape_call *c)
{
    const struct attr_fused_residual_norm *attr = &c->attr->fused_residual_norm;
    const struct ir_type *x = c->in[0];

    if (attr->has_bias)
        TRY(shape_need_inputs(c, 5, "has_bias"));
    else
        TRY(shape_need_inputs(c, 4, "has_bias off"));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    TRY(shape_need_floats(c, attr->has_bias ? 3 : 2));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_need_same_shape(c, 0, 1));
    TRY(shape_need_static(c, x->dim[x->rank - 1], "the normalised axis"));
    for (int32_t i = 2; i < c->in_count; i++) {
        if (i >= c->in_count - 2) /* gamma and beta */
            TRY(shape_need_dtype_or_f32(c, i, 0));
        TRY(shape_need_dims(c, i, &x->dim[x->rank - 1], 1));
    }
    return shape_result_like(c, 0);
}

/* [..., 2n] -> [..., n], cast if asked. */
rlx_status shape_fused_swiglu(struct shape_call *c)
{
    const struct attr_fused_swiglu *attr = &c->attr->fused_swiglu;
    const struct ir_type *x = c->in[0];
    ir_dim half;

    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_divided(c, x->dim[x->rank - 1], 2, "halves of the last axis", &half));
    TRY(shape_result_like(c, 0));
    c->out->dim[x->rank - 1] = half;
    if (attr->cast_to != RLX_ABSENT_DTYPE)
        c->out->dtype = attr->cast_to;
    return RLX_OK;
}

/* hidden [b,s,e] */
static rlx_status need_hidden(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_F));
    return shape_need_rank(c, 0, 3, 3);
}

static rlx_status need_weight(struct shape_call *c, int32_t operand, ir_dim rows, ir_dim columns)
{
    TRY(shape_need_same_dtype(c, 0, operand));
    return shape_need_dims(c, operand, (const ir_dim[]){rows, columns}, 2);
}

static rlx_status need_vector(struct shape_call *c, int32_t operand, ir_dim size)
{
    TRY(shape_need_same_dtype(c, 0, operand));
    return shape_need_dims(c, operand, &size, 1);
}

/* The mask of attention over hidden itself. */
static rlx_status need_self_mask(struct shape_call *c, int32_t operand, int64_t heads)
{
    const struct ir_type *x = c->in[0];

    TRY(shape_need_class(c, operand, CLASS_B | CLASS_REAL));
    return shape_need_mask(c, operand, x->dim[0], heads, x->dim[1], x->dim[1]);
}

/* hidden [b,s,e], qkv_w [e,(h+2hkv) d], out_w [h d,e], mask, qkv_b, out_b, cos, sin -> like hidden.
 */
rlx_status shape_fused_attention_block(struct shape_call *c)
{
    struct attr_fused_attention_block *attr = &c->attr->fused_attention_block;
    const struct ir_type *x = c->in[0];
    struct dim_table *t = c->mod->dims;
    int32_t next = 4;

    TRY(shape_need_inputs(c, 4 + (attr->has_bias ? 2 : 0) + (attr->has_rope ? 2 : 0),
                          "these has_bias and has_rope"));
    TRY(need_hidden(c));
    TRY(shape_need_heads(c, attr->num_heads, &attr->num_kv_heads, attr->head_dim));
    TRY(shape_need_softcap(c, attr->logit_softcap));
    ir_dim e = x->dim[2], q = dim_mul(t, attr->num_heads, attr->head_dim);
    ir_dim qkv = dim_add(t, q, dim_mul(t, 2, dim_mul(t, attr->num_kv_heads, attr->head_dim)));
    TRY(need_weight(c, 1, e, qkv));
    TRY(need_weight(c, 2, q, e));
    TRY(need_self_mask(c, 3, attr->num_heads));
    if (attr->has_bias) {
        TRY(need_vector(c, next++, qkv));
        TRY(need_vector(c, next++, e));
    }
    if (attr->has_rope) {
        if (attr->head_dim % 2 != 0)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: has_rope needs an even head_dim, not %" PRId64,
                              c->name, attr->head_dim);
        TRY(shape_need_rope_tables(c, next, x->dim[0], x->dim[1], attr->head_dim / 2));
    }
    return shape_result_like(c, 0);
}

/* A layer norm's scale or shift: [e], which may stay f32. */
static rlx_status need_norm(struct shape_call *c, int32_t operand, ir_dim size)
{
    TRY(shape_need_dtype_or_f32(c, operand, 0));
    return shape_need_dims(c, operand, &size, 1);
}

/* hidden, qkv_w (b), out_w (b), ln1_g (b), fc1_w (b), fc2_w (b), ln2_g (b), mask -> like hidden. */
rlx_status shape_fused_transformer_layer(struct shape_call *c)
{
    const struct attr_fused_transformer_layer *attr = &c->attr->fused_transformer_layer;
    const struct ir_type *x = c->in[0];
    struct dim_table *t = c->mod->dims;
    int64_t kv_heads = RLX_ABSENT;
    int32_t step = attr->has_bias ? 2 : 1; /* from one of these operands to the next */

    TRY(shape_need_inputs(c, attr->has_bias ? 14 : 8,
                          attr->has_bias ? "has_bias" : "has_bias off"));
    TRY(need_hidden(c));
    TRY(shape_need_heads(c, attr->num_heads, &kv_heads, attr->head_dim));
    TRY(shape_need_range(c, "intermediate_size", attr->intermediate_size, 1, INT64_MAX));
    TRY(shape_need_nonnegative(c, "eps1", attr->eps1));
    TRY(shape_need_nonnegative(c, "eps2", attr->eps2));
    TRY(shape_need_activation(c, attr->activation, x->dtype));
    TRY(shape_need_static(c, x->dim[2], "the normalised axis"));
    ir_dim e = x->dim[2], q = dim_mul(t, attr->num_heads, attr->head_dim), qkv = dim_mul(t, 3, q);
    ir_dim inner = attr->intermediate_size;
    TRY(need_weight(c, 1, e, qkv));
    TRY(need_weight(c, 1 + step, q, e));
    TRY(need_norm(c, 1 + 2 * step, e));
    TRY(need_weight(c, 1 + 3 * step, e, inner));
    TRY(need_weight(c, 1 + 4 * step, inner, e));
    TRY(need_norm(c, 1 + 5 * step, e));
    if (attr->has_bias) {
        TRY(need_vector(c, 2, qkv));
        TRY(need_vector(c, 4, e));
        TRY(need_norm(c, 6, e));
        TRY(need_vector(c, 8, inner));
        TRY(need_vector(c, 10, e));
        TRY(need_norm(c, 12, e));
    }
    TRY(need_self_mask(c, c->in_count - 1, attr->num_heads));
    return shape_result_like(c, 0);
}
