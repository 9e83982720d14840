/* recipes.h: one function per architecture, of arch_*.c: how it differs from what spec.c reads. */
#ifndef LLM_RECIPES_H
#define LLM_RECIPES_H

#include <math.h>

#include "llm/keys.h"

#define ARCH(name, recipe, text) void llm_recipe_##recipe(struct llm_keys *k, struct llm_spec *s);
#include "llm/arch.def"

/* ---- what several of them say ---- */

static inline void rms_eps(const struct llm_keys *k, struct llm_spec *s)
{
    s->eps = (float)key_float(k, "attention.layer_norm_rms_epsilon", KEY_NEEDED_F);
}

static inline void layer_norm_eps(const struct llm_keys *k, struct llm_spec *s)
{
    s->norm = LLM_NORM_LAYER;
    s->eps = (float)key_float(k, "attention.layer_norm_epsilon", KEY_NEEDED_F);
}

static inline void rope_style(struct llm_spec *s, rlx_rope_style style)
{
    s->rope[LLM_ROPE_GLOBAL].style = s->rope[LLM_ROPE_LOCAL].style = style;
}

/* Layer i sees `window` keys unless it is the last of a period. */
static inline bool is_local(int64_t i, int64_t period)
{
    return period > 0 && i % period < period - 1;
}

/* arch_experts.c: the experts of a file that has some, of an architecture that need not; of one
 * that has to. */
void llm_take_mixture(struct llm_keys *k, struct llm_spec *s);
void llm_need_mixture(struct llm_keys *k, struct llm_spec *s);
void llm_take_gated_mixture(struct llm_keys *k, struct llm_spec *s);

#endif
