/* onnx_run.h: ONNX models of weights and nodes, without inputs, run on the test's device. */
#ifndef TESTS_IMPORT_ONNX_RUN_H
#define TESTS_IMPORT_ONNX_RUN_H

#include "onnx_world.h"
#include "rlx/rlx.h"

struct attr {
    const char *name;
    int64_t number;
    const char *text; /* NULL: it is a number */
};

static inline void put_op(struct bytes *g, const char *op, const char *const *in, const char *out,
                          const struct attr *attr)
{
    struct bytes n = {.len = 0};

    for (; *in; in++)
        put_text(&n, 1, *in);
    put_text(&n, 2, out);
    put_text(&n, 4, op);
    for (; attr && attr->name; attr++) {
        struct bytes a = {.len = 0};
        put_text(&a, 1, attr->name);
        if (attr->text)
            put_text(&a, 4, attr->text);
        else
            put_int(&a, 3, (uint64_t)attr->number);
        put_int(&a, 20, attr->text ? ONNX_ATTR_STRING : ONNX_ATTR_INT);
        put_sub(&n, 5, &a);
    }
    put_sub(g, 1, &n);
}
#define IN(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ATTRS(...) ((const struct attr[]){__VA_ARGS__, {0}})

/* The bytes of its output "y", as many as are expected; shape: NULL, or to be filled. false: there
 * is no such device, or it failed, which is noted. */
static inline bool run_model(struct test *t, const struct bytes *model, void *out, size_t bytes,
                             rlx_tensor *shape)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    rlx_binding y = {.name = "y"};
    const char *path = test_temp(t, "model.onnx");

    if (!expect(t, test_write(t, path, model->at, model->len)) ||
        !expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err)))
        return false;
    rlx_status status = rlx_device_open(ctx, test_device(t), &dev, &err);
    bool none = test_no_device(t, test_device(t), status, err.message);
    bool ok = !none && rlx_model_load(ctx, path, NULL, &m, &err) == RLX_OK &&
              rlx_session_create(m, dev, NULL, &s, &err) == RLX_OK &&
              rlx_session_output_shape(s, 0, &y.tensor, &err) == RLX_OK;
    if (ok && shape)
        *shape = y.tensor;
    if (ok && (ok = expect_eq(t, y.tensor.bytes, bytes))) {
        y.tensor.data = out;
        ok = rlx_session_run(
                 s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = &y, .output_count = 1},
                 &err) == RLX_OK;
    }
    if (!ok && !none)
        fail(t, "%s", err.message);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return ok;
}

/* The same of a graph whose only output is "y", which is yet to be set. */
static inline bool output_of(struct test *t, struct bytes *g, void *out, size_t bytes)
{
    put_value(g, 12, "y", 1, NULL);
    struct bytes model = finish(g, 28);
    return run_model(t, &model, out, bytes, NULL);
}

#endif
