/* features_test.c: a WebGPU device with and without what it may have: the same results, times for
 * every step, and what is said of it. */
#include <stdio.h>
#include <string.h>

#include "../../test.h"
#include "backend/webgpu/webgpu.h"
#include "base/half.h"
#include "base/str.h"

#define ALL "f16,subgroups,dot8,fma,timestamps"
enum { ROWS = 3, COLUMNS = 71, COUNT = ROWS * COLUMNS };

struct place {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static void place_close(struct place *p)
{
    rlx_session_destroy(p->session);
    rlx_model_destroy(p->model);
    rlx_device_close(p->dev);
    rlx_context_destroy(p->ctx);
}

/* false: there is no WebGPU here, and the test is skipped. */
static bool place_open(struct test *t, struct place *p, const char *without, const char *lose,
                       const char *graph)
{
    const rlx_flag flags[] = {{"GPU_WITHOUT", without}, {"GPU_LOSE_AFTER", lose}};

    *p = (struct place){0};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION,
                                         &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                             .flags = flags, .flag_count = 2},
                                         &p->ctx, &p->err)))
        return false;
    rlx_status s = rlx_device_open(p->ctx, "webgpu", &p->dev, &p->err);
    bool fine = !test_no_device(t, "webgpu", s, p->err.message) &&
                expect_ok(t, rlx_model_parse(p->ctx, rlx_cstr(graph), &p->model, &p->err)) &&
                expect_ok(t, rlx_session_create(p->model, p->dev, NULL, &p->session, &p->err));
    if (!fine)
        place_close(p);
    return fine;
}

/* ---- results ---- */

/* Narrow loads and stores, and sums over rows. */
static const char *const softmax =
    "rlx 1 graph (input %x: f16[3,71]) { %e = exp %x %s = softmax %e axis=1"
    " %m = reduce_sum %s axes=[0] %y = mul %s, %m return %y }";

static void softmax_of(struct test *t, const char *without, float *out)
{
    uint16_t x[COUNT], y[COUNT] = {0};
    rlx_binding in = {"x", {RLX_DTYPE_f16, 2, {ROWS, COLUMNS}, x, sizeof x}};
    rlx_binding result = {"y", {RLX_DTYPE_f16, 2, {0}, y, sizeof y}};
    struct place p;

    test_note(t, "without %s", without);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = f32_to_f16((float)(i % 13) / 4 - 1);
    if (!place_open(t, &p, without, "0", softmax))
        return;
    expect_ok(t,
              rlx_session_run(p.session,
                              &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &result, 1, NULL, 0},
                              &p.err));
    for (size_t i = 0; i < COUNT; i++)
        out[i] = f16_to_f32(y[i]);
    place_close(&p);
}

TEST(webgpu_features, results_do_not_depend_on_them)
{
    static const char *const without[] = {"f16", "subgroups", "dot8", "f16,subgroups", ALL};
    float all[COUNT] = {0}, some[COUNT] = {0};

    softmax_of(t, "", all);
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        softmax_of(t, without[i], some);
        expect_close(t, some, all, COUNT, 2e-3, 1e-6);
    }
}

/* ---- what is said ---- */

static rlx_status words_of(struct test *t, const char *without, struct target *out, struct diag *d)
{
    const rlx_flag flag = {"GPU_WITHOUT", without};
    struct flags flags;
    struct backend *b = NULL;

    diag_init(d, "test");
    if (!expect_ok(t, flags_read(&flags, &flag, 1, NULL, mem_default(), NULL, NULL, d)))
        return RLX_ERROR_INTERNAL;
    rlx_status s = backend_find(STR("webgpu"))
                       ->open(&(struct device_desc){.mem = mem_default(), .flags = &flags}, &b, d);
    if (s == RLX_OK) {
        b->ops->describe(b, out);
        b->ops->close(b);
    }
    flags_free(&flags);
    return s;
}

