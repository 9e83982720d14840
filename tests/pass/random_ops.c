/* random_ops.c: the steps a random graph is made of, and what each does to intervals and errors.
 *
 * A maker picks operands that fit, works out where the result lies, and adds the node; where
 * something does not fit it adds nothing, and another is tried. */
#include <math.h>
#include <string.h>

#include "random_maker.h"

static bool is_exact(const struct maker *k, ir_value v)
{
    return k->info[v].err == 0; /* NOLINT: set, not computed */
}

static bool fits_float(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_is_float(k, v);
}

static bool fits_exact_float(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_is_float(k, v) && is_exact(k, v);
}

static bool fits_any(const struct maker *k, ir_value v, ir_value beside)
{
    (void)k, (void)v, (void)beside;
    return true;
}

static bool fits_ranked(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_type(k, v)->rank > 0;
}

static bool fits_ranked_float(const struct maker *k, ir_value v, ir_value beside)
{
    return fits_ranked(k, v, beside) && maker_is_float(k, v);
}

static bool fits_bool(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_type(k, v)->dtype == RLX_DTYPE_bool;
}

static bool fits_int(const struct maker *k, ir_value v, ir_value beside)
{
    (void)beside;
    return maker_type(k, v)->dtype == RLX_DTYPE_i32;
}

/* Of the same element type, and broadcasting with it for certain. */
static bool fits_beside(const struct maker *k, ir_value v, ir_value beside)
{
    const struct ir_type *a = maker_type(k, v), *b = maker_type(k, beside);

    if (a->dtype != b->dtype)
        return false;
    for (int32_t i = 1; i <= a->rank && i <= b->rank; i++) {
        ir_dim x = a->dim[a->rank - i], y = b->dim[b->rank - i];
        if (x != y && x != 1 && y != 1)
            return false;
    }
    return true;
}

static bool fits_exact_beside(const struct maker *k, ir_value v, ir_value beside)
{
    return is_exact(k, v) && fits_beside(k, v, beside);
}

/* Divides well. */
static bool fits_divisor(const struct maker *k, ir_value v, ir_value beside)
{
    return k->info[v].lo >= 0.25 && fits_beside(k, v, beside);
}

static bool fits_rows(const struct maker *k, ir_value v, ir_value beside)
{
    const struct ir_type *t = maker_type(k, v);

    (void)beside;
    return maker_is_float(k, v) && t->rank >= 2 && dim_is_static(t->dim[t->rank - 1]);
}

/* A constant or param that broadcasts with v. */
static ir_value make_beside(struct maker *k, ir_value v, double lo, double hi)
{
    const struct ir_type *t = maker_type(k, v);
    rlx_list shape = {.count = (int32_t)maker_pick(k, (uint32_t)t->rank + 1)};
    rlx_dtype dtype = t->dtype;

    for (int32_t i = 0; i < shape.count; i++) {
        ir_dim d = t->dim[t->rank - shape.count + i];
        shape.at[i] = dim_is_static(d) && !maker_chance(k, 3) ? d : 1;
    }
    if (dtype == RLX_DTYPE_f32 && lo <= -1 && hi >= 1 && maker_chance(k, 2))
        return maker_leaf(k, RLX_OP_param, dtype, shape);
    return maker_const(k, dtype, shape, lo, hi);
}

/* ---- elementwise ---- */

/* Once-rounded sums and products are the same everywhere, but only where no fusion may leave a
 * rounding to half precision out. */
static double error_of(const struct maker *k, ir_value v, double carried, double size)
{
    rlx_dtype t = maker_type(k, v)->dtype;

    if (carried == 0 && (t == RLX_DTYPE_f32 || !dtype_is(t, CLASS_F)))
        return 0;
    return carried + maker_rounding(t, size);
}

static struct random_value combine(const struct maker *k, rlx_op op, ir_value a, ir_value b)
{
    struct random_value x = k->info[a], y = k->info[b], r = x;
    double sx = maker_size(&x), sy = maker_size(&y);

