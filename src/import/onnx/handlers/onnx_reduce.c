/* onnx_reduce.c: ONNX ops over whole axes. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

/* ---- Reduce* ---- */

struct reduction {
    ir_value x;
    rlx_list axes;
    bool keep;
    bool none; /* nothing is reduced */
};

/* Axes are attributes, or an input from opset 18 on (ReduceSum: 13); none of them means all, unless
 * noop_with_empty_axes. */
static struct reduction begin(struct onnx_call *c)
{
    int32_t rank = onnx_type(c, 0)->rank;
    struct reduction r = {.axes = {0}, .keep = onnx_int(c, "keepdims", 1) != 0};

    c->f.dtype = onnx_type(c, 0)->dtype;
    onnx_ints_or_in(c, "axes", 1, &r.axes);
    r.axes = onnx_axes(c, r.axes, rank);
    r.none = r.axes.count == 0 && onnx_int(c, "noop_with_empty_axes", 0);
    if (r.axes.count == 0 && !r.none)
        r.axes = onnx_all_axes(rank);
    r.x = onnx_in(c, 0);
    return r;
}

static ir_value over(struct onnx_call *c, const struct reduction *r, rlx_op op, ir_value x)
{
    return r->none ? x : formula_reduce(&c->f, op, x, r->axes, r->keep);
}

static ir_value square(struct onnx_call *c, ir_value x)
{
    return formula_2(&c->f, RLX_OP_mul, x, x);
}

void onnx_reduce_sum(struct onnx_call *c)
{
    struct reduction r = begin(c);
    onnx_give(c, 0, over(c, &r, RLX_OP_reduce_sum, r.x));
}

/* Integers are divided after they are added. */
void onnx_reduce_mean(struct onnx_call *c)
{
    struct reduction r = begin(c);
    const struct ir_type t = *onnx_type(c, 0);

    if (dtype_is(t.dtype, CLASS_F)) {
        onnx_give(c, 0, over(c, &r, RLX_OP_reduce_mean, r.x));
        return;
    }
    ir_dim n = 1;
    for (int32_t i = 0; !r.none && i < r.axes.count; i++)
        n = dim_mul(onnx_dims(c), n, t.dim[r.axes.at[i]]);
    ir_value sum = over(c, &r, RLX_OP_reduce_sum, r.x);
    onnx_give(c, 0, formula_2(&c->f, RLX_OP_div, sum, onnx_dim_value(&c->f, n, t.dtype)));
}

void onnx_reduce_max(struct onnx_call *c)
{
    struct reduction r = begin(c);
    onnx_give(c, 0, over(c, &r, RLX_OP_reduce_max, r.x));
}

void onnx_reduce_min(struct onnx_call *c)
{
    struct reduction r = begin(c);
    onnx_give(c, 0, over(c, &r, RLX_OP_reduce_min, r.x));
}

void onnx_reduce_prod(struct onnx_call *c)
{
    struct reduction r = begin(c);
    onnx_give(c, 0, over(c, &r, RLX_OP_reduce_prod, r.x));
}

void onnx_reduce_l1(struct onnx_call *c)
{
    struct reduction r = begin(c);
    onnx_give(c, 0, over(c, &r, RLX_OP_reduce_sum, formula_1(&c->f, RLX_OP_abs, r.x)));
}

void onnx_reduce_l2(struct onnx_call *c)
{
    struct reduction r = begin(c);
    ir_value sum = over(c, &r, RLX_OP_reduce_sum, square(c, r.x));

    onnx_give(c, 0, formula_1(&c->f, RLX_OP_sqrt, sum));
}

void onnx_reduce_sum_square(struct onnx_call *c)
{
    struct reduction r = begin(c);
    onnx_give(c, 0, over(c, &r, RLX_OP_reduce_sum, square(c, r.x)));
}

void onnx_reduce_log_sum(struct onnx_call *c)
{
    struct reduction r = begin(c);
    onnx_give(c, 0, formula_1(&c->f, RLX_OP_log, over(c, &r, RLX_OP_reduce_sum, r.x)));
}

/* The largest is taken out first, where it is finite, so that nothing overflows. */
void onnx_reduce_log_sum_exp(struct onnx_call *c)
{
    struct formula *f = &c->f;
    struct reduction r = begin(c);
    struct reduction kept = r;

    kept.keep = true;
    ir_value top = over(c, &kept, RLX_OP_reduce_max, r.x);
    ir_value endless =
        formula_2(f, RLX_OP_eq, formula_1(f, RLX_OP_abs, top), formula_number(f, INFINITY));
    top = formula_where(f, endless, formula_number(f, 0), top);
    ir_value e = formula_1(f, RLX_OP_exp, formula_2(f, RLX_OP_sub, r.x, top));
    ir_value log = formula_1(f, RLX_OP_log, over(c, &r, RLX_OP_reduce_sum, e));
    ir_value back = onnx_failed(c) ? RLX_NO_VALUE
                                   : formula_reshape(f, top, formula_shape(formula_type(f, log)));
    onnx_give(c, 0, formula_2(f, RLX_OP_add, log, back));
}

