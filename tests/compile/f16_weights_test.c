/* f16_weights_test.c: sessions that read weights as f16 (rlx_session_desc.f16_weights).
 *
 * Whatever the shape, results are those of weights that were rounded beforehand: sums stay in f32,
 * and copies follow their params. On the CPU the policy has no effect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "test.h"

#define MOST 40000

struct place {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_error err;
};

static bool place_open(struct test *t, struct place *p, const char *binding)
{
    const rlx_flag flag = {"GPU_MAX_BINDING", binding};

    *p = (struct place){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION,
                                         &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                             .flags = &flag, .flag_count = 1},
                                         &p->ctx, &p->err)))
        return false;
    rlx_status s = rlx_device_open(p->ctx, test_device(t), &p->dev, &p->err);
    return !test_no_device(t, test_device(t), s, p->err.message);
}

static void place_close(struct place *p)
{
    rlx_device_close(p->dev);
    rlx_context_destroy(p->ctx);
}

static bool on_gpu(const struct test *t)
{
    return strcmp(test_device(t), "cpu") != 0;
}

/* Numbers that are not f16. */
static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)((double)(seed >> 8) / 0x1p24 - 0.5) * 1.0009f;
    }
}

static void round_all(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = f16_to_f32(f32_to_f16(x[i]));
}

struct shape {
    const char *graph; /* of an input x and a param w */
    int64_t x[4], w[4], y[4];
};

static const struct shape shapes[] = {
    {"matmul %x, %w", {33, 40}, {40, 52}, {33, 52}}, /* tiles */
    {"matmul %x, %w transpose_b=true", {33, 41}, {35, 41}, {33, 35}},
    {"matmul %x, %w", {1, 64}, {64, 36}, {1, 36}},                  /* few rows, side by side */
    {"matmul %x, %w transpose_b=true", {2, 64}, {48, 64}, {2, 48}}, /* and along */
    {"matmul %x, %w transpose_b=true", {3, 7}, {5, 7}, {3, 5}},     /* an odd number */
    {"matmul %w, %x", {40, 50}, {30, 40}, {30, 50}},                /* on the left */
    {"matmul %w, %x", {40, 2}, {30, 40}, {30, 2}},
    {"matmul %x, %w", {2, 3, 20, 40}, {3, 40, 24}, {2, 3, 20, 24}}, /* a batch */
    {"conv %x, %w padding=[1,1]", {2, 8, 9, 10}, {12, 8, 3, 3}, {2, 12, 9, 10}},
    {"conv %x, %w", {2, 8, 6, 6}, {16, 8, 1, 1}, {2, 16, 6, 6}}, /* a product */
    {"conv %x, %w groups=8", {1, 8, 9, 9}, {8, 1, 3, 3}, {1, 8, 7, 7}},
    {"conv_transpose %x, %w stride=[2,2]", {1, 6, 5, 5}, {6, 8, 2, 2}, {1, 8, 10, 10}},
};

static void write_type(char *out, size_t size, const int64_t *dim)
{
    size_t at = (size_t)snprintf(out, size, "f32[");

    for (int i = 0; i < 4 && dim[i]; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "", (long long)dim[i]);
    snprintf(out + at, size - at, "]");
}

static rlx_tensor tensor_of(const int64_t *dim, float *at)
{
    rlx_tensor t = {.dtype = RLX_DTYPE_f32, .data = at, .bytes = sizeof *at};

    for (; t.rank < 4 && dim[t.rank]; t.rank++) {
        t.dim[t.rank] = dim[t.rank];
        t.bytes *= (size_t)dim[t.rank];
    }
    return t;
}

static rlx_model *model_of(struct test *t, struct place *p, const struct shape *s)
{
    char text[400], x[60], w[60];
    rlx_model *m = NULL;

    write_type(x, sizeof x, s->x);
    write_type(w, sizeof w, s->w);
    snprintf(text, sizeof text,
             "rlx 1 graph (input %%x: %s, param %%w: %s) { %%y = %s return %%y }", x, w, s->graph);
    test_note(t, "%s", text);
    expect_ok(t, rlx_model_parse(p->ctx, rlx_cstr(text), &m, &p->err));
    return m;
}

static void run(struct test *t, struct place *p, rlx_session *s, const struct shape *of, float *x,
                float *y)
{
    rlx_binding in = {"x", tensor_of(of->x, x)}, out = {"y", tensor_of(of->y, y)};

    expect_ok(t,
              rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                              &p->err));
}

