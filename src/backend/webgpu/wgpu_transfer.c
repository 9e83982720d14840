/* wgpu_transfer.c: the host's bytes to the device, copies within it and fills, in the order of the
 * queue; wgpu_readback.c has reads.
 *
 * WebGPU moves whole words only. What begins or ends inside a word is read, changed and written
 * back. Nor does it copy from a buffer to itself: that goes by way of another one, which is kept.
 */
#include <string.h>

#include "backend/webgpu/webgpu.h"

#define PART (UINT64_C(32) << 20) /* bytes moved at a time */
#define BY_HOST 16384             /* the same where the host moves them */
#define FILL_BYTES 65536

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct span part(struct span s, uint64_t from, uint64_t bytes)
{
    return (struct span){s.buffer, s.offset + from, bytes};
}

/* A span as the bytes before its first whole word, its whole words, and those after them. */
struct pieces {
    uint64_t head, words, tail;
};

static struct pieces pieces_of(struct span s)
{
    uint64_t head = lesser((4 - s.offset % 4) % 4, s.bytes), words = (s.bytes - head) / 4 * 4;

    return (struct pieces){head, words, s.bytes - head - words};
}

/* ---- writing ---- */

/* Some bytes of one word. */
static rlx_status put_in_word(struct wg_device *dev, struct span dst, const uint8_t *src,
                              struct diag *d)
{
    uint8_t word[4];
    uint64_t skip = dst.offset % 4;

    if (dst.bytes == 0)
        return RLX_OK;
    TRY(wg_get(&dev->gpu, (struct span){dst.buffer, dst.offset - skip, 4}, word, d));
    memcpy(word + skip, src, (size_t)dst.bytes);
    dev->wg.QueueWriteBuffer(dev->queue, dst.buffer->handle, dst.offset - skip, word, 4);
    return RLX_OK;
}

static rlx_status put(struct gpu_device *g, struct span dst, const void *src, struct diag *d)
{
    struct wg_device *dev = wg_of(g);
    const uint8_t *from = src;
    struct pieces p = pieces_of(dst);
    uint64_t end = p.head + p.words;

    wg_forget_fetched(g);
    TRY(wg_check(dev, d));
    TRY(put_in_word(dev, part(dst, 0, p.head), from, d));
    for (uint64_t at = p.head, n; at < end; at += n) {
        n = lesser(end - at, PART);
        dev->wg.QueueWriteBuffer(dev->queue, dst.buffer->handle, dst.offset + at, from + at,
                                 (size_t)n);
    }
    TRY(put_in_word(dev, part(dst, end, p.tail), from + end, d));
    return wg_check(dev, d);
}

/* ---- copies ---- */

/* Pieces of a move within a buffer come in the direction in which nothing is overwritten that is
 * still to be read. */
static uint64_t next_piece(struct span dst, struct span src, uint64_t done, uint64_t n)
{
    bool up = dst.buffer == src.buffer && dst.offset > src.offset;

    return up ? src.bytes - done - n : done;
}

/* The old one stays alive for as long as the queue needs it. */
static rlx_status make_between(struct wg_device *dev, uint64_t bytes, struct diag *d)
{
    uint64_t room = wg_staging_bytes(lesser(bytes, PART));

    if (dev->between_bytes >= room)
        return RLX_OK;
    wg_close_transfers(dev);
    dev->between = dev->wg.DeviceCreateBuffer(
        dev->device, &(WGPUBufferDescriptor){
                         .usage = WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst, .size = room});
    TRY(wg_check(dev, d));
    if (!dev->between)
        return diag_fail(d, RLX_ERROR_MEMORY, "no buffer to copy %llu bytes through",
                         (unsigned long long)bytes);
    dev->between_bytes = room;
    return RLX_OK;
}

void wg_close_transfers(struct wg_device *dev)
{
    if (dev->between)
        dev->wg.BufferRelease(dev->between);
    dev->between = NULL;
    dev->between_bytes = 0;
}

static void copy_by(struct wg_device *dev, WGPUCommandEncoder e, struct span dst, struct span src)
{
    struct wg_functions *wg = &dev->wg;

    for (uint64_t done = 0, n; done < src.bytes; done += n) {
        n = lesser(src.bytes - done, PART);
        uint64_t at = next_piece(dst, src, done, n);
        wg->CommandEncoderCopyBufferToBuffer(e, src.buffer->handle, src.offset + at, dev->between,
                                             0, n);
        wg->CommandEncoderCopyBufferToBuffer(e, dev->between, 0, dst.buffer->handle,
                                             dst.offset + at, n);
    }
}

