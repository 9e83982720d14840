/* pool.c: threads that take numbered blocks until there are none left.
 *
 * Each worker has a share of the blocks, the same part of every run, and helps the others when its
 * own share is done. So what a worker wrote in one run is likely to be what it reads in the next,
 * and is in its own cache.
 *
 * A run is a gate that opens and closes. All that its threads must agree on is one word, the gate:
 *
 *     | run number: 32 bits | unused | CALLER SLEEPS | OPEN | threads inside: 16 bits |
 *
 *     caller                                     worker
 *     describe the job                           wait until the run number changes
 *     run number + 1, OPEN                       inside + 1, and see if it was OPEN
 *     take blocks until there are none           if so: take blocks until there are none
 *     not OPEN any more                          inside - 1; if that leaves nobody inside and
 *     wait until nobody is inside                the CALLER SLEEPS: wake it
 *
 * A worker that comes late finds the gate closed and has touched nothing, so the caller waits only
 * for those who came in time: a small job does not wait for sleeping threads to wake up. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "base/thread.h"

enum { THREADS_MOST = 1024, LINE = 64 }; /* LINE: bytes the CPU shares at a time */

static const uint64_t gate_inside = 0xffff;
static const uint64_t gate_open = (uint64_t)1 << 16;
static const uint64_t gate_sleeps = (uint64_t)1 << 17;
static const uint64_t gate_run = (uint64_t)1 << 32;

struct pool_worker {
    struct pool *pool;
    pthread_t thread;
    int number;
};

/* A worker's share of a run. */
struct pool_share {
    _Alignas(LINE) atomic_int_fast64_t next; /* block to be taken */
    int64_t end;
};

struct pool {
    /* The job: written by the caller while the gate is closed and nobody is inside. */
    pool_fn fn;
    void *ctx;

    const rlx_allocator *mem;
    size_t bytes; /* of this struct and of what follows it */
    int threads;  /* the caller's included */
    int64_t spin_ns;

    pthread_mutex_t turn; /* held by the thread whose run it is */

    /* For threads that sleep. A worker sleeps until the run number changes, a caller until nobody
     * is inside. Both look again with the lock held before they sleep, and whoever changes the gate
     * takes the lock before waking them, so no wake-up falls in between. */
    pthread_mutex_t lock;
    pthread_cond_t job, done;
    atomic_int sleepers;
    atomic_bool stop;

    _Alignas(LINE) atomic_uint_fast64_t gate;
    struct pool_share *share; /* one per thread, after the workers */

    _Alignas(LINE) struct pool_worker worker[]; /* threads - 1; the caller is worker 0 */
};

/* What the present thread is running blocks of, innermost first. */
struct pool_frame {
    const struct pool *pool;
    int worker;
    const struct pool_frame *outer;
};
static _Thread_local const struct pool_frame *frames;

/* ---- waiting ----------------------------------------------------------------------------- */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec ts = {0};

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint32_t run_number(uint64_t gate)
{
    return (uint32_t)(gate >> 32);
}

static bool has_work(struct pool *p, uint32_t seen)
{
    return run_number(atomic_load(&p->gate)) != seen || atomic_load(&p->stop);
}

static bool all_out(struct pool *p)
{
    return (atomic_load(&p->gate) & gate_inside) == 0;
}

/* Spins for a while before anybody has to sleep. Reading the clock costs more than looking at the
 * gate. */
#define SPIN_UNTIL(p, cond)                                          \
    do {                                                             \
        int64_t until_ = (p)->spin_ns ? now_ns() + (p)->spin_ns : 0; \
        while (!(cond) && until_ && now_ns() < until_) {             \
            for (int i_ = 0; i_ < 32 && !(cond); i_++)               \
                relax();                                             \
        }                                                            \
    } while (0)

/* Until there is a run other than `seen`; false: the pool is being destroyed. */
static bool wait_for_job(struct pool *p, uint32_t seen)
{
    SPIN_UNTIL(p, has_work(p, seen));
    if (!has_work(p, seen)) {
        pthread_mutex_lock(&p->lock);
        atomic_fetch_add(&p->sleepers, 1);
        while (!has_work(p, seen))
            pthread_cond_wait(&p->job, &p->lock);
        atomic_fetch_sub(&p->sleepers, 1);
        pthread_mutex_unlock(&p->lock);
    }
    return !atomic_load(&p->stop);
}

static void wait_until_all_out(struct pool *p)
{
    SPIN_UNTIL(p, all_out(p));
    if (all_out(p))
        return;
    atomic_fetch_or(&p->gate, gate_sleeps);
    pthread_mutex_lock(&p->lock);
    while (!all_out(p))
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
    atomic_fetch_and(&p->gate, ~gate_sleeps);
}

/* Wakes as many threads as there is work for. The order (gate, then sleepers) is the reverse of a
 * worker's, so either we see that it sleeps or it sees that there is work. */
static void wake_workers(struct pool *p, int64_t wanted)
{
    int asleep = atomic_load(&p->sleepers);
    if (asleep == 0)
        return;
    pthread_mutex_lock(&p->lock);
    pthread_mutex_unlock(&p->lock);
    if (wanted >= asleep) {
        pthread_cond_broadcast(&p->job);
    } else {
        for (int64_t i = 0; i < wanted; i++)
            pthread_cond_signal(&p->job);
    }
}

