/* grammars.h: what any grammar has to do, once it was taken: texts go on or are refused with a
 * reason, and a mask says which tokens do. */
#ifndef FUZZ_GRAMMARS_H
#define FUZZ_GRAMMARS_H

#include "limits.h"
#include "rlx/grammar.h"

static inline void grammar_need(bool held)
{
    if (!held)
        abort();
}

/* Byte by byte; a refusal leaves the state where it was. */
static inline void grammar_follow(rlx_grammar_state *s, const uint8_t *data, size_t size)
{
    enum { MOST = 200 };
    rlx_error err;

    for (size_t i = 0; i < size && i < MOST && !rlx_grammar_done(s); i++) {
        const bool end = rlx_grammar_may_end(s);
        if (rlx_grammar_accept_bytes(s, (rlx_str){(const char *)data + i, 1}, &err) != RLX_OK) {
            fuzz_need_reason(&err);
            grammar_need(rlx_grammar_may_end(s) == end);
        }
    }
}

/* What the mask says of a token is what accepting it gives. */
static inline void grammar_try_mask(rlx_grammar_state *s)
{
    uint32_t bits[16] = {0};
    rlx_grammar_state *other;
    rlx_error err;

    if (rlx_grammar_mask(s, bits, &err) != RLX_OK) {
        fuzz_need_reason(&err);
        return;
    }
    for (int32_t id = 0; id < 300; id += 7) {
        if (rlx_grammar_state_clone(s, &other, &err) != RLX_OK)
            return;
        const rlx_status status = rlx_grammar_accept(other, id, &err);
        const bool may = bits[id / 32] >> id % 32 & 1;
        grammar_need(status == RLX_ERROR_MEMORY || status == RLX_ERROR_LIMIT ||
                     (status == RLX_OK) == may);
        rlx_grammar_state_destroy(other);
    }
}

static inline void grammar_use(rlx_context *ctx, rlx_grammar *g, const uint8_t *data, size_t size)
{
    static const char text[] = "abab \"a\" {\"a\": 1}";
    const rlx_bpe_desc desc = {RLX_SIZED(rlx_bpe_desc), .vocab = 260};
    rlx_tokenizer *t = NULL;
    rlx_grammar_state *s = NULL;
    rlx_error err;

    grammar_need(rlx_grammar_text(g).ptr != NULL);
    if (rlx_bpe_train(ctx, rlx_cstr(text), &desc, &t, &err) == RLX_OK &&
        rlx_grammar_state_create(g, t, &s, &err) == RLX_OK) {
        grammar_try_mask(s);
        grammar_follow(s, data, size);
        grammar_try_mask(s);
        grammar_follow(s, (const uint8_t *)text, sizeof text - 1);
    } else
        fuzz_need_reason(&err);
    rlx_grammar_state_destroy(s);
    rlx_tokenizer_close(t);
}

typedef rlx_status (*grammar_read_fn)(rlx_context *ctx, rlx_str text, rlx_grammar **out,
                                      rlx_error *err);
static inline void grammar_fuzz(grammar_read_fn read, const uint8_t *data, size_t size)
{
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    rlx_context *ctx = NULL;
    rlx_grammar *g = NULL;
    rlx_error err = {.status = RLX_OK};

    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return;
    if (read(ctx, (rlx_str){size ? (const char *)data : "", size}, &g, &err) == RLX_OK)
        grammar_use(ctx, g, data, size);
    else
        fuzz_need_reason(&err);
    rlx_grammar_destroy(g);
    rlx_context_destroy(ctx);
    grammar_need(used == 0);
}

#endif
