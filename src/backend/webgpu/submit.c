/* submit.c: programs on their way through the queue.
 *
 * A program is known by the list of its commands, and has a few recordings, one for each set of
 * sizes that came up lately. A ticket is a number; the queue calls back when it is done. */
#include <string.h>
#include <time.h>

#include "backend/webgpu/webgpu.h"
#include "base/map.h"

#define KEPT 8 /* recordings of one program */

struct wg_program {
    struct wg_program *next;
    const struct command *list;
    struct wg_recording recording[KEPT];
    uint64_t used[KEPT];        /* when: dev->submits */
    struct wg_recording single; /* of one step at a time, for hooks */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the queue ---- */

static void hear_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void *user,
                      void *ticket)
{
    struct wg_device *dev = user;
    uint_least64_t known = dev->done, now = (uintptr_t)ticket;

    if (status != WGPUQueueWorkDoneStatus_Success)
        wg_note_error(dev, WGPUErrorType_Internal, message);
    while (known < now && !atomic_compare_exchange_weak(&dev->done, &known, now))
        ;
}

rlx_status wg_queue(struct wg_device *dev, WGPUCommandEncoder encoder, struct diag *d)
{
    WGPUCommandBuffer commands = dev->wg.CommandEncoderFinish(encoder, NULL);

    dev->wg.CommandEncoderRelease(encoder);
    rlx_status s = wg_check(dev, d);
    if (s == RLX_OK) {
        dev->wg.QueueSubmit(dev->queue, 1, &commands);
        s = wg_check(dev, d);
    }
    if (commands)
        dev->wg.CommandBufferRelease(commands);
    TRY(s);
    dev->tickets++;
    dev->wg.QueueOnSubmittedWorkDone(
        dev->queue, (WGPUQueueWorkDoneCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                    .callback = hear_done,
                                                    .userdata1 = dev,
                                                    .userdata2 = (void *)(uintptr_t)dev->tickets});
    return RLX_OK;
}

rlx_status wg_await(struct wg_device *dev, uint64_t ticket, struct diag *d)
{
    while (dev->done < ticket && !dev->lost)
        wg_turn(dev, true);
    return wg_check(dev, d);
}

/* ---- recordings ---- */

static uint64_t key_of(const struct wg_device *dev, const struct command *list, size_t count)
{
    uint64_t h = hash_mix(dev->released, count);

    for (size_t i = 0; i < count; i++)
        h = hash_mix(h, list[i].idle ? 0 : ((const struct gpu_work *)list[i].work)->stamp);
    return h;
}

static rlx_status find_program(struct wg_device *dev, const struct command *list,
                               struct wg_program **out, struct diag *d)
{
    struct wg_program *p = dev->programs;

    while (p && p->list != list)
        p = p->next;
    if (!p) {
        p = mem_alloc(dev->base.mem, sizeof *p);
        if (!p)
            return diag_no_memory(d, sizeof *p);
        p->list = list;
        p->next = dev->programs;
        dev->programs = p;
    }
    *out = p;
    return RLX_OK;
}

/* A report that is due is taken before its recording runs again: it has one place for it. */
static rlx_status take_report(struct wg_device *dev, struct wg_recording *r, struct diag *d)
{
    if (r->report && r->ticket <= dev->done)
        return wg_read_report(dev, r, d);
    return RLX_OK;
}

/* The recording of this key, if it can be submitted now; else the one that was used longest ago. */
static size_t choose(struct wg_device *dev, struct wg_program *p, uint64_t key, bool *found)
{
    size_t oldest = 0;

    *found = false;
    for (size_t i = 0; i < KEPT; i++) {
        struct wg_recording *r = &p->recording[i];
        if (r->valid && r->key == key && !r->report && !dev->options.no_cache) {
            *found = true;
            return i;
        }
        if (p->used[i] < p->used[oldest])
            oldest = i;
    }
    return oldest;
}

static rlx_status find_recording(struct wg_device *dev, const struct command *list, size_t count,
                                 struct wg_recording **out, struct diag *d)
{
    uint64_t key = key_of(dev, list, count);
    struct wg_program *p;
    bool found;

    TRY(find_program(dev, list, &p, d));
    for (size_t i = 0; i < KEPT; i++)
        TRY(take_report(dev, &p->recording[i], d));
    size_t i = choose(dev, p, key, &found);
    struct wg_recording *r = *out = &p->recording[i];
    p->used[i] = dev->submits + 1;
    if (found)
        return RLX_OK;
    TRY(wg_await(dev, r->ticket, d));
    TRY(take_report(dev, r, d));
    r->key = key;
    return wg_record(dev, r, list, count, d);
}

