/* quant_side_rows.c: tiles of a packed matrix W[k,n] whose scales lie beside it (quant_rows.h,
 * ops-special.md 1.2).
 *
 * A row of a tile is worked out in pieces: its codes as bytes, what they stand for as f32, and that
 * times the scales of its group. */
#include "backend/cpu/kernels/dequant/quant_rows.h"

enum { PIECE = 256 };

/* Codes e .. e+n-1 of two to a byte, as bytes from 0 to 15. An odd e begins with a high half. */
static const uint8_t *nibbles(const uint8_t *from, int64_t e, int64_t n, uint8_t *restrict to)
{
    const uint8_t *at = from + e / 2;
    int64_t odd = e % 2, pairs = (n - odd) / 2;

    if (odd)
        to[0] = *at++ >> 4;
    for (int64_t i = 0; i < pairs; i++) {
        to[odd + 2 * i] = at[i] & 15;
        to[odd + 2 * i + 1] = at[i] >> 4;
    }
    if ((n - odd) % 2)
        to[n - 1] = at[pairs] & 15;
    return to;
}

/* ---- what codes stand for ------------------------------------------------------------------ */

/* s eeee mmm: a float but for its exponent's bias; without a leading 1 it is m / 512. */
static inline float e4m3(uint8_t code)
{
    uint32_t em = code & 0x7fu, sign = (code & 0x80u) << 24;
    uint32_t normal = (em << 20) + 0x3c000000u;
    uint32_t small = half_f32_bits((float)(int32_t)em * 0x1p-9f);
    uint32_t v = sign | half_select(em < 8, small, normal);

    return half_bits_f32(em == 0x7f ? 0 : v);
}

/* The upper byte of an f16. */
static inline float e5m2(uint8_t code)
{
    uint32_t v = half_f32_bits(f16_to_f32((uint16_t)(code << 8)));

    return half_bits_f32((code & 0x7c) == 0x7c ? 0 : v);
}

/* s ee m. */
static inline float e2m1(uint8_t code)
{
    uint32_t em = code & 7u, sign = (code & 8u) << 28;
    uint32_t normal = (em << 22) + 0x3f000000u, small = em ? 0x3f000000u : 0;

    return half_bits_f32(sign | half_select(em < 2, small, normal));
}

static void values(int32_t scheme, const uint8_t *code, int64_t n, float *restrict out)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_int8_block:
    case RLX_QUANT_SCHEME_int8_block_asym:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)(int8_t)code[i];
        break;
    case RLX_QUANT_SCHEME_int4_block:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)((code[i] ^ 8) - 8);
        break;
    case RLX_QUANT_SCHEME_fp8_e4m3:
        for (int64_t i = 0; i < n; i++)
            out[i] = e4m3(code[i]);
        break;
    case RLX_QUANT_SCHEME_fp8_e5m2:
        for (int64_t i = 0; i < n; i++)
            out[i] = e5m2(code[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] = e2m1(code[i]);
        break;
    }
}

/* ---- times their scales -------------------------------------------------------------------- */

/* at: of the first element's scale in [groups,n]. */
static void scaled(const struct quant_side *w, int64_t column, int64_t at, int64_t n,
                   float *restrict out)
{
    switch (w->scheme) {
    case RLX_QUANT_SCHEME_int8_block_asym:
        for (int64_t i = 0; i < n; i++)
            out[i] = (out[i] - w->zero[at + i]) * w->scale[at + i];
        break;
    case RLX_QUANT_SCHEME_nvfp4_block:
        for (int64_t i = 0; i < n; i++)
            out[i] = out[i] * e4m3(w->scale8[at + i]) * w->all;
        break;
    case RLX_QUANT_SCHEME_fp8_e4m3:
    case RLX_QUANT_SCHEME_fp8_e5m2:
        if (w->scale)
            for (int64_t i = 0; i < n; i++)
                out[i] *= w->scale[column + i];
        else
            for (int64_t i = 0; i < n; i++)
                out[i] *= w->all; /* 1 where there is none */
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] *= w->scale[at + i];
        break;
    }
}

void quant_side_tile(const struct quant_side *w, int64_t k, int64_t ks, int64_t n, int64_t ns,
                     float *restrict out, int64_t ld)
{
    bool halves = quant_scheme(w->scheme)->nibbles;
    uint8_t byte[PIECE];

    for (int64_t j = k; j < k + ks; j++, out += ld)
        for (int64_t i = 0; i < ns; i += PIECE) {
            int64_t part = cpu_min_i64(PIECE, ns - i), e = j * w->n + n + i;
            const uint8_t *code = halves ? nibbles(w->code, e, part, byte) : w->code + e;
            values(w->scheme, code, part, out + i);
            scaled(w, n + i, j / w->group * w->n + n + i, part, out + i);
        }
}
