/* tile.c: rows of elements from any type to f32, f64 or i64, and back (ops-core.md 2.3). */
#include "backend/cpu/kernels/common.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

/* ---- f16 ----------------------------------------------------------------------------------- */

static void f16_to_f32_row(const uint16_t *src, float *dst, int64_t n)
{
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
#endif
    for (; i < n; i++)
        dst[i] = f16_to_f32(src[i]);
}

static void f32_to_f16_row(const float *src, uint16_t *dst, int64_t n)
{
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        dst[i] = f32_to_f16(src[i]);
}

/* ---- loading ------------------------------------------------------------------------------- */

#define LOAD(from_type, to_type, value)     \
    do {                                    \
        const from_type *restrict p_ = src; \
        to_type *restrict q_ = dst;         \
        for (int64_t i = 0; i < n; i++) {   \
            from_type v = p_[i];            \
            q_[i] = (value);                \
        }                                   \
    } while (0)

static void same_type(void *dst, const void *src, int64_t n, size_t size)
{
    if (dst != src)
        memcpy(dst, src, (size_t)n * size);
}

void cpu_load_f32(rlx_dtype from, const void *src, float *dst, int64_t n)
{
    if (n <= 0)
        return;
    switch (from) {
    case RLX_DTYPE_f32: same_type(dst, src, n, sizeof(float)); break;
    case RLX_DTYPE_f16: f16_to_f32_row(src, dst, n); break;
    case RLX_DTYPE_bf16: LOAD(uint16_t, float, bf16_to_f32(v)); break;
    case RLX_DTYPE_f64: LOAD(double, float, (float)v); break;
    case RLX_DTYPE_bool: LOAD(uint8_t, float, v != 0 ? 1.0f : 0.0f); break;
#define X(name, type) \
    case RLX_DTYPE_##name: LOAD(type, float, (float)v); break;
        CPU_EACH_INT(X)
#undef X
    default: break;
    }
}

void cpu_load_f64(rlx_dtype from, const void *src, double *dst, int64_t n)
{
    if (n <= 0)
        return;
    switch (from) {
    case RLX_DTYPE_f64: same_type(dst, src, n, sizeof(double)); break;
    case RLX_DTYPE_f32: LOAD(float, double, (double)v); break;
    case RLX_DTYPE_f16: LOAD(uint16_t, double, (double)f16_to_f32(v)); break;
    case RLX_DTYPE_bf16: LOAD(uint16_t, double, (double)bf16_to_f32(v)); break;
    case RLX_DTYPE_bool: LOAD(uint8_t, double, v != 0 ? 1.0 : 0.0); break;
#define X(name, type) \
    case RLX_DTYPE_##name: LOAD(type, double, (double)v); break;
        CPU_EACH_INT(X)
#undef X
    default: break;
    }
}

void cpu_load_i64(rlx_dtype from, const void *src, int64_t *dst, int64_t n)
{
    if (n <= 0)
        return;
    switch (from) {
    case RLX_DTYPE_i64:
    case RLX_DTYPE_u64: same_type(dst, src, n, sizeof(int64_t)); break;
    case RLX_DTYPE_f64: LOAD(double, int64_t, cpu_trunc_i64(v)); break;
    case RLX_DTYPE_f32: LOAD(float, int64_t, cpu_trunc_i64((double)v)); break;
    case RLX_DTYPE_f16: LOAD(uint16_t, int64_t, cpu_trunc_i64((double)f16_to_f32(v))); break;
    case RLX_DTYPE_bf16: LOAD(uint16_t, int64_t, cpu_trunc_i64((double)bf16_to_f32(v))); break;
    case RLX_DTYPE_bool: LOAD(uint8_t, int64_t, v != 0 ? 1 : 0); break;
#define X(name, type) \
    case RLX_DTYPE_##name: LOAD(type, int64_t, (int64_t)v); break;
        /* clang-format off */
        X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(u8, uint8_t)
        X(u16, uint16_t) X(u32, uint32_t)
#undef X
    default: break;
        /* clang-format on */
    }
}

/* ---- storing ------------------------------------------------------------------------------- */

/* A float as an integer of dst_type. top is the largest float below 2^bits that the float type has,
 * limit is 2^bits; where top is the type's largest value itself, limit is never reached by what top
 * lets through. The conversion works on a value inside the range whatever v is, so that it needs no
 * branch. */
#define SATURATE(from_type, via, low, top, limit, most)        \
    from_type c = v > (from_type)(low) ? v : (from_type)(low); \
    c = c < (from_type)(top) ? c : (from_type)(top);           \
    via r = (via)c;                                            \
    r = v >= (from_type)(limit) ? (via)(most) : r;             \
    r = v != v ? 0 : r

#define STORE_INT(from_type, to_type, via, low, top, limit, most) \
    do {                                                          \
        const from_type *restrict p_ = src;                       \
        to_type *restrict q_ = dst;                               \
        for (int64_t i = 0; i < n; i++) {                         \
            from_type v = p_[i];                                  \
            SATURATE(from_type, via, low, top, limit, most);      \
            q_[i] = (to_type)r;                                   \
        }                                                         \
    } while (0)

