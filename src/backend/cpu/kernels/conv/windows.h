/* windows.h: reading an image through windows, for products (gemm.h) and for loops.
 *
 * A source has planes of three axes (missing ones, in front, have size 1), a plane per channel and
 * image. A position looks at it through taps: along each axis,
 *
 *     index = position * step + base + tap * delta         outside the plane: nothing is there
 *
 * A convolution's step is its stride, its base -padding and its delta its dilation; the transposed
 * one, seen from the output, has the same form (conv_core.h). */
#ifndef BACKEND_WINDOWS_H
#define BACKEND_WINDOWS_H

#include "backend/cpu/kernels/common.h"

struct windows {
    const void *src; /* the first channel of the first image that is looked at */
    rlx_dtype dtype; /* a float, or i8 */
    int64_t image;   /* elements from one image to the next */
    int64_t in[3];   /* a plane, and so the elements from one channel to the next */
    int64_t pos[3];
    int64_t taps[3];
    int64_t step[3], base[3], delta[3];
    int64_t zero_point; /* i8: taken from each element */
};

/* Positions of all images one after another; taps of all channels one after another. */
struct windows_part {
    int64_t pos, positions;
    int64_t tap, taps;
    int64_t pos_step, tap_step; /* in dst, in its elements */
    void *dst;                  /* f32, or f64 from f64, or int16_t from i8 */
};

#define windows_fill CPU_NAME(windows_fill)
#define windows_fill_pairs CPU_NAME(windows_fill_pairs)

/* Elements, and zeros where nothing is there. */
void windows_fill(const struct windows *w, const struct windows_part *p);
/* From i8, the layout of GEMM_I16: two taps side by side, pos_step 2, tap_step for each two. p->tap
 * is even; an odd last one is followed by zeros. */
void windows_fill_pairs(const struct windows *w, const struct windows_part *p);

static inline int64_t windows_volume(const int64_t *d)
{
    return d[0] * d[1] * d[2];
}

/* Positions lo .. hi-1 of `count` from a source index on lie inside an axis of `in` elements. */
static inline void windows_inside(int64_t start, int64_t step, int64_t in, int64_t count,
                                  int64_t *lo, int64_t *hi)
{
    int64_t first, end;

    if (step == 1) {
        first = start < 0 ? -start : 0;
        end = in - start;
    } else {
        first = start < 0 ? (-start + step - 1) / step : 0;
        end = start < in ? (in - start + step - 1) / step : 0;
    }
    *lo = cpu_min_i64(first, count);
    *hi = cpu_max_i64(*lo, cpu_min_i64(end, count));
}

/* Whether any tap of any position falls outside. */
static inline bool windows_have_edges(const struct windows *w)
{
    for (int i = 0; i < 3; i++) {
        if (w->pos[i] == 0 || w->taps[i] == 0)
            return false;
        int64_t reach = (w->taps[i] - 1) * w->delta[i];
        int64_t low = w->base[i] + (reach < 0 ? reach : 0);
        int64_t high = (w->pos[i] - 1) * w->step[i] + w->base[i] + (reach > 0 ? reach : 0);
        if (low < 0 || high >= w->in[i])
            return true;
    }
    return false;
}

#endif
