/* cpu_parallel.c: how a kernel's work reaches the pool, and how an index out of range reaches the
 * run.
 *
 * A range is cut into blocks of `grain` items, the last one shorter. Which worker runs which block
 * is open; what a block is, never. */
#include "backend/cpu/cpu_kernel.h"

#include <stdatomic.h>

struct range_job {
    cpu_range_fn fn;
    void *ctx;
    int64_t count, grain;
};

static void run_block(void *ctx, int64_t block, int worker)
{
    const struct range_job *job = ctx;
    int64_t begin = block * job->grain; /* < count */
    int64_t left = job->count - begin;

    job->fn(job->ctx, begin, begin + (left < job->grain ? left : job->grain), worker);
}

/* pool NULL: all blocks in the calling thread, as worker 0. */
void cpu_for(struct pool *pool, int64_t count, int64_t grain, cpu_range_fn fn, void *ctx)
{
    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;

    struct range_job job = {.fn = fn, .ctx = ctx, .count = count, .grain = grain};
    int64_t blocks = count / grain + (count % grain != 0);
    if (pool) {
        pool_run(pool, blocks, run_block, &job);
    } else {
        for (int64_t b = 0; b < blocks; b++)
            run_block(&job, b, 0);
    }
}

/* Position and value are two words that must stay a pair. A thread that finds a smaller position
 * first takes the position away, which makes the others wait while the value is written. Indices
 * out of range are rare, so the waits are short. */
void cpu_report_index(const struct cpu_call *c, int64_t position, int64_t value)
{
    const int64_t taken = INT64_MIN;
    struct cpu_fault *f = c->fault;
    if (!f)
        return;

    int64_t now = atomic_load_explicit(&f->position, memory_order_acquire);
    for (;;) {
        if (now == taken) {
            now = atomic_load_explicit(&f->position, memory_order_acquire);
            continue;
        }
        if (position >= now)
            return;
        if (atomic_compare_exchange_weak_explicit(&f->position, &now, taken, memory_order_acquire,
                                                  memory_order_acquire))
            break;
    }
    atomic_store_explicit(&f->value, value, memory_order_relaxed);
    atomic_store_explicit(&f->position, position, memory_order_release);
}
