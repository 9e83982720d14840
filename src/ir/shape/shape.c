/* shape.c: the table of shape rules, and the questions that most rules ask. */
#include "ir/shape/shape.h"

#include <stdio.h>
#include <string.h>

static const shape_rule rule_table[FAMILY_count] = {
#define FAMILY(name, rule, ...) [FAMILY_##name] = shape_##rule,
#include "ir/ops.def"
};

/* Asked for no family, or for one that does not exist. */
static rlx_status no_rule(struct shape_call *c)
{
    return SHAPE_FAIL(c, INTERNAL, "%s: there is no shape rule for it", c->name);
}

shape_rule shape_rule_of(enum op_family f)
{
    return (unsigned)f < FAMILY_count && rule_table[f] ? rule_table[f] : no_rule;
}

/* ---- operands ------------------------------------------------------------------------------ */

static const char *classes_text(struct shape_call *c, unsigned classes)
{
    static const struct {
        unsigned bits;
        const char *word;
    } words[] = {
        {CLASS_F, "floats"},
        {CLASS_INT, "integers"},
        {CLASS_I, "signed integers"},
        {CLASS_U, "unsigned integers"},
        {CLASS_B, "bool"},
        {CLASS_C, "c64"},
    };
    char *out = c->text[c->texts++ % 8];
    size_t at = 0;

    out[0] = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((classes & words[i].bits) != words[i].bits)
            continue;
        at += (size_t)snprintf(out + at, sizeof c->text[0] - at, "%s%s", at ? ", " : "",
                               words[i].word);
        classes &= ~words[i].bits;
    }
    return out;
}

rlx_status shape_need_class(struct shape_call *c, int32_t operand, unsigned classes)
{
    rlx_dtype d = c->in[operand]->dtype;

    if (dtype_is(d, classes))
        return RLX_OK;
    return SHAPE_FAIL(c, DTYPE, "%s: %s has element type %s; allowed: %s", c->name,
                      shape_operand_name(c, operand), rlx_dtype_name(d), classes_text(c, classes));
}

rlx_status shape_need_same_dtype(struct shape_call *c, int32_t a, int32_t b)
{
    rlx_dtype x = c->in[a]->dtype, y = c->in[b]->dtype;

    if (x == y)
        return RLX_OK;
    return SHAPE_FAIL(c, DTYPE, "%s: %s is %s but %s is %s", c->name, shape_operand_name(c, a),
                      rlx_dtype_name(x), shape_operand_name(c, b), rlx_dtype_name(y));
}

rlx_status shape_need_rank(struct shape_call *c, int32_t operand, int32_t lo, int32_t hi)
{
    const struct ir_type *t = c->in[operand];

    if (t->rank >= lo && t->rank <= hi)
        return RLX_OK;
    const char *name = shape_operand_name(c, operand), *type = type_text(c, t);
    if (lo == hi)
        return SHAPE_FAIL(c, SHAPE, "%s: %s is %s; its rank must be %d", c->name, name, type, lo);
    if (hi >= RLX_MAX_RANK)
        return SHAPE_FAIL(c, SHAPE, "%s: %s is %s; its rank must be at least %d", c->name, name,
                          type, lo);
    return SHAPE_FAIL(c, SHAPE, "%s: %s is %s; its rank must be %d to %d", c->name, name, type, lo,
                      hi);
}

rlx_status shape_need_index(struct shape_call *c, int32_t operand)
{
    rlx_dtype d = c->in[operand]->dtype;

    if (dtype_is(d, CLASS_INT) || d == RLX_DTYPE_f32 || d == RLX_DTYPE_f64)
        return RLX_OK;
    return SHAPE_FAIL(c, DTYPE, "%s: %s holds indices, which must be integers, f32 or f64, not %s",
                      c->name, shape_operand_name(c, operand), rlx_dtype_name(d));
}

rlx_status shape_need_integer_scalar(struct shape_call *c, int32_t operand)
{
    const struct ir_type *t = c->in[operand];

    TRY(shape_need_class(c, operand, CLASS_INT));
    for (int32_t i = 0; i < t->rank; i++)
        if (!shape_agree(c, t->dim[i], 1, "a scalar's size and 1"))
            return SHAPE_FAIL(c, SHAPE, "%s: %s must have one element, not the shape %s", c->name,
                              shape_operand_name(c, operand), dims_text(c, t->dim, t->rank));
    return RLX_OK;
}

rlx_status shape_need_state(struct shape_call *c, int32_t operand)
{
    rlx_op op = ir_node(c->graph, c->in_id[operand])->op;

    if (op == RLX_OP_state)
        return RLX_OK;
    return SHAPE_FAIL(c, GRAPH, "%s: %s must be a state leaf, as it is written, not a result of %s",
                      c->name, shape_operand_name(c, operand), op_info(op)->name);
}

rlx_status shape_need_inputs(struct shape_call *c, int32_t count, const char *why)
{
    if (c->in_count == count)
        return RLX_OK;
    return SHAPE_FAIL(c, GRAPH, "%s: takes %d input%s with %s, got %d", c->name, count,
                      count == 1 ? "" : "s", why, c->in_count);
}

