/* expand_dot.c: a contraction over any axes as one (batched) matrix product.
 *
 *     a [batch, free, contract] x b [batch, contract, free]  ->  [batch, free a, free b]
 *
 * Both operands are permuted to that order and each group is flattened into one axis. Without a
 * batch group it is a plain product of matrices; what is in place already is left alone. */
#include "pass/expand/expand.h"

struct groups {
    rlx_list batch, free, contract; /* axes */
};

static bool holds(const rlx_list *l, int64_t axis)
{
    for (int32_t i = 0; i < l->count; i++)
        if (l->at[i] == axis)
            return true;
    return false;
}

static struct groups group_axes(const struct ir_type *t, const rlx_list *batch,
                                const rlx_list *contract)
{
    struct groups g = {.batch = *batch, .contract = *contract};

    for (int64_t i = 0; i < t->rank; i++)
        if (!holds(batch, i) && !holds(contract, i))
            g.free.at[g.free.count++] = i;
    return g;
}

static void append(rlx_list *to, const rlx_list *from)
{
    for (int32_t i = 0; i < from->count; i++)
        to->at[to->count++] = from->at[i];
}

static ir_dim product(const struct rebuild *r, const struct ir_type *t, const rlx_list *axes)
{
    ir_dim p = 1;

    for (int32_t i = 0; i < axes->count; i++)
        p = dim_mul(r->old->mod->dims, p, t->dim[axes->at[i]]);
    return p;
}

/* The operand as [batch, first, second], or [first, second] without batch axes. */
static rlx_status arrange(struct rebuild *r, ir_value x, const struct groups *g,
                          const rlx_list *first, const rlx_list *second, ir_value *out)
{
    struct ir_type t = *expand_type(r, x);
    rlx_list perm = {0}, shape = {0};
    bool identity = true;

    append(&perm, &g->batch);
    append(&perm, first);
    append(&perm, second);
    for (int32_t i = 0; i < perm.count; i++)
        identity = identity && perm.at[i] == i;
    *out = x;
    if (!identity)
        TRY(expand_transpose(r, x, perm, out));
    if (g->batch.count)
        shape.at[shape.count++] = product(r, &t, &g->batch);
    shape.at[shape.count++] = product(r, &t, first);
    shape.at[shape.count++] = product(r, &t, second);
    return expand_reshape_to(r, *out, shape, out);
}

rlx_status expand_dot_general(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out)
{
    const struct attr_dot_general *a = &n->attr.dot_general;
    struct groups l = group_axes(expand_type(r, in[0]), &a->lhs_batch, &a->lhs_contracting);
    struct groups h = group_axes(expand_type(r, in[1]), &a->rhs_batch, &a->rhs_contracting);
    ir_value x, y, z;

    TRY(arrange(r, in[0], &l, &l.free, &l.contract, &x));
    TRY(arrange(r, in[1], &h, &h.contract, &h.free, &y));
    TRY(expand_2(r, RLX_OP_matmul, x, y, &z));
    return expand_reshape_to(r, z, rlx_list_of(n->type.rank, n->type.dim), out);
}
