/* rule_movement.c: elements that were moved, cut, joined or repeated (ops-core.md 6): the gradient
 * moves in the opposite direction, and where an element went to several places, their gradients are
 * added. */
#include "autodiff/rule.h"

static struct ir_type type_of_x(const struct vjp *v)
{
    return *vjp_type(v, 0); /* nodes move when others are added */
}

void vjp_reshape(struct vjp *v)
{
    const struct ir_type x = type_of_x(v);

    vjp_add(v, 0, formula_reshape(&v->f, v->dy, formula_shape(&x)));
}

void vjp_transpose(struct vjp *v)
{
    const rlx_list *perm = &v->n->attr.transpose.perm;
    rlx_list back = {.count = perm->count};

    for (int32_t i = 0; i < perm->count; i++)
        back.at[perm->at[i]] = i;
    vjp_add(v, 0, formula_transpose(&v->f, v->dy, back));
}

void vjp_expand(struct vjp *v)
{
    vjp_add(v, 0, v->dy);
}

void vjp_reverse(struct vjp *v)
{
    vjp_add(v, 0, formula_node(&v->f, RLX_OP_reverse, &v->dy, 1, &v->n->attr));
}

void vjp_trilu(struct vjp *v)
{
    vjp_add(v, 0, formula_node(&v->f, RLX_OP_trilu, &v->dy, 1, &v->n->attr));
}

/* ---- parts of an axis ---- */

/* What is left of n after the first a and b. */
static ir_dim rest_of(const struct formula *f, ir_dim n, ir_dim a, ir_dim b)
{
    return dim_sub(rule_dims(f), n, dim_add(rule_dims(f), a, b));
}

void vjp_narrow(struct vjp *v)
{
    const struct attr_narrow *a = &v->n->attr.narrow;
    ir_dim after = rest_of(&v->f, vjp_type(v, 0)->dim[a->axis], a->start, a->len);

    vjp_add(v, 0, rule_pad(&v->f, v->dy, a->axis, a->start, after, 0));
}

void vjp_concat(struct vjp *v)
{
    int64_t axis = v->n->attr.concat.axis;
    ir_dim start = 0;

    for (int32_t i = 0; i < v->n->in_count; i++) {
        ir_dim len = vjp_type(v, i)->dim[axis];
        if (vjp_wanted(v, i))
            vjp_add(v, i,
                    v->n->in_count == 1 ? v->dy : formula_narrow(&v->f, v->dy, axis, start, len));
        start = dim_add(rule_dims(&v->f), start, len);
    }
}

/* dy [outer, len, inner]: step - 1 zeros after every element of the axis. */
static ir_value part_with_zeros(struct formula *f, ir_value dy, int64_t step)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, dy);
    ir_value apart = formula_reshape(f, dy, RLX_LIST(t.dim[0], t.dim[1], 1, t.dim[2]));

    return formula_reshape(f, rule_pad(f, apart, 2, 0, step - 1, 0),
                           RLX_LIST(t.dim[0], dim_mul(rule_dims(f), t.dim[1], step), t.dim[2]));
}

/* dy [outer, len, inner] to the places start, start + step, .. of n. If len is not known, there may
 * not be a last element after which to stop, and more zeros follow than needed. */
static ir_value spread(struct formula *f, ir_value dy, ir_dim start, ir_dim len, int64_t step,
                       ir_dim n)
{
    if (step > 1)
        dy = part_with_zeros(f, dy, step);
    if (!dim_is_static(len))
        return formula_narrow(f, rule_pad(f, dy, 1, start, n, 0), 1, 0, n);
    ir_dim covered = (len - 1) * step + 1;
    if (step > 1)
        dy = formula_narrow(f, dy, 1, 0, covered);
    return rule_pad(f, dy, 1, start, rest_of(f, n, start, covered), 0);
}

void vjp_slice(struct vjp *v)
{
    const struct attr_slice *a = &v->n->attr.slice;
    struct formula *f = &v->f;
    struct dim_table *d = rule_dims(f);
    const struct ir_type x = type_of_x(v);
    ir_dim start = a->start, n = x.dim[a->axis];
    ir_dim outer = rule_product(f, x.dim, (int32_t)a->axis);
    ir_dim inner = rule_product(f, x.dim + a->axis + 1, x.rank - (int32_t)a->axis - 1);

    if (a->len == 0) {
        vjp_add(v, 0, rule_zeros(f, v->n->in[0]));
        return;
    }
    ir_value dy = formula_reshape(f, v->dy, RLX_LIST(outer, a->len, inner));
    if (a->step < 0) { /* the last comes first */
        dy = formula_reverse(f, dy, 1);
        start = dim_sub(d, dim_add(d, start, -a->step), dim_mul(d, a->len, -a->step));
    }
    dy = spread(f, dy, start, a->len, a->step < 0 ? -a->step : a->step, n);
    vjp_add(v, 0, formula_reshape(f, dy, formula_shape(&x)));
}

