/* arch_layer_norm.c: decoders with layer norms. */
#include "llm/recipes.h"

/* Both parts read the same, and are added at once. */
static void one_norm(struct llm_spec *s)
{
    s->parallel = true;
    s->ffn_norm = NULL;
}

static void plain_gelu(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    s->activation = LLM_GELU;
    s->gated = false;
}

void llm_recipe_gpt2(struct llm_keys *k, struct llm_spec *s)
{
    plain_gelu(k, s);
    s->learned_positions = true;
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].rope = LLM_NO_ROPE;
}

void llm_recipe_starcoder2(struct llm_keys *k, struct llm_spec *s)
{
    plain_gelu(k, s);
}

void llm_recipe_phi2(struct llm_keys *k, struct llm_spec *s)
{
    plain_gelu(k, s);
    one_norm(s);
}

void llm_recipe_command_r(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    one_norm(s);
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

/* Larger models have one norm for both parts. */
void llm_recipe_stablelm(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    if (!has_layer_tensor(k, 0, "ffn_norm.weight"))
        one_norm(s);
}

void llm_recipe_gptneox(struct llm_keys *k, struct llm_spec *s)
{
    plain_gelu(k, s);
    s->parallel = key_bool(k, "use_parallel_residual", true);
}

/* Larger models have a norm of its own for attention. */
void llm_recipe_falcon(struct llm_keys *k, struct llm_spec *s)
{
    plain_gelu(k, s);
    one_norm(s);
    if (has_layer_tensor(k, 0, "attn_norm_2.weight")) {
        s->attn_norm = "attn_norm_2";
        s->ffn_norm = "attn_norm";
    }
}

void llm_recipe_nemotron(struct llm_keys *k, struct llm_spec *s)
{
    plain_gelu(k, s);
    s->activation = LLM_RELU_SQUARED;
}

void llm_recipe_orion(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
}

void llm_recipe_olmo(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    s->bare_norms = true;
    s->clamp = (float)key_float(k, "attention.clamp_kqv", 0);
}
