/* bpe.c: byte pair encoding by ranked merges: symbols are joined, the pair of the lowest rank
 * first, of equal ones the leftmost.
 *
 *     "hello"   h e l l o   ->   he l l o   ->   he ll o   ->   hell o   ->   hello
 *
 * Here is where ranks come from; merge_symbols.c merges. */
#include <string.h>

#include "text/merge_symbols.h"
#include "text/unicode.h"

/* ---- the merges, as numbers -------------------------------------------------------------- */

struct pair {
    uint32_t left, right;
};

static uint64_t hash_pair(uint32_t left, uint32_t right)
{
    return hash_mix(left, right);
}

static bool same_pair(const void *owner, uint32_t rank, const void *key)
{
    const struct tok_merge *m = &((const struct tok_bpe *)owner)->merge.at[rank];
    const struct pair *p = key;

    return m->left == p->left && m->right == p->right;
}

/* TOK_NONE: they are not merged. */
static uint32_t rank_of(const struct tok_bpe *b, uint32_t left, uint32_t right)
{
    const struct pair p = {left, right};
    uint32_t rank;

    return map_find(&b->rank, hash_pair(left, right), same_pair, b, &p, &rank) ? rank : TOK_NONE;
}

static bool same_extra(const void *owner, uint32_t i, const void *key)
{
    return str_eq(((const struct tok_bpe *)owner)->extra.at[i], *(const rlx_str *)key);
}

/* The symbol of that text; TOK_NONE: there is none. */
static uint32_t symbol_of(const struct rlx_tokenizer *t, rlx_str text)
{
    uint32_t i = tok_find(t, text);

    if (i != TOK_NONE || !map_find(&t->bpe.extra_by_text, hash_bytes(text.ptr, text.len),
                                   same_extra, &t->bpe, &text, &i))
        return i;
    return t->vocab + i;
}

static rlx_status add_symbol(struct rlx_tokenizer *t, rlx_str text, uint32_t *out, struct diag *d)
{
    struct tok_bpe *b = &t->bpe;

    *out = symbol_of(t, text);
    if (*out != TOK_NONE)
        return RLX_OK;
    if (!vec_room(t->mem, &b->extra) ||
        !map_add(&b->extra_by_text, hash_bytes(text.ptr, text.len), (uint32_t)b->extra.len))
        return diag_no_memory(d, sizeof text);
    *out = t->vocab + (uint32_t)b->extra.len;
    b->extra.at[b->extra.len++] = text;
    return RLX_OK;
}

static bool one_character(rlx_str s)
{
    size_t bytes;

    return s.len && (utf8_next(s.ptr, s.len, &bytes), bytes == s.len);
}

/* A part of a merge: a token, a character, or what an earlier merge made. */
static rlx_status part_symbol(struct rlx_tokenizer *t, size_t rank, rlx_str part, uint32_t *out,
                              struct diag *d)
{
    *out = symbol_of(t, part);
    if (*out != TOK_NONE)
        return RLX_OK;
    if (one_character(part))
        return add_symbol(t, part, out, d);
    return diag_fail(d, RLX_ERROR_FORMAT,
                     "tokenizer.ggml.merges: merge %zu names \"%.*s\", which is no token, and no "
                     "merge before it makes it",
                     rank, STR_ARG(part));
}

static rlx_status add_merge(struct rlx_tokenizer *t, size_t rank, rlx_str text, struct diag *d)
{
    const char *space = text.len > 1 ? memchr(text.ptr + 1, ' ', text.len - 1) : NULL;
    struct tok_merge m;
    char joined[1024];

    if (!space || space == text.ptr + text.len - 1)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "tokenizer.ggml.merges: merge %zu, \"%.*s\", is not two texts and a space",
                         rank, STR_ARG(text));
    rlx_str left = {text.ptr, (size_t)(space - text.ptr)};
    rlx_str right = {space + 1, text.len - left.len - 1};
    TRY(part_symbol(t, rank, left, &m.left, d));
    TRY(part_symbol(t, rank, right, &m.right, d));
    rlx_str both = {joined, left.len + right.len};
    char *room = both.len <= sizeof joined ? joined : arena_alloc(&t->arena, both.len, 1);
    if (!room)
        return diag_no_memory(d, both.len);
    memcpy(room, left.ptr, left.len);
    memcpy(room + left.len, right.ptr, right.len);
    both.ptr = room;
    m.result = symbol_of(t, both);
    if (m.result == TOK_NONE) {
        both = arena_str(&t->arena, both);
        if (!both.ptr)
            return diag_no_memory(d, both.len);
        TRY(add_symbol(t, both, &m.result, d));
    }
    t->bpe.merge.at[t->bpe.merge.len++] = m;
    if (rank_of(&t->bpe, m.left, m.right) != TOK_NONE)
        return RLX_OK; /* the first of equal ones counts */
    return map_add(&t->bpe.rank, hash_pair(m.left, m.right), (uint32_t)rank)
               ? RLX_OK
               : diag_no_memory(d, sizeof m);
}

