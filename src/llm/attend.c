/* attend.c: attention: queries, keys and values made of what comes in, turned by their positions,
 * kept for later runs, and put together again. */
#include <stdio.h>

#include "llm/build.h"

struct heads {
    rlx_value q, k, v; /* [batch, rows, heads * head_dim] */
    rlx_value gate;    /* of what comes out; RLX_NO_VALUE: there is none */
};

/* Of each head, the query comes first and its gate after it. */
static rlx_value halves(struct llm_build *b, const struct llm_layer *l, rlx_value both,
                        rlx_value *gate)
{
    const rlx_list flat = RLX_LIST(b->batch, b->rows, l->heads * l->head_dim);

    both = rlx_reshape(b->g, both, RLX_LIST(b->batch, b->rows, l->heads, 2 * l->head_dim));
    *gate = rlx_reshape(b->g, llm_columns(b, both, l->head_dim, l->head_dim), flat);
    return rlx_reshape(b->g, llm_columns(b, both, 0, l->head_dim), flat);
}

static struct heads project(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_layer *l = &b->spec->layer[layer];
    const int64_t width = b->spec->width, queries = l->heads * l->head_dim,
                  keys = l->kv_heads * l->head_dim, values = l->kv_heads * l->value_dim;

    struct heads x = {RLX_NO_VALUE, RLX_NO_VALUE, RLX_NO_VALUE, RLX_NO_VALUE};

    if (llm_has(b, layer, "attn_qkv.weight")) {
        rlx_value all = llm_linear(b, layer, "attn_qkv", h, queries + keys + values, width);
        return (struct heads){llm_columns(b, all, 0, queries), llm_columns(b, all, queries, keys),
                              llm_columns(b, all, queries + keys, values), RLX_NO_VALUE};
    }
    if (b->spec->gated_queries)
        x.q = halves(b, l, llm_linear(b, layer, "attn_q", h, 2 * queries, width), &x.gate);
    else
        x.q = llm_linear(b, layer, "attn_q", h, queries, width);
    if (l->borrows)
        return x;
    x.k = llm_linear(b, layer, "attn_k", h, keys, width);
    x.v = b->spec->normed_values && !llm_has(b, layer, "attn_v.weight")
              ? x.k
              : llm_linear(b, layer, "attn_v", h, values, width);
    return x;
}

static struct heads clamped(struct llm_build *b, struct heads x)
{
    const double most = (double)b->spec->clamp;

    if (most == 0)
        return x;
    return (struct heads){rlx_clamp(b->g, x.q, -most, most), rlx_clamp(b->g, x.k, -most, most),
                          rlx_clamp(b->g, x.v, -most, most), x.gate};
}

/* A norm of queries or keys: over all heads at once, over each by the same gain, or by its own. Its
 * tensor's shape tells. */
static rlx_value norm_heads(struct llm_build *b, int64_t layer, const char *part, rlx_value x,
                            int64_t heads, int64_t dim)
{
    char name[96];
    rlx_weight tensor;
    size_t i;

    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, part);
    if (!b->w || !rlx_weights_find(b->w, rlx_cstr(name), &i) || !rlx_weights_at(b->w, i, &tensor))
        return x;
    if (tensor.rank == 1 && tensor.dim[0] == heads * dim)
        return llm_norm(b, layer, part, x, heads * dim);
    x = rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, heads, dim));
    if (tensor.rank == 2) {
        snprintf(name, sizeof name, "%s.weight", part);
        x = rlx_mul(b->g, llm_bare_norm(b, x, dim),
                    llm_vector(b, layer, name, RLX_LIST(heads, dim)));
    } else {
        x = llm_norm(b, layer, part, x, dim);
    }
    return rlx_reshape(b->g, x, RLX_LIST(b->batch, b->rows, heads * dim));
}

static rlx_value turned(struct llm_build *b, const struct llm_layer *l, rlx_value x)
{
    if (l->rope == LLM_NO_ROPE)
        return x;
    const struct llm_rope *r = &b->spec->rope[l->rope];
    return rlx_rope(b->g, x, b->cos[l->rope], b->sin[l->rope], l->head_dim, r->channels, r->style,
                    -2);
}

/* Queries or keys, ready to be compared. */
static rlx_value placed(struct llm_build *b, int64_t layer, const char *norm, rlx_value x,
                        int64_t heads)
{
    const struct llm_layer *l = &b->spec->layer[layer];

    if (b->spec->turned_first)
        return norm_heads(b, layer, norm, turned(b, l, x), heads, l->head_dim);
    return turned(b, l, norm_heads(b, layer, norm, x, heads, l->head_dim));
}

