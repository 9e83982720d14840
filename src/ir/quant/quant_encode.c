/* quant_encode.c: numbers as blocks with one scale, by the rules of ops-special.md 1.5; those with
 * a scale per sub-block are in quant_encode_k.c.
 *
 * Codes come from the unrounded f32 scale; only the stored scale is rounded. */
#include "ir/quant/quant_encode.h"

#include <stddef.h>

#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode_impl.h"
#include "ir/quant/quant_scheme.h"
#include "ir/quant/quant_side.h"
#include "rlx/graph.h"

#define Q8_0_ELEMS 32
#define Q8_K_ELEMS 256
#define Q8_K_GROUP 16        /* codes per sum */
#define LARGEST_EXPONENT 252 /* of MXFP4: 12 times its scale is finite */

int64_t quant_first_not_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return i;
    return -1;
}

/* ---- four and five bits -------------------------------------------------------------------- */

/* The low four bits of 32 codes: of elements i and i + 16 in byte i. */
static void put_nibbles(uint8_t *qs, const int *q)
{
    for (int i = 0; i < 16; i++)
        qs[i] = (uint8_t)((q[i] & 15) | (q[i + 16] & 15) << 4);
}

/* Bit i of qh: the fifth bit of code i. */
static void put_fifth_bits(uint8_t *qh, const int *q)
{
    memset(qh, 0, 4);
    for (int i = 0; i < 32; i++)
        qh[i / 8] = (uint8_t)(qh[i / 8] | (q[i] >> 4 & 1) << i % 8);
}

/* The largest becomes code 0; half: 8 or 16. */
static void symmetric(const float *x, int half, uint8_t *block, int *q)
{
    float d = encode_largest(x, 32) / (float)-half, inverse = encode_inverse(d);

    for (int i = 0; i < 32; i++)
        q[i] = encode_code(truncf(x[i] * inverse + ((float)half + 0.5f)), 0, 2 * half - 1);
    encode_put_f16(block, d);
}

