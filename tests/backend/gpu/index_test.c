/* index_test.c: indices out of range on a GPU: reported when asked, and always by
 * cache_append; never harmful. */
#include <stdio.h>
#include <string.h>

#include "../../test.h"

struct row {
    const char *graph; /* of an input i: i32[4] */
    int32_t index[4];
    const char *message; /* NULL: nothing is wrong */
};

static const struct row rows[] = {
    {"%x = const f32[2] {5 6} %y = gather %x, %i axis=0", {0, 1, 1, 0}, NULL},
    {"%x = const f32[2] {5 6} %y = gather %x, %i axis=0", {0, 9, -7, 0}, "index 9 at position 1"},
    {"%x = const f32[4] {5 6 7 8} %j = cast %i to=f64 %y = gather_elements %x, %j axis=0",
     {3, 0, 0, -5},
     "index -5 at position 3"},
    {"%x = const f32[2,3] {1 2 3 4 5 6} %j = reshape %i shape=[2,2] %y = gather_nd %x, %j",
     {1, 2, 0, 3},
     "index 3 at position 3"},
    {"%x = const f32[4] {1 2 3 4} %j = cast %i to=u64 %y = scatter_add %x, %j out_dim=3",
     {1, 2, 3, 0},
     "index 3 at position 2"},
    {"%x = const f32[4] {1 2 3 4} %y = scatter_elements %x, %i, %x axis=0 reduction=add",
     {1, 2, 3, 4},
     "index 4 at position 3"},
    {"%x = const f32[4] {1 2 3 4} %j = reshape %i shape=[4,1] %y = scatter_nd %x, %j, %x",
     {-1, 2, 3, 4},
     "index -1 at position 0"},
};

struct place {
    rlx_context *ctx;
    rlx_device *dev;
};

/* false: there is no such device here, and the test is skipped. */
static bool open_place(struct test *t, struct place *p)
{
    const rlx_flag flag = {"GPU_CACHE", "0"};
    rlx_error err;

    *p = (struct place){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION,
                                         &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                             .flags = &flag, .flag_count = 1},
                                         &p->ctx, &err)))
        return false;
    rlx_status s = rlx_device_open(p->ctx, test_device(t), &p->dev, &err);
    if (!test_no_device(t, test_device(t), s, err.message))
        return true;
    rlx_context_destroy(p->ctx);
    return false;
}

static void close_place(struct place *p)
{
    rlx_device_close(p->dev);
    rlx_context_destroy(p->ctx);
}

static void run_row(struct test *t, const struct place *p, const struct row *r, bool checked)
{
    char text[400];
    float y[8];
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;
    int32_t index[4] = {r->index[0], r->index[1], r->index[2], r->index[3]};
    rlx_binding in = {"i", {RLX_DTYPE_i32, 1, {4}, index, sizeof index}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
    bool bad = checked && r->message;

    snprintf(text, sizeof text, "rlx 1 graph (input %%i: i32[4]) { %s return %%y }", r->graph);
    test_note(t, "%s", r->graph);
    require_ok(t, rlx_model_parse(p->ctx, rlx_cstr(text), &m, &err));
    require_ok(t, rlx_session_create(
                      m, p->dev,
                      &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .check_indices = checked},
                      &s, &err));
    expect_status(t,
                  rlx_session_run(
                      s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0}, &err),
                  bad ? RLX_ERROR_INDEX : RLX_OK);
    if (bad)
        expect_contains(t, err.message, r->message);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
}

TEST_GPUS(gpu_index, indices_out_of_range_are_told_when_asked)
{
    struct place p;

    if (!open_place(t, &p))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strstr(rows[i].graph, "f64") && !test_has_f64(t, p.ctx))
            continue;
        run_row(t, &p, &rows[i], false);
        run_row(t, &p, &rows[i], true);
    }
    close_place(&p);
}

TEST_GPUS(gpu_index, rows_that_do_not_fit_a_state_are_always_told)
{
    static const char text[] = "rlx 1 graph (state %s: f32[5], input %r: f32[2], input %p: i32[]) {"
                               " %y = cache_append %s, %r, %p axis=0"
                               " return %y }";
    static const float rows_in[2] = {7, 8};
    float y[5];
    struct place p;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;

    if (!open_place(t, &p))
        return;
    require_ok(t, rlx_model_parse(p.ctx, rlx_cstr(text), &m, &err));
    require_ok(t, rlx_session_create(m, p.dev, NULL, &s, &err));
    for (int32_t at = -1; at < 6; at++) {
        bool fits = at >= 0 && at <= 3;
        rlx_binding in[2] = {{"r", {RLX_DTYPE_f32, 1, {2}, (void *)(uintptr_t)rows_in, 8}},
                             {"p", {RLX_DTYPE_i32, 0, {0}, &at, sizeof at}}};
        rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
        expect_status(
            t,
            rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                            &err),
            fits ? RLX_OK : RLX_ERROR_INDEX);
        if (fits)
            expect_near(t, y[at + 1], 8, 0);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    close_place(&p);
}
