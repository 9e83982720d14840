/* dequant_q8_vnni.c: few rows of x times packed rows of w, by AVX-512 (dequant_q8.h).
 *
 * The weights are read once, so all is well as long as the arithmetic is faster than the memory.
 * Codes leave their bytes by shifts and masks, as unsigned bytes, in whatever order is cheapest; x
 * was brought into the same order. What makes codes unsigned is taken back with sums over x:
 *
 *     sum((q + 128) x) - 128 sum(x)
 *
 * which are exact. Scales are spread over the lanes that their codes' sums end up in. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#ifdef Q8_VNNI

#include <float.h>
#include <immintrin.h>

#include "backend/cpu/kernels/dequant/e2m1.h"
#include "rlx/graph.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS_MOST = 4 }; /* of x, with one row of w */
enum { AHEAD = 4096 };  /* bytes that are asked for before they are wanted */

/* Of blocks to come. Past the end it does no harm. */
INLINE void ask_for(const uint8_t *at, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)at + AHEAD + i, _MM_HINT_T0);
}

INLINE uint16_t u16_at(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE float f16_at(const uint8_t *p)
{
    return _cvtsh_ss(u16_at(p));
}

INLINE __m128i load_128(const void *p)
{
    return _mm_loadu_si128(p);
}

INLINE __m512i both_halves(const uint8_t *p)
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)p));
}

/* What the codes of IQ4_NL and IQ4_XS stand for, and 128 more. */
INLINE __m512i uneven(__m512i code)
{
    const __m128i value =
        _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, (char)129, (char)141, (char)153, (char)166,
                      (char)181, (char)197, (char)217, (char)241);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(value), code);
}

/* What the codes of MXFP4 stand for, and 12 more. */
INLINE __m512i twice_e2m1(__m512i code)
{
    const __m128i value = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(value), code);
}

/* ---- blocks of 32, four at a time ---------------------------------------------------------- */

/* Sixteen bytes of each of four blocks. */
INLINE __m512i four_pieces(const uint8_t *p, int64_t apart)
{
    __m256i low =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(p)), load_128(p + apart), 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(p + 2 * apart)),
                                           load_128(p + 3 * apart), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE uint64_t four_words(const uint8_t *p, int64_t apart)
{
    return (uint64_t)u16_at(p) | (uint64_t)u16_at(p + apart) << 16 |
           (uint64_t)u16_at(p + 2 * apart) << 32 | (uint64_t)u16_at(p + 3 * apart) << 48;
}

/* A number of f16 of each of four blocks, in four lanes each. */
INLINE __m512 four_numbers(const uint8_t *p, int64_t apart)
{
    const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    __m128 four = _mm_cvtph_ps(_mm_cvtsi64_si128((int64_t)four_words(p, apart)));
    return _mm512_permutexvar_ps(spread, _mm512_castps128_ps512(four));
}

/* A power of two of each of four blocks, in four lanes each. */
INLINE __m512 four_powers(const uint8_t *p, int64_t apart)
{
    const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    float power[4];

    for (int i = 0; i < 4; i++)
        power[i] = e2m1_finite_power(p[i * apart]);
    return _mm512_permutexvar_ps(spread, _mm512_castps128_ps512(_mm_loadu_ps(power)));
}

struct two {
    __m512i first, second; /* halves of four blocks */
};

INLINE struct two four_nibbles(const uint8_t *p, int64_t apart)
{
    const __m512i mask = _mm512_set1_epi8(15);
    __m512i both = four_pieces(p, apart);
    return (struct two){_mm512_and_si512(both, mask),
                        _mm512_and_si512(_mm512_srli_epi16(both, 4), mask)};
}

/* The fifth bits: a u32 per block. */
INLINE struct two four_fifths(struct two q, const uint8_t *p, int64_t apart)
{
    const __m512i bit = _mm512_set1_epi8(16);
    __mmask64 first = _cvtu64_mask64(four_words(p, apart));
    __mmask64 second = _cvtu64_mask64(four_words(p + 2, apart));
    return (struct two){_mm512_mask_add_epi8(q.first, first, q.first, bit),
                        _mm512_mask_add_epi8(q.second, second, q.second, bit)};
}

INLINE struct two four_bytes(const uint8_t *p, int64_t apart)
{
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    return (struct two){_mm512_xor_si512(four_pieces(p, apart), sign),
                        _mm512_xor_si512(four_pieces(p + 16, apart), sign)};
}