    switch (op) {
    case RLX_OP_add:
        r = (struct random_value){x.lo + y.lo, x.hi + y.hi, 0};
        r.err = error_of(k, a, x.err + y.err, maker_size(&r));
        break;
    case RLX_OP_sub:
        r = (struct random_value){x.lo - y.hi, x.hi - y.lo, 0};
        r.err = error_of(k, a, x.err + y.err, maker_size(&r));
        break;
    case RLX_OP_mul:
        r.hi = fmax(fmax(x.lo * y.lo, x.hi * y.hi), fmax(x.lo * y.hi, x.hi * y.lo));
        r.lo = fmin(fmin(x.lo * y.lo, x.hi * y.hi), fmin(x.lo * y.hi, x.hi * y.lo));
        r.err = error_of(k, a, sx * y.err + sy * x.err + x.err * y.err, sx * sy);
        break;
    case RLX_OP_div:
        r = (struct random_value){-sx / y.lo, sx / y.lo, 0};
        r.err = x.err / y.lo + sx * y.err / (y.lo * y.lo) +
                maker_rounding(maker_type(k, a)->dtype, sx / y.lo);
        break;
    case RLX_OP_max: r = (struct random_value){fmax(x.lo, y.lo), fmax(x.hi, y.hi), 0}; break;
    default: r = (struct random_value){fmin(x.lo, y.lo), fmin(x.hi, y.hi), 0}; break;
    }
    if (op == RLX_OP_max || op == RLX_OP_min)
        r.err = fmax(x.err, y.err);
    return r;
}

static ir_value binary(struct maker *k, rlx_op op, ir_value a, ir_value b)
{
    if (a < 0 || b < 0)
        return RLX_NO_VALUE;
    return maker_add(k, op, (const ir_value[]){a, b}, 2, NULL, combine(k, op, a, b));
}

static void make_binary(struct maker *k)
{
    static const rlx_op ops[] = {RLX_OP_add, RLX_OP_add, RLX_OP_sub, RLX_OP_mul,
                                 RLX_OP_mul, RLX_OP_max, RLX_OP_min, RLX_OP_div};
    rlx_op op = ops[maker_pick(k, 8)];
    ir_value a = maker_choose(k, maker_chance(k, 6) ? fits_int : fits_float, 0), b;

    if (a < 0)
        return;
    if (op == RLX_OP_div) {
        b = maker_is_float(k, a) ? maker_choose(k, fits_divisor, a) : RLX_NO_VALUE;
        if (b < 0 && maker_is_float(k, a))
            b = make_beside(k, a, 0.5, 1.5);
    } else {
        b = maker_chance(k, 3) ? make_beside(k, a, -1, 1) : maker_choose(k, fits_beside, a);
    }
    if (maker_chance(k, 2) && op != RLX_OP_div)
        binary(k, op, b, a);
    else
        binary(k, op, a, b);
}

static ir_value unary(struct maker *k, rlx_op op, ir_value a)
{
    if (a < 0 || !maker_is_float(k, a))
        return RLX_NO_VALUE;
    struct random_value x = k->info[a], r = x;
    rlx_dtype t = maker_type(k, a)->dtype;
    double slope = 1.2;

    switch (op) {
    case RLX_OP_neg: r = (struct random_value){-x.hi, -x.lo, x.err}; goto same;
    case RLX_OP_abs: r = (struct random_value){0, maker_size(&x), x.err}; goto same;
    case RLX_OP_relu: r = (struct random_value){fmax(x.lo, 0), fmax(x.hi, 0), x.err}; goto same;
    case RLX_OP_floor:
    case RLX_OP_round: r = (struct random_value){x.lo - 1, x.hi + 1, x.err}; goto exact;
    case RLX_OP_sign: r = (struct random_value){-1, 1, x.err}; goto exact;
    case RLX_OP_exp:
        if (x.hi > 2)
            return RLX_NO_VALUE;
        slope = exp(x.hi);
        r = (struct random_value){0, slope, 0};
        break;
    case RLX_OP_sqrt:
        if (x.lo < 0.25)
            return RLX_NO_VALUE;
        r = (struct random_value){sqrt(x.lo), sqrt(x.hi), 0};
        break;
    case RLX_OP_sigmoid: r = (struct random_value){0, 1, 0}; break;
    case RLX_OP_softplus: r = (struct random_value){0, maker_size(&x) + 1, 0}; break;
    case RLX_OP_silu:
    case RLX_OP_gelu:
    case RLX_OP_gelu_approx: r = (struct random_value){-0.3, fmax(x.hi, 0), 0}; break;
    default: r = (struct random_value){-1, 1, 0}; break; /* tanh, sin, cos, erf */
    }
    r.err = slope * x.err + maker_rounding(t, fmax(maker_size(&r), 1));
    return maker_add(k, op, &a, 1, NULL, r);
exact: /* a step: small differences would not stay small */
    if (x.err != 0)
        return RLX_NO_VALUE;
same:
    return maker_add(k, op, &a, 1, NULL, r);
}

