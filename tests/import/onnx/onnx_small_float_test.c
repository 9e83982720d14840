/* onnx_small_float_test.c: floats of 8 bits and less, code by code, against what their definitions
 * say when they are worked out with ldexp and a search; and what may not be done with them. */
#include <math.h>

#include "onnx_run.h"

/* ---- the formats, as their definitions have them ---- */

struct format {
    int64_t type;
    int bits, exponent, fraction, bias;
    double least, greatest; /* above 0: read off the definition, to check the rest by */
    int greatest_code;
    bool has_inf, is_fnuz; /* fnuz: finite, and the code of -0 is NaN's */
    int nan;               /* the code that NaN becomes */
};

static const struct format formats[] = {
    {ONNX_FLOAT8E4M3FN, 8, 4, 3, 7, 0x1p-9, 448, 0x7e, false, false, 0x7f},
    {ONNX_FLOAT8E4M3FNUZ, 8, 4, 3, 8, 0x1p-10, 240, 0x7f, false, true, 0x80},
    {ONNX_FLOAT8E5M2, 8, 5, 2, 15, 0x1p-16, 57344, 0x7b, true, false, 0x7e},
    {ONNX_FLOAT8E5M2FNUZ, 8, 5, 2, 16, 0x1p-17, 57344, 0x7f, false, true, 0x80},
    {ONNX_FLOAT4E2M1, 4, 2, 1, 1, 0.5, 6, 7, false, false, 8},
    {ONNX_FLOAT6E2M3, 6, 2, 3, 1, 0.125, 7.5, 0x1f, false, false, 0x20},
    {ONNX_FLOAT6E3M2, 6, 3, 2, 3, 0.0625, 28, 0x1f, false, false, 0x20},
};
#define FORMATS (sizeof formats / sizeof formats[0])

static double meaning(const struct format *f, int code)
{
    int sign = 1 << (f->bits - 1), plain = code & (sign - 1), step = 1 << f->fraction;
    double v = plain < step ? ldexp(plain, 1 - f->bias - f->fraction)
                            : ldexp(step + plain % step, plain / step - f->bias - f->fraction);

    if (f->is_fnuz && code == sign)
        return NAN;
    if (plain > f->greatest_code)
        v = f->has_inf && plain == f->greatest_code + 1 ? (double)INFINITY : (double)NAN;
    return code & sign ? -v : v;
}

/* The nearest of all codes, of two as near the even one; by looking at each. */
static int nearest(const struct format *f, double x, bool saturate)
{
    int sign = signbit(x) ? 1 << (f->bits - 1) : 0, best = 0;
    double far = f->greatest - meaning(f, f->greatest_code - 1), a = fabs(x);
    bool four_six = f->bits < 8;

    if (isnan(x))
        return f->is_fnuz || four_six ? f->nan : f->nan | sign;
    for (int code = 0; code <= f->greatest_code; code++) {
        double now = fabs(a - meaning(f, code)), then = fabs(a - meaning(f, best));
        if (now < then || (now == then && code % 2 == 0))
            best = code;
    }
    bool beyond = a > f->greatest + far / 2 || (a == f->greatest + far / 2 && f->greatest_code % 2);
    if (beyond && (saturate || four_six))
        best = f->greatest_code;
    else if (beyond)
        best = f->is_fnuz ? f->nan : f->greatest_code + 1;
    return f->is_fnuz && best == 0 ? 0 : best | sign;
}

static void put_list(struct bytes *g, const char *name, int64_t elem, size_t count,
                     const void *data, size_t bytes)
{
    put_tensor(g, name, elem, (const int64_t[]){(int64_t)count}, 1, data, bytes);
}

#define SOME 400 /* elements of a model, which fits struct bytes */

static bool cast_some(struct test *t, int64_t from, const void *x, size_t size, size_t count,
                      const struct attr *attr, uint8_t *codes)
{
    struct bytes g = {.len = 0};

    put_list(&g, "x", from, count, x, size * count);
    put_op(&g, "Cast", IN("x"), "y", attr);
    return output_of(t, &g, codes, count);
}

