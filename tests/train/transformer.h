/* transformer.h: a small transformer that learns a text that repeats, for tests: the one that
 * tools/gen-train-vectors trains in PyTorch, with the same weights and the same text. */
#ifndef TESTS_TRAIN_TRANSFORMER_H
#define TESTS_TRAIN_TRANSFORMER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/train.h"
#include "test.h"

enum {
    VOCAB = 256,
    WIDTH = 64,
    LAYERS = 2,
    HEADS = 2,
    HIDDEN = 128,
    ROWS = 4,
    LENGTH = 32,
    HEAD = WIDTH / HEADS,
    UPDATES = 100,
    PERIOD = 97, /* of the text */
    PARAMS = 3 + 9 * LAYERS
};

static const rlx_train_desc transformer_desc = {RLX_SIZED(rlx_train_desc),
                                                .rate = 3e-3f,
                                                .decay = 0.1f,
                                                .schedule = RLX_SCHEDULE_COSINE,
                                                .warmup_steps = 10,
                                                .total_steps = UPDATES,
                                                .final_ratio = 0.1f,
                                                .clip_norm = 1};

/* A number of 32 bits that looks random, for element i of tensor t. */
static inline uint32_t scrambled(uint32_t i, uint32_t t)
{
    uint32_t h = i * 0x9E3779B1u + t * 0x85EBCA77u + 1;

    h = (h ^ h >> 16) * 0x7FEB352Du;
    h = (h ^ h >> 15) * 0x846CA68Bu;
    return h ^ h >> 16;
}

/* ---- the graph ---- */

struct weights {
    rlx_graph *g;
    int count;
    struct {
        char name[16];
        int64_t rows, columns; /* rows 0: a vector of ones */
        float scale;
    } at[PARAMS];
};

static inline rlx_value weight(struct weights *w, const char *name, int layer, int64_t rows,
                               int64_t columns, float scale)
{
    int i = w->count++;

    if (layer < 0)
        snprintf(w->at[i].name, sizeof w->at[i].name, "%s", name);
    else
        snprintf(w->at[i].name, sizeof w->at[i].name, "%d.%s", layer, name);
    w->at[i].rows = rows;
    w->at[i].columns = columns;
    w->at[i].scale = scale;
    return rlx_param(w->g, w->at[i].name, RLX_DTYPE_f32,
                     rows ? RLX_LIST(rows, columns) : RLX_LIST(columns));
}

static inline rlx_value product(struct weights *w, rlx_value x, const char *name, int layer,
                                int64_t rows, int64_t columns)
{
    return rlx_matmul(w->g, x, weight(w, name, layer, rows, columns, 0.125f), false, false);
}

static inline rlx_value scaled_rows(struct weights *w, rlx_value x, const char *name, int layer)
{
    static const float none[WIDTH];
    rlx_value zero = rlx_const(w->g, RLX_DTYPE_f32, RLX_LIST(WIDTH), none, sizeof none);

    return rlx_rms_norm(w->g, x, weight(w, name, layer, 0, WIDTH, 1), zero, -1, 1e-5f);
}

static inline rlx_value table(rlx_graph *g, double (*of)(double))
{
    float value[LENGTH][HEAD / 2];

    for (int p = 0; p < LENGTH; p++)
        for (int i = 0; i < HEAD / 2; i++)
            value[p][i] = (float)of(p * pow(10000, -2.0 * i / HEAD));
    return rlx_const(g, RLX_DTYPE_f32, RLX_LIST(LENGTH, HEAD / 2), value, sizeof value);
}

static inline rlx_value attend(struct weights *w, rlx_value h, int layer, rlx_value cos_,
                               rlx_value sin_)
{
    rlx_attention_desc desc = RLX_ATTENTION_DESC_INIT;
    rlx_value q = product(w, h, "q", layer, WIDTH, WIDTH);
    rlx_value k = product(w, h, "k", layer, WIDTH, WIDTH);
    rlx_value v = product(w, h, "v", layer, WIDTH, WIDTH);

    desc.num_heads = HEADS;
    desc.head_dim = HEAD;
    desc.mask_kind = RLX_MASK_KIND_causal;
    desc.layout = RLX_ATTENTION_LAYOUT_packed;
    q = rlx_rope(w->g, q, cos_, sin_, HEAD, RLX_ABSENT, RLX_ROPE_STYLE_half, -2);
    k = rlx_rope(w->g, k, cos_, sin_, HEAD, RLX_ABSENT, RLX_ROPE_STYLE_half, -2);
    return product(w, rlx_attention(w->g, q, k, v, RLX_NO_VALUE, &desc), "o", layer, WIDTH, WIDTH);
}

