/* memory.h: a region of device memory: one space of offsets in one buffer or in several.
 *
 * A device may not allocate as much at a time as a region needs. Such a region was laid out so that
 * nothing lies across a multiple of its segment (plan/segments.h): every part is a span of one
 * buffer, and code that works on spans need not know about it. */
#ifndef RUN_MEMORY_H
#define RUN_MEMORY_H

#include "backend/backend.h"

struct memory {
    struct backend *backend;
    const rlx_allocator *mem;
    struct memory_part {
        struct buffer *buffer;
        uint64_t bytes;
    } * part; /* NULL: nothing was allocated */
    size_t count;
    uint64_t segment; /* 0: one buffer holds all */
    uint64_t bytes;   /* of all buffers together */
};

/* One zeroed buffer for each of the sizes, of which there is at least one. After a failure nothing
 * is allocated. */
rlx_status memory_alloc(struct backend *b, const rlx_allocator *mem, uint64_t segment,
                        const uint64_t *bytes, size_t count, struct memory *out, struct diag *d);
void memory_release(struct memory *m); /* also one that is all zeros */

struct span memory_span(const struct memory *m, uint64_t offset, uint64_t bytes);
/* Copies everything into another region of the same layout. */
rlx_status memory_copy(const struct memory *to, const struct memory *from, struct diag *d);

/* A region that is laid out piece by piece: append the pieces, then allocate. */
struct memory_layout {
    uint64_t segment, align, end;
    uint64_t *used; /* of each buffer */
    size_t count;
};
/* used: room for one entry per piece, and at least one. LIMIT when max_buffer is below the
 * alignment. */
rlx_status memory_layout_begin(struct memory_layout *l, uint64_t max_buffer, uint64_t align,
                               uint64_t *used, struct diag *d);
/* LIMIT when it is too large; the message names it as `what "name"`. */
rlx_status memory_layout_add(struct memory_layout *l, const char *what, rlx_str name,
                             uint64_t bytes, uint64_t *offset, struct diag *d);
uint64_t memory_layout_bytes(const struct memory_layout *l);

/* LIMIT: one thing is larger than a buffer may be. */
rlx_status memory_too_large(const char *what, rlx_str name, uint64_t bytes, uint64_t limit,
                            struct diag *d);

#endif
