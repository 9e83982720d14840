/* dequant_q8_x.c: rows of x as codes (dequant_q8.h).
 *
 * Runs of 32 by the rule of Q8_0, runs of 256 by that of Q8_K (ops-special.md 1.5), bit for bit as
 * ir/quant/quant_encode.c has them, in loops that become vector code. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#include "rlx/graph.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* ---- runs ---------------------------------------------------------------------------------- */

#ifdef Q8_VNNI

static inline uint32_t largest_bits(const float *x, int64_t n)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512i most = _mm512_setzero_si512();

    for (int64_t i = 0; i < n; i += 16)
        most = _mm512_max_epi32(most, _mm512_and_si512(_mm512_loadu_si512(x + i), magnitude));
    return (uint32_t)_mm512_reduce_max_epi32(most);
}

/* The first number of that magnitude; there is one. */
static inline float first_of(const float *x, uint32_t bits)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), wanted = _mm512_set1_epi32((int)bits);

    for (;; x += 16) {
        __mmask16 is =
            _mm512_cmpeq_epi32_mask(_mm512_and_si512(_mm512_loadu_si512(x), magnitude), wanted);
        if (is)
            return x[__builtin_ctz(is)];
    }
}

/* No product is so far beyond 127 that it would be rounded to 128. */
static inline void codes_away(const float *x, float inverse, int8_t *code)
{
    const __m512i half = _mm512_set1_epi32(0x3effffff), sign = _mm512_set1_epi32(INT32_MIN);

    for (int64_t i = 0; i < 32; i += 16) {
        __m512 v = _mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(inverse));
        __m512i h = _mm512_ternarylogic_epi32(half, _mm512_castps_si512(v), sign, 0xf8);
        __m512i q = _mm512_cvttps_epi32(_mm512_add_ps(v, _mm512_castsi512_ps(h)));
        _mm_storeu_si128((void *)(code + i), _mm512_cvtsepi32_epi8(q));
    }
}

static inline void codes_even(const float *x, float t, int8_t *code)
{
    for (int64_t i = 0; i < 256; i += 16) {
        __m512 v = _mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(t));
        __m512i q = _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128((void *)(code + i), _mm512_cvtsepi32_epi8(q));
    }
}

static inline float through_f16(float d)
{
    return _cvtsh_ss(_cvtss_sh(d, _MM_FROUND_TO_NEAREST_INT));
}

#else

/* Bits of the largest magnitude: as integers, NaN and infinity are larger than all numbers. */
static uint32_t largest_bits(const float *x, int64_t n)
{
    uint32_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = half_f32_bits(x[i]) & 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    return most;
}

static inline float first_of(const float *x, uint32_t bits)
{
    while ((half_f32_bits(*x) & 0x7fffffffu) != bits)
        x++;
    return *x;
}

/* Halves go away from zero. What is added is the number below one half: with one half itself the
 * sum of the number below it would be rounded up to 1. */
