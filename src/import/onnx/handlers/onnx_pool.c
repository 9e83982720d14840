/* onnx_pool.c: pools of ONNX. Ours have no dilation, no uneven padding and no indices; what lacks
 * is made of padding beforehand, or of slices, one for each element of a line of the window. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/handlers/onnx_window.h"

#define MAX_WINDOW 4096 /* elements of a window that is taken apart */

static ir_value pool(struct onnx_call *c, const struct onnx_window *w, const char *kind, ir_value x,
                     bool padded)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_pool, &attr);
    enum_from_word("pool_kind", rlx_cstr(kind), &attr.pool.kind);
    attr.pool.kernel_size = w->kernel;
    attr.pool.stride = w->stride;
    if (!padded)
        attr.pool.padding = w->before;
    return formula_node(&c->f, RLX_OP_pool, &x, 1, &attr);
}

static bool is_dilated(const struct onnx_window *w)
{
    for (int32_t i = 0; i < w->n; i++)
        if (w->dilation.at[i] != 1)
            return true;
    return false;
}

/* Our pools want less padding than kernel, evenly, and one to three axes. */
static bool fits(const struct onnx_window *w)
{
    for (int32_t i = 0; i < w->n; i++)
        if (w->before.at[i] >= w->kernel.at[i])
            return false;
    return w->even && w->n <= 3 && !is_dilated(w);
}

/* ---- windows taken apart ---- */

static bool window_elements(struct onnx_call *c, const struct onnx_window *w, int64_t *out)
{
    *out = 1;
    for (int32_t i = 0; i < w->n; i++)
        if (__builtin_mul_overflow(*out, w->kernel.at[i], out) || *out > MAX_WINDOW) {
            onnx_unsupported(c, "a dilated window of more than %d elements", MAX_WINDOW);
            return false;
        }
    return true;
}

/* Element k of every window along spatial axis i, of an x that is padded already. */
static ir_value axis_slice(struct onnx_call *c, const struct onnx_window *w, ir_value x, int32_t i,
                           int64_t k)
{
    int64_t reach = w->dilation.at[i] * (w->kernel.at[i] - 1) + 1, step = w->stride.at[i];

    if (onnx_failed(c))
        return x;
    ir_dim room = dim_sub(onnx_dims(c), formula_type(&c->f, x)->dim[2 + i], reach);
    if (room == RLX_DIM_FAILED) {
        formula_fail(&c->f, RLX_ERROR_SHAPE, "axis %d is shorter than the window", 2 + i);
        return x;
    }
    ir_dim len = dim_add(onnx_dims(c), dim_floor_div(onnx_dims(c), room, step), 1);
    return onnx_slice_of(&c->f, x, 2 + i, k * w->dilation.at[i], len, step);
}

/* Element k of every window, along all axes. */
static ir_value window_slice(struct onnx_call *c, const struct onnx_window *w, ir_value x,
                             int64_t k)
{
    for (int32_t i = w->n - 1; i >= 0; i--) {
        x = axis_slice(c, w, x, i, k % w->kernel.at[i]);
        k /= w->kernel.at[i];
    }
    return x;
}

/* Sums and maxima of lines first, then of those. */
static ir_value combine_slices(struct onnx_call *c, const struct onnx_window *w, rlx_op op,
                               ir_value x)
{
    for (int32_t i = w->n - 1; i >= 0; i--) {
        if (w->kernel.at[i] > MAX_WINDOW) {
            onnx_unsupported(c, "a dilated window of more than %d elements", MAX_WINDOW);
            return x;
        }
        ir_value y = axis_slice(c, w, x, i, 0);
        for (int64_t k = 1; k < w->kernel.at[i] && !onnx_failed(c); k++)
            y = formula_2(&c->f, op, y, axis_slice(c, w, x, i, k));
        x = y;
    }
    return x;
}

/* ---- MaxPool ---- */

static double lowest(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_i8: return -128;
    case RLX_DTYPE_u8: return 0;
    default: return -INFINITY;
    }
}

