/* parts_test.c: sessions of models whose sizes depend on data: any count from none to all, several
 * sessions, params, states, and what such a model cannot do. */
#include <stdlib.h>

#include "parts_world.h"
#include "rlx/artefact.h"
#include "rlx/cache.h"
#include "rlx/onnx.h"
#include "rlx/tools.h"

static rlx_tensor list_of(const float *at, int64_t n)
{
    return (rlx_tensor){
        .dtype = RLX_DTYPE_f32, .rank = 1, .dim = {n}, .data = (void *)at, .bytes = (size_t)n * 4};
}

struct outputs {
    float y[16], total, big[16];
    rlx_binding at[3];
};

static void make_room(struct outputs *o)
{
    memset(o, 0, sizeof *o);
    o->at[0] = (rlx_binding){"y", list_of(o->y, 16)};
    o->at[1] = (rlx_binding){"total", {.dtype = RLX_DTYPE_f32, .data = &o->total, .bytes = 4}};
    o->at[2] = (rlx_binding){"big", list_of(o->big, 16)};
}

static int falling(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

/* One run of x, held against the definition at the top of parts_world.h. */
static void expect_run(struct test *t, rlx_session *s, const float *x, int64_t n, float weight,
                       float bias)
{
    rlx_binding in = {"x", list_of(x, n)};
    struct outputs o;
    rlx_error err = {0};
    float sorted[16], want[16], sum = 0, total = 0;
    int64_t kept = 0, big = 0;

    memcpy(sorted, x, (size_t)n * 4);
    qsort(sorted, (size_t)n, 4, falling);
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        kept += x[i] > 0;
        big += x[i] > 1;
    }
    for (int64_t i = 0; i < kept; i++)
        total += want[i] = sorted[i] * weight + bias + sum;
    make_room(&o);
    if (!expect_ok(
            t, rlx_session_run(
                   s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, o.at, 3, NULL, 0}, &err))) {
        fail(t, "%s", err.message);
        return;
    }
    expect_eq(t, o.at[0].tensor.dim[0], kept);
    expect_eq(t, o.at[2].tensor.dim[0], big);
    expect_close(t, o.y, want, (size_t)kept, 1e-5, 1e-5);
    expect_near(t, o.total, total, 1e-3);
    expect_close(t, o.big, sorted, (size_t)big, 0, 0);
    rlx_tensor shape;
    expect_ok(t, rlx_session_output_shape(s, 0, &shape, &err));
    expect_eq(t, shape.dim[0], kept);
    expect_eq(t, shape.bytes, kept * 4);
}

static const float rows[][8] = {
    {1, -1, 2, -3, 0.5f, -0.25f, 4, -1},
    {-1, -2, -3, -4, -5, -6, -7, -8},  /* none */
    {1, 2, 3, 4, 5, 6, 7, 8},          /* all */
    {0.5f, -1, 0.25f, -3, 0, 0, 0, 0}, /* none of them big */
    {-1, 7, -1, -1, -1, -1, -1, -1},
};
#define ROWS (sizeof rows / sizeof rows[0])

TEST_DEVICES(parts, run_at_any_count)
{
    for (int64_t n = 8; n >= 0; n -= 8) {
        struct parts_world w;
        rlx_session *s = NULL;
        rlx_status status = world_model(&w, NULL, n, test_device(t));
        if (test_no_device(t, test_device(t), status, w.err.message)) {
            world_close(&w);
            return;
        }
        require_ok(t, rlx_session_create(w.model, w.dev, NULL, &s, &w.err));
        for (size_t i = 0; i < 2 * ROWS; i++)
            expect_run(t, s, rows[i % ROWS], n ? 8 : (int64_t)(8 - i % 3), 2, 0);
        rlx_session_destroy(s);
        world_close(&w);
    }
}

