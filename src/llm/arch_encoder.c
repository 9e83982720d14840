/* arch_encoder.c: models that read a text as a whole, in both directions, and give vectors.
 *
 * Their GELU is the exact one, as they were trained with. Some programs take the form with tanh
 * that decoders have, which changes vectors by a few parts in ten thousand. */
#include "base/str.h"
#include "llm/recipes.h"

static void encoder(struct llm_keys *k, struct llm_spec *s)
{
    layer_norm_eps(k, s);
    s->embed_norm = "token_embd_norm";
    s->causal = key_bool(k, "attention.causal", false);
    s->has_head = false;
}

/* Norms of what a part gave and what it was given, and none before a part or in the end. */
static void norms_of_sums(struct llm_spec *s)
{
    s->attn_norm = s->ffn_norm = s->output_norm = NULL;
    s->attn_sum_norm = "attn_output_norm";
    s->ffn_sum_norm = "layer_output_norm";
    s->token_types = true;
}

static void bert_feed_forward(struct llm_spec *s)
{
    s->activation = LLM_GELU_EXACT;
    s->gated = false;
}

void llm_recipe_bert(struct llm_keys *k, struct llm_spec *s)
{
    encoder(k, s);
    norms_of_sums(s);
    bert_feed_forward(s);
    s->learned_positions = true;
    for (int64_t i = 0; i < s->layers; i++)
        s->layer[i].rope = LLM_NO_ROPE;
}

void llm_recipe_nomic_bert(struct llm_keys *k, struct llm_spec *s)
{
    encoder(k, s);
    norms_of_sums(s);
}

void llm_recipe_jina_bert_v3(struct llm_keys *k, struct llm_spec *s)
{
    encoder(k, s);
    norms_of_sums(s);
    bert_feed_forward(s);
}

/* One layer in three sees all of the text, the first among them. */
void llm_recipe_modern_bert(struct llm_keys *k, struct llm_spec *s)
{
    const int64_t window = key_int(k, "attention.sliding_window", 0);
    const rlx_str activation = key_text(k, "hidden_activation");

    encoder(k, s);
    s->activation = activation.ptr && str_eq(activation, STR("silu")) ? LLM_SILU : LLM_GELU_EXACT;
    s->rope[LLM_ROPE_LOCAL].base = key_float(k, "rope.freq_base_swa", 10000);
    s->layer[0].plain = !has_layer_tensor(k, 0, "attn_norm.weight");
    for (int64_t i = 0; window > 0 && i < s->layers; i++)
        if (i % 3) {
            s->layer[i].window = window;
            s->layer[i].rope = LLM_ROPE_LOCAL;
        }
}

void llm_recipe_gemma_embedding(struct llm_keys *k, struct llm_spec *s)
{
    llm_recipe_gemma3(k, s);
    s->causal = s->has_head = false;
}