/* ---- one way ---- */

/* Codes as a file has them: a stream of bits. */
static size_t pack(uint8_t *out, const uint8_t *code, size_t count, int bits)
{
    size_t bytes = (count * (size_t)bits + 7) / 8;

    memset(out, 0, bytes);
    for (size_t i = 0; i < count * (size_t)bits; i++)
        if (code[i / (size_t)bits] >> (i % (size_t)bits) & 1)
            out[i / 8] |= (uint8_t)(1 << i % 8);
    return bytes;
}

TEST_DEVICES_SLOW(small_float, every_code_is_decoded)
{
    for (size_t k = 0; k < FORMATS; k++) {
        const struct format *f = &formats[k];
        struct bytes g = {.len = 0};
        size_t count = (size_t)1 << f->bits;
        uint8_t code[256], raw[256];
        float got[256];
        for (size_t i = 0; i < count; i++)
            code[i] = (uint8_t)i;
        test_note(t, "%s", onnx_dtype_name(f->type));
        expect(t, meaning(f, 1) == f->least && meaning(f, f->greatest_code) == f->greatest);
        put_list(&g, "x", f->type, count, raw, pack(raw, code, count, f->bits));
        put_op(&g, "Cast", IN("x"), "y", ATTRS({"to", ONNX_FLOAT, NULL}));
        if (!output_of(t, &g, got, count * sizeof(float)))
            return;
        for (size_t i = 0; i < count; i++) {
            double want = meaning(f, (int)i);
            expect(t, isnan(want) ? isnan(got[i])
                                  : (double)got[i] == want && !signbit(got[i]) == !signbit(want));
        }
    }
}

TEST_DEVICES_SLOW(small_float, powers_are_decoded)
{
    struct bytes g = {.len = 0};
    uint8_t code[256];
    float got[256];

    for (int i = 0; i < 256; i++)
        code[i] = (uint8_t)i;
    put_list(&g, "x", ONNX_FLOAT8E8M0, 256, code, 256);
    put_op(&g, "Cast", IN("x"), "y", ATTRS({"to", ONNX_FLOAT, NULL}));
    if (!output_of(t, &g, got, sizeof got))
        return;
    for (int i = 0; i < 255; i++)
        expect(t, (double)got[i] == ldexp(1, i - 127));
    expect(t, isnan(got[255]));
}

/* ---- and back ---- */

/* Numbers at, between and just beside the numbers of a format, and far off. */
static size_t interesting(const struct format *f, double *out)
{
    static const double far[] = {0,          0x1p-149, 0x1p-126, 1e-20,          0.1,
                                 1.0 / 3,    1e6,      0x1p127,  0x1.fffffep127, (double)INFINITY,
                                 (double)NAN};
    size_t n = 0;

    for (int code = 0; code <= f->greatest_code; code++) {
        double a = meaning(f, code),
               b = code < f->greatest_code ? meaning(f, code + 1) : 2 * a - meaning(f, code - 1);
        float mid = (float)((a + b) / 2);
        out[n++] = a;
        out[n++] = (double)mid;
        out[n++] = (double)nextafterf(mid, 0);
        out[n++] = (double)nextafterf(mid, INFINITY);
    }
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
        out[n++] = far[i];
    for (size_t i = 0; i < n; i++)
        out[n + i] = -out[i];
    return 2 * n;
}

static void check_codes(struct test *t, const struct format *f, bool saturate, const double *x,
                        const uint8_t *got, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        test_note(t, "%a as %s, %s", x[i], onnx_dtype_name(f->type), saturate ? "kept" : "let go");
        expect_eq(t, got[i], nearest(f, x[i], saturate));
    }
}

