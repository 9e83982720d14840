/* text.h: tokenizers: text as the numbers that a language model reads, and back.
 *
 *     rlx_tokenizer *t;
 *     rlx_token_ids ids = {0};
 *     rlx_tokenizer_open(ctx, "vocab.gguf", &t, &err);
 *     rlx_tokenizer_encode(t, rlx_cstr("Hello"), RLX_ENCODE_ADD, &ids, &err);
 *     rlx_tokenizer_decode(t, ids.at, ids.count, 0, write, user, &err);
 *
 * A tokenizer comes from the metadata of a GGUF file, from a tokenizer.json, or is trained here.
 * Vocabularies come from strangers: what contradicts itself is FORMAT, with the token or merge
 * where it does. Text may be any bytes. A tokenizer does not change, so any number of threads may
 * use it; it keeps its context. docs/tokenizers.md explains kinds and rules. */
#ifndef RLX_TEXT_H
#define RLX_TEXT_H

#ifndef RLX_UNSTABLE
#error "rlx/text.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/tools.h"
#include "rlx/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlx_tokenizer rlx_tokenizer;

/* ---- where one comes from ---------------------------------------------------------------- */

/* A GGUF file or a tokenizer.json, which its bytes tell. */
RLX_API rlx_status rlx_tokenizer_open(rlx_context *ctx, const char *path, rlx_tokenizer **out,
                                      rlx_error *err);
/* From the metadata of an open GGUF file, which may be closed after. */
RLX_API rlx_status rlx_tokenizer_from_weights(rlx_context *ctx, const rlx_weights *w,
                                              rlx_tokenizer **out, rlx_error *err);
/* Either kind of file, in memory; the bytes are not needed after. */
RLX_API rlx_status rlx_tokenizer_parse(rlx_context *ctx, const void *bytes, size_t size,
                                       rlx_tokenizer **out, rlx_error *err);
RLX_API void rlx_tokenizer_close(rlx_tokenizer *t); /* NULL is fine */

/* Byte-level BPE (kind "gpt2"), learned from text. Ids 0 to 255 are the bytes, then come merges in
 * the order they were learned, then the special tokens. */
typedef struct rlx_bpe_desc {
    uint32_t size;
    uint32_t vocab;  /* tokens in all: at least 256 and one per special token */
    const char *pre; /* how text is cut into words, as in tokenizer.ggml.pre; NULL: "gpt-2" */
    /* Control tokens. Text is cut where it holds one, and none of it is learned. NULL: one,
     * "<|endoftext|>". The first is the beginning of a text, the last its end. */
    const rlx_str *special;
    size_t special_count;
    bool add_bos, add_eos; /* with RLX_ENCODE_ADD */
    uint64_t min_count;    /* pairs that occur less often are not merged; 0: 2 */
} rlx_bpe_desc;
/* The pair that occurs most often is merged, again and again; of several, the one whose left id is
 * the lowest, then whose right id is. So equal text gives equal tokens. Fewer than desc->vocab of
 * them are made where no pair is left to merge: ask rlx_tokenizer_describe. */
RLX_API rlx_status rlx_bpe_train(rlx_context *ctx, rlx_str text, const rlx_bpe_desc *desc,
                                 rlx_tokenizer **out, rlx_error *err);

/* ---- what it is -------------------------------------------------------------------------- */

/* X(name, key in GGUF: tokenizer.ggml.<key>_token_id) */
#define RLX_SPECIAL_TOKEN_MAP(X) \
    X(bos, "bos")                \
    X(eos, "eos")                \
    X(eot, "eot")                \
    X(eom, "eom")                \
    X(unk, "unknown")            \
    X(sep, "seperator")          \
    X(pad, "padding")            \
    X(cls, "cls")                \
    X(mask, "mask")              \
    X(fim_pre, "fim_pre")        \
    X(fim_suf, "fim_suf")        \
    X(fim_mid, "fim_mid")        \
    X(fim_pad, "fim_pad")        \
    X(fim_rep, "fim_rep")        \
    X(fim_sep, "fim_sep")
#define X(name, key) RLX_SPECIAL_##name,
typedef enum rlx_special_token { RLX_SPECIAL_TOKEN_MAP(X) RLX_SPECIAL_count } rlx_special_token;
#undef X

