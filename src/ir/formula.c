/* formula.c: see formula.h. */
#include "ir/formula.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"

rlx_dtype formula_dtype(rlx_dtype t)
{
    return t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16 ? RLX_DTYPE_f32 : t;
}

void formula_fail(struct formula *f, rlx_status s, const char *format, ...)
{
    char text[256];
    va_list args;

    if (f->status != RLX_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->status = diag_fail(f->diag, s, "%s", text);
}

ir_value formula_node(struct formula *f, rlx_op op, const ir_value *in, int32_t count,
                      const union ir_attr *attr)
{
    struct ir_new_node n = {.op = op, .in = in, .in_count = count, .borrow_data = true};
    ir_value out = RLX_NO_VALUE;

    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    if (attr)
        n.attr = *attr;
    else
        attr_defaults(op, &n.attr);
    f->status = ir_add(f->g, &n, &out, f->diag);
    return out;
}

ir_value formula_1(struct formula *f, rlx_op op, ir_value a)
{
    return formula_node(f, op, &a, 1, NULL);
}

ir_value formula_2(struct formula *f, rlx_op op, ir_value a, ir_value b)
{
    return formula_node(f, op, (const ir_value[]){a, b}, 2, NULL);
}

ir_value formula_where(struct formula *f, ir_value cond, ir_value a, ir_value b)
{
    return formula_node(f, RLX_OP_where, (const ir_value[]){cond, a, b}, 3, NULL);
}

/* ---- constants ---- */

void ir_number_bytes(rlx_dtype dtype, double value, uint8_t out[8])
{
    /* Little-endian: narrower integers are its first bytes. Inf and NaN are for floats alone. */
    int64_t whole = value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : 0;

    memset(out, 0, 8);
    switch (dtype) {
    case RLX_DTYPE_f64: memcpy(out, &value, 8); break;
    case RLX_DTYPE_f32:
    case RLX_DTYPE_c64: memcpy(out, &(float){(float)value}, 4); break;
    case RLX_DTYPE_f16: memcpy(out, &(uint16_t){f64_to_f16(value)}, 2); break;
    case RLX_DTYPE_bf16: memcpy(out, &(uint16_t){f64_to_bf16(value)}, 2); break;
    case RLX_DTYPE_bool: out[0] = whole != 0; break;
    default: memcpy(out, &whole, 8); break;
    }
}

rlx_status ir_add_number(struct ir_graph *g, rlx_dtype dtype, const rlx_list *shape, double value,
                         ir_value *out, struct diag *d)
{
    struct ir_new_node n = {.op = RLX_OP_const, .borrow_data = true};
    struct ir_type t = {.dtype = dtype, .rank = shape->count};
    size_t size = rlx_dtype_size(dtype);
    int64_t count;
    uint8_t one[8];

    memcpy(t.dim, shape->at, (size_t)shape->count * sizeof t.dim[0]);
    if (!type_count(&t, &count))
        return diag_fail(d, RLX_ERROR_LIMIT, "a constant of a size that is not known");
    uint8_t *data = arena_alloc_array(&g->mod->arena, (size_t)count, size, 16);
    if (!data)
        return diag_no_memory(d, (size_t)count);
    ir_number_bytes(dtype, value, one);
    for (size_t i = 0; i < (size_t)count; i++)
        memcpy(data + i * size, one, size);
    attr_defaults(RLX_OP_const, &n.attr);
    n.attr.const_.dtype = dtype;
    n.attr.const_.shape = *shape;
    n.attr.const_.data = (struct ir_blob){data, (size_t)count * size};
    return ir_add(g, &n, out, d);
}

ir_value formula_number_of(struct formula *f, rlx_dtype dtype, double v)
{
    ir_value out = RLX_NO_VALUE;

    if (f->status == RLX_OK)
        f->status = ir_add_number(f->g, dtype, &(rlx_list){.count = 0}, v, &out, f->diag);
    return out;
}

ir_value formula_number(struct formula *f, double v)
{
    return formula_number_of(f, f->dtype, v);
}

ir_value formula_fill(struct formula *f, const struct ir_type *t, double v)
{
    rlx_list shape = formula_shape(t);

    return formula_expand(f, formula_number_of(f, t->dtype, v), shape);
}

/* ---- movement ---- */

ir_value formula_cast(struct formula *f, ir_value x, rlx_dtype to)
{
    union ir_attr attr;

    if (f->status != RLX_OK || formula_type(f, x)->dtype == to)
        return x;
    attr_defaults(RLX_OP_cast, &attr);
    attr.cast.to = to;
    return formula_node(f, RLX_OP_cast, &x, 1, &attr);
}

static bool has_shape(const struct formula *f, ir_value x, const rlx_list *shape)
{
    const struct ir_type *t = formula_type(f, x);
    bool same = t->rank == shape->count;

    for (int32_t i = 0; same && i < shape->count; i++)
        same = t->dim[i] == shape->at[i];
    return same;
}

ir_value formula_reshape(struct formula *f, ir_value x, rlx_list shape)
{
    union ir_attr attr;

    if (f->status != RLX_OK || has_shape(f, x, &shape))
        return x;
    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape = shape;
    return formula_node(f, RLX_OP_reshape, &x, 1, &attr);
}

ir_value formula_expand(struct formula *f, ir_value x, rlx_list shape)
{
    union ir_attr attr;

    if (f->status != RLX_OK || has_shape(f, x, &shape))
        return x;
    attr_defaults(RLX_OP_expand, &attr);
    attr.expand.shape = shape;
    return formula_node(f, RLX_OP_expand, &x, 1, &attr);
}

ir_value formula_transpose(struct formula *f, ir_value x, rlx_list perm)
{
    union ir_attr attr;
    bool moves = false;

    for (int32_t i = 0; i < perm.count; i++)
        moves |= perm.at[i] != i;
    if (!moves)
        return x;
    attr_defaults(RLX_OP_transpose, &attr);
    attr.transpose.perm = perm;
    return formula_node(f, RLX_OP_transpose, &x, 1, &attr);
}

ir_value formula_swap(struct formula *f, ir_value x)
{
    rlx_list perm = {0};

    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    perm.count = formula_type(f, x)->rank;
    for (int32_t i = 0; i < perm.count; i++)
        perm.at[i] = i < perm.count - 2 ? i : 2 * perm.count - 3 - i;
    return formula_transpose(f, x, perm);
}

ir_value formula_reverse(struct formula *f, ir_value x, int64_t axis)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_reverse, &attr);
    attr.reverse.axes = RLX_LIST(axis);
    return formula_node(f, RLX_OP_reverse, &x, 1, &attr);
}

