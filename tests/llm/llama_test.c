/* llama_test.c: rlx_llm_build against the same model written out in double precision, and what a
 * file says of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/llm.h"
#include "test.h"

enum {
    BATCH = 2,
    LENGTH = 5,
    VOCAB = 11,
    WIDTH = 12,
    HEADS = 3,
    KV = 1,
    DIM = 4,
    FFN = 10,
    LAYERS = 2,
    MOST_PARAM = WIDTH * WIDTH,
    MOST_RANK = 3,
    ALPHA = 2
};

static const rlx_llm_shape shape = {
    RLX_SIZED(rlx_llm_shape), .vocab = VOCAB, .context = 8, .layers = LAYERS, .width = WIDTH,
    .heads = HEADS,           .kv_heads = KV, .ffn = FFN,   .rope_base = 100, .eps = 1e-4f};

/* Element i of a param, from its name. */
static float element(const char *name, size_t i)
{
    double phase = 0;

    for (const char *p = name; *p; p++)
        phase = 1.7 * phase + *p;
    return (float)(0.4 * sin(phase + 0.83 * (double)i) + (strstr(name, "norm") ? 1 : 0));
}

static int32_t token(int b, int p)
{
    return (3 * b + 7 * p + p * p) % VOCAB;
}

/* ---- in double ---- */

/* y[out] = W x with W = [out, in]. */
static void product(const char *name, const double *x, int out, int in, double *y)
{
    for (int o = 0; o < out; o++) {
        y[o] = 0;
        for (int i = 0; i < in; i++)
            y[o] += (double)element(name, (size_t)(o * in + i)) * x[i];
    }
}

/* The same of a matrix of a layer, which may have two small ones beside it: (W + s B A) x. */
static void layer_product(const char *name, const double *x, int out, int in, int rank, double *y)
{
    char small[80], large[80];
    double a[MOST_RANK], b[MOST_PARAM];

    product(name, x, out, in, y);
    snprintf(small, sizeof small, "%s.lora_a", name);
    snprintf(large, sizeof large, "%s.lora_b", name);
    product(small, x, rank, in, a);
    product(large, a, out, rank, b);
    for (int o = 0; rank && o < out; o++)
        y[o] += (double)ALPHA / rank * b[o];
}

static void normed(const char *name, const double *x, double *y)
{
    double square = 0;

    for (int i = 0; i < WIDTH; i++)
        square += x[i] * x[i] / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        y[i] = x[i] / sqrt(square + 1e-4) * (double)element(name, (size_t)i);
}

static void turn(double *x, int heads, int position)
{
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < DIM / 2; i++) {
            double angle = position * pow(100, -2.0 * i / DIM), *a = &x[h * DIM + 2 * i];
            double first = a[0] * cos(angle) - a[1] * sin(angle);
            a[1] = a[1] * cos(angle) + a[0] * sin(angle);
            a[0] = first;
        }
}

static const char *named(int layer, const char *part)
{
    static char name[64];

    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, part);
    return name;
}

static void attend(int layer, int rank, double x[LENGTH][WIDTH])
{
    double q[LENGTH][HEADS * DIM], k[LENGTH][KV * DIM], v[LENGTH][KV * DIM];
    double h[WIDTH], y[HEADS * DIM], z[WIDTH], weight[LENGTH];

    for (int p = 0; p < LENGTH; p++) {
        normed(named(layer, "attn_norm"), x[p], h);
        layer_product(named(layer, "attn_q"), h, HEADS * DIM, WIDTH, rank, q[p]);
        layer_product(named(layer, "attn_k"), h, KV * DIM, WIDTH, rank, k[p]);
        layer_product(named(layer, "attn_v"), h, KV * DIM, WIDTH, rank, v[p]);
        turn(q[p], HEADS, p);
        turn(k[p], KV, p);
    }
    for (int p = 0; p < LENGTH; p++) {
        memset(y, 0, sizeof y);
        for (int a = 0; a < HEADS; a++) {
            double sum = 0;
            for (int j = 0; j <= p; j++) {
                double s = 0;
                for (int i = 0; i < DIM; i++)
                    s += q[p][a * DIM + i] * k[j][i] / sqrt(DIM);
                sum += weight[j] = exp(s);
            }
            for (int j = 0; j <= p; j++)
                for (int i = 0; i < DIM; i++)
                    y[a * DIM + i] += weight[j] / sum * v[j][i];
        }
        layer_product(named(layer, "attn_output"), y, WIDTH, HEADS * DIM, rank, z);
        for (int i = 0; i < WIDTH; i++)
            x[p][i] += z[i];
    }
}

