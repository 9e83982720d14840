/* onnx_quant.c: quantised ops of ONNX, in integers and one rescaling each. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/handlers/onnx_quant.h"
#include "import/onnx/handlers/onnx_window.h"
#include "import/onnx/read/onnx_small_float.h"

#define EXACT_F32 (1 << 24) /* integers below it are exact in f32 */

/* Input i; numbers where it holds codes of them. */
static ir_value numbers_in(struct onnx_call *c, size_t i)
{
    int64_t type = onnx_type_number(c, i);

    return onnx_is_small_float(type) ? onnx_decode(c, onnx_in(c, i), type) : onnx_in(c, i);
}

/* round(x) + zero, kept within the type. */
static ir_value saturate(struct onnx_call *c, ir_value x, ir_value zero, int64_t to)
{
    struct formula *f = &c->f;
    union ir_attr attr;
    rlx_dtype dtype;

    if (onnx_is_small_float(to)) {
        if (zero != RLX_NO_VALUE)
            x = formula_2(f, RLX_OP_add, x, formula_cast(f, zero, f->dtype));
        return onnx_encode(c, x, to);
    }
    attr_defaults(RLX_OP_clamp, &attr);
    if (!onnx_dtype(to, &dtype) || !onnx_dtype_range(to, &attr.clamp.min, &attr.clamp.max)) {
        onnx_unsupported(c, "quantised elements of type %s", onnx_dtype_name(to));
        return x;
    }
    x = formula_1(f, RLX_OP_round, x);
    if (zero != RLX_NO_VALUE)
        x = formula_2(f, RLX_OP_add, x, formula_cast(f, zero, f->dtype));
    return formula_cast(f, formula_node(f, RLX_OP_clamp, &x, 1, &attr), dtype);
}

/* A scale or zero point as it goes with x: one for all, one per place on an axis, or one per block
 * of places. */
static ir_value spread(struct onnx_call *c, size_t i, const struct ir_type *x)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, i);
    int64_t block = onnx_int(c, "block_size", 0), axis_attr = onnx_int(c, "axis", 1);
    ir_value v = numbers_in(c, i);
    rlx_list shape = {.count = x->rank};

    if (t.rank == 0 || (t.rank == 1 && t.dim[0] == 1))
        return formula_reshape(f, v, RLX_EMPTY);
    int32_t axis = onnx_axis(c, axis_attr, x->rank);
    if (block == 0 && t.rank == 1) {
        for (int32_t k = 0; k < x->rank; k++)
            shape.at[k] = k == axis ? t.dim[0] : 1;
        return formula_reshape(f, v, shape);
    }
    if (block < 1 || t.rank != x->rank || x->rank >= RLX_MAX_RANK || !type_is_static(x)) {
        onnx_unsupported(c, "scales of rank %d in blocks of %lld", t.rank, (long long)block);
        return v;
    }
    rlx_list apart = {.count = x->rank + 1}, wide, whole = formula_shape(&t);
    for (int32_t k = 0; k <= x->rank; k++)
        apart.at[k] = k <= axis ? t.dim[k] : k == axis + 1 ? 1 : t.dim[k - 1];
    wide = apart;
    wide.at[axis + 1] = block;
    whole.at[axis] = t.dim[axis] * block;
    v = formula_reshape(f, formula_expand(f, formula_reshape(f, v, apart), wide), whole);
    return formula_narrow(f, v, axis, 0, x->dim[axis]);
}

void onnx_quantize_linear(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int64_t asked = onnx_int(c, "output_dtype", 0), precision = onnx_int(c, "precision", 0);
    int64_t to = asked ? asked : onnx_dtype_number(RLX_DTYPE_u8);

    if (onnx_has(c, 2))
        to = onnx_type_number(c, 2);
    f->dtype = t.dtype == RLX_DTYPE_f64 ? t.dtype : RLX_DTYPE_f32;
    rlx_dtype in = onnx_type(c, 1)->dtype; /* the quotient is taken in the scale's type */
    if (precision && !onnx_dtype(precision, &in))
        onnx_unsupported(c, "precision %s", onnx_dtype_name(precision));
    if (!dtype_is(in, CLASS_F))
        in = f->dtype;
    ir_value y = formula_2(f, RLX_OP_div, formula_cast(f, onnx_in(c, 0), in),
                           formula_cast(f, spread(c, 1, &t), in));
    ir_value zero = onnx_has(c, 2) ? spread(c, 2, &t) : RLX_NO_VALUE;
    onnx_give(c, 0, saturate(c, formula_cast(f, y, f->dtype), zero, to));
    onnx_give_type(c, 0, to);
}

