/* arch_plain.c: decoders with a norm before each part, as Llama has them. */
#include "llm/recipes.h"

void llm_recipe_llama(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    if (s->rope[LLM_ROPE_GLOBAL].channels != s->layer[0].head_dim)
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED,
                    "rope.dimension_count is %lld, where a head has %lld numbers",
                    (long long)s->rope[LLM_ROPE_GLOBAL].channels, (long long)s->layer[0].head_dim);
}

void llm_recipe_qwen2(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
}

void llm_recipe_qwen3(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
}

/* The widths of its windows are in the file, but it was trained to see everything. */
void llm_recipe_phi3(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
}

void llm_recipe_mistral3(struct llm_keys *k, struct llm_spec *s)
{
    struct llm_rope *r = &s->rope[LLM_ROPE_GLOBAL];

    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    r->beta_fast = key_float(k, "rope.scaling.yarn_beta_fast", 32);
    r->beta_slow = key_float(k, "rope.scaling.yarn_beta_slow", 1);
    if (key_float(k, "attention.temperature_scale", 0) != 0)
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED,
                    "attention.temperature_scale: queries scaled by their position are not "
                    "supported");
}

/* Without "finetuned" the family has no positions at all. */
void llm_recipe_granite(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    s->embed_scale = (float)key_float(k, "embedding_scale", 1);
    s->residual_scale = (float)key_float(k, "residual_scale", 1);
    s->score_scale = (float)key_float(k, "attention.scale", 0);
    s->logit_scale = (float)(1 / key_float(k, "logit_scale", KEY_NEEDED_F));
    if (s->embed_scale == 0)
        s->embed_scale = 1;
    if (s->residual_scale == 0)
        s->residual_scale = 1;
    if (!key_bool(k, "rope.scaling.finetuned", true))
        for (int64_t i = 0; i < s->layers; i++)
            s->layer[i].rope = LLM_NO_ROPE;
}

void llm_recipe_smollm3(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    for (int64_t i = 3; i < s->layers; i += 4)
        s->layer[i].rope = LLM_NO_ROPE;
}

/* Its norm before the feed-forward part has the name that others give to one after attention. */
void llm_recipe_seed_oss(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    s->ffn_norm = "post_attention_norm";
}

/* ---- layer norms ---- */

void llm_recipe_gpt2(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    s->activation = LLM_GELU;
    s->gated = false;
    s->learned_positions = true;
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].rope = LLM_NO_ROPE;
}

void llm_recipe_starcoder2(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    s->activation = LLM_GELU;
    s->gated = false;
}

void llm_recipe_phi2(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    s->activation = LLM_GELU;
    s->gated = false;
    s->parallel = true;
}

void llm_recipe_command_r(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    s->parallel = true;
    s->logit_scale = (float)key_float(k, "logit_scale", KEY_NEEDED_F);
}

/* Only layers with a window know positions. */
void llm_recipe_cohere2(struct llm_keys *k, struct llm_spec *s)
{
    int64_t window = key_int(k, "attention.sliding_window", KEY_NEEDED);

    llm_recipe_command_r(k, s);
    for (int64_t i = 0; i < s->layers; i++) {
        s->layer[i].window = is_local(i, 4) ? window : 0;
        s->layer[i].rope = is_local(i, 4) ? LLM_ROPE_GLOBAL : LLM_NO_ROPE;
    }
}
