/* onnx_movement.c: ONNX ops that move elements about. */
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"
#include "ir/text/text.h"

static ir_dim dim_of(const struct onnx_size *s)
{
    return s->is_dim ? s->dim : s->number;
}

/* 0 keeps the input's size, unless allowzero; -1 is what is left. */
void onnx_reshape(struct onnx_call *c)
{
    struct onnx_size size[RLX_MAX_RANK];
    const struct ir_type t = *onnx_type(c, 0);
    rlx_list shape = {0};
    size_t count;

    if (!onnx_sizes_in(c, 1, size, RLX_MAX_RANK, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        ir_dim d = dim_of(&size[i]);
        if (!size[i].is_dim && d == 0 && !onnx_int(c, "allowzero", 0)) {
            if (i >= (size_t)t.rank)
                formula_fail(&c->f, RLX_ERROR_SHAPE, "entry %zu keeps an axis that does not exist",
                             i);
            d = t.dim[i];
        } else if (!size[i].is_dim && d < 0)
            d = RLX_DIM_INFER;
        shape.at[shape.count++] = d;
    }
    onnx_give(c, 0, formula_reshape(&c->f, onnx_in(c, 0), shape));
}

void onnx_transpose(struct onnx_call *c)
{
    rlx_list perm;
    int32_t rank = onnx_type(c, 0)->rank;

    if (!onnx_ints(c, "perm", &perm)) {
        perm.count = rank;
        for (int32_t i = 0; i < rank; i++)
            perm.at[i] = rank - 1 - i;
    }
    onnx_give(c, 0, formula_transpose(&c->f, onnx_in(c, 0), perm));
}

static bool holds(const rlx_list *l, int64_t v)
{
    for (int32_t i = 0; i < l->count; i++)
        if (l->at[i] == v)
            return true;
    return false;
}

void onnx_squeeze(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    rlx_list axes, shape = {0};
    bool given = onnx_ints_or_in(c, "axes", 1, &axes);

    if (given)
        axes = onnx_axes(c, axes, t.rank);
    for (int32_t i = 0; i < t.rank; i++) {
        bool goes = given ? holds(&axes, i) : t.dim[i] == 1;
        if (!goes)
            shape.at[shape.count++] = t.dim[i];
        else if (dim_is_static(t.dim[i]) && t.dim[i] != 1)
            formula_fail(&c->f, RLX_ERROR_SHAPE, "axis %d has %lld elements, not 1", i,
                         (long long)t.dim[i]);
    }
    onnx_give(c, 0, formula_reshape(&c->f, onnx_in(c, 0), shape));
}

void onnx_unsqueeze(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    rlx_list axes = {0}, shape = {0};
    int32_t next = 0;

    if (!onnx_ints_or_in(c, "axes", 1, &axes))
        onnx_unsupported(c, "axes that are not known at load");
    shape.count = t.rank + axes.count;
    if (shape.count > RLX_MAX_RANK) {
        onnx_unsupported(c, "a result of rank %d", shape.count);
        return;
    }
    axes = onnx_axes(c, axes, shape.count);
    for (int32_t i = 0; i < shape.count; i++) {
        bool is_new = holds(&axes, i);
        if (!is_new && next == t.rank) {
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "an axis is named twice");
            return;
        }
        shape.at[i] = is_new ? 1 : t.dim[next++];
    }
    onnx_give(c, 0, formula_reshape(&c->f, onnx_in(c, 0), shape));
}

void onnx_flatten(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    int64_t axis = onnx_int(c, "axis", 1);
    int32_t at = axis == t.rank ? t.rank : onnx_axis(c, axis, t.rank > 0 ? t.rank : 1);

    onnx_give(
        c, 0,
        formula_reshape(&c->f, onnx_in(c, 0),
                        RLX_LIST(onnx_product(c, &t, 0, at), onnx_product(c, &t, at, t.rank))));
}

void onnx_concat(struct onnx_call *c)
{
    ir_value *part = arena_array(onnx_arena(c), ir_value, c->in_count);

    if (!part) {
        c->f.status = diag_no_memory(c->f.diag, c->in_count * sizeof *part);
        return;
    }
    for (size_t i = 0; i < c->in_count; i++)
        part[i] = onnx_in(c, i);
    onnx_give(c, 0,
              formula_concat(&c->f, part, (int32_t)c->in_count,
                             onnx_int(c, "axis", c->opset < 4 ? 1 : 0)));
}