/* ---- working ----------------------------------------------------------------------------- */

static void take_blocks(struct pool *p, int worker)
{
    const struct pool_frame frame = {.pool = p, .worker = worker, .outer = frames};
    int64_t block;

    frames = &frame;
    for (int i = 0; i < p->threads; i++) {
        struct pool_share *s = &p->share[(worker + i) % p->threads];
        while ((block = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end)
            p->fn(p->ctx, block, worker);
    }
    frames = frame.outer;
}

static void *work(void *arg)
{
    const struct pool_worker *w = arg;
    struct pool *p = w->pool;
    uint32_t seen = 0;

    while (wait_for_job(p, seen)) {
        uint64_t gate = atomic_fetch_add(&p->gate, 1);
        seen = run_number(gate);
        if (gate & gate_open)
            take_blocks(p, w->number);

        gate = atomic_fetch_sub(&p->gate, 1) - 1;
        if ((gate & gate_inside) == 0 && (gate & gate_sleeps)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
    return NULL;
}

static bool run_nested(struct pool *p, int64_t blocks, pool_fn fn, void *ctx)
{
    for (const struct pool_frame *f = frames; f; f = f->outer) {
        if (f->pool != p)
            continue;
        for (int64_t b = 0; b < blocks; b++)
            fn(ctx, b, f->worker);
        return true;
    }
    return false;
}

static void share_out(struct pool *p, int64_t blocks)
{
    int64_t each = blocks / p->threads, more = blocks % p->threads, at = 0;

    for (int i = 0; i < p->threads; i++) {
        atomic_store_explicit(&p->share[i].next, at, memory_order_relaxed);
        at += each + (i < more);
        p->share[i].end = at;
    }
}

void pool_run(struct pool *p, int64_t blocks, pool_fn fn, void *ctx)
{
    if (blocks <= 0 || run_nested(p, blocks, fn, ctx))
        return;

    pthread_mutex_lock(&p->turn);
    p->fn = fn;
    p->ctx = ctx;
    share_out(p, blocks);
    bool shared = blocks > 1 && p->threads > 1;
    if (shared) {
        atomic_fetch_add(&p->gate, gate_run + gate_open);
        wake_workers(p, blocks - 1);
    }
    take_blocks(p, 0);
    if (shared) {
        atomic_fetch_and(&p->gate, ~gate_open);
        wait_until_all_out(p);
    }
    pthread_mutex_unlock(&p->turn);
}

/* ---- making and ending ------------------------------------------------------------------- */

/* Cores this process may use. The call refuses a set smaller than the kernel's own, so this one is
 * large. */
static int cores(void)
{
    cpu_set_t set[16]; /* of 1024 cores each */

    if (sched_getaffinity(0, sizeof set, set) != 0)
        return 1;
    int found = CPU_COUNT_S(sizeof set, set);
    return found > 0 ? found : 1;
}

static void start_workers(struct pool *p, int wanted)
{
    for (p->threads = 1; p->threads < wanted; p->threads++) {
        struct pool_worker *w = &p->worker[p->threads - 1];
        *w = (struct pool_worker){.pool = p, .number = p->threads};
        if (!thread_start(&w->thread, work, w))
            break; /* fewer will do */
    }
}

rlx_status pool_create(struct pool **out, int threads, const rlx_allocator *mem, struct diag *d)
{
    const int64_t spin_ns = 40000;
    size_t bytes;

    if (threads < 0 || threads > THREADS_MOST)
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "cannot start %d threads: from 1 to %d, or 0 for one per core", threads,
                         THREADS_MOST);
    int have = cores();
    if (threads == 0)
        threads = have < THREADS_MOST ? have : THREADS_MOST;

    size_t workers = (size_t)(threads - 1) * sizeof(struct pool_worker);
    size_t shares_at = (sizeof(struct pool) + workers + LINE - 1) / LINE * LINE;
    bytes = shares_at + (size_t)threads * sizeof(struct pool_share);
    struct pool *p = mem_alloc_aligned(mem, bytes, LINE);
    if (!p)
        return diag_no_memory(d, bytes);
    p->mem = mem;
    p->bytes = bytes;
    p->spin_ns = threads <= have ? spin_ns : 0; /* else it keeps others from their core */
    atomic_init(&p->sleepers, 0);
    atomic_init(&p->stop, false);
    atomic_init(&p->gate, 0);
    p->share = (struct pool_share *)(void *)((char *)p + shares_at);
    for (int i = 0; i < threads; i++)
        atomic_init(&p->share[i].next, 0);
    pthread_mutex_init(&p->turn, NULL); /* with no attributes these cannot fail on Linux */
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->job, NULL);
    pthread_cond_init(&p->done, NULL);
    start_workers(p, threads);
    *out = p;
    return RLX_OK;
}

void pool_destroy(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->job);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->threads - 1; i++)
        pthread_join(p->worker[i].thread, NULL);

    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->job);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->turn);
    mem_free_aligned(p->mem, p, p->bytes, LINE);
}

int pool_threads(const struct pool *p)
{
    return p->threads;
}
