/* arena_test.c: runtime.md 3.1 and runtime.md 10, line 8: the memory contract, on every kind of
 * device alike: zeroed memory, raw bytes at any place, copies, fills, typed values in any number,
 * where spans end, and leaves that have no memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device_memory.h"
#include "run/convert.h"
#include "run/program.h"

enum { ROOM = 96 };

/* Calls `check` with a buffer of each device that the test is for. */
static void on_each(struct test *t, uint64_t bytes, void (*check)(struct test *, void *), void *own)
{
    const struct device_names devices = devices_of(t);
    struct device_memory *m = own;

    for (size_t i = 0; i < devices.count; i++) {
        if (memory_open(t, m, devices.at[i], bytes))
            check(t, own);
        memory_close(m);
    }
    test_note(t, "%s", "");
}

/* The whole buffer is what the model of it is. */
static void expect_memory(struct test *t, struct device_memory *m, const uint8_t *want)
{
    uint8_t got[ROOM];

    expect_ok(t, memory_get(m, memory_part(m, 0, ROOM), got));
    expect_bytes(t, got, want, ROOM);
}

/* ---- raw ranges, copies and fills ---- */

static void check_ranges(struct test *t, void *memory)
{
    struct device_memory *m = memory;
    uint8_t model[ROOM] = {0}, data[ROOM], got[ROOM];

    expect_memory(t, m, model); /* new memory is zero */
    for (uint64_t from = 0; from < 9; from++)
        for (uint64_t bytes = 0; bytes < 21; bytes++) {
            struct span s = memory_part(m, from + 40, bytes);
            for (size_t k = 0; k < ROOM; k++)
                data[k] = (uint8_t)(from * 31 + bytes * 7 + k + 1);
            expect_ok(t, memory_put(m, s, data));
            memcpy(model + s.offset, data, (size_t)bytes);
            expect_memory(t, m, model);
            memset(got, 0, sizeof got);
            expect_ok(t, memory_get(m, s, got));
            expect_bytes(t, got, data, (size_t)bytes);
            expect_eq(t, got[bytes], 0);
        }
}

/* Any first and last byte, also those within a word; none: nothing to do. */
TEST_DEVICES(arena_contract, raw_ranges_of_any_alignment)
{
    struct device_memory m;

    on_each(t, ROOM, check_ranges, &m);
}

static void check_copies(struct test *t, void *memory)
{
    struct device_memory *m = memory;
    uint8_t model[ROOM];

    for (uint64_t to = 20; to < 40; to += 3)
        for (uint64_t from = 19; from < 42; from += 5)
            for (uint64_t bytes = 32; bytes < 34; bytes++) {
                for (size_t k = 0; k < ROOM; k++)
                    model[k] = (uint8_t)(k * 5 + to);
                expect_ok(t, memory_put(m, memory_part(m, 0, ROOM), model));
                expect_ok(t,
                          memory_move(m, memory_part(m, to, bytes), memory_part(m, from, bytes)));
                memmove(model + to, model + from, (size_t)bytes);
                expect_ok(t, memory_set(m, memory_part(m, to + 1, 3), 0xab));
                memset(model + to + 1, 0xab, 3);
                expect_ok(t, memory_set(m, memory_part(m, from + 20, 4 + bytes % 2), 0));
                memset(model + from + 20, 0, (size_t)(4 + bytes % 2));
                expect_memory(t, m, model);
            }
    expect_ok(t, memory_move(m, memory_part(m, 4, 0), memory_part(m, 8, 0)));
    expect_ok(t, memory_set(m, memory_part(m, ROOM, 0), 1));
    expect_memory(t, m, model);
}

/* Copies of overlapping ranges are those of memmove; a fill ends where it should. */
TEST_DEVICES(arena_contract, copies_may_overlap)
{
    struct device_memory m;

    on_each(t, ROOM, check_copies, &m);
}

