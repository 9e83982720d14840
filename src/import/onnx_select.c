/* onnx_select.c: ONNX ops whose result is as large as its data says. Where what they depend on is
 * known at load, so is the size; where it is not, they cannot be imported. */
#include <string.h>

#include "base/str.h"
#include "import/onnx_build.h"

/* The slices along an axis, or the elements of all, for which the condition holds. */
void onnx_compress(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    size_t count;
    const int64_t *keep = onnx_i64s(c, 1, &count);
    union ir_attr attr;
    ir_value x = onnx_in(c, 0);

    if (!keep) {
        onnx_unsupported(c, "a condition that is not known at load");
        return;
    }
    attr_defaults(RLX_OP_gather, &attr);
    if (onnx_attr(c, "axis"))
        attr.gather.axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    else
        x = formula_reshape(f, x, RLX_LIST(onnx_product(c, &t, 0, t.rank)));
    int64_t *at = arena_array(onnx_arena(c), int64_t, count);
    struct ir_type index = {.dtype = RLX_DTYPE_i64, .rank = 1};
    for (size_t i = 0; at && i < count; i++)
        if (keep[i])
            at[index.dim[0]++] = (int64_t)i;
    if (!at || onnx_failed(c)) {
        onnx_unsupported(c, "no memory for the indices");
        return;
    }
    ir_value in[] = {x, onnx_table_of(c, &index, at)};
    onnx_give(c, 0, formula_node(f, RLX_OP_gather, in, 2, &attr));
}

/* The coordinates of what is not zero, [rank, count], one element after the other. */
void onnx_non_zero(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    size_t count, found = 0;
    const double *x = onnx_reals(c, 0, &count);

    if (!x) {
        onnx_unsupported(c, "an input that is not known at load");
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
