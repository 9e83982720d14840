/* pattern_impl.h: what pattern_parse.c makes and pattern.c matches. */
#ifndef TEXT_PATTERN_IMPL_H
#define TEXT_PATTERN_IMPL_H

#include "text/pattern.h"
#include "text/unicode.h"

struct pattern_range {
    uint32_t first, last;
};

/* A character is in it if a category, a property or a range says so; negated: if none does. */
struct pattern_class {
    uint64_t ascii[2]; /* the answer for those, bit by bit */
    uint32_t categories;
    bool space, han, negated;
    const struct pattern_range *range;
    size_t range_count;
    const struct pattern_class *part; /* classes inside this one, which add to it; a list */
    const struct pattern_class *next; /* in such a list */
    const struct pattern_class *also; /* after &&: it has to be in this one too */
};

enum pattern_kind {
    PATTERN_CLASS,     /* min to max characters of a class */
    PATTERN_WORDS,     /* one of several words; min 0: or nothing */
    PATTERN_JOINED,    /* words that single spaces join */
    PATTERN_AHEAD,     /* a character of the class comes next */
    PATTERN_NOT_AHEAD, /* none does */
    PATTERN_END,       /* nothing comes next */
};
#define PATTERN_MANY UINT32_MAX
struct pattern_item {
    enum pattern_kind kind;
    bool possessive; /* gives nothing back */
    bool fold;       /* words: in lower case here, in either in the text */
    uint32_t min, max;
    const struct pattern_class *cls;
    const rlx_str *word;
    size_t word_count;
};

bool pattern_class_has_slow(const struct pattern_class *c, uint32_t ch);
static inline bool pattern_class_has(const struct pattern_class *c, uint32_t ch)
{
    return ch < 128 ? c->ascii[ch >> 6] >> (ch & 63) & 1 : pattern_class_has_slow(c, ch);
}

#endif
