/* text_world.h: what tests of tokenizers share: small vocabularies, and ids as text. */
#ifndef TESTS_TEXT_WORLD_H
#define TESTS_TEXT_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/text.h"
#include "test.h"

struct collected { /* what a writer wrote */
    char at[4096];
    size_t len;
    int calls;
};

static inline void collect(void *user, const char *text, size_t len)
{
    struct collected *c = user;
    size_t room = sizeof c->at - 1 - c->len;

    len = len < room ? len : room;
    memcpy(c->at + c->len, text, len);
    c->len += len;
    c->at[c->len] = 0;
    c->calls++;
}

static inline rlx_context *text_context(struct test *t, const rlx_allocator *mem)
{
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};
    rlx_context *ctx = NULL;

    expect_ok(t, rlx_context_create(RLX_VERSION, &desc, &ctx, NULL));
    return ctx;
}

/* "5 17 2": the ids of a text, or the failure's message in brackets. */
static inline const char *ids_of(const rlx_tokenizer *k, rlx_str text, uint32_t flags, char *out,
                                 size_t room)
{
    rlx_token_ids ids = {0};
    rlx_error err;
    size_t len = 0;

    out[0] = 0;
    if (rlx_tokenizer_encode(k, text, flags, &ids, &err) != RLX_OK) {
        snprintf(out, room, "[%s]", err.message);
        return out;
    }
    for (size_t i = 0; i < ids.count && len + 16 < room; i++)
        len += (size_t)snprintf(out + len, room - len, "%s%d", i ? " " : "", ids.at[i]);
    rlx_token_ids_free(k, &ids);
    return out;
}

#define expect_ids(t, k, text, flags, want)                                             \
    do {                                                                                \
        char ids_[8192];                                                                \
        expect_str(t, ids_of((k), rlx_cstr(text), (flags), ids_, sizeof ids_), (want)); \
    } while (0)

/* Encoded and decoded again. */
static inline bool comes_back(struct test *t, const rlx_tokenizer *k, rlx_str text)
{
    rlx_token_ids ids = {0};
    struct collected c = {0};
    bool same;

    expect_ok(t, rlx_tokenizer_encode(k, text, 0, &ids, NULL));
    expect_ok(t, rlx_tokenizer_decode(k, ids.at, ids.count, 0, collect, &c, NULL));
    same = c.len == text.len && memcmp(c.at, text.ptr, c.len) == 0;
    rlx_token_ids_free(k, &ids);
    return same;
}

/* ---- vocabularies that tests write down ---- */

enum { WORLD_MOST = 400 };
struct world { /* metadata under construction */
    rlx_meta meta[24];
    size_t count;
    rlx_str text[WORLD_MOST], merge[WORLD_MOST];
    int32_t type[WORLD_MOST];
    float score[WORLD_MOST];
    size_t tokens, merges;
    rlx_str model, pre;
    uint32_t number[16];
    uint8_t flag[16];
    size_t numbers, flags;
};

static inline void world_begin(struct world *w, const char *model, const char *pre)
{
    memset(w, 0, sizeof *w);
    w->model = rlx_cstr(model);
    w->pre = rlx_cstr(pre ? pre : "");
    w->meta[w->count++] =
        (rlx_meta){rlx_cstr("tokenizer.ggml.model"), RLX_META_string, false, 1, &w->model};
    if (pre)
        w->meta[w->count++] =
            (rlx_meta){rlx_cstr("tokenizer.ggml.pre"), RLX_META_string, false, 1, &w->pre};
}

static inline void world_token(struct world *w, const char *text, int32_t type, float score)
{
    w->text[w->tokens] = rlx_cstr(text);
    w->type[w->tokens] = type;
    w->score[w->tokens++] = score;
}

static inline void world_merge(struct world *w, const char *text)
{
    w->merge[w->merges++] = rlx_cstr(text);
}

static inline void world_number(struct world *w, const char *key, uint32_t v)
{
    w->number[w->numbers] = v;
    w->meta[w->count++] = (rlx_meta){rlx_cstr(key), RLX_META_u32, false, 1, &w->number[w->numbers]};
    w->numbers++;
}

static inline void world_flag(struct world *w, const char *key, bool v)
{
    w->flag[w->flags] = v;
    w->meta[w->count++] = (rlx_meta){rlx_cstr(key), RLX_META_bool, false, 1, &w->flag[w->flags]};
    w->flags++;
}

/* A GGUF file of it. */
static inline rlx_status world_write(struct world *w, rlx_context *ctx, const char *path,
                                     rlx_error *err)
{
    rlx_meta meta[32];
    size_t count = w->count;
    rlx_weights_writer *writer;

    memcpy(meta, w->meta, count * sizeof *meta);
    meta[count++] =
        (rlx_meta){rlx_cstr("tokenizer.ggml.tokens"), RLX_META_string, true, w->tokens, w->text};
    meta[count++] =
        (rlx_meta){rlx_cstr("tokenizer.ggml.token_type"), RLX_META_i32, true, w->tokens, w->type};
    meta[count++] =
        (rlx_meta){rlx_cstr("tokenizer.ggml.scores"), RLX_META_f32, true, w->tokens, w->score};
    if (w->merges)
        meta[count++] = (rlx_meta){rlx_cstr("tokenizer.ggml.merges"), RLX_META_string, true,
                                   w->merges, w->merge};
    const rlx_weights_content content = {RLX_SIZED(rlx_weights_content), .kind = RLX_FILE_gguf,
                                         .meta = meta, .meta_count = count};
    rlx_status s = rlx_weights_begin(ctx, path, &content, &writer, err);
    return s == RLX_OK ? rlx_weights_finish(writer, err) : s;
}

/* The tokenizer of it, through a file; NULL: *err says why. */
static inline rlx_tokenizer *world_open(struct test *t, struct world *w, rlx_context *ctx,
                                        rlx_error *err)
{
    static _Atomic int number;
    char name[32];
    rlx_tokenizer *k = NULL;

    snprintf(name, sizeof name, "vocab%d.gguf", number++);
    const char *path = test_temp(t, name);
    if (world_write(w, ctx, path, err) != RLX_OK ||
        rlx_tokenizer_open(ctx, path, &k, err) != RLX_OK)
        return NULL;
    return k;
}

/* The 256 bytes of byte-level BPE as tokens 0 to 255. */
static inline void world_bytes(struct world *w, char store[256][4])
{
    int other = 0x100;

    for (int b = 0; b < 256; b++) {
        bool plain = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        int c = plain ? b : other++;
        if (c < 0x80)
            snprintf(store[b], 4, "%c", c);
        else
            snprintf(store[b], 4, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
        world_token(w, store[b], RLX_TOKEN_NORMAL, 0);
    }
}

#endif