/* The param twice, so that the copy is made anew; then the same without the policy. */
static void compare(struct test *t, struct place *p, const struct shape *of)
{
    static float x[MOST], w[MOST], got[MOST], want[MOST];
    size_t xs = tensor_of(of->x, x).bytes / 4, ws = tensor_of(of->w, w).bytes / 4;
    size_t ys = tensor_of(of->y, got).bytes / 4;
    rlx_model *m = model_of(t, p, of);
    rlx_session *half = NULL, *plain = NULL;
    rlx_tensor param = tensor_of(of->w, w);

    if (!m)
        return;
    fill(x, xs, 1);
    fill(w, ws, 2);
    if (expect_ok(t, rlx_model_set_param(m, "w", &param, &p->err)) &&
        expect_ok(t, rlx_session_create(
                         m, p->dev,
                         &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .f16_weights = true},
                         &half, &p->err)) &&
        expect_ok(t, rlx_session_create(m, p->dev, NULL, &plain, &p->err)))
        for (uint32_t round = 0; round < 2; round++) {
            fill(w, ws, 3 + round);
            expect_ok(t, rlx_session_set_param(half, "w", &param, &p->err));
            run(t, p, half, of, x, got);
            if (on_gpu(t))
                round_all(w, ws);
            expect_ok(t, rlx_session_set_param(plain, "w", &param, &p->err));
            run(t, p, plain, of, x, want);
            expect_close(t, got, want, ys, 1e-6, 1e-5);
        }
    rlx_session_destroy(plain);
    rlx_session_destroy(half);
    rlx_model_destroy(m);
}

TEST_DEVICES(f16_weights, results_of_rounded_weights)
{
    struct place p;

    if (place_open(t, &p, "0"))
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            compare(t, &p, &shapes[i]);
    place_close(&p);
}

/* Bytes of copies: two each, in whole words. */
TEST_DEVICES(f16_weights, copies_are_whole_words)
{
    static const int64_t sizes[][2] = {{3, 8}, {5, 12}, {100, 200}};
    struct place p;

    if (place_open(t, &p, "0"))
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const struct shape s = {"matmul %x, %w", {1, sizes[i][0]}, {sizes[i][0], 1}, {1, 1}};
            rlx_model *m = model_of(t, &p, &s);
            rlx_session *session = NULL;
            rlx_memory_info info = {RLX_SIZED(rlx_memory_info)};
            float w[100] = {0};
            rlx_tensor param = tensor_of(s.w, w);
            if (!m)
                break;
            expect_ok(t, rlx_model_set_param(m, "w", &param, &p.err));
            if (expect_ok(t, rlx_session_create(m, p.dev,
                                                &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                                    .f16_weights = true},
                                                &session, &p.err)) &&
                on_gpu(t)) {
                expect_ok(t, rlx_session_memory(session, &info, &p.err));
                expect_eq_u64(t, info.weight_copies, (uint64_t)sizes[i][1]);
            }
            rlx_session_destroy(session);
            rlx_model_destroy(m);
        }
    place_close(&p);
}

/* More than a kernel sees at once in f32, and less in f16; the copy is made in two parts. */
TEST_DEVICES(f16_weights, twice_what_a_binding_holds)
{
    enum { K = 100, N = 256 };
    static const struct shape of = {"matmul %x, %w", {1, K}, {K, N}, {1, N}};
    static float x[K], w[K * N], got[N], want[N];
    rlx_session *s = NULL;
    rlx_model *m = NULL;
    struct place p;

    if (place_open(t, &p, "65536") && (m = model_of(t, &p, &of)) != NULL) {
        rlx_tensor param = tensor_of(of.w, w);
        fill(x, K, 1);
        fill(w, K * N, 2);
        if (expect_ok(t, rlx_model_set_param(m, "w", &param, &p.err)) &&
            expect_ok(t, rlx_session_create(
                             m, p.dev,
                             &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .f16_weights = true},
                             &s, &p.err)))
            run(t, &p, s, &of, x, got);
        if (on_gpu(t))
            round_all(w, K * N);
        memset(want, 0, sizeof want);
        for (size_t i = 0; i < K * N; i++)
            want[i % N] += x[i / N] * w[i];
        expect_close(t, got, want, N, 1e-6, 1e-5);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    place_close(&p);
}
