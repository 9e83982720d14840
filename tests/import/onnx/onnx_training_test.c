/* onnx_training_test.c: optimisers and gradients, beyond what ONNX's own tests have. */
#include <math.h>

#include "onnx_node_world.h"

#define TRAINING "ai.onnx.preview.training"

static const float rate = 0.1f, x[] = {1, -2}, g[] = {0.5f, 0.25f}, zeros[2];

static struct one optimiser(const char *op, const int64_t *steps, size_t memories)
{
    struct one o = one_node(TRAINING, op, 1, 1 + memories);

    one_in_f32(&o, RLX_EMPTY, &rate);
    one_in(&o, RLX_DTYPE_i64, RLX_EMPTY, steps);
    one_in_f32(&o, RLX_LIST(2), x);
    one_in_f32(&o, RLX_LIST(2), g);
    for (size_t i = 0; i < memories; i++)
        one_in_f32(&o, RLX_LIST(2), zeros);
    return o;
}

/* The first step takes the gradient whole, later ones beta of it. */
TEST(onnx_training, momentum_begins_with_the_gradient)
{
    static const int64_t first = 0, later = 3;
    struct one o = optimiser("Momentum", &first, 1);

    one_float(&o, "alpha", 0.9f);
    one_float(&o, "beta", 0.5f);
    one_float(&o, "norm_coefficient", 0);
    one_text(&o, "mode", "standard");
    expect_one(t, &o, 0, 1e-6, 2, (const float[]){0.95f, -2.025f});
    o.in[1].tensor.data = (void *)(uintptr_t)&later;
    expect_one(t, &o, 0, 1e-6, 2, (const float[]){0.975f, -2.0125f});
    expect_one(t, &o, 1, 1e-6, 2, (const float[]){0.25f, 0.125f});
}

TEST(onnx_training, adam_makes_up_for_its_beginning)
{
    static const int64_t first = 0, later = 1;
    struct one o = optimiser("Adam", &first, 2);
    float step = 0.1f * 0.1f / sqrtf(0.001f); /* but for epsilon */

    expect_one(t, &o, 0, 1e-4, 2, (const float[]){1 - step, -2 - step});
    o.in[1].tensor.data = (void *)(uintptr_t)&later; /* V / sqrt(H) is 1 then */
    expect_one(t, &o, 0, 1e-4, 2, (const float[]){0.9f, -2.1f});
    expect_one(t, &o, 2, 1e-8, 2, (const float[]){0.00025f, 0.0000625f});
}

TEST(onnx_training, what_does_not_fit_is_named)
{
    static const int64_t first = 0;
    struct one o = optimiser("Adagrad", &first, 2);

    expect_one_refused(t, &o, RLX_ERROR_FORMAT, "6 inputs, not 2 plus a multiple of 3");
    o = one_node(TRAINING, "Adagrad", 1, 2);
    one_in_f32(&o, RLX_EMPTY, &rate);
    one_in(&o, RLX_DTYPE_i64, RLX_EMPTY, &first);
    one_in_f32(&o, RLX_LIST(2), x);
    one_in_f32(&o, RLX_LIST(1), g);
    one_in_f32(&o, RLX_LIST(2), zeros);
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "input 3 differs in type from input 2");
    o = optimiser("Momentum", &first, 1);
    one_text(&o, "mode", "quick");
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "mode \"quick\"");
}

/* ---- Gradient ---- */

/* y = x * w, then its gradient; `y_name` and `x_name`: what the node names. */
static struct bytes product(bool known, const char *y_name, const char *x_name, const char *given)
{
    struct bytes graph = {.len = 0}, n = {.len = 0}, a = {.len = 0}, m, opset = {.len = 0};
    static const int64_t two[] = {2};

    if (known)
        put_tensor(&graph, "x", 1, two, 1, x, sizeof x);
    else
        put_value(&graph, 11, "x", 1, (const char *const[]){"n", NULL});
    put_value(&graph, 11, "w", 1, (const char *const[]){"n", NULL});
    NODE(&graph, "Mul", LIST("x", "w"), "y");
    put_text(&n, 1, given);
    put_text(&n, 1, "w");
    put_text(&n, 2, "dx");
    put_text(&n, 4, "Gradient");
    put_text(&n, 7, TRAINING);
    put_text(&a, 1, "xs");
    put_text(&a, 9, x_name);
    put_sub(&n, 5, &a);
    a.len = 0;
    put_text(&a, 1, "y");
    put_text(&a, 4, y_name);
    put_sub(&n, 5, &a);
    put_sub(&graph, 1, &n);
    put_value(&graph, 12, "dx", 1, NULL);
    m = finish(&graph, 13);
    put_text(&opset, 1, TRAINING);
    put_int(&opset, 2, 1);
    put_sub(&m, 8, &opset);
    return m;
}

TEST(onnx_training, a_gradient_is_nodes_of_the_graph)
{
    struct bytes m = product(false, "y", "x", "x");
    struct result r = import(m.at, m.len);
    struct text text;

    text_init(&text, mem_default());
    if (expect_status(t, r.status, RLX_OK)) {
        expect_ok(t, ir_print(r.m.mod, NULL, &text, &r.diag));
        expect_contains(t, text.at, "%dx = mul ");
    }
    text_free(&text);
    onnx_imported_free(&r.m);
}

TEST(onnx_training, gradients_that_cannot_be_told_are_refused)
{
    struct bytes m = product(true, "y", "x", "x");

    expect_refused(t, &m, RLX_ERROR_UNSUPPORTED, "\"x\", which is known at load");
    m = product(false, "z", "x", "x");
    expect_refused(t, &m, RLX_ERROR_FORMAT, "there is no tensor \"z\" before it");
    m = product(false, "y", "x", "w");
    expect_refused(t, &m, RLX_ERROR_UNSUPPORTED, "in a different place than the graph");
}