INLINE int64_t bytes_of(int scheme)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q4_1: return 20;
    case RLX_QUANT_SCHEME_q5_0: return 22;
    case RLX_QUANT_SCHEME_q5_1: return 24;
    case RLX_QUANT_SCHEME_q8_0: return 34;
    case RLX_QUANT_SCHEME_q8_1: return 36;
    case RLX_QUANT_SCHEME_mxfp4: return 17;
    default: return 18; /* q4_0, iq4_nl */
    }
}

/* Codes as unsigned bytes: larger by what offset_of in dequant_q8_x.c says. */
INLINE struct two four_codes(int scheme, const uint8_t *b)
{
    int64_t apart = bytes_of(scheme);

    switch (scheme) {
    case RLX_QUANT_SCHEME_q4_1: return four_nibbles(b + 4, apart);
    case RLX_QUANT_SCHEME_q5_0: return four_fifths(four_nibbles(b + 6, apart), b + 2, apart);
    case RLX_QUANT_SCHEME_q5_1: return four_fifths(four_nibbles(b + 8, apart), b + 4, apart);
    case RLX_QUANT_SCHEME_q8_0: return four_bytes(b + 2, apart);
    case RLX_QUANT_SCHEME_q8_1: return four_bytes(b + 4, apart);
    case RLX_QUANT_SCHEME_iq4_nl: {
        struct two q = four_nibbles(b + 2, apart);
        return (struct two){uneven(q.first), uneven(q.second)};
    }
    case RLX_QUANT_SCHEME_mxfp4: {
        struct two q = four_nibbles(b + 1, apart);
        return (struct two){twice_e2m1(q.first), twice_e2m1(q.second)};
    }
    default: return four_nibbles(b + 2, apart);
    }
}

/* Four blocks of w with `rows` rows of x. */
INLINE void four_madd(int scheme, int rows, const uint8_t *b, const struct q8_four *const *x,
                      int64_t i, __m512 *sum)
{
    int64_t apart = bytes_of(scheme);
    bool with_min = scheme == RLX_QUANT_SCHEME_q4_1 || scheme == RLX_QUANT_SCHEME_q5_1;
    struct two q = four_codes(scheme, b);
    bool powers = scheme == RLX_QUANT_SCHEME_mxfp4;
    __m512 scale = powers ? four_powers(b, apart) : four_numbers(b, apart);
    __m512 min = _mm512_setzero_ps();

    if (with_min)
        min = four_numbers(b + 2, apart);
    for (int r = 0; r < rows; r++) {
        const struct q8_four *f = x[r] + i;
        __m512i dot =
            _mm512_dpbusd_epi32(_mm512_load_si512(f->offset), q.first, _mm512_load_si512(f->code));
        dot = _mm512_dpbusd_epi32(dot, q.second, _mm512_load_si512(f->code + 64));
        __m512 v = _mm512_cvtepi32_ps(dot), by = _mm512_load_ps(f->scale);
        if (powers) /* some are so small that first they have to meet a sum of codes */
            sum[r] = _mm512_fmadd_ps(_mm512_mul_ps(v, scale), by, sum[r]);
        else
            sum[r] = _mm512_fmadd_ps(v, _mm512_mul_ps(scale, by), sum[r]);
        if (with_min)
            sum[r] = _mm512_fmadd_ps(min, _mm512_load_ps(f->sum), sum[r]);
    }
}

INLINE void dots_32(int scheme, int rows, const uint8_t *w, const void *const *coded,
                    int64_t blocks, float *out)
{
    const struct q8_four *x[ROWS_MOST];
    int64_t apart = bytes_of(scheme), i = 0;
    __m512 sum[ROWS_MOST];

    for (int r = 0; r < rows; r++) {
        x[r] = coded[r];
        sum[r] = _mm512_setzero_ps();
    }
    for (; i < blocks / 4; i++, w += 4 * apart) {
        ask_for(w, 4 * apart);
        four_madd(scheme, rows, w, x, i, sum);
    }
    if (blocks % 4) {
        uint8_t last[4 * 36] = {0};
        memcpy(last, w, (size_t)(blocks % 4 * apart));
        four_madd(scheme, rows, last, x, i, sum);
    }
    for (int r = 0; r < rows; r++)
        out[r] = _mm512_reduce_add_ps(sum[r]);
}

/* ---- blocks of 256 ------------------------------------------------------------------------- */

/* A block of w: 256 unsigned codes, for each vector of them its scales in the lanes of pairs, and
 * mins of 16 or of 8 sub-blocks; all integers of 16 bits but for the codes. */
