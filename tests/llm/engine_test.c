/* engine_test.c: what sequences do beside saying what comes next: guesses, adapters, grammars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/llm.h"
#include "test.h"
#include "tiny_model.h"

enum { STEPS = 40 };

struct opened {
    struct test *t;
    rlx_context *ctx;
    rlx_device *dev;
    rlx_llm *llm;
    rlx_sequence *seq;
};

static rlx_llm_desc usual(void)
{
    return (rlx_llm_desc){RLX_SIZED(rlx_llm_desc), .cache = RLX_LLM_CACHE_F32};
}

/* The tiny model "llama"; its path is the test's own. */
static const char *model_file(struct opened *o)
{
    const char *path = test_temp(o->t, "llama.gguf");
    rlx_error err;

    if (rlx_context_create(RLX_VERSION, NULL, &o->ctx, &err) != RLX_OK ||
        rlx_device_open(o->ctx, "cpu", &o->dev, &err) != RLX_OK ||
        tiny_model_write(o->ctx, path, tiny_model_find("llama"), NULL, &err) != RLX_OK)
        fail(o->t, "%s", err.message);
    return path;
}

static bool open_llm(struct opened *o, const char *path, const rlx_llm_desc *desc)
{
    rlx_error err;

    if (rlx_llm_open(o->ctx, o->dev, path, desc, &o->llm, &err) == RLX_OK &&
        rlx_sequence_create(o->llm, &o->seq, &err) == RLX_OK)
        return true;
    fail(o->t, "%s", err.message);
    return false;
}

static void close_llm(struct opened *o)
{
    rlx_sequence_destroy(o->seq);
    rlx_llm_close(o->llm);
    o->seq = NULL;
    o->llm = NULL;
}

static void close_all(struct opened *o)
{
    close_llm(o);
    rlx_device_close(o->dev);
    rlx_context_destroy(o->ctx);
}

static void generate(struct opened *o, int32_t out[STEPS], size_t *right)
{
    static const int32_t prompt[] = {65, 66, 67, 65, 66, 67, 65, 66};
    rlx_sampler *p = NULL;
    rlx_error err;

    expect_ok(o->t, rlx_sampler_create(o->llm, NULL, &p, &err));
    expect_ok(o->t, rlx_sequence_feed(o->seq, prompt, 8, &err));
    for (int i = 0; p && i < STEPS; i++)
        expect_ok(o->t, rlx_sequence_next(o->seq, p, &out[i], &err));
    rlx_sequence_guessed(o->seq, NULL, right);
    rlx_sampler_destroy(p);
}

TEST(llm_engine, guesses_change_nothing)
{
    struct opened o = {.t = t};
    const char *path = model_file(&o);
    rlx_llm_desc with = usual(), without = usual();
    int32_t a[STEPS] = {0}, b[STEPS] = {0};
    size_t right;

    with.guesses = 6;
    if (open_llm(&o, path, &without))
        generate(&o, a, &right);
    close_llm(&o);
    if (open_llm(&o, path, &with))
        generate(&o, b, &right);
    for (int i = 0; i < STEPS; i++)
        expect_eq(t, b[i], a[i]);
    close_all(&o);
}

/* ---- adapters ---- */

enum { RANK = 2, WIDTH = 48, TOKEN = 5 };

/* An adapter of the last matrix that changes the logit of TOKEN alone. */
static const char *adapter_file(struct opened *o, const char *tensor)
{
    const char *path = test_temp(o->t, "adapter.gguf");
    const rlx_str type = rlx_cstr("adapter"), kind = rlx_cstr("lora"), arch = rlx_cstr("llama");
    const float alpha = 4;
    char name[2][64];
    snprintf(name[0], 64, "%s.lora_a", tensor);
    snprintf(name[1], 64, "%s.lora_b", tensor);
    const rlx_meta meta[] = {{rlx_cstr("general.type"), RLX_META_string, false, 1, &type},
                             {rlx_cstr("adapter.type"), RLX_META_string, false, 1, &kind},
                             {rlx_cstr("general.architecture"), RLX_META_string, false, 1, &arch},
                             {rlx_cstr("adapter.lora.alpha"), RLX_META_f32, false, 1, &alpha}};
    const rlx_weight tensors[] = {{rlx_cstr(name[0]), RLX_WEIGHT_F32, 2, {RANK, WIDTH}, 0},
                                  {rlx_cstr(name[1]), RLX_WEIGHT_F32, 2, {TINY_VOCAB, RANK}, 0}};
    const rlx_weights_content content = {RLX_SIZED(rlx_weights_content),
                                         .kind = RLX_FILE_gguf,
                                         .tensor = tensors,
                                         .tensor_count = 2,
                                         .meta = meta,
                                         .meta_count = 4};
    static float x[TINY_VOCAB * RANK];
    rlx_weights_writer *w;
    rlx_error err;
    uint64_t left;
    size_t i;

    if (rlx_weights_begin(o->ctx, path, &content, &w, &err) != RLX_OK) {
        fail(o->t, "%s", err.message);
        return path;
    }
    while (rlx_weights_next(w, &i, &left)) {
        for (int k = 0; k < TINY_VOCAB * RANK; k++)
            x[k] = i == 0 ? 0.1f * (float)(k % 7) - 0.3f : k / RANK == TOKEN ? 0.5f : 0;
        expect_ok(o->t, rlx_weights_write_f32(w, x, left / sizeof(float), &err));
    }
    expect_ok(o->t, rlx_weights_finish(w, &err));
    return path;
}

