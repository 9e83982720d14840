/* quant_encode_k.c: 256 numbers as a block with a scale per sub-block (ops-special.md 1.5).
 *
 * Two kinds. With offsets (Q2_K, Q4_K, Q5_K): codes from 0 up, times a scale, less an offset. With
 * signs (Q3_K, Q6_K, IQ4_XS): codes on both sides of zero, times a signed scale. Scales, and
 * offsets, are small integers times one f16 of the block, and codes are chosen for the scales as
 * they are stored. */
#include "ir/quant/quant_encode_impl.h"

enum { ELEMS = 256, MOST_RUNS = 16 };

/* ---- with offsets -------------------------------------------------------------------------- */

struct offset_kind {
    int runs;   /* sub-blocks */
    int code;   /* the largest code */
    int levels; /* the largest integer that a scale or an offset is stored as */
};

struct offset_block {
    int scale[MOST_RUNS], offset[MOST_RUNS];
    int q[ELEMS];
};

/* Of the largest, as an integer. */
static int level(float v, float largest, int levels)
{
    if (largest == 0)
        return 0;
    return encode_code(rintf((float)levels * v / largest), 0, levels);
}

/* d and dmin: where the block has them. */
static void encode_offsets(const struct offset_kind *kind, const float *x, uint8_t *d_at,
                           uint8_t *dmin_at, struct offset_block *b)
{
    int n = ELEMS / kind->runs;
    float s[MOST_RUNS], m[MOST_RUNS], s_most = 0, m_most = 0;

    for (int j = 0; j < kind->runs; j++) {
        float low = 0, high = x[j * n];
        for (int i = j * n; i < (j + 1) * n; i++) {
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
        }
        s[j] = high > low ? (high - low) / (float)kind->code : 0;
        m[j] = -low;
        s_most = fmaxf(s_most, s[j]);
        m_most = fmaxf(m_most, m[j]);
    }
    float d = encode_put_f16(d_at, s_most / (float)kind->levels);
    float dmin = encode_put_f16(dmin_at, m_most / (float)kind->levels);
    for (int j = 0; j < kind->runs; j++) {
        b->scale[j] = level(s[j], s_most, kind->levels);
        b->offset[j] = level(m[j], m_most, kind->levels);
        float step = d * (float)b->scale[j], offset = dmin * (float)b->offset[j];
        for (int i = j * n; i < (j + 1) * n; i++)
            b->q[i] = step != 0 ? encode_code(rintf((x[i] + offset) / step), 0, kind->code) : 0;
    }
}

/* Two bits each: element i in byte 32 (i / 128) + i % 32, its bits by i % 128 / 32. */
static void put_crumbs(uint8_t *qs, const int *q)
{
    memset(qs, 0, 64);
    for (int i = 0; i < ELEMS; i++) {
        uint8_t *to = qs + 32 * (i / 128) + i % 32;
        *to = (uint8_t)(*to | (q[i] & 3) << 2 * (i % 128 / 32));
    }
}

void encode_q2_k(const float *x, uint8_t *block)
{
    static const struct offset_kind kind = {16, 3, 15};
    struct offset_block b;

    encode_offsets(&kind, x, block + 80, block + 82, &b);
    for (int j = 0; j < 16; j++)
        block[j] = (uint8_t)(b.scale[j] | b.offset[j] << 4);
    put_crumbs(block + 16, b.q);
}

/* Six bits each of eight scales and offsets, in twelve bytes. */
static void put_scales(uint8_t *sc, const struct offset_block *b)
{
    for (int j = 0; j < 4; j++) {
        sc[j] = (uint8_t)(b->scale[j] | b->scale[j + 4] >> 4 << 6);
        sc[j + 4] = (uint8_t)(b->offset[j] | b->offset[j + 4] >> 4 << 6);
        sc[j + 8] = (uint8_t)((b->scale[j + 4] & 15) | (b->offset[j + 4] & 15) << 4);
    }
}

/* Four bits each: sub-blocks of 32 in pairs, the even one in the low halves. */
static void put_nibbles(uint8_t *qs, const int *q)
{
    for (int i = 0; i < ELEMS; i += 64)
        for (int k = 0; k < 32; k++)
            qs[i / 2 + k] = (uint8_t)((q[i + k] & 15) | (q[i + 32 + k] & 15) << 4);
}

void encode_q4_k(const float *x, uint8_t *block)
{
    static const struct offset_kind kind = {8, 15, 63};
    struct offset_block b;

    encode_offsets(&kind, x, block, block + 2, &b);
    put_scales(block + 4, &b);
    put_nibbles(block + 16, b.q);
}

void encode_q5_k(const float *x, uint8_t *block)
{
    static const struct offset_kind kind = {8, 31, 63};
    uint8_t *high = block + 16;
    struct offset_block b;

    encode_offsets(&kind, x, block, block + 2, &b);
    put_scales(block + 4, &b);
    memset(high, 0, 32);
    for (int i = 0; i < ELEMS; i++)
        high[i % 32] = (uint8_t)(high[i % 32] | (b.q[i] >> 4) << i / 32);
    put_nibbles(block + 48, b.q);
}

/* ---- with signs ---------------------------------------------------------------------------- */

/* Codes and scales are from -half to half - 1. */
struct signed_kind {
    int runs;
    int code_half, scale_half;
};

