/* device_test.c: a WebGPU device: overlapping operands, grids that are folded, and what is said
 * where there is none. run/arena_test.c has its memory, backend/gpu what all GPUs do. */
#include <stdio.h>
#include <string.h>

#include "../../test.h"
#include "backend/backend.h"
#include "base/str.h"

/* Opens a device of this library, which cannot be had, and says so. */
static void refuses(struct test *t, const char *library, const char *message)
{
    const rlx_flag flag = {"WEBGPU_LIB", library};
    struct backend *b = NULL;
    struct flags flags;
    struct diag d;

    diag_init(&d, "test");
    require_ok(t, flags_read(&flags, &flag, 1, NULL, mem_default(), NULL, NULL, &d));
    expect_status(t,
                  backend_find(STR("webgpu"))
                      ->open(&(struct device_desc){.mem = mem_default(), .flags = &flags}, &b, &d),
                  RLX_ERROR_NO_DEVICE);
    expect_contains(t, d.first.message, message);
    flags_free(&flags);
}

TEST(webgpu_device, a_library_that_is_not_there)
{
    refuses(t, "/nowhere/libwgpu_native.so", "/nowhere/libwgpu_native.so");
}

/* Its structs are others than those we were compiled with. */
TEST(webgpu_device, a_library_of_another_version)
{
    refuses(t, test_built(t, "fakes/webgpu_old.so"),
            "the WebGPU library is wgpu-native 24.0.3.1, and rlx needs 29.0");
}

TEST(webgpu_device, a_library_that_does_not_say_its_version)
{
    refuses(t, test_built(t, "fakes/vulkan_driver.so"),
            "the WebGPU library does not say which version it is");
}

/* ---- programs ---- */

static const struct row {
    const char *graph; /* of an input x: f32[4] and an input i: i32[4] */
    int32_t index[4];
    float want[4];
    const char *message; /* NULL: nothing is wrong */
} rows[] = {
    /* operands that are, or lie in, one tensor */
    {"%y = mul %x, %x", {0}, {1, 4, 9, 16}, NULL},
    {"%a = narrow %x axis=0 start=1 len=3 %b = narrow %x axis=0 start=0 len=3 %c = sub %a, %b"
     " %y = pad %c before=[0] after=[1]",
     {0},
     {1, 1, 1, 0},
     NULL},
    /* a sum that must round */
    {"%y = exp %x", {0}, {2.71828175f, 7.38905621f, 20.085537f, 54.5981483f}, NULL},
    {"%y = gather %x, %i axis=0", {3, 0, 1, 2}, {4, 1, 2, 3}, NULL},
    {"%y = gather %x, %i axis=0", {0, 9, -7, 0}, {0}, "index 9 at position 1"},
};

static void run_row(struct test *t, rlx_context *ctx, rlx_device *dev, const struct row *r)
{
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    int32_t index[4];
    char text[400];
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;
    rlx_binding in[2] = {{"x", {RLX_DTYPE_f32, 1, {4}, x, sizeof x}},
                         {"i", {RLX_DTYPE_i32, 1, {4}, index, sizeof index}}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};

    memcpy(index, r->index, sizeof index);
    snprintf(text, sizeof text,
             "rlx 1 graph (input %%x: f32[4], input %%i: i32[4]) { %s return %%y }", r->graph);
    test_note(t, "%s", r->graph);
    if (!expect_ok(t, rlx_model_parse(ctx, rlx_cstr(text), &m, &err)))
        return;
    if (expect_ok(t, rlx_session_create(
                         m, dev,
                         &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .check_indices = true},
                         &s, &err))) {
        expect_status(
            t,
            rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                            &err),
            r->message ? RLX_ERROR_INDEX : RLX_OK);
        if (r->message)
            expect_contains(t, err.message, r->message);
        for (size_t k = 0; k < 4 && !r->message; k++)
            expect_near(t, (double)y[k], (double)r->want[k], 1e-4);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
}

/* As they are, and with a grid that is folded and commands that are recorded for each run. */
TEST(webgpu_device, programs)
{
    static const rlx_flag flags[] = {{"GPU_MAX_GROUPS", "1"}, {"GPU_NOCACHE", "1"}};

    for (size_t n = 0; n <= 2; n += 2) {
        rlx_context *ctx = NULL;
        rlx_device *dev = NULL;
        rlx_error err;
        require_ok(t, rlx_context_create(RLX_VERSION,
                                         &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                             .flags = flags, .flag_count = n},
                                         &ctx, &err));
        if (!test_no_device(t, "webgpu", rlx_device_open(ctx, "webgpu", &dev, &err), err.message))
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                run_row(t, ctx, dev, &rows[i]);
        rlx_device_close(dev);
        rlx_context_destroy(ctx);
    }
}
