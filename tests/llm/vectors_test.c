/* vectors_test.c: vectors of texts: a BERT against the same model written out in double precision,
 * and the ways to make one vector of many. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rlx/llm.h"
#include "test.h"
#include "tiny_model.h"

enum {
    VOCAB = 13,
    CONTEXT = 9,
    TYPES = 2,
    WIDTH = 12,
    HEADS = 3,
    DIM = WIDTH / HEADS,
    FFN = 20,
    LAYERS = 2,
    LENGTH = 7,
    MOST_TENSORS = 5 + 16 * LAYERS,
    MOST_NUMBERS = FFN * WIDTH
};

static const int32_t ids[LENGTH] = {2, 7, 0, 12, 7, 5, 3};

/* Element i of a tensor, from its name. */
static float element(const char *name, size_t i)
{
    double phase = 0;

    for (const char *p = name; *p; p++)
        phase = 1.7 * phase + *p;
    return (float)(0.5 * sin(phase + 0.83 * (double)i) + (strstr(name, "norm.weight") ? 1 : 0));
}

/* ---- in double ---------------------------------------------------------------------------- */

static const char *named(int layer, const char *part)
{
    static char name[2][64];
    static int turn;

    turn = !turn;
    snprintf(name[turn], sizeof name[turn], "blk.%d.%s", layer, part);
    return name[turn];
}

static void linear(int layer, const char *part, const double *x, int out, int in, double *y)
{
    char weight[64], bias[64];

    snprintf(weight, sizeof weight, "%s.weight", named(layer, part));
    snprintf(bias, sizeof bias, "%s.bias", named(layer, part));
    for (int o = 0; o < out; o++) {
        y[o] = (double)element(bias, (size_t)o);
        for (int i = 0; i < in; i++)
            y[o] += (double)element(weight, (size_t)(o * in + i)) * x[i];
    }
}

static void normed(const char *name, double *x)
{
    char weight[64], bias[64];
    double mean = 0, square = 0;

    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    for (int i = 0; i < WIDTH; i++)
        mean += x[i] / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        square += (x[i] - mean) * (x[i] - mean) / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        x[i] = (x[i] - mean) / sqrt(square + 1e-5) * (double)element(weight, (size_t)i) +
               (double)element(bias, (size_t)i);
}

static void attend(int layer, double x[LENGTH][WIDTH])
{
    double q[LENGTH][WIDTH], k[LENGTH][WIDTH], v[LENGTH][WIDTH], y[WIDTH], z[WIDTH], w[LENGTH];

    for (int p = 0; p < LENGTH; p++) {
        linear(layer, "attn_q", x[p], WIDTH, WIDTH, q[p]);
        linear(layer, "attn_k", x[p], WIDTH, WIDTH, k[p]);
        linear(layer, "attn_v", x[p], WIDTH, WIDTH, v[p]);
    }
    for (int p = 0; p < LENGTH; p++) {
        memset(y, 0, sizeof y);
        for (int a = 0; a < WIDTH; a += DIM) {
            double sum = 0;
            for (int j = 0; j < LENGTH; j++) {
                double score = 0;
                for (int i = a; i < a + DIM; i++)
                    score += q[p][i] * k[j][i] / sqrt(DIM);
                sum += w[j] = exp(score);
            }
            for (int j = 0; j < LENGTH; j++)
                for (int i = a; i < a + DIM; i++)
                    y[i] += w[j] / sum * v[j][i];
        }
        linear(layer, "attn_output", y, WIDTH, WIDTH, z);
        for (int i = 0; i < WIDTH; i++)
            x[p][i] += z[i];
        normed(named(layer, "attn_output_norm"), x[p]);
    }
}

static void feed_forward(int layer, double *x)
{
    double up[FFN], z[WIDTH];

    linear(layer, "ffn_up", x, FFN, WIDTH, up);
    for (int i = 0; i < FFN; i++)
        up[i] = 0.5 * up[i] * (1 + erf(up[i] / sqrt(2)));
    linear(layer, "ffn_down", up, WIDTH, FFN, z);
    for (int i = 0; i < WIDTH; i++)
        x[i] += z[i];
    normed(named(layer, "layer_output_norm"), x);
}