/* ---- padding ---- */

/* What one axis got around its n elements, added where it came from. b and a: how many elements
 * come before and after. */
static ir_value fold_padding(struct formula *f, ir_value dy, int64_t axis, int32_t mode, ir_dim n,
                             ir_dim b, ir_dim a)
{
    struct dim_table *d = rule_dims(f);
    ir_value front = formula_narrow(f, dy, axis, 0, b), dx = formula_narrow(f, dy, axis, b, n);
    ir_value after = formula_narrow(f, dy, axis, dim_add(d, b, n), a);
    ir_dim last = dim_sub(d, n, 1);

    switch (mode) {
    case RLX_PAD_MODE_circular:
        front = rule_pad(f, front, axis, dim_sub(d, n, b), 0, 0);
        after = rule_pad(f, after, axis, 0, dim_sub(d, n, a), 0);
        break;
    case RLX_PAD_MODE_reflect: /* element 1 and on, from the last one back */
        front = rule_pad(f, formula_reverse(f, front, axis), axis, 1, rest_of(f, n, 1, b), 0);
        after = rule_pad(f, formula_reverse(f, after, axis), axis, rest_of(f, n, 1, a), 1, 0);
        break;
    default:
        front = formula_reduce(f, RLX_OP_reduce_sum, front, RLX_LIST(axis), true);
        after = formula_reduce(f, RLX_OP_reduce_sum, after, RLX_LIST(axis), true);
        front = rule_pad(f, front, axis, 0, last, 0);
        after = rule_pad(f, after, axis, last, 0, 0);
    }
    if (b != 0)
        dx = ADD(dx, front);
    return a != 0 ? ADD(dx, after) : dx;
}

void vjp_pad(struct vjp *v)
{
    const struct attr_pad *a = &v->n->attr.pad;
    struct formula *f = &v->f;
    const struct ir_type x = type_of_x(v);
    ir_value dx = v->dy;

    for (int32_t i = 0; i < x.rank; i++) {
        ir_dim before = a->before.at[i], after = a->after.at[i];
        if (before == 0 && after == 0)
            continue;
        dx = a->mode == RLX_PAD_MODE_constant
                 ? formula_narrow(f, dx, i, before, x.dim[i])
                 : fold_padding(f, dx, i, a->mode, x.dim[i], before, after);
    }
    vjp_add(v, 0, dx);
}

/* ---- repetition ---- */

/* Axis by axis, from the first: [before, reps, size and all that follows]. */
void vjp_tile(struct vjp *v)
{
    const rlx_list *reps = &v->n->attr.tile.reps;
    struct formula *f = &v->f;
    const struct ir_type x = type_of_x(v);
    ir_value dx = v->dy;

    for (int32_t i = 0; i < x.rank; i++) {
        if (reps->at[i] == 1)
            continue;
        ir_dim before = rule_product(f, x.dim, i);
        ir_dim after = rule_product(f, v->n->type.dim + i + 1, x.rank - i - 1);
        rlx_list shape = RLX_LIST(before, reps->at[i], dim_mul(rule_dims(f), x.dim[i], after));
        dx =
            formula_reduce(f, RLX_OP_reduce_sum, formula_reshape(f, dx, shape), RLX_LIST(1), false);
    }
    vjp_add(v, 0, formula_reshape(f, dx, formula_shape(&x)));
}

void vjp_resize_nearest_2x(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct ir_type x = type_of_x(v);
    ir_value blocks =
        formula_reshape(f, v->dy, RLX_LIST(x.dim[0], x.dim[1], x.dim[2], 2, x.dim[3], 2));

    vjp_add(v, 0, formula_reduce(f, RLX_OP_reduce_sum, blocks, RLX_LIST(3, 5), false));
}

/* Along each axis, element dst came from element dst in / out, rounded down. */
void vjp_interpolate_3d(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct ir_type x = type_of_x(v);
    ir_value dx = v->dy;

    for (int32_t i = 2; i < 5; i++) {
        ir_dim in = x.dim[i], out = v->n->type.dim[i];
        union ir_attr attr;
        if (in == out)
            continue;
        ir_value from = DIV(MUL(rule_positions(f, out), rule_size(f, in)), rule_size(f, out));
        attr_defaults(RLX_OP_gather_backward, &attr);
        attr.gather_backward.axis = i;
        attr.gather_backward.table_dim = in;
        dx = formula_node(f, RLX_OP_gather_backward, (const ir_value[]){dx, from}, 2, &attr);
    }
    vjp_add(v, 0, dx);
}
