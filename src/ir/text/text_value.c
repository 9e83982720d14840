/* text_value.c: numbers, strings and bytes of the text form, both ways. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/text/text_impl.h"

/* ---- numbers ------------------------------------------------------------------------------- */

static bool is_number(const struct text_token *t, bool minus)
{
    return t->kind == TEXT_NUMBER || text_token_is(t, "inf") || (text_token_is(t, "nan") && !minus);
}

rlx_status text_parse_number(struct text_parser *p, const char *what, rlx_str *out)
{
    size_t begin = p->tok.at;
    bool minus = text_token_is(&p->tok, "-");
    struct text_token number = minus ? text_peek(p) : p->tok;

    if (!is_number(&number, minus) || (minus && number.at != begin + 1))
        return text_unexpected(p, what);
    if (minus)
        text_next(p);
    *out = (rlx_str){p->lex.source.ptr + begin, p->lex.at - begin};
    text_next(p);
    return RLX_OK;
}

static bool is_whole(rlx_str s)
{
    for (size_t i = s.len && s.ptr[0] == '-'; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return s.len > 0;
}

rlx_status text_parse_i64(struct text_parser *p, int64_t low, int64_t high, int64_t *out)
{
    size_t at = p->tok.at;
    rlx_str s = {NULL, 0};
    int64_t v = 0;

    TRY(text_parse_number(p, "an integer", &s));
    if (!is_whole(s))
        return text_fail(p, at, RLX_ERROR_FORMAT, "expected an integer, got '%.*s'", STR_ARG(s));
    if (!str_to_i64(s, &v) || v < low || v > high)
        return text_fail(p, at, RLX_ERROR_FORMAT,
                         "%.*s is out of range: %" PRId64 " to %" PRId64 " fit here", STR_ARG(s),
                         low, high);
    *out = v;
    return RLX_OK;
}

rlx_status text_parse_u64(struct text_parser *p, uint64_t high, uint64_t *out)
{
    size_t at = p->tok.at;
    uint64_t v = 0;
    bool fits = true;
    rlx_str s = {NULL, 0};

    TRY(text_parse_number(p, "an integer", &s));
    if (!is_whole(s))
        return text_fail(p, at, RLX_ERROR_FORMAT, "expected an integer, got '%.*s'", STR_ARG(s));
    for (size_t i = 0; i < s.len && fits; i++)
        fits = s.ptr[0] != '-' && !__builtin_mul_overflow(v, 10u, &v) &&
               !__builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v);
    if (!fits || v > high)
        return text_fail(p, at, RLX_ERROR_FORMAT, "%.*s is out of range: 0 to %" PRIu64 " fit here",
                         STR_ARG(s), high);
    *out = v;
    return RLX_OK;
}

rlx_status text_parse_f64(struct text_parser *p, double *out)
{
    size_t at = p->tok.at;
    rlx_str s = {NULL, 0};

    TRY(text_parse_number(p, "a number", &s));
    if (!str_to_f64(s, out))
        return text_fail(p, at, RLX_ERROR_FORMAT, "%.*s is too large; infinity is spelled inf",
                         STR_ARG(s));
    return RLX_OK;
}

rlx_status text_parse_f32(struct text_parser *p, float *out)
{
    size_t at = p->tok.at;
    double v = 0;

    TRY(text_parse_f64(p, &v));
    *out = (float)v;
    if (isinf(*out) && !isinf(v))
        return text_fail(p, at, RLX_ERROR_FORMAT, "the number is too large for f32");
    return RLX_OK;
}

/* We read by way of double. Should that round twice, the digits of the double itself do not. */
void text_print_f32(float v, struct text *out)
{
    char digits[32];
    size_t len = str_from_f32(digits, v);
    double back = 0;

    str_to_f64((rlx_str){digits, len}, &back);
    if (!isnan(v) && (float)back != v)
        len = str_from_f64(digits, (double)v);
    text_add(out, (rlx_str){digits, len});
}

void text_print_f64(double v, struct text *out)
{
    char digits[32];
    size_t len = str_from_f64(digits, v);

    text_add(out, (rlx_str){digits, len});
}

/* ---- strings ------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The escape after a backslash at s; how long it is goes to *len. -1: there is no such escape. */
static int escaped(rlx_str s, size_t *len)
{
    *len = 1;
    if (s.len == 0)
        return -1;
    switch (s.ptr[0]) {
    case '"':
    case '\\': return s.ptr[0];
    case 'n': return '\n';
    case 't': return '\t';
    case 'x':
        *len = 3;
        if (s.len < 3 || hex_digit(s.ptr[1]) < 0 || hex_digit(s.ptr[2]) < 0)
            return -1;
        return hex_digit(s.ptr[1]) * 16 + hex_digit(s.ptr[2]);
    default: return -1;
    }
}

rlx_status text_parse_string(struct text_parser *p, rlx_str *out)
{
    struct text_token t = p->tok;
    size_t len = 0;

    if (t.kind != TEXT_STRING)
        return text_unexpected(p, "a string in quotes");
    char *to = arena_array(p->scratch, char, t.text.len);
    if (!to)
        return diag_no_memory(p->diag, t.text.len);
    for (size_t i = 1; i + 1 < t.text.len; i++) {
        int c = (unsigned char)t.text.ptr[i];
        if (c == '\\') {
            size_t used;
            c = escaped((rlx_str){t.text.ptr + i + 1, t.text.len - i - 2}, &used);
            if (c <= 0)
                return text_fail(p, t.at + i, RLX_ERROR_FORMAT,
                                 c == 0 ? "a string holds no NUL byte"
                                        : "unknown escape; there are \\\" \\\\ \\n \\t \\xHH");
            i += used;
        }
        to[len++] = (char)c;
    }
    *out = (rlx_str){to, len};
    text_next(p);
    return RLX_OK;
}

void text_print_string(rlx_str s, struct text *out)
{
    text_add(out, STR("\""));
    while (s.len) {
        size_t step = str_utf8_step(s);
        unsigned char c = (unsigned char)s.ptr[0];
        if (c == '"' || c == '\\')
            text_addf(out, "\\%c", c);
        else if (c == '\n' || c == '\t')
            text_add(out, c == '\n' ? STR("\\n") : STR("\\t"));
        else if (step == 0 || c < 0x20 || c == 0x7f)
            text_addf(out, "\\x%02x", c);
        else
            text_add(out, (rlx_str){s.ptr, step});
        step = step ? step : 1;
        s = (rlx_str){s.ptr + step, s.len - step};
    }
    text_add(out, STR("\""));
}

/* ---- bytes --------------------------------------------------------------------------------- */

size_t text_hex_count(const struct text_token *t)
{
    return t->text.len % 2 ? SIZE_MAX : t->text.len / 2 - 1; /* without the 0x */
}

void text_hex_bytes(const struct text_token *t, unsigned char *to)
{
    const char *digit = t->text.ptr + 2;

    for (size_t i = 0, count = text_hex_count(t); i < count; i++)
        to[i] = (unsigned char)(hex_digit(digit[2 * i]) * 16 + hex_digit(digit[2 * i + 1]));
}

void text_print_hex(const void *data, size_t bytes, struct text *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = data;
    char part[256];
    size_t len = 0;

    text_add(out, STR("0x"));
    for (size_t i = 0; i < bytes; i++) {
        part[len++] = digits[from[i] >> 4];
        part[len++] = digits[from[i] & 15];
        if (len == sizeof part || i + 1 == bytes) {
            text_add(out, (rlx_str){part, len});
            len = 0;
        }
    }
}
