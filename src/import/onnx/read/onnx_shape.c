/* onnx_shape.c: ONNX ops that give shapes, constants and ranges. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/str.h"
#include "import/onnx/read/onnx_build.h"
#include "import/onnx/read/onnx_scope.h"

#define MAX_RANGE (1 << 24) /* elements that are written down; longer ones are counted up */

static struct onnx_size size_of(ir_dim d)
{
    return dim_is_static(d) ? (struct onnx_size){.number = d}
                            : (struct onnx_size){.is_dim = true, .dim = d};
}

void onnx_shape(struct onnx_call *c)
{
    const struct ir_type *t = onnx_type(c, 0);
    int64_t start = onnx_int(c, "start", 0), end = onnx_int(c, "end", t->rank);
    struct onnx_size size[RLX_MAX_RANK];
    size_t count = 0;

    start = start < 0 ? start + t->rank : start;
    end = end < 0 ? end + t->rank : end;
    for (int64_t i = start < 0 ? 0 : start; i < end && i < t->rank; i++)
        size[count++] = size_of(t->dim[i]);
    onnx_give_sizes(c, 0, 1, size, count);
}

void onnx_size(struct onnx_call *c)
{
    const struct ir_type *t = onnx_type(c, 0);
    ir_dim all = 1;

    for (int32_t i = 0; i < t->rank; i++)
        all = dim_mul(onnx_dims(c), all, t->dim[i]);
    if (all == RLX_DIM_FAILED)
        onnx_unsupported(c, "its size has no expression");
    struct onnx_size size = size_of(all);
    onnx_give_sizes(c, 0, 0, &size, 1);
}

/* ---- constants ---- */

static void give_tensor(struct onnx_call *c, const struct onnx_tensor *t)
{
    struct ir_type type;
    const void *data = NULL;

    c->f.status = onnx_tensor_data(t, &c->im->out->files, onnx_arena(c), &type, &data, c->f.diag);
    onnx_give_known(c, 0, &type, data);
    onnx_give_type(c, 0, t->data_type);
    if (c->out_count && !onnx_failed(c))
        c->out[0].is_weight = true;
}

static void give_list(struct onnx_call *c, rlx_dtype dtype, const void *data, size_t count,
                      int32_t rank)
{
    struct ir_type type = {.dtype = dtype, .rank = rank, .dim = {(ir_dim)count}};

    onnx_give_known(c, 0, &type, data ? data : "");
}

void onnx_constant(struct onnx_call *c)
{
    const struct onnx_attr *a;

    if ((a = onnx_attr_as(c, "value", ONNX_ATTR_TENSOR)) && a->t)
        give_tensor(c, a->t);
    else if ((a = onnx_attr_as(c, "value_float", ONNX_ATTR_FLOAT)))
        give_list(c, RLX_DTYPE_f32, &a->f, 1, 0);
    else if ((a = onnx_attr_as(c, "value_int", ONNX_ATTR_INT)))
        give_list(c, RLX_DTYPE_i64, &a->i, 1, 0);
    else if ((a = onnx_attr_as(c, "value_floats", ONNX_ATTR_FLOATS)))
        give_list(c, RLX_DTYPE_f32, a->floats.at, a->floats.count, 1);
    else if ((a = onnx_attr_as(c, "value_ints", ONNX_ATTR_INTS)))
        give_list(c, RLX_DTYPE_i64, a->ints.at, a->ints.count, 1);
    else
        onnx_unsupported(c, "a constant of strings or sparse tensors");
}

void onnx_constant_of_shape(struct onnx_call *c)
{
    const struct onnx_attr *a = onnx_attr_as(c, "value", ONNX_ATTR_TENSOR);
    struct onnx_value one = {.node = RLX_NO_VALUE, .data = &(float){0}};
    struct onnx_size size[RLX_MAX_RANK];
    rlx_list shape = {0};
    size_t count;

    one.type.dtype = RLX_DTYPE_f32;
    if (!onnx_sizes_in(c, 0, size, RLX_MAX_RANK, &count))
        return;
    if (a && a->t)
        c->f.status = onnx_tensor_data(a->t, &c->im->out->files, onnx_arena(c), &one.type,
                                       &one.data, c->f.diag);
    for (size_t i = 0; i < count; i++)
        shape.at[shape.count++] = size[i].is_dim ? size[i].dim : size[i].number;
    ir_value v = onnx_node_of(c->im, c->scope, &c->f, &one);
    if (one.type.rank == 1) /* one element, in a list */
        v = formula_reshape(&c->f, v, RLX_EMPTY);
    onnx_give(c, 0, formula_expand(&c->f, v, shape));
    onnx_give_type(c, 0, a && a->t ? a->t->data_type : ONNX_FLOAT);
}

