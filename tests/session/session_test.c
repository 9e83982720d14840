/* session_test.c: sessions from the outside: runs, params, states, sizes, selection, threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/graph.h"
#include "rlx/tools.h"
#include "test.h"

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static bool open_world(struct test *t, struct world *w, const char *text,
                       const rlx_context_desc *desc)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, desc, &w->ctx, &w->err)) &&
           !test_no_device(t, test_device(t),
                           rlx_device_open(w->ctx, test_device(t), &w->dev, &w->err),
                           w->err.message) &&
           expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &w->model, &w->err));
}

static bool open_session(struct test *t, struct world *w, const char *text)
{
    return open_world(t, w, text, NULL) &&
           expect_ok(t, rlx_session_create(w->model, w->dev, NULL, &w->session, &w->err));
}

static void close_world(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

static rlx_tensor vector(float *data, int64_t n)
{
    return (rlx_tensor){RLX_DTYPE_f32, 1, {n}, data, (size_t)n * sizeof *data};
}

#define SCALE                                        \
    "rlx 1\n"                                        \
    "graph (input %x: f32[3], param %w: f32[3]) {\n" \
    "    %y = mul %x, %w\n    %z = neg %y\n    return %y, %z\n}\n"

TEST_DEVICES(session, runs_and_selects_outputs)
{
    struct world w;
    float x[3] = {1, 2, 3}, k[3] = {2, 2, 2}, y[3] = {0}, z[3] = {0};

    if (!open_session(t, &w, SCALE))
        return close_world(&w);
    rlx_tensor weight = vector(k, 3);
    rlx_binding in = {"x", vector(x, 3)};
    rlx_binding out[2] = {{"z", vector(z, 3)}, {"y", vector(y, 3)}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, out, 2, NULL, 0};

    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_MISSING_INPUT);
    expect_contains(t, w.err.message, "w");
    expect_ok(t, rlx_session_set_param(w.session, "w", &weight, &w.err));
    expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    expect_near(t, y[2], 6, 0);
    expect_near(t, z[0], -2, 0);
    run.output_count = 1; /* only z */
    y[0] = 99;
    expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    expect_near(t, y[0], 99, 0);
    run.output_count = 0; /* execute only */
    expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    close_world(&w);
}

TEST_DEVICES(session, refuses_bad_runs_and_still_works)
{
    struct world w;
    float x[4] = {1, 2, 3, 4}, k[3] = {1, 1, 1}, y[3];
    int32_t whole[3] = {1, 2, 3};

    if (!open_session(t, &w, SCALE))
        return close_world(&w);
    rlx_tensor weight = vector(k, 3);
    expect_ok(t, rlx_session_set_param(w.session, "w", &weight, &w.err));
    rlx_binding in[2] = {{"x", vector(x, 3)}, {"x", vector(x, 3)}}, out = {"y", vector(y, 3)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 1, &out, 1, NULL, 0};

    in[0].name = "nothing";
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_NAME);
    expect_contains(t, w.err.message, "x"); /* lists what there is */
    in[0].name = "x";
    run.input_count = 2;
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_ARGUMENT);
    run.input_count = 0;
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_MISSING_INPUT);
    run.input_count = 1;
    in[0].tensor = vector(x, 4);
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_SIZE);
    in[0].tensor = (rlx_tensor){RLX_DTYPE_f32, 2, {1, 3}, x, 12};
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_SHAPE);
    in[0].tensor = (rlx_tensor){RLX_DTYPE_i32, 1, {3}, whole, 12};
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_DTYPE);
    in[0].tensor = (rlx_tensor){RLX_DTYPE_f32, 1, {3}, NULL, 12};
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_ARGUMENT);
    in[0].tensor = (rlx_tensor){RLX_DTYPE_f32, 1, {3}, x, 11};
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_SIZE);
    in[0].tensor = (rlx_tensor){(rlx_dtype)77, 1, {3}, x, 12};
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_DTYPE);
    in[0].tensor = (rlx_tensor){RLX_DTYPE_f32, 9, {3}, x, 12};
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_SIZE);
    in[0].tensor = vector(x, 3);
    out.name = "out7";
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_NAME);
    out.name = "y";
    out.tensor.bytes = 8;
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_SIZE);
    out.tensor.bytes = 12;
    expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    expect_near(t, y[1], 2, 0);
    close_world(&w);
}

