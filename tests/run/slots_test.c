/* slots_test.c: typed access to a device's memory: conversions in pieces, ends of spans, odd
 * counts, on every device that is always there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "base/str.h"
#include "rlx/graph.h"
#include "run/convert.h"
#include "run/program.h"

/* Around the pieces that conversions go through, 16384 bytes of the slot's type. */
static const size_t counts[] = {0,    1,    3,    1025, 2047, 2048,  2049,  4095,
                                4096, 4097, 8191, 8192, 8193, 16384, 16385, 20001};
#define COUNTS (sizeof counts / sizeof counts[0])

/* The kind of device that the test is for; with the CPU also the null device. */
static const char *const *devices_of(const struct test *t)
{
    static const char *const cpu[] = {"cpu", "null"}, *const vulkan[] = {"vulkan", "vulkan"};

    return strcmp(test_device(t), "vulkan") == 0 ? vulkan : cpu;
}

/* Bytes that make tame and wild numbers in every type. */
static void fill(uint8_t *at, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        at[i] = (uint8_t)(seed >> 56);
    }
}

/* ---- spans ------------------------------------------------------------------------------------
 */

struct place {
    struct flags flags;
    struct backend *backend;
    struct buffer *buffer;
    uint64_t bytes;
    struct diag diag;
};

static bool memory_open(struct test *t, struct place *m, const char *device, uint64_t bytes)
{
    struct device_desc desc = {.mem = mem_default(), .flags = &m->flags, .threads = 1};
    const rlx_flag flag = {"GPU_CACHE", "0"};

    *m = (struct place){.bytes = bytes};
    diag_init(&m->diag, "slots");
    if (!expect_ok(t, flags_read(&m->flags, &flag, 1, NULL, mem_default(), NULL, NULL, &m->diag)))
        return false;
    rlx_status s = backend_find(rlx_cstr(device))->open(&desc, &m->backend, &m->diag);
    return !test_no_device(t, device, s, m->diag.first.message) &&
           expect_ok(t, m->backend->ops->alloc(m->backend, bytes, &m->buffer, &m->diag));
}

static void memory_close(struct place *m)
{
    if (m->backend) {
        m->backend->ops->release(m->backend, m->buffer);
        m->backend->ops->close(m->backend);
    }
    flags_free(&m->flags);
}

/* Everything in the buffer outside [from, to) is still 0xee. */
static void expect_fence(struct test *t, struct place *m, uint8_t *room, uint64_t from, uint64_t to)
{
    size_t broken = 0;

    expect_ok(t, m->backend->ops->read(m->backend, (struct span){m->buffer, 0, m->bytes}, room,
                                       &m->diag));
    for (uint64_t i = 0; i < m->bytes; i++)
        broken += (i < from || i >= to) && room[i] != 0xee;
    expect_eq_u64(t, broken, 0);
}

#define OFFSET 64
#define MOST 20001

struct rooms {
    uint8_t host[MOST * 8], want[MOST * 8], got[MOST * 8 + 16], all[MOST * 8 + 2 * OFFSET];
};

static void check_pair(struct test *t, struct place *m, struct rooms *r, rlx_dtype slot,
                       rlx_dtype dtype, size_t count)
{
    size_t size = rlx_dtype_size(slot), host = rlx_dtype_size(dtype);
    struct span s = {m->buffer, OFFSET, count * size};

    test_note(t, "%zu of %s in a slot of %s", count, rlx_dtype_name(dtype), rlx_dtype_name(slot));
    m->backend->ops->fill(m->backend, (struct span){m->buffer, 0, m->bytes}, 0xee, &m->diag);
    if (convert_allowed(slot, dtype)) {
        expect_ok(t, span_write(m->backend, s, slot, dtype, r->host, count, &m->diag));
        convert(slot, r->want, dtype, r->host, count);
        expect_fence(t, m, r->all, OFFSET, OFFSET + s.bytes);
        expect(t, memcmp(r->all + OFFSET, r->want, count * size) == 0);
    }
    if (convert_allowed(dtype, slot)) {
        expect_ok(t, m->backend->ops->write(m->backend, s, r->host, &m->diag));
        memset(r->got, 0xee, sizeof r->got);
        expect_ok(t, span_read(m->backend, s, slot, dtype, r->got, count, &m->diag));
        convert(dtype, r->want, slot, r->host, count);
        if (slot == dtype) /* bools as they lie there */
            memcpy(r->want, r->host, count * size);
        expect(t, memcmp(r->got, r->want, count * host) == 0);
        expect_eq(t, r->got[count * host], 0xee);
    }
}

