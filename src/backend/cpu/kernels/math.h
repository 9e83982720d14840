/* math.h: functions of f32 that loops can turn into vector code.
 *
 * No branches and no calls: every choice is a ?: between values that are both cheap. Each function
 * takes any float, NaN and infinities included, and keeps a relative error of some 3e-7, with an
 * absolute one of 1e-7 where the result passes through zero. Polynomials are minimax fits of our
 * own; what each stands for is said beside it.
 *
 * Where the CPU has a fused multiply-add it is used, so the last bit may differ between ISA
 * levels; on one level a function always gives the same bits. */
#ifndef CPU_KERNELS_MATH_H
#define CPU_KERNELS_MATH_H

#include "base/half.h"

#include <math.h>

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MATH_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MATH_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* Adding this and taking it away again rounds to the nearest integer, ties to even, and leaves that
 * integer in the lowest bits meanwhile. For |x| < 2^22. */
#define MATH_ROUNDER 0x1.8p23f

static inline float math_abs(float x)
{
    return __builtin_fabsf(x);
}

static inline float math_copysign(float x, float sign)
{
    return __builtin_copysignf(x, sign);
}

/* Not for NaN in low or high; x NaN stays. */
static inline float math_clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* 2^k for -126 <= k <= 127; any other k gives some float. */
static inline float math_pow2(int32_t k)
{
    return half_bits_f32(((uint32_t)k + 127u) << 23);
}

static inline float math_round(float x)
{
#if defined(__SSE4_1__) || defined(__aarch64__)
    return __builtin_rintf(x);
#else
    float a = math_abs(x);
    float r = (a + 0x1p23f) - 0x1p23f;
    return math_copysign(a < 0x1p23f ? r : a, x);
#endif
}

static inline float math_floor(float x)
{
#if defined(__SSE4_1__) || defined(__aarch64__)
    return __builtin_floorf(x);
#else
    float r = math_round(x);
    return math_copysign(r > x ? r - 1.0f : r, x);
#endif
}

static inline float math_ceil(float x)
{
#if defined(__SSE4_1__) || defined(__aarch64__)
    return __builtin_ceilf(x);
#else
    float r = math_round(x);
    return math_copysign(r < x ? r + 1.0f : r, x);
#endif
}

/* ---- exponentials -------------------------------------------------------------------------- */

/* x = k ln 2 + r with |r| <= ln 2 / 2 and an integer k; |x| < 1000. ln 2 comes in two parts, the
 * first short enough for k times it to be exact. */
static inline float math_reduce_exp(float x, int32_t *k)
{
    float t = MATH_FMA(x, 0x1.715476p0f, MATH_ROUNDER);
    float n = t - MATH_ROUNDER;

    *k = (int32_t)(half_f32_bits(t) - half_f32_bits(MATH_ROUNDER));
    return MATH_FMA(n, -1.42860682e-6f, MATH_FMA(n, -0x1.62e4p-1f, x));
}

/* e^r - 1 = r + r^2 P(r) for |r| <= ln 2 / 2. */
static inline float math_expm1_core(float r)
{
    float p = 0.001394664595f;
    p = MATH_FMA(p, r, 0.008366698098f);
    p = MATH_FMA(p, r, 0.04166627954f);
    p = MATH_FMA(p, r, 0.1666654218f);
    p = MATH_FMA(p, r, 0.5000000062f);
    return MATH_FMA(p * r, r, r);
}

/* 2^k is multiplied in two halves: the result may be in range where 2^k itself is not. */
static inline float math_exp(float x)
{
    int32_t k;
    float r = math_reduce_exp(math_clamp(x, -106.0f, 90.0f), &k);
    int32_t half = k >> 1;

    return (1.0f + math_expm1_core(r)) * math_pow2(half) * math_pow2(k - half);
}

/* For x <= 0, and up to 40. */
static inline float math_expm1(float x)
{
    int32_t k;
    float r = math_reduce_exp(math_clamp(x, -25.0f, 40.0f), &k);
    float scale = math_pow2(k);

    return MATH_FMA(math_expm1_core(r), scale, scale - 1.0f);
}

/* (e - 1) / (e + 1) with e = e^2|x|, written so that a small x keeps its accuracy. */
static inline float math_tanh(float x)
{
    float e = math_expm1(2.0f * math_clamp(math_abs(x), 0.0f, 10.0f));
    return math_copysign(e / (e + 2.0f), x);
}

static inline float math_sigmoid(float x)
{
    float e = math_exp(-math_abs(x));
    float top = x < 0.0f ? e : 1.0f;
    return top / (1.0f + e);
}

/* ---- logarithms ---------------------------------------------------------------------------- */

/* ln x for a normal x > 0. x = 2^k (1 + f) with 1 + f between the roots of 1/2 and of 2, and
 * ln(1 + f) = f - f^2/2 + f^3 P(f). */
static inline float math_log_core(float x, float bias)
{
    uint32_t bits = half_f32_bits(x);
    uint32_t k = (bits - 0x3f3504f3u) & 0xff800000u;
    float f = half_bits_f32(bits - k) - 1.0f;
    float n = (float)((int32_t)k >> 23) + bias;
    float p = -0.07865450116f;

    p = MATH_FMA(p, f, 0.1287920069f);
    p = MATH_FMA(p, f, -0.1312529531f);
    p = MATH_FMA(p, f, 0.1418142004f);
    p = MATH_FMA(p, f, -0.1662496985f);
    p = MATH_FMA(p, f, 0.2000228253f);
    p = MATH_FMA(p, f, -0.2500079656f);
    p = MATH_FMA(p, f, 0.3333331678f);

    float square = f * f;
    float low = MATH_FMA(square * f, p, n * 1.42860682e-6f) - 0.5f * square;
    return MATH_FMA(n, 0x1.62e4p-1f, low + f);
}

