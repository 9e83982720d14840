/* rule_index.c: elements picked or placed by index (ops-core.md 7). What was read from an element
 * is added to its gradient; what was written gets the gradient of the place it went to, and zero
 * where it went nowhere: past the end, or under a later update. */
#include "autodiff/rule.h"

/* A mask for updates [lead.., rest..] from one for [lead..]: ones for the rest, on the right. */
static ir_value with_ones(struct formula *f, ir_value mask, int32_t rank)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, mask);
    rlx_list shape = formula_shape(&t);

    while (shape.count < rank)
        shape.at[shape.count++] = 1;
    return formula_reshape(f, mask, shape);
}

/* Which indices lie inside 0 .. size-1, as the ops read them: floats are cut towards zero. */
static ir_value inside(struct formula *f, ir_value indices, ir_value size)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    rlx_dtype t = formula_type(f, indices)->dtype;
    rlx_dtype wide = dtype_is(t, CLASS_F) ? t : RLX_DTYPE_i64;
    ir_value at = formula_cast(f, indices, wide);
    ir_value least = formula_2(f, RLX_OP_gt, at, formula_number_of(f, wide, -1));

    return formula_2(f, RLX_OP_bit_and, least,
                     formula_2(f, RLX_OP_lt, at, formula_cast(f, size, wide)));
}

/* x where the mask, which may lack axes on the right, holds; else zero. */
static ir_value keep(struct formula *f, ir_value mask, ir_value x)
{
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);

    return formula_where(f, with_ones(f, mask, t.rank), x, formula_number_of(f, t.dtype, 0));
}

/* ---- whole slices, one index each ---- */

static ir_value gather(struct formula *f, ir_value table, ir_value indices, int64_t axis)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = axis;
    return formula_node(f, RLX_OP_gather, (const ir_value[]){table, indices}, 2, &attr);
}

void vjp_gather(struct vjp *v)
{
    int64_t axis = v->n->attr.gather.axis;
    union ir_attr attr;

    attr_defaults(RLX_OP_gather_backward, &attr);
    attr.gather_backward.axis = axis;
    attr.gather_backward.table_dim = vjp_type(v, 0)->dim[axis];
    vjp_add(v, 0,
            formula_node(&v->f, RLX_OP_gather_backward, (const ir_value[]){v->dy, v->n->in[1]}, 2,
                         &attr));
}

/* Operand 0 was added to the rows that operand 1 names, along that axis of the result. */
static void give_rows(struct vjp *v, int64_t axis)
{
    struct formula *f = &v->f;
    ir_value indices = v->n->in[1];
    ir_dim n = v->n->type.dim[axis];
    int32_t rank = vjp_type(v, 0)->rank;

    if (n == 0) { /* there is nothing to read from */
        vjp_add(v, 0, rule_zeros(f, v->n->in[0]));
        return;
    }
    ir_value mask = inside(f, indices, rule_size(f, n));
    vjp_add(v, 0,
            formula_where(f, with_ones(f, mask, rank - (int32_t)axis),
                          gather(f, v->dy, indices, axis),
                          formula_number_of(f, v->n->type.dtype, 0)));
}

void vjp_scatter_add(struct vjp *v)
{
    give_rows(v, 0);
}

void vjp_gather_backward(struct vjp *v)
{
    give_rows(v, v->n->attr.gather_backward.axis);
}

/* ---- single elements ---- */

static ir_value gather_elements(struct formula *f, ir_value data, ir_value indices, int64_t axis)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = axis;
    return formula_node(f, RLX_OP_gather_elements, (const ir_value[]){data, indices}, 2, &attr);
}

void vjp_gather_elements(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value zeros = rule_zeros(f, v->n->in[0]);

    vjp_add(v, 0,
            rule_scatter(f, zeros, v->n->in[1], v->dy, v->n->attr.gather_elements.axis, true));
}

/* 0, 1, 2, .. in a value of that shape: each update's place in the order they are written in. */
static ir_value numbered(struct formula *f, rlx_list shape)
{
    return formula_reshape(f, rule_positions(f, rule_product(f, shape.at, shape.count)), shape);
}

static ir_value filled(struct formula *f, const struct ir_type *like, int32_t rank, double value)
{
    struct ir_type t = *like;

    t.dtype = RLX_DTYPE_i64;
    t.rank = rank;
    return formula_fill(f, &t, value);
}

bool vjp_scatter_elements_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return n->attr.scatter_elements.reduction <= RLX_SCATTER_REDUCTION_add;
}