/* Rows of this run go into the cache; all rows that are there come out. */
static rlx_value through_cache(struct llm_build *b, int64_t layer, const char *which, rlx_value x,
                               int64_t width)
{
    char name[64];

    if (!b->cached)
        return x;
    snprintf(name, sizeof name, "cache.%lld.%s", (long long)layer, which);
    rlx_value state = rlx_state(b->g, name, b->cache, RLX_LIST(b->cache_rows, width));
    rlx_value rows = rlx_reshape(b->g, rlx_cast(b->g, x, b->cache), RLX_LIST(b->rows, width));
    rlx_value all = rlx_cache_append(b->g, state, rows, b->at, 0);
    all = rlx_narrow(b->g, all, 0, 0, b->length);
    return rlx_reshape(b->g, all, RLX_LIST(1, b->length, width));
}

static rlx_value attend(struct llm_build *b, int64_t layer, struct heads h)
{
    const struct llm_spec *s = b->spec;
    const struct llm_layer *l = &s->layer[layer];
    rlx_attention_desc desc = RLX_ATTENTION_DESC_INIT;

    desc.num_heads = l->heads;
    desc.num_kv_heads = l->kv_heads;
    desc.head_dim = l->head_dim;
    desc.value_dim = l->value_dim;
    desc.layout = RLX_ATTENTION_LAYOUT_packed;
    if (s->causal && l->window > 0) {
        desc.mask_kind = RLX_MASK_KIND_sliding_window;
        desc.window = l->window - 1;
    } else if (s->causal) {
        desc.mask_kind = RLX_MASK_KIND_causal;
    } else if (l->window > 0) {
        desc.mask_kind = RLX_MASK_KIND_symmetric_window;
        desc.window = l->window / 2;
    }
    if (s->score_scale != 0)
        desc.score_scale = s->score_scale;
    if (s->attn_cap != 0)
        desc.logit_softcap = s->attn_cap;
    desc.has_sinks = llm_has(b, layer, "attn_sinks.weight");
    if (!desc.has_sinks)
        return rlx_attention(b->g, h.q, h.k, h.v, RLX_NO_VALUE, &desc);
    rlx_value sinks = llm_vector(b, layer, "attn_sinks.weight", RLX_LIST(l->heads));
    return rlx_attention_with_sinks(b->g, h.q, h.k, h.v, RLX_NO_VALUE, sinks, &desc);
}

static rlx_value normed_values(struct llm_build *b, const struct llm_layer *l, rlx_value v)
{
    if (!b->spec->normed_values)
        return v;
    v = rlx_reshape(b->g, v, RLX_LIST(b->batch, b->rows, l->kv_heads, l->value_dim));
    v = llm_bare_norm(b, v, l->value_dim);
    return rlx_reshape(b->g, v, RLX_LIST(b->batch, b->rows, l->kv_heads * l->value_dim));
}

/* Keys and values of all rows so far. */
static void remember(struct llm_build *b, int64_t layer, struct heads *x)
{
    const struct llm_layer *l = &b->spec->layer[layer];
    const int kind = l->rope == LLM_NO_ROPE ? LLM_ROPE_GLOBAL : l->rope;

    if (!l->borrows) {
        x->k = placed(b, layer, "attn_k_norm", x->k, l->kv_heads);
        x->v = normed_values(b, l, x->v);
        b->kept_k[kind] = through_cache(b, layer, "k", x->k, l->kv_heads * l->head_dim);
        b->kept_v[kind] = through_cache(b, layer, "v", x->v, l->kv_heads * l->value_dim);
    }
    x->k = b->kept_k[kind];
    x->v = b->kept_v[kind];
}

rlx_value llm_tempered(struct llm_build *b, rlx_value q)
{
    return b->spec->temper != 0 ? rlx_mul(b->g, q, b->temper) : q;
}

rlx_value llm_attend(struct llm_build *b, int64_t layer, rlx_value q, rlx_value k, rlx_value v)
{
    const struct llm_layer *l = &b->spec->layer[layer];

    k = through_cache(b, layer, "k", k, l->kv_heads * l->head_dim);
    v = through_cache(b, layer, "v", v, l->kv_heads * l->value_dim);
    return attend(b, layer, (struct heads){q, k, v, RLX_NO_VALUE});
}

rlx_value llm_attention(struct llm_build *b, int64_t layer, rlx_value h)
{
    const struct llm_layer *l = &b->spec->layer[layer];
    struct heads x = clamped(b, project(b, layer, h));

    x.q = llm_tempered(b, placed(b, layer, "attn_q_norm", x.q, l->heads));
    remember(b, layer, &x);
    h = attend(b, layer, x);
    if (x.gate != RLX_NO_VALUE)
        h = rlx_mul(b->g, h, rlx_sigmoid(b->g, x.gate));
    h = llm_norm(b, layer, b->spec->attn_inner_norm, h, l->heads * l->value_dim);
    return llm_linear(b, layer, "attn_output", h, b->spec->width, l->heads * l->value_dim);
}
