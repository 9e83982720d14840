/* schema_number.c: numbers between bounds, digit by digit.
 *
 *     38 to 120    "3" [8-9] | [4-9] [0-9] | "1" ([0-1] [0-9] | "20") */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grammar/schema.h"

enum { DIGITS = 16 };
#define MOST INT64_C(9999999999999999)

struct bounds {
    int64_t lo, hi;
    bool lo_open, hi_open; /* the bound itself is left out */
    bool any;              /* some is given */
};

/* ---- what the schema says ---------------------------------------------------------------- */

static rlx_status read_bound(const struct schema *c, const struct json_value *v, const char *key,
                             bool integer, const struct schema_place *at, double *out, bool *there)
{
    const struct json_value *n = json_tree_get(v, rlx_cstr(key));

    *there = n != NULL;
    if (!n)
        return RLX_OK;
    if (n->kind != JSON_NUMBER || !str_to_f64(n->text, out))
        return schema_bad(c, at, RLX_ERROR_FORMAT, "%s is to be a number", key);
    if (!integer && *out != floor(*out))
        return schema_bad(c, at, RLX_ERROR_UNSUPPORTED,
                          "%s is %.*s: numbers that are no integers have integers as bounds only",
                          key, STR_ARG(n->text));
    if (fabs(*out) < (double)MOST || (*out > 0) == (strstr(key, "ax") != NULL))
        return RLX_OK;
    return schema_bad(c, at, RLX_ERROR_LIMIT, "%s is %.*s: numbers have at most %d digits here",
                      key, STR_ARG(n->text), DIGITS);
}

/* A bound as an integer; beyond MOST it is MOST. */
static int64_t whole(double x)
{
    return x >= (double)MOST ? MOST : x <= -(double)MOST ? -MOST : (int64_t)x;
}

/* For integers, bounds that are left out, or have fractions, become the next that are in. */
static rlx_status read_bounds(const struct schema *c, struct bounds *b, const struct json_value *v,
                              bool integer, const struct schema_place *at)
{
    static const char *const key[] = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"};
    double x[4];
    bool there[4];

    *b = (struct bounds){.lo = -MOST, .hi = MOST};
    for (int i = 0; i < 4; i++) {
        TRY(read_bound(c, v, key[i], integer, at, &x[i], &there[i]));
        b->any |= there[i];
    }
    if (there[0])
        b->lo = whole(ceil(x[0]));
    if (there[1] && whole(floor(x[1])) >= b->lo) {
        b->lo = whole(floor(x[1])) + integer;
        b->lo_open = !integer;
    }
    if (there[2])
        b->hi = whole(floor(x[2]));
    if (there[3] && whole(ceil(x[3])) <= b->hi) {
        b->hi = whole(ceil(x[3])) - integer;
        b->hi_open = !integer;
    }
    if (b->lo > b->hi || (b->lo == b->hi && (b->lo_open || b->hi_open)))
        return schema_bad(c, at, RLX_ERROR_FORMAT, "no number lies between the bounds");
    return RLX_OK;
}

/* ---- digits ------------------------------------------------------------------------------ */

static bool all(const char *digits, char digit)
{
    return strspn(digits, (const char[]){digit, 0}) == strlen(digits);
}

static void put_any(struct schema *c, size_t rule, size_t digits)
{
    schema_put(c, rule, "[0-9]");
    if (digits > 1)
        schema_put(c, rule, "{%zu}", digits);
}

/* Between two of as many digits. */
static void put_digits(struct schema *c, size_t rule, const char *lo, const char *hi)
{
    static const char zeros[] = "0000000000000000", nines[] = "9999999999999999";
    const size_t rest = strlen(lo) - 1;
    char from = lo[0], to = hi[0];
    bool first = true;

    if (all(lo, '0') && all(hi, '9')) {
        put_any(c, rule, rest + 1);
        return;
    }
    if (from == to) {
        schema_put(c, rule, "\"%c\" ", from);
        if (rest)
            put_digits(c, rule, lo + 1, hi + 1);
        return;
    }
    if (rest == 0) {
        schema_put(c, rule, "[%c-%c]", from, to);
        return;
    }
    schema_put(c, rule, "(");
    if (!all(lo + 1, '0')) {
        schema_put(c, rule, "\"%c\" ", from++);
        put_digits(c, rule, lo + 1, nines + (DIGITS - rest));
        first = false;
    }
    const bool part = !all(hi + 1, '9');
    if (from <= to - part) {
        schema_put(c, rule, "%s[%c-%c] ", first ? "" : " | ", from, to - part);
        put_any(c, rule, rest);
        first = false;
    }
    if (part) {
        schema_put(c, rule, "%s\"%c\" ", first ? "" : " | ", to);
        put_digits(c, rule, zeros + (DIGITS - rest), hi + 1);
    }
    schema_put(c, rule, ")");
}

