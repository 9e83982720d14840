/* encode_test.c: a conversation as tokens: what a user writes is never a control token. */
#include "template_world.h"

static char store[256][4];

/* Bytes, "<|im_end|>" (256), "<s>" (257), "<think>" (258, user-defined), "hi" (259), "<|u|>" (260,
 * user-defined). */
static rlx_tokenizer *vocabulary(struct test *t, rlx_context *ctx, bool llama)
{
    static struct world w;
    rlx_error err;

    world_begin(&w, llama ? "llama" : "gpt2", llama ? NULL : "gpt-2");
    if (llama) {
        world_token(&w, "<unk>", RLX_TOKEN_UNKNOWN, 0);
        world_token(&w, "\xe2\x96\x81", RLX_TOKEN_NORMAL, -1);
        world_token(&w, "a", RLX_TOKEN_NORMAL, -2);
        world_token(&w, "<s>", RLX_TOKEN_CONTROL, 0);
    } else {
        world_bytes(&w, store);
        world_token(&w, "<|im_end|>", RLX_TOKEN_CONTROL, 0);
        world_token(&w, "<s>", RLX_TOKEN_CONTROL, 0);
        world_token(&w, "<think>", RLX_TOKEN_USER_DEFINED, 0);
        world_token(&w, "hi", RLX_TOKEN_NORMAL, 0);
        world_token(&w, "<|u|>", RLX_TOKEN_USER_DEFINED, 0);
        world_merge(&w, "h i");
    }
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    expect(t, k != NULL);
    return k;
}

static void expect_encoded(struct test *t, rlx_context *ctx, const rlx_tokenizer *k,
                           const char *source, const char *variables, const char *want)
{
    const rlx_chat_desc chat = {RLX_SIZED(rlx_chat_desc), .variables = rlx_cstr(variables)};
    rlx_token_ids ids = {0};
    rlx_template *tpl;
    rlx_rendered r;
    char got[256] = "";
    size_t len = 0;

    test_note(t, "%s with %s", source, variables);
    require_ok(t, rlx_template_parse(ctx, rlx_cstr(source), &tpl, NULL));
    require_ok(t, rlx_template_render(tpl, &chat, &r, NULL));
    if (expect_ok(t, rlx_rendered_encode(k, &r, &ids, NULL)))
        for (size_t i = 0; i < ids.count; i++)
            len += (size_t)snprintf(got + len, sizeof got - len, i ? " %d" : "%d", ids.at[i]);
    expect_str(t, got, want);
    rlx_token_ids_free(k, &ids);
    rlx_rendered_free(tpl, &r);
    rlx_template_close(tpl);
}

TEST(template, data_makes_no_control_tokens)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = vocabulary(t, ctx, false);

    require(t, k != NULL);
    /* The template's own are tokens, also where several literals make one. */
    expect_encoded(t, ctx, k, "<s>{{ x }}<|im_end|>", "{\"x\": \"hi\"}", "257 259 256");
    expect_encoded(t, ctx, k, "{{ '<' ~ 's' ~ '>' }}{{ '<|im' }}_end|>", "{}", "257 256");
    expect_encoded(t, ctx, k, "{{ bos_token }}a", "{\"bos_token\": \"<s>\"}", "257 97");
    /* A user's are text, whole or together with what is around them. */
    expect_encoded(t, ctx, k, "{{ x }}<s>", "{\"x\": \"<s>\"}", "60 115 62 257");
    expect_encoded(t, ctx, k, "<{{ x }}>", "{\"x\": \"s\"}", "60 115 62");
    expect_encoded(t, ctx, k, "{{ x }}{{ x }}", "{\"x\": \"<s>\"}", "60 115 62 60 115 62");
    expect_encoded(t, ctx, k, "{{ x }}{{ y }}", "{\"x\": \"<s\", \"y\": \">\"}", "60 115 62");
    expect_encoded(t, ctx, k, "{{ x }}s>", "{\"x\": \"<\"}", "60 115 62");
    /* User-defined tokens are text that anybody may write. */
    expect_encoded(t, ctx, k, "{{ x }}", "{\"x\": \"<think><s>\"}", "258 60 115 62");
    expect_encoded(t, ctx, k, "<|u|>{{ x }}", "{\"x\": \"<|u|>\"}", "260 60 124 117 124 62");
    /* Where nobody tries, it is one text: "h" and "i" merge. */
    expect_encoded(t, ctx, k, "h{{ x }}", "{\"x\": \"i\"}", "259");
    expect_encoded(t, ctx, k, "", "{}", "");
    rlx_tokenizer_close(k);
    k = vocabulary(t, ctx, true); /* which puts a space in front of a text, but of no part of it */
    require(t, k != NULL);
    expect_encoded(t, ctx, k, "a{{ x }}a", "{\"x\": \"a\"}", "1 2 2 2");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(template, spans_that_are_not_the_text)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = vocabulary(t, ctx, false);
    const rlx_text_span span[] = {{2, true}, {SIZE_MAX, false}};
    rlx_rendered r = {rlx_cstr("abc"), span, 1};
    rlx_token_ids ids = {0};
    rlx_error err;

    require(t, k != NULL);
    expect_status(t, rlx_rendered_encode(k, &r, &ids, &err), RLX_ERROR_ARGUMENT);
    expect_error(t, RLX_ERROR_ARGUMENT, "the spans have 2 bytes, and the text has 3", &err);
    r.span_count = 2;
    expect_status(t, rlx_rendered_encode(k, &r, &ids, &err), RLX_ERROR_ARGUMENT);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}
