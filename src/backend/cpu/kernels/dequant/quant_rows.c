/* quant_rows.c: blocks of packed weights as f32 (quant_rows.h, ops-special.md 1.4).
 *
 * A format is one function for one block, which goes through it sixteen elements at a time: their
 * codes as signed bytes, in a vector, then that times their scale, less their offset. Every product
 * and every sum is rounded by itself, in the manual's order. */
#include "backend/cpu/kernels/dequant/quant_rows.h"

#include "backend/cpu/kernels/dequant/e2m1.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef int8_t codes16 __attribute__((vector_size(16)));
typedef uint32_t words16 __attribute__((vector_size(16)));
typedef uint64_t pair __attribute__((vector_size(16)));

INLINE float f16_at(const uint8_t *p)
{
#ifdef __F16C__
    return _cvtsh_ss((uint16_t)(p[0] | p[1] << 8));
#else
    return f16_to_f32((uint16_t)(p[0] | p[1] << 8));
#endif
}

INLINE float f32_at(const uint8_t *p)
{
    return half_bits_f32((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                         (uint32_t)p[3] << 24);
}

INLINE bytes16 bytes_at(const uint8_t *p)
{
    bytes16 v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- codes times scales -------------------------------------------------------------------- */

/* gcc widens bytes well in loops for SSE2 and NEON, but not for the wider vectors. */
INLINE void widen(codes16 q, float *restrict to)
{
#if defined(__AVX512F__)
    _mm512_storeu_ps(to, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)q)));
#elif defined(__AVX2__)
    __m128i high = _mm_unpackhi_epi64((__m128i)q, (__m128i)q);
    _mm256_storeu_ps(to, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)q)));
    _mm256_storeu_ps(to + 8, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high)));
#else
    int8_t code[16];

    memcpy(code, &q, sizeof code);
    for (int i = 0; i < 16; i++)
        to[i] = (float)code[i];
#endif
}

INLINE void times(codes16 q, float scale, float *restrict out)
{
    float v[16];

    widen(q, v);
    for (int i = 0; i < 16; i++)
        out[i] = scale * v[i];
}

INLINE void times_plus(codes16 q, float scale, float offset, float *restrict out)
{
    float v[16];

    widen(q, v);
    for (int i = 0; i < 16; i++)
        out[i] = scale * v[i] + offset;
}

INLINE void times_less(codes16 q, float scale, float offset, float *restrict out)
{
    float v[16];

    widen(q, v);
    for (int i = 0; i < 16; i++)
        out[i] = scale * v[i] - offset;
}

/* ---- codes --------------------------------------------------------------------------------- */

/* Of bytes with two codes each: the low halves, the high ones. */
INLINE codes16 low_half(bytes16 v)
{
    return (codes16)(v & 15);
}

INLINE codes16 high_half(bytes16 v)
{
    return (codes16)(v >> 4);
}

/* `value` where bit j is set, otherwise 0. */
INLINE codes16 where_bit(bytes16 v, int j, int value)
{
    return (codes16)((v & (uint8_t)(1 << j)) != 0) & (int8_t)value;
}

/* 16 for each bit of two bytes that is set: the fifth bits of sixteen codes. */
INLINE codes16 fifth_bits(const uint8_t *qh)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return (codes16)_mm_maskz_set1_epi8((__mmask16)(qh[0] | qh[1] << 8), 16);
#else
    const bytes16 bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
#if defined(__SSSE3__)
    const bytes16 first_second = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    __m128i both = _mm_cvtsi32_si128(qh[0] | qh[1] << 8);
    bytes16 v = (bytes16)_mm_shuffle_epi8(both, (__m128i)first_second);
#else
    const uint64_t each = 0x0101010101010101;
    bytes16 v = (bytes16)(pair){qh[0] * each, qh[1] * each};
#endif
    return (codes16)((v & bit) != 0) & 16;
#endif
}