static void feed_forward(int layer, int rank, double *x)
{
    double h[WIDTH], gate[FFN], up[FFN], z[WIDTH];

    normed(named(layer, "ffn_norm"), x, h);
    layer_product(named(layer, "ffn_gate"), h, FFN, WIDTH, rank, gate);
    layer_product(named(layer, "ffn_up"), h, FFN, WIDTH, rank, up);
    for (int i = 0; i < FFN; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    layer_product(named(layer, "ffn_down"), gate, WIDTH, FFN, rank, z);
    for (int i = 0; i < WIDTH; i++)
        x[i] += z[i];
}

static void forward(int b, bool tied, int rank, double logits[LENGTH][VOCAB])
{
    double x[LENGTH][WIDTH], h[WIDTH];

    for (int p = 0; p < LENGTH; p++)
        for (int i = 0; i < WIDTH; i++)
            x[p][i] = (double)element("token_embd.weight", (size_t)(token(b, p) * WIDTH + i));
    for (int l = 0; l < LAYERS; l++) {
        attend(l, rank, x);
        for (int p = 0; p < LENGTH; p++)
            feed_forward(l, rank, x[p]);
    }
    for (int p = 0; p < LENGTH; p++) {
        normed("output_norm.weight", x[p], h);
        product(tied ? "token_embd.weight" : "output.weight", h, VOCAB, WIDTH, logits[p]);
    }
}

/* ---- as a graph ---- */

static bool set_params(struct test *t, rlx_model *m)
{
    for (size_t i = 0; i < rlx_model_io_count(m, RLX_IO_PARAM); i++) {
        rlx_io_info io = {RLX_SIZED(rlx_io_info)};
        float value[MOST_PARAM];
        char name[64];
        size_t count = 1;
        if (!expect_ok(t, rlx_model_io(m, RLX_IO_PARAM, i, &io, NULL)))
            return false;
        snprintf(name, sizeof name, "%.*s", (int)io.name.len, io.name.ptr);
        for (int32_t k = 0; k < io.rank; k++)
            count *= (size_t)io.dim[k];
        for (size_t k = 0; k < count && k < MOST_PARAM; k++)
            value[k] = element(name, k);
        rlx_tensor x = {RLX_DTYPE_f32, io.rank, {io.dim[0], io.dim[1]}, value, 4 * count};
        if (!expect(t, count <= MOST_PARAM) ||
            !expect_ok(t, rlx_model_set_param(m, name, &x, NULL)))
            return false;
    }
    return true;
}

static void compare(struct test *t, bool tied, int rank)
{
    rlx_llm_shape own = shape;
    rlx_context *ctx;
    rlx_device *dev;
    rlx_graph *g;
    rlx_model *m;
    rlx_session *s;
    rlx_value logits;
    rlx_error err;
    int32_t ids[BATCH][LENGTH];
    float got[BATCH][LENGTH][VOCAB], want[BATCH][LENGTH][VOCAB];

    own.tied = tied;
    own.lora_rank = rank;
    own.lora_alpha = ALPHA;
    for (int b = 0; b < BATCH; b++) {
        double x[LENGTH][VOCAB];
        forward(b, tied, rank, x);
        for (int p = 0; p < LENGTH; p++) {
            ids[b][p] = token(b, p);
            for (int i = 0; i < VOCAB; i++)
                want[b][p][i] = (float)x[p][i];
        }
    }
    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    rlx_status status = rlx_device_open(ctx, test_device(t), &dev, &err);
    if (test_no_device(t, test_device(t), status, err.message)) {
        rlx_context_destroy(ctx);
        return;
    }
    require_ok(t, rlx_graph_create(ctx, &g, NULL));
    rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(BATCH, LENGTH));
    require_ok(t, rlx_llm_build(g, &own, tokens, &logits, &err));
    rlx_label(g, logits, "logits");
    rlx_output(g, logits);
    require_ok(t, rlx_model_create(g, &m, &err));
    expect_eq(t, rlx_model_io_count(m, RLX_IO_PARAM), (9 + (rank ? 14 : 0)) * LAYERS + 2 + !tied);
    require(t, set_params(t, m));
    require_ok(t, rlx_session_create(m, dev, NULL, &s, &err));
    rlx_binding in = {"tokens", {RLX_DTYPE_i32, 2, {BATCH, LENGTH}, ids, sizeof ids}};
    rlx_binding out = {"logits", {.dtype = RLX_DTYPE_f32, .data = got, .bytes = sizeof got}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    if (expect_ok(t, rlx_session_run(s, &run, &err)))
        expect_close(t, &got[0][0][0], &want[0][0][0], BATCH * LENGTH * VOCAB, 2e-4, 2e-4);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

TEST_DEVICES(llama, is_the_model_in_double)
{
    compare(t, false, 0);
}

TEST(llama, may_use_the_table_of_tokens_twice)
{
    compare(t, true, 0);
}

TEST(llama, small_matrices_add_to_large_ones)
{
    compare(t, true, MOST_RANK);
}

TEST(llama, sizes_that_make_no_model_are_refused)
{
    const struct {
        rlx_llm_shape s;
        rlx_status status;
        const char *part;
    } rows[] = {
        {{RLX_SIZED(rlx_llm_shape), .vocab = 9, .context = 8, .layers = 1, .width = 12, .heads = 5,
          .ffn = 4},
         RLX_ERROR_SHAPE,
         "cannot be divided among 5 heads"},
        {{RLX_SIZED(rlx_llm_shape), .vocab = 9, .context = 8, .layers = 1, .width = 12, .heads = 3,
          .kv_heads = 2, .ffn = 4},
         RLX_ERROR_SHAPE,
         "must divide the first"},
        {{RLX_SIZED(rlx_llm_shape), .vocab = 9, .context = 8, .layers = 1, .width = 12, .heads = 4,
          .ffn = 4},
         RLX_ERROR_SHAPE,
         "turned in pairs"},
        {{RLX_SIZED(rlx_llm_shape), .vocab = 9, .context = 8, .layers = 0, .width = 12, .heads = 3,
          .ffn = 4},
         RLX_ERROR_SHAPE,
         "layers is 0"},
        {{RLX_SIZED(rlx_llm_shape), .vocab = 9, .context = 4, .layers = 1, .width = 12, .heads = 3,
          .ffn = 4},
         RLX_ERROR_SHAPE,
         "a length from 1 to 4, the context"},
    };
    rlx_context *ctx;
    rlx_graph *g;
    rlx_value logits;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    require_ok(t, rlx_graph_create(ctx, &g, NULL));
    rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(BATCH, LENGTH));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rlx_llm_build(g, &rows[i].s, tokens, &logits, &err);
        expect_error(t, rows[i].status, rows[i].part, &err);
    }
    rlx_llm_build(g, NULL, tokens, &logits, &err);
    expect_error(t, RLX_ERROR_ARGUMENT, "the shape is NULL", &err);
    rlx_graph_destroy(g);
    rlx_context_destroy(ctx);
}