/* A piece of several megabytes, and one that begins and ends within words of its middle. */
static void check_large(struct test *t, void *memory)
{
    struct device_memory *m = memory;
    uint8_t *model = malloc((size_t)m->bytes), *got = malloc((size_t)m->bytes);
    struct span all = memory_part(m, 0, m->bytes);

    if (expect(t, model && got)) {
        for (size_t i = 0; i < m->bytes; i++)
            model[i] = (uint8_t)(i * 2654435761u >> 13);
        expect_ok(t, memory_put(m, all, model));
        expect_ok(t, memory_move(m, memory_part(m, 1027, 3000000), memory_part(m, 4099, 3000000)));
        memmove(model + 1027, model + 4099, 3000000);
        expect_ok(t, memory_set(m, memory_part(m, 2000001, 700003), 0x5a));
        memset(model + 2000001, 0x5a, 700003);
        expect_ok(t, memory_get(m, all, got));
        expect(t, memcmp(got, model, (size_t)m->bytes) == 0);
        expect_ok(t, memory_get(m, memory_part(m, 999, 3500001), got));
        expect(t, memcmp(got, model + 999, 3500001) == 0);
    }
    free(model);
    free(got);
}

TEST_DEVICES(arena_contract, large_ranges)
{
    struct device_memory m;

    on_each(t, 5000003, check_large, &m);
}

/* ---- typed ---- */

#define OFFSET 64
#define MOST 20001

struct typed {
    struct device_memory memory; /* first: on_each opens it */
    uint8_t host[MOST * 8], want[MOST * 8], got[MOST * 8 + 16], all[MOST * 8 + 2 * OFFSET];
};

/* Bytes that make tame and wild numbers in every type. */
static struct typed *typed_new(struct test *t, uint64_t seed)
{
    struct typed *r = malloc(sizeof *r);

    if (!expect(t, r != NULL))
        return NULL;
    for (size_t i = 0; i < sizeof r->host; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        r->host[i] = (uint8_t)(seed >> 56);
    }
    return r;
}

/* Everything in the buffer outside [from, to) is still 0xee. */
static void expect_fence(struct test *t, struct device_memory *m, uint8_t *room, uint64_t from,
                         uint64_t to)
{
    size_t broken = 0;

    expect_ok(t, memory_get(m, memory_part(m, 0, m->bytes), room));
    for (uint64_t i = 0; i < m->bytes; i++)
        broken += (i < from || i >= to) && room[i] != 0xee;
    expect_eq_u64(t, broken, 0);
}

static void check_pair(struct test *t, struct typed *r, rlx_dtype slot, rlx_dtype dtype,
                       size_t count)
{
    size_t size = rlx_dtype_size(slot), host = rlx_dtype_size(dtype);
    struct device_memory *m = &r->memory;
    struct span s = memory_part(m, OFFSET, count * size);

    test_note(t, "%zu of %s in a slot of %s", count, rlx_dtype_name(dtype), rlx_dtype_name(slot));
    expect_ok(t, memory_set(m, memory_part(m, 0, m->bytes), 0xee));
    if (convert_allowed(slot, dtype)) {
        expect_ok(t, span_write(m->backend, s, slot, dtype, r->host, count, &m->diag));
        convert(slot, r->want, dtype, r->host, count);
        expect_fence(t, m, r->all, OFFSET, OFFSET + s.bytes);
        expect(t, memcmp(r->all + OFFSET, r->want, count * size) == 0);
    }
    if (convert_allowed(dtype, slot)) {
        expect_ok(t, memory_put(m, s, r->host));
        memset(r->got, 0xee, sizeof r->got);
        expect_ok(t, span_read(m->backend, s, slot, dtype, r->got, count, &m->diag));
        convert(dtype, r->want, slot, r->host, count);
        if (slot == dtype) /* bools as they lie there */
            memcpy(r->want, r->host, count * size);
        expect(t, memcmp(r->got, r->want, count * host) == 0);
        expect_eq(t, r->got[count * host], 0xee);
    }
}

static void check_pairs(struct test *t, void *typed)
{
    static const size_t counts[] = {0, 1, 3};

    for (int slot = 0; slot < RLX_DTYPE_count; slot++)
        for (int dtype = 0; dtype < RLX_DTYPE_count; dtype++)
            for (size_t i = 0; i < 3; i++)
                check_pair(t, typed, (rlx_dtype)slot, (rlx_dtype)dtype, counts[i]);
}

TEST_DEVICES_SLOW(arena_contract, every_pair_of_types)
{
    struct typed *r = typed_new(t, 7);

    if (r)
        on_each(t, 3 * 8 + 2 * OFFSET, check_pairs, r);
    free(r);
}