/* x - zero point, exactly: integers in i32. */
static ir_value centred(struct onnx_call *c, size_t x, ir_value zero)
{
    struct formula *f = &c->f;
    bool codes = onnx_is_small_float(onnx_type_number(c, x));
    rlx_dtype in = codes ? RLX_DTYPE_f32 : RLX_DTYPE_i32;
    ir_value v = formula_cast(f, numbers_in(c, x), in);

    return zero == RLX_NO_VALUE ? v : formula_2(f, RLX_OP_sub, v, formula_cast(f, zero, in));
}

void onnx_dequantize_linear(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    rlx_dtype to = onnx_type(c, 1)->dtype;
    int64_t asked = onnx_int(c, "output_dtype", 0);

    if (asked && !onnx_dtype(asked, &to))
        onnx_unsupported(c, "elements of type %s", onnx_dtype_name(asked));
    else if (!dtype_is(to, CLASS_F))
        formula_fail(f, RLX_ERROR_FORMAT, "scales of type %s, and no output_dtype",
                     onnx_dtype_name(onnx_type_number(c, 1)));
    f->dtype = RLX_DTYPE_f32;
    ir_value x = centred(c, 0, onnx_has(c, 2) ? spread(c, 2, &t) : RLX_NO_VALUE);
    ir_value y = formula_2(f, RLX_OP_mul, formula_cast(f, x, f->dtype),
                           formula_cast(f, spread(c, 1, &t), f->dtype));
    onnx_give(c, 0, formula_cast(f, y, to));
}

void onnx_quantise_by_range(struct onnx_call *c, ir_value x, struct onnx_quantised *out)
{
    struct formula *f = &c->f;
    int64_t u8 = onnx_dtype_number(RLX_DTYPE_u8);

    if (onnx_failed(c))
        return;
    rlx_list all = onnx_all_axes(formula_type(f, x)->rank);

    f->dtype = RLX_DTYPE_f32;
    ir_value none = formula_number(f, 0);
    ir_value hi =
        formula_2(f, RLX_OP_max, formula_reduce(f, RLX_OP_reduce_max, x, all, false), none);
    ir_value lo =
        formula_2(f, RLX_OP_min, formula_reduce(f, RLX_OP_reduce_min, x, all, false), none);
    ir_value scale =
        formula_2(f, RLX_OP_div, formula_2(f, RLX_OP_sub, hi, lo), formula_number(f, 255));
    ir_value from = formula_1(f, RLX_OP_neg, formula_2(f, RLX_OP_div, lo, scale));
    ir_value zero = saturate(c, from, RLX_NO_VALUE, u8);
    *out = (struct onnx_quantised){saturate(c, formula_2(f, RLX_OP_div, x, scale), zero, u8), scale,
                                   zero};
}

void onnx_dynamic_quantize(struct onnx_call *c)
{
    struct onnx_quantised q = {RLX_NO_VALUE, RLX_NO_VALUE, RLX_NO_VALUE};

    onnx_quantise_by_range(c, onnx_in(c, 0), &q);
    onnx_give(c, 0, q.x);
    onnx_give(c, 1, q.scale);
    onnx_give(c, 2, q.zero);
}

/* ---- products ---- */

/* A zero point or scale of a matrix: of all of it, or per row of the left one. */
static ir_value per_row(struct onnx_call *c, size_t i)
{
    const struct ir_type t = *onnx_type(c, i);

    if (t.rank == 1 && t.dim[0] != 1)
        return formula_reshape(&c->f, onnx_in(c, i), RLX_LIST(t.dim[0], 1));
    return onnx_in(c, i);
}

static ir_value zero_in(struct onnx_call *c, size_t i, bool rows)
{
    if (!onnx_has(c, i))
        return RLX_NO_VALUE;
    return rows ? per_row(c, i) : onnx_in(c, i);
}

void onnx_matmul_integer(struct onnx_call *c)
{
    ir_value a = centred(c, 0, zero_in(c, 2, true)), b = centred(c, 1, zero_in(c, 3, false));

    onnx_give(c, 0, formula_matmul(&c->f, a, b, false, false));
}