static void forward(double x[LENGTH][WIDTH])
{
    for (int p = 0; p < LENGTH; p++) {
        for (int i = 0; i < WIDTH; i++)
            x[p][i] = (double)element("token_embd.weight", (size_t)(ids[p] * WIDTH + i)) +
                      (double)element("position_embd.weight", (size_t)(p * WIDTH + i)) +
                      (double)element("token_types.weight", (size_t)i);
        normed("token_embd_norm", x[p]);
    }
    for (int l = 0; l < LAYERS; l++) {
        attend(l, x);
        for (int p = 0; p < LENGTH; p++)
            feed_forward(l, x[p]);
    }
}

/* ---- the same in a file ------------------------------------------------------------------- */

static const struct {
    const char *name;
    int64_t rows, columns; /* columns 0: a vector */
} globals[] = {{"token_embd.weight", VOCAB, WIDTH},
               {"position_embd.weight", CONTEXT, WIDTH},
               {"token_types.weight", TYPES, WIDTH},
               {"token_embd_norm.weight", WIDTH, 0},
               {"token_embd_norm.bias", WIDTH, 0}},
  parts[] = {{"attn_q", WIDTH, WIDTH},       {"attn_k", WIDTH, WIDTH},
             {"attn_v", WIDTH, WIDTH},       {"attn_output", WIDTH, WIDTH},
             {"ffn_up", FFN, WIDTH},         {"ffn_down", WIDTH, FFN},
             {"attn_output_norm", WIDTH, 0}, {"layer_output_norm", WIDTH, 0}};

struct file {
    rlx_weight tensor[MOST_TENSORS];
    char name[MOST_TENSORS][64];
    size_t count;
};

static void add(struct file *f, const char *name, int64_t rows, int64_t columns)
{
    rlx_weight *t = &f->tensor[f->count];

    snprintf(f->name[f->count], sizeof f->name[f->count], "%s", name);
    *t = (rlx_weight){.name = rlx_cstr(f->name[f->count++]), .type = RLX_WEIGHT_F32};
    t->rank = columns ? 2 : 1;
    t->dim[0] = rows;
    t->dim[1] = columns;
}

static void list_tensors(struct file *f)
{
    char name[64];

    f->count = 0;
    for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++)
        add(f, globals[i].name, globals[i].rows, globals[i].columns);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            snprintf(name, sizeof name, "%s.weight", named(l, parts[i].name));
            add(f, name, parts[i].rows, parts[i].columns);
            snprintf(name, sizeof name, "%s.bias", named(l, parts[i].name));
            add(f, name, parts[i].rows, 0);
        }
}

/* pooling < 0: the file does not say. */
static bool write_bert(struct test *t, rlx_context *ctx, const char *path, int pooling)
{
    static const uint32_t layers = LAYERS, width = WIDTH, heads = HEADS, ffn = FFN,
                          context = CONTEXT;
    const float eps = 1e-5f;
    const uint32_t how = (uint32_t)pooling;
    const rlx_str arch = rlx_cstr("bert");
#define KEY(name, kind, at)                                                      \
    {                                                                            \
        .key = rlx_cstr(name), .type = RLX_META_##kind, .count = 1, .data = (at) \
    }
    const rlx_meta meta[] = {KEY("general.architecture", string, &arch),
                             KEY("bert.block_count", u32, &layers),
                             KEY("bert.context_length", u32, &context),
                             KEY("bert.embedding_length", u32, &width),
                             KEY("bert.attention.head_count", u32, &heads),
                             KEY("bert.feed_forward_length", u32, &ffn),
                             KEY("bert.attention.layer_norm_epsilon", f32, &eps),
                             KEY("bert.pooling_type", u32, &how)};
#undef KEY
    struct file f;
    rlx_weights_writer *w;
    uint64_t left;
    size_t i;

    list_tensors(&f);
    rlx_weights_content content = {RLX_SIZED(rlx_weights_content),
                                   .kind = RLX_FILE_gguf,
                                   .tensor = f.tensor,
                                   .tensor_count = f.count,
                                   .meta = meta,
                                   .meta_count = sizeof meta / sizeof meta[0] - (pooling < 0)};
    if (!expect_ok(t, rlx_weights_begin(ctx, path, &content, &w, NULL)))
        return false;
    while (rlx_weights_next(w, &i, &left)) {
        float x[MOST_NUMBERS];
        size_t count = left / sizeof *x;
        for (size_t k = 0; k < count && k < MOST_NUMBERS; k++)
            x[k] = element(f.name[i], k);
        if (!expect(t, count <= MOST_NUMBERS) || !expect_ok(t, rlx_weights_write(w, x, left, NULL)))
            return false;
    }
    return expect_ok(t, rlx_weights_finish(w, NULL));
}

