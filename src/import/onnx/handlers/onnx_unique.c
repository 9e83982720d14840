/* onnx_unique.c: Unique: each value once, or each slice along an axis.
 *
 * Every element gets a group, which is its number among the results, and the first of each group is
 * marked. All four results follow from these two. Groups of single values come from sorting them;
 * slices are compared each with each. */
#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

struct groups {
    ir_value group; /* i64 [n]: by element */
    ir_value first; /* bool [n]: it is the first of its group */
};

static ir_value truth(struct formula *f, ir_value v)
{
    return formula_2(f, RLX_OP_ne, v, formula_number_of(f, RLX_DTYPE_i64, 0));
}

/* a and b are not the same; NaN is the same as NaN. */
static ir_value differ(struct formula *f, ir_value a, ir_value b)
{
    ir_value ne = formula_2(f, RLX_OP_ne, a, b);

    if (f->status != RLX_OK || !dtype_is(formula_type(f, a)->dtype, CLASS_F))
        return ne;
    ir_value both =
        formula_2(f, RLX_OP_bit_and, formula_2(f, RLX_OP_ne, a, a), formula_2(f, RLX_OP_ne, b, b));
    return formula_2(f, RLX_OP_bit_and, ne, formula_1(f, RLX_OP_not, both));
}

/* The n of indices: where each group begins. */
static ir_value first_indices(struct onnx_call *c, const struct groups *g, ir_dim n)
{
    struct formula *f = &c->f;
    ir_value nowhere = onnx_dim_value(f, n, RLX_DTYPE_i64);

    return onnx_place(c, formula_where(f, g->first, g->group, nowhere),
                      onnx_iota(c, n, RLX_DTYPE_i64));
}

/* ---- single values: x [n] ---- */

/* Equal elements are adjacent once sorted, in their order: each run is a group. */
static struct groups sorted_groups(struct onnx_call *c, ir_value x, ir_dim n)
{
    struct formula *f = &c->f;
    struct groups g;
    union ir_attr attr;

    attr_defaults(RLX_OP_argsort, &attr);
    attr.argsort.axis = 0;
    attr.argsort.index_dtype = RLX_DTYPE_i64;
    ir_value order = formula_node(f, RLX_OP_argsort, &x, 1, &attr);
    ir_value place = onnx_iota(c, n, RLX_DTYPE_i64);
    ir_value before = formula_2(f, RLX_OP_sub, place, formula_number_of(f, RLX_DTYPE_i64, 1));
    before = formula_2(f, RLX_OP_max, before, formula_number_of(f, RLX_DTYPE_i64, 0));
    ir_value sorted = onnx_pick(f, x, order, 0);
    ir_value begins = differ(f, sorted, onnx_pick(f, sorted, before, 0));
    begins = formula_2(f, RLX_OP_bit_or, begins,
                       formula_2(f, RLX_OP_eq, place, formula_number_of(f, RLX_DTYPE_i64, 0)));
    begins = formula_cast(f, begins, RLX_DTYPE_i64);
    ir_value number = formula_2(f, RLX_OP_sub, onnx_cumsum_of(f, begins, 0, false),
                                formula_number_of(f, RLX_DTYPE_i64, 1));
    g.group = onnx_place(c, order, number);
    g.first = truth(f, onnx_place(c, order, begins));
    return g;
}

/* The same groups, numbered in the order in which they appear. */
static void number_as_seen(struct onnx_call *c, struct groups *g, ir_dim n)
{
    struct formula *f = &c->f;
    ir_value seen = onnx_cumsum_of(f, formula_cast(f, g->first, RLX_DTYPE_i64), 0, true);
    ir_value number = onnx_pick(f, seen, first_indices(c, g, n), 0);

    g->group = onnx_pick(f, number, g->group, 0);
}

/* ---- slices: x [n, m] ---- */

static ir_value arg_first(struct formula *f, ir_value mask)
{
    union ir_attr attr;
    ir_value x = formula_cast(f, mask, RLX_DTYPE_i32);

    attr_defaults(RLX_OP_argmax, &attr);
    attr.arg_extreme.axis = -1;
    attr.arg_extreme.keep_dim = true;
    attr.arg_extreme.index_dtype = RLX_DTYPE_i64;
    return formula_node(f, RLX_OP_argmax, &x, 1, &attr);
}

static ir_value any_of(struct formula *f, ir_value mask, int64_t axis)
{
    ir_value sum = formula_reduce(f, RLX_OP_reduce_sum, formula_cast(f, mask, RLX_DTYPE_i64),
                                  RLX_LIST(axis), false);

    return truth(f, sum);
}

/* unlike, less [n, n]: is slice i another than slice j, and does it come before it? The first
 * elements that differ decide. */
