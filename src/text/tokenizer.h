/* tokenizer.h: what a tokenizer is made of.
 *
 *     rlx_tokenizer     a vocabulary, and what its kind needs beside it; built once, then only read
 *       tok_kind        the algorithm: how text becomes ids, and a token text
 *       tok_pre         byte-level BPE: how text is cut into words first
 *     tok_run           one call of encode: what it writes to, and its scratch
 *
 * Whatever one comes from becomes metadata as in GGUF, of which it is built: so there is one place
 * that checks. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "text/pattern.h"
#include "text/text.h"
#include "text/trie.h"

struct tok_run;
struct tok_prefixes;
struct merge_node;
struct merge_candidate;
struct unigram_end;

/* How a token's text is spelled, which decoding undoes. */
enum tok_spelling {
    TOK_MAPPED,  /* each byte as one of 256 printable characters */
    TOK_SPACED,  /* U+2581 for a space, <0xHH> for a byte */
    TOK_WORDS,   /* U+2581 where a word begins, or ## where none does */
    TOK_ESCAPED, /* as a literal of a programming language */
};

struct tok_kind {
    const char *name;
    int16_t bos, eos, unk, sep, pad, cls, mask; /* where the file does not say; -1: none */
    bool add_bos, add_eos;
    bool space_prefix; /* a space goes before a text */
    bool always_bos;   /* whatever the file says */
    bool cls_sep;      /* a text begins with cls and ends with sep, whatever the file says */
    const char *pre;   /* the rule for words, where the file does not tell it */
    bool wants_merges; /* FORMAT without */
    bool wants_scores; /* likewise */
    enum tok_spelling spelling;
    rlx_status (*build)(struct rlx_tokenizer *t, struct diag *d);
    void (*free)(struct rlx_tokenizer *t); /* what is not in the arena; may be NULL */
    /* Ids of a text without special tokens. */
    rlx_status (*encode)(struct tok_run *r, rlx_str text);
};
extern const struct tok_kind tok_kinds[];
extern const size_t tok_kind_count;

enum { TOK_MOST_STEPS = 6 };
struct tok_step { /* a pattern, or a function that finds the next match from `at` on */
    const char *pattern;
    size_t (*find)(rlx_str s, size_t at, size_t *start);
};
enum tok_pre_flags {
    PRE_WHOLE = 1,   /* a word that is a token is that token, whatever merges say */
    PRE_BOS = 2,     /* add_bos is the default */
    PRE_NO_BOS = 4,  /* there is no default bos */
    PRE_RAW = 8,     /* no map of bytes: symbols are characters */
    PRE_ESCAPE = 16, /* spaces are U+2581 */
};
struct tok_pre {
    const char *name;
    struct tok_step step[TOK_MOST_STEPS];
    uint32_t flags;
};
const struct tok_pre *tok_pre_find(rlx_str name); /* NULL: there is none */
const struct tok_pre *tok_pre_at(size_t i);       /* NULL: there are no more */

/* How text is cut into words. */
struct tok_cutter {
    struct tok_cut {
        struct pattern pattern;
        size_t (*find)(rlx_str s, size_t at, size_t *start); /* NULL: the pattern does */
    } step[TOK_MOST_STEPS];
    size_t count;
};
rlx_status tok_cutter_build(struct tok_cutter *c, const struct tok_pre *pre, struct arena *a,
                            struct diag *d);
typedef rlx_status (*tok_word_fn)(void *user, rlx_str word);
rlx_status tok_cut(const struct tok_cutter *c, rlx_str text, tok_word_fn each, void *user,
                   struct diag *d);

/* Merges. A symbol is a token's id; those from `vocab` on are texts that merges name, or make, but
 * that are not tokens. */
struct tok_merge {
    uint32_t left, right, result;
};
struct tok_bpe {
    bool raw, escape, whole;
    VEC(struct tok_merge) merge; /* by rank */
    struct map rank;             /* of a pair */
    VEC(rlx_str) extra;          /* texts of symbols that are not tokens */
    struct map extra_by_text;
    uint32_t byte[256]; /* their symbols */
};
#define TOK_NONE UINT32_MAX

struct tok_special { /* tokens that text is cut at */
    uint32_t *id;    /* the longest first */
    size_t count;
    struct trie trie;
};

struct rlx_tokenizer {
    const rlx_allocator *mem;
    void *owner; /* of mem: for src/api */
    struct arena arena;
    VEC(rlx_meta) meta;
    const struct tok_kind *kind;
    const struct tok_pre *pre;
    struct tok_pre own_pre; /* one that is not of the table */
    rlx_str name;           /* of the model, in lower case; or "" */

    uint32_t vocab;
    const rlx_str *text;
    uint8_t *type;
    uint8_t *mark;      /* TOK_MARK_*, by id */
    const float *score; /* NULL: none */
    struct map by_text;
    int32_t special[RLX_SPECIAL_count];
    bool add_bos, add_eos, add_sep, space_prefix;
    bool pre_assumed; /* the file does not say which */
    enum tok_spelling spelling;
    bool spans_words;  /* a token goes on after a space, in it */
    bool words_marked; /* of TOK_WORDS: by U+2581, not by ## */
    rlx_str *plain;    /* of TOK_ESCAPED: texts as they are, by id */

