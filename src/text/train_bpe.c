/* train_bpe.c: learns byte-level BPE from text.
 *
 *     text -> words, each once, with how often it comes        "low" x 5
 *     words -> places: a symbol, and the next place            l -> o -> w
 *     pairs of neighbours, with their count and their places   (l, o): 5, at {0}
 *     the most frequent pair becomes a symbol, at its places only; and again
 *
 * The heap keeps a pair under the count it had when it was put in; counts fall afterwards, and a
 * pair that comes out with another count goes in again. */
#include <stdio.h>
#include <string.h>

#include "text/tokenizer.h"
#include "text/train_places.h"
#include "text/unicode.h"

enum { BYTES = 256 };

/* ---- words ------------------------------------------------------------------------------- */

struct word {
    rlx_str text;
    uint64_t count;
};

struct training {
    const rlx_allocator *mem;
    const rlx_bpe_desc *desc;
    struct diag *d;
    struct arena arena;
    struct tok_cutter cutter;
    VEC(struct word) word;
    struct map by_text;
    struct places places;
    VEC(rlx_str) token; /* in the map of bytes */
    struct map by_token;
    VEC(rlx_str) merge; /* "left right" */
};

static bool same_word(const void *owner, uint32_t i, const void *key)
{
    return str_eq(((const struct training *)owner)->word.at[i].text, *(const rlx_str *)key);
}

static rlx_status count_word(void *user, rlx_str text)
{
    struct training *r = user;
    uint64_t hash = hash_bytes(text.ptr, text.len);
    uint32_t i;

    if (map_find(&r->by_text, hash, same_word, r, &text, &i)) {
        r->word.at[i].count++;
        return RLX_OK;
    }
    if (r->word.len >= UINT32_MAX || !vec_room(r->mem, &r->word) ||
        !map_add(&r->by_text, hash, (uint32_t)r->word.len))
        return diag_no_memory(r->d, sizeof(struct word));
    r->word.at[r->word.len++] = (struct word){text, 1};
    return RLX_OK;
}

/* The first special token in the text; len 0: there is none. Of several that begin alike, the
 * longest. */
static rlx_str find_special(const rlx_bpe_desc *desc, rlx_str text)
{
    rlx_str best = {text.ptr + text.len, 0};

    for (size_t i = 0; i < desc->special_count; i++) {
        rlx_str s = desc->special[i];
        const char *p = memmem(text.ptr, text.len, s.ptr, s.len);
        if (p && (p < best.ptr || (p == best.ptr && s.len > best.len)))
            best = (rlx_str){p, s.len};
    }
    return best;
}

static rlx_status count_words(struct training *r, rlx_str text)
{
    while (text.len) {
        rlx_str special = find_special(r->desc, text);
        rlx_str before = {text.ptr, (size_t)(special.ptr - text.ptr)};
        TRY(tok_cut(&r->cutter, before, count_word, r, r->d));
        text.ptr += before.len + special.len;
        text.len -= before.len + special.len;
    }
    return RLX_OK;
}

/* ---- tokens ------------------------------------------------------------------------------ */

static bool same_token(const void *owner, uint32_t i, const void *key)
{
    return str_eq(((const struct training *)owner)->token.at[i], *(const rlx_str *)key);
}

static rlx_status add_token(struct training *r, rlx_str text)
{
    uint64_t hash = hash_bytes(text.ptr, text.len);
    uint32_t i;

    if (map_find(&r->by_token, hash, same_token, r, &text, &i))
        return diag_fail(r->d, RLX_ERROR_ARGUMENT,
                         "the special token \"%.*s\" is also token %u, which was learned or is "
                         "special as well",
                         STR_ARG(text), i);
    if (!vec_room(r->mem, &r->token) || !map_add(&r->by_token, hash, (uint32_t)r->token.len))
        return diag_no_memory(r->d, sizeof text);
    r->token.at[r->token.len++] = text;
    return RLX_OK;
}

static rlx_status add_bytes(struct training *r)
{
    for (uint32_t b = 0; b < BYTES; b++) {
        char text[4];
        rlx_str s =
            arena_str(&r->arena, (rlx_str){text, utf8_put(tok_byte_char((uint8_t)b), text)});
        if (!s.ptr)
            return diag_no_memory(r->d, sizeof text);
        TRY(add_token(r, s));
    }
    return RLX_OK;
}

/* The symbol that a merge gives: a new token, or one of the same text, which other merges made. */
static rlx_status add_merged(struct training *r, uint32_t left, uint32_t right, uint32_t *out)
{
    rlx_str a = r->token.at[left], b = r->token.at[right];
    size_t len = a.len + b.len;
    char *merge = arena_alloc(&r->arena, len + 1, 1), *joined = arena_alloc(&r->arena, len, 1);

    if (!merge || !joined || !vec_room(r->mem, &r->merge))
        return diag_no_memory(r->d, len);
    memcpy(joined, a.ptr, a.len);
    memcpy(joined + a.len, b.ptr, b.len);
    memcpy(merge, a.ptr, a.len);
    merge[a.len] = ' ';
    memcpy(merge + a.len + 1, b.ptr, b.len);
    r->merge.at[r->merge.len++] = (rlx_str){merge, len + 1};
    rlx_str text = {joined, len};
    if (map_find(&r->by_token, hash_bytes(joined, len), same_token, r, &text, out))
        return RLX_OK;
    *out = (uint32_t)r->token.len;
    return add_token(r, text);
}

