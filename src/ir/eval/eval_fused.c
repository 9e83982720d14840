/* eval_fused.c: fused ops as their definitions, evaluated as small graphs of simpler ops would be,
 * but without rounding in between (ops-core.md 15). */
#include <math.h>

#include "ir/eval/eval.h"

/* rows of `width` normalised in place, then scaled and shifted; beta NULL: 0. */
static void norm_rows(struct eval_cell *x, int64_t count, int64_t width, bool center, double eps,
                      const struct eval_cell *gamma, const struct eval_cell *beta)
{
    for (int64_t r = 0; width && r < count / width; r++, x += width) {
        double mean = 0, square = 0;
        for (int64_t i = 0; center && i < width; i++)
            mean += x[i].f / (double)width;
        for (int64_t i = 0; i < width; i++)
            square += (x[i].f - mean) * (x[i].f - mean);
        double inverse = 1 / sqrt(square / (double)width + eps);
        for (int64_t i = 0; i < width; i++)
            x[i].f = (x[i].f - mean) * inverse * gamma[i].f + (beta ? beta[i].f : 0);
    }
}

rlx_status eval_fused_residual_norm(struct eval_call *c)
{
    const struct attr_fused_residual_norm *a = &c->attr->fused_residual_norm;
    int32_t first = a->has_bias ? 3 : 2;
    int64_t width = c->out->type.dim[c->out->type.rank - 1];

    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].f =
            c->in[0]->at[k].f + c->in[1]->at[k].f + (a->has_bias ? c->in[2]->at[k % width].f : 0);
    norm_rows(c->out->at, c->out->count, width, c->op == RLX_OP_fused_residual_ln, (double)a->eps,
              c->in[first]->at, c->in[first + 1]->at);
    return RLX_OK;
}

rlx_status eval_fused_swiglu(struct eval_call *c)
{
    int64_t half = c->out->type.dim[c->out->type.rank - 1];
    bool first = c->attr->fused_swiglu.gate_first;

    for (int64_t k = 0; k < c->out->count; k++) {
        const struct eval_cell *row = c->in[0]->at + k / half * 2 * half;
        double lo = row[k % half].f, hi = row[half + k % half].f;
        c->out->at[k].f = eval_unary_value(RLX_OP_silu, first ? lo : hi) * (first ? hi : lo);
    }
    return RLX_OK;
}

/* ---- blocks ---- */

static rlx_status new_tensor(struct eval_call *c, const int64_t *dim, int32_t rank,
                             struct eval_tensor *out)
{
    struct ir_type t = {.dtype = RLX_DTYPE_f64, .rank = rank};

    for (int32_t i = 0; i < rank; i++)
        t.dim[i] = dim[i];
    return eval_tensor_new(c->arena, &t, out, c->diag);
}

/* y [rows, n] = x [rows, k] w [k, n] + bias */
static rlx_status project(struct eval_call *c, const struct eval_tensor *x,
                          const struct eval_tensor *w, const struct eval_tensor *bias,
                          struct eval_tensor *out)
{
    int64_t depth = w->type.dim[0], columns = w->type.dim[1];
    int64_t dim[3] = {x->type.dim[0], x->type.dim[1], columns};

    TRY(new_tensor(c, dim, 3, out));
    for (int64_t k = 0; k < out->count; k++) {
        double v = bias ? bias->at[k % columns].f : 0;
        for (int64_t i = 0; i < depth; i++)
            v += x->at[k / columns * depth + i].f * w->at[i * columns + k % columns].f;
        out->at[k].f = v;
    }
    return RLX_OK;
}

struct block {
    const struct eval_tensor *hidden, *qkv_w, *qkv_b, *out_w, *out_b, *mask, *cos, *sin;
    int64_t heads, kv_heads, head_dim;
    float scale, softcap;
};

/* Columns [from, from + width) of every row. */
static rlx_status columns_of(struct eval_call *c, const struct eval_tensor *x, int64_t from,
                             int64_t width, struct eval_tensor *out)
{
    int64_t all = x->type.dim[2], dim[3] = {x->type.dim[0], x->type.dim[1], width};

    TRY(new_tensor(c, dim, 3, out));
    for (int64_t k = 0; k < out->count; k++)
        out->at[k] = x->at[k / width * all + from + k % width];
    return RLX_OK;
}

static rlx_status call(struct eval_call *c, rlx_op op, const union ir_attr *attr,
                       const struct eval_tensor *const *in, int32_t count, struct eval_tensor *out)
{
    struct eval_call inner = *c;

    TRY(new_tensor(c, in[0]->type.dim, in[0]->type.rank, out));
    inner.op = op;
    inner.attr = attr;
    inner.in = in;
    inner.in_count = count;
    inner.out = out;
    return eval_fn_of(op_info(op)->family)(&inner);
}

