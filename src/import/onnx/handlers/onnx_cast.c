/* onnx_cast.c: elements as another type: what they say, or the bits that they are. */
#include "import/onnx/read/onnx_small_float.h"

/* Integers of fewer bits than their byte, from that byte's low bits. */
static ir_value low_bits(struct formula *f, ir_value x, rlx_dtype dtype, int bits)
{
    ir_value rest = formula_number_of(f, dtype, 8 - bits);

    return formula_2(f, RLX_OP_shr, formula_2(f, RLX_OP_shl, x, rest), rest);
}

static void cast(struct onnx_call *c, int64_t to)
{
    struct formula *f = &c->f;
    int64_t from = onnx_type_number(c, 0);
    rlx_dtype dtype = RLX_DTYPE_f32;

    if (!onnx_element_dtype(to, &dtype))
        onnx_unsupported(c, "elements of type %s", onnx_dtype_name(to));
    if (onnx_type(c, 0)->dtype == RLX_DTYPE_c64 && dtype != RLX_DTYPE_c64)
        onnx_unsupported(c, "complex numbers cannot be cast to %s", rlx_dtype_name(dtype));
    ir_value y = onnx_in(c, 0);
    if (from != to && onnx_is_small_float(from))
        y = onnx_decode(c, y, from);
    if (from != to && onnx_is_small_float(to))
        y = onnx_encode(c, y, to);
    else if (from != to && onnx_dtype_bits(to) < 8) /* by way of i32: floats saturate, these wrap */
        y = low_bits(f, formula_cast(f, formula_cast(f, y, RLX_DTYPE_i32), dtype), dtype,
                     onnx_dtype_bits(to));
    onnx_give(c, 0, formula_cast(f, y, dtype));
    onnx_give_type(c, 0, to);
}

void onnx_cast(struct onnx_call *c)
{
    cast(c, onnx_int(c, "to", 0));
}

void onnx_cast_like(struct onnx_call *c)
{
    cast(c, onnx_type_number(c, 1));
}

void onnx_bit_cast(struct onnx_call *c)
{
    struct formula *f = &c->f;
    int64_t from = onnx_type_number(c, 0), to = onnx_int(c, "to", 0);
    int bits = onnx_dtype_bits(to);
    union ir_attr attr;

    attr_defaults(RLX_OP_bitcast, &attr);
    if (!onnx_element_dtype(to, &attr.bitcast.to))
        onnx_unsupported(c, "elements of type %s", onnx_dtype_name(to));
    else if (bits != onnx_dtype_bits(from))
        formula_fail(f, RLX_ERROR_FORMAT, "%s has %d bits, %s has %d", onnx_dtype_name(from),
                     onnx_dtype_bits(from), onnx_dtype_name(to), bits);
    ir_value x = onnx_in(c, 0), y = formula_node(f, RLX_OP_bitcast, &x, 1, &attr);
    if (from != to && bits < 8)
        y = low_bits(f, y, attr.bitcast.to, bits);
    onnx_give(c, 0, y);
    onnx_give_type(c, 0, to);
}
