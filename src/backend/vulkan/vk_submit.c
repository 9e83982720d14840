/* vk_submit.c: the queue, and what backend/gpu asks of it.
 *
 * The value of a timeline semaphore counts what is done, so a ticket is a number to wait for. */
#include <string.h>
#include <time.h>

#include "backend/vulkan/vulkan.h"

#define SPIN_NS 50000 /* before a wait puts the thread to sleep */

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

/* ---- for programs ---- */

/* What the program uses is busy until its ticket is done; its uploads go before it. */
static rlx_status run(struct backend *b, struct gpu_recording *base, const struct gpu_piece *p,
                      struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    struct vk_recording *r = vk_recording_of(base);
    VkCommandBuffer both[VK_AT_ONCE];
    uint32_t n = 0;

    TRY(vk_end_transfers(dev, &both[0], d));
    n += both[0] != VK_NULL_HANDLE;
    both[n++] = r->commands;
    TRY(vk_queue(dev, both, n, d));
    r->base.ticket = dev->tickets;
    for (uint32_t i = 0; i < r->touches && r->touches <= VK_TOUCHED; i++)
        r->touched[i]->used = r->base.ticket;
    for (size_t i = 0; i < p->count && r->touches > VK_TOUCHED; i++)
        for (uint32_t k = 0; k < p->list[i].operand_count; k++)
            if (p->list[i].operand[k].buffer)
                p->list[i].operand[k].buffer->used = r->base.ticket;
    return RLX_OK;
}

static rlx_status check(struct backend *b, struct diag *d)
{
    return vk_check(vk_device_of(b), d);
}

static bool is_done(struct backend *b, uint64_t ticket)
{
    return vk_is_done(vk_device_of(b), ticket);
}

static rlx_status await(struct backend *b, uint64_t ticket, struct diag *d)
{
    return vk_await(vk_device_of(b), ticket, d);
}

/* Transfers too: the parameters of a recording may still be on their way. */
static void settle(struct backend *b)
{
    struct vk_device *dev = vk_device_of(b);
    struct diag quiet;

    diag_init(&quiet, "settle");
    vk_submit_transfers(dev, &quiet);
    vk_await(dev, dev->tickets, &quiet);
}

const struct gpu_queue vk_programs_queue = {
    .recording_bytes = sizeof(struct vk_recording),
    .record = vk_record,
    .run = run,
    .read_fault = vk_read_fault,
    .read_times = vk_read_times,
    .drop = vk_drop_recording,
    .check = check,
    .is_done = is_done,
    .await = await,
    .settle = settle,
};

/* ---- the table's ---- */

rlx_status vk_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d)
{
    return gpu_submit(&vk_device_of(b)->programs, list, count, hooks, report, ticket, d);
}

static rlx_status finish(struct vk_device *dev, struct diag *d)
{
    TRY(gpu_take_reports(&dev->programs, d));
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

void vk_unload(struct backend *b, const struct command *list)
{
    gpu_unload(&vk_device_of(b)->programs, list);
}