static void make_unary(struct maker *k)
{
    static const rlx_op ops[] = {RLX_OP_neg,  RLX_OP_abs,      RLX_OP_relu,  RLX_OP_floor,
                                 RLX_OP_sign, RLX_OP_exp,      RLX_OP_sqrt,  RLX_OP_sigmoid,
                                 RLX_OP_silu, RLX_OP_softplus, RLX_OP_gelu,  RLX_OP_gelu_approx,
                                 RLX_OP_tanh, RLX_OP_sin,      RLX_OP_cos,   RLX_OP_erf,
                                 RLX_OP_neg,  RLX_OP_relu,     RLX_OP_round, RLX_OP_abs};
    ir_value a = maker_choose(k, fits_float, 0);

    if (a >= 0)
        unary(k, ops[maker_pick(k, 20)], a);
}

static void make_compare(struct maker *k)
{
    static const rlx_op ops[] = {RLX_OP_eq, RLX_OP_ne, RLX_OP_lt, RLX_OP_le, RLX_OP_gt, RLX_OP_ge};
    ir_value a = maker_choose(k, fits_exact_float, 0), b;

    if (a < 0 || (b = maker_choose(k, fits_exact_beside, a)) < 0)
        return;
    maker_add(k, ops[maker_pick(k, 6)], (const ir_value[]){a, b}, 2, NULL,
              (struct random_value){0, 1, 0});
}

static void make_where(struct maker *k)
{
    ir_value c = maker_choose(k, fits_bool, 0), a, b;

    if (c < 0 || (a = maker_choose(k, fits_float, 0)) < 0 ||
        (b = maker_choose(k, fits_beside, a)) < 0)
        return;
    struct random_value x = k->info[a], y = k->info[b];
    maker_add(k, RLX_OP_where, (const ir_value[]){c, a, b}, 3, NULL,
              (struct random_value){fmin(x.lo, y.lo), fmax(x.hi, y.hi), fmax(x.err, y.err)});
}

static void make_clamp(struct maker *k)
{
    ir_value a = maker_choose(k, fits_float, 0);
    union ir_attr attr;

    if (a < 0)
        return;
    attr_defaults(RLX_OP_clamp, &attr);
    attr.clamp.min = -0.5;
    attr.clamp.max = 0.25 * (double)maker_pick(k, 8);
    maker_add(k, RLX_OP_clamp, &a, 1, &attr,
              (struct random_value){-0.5, attr.clamp.max, k->info[a].err});
}

static ir_value cast(struct maker *k, ir_value a, rlx_dtype to)
{
    union ir_attr attr;
    struct random_value r;

    if (a < 0)
        return a;
    r = k->info[a];
    attr_defaults(RLX_OP_cast, &attr);
    attr.cast.to = to;
    if (!dtype_is(to, CLASS_F) && r.err != 0)
        return RLX_NO_VALUE;
    if (to == RLX_DTYPE_i32) /* towards zero */
        r = (struct random_value){fmin(r.lo, 0), fmax(r.hi, 0), 0};
    if (to == RLX_DTYPE_bool)
        r = (struct random_value){0, 1, 0};
    if (r.err != 0 && to != RLX_DTYPE_f32)
        r.err += maker_rounding(to, maker_size(&r));
    return maker_add(k, RLX_OP_cast, &a, 1, &attr, r);
}

static void make_cast(struct maker *k)
{
    static const rlx_dtype to[] = {RLX_DTYPE_f32, RLX_DTYPE_f32,  RLX_DTYPE_f16,
                                   RLX_DTYPE_i32, RLX_DTYPE_bf16, RLX_DTYPE_bool};

    cast(k, maker_choose(k, fits_any, 0), to[maker_pick(k, 6)]);
}

