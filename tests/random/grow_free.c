/* grow_free.c: nodes on whatever values there are: arithmetic, movement, reductions, orderings,
 * indexing and products. Attributes are drawn so that they are mostly legal. */
#include <string.h>

#include "grow.h"

static int64_t random_axis(struct grower *g, const struct ir_type *t)
{
    int64_t axis = dice_below(g->dice, t->rank ? t->rank : 1);

    return dice_percent(g->dice, 30) ? axis - t->rank : axis;
}

static rlx_list random_axes(struct grower *g, const struct ir_type *t)
{
    rlx_list axes = {0};

    for (int32_t i = 0; i < t->rank; i++)
        if (dice_percent(g->dice, 40))
            axes.at[axes.count++] = i;
    return axes;
}

static bool made(ir_value v)
{
    return v >= 0;
}

/* ---- elementwise ---- */

/* Something that broadcasts against x: x's own shape, or with ones, or with axes left out. */
static ir_value partner(struct grower *g, ir_value x)
{
    struct ir_type t = *type_of(g, x);
    int32_t drop = dice_percent(g->dice, 20) ? (int32_t)dice_below(g->dice, t.rank + 1) : 0;
    ir_value other = pick_like(g, &t);

    if (other < 0 || dice_percent(g->dice, 30))
        return other; /* it may fit as it is, and types are promoted */
    t.rank -= drop;
    memmove(t.dim, t.dim + drop, (size_t)t.rank * sizeof *t.dim);
    for (int32_t i = 0; i < t.rank; i++)
        if (dice_percent(g->dice, 15))
            t.dim[i] = 1;
    ir_value fitted = adapt(g, other, &t);
    return fitted >= 0 ? fitted : add_leaf(g, &t, &(struct value_spec){KIND_ANY, 0});
}

static bool free_binary(struct grower *g, rlx_op op)
{
    ir_value x = pick_of(g, CLASS_ANY), in[2];

    if (x < 0)
        return false;
    in[0] = x;
    in[1] = partner(g, x);
    if (dice_percent(g->dice, 50)) {
        in[0] = in[1];
        in[1] = x;
    }
    return made(put(g, op, in, 2, NULL));
}

static bool free_three(struct grower *g, rlx_op op)
{
    ir_value x = pick_of(g, CLASS_ANY);

    if (x < 0)
        return false;
    const ir_value in[] = {x, partner(g, x), partner(g, x)};
    return made(put(g, op, in, 3, NULL));
}

static bool free_clamp(struct grower *g)
{
    ir_value x = pick_of(g, CLASS_REAL);
    union ir_attr attr;

    attr_defaults(RLX_OP_clamp, &attr);
    if (dice_percent(g->dice, 80))
        attr.clamp.min = (double)dice_below(g->dice, 5) - 3;
    if (dice_percent(g->dice, 80))
        attr.clamp.max = (double)dice_below(g->dice, 5) + 0.5;
    return made(put(g, RLX_OP_clamp, &x, 1, &attr));
}

static bool free_cast(struct grower *g, rlx_op op)
{
    static const rlx_dtype to[] = {RLX_DTYPE_f32, RLX_DTYPE_f16,  RLX_DTYPE_bf16, RLX_DTYPE_f64,
                                   RLX_DTYPE_i32, RLX_DTYPE_i64,  RLX_DTYPE_u8,   RLX_DTYPE_i8,
                                   RLX_DTYPE_u16, RLX_DTYPE_bool, RLX_DTYPE_u32};
    ir_value x = pick(g);
    union ir_attr attr;

    attr_defaults(op, &attr);
    if (op == RLX_OP_bitcast) {
        x = pick_of(g, CLASS_INT); /* the bits of a float are not to be compared */
        attr.bitcast.to = to[dice_below(g->dice, sizeof to / sizeof to[0])];
        if (!dtype_is(attr.bitcast.to, CLASS_INT))
            return false;
    } else {
        attr.cast.to = to[dice_below(g->dice, sizeof to / sizeof to[0])];
    }
    return made(put(g, op, &x, 1, &attr));
}

