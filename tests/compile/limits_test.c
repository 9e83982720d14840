/* limits_test.c: little memory, which is MEMORY before anything is allocated, and a lot of it, with
 * offsets above 4 GiB. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "limits_world.h"

/* ---- memory_limit and the device's own ---- */

TEST_DEVICES(limits, memory_limit_is_exact)
{
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .params_default_zero = true};
    struct world w;

    if (!open_text(t, &w, test_device(t), SPREAD) || !open_session(t, &w, &desc))
        return close_world(&w);
    rlx_memory_info m = memory(t, &w);
    desc.memory_limit = m.activations + m.constants + m.weight_copies + 1024; /* states: 2 * 512 */
    expect(t, open_session(t, &w, &desc));
    rlx_session_destroy(w.session);
    w.session = NULL;
    desc.memory_limit--;
    expect_status(t, rlx_session_create(w.model, w.dev, &desc, &w.session, &w.err),
                  RLX_ERROR_MEMORY);
    expect_contains(t, w.err.message, "memory_limit");
    expect_contains(t, w.err.message, "the largest is");
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)desc.memory_limit);
    expect_contains(t, w.err.message, number);
    desc.memory_limit = 1000; /* less than the states */
    expect_status(t, rlx_session_create(w.model, w.dev, &desc, &w.session, &w.err),
                  RLX_ERROR_MEMORY);
    expect_contains(t, w.err.message, "1024");
    desc.memory_limit = 0;
    expect(t, open_session(t, &w, &desc));
    close_world(&w);
}

/* Counts what is asked of it, so that "before anything is allocated" can be seen. */
struct counter {
    size_t most;
};

static void *note_largest(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct counter *c = user;

    (void)old_size;
    c->most = new_size > c->most ? new_size : c->most;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

TEST(limits, memory_is_not_asked_for_in_vain)
{
    const char *text =
        "rlx 1\ngraph (input %x: f32[4000000]) {\n    %y = exp %x\n    return %y\n}\n";
    struct counter c = {0};
    const rlx_allocator allocator = {note_largest, &c};
    const rlx_context_desc context = {RLX_SIZED(rlx_context_desc), .allocator = &allocator,
                                      .threads = 1};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .memory_limit = 1 << 20};
    struct world w = {0};

    require_ok(t, rlx_context_create(RLX_VERSION, &context, &w.ctx, &w.err));
    require_ok(t, rlx_device_open(w.ctx, "cpu", &w.dev, &w.err));
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &w.model, &w.err));
    expect_status(t, rlx_session_create(w.model, w.dev, &desc, &w.session, &w.err),
                  RLX_ERROR_MEMORY);
    expect(t, c.most < 1 << 20);
    close_world(&w);
}

/* There is room for one program at a time: those for other sizes go. */
TEST_DEVICES(limits, programs_make_room_for_each_other)
{
    const char *text = "rlx 1\ndim rows\ngraph (input %x: f32[rows,8]) {\n    %y = exp %x\n"
                       "    return %y\n}\n";
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .memory_limit = 3 * 100 * 8 * 4};
    float x[800], y[800];
    struct world w;

    for (int i = 0; i < 800; i++)
        x[i] = 0;
    if (!open_text(t, &w, test_device(t), text) || !open_session(t, &w, &desc))
        return close_world(&w);
    for (int64_t round = 0; round < 12; round++) {
        int64_t rows = 100 - round % 4;
        rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {rows, 8}, x, (size_t)rows * 32}};
        rlx_binding out = {"y", {RLX_DTYPE_f32, 2, {rows, 8}, y, (size_t)rows * 32}};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
        y[rows * 8 - 1] = 0;
        if (!expect_ok(t, rlx_session_run(w.session, &run, &w.err)))
            fail(t, "%s", w.err.message);
        expect_near(t, y[rows * 8 - 1], 1.0, 0);
    }
    float more[8 * 400];
    memset(more, 0, sizeof more);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {400, 8}, more, sizeof more}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0};
    expect_status(t, rlx_session_run(w.session, &run, &w.err), RLX_ERROR_MEMORY);
    in.tensor.dim[0] = 50; /* and goes on */
    in.tensor.bytes = 50 * 32;
    expect_ok(t, rlx_session_run(w.session, &run, &w.err));
    close_world(&w);
}

