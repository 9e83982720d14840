/* llm.h: language models: run from a GGUF file, token by token, or made from their sizes to be
 * trained.
 *
 *     rlx_llm_open(ctx, device, "model.gguf", NULL, &llm, &err);
 *     rlx_sampler_create(llm, &(rlx_sampling){RLX_SIZED(rlx_sampling), .temperature = 0.8f},
 * &sampler, &err); rlx_sequence_create(llm, &seq, &err); rlx_sequence_feed(seq, ids, count, &err);
 * // what it is to go on from while (rlx_sequence_next(seq, sampler, &id, &err) == RLX_OK &&
 * !ends(id)) rlx_token_stream_add(rlx_llm_tokenizer(llm), &stream, id, write, user, &err);
 *
 * A model is used by any number of sequences, each with memory of its own for what it has read; a
 * sequence, like a session, by one thread at a time. docs/llm.md lists architectures. */
#ifndef RLX_LLM_H
#define RLX_LLM_H

#ifndef RLX_UNSTABLE
#error "rlx/llm.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/grammar.h"
#include "rlx/graph.h"
#include "rlx/session.h"
#include "rlx/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model from a file ----------------------------------------------------------------- */

typedef struct rlx_llm rlx_llm;

/* What keys and values are kept in. Halves take half the memory; queries are then rounded too. */
typedef enum rlx_llm_cache { RLX_LLM_CACHE_F16 = 0, RLX_LLM_CACHE_F32 = 1 } rlx_llm_cache;

/* How the vectors of a text's tokens become one: their mean, or the first or last of them. AUTO is
 * what the file says, or the mean if it says nothing. */
typedef enum rlx_llm_pooling {
    RLX_LLM_POOLING_AUTO = 0,
    RLX_LLM_POOLING_MEAN = 1,
    RLX_LLM_POOLING_FIRST = 2,
    RLX_LLM_POOLING_LAST = 3
} rlx_llm_pooling;

/* A LoRA adapter in a GGUF file: small matrices that were trained beside those of a model. */
typedef struct rlx_llm_adapter {
    const char *path;
    float scale; /* of what it adds; 0: 1 */
} rlx_llm_adapter;

typedef struct rlx_llm_desc {
    uint32_t size;
    int64_t context; /* tokens that a sequence has room for; 0: as the file says, 4096 at most */
    int64_t chunk;   /* of a prompt, computed at once; 0: 512 */
    rlx_llm_cache cache;
    bool all_logits; /* rlx_sequence_logits has those of every token of the last chunk */
    /* Products with packed weights take the other operand as it is. Otherwise it is rounded to 8
     * bits, in runs of 32 or 256 numbers, which is several times as fast. */
    bool exact;
    /* So many tokens are guessed from what came before, and computed together with the last one;
     * right guesses are saved runs, and wrong ones cost little. What is generated is what would be
     * without, up to rounding. 0: none; at most 31. */
    int32_t guesses;
    const rlx_load_desc *load; /* how files are opened; NULL: mapped */
    const rlx_llm_adapter *adapters;
    size_t adapter_count;
    /* For rlx_llm_embed instead of sequences, which some models cannot be used for anyway. The
     * context is then that of one text. */
    bool vectors;
    rlx_llm_pooling pooling;
} rlx_llm_desc;

/* UNSUPPORTED: an architecture, or a feature of one, that cannot be run, by name. FORMAT, SHAPE:
 * keys or tensors that are missing or make no model. The device stays open as long as the model. */
RLX_API rlx_status rlx_llm_open(rlx_context *ctx, rlx_device *device, const char *path,
                                const rlx_llm_desc *desc, rlx_llm **out, rlx_error *err);
RLX_API void rlx_llm_close(rlx_llm *m); /* after its sequences and samplers */