TEST_DEVICES_SLOW(slots, every_pair_of_types)
{
    struct rooms *r = malloc(sizeof *r);

    require(t, r != NULL);
    fill(r->host, sizeof r->host, 7);
    for (size_t k = 0; k < 2; k++) {
        struct place m;
        if (!memory_open(t, &m, devices_of(t)[k], sizeof r->all))
            break;
        for (int slot = 0; slot < RLX_DTYPE_count; slot++)
            for (int dtype = 0; dtype < RLX_DTYPE_count; dtype++)
                for (size_t i = 0; i < (slot == dtype ? COUNTS : 3); i++)
                    check_pair(t, &m, r, (rlx_dtype)slot, (rlx_dtype)dtype, counts[i]);
        memory_close(&m);
    }
    test_note(t, "%s", "");
    free(r);
}

TEST_DEVICES_SLOW(slots, pieces_join)
{
    static const rlx_dtype pairs[][2] = {
        {RLX_DTYPE_f16, RLX_DTYPE_f32},  {RLX_DTYPE_bf16, RLX_DTYPE_f32},
        {RLX_DTYPE_f32, RLX_DTYPE_f16},  {RLX_DTYPE_i8, RLX_DTYPE_f32},
        {RLX_DTYPE_u8, RLX_DTYPE_i64},   {RLX_DTYPE_bool, RLX_DTYPE_bool},
        {RLX_DTYPE_bool, RLX_DTYPE_f64}, {RLX_DTYPE_i64, RLX_DTYPE_f32},
        {RLX_DTYPE_c64, RLX_DTYPE_i8},   {RLX_DTYPE_f64, RLX_DTYPE_bool},
    };
    struct rooms *r = malloc(sizeof *r);

    require(t, r != NULL);
    fill(r->host, sizeof r->host, 99);
    for (size_t k = 0; k < 2; k++) {
        struct place m;
        if (!memory_open(t, &m, devices_of(t)[k], sizeof r->all))
            break;
        for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
            for (size_t i = 0; i < COUNTS; i++)
                check_pair(t, &m, r, pairs[p][0], pairs[p][1], counts[i]);
        memory_close(&m);
    }
    test_note(t, "%s", "");
    free(r);
}

/* More than the span holds is refused, whichever way it would go, and nothing is touched. */
TEST_DEVICES_SLOW(slots, spans_have_ends)
{
    uint8_t host[256], room[256];

    memset(host, 1, sizeof host);
    for (size_t k = 0; k < 2; k++) {
        struct place m;
        if (!memory_open(t, &m, devices_of(t)[k], 256))
            return;
        struct backend *b = m.backend;
        struct span s = {m.buffer, 64, 20}, none = {m.buffer, 64, 0};
        b->ops->fill(b, (struct span){m.buffer, 0, 256}, 0xee, &m.diag);
        const rlx_dtype f32 = RLX_DTYPE_f32, f16 = RLX_DTYPE_f16, c64 = RLX_DTYPE_c64;

        expect_status(t, span_write(b, s, f32, f32, host, 6, &m.diag), RLX_ERROR_SIZE);
        expect_status(t, span_write(b, s, f32, f16, host, 6, &m.diag), RLX_ERROR_SIZE);
        expect_status(t, span_write(b, s, f16, f32, host, 11, &m.diag), RLX_ERROR_SIZE);
        expect_status(t, span_write(b, s, f32, f32, host, SIZE_MAX, &m.diag), RLX_ERROR_SIZE);
        expect_status(t, span_write(b, s, f32, f16, host, SIZE_MAX / 4 + 2, &m.diag),
                      RLX_ERROR_SIZE);
        expect_status(t, span_write(b, none, f32, f32, host, 1, &m.diag), RLX_ERROR_SIZE);
        expect_status(t, span_read(b, s, f32, f32, room, 6, &m.diag), RLX_ERROR_SIZE);
        expect_status(t, span_read(b, s, f16, f32, room, 11, &m.diag), RLX_ERROR_SIZE);
        expect_status(t, span_write(b, s, f32, c64, host, 2, &m.diag), RLX_ERROR_DTYPE);
        expect_status(t, span_read(b, s, c64, f32, room, 2, &m.diag), RLX_ERROR_DTYPE);
        expect_status(t, span_read(b, s, f32, RLX_DTYPE_count, room, 2, &m.diag), RLX_ERROR_DTYPE);
        expect_fence(t, &m, room, 0, 0);

        /* none is no work, whatever the pointers; fewer are the first ones */
        expect_ok(t, span_write(b, none, f32, f16, NULL, 0, &m.diag));
        expect_ok(t, span_write(b, none, f32, f32, NULL, 0, &m.diag));
        expect_ok(t, span_read(b, none, f32, f32, NULL, 0, &m.diag));
        expect_ok(t, span_read(b, s, f16, f32, NULL, 0, &m.diag));
        expect_fence(t, &m, room, 0, 0);
        expect_ok(t, span_write(b, s, f32, f32, host, 3, &m.diag));
        expect_fence(t, &m, room, 64, 76);
        expect_eq(t, room[75], 1);
        memory_close(&m);
    }
}

