/* decoder.c: the layers of a model, one after another:
 *
 *     x = token_embd[tokens]
 *     for each layer:
 *         x = x + attention(norm(x))
 *         x = x + feed_forward(norm(x))
 *     logits = norm(x) Wout
 *
 * with what a spec adds to it: norms after a part, factors, both parts at once. */
#include "llm/build.h"

static rlx_value activated(struct llm_build *b, rlx_value x)
{
    rlx_value positive;

    switch (b->spec->activation) {
    case LLM_SILU: return rlx_silu(b->g, x);
    case LLM_GELU: return rlx_gelu_approx(b->g, x);
    case LLM_GELU_EXACT: return rlx_gelu(b->g, x);
    case LLM_RELU_SQUARED: positive = rlx_relu(b->g, x); return rlx_mul(b->g, positive, positive);
    }
    return RLX_NO_VALUE;
}

/* Without a gate of its own, the first half of what `up` gives is the gate. */
rlx_value llm_feed_forward(struct llm_build *b, int64_t layer, rlx_value h)
{
    const int64_t width = b->spec->width, ffn = b->spec->layer[layer].ffn;
    rlx_value up;

    if (b->spec->layer[layer].experts)
        return llm_experts(b, layer, h);
    if (!b->spec->gated) {
        up = activated(b, llm_linear(b, layer, "ffn_up", h, ffn, width));
    } else if (b->w && !llm_has(b, layer, "ffn_gate.weight")) {
        rlx_value both = llm_linear(b, layer, "ffn_up", h, 2 * ffn, width);
        rlx_value gate = activated(b, rlx_narrow(b->g, both, -1, 0, ffn));
        up = rlx_mul(b->g, gate, rlx_narrow(b->g, both, -1, ffn, ffn));
    } else {
        rlx_value gate = activated(b, llm_linear(b, layer, "ffn_gate", h, ffn, width));
        up = rlx_mul(b->g, gate, llm_linear(b, layer, "ffn_up", h, ffn, width));
    }
    up = llm_norm(b, layer, b->spec->ffn_inner_norm, up, ffn);
    return llm_linear(b, layer, "ffn_down", up, width, ffn);
}

/* x and what a part made of it. */
static rlx_value joined(struct llm_build *b, int64_t layer, const char *post, const char *sum,
                        rlx_value x, rlx_value y)
{
    y = llm_norm(b, layer, post, y, b->spec->width);
    y = rlx_add(b->g, x, llm_scaled(b, y, (double)b->spec->residual_scale));
    return llm_norm(b, layer, sum, y, b->spec->width);
}

/* What tells tokens of each other. */
static rlx_value mixed(struct llm_build *b, int64_t layer, rlx_value h)
{
    switch (b->spec->layer[layer].mixer) {
    case LLM_ATTENTION:
        return b->spec->latent.rank ? llm_latent_attention(b, layer, h)
                                    : llm_attention(b, layer, h);
    case LLM_MAMBA: return llm_mamba(b, layer, h);
    case LLM_MAMBA2: return llm_mamba2(b, layer, h);
    case LLM_ATTENTION_AND_MAMBA2:
        return rlx_add(b->g, llm_attention(b, layer, h), llm_mamba2(b, layer, h));
    case LLM_SHORT_CONV: return llm_short_conv(b, layer, h);
    case LLM_DELTA_NET: return llm_delta_net(b, layer, h);
    case LLM_NO_MIXER: return llm_feed_forward(b, layer, h);
    }
    return RLX_NO_VALUE;
}

static rlx_value layer_of(struct llm_build *b, int64_t i, rlx_value x)
{
    const struct llm_spec *s = b->spec;
    rlx_value h = llm_norm(b, i, s->layer[i].plain ? NULL : s->attn_norm, x, s->width);
    rlx_value y = mixed(b, i, h);

    if (s->no_feed_forward || s->one_part)
        return joined(b, i, s->attn_post_norm, NULL, x, y);
    if (s->parallel) {
        if (s->ffn_norm)
            h = llm_norm(b, i, s->ffn_norm, x, s->width);
        y = rlx_add(b->g, y, llm_feed_forward(b, i, h));
        return joined(b, i, NULL, NULL, x, y);
    }
    x = joined(b, i, s->attn_post_norm, s->attn_sum_norm, x, y);
    h = llm_norm(b, i, s->ffn_norm, x, s->width);
    return joined(b, i, s->ffn_post_norm, s->ffn_sum_norm, x, llm_feed_forward(b, i, h));
}

/* Vectors of the tokens themselves, and of their places. */
static rlx_value first_vectors(struct llm_build *b, rlx_value tokens)
{
    const struct llm_spec *s = b->spec;
    const int32_t first = 0;
    rlx_value x = llm_scaled(b, llm_embed(b, tokens), (double)s->embed_scale);
    rlx_weight types;

    if (s->learned_positions)
        x = rlx_add(b->g, x,
                    llm_rows(b, "position_embd.weight", s->context, s->width, b->positions));
    if (s->token_types && llm_tensor(b->w, "token_types.weight", &types)) {
        rlx_value which = rlx_const(b->g, RLX_DTYPE_i32, RLX_LIST(1), &first, sizeof first);
        x = rlx_add(b->g, x, llm_rows(b, "token_types.weight", types.dim[0], s->width, which));
    }
    return llm_norm(b, LLM_GLOBAL, s->embed_norm, x, s->width);
}

rlx_value llm_decoder(struct llm_build *b, rlx_value tokens)
{
    const struct llm_spec *s = b->spec;
    rlx_value x = first_vectors(b, tokens);

    llm_side_begin(b, tokens, x);
    for (int64_t i = 0; i < s->layers; i++)
        x = llm_side(b, i, layer_of(b, i, x));
    return llm_norm(b, LLM_GLOBAL, s->output_norm, x, s->width);
}

rlx_value llm_head(struct llm_build *b, rlx_value x)
{
    x = llm_scaled(b, llm_unembed(b, x), (double)b->spec->logit_scale);
    return llm_capped(b, x, (double)b->spec->final_cap);
}