struct wide {
    __m512i code[4], scale[4];
    __m256i min_16;
    __m128i min_32;
    float d, dmin;
};

/* Scales of 16 sub-blocks, i16, for the pairs of 64 codes in their order. */
INLINE void spread_16(struct wide *b, __m256i scale)
{
    const __m512i first =
        _mm512_setr_epi32(0, 0, 0, 0, 0x10001, 0x10001, 0x10001, 0x10001, 0x20002, 0x20002, 0x20002,
                          0x20002, 0x30003, 0x30003, 0x30003, 0x30003);
    __m512i all = _mm512_castsi256_si512(scale);

    for (int i = 0; i < 4; i++)
        b->scale[i] = _mm512_permutexvar_epi16(
            _mm512_add_epi16(first, _mm512_set1_epi16((short)(4 * i))), all);
}

/* Scales of 8 sub-blocks, in the order 0 2, 1 3, 4 6, 5 7. */
INLINE void spread_32(struct wide *b, __m128i scale)
{
    const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0x20002, 0x20002, 0x20002,
                                            0x20002, 0x20002, 0x20002, 0x20002, 0x20002);
    __m512i all = _mm512_castsi128_si512(scale);

    for (int i = 0; i < 4; i++)
        b->scale[i] = _mm512_permutexvar_epi16(
            _mm512_add_epi16(first, _mm512_set1_epi16((short)(i % 2 + i / 2 * 4))), all);
}

/* Eight scales of six bits, then eight mins, as bytes. */
INLINE __m128i scales_6(const uint8_t *sc)
{
    uint32_t a, b, c;

    memcpy(&a, sc, 4);
    memcpy(&b, sc + 4, 4);
    memcpy(&c, sc + 8, 4);
    return _mm_setr_epi32(
        (int)(a & 0x3f3f3f3f), (int)((c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4),
        (int)(b & 0x3f3f3f3f), (int)((c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4));
}

INLINE void open_q4_k(struct wide *b, const uint8_t *p, const uint8_t *qs)
{
    const __m512i mask = _mm512_set1_epi8(15);
    __m256i words = _mm256_cvtepu8_epi16(scales_6(p + 4));

    for (int i = 0; i < 2; i++) {
        __m512i both = _mm512_loadu_si512(qs + 64 * i);
        b->code[2 * i] = _mm512_and_si512(both, mask);
        b->code[2 * i + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
    }
    spread_32(b, _mm256_castsi256_si128(words));
    b->min_32 = _mm256_extracti128_si256(words, 1);
    b->d = f16_at(p);
    b->dmin = f16_at(p + 2);
}

INLINE void open_q5_k(struct wide *b, const uint8_t *p)
{
    const __m512i bit = _mm512_set1_epi8(16);
    __m512i high = both_halves(p + 16);

    open_q4_k(b, p, p + 48);
    for (int i = 0; i < 4; i++) {
        int j = i % 2 + i / 2 * 4; /* this sub-block, and two later */
        __m512i at = _mm512_inserti64x4(_mm512_set1_epi8((char)(1 << j)),
                                        _mm256_set1_epi8((char)(4 << j)), 1);
        __mmask64 set = _mm512_test_epi8_mask(high, at);
        b->code[i] = _mm512_mask_add_epi8(b->code[i], set, b->code[i], bit);
    }
}

/* 128 codes of two bits in 32 bytes. */
INLINE void two_bits(const uint8_t *qs, __m512i *code)
{
    const __m512i mask = _mm512_set1_epi8(3);
    const __m512i by = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    __m512i all = _mm512_srlv_epi16(both_halves(qs), by);

    code[0] = _mm512_and_si512(all, mask);
    code[1] = _mm512_and_si512(_mm512_srli_epi16(all, 4), mask);
}

INLINE void open_q2_k(struct wide *b, const uint8_t *p)
{
    const __m128i mask = _mm_set1_epi8(15);
    __m128i sc = load_128(p);

    two_bits(p + 16, b->code);
    two_bits(p + 48, b->code + 2);
    spread_16(b, _mm256_cvtepu8_epi16(_mm_and_si128(sc, mask)));
    b->min_16 = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(sc, 4), mask));
    b->d = f16_at(p + 80);
    b->dmin = f16_at(p + 82);
}

/* Sixteen scales of six bits: the low four in eight bytes, the high two in four. */
INLINE __m128i scales_q3(const uint8_t *sc)
{
    uint32_t a, b, high;

    memcpy(&a, sc, 4);
    memcpy(&b, sc + 4, 4);
    memcpy(&high, sc + 8, 4);
    __m128i low = _mm_setr_epi32((int)(a & 0x0f0f0f0f), (int)(b & 0x0f0f0f0f),
                                 (int)(a >> 4 & 0x0f0f0f0f), (int)(b >> 4 & 0x0f0f0f0f));
    __m128i two = _mm_setr_epi32((int)(high & 0x03030303), (int)(high >> 2 & 0x03030303),
                                 (int)(high >> 4 & 0x03030303), (int)(high >> 6 & 0x03030303));
    return _mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(two, 4)), _mm_set1_epi8(32));
}

