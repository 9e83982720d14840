/* onnx_attr_test.c: attributes of ONNX nodes: those of a wrong type are refused, and those of a
 * function's body come from its caller, or from the function. */
#include "import/onnx/read/onnx.h"

#include <string.h>

#include "onnx_world.h"
#include "test.h"

#define DIMS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct given {
    int64_t type; /* 0: not said */
    float f;      /* 0: not there, here and in what follows */
    int64_t i;
    const char *s;
    int ints, floats; /* how many; all are 1 */
    const char *ref;
};

static void put_float(struct bytes *b, uint32_t number, float v)
{
    put_varint(b, number << 3 | 5);
    memcpy(b->at + b->len, &v, sizeof v);
    b->len += sizeof v;
}

static struct bytes attribute(const char *name, const struct given *a)
{
    struct bytes b = {.len = 0};

    put_text(&b, 1, name);
    if (a->f != 0)
        put_float(&b, 2, a->f);
    if (a->i)
        put_int(&b, 3, (uint64_t)a->i);
    if (a->s)
        put_text(&b, 4, a->s);
    for (int k = 0; k < a->floats; k++)
        put_float(&b, 7, 1);
    for (int k = 0; k < a->ints; k++)
        put_int(&b, 8, 1);
    if (a->type)
        put_int(&b, 20, (uint64_t)a->type);
    if (a->ref)
        put_text(&b, 21, a->ref);
    return b;
}

/* One node of that op on x: f32[4], with an attribute. */
static struct bytes node_of(const char *op, const char *domain, const char *name,
                            const struct given *a)
{
    struct bytes n = {.len = 0};

    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 4, op);
    if (a) {
        struct bytes attr = attribute(name, a);
        put_sub(&n, 5, &attr);
    }
    put_text(&n, 7, domain);
    return n;
}

static struct bytes model_of(const struct bytes *node)
{
    struct bytes g = {.len = 0};

    put_sub(&g, 1, node);
    put_value(&g, 11, "x", 1, DIMS("4"));
    put_value(&g, 12, "y", 1, NULL);
    return finish(&g, 13);
}

TEST(onnx_attr, a_wrong_type_is_named)
{
    static const struct {
        const char *op, *name;
        struct given given;
        const char *part; /* NULL: it is fine */
    } cases[] = {
        {"LeakyRelu", "alpha", {.type = ONNX_ATTR_FLOAT, .f = 0.5f}, NULL},
        {"LeakyRelu", "alpha", {.type = ONNX_ATTR_FLOAT}, NULL},
        {"LeakyRelu", "alpha", {.type = ONNX_ATTR_INT, .i = 1}, "alpha is of type INT, not FLOAT"},
        {"LeakyRelu", "alpha", {.type = ONNX_ATTR_INT}, "alpha is of type INT, not FLOAT"},
        {"LeakyRelu", "alpha", {.type = 77}, "alpha is of type ?, not FLOAT"},
        {"LeakyRelu", "alpha", {.type = -1}, "alpha is of type ?, not FLOAT"},
        {"LeakyRelu", "alpha", {.type = 13}, "alpha is of type TYPE_PROTO, not FLOAT"},
        /* it says one thing and holds another */
        {"LeakyRelu",
         "alpha",
         {.type = ONNX_ATTR_FLOAT, .ints = 2},
         "alpha is of type INTS, not FLOAT"},
        /* old files do not say */
        {"LeakyRelu", "alpha", {.f = 0.5f}, NULL},
        {"LeakyRelu", "alpha", {0}, NULL},
        {"LeakyRelu", "alpha", {.i = 2}, "alpha is of type INT, not FLOAT"},
        {"LeakyRelu", "alpha", {.s = "1"}, "alpha is of type STRING, not FLOAT"},
        {"Softmax", "axis", {.type = ONNX_ATTR_INTS, .ints = 1}, "axis is of type INTS, not INT"},
        {"Softmax", "axis", {.f = 1}, "axis is of type FLOAT, not INT"},
        {"Transpose", "perm", {.type = ONNX_ATTR_INT, .i = 1}, "perm is of type INT, not INTS"},
        {"Transpose", "perm", {.floats = 1}, "perm is of type FLOATS, not INTS"},
        {"Einsum", "equation", {.type = ONNX_ATTR_INT, .i = 3}, "is of type INT, not STRING"},
        /* a fuzzer's: the attribute is there, the text is not */
        {"Einsum", "equation", {.type = ONNX_ATTR_STRING}, "the equation \"\" does not fit"},
        {"Constant", "value", {.type = ONNX_ATTR_INT, .i = 3}, "value is of type INT, not TENSOR"},
        {"Constant", "value_int", {.f = 3}, "value_int is of type FLOAT, not INT"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes n = node_of(cases[i].op, "", cases[i].name, &cases[i].given);
        struct bytes m = model_of(&n);
        struct result r = import(m.at, m.len);
        if (!cases[i].part)
            expect_status(t, r.status, RLX_OK);
        else {
            expect_status(t, r.status, RLX_ERROR_ATTRIBUTE);
            expect_contains(t, r.diag.first.message, cases[i].op);
            expect_contains(t, r.diag.first.message, cases[i].part);
        }
        onnx_imported_free(&r.m);
    }
}

/* y = F(x), F: LeakyRelu whose alpha is F's slope, which is 0.25 unless the caller gives it. */
static struct bytes call_model(const struct given *slope)
{
    const struct given inner = {.type = ONNX_ATTR_FLOAT, .ref = "slope"};
    const struct given usual = {.type = ONNX_ATTR_FLOAT, .f = 0.25f};
    struct bytes call = node_of("F", "own", "slope", slope), f = {.len = 0}, o = {.len = 0};
    struct bytes body = node_of("LeakyRelu", "", "alpha", &inner);
    struct bytes otherwise = attribute("slope", &usual), m = model_of(&call);

    put_text(&o, 1, "");
    put_int(&o, 2, 13);
    put_text(&f, 1, "F");
    put_text(&f, 4, "x");
    put_text(&f, 5, "y");
    put_sub(&f, 7, &body);
    put_sub(&f, 9, &o);
    put_text(&f, 10, "own");
    put_sub(&f, 11, &otherwise);
    put_sub(&m, 25, &f);
    return m;
}

static void expect_slope(struct test *t, const struct given *slope, const char *part)
{
    struct bytes m = call_model(slope);
    struct result r = import(m.at, m.len);
    struct text text;

    text_init(&text, mem_default());
    if (expect_status(t, r.status, RLX_OK)) {
        expect_ok(t, ir_print(r.m.mod, NULL, &text, &r.diag));
        expect_contains(t, text.at, part);
    }
    text_free(&text);
    onnx_imported_free(&r.m);
}

TEST(onnx_attr, a_function_has_defaults)
{
    const struct given half = {.type = ONNX_ATTR_FLOAT, .f = 0.5f};
    const struct given text = {.type = ONNX_ATTR_STRING, .s = "half"};

    expect_slope(t, &half, "0.5");
    expect_slope(t, NULL, "0.25");
    struct bytes m = call_model(&text);
    expect_refused(t, &m, RLX_ERROR_ATTRIBUTE, "alpha is of type STRING, not FLOAT");
}