static int64_t power(int n)
{
    int64_t p = 1;

    while (n-- > 0)
        p *= 10;
    return p;
}

/* All of so many digits? */
static bool whole_length(int64_t lo, int64_t hi, int digits)
{
    return digits > 1 && digits <= DIGITS && lo <= power(digits - 1) && hi >= power(digits) - 1;
}

/* Integers from lo to hi, which are at least 0, as alternatives in parentheses. */
static void put_integers(struct schema *c, size_t rule, int64_t lo, int64_t hi)
{
    bool first = true;

    schema_put(c, rule, "(");
    for (int n = 1; n <= DIGITS; n++) {
        const int64_t least = n == 1 ? 0 : power(n - 1), most = power(n) - 1;
        const int64_t from = lo > least ? lo : least, to = hi < most ? hi : most;
        char text[2][24];
        if (from > to)
            continue;
        schema_put(c, rule, "%s", first ? "" : " | ");
        first = false;
        if (whole_length(lo, hi, n)) {
            const int shortest = n;
            while (whole_length(lo, hi, n + 1))
                n++;
            schema_put(c, rule, "[1-9] [0-9]{%d,%d}", shortest - 1, n - 1);
            continue;
        }
        snprintf(text[0], sizeof text[0], "%" PRId64, from);
        snprintf(text[1], sizeof text[1], "%" PRId64, to);
        put_digits(c, rule, text[0], text[1]);
    }
    schema_put(c, rule, ")");
}

/* Numbers from lo to hi, which are at least 0, with a fraction or without. */
static void put_numbers(struct schema *c, size_t rule, const struct bounds *b)
{
    const int64_t lo = b->lo + b->lo_open;
    bool first = true;

    schema_put(c, rule, "(");
    if (b->lo_open) {
        schema_put(c, rule, "\"%" PRId64 ".\" [0-9]{0,15} [1-9]", b->lo);
        first = false;
    }
    if (lo < b->hi) {
        schema_put(c, rule, "%s", first ? "" : " | ");
        put_integers(c, rule, lo, b->hi - 1);
        schema_put(c, rule, " (\".\" [0-9]{1,16})?");
        first = false;
    }
    if (!b->hi_open)
        schema_put(c, rule, "%s\"%" PRId64 "\" (\".0\")?", first ? "" : " | ", b->hi);
    schema_put(c, rule, ")");
}

/* ---- both signs -------------------------------------------------------------------------- */

static void put_side(struct schema *c, size_t rule, const struct bounds *b, bool integer)
{
    if (integer)
        put_integers(c, rule, b->lo, b->hi);
    else
        put_numbers(c, rule, b);
}

rlx_status schema_number(struct schema *c, size_t rule, const struct json_value *v, bool integer,
                         const struct schema_place *at)
{
    struct bounds b;

    TRY(read_bounds(c, &b, v, integer, at));
    if (!b.any) {
        schema_put(c, rule, "%s", schema_fixed(c, integer ? "integer" : "number").ptr);
        return RLX_OK;
    }
    const bool above = b.hi > 0 || (b.hi == 0 && !b.hi_open);
    if (above) {
        struct bounds side = b;
        if (b.lo < 0)
            side.lo = 0, side.lo_open = false;
        put_side(c, rule, &side, integer);
    }
    if (b.lo < 0) { /* turned: what was the lower bound is the upper one */
        struct bounds side = {.lo = -b.hi, .hi = -b.lo, .lo_open = b.hi_open, .hi_open = b.lo_open};
        if (b.hi > 0)
            side.lo = 0, side.lo_open = false;
        if (integer && side.lo == 0)
            side.lo = 1;
        schema_put(c, rule, "%s\"-\" ", above ? " | " : "");
        put_side(c, rule, &side, integer);
    }
    return RLX_OK;
}