typedef struct rlx_tokenizer_info {
    uint32_t size;
    const char *kind; /* "gpt2", "llama", ..: as in tokenizer.ggml.model */
    const char *pre;  /* of kind "gpt2"; else "" */
    uint32_t vocab;   /* tokens: ids are 0 .. vocab-1 */
    uint32_t merges;
    int32_t special[RLX_SPECIAL_count]; /* ids; -1: there is none */
    bool add_bos, add_eos;              /* by RLX_ENCODE_ADD */
} rlx_tokenizer_info;
RLX_API rlx_status rlx_tokenizer_describe(const rlx_tokenizer *t, rlx_tokenizer_info *out,
                                          rlx_error *err);

/* Numbers as in tokenizer.ggml.token_type. */
typedef enum rlx_token_type {
    RLX_TOKEN_UNDEFINED = 0,
    RLX_TOKEN_NORMAL = 1,
    RLX_TOKEN_UNKNOWN = 2,
    RLX_TOKEN_CONTROL = 3,
    RLX_TOKEN_USER_DEFINED = 4,
    RLX_TOKEN_UNUSED = 5,
    RLX_TOKEN_BYTE = 6
} rlx_token_type;
typedef struct rlx_token {
    rlx_str text; /* as the vocabulary spells it: "\u0120the" in byte-level BPE */
    rlx_token_type type;
    float score; /* 0 where the kind has none */
    bool ends;   /* it ends what a model generates */
} rlx_token;
/* false: the id does not exist. */
RLX_API bool rlx_tokenizer_at(const rlx_tokenizer *t, int32_t id, rlx_token *out);
/* By how the vocabulary spells it; -1: no token is. */
RLX_API int32_t rlx_tokenizer_find(const rlx_tokenizer *t, rlx_str text);

/* The metadata that a GGUF file takes to give the same tokenizer (all keys tokenizer.*): the i-th,
 * in memory of the tokenizer. false: there are no more. */
RLX_API bool rlx_tokenizer_meta(const rlx_tokenizer *t, size_t i, rlx_meta *out);

/* ---- text to ids ------------------------------------------------------------------------- */

/* A growing list; all zeros is an empty one. */
typedef struct rlx_token_ids {
    int32_t *at;
    size_t count;
    size_t cap; /* the library's */
} rlx_token_ids;
RLX_API void rlx_token_ids_free(const rlx_tokenizer *t, rlx_token_ids *ids);

enum {
    RLX_ENCODE_ADD = 1,  /* the tokens that begin and end a text, as the vocabulary wants them */
    RLX_ENCODE_PARSE = 2 /* control tokens that the text spells are those tokens, not text */
};
/* Appends to *out; a failure leaves it as it was. The text may be a whole file of gigabytes. */
RLX_API rlx_status rlx_tokenizer_encode(const rlx_tokenizer *t, rlx_str text, uint32_t flags,
                                        rlx_token_ids *out, rlx_error *err);

/* ---- ids to text ------------------------------------------------------------------------- */

enum {
    RLX_DECODE_SPECIAL = 1 /* control and unknown tokens give their text; else they give nothing */
};
/* Of all of them. The text is written in pieces, which are valid UTF-8 each unless the tokens are
 * not. INDEX: an id does not exist. */
RLX_API rlx_status rlx_tokenizer_decode(const rlx_tokenizer *t, const int32_t *id, size_t count,
                                        uint32_t flags, rlx_write_fn write, void *user,
                                        rlx_error *err);
/* The same token by token, as they are generated. Zeros at the start; yours to copy. */
typedef struct rlx_token_stream {
    uint8_t held[3]; /* bytes of a character whose rest has not come yet */
    uint8_t count;   /* of them */
    uint8_t flags;   /* of RLX_DECODE_*; set before the first token */
    bool begun;      /* something was written, or held */
} rlx_token_stream;
RLX_API rlx_status rlx_token_stream_add(const rlx_tokenizer *t, rlx_token_stream *s, int32_t id,
                                        rlx_write_fn write, void *user, rlx_error *err);
/* Nothing more comes: what is held is written, though it is no character. */
RLX_API void rlx_token_stream_end(rlx_token_stream *s, rlx_write_fn write, void *user);

#ifdef __cplusplus
}
#endif
#endif
