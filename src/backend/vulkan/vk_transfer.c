/* vk_transfer.c: the host's bytes to the device and back, and copies within the device.
 *
 * Everything keeps the order in which it was asked for, along with the programs that run. Where the
 * host sees a buffer and nothing is pending on it, the host does the work at once; else it becomes
 * a command in a batch, which is submitted before the next program, or when somebody waits:
 *
 *     write   bytes => upload buffer => (copy) => dst         returns at once
 *     read    src => (copy) => readback buffer => bytes       waits
 *     copy    src => (copy) => dst                            returns at once
 *
 * Each of a few batches has a part of the upload buffer, so one can be filled while others run. */
#include <string.h>

#include "backend/vulkan/vulkan.h"

#define LEAST_ROOM (UINT64_C(16) << 20) /* of the upload and of the readback buffer */
#define MOST_ROOM (UINT64_C(256) << 20)
#define MOST_COMMANDS 256  /* of a batch */
#define MOST_TOUCHES 512   /* noted since the last barrier */
#define LITTLE 4096        /* bytes that the host may read over a bus */
#define BY_HOST (1u << 20) /* bytes that the host copies itself where it can */
#define PART_ALIGN 64      /* of bytes in the upload buffer */

static rlx_status check_span(struct span s, struct diag *d)
{
    if (s.buffer && s.offset <= s.buffer->bytes && s.bytes <= s.buffer->bytes - s.offset)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_INTERNAL, "bytes %llu+%llu lie outside their buffer",
                     (unsigned long long)s.offset, (unsigned long long)s.bytes);
}

/* ---- batches ---- */

rlx_status vk_open_transfers(struct vk_device *dev, struct diag *d)
{
    VkCommandBuffer made[VK_BATCHES];
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = dev->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = VK_BATCHES};

    VK_TRY(dev, dev->vk.AllocateCommandBuffers(dev->device, &info, made), d);
    for (size_t i = 0; i < VK_BATCHES; i++)
        dev->batch[i].commands = made[i];
    dev->hazards.mem = dev->recording.mem = dev->base.mem;
    /* Taken once, so that nothing is asked of the allocator while programs run. */
    if (!vec_room_for(dev->base.mem, &dev->hazards.touched, MOST_TOUCHES))
        return diag_no_memory(d, MOST_TOUCHES * sizeof(struct gpu_touch));
    return RLX_OK;
}

void vk_close_transfers(struct vk_device *dev)
{
    vk_drop_buffer(dev, &dev->upload);
    vk_drop_buffer(dev, &dev->readback);
    vec_free(dev->base.mem, &dev->hazards.touched);
}

static struct vk_batch *batch_now(struct vk_device *dev)
{
    return &dev->batch[dev->batch_now];
}

static void barrier(struct vk_device *dev, VkPipelineStageFlags from, VkAccessFlags wrote,
                    VkPipelineStageFlags to, VkAccessFlags touches)
{
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = wrote,
                                 .dstAccessMask = touches};

    dev->vk.CmdPipelineBarrier(batch_now(dev)->commands, from, to, 0, 1, &all, 0, NULL, 0, NULL);
}

/* After all that was submitted before. */
static rlx_status begin(struct vk_device *dev, struct diag *d)
{
    struct vk_batch *b = batch_now(dev);
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};

    TRY(vk_await(dev, b->ticket, d));
    VK_TRY(dev, dev->vk.BeginCommandBuffer(b->commands, &info), d);
    barrier(dev, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    b->used = 0;
    b->open = true;
    dev->hazards.touched.len = 0;
    return RLX_OK;
}

