/* json_read.c: JSON, read piece by piece. Nothing is built: the reader asks for what it expects. */
#include "base/json_read.h"

#include <string.h>

#include "base/str.h"

rlx_status json_read_bad(struct json_in *j, const char *what)
{
    return diag_fail(j->d, RLX_ERROR_FORMAT, "%s: byte %zu: %s", j->what, j->offset + j->pos, what);
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static void skip_space(struct json_in *j)
{
    while (j->pos < j->text.len && is_one_of(j->text.ptr[j->pos], " \t\n\r"))
        j->pos++;
}

/* The next character that is not a space; 0: there is none. */
static char peek(struct json_in *j)
{
    skip_space(j);
    return j->pos < j->text.len ? j->text.ptr[j->pos] : 0;
}

static bool take(struct json_in *j, char c)
{
    if (peek(j) != c || j->pos == j->text.len)
        return false;
    j->pos++;
    return true;
}

rlx_status json_read_open(struct json_in *j, char bracket)
{
    if (!take(j, bracket))
        return json_read_bad(j,
                             bracket == '{' ? "an object was expected" : "an array was expected");
    if (++j->depth > j->max_depth)
        return json_read_bad(j, "too many brackets are open");
    return RLX_OK;
}

rlx_status json_read_more(struct json_in *j, char closing, bool first, bool *more)
{
    *more = !take(j, closing);
    if (!*more)
        j->depth--;
    else if (!first && !take(j, ','))
        return json_read_bad(j, "a comma or a closing bracket was expected");
    return RLX_OK;
}

rlx_status json_read_key(struct json_in *j, rlx_str *out)
{
    TRY(json_read_string(j, out));
    return take(j, ':') ? RLX_OK : json_read_bad(j, "a colon was expected");
}

/* ---- strings ---- */

/* Takes four hex digits; false if there are not four. */
static bool take_hex(struct json_in *j, uint32_t *out)
{
    uint32_t v = 0;

    if (j->text.len - j->pos < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = j->text.ptr[j->pos + (size_t)i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        v = v << 4 | digit;
    }
    j->pos += 4;
    *out = v;
    return true;
}

static size_t put_utf8(char *out, uint32_t c)
{
    size_t extra = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};

    out[0] = (char)(lead[extra] | c >> (6 * extra));
    for (size_t i = 1; i <= extra; i++)
        out[i] = (char)(0x80 | (c >> (6 * (extra - i)) & 0x3f));
    return extra + 1;
}

/* What an escape stands for, after its backslash; never longer than the escape itself. */
static rlx_status take_escape(struct json_in *j, char *out, size_t *len)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = j->pos < j->text.len ? j->text.ptr[j->pos++] : 0;
    const char *known = c ? strchr(from, c) : NULL;
    uint32_t code = 0, low = 0;

    if (known) {
        out[0] = to[known - from];
        *len = 1;
        return RLX_OK;
    }
    if (c != 'u' || !take_hex(j, &code))
        return json_read_bad(j, "a string holds an unknown escape");
    if (code >= 0xd800 && code < 0xe000) {
        bool pair = code < 0xdc00 && j->text.len - j->pos >= 6 &&
                    memcmp(j->text.ptr + j->pos, "\\u", 2) == 0;
        j->pos += pair ? 2 : 0;
        if (!pair || !take_hex(j, &low) || low < 0xdc00 || low > 0xdfff)
            return json_read_bad(j, "a string holds half a character");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *len = put_utf8(out, code);
    return RLX_OK;
}

/* Where the string ends, starting after its first quote; *plain: it has no escapes. */
static rlx_status find_quote(struct json_in *j, size_t *end, bool *plain)
{
    *plain = true;
    for (size_t i = j->pos; i < j->text.len; i++) {
        char c = j->text.ptr[i];
        if (c == '"') {
            *end = i;
            return RLX_OK;
        }
        if ((unsigned char)c < 0x20) {
            j->pos = i;
            return json_read_bad(j, "a string holds a control character");
        }
        *plain = *plain && c != '\\';
        i += c == '\\';
    }
    return json_read_bad(j, "a string has no end");
}

rlx_status json_read_string(struct json_in *j, rlx_str *out)
{
    size_t end = 0, len = 0;
    bool plain = true;

    if (!take(j, '"'))
        return json_read_bad(j, "a string was expected");
    TRY(find_quote(j, &end, &plain));
    *out = (rlx_str){j->text.ptr + j->pos, end - j->pos};
    if (!plain) {
        char *own = arena_alloc(j->arena, end - j->pos, 1);
        if (!own)
            return diag_no_memory(j->d, end - j->pos);
        while (j->pos < end) {
            size_t step = 1;
            char c = j->text.ptr[j->pos++];
            if (c == '\\')
                TRY(take_escape(j, own + len, &step));
            else
                own[len] = c;
            len += step;
        }
        *out = (rlx_str){own, len};
    }
    j->pos = end + 1;
    return RLX_OK;
}

/* ---- the rest ---- */

rlx_status json_read_u64(struct json_in *j, uint64_t *out)
{
    uint64_t v = 0;
    char c = peek(j);

    if (c < '0' || c > '9')
        return json_read_bad(j, "an integer of at least 0 was expected");
    size_t start = j->pos;
    for (; j->pos < j->text.len && (c = j->text.ptr[j->pos]) >= '0' && c <= '9'; j->pos++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(c - '0'), &v))
            return json_read_bad(j, "a number overflows 64 bits");
    if (j->pos < j->text.len && is_one_of(j->text.ptr[j->pos], ".eE"))
        return json_read_bad(j, "a number is not written as an integer");
    if (j->text.ptr[start] == '0' && j->pos - start > 1)
        return json_read_bad(j, "a number has a leading zero");
    *out = v;
    return RLX_OK;
}

