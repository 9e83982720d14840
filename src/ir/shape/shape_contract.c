/* shape_contract.c: shape rules of products, solvers and decompositions (ops-core.md 10, 21). */
#include <inttypes.h>

#include "ir/shape/shape_need.h"

rlx_status shape_matmul_dims(struct shape_call *c, const struct ir_type *a, const struct ir_type *b,
                             bool transpose_a, bool transpose_b, ir_dim *out, int32_t *rank)
{
    ir_dim m = a->dim[a->rank - (transpose_a ? 1 : 2)], k = a->dim[a->rank - (transpose_a ? 2 : 1)];
    ir_dim n = b->dim[b->rank - (transpose_b ? 2 : 1)],
           kb = b->dim[b->rank - (transpose_b ? 1 : 2)];

    TRY(shape_need_equal(c, k, kb, "inner dimensions"));
    TRY(shape_broadcast_batch(c, a, b, out, rank));
    out[(*rank)++] = m;
    out[(*rank)++] = n;
    return RLX_OK;
}

/* matmul: [..., m, k] x [..., k, n] -> [..., m, n]. The leading axes broadcast. */
rlx_status shape_matmul(struct shape_call *c)
{
    const struct attr_matmul *attr = &c->attr->matmul;
    ir_dim dim[RLX_MAX_RANK];
    int32_t rank;

    TRY(shape_need_contractable(c, 0));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_need_rank(c, 0, 2, RLX_MAX_RANK));
    TRY(shape_need_rank(c, 1, 2, RLX_MAX_RANK));
    TRY(shape_matmul_dims(c, c->in[0], c->in[1], attr->transpose_a, attr->transpose_b, dim, &rank));
    return shape_result(c, c->in[0]->dtype, rank, dim);
}

static bool list_has(const rlx_list *l, int64_t axis)
{
    for (int32_t i = 0; i < l->count; i++)
        if (l->at[i] == axis)
            return true;
    return false;
}

/* The axes of one operand of dot_general: two lists that name no axis twice. */
static rlx_status operand_axes(struct shape_call *c, int32_t operand, const char *contracting_name,
                               rlx_list *contracting, const char *batch_name, rlx_list *batch)
{
    int32_t rank = c->in[operand]->rank;

    TRY(shape_axes(c, contracting_name, contracting, rank));
    TRY(shape_axes(c, batch_name, batch, rank));
    for (int32_t i = 0; i < batch->count; i++)
        if (list_has(contracting, batch->at[i]))
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: axis %" PRId64 " is in both %s and %s", c->name,
                              batch->at[i], contracting_name, batch_name);
    return RLX_OK;
}

static rlx_status paired_axes(struct shape_call *c, const rlx_list *a, const rlx_list *b,
                              const char *what)
{
    if (a->count != b->count)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s do not pair up: %d and %d axes", c->name, what,
                          a->count, b->count);
    for (int32_t i = 0; i < a->count; i++)
        TRY(shape_need_equal(c, c->in[0]->dim[a->at[i]], c->in[1]->dim[b->at[i]], what));
    return RLX_OK;
}

/* dot_general: batch axes, then the free axes of a, then those of b. */
rlx_status shape_dot_general(struct shape_call *c)
{
    struct attr_dot_general *attr = &c->attr->dot_general;
    const struct ir_type *a = c->in[0], *b = c->in[1];
    ir_dim dim[2 * RLX_MAX_RANK];
    int32_t rank = 0;

    TRY(shape_need_contractable(c, 0));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(operand_axes(c, 0, "lhs_contracting", &attr->lhs_contracting, "lhs_batch",
                     &attr->lhs_batch));
    TRY(operand_axes(c, 1, "rhs_contracting", &attr->rhs_contracting, "rhs_batch",
                     &attr->rhs_batch));
    TRY(paired_axes(c, &attr->lhs_contracting, &attr->rhs_contracting, "contracting axes"));
    TRY(paired_axes(c, &attr->lhs_batch, &attr->rhs_batch, "batch axes"));
    for (int32_t i = 0; i < attr->lhs_batch.count; i++)
        dim[rank++] = a->dim[attr->lhs_batch.at[i]];
    for (int32_t i = 0; i < a->rank; i++)
        if (!list_has(&attr->lhs_batch, i) && !list_has(&attr->lhs_contracting, i))
            dim[rank++] = a->dim[i];
    for (int32_t i = 0; i < b->rank; i++)
        if (!list_has(&attr->rhs_batch, i) && !list_has(&attr->rhs_contracting, i))
            dim[rank++] = b->dim[i];
    return shape_result(c, a->dtype, rank, dim);
}

