/* hf_json_test.c: tokenizer.json files: what is read of them, and what is refused. */
#include "text_world.h"

/* Bytes that are not in it are unknown, but for what these texts need. */
#define MODEL(more)                                                                              \
    "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "                    \
    "\"continuing_subword_prefix\": \"\"" more                                                   \
    ", \"vocab\": {\"a\": 0, \"b\": 1, \"\\u0120\": 2, \"ab\": 3, \"\\u0120ab\": 4, \"1\": 5}, " \
    "\"merges\": [\"a b\", [\"\\u0120\", \"ab\"]]}"
#define ADDED                                                                   \
    "\"added_tokens\": [{\"id\": 6, \"content\": \"<s>\", \"special\": true}, " \
    "{\"id\": 8, \"content\": \"<x>\", \"special\": false, \"lstrip\": false}]"
#define LEVEL(regex) \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": " regex "}"
#define SPLIT(pattern)                                          \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern \
    "\"}, \"behavior\": \"Isolated\", "                         \
    "\"invert\": false}"
#define SEQUENCE(steps) "{\"type\": \"Sequence\", \"pretokenizers\": [" steps "]}"

static rlx_tokenizer *parse(struct test *t, rlx_context *ctx, const char *text)
{
    rlx_tokenizer *k = NULL;
    rlx_error err;

    if (rlx_tokenizer_parse(ctx, text, strlen(text), &k, &err) != RLX_OK)
        fail(t, "%s", err.message);
    return k;
}

TEST(hf_json, a_file_is_read_in_any_order_of_keys)
{
    static const char text[] = " {\"version\": \"1.0\", " MODEL(
        "") ", " ADDED ", \"normalizer\": {\"type\": \"NFC\"}, "
            "\"post_processor\": {\"type\": \"Sequence\", \"processors\": [{\"type\": "
            "\"ByteLevel\"}, "
            "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", "
            "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}]}]}, "
            "\"pre_tokenizer\": " LEVEL("true") ", \"decoder\": null}";
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = parse(t, ctx, text);
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};
    rlx_token token;

    require(t, k);
    expect_ok(t, rlx_tokenizer_describe(k, &info, NULL));
    expect_str(t, info.pre, "gpt-2"); /* what ByteLevel does by itself */
    expect_eq(t, info.vocab, 9);
    expect_eq(t, info.special[RLX_SPECIAL_bos], 6);
    expect_eq(t, info.special[RLX_SPECIAL_eos], -1);
    expect_ids(t, k, "ab ab<x>a", RLX_ENCODE_ADD, "6 3 4 8 0");
    expect_ids(t, k, "ab<s>", RLX_ENCODE_PARSE, "3 6");
    require(t, rlx_tokenizer_at(k, 7, &token));
    expect_eq(t, token.type, RLX_TOKEN_UNUSED); /* an id that nothing has */
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(hf_json, patterns_of_its_own_cut_words)
{
    static const char text[] =
        "{" MODEL(", \"ignore_merges\": true") ", \"pre_tokenizer\": " SEQUENCE(
            SPLIT("ab|[^ab]+") ", " LEVEL("false")) "}";
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = parse(t, ctx, text);
    rlx_meta m;
    bool named = false;

    require(t, k);
    expect_ids(t, k, " ab1", 0, "2 3 5"); /* " ab" is a token, but no word */
    for (size_t i = 0; rlx_tokenizer_meta(k, i, &m); i++)
        if (m.key.len == strlen("tokenizer.ggml.pre") &&
            memcmp(m.key.ptr, "tokenizer.ggml.pre", m.key.len) == 0)
            named = ((const rlx_str *)m.data)->len == strlen("tokenizer.json");
    expect(t, named); /* no rule has it: a GGUF file of it is refused, not misread */
    rlx_tokenizer_close(k);
    k = parse(t, ctx,
              "{" MODEL("") ", \"pre_tokenizer\": " SEQUENCE(
                  "{\"type\": \"Digits\", \"individual_digits\": true}, " LEVEL("true")) "}");
    require(t, k);
    expect_ids(t, k, "a11", 0, "0 5 5");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(hf_json, what_is_not_known_or_contradicts_itself_is_refused)
{
#define PRE ", \"pre_tokenizer\": "
    static const struct {
        const char *text, *part;
        rlx_status status;
    } cases[] = {
        {"{}", "it has no vocabulary", RLX_ERROR_FORMAT},
        {"{" MODEL("") "}", "no step of its pre_tokenizer is ByteLevel", RLX_ERROR_UNSUPPORTED},
        {"{" MODEL("") PRE "{\"type\": \"Metaspace\"}}", "type \"Metaspace\"",
         RLX_ERROR_UNSUPPORTED},
        {"{" MODEL("") PRE "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}}",
         "add_prefix_space", RLX_ERROR_UNSUPPORTED},
        {"{" MODEL("") PRE SEQUENCE(SPLIT("(?<=a)b")) "}", "no step", RLX_ERROR_UNSUPPORTED},
        {"{" MODEL("") PRE SEQUENCE(SPLIT("(a)+") ", " LEVEL("false")) "}", "pattern \"(a)+\"",
         RLX_ERROR_UNSUPPORTED},
        {"{" MODEL(", \"byte_fallback\": true") PRE LEVEL("true") "}", "byte_fallback",
         RLX_ERROR_UNSUPPORTED},
        {"{" MODEL(", \"end_of_word_suffix\": \"</w>\"") PRE LEVEL("true") "}",
         "end_of_word_suffix", RLX_ERROR_UNSUPPORTED},
        {"{\"model\": {\"type\": \"Unigram\"}}", "type \"Unigram\"", RLX_ERROR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"Lowercase\"}}", "type \"Lowercase\"",
         RLX_ERROR_UNSUPPORTED},
        {"{\"added_tokens\": [{\"id\": 0, \"content\": \"z\"}], " MODEL("") PRE LEVEL("true") "}",
         "\"z\" and \"a\" have the id 0", RLX_ERROR_FORMAT},
        {"{\"added_tokens\": [{\"id\": 99999, \"content\": \"z\"}], " MODEL("")
             PRE LEVEL("true") "}",
         "7 tokens have ids up to 99999", RLX_ERROR_FORMAT},
        {"{\"added_tokens\": [{\"id\": 99999999, \"content\": \"z\"}]}", "an id beyond",
         RLX_ERROR_FORMAT},
        {"{\"added_tokens\": [{\"id\": 9}]}", "without content", RLX_ERROR_FORMAT},
        {"{\"added_tokens\": [{\"id\": 9, \"content\": \"b\"}], " MODEL("") PRE LEVEL("true") "}",
         "tokens 1 and 9 are both \"b\"", RLX_ERROR_FORMAT},
        {"{\"post_processor\": {\"single\": [{\"SpecialToken\": {\"id\": \"q\"}}]}, " MODEL("")
             PRE LEVEL("true") "}",
         "adds \"q\", which is no token", RLX_ERROR_FORMAT},
        {"{\"model\": [", "an object was expected", RLX_ERROR_FORMAT},
        {"{\"model\": {\"ignore_merges\": 1}}", "true or false was expected", RLX_ERROR_FORMAT},
        {"{\"x\": \"\xff\"}", "not UTF-8", RLX_ERROR_FORMAT},
    };
    rlx_context *ctx = text_context(t, NULL);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rlx_tokenizer *k = NULL;
        rlx_error err;
        test_note(t, "case %zu", i);
        expect_status(t, rlx_tokenizer_parse(ctx, cases[i].text, strlen(cases[i].text), &k, &err),
                      cases[i].status);
        expect_error(t, cases[i].status, cases[i].part, &err);
        expect(t, !k);
    }
    rlx_context_destroy(ctx);
}