/* ---- movement ---- */

/* Two neighbouring axes as one, whatever their sizes are. */
static bool join_axes(struct grower *g, ir_value x)
{
    struct ir_type t = *type_of(g, x);
    union ir_attr attr;

    if (t.rank < 2)
        return false;
    int64_t at = dice_below(g->dice, t.rank - 1);
    attr_defaults(RLX_OP_reshape, &attr);
    t.dim[at] = dim_mul(g->g->mod->dims, t.dim[at], t.dim[at + 1]);
    memmove(t.dim + at + 1, t.dim + at + 2, (size_t)(t.rank - at - 2) * sizeof *t.dim);
    attr.reshape.shape = rlx_list_of(t.rank - 1, t.dim);
    return made(put(g, RLX_OP_reshape, &x, 1, &attr));
}

/* The elements in another shape: factors of their number. */
static bool free_reshape(struct grower *g)
{
    ir_value x = pick(g);
    union ir_attr attr;
    int64_t left;

    if (x < 0)
        return false;
    if (!type_count(type_of(g, x), &left) || left == 0)
        return join_axes(g, x);
    attr_defaults(RLX_OP_reshape, &attr);
    rlx_list *shape = &attr.reshape.shape;
    *shape = (rlx_list){0};
    for (int64_t f = 2; f <= left && shape->count < 4; f++)
        if (left % f == 0 && dice_percent(g->dice, 50)) {
            shape->at[shape->count++] = f;
            left /= f;
        }
    shape->at[shape->count++] = dice_percent(g->dice, 20) ? -1 : left;
    if (shape->count < 6 && dice_percent(g->dice, 20))
        shape->at[shape->count++] = 1;
    return made(put(g, RLX_OP_reshape, &x, 1, &attr));
}

static bool free_transpose(struct grower *g)
{
    ir_value x = pick(g);
    union ir_attr attr;

    if (x < 0 || type_of(g, x)->rank < 1)
        return false;
    attr_defaults(RLX_OP_transpose, &attr);
    rlx_list *perm = &attr.transpose.perm;
    perm->count = type_of(g, x)->rank;
    for (int32_t i = 0; i < perm->count; i++) {
        int64_t at = dice_below(g->dice, i + 1);
        perm->at[i] = perm->at[at];
        perm->at[at] = i;
    }
    return made(put(g, RLX_OP_transpose, &x, 1, &attr));
}

/* All of an axis whose size is not known but for what stands in front: n+2 .. n. */
static bool narrow_symbol(struct grower *g, ir_value x, int64_t axis)
{
    ir_dim n = type_of(g, x)->dim[axis];
    union ir_attr attr;

    attr_defaults(RLX_OP_narrow, &attr);
    attr.narrow.axis = axis;
    attr.narrow.start = dice_below(g->dice, 2);
    attr.narrow.len =
        dice_percent(g->dice, 50) ? g->symbol : dim_sub(g->g->mod->dims, n, attr.narrow.start);
    return made(put(g, RLX_OP_narrow, &x, 1, &attr));
}

static bool free_part(struct grower *g, rlx_op op)
{
    ir_value x = pick(g);
    union ir_attr attr;

    if (x < 0 || type_of(g, x)->rank < 1)
        return false;
    int64_t axis = dice_below(g->dice, type_of(g, x)->rank), n = type_of(g, x)->dim[axis];
    if (n < 0 && op == RLX_OP_narrow)
        return narrow_symbol(g, x, axis);
    if (n < 1)
        return false;
    attr_defaults(op, &attr);
    int64_t len = 1 + dice_below(g->dice, n), start = dice_below(g->dice, n - len + 1);
    if (op == RLX_OP_narrow) {
        attr.narrow.axis = axis;
        attr.narrow.start = start;
        attr.narrow.len = len;
    } else {
        int64_t step = 1 + dice_below(g->dice, 3);
        attr.slice.axis = axis;
        attr.slice.start = start;
        attr.slice.len = (n - start + step - 1) / step;
        attr.slice.step = step;
        if (dice_percent(g->dice, 40)) {
            attr.slice.start = n - 1;
            attr.slice.len = (n + step - 1) / step;
            attr.slice.step = -step;
        }
    }
    return made(put(g, op, &x, 1, &attr));
}