TEST(webgpu_features, described)
{
    struct target t0, t1;
    struct diag d;

    if (test_no_device(t, "webgpu", words_of(t, "", &t0, &d), d.first.message))
        return;
    expect_contains(t, t0.features, " group=");
    expect(t, t0.max_buffer > 0);
    if (!expect_ok(t, words_of(t, ALL, &t1, &d)))
        return;
    expect(t, strncmp(t1.features, "subgroups=0 group=", 18) == 0);
    expect_status(t, words_of(t, "f16,nonsense", &t1, &d), RLX_ERROR_ARGUMENT);
    expect_contains(t, d.first.message, "\"nonsense\" is none of f16");
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A device has what its adapter has, not what the least of adapters has. */
TEST(webgpu_features, limits_are_the_adapters)
{
    struct backend *b;
    struct diag d;

    diag_init(&d, "test");
    rlx_status s = webgpu_backend.open(&(struct device_desc){.mem = mem_default()}, &b, &d);
    if (test_no_device(t, "webgpu", s, d.first.message))
        return;
    const struct wg_device *dev = wg_device_of(b);
    WGPULimits has = WGPU_LIMITS_INIT;
    if (expect_eq(t, dev->wg.AdapterGetLimits(dev->adapter, &has), WGPUStatus_Success)) {
        expect_eq_u64(t, dev->gpu.max_buffer, has.maxBufferSize);
        expect_eq_u64(t, dev->gpu.max_binding,
                      least(has.maxStorageBufferBindingSize, has.maxBufferSize) / 256 * 256);
        expect_eq_u64(t, dev->gpu.features.max_group,
                      least(has.maxComputeInvocationsPerWorkgroup, 1024));
        expect_eq_u64(t, dev->gpu.features.shared_bytes, has.maxComputeWorkgroupStorageSize);
    }
    webgpu_backend.close(b);
}

TEST(webgpu_features, listed)
{
    rlx_context *ctx = NULL;
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};
    bool found = false;
    rlx_error err;

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err));
    for (size_t i = 0; rlx_device_at(ctx, i, &info, NULL) == RLX_OK; i++) {
        if (strncmp(info.name, "webgpu", 6) != 0)
            continue;
        found = true;
        expect(t, info.description[0] != 0);
        if (info.present)
            expect_contains(t, info.features, "group=");
    }
    expect(t, found);
    rlx_context_destroy(ctx);
}

/* ---- times ---- */

struct profile {
    size_t events;
    uint64_t last, total;
    bool ordered;
};

static void note_event(void *user, const rlx_profile_event *e)
{
    struct profile *p = user;

    p->ordered &= e->start_ns >= p->last;
    p->last = e->start_ns;
    p->total += e->duration_ns;
    p->events++;
}

TEST(webgpu_features, times_of_steps)
{
    static const char *const graph =
        "rlx 1 graph (input %x: f32[3,71]) { %s = softmax %x axis=1 %m = reduce_sum %s axes=[0]"
        " %c = cumsum %m axis=0 return %c }";
    float x[COUNT] = {0}, y[COLUMNS];
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {ROWS, COLUMNS}, x, sizeof x}};
    rlx_binding out = {"c", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};

    for (int clock = 0; clock < 2; clock++) {
        struct profile seen = {.ordered = true};
        struct place p;
        if (!place_open(t, &p, clock ? "" : "timestamps", "0", graph))
            return;
        rlx_session_set_profile(p.session, note_event, &seen);
        for (int run = 0; run < 2; run++) { /* the second has a recording */
            expect_ok(t, rlx_session_run(
                             p.session,
                             &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                             &p.err));
            expect_near(t, (double)y[COLUMNS - 1], ROWS, 1e-5);
        }
        expect_eq_u64(t, seen.events, 6);
        expect(t, seen.ordered && seen.total > 0);
        place_close(&p);
    }
}

/* ---- a lost device ---- */

TEST(webgpu_features, every_call_hears_of_a_lost_device)
{
    float v[4] = {1, 2, 3, 4}, y[4];
    rlx_tensor four = {RLX_DTYPE_f32, 1, {4}, v, sizeof v};
    rlx_binding in = {"x", four}, out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
    const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    struct place p;
    uint64_t ticket;

    if (!place_open(t, &p, "", "1",
                    "rlx 1 graph (input %x: f32[4], state %s: f32[4]) { %y = add %x, %s"
                    " return %y }"))
        return;
    expect_ok(t, rlx_session_run(p.session, &run, &p.err));
    expect_status(t, rlx_session_run(p.session, &run, &p.err), RLX_ERROR_DEVICE_LOST);
    expect_contains(t, p.err.message, "lost");
    expect_status(t, rlx_session_submit(p.session, &run, &ticket, &p.err), RLX_ERROR_DEVICE_LOST);
    expect_status(t, rlx_session_set_state(p.session, "s", &four, &p.err), RLX_ERROR_DEVICE_LOST);
    expect_status(t, rlx_session_get_state(p.session, "s", &four, &p.err), RLX_ERROR_DEVICE_LOST);
    rlx_session *again = NULL;
    expect_status(t, rlx_session_create(p.model, p.dev, NULL, &again, &p.err),
                  RLX_ERROR_DEVICE_LOST);
    rlx_session_destroy(again);
    place_close(&p);
}
