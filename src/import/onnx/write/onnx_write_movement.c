/* onnx_write_movement.c: elements that only change places. */
#include "import/onnx/write/onnx_emit.h"

/* A single size that is not known is what is left of the elements. */
void write_reshape(struct emit *e)
{
    rlx_list shape = rlx_list_of(e->n->type.rank, e->n->type.dim);
    int32_t unknown = 0, last = 0;
    bool has_zero = false;

    for (int32_t i = 0; i < shape.count; i++) {
        has_zero |= shape.at[i] == 0;
        if (!dim_is_static(shape.at[i])) {
            unknown++;
            last = i;
        }
    }
    if (unknown == 1 && !has_zero)
        shape.at[last] = RLX_DIM_INFER;
    emit_give(e, emit_reshape(e, e->in[0], shape));
}

void write_transpose(struct emit *e)
{
    const rlx_list *perm = &e->n->attr.transpose.perm;

    emit_give(e, emit_transpose(e, e->in[0], perm->at, perm->count));
}

void write_narrow(struct emit *e)
{
    const struct attr_narrow *a = &e->n->attr.narrow;
    rlx_str start = emit_dim(e, a->start), end = emit_dim_sum(e, a->start, a->len);

    emit_give(e, emit_slice(e, e->in[0], a->axis, start, end, 1));
}

void write_concat(struct emit *e)
{
    emit_give(e, emit_concat(e, e->in, (size_t)e->n->in_count, e->n->attr.concat.axis));
}

/* An axis that stays as it is may be called 1. */
void write_expand(struct emit *e)
{
    const struct ir_type *x = emit_type(e, 0), *y = &e->n->type;
    rlx_list shape = rlx_list_of(y->rank, y->dim);

    for (int32_t i = 0; i < x->rank; i++)
        if (x->dim[i] == y->dim[y->rank - x->rank + i])
            shape.at[y->rank - x->rank + i] = 1;
    emit_give(e, emit_expand(e, e->in[0], shape));
}

/* Behind the last element that is read; going backwards, "before the first" needs a special number,
 * as -1 is the last. */
static bool slice_end(const struct attr_slice *a, int64_t *end)
{
    int64_t last;

    if (!dim_is_static(a->start) || !dim_is_static(a->len) ||
        __builtin_mul_overflow(a->len - 1, a->step, &last) ||
        __builtin_add_overflow(last, a->start, &last))
        return false;
    *end = a->len == 0 ? a->start : a->step > 0 ? last + 1 : last == 0 ? INT64_MIN : last - 1;
    return true;
}

void write_slice(struct emit *e)
{
    const struct attr_slice *a = &e->n->attr.slice;
    rlx_str start = emit_dim(e, a->start);
    int64_t end;

    if (slice_end(a, &end))
        emit_give(e, emit_slice(e, e->in[0], a->axis, start, emit_i64(e, end), a->step));
    else if (a->step < 0)
        emit_refuse(e, "it goes backwards over a symbolic size");
    else {
        rlx_str len = emit_2(e, "Mul", emit_dim(e, a->len), emit_i64(e, a->step));
        rlx_str all = emit_2(e, "Add", start, len);
        emit_give(e, emit_slice(e, e->in[0], a->axis, start, all, a->step));
    }
}

void write_reverse(struct emit *e)
{
    const rlx_list *axes = &e->n->attr.reverse.axes;
    int64_t start[RLX_MAX_RANK], end[RLX_MAX_RANK];
    size_t n = (size_t)axes->count;

    if (n == 0) {
        emit_give(e, e->in[0]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        start[i] = -1;
        end[i] = INT64_MIN;
    }
    const rlx_str in[] = {e->in[0], emit_i64s(e, start, n), emit_i64s(e, end, n),
                          emit_i64s(e, axes->at, n), emit_i64s(e, start, n)};
    emit_give(e, emit_node(e, "Slice", in, 5));
}

void write_pad(struct emit *e)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const struct attr_pad *a = &e->n->attr.pad;
    rlx_dtype t = e->n->type.dtype;
    const rlx_str sides[] = {emit_dims(e, a->before), emit_dims(e, a->after)};
    rlx_str pads = emit_concat(e, sides, 2, 0);
    bool plain = a->mode != 0 || a->value == 0;

    if (t == RLX_DTYPE_c64 && !plain) {
        emit_refuse(e, "complex numbers are padded with 0 alone");
        return;
    }
    rlx_str y = plain ? emit_2(e, "Pad", e->in[0], pads)
                      : emit_3(e, "Pad", e->in[0], pads, emit_number(e, t, a->value));
    emit_text(e, "mode", modes[a->mode]);
    emit_give(e, y);
}

void write_tile(struct emit *e)
{
    const rlx_list *reps = &e->n->attr.tile.reps;

    emit_give(e, emit_2(e, "Tile", e->in[0], emit_i64s(e, reps->at, (size_t)reps->count)));
}

void write_trilu(struct emit *e)
{
    rlx_str diagonal = emit_number(e, RLX_DTYPE_i64, (double)e->n->attr.trilu.diagonal);
    rlx_str y = emit_2(e, "Trilu", e->in[0], diagonal);

    emit_int(e, "upper", e->n->attr.trilu.upper);
    emit_give(e, y);
}

void write_resize_nearest_2x(struct emit *e)
{
    static const float twice[] = {1, 1, 2, 2};
    rlx_str scales = emit_const(e, RLX_DTYPE_f32, RLX_LIST(4), twice);
    rlx_str y = emit_3(e, "Resize", e->in[0], STR(""), scales);

    emit_text(e, "mode", "nearest");
    emit_text(e, "coordinate_transformation_mode", "asymmetric");
    emit_text(e, "nearest_mode", "floor");
    emit_give(e, y);
}

/* Resize would compute the places in floats; these are exact. */
void write_interpolate_3d(struct emit *e)
{
    const struct ir_type *from = emit_type(e, 0), *to = &e->n->type;
    rlx_str y = e->in[0];

    for (int32_t axis = 2; axis < 5; axis++) {
        int64_t n = from->dim[axis], m = to->dim[axis];
        if (n == m)
            continue;
        int64_t *place = dim_is_static(n) ? arena_array(e->w->arena, int64_t, (size_t)m) : NULL;
        if (!place) {
            emit_refuse(e, "axis %d is of a symbolic size", axis);
            return;
        }
        for (int64_t i = 0; i < m; i++)
            place[i] = (int64_t)((__int128)i * n / m);
        y = emit_2(e, "Gather", y, emit_i64s(e, place, (size_t)m));
        emit_int(e, "axis", axis);
    }
    emit_give(e, y);
}
