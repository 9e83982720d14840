/* gbnf.c: reads GBNF, the notation of grammars that llama.cpp made common:
 *
 *     rule     name ::= alternatives, to the end of the line
 *     choice   a | b
 *     item     "text"  [a-z0-9_]  [^"]  .  name  (group)
 *     how often  item? item* item+ item{n} item{n,} item{n,m}
 *
 * A line goes on after ::= and |, and inside parentheses. # begins a comment. */
#include <string.h>

#include "grammar/program.h"
#include "text/unicode.h"

struct reader {
    struct rlx_grammar *g;
    struct gram_draft *draft;
    rlx_str text;
    size_t pos;
    size_t depth;            /* parentheses open */
    size_t items;            /* so far */
    struct gram_chars chars; /* scratch */
    struct diag *d;
};

/* ---- where we are ------------------------------------------------------------------------ */

static void place_of(const struct reader *r, size_t pos, uint32_t *line, uint32_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < pos; i++) {
        if (r->text.ptr[i] == '\n') {
            ++*line;
            *column = 1;
        } else
            *column += ((unsigned char)r->text.ptr[i] & 0xc0) != 0x80;
    }
}

#define bad_at(r, pos_, ...) bad_with((r), (pos_), RLX_ERROR_FORMAT, __VA_ARGS__)
#define bad_with(r, pos_, status, fmt, ...)                                                   \
    (__extension__({                                                                          \
        uint32_t line_, column_;                                                              \
        place_of((r), (pos_), &line_, &column_);                                              \
        diag_fail((r)->d, (status), "line %u, column %u: " fmt, line_, column_, __VA_ARGS__); \
    }))

/* 0: the end of the text. */
static char peek(const struct reader *r)
{
    return r->pos < r->text.len ? r->text.ptr[r->pos] : 0;
}

static bool take(struct reader *r, char c)
{
    if (r->pos == r->text.len || peek(r) != c)
        return false;
    r->pos++;
    return true;
}

/* What is there, for a message. */
static rlx_str here(const struct reader *r)
{
    rlx_str rest = {r->text.ptr + r->pos, r->text.len - r->pos};

    if (rest.len == 0)
        return STR("the end");
    if (rest.ptr[0] == '\n')
        return STR("the end of the line");
    rest.len = str_utf8_step(rest) ? str_utf8_step(rest) : 1;
    return rest;
}

/* Spaces and comments; lines: ends of lines too. */
static void skip_space(struct reader *r, bool lines)
{
    for (char c; r->pos < r->text.len; r->pos++) {
        c = peek(r);
        if (c == '#') {
            while (r->pos < r->text.len && peek(r) != '\n')
                r->pos++;
            if (r->pos == r->text.len)
                return;
            c = '\n';
        }
        if (c != ' ' && c != '\t' && c != '\r' && !(lines && c == '\n'))
            return;
    }
}

/* ---- names ------------------------------------------------------------------------------- */

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static rlx_str take_name(struct reader *r)
{
    const size_t from = r->pos;

    while (in_name(peek(r)))
        r->pos++;
    return (rlx_str){r->text.ptr + from, r->pos - from};
}

static bool same_name(const void *owner, uint32_t i, const void *key)
{
    return str_eq(((const struct gram_draft *)owner)->rule.at[i].name, *(const rlx_str *)key);
}

/* The number of the rule, which is made if it is not there. */
static rlx_status rule_of(struct reader *r, rlx_str name, size_t pos, uint32_t *out)
{
    struct gram_draft *f = r->draft;
    const uint64_t hash = hash_bytes(name.ptr, name.len);
    const struct gram_draft_rule rule = {.name = name, .pos = pos};

    if (map_find(&f->by_name, hash, same_name, f, &name, out))
        return RLX_OK;
    if (f->rule.len >= GRAM_MOST_RULES)
        return bad_with(r, pos, RLX_ERROR_LIMIT, "there are more than %d rules", GRAM_MOST_RULES);
    if (!vec_room(r->g->mem, &f->rule) || !map_add(&f->by_name, hash, (uint32_t)f->rule.len))
        return diag_no_memory(r->d, sizeof rule);
    *out = (uint32_t)f->rule.len;
    f->rule.at[f->rule.len++] = rule;
    return RLX_OK;
}

