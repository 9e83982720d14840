/* gpu_batches.c: the host's bytes to the device and back, and copies within it, as commands that
 * gather in a batch. That is submitted before the next program, or when somebody waits:
 *
 *     put     bytes => upload buffer => (copy) => dst         returns at once
 *     get     src => (copy) => readback buffer => bytes       waits
 *     move    src => (copy) => dst                            returns at once
 *
 * Each of a few batches has a part of the upload buffer, so one can be filled while others run. */
#include <string.h>

#include "backend/gpu/gpu_run.h"

#define LEAST_ROOM (UINT64_C(16) << 20) /* of the upload and of the readback buffer */
#define MOST_ROOM (UINT64_C(256) << 20)
#define MOST_COMMANDS 256 /* of a batch */
#define MOST_TOUCHES 512  /* noted since the last barrier */
#define PART_ALIGN 64     /* of bytes in the upload buffer */

/* ---- batches ---- */

rlx_status gpu_open_batches(struct gpu_device *g, struct diag *d)
{
    if (!g->driver->new_commands)
        return RLX_OK;
    for (size_t i = 0; i < GPU_BATCHES; i++)
        TRY(g->driver->new_commands(g, &g->batches.at[i].commands, d));
    /* Taken once, so that nothing is asked of the allocator while programs run. */
    g->batches.hazards.mem = g->base.mem;
    if (!vec_room_for(g->base.mem, &g->batches.hazards.touched, MOST_TOUCHES))
        return diag_no_memory(d, MOST_TOUCHES * sizeof(struct gpu_touch));
    return RLX_OK;
}

void gpu_close_batches(struct gpu_device *g)
{
    gpu_drop_buffer(g, &g->batches.upload);
    gpu_drop_buffer(g, &g->batches.readback);
    vec_free(g->base.mem, &g->batches.hazards.touched);
}

static struct gpu_batch *batch_now(struct gpu_device *g)
{
    return &g->batches.at[g->batches.now];
}

/* After all that was submitted before. */
static rlx_status begin(struct gpu_device *g, struct diag *d)
{
    struct gpu_batch *b = batch_now(g);

    TRY(gpu_await(g, b->ticket, d));
    TRY(g->driver->begin(g, b->commands, true, d));
    g->driver->barrier(g, b->commands, GPU_BY_KERNELS | GPU_BY_COPIES, GPU_BY_COPIES);
    b->used = 0;
    b->open = true;
    g->batches.hazards.touched.len = 0;
    return RLX_OK;
}

/* Ends the open batch, if there is one; its ticket is the next. */
rlx_status gpu_end_batch(struct gpu_device *g, void **out, struct diag *d)
{
    struct gpu_batch *b = batch_now(g);

    *out = NULL;
    if (!b->open)
        return RLX_OK;
    g->driver->barrier(g, b->commands, GPU_BY_COPIES, GPU_BY_KERNELS | GPU_BY_COPIES | GPU_BY_HOST);
    b->open = false;
    b->count = 0;
    TRY(g->driver->end(g, b->commands, d));
    b->ticket = g->tickets + 1;
    g->batches.now = (g->batches.now + 1) % GPU_BATCHES;
    *out = b->commands;
    return RLX_OK;
}

rlx_status gpu_submit_batch(struct gpu_device *g, struct diag *d)
{
    void *commands;

    TRY(gpu_end_batch(g, &commands, d));
    return commands ? gpu_queue(g, &commands, 1, d) : RLX_OK;
}

/* An open batch with room for one more command. */
static rlx_status need_batch(struct gpu_device *g, struct diag *d)
{
    if (batch_now(g)->count >= MOST_COMMANDS)
        TRY(gpu_submit_batch(g, d));
    return batch_now(g)->open ? RLX_OK : begin(g, d);
}

/* The next command reads and writes these; either may have no buffer. */
static rlx_status note(struct gpu_device *g, struct span dst, struct span src, struct diag *d)
{
    struct gpu_touch touch[2];
    size_t count = 0;
    bool wait;

    if (dst.buffer)
        touch[count++] = (struct gpu_touch){dst, true};
    if (src.buffer)
        touch[count++] = (struct gpu_touch){src, false};
    TRY(gpu_touch(&g->batches.hazards, touch, count, &wait, d));
    if (wait)
        g->driver->barrier(g, batch_now(g)->commands, GPU_BY_COPIES, GPU_BY_COPIES);
    for (size_t i = 0; i < count; i++)
        touch[i].span.buffer->used = g->tickets + 1; /* the ticket that the batch will have */
    batch_now(g)->count++;
    return RLX_OK;
}

static rlx_status add_copy(struct gpu_device *g, struct span dst, struct span src, struct diag *d)
{
    TRY(note(g, dst, src, d));
    g->driver->copy(g, batch_now(g)->commands, dst, src);
    return RLX_OK;
}

/* ---- room on the host's side ---- */

/* As much as `bytes` wants in one piece, within bounds. Nothing of the old one may be pending. */
static rlx_status grow(struct gpu_device *g, struct buffer *buf, enum gpu_use use, uint64_t bytes,
                       struct diag *d)
{
    uint64_t room = buf->bytes ? buf->bytes : LEAST_ROOM;

    while (room < bytes && room < MOST_ROOM)
        room *= 2;
    if (room == buf->bytes)
        return RLX_OK;
    TRY(gpu_submit_batch(g, d));
    TRY(gpu_await(g, g->tickets, d));
    gpu_drop_buffer(g, buf);
    return gpu_make_buffer(g, use, room, buf, d);
}

/* ---- putting, filling, moving ---- */

