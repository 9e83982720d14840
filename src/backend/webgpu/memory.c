/* memory.c: buffers, and the host's bytes in and out, in the order of the queue.
 *
 * WebGPU moves whole words only. What begins or ends inside a word is read, changed and written
 * back. What the host reads is copied to a buffer that it can map, which is kept. */
#include <string.h>

#include "backend/webgpu/webgpu.h"

#define PART (UINT64_C(32) << 20) /* bytes of a transfer at a time */
#define LEAST_STAGING 256
#define FILL_BYTES 65536

/* ---- buffers ---- */

rlx_status wg_make_buffer(struct wg_device *dev, WGPUBufferUsage use, uint64_t bytes,
                          struct buffer *out, struct diag *d)
{
    uint64_t room = bytes ? (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN : GPU_ALIGN;

    if (room < bytes || room > dev->max_buffer)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "a buffer of %llu bytes is more than %s has in one piece (%llu); "
                         "RLX_GPU_MAX_BINDING may ask for more",
                         (unsigned long long)bytes, dev->name, (unsigned long long)dev->max_buffer);
    if (dev->options.max_memory && dev->held + room > dev->options.max_memory)
        return diag_fail(d, RLX_ERROR_MEMORY, "%llu bytes are too many: %llu of %llu are taken",
                         (unsigned long long)room, (unsigned long long)dev->held,
                         (unsigned long long)dev->options.max_memory);
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
    pthread_mutex_unlock(&dev->lock);
    wg_await(dev, ticket, &quiet);
    wg_drop_buffer(dev, buf);
    mem_free(b->mem, buf, sizeof *buf);
}

void wg_close_memory(struct wg_device *dev)
{
    if (dev->staging)
        dev->wg.BufferRelease(dev->staging);
    dev->staging = NULL;
}

static rlx_status check_span(struct wg_device *dev, struct span s, struct diag *d)
{
    if (s.offset > s.buffer->asked || s.bytes > s.buffer->asked - s.offset)
        return diag_fail(d, RLX_ERROR_INTERNAL, "bytes %llu+%llu of a buffer of %llu",
                         (unsigned long long)s.offset, (unsigned long long)s.bytes,
                         (unsigned long long)s.buffer->asked);
    return wg_check(dev, d);
}

/* ---- reading ---- */

static rlx_status make_staging(struct wg_device *dev, uint64_t bytes, struct diag *d)
{
    uint64_t room = LEAST_STAGING;

    if (dev->staging_bytes >= bytes)
        return RLX_OK;
    while (room < bytes)
        room *= 2;
    wg_close_memory(dev);
    dev->staging_bytes = 0;
    dev->staging = dev->wg.DeviceCreateBuffer(
        dev->device, &(WGPUBufferDescriptor){
                         .usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, .size = room});
    TRY(wg_check(dev, d));
    if (!dev->staging)
        return diag_fail(d, RLX_ERROR_MEMORY, "no buffer to read %llu bytes",
                         (unsigned long long)bytes);
    dev->staging_bytes = room;
    return RLX_OK;
}

struct mapping {
    bool came, good;
    char message[200];
};

static void hear_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void *mapping,
                        void *unused)
{
    struct mapping *m = mapping;

    (void)unused;
    m->good = status == WGPUMapAsyncStatus_Success;
    wg_copy_text(m->message, sizeof m->message, message);
    m->came = true;
}

/* Whole words, into the staging buffer and out of it. */
static rlx_status get_words(struct wg_device *dev, struct span src, uint64_t skip, void *dst,
                            uint64_t bytes, struct diag *d)
{
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);
    struct mapping m = {0};

    dev->wg.CommandEncoderCopyBufferToBuffer(e, src.buffer->handle, src.offset, dev->staging, 0,
                                             src.bytes);
    TRY(wg_queue(dev, e, d));
    dev->wg.BufferMapAsync(dev->staging, WGPUMapMode_Read, 0, src.bytes,
                           (WGPUBufferMapCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                       .callback = hear_mapped,
                                                       .userdata1 = &m});
    while (!m.came)
        wg_turn(dev, true);
    if (!m.good) {
        TRY(wg_check(dev, d));
        return diag_fail(d, RLX_ERROR_INTERNAL, "WebGPU cannot map what it read: %s", m.message);
    }
    const uint8_t *from = dev->wg.BufferGetConstMappedRange(dev->staging, 0, src.bytes);
    if (from)
        memcpy(dst, from + skip, (size_t)bytes);
    dev->wg.BufferUnmap(dev->staging);
    return from ? RLX_OK : diag_fail(d, RLX_ERROR_INTERNAL, "WebGPU maps nothing");
}

rlx_status wg_get(struct wg_device *dev, struct span src, void *dst, struct diag *d)
{
    uint8_t *to = dst;

    TRY(wg_check(dev, d));
    for (uint64_t at = 0; at < src.bytes;) {
        uint64_t n = src.bytes - at < PART ? src.bytes - at : PART;
        uint64_t from = src.offset + at, skip = from % 4;
        struct span words = {src.buffer, from - skip, (skip + n + 3) / 4 * 4};
        TRY(make_staging(dev, words.bytes, d));
        TRY(get_words(dev, words, skip, to + at, n, d));
        at += n;
    }
    return RLX_OK;
}