TEST_DEVICES(session, params_are_typed_and_shared)
{
    struct world w;
    rlx_session *other = NULL;
    float k[3] = {1, 2, 3}, back[3] = {0};
    double wide[3] = {0.5, 0.25, -1};
    rlx_tensor weight = vector(k, 3), got = vector(back, 3);

    if (!open_session(t, &w, SCALE))
        return close_world(&w);
    expect_ok(t, rlx_session_create(w.model, w.dev, NULL, &other, &w.err));
    expect_status(t, rlx_session_get_param(w.session, "w", &got, &w.err), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_set_param(w.session, "w", &weight, &w.err));
    expect_ok(t, rlx_session_get_param(other, "w", &got, &w.err));
    expect_near(t, back[2], 3, 0);
    weight = (rlx_tensor){RLX_DTYPE_f64, 1, {3}, wide, sizeof wide};
    expect_ok(t, rlx_session_set_param(other, "w", &weight, &w.err));
    expect_ok(t, rlx_session_get_param(w.session, "w", &got, &w.err));
    expect_near(t, back[1], 0.25, 0);
    expect_ok(t, rlx_session_set_param_bytes(other, "w", k, sizeof k, &w.err));
    expect_status(t, rlx_session_set_param_bytes(other, "w", k, 11, &w.err), RLX_ERROR_SIZE);
    expect_status(t, rlx_session_set_param(other, "v", &weight, &w.err), RLX_ERROR_NAME);
    expect_contains(t, w.err.message, "w");
    weight.dim[0] = 4;
    expect_status(t, rlx_session_set_param(other, "w", &weight, &w.err), RLX_ERROR_SIZE);
    expect_status(t, rlx_model_set_param(w.model, "w", &got, &w.err), RLX_ERROR_STATE);
    rlx_session_destroy(other);
    close_world(&w);
}

#define CACHE                                                                    \
    "rlx 1\n"                                                                    \
    "graph (state %cache: f32[4,2], input %row: f32[1,2], input %at: i32[]) {\n" \
    "    %all = cache_append %cache, %row, %at axis=0\n"                         \
    "    %sum = reduce_sum %all axes=[0]\n    return %sum\n}\n"

/* As many elements in another shape are most likely a mistake: a matrix that is the other way
 * round. */
TEST(session, params_and_states_have_the_models_shape)
{
    float k[6] = {1, 2, 3, 4, 5, 6};
    const rlx_tensor right = {RLX_DTYPE_f32, 2, {3, 2}, k, sizeof k},
                     turned = {RLX_DTYPE_f32, 2, {2, 3}, k, sizeof k},
                     flat = {RLX_DTYPE_f32, 1, {6}, k, sizeof k};
    struct world w;

    if (!open_world(t, &w,
                    "rlx 1\ngraph (input %x: f32[3,2], param %w: f32[3,2], state %s: f32[3,2]) {\n"
                    "    %y = mul %x, %w\n    %z = add %y, %s\n    return %z\n}\n",
                    NULL))
        return close_world(&w);
    expect_status(t, rlx_model_set_param(w.model, "w", &turned, &w.err), RLX_ERROR_SHAPE);
    expect_contains(t, w.err.message, "\"w\": f32[3,2] is wanted, f32[2,3] was given");
    expect_status(t, rlx_model_set_param(w.model, "w", &flat, &w.err), RLX_ERROR_SHAPE);
    expect_ok(t, rlx_model_set_param(w.model, "w", &right, &w.err));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
    expect_status(t, rlx_session_set_param(w.session, "w", &turned, &w.err), RLX_ERROR_SHAPE);
    expect_contains(t, w.err.message, "f32[2,3] was given");
    expect_status(t, rlx_session_set_param(w.session, "w", &flat, &w.err), RLX_ERROR_SHAPE);
    expect_ok(t, rlx_session_set_param(w.session, "w", &right, &w.err));
    expect_status(t, rlx_session_set_state(w.session, "s", &turned, &w.err), RLX_ERROR_SHAPE);
    expect_status(t, rlx_session_set_state(w.session, "s", &flat, &w.err), RLX_ERROR_SHAPE);
    expect_ok(t, rlx_session_set_state(w.session, "s", &right, &w.err));
    close_world(&w);
}