static void logits_with(struct opened *o, const char *path, const rlx_llm_adapter *a, size_t count,
                        float out[TINY_VOCAB])
{
    static const int32_t prompt[] = {10, 20, 30};
    rlx_llm_desc desc = usual();
    const float *logits;
    rlx_error err;

    desc.adapters = a;
    desc.adapter_count = count;
    memset(out, 0, TINY_VOCAB * sizeof *out);
    if (open_llm(o, path, &desc) && rlx_sequence_feed(o->seq, prompt, 3, &err) == RLX_OK &&
        rlx_sequence_logits(o->seq, &logits, NULL, &err) == RLX_OK)
        memcpy(out, logits, TINY_VOCAB * sizeof *out);
    close_llm(o);
}

TEST(llm_engine, adapters_add_up)
{
    struct opened o = {.t = t};
    const char *path = model_file(&o), *adapter = adapter_file(&o, "output.weight");
    const rlx_llm_adapter one[] = {{adapter, 0}}, halves[] = {{adapter, 0.5f}, {adapter, 0.5f}},
                          less[] = {{adapter, -2}};
    float plain[TINY_VOCAB], with[TINY_VOCAB], twice[TINY_VOCAB], away[TINY_VOCAB];

    logits_with(&o, path, NULL, 0, plain);
    logits_with(&o, path, one, 1, with);
    logits_with(&o, path, halves, 2, twice);
    logits_with(&o, path, less, 1, away);
    const float added = with[TOKEN] - plain[TOKEN];
    expect(t, fabsf(added) > 1e-3f);
    for (int i = 0; i < TINY_VOCAB; i++)
        expect_near(t, with[i] - plain[i], i == TOKEN ? added : 0, 1e-6);
    expect_near(t, twice[TOKEN], with[TOKEN], 1e-5);
    expect_near(t, away[TOKEN] - plain[TOKEN], -2 * added, 1e-5);
    close_all(&o);
}

TEST(llm_engine, adapters_that_do_not_fit_are_refused)
{
    struct opened o = {.t = t};
    const char *path = model_file(&o);
    const rlx_llm_adapter elsewhere = {adapter_file(&o, "blk.7.attn_q.weight"), 1};
    const rlx_llm_adapter model = {path, 1};
    rlx_llm_desc desc = usual();
    rlx_error err;

    desc.adapter_count = 1;
    desc.adapters = &elsewhere;
    expect_status(t, rlx_llm_open(o.ctx, o.dev, path, &desc, &o.llm, &err), RLX_ERROR_UNSUPPORTED);
    expect_contains(t, err.message, "blk.7.attn_q.weight.lora_a");
    desc.adapters = &model;
    expect_status(t, rlx_llm_open(o.ctx, o.dev, path, &desc, &o.llm, &err), RLX_ERROR_UNSUPPORTED);
    expect_contains(t, err.message, "general.type");
    close_all(&o);
}

/* ---- grammars ---- */

TEST(llm_engine, text_follows_a_grammar)
{
    struct opened o = {.t = t};
    const char *path = model_file(&o);
    const rlx_llm_desc desc = usual();
    rlx_sampling how = {RLX_SIZED(rlx_sampling), .temperature = 2, .seed = 3};
    const int32_t prompt[] = {10, 20, 30};
    rlx_sampler *p = NULL;
    rlx_error err;

    expect_ok(t, rlx_grammar_parse(o.ctx, rlx_cstr("root ::= \"x\" [0-9] [0-9] \"y\""),
                                   (rlx_str){NULL, 0}, &how.grammar, &err));
    if (open_llm(&o, path, &desc) && expect_ok(t, rlx_sampler_create(o.llm, &how, &p, &err)))
        for (int again = 0; again < 2; again++) {
            char text[8] = "";
            int n = 0;
            expect_ok(t, rlx_sampler_begin(p, &err));
            expect_ok(t, rlx_sequence_set(o.seq, prompt, 3, NULL, &err));
            while (!rlx_sampler_done(p) && n < 7) {
                int32_t id = -1;
                if (!expect_ok(t, rlx_sequence_next(o.seq, p, &id, &err)))
                    break;
                text[n++] = (char)id; /* tokens below 256 are bytes */
            }
            expect_eq(t, strlen(text), 4);
            expect(t, text[0] == 'x' && text[1] >= '0' && text[1] <= '9' && text[2] >= '0' &&
                          text[2] <= '9' && text[3] == 'y');
        }
    rlx_sampler_destroy(p);
    rlx_grammar_destroy(how.grammar);
    close_all(&o);
}
