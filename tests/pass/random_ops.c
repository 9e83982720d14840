/* random_ops.c: elementwise and movement steps of random graphs, and what each does to intervals
 * and errors.
 *
 * A maker picks operands that fit, works out where the result lies, and adds the node; where
 * something does not fit it adds nothing, and another is tried. */
#include <math.h>
#include <string.h>

#include "random_fits.h"

ir_value maker_beside(struct maker *k, ir_value v, double lo, double hi)
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

ir_value maker_binary(struct maker *k, rlx_op op, ir_value a, ir_value b)
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
            b = maker_beside(k, a, 0.5, 1.5);
    } else {
        b = maker_chance(k, 3) ? maker_beside(k, a, -1, 1) : maker_choose(k, fits_beside, a);
    }
    if (maker_chance(k, 2) && op != RLX_OP_div)
        maker_binary(k, op, b, a);
    else
        maker_binary(k, op, a, b);
}

/* What neither rounds nor computes much: the same bits everywhere. */
static bool unary_exact(rlx_op op, struct random_value x, struct random_value *r)
{
    switch (op) {
    case RLX_OP_neg: *r = (struct random_value){-x.hi, -x.lo, x.err}; return true;
    case RLX_OP_abs: *r = (struct random_value){0, maker_size(&x), x.err}; return true;
    case RLX_OP_relu: *r = (struct random_value){fmax(x.lo, 0), fmax(x.hi, 0), x.err}; return true;
    case RLX_OP_floor:
    case RLX_OP_round: *r = (struct random_value){x.lo - 1, x.hi + 1, x.err}; return true;
    case RLX_OP_sign: *r = (struct random_value){-1, 1, x.err}; return true;
    default: return false;
    }
}

/* false: not in this interval. */
static bool unary_smooth(rlx_op op, rlx_dtype t, struct random_value x, struct random_value *r)
{
    double slope = 1.2; /* of all but exp, within their intervals */

    switch (op) {
    case RLX_OP_exp:
        if (x.hi > 2)
            return false;
        slope = exp(x.hi);
        *r = (struct random_value){0, slope, 0};
        break;
    case RLX_OP_sqrt:
        if (x.lo < 0.25)
            return false;
        *r = (struct random_value){sqrt(x.lo), sqrt(x.hi), 0};
        break;
    case RLX_OP_sigmoid: *r = (struct random_value){0, 1, 0}; break;
    case RLX_OP_softplus: *r = (struct random_value){0, maker_size(&x) + 1, 0}; break;
    case RLX_OP_silu:
    case RLX_OP_gelu:
    case RLX_OP_gelu_approx: *r = (struct random_value){-0.3, fmax(x.hi, 0), 0}; break;
    default: *r = (struct random_value){-1, 1, 0}; break; /* tanh, sin, cos, erf */
    }
    r->err = slope * x.err + maker_rounding(t, fmax(maker_size(r), 1));
    return true;
}

ir_value maker_unary(struct maker *k, rlx_op op, ir_value a)
{
    struct random_value r;
    bool steps = op == RLX_OP_floor || op == RLX_OP_round || op == RLX_OP_sign;

    if (a < 0 || !maker_is_float(k, a) || (steps && !is_exact(k, a)))
        return RLX_NO_VALUE;
    if (!unary_exact(op, k->info[a], &r) &&
        !unary_smooth(op, maker_type(k, a)->dtype, k->info[a], &r))
        return RLX_NO_VALUE;
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
        maker_unary(k, ops[maker_pick(k, 20)], a);
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

ir_value maker_cast(struct maker *k, ir_value a, rlx_dtype to)
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

    maker_cast(k, maker_choose(k, fits_any, 0), to[maker_pick(k, 6)]);
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
            a = maker_unary(k, RLX_OP_relu, a);
    }
}

/* ---- movement ---- */

ir_value maker_reshape(struct maker *k, ir_value a, rlx_list shape)
{
    union ir_attr attr;

    if (a < 0)
        return a;
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
    maker_reshape(k, a, shape);
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

ir_value maker_narrow(struct maker *k, ir_value a, int64_t axis, int64_t start, int64_t len)
{
    union ir_attr attr;

    if (a < 0)
        return a;
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
    maker_narrow(k, a, axis, start, 1 + maker_pick(k, (uint32_t)(size - start)));
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

void maker_step(struct maker *k)
{
    static void (*const makers[])(struct maker *) = {
        make_binary,  make_binary,    make_binary,        make_unary,  make_unary,
        make_compare, make_where,     make_clamp,         make_cast,   make_fake_quantize,
        make_reshape, make_transpose, make_narrow,        make_concat, make_expand,
        make_gather,  make_reshape,   make_other_movement};

    if (maker_chance(k, 2))
        maker_step_of_patterns(k);
    else
        makers[maker_pick(k, sizeof makers / sizeof makers[0])](k);
}