/* grouped_matmul: x [m,k], w [e,k,n], expert [m] -> [m,n]. */
rlx_status shape_grouped_matmul(struct shape_call *c)
{
    const struct ir_type *x = c->in[0], *w = c->in[1];

    TRY(shape_need_contractable(c, 0));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_need_index(c, 2));
    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(shape_need_rank(c, 1, 3, 3));
    TRY(shape_need_equal(c, x->dim[1], w->dim[1], "inner dimensions"));
    TRY(shape_need_dims(c, 2, &x->dim[0], 1));
    TRY(shape_need_least(c, w->dim[0], 1, "experts"));
    TRY(shape_need_most(c, w->dim[0], SHAPE_MAX_INDEXED, "experts"));
    TRY(shape_need_most(c, x->dim[0], SHAPE_MAX_INDEXED, "rows"));
    return shape_result(c, x->dtype, 2, (const ir_dim[]){x->dim[0], w->dim[2]});
}

/* x [m,k], dy [m,n], expert [m] -> [experts,k,n]. */
rlx_status shape_grouped_matmul_backward_weight(struct shape_call *c)
{
    const struct ir_type *x = c->in[0], *dy = c->in[1];
    ir_dim experts = c->attr->grouped_matmul_backward_weight.experts;

    TRY(shape_need_floats(c, 2));
    TRY(shape_need_index(c, 2));
    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(shape_need_rank(c, 1, 2, 2));
    TRY(shape_need_size(c, "experts", experts));
    TRY(shape_need_equal(c, x->dim[0], dy->dim[0], "rows of x and dy"));
    TRY(shape_need_dims(c, 2, &x->dim[0], 1));
    TRY(shape_need_most(c, experts, SHAPE_MAX_INDEXED, "experts"));
    TRY(shape_need_most(c, x->dim[0], SHAPE_MAX_INDEXED, "rows"));
    return shape_result(c, x->dtype, 3, (const ir_dim[]){experts, x->dim[1], dy->dim[1]});
}

/* lora_matmul: x [...,k], w [k,n], a [k,r], b [r,n] -> [...,n]. */
rlx_status shape_lora_matmul(struct shape_call *c)
{
    const struct ir_type *x = c->in[0], *w = c->in[1], *a = c->in[2], *b = c->in[3];

    TRY(shape_need_floats(c, 4));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    for (int32_t i = 1; i < 4; i++)
        TRY(shape_need_rank(c, i, 2, 2));
    ir_dim k = x->dim[x->rank - 1];
    TRY(shape_need_equal(c, k, w->dim[0], "inner dimensions of x and w"));
    TRY(shape_need_equal(c, k, a->dim[0], "inner dimensions of x and a"));
    TRY(shape_need_equal(c, a->dim[1], b->dim[0], "inner dimensions of a and b"));
    TRY(shape_need_equal(c, w->dim[1], b->dim[1], "columns of w and b"));
    TRY(shape_result_like(c, 0));
    c->out->dim[x->rank - 1] = w->dim[1];
    return RLX_OK;
}

/* The last two axes are equal. */
static rlx_status need_square(struct shape_call *c, int32_t operand)
{
    const struct ir_type *t = c->in[operand];

    return shape_need_equal(c, t->dim[t->rank - 2], t->dim[t->rank - 1],
                            "rows and columns of a square matrix");
}

