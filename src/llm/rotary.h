/* rotary.h: how far channels are turned at a position, computed here in double precision and given
 * to the graph as tables. */
#ifndef LLM_ROTARY_H
#define LLM_ROTARY_H

#include "llm/spec.h"

struct llm_turns {
    int64_t pairs;    /* of channels; 0: nothing is turned */
    double *angle;    /* of each pair, from one position to the next */
    double magnitude; /* cos and sin are multiplied by it */
};

/* w: where divisors are; may be NULL where the rope names none. context: of a sequence. */
rlx_status llm_turns_make(const struct llm_rope *r, rlx_weights *w, int64_t context,
                          struct llm_turns *out, struct diag *d);
void llm_turns_free(struct llm_turns *t);
/* Rows of `pairs` numbers each, for positions first to first + count - 1. */
void llm_turns_fill(const struct llm_turns *t, int64_t first, int64_t count, float *cos_out,
                    float *sin_out);

#endif