/* Given sizes, or equal parts of which the last may be smaller. */
void onnx_split(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    const struct onnx_attr *a = onnx_attr_as(c, "split", ONNX_ATTR_INTS);
    size_t count = 0, parts = c->out_count;
    const int64_t *len = NULL;
    ir_dim at = 0;

    if (onnx_has(c, 1) && !(len = onnx_i64s(c, 1, &count)))
        onnx_unsupported(c, "sizes that are not known at load");
    else if (!len && a) {
        len = a->ints.at;
        count = a->ints.count;
    }
    if (onnx_failed(c))
        return;
    if (len ? count < parts : !dim_is_static(t.dim[axis])) {
        onnx_unsupported(c, len ? "fewer sizes than results" : "equal parts of a symbolic axis");
        return;
    }
    int64_t each = len || parts == 0 ? 0 : (t.dim[axis] + (int64_t)parts - 1) / (int64_t)parts;
    for (size_t i = 0; i < parts && !onnx_failed(c); i++) {
        int64_t n = len ? len[i] : each;
        if (!len && at + n > t.dim[axis])
            n = t.dim[axis] - at > 0 ? t.dim[axis] - at : 0;
        if (n < 0)
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "a part of %lld elements", (long long)n);
        onnx_give(c, i, formula_narrow(&c->f, onnx_in(c, 0), axis, at, n));
        at += n;
    }
}

/* ---- Slice ---- */

#define FAR_AWAY (1 << 24) /* exporters write "to the end" as numbers from here on */

/* Where on an axis of n a bound lies, as NumPy has it; for steps down -1 is before the start. */
static int64_t bound(int64_t v, int64_t n, bool down)
{
    if (v < 0)
        v = v < -n ? -1 : v + n;
    if (down)
        return v > n - 1 ? n - 1 : v;
    return v < 0 ? 0 : v > n ? n : v;
}

static ir_value slice_static(struct formula *f, ir_value x, int32_t axis, int64_t n, int64_t start,
                             int64_t end, int64_t step)
{
    bool down = step < 0;

    start = bound(start, n, down);
    end = down && end < -n ? -1 : bound(end, n, down);
    int64_t span = down ? start - end : end - start;
    int64_t stride = down ? -step : step;
    int64_t len = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (len == 0)
        return formula_narrow(f, x, axis, 0, 0);
    return onnx_slice_of(f, x, axis, start, len, step);
}

/* A bound on an axis that holds symbols, or one that does so itself: it is taken at its word. */
static ir_dim symbolic_bound(struct onnx_call *c, const struct onnx_size *s, ir_dim n)
{
    if (s->is_dim)
        return s->dim;
    if (s->number >= FAR_AWAY)
        return n;
    if (s->number <= -FAR_AWAY)
        return 0;
    return s->number >= 0 ? s->number : dim_sub(onnx_dims(c), n, -s->number);
}

static ir_value slice_axis(struct onnx_call *c, ir_value x, int32_t axis,
                           const struct onnx_size *start, const struct onnx_size *end, int64_t step)
{
    struct formula *f = &c->f;
    ir_dim n = onnx_failed(c) ? 0 : formula_type(f, x)->dim[axis];

    if (step == 0 || step == INT64_MIN) {
        formula_fail(f, RLX_ERROR_ATTRIBUTE, "a step of 0");
        return x;
    }
    if (dim_is_static(n) && !start->is_dim && !end->is_dim)
        return slice_static(f, x, axis, n, start->number, end->number, step);
    if (step == -1 && !start->is_dim && !end->is_dim && start->number == -1 &&
        end->number < -FAR_AWAY)
        return formula_reverse(f, x, axis);
    if (step < 1) {
        onnx_unsupported(c, "steps down a symbolic axis");
        return x;
    }
    ir_dim from = symbolic_bound(c, start, n), to = symbolic_bound(c, end, n);
    ir_dim len = dim_sub(onnx_dims(c), to, from);
    if (step > 1)
        len = dim_floor_div(onnx_dims(c), dim_add(onnx_dims(c), len, step - 1), step);
    if (len == RLX_DIM_FAILED || from == RLX_DIM_FAILED) {
        onnx_unsupported(c, "a length that has no expression");
        return x;
    }
    return onnx_slice_of(f, x, axis, from, len, step);
}

