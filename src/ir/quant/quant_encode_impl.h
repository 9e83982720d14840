/* quant_encode_impl.h: what the files of quant_encode share. */
#ifndef IR_QUANT_ENCODE_IMPL_H
#define IR_QUANT_ENCODE_IMPL_H

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/quant/quant_encode.h"

/* The first of those with the largest magnitude, with its sign. */
static inline float encode_largest(const float *x, int n)
{
    float a = 0;

    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(a))
            a = x[i];
    return a;
}

/* An integer as a code, low <= 0. Where a scale is so small that its inverse is infinite, NaN
 * may come: the stored scale is then zero, and any code in range will do. */
static inline int encode_code(float v, int low, int high)
{
    return isnan(v) ? 0 : v < (float)low ? low : v > (float)high ? high : (int)v;
}

static inline float encode_inverse(float d)
{
    return d != 0 ? 1 / d : 0;
}

static inline void encode_put_u16(uint8_t *to, uint16_t v)
{
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
}

/* d as the block holds it. */
static inline float encode_put_f16(uint8_t *to, float d)
{
    uint16_t bits = f32_to_f16(d);

    encode_put_u16(to, bits);
    return f16_to_f32(bits);
}

/* What the codes of IQ4_NL and IQ4_XS stand for: the nearest one's code. */
static inline int encode_uneven(float v)
{
    static const int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
    int best = 0;

    for (int i = 1; i < 16; i++)
        if (fabsf(v - (float)table[i]) < fabsf(v - (float)table[best]))
            best = i;
    return best;
}

/* quant_encode_k.c: 256 numbers each. */
void encode_q2_k(const float *x, uint8_t *block);
void encode_q3_k(const float *x, uint8_t *block);
void encode_q4_k(const float *x, uint8_t *block);
void encode_q5_k(const float *x, uint8_t *block);
void encode_q6_k(const float *x, uint8_t *block);
void encode_iq4_xs(const float *x, uint8_t *block);

#endif
