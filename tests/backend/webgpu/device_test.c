/* device_test.c: a WebGPU device: memory at any byte, overlapping operands, limits lowered by
 * flags, and what is said where there is none. */
#include <stdio.h>
#include <string.h>

#include "../../test.h"
#include "backend/backend.h"
#include "base/str.h"

enum { ROOM = 96 };

struct world {
    struct flags flags;
    struct test_alloc count;
    rlx_allocator mem;
    struct backend *b;
    struct diag diag;
};

/* false: there is no WebGPU here, and the test is skipped. */
static bool world_open(struct test *t, struct world *w, const rlx_flag *flags, size_t count)
{
    *w = (struct world){0};
    w->mem = test_allocator(&w->count);
    diag_init(&w->diag, "test");
    if (!expect_ok(t,
                   flags_read(&w->flags, flags, count, NULL, mem_default(), NULL, NULL, &w->diag)))
        return false;
    rlx_status s =
        backend_find(STR("webgpu"))
            ->open(&(struct device_desc){.mem = &w->mem, .flags = &w->flags}, &w->b, &w->diag);
    if (s != RLX_OK)
        flags_free(&w->flags);
    return !test_no_device(t, "webgpu", s, w->diag.first.message);
}

static void world_close(struct test *t, struct world *w)
{
    w->b->ops->close(w->b);
    flags_free(&w->flags);
    expect_no_leak(t, &w->count);
}

static void expect_memory(struct test *t, struct world *w, struct buffer *buf, const uint8_t *want)
{
    uint8_t got[ROOM];

    expect_ok(t, w->b->ops->read(w->b, (struct span){buf, 0, ROOM}, got, &w->diag));
    expect_bytes(t, got, want, ROOM);
}

/* Any first and last byte, also those within a word; none is no work. */
static void check_ranges(struct test *t, struct world *w, struct buffer *buf)
{
    uint8_t model[ROOM] = {0}, data[ROOM], got[ROOM];

    expect_memory(t, w, buf, model); /* new memory is zero */
    for (uint64_t from = 0; from < 5; from++)
        for (uint64_t bytes = 0; bytes < 11; bytes++) {
            struct span s = {buf, from + 40, bytes};
            for (size_t k = 0; k < ROOM; k++)
                data[k] = (uint8_t)(from * 31 + bytes * 7 + k + 1);
            expect_ok(t, w->b->ops->write(w->b, s, data, &w->diag));
            memcpy(model + s.offset, data, (size_t)bytes);
            memset(got, 0, sizeof got);
            expect_ok(t, w->b->ops->read(w->b, s, got, &w->diag));
            expect_bytes(t, got, data, (size_t)bytes);
            expect_eq(t, got[bytes], 0);
        }
    expect_memory(t, w, buf, model);
}

/* Within one buffer, which WebGPU's own copies cannot do. */
static void check_copies(struct test *t, struct world *w, struct buffer *buf)
{
    static const uint64_t cases[][3] = {{20, 40, 32}, {24, 20, 32}, {21, 19, 33}, {20, 40, 31}};
    uint8_t model[ROOM];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t to = cases[i][0], from = cases[i][1], bytes = cases[i][2];
        for (size_t k = 0; k < ROOM; k++)
            model[k] = (uint8_t)(k * 5 + i);
        expect_ok(t, w->b->ops->write(w->b, (struct span){buf, 0, ROOM}, model, &w->diag));
        expect_ok(t, w->b->ops->copy(w->b, (struct span){buf, to, bytes},
                                     (struct span){buf, from, bytes}, &w->diag));
        memmove(model + to, model + from, (size_t)bytes);
        expect_ok(t, w->b->ops->fill(w->b, (struct span){buf, i, 3 + i}, 0xab, &w->diag));
        memset(model + i, 0xab, 3 + i);
        expect_ok(t, w->b->ops->fill(w->b, (struct span){buf, 80, 8 + i}, 0, &w->diag));
        memset(model + 80, 0, 8 + i);
        expect_memory(t, w, buf, model);
    }
}

TEST(webgpu_device, ranges_copies_and_fills)
{
    struct world w;
    struct buffer *buf = NULL;

    if (!world_open(t, &w, NULL, 0))
        return;
    if (expect_ok(t, w.b->ops->alloc(w.b, ROOM, &buf, &w.diag))) {
        struct span far = {buf, ROOM - 1, 2};
        uint8_t byte[2] = {0};
        check_ranges(t, &w, buf);
        check_copies(t, &w, buf);
        expect_status(t, w.b->ops->write(w.b, far, byte, &w.diag), RLX_ERROR_INTERNAL);
        expect_status(t, w.b->ops->read(w.b, far, byte, &w.diag), RLX_ERROR_INTERNAL);
        expect_status(t, w.b->ops->fill(w.b, far, 0, &w.diag), RLX_ERROR_INTERNAL);
    }
    w.b->ops->release(w.b, buf);
    world_close(t, &w);
}

TEST(webgpu_device, memory_ends)
{
    const rlx_flag flag = {"GPU_MAX_MEMORY", "1000000"};
    struct buffer *a = NULL, *b = NULL;
    struct world w;

    if (!world_open(t, &w, &flag, 1))
        return;
    expect_ok(t, w.b->ops->alloc(w.b, 600000, &a, &w.diag));
    expect_status(t, w.b->ops->alloc(w.b, 600000, &b, &w.diag), RLX_ERROR_MEMORY);
    w.b->ops->release(w.b, a);
    expect_ok(t, w.b->ops->alloc(w.b, 600000, &b, &w.diag)); /* room again */
    w.b->ops->release(w.b, b);
    expect_status(t, w.b->ops->alloc(w.b, UINT64_MAX / 2, &b, &w.diag), RLX_ERROR_LIMIT);
    world_close(t, &w);
}

TEST(webgpu_device, a_library_that_is_not_there)
{
    const rlx_flag flag = {"WEBGPU_LIB", "/nowhere/libwgpu_native.so"};
    struct backend *b = NULL;
    struct flags flags;
    struct diag d;

    diag_init(&d, "test");
    require_ok(t, flags_read(&flags, &flag, 1, NULL, mem_default(), NULL, NULL, &d));
    expect_status(t,
                  backend_find(STR("webgpu"))
                      ->open(&(struct device_desc){.mem = mem_default(), .flags = &flags}, &b, &d),
                  RLX_ERROR_NO_DEVICE);
    flags_free(&flags);
}

/* ---- programs ---- */

static const struct row {
    const char *graph; /* of an input x: f32[4] and an input i: i32[4] */
    int32_t index[4];
    float want[4];
    const char *told; /* NULL: nothing is wrong */
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
    if (expect_ok(
            t, rlx_session_create(m, dev, &(rlx_session_desc){.check_indices = true}, &s, &err))) {
        expect_status(t, rlx_session_run(s, &(rlx_run_desc){in, 2, &out, 1, NULL, 0}, &err),
                      r->told ? RLX_ERROR_INDEX : RLX_OK);
        if (r->told)
            expect_contains(t, err.message, r->told);
        for (size_t k = 0; k < 4 && !r->told; k++)
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
                                         &(rlx_context_desc){.flags = flags, .flag_count = n}, &ctx,
                                         &err));
        if (!test_no_device(t, "webgpu", rlx_device_open(ctx, rlx_cstr("webgpu"), &dev, &err),
                            err.message))
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                run_row(t, ctx, dev, &rows[i]);
        rlx_device_close(dev);
        rlx_context_destroy(ctx);
    }
}
