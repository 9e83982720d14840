/* onnx_build.c: see onnx_build.h. */
#include "import/onnx/read/onnx_build.h"

ir_value onnx_table_of(struct onnx_call *c, const struct ir_type *t, const void *data)
{
    struct onnx_value v = {.type = *t, .node = RLX_NO_VALUE, .data = data};

    return onnx_node_of(c->im, c->scope, &c->f, &v);
}

ir_value onnx_dim_value(struct formula *f, ir_dim d, rlx_dtype dtype)
{
    if (dim_is_static(d))
        return formula_number_of(f, dtype, (double)d);
    ir_value one = formula_reshape(f, formula_number_of(f, dtype, 1), RLX_LIST(1));
    return formula_reduce(f, RLX_OP_reduce_sum, formula_expand(f, one, RLX_LIST(d)), RLX_LIST(0),
                          false);
}

ir_value onnx_wrap_index(struct onnx_call *c, ir_value index, ir_dim n)
{
    struct formula *f = &c->f;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    rlx_dtype t = formula_type(f, index)->dtype;
    ir_value below = formula_2(f, RLX_OP_lt, index, formula_number_of(f, t, 0));
    ir_value from_end = formula_2(f, RLX_OP_add, index, onnx_dim_value(f, n, t));
    return formula_where(f, below, from_end, index);
}

ir_value onnx_index_in(struct onnx_call *c, size_t i, ir_dim n)
{
    size_t count;
    const int64_t *at = onnx_i64s(c, i, &count);
    bool any = !at;

    for (size_t k = 0; at && k < count; k++)
        any |= at[k] < 0;
    return any ? onnx_wrap_index(c, onnx_in(c, i), n) : onnx_in(c, i);
}

ir_value onnx_slice_of(struct formula *f, ir_value x, int32_t axis, ir_dim start, ir_dim len,
                       int64_t step)
{
    union ir_attr attr;

    if (step == 1)
        return formula_narrow(f, x, axis, start, len);
    attr_defaults(RLX_OP_slice, &attr);
    attr.slice.axis = axis;
    attr.slice.start = start;
    attr.slice.len = len;
    attr.slice.step = step;
    return formula_node(f, RLX_OP_slice, &x, 1, &attr);
}

ir_value onnx_pad_of(struct formula *f, ir_value x, rlx_list before, rlx_list after, double value)
{
    union ir_attr attr;
    bool any = false;

    for (int32_t i = 0; i < before.count; i++)
        any |= before.at[i] != 0 || after.at[i] != 0;
    if (!any)
        return x;
    attr_defaults(RLX_OP_pad, &attr);
    attr.pad.before = before;
    attr.pad.after = after;
    attr.pad.value = value;
    return formula_node(f, RLX_OP_pad, &x, 1, &attr);
}

ir_value onnx_cumsum_of(struct formula *f, ir_value x, int32_t axis, bool exclusive)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_cumsum, &attr);
    attr.cumulative.axis = axis;
    attr.cumulative.exclusive = exclusive;
    return formula_node(f, RLX_OP_cumsum, &x, 1, &attr);
}

ir_value onnx_clamp_of(struct formula *f, ir_value x, double lo, double hi)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_clamp, &attr);
    attr.clamp.min = lo;
    attr.clamp.max = hi;
    return formula_node(f, RLX_OP_clamp, &x, 1, &attr);
}

ir_value onnx_times(struct formula *f, ir_value x, double by)
{
    return by == 1 ? x : formula_2(f, RLX_OP_mul, x, formula_number(f, by));
}

ir_value onnx_plus(struct formula *f, ir_value x, double n)
{
    return formula_2(f, RLX_OP_add, x, formula_number(f, n));
}

ir_dim onnx_product(struct onnx_call *c, const struct ir_type *t, int32_t from, int32_t to)
{
    ir_dim all = 1;

    for (int32_t i = from; i < to; i++)
        all = dim_mul(onnx_dims(c), all, t->dim[i]);
    if (all != RLX_DIM_FAILED)
        return all;
    onnx_unsupported(c, "a product of sizes that has no expression");
    return 1;
}
