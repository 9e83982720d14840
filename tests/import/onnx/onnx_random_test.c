/* onnx_random_test.c: random numbers of ONNX: what can be said of them for sure. */
#include <math.h>

#include "onnx_node_world.h"

enum { DRAWS = 4096 };

/* The output's elements, which are to be DRAWS. */
static void draw(struct test *t, const struct one *o, float *out)
{
    rlx_tensor got[ONE_OUTPUTS] = {{0}};
    rlx_context *ctx;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    if (one_run(t, ctx, o, got) && expect_eq(t, got[0].bytes / rlx_dtype_size(got[0].dtype), DRAWS))
        for (size_t i = 0; i < DRAWS; i++)
            out[i] = one_element(&got[0], i);
    for (size_t i = 0; i < o->outputs; i++)
        rlx_tensor_free(ctx, &got[i]);
    rlx_context_destroy(ctx);
}

static double mean_of(const float *at, double power)
{
    double sum = 0;

    for (size_t i = 0; i < DRAWS; i++)
        sum += pow((double)at[i], power);
    return sum / DRAWS;
}

static struct one normal(float seed)
{
    struct one o = one_node("", "RandomNormal", 13, 1);

    ONE_INTS(&o, "shape", 64, DRAWS / 64);
    one_float(&o, "mean", 2);
    one_float(&o, "scale", 0.5f);
    one_float(&o, "seed", seed);
    return o;
}

TEST(onnx_random, numbers_follow_their_distribution_and_seed)
{
    static float a[DRAWS], b[DRAWS];
    struct one o = normal(1);

    draw(t, &o, a);
    draw(t, &o, b);
    expect(t, memcmp(a, b, sizeof a) == 0);
    expect_near(t, mean_of(a, 1), 2, 0.05);
    expect_near(t, mean_of(a, 2) - mean_of(a, 1) * mean_of(a, 1), 0.25, 0.03);
    o = normal(2);
    draw(t, &o, b);
    expect(t, memcmp(a, b, sizeof a) != 0);

    o = one_node("", "RandomUniform", 13, 1); /* of f64 */
    ONE_INTS(&o, "shape", DRAWS);
    one_int(&o, "dtype", 11);
    one_float(&o, "low", -1);
    one_float(&o, "high", 3);
    draw(t, &o, a);
    expect_near(t, mean_of(a, 1), 1, 0.1);
    for (size_t i = 0; i < DRAWS; i++)
        expect(t, a[i] >= -1 && a[i] < 3);
}

TEST(onnx_random, what_is_sure_is_drawn)
{
    static float p[DRAWS], got[DRAWS];
    static const float logits[] = {-INFINITY, 0, -INFINITY, 0, -INFINITY, -INFINITY};
    struct one o = one_node("", "Bernoulli", 15, 1);

    for (size_t i = 0; i < DRAWS; i++)
        p[i] = i % 2 ? 1 : i % 4 ? 0.25f : 0;
    o.symbolic = 0;
    one_in_f32(&o, RLX_LIST(DRAWS), p);
    draw(t, &o, got);
    for (size_t i = 0; i < DRAWS; i++)
        expect(t, i % 2 ? got[i] == 1 : i % 4 ? got[i] == 0 || got[i] == 1 : got[i] == 0);
    expect_near(t, mean_of(got, 1), 0.5 + 0.25 * 0.25, 0.03);

    o = one_node("", "Multinomial", 13, 1);
    one_in_f32(&o, RLX_LIST(2, 3), logits);
    one_int(&o, "sample_size", 3);
    one_int(&o, "dtype", 7);
    expect_one(t, &o, 0, 0, 6, (const float[]){1, 1, 1, 0, 0, 0});
}

static struct one dropout(const float *x, float ratio)
{
    static const uint8_t yes = 1;
    struct one o = one_node("", "Dropout", 13, 2);

    one_in_f32(&o, RLX_LIST(DRAWS), x);
    one_known(&o, RLX_DTYPE_f32, RLX_EMPTY, &ratio);
    one_known(&o, RLX_DTYPE_bool, RLX_EMPTY, &yes);
    return o;
}

TEST(onnx_random, dropout_keeps_the_mean)
{
    static float x[DRAWS], y[DRAWS];
    struct one o;

    for (size_t i = 0; i < DRAWS; i++)
        x[i] = 3;
    o = dropout(x, 0.25f);
    draw(t, &o, y);
    for (size_t i = 0; i < DRAWS; i++)
        expect(t, y[i] == 4 || y[i] == 0);
    expect_near(t, mean_of(y, 1), 3, 0.15);
    o = dropout(x, 0);
    draw(t, &o, y);
    expect(t, memcmp(x, y, sizeof x) == 0);
    o = dropout(x, 1);
    expect_one_refused(t, &o, RLX_ERROR_FORMAT, "a ratio of 1");
}

TEST(onnx_random, outputs_say_that_they_are_random)
{
    static float x[DRAWS];
    struct one o[] = {dropout(x, 0.25f), dropout(x, 0)};

    for (int i = 0; i < 2; i++) {
        const char *path;
        rlx_context *ctx;
        rlx_model *m;
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        require(t, one_write(t, &o[i], &path));
        require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
        require_ok(t, rlx_model_load(ctx, path, NULL, &m, NULL));
        require_ok(t, rlx_model_io(m, RLX_IO_OUTPUT, 1, &info, NULL));
        expect_eq(t, info.random, i == 0);
        require_ok(t, rlx_model_io(m, RLX_IO_INPUT, 0, &info, NULL));
        expect(t, !info.random);
        rlx_model_destroy(m);
        rlx_context_destroy(ctx);
    }
}

TEST(onnx_random, what_cannot_be_drawn_is_named)
{
    struct one o = one_node("", "RandomNormal", 13, 1);

    expect_one_refused(t, &o, RLX_ERROR_FORMAT, "there is no shape");
    ONE_INTS(&o, "shape", 2, -1);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "axis 1 has -1 elements");
    o = one_node("", "RandomUniform", 13, 1);
    ONE_INTS(&o, "shape", 2);
    one_int(&o, "dtype", 6);
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "random elements of type INT32");
}