static bool free_concat(struct grower *g)
{
    int32_t count = 1 + (int32_t)dice_below(g->dice, 4);
    ir_value in[4], x = pick(g);
    union ir_attr attr;

    if (x < 0 || type_of(g, x)->rank < 1)
        return false;
    struct ir_type t = *type_of(g, x);
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = dice_below(g->dice, t.rank);
    for (int32_t i = 0; i < count; i++) {
        struct ir_type part = t;
        part.dim[attr.concat.axis] = random_size(g);
        in[i] = i == 0 || dice_percent(g->dice, 20) ? x : adapt(g, pick_like(g, &part), &part);
    }
    return made(put(g, RLX_OP_concat, in, count, &attr));
}

static bool free_expand(struct grower *g)
{
    ir_value x = pick(g);
    union ir_attr attr;

    if (x < 0)
        return false;
    struct ir_type t = *type_of(g, x);
    attr_defaults(RLX_OP_expand, &attr);
    rlx_list *shape = &attr.expand.shape;
    *shape = (rlx_list){0};
    if (t.rank < 5 && dice_percent(g->dice, 50))
        shape->at[shape->count++] = random_size(g);
    for (int32_t i = 0; i < t.rank; i++)
        shape->at[shape->count++] = t.dim[i] == 1 ? random_size(g) : t.dim[i];
    return made(put(g, RLX_OP_expand, &x, 1, &attr));
}

static bool free_pad(struct grower *g)
{
    ir_value x = pick(g);
    union ir_attr attr;

    if (x < 0)
        return false;
    int32_t rank = type_of(g, x)->rank;
    attr_defaults(RLX_OP_pad, &attr);
    attr.pad.before = attr.pad.after = (rlx_list){.count = rank};
    for (int32_t i = 0; i < rank; i++) {
        attr.pad.before.at[i] = dice_percent(g->dice, 40) ? dice_below(g->dice, 4) : 0;
        attr.pad.after.at[i] = dice_percent(g->dice, 40) ? dice_below(g->dice, 4) : 0;
    }
    attr.pad.mode = (int32_t)dice_below(g->dice, 4);
    if (attr.pad.mode == 0)
        attr.pad.value = (double)dice_below(g->dice, 3);
    return made(put(g, RLX_OP_pad, &x, 1, &attr));
}

static bool free_tile(struct grower *g)
{
    ir_value x = pick(g);
    union ir_attr attr;

    if (x < 0)
        return false;
    attr_defaults(RLX_OP_tile, &attr);
    attr.tile.reps.count = type_of(g, x)->rank;
    for (int32_t i = 0; i < attr.tile.reps.count; i++)
        attr.tile.reps.at[i] = 1 + dice_below(g->dice, 3);
    return made(put(g, RLX_OP_tile, &x, 1, &attr));
}

static bool free_of_axes(struct grower *g, rlx_op op)
{
    ir_value x = pick(g);
    union ir_attr attr;

    if (x < 0)
        return false;
    attr_defaults(op, &attr);
    if (op == RLX_OP_reverse) {
        attr.reverse.axes = random_axes(g, type_of(g, x));
    } else if (op == RLX_OP_trilu) {
        attr.trilu.upper = dice_percent(g->dice, 50);
        attr.trilu.diagonal = dice_below(g->dice, 5) - 2;
    } else {
        attr.reduce.axes = random_axes(g, type_of(g, x));
        attr.reduce.keep_dim = dice_percent(g->dice, 50);
    }
    return made(put(g, op, &x, 1, &attr));
}

/* ---- along an axis ---- */

