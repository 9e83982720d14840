/* onnx_node_world.h: ONNX models of a single node, run on the CPU.
 *
 *     struct one o = one_node("", "Relu", 13, 1);
 *     one_in(&o, RLX_DTYPE_f32, RLX_LIST(2), (const float[]){-1, 1});
 *     expect_one(t, &o, 0, 1e-6, 2, (const float[]){0, 1}); */
#ifndef TESTS_IMPORT_ONNX_NODE_WORLD_H
#define TESTS_IMPORT_ONNX_NODE_WORLD_H

#include "onnx_world.h"
#include "rlx/tools.h"

enum { ONE_INPUTS = 16, ONE_OUTPUTS = 8 };

struct one {
    struct bytes graph, node;
    const char *domain;
    int64_t opset;
    int symbolic; /* axis that inputs of a rank above it declare as "n"; -1: none */
    size_t operands, inputs, outputs;
    rlx_binding in[ONE_INPUTS];
    char name[ONE_INPUTS][32];
};

static inline struct one one_node(const char *domain, const char *op, int64_t opset, size_t outputs)
{
    struct one o = {.domain = domain, .opset = opset, .symbolic = -1, .outputs = outputs};

    put_text(&o.node, 4, op);
    put_text(&o.node, 7, domain);
    for (size_t i = 0; i < outputs; i++) {
        char name[32];
        snprintf(name, sizeof name, "y%zu", i);
        put_text(&o.node, 2, name);
        put_value(&o.graph, 12, name, 1, NULL);
    }
    return o;
}

/* ---- operands, in order ---- */

static inline int64_t one_elem(rlx_dtype t)
{
    static const int64_t number[] = {
        [RLX_DTYPE_f32] = 1, [RLX_DTYPE_u8] = 2,   [RLX_DTYPE_i8] = 3,   [RLX_DTYPE_i32] = 6,
        [RLX_DTYPE_i64] = 7, [RLX_DTYPE_bool] = 9, [RLX_DTYPE_f16] = 10, [RLX_DTYPE_f64] = 11};
    return number[t];
}

static inline size_t one_bytes(rlx_dtype t, const rlx_list *shape)
{
    size_t bytes = rlx_dtype_size(t);

    for (int32_t i = 0; i < shape->count; i++)
        bytes *= (size_t)shape->at[i];
    return bytes;
}

static inline void one_absent(struct one *o)
{
    put_text(&o->node, 1, "");
}

/* A weight of the model. */
static inline void one_known(struct one *o, rlx_dtype t, rlx_list shape, const void *data)
{
    char name[32];

    snprintf(name, sizeof name, "k%zu", o->operands++);
    put_text(&o->node, 1, name);
    put_tensor(&o->graph, name, one_elem(t), shape.at, (size_t)shape.count, data,
               one_bytes(t, &shape));
}

/* An input of the model; the data is read when it runs. */
static inline void one_in(struct one *o, rlx_dtype t, rlx_list shape, const void *data)
{
    char *name = o->name[o->inputs], text[RLX_MAX_RANK][24];
    const char *dims[RLX_MAX_RANK + 1] = {NULL};
    rlx_binding *b = &o->in[o->inputs++];

    snprintf(name, sizeof o->name[0], "x%zu", o->operands++);
    for (int32_t i = 0; i < shape.count; i++) {
        snprintf(text[i], sizeof text[i], "%lld", (long long)shape.at[i]);
        dims[i] = i == o->symbolic ? "n" : text[i];
    }
    put_text(&o->node, 1, name);
    put_value(&o->graph, 11, name, one_elem(t), dims);
    b->tensor = (rlx_tensor){.dtype = t, .rank = shape.count, .data = (void *)(uintptr_t)data};
    b->tensor.bytes = one_bytes(t, &shape);
    memcpy(b->tensor.dim, shape.at, sizeof b->tensor.dim);
}

static inline void one_in_f32(struct one *o, rlx_list shape, const float *data)
{
    one_in(o, RLX_DTYPE_f32, shape, data);
}

/* ---- attributes ---- */

static inline void one_attr(struct one *o, const char *name, struct bytes *value, int64_t type)
{
    put_text(value, 1, name);
    put_int(value, 20, (uint64_t)type);
    put_sub(&o->node, 5, value);
}

static inline void put_float(struct bytes *b, uint32_t number, float v)
{
    put_varint(b, number << 3 | 5);
    memcpy(b->at + b->len, &v, 4);
    b->len += 4;
}

static inline void one_int(struct one *o, const char *name, int64_t v)
{
    struct bytes a = {.len = 0};

    put_int(&a, 3, (uint64_t)v);
    one_attr(o, name, &a, ONNX_ATTR_INT);
}

static inline void one_float(struct one *o, const char *name, float v)
{
    struct bytes a = {.len = 0};

    put_float(&a, 2, v);
    one_attr(o, name, &a, ONNX_ATTR_FLOAT);
}

static inline void one_text(struct one *o, const char *name, const char *v)
{
    struct bytes a = {.len = 0};

    put_text(&a, 4, v);
    one_attr(o, name, &a, ONNX_ATTR_STRING);
}

