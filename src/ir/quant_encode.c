/* quant_encode.c: numbers as blocks of eight-bit codes, by the rules of ops-special 1.5.
 *
 * Codes come from the unrounded f32 scale; only the stored scale is rounded. A scale too small for
 * its inverse to be finite makes products that are infinite or NaN; as the stored scale is then
 * zero, any code in range will do for them. */
#include "ir/quant_encode.h"

#include <math.h>

#include "base/half.h"

#define Q8_0_ELEMS 32
#define Q8_K_ELEMS 256
#define Q8_K_GROUP 16 /* codes per sum */

static bool all_finite(const float *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* The first of those with the largest magnitude. */
static float largest(const float *x, int n)
{
    float a = 0;

    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(a))
            a = x[i];
    return a;
}

/* A whole number as a code. */
static int code(float v)
{
    return isnan(v) ? 0 : v < -127 ? -127 : v > 127 ? 127 : (int)v;
}

static void put_u16(uint8_t *to, uint16_t v)
{
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
}

bool quant_encode_q8_0(const float *x, uint8_t *block)
{
    if (!all_finite(x, Q8_0_ELEMS))
        return false;
    float d = fabsf(largest(x, Q8_0_ELEMS)) / 127;
    float inverse = d != 0 ? 1 / d : 0;
    put_u16(block, f32_to_f16(d));
    for (int i = 0; i < Q8_0_ELEMS; i++)
        block[2 + i] = (uint8_t)code(roundf(x[i] * inverse)); /* halves go away from zero */
    return true;
}

/* f32 d, i8 code[256], i16 sum[16]. The largest becomes -127. */
bool quant_encode_q8_k(const float *x, uint8_t *block)
{
    uint8_t *codes = block + 4, *sums = codes + Q8_K_ELEMS;

    if (!all_finite(x, Q8_K_ELEMS))
        return false;
    float a = largest(x, Q8_K_ELEMS);
    float t = a != 0 ? -127 / a : 0, d = a != 0 ? 1 / t : 0;
    uint32_t bits = half_f32_bits(d);
    for (int i = 0; i < 4; i++)
        block[i] = (uint8_t)(bits >> 8 * i);
    for (int g = 0; g < Q8_K_ELEMS / Q8_K_GROUP; g++) {
        int sum = 0;
        for (int i = g * Q8_K_GROUP; i < (g + 1) * Q8_K_GROUP; i++) {
            int q = code(rintf(t * x[i])); /* halves go to even */
            codes[i] = (uint8_t)q;
            sum += q;
        }
        put_u16(sums + 2 * g, (uint16_t)sum);
    }
    return true;
}
