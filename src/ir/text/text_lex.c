/* text_lex.c: the text form as tokens, and how a parse fails: with a place and what was expected.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/text/text_impl.h"

/* ---- characters ---------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char char_at(const struct text_lexer *l, size_t at)
{
    return at < l->source.len ? l->source.ptr[at] : 0;
}

bool text_is_name(rlx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!is_letter(c) && (i == 0 || !(is_digit(c) || c == '.')))
            return false;
    }
    return s.len > 0;
}

static void skip_blanks(struct text_lexer *l)
{
    while (l->at < l->source.len) {
        char c = l->source.ptr[l->at];
        if (c == '#') {
            const char *end = memchr(l->source.ptr + l->at, '\n', l->source.len - l->at);
            l->at = end ? (size_t)(end - l->source.ptr) : l->source.len;
        } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            return;
        } else {
            l->at++;
        }
    }
}

/* ---- tokens -------------------------------------------------------------------------------- */

static struct text_token bad(size_t at, const char *why)
{
    return (struct text_token){.kind = TEXT_BAD, .at = at, .why = why};
}

static struct text_token token(struct text_lexer *l, enum text_kind kind, size_t end)
{
    struct text_token t = {kind, {l->source.ptr + l->at, end - l->at}, l->at, NULL};

    l->at = end;
    return t;
}

static struct text_token lex_word(struct text_lexer *l)
{
    size_t end = l->at;

    while (is_letter(char_at(l, end)) || is_digit(char_at(l, end)))
        end++;
    return token(l, TEXT_WORD, end);
}

/* %name, @name */
static struct text_token lex_name(struct text_lexer *l, enum text_kind kind)
{
    size_t end = l->at + 1;

    while (is_letter(char_at(l, end)) || is_digit(char_at(l, end)) || char_at(l, end) == '.')
        end++;
    struct text_token t = token(l, kind, end);
    t.text.ptr++;
    t.text.len--;
    if (!text_is_name(t.text))
        return bad(t.at, kind == TEXT_VALUE
                             ? "expected a name after '%': a letter or '_', then letters, digits, "
                               "'_' and '.'"
                             : "expected a name after '@': a letter or '_', then letters, digits, "
                               "'_' and '.'");
    return t;
}

static size_t skip_digits(const struct text_lexer *l, size_t at)
{
    while (is_digit(char_at(l, at)))
        at++;
    return at;
}

static struct text_token lex_number(struct text_lexer *l)
{
    size_t begin = l->at, end = l->at;
    enum text_kind kind = TEXT_NUMBER;

    if (char_at(l, end) == '0' && char_at(l, end + 1) == 'x') {
        kind = TEXT_HEX;
        for (end += 2; is_hex(char_at(l, end));)
            end++;
    } else {
        end = skip_digits(l, end);
        if (char_at(l, end) == '.')
            end = skip_digits(l, end + 1);
        char e = char_at(l, end), sign = char_at(l, end + 1);
        size_t digits = end + 1 + (sign == '-' || sign == '+');
        if ((e == 'e' || e == 'E') && is_digit(char_at(l, digits)))
            end = skip_digits(l, digits);
    }
    if (is_letter(char_at(l, end)) || is_digit(char_at(l, end)))
        return bad(begin, "this is neither a number nor a word");
    return token(l, kind, end);
}

static struct text_token lex_string(struct text_lexer *l)
{
    size_t end = l->at + 1;

    for (; char_at(l, end) != '"'; end++) {
        if (end >= l->source.len || l->source.ptr[end] == '\n' || !l->source.ptr[end])
            return bad(l->at, "the string has no closing quote on its line");
        if (l->source.ptr[end] == '\\')
            end++;
    }
    return token(l, TEXT_STRING, end + 1);
}

struct text_token text_lex(struct text_lexer *l)
{
    skip_blanks(l);
    size_t at = l->at;
    char c = char_at(l, at), next = char_at(l, at + 1);

