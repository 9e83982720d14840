/* cut_special.c: text is cut at special tokens before anything else: at the longest ones first, of
 * each at its leftmost occurrences in what is left (llm-tokenizers.md 4).
 *
 *     "a<|im_end|>b<b>"   the text
 *     -##########-###     taken: bytes that belong to a token
 *
 * A walk through the trie says which tokens occur at all; mostly none does, or a few. */
#include <string.h>

#include "text/tokenizer.h"

/* ---- which tokens ------------------------------------------------------------------------ */

static bool longer(const struct rlx_tokenizer *t, uint32_t a, uint32_t b)
{
    return t->text[a].len != t->text[b].len ? t->text[a].len > t->text[b].len : a < b;
}

/* A stable order in one pass per level: shell sort would do as well, but a heap has no bad case. */
static void sift(const struct rlx_tokenizer *t, uint32_t *id, size_t at, size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && longer(t, id[child], id[child + 1]))
            child++;
        if (!longer(t, id[at], id[child]))
            return;
        uint32_t swap = id[at];
        id[at] = id[child];
        id[child] = swap;
    }
}

static void sort_by_length(const struct rlx_tokenizer *t, uint32_t *id, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(t, id, i, count);
    for (size_t end = count; end-- > 1;) {
        uint32_t swap = id[0];
        id[0] = id[end];
        id[end] = swap;
        sift(t, id, 0, end);
    }
}

static bool is_special(uint8_t type)
{
    return type == RLX_TOKEN_USER_DEFINED || type == RLX_TOKEN_CONTROL || type == RLX_TOKEN_UNKNOWN;
}

rlx_status tok_special_build(struct rlx_tokenizer *t, struct diag *d)
{
    struct tok_special *s = &t->cut;

    for (uint32_t i = 0; i < t->vocab; i++)
        s->count += is_special(t->type[i]);
    if (s->count == 0)
        return RLX_OK;
    s->id = arena_array(&t->arena, uint32_t, s->count);
    if (!s->id)
        return diag_no_memory(d, s->count * sizeof *s->id);
    size_t n = 0;
    for (uint32_t i = 0; i < t->vocab; i++)
        if (is_special(t->type[i]))
            s->id[n++] = i;
    sort_by_length(t, s->id, n);
    return trie_build(&s->trie, t->text, s->id, s->count, t->mem, d);
}

/* ---- where they are ---------------------------------------------------------------------- */

struct place {
    size_t at;
    uint32_t id;
};

struct cutting {
    struct tok_run *r;
    rlx_str text;
    uint8_t *occurs; /* by id */
    uint8_t *taken;  /* by byte */
    VEC(struct place) place;
};

/* Marks the tokens that occur; false: none does. */
static bool find_tokens(const struct rlx_tokenizer *t, rlx_str text, bool parse, uint8_t *occurs,
                        uint32_t *first)
{
    const struct trie *trie = &t->cut.trie;
    bool any = false;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char b = (unsigned char)text.ptr[i];
        if (trie->first[b] == trie->first[b + 1])
            continue;
        struct trie_walk w = trie_begin(trie, (rlx_str){text.ptr + i, text.len - i});
        for (uint32_t id; trie_next(&w, &id);) {
            if (!parse && t->type[id] != RLX_TOKEN_USER_DEFINED)
                continue;
            if (!occurs) {
                *first = id;
                return true;
            }
            occurs[id] = 1;
            any = true;
        }
    }
    return any;
}

/* May whoever writes data write this token: a word that the vocabulary adds, such as <think>, but
 * no mark of who is speaking, whatever its type is? */
static bool is_for_all(const struct rlx_tokenizer *t, uint32_t id)
{
    const rlx_str s = t->text[id];
    const bool mark = (str_starts(s, STR("<|")) && str_ends(s, STR("|>"))) ||
                      (str_starts(s, STR("<\xef\xbd\x9c")) && str_ends(s, STR("\xef\xbd\x9c>")));

    return t->type[id] == RLX_TOKEN_USER_DEFINED && !mark;
}

