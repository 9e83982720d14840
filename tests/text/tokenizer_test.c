/* tokenizer_test.c: vocabularies that contradict themselves, and calls that make no sense. */
#include "text_world.h"

static char store[256][4];

static void small(struct world *w)
{
    world_begin(w, "gpt2", "gpt-2");
    world_bytes(w, store);
    world_token(w, "he", RLX_TOKEN_NORMAL, 0);
    world_merge(w, "h e");
}

/* Each breaks one thing; the message says what, and where. */
#define BROKEN_MAP(X)                                                                          \
    X(w.text[7] = w.text[9], FORMAT, "tokens 7 and 9 are both")                                \
    X(w.type[5] = 7, FORMAT, "token 5 is of type 7")                                           \
    X(w.type[5] = -1, FORMAT, "token 5 is of type -1")                                         \
    X(w.score[6] = 0.0f / zero, FORMAT, "that of token 6 is NaN")                              \
    X(w.merge[0] = rlx_cstr("he"), FORMAT, "merge 0, \"he\", is not two texts and a space")    \
    X(w.merge[0] = rlx_cstr(" e"), FORMAT, "merge 0, \" e\", is not two")                      \
    X(w.merge[0] = rlx_cstr("h "), FORMAT, "merge 0, \"h \", is not two")                      \
    X(w.merge[0] = rlx_cstr(""), FORMAT, "merge 0, \"\", is not two")                          \
    X(world_merge(&w, "xyz q"), FORMAT, "merge 1 names \"xyz\", which is no token")            \
    X(w.merges = 0, FORMAT, "tokenizer.ggml.merges is missing")                                \
    X(w.tokens = 0, FORMAT, "tokenizer.ggml.tokens is empty")                                  \
    X(w.model = rlx_cstr("gpt3"), UNSUPPORTED, "\"gpt3\": there is no such kind")              \
    X(w.pre = rlx_cstr("lama-bpe"), UNSUPPORTED, "\"lama-bpe\": there is no such rule")        \
    X(w.count = 0, FORMAT, "tokenizer.ggml.model is missing")                                  \
    X(w.meta[0].type = RLX_META_u32, DTYPE, "tokenizer.ggml.model is one value of type u32")   \
    X(world_number(&w, "tokenizer.ggml.eos_token_id", 257), FORMAT,                            \
      "tokenizer.ggml.eos_token_id is 257, but the vocabulary has 257 tokens")                 \
    X(world_flag(&w, "tokenizer.ggml.eos_token_id", true), DTYPE, "eos_token_id is one value") \
    X(world_number(&w, "tokenizer.ggml.add_bos_token", 1), DTYPE, "add_bos_token is one value")

