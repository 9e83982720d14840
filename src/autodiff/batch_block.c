/* batch_block.c: the large blocks of networks, and solvers: what is an item for them, and which of
 * their operands all items share. */
#include <string.h>

#include "autodiff/batch.h"
#include "ir/attention.h"

/* ---- convolutions ---- */

/* [examples, items, channels, ..] as [items, examples channels, ..]. */
static ir_value side_by_side(struct batch *b, int32_t i)
{
    struct formula *f = &b->f;
    const struct ir_type t = batch_type(b, i);
    rlx_list perm = {.count = t.rank + 1, .at = {1, 0, 2, 3, 4, 5, 6, 7}};
    rlx_list shape = formula_shape(&t);

    shape.at[1] = dim_mul(f->g->mod->dims, b->size, t.dim[1]);
    return formula_reshape(f, formula_transpose(f, batch_lifted(b, i), perm), shape);
}

static ir_value on_top(struct batch *b, int32_t i)
{
    const struct ir_type t = batch_type(b, i);
    rlx_list shape = formula_shape(&t);

    shape.at[0] = dim_mul(b->f.g->mod->dims, b->size, t.dim[0]);
    return formula_reshape(&b->f, batch_lifted(b, i), shape);
}

static void multiply(union ir_attr *attr, const struct batch *b, const char *name, int64_t by,
                     int32_t place)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(b->n->op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        void *at = (char *)attr + a[i].offset;
        if (strcmp(a[i].name, name) == 0 && a[i].kind == ATTR_I64)
            *(attr_I64 *)at *= by;
        else if (strcmp(a[i].name, name) == 0)
            ((rlx_list *)at)->at[place] =
                dim_mul(b->f.g->mod->dims, ((rlx_list *)at)->at[place], by);
    }
}

/* As groups of channels: each example has its own, with its own weights. */
static ir_value by_groups(struct batch *b, int32_t weight)
{
    struct formula *f = &b->f;
    union ir_attr attr = b->n->attr;
    rlx_list shape = formula_shape(&b->n->type), perm = {.at = {1, 0, 2, 3, 4, 5, 6, 7}};

    multiply(&attr, b, "groups", b->size, 0);
    multiply(&attr, b, "x_shape", b->size, 1);
    for (int32_t i = 0; i < b->n->in_count; i++)
        b->in[i] = i == weight ? on_top(b, i) : side_by_side(b, i);
    ir_value y = formula_node(f, b->n->op, b->in, b->n->in_count, &attr);
    if (weight < 0) /* the gradient of weights */
        return formula_reshape(f, y, batch_shape(b, &b->n->type));
    for (int32_t i = shape.count++; i > 1; i--)
        shape.at[i] = shape.at[i - 1];
    shape.at[1] = b->size;
    perm.count = shape.count;
    return formula_transpose(f, formula_reshape(f, y, shape), perm);
}

ir_value batch_conv(struct batch *b)
{
    int32_t weight = -1;

    for (int32_t i = 0; i < b->n->in_count; i++)
        if (!batch_takes(b, i))
            weight = i;
    if (weight >= 0 && !b->has[weight]) {
        multiply(&b->n->attr, b, "x_shape", b->size, 0);
        return batch_items(b);
    }
    return dim_is_static(b->size) && b->size > 0 ? by_groups(b, weight) : RLX_NO_VALUE;
}

/* ---- attention ---- */

/* How many items there are, of which a mask may hold one for all. */
static ir_dim items_of(const struct batch *b)
{
    const struct ir_type q = batch_type(b, 0);

    if (attr_integer(b->n->op, &b->n->attr, "layout", 0) != RLX_ATTENTION_LAYOUT_folded)
        return q.dim[0];
    return dim_exact_div(b->f.g->mod->dims, q.dim[0],
                         attr_integer(b->n->op, &b->n->attr, "num_heads", 1));
}

/* The mask among the items, or as it is where it serves all of them. */
static ir_value mask_of_items(struct batch *b, int32_t i, ir_dim items, bool alone)
{
    struct ir_type t = batch_type(b, i);

    if (!b->has[i] && t.dim[0] == 1 && !alone)
        return b->in[i];
    b->in[i] = batch_lifted(b, i);
    b->has[i] = true;
    t.dim[0] = items;
    b->in[i] = formula_expand(&b->f, b->in[i], batch_shape(b, &t));
    return on_top(b, i);
}

/* The gradient of a mask that serves all items is their sum: for one example at a time, and so are
 * examples with sinks of their own. */
ir_value batch_attention(struct batch *b)
{
    const struct attr_attention a = attention_attrs(b->n->op, &b->n->attr);
    int32_t first = b->n->op == RLX_OP_attention ? 3 : 4;
    int32_t mask = attention_mask_operand(&a, first), sinks = attention_sinks_operand(&a, first);
    int64_t wrt = attr_integer(b->n->op, &b->n->attr, "wrt", RLX_ATTENTION_WRT_query);
    bool of_mask = wrt == RLX_ATTENTION_WRT_bias;
    ir_dim items = items_of(b);

    if (items == RLX_DIM_FAILED || (of_mask && batch_type(b, mask).dim[0] != items) ||
        (sinks >= 0 && b->has[sinks]))
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < first; i++)
        b->in[i] = on_top(b, i);
    if (mask >= 0)
        b->in[mask] = mask_of_items(b, mask, items, of_mask);
    ir_value y = formula_node(&b->f, b->n->op, b->in, b->n->in_count, &b->n->attr);
    return formula_reshape(&b->f, y, batch_shape(b, &b->n->type));
}

/* ---- rotary embeddings ---- */

/* Tables [rows, angles] are for all items, tables of rank 3 have one for each. */
ir_value batch_rope(struct batch *b)
{
    if (batch_type(b, 1).rank == 3 || batch_type(b, 2).rank == 3) {
        b->operands = "x dy cos sin";
        return batch_items(b);
    }
    if (batch_others_have(b))
        b->operands = "x dy cos sin"; /* now there is one for each example */
    return batch_shifted(b);
}

/* ---- solvers ---- */

/* One system has an op for many, and many are more of them. */
ir_value batch_solve(struct batch *b)
{
    if (batch_type(b, 0).rank == 3)
        return batch_items(b);
    for (int32_t i = 0; i < 2; i++)
        b->in[i] = batch_lifted(b, i);
    return formula_2(&b->f, RLX_OP_batched_dense_solve, b->in[0], b->in[1]);
}
