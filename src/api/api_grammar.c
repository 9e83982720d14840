/* api_grammar.c: rlx/grammar.h: grammars, and states of texts that follow them. */
#include "context/context.h"
#include "grammar/machine.h"

/* ---- grammars ---------------------------------------------------------------------------- */

rlx_status rlx_grammar_parse(rlx_context *ctx, rlx_str gbnf, rlx_str root, rlx_grammar **out,
                             rlx_error *err)
{
    struct rlx_grammar *g;
    struct diag d;

    diag_init(&d, "grammar");
    if (!ctx || !gbnf.ptr || (!root.ptr && root.len) || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !ctx        ? "ctx"
                  : !gbnf.ptr ? "gbnf"
                  : !out      ? "out"
                              : "root");
    else if (gram_parse(gbnf, root, &ctx->mem, &g, &d) == RLX_OK) {
        g->owner = context_retain(ctx);
        *out = g;
    }
    return diag_report(&d, err);
}

rlx_status rlx_grammar_from_schema(rlx_context *ctx, rlx_str json, rlx_grammar **out,
                                   rlx_error *err)
{
    struct rlx_grammar *g;
    struct diag d;

    diag_init(&d, "schema");
    if (!ctx || !json.ptr || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !out ? "out" : "json");
    else if (gram_from_schema(json, &ctx->mem, &g, &d) == RLX_OK) {
        g->owner = context_retain(ctx);
        *out = g;
    }
    return diag_report(&d, err);
}

/* States may keep it longer; each of them has a reference to the context, too. */
void rlx_grammar_destroy(rlx_grammar *g)
{
    rlx_context *ctx = g ? g->owner : NULL;

    gram_release(g);
    context_release(ctx);
}

rlx_str rlx_grammar_text(const rlx_grammar *g)
{
    return g ? g->text : (rlx_str){NULL, 0};
}

/* ---- states ------------------------------------------------------------------------------ */

rlx_status rlx_grammar_state_create(rlx_grammar *g, const rlx_tokenizer *tokenizer,
                                    rlx_grammar_state **out, rlx_error *err)
{
    struct rlx_grammar_state *s;
    struct diag d;

    diag_init(&d, "grammar");
    if (!g || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !g ? "g" : "out");
    else if (gram_state_create(g, tokenizer, g->mem, &s, &d) == RLX_OK) {
        s->owner = context_retain(g->owner);
        *out = s;
    }
    return diag_report(&d, err);
}

rlx_status rlx_grammar_state_clone(const rlx_grammar_state *s, rlx_grammar_state **out,
                                   rlx_error *err)
{
    struct rlx_grammar_state *copy;
    struct diag d;

    diag_init(&d, "grammar");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !s ? "s" : "out");
    else if (gram_state_clone(s, &copy, &d) == RLX_OK) {
        context_retain(copy->owner);
        *out = copy;
    }
    return diag_report(&d, err);
}

void rlx_grammar_state_destroy(rlx_grammar_state *s)
{
    rlx_context *ctx = s ? s->owner : NULL;

    gram_state_free(s);
    context_release(ctx);
}

rlx_status rlx_grammar_mask(rlx_grammar_state *s, uint32_t *bits, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "grammar");
    if (!s || !bits)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !s ? "s" : "bits");
    else
        gram_state_mask(s, bits, &d);
    return diag_report(&d, err);
}

rlx_status rlx_grammar_accept(rlx_grammar_state *s, int32_t token, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "grammar");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else
        gram_state_accept(s, token, &d);
    return diag_report(&d, err);
}

rlx_status rlx_grammar_accept_bytes(rlx_grammar_state *s, rlx_str bytes, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "grammar");
    if (!s || (!bytes.ptr && bytes.len))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !s ? "s" : "bytes");
    else
        gram_state_bytes(s, bytes, &d);
    return diag_report(&d, err);
}

bool rlx_grammar_may_end(const rlx_grammar_state *s)
{
    return s && gram_state_may_end(s);
}

bool rlx_grammar_done(const rlx_grammar_state *s)
{
    return s && gram_state_done(s);
}
