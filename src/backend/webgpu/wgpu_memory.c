/* wgpu_memory.c: buffers of a device's memory. */
#include "backend/webgpu/webgpu.h"

rlx_status wg_make_buffer(struct wg_device *dev, WGPUBufferUsage use, uint64_t bytes,
                          struct buffer *out, struct diag *d)
{
    uint64_t room = bytes ? (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN : GPU_ALIGN;

    if (room < bytes || room > dev->max_buffer)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "a buffer of %llu bytes is more than %s has in one piece (%llu)",
                         (unsigned long long)bytes, dev->name, (unsigned long long)dev->max_buffer);
    if (dev->options.max_memory && dev->held + room > dev->options.max_memory)
        return diag_fail(d, RLX_ERROR_MEMORY,
                         "%s has no %llu bytes of memory: %llu are held by rlx, %llu are free",
                         dev->name, (unsigned long long)room, (unsigned long long)dev->held,
                         (unsigned long long)(dev->options.max_memory - dev->held));
    out->handle = dev->wg.DeviceCreateBuffer(dev->device,
                                             &(WGPUBufferDescriptor){.usage = use, .size = room});
    out->bytes = room;
    out->asked = bytes;
    dev->held += room;
    rlx_status s = wg_check(dev, d);
    if (s == RLX_OK && !out->handle)
        s = diag_fail(d, RLX_ERROR_MEMORY, "no buffer of %llu bytes", (unsigned long long)bytes);
    if (s != RLX_OK)
        wg_drop_buffer(dev, out);
    return s;
}

void wg_drop_buffer(struct wg_device *dev, struct buffer *buf)
{
    if (buf->handle) {
        /* Bind groups hold on to it; its memory goes when the queue is done with it. */
        dev->wg.BufferDestroy(buf->handle);
        dev->wg.BufferRelease(buf->handle);
    }
    dev->held -= buf->bytes;
    *buf = (struct buffer){0};
}

rlx_status wg_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d)
{
    struct buffer *buf = mem_alloc(b->mem, sizeof *buf);

    if (!buf)
        return diag_no_memory(d, sizeof *buf);
    rlx_status s = wg_make_buffer(wg_device_of(b), WG_FOR_WORK, bytes, buf, d);
    if (s != RLX_OK) {
        mem_free(b->mem, buf, sizeof *buf);
        return s;
    }
    *out = buf; /* the API has zeroed it */
    return RLX_OK;
}

void wg_release(struct backend *b, struct buffer *buf)
{
    struct wg_device *dev = wg_device_of(b);
    struct diag quiet;

    if (!buf)
        return;
    diag_init(&quiet, "release");
    pthread_mutex_lock(&dev->lock);
    uint64_t ticket = dev->tickets;
    dev->programs.released++;
    wg_forget_fetched(dev);
    pthread_mutex_unlock(&dev->lock);
    wg_await(dev, ticket, &quiet);
    wg_drop_buffer(dev, buf);
    mem_free(b->mem, buf, sizeof *buf);
}

rlx_status wg_check_span(struct wg_device *dev, struct span s, struct diag *d)
{
    if (s.offset > s.buffer->asked || s.bytes > s.buffer->asked - s.offset)
        return diag_fail(d, RLX_ERROR_INTERNAL, "bytes %llu+%llu of a buffer of %llu",
                         (unsigned long long)s.offset, (unsigned long long)s.bytes,
                         (unsigned long long)s.buffer->asked);
    return wg_check(dev, d);
}
