/* rule_window.c: convolutions, pooling, windows as rows (ops-core.md 12). */
#include <math.h>

#include "autodiff/rule.h"

/* ---- convolutions ---- */

/* What the attributes of all these ops have in common. */
#define COPY_WINDOW(to, from)                    \
    do {                                         \
        (to)->kernel_size = (from)->kernel_size; \
        (to)->stride = (from)->stride;           \
        (to)->padding = (from)->padding;         \
        (to)->dilation = (from)->dilation;       \
        (to)->groups = (from)->groups;           \
    } while (0)

void vjp_conv(struct vjp *v)
{
    const struct attr_conv *a = &v->n->attr.conv;
    union ir_attr attr;

    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {v->dy, v->n->in[1]};
        attr_defaults(RLX_OP_conv_backward_input, &attr);
        COPY_WINDOW(&attr.conv_backward_input, a);
        attr.conv_backward_input.x_shape = formula_shape(vjp_type(v, 0));
        vjp_add(v, 0, formula_node(&v->f, RLX_OP_conv_backward_input, in, 2, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {v->n->in[0], v->dy};
        attr_defaults(RLX_OP_conv_backward_weight, &attr);
        COPY_WINDOW(&attr.conv_backward_weight, a);
        vjp_add(v, 1, formula_node(&v->f, RLX_OP_conv_backward_weight, in, 2, &attr));
    }
}

/* Both gradients are linear in each of their operands: theirs are the other two of the three. */
void vjp_conv_backward_input(struct vjp *v)
{
    const struct attr_conv_backward_input *a = &v->n->attr.conv_backward_input;
    union ir_attr attr;

    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {v->dy, v->n->in[1]};
        attr_defaults(RLX_OP_conv, &attr);
        COPY_WINDOW(&attr.conv, a);
        vjp_add(v, 0, formula_node(&v->f, RLX_OP_conv, in, 2, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {v->dy, v->n->in[0]};
        attr_defaults(RLX_OP_conv_backward_weight, &attr);
        COPY_WINDOW(&attr.conv_backward_weight, a);
        vjp_add(v, 1, formula_node(&v->f, RLX_OP_conv_backward_weight, in, 2, &attr));
    }
}

void vjp_conv_backward_weight(struct vjp *v)
{
    const struct attr_conv_backward_weight *a = &v->n->attr.conv_backward_weight;
    union ir_attr attr;

    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {v->n->in[1], v->dy};
        attr_defaults(RLX_OP_conv_backward_input, &attr);
        COPY_WINDOW(&attr.conv_backward_input, a);
        attr.conv_backward_input.x_shape = formula_shape(vjp_type(v, 0));
        vjp_add(v, 0, formula_node(&v->f, RLX_OP_conv_backward_input, in, 2, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {v->n->in[0], v->dy};
        attr_defaults(RLX_OP_conv, &attr);
        COPY_WINDOW(&attr.conv, a);
        vjp_add(v, 1, formula_node(&v->f, RLX_OP_conv, in, 2, &attr));
    }
}

static bool is_empty(const struct ir_type *t)
{
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0)
            return true;
    return false;
}

/* The convolution that it is the gradient of: of dy, without the windows that only output_padding
 * makes room for. */
void vjp_conv_transpose(struct vjp *v)
{
    const struct attr_conv_transpose *a = &v->n->attr.conv_transpose;
    struct formula *f = &v->f;
    const struct ir_type x = *vjp_type(v, 0);
    union ir_attr attr;

    if (is_empty(&x)) { /* then dy may be too small for any window */
        vjp_add(v, 0, rule_zeros(f, v->n->in[0]));
        vjp_add(v, 1, rule_zeros(f, v->n->in[1]));
        return;
    }
    if (vjp_wanted(v, 0)) {
        attr_defaults(RLX_OP_conv, &attr);
        COPY_WINDOW(&attr.conv, a);
        ir_value dx =
            formula_node(f, RLX_OP_conv, (const ir_value[]){v->dy, v->n->in[1]}, 2, &attr);
        for (int32_t i = 2; f->status == RLX_OK && i < x.rank; i++)
            if (formula_type(f, dx)->dim[i] != x.dim[i])
                dx = formula_narrow(f, dx, i, 0, x.dim[i]);
        vjp_add(v, 0, dx);
    }
    if (vjp_wanted(v, 1)) {
        attr_defaults(RLX_OP_conv_backward_weight, &attr);
        COPY_WINDOW(&attr.conv_backward_weight, a);
        vjp_add(v, 1,
                formula_node(f, RLX_OP_conv_backward_weight, (const ir_value[]){v->dy, v->n->in[0]},
                             2, &attr));
    }
}

/* ---- windows, unfolded ---- */

struct windows {
    const rlx_list *kernel, *stride, *padding, *dilation; /* dilation NULL: 1 */
    const ir_dim *count;                                  /* of windows, by axis */
    double outside;                                       /* what the padding holds */
};

/* Elements start, start + step, .. of an axis. */
static ir_value every(struct formula *f, ir_value x, int64_t axis, int64_t start, ir_dim len,
                      int64_t step)
{
    union ir_attr attr;

    if (step == 1)
        return formula_narrow(f, x, axis, start, len);
    attr_defaults(RLX_OP_slice, &attr);
    attr.slice = (struct attr_slice){axis, start, len, step};
    return formula_node(f, RLX_OP_slice, &x, 1, &attr);
}

/* Axis i of x, [.., size, ..] at p, becomes [.., kernel, .., windows, ..] with kernel at `to`. */
static ir_value open_axis(struct formula *f, ir_value x, const struct windows *w, int32_t i,
                          int64_t p, int64_t to)
{
    int64_t kernel = w->kernel->at[i], dilation = w->dilation ? w->dilation->at[i] : 1;
    ir_value *part = arena_array(&f->g->mod->arena, ir_value, (size_t)kernel);

    if (!part && f->status == RLX_OK)
        f->status = diag_no_memory(f->diag, (size_t)kernel * sizeof *part);
    x = rule_pad(f, x, p, w->padding->at[i], w->padding->at[i], w->outside);
    for (int64_t k = 0; f->status == RLX_OK && k < kernel; k++) {
        part[k] = every(f, x, p, k * dilation, w->count[i], w->stride->at[i]);
        if (f->status != RLX_OK)
            break;
        rlx_list shape = formula_shape(formula_type(f, part[k]));
        for (int64_t j = shape.count++; j > to; j--)
            shape.at[j] = shape.at[j - 1];
        shape.at[to] = 1;
        part[k] = formula_reshape(f, part[k], shape);
    }
    return f->status == RLX_OK ? formula_concat(f, part, (int32_t)kernel, to) : RLX_NO_VALUE;
}

/* x [n, c, sizes..] -> [n, c, kernel.., windows..], an axis at a time. */
static ir_value open_windows(struct formula *f, ir_value x, const struct windows *w)
{
    for (int32_t i = 0; i < w->kernel->count; i++)
        x = open_axis(f, x, w, i, 2 + 2 * i, 2 + i);
    return x;
}

/* ---- pooling ---- */

/* dy, divided as a mean was. */
static ir_value pool_dy(struct vjp *v)
{
    const struct attr_pool *a = &v->n->attr.pool;
    struct formula *f = &v->f;
    ir_value dy = formula_cast(f, v->dy, f->dtype);
    struct ir_type t = *vjp_type(v, 0);
    union ir_attr attr = v->n->attr;
    double size = 1;

    if (a->kind == RLX_POOL_KIND_sum)
        return dy;
    for (int32_t i = 0; i < a->kernel_size.count; i++)
        size *= (double)a->kernel_size.at[i];
    if (a->count_include_pad)
        return DIV(dy, NUM(size));
    t.dtype = f->dtype; /* its elements that lie inside are counted */
    t.dim[0] = t.dim[1] = 1;
    attr.pool.kind = RLX_POOL_KIND_sum;
    ir_value one = formula_fill(f, &t, 1);
    return DIV(dy, formula_node(f, RLX_OP_pool, &one, 1, &attr));
}

/* The gradient of a convolution of each channel by itself with ones. */
static void pool_sum(struct vjp *v)
{
    const struct attr_pool *a = &v->n->attr.pool;
    struct formula *f = &v->f;
    const struct ir_type x = *vjp_type(v, 0);
    ir_dim images = dim_mul(rule_dims(f), x.dim[0], x.dim[1]);
    rlx_list flat = formula_shape(&x), windows = formula_shape(&v->n->type);
    struct ir_type w = {.dtype = f->dtype, .rank = x.rank, .dim = {1, 1}};
    union ir_attr attr;

    flat.at[0] = windows.at[0] = images;
    flat.at[1] = windows.at[1] = 1;
    for (int32_t i = 0; i < a->kernel_size.count; i++)
        w.dim[i + 2] = a->kernel_size.at[i];
    attr_defaults(RLX_OP_conv_backward_input, &attr);
    attr.conv_backward_input.kernel_size = a->kernel_size;
    attr.conv_backward_input.stride = a->stride;
    attr.conv_backward_input.padding = a->padding;
    attr.conv_backward_input.x_shape = flat;
    const ir_value in[] = {formula_reshape(f, pool_dy(v), windows), formula_fill(f, &w, 1)};
    ir_value dx = formula_node(f, RLX_OP_conv_backward_input, in, 2, &attr);
    vjp_add(v, 0, formula_reshape(f, dx, formula_shape(&x)));
}

static void pool_extreme(struct vjp *v)
{
    const struct attr_pool *a = &v->n->attr.pool;
    struct formula *f = &v->f;
    ir_value x = a->kind == RLX_POOL_KIND_min ? NEG(v->n->in[0]) : v->n->in[0];
    union ir_attr attr;

    attr_defaults(RLX_OP_max_pool_backward, &attr);
    attr.max_pool_backward.kernel_size = a->kernel_size;
    attr.max_pool_backward.stride = a->stride;
    attr.max_pool_backward.padding = a->padding;
    vjp_add(v, 0,
            formula_node(f, RLX_OP_max_pool_backward, (const ir_value[]){x, v->dy}, 2, &attr));
}

/* As the product over windows that were taken apart. */
static void pool_prod(struct vjp *v)
{
    const struct attr_pool *a = &v->n->attr.pool;
    struct formula *f = &v->f;
    const struct windows w = {&a->kernel_size,    &a->stride, &a->padding, NULL,
                              v->n->type.dim + 2, 1};
    ir_value dy = formula_cast(f, v->dy, f->dtype), first = (ir_value)f->g->node.len;
    rlx_list axes = {.count = a->kernel_size.count, .at = {2, 3, 4}};
    ir_value x = formula_cast(f, v->n->in[0], f->dtype);

    vjp_through(v, 0, first,
                formula_reduce(f, RLX_OP_reduce_prod, open_windows(f, x, &w), axes, false), dy);
}

void vjp_pool(struct vjp *v)
{
    switch (v->n->attr.pool.kind) {
    case RLX_POOL_KIND_max:
    case RLX_POOL_KIND_min: pool_extreme(v); break;
    case RLX_POOL_KIND_prod: pool_prod(v); break;
    default: pool_sum(v); break;
    }
}

/* The first of the largest elements of each window is the one that dy goes to: picked from windows
 * that are cut out, and put back by the gradient of cutting. */
ir_value define_max_pool_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_max_pool_backward *a = &n->attr.max_pool_backward;
    const struct ir_type t = *ir_type_of(f->g, n->in[1]);
    const struct windows w = {&a->kernel_size, &a->stride,       &a->padding, NULL,
                              t.dim + 2,       -(double)INFINITY};
    ir_value x = rule_apart(f, n->in[0]), first = (ir_value)f->g->node.len;
    ir_value open = open_windows(f, x, &w);
    rlx_list apart, flat = {.count = t.rank + 1, .at = {t.dim[0], t.dim[1], 1}};
    union ir_attr attr;

    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    apart = formula_shape(formula_type(f, open));
    for (int32_t i = 0; i < a->kernel_size.count; i++)
        flat.at[2] *= a->kernel_size.at[i];
    for (int32_t i = 2; i < t.rank; i++)
        flat.at[i + 1] = t.dim[i];
    ir_value each = formula_reshape(f, open, flat);
    attr_defaults(RLX_OP_argmax, &attr);
    attr.arg_extreme = (struct attr_arg_extreme){2, true, RLX_DTYPE_i64};
    ir_value largest = formula_node(f, RLX_OP_argmax, &each, 1, &attr);
    rlx_list along = {.count = t.rank - 1, .at = {flat.at[2], 1, 1, 1, 1, 1, 1, 1}};
    ir_value place = formula_reshape(f, rule_positions(f, flat.at[2]), along);
    ir_value taken = formula_2(f, RLX_OP_eq, largest, place);
    flat.at[2] = 1;
    ir_value dy = formula_reshape(f, formula_cast(f, n->in[1], f->dtype), flat);
    ir_value picked = formula_reshape(f, formula_where(f, taken, dy, NUM(0)), apart);
    return rule_pull(f, first, open, picked, x);
}

/* Windows taken apart [n, c, kh, kw, h, w], as rows. */
void vjp_im2col(struct vjp *v)
{
    const struct attr_im2col *a = &v->n->attr.im2col;
    struct formula *f = &v->f;
    struct dim_table *d = rule_dims(f);
    const struct ir_type x = *vjp_type(v, 0);
    ir_dim count[RLX_MAX_RANK] = {0}; /* two of them */

    for (int32_t i = 0; i < 2; i++) {
        ir_dim room = dim_add(d, x.dim[i + 2], 2 * a->padding.at[i]);
        ir_dim span = a->dilation.at[i] * (a->kernel_size.at[i] - 1) + 1;
        count[i] = dim_add(d, dim_floor_div(d, dim_sub(d, room, span), a->stride.at[i]), 1);
    }
    const struct windows w = {&a->kernel_size, &a->stride, &a->padding, &a->dilation, count, 0};
    ir_value dy = formula_cast(f, v->dy, f->dtype), first = (ir_value)f->g->node.len;
    ir_value open = open_windows(f, formula_cast(f, v->n->in[0], f->dtype), &w);
    ir_value rows = formula_transpose(f, open, RLX_LIST(0, 4, 5, 1, 2, 3));
    vjp_through(v, 0, first, formula_reshape(f, rows, formula_shape(&v->n->type)), dy);
}
