/* submit.c: programs on their way through the queue.
 *
 * A program is known by the list of its commands, and has a few recordings, one for each set of
 * sizes that came up lately; a run whose sizes were seen before is one call to the driver. The
 * value of a timeline semaphore counts what is done, so a ticket is a number to wait for. */
#include <string.h>
#include <time.h>

#include "backend/vulkan/vulkan.h"
#include "base/map.h"

#define KEPT 8        /* recordings of one program */
#define SPIN_NS 50000 /* before a wait puts the thread to sleep */

struct vk_program {
    struct vk_program *next;
    const struct command *list;
    struct vk_recording recording[KEPT];
    uint64_t used[KEPT];        /* when: dev->submits */
    struct vk_recording single; /* of one step at a time, for hooks that look at its results */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the queue ---- */

rlx_status vk_check(struct vk_device *dev, struct diag *d)
{
    if (!dev->lost)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_DEVICE_LOST, "%s is lost: close it and open it again",
                     dev->properties.deviceName);
}

rlx_status vk_queue(struct vk_device *dev, const VkCommandBuffer *commands, uint32_t count,
                    struct diag *d)
{
    VkTimelineSemaphoreSubmitInfo values[VK_AT_ONCE];
    VkSubmitInfo info[VK_AT_ONCE];
    uint64_t ticket[VK_AT_ONCE];

    TRY(vk_check(dev, d));
    for (uint32_t i = 0; i < count; i++) {
        ticket[i] = dev->tickets + 1 + i;
        values[i] = (VkTimelineSemaphoreSubmitInfo){
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .signalSemaphoreValueCount = 1,
            .pSignalSemaphoreValues = &ticket[i]};
        info[i] = (VkSubmitInfo){.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .pNext = &values[i],
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands[i],
                                 .signalSemaphoreCount = 1,
                                 .pSignalSemaphores = &dev->timeline};
    }
    VK_TRY(dev, dev->vk.QueueSubmit(dev->queue, count, info, VK_NULL_HANDLE), d);
    dev->tickets += count;
    return RLX_OK;
}

static void note_done(struct vk_device *dev, uint64_t ticket)
{
    uint_least64_t known = dev->done;

    while (known < ticket && !atomic_compare_exchange_weak(&dev->done, &known, ticket))
        ;
}

bool vk_is_done(struct vk_device *dev, uint64_t ticket)
{
    uint64_t value = 0;

    if (ticket <= dev->done)
        return true;
    if (dev->vk.GetSemaphoreCounterValue(dev->device, dev->timeline, &value) == VK_SUCCESS)
        note_done(dev, value);
    return ticket <= dev->done;
}

/* Work of a few microseconds is done sooner than a thread is woken up. Not where the device is this
 * CPU, which has better things to do. */
static bool done_soon(struct vk_device *dev, uint64_t ticket)
{
    if (dev->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU || dev->lost)
        return false;
    for (uint64_t end = now_ns() + SPIN_NS; now_ns() < end;)
        if (vk_is_done(dev, ticket))
            return true;
    return false;
}

/* A lost device is waited for as well, for what is still running may not be taken from it; but not
 * for ever. */
rlx_status vk_await(struct vk_device *dev, uint64_t ticket, struct diag *d)
{
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &dev->timeline,
                                      .pValues = &ticket};
    const uint64_t a_second = UINT64_C(1000000000);

    if (ticket <= dev->done || done_soon(dev, ticket))
        return vk_check(dev, d);
    VkResult r = dev->vk.WaitSemaphores(dev->device, &info, dev->lost ? a_second : UINT64_MAX);
    if (r == VK_SUCCESS)
        note_done(dev, ticket);
    TRY(vk_check(dev, d));
    return r == VK_SUCCESS ? RLX_OK : vk_fail(dev, r, "WaitSemaphores", d);
}

/* ---- recordings ---- */

static uint64_t key_of(const struct vk_device *dev, const struct command *list, size_t count,
                       bool timed)
{
    uint64_t h = hash_mix(dev->released, 2 * count + timed);

    for (size_t i = 0; i < count; i++)
        h = hash_mix(h, list[i].idle ? 0 : ((const struct gpu_work *)list[i].work)->stamp);
    return h;
}

