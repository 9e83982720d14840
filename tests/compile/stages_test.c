/* stages_test.c: rlx/tools.h on the way from a model to a device: params made inputs, the graph
 * after a pass, dispatch reports, and what a failed compile says to the log. */
#include "pass/model_run.h"

static const char linear[] = "rlx 1 graph (input %x: f32[2], param %w: f32[2], param %b: f32[2]) {"
                             " %m = mul %x, %w %y = add %m, %b return %y }";

struct opened {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
};

static bool open_model(struct test *t, struct opened *o, const char *text)
{
    rlx_error err = {0};

    *o = (struct opened){0};
    if (rlx_context_create(RLX_VERSION, NULL, &o->ctx, &err) == RLX_OK &&
        rlx_device_open(o->ctx, "cpu", &o->dev, &err) == RLX_OK &&
        rlx_model_parse(o->ctx, rlx_cstr(text), &o->model, &err) == RLX_OK)
        return expect(t, true);
    return fail(t, "%s", err.message), false;
}

static void close_model(struct opened *o)
{
    rlx_model_destroy(o->model);
    rlx_device_close(o->dev);
    rlx_context_destroy(o->ctx);
}

TEST(stages, promoted_params_are_inputs)
{
    static struct outputs out;
    struct opened o;
    rlx_model *made = NULL;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_error err;
    float b[2] = {10, 20}, got[2];

    require(t, open_model(t, &o, linear));
    const rlx_tensor value = {RLX_DTYPE_f32, 1, {2}, b, sizeof b};
    expect_ok(t, rlx_model_set_param(o.model, "b", &value, &err));
    require_ok(t, rlx_model_promote_params(o.model, (const char *const[]){"w"}, 1, &made, &err));
    expect_eq(t, rlx_model_io_count(made, RLX_IO_INPUT), 2);
    expect_eq(t, rlx_model_io_count(made, RLX_IO_PARAM), 1);
    expect_ok(t, rlx_model_io(made, RLX_IO_INPUT, 1, &info, &err));
    expect(t, info.name.len == 1 && info.name.ptr[0] == 'w' && info.dim[0] == 2);
    expect_ok(t, run_outputs(made, o.dev, NULL, &out, &err)); /* b is still set */
    memcpy(got, out.data[0], sizeof got);
    for (size_t k = 0; k < 2; k++)
        expect_near(t, got[k], made_up(0, k) * made_up(1, k) + b[k], 1e-5);
    expect_eq(t, rlx_model_io_count(o.model, RLX_IO_PARAM), 2); /* the model itself stays */
    rlx_model_destroy(made);
    close_model(&o);
}

TEST(stages, promoting_refuses_other_names)
{
    struct opened o;
    rlx_model *made = NULL;
    rlx_error err;

    require(t, open_model(t, &o, linear));
    static const char *const bad[] = {"nobody", "x", ""};
    for (size_t i = 0; i < 3; i++) {
        expect_status(t, rlx_model_promote_params(o.model, &bad[i], 1, &made, &err),
                      RLX_ERROR_NAME);
        expect_error(t, RLX_ERROR_NAME, bad[i], &err);
        expect_error(t, RLX_ERROR_NAME, "w, b", &err);
    }
    expect(t, made == NULL);
    expect_status(t, rlx_model_promote_params(NULL, NULL, 0, &made, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_promote_params(o.model, NULL, 1, &made, &err), RLX_ERROR_ARGUMENT);
    close_model(&o);
}

static void collect(void *user, const char *text, size_t len)
{
    strncat(user, text, len < 4095 - strlen(user) ? len : 4095 - strlen(user));
}

TEST(stages, print_after_and_dispatch)
{
    struct opened o;
    rlx_error err;
    char text[4096] = "", table[4096] = "";

    require(t, open_model(t, &o,
                          "rlx 1 graph (input %x: f32[n,2]) { %c = const f32[1] {1}"
                          " %a = mul %x, %c %y = exp %a return %y }"));
    expect_ok(t, rlx_model_print_after(o.model, "dce", o.dev, true, false, collect, text, &err));
    expect_contains(t, text, "exp %x");
    expect(t, strstr(text, "mul") == NULL);
    expect_status(t, rlx_model_print_after(o.model, "no", o.dev, true, false, collect, text, &err),
                  RLX_ERROR_NAME);
    expect_status(t, rlx_model_print_after(o.model, "dce", NULL, true, false, NULL, text, &err),
                  RLX_ERROR_ARGUMENT);
    expect_ok(t, rlx_model_dispatch(o.model, o.dev, false, collect, table, &err));
    expect_contains(t, table, "everything runs");
    expect_status(t, rlx_model_dispatch(o.model, NULL, false, collect, table, &err),
                  RLX_ERROR_ARGUMENT);
    close_model(&o);
}

/* Both bodies of a logical kernel, on one device. */
TEST(stages, common_bodies_agree_with_kernels)
{
    static struct outputs native, common;
    struct opened o;
    rlx_error err;

    require(t, open_model(t, &o,
                          "rlx 1 graph (input %x: f32[2,6,3,4], input %g: f32[6], input %b: f32[6])"
                          " { %n = group_norm %x, %g, %b num_groups=3 %y = resize_nearest_2x %n"
                          " return %n, %y }"));
    expect_ok(t, run_outputs(o.model, o.dev, NULL, &native, &err));
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                   .debug = DEBUG(.dispatch = RLX_DISPATCH_COMMON)};
    expect_ok(t, run_outputs(o.model, o.dev, &desc, &common, &err));
    for (size_t i = 0; i < 2; i++)
        expect_close(t, (const float *)(const void *)common.data[i],
                     (const float *)(const void *)native.data[i], native.bytes[i] / sizeof(float),
                     1e-5, 1e-5);
    close_model(&o);
}

