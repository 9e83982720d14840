/* trainer_world.h: a small network, a trainer of it, and data that it can learn. */
#ifndef TESTS_TRAIN_TRAINER_WORLD_H
#define TESTS_TRAIN_TRAINER_WORLD_H

#include <string.h>

#include "rlx/artefact.h"
#include "rlx/trainer.h"
#include "rlx/weights.h"
#include "test.h"

/* %HEAD is where dims are declared, %ROWS the size of a batch. */
#define NETWORK(head, rows)                                                                  \
    "rlx 1\n" head "graph (input %x: f32[" rows ",4], input %y: i32[" rows "], "             \
    "param %w1: f32[4,16], param %b1: f32[16], param %w2: f32[16,3], param %b2: f32[3]) {\n" \
    "    %m1 = matmul %x, %w1\n"                                                             \
    "    %a1 = add %m1, %b1\n"                                                               \
    "    %h = gelu %a1\n"                                                                    \
    "    %m2 = matmul %h, %w2\n"                                                             \
    "    %a2 = add %m2, %b2\n"                                                               \
    "    %e = softmax_cross_entropy_with_logits %a2, %y\n"                                   \
    "    %loss = reduce_mean %e axes=[0]\n"                                                  \
    "    return %loss\n"                                                                     \
    "}\n"

enum { ROWS = 8, EXAMPLES = 60 };

struct learning {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_trainer *trainer;
    rlx_dataset *data;
    rlx_error err;
    float x[EXAMPLES][4];
    int64_t y[EXAMPLES]; /* as NumPy has labels */
};

/* The class is where the largest of three sums is. */
static inline void fill_examples(struct learning *l)
{
    uint32_t z = 1;

    for (int i = 0; i < EXAMPLES; i++) {
        for (int k = 0; k < 4; k++) {
            z = z * 1664525u + 1013904223u;
            l->x[i][k] = (float)(z >> 8) * 0x1p-23f - 1;
        }
        float a = l->x[i][0] + l->x[i][1], b = l->x[i][2], c = l->x[i][3] - l->x[i][0];
        l->y[i] = a > b && a > c ? 0 : b > c ? 1 : 2;
    }
}

static inline void examples_of(struct learning *l, rlx_binding out[2])
{
    out[0] = (rlx_binding){"x", {RLX_DTYPE_f32, 2, {EXAMPLES, 4}, l->x, sizeof l->x}};
    out[1] = (rlx_binding){"y", {RLX_DTYPE_i64, 1, {EXAMPLES}, l->y, sizeof l->y}};
}

/* text NULL: the network with batches of ROWS. */
static inline bool open_learning(struct test *t, struct learning *l, const char *device,
                                 const char *text, const rlx_trainer_desc *desc)
{
    memset(l, 0, sizeof *l);
    fill_examples(l);
    if (!expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &l->ctx, NULL)))
        return false;
    rlx_status s = rlx_device_open(l->ctx, device, &l->dev, &l->err);
    if (test_no_device(t, device, s, l->err.message))
        return false;
    return expect_ok(t, rlx_model_parse(l->ctx, rlx_cstr(text ? text : NETWORK("", "8")), &l->model,
                                        &l->err)) &&
           (expect_ok(t, rlx_trainer_create(l->model, l->dev, desc, &l->trainer, &l->err)) ||
            fail(t, "%s", l->err.message));
}

static inline bool open_data(struct test *t, struct learning *l, int64_t batch, double validation)
{
    rlx_binding arrays[2];

    examples_of(l, arrays);
    rlx_dataset_desc desc = {RLX_SIZED(rlx_dataset_desc),
                             .batch = batch,
                             .validation = validation,
                             .seed = 5,
                             .arrays = arrays,
                             .array_count = 2};
    return expect_ok(t, rlx_dataset_create(l->ctx, &desc, &l->data, &l->err)) &&
           (expect_ok(t, rlx_dataset_fit(l->data, l->model, &l->err)) ||
            fail(t, "%s", l->err.message));
}

static inline void close_learning(struct learning *l)
{
    rlx_dataset_destroy(l->data);
    rlx_trainer_destroy(l->trainer);
    rlx_model_destroy(l->model);
    rlx_device_close(l->dev);
    rlx_context_destroy(l->ctx);
}

/* Runs first to first + count - 1, one batch each. */
static inline bool learn(struct test *t, struct learning *l, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        const rlx_binding *in;
        size_t n;
        if (!expect_ok(t, rlx_dataset_batch(l->data, RLX_SPLIT_TRAIN, i, &in, &n, &l->err)) ||
            !expect_ok(t, rlx_trainer_step(l->trainer, in, n, &l->err)))
            return fail(t, "%s", l->err.message);
    }
    return true;
}

/* Every param and state, bit for bit. */
static inline void expect_same_values(struct test *t, struct learning *a, struct learning *b)
{
    rlx_trainer_value v, w;
    size_t i = 0;

    for (; rlx_trainer_value_at(a->trainer, i, &v); i++) {
        char left[4096], right[4096];
        rlx_tensor x = {.dtype = v.dtype, .data = left}, y = {.dtype = v.dtype, .data = right};
        x.bytes = rlx_dtype_size(v.dtype);
        for (int32_t k = 0; k < v.rank; k++)
            x.bytes *= (size_t)v.dim[k];
        y.bytes = x.bytes;
        test_note(t, "%s", v.name.ptr);
        require(t, x.bytes <= sizeof left && rlx_trainer_value_at(b->trainer, i, &w));
        require_ok(t, rlx_trainer_get(a->trainer, v.name.ptr, &x, NULL));
        require_ok(t, rlx_trainer_get(b->trainer, v.name.ptr, &y, NULL));
        expect_bytes(t, left, right, x.bytes);
    }
    test_note(t, "%s", "");
    expect(t, i > 4 && !rlx_trainer_value_at(b->trainer, i, &w));
}

#endif
