/* fft.h: how a Fourier transform is cut up; shared by the files of the fft kernel.
 *
 * There is one loop that transforms: fft_core.h takes n vectors and computes an n-point transform
 * in every lane of them. What the lanes are is the plan's choice:
 *
 *     many short rows   a lane is a row: rows are turned into lanes and back
 *     else              a row of m = n1 n2 points is a matrix [n1, n2]; lanes are neighbouring
 *                       columns, then neighbouring rows of the result, with a twist by
 *                       e^(-2 pi i j k / m) between: each point is read and written twice
 *
 * Lengths with prime factors above 13 become a convolution with a chirp, of m points, m the power
 * of two from 2n-1 on. The inverse is the forward transform with real and imaginary parts swapped
 * on both ends, so only the forward one exists.
 *
 * Sines and cosines are computed in f64 and lie in the kernel's tables (cpu_kernel.h). */
#ifndef BACKEND_FFT_H
#define BACKEND_FFT_H

#include "backend/cpu/kernels/common.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

enum {
    FFT_STAGES = 48,         /* at most: lengths are below 2^63, and 8 is tried first */
    FFT_LARGEST_PRIME = 13,  /* radices: 2, 3, 4, 5, 7, 8, 11, 13 */
    FFT_ROWS_MOST = 4096,    /* longest row that is a lane */
    FFT_APART_MOST = 1 << 16 /* longest row that is left to one thread when there are several */
};

/* n points, n the product of the radices: the first combines the results of the others. */
struct fft_columns {
    int64_t n;
    int32_t stages;
    int32_t radix[FFT_STAGES];
    int64_t twiddle[FFT_STAGES]; /* where in the table; none for the last radix */
};

/* Places in the table count elements of the working type. */
struct fft_plan {
    int64_t n, rows;
    int64_t m;           /* points of the transforms made: n, or the chirp's */
    int64_t lanes;       /* of a vector */
    bool is_chirp;       /* m is not n */
    bool rows_are_lanes; /* n1 is m, and n2 is 1 */
    bool rows_apart;     /* rows are shared among threads, not what is in them */
    int64_t n1, n2;
    struct fft_columns first, second; /* of n1 and n2 points */
    int64_t lane_twist;               /* [n1, re or im, lanes]: e^(-2 pi i lane k / m) */
    int64_t block_twist;              /* [blocks of n2, n1, 2]: the same for a block's first lane */
    int64_t chirp, spectrum;          /* [n, 2] and [m, 2], the latter divided by m */
    int64_t table;                    /* elements of the whole */
};

#define fft_plan_make CPU_NAME(fft_plan_make)
#define fft_table_bytes CPU_NAME(fft_table_bytes)
#define fft_scratch_bytes CPU_NAME(fft_scratch_bytes)
#define fft_f32_fill CPU_NAME(fft_f32_fill)
#define fft_f64_fill CPU_NAME(fft_f64_fill)
#define fft_f32_run CPU_NAME(fft_f32_run)
#define fft_f64_run CPU_NAME(fft_f64_run)

/* n >= 1 points in each of `rows` rows, of elements of `size` bytes. */
void fft_plan_make(struct fft_plan *p, int64_t n, int64_t rows, int64_t size);

/* Bytes of tables, and of scratch with that many threads. bounded: enough for every smaller number
 * of points and rows too. */
uint64_t fft_table_bytes(int64_t n, int64_t rows, int64_t size, bool bounded);
uint64_t fft_scratch_bytes(int64_t n, int64_t rows, int64_t size, int threads, bool bounded);

/* One end of the transform. Row r begins at element r * stride; its parts are `step` apart. */
struct fft_end {
    void *re, *im;
    int64_t stride;
    int64_t step; /* 1: parts in separate rows; 2: pairs */
};

struct fft_run {
    const struct fft_plan *plan;
    const void *table;
    void *scratch;
    struct pool *pool;
    struct fft_end in, out;
    double scale;
};

/* Tables are 64-byte aligned. */
void fft_f32_fill(const struct fft_plan *p, float *table);
void fft_f64_fill(const struct fft_plan *p, double *table);
void fft_f32_run(const struct fft_run *r);
void fft_f64_run(const struct fft_run *r);

static inline int64_t fft_blocks(int64_t n, int64_t lanes)
{
    return n / lanes + (n % lanes != 0);
}

#endif
