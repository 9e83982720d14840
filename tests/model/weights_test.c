/* weights_test.c: rlx/weights.h: files written and read back, in parts, from other programs, and as
 * the params of a model. */
#include "weights_world.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rlx/quant.h"

static rlx_context *new_context(struct test *t)
{
    rlx_context *ctx = NULL;

    expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    return ctx;
}

/* ---- there and back -------------------------------------------------------------------------- */

static const rlx_weight many[] = {
    T("token_embd.weight", F16, 2, 5, 8),   T("blk.0.attn_q.weight", Q4_K, 2, 3, 256),
    T("blk.0.attn_norm.weight", F32, 1, 7), T("odd", I8, 3, 3, 1, 5),
    T("opaque", IQ2_XXS, 1, 256),           T("scalar", F64, 0, 0),
};
static const float numbers[] = {1, 2.5f, -3};
static const rlx_str words[] = {STRING("a"), STRING(""), STRING("\xc3\xa9")};
static const rlx_str single = STRING("two words");
static const uint8_t truth = 1;
static const uint64_t large = UINT64_MAX;
static const rlx_meta values[] = {
    {STRING("general.name"), RLX_META_string, false, 1, &single},
    {STRING("a.numbers"), RLX_META_f32, true, 3, numbers},
    {STRING("a.words"), RLX_META_string, true, 3, words},
    {STRING("a.none"), RLX_META_u16, true, 0, NULL},
    {STRING("a.truth"), RLX_META_bool, false, 1, &truth},
    {STRING("a.large"), RLX_META_u64, false, 1, &large},
};

TEST(weights, gguf_there_and_back)
{
    static const uint32_t alignments[] = {0, 8, 4096};
    rlx_context *ctx = new_context(t);
    const char *path = test_temp(t, "a.gguf");

    for (size_t i = 0; i < COUNT_OF(alignments); i++) {
        rlx_weights_content content = {RLX_SIZED(rlx_weights_content),
                                       RLX_FILE_gguf,
                                       many,
                                       COUNT_OF(many),
                                       values,
                                       COUNT_OF(values),
                                       alignments[i]};
        rlx_weights *w = NULL;
        rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
        rlx_meta m;
        rlx_error err;
        require_ok(t, write_file(ctx, path, &content, &err));
        require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
        rlx_weights_describe(w, &info, NULL);
        expect(t, info.kind == RLX_FILE_gguf && info.version == 3 && info.files == 1);
        expect_eq_u64(t, info.alignment, alignments[i] ? alignments[i] : 32);
        expect(t, rlx_weights_meta(w, STRING("general.alignment"), &m) == (alignments[i] != 0));
        content.meta_count += alignments[i] != 0;
        expect_content(t, w, &content);
        require(t, rlx_weights_meta(w, STRING("a.numbers"), &m) && m.count == 3);
        expect_bytes(t, m.data, numbers, sizeof numbers);
        require(t, rlx_weights_meta(w, STRING("a.words"), &m) && m.count == 3);
        expect(t, ((const rlx_str *)m.data)[2].len == 2);
        require(t, rlx_weights_meta_at(w, 0, &m));
        expect(t, m.key.len == 12 && memcmp(m.key.ptr, "general.name", 12) == 0);
        rlx_weights_close(w);
    }
    rlx_context_destroy(ctx);
}

TEST(weights, values_as_they_are_wanted)
{
    rlx_context *ctx = new_context(t);
    const char *path = test_temp(t, "a.gguf");
    rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), RLX_FILE_gguf, NULL, 0, values, COUNT_OF(values), 0};
    rlx_weights *w = NULL;
    rlx_error err;
    uint32_t u = 7;
    uint64_t v = 0;
    float f = 0;
    bool b = false;
    rlx_str s;

    require_ok(t, write_file(ctx, path, &content, &err));
    require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
    expect_ok(t, rlx_weights_get_u32(w, STRING("nowhere"), &u, &err));
    expect_eq(t, u, 7); /* a default that stays */
    rlx_weights_get_u32(w, STRING("a.large"), &u, &err);
    expect_error(t, RLX_ERROR_DTYPE, "which is not from 0 to 4294967295", &err);
    rlx_weights_get_u32(w, STRING("general.name"), &u, &err);
    expect_error(t, RLX_ERROR_DTYPE, "\"general.name\" is string, not an integer", &err);
    rlx_weights_get_f32(w, STRING("a.numbers"), &f, &err);
    expect_error(t, RLX_ERROR_DTYPE, "is an array of f32, not a number", &err);
    expect_eq(t, u, 7);
    expect_ok(t, rlx_weights_get_u64(w, STRING("a.large"), &v, &err));
    expect_eq_u64(t, v, UINT64_MAX);
    expect_ok(t, rlx_weights_get_bool(w, STRING("a.truth"), &b, &err));
    expect(t, b);
    expect_ok(t, rlx_weights_get_str(w, STRING("general.name"), &s, &err));
    expect_eq(t, s.len, 9);
    expect_status(t, rlx_weights_get_u32(NULL, STRING("x"), &u, NULL), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_weights_get_u32(w, STRING("x"), NULL, NULL), RLX_ERROR_ARGUMENT);
    rlx_weights_close(w);
    rlx_weights_close(NULL);
    rlx_context_destroy(ctx);
}