/* ---- characters -------------------------------------------------------------------------- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static rlx_status take_hex(struct reader *r, int digits, uint32_t *out)
{
    const size_t start = r->pos - 2;

    *out = 0;
    for (int i = 0; i < digits; i++, r->pos++) {
        int v = hex(peek(r));
        if (v < 0)
            return bad_at(r, start, "\"\\%c\" is followed by %d hexadecimal digits",
                          r->text.ptr[start + 1], digits);
        *out = *out << 4 | (uint32_t)v;
    }
    if (*out > GRAM_LAST_CHAR || (*out >= 0xd800 && *out < 0xe000))
        return bad_at(r, start, "there is no character U+%04X", *out);
    return RLX_OK;
}

/* A character of a literal or a class. */
static rlx_status take_char(struct reader *r, uint32_t *out)
{
    static const char from[] = "ntr\\\"[]", to[] = "\n\t\r\\\"[]";
    const size_t start = r->pos;
    size_t step;

    if (!take(r, '\\')) {
        rlx_str rest = {r->text.ptr + r->pos, r->text.len - r->pos};
        if (str_utf8_step(rest) == 0)
            return bad_at(r, start, "%s", "the text is not UTF-8");
        *out = utf8_next(rest.ptr, rest.len, &step);
        r->pos += step;
        return RLX_OK;
    }
    const char c = peek(r), *known = c ? strchr(from, c) : NULL;
    r->pos += c != 0;
    switch (c) {
    case 'x': return take_hex(r, 2, out);
    case 'u': return take_hex(r, 4, out);
    case 'U': return take_hex(r, 8, out);
    default: break;
    }
    if (!known)
        return bad_at(r, start, "%s",
                      "an unknown escape: there are \\n \\t \\r \\\\ \\\" \\[ \\] "
                      "\\xHH \\uHHHH \\UHHHHHHHH");
    *out = (unsigned char)to[known - from];
    return RLX_OK;
}

static rlx_status new_item(struct reader *r, enum gram_item_kind kind, uint32_t value,
                           struct gram_item **out)
{
    if (++r->items > GRAM_MOST_NODES)
        return bad_with(r, r->pos, RLX_ERROR_LIMIT, "the grammar has more than %d symbols",
                        GRAM_MOST_NODES);
    struct gram_item *item = arena_new(&r->draft->arena, struct gram_item);
    if (!item)
        return diag_no_memory(r->d, sizeof *item);
    *item = (struct gram_item){.kind = kind, .value = value, .min = 1, .max = 1};
    *out = item;
    return RLX_OK;
}

/* An item of the characters in scratch. */
static rlx_status chars_item(struct reader *r, bool negate, size_t pos, struct gram_item **out)
{
    uint32_t state;

    if (!gram_chars_finish(&r->chars, negate))
        return diag_no_memory(r->d, sizeof state);
    if (r->chars.range.len == 0)
        return bad_at(r, pos, "%s", "this class has no character");
    TRY(gram_chars_state(r->g, &r->chars, &state, r->d));
    return new_item(r, GRAM_ITEM_CHAR, state, out);
}

static rlx_status add_range(struct reader *r, uint32_t lo, uint32_t hi)
{
    return gram_chars_add(&r->chars, lo, hi) ? RLX_OK : diag_no_memory(r->d, sizeof lo);
}

/* After the [ */
static rlx_status take_class(struct reader *r, struct gram_item **out)
{
    const size_t start = r->pos - 1;
    const bool negate = take(r, '^');

    r->chars.range.len = 0;
    while (!take(r, ']')) {
        uint32_t lo, hi;
        const size_t at = r->pos;
        if (r->pos == r->text.len || peek(r) == '\n')
            return bad_at(r, start, "%s", "this class has no end");
        TRY(take_char(r, &lo));
        hi = lo;
        if (peek(r) == '-' && r->pos + 1 < r->text.len && r->text.ptr[r->pos + 1] != ']') {
            r->pos++;
            TRY(take_char(r, &hi));
        }
        if (lo > hi)
            return bad_at(r, at, "%s", "this range ends before it begins");
        TRY(add_range(r, lo, hi));
    }
    return chars_item(r, negate, start, out);
}

/* After the first quote: a group of its characters. */
static rlx_status take_literal(struct reader *r, struct gram_item **out)
{
    const size_t start = r->pos - 1;
    struct gram_item *first = NULL, **end = &first;
    uint32_t c;

    while (!take(r, '"')) {
        if (r->pos == r->text.len || peek(r) == '\n')
            return bad_at(r, start, "%s", "this text has no closing quote");
        TRY(take_char(r, &c));
        r->chars.range.len = 0;
        TRY(add_range(r, c, c));
        TRY(chars_item(r, false, start, end));
        end = &(*end)->next;
    }
    if (first && !first->next) {
        *out = first;
        return RLX_OK;
    }
    struct gram_alt *alt = arena_new(&r->draft->arena, struct gram_alt);
    if (!alt)
        return diag_no_memory(r->d, sizeof *alt);
    alt->item = first;
    TRY(new_item(r, GRAM_ITEM_GROUP, 0, out));
    (*out)->alt = alt;
    return RLX_OK;
}

