/* onnx_select.c: ONNX ops that select by a condition: the result is as large as the data says.
 * Where what they depend on is known at load, so is the size; where it is not, it is counted. */
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

/* ---- pieces ---- */

ir_value onnx_place(struct onnx_call *c, ir_value place, ir_value what)
{
    struct formula *f = &c->f;
    union ir_attr attr;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    ir_dim n = formula_type(f, what)->dim[0];
    struct ir_type room = {
        .dtype = formula_type(f, what)->dtype, .rank = 1, .dim = {dim_add(onnx_dims(c), n, 1)}};
    /* One place more, for those that are left out. */
    ir_value end = onnx_dim_value(f, n, RLX_DTYPE_i64);
    ir_value in[] = {formula_fill(f, &room, 0), formula_2(f, RLX_OP_min, place, end), what};
    attr_defaults(RLX_OP_scatter_elements, &attr);
    ir_value y = formula_node(f, RLX_OP_scatter_elements, in, 3, &attr);
    return formula_narrow(f, y, 0, 0, n);
}

struct onnx_kept onnx_keep(struct onnx_call *c, ir_value mask)
{
    struct formula *f = &c->f;
    struct onnx_kept kept = {RLX_NO_VALUE, RLX_NO_VALUE};

    if (onnx_failed(c))
        return kept;
    ir_dim n = formula_type(f, mask)->dim[0];
    ir_value one = formula_cast(f, mask, RLX_DTYPE_i64);
    ir_value place = formula_where(f, mask, onnx_cumsum_of(f, one, 0, true),
                                   onnx_dim_value(f, n, RLX_DTYPE_i64));
    kept.index = onnx_place(c, place, onnx_iota(c, n, RLX_DTYPE_i64));
    kept.count = formula_reduce(f, RLX_OP_reduce_sum, one, RLX_LIST(0), false);
    return kept;
}

ir_value onnx_quotient(struct formula *f, ir_value x, ir_dim by)
{
    return by == 1 ? x : formula_2(f, RLX_OP_div, x, onnx_dim_value(f, by, RLX_DTYPE_i64));
}

ir_value onnx_remainder(struct formula *f, ir_value x, ir_dim by)
{
    return formula_2(f, RLX_OP_mod, x, onnx_dim_value(f, by, RLX_DTYPE_i64));
}

ir_value onnx_pick(struct formula *f, ir_value x, ir_value index, int32_t axis)
{
    ir_value in[] = {x, index};
    union ir_attr attr;

    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = axis;
    return formula_node(f, RLX_OP_gather, in, 2, &attr);
}

/* ---- Compress ---- */

static void compress_counted(struct onnx_call *c, ir_value x, int32_t axis)
{
    struct formula *f = &c->f;
    const struct ir_type mask = *onnx_type(c, 1);

    if (mask.rank != 1 || mask.dtype != RLX_DTYPE_bool)
        formula_fail(f, RLX_ERROR_SHAPE, "the condition is not a list of booleans");
    if (onnx_failed(c))
        return;
    ir_dim n = formula_type(f, x)->dim[axis];
    if (dim_is_static(n) && dim_is_static(mask.dim[0]) && mask.dim[0] > n) {
        formula_fail(f, RLX_ERROR_SHAPE, "a condition of %lld elements, for %lld",
                     (long long)mask.dim[0], (long long)n);
        return;
    }
    struct onnx_kept kept = onnx_keep(c, onnx_in(c, 1));
    onnx_give_counted(c, 0, onnx_pick(f, x, kept.index, axis), axis, kept.count);
}

/* The slices along an axis, or the elements of all, for which the condition holds. */
void onnx_compress(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    size_t count;
    const int64_t *keep = onnx_i64s(c, 1, &count);
    ir_value x = onnx_in(c, 0);
    int32_t axis = 0;

    if (onnx_attr(c, "axis"))
        axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    else
        x = formula_reshape(f, x, RLX_LIST(onnx_product(c, &t, 0, t.rank)));
    if (!keep) {
        compress_counted(c, x, axis);
        return;
    }
    int64_t *at = arena_array(onnx_arena(c), int64_t, count);
    struct ir_type index = {.dtype = RLX_DTYPE_i64, .rank = 1};
    for (size_t i = 0; at && i < count; i++)
        if (keep[i])
            at[index.dim[0]++] = (int64_t)i;
    if (!at || onnx_failed(c)) {
        onnx_unsupported(c, "no memory for the indices");
        return;
    }
    onnx_give(c, 0, onnx_pick(f, x, onnx_table_of(c, &index, at), axis));
}

/* ---- NonZero ---- */

static void non_zero_counted(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    ir_value at[RLX_MAX_RANK];

    if (t.rank == 0)
        onnx_unsupported(c, "a scalar that is not known at load");
    ir_dim all = onnx_product(c, &t, 0, t.rank);
    ir_value x = formula_reshape(f, onnx_in(c, 0), RLX_LIST(all));
    if (t.dtype != RLX_DTYPE_bool)
        x = formula_2(f, RLX_OP_ne, x, formula_number_of(f, t.dtype, 0));
    struct onnx_kept kept = onnx_keep(c, x);
    for (int32_t a = 0; a < t.rank; a++) {
        ir_value i = onnx_quotient(f, kept.index, onnx_product(c, &t, a + 1, t.rank));
        i = a ? onnx_remainder(f, i, t.dim[a]) : i;
        at[a] = formula_reshape(f, i, RLX_LIST(1, all));
    }
    onnx_give_counted(c, 0, formula_concat(f, at, t.rank, 0), 1, kept.count);
}

/* The coordinates of the nonzero elements, [rank, count], one element after the other. */
void onnx_non_zero(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    size_t count, found = 0;
    const double *x = onnx_reals(c, 0, &count);

    if (!x) {
        non_zero_counted(c);
        return;
    }
    for (size_t i = 0; i < count; i++)
        found += x[i] != 0;
    struct ir_type type = {.dtype = RLX_DTYPE_i64, .rank = 2, .dim = {t.rank, (ir_dim)found}};
    int64_t *out = arena_array(onnx_arena(c), int64_t, found * (size_t)t.rank);
    if (!out) {
        c->f.status = diag_no_memory(c->f.diag, found * 8);
        return;
    }
    for (size_t i = 0, k = 0; i < count; i++) {
        size_t rest = i;
        if (x[i] == 0)
            continue;
        for (int32_t a = t.rank - 1; a >= 0; a--) {
            out[(size_t)a * found + k] = (int64_t)(rest % (size_t)t.dim[a]);
            rest /= (size_t)t.dim[a];
        }
        k++;
    }
    onnx_give_known(c, 0, &type, out);
}
