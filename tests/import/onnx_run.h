/* onnx_run.h: an ONNX model without inputs, run on the test's device. */
#ifndef TESTS_IMPORT_ONNX_RUN_H
#define TESTS_IMPORT_ONNX_RUN_H

#include "onnx_world.h"
#include "rlx/rlx.h"

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
    rlx_status status = rlx_device_open(ctx, rlx_cstr(test_device(t)), &dev, &err);
    bool none = test_no_device(t, test_device(t), status, err.message);
    bool ok = !none && rlx_model_load(ctx, path, NULL, &m, &err) == RLX_OK &&
              rlx_session_create(m, dev, NULL, &s, &err) == RLX_OK &&
              rlx_session_output_shape(s, 0, &y.tensor, &err) == RLX_OK;
    if (ok && shape)
        *shape = y.tensor;
    if (ok && (ok = expect_eq(t, y.tensor.bytes, bytes))) {
        y.tensor.data = out;
        ok = rlx_session_run(s, &(rlx_run_desc){.outputs = &y, .output_count = 1}, &err) == RLX_OK;
    }
    if (!ok && !none)
        fail(t, "%s", err.message);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return ok;
}

#endif
