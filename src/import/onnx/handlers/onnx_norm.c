/* onnx_norm.c: ONNX ops that normalise. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/handlers/onnx_window.h"

/* x - mean, and 1 / sqrt(variance + eps), over axes. */
struct centred {
    ir_value x, mean, variance, inverse;
};

static struct centred centre(struct onnx_call *c, ir_value x, rlx_list axes, double eps)
{
    struct formula *f = &c->f;
    struct centred r = {.mean = formula_reduce(f, RLX_OP_reduce_mean, x, axes, true)};

    r.x = formula_2(f, RLX_OP_sub, x, r.mean);
    r.variance =
        formula_reduce(f, RLX_OP_reduce_mean, formula_2(f, RLX_OP_mul, r.x, r.x), axes, true);
    ir_value root = formula_1(f, RLX_OP_sqrt, onnx_plus(f, r.variance, eps));
    r.inverse = formula_1(f, RLX_OP_recip, root);
    return r;
}

/* The statistics of this batch, and those kept, moved towards them. */
static void batch_norm_training(struct onnx_call *c, double eps)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    double keep = onnx_float(c, "momentum", 0.9);
    rlx_list axes = {0};

    for (int32_t i = 0; i < t.rank; i++)
        if (i != 1)
            axes.at[axes.count++] = i;
    struct centred n = centre(c, onnx_in(c, 0), axes, eps);
    ir_value y = formula_2(f, RLX_OP_mul, formula_2(f, RLX_OP_mul, n.x, n.inverse),
                           onnx_per_channel(f, onnx_in(c, 1), t.rank));
    onnx_give(c, 0, formula_2(f, RLX_OP_add, y, onnx_per_channel(f, onnx_in(c, 2), t.rank)));
    ir_value now[] = {n.mean, n.variance};
    for (size_t i = 0; i < 2; i++) {
        ir_value flat = formula_reshape(f, now[i], RLX_LIST(RLX_DIM_INFER));
        ir_value sum = formula_2(f, RLX_OP_add, onnx_times(f, onnx_in(c, 3 + i), keep),
                                 onnx_times(f, flat, 1 - keep));
        onnx_give(c, 1 + i, sum);
    }
}

void onnx_batch_norm(struct onnx_call *c)
{
    union ir_attr attr;
    double eps = onnx_float(c, "epsilon", 1e-5);
    const struct ir_type t = *onnx_type(c, 0);

    c->f.dtype = t.dtype;
    if (onnx_int(c, "training_mode", 0)) {
        batch_norm_training(c, eps);
        return;
    }
    if (onnx_int(c, "spatial", 1) == 0)
        onnx_unsupported(c, "statistics per place");
    ir_value in[5];
    for (size_t i = 0; i < 5; i++)
        in[i] = onnx_in(c, i);
    attr_defaults(RLX_OP_batch_norm_inference, &attr);
    attr.batch_norm_inference.axis = 1;
    attr.batch_norm_inference.eps = (float)eps;
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_batch_norm_inference, in, 5, &attr));
}

static ir_value grouped(struct onnx_call *c, ir_value gamma, ir_value beta, int64_t groups)
{
    union ir_attr attr;
    ir_value in[] = {onnx_in(c, 0), gamma, beta};

    attr_defaults(RLX_OP_group_norm, &attr);
    attr.group_norm.num_groups = groups;
    attr.group_norm.eps = (float)onnx_float(c, "epsilon", 1e-5);
    return formula_node(&c->f, RLX_OP_group_norm, in, 3, &attr);
}

/* Groups of one channel. */
void onnx_instance_norm(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);

    if (t.rank < 2 || !dim_is_static(t.dim[1])) {
        onnx_unsupported(c, "a symbolic number of channels");
        return;
    }
    onnx_give(c, 0, grouped(c, onnx_in(c, 1), onnx_in(c, 2), t.dim[1]));
}

/* Up to opset 20 scale and bias are per group. */
void onnx_group_norm(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int64_t groups = onnx_int(c, "num_groups", 0);
    ir_value affine[2] = {onnx_in(c, 1), onnx_in(c, 2)};

    if (t.rank < 2 || !dim_is_static(t.dim[1]) || groups < 1 || t.dim[1] % groups) {
        onnx_unsupported(c, "channels that are not a multiple of the groups");
        return;
    }
    for (int i = 0; c->opset < 21 && i < 2; i++) {
        ir_value each = formula_reshape(f, affine[i], RLX_LIST(groups, 1));
        each = formula_expand(f, each, RLX_LIST(groups, t.dim[1] / groups));
        affine[i] = formula_reshape(f, each, RLX_LIST(t.dim[1]));
    }
    onnx_give(c, 0, grouped(c, affine[0], affine[1], groups));
}

/* ---- over the last axes ---- */

static rlx_list axes_from(int32_t first, int32_t rank)
{
    rlx_list l = {0};

    for (int32_t i = first; i < rank; i++)
        l.at[l.count++] = i;
    return l;
}

/* Is it one line along the last axis, which our op takes? */
static bool is_plain(struct onnx_call *c, int32_t axis, const struct ir_type *t)
{
    return axis == t->rank - 1 && onnx_type(c, 1)->rank == 1 && dim_is_static(t->dim[axis]) &&
           onnx_type(c, 1)->dim[0] == t->dim[axis] && onnx_type(c, 1)->dtype == t->dtype &&
           (!onnx_has(c, 2) ||
            (onnx_type(c, 2)->rank == 1 && onnx_type(c, 2)->dim[0] == t->dim[axis]));
}