TEST(weights, safetensors_there_and_back)
{
    static const rlx_weight tensors[] = {
        T("narrow", BOOL, 1, 3),    T("b", F32, 2, 2, 2),     T("a", F32, 1, 3),
        T("wide", C64, 1, 2),       T("empty", F64, 2, 0, 9), T("half", BF16, 0, 0),
        T("bits", F4, 2, 3, 2),     T("six", F6_E2M3, 1, 4),  T("deep", U16, 5, 1, 2, 1, 2, 1),
        T("quote\"\n\\", U8, 1, 1),
    };
    static const rlx_str value = STRING("\"quoted\"\t\xc3\xa9");
    const rlx_meta meta[] = {{STRING("format"), RLX_META_string, false, 1, &single},
                             {STRING("x\"y"), RLX_META_string, false, 1, &value}};
    rlx_context *ctx = new_context(t);
    const char *path = test_temp(t, "a.safetensors"), *order[COUNT_OF(tensors)];
    rlx_weights_content content = {RLX_SIZED(rlx_weights_content),
                                   RLX_FILE_safetensors,
                                   tensors,
                                   COUNT_OF(tensors),
                                   meta,
                                   2,
                                   0};
    rlx_weights *w = NULL;
    rlx_weight got;
    rlx_error err;
    rlx_str s;
    size_t len;

    require_ok(t, write_file(ctx, path, &content, &err));
    require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
    expect_content(t, w, &content);
    expect_ok(t, rlx_weights_get_str(w, STRING("x\"y"), &s, &err));
    expect(t, s.len == value.len && memcmp(s.ptr, value.ptr, s.len) == 0);
    /* The widest elements come first, then by name; the data begins at a multiple of 8. */
    static const char *const want[] = {"empty", "wide", "a", "b", "deep", "half"};
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        require(t, rlx_weights_at(w, i, &got));
        order[i] = got.name.ptr;
        test_note(t, "%zu: %.*s", i, (int)got.name.len, order[i]);
        expect(t, got.name.len == strlen(want[i]) && memcmp(order[i], want[i], got.name.len) == 0);
    }
    const char *bytes = test_read(t, path, &len);
    require(t, bytes != NULL);
    expect_eq(t, (uint8_t)bytes[0] % 8, 0);
    rlx_weights_close(w);
    rlx_context_destroy(ctx);
}

TEST(weights, npz_and_npy_there_and_back)
{
    static const rlx_weight tensors[] = {T("x", F32, 2, 2, 3), T("sub/y", I64, 0, 0),
                                         T("none", F16, 2, 0, 2), T("c", C64, 1, 2)};
    rlx_context *ctx = new_context(t);
    const char *folder = test_temp(t, "d"), *npz = test_temp(t, "a.npz");
    const char *npy = test_temp(t, "d/x.npy");
    rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), RLX_FILE_npz, tensors, COUNT_OF(tensors), NULL, 0, 0};
    rlx_weights *w = NULL;
    rlx_error err;

    require(t, mkdir(folder, 0700) == 0);
    require_ok(t, write_file(ctx, npz, &content, &err));
    require_ok(t, rlx_weights_open(ctx, npz, NULL, &w, &err));
    expect_content(t, w, &content);
    rlx_weights_close(w);
    content =
        (rlx_weights_content){RLX_SIZED(rlx_weights_content), RLX_FILE_npy, tensors, 1, NULL, 0, 0};
    require_ok(t, write_file(ctx, npy, &content, &err));
    require_ok(t, rlx_weights_open(ctx, npy,
                                   &(rlx_load_desc){RLX_SIZED(rlx_load_desc), .read_files = true},
                                   &w, &err));
    expect_content(t, w, &content); /* it is called as the file is */
    rlx_weights_close(w);
    rlx_context_destroy(ctx);
}

