/* pool_test.c: every block runs once, whoever runs it, however the pool is called. */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "test.h"

static struct pool *make(struct test *t, int threads)
{
    struct pool *p = NULL;
    struct diag d;

    diag_init(&d, "test");
    expect_ok(t, pool_create(&p, threads, mem_default(), &d));
    return p;
}

/* ---- every block once -------------------------------------------------------------------- */

enum { BLOCKS_MOST = 5000 };

struct tally {
    int seen[BLOCKS_MOST]; /* written by whoever runs the block, read after the run */
    atomic_int workers[64];
    int threads;
    atomic_int bad; /* workers out of range, or two with one number at a time */
    atomic_int busy[64];
};

static void count_block(void *ctx, int64_t block, int worker)
{
    struct tally *x = ctx;

    if (worker < 0 || worker >= x->threads) {
        x->bad++;
        return;
    }
    if (x->busy[worker]++ != 0)
        x->bad++;
    x->seen[block]++;
    x->workers[worker]++;
    x->busy[worker]--;
}

TEST(pool, every_block_runs_once)
{
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, BLOCKS_MOST};
    static struct tally x;

    for (int threads = 1; threads <= 9; threads += threads < 4 ? 1 : 5) {
        struct pool *p = make(t, threads);
        require(t, p != NULL);
        expect_eq(t, pool_threads(p), threads);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            memset(&x, 0, sizeof x);
            x.threads = threads;
            pool_run(p, counts[i], count_block, &x);
            int64_t wrong = 0;
            for (int64_t b = 0; b < BLOCKS_MOST; b++)
                wrong += x.seen[b] != (b < counts[i] ? 1 : 0);
            test_note(t, "%d threads, %d blocks", threads, (int)counts[i]);
            expect_eq(t, wrong, 0);
            expect_eq(t, x.bad, 0);
        }
        pool_run(p, -5, count_block, NULL); /* nothing */
        pool_destroy(p);
    }
    pool_destroy(NULL);
}

TEST(pool, default_is_the_cores_we_may_use)
{
    struct pool *p = make(t, 0);

    require(t, p != NULL);
    expect(t, pool_threads(p) >= 1);
    pool_destroy(p);
}

TEST(pool, refuses_odd_thread_counts)
{
    struct pool *p = NULL;
    struct diag d;

    diag_init(&d, "test");
    expect_status(t, pool_create(&p, -1, mem_default(), &d), RLX_ERROR_ARGUMENT);
    expect_error(t, RLX_ERROR_ARGUMENT, "-1 threads", &d.first);
    expect_status(t, pool_create(&p, 1000000, mem_default(), &d), RLX_ERROR_ARGUMENT);
    expect(t, p == NULL);
}

static void pause_ns(long ns)
{
    const struct timespec pause = {.tv_nsec = ns};

    nanosleep(&pause, NULL);
}

static void sleep_a_little(void *ctx, int64_t block, int worker)
{
    (void)block;
    (void)worker;
    pause_ns(3000000);
    atomic_fetch_add((atomic_int *)ctx, 1);
}

/* Blocks that take longer than anybody spins: the caller goes to sleep, and is woken. */
TEST(pool, waits_for_slow_blocks)
{
    struct pool *p = make(t, 4);
    atomic_int done = 0;

    require(t, p != NULL);
    for (int i = 1; i <= 5; i++) {
        pool_run(p, 5, sleep_a_little, &done);
        expect_eq(t, done, 5 * i);
    }
    pool_destroy(p);
}

static void note_worker(void *ctx, int64_t block, int worker)
{
    atomic_int *used = ctx;
    (void)block;
    used[worker] = 1;
    pause_ns(2000000);
}

/* The pause is long enough for all to be asleep when the run begins. */
TEST(pool, sleeping_threads_do_take_part)
{
    struct pool *p = make(t, 3);

    require(t, p != NULL);
    for (int i = 0; i < 3; i++) {
        atomic_int used[3] = {0};
        pause_ns(5000000);
        for (int k = 0; k < 20 && !(used[0] && used[1] && used[2]); k++)
            pool_run(p, 8, note_worker, used);
        expect(t, used[0] && used[1] && used[2]);
    }
    pool_destroy(p);
}

