/* onnx_microsoft_test.c: ops of com.microsoft; values as ONNX Runtime gives them. */
#include "onnx_node_world.h"

#define MS "com.microsoft"
#define U8 RLX_DTYPE_u8
#define I8 RLX_DTYPE_i8
#define F32 RLX_DTYPE_f32

static const uint8_t x8[] = {0, 50, 100, 150, 200, 255}, y8[] = {10, 128, 250};

/* A scale and a zero point. */
static void one_scale(struct one *o, float scale, uint8_t zero)
{
    one_known(o, F32, RLX_EMPTY, &scale);
    one_known(o, U8, RLX_EMPTY, &zero);
}

static struct one quantised(const char *op)
{
    struct one o = one_node(MS, op, 1, 1);

    o.symbolic = 0;
    one_in(&o, U8, RLX_LIST(2, 3), x8);
    o.symbolic = -1;
    one_scale(&o, 0.0213f, 100);
    return o;
}

/* ---- integers ---- */

TEST(onnx_microsoft, quantised_elements)
{
    struct one o = quantised("QLinearAdd");

    one_in(&o, U8, RLX_LIST(3), y8);
    one_scale(&o, 0.0137f, 9);
    one_scale(&o, 0.0319f, 90);
    expect_one(t, &o, 0, 0, 6, (const float[]){24, 108, 194, 124, 208, 255});
    o = quantised("QLinearMul");
    one_in(&o, U8, RLX_LIST(3), y8);
    one_scale(&o, 0.0137f, 9);
    one_scale(&o, 0.0319f, 90);
    expect_one(t, &o, 0, 0, 6, (const float[]){89, 36, 90, 90, 199, 255});
    o = quantised("QLinearSigmoid");
    one_scale(&o, 1 / 256.0f, 0);
    expect_one(t, &o, 0, 0, 6, (const float[]){27, 66, 128, 190, 229, 247});
    o = quantised("QLinearLeakyRelu");
    one_scale(&o, 0.0319f, 90);
    one_float(&o, "alpha", 0.25f);
    expect_one(t, &o, 0, 0, 6, (const float[]){73, 82, 90, 123, 157, 193});
    o = quantised("QLinearSoftmax");
    one_scale(&o, 1 / 256.0f, 0);
    one_int(&o, "axis", -1);
    one_int(&o, "opset", 13);
    expect_one(t, &o, 0, 0, 6, (const float[]){21, 60, 175, 19, 56, 181});
}

TEST(onnx_microsoft, quantised_parts_get_one_scale)
{
    struct one o = one_node(MS, "QLinearConcat", 1, 1);

    one_scale(&o, 0.0319f, 90);
    one_in(&o, U8, RLX_LIST(2, 3), x8);
    one_scale(&o, 0.0213f, 100);
    one_in(&o, U8, RLX_LIST(2, 3), x8);
    one_scale(&o, 0.0137f, 9);
    one_int(&o, "axis", 1);
    expect_one(t, &o, 0, 0, 12,
               (const float[]){23, 57, 90, 86, 108, 129, 123, 157, 193, 151, 172, 196});
    expect_one_survives(t, &o);
    one_in(&o, U8, RLX_LIST(2, 3), x8);
    expect_one_refused(t, &o, RLX_ERROR_FORMAT, "9 inputs, not 2 plus a multiple of 3");
}

static struct one pooled(const char *op, rlx_list shape, bool last)
{
    static uint8_t x[16];
    struct one o = one_node(MS, op, 1, 1);

    for (int i = 0; i < 16; i++)
        x[i] = (uint8_t)(16 * i);
    one_in(&o, U8, shape, x);
    one_scale(&o, 0.02f, 10);
    one_scale(&o, 0.03f, 20);
    one_int(&o, "channels_last", last);
    return o;
}

TEST(onnx_microsoft, quantised_pools)
{
    struct one o = pooled("QLinearAveragePool", RLX_LIST(1, 1, 4, 4), false);

    ONE_INTS(&o, "kernel_shape", 2, 2);
    ONE_INTS(&o, "strides", 2, 2);
    ONE_INTS(&o, "pads", 1, 1, 1, 1);
    expect_one(t, &o, 0, 0, 9, (const float[]){13, 29, 45, 77, 93, 109, 141, 157, 173});
    o = pooled("QLinearAveragePool", RLX_LIST(1, 4, 2, 2), true);
    ONE_INTS(&o, "kernel_shape", 2, 2);
    expect_one(t, &o, 0, 0, 6, (const float[]){45, 56, 88, 99, 131, 141});
    o = pooled("QLinearGlobalAveragePool", RLX_LIST(1, 2, 2, 4), false);
    expect_one(t, &o, 0, 0, 2, (const float[]){51, 136});
    o = pooled("QLinearGlobalAveragePool", RLX_LIST(1, 2, 2, 4), true);
    expect_one(t, &o, 0, 0, 4, (const float[]){77, 88, 99, 109});
}

