/* spec.c: a model's sizes from a GGUF file: what all architectures have in common is read here,
 * then the recipe of its own says how it differs. */
#include "llm/spec.h"

#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "llm/keys.h"
#include "rlx/tools.h"

enum { MAX_LAYERS = 1024 };

rlx_status llm_spec_layers(struct llm_spec *s, int64_t count, struct diag *d)
{
    if (count < 1 || count > MAX_LAYERS)
        return diag_fail(d, RLX_ERROR_SHAPE, "a model of %lld layers cannot be made: 1 to %d can",
                         (long long)count, MAX_LAYERS);
    s->layer = mem_alloc(mem_default(), (size_t)count * sizeof *s->layer);
    if (!s->layer)
        return diag_no_memory(d, (size_t)count * sizeof *s->layer);
    s->layers = count;
    return RLX_OK;
}

void llm_spec_free(struct llm_spec *s)
{
    if (s->layer)
        mem_free(mem_default(), s->layer, (size_t)s->layers * sizeof *s->layer);
    s->layer = NULL;
}

bool llm_tensor(const rlx_weights *w, const char *name, rlx_weight *out)
{
    size_t i;

    return w && rlx_weights_find(w, rlx_cstr(name), &i) && rlx_weights_at(w, i, out);
}

/* ---- what all have in common -------------------------------------------------------------- */

static void read_rope(const struct llm_keys *k, struct llm_spec *s)
{
    const rlx_str type = key_text(k, "rope.scaling.type");
    double old = key_float(k, "rope.scale_linear", 1);
    struct llm_rope *r = &s->rope[LLM_ROPE_GLOBAL];

    *r = (struct llm_rope){
        .channels = key_int(k, "rope.dimension_count", s->layer[0].head_dim),
        .style = RLX_ROPE_STYLE_half,
        .base = key_float(k, "rope.freq_base", 10000),
        .factor = key_float(k, "rope.scaling.factor", old),
        .original = (double)key_int(k, "rope.scaling.original_context_length", s->context),
        .beta_fast = 32,
        .beta_slow = 1,
        .magnitude = key_float(k, "rope.scaling.attn_factor", 1),
        .log_multiplier = key_float(k, "rope.scaling.yarn_log_multiplier", 0),
    };
    if (r->factor == 0)
        r->factor = 1;
    if (type.ptr && str_eq(type, STR("none")))
        r->factor = 1;
    else if (type.ptr && str_eq(type, STR("yarn")))
        r->scaling = LLM_ROPE_YARN;
    else if (type.ptr && str_eq(type, STR("longrope")))
        r->scaling = LLM_ROPE_LONG;
    else if (type.ptr && !str_eq(type, STR("linear")))
        (diag_fail)(k->d, RLX_ERROR_UNSUPPORTED,
                    "positions are scaled in the way \"%.*s\"; linear, yarn, longrope and none are "
                    "known",
                    STR_ARG(type));
    if (has_tensor(k, "rope_freqs.weight"))
        r->divisors = "rope_freqs.weight";
    s->rope[LLM_ROPE_LOCAL] = *r;
}

static void read_layers(const struct llm_keys *k, struct llm_spec *s)
{
    for (int64_t i = 0; i < s->layers; i++) {
        struct llm_layer *l = &s->layer[i];
        l->heads = key_int_of(k, "attention.head_count", i, 0);
        l->kv_heads = key_int_of(k, "attention.head_count_kv", i, l->heads);
        int64_t share = l->heads ? s->width / l->heads : 0;
        l->head_dim = key_int(k, "attention.key_length", share);
        l->value_dim = key_int(k, "attention.value_length", share);
        l->ffn = key_int_of(k, "feed_forward_length", i, 0);
    }
}

/* The rows of the table of tokens are the vocabulary. */
static int64_t vocabulary(const struct llm_keys *k)
{
    rlx_weight table;
    size_t i;

    if (!rlx_weights_find(k->w, STR("token_embd.weight"), &i) || !rlx_weights_at(k->w, i, &table) ||
        table.rank != 2) {
        (diag_fail)(k->d, RLX_ERROR_FORMAT, "the file has no matrix \"token_embd.weight\"");
        return 0;
    }
    return table.dim[0];
}