/* Integers times left and right scale over the result's, as the result's type. */
static void rescale(struct onnx_call *c, ir_value sum, ir_value left, ir_value right, size_t out)
{
    struct formula *f = &c->f;
    int64_t to = onnx_type_number(c, out + 1);

    f->dtype = RLX_DTYPE_f32;
    ir_value scale =
        formula_2(f, RLX_OP_mul, formula_cast(f, left, f->dtype), formula_cast(f, right, f->dtype));
    scale = formula_2(f, RLX_OP_div, scale, formula_cast(f, onnx_in(c, out), f->dtype));
    ir_value y = formula_2(f, RLX_OP_mul, formula_cast(f, sum, f->dtype), scale);
    onnx_give(c, 0, saturate(c, y, onnx_in(c, out + 1), to));
}

void onnx_qlinear_matmul(struct onnx_call *c)
{
    ir_value a = centred(c, 0, zero_in(c, 2, true)), b = centred(c, 3, zero_in(c, 5, false));

    rescale(c, formula_matmul(&c->f, a, b, false, false), per_row(c, 1), onnx_in(c, 4), 6);
}

/* Sums of products in the narrowest float that holds them exactly. */
static ir_value whole_conv(struct onnx_call *c, ir_value x, ir_value w)
{
    struct formula *f = &c->f;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, w);
    int64_t terms = 1;
    for (int32_t i = 1; i < t.rank; i++)
        if (!dim_is_static(t.dim[i]) || __builtin_mul_overflow(terms, t.dim[i], &terms) ||
            terms > INT32_MAX)
            terms = INT32_MAX;
    rlx_dtype in = terms * 255 * 255 < EXACT_F32 ? RLX_DTYPE_f32 : RLX_DTYPE_f64;
    ir_value y = onnx_convolve(c, formula_cast(f, x, in), formula_cast(f, w, in));
    return formula_cast(f, y, RLX_DTYPE_i32);
}

/* Per output channel of the weights [out, in, ..]. */
static ir_value per_filter(struct onnx_call *c, size_t i, int32_t rank)
{
    const struct ir_type t = *onnx_type(c, i);
    rlx_list shape = {.count = rank};

    for (int32_t k = 0; k < rank; k++)
        shape.at[k] = k ? 1 : t.dim[0];
    return t.rank == 1 && t.dim[0] != 1 ? formula_reshape(&c->f, onnx_in(c, i), shape)
                                        : onnx_in(c, i);
}

void onnx_conv_integer(struct onnx_call *c)
{
    int32_t rank = onnx_type(c, 1)->rank;
    ir_value x = centred(c, 0, zero_in(c, 2, false));
    ir_value w = centred(c, 1, onnx_has(c, 3) ? per_filter(c, 3, rank) : RLX_NO_VALUE);

    onnx_give(c, 0, whole_conv(c, x, w));
}

void onnx_qlinear_conv(struct onnx_call *c)
{
    struct formula *f = &c->f;
    int32_t rank = onnx_type(c, 3)->rank;
    ir_value x = centred(c, 0, zero_in(c, 2, false));
    ir_value w = centred(c, 3, onnx_has(c, 5) ? per_filter(c, 5, rank) : RLX_NO_VALUE);
    ir_value sum = whole_conv(c, x, w), scale = onnx_in(c, 4);

    if (onnx_has(c, 8))
        sum = formula_2(f, RLX_OP_add, sum, onnx_per_channel(f, onnx_in(c, 8), rank));
    if (onnx_type(c, 4)->rank == 1 && onnx_type(c, 4)->dim[0] != 1)
        scale = onnx_per_channel(f, scale, rank);
    rescale(c, sum, onnx_in(c, 1), scale, 6);
}

/* ---- for ops of other domains ---- */

ir_value onnx_whole(struct onnx_call *c, size_t x, size_t zero)
{
    return centred(c, x, zero_in(c, zero, false));
}

ir_value onnx_dequantised(struct onnx_call *c, size_t x, size_t scale, size_t zero)
{
    struct formula *f = &c->f;

    f->dtype = RLX_DTYPE_f32;
    return formula_2(f, RLX_OP_mul, formula_cast(f, onnx_whole(c, x, zero), f->dtype),
                     formula_cast(f, onnx_in(c, scale), f->dtype));
}

ir_value onnx_quantised_as(struct onnx_call *c, ir_value x, size_t scale, size_t zero, size_t like)
{
    struct formula *f = &c->f;

    f->dtype = RLX_DTYPE_f32;
    x = formula_2(f, RLX_OP_div, x, formula_cast(f, onnx_in(c, scale), f->dtype));
    return saturate(c, x, zero_in(c, zero, false), onnx_type_number(c, like));
}