static void make_fake_quantize(struct maker *k)
{
    ir_value a = maker_choose(k, fits_exact_float, 0), s;
    union ir_attr attr;

    if (a < 0 || maker_type(k, a)->dtype != RLX_DTYPE_f32)
        return;
    attr_defaults(RLX_OP_fake_quantize, &attr);
    attr.fake_quantize.scale_mode = RLX_SCALE_MODE_fixed;
    s = maker_const(k, RLX_DTYPE_f32, (rlx_list){0}, 0.125, 0.125);
    for (int i = 0; i < 2 && a >= 0 && s >= 0; i++) { /* twice: the second is not needed */
        a = maker_add(k, RLX_OP_fake_quantize, (const ir_value[]){a, s}, 2, &attr,
                      (struct random_value){-16, 16, 0});
        if (a >= 0 && maker_chance(k, 2))
            a = unary(k, RLX_OP_relu, a);
    }
}

/* ---- movement ---- */

static ir_value reshape(struct maker *k, ir_value a, rlx_list shape)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape = shape;
    return maker_add(k, RLX_OP_reshape, &a, 1, &attr, k->info[a]);
}

static void make_reshape(struct maker *k)
{
    ir_value a = maker_choose(k, fits_any, 0);
    const struct ir_type *t = a < 0 ? NULL : maker_type(k, a);
    rlx_list shape = {0};

    if (!t)
        return;
    for (int32_t i = 0; i < t->rank; i++) { /* join some axes, put ones between others */
        ir_dim d = t->dim[i];
        if (shape.count && maker_chance(k, 2))
            shape.at[shape.count - 1] = dim_mul(k->m->dims, shape.at[shape.count - 1], d);
        else
            shape.at[shape.count++] = d;
        if (shape.count < 5 && maker_chance(k, 4))
            shape.at[shape.count++] = 1;
    }
    reshape(k, a, shape);
}

static ir_value transpose(struct maker *k, ir_value a)
{
    int32_t rank = maker_type(k, a)->rank;
    union ir_attr attr;

    attr_defaults(RLX_OP_transpose, &attr);
    attr.transpose.perm.count = rank;
    for (int32_t i = 0; i < rank; i++) {
        int32_t j = (int32_t)maker_pick(k, (uint32_t)i + 1);
        attr.transpose.perm.at[i] = attr.transpose.perm.at[j];
        attr.transpose.perm.at[j] = i;
    }
    return maker_add(k, RLX_OP_transpose, &a, 1, &attr, k->info[a]);
}

static void make_transpose(struct maker *k)
{
    ir_value a = maker_choose(k, fits_ranked, 0);

    if (a >= 0 && (a = transpose(k, a)) >= 0 && maker_chance(k, 3))
        transpose(k, a);
}

static ir_value narrow(struct maker *k, ir_value a, int64_t axis, int64_t start, int64_t len)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_narrow, &attr);
    attr.narrow.axis = axis;
    attr.narrow.start = start;
    attr.narrow.len = len;
    return maker_add(k, RLX_OP_narrow, &a, 1, &attr, k->info[a]);
}

static void make_narrow(struct maker *k)
{
    ir_value a = maker_choose(k, fits_ranked, 0);

    if (a < 0)
        return;
    const struct ir_type *t = maker_type(k, a);
    int64_t axis = maker_pick(k, (uint32_t)t->rank), size = t->dim[axis];
    if (size < 1)
        return;
    int64_t start = maker_pick(k, (uint32_t)size);
    narrow(k, a, axis, start, 1 + maker_pick(k, (uint32_t)(size - start)));
}

static void make_concat(struct maker *k)
{
    ir_value a = maker_choose(k, fits_ranked, 0), in[3];
    union ir_attr attr;

    if (a < 0)
        return;
    struct random_value r = k->info[a];
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = maker_pick(k, (uint32_t)maker_type(k, a)->rank);
    for (int i = 0; i < 3; i++) {
        in[i] = i == 0 ? a : maker_choose(k, fits_beside, a);
        r.lo = fmin(r.lo, k->info[in[i]].lo);
        r.hi = fmax(r.hi, k->info[in[i]].hi);
        r.err = fmax(r.err, k->info[in[i]].err);
    }
    if (maker_add(k, RLX_OP_concat, in, 3, &attr, r) < 0) { /* shapes need not fit: with itself */
        in[1] = a;
        maker_add(k, RLX_OP_concat, in, 2, &attr, k->info[a]);
    }
}