TEST_DEVICES(limits, handles_and_copies_count)
{
    const char *text = "rlx 1\ngraph (input %x: f32[100], input %h: f32[100]) {\n"
                       "    %y = mul %x, %h\n    return %y\n}\n";
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
    float data[100] = {0};
    rlx_tensor value = row100(data);
    struct world w;

    if (!open_text(t, &w, test_device(t), text) || !open_session(t, &w, &desc))
        return close_world(&w);
    desc.memory_limit = memory(t, &w).activations + 399;
    if (open_session(t, &w, &desc)) {
        expect_status(t, rlx_session_bind_handle(w.session, "h", &value, &w.err), RLX_ERROR_MEMORY);
        expect_contains(t, w.err.message, "handle \"h\"");
    }
    desc.memory_limit++;
    if (open_session(t, &w, &desc))
        expect_ok(t, rlx_session_bind_handle(w.session, "h", &value, &w.err));
    desc = (rlx_session_desc){RLX_SIZED(rlx_session_desc), .max_buffer = 512};
    if (open_session(t, &w, &desc))
        expect_ok(t, rlx_session_bind_handle(w.session, "h", &value, &w.err));
    close_world(&w);
}

/* null:small says that it has 16 MiB, in buffers of up to 1 MiB. */
TEST(limits, the_memory_of_the_device_is_asked_first)
{
    static const char *const kind[] = {"param", "input", "state"};

    for (int i = 0; i < 3; i++) {
        char text[4096];
        struct world w;
        int len = snprintf(text, sizeof text, "rlx 1\ngraph (");
        for (int k = 0; k < 20; k++)
            len += snprintf(text + len, sizeof text - (size_t)len, "%s%s %%x%d: f32[250000]",
                            k ? ", " : "", kind[i], k);
        len += snprintf(text + len, sizeof text - (size_t)len, ") {\n");
        for (int k = 0; k < 20; k++)
            len += snprintf(text + len, sizeof text - (size_t)len,
                            "    %%s%d = narrow %%x%d axis=0 start=0 len=2\n", k, k);
        len += snprintf(text + len, sizeof text - (size_t)len, "    %%y = concat ");
        for (int k = 0; k < 20; k++)
            len += snprintf(text + len, sizeof text - (size_t)len, "%%s%d%s", k,
                            k < 19 ? ", " : " axis=0\n    return %y\n}\n");
        test_note(t, "%s", kind[i]);
        if (open_text(t, &w, "null:small", text)) {
            expect_status(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err),
                          RLX_ERROR_MEMORY);
            expect_contains(t, w.err.message, "16777216");
        }
        close_world(&w);
    }
}

/* ---- above 4 GiB: pages that nothing touches are never made ---- */

static bool has_memory(uint64_t bytes)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 && (uint64_t)pages * (uint64_t)page >= bytes;
}

/* Whether the test's device has so much, if it is a GPU; else the test is skipped. */
static bool device_has(struct test *t, struct world *w, uint64_t bytes)
{
    const char *name = test_device(t);
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};

    if (strcmp(name, "cpu") == 0)
        return true;
    for (size_t i = 0; rlx_device_at(w->ctx, i, &info, NULL) == RLX_OK; i++)
        if (info.present && strncmp(info.name, name, strlen(name)) == 0 && info.memory >= bytes)
            return true;
    test_skip(t, "%s has less than %llu bytes of memory", name, (unsigned long long)bytes);
    return false;
}

static uint64_t largest_buffer(struct test *t, struct world *w)
{
    const char *name = test_device(t);
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};

    for (size_t i = 0; rlx_device_at(w->ctx, i, &info, NULL) == RLX_OK; i++)
        if (info.present && strncmp(info.name, name, strlen(name)) == 0 && info.max_buffer)
            return info.max_buffer;
    return UINT64_MAX;
}

/* One state of 5 GiB, where the device has such buffers; then two of 3 GiB, in one buffer and in
 * two. */