/* ---- determinism ------------------------------------------------------------------------- */

struct sums {
    float in[100000], part[100];
};

static void sum_block(void *ctx, int64_t block, int worker)
{
    struct sums *x = ctx;
    float sum = 0;
    (void)worker;

    for (int64_t i = block * 1000; i < (block + 1) * 1000; i++)
        sum += x->in[i];
    x->part[block] = sum;
}

TEST(pool, same_bits_for_any_number_of_threads)
{
    static struct sums x;
    float first[100];

    for (int i = 0; i < 100000; i++)
        x.in[i] = 1.0f / (float)(i + 1);
    for (int threads = 1; threads <= 5; threads++) {
        struct pool *p = make(t, threads);
        require(t, p != NULL);
        memset(x.part, 0, sizeof x.part);
        pool_run(p, 100, sum_block, &x);
        if (threads == 1)
            memcpy(first, x.part, sizeof first);
        expect_bytes(t, x.part, first, sizeof first);
        pool_destroy(p);
    }
}

/* ---- nested, and from several threads ---------------------------------------------------- */

struct nest {
    struct pool *pool, *other;
    atomic_int inner, wrong;
};

struct inner {
    struct nest *nest;
    int worker;
    pthread_t thread;
};

static void inner_block(void *ctx, int64_t block, int worker)
{
    struct inner *i = ctx;
    (void)block;

    i->nest->inner++;
    if (worker != i->worker || !pthread_equal(pthread_self(), i->thread))
        i->nest->wrong++;
}

static void middle_block(void *ctx, int64_t block, int worker)
{
    struct inner *i = ctx;
    (void)block;

    if (worker != i->worker)
        i->nest->wrong++;
    pool_run(i->nest->pool, 3, inner_block, i);
}

static void outer_block(void *ctx, int64_t block, int worker)
{
    struct nest *n = ctx;
    struct inner i = {.nest = n, .worker = worker, .thread = pthread_self()};
    (void)block;

    pool_run(n->pool, 2, middle_block, &i);
}

TEST(pool, nested_runs_stay_on_their_thread)
{
    struct nest n = {.pool = make(t, 4)};

    require(t, n.pool != NULL);
    for (int i = 0; i < 200; i++)
        pool_run(n.pool, 10, outer_block, &n);
    expect_eq(t, n.inner, 200 * 10 * 2 * 3);
    expect_eq(t, n.wrong, 0);
    pool_destroy(n.pool);
}