TEST_DEVICES(session, states_survive_runs)
{
    struct world w;
    float row[2] = {1, 2}, sum[2], all[8] = {0};
    int32_t at = 0;

    if (!open_session(t, &w, CACHE))
        return close_world(&w);
    rlx_binding in[2] = {{"row", {RLX_DTYPE_f32, 2, {1, 2}, row, sizeof row}},
                         {"at", {RLX_DTYPE_i32, 0, {0}, &at, sizeof at}}};
    rlx_binding out = {"sum", vector(sum, 2)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0};
    for (at = 0; at < 3; at++)
        expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    expect_near(t, sum[1], 6, 0);
    at = 4;
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_INDEX);
    rlx_tensor state = {RLX_DTYPE_f32, 2, {4, 2}, all, sizeof all};
    expect_ok(t, rlx_session_get_state(w.session, "cache", &state, &w.err));
    expect_near(t, all[4], 1, 0);
    expect_near(t, all[6], 0, 0); /* nothing was written past the end */
    memset(all, 0, sizeof all);
    expect_ok(t, rlx_session_set_state(w.session, "cache", &state, &w.err));
    at = 1;
    expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    expect_near(t, sum[0], 1, 0);
    expect_status(t, rlx_session_get_state(w.session, "row", &state, &w.err), RLX_ERROR_NAME);
    close_world(&w);
}

#define ANY_SIZE                                         \
    "rlx 1\ndim n\n"                                     \
    "graph (input %a: f32[n,2], input %b: f32[2*n]) {\n" \
    "    %f = reshape %a shape=[2*n]\n    %y = add %f, %b\n    return %y\n}\n"

TEST_DEVICES(session, binds_sizes_from_inputs)
{
    struct world w;
    float a[64], b[64], y[64];

    for (int i = 0; i < 64; i++)
        a[i] = (float)i, b[i] = 1;
    if (!open_session(t, &w, ANY_SIZE))
        return close_world(&w);
    for (int64_t n = 0; n <= 6; n++) { /* more sizes than programs are kept */
        rlx_binding in[2] = {{"a", {RLX_DTYPE_f32, 2, {n, 2}, a, (size_t)n * 8}},
                             {"b", {RLX_DTYPE_f32, 1, {2 * n}, b, (size_t)n * 8}}};
        rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0};
        expect_ok(t, rlx_session_run(w.session, &run, &w.err));
        expect_eq(t, out.tensor.dim[0], 2 * n);
        if (n)
            expect_near(t, y[2 * n - 1], (double)(2 * n), 0);
        in[1].tensor.dim[0] = 2 * n + 2;
        in[1].tensor.bytes = (size_t)(2 * n + 2) * 4;
        expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_BINDING);
    }
    rlx_run_desc nothing = {RLX_SIZED(rlx_run_desc)};
    expect_status(t, rlx_session_run(w.session, &nothing, &w.err), RLX_ERROR_UNBOUND_DIM);
    expect_contains(t, w.err.message, "n");
    close_world(&w);
}

