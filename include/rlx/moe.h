/* moe.h: feed-forward layers in which each row goes through a few experts of many, as parts of a
 * graph.
 *
 *     rlx_value logits = rlx_matmul(g, x, router, false, true);
 *     rlx_gate gate = rlx_topk_gate(g, logits, 2, true, 1.0f);
 *     rlx_value y = rlx_moe_ffn(g, x, gate, w_gate, w_up, w_down);
 *
 * These functions add ordinary nodes; failures are kept by the graph, as those of any op. */
#ifndef RLX_MOE_H
#define RLX_MOE_H

#ifndef RLX_UNSTABLE
#error "rlx/moe.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which experts a row goes to, and how much each of them counts. */
typedef struct rlx_gate {
    rlx_value ids;     /* [..., k] */
    rlx_value weights; /* [..., k] */
} rlx_gate;

/* logits [..., experts]: p = softmax over the experts; ids are the k largest, those of equal p by
 * the smaller id, as i32; weights are their p, divided by their sum (taken as 6.1035e-5 if it is
 * less) if `normalise`, times scale. Weights are f32, or f64 if the logits are. Failed: both are
 * RLX_NO_VALUE. ATTRIBUTE: k is not in 1 .. experts, or scale is not finite. */
RLX_API rlx_gate rlx_topk_gate(rlx_graph *g, rlx_value logits, int64_t k, bool normalise,
                               float scale);

/* x [..., d], w_gate and w_up [experts, d, hidden], w_down [experts, hidden, d]: like x,
 *
 *     y = sum over j of weights[j] * SwiGLU of expert ids[j]
 *     SwiGLU(x) = (silu(x w_gate) * (x w_up)) w_down
 *
 * Ids and weights [..., k] go with the rows of x. An id of no expert is INDEX when it runs. */
RLX_API rlx_value rlx_moe_ffn(rlx_graph *g, rlx_value x, rlx_gate gate, rlx_value w_gate,
                              rlx_value w_up, rlx_value w_down);

#ifdef __cplusplus
}
#endif
#endif
