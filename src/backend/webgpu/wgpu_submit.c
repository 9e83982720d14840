/* wgpu_submit.c: the queue, and what backend/gpu asks of it. A ticket is a number; the
 * queue calls back when it is done. */
#include "backend/webgpu/webgpu.h"

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

/* ---- for programs ---- */

static rlx_status check(struct backend *b, struct diag *d)
{
    return wg_check(wg_device_of(b), d);
}

static bool is_done(struct backend *b, uint64_t ticket)
{
    return ticket <= wg_device_of(b)->done;
}

static rlx_status await(struct backend *b, uint64_t ticket, struct diag *d)
{
    return wg_await(wg_device_of(b), ticket, d);
}

static void settle(struct backend *b)
{
    struct diag quiet;

    diag_init(&quiet, "settle");
    wg_await(wg_device_of(b), wg_device_of(b)->tickets, &quiet);
}

const struct gpu_queue wg_programs_queue = {
    .recording_bytes = sizeof(struct wg_recording),
    .reserve = wg_reserve,
    .record = wg_record,
    .run = wg_run,
    .read_fault = wg_read_fault,
    .read_times = wg_read_times,
    .drop = wg_drop_recording,
    .check = check,
    .is_done = is_done,
    .await = await,
    .settle = settle,
};

/* ---- the table's ---- */

rlx_status wg_submit(struct backend *b, const struct command *list, size_t count,
                     const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                     struct diag *d)
{
    return gpu_submit(&wg_device_of(b)->programs, list, count, hooks, report, ticket, d);
}

rlx_status wg_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);

    if (dev->done < ticket)
        wg_turn(dev, false);
    TRY(wg_check(dev, d));
    *done = ticket <= dev->done;
    return *done ? gpu_take_reports(&dev->programs, d) : RLX_OK;
}

rlx_status wg_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);

    TRY(wg_await(dev, ticket, d));
    return gpu_take_reports(&dev->programs, d);
}

void wg_unload(struct backend *b, const struct command *list)
{
    gpu_unload(&wg_device_of(b)->programs, list);
}
