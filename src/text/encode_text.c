/* encode_text.c: text to ids: what begins and ends it, and what every kind needs. */
#include <string.h>

#include "rlx/template.h"
#include "text/merge_symbols.h"
#include "text/unigram.h"

rlx_status tok_emit(struct tok_run *r, uint32_t id)
{
    rlx_token_ids *o = r->out;

    if (o->count == o->cap && !vec_grow(r->t->mem, &o->at, &o->cap, o->count, 1, sizeof *o->at))
        return diag_no_memory(r->d, sizeof *o->at);
    o->at[o->count++] = (int32_t)id;
    return RLX_OK;
}

rlx_status tok_emit_unknown(struct tok_run *r, rlx_str bytes)
{
    int32_t id = r->t->special[RLX_SPECIAL_unk];

    return id >= 0 ? tok_emit(r, (uint32_t)id)
                   : diag_fail(r->d, RLX_ERROR_INDEX,
                               "the vocabulary has no token for byte 0x%02x of the text, and "
                               "none for what is unknown",
                               (unsigned char)bytes.ptr[0]);
}

rlx_status tok_escape_spaces(struct tok_run *r, rlx_str text, bool prefix, rlx_str *out)
{
    struct text *s = &r->scratch;

    s->len = 0;
    if (prefix)
        text_add(s, STR(TOK_SPACE));
    while (text.len) {
        const char *space = memchr(text.ptr, ' ', text.len);
        size_t len = space ? (size_t)(space - text.ptr) : text.len;
        text_add(s, (rlx_str){text.ptr, len});
        if (space) {
            text_add(s, STR(TOK_SPACE));
            len++;
        }
        text.ptr += len;
        text.len -= len;
    }
    if (s->failed)
        return diag_no_memory(r->d, s->len);
    *out = (rlx_str){s->at, s->len};
    tok_words_in(r, s->at);
    return RLX_OK;
}

static rlx_status add(struct tok_run *r, bool wanted, rlx_special_token which)
{
    int32_t id = r->t->special[which];

    return wanted && id >= 0 ? tok_emit(r, (uint32_t)id) : RLX_OK;
}

static rlx_status encode(struct tok_run *r, uint32_t flags)
{
    const struct rlx_tokenizer *t = r->t;
    bool ends = flags & RLX_ENCODE_ADD;

    TRY(add(r, ends && t->add_bos, RLX_SPECIAL_bos));
    TRY(tok_encode_fragments(r, flags & RLX_ENCODE_PARSE));
    TRY(add(r, ends && t->add_sep, RLX_SPECIAL_sep));
    return add(r, ends && t->add_eos, RLX_SPECIAL_eos);
}

static rlx_status encode_all(const struct rlx_tokenizer *t, rlx_str text, const uint8_t *data,
                             uint32_t flags, rlx_token_ids *out, struct diag *d)
{
    struct tok_run r = {.t = t, .d = d, .out = out, .text = text, .data = data};
    const size_t before = out->count;
    const bool had_room = out->at != NULL;

    text_init(&r.scratch, t->mem);
    tok_words_begin(&r);
    tok_words_in(&r, text.ptr);
    rlx_status s = encode(&r, flags);
    if (s != RLX_OK)
        out->count = before;
    if (s != RLX_OK && !had_room) { /* as it was: nothing to free */
        mem_free(t->mem, out->at, out->cap * sizeof *out->at);
        *out = (rlx_token_ids){0};
    }
    tok_words_end(&r);
    vec_free(t->mem, &r.node);
    vec_free(t->mem, &r.heap);
    vec_free(t->mem, &r.ends);
    text_free(&r.scratch);
    return s;
}

rlx_status tok_encode(const struct rlx_tokenizer *t, rlx_str text, uint32_t flags,
                      rlx_token_ids *out, struct diag *d)
{
    return encode_all(t, text, NULL, flags, out, d);
}

rlx_status tok_encode_spans(const struct rlx_tokenizer *t, rlx_str text, const rlx_text_span *span,
                            size_t count, rlx_token_ids *out, struct diag *d)
{
    uint8_t *data = mem_alloc(t->mem, text.len);
    size_t at = 0;

    if (!data && text.len)
        return diag_no_memory(d, text.len);
    for (size_t i = 0; i < count; at += span[i++].len)
        if (span[i].len)
            memset(data + at, span[i].data, span[i].len);
    const rlx_status s = encode_all(t, text, data, RLX_ENCODE_PARSE, out, d);
    mem_free(t->mem, data, text.len);
    return s;
}