static void compare_slices(struct onnx_call *c, ir_value x, ir_dim n, ir_dim m, ir_value *unlike,
                           ir_value *less)
{
    struct formula *f = &c->f;
    union ir_attr attr;
    ir_value a = formula_reshape(f, x, RLX_LIST(n, 1, m));
    ir_value b = formula_reshape(f, x, RLX_LIST(1, n, m));
    ir_value ne = differ(f, a, b);
    ir_value lt = formula_cast(f, formula_2(f, RLX_OP_lt, a, b), RLX_DTYPE_i32);
    ir_value in[] = {lt, arg_first(f, ne)};

    *unlike = any_of(f, ne, 2);
    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = 2;
    ir_value decides = formula_node(f, RLX_OP_gather_elements, in, 2, &attr);
    decides = formula_cast(f, formula_reshape(f, decides, RLX_LIST(n, n)), RLX_DTYPE_bool);
    *less = formula_2(f, RLX_OP_bit_and, *unlike, decides);
}

static struct groups slice_groups(struct onnx_call *c, ir_value x, ir_dim n, ir_dim m, bool sorted)
{
    struct formula *f = &c->f;
    struct groups g;
    ir_value unlike, less;

    compare_slices(c, x, n, m, &unlike, &less);
    ir_value same = formula_1(f, RLX_OP_not, unlike);
    ir_value leader = formula_reshape(f, arg_first(f, same), RLX_LIST(n)); /* the first like it */
    g.first = formula_2(f, RLX_OP_eq, leader, onnx_iota(c, n, RLX_DTYPE_i64));
    ir_value one = formula_cast(f, g.first, RLX_DTYPE_i64);
    if (!sorted) {
        g.group = onnx_pick(f, onnx_cumsum_of(f, one, 0, true), leader, 0);
        return g;
    }
    /* As many groups come before it as there are leaders less than it. */
    ir_value before = formula_2(f, RLX_OP_mul, formula_cast(f, less, RLX_DTYPE_i64),
                                formula_reshape(f, one, RLX_LIST(n, 1)));
    g.group = formula_reduce(f, RLX_OP_reduce_sum, before, RLX_LIST(0), false);
    return g;
}

/* x with that axis in front, and the others as one. */
static ir_value slices_of(struct onnx_call *c, ir_value x, const struct ir_type *t, int32_t axis,
                          ir_dim *m)
{
    rlx_list perm = {.count = t->rank, .at = {axis}};

    *m = 1;
    for (int32_t i = 0, k = 1; i < t->rank; i++) {
        if (i == axis)
            continue;
        perm.at[k++] = i;
        *m = dim_mul(onnx_dims(c), *m, t->dim[i]);
    }
    if (*m == RLX_DIM_FAILED)
        onnx_unsupported(c, "a product of sizes that has no expression");
    return formula_reshape(&c->f, formula_transpose(&c->f, x, perm), RLX_LIST(t->dim[axis], *m));
}

/* ---- all of it ---- */

static void give_results(struct onnx_call *c, const struct groups *g, ir_value x, int32_t axis,
                         ir_dim n)
{
    struct formula *f = &c->f;
    ir_value one = formula_cast(f, g->first, RLX_DTYPE_i64);
    ir_value count = formula_reduce(f, RLX_OP_reduce_sum, one, RLX_LIST(0), false);
    ir_value index = first_indices(c, g, n);
    struct ir_type list = {.dtype = RLX_DTYPE_i64, .rank = 1, .dim = {n}};
    ir_value tally[] = {formula_fill(f, &list, 1), g->group};
    union ir_attr attr;

    attr_defaults(RLX_OP_scatter_add, &attr);
    attr.scatter_add.out_dim = n;
    onnx_give_counted(c, 0, onnx_pick(f, x, index, axis), axis, count);
    onnx_give_counted(c, 1, index, 0, count);
    onnx_give(c, 2, g->group);
    onnx_give_counted(c, 3, formula_node(f, RLX_OP_scatter_add, tally, 2, &attr), 0, count);
}

void onnx_unique(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    bool by_slice = onnx_attr(c, "axis") != NULL, sorted = onnx_int(c, "sorted", 1) != 0;
    int32_t axis = by_slice ? onnx_axis(c, onnx_int(c, "axis", 0), t.rank) : 0;
    ir_value x = onnx_in(c, 0);
    struct groups g;
    ir_dim n, m;

    if (!dtype_is(t.dtype, CLASS_REAL | CLASS_B))
        onnx_unsupported(c, "elements of type %s", rlx_dtype_name(t.dtype));
    if (onnx_failed(c))
        return;
    if (by_slice) {
        n = t.dim[axis];
        ir_value slices = slices_of(c, x, &t, axis, &m);
        if (n == 0 || m == 0)
            onnx_unsupported(c, "slices of an empty tensor");
        g = slice_groups(c, slices, n, m, sorted);
    } else {
        n = onnx_product(c, &t, 0, t.rank);
        x = formula_reshape(&c->f, x, RLX_LIST(n));
        g = sorted_groups(c, x, n);
        if (!sorted)
            number_as_seen(c, &g, n);
    }
    give_results(c, &g, x, axis, n);
}