static bool free_of_axis(struct grower *g, rlx_op op)
{
    ir_value x = pick_of(g, CLASS_REAL);
    union ir_attr attr;

    if (x < 0 || type_of(g, x)->rank < 1)
        return false;
    int64_t axis = random_axis(g, type_of(g, x));
    int64_t n = type_of(g, x)->dim[axis < 0 ? axis + type_of(g, x)->rank : axis];
    bool flag = dice_percent(g->dice, 50);
    attr_defaults(op, &attr);
    switch (op_info(op)->family) {
    case FAMILY_softmax: attr.softmax.axis = axis; break;
    case FAMILY_cumulative:
        attr.cumulative.axis = axis;
        attr.cumulative.exclusive = flag;
        break;
    case FAMILY_sort:
        attr.sort.axis = axis;
        attr.sort.descending = flag;
        break;
    case FAMILY_argsort:
        attr.argsort.axis = axis;
        attr.argsort.descending = flag;
        break;
    case FAMILY_arg_extreme:
        attr.arg_extreme.axis = axis;
        attr.arg_extreme.keep_dim = flag;
        break;
    default:
        attr.topk.axis = axis;
        attr.topk.k = n > 0 ? 1 + dice_below(g->dice, n) : 1;
        attr.topk.result = flag ? RLX_TOPK_RESULT_values : RLX_TOPK_RESULT_indices;
    }
    return made(put(g, op, &x, 1, &attr));
}

/* ---- by index ---- */

static bool free_gather(struct grower *g, rlx_op op)
{
    ir_value x = pick(g);
    union ir_attr attr;

    if (x < 0 || type_of(g, x)->rank < 1)
        return false;
    struct ir_type t = *type_of(g, x);
    int64_t axis = dice_below(g->dice, t.rank);
    struct ir_type index =
        random_type(g, dice_percent(g->dice, 70) ? RLX_DTYPE_i32 : RLX_DTYPE_i64);
    if (t.dim[axis] < 1)
        return false;
    attr_defaults(op, &attr);
    if (op == RLX_OP_gather) {
        attr.gather.axis = axis;
    } else {
        index.rank = t.rank;
        for (int32_t i = 0; i < t.rank; i++)
            index.dim[i] = i == axis ? random_size(g) : t.dim[i];
        attr.gather_elements.axis = axis;
    }
    ir_value at = add_leaf(g, &index, &(struct value_spec){KIND_VALID, t.dim[axis]});
    return made(put(g, op, (ir_value[]){x, at}, 2, &attr));
}

/* ---- products ---- */

static bool free_matmul(struct grower *g)
{
    ir_value x = pick_of(g, CLASS_F);
    union ir_attr attr;

    if (x < 0 || type_of(g, x)->rank < 2)
        return false;
    struct ir_type t = *type_of(g, x), w = {.dtype = t.dtype, .rank = 2};
    attr_defaults(RLX_OP_matmul, &attr);
    attr.matmul.transpose_a = dice_percent(g->dice, 20);
    attr.matmul.transpose_b = dice_percent(g->dice, 40);
    int64_t k = t.dim[t.rank - (attr.matmul.transpose_a ? 2 : 1)], n = random_size(g);
    if (t.rank > 2 && dice_percent(g->dice, 40)) {
        w.rank = t.rank;
        for (int32_t i = 0; i < t.rank - 2; i++)
            w.dim[i] = dice_percent(g->dice, 70) ? t.dim[i] : 1;
    }
    w.dim[w.rank - 2] = attr.matmul.transpose_b ? n : k;
    w.dim[w.rank - 1] = attr.matmul.transpose_b ? k : n;
    ir_value other = dice_percent(g->dice, 40) ? adapt(g, pick_like(g, &w), &w) : RLX_NO_VALUE;
    if (other < 0)
        other = add_leaf(g, &w, &(struct value_spec){KIND_UNIT, 0});
    return made(put(g, RLX_OP_matmul, (ir_value[]){x, other}, 2, &attr));
}

/* ---- all of them ---- */

