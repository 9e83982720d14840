/* wgpu_record.c: a program's launches with their bind groups, made once and encoded for each run,
 * as WebGPU takes a command buffer only once.
 *
 *     [zero the fault]  { pipeline, bind group, dispatch }... */
#include <string.h>

#include "backend/webgpu/webgpu.h"

static void forget(struct wg_device *dev, struct wg_recording *r)
{
    for (size_t i = 0; i < r->launch.len; i++)
        if (r->launch.at[i].group)
            dev->wg.BindGroupRelease(r->launch.at[i].group);
    r->launch.len = 0;
}

void wg_drop_recording(struct gpu_device *g, struct gpu_recording *base)
{
    struct wg_device *dev = wg_of(g);
    struct wg_recording *r = wg_recording_of(base);

    forget(dev, r);
    vec_free(g->base.mem, &r->launch);
    wg_close_times(dev, &r->times);
}

rlx_status wg_reserve(struct gpu_device *g, struct gpu_recording *base, uint64_t launches,
                      struct diag *d)
{
    struct wg_recording *r = wg_recording_of(base);

    if (launches > r->launch.cap &&
        !vec_room_for(g->base.mem, &r->launch, launches - r->launch.len))
        return diag_no_memory(d, launches * sizeof(struct wg_launch));
    return RLX_OK;
}

rlx_status wg_prepare(struct gpu_device *g, struct gpu_recording *base,
                      const struct gpu_needs *needs, struct diag *d)
{
    struct wg_recording *r = wg_recording_of(base);

    base->commands = r;
    forget(wg_of(g), r);
    TRY(wg_reserve(g, base, needs->launches, d));
    return needs->times ? wg_make_times(wg_of(g), &r->times, needs->times / 2, d) : RLX_OK;
}

static WGPUBindGroup make_group(struct wg_device *dev, const struct wg_pipeline *p,
                                const struct gpu_dispatch *l)
{
    WGPUBindGroupEntry entry[GPU_BINDINGS + 1];
    size_t count = 0;

    for (uint32_t i = 0; i < l->spans; i++) {
        struct span s = l->span[i];
        uint64_t bytes = (s.bytes + 15) / 16 * 16, most = s.buffer->bytes - s.offset;
        entry[count++] = (WGPUBindGroupEntry){.binding = i,
                                              .buffer = s.buffer->handle,
                                              .offset = s.offset,
                                              .size = bytes < most ? bytes : most};
    }
    entry[count++] = (WGPUBindGroupEntry){.binding = l->spans,
                                          .buffer = l->place.buffer->handle,
                                          .offset = l->place.offset,
                                          .size = (p->words + 3) / 4 * 16};
    return dev->wg.DeviceCreateBindGroup(
        dev->device,
        &(WGPUBindGroupDescriptor){.layout = p->layout, .entryCount = count, .entries = entry});
}

rlx_status wg_launch_one(struct gpu_device *g, struct gpu_recording *base,
                         const struct gpu_dispatch *l, struct diag *d)
{
    struct wg_recording *r = wg_recording_of(base);
    const struct wg_pipeline *p = l->kernel->pipeline;
    struct wg_launch *out = &r->launch.at[r->launch.len++];

    (void)d;
    *out = (struct wg_launch){
        .pipeline = p->handle, .group = make_group(wg_of(g), p, l), .command = l->command};
    memcpy(out->grid, l->grid, sizeof out->grid);
    return RLX_OK;
}

/* ---- a run ---- */

void wg_encode_launch(struct wg_device *dev, WGPUComputePassEncoder pass, const struct wg_launch *l)
{
    dev->wg.ComputePassEncoderSetPipeline(pass, l->pipeline);
    dev->wg.ComputePassEncoderSetBindGroup(pass, 0, l->group, 0, NULL);
    dev->wg.ComputePassEncoderDispatchWorkgroups(pass, l->grid[0], l->grid[1], l->grid[2]);
}

static void encode_all(struct wg_device *dev, const struct wg_recording *r, WGPUCommandEncoder e)
{
    WGPUComputePassEncoder pass = dev->wg.CommandEncoderBeginComputePass(e, NULL);

    for (size_t i = 0; i < r->launch.len; i++)
        wg_encode_launch(dev, pass, &r->launch.at[i]);
    dev->wg.ComputePassEncoderEnd(pass);
    dev->wg.ComputePassEncoderRelease(pass);
}

WGPUCommandEncoder wg_encode(struct wg_device *dev, struct wg_recording *r)
{
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);

    if (r->base.faults)
        dev->wg.CommandEncoderClearBuffer(e, r->base.fault.handle, 0, GPU_FAULT_BYTES);
    if (r->base.timed)
        wg_encode_timed(dev, r, r->base.count, e);
    else
        encode_all(dev, r, e);
    return e;
}