/* v: from 0 to 15. */
INLINE codes16 look_up(const int8_t *table, codes16 v)
{
#if defined(__SSSE3__)
    __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);
    return (codes16)_mm_shuffle_epi8(t, (__m128i)v);
#elif defined(__aarch64__)
    return (codes16)vqtbl1q_s8(vld1q_s8(table), (uint8x16_t)v);
#else
    int8_t code[16];

    memcpy(code, &v, sizeof code);
    for (int i = 0; i < 16; i++)
        code[i] = table[code[i]];
    memcpy(&v, code, sizeof v);
    return v;
#endif
}

/* What the codes of IQ4_NL and IQ4_XS stand for. */
INLINE codes16 uneven(codes16 v)
{
    static const int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

    return look_up(table, v);
}

/* ---- blocks of 32 -------------------------------------------------------------------------- */

INLINE void q4_0(const uint8_t *b, float *restrict out)
{
    bytes16 v = bytes_at(b + 2);
    float d = f16_at(b);

    times(low_half(v) - 8, d, out);
    times(high_half(v) - 8, d, out + 16);
}

INLINE void q4_1(const uint8_t *b, float *restrict out)
{
    bytes16 v = bytes_at(b + 4);
    float d = f16_at(b), m = f16_at(b + 2);

    times_plus(low_half(v), d, m, out);
    times_plus(high_half(v), d, m, out + 16);
}

INLINE void q5_0(const uint8_t *b, float *restrict out)
{
    bytes16 v = bytes_at(b + 6);
    float d = f16_at(b);

    times(low_half(v) + fifth_bits(b + 2) - 16, d, out);
    times(high_half(v) + fifth_bits(b + 4) - 16, d, out + 16);
}

INLINE void q5_1(const uint8_t *b, float *restrict out)
{
    bytes16 v = bytes_at(b + 8);
    float d = f16_at(b), m = f16_at(b + 2);

    times_plus(low_half(v) + fifth_bits(b + 4), d, m, out);
    times_plus(high_half(v) + fifth_bits(b + 6), d, m, out + 16);
}

INLINE void q8_0(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b);

    times((codes16)bytes_at(b + 2), d, out);
    times((codes16)bytes_at(b + 18), d, out + 16);
}

INLINE void q8_1(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b);

    times((codes16)bytes_at(b + 4), d, out);
    times((codes16)bytes_at(b + 20), d, out + 16);
}

INLINE void iq4_nl(const uint8_t *b, float *restrict out)
{
    bytes16 v = bytes_at(b + 2);
    float d = f16_at(b);

    times(uneven(low_half(v)), d, out);
    times(uneven(high_half(v)), d, out + 16);
}

INLINE void mxfp4(const uint8_t *b, float *restrict out)
{
    bytes16 v = bytes_at(b + 1);
    float d = e2m1_power(b[0]);

    times(look_up(e2m1_twice, low_half(v)), d, out);
    times(look_up(e2m1_twice, high_half(v)), d, out + 16);
}

/* ---- blocks of 64 -------------------------------------------------------------------------- */

/* Sixteen codes in eight bytes: the low halves, then the high ones. */
INLINE bytes16 halves_of_8(const uint8_t *p)
{
    uint64_t both;

    memcpy(&both, p, sizeof both);
    return (bytes16)(pair){both, both >> 4} & 15;
}

INLINE void nvfp4(const uint8_t *b, float *restrict out)
{
    for (int j = 0; j < 4; j++)
        times(look_up(e2m1_twice, (codes16)halves_of_8(b + 4 + 8 * j)), e2m1_scale(b[j]),
              out + 16 * j);
}

/* ---- blocks of 256 ------------------------------------------------------------------------- */

/* Two bits each: run j of sixteen has bits 2 (j / 2 % 4) of bytes 16 (j % 2) on, of the 32 bytes
 * that each half of the block has. */