static inline float math_log(float x)
{
    float small = x < 0x1p-126f ? 1.0f : 0.0f; /* subnormals are scaled up first */
    float r = math_log_core(x < 0x1p-126f ? x * 0x1p24f : x, small * -24.0f);

    r = x == 0.0f ? -INFINITY : r;
    r = x < 0.0f ? NAN : r;
    r = x == INFINITY ? INFINITY : r;
    return x != x ? x : r;
}

/* ln(1 + u) for 0 <= u <= 1; what 1 + u loses is put back. */
static inline float math_log1p(float u)
{
    float w = 1.0f + u;
    return math_log_core(w, 0.0f) + (u - (w - 1.0f)) / w;
}

/* ln(1 + e^-|x|), the part that softplus and log_sigmoid share. NaN stays. */
static inline float math_log1p_exp_neg(float x)
{
    float u = math_exp(-math_abs(x));
    float r = math_log1p(u);
    return x != x ? x : r;
}

/* ---- error function ------------------------------------------------------------------------ */

/* The chance that a normal variable exceeds t, for 0 <= t <= 15: e^(-t^2/2) P((t - 3) / (t + 3)),
 * so that the tail keeps its relative accuracy. */
static inline float math_upper_tail(float t)
{
    float u = (t - 3.0f) / (t + 3.0f);
    float p = 5.26764619e-5f;

    p = MATH_FMA(p, u, 1.1450464e-4f);
    p = MATH_FMA(p, u, -3.385459613e-4f);
    p = MATH_FMA(p, u, -9.828224536e-4f);
    p = MATH_FMA(p, u, 2.904213694e-3f);
    p = MATH_FMA(p, u, 6.131811288e-3f);
    p = MATH_FMA(p, u, -4.621323447e-2f);
    p = MATH_FMA(p, u, 0.1232250523f);
    p = MATH_FMA(p, u, -0.2064026219f);
    p = MATH_FMA(p, u, 0.1215139474f);
    return p * math_exp(-0.5f * t * t);
}

static inline float math_erf(float x)
{
    float a = math_abs(x);
    float z = x * x;
    float p = 7.853864414e-5f; /* erf(x) / x in x^2, up to 1 */

    p = MATH_FMA(p, z, -8.010194656e-4f);
    p = MATH_FMA(p, z, 5.188327814e-3f);
    p = MATH_FMA(p, z, -2.685381201e-2f);
    p = MATH_FMA(p, z, 0.1128358515f);
    p = MATH_FMA(p, z, -0.3761262582f);
    p = MATH_FMA(p, z, 1.128379166f);

    float far = 1.0f - 2.0f * math_upper_tail(1.414213562f * math_clamp(a, 0.0f, 5.0f));
    return a < 1.0f ? p * x : math_copysign(far, x);
}

/* x times the chance that a normal variable is below x. From -15 on that is 0 in f32. */
static inline float math_gelu(float x)
{
    float t = math_clamp(math_abs(x), 0.0f, 15.0f);
    float tail = math_upper_tail(t);
    return x < 0.0f ? -t * tail : x * (1.0f - tail);
}

/* Twice the argument of the tanh in gelu_approx, which is x sigmoid of that. */
static inline float math_gelu_approx_arg(float x)
{
    return 1.595769122f * (x + 0.044715f * x * x * x);
}

/* x sigmoid(u), where sigmoid(u) is 0 long before x reaches -128. */
static inline float math_gate(float x, float u)
{
    return (x < -128.0f ? -128.0f : x) * math_sigmoid(u);
}

/* ---- circle -------------------------------------------------------------------------------- */

/* Up to here the reduction below is good; loops hand larger ones to the C library. */
#define MATH_CIRCLE_MOST 8192.0f

/* sin(x + turn pi/2) for |x| <= MATH_CIRCLE_MOST. pi/2 comes in three parts, the first two short
 * enough for their products to be exact. */
static inline float math_sin_turned(float x, int32_t turn)
{
    float t = MATH_FMA(x, 0.636619772f, MATH_ROUNDER);
    float n = t - MATH_ROUNDER;
    uint32_t q = half_f32_bits(t) - half_f32_bits(MATH_ROUNDER) + (uint32_t)turn;
    float r = MATH_FMA(n, -0x1.92p0f, x);
    r = MATH_FMA(n, -0x1.fb4p-12f, r);
    r = MATH_FMA(n, -0x1.4442d2p-24f, r);
    float z = r * r;

    float s = MATH_FMA(-1.951668458e-4f, z, 8.33217381e-3f);
    s = MATH_FMA(s, z, -0.1666665488f);
    s = MATH_FMA(s * z, r, r);
    float c = MATH_FMA(2.443783147e-5f, z, -1.388736247e-3f);
    c = MATH_FMA(c, z, 4.166664677e-2f);
    c = MATH_FMA(c * z, z, MATH_FMA(z, -0.5f, 1.0f));

    float v = q & 1u ? c : s;
    return half_bits_f32(half_f32_bits(v) ^ ((q & 2u) << 30));
}

#endif
