/* mixture.c: a feed-forward part of many experts: a gate chooses a few of them for each token, and
 * one more may see them all. */
#include "llm/build.h"

static rlx_gate choose(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_experts *e = &b->spec->experts;
    const rlx_gate_desc desc = {RLX_SIZED(rlx_gate_desc),    .k = e->used,
                                .function = e->function,     .normalise = e->normalise,
                                .scale = e->scale,           .group_count = e->groups,
                                .group_used = e->groups_used};
    rlx_value logits = llm_linear(b, layer, "ffn_gate_inp", h, e->count, b->spec->width);
    rlx_value bias = RLX_NO_VALUE;

    if (llm_has(b, layer, "exp_probs_b.bias"))
        bias = llm_vector(b, layer, "exp_probs_b.bias", RLX_LIST(e->count));
    return rlx_gate_experts(b->g, logits, bias, &desc);
}

static bool has_gate(rlx_expert_function f)
{
    return f == RLX_EXPERT_SWIGLU || f == RLX_EXPERT_GEGLU || f == RLX_EXPERT_CLAMPED;
}

static rlx_value routed(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_experts *e = &b->spec->experts;
    const int64_t n = e->count, width = b->spec->width;
    rlx_expert_desc desc = RLX_EXPERT_DESC_INIT;

    desc.function = e->activation;
    desc.act = b->exact ? RLX_ACT_PRECISION_exact : RLX_ACT_PRECISION_q8;
    desc.fused = llm_has(b, layer, "ffn_gate_up_exps.weight");
    if (desc.fused)
        desc.up = llm_expert_matrix(b, layer, "ffn_gate_up_exps", n, 2 * e->ffn, width);
    else
        desc.up = llm_expert_matrix(b, layer, "ffn_up_exps", n, e->ffn, width);
    if (!desc.fused && has_gate(e->activation))
        desc.gate = llm_expert_matrix(b, layer, "ffn_gate_exps", n, e->ffn, width);
    desc.down = llm_expert_matrix(b, layer, "ffn_down_exps", n, width, e->ffn);
    if (b->d->count)
        return RLX_NO_VALUE;
    return rlx_experts(b->g, h, choose(b, layer, h), &desc);
}

static rlx_value shared(struct llm_build *b, int64_t layer, rlx_value h)
{
    const int64_t ffn = b->spec->experts.shared_ffn, width = b->spec->width;
    rlx_value y = llm_linear(b, layer, "ffn_up_shexp", h, ffn, width);

    if (b->spec->experts.activation == RLX_EXPERT_RELU_SQUARED) {
        y = rlx_relu(b->g, y);
        y = rlx_mul(b->g, y, y);
    } else {
        rlx_value gate = rlx_silu(b->g, llm_linear(b, layer, "ffn_gate_shexp", h, ffn, width));
        y = rlx_mul(b->g, gate, y);
    }
    y = llm_linear(b, layer, "ffn_down_shexp", y, width, ffn);
    if (!llm_has(b, layer, "ffn_gate_inp_shexp.weight"))
        return y;
    rlx_value open = llm_vector(b, layer, "ffn_gate_inp_shexp.weight", RLX_LIST(width));
    open = rlx_reduce_sum(b->g, rlx_mul(b->g, h, open), RLX_LIST(-1), true);
    return rlx_mul(b->g, y, rlx_sigmoid(b->g, open));
}

rlx_value llm_experts(struct llm_build *b, int64_t layer, rlx_value h)
{
    rlx_value y = routed(b, layer, h);

    return b->spec->experts.shared_ffn ? rlx_add(b->g, y, shared(b, layer, h)) : y;
}
