/* latent.c: attention whose keys and values are made of one short row c per token, for all heads:
 * docs/spec/llm-architectures.md 5.7.
 *
 * A head's query q has a part that meets K c, its key without a position, and a part that is turned
 * and meets a turned key, which all heads share. Where the file has K and V of each head by
 * themselves, q (K c) is computed as (K^T q) c and the sum over keys of p (V c) as V (sum p c), so
 * that the cache holds rows of c only. Where it has them in one matrix, keys and values of each
 * head are made and kept. */
#include "llm/build.h"

static rlx_value split(struct llm_build *b, rlx_value x, int64_t heads, int64_t each)
{
    return rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, heads, each));
}

static rlx_value flat(struct llm_build *b, rlx_value x, int64_t width)
{
    return rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, width));
}

static rlx_value joined(struct llm_build *b, rlx_value first, rlx_value second)
{
    const rlx_value both[] = {first, second};

    return rlx_concat(b->g, both, 2, -1);
}

/* x [.., heads * channels], all of it turned by its position. */
static rlx_value turned(struct llm_build *b, rlx_value x)
{
    const struct llm_rope *r = &b->spec->rope[LLM_ROPE_GLOBAL];

    return rlx_rope(b->g, x, b->cos[LLM_ROPE_GLOBAL], b->sin[LLM_ROPE_GLOBAL], r->channels,
                    r->channels, r->style, -2);
}

/* Each head of x [batch, rows, heads, in] times its own matrix. */
static rlx_value by_head(struct llm_build *b, int64_t layer, const char *part, rlx_value x,
                         int64_t out, int64_t in)
{
    x = rlx_transpose(b->g, x, RLX_LIST(0, 2, 1, 3));
    x = llm_each(b, layer, part, x, b->spec->layer[layer].heads, out, in);
    return rlx_transpose(b->g, x, RLX_LIST(0, 2, 1, 3));
}

static rlx_value queries(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_spec *s = b->spec;
    const int64_t heads = s->layer[layer].heads, rank = s->latent.query_rank;

    if (rank == 0)
        return llm_linear(b, layer, "attn_q", h, heads * s->latent.key, s->width);
    h = llm_linear(b, layer, "attn_q_a", h, rank, s->width);
    h = llm_norm(b, layer, "attn_q_a_norm", h, rank);
    return llm_linear(b, layer, "attn_q_b", h, heads * s->latent.key, rank);
}

/* With K and V of each head by themselves: q, c and the turned key meet in one short row. */
static rlx_value over_rows(struct llm_build *b, int64_t layer, rlx_value q, rlx_value q_turned,
                           rlx_value c, rlx_value k_turned)
{
    const struct llm_latent *t = &b->spec->latent;
    const struct llm_layer *l = &b->spec->layer[layer];
    const int64_t still = t->key - b->spec->rope[LLM_ROPE_GLOBAL].channels;

    q = joined(b, by_head(b, layer, "attn_k_b", q, t->rank, still), q_turned);
    q = llm_tempered(b, flat(b, q, l->heads * l->head_dim));
    rlx_value y = llm_attend(b, layer, q, joined(b, c, k_turned), c);
    y = by_head(b, layer, "attn_v_b", split(b, y, l->heads, t->rank), t->value, t->rank);
    return flat(b, y, l->heads * t->value);
}

/* With one matrix for all of them. */
static rlx_value over_heads(struct llm_build *b, int64_t layer, rlx_value q, rlx_value q_turned,
                            rlx_value c, rlx_value k_turned)
{
    const struct llm_latent *t = &b->spec->latent;
    const int64_t heads = b->spec->layer[layer].heads,
                  turns = b->spec->rope[LLM_ROPE_GLOBAL].channels, still = t->key - turns;
    rlx_value both = llm_linear(b, layer, "attn_kv_b", c, heads * (still + t->value), t->rank);

    both = split(b, both, heads, still + t->value);
    k_turned =
        rlx_expand(b->g, split(b, k_turned, 1, turns), RLX_LIST(b->batch, b->rows, heads, turns));
    rlx_value k = joined(b, llm_columns(b, both, 0, still), k_turned);
    q = llm_tempered(b, flat(b, joined(b, q, q_turned), heads * t->key));
    return llm_attend(b, layer, q, flat(b, k, heads * t->key),
                      flat(b, llm_columns(b, both, still, t->value), heads * t->value));
}

rlx_value llm_latent_attention(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_latent *t = &b->spec->latent;
    const int64_t heads = b->spec->layer[layer].heads, width = b->spec->width,
                  turns = b->spec->rope[LLM_ROPE_GLOBAL].channels, still = t->key - turns;
    rlx_value q = split(b, queries(b, layer, h), heads, t->key);
    rlx_value q_turned = turned(b, flat(b, llm_columns(b, q, still, turns), heads * turns));
    rlx_value all = llm_linear(b, layer, "attn_kv_a_mqa", h, t->rank + turns, width);
    rlx_value c = llm_norm(b, layer, "attn_kv_a_norm", llm_columns(b, all, 0, t->rank), t->rank);
    rlx_value k_turned = turned(b, llm_columns(b, all, t->rank, turns));

    q = llm_columns(b, q, 0, still);
    q_turned = split(b, q_turned, heads, turns);
    h = t->by_head ? over_rows(b, layer, q, q_turned, c, k_turned)
                   : over_heads(b, layer, q, q_turned, c, k_turned);
    return llm_linear(b, layer, "attn_output", h, width, heads * t->value);
}
