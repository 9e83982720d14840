/* recompute_test.c: with a budget of activations a training graph takes less memory, and gives the
 * same bits. */
#include <stdio.h>
#include <string.h>

#include "../graph/graph_world.h"
#include "rlx/autodiff.h"

enum { LAYERS = 8, ROWS = 64, WIDTH = 96, OUTPUTS = LAYERS + 1 };

/* h becomes h + gelu(h w) noise, layer after layer; the outputs are the loss, the gradient of each
 * w. */
static bool build(struct test *t, struct world *v, rlx_model **out)
{
    rlx_value w[LAYERS], d[LAYERS];
    rlx_error err;
    char name[16];

    rlx_value h = rlx_input(v->g, "x", RLX_DTYPE_f32, RLX_LIST(ROWS, WIDTH));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        w[i] = rlx_param(v->g, name, RLX_DTYPE_f32, RLX_LIST(WIDTH, WIDTH));
        rlx_value noise =
            rlx_rng_normal(v->g, RLX_NO_VALUE, RLX_LIST(ROWS, WIDTH), 1, 0.1f, (uint64_t)i);
        rlx_value y = rlx_gelu(v->g, rlx_matmul(v->g, h, w[i], false, false));
        y = rlx_mul(v->g, y, noise);
        h = rlx_add(v->g, h,
                    rlx_transpose(v->g, rlx_transpose(v->g, y, RLX_LIST(1, 0)), RLX_LIST(1, 0)));
    }
    rlx_value loss = rlx_reduce_sum(v->g, rlx_mul(v->g, h, h), RLX_LIST(0, 1), false);
    if (!expect_ok(t, rlx_gradient(v->g, loss, w, LAYERS, d, &err)))
        return false;
    rlx_output(v->g, loss);
    for (int i = 0; i < LAYERS; i++)
        rlx_output(v->g, d[i]);
    if (!expect_ok(t, rlx_model_create(v->g, out, &err)))
        return false;
    v->g = NULL;
    for (int i = 0; i < LAYERS; i++) {
        static float value[WIDTH * WIDTH];
        const rlx_tensor p = {RLX_DTYPE_f32, 2, {WIDTH, WIDTH}, value, sizeof value};
        for (size_t k = 0; k < WIDTH * WIDTH; k++)
            value[k] = (float)((k * 31 + (size_t)i * 7) % 101) / 700 - 0.07f;
        snprintf(name, sizeof name, "w%d", i);
        if (!expect_ok(t, rlx_model_set_param(*out, name, &p, &err)))
            return false;
    }
    return true;
}

struct results {
    float loss, d[LAYERS][WIDTH * WIDTH];
    rlx_memory_info memory;
};

static bool compute(struct test *t, struct world *v, rlx_model *m, uint64_t budget,
                    struct results *out)
{
    static float x[ROWS * WIDTH];
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .activation_budget = budget};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {ROWS, WIDTH}, x, sizeof x}}, got[OUTPUTS];
    char name[OUTPUTS][16];
    rlx_session *s;
    rlx_error err;

    for (size_t k = 0; k < ROWS * WIDTH; k++)
        x[k] = (float)(k % 37) / 37 - 0.5f;
    for (int i = 0; i < OUTPUTS; i++) {
        snprintf(name[i], sizeof name[i], "out%d", i);
        got[i] = (rlx_binding){name[i], {.dtype = RLX_DTYPE_f32}};
        got[i].tensor.data = i ? (void *)out->d[i - 1] : &out->loss;
        got[i].tensor.bytes = i ? sizeof out->d[0] : sizeof out->loss;
    }
    out->memory = (rlx_memory_info){RLX_SIZED(rlx_memory_info)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, got, OUTPUTS, NULL, 0};
    if (!expect_ok(t, rlx_session_create(m, v->dev, &desc, &s, &err)))
        return false;
    bool ok = expect_ok(t, rlx_session_run(s, &run, &err)) &&
              expect_ok(t, rlx_session_memory(s, &out->memory, &err));
    rlx_session_destroy(s);
    return ok;
}

TEST(recompute, less_memory_and_the_same_bits)
{
    static struct results plain, got;
    struct world v;
    rlx_model *m;

    require(t, open_world(t, &v));
    require(t, build(t, &v, &m));
    require(t, compute(t, &v, m, 0, &plain));
    expect_eq(t, plain.memory.recomputed, 0);
    expect_eq(t, plain.memory.kept, 0);

    require(t, compute(t, &v, m, UINT64_MAX, &got));
    expect_eq(t, got.memory.recomputed, 0);
    expect_eq(t, got.memory.alive, got.memory.kept);
    const uint64_t all = got.memory.kept;
    for (int percent = 90; percent >= 70; percent -= 10) {
        uint64_t budget = all * (uint64_t)percent / 100;
        test_note(t, "%d %% of %llu", percent, (unsigned long long)all);
        require(t, compute(t, &v, m, budget, &got));
        expect(t, got.memory.alive <= budget);
        expect(t, got.memory.activations < plain.memory.activations);
        expect(t, got.memory.recomputed > 0 && got.memory.recomputed_flops > 0);
        expect(t, got.memory.recomputed_flops < got.memory.flops);
        expect(t, memcmp(&plain.loss, &got.loss, sizeof plain.loss) == 0);
        expect(t, memcmp(plain.d, got.d, sizeof plain.d) == 0);
    }
    rlx_model_destroy(m);
    close_world(&v);
}

/* It goes as far as it can. */
TEST(recompute, a_budget_that_cannot_be_met)
{
    static struct results plain, got;
    struct world v;
    rlx_model *m;

    require(t, open_world(t, &v));
    require(t, build(t, &v, &m));
    require(t, compute(t, &v, m, 0, &plain));
    require(t, compute(t, &v, m, 1, &got));
    expect(t, got.memory.alive > 1 && got.memory.alive < got.memory.kept);
    expect(t, memcmp(plain.d, got.d, sizeof plain.d) == 0);
    rlx_model_destroy(m);
    close_world(&v);
}
