/* norm.h: normalised sets: their statistics, and their elements made of them (ops-core.md 11).
 *
 * A set is what one mean and one variance belong to. x is [outer, size, inner], and its sets run
 * along size; with inner 1 a set's elements lie together:
 *
 *     layer_norm, rms_norm    size: the axis           outer, inner: the axes around it
 *     group_norm              size: a group's channels and places      inner: 1
 *
 * Statistics are f64, and so are sums, but for those of a few f32: two passes, the first for the
 * mean, taken from the set's first element, so that large values close together lose nothing. A set
 * that lies together is cut into blocks, for threads to share; their moments are joined in order.
 */
#ifndef BACKEND_NORM_H
#define BACKEND_NORM_H

#include "backend/cpu/kernels/common.h"

struct norm {
    const struct cpu_tensor *x;
    int64_t outer, size, inner;
    int64_t block, blocks; /* of a set that lies together: elements of each but the last, number */
    bool centred;          /* about the mean: layer norm; about 0: rms norm */
    double eps;
};

struct norm_stat {
    double mean;   /* 0 unless centred */
    double factor; /* 1 / sqrt(variance + eps) */
};

/* Of one block: mean, and the sum of squared deviations from it. */
struct norm_moments {
    double mean, squares;
};

#define norm_along CPU_NAME(norm_along)
#define norm_groups CPU_NAME(norm_groups)
#define norm_moments_of CPU_NAME(norm_moments_of)
#define norm_stat_of CPU_NAME(norm_stat_of)
#define norm_columns CPU_NAME(norm_columns)
#define norm_all CPU_NAME(norm_all)
#define norm_apply CPU_NAME(norm_apply)
#define norm_stream CPU_NAME(norm_stream)
#define norm_widen CPU_NAME(norm_widen)

/* Sets along an axis, or of [n, c, ...] in groups of channels. */
void norm_along(struct norm *n, const struct cpu_tensor *x, int64_t axis, bool centred, float eps);
void norm_groups(struct norm *n, const struct cpu_tensor *x, int64_t groups, float eps);

static inline int64_t norm_sets(const struct norm *n)
{
    return n->outer * n->inner;
}

/* Rows or parts of sets that are worth a thread's while, of `size` elements each. */
static inline int64_t norm_grain(int64_t size)
{
    return cpu_max_i64(1, 16384 / cpu_max_i64(size, 1));
}

/* count >= 1 elements that lie together. */
struct norm_moments norm_moments_of(rlx_dtype dtype, const void *x, int64_t count, bool centred);
/* From the moments of all of a set's blocks. */
struct norm_stat norm_stat_of(const struct norm *n, const struct norm_moments *blocks);
/* Of `width` <= CPU_TILE sets side by side, from set (outer, column) on. */
void norm_columns(const struct norm *n, int64_t outer, int64_t column, int64_t width, double *mean,
                  double *factor);
/* Columns that are best taken together: what they hold should stay in the cache. */
static inline int64_t norm_columns_width(const struct norm *n)
{
    int64_t fit = 32768 / cpu_max_i64(n->size, 1) / 16 * 16;
    return cpu_min_i64(cpu_min_i64(cpu_max_i64(fit, 32), CPU_TILE), n->inner);
}

/* mean and factor of every set, in the order [outer, inner]. moments: outer * blocks of them. */
void norm_all(const struct norm *n, struct pool *pool, struct norm_moments *moments, double *mean,
              double *factor);

/* y = (x - mean) factor gamma + beta for n elements that lie together. f64 goes with f64 only, and
 * gamma and beta with it; else they are f32, and x and y any smaller float types. step 1: a gamma
 * and a beta for each element; 0: one for all. y may be x if their types are the same. */
void norm_apply(rlx_dtype x_type, const void *x, rlx_dtype y_type, void *y, int64_t n,
                struct norm_stat s, const void *gamma, const void *beta, int step);

/* The same for f32 and step 1, past the caches; false if that cannot be, and nothing is done. */
bool norm_stream(const float *x, float *y, int64_t n, struct norm_stat s, const float *gamma,
                 const float *beta);

/* What norm_apply computes in for this type. */
static inline rlx_dtype norm_wide(rlx_dtype d)
{
    return d == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
}

/* A gamma or beta in the type that norm_apply wants with x: t itself, or a copy at `room`, which
 * has space for count of them. t NULL: zeros. */
const void *norm_widen(const struct cpu_tensor *t, rlx_dtype x_type, int64_t count, void *room);

#endif