static rlx_status learn(struct training *r)
{
    const size_t wanted = r->desc->vocab - r->desc->special_count;
    const uint64_t least = r->desc->min_count ? r->desc->min_count : 2;
    uint32_t left, right, symbol;

    for (size_t i = 0; i < r->word.len; i++)
        TRY(places_add_word(&r->places, r->word.at[i].text, r->word.at[i].count, r->d));
    TRY(places_begin(&r->places, r->d));
    while (r->token.len < wanted && places_best(&r->places, least, &left, &right)) {
        TRY(add_merged(r, left, right, &symbol));
        TRY(places_merge(&r->places, symbol, r->d));
    }
    return RLX_OK;
}

/* ---- the tokenizer ----------------------------------------------------------------------- */

static rlx_meta one_string(const char *key, const rlx_str *s)
{
    return (rlx_meta){rlx_cstr(key), RLX_META_string, false, 1, s};
}

static rlx_status create(struct training *r, struct rlx_tokenizer **out)
{
    const rlx_bpe_desc *desc = r->desc;
    const rlx_str model = STR("gpt2"), pre = rlx_cstr(desc->pre);
    const size_t learned = r->token.len;
    size_t count;

    for (size_t i = 0; i < desc->special_count; i++)
        TRY(add_token(r, desc->special[i]));
    int32_t *type = arena_array(&r->arena, int32_t, r->token.len);
    if (!type)
        return diag_no_memory(r->d, r->token.len * sizeof *type);
    for (size_t i = 0; i < r->token.len; i++)
        type[i] = i < learned ? RLX_TOKEN_NORMAL : RLX_TOKEN_CONTROL;
    const uint32_t bos = (uint32_t)learned, eos = (uint32_t)r->token.len - 1;
    const uint8_t add_bos = desc->add_bos, add_eos = desc->add_eos;
    const rlx_meta meta[] = {
        one_string("tokenizer.ggml.model", &model),
        one_string("tokenizer.ggml.pre", &pre),
        {STR("tokenizer.ggml.tokens"), RLX_META_string, true, r->token.len, r->token.at},
        {STR("tokenizer.ggml.token_type"), RLX_META_i32, true, r->token.len, type},
        {STR("tokenizer.ggml.merges"), RLX_META_string, true, r->merge.len, r->merge.at},
        {STR("tokenizer.ggml.add_bos_token"), RLX_META_bool, false, 1, &add_bos},
        {STR("tokenizer.ggml.add_eos_token"), RLX_META_bool, false, 1, &add_eos},
        {STR("tokenizer.ggml.bos_token_id"), RLX_META_u32, false, 1, &bos},
        {STR("tokenizer.ggml.eos_token_id"), RLX_META_u32, false, 1, &eos},
    };
    count = sizeof meta / sizeof *meta;
    return tok_create(meta, count, STR(""), NULL, r->mem, out, r->d);
}

static rlx_status check(const rlx_bpe_desc *desc, struct diag *d)
{
    for (size_t i = 0; i < desc->special_count; i++)
        if (desc->special[i].len == 0 || !desc->special[i].ptr)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "bpe_train: special token %zu is empty", i);
    if (desc->special_count > TOK_MOST_TOKENS || desc->vocab > TOK_MOST_TOKENS)
        return diag_fail(d, RLX_ERROR_LIMIT, "bpe_train: at most %u tokens are made",
                         TOK_MOST_TOKENS);
    if (desc->vocab < BYTES + desc->special_count)
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "bpe_train: %u tokens are too few: there are 256 bytes and %zu special "
                         "tokens",
                         desc->vocab, desc->special_count);
    return RLX_OK;
}

static rlx_status train(struct training *r, rlx_str text, struct rlx_tokenizer **out)
{
    const struct tok_pre *pre = tok_pre_find(rlx_cstr(r->desc->pre));

    TRY(check(r->desc, r->d));
    if (!pre || pre->flags & PRE_RAW)
        return diag_fail(r->d, RLX_ERROR_ARGUMENT, "bpe_train: there is no rule \"%s\"%s",
                         r->desc->pre, pre ? " for bytes" : "");
    TRY(tok_cutter_build(&r->cutter, pre, &r->arena, r->d));
    TRY(add_bytes(r));
    TRY(count_words(r, text));
    TRY(learn(r));
    return create(r, out);
}

rlx_status tok_bpe_train(rlx_str text, const rlx_bpe_desc *desc, const rlx_allocator *mem,
                         struct rlx_tokenizer **out, struct diag *d)
{
    static const rlx_str end_of_text = {"<|endoftext|>", 13};
    rlx_bpe_desc own = *desc;
    struct training r = {.mem = mem, .desc = &own, .d = d};

    if (!own.pre)
        own.pre = "gpt-2";
    if (!own.special) {
        own.special = &end_of_text;
        own.special_count = 1;
    }
    arena_init(&r.arena, mem);
    map_init(&r.by_text, mem);
    map_init(&r.by_token, mem);
    places_init(&r.places, mem);
    rlx_status s = train(&r, text, out);
    places_free(&r.places);
    map_free(&r.by_token);
    map_free(&r.by_text);
    vec_free(mem, &r.merge);
    vec_free(mem, &r.token);
    vec_free(mem, &r.word);
    arena_free(&r.arena);
    return s;
}
