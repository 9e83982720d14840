/* softmax.h: what softmax and cross-entropy share.
 *
 * Every row is shifted by its largest element, or by 0 if that is -Inf: then a row of -Inf only has
 * the sum 0, and is the only one that has. A NaN or a +Inf makes the sum NaN. */
#ifndef BACKEND_SOFTMAX_H
#define BACKEND_SOFTMAX_H

#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/move/move.h"
#include "backend/cpu/kernels/rows/reduce.h"

/* e[i] = e^(x[i] - shift) * scale; e may be x. */
static inline void softmax_exp_f32(const float *x, float shift, float scale, float *e, int64_t n)
{
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        e[i] = math_exp(x[i] - shift) * scale;
}

static inline void softmax_exp_f64(const double *x, double shift, double scale, double *e,
                                   int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        e[i] = exp(x[i] - shift) * scale;
}

static inline const double *softmax_as_f64(rlx_dtype from, const void *src, double *buffer,
                                           int64_t n)
{
    (void)from;
    (void)buffer;
    (void)n;
    return src;
}

/* 1 / sum, which turns a row of -Inf into zeros. */
static inline double softmax_scale(double sum)
{
    return sum == 0 ? 0 : 1 / sum;
}

#define softmax_row_sum CPU_NAME(softmax_row_sum)

/* The sum of e^(x - shift) over n elements of a float type, side by side; n may be 0. */
double softmax_row_sum(rlx_dtype d, const void *x, int64_t n, double *shift);

#endif
