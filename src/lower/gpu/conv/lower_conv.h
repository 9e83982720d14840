/* lower_conv.h: a convolution or one of its gradients, as kernels/conv sees it. */
#ifndef LOWER_CONV_H
#define LOWER_CONV_H

#include "lower/gpu/gemm/lower_tiles.h"

enum gpu_conv_mode { GPU_CONV_FORWARD, GPU_CONV_TO_X, GPU_CONV_TO_W };

/* With x [N,C,in], w [O,C/groups,taps], y [N,O,out]. p is the image that is picked from, q the
 * other factor: x and w, dy and w, or x and dy. */
struct gpu_conv {
    enum gpu_conv_mode mode;
    struct gpu_arg p, q, y;
    rlx_dtype dtype, q_type;
    uint64_t images, groups, taps;
    uint64_t channels, across, others; /* of p; of p per group; of the result or, TO_W, of dy */
    uint64_t kernel[3], size[3], places[3], stride[3], padding[3], dilation[3];
    bool edges;            /* some positions leave out taps */
    struct gpu_product of; /* items: groups */
    int32_t residual;      /* operand; -1: none */
    struct gpu_epilogue end;
};

struct gpu_conv_lists {
    const rlx_list *stride, *padding, *dilation;
    int64_t groups;
};
/* x, w and y are the convolution's own, whichever of them is the result. */
struct gpu_conv gpu_conv_of(const struct gpu_call *c, enum gpu_conv_mode mode,
                            const struct gpu_conv_lists *l, const struct ir_type *x,
                            const struct ir_type *w, const struct ir_type *y);
/* KD, KH, KW; and the fifteen numbers. */
void gpu_conv_taps(struct gpu_call *c, const struct gpu_conv *v);
void gpu_conv_shape(struct gpu_call *c, const struct gpu_conv *v);

#endif
