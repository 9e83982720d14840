/* Blocks of a kernel's range, and the report of the first bad index. */
#include <stdatomic.h>
#include <string.h>

#include "backend/cpu/cpu_kernel.h"
#include "base/mem.h"
#include "test.h"

enum { ITEMS = 10007 };

struct seen {
    _Atomic uint8_t item[ITEMS];
    _Atomic int64_t blocks;
    _Atomic bool cut_elsewhere; /* a block that does not start and end where it should */
    int64_t count, grain;
    int threads;
};

static void see(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct seen *s = ctx;
    int64_t want = begin + s->grain < s->count ? begin + s->grain : s->count;

    if (begin % s->grain != 0 || end != want || worker < 0 || worker >= s->threads)
        atomic_store(&s->cut_elsewhere, true);
    atomic_fetch_add(&s->blocks, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&s->item[i], 1);
}

static void expect_all_once(struct test *t, struct pool *pool, int threads, int64_t count,
                            int64_t grain)
{
    static struct seen s;
    int64_t times = 0;

    memset(&s, 0, sizeof s);
    s.count = count;
    s.grain = grain < 1 ? 1 : grain;
    s.threads = threads;
    cpu_for(pool, count, grain, see, &s);
    for (int64_t i = 0; i < ITEMS; i++)
        times += s.item[i] == (i < count ? 1 : 0);
    test_note(t, "%d threads, %lld items by %lld", threads, (long long)count, (long long)grain);
    expect_eq(t, times, ITEMS);
    expect_eq(t, s.blocks, (count + s.grain - 1) / s.grain);
    expect(t, !s.cut_elsewhere);
}

TEST(cpu_parallel, every_item_is_in_one_block_of_the_same_size)
{
    static const int64_t counts[] = {0, 1, 2, 99, 100, 101, ITEMS};
    static const int64_t grains[] = {0, 1, 7, 100, ITEMS, INT64_MAX};

    for (int threads = 0; threads <= 3; threads++) { /* 0: no pool */
        struct pool *pool = NULL;
        if (threads)
            require_ok(t, pool_create(&pool, threads, mem_default(), NULL));
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (size_t k = 0; k < sizeof grains / sizeof grains[0]; k++) {
                if (grains[k] == INT64_MAX && counts[i] > 0)
                    continue; /* begin + grain would overflow in see(), not in cpu_for */
                expect_all_once(t, pool, threads ? threads : 1, counts[i], grains[k]);
            }
        pool_destroy(pool);
    }
}

static void count_one(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    *(int64_t *)ctx += end - begin;
}

TEST(cpu_parallel, a_huge_grain_is_one_block)
{
    int64_t total = 0;

    cpu_for(NULL, 12345, INT64_MAX, count_one, &total);
    expect_eq(t, total, 12345);
    cpu_for(NULL, -1, 1, count_one, &total);
    expect_eq(t, total, 12345);
}

static void report_thirds(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    for (int64_t i = end - 1; i >= begin; i--)
        if (i % 3 == 2)
            cpu_report_index(ctx, i, -10 * i);
}

TEST(cpu_parallel, the_smallest_position_wins_with_its_own_value)
{
    struct pool *pool;
    struct cpu_fault fault;
    struct cpu_call call = {.fault = &fault};

    require_ok(t, pool_create(&pool, 4, mem_default(), NULL));
    for (int i = 0; i < 200; i++) {
        atomic_init(&fault.position, INT64_MAX);
        atomic_init(&fault.value, 0);
        cpu_for(pool, 5000, 16, report_thirds, &call);
        expect_eq(t, fault.position, 2);
        expect_eq(t, fault.value, -20);
    }
    cpu_report_index(&call, 1, 77);
    cpu_report_index(&call, 1, 78); /* not smaller */
    cpu_report_index(&call, 5, 79);
    expect_eq(t, fault.position, 1);
    expect_eq(t, fault.value, 77);
    cpu_report_index(&(struct cpu_call){0}, 0, 0); /* nowhere to report to */
    pool_destroy(pool);
}