/* ---- tests -------------------------------------------------------------------------------- */

static void expect_pooled(struct test *t, const float *got, double x[LENGTH][WIDTH],
                          rlx_llm_pooling how, bool unit)
{
    double want[WIDTH] = {0}, square = 0;
    float rounded[WIDTH];
    int first = how == RLX_LLM_POOLING_LAST ? LENGTH - 1 : 0;
    int last = how == RLX_LLM_POOLING_FIRST ? 0 : LENGTH - 1;

    for (int p = first; p <= last; p++)
        for (int i = 0; i < WIDTH; i++)
            want[i] += x[p][i] / (last - first + 1);
    for (int i = 0; i < WIDTH; i++)
        square += want[i] * want[i];
    for (int i = 0; i < WIDTH; i++)
        rounded[i] = (float)(unit ? want[i] / sqrt(square) : want[i]);
    expect_close(t, got, rounded, WIDTH, 1e-4, 1e-4);
}

TEST_DEVICES(vectors, of_a_bert_are_those_in_double)
{
    const char *path = test_temp(t, "bert.gguf");
    double x[LENGTH][WIDTH];
    float got[WIDTH];
    rlx_context *ctx;
    rlx_device *dev;
    rlx_llm *m;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    rlx_status status = rlx_device_open(ctx, test_device(t), &dev, &err);
    if (test_no_device(t, test_device(t), status, err.message)) {
        rlx_context_destroy(ctx);
        return;
    }
    forward(x);
    for (int said = -1; said <= 3; said++) {
        rlx_llm_pooling how = said < 1 ? RLX_LLM_POOLING_MEAN : (rlx_llm_pooling)said;
        rlx_llm_info info = {RLX_SIZED(rlx_llm_info)};
        require(t, write_bert(t, ctx, path, said));
        require_ok(t, rlx_llm_open(ctx, dev, path, NULL, &m, &err));
        require_ok(t, rlx_llm_describe(m, &info, &err));
        expect(t, info.vectors && info.vector_width == WIDTH && info.context == CONTEXT);
        expect_eq(t, info.pooling, said < 0 ? 0 : said);
        if (expect_ok(t, rlx_llm_embed(m, ids, LENGTH, said % 2 == 0, got, &err)))
            expect_pooled(t, got, x, how, said % 2 == 0);
        rlx_llm_close(m);
    }
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

static void refused(struct test *t, rlx_context *ctx, rlx_device *dev, const char *path)
{
    rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .pooling = (rlx_llm_pooling)9};
    const int32_t strange[2] = {1, VOCAB};
    int32_t many[CONTEXT + 1] = {0};
    float got[WIDTH];
    rlx_sequence *s;
    rlx_llm *m;
    rlx_error err;

    expect_status(t, rlx_llm_open(ctx, dev, path, &desc, &m, &err), RLX_ERROR_ATTRIBUTE);
    desc.pooling = RLX_LLM_POOLING_AUTO;
    desc.context = CONTEXT + 1;
    expect_status(t, rlx_llm_open(ctx, dev, path, &desc, &m, &err), RLX_ERROR_LIMIT);
    require_ok(t, rlx_llm_open(ctx, dev, path, NULL, &m, &err));
    rlx_sequence_create(m, &s, &err);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "vectors of texts", &err);
    rlx_llm_embed(m, many, CONTEXT + 1, true, got, &err);
    expect_error(t, RLX_ERROR_LIMIT, "10 tokens do not fit in a context of 9", &err);
    rlx_llm_embed(m, strange, 2, true, got, &err);
    expect_error(t, RLX_ERROR_INDEX, "token 1 is 13", &err);
    rlx_llm_embed(m, ids, 0, true, got, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "without tokens", &err);
    rlx_llm_embed(m, ids, 1, true, NULL, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "out is NULL", &err);
    expect_ok(t, rlx_llm_embed(m, many, CONTEXT, true, got, &err));
    rlx_llm_close(m);
}