/* ---- Softmax and its kin ---- */

/* Up to opset 12 all axes from `axis` on are one: the input is flattened around it. */
struct softmax {
    ir_value x;
    int32_t axis;
    rlx_list shape; /* to go back to */
};

static struct softmax begin_softmax(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    struct softmax s = {onnx_in(c, 0), 0, formula_shape(&t)};

    c->f.dtype = t.dtype;
    if (c->opset >= 13) {
        s.axis = onnx_axis(c, onnx_int(c, "axis", -1), t.rank);
        return s;
    }
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", 1), t.rank);
    s.x = formula_reshape(
        &c->f, s.x, RLX_LIST(onnx_product(c, &t, 0, axis), onnx_product(c, &t, axis, t.rank)));
    s.axis = 1;
    return s;
}

void onnx_softmax(struct onnx_call *c)
{
    struct softmax s = begin_softmax(c);
    union ir_attr attr;

    attr_defaults(RLX_OP_softmax, &attr);
    attr.softmax.axis = s.axis;
    onnx_give(c, 0,
              formula_reshape(&c->f, formula_node(&c->f, RLX_OP_softmax, &s.x, 1, &attr), s.shape));
}

void onnx_log_softmax(struct onnx_call *c)
{
    struct softmax s = begin_softmax(c);
    struct formula *f = &c->f;
    ir_value top = formula_reduce(f, RLX_OP_reduce_max, s.x, RLX_LIST(s.axis), true);
    ir_value x = formula_2(f, RLX_OP_sub, s.x, top);
    ir_value sum =
        formula_reduce(f, RLX_OP_reduce_sum, formula_1(f, RLX_OP_exp, x), RLX_LIST(s.axis), true);

    x = formula_2(f, RLX_OP_sub, x, formula_1(f, RLX_OP_log, sum));
    onnx_give(c, 0, formula_reshape(f, x, s.shape));
}

/* 1 at the first largest element, otherwise 0. */
void onnx_hardmax(struct onnx_call *c)
{
    struct softmax s = begin_softmax(c);
    struct formula *f = &c->f;
    union ir_attr attr;

    attr_defaults(RLX_OP_argmax, &attr);
    attr.arg_extreme.axis = s.axis;
    attr.arg_extreme.keep_dim = true;
    attr.arg_extreme.index_dtype = RLX_DTYPE_i64;
    ir_value at = formula_node(f, RLX_OP_argmax, &s.x, 1, &attr);
    if (onnx_failed(c))
        return;
    const struct ir_type t = *formula_type(f, s.x);
    rlx_list line = {.count = t.rank};
    for (int32_t i = 0; i < t.rank; i++)
        line.at[i] = i == s.axis ? t.dim[i] : 1;
    ir_value count = formula_reshape(f, onnx_iota(c, t.dim[s.axis], RLX_DTYPE_i64), line);
    ir_value hit = formula_cast(f, formula_2(f, RLX_OP_eq, at, count), t.dtype);
    onnx_give(c, 0, formula_reshape(f, hit, s.shape));
}

/* ---- running sums ---- */

static void cumulative(struct onnx_call *c, rlx_op op)
{
    struct formula *f = &c->f;
    bool backward = onnx_int(c, "reverse", 0) != 0;
    union ir_attr attr;
    int64_t axis = 0;
    ir_value x = onnx_in(c, 0);

    if (!onnx_whole_in(c, 1, &axis))
        return;
    attr_defaults(op, &attr);
    attr.cumulative.axis = onnx_axis(c, axis, onnx_type(c, 0)->rank);
    attr.cumulative.exclusive = onnx_int(c, "exclusive", 0) != 0;
    if (backward)
        x = formula_reverse(f, x, attr.cumulative.axis);
    x = formula_node(f, op, &x, 1, &attr);
    if (backward)
        x = formula_reverse(f, x, attr.cumulative.axis);
    onnx_give(c, 0, x);
}

void onnx_cum_sum(struct onnx_call *c)
{
    cumulative(c, RLX_OP_cumsum);
}

void onnx_cum_prod(struct onnx_call *c)
{
    cumulative(c, RLX_OP_cumprod);
}
