/* arch_hybrid.c: decoders with layers that keep a state of fixed size, alone or among others. */
#include "llm/recipes.h"

static void every_layer(struct llm_spec *s, enum llm_mixer mixer)
{
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].mixer = mixer;
}

/* Layers without heads of keys have the mixer instead of attention. */
static void headless_layers(struct llm_spec *s, enum llm_mixer mixer)
{
    for (int64_t i = 0; i < s->layers; i++)
        if (s->layer[i].kv_heads == 0)
            s->layer[i].mixer = mixer;
}

static void read_ssm(const struct llm_keys *k, struct llm_spec *s)
{
    s->ssm.taps = key_int(k, "ssm.conv_kernel", KEY_NEEDED);
    s->ssm.inner = key_int(k, "ssm.inner_size", KEY_NEEDED);
    s->ssm.state = key_int(k, "ssm.state_size", KEY_NEEDED);
    s->ssm.heads = key_int(k, "ssm.time_step_rank", KEY_NEEDED);
    s->ssm.groups = key_int(k, "ssm.group_count", 1);
}

/* ---- Mamba -------------------------------------------------------------------------------- */

void llm_recipe_mamba(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_ssm(k, s);
    s->ssm.inner_norms = key_bool(k, "ssm.dt_b_c_rms", false);
    s->no_feed_forward = true;
    every_layer(s, LLM_MAMBA);
}

void llm_recipe_mamba2(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_ssm(k, s);
    s->no_feed_forward = true;
    every_layer(s, LLM_MAMBA2);
}

void llm_recipe_granitehybrid(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_granite(k, s);
    read_ssm(k, s);
    llm_take_mixture(k, s);
    headless_layers(s, LLM_MAMBA2);
}

/* Attention and Mamba read the same norm, and are added at once. */
void llm_recipe_falcon_h1(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_ssm(k, s);
    every_layer(s, LLM_ATTENTION_AND_MAMBA2);
}

/* Each layer is one thing alone. */
void llm_recipe_nemotron_h(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_ssm(k, s);
    s->activation = LLM_RELU_SQUARED;
    s->gated = false;
    s->one_part = true;
    for (int64_t i = 0; i < s->layers; i++) {
        struct llm_layer *l = &s->layer[i];
        l->rope = LLM_NO_ROPE;
        if (l->ffn > 0)
            l->mixer = LLM_NO_MIXER;
        else if (l->kv_heads == 0)
            l->mixer = LLM_MAMBA2;
    }
}

/* ---- short convolutions ------------------------------------------------------------------- */

void llm_recipe_lfm2(struct llm_keys *k, struct llm_spec *s)
{
    int64_t window = key_int(k, "attention.sliding_window", 0);

    rms_eps(k, s);
    s->output_norm = "token_embd_norm";
    s->ssm.taps = key_int(k, "shortconv.l_cache", KEY_NEEDED);
    headless_layers(s, LLM_SHORT_CONV);
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].window = window;
}

void llm_recipe_lfm2moe(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_lfm2(k, s);
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].window = 0;
    llm_take_gated_mixture(k, s);
    s->experts.normalise = true;
}

/* ---- the gated delta rule ----------------------------------------------------------------- */

static bool is_recurrent(const struct llm_keys *k, int64_t i)
{
    if (key_is_array(k, "attention.recurrent_layers"))
        return key_int_of(k, "attention.recurrent_layers", i, 0) != 0;
    int64_t interval = key_int(k, "full_attention_interval", 4);
    return interval < 1 || (i + 1) % interval != 0;
}

static void delta_layers(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_ssm(k, s);
    s->ffn_norm = "post_attention_norm";
    s->gated_queries = true;
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].mixer = is_recurrent(k, i) ? LLM_DELTA_NET : LLM_ATTENTION;
    if (s->ssm.heads * s->ssm.state != s->ssm.inner)
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED,
                    "%lld heads of %lld numbers are not ssm.inner_size, %lld",
                    (long long)s->ssm.heads, (long long)s->ssm.state, (long long)s->ssm.inner);
}

void llm_recipe_qwen35(struct llm_keys *k, struct llm_spec *s)
{
    delta_layers(k, s);
}

void llm_recipe_qwen35moe(struct llm_keys *k, struct llm_spec *s)
{
    delta_layers(k, s);
    llm_need_mixture(k, s);
    s->experts.ffn = key_int(k, "expert_feed_forward_length", KEY_NEEDED);
}

void llm_recipe_qwen3next(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_qwen35moe(k, s);
    s->ssm.neighbours = true;
}
