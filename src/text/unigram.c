/* unigram.c: SentencePiece's unigram model (kind "t5"): of all ways to write a word as tokens, the
 * one whose scores have the greatest sum, found from left to right.
 *
 *     best[end] = max over tokens that end there of best[begin] + score
 */
#include <string.h>

#include "text/normalise.h"
#include "text/unicode.h"
#include "text/unigram.h"

struct tok_unigram {
    struct charsmap map;
    float unknown; /* the score of a character that is no token */
    bool tidy;     /* spaces at the ends are dropped, and several become one */
    bool bytes;    /* there are tokens for bytes */
};

static bool usable(uint8_t type)
{
    return type == RLX_TOKEN_NORMAL || type == RLX_TOKEN_USER_DEFINED || type == RLX_TOKEN_UNUSED;
}

rlx_status tok_unigram_build(struct rlx_tokenizer *t, struct diag *d)
{
    struct tok_unigram *u = arena_new(&t->arena, struct tok_unigram);
    uint32_t *id = arena_array(&t->arena, uint32_t, t->vocab), count = 0;
    float least = 0;

    if (!u || !id)
        return diag_no_memory(d, t->vocab * sizeof *id);
    t->more = u;
    for (uint32_t i = 0; i < t->vocab; i++) {
        if (usable(t->type[i]))
            id[count++] = i;
        if (t->type[i] == RLX_TOKEN_NORMAL && t->score[i] < least)
            least = t->score[i];
    }
    u->unknown = least - 10;
    u->bytes = tok_byte_token(t, 0) != TOK_NONE;
    tok_find_spans(t);
    TRY(tok_meta_bool(t, "ggml.remove_extra_whitespaces", &u->tidy, d));
    const rlx_meta *m = tok_meta(t, "ggml.precompiled_charsmap");
    if (m && m->is_array && (m->type == RLX_META_u8 || m->type == RLX_META_i8))
        TRY(charsmap_read(&u->map, m->data, m->count, d));
    else
        TRY(tok_meta_array(t, "ggml.precompiled_charsmap", RLX_META_u8, &m, d));
    return trie_build(&t->trie, t->text, id, count, t->mem, d);
}

/* ---- the text ---------------------------------------------------------------------------- */

/* The text as tokens spell it: mapped, spaces as U+2581, perhaps fewer of them. */
static rlx_status normalise(struct tok_run *r, rlx_str text, rlx_str *out)
{
    const struct tok_unigram *u = r->t->more;
    struct text *s = &r->scratch;
    bool begun = false, held = false; /* held: a space that is written before what comes next */

    s->len = 0;
    for (size_t used; text.len; text.ptr += used, text.len -= used) {
        rlx_str part = charsmap_next(&u->map, text, &used);
        for (size_t i = 0; i < part.len; i++) {
            if (part.ptr[i] == ' ' && u->tidy) {
                held = begun;
                continue;
            }
            if (!begun && r->t->space_prefix)
                text_add(s, STR(TOK_SPACE));
            if (held || part.ptr[i] == ' ')
                text_add(s, STR(TOK_SPACE));
            if (part.ptr[i] != ' ')
                text_add(s, (rlx_str){part.ptr + i, 1});
            held = false;
            begun = true;
        }
    }
    if (s->failed)
        return diag_no_memory(r->d, s->len);
    *out = (rlx_str){s->at, s->len};
    tok_words_in(r, s->at);
    return RLX_OK;
}

/* ---- the best way ------------------------------------------------------------------------ */

static void reach(struct unigram_end *e, size_t begin, size_t end, double score, uint32_t id)
{
    if (e[end].reached && !(score > e[end].score))
        return;
    e[end] = (struct unigram_end){score, (uint32_t)begin, id, true};
}

static void find_ways(const struct tok_run *r, rlx_str word, struct unigram_end *e)
{
    const struct rlx_tokenizer *t = r->t;
    const struct tok_unigram *u = t->more;

    memset(e, 0, (word.len + 1) * sizeof *e);
    e[0].reached = true;
    for (size_t at = 0, step; at < word.len; at += step) {
        struct trie_walk w = trie_begin(&t->trie, (rlx_str){word.ptr + at, word.len - at});
        bool alone = false; /* the character is a token */
        utf8_next(word.ptr + at, word.len - at, &step);
        for (uint32_t id; trie_next(&w, &id);) {
            double score = t->type[id] == RLX_TOKEN_USER_DEFINED ? 0 : (double)t->score[id];
            reach(e, at, at + w.depth, e[at].score + score, id);
            alone |= w.depth == step;
        }
        if (!alone)
            reach(e, at, at + step, e[at].score + (double)u->unknown, TOK_NONE);
    }
}

static rlx_status emit_unknown(struct tok_run *r, rlx_str bytes, bool again)
{
    const struct tok_unigram *u = r->t->more;

    if (u->bytes)
        return tok_emit_fallback(r, bytes);
    return again ? RLX_OK : tok_emit_unknown(r, bytes);
}

static rlx_status encode_word(void *user, rlx_str word)
{
    struct tok_run *r = user;
    bool unknown = false;

    if (word.len >= UINT32_MAX / 2)
        return diag_fail(r->d, RLX_ERROR_LIMIT, "a text of %zu bytes without a break", word.len);
    r->ends.len = 0;
    if (!vec_room_for(r->t->mem, &r->ends, word.len + 1))
        return diag_no_memory(r->d, word.len * sizeof *r->ends.at);
    struct unigram_end *e = r->ends.at;
    find_ways(r, word, e);
    /* Backwards, each token notes where the one after it begins. */
    for (uint32_t at = (uint32_t)word.len, end = at; at; end = at) {
        at = e[at].begin;
        e[at].score = end;
    }
    for (size_t at = 0; at < word.len;) {
        size_t end = (size_t)e[at].score;
        rlx_str part = {word.ptr + at, end - at};
        if (e[end].id != TOK_NONE)
            TRY(tok_emit(r, e[end].id));
        else
            TRY(emit_unknown(r, part, unknown));
        unknown = e[end].id == TOK_NONE;
        at = end;
    }
    return RLX_OK;
}

rlx_status tok_unigram_encode(struct tok_run *r, rlx_str text)
{
    TRY(normalise(r, text, &text));
    return tok_each_word(r, text, encode_word);
}
