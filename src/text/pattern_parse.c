/* pattern_parse.c: reads patterns: pattern.h lists what they may hold. */
#include <string.h>

#include "text/pattern_impl.h"

struct reading {
    rlx_str s;
    size_t at;
    struct arena *arena;
    struct diag *d;
    int depth; /* of brackets */
};

enum { MOST_DEPTH = 8, MOST_ITEMS = 64, MOST_WORDS = 32, MOST_RANGES = 128, MOST_COUNT = 4096 };

static rlx_status unsupported(const struct reading *r, const char *what)
{
    return diag_fail(r->d, RLX_ERROR_UNSUPPORTED, "pattern \"%.*s\": %s at byte %zu", STR_ARG(r->s),
                     what, r->at);
}

static rlx_status bad(const struct reading *r, const char *what)
{
    return diag_fail(r->d, RLX_ERROR_FORMAT, "pattern \"%.*s\": %s at byte %zu", STR_ARG(r->s),
                     what, r->at);
}

static bool more(const struct reading *r)
{
    return r->at < r->s.len;
}

static char peek(const struct reading *r)
{
    return more(r) ? r->s.ptr[r->at] : 0;
}

static bool accept(struct reading *r, const char *text)
{
    rlx_str rest = {r->s.ptr + r->at, r->s.len - r->at};

    if (!str_starts(rest, rlx_cstr(text)))
        return false;
    r->at += strlen(text);
    return true;
}

/* ---- classes ----------------------------------------------------------------------------- */

struct draft { /* of a class */
    struct pattern_class c;
    struct pattern_range range[MOST_RANGES];
};

static rlx_status add_range(struct reading *r, struct draft *f, uint32_t first, uint32_t last)
{
    if (f->c.range_count == MOST_RANGES)
        return unsupported(r, "a class of more than 128 ranges");
    if (first > last)
        return bad(r, "a range that ends before it begins");
    f->range[f->c.range_count++] = (struct pattern_range){first, last};
    return RLX_OK;
}

static const struct pattern_class *finish(struct reading *r, const struct draft *f)
{
    struct pattern_class *c = arena_new(r->arena, struct pattern_class);
    struct pattern_range *range =
        arena_array(r->arena, struct pattern_range, f->c.range_count ? f->c.range_count : 1);

    if (!c || !range) {
        diag_no_memory(r->d, sizeof *c);
        return NULL;
    }
    memcpy(range, f->range, f->c.range_count * sizeof *range);
    *c = f->c;
    c->range = range;
    for (uint32_t ch = 0; ch < 128; ch++)
        if (pattern_class_has_slow(c, ch))
            c->ascii[ch >> 6] |= UINT64_C(1) << (ch & 63);
    return c;
}

/* What \p{..} names. */
static const struct property {
    const char *name;
    uint32_t categories;
    bool space, han;
} properties[] = {{"L", CATS_L, 0, 0},
                  {"M", CATS_M, 0, 0},
                  {"N", CATS_N, 0, 0},
                  {"P", CATS_P, 0, 0},
                  {"S", CATS_S, 0, 0},
                  {"Z", CAT_BIT(Zs) | CAT_BIT(Zl) | CAT_BIT(Zp), 0, 0},
                  {"C", CAT_BIT(Cc) | CAT_BIT(Cf) | CAT_BIT(Cs) | CAT_BIT(Co) | CAT_BIT(Cn), 0, 0},
                  {"Han", 0, 0, true},
                  {"White_Space", 0, true, 0},
#define X(c) {#c, CAT_BIT(c), 0, 0},
                  X(Lu) X(Ll) X(Lt) X(Lm) X(Lo) X(Mn) X(Mc) X(Me) X(Nd) X(Nl) X(No) X(Pc) X(Pd)
                      X(Ps) X(Pe) X(Pi) X(Pf) X(Po) X(Sm) X(Sc) X(Sk) X(So) X(Zs) X(Zl) X(Zp) X(Cc)
                          X(Cf)
#undef X
};