static rlx_status take_places(struct cutting *c, uint32_t id)
{
    const uint8_t *data = is_for_all(c->r->t, id) ? NULL : c->r->data;
    rlx_str token = c->r->t->text[id];

    for (size_t at = 0; at + token.len <= c->text.len;) {
        const char *p = memmem(c->text.ptr + at, c->text.len - at, token.ptr, token.len);
        if (!p)
            break;
        at = (size_t)(p - c->text.ptr);
        const uint8_t *taken = memchr(c->taken + at, 1, token.len);
        if (!taken && data && memchr(data + at, 1, token.len)) {
            at++;
            continue;
        }
        if (taken) {
            at = (size_t)(taken - c->taken) + 1;
            continue;
        }
        if (!vec_room(c->r->t->mem, &c->place))
            return diag_no_memory(c->r->d, sizeof(struct place));
        c->place.at[c->place.len++] = (struct place){at, id};
        memset(c->taken + at, 1, token.len);
        at += token.len;
    }
    return RLX_OK;
}

/* ---- the pieces -------------------------------------------------------------------------- */

static bool eaten(char c)
{
    return c == ' ' || (c >= 9 && c <= 13);
}

static rlx_status encode_between(struct cutting *c, size_t from, size_t to, uint8_t before,
                                 uint8_t after)
{
    while (before & TOK_MARK_EATS_RIGHT && from < to && eaten(c->text.ptr[from]))
        from++;
    while (after & TOK_MARK_EATS_LEFT && from < to && eaten(c->text.ptr[to - 1]))
        to--;
    return from < to ? c->r->t->kind->encode(c->r, (rlx_str){c->text.ptr + from, to - from})
                     : RLX_OK;
}

/* Places come token by token; the mark of where each begins puts them in the order of the text. */
static rlx_status encode_pieces(struct cutting *c, uint32_t *by_byte)
{
    const struct rlx_tokenizer *t = c->r->t;
    size_t from = 0;
    uint8_t before = 0;

    for (size_t i = 0; i < c->place.len; i++)
        by_byte[c->place.at[i].at] = c->place.at[i].id + 1;
    for (size_t at = 0; at < c->text.len; at++) {
        if (!by_byte[at])
            continue;
        uint32_t id = by_byte[at] - 1;
        TRY(encode_between(c, from, at, before, t->mark[id]));
        TRY(tok_emit(c->r, id));
        from = at + t->text[id].len;
        at = from - 1;
        before = t->mark[id];
    }
    return encode_between(c, from, c->text.len, before, 0);
}

static rlx_status cut_and_encode(struct cutting *c, bool parse, uint32_t *by_byte)
{
    const struct tok_special *s = &c->r->t->cut;
    uint32_t unused;

    find_tokens(c->r->t, c->text, parse, c->occurs, &unused);
    for (size_t i = 0; i < s->count; i++)
        if (c->occurs[s->id[i]])
            TRY(take_places(c, s->id[i]));
    return encode_pieces(c, by_byte);
}

rlx_status tok_encode_fragments(struct tok_run *r, bool parse)
{
    const struct rlx_tokenizer *t = r->t;
    struct cutting c = {.r = r, .text = r->text};
    uint32_t first;

    if (r->text.len == 0)
        return RLX_OK;
    if (t->cut.count == 0 || !find_tokens(t, r->text, parse, NULL, &first))
        return t->kind->encode(r, r->text);
    uint32_t *by_byte = mem_alloc(t->mem, r->text.len * sizeof *by_byte);
    c.occurs = mem_alloc(t->mem, t->vocab);
    c.taken = mem_alloc(t->mem, r->text.len);
    rlx_status s = by_byte && c.occurs && c.taken
                       ? cut_and_encode(&c, parse, by_byte)
                       : diag_no_memory(r->d, r->text.len * sizeof *by_byte);
    vec_free(t->mem, &c.place);
    mem_free(t->mem, c.taken, r->text.len);
    mem_free(t->mem, c.occurs, t->vocab);
    mem_free(t->mem, by_byte, r->text.len * sizeof *by_byte);
    return s;
}