static rlx_status find_program(struct vk_device *dev, const struct command *list,
                               struct vk_program **out, struct diag *d)
{
    struct vk_program *p = dev->programs;

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
static bool is_free(struct vk_device *dev, struct vk_recording *r)
{
    if (r->report && vk_is_done(dev, r->ticket))
        vk_read_report(dev, r);
    return !r->report;
}

/* The recording of this key, if it can be submitted now; else the one that was used longest ago. */
static size_t choose(struct vk_device *dev, struct vk_program *p, uint64_t key, bool *found)
{
    size_t oldest = 0;

    *found = false;
    for (size_t i = 0; i < KEPT; i++) {
        struct vk_recording *r = &p->recording[i];
        if (r->valid && r->key == key && is_free(dev, r) && !dev->options.no_cache) {
            *found = true;
            return i;
        }
        if (p->used[i] < p->used[oldest])
            oldest = i;
    }
    return oldest;
}

static rlx_status find_recording(struct vk_device *dev, const struct command *list, size_t count,
                                 bool timed, struct vk_recording **out, struct diag *d)
{
    uint64_t key = key_of(dev, list, count, timed);
    struct vk_program *p;
    bool found;

    TRY(find_program(dev, list, &p, d));
    size_t i = choose(dev, p, key, &found);
    struct vk_recording *r = *out = &p->recording[i];
    p->used[i] = dev->submits + 1;
    if (found)
        return RLX_OK;
    TRY(vk_await(dev, r->ticket, d));
    is_free(dev, r);
    r->timed = timed;
    r->key = key;
    return vk_record(dev, r, list, count, d);
}

/* ---- running ---- */

/* What the program uses is busy until its ticket is done; its uploads go before it. */
static rlx_status run_recording(struct vk_device *dev, struct vk_recording *r,
                                const struct command *list, size_t count, struct diag *d)
{
    VkCommandBuffer both[VK_AT_ONCE];
    uint32_t n = 0;

    TRY(vk_end_transfers(dev, &both[0], d));
    n += both[0] != VK_NULL_HANDLE;
    both[n++] = r->commands;
    TRY(vk_queue(dev, both, n, d));
    r->ticket = dev->tickets;
    for (uint32_t i = 0; i < r->touches && r->touches <= VK_TOUCHED; i++)
        r->touched[i]->used = r->ticket;
    for (size_t i = 0; i < count && r->touches > VK_TOUCHED; i++)
        for (uint32_t k = 0; k < list[i].operand_count; k++)
            if (list[i].operand[k].buffer)
                list[i].operand[k].buffer->used = r->ticket;
    return RLX_OK;
}

/* For tests: a device that is lost after so many runs. */
static rlx_status count_run(struct vk_device *dev, struct diag *d)
{
    if (dev->options.lose_after && dev->submits >= dev->options.lose_after)
        dev->lost = true;
    dev->submits++;
    return vk_check(dev, d);
}

static rlx_status submit_locked(struct vk_device *dev, const struct command *list, size_t count,
                                bool timed, struct run_report *report, struct vk_recording **out,
                                struct diag *d)
{
    TRY(count_run(dev, d));
    TRY(find_recording(dev, list, count, timed, out, d));
    TRY(run_recording(dev, *out, list, count, d));
    if ((*out)->faults)
        (*out)->report = report;
    return RLX_OK;
}

/* Reports of all that is done. */
static void take_reports(struct vk_device *dev)
{
    for (struct vk_program *p = dev->programs; p; p = p->next)
        for (size_t i = 0; i < KEPT; i++)
            is_free(dev, &p->recording[i]);
}

/* ---- with hooks ---- */

/* The device's clock becomes the host's: the last step ended when the host heard of it. */
static void tell_times(struct vk_device *dev, const struct vk_recording *r,
                       const struct command *list, size_t count, const struct run_hooks *hooks)
{
    uint64_t heard = now_ns(), last[2] = {0, 0}, at[2];
    bool known = count && dev->timestamp_bits && vk_read_times(dev, r, count - 1, last);

    for (size_t i = 0; i < count; i++) {
        if (!known || !vk_read_times(dev, r, i, at))
            at[0] = at[1] = last[1];
        hooks->after(hooks->user, list[i].step, heard - (last[1] - at[0]),
                     heard - (last[1] - at[1]));
    }
}

/* One after the other, as the hook looks at the results of each. */
static rlx_status run_single(struct vk_device *dev, const struct command *list,
                             const struct command *one, struct run_report *report,
                             const struct run_hooks *hooks, struct diag *d)
{
    struct vk_program *p;
    uint64_t start = now_ns();

    pthread_mutex_lock(&dev->lock);
    rlx_status s = find_program(dev, list, &p, d);
    if (s == RLX_OK)
        s = vk_record(dev, &p->single, one, 1, d);
    if (s == RLX_OK)
        s = run_recording(dev, &p->single, one, 1, d);
    if (s == RLX_OK)
        s = vk_await(dev, p->single.ticket, d);
    if (s == RLX_OK && report->step < 0) {
        p->single.report = report;
        vk_read_report(dev, &p->single);
    }
    pthread_mutex_unlock(&dev->lock);
    if (s == RLX_OK)
        hooks->after(hooks->user, one->step, start, now_ns());
    return s;
}

static rlx_status submit_singly(struct vk_device *dev, const struct command *list, size_t count,
                                const struct run_hooks *hooks, struct run_report *report,
                                uint64_t *ticket, struct diag *d)
{
    pthread_mutex_lock(&dev->lock);
    rlx_status s = count_run(dev, d);
    pthread_mutex_unlock(&dev->lock);
    for (size_t i = 0; i < count && s == RLX_OK; i++)
        s = run_single(dev, list, &list[i], report, hooks, d);
    *ticket = dev->done;
    return s;
}

rlx_status vk_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    struct vk_recording *r;
    bool timed = hooks && dev->timestamp_bits;

