/* tpl_lex.c: a template as tokens: text as it is between tags, and what stands in the tags.
 *
 *     text {%- if x -%} text {{ y }} text {# nothing #}
 *
 * Which white space next to tags is text: a '-' in the tag takes all of it away on that side.
 * Without one, a line break right after %} or #} goes, and so do spaces and tabs between the start
 * of a line and {% or {#, unless a '+' says otherwise (llm-tokenizers.md 6). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/template/tpl_node.h"
#include "text/unicode.h"

bool tpl_room(struct arena *a, void *at, size_t *cap, size_t len, size_t elem)
{
    size_t more = *cap ? *cap * 2 : 4;
    void *old, *own;

    if (len < *cap)
        return true;
    memcpy(&old, at, sizeof old);
    if (!(own = arena_alloc_array(a, more, elem, _Alignof(max_align_t))))
        return false;
    if (len)
        memcpy(own, old, len * elem);
    memcpy(at, &own, sizeof own);
    *cap = more;
    return true;
}

rlx_status tpl_fail(struct diag *d, rlx_str source, uint32_t place, rlx_status s, const char *fmt,
                    ...)
{
    char what[400];
    uint32_t line = 1, column = 1;
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    for (uint32_t i = 0; i < place && i < source.len; i++) {
        unsigned char c = (unsigned char)source.ptr[i];
        column = c == '\n' ? 1 : column + ((c & 0xc0) != 0x80);
        line += c == '\n';
    }
    return diag_fail(d, s, "template: line %u, column %u: %s", line, column, what);
}

rlx_status tpl_normalise(struct arena *a, rlx_str source, rlx_str *out, struct diag *d)
{
    char *own = arena_alloc(a, source.len, 1);
    size_t len = 0;

    if (!own)
        return diag_no_memory(d, source.len);
    for (size_t i = 0; i < source.len; i++) {
        char c = source.ptr[i];
        if (c == '\r') {
            i += i + 1 < source.len && source.ptr[i + 1] == '\n';
            c = '\n';
        }
        own[len++] = c;
    }
    if (len && own[len - 1] == '\n')
        len--;
    *out = (rlx_str){own, len};
    return RLX_OK;
}

/* ---- white space ------------------------------------------------------------------------- */

/* Bytes of white space at the front. */
static size_t space_after(rlx_str s)
{
    size_t at = 0;

    for (size_t bytes; at < s.len; at += bytes)
        if (!tpl_is_space(utf8_next(s.ptr + at, s.len - at, &bytes)))
            break;
    return at;
}

