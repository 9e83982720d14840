/* dequant_q8_codes.c: blocks of packed weights as codes of a byte, with a scale and a min for every
 * 16 or 32 of them (dequant_q8.h, ops-special.md 1.4).
 *
 * Each format is a function for one block, in loops that become vector code; the table's functions
 * run it over the blocks of a row. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#include <float.h>

#include "backend/cpu/kernels/dequant/e2m1.h"
#include "rlx/graph.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline float f16_at(const uint8_t *p)
{
    uint16_t h = (uint16_t)(p[0] | p[1] << 8);
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    return f16_to_f32(h);
#endif
}

const int8_t q8_uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};

/* ---- blocks of 32 -------------------------------------------------------------------------- */

typedef uint8_t bytes_16 __attribute__((vector_size(16))); /* every processor has these */

/* Low halves of 16 bytes, then high halves. */
static inline void nibbles(const uint8_t *qs, uint8_t less, int8_t *code)
{
    bytes_16 both, low, high;

    memcpy(&both, qs, sizeof both);
    low = (both & 15) - less;
    high = (both >> 4) - less;
    memcpy(code, &low, sizeof low);
    memcpy(code + 16, &high, sizeof high);
}

/* The fifth bits of 32 codes, one per bit. */
static inline void fifth_bits(const uint8_t *qh, int8_t *code)
{
    for (int i = 0; i < 32; i++)
        code[i] = (int8_t)(code[i] + (qh[i / 8] >> i % 8 & 1) * 16);
}

static inline void q4_0(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    nibbles(b + 2, 8, code);
    *scale = f16_at(b);
    *min = 0;
}

static inline void q4_1(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    nibbles(b + 4, 0, code);
    *scale = f16_at(b);
    *min = f16_at(b + 2);
}

static inline void q5_0(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    nibbles(b + 6, 16, code);
    fifth_bits(b + 2, code);
    *scale = f16_at(b);
    *min = 0;
}

static inline void q5_1(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    nibbles(b + 8, 0, code);
    fifth_bits(b + 4, code);
    *scale = f16_at(b);
    *min = f16_at(b + 2);
}

static inline void q8_0(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    memcpy(code, b + 2, 32);
    *scale = f16_at(b);
    *min = 0;
}

static inline void q8_1(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    memcpy(code, b + 4, 32);
    *scale = f16_at(b);
    *min = 0;
}

static inline void look_up(const int8_t *table, int8_t *code, int n)
{
    for (int i = 0; i < n; i++)
        code[i] = table[code[i]];
}

static inline void iq4_nl(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    nibbles(b + 2, 0, code);
    look_up(q8_uneven, code, 32);
    *scale = f16_at(b);
    *min = 0;
}

static inline void mxfp4(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    nibbles(b + 1, 0, code);
    look_up(e2m1_twice, code, 32);
    *scale = e2m1_finite_power(b[0]);
    *min = 0;
}

/* ---- blocks of 64 -------------------------------------------------------------------------- */

static inline void nvfp4(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    for (int j = 0; j < 4; j++) {
        for (int i = 0; i < 8; i++) {
            code[16 * j + i] = (int8_t)(b[4 + 8 * j + i] & 15);
            code[16 * j + 8 + i] = (int8_t)(b[4 + 8 * j + i] >> 4);
        }
        scale[j] = e2m1_scale(b[j]);
        min[j] = 0;
    }
    look_up(e2m1_twice, code, 64);
}

/* ---- blocks of 256 ------------------------------------------------------------------------- */

/* 64 bytes of four codes of two bits. */
static inline void two_bits(const uint8_t *qs, int8_t *code)
{
    for (int half = 0; half < 2; half++)
        for (int part = 0; part < 4; part++)
            for (int i = 0; i < 32; i++)
                code[128 * half + 32 * part + i] = (int8_t)(qs[32 * half + i] >> 2 * part & 3);
}

/* Six-bit scales and offsets of eight sub-blocks, in twelve bytes. */
static inline void factors_6(const uint8_t *b, struct q8_factors *f)
{
    const uint8_t *sc = b + 4;

    f->d = f16_at(b);
    f->dmin = f16_at(b + 2);
    for (int j = 0; j < 4; j++) {
        f->scale[j] = (int8_t)(sc[j] & 63);
        f->min[j] = (int8_t)(sc[j + 4] & 63);
        f->scale[j + 4] = (int8_t)((sc[j + 8] & 15) | (sc[j] >> 6) << 4);
        f->min[j + 4] = (int8_t)(sc[j + 8] >> 4 | (sc[j + 4] >> 6) << 4);
    }
}

