/* onnx_index.c: ONNX ops that pick or place elements by index. Negative indices count from the end
 * there, and not here. */
#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

void onnx_gather(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    union ir_attr attr;

    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    if (onnx_failed(c))
        return;
    ir_value in[] = {onnx_in(c, 0), onnx_index_in(c, 1, t.dim[attr.gather.axis])};
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_gather, in, 2, &attr));
}

void onnx_gather_elements(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    union ir_attr attr;

    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    if (onnx_failed(c))
        return;
    ir_value in[] = {onnx_in(c, 0), onnx_index_in(c, 1, t.dim[attr.gather_elements.axis])};
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_gather_elements, in, 2, &attr));
}

/* Coordinates [.., k] into axes `first` and on of a type: negative ones from their axis' end. */
static ir_value coordinates(struct onnx_call *c, size_t i, const struct ir_type *t, int32_t first)
{
    struct formula *f = &c->f;
    const struct ir_type ti = *onnx_type(c, i);
    ir_value at = onnx_in(c, i), part[RLX_MAX_RANK];
    size_t count;
    const int64_t *known = onnx_i64s(c, i, &count);
    bool any = !known;

    for (size_t k = 0; known && k < count; k++)
        any |= known[k] < 0;
    if (onnx_failed(c) || !any)
        return at;
    ir_dim k = ti.rank ? ti.dim[ti.rank - 1] : 0;
    if (!dim_is_static(k) || k > t->rank - first) {
        formula_fail(f, RLX_ERROR_SHAPE, "coordinates of more axes than there are");
        return at;
    }
    for (int64_t a = 0; a < k; a++)
        part[a] = formula_reshape(f, onnx_dim_value(f, t->dim[first + a], ti.dtype), RLX_LIST(1));
    ir_value size = formula_concat(f, part, (int32_t)k, 0);
    ir_value below = formula_2(f, RLX_OP_lt, at, formula_number_of(f, ti.dtype, 0));
    return formula_where(f, below, formula_2(f, RLX_OP_add, at, size), at);
}

void onnx_gather_nd(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    union ir_attr attr;

    attr_defaults(RLX_OP_gather_nd, &attr);
    attr.gather_nd.batch_dims = onnx_int(c, "batch_dims", 0);
    if (attr.gather_nd.batch_dims < 0 || attr.gather_nd.batch_dims > t.rank)
        onnx_unsupported(c, "batch_dims %lld", (long long)attr.gather_nd.batch_dims);
    if (onnx_failed(c))
        return;
    ir_value in[] = {onnx_in(c, 0), coordinates(c, 1, &t, (int32_t)attr.gather_nd.batch_dims)};
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_gather_nd, in, 2, &attr));
}

static attr_ENUM reduction_of(struct onnx_call *c)
{
    attr_ENUM word = 0;
    rlx_str text = onnx_text(c, "reduction", "none");

    if (!enum_from_word("scatter_reduction", text, &word))
        onnx_unsupported(c, "reduction \"%.*s\"", STR_ARG(text));
    return word;
}

void onnx_scatter_elements(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    union ir_attr attr;

    attr_defaults(RLX_OP_scatter_elements, &attr);
    attr.scatter_elements.axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    attr.scatter_elements.reduction = reduction_of(c);
    if (onnx_failed(c))
        return;
    ir_value in[] = {onnx_in(c, 0), onnx_index_in(c, 1, t.dim[attr.scatter_elements.axis]),
                     onnx_in(c, 2)};
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_scatter_elements, in, 3, &attr));
}

void onnx_scatter_nd(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    union ir_attr attr;

    attr_defaults(RLX_OP_scatter_nd, &attr);
    attr.scatter_nd.reduction = reduction_of(c);
    if (onnx_failed(c))
        return;
    ir_value in[] = {onnx_in(c, 0), coordinates(c, 1, &t, 0), onnx_in(c, 2)};
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_scatter_nd, in, 3, &attr));
}

/* Rows written into a cache along an axis, from where each item says; round and round if circular.
 */