static const uint8_t a8[] = {1, 2, 3, 40, 50, 60}, two = 2;
static const int8_t b8[] = {1, -2, 30, 4, -50, 60}, b8_turned[] = {1, 30, -50, -2, 4, 60};
static const int8_t zeros8[] = {1, -1}, none8[2];
static const float rows[] = {1, -2, 0.5f, 0, 3, -1}, half = 0.5f;
static const float scales[] = {0.1f, 0.2f}, bias[] = {10, 20};

TEST(onnx_microsoft, products_of_whole_numbers)
{
    static const int32_t whole[] = {7, -7};
    static const float three = 3;
    static const uint8_t hundred = 100;
    struct one o = one_node(MS, "DynamicQuantizeMatMul", 1, 1);

    one_in(&o, F32, RLX_LIST(2, 3), rows);
    one_known(&o, I8, RLX_LIST(3, 2), b8);
    one_known(&o, F32, RLX_LIST(2), scales);
    one_known(&o, I8, RLX_LIST(2), zeros8);
    one_known(&o, F32, RLX_LIST(2), bias);
    expect_one(t, &o, 0, 1e-4, 4, (const float[]){1.6f, 24.01961f, 23.8f, 10.8f});

    o = one_node(MS, "MatMulIntegerToFloat", 1, 1);
    one_in(&o, U8, RLX_LIST(2, 3), a8);
    one_known(&o, I8, RLX_LIST(3, 2), b8);
    one_known(&o, F32, RLX_EMPTY, &half);
    one_known(&o, F32, RLX_LIST(2), scales);
    one_known(&o, U8, RLX_EMPTY, &two);
    one_known(&o, I8, RLX_LIST(2), zeros8);
    one_known(&o, F32, RLX_LIST(2), bias);
    expect_one(t, &o, 0, 1e-4, 4, (const float[]){7.45f, 26.2f, -68.3f, 394});

    o = one_node(MS, "QGemm", 1, 1);
    one_in(&o, U8, RLX_LIST(2, 3), a8);
    one_known(&o, F32, RLX_EMPTY, &half);
    one_known(&o, U8, RLX_EMPTY, &two);
    one_known(&o, I8, RLX_LIST(2, 3), b8_turned);
    one_known(&o, F32, RLX_LIST(2), scales);
    one_known(&o, I8, RLX_LIST(2), none8);
    one_known(&o, RLX_DTYPE_i32, RLX_LIST(2), whole);
    one_known(&o, F32, RLX_EMPTY, &three);
    one_known(&o, U8, RLX_EMPTY, &hundred);
    one_int(&o, "transB", 1);
    expect_one(t, &o, 0, 0, 4, (const float[]){99, 102, 76, 220});
}

TEST(onnx_microsoft, a_scale_per_row_is_refused)
{
    struct one o = one_node(MS, "MatMulIntegerToFloat", 1, 1);

    one_in(&o, U8, RLX_LIST(2, 3), a8);
    one_known(&o, I8, RLX_LIST(3, 2), b8);
    one_known(&o, F32, RLX_LIST(2), scales);
    one_known(&o, F32, RLX_LIST(2), scales);
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "input 2 is not one number");
}

TEST(onnx_microsoft, quantised_attention)
{
    static const uint8_t x[] = {10, 20, 30, 40, 50, 0, 20, 90}, zero = 20;
    static const float x_scale = 0.02f, w_scale = 0.05f;
    static const int8_t w_zero = 1;
    struct one o = one_node(MS, "QAttention", 1, 1);
    int8_t w[48];
    float added[12];

    for (int i = 0; i < 48; i++)
        w[i] = (int8_t)((3 * (i / 12) + 5 * (i % 12)) % 11 - 5);
    for (int i = 0; i < 12; i++)
        added[i] = (float)i * 0.1f;
    o.symbolic = 1;
    one_in(&o, U8, RLX_LIST(1, 2, 4), x);
    one_known(&o, I8, RLX_LIST(4, 12), w);
    one_known(&o, F32, RLX_LIST(12), added);
    one_known(&o, F32, RLX_EMPTY, &x_scale);
    one_known(&o, F32, RLX_EMPTY, &w_scale);
    one_absent(&o);
    one_known(&o, U8, RLX_EMPTY, &zero);
    one_known(&o, I8, RLX_EMPTY, &w_zero);
    one_int(&o, "num_heads", 2);
    expect_one(t, &o, 0, 1e-5, 8,
               (const float[]){0.7046571f, 1.055206f, 0.8566543f, 1.205451f, 0.7041332f, 1.05552f,
                               0.852051f, 1.204196f});
}

/* ---- what an optimiser makes ---- */

static struct one fused_conv(const char *activation, const float *residual)
{
    static const float x[] = {-4, -3, -2, -1, 0, 1, 2, 3, 4};
    static const float w[] = {1, 0, 0, -1, 0, 0.5f, 0.5f, 0}, b[] = {0, 1};
    struct one o = one_node(MS, "FusedConv", 1, 1);

