/* llama.c: `rlx_llm_build`: a model of the "llama" kind as a graph that sees a whole text at once,
 * to be trained: from the sizes that a program gives. Its layers are those of decoder.c. */
#include "llm/llama.h"

#include <math.h>

#include "base/desc.h"
#include "base/mem.h"
#include "base/str.h"
#include "llm/build.h"
#include "llm/rotary.h"

/* ---- sizes ---- */

static rlx_status check_sizes(const rlx_llm_shape *s, struct diag *d)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"vocab", s->vocab}, {"context", s->context},  {"layers", s->layers},
                 {"width", s->width}, {"heads", s->heads},      {"kv_heads", s->kv_heads},
                 {"ffn", s->ffn},     {"head_dim", s->head_dim}};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value < 1 || sizes[i].value > 1 << 24)
            return diag_fail(d, RLX_ERROR_SHAPE, "%s is %lld; it must be from 1 to 2^24",
                             sizes[i].name, (long long)sizes[i].value);
    if (s->heads % s->kv_heads)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%lld heads cannot share %lld heads of keys and values: the second must "
                         "divide the first",
                         (long long)s->heads, (long long)s->kv_heads);
    if (s->head_dim % 2)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "a head has %lld numbers, which must be even: they are turned in pairs",
                         (long long)s->head_dim);
    if (s->lora_rank < 0 || s->lora_rank > 1 << 16 || !isfinite((double)s->lora_alpha))
        return diag_fail(d, RLX_ERROR_SHAPE, "lora_rank is %lld, or lora_alpha is not finite",
                         (long long)s->lora_rank);
    if (!(s->eps > 0 && s->eps < 1 && s->rope_base > 0 && s->rope_base < 1e12f))
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "eps or rope_base makes no sense");
    return RLX_OK;
}

rlx_status llm_read_shape(const rlx_llm_shape *theirs, rlx_llm_shape *own, struct diag *d)
{
    *own = (rlx_llm_shape){RLX_SIZED(rlx_llm_shape)};
    if (!theirs)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the shape is NULL");
    TRY(DESC_READ(rlx_llm_shape, own, theirs, d));
    own->kv_heads = own->kv_heads ? own->kv_heads : own->heads;
    own->lora_alpha = own->lora_alpha != 0 ? own->lora_alpha : (float)own->lora_rank;
    own->eps = own->eps != 0 ? own->eps : 1e-5f;
    own->rope_base = own->rope_base != 0 ? own->rope_base : 10000;
    if (own->head_dim == 0 && own->heads > 0) {
        if (own->width % own->heads)
            return diag_fail(d, RLX_ERROR_SHAPE,
                             "a width of %lld cannot be divided among %lld heads",
                             (long long)own->width, (long long)own->heads);
        own->head_dim = own->width / own->heads;
    }
    return check_sizes(own, d);
}

/* ---- the graph ---- */

static rlx_status spec_of(const rlx_llm_shape *s, struct llm_spec *out, struct diag *d)
{
    *out = (struct llm_spec){.vocab = s->vocab,
                             .context = s->context,
                             .width = s->width,
                             .eps = s->eps,
                             .attn_norm = "attn_norm",
                             .ffn_norm = "ffn_norm",
                             .output_norm = "output_norm",
                             .gated = true,
                             .causal = true,
                             .has_head = true,
                             .tied = s->tied,
                             .embed_scale = 1,
                             .residual_scale = 1,
                             .logit_scale = 1,
                             .lora_rank = s->lora_rank};
    out->rope[LLM_ROPE_GLOBAL] = (struct llm_rope){.channels = s->head_dim,
                                                   .style = RLX_ROPE_STYLE_interleaved,
                                                   .base = (double)s->rope_base,
                                                   .factor = 1,
                                                   .original = (double)s->context,
                                                   .magnitude = 1};
    if (s->lora_rank)
        out->lora_scale = s->lora_alpha / (float)s->lora_rank;
    TRY(llm_spec_layers(out, s->layers, d));
    for (int64_t i = 0; i < s->layers; i++)
        out->layer[i] = (struct llm_layer){.heads = s->heads,
                                           .kv_heads = s->kv_heads,
                                           .head_dim = s->head_dim,
                                           .value_dim = s->head_dim,
                                           .ffn = s->ffn};
    return RLX_OK;
}

/* Cosines and sines of all positions, as constants. */
static rlx_status make_tables(struct llm_build *b, struct diag *d)
{
    const struct llm_rope *r = &b->spec->rope[LLM_ROPE_GLOBAL];
    struct llm_turns turns;
    size_t bytes;

    if (!size_mul((size_t)b->rows, (size_t)r->channels / 2 * sizeof(float), &bytes) ||
        bytes > 1u << 30)
        return diag_fail(d, RLX_ERROR_LIMIT, "tables of %lld positions are too large",
                         (long long)b->rows);
    float *c = mem_alloc(mem_default(), bytes), *s = mem_alloc(mem_default(), bytes);
    rlx_status made = llm_turns_make(r, NULL, b->spec->context, &turns, d);
    if (made == RLX_OK && c && s) {
        const rlx_list shape = RLX_LIST(b->rows, turns.pairs);
        llm_turns_fill(&turns, 0, b->rows, c, s);
        b->cos[LLM_ROPE_GLOBAL] = rlx_const(b->g, RLX_DTYPE_f32, shape, c, bytes);
        b->sin[LLM_ROPE_GLOBAL] = rlx_const(b->g, RLX_DTYPE_f32, shape, s, bytes);
    } else if (made == RLX_OK) {
        made = diag_no_memory(d, bytes);
    }
    llm_turns_free(&turns);
    mem_free(mem_default(), c, bytes);
    mem_free(mem_default(), s, bytes);
    return made;
}

static rlx_status check_tokens(rlx_graph *g, rlx_value tokens, const rlx_llm_shape *s,
                               int64_t *batch, int64_t *length, struct diag *d)
{
    rlx_dtype dtype;
    rlx_list shape;
    rlx_error err;

    if (rlx_value_type(g, tokens, &dtype, &shape, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    if (shape.count != 2 || shape.at[1] < 1 || shape.at[1] > s->context)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "tokens are not [batch, length] with a length from 1 to %lld, the context",
                         (long long)s->context);
    *batch = shape.at[0];
    *length = shape.at[1];
    return RLX_OK;
}

static rlx_value build(rlx_graph *g, const rlx_llm_shape *shape, rlx_value tokens, struct diag *d)
{
    struct llm_spec spec = {0};
    struct llm_build b = {.g = g, .spec = &spec, .d = d};
    rlx_value logits = RLX_NO_VALUE;

    if (check_tokens(g, tokens, shape, &b.batch, &b.rows, d) == RLX_OK &&
        spec_of(shape, &spec, d) == RLX_OK && make_tables(&b, d) == RLX_OK)
        logits = llm_head(&b, llm_decoder(&b, tokens));
    llm_spec_free(&spec);
    return logits;
}

rlx_status rlx_llm_build(rlx_graph *g, const rlx_llm_shape *theirs, rlx_value tokens,
                         rlx_value *logits, rlx_error *err)
{
    rlx_llm_shape shape;
    struct diag d;

    diag_init(&d, "llm");
    if (!g || !logits)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", g ? "logits" : "g");
    else if (llm_read_shape(theirs, &shape, &d) == RLX_OK)
        *logits = build(g, &shape, tokens, &d);
    return d.count ? diag_report(&d, err) : rlx_graph_check(g, err);
}
