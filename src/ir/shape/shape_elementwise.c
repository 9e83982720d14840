/* shape_elementwise.c: one result element from one element of each operand. */
#include <math.h>

#include "ir/shape/shape.h"

/* ---- which element types an op takes (ops-core.md 5) ----------------------------------------- */

unsigned shape_pair_classes(rlx_op op)
{
    switch (op) {
    case RLX_OP_add:
    case RLX_OP_sub:
    case RLX_OP_mul:
    case RLX_OP_div: return CLASS_REAL | CLASS_C;
    case RLX_OP_max:
    case RLX_OP_min: return CLASS_REAL | CLASS_B;
    case RLX_OP_mod: return CLASS_REAL;
    case RLX_OP_pow:
    case RLX_OP_atan2: return CLASS_F;
    case RLX_OP_bit_and:
    case RLX_OP_bit_or:
    case RLX_OP_bit_xor: return CLASS_INT | CLASS_B;
    case RLX_OP_shl:
    case RLX_OP_shr: return CLASS_INT;
    case RLX_OP_eq:
    case RLX_OP_ne: return CLASS_ANY;
    case RLX_OP_lt:
    case RLX_OP_le:
    case RLX_OP_gt:
    case RLX_OP_ge: return CLASS_REAL;
    default: return 0;
    }
}

unsigned shape_unary_classes(rlx_op op)
{
    switch (op) {
    case RLX_OP_relu:
    case RLX_OP_abs:
    case RLX_OP_sign: return CLASS_REAL;
    case RLX_OP_neg: return CLASS_F | CLASS_I | CLASS_C; /* nothing unsigned */
    case RLX_OP_not: return CLASS_B;
    default: return op_info(op)->family == FAMILY_unary ? CLASS_F : 0;
    }
}

/* ---- the rules ----------------------------------------------------------------------------- */

/* The broadcast of all operands, in their order. */
static rlx_status broadcast_all(struct shape_call *c, rlx_dtype dtype)
{
    const struct ir_type *first = c->in[0];

    TRY(shape_result(c, dtype, first->rank, first->dim));
    for (int32_t i = 1; i < c->in_count; i++)
        TRY(shape_broadcast_dims(c, c->out->dim, c->out->rank, c->in[i]->dim, c->in[i]->rank,
                                 c->out->dim, &c->out->rank));
    return RLX_OK;
}

static rlx_status need_pair(struct shape_call *c)
{
    TRY(shape_need_same_dtype(c, 0, 1));
    return shape_need_class(c, 0, shape_pair_classes(c->op));
}

rlx_status shape_binary(struct shape_call *c)
{
    TRY(need_pair(c));
    return broadcast_all(c, c->in[0]->dtype);
}

rlx_status shape_compare(struct shape_call *c)
{
    TRY(need_pair(c));
    return broadcast_all(c, RLX_DTYPE_bool);
}

rlx_status shape_unary(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, shape_unary_classes(c->op)));
    return shape_result_like(c, 0);
}

rlx_status shape_cast(struct shape_call *c)
{
    rlx_dtype from = c->in[0]->dtype, to = c->attr->cast.to;

    if (from == RLX_DTYPE_c64 && to != from)
        return SHAPE_FAIL(c, DTYPE, "%s: c64 does not convert to %s", c->name, rlx_dtype_name(to));
    return shape_result(c, to, c->in[0]->rank, c->in[0]->dim);
}

/* Nothing becomes a bool: only the bits of 0 and 1 are bools. */
rlx_status shape_bitcast(struct shape_call *c)
{
    rlx_dtype from = c->in[0]->dtype, to = c->attr->bitcast.to;

    if (rlx_dtype_size(from) != rlx_dtype_size(to))
        return SHAPE_FAIL(c, DTYPE, "%s: %s has %zu bytes, %s has %zu", c->name,
                          rlx_dtype_name(from), rlx_dtype_size(from), rlx_dtype_name(to),
                          rlx_dtype_size(to));
    if (to == RLX_DTYPE_bool && from != to)
        return SHAPE_FAIL(c, DTYPE, "%s: not all bits of %s are a bool", c->name,
                          rlx_dtype_name(from));
    return shape_result(c, to, c->in[0]->rank, c->in[0]->dim);
}

rlx_status shape_where(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_REAL | CLASS_B));
    TRY(shape_need_same_dtype(c, 1, 2));
    return broadcast_all(c, c->in[1]->dtype);
}

rlx_status shape_clamp(struct shape_call *c)
{
    double min = c->attr->clamp.min, max = c->attr->clamp.max;
    char lo[32], hi[32];

    TRY(shape_need_class(c, 0, CLASS_REAL));
    if (isnan(min) || isnan(max) || min > max) {
        str_from_f64(lo, min);
        str_from_f64(hi, max);
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: min %s and max %s are not a range", c->name, lo, hi);
    }
    return shape_result_like(c, 0);
}

rlx_status shape_fma(struct shape_call *c)
{
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_need_same_dtype(c, 0, 2));
    TRY(shape_need_class(c, 0, CLASS_F));
    return broadcast_all(c, c->in[0]->dtype);
}

/* One operand of any type, and the result is like it. */
rlx_status shape_same(struct shape_call *c)
{
    return shape_result_like(c, 0);
}

/* complex_real too: c64 to f32. */
rlx_status shape_complex_norm_sq(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_C));
    return shape_result(c, RLX_DTYPE_f32, c->in[0]->rank, c->in[0]->dim);
}

rlx_status shape_conjugate(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_C));
    return shape_result_like(c, 0);
}

/* relu_backward too: x and dy alike, dx like them. Only what has a gradient has this. */
rlx_status shape_activation_backward(struct shape_call *c)
{
    rlx_op kind = c->op == RLX_OP_relu_backward ? RLX_OP_relu : c->attr->activation_backward.kind;
    unsigned classes = shape_unary_classes(kind) & (CLASS_F | CLASS_C);

    if (!classes)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: kind must be a unary op with a derivative, not %s",
                          c->name, op_info(kind)->name);
    TRY(shape_need_class(c, 0, classes));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_need_same_shape(c, 0, 1));
    return shape_result_like(c, 0);
}
