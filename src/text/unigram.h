/* unigram.h: what finding the best way works on. */
#ifndef TEXT_UNIGRAM_H
#define TEXT_UNIGRAM_H

#include "text/tokenizer.h"

struct unigram_end { /* of a token: how the best way gets there */
    double score;
    uint32_t begin, id; /* id TOK_NONE: a character that is no token */
    bool reached;
};

#endif