/* Around the pieces that conversions go through, 16384 bytes of the slot's type. */
static void check_pieces(struct test *t, void *typed)
{
    static const rlx_dtype pairs[][2] = {
        {RLX_DTYPE_f16, RLX_DTYPE_f32},  {RLX_DTYPE_bf16, RLX_DTYPE_f32},
        {RLX_DTYPE_f32, RLX_DTYPE_f16},  {RLX_DTYPE_i8, RLX_DTYPE_f32},
        {RLX_DTYPE_u8, RLX_DTYPE_i64},   {RLX_DTYPE_bool, RLX_DTYPE_bool},
        {RLX_DTYPE_bool, RLX_DTYPE_f64}, {RLX_DTYPE_i64, RLX_DTYPE_f32},
        {RLX_DTYPE_c64, RLX_DTYPE_i8},   {RLX_DTYPE_f64, RLX_DTYPE_bool},
        {RLX_DTYPE_f32, RLX_DTYPE_f32},  {RLX_DTYPE_f16, RLX_DTYPE_f16},
    };
    static const size_t counts[] = {1025, 2047, 2048, 2049,  4095,  4096, 4097,
                                    8191, 8192, 8193, 16384, 16385, MOST};

    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            check_pair(t, typed, pairs[p][0], pairs[p][1], counts[i]);
}

TEST_DEVICES_SLOW(arena_contract, pieces_join)
{
    struct typed *r = typed_new(t, 99);

    if (r)
        on_each(t, sizeof r->all, check_pieces, r);
    free(r);
}

/* Halves are rounded to the nearest, to even in the middle; too large is infinite; NaN stays. */
static const struct rounding {
    rlx_dtype slot;
    float given;
    uint16_t bits;
    float back;
} roundings[] = {
    {RLX_DTYPE_f16, 1.0f, 0x3c00, 1.0f},
    {RLX_DTYPE_f16, -0.0f, 0x8000, -0.0f},
    {RLX_DTYPE_f16, 2049.0f, 0x6800, 2048.0f}, /* between 2048 and 2050 */
    {RLX_DTYPE_f16, 2051.0f, 0x6802, 2052.0f},
    {RLX_DTYPE_f16, 0x1.004p0f, 0x3c01, 0x1.004p0f},
    {RLX_DTYPE_f16, 0x1.002p0f, 0x3c00, 1.0f},
    {RLX_DTYPE_f16, 0x1.006p0f, 0x3c02, 0x1.008p0f},
    {RLX_DTYPE_f16, 0x1.002002p0f, 0x3c01, 0x1.004p0f}, /* just above the middle */
    {RLX_DTYPE_f16, 65504.0f, 0x7bff, 65504.0f},
    {RLX_DTYPE_f16, 65519.0f, 0x7bff, 65504.0f},
    {RLX_DTYPE_f16, 65520.0f, 0x7c00, INFINITY},
    {RLX_DTYPE_f16, -1e30f, 0xfc00, -INFINITY},
    {RLX_DTYPE_f16, 0x1p-24f, 0x0001, 0x1p-24f}, /* the least above zero */
    {RLX_DTYPE_f16, 0x1p-25f, 0x0000, 0.0f},
    {RLX_DTYPE_f16, 0x1.8p-24f, 0x0002, 0x1p-23f},
    {RLX_DTYPE_bf16, 1.0f, 0x3f80, 1.0f},
    {RLX_DTYPE_bf16, 257.0f, 0x4380, 256.0f}, /* between 256 and 258 */
    {RLX_DTYPE_bf16, 259.0f, 0x4382, 260.0f},
    {RLX_DTYPE_bf16, 0x1.010002p8f, 0x4381, 258.0f},
    {RLX_DTYPE_bf16, 0x1.fffffep127f, 0x7f80, INFINITY},
    {RLX_DTYPE_bf16, -INFINITY, 0xff80, -INFINITY},
    {RLX_DTYPE_bf16, 0x1p-133f, 0x0001, 0x1p-133f},
};

