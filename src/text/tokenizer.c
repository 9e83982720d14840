/* tokenizer.c: tokenizers are built of metadata, whatever it comes from. */
#include "text/tokenizer.h"

#include <string.h>

#include "import/detect.h"
#include "text/hf_json.h"
#include "text/token_prefix.h"

const struct tok_kind tok_kinds[] = {
/* clang-format off */
#define IDS(bos_, eos_, unk_, sep_, pad_, cls_, mask_) \
    .bos = bos_, .eos = eos_, .unk = unk_, .sep = sep_, .pad = pad_, .cls = cls_, .mask = mask_
    {"llama",  IDS(1, 2, 0, -1, -1, -1, -1), .add_bos = true, .space_prefix = true, .wants_scores = true,
     .spelling = TOK_SPACED, .build = tok_spm_build, .encode = tok_spm_encode},
    {"gpt2",   IDS(11, 11, -1, -1, -1, -1, -1), .wants_merges = true,
     .spelling = TOK_MAPPED, .build = tok_bpe_build, .free = tok_bpe_free, .encode = tok_bpe_encode},
    {"gemma4", IDS(-1, -1, -1, -1, -1, -1, -1), .add_bos = true, .always_bos = true, .wants_merges = true,
     .pre = "gemma4",
     .spelling = TOK_SPACED, .build = tok_bpe_build, .free = tok_bpe_free, .encode = tok_bpe_encode},
    {"bert",   IDS(101, -1, 100, 102, 0, 101, 103), .add_bos = true, .always_bos = true, .cls_sep = true,
     .spelling = TOK_WORDS, .build = tok_wordpiece_build, .free = tok_wordpiece_free,
     .encode = tok_wordpiece_encode},
    {"t5",     IDS(-1, 1, 2, -1, 0, -1, -1), .add_eos = true, .wants_scores = true,
     .spelling = TOK_SPACED, .build = tok_unigram_build, .encode = tok_unigram_encode},
    {"rwkv",   IDS(-1, -1, -1, -1, -1, -1, -1),
     .spelling = TOK_ESCAPED, .build = tok_rwkv_build, .encode = tok_rwkv_encode},
#undef IDS
    /* clang-format on */
};
const size_t tok_kind_count = sizeof tok_kinds / sizeof *tok_kinds;

static rlx_status choose_kind(struct rlx_tokenizer *t, struct diag *d)
{
    rlx_str name = {0};

    TRY(tok_meta_str(t, "ggml.model", &name, d));
    if (!name.ptr)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "tokenizer.ggml.model is missing: the file has no tokenizer");
    for (size_t i = 0; i < tok_kind_count; i++)
        if (str_eq(name, rlx_cstr(tok_kinds[i].name)))
            t->kind = &tok_kinds[i];
    return t->kind ? RLX_OK
                   : diag_fail(d, RLX_ERROR_UNSUPPORTED,
                               "tokenizer.ggml.model is \"%.*s\": there is no such kind of "
                               "tokenizer here",
                               STR_ARG(name));
}

static rlx_status choose_pre(struct rlx_tokenizer *t, struct diag *d)
{
    rlx_str name = STR("default");
    rlx_nearest near;
    char hint[RLX_NEAREST_HINT];

    if (t->pre)
        return RLX_OK;
    if (t->kind->pre)
        name = rlx_cstr(t->kind->pre);
    else if (strcmp(t->kind->name, "gpt2") != 0)
        return RLX_OK; /* the others do not look at it */
    else {
        t->pre_assumed = !tok_meta(t, "ggml.pre");
        TRY(tok_meta_str(t, "ggml.pre", &name, d));
    }
    t->pre = tok_pre_find(name);
    if (t->pre)
        return RLX_OK;
    near = (rlx_nearest){.wanted = name};
    for (size_t i = 0; tok_pre_at(i); i++)
        rlx_nearest_offer(&near, rlx_cstr(tok_pre_at(i)->name));
    return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                     "tokenizer.ggml.pre is \"%.*s\": there is no such rule here%s", STR_ARG(name),
                     rlx_nearest_hint(&near, hint));
}

static rlx_status build(struct rlx_tokenizer *t, struct diag *d)
{
    TRY(choose_kind(t, d));
    TRY(choose_pre(t, d));
    t->spelling = t->kind->spelling;
    if (t->pre && (t->pre->flags & PRE_RAW))
        t->spelling = TOK_SPACED;
    if (t->kind->wants_merges && !tok_meta(t, "ggml.merges") &&
        !(t->pre && strcmp(t->pre->name, "kimi-k2") == 0))
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "tokenizer.ggml.merges is missing; tokenizers of kind %s are made of it",
                         t->kind->name);
    TRY(tok_vocab_build(t, d));
    TRY(tok_special_ids(t, d));
    TRY(tok_special_build(t, d));
    return t->kind->build(t, d);
}

