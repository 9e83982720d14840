/* kinds_test.c: each kind of tokenizer on a vocabulary small enough to work out by hand, special
 * tokens, and bytes that come out in pieces. */
#include "text_world.h"

#define SP "\xe2\x96\x81"

/* ---- SentencePiece BPE ---- */

static rlx_tokenizer *spm(struct test *t, rlx_context *ctx, bool prefix)
{
    static const struct {
        const char *text;
        int type;
        float score;
    } tokens[] = {
        {"<unk>", 2, 0},  {"<s>", 3, 0},    {"</s>", 3, 0},                /* 0 1 2 */
        {"<0xC3>", 6, 0}, {"<0x85>", 6, 0},                                /* 3 4 */
        {SP, 1, -9},      {"a", 1, -9},     {"b", 1, -9},    {"c", 1, -9}, /* 5 6 7 8 */
        {"ab", 1, -2},    {"bc", 1, -1},    {SP "a", 1, -3}, {"abc", 1, -4},
        {"aa", 1, -1}, /* 9 .. 13 */
    };
    struct world w;
    rlx_error err;

    world_begin(&w, "llama", NULL);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        world_token(&w, tokens[i].text, tokens[i].type, tokens[i].score);
    world_flag(&w, "tokenizer.ggml.add_space_prefix", prefix);
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    if (!k)
        fail(t, "%s", err.message);
    return k;
}

TEST(kinds, sentencepiece_merges_by_score)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = spm(t, ctx, false);

    require(t, k);
    expect_ids(t, k, "abc", 0, "12"); /* bc first, and then a bc: "abc" is a token */
    expect_ids(t, k, "ab", 0, "9");
    expect_ids(t, k, "aaa", 0, "13 6"); /* equal scores: from the left */
    expect_ids(t, k, " a b", 0, "11 5 7");
    expect_ids(t, k, "\xc3\x85", 0, "3 4"); /* no token: its bytes */
    expect_ids(t, k, "\xc3\x86", 0, "3 0"); /* of which one is missing */
    expect_ids(t, k, "", 0, "");
    expect_ids(t, k, "a", RLX_ENCODE_ADD, "1 6");
    expect_ids(t, k, "a</s>a", 0, "6 0 0 0 0 6"); /* < / s > : unknown, and not looked for */
    expect_ids(t, k, "a</s>a", RLX_ENCODE_PARSE, "6 2 6");
    rlx_tokenizer_close(k);
    k = spm(t, ctx, true);
    require(t, k);
    expect_ids(t, k, "a", 0, "11");
    expect_ids(t, k, "a</s>a", RLX_ENCODE_PARSE, "11 2 11");
    expect(t, comes_back(t, k, rlx_cstr("abc a  b \xc3\x85")));
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* ---- WordPiece ---- */

static rlx_tokenizer *wordpiece(struct test *t, rlx_context *ctx, bool classic)
{
    static const char *const marked[] = {"[PAD]",
                                         "[UNK]",
                                         "[CLS]",
                                         "[SEP]",
                                         SP "un",
                                         "aff",
                                         "able",
                                         SP "!",
                                         SP "\xe4\xb8\xad",
                                         SP "aff",
                                         SP "\xc3\xa9t\xc3\xa9",
                                         SP "ete"};
    static const char *const plain[] = {"[PAD]",
                                        "[UNK]",
                                        "[CLS]",
                                        "[SEP]",
                                        "un",
                                        "##aff",
                                        "##able",
                                        "!",
                                        "\xe4\xb8\xad",
                                        "aff",
                                        "\xc3\xa9t\xc3\xa9",
                                        "ete"};
    struct world w;
    rlx_error err;

    world_begin(&w, "bert", NULL);
    for (size_t i = 0; i < 12; i++)
        world_token(&w, classic ? plain[i] : marked[i],
                    i < 4 ? RLX_TOKEN_CONTROL : RLX_TOKEN_NORMAL, 0);
    world_number(&w, "tokenizer.ggml.unknown_token_id", 1);
    world_number(&w, "tokenizer.ggml.cls_token_id", 2);
    world_number(&w, "tokenizer.ggml.seperator_token_id", 3);
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    if (!k)
        fail(t, "%s", err.message);
    return k;
}

