/* spm.c: SentencePiece's BPE (kind "llama"): neighbours whose texts together are a token are
 * merged, the token of the highest score first, of equal ones the leftmost. Spaces are U+2581; a
 * character that is no token becomes its bytes.
 *
 *     "hello"   U+2581 h e l l o   ->   U+2581 h el l o   ->  ..   ->   U+2581hello
 *
 * Where no token holds a space after something else, no merge crosses one, and words are apart. */
#include <string.h>

#include "text/merge_symbols.h"
#include "text/unicode.h"

static const rlx_str space = {TOK_SPACE, sizeof TOK_SPACE - 1};

static bool spans_words(rlx_str text)
{
    size_t step;
    bool other = false; /* something stands before that is not a space */

    for (size_t at = 0; at < text.len; at += step) {
        bool is_space = str_starts((rlx_str){text.ptr + at, text.len - at}, space);
        if (is_space && other)
            return true;
        other = !is_space;
        step = is_space ? space.len : 1;
    }
    return false;
}

void tok_find_spans(struct rlx_tokenizer *t)
{
    for (uint32_t i = 0; i < t->vocab && !t->spans_words; i++)
        t->spans_words = spans_words(t->text[i]);
}

rlx_status tok_each_word(struct tok_run *r, rlx_str text, tok_word_fn encode)
{
    if (r->t->spans_words)
        return encode(r, text);
    while (text.len) {
        const char *end = text.ptr, *last = text.ptr + text.len;
        while (end < last && str_starts((rlx_str){end, (size_t)(last - end)}, space))
            end += space.len;
        if (end < last)
            end = memmem(end, (size_t)(last - end), space.ptr, space.len);
        rlx_str word = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        TRY(tok_word_once(r, word, encode));
        text.ptr += word.len;
        text.len -= word.len;
    }
    return RLX_OK;
}

/* ---- merging ----------------------------------------------------------------------------- */

/* Numbers in the order of scores, the highest first. */
static uint32_t rank_of_score(float score)
{
    uint32_t bits;

    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31; /* ascending */
    return bits == 0 ? TOK_NONE - 1 : ~bits;
}

static uint32_t pair_rank(const struct tok_run *r, const struct merge_node *left,
                          const struct merge_node *right, uint32_t *result)
{
    *result = tok_find(r->t, (rlx_str){r->word_text + left->at, left->len + right->len});
    return *result == TOK_NONE ? TOK_NONE : rank_of_score(r->t->score[*result]);
}

rlx_status tok_emit_fallback(struct tok_run *r, rlx_str bytes)
{
    const struct rlx_tokenizer *t = r->t;

    for (size_t i = 0; i < bytes.len; i++) {
        uint32_t id = tok_byte_token(t, (uint8_t)bytes.ptr[i]);
        if (id == TOK_NONE)
            id = tok_find(t, (rlx_str){bytes.ptr + i, 1});
        if (id == TOK_NONE)
            return tok_emit_unknown(r, bytes);
        TRY(tok_emit(r, id));
    }
    return RLX_OK;
}

static rlx_status encode_word(void *user, rlx_str word)
{
    struct tok_run *r = user;

    r->word_text = word.ptr;
    TRY(merge_begin(r, word));
    for (size_t at = 0, bytes; at < word.len; at += bytes) {
        utf8_next(word.ptr + at, word.len - at, &bytes);
        merge_add(r, tok_find(r->t, (rlx_str){word.ptr + at, bytes}), at, bytes);
    }
    TRY(merge_all(r, pair_rank));
    for (uint32_t i = 0; i != TOK_NONE; i = r->node.at[i].next) {
        const struct merge_node *n = &r->node.at[i];
        if (n->symbol != TOK_NONE)
            TRY(tok_emit(r, n->symbol));
        else
            TRY(tok_emit_fallback(r, (rlx_str){word.ptr + n->at, n->len}));
    }
    return RLX_OK;
}

rlx_status tok_spm_build(struct rlx_tokenizer *t, struct diag *d)
{
    (void)d;
    tok_find_spans(t);
    return RLX_OK;
}

rlx_status tok_spm_encode(struct tok_run *r, rlx_str text)
{
    TRY(tok_escape_spaces(r, text, r->t->space_prefix, &text));
    return tok_each_word(r, text, encode_word);
}
