/* e2m1.h: what blocks of E2M1 are made of, MXFP4 and NVFP4 (ops-special.md 1.4): codes stand for
 * integers, twice as large as the small floats that they are, and scales for half of theirs. */
#ifndef BACKEND_E2M1_H
#define BACKEND_E2M1_H

#include "base/half.h"

static const int8_t e2m1_twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

enum { E2M1_MOST = 252 }; /* the e of MXFP4 up to which all of a block's numbers are finite */

/* 2^(e - 128). The two smallest are subnormal. */
static inline float e2m1_power(uint8_t e)
{
    return half_bits_f32(e >= 2 ? (uint32_t)(e - 1) << 23 : (uint32_t)0x200000 << e);
}

/* The same, and NaN, which marks a result, for a block that is not finite throughout. */
static inline float e2m1_finite_power(uint8_t e)
{
    return e <= E2M1_MOST ? e2m1_power(e) : half_bits_f32(0x7fc00000);
}

/* Half of an E4M3 without its sign; NaN is 0. */
static inline float e2m1_scale(uint8_t s)
{
    uint32_t e = s >> 3 & 15, m = s & 7;

    if (e == 15 && m == 7)
        return 0;
    return e ? half_bits_f32((e + 119) << 23 | m << 20) : (float)m * 0x1p-10f;
}

#endif