TEST(parts, are_listed_as_one_model)
{
    struct parts_world w;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};
    rlx_tensor shape;

    require_ok(t, world_model(&w, NULL, 0, "cpu"));
    expect_eq(t, rlx_model_io_count(w.model, RLX_IO_INPUT), 1);
    expect_eq(t, rlx_model_io_count(w.model, RLX_IO_PARAM), 1);
    expect_eq(t, rlx_model_io_count(w.model, RLX_IO_STATE), 1);
    expect_eq(t, rlx_model_io_count(w.model, RLX_IO_OUTPUT), 3);
    expect_ok(t, rlx_model_io(w.model, RLX_IO_INPUT, 0, &info, &w.err));
    expect(t, str_eq(info.name, STR("x")) && info.used);
    expect_status(t, rlx_model_io(w.model, RLX_IO_INPUT, 1, &info, &w.err), RLX_ERROR_ARGUMENT);
    expect_ok(t, rlx_model_io(w.model, RLX_IO_STATE, 0, &info, &w.err));
    expect(t, info.used);
    const rlx_dim_size n = {"n", 5};
    expect_ok(t, rlx_model_input_shape(w.model, 0, &n, 1, &shape, &w.err));
    expect_eq(t, shape.dim[0], 5);
    world_close(&w);
}

TEST(parts, have_params_states_and_clones)
{
    struct parts_world w;
    rlx_session *s = NULL, *other = NULL, *own = NULL;
    const float three = 3, half = 0.5f;
    float got = 0;
    rlx_tensor value = list_of(&three, 1), read = list_of(&got, 1), bias = list_of(&half, 1);

    require_ok(t, world_model(&w, NULL, 8, "cpu"));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &s, &w.err));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &other, &w.err));
    require_ok(t, rlx_session_clone(s, RLX_CLONE_OWN_WEIGHTS, &own, &w.err));
    expect_status(t, rlx_model_set_param(w.model, "w", &value, &w.err), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_set_param(s, "w", &value, &w.err));
    expect_ok(t, rlx_session_get_param(other, "w", &read, &w.err));
    expect_near(t, got, 3, 0);
    expect_ok(t, rlx_session_set_state(s, "bias", &bias, &w.err));
    expect_ok(t, rlx_session_get_state(other, "bias", &read, &w.err));
    expect_near(t, got, 0, 0);
    expect_run(t, s, rows[0], 8, 3, 0.5f);
    expect_run(t, other, rows[2], 8, 3, 0);
    expect_run(t, own, rows[0], 8, 2, 0);
    rlx_session_destroy(own);
    require_ok(t, rlx_session_clone(s, 0, &own, &w.err));
    expect_run(t, own, rows[4], 8, 3, 0.5f); /* its state came along */
    expect_ok(t, rlx_session_set_param_bytes(own, "w", &half, 4, &w.err));
    expect_run(t, other, rows[0], 8, 0.5f, 0);
    expect_status(t, rlx_session_set_param(s, "v", &value, &w.err), RLX_ERROR_NAME);
    expect_status(t, rlx_session_get_param(s, "v", &read, &w.err), RLX_ERROR_NAME);
    expect_status(t, rlx_session_set_state(s, "v", &value, &w.err), RLX_ERROR_NAME);
    rlx_session_destroy(own);
    rlx_session_destroy(other);
    rlx_session_destroy(s);
    world_close(&w);
}

