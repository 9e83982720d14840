/* lanes.h: columns side by side in vectors, for recurrences in which every column goes its own way
 * through time: channels of selective_scan, values of gated_delta_net, rows of mamba2's heads.
 *
 *     a block   LANES columns; the last block of a row is filled up with zeros
 *     a state   [rows][LANES], one row after another
 *
 * A block stays with one task from the first step to the last, and its state in the cache. */
#ifndef BACKEND_LANES_H
#define BACKEND_LANES_H

#include "backend/cpu/kernels/gemm/gemm.h"
#include "backend/cpu/kernels/vec_math.h"

enum { LANES_VECS = 2, LANES = LANES_VECS * VEC_F32 };

/* A carried state has its columns as rows. Up to so many steps, as one token or two of a
 * conversation, are computed there; more are worth turning it. */
enum { LANES_FEW_STEPS = 4 };

#define LANES_OF(name) _Alignas(64) float name[LANES]

static inline int64_t lanes_blocks(int64_t columns)
{
    return (columns + LANES - 1) / LANES;
}

/* Blocks of work to give to a worker together, where one takes `work` multiply-adds. */
static inline int64_t lanes_grain(double work)
{
    return work >= 65536 ? 1 : (int64_t)(65536 / (work + 1)) + 1;
}

/* Columns w of an operand as f32, followed by zeros. */
static inline void lanes_load(rlx_dtype from, const void *src, int64_t w, float *dst)
{
    if (from == RLX_DTYPE_f32 && w == LANES) {
        memcpy(dst, src, LANES * sizeof *dst);
        return;
    }
    cpu_load_f32(from, src, dst, w);
    for (int64_t i = w; i < LANES; i++)
        dst[i] = 0;
}

/* w rows of n numbers as columns, [n][LANES]; and back. */
static inline void lanes_turn(const float *rows, int64_t w, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < LANES; l++)
            to[i * LANES + l] = l < w ? rows[l * n + i] : 0;
}

static inline void lanes_turn_back(const float *from, int64_t w, int64_t n, float *rows)
{
    for (int64_t l = 0; l < w; l++)
        for (int64_t i = 0; i < n; i++)
            rows[l * n + i] = from[i * LANES + l];
}

/* The root of e^x, for e^x s as root (root s): where e^x itself is beyond f32, that is right for
 * every s but numbers below the normal ones, and 0 stays 0 unless x is not finite. */
static inline vec_f32 lanes_exp_root(vec_f32 x)
{
    vec_i32 endless = x == vec_all(INFINITY);
    vec_f32 root = vec_exp(-vec_max(vec_all(-88.7f), -0.5f * x));

    return (vec_f32)(((vec_i32)x & endless) | ((vec_i32)root & ~endless));
}

/* Bits of the first w lanes of a vector: what fills it up is not to reach sums across lanes, where
 * 0 times Inf would. */
static inline vec_i32 lanes_mask(int64_t w)
{
    typedef vec_i32 loose __attribute__((aligned(4), may_alias));
    static const int32_t bits[32] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1, -1, -1}; /* and zeros */
    _Static_assert(VEC_F32 <= 16, "a vector's bits and its zeros");

    return *(const loose *)(bits + 16 - cpu_min_i64(cpu_max_i64(w, 0), 16));
}

static inline vec_f32 lanes_only(vec_i32 mask, vec_f32 x)
{
    return (vec_f32)((vec_i32)x & mask);
}

/* The first w elements of a vector, and zeros. */
static inline vec_f32 lanes_load_some(const float *p, int64_t w)
{
    float room[VEC_F32] = {0};

    if (w >= VEC_F32)
        return vec_load(p);
    memcpy(room, p, (size_t)w * sizeof *p);
    return vec_load(room);
}

static inline void lanes_store_some(float *p, vec_f32 x, int64_t w)
{
    float room[VEC_F32];

    if (w >= VEC_F32)
        return vec_store(p, x);
    vec_store(room, x);
    memcpy(p, room, (size_t)w * sizeof *p);
}

/* For going backward through `steps` states: one state per this many is kept, and those between are
 * computed again. The smallest number whose square is not less than `steps`. */
static inline int64_t lanes_stretch(int64_t steps)
{
    int64_t k = (int64_t)sqrt((double)steps);

    while (k * k < steps)
        k++;
    return k;
}

/* Bytes for n floats, for what comes after them to be aligned. */
static inline uint64_t lanes_bytes(int64_t n)
{
    return ((uint64_t)n * sizeof(float) + 63) / 64 * 64;
}

#endif