/* Adds what \p{name} or \P{name} means; at: after the p. */
static rlx_status add_property(struct reading *r, struct draft *f, bool negated)
{
    rlx_str name = {r->s.ptr + r->at, 1};

    if (accept(r, "{")) {
        const char *end = memchr(r->s.ptr + r->at, '}', r->s.len - r->at);
        if (!end)
            return bad(r, "\\p{ that does not end");
        name = (rlx_str){r->s.ptr + r->at, (size_t)(end - r->s.ptr) - r->at};
        r->at += name.len + 1;
    } else if (more(r))
        r->at++;
    else
        return bad(r, "\\p without a name");
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        const struct property *p = &properties[i];
        if (!str_eq(name, rlx_cstr(p->name)))
            continue;
        if (negated && (p->space || p->han))
            return unsupported(r, "\\P of a property that is not a category");
        f->c.categories |= negated ? ~p->categories : p->categories;
        f->c.space |= p->space;
        f->c.han |= p->han;
        return RLX_OK;
    }
    return unsupported(r, "an unknown property");
}

static rlx_status read_hex(struct reading *r, size_t least, size_t most, uint32_t *out)
{
    uint32_t v = 0;
    size_t n = 0;

    for (; n < most && more(r); n++, r->at++) {
        char c = peek(r);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            break;
        v = v * 16 + (uint32_t)digit;
    }
    if (n < least || v > 0x10ffff)
        return bad(r, "no number of a character");
    *out = v;
    return RLX_OK;
}

/* Adds a class that an escape stands for, *single false; or tells the character, *single true. */
static rlx_status read_escape(struct reading *r, struct draft *f, bool *single, uint32_t *ch)
{
    static const char from[] = "rntfv0", to[] = "\r\n\t\f\v\0";
    char c = peek(r);

    *single = false;
    if (!more(r))
        return bad(r, "a backslash at the end");
    r->at++;
    switch (c) {
    case 'p':
    case 'P': return add_property(r, f, c == 'P');
    case 's': f->c.space = true; return RLX_OK;
    case 'd': f->c.categories |= CAT_BIT(Nd); return RLX_OK;
    case 'S':
    case 'D': { /* a class of its own, as it is negated */
        struct draft inner = {.c = {.negated = true,
                                    .space = c == 'S',
                                    .categories = c == 'D' ? CAT_BIT(Nd) : 0,
                                    .next = f->c.part}};
        f->c.part = finish(r, &inner);
        return f->c.part ? RLX_OK : RLX_ERROR_MEMORY;
    }
    default: break;
    }
    *single = true;
    if (c == 'u')
        return read_hex(r, 4, 4, ch);
    if (c == 'x' && accept(r, "{")) {
        TRY(read_hex(r, 1, 6, ch));
        return accept(r, "}") ? RLX_OK : bad(r, "\\x{ that does not end");
    }
    if (c == 'x')
        return read_hex(r, 2, 2, ch);
    const char *known = strchr(from, c);
    if (known && c)
        *ch = (unsigned char)to[known - from];
    else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9'))
        return unsupported(r, "an unknown escape");
    else
        *ch = (unsigned char)c;
    return (unsigned char)c < 128 ? RLX_OK : unsupported(r, "an unknown escape");
}

/* A character of a class, or a class in it. */
static rlx_status read_member(struct reading *r, struct draft *f, bool *single, uint32_t *ch)
{
    size_t bytes;

    if (accept(r, "\\"))
        return read_escape(r, f, single, ch);
    if (!more(r))
        return bad(r, "a class that does not end");
    *ch = utf8_next(r->s.ptr + r->at, r->s.len - r->at, &bytes);
    r->at += bytes;
    *single = true;
    return RLX_OK;
}

static rlx_status read_class(struct reading *r, const struct pattern_class **out);

static rlx_status read_nested(struct reading *r, const struct pattern_class **out)
{
    if (++r->depth > MOST_DEPTH)
        return unsupported(r, "classes nested too deeply");
    rlx_status s = read_class(r, out);
    r->depth--;
    return s;
}

/* at: after the bracket. */
static rlx_status read_class(struct reading *r, const struct pattern_class **out)
{
    struct draft f = {.c = {.negated = accept(r, "^")}};

    for (bool first = true; first || !accept(r, "]"); first = false) {
        uint32_t ch = 0, last = 0;
        bool single, range;
        if (accept(r, "&&[")) {
            TRY(read_nested(r, &f.c.also));
            continue;
        }
        if (peek(r) == '[') {
            struct pattern_class *part = arena_new(r->arena, struct pattern_class);
            const struct pattern_class *inner;
            r->at++;
            TRY(read_nested(r, &inner));
            if (!part)
                return diag_no_memory(r->d, sizeof *part);
            *part = *inner;
            part->next = f.c.part;
            f.c.part = part;
            continue;
        }
        TRY(read_member(r, &f, &single, &ch));
        if (!single)
            continue;
        last = ch;
        range = peek(r) == '-' && r->at + 1 < r->s.len && r->s.ptr[r->at + 1] != ']';
        if (range) {
            r->at++;
            TRY(read_member(r, &f, &single, &last));
            if (!single)
                return unsupported(r, "a range that ends in a class");
        }
        TRY(add_range(r, &f, ch, last));
    }
    *out = finish(r, &f);
    return *out ? RLX_OK : RLX_ERROR_MEMORY;
}