TEST(parts, tell_shapes_between_submit_and_wait)
{
    struct parts_world w;
    rlx_session *s = NULL;
    rlx_binding in = {"x", list_of(rows[0], 8)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1};
    struct outputs o;
    rlx_tensor shape;
    uint64_t ticket, second;
    bool done = false;
    rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};

    make_room(&o);
    require_ok(t, world_model(&w, NULL, 0, "cpu"));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &s, &w.err));
    expect_status(t, rlx_session_output_shape(s, 0, &shape, &w.err), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_prepare(s, &run, &w.err));
    expect_status(t, rlx_session_output_shape(s, 0, &shape, &w.err), RLX_ERROR_STATE);
    expect_error(t, RLX_ERROR_STATE, "depend on data", &w.err);
    require_ok(t, rlx_session_submit(s, &run, &ticket, &w.err));
    expect_ok(t, rlx_session_output_shape(s, 0, &shape, &w.err));
    expect_eq(t, shape.dim[0], 4);
    expect_status(t, rlx_session_submit(s, &run, &second, &w.err), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_poll(s, ticket, &done, &w.err));
    expect(t, done);
    expect_status(t, rlx_session_wait(s, ticket + 1, &run, &w.err), RLX_ERROR_STATE);
    run.outputs = o.at;
    run.output_count = 3;
    o.at[0].tensor.bytes = 15; /* too little: the run can still be waited for */
    expect_status(t, rlx_session_wait(s, ticket, &run, &w.err), RLX_ERROR_SIZE);
    o.at[0].tensor.bytes = 16;
    expect_ok(t, rlx_session_wait(s, ticket, &run, &w.err));
    expect_eq(t, o.at[0].tensor.dim[0], 4);
    expect_status(t, rlx_session_poll(s, ticket, &done, &w.err), RLX_ERROR_STATE);
    expect_ok(t, rlx_session_memory(s, &memory, &w.err));
    expect(t, memory.steps > 2);
    rlx_session_destroy(s);
    world_close(&w);
}

TEST(parts, refuse_what_is_not_theirs)
{
    struct parts_world w;
    rlx_session *s = NULL;
    rlx_binding in[2] = {{"x", list_of(rows[0], 8)}, {"x", list_of(rows[0], 8)}};
    rlx_dim_size dim = {"kept", 3};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = in, .input_count = 1};
    rlx_model *made;
    struct outputs o;

    make_room(&o);
    require_ok(t, world_model(&w, NULL, 0, "cpu"));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &s, &w.err));
    in[0].name = "kept";
    expect_status(t, rlx_session_run(s, &run, &w.err), RLX_ERROR_NAME);
    in[0].name = "x";
    run.dims = &dim;
    run.dim_count = 1;
    expect_status(t, rlx_session_run(s, &run, &w.err), RLX_ERROR_ARGUMENT);
    expect_error(t, RLX_ERROR_ARGUMENT, "depends on the data", &w.err);
    dim = (rlx_dim_size){"n", 7};
    expect_status(t, rlx_session_run(s, &run, &w.err), RLX_ERROR_BINDING);
    run.dim_count = 0;
    run.input_count = 2;
    expect_status(t, rlx_session_run(s, &run, &w.err), RLX_ERROR_ARGUMENT);
    run.input_count = 0;
    expect_status(t, rlx_session_run(s, &run, &w.err), RLX_ERROR_UNBOUND_DIM);
    run.input_count = 1;
    in[0].tensor.dtype = RLX_DTYPE_i32;
    expect_status(t, rlx_session_run(s, &run, &w.err), RLX_ERROR_DTYPE);
    in[0].tensor.dtype = RLX_DTYPE_f32;
    expect_status(t, rlx_session_bind_handle(s, "x", &in[0].tensor, &w.err), RLX_ERROR_UNSUPPORTED);
    expect_error(t, RLX_ERROR_UNSUPPORTED, "runs in parts", &w.err);
    expect(t, !rlx_session_has_handle(s, "x"));
    expect_status(t, rlx_session_save(s, test_temp(t, "a.rlxa"), 0, &w.err), RLX_ERROR_UNSUPPORTED);
    expect_status(t, rlx_model_transform(w.model, "dce", NULL, &made, &w.err),
                  RLX_ERROR_UNSUPPORTED);
    expect_status(t, rlx_model_save_onnx(w.model, test_temp(t, "a.onnx"), NULL, &w.err),
                  RLX_ERROR_UNSUPPORTED);
    expect_status(t, rlx_session_run(NULL, &run, &w.err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_session_run(s, NULL, &w.err), RLX_ERROR_ARGUMENT);
    expect_run(t, s, rows[0], 8, 2, 0);
    rlx_session_destroy(s);
    world_close(&w);
}