INLINE codes16 crumbs(const uint8_t *qs, int j)
{
    return (codes16)(bytes_at(qs + 32 * (j / 8) + 16 * (j % 2)) >> (uint8_t)(2 * (j % 8 / 2)) & 3);
}

INLINE void q2_k(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b + 80), dmin = f16_at(b + 82);

    UNROLL
    for (int j = 0; j < 16; j++)
        times_less(crumbs(b + 16, j), d * (float)(b[j] & 15), dmin * (float)(b[j] >> 4),
                   out + 16 * j);
}

/* Six-bit scales of sixteen runs: the low four bits in eight bytes, the others in four. */
INLINE int scale_q3(const uint8_t *sc, int j)
{
    int low = j < 8 ? sc[j] & 15 : sc[j - 8] >> 4;

    return (low | (sc[8 + j % 4] >> 2 * (j / 4) & 3) << 4) - 32;
}

INLINE void q3_k(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b + 108);

    UNROLL
    for (int j = 0; j < 16; j++) { /* a high bit that is not set takes 4 away */
        codes16 q = crumbs(b + 32, j) - 4 + where_bit(bytes_at(b + 16 * (j % 2)), j / 2, 4);
        times(q, d * (float)scale_q3(b + 96, j), out + 16 * j);
    }
}

/* Six-bit scales and offsets of eight runs of 32, in twelve bytes. */
INLINE int scale_k(const uint8_t *sc, int j)
{
    return j < 4 ? sc[j] & 63 : (sc[j + 4] & 15) | (sc[j - 4] >> 6) << 4;
}

INLINE int offset_k(const uint8_t *sc, int j)
{
    return j < 4 ? sc[j + 4] & 63 : sc[j + 4] >> 4 | (sc[j] >> 6) << 4;
}

/* Sixteen codes of run j, from element `at` of it on: the low halves of 32 bytes, then their high
 * halves, then those of the next 32 bytes. */
INLINE codes16 nibbles_k(const uint8_t *qs, int j, int at)
{
    bytes16 v = bytes_at(qs + 32 * (j / 2) + at);

    return j % 2 ? high_half(v) : low_half(v);
}

INLINE void q4_k(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b), dmin = f16_at(b + 2);

    UNROLL
    for (int j = 0; j < 8; j++) {
        float scale = d * (float)scale_k(b + 4, j), offset = dmin * (float)offset_k(b + 4, j);
        for (int at = 0; at < 32; at += 16)
            times_less(nibbles_k(b + 16, j, at), scale, offset, out + 32 * j + at);
    }
}

INLINE void q5_k(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b), dmin = f16_at(b + 2);

    UNROLL
    for (int j = 0; j < 8; j++) {
        float scale = d * (float)scale_k(b + 4, j), offset = dmin * (float)offset_k(b + 4, j);
        for (int at = 0; at < 32; at += 16)
            times_less(nibbles_k(b + 48, j, at) + where_bit(bytes_at(b + 16 + at), j, 16), scale,
                       offset, out + 32 * j + at);
    }
}

/* Each half of the block: low halves of 64 bytes, their high halves; two bits more as in q2_k. */
INLINE void q6_k(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b + 208);

    UNROLL
    for (int j = 0; j < 16; j++) {
        bytes16 v = bytes_at(b + 64 * (j / 8) + 16 * (j % 4));
        codes16 low = j % 8 < 4 ? low_half(v) : high_half(v);
        times(low + crumbs(b + 128, j) * 16 - 32, d * (float)(int8_t)b[192 + j], out + 16 * j);
    }
}

INLINE void q8_k(const uint8_t *b, float *restrict out)
{
    float d = f32_at(b);

    for (int i = 0; i < 256; i += 16)
        times((codes16)bytes_at(b + 4 + i), d, out + i);
}

