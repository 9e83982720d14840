/* cpu_submit.c: programs run, on the thread that asks for it or on one of the device's own.
 *
 *     run      computes right here, once no job is left that stands in its way
 *     submit   becomes a job in a queue; the device's own thread does them one after the other
 *
 * The thread is started by the first submit. The number of a job is its ticket. A buffer has the
 * numbers of the last jobs that read and write it, so whoever wants its bytes waits for those
 * alone, and nobody waits for another session's. A copy between buffers that jobs still use becomes
 * a job in turn: it takes effect in its place without holding up its caller.
 *
 * What is called on the device's own thread, from a custom op, is done at once: all jobs before the
 * present one are done, and none after it has begun. */
#include <string.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "base/thread.h"

/* The queue whose thread the present one is. */
static _Thread_local const struct cpu_queue *serves;

/* ---- computing ---- */

static void take_fault(struct cpu_work *w, int32_t step, struct run_report *report)
{
    int64_t position = atomic_load_explicit(&w->fault.position, memory_order_relaxed);

    if (position == INT64_MAX || report->step >= 0)
        return;
    report->step = step;
    report->position = position;
    report->value = atomic_load_explicit(&w->fault.value, memory_order_relaxed);
}

static rlx_status compute(const struct command *list, size_t count, const struct run_hooks *hooks,
                          struct run_report *report, struct diag *d)
{
    report->step = -1;
    report->failed.status = RLX_OK;
    for (size_t i = 0; i < count; i++) {
        struct cpu_work *w = list[i].work;
        uint64_t start = hooks ? clock_ns() : 0;

        if (list[i].kind != COMMAND_DISPATCH || list[i].idle)
            continue; /* works run in order: barriers are free */
        atomic_store_explicit(&w->fault.position, INT64_MAX, memory_order_relaxed);
        TRY(w->run(w, d));
        take_fault(w, list[i].step, report);
        if (hooks)
            hooks->after(hooks->user, list[i].step, start, clock_ns());
    }
    return RLX_OK;
}

static void do_job(const struct cpu_job *j)
{
    struct diag d;

    if (!j->list) {
        memmove(j->to.buffer->data + j->to.offset, j->from.buffer->data + j->from.offset,
                (size_t)j->to.bytes);
        return;
    }
    diag_init(&d, "run");
    if (compute(j->list, j->count, NULL, j->report, &d) != RLX_OK)
        diag_report(&d, &j->report->failed);
}

/* ---- the queue ---- */

static void *serve(void *arg)
{
    struct cpu_queue *q = arg;

    serves = q;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        uint64_t next = atomic_load(&q->done) + 1;
        while (next > atomic_load(&q->last) && !q->stop)
            pthread_cond_wait(&q->come, &q->lock);
        if (next > atomic_load(&q->last))
            break; /* stopped, with nothing left to do */
        pthread_mutex_unlock(&q->lock);
        do_job(&q->job[next % CPU_JOBS]);
        pthread_mutex_lock(&q->lock);
        atomic_store(&q->done, next);
        pthread_cond_broadcast(&q->gone);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void init_thread(struct cpu_queue *q)
{
    pthread_mutex_init(&q->lock, NULL); /* with no attributes these cannot fail on Linux */
    pthread_cond_init(&q->come, NULL);
    pthread_cond_init(&q->gone, NULL);
    q->started = false;
    q->process = getpid();
}

void cpu_queue_init(struct cpu_queue *q)
{
    atomic_init(&q->last, CPU_FIRST_TICKET);
    atomic_init(&q->done, CPU_FIRST_TICKET);
    init_thread(q);
}

/* A process that was forked off has no such thread, and jobs that were in flight are lost in it. To
 * be called before the lock is taken, which may be held by a thread of the other process. */
static void check_process(struct cpu_queue *q)
{
    struct diag d;

    if (q->process == getpid())
        return;
    for (uint64_t k = atomic_load(&q->done) + 1; k <= atomic_load(&q->last); k++) {
        const struct cpu_job *j = &q->job[k % CPU_JOBS];
        diag_init(&d, "run");
        diag_fail(&d, RLX_ERROR_STATE, "the run was submitted before this process was forked off");
        if (j->list)
            diag_report(&d, &j->report->failed);
    }
    atomic_store(&q->done, atomic_load(&q->last));
    init_thread(q);
}

void cpu_queue_close(struct cpu_queue *q)
{
    check_process(q);
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_signal(&q->come);
    pthread_mutex_unlock(&q->lock);
    if (q->started)
        pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->gone);
    pthread_cond_destroy(&q->come);
    pthread_mutex_destroy(&q->lock);
}

static bool is_done(struct cpu_queue *q, uint64_t ticket)
{
    return ticket <= atomic_load(&q->done) || serves == q;
}

