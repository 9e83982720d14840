/* half_test.c: f16 and bf16 against the definition, exhaustively where there are few values. */
#include "base/half.h"

#include <float.h>
#include <math.h>

#include "base/rng.h"
#include "test.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- the slow way ------------------------------------------------------------------------ */

/* A small float's value from its fields, exact in double. bits: fraction bits; bias of exponent. */
static double slow_value(uint16_t h, int fraction_bits, int bias)
{
    int exponent = (h & 0x7fff) >> fraction_bits, most = 0x7fff >> fraction_bits;
    int fraction = h & ((1 << fraction_bits) - 1);
    double sign = h & 0x8000 ? -1.0 : 1.0;

    if (exponent == most)
        return fraction ? (double)NAN : sign * HUGE_VAL;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

/* The nearest one, found by halving the ordered list of all of them; a tie goes to the even code.
 * Infinity stands where the next larger finite value would. */
static uint16_t slow_round(double v, int fraction_bits, int bias)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    uint16_t inf = (uint16_t)(0x7fff >> fraction_bits << fraction_bits);
    double a = fabs(v);
    uint16_t lo = 0, hi = inf;

    if (isnan(v))
        return 0xffff;
    if (isinf(v))
        return sign | inf;
    while (hi - lo > 1) { /* value(lo) <= a < value(hi) */
        uint16_t mid = (uint16_t)((lo + hi) / 2);
        if (slow_value(mid, fraction_bits, bias) <= a)
            lo = mid;
        else
            hi = mid;
    }
    double below = slow_value(lo, fraction_bits, bias);
    double above = hi == inf ? ldexp(1, bias + 1) : slow_value(hi, fraction_bits, bias);
    double to_lo = a - below, to_hi = above - a; /* exact where it decides */
    bool up = to_hi < to_lo || (to_hi == to_lo && (lo & 1));
    return sign | (up ? hi : lo);
}

static bool is_nan16(uint16_t h, uint16_t inf)
{
    return (h & 0x7fff) > inf;
}

static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* ---- to f32 ------------------------------------------------------------------------------ */

TEST(half, every_f16_is_what_its_fields_say)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = f16_to_f32((uint16_t)h);
        double want = slow_value((uint16_t)h, 10, 15);
        bool ok = isnan(want) ? isnan(f) && !!signbit(f) == !!(h & 0x8000) &&
                                    (half_f32_bits(f) & 0x00400000)
                              : same_float(f, (float)want);
        if (!ok)
            fail(t, "%04x gave %a, not %a", h, (double)f, want);
    }
    expect(t, same_float(f16_to_f32(0x3c00), 1.0f));
}

TEST(half, every_bf16_is_what_its_fields_say)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = bf16_to_f32((uint16_t)h);
        double want = slow_value((uint16_t)h, 7, 127);
        if (isnan(want) ? !isnan(f) : !same_float(f, (float)want))
            fail(t, "%04x gave %a, not %a", h, (double)f, want);
    }
    expect(t, same_float(bf16_to_f32(0xc000), -2.0f));
}

TEST(half, every_value_survives_the_round_trip)
{
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t f16 = f32_to_f16(f16_to_f32((uint16_t)h));
        uint16_t bf16 = f32_to_bf16(bf16_to_f32((uint16_t)h));
        uint16_t quiet16 = is_nan16((uint16_t)h, 0x7c00) ? 0x200 : 0;
        uint16_t quietb16 = is_nan16((uint16_t)h, 0x7f80) ? 0x40 : 0;
        if (f16 != (h | quiet16))
            fail(t, "f16 %04x came back as %04x", h, f16);
        if (bf16 != (h | quietb16))
            fail(t, "bf16 %04x came back as %04x", h, bf16);
        if (!quiet16 && f64_to_f16((double)f16_to_f32((uint16_t)h)) != h)
            fail(t, "f16 %04x did not come back from f64", h);
        if (!quietb16 && f64_to_bf16((double)bf16_to_f32((uint16_t)h)) != h)
            fail(t, "bf16 %04x did not come back from f64", h);
    }
    expect(t, true);
}

/* ---- from f32 ---------------------------------------------------------------------------- */

