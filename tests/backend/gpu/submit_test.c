/* submit_test.c: programs on a GPU: recordings that are found again, runs in flight,
 * reports of bad indices and hooks. */
#include "world.h"

static const char tell[] = "kernel tell(x: in [u32], fault: inout [u32], step: u32) group(1) {\n"
                           "    if x[0] != 0 {\n"
                           "        fault[0] = 1 + step\n"
                           "        fault[1] = 5\n"
                           "        fault[2] = 1\n"
                           "        fault[3] = x[0]\n"
                           "        fault[4] = 0xffffffff\n"
                           "    }\n"
                           "}\n";

static bool write_u32(struct test *t, struct world *w, struct buffer *buf, uint32_t v)
{
    return expect_ok(t, w->b->ops->write(w->b, (struct span){buf, 0, 4}, &v, &w->diag));
}

/* Three runs of one program at once, and the second is given its index. */
TEST_GPUS(gpu_submit, reports_of_runs_in_flight)
{
    struct world w;
    struct buffer *x = NULL;
    struct world_step s;
    uint32_t step = 7;

    if (!world_open(t, &w, NULL, 0))
        return;
    const struct backend_ops *ops = w.b->ops;
    require_ok(t, ops->alloc(w.b, 4, &x, &w.diag));
    const struct span span = {x, 0, 4};
    if (world_step(t, &w, &s, tell, "tell", &span, 1, true, &step, 1))
        for (int round = 0; round < 4; round++) {
            struct run_report r[3] = {{.step = 3}, {.step = 3}, {.step = 3}};
            uint64_t ticket[3];
            bool done = false;
            for (uint32_t i = 0; i < 3; i++) {
                write_u32(t, &w, x, i == 1 ? 0xfffffff0u : 0);
                expect_ok(t, ops->submit(w.b, &s.command, 1, NULL, &r[i], &ticket[i], &w.diag));
            }
            expect(t, ticket[0] < ticket[1] && ticket[1] < ticket[2]);
            while (!done)
                require_ok(t, ops->poll(w.b, ticket[0], &done, &w.diag));
            expect_eq(t, r[0].step, -1);
            expect_ok(t, ops->wait(w.b, ticket[1], &w.diag));
            expect_eq(t, r[1].step, 7);
            expect_eq(t, r[1].position, (INT64_C(1) << 32) + 5);
            expect_eq(t, r[1].value, -16);
            expect_ok(t, ops->wait(w.b, ticket[2], &w.diag));
            expect_eq(t, r[2].step, -1);
        }
    ops->unload(w.b, &s.command);
    ops->release(w.b, x);
    world_close(t, &w);
}

/* ---- recordings ---- */

static const char weigh[] = "kernel weigh(y: out [u32], n: [u32; 40]) group(1) {\n"
                            "    var sum: u32 = 0\n"
                            "    for i in 0..40 { sum += (i + 1) * n[i] }\n"
                            "    y[0] = sum\n"
                            "}\n";

static uint32_t weigh_up(const uint32_t *word)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < 40; i++)
        sum += (i + 1) * word[i];
    return sum;
}

/* More sizes than are kept, in turn; their parameters are too many to push. */
static void check_sizes(struct test *t, const rlx_flag *flags, size_t flag_count)
{
    struct world w;
    struct buffer *y = NULL;
    struct world_step s;
    uint32_t word[40] = {0}, got = 0;
    uint64_t before = 0;

    if (!world_open(t, &w, flags, flag_count))
        return;
    const struct backend_ops *ops = w.b->ops;
    expect_ok(t, ops->alloc(w.b, 4, &y, &w.diag));
    const struct span span = {y, 0, 4};
    if (world_step(t, &w, &s, weigh, "weigh", &span, 1, false, word, 40))
        for (uint32_t round = 0; round < 60; round++) {
            struct run_report r;
            uint32_t size = round % 3 ? round % 11 : round % 4;
            for (uint32_t k = 0; k < 40; k++)
                word[k] = size * 1000 + k;
            s.work.stamp = 100 + size;
            expect_ok(t, world_run(&w, &s.command, 1, &r));
            expect_ok(t, ops->read(w.b, span, &got, &w.diag));
            expect_eq_u64(t, got, weigh_up(word));
            if (round == 0)
                before = w.count.calls;
        }
    expect_eq_u64(t, w.count.calls, before); /* nothing was allocated since the first */
    ops->unload(w.b, &s.command);
    ops->release(w.b, y);
    world_close(t, &w);
}

