/* tpl_print.c: values as text, as Python writes them: str() and repr(). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/template/tpl_node.h"
#include "text/template/tpl_value.h"
#include "text/unicode.h"

/* ---- numbers ----------------------------------------------------------------------------- */

/* The digits of a number without point and leading zeros, and what power of ten the first one has.
 */
static size_t digits_of(const char *text, char digits[32], int *power)
{
    const char *e = strchr(text, 'e');
    size_t count = 0;
    int before = 0; /* digits before the point, zeros after it count as less */
    bool point = false;

    for (const char *c = text; *c && c != e; c++) {
        if (*c == '.')
            point = true;
        if (*c < '0' || *c > '9')
            continue;
        if (*c == '0' && !count) { /* a leading zero */
            before -= point;
            continue;
        }
        digits[count++] = *c;
        before += !point;
    }
    *power = before - 1;
    if (e) {
        int64_t by = 0;
        str_to_i64(rlx_cstr(e[1] == '+' ? e + 2 : e + 1), &by);
        *power += (int)by;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return count;
}

size_t tpl_float_text(double f, char out[40])
{
    char text[32], digits[32];
    size_t len = 0, count;
    int power;

    str_from_f64(text, f);
    if (!isfinite(f) || f == 0) {
        len = (size_t)snprintf(out, 40, "%s%s", text, isfinite(f) ? ".0" : "");
        return len;
    }
    count = digits_of(text, digits, &power);
    if (signbit(f))
        out[len++] = '-';
    if (power < -4 || power >= 16) {
        out[len++] = digits[0];
        if (count > 1)
            out[len++] = '.';
        memcpy(out + len, digits + 1, count - 1);
        len += count - 1;
        return len + (size_t)snprintf(out + len, 8, "e%c%02d", power < 0 ? '-' : '+',
                                      power < 0 ? -power : power);
    }
    if (power < 0) {
        memcpy(out + len, "0.0000", 6);
        len += 1 + (size_t)-power;
        memcpy(out + len, digits, count);
        len += count;
    } else {
        for (size_t i = 0; i < count || i <= (size_t)power; i++) {
            if (i == (size_t)power + 1)
                out[len++] = '.';
            out[len++] = i < count ? digits[i] : '0';
        }
        if (count <= (size_t)power + 1) {
            out[len++] = '.';
            out[len++] = '0';
        }
    }
    out[len] = 0;
    return len;
}

static void add_text(struct tpl_text *t, const char *s)
{
    tpl_text_add(t, rlx_cstr(s), false);
}

static void add_int(struct tpl_text *t, int64_t i)
{
    char text[32];

    tpl_text_add(t, (rlx_str){text, (size_t)snprintf(text, sizeof text, "%lld", (long long)i)},
                 false);
}

/* ---- strings in quotes ------------------------------------------------------------------- */

static void add_escaped(struct tpl_text *t, uint32_t c, char quote, rlx_str bytes, bool data)
{
    const uint32_t category = c < 0x80 ? 0 : unicode_category_bit(c);
    const bool hidden = c < 0x20 || c == 0x7f ||
                        (category & (CAT_BIT(Cc) | CAT_BIT(Cf) | CAT_BIT(Cs) | CAT_BIT(Co) |
                                     CAT_BIT(Cn) | CAT_BIT(Zl) | CAT_BIT(Zp) | CAT_BIT(Zs)));
    char text[16];
    int len;

    if (c == (uint32_t)quote || c == '\\')
        len = snprintf(text, sizeof text, "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        len = snprintf(text, sizeof text, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (hidden)
        len = snprintf(text, sizeof text,
                       c < 0x100     ? "\\x%02x"
                       : c < 0x10000 ? "\\u%04x"
                                     : "\\U%08x",
                       c);
    else {
        tpl_text_add(t, bytes, data);
        return;
    }
    tpl_text_add(t, (rlx_str){text, (size_t)len}, data);
}

static void add_quoted(struct tpl_text *t, const struct tpl_str *s)
{
    const bool single = s->text.len && memchr(s->text.ptr, '\'', s->text.len);
    const bool twice = s->text.len && memchr(s->text.ptr, '"', s->text.len);
    const char quote = single && !twice ? '"' : '\'';
    const rlx_str q = {&quote, 1};
    rlx_str piece;
    bool data;

    tpl_text_add(t, q, false);
    for (size_t pos = 0; tpl_next_piece(s, &pos, &piece, &data);)
        for (size_t at = 0, bytes; at < piece.len; at += bytes) {
            const uint32_t c = utf8_next(piece.ptr + at, piece.len - at, &bytes);
            add_escaped(t, c, quote, (rlx_str){piece.ptr + at, bytes}, data);
        }
    tpl_text_add(t, q, false);
}

/* ---- values ------------------------------------------------------------------------------ */

static rlx_status add_list(struct tpl_text *t, struct tpl_value v, uint32_t depth)
{
    const struct tpl_list *l = v.u.list;

    add_text(t, v.kind == TPL_LIST ? "[" : "(");
    for (size_t i = 0; i < l->count; i++) {
        add_text(t, i ? ", " : "");
        TRY(tpl_repr(t, l->at[i], depth + 1));
    }
    add_text(t, v.kind == TPL_LIST ? "]" : l->count == 1 ? ",)" : ")");
    return t->failed;
}

static rlx_status add_dict(struct tpl_text *t, const struct tpl_dict *d, uint32_t depth)
{
    add_text(t, "{");
    for (size_t i = 0; i < d->count; i++) {
        add_text(t, i ? ", " : "");
        TRY(tpl_repr(t, d->at[i].key, depth + 1));
        add_text(t, ": ");
        TRY(tpl_repr(t, d->at[i].value, depth + 1));
    }
    add_text(t, "}");
    return t->failed;
}

rlx_status tpl_repr(struct tpl_text *t, struct tpl_value v, uint32_t depth)
{
    char text[64];

    if (depth > TPL_MOST_NESTING)
        return tpl_bad(t->r, RLX_ERROR_LIMIT, "more than %d lists and dicts are in each other",
                       TPL_MOST_NESTING);
    TRY(tpl_charge(t->r, 1));
    switch (v.kind) {
    case TPL_UNDEFINED: add_text(t, depth ? "Undefined" : ""); break;
    case TPL_NONE: add_text(t, "None"); break;
    case TPL_BOOL: add_text(t, v.u.b ? "True" : "False"); break;
    case TPL_INT: add_int(t, v.u.i); break;
    case TPL_FLOAT:
        TRY(tpl_charge(t->r, 20));
        tpl_text_add(t, (rlx_str){text, tpl_float_text(v.u.f, text)}, false);
        break;
    case TPL_STR:
        TRY(tpl_charge_chars(t->r, v.u.s->text.len));
        add_quoted(t, v.u.s);
        break;
    case TPL_LIST:
    case TPL_TUPLE: return add_list(t, v, depth);
    case TPL_DICT: return add_dict(t, v.u.dict, depth);
    case TPL_NAMESPACE:
        add_text(t, "<Namespace ");
        TRY(add_dict(t, v.u.dict, depth));
        add_text(t, ">");
        break;
    default: snprintf(text, sizeof text, "<%s>", tpl_kind_name(v.kind)); add_text(t, text);
    }
    return t->failed;
}

rlx_status tpl_print(struct tpl_text *t, struct tpl_value v)
{
    if (v.kind != TPL_STR)
        return tpl_repr(t, v, 0);
    tpl_text_add_str(t, v.u.s);
    return t->failed;
}

rlx_status tpl_to_str(struct tpl_run *r, struct tpl_value v, const struct tpl_str **out)
{
    struct tpl_text t;

    if (v.kind != TPL_STR) {
        tpl_text_begin(&t, r);
        TRY(tpl_repr(&t, v, 0));
        TRY(tpl_text_end(&t, &v));
    }
    *out = v.u.s;
    return RLX_OK;
}
