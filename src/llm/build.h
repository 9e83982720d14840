/* build.h: a model's graph being built from its spec. Blocks are functions from values to values;
 * like the builders of rlx/ops.h they do nothing where an operand is missing, and the first failure
 * is kept by the diag or the graph. */
#ifndef LLM_BUILD_H
#define LLM_BUILD_H

#include "llm/adapter.h"
#include "llm/spec.h"
#include "rlx/graph.h"

struct llm_build {
    rlx_graph *g;
    const struct llm_spec *spec;
    const rlx_weights *w; /* whose types the params have; NULL: all are f32, to be trained */
    struct diag *d;
    const struct llm_adapter *adapters;
    size_t adapter_count;
    bool exact;    /* products with packed weights do not round what they multiply */
    rlx_dim batch; /* rows of tokens */
    rlx_dim rows;  /* tokens in each */
    rlx_value cos[LLM_ROPES], sin[LLM_ROPES];       /* [rows, pairs]; RLX_NO_VALUE: not needed */
    rlx_value positions;                            /* i32 [rows]; where positions are learned */
    rlx_value temper;                               /* [rows, 1]: factors of queries; likewise */
    rlx_value kept_k[LLM_ROPES], kept_v[LLM_ROPES]; /* of the last layer with each rope */
    rlx_value side;                                 /* side.c: [batch, rows, layers * side] */
    /* Keys and values of earlier runs stay in states, one of each per layer. */
    bool cached;
    rlx_dtype cache;    /* their type */
    int64_t cache_rows; /* their size */
    rlx_value at;       /* i32: the row at which those of this run begin */
    rlx_dim length;     /* rows up to the last one of this run */
};

/* ---- tensors.c: tensors of the file as params, and what is computed with one of them ---- */

#define LLM_GLOBAL ((int64_t)-1)                                          /* as a layer: of none */
bool llm_has(const struct llm_build *b, int64_t layer, const char *name); /* "attn_q.bias" */
/* A param of floats: a norm's, a bias. */
rlx_value llm_vector(struct llm_build *b, int64_t layer, const char *name, rlx_list shape);
/* x W^T with the tensor PART.weight [out, in], plus what a LoRA adds, times PART.scale, plus
 * PART.bias (of the feed-forward part: the bias first), as far as these exist. */
rlx_value llm_linear(struct llm_build *b, int64_t layer, const char *part, rlx_value x, int64_t out,
                     int64_t in);
/* The tensor PART.weight [experts, out, in], with PART.bias and PART.scale as far as these exist.
 */
rlx_expert_matrix llm_expert_matrix(struct llm_build *b, int64_t layer, const char *part,
                                    int64_t experts, int64_t out, int64_t in);
/* Of x [batch, count, rows, in], each [rows, in] times its own of PART.weight [count, out, in]. */
rlx_value llm_each(struct llm_build *b, int64_t layer, const char *part, rlx_value x, int64_t count,
                   int64_t out, int64_t in);
/* Rows of a table of the model, [count, width]. */
rlx_value llm_rows(struct llm_build *b, const char *name, int64_t count, int64_t width,
                   rlx_value which);
/* The rows of the table of tokens, and the product with it. */
rlx_value llm_embed(struct llm_build *b, rlx_value tokens);
rlx_value llm_unembed(struct llm_build *b, rlx_value x);
/* By the tensor PART.weight (and PART.bias) over the last axis; PART NULL: x. */
rlx_value llm_norm(struct llm_build *b, int64_t layer, const char *part, rlx_value x,
                   int64_t width);
rlx_value llm_bare_norm(struct llm_build *b, rlx_value x, int64_t width); /* by no tensor */
/* Columns first to first + count - 1 of the last axis. */
rlx_value llm_columns(struct llm_build *b, rlx_value x, int64_t first, int64_t count);
rlx_value llm_scaled(struct llm_build *b, rlx_value x, double by);  /* x, if by is 1 */
rlx_value llm_capped(struct llm_build *b, rlx_value x, double cap); /* x, if cap is 0 */

/* ---- blocks ---- */
rlx_value llm_attention(struct llm_build *b, int64_t layer, rlx_value h);
rlx_value llm_latent_attention(struct llm_build *b, int64_t layer, rlx_value h);
/* Of queries, and the keys and values of this run and those before: a row for each query. */
rlx_value llm_attend(struct llm_build *b, int64_t layer, rlx_value q, rlx_value k, rlx_value v);
rlx_value llm_tempered(struct llm_build *b, rlx_value q); /* queries by the factors of positions */
rlx_value llm_feed_forward(struct llm_build *b, int64_t layer, rlx_value h);
rlx_value llm_experts(struct llm_build *b, int64_t layer, rlx_value h);
rlx_value llm_mamba(struct llm_build *b, int64_t layer, rlx_value h);
rlx_value llm_mamba2(struct llm_build *b, int64_t layer, rlx_value h);
rlx_value llm_short_conv(struct llm_build *b, int64_t layer, rlx_value h);
rlx_value llm_delta_net(struct llm_build *b, int64_t layer, rlx_value h);
/* side.c: what layers read of a token itself, from its first vector x; and a layer that reads it.
 */
void llm_side_begin(struct llm_build *b, rlx_value tokens, rlx_value x);
rlx_value llm_side(struct llm_build *b, int64_t layer, rlx_value x);
/* tokens i32 [batch, rows]: vectors after the last norm, [batch, rows, width]. */
rlx_value llm_decoder(struct llm_build *b, rlx_value tokens);
/* Logits f32 [.., vocab] of such vectors. */
rlx_value llm_head(struct llm_build *b, rlx_value x);
/* vectors.c: one vector f32 [vector_width] of such vectors, of batch 1. */
rlx_value llm_pooled(struct llm_build *b, rlx_value x, rlx_llm_pooling pooling);

#endif