    report->step = -1;
    if (hooks && hooks->reads)
        return submit_singly(dev, list, count, hooks, report, ticket, d);
    pthread_mutex_lock(&dev->lock);
    rlx_status s = submit_locked(dev, list, count, timed, report, &r, d);
    uint64_t mine = dev->tickets;
    pthread_mutex_unlock(&dev->lock);
    if (s == RLX_OK && hooks)
        s = vk_await(dev, mine, d);
    if (s == RLX_OK && hooks)
        tell_times(dev, r, list, count, hooks);
    if (s == RLX_OK)
        *ticket = mine;
    return s;
}

/* ---- its end ---- */

static rlx_status finish(struct vk_device *dev, struct diag *d)
{
    pthread_mutex_lock(&dev->lock);
    take_reports(dev);
    pthread_mutex_unlock(&dev->lock);
    return vk_check_complaints(dev, d);
}

rlx_status vk_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);

    TRY(vk_check(dev, d));
    *done = vk_is_done(dev, ticket);
    return *done ? finish(dev, d) : RLX_OK;
}

rlx_status vk_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);

    TRY(vk_await(dev, ticket, d));
    return finish(dev, d);
}

static void drop_program(struct vk_device *dev, struct vk_program *p)
{
    for (size_t i = 0; i < KEPT; i++)
        vk_drop_recording(dev, &p->recording[i]);
    vk_drop_recording(dev, &p->single);
    mem_free(dev->base.mem, p, sizeof *p);
}

void vk_unload(struct backend *b, const struct command *list)
{
    struct vk_device *dev = vk_device_of(b);
    struct diag quiet;

    diag_init(&quiet, "unload");
    pthread_mutex_lock(&dev->lock);
    struct vk_program **at = &dev->programs;
    while (*at && (*at)->list != list)
        at = &(*at)->next;
    struct vk_program *p = *at;
    if (p) {
        for (size_t i = 0; i < KEPT; i++)
            vk_await(dev, p->recording[i].ticket, &quiet);
        *at = p->next;
        /* Their parameters may still be on their way. */
        vk_submit_transfers(dev, &quiet);
        vk_await(dev, dev->tickets, &quiet);
        drop_program(dev, p);
    }
    pthread_mutex_unlock(&dev->lock);
}

void vk_drop_programs(struct vk_device *dev)
{
    while (dev->programs) {
        struct vk_program *p = dev->programs;
        dev->programs = p->next;
        drop_program(dev, p);
    }
    vec_free(dev->base.mem, &dev->recording.touched);
}
