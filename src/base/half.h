/* half.h: f16 and bf16 to f32 and back, rounding to nearest even; subnormals, Inf and NaN kept.
 *
 * Everything is inline, in integers where it can be, and works out both sides of every choice:
 * kernels call these in loops, and each loop must turn into vector code at each instruction set it
 * is compiled for. No step meets a subnormal float that matters, so a thread that flushes those to
 * zero gets the same f16 as any other.
 *
 *            sign  exponent  fraction   bias
 *     f16       1         5        10     15
 *     bf16      1         8         7    127    the upper half of an f32
 *     f32       1         8        23    127 */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t half_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float half_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* a or b, both worked out. With ?: a compiler computes a float only on the side that wants it, lest
 * it raise a floating-point flag for nothing; that is a branch, and the loop stays scalar. */
static inline uint32_t half_select(int which, uint32_t a, uint32_t b)
{
    uint32_t mask = 0u - (uint32_t)which;

    return (a & mask) | (b & ~mask);
}

/* A signalling NaN comes out quiet, with its payload. */
static inline float f16_to_f32(uint16_t h)
{
    uint32_t em = (h & 0x7fffu) << 13; /* exponent and fraction where an f32 has them */
    uint32_t sign = (h & 0x8000u) << 16;

    /* Inf and NaN need the bias moved twice: exponent 31 becomes 255, not 143. */
    uint32_t normal = em + 0x38000000u + (em >= 0x0f800000u ? 0x38000000u : 0u);
    normal |= em > 0x0f800000u ? 0x00400000u : 0u;
    /* A subnormal is fraction * 2^-24: give it the implied 1 it lacks, then take that away. */
    uint32_t small = half_f32_bits(half_bits_f32(em + 0x38800000u) - 0x1p-14f);

    return half_bits_f32(sign | half_select(em < 0x00800000u, small, normal));
}

/* Overflow gives Inf. A NaN comes out quiet, with the upper bits of its payload. */
static inline uint16_t f32_to_f16(float f)
{
    uint32_t bits = half_f32_bits(f);
    uint32_t a = bits & 0x7fffffffu;

    /* A carry out of the fraction raises the exponent, up to Inf, as it should. */
    uint32_t normal = (a - 0x38000000u + 0x0fffu + ((a >> 13) & 1u)) >> 13;
    /* Below 2^-14: in [0.5, 1) a float's last bit is worth 2^-24, so the addition rounds for us. */
    uint32_t small = half_f32_bits(half_bits_f32(a) + 0.5f) - 0x3f000000u;
    uint32_t large = a > 0x7f800000u ? 0x7e00u | ((a >> 13) & 0x3ffu) : 0x7c00u;

    uint32_t r = half_select(a < 0x38800000u, small, normal);
    r = half_select(a >= 0x47800000u, large, r); /* from 2^16 on */
    return (uint16_t)(r | ((bits >> 16) & 0x8000u));
}

static inline float bf16_to_f32(uint16_t h)
{
    return half_bits_f32((uint32_t)h << 16);
}

/* Overflow gives Inf. A NaN comes out quiet, with the upper bits of its payload. */
static inline uint16_t f32_to_bf16(float f)
{
    uint32_t bits = half_f32_bits(f);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40u;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* The f32 next to d towards zero, its last bit set if anything was lost. Rounding that to fewer
 * bits gives what rounding d gives, which two roundings to nearest do not. */
static inline float half_round_to_odd(double d)
{
    float f = (float)d;
    uint32_t bits = half_f32_bits(f);
    uint32_t up = (double)f > d ? 1u : 0u, down = (double)f < d ? 1u : 0u;
    uint32_t sign = bits >> 31;
    uint32_t inward = (up & ~sign) | (down & sign); /* |f| > |d|: go back one */

    bits -= inward;
    return half_bits_f32(bits | up | down); /* a NaN is neither up nor down */
}

/* From double with one rounding, not two. */
static inline uint16_t f64_to_f16(double d)
{
    return f32_to_f16(half_round_to_odd(d));
}

static inline uint16_t f64_to_bf16(double d)
{
    return f32_to_bf16(half_round_to_odd(d));
}

/* A double rounded to f32. gcc 12 at -O2 drops (double)(float) pairs that it packs into vectors, so
 * the value passes through memory that the compiler must believe in. */
static inline double f64_through_f32(double d)
{
    volatile float f = (float)d;

    return (double)f;
}

#endif