    one_in(&o, F32, RLX_LIST(1, 1, 3, 3), x);
    one_known(&o, F32, RLX_LIST(2, 1, 2, 2), w);
    one_known(&o, F32, RLX_LIST(2), b);
    if (residual)
        one_in(&o, F32, RLX_LIST(1, 2, 2, 2), residual);
    one_text(&o, "activation", activation);
    return o;
}

TEST(onnx_microsoft, activations_behind_products)
{
    static const float five[] = {5, 5, 5, 5, 5, 5, 5, 5}, b[] = {1, 2, 3, 4, 5, 6}, add[] = {1, -1};
    struct one o = fused_conv("LeakyRelu", NULL);

    ONE_FLOATS(&o, "activation_params", 0.5f);
    expect_one(t, &o, 0, 1e-6, 8, (const float[]){-2, -2, -2, -2, -0.5f, 0, 2, 3});
    o = fused_conv("Clip", five);
    ONE_FLOATS(&o, "activation_params", 0, 4);
    expect_one(t, &o, 0, 1e-6, 8, (const float[]){1, 1, 1, 1, 4, 4, 4, 4});
    o = fused_conv("Snake", NULL);
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "activation Snake");

    o = one_node(MS, "FusedGemm", 1, 1);
    one_in(&o, F32, RLX_LIST(2, 3), rows);
    one_known(&o, F32, RLX_LIST(3, 2), b);
    one_known(&o, F32, RLX_LIST(2), add);
    one_text(&o, "activation", "LeakyRelu");
    one_float(&o, "activation_alpha", 0.5f);
    one_float(&o, "alpha", 2);
    one_float(&o, "beta", 3);
    expect_one(t, &o, 0, 1e-6, 4, (const float[]){-1, -4.5f, 11, 9});
}

TEST(onnx_microsoft, embeddings_are_added_and_normalised)
{
    static const int32_t words[] = {1, 3, 2, 0}, segments[] = {0, 1, 1, 1}, mask[] = {1, 0, 1, 1};
    static const float word[] = {0, 1, 2, -3, -4, -5, 6, 7, 8, 9, 10, 11};
    static const float place[] = {1, 0, 0, 0, 2, 0, 0, 0, 4}, segment[] = {0.5f, 0, 0, 0, 0, 0.5f};
    static const float gamma[] = {1, 2, 1}, beta[] = {0, 0, 1};
    struct one o = one_node(MS, "EmbedLayerNormalization", 1, 3);

    one_in(&o, RLX_DTYPE_i32, RLX_LIST(2, 2), words);
    one_in(&o, RLX_DTYPE_i32, RLX_LIST(2, 2), segments);
    one_known(&o, F32, RLX_LIST(4, 3), word);
    one_known(&o, F32, RLX_LIST(3, 3), place);
    one_known(&o, F32, RLX_LIST(2, 3), segment);
    one_known(&o, F32, RLX_LIST(3), gamma);
    one_known(&o, F32, RLX_LIST(3), beta);
    one_in(&o, RLX_DTYPE_i32, RLX_LIST(2, 2), mask);
    one_float(&o, "epsilon", 1e-5f);
    expect_one(t, &o, 0, 1e-5, 12,
               (const float[]){1.358729f, -0.6793647f, -0.01904702f, -1.396997f, 1.777997f,
                               1.507999f, -0.7070997f, -1.414199f, 2.414199f, -1.396997f, 1.777997f,
                               1.507999f});
    expect_one(t, &o, 1, 0, 2, (const float[]){1, 2});
    expect_one(t, &o, 2, 0, 12,
               (const float[]){-1.5f, -4, -5, 9, 12, 11.5f, 7, 7, 8.5f, 0, 3, 2.5f});
}

TEST(onnx_microsoft, matrices_and_pictures)
{
    static const float m[] = {2, 1, 1, 1, 4, 0, 0, 0.5f};
    struct one o = one_node(MS, "Inverse", 1, 1);

    o.symbolic = 0;
    one_in(&o, F32, RLX_LIST(2, 2, 2), m);
    expect_one(t, &o, 0, 1e-6, 8, (const float[]){1, -1, -1, 2, 0.25f, 0, 0, 2});
    o = one_node(MS, "Inverse", 1, 1);
    one_in(&o, F32, RLX_LIST(2, 4), m);
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "matrices that are not square");
    o = pooled("NhwcMaxPool", RLX_LIST(1, 4, 2, 2), true);
    ONE_INTS(&o, "kernel_shape", 3, 2);
    ONE_INTS(&o, "strides", 1, 1);
    ONE_INTS(&o, "pads", 1, 0, 0, 0);
    expect_one(t, &o, 0, 0, 6, (const float[]){96, 112, 160, 176, 224, 240});
}
