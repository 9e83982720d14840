/* expand_blocks.c: attention blocks and whole transformer layers as the ops they stand for. */
#include "pass/expand/expand.h"

struct attention_block {
    ir_value hidden, qkv_w, out_w, mask, qkv_b, out_b, cos, sin; /* RLX_NO_VALUE: absent */
    int64_t heads, kv_heads, head_dim;
    float scale, softcap;
};

static rlx_status project(struct rebuild *r, ir_value x, ir_value w, ir_value bias, ir_value *out)
{
    TRY(expand_2(r, RLX_OP_matmul, x, w, out));
    return bias == RLX_NO_VALUE ? RLX_OK : expand_2(r, RLX_OP_add, *out, bias, out);
}

static rlx_status rotate(struct rebuild *r, const struct attention_block *b, ir_value *x)
{
    union ir_attr attr;

    if (b->cos == RLX_NO_VALUE)
        return RLX_OK;
    attr_defaults(RLX_OP_rope, &attr);
    attr.rope.head_dim = b->head_dim;
    return rebuild_add(r, RLX_OP_rope, (const ir_value[]){*x, b->cos, b->sin}, 3, &attr, x);
}

/* Columns of the projection: the query heads, then the key heads, then the value heads. */
static rlx_status attend(struct rebuild *r, const struct attention_block *b, ir_value *out)
{
    int64_t wide = b->heads * b->head_dim, narrow = b->kv_heads * b->head_dim;
    ir_value qkv, q, k, v, y;
    union ir_attr attr;

    TRY(project(r, b->hidden, b->qkv_w, b->qkv_b, &qkv));
    TRY(expand_narrow(r, qkv, 2, 0, wide, &q));
    TRY(expand_narrow(r, qkv, 2, wide, narrow, &k));
    TRY(expand_narrow(r, qkv, 2, wide + narrow, narrow, &v));
    TRY(rotate(r, b, &q));
    TRY(rotate(r, b, &k));
    attr_defaults(RLX_OP_attention, &attr);
    attr.attention.num_heads = b->heads;
    attr.attention.num_kv_heads = b->kv_heads;
    attr.attention.head_dim = b->head_dim;
    attr.attention.mask_kind = RLX_MASK_KIND_custom;
    attr.attention.score_scale = b->scale;
    attr.attention.logit_softcap = b->softcap;
    attr.attention.layout = RLX_ATTENTION_LAYOUT_packed;
    TRY(rebuild_add(r, RLX_OP_attention, (const ir_value[]){q, k, v, b->mask}, 4, &attr, &y));
    return project(r, y, b->out_w, b->out_b, out);
}

rlx_status expand_attention_block(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                  ir_value *out)
{
    const struct attr_fused_attention_block *a = &n->attr.fused_attention_block;
    const ir_value *rope = in + (a->has_bias ? 6 : 4);
    const struct attention_block b = {
        .hidden = in[0],
        .qkv_w = in[1],
        .out_w = in[2],
        .mask = in[3],
        .qkv_b = a->has_bias ? in[4] : RLX_NO_VALUE,
        .out_b = a->has_bias ? in[5] : RLX_NO_VALUE,
        .cos = a->has_rope ? rope[0] : RLX_NO_VALUE,
        .sin = a->has_rope ? rope[1] : RLX_NO_VALUE,
        .heads = a->num_heads,
        .kv_heads = a->num_kv_heads,
        .head_dim = a->head_dim,
        .scale = a->score_scale,
        .softcap = a->logit_softcap,
    };

    return attend(r, &b, out);
}

static rlx_status residual_norm(struct rebuild *r, ir_value x, ir_value residual, ir_value gamma,
                                ir_value beta, float eps, ir_value *out)
{
    ir_value sum, zero = beta;
    union ir_attr attr;

    TRY(expand_2(r, RLX_OP_add, residual, x, &sum));
    if (beta == RLX_NO_VALUE)
        TRY(rebuild_fill(r, expand_type(r, gamma)->dtype, expand_type(r, gamma)->dim[0], 0, &zero));
    attr_defaults(RLX_OP_layer_norm, &attr);
    attr.layer_norm.eps = eps;
    return rebuild_add(r, RLX_OP_layer_norm, (const ir_value[]){sum, gamma, zero}, 3, &attr, out);
}

rlx_status expand_transformer_layer(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                    ir_value *out)
{
    const struct attr_fused_transformer_layer *a = &n->attr.fused_transformer_layer;
    bool has = a->has_bias;
    const ir_value *at = in;
    ir_value y, h1, hidden = *at++;
    /* Operands come in this order; those after `has ?` only with biases. */
    ir_value qkv_w = *at++, qkv_b = has ? *at++ : RLX_NO_VALUE;
    ir_value out_w = *at++, out_b = has ? *at++ : RLX_NO_VALUE;
    ir_value ln1_g = *at++, ln1_b = has ? *at++ : RLX_NO_VALUE;
    ir_value fc1_w = *at++, fc1_b = has ? *at++ : RLX_NO_VALUE;
    ir_value fc2_w = *at++, fc2_b = has ? *at++ : RLX_NO_VALUE;
    ir_value ln2_g = *at++, ln2_b = has ? *at++ : RLX_NO_VALUE, mask = *at;
    const struct attention_block b = {
        .hidden = hidden,
        .qkv_w = qkv_w,
        .out_w = out_w,
        .mask = mask,
        .qkv_b = qkv_b,
        .out_b = out_b,
        .cos = RLX_NO_VALUE,
        .sin = RLX_NO_VALUE,
        .heads = a->num_heads,
        .kv_heads = a->num_heads,
        .head_dim = a->head_dim,
        .scale = RLX_ABSENT_F,
        .softcap = RLX_ABSENT_F,
    };

    TRY(attend(r, &b, &y));
    TRY(residual_norm(r, y, hidden, ln1_g, ln1_b, a->eps1, &h1));
    TRY(project(r, h1, fc1_w, fc1_b, &y));
    TRY(expand_activation(r, a->activation, y, &y));
    TRY(project(r, y, fc2_w, fc2_b, &y));
    return residual_norm(r, y, h1, ln2_g, ln2_b, a->eps2, out);
}
