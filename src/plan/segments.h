/* segments.h: regions larger than one buffer may be (segments.c).
 *
 * A region keeps one space of 64-bit offsets. Where a device allocates only so much at a time, the
 * space is cut at the multiples of a *segment*, each of which becomes a buffer of its own: nothing
 * may lie across a cut, and the buffer of an offset is offset / segment. */
#ifndef PLAN_SEGMENTS_H
#define PLAN_SEGMENTS_H

#include "plan/plan.h"

/* The segment for buffers of up to max_buffer bytes and offsets that are multiples of align; 0 (no
 * segments) where max_buffer is 0. LIMIT when not even one alignment fits in a buffer. */
rlx_status segment_size(uint64_t max_buffer, uint64_t align, uint64_t *out, struct diag *d);

/* Places bytes after *end, across no cut, and moves *end past them. They must fit in a segment.
 * false: an offset does not fit in 64 bits. */
bool segment_append(uint64_t segment, uint64_t align, uint64_t bytes, uint64_t *end,
                    uint64_t *offset);

/* A gap of a region, and the best place in it. */
struct segment_gap {
    uint64_t from, to;
    uint64_t at, room; /* of the tightest piece between two cuts that holds it */
};
bool segment_fit(uint64_t segment, uint64_t size, struct segment_gap *gap);
/* The first place from `from` on, if nothing lies there. */
uint64_t segment_above(uint64_t segment, uint64_t size, uint64_t from);

/* How many buffers a region takes: at least 1. */
size_t segment_count(uint64_t segment, uint64_t bytes);
/* Of each buffer of a plan's region, how much is used; count entries in the arena. Only the regions
 * of activations and constants are cut by the plan. */
rlx_status segment_bytes(const struct plan *p, enum region region, struct arena *arena,
                         uint64_t **out, size_t *count, struct diag *d);

#endif