TEST(llama, says_what_it_is)
{
    rlx_llm_meta_room room;
    rlx_meta m;
    int found = 0;

    for (size_t i = 0; rlx_llm_meta(&shape, i, &room, &m); i++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)m.key.len, m.key.ptr);
        if (strcmp(key, "general.architecture") == 0)
            found += m.type == RLX_META_string && memcmp(room.str.ptr, "llama", 5) == 0;
        if (strcmp(key, "llama.rope.dimension_count") == 0)
            found += m.type == RLX_META_u32 && room.u32 == DIM;
        if (strcmp(key, "llama.attention.head_count_kv") == 0)
            found += room.u32 == KV;
        if (strcmp(key, "llama.rope.freq_base") == 0)
            found += m.type == RLX_META_f32 && room.f32 == 100;
        expect(t, m.data == &room && m.count == 1 && !m.is_array);
    }
    expect_eq(t, found, 4);
}

/* A file of that model, without what its layers hold, and one key of another value. */
static bool write_gguf(struct test *t, rlx_context *ctx, const char *path, const char *key,
                       uint32_t value, bool own_output)
{
    rlx_llm_meta_room room[32];
    rlx_meta meta[32];
    size_t count = 0, i;
    uint64_t left;
    rlx_weights_writer *w;
    const rlx_weight tensors[] = {
        {.name = rlx_cstr("token_embd.weight"), .rank = 2, .dim = {VOCAB, WIDTH}},
        {.name = rlx_cstr("output.weight"), .rank = 2, .dim = {VOCAB, WIDTH}}};
    static const char zeros[sizeof(float) * VOCAB * WIDTH];

    for (; count < 32 && rlx_llm_meta(&shape, count, &room[count], &meta[count]); count++)
        if (key && strlen(key) == meta[count].key.len &&
            memcmp(meta[count].key.ptr, key, strlen(key)) == 0)
            room[count].u32 = value;
    rlx_weights_content content = {
        RLX_SIZED(rlx_weights_content),     .kind = RLX_FILE_gguf, .tensor = tensors,
        .tensor_count = own_output ? 2 : 1, .meta = meta,          .meta_count = count};
    if (!expect_ok(t, rlx_weights_begin(ctx, path, &content, &w, NULL)))
        return false;
    while (rlx_weights_next(w, &i, &left))
        if (!expect_ok(t, rlx_weights_write(w, zeros, sizeof zeros, NULL)))
            return false;
    return expect_ok(t, rlx_weights_finish(w, NULL));
}