static void list_sizes(const rlx_list *l, struct onnx_size *out)
{
    for (int32_t i = 0; i < l->count; i++)
        out[i] = (struct onnx_size){.number = l->at[i]};
}

void onnx_slice(struct onnx_call *c)
{
    struct onnx_size start[RLX_MAX_RANK], end[RLX_MAX_RANK];
    rlx_list axes, steps, starts = {0}, ends = {0};
    size_t count, ends_count;
    const struct ir_type t = *onnx_type(c, 0);

    if (c->opset >= 10) {
        if (!onnx_sizes_in(c, 1, start, RLX_MAX_RANK, &count) ||
            !onnx_sizes_in(c, 2, end, RLX_MAX_RANK, &ends_count))
            return;
    } else {
        onnx_ints(c, "starts", &starts);
        onnx_ints(c, "ends", &ends);
        list_sizes(&starts, start);
        list_sizes(&ends, end);
        count = (size_t)starts.count;
        ends_count = (size_t)ends.count;
    }
    if (!onnx_ints_or_in(c, "axes", 3, &axes))
        axes = onnx_all_axes((int32_t)count);
    steps = (rlx_list){.count = (int32_t)count};
    for (size_t i = 0; i < count; i++)
        steps.at[i] = 1;
    if (onnx_has(c, 4))
        onnx_ints_in(c, 4, &steps);
    if (ends_count != count || axes.count != (int32_t)count || steps.count != (int32_t)count)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "as many starts, ends, axes and steps are needed");
    axes = onnx_axes(c, axes, t.rank);
    ir_value x = onnx_in(c, 0);
    for (size_t i = 0; i < count && !onnx_failed(c); i++)
        x = slice_axis(c, x, (int32_t)axes.at[i], &start[i], &end[i], steps.at[i]);
    onnx_give(c, 0, x);
}

/* ---- larger than before ---- */

/* Both shapes broadcast: a 1 in the wanted one keeps what is there. */
void onnx_expand(struct onnx_call *c)
{
    struct onnx_size size[RLX_MAX_RANK];
    const struct ir_type t = *onnx_type(c, 0);
    size_t count;

    if (!onnx_sizes_in(c, 1, size, RLX_MAX_RANK, &count))
        return;
    int32_t want = (int32_t)count, rank = want > t.rank ? want : t.rank;
    rlx_list shape = {.count = rank};
    for (int32_t i = 0; i < rank; i++) {
        ir_dim have = i < rank - t.rank ? 1 : t.dim[i - (rank - t.rank)];
        ir_dim to = i < rank - want ? 1 : dim_of(&size[i - (rank - want)]);
        shape.at[i] = to == 1 ? have : to;
    }
    onnx_give(c, 0, formula_expand(&c->f, onnx_in(c, 0), shape));
}

void onnx_tile(struct onnx_call *c)
{
    union ir_attr attr;
    ir_value x = onnx_in(c, 0);

    attr_defaults(RLX_OP_tile, &attr);
    onnx_ints_in(c, 1, &attr.tile.reps);
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_tile, &x, 1, &attr));
}

#define MOST_PADS (INT64_C(1) << 40) /* elements on one side: more is a broken file */

static bool is_sane_pad(const struct onnx_size *s)
{
    return s->is_dim || (s->number >= -MOST_PADS && s->number <= MOST_PADS);
}

/* pads: before of every axis, then after; below 0 they cut. */
static bool pads_of(struct onnx_call *c, int32_t rank, struct onnx_size *before,
                    struct onnx_size *after)
{
    struct onnx_size pads[2 * RLX_MAX_RANK];
    const struct onnx_attr *a = onnx_attr_as(c, c->opset < 2 ? "paddings" : "pads", ONNX_ATTR_INTS);
    rlx_list axes = onnx_all_axes(rank);
    size_t count = 0;