    if (at >= l->source.len)
        return (struct text_token){.kind = TEXT_END, .at = at};
    if (is_letter(c))
        return lex_word(l);
    if (is_digit(c) || (c == '.' && is_digit(next)))
        return lex_number(l);
    switch (c) {
    case '%': return lex_name(l, TEXT_VALUE);
    case '@': return lex_name(l, TEXT_GRAPH);
    case '"': return lex_string(l);
    case '<': return next == '=' ? token(l, TEXT_MARK, at + 2) : bad(at, "expected '<='");
    case '.':
        if (next == '.' && char_at(l, at + 2) == '.')
            return bad(at, "'...' stands for values that were left out: this text was shortened "
                           "for reading");
        return bad(at, "a '.' must be followed by a digit");
    case 0: return bad(at, "the text holds a NUL byte");
    default: break;
    }
    if (strchr("(){}[],:=+-*/?", c))
        return token(l, TEXT_MARK, at + 1);
    return bad(at, "no token begins with this character");
}

bool text_token_is(const struct text_token *t, const char *mark_or_word)
{
    return (t->kind == TEXT_MARK || t->kind == TEXT_WORD) &&
           str_eq(t->text, rlx_cstr(mark_or_word));
}

void text_position(rlx_str source, size_t at, size_t *line, size_t *column)
{
    size_t begin = 0;

    *line = 1;
    *column = 1;
    at = at < source.len ? at : source.len;
    for (size_t i = 0; i < at; i++) {
        if (source.ptr[i] == '\n') {
            ++*line;
            begin = i + 1;
        }
    }
    while (begin < at) {
        size_t step = str_utf8_step((rlx_str){source.ptr + begin, at - begin});
        begin += step ? step : 1;
        ++*column;
    }
}

/* ---- the token in front -------------------------------------------------------------------- */

void text_start(struct text_parser *p, rlx_str source)
{
    p->lex = (struct text_lexer){source, 0};
    p->depth = 0;
    text_next(p);
}

void text_next(struct text_parser *p)
{
    p->tok = text_lex(&p->lex);
}

struct text_token text_peek(const struct text_parser *p)
{
    struct text_lexer ahead = p->lex;

    return text_lex(&ahead);
}

rlx_status text_fail(struct text_parser *p, size_t at, rlx_status s, const char *fmt, ...)
{
    char message[sizeof((rlx_error *)0)->message];
    size_t line, column;
    va_list args;

    if (dim_no_memory(p->mod->dims)) /* then the text is not at fault */
        return diag_no_memory(p->diag, 0);
    va_start(args, fmt);
    int len = vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    text_position(p->lex.source, at, &line, &column);
    return diag_fail(p->diag, s, "%zu:%zu: %s", line, column, len < 0 ? "bad text" : message);
}

rlx_status text_unexpected(struct text_parser *p, const char *what)
{
    enum { SHOWN = 40 };
    const struct text_token *t = &p->tok;
    size_t len = t->kind == TEXT_BAD || t->kind == TEXT_END ? 0 : p->lex.at - t->at;
    bool cut = len > SHOWN;

    if (t->kind == TEXT_BAD)
        return text_fail(p, t->at, RLX_ERROR_FORMAT, "%s", t->why);
    if (t->kind == TEXT_END)
        return text_fail(p, t->at, RLX_ERROR_FORMAT, "expected %s, but the text ends", what);
    return text_fail(p, t->at, RLX_ERROR_FORMAT, "expected %s, got '%.*s%s'", what,
                     (int)(cut ? SHOWN : len), p->lex.source.ptr + t->at, cut ? "..." : "");
}

bool text_take(struct text_parser *p, const char *mark)
{
    if (!text_token_is(&p->tok, mark))
        return false;
    text_next(p);
    return true;
}

rlx_status text_need(struct text_parser *p, const char *mark)
{
    char what[16];

    if (text_take(p, mark))
        return RLX_OK;
    snprintf(what, sizeof what, "'%s'", mark);
    return text_unexpected(p, what);
}

rlx_status text_fail_with(struct text_parser *p, size_t at, const struct diag *inner)
{
    const rlx_error *e = &inner->first;

    if (e->status == RLX_ERROR_MEMORY)
        return diag_fail(p->diag, e->status, "%s", e->message);
    if (e->op[0])
        diag_at(p->diag, e->op, e->node, rlx_cstr(e->label));
    return text_fail(p, at, e->status, "%s", e->message);
}
