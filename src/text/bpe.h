/* bpe.h: what merging works on. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H

#include "text/tokenizer.h"

struct bpe_node { /* a symbol of the word that is being merged */
    uint32_t symbol;
    uint32_t at, len;    /* bytes of the word */
    uint32_t next, prev; /* TOK_NONE: the end */
};

struct bpe_candidate { /* a pair that may be merged; no longer, if its symbols have changed */
    uint32_t rank, node;
    uint32_t left, right;
};

struct tok_word { /* a word that came before, where it stands in the text, and its ids in the output
                   */
    size_t at, ids;
    uint32_t len, count; /* len 0: none */
};

#endif
