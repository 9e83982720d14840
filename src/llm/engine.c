/* engine.c: a language model's file opened on a device: what is in it, and the graph made of it. */
#include "llm/engine.h"

#include <string.h>

#include "base/desc.h"
#include "base/mem.h"
#include "base/str.h"

enum { USUAL_CONTEXT = 4096, USUAL_CHUNK = 512 };

bool rlx_llm_arch(size_t i, const char **name, const char **text)
{
    if (i >= llm_arch_count || !name || !text)
        return false;
    *name = llm_archs[i].name;
    *text = llm_archs[i].text;
    return true;
}

/* ---- opening ------------------------------------------------------------------------------ */

static rlx_status take_desc(rlx_llm *m, const rlx_llm_desc *desc, struct diag *d)
{
    m->desc = (rlx_llm_desc){RLX_SIZED(rlx_llm_desc)};
    if (desc)
        TRY(DESC_READ(rlx_llm_desc, &m->desc, desc, d));
    if (m->desc.context < 0 || m->desc.chunk < 0 || m->desc.context > 1 << 24 ||
        m->desc.chunk > 1 << 16)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE,
                         "a context of %lld tokens, computed %lld at a time, makes no sense",
                         (long long)m->desc.context, (long long)m->desc.chunk);
    if (m->desc.cache != RLX_LLM_CACHE_F16 && m->desc.cache != RLX_LLM_CACHE_F32)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "there is no cache of type %d",
                         (int)m->desc.cache);
    return RLX_OK;
}

static void settle_sizes(rlx_llm *m)
{
    rlx_llm_desc *d = &m->desc;

    if (d->context == 0)
        d->context = m->spec.context < USUAL_CONTEXT ? m->spec.context : USUAL_CONTEXT;
    if (d->chunk == 0)
        d->chunk = USUAL_CHUNK;
    if (d->chunk > d->context)
        d->chunk = d->context;
}

