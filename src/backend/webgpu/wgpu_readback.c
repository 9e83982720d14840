/* wgpu_readback.c: what the host reads: copied to a buffer that it can map, in the order of the
 * queue.
 *
 *     read    src => (copy) => staging, mapped => bytes           waits
 *     fetch   several src => (copies) => staging, being mapped    returns at once
 *             ... and a read of any of them takes it from there
 *
 * There are two staging buffers, which stay: one of fixed size for a few bytes, and one that grows
 * and never shrinks. What was fetched stays good until anything changes on the device. */
#include <string.h>

#include "backend/webgpu/webgpu.h"

#define LEAST 256                 /* bytes of a staging buffer */
#define MOST (UINT64_C(32) << 20) /* read or fetched at a time */

/* ---- staging ---- */

uint64_t wg_staging_bytes(uint64_t need)
{
    uint64_t room = LEAST;

    while (room < need)
        room *= 2;
    return room;
}

static uint64_t whole_words(uint64_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

uint64_t wg_staging_add(uint64_t *total, uint64_t bytes)
{
    uint64_t start = whole_words(*total);

    *total = start + bytes;
    return start;
}

static uintptr_t state_of(const struct wg_staging *s)
{
    return atomic_load(&s->stage) % 4;
}

static void on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void *staging,
                      void *number)
{
    struct wg_staging *s = staging;
    uintptr_t asked = (uintptr_t)number * 4 + WG_MAPPING;
    bool good = status == WGPUMapAsyncStatus_Success;

    (void)message;
    atomic_compare_exchange_strong(&s->stage, &asked,
                                   (uintptr_t)number * 4 + (good ? WG_MAPPED : WG_MAP_FAILED));
}

/* The host is done with it, or does not want it any more. A mapping under way is waited for: given
 * up while another thread polled, a buffer of wgpu-native was seen to stay mapped for ever. */
static void unmap(struct wg_device *dev, struct wg_staging *s)
{
    uintptr_t number = atomic_load(&s->stage) / 4;

    while (state_of(s) == WG_MAPPING && !dev->gpu.lost)
        wg_turn(dev, true);
    uintptr_t state = atomic_exchange(&s->stage, (number + 1) * 4 + WG_UNMAPPED) % 4;

    s->at = NULL;
    if (state == WG_MAPPED)
        dev->wg.BufferUnmap(s->handle);
}

static void drop(struct wg_device *dev, struct wg_staging *s)
{
    if (!s->handle)
        return;
    unmap(dev, s);
    dev->wg.BufferRelease(s->handle);
    s->handle = NULL;
    s->bytes = 0;
}

void wg_close_readback(struct wg_device *dev)
{
    drop(dev, &dev->tiny);
    drop(dev, &dev->staging);
    vec_free(dev->gpu.base.mem, &dev->fetched);
}

/* Free, and of at least so many bytes. */
static rlx_status take(struct wg_device *dev, struct wg_staging *s, uint64_t bytes, struct diag *d)
{
    uint64_t room = wg_staging_bytes(bytes);

    unmap(dev, s);
    if (s->bytes >= bytes)
        return RLX_OK;
    drop(dev, s);
    s->handle = dev->wg.DeviceCreateBuffer(
        dev->device, &(WGPUBufferDescriptor){
                         .usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, .size = room});
    TRY(wg_check(dev, d));
    if (!s->handle)
        return diag_fail(d, RLX_ERROR_MEMORY, "no buffer to read %llu bytes",
                         (unsigned long long)bytes);
    s->bytes = room;
    return RLX_OK;
}

/* Along with the commands that fill it, so that the host need not come back for that. */
static rlx_status queue_and_map(struct wg_device *dev, struct wg_staging *s, uint64_t bytes,
                                WGPUCommandEncoder e, struct diag *d)
{
    uintptr_t number = atomic_load(&s->stage) / 4;

    TRY(wg_queue(dev, e, d));
    atomic_store(&s->stage, number * 4 + WG_MAPPING);
    s->mapped = whole_words(bytes);
    dev->wg.BufferMapAsync(s->handle, WGPUMapMode_Read, 0, (size_t)s->mapped,
                           (WGPUBufferMapCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                       .callback = on_mapped,
                                                       .userdata1 = s,
                                                       .userdata2 = (void *)number});
    return RLX_OK;
}