static void check_rounding(struct test *t, void *memory)
{
    struct device_memory *m = memory;

    for (size_t i = 0; i < sizeof roundings / sizeof roundings[0]; i++) {
        const struct rounding *r = &roundings[i];
        const float three[3] = {r->given, NAN, r->given}; /* an odd number of them */
        uint16_t bits[3];
        float back[3];
        struct span s = memory_part(m, 6, 6);
        test_note(t, "%a in %s", (double)r->given, rlx_dtype_name(r->slot));
        expect_ok(t, span_write(m->backend, s, r->slot, RLX_DTYPE_f32, three, 3, &m->diag));
        expect_ok(t, memory_get(m, s, bits));
        expect(t, bits[0] == r->bits && bits[2] == r->bits);
        expect_ok(t, span_read(m->backend, s, r->slot, RLX_DTYPE_f32, back, 3, &m->diag));
        expect_bytes(t, &back[0], &r->back, sizeof(float));
        expect_bytes(t, &back[2], &r->back, sizeof(float));
        expect(t, isnan(back[1]));
    }
}

TEST_DEVICES(arena_contract, halves_round_to_even)
{
    struct device_memory m;

    on_each(t, ROOM, check_rounding, &m);
}

static void check_odd_counts(struct test *t, struct device_memory *m, rlx_dtype type, size_t n)
{
    const size_t size = rlx_dtype_size(type);
    const struct span s = memory_part(m, 8 + size, n * size); /* odd, in elements */
    float x[7], back[8];
    uint8_t model[ROOM], got[ROOM];

    test_note(t, "%zu of %s", n, rlx_dtype_name(type));
    for (size_t e = 0; e < 7; e++)
        x[e] = (float)(e % 2);
    for (size_t e = 0; e < 8; e++)
        back[e] = 9;
    memory_set(m, memory_part(m, 0, ROOM), 0xee);
    memset(model, 0xee, ROOM);
    expect_ok(t, span_write(m->backend, s, type, RLX_DTYPE_f32, x, n, &m->diag));
    expect_ok(t, memory_get(m, memory_part(m, 0, ROOM), got));
    memcpy(model + s.offset, got + s.offset, n * size);
    expect_bytes(t, got, model, ROOM); /* no byte around it */
    expect_ok(t, span_read(m->backend, s, type, RLX_DTYPE_f32, back, n, &m->diag));
    expect_close(t, back, x, n, 0, 0);
    expect_near(t, back[n], 9, 0);
}

static void check_narrow(struct test *t, void *memory)
{
    static const rlx_dtype types[] = {RLX_DTYPE_f16, RLX_DTYPE_bf16, RLX_DTYPE_i8, RLX_DTYPE_u8,
                                      RLX_DTYPE_bool};

    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        for (size_t n = 0; n <= 7; n++)
            check_odd_counts(t, memory, types[k], n);
}

TEST_DEVICES(arena_contract, odd_counts_of_narrow_types)
{
    struct device_memory m;

    on_each(t, ROOM, check_narrow, &m);
}

/* ---- ends ---- */

