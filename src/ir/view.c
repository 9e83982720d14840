/* view.c: which results lie inside their first operand, so that nothing has to be moved. */
#include "ir/graph.h"

static bool leading_dims_are_one(const struct ir_type *t, int64_t axis)
{
    for (int64_t i = 0; i < axis; i++)
        if (t->dim[i] != 1)
            return false;
    return true;
}

static bool transpose_moves_only_ones(const struct ir_node *n, const struct ir_type *x)
{
    const rlx_list *perm = &n->attr.transpose.perm;
    int64_t last = -1;

    for (int32_t i = 0; i < perm->count; i++) {
        if (x->dim[perm->at[i]] == 1)
            continue;
        if (perm->at[i] < last)
            return false;
        last = perm->at[i];
    }
    return true;
}

bool family_is_view(enum op_family f)
{
    return (family_info(f)->traits & IS_VIEW) != 0;
}

bool ir_is_view(const struct ir_graph *g, const struct ir_node *n)
{
    const struct ir_type *x = n->in_count ? ir_type_of(g, n->in[0]) : NULL;

    if (!x)
        return false;
    switch (n->op) {
    case RLX_OP_cast: return x->dtype == n->type.dtype;
    case RLX_OP_transpose: return transpose_moves_only_ones(n, x);
    case RLX_OP_narrow: return leading_dims_are_one(x, n->attr.narrow.axis);
    default: return family_is_view(op_info(n->op)->family);
    }
}