static rlx_status build_bytes(struct rlx_tokenizer *t, struct diag *d)
{
    for (uint32_t b = 0; b < 256; b++) {
        char text[4];
        rlx_str s = {text, utf8_put(tok_byte_char((uint8_t)b), text)};
        if (t->bpe.raw) {
            t->bpe.byte[b] = tok_byte_token(t, (uint8_t)b);
            continue;
        }
        t->bpe.byte[b] = symbol_of(t, s);
        if (t->bpe.byte[b] != TOK_NONE)
            continue;
        s = arena_str(&t->arena, s);
        if (!s.ptr)
            return diag_no_memory(d, s.len);
        TRY(add_symbol(t, s, &t->bpe.byte[b], d));
    }
    return RLX_OK;
}

rlx_status tok_bpe_build(struct rlx_tokenizer *t, struct diag *d)
{
    struct tok_bpe *b = &t->bpe;
    const rlx_meta *m;

    map_init(&b->rank, t->mem);
    map_init(&b->extra_by_text, t->mem);
    if (t->pre) {
        b->raw = t->pre->flags & PRE_RAW;
        b->escape = t->pre->flags & PRE_ESCAPE;
        b->whole = t->pre->flags & PRE_WHOLE;
        TRY(tok_cutter_build(&t->cutter, t->pre, &t->arena, d));
    }
    TRY(tok_meta_array(t, "ggml.merges", RLX_META_string, &m, d));
    if (m && m->count > TOK_MOST_TOKENS)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu merges; at most %u are taken", m->count,
                         TOK_MOST_TOKENS);
    TRY(build_bytes(t, d));
    if (!m)
        return RLX_OK;
    if (!vec_room_for(t->mem, &b->merge, m->count))
        return diag_no_memory(d, m->count * sizeof *b->merge.at);
    for (size_t i = 0; i < m->count; i++)
        TRY(add_merge(t, i, ((const rlx_str *)m->data)[i], d));
    return RLX_OK;
}

void tok_bpe_free(struct rlx_tokenizer *t)
{
    vec_free(t->mem, &t->bpe.merge);
    vec_free(t->mem, &t->bpe.extra);
    map_free(&t->bpe.rank);
    map_free(&t->bpe.extra_by_text);
}

/* ---- words ------------------------------------------------------------------------------- */

static rlx_status begin_word(struct tok_run *r, rlx_str word)
{
    const struct rlx_tokenizer *t = r->t;

    TRY(merge_begin(r, word));
    for (size_t at = 0, bytes; at < word.len; at += bytes) {
        uint32_t symbol;
        bytes = 1;
        if (t->bpe.raw) {
            utf8_next(word.ptr + at, word.len - at, &bytes);
            symbol = symbol_of(t, (rlx_str){word.ptr + at, bytes});
        } else
            symbol = t->bpe.byte[(unsigned char)word.ptr[at]];
        merge_add(r, symbol, at, bytes);
    }
    return RLX_OK;
}

static uint32_t pair_rank(const struct tok_run *r, const struct merge_node *left,
                          const struct merge_node *right, uint32_t *result)
{
    uint32_t rank = rank_of(&r->t->bpe, left->symbol, right->symbol);

    if (rank != TOK_NONE)
        *result = r->t->bpe.merge.at[rank].result;
    return rank;
}

/* Of a symbol that is not a token: its bytes. */
static rlx_status emit_bytes(struct tok_run *r, rlx_str bytes)
{
    const struct rlx_tokenizer *t = r->t;

    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char b = (unsigned char)bytes.ptr[i];
        uint32_t id = t->bpe.byte[b];
        if (id < t->vocab)
            TRY(tok_emit(r, id));
        else
            TRY(tok_emit_unknown(r, (rlx_str){bytes.ptr + i, 1}));
    }
    return RLX_OK;
}

static rlx_status encode_new(struct tok_run *r, rlx_str word)
{
    TRY(begin_word(r, word));
    TRY(merge_all(r, pair_rank));
    for (uint32_t i = 0; i != TOK_NONE; i = r->node.at[i].next) {
        const struct merge_node *n = &r->node.at[i];
        if (n->symbol < r->t->vocab)
            TRY(tok_emit(r, n->symbol));
        else
            TRY(emit_bytes(r, (rlx_str){word.ptr + n->at, n->len}));
    }
    return RLX_OK;
}

/* The token that the whole word is; TOK_NONE: it is none. */
static uint32_t whole_word(const struct rlx_tokenizer *t, rlx_str word)
{
    char mapped[512];
    size_t len = 0;

    if (t->bpe.raw)
        return tok_find(t, word);
    if (word.len > sizeof mapped / 2)
        return TOK_NONE;
    for (size_t i = 0; i < word.len; i++)
        len += utf8_put(tok_byte_char((uint8_t)word.ptr[i]), mapped + len);
    return tok_find(t, (rlx_str){mapped, len});
}

static rlx_status encode_word(void *user, rlx_str word)
{
    struct tok_run *r = user;
    const struct tok_bpe *b = &r->t->bpe;
    bool breaks = b->raw && b->escape && word.ptr[0] == '\n';

    if (b->whole || breaks) {
        uint32_t id = whole_word(r->t, word);
        if (id != TOK_NONE)
            return tok_emit(r, id);
    }
    return encode_new(r, word);
}

static rlx_status each_word(void *user, rlx_str word)
{
    return tok_word_once(user, word, encode_word);
}

rlx_status tok_bpe_encode(struct tok_run *r, rlx_str text)
{
    if (r->t->bpe.escape)
        TRY(tok_escape_spaces(r, text, false, &text));
    return tok_cut(&r->t->cutter, text, each_word, r, r->d);
}