/* ---- what is not written --------------------------------------------------------------------- */

static void refuse(struct test *t, int line, rlx_file_kind kind, const rlx_weight *tensor,
                   const rlx_meta *meta, rlx_status status, const char *why)
{
    rlx_context *ctx = new_context(t);
    const char *path = test_temp(t, "refused");
    rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), kind, tensor, tensor ? 1 : 0, meta, meta ? 1 : 0, 0};
    rlx_weights_writer *w = NULL;
    rlx_error err = {.status = RLX_OK};

    test_note(t, "line %d", line);
    expect_status(t, rlx_weights_begin(ctx, path, &content, &w, &err), status);
    expect_error(t, status, why, &err);
    expect(t, w == NULL && access(path, F_OK) != 0);
    rlx_weights_abandon(w);
    test_note(t, "%s", "");
    rlx_context_destroy(ctx);
}
#define refuse_tensor(kind, status, why, ...) \
    refuse(t, __LINE__, RLX_FILE_##kind, &(rlx_weight)T(__VA_ARGS__), NULL, RLX_ERROR_##status, why)

TEST(weights, writers_refuse_what_formats_lack)
{
    refuse_tensor(gguf, DTYPE, "GGUF has no such type", "t", BOOL, 1, 4);
    refuse_tensor(gguf, SHAPE, "4 dims at most", "t", F32, 5, 1, 1, 1, 1, 1);
    refuse_tensor(gguf, SHAPE, "no dims of 0", "t", F32, 1, 0);
    refuse_tensor(gguf, SHAPE, "rows are not a whole", "t", Q4_0, 2, 32, 16);
    refuse_tensor(gguf, NAME, "no proper name", "", F32, 1, 1);
    refuse_tensor(gguf, NAME, "no proper name", "a\0b", F32, 1, 1);
    refuse_tensor(gguf, NAME, "no proper name", "\xff", F32, 1, 1);
    refuse_tensor(safetensors, DTYPE, "safetensors has no such type", "t", Q8_0, 1, 32);
    refuse_tensor(safetensors, NAME, "the format's own", "__metadata__", F32, 1, 1);
    refuse_tensor(safetensors, SHAPE, "whole number of blocks", "t", F4, 1, 3);
    refuse_tensor(npz, DTYPE, "NumPy has no such type", "t", BF16, 1, 1);
    refuse_tensor(npz, NAME, "without \"..\"", "../t", F32, 1, 1);
    refuse_tensor(npz, SHAPE, "more than 8 dims", "t", F32, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    refuse_tensor(text, ARGUMENT, "not written as text", "t", F32, 1, 1);
    refuse_tensor(gguf, SHAPE, "make no sense", "t", F32, 2, INT64_MAX, INT64_MAX);
    refuse_tensor(gguf, SHAPE, "make no sense", "t", F32, 1, -1);
    refuse_tensor(gguf, SHAPE, "make no sense", "t", F32, 17, 1);
}

TEST(weights, writers_refuse_values)
{
    static const rlx_str broken = STRING("\xff");
    const rlx_meta number = {STRING("n"), RLX_META_u64, false, 1, &large};
    const rlx_meta none = {STRING("n"), RLX_META_u64, false, 1, NULL};
    const rlx_meta unknown = {STRING("n"), (rlx_meta_type)99, false, 1, &large};
    const rlx_meta bad = {STRING("n"), RLX_META_string, false, 1, &broken};

    refuse(t, __LINE__, RLX_FILE_safetensors, NULL, &number, RLX_ERROR_DTYPE, "single strings");
    refuse(t, __LINE__, RLX_FILE_npz, NULL, &number, RLX_ERROR_ARGUMENT, "no metadata");
    refuse(t, __LINE__, RLX_FILE_npy, NULL, NULL, RLX_ERROR_ARGUMENT, "holds one array, not 0");
    refuse(t, __LINE__, RLX_FILE_gguf, NULL, &none, RLX_ERROR_ARGUMENT, "has no value");
    refuse(t, __LINE__, RLX_FILE_gguf, NULL, &unknown, RLX_ERROR_ARGUMENT, "has no value");
    refuse(t, __LINE__, RLX_FILE_gguf, NULL, &bad, RLX_ERROR_ARGUMENT, "not UTF-8");
}

TEST(weights, a_file_is_there_when_it_is_whole)
{
    static const rlx_weight tensors[] = {T("a", F32, 1, 2), T("b", Q8_0, 1, 32)};
    static const rlx_weight twice[] = {T("a", F32, 1, 2), T("a", F32, 1, 2)};
    rlx_context *ctx = new_context(t);
    const char *path = test_temp(t, "a.gguf");
    rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), RLX_FILE_gguf, tensors, 2, NULL, 0, 0};
    const float x[64] = {1, 2, [40] = NAN};
    rlx_weights_writer *w = NULL;
    rlx_error err;
    uint64_t left;
    size_t i;

    require_ok(t, rlx_weights_begin(ctx, path, &content, &w, &err));
    require_ok(t, rlx_weights_write(w, x, 8, &err));
    expect_status(t, rlx_weights_finish(w, &err), RLX_ERROR_SIZE);
    expect_error(t, RLX_ERROR_SIZE, "\"b\": 34 of its bytes are missing", &err);
    expect(t, access(path, F_OK) != 0);
    require_ok(t, rlx_weights_begin(ctx, path, &content, &w, &err));
    expect_status(t, rlx_weights_write(w, x, 9, &err), RLX_ERROR_SIZE);
    require_ok(t, rlx_weights_write_f32(w, x, 2, &err));
    require(t, rlx_weights_next(w, &i, &left) && i == 1 && left == 34);
    expect_status(t, rlx_weights_write_f32(w, x, 31, &err), RLX_ERROR_SIZE);
    expect_status(t, rlx_weights_write_f32(w, x, 64, &err), RLX_ERROR_SIZE);
    expect_status(t, rlx_weights_write_f32(w, x + 32, 32, &err), RLX_ERROR_NUMERIC);
    expect_error(t, RLX_ERROR_NUMERIC, "\"b\": element 8 is NaN", &err);
    require_ok(t, rlx_weights_write_f32(w, x, 32, &err));
    expect(t, !rlx_weights_next(w, &i, &left));
    expect_status(t, rlx_weights_write(w, x, 1, &err), RLX_ERROR_SIZE);
    require_ok(t, rlx_weights_finish(w, &err));
    expect(t, access(path, F_OK) == 0);
    content.tensor = twice;
    expect_status(t, rlx_weights_begin(ctx, path, &content, &w, &err), RLX_ERROR_NAME);
    expect_status(t, rlx_weights_finish(NULL, &err), RLX_ERROR_ARGUMENT);
    rlx_context_destroy(ctx);
}

