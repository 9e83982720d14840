/* shape_movement.c: the same elements elsewhere: reshaped, reordered, cut, joined, repeated. */
#include <math.h>

#include "ir/shape/shape.h"

/* ---- reshape, expand ----------------------------------------------------------------------- */

static bool is_infer(ir_dim d)
{
    return d == RLX_DIM_INFER || d == -1; /* -1 is not a handle, so it can only mean this */
}

/* Do two products differ whatever the symbols are? Asked once, when the node is built. */
static bool surely_differ(struct shape_call *c, ir_dim a, ir_dim b)
{
    if (!c->note_checks)
        return false;
    return dim_sub(c->mod->dims, a, b) > 0 || dim_sub(c->mod->dims, b, a) > 0;
}

static rlx_status cannot_reshape(struct shape_call *c, ir_dim total, const char *shape,
                                 const char *hint)
{
    return SHAPE_FAIL(c, SHAPE, "%s: cannot turn %s elements of %s into %s%s", c->name,
                      dim_text(c, total), type_text(c, c->in[0]), shape, hint);
}

/* The entries as given, -1 still among them: which it is (or -1), and the product of the others. */
static rlx_status read_target(struct shape_call *c, const rlx_list *shape, int32_t *infer,
                              ir_dim *others)
{
    *infer = -1;
    *others = 1;
    for (int32_t i = 0; i < shape->count; i++) {
        if (!is_infer(shape->at[i])) {
            TRY(shape_need_size(c, "an entry of shape", shape->at[i]));
            *others = dim_mul(c->mod->dims, *others, shape->at[i]);
            continue;
        }
        if (*infer >= 0)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: entries %d and %d of shape are both -1", c->name,
                              *infer, i);
        *infer = i;
    }
    if (*others == RLX_DIM_FAILED)
        return SHAPE_FAIL(c, LIMIT, "%s: the element count of the new shape overflows", c->name);
    return RLX_OK;
}

/* -1 becomes what the other entries leave over; with an unknown size in x it stays until then. */
rlx_status shape_reshape(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    rlx_list *shape = &c->attr->reshape.shape;
    ir_dim others, total = shape_product(c, x->dim, x->rank);
    int32_t infer;

    TRY(read_target(c, shape, &infer, &others));
    if (total == RLX_DIM_FAILED)
        return SHAPE_FAIL(c, LIMIT, "%s: the element count of %s overflows", c->name,
                          type_text(c, x));
    TRY(shape_result(c, x->dtype, shape->count, shape->at));
    if (infer < 0) {
        if (surely_differ(c, total, others) || !shape_agree(c, total, others, "element counts"))
            return cannot_reshape(c, total, dims_text(c, shape->at, shape->count), "");
        return RLX_OK;
    }
    c->out->dim[infer] = RLX_DIM_INFER; /* for messages */
    if (others == 0)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: -1 in %s has no value, as the other sizes give 0",
                          c->name, dims_text(c, c->out->dim, shape->count));
    ir_dim rest = dim_exact_div(c->mod->dims, total, others);
    if (rest == RLX_DIM_FAILED)
        return cannot_reshape(c, total, dims_text(c, c->out->dim, shape->count),
                              dim_is_static(total) && dim_is_static(others)
                                  ? ""
                                  : ": the sizes do not cancel; write the -1 out");
    c->out->dim[infer] = rest;
    shape->at[infer] = rest == RLX_DIM_UNKNOWN ? RLX_DIM_INFER : rest;
    return RLX_OK;
}

/* A symbolic axis of x may still turn out to be 1, so only binding can tell whether it fits. */
rlx_status shape_expand(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    rlx_list *shape = &c->attr->expand.shape;
    int32_t lead = shape->count - x->rank;

    if (lead < 0)
        return SHAPE_FAIL(c, SHAPE, "%s: %s has more axes than the target's %d", c->name,
                          type_text(c, x), shape->count);
    TRY(shape_result(c, x->dtype, shape->count, shape->at));
    for (int32_t i = 0; i < shape->count; i++) {
        ir_dim from = i < lead ? 1 : x->dim[i - lead];
        if (is_infer(shape->at[i])) {
            if (i < lead)
                return SHAPE_FAIL(c, ATTRIBUTE,
                                  "%s: entry %d of shape is -1, but %s has no such axis", c->name,
                                  i, type_text(c, x));
            c->out->dim[i] = from;
            shape->at[i] = from == RLX_DIM_UNKNOWN ? RLX_DIM_INFER : from;
            continue;
        }
        TRY(shape_need_size(c, "an entry of shape", shape->at[i]));
        if (from != 1 && !shape_check(c, CHECK_STRETCHES, from, shape->at[i], RLX_ERROR_SHAPE,
                                      "an axis and its target"))
            return SHAPE_FAIL(c, SHAPE, "%s: %s does not broadcast to %s: %s against %s", c->name,
                              type_text(c, x), dims_text(c, shape->at, shape->count),
                              dim_text(c, from), dim_text(c, shape->at[i]));
    }
    return RLX_OK;
}

