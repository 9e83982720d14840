/* random_patterns.c: reductions, norms and products of random graphs, and the patterns that
 * cleanups and fusions look for. */
#include <math.h>
#include <string.h>

#include "random_fits.h"

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
    if (maker_chance(k, 2) &&
        (b = maker_binary(k, RLX_OP_add, a, maker_choose(k, fits_beside, a))) >= 0)
        a = b; /* a residual norm */
    if (maker_type(k, a)->rank >= 2 && fits_rows(k, a, 0))
        a = norm(k, maker_chance(k, 2) ? RLX_OP_layer_norm : RLX_OP_rms_norm, a);
    const struct ir_type *t = a < 0 ? NULL : maker_type(k, a);
    if (t && t->rank == 3 && maker_chance(k, 2))
        maker_reshape(k, a,
                      rlx_list_of(2, (const int64_t[]){dim_mul(k->m->dims, t->dim[0], t->dim[1]),
                                                       t->dim[2]}));
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
    y = maker_chance(k, 2) ? maker_binary(k, RLX_OP_add, y, b) : maker_binary(k, RLX_OP_add, b, y);
    if (y >= 0 && maker_chance(k, 2))
        maker_unary(k, activations[maker_pick(k, 4)], y);
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
        gate = maker_narrow(k, both, axis, first ? 0 : width, width);
        up = gate < 0 ? gate : maker_narrow(k, both, axis, first ? width : 0, width);
    }
    if (gate < 0 || up < 0 || (gate = maker_unary(k, RLX_OP_silu, gate)) < 0)
        return;
    if (maker_chance(k, 2))
        maker_binary(k, RLX_OP_mul, gate, up);
    else
        maker_binary(k, RLX_OP_mul, up, gate);
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

    if (x < 0 || (gate = maker_beside(k, x, -1, 1)) < 0)
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
        maker_binary(k, maker_chance(k, 2) ? RLX_OP_mul : RLX_OP_div, a, one);
        break;
    case 1:
        one = maker_const(k, dtype, (rlx_list){0}, 0, 0);
        maker_binary(k, maker_chance(k, 2) ? RLX_OP_add : RLX_OP_sub, a, one);
        break;
    case 2:
        a = maker_unary(k, RLX_OP_neg, a);
        if (a >= 0)
            maker_unary(k, RLX_OP_neg, a);
        break;
    case 3: maker_cast(k, maker_cast(k, a, RLX_DTYPE_f32), dtype); break;
    default: maker_cast(k, maker_cast(k, a, RLX_DTYPE_f16), dtype); break;
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

void maker_step_of_patterns(struct maker *k)
{
    static void (*const makers[])(struct maker *) = {
        make_reduce,   make_along_axis, make_norm,    make_norm,     make_matmul,
        make_matmul,   make_swiglu,     make_product, make_window,   make_fused,
        make_identity, make_copy,       make_random,  make_constant, make_along_axis};

    makers[maker_pick(k, sizeof makers / sizeof makers[0])](k);
}