struct saving {
    rlx_weights_content content;
    const char *path;
};

static rlx_status save_and_open(struct test *t, const rlx_allocator *mem, void *user)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};
    struct saving *s = user;
    rlx_context *ctx;
    rlx_weights *w = NULL;
    rlx_error err;
    (void)t;

    rlx_status status = rlx_context_create(RLX_VERSION, &desc, &ctx, &err);
    if (status != RLX_OK)
        return status;
    status = write_file(ctx, s->path, &s->content, &err);
    if (status == RLX_OK)
        status = rlx_weights_open(ctx, s->path, NULL, &w, &err);
    rlx_weights_close(w);
    rlx_context_destroy(ctx);
    return status;
}

TEST(weights, survive_no_memory)
{
    static const rlx_weight tensors[] = {T("a", F32, 1, 2), T("b", F32, 2, 3, 1)};
    struct saving s = {.path = test_temp(t, "file")};

    s.content = (rlx_weights_content){
        RLX_SIZED(rlx_weights_content), RLX_FILE_gguf, tensors, 2, values, COUNT_OF(values), 0};
    expect_survives_no_memory(t, save_and_open, &s);
    s.content = (rlx_weights_content){
        RLX_SIZED(rlx_weights_content), RLX_FILE_safetensors, tensors, 2, values, 1, 0};
    expect_survives_no_memory(t, save_and_open, &s);
    s.content =
        (rlx_weights_content){RLX_SIZED(rlx_weights_content), RLX_FILE_npz, tensors, 2, NULL, 0, 0};
    expect_survives_no_memory(t, save_and_open, &s);
}

/* ---- numbers --------------------------------------------------------------------------------- */

