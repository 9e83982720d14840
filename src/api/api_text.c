/* api_text.c: rlx/text.h: tokenizers. */
#include "base/desc.h"
#include "base/file.h"
#include "context/context.h"
#include "model/weights.h"
#include "text/text.h"
#include "text/tokenizer.h"

/* ---- made and closed --------------------------------------------------------------------- */

/* The tokenizer keeps the context, whose memory it lives in. */
static void keep(rlx_context *ctx, struct rlx_tokenizer *t, rlx_tokenizer **out)
{
    t->owner = context_retain(ctx);
    *out = t;
    if (t->pre_assumed)
        context_log(
            ctx, 1,
            "tokenizer.ggml.pre is missing: words are cut by the rule \"%s\", which may not "
            "be that of the model",
            t->pre->name);
}

rlx_status rlx_tokenizer_open(rlx_context *ctx, const char *path, rlx_tokenizer **out,
                              rlx_error *err)
{
    struct rlx_tokenizer *t;
    struct file f;
    struct diag d;

    diag_init(&d, "tokenizer");
    if (!ctx || !path || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !path ? "path" : "out");
    else if (file_open(&f, path, FILE_MAP, &ctx->mem, &d) == RLX_OK) {
        if (tok_from_bytes(f.data, f.size, &ctx->mem, &t, &d) == RLX_OK)
            keep(ctx, t, out);
        file_close(&f);
    }
    return diag_report(&d, err);
}

rlx_status rlx_tokenizer_from_weights(rlx_context *ctx, const rlx_weights *w, rlx_tokenizer **out,
                                      rlx_error *err)
{
    struct rlx_tokenizer *t;
    struct diag d;

    diag_init(&d, "tokenizer");
    if (!ctx || !w || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !w ? "w" : "out");
    else if (tok_from_weights(&w->set, &ctx->mem, &t, &d) == RLX_OK)
        keep(ctx, t, out);
    return diag_report(&d, err);
}

rlx_status rlx_tokenizer_parse(rlx_context *ctx, const void *bytes, size_t size,
                               rlx_tokenizer **out, rlx_error *err)
{
    struct rlx_tokenizer *t;
    struct diag d;

    diag_init(&d, "tokenizer");
    if (!ctx || !bytes || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !bytes ? "bytes" : "out");
    else if (tok_from_bytes(bytes, size, &ctx->mem, &t, &d) == RLX_OK)
        keep(ctx, t, out);
    return diag_report(&d, err);
}

void rlx_tokenizer_close(rlx_tokenizer *t)
{
    rlx_context *ctx = t ? t->owner : NULL;

    tok_free(t);
    context_release(ctx);
}

rlx_status rlx_bpe_train(rlx_context *ctx, rlx_str text, const rlx_bpe_desc *desc,
                         rlx_tokenizer **out, rlx_error *err)
{
    rlx_bpe_desc own = {RLX_SIZED(rlx_bpe_desc)};
    struct rlx_tokenizer *t;
    struct diag d;

    diag_init(&d, "train");
    if (!ctx || (!text.ptr && text.len) || !desc || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !ctx    ? "ctx"
                  : !desc ? "desc"
                  : !out  ? "out"
                          : "text");
    else if (DESC_READ(rlx_bpe_desc, &own, desc, &d) == RLX_OK &&
             tok_bpe_train(text, &own, &ctx->mem, &t, &d) == RLX_OK)
        keep(ctx, t, out);
    return diag_report(&d, err);
}

/* ---- asked ------------------------------------------------------------------------------- */

rlx_status rlx_tokenizer_describe(const rlx_tokenizer *t, rlx_tokenizer_info *out, rlx_error *err)
{
    rlx_tokenizer_info own = {RLX_SIZED(rlx_tokenizer_info)};
    struct diag d;

    diag_init(&d, "tokenizer");
    if (!t)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "t is NULL");
    else {
        tok_describe(t, &own);
        INFO_WRITE(rlx_tokenizer_info, &own, out, &d);
    }
    return diag_report(&d, err);
}

bool rlx_tokenizer_at(const rlx_tokenizer *t, int32_t id, rlx_token *out)
{
    return t && out && tok_at(t, id, out);
}

int32_t rlx_tokenizer_find(const rlx_tokenizer *t, rlx_str text)
{
    uint32_t id = t && text.ptr ? tok_find(t, text) : TOK_NONE;

    return id == TOK_NONE ? -1 : (int32_t)id;
}

bool rlx_tokenizer_meta(const rlx_tokenizer *t, size_t i, rlx_meta *out)
{
    if (!t || !out || i >= t->meta.len)
        return false;
    *out = t->meta.at[i];
    return true;
}

/* ---- used -------------------------------------------------------------------------------- */

void rlx_token_ids_free(const rlx_tokenizer *t, rlx_token_ids *ids)
{
    if (!t || !ids)
        return;
    mem_free(t->mem, ids->at, ids->cap * sizeof *ids->at);
    *ids = (rlx_token_ids){0};
}

rlx_status rlx_tokenizer_encode(const rlx_tokenizer *t, rlx_str text, uint32_t flags,
                                rlx_token_ids *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "encode");
    if (!t || (!text.ptr && text.len) || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !t ? "t" : !out ? "out" : "text");
    else if (flags & ~(uint32_t)(RLX_ENCODE_ADD | RLX_ENCODE_PARSE))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "flags are %#x, of which some are unknown", flags);
    else
        tok_encode(t, text, flags, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_tokenizer_decode(const rlx_tokenizer *t, const int32_t *id, size_t count,
                                uint32_t flags, rlx_write_fn write, void *user, rlx_error *err)
{
    rlx_token_stream s = {.flags = (uint8_t)flags};
    struct diag d;

    diag_init(&d, "decode");
    if (!t || (!id && count) || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !t ? "t" : !write ? "write" : "id");
    else if (flags & ~(uint32_t)RLX_DECODE_SPECIAL)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "flags are %#x, of which some are unknown", flags);
    else {
        rlx_status status = RLX_OK;
        for (size_t i = 0; i < count && status == RLX_OK; i++)
            status = tok_stream_add(t, &s, id[i], write, user, &d);
        tok_stream_end(&s, write, user);
    }
    return diag_report(&d, err);
}

rlx_status rlx_token_stream_add(const rlx_tokenizer *t, rlx_token_stream *s, int32_t id,
                                rlx_write_fn write, void *user, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "decode");
    if (!t || !s || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !t ? "t" : !s ? "s" : "write");
    else
        tok_stream_add(t, s, id, write, user, &d);
    return diag_report(&d, err);
}

void rlx_token_stream_end(rlx_token_stream *s, rlx_write_fn write, void *user)
{
    if (s && write)
        tok_stream_end(s, write, user);
}
