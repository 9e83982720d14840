/* gemm_vec.h: vectors of the instruction set at hand, and multiply-add on them, for gemm's loops.
 */
#ifndef BACKEND_GEMM_VEC_H
#define BACKEND_GEMM_VEC_H

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* GEMM_MR rows of GEMM_NV vectors of sums fill the registers, but for a row of b and an element of
 * a. The preprocessor asks for GEMM_MR too. */
#if defined(__AVX512F__)
#define GEMM_MR_ROWS 12
enum { GEMM_VEC = 64, GEMM_NV = 2 };
#elif defined(__AVX2__)
#define GEMM_MR_ROWS 6
enum { GEMM_VEC = 32, GEMM_NV = 2 };
#elif defined(__aarch64__)
#define GEMM_MR_ROWS 8
enum { GEMM_VEC = 16, GEMM_NV = 3 };
#else
#define GEMM_MR_ROWS 6
enum { GEMM_VEC = 16, GEMM_NV = 2 };
#endif

enum { GEMM_MR = GEMM_MR_ROWS };
enum { GEMM_ROW = GEMM_NV * GEMM_VEC }; /* bytes of a row of b, and of a row of sums */

#if defined(__clang__)
#define GEMM_UNROLL _Pragma("unroll")
#else
#define GEMM_UNROLL _Pragma("GCC unroll 16")
#endif

typedef float vec_f32 __attribute__((vector_size(GEMM_VEC)));
typedef double vec_f64 __attribute__((vector_size(GEMM_VEC)));
typedef uint32_t vec_u32 __attribute__((vector_size(GEMM_VEC)));
typedef uint64_t vec_u64 __attribute__((vector_size(GEMM_VEC)));

#define PLAIN_MADD(a, b, c) ((c) + (a) * (b))
#if defined(__AVX512F__)
#define F32_MADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#define F64_MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif defined(__AVX2__) && defined(__FMA__)
#define F32_MADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#define F64_MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#elif defined(__aarch64__)
#define F32_MADD(a, b, c) (vec_f32) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#define F64_MADD(a, b, c) (vec_f64) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#else
#define F32_MADD PLAIN_MADD
#define F64_MADD PLAIN_MADD
#endif

/* The same for one element, in loops that the compiler turns into vector code. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define F32_MADD_1(a, b, c) __builtin_fmaf(a, b, c)
#define F64_MADD_1(a, b, c) __builtin_fma(a, b, c)
#else
#define F32_MADD_1 PLAIN_MADD
#define F64_MADD_1 PLAIN_MADD
#endif

#endif
