/* trie.h: texts found by how they begin, as a sorted list that is narrowed byte by byte. */
#ifndef TEXT_TRIE_H
#define TEXT_TRIE_H

#include "base/diag.h"
#include "base/str.h"

struct trie {
    const rlx_allocator *mem;
    const rlx_str *text; /* the caller's, by number */
    uint32_t *order;     /* numbers, by text */
    size_t count;
    uint32_t first[257]; /* where texts that begin with byte b begin in order */
};

/* Of texts text[number[i]]; empty ones are left out. The list of texts stays the caller's. */
rlx_status trie_build(struct trie *t, const rlx_str *text, const uint32_t *number, size_t count,
                      const rlx_allocator *mem, struct diag *d);
void trie_free(struct trie *t);

/* All texts that s begins with, the shortest first:
 *     struct trie_walk w = trie_begin(t, s);
 *     while (trie_next(&w, &number)) ..   the text is s[0 .. w.depth) */
struct trie_walk {
    const struct trie *trie;
    rlx_str s;
    size_t depth;
    uint32_t lo, hi;
};
struct trie_walk trie_begin(const struct trie *t, rlx_str s);
bool trie_next(struct trie_walk *w, uint32_t *number);

#endif
