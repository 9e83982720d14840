/* rule_parts.c: what several rules are written with. */
#include "autodiff/rule.h"

ir_dim rule_product(const struct formula *f, const ir_dim *dim, int32_t count)
{
    ir_dim p = 1;

    for (int32_t i = 0; i < count; i++)
        p = dim_mul(rule_dims(f), p, dim[i]);
    return p;
}

static ir_value ones(struct formula *f, ir_dim n)
{
    return formula_fill(f, &(struct ir_type){RLX_DTYPE_i64, 1, {n}}, 1);
}

ir_value rule_size(struct formula *f, ir_dim n)
{
    if (dim_is_static(n))
        return formula_number_of(f, RLX_DTYPE_i64, (double)n);
    return formula_reduce(f, RLX_OP_reduce_sum, ones(f, n), RLX_LIST(0), false);
}

ir_value rule_positions(struct formula *f, ir_dim n)
{
    return rule_cumulative(f, RLX_OP_cumsum, ones(f, n), 0, true);
}

ir_value rule_zeros(struct formula *f, ir_value x)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);
    return formula_fill(f, &t, 0);
}

ir_value rule_conjugate(struct formula *f, ir_value z)
{
    if (f->status == RLX_OK && formula_type(f, z)->dtype == RLX_DTYPE_c64)
        return formula_1(f, RLX_OP_conjugate, z);
    return z;
}

ir_value rule_rows(struct formula *f, ir_value x)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);

    return formula_reshape(f, x, RLX_LIST(rule_product(f, t.dim, t.rank - 1), t.dim[t.rank - 1]));
}

ir_value rule_pad(struct formula *f, ir_value x, int64_t axis, ir_dim before, ir_dim after,
                  double value)
{
    union ir_attr attr;

    if (f->status != RLX_OK || (before == 0 && after == 0))
        return x;
    attr_defaults(RLX_OP_pad, &attr);
    attr.pad.before.count = attr.pad.after.count = formula_type(f, x)->rank;
    attr.pad.before.at[axis] = before;
    attr.pad.after.at[axis] = after;
    attr.pad.value = value;
    return formula_node(f, RLX_OP_pad, &x, 1, &attr);
}

ir_value rule_scatter(struct formula *f, ir_value base, ir_value indices, ir_value updates,
                      int64_t axis, bool add)
{
    const ir_value in[] = {base, indices, updates};
    union ir_attr attr;

    attr_defaults(RLX_OP_scatter_elements, &attr);
    attr.scatter_elements.axis = axis;
    attr.scatter_elements.reduction = add ? RLX_SCATTER_REDUCTION_add : RLX_SCATTER_REDUCTION_none;
    return formula_node(f, RLX_OP_scatter_elements, in, 3, &attr);
}

ir_value rule_operand(struct vjp *v, int32_t i)
{
    return formula_cast(&v->f, v->n->in[i], v->f.dtype);
}

ir_value rule_triangle(struct formula *f, ir_value x, bool upper, int64_t diagonal)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_trilu, &attr);
    attr.trilu.upper = upper;
    attr.trilu.diagonal = diagonal;
    return formula_node(f, RLX_OP_trilu, &x, 1, &attr);
}

ir_value rule_solve_triangle(struct formula *f, ir_value a, ir_value b, bool lower, bool transpose)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_triangular_solve, &attr);
    attr.triangular_solve.lower = lower;
    attr.triangular_solve.transpose = transpose;
    return formula_node(f, RLX_OP_triangular_solve, (const ir_value[]){a, b}, 2, &attr);
}

ir_value rule_half_lower(struct formula *f, ir_value x)
{
    return MUL(NUM(0.5), ADD(rule_triangle(f, x, false, 0), rule_triangle(f, x, false, -1)));
}

void vjp_through(struct vjp *v, int32_t i, ir_value first, ir_value out, ir_value dy)
{
    ir_value dx = RLX_NO_VALUE;

    if (v->f.status != RLX_OK || !vjp_wanted(v, i))
        return;
    v->f.status = grad_walk(v->f.g, first, out, dy, &v->n->in[i], 1, &dx, v->f.diag);
    if (dx != RLX_NO_VALUE)
        vjp_add(v, i, dx);
}

ir_value rule_apart(struct formula *f, ir_value x)
{
    union ir_attr attr;

    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    if (formula_type(f, x)->dtype != f->dtype)
        return formula_cast(f, x, f->dtype);
    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape = formula_shape(formula_type(f, x));
    return formula_node(f, RLX_OP_reshape, &x, 1, &attr);
}

ir_value rule_pull(struct formula *f, ir_value first, ir_value y, ir_value dy, ir_value wrt)
{
    ir_value dx = RLX_NO_VALUE;

    if (f->status == RLX_OK)
        f->status = grad_walk(f->g, first, y, dy, &wrt, 1, &dx, f->diag);
    return f->status == RLX_OK && dx == RLX_NO_VALUE ? rule_zeros(f, wrt) : dx;
}
