/* eval_contract.c: products of matrices, one element at a time (ops-core.md 10, 19.2). */
#include <math.h>

#include "ir/eval/eval.h"

/* sum += a * b in the class of the dtype. */
static void add_product(rlx_dtype t, struct eval_cell *sum, struct eval_cell a, struct eval_cell b)
{
    if (dtype_is(t, CLASS_INT)) {
        sum->i = eval_wrap(t, (uint64_t)sum->i + (uint64_t)a.i * (uint64_t)b.i);
        return;
    }
    sum->f += a.f * b.f - a.im * b.im;
    sum->im += a.f * b.im + a.im * b.f;
}

/* Where the matrix lies that a (broadcast) batch index of the result selects. */
static int64_t matrix_at(const struct eval_tensor *t, const struct eval_tensor *out,
                         const int64_t *index)
{
    int64_t at = 0;

    for (int32_t i = 0; i < t->type.rank - 2; i++) {
        int64_t o = index[out->type.rank - t->type.rank + i];
        at = at * t->type.dim[i] + (t->type.dim[i] == 1 ? 0 : o);
    }
    return at * t->type.dim[t->type.rank - 2] * t->type.dim[t->type.rank - 1];
}

static void matmul(const struct eval_tensor *a, const struct eval_tensor *b, bool at, bool bt,
                   struct eval_tensor *out)
{
    const struct ir_type *ta = &a->type, *tb = &b->type;
    int64_t columns_a = ta->dim[ta->rank - 1], columns_b = tb->dim[tb->rank - 1];
    int64_t depth = ta->dim[ta->rank - (at ? 2 : 1)];

    for (int64_t k = 0; k < out->count; k++) {
        int64_t index[RLX_MAX_RANK];
        eval_unflatten(out, k, index);
        int64_t m = index[out->type.rank - 2], n = index[out->type.rank - 1];
        int64_t base_a = matrix_at(a, out, index), base_b = matrix_at(b, out, index);
        for (int64_t i = 0; i < depth; i++)
            add_product(out->type.dtype, &out->at[k],
                        a->at[base_a + (at ? i * columns_a + m : m * columns_a + i)],
                        b->at[base_b + (bt ? n * columns_b + i : i * columns_b + n)]);
    }
}

rlx_status eval_matmul(struct eval_call *c)
{
    matmul(c->in[0], c->in[1], c->attr->matmul.transpose_a, c->attr->matmul.transpose_b, c->out);
    return RLX_OK;
}

rlx_status eval_fused_matmul_bias_act(struct eval_call *c)
{
    const struct attr_fused_matmul_bias_act *a = &c->attr->fused_matmul_bias_act;
    rlx_dtype t = c->out->type.dtype;

    matmul(c->in[0], c->in[1], a->transpose_a, a->transpose_b, c->out);
    for (int64_t k = 0; k < c->out->count; k++) {
        struct eval_cell bias = c->in[2]->at[eval_broadcast(c->in[2], c->out, k)];
        struct eval_cell v = eval_cell_binary(RLX_OP_add, t, c->out->at[k], bias);
        bool bare = a->activation == RLX_OP_none || c->sizes;
        c->out->at[k] = bare ? v : eval_cell_unary(a->activation, t, v);
    }
    return RLX_OK;
}

/* The value of the i-th axis of a list, from its position in a mixed-radix count. */
static void spread(const struct eval_tensor *t, const rlx_list *axes, int64_t count, int64_t *index)
{
    for (int32_t i = axes->count; i-- > 0;) {
        int64_t n = t->type.dim[axes->at[i]];
        index[axes->at[i]] = count % n;
        count /= n;
    }
}

static bool listed(const rlx_list *l, int64_t axis)
{
    for (int32_t i = 0; i < l->count; i++)
        if (l->at[i] == axis)
            return true;
    return false;
}

/* Batch axes from the result's first axes, free ones from where `next` stands. */
static void place(const struct eval_tensor *t, const rlx_list *batch, const rlx_list *contract,
                  const int64_t *out_index, int32_t *next, int64_t *index)
{
    for (int32_t i = 0; i < batch->count; i++)
        index[batch->at[i]] = out_index[i];
    for (int32_t i = 0; i < t->type.rank; i++)
        if (!listed(batch, i) && !listed(contract, i))
            index[i] = out_index[(*next)++];
}

rlx_status eval_dot_general(struct eval_call *c)
{
    const struct attr_dot_general *d = &c->attr->dot_general;
    const struct eval_tensor *a = c->in[0], *b = c->in[1];
    int64_t depth = 1;

    for (int32_t i = 0; i < d->lhs_contracting.count; i++)
        depth *= a->type.dim[d->lhs_contracting.at[i]];
    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t o[RLX_MAX_RANK], ia[RLX_MAX_RANK], ib[RLX_MAX_RANK];
        int32_t next = d->lhs_batch.count;
        eval_unflatten(c->out, k, o);
        place(a, &d->lhs_batch, &d->lhs_contracting, o, &next, ia);
        place(b, &d->rhs_batch, &d->rhs_contracting, o, &next, ib);
        for (int64_t i = 0; i < depth; i++) {
            spread(a, &d->lhs_contracting, i, ia);
            spread(b, &d->rhs_contracting, i, ib);
            add_product(c->out->type.dtype, &c->out->at[k], a->at[eval_at(a, ia)],
                        b->at[eval_at(b, ib)]);
        }
    }
    return RLX_OK;
}