TEST(weights, numbers_of_every_type)
{
    static const rlx_weight tensors[] = {
        T("f16", F16, 1, 64), T("bf16", BF16, 1, 64),  T("f64", F64, 1, 64),
        T("i32", I32, 1, 64), T("q8", Q8_0, 2, 2, 32), T("q6", Q6_K, 1, 256),
    };
    rlx_context *ctx = new_context(t);
    const char *path = test_temp(t, "a.gguf");
    rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), RLX_FILE_gguf, tensors, COUNT_OF(tensors), NULL, 0, 0};
    rlx_weights_writer *writer = NULL;
    rlx_weights *w = NULL;
    float x[256], y[256];
    rlx_error err;
    uint64_t left;
    size_t i;

    for (int k = 0; k < 256; k++)
        x[k] = (float)(k % 61 - 30);
    require_ok(t, rlx_weights_begin(ctx, path, &content, &writer, &err));
    while (rlx_weights_next(writer, &i, &left))
        require_ok(t, rlx_weights_write_f32(writer, x, i == 5 ? 256 : 64, &err));
    require_ok(t, rlx_weights_finish(writer, &err));
    require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
    for (i = 0; i < COUNT_OF(tensors); i++) {
        size_t n = i == 5 ? 256 : 64;
        test_note(t, "tensor %zu", i);
        require_ok(t, rlx_weights_read_f32(w, i, 0, n, y, &err));
        expect_close(t, y, x, n, 0, i < 4 ? 0 : i == 4 ? 0.13 : 1.0);
    }
    require_ok(t, rlx_weights_read_f32(w, 0, 3, 5, y, &err));
    expect_close(t, y, x + 3, 5, 0, 0);
    require_ok(t, rlx_weights_read_f32(w, 4, 32, 32, y, &err));
    expect_close(t, y, x + 32, 32, 0, 0.13);
    expect_status(t, rlx_weights_read_f32(w, 4, 1, 32, y, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_weights_read_f32(w, 4, 64, 32, y, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_weights_read_f32(w, 0, UINT64_MAX, 2, y, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_weights_read_f32(w, 99, 0, 0, y, &err), RLX_ERROR_ARGUMENT);
    rlx_weights_close(w);
    rlx_context_destroy(ctx);
}

TEST(weights, numbers_that_cannot_be_packed_are_named)
{
    enum { N = 300000 }; /* more than is packed at a time */
    static const rlx_weight tensors[] = {T("t", Q4_0, 1, N)};
    static float x[N];
    rlx_context *ctx = new_context(t);
    rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), RLX_FILE_gguf, tensors, 1, NULL, 0, 0};
    rlx_weights_writer *w = NULL;
    rlx_error err;

    require_ok(t, rlx_weights_begin(ctx, test_temp(t, "a.gguf"), &content, &w, &err));
    x[N - 3] = -INFINITY;
    rlx_weights_write_f32(w, x, N, &err);
    expect_error(t, RLX_ERROR_NUMERIC, "\"t\": element 299997 is -Inf", &err);
    rlx_weights_abandon(w);
    require_ok(t, rlx_weights_begin(ctx, test_temp(t, "a.gguf"), &content, &w, &err));
    require_ok(t, rlx_weights_write_f32(w, x, 64, &err));
    x[40] = 1e30f;
    rlx_weights_write_f32(w, x, 64, &err);
    expect_error(t, RLX_ERROR_LIMIT, "elements from 96 on are too large for Q4_0", &err);
    rlx_weights_abandon(w);
    rlx_context_destroy(ctx);
}

/* ---- files from elsewhere, and large ones -------------------------------------------------------
 */

TEST(weights, vocabularies_of_other_programs)
{
    static const struct {
        const char *file, *model;
        size_t tokens;
    } rows[] = {{"tokenizers/gpt-2.gguf", "gpt2", 50257},
                {"tokenizers/bert-bge.gguf", "bert", 30522},
                {"tokenizers/llama-spm.gguf", "llama", 32000},
                {"tokenizers/deepseek-llm.gguf", "gpt2", 102400},
                {"tokenizers/phi-3.gguf", "llama", 32064}};

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *path = test_data(t, rows[i].file);
        rlx_weights *w = NULL;
        rlx_meta tokens;
        rlx_error err;
        rlx_str model = {NULL, 0};
        if (!path)
            return;
        rlx_context *ctx = new_context(t);
        test_note(t, "%s", path);
        require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
        expect_ok(t, rlx_weights_get_str(w, STRING("tokenizer.ggml.model"), &model, &err));
        expect(t, model.len == strlen(rows[i].model) &&
                      memcmp(model.ptr, rows[i].model, model.len) == 0);
        require(t, rlx_weights_meta(w, STRING("tokenizer.ggml.tokens"), &tokens));
        expect_eq(t, tokens.count, rows[i].tokens);
        rlx_weights_close(w);
        rlx_context_destroy(ctx);
    }
}

