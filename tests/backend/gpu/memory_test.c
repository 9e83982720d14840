/* memory_test.c: runtime.md 10, line 8, on a GPU, for each way in which the host
 * can reach its memory; and that writes, copies and programs keep their order. */
#include <stdlib.h>

#include "world.h"

static const char *const modes[] = {"mapped", "bar", "staging"};
enum { ROOM = 96 };

/* WebGPU knows of one only. */
static size_t mode_count(const struct test *t)
{
    return strcmp(test_device(t), "vulkan") == 0 ? 3 : 1;
}

static bool open_mode(struct test *t, struct world *w, size_t mode)
{
    const rlx_flag flag = {"GPU_MEMORY", modes[mode]};

    test_note(t, "%s", modes[mode]);
    return world_open(t, w, &flag, 1);
}

static void expect_memory(struct test *t, struct world *w, struct buffer *buf, const uint8_t *want)
{
    uint8_t got[ROOM];

    expect_ok(t, w->b->ops->read(w->b, (struct span){buf, 0, ROOM}, got, &w->diag));
    expect_bytes(t, got, want, ROOM);
}

/* Any first and last byte, also those within a word; none: nothing to do. */
static void check_ranges(struct test *t, struct world *w, struct buffer *buf)
{
    uint8_t model[ROOM] = {0}, data[ROOM], got[ROOM];

    expect_memory(t, w, buf, model); /* new memory is zero */
    for (uint64_t from = 0; from < 9; from++)
        for (uint64_t bytes = 0; bytes < 21; bytes++) {
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

static void check_copies(struct test *t, struct world *w, struct buffer *buf)
{
    uint8_t model[ROOM];

    for (uint64_t to = 20; to < 40; to += 3)
        for (uint64_t from = 19; from < 42; from += 5) {
            for (size_t k = 0; k < ROOM; k++)
                model[k] = (uint8_t)(k * 5 + to);
            expect_ok(t, w->b->ops->write(w->b, (struct span){buf, 0, ROOM}, model, &w->diag));
            expect_ok(t, w->b->ops->copy(w->b, (struct span){buf, to, 33},
                                         (struct span){buf, from, 33}, &w->diag));
            memmove(model + to, model + from, 33);
            for (uint64_t n = 0; n < 12; n++) {
                expect_ok(t, w->b->ops->fill(w->b, (struct span){buf, to + n, n},
                                             (uint8_t)(0xab + n), &w->diag));
                memset(model + to + n, (uint8_t)(0xab + n), (size_t)n);
            }
            expect_memory(t, w, buf, model);
        }
}

TEST_GPUS(gpu_memory, ranges_copies_and_fills)
{
    for (size_t i = 0; i < mode_count(t); i++) {
        struct world w;
        struct buffer *buf = NULL;
        if (!open_mode(t, &w, i))
            return;
        if (expect_ok(t, w.b->ops->alloc(w.b, ROOM, &buf, &w.diag))) {
            check_ranges(t, &w, buf);
            check_copies(t, &w, buf);
            struct span far = {buf, ROOM - 1, 2};
            uint8_t byte[2] = {0};
            expect_status(t, w.b->ops->write(w.b, far, byte, &w.diag), RLX_ERROR_INTERNAL);
            expect_status(t, w.b->ops->read(w.b, far, byte, &w.diag), RLX_ERROR_INTERNAL);
            expect_status(t, w.b->ops->fill(w.b, far, 0, &w.diag), RLX_ERROR_INTERNAL);
        }
        w.b->ops->release(w.b, buf);
        world_close(t, &w);
    }
}

/* More than the staging buffers hold at first, in one piece and in many. */
TEST_GPUS(gpu_memory, large_transfers)
{
    enum { BYTES = (40 << 20) + 12, PIECE = 4096 };
    uint8_t *data = malloc(BYTES), *got = malloc(BYTES);

    for (size_t i = 0; data && i < BYTES; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 23);
    for (size_t i = 0; data && got && i < mode_count(t); i++) {
        struct world w;
        struct buffer *a = NULL, *b = NULL;
        if (!open_mode(t, &w, i))
            break;
        const struct backend_ops *ops = w.b->ops;
        if (expect_ok(t, ops->alloc(w.b, BYTES, &a, &w.diag)) &&
            expect_ok(t, ops->alloc(w.b, BYTES, &b, &w.diag))) {
            const struct span whole = {b, 0, BYTES};
            expect_ok(t, ops->write(w.b, (struct span){a, 0, BYTES}, data, &w.diag));
            expect_ok(t, ops->copy(w.b, whole, (struct span){a, 0, BYTES}, &w.diag));
            memset(got, 0, BYTES);
            expect_ok(t, ops->read(w.b, whole, got, &w.diag));
            expect(t, memcmp(got, data, BYTES) == 0);
            expect_ok(t, ops->fill(w.b, whole, 7, &w.diag));
            for (size_t at = 0; at < 8u << 20; at += PIECE)
                expect_ok(t, ops->write(w.b, (struct span){b, at + 1, PIECE}, data + at, &w.diag));
            expect_ok(t, ops->copy(w.b, (struct span){b, 3, 7u << 20},
                                   (struct span){b, 1, 7u << 20}, &w.diag)); /* onto itself */
            expect_ok(t, ops->read(w.b, whole, got, &w.diag));
            expect(t, got[0] == 7 && memcmp(got + 3, data, 7u << 20) == 0);
            expect(t, got[BYTES - 1] == 7);
        }
        ops->release(w.b, a);
        ops->release(w.b, b);
        world_close(t, &w);
    }
    free(data);
    free(got);
}

static const char add_one[] = "kernel add_one(x: inout [u32], rounds: u32) group(64) {\n"
                              "    for i in 0..rounds { x[local.x] += 1 }\n"
                              "}\n";

/* Each round changes what the one before it left, by host, copy, fill and kernel in turn, and
 * nobody waits before the end. */
TEST_GPUS(gpu_memory, work_keeps_its_order)
{
    for (size_t i = 0; i < mode_count(t); i++) {
        struct world w;
        struct buffer *a = NULL, *b = NULL;
        struct world_step step;
        struct run_report report[8];
        uint32_t one = 1000, model[64] = {0}, got[64], data[64];
        uint64_t ticket = 0;
        if (!open_mode(t, &w, i))
            return;
        const struct backend_ops *ops = w.b->ops;
        expect_ok(t, ops->alloc(w.b, sizeof model, &a, &w.diag));
        expect_ok(t, ops->alloc(w.b, sizeof model, &b, &w.diag));
        const struct span all = {a, 0, sizeof model}, other = {b, 0, sizeof model};
        if (world_step(t, &w, &step, add_one, "add_one", &all, 1, false, &one, 1)) {
            for (uint32_t round = 0; round < 8; round++) {
                for (uint32_t k = 0; k < 64; k++)
                    data[k] = model[k] = round * 100 + k;
                expect_ok(t, ops->write(w.b, all, data, &w.diag));
                memset(data, 0xee, sizeof data); /* it was taken */
                expect_ok(
                    t, ops->submit(w.b, &step.command, 1, NULL, &report[round], &ticket, &w.diag));
                expect_ok(t, ops->copy(w.b, other, all, &w.diag));
                expect_ok(t, ops->fill(w.b, (struct span){a, 0, 8}, 0, &w.diag));
                expect_ok(t,
                          ops->copy(w.b, (struct span){b, 8, 8}, (struct span){a, 0, 8}, &w.diag));
            }
            for (uint32_t k = 0; k < 64; k++)
                model[k] = k == 2 || k == 3 ? 0 : model[k] + one;
            expect_ok(t, ops->read(w.b, other, got, &w.diag));
            expect_bytes(t, got, model, sizeof model);
            expect_ok(t, ops->wait(w.b, ticket, &w.diag));
        }
        ops->unload(w.b, &step.command);
        ops->release(w.b, a);
        ops->release(w.b, b);
        world_close(t, &w);
    }
}

/* ---- none left ---- */

TEST_GPUS(gpu_memory, exhausted)
{
    const rlx_flag flag = {"GPU_MAX_MEMORY", "1000000"};
    struct buffer *a = NULL, *b = NULL;
    struct world w;

    if (!world_open(t, &w, &flag, 1))
        return;
    expect_ok(t, w.b->ops->alloc(w.b, 600000, &a, &w.diag));
    expect_status(t, w.b->ops->alloc(w.b, 600000, &b, &w.diag), RLX_ERROR_MEMORY);
    expect_contains(t, w.diag.first.message, "are free");
    w.b->ops->release(w.b, a);
    expect_ok(t, w.b->ops->alloc(w.b, 600000, &b, &w.diag)); /* room again */
    w.b->ops->release(w.b, b);
    expect_status(t, w.b->ops->alloc(w.b, UINT64_MAX / 2, &b, &w.diag), RLX_ERROR_LIMIT);
    world_close(t, &w);
}

static rlx_status open_once(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct world *w = ctx;
    struct buffer *buf = NULL;

    diag_init(&w->diag, "test");
    const struct device_desc desc = {.mem = mem, .flags = &w->flags};
    struct backend *b;
    TRY(backend_find(rlx_cstr(test_device(t)))->open(&desc, &b, &w->diag));
    rlx_status s = b->ops->alloc(b, 64, &buf, &w->diag);
    b->ops->release(b, buf);
    b->ops->close(b);
    return s;
}

/* Whichever request of ours for host memory fails, opening fails and leaves nothing behind. */
TEST_GPUS(gpu_memory, no_host_memory)
{
    const rlx_flag flag = {"GPU_CACHE", "0"};
    struct world w;

    if (!world_open(t, &w, NULL, 0))
        return;
    world_close(t, &w);
    require_ok(t, flags_read(&w.flags, &flag, 1, NULL, mem_default(), NULL, NULL, &w.diag));
    expect_survives_no_memory(t, open_once, &w);
    flags_free(&w.flags);
}