    memset(before, 0, RLX_MAX_RANK * sizeof *before);
    memset(after, 0, RLX_MAX_RANK * sizeof *after);
    if (onnx_has(c, 3) && onnx_ints_in(c, 3, &axes))
        axes = onnx_axes(c, axes, rank);
    if (c->opset >= 11)
        onnx_sizes_in(c, 1, pads, 2 * RLX_MAX_RANK, &count);
    else
        for (; a && count < a->ints.count && count < 2 * RLX_MAX_RANK; count++)
            pads[count] = (struct onnx_size){.number = a->ints.at[count]};
    if (!onnx_failed(c) && count != 2 * (size_t)axes.count)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%zu pads for %d axes", count, axes.count);
    for (size_t i = 0; !onnx_failed(c) && i < count; i++)
        if (!is_sane_pad(&pads[i]))
            formula_fail(&c->f, RLX_ERROR_LIMIT, "pads of %lld", (long long)pads[i].number);
    for (int32_t i = 0; !onnx_failed(c) && i < axes.count; i++) {
        before[axes.at[i]] = pads[i];
        after[axes.at[i]] = pads[i + axes.count];
    }
    return !onnx_failed(c);
}

static ir_value cut(struct onnx_call *c, ir_value x, int32_t axis, int64_t before, int64_t after)
{
    ir_dim n = onnx_failed(c) ? 0 : formula_type(&c->f, x)->dim[axis];

    if (before == 0 && after == 0)
        return x;
    ir_dim len = dim_sub(onnx_dims(c), n, before + after);
    if (len == RLX_DIM_FAILED) {
        formula_fail(&c->f, RLX_ERROR_SHAPE, "more is cut off than there is");
        return x;
    }
    return formula_narrow(&c->f, x, axis, before, len);
}

void onnx_pad(struct onnx_call *c)
{
    struct onnx_size before[RLX_MAX_RANK], after[RLX_MAX_RANK];
    const struct ir_type t = *onnx_type(c, 0);
    rlx_str mode = onnx_text(c, "mode", "constant");
    union ir_attr attr;
    ir_value x = onnx_in(c, 0);
    bool any = false;

    attr_defaults(RLX_OP_pad, &attr);
    attr.pad.value = onnx_float(c, "value", 0);
    if (onnx_has(c, 2))
        onnx_number_in(c, 2, &attr.pad.value);
    rlx_str word = str_eq(mode, STR("edge"))   ? STR("replicate")
                   : str_eq(mode, STR("wrap")) ? STR("circular")
                                               : mode;
    if (!enum_from_word("pad_mode", word, &attr.pad.mode))
        onnx_unsupported(c, "mode \"%.*s\"", STR_ARG(mode));
    if (!pads_of(c, t.rank, before, after))
        return;
    attr.pad.before.count = attr.pad.after.count = t.rank;
    for (int32_t i = 0; i < t.rank; i++) {
        bool cuts_before = !before[i].is_dim && before[i].number < 0;
        bool cuts_after = !after[i].is_dim && after[i].number < 0;
        x = cut(c, x, i, cuts_before ? -before[i].number : 0, cuts_after ? -after[i].number : 0);
        attr.pad.before.at[i] = cuts_before ? 0 : dim_of(&before[i]);
        attr.pad.after.at[i] = cuts_after ? 0 : dim_of(&after[i]);
        any |= attr.pad.before.at[i] != 0 || attr.pad.after.at[i] != 0;
    }
    onnx_give(c, 0, any ? formula_node(&c->f, RLX_OP_pad, &x, 1, &attr) : x);
}

/* ---- pictures ---- */

/* [N, C, H, W]: blocks of depth become blocks of space. */
void onnx_depth_to_space(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int64_t b = onnx_int(c, "blocksize", 0);
    bool crd = str_eq(onnx_text(c, "mode", "DCR"), STR("CRD"));

    if (t.rank != 4 || b < 1 || b > 1 << 15 || !dim_is_static(t.dim[1]) || t.dim[1] % (b * b)) {
        formula_fail(f, RLX_ERROR_SHAPE, "the channels are not a multiple of a block");
        return;
    }
    int64_t depth = t.dim[1] / (b * b);
    ir_dim high = dim_mul(onnx_dims(c), t.dim[2], b), wide = dim_mul(onnx_dims(c), t.dim[3], b);
    ir_value x = formula_reshape(f, onnx_in(c, 0),
                                 crd ? RLX_LIST(t.dim[0], depth, b, b, t.dim[2], t.dim[3])
                                     : RLX_LIST(t.dim[0], b, b, depth, t.dim[2], t.dim[3]));
    x = formula_transpose(f, x, crd ? RLX_LIST(0, 1, 4, 2, 5, 3) : RLX_LIST(0, 3, 4, 1, 5, 2));
    onnx_give(c, 0, formula_reshape(f, x, RLX_LIST(t.dim[0], depth, high, wide)));
}

