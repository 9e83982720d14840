/* number_test.c: numbers to text and back: exact, shortest, and the same in every locale. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "test.h"

/* ---- integers ----------------------------------------------------------------------- */

TEST(number, reads_i64)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"7", 7},
        {"-12", -12},
        {"007", 7},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    static const char *const bad[] = {
        "",
        "-",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x10",
        "--1",
        "1-",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
        "a",
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t v = 99;
        test_note(t, "\"%s\"", good[i].text);
        expect(t, str_to_i64(rlx_cstr(good[i].text), &v));
        expect_eq(t, v, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t v = 99;
        test_note(t, "\"%s\"", bad[i]);
        expect(t, !str_to_i64(rlx_cstr(bad[i]), &v));
        expect_eq(t, v, 99);
    }
    int64_t v = 99;
    expect(t, !str_to_i64((rlx_str){NULL, 0}, &v));
    expect(t, !str_to_i64((rlx_str){"1\0", 2}, &v));
    expect(t, str_to_i64((rlx_str){"123456", 3}, &v) && v == 123); /* a view has no NUL */
}

/* ---- reading floats ---------------------------------------------------------------------- */

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

TEST(number, reads_f64)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0.0},
        {"-0", -0.0},
        {"0e99999999999999999999", 0.0},
        {"1", 1.0},
        {"1.", 1.0},
        {".5", 0.5},
        {"-.5e-3", -0.0005},
        {"1e+5", 1e5},
        {"1E5", 1e5},
        {"00012.50", 12.5},
        {"3.4028234663852886e38", 0x1.fffffep127},
        {"1.7976931348623157e308", DBL_MAX},
        {"1.7976931348623158e308", DBL_MAX},
        {"5e-324", 0x1p-1074},
        {"2.4703282292062328e-324", 0x1p-1074}, /* just above half of it */
        {"2.4703282292062327e-324", 0.0},       /* just below */
        {"1e-99999999999999999999999", 0.0},
        {"9007199254740993", 9007199254740992.0}, /* a tie goes to even */
        {"9007199254740995", 9007199254740996.0}, /* and this one too */
        {"9007199254740993.0000000000000000000000000000000000000001", 9007199254740994.0},
        {"0.1", 0.1},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"2.2250738585072011e-308", 2.2250738585072011e-308},
    };
    static const char *const bad[] = {
        "",
        "-",
        ".",
        "-.",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1e-",
        "1e5.0",
        "1.2.3",
        "+1",
        " 1",
        "1 ",
        "0x10",
        "0x1p3",
        "1f",
        "infinity",
        "Inf",
        "NaN",
        "nan(1)",
        "-nan",
        "in",
        "1,5",
        "1_0",
        "1e999",
        "-1e999",
        "1.7976931348623159e308",
        "1e99999999999999999999999",
        "--1",
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double v = 99;
        test_note(t, "\"%s\"", good[i].text);
        expect(t, str_to_f64(rlx_cstr(good[i].text), &v));
        expect(t, same_bits(v, good[i].value));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double v = 99;
        test_note(t, "\"%s\"", bad[i]);
        expect(t, !str_to_f64(rlx_cstr(bad[i]), &v));
        expect(t, v == 99);
    }
    double v = 99;
    test_note(t, "%s", "");
    expect(t, str_to_f64(STR("nan"), &v) && isnan(v));
    expect(t, str_to_f64(STR("inf"), &v) && v == HUGE_VAL);
    expect(t, str_to_f64(STR("-inf"), &v) && v == -HUGE_VAL);
    expect(t, !str_to_f64((rlx_str){NULL, 0}, &v));
    expect(t, !str_to_f64((rlx_str){"1\0", 2}, &v));
    expect(t, str_to_f64((rlx_str){"1.2567", 4}, &v) && v == 1.25);
}

TEST(number, reads_f64_of_any_length)
{
    enum { LONG = 5000 };
    static char text[LONG + 40];
    double v = 0;

    /* 1, then zeros, then a point's worth of exponent: 1000...000e-LONG */
    memset(text, '0', LONG);
    text[0] = '1';
    snprintf(text + LONG, sizeof text - LONG, "e-%d", LONG - 1);
    expect(t, str_to_f64(rlx_cstr(text), &v) && v == 1.0);

    /* 0.000...0001e+LONG */
    memset(text, '0', LONG);
    text[1] = '.';
    text[LONG - 1] = '1';
    snprintf(text + LONG, sizeof text - LONG, "e+%d", LONG - 2);
    expect(t, str_to_f64(rlx_cstr(text), &v) && v == 1.0);

    /* A tie but for a digit far after the point, and the same without it. */
    memset(text, '0', LONG);
    memcpy(text, "9007199254740993.", 17);
    text[LONG] = 0;
    expect(t, str_to_f64(rlx_cstr(text), &v) && v == 9007199254740992.0);
    text[LONG - 1] = '1';
    expect(t, str_to_f64(rlx_cstr(text), &v) && v == 9007199254740994.0);

    memset(text, '9', LONG);
    expect(t, !str_to_f64(rlx_cstr(text), &v)); /* 10^5000 */
    snprintf(text + LONG, sizeof text - LONG, "e-%d", LONG);
    expect(t, str_to_f64(rlx_cstr(text), &v) && v == 1.0);
}