TEST(vectors, what_makes_none_is_refused)
{
    const char *path = test_temp(t, "bert.gguf");
    rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .pooling = RLX_LLM_POOLING_FIRST};
    rlx_context *ctx;
    rlx_device *dev;
    rlx_llm *m;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, NULL));
    require(t, write_bert(t, ctx, path, 2));
    refused(t, ctx, dev, path);
    require(t, write_bert(t, ctx, path, 5));
    rlx_llm_open(ctx, dev, path, NULL, &m, &err);
    expect_error(t, RLX_ERROR_FORMAT, "no pooling_type 5", &err);
    require(t, write_bert(t, ctx, path, 4));
    rlx_llm_open(ctx, dev, path, NULL, &m, &err);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "ranks texts", &err);
    if (expect_ok(t, rlx_llm_open(ctx, dev, path, &desc, &m, &err)))
        rlx_llm_close(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

/* Tokens of a decoder do not see what comes after them: the last vector of a text's beginning is
 * one of those that the whole text has. */
TEST(vectors, of_a_decoder_are_pooled_as_wanted)
{
    const char *path = test_temp(t, "decoder.gguf");
    rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .context = 32, .vectors = true};
    float last[LENGTH][256], got[256], mean[256] = {0};
    rlx_llm_info info = {RLX_SIZED(rlx_llm_info)};
    rlx_context *ctx;
    rlx_device *dev;
    rlx_llm *m;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, NULL));
    require_ok(t, tiny_model_write(ctx, path, tiny_model_find("mistral3"), NULL, &err));
    for (int how = RLX_LLM_POOLING_LAST; how >= RLX_LLM_POOLING_AUTO; how--) {
        desc.pooling = (rlx_llm_pooling)how;
        require_ok(t, rlx_llm_open(ctx, dev, path, &desc, &m, &err));
        require_ok(t, rlx_llm_describe(m, &info, &err));
        require(t, info.vectors && info.cache_bytes == 0 && info.vector_width <= 256);
        for (size_t n = 1; how == RLX_LLM_POOLING_LAST && n <= LENGTH; n++)
            expect_ok(t, rlx_llm_embed(m, ids, n, false, last[n - 1], &err));
        for (int64_t i = 0; how == RLX_LLM_POOLING_LAST && i < info.vector_width; i++)
            for (int p = 0; p < LENGTH; p++)
                mean[i] += last[p][i] / LENGTH;
        if (expect_ok(t, rlx_llm_embed(m, ids, LENGTH, false, got, &err)))
            expect_close(t, got,
                         how == RLX_LLM_POOLING_LAST    ? last[LENGTH - 1]
                         : how == RLX_LLM_POOLING_FIRST ? last[0]
                                                        : mean,
                         (size_t)info.vector_width, 1e-4, 1e-4);
        rlx_llm_close(m);
    }
    require_ok(t, rlx_llm_open(ctx, dev, path, NULL, &m, &err));
    rlx_llm_embed(m, ids, LENGTH, false, got, &err);
    expect_error(t, RLX_ERROR_STATE, "rlx_llm_desc.vectors is false", &err);
    rlx_llm_close(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

/* ---- others, held against another engine -------------------------------------------------- */

/* clang-format off */
#define LN "attention.layer_norm_epsilon=0.00001 "
#define EMBEDDED "token_embd_norm:d token_embd_norm.bias:d token_types:1d"
#define SUMS "attn_output_norm:d attn_output_norm.bias:d layer_output_norm:d layer_output_norm.bias:d "
#define GATED "ffn_gate:fd ffn_up:fd ffn_down:df "
#define GEMMA "attn_norm:d attn_q:qd attn_k:kd attn_v:kd attn_output:dq attn_q_norm:h attn_k_norm:h ffn_norm:d "

enum { PROBED = 6, MODEL_TOKENS = 20 };

/* The first numbers of the vector, of length 1, that llama.cpp has of tokens 11, 48, 85, .. */
static const struct {
    struct tiny_model model;
    const char *without;
    float vector[PROBED];
} others[] = {
    {{"nomic", "nomic-bert", 2, 48, 4, 4, 12, 12, 80, 32, LN "pooling_type=1 rope.freq_base=1000.0 .tokenizer.ggml.token_type_count=1", EMBEDDED,
      SUMS "attn_qkv:ad attn_output:dq " GATED}, NULL,
     {0.0645209f, 0.0393431f, 0.2046823f, -0.0660407f, 0.0374060f, 0.0918331f}},
    {{"modern", "modern-bert", 4, 48, 4, 4, 12, 12, 80, 32,
      LN "pooling_type=2 attention.sliding_window=6 rope.freq_base=160000.0 rope.freq_base_swa=100.0",
      "token_embd_norm:d output_norm:d", "attn_norm:d attn_qkv:ad attn_output:dq ffn_norm:d ffn_up:Fd ffn_down:df"},
     "blk.0.attn_norm.weight",
     {-0.3534135f, 0.1420352f, -0.1275883f, -0.2721028f, 0.0397138f, 0.0676239f}},
    {{"gemma", "gemma-embedding", 7, 48, 4, 1, 12, 12, 80, 32,
      "attention.layer_norm_rms_epsilon=0.00001 attention.sliding_window=7 pooling_type=1 rope.freq_base=1000000.0 "
      "dense_2_feat_in=48 dense_2_feat_out=80 dense_3_feat_in=80 dense_3_feat_out=48",
      "output_norm:d dense_2:fd dense_3:df", GEMMA "post_attention_norm:d post_ffw_norm:d " GATED}, NULL,
     {0.3491482f, -0.0660795f, -0.4149936f, -0.0585494f, -0.0889690f, -0.1327372f}},
    {{"qwen3", "qwen3", 2, 48, 4, 2, 12, 12, 80, 32, "attention.layer_norm_rms_epsilon=0.00001 pooling_type=3",
      "output_norm:d", GEMMA GATED}, NULL,
     {-0.2026981f, 0.0367531f, -0.0038248f, 0.4785076f, 0.0299242f, -0.3232553f}},
};
/* clang-format on */

TEST_DEVICES(vectors, of_others_are_those_of_llama_cpp)
{
    const char *path = test_temp(t, "other.gguf");
    const rlx_llm_desc desc = {RLX_SIZED(rlx_llm_desc), .vectors = true};
    int32_t tokens[MODEL_TOKENS];
    float got[256];
    rlx_context *ctx;
    rlx_device *dev;
    rlx_llm *m;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    rlx_status status = rlx_device_open(ctx, test_device(t), &dev, &err);
    if (test_no_device(t, test_device(t), status, err.message)) {
        rlx_context_destroy(ctx);
        return;
    }
    for (int i = 0; i < MODEL_TOKENS; i++)
        tokens[i] = (37 * i + 11) % (TINY_VOCAB - 1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct tiny_change change = {.without = others[i].without};
        test_note(t, "%s", others[i].model.name);
        require_ok(t, tiny_model_write(ctx, path, &others[i].model, &change, &err));
        require_ok(t, rlx_llm_open(ctx, dev, path, &desc, &m, &err));
        if (expect_ok(t, rlx_llm_embed(m, tokens, MODEL_TOKENS, true, got, &err)))
            expect_close(t, got, others[i].vector, PROBED, 0, 2e-4);
        rlx_llm_close(m);
    }
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}