struct signed_block {
    int scale[MOST_RUNS];
    int q[ELEMS];
};

#define LEAST 1e-15f /* what is smaller is nothing */

/* The scale of n numbers whose codes are those of their largest: least squares, where large numbers
 * count more. */
static float fitted_scale(const float *x, int n, int half)
{
    float a = encode_largest(x, n);
    double above = 0, below = 0;

    if (fabsf(a) < LEAST)
        return 0;
    float t = (float)-half / a;
    for (int i = 0; i < n; i++) {
        double v = (double)x[i], l = encode_code(rintf(t * x[i]), -half, half - 1);
        above += v * v * v * l;
        below += v * v * l * l;
    }
    return below > 0 ? (float)(above / below) : 1 / t;
}

/* Scales as integers; their unit goes to d_at. false: all are nothing. */
static bool put_unit(const float *s, const struct signed_kind *kind, uint8_t *d_at, float *d,
                     int *scale)
{
    float most = encode_largest(s, kind->runs);

    if (fabsf(most) < LEAST)
        return false;
    float t = (float)-kind->scale_half / most;
    *d = encode_put_f16(d_at, 1 / t);
    for (int j = 0; j < kind->runs; j++)
        scale[j] = encode_code(rintf(t * s[j]), -kind->scale_half, kind->scale_half - 1);
    return true;
}

/* false: all are nothing, and so is the block. */
static bool encode_signed(const struct signed_kind *kind, const float *x, uint8_t *d_at,
                          struct signed_block *b)
{
    int n = ELEMS / kind->runs, half = kind->code_half;
    float s[MOST_RUNS], d;

    for (int j = 0; j < kind->runs; j++)
        s[j] = fitted_scale(x + j * n, n, half);
    if (!put_unit(s, kind, d_at, &d, b->scale))
        return false;
    for (int j = 0; j < kind->runs; j++) {
        float step = d * (float)b->scale[j];
        for (int i = j * n; i < (j + 1) * n; i++)
            b->q[i] = step != 0 ? encode_code(rintf(x[i] / step), -half, half - 1) : 0;
    }
    return true;
}

/* The low bits of scales in eight bytes, two to a byte, the upper two in four more. */
void encode_q3_k(const float *x, uint8_t *block)
{
    static const struct signed_kind kind = {16, 4, 32};
    uint8_t *high = block, *sc = block + 96;
    struct signed_block b;

    memset(block, 0, 110);
    if (!encode_signed(&kind, x, block + 108, &b))
        return;
    for (int j = 0; j < 16; j++) {
        int v = b.scale[j] + 32;
        sc[j % 8] = (uint8_t)(sc[j % 8] | (v & 15) << 4 * (j / 8));
        sc[8 + j % 4] = (uint8_t)(sc[8 + j % 4] | v >> 4 << 2 * (j / 4));
    }
    for (int i = 0; i < ELEMS; i++) {
        b.q[i] += 4;
        high[i % 32] = (uint8_t)(high[i % 32] | (b.q[i] >> 2) << i / 32);
    }
    put_crumbs(block + 32, b.q);
}

/* Each half of the block: 64 bytes of low bits, two codes to a byte, and 32 of upper ones. */
void encode_q6_k(const float *x, uint8_t *block)
{
    static const struct signed_kind kind = {16, 32, 128};
    uint8_t *low = block, *high = block + 128;
    struct signed_block b;

    memset(block, 0, 210);
    if (!encode_signed(&kind, x, block + 208, &b))
        return;
    for (int j = 0; j < 16; j++)
        block[192 + j] = (uint8_t)b.scale[j];
    for (int i = 0; i < ELEMS; i++) {
        int half = i / 128, part = i % 128 / 32, at = i % 32, q = b.q[i] + 32;
        uint8_t *l = low + 64 * half + 32 * (part % 2) + at, *h = high + 32 * half + at;
        *l = (uint8_t)(*l | (q & 15) << 4 * (part / 2));
        *h = (uint8_t)(*h | q >> 4 << 2 * part);
    }
}

/* Sub-blocks as those of IQ4_NL, each with its largest at -127, their scales six bits of the
 * largest. */
void encode_iq4_xs(const float *x, uint8_t *block)
{
    static const struct signed_kind kind = {.runs = 8, .scale_half = 32};
    int scale[MOST_RUNS];
    float s[MOST_RUNS], d;

    memset(block, 0, 136);
    for (int j = 0; j < 8; j++)
        s[j] = encode_largest(x + 32 * j, 32) / -127;
    if (!put_unit(s, &kind, block, &d, scale))
        return;
    for (int j = 0; j < 8; j++) {
        float step = d * (float)scale[j];
        int v = scale[j] + 32;
        block[2 + j / 4] = (uint8_t)(block[2 + j / 4] | v >> 4 << 2 * (j % 4));
        block[4 + j / 2] = (uint8_t)(block[4 + j / 2] | (v & 15) << 4 * (j % 2));
        for (int i = 0; i < 32; i++) {
            int q = step != 0 ? encode_uneven(x[32 * j + i] / step) : 0;
            uint8_t *to = block + 8 + 16 * j + i % 16;
            *to = (uint8_t)(*to | q << 4 * (i / 16));
        }
    }
}
