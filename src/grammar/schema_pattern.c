/* schema_pattern.c: patterns of strings, as far as a grammar can say what they mean:
 *
 *     a|b  ab  (a) (?:a)  a? a* a+ a{n} a{n,} a{n,m}  [a-z] [^a] . \d \w \s \D \W \S
 *     \n \r \t \f \v \0 \xHH \uHHHH, and \ before a sign; ^ at the beginning, $ at the end
 *
 * A pattern may match anywhere in a string, unless ^ or $ hold it. All else is UNSUPPORTED. */
#include <string.h>

#include "grammar/schema.h"
#include "text/unicode.h"

struct pattern_in {
    struct schema *c;
    size_t rule;
    rlx_str text;
    size_t pos;
    int depth; /* parentheses open */
    struct gram_chars chars;
    const struct schema_place *at;
};

static rlx_status refuse(const struct pattern_in *p, const char *what)
{
    return schema_bad(p->c, p->at, RLX_ERROR_UNSUPPORTED, "pattern \"%.*s\", byte %zu: %s",
                      STR_ARG(p->text), p->pos, what);
}

static char peek(const struct pattern_in *p)
{
    return p->pos < p->text.len ? p->text.ptr[p->pos] : 0;
}

static bool take(struct pattern_in *p, char ch)
{
    if (p->pos == p->text.len || peek(p) != ch)
        return false;
    p->pos++;
    return true;
}

static void put(struct pattern_in *p, const char *text)
{
    schema_put(p->c, p->rule, "%s", text);
}

static rlx_status add(struct pattern_in *p, uint32_t lo, uint32_t hi)
{
    return gram_chars_add(&p->chars, lo, hi) ? RLX_OK : diag_no_memory(p->c->d, sizeof lo);
}

/* ---- sets of characters ------------------------------------------------------------------ */

static const struct gram_range digits[] = {{'0', '9'}};
static const struct gram_range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct gram_range spaces[] = {
    {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
static const struct gram_range line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

/* The set, or all that is not in it. Sets are sorted. */
static rlx_status add_set(struct pattern_in *p, const struct gram_range *set, size_t count,
                          bool not )
{
    uint32_t from = 0;

    for (size_t i = 0; i < count; i++) {
        if (!not )
            TRY(add(p, set[i].lo, set[i].hi));
        else if (set[i].lo > from)
            TRY(add(p, from, set[i].lo - 1));
        from = set[i].hi + 1;
    }
    return not ? add(p, from, GRAM_LAST_CHAR) : RLX_OK;
}
#define ADD_SET(p, set, not ) add_set((p), (set), sizeof(set) / sizeof *(set), (not ))

/* Those that a string writes as they are: all but " and \ and control characters. */
static bool put_plain(struct pattern_in *p)
{
    static const struct gram_range plain[] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, GRAM_LAST_CHAR}};
    bool first = true;

    for (size_t i = 0; i < p->chars.range.len; i++)
        for (size_t k = 0; k < 3; k++) {
            const struct gram_range r = p->chars.range.at[i];
            const uint32_t lo = r.lo > plain[k].lo ? r.lo : plain[k].lo;
            const uint32_t hi = r.hi < plain[k].hi ? r.hi : plain[k].hi;
            if (lo > hi)
                continue;
            schema_put(p->c, p->rule, "%s\\U%08x-\\U%08x", first ? "[" : "", (unsigned)lo,
                       (unsigned)hi);
            first = false;
        }
    put(p, first ? "" : "]");
    return !first;
}

static bool has(const struct pattern_in *p, uint32_t ch)
{
    for (size_t i = 0; i < p->chars.range.len; i++)
        if (p->chars.range.at[i].lo <= ch && ch <= p->chars.range.at[i].hi)
            return true;
    return false;
}

