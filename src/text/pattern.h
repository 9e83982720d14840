/* pattern.h: patterns that cut text into words: the regular expressions that tokenizers are
 * published with, as far as those go.
 *
 *     alternatives    A|B|..: the first that matches wins
 *     items           classes with ? * + {n} {n,m} {n,}, greedy, possessive where a + follows
 *     classes         . x \s \S \d \r \n \t \xHH \uHHHH \x{H..} \p{L} \P{N} [..] [^..] [..&&[^..]]
 *     (?i:'s|'re)     one of several words, in either case; (?:..) in this one; ? may follow
 *     (?!C) (?=C) $   what comes next is not of class C, is, or is nothing
 *
 * \p takes a general category, a group of them (L, M, N, P, S, Z), Han, White_Space, or Joined:
 * words of letters and marks that single spaces join. What is not in this list is UNSUPPORTED. */
#ifndef TEXT_PATTERN_H
#define TEXT_PATTERN_H

#include "base/arena.h"
#include "base/diag.h"

struct pattern_item;
struct pattern_alternative {
    const struct pattern_item *item;
    size_t count;
};
struct pattern {
    const struct pattern_alternative *alternative;
    size_t count;
    uint32_t first[256]; /* by the first byte: bit i: alternative i may match */
};
enum { PATTERN_MOST = 32 }; /* alternatives */

rlx_status pattern_parse(struct pattern *p, rlx_str source, struct arena *a, struct diag *d);

/* What one text costs so far: a pattern from a stranger may try for ever. Starts with most alone.
 */
struct pattern_effort {
    uint64_t steps, most;
    /* This item took a run of characters that ends at `to`, and nothing that it gave back helped
     * what follows it. So it fails from wherever in the run it begins, from `from` on. */
    const struct pattern_item *failed;
    const char *from, *to;
};
/* Bytes of the match that begins at `at`; 0: there is none, or most was reached. */
size_t pattern_match(const struct pattern *p, rlx_str s, size_t at, struct pattern_effort *e);

#endif
