/* moe.h: feed-forward layers in which each row goes through a few experts of many, as parts of a
 * graph.
 *
 *     rlx_value logits = rlx_matmul(g, x, router, false, true);
 *     rlx_gate gate = rlx_topk_gate(g, logits, 2, true, 1.0f);
 *     rlx_value y = rlx_moe_ffn(g, x, gate, w_gate, w_up, w_down);
 *
 * rlx_gate_experts and rlx_experts have all that files of language models ask for: other gates,
 * packed weights, biases. These functions add ordinary nodes; failures are kept by the graph, as
 * those of any op. docs/experts.md shows both. */
#ifndef RLX_MOE_H
#define RLX_MOE_H

#ifndef RLX_UNSTABLE
#error "rlx/moe.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- which experts ---- */

/* Which experts a row goes to, and how much each of them counts. */
typedef struct rlx_gate {
    rlx_value ids;     /* [..., k] */
    rlx_value weights; /* [..., k] */
} rlx_gate;

/* logits [..., experts]: p = softmax over the experts; ids are the k largest, those of equal p by
 * the smaller id, as i32; weights are their p, divided by their sum (taken as 2^-14 if it is less)
 * if `normalise`, times scale. Weights are f32, or f64 if the logits are. Failed: both are
 * RLX_NO_VALUE. ATTRIBUTE: k is not in 1 .. experts, or scale is not finite. */
RLX_API rlx_gate rlx_topk_gate(rlx_graph *g, rlx_value logits, int64_t k, bool normalise,
                               float scale);

/* What p is, from the logits l. One less than expert_gating_func of GGUF files. */
typedef enum rlx_gate_function {
    RLX_GATE_SOFTMAX = 0,
    RLX_GATE_SIGMOID = 1,
    RLX_GATE_SOFTMAX_OF_CHOSEN = 2, /* p = l; weights are the softmax of the k chosen ones */
    RLX_GATE_SQRT_SOFTPLUS = 3      /* sqrt(ln(1 + e^l)) */
} rlx_gate_function;

/* Zeros are the defaults. */
typedef struct rlx_gate_desc {
    uint32_t size;
    int64_t k; /* experts of a row; at least 1 */
    rlx_gate_function function;
    bool choose_by_logits; /* and not by p, which rounding may make equal */
    bool normalise;
    float scale; /* 0: 1 */
    /* The experts are group_count runs of one length. Only those in the group_used best groups are
     * chosen from; a group's score is the sum of the two largest of what its experts are chosen by.
     * Of equal ones, the smaller group. 0 or 1: no groups. */
    int64_t group_count, group_used;
} rlx_gate_desc;

/* As rlx_topk_gate, by desc. Experts are chosen by p + bias, but weights are made of p alone; bias
 * is floats [experts], or RLX_NO_VALUE for none. ATTRIBUTE: a gate that makes no sense, such as
 * fewer than k experts to choose from. SHAPE: bias is not one number per expert. */
RLX_API rlx_gate rlx_gate_experts(rlx_graph *g, rlx_value logits, rlx_value bias,
                                  const rlx_gate_desc *desc);

/* ---- experts ---- */

/* x [..., d], w_gate and w_up [experts, d, hidden], w_down [experts, hidden, d]: like x,
 *
 *     y = sum over j of weights[j] * SwiGLU of expert ids[j]
 *     SwiGLU(x) = (silu(x w_gate) * (x w_up)) w_down
 *
 * Ids and weights [..., k] go with the rows of x. An id of no expert is INDEX when it runs. */
RLX_API rlx_value rlx_moe_ffn(rlx_graph *g, rlx_value x, rlx_gate gate, rlx_value w_gate,
                              rlx_value w_up, rlx_value w_down);

/* One matrix of every expert, as GGUF files have it: y = (x w^T + bias) * scale. */
typedef struct rlx_expert_matrix {
    rlx_value w; /* floats [experts, out, in]; or, packed, u8 [experts, out, bytes of a row] */
    rlx_quant_scheme scheme; /* of u8 */
    rlx_value bias;          /* floats [experts, out], or RLX_NO_VALUE */
    rlx_value scale;         /* floats [experts] or [1], or RLX_NO_VALUE */
} rlx_expert_matrix;
#define RLX_EXPERT_MATRIX_INIT                                         \
    {                                                                  \
        RLX_NO_VALUE, (rlx_quant_scheme)-1, RLX_NO_VALUE, RLX_NO_VALUE \
    }

/* What comes between the matrices: u = up(x), g = gate(x). GELU is the tanh form, as in GGUF files
 * everywhere. */
typedef enum rlx_expert_function {
    RLX_EXPERT_SWIGLU = 0,       /* silu(g) * u */
    RLX_EXPERT_GEGLU = 1,        /* gelu(g) * u */
    RLX_EXPERT_CLAMPED = 2,      /* of gpt-oss: with g at most 7 and u from -7 to 7,
                                    g * sigmoid(1.702 g) * (u + 1) */
    RLX_EXPERT_RELU_SQUARED = 3, /* relu(u)^2, no gate */
    RLX_EXPERT_GELU = 4          /* gelu(u), no gate */
} rlx_expert_function;

/* Begins with the defaults: rlx_expert_desc e = RLX_EXPERT_DESC_INIT; */
typedef struct rlx_expert_desc {
    uint32_t size;
    rlx_expert_function function;
    rlx_expert_matrix up, gate, down; /* [experts, hidden, d] twice, and [experts, d, hidden] */
    bool fused;         /* up is [experts, 2 hidden, d], the gate's rows first; there is no gate */
    bool weights_first; /* x is multiplied by the weights, and not what comes out */
    rlx_act_precision act; /* of packed weights: q8 reads activations in eight bits */
} rlx_expert_desc;
#define RLX_EXPERT_DESC_INIT                                                                      \
    {                                                                                             \
        sizeof(rlx_expert_desc), RLX_EXPERT_SWIGLU, RLX_EXPERT_MATRIX_INIT,                       \
            RLX_EXPERT_MATRIX_INIT, RLX_EXPERT_MATRIX_INIT, false, false, RLX_ACT_PRECISION_exact \
    }

/* x [..., d], with any number of rows: like x, the sum over j of weights[j] * down(f(gate, up)) of
 * expert ids[j]. Weights that are params are turned around once, and not in every run. ATTRIBUTE: a
 * matrix that the function needs is missing, or one is superfluous; SHAPE: sizes that do not go
 * together. An id of no expert is INDEX when it runs. */
RLX_API rlx_value rlx_experts(rlx_graph *g, rlx_value x, rlx_gate gate,
                              const rlx_expert_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
