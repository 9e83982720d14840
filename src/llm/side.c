/* side.c: a small vector of each token for each layer, which reads it after its other parts:
 *
 *     side = (table[token] sqrt(n) + norm(x W) / sqrt(width)) / sqrt(2)    [layers, n]
 *     x = x + norm((gelu(x In) * side[layer]) Out)
 *
 * where x W is of the vector that the token begins as. docs/spec/llm-architectures.md 5.3. */
#include <math.h>

#include "llm/build.h"

void llm_side_begin(struct llm_build *b, rlx_value tokens, rlx_value x)
{
    const struct llm_spec *s = b->spec;
    const int64_t n = s->side, all = s->layers * n;

    if (n == 0)
        return;
    rlx_value own = llm_rows(b, "per_layer_token_embd.weight", s->vocab, all, tokens);
    own = llm_scaled(b, own, sqrt((double)n));
    x = llm_linear(b, LLM_GLOBAL, "per_layer_model_proj", x, all, s->width);
    x = llm_scaled(b, x, 1 / sqrt((double)s->width));
    x = rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, s->layers, n));
    x = llm_norm(b, LLM_GLOBAL, "per_layer_proj_norm", x, n);
    x = rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, all));
    b->side = llm_scaled(b, rlx_add(b->g, own, x), sqrt(0.5));
}

/* What a layer gives may be scaled as well. */
static rlx_value layer_scaled(struct llm_build *b, int64_t layer, rlx_value x)
{
    return llm_has(b, layer, "layer_output_scale.weight")
               ? rlx_mul(b->g, x, llm_vector(b, layer, "layer_output_scale.weight", RLX_LIST(1)))
               : x;
}

rlx_value llm_side(struct llm_build *b, int64_t layer, rlx_value x)
{
    const int64_t n = b->spec->side, width = b->spec->width;

    if (n) {
        rlx_value y = rlx_gelu_approx(b->g, llm_linear(b, layer, "inp_gate", x, n, width));
        y = rlx_mul(b->g, y, rlx_narrow(b->g, b->side, -1, layer * n, n));
        y = llm_linear(b, layer, "proj", y, width, n);
        x = rlx_add(b->g, x, llm_norm(b, layer, "post_norm", y, width));
    }
    return layer_scaled(b, layer, x);
}
