/* llama.c: a language model of the "llama" kind as a graph. Matrices are [out, in], as GGUF has
 * them, so that each product is with a transposed one.
 *
 *     x = token_embd[tokens]
 *     for each layer:
 *         h = rms_norm(x);  q, k, v = h Wq, h Wk, h Wv;  q, k turned by their positions
 *         x = x + attention(q, k, v) Wo
 *         h = rms_norm(x)
 *         x = x + (silu(h Wgate) * (h Wup)) Wdown
 *     logits = rms_norm(x) Wout */
#include "llm/llama.h"

#include <math.h>
#include <stdio.h>

#include "base/desc.h"
#include "base/str.h"

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

struct building {
    rlx_graph *g;
    const rlx_llm_shape *shape;
    int64_t length;
    rlx_value cos, sin; /* [length, head_dim / 2] */
};

/* The param "blk.LAYER.PART.weight", or "PART.weight" where layer is -1; and what is added to its
 * name. */
static rlx_value weight(const struct building *b, int64_t layer, const char *part, const char *more,
                        rlx_list shape)
{
    char name[64];

    if (layer < 0)
        snprintf(name, sizeof name, "%s.weight%s", part, more);
    else
        snprintf(name, sizeof name, "blk.%lld.%s.weight%s", (long long)layer, part, more);
    return rlx_param(b->g, name, RLX_DTYPE_f32, shape);
}

static rlx_value linear(const struct building *b, int64_t layer, const char *part, rlx_value x,
                        int64_t out, int64_t in)
{
    rlx_value y = rlx_matmul(b->g, x, weight(b, layer, part, "", RLX_LIST(out, in)), false, true);
    int64_t rank = b->shape->lora_rank;

    if (rank == 0 || layer < 0)
        return y;
    rlx_value small = weight(b, layer, part, ".lora_a", RLX_LIST(rank, in));
    rlx_value large = weight(b, layer, part, ".lora_b", RLX_LIST(out, rank));
    small = rlx_matmul(b->g, x, small, false, true);
    large = rlx_matmul(b->g, small, large, false, true);
    double scale = (double)b->shape->lora_alpha / (double)rank;
    return rlx_add(b->g, y, rlx_mul(b->g, large, rlx_scalar(b->g, large, scale)));
}

static rlx_value norm(const struct building *b, int64_t layer, const char *part, rlx_value x)
{
    rlx_value gamma = weight(b, layer, part, "", RLX_LIST(b->shape->width));

    return rlx_rms_norm(b->g, x, gamma, RLX_NO_VALUE, -1, b->shape->eps);
}

static rlx_value turned(const struct building *b, rlx_value x)
{
    int64_t dim = b->shape->head_dim;

    return rlx_rope(b->g, x, b->cos, b->sin, dim, dim, RLX_ROPE_STYLE_interleaved, -2);
}

static rlx_value attend(const struct building *b, int64_t layer, rlx_value h)
{
    const rlx_llm_shape *s = b->shape;
    int64_t queries = s->heads * s->head_dim, keys = s->kv_heads * s->head_dim;
    rlx_attention_desc desc = RLX_ATTENTION_DESC_INIT;
    rlx_value q = turned(b, linear(b, layer, "attn_q", h, queries, s->width));
    rlx_value k = turned(b, linear(b, layer, "attn_k", h, keys, s->width));
    rlx_value v = linear(b, layer, "attn_v", h, keys, s->width);

    desc.num_heads = s->heads;
    desc.num_kv_heads = s->kv_heads;
    desc.head_dim = s->head_dim;
    desc.mask_kind = RLX_MASK_KIND_causal;
    desc.layout = RLX_ATTENTION_LAYOUT_packed;
    rlx_value y = rlx_attention(b->g, q, k, v, RLX_NO_VALUE, &desc);
    return linear(b, layer, "attn_output", y, s->width, queries);
}

static rlx_value feed_forward(const struct building *b, int64_t layer, rlx_value h)
{
    const rlx_llm_shape *s = b->shape;
    rlx_value gate = rlx_silu(b->g, linear(b, layer, "ffn_gate", h, s->ffn, s->width));
    rlx_value up = linear(b, layer, "ffn_up", h, s->ffn, s->width);

    return linear(b, layer, "ffn_down", rlx_mul(b->g, gate, up), s->width, s->ffn);
}

/* How far pair i of a head is turned at position p: p base^(-2 i / head_dim). */
static rlx_status make_tables(struct building *b, struct diag *d)
{
    int64_t pairs = b->shape->head_dim / 2;
    size_t bytes;

    if (!size_mul((size_t)b->length, (size_t)pairs * sizeof(float), &bytes) || bytes > 1u << 30)
        return diag_fail(d, RLX_ERROR_LIMIT, "tables of %lld positions are too large",
                         (long long)b->length);
    float *c = mem_alloc(mem_default(), bytes), *s = mem_alloc(mem_default(), bytes);
    for (int64_t p = 0; c && s && p < b->length; p++)
        for (int64_t i = 0; i < pairs; i++) {
            double power = -2.0 * (double)i / (double)b->shape->head_dim;
            double angle = (double)p * pow((double)b->shape->rope_base, power);
            c[p * pairs + i] = (float)cos(angle);
            s[p * pairs + i] = (float)sin(angle);
        }
    if (c && s) {
        b->cos = rlx_const(b->g, RLX_DTYPE_f32, RLX_LIST(b->length, pairs), c, bytes);
        b->sin = rlx_const(b->g, RLX_DTYPE_f32, RLX_LIST(b->length, pairs), s, bytes);
    }
    bool made = c && s;
    mem_free(mem_default(), c, bytes);
    mem_free(mem_default(), s, bytes);
    return made ? RLX_OK : diag_no_memory(d, bytes);
}

static rlx_value build(const struct building *b, rlx_value tokens)
{
    const rlx_llm_shape *s = b->shape;
    rlx_value table = weight(b, -1, "token_embd", "", RLX_LIST(s->vocab, s->width));
    rlx_value x = rlx_gather(b->g, table, tokens, 0);

    for (int64_t i = 0; i < s->layers; i++) {
        x = rlx_add(b->g, x, attend(b, i, norm(b, i, "attn_norm", x)));
        x = rlx_add(b->g, x, feed_forward(b, i, norm(b, i, "ffn_norm", x)));
    }
    x = norm(b, -1, "output_norm", x);
    return s->tied ? rlx_matmul(b->g, x, table, false, true)
                   : linear(b, -1, "output", x, s->vocab, s->width);
}

static rlx_status check_tokens(rlx_graph *g, rlx_value tokens, const rlx_llm_shape *s,
                               int64_t *length, struct diag *d)
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
    *length = shape.at[1];
    return RLX_OK;
}

rlx_status rlx_llm_build(rlx_graph *g, const rlx_llm_shape *theirs, rlx_value tokens,
                         rlx_value *logits, rlx_error *err)
{
    rlx_llm_shape shape;
    struct building b = {.g = g, .shape = &shape};
    struct diag d;

    diag_init(&d, "llm");
    if (!g || !logits)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL", g ? "logits" : "g");
    else if (llm_read_shape(theirs, &shape, &d) == RLX_OK &&
             check_tokens(g, tokens, &shape, &b.length, &d) == RLX_OK &&
             make_tables(&b, &d) == RLX_OK)
        *logits = build(&b, tokens);
    return d.count ? diag_report(&d, err) : rlx_graph_check(g, err);
}
