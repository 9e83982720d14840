/* readback_test.c: what the host reads of a WebGPU device: the staging buffers (the vectors of
 * runtime.md 3.5), and spans that were fetched before they are read. */
#include "../gpu/world.h"
#include "backend/webgpu/webgpu.h"

TEST(webgpu_readback, staging_capacity_vectors)
{
    static const uint64_t rows[][2] = {{0, 256}, {1, 256}, {256, 256}, {257, 512}, {5000, 8192}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_eq_u64(t, wg_staging_bytes(rows[i][0]), rows[i][1]);
}

TEST(webgpu_readback, layout_vector)
{
    static const uint64_t len[] = {6, 4, 8}, start[] = {0, 8, 12};
    uint64_t total = 0;

    for (size_t i = 0; i < 3; i++)
        expect_eq_u64(t, wg_staging_add(&total, len[i]), start[i]);
    expect_eq_u64(t, total, 20);
    total = 0;
    expect_eq_u64(t, wg_staging_add(&total, 6), 0); /* one output */
    expect_eq_u64(t, total, 6);
}

enum { ROOM = 4096 };

struct readback {
    struct world w;
    struct buffer *buf[2];
    uint8_t data[2][ROOM];
};

static bool open_readback(struct test *t, struct readback *r)
{
    if (!world_open_on(t, &r->w, "webgpu", NULL, 0))
        return false;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < ROOM; k++)
            r->data[i][k] = (uint8_t)(k * 31 + k / 256 + i * 7);
        r->buf[i] = NULL;
        expect_ok(t, r->w.b->ops->alloc(r->w.b, ROOM, &r->buf[i], &r->w.diag));
        expect_ok(t, r->w.b->ops->write(r->w.b, (struct span){r->buf[i], 0, ROOM}, r->data[i],
                                        &r->w.diag));
    }
    return true;
}

static void close_readback(struct test *t, struct readback *r)
{
    for (size_t i = 0; i < 2; i++)
        r->w.b->ops->release(r->w.b, r->buf[i]);
    world_close(t, &r->w);
}

static void expect_read(struct test *t, struct readback *r, size_t i, uint64_t from, uint64_t bytes)
{
    uint8_t got[ROOM + 1];

    memset(got, 0xee, sizeof got);
    expect_ok(t, r->w.b->ops->read(r->w.b, (struct span){r->buf[i], from, bytes}, got, &r->w.diag));
    expect_bytes(t, got, r->data[i] + from, (size_t)bytes);
    expect_eq(t, got[bytes], 0xee);
}

static void fetch_some(struct readback *r)
{
    const struct span wanted[] = {{r->buf[1], 6, 7},   {r->buf[0], 1024, 2048}, {r->buf[0], 0, 0},
                                  {r->buf[0], 13, 40}, {r->buf[1], 400, 4},     {r->buf[1], 6, 7}};

    r->w.b->ops->fetch(r->w.b, wanted, sizeof wanted / sizeof wanted[0]);
}

/* In any order, in parts, twice, and what was not fetched between them. */
TEST(webgpu_readback, what_was_fetched_is_read)
{
    static struct readback r;

    if (!open_readback(t, &r))
        return;
    fetch_some(&r);
    expect_eq_u64(t, wg_device_of(r.w.b)->fetched.len, 5);
    uint64_t before = gpu_device_of(r.w.b)->tickets;
    expect_read(t, &r, 0, 13, 40);
    expect_read(t, &r, 1, 6, 7);
    expect_read(t, &r, 0, 1024, 2048);
    expect_read(t, &r, 0, 1030, 1); /* parts of it */
    expect_read(t, &r, 0, 3000, 72);
    expect_read(t, &r, 1, 400, 4);
    expect_eq_u64(t, gpu_device_of(r.w.b)->tickets,
                  before);        /* nothing had to be copied for these */
    expect_read(t, &r, 1, 0, 16); /* not fetched, and few bytes */
    expect_read(t, &r, 1, 6, 7);
    expect_read(t, &r, 0, 0, ROOM); /* not fetched, and many */
    expect_read(t, &r, 0, 13, 40);
    close_readback(t, &r);
}

/* Whatever changes something, the next read sees it. */
TEST(webgpu_readback, what_was_fetched_goes_stale)
{
    static struct readback r;

    if (!open_readback(t, &r))
        return;
    const struct backend_ops *ops = r.w.b->ops;
    for (int way = 0; way < 4; way++) {
        struct span to = {r.buf[0], 1024 + 16 * (uint64_t)way, 64};
        test_note(t, "way %d", way);
        fetch_some(&r);
        if (way % 2)
            expect_read(t, &r, 0, 1024, 2048);
        if (way == 0) {
            memset(r.data[0] + to.offset, 0x42, 64);
            expect_ok(t, ops->write(r.w.b, to, r.data[0] + to.offset, &r.w.diag));
        } else if (way == 1) {
            expect_ok(t, ops->fill(r.w.b, to, 9, &r.w.diag));
            memset(r.data[0] + to.offset, 9, 64);
        } else if (way == 2) {
            expect_ok(t, ops->copy(r.w.b, to, (struct span){r.buf[1], 0, 64}, &r.w.diag));
            memcpy(r.data[0] + to.offset, r.data[1], 64);
        } else {
            fetch_some(&r); /* again */
        }
        expect_read(t, &r, 0, 1024, 2048);
    }
    close_readback(t, &r);
}

/* A buffer that is gone, spans that are none: the reads tell, and all is given back. */
TEST(webgpu_readback, fetches_that_come_to_nothing)
{
    static struct readback r;
    struct buffer *more = NULL;

    if (!open_readback(t, &r))
        return;
    const struct backend_ops *ops = r.w.b->ops;
    const struct span outside = {r.buf[0], ROOM - 2, 4};
    uint8_t got[4];
    ops->fetch(r.w.b, &outside, 1);
    expect_status(t, ops->read(r.w.b, outside, got, &r.w.diag), RLX_ERROR_INTERNAL);
    expect_read(t, &r, 0, 0, 100);
    expect_ok(t, ops->alloc(r.w.b, 64, &more, &r.w.diag));
    ops->fetch(r.w.b, &(struct span){more, 0, 64}, 1);
    ops->release(r.w.b, more); /* while it is being fetched */
    expect_read(t, &r, 1, 8, 1000);
    ops->fetch(r.w.b, NULL, 0);
    fetch_some(&r); /* and nobody reads it */
    close_readback(t, &r);
}
