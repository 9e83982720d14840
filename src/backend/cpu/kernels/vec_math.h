/* vec_math.h: functions of vectors of f32, for loops that the compiler cannot vectorise itself:
 * those that also sum, or that have an instruction for a step. What math.h says of its functions
 * holds here too. */
#ifndef CPU_VEC_MATH_H
#define CPU_VEC_MATH_H

#include "backend/cpu/kernels/gemm/gemm_vec.h"
#include "backend/cpu/kernels/math.h"

enum { VEC_F32 = GEMM_VEC / 4 }; /* elements of a vector */

typedef int32_t vec_i32 __attribute__((vector_size(GEMM_VEC)));
typedef vec_f32 vec_loose __attribute__((aligned(4), may_alias)); /* anywhere in memory */

static inline vec_f32 vec_load(const float *p)
{
    return *(const vec_loose *)p;
}

static inline void vec_store(float *p, vec_f32 v)
{
    *(vec_loose *)p = v;
}

static inline vec_f32 vec_all(float x)
{
    return x - (vec_f32){0}; /* x - 0 is x, -0 too */
}

/* The larger; y where either is NaN, or a NaN. */
static inline vec_f32 vec_max(vec_f32 x, vec_f32 y)
{
#if defined(__AVX512F__)
    return _mm512_max_ps(x, y);
#elif defined(__AVX2__)
    return _mm256_max_ps(x, y);
#elif defined(__SSE2__)
    return _mm_max_ps(x, y);
#else
    vec_i32 more = x > y;
    return (vec_f32)(((vec_i32)x & more) | ((vec_i32)y & ~more));
#endif
}

static inline float vec_largest(vec_f32 v)
{
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps(v);
#else
    float most = v[0];

    for (int i = 1; i < VEC_F32; i++)
        most = v[i] > most ? v[i] : most;
    return most;
#endif
}

static inline double vec_sum(vec_f32 v)
{
#if defined(__AVX512F__)
    __m256 low = _mm512_castps512_ps256(v);
    __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    return _mm512_reduce_add_pd(_mm512_cvtps_pd(low) + _mm512_cvtps_pd(high));
#else
    double sum = 0;

    for (int i = 0; i < VEC_F32; i++)
        sum += (double)v[i];
    return sum;
#endif
}

/* Past the caches (common.h); p lies as vec_streams_to wants it. */
static inline void vec_stream(float *p, vec_f32 v)
{
#if defined(__AVX512F__)
    _mm512_stream_ps(p, v);
#elif defined(__AVX2__)
    _mm256_stream_ps(p, v);
#elif defined(__SSE2__)
    _mm_stream_ps(p, v);
#else
    vec_store(p, v);
#endif
}

/* Whether n elements from p on are whole vectors that vec_stream takes. */
static inline bool vec_streams_to(const void *p, int64_t n)
{
    return (uintptr_t)p % GEMM_VEC == 0 && n % VEC_F32 == 0;
}

/* x 2^k, for whole k from -154 to 131 as far as the result is a float. */
static inline vec_f32 vec_scale(vec_f32 x, vec_f32 k, vec_f32 shifted)
{
#if defined(__AVX512F__)
    (void)shifted;
    return _mm512_scalef_ps(x, k);
#else
    vec_i32 bits = (vec_i32)shifted - (vec_i32)vec_all(MATH_ROUNDER), half = bits >> 1;
    (void)k;
    return x * (vec_f32)((half + 127) << 23) * (vec_f32)((bits - half + 127) << 23);
#endif
}

/* As math_exp, for x up to 88. */
static inline vec_f32 vec_exp(vec_f32 x)
{
    x = vec_max(vec_all(-106.0f), x);
    vec_f32 shifted = F32_MADD(x, vec_all(0x1.715476p0f), vec_all(MATH_ROUNDER));
    vec_f32 k = shifted - MATH_ROUNDER;
    vec_f32 r = F32_MADD(k, vec_all(-0x1.62e4p-1f), x);
    r = F32_MADD(k, vec_all(-1.42860682e-6f), r);

    vec_f32 p = F32_MADD(vec_all(0.001394664595f), r, vec_all(0.008366698098f));
    p = F32_MADD(p, r, vec_all(0.04166627954f));
    p = F32_MADD(p, r, vec_all(0.1666654218f));
    p = F32_MADD(p, r, vec_all(0.5000000062f));
    p = F32_MADD(p * r, r, r);
    return vec_scale(p + 1.0f, k, shifted);
}

#endif
