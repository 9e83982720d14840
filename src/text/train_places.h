/* train_places.h: the words of a text as symbols, and which pairs of them are neighbours where. */
#ifndef TEXT_TRAIN_PLACES_H
#define TEXT_TRAIN_PLACES_H

#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"

struct places {
    const rlx_allocator *mem;
    VEC(struct place_symbol) symbol;
    VEC(uint64_t) count; /* of words, by number */
    VEC(struct place_pair) pair;
    struct map by_symbols;
    VEC(struct place_rank) heap;
    VEC(uint32_t) touched; /* pairs that a merge made, or made more frequent */
    uint32_t best;         /* the pair that places_best told */
};

void places_init(struct places *p, const rlx_allocator *mem);
void places_free(struct places *p);
/* A word that comes that often; its symbols are its bytes. */
rlx_status places_add_word(struct places *p, rlx_str word, uint64_t count, struct diag *d);
rlx_status places_begin(struct places *p, struct diag *d); /* after the last word */
/* The pair that comes most often, at least `least` times; of several, the lowest left, then the
 * lowest right. false: there is none. */
bool places_best(struct places *p, uint64_t least, uint32_t *left, uint32_t *right);
/* That pair becomes one symbol wherever it is. */
rlx_status places_merge(struct places *p, uint32_t symbol, struct diag *d);

#endif