/* Where in the whole tensor each element lies; storage_order 1 runs down columns. */
static ir_value positions(struct onnx_call *c, const struct ir_type *t, bool by_column)
{
    struct formula *f = &c->f;
    rlx_list perm = onnx_all_axes(t->rank), shape = formula_shape(t);
    int64_t count;

    if (!type_count(t, &count)) {
        onnx_unsupported(c, "indices into a tensor of symbolic size");
        return RLX_NO_VALUE;
    }
    for (int32_t i = 2; by_column && i < t->rank; i++) {
        perm.at[i] = t->rank + 1 - i;
        shape.at[i] = t->dim[t->rank + 1 - i];
    }
    ir_value at = formula_reshape(f, onnx_iota(c, count, RLX_DTYPE_i64), shape);
    return formula_transpose(f, at, perm);
}

/* The first largest of each window, and where it was. */
static void max_with_indices(struct onnx_call *c, const struct onnx_window *w)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    ir_value x = onnx_window_pad(c, w, onnx_in(c, 0), lowest(t.dtype), true);
    ir_value at =
        onnx_window_pad(c, w, positions(c, &t, onnx_int(c, "storage_order", 0) != 0), 0, true);
    ir_value best = RLX_NO_VALUE, place = RLX_NO_VALUE;
    int64_t count;

    if (!window_elements(c, w, &count))
        return;
    for (int64_t k = 0; k < count && !onnx_failed(c); k++) {
        ir_value v = window_slice(c, w, x, k), p = window_slice(c, w, at, k);
        ir_value better = k ? formula_2(f, RLX_OP_gt, v, best) : RLX_NO_VALUE;
        best = k ? formula_where(f, better, v, best) : v;
        place = k ? formula_where(f, better, p, place) : p;
    }
    onnx_give(c, 0, best);
    onnx_give(c, 1, place);
}

ir_value onnx_largest(struct onnx_call *c, ir_value x)
{
    struct onnx_window w;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(&c->f, x);
    if (!onnx_window_of(c, &t, NULL, &w))
        return RLX_NO_VALUE;
    if (fits(&w))
        return pool(c, &w, "max", x, false);
    x = onnx_window_pad(c, &w, x, lowest(t.dtype), true);
    return is_dilated(&w) || w.n > 3 ? combine_slices(c, &w, RLX_OP_max, x)
                                     : pool(c, &w, "max", x, true);
}

void onnx_max_pool(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    struct onnx_window w;

    if (c->out_count < 2 || !c->node->output.at[1].len)
        onnx_give(c, 0, onnx_largest(c, onnx_in(c, 0)));
    else if (onnx_window_of(c, &t, NULL, &w))
        max_with_indices(c, &w);
}

/* ---- AveragePool, LpPool ---- */

static ir_value sums(struct onnx_call *c, const struct onnx_window *w, ir_value padded)
{
    return is_dilated(w) || w->n > 3 ? combine_slices(c, w, RLX_OP_add, padded)
                                     : pool(c, w, "sum", padded, true);
}

/* The sum over the number of elements, of which padding counts if it is to, and what ceil_mode
 * added never does. */
ir_value onnx_average(struct onnx_call *c, ir_value x)
{
    struct formula *f = &c->f;
    bool include = onnx_int(c, "count_include_pad", 0) != 0;
    struct onnx_window w;
    union ir_attr attr;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);
    if (!onnx_window_of(c, &t, NULL, &w))
        return RLX_NO_VALUE;
    if (fits(&w)) {
        attr_defaults(RLX_OP_pool, &attr);
        enum_from_word("pool_kind", STR("mean"), &attr.pool.kind);
        attr.pool.kernel_size = w.kernel;
        attr.pool.stride = w.stride;
        attr.pool.padding = w.before;
        attr.pool.count_include_pad = include;
        return formula_node(f, RLX_OP_pool, &x, 1, &attr);
    }
    struct ir_type one = t;
    one.dim[0] = one.dim[1] = 1;
    struct onnx_window rest = w;
    ir_value ones = formula_fill(f, &one, 1);
    if (include) {
        ones = onnx_window_pad(c, &w, ones, 1, false);
        for (int32_t i = 0; i < w.n; i++)
            rest.before.at[i] = rest.after.at[i] = 0;
    }
    ir_value count = sums(c, &w, onnx_window_pad(c, &rest, ones, 0, true));
    ir_value sum = sums(c, &w, onnx_window_pad(c, &w, x, 0, true));
    return formula_2(f, RLX_OP_div, sum, count);
}