TEST(llama, shapes_are_read_from_files)
{
    static const struct {
        const char *key;
        uint32_t value;
        rlx_status status;
        const char *part;
    } rows[] = {
        {"llama.attention.head_count_kv", 2, RLX_ERROR_SHAPE, "must divide the first"},
        {"llama.rope.dimension_count", 2, RLX_ERROR_UNSUPPORTED, "rope.dimension_count is 2"},
        {"llama.block_count", 1u << 30, RLX_ERROR_FORMAT, "is no size"},
    };
    const char *path = test_temp(t, "a.gguf");
    rlx_llm_shape got = {RLX_SIZED(rlx_llm_shape)};
    rlx_context *ctx;
    rlx_weights *w;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    for (int output = 0; output < 2; output++) {
        require(t, write_gguf(t, ctx, path, NULL, 0, output));
        require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
        require_ok(t, rlx_llm_read_shape(w, &got, &err));
        expect(t, got.vocab == VOCAB && got.width == WIDTH && got.layers == LAYERS &&
                      got.heads == HEADS && got.kv_heads == KV && got.head_dim == DIM &&
                      got.ffn == FFN && got.context == 8 && got.rope_base == 100 &&
                      got.eps == 1e-4f && got.tied == !output);
        rlx_weights_close(w);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        require(t, write_gguf(t, ctx, path, rows[i].key, rows[i].value, false));
        require_ok(t, rlx_weights_open(ctx, path, NULL, &w, &err));
        rlx_llm_read_shape(w, &got, &err);
        expect_error(t, rows[i].status, rows[i].part, &err);
        rlx_weights_close(w);
    }
    rlx_context_destroy(ctx);
}