static void make_expand(struct maker *k)
{
    ir_value a = maker_choose(k, fits_ranked, 0);
    union ir_attr attr;

    if (a < 0)
        return;
    const struct ir_type *t = maker_type(k, a);
    attr_defaults(RLX_OP_expand, &attr);
    rlx_list *shape = &attr.expand.shape;
    if (t->rank < 4 && maker_chance(k, 2))
        shape->at[shape->count++] = 1 + maker_pick(k, 3);
    for (int32_t i = 0; i < t->rank; i++)
        shape->at[shape->count++] = t->dim[i] == 1 ? 1 + maker_pick(k, 3) : t->dim[i];
    maker_add(k, RLX_OP_expand, &a, 1, &attr, k->info[a]);
}

/* slice, reverse, pad, tile, trilu: axis by axis. */
static void make_other_movement(struct maker *k)
{
    static const rlx_op ops[] = {RLX_OP_slice, RLX_OP_reverse, RLX_OP_pad, RLX_OP_tile,
                                 RLX_OP_trilu};
    rlx_op op = ops[maker_pick(k, 5)];
    ir_value a = maker_choose(k, fits_ranked_float, 0);
    union ir_attr attr;

    if (a < 0)
        return;
    const struct ir_type *t = maker_type(k, a);
    struct random_value r = k->info[a];
    int64_t axis = maker_pick(k, (uint32_t)t->rank);
    attr_defaults(op, &attr);
    switch (op) {
    case RLX_OP_slice:
        attr.slice.axis = axis;
        attr.slice.start = 0;
        attr.slice.len = dim_is_static(t->dim[axis]) ? (t->dim[axis] + 1) / 2 : 1;
        attr.slice.step = 2;
        break;
    case RLX_OP_reverse: attr.reverse.axes = rlx_list_of(1, &axis); break;
    case RLX_OP_pad:
        attr.pad.before.count = attr.pad.after.count = t->rank;
        attr.pad.before.at[axis] = 1;
        attr.pad.after.at[axis] = 2;
        break;
    case RLX_OP_tile:
        attr.tile.reps.count = t->rank;
        for (int32_t i = 0; i < t->rank; i++)
            attr.tile.reps.at[i] = i == axis ? 2 : 1;
        break;
    default: attr.trilu.upper = maker_chance(k, 2); break;
    }
    r.lo = fmin(r.lo, 0);
    r.hi = fmax(r.hi, 0);
    maker_add(k, op, &a, 1, &attr, r);
}

static void make_gather(struct maker *k)
{
    ir_value a = maker_choose(k, fits_ranked, 0), at;
    union ir_attr attr;

    if (a < 0)
        return;
    const struct ir_type *t = maker_type(k, a);
    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = maker_pick(k, (uint32_t)t->rank);
    if (!dim_is_static(t->dim[attr.gather.axis]))
        return;
    at =
        maker_const(k, RLX_DTYPE_i32, maker_shape(k, 2), 0, (double)t->dim[attr.gather.axis] - 0.5);
    if (at >= 0)
        maker_add(k, RLX_OP_gather, (const ir_value[]){a, at}, 2, &attr, k->info[a]);
}

/* ---- reductions, norms, products ---- */

static void make_reduce(struct maker *k)
{
    static const rlx_op ops[] = {RLX_OP_reduce_sum, RLX_OP_reduce_mean, RLX_OP_reduce_max,
                                 RLX_OP_reduce_min};
    rlx_op op = ops[maker_pick(k, 4)];
    ir_value a = maker_choose(k, fits_ranked_float, 0);
    union ir_attr attr;
    double n = 1;

    if (a < 0)
        return;
    const struct ir_type *t = maker_type(k, a);
    struct random_value r = k->info[a];
    attr_defaults(op, &attr);
    attr.reduce.keep_dim = maker_chance(k, 2);
    for (int32_t i = 0; i < t->rank; i++)
        if (maker_chance(k, 2) || i == t->rank - 1) {
            attr.reduce.axes.at[attr.reduce.axes.count++] = i;
            n *= maker_count(k, t->dim[i]);
        }
    if (op == RLX_OP_reduce_sum)
        r = (struct random_value){fmin(r.lo * n, r.lo), fmax(r.hi * n, r.hi), r.err * n};
    if (op == RLX_OP_reduce_sum || op == RLX_OP_reduce_mean)
        r.err += maker_rounding(t->dtype, maker_size(&r));
    maker_add(k, op, &a, 1, &attr, r);
}

