/* arch_experts.c: decoders whose feed-forward parts are experts: docs/spec/llm-architectures.md 3.5
 * has the table. */
#include "llm/recipes.h"

/* Layers that have a router have experts. */
static void find_experts(const struct llm_keys *k, struct llm_spec *s)
{
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].experts = has_layer_tensor(k, i, "ffn_gate_inp.weight");
}

/* What keys say; the width of a shared expert is that of so many of the others. */
static void read_experts(const struct llm_keys *k, struct llm_spec *s)
{
    struct llm_experts *e = &s->experts;

    e->count = key_int(k, "expert_count", KEY_NEEDED);
    e->used = key_int(k, "expert_used_count", KEY_NEEDED);
    e->ffn = key_int(k, "expert_feed_forward_length", s->layer[0].ffn);
    e->shared_ffn = key_int(k, "expert_shared_feed_forward_length", 0);
    e->groups = key_int(k, "expert_group_count", 0);
    e->groups_used = key_int(k, "expert_group_used_count", 0);
    find_experts(k, s);
}

/* The way a gate computes, where the file says: numbers from 1 on. */
static void read_gate(const struct llm_keys *k, struct llm_spec *s, rlx_gate_function usual)
{
    int64_t given = key_int(k, "expert_gating_func", 0);

    if (given < 0 || given > 4)
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED, "expert_gating_func is %lld; 1 to 4 are known",
                    (long long)given);
    s->experts.function = given ? (rlx_gate_function)(given - 1) : usual;
    s->experts.normalise = key_bool(k, "expert_weights_norm", false);
    s->experts.scale = (float)key_float(k, "expert_weights_scale", 0);
}

void llm_need_mixture(struct llm_keys *k, struct llm_spec *s)
{
    read_experts(k, s);
    s->experts.normalise = true;
}

/* Mixtral calls itself "llama". */
void llm_take_mixture(struct llm_keys *k, struct llm_spec *s)
{
    if (key_int(k, "expert_count", 0) == 0)
        return;
    llm_need_mixture(k, s);
    s->experts.ffn = s->layer[0].ffn;
}

/* The same where keys say how the gate computes. */
void llm_take_gated_mixture(struct llm_keys *k, struct llm_spec *s)
{
    read_experts(k, s);
    read_gate(k, s, RLX_GATE_SIGMOID);
}

void llm_recipe_qwen2moe(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_experts(k, s);
    if (s->experts.used > 0 && !key_exists(k, "expert_feed_forward_length"))
        s->experts.ffn = s->layer[0].ffn / s->experts.used;
    if (s->experts.shared_ffn == 0)
        s->experts.shared_ffn = s->layer[0].ffn;
}

void llm_recipe_qwen3moe(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_experts(k, s);
    if (s->experts.used > 0 && !key_exists(k, "expert_feed_forward_length"))
        s->experts.ffn = s->layer[0].ffn / s->experts.used;
    s->experts.normalise = true;
}

void llm_recipe_olmoe(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_experts(k, s);
    s->experts.ffn = s->layer[0].ffn;
}

void llm_recipe_granitemoe(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_granite(k, s);
    read_experts(k, s);
    s->experts.ffn = s->layer[0].ffn;
    s->experts.normalise = true;
}

/* The shared expert is as wide as several of the others. */
static void read_shared(const struct llm_keys *k, struct llm_spec *s)
{
    s->experts.ffn = key_int(k, "expert_feed_forward_length", KEY_NEEDED);
    s->experts.shared_ffn = s->experts.ffn * key_int(k, "expert_shared_count", 0);
}

/* Scores also go to a sink of each head, and experts are clamped. */
void llm_recipe_gpt_oss(struct llm_keys *k, struct llm_spec *s)
{
    int64_t window = key_int(k, "attention.sliding_window", KEY_NEEDED);

    rms_eps(k, s);
    s->ffn_norm = "post_attention_norm";
    read_experts(k, s);
    s->experts.function = RLX_GATE_SOFTMAX_OF_CHOSEN;
    s->experts.activation = RLX_EXPERT_CLAMPED;
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].window = is_local(i, 2) ? window : 0;
}

void llm_recipe_glm4moe(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    s->ffn_norm = "post_attention_norm";
    read_experts(k, s);
    read_gate(k, s, RLX_GATE_SIGMOID);
    read_shared(k, s);
}

void llm_recipe_minimax_m2(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    read_experts(k, s);
    read_gate(k, s, RLX_GATE_SIGMOID);
    s->experts.normalise = true;
}

void llm_recipe_ernie4_5_moe(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    read_experts(k, s);
    s->experts.normalise = true;
}

/* ---- keys and values of one short row ----------------------------------------------------- */

/* Where the file has a matrix for each head, one head of keys serves all. */
static void read_latent(const struct llm_keys *k, struct llm_spec *s)
{
    struct llm_latent *t = &s->latent;

    t->by_head = has_layer_tensor(k, 0, "attn_k_b.weight");
    t->rank = key_int(k, "attention.kv_lora_rank", KEY_NEEDED);
    t->key = key_int(k, "attention.key_length_mla", t->by_head ? KEY_NEEDED : s->layer[0].head_dim);
    t->value =
        key_int(k, "attention.value_length_mla", t->by_head ? KEY_NEEDED : s->layer[0].value_dim);
    if (has_layer_tensor(k, 0, "attn_q_a.weight"))
        t->query_rank = key_int(k, "attention.q_lora_rank", KEY_NEEDED);
    for (int64_t i = 0; i < s->layers; i++) {
        struct llm_layer *l = &s->layer[i];
        l->kv_heads = t->by_head ? 1 : l->heads;
        l->head_dim = t->by_head ? t->rank + s->rope[LLM_ROPE_GLOBAL].channels : t->key;
        l->value_dim = t->by_head ? t->rank : t->value;
    }
}

/* Stretched positions make scores larger. Files have a tenth of the multiplier; turned channels
 * keep their size where there is one. */
static void read_stretch(struct llm_spec *s)
{
    struct llm_rope *r = &s->rope[LLM_ROPE_GLOBAL];
    const double multiplier = 10 * r->log_multiplier,
                 grown = r->scaling == LLM_ROPE_YARN && r->factor > 1 ? log(r->factor) : 0;
    double scale = r->magnitude * (1 + 0.1 * multiplier * grown);

    if (multiplier == 0)
        scale *= 1 + 0.1 * grown;
    r->log_multiplier = multiplier != 0;
    if (s->latent.key > 0)
        s->score_scale = (float)(scale * scale / sqrt((double)s->latent.key));
}

/* GLM 4.7 Flash calls itself "deepseek2"; its first files do not say how their gate computes. */
static bool is_flash(const struct llm_spec *s)
{
    return (s->layers == 47 || s->layers == 48) && s->vocab == 154880;
}

void llm_recipe_deepseek2(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    read_latent(k, s);
    read_stretch(s);
    read_experts(k, s);
    read_gate(k, s, is_flash(s) ? RLX_GATE_SIGMOID : RLX_GATE_SOFTMAX);
    read_shared(k, s);
    if ((s->temper = key_float(k, "attention.temperature_scale", 0)) != 0)
        s->temper_rows = (double)key_int(k, "attention.temperature_length", KEY_NEEDED);
}
