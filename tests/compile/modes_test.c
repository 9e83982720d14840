/* modes_test.c: with fusion_test.c line 3 of runtime.md 10: what must not change a result:
 * the number of threads, memory reuse, in-place work; and what must not change it by more than the
 * tolerance: the instruction-set level. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/graph.h"
#include "test.h"

/* Large enough that every kernel cuts its work into several blocks. */
static const char *const graphs[] = {
    "graph (input %a: f32[130,300], input %b: f32[300,170], input %c: f32[170]) {"
    " %m = matmul %a, %b %s = add %m, %c %g = gelu %s %y = softmax %g return %y }",
    "graph (input %a: f16[70,130], input %b: f16[130,65]) { %m = matmul %a, %b %y = relu %m return "
    "%y }",
    "graph (input %x: f32[300000]) { %y = reduce_sum %x axes=[0] return %y }",
    "graph (input %x: f32[700,500]) { %s = reduce_sum %x axes=[0] %m = reduce_max %x axes=[1] "
    "return %s, %m }",
    "graph (input %x: f32[40,6000]) { %c = cumsum %x %s = sort %c %y = exp %x return %s, %y }",
    "graph (input %x: f32[2,16,30,30], input %w: f32[24,16,3,3]) {"
    " %c = conv %x, %w padding=[1,1] %p = pool %c kind=mean kernel_size=[3,3] stride=[2,2]"
    " %g = conv_backward_weight %x, %c kernel_size=[3,3] padding=[1,1] return %p, %g }",
    "graph (input %q: f32[2,4,150,32], input %k: f32[2,4,220,32], input %v: f32[2,4,220,32]) {"
    " %y = attention %q, %k, %v num_heads=4 head_dim=32 mask_kind=causal"
    " %g = attention_backward %q, %k, %v, %y num_heads=4 head_dim=32 mask_kind=causal wrt=key "
    "return %y, %g }",
    "graph (input %x: f32[500,256], input %g: f32[256], input %b: f32[256]) {"
    " %n = layer_norm %x, %g, %b %d = layer_norm_backward_gamma %x, %n %i = "
    "layer_norm_backward_input %x, %g, %n"
    " return %n, %d, %i }",
    "graph (input %x: f32[4000,8], input %t: f32[4000]) { %i = cast %t to=i32 %y = scatter_add %x, "
    "%i out_dim=2"
    " %z = transpose %x perm=[1,0] return %y, %z }",
    "graph (input %x: f32[30,192]) { %y = fft %x return %y }",
    "graph (input %x: f32[64,1000]) { %s = sample %x seed=3 top_k=50 top_p=0.9 %r = rng_normal "
    "shape=[70000]"
    " return %s, %r }",
};
#define GRAPH_COUNT (sizeof graphs / sizeof graphs[0])

struct results {
    void *data[4];
    size_t bytes[4];
    rlx_dtype dtype[4];
    size_t count;
};

static void free_results(struct results *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->data[i]);
}

static bool fill_input(rlx_model *m, size_t i, rlx_binding *b, char *name)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    size_t count = 1;

    rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL);
    memcpy(name, info.name.ptr, info.name.len);
    name[info.name.len] = 0;
    *b = (rlx_binding){name, {.dtype = RLX_DTYPE_f32, .rank = info.rank}};
    for (int32_t a = 0; a < info.rank; a++)
        count *= (size_t)(b->tensor.dim[a] = info.dim[a]);
    float *x = malloc(count * sizeof *x);
    for (size_t k = 0; x && k < count; k++) {
        uint32_t h = (uint32_t)(k + i * 7919) * 2654435761u;
        x[k] = (float)(h >> 8) / 8388608.0f - 1;
    }
    b->tensor.data = x;
    b->tensor.bytes = count * sizeof *x;
    return x != NULL;
}