TEST_DEVICES_SLOW(small_float, numbers_are_rounded_to_the_nearest)
{
    for (size_t k = 0; k < 2 * FORMATS; k++) {
        const struct format *f = &formats[k / 2];
        const struct attr *attr =
            ATTRS({"to", f->type, NULL}, {"saturate", (int64_t)(k % 2), NULL});
        double x[2048];
        size_t count = interesting(f, x);
        for (size_t at = 0; at < count; at += SOME) {
            size_t some = count - at < SOME ? count - at : SOME;
            float single[SOME];
            uint8_t got[SOME];
            for (size_t i = 0; i < some; i++)
                single[i] = (float)x[at + i];
            if (!cast_some(t, ONNX_FLOAT, single, 4, some, attr, got))
                return;
            check_codes(t, f, k % 2, x + at, got, some);
            if (!cast_some(t, ONNX_DOUBLE, x + at, 8, some, attr, got))
                return;
            check_codes(t, f, k % 2, x + at, got, some);
        }
    }
}

/* An f64 just beside a tie, which an f32 would not tell from it; halves; integers. */
TEST(small_float, numbers_are_rounded_once)
{
    const struct attr *attr = ATTRS({"to", ONNX_FLOAT8E4M3FN, NULL});
    static const double wide[] = {1.0625 + 0x1p-40, 1.0625, 1.1875, 1.1875 - 0x1p-40, -0x1p-10};
    static const uint16_t half[] = {0x3c40, 0xfc00, 0x7e00, 0x1400, 0x1401};
    static const int64_t whole[] = {17, -19, 1000, INT64_MIN, 0};
    uint8_t got[5];

    require(t, cast_some(t, ONNX_DOUBLE, wide, 8, 5, attr, got));
    expect_bytes(t, got, "\x39\x38\x3a\x39\x80", 5);
    require(t, cast_some(t, ONNX_FLOAT16, half, 2, 5, attr, got));
    expect_bytes(t, got, "\x38\xfe\x7f\x00\x01", 5);
    require(t, cast_some(t, ONNX_INT64, whole, 8, 5, attr, got));
    expect_bytes(t, got, "\x58\xda\x7e\xfe\x00", 5);
}

/* What 2^k, 1.25 * 2^k, 1.5 * 2^k and 1.75 * 2^k become. */
TEST_DEVICES_SLOW(small_float, powers_are_rounded_as_asked)
{
    static const struct {
        const char *mode;
        int more[4];
    } modes[] = {{"up", {0, 1, 1, 1}}, {"down", {0, 0, 0, 0}}, {"nearest", {0, 0, 1, 1}}};
    double x[2048];

    for (int i = 0; i < 4 * 255; i++)
        x[i] = ldexp(1 + i % 4 * 0.25, i / 4 - 127);
    for (int k = 0; k < 6; k++) {
        const struct attr *attr =
            ATTRS({"to", ONNX_FLOAT8E8M0, NULL}, {"round_mode", 0, modes[k / 2].mode},
                  {"saturate", k % 2, NULL});
        for (int at = 0; at < 4 * 255; at += 255) {
            float single[255];
            uint8_t got[2][255];
            for (int i = 0; i < 255; i++)
                single[i] = (float)x[at + i];
            if (!cast_some(t, ONNX_FLOAT, single, 4, 255, attr, got[0]) ||
                !cast_some(t, ONNX_DOUBLE, x + at, 8, 255, attr, got[1]))
                return;
            for (int i = 0; i < 255; i++) {
                int want = (at + i) / 4 + modes[k / 2].more[(at + i) % 4];
                want = want == 255 && k % 2 ? 254 : want;
                test_note(t, "%a rounded %s", x[at + i], modes[k / 2].mode);
                expect_eq(t, got[0][i], want);
                expect_eq(t, got[1][i], want);
            }
        }
    }
}