rlx_status eval_grouped_matmul(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0], *w = c->in[1];
    int64_t depth = x->type.dim[1], columns = w->type.dim[2], experts = w->type.dim[0];

    for (int64_t m = 0; m < x->type.dim[0]; m++) {
        int64_t e = eval_index(c->in[2], m);
        if (e < 0 || e >= experts)
            return diag_fail(c->diag, RLX_ERROR_INDEX,
                             "grouped_matmul: row %lld names expert %lld of %lld", (long long)m,
                             (long long)e, (long long)experts);
        for (int64_t n = 0; n < columns; n++)
            for (int64_t k = 0; k < depth; k++)
                add_product(c->out->type.dtype, &c->out->at[m * columns + n], x->at[m * depth + k],
                            w->at[(e * depth + k) * columns + n]);
    }
    return RLX_OK;
}

/* Rows without an expert of their own add nothing. */
rlx_status eval_grouped_matmul_backward_weight(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0], *dy = c->in[1];
    int64_t depth = x->type.dim[1], columns = dy->type.dim[1], experts = c->out->type.dim[0];

    for (int64_t m = 0; m < x->type.dim[0]; m++) {
        int64_t e = eval_index(c->in[2], m);
        if (e < 0 || e >= experts)
            continue;
        for (int64_t k = 0; k < depth; k++)
            for (int64_t n = 0; n < columns; n++)
                add_product(c->out->type.dtype, &c->out->at[(e * depth + k) * columns + n],
                            x->at[m * depth + k], dy->at[m * columns + n]);
    }
    return RLX_OK;
}

rlx_status eval_lora_matmul(struct eval_call *c)
{
    const struct eval_tensor *x = c->in[0], *w = c->in[1], *a = c->in[2], *b = c->in[3];
    int64_t depth = w->type.dim[0], columns = w->type.dim[1], rank = a->type.dim[1];
    double scale = (double)c->attr->lora_matmul.scale;

    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t row = k / columns * depth, n = k % columns;
        double sum = 0, low = 0;
        for (int64_t i = 0; i < depth; i++)
            sum += x->at[row + i].f * w->at[i * columns + n].f;
        for (int64_t r = 0; r < rank; r++) {
            double mid = 0;
            for (int64_t i = 0; i < depth; i++)
                mid += x->at[row + i].f * a->at[i * rank + r].f;
            low += mid * b->at[r * columns + n].f;
        }
        c->out->at[k].f = sum + scale * low;
    }
    return RLX_OK;
}

/* sat8(round(mult * acc) + zero point); acc wraps at 32 bits. */
static int64_t requantise(int32_t acc, double mult, int64_t zero_point)
{
    double v = rint(mult * (double)acc) + (double)zero_point;

    return v < -128 ? -128 : v > 127 ? 127 : (int64_t)v;
}

rlx_status eval_qmatmul(struct eval_call *c)
{
    const struct attr_qmatmul *a = &c->attr->qmatmul;
    const struct eval_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2];
    int64_t depth = x->type.dim[x->type.rank - 1], columns = w->type.dim[w->type.rank - 1];

    for (int64_t k = 0; k < c->out->count; k++) {
        uint32_t acc = (uint32_t)bias->at[eval_broadcast(bias, c->out, k)].i;
        for (int64_t i = 0; i < depth; i++)
            acc += (uint32_t)((x->at[k / columns * depth + i].i - a->x_zp) *
                              (w->at[i * columns + k % columns].i - a->w_zp));
        c->out->at[k].i = requantise((int32_t)acc, (double)a->mult, a->out_zp);
    }
    return RLX_OK;
}

rlx_status eval_qconv_2d(struct eval_call *c)
{
    const struct attr_qconv_2d *a = &c->attr->qconv_2d;
    const struct eval_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2];
    const int64_t *xd = x->type.dim, *wd = w->type.dim;

    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t o[RLX_MAX_RANK];
        eval_unflatten(c->out, k, o);
        int64_t group = o[1] / (wd[0] / a->groups);
        uint32_t acc = (uint32_t)bias->at[o[1]].i;
        for (int64_t j = 0; j < wd[1] * wd[2] * wd[3]; j++) {
            int64_t ch = j / (wd[2] * wd[3]), p = j / wd[3] % wd[2], q = j % wd[3];
            int64_t y = o[2] * a->stride.at[0] + p * a->dilation.at[0] - a->padding.at[0];
            int64_t z = o[3] * a->stride.at[1] + q * a->dilation.at[1] - a->padding.at[1];
            if (y < 0 || y >= xd[2] || z < 0 || z >= xd[3])
                continue; /* padding is x_zp, and contributes nothing */
            int64_t at = ((o[0] * xd[1] + group * wd[1] + ch) * xd[2] + y) * xd[3] + z;
            acc += (uint32_t)((x->at[at].i - a->x_zp) *
                              (w->at[o[1] * wd[1] * wd[2] * wd[3] + j].i - a->w_zp));
        }
        c->out->at[k].i = requantise((int32_t)acc, (double)a->mult, a->out_zp);
    }
    return RLX_OK;
}
