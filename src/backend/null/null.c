/* null.c: a device that computes nothing, and checks everything it is given.
 *
 * Every op becomes one step with the node's operands; memory is real, so what is written can be
 * read back, and results are zeros. It makes all that stands above a backend testable anywhere:
 * spans must lie in their buffers, tickets must exist. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/str.h"
#include "lower/lower.h"

#define ALIGNMENT 64
/* "null:small" has the limits of a small device, so that what limits do can be tested anywhere. */
#define SMALL_ALIGNMENT 256
#define SMALL_MAX_BUFFER (UINT64_C(1) << 20)
#define SMALL_MEMORY (UINT64_C(16) << 20)

struct buffer {
    uint8_t *data;
    uint64_t bytes;
};

struct null_device {
    struct backend base;
    bool small;
    _Atomic uint64_t tickets;
};

extern const struct backend_ops null_backend;

static struct null_device *device_of(struct backend *b)
{
    return (struct null_device *)b;
}

static rlx_status null_open(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    struct null_device *dev;
    bool small = str_eq(desc->variant, STR("small"));

    if (desc->variant.len && !small)
        return diag_fail(d, RLX_ERROR_NO_DEVICE,
                         "there are \"null\" and \"null:small\", but no \"null:%.*s\"",
                         STR_ARG(desc->variant));
    dev = mem_alloc(desc->mem, sizeof *dev);
    if (!dev)
        return diag_no_memory(d, sizeof *dev);
    dev->base = (struct backend){&null_backend, desc->mem};
    dev->small = small;
    *out = &dev->base;
    return RLX_OK;
}

static void null_close(struct backend *b)
{
    mem_free(b->mem, b, sizeof(struct null_device));
}

static void null_describe(const struct backend *b, struct target *out)
{
    bool small = b && ((const struct null_device *)b)->small;

    *out = (struct target){.backend = "null",
                           .alignment = small ? SMALL_ALIGNMENT : ALIGNMENT,
                           .max_buffer = small ? SMALL_MAX_BUFFER : 0,
                           .memory = small ? SMALL_MEMORY : 0,
                           .computes_nothing = true};
    for (int f = 0; f < FAMILY_count; f++)
        out->native[f] = true;
    snprintf(out->description, sizeof out->description, "computes nothing, checks everything");
}

static rlx_status null_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d)
{
    struct buffer *buf = mem_alloc(b->mem, sizeof *buf);

    if (!buf)
        return diag_no_memory(d, sizeof *buf);
    buf->bytes = bytes < 16 ? 16 : bytes;
    buf->data = mem_alloc(b->mem, (size_t)buf->bytes);
    if (!buf->data) {
        mem_free(b->mem, buf, sizeof *buf);
        return diag_no_memory(d, (size_t)bytes);
    }
    *out = buf;
    return RLX_OK;
}

static void null_release(struct backend *b, struct buffer *buf)
{
    if (!buf)
        return;
    mem_free(b->mem, buf->data, (size_t)buf->bytes);
    mem_free(b->mem, buf, sizeof *buf);
}

static rlx_status check_span(struct span s, struct diag *d)
{
    if (s.buffer && s.offset <= s.buffer->bytes && s.bytes <= s.buffer->bytes - s.offset)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_INTERNAL, "bytes %llu+%llu lie outside their buffer",
                     (unsigned long long)s.offset, (unsigned long long)s.bytes);
}

static rlx_status null_write(struct backend *b, struct span dst, const void *src, struct diag *d)
{
    (void)b;
    TRY(check_span(dst, d));
    if (dst.bytes)
        memcpy(dst.buffer->data + dst.offset, src, (size_t)dst.bytes);
    return RLX_OK;
}

static rlx_status null_read(struct backend *b, struct span src, void *dst, struct diag *d)
{
    (void)b;
    TRY(check_span(src, d));
    if (src.bytes)
        memcpy(dst, src.buffer->data + src.offset, (size_t)src.bytes);
    return RLX_OK;
}

static rlx_status null_copy(struct backend *b, struct span dst, struct span src, struct diag *d)
{
    (void)b;
    TRY(check_span(dst, d));
    TRY(check_span(src, d));
    if (dst.bytes != src.bytes)
        return diag_fail(d, RLX_ERROR_INTERNAL, "a copy's two sides differ in size");
    memmove(dst.buffer->data + dst.offset, src.buffer->data + src.offset, (size_t)dst.bytes);
    return RLX_OK;
}

static rlx_status null_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d)
{
    (void)b;
    TRY(check_span(dst, d));
    memset(dst.buffer->data + dst.offset, byte, (size_t)dst.bytes);
    return RLX_OK;
}

static rlx_status null_select(struct backend *b, struct select_call *c)
{
    (void)b;
    return select_node(c, NULL, 0);
}

/* The last operand is what the step writes; no step here asked to work in place. */
static rlx_status null_load(struct backend *b, struct command *c, struct diag *d)
{
    (void)b;
    for (uint32_t i = 0; i < c->operand_count; i++) {
        TRY(check_span(c->operand[i], d));
        if (i + 1 < c->operand_count &&
            spans_overlap(c->operand[i], c->operand[c->operand_count - 1]))
            return diag_fail(d, RLX_ERROR_INTERNAL, "step %d writes over operand %u that it reads",
                             c->step, i);
    }
    return RLX_OK;
}

static rlx_status null_submit(struct backend *b, const struct command *list, size_t count,
                              const struct run_hooks *hooks, struct run_report *report,
                              uint64_t *ticket, struct diag *d)
{
    (void)d;
    report->step = -1;
    report->failed.status = RLX_OK;
    for (size_t i = 0; hooks && i < count; i++)
        hooks->after(hooks->user, list[i].step, 0, 0);
    *ticket = atomic_fetch_add(&device_of(b)->tickets, 1) + 1;
    return RLX_OK;
}

static rlx_status null_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    if (ticket == 0 || ticket > atomic_load(&device_of(b)->tickets))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no ticket %llu",
                         (unsigned long long)ticket);
    *done = true;
    return RLX_OK;
}

static rlx_status null_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    bool done;

    return null_poll(b, ticket, &done, d);
}

const struct backend_ops null_backend = {
    .abi = BACKEND_ABI,
    .name = "null",
    .open = null_open,
    .close = null_close,
    .describe = null_describe,
    .alloc = null_alloc,
    .release = null_release,
    .write = null_write,
    .read = null_read,
    .copy = null_copy,
    .fill = null_fill,
    .select = null_select,
    .load = null_load,
    .submit = null_submit,
    .poll = null_poll,
    .wait = null_wait,
};