TEST(small_float, powers_end)
{
    static const float x[] = {0, 0x1p-128f, INFINITY, 0x1.8p127f, NAN, -1, -0.0f};
    static const struct attr let_go[] = {{"to", ONNX_FLOAT8E8M0, NULL}, {"saturate", 0, NULL}, {0}};
    uint8_t got[7];

    require(t, cast_some(t, ONNX_FLOAT, x, 4, 7, let_go + 0, got));
    expect_bytes(t, got, "\xff\xff\xff\xff\xff\xff\xff", 7);
    require(t, cast_some(t, ONNX_FLOAT, x, 4, 7, ATTRS({"to", ONNX_FLOAT8E8M0, NULL}), got));
    expect_bytes(t, got, "\x00\x00\xfe\xfe\xff\xff\x00", 7);
}

/* ---- quantised ---- */

/* Blocks of four with a power of two each, the way of the microscaling formats; the scales of two
 * rows are 2^1, 2^-1 and 2^0, 2^3. */
TEST(small_float, blocks_have_powers_as_scales)
{
    static const uint8_t scale[] = {128, 126, 127, 130},
                         packed[] = {0x21, 0xf7, 0x08, 0x43, 0x65, 0x87, 0xa9, 0xcb};
    static const float want[] = {1, 2, 12, -12,   -0.0f, 0,  0.75f, 1,
                                 3, 4, 6,  -0.0f, -4,    -8, -12,   -16};
    static const int64_t rows[] = {2, 8}, blocks[] = {2, 2};
    struct bytes g = {.len = 0}, back = {.len = 0};
    float got[16];
    uint8_t code[16];

    put_tensor(&g, "x", ONNX_FLOAT4E2M1, rows, 2, packed, sizeof packed);
    put_tensor(&g, "s", ONNX_FLOAT8E8M0, blocks, 2, scale, sizeof scale);
    put_op(&g, "DequantizeLinear", IN("x", "s"), "y",
           ATTRS({"axis", 1, NULL}, {"block_size", 4, NULL}, {"output_dtype", ONNX_FLOAT, NULL}));
    require(t, output_of(t, &g, got, sizeof got));
    expect_bytes(t, got, want, sizeof want);

    put_tensor(&back, "x", ONNX_FLOAT, rows, 2, want, sizeof want);
    put_tensor(&back, "s", ONNX_FLOAT8E8M0, blocks, 2, scale, sizeof scale);
    put_op(
        &back, "QuantizeLinear", IN("x", "s"), "y",
        ATTRS({"axis", 1, NULL}, {"block_size", 4, NULL}, {"output_dtype", ONNX_FLOAT4E2M1, NULL}));
    require(t, output_of(t, &back, code, sizeof code));
    for (int i = 0; i < 16; i++)
        expect_eq(t, code[i], packed[i / 2] >> i % 2 * 4 & 15);
}

/* The zero point is subtracted as the number it stands for, and tells the type. */
TEST(small_float, zero_points_are_numbers)
{
    static const uint8_t x[] = {0x38, 0xc0}, zero = 0x40; /* 1, -2; 2 */
    static const float scale = 0.5f, numbers[] = {1, 1e9f};
    struct bytes g = {.len = 0}, back = {.len = 0}, free = {.len = 0};
    float got[2];
    uint8_t code[2];

    put_list(&g, "x", ONNX_FLOAT8E4M3FN, 2, x, 2);
    put_tensor(&g, "s", ONNX_FLOAT, NULL, 0, &scale, 4);
    put_tensor(&g, "z", ONNX_FLOAT8E4M3FN, NULL, 0, &zero, 1);
    put_op(&g, "DequantizeLinear", IN("x", "s", "z"), "y", NULL);
    require(t, output_of(t, &g, got, sizeof got));
    expect_near(t, got[0], -0.5, 0);
    expect_near(t, got[1], -2, 0);

    put_list(&back, "x", ONNX_FLOAT, 2, numbers, sizeof numbers);
    put_tensor(&back, "s", ONNX_FLOAT, NULL, 0, &scale, 4);
    put_tensor(&back, "z", ONNX_FLOAT8E4M3FN, NULL, 0, &zero, 1);
    free = back;
    put_op(&back, "QuantizeLinear", IN("x", "s", "z"), "y", NULL);
    require(t, output_of(t, &back, code, 2));
    expect_bytes(t, code, "\x48\x7e", 2); /* 1 / 0.5 + 2 */
    put_op(&free, "QuantizeLinear", IN("x", "s", "z"), "y", ATTRS({"saturate", 0, NULL}));
    require(t, output_of(t, &free, code, 2));
    expect_bytes(t, code, "\x48\x7f", 2);
}