typedef struct rlx_llm_info {
    uint32_t size;
    const char *arch, *arch_text; /* "qwen3"; "Qwen 3" */
    rlx_str name;                 /* general.name; {NULL, 0}: the file has none */
    rlx_str chat_template;        /* likewise tokenizer.chat_template */
    int64_t vocab, layers, width;
    int64_t heads, kv_heads, head_dim, ffn; /* of the first layer */
    int64_t trained_context;                /* tokens it was made for */
    int64_t context;         /* that a sequence has room for here; 0: it was not opened */
    uint64_t params;         /* numbers in its tensors */
    uint64_t bytes;          /* that these take in the file */
    uint64_t cache_bytes;    /* that a sequence takes on the device, beside its activations */
    bool vectors;            /* rlx_llm_embed works, and sequences do not */
    int64_t vector_width;    /* of what it gives */
    rlx_llm_pooling pooling; /* of vectors, as the file says; AUTO: it does not */
} rlx_llm_info;
/* What a file says of its model, without opening it on a device; failures are rlx_llm_open's. */
RLX_API rlx_status rlx_llm_peek(const rlx_weights *w, rlx_llm_info *out, rlx_error *err);
RLX_API rlx_status rlx_llm_describe(const rlx_llm *m, rlx_llm_info *out, rlx_error *err);
RLX_API const rlx_tokenizer *rlx_llm_tokenizer(const rlx_llm *m); /* NULL: the file has none */
/* Architecture number i, of those that can be run; false: there are no more. */
RLX_API bool rlx_llm_arch(size_t i, const char **name, const char **text);

/* ---- vectors of texts -------------------------------------------------------------------- */

/* The vector of a text, as rlx_tokenizer_encode with RLX_ENCODE_ADD gives it: [vector_width] in
 * out, of length 1 if `unit`. Texts that mean the same have vectors that point the same way. By one
 * thread at a time. STATE: the model was not opened for it. LIMIT: a text longer than the context.
 */
RLX_API rlx_status rlx_llm_embed(rlx_llm *m, const int32_t *id, size_t count, bool unit, float *out,
                                 rlx_error *err);

/* ---- sequences --------------------------------------------------------------------------- */

typedef struct rlx_sequence rlx_sequence;

RLX_API rlx_status rlx_sequence_create(rlx_llm *m, rlx_sequence **out, rlx_error *err);
RLX_API void rlx_sequence_destroy(rlx_sequence *s);
/* What it has read so far, and the tokens of its own; valid until it changes. */
RLX_API const int32_t *rlx_sequence_tokens(const rlx_sequence *s, size_t *count);
/* Appends tokens and computes what comes after them. LIMIT, with both numbers: there is no room for
 * so many; INDEX: a token that is not in the vocabulary. Either leaves the sequence as it was. */
RLX_API rlx_status rlx_sequence_feed(rlx_sequence *s, const int32_t *id, size_t count,
                                     rlx_error *err);
/* Makes the sequence these tokens: what it begins with already is not computed again. *kept (may be
 * NULL): how many those were. */
RLX_API rlx_status rlx_sequence_set(rlx_sequence *s, const int32_t *id, size_t count, size_t *kept,
                                    rlx_error *err);
/* Forgets all but the first `count` tokens. STATE: more than there are. */
RLX_API rlx_status rlx_sequence_rewind(rlx_sequence *s, size_t count, rlx_error *err);
/* How likely each token of the vocabulary is to come next, before softmax: [vocab], or with
 * all_logits [tokens of the last chunk that was computed, vocab]. STATE: nothing was fed yet. */
RLX_API rlx_status rlx_sequence_logits(rlx_sequence *s, const float **out, size_t *rows,
                                       rlx_error *err);
/* What it takes on the device; weights are shared with other sequences. STATE: nothing was fed. */
RLX_API rlx_status rlx_sequence_memory(rlx_sequence *s, rlx_memory_info *out, rlx_error *err);
/* Tokens that were guessed so far, and how many of them came. */
RLX_API void rlx_sequence_guessed(const rlx_sequence *s, size_t *made, size_t *right);
/* Another sequence that has read the same. */
RLX_API rlx_status rlx_sequence_fork(rlx_sequence *s, rlx_sequence **out, rlx_error *err);

/* ---- which token comes next -------------------------------------------------------------- */

/* Zero is each field's default. Steps are made in the order of the fields; docs/llm.md says what
 * each does. */
typedef struct rlx_token_bias {
    int32_t token;
    float bias; /* added to its logit; -INFINITY: never */
} rlx_token_bias;
typedef struct rlx_sampling {
    uint32_t size;
    const rlx_token_bias *bias; /* copied */
    size_t bias_count;
    int32_t penalty_last; /* tokens at the end that penalties look at; 0: 64, -1: all */
    float repeat_penalty; /* of tokens among them: divides positive logits; 0: 1, which is off */
    float frequency_penalty, presence_penalty; /* subtracted per occurrence; once */
    int32_t top_k;                             /* so many of the most likely; 0: all */
    float typical;                             /* in (0, 1); 0: off */
    float top_p;                               /* likewise: the likeliest that sum up to it */
    float min_p;                               /* of the likeliest one's probability */
    float temperature;                         /* 0: the most likely token, and no chance */
    int32_t mirostat;                          /* 2: instead of the five above but temperature */
    float mirostat_tau, mirostat_eta;          /* 0: 5 and 0.1 */
    rlx_grammar *grammar; /* only tokens that it allows are candidates; it outlives the sampler */
    uint64_t seed;
    bool logprobs; /* rlx_sampler_logprob is wanted */
} rlx_sampling;

