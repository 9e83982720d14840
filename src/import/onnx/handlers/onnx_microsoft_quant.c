/* onnx_microsoft_quant.c: ops of com.microsoft on integers with scales and zero points.
 *
 * Products are of integers, exactly; everything else is computed on the values they represent. */
#include "base/str.h"
#include "import/onnx/handlers/onnx_quant.h"
#include "import/onnx/handlers/onnx_window.h"

/* ---- elements: x, its scale and zero point, then those of the result ---- */

static void give_as(struct onnx_call *c, ir_value y, size_t scale, size_t like)
{
    onnx_give(c, 0, onnx_quantised_as(c, y, scale, scale + 1, like));
}

/* a, its scale and zero point, b's, and the result's */
static void binary(struct onnx_call *c, rlx_op op)
{
    give_as(c, formula_2(&c->f, op, onnx_dequantised(c, 0, 1, 2), onnx_dequantised(c, 3, 4, 5)), 6,
            0);
}

void onnx_ms_q_add(struct onnx_call *c)
{
    binary(c, RLX_OP_add);
}

void onnx_ms_q_mul(struct onnx_call *c)
{
    binary(c, RLX_OP_mul);
}

void onnx_ms_q_sigmoid(struct onnx_call *c)
{
    give_as(c, formula_1(&c->f, RLX_OP_sigmoid, onnx_dequantised(c, 0, 1, 2)), 3, 0);
}

void onnx_ms_q_leaky_relu(struct onnx_call *c)
{
    struct formula *f = &c->f;
    ir_value x = onnx_dequantised(c, 0, 1, 2);
    ir_value below = formula_2(f, RLX_OP_lt, x, formula_number(f, 0));

    give_as(c, formula_where(f, below, onnx_times(f, x, onnx_float(c, "alpha", 0.01)), x), 3, 0);
}

void onnx_ms_q_softmax(struct onnx_call *c)
{
    int32_t rank = onnx_type(c, 0)->rank;
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", -1), rank);
    ir_value x = onnx_dequantised(c, 0, 1, 2);
    union ir_attr attr;

    if (onnx_int(c, "opset", 13) < 13 && axis != rank - 1)
        onnx_unsupported(c, "a softmax over several axes");
    attr_defaults(RLX_OP_softmax, &attr);
    attr.softmax.axis = axis;
    give_as(c, formula_node(&c->f, RLX_OP_softmax, &x, 1, &attr), 3, 0);
}

/* The result's scale and zero point, then a part, its scale and zero point, and so on. */
void onnx_ms_q_concat(struct onnx_call *c)
{
    size_t count = c->in_count < 5 || (c->in_count - 2) % 3 ? 0 : (c->in_count - 2) / 3;
    ir_value *part = arena_array(onnx_arena(c), ir_value, count);

    if (!part) {
        c->f.status = diag_no_memory(c->f.diag, count * sizeof *part);
        return;
    }
    if (!count)
        formula_fail(&c->f, RLX_ERROR_FORMAT, "%zu inputs, not 2 plus a multiple of 3",
                     c->in_count);
    for (size_t i = 0; i < count && !onnx_failed(c); i++)
        part[i] = onnx_dequantised(c, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i);
    if (onnx_failed(c))
        return;
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", 0), onnx_type(c, 2)->rank);
    give_as(c, formula_concat(&c->f, part, (int32_t)count, axis), 0, 2);
}

/* ---- pools ---- */

/* Channels from the last axis to the one after the batch, and back. */
static ir_value channels(struct onnx_call *c, ir_value x, bool first)
{
    int32_t rank = onnx_type(c, 0)->rank;
    rlx_list perm = {.count = rank};

    if (!onnx_int(c, "channels_last", 0) || onnx_failed(c))
        return x;
    for (int32_t i = 0; i < rank; i++)
        perm.at[i] = i == 0 ? 0 : first ? (i == 1 ? rank - 1 : i - 1) : i == rank - 1 ? 1 : i + 1;
    return formula_transpose(&c->f, x, perm);
}

void onnx_ms_q_average_pool(struct onnx_call *c)
{
    ir_value y = onnx_average(c, channels(c, onnx_dequantised(c, 0, 1, 2), true));

    give_as(c, channels(c, y, false), 3, 0);
}