TEST_GPUS(gpu_submit, sizes_in_turn)
{
    static const rlx_flag flags[][2] = {{{"GPU_MEMORY", "mapped"}, {"GPU_NOCACHE", "0"}},
                                        {{"GPU_MEMORY", "staging"}, {"GPU_NOCACHE", "0"}},
                                        {{"GPU_MEMORY", "bar"}, {"GPU_NOCACHE", "1"}}};

    for (size_t i = 0; i < 3; i++)
        check_sizes(t, flags[i], 2);
}

/* A buffer that is gone is in no recording, even if the next one has its address. */
TEST_GPUS(gpu_submit, buffers_come_and_go)
{
    struct world w;
    struct world_step s;
    uint32_t word[40] = {0}, got;

    if (!world_open(t, &w, NULL, 0))
        return;
    const struct backend_ops *ops = w.b->ops;
    for (uint32_t round = 0; round < 12; round++) {
        struct buffer *y = NULL;
        struct run_report r;
        word[0] = round;
        require_ok(t, ops->alloc(w.b, 4 + round * 1000, &y, &w.diag));
        const struct span span = {y, 0, 4};
        if (!world_step(t, &w, &s, weigh, "weigh", &span, 1, false, word, 40))
            break;
        s.work.stamp = 1;
        s.work.stamp += round % 2;
        expect_ok(t, world_run(&w, &s.command, 1, &r));
        expect_ok(t, ops->read(w.b, span, &got, &w.diag));
        expect_eq_u64(t, got, round);
        ops->release(w.b, y);
    }
    ops->unload(w.b, &s.command);
    world_close(t, &w);
}

/* ---- barriers ---- */

static const char chain[] = "kernel chain(x: in [u32], y: out [u32]) group(64) {\n"
                            "    y[local.x] = x[63 - local.x] + 1\n"
                            "}\n";

/* Steps that hand on what the one before them wrote. */
TEST_GPUS(gpu_submit, steps_see_each_other)
{
    static const rlx_flag full = {"GPU_FULLBARRIER", "1"};

    for (size_t i = 0; i < 2; i++) {
        struct world w;
        struct buffer *a = NULL, *b = NULL;
        struct world_step s[2];
        struct command list[41];
        struct run_report r;
        uint32_t got[64];
        if (!world_open(t, &w, &full, i))
            return;
        const struct backend_ops *ops = w.b->ops;
        require_ok(t, ops->alloc(w.b, 256, &a, &w.diag));
        require_ok(t, ops->alloc(w.b, 256, &b, &w.diag));
        const struct span way[3] = {{a, 0, 256}, {b, 0, 256}, {a, 0, 256}};
        if (world_step(t, &w, &s[0], chain, "chain", way, 2, false, NULL, 0) &&
            world_step(t, &w, &s[1], chain, "chain", way + 1, 2, false, NULL, 0)) {
            for (int32_t k = 0; k < 41; k++) {
                list[k] = s[k % 2].command;
                list[k].step = k;
            }
            list[39].idle = list[40].idle = true;
            expect_ok(t, world_run(&w, list, 41, &r));
            expect_ok(t, ops->read(w.b, way[1], got, &w.diag));
            for (size_t k = 0; k < 64; k++)
                expect_eq_u64(t, got[k], 39);
        }
        ops->unload(w.b, list);
        ops->release(w.b, a);
        ops->release(w.b, b);
        world_close(t, &w);
    }
}

/* ---- hooks ---- */

static const char count_up[] = "kernel count_up(x: inout [u32]) group(64) { x[local.x] += 1 }\n";

struct heard {
    struct test *t;
    struct world *w;
    struct buffer *look; /* its first word, at each step; NULL: not */
    int32_t steps;
    uint64_t last;
    bool ordered;
    uint32_t seen[8];
};

