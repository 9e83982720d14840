/* gpu_memory.c: buffers, and how much of the device's memory they hold. */
#include <string.h>

#include "backend/gpu/gpu_run.h"

#define LL(n) ((unsigned long long)(n))

rlx_status gpu_no_memory(struct gpu_device *g, uint64_t bytes, uint64_t left, struct diag *d)
{
    uint64_t limit = g->options.max_memory, held = g->held;

    if (limit)
        left = limit > held ? limit - held : 0;
    if (left || limit)
        return diag_fail(d, RLX_ERROR_MEMORY,
                         "%s has no %llu bytes of memory: %llu are held by rlx, %llu are free",
                         g->name, LL(bytes), LL(held), LL(left));
    return diag_fail(d, RLX_ERROR_MEMORY, "%s has no %llu bytes of memory besides %llu held by rlx",
                     g->name, LL(bytes), LL(held));
}

rlx_status gpu_make_buffer(struct gpu_device *g, enum gpu_use use, uint64_t bytes,
                           struct buffer *out, struct diag *d)
{
    bool counts = use == GPU_FOR_WORK || use == GPU_FOR_WORDS;

    uint64_t room = bytes ? (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN : GPU_ALIGN;
    if (room < bytes || room > g->max_buffer)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "%llu bytes are wanted in one buffer, and %s has at most %llu", LL(bytes),
                         g->name, LL(g->max_buffer));
    *out = (struct buffer){.asked = bytes, .bytes = room};
    if (counts && g->options.max_memory && g->held + out->bytes > g->options.max_memory)
        return gpu_no_memory(g, out->bytes, 0, d);
    rlx_status s = g->driver->make_buffer(g, use, out, d);
    if (s != RLX_OK) {
        g->driver->drop_buffer(g, out);
        *out = (struct buffer){0};
        return s;
    }
    out->counted = !counts ? 0 : out->taken ? out->taken : out->bytes;
    g->held += out->counted;
    return RLX_OK;
}

void gpu_drop_buffer(struct gpu_device *g, struct buffer *buf)
{
    if (buf->handle)
        g->driver->drop_buffer(g, buf);
    g->held -= buf->counted;
    *buf = (struct buffer){0};
}

/* The host does it where it writes fast; otherwise the device, and it is waited for, so that the
 * host can write to the buffer directly from then on. */
static rlx_status clear(struct gpu_device *g, struct buffer *buf, struct diag *d)
{
    if (g->driver->zeroes)
        return RLX_OK;
    if (g->mode == GPU_MODE_MAPPED && buf->mapped) {
        memset(buf->mapped, 0, (size_t)buf->bytes);
        gpu_flush(g, buf, 0, buf->bytes);
        return RLX_OK;
    }
    pthread_mutex_lock(&g->lock);
    rlx_status s = g->driver->transfers->fill(g, (struct span){buf, 0, buf->bytes}, 0, d);
    if (s == RLX_OK)
        s = gpu_submit_batch(g, d);
    uint64_t ticket = g->tickets;
    pthread_mutex_unlock(&g->lock);
    return s == RLX_OK && buf->mapped ? gpu_await(g, ticket, d) : s;
}

rlx_status gpu_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);

    TRY(gpu_check(g, d));
    struct buffer *buf = mem_alloc(b->mem, sizeof *buf);
    if (!buf)
        return diag_no_memory(d, sizeof *buf);
    rlx_status s = gpu_make_buffer(g, GPU_FOR_WORK, bytes, buf, d);
    if (s == RLX_OK)
        s = clear(g, buf, d);
    if (s != RLX_OK) {
        gpu_release(b, buf);
        return s;
    }
    *out = buf;
    return RLX_OK;
}

/* Whatever was to be done with it is done first. */
void gpu_release(struct backend *b, struct buffer *buf)
{
    struct gpu_device *g = gpu_device_of(b);
    struct diag quiet;

    if (!buf)
        return;
    diag_init(&quiet, "release");
    pthread_mutex_lock(&g->lock);
    if (buf->used > g->tickets)
        gpu_submit_batch(g, &quiet);
    if (g->driver->transfers->stale)
        g->driver->transfers->stale(g);
    uint64_t ticket = buf->used;
    g->released++;
    pthread_mutex_unlock(&g->lock);
    gpu_await(g, ticket, &quiet);
    gpu_drop_buffer(g, buf);
    mem_free(b->mem, buf, sizeof *buf);
}