/* a [lead,n,n], b [lead,n] or [lead,n,r] -> like b, with `lead` axes in front. */
static rlx_status solve(struct shape_call *c, int32_t lead)
{
    const struct ir_type *a = c->in[0], *b = c->in[1];

    TRY(shape_need_floats(c, 2));
    TRY(shape_need_rank(c, 0, lead + 2, lead + 2));
    TRY(shape_need_rank(c, 1, lead + 1, lead + 2));
    TRY(need_square(c, 0));
    if (lead)
        TRY(shape_need_equal(c, a->dim[0], b->dim[0], "batch sizes"));
    TRY(shape_need_equal(c, a->dim[lead], b->dim[lead], "rows of a and b"));
    return shape_result_like(c, 1);
}

rlx_status shape_dense_solve(struct shape_call *c)
{
    return solve(c, c->op == RLX_OP_batched_dense_solve ? 1 : 0);
}

rlx_status shape_triangular_solve(struct shape_call *c)
{
    return solve(c, 0);
}

static rlx_status need_matrix(struct shape_call *c, int32_t lead)
{
    TRY(shape_need_floats(c, 1));
    return shape_need_rank(c, 0, lead + 2, lead + 2);
}

rlx_status shape_cholesky(struct shape_call *c)
{
    TRY(need_matrix(c, 0));
    TRY(need_square(c, 0));
    return shape_result_like(c, 0);
}

/* det, logdet: [n,n] -> []. */
rlx_status shape_det(struct shape_call *c)
{
    TRY(need_matrix(c, 0));
    TRY(need_square(c, 0));
    return shape_result(c, c->in[0]->dtype, 0, NULL);
}

/* The smaller of m and n is not an expression: unless they are equal, both must be known. */
static rlx_status thin_size(struct shape_call *c, ir_dim *out)
{
    ir_dim m = c->in[0]->dim[0], n = c->in[0]->dim[1];

    if (m != n) {
        TRY(shape_need_static(c, m, "rows"));
        TRY(shape_need_static(c, n, "columns"));
    }
    *out = m < n ? m : n;
    return RLX_OK;
}

/* svd: [m,n] -> u [m,t], s [t] or vt [t,n], t the smaller of m and n. */
rlx_status shape_svd(struct shape_call *c)
{
    const struct ir_type *a = c->in[0];
    ir_dim t;

    TRY(need_matrix(c, 0));
    TRY(thin_size(c, &t));
    switch (c->attr->svd.part) {
    case RLX_SVD_PART_u: return shape_result(c, a->dtype, 2, (const ir_dim[]){a->dim[0], t});
    case RLX_SVD_PART_vt: return shape_result(c, a->dtype, 2, (const ir_dim[]){t, a->dim[1]});
    default: return shape_result(c, a->dtype, 1, &t);
    }
}

/* qr: [m,n] -> q [m,t] or r [t,n]. */
rlx_status shape_qr(struct shape_call *c)
{
    const struct ir_type *a = c->in[0];
    ir_dim t;

    TRY(need_matrix(c, 0));
    TRY(thin_size(c, &t));
    if (c->attr->qr.part == RLX_QR_PART_q)
        return shape_result(c, a->dtype, 2, (const ir_dim[]){a->dim[0], t});
    return shape_result(c, a->dtype, 2, (const ir_dim[]){t, a->dim[1]});
}

/* eigh: [n,n] -> [n + n n], the values and then the vectors; eigh_batch: a row of these per item.
 */
rlx_status shape_eigh(struct shape_call *c)
{
    const struct ir_type *a = c->in[0];
    int32_t lead = c->op == RLX_OP_eigh_batch ? 1 : 0;
    ir_dim dim[2] = {a->dim[0]};

    TRY(need_matrix(c, lead));
    TRY(need_square(c, 0));
    ir_dim n = a->dim[lead];
    dim[lead] = dim_add(c->mod->dims, n, dim_mul(c->mod->dims, n, n));
    return shape_result(c, a->dtype, lead + 1, dim);
}