INLINE void open_q3_k(struct wide *b, const uint8_t *p)
{
    const __m512i bit = _mm512_set1_epi8(4);
    __m512i high = both_halves(p);

    two_bits(p + 32, b->code);
    two_bits(p + 64, b->code + 2);
    for (int i = 0; i < 4; i++) {
        __m512i at = _mm512_inserti64x4(_mm512_set1_epi8((char)(1 << 2 * i)),
                                        _mm256_set1_epi8((char)(2 << 2 * i)), 1);
        __mmask64 set = _mm512_test_epi8_mask(high, at);
        b->code[i] = _mm512_mask_add_epi8(b->code[i], set, b->code[i], bit);
    }
    spread_16(b, _mm256_cvtepi8_epi16(scales_q3(p + 96)));
    b->d = f16_at(p + 108);
}

INLINE void open_q6_k(struct wide *b, const uint8_t *p)
{
    const __m512i low = _mm512_set1_epi8(15), high = _mm512_set1_epi8(0x30);
    const __m512i up = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    const __m512i down = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);

    for (int i = 0; i < 2; i++) {
        __m512i four = _mm512_loadu_si512(p + 64 * i), two = both_halves(p + 128 + 32 * i);
        __m512i a = _mm512_and_si512(_mm512_sllv_epi16(two, up), high);
        __m512i c = _mm512_and_si512(_mm512_srlv_epi16(two, down), high);
        /* a | (four & low) */
        b->code[2 * i] = _mm512_ternarylogic_epi64(a, four, low, 0xf8);
        b->code[2 * i + 1] = _mm512_ternarylogic_epi64(c, _mm512_srli_epi16(four, 4), low, 0xf8);
    }
    spread_16(b, _mm256_cvtepi8_epi16(load_128(p + 192)));
    b->d = f16_at(p + 208);
}

/* Codes with pairs of x, times their scales: 32 bits hold the sums of a whole block. */
INLINE __m512i scaled_dots(const struct wide *b, const struct q8_block *x, bool with_offset)
{
    __m512i sum = _mm512_setzero_si512();

    for (int i = 0; i < 4; i++) {
        __m512i pairs = _mm512_maddubs_epi16(b->code[i], _mm512_load_si512(x->code + 64 * i));
        if (with_offset)
            pairs = _mm512_add_epi16(pairs, _mm512_load_si512(x->pair_offset + 32 * i));
        sum = _mm512_dpwssd_epi32(sum, pairs, b->scale[i]);
    }
    return sum;
}

/* sum(min * sum of x) over the sub-blocks. */
INLINE __m512 mins_by_16(const struct wide *b, const struct q8_block *x)
{
    __m256i sum = _mm256_load_si256((const void *)x->sum_16);
    return _mm512_cvtepi32_ps(_mm512_zextsi256_si512(_mm256_madd_epi16(b->min_16, sum)));
}

INLINE __m512 mins_by_32(const struct wide *b, const struct q8_block *x)
{
    __m128i sum = _mm_load_si128((const void *)x->sum_32);
    return _mm512_cvtepi32_ps(_mm512_zextsi128_si512(_mm_madd_epi16(b->min_32, sum)));
}

INLINE void open_block(int scheme, struct wide *b, const uint8_t *p)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q2_k: open_q2_k(b, p); break;
    case RLX_QUANT_SCHEME_q3_k: open_q3_k(b, p); break;
    case RLX_QUANT_SCHEME_q4_k: open_q4_k(b, p, p + 16); break;
    case RLX_QUANT_SCHEME_q5_k: open_q5_k(b, p); break;
    default: open_q6_k(b, p); break;
    }
}