static void make_along_axis(struct maker *k)
{
    static const rlx_op ops[] = {RLX_OP_softmax, RLX_OP_cumsum, RLX_OP_argmax};
    rlx_op op = ops[maker_pick(k, 3)];
    ir_value a = maker_choose(k, op == RLX_OP_argmax ? fits_exact_float : fits_ranked_float, 0);
    union ir_attr attr;

    if (a < 0 || maker_type(k, a)->rank == 0)
        return;
    const struct ir_type *t = maker_type(k, a);
    struct random_value r = k->info[a];
    int64_t axis = maker_pick(k, (uint32_t)t->rank);
    double n = maker_count(k, t->dim[axis]);
    attr_defaults(op, &attr);
    switch (op) {
    case RLX_OP_softmax:
        attr.softmax.axis = axis;
        r = (struct random_value){0, 1, 2 * r.err + maker_rounding(t->dtype, 2)};
        break;
    case RLX_OP_cumsum:
        attr.cumulative.axis = axis;
        r = (struct random_value){fmin(r.lo * n, r.lo), fmax(r.hi * n, r.hi), r.err * n};
        r.err += maker_rounding(t->dtype, maker_size(&r));
        break;
    default:
        attr.arg_extreme.axis = axis;
        r = (struct random_value){0, n, 0};
        break;
    }
    maker_add(k, op, &a, 1, &attr, r);
}

/* eps is large, so that rows of nearly equal values do not blow errors up. */
static ir_value norm(struct maker *k, rlx_op op, ir_value a)
{
    const struct ir_type *t = maker_type(k, a);
    rlx_list width = rlx_list_of(1, &t->dim[t->rank - 1]);
    double n = (double)t->dim[t->rank - 1], most = fmin(sqrt(n), 4 * maker_size(&k->info[a]));
    struct random_value r = {-most - 1, most + 1,
                             16 * k->info[a].err + maker_rounding(t->dtype, most + 1)};
    rlx_dtype dtype = t->dtype;
    union ir_attr attr;

    attr_defaults(op, &attr);
    if (op == RLX_OP_layer_norm)
        attr.layer_norm.eps = 0.1f;
    else
        attr.rms_norm.eps = 0.1f;
    ir_value gamma = maker_const(k, dtype, width, 0.25, 1);
    ir_value beta = maker_const(k, dtype, width, -0.5, 0.5);
    if (gamma < 0 || beta < 0)
        return RLX_NO_VALUE;
    return maker_add(k, op, (const ir_value[]){a, gamma, beta}, 3, &attr, r);
}

static void make_norm(struct maker *k)
{
    ir_value a = maker_choose(k, fits_rows, 0), b;

    if (a < 0)
        return;
    if (maker_chance(k, 2) && (b = binary(k, RLX_OP_add, a, maker_choose(k, fits_beside, a))) >= 0)
        a = b; /* a residual norm */
    if (maker_type(k, a)->rank >= 2 && fits_rows(k, a, 0))
        a = norm(k, maker_chance(k, 2) ? RLX_OP_layer_norm : RLX_OP_rms_norm, a);
    const struct ir_type *t = a < 0 ? NULL : maker_type(k, a);
    if (t && t->rank == 3 && maker_chance(k, 2))
        reshape(k, a,
                rlx_list_of(
                    2, (const int64_t[]){dim_mul(k->m->dims, t->dim[0], t->dim[1]), t->dim[2]}));
}

static struct random_value product(const struct maker *k, ir_value a, ir_value b, double n)
{
    struct random_value x = k->info[a], y = k->info[b];
    double sx = maker_size(&x), sy = maker_size(&y), most = n * sx * sy;

    return (struct random_value){-most, most,
                                 n * (sx * y.err + sy * x.err + x.err * y.err) +
                                     maker_rounding(maker_type(k, a)->dtype, most)};
}

