/* train_bpe_test.c: learning byte-level BPE, and what is learned through a GGUF file and back. */
#include "text_world.h"

static rlx_tokenizer *train(struct test *t, rlx_context *ctx, const char *text, uint32_t vocab,
                            const char *pre)
{
    const rlx_bpe_desc desc = {RLX_SIZED(rlx_bpe_desc), .vocab = vocab, .pre = pre};
    rlx_tokenizer *k = NULL;

    expect_ok(t, rlx_bpe_train(ctx, rlx_cstr(text), &desc, &k, NULL));
    return k;
}

/* The spelling of a token. */
static const char *spelled(const rlx_tokenizer *k, int32_t id)
{
    static _Thread_local char text[64];
    rlx_token token;

    if (!rlx_tokenizer_at(k, id, &token))
        return "none";
    snprintf(text, sizeof text, "%.*s", (int)token.text.len, token.text.ptr);
    return text;
}

static rlx_tokenizer_info describe(struct test *t, const rlx_tokenizer *k)
{
    rlx_tokenizer_info info = {RLX_SIZED(rlx_tokenizer_info)};

    expect_ok(t, rlx_tokenizer_describe(k, &info, NULL));
    return info;
}

/* Worked by hand. "low" x 5, "lower" x 2, with a space each: " l", "lo" and "ow" come 7 times, and
 * the space is byte 32, before all letters. Then "ow" and (" l", "o") come 7 times: "o" is byte
 * 111, " l" token 256. Then " low", and of what comes twice, "er" begins with the lower id. */
TEST(train_bpe, merges_the_most_frequent_pair_and_ties_by_ids)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = train(t, ctx, " low low low low low lower lower", 262, NULL);

    require(t, k);
    rlx_tokenizer_info info = describe(t, k);
    expect_eq(t, info.vocab, 262);
    expect_eq(t, info.merges, 5);
    expect_str(t, info.kind, "gpt2");
    expect_str(t, info.pre, "gpt-2");
    expect_str(t, spelled(k, 'l'), "l");
    expect_str(t, spelled(k, 256), "\xc4\xa0l");
    expect_str(t, spelled(k, 257), "ow");
    expect_str(t, spelled(k, 258), "\xc4\xa0low");
    expect_str(t, spelled(k, 259), "er");
    expect_str(t, spelled(k, 260), "\xc4\xa0lower");
    expect_str(t, spelled(k, 261), "<|endoftext|>");
    expect_eq(t, info.special[RLX_SPECIAL_bos], 261);
    expect_eq(t, info.special[RLX_SPECIAL_eos], 261);
    expect_ids(t, k, " lower low", 0, "260 258");
    expect_ids(t, k, "slow", 0, "115 108 257");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* (a, a) lies in "aaa" twice, but becomes one token there, from the left. */