static rlx_status rotate(struct eval_call *c, const struct block *b, struct eval_tensor *x)
{
    const struct eval_tensor *in[] = {x, b->cos, b->sin};
    struct eval_tensor out;
    union ir_attr attr;

    if (!b->cos)
        return RLX_OK;
    attr_defaults(RLX_OP_rope, &attr);
    attr.rope.head_dim = attr.rope.n_rot = b->head_dim;
    attr.rope.seq_axis = 1;
    TRY(call(c, RLX_OP_rope, &attr, in, 3, &out));
    *x = out;
    return RLX_OK;
}

static rlx_status attend(struct eval_call *c, const struct block *b, struct eval_tensor *out)
{
    int64_t wide = b->heads * b->head_dim, narrow = b->kv_heads * b->head_dim;
    struct eval_tensor qkv, q, k, v, y;
    const struct eval_tensor *in[] = {&q, &k, &v, b->mask};
    union ir_attr attr;

    TRY(project(c, b->hidden, b->qkv_w, b->qkv_b, &qkv));
    TRY(columns_of(c, &qkv, 0, wide, &q));
    TRY(columns_of(c, &qkv, wide, narrow, &k));
    TRY(columns_of(c, &qkv, wide + narrow, narrow, &v));
    TRY(rotate(c, b, &q));
    TRY(rotate(c, b, &k));
    attr_defaults(RLX_OP_attention, &attr);
    attr.attention.num_heads = b->heads;
    attr.attention.num_kv_heads = b->kv_heads;
    attr.attention.head_dim = b->head_dim;
    attr.attention.mask_kind = RLX_MASK_KIND_custom;
    attr.attention.score_scale = b->scale;
    attr.attention.logit_softcap = b->softcap;
    attr.attention.layout = RLX_ATTENTION_LAYOUT_packed;
    TRY(call(c, RLX_OP_attention, &attr, in, 4, &y));
    return project(c, &y, b->out_w, b->out_b, out);
}

rlx_status eval_fused_attention_block(struct eval_call *c)
{
    const struct attr_fused_attention_block *a = &c->attr->fused_attention_block;
    int32_t rope = a->has_bias ? 6 : 4;
    struct eval_tensor y;
    const struct block b = {
        .hidden = c->in[0],
        .qkv_w = c->in[1],
        .out_w = c->in[2],
        .mask = c->in[3],
        .qkv_b = a->has_bias ? c->in[4] : NULL,
        .out_b = a->has_bias ? c->in[5] : NULL,
        .cos = a->has_rope ? c->in[rope] : NULL,
        .sin = a->has_rope ? c->in[rope + 1] : NULL,
        .heads = a->num_heads,
        .kv_heads = a->num_kv_heads,
        .head_dim = a->head_dim,
        .scale = a->score_scale,
        .softcap = a->logit_softcap,
    };

    TRY(attend(c, &b, &y));
    eval_copy(c->out, &y);
    return RLX_OK;
}

rlx_status eval_fused_transformer_layer(struct eval_call *c)
{
    const struct attr_fused_transformer_layer *a = &c->attr->fused_transformer_layer;
    const struct eval_tensor *operand[14] = {0};
    int64_t width = c->out->type.dim[c->out->type.rank - 1];
    struct eval_tensor y, h, f;
    int32_t next = 0;

    /* hidden qkv_w [qkv_b] out_w [out_b] ln1_g [ln1_b] fc1_w [fc1_b] fc2_w [fc2_b] ln2_g [ln2_b]
     * mask */
    for (int32_t i = 0; i < 14; i++)
        if (a->has_bias || i == 0 || i == 13 || i % 2 == 1)
            operand[i] = c->in[next++];
    const struct block b = {.hidden = operand[0],
                            .qkv_w = operand[1],
                            .qkv_b = operand[2],
                            .out_w = operand[3],
                            .out_b = operand[4],
                            .mask = operand[13],
                            .heads = a->num_heads,
                            .kv_heads = a->num_heads,
                            .head_dim = a->head_dim,
                            .scale = NAN,
                            .softcap = NAN};
    TRY(attend(c, &b, &h));
    for (int64_t k = 0; k < h.count; k++)
        h.at[k].f += operand[0]->at[k].f;
    norm_rows(h.at, h.count, width, true, (double)a->eps1, operand[5]->at,
              operand[6] ? operand[6]->at : NULL);
    TRY(project(c, &h, operand[7], operand[8], &f));
    for (int64_t k = 0; a->activation != RLX_OP_none && k < f.count; k++)
        f.at[k].f = eval_unary_value(a->activation, f.at[k].f);
    TRY(project(c, &f, operand[9], operand[10], &y));
    for (int64_t k = 0; k < y.count; k++)
        c->out->at[k].f = h.at[k].f + y.at[k].f;
    norm_rows(c->out->at, c->out->count, width, true, (double)a->eps2, operand[11]->at,
              operand[12] ? operand[12]->at : NULL);
    return RLX_OK;
}
