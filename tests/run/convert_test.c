/* convert_test.c: every pair of element types against the rules of cast (ops-core.md 2.3) said
 * slowly.
 *
 * The slow statement works on exact numbers: a long double holds every f64 and every 64-bit
 * integer. It shares nothing with base/half.h or run/convert.c. */
#include "run/convert.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"

_Static_assert(LDBL_MANT_DIG >= 64, "the slow statement needs exact 64-bit integers");

/* ---- formats, said slowly -------------------------------------------------------------------- */

struct format {
    int bytes, fraction, bias; /* the exponent takes what is left beside the sign */
};

static struct format format_of(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_f16: return (struct format){2, 10, 15};
    case RLX_DTYPE_bf16: return (struct format){2, 7, 127};
    case RLX_DTYPE_f64: return (struct format){8, 52, 1023};
    default: return (struct format){4, 23, 127};
    }
}

static uint64_t load_bits(const void *at, int bytes)
{
    const uint8_t *p = at;
    uint64_t v = 0;

    for (int i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static long double float_value(rlx_dtype t, uint64_t bits)
{
    struct format f = format_of(t);
    int width = 8 * f.bytes, top = (1 << (width - 1 - f.fraction)) - 1;
    int exponent = (int)(bits >> f.fraction & (uint64_t)top);
    uint64_t fraction = bits & ((UINT64_C(1) << f.fraction) - 1);
    bool negative = bits >> (width - 1) & 1;
    long double v;

    if (exponent == top)
        v = fraction ? (long double)NAN : (long double)INFINITY;
    else if (exponent == 0)
        v = ldexpl((long double)fraction, 1 - f.bias - f.fraction);
    else
        v = ldexpl((long double)fraction + ldexpl(1, f.fraction), exponent - f.bias - f.fraction);
    return negative ? -v : v;
}

/* Nearest, ties to even; what rounds past the largest becomes infinite. */
static uint64_t float_bits(rlx_dtype t, long double v)
{
    struct format f = format_of(t);
    int width = 8 * f.bytes, top = (1 << (width - 1 - f.fraction)) - 1, e;
    uint64_t sign = signbit(v) ? UINT64_C(1) << (width - 1) : 0;
    uint64_t infinite = (uint64_t)top << f.fraction;

    v = fabsl(v);
    if (isnan(v))
        return infinite | 1;
    if (isinf(v))
        return sign | infinite;
    if (v == 0)
        return sign;
    frexpl(v, &e); /* 2^(e-1) <= v < 2^e */
    if (e - 1 < 1 - f.bias)
        e = 2 - f.bias; /* subnormals have the quantum of the smallest normal ones */
    long double scaled = ldexpl(v, f.fraction - (e - 1)), whole = floorl(scaled);
    long double rest = scaled - whole;
    if (rest > 0.5L || (rest == 0.5L && fmodl(whole, 2) != 0))
        whole += 1;
    /* whole counts quanta; a normal number has 2^fraction of them below its exponent's start */
    uint64_t bits = ((uint64_t)(e - 1 + f.bias - 1) << f.fraction) + (uint64_t)whole;
    return sign | (bits >= infinite ? infinite : bits);
}

static bool is_nan(rlx_dtype t, uint64_t bits)
{
    return isnan(float_value(t, bits));
}

/* ---- cast, said slowly ----------------------------------------------------------------------- */

/* An element as an exact number, and as an integer if it is one. */
struct exact {
    long double v;
    __int128 i;
    bool integer;
};

static struct exact read_exact(rlx_dtype t, const void *at)
{
    int bits = 8 * (int)rlx_dtype_size(t);
    uint64_t raw = load_bits(at, bits / 8);
    struct exact x = {.integer = true};

    if (dtype_is(t, CLASS_F))
        return (struct exact){.v = float_value(t, raw)};
    if (t == RLX_DTYPE_bool)
        raw = raw != 0;
    x.i = raw;
    if (dtype_is(t, CLASS_I) && raw >> (bits - 1))
        x.i -= (__int128)1 << bits;
    x.v = (long double)x.i;
    return x;
}

static uint64_t to_integer(rlx_dtype t, struct exact x)
{
    int bits = 8 * (int)rlx_dtype_size(t);
    bool negative = dtype_is(t, CLASS_I);
    __int128 high = ((__int128)1 << (bits - (negative ? 1 : 0))) - 1,
             low = negative ? -high - 1 : 0;
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

    if (x.integer)
        return (uint64_t)x.i & mask;
    if (isnan(x.v))
        return 0;
    if (x.v >= (long double)high)
        return (uint64_t)high & mask;
    if (x.v <= (long double)low)
        return (uint64_t)low & mask;
    return (uint64_t)(__int128)truncl(x.v) & mask;
}

/* The bits of the result; both halves for c64. */
static uint64_t slow_cast(rlx_dtype to, rlx_dtype from, const void *at)
{
    struct exact x;

    if (from == RLX_DTYPE_c64)
        return load_bits(at, 8);
    x = read_exact(from, at);
    if (to == RLX_DTYPE_bool)
        return isnan(x.v) || x.v != 0;
    if (to == RLX_DTYPE_c64)
        return float_bits(RLX_DTYPE_f32, x.v);
    return dtype_is(to, CLASS_F) ? float_bits(to, x.v) : to_integer(to, x);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same_result(rlx_dtype to, uint64_t got, uint64_t want)
{
    if (to == RLX_DTYPE_c64) /* from a real: no imaginary part */
        return got >> 32 == 0 && same_result(RLX_DTYPE_f32, got & UINT32_MAX, want);
    if (dtype_is(to, CLASS_F) && is_nan(to, want))
        return is_nan(to, got);
    return got == want;
}

/* All the elements at src, as every other type. Says which was wrong, once per pair. */
static void check_elements(struct test *t, rlx_dtype from, const uint8_t *src, size_t count)
{
    size_t size = rlx_dtype_size(from);
    uint8_t *dst = malloc(count * 8 + 1);

    if (!dst)
        return;
    for (int k = 0; k < RLX_DTYPE_count; k++) {
        rlx_dtype to = (rlx_dtype)k;
        size_t step = rlx_dtype_size(to), wrong = 0;
        if (!convert_allowed(to, from) || (to == from && from != RLX_DTYPE_bool))
            continue;
        test_note(t, "%s to %s", rlx_dtype_name(from), rlx_dtype_name(to));
        memset(dst, 0xcc, count * 8 + 1);
        convert(to, dst, from, src, count);
        for (size_t i = 0; i < count; i++) {
            uint64_t got = load_bits(dst + i * step, (int)step);
            uint64_t want = slow_cast(to, from, src + i * size);
            if (!same_result(to, got, want) && wrong++ == 0)
                fail(t, "%s %llx as %s is %llx, not %llx", rlx_dtype_name(from),
                     (unsigned long long)load_bits(src + i * size, (int)size), rlx_dtype_name(to),
                     (unsigned long long)got, (unsigned long long)want);
        }
        expect_eq_u64(t, wrong, 0);
        expect_eq(t, dst[count * step], 0xcc); /* nothing after the last one */
    }
    test_note(t, "%s", "");
    free(dst);
}

/* ---- the tests ------------------------------------------------------------------------------- */

TEST(convert, every_value_of_the_small_types)
{
    uint8_t *all = malloc(65536 * 2);

    require(t, all != NULL);
    for (int k = 0; k < RLX_DTYPE_count; k++) {
        rlx_dtype from = (rlx_dtype)k;
        size_t size = rlx_dtype_size(from);
        if (size > 2)
            continue;
        for (uint32_t i = 0; i < (size == 1 ? 256u : 65536u); i++) {
            all[i * size] = (uint8_t)i;
            if (size == 2)
                all[i * size + 1] = (uint8_t)(i >> 8);
        }
        check_elements(t, from, all, size == 1 ? 256 : 65536);
    }
    free(all);
}

/* Where casts turn: the ends of every integer type, halves, ties, the ends of every float type. */
static size_t turning_points(double out[1024])
{
    size_t n = 0;

    for (int bits = 0; bits <= 66; bits++) {
        const double near[] = {ldexp(1, bits), nextafter(ldexp(1, bits), 0),
                               nextafter(ldexp(1, bits), INFINITY), ldexp(1, bits) - 0.5,
                               ldexp(1, bits) + 0.5};
        for (size_t i = 0; i < 5; i++) {
            out[n++] = near[i];
            out[n++] = -near[i];
        }
    }
    const double ends[] = {0,
                           0x1p-24,
                           0x1p-25,
                           0x1.8p-25,
                           0x1.000001p-25,
                           0x1.8p-24,
                           65504,
                           65519.99,
                           65520,
                           0x1p-149,
                           0x1p-150,
                           0x1.8p-150,
                           FLT_MAX,
                           0x1p-133,
                           0x1p-134,
                           0x1p-1074,
                           DBL_MIN,
                           DBL_MAX,
                           3.4e38,
                           0x1.fefffffp127,
                           0x1.ffp127,
                           0x1.fffffefffffffp127,
                           1.00390625,
                           1.01171875,
                           0.5,
                           1.5,
                           2.5,
                           0x1p-14,
                           0x1.ffcp-15,
                           (double)INFINITY,
                           (double)NAN};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        out[n++] = ends[i];
        out[n++] = -ends[i];
    }
    return n;
}

TEST(convert, floats_at_their_turning_points)
{
    double wide[1024];
    float single[1024];
    size_t n = turning_points(wide);

    for (size_t i = 0; i < n; i++)
        single[i] = (float)wide[i];
    check_elements(t, RLX_DTYPE_f64, (const uint8_t *)wide, n);
    check_elements(t, RLX_DTYPE_f32, (const uint8_t *)single, n);
}

/* One rounding, not two: a 64-bit integer that lies just beside a tie of the narrow type must not
 * fall onto it on the way. */
TEST(convert, integers_at_their_turning_points)
{
    uint64_t wide[64 * 64 * 3 + 8];
    uint32_t narrow[sizeof wide / sizeof wide[0]];
    size_t n = 0;

    for (int high = 0; high < 64; high++) {
        for (int low = 0; low <= high; low++) {
            uint64_t v = (UINT64_C(1) << high) + (low < high ? UINT64_C(1) << low : 0);
            wide[n++] = v;
            wide[n++] = v - 1;
            wide[n++] = v + 1;
        }
    }
    wide[n++] = 0;
    wide[n++] = UINT64_MAX;
    wide[n++] = INT64_MAX;
    for (size_t i = 0; i < n; i++)
        narrow[i] = (uint32_t)(i & 1 ? wide[i] : wide[i] >> 32);
    check_elements(t, RLX_DTYPE_u64, (const uint8_t *)wide, n);
    check_elements(t, RLX_DTYPE_i64, (const uint8_t *)wide, n);
    check_elements(t, RLX_DTYPE_u32, (const uint8_t *)narrow, n);
    check_elements(t, RLX_DTYPE_i32, (const uint8_t *)narrow, n);
}

TEST(convert, random_bits)
{
    const size_t n = test_full() ? 1000000 : 20000;
    uint64_t *bits = malloc(n * sizeof *bits), x = 1;

    require(t, bits != NULL);
    for (size_t i = 0; i < n; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bits[i] = (x ^ x >> 29) >> (i % 3 ? 0 : x >> 58); /* small numbers too */
    }
    for (int k = 0; k < RLX_DTYPE_count; k++)
        if (rlx_dtype_size((rlx_dtype)k) >= 4 && k != RLX_DTYPE_c64)
            check_elements(t, (rlx_dtype)k, (const uint8_t *)bits, n);
    free(bits);
}

/* The examples of the manual and a few by hand, so that the slow statement is checked too. */
TEST(convert, by_hand)
{
    const float f[] = {2.9f, -2.9f, 300, -300, NAN, INFINITY, -INFINITY, -0.0f, 0.1f};
    int8_t i8[9];
    uint8_t u8[9];
    bool yes[9];
    int64_t i64[9];
    uint16_t half[9];

    convert(RLX_DTYPE_i8, i8, RLX_DTYPE_f32, f, 9);
    expect_bytes(t, i8, ((const int8_t[]){2, -2, 127, -128, 0, 127, -128, 0, 0}), 9);
    convert(RLX_DTYPE_u8, u8, RLX_DTYPE_f32, f, 9);
    expect_bytes(t, u8, ((const uint8_t[]){2, 0, 255, 0, 0, 255, 0, 0, 0}), 9);
    convert(RLX_DTYPE_bool, yes, RLX_DTYPE_f32, f, 9);
    expect_bytes(t, yes, ((const uint8_t[]){1, 1, 1, 1, 1, 1, 1, 0, 1}), 9);
    convert(RLX_DTYPE_i64, i64, RLX_DTYPE_f32, f, 9);
    expect(t, i64[5] == INT64_MAX && i64[6] == INT64_MIN && i64[4] == 0);
    convert(RLX_DTYPE_f16, half, RLX_DTYPE_f32, f, 9);
    expect(t, half[5] == 0x7c00 && half[6] == 0xfc00 && half[7] == 0x8000 && half[8] == 0x2e66);

    const int32_t wide[] = {300, -129, INT32_MIN, 65536};
    convert(RLX_DTYPE_i8, i8, RLX_DTYPE_i32, wide, 4);
    expect_bytes(t, i8, ((const int8_t[]){44, 127, 0, 0}), 4);

    const int64_t beside[] = {(INT64_C(1) << 62) + (INT64_C(1) << 54) + 1,
                              (INT64_C(1) << 62) + (INT64_C(1) << 54)};
    convert(RLX_DTYPE_bf16, half, RLX_DTYPE_i64, beside, 2);
    expect_eq(t, half[0], 0x5e81); /* above the tie */
    expect_eq(t, half[1], 0x5e80); /* the tie, to even */
    const double twice[] = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-11 + 0x1p-40};
    convert(RLX_DTYPE_bf16, half, RLX_DTYPE_f64, twice, 1);
    convert(RLX_DTYPE_f16, half + 1, RLX_DTYPE_f64, twice + 1, 1);
    expect_eq(t, half[0], 0x3f81);
    expect_eq(t, half[1], 0x3c01);
}

TEST(convert, bools_become_zero_or_one)
{
    const uint8_t any[] = {0, 1, 2, 128, 255};
    uint8_t out[5];

    convert(RLX_DTYPE_bool, out, RLX_DTYPE_bool, any, 5);
    expect_bytes(t, out, ((const uint8_t[]){0, 1, 1, 1, 1}), 5);
    convert(RLX_DTYPE_u8, out, RLX_DTYPE_bool, any, 5);
    expect_bytes(t, out, ((const uint8_t[]){0, 1, 1, 1, 1}), 5);
}

TEST(convert, which_pairs_are_allowed)
{
    for (int to = 0; to < RLX_DTYPE_count; to++)
        for (int from = 0; from < RLX_DTYPE_count; from++)
            expect_eq(t, convert_allowed((rlx_dtype)to, (rlx_dtype)from),
                      from != RLX_DTYPE_c64 || to == RLX_DTYPE_c64);
    expect(t, !convert_allowed(RLX_DTYPE_count, RLX_DTYPE_f32));
    expect(t, !convert_allowed(RLX_DTYPE_f32, RLX_DTYPE_count));
    expect(t, !convert_allowed((rlx_dtype)-1, RLX_DTYPE_f32));
    expect(t, !convert_allowed(RLX_DTYPE_f32, (rlx_dtype)77));
}

TEST(convert, none_and_unaligned)
{
    uint8_t src[64], dst[64], aligned[64];

    for (int to = 0; to < RLX_DTYPE_count; to++)
        convert((rlx_dtype)to, NULL, RLX_DTYPE_f32, NULL, 0);
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(37 * i + 11);
    for (int to = 0; to < RLX_DTYPE_count; to++) {
        for (int from = 0; from < RLX_DTYPE_count; from++) {
            uint64_t given[4];
            if (!convert_allowed((rlx_dtype)to, (rlx_dtype)from))
                continue;
            memcpy(given, src + 1, sizeof given);
            convert((rlx_dtype)to, dst + 3, (rlx_dtype)from, src + 1, 3);
            convert((rlx_dtype)to, aligned, (rlx_dtype)from, given, 3);
            expect_bytes(t, dst + 3, aligned, 3 * rlx_dtype_size((rlx_dtype)to));
        }
    }
}