/* ---- items ------------------------------------------------------------------------------- */

static rlx_status take_count(struct reader *r, uint32_t *out)
{
    const size_t start = r->pos;
    uint32_t v = 0;

    for (; peek(r) >= '0' && peek(r) <= '9'; r->pos++)
        if (v <= GRAM_MOST_REPEATS)
            v = v * 10 + (uint32_t)(peek(r) - '0');
    if (r->pos == start)
        return bad_at(r, start, "a count was expected, not '%.*s'", STR_ARG(here(r)));
    if (v > GRAM_MOST_REPEATS)
        return bad_with(r, start, RLX_ERROR_LIMIT, "at most %d repetitions may be counted",
                        GRAM_MOST_REPEATS);
    *out = v;
    return RLX_OK;
}

/* After the { */
static rlx_status take_counts(struct reader *r, struct gram_item *item)
{
    const size_t start = r->pos - 1;

    skip_space(r, r->depth > 0);
    TRY(take_count(r, &item->min));
    item->max = item->min;
    skip_space(r, r->depth > 0);
    if (take(r, ',')) {
        item->max = GRAM_NO_MOST;
        skip_space(r, r->depth > 0);
        if (peek(r) != '}')
            TRY(take_count(r, &item->max));
        skip_space(r, r->depth > 0);
    }
    if (!take(r, '}'))
        return bad_at(r, r->pos, "a } was expected, not '%.*s'", STR_ARG(here(r)));
    if (item->max < item->min)
        return bad_at(r, start, "from %u to %u times is never", item->min, item->max);
    return RLX_OK;
}

static rlx_status take_repeats(struct reader *r, struct gram_item *item)
{
    if (take(r, '*'))
        item->min = 0, item->max = GRAM_NO_MOST;
    else if (take(r, '+'))
        item->max = GRAM_NO_MOST;
    else if (take(r, '?'))
        item->min = 0;
    else if (take(r, '{'))
        TRY(take_counts(r, item));
    else
        return RLX_OK;
    skip_space(r, r->depth > 0);
    if (peek(r) && strchr("*+?{", peek(r)))
        return bad_at(r, r->pos, "'%c' after a repetition: put that into parentheses", peek(r));
    return RLX_OK;
}

static rlx_status take_alternatives(struct reader *r, struct gram_alt **out);

static rlx_status take_group(struct reader *r, struct gram_item **out)
{
    const size_t start = r->pos - 1;

    if (++r->depth > GRAM_MOST_DEPTH)
        return bad_with(r, start, RLX_ERROR_LIMIT, "more than %d parentheses are open",
                        GRAM_MOST_DEPTH);
    skip_space(r, true);
    TRY(new_item(r, GRAM_ITEM_GROUP, 0, out));
    TRY(take_alternatives(r, &(*out)->alt));
    if (!take(r, ')'))
        return bad_at(r, r->pos, "a ) was expected, not '%.*s'", STR_ARG(here(r)));
    r->depth--;
    return RLX_OK;
}

/* NULL: none begins here. */
static rlx_status take_item(struct reader *r, struct gram_item **out)
{
    const size_t start = r->pos;
    uint32_t rule;

    *out = NULL;
    if (take(r, '"'))
        TRY(take_literal(r, out));
    else if (take(r, '['))
        TRY(take_class(r, out));
    else if (take(r, '('))
        TRY(take_group(r, out));
    else if (take(r, '.')) {
        r->chars.range.len = 0;
        TRY(chars_item(r, true, start, out));
    } else if (in_name(peek(r))) {
        TRY(rule_of(r, take_name(r), start, &rule));
        TRY(new_item(r, GRAM_ITEM_RULE, rule, out));
    } else if (peek(r) == '<' || peek(r) == '!')
        return bad_with(r, start, RLX_ERROR_UNSUPPORTED, "%s",
                        "tokens by their text or number, as <name>, are not known");
    else
        return RLX_OK;
    skip_space(r, r->depth > 0);
    return take_repeats(r, *out);
}

/* Until something that is no item comes; of none is the empty text. */
static rlx_status take_alternatives(struct reader *r, struct gram_alt **out)
{
    for (;;) {
        struct gram_alt *alt = arena_new(&r->draft->arena, struct gram_alt);
        if (!alt)
            return diag_no_memory(r->d, sizeof *alt);
        *out = alt;
        struct gram_item **end = &alt->item;
        for (;;) {
            TRY(take_item(r, end));
            if (!*end)
                break;
            end = &(*end)->next;
        }
        if (!take(r, '|'))
            return RLX_OK;
        skip_space(r, true);
        out = &alt->next;
    }
}

