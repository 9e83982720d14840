/* llm.c: fuzzes language models: a GGUF file that is opened reads a few tokens; one that is refused
 * has a sentence why. Seeds are made by rlx-tiny-model --seed. */
#include "rlx/llm.h"
#include "files.h"
#include "limits.h"
#include "targets.h"

enum { FUZZ_CONTEXT = 8, FUZZ_CHUNK = 3, FUZZ_MOST_LOGITS = 1 << 16 };

static void read_tokens(rlx_llm *m)
{
    static const int32_t token[] = {0, 1, 0, 1, 0};
    rlx_llm_info info = {RLX_SIZED(rlx_llm_info)};
    rlx_sequence *s = NULL;
    const float *logits = NULL;
    size_t rows = 0;
    rlx_error err = {0};

    if (rlx_llm_describe(m, &info, &err) != RLX_OK) {
        fuzz_need_reason(&err);
        return;
    }
    if (info.vocab > FUZZ_MOST_LOGITS)
        return;
    if (rlx_sequence_create(m, &s, &err) != RLX_OK ||
        rlx_sequence_feed(s, token, 5, &err) != RLX_OK ||
        rlx_sequence_logits(s, &logits, &rows, &err) != RLX_OK)
        fuzz_need_reason(&err);
    else if (rows != 1)
        abort();
    rlx_sequence_destroy(s);
}

static void open_model(rlx_context *ctx, rlx_device *dev, const char *path)
{
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = FUZZ_CONTEXT,
                               .chunk = FUZZ_CHUNK, .cache = RLX_LLM_CACHE_F32};
    rlx_llm *m = NULL;
    rlx_error err = {0};

    if (rlx_llm_open(ctx, dev, path, &desc, &m, &err) == RLX_OK)
        read_tokens(m);
    else
        fuzz_need_reason(&err);
    rlx_llm_close(m);
}

void fuzz_llm(const uint8_t *data, size_t size)
{
    size_t used = 0;
    const rlx_allocator mem = {fuzz_resize, &used};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    struct fuzz_file f;
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_error err = {0};

    if (rlx_context_create(RLX_VERSION, &desc, &ctx, &err) != RLX_OK)
        return;
    if (fuzz_file_make(&f, NULL, NULL, 0, data, size) &&
        rlx_device_open(ctx, "cpu", &dev, &err) == RLX_OK)
        open_model(ctx, dev, f.path);
    rlx_device_close(dev);
    fuzz_file_close(&f);
    rlx_context_destroy(ctx);
    if (used)
        abort();
}