static double now(void)
{
    struct timespec s;

    clock_gettime(CLOCK_MONOTONIC, &s);
    return (double)s.tv_sec + (double)s.tv_nsec * 1e-9;
}

/* Files of a gigabyte, of which only the header is written: the rest is a hole. */
enum { LARGE_COUNT = 300, LARGE_ROWS = 900, LARGE_COLS = 1024 };
#define LARGE_BYTES ((uint64_t)LARGE_ROWS * LARGE_COLS * 4)

static void write_u64(FILE *f, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++)
        fputc((int)(v >> (8 * i) & 255), f);
}

static void large_gguf(FILE *f)
{
    fputs("GGUF", f);
    write_u64(f, 3, 4);
    write_u64(f, LARGE_COUNT, 8);
    write_u64(f, 0, 8);
    for (uint64_t i = 0; i < LARGE_COUNT; i++) {
        write_u64(f, 12, 8);
        fprintf(f, "tensor.%05u", (unsigned)i);
        write_u64(f, 2, 4);
        write_u64(f, LARGE_COLS, 8);
        write_u64(f, LARGE_ROWS, 8);
        write_u64(f, 0, 4);
        write_u64(f, i * LARGE_BYTES, 8);
    }
    while (ftell(f) % 32)
        fputc(0, f);
}

static void large_safetensors(FILE *f)
{
    write_u64(f, 0, 8);
    fputs("{", f);
    for (uint64_t i = 0; i < LARGE_COUNT; i++)
        fprintf(f,
                "%s\"tensor.%05u\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                "\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                i ? "," : "", (unsigned)i, LARGE_ROWS, LARGE_COLS, i * LARGE_BYTES,
                (i + 1) * LARGE_BYTES);
    fputs("}", f);
    while (ftell(f) % 8)
        fputc(' ', f);
    uint64_t header = (uint64_t)ftell(f) - 8;
    fseek(f, 0, SEEK_SET);
    write_u64(f, header, 8);
    fseek(f, 0, SEEK_END);
}

TEST(weights, a_gigabyte_is_open_at_once)
{
    static void (*const make[])(FILE *) = {large_gguf, large_safetensors};

    for (size_t i = 0; i < COUNT_OF(make); i++) {
        const char *path = test_temp(t, i ? "large.safetensors" : "large.gguf");
        FILE *f = fopen(path, "wb");
        struct test_alloc counted = {0};
        rlx_allocator mem = test_allocator(&counted);
        rlx_context *ctx = NULL;
        rlx_weights *w = NULL;
        rlx_error err;
        const void *data;
        size_t last;
        require(t, f != NULL);
        make[i](f);
        fflush(f);
        bool sized =
            ftruncate(fileno(f), (off_t)ftell(f) + (off_t)(LARGE_COUNT * LARGE_BYTES)) == 0;
        fclose(f);
        require(t, sized);
        require_ok(t, rlx_context_create(
                          RLX_VERSION,
                          &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = &mem}, &ctx,
                          &err));
        double begin = now();
        require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
        double seconds = now() - begin;
        expect(t, seconds < 0.3);
        expect(t, counted.peak_bytes < 50 << 20);
        require(t, rlx_weights_find(w, STRING("tensor.00299"), &last));
        require_ok(t, rlx_weights_data(w, last, &data, &err));
        expect_eq(t, ((const uint8_t *)data)[LARGE_BYTES - 1], 0);
        rlx_weights_close(w);
        rlx_context_destroy(ctx);
        expect_no_leak(t, &counted);
    }
}

/* ---- files in parts -------------------------------------------------------------------------- */

/* Part `no` of three, with one tensor. */
static bool write_part(struct test *t, rlx_context *ctx, unsigned no, unsigned said_no,
                       unsigned said_count, const char *tensor, uint16_t total)
{
    char name[64];
    uint16_t number = (uint16_t)said_no;
    uint32_t count = said_count;
    rlx_weight one = T("", F32, 1, 4);
    const rlx_meta meta[] = {{STRING("split.no"), RLX_META_u16, false, 1, &number},
                             {STRING("split.count"), RLX_META_u32, false, 1, &count},
                             {STRING("split.tensors.count"), RLX_META_u16, false, 1, &total}};
    const rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), RLX_FILE_gguf, &one, 1, meta, 3, 0};
    rlx_error err;

    one.name = rlx_cstr(tensor);
    snprintf(name, sizeof name, "m-%05u-of-00003.gguf", no + 1);
    return expect_ok(t, write_file(ctx, test_temp(t, name), &content, &err));
}