/* The smallest becomes code 0, the largest `most`. */
static void from_smallest(const float *x, int most, uint8_t *block, int *q)
{
    float low = x[0], high = x[0];

    for (int i = 1; i < 32; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    float d = (high - low) / (float)most, inverse = encode_inverse(d);
    for (int i = 0; i < 32; i++)
        q[i] = encode_code(truncf((x[i] - low) * inverse + 0.5f), 0, most);
    encode_put_f16(block, d);
    encode_put_f16(block + 2, low);
}

static void encode_q4_0(const float *x, uint8_t *block)
{
    int q[32];

    symmetric(x, 8, block, q);
    put_nibbles(block + 2, q);
}

static void encode_q4_1(const float *x, uint8_t *block)
{
    int q[32];

    from_smallest(x, 15, block, q);
    put_nibbles(block + 4, q);
}

static void encode_q5_0(const float *x, uint8_t *block)
{
    int q[32];

    symmetric(x, 16, block, q);
    put_fifth_bits(block + 2, q);
    put_nibbles(block + 6, q);
}

static void encode_q5_1(const float *x, uint8_t *block)
{
    int q[32];

    from_smallest(x, 31, block, q);
    put_fifth_bits(block + 4, q);
    put_nibbles(block + 8, q);
}

/* The largest becomes -127, the first entry of the table. */
static void encode_iq4_nl(const float *x, uint8_t *block)
{
    float d = encode_largest(x, 32) / -127, inverse = encode_inverse(d);
    int q[32];

    for (int i = 0; i < 32; i++)
        q[i] = encode_uneven(x[i] * inverse);
    encode_put_f16(block, d);
    put_nibbles(block + 2, q);
}

/* ---- four bits with an exponent ------------------------------------------------------------ */

/* Codes of E2M1 for a scale of 2^(e - 127), and the sum of their squared errors. */
static double codes_for_exponent(const float *x, int e, int *q)
{
    double error = 0;

    for (int i = 0; i < 32; i++) {
        double v = ldexp((double)x[i], 127 - e);
        q[i] = quant_to_e2m1((float)v);
        v -= (double)quant_e2m1((uint8_t)q[i]);
        error += v * v;
    }
    return ldexp(error, 2 * e);
}

/* The largest is from 4 to 8 times the scale, and beyond 6 becomes 6; or from 2 to 4 times one
 * twice as large, unless that could overflow: whichever is closer on the whole. */
static void encode_mxfp4(const float *x, uint8_t *block)
{
    int q[32], wide[32], e = ilogbf(encode_largest(x, 32)) + 125;

    if (encode_largest(x, 32) == 0 || e < 0)
        e = 0;
    bool wider =
        codes_for_exponent(x, e + 1, wide) < codes_for_exponent(x, e, q) && e < LARGEST_EXPONENT;
    block[0] = (uint8_t)(e + wider);
    put_nibbles(block + 1, wider ? wide : q);
}

/* Of each sixteen, the largest becomes 6. NaN for a scale says that it was too large for one. */
static void encode_nvfp4(const float *x, uint8_t *block)
{
    for (int j = 0; j < 4; j++, x += 16) {
        float scale = fabsf(encode_largest(x, 16)) / 6;
        block[j] = scale > 448 ? 0x7f : quant_to_e4m3(scale);
        scale = quant_e4m3(block[j]);
        for (int i = 0; i < 8; i++) {
            int low = scale != 0 ? quant_to_e2m1(x[i] / scale) : 0;
            int high = scale != 0 ? quant_to_e2m1(x[i + 8] / scale) : 0;
            block[4 + 8 * j + i] = (uint8_t)(low | high << 4);
        }
    }
}

/* ---- -1, 0 or 1 ---------------------------------------------------------------------------- */

/* Codes 0 to 2, of 256 numbers; the largest is the scale. */
static void ternary(const float *x, uint8_t *scale, int *q)
{
    float d = fabsf(encode_largest(x, 256)), inverse = encode_inverse(d);

    for (int i = 0; i < 256; i++)
        q[i] = encode_code(roundf(x[i] * inverse), -1, 1) + 1;
    encode_put_f16(scale, d);
}

/* `digits` codes of base 3, `apart` from each other, as a fraction of 243: rounded up, it gives
 * them back. */
static uint8_t put_digits(const int *q, int digits, int apart)
{
    int value = 0;

    for (int n = 0; n < 5; n++)
        value = 3 * value + (n < digits ? q[n * apart] : 0);
    return (uint8_t)((256 * value + 242) / 243);
}

static void encode_tq1_0(const float *x, uint8_t *block)
{
    int q[256];

    ternary(x, block + 52, q);
    for (int i = 0; i < 32; i++)
        block[i] = put_digits(q + i, 5, 32);
    for (int i = 0; i < 16; i++)
        block[32 + i] = put_digits(q + 160 + i, 5, 16);
    for (int i = 0; i < 4; i++)
        block[48 + i] = put_digits(q + 240 + i, 4, 4);
}

static void encode_tq2_0(const float *x, uint8_t *block)
{
    int q[256];

    ternary(x, block + 64, q);
    for (int i = 0; i < 64; i++) {
        const int *first = q + 128 * (i / 32) + i % 32;
        block[i] = (uint8_t)(first[0] | first[32] << 2 | first[64] << 4 | first[96] << 6);
    }
}

/* ---- eight bits ---------------------------------------------------------------------------- */

bool quant_encode_q8_0(const float *x, uint8_t *block)
{
    if (quant_first_not_finite(x, Q8_0_ELEMS) >= 0)
        return false;
    float d = fabsf(encode_largest(x, Q8_0_ELEMS)) / 127, inverse = encode_inverse(d);
    encode_put_f16(block, d);
    for (int i = 0; i < Q8_0_ELEMS; i++) /* halves go away from zero */
        block[2 + i] = (uint8_t)encode_code(roundf(x[i] * inverse), -127, 127);
    return true;
}

/* f32 d, i8 code[256], i16 sum[16]. The largest becomes -127. */
bool quant_encode_q8_k(const float *x, uint8_t *block)
{
    uint8_t *codes = block + 4, *sums = codes + Q8_K_ELEMS;

    if (quant_first_not_finite(x, Q8_K_ELEMS) >= 0)
        return false;
    float a = encode_largest(x, Q8_K_ELEMS);
    float t = a != 0 ? -127 / a : 0, d = a != 0 ? 1 / t : 0;
    uint32_t bits = half_f32_bits(d);
    for (int i = 0; i < 4; i++)
        block[i] = (uint8_t)(bits >> 8 * i);
    for (int g = 0; g < Q8_K_ELEMS / Q8_K_GROUP; g++) {
        int sum = 0;
        for (int i = g * Q8_K_GROUP; i < (g + 1) * Q8_K_GROUP; i++) {
            int q = encode_code(rintf(t * x[i]), -127, 127); /* halves go to even */
            codes[i] = (uint8_t)q;
            sum += q;
        }
        encode_put_u16(sums + 2 * g, (uint16_t)sum);
    }
    return true;
}

static void encode_q8_0(const float *x, uint8_t *block)
{
    quant_encode_q8_0(x, block);
}

static void encode_q8_k(const float *x, uint8_t *block)
{
    quant_encode_q8_k(x, block);
}

/* ---- all of them --------------------------------------------------------------------------- */

typedef void (*encode_fn)(const float *x, uint8_t *block);

static const encode_fn encoder[] = {
#define ENCODE(word) [RLX_QUANT_SCHEME_##word] = encode_##word
    ENCODE(q4_0),   ENCODE(q4_1),  ENCODE(q5_0),  ENCODE(q5_1),  ENCODE(q8_0),  ENCODE(q2_k),
    ENCODE(q3_k),   ENCODE(q4_k),  ENCODE(q5_k),  ENCODE(q6_k),  ENCODE(q8_k),  ENCODE(iq4_nl),
    ENCODE(iq4_xs), ENCODE(mxfp4), ENCODE(nvfp4), ENCODE(tq1_0), ENCODE(tq2_0),
#undef ENCODE
};

bool quant_has_encoder(int32_t scheme)
{
    return scheme >= 0 && (size_t)scheme < sizeof encoder / sizeof encoder[0] && encoder[scheme];
}

/* An f16 that is Inf: nothing else than NaN and Inf has all of these bits. */
static bool overflowed(const uint8_t *field)
{
    return (field[1] & 0x7c) == 0x7c;
}

bool quant_encode_block(int32_t scheme, const float *x, uint8_t *block)
{
    const struct quant_scheme *s = quant_scheme(scheme);

    encoder[scheme](x, block);
    switch (scheme) {
    case RLX_QUANT_SCHEME_q8_k:
    case RLX_QUANT_SCHEME_mxfp4: return true; /* their scales reach as far as f32 */
    case RLX_QUANT_SCHEME_nvfp4: return !memchr(block, 0x7f, 4);
    default: break;
    }
    return !overflowed(block + s->scale_at) && !(s->offset_at && overflowed(block + s->offset_at));
}
