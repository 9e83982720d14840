/* norm_moments.c: mean and squared deviations of elements that lie together (norm.h).
 *
 * Rows of f32 are summed in f32, in lanes short enough to lose next to nothing. Where that is not
 * good enough, for values so large or so small that their squares are out of range or that are
 * nearly all the same, f64 does it again, as for every other type. */
#include "backend/cpu/kernels/rows/norm.h"
#include "backend/cpu/kernels/vec_math.h"

/* ---- in f64 -------------------------------------------------------------------------------- */

enum { LANES = 16 };

static double add_lanes(const double *lane)
{
    double sum[LANES];

    memcpy(sum, lane, sizeof sum);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int l = 0; l < n; l++)
            sum[l] += sum[l + n];
    return sum[0];
}

/* The sums of v over n elements x, in LANES interleaved parts. */
#define LANE_SUM(T, v)                                 \
    do {                                               \
        const T *p_ = row;                             \
        double lane_[LANES] = {0};                     \
        int64_t i_ = 0;                                \
        for (; i_ + LANES <= n; i_ += LANES) {         \
            for (int l_ = 0; l_ < LANES; l_++) {       \
                double x = (double)p_[i_ + l_] - from; \
                lane_[l_] += (v);                      \
            }                                          \
        }                                              \
        for (int l_ = 0; i_ < n; i_++, l_++) {         \
            double x = (double)p_[i_] - from;          \
            lane_[l_] += (v);                          \
        }                                              \
        return add_lanes(lane_);                       \
    } while (0)

static double sum_f32(const void *row, int64_t n, double from)
{
    LANE_SUM(float, x);
}

static double sum_f64(const void *row, int64_t n, double from)
{
    LANE_SUM(double, x);
}

static double squares_f32(const void *row, int64_t n, double from)
{
    LANE_SUM(float, (x) * (x));
}

static double squares_f64(const void *row, int64_t n, double from)
{
    LANE_SUM(double, (x) * (x));
}

/* Sum of x - from, or of its square, over n elements. */
static double sum_row(rlx_dtype dtype, const void *x, int64_t n, double from, bool square)
{
    CPU_TILE_OF(float, tile);
    double sum = 0;

    if (dtype == RLX_DTYPE_f32)
        return square ? squares_f32(x, n, from) : sum_f32(x, n, from);
    if (dtype == RLX_DTYPE_f64)
        return square ? squares_f64(x, n, from) : sum_f64(x, n, from);
    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(CPU_TILE, n - at);
        cpu_load_f32(dtype, (const uint16_t *)x + at, tile, part);
        sum += square ? squares_f32(tile, part, from) : sum_f32(tile, part, from);
    }
    return sum;
}

static struct norm_moments moments_f64(rlx_dtype dtype, const void *x, int64_t count, bool centred)
{
    struct norm_moments m = {0};

    if (centred) {
        double first = cpu_get_f64(dtype, x, 0);
        m.mean = first + sum_row(dtype, x, count, first, false) / (double)count;
    }
    m.squares = sum_row(dtype, x, count, m.mean, true);
    return m;
}

/* ---- rows of f32 --------------------------------------------------------------------------- */

enum { CHAINS = 4, TURN = CHAINS * VEC_F32, PART = 32 * TURN }; /* elements of a turn, of a part */

/* Of x - from, and of its square. */
struct sums {
    double sum, squares;
};

/* Sums in f32 within a part, a few elements to each lane, and in f64 from part to part. */
static inline struct sums sums_of(const float *x, int64_t n, float from, bool sum, bool squares)
{
    struct sums all = {0};
    int64_t i = 0;

    while (i + TURN <= n) {
        vec_f32 one[CHAINS] = {0}, two[CHAINS] = {0};
        int64_t end = cpu_min_i64(n, i + PART);
        for (; i + TURN <= end; i += TURN) {
            GEMM_UNROLL
            for (int k = 0; k < CHAINS; k++) {
                vec_f32 v = vec_load(x + i + k * VEC_F32) - from;
                if (sum)
                    one[k] += v;
                if (squares)
                    two[k] = F32_MADD(v, v, two[k]);
            }
        }
        all.sum += sum ? vec_sum((one[0] + one[1]) + (one[2] + one[3])) : 0;
        all.squares += squares ? vec_sum((two[0] + two[1]) + (two[2] + two[3])) : 0;
    }
    for (; i < n; i++) {
        double v = (double)(x[i] - from);
        all.sum += v;
        all.squares += v * v;
    }
    return all;
}

/* The mean found first is rounded to f32, so the second pass sees how far off it is. False: f32 was
 * not good enough for these values. */
static bool moments_f32(const float *x, int64_t n, bool centred, struct norm_moments *m)
{
    const double least = 1e-30, most = 1e36; /* of squares that f32 sums without loss */
    struct sums s;
    double off = 0;
    float from = 0;

    if (centred) {
        from = (float)((double)x[0] + sums_of(x, n, x[0], true, false).sum / (double)n);
        s = sums_of(x, n, from, true, true);
        off = s.sum / (double)n;
    } else {
        s = sums_of(x, n, 0, false, true);
    }
    m->mean = (double)from + off;
    m->squares = s.squares - off * s.sum;
    return s.squares > least * (double)n && s.squares < most && m->squares > s.squares / 2;
}

struct norm_moments norm_moments_of(rlx_dtype dtype, const void *x, int64_t count, bool centred)
{
    struct norm_moments m;

    if (dtype == RLX_DTYPE_f32 && moments_f32(x, count, centred, &m))
        return m;
    return moments_f64(dtype, x, count, centred);
}