static rlx_status read_common(struct llm_keys *k, struct llm_spec *s)
{
    int64_t extra = key_int(k, "nextn_predict_layers", 0);

    s->vocab = vocabulary(k);
    s->context = key_int(k, "context_length", KEY_NEEDED);
    s->width = key_int(k, "embedding_length", KEY_NEEDED);
    s->norm = LLM_NORM_RMS;
    s->attn_norm = "attn_norm";
    s->ffn_norm = "ffn_norm";
    s->output_norm = "output_norm";
    s->activation = LLM_SILU;
    s->gated = s->has_head = true;
    s->causal = key_bool(k, "attention.causal", true);
    s->tied = !has_tensor(k, "output.weight");
    s->embed_scale = s->residual_scale = s->logit_scale = 1;
    s->pooling = key_int(k, "pooling_type", LLM_POOL_NONE);
    TRY(llm_spec_layers(s, key_int(k, "block_count", KEY_NEEDED) - extra, k->d));
    read_layers(k, s);
    read_rope(k, s);
    return k->d->count ? k->d->first.status : RLX_OK;
}

/* ---- checks ------------------------------------------------------------------------------- */

static rlx_status check_size(const char *what, int64_t v, struct diag *d)
{
    return v >= 1 && v <= 1 << 24
               ? RLX_OK
               : diag_fail(d, RLX_ERROR_SHAPE, "%s is %lld; it must be from 1 to 2^24", what,
                           (long long)v);
}

/* Layers with a state: what they are made of. */
static rlx_status check_ssm(const struct llm_ssm *s, enum llm_mixer mixer, struct diag *d)
{
    TRY(check_size("the taps of a convolution", s->taps, d));
    if (s->taps < 2 || s->taps > 64)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "a convolution of %lld taps; 2 to 64 are known",
                         (long long)s->taps);
    if (mixer == LLM_SHORT_CONV)
        return RLX_OK;
    TRY(check_size("ssm.inner_size", s->inner, d));
    TRY(check_size("ssm.state_size", s->state, d));
    TRY(check_size("ssm.time_step_rank", s->heads, d));
    TRY(check_size("ssm.group_count", s->groups, d));
    if (mixer != LLM_MAMBA && (s->inner % s->heads || s->heads % s->groups))
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%lld channels of state cannot be divided into %lld heads, or these into "
                         "%lld groups",
                         (long long)s->inner, (long long)s->heads, (long long)s->groups);
    return RLX_OK;
}

static bool attends(const struct llm_layer *l)
{
    return l->mixer == LLM_ATTENTION || l->mixer == LLM_ATTENTION_AND_MAMBA2;
}

bool llm_is_recurrent(const struct llm_spec *s)
{
    for (int64_t i = 0; i < s->layers; i++)
        if (s->layer[i].mixer != LLM_ATTENTION && s->layer[i].mixer != LLM_NO_MIXER)
            return true;
    return false;
}

static rlx_status check_latent(const struct llm_spec *s, struct diag *d)
{
    const struct llm_latent *t = &s->latent;
    const int64_t turns = s->rope[LLM_ROPE_GLOBAL].channels;

    TRY(check_size("attention.kv_lora_rank", t->rank, d));
    TRY(check_size("the width of a key", t->key, d));
    TRY(check_size("the width of a value", t->value, d));
    if (turns < 2 || turns % 2 || turns >= t->key)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%lld of the %lld numbers of a key cannot be turned in pairs",
                         (long long)turns, (long long)t->key);
    return RLX_OK;
}

static rlx_status check_heads(const struct llm_spec *s, const struct llm_layer *l, struct diag *d)
{
    const struct llm_rope *r = l->rope == LLM_NO_ROPE ? NULL : &s->rope[l->rope];

    TRY(check_size("heads", l->heads, d));
    TRY(check_size("kv_heads", l->kv_heads, d));
    TRY(check_size("head_dim", l->head_dim, d));
    TRY(check_size("the width of a value", l->value_dim, d));
    if (l->heads % l->kv_heads)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%lld heads cannot share %lld heads of keys and values: the second must "
                         "divide the first",
                         (long long)l->heads, (long long)l->kv_heads);
    if (r && (r->channels % 2 || r->channels < 0 || r->channels > l->head_dim))
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%lld of the %lld numbers of a head cannot be turned in pairs",
                         (long long)r->channels, (long long)l->head_dim);
    return RLX_OK;
}

