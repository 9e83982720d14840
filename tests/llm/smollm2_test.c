/* smollm2_test.c: a published model, through its own chat template: the tokens that llama.cpp
 * chooses, too, where no other token is nearly as likely. */
#include <unistd.h>

#include "rlx/llm.h"
#include "rlx/template.h"
#include "test.h"

enum { MOST = 64 };
static const struct {
    const char *said;
    int32_t answer[MOST];
    size_t count;
} talks[] = {
    {"Count from 1 to 20.",
     {33,  30,  216, 33,  198, 34,  30,  216, 34,  198, 35,  30,  216, 35,  198, 36,
      30,  216, 36,  198, 37,  30,  216, 37,  198, 38,  30,  216, 38,  198, 39,  30,
      216, 39,  198, 40,  30,  216, 40,  198, 41,  30,  216, 41,  198, 33,  32,  30,
      216, 33,  32,  198, 33,  33,  30,  216, 33,  33,  198, 33,  34,  30,  216, 33},
     64},
    {"List the months of the year.",
     {504, 2704, 282, 260,  713, 359,  42, 4450, 28, 5096, 28, 3903, 28, 4124, 28, 2405,
      28,  4019, 28,  4185, 28,  4053, 28, 4448, 28, 4451, 28, 4745, 28, 4645, 30, 2},
     32},
    {"Write a short poem about rain.",
     {788,  41234, 506,  40362, 28,   837,  18778, 1238, 28,   198,  49,  9154, 5249,
      28,   253,   9154, 5249,  28,   198,  49,    9154, 5249, 28,   253, 9154, 5249,
      28,   198,   49,   9154,  5249, 28,   253,   9154, 5249, 30,   198, 198,  504,
      5249, 28,    253,  9154,  5249, 28,   198,   49,   9154, 5249, 28,  253,  9154,
      5249, 28,    198,  49,    9154, 5249, 28,    253,  9154, 5249, 28,  198},
     64},
};

struct opened {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_weights *w;
    rlx_template *template;
    rlx_llm *llm;
    rlx_sequence *seq;
    rlx_sampler *sampler;
};

static rlx_status open_all(struct opened *o, const char *path, rlx_error *err)
{
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = 512};
    rlx_status s = rlx_context_create(RLX_VERSION, NULL, &o->ctx, err);

    if (s == RLX_OK)
        s = rlx_device_open(o->ctx, "cpu", &o->dev, err);
    if (s == RLX_OK)
        s = rlx_weights_open(o->ctx, path, NULL, &o->w, err);
    if (s == RLX_OK)
        s = rlx_template_from_weights(o->ctx, o->w, NULL, &o->template, err);
    if (s == RLX_OK)
        s = rlx_llm_open(o->ctx, o->dev, path, &desc, &o->llm, err);
    if (s == RLX_OK)
        s = rlx_sequence_create(o->llm, &o->seq, err);
    return s == RLX_OK ? rlx_sampler_create(o->llm, NULL, &o->sampler, err) : s;
}

static void close_all(struct opened *o)
{
    rlx_sampler_destroy(o->sampler);
    rlx_sequence_destroy(o->seq);
    rlx_llm_close(o->llm);
    rlx_template_close(o->template);
    rlx_weights_close(o->w);
    rlx_device_close(o->dev);
    rlx_context_destroy(o->ctx);
}

static rlx_status ask(struct opened *o, const char *text, rlx_error *err)
{
    const rlx_chat_message said = {rlx_cstr("user"), rlx_cstr(text)};
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .messages = &said, .message_count = 1,
                                .add_generation_prompt = true};
    const rlx_tokenizer *t = rlx_llm_tokenizer(o->llm);
    rlx_token_ids ids = {0};
    rlx_rendered r;
    rlx_status s = rlx_template_render(o->template, &chat, &r, err);

    if (s != RLX_OK)
        return s;
    s = rlx_rendered_encode(t, &r, &ids, err);
    rlx_rendered_free(o->template, &r);
    if (s == RLX_OK)
        s = rlx_sequence_set(o->seq, ids.at, ids.count, NULL, err);
    rlx_token_ids_free(t, &ids);
    return s;
}

TEST_SLOW(smollm2, answers_as_in_llama_cpp)
{
    const char *path = test_source(t, "build/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    struct opened o = {0};
    rlx_error err = {0};

    if (access(path, R_OK) != 0)
        skip(t, "there is no %s: tools/setup models fetches it", path);
    if (open_all(&o, path, &err) != RLX_OK)
        fail(t, "%s", err.message);
    for (size_t i = 0; o.sampler && i < sizeof talks / sizeof talks[0]; i++) {
        test_note(t, "%s", talks[i].said);
        expect_ok(t, ask(&o, talks[i].said, &err));
        for (size_t k = 0; k < talks[i].count; k++) {
            int32_t id = -1;
            expect_ok(t, rlx_sequence_next(o.seq, o.sampler, &id, &err));
            expect_eq(t, id, talks[i].answer[k]);
        }
    }
    close_all(&o);
}