    struct tok_special cut;
    struct tok_cutter cutter;
    struct tok_bpe bpe;
    struct trie trie;                        /* unigram, WordPiece, RWKV: of all tokens */
    void *more;                              /* what only its kind knows */
    _Atomic(struct tok_prefixes *) prefixes; /* token_prefix.h; NULL until they are wanted */
};
enum { TOK_MARK_ENDS = 1, TOK_MARK_EATS_LEFT = 2, TOK_MARK_EATS_RIGHT = 4 };

#define TOK_MOST_TOKENS (UINT32_C(1) << 24)

/* One call of encode. */
struct tok_run {
    const struct rlx_tokenizer *t;
    struct diag *d;
    rlx_token_ids *out;
    rlx_str text;          /* all of it */
    const uint8_t *data;   /* by byte: part of no control token; NULL: none is */
    const char *base;      /* of the words below: the text, or scratch */
    uint32_t epoch;        /* a number for that text */
    struct tok_word *word; /* ids of words that came before; NULL: none are kept */
    size_t words;          /* a power of two */
    const char *word_text; /* kind "llama": of the word that is being merged */
    VEC(struct unigram_end) ends;
    VEC(struct merge_node) node;
    VEC(struct merge_candidate) heap;
    struct text scratch; /* a text with spaces escaped, or normalised */
};
/* encode_text.c */
rlx_status tok_emit(struct tok_run *r, uint32_t id);
/* The token for what is unknown. INDEX, with the first byte: there is none. */
rlx_status tok_emit_unknown(struct tok_run *r, rlx_str bytes);
/* The text with U+2581 for spaces, in scratch; prefix: with one in front. */
rlx_status tok_escape_spaces(struct tok_run *r, rlx_str text, bool prefix, rlx_str *out);
#define TOK_SPACE "\xe2\x96\x81" /* U+2581 */

/* word_once.c */
void tok_words_begin(struct tok_run *r);
void tok_words_end(struct tok_run *r);
void tok_words_in(struct tok_run *r, const char *base); /* words lie in that text from here on */
/* Encodes a word, or copies what it gave before. */
rlx_status tok_word_once(struct tok_run *r, rlx_str word, tok_word_fn encode);

/* token_meta.c: what the metadata says; a key without "tokenizer.". Missing keys leave *out as it
 * was. */
const rlx_meta *tok_meta(const struct rlx_tokenizer *t, const char *key);
rlx_status tok_meta_bool(const struct rlx_tokenizer *t, const char *key, bool *out, struct diag *d);
rlx_status tok_meta_id(const struct rlx_tokenizer *t, const char *key, int32_t *out,
                       struct diag *d);
rlx_status tok_meta_str(const struct rlx_tokenizer *t, const char *key, rlx_str *out,
                        struct diag *d);
/* An array of that type; NULL: there is no such key. */
rlx_status tok_meta_array(const struct rlx_tokenizer *t, const char *key, rlx_meta_type type,
                          const rlx_meta **out, struct diag *d);

/* Copies those whose keys begin with "tokenizer.". */
rlx_status tok_meta_keep(struct rlx_tokenizer *t, const rlx_meta *meta, size_t count,
                         struct diag *d);

/* vocab.c */
rlx_status tok_vocab_build(struct rlx_tokenizer *t, struct diag *d);
uint32_t tok_find(const struct rlx_tokenizer *t, rlx_str text);       /* TOK_NONE */
uint32_t tok_byte_token(const struct rlx_tokenizer *t, uint8_t byte); /* <0xHH>; TOK_NONE */

/* special_tokens.c */
rlx_status tok_special_ids(struct rlx_tokenizer *t, struct diag *d);
/* cut_special.c */
rlx_status tok_special_build(struct rlx_tokenizer *t, struct diag *d);
rlx_status tok_encode_fragments(struct tok_run *r, bool parse);

/* byte_map.c: the 256 characters that stand for bytes */
uint32_t tok_byte_char(uint8_t byte);
int tok_char_byte(uint32_t c); /* -1: it stands for none */

/* bpe.c */
rlx_status tok_bpe_build(struct rlx_tokenizer *t, struct diag *d);
void tok_bpe_free(struct rlx_tokenizer *t);
rlx_status tok_bpe_encode(struct tok_run *r, rlx_str text);

/* spm.c */
rlx_status tok_spm_build(struct rlx_tokenizer *t, struct diag *d);
rlx_status tok_spm_encode(struct tok_run *r, rlx_str text);
void tok_find_spans(struct rlx_tokenizer *t); /* sets spans_words */
/* Encodes the words of a text with spaces escaped, or all of it where tokens span words. */
rlx_status tok_each_word(struct tok_run *r, rlx_str text, tok_word_fn encode);
/* A character as its bytes, where there are tokens for them; else as what is unknown. */
rlx_status tok_emit_fallback(struct tok_run *r, rlx_str bytes);

/* unigram.c, wordpiece.c, rwkv.c */
rlx_status tok_unigram_build(struct rlx_tokenizer *t, struct diag *d);
rlx_status tok_unigram_encode(struct tok_run *r, rlx_str text);
rlx_status tok_wordpiece_build(struct rlx_tokenizer *t, struct diag *d);
void tok_wordpiece_free(struct rlx_tokenizer *t);
rlx_status tok_wordpiece_encode(struct tok_run *r, rlx_str text);
rlx_status tok_rwkv_build(struct rlx_tokenizer *t, struct diag *d);
rlx_status tok_rwkv_encode(struct tok_run *r, rlx_str text);

#endif