static rlx_status check_layer(const struct llm_spec *s, int64_t i, struct diag *d)
{
    const struct llm_layer *l = &s->layer[i];
    const bool feeds = l->mixer == LLM_NO_MIXER || (!s->no_feed_forward && !s->one_part);

    if (feeds && !l->experts)
        TRY(check_size("ffn", l->ffn, d));
    if (l->mixer != LLM_ATTENTION && l->mixer != LLM_NO_MIXER)
        TRY(check_ssm(&s->ssm, l->mixer, d));
    return attends(l) ? check_heads(s, l, d) : RLX_OK;
}

static rlx_status check_experts(const struct llm_experts *e, struct diag *d)
{
    enum { MOST = 1024 };

    if (e->count < 1 || e->count > MOST || e->used < 1 || e->used > e->count)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%lld of %lld experts cannot be used: there must be 1 to %d",
                         (long long)e->used, (long long)e->count, MOST);
    if (e->groups > 1 && (e->count % e->groups || e->groups_used < 1 || e->groups_used > e->groups))
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "%lld of %lld groups of %lld experts in all make no sense",
                         (long long)e->groups_used, (long long)e->groups, (long long)e->count);
    TRY(check_size("the width of an expert", e->ffn, d));
    return e->shared_ffn ? check_size("the width of the shared expert", e->shared_ffn, d) : RLX_OK;
}

rlx_status llm_spec_check(const struct llm_spec *s, struct diag *d)
{
    TRY(check_size("vocab", s->vocab, d));
    TRY(check_size("context", s->context, d));
    TRY(check_size("width", s->width, d));
    if (s->side)
        TRY(check_size("embedding_length_per_layer_input", s->side, d));
    if (s->latent.rank || s->latent.key)
        TRY(check_latent(s, d));
    for (int64_t i = 0; i < s->layers; i++)
        TRY(check_layer(s, i, d));
    for (int64_t i = 0; i < s->layers; i++)
        if (s->layer[i].experts) {
            TRY(check_experts(&s->experts, d));
            break;
        }
    if (s->temper != 0 && !(s->temper_rows >= 1))
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "attention.temperature_length makes no sense");
    if (!(s->eps > 0 && s->eps < 1))
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "the eps of norms makes no sense");
    for (int i = 0; i < LLM_ROPES; i++) {
        const struct llm_rope *r = &s->rope[i];
        if (!(r->base > 0 && r->base < 1e12 && r->factor > 0 && r->original >= 1))
            return diag_fail(d, RLX_ERROR_ATTRIBUTE,
                             "rope_base, or how positions are scaled, makes no sense");
    }
    return RLX_OK;
}

/* ---- the file ----------------------------------------------------------------------------- */

static rlx_status find_arch(struct llm_keys *k, const struct llm_arch **out)
{
    rlx_nearest near = {.wanted = {NULL, 0}};
    char hint[RLX_NEAREST_HINT];
    rlx_error err;

    if (rlx_weights_get_str(k->w, STR("general.architecture"), &k->arch, &err) != RLX_OK)
        return diag_again(k->d, &err, err.status);
    if (!k->arch.ptr)
        return diag_fail(k->d, RLX_ERROR_FORMAT,
                         "the file does not say which architecture its model has "
                         "(general.architecture)");
    near.wanted = k->arch;
    for (size_t i = 0; i < llm_arch_count; i++) {
        *out = &llm_archs[i];
        if (str_eq(k->arch, rlx_cstr(llm_archs[i].name)))
            return RLX_OK;
        rlx_nearest_offer(&near, rlx_cstr(llm_archs[i].name));
    }
    return diag_fail(k->d, RLX_ERROR_UNSUPPORTED,
                     "the architecture \"%.*s\" is not supported%s; rlx generate --list names "
                     "those that are",
                     STR_ARG(k->arch), rlx_nearest_hint(&near, hint));
}

rlx_status llm_spec_read(const rlx_weights *w, struct llm_spec *out, struct diag *d)
{
    struct llm_keys k = {.w = w, .d = d};

    *out = (struct llm_spec){0};
    TRY(find_arch(&k, &out->arch));
    TRY(read_common(&k, out));
    out->arch->read(&k, out);
    return d->count ? d->first.status : llm_spec_check(out, d);
}