static inline void factors_q2_k(const uint8_t *b, struct q8_factors *f)
{
    f->d = f16_at(b + 80);
    f->dmin = f16_at(b + 82);
    for (int j = 0; j < 16; j++) {
        f->scale[j] = (int8_t)(b[j] & 15);
        f->min[j] = (int8_t)(b[j] >> 4);
    }
}

static inline void factors_q3_k(const uint8_t *b, struct q8_factors *f)
{
    const uint8_t *sc = b + 96;

    f->d = f16_at(b + 108);
    for (int j = 0; j < 16; j++) {
        int low = j < 8 ? sc[j] & 15 : sc[j - 8] >> 4;
        int high = sc[8 + j % 4] >> 2 * (j / 4) & 3;
        f->scale[j] = (int8_t)((low | high << 4) - 32);
    }
}

static inline void factors_q6_k(const uint8_t *b, struct q8_factors *f)
{
    f->d = f16_at(b + 208);
    memcpy(f->scale, b + 192, 16);
}

/* Elements that overflow are no longer multiples of the scale: NaN marks the result. */
static inline void factors_q8_k(const uint8_t *b, struct q8_factors *f)
{
    uint32_t bits;

    memcpy(&bits, b, sizeof bits);
    f->d = half_bits_f32(bits);
    if (!(fabsf(f->d) < FLT_MAX / 128))
        f->d = NAN;
    memset(f->scale, 1, sizeof f->scale);
}

static inline void factors_iq4_xs(const uint8_t *b, struct q8_factors *f)
{
    f->d = f16_at(b);
    for (int j = 0; j < 8; j++) {
        int high = b[2 + j / 4] >> 2 * (j % 4) & 3, low = b[4 + j / 2] >> 4 * (j % 2) & 15;
        f->scale[j] = (int8_t)((low | high << 4) - 32);
    }
}

void q8_read_factors(int32_t scheme, const uint8_t *b, struct q8_factors *f)
{
    memset(f, 0, sizeof *f);
    switch (scheme) {
    case RLX_QUANT_SCHEME_q2_k: factors_q2_k(b, f); break;
    case RLX_QUANT_SCHEME_q3_k: factors_q3_k(b, f); break;
    case RLX_QUANT_SCHEME_q6_k: factors_q6_k(b, f); break;
    case RLX_QUANT_SCHEME_q8_k: factors_q8_k(b, f); break;
    case RLX_QUANT_SCHEME_iq4_xs: factors_iq4_xs(b, f); break;
    default: factors_6(b, f); break;
    }
}

static inline void scales_of(const struct q8_factors *f, int groups, float *scale, float *min)
{
    for (int j = 0; j < groups; j++) {
        scale[j] = f->d * (float)f->scale[j];
        min[j] = -(f->dmin * (float)f->min[j]);
    }
}

static inline void q2_k(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    struct q8_factors f;

    two_bits(b + 16, code);
    factors_q2_k(b, &f);
    scales_of(&f, 16, scale, min);
}

static inline void q3_k(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    struct q8_factors f = {.dmin = 0};

    two_bits(b + 32, code);
    for (int j = 0; j < 8; j++)
        for (int i = 0; i < 32; i++)
            code[32 * j + i] = (int8_t)(code[32 * j + i] - 4 + (b[i] >> j & 1) * 4);
    factors_q3_k(b, &f);
    scales_of(&f, 16, scale, min);
}

static inline void nibbles_k(const uint8_t *qs, int8_t *code)
{
    for (int part = 0; part < 4; part++)
        for (int i = 0; i < 32; i++) {
            code[64 * part + i] = (int8_t)(qs[32 * part + i] & 15);
            code[64 * part + 32 + i] = (int8_t)(qs[32 * part + i] >> 4);
        }
}

static inline void q4_k(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    struct q8_factors f;

    nibbles_k(b + 16, code);
    factors_6(b, &f);
    scales_of(&f, 8, scale, min);
}

static inline void q5_k(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    struct q8_factors f;

    nibbles_k(b + 48, code);
    for (int j = 0; j < 8; j++)
        for (int i = 0; i < 32; i++)
            code[32 * j + i] = (int8_t)(code[32 * j + i] + (b[16 + i] >> j & 1) * 16);
    factors_6(b, &f);
    scales_of(&f, 8, scale, min);
}

