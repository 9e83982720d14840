/* device.c: the CPU as a device: host memory, a pool of workers, and commands run one by one.
 *
 * submit does the work itself and returns when it is done, so every ticket it hands out is done. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "base/str.h"

struct buffer {
    uint8_t *data;
    uint64_t bytes;
    bool wrapped; /* data is another's */
};

struct cpu_device *cpu_device_of(struct backend *b)
{
    return (struct cpu_device *)b;
}

static void cpu_close(struct backend *b)
{
    struct cpu_device *dev = cpu_device_of(b);

    pool_destroy(dev->pool);
    mem_free(b->mem, dev, sizeof *dev);
}

extern const struct backend_ops cpu_backend;

static rlx_status cpu_open(const struct device_desc *desc, struct backend **out, struct diag *d)
{
    char levels[64];
    const struct cpu_kernels *kernels = cpu_level(desc->variant);

    if (!kernels) {
        cpu_level_names(levels, sizeof levels);
        return diag_fail(d, RLX_ERROR_NO_DEVICE, "this CPU has no level \"%.*s\"; it has: %s",
                         STR_ARG(desc->variant), levels);
    }
    struct cpu_device *dev = mem_alloc(desc->mem, sizeof *dev);
    if (!dev)
        return diag_no_memory(d, sizeof *dev);
    dev->base = (struct backend){&cpu_backend, desc->mem};
    dev->kernels = kernels;
    rlx_status s = pool_create(&dev->pool, desc->threads, desc->mem, d);
    if (s != RLX_OK) {
        mem_free(desc->mem, dev, sizeof *dev);
        return s;
    }
    *out = &dev->base;
    return RLX_OK;
}

static void cpu_describe(const struct backend *b, struct target *out)
{
    const struct cpu_device *dev = (const struct cpu_device *)b;
    const struct cpu_kernels *k = dev ? dev->kernels : cpu_level((rlx_str){NULL, 0});
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    *out = (struct target){.backend = "cpu", .alignment = CPU_ALIGN};
    for (int f = 0; f < FAMILY_count; f++)
        out->native[f] = k->family[f] != NULL;
    out->native[FAMILY_custom] = out->native[FAMILY_if_] = out->native[FAMILY_while_] = true;
    out->native[FAMILY_scan] = out->native[FAMILY_scan_backward] = true;
    out->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    out->threads = dev ? pool_threads(dev->pool) : 0;
    cpu_level_names(out->features, sizeof out->features);
    snprintf(out->description, sizeof out->description, "host CPU, %s kernels", k->isa);
}

/* Large buffers begin where a huge page may: reading weights through fewer pages is worth up to a
 * third of a run that does little else. They are also blocks of their own (base/mem.c), which take
 * memory when they are written, not before, and leave nothing behind. */
static size_t alignment_of(uint64_t bytes)
{
    return bytes >= MEM_HUGE_PAGE / 2 ? MEM_HUGE_PAGE : CPU_ALIGN;
}

static rlx_status cpu_alloc(struct backend *b, uint64_t bytes, struct buffer **out, struct diag *d)
{
    struct buffer *buf = mem_alloc(b->mem, sizeof *buf);

    if (!buf)
        return diag_no_memory(d, sizeof *buf);
    buf->bytes = bytes < 16 ? 16 : bytes;
    if (buf->bytes <= SIZE_MAX)
        buf->data = mem_alloc_aligned(b->mem, (size_t)buf->bytes, alignment_of(buf->bytes));
    if (!buf->data) {
        mem_free(b->mem, buf, sizeof *buf);
        return diag_no_memory(d, (size_t)bytes);
    }
    *out = buf;
    return RLX_OK;
}

static void cpu_release(struct backend *b, struct buffer *buf)
{
    if (!buf)
        return;
    if (!buf->wrapped)
        mem_free_aligned(b->mem, buf->data, (size_t)buf->bytes, alignment_of(buf->bytes));
    mem_free(b->mem, buf, sizeof *buf);
}

static rlx_status cpu_wrap(struct backend *b, const void *data, uint64_t bytes, struct buffer **out,
                           struct diag *d)
{
    struct buffer *buf = mem_alloc(b->mem, sizeof *buf);

    if (!buf)
        return diag_no_memory(d, sizeof *buf);
    *buf = (struct buffer){(uint8_t *)data, bytes, true};
    *out = buf;
    return RLX_OK;
}

/* The bytes of a span, or NULL with INTERNAL: every span was checked further up. */
static uint8_t *bytes_of(struct span s, struct diag *d)
{
    if (s.buffer && s.offset <= s.buffer->bytes && s.bytes <= s.buffer->bytes - s.offset)
        return s.buffer->data + s.offset;
    diag_fail(d, RLX_ERROR_INTERNAL, "bytes %llu+%llu lie outside their buffer",
              (unsigned long long)s.offset, (unsigned long long)s.bytes);
    return NULL;
}

static rlx_status cpu_write(struct backend *b, struct span dst, const void *src, struct diag *d)
{
    uint8_t *to = bytes_of(dst, d);

    (void)b;
    if (!to)
        return RLX_ERROR_INTERNAL;
    if (dst.bytes)
        memcpy(to, src, (size_t)dst.bytes);
    return RLX_OK;
}