static void check_ends(struct test *t, void *memory)
{
    struct device_memory *m = memory;
    struct backend *b = m->backend;
    struct span s = memory_part(m, 64, 20), none = memory_part(m, 64, 0);
    const rlx_dtype f32 = RLX_DTYPE_f32, f16 = RLX_DTYPE_f16, c64 = RLX_DTYPE_c64;
    uint8_t host[256], room[256];

    memset(host, 1, sizeof host);
    expect_ok(t, memory_set(m, memory_part(m, 0, 256), 0xee));
    expect_status(t, span_write(b, s, f32, f32, host, 6, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_write(b, s, f32, f16, host, 6, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_write(b, s, f16, f32, host, 11, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_write(b, s, f32, f32, host, SIZE_MAX, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_write(b, s, f32, f16, host, SIZE_MAX / 4 + 2, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_write(b, none, f32, f32, host, 1, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_read(b, s, f32, f32, room, 6, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_read(b, s, f16, f32, room, 11, &m->diag), RLX_ERROR_SIZE);
    expect_status(t, span_write(b, s, f32, c64, host, 2, &m->diag), RLX_ERROR_DTYPE);
    expect_status(t, span_read(b, s, c64, f32, room, 2, &m->diag), RLX_ERROR_DTYPE);
    expect_status(t, span_read(b, s, f32, RLX_DTYPE_count, room, 2, &m->diag), RLX_ERROR_DTYPE);
    expect_fence(t, m, room, 0, 0);

    /* none: nothing to do, whatever the pointers; fewer are the first ones */
    expect_ok(t, span_write(b, none, f32, f16, NULL, 0, &m->diag));
    expect_ok(t, span_write(b, none, f32, f32, NULL, 0, &m->diag));
    expect_ok(t, span_read(b, none, f32, f32, NULL, 0, &m->diag));
    expect_ok(t, span_read(b, s, f16, f32, NULL, 0, &m->diag));
    expect_fence(t, m, room, 0, 0);
    expect_ok(t, span_write(b, s, f32, f32, host, 3, &m->diag));
    expect_fence(t, m, room, 64, 76);
    expect_eq(t, room[75], 1);
}

/* More than the span holds is refused, whichever way it would go, and nothing is touched. */
TEST_DEVICES(arena_contract, spans_have_ends)
{
    struct device_memory m;

    on_each(t, 256, check_ends, &m);
}

/* A device knows where its buffers end; the CPU's spans are checked by whoever makes them. */
TEST_DEVICES(arena_contract, buffers_have_ends)
{
    const struct device_names devices = devices_of(t);
    struct device_memory m;
    uint8_t byte[2] = {0};

    if (memory_open(t, &m, devices.at[devices.count - 1], ROOM)) {
        struct span far = memory_part(&m, UINT64_C(1) << 40, 2);
        expect_status(t, memory_put(&m, far, byte), RLX_ERROR_INTERNAL);
        expect_status(t, memory_get(&m, far, byte), RLX_ERROR_INTERNAL);
        expect_status(t, memory_set(&m, far, 0), RLX_ERROR_INTERNAL);
        expect_status(t, memory_get(&m, memory_part(&m, 1, UINT64_MAX), byte), RLX_ERROR_INTERNAL);
        expect_status(t, memory_move(&m, far, memory_part(&m, 0, 2)), RLX_ERROR_INTERNAL);
        expect_status(t, memory_move(&m, memory_part(&m, 0, 2), far), RLX_ERROR_INTERNAL);
        expect_ok(t, memory_get(&m, memory_part(&m, ROOM - 2, 2), byte));
    }
    memory_close(&m);
}

/* ---- leaves without memory ---- */

struct absent {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static void check_absent(struct test *t, struct absent *w)
{
    float x[3] = {1, 2, 3}, u[4] = {4, 5, 6, 7}, y[3] = {0};
    rlx_binding in[2] = {{"x", {RLX_DTYPE_f32, 1, {3}, x, sizeof x}},
                         {"u", {RLX_DTYPE_f32, 1, {4}, u, sizeof u}}};
    rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0};

    expect_ok(t, rlx_session_run(w->session, &run, &w->err));
    expect_close(t, y, ((const float[]){-1, -2, -3}), 3, 0, 0);
    in[1].tensor.bytes -= 4;
    expect_status(t, rlx_session_run(w->session, &run, &w->err), RLX_ERROR_SIZE);
    expect_contains(t, w->err.message, "u");
    in[1].tensor.bytes += 4;
    in[1].name = "v";
    expect_status(t, rlx_session_run(w->session, &run, &w->err), RLX_ERROR_NAME);
    in[1].name = "u";
    out.name = "z";
    expect_status(t, rlx_session_run(w->session, &run, &w->err), RLX_ERROR_NAME);
    out.name = "y";
    x[0] = 8;
    expect_ok(t, rlx_session_run(w->session, &run, &w->err));
    expect_near(t, y[0], -8, 0);
}

/* An input that nothing reads has no slot: it is taken, its size is checked, and it goes nowhere.
 */
TEST_DEVICES(arena_contract, absent_slots)
{
    static const char text[] = "rlx 1 graph (input %x: f32[3], input %u: f32[4])"
                               " { %y = neg %x return %y }";
    struct absent w = {0};

    if (expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w.ctx, &w.err)) &&
        !test_no_device(t, test_device(t), rlx_device_open(w.ctx, test_device(t), &w.dev, &w.err),
                        w.err.message) &&
        expect_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &w.model, &w.err)) &&
        expect_ok(t, rlx_session_create(w.model, w.dev, NULL, &w.session, &w.err)))
        check_absent(t, &w);
    rlx_session_destroy(w.session);
    rlx_model_destroy(w.model);
    rlx_device_close(w.dev);
    rlx_context_destroy(w.ctx);
}