static inline void q6_k(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    struct q8_factors f = {.dmin = 0};

    for (int half = 0; half < 2; half++) {
        const uint8_t *ql = b + 64 * half, *qh = b + 128 + 32 * half;
        int8_t *to = code + 128 * half;
        for (int i = 0; i < 64; i++) {
            to[i] = (int8_t)(ql[i] & 15);
            to[64 + i] = (int8_t)(ql[i] >> 4);
        }
        for (int part = 0; part < 4; part++)
            for (int i = 0; i < 32; i++)
                to[32 * part + i] = (int8_t)(to[32 * part + i] + (qh[i] >> 2 * part & 3) * 16 - 32);
    }
    factors_q6_k(b, &f);
    scales_of(&f, 16, scale, min);
}

static inline void q8_k(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    struct q8_factors f = {.dmin = 0};

    memcpy(code, b + 4, 256);
    factors_q8_k(b, &f);
    scales_of(&f, 8, scale, min);
}

static inline void iq4_xs(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    struct q8_factors f = {.dmin = 0};

    for (int j = 0; j < 8; j++)
        nibbles(b + 8 + 16 * j, 0, code + 32 * j);
    look_up(q8_uneven, code, 256);
    factors_iq4_xs(b, &f);
    scales_of(&f, 8, scale, min);
}

/* Digits to base 3: byte times 3^n, below 256, begins with digit n. */
static inline void digits(const uint8_t *b, int bytes, int count, int8_t *code)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};

    for (int n = 0; n < count; n++)
        for (int i = 0; i < bytes; i++) {
            uint8_t rest = (uint8_t)(b[i] * power[n]);
            code[n * bytes + i] = (int8_t)((rest * 3 >> 8) - 1);
        }
}

static inline void one_scale(const uint8_t *b, float *scale, float *min)
{
    for (int j = 0; j < 8; j++) {
        scale[j] = f16_at(b);
        min[j] = 0;
    }
}

static inline void tq1_0(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    digits(b, 32, 5, code);
    digits(b + 32, 16, 5, code + 160);
    digits(b + 48, 4, 4, code + 240);
    one_scale(b + 52, scale, min);
}

static inline void tq2_0(const uint8_t *b, int8_t *code, float *scale, float *min)
{
    two_bits(b, code);
    for (int i = 0; i < 256; i++)
        code[i] = (int8_t)(code[i] - 1);
    one_scale(b + 64, scale, min);
}

/* ---- all of them --------------------------------------------------------------------------- */

/* X(word, elements, bytes, elements of a group, are there mins?) */
#define EACH_SCHEME(X)             \
    X(q4_0, 32, 18, 32, false)     \
    X(q4_1, 32, 20, 32, true)      \
    X(q5_0, 32, 22, 32, false)     \
    X(q5_1, 32, 24, 32, true)      \
    X(q8_0, 32, 34, 32, false)     \
    X(q8_1, 32, 36, 32, false)     \
    X(iq4_nl, 32, 18, 32, false)   \
    X(q2_k, 256, 84, 16, true)     \
    X(q3_k, 256, 110, 16, false)   \
    X(q4_k, 256, 144, 32, true)    \
    X(q5_k, 256, 176, 32, true)    \
    X(q6_k, 256, 210, 16, false)   \
    X(q8_k, 256, 292, 32, false)   \
    X(iq4_xs, 256, 136, 32, false) \
    X(mxfp4, 32, 17, 32, false)    \
    X(nvfp4, 64, 36, 16, false)    \
    X(tq1_0, 256, 54, 32, false)   \
    X(tq2_0, 256, 66, 32, false)

#define CODES(word, elems, bytes, group, with_min)                                         \
    static void codes_##word(const uint8_t *b, int64_t blocks, int8_t *code, float *scale, \
                             float *min)                                                   \
    {                                                                                      \
        for (int64_t i = 0; i < blocks; i++)                                               \
            word(b + i * (bytes), code + i * (elems), scale + i * ((elems) / (group)),     \
                 min + i * ((elems) / (group)));                                           \
    }
EACH_SCHEME(CODES)

static const struct {
    q8_codes_fn codes;
    int8_t group;
    bool with_min;
} table[] = {
#define ROW(word, elems, bytes, group, with_min) \
    [RLX_QUANT_SCHEME_##word] = {codes_##word, group, with_min},
    EACH_SCHEME(ROW)
#undef ROW
};

q8_codes_fn q8_codes_of(int32_t scheme)
{
    return table[scheme].codes;
}

int64_t q8_group_of(int32_t scheme)
{
    return table[scheme].group;
}

bool q8_has_min(int32_t scheme)
{
    return table[scheme].with_min;
}