static void add_one(void *ctx, int64_t block, int worker)
{
    (void)block;
    (void)worker;
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void run_other(void *ctx, int64_t block, int worker)
{
    struct nest *n = ctx;
    (void)block;
    (void)worker;

    pool_run(n->other, 4, add_one, &n->inner);
    pool_run(n->pool, 2, add_one, &n->inner);
}

TEST(pool, one_pool_may_use_another)
{
    struct nest n = {.pool = make(t, 3), .other = make(t, 2)};

    require(t, n.pool && n.other);
    for (int i = 0; i < 100; i++)
        pool_run(n.pool, 6, run_other, &n);
    expect_eq(t, n.inner, 100 * 6 * (4 + 2));
    pool_destroy(n.other);
    pool_destroy(n.pool);
}

struct caller {
    struct pool *pool;
    int id, runs;
    int64_t part[16];            /* plain: only the blocks of one run touch it at a time */
    atomic_int *active;          /* [2]: blocks under way, by caller */
    pthread_barrier_t *together; /* so that both begin at once */
    atomic_int wrong;
};

static void call_block(void *ctx, int64_t block, int worker)
{
    struct caller *c = ctx;
    (void)worker;

    c->active[c->id]++;
    for (int i = 0; i < 50; i++) {
        if (c->active[1 - c->id] != 0)
            c->wrong++; /* a block of the other's run, meanwhile */
    }
    c->part[block] += block + c->id;
    c->active[c->id]--;
}

static void *call_many(void *arg)
{
    struct caller *c = arg;

    pthread_barrier_wait(c->together);
    for (int i = 0; i < c->runs; i++) {
        int64_t blocks = 1 + i % 16;
        memset(c->part, 0, sizeof c->part);
        pool_run(c->pool, blocks, call_block, c);
        for (int64_t b = 0; b < 16; b++)
            c->wrong += c->part[b] != (b < blocks ? b + c->id : 0);
    }
    return NULL;
}

static void two_callers(struct test *t, int threads, int runs)
{
    struct pool *p = make(t, threads);
    atomic_int active[2] = {0};
    pthread_barrier_t together;
    struct caller c[2];
    pthread_t thread;

    require(t, p != NULL);
    require(t, pthread_barrier_init(&together, NULL, 2) == 0);
    for (int i = 0; i < 2; i++)
        c[i] = (struct caller){
            .pool = p, .active = active, .together = &together, .id = i, .runs = runs};
    require(t, pthread_create(&thread, NULL, call_many, &c[0]) == 0);
    call_many(&c[1]);
    pthread_join(thread, NULL);
    expect_eq(t, c[0].wrong, 0);
    expect_eq(t, c[1].wrong, 0);
    pthread_barrier_destroy(&together);
    pool_destroy(p);
}

TEST(pool, two_threads_take_turns)
{
    two_callers(t, 3, 2000);
    two_callers(t, 2, 2000);
    two_callers(t, 1, 2000);
}

/* ---- stress ------------------------------------------------------------------------------ */

/* Each run reads what other threads wrote in the run before, without atomics: the pool itself must
 * order the two. */
struct relay {
    int64_t cell[2][16];
    int from;
};

static void pass_on(void *ctx, int64_t block, int worker)
{
    struct relay *x = ctx;
    (void)worker;

    x->cell[1 - x->from][block] = x->cell[x->from][(block + 1) % 16] + 1;
}

static void relay_on(struct test *t, int threads, int runs)
{
    struct pool *p = make(t, threads);
    struct relay x = {.from = 0};

    require(t, p != NULL);
    for (int64_t b = 0; b < 16; b++)
        x.cell[0][b] = b * 1000000;
    for (int i = 0; i < runs; i++) {
        pool_run(p, 16, pass_on, &x);
        x.from = 1 - x.from;
    }
    for (int64_t b = 0; b < 16; b++)
        expect_eq(t, x.cell[x.from][b], (b + runs) % 16 * 1000000 + runs);
    pool_destroy(p);
}

TEST(pool, thousands_of_small_runs)
{
    relay_on(t, 2, 10000);
    relay_on(t, 5, 2001); /* more than there may be cores: nobody spins */
}

TEST(pool, made_and_destroyed_many_times)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    atomic_int done = 0;

    for (int i = 0; i < 100; i++) {
        struct pool *p = NULL;
        require_ok(t, pool_create(&p, 1 + i % 5, &mem, NULL));
        uint64_t calls = count.calls;
        for (int k = 0; k < i % 4; k++)
            pool_run(p, 8, add_one, &done);
        expect_eq(t, count.calls, calls); /* a run allocates nothing */
        pool_destroy(p);
    }
    expect_eq(t, done, 25 * (0 + 1 + 2 + 3) * 8);
    expect_no_leak(t, &count);
}

/* Long enough between runs for the workers to fall asleep, short enough to catch them at it. */
TEST(pool, runs_while_workers_fall_asleep)
{
    struct pool *p = make(t, 2);
    atomic_int done = 0;

    require(t, p != NULL);
    for (int i = 0; i < 300; i++) {
        pool_run(p, 4, add_one, &done);
        pause_ns(1000 * (i % 100));
    }
    expect_eq(t, done, 1200);
    pool_destroy(p);
}

static rlx_status make_and_run(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct pool *p = NULL;
    struct diag d;
    atomic_int done = 0;
    (void)ctx;

    diag_init(&d, "test");
    TRY(pool_create(&p, 3, mem, &d));
    pool_run(p, 10, add_one, &done);
    expect_eq(t, done, 10);
    pool_destroy(p);
    return RLX_OK;
}

TEST(pool, survives_no_memory)
{
    expect_survives_no_memory(t, make_and_run, NULL);
}
