/* engine.h: a model's file opened on a device, and the sequences that use it. */
#ifndef LLM_ENGINE_H
#define LLM_ENGINE_H

#include "llm/adapter.h"
#include "llm/rotary.h"
#include "llm/spec.h"
#include "rlx/llm.h"

/* Of a model that gives vectors of texts: vectors.c. */
struct llm_vectors {
    rlx_session *session;
    float *cos[LLM_ROPES], *sin[LLM_ROPES]; /* of all positions */
    float *temper;                          /* likewise */
    int32_t *position;                      /* likewise */
};

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
    bool recurrent;     /* some layers have a state of fixed size */
    bool gives_vectors; /* instead of logits; then there are no sequences */
    int64_t vector_width;
    struct llm_vectors vectors;
};

struct rlx_sequence {
    rlx_llm *m;
    rlx_session *session;
    /* Room for all of the context: `count` tokens that were fed or chosen; what lies after them was
     * guessed, or is from before a rewind. The first `computed` are in the caches. */
    int32_t *id;
    size_t count, computed;
    bool spoiled;  /* a run failed, and may have left states of fixed size half changed */
    float *logits; /* row r is what comes after id[first + r] */
    size_t first, rows;
    size_t guessed, right;                  /* tokens so far */
    float *cos[LLM_ROPES], *sin[LLM_ROPES]; /* of a chunk */
    int32_t *position, *pick;               /* likewise; rows whose logits are wanted */
    float *temper;                          /* likewise */
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
#define LLM_LOGITS "logits"
#define LLM_VECTOR "vector"

/* runner.c: the graph that runs: tokens i32 [1, n], logits of the last one (or all), or a vector.
 */
rlx_status llm_make_model(rlx_llm *m, struct diag *d);
const char *llm_table_name(int rope, bool sine); /* of the inputs with cosines and sines */
/* Computes the tokens that are not in the caches yet, and the logits after the last one. */
rlx_status llm_compute(rlx_sequence *s, struct diag *d);
/* Everything that was read is forgotten; a failure leaves what there is to be forgotten. */
rlx_status llm_clear_states(rlx_sequence *s, struct diag *d);
size_t llm_most_rows(const rlx_llm *m); /* of logits that one run can give */
size_t llm_table_count(const struct llm_turns *t, int64_t rows); /* numbers in such an input */
/* Factors of queries at positions first to first + count - 1. */
void llm_temper_fill(const struct llm_spec *s, int64_t first, int64_t count, float *out);

/* What a run is given. */
enum { LLM_MAX_INPUTS = 3 + 2 * LLM_ROPES + 2 };
struct llm_inputs {
    rlx_binding at[LLM_MAX_INPUTS];
    size_t count;
};
void llm_input_add(struct llm_inputs *in, const char *name, rlx_dtype dtype, rlx_list shape,
                   const void *data);
/* LIMIT, INDEX: tokens that cannot come after `first` others. */
rlx_status llm_check_tokens(const rlx_llm *m, size_t first, const int32_t *id, size_t count,
                            struct diag *d);

/* ---- vectors.c ---- */
/* AUTO becomes what the file says, or the mean. */
rlx_status llm_settle_pooling(const struct llm_spec *s, rlx_llm_pooling *how, struct diag *d);
bool llm_only_vectors(const struct llm_spec *s); /* the model cannot go on with a text */
int64_t llm_vector_width(const rlx_weights *w, const struct llm_spec *s);
rlx_status llm_vectors_open(rlx_llm *m, struct diag *d); /* once the model is made */
void llm_vectors_close(rlx_llm *m);

#endif