static bool agrees(struct test *t, float f)
{
    uint16_t got = f32_to_f16(f), want = slow_round((double)f, 10, 15);
    uint16_t gotb = f32_to_bf16(f), wantb = slow_round((double)f, 7, 127);
    uint16_t sign = signbit(f) ? 0x8000 : 0;

    if (isnan(f)) { /* quiet, of the same sign, still a NaN */
        bool ok = (got & 0xfe00) == (sign | 0x7e00) && (gotb & 0xffc0) == (sign | 0x7fc0);
        return ok || fail(t, "NaN %08x gave %04x and %04x", half_f32_bits(f), got, gotb);
    }
    if (got != want)
        return fail(t, "f16 of %a is %04x, not %04x", (double)f, got, want);
    if (gotb != wantb)
        return fail(t, "bf16 of %a is %04x, not %04x", (double)f, gotb, wantb);
    return true;
}

TEST(half, special_floats)
{
    static const float rows[] = {
        0.0f,
        -0.0f,
        1.0f,
        -1.0f,
        65504.0f,
        65519.996f,
        65520.0f,
        -65520.0f,
        65536.0f,
        1e30f,
        FLT_MAX,
        -FLT_MAX,
        FLT_MIN,
        0x1p-149f,
        -0x1p-149f,
        0x1p-14f,
        0x1.fffffep-15f,
        0x1p-24f,
        0x1p-25f,
        0x1.000002p-25f,
        0x1.fffffep-26f,
        0x1.8p-24f,
        INFINITY,
        -INFINITY,
        NAN,
        -NAN,
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(t, agrees(t, rows[i]));
    expect_eq_u64(t, f32_to_f16(65520.0f), 0x7c00);
    expect_eq_u64(t, f32_to_f16(65519.996f), 0x7bff);
    expect_eq_u64(t, f32_to_f16(0x1p-25f), 0); /* a tie between 0 and the smallest */
    expect_eq_u64(t, f32_to_f16(0x1.8p-24f), 2);
    expect_eq_u64(t, f32_to_bf16(FLT_MAX), 0x7f80);
    expect(t, agrees(t, from_bits(0x7f800001))); /* a NaN whose payload is all in the lower bits */
    expect(t, agrees(t, from_bits(0xff800001)));
    expect(t, agrees(t, from_bits(0x7fffffff)));
}

/* Each f16's and bf16's neighbourhood: itself, the ties on both sides, and a step beside those. */
TEST(half, ties_and_their_neighbours)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double here = slow_value((uint16_t)h, 10, 15);
        double next = h == 0x7bff ? 65536.0 : slow_value((uint16_t)(h + 1), 10, 15);
        uint32_t tie = half_f32_bits((float)((here + next) / 2));
        for (uint32_t d = 0; d < 3; d++) {
            if (!agrees(t, from_bits(tie - 1 + d)) || !agrees(t, -from_bits(tie - 1 + d)))
                return;
        }
    }
    for (uint32_t h = 0; h < 0x7f80; h++) {
        uint32_t tie = h << 16 | 0x8000;
        for (uint32_t d = 0; d < 3; d++) {
            if (!agrees(t, from_bits(tie - 1 + d)) || !agrees(t, -from_bits(tie - 1 + d)))
                return;
        }
    }
    expect(t, true);
}

TEST(half, random_floats)
{
    struct rng_philox r;
    uint32_t n = test_full() ? 5000000 : 300000;

    rng_philox_init(&r, 11);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = rng_philox_next(&r);
        if (i % 2) /* the exponents that f16 has, and a few around them */
            bits = (bits & 0x807fffff) | (100 + bits % 46) << 23;
        if (!agrees(t, from_bits(bits)))
            return;
    }
    expect(t, true);
}

/* ---- from f64 ---------------------------------------------------------------------------- */