bool tpl_is_space(uint32_t c)
{
    return unicode_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

size_t tpl_char_before(const char *text, size_t end)
{
    size_t at = end - 1;

    while (at > 0 && end - at < 4 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    size_t bytes;
    utf8_next(text + at, end - at, &bytes);
    return at + bytes == end ? at : end - 1;
}

size_t tpl_end_without_space(const char *text, size_t end)
{
    while (end) {
        size_t at = tpl_char_before(text, end), bytes;
        if (!tpl_is_space(utf8_next(text + at, end - at, &bytes)))
            break;
        end = at;
    }
    return end;
}

static bool at(const struct tpl_lex *l, size_t pos, const char *text)
{
    size_t len = strlen(text);

    return pos <= l->source.len && l->source.len - pos >= len &&
           memcmp(l->source.ptr + pos, text, len) == 0;
}

/* After a tag's last bracket: what it eats. strip: it has a '-'; keeps: a '+'; breaks: it is one
 * that eats a line break. */
static void after_tag(struct tpl_lex *l, size_t start, bool strip, bool breaks)
{
    if (strip)
        l->pos += space_after((rlx_str){l->source.ptr + l->pos, l->source.len - l->pos});
    else if (breaks && at(l, l->pos, "\n"))
        l->pos++;
    l->line_starting = l->pos > start && l->source.ptr[l->pos - 1] == '\n';
    l->in = TPL_IN_TEXT;
}

/* The end of text that begins at start and goes up to a tag at pos. */
static size_t text_end(const struct tpl_lex *l, size_t start, size_t pos)
{
    const char *s = l->source.ptr;
    const char sign = pos + 2 < l->source.len ? s[pos + 2] : 0;
    size_t line = pos;

    if (sign == '-')
        return start + tpl_end_without_space(s + start, pos - start);
    if (sign == '+' || s[pos + 1] == '{')
        return pos;
    while (line > start && s[line - 1] != '\n')
        line--;
    if (line == start && !l->line_starting)
        return pos;
    for (size_t i = line, bytes; i < pos; i += bytes)
        if (!tpl_is_space(utf8_next(s + i, pos - i, &bytes)))
            return pos;
    return line;
}

/* ---- text, comments, raw ----------------------------------------------------------------- */

static size_t find_tag(const struct tpl_lex *l)
{
    const char *s = l->source.ptr;
    size_t pos = l->pos;

    for (; pos + 1 < l->source.len; pos++)
        if (s[pos] == '{' && (s[pos + 1] == '{' || s[pos + 1] == '%' || s[pos + 1] == '#'))
            return pos;
    return l->source.len;
}

static rlx_status skip_comment(struct tpl_lex *l)
{
    const size_t start = l->pos;

    for (l->pos += 2; l->pos + 1 < l->source.len; l->pos++) {
        if (!at(l, l->pos, "#}"))
            continue;
        const char before = l->pos > start + 2 ? l->source.ptr[l->pos - 1] : 0;
        l->pos += 2;
        after_tag(l, start, before == '-', before != '+');
        return RLX_OK;
    }
    return tpl_fail(l->d, l->source, (uint32_t)start, RLX_ERROR_FORMAT, "a comment has no end");
}

/* "{% word %}" at pos: the end of it, and its signs; 0: it is something else. */
static size_t word_tag(const struct tpl_lex *l, size_t pos, const char *word, char *first,
                       char *last)
{
    const rlx_str s = l->source;

    if (!at(l, pos, "{%"))
        return 0;
    pos += 2;
    *first = pos < s.len && (s.ptr[pos] == '-' || s.ptr[pos] == '+') ? s.ptr[pos++] : 0;
    pos += space_after((rlx_str){s.ptr + pos, s.len - pos});
    if (!at(l, pos, word))
        return 0;
    pos += strlen(word);
    pos += space_after((rlx_str){s.ptr + pos, s.len - pos});
    *last = pos < s.len && (s.ptr[pos] == '-' || s.ptr[pos] == '+') ? s.ptr[pos++] : 0;
    return at(l, pos, "%}") ? pos + 2 : 0;
}

/* Text up to {% endraw %}. */
static rlx_status take_raw(struct tpl_lex *l, size_t begin, bool strip, struct tpl_token *out)
{
    const size_t start = l->pos;
    char first, last;

    l->pos = begin;
    after_tag(l, start, strip, false);
    const size_t from = l->pos;
    for (size_t pos = from, end; pos + 1 < l->source.len; pos++) {
        if (l->source.ptr[pos] != '{' || !(end = word_tag(l, pos, "endraw", &first, &last)))
            continue;
        out->kind = TPL_TOK_TEXT;
        out->place = (uint32_t)from;
        out->text = (rlx_str){l->source.ptr + from, text_end(l, from, pos) - from};
        l->pos = end;
        after_tag(l, pos, last == '-', last != '+');
        return RLX_OK;
    }
    return tpl_fail(l->d, l->source, (uint32_t)start, RLX_ERROR_FORMAT,
                    "{%% raw %%} has no {%% endraw %%}");
}

/* Text, or the tag that comes next; out is TPL_TOK_TEXT and empty where there was a comment. */
static rlx_status next_in_text(struct tpl_lex *l, struct tpl_token *out)
{
    const size_t start = l->pos, tag = find_tag(l);
    const bool is_end = tag == l->source.len;

    if (start == l->source.len) {
        out->kind = TPL_TOK_END;
        return RLX_OK;
    }
    const size_t end = is_end ? tag : text_end(l, start, tag);
    l->pos = tag;
    if (end > start) {
        out->kind = TPL_TOK_TEXT;
        out->text = (rlx_str){l->source.ptr + start, end - start};
        /* White space that the tag ate is no text the next time either. */
        l->line_starting = end < tag || l->source.ptr[end - 1] == '\n';
        return RLX_OK;
    }
    if (at(l, tag, "{#")) {
        TRY(skip_comment(l));
        out->kind = TPL_TOK_TEXT;
        return RLX_OK;
    }
    char first = 0, last = 0;
    const size_t raw = word_tag(l, tag, "raw", &first, &last);
    if (raw)
        return take_raw(l, raw, last == '-', out);
    out->place = (uint32_t)tag;
    out->kind = at(l, tag, "{{") ? TPL_TOK_OPEN_OUTPUT : TPL_TOK_OPEN_BLOCK;
    l->in = out->kind == TPL_TOK_OPEN_OUTPUT ? TPL_IN_OUTPUT : TPL_IN_BLOCK;
    l->brackets = 0;
    l->pos += 2;
    l->pos += at(l, l->pos, "-") || at(l, l->pos, "+");
    return RLX_OK;
}

/* ---- in a tag ---------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static rlx_status bad(const struct tpl_lex *l, size_t place, const char *what)
{
    return tpl_fail(l->d, l->source, (uint32_t)place, RLX_ERROR_FORMAT, "%s", what);
}

/* Digits of a number in that base after the backslash and its letter; false: too few. */
static bool take_code(const rlx_str s, size_t *at, size_t digits, uint32_t *out)
{
    uint32_t v = 0;

    if (s.len - *at < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        const char c = s.ptr[*at + i];
        const uint32_t digit = is_digit(c)            ? (uint32_t)(c - '0')
                               : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                               : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                      : 16;
        if (digit == 16)
            return false;
        v = v << 4 | digit;
    }
    *at += digits;
    *out = v;
    return true;
}

/* What a backslash and what follows it stand for, as in Python; *at is after the backslash. */
static bool take_escape(rlx_str s, size_t *at, char out[4], size_t *bytes)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = s.ptr[(*at)++];
    const char *known = c ? strchr(from, c) : NULL;
    uint32_t code = 0;

    *bytes = 1;
    if (known) {
        out[0] = to[known - from];
        return true;
    }
    if (c == '\n') { /* a line that goes on */
        *bytes = 0;
        return true;
    }
    if (c >= '0' && c <= '7') {
        code = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && *at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '7'; i++)
            code = code << 3 | (uint32_t)(s.ptr[(*at)++] - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        if (!take_code(s, at,
                       c == 'x'   ? 2
                       : c == 'u' ? 4
                                  : 8,
                       &code) ||
            code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return false;
    } else { /* no escape at all: the backslash stays */
        out[0] = '\\';
        out[1] = c;
        *bytes = 2;
        return true;
    }
    *bytes = utf8_put(code, out);
    return true;
}

static rlx_status take_string(struct tpl_lex *l, struct tpl_token *out)
{
    const rlx_str s = l->source;
    const size_t start = l->pos;
    size_t end = start + 1, len = 0;

    while (end < s.len && s.ptr[end] != s.ptr[start])
        end += s.ptr[end] == '\\' ? 2 : 1;
    if (end >= s.len)
        return bad(l, start, "a string has no end");
    out->kind = TPL_TOK_STRING;
    out->text = (rlx_str){s.ptr + start + 1, end - start - 1};
    l->pos = end + 1;
    if (!out->text.len || !memchr(out->text.ptr, '\\', out->text.len))
        return RLX_OK;
    /* An escape is never shorter than what it stands for. */
    char *own = arena_alloc(l->arena, out->text.len, 1);
    if (!own)
        return diag_no_memory(l->d, out->text.len);
    const rlx_str inside = out->text;
    for (size_t i = 0; i < inside.len;) {
        char piece[4];
        size_t bytes = 1;
        const size_t escape = i;
        piece[0] = inside.ptr[i++];
        if (piece[0] == '\\' && !take_escape(inside, &i, piece, &bytes))
            return bad(l, start + 1 + escape, "an escape in a string is no character");
        memcpy(own + len, piece, bytes);
        len += bytes;
    }
    out->text = (rlx_str){own, len};
    return RLX_OK;
}

static rlx_status take_number(struct tpl_lex *l, struct tpl_token *out)
{
    const rlx_str s = l->source;
    char digits[64];
    size_t len = 0, at = l->pos;
    bool whole = true;

    for (; at < s.len && len + 1 < sizeof digits; at++) {
        const char c = s.ptr[at], next = at + 1 < s.len ? s.ptr[at + 1] : 0;
        if (c == '_' && is_digit(next))
            continue;
        const bool point = c == '.' && whole && is_digit(next);
        const bool exponent = (c == 'e' || c == 'E') &&
                              (is_digit(next) || ((next == '+' || next == '-') && at + 2 < s.len &&
                                                  is_digit(s.ptr[at + 2])));
        if (!is_digit(c) && !point && !exponent)
            break;
        whole = whole && is_digit(c);
        digits[len++] = c;
        if (exponent && !is_digit(next))
            digits[len++] = s.ptr[++at];
    }
    out->text = (rlx_str){s.ptr + l->pos, at - l->pos};
    out->kind = whole ? TPL_TOK_INT : TPL_TOK_FLOAT;
    const rlx_str text = {digits, len};
    if (whole ? !str_to_i64(text, &out->i) : !str_to_f64(text, &out->f))
        return bad(l, l->pos, "a number is too large");
    l->pos = at;
    return RLX_OK;
}

/* The end of the tag, if this is it. */
static bool take_close(struct tpl_lex *l)
{
    const char *close = l->in == TPL_IN_OUTPUT ? "}}" : "%}";
    const size_t start = l->pos;
    const char sign = l->source.ptr[start];
    const bool has_sign = (sign == '-' || sign == '+') && at(l, start + 1, close);

    if (l->brackets || (!has_sign && !at(l, start, close)))
        return false;
    if (has_sign && sign == '+' && l->in == TPL_IN_OUTPUT)
        return false;
    l->pos += has_sign ? 3 : 2;
    after_tag(l, start, has_sign && sign == '-', !has_sign && l->in == TPL_IN_BLOCK);
    return true;
}

static rlx_status take_sign(struct tpl_lex *l, struct tpl_token *out)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "**", "//"};
    const char c = l->source.ptr[l->pos];
    size_t len = 1;

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (at(l, l->pos, signs[i]))
            len = 2;
    if (!c || (len == 1 && !strchr("+-*/%~()[]{}.,:|=<>", c)))
        return bad(l, l->pos, "a character means nothing here");
    if (strchr("([{", c))
        l->brackets++;
    else if (strchr(")]}", c) && l->brackets)
        l->brackets--;
    out->kind = TPL_TOK_SIGN;
    out->text = (rlx_str){l->source.ptr + l->pos, len};
    l->pos += len;
    return RLX_OK;
}