/* One block with one row of x. min: sums that are to be taken away. */
INLINE void block_madd(int scheme, const struct wide *b, const struct q8_block *x, __m512 *sum,
                       __m512 *min)
{
    bool is_signed = scheme == RLX_QUANT_SCHEME_q3_k || scheme == RLX_QUANT_SCHEME_q6_k;
    __m512i dot = scaled_dots(b, x, is_signed);

    *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(b->d * x->scale), *sum);
    if (!is_signed) {
        __m512 m = scheme == RLX_QUANT_SCHEME_q2_k ? mins_by_16(b, x) : mins_by_32(b, x);
        *min = _mm512_fmadd_ps(m, _mm512_set1_ps(b->dmin * x->scale), *min);
    }
}

INLINE void dots_256(int scheme, int64_t bytes, int rows, const uint8_t *w,
                     const void *const *coded, int64_t blocks, float *out)
{
    __m512 sum[ROWS_MOST], min[ROWS_MOST];

    for (int r = 0; r < rows; r++)
        sum[r] = min[r] = _mm512_setzero_ps();
    for (int64_t i = 0; i < blocks; i++, w += bytes) {
        struct wide b;
        ask_for(w, bytes);
        open_block(scheme, &b, w);
        for (int r = 0; r < rows; r++)
            block_madd(scheme, &b, (const struct q8_block *)coded[r] + i, &sum[r], &min[r]);
    }
    for (int r = 0; r < rows; r++)
        out[r] = _mm512_reduce_add_ps(_mm512_sub_ps(sum[r], min[r]));
}