#define STORE(from_type, to_type, value) LOAD(from_type, to_type, value)

/* Cases of the integers. top_: the largest value of F below the limit. */
#define STORE_INT_CASES(F, top_i32, top_u32, top_i64, top_u64)                                   \
    case RLX_DTYPE_i8: STORE_INT(F, int8_t, int32_t, -128, 127, 127, 127); break;                \
    case RLX_DTYPE_u8: STORE_INT(F, uint8_t, int32_t, 0, 255, 255, 255); break;                  \
    case RLX_DTYPE_i16: STORE_INT(F, int16_t, int32_t, -32768, 32767, 32767, 32767); break;      \
    case RLX_DTYPE_u16: STORE_INT(F, uint16_t, int32_t, 0, 65535, 65535, 65535); break;          \
    case RLX_DTYPE_i32: STORE_INT(F, int32_t, int32_t, -0x1p31, top_i32, 0x1p31, INT32_MAX);     \
        break;                                                                                   \
    case RLX_DTYPE_u32: STORE_INT(F, uint32_t, uint32_t, 0, top_u32, 0x1p32, UINT32_MAX); break; \
    case RLX_DTYPE_i64: STORE_INT(F, int64_t, int64_t, -0x1p63, top_i64, 0x1p63, INT64_MAX);     \
        break;                                                                                   \
    case RLX_DTYPE_u64: STORE_INT(F, uint64_t, uint64_t, 0, top_u64, 0x1p64, UINT64_MAX); break

void cpu_store_f32(rlx_dtype to, const float *src, void *dst, int64_t n)
{
    if (n <= 0)
        return;
    switch (to) {
    case RLX_DTYPE_f32: same_type(dst, src, n, sizeof(float)); break;
    case RLX_DTYPE_f16: f32_to_f16_row(src, dst, n); break;
    case RLX_DTYPE_bf16: STORE(float, uint16_t, f32_to_bf16(v)); break;
    case RLX_DTYPE_f64: STORE(float, double, (double)v); break;
    case RLX_DTYPE_bool:
        STORE(float, uint8_t, v != 0);
        break;
        STORE_INT_CASES(float, 0x1.fffffep30, 0x1.fffffep31, 0x1.fffffep62, 0x1.fffffep63);
    default: break;
    }
}

void cpu_store_f64(rlx_dtype to, const double *src, void *dst, int64_t n)
{
    if (n <= 0)
        return;
    switch (to) {
    case RLX_DTYPE_f64: same_type(dst, src, n, sizeof(double)); break;
    case RLX_DTYPE_f32: STORE(double, float, (float)v); break;
    case RLX_DTYPE_f16: STORE(double, uint16_t, f64_to_f16(v)); break;
    case RLX_DTYPE_bf16: STORE(double, uint16_t, f64_to_bf16(v)); break;
    case RLX_DTYPE_bool:
        STORE(double, uint8_t, v != 0);
        break;
        STORE_INT_CASES(double, 2147483647.0, 4294967295.0, 0x1.fffffffffffffp62,
                        0x1.fffffffffffffp63);
    default: break;
    }
}

/* An integer as a double that rounds to fewer bits as the integer would: what does not fit into 53
 * bits is kept as one bit that breaks ties. */
static inline double with_sticky_bit(int64_t v)
{
    uint64_t sign = v < 0 ? ~(uint64_t)0 : 0;
    uint64_t a = ((uint64_t)v ^ sign) - sign;
    uint64_t lost = a & 0x7ff;
    uint64_t odd = (a & ~(uint64_t)0x7ff) | (lost != 0 ? 0x800 : 0);
    double r = (double)(a >> 53 ? odd : a);
    return v < 0 ? -r : r;
}

void cpu_store_i64(rlx_dtype to, const int64_t *src, void *dst, int64_t n)
{
    if (n <= 0)
        return;
    switch (to) {
    case RLX_DTYPE_i64:
    case RLX_DTYPE_u64: same_type(dst, src, n, sizeof(int64_t)); break;
    case RLX_DTYPE_i32:
    case RLX_DTYPE_u32: STORE(int64_t, uint32_t, (uint32_t)v); break;
    case RLX_DTYPE_i16:
    case RLX_DTYPE_u16: STORE(int64_t, uint16_t, (uint16_t)v); break;
    case RLX_DTYPE_i8:
    case RLX_DTYPE_u8: STORE(int64_t, uint8_t, (uint8_t)v); break;
    case RLX_DTYPE_bool: STORE(int64_t, uint8_t, v != 0); break;
    case RLX_DTYPE_f32: STORE(int64_t, float, (float)v); break;
    case RLX_DTYPE_f64: STORE(int64_t, double, (double)v); break;
    case RLX_DTYPE_f16: STORE(int64_t, uint16_t, f32_to_f16((float)v)); break; /* exact, or Inf */
    case RLX_DTYPE_bf16: STORE(int64_t, uint16_t, f64_to_bf16(with_sticky_bit(v))); break;
    default: break;
    }
}
