/* spec.h: what a language model is: the sizes and choices that its graph follows from, as a GGUF
 * file's metadata says them. The recipes of arch_*.c fill it in; the blocks of the graph read it,
 * and know no architecture by name. */
#ifndef LLM_SPEC_H
#define LLM_SPEC_H

#include "base/diag.h"
#include "rlx/moe.h"
#include "rlx/weights.h"

struct llm_keys;

enum llm_norm_kind { LLM_NORM_RMS, LLM_NORM_LAYER };
enum llm_activation { LLM_SILU, LLM_GELU, LLM_RELU_SQUARED, LLM_GELU_EXACT };

/* How channels are turned by their position: docs/spec/llm-architectures.md 3.2. */
enum llm_rope_scaling { LLM_ROPE_LINEAR, LLM_ROPE_YARN, LLM_ROPE_LONG };
struct llm_rope {
    int64_t channels; /* of a head that are turned; 0: none */
    rlx_rope_style style;
    double base;
    enum llm_rope_scaling scaling;
    double factor;               /* positions are divided by it */
    double original;             /* the context before it was stretched */
    double beta_fast, beta_slow; /* of yarn */
    double log_multiplier;       /* likewise */
    double magnitude;            /* of cos and sin, before what yarn adds */
    const char *divisors;        /* a tensor by which angles are divided; NULL: none */
};

enum { LLM_NO_ROPE = -1, LLM_ROPE_GLOBAL = 0, LLM_ROPE_LOCAL = 1, LLM_ROPES = 2 };

/* The feed-forward part as a few of many: docs/spec/llm-architectures.md 3.5. */
struct llm_experts {
    int64_t count, used;
    int64_t ffn;        /* width inside of one */
    int64_t shared_ffn; /* of one that all tokens go through as well; 0: there is none */
    rlx_gate_function function;
    bool normalise;
    float scale; /* of the weights */
    int64_t groups, groups_used;
    rlx_expert_function activation;
};

/* What a layer mixes tokens with. */
enum llm_mixer {
    LLM_ATTENTION = 0,
    LLM_MAMBA,
    LLM_MAMBA2,
    LLM_ATTENTION_AND_MAMBA2,
    LLM_SHORT_CONV,
    LLM_DELTA_NET,
    LLM_NO_MIXER
};

/* Layers with a state of fixed size. */
struct llm_ssm {
    int64_t taps;         /* of the convolution in front */
    int64_t inner, state; /* channels inside; numbers of state for each */
    int64_t heads;        /* the rank of time steps; heads of values */
    int64_t groups;       /* of heads that share what goes in and out; heads of keys */
    bool inner_norms;     /* of what Mamba's steps are made of, without weights */
    bool neighbours;      /* heads of values next to each other share a head of keys */
};

/* Keys and values made of one short row for all heads. */
struct llm_latent {
    int64_t rank;       /* of that row; 0: there is none */
    int64_t query_rank; /* of the row that queries are made of; 0: they are made at once */
    int64_t key, value; /* widths of a head's keys, with what is turned of them, and values */
    bool by_head;       /* heads have matrices of their own, and the cache holds rows */
};

struct llm_layer {
    enum llm_mixer mixer;
    int64_t heads, kv_heads; /* of queries; of keys and values */
    int64_t head_dim, value_dim;
    int64_t ffn;    /* width inside of the feed-forward part */
    int64_t window; /* keys that a query sees, itself included; of a model that is not causal half
                     * as many on either side, and itself; 0: all */
    int rope;       /* which of the model's; LLM_NO_ROPE */
    bool experts;   /* the feed-forward part is the model's experts */
    bool plain;     /* attention reads what comes in, without a norm */
    bool borrows; /* keys and values are those of the last layer with this rope that has its own */
};

/* Names of norms are tensors' names; NULL: there is none. */
struct llm_spec {
    const struct llm_arch *arch;
    int64_t vocab, context, width;
    struct llm_layer *layer;
    int64_t layers;
    struct llm_rope rope[LLM_ROPES];

    enum llm_norm_kind norm;
    float eps;
    const char *attn_norm, *attn_post_norm;       /* of what attention reads; of what it gives */
    const char *ffn_norm, *ffn_post_norm;         /* likewise */
    const char *attn_sum_norm, *ffn_sum_norm;     /* of that, and what came in */
    const char *embed_norm, *output_norm;         /* of the first vectors; of the last */
    const char *attn_inner_norm, *ffn_inner_norm; /* of what the last matrix of a part reads */
    bool bare_norms; /* without weights: the names say only where norms are */
    bool parallel;   /* both parts read x, and are added at once; no ffn_norm: by the same norm */

    struct llm_experts experts;
    struct llm_ssm ssm;
    struct llm_latent latent;
    bool no_feed_forward, one_part; /* layers are a mixer alone; a mixer or a feed-forward part */
    bool gated_queries;             /* attn_q gives a gate for what comes out beside each query */
    enum llm_activation activation;
    bool gated;             /* down(act(gate) * up), not down(act(up)) */
    bool causal;            /* a token sees those before it only */
    bool learned_positions; /* a table of vectors, position_embd */
    bool token_types;       /* likewise token_types, of which the first row is added */
    bool has_head;          /* logits come out; false: vectors do */
    bool tied;              /* the last matrix is the table of tokens */

    float embed_scale, residual_scale, logit_scale; /* factors; 1 is off */
    float score_scale;                              /* 0: 1 / sqrt(head_dim) */
    float attn_cap, final_cap;                      /* 0: off */
    float clamp;                /* queries, keys and values stay within -clamp and clamp; 0: off */
    bool turned_first;          /* queries and keys are turned before their norm */
    bool normed_values;         /* values of a head are normed, by no tensor */
    int64_t side;               /* numbers that each layer reads of a token itself; 0: none */
    double temper, temper_rows; /* queries are scaled by 1 + temper ln(floor(row / rows) + 1) */
    int64_t pooling;            /* of vectors: enum llm_pooling */

    /* Of rlx_llm_shape: small matrices beside those of a layer, for training. */
    int64_t lora_rank;
    float lora_scale;
};

enum llm_pooling {
    LLM_POOL_NONE = 0,
    LLM_POOL_MEAN = 1,
    LLM_POOL_FIRST = 2,
    LLM_POOL_LAST = 3,
    LLM_POOL_RANK = 4
};

/* An architecture: its name in files, what it is in words, and what fills in a spec that already
 * holds what all have in common (spec_read). Failures are kept by the keys' diag. */
struct llm_arch {
    const char *name, *text;
    void (*read)(struct llm_keys *k, struct llm_spec *s);
};
extern const struct llm_arch llm_archs[];
extern const size_t llm_arch_count;

/* UNSUPPORTED: an architecture that is not among ours; FORMAT: keys or tensors are missing, or make
 * no model. Free it either way. */
rlx_status llm_spec_read(const rlx_weights *w, struct llm_spec *out, struct diag *d);
void llm_spec_free(struct llm_spec *s);
/* Sizes make a model that can be built. */
rlx_status llm_spec_check(const struct llm_spec *s, struct diag *d);
/* What a tensor is; false: there is no file, or none of that name in it. */
bool llm_tensor(const rlx_weights *w, const char *name, rlx_weight *out);
bool llm_is_recurrent(const struct llm_spec *s); /* what was read cannot be forgotten in part */
/* Room for the layers, all zeros. */
rlx_status llm_spec_layers(struct llm_spec *s, int64_t count, struct diag *d);

#endif