static rlx_status next_in_tag(struct tpl_lex *l, struct tpl_token *out)
{
    const rlx_str s = l->source;

    l->pos += space_after((rlx_str){s.ptr + l->pos, s.len - l->pos});
    out->place = (uint32_t)l->pos;
    if (l->pos == s.len)
        return bad(l, l->pos, l->in == TPL_IN_OUTPUT ? "}} is missing" : "%} is missing");
    const char c = s.ptr[l->pos];
    if (take_close(l)) {
        out->kind = TPL_TOK_CLOSE;
        return RLX_OK;
    }
    if (c == '"' || c == '\'')
        return take_string(l, out);
    if (is_digit(c))
        return take_number(l, out);
    if (!is_name(c))
        return take_sign(l, out);
    size_t end = l->pos;
    while (end < s.len && (is_name(s.ptr[end]) || is_digit(s.ptr[end])))
        end++;
    out->kind = TPL_TOK_NAME;
    out->text = (rlx_str){s.ptr + l->pos, end - l->pos};
    l->pos = end;
    return RLX_OK;
}

rlx_status tpl_next(struct tpl_lex *l, struct tpl_token *out)
{
    *out = (struct tpl_token){.place = (uint32_t)l->pos};
    return l->in == TPL_IN_TEXT ? next_in_text(l, out) : next_in_tag(l, out);
}