/* ---- through sessions -------------------------------------------------------------------------
 */

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static bool world_open(struct test *t, struct world *w, const char *device, const char *text)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w->ctx, &w->err)) &&
           !test_no_device(t, device, rlx_device_open(w->ctx, rlx_cstr(device), &w->dev, &w->err),
                           w->err.message) &&
           expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &w->model, &w->err)) &&
           expect_ok(t, rlx_session_create(w->model, w->dev, NULL, &w->session, &w->err));
}

static void world_close(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

static rlx_tensor vector(rlx_dtype dtype, void *data, size_t count)
{
    return (rlx_tensor){dtype, 1, {(int64_t)count}, data, count * rlx_dtype_size(dtype)};
}

/* An input that is an output: what is written in one type is read in another. */
static void check_round_trip(struct test *t, struct world *w, struct rooms *r, rlx_dtype slot,
                             rlx_dtype in, rlx_dtype out, size_t count)
{
    rlx_binding given = {"x", vector(in, r->host, count)};
    rlx_binding wanted = {"x", vector(out, r->got, count)};

    test_note(t, "%zu of %s, through %s, as %s", count, rlx_dtype_name(in), rlx_dtype_name(slot),
              rlx_dtype_name(out));
    convert(slot, r->all, in, r->host, count);
    convert(out, r->want, slot, r->all, count);
    memset(r->got, 0xee, sizeof r->got);
    expect_ok(
        t, rlx_session_run(w->session, &(rlx_run_desc){&given, 1, &wanted, 1, NULL, 0}, &w->err));
    expect(t, memcmp(r->got, r->want, count * rlx_dtype_size(out)) == 0);
    expect_eq(t, r->got[count * rlx_dtype_size(out)], 0xee);
    expect(t, wanted.tensor.rank == 1 && wanted.tensor.dim[0] == (int64_t)count);
}

TEST_DEVICES_SLOW(slots, inputs_and_outputs_convert)
{
    static const size_t few[] = {0, 1, 5, 4097};
    const rlx_dtype f32 = RLX_DTYPE_f32;
    struct rooms *r = malloc(sizeof *r);

    require(t, r != NULL);
    fill(r->host, sizeof r->host, 5);
    for (size_t k = 0; k < 2 * RLX_DTYPE_count; k++) {
        rlx_dtype slot = (rlx_dtype)(k / 2);
        char text[80];
        struct world w;
        snprintf(text, sizeof text, "rlx 1 graph (input %%x: %s[n]) { return %%x }",
                 rlx_dtype_name(slot));
        if (!world_open(t, &w, devices_of(t)[k % 2], text)) {
            world_close(&w);
            break;
        }
        for (size_t i = 0; i < 4; i++) {
            check_round_trip(t, &w, r, slot, slot, slot, few[i]);
            check_round_trip(t, &w, r, slot, f32, slot, few[i]);
            if (slot != RLX_DTYPE_c64) {
                check_round_trip(t, &w, r, slot, slot, f32, few[i]);
                check_round_trip(t, &w, r, slot, f32, f32, few[i]);
            }
        }
        world_close(&w);
    }
    test_note(t, "%s", "");
    free(r);
}

static void check_kept(struct test *t, struct world *w, rlx_dtype slot, rlx_dtype in, rlx_dtype out)
{
    uint8_t host[40], stored[40], want[40], got[41];
    rlx_tensor given = vector(in, host, 5), wanted = vector(out, got, 5);

    test_note(t, "%s, through %s, as %s", rlx_dtype_name(in), rlx_dtype_name(slot),
              rlx_dtype_name(out));
    fill(host, sizeof host, 3);
    convert(slot, stored, in, host, 5);
    convert(out, want, slot, stored, 5);
    for (int param = 0; param < 2; param++) {
        memset(got, 0xee, sizeof got);
        expect_ok(t, param ? rlx_session_set_param(w->session, "w", &given, &w->err)
                           : rlx_session_set_state(w->session, "s", &given, &w->err));
        expect_ok(t, param ? rlx_session_get_param(w->session, "w", &wanted, &w->err)
                           : rlx_session_get_state(w->session, "s", &wanted, &w->err));
        expect_bytes(t, got, want, 5 * rlx_dtype_size(out));
        expect_eq(t, got[5 * rlx_dtype_size(out)], 0xee);
    }
}

TEST_DEVICES_SLOW(slots, states_and_params_convert)
{
    static const rlx_dtype types[] = {RLX_DTYPE_f32, RLX_DTYPE_f16,  RLX_DTYPE_bf16, RLX_DTYPE_i8,
                                      RLX_DTYPE_u16, RLX_DTYPE_bool, RLX_DTYPE_f64};
    const size_t n = sizeof types / sizeof types[0];

    for (size_t k = 0; k < 2 * n; k++) {
        rlx_dtype slot = types[k / 2];
        char text[160];
        struct world w;
        snprintf(text, sizeof text,
                 "rlx 1 graph (state %%s: %s[5], param %%w: %s[5]) { return %%s, %%w }",
                 rlx_dtype_name(slot), rlx_dtype_name(slot));
        if (!world_open(t, &w, devices_of(t)[k % 2], text)) {
            world_close(&w);
            break;
        }
        for (size_t in = 0; in < n; in++)
            for (size_t out = 0; out < n; out++)
                check_kept(t, &w, slot, types[in], types[out]);
        world_close(&w);
    }
    test_note(t, "%s", "");
}

/* A complex slot is not read as something real, nor cut down to its real part. */
TEST_DEVICES_SLOW(slots, complex_values_stay_complex)
{
    float z[4] = {1, 2, 3, 4}, x[2] = {5, 6}, got[4] = {0};
    struct world w;

    for (size_t k = 0; k < 2; k++) {
        if (world_open(t, &w, devices_of(t)[k],
                       "rlx 1 graph (state %s: c64[2], param %w: c64[2]) { return %s, %w }")) {
            rlx_tensor complex = vector(RLX_DTYPE_c64, z, 2), real = vector(RLX_DTYPE_f32, x, 2);
            rlx_tensor out = vector(RLX_DTYPE_c64, got, 2);
            expect_ok(t, rlx_session_set_state(w.session, "s", &complex, &w.err));
            expect_ok(t, rlx_session_set_param(w.session, "w", &complex, &w.err));
            expect_status(t, rlx_session_get_state(w.session, "s", &real, &w.err), RLX_ERROR_DTYPE);
            expect_status(t, rlx_session_get_param(w.session, "w", &real, &w.err), RLX_ERROR_DTYPE);
            expect_near(t, x[0], 5, 0);
            expect_ok(t, rlx_session_set_state(w.session, "s", &real, &w.err));
            expect_ok(t, rlx_session_get_state(w.session, "s", &out, &w.err));
            expect_close(t, got, ((const float[]){5, 0, 6, 0}), 4, 0, 0);
        }
        world_close(&w);
    }
}

/* Constants keep their bytes, f64 too; a state is zero until it is set; views are read in place. */
TEST_DEVICES_SLOW(slots, constants_states_and_views_are_read)
{
    struct world w;

    for (size_t k = 0; k < 2; k++) {
        double c[3] = {0}, v[1] = {0};
        float s[2] = {9, 9};
        if (world_open(t, &w, devices_of(t)[k],
                       "rlx 1 graph (state %s: f32[2]) { %c = const f64[3] {0.1 -1e300 3}"
                       " %v = narrow %c axis=0 start=1 len=1 return %c, %v, %s }")) {
            rlx_binding out[3] = {{"c", vector(RLX_DTYPE_f64, c, 3)},
                                  {"v", vector(RLX_DTYPE_f64, v, 1)},
                                  {"s", vector(RLX_DTYPE_f32, s, 2)}};
            expect_ok(t,
                      rlx_session_run(w.session, &(rlx_run_desc){.outputs = out, .output_count = 3},
                                      &w.err));
            expect(t, c[0] == 0.1 && c[1] == -1e300 && c[2] == 3 && v[0] == -1e300);
            expect(t, s[0] == 0 && s[1] == 0);
        }
        world_close(&w);
    }
}