INLINE void iq4_xs(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b);

    UNROLL
    for (int j = 0; j < 8; j++) {
        int low = b[4 + j / 2] >> 4 * (j % 2) & 15, high = b[2 + j / 4] >> 2 * (j % 4) & 3;
        float scale = d * (float)((low | high << 4) - 32);
        bytes16 v = bytes_at(b + 8 + 16 * j);
        times(uneven(low_half(v)), scale, out + 32 * j);
        times(uneven(high_half(v)), scale, out + 32 * j + 16);
    }
}

/* -1, 0 or 1: the first digit, to base 3, of a fraction of 256. */
INLINE codes16 first_digit(bytes16 v)
{
    return -1 - (codes16)(v > 85) - (codes16)(v > 170);
}

INLINE void tq1_0(const uint8_t *b, float *restrict out)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    const bytes16 by_four = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
    float d = f16_at(b + 52);
    uint32_t last;

    UNROLL
    for (int j = 0; j < 15; j++) {
        int n = j < 10 ? j / 2 : j - 10;
        bytes16 v = bytes_at(b + (j < 10 ? 16 * (j % 2) : 32));
        times(first_digit(v * power[n]), d, out + 16 * j);
    }
    memcpy(&last, b + 48, sizeof last);
    bytes16 v = (bytes16)(words16){last, last, last, last};
    times(first_digit(v * by_four), d, out + 240);
}

INLINE void tq2_0(const uint8_t *b, float *restrict out)
{
    float d = f16_at(b + 64);

    UNROLL
    for (int j = 0; j < 16; j++)
        times(crumbs(b, j) - 1, d, out + 16 * j);
}

/* ---- all of them --------------------------------------------------------------------------- */

/* clang-format off */
#define EACH_FORMAT(X)                                                      \
    X(q4_0, 32, 18)   X(q4_1, 32, 20)   X(q5_0, 32, 22)   X(q5_1, 32, 24)   \
    X(q8_0, 32, 34)   X(q8_1, 32, 36)   X(iq4_nl, 32, 18) X(iq4_xs, 256, 136) \
    X(q2_k, 256, 84)  X(q3_k, 256, 110) X(q4_k, 256, 144) X(q5_k, 256, 176) \
    X(q6_k, 256, 210) X(q8_k, 256, 292) X(mxfp4, 32, 17)  X(nvfp4, 64, 36)  \
    X(tq1_0, 256, 54) X(tq2_0, 256, 66)
/* clang-format on */

#define BLOCKS(word, elems, bytes)                                                      \
    static void blocks_##word(const uint8_t *from, int64_t blocks, float *restrict out) \
    {                                                                                   \
        for (int64_t i = 0; i < blocks; i++)                                            \
            word(from + i * (bytes), out + i * (elems));                                \
    }
EACH_FORMAT(BLOCKS)

void quant_blocks(int32_t scheme, const uint8_t *from, int64_t blocks, float *restrict out)
{
    switch (scheme) {
#define X(word, elems, bytes) \
    case RLX_QUANT_SCHEME_##word: blocks_##word(from, blocks, out); break;
        EACH_FORMAT(X)
#undef X
    default: break;
    }
}

void quant_rows_read(const struct quant_rows *r, int64_t row, int64_t k, int64_t n, float *out)
{
    const uint8_t *at = r->data + row * r->row + k / r->elems * r->bytes;
    int64_t skip = k % r->elems;
    float one[QUANT_ROWS_BLOCK];

    if (skip > 0 && n > 0) {
        int64_t part = cpu_min_i64(n, r->elems - skip);
        quant_blocks(r->scheme, at, 1, one);
        memcpy(out, one + skip, (size_t)part * sizeof *out);
        out += part;
        n -= part;
        at += r->bytes;
    }
    quant_blocks(r->scheme, at, n / r->elems, out);
    if (n % r->elems != 0) {
        int64_t whole = n / r->elems;
        quant_blocks(r->scheme, at + whole * r->bytes, 1, one);
        memcpy(out + whole * r->elems, one, (size_t)(n % r->elems) * sizeof *out);
    }
}