static rlx_status copy_words(struct wg_device *dev, struct span dst, struct span src,
                             struct diag *d)
{
    bool same = dst.buffer == src.buffer;

    if (src.bytes == 0)
        return RLX_OK;
    if (same)
        TRY(make_between(dev, src.bytes, d));
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);
    if (same)
        copy_by(dev, e, dst, src);
    else
        dev->wg.CommandEncoderCopyBufferToBuffer(e, src.buffer->handle, src.offset,
                                                 dst.buffer->handle, dst.offset, src.bytes);
    return wg_queue(dev, e, d);
}

/* Both sides begin at the same place of a word: all but their ends is copied as words. */
static rlx_status copy_ends(struct wg_device *dev, struct span dst, struct span src, struct diag *d)
{
    struct pieces p = pieces_of(src);
    uint64_t end = p.head + p.words;
    uint8_t head[4], tail[4];

    TRY(wg_get(&dev->gpu, part(src, 0, p.head), head, d));
    TRY(wg_get(&dev->gpu, part(src, end, p.tail), tail, d));
    TRY(copy_words(dev, part(dst, p.head, p.words), part(src, p.head, p.words), d));
    TRY(put_in_word(dev, part(dst, 0, p.head), head, d));
    TRY(put_in_word(dev, part(dst, end, p.tail), tail, d));
    return wg_check(dev, d);
}

static rlx_status copy_bytes(struct wg_device *dev, struct span dst, struct span src,
                             struct diag *d)
{
    uint8_t bytes[BY_HOST];

    for (uint64_t done = 0, n; done < src.bytes; done += n) {
        n = lesser(src.bytes - done, sizeof bytes);
        uint64_t at = next_piece(dst, src, done, n);
        TRY(wg_get(&dev->gpu, part(src, at, n), bytes, d));
        TRY(put(&dev->gpu, part(dst, at, n), bytes, d));
    }
    return RLX_OK;
}

static rlx_status move(struct gpu_device *g, struct span dst, struct span src, struct diag *d)
{
    bool alike = dst.offset % 4 == src.offset % 4;

    return alike ? copy_ends(wg_of(g), dst, src, d) : copy_bytes(wg_of(g), dst, src, d);
}

/* ---- fills ---- */

static rlx_status clear_words(struct wg_device *dev, struct span dst, struct diag *d)
{
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);

    dev->wg.CommandEncoderClearBuffer(e, dst.buffer->handle, dst.offset, dst.bytes);
    return wg_queue(dev, e, d);
}

static rlx_status fill_words(struct wg_device *dev, struct span dst, uint8_t byte, struct diag *d)
{
    uint8_t bytes[FILL_BYTES];

    if (dst.bytes == 0)
        return RLX_OK;
    if (byte == 0)
        return clear_words(dev, dst, d);
    memset(bytes, byte, (size_t)lesser(dst.bytes, sizeof bytes));
    for (uint64_t at = 0, n; at < dst.bytes; at += n) {
        n = lesser(dst.bytes - at, sizeof bytes);
        dev->wg.QueueWriteBuffer(dev->queue, dst.buffer->handle, dst.offset + at, bytes, (size_t)n);
    }
    return RLX_OK;
}

static rlx_status fill(struct gpu_device *g, struct span dst, uint8_t byte, struct diag *d)
{
    const uint8_t few[4] = {byte, byte, byte, byte};
    struct wg_device *dev = wg_of(g);
    struct pieces p = pieces_of(dst);

    TRY(put_in_word(dev, part(dst, 0, p.head), few, d));
    TRY(fill_words(dev, part(dst, p.head, p.words), byte, d));
    TRY(put_in_word(dev, part(dst, p.head + p.words, p.tail), few, d));
    return wg_check(dev, d);
}

const struct gpu_transfers wg_transfers = {.put = put,
                                           .get = wg_get,
                                           .move = move,
                                           .fill = fill,
                                           .stale = wg_forget_fetched,
                                           .fetch = wg_fetch};