static void expect_parts(struct test *t, rlx_context *ctx, rlx_status status, const char *why)
{
    rlx_weights *w = NULL;
    rlx_error err = {.status = RLX_OK};

    rlx_weights_open(ctx, test_temp(t, "m-00001-of-00003.gguf"), NULL, &w, &err);
    expect_error(t, status, why, &err);
    rlx_weights_close(w);
}

TEST(weights, split_files_are_one)
{
    rlx_context *ctx = new_context(t);
    rlx_weights *w = NULL;
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_error err;
    size_t i;

    for (unsigned no = 0; no < 3; no++)
        require(t, write_part(t, ctx, no, no, 3, (const char *[]){"a", "b", "c"}[no], 3));
    require_ok(t, rlx_weights_open(ctx, test_temp(t, "m-00001-of-00003.gguf"), NULL, &w, &err));
    rlx_weights_describe(w, &info, NULL);
    expect(t, info.files == 3 && info.tensor_count == 3 && info.meta_count == 3);
    expect(t, rlx_weights_find(w, STRING("c"), &i));
    rlx_weights_close(w);
    rlx_weights_open(ctx, test_temp(t, "m-00002-of-00003.gguf"), NULL, &w, &err);
    expect_error(t, RLX_ERROR_FORMAT, "this is part 2 of 3; open the first one", &err);

    require(t, write_part(t, ctx, 1, 1, 3, "a", 3));
    expect_parts(t, ctx, RLX_ERROR_FORMAT, "two tensors \"a\"");
    require(t, write_part(t, ctx, 1, 2, 3, "b", 3));
    expect_parts(t, ctx, RLX_ERROR_FORMAT, "does not say that it is part 2 of 3");
    require(t, write_part(t, ctx, 1, 1, 4, "b", 3));
    expect_parts(t, ctx, RLX_ERROR_FORMAT, "does not say that it is part 2 of 3");
    require(t, write_part(t, ctx, 1, 1, 3, "b", 3) && write_part(t, ctx, 0, 0, 3, "a", 4));
    expect_parts(t, ctx, RLX_ERROR_FORMAT, "the parts hold 3 tensors, not 4");
    require(t, write_part(t, ctx, 0, 0, 99999, "a", 3));
    expect_parts(t, ctx, RLX_ERROR_FORMAT, "must be called ...-00001-of-99999.gguf");
    require(t, write_part(t, ctx, 0, 0, 100000, "a", 3));
    expect_parts(t, ctx, RLX_ERROR_DTYPE, "not from 0 to 99999");
    require(t, write_part(t, ctx, 0, 0, 3, "a", 3));
    require(t, unlink(test_temp(t, "m-00003-of-00003.gguf")) == 0);
    expect_parts(t, ctx, RLX_ERROR_IO, "No such file");
    require(t, symlink("m-00002-of-00003.gguf", test_temp(t, "m-00003-of-00003.gguf")) == 0);
    expect_parts(t, ctx, RLX_ERROR_IO, "symbolic link");
    rlx_context_destroy(ctx);
}

static rlx_status open_only(struct test *t, const rlx_allocator *mem, void *user)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};
    rlx_context *ctx;
    rlx_weights *w = NULL;
    rlx_error err;
    (void)t;

    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, &err);
    if (s != RLX_OK)
        return s;
    s = rlx_weights_open(ctx, user, NULL, &w, &err);
    rlx_weights_close(w);
    rlx_context_destroy(ctx);
    return s;
}

TEST(weights, parts_survive_no_memory)
{
    rlx_context *ctx = new_context(t);
    char first[4096];

    for (unsigned no = 0; no < 3; no++)
        require(t, write_part(t, ctx, no, no, 3, (const char *[]){"a", "b", "c"}[no], 3));
    snprintf(first, sizeof first, "%s", test_temp(t, "m-00001-of-00003.gguf"));
    expect_survives_no_memory(t, open_only, first);
    rlx_context_destroy(ctx);
}

