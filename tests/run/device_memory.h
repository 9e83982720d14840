/* device_memory.h: one buffer of a device, for tests of what it does with bytes. */
#ifndef TESTS_RUN_DEVICE_MEMORY_H
#define TESTS_RUN_DEVICE_MEMORY_H

#include <string.h>

#include "../test.h"
#include "backend/backend.h"

/* Those that a test is for: its kind of device, and with the CPU also the null device. */
struct device_names {
    const char *at[2];
    size_t count;
};

static inline struct device_names devices_of(const struct test *t)
{
    const char *device = test_device(t);

    return (struct device_names){{device, "null"}, strcmp(device, "cpu") == 0 ? 2 : 1};
}

struct device_memory {
    struct flags flags;
    struct backend *backend;
    struct buffer *buffer;
    uint64_t bytes;
    struct diag diag;
};

/* To be closed also when it could not be opened. */
static inline bool memory_open(struct test *t, struct device_memory *m, const char *device,
                               uint64_t bytes)
{
    struct device_desc desc = {.mem = mem_default(), .flags = &m->flags, .threads = 1};
    const rlx_flag flag = {"GPU_CACHE", "0"};

    *m = (struct device_memory){.bytes = bytes};
    diag_init(&m->diag, "memory");
    if (!expect_ok(t, flags_read(&m->flags, &flag, 1, NULL, mem_default(), NULL, NULL, &m->diag)))
        return false;
    rlx_status s = backend_find(rlx_cstr(device))->open(&desc, &m->backend, &m->diag);
    return !test_no_device(t, device, s, m->diag.first.message) &&
           expect_ok(t, m->backend->ops->alloc(m->backend, bytes, &m->buffer, &m->diag));
}

static inline void memory_close(struct device_memory *m)
{
    if (m->backend) {
        m->backend->ops->release(m->backend, m->buffer);
        m->backend->ops->close(m->backend);
    }
    flags_free(&m->flags);
}

static inline struct span memory_part(const struct device_memory *m, uint64_t offset,
                                      uint64_t bytes)
{
    return (struct span){m->buffer, offset, bytes};
}

static inline rlx_status memory_put(struct device_memory *m, struct span to, const void *data)
{
    return m->backend->ops->write(m->backend, to, data, &m->diag);
}

static inline rlx_status memory_get(struct device_memory *m, struct span from, void *data)
{
    return m->backend->ops->read(m->backend, from, data, &m->diag);
}

static inline rlx_status memory_move(struct device_memory *m, struct span to, struct span from)
{
    return m->backend->ops->copy(m->backend, to, from, &m->diag);
}

static inline rlx_status memory_set(struct device_memory *m, struct span to, uint8_t byte)
{
    return m->backend->ops->fill(m->backend, to, byte, &m->diag);
}

#endif
