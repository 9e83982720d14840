/* onnx_window.h: the attributes that convolutions and pools of ONNX share. */
#ifndef IMPORT_ONNX_WINDOW_H
#define IMPORT_ONNX_WINDOW_H

#include "import/onnx/read/onnx_build.h"

struct onnx_window {
    int32_t n; /* spatial axes, after batch and channel */
    rlx_list kernel, stride, dilation;
    rlx_list before, after; /* padding */
    rlx_list extra;         /* further padding at the end, for ceil_mode */
    bool even;              /* before is after, and there is no extra */
};

/* An attribute of n sizes, which are ones where it is not there; and pads of n axes. false: the
 * call has failed. */
bool onnx_spatial(struct onnx_call *c, const char *name, int32_t n, rlx_list *out);
bool onnx_pads(struct onnx_call *c, int32_t n, rlx_list *before, rlx_list *after);

/* From the node's attributes and x's type; kernel: its sizes, where the weights determine them. */
bool onnx_window_of(struct onnx_call *c, const struct ir_type *x, const rlx_list *kernel,
                    struct onnx_window *out);
/* Elements of that value around the spatial axes, `extra` included if asked for. */
ir_value onnx_window_pad(struct onnx_call *c, const struct onnx_window *w, ir_value x, double value,
                         bool with_extra);

/* onnx_conv.c: x and the weights w under the node's attributes; no bias. */
ir_value onnx_convolve(struct onnx_call *c, ir_value x, ir_value w);
/* [n] as [1, n, 1, ..]: a value per channel of something of that rank. */
ir_value onnx_per_channel(struct formula *f, ir_value v, int32_t rank);

/* onnx_pool.c: the largest, or the mean, of each window of x under the node's attributes. */
ir_value onnx_largest(struct onnx_call *c, ir_value x);
ir_value onnx_average(struct onnx_call *c, ir_value x);

#endif