void onnx_ms_q_global_average_pool(struct onnx_call *c)
{
    int32_t rank = onnx_type(c, 0)->rank;
    bool last = onnx_int(c, "channels_last", 0) != 0;
    rlx_list space = {0};

    for (int32_t i = last ? 1 : 2; i < rank - (last ? 1 : 0); i++)
        space.at[space.count++] = i;
    give_as(c, formula_reduce(&c->f, RLX_OP_reduce_mean, onnx_dequantised(c, 0, 1, 2), space, true),
            3, 0);
}

/* ---- products ---- */

static ir_value plus(struct onnx_call *c, ir_value y, size_t bias)
{
    return onnx_has(c, bias) ? formula_2(&c->f, RLX_OP_add, y, onnx_in(c, bias)) : y;
}

/* Integers times both scales. */
static ir_value scaled(struct onnx_call *c, ir_value whole, ir_value a, ir_value b)
{
    struct formula *f = &c->f;

    return formula_2(f, RLX_OP_mul, formula_cast(f, whole, f->dtype),
                     formula_2(f, RLX_OP_mul, a, b));
}

static void need_one(struct onnx_call *c, size_t i)
{
    int64_t count;

    if (onnx_has(c, i) && (!type_count(onnx_type(c, i), &count) || count != 1))
        onnx_unsupported(c, "input %zu is not one number", i);
}

/* a, b, their scales, their zero points, bias */
void onnx_ms_matmul_to_float(struct onnx_call *c)
{
    struct formula *f = &c->f;

    need_one(c, 2);
    need_one(c, 4);
    f->dtype = onnx_type(c, 2)->dtype;
    ir_value sum = formula_matmul(f, onnx_whole(c, 0, 4), onnx_whole(c, 1, 5), false, false);
    ir_value a = formula_reshape(f, onnx_in(c, 2), RLX_EMPTY);
    onnx_give(c, 0, plus(c, scaled(c, sum, a, onnx_in(c, 3)), 6));
}

/* a, which is quantised by its own range, b, its scale and zero point, bias */
void onnx_ms_dynamic_matmul(struct onnx_call *c)
{
    struct formula *f = &c->f;
    struct onnx_quantised a = {RLX_NO_VALUE, RLX_NO_VALUE, RLX_NO_VALUE};

    onnx_quantise_by_range(c, onnx_in(c, 0), &a);
    f->dtype = RLX_DTYPE_f32;
    ir_value left = formula_2(f, RLX_OP_sub, formula_cast(f, a.x, RLX_DTYPE_i32),
                              formula_cast(f, a.zero, RLX_DTYPE_i32));
    ir_value sum = formula_matmul(f, left, onnx_whole(c, 1, 3), false, false);
    onnx_give(c, 0, plus(c, scaled(c, sum, a.scale, onnx_in(c, 2)), 4));
}

/* a and b with scale and zero point each, a whole bias, and those of the result; without them it
 * stays a float. */
void onnx_ms_q_gemm(struct onnx_call *c)
{
    struct formula *f = &c->f;
    bool turned = onnx_int(c, "transB", 0) != 0;
    const struct ir_type zero = *onnx_type(c, 5);
    ir_value b = formula_cast(f, onnx_in(c, 3), RLX_DTYPE_i32);
    ir_value z = formula_cast(f, onnx_in(c, 5), RLX_DTYPE_i32);

    need_one(c, 1);
    need_one(c, 2);
    if (turned && zero.rank == 1 && zero.dim[0] != 1) /* per column of what b becomes */
        z = formula_reshape(f, z, RLX_LIST(zero.dim[0], 1));
    b = formula_2(f, RLX_OP_sub, b, z);
    ir_value sum = formula_matmul(f, onnx_whole(c, 0, 2), b, onnx_int(c, "transA", 0) != 0, turned);
    sum = plus(c, sum, 6);
    f->dtype = RLX_DTYPE_f32;
    ir_value a = formula_reshape(f, onnx_in(c, 1), RLX_EMPTY);
    ir_value y = onnx_times(f, scaled(c, sum, a, onnx_in(c, 4)), onnx_float(c, "alpha", 1));
    if (onnx_has(c, 7))
        give_as(c, y, 7, onnx_has(c, 8) ? 8 : 0);
    else
        onnx_give(c, 0, y);
}