/* ---- running ---- */

/* For tests: a device that is lost after so many runs. */
static rlx_status count_run(struct wg_device *dev, struct diag *d)
{
    if (dev->options.lose_after && dev->submits >= dev->options.lose_after)
        dev->lost = true;
    dev->submits++;
    return wg_check(dev, d);
}

static rlx_status submit_locked(struct wg_device *dev, const struct command *list, size_t count,
                                struct run_report *report, struct diag *d)
{
    struct wg_recording *r;

    TRY(count_run(dev, d));
    TRY(find_recording(dev, list, count, &r, d));
    TRY(wg_encode(dev, r, d));
    r->ticket = dev->tickets;
    if (r->faults)
        r->report = report;
    return RLX_OK;
}

static rlx_status run_single(struct wg_device *dev, const struct command *list,
                             const struct command *one, struct run_report *report, struct diag *d)
{
    struct wg_program *p;

    TRY(find_program(dev, list, &p, d));
    TRY(wg_record(dev, &p->single, one, 1, d));
    TRY(wg_encode(dev, &p->single, d));
    TRY(wg_await(dev, dev->tickets, d));
    p->single.report = report->step < 0 ? report : NULL;
    return wg_read_report(dev, &p->single, d);
}

/* One after the other: passes have no clock that every device knows, and a hook may look at the
 * results of each. */
static rlx_status submit_singly(struct wg_device *dev, const struct command *list, size_t count,
                                const struct run_hooks *hooks, struct run_report *report,
                                uint64_t *ticket, struct diag *d)
{
    pthread_mutex_lock(&dev->lock);
    rlx_status s = count_run(dev, d);
    pthread_mutex_unlock(&dev->lock);
    for (size_t i = 0; i < count && s == RLX_OK; i++) {
        uint64_t start = now_ns();
        pthread_mutex_lock(&dev->lock);
        s = run_single(dev, list, &list[i], report, d);
        pthread_mutex_unlock(&dev->lock);
        if (s == RLX_OK)
            hooks->after(hooks->user, list[i].step, start, now_ns());
    }
    *ticket = dev->done;
    return s;
}

rlx_status wg_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);

    report->step = -1;
    if (hooks)
        return submit_singly(dev, list, count, hooks, report, ticket, d);
    pthread_mutex_lock(&dev->lock);
    rlx_status s = submit_locked(dev, list, count, report, d);
    if (s == RLX_OK)
        *ticket = dev->tickets;
    pthread_mutex_unlock(&dev->lock);
    return s;
}

/* ---- its end ---- */

/* Reports of all that is done. */
static rlx_status finish(struct wg_device *dev, struct diag *d)
{
    rlx_status s = RLX_OK;

    pthread_mutex_lock(&dev->lock);
    for (struct wg_program *p = dev->programs; p; p = p->next)
        for (size_t i = 0; i < KEPT && s == RLX_OK; i++)
            s = take_report(dev, &p->recording[i], d);
    pthread_mutex_unlock(&dev->lock);
    return s;
}

rlx_status wg_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);

    if (dev->done < ticket)
        wg_turn(dev, false);
    TRY(wg_check(dev, d));
    *done = ticket <= dev->done;
    return *done ? finish(dev, d) : RLX_OK;
}

rlx_status wg_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);

    TRY(wg_await(dev, ticket, d));
    return finish(dev, d);
}

static void drop_program(struct wg_device *dev, struct wg_program *p)
{
    for (size_t i = 0; i < KEPT; i++)
        wg_drop_recording(dev, &p->recording[i]);
    wg_drop_recording(dev, &p->single);
    mem_free(dev->base.mem, p, sizeof *p);
}

void wg_unload(struct backend *b, const struct command *list)
{
    struct wg_device *dev = wg_device_of(b);
    struct diag quiet;

    diag_init(&quiet, "unload");
    pthread_mutex_lock(&dev->lock);
    struct wg_program **at = &dev->programs;
    while (*at && (*at)->list != list)
        at = &(*at)->next;
    struct wg_program *p = *at;
    if (p) {
        *at = p->next;
        wg_await(dev, dev->tickets, &quiet);
        drop_program(dev, p);
    }
    pthread_mutex_unlock(&dev->lock);
}

void wg_drop_programs(struct wg_device *dev)
{
    while (dev->programs) {
        struct wg_program *p = dev->programs;
        dev->programs = p->next;
        drop_program(dev, p);
    }
}
