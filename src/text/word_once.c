/* word_once.c: words that came before in the same text are not encoded again: their ids are copied
 * from where they were written. A table of places, where a word pushes out another one. */
#include <string.h>

#include "text/tokenizer.h"

struct tok_word { /* where it stands, and its ids in the output */
    size_t at, ids;
    uint32_t epoch; /* of the text that at counts from; 0: there is no word here */
    uint16_t len, count;
};

enum { LONGEST = 64, WORTH = 512, FEWEST = 256, MOST = 1 << 15 };

void tok_words_begin(struct tok_run *r)
{
    if (r->text.len < WORTH)
        return;
    for (r->words = FEWEST; r->words < MOST && r->words < r->text.len / 16;)
        r->words *= 2;
    r->word = mem_alloc(r->t->mem, r->words * sizeof *r->word); /* without it goes as well */
}

void tok_words_end(struct tok_run *r)
{
    mem_free(r->t->mem, r->word, r->words * sizeof *r->word);
}

void tok_words_in(struct tok_run *r, const char *base)
{
    r->base = base;
    r->epoch++;
}

/* Of bytes that need no protection: a bad hash only costs time. */
static uint64_t quick_hash(rlx_str word)
{
    const uint64_t mix = UINT64_C(0xff51afd7ed558ccd);
    uint64_t h = word.len * UINT64_C(0x9e3779b97f4a7c15), v;
    size_t i = 0;

    for (; i + 8 <= word.len; i += 8) {
        memcpy(&v, word.ptr + i, 8);
        h = (h ^ v) * mix;
        h ^= h >> 32;
    }
    v = 0;
    for (size_t k = 0; i < word.len; i++, k += 8)
        v |= (uint64_t)(unsigned char)word.ptr[i] << k;
    h = (h ^ v) * mix;
    return h ^ h >> 32;
}

static rlx_status copy_ids(struct tok_run *r, const struct tok_word *w)
{
    rlx_token_ids *o = r->out;

    if (o->cap - o->count < w->count &&
        !vec_grow(r->t->mem, &o->at, &o->cap, o->count, w->count, sizeof *o->at))
        return diag_no_memory(r->d, w->count * sizeof *o->at);
    for (uint32_t i = 0; i < w->count; i++)
        o->at[o->count + i] = o->at[w->ids + i];
    o->count += w->count;
    return RLX_OK;
}

rlx_status tok_word_once(struct tok_run *r, rlx_str word, tok_word_fn encode)
{
    if (!r->word || word.len > LONGEST)
        return encode(r, word);
    struct tok_word *w = &r->word[quick_hash(word) & (r->words - 1)];
    if (w->epoch == r->epoch && w->len == word.len &&
        memcmp(r->base + w->at, word.ptr, word.len) == 0)
        return copy_ids(r, w);
    size_t from = r->out->count;
    TRY(encode(r, word));
    *w = (struct tok_word){(size_t)(word.ptr - r->base), from, r->epoch, (uint16_t)word.len,
                           (uint16_t)(r->out->count - from)};
    return RLX_OK;
}
