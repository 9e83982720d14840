/* wgpu_memory.c: buffers of a device's memory. */
#include "backend/webgpu/webgpu.h"

rlx_status wg_make_buffer(struct gpu_device *g, enum gpu_use use, struct buffer *buf,
                          struct diag *d)
{
    static const WGPUBufferUsage usage[] = {
        [GPU_FOR_WORK] =
            WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
        [GPU_FOR_WORDS] = WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst,
        [GPU_FOR_TIMES] = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc};
    struct wg_device *dev = wg_of(g);

    buf->handle = dev->wg.DeviceCreateBuffer(
        dev->device, &(WGPUBufferDescriptor){.usage = usage[use], .size = buf->bytes});
    TRY(wg_check(dev, d));
    return buf->handle ? RLX_OK : gpu_no_memory(g, buf->bytes, 0, d);
}

/* Bind groups hold on to it; its memory goes when the queue is done with it. */
void wg_drop_buffer(struct gpu_device *g, struct buffer *buf)
{
    struct wg_device *dev = wg_of(g);

    if (!buf->handle)
        return;
    dev->wg.BufferDestroy(buf->handle);
    dev->wg.BufferRelease(buf->handle);
}