/* Bytes as they are; NaN marks elements that overflow. */
INLINE void dots_q8_k(int rows, const uint8_t *w, const void *const *coded, int64_t blocks,
                      float *out)
{
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    __m512 sum[ROWS_MOST];

    for (int r = 0; r < rows; r++)
        sum[r] = _mm512_setzero_ps();
    for (int64_t i = 0; i < blocks; i++, w += 292) {
        float d;
        memcpy(&d, w, sizeof d);
        d = fabsf(d) < FLT_MAX / 128 ? d : NAN;
        ask_for(w, 292);
        for (int r = 0; r < rows; r++) {
            const struct q8_block *x = (const struct q8_block *)coded[r] + i;
            __m512i dot = _mm512_load_si512(x->lane_offset);
            for (int v = 0; v < 4; v++)
                dot = _mm512_dpbusd_epi32(
                    dot, _mm512_xor_si512(_mm512_loadu_si512(w + 4 + 64 * v), sign),
                    _mm512_load_si512(x->code + 64 * v));
            sum[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(d * x->scale), sum[r]);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = _mm512_reduce_add_ps(sum[r]);
}

/* Eight scales of six bits, less 32, as i16: the low four in nibbles, the high two in a u16. */
INLINE __m128i scales_iq4(const uint8_t *b)
{
    uint64_t low, high = u16_at(b + 2);
    uint32_t nibble;

    memcpy(&nibble, b + 4, 4);
    low = _pdep_u64(nibble, 0x0f0f0f0f0f0f0f0f);
    high = _pdep_u64(high, 0x3030303030303030);
    __m128i words = _mm_cvtepu8_epi16(_mm_cvtsi64_si128((int64_t)(low | high)));
    return _mm_sub_epi16(words, _mm_set1_epi16(32));
}

INLINE void dots_iq4_xs(int rows, const uint8_t *w, const void *const *coded, int64_t blocks,
                        float *out)
{
    const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i mask = _mm512_set1_epi8(15);
    __m512 sum[ROWS_MOST];

    for (int r = 0; r < rows; r++)
        sum[r] = _mm512_setzero_ps();
    for (int64_t i = 0; i < blocks; i++, w += 136) {
        struct wide b = {.d = f16_at(w)};
        __m512i scale = _mm512_castsi256_si512(_mm256_cvtepi16_epi32(scales_iq4(w)));
        ask_for(w, 136);
        for (int h = 0; h < 2; h++) {
            __m512i both = _mm512_loadu_si512(w + 8 + 64 * h);
            b.code[2 * h] = uneven(_mm512_and_si512(both, mask));
            b.code[2 * h + 1] = uneven(_mm512_and_si512(_mm512_srli_epi16(both, 4), mask));
            b.scale[h] =
                _mm512_permutexvar_epi32(_mm512_add_epi32(spread, _mm512_set1_epi32(4 * h)), scale);
        }
        for (int r = 0; r < rows; r++) {
            const struct q8_block *x = (const struct q8_block *)coded[r] + i;
            __m512i dot = _mm512_setzero_si512();
            for (int h = 0; h < 2; h++) {
                __m512i part =
                    _mm512_dpbusd_epi32(_mm512_load_si512(x->lane_offset + 16 * h), b.code[2 * h],
                                        _mm512_load_si512(x->code + 128 * h));
                part = _mm512_dpbusd_epi32(part, b.code[2 * h + 1],
                                           _mm512_load_si512(x->code + 128 * h + 64));
                dot = _mm512_add_epi32(dot, _mm512_mullo_epi32(part, b.scale[h]));
            }
            sum[r] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(b.d * x->scale), sum[r]);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = _mm512_reduce_add_ps(sum[r]);
}

/* ---- all of them --------------------------------------------------------------------------- */

/* One row of w with one row of x, and with four. */
typedef void (*dots_fn)(const uint8_t *w, const void *const *x, int64_t blocks, float *out);

#define DOTS(word, call_1, call_4)                                                      \
    static void word##_1(const uint8_t *w, const void *const *x, int64_t n, float *out) \
    {                                                                                   \
        call_1;                                                                         \
    }                                                                                   \
    static void word##_4(const uint8_t *w, const void *const *x, int64_t n, float *out) \
    {                                                                                   \
        call_4;                                                                         \
    }
#define DOTS_32(word)                                             \
    DOTS(word, dots_32(RLX_QUANT_SCHEME_##word, 1, w, x, n, out), \
         dots_32(RLX_QUANT_SCHEME_##word, 4, w, x, n, out))
#define DOTS_256(word, bytes)                                             \
    DOTS(word, dots_256(RLX_QUANT_SCHEME_##word, bytes, 1, w, x, n, out), \
         dots_256(RLX_QUANT_SCHEME_##word, bytes, 4, w, x, n, out))
DOTS_32(q4_0)
DOTS_32(q4_1)
DOTS_32(q5_0)
DOTS_32(q5_1)
DOTS_32(q8_0)
DOTS_32(q8_1)
DOTS_32(iq4_nl)
DOTS_32(mxfp4)
DOTS_256(q2_k, 84)
DOTS_256(q3_k, 110)
DOTS_256(q4_k, 144)
DOTS_256(q5_k, 176)
DOTS_256(q6_k, 210)
DOTS(q8_k, dots_q8_k(1, w, x, n, out), dots_q8_k(4, w, x, n, out))
DOTS(iq4_xs, dots_iq4_xs(1, w, x, n, out), dots_iq4_xs(4, w, x, n, out))

static const struct {
    dots_fn one, four;
} table[] = {
#define ROW(word) [RLX_QUANT_SCHEME_##word] = {word##_1, word##_4}
    ROW(q4_0), ROW(q4_1), ROW(q5_0), ROW(q5_1), ROW(q8_0),   ROW(q8_1),   ROW(q2_k),  ROW(q3_k),
    ROW(q4_k), ROW(q5_k), ROW(q6_k), ROW(q8_k), ROW(iq4_nl), ROW(iq4_xs), ROW(mxfp4),
#undef ROW
};

/* Some rows of w with all rows of x, four of these at a time: they fill the nearest cache, and so
 * come first; w is read again from the next one. */
static void run_some(const struct q8_few *f, int64_t begin, int64_t end)
{
    const struct q8_weight *w = f->w;

    for (int64_t r = 0; r < f->rows; r += ROWS_MOST) {
        const void *x[ROWS_MOST];
        float out[ROWS_MOST];
        int64_t rows = cpu_min_i64(ROWS_MOST, f->rows - r);
        for (int64_t i = 0; i < ROWS_MOST; i++)
            x[i] = f->x[i < rows ? r + i : r];
        for (int64_t n = begin; n < end; n++) {
            if (rows == 1)
                table[w->scheme].one(q8_row(w, n), x, w->blocks, out);
            else
                table[w->scheme].four(q8_row(w, n), x, w->blocks, out);
            for (int64_t i = 0; i < rows; i++)
                f->out[r + i][n] = out[i];
        }
    }
}

void q8_vnni_run(const struct q8_few *f, int64_t begin, int64_t end)
{
    enum { SOME = 32 };

    for (int64_t n = begin; n < end; n += SOME)
        run_some(f, n, cpu_min_i64(n + SOME, end));
}

#else
typedef int dequant_q8_vnni_is_not_here; /* a file must declare something */
#endif