/* x times a weight of that width; *w is given, so that a second product can read the same. */
static ir_value times_weight(struct maker *k, ir_value x, int64_t width, ir_value *w)
{
    const struct ir_type *t = maker_type(k, x);
    int64_t inner = t->dim[t->rank - 1];
    rlx_list shape = rlx_list_of(2, (const int64_t[]){inner, width});
    rlx_dtype dtype = t->dtype;

    *w = dtype == RLX_DTYPE_f32 && !maker_chance(k, 4) ? maker_leaf(k, RLX_OP_param, dtype, shape)
                                                       : maker_const(k, dtype, shape, -1, 1);
    if (*w < 0)
        return RLX_NO_VALUE;
    return maker_add(k, RLX_OP_matmul, (const ir_value[]){x, *w}, 2, NULL,
                     product(k, x, *w, (double)inner));
}

static void make_matmul(struct maker *k)
{
    static const rlx_op activations[] = {RLX_OP_gelu, RLX_OP_silu, RLX_OP_relu, RLX_OP_tanh};
    static const int64_t widths[] = {1, 3, 4, 8};
    ir_value x = maker_choose(k, fits_rows, 0), w, y;
    int64_t width = widths[maker_pick(k, 4)];

    if (x < 0 || (y = times_weight(k, x, width, &w)) < 0)
        return;
    if (maker_chance(k, 3))
        times_weight(k, x, widths[maker_pick(k, 4)], &w);
    if (maker_chance(k, 3))
        return;
    ir_value b = maker_const(k, maker_type(k, y)->dtype, rlx_list_of(1, &width), -1, 1);
    y = maker_chance(k, 2) ? binary(k, RLX_OP_add, y, b) : binary(k, RLX_OP_add, b, y);
    if (y >= 0 && maker_chance(k, 2))
        unary(k, activations[maker_pick(k, 4)], y);
}

/* silu(x wg) (x wu), and the same from the halves of one product. */
static void make_swiglu(struct maker *k)
{
    ir_value x = maker_choose(k, fits_rows, 0), w, up, gate;
    int64_t width = 1 + maker_pick(k, 5);

    if (x < 0)
        return;
    if (maker_chance(k, 2)) {
        gate = times_weight(k, x, width, &w);
        up = gate < 0 ? gate : times_weight(k, x, width, &w);
    } else {
        ir_value both = times_weight(k, x, 2 * width, &w);
        if (both < 0)
            return;
        int64_t axis = maker_type(k, both)->rank - 1;
        bool first = maker_chance(k, 2);
        gate = narrow(k, both, axis, first ? 0 : width, width);
        up = gate < 0 ? gate : narrow(k, both, axis, first ? width : 0, width);
    }
    if (gate < 0 || up < 0 || (gate = unary(k, RLX_OP_silu, gate)) < 0)
        return;
    if (maker_chance(k, 2))
        binary(k, RLX_OP_mul, gate, up);
    else
        binary(k, RLX_OP_mul, up, gate);
}

static bool fits_second_factor(const struct maker *k, ir_value v, ir_value beside)
{
    const struct ir_type *a = maker_type(k, beside), *b = maker_type(k, v);

    return b->rank >= 2 && a->dtype == b->dtype && a->dim[a->rank - 1] == b->dim[b->rank - 2];
}

static void make_product(struct maker *k)
{
    ir_value a = maker_choose(k, fits_rows, 0), b;

    if (a >= 0 && (b = maker_choose(k, fits_second_factor, a)) >= 0)
        maker_add(
            k, RLX_OP_matmul, (const ir_value[]){a, b}, 2, NULL,
            product(k, a, b, maker_count(k, maker_type(k, a)->dim[maker_type(k, a)->rank - 1])));
}

static bool fits_image(const struct maker *k, ir_value v, ir_value beside)
{
    const struct ir_type *t = maker_type(k, v);

    (void)beside;
    return t->rank == 4 && t->dtype == RLX_DTYPE_f32 && type_is_static(t);
}