TEST_DEVICES_SLOW(limits, states_above_four_gigabytes)
{
    static const struct {
        const char *text;
        uint64_t max_buffer;
        int64_t at;
    } row[] = {
        {"rlx 1\ngraph (state %s: u8[5368709120], input %x: u8[8], input %at: i64[]) {\n"
         "    %all = cache_append %s, %x, %at axis=0\n"
         "    %y = narrow %all axis=0 start=5368709104 len=16\n    return %y\n}\n",
         0, 5368709112},
        {"rlx 1\ngraph (state %a: u8[3221225472], state %s: u8[3221225472], input %x: u8[8], input "
         "%at: i64[]) {\n    %z = narrow %a axis=0 start=3221225456 len=16\n"
         "    %all = cache_append %s, %x, %at axis=0\n"
         "    %n = narrow %all axis=0 start=3221225456 len=16\n    %y = add %n, %z\n"
         "    return %y\n}\n",
         0, 3221225464},
        {NULL, UINT64_C(4) << 30, 3221225464},
    };

    if (!has_memory(UINT64_C(2) << 30))
        skip(t, "less than 2 GiB of memory are free");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                       .max_buffer = row[i].max_buffer};
        uint8_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[16];
        int64_t at = row[i].at;
        rlx_binding in[2] = {{"x", {RLX_DTYPE_u8, 1, {8}, x, 8}},
                             {"at", {RLX_DTYPE_i64, 0, {0}, &at, 8}}};
        rlx_binding out = {"y", {RLX_DTYPE_u8, 1, {16}, y, 16}};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0};
        struct world w;
        test_note(t, "row %zu", i);
        if (open_text(t, &w, test_device(t), row[row[i].text ? i : i - 1].text) &&
            device_has(t, &w, UINT64_C(8) << 30)) {
            if (i == 0 && largest_buffer(t, &w) < UINT64_C(5) << 30) {
                expect_status(t, rlx_session_create(w.model, w.dev, &desc, &w.session, &w.err),
                              RLX_ERROR_LIMIT);
                expect_contains(t, w.err.message, "state \"s\" takes 5368709120 bytes");
                close_world(&w);
                continue;
            }
            if (!open_session(t, &w, &desc))
                return close_world(&w);
            memset(y, 0xee, sizeof y);
            if (!expect_ok(t, rlx_session_run(w.session, &run, &w.err)))
                fail(t, "%s", w.err.message);
            static const uint8_t want[16] = {[8] = 1, 2, 3, 4, 5, 6, 7, 8};
            expect_bytes(t, y, want, 16);
            expect(t, memory(t, &w).state >= UINT64_C(5) << 30);
        }
        close_world(&w);
    }
}

/* These are touched, every byte: two values of 2.2 GB. */
static void fill_four_gigabytes(struct test *t)
{
    const char *text = "rlx 1\ngraph (input %x: u8[1]) {\n    %a = expand %x shape=[2200000000]\n"
                       "    %b = add %a, %a\n    %p = narrow %a axis=0 start=2199999992 len=8\n"
                       "    %q = narrow %b axis=0 start=2199999992 len=8\n    %y = add %p, %q\n"
                       "    return %y\n}\n";
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                   .debug = DEBUG(.no_optimize = true, .no_fusion = true)};
    uint8_t x[1] = {7}, y[8] = {0};
    rlx_binding in = {"x", {RLX_DTYPE_u8, 1, {1}, x, 1}};
    rlx_binding out = {"y", {RLX_DTYPE_u8, 1, {8}, y, 8}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    struct world w;

    if (!has_memory(UINT64_C(8) << 30))
        skip(t, "less than 8 GiB of memory are free");
    if (open_text(t, &w, test_device(t), text) && device_has(t, &w, UINT64_C(8) << 30) &&
        open_session(t, &w, &desc)) {
        expect(t, memory(t, &w).activations > UINT64_C(4) << 30);
        if (!expect_ok(t, rlx_session_run(w.session, &run, &w.err)))
            fail(t, "%s", w.err.message);
        for (int k = 0; k < 8; k++)
            expect_eq(t, y[k], 21);
    }
    close_world(&w);
}

TEST_SLOW(limits, activations_above_four_gigabytes)
{
    fill_four_gigabytes(t);
}

TEST_GPUS_SLOW(limits, activations_of_a_gpu_above_four_gigabytes)
{
    fill_four_gigabytes(t);
}