/* ---- ranges ---- */

ir_value onnx_iota(struct onnx_call *c, ir_dim n, rlx_dtype dtype)
{
    struct formula *f = &c->f;
    union ir_attr attr;
    ir_value ones = formula_expand(
        f, formula_reshape(f, formula_number_of(f, dtype, 1), RLX_LIST(1)), RLX_LIST(n));

    attr_defaults(RLX_OP_cumsum, &attr);
    attr.cumulative.axis = 0;
    attr.cumulative.exclusive = true;
    return formula_node(f, RLX_OP_cumsum, &ones, 1, &attr);
}

static void put(rlx_dtype t, void *data, size_t i, double v, int64_t whole)
{
    switch (t) {
    case RLX_DTYPE_f32: ((float *)data)[i] = (float)v; break;
    case RLX_DTYPE_f64: ((double *)data)[i] = v; break;
    case RLX_DTYPE_f16: ((uint16_t *)data)[i] = f32_to_f16((float)v); break;
    case RLX_DTYPE_bf16: ((uint16_t *)data)[i] = f32_to_bf16((float)v); break;
    case RLX_DTYPE_i16: ((int16_t *)data)[i] = (int16_t)whole; break;
    case RLX_DTYPE_i32: ((int32_t *)data)[i] = (int32_t)whole; break;
    default: ((int64_t *)data)[i] = whole; break;
    }
}

/* All three are known: max(0, ceil((limit - start) / delta)) numbers. */
static void known_range(struct onnx_call *c, rlx_dtype t)
{
    size_t n[3];
    const double *at[3];
    double count;

    for (size_t i = 0; i < 3; i++)
        at[i] = onnx_reals(c, i, &n[i]);
    if (!at[0] || !at[1] || !at[2] || n[0] != 1 || n[1] != 1 || n[2] != 1 || at[2][0] == 0) {
        onnx_unsupported(c, "a range that is not given by three known numbers");
        return;
    }
    count = ceil((at[1][0] - at[0][0]) / at[2][0]);
    if (!(count <= MAX_RANGE)) {
        onnx_unsupported(c, "a range of more than %d numbers", MAX_RANGE);
        return;
    }
    size_t len = count > 0 ? (size_t)count : 0;
    void *data = arena_alloc_array(onnx_arena(c), len, 8, 16);
    if (!data) {
        c->f.status = diag_no_memory(c->f.diag, len * 8);
        return;
    }
    for (size_t i = 0; i < len; i++)
        put(t, data, i, at[0][0] + (double)i * at[2][0],
            (int64_t)at[0][0] + (int64_t)i * (int64_t)at[2][0]);
    give_list(c, t, data, len, 1);
}

/* Up to a symbolic size, from 0 or another number, by ones; false: it is something else. */
static bool symbolic_range(struct onnx_call *c, rlx_dtype t)
{
    struct formula *f = &c->f;
    struct onnx_size s[3];
    size_t count;

    for (size_t i = 0; i < 3; i++)
        if (!onnx_has(c, i) || (!c->in[i]->data && !c->in[i]->size) ||
            !onnx_sizes_in(c, i, &s[i], 1, &count) || count != 1)
            return false;
    if (s[2].is_dim || s[2].number != 1 || (!s[0].is_dim && s[0].number < 0) ||
        (!s[1].is_dim && s[1].number < 0))
        return false;
    ir_dim from = s[0].is_dim ? s[0].dim : s[0].number, to = s[1].is_dim ? s[1].dim : s[1].number;
    ir_dim n = dim_sub(onnx_dims(c), to, from);
    if (n == RLX_DIM_FAILED)
        return false;
    ir_value y = onnx_iota(c, n, t);
    if (s[0].is_dim || s[0].number)
        y = formula_2(f, RLX_OP_add, y, onnx_in(c, 0));
    onnx_give(c, 0, y);
    return true;
}

/* max(0, ceil((limit - start) / delta)); integers are divided as such. */
static ir_value range_count(struct formula *f, ir_value start, ir_value limit, ir_value delta)
{
    ir_value way = formula_2(f, RLX_OP_sub, limit, start), n;

    if (dtype_is(f->dtype, CLASS_F))
        n = formula_1(f, RLX_OP_ceil, formula_2(f, RLX_OP_div, way, delta));
    else {
        ir_value rest = formula_2(f, RLX_OP_sub, delta, formula_1(f, RLX_OP_sign, delta));
        n = formula_2(f, RLX_OP_div, formula_2(f, RLX_OP_add, way, rest), delta);
    }
    return formula_2(f, RLX_OP_max, formula_cast(f, n, RLX_DTYPE_i64),
                     formula_number_of(f, RLX_DTYPE_i64, 0));
}