static bool run(struct test *t, const char *device, int threads, const rlx_session_desc *desc,
                const char *graph, struct results *out)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    char text[2048], name[4][32], outs[4][32];
    rlx_binding in[4] = {0}, o[4];

    *out = (struct results){0};
    snprintf(text, sizeof text, "rlx 1\n%s", graph);
    bool ok = rlx_context_create(
                  RLX_VERSION, &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = threads},
                  &ctx, &err) == RLX_OK &&
              rlx_device_open(ctx, device, &dev, &err) == RLX_OK &&
              rlx_model_parse(ctx, rlx_cstr(text), &m, &err) == RLX_OK &&
              rlx_session_create(m, dev, desc, &s, &err) == RLX_OK;
    size_t inputs = rlx_model_io_count(m, RLX_IO_INPUT);
    for (size_t i = 0; ok && i < inputs; i++)
        ok = fill_input(m, i, &in[i], name[i]);
    out->count = rlx_model_io_count(m, RLX_IO_OUTPUT);
    for (size_t i = 0; ok && i < out->count; i++) {
        snprintf(outs[i], sizeof outs[i], "out%zu", i);
        o[i].name = outs[i];
        rlx_session_output_shape(s, i, &o[i].tensor, &err);
        out->bytes[i] = o[i].tensor.bytes;
        out->dtype[i] = o[i].tensor.dtype;
        out->data[i] = o[i].tensor.data = calloc(1, out->bytes[i] + 1);
    }
    ok = ok && rlx_session_run(
                   s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, o, out->count, NULL, 0},
                   &err) == RLX_OK;
    if (!ok)
        fail(t, "%s in %s", err.message, graph);
    for (size_t i = 0; i < inputs; i++)
        free(in[i].tensor.data);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return ok;
}

static void expect_same_bits(struct test *t, const struct results *a, const struct results *b)
{
    for (size_t i = 0; i < a->count; i++)
        expect(t, a->bytes[i] == b->bytes[i] && memcmp(a->data[i], b->data[i], a->bytes[i]) == 0);
}

TEST(modes, any_number_of_threads_gives_the_same_bits)
{
    static const int counts[] = {2, 3, 7};

    for (size_t g = 0; g < GRAPH_COUNT; g++) {
        struct results one, many;
        test_note(t, "graph %zu", g);
        if (!run(t, "cpu", 1, NULL, graphs[g], &one))
            continue;
        for (size_t i = 0; i < 3; i++) {
            if (run(t, "cpu", counts[i], NULL, graphs[g], &many))
                expect_same_bits(t, &one, &many);
            free_results(&many);
        }
        free_results(&one);
    }
}

/* Whether there is a device of this kind; if not, the test is skipped. */
static bool has_device(struct test *t, const char *device)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_error err;

    if (!expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err)))
        return false;
    bool there = !test_no_device(t, device, rlx_device_open(ctx, device, &dev, &err), err.message);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return there;
}

TEST_DEVICES_SLOW(modes, reuse_and_in_place_do_not_show)
{
    const rlx_session_desc modes[] = {
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_reuse = true, .check_plan = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_in_place = true, .check_plan = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.alignment = 16, .check_plan = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.alignment = 32, .check_plan = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.alignment = 256, .check_plan = true)},
        {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_optimize = true)},
    };

    if (!has_device(t, test_device(t)))
        return;
    for (size_t g = 0; g < GRAPH_COUNT; g++) {
        struct results plain, other;
        test_note(t, "graph %zu", g);
        if (!run(t, test_device(t), 2, NULL, graphs[g], &plain))
            continue;
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
            if (run(t, test_device(t), 2, &modes[i], graphs[g], &other))
                expect_same_bits(t, &plain, &other);
            free_results(&other);
        }
        free_results(&plain);
    }
}

/* Levels may contract multiplications and additions differently; 1e-4 of the largest is generous to
 * that and far below any mistake. Indices and random numbers must agree exactly. */
TEST(modes, instruction_set_levels_agree)
{
    for (size_t g = 0; g < GRAPH_COUNT; g++) {
        struct results best, base;
        test_note(t, "graph %zu", g);
        if (!run(t, "cpu", 2, NULL, graphs[g], &best))
            continue;
        if (run(t, "cpu:baseline", 2, NULL, graphs[g], &base))
            for (size_t i = 0; i < best.count; i++) {
                const float *x = best.data[i], *y = base.data[i];
                double most = 0, apart = 0;
                if (best.dtype[i] != RLX_DTYPE_f32) {
                    if (best.dtype[i] == RLX_DTYPE_i32)
                        expect(t, memcmp(x, y, best.bytes[i]) == 0);
                    continue;
                }
                for (size_t k = 0; k < best.bytes[i] / 4; k++) {
                    most = fmax(most, fabs((double)x[k]));
                    apart = fmax(apart, fabs((double)x[k] - (double)y[k]));
                }
                expect(t, apart <= 1e-4 * most);
            }
        free_results(&base);
        free_results(&best);
    }
}
