/* batch_rules.c: rules that many families share. */
#include <string.h>

#include "autodiff/batch.h"
#include "base/str.h"

/* ---- operands ---- */

struct ir_type batch_type(const struct batch *b, int32_t i)
{
    struct ir_type t = *formula_type(&b->f, b->in[i]);

    if (!b->has[i])
        return t;
    for (int32_t k = 1; k < t.rank; k++)
        t.dim[k - 1] = t.dim[k];
    t.rank--;
    return t;
}

rlx_list batch_shape(const struct batch *b, const struct ir_type *t)
{
    rlx_list shape = {.count = 1, .at = {b->size}};

    for (int32_t i = 0; i < t->rank && shape.count < RLX_MAX_RANK; i++)
        shape.at[shape.count++] = t->dim[i];
    return shape;
}

/* One axis more than there can be is found here: lists hold no more. */
static bool has_room(struct batch *b, int32_t rank)
{
    if (rank < RLX_MAX_RANK)
        return true;
    formula_fail(&b->f, RLX_ERROR_LIMIT, "%s of rank %d has no room for an axis of examples",
                 op_info(b->n->op)->name, rank);
    return false;
}

ir_value batch_lifted(struct batch *b, int32_t i)
{
    struct ir_type t = batch_type(b, i);

    if (b->has[i] || !has_room(b, t.rank))
        return b->in[i];
    rlx_list shape = batch_shape(b, &t), one = shape;
    one.at[0] = 1;
    return formula_expand(&b->f, formula_reshape(&b->f, b->in[i], one), shape);
}

bool batch_takes(const struct batch *b, int32_t i)
{
    rlx_str name = op_input_name(b->n->op, i, b->n->in_count), word;

    for (const char *at = b->operands; *at;
         at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ')) {
        word = (rlx_str){at, strcspn(at, " ")};
        if (str_eq(word, name))
            return true;
    }
    return false;
}

bool batch_others_have(const struct batch *b)
{
    for (int32_t i = 0; i < b->n->in_count; i++)
        if (b->has[i] && !batch_takes(b, i))
            return true;
    return false;
}

/* ---- attributes that count axes ---- */

static void shift_axes(rlx_list *axes)
{
    for (int32_t i = 0; i < axes->count; i++)
        axes->at[i]++;
}

static void put_in_front(rlx_list *l, int64_t first)
{
    for (int32_t i = l->count++; i > 0; i--)
        l->at[i] = l->at[i - 1];
    l->at[0] = first;
}

static bool is(const struct attr_info *a, const char *name)
{
    return strcmp(a->name, name) == 0;
}

/* perm, before, after, reps and shape have an entry for every axis; shape is that of the result. */
static void shift_attr(struct batch *b, const struct attr_info *a, union ir_attr *attr)
{
    void *at = (char *)attr + a->offset;
    bool axis = is(a, "axis") || is(a, "seq_axis") || is(a, "batch_dims");

    if (axis && *(attr_I64 *)at != RLX_ABSENT)
        ++*(attr_I64 *)at;
    if (a->kind == ATTR_AXES)
        shift_axes(at);
    if (is(a, "perm") || is(a, "before") || is(a, "after"))
        put_in_front(at, 0);
    if (is(a, "reps"))
        put_in_front(at, 1);
    if (is(a, "shape"))
        *(rlx_list *)at = batch_shape(b, &b->n->type);
}

ir_value batch_node(struct batch *b, rlx_op op, const ir_value *in)
{
    union ir_attr attr = b->n->attr;
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    if (!has_room(b, b->n->type.rank))
        return RLX_NO_VALUE;
    for (size_t i = 0; i < count; i++)
        shift_attr(b, &a[i], &attr);
    return formula_node(&b->f, op, in, b->n->in_count, &attr);
}

/* ---- rules ---- */

ir_value batch_shifted(struct batch *b)
{
    if (batch_others_have(b))
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < b->n->in_count; i++)
        if (batch_takes(b, i))
            b->in[i] = batch_lifted(b, i);
    return batch_node(b, b->n->op, b->in);
}

/* Operands are aligned by their last axes: those between come after the first one. */
ir_value batch_broadcast(struct batch *b)
{
    int32_t rank = b->n->type.rank;

    if (!has_room(b, rank))
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < b->n->in_count; i++) {
        struct ir_type t = batch_type(b, i);
        rlx_list shape = {.count = 1 + rank - t.rank, .at = {b->size, 1, 1, 1, 1, 1, 1, 1}};
        if (!b->has[i])
            continue;
        for (int32_t k = 0; k < t.rank; k++)
            shape.at[shape.count++] = t.dim[k];
        b->in[i] = formula_reshape(&b->f, b->in[i], shape);
    }
    return batch_node(b, b->n->op, b->in);
}

/* [examples, items, ...] as [examples items, ...]. */
static ir_value folded(struct batch *b, int32_t i)
{
    struct ir_type t = batch_type(b, i);
    rlx_list shape = formula_shape(&t);

    shape.at[0] = dim_mul(b->f.g->mod->dims, b->size, t.dim[0]);
    return formula_reshape(&b->f, batch_lifted(b, i), shape);
}

ir_value batch_items(struct batch *b)
{
    union ir_attr attr = b->n->attr;

    if (batch_others_have(b))
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < b->n->in_count; i++)
        if (batch_takes(b, i))
            b->in[i] = folded(b, i);
    if (!has_room(b, b->n->type.rank))
        return RLX_NO_VALUE;
    ir_value y = formula_node(&b->f, b->n->op, b->in, b->n->in_count, &attr);
    return formula_reshape(&b->f, y, batch_shape(b, &b->n->type));
}

ir_value batch_spelled(struct batch *b)
{
    ir_value first = (ir_value)b->f.g->node.len, out = RLX_NO_VALUE;

    if (!grad_can_expand(b->f.g, b->n))
        return RLX_NO_VALUE;
    b->f.status = grad_expand(b->f.g, b->node, &out, b->f.diag);
    return b->f.status == RLX_OK ? batch_nodes(b, first, out) : RLX_NO_VALUE;
}

/* Weights are seen by all elements of a value, so that their gradients are sums over these: over
 * those of one example only. */
static bool is_of_input(const struct batch *b)
{
    return b->n->type.rank == batch_type(b, 0).rank && b->n->type.rank > 1;
}

ir_value batch_gradients(struct batch *b)
{
    return is_of_input(b) ? batch_shifted(b) : batch_spelled(b);
}

ir_value batch_item_gradients(struct batch *b)
{
    return is_of_input(b) ? batch_items(b) : batch_spelled(b);
}
