/* batch_index.c: elements picked and placed, where each example has its own places. */
#include "autodiff/batch.h"
#include "autodiff/rule.h"

/* Axes [from, from + count) moved to `to`, which counts in what is left without them. */
static ir_value moved(struct formula *f, ir_value x, int32_t from, int32_t count, int32_t to)
{
    rlx_list perm = {0};
    int32_t rank = formula_type(f, x)->rank;

    for (int32_t i = 0, left = 0; i <= rank; i++) {
        bool here = i >= from && i < from + count;
        if (here)
            continue;
        if (left++ == to)
            for (int32_t k = 0; k < count; k++)
                perm.at[perm.count++] = from + k;
        if (i < rank)
            perm.at[perm.count++] = i;
    }
    return formula_transpose(f, x, perm);
}

/* Indices [.., 1], for an op that takes coordinates. */
static ir_value as_coordinates(struct formula *f, ir_value indices)
{
    rlx_list shape = formula_shape(formula_type(f, indices));

    shape.at[shape.count++] = 1;
    return formula_reshape(f, indices, shape);
}

/* Of one table, all examples' indices are one list, whose axes stand where those of one example's
 * did. Where each has its own table, it is picked from by coordinates along the axis, which then
 * comes first. */
ir_value batch_gather(struct batch *b)
{
    struct formula *f = &b->f;
    int32_t axis = (int32_t)b->n->attr.gather.axis, picks = batch_type(b, 1).rank;
    union ir_attr attr;

    if (!b->has[1])
        return batch_shifted(b);
    if (!b->has[0]) {
        ir_value y = formula_node(f, b->n->op, b->in, 2, &b->n->attr);
        return f->status == RLX_OK ? moved(f, y, axis, 1, 0) : y;
    }
    if (picks + 2 > RLX_MAX_RANK || b->n->type.rank + 1 > RLX_MAX_RANK)
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_gather_nd, &attr);
    attr.gather_nd.batch_dims = 1;
    const ir_value in[] = {moved(f, b->in[0], axis + 1, 1, 1), as_coordinates(f, b->in[1])};
    ir_value y = formula_node(f, RLX_OP_gather_nd, in, 2, &attr);
    return f->status == RLX_OK ? moved(f, y, 1, picks, axis + 1) : y;
}

/* Coordinates get one more in front: which example they are of. */
ir_value batch_scatter_nd(struct batch *b)
{
    struct formula *f = &b->f;
    struct ir_type t;

    for (int32_t i = 0; i < 3; i++)
        b->in[i] = batch_lifted(b, i);
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    t = *formula_type(f, b->in[1]);
    rlx_list along = {.count = t.rank, .at = {b->size, 1, 1, 1, 1, 1, 1, 1}};
    t.dim[t.rank - 1] = 1;
    ir_value which = formula_reshape(f, rule_positions(f, b->size), along);
    const ir_value part[] = {formula_expand(f, which, formula_shape(&t)),
                             formula_cast(f, b->in[1], RLX_DTYPE_i64)};
    b->in[1] = formula_concat(f, part, 2, t.rank - 1);
    return formula_node(f, b->n->op, b->in, 3, &b->n->attr);
}