TEST(train_bpe, pairs_that_overlap_are_joined_from_the_left)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = train(t, ctx, "aaaaa aaaaa", 260, NULL);

    require(t, k);
    expect_str(t, spelled(k, 256), "aa");
    expect_str(t, spelled(k, 257), "aaa"); /* "a" "aa": the lower left id */
    expect_ids(t, k, "aaaa", 0, "256 256");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(train_bpe, stops_where_nothing_is_left_to_merge)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = train(t, ctx, "ab ab", 1000, NULL);

    require(t, k);
    expect_eq(t, describe(t, k).vocab, 258); /* "ab" and the special one; " ab" comes once */
    rlx_tokenizer_close(k);
    k = train(t, ctx, "", 300, NULL);
    require(t, k);
    expect_eq(t, describe(t, k).vocab, 257);
    expect(t, comes_back(t, k, rlx_cstr("any text, \xff\xfe and bytes")));
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(train_bpe, special_tokens_are_cut_out_and_come_last)
{
    const rlx_str special[] = {rlx_cstr("<s>"), rlx_cstr("<mid>"), rlx_cstr("</s>")};
    const rlx_bpe_desc desc = {RLX_SIZED(rlx_bpe_desc), .vocab = 300,       .pre = "qwen2",
                               .special = special,      .special_count = 3, .add_bos = true};
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = NULL;
    rlx_token token;

    require_ok(t, rlx_bpe_train(ctx, rlx_cstr("<s><s><s><s>ab</s>ab<s>"), &desc, &k, NULL));
    rlx_tokenizer_info info = describe(t, k);
    expect_eq(t, info.vocab, 256 + 1 + 3);
    expect_str(t, spelled(k, 256), "ab");
    expect_str(t, spelled(k, 257), "<s>");
    expect_eq(t, info.special[RLX_SPECIAL_bos], 257);
    expect_eq(t, info.special[RLX_SPECIAL_eos], 259);
    expect(t, rlx_tokenizer_at(k, 258, &token) && token.type == RLX_TOKEN_CONTROL && !token.ends);
    expect(t, rlx_tokenizer_at(k, 259, &token) && token.ends);
    expect_ids(t, k, "ab<mid>", 0, "256 60 109 105 100 62");
    expect_ids(t, k, "ab<mid>ab", RLX_ENCODE_PARSE | RLX_ENCODE_ADD, "257 256 258 256");
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

/* A text of words that share beginnings, by a small generator. */
static char *some_text(size_t len)
{
    static const char *const part[] = {"the ", "in",  "ter",  "nation",    "al ",
                                       "est",  " re", "ly, ", "\xc3\xa9t", "\xe4\xb8\xad",
                                       "12",   "\n",  "a",    "aa"};
    char *text = malloc(len + 8);
    uint32_t seed = 7;
    size_t at = 0;

    while (at < len) {
        seed = seed * 1664525u + 1013904223u;
        const char *p = part[(seed >> 16) % (sizeof part / sizeof *part)];
        memcpy(text + at, p, strlen(p));
        at += strlen(p);
    }
    text[at] = 0;
    return text;
}

/* The definition, taken word for word: count all pairs of all words, merge the best, again. Words
 * are cut by spaces here, which G2 does as well where letters are ASCII. */
struct plain {
    int32_t symbol[4096];
    size_t word_end[512], words;
};

static void plain_merge(struct plain *p, int32_t left, int32_t right, int32_t symbol)
{
    size_t to = 0, from = 0;

    for (size_t w = 0; w < p->words; w++) {
        size_t end = p->word_end[w];
        while (from < end) {
            bool both = from + 1 < end && p->symbol[from] == left && p->symbol[from + 1] == right;
            p->symbol[to++] = both ? symbol : p->symbol[from];
            from += both ? 2 : 1;
        }
        p->word_end[w] = to;
    }
}

static bool plain_best(const struct plain *p, int32_t symbols, int32_t *left, int32_t *right)
{
    static uint32_t count[512][512];
    size_t at = 0;
    uint32_t best = 1;

    memset(count, 0, sizeof count);
    for (size_t w = 0; w < p->words; at = p->word_end[w++])
        for (; at + 1 < p->word_end[w]; at++)
            count[p->symbol[at]][p->symbol[at + 1]]++;
    for (int32_t a = 0; a < symbols; a++)
        for (int32_t b = 0; b < symbols; b++)
            if (count[a][b] > best) {
                best = count[a][b];
                *left = a;
                *right = b;
            }
    return best > 1;
}

TEST(train_bpe, learns_what_the_definition_says)
{
    static const char text[] = " banana bandana cabana ban canal nab naan abacab bananas cabanas "
                               "bandanas an ana anana anna nanna banal canals canna annal";
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k = train(t, ctx, text, 290, NULL);
    struct plain p = {.words = 0};
    size_t len = 0;
    int32_t left = 0, right = 0;

    require(t, k);
    for (const char *c = text; *c; c++) {
        if (*c == ' ' && len)
            p.word_end[p.words++] = len;
        p.symbol[len++] = (unsigned char)*c;
    }
    p.word_end[p.words++] = len;
    const int32_t learned = (int32_t)describe(t, k).vocab - 1;
    expect(t, learned > 270);
    for (int32_t symbol = 256; symbol < learned; symbol++) {
        char joined[64];
        require(t, plain_best(&p, symbol, &left, &right));
        int n = snprintf(joined, sizeof joined, "%s", spelled(k, left));
        snprintf(joined + n, sizeof joined - (size_t)n, "%s", spelled(k, right));
        expect_str(t, spelled(k, symbol), joined);
        plain_merge(&p, left, right, symbol);
    }
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
}

TEST(train_bpe, text_comes_back_and_equal_text_gives_equal_tokens)
{
    rlx_context *ctx = text_context(t, NULL);
    char *text = some_text(4000);
    rlx_tokenizer *a = train(t, ctx, text, 350, "llama-bpe"),
                  *b = train(t, ctx, text, 350, "llama-bpe");
    require(t, a && b);
    expect_eq(t, describe(t, a).vocab, 350);
    for (int32_t i = 0; i < 350; i++) {
        char one[64];
        snprintf(one, sizeof one, "%s", spelled(a, i));
        expect_str(t, spelled(b, i), one);
    }
    expect(t, comes_back(t, a, rlx_cstr(text)));
    expect(t, comes_back(t, a, (rlx_str){"\xf0\x9f\x98\x80 \x80\xc3\0 x\xe2\x82", 13}));
    rlx_tokenizer_close(a);
    rlx_tokenizer_close(b);
    free(text);
    rlx_context_destroy(ctx);
}

/* What `rlx train` does with one: into a GGUF file as metadata, and back. */
TEST(train_bpe, goes_through_a_gguf_file)
{
    rlx_context *ctx = text_context(t, NULL);
    char *text = some_text(3000), ids[2][16384];
    rlx_tokenizer *k = train(t, ctx, text, 350, NULL), *back = NULL;
    rlx_meta meta[32];
    rlx_weights_content content = {RLX_SIZED(rlx_weights_content), .kind = RLX_FILE_gguf,
                                   .meta = meta};
    rlx_weights_writer *w;
    const char *path = test_temp(t, "vocab.gguf");

    require(t, k);
    while (content.meta_count < 32 &&
           rlx_tokenizer_meta(k, content.meta_count, &meta[content.meta_count]))
        content.meta_count++;
    expect(t, content.meta_count > 5 && content.meta_count < 32);
    require_ok(t, rlx_weights_begin(ctx, path, &content, &w, NULL));
    require_ok(t, rlx_weights_finish(w, NULL));
    require_ok(t, rlx_tokenizer_open(ctx, path, &back, NULL));
    expect_eq(t, describe(t, back).vocab, 350);
    expect_eq(t, describe(t, back).special[RLX_SPECIAL_eos], 349);
    expect_str(t, ids_of(back, rlx_cstr(text), 0, ids[0], sizeof ids[0]),
               ids_of(k, rlx_cstr(text), 0, ids[1], sizeof ids[1]));
    rlx_tokenizer_close(back);
    rlx_tokenizer_close(k);
    free(text);
    rlx_context_destroy(ctx);
}

/* The context goes first: the tokenizer keeps it. */
TEST(train_bpe, a_tokenizer_keeps_its_context)
{
    struct test_alloc a = {0};
    const rlx_allocator mem = test_allocator(&a);
    rlx_context *ctx = text_context(t, &mem);
    rlx_tokenizer *k = train(t, ctx, "to be or not to be", 270, NULL);

    rlx_context_destroy(ctx);
    require(t, k);
    expect(t, comes_back(t, k, rlx_cstr("to be")));
    rlx_tokenizer_close(k);
    expect_no_leak(t, &a);
}

TEST(train_bpe, refuses_what_makes_no_sense)
{
    static const struct {
        uint32_t vocab;
        const char *pre, *special[2], *part;
        rlx_status status;
    } cases[] = {
        {256, NULL, {0}, "256 tokens are too few", RLX_ERROR_ARGUMENT},
        {0, NULL, {0}, "0 tokens are too few", RLX_ERROR_ARGUMENT},
        {1u << 30, NULL, {0}, "at most 16777216", RLX_ERROR_LIMIT},
        {300, "gpt-3", {0}, "no rule \"gpt-3\"", RLX_ERROR_ARGUMENT},
        {300, "gemma4", {0}, "no rule \"gemma4\" for bytes", RLX_ERROR_ARGUMENT},
        {300, NULL, {"<a>", ""}, "special token 1 is empty", RLX_ERROR_ARGUMENT},
        {300, NULL, {"<a>", "<a>"}, "\"<a>\" is also token 256", RLX_ERROR_ARGUMENT},
        {300, NULL, {"<a>", "z"}, "\"z\" is also token 122", RLX_ERROR_ARGUMENT},
    };
    rlx_context *ctx = text_context(t, NULL);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rlx_str special[2] = {{0}};
        rlx_bpe_desc desc = {RLX_SIZED(rlx_bpe_desc), .vocab = cases[i].vocab, .pre = cases[i].pre};
        rlx_tokenizer *k = NULL;
        rlx_error err;
        for (int n = 0; n < 2 && cases[i].special[n]; n++) {
            special[n] = rlx_cstr(cases[i].special[n]);
            desc.special = special;
            desc.special_count = (size_t)n + 1;
        }
        test_note(t, "case %zu", i);
        expect_status(t, rlx_bpe_train(ctx, rlx_cstr("a b"), &desc, &k, &err), cases[i].status);
        expect_error(t, cases[i].status, cases[i].part, &err);
        expect(t, !k);
    }
    rlx_context_destroy(ctx);
}

static rlx_status train_and_use(struct test *t, const rlx_allocator *mem, void *text)
{
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem};
    const rlx_bpe_desc bpe = {RLX_SIZED(rlx_bpe_desc), .vocab = 280};
    rlx_context *ctx;
    rlx_tokenizer *k = NULL;
    rlx_token_ids ids = {0};

    (void)t;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, NULL);
    if (s != RLX_OK)
        return s;
    s = rlx_bpe_train(ctx, rlx_cstr(text), &bpe, &k, NULL);
    if (s == RLX_OK)
        s = rlx_tokenizer_encode(k, rlx_cstr(text), RLX_ENCODE_PARSE, &ids, NULL);
    rlx_token_ids_free(k, &ids);
    rlx_tokenizer_close(k);
    rlx_context_destroy(ctx);
    return s;
}

TEST(train_bpe, survives_having_no_memory)
{
    char text[] = "so it goes, and so it went <|endoftext|> on; "
                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    expect_survives_no_memory(t, train_and_use, text);
}
