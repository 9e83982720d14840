/* onnx_quant.h: numbers to integers and back, as several ONNX ops need it. Scales and zero
 * points are inputs by their number; a zero point that is left out is 0. */
#ifndef IMPORT_ONNX_QUANT_H
#define IMPORT_ONNX_QUANT_H

#include "import/onnx/read/onnx_build.h"

struct onnx_quantised {
    ir_value x, scale, zero;
};

/* The range of x, zero included, as 0 .. 255. */
void onnx_quantise_by_range(struct onnx_call *c, ir_value x, struct onnx_quantised *out);
/* Input x less its zero point, in i32. */
ir_value onnx_whole(struct onnx_call *c, size_t x, size_t zero);
/* The same times its scale, in f32. */
ir_value onnx_dequantised(struct onnx_call *c, size_t x, size_t scale, size_t zero);
/* x over the scale, rounded, and kept within the type of input `like`. */
ir_value onnx_quantised_as(struct onnx_call *c, ir_value x, size_t scale, size_t zero, size_t like);

#endif