/* An update was written last if its own number is found at its place. */
void vjp_scatter_elements(struct vjp *v)
{
    const struct attr_scatter_elements *a = &v->n->attr.scatter_elements;
    struct formula *f = &v->f;
    const struct ir_type data = *vjp_type(v, 0), updates = *vjp_type(v, 2);
    ir_value indices = v->n->in[1], mask;
    bool add = a->reduction == RLX_SCATTER_REDUCTION_add;

    if (vjp_wanted(v, 0))
        vjp_add(v, 0,
                add ? v->dy
                    : rule_scatter(f, v->dy, indices, rule_zeros(f, v->n->in[2]), a->axis, false));
    if (!vjp_wanted(v, 2))
        return;
    if (data.dim[a->axis] == 0) {
        vjp_add(v, 2, rule_zeros(f, v->n->in[2]));
        return;
    }
    if (add) {
        mask = inside(f, indices, rule_size(f, data.dim[a->axis]));
    } else {
        ir_value number = numbered(f, formula_shape(&updates));
        ir_value last =
            rule_scatter(f, filled(f, &data, data.rank, -1), indices, number, a->axis, false);
        mask = formula_2(f, RLX_OP_eq, gather_elements(f, last, indices, a->axis), number);
    }
    vjp_add(v, 2, keep(f, mask, gather_elements(f, v->dy, indices, a->axis)));
}

/* ---- by coordinate ---- */

static ir_value gather_nd(struct formula *f, ir_value data, ir_value indices)
{
    return formula_2(f, RLX_OP_gather_nd, data, indices);
}

static ir_value scatter_nd(struct formula *f, ir_value base, ir_value indices, ir_value updates,
                           bool add)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_scatter_nd, &attr);
    attr.scatter_nd.reduction = add ? RLX_SCATTER_REDUCTION_add : RLX_SCATTER_REDUCTION_none;
    return formula_node(f, RLX_OP_scatter_nd, (const ir_value[]){base, indices, updates}, 3, &attr);
}

/* Coordinates, preceded by the positions along the batch axes. */
static ir_value with_batch(struct formula *f, ir_value indices, int32_t batch)
{
    ir_value part[RLX_MAX_RANK + 1];
    struct ir_type t = *formula_type(f, indices);

    if (batch == 0)
        return indices;
    part[batch] = formula_cast(f, indices, RLX_DTYPE_i64);
    t.dim[t.rank - 1] = 1;
    for (int32_t i = 0; i < batch; i++) {
        rlx_list along = {.count = t.rank - i, .at = {t.dim[i], 1, 1, 1, 1, 1, 1, 1}};
        part[i] = formula_expand(f, formula_reshape(f, rule_positions(f, t.dim[i]), along),
                                 formula_shape(&t));
    }
    return formula_concat(f, part, batch + 1, t.rank - 1);
}

void vjp_gather_nd(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value indices = with_batch(f, v->n->in[1], (int32_t)v->n->attr.gather_nd.batch_dims);

    vjp_add(v, 0, scatter_nd(f, rule_zeros(f, v->n->in[0]), indices, v->dy, true));
}

/* Which coordinates [.., k] lie inside the first k axes of data. */
static ir_value inside_all(struct formula *f, ir_value indices, const struct ir_type *data)
{
    const struct ir_type t = *formula_type(f, indices);
    int32_t k = (int32_t)t.dim[t.rank - 1];
    ir_value part[RLX_MAX_RANK];

    for (int32_t i = 0; i < k; i++)
        part[i] = formula_reshape(f, rule_size(f, data->dim[i]), RLX_LIST(1));
    ir_value each = inside(f, indices, formula_concat(f, part, k, 0));
    return formula_reduce(f, RLX_OP_reduce_min, each, RLX_LIST(t.rank - 1), false);
}

bool vjp_scatter_nd_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return n->attr.scatter_nd.reduction <= RLX_SCATTER_REDUCTION_add;
}

static bool is_empty(const struct ir_type *t, int32_t axes)
{
    for (int32_t i = 0; i < axes; i++)
        if (t->dim[i] == 0)
            return true;
    return false;
}

void vjp_scatter_nd(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct ir_type data = *vjp_type(v, 0), at = *vjp_type(v, 1);
    ir_value indices = v->n->in[1], mask;
    int32_t k = (int32_t)at.dim[at.rank - 1];
    bool add = v->n->attr.scatter_nd.reduction == RLX_SCATTER_REDUCTION_add;

    if (vjp_wanted(v, 0))
        vjp_add(v, 0,
                add ? v->dy : scatter_nd(f, v->dy, indices, rule_zeros(f, v->n->in[2]), false));
    if (!vjp_wanted(v, 2))
        return;
    if (is_empty(&data, k)) {
        vjp_add(v, 2, rule_zeros(f, v->n->in[2]));
        return;
    }
    ir_value slices = gather_nd(f, v->dy, indices);
    if (add && k == 0) {
        vjp_add(v, 2, slices);
        return;
    }
    if (add) {
        mask = inside_all(f, indices, &data);
    } else {
        ir_value number = numbered(f, rlx_list_of(at.rank - 1, at.dim));
        ir_value last = scatter_nd(f, filled(f, &data, k, -1), indices, number, false);
        mask = formula_2(f, RLX_OP_eq, gather_nd(f, last, indices), number);
    }
    vjp_add(v, 2, keep(f, mask, slices));
}
