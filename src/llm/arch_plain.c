/* arch_plain.c: decoders with a norm before each part, as Llama has them. */
#include "llm/recipes.h"

void llm_recipe_llama(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    if (s->layer[0].head_dim > 0 && s->rope[LLM_ROPE_GLOBAL].channels != s->layer[0].head_dim)
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED,
                    "rope.dimension_count is %lld, where a head has %lld numbers",
                    (long long)s->rope[LLM_ROPE_GLOBAL].channels, (long long)s->layer[0].head_dim);
    llm_take_mixture(k, s);
}

/* Neighbouring channels are turned, and possibly not all of them. */
void llm_recipe_plain(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
}

/* The same, but channels of the first half are turned with those of the second. Biases, norms of
 * queries and keys, and fused matrices come with their tensors. Some files have the width of a
 * window, but none of these uses one. */
void llm_recipe_plain_half(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
}

void llm_recipe_mistral3(struct llm_keys *k, struct llm_spec *s)
{
    struct llm_rope *r = &s->rope[LLM_ROPE_GLOBAL];

    llm_recipe_plain(k, s);
    r->beta_fast = key_float(k, "rope.scaling.yarn_beta_fast", 32);
    r->beta_slow = key_float(k, "rope.scaling.yarn_beta_slow", 1);
    s->temper = key_float(k, "attention.temperature_scale", 0);
    s->temper_rows = r->original;
}

/* The larger model of the name has slopes in place of turned channels. */
void llm_recipe_baichuan(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_plain(k, s);
    if (s->layers == 40)
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED,
                    "Baichuan 13B, whose scores depend on distances, is not supported");
}

/* Factors, where 0 is none. */
static void scales(struct llm_keys *k, struct llm_spec *s, double embed, double residual,
                   double logit)
{
    embed = key_float(k, "embedding_scale", embed);
    residual = key_float(k, "residual_scale", residual);
    logit = key_float(k, "logit_scale", logit);
    s->embed_scale = embed != 0 ? (float)embed : 1;
    s->residual_scale = residual != 0 ? (float)residual : 1;
    s->logit_scale = logit != 0 ? (float)(1 / logit) : 1;
}

/* Files from before there were keys for its factors go without. */
void llm_recipe_minicpm(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_plain(k, s);
    scales(k, s, 12, 1.4 / sqrt((double)s->layers), 256.0 / (double)s->width);
}

/* Without "finetuned" the family has no positions at all. */
void llm_recipe_granite(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_plain(k, s);
    scales(k, s, 1, 1, KEY_NEEDED_F);
    s->score_scale = (float)key_float(k, "attention.scale", 0);
    if (!key_bool(k, "rope.scaling.finetuned", true))
        for (int64_t i = 0; i < s->layers; i++)
            s->layer[i].rope = LLM_NO_ROPE;
}

void llm_recipe_smollm3(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_plain(k, s);
    for (int64_t i = 3; i < s->layers; i += 4)
        s->layer[i].rope = LLM_NO_ROPE;
}

/* Its norm before the feed-forward part has the name that others give to one after attention. */
void llm_recipe_seed_oss(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    s->ffn_norm = "post_attention_norm";
}

void llm_recipe_hunyuan(struct llm_keys *k, struct llm_spec *s)
{
    const double alpha = key_float(k, "rope.scaling.alpha", 0), dim = (double)s->layer[0].head_dim;

    rms_eps(k, s);
    s->turned_first = true;
    if (alpha > 0 && dim > 2)
        s->rope[LLM_ROPE_GLOBAL].base *= pow(alpha, dim / (dim - 2));
}

void llm_recipe_arcee(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_plain(k, s);
    s->activation = LLM_RELU_SQUARED;
    s->gated = false;
}

/* The width in its files is that of both halves of the feed-forward part. */
void llm_recipe_qwen(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].ffn /= 2;
}

void llm_recipe_bitnet(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    s->attn_inner_norm = "attn_sub_norm";
    s->ffn_inner_norm = "ffn_sub_norm";
    s->tied = true;
}