/* ---- bits ---- */

static void expect_bits(struct test *t, int64_t from, const void *x, size_t bytes, size_t count,
                        int64_t to, const void *want, size_t want_bytes)
{
    struct bytes g = {.len = 0};
    uint8_t got[64];

    put_list(&g, "x", from, count, x, bytes);
    put_op(&g, "BitCast", IN("x"), "y", ATTRS({"to", to, NULL}));
    if (output_of(t, &g, got, want_bytes))
        expect_bytes(t, got, want, want_bytes);
}

TEST(small_float, bits_are_those_of_the_file)
{
    /* 4 bits: -1, 7, -8; 2 bits: 1, -2, -1 */
    expect_bits(t, ONNX_INT4, "\x7f\x08", 2, 3, ONNX_UINT4, "\x0f\x07\x08", 3);
    expect_bits(t, ONNX_INT4, "\x7f\x08", 2, 3, ONNX_FLOAT4E2M1, "\x0f\x07\x08", 3);
    expect_bits(t, ONNX_FLOAT4E2M1, "\x7f\x08", 2, 3, ONNX_INT4, "\xff\x07\xf8", 3);
    expect_bits(t, ONNX_UINT2, "\x39", 1, 3, ONNX_INT2, "\x01\xfe\xff", 3);
    expect_bits(t, ONNX_FLOAT8E5M2, "\x7c\x80", 2, 2, ONNX_INT8, "\x7c\x80", 2);
    expect_bits(t, ONNX_FLOAT8E5M2, "\x7c\x80", 2, 2, ONNX_FLOAT8E5M2, "\x7c\x80", 2);
    expect_bits(t, ONNX_FLOAT, "\x00\x00\x80\x3f", 4, 1, ONNX_INT32, "\x00\x00\x80\x3f", 4);
    expect_bits(t, ONNX_FLOAT, "", 0, 0, ONNX_UINT32, "", 0);
}

/* ---- what is refused ---- */

static void refuses(struct test *t, int64_t from, const char *op, const struct attr *attr,
                    rlx_status status, const char *part)
{
    struct bytes g = {.len = 0};

    put_value(&g, 11, "x", from, (const char *const[]){"n", "3", NULL});
    put_op(&g, op, IN("x"), "y", attr);
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 28);
    test_note(t, "%s of %s", op, onnx_dtype_name(from));
    expect_refused(t, &m, status, part);
}

TEST(small_float, nothing_reckons_with_codes)
{
    static const char *const ops[] = {
        "Relu",   "Neg",     "Softmax", "ReduceMax", "IsNaN",
        "ArgMax", "NonZero", "Clip",    "Sum",       "SequenceConstruct"};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        refuses(t, ONNX_FLOAT8E4M3FN, ops[i], NULL, RLX_ERROR_UNSUPPORTED,
                "computes with elements of type FLOAT8E4M3FN");
    refuses(t, ONNX_FLOAT8E5M2, "Cast", ATTRS({"to", ONNX_STRING, NULL}), RLX_ERROR_UNSUPPORTED,
            "type STRING");
    refuses(t, ONNX_FLOAT, "EyeLike", ATTRS({"dtype", ONNX_FLOAT8E5M2, NULL}),
            RLX_ERROR_UNSUPPORTED, "type FLOAT8E5M2");
    refuses(t, ONNX_FLOAT, "Cast",
            ATTRS({"to", ONNX_FLOAT8E8M0, NULL}, {"round_mode", 0, "sideways"}),
            RLX_ERROR_ATTRIBUTE, "round_mode \"sideways\"");
    refuses(t, ONNX_COMPLEX64, "Cast", ATTRS({"to", ONNX_FLOAT8E8M0, NULL}), RLX_ERROR_UNSUPPORTED,
            "complex");
    refuses(t, ONNX_FLOAT, "BitCast", ATTRS({"to", ONNX_DOUBLE, NULL}), RLX_ERROR_FORMAT,
            "FLOAT has 32 bits, DOUBLE has 64");
    refuses(t, ONNX_FLOAT4E2M1, "BitCast", ATTRS({"to", ONNX_UINT8, NULL}), RLX_ERROR_FORMAT,
            "FLOAT4E2M1 has 4 bits, UINT8 has 8");
    refuses(t, ONNX_UINT8, "BitCast", ATTRS({"to", ONNX_BOOL, NULL}), RLX_ERROR_DTYPE, "a bool");
    refuses(t, ONNX_UINT8, "BitCast", ATTRS({"to", 99, NULL}), RLX_ERROR_UNSUPPORTED, "type ?");
}