static rlx_status cpu_read(struct backend *b, struct span src, void *dst, struct diag *d)
{
    const uint8_t *from = bytes_of(src, d);

    (void)b;
    if (!from)
        return RLX_ERROR_INTERNAL;
    if (src.bytes)
        memcpy(dst, from, (size_t)src.bytes);
    return RLX_OK;
}

static rlx_status cpu_copy(struct backend *b, struct span dst, struct span src, struct diag *d)
{
    uint8_t *to = bytes_of(dst, d), *from = bytes_of(src, d);

    (void)b;
    if (!to || !from || dst.bytes != src.bytes)
        return RLX_ERROR_INTERNAL;
    memmove(to, from, (size_t)dst.bytes);
    return RLX_OK;
}

static rlx_status cpu_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d)
{
    uint8_t *to = bytes_of(dst, d);

    (void)b;
    if (!to)
        return RLX_ERROR_INTERNAL;
    memset(to, byte, (size_t)dst.bytes);
    return RLX_OK;
}

#define FEW_OPERANDS 32

static rlx_status cpu_pack(struct backend *b, struct command *c, int32_t operand,
                           struct span source, struct diag *d)
{
    struct cpu_work *w = c->work;
    void *data = w->in[operand].data;

    (void)b;
    w->in[operand].data = bytes_of(source, d);
    if (!w->in[operand].data)
        return RLX_ERROR_INTERNAL;
    w->kernel->pack(&w->call, operand, (void *)w->in[operand].packed);
    w->in[operand].data = data;
    return RLX_OK;
}

static rlx_status cpu_unpack(struct backend *b, const struct pack_form *form,
                             const struct ir_type *type, struct span packed, void *to,
                             struct diag *d)
{
    struct cpu_device *dev = cpu_device_of(b);
    const void *from = bytes_of(packed, d);
    struct cpu_tensor like;

    if (!from)
        return RLX_ERROR_INTERNAL;
    cpu_tensor_of(type, &like);
    like.data = to;
    dev->kernels->family[form->family]->unpack(&like, form->layout, from, dev->pool);
    return RLX_OK;
}

static rlx_status cpu_load(struct backend *b, struct command *c, struct diag *d)
{
    void *few[FEW_OPERANDS], **at = few;
    size_t bytes = c->operand_count * sizeof *at;
    struct cpu_work *w = c->work;
    rlx_status s = RLX_OK;

    if (c->operand_count > FEW_OPERANDS && !(at = mem_alloc(b->mem, bytes)))
        return diag_no_memory(d, bytes);
    for (uint32_t i = 0; i < c->operand_count && s == RLX_OK; i++) {
        at[i] = c->operand[i].bytes ? bytes_of(c->operand[i], d) : (void *)cpu_nothing;
        if (!at[i])
            s = RLX_ERROR_INTERNAL;
    }
    if (s == RLX_OK)
        s = w->load(w, at, d);
    if (at != few)
        mem_free(b->mem, at, bytes);
    return s;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take_fault(struct cpu_work *w, int32_t step, struct run_report *report)
{
    int64_t position = atomic_load_explicit(&w->fault.position, memory_order_relaxed);

    if (position == INT64_MAX || report->step >= 0)
        return;
    report->step = step;
    report->position = position;
    report->value = atomic_load_explicit(&w->fault.value, memory_order_relaxed);
}

static rlx_status cpu_submit(struct backend *b, const struct command *list, size_t count,
                             const struct run_hooks *hooks, struct run_report *report,
                             uint64_t *ticket, struct diag *d)
{
    report->step = -1;
    for (size_t i = 0; i < count; i++) {
        struct cpu_work *w = list[i].work;
        uint64_t start = hooks ? now_ns() : 0;

        if (list[i].kind != COMMAND_DISPATCH || list[i].idle)
            continue; /* works run in order: barriers are free */
        atomic_store_explicit(&w->fault.position, INT64_MAX, memory_order_relaxed);
        TRY(w->run(w, d));
        take_fault(w, list[i].step, report);
        if (hooks)
            hooks->after(hooks->user, list[i].step, start, now_ns());
    }
    *ticket = atomic_fetch_add(&cpu_device_of(b)->tickets, 1) + 1;
    return RLX_OK;
}

static rlx_status cpu_poll(struct backend *b, uint64_t ticket, bool *done, struct diag *d)
{
    if (ticket == 0 || ticket > atomic_load(&cpu_device_of(b)->tickets))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no ticket %llu",
                         (unsigned long long)ticket);
    *done = true;
    return RLX_OK;
}

static rlx_status cpu_wait(struct backend *b, uint64_t ticket, struct diag *d)
{
    bool done;

    return cpu_poll(b, ticket, &done, d);
}

const struct backend_ops cpu_backend = {
    .abi = BACKEND_ABI,
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .wrap = cpu_wrap,
    .write = cpu_write,
    .read = cpu_read,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .select = cpu_select,
    .joins = cpu_joins,
    .load = cpu_load,
    .pack = cpu_pack,
    .unpack = cpu_unpack,
    .submit = cpu_submit,
    .poll = cpu_poll,
    .wait = cpu_wait,
};
