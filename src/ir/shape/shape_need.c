/* shape_need.c: refusals that many shape rules share. */
#include "ir/shape/shape_need.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

rlx_status shape_need_equal(struct shape_call *c, ir_dim a, ir_dim b, const char *what)
{
    if (shape_agree(c, a, b, what))
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: %s differ: %s and %s", c->name, what, dim_text(c, a),
                      dim_text(c, b));
}

rlx_status shape_need_least(struct shape_call *c, ir_dim a, ir_dim b, const char *what)
{
    if (shape_at_least(c, a, b, what))
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: %s do not suffice: %s is less than %s", c->name, what,
                      dim_text(c, a), dim_text(c, b));
}

rlx_status shape_need_most(struct shape_call *c, ir_dim a, int64_t limit, const char *what)
{
    if (shape_at_least(c, limit, a, what))
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: too many %s: %s, the limit is %" PRId64, c->name, what,
                      dim_text(c, a), limit);
}

rlx_status shape_need_multiple(struct shape_call *c, ir_dim a, int64_t by, const char *what)
{
    if (by == 1 || (a != RLX_DIM_FAILED && dim_exact_div(c->mod->dims, a, by) != RLX_DIM_FAILED))
        return RLX_OK; /* even for every binding */
    if (a != RLX_DIM_FAILED && dim_no_memory(c->mod->dims))
        return diag_no_memory(c->diag, 0);
    if (shape_check(c, CHECK_DIVIDES, a, by, RLX_ERROR_SHAPE, what))
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: %s: %s is not a multiple of %" PRId64, c->name, what,
                      dim_text(c, a), by);
}

rlx_status shape_divided(struct shape_call *c, ir_dim a, int64_t by, const char *what, ir_dim *out)
{
    TRY(shape_need_multiple(c, a, by, what));
    *out = dim_floor_div(c->mod->dims, a, by);
    if (*out == RLX_DIM_FAILED && dim_no_memory(c->mod->dims))
        return diag_no_memory(c->diag, 0);
    return RLX_OK;
}

/* "sizes of gamma", for a check that is made long after this call. NULL: no memory. */
static const char *sizes_of(struct shape_call *c, int32_t operand)
{
    if (!c->note_checks)
        return "sizes";
    return arena_printf(&c->mod->arena, "sizes of %s", shape_operand_name(c, operand));
}

static rlx_status other_shape(struct shape_call *c, int32_t operand, const ir_dim *dim,
                              int32_t rank)
{
    struct ir_type want = {.dtype = c->in[operand]->dtype, .rank = rank};

    memcpy(want.dim, dim, (size_t)rank * sizeof *dim);
    return SHAPE_FAIL(c, SHAPE, "%s: %s must be %s, not %s", c->name,
                      shape_operand_name(c, operand), type_text(c, &want),
                      type_text(c, c->in[operand]));
}

rlx_status shape_need_dims(struct shape_call *c, int32_t operand, const ir_dim *dim, int32_t rank)
{
    const struct ir_type *t = c->in[operand];
    const char *what = NULL;

    if (t->rank != rank)
        return other_shape(c, operand, dim, rank);
    for (int32_t i = 0; i < rank; i++) {
        if (t->dim[i] == dim[i])
            continue;
        if (dim_is_static(t->dim[i]) && dim_is_static(dim[i]))
            return other_shape(c, operand, dim, rank);
        if (!what && !(what = sizes_of(c, operand)))
            return diag_no_memory(c->diag, 0);
        if (!shape_agree(c, t->dim[i], dim[i], what))
            return other_shape(c, operand, dim, rank);
    }
    return RLX_OK;
}

rlx_status shape_need_same_type(struct shape_call *c, int32_t operand, int32_t as)
{
    TRY(shape_need_same_dtype(c, operand, as));
    return shape_need_same_shape(c, operand, as);
}

rlx_status shape_need_dtype(struct shape_call *c, int32_t operand, rlx_dtype dtype)
{
    if (c->in[operand]->dtype == dtype)
        return RLX_OK;
    return SHAPE_FAIL(c, DTYPE, "%s: %s must be %s, not %s", c->name,
                      shape_operand_name(c, operand), rlx_dtype_name(dtype),
                      rlx_dtype_name(c->in[operand]->dtype));
}

rlx_status shape_need_dtype_or_f32(struct shape_call *c, int32_t operand, int32_t x)
{
    rlx_dtype t = c->in[x]->dtype;
    bool narrow = t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16;

    if (narrow && c->in[operand]->dtype == RLX_DTYPE_f32)
        return RLX_OK;
    return shape_need_same_dtype(c, operand, x);
}

rlx_status shape_need_floats(struct shape_call *c, int32_t count)
{
    TRY(shape_need_class(c, 0, CLASS_F));
    for (int32_t i = 1; i < count; i++)
        TRY(shape_need_same_dtype(c, 0, i));
    return RLX_OK;
}

rlx_status shape_need_contractable(struct shape_call *c, int32_t operand)
{
    rlx_dtype t = c->in[operand]->dtype;

    if (t == RLX_DTYPE_i32 || t == RLX_DTYPE_i64)
        return RLX_OK;
    if (dtype_is(t, CLASS_F | CLASS_C))
        return RLX_OK;
    return SHAPE_FAIL(c, DTYPE, "%s: %s must be a float, i32, i64 or c64, not %s", c->name,
                      shape_operand_name(c, operand), rlx_dtype_name(t));
}

rlx_status shape_need_range(struct shape_call *c, const char *attr, int64_t v, int64_t lo,
                            int64_t hi)
{
    if (v >= lo && v <= hi)
        return RLX_OK;
    if (hi == INT64_MAX)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s is %" PRId64 ", must be at least %" PRId64, c->name,
                          attr, v, lo);
    return SHAPE_FAIL(c, ATTRIBUTE,
                      "%s: %s is %" PRId64 ", must be between %" PRId64 " and %" PRId64, c->name,
                      attr, v, lo, hi);
}

rlx_status shape_need_nonnegative(struct shape_call *c, const char *attr, float v)
{
    char text[32];

    if (isfinite(v) && v >= 0)
        return RLX_OK;
    str_from_f32(text, v);
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s is %s, must be finite and at least 0", c->name, attr,
                      text);
}

rlx_status shape_need_activation(struct shape_call *c, rlx_op activation, rlx_dtype dtype)
{
    if (activation == RLX_OP_none)
        return RLX_OK;
    if (dtype_is(dtype, shape_unary_classes(activation)))
        return RLX_OK;
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: activation %s is not a unary op on %s", c->name,
                      op_info(activation)->name, rlx_dtype_name(dtype));
}

rlx_status shape_packed_gradients(struct shape_call *c, int32_t count)
{
    ir_dim total = 0;

    for (int32_t i = 0; i < count; i++) {
        ir_dim one = shape_product(c, c->in[i]->dim, c->in[i]->rank);
        total = dim_add(c->mod->dims, total, one);
    }
    return shape_result(c, c->in[0]->dtype, 1, &total);
}