static void codes_away(const float *x, float inverse, int8_t *code)
{
    for (int64_t i = 0; i < 32; i++) {
        float v = x[i] * inverse;
        float half = half_bits_f32(0x3effffffu | (half_f32_bits(v) & 0x80000000u));
        int32_t q = (int32_t)(v + half);
        code[i] = (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
}

/* Halves go to even: so does the last bit of a sum with 1.5 * 2^23. */
static void codes_even(const float *x, float t, int8_t *code)
{
    for (int64_t i = 0; i < 256; i++) {
        int32_t q = (int32_t)half_f32_bits(x[i] * t + 0x1.8p23f) - 0x4b400000;
        code[i] = (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
}

static inline float through_f16(float d)
{
    return f16_to_f32(f32_to_f16(d));
}

#endif

static bool is_finite_bits(uint32_t bits)
{
    return bits < 0x7f800000u;
}

/* 32 codes and their scale, as f16 holds it. A scale of zero has codes of zero; one that is NaN
 * says that the run is not finite. */
static float encode_32(const float *x, int8_t *code)
{
    uint32_t most = largest_bits(x, 32);
    float d = half_bits_f32(most) / 127, scale = through_f16(d);

    if (!is_finite_bits(most))
        scale = NAN;
    if (scale > 0)
        codes_away(x, 1 / d, code);
    else
        memset(code, 0, 32);
    return scale;
}

static float encode_256(const float *x, int8_t *code)
{
    uint32_t most = largest_bits(x, 256);
    float t = 0, scale = is_finite_bits(most) ? 0 : NAN;

    if (is_finite_bits(most) && most != 0) {
        t = -127 / first_of(x, most);
        scale = 1 / t;
    }
    if (scale != 0 && scale == scale)
        codes_even(x, t, code);
    else
        memset(code, 0, 256);
    return scale;
}

static inline int16_t sum_16(const int8_t *code)
{
#if defined(__SSE2__) /* an instruction that sums bytes, unsigned ones */
    __m128i all = _mm_loadu_si128((const void *)code);
    __m128i half = _mm_sad_epu8(_mm_xor_si128(all, _mm_set1_epi8((char)0x80)), _mm_setzero_si128());
    return (int16_t)(_mm_extract_epi16(half, 0) + _mm_extract_epi16(half, 4) - 16 * 128);
#else
    int32_t sum = 0;

    for (int i = 0; i < 16; i++)
        sum += code[i];
    return (int16_t)sum;
#endif
}

/* ---- what rows come to --------------------------------------------------------------------- */

/* Scales of f16 are far from vanishing. */
static enum q8_row_kind kind_of(float scale)
{
    if (scale != scale)
        return Q8_ROW_NAN;
    return scale != 0 && fabsf(scale) < 0x1p-60f ? Q8_ROW_TINY : Q8_ROW_PLAIN;
}

static enum q8_row_kind worse(enum q8_row_kind a, enum q8_row_kind b)
{
    return a == Q8_ROW_NAN || b == Q8_ROW_PLAIN ? a : b;
}

float q8_encode_32(const float *x, int8_t *code, enum q8_row_kind *kind)
{
    float scale = encode_32(x, code);

    *kind = worse(*kind, kind_of(scale));
    return scale;
}

float q8_encode_256(const float *x, int8_t *code, enum q8_row_kind *kind)
{
    float scale = encode_256(x, code);

    *kind = worse(*kind, kind_of(scale));
    return scale;
}

/* ---- rows, for few of them ----------------------------------------------------------------- */

enum q8_form q8_form_of(int32_t scheme, int64_t block_elems)
{
#ifdef Q8_VNNI
    if (scheme == RLX_QUANT_SCHEME_nvfp4 || scheme == RLX_QUANT_SCHEME_tq1_0 ||
        scheme == RLX_QUANT_SCHEME_tq2_0)
        return Q8_LINEAR; /* rare ones, which dequant_q8_vnni.c does not have */
    return block_elems == 32 ? Q8_FOURS : Q8_BLOCKS;
#else
    (void)scheme;
    (void)block_elems;
    return Q8_LINEAR;
#endif
}

int64_t q8_form_bytes(const struct q8_weight *w)
{
    switch (q8_form_of(w->scheme, w->block_elems)) {
    case Q8_FOURS: return (w->blocks + 3) / 4 * (int64_t)sizeof(struct q8_four);
    case Q8_BLOCKS: return w->blocks * (int64_t)sizeof(struct q8_block);
    default: return gemm_up(w->k / 32 * (int64_t)sizeof(struct q8_run), 64);
    }
}

static enum q8_row_kind linear(const struct q8_weight *w, const float *x, struct q8_run *to)
{
    enum q8_row_kind kind = Q8_ROW_PLAIN;
    int64_t run = q8_run_of(w->block_elems);
    int8_t code[256];

    for (int64_t k = 0; k < w->k; k += run, x += run) {
        float scale = run == 32 ? encode_32(x, code) : encode_256(x, code);
        kind = worse(kind, kind_of(scale));
        for (int64_t j = 0; j < run / 32; j++, to++) {
            memcpy(to->code, code + 32 * j, 32);
            to->scale = scale;
            to->sum[0] = sum_16(to->code);
            to->sum[1] = sum_16(to->code + 16);
        }
    }
    return kind;
}

/* By how much w's codes are larger as unsigned bytes than as they are (dequant_q8_vnni.c). */
static int32_t offset_of(int32_t scheme)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_q3_k: return 4;
    case RLX_QUANT_SCHEME_q4_0: return 8;
    case RLX_QUANT_SCHEME_q5_0: return 16;
    case RLX_QUANT_SCHEME_mxfp4: return 12;
    case RLX_QUANT_SCHEME_q6_k: return 32;
    case RLX_QUANT_SCHEME_q8_0:
    case RLX_QUANT_SCHEME_q8_1:
    case RLX_QUANT_SCHEME_q8_k:
    case RLX_QUANT_SCHEME_iq4_nl:
    case RLX_QUANT_SCHEME_iq4_xs: return 128;
    default: return 0; /* they are unsigned */
    }
}

/* What that adds to the sixteen lanes of `vectors` vectors of 64 codes. */
static void lane_offsets(const int8_t *code, int64_t vectors, int32_t offset, int32_t *to)
{
    for (int64_t l = 0; l < 16; l++) {
        int32_t sum = 0;
        for (int64_t v = 0; v < vectors; v++)
            for (int64_t i = 0; i < 4; i++)
                sum += code[64 * v + 4 * l + i];
        to[l] = -offset * sum;
    }
}

static void pair_offsets(const int8_t *code, int32_t offset, int16_t *to)
{
    for (int64_t i = 0; i < 128; i++)
        to[i] = (int16_t)(-offset * (code[2 * i] + code[2 * i + 1]));
}

static enum q8_row_kind fours(const struct q8_weight *w, const float *x, struct q8_four *to)
{
    enum q8_row_kind kind = Q8_ROW_PLAIN;
    int8_t code[32];

    for (int64_t b = 0; b < w->blocks; b++, x += 32) {
        struct q8_four *f = to + b / 4;
        int64_t lane = b % 4;
        if (lane == 0)
            memset(f, 0, sizeof *f);
        float scale = encode_32(x, code);
        kind = worse(kind, kind_of(scale));
        memcpy(f->code + 16 * lane, code, 16);
        memcpy(f->code + 64 + 16 * lane, code + 16, 16);
        for (int64_t i = 0; i < 4; i++)
            f->scale[4 * lane + i] = scale;
        f->sum[4 * lane] = scale * (float)(sum_16(code) + sum_16(code + 16));
        if (lane == 3 || b == w->blocks - 1)
            lane_offsets(f->code, 2, offset_of(w->scheme), f->offset);
    }
    return kind;
}

/* Where in a block of w's codes, as they come out of its bytes, each 16 elements are. */
static const uint8_t *order_of(int32_t scheme)
{
    static const uint8_t straight[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint8_t by_32[16] = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
    static const uint8_t by_16[16] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};

    switch (scheme) {
    case RLX_QUANT_SCHEME_q4_k:
    case RLX_QUANT_SCHEME_q5_k: return by_32;
    case RLX_QUANT_SCHEME_iq4_xs: return by_16;
    default: return straight;
    }
}

/* Q8_K is summed over the block, IQ4_XS over halves of it, the others over pairs. */
static void block_offsets(int32_t scheme, struct q8_block *b)
{
    int32_t offset = offset_of(scheme);

    if (scheme == RLX_QUANT_SCHEME_q8_k) {
        lane_offsets(b->code, 4, offset, b->lane_offset);
    } else if (scheme == RLX_QUANT_SCHEME_iq4_xs) {
        lane_offsets(b->code, 2, offset, b->lane_offset);
        lane_offsets(b->code + 128, 2, offset, b->lane_offset + 16);
    } else {
        pair_offsets(b->code, offset, b->pair_offset);
    }
}

static enum q8_row_kind blocks(const struct q8_weight *w, const float *x, struct q8_block *to)
{
    enum q8_row_kind kind = Q8_ROW_PLAIN;
    const uint8_t *order = order_of(w->scheme);
    int8_t code[256];

    for (int64_t b = 0; b < w->blocks; b++, x += 256, to++) {
        to->scale = encode_256(x, code);
        kind = worse(kind, kind_of(to->scale));
        for (int64_t i = 0; i < 16; i++) {
            memcpy(to->code + 16 * order[i], code + 16 * i, 16);
            to->sum_16[i] = sum_16(code + 16 * i);
        }
        for (int64_t i = 0; i < 8; i++)
            to->sum_32[i] = (int16_t)(to->sum_16[2 * i] + to->sum_16[2 * i + 1]);
        block_offsets(w->scheme, to);
    }
    return kind;
}

enum q8_row_kind q8_encode_row(const struct q8_weight *w, const float *x, void *to)
{
    switch (q8_form_of(w->scheme, w->block_elems)) {
    case Q8_FOURS: return fours(w, x, to);
    case Q8_BLOCKS: return blocks(w, x, to);
    default: return linear(w, x, to);
    }
}

/* ---- panels of 16 rows --------------------------------------------------------------------- */

/* One row's groups of one run, from its codes. */
static inline void put_block(const int8_t *code, float scale, int64_t elems, int64_t group,
                             int64_t row, char *to)
{
    for (int64_t i = 0; i < elems; i += group, to += q8_x_step(group)) {
        float *scales = (float *)(void *)(to + Q8_LINES * group);
        int32_t *offset = (int32_t *)(void *)(scales + 2 * Q8_LINES);
        int32_t sum = sum_16(code + i) + (group == 32 ? sum_16(code + i + 16) : 0);
        memcpy(to + row * group, code + i, (size_t)group);
        scales[row] = scale;
        scales[Q8_LINES + row] = scale * (float)sum;
        offset[row] = -128 * sum;
    }
}

static void no_row(const struct q8_weight *w, int64_t row, char *to)
{
    const int8_t code[256] = {0};

    for (int64_t i = 0; i < w->k; i += 32, to += 32 / w->group * q8_x_step(w->group))
        put_block(code, 0, 32, w->group, row, to);
}

static enum q8_row_kind one_row(const struct q8_weight *w, const float *x, int64_t row, char *to)
{
    enum q8_row_kind kind = Q8_ROW_PLAIN;
    int64_t run = q8_run_of(w->block_elems), bytes = run / w->group * q8_x_step(w->group);
    int8_t code[256];

    for (int64_t k = 0; k < w->k; k += run, x += run, to += bytes) {
        float scale = run == 32 ? encode_32(x, code) : encode_256(x, code);
        kind = worse(kind, kind_of(scale));
        if (run == 32 && w->group == 32)
            put_block(code, scale, 32, 32, row, to);
        else if (run == 32)
            put_block(code, scale, 32, 16, row, to);
        else if (w->group == 32)
            put_block(code, scale, 256, 32, row, to);
        else
            put_block(code, scale, 256, 16, row, to);
    }
    return kind;
}

void q8_pack_x(const struct q8_weight *w, const float *const *row, int64_t rows, char *to,
               uint8_t *kind)
{
    for (int64_t r = 0; r < rows; r++)
        kind[r] = (uint8_t)one_row(w, row[r], r, to);
    for (int64_t r = rows; r < Q8_LINES; r++)
        no_row(w, r, to);
}
