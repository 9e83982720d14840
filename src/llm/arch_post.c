/* arch_post.c: decoders with a norm after attention and after the feed-forward part, besides the
 * one before or in its place. */
#include "llm/recipes.h"

static void post_norms(struct llm_spec *s)
{
    s->attn_post_norm = "post_attention_norm";
    s->ffn_post_norm = "post_ffw_norm";
}

/* ---- Gemma -------------------------------------------------------------------------------- */

void llm_recipe_gemma(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    s->activation = LLM_GELU;
    s->embed_scale = sqrtf((float)s->width);
}

/* The largest model of a generation scales scores by the width of a head as the others have it. */
static void score_scale(struct llm_spec *s, int64_t layers_of_largest)
{
    if (s->layers == layers_of_largest && s->layer[0].heads > 0) {
        const int64_t head = s->width / s->layer[0].heads;
        s->score_scale = 1 / sqrtf((float)head);
    }
}

void llm_recipe_gemma2(struct llm_keys *k, struct llm_spec *s)
{
    int64_t window = key_int(k, "attention.sliding_window", 4096);

    llm_recipe_gemma(k, s);
    post_norms(s);
    s->tied = true;
    s->attn_cap = (float)key_float(k, "attn_logit_softcapping", 50);
    s->final_cap = (float)key_float(k, "final_logit_softcapping", 30);
    score_scale(s, 46);
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].window = is_local(i, 2) ? window : 0;
}

void llm_recipe_gemma3(struct llm_keys *k, struct llm_spec *s)
{
    int64_t window = key_int(k, "attention.sliding_window", 0);
    int64_t period = key_is_array(k, "attention.sliding_window_pattern")
                         ? 6
                         : key_int(k, "attention.sliding_window_pattern", 6);
    struct llm_rope *local = &s->rope[LLM_ROPE_LOCAL];

    llm_recipe_gemma(k, s);
    post_norms(s);
    s->final_cap = (float)key_float(k, "final_logit_softcapping", 0);
    score_scale(s, 62);
    local->base = key_float(k, "rope.freq_base_swa", 10000);
    local->factor = 1;
    for (int64_t i = 0; window > 0 && i < s->layers; i++)
        if (is_local(i, period)) {
            s->layer[i].window = window;
            s->layer[i].rope = LLM_ROPE_LOCAL;
        }
}

static void read_local(const struct llm_keys *k, struct llm_spec *s)
{
    struct llm_rope *local = &s->rope[LLM_ROPE_LOCAL];
    const int64_t window = key_int(k, "attention.sliding_window", KEY_NEEDED),
                  key = key_int(k, "attention.key_length_swa", s->layer[0].head_dim),
                  value = key_int(k, "attention.value_length_swa", s->layer[0].value_dim);

    local->base = key_float(k, "rope.freq_base_swa", 10000);
    local->channels = key_int(k, "rope.dimension_count_swa", key);
    local->factor = 1;
    local->divisors = NULL;
    for (int64_t i = 0; i < s->layers; i++)
        if (key_int_of(k, "attention.sliding_window_pattern", i, KEY_NEEDED)) {
            s->layer[i].window = window;
            s->layer[i].rope = LLM_ROPE_LOCAL;
            s->layer[i].head_dim = key;
            s->layer[i].value_dim = value;
        }
}

/* The last layers read keys and values of those before them; each kind must have had one. */
static void borrow(const struct llm_keys *k, struct llm_spec *s)
{
    const int64_t own = s->layers - key_int(k, "attention.shared_kv_layers", 0);
    bool seen[LLM_ROPES] = {false};

    for (int64_t i = 0; i < s->layers; i++) {
        struct llm_layer *l = &s->layer[i];
        l->borrows = i >= own;
        if (l->borrows && !seen[l->rope])
            (diag_fail)(k->d, RLX_ERROR_FORMAT,
                        "attention.shared_kv_layers: layer %lld has no layer of its kind before "
                        "it to read keys of",
                        (long long)i);
        seen[l->rope] = true;
    }
}

void llm_recipe_gemma4(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_gemma(k, s);
    post_norms(s);
    s->final_cap = (float)key_float(k, "final_logit_softcapping", 30);
    s->score_scale = 1;
    s->normed_values = true;
    s->side = key_int(k, "embedding_length_per_layer_input", 0);
    read_local(k, s);
    borrow(k, s);
    if (has_layer_tensor(k, 0, "ffn_gate_inp.weight"))
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED, "Gemma 4 with experts is not supported");
}

/* ---- others ------------------------------------------------------------------------------- */

/* No norm before a part; local layers do not know how positions were stretched. */
void llm_recipe_olmo2(struct llm_keys *k, struct llm_spec *s)
{
    int64_t window = key_int(k, "attention.sliding_window", 0);
    struct llm_rope *local = &s->rope[LLM_ROPE_LOCAL];

    rms_eps(k, s);
    post_norms(s);
    s->attn_norm = s->ffn_norm = NULL;
    local->factor = local->magnitude = 1;
    local->scaling = LLM_ROPE_LINEAR;
    for (int64_t i = 0; window > 0 && i < s->layers; i++)
        if (is_local(i, 4)) {
            s->layer[i].window = window;
            s->layer[i].rope = LLM_ROPE_LOCAL;
        }
}

void llm_recipe_exaone4(struct llm_keys *k, struct llm_spec *s)
{
    int64_t window = s->layers == 64 ? key_int(k, "attention.sliding_window", 4096) : 0;

    rms_eps(k, s);
    post_norms(s);
    s->attn_norm = s->ffn_norm = NULL;
    for (int64_t i = 0; window > 0 && i < s->layers; i++) {
        s->layer[i].window = is_local(i, 4) ? window : 0;
        s->layer[i].rope = is_local(i, 4) ? LLM_ROPE_GLOBAL : LLM_NO_ROPE;
    }
}

void llm_recipe_glm4(struct llm_keys *k, struct llm_spec *s)
{
    rms_eps(k, s);
    rope_style(s, RLX_ROPE_STYLE_interleaved);
    post_norms(s);
}