static void await(struct cpu_queue *q, uint64_t ticket)
{
    if (is_done(q, ticket))
        return;
    check_process(q);
    pthread_mutex_lock(&q->lock);
    while (!is_done(q, ticket))
        pthread_cond_wait(&q->gone, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

/* ---- which jobs use which buffers ---- */

static bool writes(const struct command *c, uint32_t operand)
{
    return !c->use || c->use[operand].role != ROLE_READ;
}

static void mark(struct buffer *b, bool written, uint64_t ticket)
{
    if (b)
        atomic_store_explicit(written ? &b->written : &b->read, ticket, memory_order_relaxed);
}

static void mark_job(const struct cpu_job *j, uint64_t ticket)
{
    for (size_t i = 0; i < j->count; i++)
        for (uint32_t k = 0; k < j->list[i].operand_count; k++)
            mark(j->list[i].operand[k].buffer, writes(&j->list[i], k), ticket);
    mark(j->to.buffer, true, ticket);
    mark(j->from.buffer, false, ticket);
}

/* The last job that has to be done before the buffer is written, or read. */
static uint64_t last_job(const struct buffer *b, bool to_write)
{
    if (!b)
        return 0;
    uint64_t written = atomic_load_explicit(&b->written, memory_order_relaxed);
    uint64_t read = to_write ? atomic_load_explicit(&b->read, memory_order_relaxed) : 0;
    return read > written ? read : written;
}

static bool is_idle(struct cpu_queue *q)
{
    return atomic_load(&q->done) == atomic_load(&q->last);
}

void cpu_await(struct cpu_device *dev, const struct buffer *b, bool to_write)
{
    await(&dev->queue, last_job(b, to_write));
}

void cpu_await_operands(struct cpu_device *dev, const struct command *list, size_t count)
{
    uint64_t last = 0;

    if (is_idle(&dev->queue))
        return;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].operand_count; k++) {
            uint64_t job = last_job(list[i].operand[k].buffer, writes(&list[i], k));
            last = job > last ? job : last;
        }
    await(&dev->queue, last);
}

void cpu_settle(struct backend *b, const struct command *list)
{
    struct cpu_queue *q = &cpu_device_of(b)->queue;
    uint64_t found = 0;

    if (is_idle(q))
        return;
    check_process(q);
    pthread_mutex_lock(&q->lock);
    for (uint64_t k = atomic_load(&q->done) + 1; k <= atomic_load(&q->last); k++)
        if (q->job[k % CPU_JOBS].list == list)
            found = k;
    pthread_mutex_unlock(&q->lock);
    await(q, found);
}

/* ---- jobs ---- */

/* Waits while the queue is full. 0: the device has no thread. */
static uint64_t put(struct cpu_queue *q, const struct cpu_job *j)
{
    uint64_t ticket = 0;

    check_process(q);
    pthread_mutex_lock(&q->lock);
    if (!q->started)
        q->started = thread_start(&q->thread, serve, q);
    if (q->started) {
        while (atomic_load(&q->last) - atomic_load(&q->done) == CPU_JOBS)
            pthread_cond_wait(&q->gone, &q->lock);
        ticket = atomic_load(&q->last) + 1;
        q->job[ticket % CPU_JOBS] = *j;
        mark_job(j, ticket);
        atomic_store(&q->last, ticket);
        pthread_cond_signal(&q->come);
    }
    pthread_mutex_unlock(&q->lock);
    return ticket;
}

void cpu_copy_in_turn(struct cpu_device *dev, struct span to, struct span from)
{
    struct cpu_queue *q = &dev->queue;
    const struct cpu_job job = {.to = to, .from = from};

    if ((is_done(q, last_job(to.buffer, true)) && is_done(q, last_job(from.buffer, false))) ||
        !put(q, &job))
        do_job(&job);
}

rlx_status cpu_run(struct backend *b, const struct command *list, size_t count,
                   const struct run_hooks *hooks, struct run_report *report, struct diag *d)
{
    cpu_await_operands(cpu_device_of(b), list, count);
    return compute(list, count, hooks, report, d);
}

/* Hooks are called before it returns, so there is nothing to gain from another thread. */
rlx_status cpu_submit(struct backend *b, const struct command *list, size_t count,
                      const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                      struct diag *d)
{
    struct cpu_queue *q = &cpu_device_of(b)->queue;
    const struct cpu_job job = {.list = list, .count = count, .report = report};

    *ticket = hooks || serves == q ? 0 : put(q, &job);
    if (*ticket)
        return RLX_OK;
    *ticket = CPU_FIRST_TICKET;
    return cpu_run(b, list, count, hooks, report, d);
}

static rlx_status check_ticket(struct cpu_queue *q, uint64_t ticket, struct diag *d)
{
    if (ticket == 0 || ticket > atomic_load(&q->last))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no ticket %llu",
                         (unsigned long long)ticket);
    return RLX_OK;
}

rlx_status cpu_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    struct cpu_queue *q = &cpu_device_of(b)->queue;

    TRY(check_ticket(q, ticket, d));
    *done = ticket <= atomic_load(&q->done);
    return RLX_OK;
}

rlx_status cpu_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    struct cpu_queue *q = &cpu_device_of(b)->queue;

    TRY(check_ticket(q, ticket, d));
    if (serves == q && ticket > atomic_load(&q->done))
        return diag_fail(d, RLX_ERROR_STATE,
                         "a custom op waits for a run that comes after its own");
    await(q, ticket);
    return RLX_OK;
}