static const char whole[] = "{" MODEL("") ", " ADDED ", \"pre_tokenizer\": " SEQUENCE(
    SPLIT("[ab]+| ?\\\\p{L}+|(?i:'s|'t)?x") ", " LEVEL("true")) "}";

static rlx_status open_and_encode(struct test *t, const rlx_allocator *mem, void *unused)
{
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};
    rlx_context *ctx;
    rlx_tokenizer *k = NULL;
    rlx_token_ids ids = {0};

    (void)t;
    (void)unused;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, NULL);
    if (s != RLX_OK)
        return s;
    s = rlx_tokenizer_parse(ctx, whole, strlen(whole), &k, NULL);
    if (s == RLX_OK)
        s = rlx_tokenizer_encode(k, rlx_cstr("ab ab<x>ab"), RLX_ENCODE_ADD, &ids, NULL);
    rlx_token_ids_free(k, &ids);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
    return s;
}

TEST(hf_json, survives_having_no_memory)
{
    expect_survives_no_memory(t, open_and_encode, NULL);
}

/* The fuzzer's seed. */
TEST(hf_json, its_seed_is_as_it_was)
{
    const char *write = getenv("RLX_TEST_SEEDS"),
               *seed = test_source(t, "fuzz/corpus/tokenizer/tokenizer.json");
    size_t len = 0;

    if (write && strcmp(write, "1") == 0)
        require(t, test_write(t, seed, whole, strlen(whole)));
    const char *there = test_read(t, seed, &len);
    require(t, there != NULL);
    expect_eq(t, len, strlen(whole));
    expect_str(t, there, whole);
}