/* A class of any spelling. */
static rlx_status read_atom(struct reading *r, const struct pattern_class **out)
{
    struct draft f = {0};
    bool single;
    uint32_t ch = 0;

    if (accept(r, "["))
        return read_class(r, out);
    if (accept(r, ".")) { /* anything but the end of a line */
        f.c.negated = true;
        TRY(add_range(r, &f, '\n', '\n'));
    } else {
        if (strchr("()*+?{}^", peek(r)) && peek(r))
            return unsupported(r, "a construct that is not known");
        TRY(read_member(r, &f, &single, &ch));
        if (single)
            TRY(add_range(r, &f, ch, ch));
    }
    *out = finish(r, &f);
    return *out ? RLX_OK : RLX_ERROR_MEMORY;
}

/* ---- items ------------------------------------------------------------------------------- */

static rlx_status read_count(struct reading *r, uint32_t *out)
{
    uint32_t v = 0;
    size_t from = r->at;

    for (; peek(r) >= '0' && peek(r) <= '9' && v <= MOST_COUNT; r->at++)
        v = v * 10 + (uint32_t)(peek(r) - '0');
    if (r->at == from || v > MOST_COUNT)
        return unsupported(r, "no count up to 4096");
    *out = v;
    return RLX_OK;
}

static rlx_status read_quantifier(struct reading *r, struct pattern_item *it)
{
    it->min = it->max = 1;
    if (accept(r, "?"))
        it->min = 0;
    else if (accept(r, "*"))
        it->min = 0, it->max = PATTERN_MANY;
    else if (accept(r, "+"))
        it->max = PATTERN_MANY;
    else if (accept(r, "{")) {
        TRY(read_count(r, &it->min));
        it->max = it->min;
        if (accept(r, ",")) {
            it->max = PATTERN_MANY;
            if (peek(r) != '}')
                TRY(read_count(r, &it->max));
        }
        if (!accept(r, "}") || it->max < it->min || !it->max)
            return bad(r, "no count like {1,3}");
    } else
        return RLX_OK;
    it->possessive = accept(r, "+");
    return peek(r) == '?' ? unsupported(r, "a quantifier that is not greedy") : RLX_OK;
}

/* Adds a word; [sS] in one stands for its first letter, in either case. */
static rlx_status read_word(struct reading *r, struct pattern_item *it, rlx_str *word)
{
    char text[64];
    size_t len = 0;

    for (; more(r) && peek(r) != '|' && peek(r) != ')'; r->at++) {
        char c = peek(r);
        if (c == '[' && r->at + 3 < r->s.len && r->s.ptr[r->at + 3] == ']' &&
            (r->s.ptr[r->at + 1] ^ 0x20) == r->s.ptr[r->at + 2]) {
            c = r->s.ptr[r->at + 1];
            it->fold = true;
            r->at += 3;
        } else if (c == '\\' || c == '[' || c == '(' || c == '.' || c == '*' || c == '+' ||
                   c == '?' || c == '{' || c == '$' || c == '^')
            return unsupported(r, "a group of more than words");
        if (len == sizeof text)
            return unsupported(r, "a word of more than 64 bytes");
        text[len++] = c >= 'A' && c <= 'Z' && it->fold ? (char)(c - 'A' + 'a') : c;
    }
    *word = arena_str(r->arena, (rlx_str){text, len});
    if (!word->ptr)
        return diag_no_memory(r->d, len);
    return len ? RLX_OK : unsupported(r, "an empty word");
}

