/* lower_norm_backward.h: gradients for gamma: sums of products over what shares an element of it.
 */
#ifndef LOWER_NORM_BACKWARD_H
#define LOWER_NORM_BACKWARD_H

#include "lower/gpu/rows/lower_norm.h"

/* x and dy are inputs of the type t, and `gone` are the axes that are summed over, a bit each. */
struct gpu_products {
    const struct ir_type *t;
    uint32_t gone;
    int32_t dy;
    struct gpu_arg stats; /* base, shift and factor of each row; x is [.., span / inner, inner] */
    uint64_t span, inner;
    bool own; /* of each sum instead */
};
/* y = the sums of dy times the normalised x. */
void gpu_sum_products(struct gpu_call *c, const struct gpu_products *p, rlx_dtype result,
                      struct gpu_arg y);
/* y = the sums of dy. */
void gpu_sum_gradients(struct gpu_call *c, const struct ir_type *t, uint32_t gone, int32_t dy,
                       rlx_dtype result, struct gpu_arg y);

#endif
