/* engine.h: a model's file opened on a device, and the sequences that use it. */
#ifndef LLM_ENGINE_H
#define LLM_ENGINE_H

#include "llm/adapter.h"
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
    struct llm_adapter *adapters; /* desc.adapter_count of them */
    rlx_llm_desc desc;            /* with defaults in place */
    rlx_model *model;
};

struct rlx_sequence {
    rlx_llm *m;
    rlx_session *session;
    /* Room for all of the context: `count` tokens that were fed or chosen; what lies after them was
     * guessed, or is from before a rewind. The first `computed` are in the caches. */
    int32_t *id;
    size_t count, computed;
    float *logits; /* row r is what comes after id[first + r] */
    size_t first, rows;
    size_t guessed, right;                  /* tokens so far */
    float *cos[LLM_ROPES], *sin[LLM_ROPES]; /* of a chunk */
    int32_t *position, *pick; /* likewise; rows whose logits are wanted */
    float *temper;            /* likewise */
};

/* Names of the graph's leaves and symbols. */
#define LLM_TOKENS "tokens"
#define LLM_AT "at"
#define LLM_ROWS "n"
#define LLM_LENGTH "length"
#define LLM_POSITIONS "positions"
#define LLM_PICK "pick"
#define LLM_PICKED "picked"
#define LLM_TEMPER "temper"

/* runner.c: the graph that runs: tokens i32 [1, n], logits of the last one (or all). */
rlx_status llm_make_model(rlx_llm *m, struct diag *d);
const char *llm_table_name(int rope, bool sine); /* of the inputs with cosines and sines */
/* Computes the tokens that are not in the caches yet, and the logits after the last one. */
rlx_status llm_compute(rlx_sequence *s, struct diag *d);
size_t llm_most_rows(const rlx_llm *m); /* of logits that one run can give */
size_t llm_table_count(const struct llm_turns *t, int64_t rows); /* numbers in such an input */

#endif