typedef struct rlx_sampler rlx_sampler;
/* ATTRIBUTE: a setting that makes no sense, by name. */
RLX_API rlx_status rlx_sampler_create(const rlx_llm *m, const rlx_sampling *how, rlx_sampler **out,
                                      rlx_error *err);
RLX_API void rlx_sampler_destroy(rlx_sampler *p);
/* Another text begins: with a grammar, at its beginning. */
RLX_API rlx_status rlx_sampler_begin(rlx_sampler *p, rlx_error *err);
/* The grammar allows nothing more: the text is complete. */
RLX_API bool rlx_sampler_done(const rlx_sampler *p);
/* Chooses after what the sequence has read, and appends it; it is computed by the next call that
 * needs it. LIMIT: the sequence is full. The same seed, tokens and device give the same tokens. */
RLX_API rlx_status rlx_sequence_next(rlx_sequence *s, rlx_sampler *p, int32_t *id, rlx_error *err);
/* ln of the probability that the model itself gave the token chosen last; 0: without logprobs. */
RLX_API float rlx_sampler_logprob(const rlx_sampler *p);

/* ---- a model from its sizes, to be trained ----------------------------------------------- */

/* Params have the names and the layout of GGUF files of the architecture "llama": what is trained
 * here is read by other programs, and what such a file holds fits the graph.
 *
 *     rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(16, 256)), logits;
 *     rlx_llm_build(g, &shape, tokens, &logits, &err);
 *
 * Layers of attention and SwiGLU, each after an RMS norm and added to what came in; positions by
 * RoPE on neighbouring pairs; queries in groups that share keys and values. */
typedef struct rlx_llm_shape {
    uint32_t size;
    int64_t vocab, context, layers;
    int64_t width;           /* of a token's vector */
    int64_t heads, kv_heads; /* of queries; of keys and values, which divides it. 0: as heads */
    int64_t head_dim;        /* 0: width / heads */
    int64_t ffn;             /* width inside the feed-forward part */
    float eps;               /* of norms; 0: 1e-5 */
    float rope_base;         /* 0: 10000 */
    bool tied;               /* the last matrix is the table of tokens, not one of its own */
    /* Beside each matrix W of a layer two small ones are added, A [lora_rank, in] and B [out,
     * lora_rank], to be trained in its place: x W^T + lora_alpha / lora_rank (x A^T) B^T. 0: none.
     * Their names are W's, and ".lora_a", ".lora_b", as in GGUF files of adapters. */
    int64_t lora_rank;
    float lora_alpha; /* 0: lora_rank */
} rlx_llm_shape;

/* What a GGUF file says of its model. UNSUPPORTED: another architecture, or a model of it that
 * rlx_llm_build does not make. FORMAT, SHAPE: what it says is missing, or
 * makes no model. */
RLX_API rlx_status rlx_llm_read_shape(const rlx_weights *w, rlx_llm_shape *out, rlx_error *err);

/* Appends the model: tokens i32[batch, length] with a known length, at positions 0 to length - 1;
 * logits f32[batch, length, vocab]. Params are leaves of g: token_embd.weight [vocab, width],
 * blk.0.attn_q.weight [heads * head_dim, width], .. SHAPE: sizes that make no model. */
RLX_API rlx_status rlx_llm_build(rlx_graph *g, const rlx_llm_shape *shape, rlx_value tokens,
                                 rlx_value *logits, rlx_error *err);

/* Number i of what a GGUF file says of such a model (general.architecture, llama.*); false: there
 * are no more. The value is put into *room. */
typedef union rlx_llm_meta_room {
    uint32_t u32;
    float f32;
    rlx_str str;
} rlx_llm_meta_room;
RLX_API bool rlx_llm_meta(const rlx_llm_shape *shape, size_t i, rlx_llm_meta_room *room,
                          rlx_meta *out);

#ifdef __cplusplus
}
#endif
#endif
