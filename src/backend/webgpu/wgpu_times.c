/* wgpu_times.c: a run timed by the device's clock: a pass for each step, with a time at either end.
 *
 *     [zero the fault]  { begin pass, launches of a step, end pass }...  [times to a buffer]
 *
 * Each recording has room for its own; all are read at once, when the first is asked for. */
#include "backend/webgpu/webgpu.h"

#define MOST_TIMES 4096 /* of one query set, as the standard has it */

static rlx_status add_set(struct wg_device *dev, struct wg_times *t, struct diag *d)
{
    if (!vec_room(dev->gpu.base.mem, &t->set))
        return diag_no_memory(d, sizeof(WGPUQuerySet));
    WGPUQuerySet set = dev->wg.DeviceCreateQuerySet(
        dev->device,
        &(WGPUQuerySetDescriptor){.type = WGPUQueryType_Timestamp, .count = MOST_TIMES});
    if (set)
        t->set.at[t->set.len++] = set;
    TRY(wg_check(dev, d));
    return set ? RLX_OK : diag_fail(d, RLX_ERROR_MEMORY, "no room for the times of steps");
}

rlx_status wg_make_times(struct wg_device *dev, struct wg_times *t, size_t count, struct diag *d)
{
    uint64_t bytes = (uint64_t)count * 2 * sizeof *t->tick.at;

    t->tick.len = 0;
    if (!vec_room_for(dev->gpu.base.mem, &t->tick, 2 * count))
        return diag_no_memory(d, bytes);
    t->tick.len = 2 * count;
    while (t->set.len * (MOST_TIMES / 2) < count)
        TRY(add_set(dev, t, d));
    if (t->buffer.bytes >= bytes)
        return RLX_OK;
    gpu_drop_buffer(&dev->gpu, &t->buffer);
    return gpu_make_buffer(&dev->gpu, GPU_FOR_TIMES, bytes, &t->buffer, d);
}

void wg_close_times(struct wg_device *dev, struct wg_times *t)
{
    for (size_t i = 0; i < t->set.len; i++)
        dev->wg.QuerySetRelease(t->set.at[i]);
    vec_free(dev->gpu.base.mem, &t->set);
    vec_free(dev->gpu.base.mem, &t->tick);
    gpu_drop_buffer(&dev->gpu, &t->buffer);
}

/* ---- a run ---- */

/* The launches of command i, which begin with number `next`; where those of the next one do. */
static size_t time_step(struct wg_device *dev, const struct wg_recording *r, size_t i, size_t next,
                        WGPUCommandEncoder e)
{
    uint32_t at = (uint32_t)(2 * i % MOST_TIMES);
    const WGPUPassTimestampWrites times = {.querySet = r->times.set.at[2 * i / MOST_TIMES],
                                           .beginningOfPassWriteIndex = at,
                                           .endOfPassWriteIndex = at + 1};
    WGPUComputePassEncoder pass = dev->wg.CommandEncoderBeginComputePass(
        e, &(WGPUComputePassDescriptor){.timestampWrites = &times});

    for (; next < r->launch.len && r->launch.at[next].command == i; next++)
        wg_encode_launch(dev, pass, &r->launch.at[next]);
    dev->wg.ComputePassEncoderEnd(pass);
    dev->wg.ComputePassEncoderRelease(pass);
    return next;
}

void wg_encode_timed(struct wg_device *dev, struct wg_recording *r, size_t count,
                     WGPUCommandEncoder e)
{
    size_t next = 0;

    r->times.known = false;
    for (size_t i = 0; i < count; i++)
        next = time_step(dev, r, i, next, e);
    for (size_t i = 0; i < count; i += MOST_TIMES / 2) {
        size_t left = 2 * (count - i), here = left < MOST_TIMES ? left : MOST_TIMES;
        dev->wg.CommandEncoderResolveQuerySet(e, r->times.set.at[2 * i / MOST_TIMES], 0,
                                              (uint32_t)here, r->times.buffer.handle,
                                              2 * i * sizeof(uint64_t));
    }
}

/* ---- what it left ---- */

bool wg_read_times(struct gpu_device *g, struct gpu_recording *r, size_t i, uint64_t out[2])
{
    struct wg_times *t = &wg_recording_of(r)->times;
    struct diag quiet;

    diag_init(&quiet, "times");
    if (!t->known) {
        struct span all = {&t->buffer, 0, t->tick.len * sizeof *t->tick.at};
        t->known = wg_get(g, all, t->tick.at, &quiet) == RLX_OK;
    }
    for (size_t k = 0; k < 2 && t->known; k++)
        out[k] = (uint64_t)((double)t->tick.at[2 * i + k] * wg_of(g)->tick_ns);
    return t->known;
}
