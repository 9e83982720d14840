/* lex.c: kernel source as tokens. */
#include <string.h>

#include "kernel/syntax.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char char_at(const struct kc_lexer *l, size_t at)
{
    return at < l->text.len ? l->text.ptr[at] : 0;
}

/* Was there a line's end? */
static bool skip_blanks(struct kc_lexer *l)
{
    bool line = l->at == 0;

    for (;;) {
        char c = char_at(l, l->at);
        line |= c == '\n';
        if (c == '/' && char_at(l, l->at + 1) == '/') {
            const char *end = memchr(l->text.ptr + l->at, '\n', l->text.len - l->at);
            l->at = end ? (size_t)(end - l->text.ptr) : l->text.len;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            l->at++;
        } else {
            return line;
        }
    }
}

static struct kc_token token(struct kc_lexer *l, enum kc_token_kind kind, size_t end)
{
    struct kc_token t = {
        .kind = kind, .text = {l->text.ptr + l->at, end - l->at}, .at = l->base + (uint32_t)l->at};

    l->at = end;
    return t;
}

static struct kc_token bad(struct kc_lexer *l, const char *why)
{
    struct kc_token t = token(l, KC_BAD, l->at);

    t.why = why;
    return t;
}

static size_t digits(const struct kc_lexer *l, size_t at)
{
    while (is_digit(char_at(l, at)))
        at++;
    return at;
}

/* 12, 0x1f, 1.5, 2e-3. "1..2" is a range, so that a point needs a digit after it. */
static struct kc_token number(struct kc_lexer *l)
{
    size_t end = l->at;
    bool real = false;

    if (char_at(l, end) == '0' && char_at(l, end + 1) == 'x') {
        for (end += 2; is_letter(char_at(l, end)) || is_digit(char_at(l, end)); end++)
            if (!is_digit(char_at(l, end)) && !strchr("abcdefABCDEF", char_at(l, end)))
                return bad(l, "a hexadecimal number has digits from 0 to f");
        return end == l->at + 2 ? bad(l, "0x needs digits after it") : token(l, KC_INT, end);
    }
    end = digits(l, end);
    if (char_at(l, end) == '.' && is_digit(char_at(l, end + 1))) {
        real = true;
        end = digits(l, end + 1);
    }
    if (char_at(l, end) == 'e') {
        size_t sign = char_at(l, end + 1) == '-' || char_at(l, end + 1) == '+';
        if (!is_digit(char_at(l, end + 1 + sign)))
            return bad(l, "an exponent needs digits");
        real = true;
        end = digits(l, end + 1 + sign);
    }
    if (is_letter(char_at(l, end)))
        return bad(l, "a number runs into a name");
    return token(l, real ? KC_FLOAT : KC_INT, end);
}

static struct kc_token string(struct kc_lexer *l)
{
    size_t end = l->at + 1;

    while (end < l->text.len && l->text.ptr[end] != '"' && l->text.ptr[end] != '\n')
        end++;
    if (char_at(l, end) != '"')
        return bad(l, "a text has no closing quote on its line");
    return token(l, KC_STRING, end + 1);
}

static struct kc_token next(struct kc_lexer *l)
{
    static const char *const pairs[] = {"..", "->", "==", "!=", "<=", ">=", "&&", "||", "<<",
                                        ">>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};

    char c = char_at(l, l->at);
    if (l->at >= l->text.len)
        return token(l, KC_END, l->at);
    if (is_digit(c))
        return number(l);
    if (c == '"')
        return string(l);
    if (is_letter(c)) {
        size_t end = l->at;
        while (is_letter(char_at(l, end)) || is_digit(char_at(l, end)))
            end++;
        return token(l, KC_NAME, end);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (c == pairs[i][0] && char_at(l, l->at + 1) == pairs[i][1])
            return token(l, KC_PUNCT, l->at + 2);
    if (c && strchr("+-*/%&|^~!<>=()[]{},;:.?", c))
        return token(l, KC_PUNCT, l->at + 1);
    return bad(l, "a character that means nothing here");
}

struct kc_token kc_next(struct kc_lexer *l)
{
    bool first = skip_blanks(l);
    struct kc_token t = next(l);

    t.first = first;
    return t;
}
