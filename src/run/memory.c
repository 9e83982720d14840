/* memory.c: regions of device memory, and how pieces are laid out in them. */
#include "run/memory.h"

#include "base/str.h"
#include "plan/segments.h"

/* ---- buffers ---- */

rlx_status memory_alloc(struct backend *b, const rlx_allocator *mem, uint64_t segment,
                        const uint64_t *bytes, size_t count, struct memory *out, struct diag *d)
{
    struct memory m = {.backend = b, .mem = mem, .count = count, .segment = segment};
    rlx_status status = RLX_OK;
    size_t size;

    if (!size_mul(count, sizeof *m.part, &size) || !(m.part = mem_alloc(mem, size)))
        return diag_no_memory(d, count);
    for (size_t i = 0; i < count && status == RLX_OK; i++) {
        m.part[i].bytes = bytes[i];
        m.bytes += bytes[i];
        status = b->ops->alloc(b, bytes[i], &m.part[i].buffer, d);
    }
    if (status != RLX_OK) {
        memory_release(&m);
        return status;
    }
    *out = m;
    return RLX_OK;
}

void memory_release(struct memory *m)
{
    for (size_t i = 0; i < m->count; i++)
        m->backend->ops->release(m->backend, m->part[i].buffer);
    if (m->part)
        mem_free(m->mem, m->part, m->count * sizeof *m->part);
    *m = (struct memory){0};
}

/* Something empty may begin where the last buffer ends. */
struct span memory_span(const struct memory *m, uint64_t offset, uint64_t bytes)
{
    if (m->count == 1)
        return (struct span){m->part[0].buffer, offset, bytes};
    if (m->count == 0 || bytes == 0)
        return (struct span){m->count ? m->part[0].buffer : NULL, 0, 0};
    return (struct span){m->part[offset / m->segment].buffer, offset % m->segment, bytes};
}

rlx_status memory_copy(const struct memory *to, const struct memory *from, struct diag *d)
{
    struct backend *b = to->backend;

    for (size_t i = 0; i < from->count; i++) {
        uint64_t bytes = from->part[i].bytes;
        if (bytes)
            TRY(b->ops->copy(b, (struct span){to->part[i].buffer, 0, bytes},
                             (struct span){from->part[i].buffer, 0, bytes}, d));
    }
    return RLX_OK;
}

/* ---- layouts ---- */

/* Each piece opens at most one buffer, the one after the last. */
rlx_status memory_layout_begin(struct memory_layout *l, uint64_t max_buffer, uint64_t align,
                               uint64_t *used, struct diag *d)
{
    *l = (struct memory_layout){.align = align, .used = used, .count = 1};
    used[0] = 0;
    return segment_size(max_buffer, align, &l->segment, d);
}

rlx_status memory_layout_add(struct memory_layout *l, const char *what, rlx_str name,
                             uint64_t bytes, uint64_t *offset, struct diag *d)
{
    uint64_t padded;

    if (l->segment && bytes > l->segment)
        return memory_too_large(what, name, bytes, l->segment, d);
    if (bytes > INT64_MAX || l->end > INT64_MAX ||
        !segment_append(l->segment, l->align, bytes, &l->end, offset))
        return diag_fail(d, RLX_ERROR_LIMIT, "the %ss together overflow 64 bits", what);
    padded = (bytes + l->align - 1) / l->align * l->align;
    l->end = *offset + padded;
    if (bytes) {
        size_t i = l->segment ? (size_t)(*offset / l->segment) : 0;
        l->used[i] = *offset - i * l->segment + padded;
        l->count = i + 1;
    }
    return RLX_OK;
}

uint64_t memory_layout_bytes(const struct memory_layout *l)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < l->count; i++)
        sum += l->used[i];
    return sum;
}

rlx_status memory_too_large(const char *what, rlx_str name, uint64_t bytes, uint64_t limit,
                            struct diag *d)
{
    return diag_fail(d, RLX_ERROR_LIMIT,
                     "%s \"%.*s\" takes %llu bytes, and a buffer holds at most %llu: raise "
                     "max_buffer if that is the limit, otherwise make it smaller or split it",
                     what, STR_ARG(name), (unsigned long long)bytes, (unsigned long long)limit);
}
