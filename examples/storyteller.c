/* storyteller.c: a language model writes a story, token by token. The model is the one that comes
 * with the sources, models/stories.gguf, or the GGUF file that is named. */
#define RLX_UNSTABLE
#include "example.h"
#include "rlx/llm.h"

enum { CONTEXT = 256 };

static void write_text(void *user, const char *text, size_t len)
{
    fwrite(text, 1, len, user);
}

/* Until the model ends the story, or there is no room for more of it. */
static size_t tell(rlx_llm *model, rlx_sequence *story, rlx_sampler *sampler)
{
    const rlx_tokenizer *t = rlx_llm_tokenizer(model);
    rlx_token_stream stream = {0};
    rlx_token token;
    rlx_error err;
    size_t told = 0;
    int32_t id;

    while (rlx_sequence_next(story, sampler, &id, &err) == RLX_OK) {
        if (!rlx_tokenizer_at(t, id, &token) || token.ends)
            break;
        check(rlx_token_stream_add(t, &stream, id, write_text, stdout, &err), &err);
        told++;
    }
    rlx_token_stream_end(&stream, write_text, stdout);
    return told;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "models/stories.gguf";
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = CONTEXT};
    const rlx_sampling how = {RLX_SIZED(rlx_sampling), .temperature = 0.5f, .top_k = 40, .seed = 7};
    struct world w = open_world(NULL);
    rlx_token_ids begin = {0};
    rlx_sequence *story;
    rlx_sampler *sampler;
    rlx_llm *model;
    rlx_error err;

    check(rlx_llm_open(w.ctx, w.dev, path, &desc, &model, &err), &err);
    check(rlx_sequence_create(model, &story, &err), &err);
    check(rlx_sampler_create(model, &how, &sampler, &err), &err);

    const rlx_str first = rlx_cstr("Once upon a time");
    check(rlx_tokenizer_encode(rlx_llm_tokenizer(model), first, RLX_ENCODE_ADD, &begin, &err),
          &err);
    check(rlx_sequence_feed(story, begin.at, begin.count, &err), &err);
    fputs(first.ptr, stdout);
    size_t told = tell(model, story, sampler);
    printf("\n%zu tokens were told\n", told);

    rlx_token_ids_free(rlx_llm_tokenizer(model), &begin);
    rlx_sampler_destroy(sampler);
    rlx_sequence_destroy(story);
    rlx_llm_close(model);
    close_world(w);
    return told > 20 ? 0 : 1;
}
