/* scatter.h: how the scatter ops combine an update with what is there (ops-core.md 7.4).
 *
 * Floats are combined in f64, integers and bool in 64 bits, and stored once at the end: sums of
 * many small updates stay right, whatever the type. u64 has its top bit turned over for max and
 * min, so that it compares like i64. */
#ifndef BACKEND_SCATTER_H
#define BACKEND_SCATTER_H

#include "backend/cpu/kernels/move/index.h"

static inline bool scatter_flips(rlx_dtype d, int32_t reduction)
{
    return d == RLX_DTYPE_u64 &&
           (reduction == RLX_SCATTER_REDUCTION_max || reduction == RLX_SCATTER_REDUCTION_min);
}

static inline void scatter_flip(int64_t *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] ^= INT64_MIN;
}

static inline void scatter_load_i64(rlx_dtype d, int32_t reduction, const void *src, int64_t *dst,
                                    int64_t n)
{
    cpu_load_i64(d, src, dst, n);
    if (scatter_flips(d, reduction))
        scatter_flip(dst, n);
}

/* Changes src. */
static inline void scatter_store_i64(rlx_dtype d, int32_t reduction, int64_t *src, void *dst,
                                     int64_t n)
{
    if (scatter_flips(d, reduction))
        scatter_flip(src, n);
    cpu_store_i64(d, src, dst, n);
}

/* LOOP(C type, expression) for the reduction; in it `a` is what there is and `u` the update. Not
 * for none. */
#define SCATTER_F64(reduction, LOOP)                                       \
    switch (reduction) {                                                   \
    case RLX_SCATTER_REDUCTION_add: LOOP(double, a + u) break;             \
    case RLX_SCATTER_REDUCTION_mul: LOOP(double, (a * u)) break;           \
    case RLX_SCATTER_REDUCTION_max: LOOP(double, cpu_max_f64(a, u)) break; \
    case RLX_SCATTER_REDUCTION_min: LOOP(double, cpu_min_f64(a, u)) break; \
    default: break;                                                        \
    }

#define SCATTER_I64(reduction, LOOP)                                                           \
    switch (reduction) {                                                                       \
    case RLX_SCATTER_REDUCTION_add: LOOP(int64_t, (int64_t)((uint64_t)a + (uint64_t)u)) break; \
    case RLX_SCATTER_REDUCTION_mul: LOOP(int64_t, (int64_t)((uint64_t)a * (uint64_t)u)) break; \
    case RLX_SCATTER_REDUCTION_max: LOOP(int64_t, a > u ? a : u) break;                        \
    case RLX_SCATTER_REDUCTION_min: LOOP(int64_t, a < u ? a : u) break;                        \
    default: break;                                                                            \
    }

/* a *= b, complex. */
static inline void scatter_mul_c64(double *a, const double *b)
{
    double re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
    a[0] = re;
    a[1] = im;
}

#endif