static void make_window(struct maker *k)
{
    ir_value x = maker_choose(k, fits_image, 0), w;
    union ir_attr attr;

    if (x < 0)
        return;
    int64_t channels = maker_type(k, x)->dim[1];
    if (maker_chance(k, 2)) {
        attr_defaults(RLX_OP_pool, &attr);
        attr.pool.kind = RLX_POOL_KIND_max;
        attr.pool.kernel_size = rlx_list_of(2, (const int64_t[]){2, 2});
        attr.pool.stride = rlx_list_of(2, (const int64_t[]){1, 2});
        maker_add(k, RLX_OP_pool, &x, 1, &attr, k->info[x]);
        return;
    }
    w = maker_const(k, RLX_DTYPE_f32, rlx_list_of(4, (const int64_t[]){3, channels, 2, 3}), -1, 1);
    attr_defaults(RLX_OP_conv, &attr);
    attr.conv.kernel_size = rlx_list_of(2, (const int64_t[]){2, 3});
    attr.conv.padding = rlx_list_of(2, (const int64_t[]){1, 1});
    if (w >= 0)
        maker_add(k, RLX_OP_conv, (const ir_value[]){x, w}, 2, &attr,
                  product(k, x, w, 6 * (double)channels));
}

static void make_fused(struct maker *k)
{
    ir_value x = maker_choose(k, fits_rows, 0), gate;

    if (x < 0 || (gate = make_beside(k, x, -1, 1)) < 0)
        return;
    struct random_value a = k->info[x];
    double size = maker_size(&a) + 1;
    maker_add(k, RLX_OP_gated_residual, (const ir_value[]){x, x, gate}, 3, NULL,
              (struct random_value){-2 * size, 2 * size,
                                    2 * a.err + maker_rounding(maker_type(k, x)->dtype, size)});
}

/* ---- what cleanups look for ---- */

static void make_identity(struct maker *k)
{
    ir_value a = maker_choose(k, fits_float, 0), one;

    if (a < 0)
        return;
    rlx_dtype dtype = maker_type(k, a)->dtype;
    switch (maker_pick(k, 5)) {
    case 0:
        one = maker_const(k, dtype, (rlx_list){0}, 1, 1);
        binary(k, maker_chance(k, 2) ? RLX_OP_mul : RLX_OP_div, a, one);
        break;
    case 1:
        one = maker_const(k, dtype, (rlx_list){0}, 0, 0);
        binary(k, maker_chance(k, 2) ? RLX_OP_add : RLX_OP_sub, a, one);
        break;
    case 2:
        a = unary(k, RLX_OP_neg, a);
        if (a >= 0)
            unary(k, RLX_OP_neg, a);
        break;
    case 3: cast(k, cast(k, a, RLX_DTYPE_f32), dtype); break;
    default: cast(k, cast(k, a, RLX_DTYPE_f16), dtype); break;
    }
}

/* The same node again. */
static void make_copy(struct maker *k)
{
    ir_value a = maker_choose(k, fits_any, 0);

    if (a < 0)
        return;
    struct ir_node n = *ir_node(k->g, a);
    if (op_info(n.op)->family == FAMILY_leaf)
        return;
    ir_value in[4];
    if (n.in_count > 4)
        return;
    if (n.in_count)
        memcpy(in, n.in, (size_t)n.in_count * sizeof *in);
    if (n.in_count == 2 && op_is(n.op, OP_COMMUTES) && maker_chance(k, 2)) {
        in[0] = n.in[1];
        in[1] = n.in[0];
    }
    maker_add(k, n.op, in, n.in_count, &n.attr, k->info[a]);
}

static void make_random(struct maker *k)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_rng_uniform, &attr);
    attr.rng_uniform.shape = maker_shape(k, 3);
    attr.rng_uniform.seed = maker_pick(k, 2);
    maker_add(k, RLX_OP_rng_uniform, NULL, 0, &attr, (struct random_value){0, 1, 0});
}

static void make_constant(struct maker *k)
{
    maker_const(k, maker_chance(k, 4) ? RLX_DTYPE_f16 : RLX_DTYPE_f32, maker_shape(k, 3), -1, 1);
}

void maker_step(struct maker *k)
{
    static void (*const makers[])(struct maker *) = {
        make_binary,  make_binary,         make_binary,     make_unary,   make_unary,
        make_compare, make_where,          make_clamp,      make_cast,    make_fake_quantize,
        make_reshape, make_transpose,      make_narrow,     make_concat,  make_expand,
        make_gather,  make_reduce,         make_along_axis, make_norm,    make_norm,
        make_matmul,  make_matmul,         make_swiglu,     make_product, make_window,
        make_fused,   make_identity,       make_copy,       make_random,  make_constant,
        make_reshape, make_other_movement, make_along_axis,
    };

    makers[maker_pick(k, sizeof makers / sizeof makers[0])](k);
}