/* The mean loss over all tokens of inputs "tokens" and "labels", i32[ROWS,LENGTH]. */
static inline rlx_value transformer(struct weights *w, rlx_graph *g)
{
    *w = (struct weights){.g = g};
    rlx_value tokens = rlx_input(g, "tokens", RLX_DTYPE_i32, RLX_LIST(ROWS, LENGTH));
    rlx_value labels = rlx_input(g, "labels", RLX_DTYPE_i32, RLX_LIST(ROWS, LENGTH));
    rlx_value cos_ = table(g, cos), sin_ = table(g, sin);
    rlx_value x = rlx_gather(g, weight(w, "embed", -1, VOCAB, WIDTH, 0.5f), tokens, 0);

    for (int i = 0; i < LAYERS; i++) {
        x = rlx_add(g, x, attend(w, scaled_rows(w, x, "norm1", i), i, cos_, sin_));
        rlx_value h = scaled_rows(w, x, "norm2", i);
        rlx_value gate = rlx_silu(g, product(w, h, "gate", i, WIDTH, HIDDEN));
        h = rlx_mul(g, gate, product(w, h, "up", i, WIDTH, HIDDEN));
        x = rlx_add(g, x, product(w, h, "down", i, HIDDEN, WIDTH));
    }
    x = product(w, scaled_rows(w, x, "norm", -1), "head", -1, WIDTH, VOCAB);
    return rlx_cross_entropy(g, x, labels, NULL);
}

/* ---- its weights, its text ---- */

static inline size_t weight_count(const struct weights *w, int i)
{
    return (size_t)((w->at[i].rows ? w->at[i].rows : 1) * w->at[i].columns);
}

static inline rlx_tensor weight_tensor(const struct weights *w, int i, float *data)
{
    bool vector = w->at[i].rows == 0;

    return (rlx_tensor){RLX_DTYPE_f32,
                        vector ? 1 : 2,
                        {vector ? w->at[i].columns : w->at[i].rows, w->at[i].columns},
                        data,
                        weight_count(w, i) * sizeof *data};
}

static inline rlx_status set_weights(const struct weights *w, rlx_session *s, rlx_error *err)
{
    static float value[VOCAB * WIDTH];

    for (int i = 0; i < w->count; i++) {
        for (size_t k = 0; k < weight_count(w, i); k++) {
            uint32_t h = scrambled((uint32_t)k, (uint32_t)i) >> 8;
            value[k] = w->at[i].rows ? ((float)h * 0x1p-23f - 1) * w->at[i].scale : 1;
        }
        rlx_tensor v = weight_tensor(w, i, value);
        rlx_status status = rlx_session_set_state(s, w->at[i].name, &v, err);
        if (status != RLX_OK)
            return status;
    }
    return RLX_OK;
}

struct text_batch {
    int32_t tokens[ROWS][LENGTH], labels[ROWS][LENGTH];
};

static inline void text_batch(struct text_batch *b, int update)
{
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i <= LENGTH; i++) {
            uint32_t at = (uint32_t)((update * ROWS + r) * 13 + i) % PERIOD;
            int32_t token = (int32_t)(scrambled(at, 1000) % VOCAB);
            if (i < LENGTH)
                b->tokens[r][i] = token;
            if (i > 0)
                b->labels[r][i - 1] = token;
        }
}

static inline rlx_status run_text(rlx_session *s, const struct text_batch *b, float *loss,
                                  rlx_error *err)
{
    rlx_binding in[] = {
        {"tokens", {RLX_DTYPE_i32, 2, {ROWS, LENGTH}, (void *)b->tokens, sizeof b->tokens}},
        {"labels", {RLX_DTYPE_i32, 2, {ROWS, LENGTH}, (void *)b->labels, sizeof b->labels}}};
    rlx_binding out = {"loss", {.dtype = RLX_DTYPE_f32, .data = loss, .bytes = sizeof *loss}};

    return rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                           err);
}

/* ---- a session that learns it ---- */

struct learner {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    struct weights weights;
    rlx_error err;
};

static inline bool open_learner(struct test *t, struct learner *l, int threads,
                                const rlx_session_desc *desc)
{
    rlx_context_desc context = {RLX_SIZED(rlx_context_desc), .threads = threads};
    rlx_graph *g;

    *l = (struct learner){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, &context, &l->ctx, &l->err)) ||
        test_no_device(t, test_device(t), rlx_device_open(l->ctx, test_device(t), &l->dev, &l->err),
                       l->err.message) ||
        !expect_ok(t, rlx_graph_create(l->ctx, &g, &l->err)))
        return false;
    rlx_value loss = transformer(&l->weights, g);
    return (expect_ok(t, rlx_train_graph(g, loss, &transformer_desc, &l->err)) &&
            expect_ok(t, rlx_model_create(g, &l->model, &l->err)) &&
            expect_ok(t, rlx_session_create(l->model, l->dev, desc, &l->session, &l->err)) &&
            expect_ok(t, set_weights(&l->weights, l->session, &l->err))) ||
           fail(t, "%s", l->err.message);
}

static inline void close_learner(struct learner *l)
{
    rlx_session_destroy(l->session);
    rlx_model_destroy(l->model);
    rlx_device_close(l->dev);
    rlx_context_destroy(l->ctx);
}

static inline bool run_once(struct test *t, struct learner *l, int update, float *loss)
{
    struct text_batch b;

    text_batch(&b, update);
    return expect_ok(t, run_text(l->session, &b, loss, &l->err)) || fail(t, "%s", l->err.message);
}

#endif