void onnx_space_to_depth(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int64_t b = onnx_int(c, "blocksize", 0);

    if (t.rank != 4 || b < 1 || b > 1 << 15 || !dim_is_static(t.dim[1])) {
        formula_fail(f, RLX_ERROR_SHAPE, "a picture and blocks are needed");
        return;
    }
    ir_dim high = dim_floor_div(onnx_dims(c), t.dim[2], b);
    ir_dim wide = dim_floor_div(onnx_dims(c), t.dim[3], b);
    ir_value x = formula_reshape(f, onnx_in(c, 0), RLX_LIST(t.dim[0], t.dim[1], high, b, wide, b));
    bool crd = str_eq(onnx_text(c, "mode", "DCR"), STR("CRD"));
    x = formula_transpose(f, x, crd ? RLX_LIST(0, 1, 3, 5, 2, 4) : RLX_LIST(0, 3, 5, 1, 2, 4));
    onnx_give(c, 0, formula_reshape(f, x, RLX_LIST(t.dim[0], t.dim[1] * b * b, high, wide)));
}

void onnx_trilu(struct onnx_call *c)
{
    union ir_attr attr;
    ir_value x = onnx_in(c, 0);
    int64_t k = 0;

    if (onnx_has(c, 1))
        onnx_whole_in(c, 1, &k);
    attr_defaults(RLX_OP_trilu, &attr);
    attr.trilu.upper = onnx_int(c, "upper", 1) != 0;
    attr.trilu.diagonal = k;
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_trilu, &x, 1, &attr));
}

/* Crop to, or pad with zeros to, the wanted sizes, around the middle. */
void onnx_center_crop_pad(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    rlx_list want, axes = onnx_all_axes(t.rank);
    rlx_list before = {.count = t.rank}, after = {.count = t.rank};
    ir_value x = onnx_in(c, 0);

    if (onnx_ints(c, "axes", &axes))
        axes = onnx_axes(c, axes, t.rank);
    if (!onnx_ints_in(c, 1, &want))
        return;
    if (want.count != axes.count || !type_is_static(&t)) {
        onnx_unsupported(c, "symbolic sizes");
        return;
    }
    for (int32_t i = 0; i < axes.count && !onnx_failed(c); i++) {
        if (want.at[i] < 0 || want.at[i] > MOST_PADS) {
            formula_fail(f, RLX_ERROR_LIMIT, "a size of %lld", (long long)want.at[i]);
            return;
        }
        int64_t axis = axes.at[i], more = want.at[i] - t.dim[axis];
        if (more < 0)
            x = formula_narrow(f, x, axis, -more / 2, want.at[i]);
        before.at[axis] = more > 0 ? more / 2 : 0;
        after.at[axis] = more > 0 ? more - more / 2 : 0;
    }
    onnx_give(c, 0, onnx_pad_of(f, x, before, after, 0));
}

/* The first seq_lens[b] steps of each batch item back to front. */
void onnx_reverse_sequence(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int32_t time = onnx_axis(c, onnx_int(c, "time_axis", 0), t.rank);
    int32_t batch = onnx_axis(c, onnx_int(c, "batch_axis", 1), t.rank);
    rlx_list by_time = {.count = t.rank}, by_batch = {.count = t.rank};
    union ir_attr attr;

    for (int32_t i = 0; i < t.rank; i++) {
        by_time.at[i] = i == time ? t.dim[i] : 1;
        by_batch.at[i] = i == batch ? t.dim[i] : 1;
    }
    ir_value step = formula_reshape(f, onnx_iota(c, t.dim[time], RLX_DTYPE_i64), by_time);
    ir_value len = formula_reshape(f, formula_cast(f, onnx_in(c, 1), RLX_DTYPE_i64), by_batch);
    ir_value last = formula_2(f, RLX_OP_sub, len, formula_number_of(f, RLX_DTYPE_i64, 1));
    ir_value from = formula_where(f, formula_2(f, RLX_OP_lt, step, len),
                                  formula_2(f, RLX_OP_sub, last, step), step);
    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = time;
    ir_value in[] = {onnx_in(c, 0), formula_expand(f, from, formula_shape(&t))};
    onnx_give(c, 0, formula_node(f, RLX_OP_gather_elements, in, 2, &attr));
}