bool has_free(rlx_op op)
{
    switch (op_info(op)->family) {
    case FAMILY_binary:
    case FAMILY_compare:
    case FAMILY_unary:
    case FAMILY_cast:
    case FAMILY_bitcast:
    case FAMILY_where:
    case FAMILY_clamp:
    case FAMILY_fma:
    case FAMILY_stop_gradient:
    case FAMILY_reshape:
    case FAMILY_transpose:
    case FAMILY_narrow:
    case FAMILY_slice:
    case FAMILY_concat:
    case FAMILY_expand:
    case FAMILY_reverse:
    case FAMILY_pad:
    case FAMILY_tile:
    case FAMILY_trilu:
    case FAMILY_gather:
    case FAMILY_gather_elements:
    case FAMILY_reduce:
    case FAMILY_arg_extreme:
    case FAMILY_topk:
    case FAMILY_sort:
    case FAMILY_argsort:
    case FAMILY_softmax:
    case FAMILY_cumulative:
    case FAMILY_matmul: return true;
    default: return false;
    }
}

/* In a sub-graph errors are not followed: nothing that jumps, nothing that grows. */
static bool is_smooth(rlx_op op)
{
    switch (op_info(op)->family) {
    case FAMILY_unary:
        return op != RLX_OP_round && op != RLX_OP_floor && op != RLX_OP_ceil && op != RLX_OP_sign &&
               op != RLX_OP_exp && op != RLX_OP_log && op != RLX_OP_recip && op != RLX_OP_rsqrt &&
               op != RLX_OP_tan && op != RLX_OP_sqrt;
    case FAMILY_binary:
        return op == RLX_OP_add || op == RLX_OP_sub || op == RLX_OP_max || op == RLX_OP_min;
    case FAMILY_reduce: return op != RLX_OP_reduce_prod && op != RLX_OP_reduce_sum;
    case FAMILY_softmax:
    case FAMILY_reshape:
    case FAMILY_transpose:
    case FAMILY_narrow:
    case FAMILY_slice:
    case FAMILY_concat:
    case FAMILY_expand:
    case FAMILY_reverse: return true;
    default: return false;
    }
}

bool grow_free(struct grower *g, rlx_op op)
{
    if (!has_free(op) || (g->inner && !is_smooth(op)))
        return false;
    switch (op_info(op)->family) {
    case FAMILY_unary: return made(put_1(g, op, pick(g)));
    case FAMILY_stop_gradient: return made(put_1(g, op, pick(g)));
    case FAMILY_binary:
    case FAMILY_compare: return free_binary(g, op);
    case FAMILY_where:
    case FAMILY_fma: return free_three(g, op);
    case FAMILY_clamp: return free_clamp(g);
    case FAMILY_cast:
    case FAMILY_bitcast: return free_cast(g, op);
    case FAMILY_reshape: return free_reshape(g);
    case FAMILY_transpose: return free_transpose(g);
    case FAMILY_narrow:
    case FAMILY_slice: return free_part(g, op);
    case FAMILY_concat: return free_concat(g);
    case FAMILY_expand: return free_expand(g);
    case FAMILY_pad: return free_pad(g);
    case FAMILY_tile: return free_tile(g);
    case FAMILY_reverse:
    case FAMILY_trilu:
    case FAMILY_reduce: return free_of_axes(g, op);
    case FAMILY_gather:
    case FAMILY_gather_elements: return free_gather(g, op);
    case FAMILY_matmul: return free_matmul(g);
    default: return free_of_axis(g, op);
    }
}

/* A node that is there already, once more or with its operands the other way round: equal ones are
 * merged, and others must not be. */
bool grow_again(struct grower *g, rlx_op op)
{
    ir_value v = pick(g);

    (void)op;
    if (v < 0 || ir_node(g->g, v)->in_count == 0 || ir_node(g->g, v)->in_count > 16)
        return false;
    const struct ir_node n = *ir_node(g->g, v);
    ir_value in[16];
    bool swap = n.in_count == 2 && dice_percent(g->dice, 60);
    for (int32_t i = 0; i < n.in_count; i++)
        in[i] = n.in[swap ? 1 - i : i];
    ir_value twin = put(g, n.op, in, n.in_count, &n.attr);
    return twin >= 0 && (dice_percent(g->dice, 50) || put_2(g, RLX_OP_max, v, twin) >= 0);
}