/* ---- transpose, reverse -------------------------------------------------------------------- */

rlx_status shape_transpose(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    rlx_list *perm = &c->attr->transpose.perm;

    if (perm->count != x->rank)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: perm %s has %d entries, but %s has rank %d", c->name,
                          ints_text(c, perm), perm->count, type_text(c, x), x->rank);
    TRY(shape_axes(c, "perm", perm, x->rank));
    c->out->dtype = x->dtype;
    c->out->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++)
        c->out->dim[i] = x->dim[perm->at[i]];
    return RLX_OK;
}

rlx_status shape_reverse(struct shape_call *c)
{
    TRY(shape_axes(c, "axes", &c->attr->reverse.axes, c->in[0]->rank));
    return shape_result_like(c, 0);
}

/* ---- narrow, slice ------------------------------------------------------------------------- */

/* n >= a + b, where a sum that overflows is past the end of any axis. */
static bool reaches(struct shape_call *c, ir_dim n, ir_dim a, ir_dim b, const char *what)
{
    ir_dim end = dim_add(c->mod->dims, a, b);

    if (end == RLX_DIM_FAILED && dim_is_static(a) && dim_is_static(b))
        return false;
    return shape_check(c, CHECK_AT_LEAST, n, end, RLX_ERROR_ATTRIBUTE, what);
}

rlx_status shape_narrow(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    struct attr_narrow *a = &c->attr->narrow;

    TRY(shape_axis(c, "axis", &a->axis, x->rank));
    TRY(shape_need_size(c, "start", a->start));
    TRY(shape_need_size(c, "len", a->len));
    if (!reaches(c, x->dim[a->axis], a->start, a->len, "an axis and the end of its part"))
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: start %s and len %s go past axis %lld of %s", c->name,
                          dim_text(c, a->start), dim_text(c, a->len), (long long)a->axis,
                          type_text(c, x));
    TRY(shape_result_like(c, 0));
    c->out->dim[a->axis] = a->len;
    return RLX_OK;
}

/* Are the first and last index read inside the axis? With a symbolic len there may be none at all:
 * then only binding can tell. */
static bool slice_fits(struct shape_call *c, ir_dim n, const struct attr_slice *a)
{
    const char *what = "an axis and the end of its slice";
    int64_t span;

    if (!dim_is_static(a->len) || a->len == 0)
        return true;
    if (__builtin_mul_overflow(a->len - 1, a->step, &span) || span == INT64_MAX ||
        span == INT64_MIN)
        return false;
    if (span >= 0)
        return reaches(c, n, a->start, span + 1, what);
    return shape_check(c, CHECK_AT_LEAST, a->start, -span, RLX_ERROR_ATTRIBUTE,
                       "the start of a slice and how far it steps back") &&
           reaches(c, n, a->start, 1, what);
}

rlx_status shape_slice(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    struct attr_slice *a = &c->attr->slice;

    TRY(shape_axis(c, "axis", &a->axis, x->rank));
    TRY(shape_need_size(c, "start", a->start));
    TRY(shape_need_size(c, "len", a->len));
    if (a->step == 0)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: step must not be 0", c->name);
    if (!slice_fits(c, x->dim[a->axis], a))
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: start %s, len %s, step %lld leave axis %lld of %s",
                          c->name, dim_text(c, a->start), dim_text(c, a->len), (long long)a->step,
                          (long long)a->axis, type_text(c, x));
    TRY(shape_result_like(c, 0));
    c->out->dim[a->axis] = a->len;
    return RLX_OK;
}

/* ---- concat, pad, tile --------------------------------------------------------------------- */

rlx_status shape_concat(struct shape_call *c)
{
    int64_t *axis = &c->attr->concat.axis;

    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_axis(c, "axis", axis, c->in[0]->rank));
    TRY(shape_result_like(c, 0));
    for (int32_t i = 1; i < c->in_count; i++) {
        const struct ir_type *part = c->in[i];
        TRY(shape_need_same_dtype(c, 0, i));
        bool fits = part->rank == c->out->rank;
        for (int32_t k = 0; fits && k < part->rank; k++) {
            ir_dim *out = &c->out->dim[k];
            if (k == *axis) {
                *out = dim_add(c->mod->dims, *out, part->dim[k]);
                continue;
            }
            fits = shape_agree(c, *out, part->dim[k], "sizes off the axis");
            *out = shape_meet(*out, part->dim[k]);
        }
        if (!fits)
            return SHAPE_FAIL(c, SHAPE, "%s: %s is %s, which does not match %s along axis %lld",
                              c->name, shape_operand_name(c, i), type_text(c, part),
                              type_text(c, c->in[0]), (long long)*axis);
    }
    return RLX_OK;
}

/* How far one side may be padded: reflect mirrors the n - 1 elements after the edge, circular has
 * n to take, replicate needs one. A symbolic pad may be 0: binding decides. */
