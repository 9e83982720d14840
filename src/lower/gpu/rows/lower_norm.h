/* lower_norm.h: what one norm is for kernels (kernels/norm.rlk, kernels/norm_backward.rlk). */
#ifndef LOWER_NORM_H
#define LOWER_NORM_H

#include "lower/gpu/rows/lower_rows.h"

/* Operands are numbers of inputs; -1: there is none. */
struct gpu_norm {
    struct gpu_rows rows;
    rlx_dtype type;
    bool centred; /* about the mean: layer norm; about 0: rms norm */
    float eps;
    int32_t residual, bias; /* added to x */
    int32_t gamma, beta;
    bool grouped; /* a row has `channels` of so many elements, and is one of `groups` in an item */
    uint64_t groups, channels, per;
    bool modulates; /* gamma and beta broadcast to x, and gamma is what exceeds 1 */
};

/* Rows along an axis, with nothing added and no gamma. */
void gpu_norm_along(struct gpu_norm *n, const struct ir_type *x, int64_t axis, bool centred,
                    float eps);
/* Groups of channels of [N, C, ...]. */
void gpu_norm_groups(struct gpu_norm *n, const struct ir_type *x, int64_t groups, float eps);
/* How groups take them, `arrays` of these tensors at once, all of them read and written alike. */
void gpu_norm_share(struct gpu_call *c, struct gpu_norm *n, uint64_t arrays);

/* Constants, buffers and words that belong together, for kernels that have them. */
void gpu_norm_rows(struct gpu_call *c, const struct gpu_norm *n);   /* T, .., CENTRED */
void gpu_norm_factor(struct gpu_call *c, const struct gpu_norm *n); /* G, .., LEAD */
/* groups, channels, per, lead, gamma_step */
void gpu_norm_factor_words(struct gpu_call *c, const struct gpu_norm *n);

/* Launches that leave base, shift and factor of every row. */
struct gpu_arg gpu_norm_stats(struct gpu_call *c, const struct gpu_norm *n);

#endif