static rlx_status put(struct gpu_device *g, struct span dst, const void *src, struct diag *d)
{
    const uint8_t *from = src;

    TRY(grow(g, &g->batches.upload, GPU_FOR_UPLOAD, dst.bytes, d));
    uint64_t part = g->batches.upload.bytes / GPU_BATCHES;
    while (dst.bytes) {
        TRY(need_batch(g, d));
        struct gpu_batch *b = batch_now(g);
        uint64_t n = part - b->used < dst.bytes ? part - b->used : dst.bytes;
        if (n == 0) {
            TRY(gpu_submit_batch(g, d));
            continue;
        }
        uint64_t at = g->batches.now * part + b->used;
        memcpy(g->batches.upload.mapped + at, from, (size_t)n);
        gpu_flush(g, &g->batches.upload, at, n);
        TRY(add_copy(g, (struct span){dst.buffer, dst.offset, n},
                     (struct span){&g->batches.upload, at, n}, d));
        b->used = (b->used + n + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
        b->used = b->used < part ? b->used : part;
        from += n;
        dst.offset += n;
        dst.bytes -= n;
    }
    return RLX_OK;
}

static rlx_status fill_words(struct gpu_device *g, struct span dst, uint32_t word, struct diag *d)
{
    if (!dst.bytes)
        return RLX_OK;
    TRY(need_batch(g, d));
    TRY(note(g, dst, (struct span){0}, d));
    g->driver->fill(g, batch_now(g)->commands, dst, word);
    return RLX_OK;
}

/* Whole words by one command, the bytes before and after them from the host. */
static rlx_status fill_bytes(struct gpu_device *g, struct span dst, uint8_t byte, struct diag *d)
{
    const uint8_t few[4] = {byte, byte, byte, byte};
    uint64_t end = dst.offset + dst.bytes, from = (dst.offset + 3) / 4 * 4, to = end / 4 * 4;
    uint32_t word;

    if (from >= to) {
        struct span rest = dst;
        for (; rest.bytes; rest.offset += 4, rest.bytes -= rest.bytes < 4 ? rest.bytes : 4)
            TRY(put(g, (struct span){rest.buffer, rest.offset, rest.bytes < 4 ? rest.bytes : 4},
                    few, d));
        return RLX_OK;
    }
    memcpy(&word, few, sizeof word);
    TRY(put(g, (struct span){dst.buffer, dst.offset, from - dst.offset}, few, d));
    TRY(fill_words(g, (struct span){dst.buffer, from, to - from}, word, d));
    return put(g, (struct span){dst.buffer, to, end - to}, few, d);
}

/* APIs do not copy onto what it copies from: such pieces go through the upload buffer, in the
 * direction in which nothing is overwritten that is still to be read. */
static rlx_status move_within(struct gpu_device *g, struct span dst, struct span src,
                              struct diag *d)
{
    bool up = dst.offset > src.offset;
    uint64_t left = dst.bytes;

    TRY(grow(g, &g->batches.upload, GPU_FOR_UPLOAD, dst.bytes, d));
    uint64_t part = g->batches.upload.bytes / GPU_BATCHES;
    while (left) {
        if (batch_now(g)->open && batch_now(g)->used) /* its part is ours as a whole */
            TRY(gpu_submit_batch(g, d));
        TRY(need_batch(g, d));
        uint64_t n = left < part ? left : part, at = up ? left - n : dst.bytes - left;
        struct span between = {&g->batches.upload, g->batches.now * part, n};
        TRY(add_copy(g, between, (struct span){src.buffer, src.offset + at, n}, d));
        TRY(add_copy(g, (struct span){dst.buffer, dst.offset + at, n}, between, d));
        batch_now(g)->used = part;
        left -= n;
    }
    return RLX_OK;
}

static rlx_status move(struct gpu_device *g, struct span dst, struct span src, struct diag *d)
{
    if (spans_overlap(dst, src))
        return move_within(g, dst, src, d);
    TRY(need_batch(g, d));
    return add_copy(g, dst, src, d);
}

/* ---- reading ---- */

/* Piece i of so many bytes on its way to its half of the readback buffer. */
static rlx_status fetch(struct gpu_device *g, struct span src, uint64_t piece, uint64_t i,
                        uint64_t *ticket, struct diag *d)
{
    uint64_t at = i * piece, n = src.bytes - at < piece ? src.bytes - at : piece;

    TRY(need_batch(g, d));
    TRY(add_copy(g, (struct span){&g->batches.readback, i % 2 * piece, n},
                 (struct span){src.buffer, src.offset + at, n}, d));
    TRY(gpu_submit_batch(g, d));
    *ticket = g->tickets;
    return RLX_OK;
}

/* While the host takes one half, the device fills the other. */
static rlx_status get(struct gpu_device *g, struct span src, void *dst, struct diag *d)
{
    uint64_t ticket[2];

    TRY(grow(g, &g->batches.readback, GPU_FOR_READBACK, src.bytes, d));
    uint64_t piece = g->batches.readback.bytes / 2, pieces = (src.bytes + piece - 1) / piece;
    TRY(fetch(g, src, piece, 0, &ticket[0], d));
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t at = i * piece, n = src.bytes - at < piece ? src.bytes - at : piece;
        if (i + 1 < pieces)
            TRY(fetch(g, src, piece, i + 1, &ticket[(i + 1) % 2], d));
        TRY(gpu_await(g, ticket[i % 2], d));
        gpu_invalidate(g, &g->batches.readback, i % 2 * piece, n);
        memcpy((uint8_t *)dst + at, g->batches.readback.mapped + i % 2 * piece, (size_t)n);
    }
    return RLX_OK;
}

const struct gpu_transfers gpu_batched = {.put = put, .get = get, .move = move, .fill = fill_bytes};