TEST_DEVICES(session, submit_and_wait_are_separate)
{
    struct world w;
    float x[3] = {1, 2, 3}, k[3] = {1, 1, 1}, y[3] = {0};
    rlx_tensor weight = vector(k, 3);
    uint64_t ticket = 0;
    bool done = false;

    if (!open_session(t, &w, SCALE))
        return close_world(&w);
    expect_ok(t, rlx_session_set_param(w.session, "w", &weight, &w.err));
    rlx_binding in = {"x", vector(x, 3)}, out = {"y", vector(y, 3)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    expect_ok(t, rlx_session_submit(w.session, &run, &ticket, &w.err));
    x[0] = 77; /* inputs were copied */
    expect_status(t, rlx_session_set_param(w.session, "w", &weight, &w.err), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_poll(w.session, ticket, &done, &w.err));
    expect_ok(t, rlx_session_wait(w.session, ticket, &run, &w.err));
    expect_near(t, y[0], 1, 0);
    expect_status(t, rlx_session_wait(w.session, ticket, &run, &w.err), RLX_ERROR_STATE);
    expect_ok(t,
              rlx_session_submit(w.session, &run, &ticket, &w.err)); /* destroyed while running */
    close_world(&w);
}

static void count_steps(void *user, const rlx_profile_event *e)
{
    if (e->bytes_written)
        ++*(int *)user;
}

TEST_DEVICES(session, profiles_every_step)
{
    struct world w;
    float x[3] = {1, 2, 3}, k[3] = {1, 1, 1};
    rlx_tensor weight = vector(k, 3);
    int steps = 0;

    if (!open_session(t, &w, SCALE))
        return close_world(&w);
    expect_ok(t, rlx_session_set_param(w.session, "w", &weight, &w.err));
    rlx_session_set_profile(w.session, count_steps, &steps);
    rlx_binding in = {"x", vector(x, 3)};
    expect_ok(t, rlx_session_run(w.session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0},
                                 &w.err));
    expect_eq(t, steps, 2);
    close_world(&w);
}

static void count_lines(void *user, int level, const char *line)
{
    if (level == 2 && strstr(line, "2 steps"))
        ++*(int *)user;
}

TEST_DEVICES(session, compiling_is_logged)
{
    struct world w;
    int lines = 0;

    if (!open_world(t, &w, SCALE,
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .log = count_lines,
                                        .log_user = &lines}))
        return close_world(&w);
    expect_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err));
    expect_eq(t, lines, 1);
    close_world(&w);
}

/* ---- memory ---- */

TEST_DEVICES(session, allocates_nothing_while_running)
{
    struct test_alloc a = {0};
    rlx_allocator mem = test_allocator(&a);
    struct world w;
    float x[3] = {1, 2, 3}, k[3] = {1, 1, 1}, y[3];
    rlx_tensor weight = vector(k, 3);

    if (!open_world(t, &w, SCALE,
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = &mem}) ||
        !expect_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err)))
        return close_world(&w);
    expect_ok(t, rlx_session_set_param(w.session, "w", &weight, &w.err));
    rlx_binding in = {"x", vector(x, 3)}, out = {"y", vector(y, 3)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    if (strcmp(test_device(t), "cpu") != 0) /* a GPU writes down what its first run does */
        expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    uint64_t before = a.calls;
    for (int i = 0; i < 20; i++)
        expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    expect_eq_u64(t, a.calls, before);
    close_world(&w);
    expect_eq_u64(t, a.live_blocks, 0);
    expect_eq_u64(t, a.misused, 0);
}

/* Zeros for every input; the caller's memory, not the library's. */
static size_t zero_inputs(const rlx_model *m, rlx_binding *in, char name[][32], size_t max)
{
    size_t count = rlx_model_io_count(m, RLX_IO_INPUT);

    for (size_t i = 0; i < count && i < max; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL);
        snprintf(name[i], 32, "%.*s", (int)info.name.len, info.name.ptr);
        in[i].name = name[i];
        in[i].tensor = (rlx_tensor){.dtype = info.dtype, .rank = info.rank};
        in[i].tensor.bytes = rlx_dtype_size(info.dtype);
        for (int32_t a = 0; a < info.rank; a++)
            in[i].tensor.bytes *= (size_t)(in[i].tensor.dim[a] = info.dim[a]);
        in[i].tensor.data = calloc(1, in[i].tensor.bytes + 1);
    }
    return count < max ? count : max;
}

