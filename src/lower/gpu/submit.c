/* submit.c: one run of a program, and what is told of it while it runs. */
#include <time.h>

#include "lower/gpu/programs.h"

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For tests: a device that is lost after so many runs. */
static rlx_status count_run(struct gpu_programs *g, struct diag *d)
{
    if (g->lose_after && g->runs >= g->lose_after)
        *g->lost = true;
    g->runs++;
    return g->queue->check(g->backend, d);
}

static rlx_status submit_locked(struct gpu_programs *g, const struct gpu_piece *p, bool timed,
                                struct run_report *report, struct gpu_recording **out,
                                struct diag *d)
{
    TRY(count_run(g, d));
    TRY(gpu_find_recording(g, p->list, p, timed, out, d));
    TRY(g->queue->run(g->backend, *out, p, d));
    gpu_note_report(g, *out, report);
    return RLX_OK;
}

/* ---- with hooks ---- */

/* The device's clock becomes the host's: the last step ended when the host heard of it. */
static void tell_times(struct gpu_programs *g, struct gpu_recording *r, const struct gpu_piece *p,
                       const struct run_hooks *hooks)
{
    uint64_t heard = now_ns(), last[2] = {0, 0}, at[2];
    bool known = p->count && g->queue->read_times(g->backend, r, p->count - 1, last);

    for (size_t i = 0; i < p->count; i++) {
        if (!known || !g->queue->read_times(g->backend, r, i, at))
            at[0] = at[1] = last[1];
        hooks->after(hooks->user, p->list[i].step, heard - (last[1] - at[0]),
                     heard - (last[1] - at[1]));
    }
}

static rlx_status run_single(struct gpu_programs *g, const struct command *list,
                             const struct gpu_piece *one, struct run_report *report,
                             uint64_t *ticket, struct diag *d)
{
    struct gpu_recording *r;

    TRY(gpu_record_single(g, list, one, &r, d));
    TRY(g->queue->run(g->backend, r, one, d));
    *ticket = r->ticket;
    gpu_note_report(g, r, report);
    TRY(g->queue->await(g->backend, r->ticket, d));
    return gpu_take_due(g, d);
}

/* One after the other, as the device has no clock, or the hook looks at the results of each. */
static rlx_status submit_singly(struct gpu_programs *g, const struct gpu_piece *all,
                                const struct run_hooks *hooks, struct run_report *report,
                                uint64_t *ticket, struct diag *d)
{
    pthread_mutex_lock(g->lock);
    rlx_status s = count_run(g, d);
    pthread_mutex_unlock(g->lock);
    for (size_t i = 0; i < all->count && s == RLX_OK; i++) {
        uint64_t start = now_ns();
        pthread_mutex_lock(g->lock);
        s = run_single(g, all->list, &(struct gpu_piece){&all->list[i], 1}, report, ticket, d);
        pthread_mutex_unlock(g->lock);
        if (s == RLX_OK)
            hooks->after(hooks->user, all->list[i].step, start, now_ns());
    }
    return s;
}

static rlx_status submit(struct gpu_programs *g, const struct gpu_piece *all,
                         const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                         struct diag *d)
{
    struct gpu_recording *r;

    if (hooks && (hooks->reads || g->no_times))
        return submit_singly(g, all, hooks, report, ticket, d);
    pthread_mutex_lock(g->lock);
    rlx_status s = submit_locked(g, all, hooks != NULL, report, &r, d);
    if (s == RLX_OK)
        *ticket = r->ticket;
    pthread_mutex_unlock(g->lock);
    if (s == RLX_OK && hooks)
        s = g->queue->await(g->backend, *ticket, d);
    if (s == RLX_OK && hooks)
        tell_times(g, r, all, hooks);
    return s;
}

rlx_status gpu_submit(struct gpu_programs *g, const struct command *list, size_t count,
                      const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                      struct diag *d)
{
    const struct gpu_piece all = {list, count};

    report->step = -1;
    *ticket = 0;
    rlx_status s = submit(g, &all, hooks, report, ticket, d);
    if (s != RLX_OK) {
        pthread_mutex_lock(g->lock);
        gpu_forget_report(g, report);
        pthread_mutex_unlock(g->lock);
    }
    return s;
}