static double random_f64(struct rng_philox *r)
{
    uint64_t hi = rng_philox_next(r), bits = hi << 32 | rng_philox_next(r);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

TEST(number, reads_like_the_c_library)
{
    struct rng_philox r;
    char text[64];

    rng_philox_init(&r, 1);
    for (int i = 0; i < 100000; i++) {
        double v = random_f64(&r), back = 0;
        if (!isfinite(v))
            continue;
        snprintf(text, sizeof text, "%.*e", 1 + i % 20, v);
        double want = strtod(text, NULL);
        bool ok = str_to_f64(rlx_cstr(text), &back);
        if (isinf(want) ? ok : !ok || !same_bits(back, want))
            fail(t, "%s gave %a, not %a", text, back, want);
    }
    expect(t, true);
}

/* ---- writing floats ---------------------------------------------------------------------- */

TEST(number, writes_f32)
{
    static const struct {
        float value;
        const char *text;
    } rows[] = {
        {0.0f, "0"},
        {-0.0f, "-0"},
        {1.0f, "1"},
        {-1.5f, "-1.5"},
        {0.1f, "0.1"},
        {1.0f / 3, "0.33333334"},
        {100.0f, "100"},
        {16777216.0f, "16777216"},
        {1e9f, "1000000000"},
        {1e10f, "1e10"},
        {1.25e12f, "1.25e12"},
        {0.0001f, "0.0001"},
        {1e-5f, "1e-5"},
        {1.5e-7f, "1.5e-7"},
        {FLT_MAX, "3.4028235e38"},
        {-FLT_MAX, "-3.4028235e38"},
        {FLT_MIN, "1.1754944e-38"},
        {0x1p-149f, "1e-45"},
        {0x1p-148f, "3e-45"},
        {0x1.fffffcp-127f, "1.1754942e-38"},
        {3.14159274f, "3.1415927"},
        {8388608.5f, "8388608"},
        {NAN, "nan"},
        {-NAN, "nan"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    char out[32];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = str_from_f32(out, rows[i].value);
        expect_str(t, out, rows[i].text);
        expect_eq(t, len, strlen(rows[i].text));
    }
}

TEST(number, writes_f64)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {-2.0 / 3, "-0.6666666666666666"},
        {1e22, "1e22"},
        {123456789012.5, "123456789012.5"},
        {9007199254740993.0, "9007199254740992"},
        {DBL_MAX, "1.7976931348623157e308"},
        {-DBL_MIN, "-2.2250738585072014e-308"},
        {0x1p-1074, "5e-324"},
        {-0.00012345678901234567, "-0.00012345678901234567"},
        {(double)NAN, "nan"},
        {-HUGE_VAL, "-inf"},
    };
    char out[32];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_eq(t, str_from_f64(out, rows[i].value), strlen(rows[i].text));
        expect_str(t, out, rows[i].text);
    }
}

/* Digits in the text, leading and trailing zeros not counted. */
static int significant(const char *text)
{
    int count = 0, zeros = 0;

    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9')
            continue;
        if (*text == '0' && count == 0)
            continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        count++;
    }
    return count - zeros;
}

/* Reads back equal, through f64 and directly, and no %.*g with fewer digits does. */
static bool right_f32(struct test *t, float v)
{
    char out[32], other[32];
    double back = 0;
    size_t len = str_from_f32(out, v);
    bool ok = len < 32 && strlen(out) == len && str_to_f64((rlx_str){out, len}, &back) &&
              (float)back == v && strtof(out, NULL) == v;
    int digits = significant(out);

    if (digits > 1) {
        snprintf(other, sizeof other, "%.*e", digits - 2, (double)v);
        ok &= strtof(other, NULL) != v;
    }
    if (!ok)
        fail(t, "%a as %s", (double)v, out);
    return ok;
}

TEST(number, random_f32_is_shortest_and_reads_back)
{
    struct rng_philox r;
    int n = test_full() ? 1000000 : 100000;

    rng_philox_init(&r, 2);
    for (int i = 0; i < n; i++) {
        uint32_t bits = rng_philox_next(&r);
        if (i % 4 == 0)
            bits &= 0x807fffff; /* subnormal */
        if (i % 4 == 1)
            bits &= 0xffff0000; /* few bits */
        float v;
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v) && v != 0)
            require(t, right_f32(t, v));
    }
    for (int e = -149; e < 128; e++)
        expect(t, right_f32(t, ldexpf(1, e)));
}

TEST(number, random_f64_reads_back)
{
    struct rng_philox r;
    char out[32];

    rng_philox_init(&r, 3);
    for (int i = 0; i < 50000; i++) {
        double v = random_f64(&r), back = 0;
        if (!isfinite(v))
            continue;
        size_t len = str_from_f64(out, v);
        if (len > 31 || !str_to_f64((rlx_str){out, len}, &back) || !same_bits(v, back))
            fail(t, "%a as %s", v, out);
    }
    for (int i = -1000; i <= 1000; i++) { /* what people write is printed as they wrote it */
        char want[32];
        snprintf(want, sizeof want, "%s%d.%d", i < 0 ? "-" : "", abs(i) / 8, 125);
        str_from_f64(out, (i < 0 ? -1 : 1) * (abs(i) / 8 + 0.125));
        expect_str(t, out, want);
    }
}

/* A locale with a comma need not be installed: any of these will do. */
TEST(number, locale_changes_nothing)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE",
                                        "ps_AF.UTF-8"};
    char before[128], out[32];
    const char *found = NULL;
    double v = 0;

    snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_ALL, names[i]);
    if (!found)
        skip(t, "no locale with a decimal comma is installed");
    str_from_f64(out, 1234.5);
    bool read = str_to_f64(STR("1234.5"), &v);
    setlocale(LC_ALL, before);
    expect_str(t, out, "1234.5");
    expect(t, read && v == 1234.5);
}