/* Ends the open batch, if there is one; its ticket is the next. */
rlx_status vk_end_transfers(struct vk_device *dev, VkCommandBuffer *out, struct diag *d)
{
    struct vk_batch *b = batch_now(dev);

    *out = VK_NULL_HANDLE;
    if (!b->open)
        return RLX_OK;
    barrier(dev, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT |
                VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
    b->open = false;
    b->count = 0;
    VK_TRY(dev, dev->vk.EndCommandBuffer(b->commands), d);
    b->ticket = dev->tickets + 1;
    dev->batch_now = (dev->batch_now + 1) % VK_BATCHES;
    *out = b->commands;
    return RLX_OK;
}

rlx_status vk_submit_transfers(struct vk_device *dev, struct diag *d)
{
    VkCommandBuffer commands;

    TRY(vk_end_transfers(dev, &commands, d));
    return commands ? vk_queue(dev, &commands, 1, d) : RLX_OK;
}

/* An open batch with room for one more command. */
static rlx_status need_batch(struct vk_device *dev, struct diag *d)
{
    if (batch_now(dev)->count >= MOST_COMMANDS)
        TRY(vk_submit_transfers(dev, d));
    return batch_now(dev)->open ? RLX_OK : begin(dev, d);
}

/* The next command reads and writes these; either may have no buffer. */
static rlx_status note(struct vk_device *dev, struct span dst, struct span src, struct diag *d)
{
    struct gpu_touch touch[2];
    size_t count = 0;
    bool wait;

    if (dst.buffer)
        touch[count++] = (struct gpu_touch){dst, true};
    if (src.buffer)
        touch[count++] = (struct gpu_touch){src, false};
    TRY(gpu_touch(&dev->hazards, touch, count, &wait, d));
    if (wait)
        barrier(dev, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    for (size_t i = 0; i < count; i++)
        touch[i].span.buffer->used = dev->tickets + 1; /* the ticket that the batch will have */
    batch_now(dev)->count++;
    return RLX_OK;
}

static rlx_status add_copy(struct vk_device *dev, struct span dst, struct span src, struct diag *d)
{
    const VkBufferCopy part = {src.offset, dst.offset, dst.bytes};

    TRY(note(dev, dst, src, d));
    dev->vk.CmdCopyBuffer(batch_now(dev)->commands, src.buffer->handle, dst.buffer->handle, 1,
                          &part);
    return RLX_OK;
}

/* ---- room on the host's side ---- */

/* As much as `bytes` wants in one piece, within bounds. Nothing of the old one may be pending. */
static rlx_status grow(struct vk_device *dev, struct buffer *buf, enum vk_use use, uint64_t bytes,
                       struct diag *d)
{
    uint64_t room = buf->bytes ? buf->bytes : LEAST_ROOM;

    while (room < bytes && room < MOST_ROOM)
        room *= 2;
    if (room == buf->bytes)
        return RLX_OK;
    TRY(vk_submit_transfers(dev, d));
    TRY(vk_await(dev, dev->tickets, d));
    vk_drop_buffer(dev, buf);
    return vk_make_buffer(dev, use, room, buf, d);
}

/* ---- with the lock held ---- */

rlx_status vk_put(struct vk_device *dev, struct span dst, const void *src, struct diag *d)
{
    const uint8_t *from = src;

    TRY(grow(dev, &dev->upload, VK_FOR_UPLOAD, dst.bytes, d));
    uint64_t part = dev->upload.bytes / VK_BATCHES;
    while (dst.bytes) {
        TRY(need_batch(dev, d));
        struct vk_batch *b = batch_now(dev);
        uint64_t n = part - b->used < dst.bytes ? part - b->used : dst.bytes;
        if (n == 0) {
            TRY(vk_submit_transfers(dev, d));
            continue;
        }
        uint64_t at = dev->batch_now * part + b->used;
        memcpy(dev->upload.mapped + at, from, (size_t)n);
        vk_flush(dev, &dev->upload, at, n);
        TRY(add_copy(dev, (struct span){dst.buffer, dst.offset, n},
                     (struct span){&dev->upload, at, n}, d));
        b->used = (b->used + n + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
        b->used = b->used < part ? b->used : part;
        from += n;
        dst.offset += n;
        dst.bytes -= n;
    }
    return RLX_OK;
}

static rlx_status fill_words(struct vk_device *dev, struct span dst, uint32_t word, struct diag *d)
{
    if (!dst.bytes)
        return RLX_OK;
    TRY(need_batch(dev, d));
    TRY(note(dev, dst, (struct span){0}, d));
    dev->vk.CmdFillBuffer(batch_now(dev)->commands, dst.buffer->handle, dst.offset, dst.bytes,
                          word);
    return RLX_OK;
}

rlx_status vk_zero(struct vk_device *dev, struct span dst, struct diag *d)
{
    return fill_words(dev, dst, 0, d);
}

/* Whole words by one command, the bytes before and behind them from the host. */
static rlx_status fill_bytes(struct vk_device *dev, struct span dst, uint8_t byte, struct diag *d)
{
    const uint8_t few[4] = {byte, byte, byte, byte};
    uint64_t end = dst.offset + dst.bytes, from = (dst.offset + 3) / 4 * 4, to = end / 4 * 4;
    uint32_t word;

    if (from >= to) {
        struct span rest = dst;
        for (; rest.bytes; rest.offset += 4, rest.bytes -= rest.bytes < 4 ? rest.bytes : 4)
            TRY(vk_put(dev,
                       (struct span){rest.buffer, rest.offset, rest.bytes < 4 ? rest.bytes : 4},
                       few, d));
        return RLX_OK;
    }
    memcpy(&word, few, sizeof word);
    TRY(vk_put(dev, (struct span){dst.buffer, dst.offset, from - dst.offset}, few, d));
    TRY(fill_words(dev, (struct span){dst.buffer, from, to - from}, word, d));
    return vk_put(dev, (struct span){dst.buffer, to, end - to}, few, d);
}

/* Vulkan does not copy onto what it copies from: such pieces go through the upload buffer, in the
 * direction in which nothing is overwritten that is still to be read. */
static rlx_status move_within(struct vk_device *dev, struct span dst, struct span src,
                              struct diag *d)
{
    bool up = dst.offset > src.offset;
    uint64_t left = dst.bytes;

    TRY(grow(dev, &dev->upload, VK_FOR_UPLOAD, dst.bytes, d));
    uint64_t part = dev->upload.bytes / VK_BATCHES;
    while (left) {
        if (batch_now(dev)->open && batch_now(dev)->used) /* its part is ours as a whole */
            TRY(vk_submit_transfers(dev, d));
        TRY(need_batch(dev, d));
        uint64_t n = left < part ? left : part, at = up ? left - n : dst.bytes - left;
        struct span between = {&dev->upload, dev->batch_now * part, n};
        TRY(add_copy(dev, between, (struct span){src.buffer, src.offset + at, n}, d));
        TRY(add_copy(dev, (struct span){dst.buffer, dst.offset + at, n}, between, d));
        batch_now(dev)->used = part;
        left -= n;
    }
    return RLX_OK;
}

static rlx_status copy_spans(struct vk_device *dev, struct span dst, struct span src,
                             struct diag *d)
{
    if (spans_overlap(dst, src))
        return move_within(dev, dst, src, d);
    TRY(need_batch(dev, d));
    return add_copy(dev, dst, src, d);
}

/* ---- the host does it, or the device ---- */

/* Nothing that was asked for before may still touch it. */
static bool is_idle(struct vk_device *dev, const struct buffer *buf)
{
    return buf->used <= dev->tickets && vk_is_done(dev, buf->used);
}

rlx_status vk_write(struct backend *b, struct span dst, const void *src, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(dst, d));
    TRY(vk_check(dev, d));
    if (!dst.bytes)
        return RLX_OK;
    pthread_mutex_lock(&dev->lock);
    bool direct = dst.buffer->mapped && is_idle(dev, dst.buffer);
    if (!direct)
        s = vk_put(dev, dst, src, d);
    pthread_mutex_unlock(&dev->lock);
    if (direct) {
        memcpy(dst.buffer->mapped + dst.offset, src, (size_t)dst.bytes);
        vk_flush(dev, dst.buffer, dst.offset, dst.bytes);
    }
    return s;
}

rlx_status vk_copy(struct backend *b, struct span dst, struct span src, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(dst, d));
    TRY(check_span(src, d));
    TRY(vk_check(dev, d));
    if (dst.bytes != src.bytes)
        return diag_fail(d, RLX_ERROR_INTERNAL, "a copy's two sides differ in size");
    if (!dst.bytes || (dst.buffer == src.buffer && dst.offset == src.offset))
        return RLX_OK;
    pthread_mutex_lock(&dev->lock);
    bool direct = dev->mode == VK_MODE_MAPPED && dst.buffer->mapped && src.buffer->mapped &&
                  dst.bytes <= BY_HOST && is_idle(dev, dst.buffer) && is_idle(dev, src.buffer);
    if (!direct)
        s = copy_spans(dev, dst, src, d);
    pthread_mutex_unlock(&dev->lock);
    if (direct) {
        vk_invalidate(dev, src.buffer, src.offset, src.bytes);
        memmove(dst.buffer->mapped + dst.offset, src.buffer->mapped + src.offset,
                (size_t)dst.bytes);
        vk_flush(dev, dst.buffer, dst.offset, dst.bytes);
    }
    return s;
}

rlx_status vk_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(dst, d));
    TRY(vk_check(dev, d));
    if (!dst.bytes)
        return RLX_OK;
    pthread_mutex_lock(&dev->lock);
    bool direct = dst.buffer->mapped && dst.bytes <= BY_HOST && is_idle(dev, dst.buffer);
    if (!direct)
        s = fill_bytes(dev, dst, byte, d);
    pthread_mutex_unlock(&dev->lock);
    if (direct) {
        memset(dst.buffer->mapped + dst.offset, byte, (size_t)dst.bytes);
        vk_flush(dev, dst.buffer, dst.offset, dst.bytes);
    }
    return s;
}