/* A node of that op between the input and a sum, which is given what it is given. */
static void stays_coded(struct test *t, const char *op, size_t operands, const struct attr *attr)
{
    struct bytes g = {.len = 0};
    const char *in[3] = {"x", operands > 1 ? "i" : NULL, NULL};

    put_value(&g, 11, "x", ONNX_FLOAT8E8M0, (const char *const[]){"4", "1", NULL});
    put_tensor(&g, "i", ONNX_INT64, (const int64_t[]){2}, 1, (const int64_t[]){1, 4},
               2 * sizeof(int64_t));
    put_op(&g, op, in, "m", attr);
    put_op(&g, "Add", IN("m", "m"), "y", NULL);
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 28);
    test_note(t, "after %s", op);
    expect_refused(t, &m, RLX_ERROR_UNSUPPORTED, "Add (opset 28) for \"y\": it computes with");
}

TEST(small_float, moving_codes_leaves_them_codes)
{
    stays_coded(t, "Identity", 1, NULL);
    stays_coded(t, "Transpose", 1, NULL);
    stays_coded(t, "Flatten", 1, NULL);
    stays_coded(t, "Squeeze", 1, NULL);
    stays_coded(t, "Reshape", 2, NULL);
    stays_coded(t, "Expand", 2, NULL);
    stays_coded(t, "Tile", 2, NULL);
    stays_coded(t, "Split", 1, ATTRS({"num_outputs", 1, NULL}));
    stays_coded(t, "Concat", 1, ATTRS({"axis", 0, NULL}));
    stays_coded(t, "Cast", 1, ATTRS({"to", ONNX_FLOAT8E5M2, NULL}));
    stays_coded(t, "BitCast", 1, ATTRS({"to", ONNX_FLOAT8E5M2, NULL}));
}

/* An attribute that holds a graph. */
static void put_body(struct bytes *node, const char *name, const struct bytes *body)
{
    struct bytes a = {.len = 0};

    put_text(&a, 1, name);
    put_sub(&a, 6, body);
    put_int(&a, 20, ONNX_ATTR_GRAPH);
    put_sub(node, 5, &a);
}

static void expect_coded(struct test *t, struct bytes *g, const struct bytes *node)
{
    put_value(g, 11, "x", ONNX_FLOAT8E5M2, (const char *const[]){"4", NULL});
    put_sub(g, 1, node);
    put_op(g, "Add", IN("m", "m"), "y", NULL);
    put_value(g, 12, "y", 1, NULL);
    struct bytes m = finish(g, 28);
    expect_refused(t, &m, RLX_ERROR_UNSUPPORTED, "Add (opset 28) for \"y\": it computes with");
}

TEST(small_float, branches_give_codes)
{
    struct bytes g = {.len = 0}, node = {.len = 0}, body = {.len = 0};

    put_op(&body, "Identity", IN("x"), "b", NULL);
    put_value(&body, 12, "b", ONNX_FLOAT8E5M2, NULL);
    put_text(&node, 1, "which");
    put_text(&node, 2, "m");
    put_text(&node, 4, "If");
    put_body(&node, "then_branch", &body);
    put_body(&node, "else_branch", &body);
    put_value(&g, 11, "which", ONNX_BOOL, NULL);
    expect_coded(t, &g, &node);
}

