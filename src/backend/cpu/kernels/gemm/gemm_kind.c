/* gemm_kind.c: the inner loops of gemm, and the table of them (gemm_kind.h). */
#include "backend/cpu/kernels/gemm/gemm_kind.h"
#include "backend/cpu/kernels/gemm/gemm_amx.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

/* Each lane holds two int16_t: c + a0 * b0 + a1 * b1. */
static inline vec_u32 pair_madd(vec_u32 a, vec_u32 b, vec_u32 c)
{
#if defined(__AVX512VNNI__)
    return (vec_u32)_mm512_dpwssd_epi32((__m512i)c, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__)
    return c + (vec_u32)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return c + (vec_u32)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return c + (vec_u32)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    typedef int32_t vec_i32 __attribute__((vector_size(GEMM_VEC)));
    vec_u32 a0 = (vec_u32)((vec_i32)(a << 16) >> 16), a1 = (vec_u32)((vec_i32)a >> 16);
    vec_u32 b0 = (vec_u32)((vec_i32)(b << 16) >> 16), b1 = (vec_u32)((vec_i32)b >> 16);
    return c + a0 * b0 + a1 * b1;
#endif
}

#define MICRO(name) name##_f32
#define MICRO_T float
#define MICRO_V vec_f32
#define MICRO_MADD F32_MADD
#include "backend/cpu/kernels/gemm/gemm_micro.h"

#ifdef GEMM_HAS_I8
/* Each lane holds four bytes, unsigned in a, signed in b. */
#define QUAD_MADD(a, b, c) ((vec_u32)_mm512_dpbusd_epi32((__m512i)(c), (__m512i)(a), (__m512i)(b)))

#define MICRO(name) name##_i8
#define MICRO_T uint32_t
#define MICRO_V vec_u32
#define MICRO_MADD QUAD_MADD
#include "backend/cpu/kernels/gemm/gemm_micro.h"
#endif

typedef uint16_t half_bits __attribute__((may_alias));

#ifdef __F16C__
static inline vec_f32 read_f16(const half_bits *from)
{
#ifdef __AVX512F__
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#else
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#endif
}

#define MICRO(name) name##_f16
#define MICRO_T float
#define MICRO_V vec_f32
#define MICRO_MADD F32_MADD
#define MICRO_B half_bits
#define MICRO_READ(from, v) read_f16((from) + (v) * (GEMM_VEC / 4))
#include "backend/cpu/kernels/gemm/gemm_micro.h"
#endif

static inline vec_f32 read_bf16(const half_bits *from)
{
    typedef uint16_t halves __attribute__((vector_size(GEMM_VEC / 2), aligned(2), may_alias));
    return (vec_f32)(__builtin_convertvector(*(const halves *)from, vec_u32) << 16);
}

#define MICRO(name) name##_bf16
#define MICRO_T float
#define MICRO_V vec_f32
#define MICRO_MADD F32_MADD
#define MICRO_B half_bits
#define MICRO_READ(from, v) read_bf16((from) + (v) * (GEMM_VEC / 4))
#include "backend/cpu/kernels/gemm/gemm_micro.h"

#define MICRO(name) name##_f64
#define MICRO_T double
#define MICRO_V vec_f64
#define MICRO_MADD F64_MADD
#include "backend/cpu/kernels/gemm/gemm_micro.h"

#define MICRO(name) name##_i32
#define MICRO_T uint32_t
#define MICRO_V vec_u32
#define MICRO_MADD PLAIN_MADD
#include "backend/cpu/kernels/gemm/gemm_micro.h"

#define MICRO(name) name##_i64
#define MICRO_T uint64_t
#define MICRO_V vec_u64
#define MICRO_MADD PLAIN_MADD
#include "backend/cpu/kernels/gemm/gemm_micro.h"

#define MICRO(name) name##_i16
#define MICRO_T uint32_t
#define MICRO_V vec_u32
#define MICRO_MADD pair_madd
#include "backend/cpu/kernels/gemm/gemm_micro.h"

enum { WORDS = GEMM_ROW / 4, PAIRS = GEMM_ROW / 8 };

static const struct gemm_loop loops[GEMM_KINDS] = {
    [GEMM_F32] = {micro_f32, GEMM_MR, WORDS, .sum = 4, .size = 4, .step = 1, .stretch = 256,
#ifdef __F16C__
                  .with_f16 = micro_f16,
#endif
                  .with_bf16 = micro_bf16},
    [GEMM_F64] = {micro_f64, GEMM_MR, PAIRS, .sum = 8, .size = 8, .step = 1, .stretch = 256},
    [GEMM_I32] = {micro_i32, GEMM_MR, WORDS, .sum = 4, .size = 4, .step = 1, .stretch = 256},
    [GEMM_I64] = {micro_i64, GEMM_MR, PAIRS, .sum = 8, .size = 8, .step = 1, .stretch = 256},
    [GEMM_I16] = {micro_i16, GEMM_MR, WORDS, .sum = 4, .size = 2, .step = 2, .stretch = 512},
#ifdef GEMM_HAS_I8
    [GEMM_I8] = {micro_i8, GEMM_MR, WORDS, .sum = 4, .size = 1, .step = 4, .stretch = 1024},
#endif
#ifdef GEMM_AMX
    [GEMM_I8_AMX] = {amx_micro_u8_i8, AMX_LINES, AMX_LINES, .sum = 4, .size = 1, .step = 64,
                     .stretch = 2048, .enter = amx_enter, .leave = amx_leave},
    [GEMM_BF16] = {amx_micro_bf16, AMX_LINES, AMX_LINES, .sum = 4, .size = 2, .step = 32,
                   .stretch = 1024, .enter = amx_enter, .leave = amx_leave},
#endif
};

const struct gemm_loop *gemm_loop_of(enum gemm_kind kind)
{
    return &loops[kind];
}