/* ---- reading ---- */

/* Piece i of so many bytes on its way to its half of the readback buffer. */
static rlx_status fetch(struct vk_device *dev, struct span src, uint64_t piece, uint64_t i,
                        uint64_t *ticket, struct diag *d)
{
    uint64_t at = i * piece, n = src.bytes - at < piece ? src.bytes - at : piece;

    TRY(need_batch(dev, d));
    TRY(add_copy(dev, (struct span){&dev->readback, i % 2 * piece, n},
                 (struct span){src.buffer, src.offset + at, n}, d));
    TRY(vk_submit_transfers(dev, d));
    *ticket = dev->tickets;
    return RLX_OK;
}

/* While the host takes one half, the device fills the other. */
static rlx_status read_staged(struct vk_device *dev, struct span src, uint8_t *dst, struct diag *d)
{
    uint64_t ticket[2];

    TRY(grow(dev, &dev->readback, VK_FOR_READBACK, src.bytes, d));
    uint64_t piece = dev->readback.bytes / 2, pieces = (src.bytes + piece - 1) / piece;
    TRY(fetch(dev, src, piece, 0, &ticket[0], d));
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t at = i * piece, n = src.bytes - at < piece ? src.bytes - at : piece;
        if (i + 1 < pieces)
            TRY(fetch(dev, src, piece, i + 1, &ticket[(i + 1) % 2], d));
        TRY(vk_await(dev, ticket[i % 2], d));
        vk_invalidate(dev, &dev->readback, i % 2 * piece, n);
        memcpy(dst + at, dev->readback.mapped + i % 2 * piece, (size_t)n);
    }
    return RLX_OK;
}

rlx_status vk_read(struct backend *b, struct span src, void *dst, struct diag *d)
{
    struct vk_device *dev = vk_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(src, d));
    TRY(vk_check(dev, d));
    if (!src.bytes)
        return RLX_OK;
    const struct buffer *buf = src.buffer;
    bool direct = buf->mapped && (dev->mode == VK_MODE_MAPPED || src.bytes <= LITTLE);
    pthread_mutex_lock(&dev->lock);
    if (direct && buf->used > dev->tickets)
        s = vk_submit_transfers(dev, d);
    else if (!direct)
        s = read_staged(dev, src, dst, d);
    uint64_t ticket = buf->used;
    pthread_mutex_unlock(&dev->lock);
    if (s != RLX_OK || !direct)
        return s;
    TRY(vk_await(dev, ticket, d));
    vk_invalidate(dev, buf, src.offset, src.bytes);
    memcpy(dst, buf->mapped + src.offset, (size_t)src.bytes);
    return RLX_OK;
}