/* Bytes of the staging buffer, once they are there. */
static rlx_status take_bytes(struct wg_device *dev, struct wg_staging *s, uint64_t from, void *dst,
                             uint64_t bytes, struct diag *d)
{
    while (state_of(s) == WG_MAPPING && !dev->gpu.lost)
        wg_turn(dev, true);
    TRY(wg_check(dev, d));
    if (state_of(s) != WG_MAPPED)
        return diag_fail(d, RLX_ERROR_INTERNAL, "WebGPU cannot map what it read");
    if (!s->at)
        s->at = dev->wg.BufferGetConstMappedRange(s->handle, 0, (size_t)s->mapped);
    if (!s->at)
        return diag_fail(d, RLX_ERROR_INTERNAL, "WebGPU maps nothing");
    memcpy(dst, s->at + from, (size_t)bytes);
    return RLX_OK;
}

/* A span that begins with the word in which it does. */
static struct span from_word(struct span s)
{
    return (struct span){s.buffer, s.offset / 4 * 4, s.bytes + s.offset % 4};
}

static void copy_to(struct wg_device *dev, WGPUCommandEncoder e, const struct wg_staging *s,
                    uint64_t start, struct span src)
{
    dev->wg.CommandEncoderCopyBufferToBuffer(e, src.buffer->handle, src.offset, s->handle, start,
                                             whole_words(src.bytes));
}

/* ---- reading ---- */

static rlx_status get_part(struct wg_device *dev, struct span src, void *dst, struct diag *d)
{
    struct span whole = from_word(src);
    struct wg_staging *s = whole.bytes <= LEAST ? &dev->tiny : &dev->staging;

    if (s == &dev->staging)
        wg_forget_fetched(&dev->gpu);
    TRY(take(dev, s, whole.bytes, d));
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);
    copy_to(dev, e, s, 0, whole);
    TRY(queue_and_map(dev, s, whole.bytes, e, d));
    rlx_status status = take_bytes(dev, s, src.offset - whole.offset, dst, src.bytes, d);
    unmap(dev, s);
    return status;
}

/* Where it lies among what was fetched; false: it does not. */
static bool find_fetched(const struct wg_device *dev, struct span src, uint64_t *at)
{
    for (size_t i = 0; i < dev->fetched.len; i++) {
        const struct wg_fetched *f = &dev->fetched.at[i];
        if (f->span.buffer == src.buffer && f->span.offset <= src.offset &&
            src.offset + src.bytes <= f->span.offset + f->span.bytes) {
            *at = f->start + (src.offset - f->span.offset);
            return true;
        }
    }
    return false;
}

rlx_status wg_get(struct gpu_device *g, struct span src, void *dst, struct diag *d)
{
    struct wg_device *dev = wg_of(g);
    uint8_t *to = dst;
    uint64_t at;

    TRY(wg_check(dev, d));
    if (src.bytes && find_fetched(dev, src, &at))
        return take_bytes(dev, &dev->staging, at, dst, src.bytes, d);
    for (uint64_t n; src.bytes; src.offset += n, src.bytes -= n, to += n) {
        n = MOST - src.offset % 4; /* whole words */
        n = src.bytes < n ? src.bytes : n;
        TRY(get_part(dev, (struct span){src.buffer, src.offset, n}, to, d));
    }
    return RLX_OK;
}

/* ---- fetching ---- */

/* The buffer stays mapped until it is wanted again: unmapping might have to wait for a run. */
void wg_forget_fetched(struct gpu_device *g)
{
    wg_of(g)->fetched.len = 0;
}

/* As many as fit, one after the other; the bytes of all. */
static uint64_t choose(struct wg_device *dev, const struct span *src, size_t count)
{
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        struct span s = from_word(src[i]);
        if (src[i].bytes == 0 || s.bytes > MOST || total > MOST - s.bytes)
            continue;
        uint64_t start = wg_staging_add(&total, s.bytes);
        dev->fetched.at[dev->fetched.len++] = (struct wg_fetched){s, start};
    }
    return total;
}

rlx_status wg_fetch(struct gpu_device *g, const struct span *src, size_t count, struct diag *d)
{
    struct wg_device *dev = wg_of(g);

    if (!vec_room_for(dev->gpu.base.mem, &dev->fetched, count))
        return diag_no_memory(d, count * sizeof(struct wg_fetched));
    uint64_t total = choose(dev, src, count);
    if (total == 0)
        return RLX_OK;
    TRY(take(dev, &dev->staging, total, d));
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);
    for (size_t i = 0; i < dev->fetched.len; i++)
        copy_to(dev, e, &dev->staging, dev->fetched.at[i].start, dev->fetched.at[i].span);
    return queue_and_map(dev, &dev->staging, total, e, d);
}