/* A whole life: parse, transform, compile, run. */
static rlx_status whole_life(const rlx_allocator *mem, const char *device, const char *text)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *model = NULL, *other = NULL;
    rlx_session *session = NULL;
    rlx_error err;
    rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};
    rlx_session_desc options = {RLX_SIZED(rlx_session_desc), .params_default_zero = true};
    rlx_binding in[4] = {0};
    char name[4][32];
    size_t inputs = 0;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, &err);

    if (s == RLX_OK)
        s = rlx_device_open(ctx, device, &dev, &err);
    if (s == RLX_OK)
        s = rlx_model_parse(ctx, rlx_cstr(text), &model, &err);
    if (s == RLX_OK)
        s = rlx_model_transform(model, "expand,dce", dev, &other, &err);
    if (s == RLX_OK)
        s = rlx_session_create(model, dev, &options, &session, &err);
    if (s == RLX_OK) {
        inputs = zero_inputs(model, in, name, 4);
        s = in[0].tensor.data || !inputs
                ? rlx_session_run(
                      session,
                      &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, NULL, 0, NULL, 0}, &err)
                : RLX_ERROR_MEMORY;
    }
    for (size_t i = 0; i < inputs; i++)
        free(in[i].tensor.data);
    rlx_session_destroy(session);
    rlx_model_destroy(other);
    rlx_model_destroy(model);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return s;
}

static const char *const life_texts[] = {
    "rlx 1 graph (param %w: f32[4,4]) { %x = const f32[2,4] {1 2 3 4 5 6 7 8} %m = matmul %x, %w "
    "%n = softmax %m %s = sort %n %y = reduce_sum %s axes=[0] return %y }",
    "rlx 1 graph @main () { %p = const bool[] {true} %a = const f32[2] {1 2} "
    "%y = if %p, %a then_graph=@f else_graph=@g return %y } "
    "graph @f (input %a: f32[2]) { %y = exp %a return %y } "
    "graph @g (input %a: f32[2]) { %y = neg %a return %y }",
    "rlx 1 graph () { %x = const f32[1,3,8] {1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8} "
    "%g = const f32[8] {1 1 1 1 1 1 1 1} %n = ada_layer_norm %x, %g, %g "
    "%d = dot_general %n, %n lhs_contracting=[2] rhs_contracting=[2] lhs_batch=[0] rhs_batch=[0] "
    "return %d }",
};

static rlx_status life(struct test *t, const rlx_allocator *mem, void *ctx)
{
    return whole_life(mem, test_device(t), ctx);
}

/* A GPU is opened for each failure, so it has to do with one graph. */
TEST_DEVICES_SLOW(session, survives_every_allocation_failure)
{
    bool cpu = strcmp(test_device(t), "cpu") == 0;
    struct world w;

    if (!open_session(t, &w, SCALE))
        return close_world(&w);
    close_world(&w); /* the device is there */
    for (size_t i = 0; i < (cpu ? sizeof life_texts / sizeof life_texts[0] : 1); i++)
        expect_survives_no_memory(t, life, (void *)life_texts[i]);
}

TEST_SLOW(session, examples_survive_every_allocation_failure)
{
    static const char *const files[] = {"examples/mlp.rlx", "examples/convnet.rlx",
                                        "examples/transformer_block.rlx"};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t len;
        const char *text = test_read(t, test_source(t, files[i]), &len);
        test_note(t, "%s", files[i]);
        if (text)
            expect_survives_no_memory(t, life, (void *)text);
    }
}

/* ---- threads ---- */

struct runner {
    rlx_session *session;
    float expected;
    bool ok;
};