/* A loop of two rounds collects what a third input carries. */
TEST(small_float, loops_collect_codes)
{
    struct bytes g = {.len = 0}, node = {.len = 0}, body = {.len = 0};
    static const int64_t rounds = 2;

    put_op(&body, "Identity", IN("go"), "on", NULL);
    put_op(&body, "Identity", IN("old"), "new", NULL);
    put_op(&body, "Identity", IN("old"), "each", NULL);
    put_value(&body, 11, "i", ONNX_INT64, NULL);
    put_value(&body, 11, "go", ONNX_BOOL, NULL);
    put_value(&body, 11, "old", ONNX_FLOAT8E5M2, NULL);
    put_value(&body, 12, "on", ONNX_BOOL, NULL);
    put_value(&body, 12, "new", ONNX_FLOAT8E5M2, NULL);
    put_value(&body, 12, "each", ONNX_FLOAT8E5M2, NULL);
    put_tensor(&g, "n", ONNX_INT64, NULL, 0, &rounds, sizeof rounds);
    put_text(&node, 1, "n");
    put_text(&node, 1, "");
    put_text(&node, 1, "x");
    put_text(&node, 2, "last");
    put_text(&node, 2, "m");
    put_text(&node, 4, "Loop");
    put_body(&node, "body", &body);
    expect_coded(t, &g, &node);
}

TEST(small_float, types_do_not_mix)
{
    struct bytes g = {.len = 0};

    put_value(&g, 11, "a", ONNX_FLOAT8E5M2, (const char *const[]){"2", NULL});
    put_value(&g, 11, "b", ONNX_UINT8, (const char *const[]){"2", NULL});
    put_op(&g, "Concat", IN("b", "a"), "y", ATTRS({"axis", 0, NULL}));
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 28);
    expect_refused(t, &m, RLX_ERROR_FORMAT, "inputs of types FLOAT8E5M2 and UINT8");
}

/* Integers of 4 bits keep their range, too, wherever their zero point comes from. */
TEST(small_float, reshaped_zero_points_tell_the_range)
{
    static const float x[] = {100, -100}, scale = 1;
    struct bytes g = {.len = 0};
    int8_t got[2];

    put_list(&g, "x", ONNX_FLOAT, 2, x, sizeof x);
    put_tensor(&g, "s", ONNX_FLOAT, NULL, 0, &scale, 4);
    put_list(&g, "zero", ONNX_INT4, 1, "\x00", 1);
    put_op(&g, "Squeeze", IN("zero"), "z", NULL);
    put_op(&g, "QuantizeLinear", IN("x", "s", "z"), "y", NULL);
    require(t, output_of(t, &g, got, 2));
    expect_bytes(t, got, "\x07\xf8", 2);
}

/* ---- shapes ---- */

TEST(small_float, shapes_may_be_symbolic_or_empty)
{
    struct bytes g = {.len = 0};

    put_value(&g, 11, "x", ONNX_FLOAT8E5M2, (const char *const[]){"n", "0", NULL});
    put_op(&g, "Cast", IN("x"), "f", ATTRS({"to", ONNX_FLOAT16, NULL}));
    put_op(&g, "Cast", IN("f"), "y", ATTRS({"to", ONNX_FLOAT8E4M3FNUZ, NULL}));
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 28);
    struct result r = import(m.at, m.len);
    require_ok(t, r.status);
    const struct ir_graph *graph = ir_entry(r.m.mod);
    const struct ir_type *type = ir_type_of(graph, graph->output.at[0]);
    expect(t, type->dtype == RLX_DTYPE_u8 && type->rank == 2 && type->dim[1] == 0);
    expect_eq(t, type->dim[0], ir_type_of(graph, 0)->dim[0]);
    onnx_imported_free(&r.m);
}