static void hear(void *user, int32_t step, uint64_t start, uint64_t end)
{
    struct heard *h = user;

    h->ordered &= step == h->steps && start <= end && start >= h->last;
    h->last = start;
    if (h->look)
        expect_ok(h->t, h->w->b->ops->read(h->w->b, (struct span){h->look, 0, 4},
                                           &h->seen[h->steps], &h->w->diag));
    h->steps++;
}

TEST_GPUS(gpu_submit, hooks_hear_every_step)
{
    for (int looks = 0; looks < 2; looks++) {
        struct world w;
        struct buffer *a = NULL;
        struct world_step s;
        struct command list[4];
        if (!world_open(t, &w, NULL, 0))
            return;
        const struct backend_ops *ops = w.b->ops;
        require_ok(t, ops->alloc(w.b, 256, &a, &w.diag));
        const struct span all = {a, 0, 256};
        if (world_step(t, &w, &s, count_up, "count_up", &all, 1, false, NULL, 0)) {
            for (int32_t k = 0; k < 4; k++) {
                list[k] = s.command;
                list[k].step = k;
            }
            list[2].idle = true;
            uint64_t calls = 0;
            for (int round = 0; round < 3; round++) {
                struct heard h = {.t = t, .w = &w, .look = looks ? a : NULL, .ordered = true};
                const struct run_hooks hooks = {hear, &h, looks};
                struct run_report r;
                uint64_t ticket;
                expect_ok(t, ops->submit(w.b, list, 4, &hooks, &r, &ticket, &w.diag));
                expect_ok(t, ops->wait(w.b, ticket, &w.diag));
                expect_eq(t, h.steps, 4);
                expect(t, h.ordered);
                for (uint32_t k = 0; looks && k < 4; k++)
                    expect_eq_u64(t, h.seen[k], (uint32_t)round * 3 + (k < 2 ? k + 1 : k));
                expect(t, round == 0 || calls == w.count.calls);
                calls = w.count.calls;
            }
        }
        ops->unload(w.b, list);
        ops->release(w.b, a);
        world_close(t, &w);
    }
}

/* ---- a lost device ---- */

TEST_GPUS(gpu_submit, a_lost_device_stays_lost)
{
    const rlx_flag flag = {"GPU_LOSE_AFTER", "2"};
    struct world w;
    struct buffer *x = NULL, *y = NULL;
    struct world_step s;
    uint32_t step = 0;
    bool done;

    if (!world_open(t, &w, &flag, 1))
        return;
    const struct backend_ops *ops = w.b->ops;
    require_ok(t, ops->alloc(w.b, 4, &x, &w.diag));
    const struct span span = {x, 0, 4};
    if (world_step(t, &w, &s, tell, "tell", &span, 1, true, &step, 1)) {
        struct run_report r[3];
        uint64_t ticket;
        expect_ok(t, world_run(&w, &s.command, 1, &r[0]));
        expect_ok(t, ops->submit(w.b, &s.command, 1, NULL, &r[1], &ticket, &w.diag));
        expect_status(t, world_run(&w, &s.command, 1, &r[2]), RLX_ERROR_DEVICE_LOST);
        expect_status(t, ops->wait(w.b, ticket, &w.diag), RLX_ERROR_DEVICE_LOST);
        expect_status(t, ops->poll(w.b, ticket, &done, &w.diag), RLX_ERROR_DEVICE_LOST);
        expect_status(t, ops->read(w.b, span, &step, &w.diag), RLX_ERROR_DEVICE_LOST);
        expect_status(t, ops->write(w.b, span, &step, &w.diag), RLX_ERROR_DEVICE_LOST);
        expect_status(t, ops->fill(w.b, span, 0, &w.diag), RLX_ERROR_DEVICE_LOST);
        expect_status(t, ops->alloc(w.b, 4, &y, &w.diag), RLX_ERROR_DEVICE_LOST);
    }
    ops->unload(w.b, &s.command);
    ops->release(w.b, x);
    world_close(t, &w);
}