/* ---- rules ------------------------------------------------------------------------------- */

static rlx_status take_rule(struct reader *r)
{
    const size_t start = r->pos;
    const rlx_str name = take_name(r);
    uint32_t number;

    if (!name.len)
        return bad_at(r, start, "the name of a rule was expected, not '%.*s'", STR_ARG(here(r)));
    skip_space(r, false);
    if (!str_starts((rlx_str){r->text.ptr + r->pos, r->text.len - r->pos}, STR("::=")))
        return bad_at(r, r->pos, "\"::=\" was expected after \"%.*s\", not '%.*s'", STR_ARG(name),
                      STR_ARG(here(r)));
    r->pos += 3;
    TRY(rule_of(r, name, start, &number));
    struct gram_draft_rule *rule = &r->draft->rule.at[number];
    if (rule->defined)
        return bad_at(r, start, "the rule \"%.*s\" is defined a second time", STR_ARG(name));
    rule->defined = true;
    skip_space(r, true);
    struct gram_alt *alt;
    TRY(take_alternatives(r, &alt));
    r->draft->rule.at[number].alt = alt;
    if (r->pos < r->text.len && peek(r) != '\n')
        return bad_at(r, r->pos, "'%.*s' may not stand here", STR_ARG(here(r)));
    skip_space(r, true);
    return RLX_OK;
}

static rlx_status all_defined(struct reader *r, rlx_str root)
{
    for (size_t i = 0; i < r->draft->rule.len; i++) {
        const struct gram_draft_rule *rule = &r->draft->rule.at[i];
        if (!rule->defined)
            return bad_at(r, rule->pos, "there is no rule \"%.*s\"", STR_ARG(rule->name));
    }
    const uint64_t hash = hash_bytes(root.ptr, root.len);
    if (!map_find(&r->draft->by_name, hash, same_name, r->draft, &root, &r->g->root))
        return diag_fail(r->d, RLX_ERROR_FORMAT, "there is no rule \"%.*s\" to begin with",
                         STR_ARG(root));
    return RLX_OK;
}

static rlx_status read_all(struct reader *r, rlx_str root)
{
    skip_space(r, true);
    while (r->pos < r->text.len)
        TRY(take_rule(r));
    TRY(all_defined(r, root));
    TRY(gram_compile_rules(r->g, r->draft, r->d));
    return gram_check_rules(r->g, r->d);
}

static rlx_status build(struct rlx_grammar *g, rlx_str root, struct diag *d)
{
    struct gram_draft draft = {0};
    struct reader r = {.g = g, .draft = &draft, .text = g->text, .chars.mem = g->mem, .d = d};

    arena_init(&draft.arena, g->mem);
    map_init(&draft.by_name, g->mem);
    rlx_status s = read_all(&r, root.len ? root : STR("root"));
    gram_byte_classes(g);
    vec_free(g->mem, &r.chars.range);
    vec_free(g->mem, &draft.rule);
    map_free(&draft.by_name);
    arena_free(&draft.arena);
    return s;
}

/* ---- the grammar ------------------------------------------------------------------------- */

rlx_status gram_parse(rlx_str text, rlx_str root, const rlx_allocator *mem,
                      struct rlx_grammar **out, struct diag *d)
{
    if (text.len > GRAM_MOST_TEXT)
        return diag_fail(d, RLX_ERROR_LIMIT, "the grammar has %zu bytes, and may have %d", text.len,
                         GRAM_MOST_TEXT);
    struct rlx_grammar *g = mem_alloc(mem, sizeof *g);
    if (!g)
        return diag_no_memory(d, sizeof *g);
    g->mem = mem;
    atomic_init(&g->refs, 1);
    arena_init(&g->arena, mem);
    map_init(&g->by_bytes, mem);
    g->text = arena_str(&g->arena, text);
    rlx_status s = g->text.ptr ? build(g, root, d) : diag_no_memory(d, text.len);
    if (s != RLX_OK)
        gram_release(g);
    else
        *out = g;
    return s;
}

struct rlx_grammar *gram_retain(struct rlx_grammar *g)
{
    atomic_fetch_add(&g->refs, 1);
    return g;
}

void gram_release(struct rlx_grammar *g)
{
    if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
        return;
    const rlx_allocator *mem = g->mem;
    vec_free(mem, &g->node);
    vec_free(mem, &g->rule);
    vec_free(mem, &g->byte_state);
    vec_free(mem, &g->bytes);
    map_free(&g->by_bytes);
    arena_free(&g->arena);
    mem_free(mem, g, sizeof *g);
}