/* What a pass drops is still an input of the model: it may be given, and must have its size. */
TEST(stages, dropped_inputs_are_still_known)
{
    struct opened o;
    rlx_session *s = NULL;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_error err;
    float x[2] = {1, 2}, y[2];

    require(t, open_model(t, &o,
                          "rlx 1 graph (input %x: f32[2], input %idle: f32[2], param %p: f32[2]) {"
                          " %d = exp %idle %e = mul %p, %d %y = neg %x return %y }"));
    expect_ok(t, rlx_model_io(o.model, RLX_IO_INPUT, 1, &info, &err));
    expect(t, info.name.len == 4 && !info.used);
    require_ok(t, rlx_session_create(o.model, o.dev, NULL, &s, &err)); /* nor need p be set */
    rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 1, {2}, x, sizeof x}},
                        {"idle", {RLX_DTYPE_f32, 1, {2}, x, sizeof x}}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 1, &out, 1, NULL, 0};
    expect_ok(t, rlx_session_run(s, &run, &err));
    run.input_count = 2;
    expect_ok(t, rlx_session_run(s, &run, &err));
    expect_near(t, y[1], -2, 0);
    in[1].tensor.bytes = 4;
    in[1].tensor.dim[0] = 1;
    expect(t, rlx_session_run(s, &run, &err) != RLX_OK);
    expect(t, err.status == RLX_ERROR_SIZE || err.status == RLX_ERROR_SHAPE);
    rlx_session_destroy(s);
    close_model(&o);
}

/* A node that does nothing goes even where it was an output; what is read back is then a leaf. */
TEST(stages, outputs_may_become_leaves)
{
    static struct outputs got, want;
    struct opened o;
    rlx_error err = {0};

    require(t, open_model(t, &o,
                          "rlx 1 graph (input %x: f32[2], state %s: f32[2]) { %c = const f32[1] {1}"
                          " %y = mul %x, %c %z = reshape %s shape=[2] %k = exp %c"
                          " return %y, %z, %k, %y }"));
    expect_ok(t, run_outputs(o.model, o.dev, NULL, &got, &err));
    expect_ok(t, run_outputs(o.model, o.dev,
                             &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                 .debug = DEBUG(.no_optimize = true)},
                             &want, &err));
    expect_outputs(t, &got, &want);
    close_model(&o);
}

static rlx_io_info param_of(struct test *t, const rlx_model *m, size_t i)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_error err;

    expect_ok(t, rlx_model_io(m, RLX_IO_PARAM, i, &info, &err));
    return info;
}

/* So that whoever makes values up does not make up a negative one. */
TEST(stages, a_variance_is_known_by_who_reads_it)
{
    struct opened o;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_error err;

    require(t, open_model(t, &o,
                          "rlx 1 graph (input %x: f32[2,3], param %g: f32[3], param %v: f32[3],"
                          " param %u: f32[3], input %w: f32[3]) {"
                          " %n = batch_norm_inference %x, %g, %g, %g, %v"
                          " %d = batch_norm_inference_backward_gamma %n, %g, %w, %x"
                          " %unused = batch_norm_inference %x, %g, %g, %g, %u return %n, %d }"));
    expect(t, !param_of(t, o.model, 0).variance);
    expect(t, param_of(t, o.model, 1).variance);
    expect(t, !param_of(t, o.model, 2).variance); /* nothing that runs */
    expect_ok(t, rlx_model_io(o.model, RLX_IO_INPUT, 1, &info, &err));
    expect(t, info.variance);
    expect_ok(t, rlx_model_io(o.model, RLX_IO_INPUT, 0, &info, &err));
    expect(t, !info.variance);
    close_model(&o);
}