TEST(kinds, wordpiece_takes_the_longest_and_gives_up_whole_words)
{
    rlx_context *ctx = text_context(t, NULL);

    for (int classic = 0; classic < 2; classic++) {
        rlx_tokenizer *k = wordpiece(t, ctx, classic);
        require(t, k);
        test_note(t, classic ? "classic" : "marked");
        expect_ids(t, k, "Unaffable", 0, "4 5 6");
        expect_ids(t, k,
                   "UN\xc3\x81"
                   "FF aff!",
                   0, "4 5 9 7"); /* without accents */
        expect_ids(t, k, "unx un", 0, "1 4");
        expect_ids(t, k, "un\xe4\xb8\xadun", 0, "4 8 4");    /* an ideograph stands alone */
        expect_ids(t, k, "un\xe2\x80\x8b \t aff", 0, "4 9"); /* U+200B is dropped */
        expect_ids(t, k, "\xc3\x89T\xc3\x89", 0, "11");
        expect_ids(t, k, "aff", RLX_ENCODE_ADD, "2 9 3");
        struct collected c = {.len = 0};
        expect_ok(t, rlx_tokenizer_decode(k, (const int32_t[]){2, 4, 5, 6, 9, 3}, 6, 0, collect, &c,
                                          NULL));
        expect_str(t, c.at, "unaffable aff");
        rlx_tokenizer_close(k);
    }
    rlx_context_destroy(ctx);
}

/* ---- unigram ---- */

/* A map that makes "A" into "a" and U+00C9 into "e'": a double array with four units. base(i) is
 * given by bits 10 and up, the leaf by bit 8. */
static size_t small_map(uint8_t *out)
{
    static const char texts[] = "a\0e'";
    uint32_t unit[512] = {0};
    /* root: base 256, so that children are at 256 ^ byte; each child's base is odd by its value */
    unit[0] = 256u << 10;
    unit[256 ^ 'A'] = 'A' | 1u << 8 | (2u << 10); /* leaf value at (256 ^ 'A') ^ 2 */
    unit[256 ^ 'A' ^ 2] = 0x80000000u | 0;        /* texts + 0 */
    unit[256 ^ 0xc3] = 0xc3 | (64u << 10);        /* child of 0x89 at (256 ^ 0xc3) ^ 64 ^ 0x89 */
    unit[256 ^ 0xc3 ^ 64 ^ 0x89] = 0x89 | 1u << 8 | (8u << 10);
    unit[256 ^ 0xc3 ^ 64 ^ 0x89 ^ 8] = 0x80000000u | 2;
    size_t at = 4;
    for (size_t i = 0; i < 512; i++, at += 4)
        for (int b = 0; b < 4; b++)
            out[at + (size_t)b] = (uint8_t)(unit[i] >> 8 * b);
    memcpy(out, (const uint8_t[]){0, 8, 0, 0}, 4);
    memcpy(out + at, texts, sizeof texts);
    return at + sizeof texts;
}

static void unigram_world(struct world *w)
{
    static const struct {
        const char *text;
        int type;
        float score;
    } tokens[] = {
        {"<pad>", 3, 0}, {"</s>", 3, 0},      {"<unk>", 2, 0}, /* 0 1 2 */
        {SP, 1, -2},     {"a", 1, -3},        {"b", 1, -3},
        {"ab", 1, -5},   {SP "ab", 1, -7.5f},               /* 3 .. 7 */
        {"bab", 1, -4},  {"e", 1, -6},        {"'", 1, -6}, /* 8 9 10 */
    };

    world_begin(w, "t5", NULL);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        world_token(w, tokens[i].text, tokens[i].type, tokens[i].score);
}

TEST(kinds, unigram_finds_the_greatest_sum)
{
    rlx_context *ctx = text_context(t, NULL);
    static uint8_t map[4096];
    struct world w;
    rlx_error err;

    unigram_world(&w);
    world_flag(&w, "tokenizer.ggml.add_space_prefix", true);
    world_flag(&w, "tokenizer.ggml.remove_extra_whitespaces", true);
    w.meta[w.count++] = (rlx_meta){rlx_cstr("tokenizer.ggml.precompiled_charsmap"), RLX_META_u8,
                                   true, small_map(map), map};
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    if (!k)
        fail(t, "%s", err.message);
    require(t, k);
    expect_ids(t, k, "ab", 0, "3 6");     /* -2 - 5 before -7.5 */
    expect_ids(t, k, "abab", 0, "3 4 8"); /* a bab: -7; ab ab: -10 */
    expect_ids(t, k, "  ab   ab ", 0, "3 6 3 6");
    expect_ids(t, k, "AxyzB", 0, "3 4 2"); /* A becomes a; what is unknown becomes one token */
    expect_ids(t, k, "\xc3\x89", 0, "3 9 10");
    expect_ids(t, k, "\xc3", 0, "3 2");
    expect_ids(t, k, "   ", 0, "");
    expect_ids(t, k, "a", RLX_ENCODE_ADD, "3 4 1");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(kinds, unigram_refuses_maps_that_contradict_themselves)
{
    static uint8_t map[4096];
    const size_t len = small_map(map);
    const struct {
        size_t at;
        uint8_t byte;
        size_t size;
        const char *part;
    } cases[] = {{1, 0xff, len, "an array of 65280 bytes"},
                 {0, 1, len, "an array of 2049 bytes"},
                 {len - 1, 'x', len, "its last text does not end"},
                 {0, 0, 3, "has 3 bytes"}};
    rlx_context *ctx = text_context(t, NULL);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static uint8_t bad[4096];
        struct world w;
        rlx_error err;
        memcpy(bad, map, len);
        bad[cases[i].at] = cases[i].byte;
        unigram_world(&w);
        w.meta[w.count++] = (rlx_meta){rlx_cstr("tokenizer.ggml.precompiled_charsmap"), RLX_META_u8,
                                       true, cases[i].size, bad};
        expect(t, !world_open(t, &w, ctx, &err));
        expect_error(t, RLX_ERROR_FORMAT, cases[i].part, &err);
    }
    rlx_context_destroy(ctx);
}