/* Names are compared in lower case. */
static rlx_status keep_name(struct rlx_tokenizer *t, rlx_str name, struct diag *d)
{
    char *at = arena_alloc(&t->arena, name.len, 1);

    if (!at)
        return diag_no_memory(d, name.len);
    for (size_t i = 0; i < name.len; i++)
        at[i] = name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? (char)(name.ptr[i] + 32) : name.ptr[i];
    t->name = (rlx_str){at, name.len};
    return RLX_OK;
}

rlx_status tok_create(const rlx_meta *meta, size_t count, rlx_str name, const struct tok_pre *pre,
                      const rlx_allocator *mem, struct rlx_tokenizer **out, struct diag *d)
{
    struct rlx_tokenizer *t = mem_alloc(mem, sizeof *t);

    if (!t)
        return diag_no_memory(d, sizeof *t);
    t->mem = mem;
    arena_init(&t->arena, mem);
    map_init(&t->by_text, mem);
    if (pre) {
        t->own_pre = *pre;
        t->pre = &t->own_pre;
    }
    rlx_status s = tok_meta_keep(t, meta, count, d);
    if (s == RLX_OK)
        s = keep_name(t, name, d);
    if (s == RLX_OK)
        s = build(t, d);
    memset(t->own_pre.step, 0, sizeof t->own_pre.step); /* the caller's, and read by now */
    if (s != RLX_OK)
        tok_free(t);
    else
        *out = t;
    return s;
}

void tok_free(struct rlx_tokenizer *t)
{
    if (!t)
        return;
    const rlx_allocator *mem = t->mem;
    if (t->kind && t->kind->free)
        t->kind->free(t);
    tok_prefixes_free(atomic_load(&t->prefixes));
    trie_free(&t->cut.trie);
    trie_free(&t->trie);
    map_free(&t->by_text);
    vec_free(mem, &t->meta);
    arena_free(&t->arena);
    mem_free(mem, t, sizeof *t);
}

rlx_status tok_from_weights(const struct weights *w, const rlx_allocator *mem,
                            struct rlx_tokenizer **out, struct diag *d)
{
    rlx_str name = STR("");

    if (w->kind != RLX_FILE_gguf)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                         "a tokenizer comes from a GGUF file or a tokenizer.json, not from %s",
                         rlx_file_kind_name(w->kind));
    TRY(meta_get_str(w, STR("general.name"), &name, d));
    return tok_create(w->meta.at, w->meta.len, name, NULL, mem, out, d);
}

rlx_status tok_from_bytes(const uint8_t *bytes, size_t size, const rlx_allocator *mem,
                          struct rlx_tokenizer **out, struct diag *d)
{
    struct weights w;
    size_t at = 0;

    while (at < size && strchr(" \t\n\r", bytes[at]) && bytes[at])
        at++;
    if (at < size && bytes[at] == '{')
        return tok_from_json((rlx_str){(const char *)bytes, size}, mem, out, d);
    if (detect_kind(bytes, size) != RLX_FILE_gguf)
        return diag_fail(d, RLX_ERROR_FORMAT, "this is neither GGUF nor a tokenizer.json");
    weights_init(&w, mem);
    rlx_status s = gguf_read(&w, bytes, size, d);
    w.kind = RLX_FILE_gguf;
    if (s == RLX_OK)
        s = tok_from_weights(&w, mem, out, d);
    weights_free(&w);
    return s;
}

/* ---- asked ------------------------------------------------------------------------------- */

void tok_describe(const struct rlx_tokenizer *t, rlx_tokenizer_info *out)
{
    out->kind = t->kind->name;
    out->pre = t->pre ? t->pre->name : "";
    out->vocab = t->vocab;
    out->merges = (uint32_t)t->bpe.merge.len;
    memcpy(out->special, t->special, sizeof out->special);
    out->add_bos = t->add_bos;
    out->add_eos = t->add_eos;
}

bool tok_at(const struct rlx_tokenizer *t, int32_t id, rlx_token *out)
{
    if (id < 0 || (uint32_t)id >= t->vocab)
        return false;
    *out = (rlx_token){.text = t->text[id],
                       .type = (rlx_token_type)t->type[id],
                       .score = t->score ? t->score[id] : 0,
                       .ends = t->mark[id] & TOK_MARK_ENDS};
    return true;
}
