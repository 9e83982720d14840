/* tokenizer.c: fuzzes vocabularies: one that is taken encodes any text to ids that it has, and
 * decodes them; one that is refused has a sentence why. */
#include <string.h>

#include "limits.h"
#include "rlx/text.h"
#include "targets.h"

static void need(bool held)
{
    if (!held)
        abort();
}

static void count(void *user, const char *text, size_t len)
{
    (void)text;
    *(size_t *)user += len;
}

/* The last bytes of the file are as good a text as any. */
static void use(const rlx_tokenizer *t, const uint8_t *data, size_t size)
{
    enum { MOST = 600 };
    const size_t len = size < MOST ? size : MOST;
    const rlx_str text = {(const char *)data + size - len, len};
    rlx_token_ids ids = {0};
    rlx_token token;
    rlx_error err;

    for (uint32_t flags = 0; flags < 4; flags++) {
        const size_t before = ids.count;
        if (rlx_tokenizer_encode(t, text, flags, &ids, &err) != RLX_OK) {
            fuzz_need_reason(&err);
            need(ids.count == before);
        }
    }
    for (size_t i = 0; i < ids.count; i++)
        need(rlx_tokenizer_at(t, ids.at[i], &token));
    size_t bytes = 0;
    need(rlx_tokenizer_decode(t, ids.at, ids.count, RLX_DECODE_SPECIAL, count, &bytes, NULL) ==
         RLX_OK);
    rlx_token_ids_free(t, &ids);
}

static void ask(const rlx_tokenizer *t)
{
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_token token;
    rlx_meta m;

    need(rlx_tokenizer_describe(t, &info, NULL) == RLX_OK && info.vocab > 0);
    for (int32_t i = 0; (uint32_t)i < info.vocab; i++)
        need(rlx_tokenizer_at(t, i, &token) && rlx_tokenizer_find(t, token.text) == i);
    for (size_t i = 0; i < RLX_SPECIAL_count; i++)
        need(info.special[i] >= -1 && info.special[i] < (int32_t)info.vocab);
    for (size_t i = 0; rlx_tokenizer_meta(t, i, &m); i++)
        need(m.key.len > 0);
}

void fuzz_tokenizer(const uint8_t *data, size_t size)
{
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    rlx_context *ctx = NULL;
    rlx_tokenizer *t = NULL;
    rlx_error err = {.status = RLX_OK};

    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return;
    if (rlx_tokenizer_parse(ctx, data, size, &t, &err) == RLX_OK) {
        ask(t);
        use(t, data, size);
        rlx_tokenizer_close(t);
    } else
        fuzz_need_reason(&err);
    rlx_context_destroy(ctx);
    need(used == 0);
}
