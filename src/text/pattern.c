/* pattern.c: matches patterns. Items are tried from left to right; one that took several characters
 * gives them back one by one when what follows does not match. */
#include "text/pattern.h"

#include <string.h>

#include "text/pattern_impl.h"

struct matching {
    const char *text;
    size_t len;
    struct pattern_effort *effort;
};

/* ---- characters -------------------------------------------------------------------------- */

bool pattern_class_has_slow(const struct pattern_class *c, uint32_t ch)
{
    bool in = (c->categories && (c->categories & unicode_category_bit(ch))) ||
              (c->space && unicode_is_space(ch)) || (c->han && unicode_is_han(ch));

    for (size_t i = 0; !in && i < c->range_count; i++)
        in = ch >= c->range[i].first && ch <= c->range[i].last;
    for (const struct pattern_class *p = c->part; !in && p; p = p->next)
        in = pattern_class_has_slow(p, ch);
    if (in && c->also)
        in = pattern_class_has_slow(c->also, ch);
    return in != c->negated;
}

/* Bytes of the character at `at` if it is of the class; 0: it is not, or the text ends. */
static inline size_t take(const struct matching *m, const struct pattern_class *c, size_t at)
{
    size_t bytes;

    if (at >= m->len)
        return 0;
    unsigned char b = (unsigned char)m->text[at];
    if (b < 128)
        return c->ascii[b >> 6] >> (b & 63) & 1;
    uint32_t ch = utf8_next(m->text + at, m->len - at, &bytes);
    return pattern_class_has(c, ch) ? bytes : 0;
}

/* Where the character that ends at `at` begins. */
static size_t back(const struct matching *m, size_t at)
{
    for (size_t k = 2; k <= 4 && k <= at && (m->text[at - 1] & 0x80); k++)
        if (str_utf8_step((rlx_str){m->text + at - k, k}) == k)
            return at - k;
    return at - 1;
}

/* ---- items ------------------------------------------------------------------------------- */

static size_t take_word(const struct matching *m, const struct pattern_item *it, size_t at)
{
    for (size_t i = 0; i < it->word_count; i++) {
        rlx_str w = it->word[i];
        if (w.len > m->len - at)
            continue;
        size_t k = 0;
        for (; k < w.len; k++) {
            char c = m->text[at + k];
            if (it->fold && c >= 'A' && c <= 'Z')
                c = (char)(c - 'A' + 'a');
            if (c != w.ptr[k])
                break;
        }
        if (k == w.len)
            return k;
    }
    return 0;
}

static const struct pattern_class letters = {.ascii = {0, UINT64_C(0x07fffffe07fffffe)},
                                             .categories = CATS_L};
static const struct pattern_class marks = {.categories = CATS_M};

/* Letters, each with marks, and single spaces between two of them. */
static size_t take_joined(const struct matching *m, size_t at)
{
    size_t end = at, bytes;

    while (end < m->len) {
        size_t letter = end;
        if (end > at && m->text[end] == ' ')
            letter++;
        if (!(bytes = take(m, &letters, letter)))
            break;
        end = letter + bytes;
        while ((bytes = take(m, &marks, end)))
            end += bytes;
    }
    return end - at;
}

static bool match(const struct matching *m, const struct pattern_item *it, size_t count, size_t at,
                  size_t *end);

/* Takes as many characters as there are, then fewer, until the rest matches. */
static bool match_class(const struct matching *m, const struct pattern_item *it, size_t count,
                        size_t at, size_t *end)
{
    struct pattern_effort *e = m->effort;
    const char *from = m->text + at;
    size_t to = at, bytes;
    uint32_t n = 0;

    if (e->failed == it && from >= e->from && from < e->to)
        return false;
    while (n < it->max && (bytes = take(m, it->cls, to))) {
        to += bytes;
        n++;
    }
    e->steps += n;
    if (n < it->min)
        return false;
    if (count == 1) {
        *end = to;
        return true;
    }
    const char *last = m->text + to;
    for (; !match(m, it + 1, count - 1, to, end); n--) {
        if (n == it->min || it->possessive || e->steps >= e->most) {
            if (it->max == PATTERN_MANY && !it->possessive && last - from > 16) {
                e->failed = it;
                e->from = from;
                e->to = last;
            }
            return false;
        }
        to = back(m, to);
    }
    return true;
}

static bool match(const struct matching *m, const struct pattern_item *it, size_t count, size_t at,
                  size_t *end)
{
    size_t bytes;

    m->effort->steps++;
    for (; count; it++, count--)
        switch (it->kind) {
        case PATTERN_CLASS:
            if (it->min != 1 || it->max != 1)
                return match_class(m, it, count, at, end);
            if (!(bytes = take(m, it->cls, at)))
                return false;
            at += bytes;
            break;
        case PATTERN_WORDS:
            bytes = take_word(m, it, at);
            if (!bytes && it->min)
                return false;
            if (bytes && !it->min && count > 1)
                return match(m, it + 1, count - 1, at + bytes, end) ||
                       match(m, it + 1, count - 1, at, end);
            at += bytes;
            break;
        case PATTERN_JOINED:
            if (!(bytes = take_joined(m, at)))
                return false;
            at += bytes;
            break;
        case PATTERN_AHEAD:
        case PATTERN_NOT_AHEAD:
            if ((take(m, it->cls, at) != 0) != (it->kind == PATTERN_AHEAD))
                return false;
            break;
        case PATTERN_END:
            if (at != m->len)
                return false;
            break;
        }
    *end = at;
    return true;
}

size_t pattern_match(const struct pattern *p, rlx_str s, size_t at, struct pattern_effort *e)
{
    const struct matching m = {s.ptr, s.len, e};

    for (uint32_t may = p->first[(unsigned char)s.ptr[at]]; may; may &= may - 1) {
        const struct pattern_alternative *a = &p->alternative[__builtin_ctz(may)];
        size_t end;
        if (e->steps < e->most && match(&m, a->item, a->count, at, &end) && end > at)
            return end - at;
    }
    return 0;
}