rlx_status shape_need_same_shape(struct shape_call *c, int32_t a, int32_t b)
{
    const struct ir_type *x = c->in[a], *y = c->in[b];
    bool same = x->rank == y->rank;

    for (int32_t i = 0; same && i < x->rank; i++)
        same = shape_agree(c, x->dim[i], y->dim[i], "sizes of operands of one shape");
    if (same)
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: %s and %s must have one shape, not %s and %s", c->name,
                      shape_operand_name(c, a), shape_operand_name(c, b), type_text(c, x),
                      type_text(c, y));
}

/* ---- attributes ---------------------------------------------------------------------------- */

rlx_status shape_axis(struct shape_call *c, const char *what, int64_t *axis, int32_t rank)
{
    if (*axis < -(int64_t)rank || *axis >= rank) {
        if (rank == 0)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s is %lld, but rank 0 has no axes", c->name, what,
                              (long long)*axis);
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s is %lld; rank %d allows %d to %d", c->name, what,
                          (long long)*axis, rank, -rank, rank - 1);
    }
    if (*axis < 0)
        *axis += rank;
    return RLX_OK;
}

rlx_status shape_axes(struct shape_call *c, const char *what, rlx_list *axes, int32_t rank)
{
    rlx_list given = *axes;
    unsigned seen = 0;

    for (int32_t i = 0; i < given.count; i++) {
        TRY(shape_axis(c, what, &axes->at[i], rank));
        if (seen & (1u << axes->at[i]))
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s %s names axis %lld twice", c->name, what,
                              ints_text(c, &given), (long long)axes->at[i]);
        seen |= 1u << axes->at[i];
    }
    return RLX_OK;
}

rlx_status shape_need_static(struct shape_call *c, ir_dim d, const char *what)
{
    if (dim_is_static(d))
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: %s must be a fixed size, not %s", c->name, what,
                      dim_text(c, d));
}

rlx_status shape_need_size(struct shape_call *c, const char *what, ir_dim d)
{
    if (d >= 0)
        return RLX_OK;
    if (d == RLX_DIM_FAILED)
        return SHAPE_FAIL(c, LIMIT, "%s: %s overflows", c->name, what);
    if (d == RLX_DIM_UNKNOWN || d == RLX_DIM_INFER)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s must be a size or an expression, not %s", c->name,
                          what, dim_text(c, d));
    if (dim_add(c->mod->dims, d, 0) == RLX_DIM_FAILED) /* anything but a handle is a plain number */
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s is %lld; a size cannot be negative", c->name, what,
                          (long long)d);
    return RLX_OK;
}

rlx_status shape_need_index_dtype(struct shape_call *c, rlx_dtype index, ir_dim axis)
{
    const int64_t most = index == RLX_DTYPE_f32   ? INT64_C(1) << 24
                         : index == RLX_DTYPE_i32 ? INT64_C(1) << 31
                                                  : INT64_MAX;

    if (index != RLX_DTYPE_i32 && index != RLX_DTYPE_i64 && index != RLX_DTYPE_f32)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: index_dtype must be i32, i64 or f32, not %s", c->name,
                          rlx_dtype_name(index));
    if (dim_is_static(axis) ? axis > most
                            : index == RLX_DTYPE_f32 &&
                                  !shape_check(c, CHECK_AT_LEAST, most, axis, RLX_ERROR_ATTRIBUTE,
                                               "the most that f32 can index and the axis"))
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: index_dtype %s cannot count an axis of %s; at most %lld", c->name,
                          rlx_dtype_name(index), dim_text(c, axis), (long long)most);
    return RLX_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

rlx_status shape_result(struct shape_call *c, rlx_dtype dtype, int32_t rank, const ir_dim *dim)
{
    if (rank > RLX_MAX_RANK)
        return SHAPE_FAIL(c, LIMIT, "%s: the result would have rank %d, at most %d is allowed",
                          c->name, rank, RLX_MAX_RANK);
    c->out->dtype = dtype;
    c->out->rank = rank;
    for (int32_t i = 0; i < rank; i++)
        c->out->dim[i] = dim[i];
    return RLX_OK;
}

rlx_status shape_result_like(struct shape_call *c, int32_t operand)
{
    *c->out = *c->in[operand];
    return RLX_OK;
}

rlx_status shape_need_elements(struct shape_call *c, ir_dim axis, const char *what)
{
    if (dim_is_static(axis) && axis > 0)
        return RLX_OK;
    for (int32_t i = 0; i < c->out->rank; i++)
        if (c->out->dim[i] == 0)
            return RLX_OK;
    if (!shape_check(c, CHECK_FILLED, axis, shape_product(c, c->out->dim, c->out->rank),
                     RLX_ERROR_SHAPE, "an axis that is read and the elements of the result"))
        return SHAPE_FAIL(c, SHAPE, "%s: %s is empty, but the result %s is not", c->name, what,
                          type_text(c, c->out));
    return RLX_OK;
}