static inline void one_ints(struct one *o, const char *name, const int64_t *v, size_t count)
{
    struct bytes a = {.len = 0};

    for (size_t i = 0; i < count; i++)
        put_int(&a, 8, (uint64_t)v[i]);
    one_attr(o, name, &a, ONNX_ATTR_INTS);
}
#define ONE_INTS(o, name, ...)                        \
    one_ints(o, name, (const int64_t[]){__VA_ARGS__}, \
             sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline void one_floats(struct one *o, const char *name, const float *v, size_t count)
{
    struct bytes a = {.len = 0};

    for (size_t i = 0; i < count; i++)
        put_float(&a, 7, v[i]);
    one_attr(o, name, &a, ONNX_ATTR_FLOATS);
}
#define ONE_FLOATS(o, name, ...)                      \
    one_floats(o, name, (const float[]){__VA_ARGS__}, \
               sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

/* Words apart by a space each. */
static inline void one_words(struct one *o, const char *name, const char *words)
{
    struct bytes a = {.len = 0};

    while (*words) {
        size_t len = strcspn(words, " ");
        put_data(&a, 9, words, len);
        words += len + (words[len] == ' ');
    }
    one_attr(o, name, &a, ONNX_ATTR_STRINGS);
}

/* A list of numbers as a tensor. */
static inline void one_tensor(struct one *o, const char *name, rlx_dtype t, int64_t count,
                              const void *data)
{
    struct bytes a = {.len = 0}, v = {.len = 0};
    rlx_list shape = RLX_LIST(count);

    put_int(&v, 1, (uint64_t)count);
    put_int(&v, 2, (uint64_t)one_elem(t));
    put_data(&v, 9, data, one_bytes(t, &shape));
    put_sub(&a, 5, &v);
    one_attr(o, name, &a, ONNX_ATTR_TENSOR);
}

/* ---- the model ---- */

static inline struct bytes one_model(const struct one *o)
{
    struct bytes graph = o->graph, m, opset = {.len = 0};

    put_sub(&graph, 1, &o->node);
    m = finish(&graph, o->domain[0] ? 21 : o->opset);
    if (o->domain[0]) {
        put_text(&opset, 1, o->domain);
        put_int(&opset, 2, (uint64_t)o->opset);
        put_sub(&m, 8, &opset);
    }
    return m;
}

static inline void expect_one_refused(struct test *t, const struct one *o, rlx_status status,
                                      const char *part)
{
    struct bytes m = one_model(o);

    expect_refused(t, &m, status, part);
}

/* Whichever allocation fails while it is read; the model has no symbols. */
static inline void expect_one_survives(struct test *t, const struct one *o)
{
    struct bytes m = one_model(o);

    expect_survives_no_memory(t, import_with, &m);
}

static inline bool one_write(struct test *t, const struct one *o, const char **path)
{
    struct bytes m = one_model(o);

    *path = test_temp(t, "one.onnx");
    FILE *f = fopen(*path, "wb");
    bool ok = f && fwrite(m.at, 1, m.len, f) == m.len;
    if (f)
        ok &= fclose(f) == 0;
    return ok;
}

/* All outputs, in rlx's memory; false: it failed, and that is noted. */
static inline bool one_run(struct test *t, rlx_context *ctx, const struct one *o, rlx_tensor *out)
{
    rlx_binding in[ONE_INPUTS], got[ONE_OUTPUTS] = {{0}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = in, .input_count = o->inputs};
    rlx_device *device = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    const char *path;
    uint64_t ticket = 0;

    for (size_t i = 0; i < o->inputs; i++) {
        in[i] = o->in[i];
        in[i].name = o->name[i];
    }
    bool ok = one_write(t, o, &path) && rlx_device_open(ctx, "cpu", &device, &err) == RLX_OK &&
              rlx_model_load(ctx, path, NULL, &m, &err) == RLX_OK &&
              rlx_session_create(m, device, NULL, &s, &err) == RLX_OK &&
              rlx_session_submit(s, &run, &ticket, &err) == RLX_OK;
    for (size_t i = 0; ok && i < o->outputs; i++) {
        static const char *const names[] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"};
        got[i].name = names[i];
        ok = rlx_session_output_shape(s, i, &got[i].tensor, &err) == RLX_OK &&
             rlx_tensor_alloc(ctx, &got[i].tensor, &err) == RLX_OK;
    }
    run.outputs = got;
    run.output_count = o->outputs;
    ok = ok && rlx_session_wait(s, ticket, &run, &err) == RLX_OK;
    for (size_t i = 0; i < o->outputs; i++)
        out[i] = got[i].tensor;
    if (!expect(t, ok))
        test_note(t, "%s", err.message);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(device);
    return ok;
}

static inline float one_element(const rlx_tensor *x, size_t i)
{
    switch (x->dtype) {
    case RLX_DTYPE_f32: return ((const float *)x->data)[i];
    case RLX_DTYPE_f64: return (float)((const double *)x->data)[i];
    case RLX_DTYPE_i64: return (float)((const int64_t *)x->data)[i];
    case RLX_DTYPE_i32: return (float)((const int32_t *)x->data)[i];
    case RLX_DTYPE_i8: return (float)((const int8_t *)x->data)[i];
    case RLX_DTYPE_u8:
    case RLX_DTYPE_bool: return (float)((const uint8_t *)x->data)[i];
    default: return -1e30f;
    }
}

/* Output `which` has these elements, of whatever type. */
static inline void expect_one(struct test *t, const struct one *o, size_t which, double tol,
                              size_t count, const float *want)
{
    rlx_tensor out[ONE_OUTPUTS] = {{0}};
    rlx_context *ctx;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    if (one_run(t, ctx, o, out) &&
        expect_eq(t, out[which].bytes / rlx_dtype_size(out[which].dtype), count))
        for (size_t i = 0; i < count; i++)
            expect_near(t, one_element(&out[which], i), want[i], tol);
    for (size_t i = 0; i < o->outputs; i++)
        rlx_tensor_free(ctx, &out[i]);
    rlx_context_destroy(ctx);
}

#endif
