/* llm.h: language models as graphs, from their sizes.
 *
 *     rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(16, 256)), logits;
 *     rlx_llm_build(g, &shape, tokens, &logits, &err);
 *
 * Params have the names and the layout of GGUF files of the architecture "llama": what is trained
 * here is read by other programs, and what such a file holds fits the graph. */
#ifndef RLX_LLM_H
#define RLX_LLM_H

#ifndef RLX_UNSTABLE
#error "rlx/llm.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/graph.h"
#include "rlx/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Layers of attention and SwiGLU, each after an RMS norm and added to what came in; positions by
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