static bool pad_fits(struct shape_call *c, int32_t mode, ir_dim n, ir_dim pad)
{
    if (mode == RLX_PAD_MODE_constant || pad == 0 || !dim_is_static(pad))
        return true;
    if (mode == RLX_PAD_MODE_replicate)
        pad = 1;
    return reaches(c, n, pad, mode == RLX_PAD_MODE_reflect ? 1 : 0, "an axis and its padding");
}

/* The fill is stored in x's type as it is: an integer tensor takes integers it can hold. */
static rlx_status need_fill(struct shape_call *c, double v)
{
    rlx_dtype d = c->in[0]->dtype;
    int bits = 8 * (int)rlx_dtype_size(d);
    double low = 0, end = 2; /* bool; end is not in the range */
    char text[32];

    if (dtype_is(d, CLASS_F | CLASS_C))
        return RLX_OK;
    if (dtype_is(d, CLASS_I)) {
        low = -ldexp(1, bits - 1);
        end = -low;
    } else if (dtype_is(d, CLASS_U)) {
        end = ldexp(1, bits);
    }
    if (v >= low && v < end && floor(v) == v)
        return RLX_OK;
    str_from_f64(text, v);
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: value %s is not a valid %s", c->name, text,
                      rlx_dtype_name(d));
}

rlx_status shape_pad(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    const struct attr_pad *a = &c->attr->pad;

    if (a->before.count != x->rank || a->after.count != x->rank)
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: before has %d and after %d entries, but %s has rank %d", c->name,
                          a->before.count, a->after.count, type_text(c, x), x->rank);
    if (a->mode == RLX_PAD_MODE_constant)
        TRY(need_fill(c, a->value));
    TRY(shape_result_like(c, 0));
    for (int32_t i = 0; i < x->rank; i++) {
        TRY(shape_need_size(c, "an entry of before", a->before.at[i]));
        TRY(shape_need_size(c, "an entry of after", a->after.at[i]));
        if (!pad_fits(c, a->mode, x->dim[i], a->before.at[i]) ||
            !pad_fits(c, a->mode, x->dim[i], a->after.at[i]))
            return SHAPE_FAIL(c, ATTRIBUTE,
                              "%s: axis %d of %s is too short to pad by %s and %s (%s)", c->name, i,
                              type_text(c, x), dim_text(c, a->before.at[i]),
                              dim_text(c, a->after.at[i]), enum_word("pad_mode", a->mode));
        c->out->dim[i] = dim_add(c->mod->dims, dim_add(c->mod->dims, x->dim[i], a->before.at[i]),
                                 a->after.at[i]);
    }
    return RLX_OK;
}

rlx_status shape_tile(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    const rlx_list *reps = &c->attr->tile.reps;

    if (reps->count != x->rank)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: reps %s has %d entries, but %s has rank %d", c->name,
                          ints_text(c, reps), reps->count, type_text(c, x), x->rank);
    TRY(shape_result_like(c, 0));
    for (int32_t i = 0; i < x->rank; i++) {
        if (reps->at[i] < 0)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: reps %s has a negative entry", c->name,
                              ints_text(c, reps));
        c->out->dim[i] = dim_mul(c->mod->dims, x->dim[i], reps->at[i]);
    }
    return RLX_OK;
}

/* ---- trilu, resizing ----------------------------------------------------------------------- */

rlx_status shape_trilu(struct shape_call *c)
{
    TRY(shape_need_rank(c, 0, 2, RLX_MAX_RANK));
    return shape_result_like(c, 0);
}

/* [n, c, h, w] -> [n, c, 2h, 2w] */
rlx_status shape_resize_nearest_2x(struct shape_call *c)
{
    TRY(shape_need_rank(c, 0, 4, 4));
    TRY(shape_result_like(c, 0));
    for (int i = 2; i < 4; i++)
        c->out->dim[i] = dim_mul(c->mod->dims, c->out->dim[i], 2);
    return RLX_OK;
}

/* [n, c, d, h, w] -> [n, c] ++ size */
rlx_status shape_interpolate_3d(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    const rlx_list *size = &c->attr->interpolate_3d.size;

    TRY(shape_need_rank(c, 0, 5, 5));
    if (size->count != 3)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: size %s must have 3 entries", c->name,
                          ints_text(c, size));
    TRY(shape_result_like(c, 0));
    for (int i = 0; i < 3; i++) {
        if (size->at[i] < 0)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: size %s has a negative entry", c->name,
                              ints_text(c, size));
        if (size->at[i] > 0 && !shape_at_least(c, x->dim[2 + i], 1, "a resized axis and 1"))
            return SHAPE_FAIL(c, SHAPE, "%s: axis %d of %s is empty, so it cannot become %lld",
                              c->name, 2 + i, type_text(c, x), (long long)size->at[i]);
        c->out->dim[2 + i] = size->at[i];
    }
    return RLX_OK;
}
