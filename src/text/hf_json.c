/* hf_json.c: a tokenizer.json as metadata like GGUF's, of which the tokenizer is built. */
#include "text/hf_json.h"

#include <string.h>

/* A rule of the table that cuts alike, so that its name can go into a GGUF file; NULL: none does.
 */
static const struct tok_pre *same_rule(const struct tok_pre *pre)
{
    const struct tok_pre *p;

    for (size_t i = 0; (p = tok_pre_at(i)); i++) {
        size_t k = 0;
        while (k < TOK_MOST_STEPS && p->step[k].pattern && pre->step[k].pattern &&
               strcmp(p->step[k].pattern, pre->step[k].pattern) == 0)
            k++;
        bool end = k == TOK_MOST_STEPS ||
                   (!p->step[k].pattern && !p->step[k].find && !pre->step[k].pattern);
        if (end && k && (p->flags & PRE_WHOLE) == (pre->flags & PRE_WHOLE) && !(p->flags & PRE_RAW))
            return p;
    }
    return NULL;
}

struct making {
    struct hf_file *f;
    rlx_str *text;
    int32_t *type;
    size_t vocab;
    struct diag *d;
};

static rlx_status place_tokens(struct making *m)
{
    for (size_t i = 0; i < m->f->token.len; i++)
        if (m->f->token.at[i].id >= m->vocab)
            m->vocab = m->f->token.at[i].id + 1u;
    /* Ids may have holes, but a file of a few bytes makes no vocabulary of millions. */
    if (m->vocab > 4096 + 16 * m->f->token.len)
        return diag_fail(m->d, RLX_ERROR_FORMAT, "tokenizer.json: %zu tokens have ids up to %zu",
                         m->f->token.len, m->vocab - 1);
    m->text = arena_array(&m->f->arena, rlx_str, m->vocab);
    m->type = arena_array(&m->f->arena, int32_t, m->vocab);
    if (!m->text || !m->type)
        return diag_no_memory(m->d, m->vocab * sizeof *m->text);
    for (size_t i = 0; i < m->vocab; i++)
        m->type[i] = RLX_TOKEN_UNUSED;
    for (size_t i = 0; i < m->f->token.len; i++) {
        const struct hf_token *t = &m->f->token.at[i];
        if (m->text[t->id].len && !str_eq(m->text[t->id], t->text))
            return diag_fail(m->d, RLX_ERROR_FORMAT,
                             "tokenizer.json: \"%.*s\" and \"%.*s\" have the id %u",
                             STR_ARG(m->text[t->id]), STR_ARG(t->text), t->id);
        m->text[t->id] = t->text;
        if (m->type[t->id] == RLX_TOKEN_UNUSED || t->type != RLX_TOKEN_NORMAL)
            m->type[t->id] = t->type;
    }
    return RLX_OK;
}

/* UINT32_MAX: there is none, which is said as well, since kinds have defaults. */
static rlx_status find_id(const struct making *m, rlx_str text, uint32_t *out)
{
    *out = UINT32_MAX;
    for (uint32_t i = 0; text.len && i < m->vocab; i++)
        if (str_eq(m->text[i], text))
            *out = i;
    return *out != UINT32_MAX || !text.len
               ? RLX_OK
               : diag_fail(m->d, RLX_ERROR_FORMAT,
                           "tokenizer.json: its template adds \"%.*s\", which is no token",
                           STR_ARG(text));
}

static rlx_status create(struct making *m, const rlx_allocator *mem, struct rlx_tokenizer **out)
{
    const struct tok_pre *same = same_rule(&m->f->pre);
    const rlx_str model = STR("gpt2"), pre = rlx_cstr(same ? same->name : "tokenizer.json");
    uint32_t bos, eos;

    TRY(find_id(m, m->f->bos, &bos));
    TRY(find_id(m, m->f->eos, &eos));
    const uint8_t add_bos = bos != UINT32_MAX, add_eos = eos != UINT32_MAX;
    const rlx_meta meta[] = {
        {STR("tokenizer.ggml.model"), RLX_META_string, false, 1, &model},
        {STR("tokenizer.ggml.pre"), RLX_META_string, false, 1, &pre},
        {STR("tokenizer.ggml.tokens"), RLX_META_string, true, m->vocab, m->text},
        {STR("tokenizer.ggml.token_type"), RLX_META_i32, true, m->vocab, m->type},
        {STR("tokenizer.ggml.merges"), RLX_META_string, true, m->f->merge.len, m->f->merge.at},
        {STR("tokenizer.ggml.add_bos_token"), RLX_META_bool, false, 1, &add_bos},
        {STR("tokenizer.ggml.add_eos_token"), RLX_META_bool, false, 1, &add_eos},
        {STR("tokenizer.ggml.bos_token_id"), RLX_META_u32, false, 1, &bos},
        {STR("tokenizer.ggml.eos_token_id"), RLX_META_u32, false, 1, &eos},
    };
    return tok_create(meta, sizeof meta / sizeof *meta, STR(""), same ? NULL : &m->f->pre, mem, out,
                      m->d);
}

static rlx_status make(struct making *m, rlx_str text, const rlx_allocator *mem,
                       struct rlx_tokenizer **out)
{
    TRY(hf_read(m->f, text, m->d));
    if (!m->f->token.len)
        return diag_fail(m->d, RLX_ERROR_FORMAT, "tokenizer.json: it has no vocabulary");
    if (!m->f->bytes)
        return diag_fail(m->d, RLX_ERROR_UNSUPPORTED,
                         "tokenizer.json: only byte-level BPE is read, and no step of its "
                         "pre_tokenizer is ByteLevel");
    TRY(place_tokens(m));
    return create(m, mem, out);
}

rlx_status tok_from_json(rlx_str text, const rlx_allocator *mem, struct rlx_tokenizer **out,
                         struct diag *d)
{
    struct hf_file f = {.mem = mem, .pre = {.name = "tokenizer.json"}};
    struct making m = {.f = &f, .d = d};

    arena_init(&f.arena, mem);
    rlx_status s = make(&m, text, mem, out);
    hf_free(&f);
    return s;
}