TEST(tokenizer, broken_vocabularies_are_refused_with_the_place)
{
    rlx_context *ctx = text_context(t, NULL);
    const float zero = 0;
    struct world w;
    rlx_tokenizer *k;
    rlx_error err;

#define X(change, status, part)               \
    small(&w);                                \
    change;                                   \
    test_note(t, "%s", #change);              \
    expect(t, !world_open(t, &w, ctx, &err)); \
    expect_error(t, RLX_ERROR_##status, part, &err);
    BROKEN_MAP(X)
#undef X
    test_note(t, "%s", "");
    small(&w);
    k = world_open(t, &w, ctx, &err);
    expect(t, k != NULL);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(tokenizer, what_is_odd_but_clear_is_taken)
{
    rlx_context *ctx = text_context(t, NULL);
    struct world w;
    rlx_error err;
    rlx_token token;

    small(&w);
    world_token(&w, "", RLX_TOKEN_NORMAL, 0); /* 257 and 258: named by their ids */
    world_token(&w, "", RLX_TOKEN_NORMAL, 0);
    world_merge(&w, "h e"); /* again: the first counts */
    world_merge(&w, "l l"); /* "ll" is no token, but part of one */
    world_merge(&w, "he ll");
    world_token(&w, "hell", RLX_TOKEN_NORMAL, 0); /* 259 */
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    if (!k)
        fail(t, "%s", err.message);
    require(t, k);
    expect(t, rlx_tokenizer_at(k, 258, &token) && token.text.len == strlen("[EMPTY_258]"));
    expect_ids(t, k, "hell all", 0, "259 32 97 108 108");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

static void note_line(void *user, int level, const char *line)
{
    snprintf(user, 256, "%d %s", level, line);
}

TEST(tokenizer, a_rule_that_is_assumed_is_a_warning)
{
    char said[256] = "";
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .log = note_line, .log_user = said};
    rlx_context *ctx;
    struct world w;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, &desc, &ctx, &err));
    world_begin(&w, "gpt2", NULL);
    world_bytes(&w, store);
    world_token(&w, "he", RLX_TOKEN_NORMAL, 0);
    world_merge(&w, "h e");
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    expect_contains(t, said,
                    "1 tokenizer.ggml.pre is missing: words are cut by the rule "
                    "\"default\"");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* A word without any break, long enough for the heap, merged to one token and half of one. */
TEST(tokenizer, long_words_merge_like_short_ones)
{
    static char name[12][4097];
    rlx_context *ctx = text_context(t, NULL);
    enum { LEN = 100000 };
    char *text = malloc(LEN);
    rlx_token_ids ids = {0};
    struct world w;
    rlx_error err;

    world_begin(&w, "gpt2", "gpt-2");
    world_bytes(&w, store);
    for (int i = 0; i < 12; i++) {
        static char merge[12][8200];
        memset(name[i], 'a', (size_t)2 << i);
        name[i][(size_t)2 << i] = 0;
        world_token(&w, name[i], RLX_TOKEN_NORMAL, 0);
        snprintf(merge[i], sizeof merge[i], "%s %s", i ? name[i - 1] : "a", i ? name[i - 1] : "a");
        world_merge(&w, merge[i]);
    }
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    require(t, k);
    memset(text, 'a', LEN);
    expect_ok(t, rlx_tokenizer_encode(k, (rlx_str){text, LEN}, 0, &ids, NULL));
    /* 100000 = 24 * 4096 + 1696, and 1696 = 1024 + 512 + 128 + 32 */
    expect_eq(t, ids.count, 24 + 4);
    expect_eq(t, ids.at[0], 256 + 11);
    expect_eq(t, ids.at[27], 256 + 4);
    rlx_token_ids_free(k, &ids);
    rlx_tokenizer_close(k);
    free(text);
    rlx_context_destroy(ctx);
}

/* In a text of some length, words are copied from where they came before. */
TEST(tokenizer, words_that_come_again_get_the_same_ids)
{
    static char got[32768], want[16384];
    rlx_context *ctx = text_context(t, NULL);
    char text[4096];
    size_t len = 0, ids = 0;
    struct world w;
    rlx_error err;

    small(&w);
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    require(t, k);
    for (int i = 0; i < 300; i++) {
        bool he = i % 3 != 0;
        len += (size_t)snprintf(text + len, sizeof text - len, he ? " he" : " xh");
        ids += (size_t)snprintf(want + ids, sizeof want - ids, "%s%s", i ? " " : "",
                                he ? "32 256" : "32 120 104");
    }
    expect_str(t, ids_of(k, (rlx_str){text, len}, 0, got, sizeof got), want);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(tokenizer, calls_without_arguments_are_refused)
{
    rlx_context *ctx = text_context(t, NULL);
    struct collected c = {.len = 0};
    struct world w;
    rlx_tokenizer *k;
    rlx_token_ids ids = {0};
    rlx_error err;

    small(&w);
    require(t, (k = world_open(t, &w, ctx, &err)) != NULL);
    expect_status(t, rlx_tokenizer_open(NULL, "x", &k, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tokenizer_open(ctx, "/nonexistent/file", &k, &err), RLX_ERROR_IO);
    expect_status(t, rlx_tokenizer_parse(ctx, "GG", 2, &k, &err), RLX_ERROR_FORMAT);
    expect_status(t, rlx_tokenizer_parse(ctx, NULL, 0, &k, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tokenizer_from_weights(ctx, NULL, &k, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_bpe_train(ctx, rlx_cstr("a"), NULL, &k, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tokenizer_describe(k, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tokenizer_encode(k, rlx_cstr("a"), 4, &ids, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tokenizer_encode(NULL, rlx_cstr("a"), 0, &ids, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tokenizer_decode(k, NULL, 1, 0, collect, &c, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tokenizer_decode(k, NULL, 0, 2, collect, &c, &err), RLX_ERROR_ARGUMENT);
    expect_ok(t, rlx_tokenizer_decode(k, NULL, 0, 0, collect, &c, &err));
    rlx_tokenizer_close(NULL);
    rlx_token_ids_free(NULL, NULL);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}