char json_read_peek(struct json_in *j)
{
    return peek(j);
}

rlx_status json_read_word(struct json_in *j, struct json_word *out)
{
    static const rlx_str words[] = {STR("true"), STR("false"), STR("null")};
    size_t len = 0;

    peek(j);
    const rlx_str rest = {j->text.ptr + j->pos, j->text.len - j->pos};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_starts(rest, words[i])) {
            *out = (struct json_word){.kind = i < 2 ? JSON_WORD_BOOL : JSON_WORD_NULL, .b = i == 0};
            j->pos += words[i].len;
            return RLX_OK;
        }
    }
    while (len < rest.len && is_one_of(rest.ptr[len], "+-.0123456789eE"))
        len++;
    const rlx_str number = {rest.ptr, len};
    *out = (struct json_word){.kind = JSON_WORD_INT};
    if (!str_to_i64(number, &out->i)) {
        out->kind = JSON_WORD_FLOAT;
        if (!str_to_f64(number, &out->f))
            return json_read_bad(j, "a value was expected");
    }
    j->pos += len;
    return RLX_OK;
}

rlx_status json_read_skip(struct json_in *j)
{
    char c = peek(j);
    struct json_word word;
    rlx_str unused;

    if (c == '"')
        return json_read_string(j, &unused);
    if (c != '{' && c != '[')
        return json_read_word(j, &word);
    TRY(json_read_open(j, c)); /* which also bounds how deep this calls itself */
    for (bool first = true;; first = false) {
        bool more = false;
        TRY(json_read_more(j, c == '{' ? '}' : ']', first, &more));
        if (!more)
            return RLX_OK;
        if (c == '{')
            TRY(json_read_key(j, &unused));
        TRY(json_read_skip(j));
    }
}

rlx_status json_read_end(struct json_in *j)
{
    skip_space(j);
    return j->pos == j->text.len ? RLX_OK : json_read_bad(j, "there is text after the end");
}