/* As a string spells them. Other control characters, which take \u, are left out. */
static rlx_status put_chars(struct pattern_in *p, bool negate)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";

    if (!gram_chars_finish(&p->chars, negate))
        return diag_no_memory(p->c->d, sizeof *p->chars.range.at);
    put(p, "(");
    bool some = put_plain(p);
    for (size_t i = 0; escaped[i]; i++)
        if (has(p, (unsigned char)escaped[i])) {
            const char text[] = {'\\', letter[i]};
            put(p, some ? " | " : "");
            schema_put_literal(p->c, p->rule, (rlx_str){text, 2});
            some = true;
        }
    put(p, ")");
    return some ? RLX_OK : refuse(p, "no character that JSON writes without \\u may stand here");
}

/* ---- escapes and classes ----------------------------------------------------------------- */

static rlx_status take_hex(struct pattern_in *p, int count, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < count; i++, p->pos++) {
        const char h = peek(p);
        const int v = h >= '0' && h <= '9'   ? h - '0'
                      : h >= 'A' && h <= 'F' ? h - 'A' + 10
                      : h >= 'a' && h <= 'f' ? h - 'a' + 10
                                             : -1;
        if (v < 0)
            return refuse(p, "a hexadecimal digit was expected");
        *out = *out << 4 | (uint32_t)v;
    }
    return RLX_OK;
}

