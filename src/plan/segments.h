/* segments.h: regions larger than one buffer may be (segments.c).
 *
 * A region keeps one space of 64-bit offsets. Where a device allocates only so much at a time, the
 * space is cut at the multiples of a *segment*, each of which becomes a buffer of its own: nothing
 * may lie across a cut, and the buffer of an offset is offset / segment. */
#ifndef PLAN_SEGMENTS_H
#define PLAN_SEGMENTS_H

#include "plan/plan.h"

/* The segment for buffers of up to max_buffer bytes and offsets that are multiples of align; 0,
 * that is none, where max_buffer is 0. LIMIT when not even one alignment fits in a buffer. */
rlx_status segment_size(uint64_t max_buffer, uint64_t align, uint64_t *out, struct diag *d);

/* Place bytes behind *end, across no cut, and move *end behind them. They fit in a segment. false:
 * 64 bits do not suffice. */
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

/* How many buffers a region takes: 1 at least. */
size_t segment_count(uint64_t segment, uint64_t bytes);
/* Of each buffer of a plan's region, how much is used; count entries in the arena. Only the
 * activations and the constants are the plan's to cut. */
rlx_status segment_bytes(const struct plan *p, enum region region, struct arena *arena,
                         uint64_t **out, size_t *count, struct diag *d);

#endif