ir_value formula_narrow(struct formula *f, ir_value x, int64_t axis, ir_dim start, ir_dim len)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_narrow, &attr);
    attr.narrow.axis = axis;
    attr.narrow.start = start;
    attr.narrow.len = len;
    return formula_node(f, RLX_OP_narrow, &x, 1, &attr);
}

ir_value formula_concat(struct formula *f, const ir_value *part, int32_t count, int64_t axis)
{
    union ir_attr attr;

    if (count == 1)
        return part[0];
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = axis;
    return formula_node(f, RLX_OP_concat, part, count, &attr);
}

/* ---- sums and products ---- */

ir_value formula_reduce(struct formula *f, rlx_op op, ir_value x, rlx_list axes, bool keep_dim)
{
    union ir_attr attr;

    if (axes.count == 0)
        return x;
    attr_defaults(op, &attr);
    attr.reduce.axes = axes;
    attr.reduce.keep_dim = keep_dim;
    return formula_node(f, op, &x, 1, &attr);
}

ir_value formula_matmul(struct formula *f, ir_value a, ir_value b, bool transpose_a,
                        bool transpose_b)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_matmul, &attr);
    attr.matmul.transpose_a = transpose_a;
    attr.matmul.transpose_b = transpose_b;
    return formula_node(f, RLX_OP_matmul, (const ir_value[]){a, b}, 2, &attr);
}

ir_value formula_unbroadcast(struct formula *f, ir_value x, const struct ir_type *to)
{
    const struct ir_type target = *to; /* nodes move when others are added */
    rlx_list axes = {0};

    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type *t = formula_type(f, x);
    int32_t added = t->rank - target.rank;
    for (int32_t i = 0; i < t->rank; i++)
        if (i < added || (target.dim[i - added] == 1 && t->dim[i] != 1))
            axes.at[axes.count++] = i;
    x = formula_reduce(f, RLX_OP_reduce_sum, x, axes, true);
    return formula_reshape(f, x, formula_shape(&target));
}
