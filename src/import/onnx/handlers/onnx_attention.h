/* onnx_attention.h: attention as several ONNX ops need it. */
#ifndef IMPORT_ONNX_ATTENTION_H
#define IMPORT_ONNX_ATTENTION_H

#include "import/onnx/read/onnx_build.h"

struct onnx_heads {
    ir_value q, k, v; /* [B, H, S, D] */
    int64_t q_heads, kv_heads, head, value_head;
    ir_dim batch, queries, keys, past;
};

/* [B, S, H D] to [B, H, S, D]; a tensor of rank 4 stays. */
ir_value onnx_split_heads(struct onnx_call *c, ir_value x, int64_t heads);
/* And back. */
ir_value onnx_join_heads(struct onnx_call *c, const struct onnx_heads *h, ir_value y);
/* The numbers of h from its tensors; false: they do not go together. */
bool onnx_measure_heads(struct onnx_call *c, struct onnx_heads *h);
/* 0 where the condition holds, otherwise -Inf. */
ir_value onnx_allow(struct onnx_call *c, ir_value condition);
/* a + b, or b where a is RLX_NO_VALUE. */
ir_value onnx_add_bias(struct onnx_call *c, ir_value a, ir_value b);
/* Position of each query less that of each key, [B or 1, 1, Sq, Sk]; offset: of the first query, a
 * scalar of i64 or [B, 1, 1, 1]. */
ir_value onnx_distance(struct onnx_call *c, const struct onnx_heads *h, ir_value offset);
/* Query heads in groups that share keys: [B, Hkv, G, S, D], and [B, Hkv, 1, S, D] of the keys. */
ir_value onnx_in_groups(struct onnx_call *c, ir_value x, int64_t groups, int64_t each);
/* softmax(softcap(scale q k^T) + bias) v. bias RLX_NO_VALUE: none; causal counts only then. */
ir_value onnx_attend(struct onnx_call *c, const struct onnx_heads *h, double scale, double softcap,
                     bool causal, ir_value bias);

#endif
