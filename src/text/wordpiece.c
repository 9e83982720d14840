/* wordpiece.c: WordPiece (kind "bert"): text in lower case and without accents, cut into words;
 * each is the longest token that it begins with, then the longest that the rest begins with, and so
 * on.
 *
 *     "Unaffable"   U+2581 unaffable   ->   U+2581un  aff  able
 *
 * A word for which that fails becomes one unknown token. */
#include <string.h>

#include "text/tokenizer.h"
#include "text/unicode.h"

struct tok_wordpiece {
    bool lower, strip;
    uint32_t *next;   /* of the classic spelling: tokens that go on in a word */
    struct trie rest; /* their texts, without ## */
    rlx_str *plain;
};

/* ---- the vocabulary ---------------------------------------------------------------------- */

static bool any_begins(const struct rlx_tokenizer *t, rlx_str with)
{
    for (uint32_t i = 0; i < t->vocab; i++)
        if (str_starts(t->text[i], with))
            return true;
    return false;
}

/* Tokens that begin a word go into one trie, those that go on into another. */
static rlx_status build_classic(struct rlx_tokenizer *t, struct tok_wordpiece *w, uint32_t *id,
                                struct diag *d)
{
    uint32_t first = 0, rest = t->vocab;

    w->plain = arena_array(&t->arena, rlx_str, t->vocab);
    if (!w->plain)
        return diag_no_memory(d, t->vocab * sizeof *w->plain);
    for (uint32_t i = 0; i < t->vocab; i++) {
        bool goes_on = str_starts(t->text[i], STR("##")) && t->text[i].len > 2;
        w->plain[i] = goes_on ? (rlx_str){t->text[i].ptr + 2, t->text[i].len - 2} : t->text[i];
        id[goes_on ? --rest : first++] = i;
    }
    TRY(trie_build(&t->trie, t->text, id, first, t->mem, d));
    return trie_build(&w->rest, w->plain, id + rest, t->vocab - rest, t->mem, d);
}

rlx_status tok_wordpiece_build(struct rlx_tokenizer *t, struct diag *d)
{
    struct tok_wordpiece *w = arena_new(&t->arena, struct tok_wordpiece);
    uint32_t *id = arena_array(&t->arena, uint32_t, t->vocab);

    if (!w || !id)
        return diag_no_memory(d, t->vocab * sizeof *id);
    t->more = w;
    w->lower = true;
    TRY(tok_meta_bool(t, "ggml.normalizer.lowercase", &w->lower, d));
    w->strip = w->lower;
    TRY(tok_meta_bool(t, "ggml.normalizer.strip_accents", &w->strip, d));
    t->words_marked = any_begins(t, STR(TOK_SPACE)) || !any_begins(t, STR("##"));
    if (!t->words_marked)
        return build_classic(t, w, id, d);
    for (uint32_t i = 0; i < t->vocab; i++)
        id[i] = i;
    return trie_build(&t->trie, t->text, id, t->vocab, t->mem, d);
}

void tok_wordpiece_free(struct rlx_tokenizer *t)
{
    struct tok_wordpiece *w = t->more;

    if (w && w->rest.mem)
        trie_free(&w->rest);
}

/* ---- a word ------------------------------------------------------------------------------ */

static size_t longest(const struct trie *trie, rlx_str s, uint32_t *id)
{
    struct trie_walk w = trie_begin(trie, s);
    size_t best = 0;

    for (uint32_t found; trie_next(&w, &found);) {
        *id = found;
        best = w.depth;
    }
    return best;
}

static rlx_status encode_word(void *user, rlx_str word)
{
    struct tok_run *r = user;
    const struct rlx_tokenizer *t = r->t;
    const struct tok_wordpiece *w = t->more;
    const size_t before = r->out->count;
    uint32_t id = 0;

    for (size_t at = 0, bytes; at < word.len; at += bytes) {
        const struct trie *trie = at && !t->words_marked ? &w->rest : &t->trie;
        bytes = longest(trie, (rlx_str){word.ptr + at, word.len - at}, &id);
        if (bytes == 0) {
            r->out->count = before;
            return tok_emit_unknown(r, word);
        }
        TRY(tok_emit(r, id));
    }
    return RLX_OK;
}

static rlx_status end_word(struct tok_run *r, size_t *from)
{
    const size_t mark = r->t->words_marked ? strlen(TOK_SPACE) : 0;
    struct text *s = &r->scratch;

    if (s->failed)
        return diag_no_memory(r->d, s->len);
    if (s->len > *from + mark)
        TRY(encode_word(r, (rlx_str){s->at + *from, s->len - *from}));
    s->len = 0;
    *from = 0;
    if (mark)
        text_add(s, STR(TOK_SPACE));
    return RLX_OK;
}

/* ---- words of a text --------------------------------------------------------------------- */

static bool is_ideograph(uint32_t c)
{
    static const uint32_t blocks[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                         {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                         {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1])
            return true;
    return false;
}

static bool stands_alone(uint32_t c, uint32_t category)
{
    return category & CATS_P || (c < 0x80 && category & CATS_S) || is_ideograph(c);
}

static rlx_status take(struct tok_run *r, uint32_t c, size_t *from)
{
    const struct tok_wordpiece *w = r->t->more;
    const uint32_t category = unicode_category_bit(c);
    char text[4];

    if (unicode_is_space(c))
        return end_word(r, from);
    if (c == 0 || c == UNICODE_REPLACEMENT ||
        category & (CAT_BIT(Cc) | CAT_BIT(Cf) | CAT_BIT(Cs) | CAT_BIT(Co)) ||
        (w->strip && category & CAT_BIT(Mn)))
        return RLX_OK;
    if (w->lower)
        c = unicode_lower(c);
    bool alone = stands_alone(c, category);
    if (alone)
        TRY(end_word(r, from));
    text_add(&r->scratch, (rlx_str){text, utf8_put(c, text)});
    return alone ? end_word(r, from) : RLX_OK;
}

rlx_status tok_wordpiece_encode(struct tok_run *r, rlx_str text)
{
    const struct tok_wordpiece *w = r->t->more;
    size_t from = 0;

    r->scratch.len = 0;
    TRY(end_word(r, &from));
    for (size_t at = 0, bytes; at < text.len; at += bytes) {
        uint32_t part[UNICODE_MOST_PARTS] = {utf8_next(text.ptr + at, text.len - at, &bytes)};
        size_t parts = w->strip ? unicode_decompose(part[0], part) : 1;
        for (size_t i = 0; i < parts; i++)
            TRY(take(r, part[i], &from));
    }
    return end_word(r, &from);
}