TEST(parts, bounds_are_set_for_all_of_them)
{
    struct parts_world w;
    rlx_session *s = NULL;
    rlx_bound_info bound = {RLX_SIZED(rlx_bound_info)};

    require_ok(t, world_model(&w, NULL, 0, "cpu"));
    require_ok(t, rlx_session_create(w.model, w.dev, NULL, &s, &w.err));
    expect_ok(t, rlx_session_set_bound(s, "n", 8, &w.err));
    expect_ok(t, rlx_session_set_bound(s, "kept", 4, &w.err));
    expect_ok(t, rlx_session_bound(s, "kept", &bound, &w.err));
    expect_eq(t, bound.bound, 4);
    expect_run(t, s, rows[0], 8, 2, 0);
    expect_run(t, s, rows[3], 5, 2, 0);
    rlx_binding in = {"x", list_of(rows[2], 8)};
    expect_status(
        t,
        rlx_session_run(
            s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1}, &w.err),
        RLX_ERROR_EXTENT);
    expect_error(t, RLX_ERROR_EXTENT, "\"kept\" is 8", &w.err);
    expect_run(t, s, rows[4], 8, 2, 0);
    rlx_session_destroy(s);
    world_close(&w);
}

TEST(parts, are_checked_one_after_the_other)
{
    struct parts_world w;
    rlx_device *other = NULL;
    rlx_binding in = {"x", list_of(rows[0], 8)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1};
    rlx_check_summary sum;

    require_ok(t, world_model(&w, NULL, 0, "cpu"));
    require_ok(t, rlx_device_open(w.ctx, "cpu:baseline", &other, &w.err));
    rlx_device *devices[] = {w.dev, other};
    rlx_check_desc desc = {RLX_SIZED(rlx_check_desc), .devices = devices, .device_count = 2,
                           .run = &run};
    expect_ok(t, rlx_check(w.model, &desc, &sum, &w.err));
    expect(t, sum.passed >= 9 && !sum.failed);
    expect_eq(t, sum.outputs, 3 + 4);
    rlx_device_close(other);
    world_close(&w);
}

static void collect(void *user, const char *text, size_t len)
{
    struct text *t = user;

    text_add(t, (rlx_str){text, len});
}

TEST(parts, are_printed_one_after_the_other)
{
    struct parts_world w;
    struct text plain, after, info;

    require_ok(t, world_model(&w, NULL, 0, "cpu"));
    text_init(&plain, &w.ctx->mem);
    text_init(&after, &w.ctx->mem);
    text_init(&info, &w.ctx->mem);
    expect_ok(t, rlx_model_print(w.model, true, false, collect, &plain, &w.err));
    expect_contains(t, plain.at, "# part 1 of 2\nrlx 1\n");
    expect_contains(t, plain.at, "}\n\n# part 2 of 2\nrlx 1\n");
    expect_ok(t, rlx_model_print_after(w.model, "dce", NULL, true, false, collect, &after, &w.err));
    expect_contains(t, after.at, "%x axis=0 descending=true"); /* what is cut is still there */
    expect_contains(t, after.at, "# part 2 of 2\nrlx 1\n");
    expect_ok(t, rlx_model_describe(w.model, false, collect, &info, &w.err));
    expect_contains(t, info.at, "sizes that depend on data\n  kept\n");
    expect_status(t, rlx_model_fusion(w.model, NULL, false, collect, &info, &w.err),
                  RLX_ERROR_UNSUPPORTED);
    text_free(&plain);
    text_free(&after);
    text_free(&info);
    world_close(&w);
}

static rlx_status whole_life(struct test *t, const rlx_allocator *mem, void *unused)
{
    struct parts_world w;
    rlx_session *s = NULL;
    rlx_binding in = {"x", list_of(rows[0], 8)};
    struct outputs o;
    rlx_status status = world_model(&w, mem, 0, "cpu");

    (void)t;
    (void)unused;
    make_room(&o);
    if (status == RLX_OK)
        status = rlx_session_create(w.model, w.dev, NULL, &s, &w.err);
    if (status == RLX_OK)
        status = rlx_session_run(
            s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, o.at, 3, NULL, 0}, &w.err);
    rlx_session_destroy(s);
    world_close(&w);
    return status;
}

TEST(parts, survive_every_allocation_failure)
{
    expect_survives_no_memory(t, whole_life, NULL);
}