static bool write_shard(struct test *t, rlx_context *ctx, const char *file, const char *tensor)
{
    rlx_weight one = T("", F32, 1, 4);
    const rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content), RLX_FILE_safetensors, &one, 1, NULL, 0, 0};
    rlx_error err;

    one.name = rlx_cstr(tensor);
    return expect_ok(t, write_file(ctx, test_temp(t, file), &content, &err));
}

TEST(weights, an_index_names_its_files)
{
    static const char good[] = "{\"metadata\": {\"total_size\": 32, \"x\": [[1.5e3, null]]},\n"
                               " \"weight_map\": {\"a\": \"s1\", \"b\": \"s2\"}}\n";
    static const struct {
        const char *text, *why;
        rlx_status status;
    } rows[] = {
        {"{\"weight_map\": {\"a\": \"s2\"}}", "\"a\" in s2, which does not have it",
         RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": \"../s1\"}}", "not a plain one", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "not a plain one", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": \"x\\\\y\"}}", "not a plain one", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": \"\"}}", "not a plain one", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": \"..\"}}", "not a plain one", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": \"s1\", \"a\": \"s1\"}}", "two tensors", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {}, \"weight_map\": {}}", "given twice", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": 1}}", "a string was expected", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {}} x", "text after the end", RLX_ERROR_FORMAT},
        {"{}", "no weight_map", RLX_ERROR_FORMAT},
        {"{\"weight_map\": {\"a\": \"none\"}}", "No such file", RLX_ERROR_IO},
        {"{\"weight_map\": {\"a\": \"link\"}}", "symbolic link", RLX_ERROR_IO},
        {"{\"weight_map\": {\"a\": \"index.json\"}}", "a file of tensors (", RLX_ERROR_FORMAT},
    };
    rlx_context *ctx = new_context(t);
    const char *folder = test_temp(t, "d"), *path = test_temp(t, "d/index.json");
    rlx_weights *w = NULL;
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_error err;

    require(t, mkdir(folder, 0700) == 0);
    require(t, write_shard(t, ctx, "d/s1", "a") && write_shard(t, ctx, "d/s2", "b"));
    require(t, symlink("s1", test_temp(t, "d/link")) == 0);
    require(t, test_write(t, path, good, sizeof good - 1));
    require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
    rlx_weights_describe(w, &info, NULL);
    expect(t, info.kind == RLX_FILE_safetensors_index && info.files == 3 && info.tensor_count == 2);
    rlx_weights_close(w);
    expect_survives_no_memory(t, open_only, (void *)path);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_note(t, "%s", rows[i].text);
        require(t, test_write(t, path, rows[i].text, strlen(rows[i].text)));
        rlx_weights_open(ctx, path, NULL, &w, &err);
        expect_error(t, rows[i].status, rows[i].why, &err);
    }
    const char *through = "{\"weight_map\": {\"a\": \"link\"}}";
    require(t, test_write(t, path, through, strlen(through)));
    const rlx_load_desc follow = {RLX_SIZED(rlx_load_desc), .follow_external = true};
    require_ok(t, rlx_weights_open(ctx, path, &follow, &w, &err));
    rlx_weights_close(w);
    rlx_context_destroy(ctx);
}

TEST(weights, other_files_are_refused)
{
    rlx_context *ctx = new_context(t);
    rlx_weights *w = NULL;
    rlx_model *m = NULL;
    rlx_file_kind kind;
    rlx_error err;
    const char *path = test_temp(t, "x.gguf");

    require(t, test_write(t, path, "rlx 1\n", 6));
    rlx_weights_open(ctx, path, NULL, &w, &err);
    expect_error(t, RLX_ERROR_FORMAT, "but this is a graph in the text form", &err);
    require(t, test_write(t, path, "GGUF\3\0\0\0", 8));
    rlx_model_load(ctx, path, NULL, &m, &err);
    expect_error(t, RLX_ERROR_FORMAT, "a model (", &err);
    require_ok(t, rlx_file_detect(ctx, path, &kind, &err));
    expect_eq(t, kind, RLX_FILE_gguf);
    expect_status(t, rlx_file_detect(ctx, test_temp(t, "none"), &kind, &err), RLX_ERROR_IO);
    expect_status(t, rlx_weights_parse(ctx, "GGUF", 4, &w, &err), RLX_ERROR_FORMAT);
    expect_status(t, rlx_weights_parse(ctx, NULL, 4, &w, &err), RLX_ERROR_ARGUMENT);
    expect(t, !w && !m);
    rlx_context_destroy(ctx);
}
