/* spoiled_test.c: a first run that fails for want of memory, whichever request is refused, changes
 * nothing that is read afterwards. */
#include <string.h>

#include "rlx/llm.h"
#include "test.h"
#include "tiny_model.h"

enum { COUNT = 20, MOST = 400 };

struct text {
    struct test *t;
    struct test_alloc count;
    rlx_llm *llm;
    int32_t token[COUNT];
    float want[TINY_VOCAB];
};

/* The logits after all tokens, however far the sequence is. */
static void expect_same(struct text *x, rlx_sequence *s)
{
    const float *logits = NULL;
    rlx_error err;

    if (expect_ok(x->t, rlx_sequence_set(s, x->token, COUNT, NULL, &err)) &&
        expect_ok(x->t, rlx_sequence_logits(s, &logits, NULL, &err)))
        for (int i = 0; i < TINY_VOCAB; i++)
            expect_near(x->t, (double)logits[i], (double)x->want[i], 1e-4);
}

/* false: there were fewer requests for memory. */
static bool refuse(struct text *x, uint64_t number)
{
    rlx_sequence *s = NULL;
    rlx_error err;

    if (!expect_ok(x->t, rlx_sequence_create(x->llm, &s, &err)))
        return false;
    uint64_t refused = x->count.refused;
    x->count.calls = 0;
    x->count.fail_at = number;
    rlx_status st = rlx_sequence_feed(s, x->token, COUNT, &err);
    x->count.fail_at = 0;
    refused = x->count.refused - refused;
    if (refused)
        expect_status(x->t, st, RLX_ERROR_MEMORY);
    expect_same(x, s);
    rlx_sequence_destroy(s);
    return refused > 0;
}

static void refuse_each(struct test *t, const char *name)
{
    struct text x = {.t = t};
    const rlx_allocator mem = test_allocator(&x.count);
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = &mem, .threads = 1};
    const rlx_llm_desc how = {RLX_SIZED(rlx_llm_desc), .context = 32, .chunk = 5,
                              .cache = RLX_LLM_CACHE_F32};
    const char *path = test_temp(t, "spoiled.gguf");
    const float *logits = NULL;
    rlx_sequence *s = NULL;
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_error err;

    for (int i = 0; i < COUNT; i++)
        x.token[i] = (37 * i + 11) % (TINY_VOCAB - 1);
    require_ok(t, rlx_context_create(RLX_VERSION, &desc, &ctx, &err));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    require_ok(t, tiny_model_write(ctx, path, tiny_model_find(name), NULL, &err));
    require_ok(t, rlx_llm_open(ctx, dev, path, &how, &x.llm, &err));
    require_ok(t, rlx_sequence_create(x.llm, &s, &err));
    require_ok(t, rlx_sequence_feed(s, x.token, COUNT, &err));
    require_ok(t, rlx_sequence_logits(s, &logits, NULL, &err));
    memcpy(x.want, logits, sizeof x.want);
    rlx_sequence_destroy(s);
    for (uint64_t n = 1; n < MOST && refuse(&x, n); n += 1 + n / 20)
        test_note(t, "%s, request %d", name, (int)n);
    rlx_llm_close(x.llm);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    expect_no_leak(t, &x.count);
}

TEST(llm_spoiled, keys_and_values)
{
    refuse_each(t, "llama");
}

TEST(llm_spoiled, short_convolutions)
{
    refuse_each(t, "lfm2");
}

TEST(llm_spoiled, mamba)
{
    refuse_each(t, "mamba2");
}

TEST(llm_spoiled, the_delta_rule)
{
    refuse_each(t, "qwen35");
}