/* After a backslash: a set, which is added, or one character. */
static rlx_status take_escape(struct pattern_in *p, bool *set, uint32_t *ch)
{
    static const char from[] = "nrtfv0", to[] = "\n\r\t\f\v\0";
    const char e = peek(p), *known = e ? strchr(from, e) : NULL;

    if (!e)
        return refuse(p, "nothing comes after the backslash");
    p->pos++;
    *set = true;
    switch (e) {
    case 'd': return ADD_SET(p, digits, false);
    case 'D': return ADD_SET(p, digits, true);
    case 'w': return ADD_SET(p, word, false);
    case 'W': return ADD_SET(p, word, true);
    case 's': return ADD_SET(p, spaces, false);
    case 'S': return ADD_SET(p, spaces, true);
    default: break;
    }
    *set = false;
    if (e == 'x' || e == 'u')
        return take_hex(p, e == 'x' ? 2 : 4, ch);
    if (known) {
        *ch = (unsigned char)to[known - from];
        return RLX_OK;
    }
    if ((e >= '0' && e <= '9') || (e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z')) {
        p->pos--;
        return refuse(p, "this escape is not known");
    }
    p->pos--;
    size_t step;
    *ch = utf8_next(p->text.ptr + p->pos, p->text.len - p->pos, &step);
    p->pos += step;
    return RLX_OK;
}

/* A character of a class, or a set of them. */
static rlx_status take_member(struct pattern_in *p, bool *set, uint32_t *ch)
{
    size_t step;

    *set = false;
    if (take(p, '\\')) {
        if (take(p, 'b')) {
            *ch = '\b';
            return RLX_OK;
        }
        return take_escape(p, set, ch);
    }
    *ch = utf8_next(p->text.ptr + p->pos, p->text.len - p->pos, &step);
    p->pos += step;
    return RLX_OK;
}

/* After the [ */
static rlx_status take_class(struct pattern_in *p)
{
    const bool negate = take(p, '^');

    while (!take(p, ']')) {
        uint32_t lo = 0, hi;
        bool set, second = false;
        if (p->pos == p->text.len)
            return refuse(p, "a class has no end");
        TRY(take_member(p, &set, &lo));
        hi = lo;
        if (peek(p) == '-' && p->pos + 1 < p->text.len && p->text.ptr[p->pos + 1] != ']') {
            p->pos++;
            TRY(take_member(p, &second, &hi));
            if (set || second || lo > hi)
                return refuse(p, "a range in a class goes from a lower to a higher character");
        }
        if (!set)
            TRY(add(p, lo, hi));
    }
    return put_chars(p, negate);
}

/* ---- what a pattern is made of ----------------------------------------------------------- */

static rlx_status take_alternatives(struct pattern_in *p);

/* After the ( */
static rlx_status take_group(struct pattern_in *p)
{
    enum { MOST_OPEN = 30 };

    if (take(p, '?') && !take(p, ':'))
        return refuse(p, "of groups that begin with (? only (?: is known");
    if (++p->depth > MOST_OPEN)
        return refuse(p, "too many parentheses are open");
    put(p, "(");
    TRY(take_alternatives(p));
    if (!take(p, ')'))
        return refuse(p, "a ) was expected");
    put(p, ")");
    p->depth--;
    return RLX_OK;
}

static rlx_status take_atom(struct pattern_in *p)
{
    bool set = false;
    uint32_t ch = 0;
    size_t step;

    p->chars.range.len = 0;
    if (take(p, '('))
        return take_group(p);
    if (take(p, '['))
        return take_class(p);
    if (take(p, '.')) {
        TRY(ADD_SET(p, line_ends, true));
        return put_chars(p, false);
    }
    if (take(p, '\\'))
        TRY(take_escape(p, &set, &ch));
    else if (strchr("*+?{}]^$", peek(p)))
        return refuse(p, "this sign may not stand here");
    else {
        ch = utf8_next(p->text.ptr + p->pos, p->text.len - p->pos, &step);
        p->pos += step;
    }
    if (!set)
        TRY(add(p, ch, ch));
    return put_chars(p, false);
}

static rlx_status take_number(struct pattern_in *p, uint32_t *out)
{
    const size_t start = p->pos;

    for (*out = 0; peek(p) >= '0' && peek(p) <= '9'; p->pos++)
        if (*out <= GRAM_MOST_REPEATS)
            *out = *out * 10 + (uint32_t)(peek(p) - '0');
    if (p->pos == start)
        return refuse(p, "a count was expected");
    return *out <= GRAM_MOST_REPEATS ? RLX_OK : refuse(p, "a count is too large");
}

static rlx_status take_repeats(struct pattern_in *p)
{
    const char sign[] = {peek(p), 0};
    uint32_t min, max;

    if (take(p, '*') || take(p, '+') || take(p, '?'))
        put(p, sign);
    else if (take(p, '{')) {
        TRY(take_number(p, &min));
        max = min;
        const bool comma = take(p, ','), open = comma && peek(p) == '}';
        if (comma && !open)
            TRY(take_number(p, &max));
        if (!take(p, '}') || max < min)
            return refuse(p, "counts are {n}, {n,} or {n,m}");
        if (open)
            schema_put(p->c, p->rule, "{%u,}", min);
        else
            schema_put(p->c, p->rule, "{%u,%u}", min, max);
    } else
        return RLX_OK;
    take(p, '?'); /* what is tried first does not matter here */
    return peek(p) && strchr("*+?{", peek(p)) ? refuse(p, "a repetition of a repetition") : RLX_OK;
}

/* One of the alternatives. Outside of all groups it is held by ^ and $, or may lie anywhere. */
static rlx_status take_sequence(struct pattern_in *p)
{
    const bool outside = p->depth == 0;
    bool held = false;

    if (outside && !take(p, '^'))
        schema_put(p->c, p->rule, "%s* ", schema_fixed(p->c, "char").ptr);
    while (p->pos < p->text.len && peek(p) != '|' && peek(p) != ')') {
        held = outside && peek(p) == '$' &&
               (p->pos + 1 == p->text.len || p->text.ptr[p->pos + 1] == '|');
        if (held) {
            p->pos++;
            break;
        }
        TRY(take_atom(p));
        TRY(take_repeats(p));
        put(p, " ");
    }
    if (outside && !held)
        schema_put(p->c, p->rule, "%s*", schema_fixed(p->c, "char").ptr);
    return RLX_OK;
}

static rlx_status take_alternatives(struct pattern_in *p)
{
    TRY(take_sequence(p));
    while (take(p, '|')) {
        put(p, " | ");
        TRY(take_sequence(p));
    }
    return RLX_OK;
}

rlx_status schema_pattern(struct schema *c, size_t rule, rlx_str pattern,
                          const struct schema_place *at)
{
    struct pattern_in p = {.c = c, .rule = rule, .text = pattern, .chars.mem = c->mem, .at = at};

    rlx_status s = take_alternatives(&p);
    if (s == RLX_OK && p.pos < p.text.len)
        s = refuse(&p, "a ) without its (");
    vec_free(c->mem, &p.chars.range);
    return s;
}