/* at: after "(?i:" or "(?:". */
static rlx_status read_words(struct reading *r, struct pattern_item *it)
{
    rlx_str word[MOST_WORDS];

    it->kind = PATTERN_WORDS;
    do {
        if (it->word_count == MOST_WORDS)
            return unsupported(r, "a group of more than 32 words");
        TRY(read_word(r, it, &word[it->word_count++]));
    } while (accept(r, "|"));
    if (!accept(r, ")"))
        return bad(r, "a group that does not end");
    rlx_str *kept = arena_array(r->arena, rlx_str, it->word_count);
    if (!kept)
        return diag_no_memory(r->d, sizeof word);
    memcpy(kept, word, it->word_count * sizeof *kept);
    it->word = kept;
    TRY(read_quantifier(r, it));
    return it->max > 1 ? unsupported(r, "a group that repeats") : RLX_OK;
}

static rlx_status read_item(struct reading *r, struct pattern_item *it)
{
    *it = (struct pattern_item){.kind = PATTERN_CLASS, .min = 1, .max = 1};
    if ((it->fold = accept(r, "(?i:")) || accept(r, "(?:"))
        return read_words(r, it);
    if (accept(r, "\\p{Joined}")) {
        it->kind = PATTERN_JOINED;
        return RLX_OK;
    }
    if (accept(r, "$")) {
        it->kind = PATTERN_END;
        return RLX_OK;
    }
    bool not = accept(r, "(?!");
    if (not || accept(r, "(?=")) {
        it->kind = not ? PATTERN_NOT_AHEAD : PATTERN_AHEAD;
        TRY(read_atom(r, &it->cls));
        return accept(r, ")") ? RLX_OK : unsupported(r, "looking ahead for more than a class");
    }
    TRY(read_atom(r, &it->cls));
    return read_quantifier(r, it);
}

/* ---- alternatives ------------------------------------------------------------------------ */

static rlx_status read_alternative(struct reading *r, struct pattern_alternative *out)
{
    struct pattern_item item[MOST_ITEMS];
    size_t count = 0;

    while (more(r) && peek(r) != '|') {
        if (count == MOST_ITEMS)
            return unsupported(r, "more than 64 items");
        TRY(read_item(r, &item[count++]));
    }
    struct pattern_item *kept = arena_array(r->arena, struct pattern_item, count ? count : 1);
    if (!kept)
        return diag_no_memory(r->d, count * sizeof *kept);
    memcpy(kept, item, count * sizeof *kept);
    *out = (struct pattern_alternative){kept, count};
    return count ? RLX_OK : unsupported(r, "an alternative that is empty");
}

static void mark_words(struct pattern *p, uint32_t bit, const struct pattern_item *it)
{
    for (size_t i = 0; i < it->word_count; i++) {
        unsigned char c = (unsigned char)it->word[i].ptr[0];
        p->first[c] |= bit;
        if (it->fold && c >= 'a' && c <= 'z')
            p->first[c - 'a' + 'A'] |= bit;
    }
}

/* By which bytes may a match of alternative i begin? */
static void mark_first(struct pattern *p, size_t i)
{
    const struct pattern_alternative *a = &p->alternative[i];
    const uint32_t bit = UINT32_C(1) << i;

    for (size_t k = 0; k < a->count; k++) {
        const struct pattern_item *it = &a->item[k];
        if (it->kind == PATTERN_CLASS) {
            for (uint32_t b = 0; b < 256; b++)
                if (b >= 128 || pattern_class_has(it->cls, b))
                    p->first[b] |= bit;
        } else if (it->kind == PATTERN_WORDS)
            mark_words(p, bit, it);
        else if (it->kind == PATTERN_JOINED)
            for (uint32_t b = 0; b < 256; b++)
                p->first[b] |= bit;
        else
            continue; /* takes nothing */
        if (it->min)
            return;
    }
}

rlx_status pattern_parse(struct pattern *p, rlx_str source, struct arena *a, struct diag *d)
{
    struct reading r = {.s = source, .arena = a, .d = d};
    struct pattern_alternative list[PATTERN_MOST];

    *p = (struct pattern){0};
    do {
        if (p->count == PATTERN_MOST)
            return unsupported(&r, "more than 32 alternatives");
        TRY(read_alternative(&r, &list[p->count++]));
    } while (accept(&r, "|"));
    struct pattern_alternative *kept = arena_array(a, struct pattern_alternative, p->count);
    if (!kept)
        return diag_no_memory(d, p->count * sizeof *kept);
    memcpy(kept, list, p->count * sizeof *kept);
    p->alternative = kept;
    for (size_t i = 0; i < p->count; i++)
        mark_first(p, i);
    return RLX_OK;
}
