/* number.c: numbers to decimal text and back, exactly, and the same in every locale.
 *
 * The C library converts correctly, but reads and writes whatever decimal point setlocale chose.
 * So it never sees one from us: we read by moving the point into the exponent ("1.25e3" goes in as
 * "125e1"), and write by picking the digits out of "%.*e", whose point is all that is neither a
 * digit, a sign nor an 'e'. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* ---- reading ----------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the character off the front, if it is there. */
static bool take(rlx_str *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

bool str_to_i64(rlx_str s, int64_t *out)
{
    bool minus = take(&s, '-');
    int64_t v = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        int digit = s.ptr[i] - '0';
        if (!is_digit(s.ptr[i]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, minus ? -digit : digit, &v))
            return false;
    }
    *out = v;
    return true;
}

/* More digits than any double needs to be distinguished from its neighbours (767). Of those that
 * follow it only matters whether all are zero, and one more digit says that. */
enum { DIGITS_KEPT = 800 };

struct decimal {
    char digit[DIGITS_KEPT + 24]; /* as strtod takes them: sign, digits, 'e', exponent, NUL */
    size_t len;
    int64_t exponent; /* the value is digits * 10^exponent */
    bool any, more;   /* there were digits; nonzero ones were dropped */
};

static void add_digit(struct decimal *d, char c, bool after_point)
{
    d->any = true;
    if (d->len == 1 && c == '0') { /* leading zeros; [0] is the sign */
        d->exponent -= after_point;
    } else if (d->len <= DIGITS_KEPT) {
        d->digit[d->len++] = c;
        d->exponent -= after_point;
    } else {
        d->more |= c != '0';
        d->exponent += !after_point;
    }
}

/* The exponent's digits. Beyond 10^15 in size it stays there: no text is long enough for its
 * digits to bring such a number back into range. */
static bool read_exponent(rlx_str s, int64_t *exponent)
{
    const int64_t most = 1000000000000000;
    bool minus = take(&s, '-');
    int64_t v = 0;

    if (!minus)
        take(&s, '+');
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.ptr[i]))
            return false;
        v = v * 10 + (s.ptr[i] - '0');
        if (v > most)
            v = most;
    }
    *exponent += minus ? -v : v;
    return true;
}

static bool read_decimal(rlx_str s, struct decimal *d)
{
    bool after_point = false;

    for (; s.len && s.ptr[0] != 'e' && s.ptr[0] != 'E'; s.ptr++, s.len--) {
        if (is_digit(s.ptr[0]))
            add_digit(d, s.ptr[0], after_point);
        else if (s.ptr[0] == '.' && !after_point)
            after_point = true;
        else
            return false;
    }
    if (!d->any)
        return false;
    if (!take(&s, 'e') && !take(&s, 'E'))
        return true;
    return read_exponent(s, &d->exponent);
}

bool str_to_f64(rlx_str s, double *out)
{
    struct decimal d = {.len = 1};
    bool minus = take(&s, '-');

    if (str_eq(s, STR("inf")) || (!minus && str_eq(s, STR("nan")))) {
        *out = s.ptr[0] == 'n' ? (double)NAN : minus ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    if (!read_decimal(s, &d))
        return false;

    d.digit[0] = minus ? '-' : '0';
    if (d.len == 1) { /* all zeros: then the exponent says nothing */
        *out = minus ? -0.0 : 0.0;
        return true;
    }
    if (d.more) {
        d.digit[d.len++] = '1';
        d.exponent--;
    }
    /* Past these, with at least one and at most 801 digits, nothing changes any more. */
    int exponent = d.exponent > 9999 ? 9999 : d.exponent < -9999 ? -9999 : (int)d.exponent;
    snprintf(d.digit + d.len, sizeof d.digit - d.len, "e%d", exponent);

    double v = strtod(d.digit, NULL);
    if (isinf(v))
        return false;
    *out = v;
    return true;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* The digits and the power of ten that printf finds: v is about d.ddd * 10^exponent. */
struct digits {
    char at[24];
    int count, exponent;
};

static struct digits digits_of(double v, int precision)
{
    struct digits d = {.count = 0};
    char line[48];

    snprintf(line, sizeof line, "%.*e", precision - 1, v);
    const char *p = line;
    for (; *p && *p != 'e'; p++) {
        if (is_digit(*p) && d.count < (int)sizeof d.at)
            d.at[d.count++] = *p;
    }
    if (*p == 'e')
        d.exponent = atoi(p + 1);
    while (d.count > 1 && d.at[d.count - 1] == '0')
        d.count--;
    return d;
}

static size_t lay_out(char out[32], bool minus, const struct digits *d)
{
    int n = 0, e = d->exponent;
    const char *sign = minus ? "-" : "";

    if (e < -4 || (e > 9 && e >= d->count)) /* 1e-5, 1.25e10 */
        n = snprintf(out, 32, "%s%.1s%s%.*se%d", sign, d->at, d->count > 1 ? "." : "", d->count - 1,
                     d->at + 1, e);
    else if (e < 0) /* 0.00125 */
        n = snprintf(out, 32, "%s0.%.*s%.*s", sign, -e - 1, "000", d->count, d->at);
    else if (e + 1 >= d->count) /* 12500 */
        n = snprintf(out, 32, "%s%.*s%.*s", sign, d->count, d->at, e + 1 - d->count, "000000000");
    else /* 12.5 */
        n = snprintf(out, 32, "%s%.*s.%.*s", sign, e + 1, d->at, d->count - e - 1, d->at + e + 1);
    return (size_t)n;
}

static bool special(char out[32], double v, size_t *len)
{
    const char *text = isnan(v) ? "nan" : isinf(v) ? (v < 0 ? "-inf" : "inf") : NULL;

    if (!text && v == 0)
        text = signbit(v) ? "-0" : "0";
    if (!text)
        return false;
    *len = strlen(text);
    memcpy(out, text, *len + 1);
    return true;
}

static bool reads_back(rlx_str s, double v, bool narrow)
{
    double back = 0;

    if (!str_to_f64(s, &back))
        return false;
    return narrow ? (float)back == (float)v : back == v;
}

/* A text of up to FLT_DIG (DBL_DIG) digits survives a trip through a float and back to that many
 * digits, so no shorter one need be tried: its trailing zeros fall off. Subnormals hold fewer. */
static size_t shortest(char out[32], double v, bool narrow)
{
    int most = narrow ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    int precision = narrow ? FLT_DIG : DBL_DIG;
    size_t len = 0;

    if (special(out, v, &len))
        return len;
    if (fabs(v) < (narrow ? (double)FLT_MIN : DBL_MIN))
        precision = 1;
    for (; precision <= most; precision++) {
        struct digits d = digits_of(fabs(v), precision);
        len = lay_out(out, v < 0, &d);
        if (reads_back((rlx_str){out, len}, v, narrow))
            break;
    }
    return len;
}

size_t str_from_f32(char out[32], float v)
{
    return shortest(out, (double)v, true);
}

size_t str_from_f64(char out[32], double v)
{
    return shortest(out, v, false);
}