static void *run_many(void *user)
{
    struct runner *r = user;
    float x[3] = {r->expected, r->expected, r->expected}, y[3];
    rlx_binding in = {"x", vector(x, 3)}, out = {"y", vector(y, 3)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};

    r->ok = true;
    for (int i = 0; i < 200 && r->ok; i++)
        r->ok = rlx_session_run(r->session, &run, NULL) == RLX_OK && y[1] == r->expected;
    return NULL;
}

TEST_DEVICES(session, two_threads_two_sessions_one_device)
{
    struct world w;
    float k[3] = {1, 1, 1};
    rlx_tensor weight = vector(k, 3);
    struct runner r[2] = {{.expected = 3}, {.expected = 5}};
    pthread_t thread[2];

    if (!open_world(t, &w, SCALE, NULL))
        return close_world(&w);
    expect_ok(t, rlx_model_set_param(w.model, "w", &weight, &w.err));
    for (int i = 0; i < 2; i++)
        expect_ok(t, rlx_session_create(w.model, w.dev, NULL, &r[i].session, &w.err));
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, run_many, &r[i]);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        expect(t, r[i].ok);
        rlx_session_destroy(r[i].session);
    }
    close_world(&w);
}

/* ---- the null device, and arguments that are not there ---- */

TEST(session, null_device_runs_everything)
{
    struct world w;
    rlx_device *null = NULL;
    float y[4] = {1, 1, 1, 1};

    if (!open_world(t, &w, life_texts[0], NULL))
        return close_world(&w);
    expect_ok(t, rlx_device_open(w.ctx, "null", &null, &w.err));
    expect_ok(t, rlx_session_create(
                     w.model, null,
                     &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .params_default_zero = true},
                     &w.session, &w.err));
    rlx_binding out = {"y", vector(y, 4)};
    expect_ok(t, rlx_session_run(
                     w.session,
                     &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1},
                     &w.err));
    expect_near(t, y[3], 0, 0);
    rlx_session_destroy(w.session);
    w.session = NULL;
    rlx_device_close(null);
    close_world(&w);
}

TEST(api, null_arguments_are_errors)
{
    rlx_error err;
    rlx_context *ctx = NULL;
    bool done;
    uint64_t ticket;

    expect_status(t, rlx_value_type(NULL, 0, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_context_create(RLX_VERSION, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_context_create(990000, NULL, &ctx, &err), RLX_ERROR_VERSION);
    expect_status(t, rlx_device_open(NULL, "cpu", NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_graph_create(NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_graph_sub(NULL, "f", NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_graph_check(NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_graph_node(NULL, "add", NULL, 0, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_create(NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_load(NULL, NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_parse(NULL, rlx_cstr(NULL), NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_io(NULL, RLX_IO_INPUT, 0, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_set_param(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_create(NULL, NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_run(NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_submit(NULL, NULL, &ticket, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_submit(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_poll(NULL, 1, &done, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_wait(NULL, 1, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_prepare(NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_set_param(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_get_param(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_set_state(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_get_state(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_output_shape(NULL, 0, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_memory(NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_print(NULL, false, false, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_describe(NULL, false, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_draw(NULL, RLX_PICTURE_SVG, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_model_transform(NULL, NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tensor_load(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tensor_list_load(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_tensor_save(NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_selftest(NULL, NULL, NULL, NULL, &err), RLX_ERROR_ARGUMENT);
    expect(t, rlx_device_at(NULL, 0, NULL, NULL) == RLX_ERROR_ARGUMENT);
    expect(t, rlx_exp(NULL, 0) == RLX_NO_VALUE);
    expect(t, rlx_input(NULL, "x", RLX_DTYPE_f32, RLX_EMPTY) == RLX_NO_VALUE);
    rlx_output(NULL, 0);
    rlx_label(NULL, 0, NULL);
    rlx_graph_destroy(NULL);
    rlx_model_destroy(NULL);
    rlx_session_destroy(NULL);
    rlx_device_close(NULL);
    rlx_context_destroy(NULL);
    expect_status(t, rlx_session_run(NULL, NULL, NULL), RLX_ERROR_ARGUMENT); /* err may be NULL */
}
