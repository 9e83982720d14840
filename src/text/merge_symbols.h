/* merge_symbols.h: the symbols of a word, of which neighbours are merged: the pair of the lowest
 * rank first, of equal ones the leftmost. */
#ifndef TEXT_MERGE_SYMBOLS_H
#define TEXT_MERGE_SYMBOLS_H

#include "text/tokenizer.h"

struct merge_node {
    uint32_t symbol;
    uint32_t at, len;    /* bytes of the word; len 0: merged with the one before */
    uint32_t next, prev; /* TOK_NONE: the end */
};

struct merge_candidate { /* a pair that may be merged; no longer, if its symbols have changed */
    uint32_t rank, node;
    uint32_t left, right;
    uint32_t result;
};

/* The rank of two neighbours, and the symbol they become; TOK_NONE: they are not merged. */
typedef uint32_t (*merge_rank_fn)(const struct tok_run *r, const struct merge_node *left,
                                  const struct merge_node *right, uint32_t *result);

rlx_status merge_begin(struct tok_run *r, rlx_str word); /* room for one symbol per byte */
void merge_add(struct tok_run *r, uint32_t symbol, size_t at, size_t len);
/* Afterwards symbols are in r->node, from 0 on by next. */
rlx_status merge_all(struct tok_run *r, merge_rank_fn rank);

#endif
