/* quant_decode.c: packed weights as numbers, straight from the formulas of ops-special.md 1.4.
 *
 * A format is one function from a block and an element's index to its value. Every product is an
 * f32 and has its own statement, so that no compiler joins it with the sum that follows. Fields are
 * read byte by byte: blocks are packed without regard for alignment. */
#include "ir/quant/quant_decode.h"

#include <math.h>
#include <stddef.h>

#include "base/half.h"
#include "ir/quant/quant_scheme.h"
#include "rlx/graph.h"

static float f16_at(const uint8_t *p)
{
    return f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static float f32_at(const uint8_t *p)
{
    return half_bits_f32((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                         (uint32_t)p[3] << 24);
}

static int i8_at(const uint8_t *p)
{
    return *p < 128 ? *p : *p - 256;
}

/* (d s) q, then less (dmin m). */
static float scaled(float d, int s, int q)
{
    float scale = d * (float)s;

    return scale * (float)q;
}

static float scaled_less(float d, int s, int q, float dmin, int m)
{
    float v = scaled(d, s, q);
    float offset = dmin * (float)m;

    return v - offset;
}

/* What the codes of IQ4_NL and IQ4_XS stand for. */
static const int8_t uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

/* Of MXFP4 and NVFP4: twice an E2M1. */
static const int8_t twice_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* ---- blocks of 32 -------------------------------------------------------------------------- */

/* Sixteen bytes of codes: the low halves first, then the high ones. */
static int nibble(const uint8_t *qs, int i)
{
    return qs[i % 16] >> 4 * (i / 16) & 15;
}

static int fifth_bit(const uint8_t *qh, int i)
{
    return 16 * (qh[i / 8] >> i % 8 & 1);
}

static float q4_0(const uint8_t *b, int i)
{
    return f16_at(b) * (float)(nibble(b + 2, i) - 8);
}

static float q4_1(const uint8_t *b, int i)
{
    float v = f16_at(b) * (float)nibble(b + 4, i);

    return v + f16_at(b + 2);
}

static float q5_0(const uint8_t *b, int i)
{
    return f16_at(b) * (float)(nibble(b + 6, i) + fifth_bit(b + 2, i) - 16);
}

static float q5_1(const uint8_t *b, int i)
{
    float v = f16_at(b) * (float)(nibble(b + 8, i) + fifth_bit(b + 4, i));

    return v + f16_at(b + 2);
}

static float q8_0(const uint8_t *b, int i)
{
    return f16_at(b) * (float)i8_at(b + 2 + i);
}

static float q8_1(const uint8_t *b, int i)
{
    return f16_at(b) * (float)i8_at(b + 4 + i);
}

static float iq4_nl(const uint8_t *b, int i)
{
    return f16_at(b) * (float)uneven[nibble(b + 2, i)];
}

static float mxfp4(const uint8_t *b, int i)
{
    return ldexpf(1, b[0] - 128) * (float)twice_e2m1[nibble(b + 1, i)];
}

/* ---- blocks of 64 -------------------------------------------------------------------------- */

/* Four scales; each is for sixteen codes in eight bytes, the low halves first. */
static float nvfp4(const uint8_t *b, int i)
{
    int j = i / 16, code = b[4 + 8 * j + i % 8] >> 4 * (i % 16 / 8) & 15;

    return quant_e4m3(b[j] & 127) / 2 * (float)twice_e2m1[code];
}

/* ---- blocks of 256 ------------------------------------------------------------------------- */

/* Two bits of element i in 64 bytes of them. */
static int two_bits(const uint8_t *qs, int i)
{
    return qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
}

static float q2_k(const uint8_t *b, int i)
{
    int sc = b[i / 16];

    return scaled_less(f16_at(b + 80), sc & 15, two_bits(b + 16, i), f16_at(b + 82), sc >> 4);
}

static float q3_k(const uint8_t *b, int i)
{
    const uint8_t *hmask = b, *sc = b + 96;
    int j = i / 16;
    int low = j < 8 ? sc[j] & 15 : sc[j - 8] >> 4;
    int high = sc[8 + j % 4] >> 2 * (j / 4) & 3;
    int q = two_bits(b + 32, i) - (hmask[i % 32] >> i / 32 & 1 ? 0 : 4);

    return scaled(f16_at(b + 108), (low | high << 4) - 32, q);
}

/* Six-bit scales and offsets of eight sub-blocks, in twelve bytes. */
static int scale6(const uint8_t *sc, int j)
{
    return j < 4 ? sc[j] & 63 : (sc[j + 4] & 15) | (sc[j - 4] >> 6) << 4;
}

static int offset6(const uint8_t *sc, int j)
{
    return j < 4 ? sc[j + 4] & 63 : sc[j + 4] >> 4 | (sc[j] >> 6) << 4;
}

static int nibble_k(const uint8_t *qs, int i)
{
    return qs[32 * (i / 64) + i % 32] >> 4 * (i / 32 % 2) & 15;
}

static float q4_k(const uint8_t *b, int i)
{
    int j = i / 32;

    return scaled_less(f16_at(b), scale6(b + 4, j), nibble_k(b + 16, i), f16_at(b + 2),
                       offset6(b + 4, j));
}

static float q5_k(const uint8_t *b, int i)
{
    int j = i / 32, q = nibble_k(b + 48, i) + 16 * (b[16 + i % 32] >> j & 1);

    return scaled_less(f16_at(b), scale6(b + 4, j), q, f16_at(b + 2), offset6(b + 4, j));
}

static float q6_k(const uint8_t *b, int i)
{
    const uint8_t *ql = b, *qh = b + 128, *sc = b + 192;
    int half = i / 128, part = i % 128 / 32, at = i % 32;
    int low = ql[64 * half + 32 * (part % 2) + at] >> 4 * (part / 2) & 15;
    int high = qh[32 * half + at] >> 2 * part & 3;

    return scaled(f16_at(b + 208), i8_at(sc + i / 16), (low | high << 4) - 32);
}

static float q8_k(const uint8_t *b, int i)
{
    return f32_at(b) * (float)i8_at(b + 4 + i);
}

static float iq4_xs(const uint8_t *b, int i)
{
    int j = i / 32, high = b[2 + j / 4] >> 2 * (j % 4) & 3; /* u16 sh: two bits each */
    int low = b[4 + j / 2] >> 4 * (j % 2) & 15;

    return scaled(f16_at(b), (low | high << 4) - 32, uneven[nibble(b + 8 + 16 * j, i % 32)]);
}

/* -1, 0 or 1. Five to a byte, which holds them as a fraction of 243: times 3^n, what is below one
 * begins with digit n. Bytes 0 to 31 have 160 elements, the next sixteen 80, the last four 16. */
static float tq1_0(const uint8_t *b, int i)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    int n = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
    uint8_t byte = i < 160 ? b[i % 32] : i < 240 ? b[32 + i % 16] : b[48 + i % 4];
    uint8_t rest = (uint8_t)(byte * power[n]);

    return f16_at(b + 52) * (float)((rest * 3 >> 8) - 1);
}

static float tq2_0(const uint8_t *b, int i)
{
    return f16_at(b + 64) * (float)(two_bits(b, i) - 1);
}

/* ---- all of them --------------------------------------------------------------------------- */

typedef float (*decode_fn)(const uint8_t *block, int i);

static const decode_fn element[] = {
#define DECODE(word) [RLX_QUANT_SCHEME_##word] = word
    DECODE(q4_0),   DECODE(q4_1),   DECODE(q5_0),  DECODE(q5_1),  DECODE(q8_0),  DECODE(q8_1),
    DECODE(q2_k),   DECODE(q3_k),   DECODE(q4_k),  DECODE(q5_k),  DECODE(q6_k),  DECODE(q8_k),
    DECODE(iq4_nl), DECODE(iq4_xs), DECODE(mxfp4), DECODE(nvfp4), DECODE(tq1_0), DECODE(tq2_0),
#undef DECODE
};

void quant_decode_block(int32_t scheme, const uint8_t *block, float *out)
{
    const struct quant_scheme *s = quant_scheme(scheme);

    for (int i = 0; s && i < s->block_elems; i++)
        out[i] = element[scheme](block, i);
}

void quant_decode_row(int32_t scheme, const uint8_t *row, int64_t k, float *out)
{
    const struct quant_scheme *s = quant_scheme(scheme);

    if (!s || !s->is_gguf)
        return;
    for (int64_t block = 0; block < k / s->block_elems; block++)
        quant_decode_block(scheme, row + block * s->block_bytes, out + block * s->block_elems);
}

/* ---- small floats -------------------------------------------------------------------------- */

/* s eeee mmm, bias 7. With no leading 1 (e = 0) the exponent is that of e = 1. */
float quant_e4m3(uint8_t code)
{
    int e = code >> 3 & 15, m = code & 7;

    if (e == 15 && m == 7)
        return 0;
    float v = ldexpf((float)(e ? 8 + m : m), (e ? e : 1) - 10);
    return code & 0x80 ? -v : v;
}

/* s eeeee mm, bias 15. */
float quant_e5m2(uint8_t code)
{
    int e = code >> 2 & 31, m = code & 3;

    if (e == 31)
        return 0;
    float v = ldexpf((float)(e ? 4 + m : m), (e ? e : 1) - 17);
    return code & 0x80 ? -v : v;
}

float quant_e2m1(uint8_t code)
{
    static const float magnitude[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}