void onnx_tensor_scatter(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0), u = *onnx_type(c, 1);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", -2), t.rank);
    rlx_list line = {.count = t.rank}, batch = {.count = t.rank};
    rlx_dtype i64 = RLX_DTYPE_i64;
    union ir_attr attr;

    if (onnx_failed(c) || u.rank != t.rank || axis == 0) {
        onnx_unsupported(c, "an update of rank %d along axis %d", u.rank, axis);
        return;
    }
    for (int32_t i = 0; i < t.rank; i++) {
        line.at[i] = i == axis ? u.dim[i] : 1;
        batch.at[i] = i == 0 ? t.dim[0] : 1;
    }
    ir_value at = formula_reshape(f, onnx_iota(c, u.dim[axis], i64), line);
    if (onnx_has(c, 2)) {
        ir_value from = formula_reshape(f, formula_cast(f, onnx_in(c, 2), i64), batch);
        at = formula_2(f, RLX_OP_add, at, from);
    }
    if (str_eq(onnx_text(c, "mode", "linear"), STR("circular")))
        at = formula_2(f, RLX_OP_mod, at, onnx_dim_value(f, t.dim[axis], i64));
    attr_defaults(RLX_OP_scatter_elements, &attr);
    attr.scatter_elements.axis = axis;
    ir_value in[] = {onnx_in(c, 0), formula_expand(f, at, formula_shape(&u)), onnx_in(c, 1)};
    onnx_give(c, 0, formula_node(f, RLX_OP_scatter_elements, in, 3, &attr));
}

/* ---- order ---- */

/* select_last_index: looked for from the end. */
static void arg_extreme(struct onnx_call *c, rlx_op op)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    bool last = onnx_int(c, "select_last_index", 0) != 0;
    union ir_attr attr;
    ir_value x = onnx_in(c, 0);

    attr_defaults(op, &attr);
    attr.arg_extreme.axis = axis;
    attr.arg_extreme.keep_dim = onnx_int(c, "keepdims", 1) != 0;
    attr.arg_extreme.index_dtype = RLX_DTYPE_i64;
    if (last)
        x = formula_reverse(f, x, axis);
    ir_value y = formula_node(f, op, &x, 1, &attr);
    if (last) {
        ir_value n = onnx_dim_value(f, t.dim[axis], RLX_DTYPE_i64);
        ir_value end = formula_2(f, RLX_OP_sub, n, formula_number_of(f, RLX_DTYPE_i64, 1));
        y = formula_2(f, RLX_OP_sub, end, y);
    }
    onnx_give(c, 0, y);
}

void onnx_arg_max(struct onnx_call *c)
{
    arg_extreme(c, RLX_OP_argmax);
}

void onnx_arg_min(struct onnx_call *c)
{
    arg_extreme(c, RLX_OP_argmin);
}

/* The smallest: the front of the order from below. */
static void bottom_k(struct onnx_call *c, int32_t axis, int64_t k)
{
    struct formula *f = &c->f;
    union ir_attr attr;
    ir_value x = onnx_in(c, 0);

    attr_defaults(RLX_OP_argsort, &attr);
    attr.argsort.axis = axis;
    attr.argsort.index_dtype = RLX_DTYPE_i64;
    ir_value order = formula_node(f, RLX_OP_argsort, &x, 1, &attr);
    ir_value at = formula_narrow(f, order, axis, 0, k);
    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = axis;
    onnx_give(c, 0, formula_node(f, RLX_OP_gather_elements, (const ir_value[]){x, at}, 2, &attr));
    onnx_give(c, 1, at);
}

void onnx_top_k(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", -1), t.rank);
    double k = (double)onnx_int(c, "k", 0);
    union ir_attr attr;
    ir_value x = onnx_in(c, 0);

    if (c->opset >= 10)
        onnx_number_in(c, 1, &k);
    if (!(k >= 0 && k <= 0x1p40))
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "k is out of range");
    if (onnx_failed(c))
        return;
    if (onnx_int(c, "largest", 1) == 0) {
        bottom_k(c, axis, (int64_t)k);
        return;
    }
    for (int32_t part = 0; part < 2; part++) {
        attr_defaults(RLX_OP_topk, &attr);
        attr.topk.k = (int64_t)k;
        attr.topk.axis = axis;
        attr.topk.index_dtype = RLX_DTYPE_i64;
        enum_from_word("topk_result", part ? STR("indices") : STR("values"), &attr.topk.result);
        onnx_give(c, (size_t)part, formula_node(&c->f, RLX_OP_topk, &x, 1, &attr));
    }
}
