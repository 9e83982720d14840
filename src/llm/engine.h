/* engine.h: a model's file opened on a device, and the sequences that use it. */
#ifndef LLM_ENGINE_H
#define LLM_ENGINE_H

#include "llm/rotary.h"
#include "llm/spec.h"
#include "rlx/llm.h"

struct rlx_llm {
    rlx_context *ctx;
    rlx_device *device; /* the caller's */
    rlx_weights *weights;
    rlx_tokenizer *tokenizer; /* NULL: the file has none */
    struct llm_spec spec;
    struct llm_turns turns[LLM_ROPES];
    bool turns_used[LLM_ROPES];
    rlx_llm_desc desc; /* with defaults in place */
    rlx_model *model;
};

struct rlx_sequence {
    rlx_llm *m;
    rlx_session *session;
    int32_t *id;     /* tokens: room for all of the context */
    size_t count;    /* of them */
    size_t computed; /* of them: in the caches */
    float *logits;   /* after the token computed last, or of all of the last feed */
    size_t rows;     /* of logits; 0: none yet */
    float *cos[LLM_ROPES], *sin[LLM_ROPES]; /* of a chunk */
    int32_t *position;                      /* likewise */
    float *temper;                          /* likewise */
};

/* Names of the graph's leaves and symbols. */
#define LLM_TOKENS "tokens"
#define LLM_AT "at"
#define LLM_ROWS "n"
#define LLM_LENGTH "length"
#define LLM_POSITIONS "positions"
#define LLM_TEMPER "temper"

/* runner.c: the graph that runs: tokens i32 [1, n], logits of the last one (or all). */
rlx_status llm_make_model(rlx_llm *m, struct diag *d);
const char *llm_table_name(int rope, bool sine); /* of the inputs with cosines and sines */
/* Computes the tokens that are not in the caches yet. */
rlx_status llm_compute(rlx_sequence *s, struct diag *d);
size_t llm_table_count(const struct llm_turns *t, int64_t rows); /* numbers in such an input */

#endif