rlx_status wg_read(struct backend *b, struct span src, void *dst, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);

    TRY(check_span(dev, src, d));
    pthread_mutex_lock(&dev->lock);
    rlx_status s = wg_get(dev, src, dst, d);
    pthread_mutex_unlock(&dev->lock);
    return s;
}

/* ---- writing ---- */

/* Some bytes of one word. */
static rlx_status put_in_word(struct wg_device *dev, struct span dst, const uint8_t *src,
                              struct diag *d)
{
    uint8_t word[4];
    uint64_t skip = dst.offset % 4;

    TRY(wg_get(dev, (struct span){dst.buffer, dst.offset - skip, 4}, word, d));
    memcpy(word + skip, src, (size_t)dst.bytes);
    dev->wg.QueueWriteBuffer(dev->queue, dst.buffer->handle, dst.offset - skip, word, 4);
    return RLX_OK;
}

static rlx_status put(struct wg_device *dev, struct span dst, const void *src, struct diag *d)
{
    const uint8_t *from = src;
    uint64_t head = (4 - dst.offset % 4) % 4;

    TRY(wg_check(dev, d));
    if (head && dst.bytes) {
        head = head < dst.bytes ? head : dst.bytes;
        TRY(put_in_word(dev, (struct span){dst.buffer, dst.offset, head}, from, d));
        dst.offset += head;
        dst.bytes -= head;
        from += head;
    }
    for (uint64_t n; dst.bytes >= 4; dst.offset += n, dst.bytes -= n, from += n) {
        n = dst.bytes / 4 * 4 < PART ? dst.bytes / 4 * 4 : PART;
        dev->wg.QueueWriteBuffer(dev->queue, dst.buffer->handle, dst.offset, from, (size_t)n);
    }
    if (dst.bytes)
        TRY(put_in_word(dev, dst, from, d));
    return wg_check(dev, d);
}

rlx_status wg_write(struct backend *b, struct span dst, const void *src, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);

    TRY(check_span(dev, dst, d));
    pthread_mutex_lock(&dev->lock);
    rlx_status s = put(dev, dst, src, d);
    pthread_mutex_unlock(&dev->lock);
    return s;
}

/* ---- copies and fills ---- */

/* A copy may not have one buffer on both sides: such goes by way of another. */
static rlx_status copy_words(struct wg_device *dev, struct span dst, struct span src,
                             struct diag *d)
{
    struct buffer between = {0};
    bool same = dst.buffer == src.buffer;

    if (same)
        TRY(wg_make_buffer(dev, WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst, src.bytes,
                           &between, d));
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);
    if (same)
        dev->wg.CommandEncoderCopyBufferToBuffer(e, src.buffer->handle, src.offset, between.handle,
                                                 0, src.bytes);
    dev->wg.CommandEncoderCopyBufferToBuffer(e, same ? between.handle : src.buffer->handle,
                                             same ? 0 : src.offset, dst.buffer->handle, dst.offset,
                                             src.bytes);
    rlx_status s = wg_queue(dev, e, d);
    if (s == RLX_OK && same)
        s = wg_await(dev, dev->tickets, d);
    if (same)
        wg_drop_buffer(dev, &between);
    return s;
}

static rlx_status copy_bytes(struct wg_device *dev, struct span dst, struct span src,
                             struct diag *d)
{
    uint8_t *bytes = mem_alloc(dev->base.mem, (size_t)src.bytes);

    if (!bytes)
        return diag_no_memory(d, (size_t)src.bytes);
    rlx_status s = wg_get(dev, src, bytes, d);
    if (s == RLX_OK)
        s = put(dev, dst, bytes, d);
    mem_free(dev->base.mem, bytes, (size_t)src.bytes);
    return s;
}

rlx_status wg_copy(struct backend *b, struct span dst, struct span src, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);
    bool words = dst.offset % 4 == 0 && src.offset % 4 == 0 && src.bytes % 4 == 0;

    TRY(check_span(dev, src, d));
    TRY(check_span(dev, dst, d));
    if (src.bytes == 0)
        return RLX_OK;
    pthread_mutex_lock(&dev->lock);
    rlx_status s = words ? copy_words(dev, dst, src, d) : copy_bytes(dev, dst, src, d);
    pthread_mutex_unlock(&dev->lock);
    return s;
}

static rlx_status fill_bytes(struct wg_device *dev, struct span dst, uint8_t byte, struct diag *d)
{
    uint8_t bytes[FILL_BYTES];

    memset(bytes, byte, sizeof bytes);
    for (uint64_t n; dst.bytes; dst.offset += n, dst.bytes -= n) {
        n = dst.bytes < sizeof bytes ? dst.bytes : sizeof bytes;
        TRY(put(dev, (struct span){dst.buffer, dst.offset, n}, bytes, d));
    }
    return RLX_OK;
}

static rlx_status clear(struct wg_device *dev, struct span dst, struct diag *d)
{
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);

    dev->wg.CommandEncoderClearBuffer(e, dst.buffer->handle, dst.offset, dst.bytes);
    return wg_queue(dev, e, d);
}

rlx_status wg_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);
    bool clears = byte == 0 && dst.offset % 4 == 0 && dst.bytes % 4 == 0 && dst.bytes;

    TRY(check_span(dev, dst, d));
    pthread_mutex_lock(&dev->lock);
    rlx_status s = clears ? clear(dev, dst, d) : fill_bytes(dev, dst, byte, d);
    pthread_mutex_unlock(&dev->lock);
    return s;
}