TEST(half, from_f64_rounds_once)
{
    /* 1 + 2^-11 is a tie; what lies above it by less than an f32 can say must still go up. */
    expect_eq_u64(t, f64_to_f16(0x1.002p0), 0x3c00);
    expect_eq_u64(t, f64_to_f16(0x1.0020000000001p0), 0x3c01);
    expect_eq_u64(t, f64_to_f16(-0x1.0020000000001p0), 0xbc01);
    expect_eq_u64(t, f64_to_f16(0x1.0060000000000p0), 0x3c02);
    expect_eq_u64(t, f64_to_f16(0x1.005ffffffffffp0), 0x3c01);
    expect_eq_u64(t, f64_to_bf16(0x1.01p0), 0x3f80);
    expect_eq_u64(t, f64_to_bf16(0x1.0100000000001p0), 0x3f81);
    expect_eq_u64(t, f64_to_bf16(0x1.02ffffffffffp0), 0x3f81);
    expect_eq_u64(t, f64_to_f16(0x1.0000000000001p-25), 1);
    expect_eq_u64(t, f64_to_f16(0x1p-25), 0);
    expect_eq_u64(t, f64_to_f16(65519.99999999999), 0x7bff);
    expect_eq_u64(t, f64_to_f16(1e300), 0x7c00);
    expect_eq_u64(t, f64_to_f16(-1e-300), 0x8000);
    expect_eq_u64(t, f64_to_bf16(-1e300), 0xff80);
    expect_eq_u64(t, f64_to_bf16(0x1.0000000000001p-134), 1);
    expect_eq_u64(t, f64_to_bf16(0x1p-134), 0);
    expect_eq_u64(t, f64_to_bf16(0x1.fep127), 0x7f7f);
    expect_eq_u64(t, f64_to_bf16(0x1.fefffffffffffp127), 0x7f7f);
    expect_eq_u64(t, f64_to_bf16(0x1.ffp127), 0x7f80);
    expect(t, is_nan16(f64_to_f16((double)NAN), 0x7c00));
    expect(t, is_nan16(f64_to_bf16((double)-NAN), 0x7f80));
    expect_eq_u64(t, f64_to_f16(HUGE_VAL), 0x7c00);
    expect_eq_u64(t, f64_to_f16(-0.0), 0x8000);
}

TEST(half, random_doubles)
{
    struct rng_philox r;

    rng_philox_init(&r, 12);
    for (int i = 0; i < 300000; i++) {
        uint32_t hi = rng_philox_next(&r), lo = rng_philox_next(&r);
        double v = ldexp(1.0 + hi * 0x1p-32 + (i % 3 ? lo * 0x1p-64 : 0), (int)(lo % 300) - 160);
        if (i % 4 == 0) /* near the ties of f16 */
            v = slow_value(hi & 0x7bff, 10, 15) * (1 + 0x1p-11) + (i % 8 ? 0x1p-52 : 0);
        v = hi & 1 ? -v : v;
        uint16_t f16 = f64_to_f16(v), bf16 = f64_to_bf16(v);
        if (f16 != slow_round(v, 10, 15) || bf16 != slow_round(v, 7, 127)) {
            fail(t, "%a gave %04x and %04x", v, f16, bf16);
            return;
        }
    }
    expect(t, true);
}

/* ---- hardware ---------------------------------------------------------------------------- */

#if defined(__x86_64__)
__attribute__((target("f16c"))) static uint16_t cpu_f32_to_f16(float f)
{
    return (uint16_t)_cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT);
}

__attribute__((target("f16c"))) static float cpu_f16_to_f32(uint16_t h)
{
    return _cvtsh_ss(h);
}

TEST(half, like_the_cpu)
{
    if (!__builtin_cpu_supports(
            "avx2")) /* every CPU with it has f16c; clang has no word for that */
        skip(t, "this CPU has no f16c that we know of");
    for (uint32_t h = 0; h < 65536; h++) {
        if (!same_float(f16_to_f32((uint16_t)h), cpu_f16_to_f32((uint16_t)h)))
            fail(t, "f16 %04x differs", h);
    }
    uint32_t step = test_full() ? 1 : 1009, bits = 0;
    do {
        float f = from_bits(bits);
        if (f32_to_f16(f) != cpu_f32_to_f16(f)) {
            fail(t, "f32 %08x gave %04x, the CPU %04x", bits, f32_to_f16(f), cpu_f32_to_f16(f));
            return;
        }
        bits += step;
    } while (bits >= step);
    expect(t, true);
}
#endif