static rlx_status read_tokenizer(rlx_llm *m, struct diag *d)
{
    rlx_meta meta;
    rlx_error err;

    if (!rlx_weights_meta(m->weights, STR("tokenizer.ggml.tokens"), &meta))
        return RLX_OK;
    if (rlx_tokenizer_from_weights(m->ctx, m->weights, &m->tokenizer, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    return RLX_OK;
}

/* Every token that a text can hold has a row in the table; there may be more rows than tokens. */
static rlx_status check_vocabulary(const rlx_llm *m, struct diag *d)
{
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_error err;

    if (!m->tokenizer)
        return RLX_OK;
    if (rlx_tokenizer_describe(m->tokenizer, &info, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    if ((int64_t)info.vocab > m->spec.vocab)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "the vocabulary has %lld tokens, and token_embd.weight %lld rows",
                         (long long)info.vocab, (long long)m->spec.vocab);
    return RLX_OK;
}

static rlx_status make_turns(rlx_llm *m, struct diag *d)
{
    for (int64_t i = 0; i < m->spec.layers; i++)
        if (m->spec.layer[i].rope != LLM_NO_ROPE && m->spec.rope[m->spec.layer[i].rope].channels)
            m->turns_used[m->spec.layer[i].rope] = true;
    for (int r = 0; r < LLM_ROPES; r++)
        if (m->turns_used[r])
            TRY(llm_turns_make(&m->spec.rope[r], m->weights, m->desc.context, &m->turns[r], d));
    return RLX_OK;
}

static rlx_status open_model(rlx_llm *m, const char *path, const rlx_llm_desc *desc, struct diag *d)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_error err;

    TRY(take_desc(m, desc, d));
    if (rlx_weights_open(m->ctx, path, m->desc.load, &m->weights, &err) != RLX_OK ||
        rlx_weights_describe(m->weights, &info, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    if (info.kind != RLX_FILE_gguf)
        return diag_fail(d, RLX_ERROR_FORMAT, "a language model in a GGUF file was expected");
    TRY(llm_spec_read(m->weights, &m->spec, d));
    TRY(read_tokenizer(m, d));
    TRY(check_vocabulary(m, d));
    settle_sizes(m);
    if (m->spec.learned_positions && m->desc.context > m->spec.context)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "a context of %lld tokens: the model knows %lld positions",
                         (long long)m->desc.context, (long long)m->spec.context);
    TRY(make_turns(m, d));
    return llm_make_model(m, d);
}

rlx_status rlx_llm_open(rlx_context *ctx, rlx_device *device, const char *path,
                        const rlx_llm_desc *desc, rlx_llm **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "llm");
    rlx_llm *m = ctx && device && path && out ? mem_alloc(mem_default(), sizeof *m) : NULL;
    if (!ctx || !device || !path || !out)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                    !ctx      ? "ctx"
                    : !device ? "device"
                    : !path   ? "path"
                              : "out");
    else if (!m)
        (diag_no_memory)(&d, sizeof *m);
    if (!m)
        return diag_report(&d, err);
    m->ctx = ctx;
    m->device = device;
    if (open_model(m, path, desc, &d) == RLX_OK)
        *out = m;
    else
        rlx_llm_close(m);
    return diag_report(&d, err);
}

void rlx_llm_close(rlx_llm *m)
{
    if (!m)
        return;
    rlx_model_destroy(m->model);
    for (int r = 0; r < LLM_ROPES; r++)
        llm_turns_free(&m->turns[r]);
    llm_spec_free(&m->spec);
    rlx_tokenizer_close(m->tokenizer);
    rlx_weights_close(m->weights);
    mem_free(mem_default(), m, sizeof *m);
}

/* ---- what it is --------------------------------------------------------------------------- */

const rlx_tokenizer *rlx_llm_tokenizer(const rlx_llm *m)
{
    return m ? m->tokenizer : NULL;
}

static void count_tensors(const rlx_llm *m, rlx_llm_info *info)
{
    rlx_weight t;

    for (size_t i = 0; rlx_weights_at(m->weights, i, &t); i++) {
        uint64_t numbers = 1;
        for (int32_t k = 0; k < t.rank; k++)
            numbers *= (uint64_t)t.dim[k];
        info->params += numbers;
        info->bytes += t.bytes;
    }
}

static uint64_t cache_bytes(const rlx_llm *m)
{
    uint64_t row = 0;

    for (int64_t i = 0; i < m->spec.layers; i++) {
        const struct llm_layer *l = &m->spec.layer[i];
        row += (uint64_t)(l->kv_heads * (l->head_dim + l->value_dim));
    }
    return row * (uint64_t)m->desc.context * (m->desc.cache == RLX_LLM_CACHE_F32 ? 4 : 2);
}

rlx_status rlx_llm_describe(const rlx_llm *m, rlx_llm_info *out, rlx_error *err)
{
    rlx_llm_info info = {RLX_SIZED(rlx_llm_info)};
    struct diag d;

    diag_init(&d, "llm");
    if (!m) {
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "m is NULL");
        return diag_report(&d, err);
    }
    info.arch = m->spec.arch->name;
    info.arch_text = m->spec.arch->text;
    info.vocab = m->spec.vocab;
    info.layers = m->spec.layers;
    info.width = m->spec.width;
    info.trained_context = m->spec.context;
    info.context = m->desc.context;
    info.cache_bytes = cache_bytes(m);
    count_tensors(m, &info);
    if (rlx_weights_get_str(m->weights, STR("general.name"), &info.name, NULL) != RLX_OK ||
        rlx_weights_get_str(m->weights, STR("tokenizer.chat_template"), &info.chat_template,
                            NULL) != RLX_OK)
        (diag_fail)(&d, RLX_ERROR_FORMAT, "the name or the chat template of the model is no text");
    else
        INFO_WRITE(rlx_llm_info, &info, out, &d);
    return diag_report(&d, err);
}
