/* cpu_device.c: the CPU as a device: host memory, and commands that get their addresses. Whoever
 * reads or writes a buffer here waits for the jobs that use it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "base/str.h"

struct cpu_device *cpu_device_of(struct backend *b)
{
    return (struct cpu_device *)b;
}

static void cpu_close(struct backend *b)
{
    struct cpu_device *dev = cpu_device_of(b);

    cpu_queue_close(&dev->queue);
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
    cpu_queue_init(&dev->queue);
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
        out->native[f] =
            k->family[f] != NULL || (family_info((enum op_family)f)->traits & RUNS_GRAPHS) != 0;
    out->native[FAMILY_custom] = true;
    out->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    out->threads = dev ? pool_threads(dev->pool) : 0;
    cpu_level_names(out->features, sizeof out->features);
    snprintf(out->description, sizeof out->description, "host CPU, %s kernels", k->isa);
}

/* Large buffers begin where a huge page may: reading weights through fewer pages is worth up to a
 * third of a run that does little else. They are also allocated separately (base/mem.c): they take
 * memory only once they are written, and all of it is returned when they are freed. */
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
    cpu_await(cpu_device_of(b), buf, true);
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
    *buf = (struct buffer){.data = (uint8_t *)data, .bytes = bytes, .wrapped = true};
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

    if (!to)
        return RLX_ERROR_INTERNAL;
    cpu_await(cpu_device_of(b), dst.buffer, true);
    if (dst.bytes)
        memcpy(to, src, (size_t)dst.bytes);
    return RLX_OK;
}

static rlx_status cpu_read(struct backend *b, struct span src, void *dst, struct diag *d)
{
    const uint8_t *from = bytes_of(src, d);

    if (!from)
        return RLX_ERROR_INTERNAL;
    cpu_await(cpu_device_of(b), src.buffer, false);
    if (src.bytes)
        memcpy(dst, from, (size_t)src.bytes);
    return RLX_OK;
}

static rlx_status cpu_copy(struct backend *b, struct span dst, struct span src, struct diag *d)
{
    if (!bytes_of(dst, d) || !bytes_of(src, d) || dst.bytes != src.bytes)
        return RLX_ERROR_INTERNAL;
    cpu_copy_in_turn(cpu_device_of(b), dst, src);
    return RLX_OK;
}

static rlx_status cpu_fill(struct backend *b, struct span dst, uint8_t byte, struct diag *d)
{
    uint8_t *to = bytes_of(dst, d);

    if (!to)
        return RLX_ERROR_INTERNAL;
    cpu_await(cpu_device_of(b), dst.buffer, true);
    memset(to, byte, (size_t)dst.bytes);
    return RLX_OK;
}

#define FEW_OPERANDS 32

static rlx_status cpu_pack(struct backend *b, struct command *c, int32_t operand,
                           struct span source, struct diag *d)
{
    struct cpu_work *w = c->work;
    void *data = w->in[operand].data;

    cpu_await_operands(cpu_device_of(b), c, 1);
    cpu_await(cpu_device_of(b), source.buffer, false);
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
    cpu_await(dev, packed.buffer, false);
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
    .settle = cpu_settle,
    .unload = cpu_settle,
    .submit = cpu_submit,
    .run = cpu_run,
    .poll = cpu_poll,
    .wait = cpu_wait,
};
