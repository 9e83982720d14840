/* struct_size_test.c: callers whose structs are older or newer than the library, or were not begun.
 */
#include <string.h>

#include "rlx/custom.h"
#include "rlx/graph.h"
#include "rlx/load.h"
#include "rlx/session.h"
#include "rlx/weights.h"
#include "test.h"

static const char text[] = "rlx 1\ngraph (input %x: f32[2], state %s: f32[2]) {"
                           " %y = add %x, %s return %y }\n";

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static bool open_world(struct test *t, struct world *w)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w->ctx, &w->err)) &&
           expect_ok(t, rlx_device_open(w->ctx, "cpu", &w->dev, &w->err)) &&
           expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &w->model, &w->err)) &&
           expect_ok(t, rlx_session_create(w->model, w->dev, NULL, &w->session, &w->err));
}

static void close_world(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

TEST(struct_size, none_is_refused_with_the_name_of_the_struct)
{
    const rlx_context_desc context = {.threads = 1};
    const rlx_load_desc load = {.read_files = true};
    const rlx_session_desc session = {.check_indices = true};
    const rlx_run_desc run = {.input_count = 0};
    const rlx_feed feed = {.mode = RLX_FEED_WHOLE};
    rlx_io_info io = {.rank = 77};
    rlx_memory_info memory = {.steps = 77};
    rlx_device_info device = {.threads = 77};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    uint64_t ticket = 0;
    struct world w;

    if (!open_world(t, &w))
        return close_world(&w);
#define REFUSED(call, name)                                \
    (expect_status(t, call, RLX_ERROR_ARGUMENT),           \
     expect_contains(t, w.err.message, name ".size is 0"), \
     expect_contains(t, w.err.message, "{RLX_SIZED(" name ")}"))
    REFUSED(rlx_context_create(RLX_VERSION, &context, &ctx, &w.err), "rlx_context_desc");
    REFUSED(rlx_model_load(w.ctx, "nowhere.rlx", &load, &m, &w.err), "rlx_load_desc");
    REFUSED(rlx_session_create(w.model, w.dev, &session, &s, &w.err), "rlx_session_desc");
    REFUSED(rlx_session_run(w.session, &run, &w.err), "rlx_run_desc");
    REFUSED(rlx_session_prepare(w.session, &run, &w.err), "rlx_run_desc");
    REFUSED(rlx_session_submit(w.session, &run, &ticket, &w.err), "rlx_run_desc");
    REFUSED(rlx_session_set_feed(w.session, "x", &feed, &w.err), "rlx_feed");
    REFUSED(rlx_model_io(w.model, RLX_IO_INPUT, 0, &io, &w.err), "rlx_io_info");
    REFUSED(rlx_session_memory(w.session, &memory, &w.err), "rlx_memory_info");
    REFUSED(rlx_device_at(w.ctx, 0, &device, &w.err), "rlx_device_info");
    expect(t, !ctx && !m && !s && io.rank == 77 && memory.steps == 77 && device.threads == 77);
    close_world(&w);
}

TEST(struct_size, what_an_older_caller_does_not_know_is_neither_read_nor_written)
{
    rlx_run_desc run = {.size = offsetof(rlx_run_desc, dims), .dims = NULL, .dim_count = 99};
    rlx_io_info io = {.size = offsetof(rlx_io_info, rank), .rank = 77};
    float x[2] = {1, 2}, y[2] = {0, 0};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {2}, x, sizeof x}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
    struct world w;

    if (!open_world(t, &w))
        return close_world(&w);
    run.inputs = &in;
    run.outputs = &out;
    run.input_count = run.output_count = 1;
    expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    expect(t, y[0] == 1 && y[1] == 2);
    expect_ok(t, rlx_model_io(w.model, RLX_IO_INPUT, 0, &io, &w.err));
    expect_eq(t, (int64_t)io.dtype, RLX_DTYPE_f32);
    expect_eq(t, io.rank, 77);
    close_world(&w);
}

TEST(struct_size, a_newer_caller_is_served_while_it_sets_nothing_new)
{
    struct {
        rlx_session_desc known;
        uint64_t field;
    } newer = {{RLX_SIZED(rlx_session_desc)}, 0};
    rlx_session *s = NULL;
    struct world w;

    if (!open_world(t, &w))
        return close_world(&w);
    newer.known.size = sizeof newer;
    expect_ok(t, rlx_session_create(w.model, w.dev, &newer.known, &s, &w.err));
    rlx_session_destroy(s);
    s = NULL;
    newer.field = 1;
    expect_status(t, rlx_session_create(w.model, w.dev, &newer.known, &s, &w.err),
                  RLX_ERROR_ARGUMENT);
    expect_contains(t, w.err.message, "rlx_session_desc is newer than this library");
    expect(t, s == NULL);
    close_world(&w);
}

static rlx_status like_first(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                             size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)in_count, (void)attrs, (void)attrs_size, (void)message;
    *out = in[0];
    return RLX_OK;
}

/* An op as a newer header might have it. */
struct newer_op {
    rlx_custom_op known;
    uint64_t field;
};

TEST(struct_size, custom_ops_lie_as_far_apart_as_the_first_says)
{
    struct newer_op ops[2] = {{{.name = "a", .inputs = 1, .infer = like_first}, 0},
                              {{.name = "b", .inputs = 1, .infer = like_first}, 0}};
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .custom_ops = &ops[0].known,
                                   .custom_op_count = 2};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL;
    rlx_error err;

    expect_status(t, rlx_context_create(RLX_VERSION, &desc, &ctx, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "rlx_custom_op.size is 0");
    ops[0].known.size = sizeof ops[0];
    ops[1].known.size = sizeof(rlx_custom_op);
    expect_status(t, rlx_context_create(RLX_VERSION, &desc, &ctx, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "custom op 1");
    ops[1].known.size = sizeof ops[1];
    require_ok(t, rlx_context_create(RLX_VERSION, &desc, &ctx, &err));
    memset(ops, 0, sizeof ops); /* they were copied */
    expect_ok(t, rlx_model_parse(ctx,
                                 rlx_cstr("rlx 1\ngraph (input %x: f32[2]) {"
                                          " %y = custom %x name=\"b\" return %y }\n"),
                                 &m, &err));
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
}
