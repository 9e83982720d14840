/* gpu_queue.c: tickets. Everything that goes to the queue gets the next one, and a driver says
 * which was the last that is done. */

#include "backend/gpu/gpu_run.h"
#include "base/clock.h"

#define SPIN_NS 50000 /* before a wait puts the thread to sleep */
#define A_SECOND UINT64_C(1000000000)

rlx_status gpu_check(struct gpu_device *g, struct diag *d)
{
    if (!g->lost)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_DEVICE_LOST, "%s is lost: close it and open it again", g->name);
}

rlx_status gpu_queue(struct gpu_device *g, void *const *commands, uint32_t count, struct diag *d)
{
    TRY(gpu_check(g, d));
    TRY(g->driver->submit(g, commands, count, g->tickets + 1, d));
    g->tickets += count;
    return RLX_OK;
}

void gpu_note_done(struct gpu_device *g, uint64_t ticket)
{
    uint_least64_t known = g->done;

    while (known < ticket && !atomic_compare_exchange_weak(&g->done, &known, ticket))
        ;
}

bool gpu_is_done(struct gpu_device *g, uint64_t ticket)
{
    if (ticket <= g->done)
        return true;
    gpu_note_done(g, g->driver->done(g));
    return ticket <= g->done;
}

/* Work of a few microseconds is done sooner than a thread is woken up. */
static bool done_soon(struct gpu_device *g, uint64_t ticket)
{
    if (g->is_cpu || g->driver->turn || g->lost)
        return false;
    for (uint64_t end = clock_ns() + SPIN_NS; clock_ns() < end;)
        if (gpu_is_done(g, ticket))
            return true;
    return false;
}

/* A lost device is waited for as well, for what is still running may not be taken from it; but not
 * for ever. */
rlx_status gpu_await(struct gpu_device *g, uint64_t ticket, struct diag *d)
{
    if (ticket <= g->done || done_soon(g, ticket))
        return gpu_check(g, d);
    bool lost = g->lost;
    TRY(g->driver->wait(g, ticket, lost ? A_SECOND : UINT64_MAX, d));
    TRY(gpu_check(g, d));
    gpu_note_done(g, ticket);
    return RLX_OK;
}

/* Transfers too: the words of a recording may still be on their way. */
void gpu_settle(struct gpu_device *g)
{
    struct diag quiet;

    diag_init(&quiet, "settle");
    gpu_submit_batch(g, &quiet);
    gpu_await(g, g->tickets, &quiet);
}

/* ---- the table's ---- */

/* The reports of all runs that are done, and what else there is to say of them. */
static rlx_status finish(struct gpu_device *g, struct diag *d)
{
    pthread_mutex_lock(&g->lock);
    rlx_status s = gpu_take_due(g, d);
    pthread_mutex_unlock(&g->lock);
    TRY(s);
    return g->driver->check ? g->driver->check(g, d) : RLX_OK;
}

rlx_status gpu_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);

    if (ticket > g->done && g->driver->turn)
        g->driver->turn(g);
    TRY(gpu_check(g, d));
    *done = gpu_is_done(g, ticket);
    return *done ? finish(g, d) : RLX_OK;
}

rlx_status gpu_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);

    TRY(gpu_await(g, ticket, d));
    return finish(g, d);
}
