/* reduce.h: the innermost loops of reductions: a row to one value, and rows onto a row of values.
 *
 * Floats are reduced in f64: half the lanes of f32, but sums of any length are right, nothing
 * overflows on the way, and memory is the limit long before the additions are. Integers are reduced
 * in 64 bits, and wrap. A row is reduced in interleaved parts, lanes, which are merged in the end:
 * vector code needs them, and the order is fixed. 16 lanes stay in registers; maxima turn into
 * vector code only from 32 on. */
#ifndef BACKEND_REDUCE_H
#define BACKEND_REDUCE_H

#include "backend/cpu/kernels/common.h"

enum reduce_kind { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN };

#define REDUCE_ADD_F(a, b) ((a) + (b))
#define REDUCE_MUL_F(a, b) ((a) * (b))
/* NaN stays once it is there, and replaces any number. */
#define REDUCE_MAX_F(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a))
#define REDUCE_MIN_F(a, b) ((((b) < (a)) | ((b) != (b))) ? (b) : (a))
#define REDUCE_ADD_I(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define REDUCE_MUL_I(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define REDUCE_MAX_I(a, b) ((b) > (a) ? (b) : (a))
#define REDUCE_MIN_I(a, b) ((b) < (a) ? (b) : (a))

/* ACC reduce_row_<name>(x, n), and reduce_onto_<name>(acc, x, n): acc[i] with x[i]. */
#define REDUCE_LOOPS(name, T, ACC, lanes, identity, WITH)                                    \
    static inline ACC reduce_row_##name(const T *x, int64_t n)                               \
    {                                                                                        \
        ACC lane[lanes], all = (identity);                                                   \
        int64_t i = 0;                                                                       \
                                                                                             \
        if (n >= (lanes)) {                                                                  \
            for (int l = 0; l < (lanes); l++)                                                \
                lane[l] = (ACC)x[l];                                                         \
            for (i = (lanes); i + (lanes) <= n; i += (lanes))                                \
                for (int l = 0; l < (lanes); l++)                                            \
                    lane[l] = WITH(lane[l], (ACC)x[i + l]);                                  \
            for (int half = (lanes) / 2; half > 0; half /= 2)                                \
                for (int l = 0; l < half; l++)                                               \
                    lane[l] = WITH(lane[l], lane[l + half]);                                 \
            all = lane[0];                                                                   \
        }                                                                                    \
        for (; i < n; i++)                                                                   \
            all = WITH(all, (ACC)x[i]);                                                      \
        return all;                                                                          \
    }                                                                                        \
                                                                                             \
    static inline void reduce_onto_##name(ACC *restrict acc, const T *restrict x, int64_t n) \
    {                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                      \
            acc[i] = WITH(acc[i], (ACC)x[i]);                                                \
    }

REDUCE_LOOPS(sum_f32, float, double, 16, 0.0, REDUCE_ADD_F)
REDUCE_LOOPS(prod_f32, float, double, 16, 1.0, REDUCE_MUL_F)
REDUCE_LOOPS(max_f32, float, double, 32, -(double)INFINITY, REDUCE_MAX_F)
REDUCE_LOOPS(min_f32, float, double, 32, (double)INFINITY, REDUCE_MIN_F)
REDUCE_LOOPS(sum_f64, double, double, 16, 0.0, REDUCE_ADD_F)
REDUCE_LOOPS(prod_f64, double, double, 16, 1.0, REDUCE_MUL_F)
REDUCE_LOOPS(max_f64, double, double, 32, -(double)INFINITY, REDUCE_MAX_F)
REDUCE_LOOPS(min_f64, double, double, 32, (double)INFINITY, REDUCE_MIN_F)
REDUCE_LOOPS(sum_i64, int64_t, int64_t, 16, 0, REDUCE_ADD_I)
REDUCE_LOOPS(prod_i64, int64_t, int64_t, 16, 1, REDUCE_MUL_I)
REDUCE_LOOPS(max_i64, int64_t, int64_t, 32, INT64_MIN, REDUCE_MAX_I)
REDUCE_LOOPS(min_i64, int64_t, int64_t, 32, INT64_MAX, REDUCE_MIN_I)

/* The largest and smallest of a row of f32 are f32: twice as many fit into a vector. */
REDUCE_LOOPS(top_f32, float, float, 32, -INFINITY, REDUCE_MAX_F)
REDUCE_LOOPS(low_f32, float, float, 32, INFINITY, REDUCE_MIN_F)

#define REDUCE_BY_KIND(name, T, ACC, top, low)                                                    \
    static inline ACC reduce_row_##name(enum reduce_kind kind, const T *x, int64_t n)             \
    {                                                                                             \
        switch (kind) {                                                                           \
        case REDUCE_SUM: return reduce_row_sum_##name(x, n);                                      \
        case REDUCE_PROD: return reduce_row_prod_##name(x, n);                                    \
        case REDUCE_MAX: return (ACC)reduce_row_##top(x, n);                                      \
        default: return (ACC)reduce_row_##low(x, n);                                              \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static inline void reduce_onto_##name(enum reduce_kind kind, ACC *acc, const T *x, int64_t n) \
    {                                                                                             \
        switch (kind) {                                                                           \
        case REDUCE_SUM: reduce_onto_sum_##name(acc, x, n); break;                                \
        case REDUCE_PROD: reduce_onto_prod_##name(acc, x, n); break;                              \
        case REDUCE_MAX: reduce_onto_max_##name(acc, x, n); break;                                \
        default: reduce_onto_min_##name(acc, x, n); break;                                        \
        }                                                                                         \
    }

REDUCE_BY_KIND(f32, float, double, top_f32, low_f32)
REDUCE_BY_KIND(f64, double, double, max_f64, min_f64)
REDUCE_BY_KIND(i64, int64_t, int64_t, max_i64, min_i64)

#endif
