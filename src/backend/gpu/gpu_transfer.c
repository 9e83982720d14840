/* gpu_transfer.c: what the runtime asks to be written, read, copied and filled.
 *
 * Everything keeps the order in which it was asked for, along with the programs that run. Where the
 * host sees a buffer and nothing is pending on it, the host does the work at once; otherwise it
 * goes the way of the driver's struct gpu_transfers. */
#include <string.h>

#include "backend/gpu/gpu_run.h"

#define LITTLE 4096        /* bytes that the host may read over a bus */
#define BY_HOST (1u << 20) /* bytes that the host copies itself where it can */

static rlx_status check_span(struct span s, struct diag *d)
{
    if (s.buffer && s.offset <= s.buffer->asked && s.bytes <= s.buffer->asked - s.offset)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_INTERNAL, "bytes %llu+%llu lie outside their buffer",
                     (unsigned long long)s.offset, (unsigned long long)s.bytes);
}

static void stale(struct gpu_device *g)
{
    if (g->driver->transfers->stale)
        g->driver->transfers->stale(g);
}

/* ---- the host does it, or the device ---- */

/* Nothing that was asked for before may still touch it. */
static bool is_idle(struct gpu_device *g, const struct buffer *buf)
{
    return buf->used <= g->tickets && gpu_is_done(g, buf->used);
}

rlx_status gpu_write_bytes(struct backend *b, struct span dst, const void *src, struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(dst, d));
    TRY(gpu_check(g, d));
    if (!dst.bytes)
        return RLX_OK;
    pthread_mutex_lock(&g->lock);
    bool direct = dst.buffer->mapped && is_idle(g, dst.buffer);
    stale(g);
    if (!direct)
        s = g->driver->transfers->put(g, dst, src, d);
    pthread_mutex_unlock(&g->lock);
    if (direct) {
        memcpy(dst.buffer->mapped + dst.offset, src, (size_t)dst.bytes);
        gpu_flush(g, dst.buffer, dst.offset, dst.bytes);
    }
    return s;
}

rlx_status gpu_copy_bytes(struct backend *b, struct span dst, struct span src, struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(dst, d));
    TRY(check_span(src, d));
    TRY(gpu_check(g, d));
    if (dst.bytes != src.bytes)
        return diag_fail(d, RLX_ERROR_INTERNAL, "a copy's two sides differ in size");
    if (!dst.bytes || (dst.buffer == src.buffer && dst.offset == src.offset))
        return RLX_OK;
    pthread_mutex_lock(&g->lock);
    bool direct = g->mode == GPU_MODE_MAPPED && dst.buffer->mapped && src.buffer->mapped &&
                  dst.bytes <= BY_HOST && is_idle(g, dst.buffer) && is_idle(g, src.buffer);
    stale(g);
    if (!direct)
        s = g->driver->transfers->move(g, dst, src, d);
    pthread_mutex_unlock(&g->lock);
    if (direct) {
        gpu_invalidate(g, src.buffer, src.offset, src.bytes);
        memmove(dst.buffer->mapped + dst.offset, src.buffer->mapped + src.offset,
                (size_t)dst.bytes);
        gpu_flush(g, dst.buffer, dst.offset, dst.bytes);
    }
    return s;
}

rlx_status gpu_fill_bytes(struct backend *b, struct span dst, uint8_t byte, struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(dst, d));
    TRY(gpu_check(g, d));
    if (!dst.bytes)
        return RLX_OK;
    pthread_mutex_lock(&g->lock);
    bool direct = dst.buffer->mapped && dst.bytes <= BY_HOST && is_idle(g, dst.buffer);
    stale(g);
    if (!direct)
        s = g->driver->transfers->fill(g, dst, byte, d);
    pthread_mutex_unlock(&g->lock);
    if (direct) {
        memset(dst.buffer->mapped + dst.offset, byte, (size_t)dst.bytes);
        gpu_flush(g, dst.buffer, dst.offset, dst.bytes);
    }
    return s;
}

rlx_status gpu_read_bytes(struct backend *b, struct span src, void *dst, struct diag *d)
{
    struct gpu_device *g = gpu_device_of(b);
    rlx_status s = RLX_OK;

    TRY(check_span(src, d));
    TRY(gpu_check(g, d));
    if (!src.bytes)
        return RLX_OK;
    const struct buffer *buf = src.buffer;
    bool direct = buf->mapped && (g->mode == GPU_MODE_MAPPED || src.bytes <= LITTLE);
    pthread_mutex_lock(&g->lock);
    if (direct && buf->used > g->tickets)
        s = gpu_submit_batch(g, d);
    else if (!direct)
        s = g->driver->transfers->get(g, src, dst, d);
    uint64_t ticket = buf->used;
    pthread_mutex_unlock(&g->lock);
    if (s != RLX_OK || !direct)
        return s;
    TRY(gpu_await(g, ticket, d));
    gpu_invalidate(g, buf, src.offset, src.bytes);
    memcpy(dst, buf->mapped + src.offset, (size_t)src.bytes);
    return RLX_OK;
}

void gpu_fetch(struct backend *b, const struct span *src, size_t count)
{
    struct gpu_device *g = gpu_device_of(b);
    struct diag quiet;
    rlx_status s = RLX_OK;

    diag_init(&quiet, "fetch");
    pthread_mutex_lock(&g->lock);
    stale(g);
    for (size_t i = 0; i < count && s == RLX_OK; i++)
        s = check_span(src[i], &quiet);
    if (s == RLX_OK && g->driver->transfers->fetch(g, src, count, &quiet) != RLX_OK)
        stale(g); /* the reads will tell */
    pthread_mutex_unlock(&g->lock);
}
