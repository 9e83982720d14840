/* tensor_text.c: see tensor_text.h. */
#include "tensor_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* sign, exponent, fraction of an IEEE number that is too narrow for C */
static double small_float(uint16_t bits, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits, top = (1 << exponent_bits) - 1, bias = top / 2;
    int exponent = bits >> fraction_bits & top;
    int fraction = bits & ((1 << fraction_bits) - 1);
    double v = exponent == top ? (fraction ? (double)NAN : (double)INFINITY)
               : exponent ? ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits)
                          : ldexp(fraction, 1 - bias - fraction_bits);

    return bits >> 15 ? -v : v;
}

double tensor_element(const rlx_tensor *t, size_t i)
{
    const char *at = (const char *)t->data + i * rlx_dtype_size(t->dtype);
    union {
        float f32;
        double f64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } v;

    if (t->dtype == RLX_DTYPE_c64)
        return (double)NAN;
    memcpy(&v, at, rlx_dtype_size(t->dtype));
    switch (t->dtype) {
    case RLX_DTYPE_f32: return (double)v.f32;
    case RLX_DTYPE_f64: return v.f64;
    case RLX_DTYPE_f16: return small_float(v.u16, 5);
    case RLX_DTYPE_bf16: return small_float(v.u16, 8);
    case RLX_DTYPE_i8: return v.i8;
    case RLX_DTYPE_i16: return v.i16;
    case RLX_DTYPE_i32: return v.i32;
    case RLX_DTYPE_i64: return (double)v.i64;
    case RLX_DTYPE_u16: return v.u16;
    case RLX_DTYPE_u32: return v.u32;
    case RLX_DTYPE_u64: return (double)v.u64;
    default: return v.u8;
    }
}

const char *shape_text(int32_t rank, const int64_t *dim, char out[SHAPE_TEXT])
{
    size_t len = (size_t)snprintf(out, SHAPE_TEXT, "[");

    for (int32_t i = 0; i < rank && len < SHAPE_TEXT; i++)
        len += (size_t)snprintf(out + len, SHAPE_TEXT - len, "%s%lld", i ? "," : "",
                                (long long)dim[i]);
    if (len < SHAPE_TEXT)
        snprintf(out + len, SHAPE_TEXT - len, "]");
    return out;
}
