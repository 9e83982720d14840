/* onnx_small_float.h: floats of 8 bits and less. rlx has no such types: their elements are codes,
 * one to a u8, that may be moved but not computed with. Which float a code stands for is given
 * by ONNX's type (struct onnx_value's narrow).
 *
 *     FLOAT8E4M3FN     sign, 4 bits of exponent, 3 of fraction; no Inf, one NaN of each sign
 *     FLOAT8E4M3FNUZ   the same with another bias; no Inf, no -0, whose code is the only NaN
 *     FLOAT8E5M2       the upper byte of an f16
 *     FLOAT8E5M2FNUZ   as FLOAT8E4M3FNUZ
 *     FLOAT8E8M0       2 ^ (code - 127); 255 is NaN; no sign, no 0
 *     FLOAT4E2M1       0 0.5 1 1.5 2 3 4 6, and the same below 0
 *     FLOAT6E2M3, FLOAT6E3M2   numbers only, up to 7.5 and 28 */
#ifndef IMPORT_ONNX_SMALL_FLOAT_H
#define IMPORT_ONNX_SMALL_FLOAT_H

#include "import/onnx/read/onnx_call.h"

/* The floats that the codes represent, in f32, which holds them all. */
ir_value onnx_decode(struct onnx_call *c, ir_value code, int64_t data_type);
/* The codes of floats, integers or bools, rounded to nearest even; those of FLOAT8E8M0 as the
 * attribute round_mode says. The attribute saturate says what becomes of numbers out of range. */
ir_value onnx_encode(struct onnx_call *c, ir_value x, int64_t data_type);

/* May the node be given codes, if it is given any? If not, that is the call's failure. */
bool onnx_takes_codes(struct onnx_call *c);
/* What a node that only moves elements gives is of the type that it was given. */
void onnx_pass_type_on(struct onnx_call *c);

#endif
