/* wgpu_submit.c: the queue, which calls back when a ticket is done. */
#include "backend/webgpu/webgpu.h"

static void on_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void *user,
                    void *ticket)
{
    struct wg_device *dev = user;

    if (status != WGPUQueueWorkDoneStatus_Success)
        wg_note_error(dev, WGPUErrorType_Internal, message);
    gpu_note_done(&dev->gpu, (uintptr_t)ticket);
}

static rlx_status hand_over(struct wg_device *dev, WGPUCommandEncoder encoder, uint64_t ticket,
                            struct diag *d)
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
    dev->wg.QueueOnSubmittedWorkDone(
        dev->queue, (WGPUQueueWorkDoneCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                    .callback = on_done,
                                                    .userdata1 = dev,
                                                    .userdata2 = (void *)(uintptr_t)ticket});
    return RLX_OK;
}

rlx_status wg_queue(struct wg_device *dev, WGPUCommandEncoder encoder, struct diag *d)
{
    TRY(hand_over(dev, encoder, dev->gpu.tickets + 1, d));
    dev->gpu.tickets++;
    return RLX_OK;
}

rlx_status wg_submit(struct gpu_device *g, void *const *commands, uint32_t count, uint64_t ticket,
                     struct diag *d)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(hand_over(wg_of(g), wg_encode(wg_of(g), commands[i]), ticket + i, d));
    return RLX_OK;
}

/* Callbacks have said so, if any came. */
uint64_t wg_done(struct gpu_device *g)
{
    return g->done;
}

void wg_look(struct gpu_device *g)
{
    wg_turn(wg_of(g), false);
}

rlx_status wg_wait(struct gpu_device *g, uint64_t ticket, uint64_t ns, struct diag *d)
{
    (void)ns, (void)d;
    while (g->done < ticket && !g->lost)
        wg_turn(wg_of(g), true);
    return RLX_OK;
}