static void plain_layer_norm(struct onnx_call *c, const struct ir_type *t, double eps)
{
    union ir_attr attr;
    ir_dim n = t->dim[t->rank - 1];
    struct ir_type line = {.dtype = t->dtype, .rank = 1, .dim = {n}};
    ir_value beta = onnx_has(c, 2) ? onnx_in(c, 2) : formula_fill(&c->f, &line, 0);
    ir_value in[] = {onnx_in(c, 0), onnx_in(c, 1), beta};

    attr_defaults(RLX_OP_layer_norm, &attr);
    attr.layer_norm.eps = (float)eps;
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_layer_norm, in, 3, &attr));
}

void onnx_layer_norm(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", -1), t.rank);
    double eps = onnx_float(c, "epsilon", 1e-5);

    if (c->out_count == 1 && is_plain(c, axis, &t)) {
        plain_layer_norm(c, &t, eps);
        return;
    }
    f->dtype = formula_dtype(t.dtype);
    struct centred n =
        centre(c, formula_cast(f, onnx_in(c, 0), f->dtype), axes_from(axis, t.rank), eps);
    ir_value y = formula_cast(f, formula_2(f, RLX_OP_mul, n.x, n.inverse), t.dtype);
    y = formula_2(f, RLX_OP_mul, y, onnx_in(c, 1));
    if (onnx_has(c, 2))
        y = formula_2(f, RLX_OP_add, y, onnx_in(c, 2));
    onnx_give(c, 0, y);
    onnx_give(c, 1, n.mean);
    onnx_give(c, 2, n.inverse);
}

void onnx_rms_norm(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", -1), t.rank);
    double eps = onnx_float(c, "epsilon", 1e-5);
    union ir_attr attr;

    if (is_plain(c, axis, &t)) {
        ir_value in[] = {onnx_in(c, 0), onnx_in(c, 1)};
        attr_defaults(RLX_OP_rms_norm, &attr);
        attr.rms_norm.eps = (float)eps;
        onnx_give(c, 0, formula_node(f, RLX_OP_rms_norm, in, 2, &attr));
        return;
    }
    f->dtype = formula_dtype(t.dtype);
    ir_value x = formula_cast(f, onnx_in(c, 0), f->dtype);
    ir_value mean = formula_reduce(f, RLX_OP_reduce_mean, formula_2(f, RLX_OP_mul, x, x),
                                   axes_from(axis, t.rank), true);
    ir_value y = formula_2(f, RLX_OP_mul, x, formula_1(f, RLX_OP_rsqrt, onnx_plus(f, mean, eps)));
    onnx_give(c, 0, formula_2(f, RLX_OP_mul, formula_cast(f, y, t.dtype), onnx_in(c, 1)));
}

/* ---- without weights ---- */

void onnx_mean_variance(struct onnx_call *c)
{
    struct formula *f = &c->f;
    rlx_list axes;

    f->dtype = onnx_type(c, 0)->dtype;
    if (!onnx_ints(c, "axes", &axes))
        axes = RLX_LIST(0, 2, 3);
    struct centred n = centre(c, onnx_in(c, 0), onnx_axes(c, axes, onnx_type(c, 0)->rank), 0);
    ir_value root = onnx_plus(f, formula_1(f, RLX_OP_sqrt, n.variance), 1e-9);
    onnx_give(c, 0, formula_2(f, RLX_OP_div, n.x, root));
}

/* x over its norm; a line of zeros stays zeros. */
void onnx_lp_norm(struct onnx_call *c)
{
    struct formula *f = &c->f;
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", -1), onnx_type(c, 0)->rank);
    bool absolute = onnx_int(c, "p", 2) == 1;
    ir_value x = onnx_in(c, 0);

    f->dtype = onnx_type(c, 0)->dtype;
    ir_value each = absolute ? formula_1(f, RLX_OP_abs, x) : formula_2(f, RLX_OP_mul, x, x);
    ir_value norm = formula_reduce(f, RLX_OP_reduce_sum, each, RLX_LIST(axis), true);
    if (!absolute)
        norm = formula_1(f, RLX_OP_sqrt, norm);
    ir_value none = formula_2(f, RLX_OP_eq, norm, formula_number(f, 0));
    norm = formula_where(f, none, formula_number(f, 1), norm);
    onnx_give(c, 0, formula_2(f, RLX_OP_div, x, norm));
}

/* x / (bias + alpha / size * sum of squares over `size` channels around)^beta */
void onnx_lrn(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int64_t size = onnx_int(c, "size", 1);
    ir_value x = onnx_in(c, 0), sum = RLX_NO_VALUE;
    rlx_list before = {.count = t.rank}, after = {.count = t.rank};

    f->dtype = t.dtype;
    if (t.rank < 2 || !dim_is_static(t.dim[1]) || size < 1 || size > 64) {
        onnx_unsupported(c, "a window of %lld channels", (long long)size);
        return;
    }
    before.at[1] = (size - 1) / 2;
    after.at[1] = size - 1 - before.at[1];
    ir_value square = onnx_pad_of(f, formula_2(f, RLX_OP_mul, x, x), before, after, 0);
    for (int64_t i = 0; i < size; i++) {
        ir_value part = formula_narrow(f, square, 1, i, t.dim[1]);
        sum = i ? formula_2(f, RLX_OP_add, sum, part) : part;
    }
    ir_value base = onnx_plus(f, onnx_times(f, sum, onnx_float(c, "alpha", 1e-4) / (double)size),
                              onnx_float(c, "bias", 1));
    ir_value power = formula_2(f, RLX_OP_pow, base, formula_number(f, onnx_float(c, "beta", 0.75)));
    onnx_give(c, 0, formula_2(f, RLX_OP_div, x, power));
}
