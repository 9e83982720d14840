/* api_template.c: rlx/template.h: chat templates. */
#include <stdio.h>

#include "base/desc.h"
#include "context/context.h"
#include "model/weights.h"
#include "text/template/template.h"

static rlx_status create(rlx_context *ctx, rlx_str source, rlx_template **out, struct diag *d)
{
    struct rlx_template *t;

    TRY(tpl_create(source, &ctx->mem, &t, d));
    t->owner = context_retain(ctx);
    *out = t;
    return RLX_OK;
}

rlx_status rlx_template_parse(rlx_context *ctx, rlx_str source, rlx_template **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "template");
    if (!ctx || (!source.ptr && source.len) || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !out ? "out" : "source");
    else
        create(ctx, source, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_template_from_weights(rlx_context *ctx, const rlx_weights *w, const char *name,
                                     rlx_template **out, rlx_error *err)
{
    rlx_str source = {0};
    char key[256];
    struct diag d;

    diag_init(&d, "template");
    if (!ctx || !w || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !w ? "w" : "out");
    else {
        snprintf(key, sizeof key, "tokenizer.chat_template%s%s", name ? "." : "", name ? name : "");
        if (meta_get_str(&w->set, rlx_cstr(key), &source, &d) == RLX_OK) {
            if (source.ptr)
                create(ctx, source, out, &d);
            else
                diag_fail(&d, RLX_ERROR_NAME, "the file has no %s", key);
        }
    }
    return diag_report(&d, err);
}

void rlx_template_close(rlx_template *t)
{
    rlx_context *ctx = t ? t->owner : NULL;

    tpl_free(t);
    context_release(ctx);
}

rlx_str rlx_template_source(const rlx_template *t)
{
    return t ? t->source : (rlx_str){0};
}

static rlx_status check(const rlx_chat_desc *chat, struct diag *d)
{
    const rlx_str texts[] = {chat->variables, chat->tools, chat->bos_token, chat->eos_token};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!texts[i].ptr && texts[i].len)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "a text has a length and no bytes");
    if (!chat->messages && chat->message_count)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "messages is NULL");
    for (size_t i = 0; i < chat->message_count; i++) {
        const rlx_chat_message *m = &chat->messages[i];
        if ((!m->role.ptr && m->role.len) || (!m->content.ptr && m->content.len))
            return diag_fail(d, RLX_ERROR_ARGUMENT, "message %zu has a length and no bytes", i);
    }
    if ((unsigned)chat->thinking > RLX_THINKING_OFF)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "thinking is %d", (int)chat->thinking);
    return RLX_OK;
}

rlx_status rlx_template_render(const rlx_template *t, const rlx_chat_desc *chat, rlx_rendered *out,
                               rlx_error *err)
{
    rlx_chat_desc own = {RLX_SIZED(rlx_chat_desc)};
    struct diag d;

    diag_init(&d, "template");
    if (!t || !chat || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !t ? "t" : !chat ? "chat" : "out");
    else if (DESC_READ(rlx_chat_desc, &own, chat, &d) == RLX_OK && check(&own, &d) == RLX_OK)
        tpl_render(t, &own, out, &d);
    return diag_report(&d, err);
}

void rlx_rendered_free(const rlx_template *t, rlx_rendered *r)
{
    if (t && r && r->text.ptr)
        tpl_rendered_free(t, r);
}

rlx_status rlx_rendered_encode(const rlx_tokenizer *t, const rlx_rendered *r, rlx_token_ids *out,
                               rlx_error *err)
{
    struct diag d;

    diag_init(&d, "encode");
    if (!t || !r || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !t ? "t" : !r ? "r" : "out");
    else if ((!r->text.ptr && r->text.len) || (!r->span && r->span_count))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !r->span && r->span_count ? "span" : "text");
    else
        tpl_encode(t, r, out, &d);
    return diag_report(&d, err);
}