void onnx_average_pool(struct onnx_call *c)
{
    onnx_give(c, 0, onnx_average(c, onnx_in(c, 0)));
}

static ir_value power(struct formula *f, ir_value x, double p)
{
    return p == 1 ? x : formula_2(f, RLX_OP_pow, x, formula_number(f, p));
}

void onnx_lp_pool(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    double p = (double)onnx_int(c, "p", 2);
    struct onnx_window w;

    f->dtype = t.dtype;
    if (!onnx_window_of(c, &t, NULL, &w))
        return;
    ir_value each = power(f, formula_1(f, RLX_OP_abs, onnx_in(c, 0)), p);
    onnx_give(c, 0, power(f, sums(c, &w, onnx_window_pad(c, &w, each, 0, true)), 1 / p));
}

/* ---- over everything ---- */

static ir_value over_space(struct onnx_call *c, rlx_op op, ir_value x)
{
    int32_t rank = onnx_type(c, 0)->rank;
    rlx_list axes = {0};

    for (int32_t i = 2; i < rank; i++)
        axes.at[axes.count++] = i;
    return formula_reduce(&c->f, op, x, axes, true);
}

void onnx_global_average_pool(struct onnx_call *c)
{
    onnx_give(c, 0, over_space(c, RLX_OP_reduce_mean, onnx_in(c, 0)));
}

void onnx_global_max_pool(struct onnx_call *c)
{
    onnx_give(c, 0, over_space(c, RLX_OP_reduce_max, onnx_in(c, 0)));
}

void onnx_global_lp_pool(struct onnx_call *c)
{
    struct formula *f = &c->f;
    double p = (double)onnx_int(c, "p", 2);

    f->dtype = onnx_type(c, 0)->dtype;
    ir_value each = power(f, formula_1(f, RLX_OP_abs, onnx_in(c, 0)), p);
    onnx_give(c, 0, power(f, over_space(c, RLX_OP_reduce_sum, each), 1 / p));
}

/* Every value to the place it came from; elsewhere zeros. Flat, since places are. */
void onnx_max_unpool(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    struct onnx_window w;
    struct ir_type out = t;
    rlx_list shape;
    union ir_attr attr;
    int64_t count, all;

    if (!onnx_window_of(c, &t, NULL, &w))
        return;
    for (int32_t i = 0; i < w.n; i++)
        out.dim[2 + i] =
            (t.dim[2 + i] - 1) * w.stride.at[i] + w.kernel.at[i] - w.before.at[i] - w.after.at[i];
    if (onnx_failed(c) || !type_count(&t, &count) || !type_count(&out, &all)) {
        onnx_unsupported(c, "a tensor of symbolic size");
        return;
    }
    struct ir_type flat = {.dtype = t.dtype, .rank = 1, .dim = {all}};
    ir_value in[] = {formula_fill(f, &flat, 0), formula_reshape(f, onnx_in(c, 1), RLX_LIST(count)),
                     formula_reshape(f, onnx_in(c, 0), RLX_LIST(count))};
    attr_defaults(RLX_OP_scatter_elements, &attr);
    ir_value y = formula_node(f, RLX_OP_scatter_elements, in, 3, &attr);
    y = formula_reshape(f, y, formula_shape(&out));
    /* A wanted shape only adds room at the end: places count in the one above. */
    if (onnx_has(c, 2) && onnx_ints_in(c, 2, &shape) && shape.count == t.rank) {
        rlx_list before = {.count = t.rank}, after = {.count = t.rank};
        for (int32_t i = 0; i < t.rank; i++)
            after.at[i] = shape.at[i] > out.dim[i] ? shape.at[i] - out.dim[i] : 0;
        y = onnx_pad_of(f, y, before, after, 0);
    }
    onnx_give(c, 0, y);
}