/* Of numbers that are known when it runs, and so is its length. */
static void counted_range(struct onnx_call *c, rlx_dtype t)
{
    struct formula *f = &c->f;
    ir_value in[3];

    f->dtype = dtype_is(t, CLASS_F) ? formula_dtype(t) : RLX_DTYPE_i64;
    for (size_t i = 0; i < 3; i++)
        in[i] = formula_reshape(f, formula_cast(f, onnx_in(c, i), f->dtype), RLX_EMPTY);
    ir_dim n = onnx_counted_dim(c, range_count(f, in[0], in[1], in[2]));
    ir_value y = formula_2(f, RLX_OP_mul, onnx_iota(c, n, f->dtype), in[2]);
    onnx_give(c, 0, formula_cast(f, formula_2(f, RLX_OP_add, y, in[0]), t));
}

void onnx_range(struct onnx_call *c)
{
    rlx_dtype t = onnx_type(c, 0)->dtype;

    if (!dtype_is(t, CLASS_F) && t != RLX_DTYPE_i16 && t != RLX_DTYPE_i32 && t != RLX_DTYPE_i64)
        onnx_unsupported(c, "a range of %s", rlx_dtype_name(t));
    if (onnx_failed(c))
        return;
    if (onnx_is_known(c, 0) && onnx_is_known(c, 1) && onnx_is_known(c, 2))
        known_range(c, t);
    else if (!symbolic_range(c, t))
        counted_range(c, t);
}

void onnx_eye_like(struct onnx_call *c)
{
    struct formula *f = &c->f;
    struct ir_type t = *onnx_type(c, 0);
    int64_t k = onnx_int(c, "k", 0), to = onnx_int(c, "dtype", 0);
    union ir_attr attr;

    if (to && !onnx_dtype(to, &t.dtype))
        onnx_unsupported(c, "elements of type %s", onnx_dtype_name(to));
    ir_value y = formula_fill(f, &t, 1);
    for (int upper = 0; upper < 2; upper++) {
        attr_defaults(RLX_OP_trilu, &attr);
        attr.trilu.upper = upper;
        attr.trilu.diagonal = k;
        y = formula_node(f, RLX_OP_trilu, &y, 1, &attr);
    }
    onnx_give(c, 0, y);
}

/* indices [..], with an axis of `depth` put in: on where it is the index, off elsewhere. */
void onnx_one_hot(struct onnx_call *c)
{
    struct formula *f = &c->f;
    double depth = 0;

    if (!onnx_number_in(c, 1, &depth))
        return;
    if (!(depth >= 0 && depth <= 1e9)) {
        formula_fail(f, RLX_ERROR_LIMIT, "a depth of %g", depth);
        return;
    }
    const struct ir_type t = *onnx_type(c, 0);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", -1), t.rank + 1);
    ir_value at = formula_cast(f, onnx_in(c, 0), RLX_DTYPE_i64),
             n = formula_number_of(f, RLX_DTYPE_i64, depth);
    rlx_list shape = {.count = t.rank + 1}, line = {.count = t.rank + 1};
    if (t.rank + 1 > RLX_MAX_RANK) {
        onnx_unsupported(c, "a result of rank %d", t.rank + 1);
        return;
    }
    for (int32_t i = 0; i <= t.rank; i++) {
        shape.at[i] = i == axis ? 1 : t.dim[i < axis ? i : i - 1];
        line.at[i] = i == axis ? (ir_dim)depth : 1;
    }
    ir_value below = formula_2(f, RLX_OP_lt, at, formula_number_of(f, RLX_DTYPE_i64, 0));
    at = formula_where(f, below, formula_2(f, RLX_OP_add, at, n), at);
    ir_value count = formula_reshape(f, onnx_iota(c, (ir_dim)depth, RLX_DTYPE_i64), line);
    ir_value hit = formula_2(f, RLX_OP_eq, formula_reshape(f, at, shape), count);
    ir_value values = onnx_in(c, 2);
    ir_value off = formula_reshape(f, formula_narrow(f, values, 0, 0, 1), RLX_EMPTY);
    ir_value on = formula_reshape(f, formula_narrow(f, values, 0, 1, 1), RLX_EMPTY);
    onnx_give(c, 0, formula_where(f, hit, on, off));
}
