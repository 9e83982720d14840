/* vocab.c: the tokens: their texts, types and scores, checked, and found by text. */
#include <string.h>

#include "text/tokenizer.h"

static bool same_text(const void *owner, uint32_t id, const void *key)
{
    const struct rlx_tokenizer *t = owner;

    return str_eq(t->text[id], *(const rlx_str *)key);
}

uint32_t tok_find(const struct rlx_tokenizer *t, rlx_str text)
{
    uint32_t id;

    return map_find(&t->by_text, hash_bytes(text.ptr, text.len), same_text, t, &text, &id)
               ? id
               : TOK_NONE;
}

uint32_t tok_byte_token(const struct rlx_tokenizer *t, uint8_t byte)
{
    static const char digit[] = "0123456789ABCDEF";
    const char text[] = {'<', '0', 'x', digit[byte >> 4], digit[byte & 15], '>'};

    return tok_find(t, (rlx_str){text, sizeof text});
}

/* Names are made for tokens without a text, since several may be. */
static rlx_status name_empty(struct rlx_tokenizer *t, rlx_str *text, struct diag *d)
{
    for (uint32_t i = 0; i < t->vocab; i++) {
        if (text[i].len)
            continue;
        text[i].ptr = arena_printf(&t->arena, "[EMPTY_%u]", i);
        if (!text[i].ptr)
            return diag_no_memory(d, 16);
        text[i].len = strlen(text[i].ptr);
    }
    return RLX_OK;
}

static rlx_status read_texts(struct rlx_tokenizer *t, struct diag *d)
{
    const rlx_meta *m;

    TRY(tok_meta_array(t, "ggml.tokens", RLX_META_string, &m, d));
    if (!m || m->count == 0)
        return diag_fail(d, RLX_ERROR_FORMAT, "tokenizer.ggml.tokens %s",
                         m ? "is empty" : "is missing: there is no vocabulary");
    if (m->count > TOK_MOST_TOKENS)
        return diag_fail(d, RLX_ERROR_LIMIT, "a vocabulary of %zu tokens; at most %u are taken",
                         m->count, TOK_MOST_TOKENS);
    t->vocab = (uint32_t)m->count;
    rlx_str *text = arena_array(&t->arena, rlx_str, t->vocab);
    if (!text)
        return diag_no_memory(d, t->vocab * sizeof *text);
    memcpy(text, m->data, t->vocab * sizeof *text);
    t->text = text;
    TRY(name_empty(t, text, d));
    for (uint32_t i = 0; i < t->vocab; i++) {
        uint32_t other = tok_find(t, text[i]);
        if (other != TOK_NONE)
            return diag_fail(d, RLX_ERROR_FORMAT, "tokens %u and %u are both \"%.*s\"", other, i,
                             STR_ARG(text[i]));
        if (!map_add(&t->by_text, hash_bytes(text[i].ptr, text[i].len), i))
            return diag_no_memory(d, t->vocab);
    }
    return RLX_OK;
}

static rlx_status too_short(const rlx_meta *m, uint32_t vocab, struct diag *d)
{
    return diag_fail(d, RLX_ERROR_FORMAT, "%.*s has %zu elements for %u tokens", STR_ARG(m->key),
                     m->count, vocab);
}

static rlx_status read_types(struct rlx_tokenizer *t, struct diag *d)
{
    const rlx_meta *m = tok_meta(t, "ggml.token_type");

    t->type = arena_array(&t->arena, uint8_t, t->vocab);
    t->mark = arena_array(&t->arena, uint8_t, t->vocab);
    if (!t->type || !t->mark)
        return diag_no_memory(d, t->vocab);
    memset(t->type, RLX_TOKEN_NORMAL, t->vocab);
    if (!m)
        return RLX_OK;
    /* The same bits, for all values that mean something. */
    if (!m->is_array || (m->type != RLX_META_i32 && m->type != RLX_META_u32))
        return tok_meta_array(t, "ggml.token_type", RLX_META_i32, &m, d);
    if (m->count < t->vocab)
        return too_short(m, t->vocab, d);
    for (uint32_t i = 0; i < t->vocab; i++) {
        uint32_t type = ((const uint32_t *)m->data)[i];
        if (type > RLX_TOKEN_BYTE)
            return diag_fail(d, RLX_ERROR_FORMAT,
                             "tokenizer.ggml.token_type: token %u is of type %d, which means "
                             "nothing",
                             i, (int)type);
        t->type[i] = (uint8_t)type;
    }
    return RLX_OK;
}

static rlx_status read_scores(struct rlx_tokenizer *t, struct diag *d)
{
    const rlx_meta *m = tok_meta(t, "ggml.scores");

    if (!m)
        return t->kind->wants_scores ? diag_fail(d, RLX_ERROR_FORMAT,
                                                 "tokenizer.ggml.scores is missing; tokenizers "
                                                 "of kind %s are made of it",
                                                 t->kind->name)
                                     : RLX_OK;
    if (m->is_array && m->type == RLX_META_i32) {
        float *score = arena_array(&t->arena, float, m->count);
        if (!score)
            return diag_no_memory(d, m->count * sizeof *score);
        for (size_t i = 0; i < m->count; i++)
            score[i] = (float)((const int32_t *)m->data)[i];
        t->score = score;
    } else {
        TRY(tok_meta_array(t, "ggml.scores", RLX_META_f32, &m, d));
        t->score = m->data;
    }
    if (m->count < t->vocab)
        return too_short(m, t->vocab, d);
    for (uint32_t i = 0; i < t->vocab; i++)
        if (t->score[i] != t->score[i])
            return diag_fail(d, RLX_ERROR_FORMAT, "tokenizer.ggml.scores: that of token %u is NaN",
                             i);
    return RLX_OK;
}

rlx_status tok_vocab_build(struct rlx_tokenizer *t, struct diag *d)
{
    TRY(read_texts(t, d));
    TRY(read_types(t, d));
    return read_scores(t, d);
}
