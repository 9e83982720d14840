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
    if (m->desc.guesses < 0 || m->desc.guesses > 31)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "guesses is %d; it must be from 0 to 31",
                         (int)m->desc.guesses);
    if (m->desc.cache != RLX_LLM_CACHE_F16 && m->desc.cache != RLX_LLM_CACHE_F32)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "there is no cache of type %d",
                         (int)m->desc.cache);
    if (m->desc.pooling < RLX_LLM_POOLING_AUTO || m->desc.pooling > RLX_LLM_POOLING_LAST)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "there is no pooling %d", (int)m->desc.pooling);
    return RLX_OK;
}

/* What comes out: vectors, if the caller wants them or the model gives nothing else. */
static rlx_status settle_result(rlx_llm *m, struct diag *d)
{
    m->gives_vectors = m->desc.vectors || llm_only_vectors(&m->spec);
    if (!m->gives_vectors)
        return RLX_OK;
    m->desc.chunk = m->desc.context; /* a text is read at once */
    m->vector_width = llm_vector_width(m->weights, &m->spec);
    return llm_settle_pooling(&m->spec, &m->desc.pooling, d);
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

static rlx_status open_adapters(rlx_llm *m, struct diag *d)
{
    const size_t count = m->desc.adapter_count;

    if (count == 0)
        return RLX_OK;
    if (!m->desc.adapters)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there are %zu adapters, but the list is NULL",
                         count);
    m->adapters = count > 64 ? NULL : mem_alloc(mem_default(), count * sizeof *m->adapters);
    if (!m->adapters)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu adapters are too many", count);
    for (size_t i = 0; i < count; i++)
        TRY(llm_adapter_open(m->ctx, &m->desc.adapters[i], m->desc.load, &m->spec, &m->adapters[i],
                             d));
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
    TRY(settle_result(m, d));
    if (m->spec.learned_positions && m->desc.context > m->spec.context)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "a context of %lld tokens: the model knows %lld positions",
                         (long long)m->desc.context, (long long)m->spec.context);
    m->recurrent = llm_is_recurrent(&m->spec);
    if (m->recurrent)
        m->desc.guesses = 0; /* wrong ones could not be forgotten */
    TRY(make_turns(m, d));
    TRY(open_adapters(m, d));
    TRY(llm_make_model(m, d));
    return m->gives_vectors ? llm_vectors_open(m, d) : RLX_OK;
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
    llm_vectors_close(m);
    rlx_model_destroy(m->model);
    for (int r = 0; r < LLM_ROPES; r++)
        llm_turns_free(&m->turns[r]);
    for (size_t i = 0; m->adapters && i < m->desc.adapter_count; i++)
        rlx_weights_close(m->adapters[i].w);
    mem_free(mem_default(), m->adapters, m->desc.adapter_count * sizeof *m->adapters);
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

static void count_tensors(const rlx_weights *w, rlx_llm_info *info)
{
    rlx_weight t;

    for (size_t i = 0; rlx_weights_at(w, i, &t); i++) {
        uint64_t numbers = 1;
        for (int32_t k = 0; k < t.rank; k++)
            numbers *= (uint64_t)t.dim[k];
        info->params += numbers;
        info->bytes += t.bytes;
    }
}

static uint64_t cache_bytes(const rlx_llm *m)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < rlx_model_io_count(m->model, RLX_IO_STATE); i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        if (rlx_model_io(m->model, RLX_IO_STATE, i, &io, NULL) != RLX_OK)
            continue;
        uint64_t bytes = rlx_dtype_size(io.dtype);
        for (int32_t k = 0; k < io.rank; k++)
            bytes *= (uint64_t)io.dim[k];
        sum += bytes;
    }
    return sum;
}

/* What the file says, by itself. */
static rlx_status describe(const rlx_weights *w, const struct llm_spec *s, rlx_llm_info *info,
                           struct diag *d)
{
    rlx_error err;

    *info = (rlx_llm_info){RLX_SIZED(rlx_llm_info),
                           .arch = s->arch->name,
                           .arch_text = s->arch->text,
                           .vocab = s->vocab,
                           .layers = s->layers,
                           .width = s->width,
                           .heads = s->layer[0].heads,
                           .kv_heads = s->layer[0].kv_heads,
                           .head_dim = s->layer[0].head_dim,
                           .ffn = s->layer[0].ffn,
                           .trained_context = s->context,
                           .vectors = llm_only_vectors(s),
                           .vector_width = llm_vector_width(w, s)};
    if (s->pooling > LLM_POOL_NONE && s->pooling < LLM_POOL_RANK)
        info->pooling = (rlx_llm_pooling)s->pooling;
    count_tensors(w, info);
    if (rlx_weights_get_str(w, STR("general.name"), &info->name, &err) != RLX_OK ||
        rlx_weights_get_str(w, STR("tokenizer.chat_template"), &info->chat_template, &err) !=
            RLX_OK)
        return diag_again(d, &err, err.status);
    return RLX_OK;
}

rlx_status rlx_llm_describe(const rlx_llm *m, rlx_llm_info *out, rlx_error *err)
{
    rlx_llm_info info;
    struct diag d;

    diag_init(&d, "llm");
    if (!m)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "m is NULL");
    else if (describe(m->weights, &m->spec, &info, &d) == RLX_OK) {
        info.context = m->desc.context;
        info.cache_bytes = m->gives_vectors ? 0 : cache_bytes(m);
        info.vectors = m->gives_vectors;
        INFO_WRITE(rlx_llm_info, &info, out, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_llm_peek(const rlx_weights *w, rlx_llm_info *out, rlx_error *err)
{
    struct llm_spec spec = {0};
    rlx_llm_info info;
    struct diag d;

    diag_init(&d, "llm");
    if (!w)
        (diag_fail)(&d, RLX_ERROR_ARGUMENT, "w is NULL");
    else if (llm_spec_read(w, &spec, &d) == RLX_OK && describe(w, &spec, &info, &d) == RLX_OK)
        INFO_WRITE(rlx_llm_info, &info, out, &d);
    llm_spec_free(&spec);
    return diag_report(&d, err);
}