/* ---- RWKV ---- */

TEST(kinds, rwkv_takes_the_longest)
{
    rlx_context *ctx = text_context(t, NULL);
    struct world w;
    rlx_error err;

    world_begin(&w, "rwkv", NULL);
    world_token(&w, "<s>", RLX_TOKEN_CONTROL, 0);
    world_token(&w, "a", RLX_TOKEN_NORMAL, 0);
    world_token(&w, "ab", RLX_TOKEN_NORMAL, 0);
    world_token(&w, "\\n", RLX_TOKEN_NORMAL, 0);
    world_token(&w, "\\xe4", RLX_TOKEN_NORMAL, 0);
    world_token(&w, "\\'b\\\\", RLX_TOKEN_NORMAL, 0);
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    require(t, k);
    expect_ids(t, k, "aab\n\xe4'b\\", 0, "1 2 3 4 5");
    expect_ids(t, k, "ax", 0,
               "[the vocabulary has no token for byte 0x78 of the text, and none for what is "
               "unknown]");
    expect(t, comes_back(t, k, rlx_cstr("aab\n\xe4'b\\")));
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* ---- special tokens ---- */

static rlx_tokenizer *with_special(struct test *t, rlx_context *ctx)
{
    static char store[256][4];
    struct world w;
    rlx_error err;

    world_begin(&w, "gpt2", "gpt-2");
    world_bytes(&w, store);
    world_token(&w, "<a", RLX_TOKEN_USER_DEFINED, 0);   /* 256 */
    world_token(&w, "<a>", RLX_TOKEN_USER_DEFINED, 0);  /* 257 */
    world_token(&w, "a><", RLX_TOKEN_USER_DEFINED, 0);  /* 258 */
    world_token(&w, "<|im_end|>", RLX_TOKEN_NORMAL, 0); /* 259: its text makes it control */
    world_token(&w, "ab", RLX_TOKEN_NORMAL, 0);         /* 260 */
    world_merge(&w, "a b");
    world_number(&w, "tokenizer.ggml.bos_token_id", 259);
    rlx_tokenizer *k = world_open(t, &w, ctx, &err);
    if (!k)
        fail(t, "%s", err.message);
    return k;
}

TEST(special_tokens, the_longest_are_cut_first)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = with_special(t, ctx);
    rlx_token token;

    require(t, k);
    expect_ids(t, k, "<a>", 0, "257");
    expect_ids(t, k, "<a><a", 0, "257 256");   /* not "<" "a><" "a" */
    expect_ids(t, k, "a><a>", 0, "97 62 257"); /* "<a>" has the lower id of two as long */
    expect_ids(t, k, "ab<a>ab<a", 0, "260 257 260 256");
    expect_ids(t, k, "<|im_end|>", RLX_ENCODE_PARSE, "259");
    expect_ids(t, k, "<|im_end|>", 0, "60 124 105 109 95 101 110 100 124 62");
    require(t, rlx_tokenizer_at(k, 259, &token));
    expect(t, token.type == RLX_TOKEN_CONTROL && token.ends);
    expect(t, !rlx_tokenizer_at(k, 261, &token) && !rlx_tokenizer_at(k, -1, &token));
    expect_eq(t, rlx_tokenizer_find(k, rlx_cstr("a><")), 258);
    expect_eq(t, rlx_tokenizer_find(k, rlx_cstr("nothing")), -1);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* ---- decoding ---- */

TEST(decode_text, a_stream_never_splits_a_character)
{
    static const int32_t grin[] = {0xf0, 0x9f, 0x98, 0x80}; /* tokens 0 .. 255 are bytes */
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = with_special(t, ctx);
    rlx_token_stream s = {.flags = 0};
    struct collected c = {.len = 0};
    rlx_error err;

    require(t, k);
    for (int i = 0; i < 4; i++) {
        expect_eq(t, c.len, 0);
        expect_ok(t, rlx_token_stream_add(k, &s, grin[i], collect, &c, NULL));
    }
    expect_str(t, c.at, "\xf0\x9f\x98\x80");
    expect_eq(t, c.calls, 1);
    /* What cannot become a character is not held; what is held at the end is written. */
    c = (struct collected){.len = 0};
    expect_ok(t, rlx_token_stream_add(k, &s, 0xed, collect, &c, NULL));
    expect_eq(t, c.len, 0);
    expect_ok(t, rlx_token_stream_add(k, &s, 0xa0, collect, &c, NULL)); /* a surrogate */
    expect_bytes(t, c.at, "\xed\xa0", 2);
    expect_ok(t, rlx_token_stream_add(k, &s, 0xe4, collect, &c, NULL));
    expect_eq(t, c.len, 2);
    rlx_token_stream_end(&s, collect, &c);
    expect_bytes(t, c.at, "\xed\xa0\xe4", 3);
    expect_status(t, rlx_token_stream_add(k, &s, 261, collect, &c, &err), RLX_ERROR_INDEX);
    expect_error(t, RLX_ERROR_INDEX, "id 261: the vocabulary has 261 tokens", &err);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(decode_text, control_tokens_show_only_where_they_are_asked_for)
{
    static const int32_t id[] = {259, 260, 257, 259};
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = with_special(t, ctx);
    struct collected c = {.len = 0};

    require(t, k);
    expect_ok(t, rlx_tokenizer_decode(k, id, 4, 0, collect, &c, NULL));
    expect_str(t, c.at, "ab<a>");
    c = (struct collected){.len = 0};
    expect_ok(t, rlx_tokenizer_decode(k, id, 4, RLX_DECODE_SPECIAL, collect, &c, NULL));
    expect_str(t, c.at, "<|im_end|>ab<a><|im_end|>");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* ---- seeds ---- */

/* Vocabularies of every kind are what the fuzzer begins with. $RLX_TEST_SEEDS=1 writes them. */
static void check_seed_file(struct test *t, struct world *w, rlx_context *ctx, const char *name)
{
    const char *write = getenv("RLX_TEST_SEEDS"), *path = test_temp(t, name);
    char seed[128];
    size_t len = 0, want = 0;

    snprintf(seed, sizeof seed, "fuzz/corpus/tokenizer/%s", name);
    require_ok(t, world_write(w, ctx, path, NULL));
    const char *bytes = test_read(t, path, &len);
    require(t, bytes != NULL);
    if (write && strcmp(write, "1") == 0)
        require(t, test_write(t, test_source(t, seed), bytes, len));
    const char *there = test_read(t, test_source(t, seed), &want);
    require(t, there != NULL);
    expect(t, len == want && memcmp(bytes, there, len) == 0);
}

TEST(kinds, seeds_of_the_fuzzer_are_as_they_were)
{
    static const char *const kinds[][2] = {
        {"gpt2", "llama-bpe"}, {"gpt2", "deepseek-llm"}, {"gpt2", "gpt-4o"}, {"gemma4", NULL},
        {"llama", NULL},       {"bert", NULL},           {"t5", NULL},       {"rwkv", NULL}};
    static const char *const tokens[] = {"<unk>",
                                         "<s>",
                                         "<0x41>",
                                         SP,
                                         "a",
                                         "b",
                                         "ab",
                                         SP "a",
                                         "\xc4\xa0",
                                         ("\xc4\xa0"
                                          "a"),
                                         "##b",
                                         "\\n",
                                         "\\x61"};
    static uint8_t map[4096];
    rlx_context *ctx = text_context(t, NULL);

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct world w;
        char name[32];
        world_begin(&w, kinds[i][0], kinds[i][1]);
        for (size_t k = 0; k < sizeof tokens / sizeof *tokens; k++)
            world_token(&w, tokens[k], k == 0 ? 2 : k == 1 ? 4 : k == 2 ? 6 : 1, -(float)k);
        world_merge(&w, "a b");
        world_merge(&w, "\xc4\xa0 a");
        world_number(&w, "tokenizer.ggml.unknown_token_id", 0);
        if (strcmp(kinds[i][0], "t5") == 0)
            w.meta[w.count++] = (rlx_meta){rlx_cstr("tokenizer.ggml.precompiled_charsmap"),
                                           RLX_META_u8, true, small_map(map), map};
        snprintf(name, sizeof name, "%zu_%s.gguf", i, kinds[i][0]);
        check_seed_file(t, &w, ctx, name);
    }
    rlx_context_destroy(ctx);
}
