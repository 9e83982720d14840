/* vocab_files_test.c: published vocabularies, each with texts and the ids that another program
 * gives them. Those beside the project are read from $RLX_TEST_DATA/tokenizers; more of them lie
 * under build/vocabularies after tools/get-vocabularies. */
#include <unistd.h>

#include "text_world.h"

static const char separator[] = "\n__ggml_vocab_test__\n";

/* The ids of a line as this program writes them. */
static void tidy(const char *line, size_t len, char *out, size_t room)
{
    size_t to = 0;

    for (size_t i = 0; i < len && to + 2 < room; i++)
        if (line[i] != ' ' || (to && out[to - 1] != ' '))
            out[to++] = line[i];
    while (to && out[to - 1] == ' ')
        to--;
    out[to] = 0;
}

static void compare(struct test *t, const rlx_tokenizer *k, const char *texts, const char *ids)
{
    static char got[65536], want[65536];

    for (int number = 0; *texts; number++) {
        const char *end = strstr(texts, separator);
        size_t len = end ? (size_t)(end - texts) : strlen(texts), line = strcspn(ids, "\n");
        test_note(t, "text %d, \"%.40s\"", number, texts);
        tidy(ids, line, want, sizeof want);
        expect_str(t, ids_of(k, (rlx_str){texts, len}, 0, got, sizeof got), want);
        ids += line + (ids[line] == '\n');
        texts += len + (end ? strlen(separator) : 0);
    }
}

static void check(struct test *t, const char *vocab)
{
    rlx_context *ctx = text_context(t, NULL);
    rlx_tokenizer *k;
    char path[2][4096];
    rlx_error err;

    snprintf(path[0], sizeof path[0], "%s.inp", vocab);
    snprintf(path[1], sizeof path[1], "%s.out", vocab);
    const char *texts = test_read(t, path[0], NULL), *ids = test_read(t, path[1], NULL);
    if (rlx_tokenizer_open(ctx, vocab, &k, &err) != RLX_OK)
        fail(t, "%s: %s", vocab, err.message);
    else {
        if (texts && ids)
            compare(t, k, texts, ids);
        rlx_tokenizer_close(k);
    }
    rlx_context_destroy(ctx);
}

#define BESIDE(name_, file)                                   \
    TEST(vocab_files, name_)                                  \
    {                                                         \
        const char *vocab = test_data(t, "tokenizers/" file); \
        if (vocab)                                            \
            check(t, vocab);                                  \
    }
BESIDE(bert, "bert-bge.gguf")
BESIDE(deepseek_llm, "deepseek-llm.gguf")
BESIDE(gpt2, "gpt-2.gguf")
BESIDE(llama, "llama-spm.gguf")
BESIDE(phi_3, "phi-3.gguf")

#define FETCHED(name_, file)                                                       \
    TEST_SLOW(vocab_files, name_)                                                  \
    {                                                                              \
        const char *vocab = test_source(t, "build/vocabularies/ggml-vocab-" file); \
        if (access(vocab, R_OK) != 0)                                              \
            skip(t, "there is no %s: tools/get-vocabularies fetches it", vocab);   \
        check(t, vocab);                                                           \
    }
FETCHED(command_r, "command-r.gguf")
FETCHED(deepseek_coder, "deepseek-coder.gguf")
FETCHED(falcon, "falcon.gguf")
FETCHED(gemma_4, "gemma-4.gguf")
FETCHED(llama_bpe, "llama-bpe.gguf")
FETCHED(mpt, "mpt.gguf")
FETCHED(qwen2, "qwen2.gguf")
FETCHED(qwen35, "qwen35.gguf")
FETCHED(refact, "refact.gguf")
FETCHED(starcoder, "starcoder.gguf")
