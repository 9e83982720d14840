/* gpu_run.h: what the files of this folder share: programs on their way through a GPU's queue.
 *
 * A program is known by the list of its commands, and has a few recordings, one for each set of
 * sizes that came up lately: a run whose sizes were seen before is handed to the queue as it is.
 * Where a program has loops whose rounds the host counts, it is recorded in pieces, and a run waits
 * for the words that tell whether to go on. The lock is held in all of these. */
#ifndef BACKEND_GPU_RUN_H
#define BACKEND_GPU_RUN_H

#include "backend/gpu/gpu_driver.h"

/* Launches that are recorded together: those of all these commands, but of the first one only those
 * from `first` on, and of the last one only those before `end`. */
struct gpu_piece {
    const struct command *list;
    size_t count;
    uint32_t first, end;
};
/* Those of command i: [*from, *to). */
static inline void gpu_piece_launches(const struct gpu_piece *p, size_t i, uint32_t *from,
                                      uint32_t *to)
{
    const struct gpu_work *w = p->list[i].work;

    *from = i == 0 ? p->first : 0;
    *to = p->list[i].idle ? 0 : w->launches;
    if (i + 1 == p->count && p->end < *to)
        *to = p->end;
}

/* gpu_record.c: a piece as a recording; what it needs of the host's memory at any of its sizes; its
 * run, which gets the next ticket; the first words of its fault after that. */
rlx_status gpu_record(struct gpu_device *g, struct gpu_recording *r, const struct gpu_piece *p,
                      struct diag *d);
rlx_status gpu_reserve(struct gpu_device *g, struct gpu_recording *r, const struct gpu_piece *p,
                       struct diag *d);
rlx_status gpu_run(struct gpu_device *g, struct gpu_recording *r, const struct gpu_piece *p,
                   struct diag *d);
rlx_status gpu_read_fault(struct gpu_device *g, struct gpu_recording *r, uint32_t *word,
                          uint32_t words, struct diag *d);
void gpu_drop_recording(struct gpu_device *g, struct gpu_recording *r);
/* The kernels that its launches take where buffers overlap. */
rlx_status gpu_prepare_launches(struct gpu_device *g, const struct command *c, struct diag *d);

/* gpu_recordings.c: a recording of the piece that can be run now. of: the list that the program is
 * known by. */
rlx_status gpu_find_recording(struct gpu_device *g, const struct command *of,
                              const struct gpu_piece *p, bool timed, struct gpu_recording **out,
                              struct diag *d);
/* One that is recorded for this once; what it was used for before must be done. */
rlx_status gpu_record_single(struct gpu_device *g, const struct command *of,
                             const struct gpu_piece *p, struct gpu_recording **out, struct diag *d);
/* Its run was handed to the queue: the report will be filled when that is done, if the kernels have
 * something to say. */
void gpu_note_report(struct gpu_device *g, struct gpu_recording *r, struct run_report *report);
/* Fill those that are due, in the order of their runs. */
rlx_status gpu_take_due(struct gpu_device *g, struct diag *d);
/* Its run has failed, and nobody waits for it any more. */
void gpu_forget_report(struct gpu_device *g, const struct run_report *report);
/* The end: nothing is under way any more. */
void gpu_drop_programs(struct gpu_device *g);

/* gpu_queue.c: hand commands to the queue, in one call; each has the next ticket. */
rlx_status gpu_queue(struct gpu_device *g, void *const *commands, uint32_t count, struct diag *d);
/* Is that ticket done? Asks the driver when it is not known to be. */
bool gpu_is_done(struct gpu_device *g, uint64_t ticket);
/* Until all that was asked for is done. */
void gpu_settle(struct gpu_device *g);

/* gpu_batches.c */
rlx_status gpu_open_batches(struct gpu_device *g, struct diag *d);
void gpu_close_batches(struct gpu_device *g);
rlx_status gpu_submit_batch(struct gpu_device *g, struct diag *d);
/* The same, but the caller hands them to the queue, first of all; none: NULL. */
rlx_status gpu_end_batch(struct gpu_device *g, void **out, struct diag *d);

/* gpu_hazards.c: must there be a barrier before a launch that touches these? It notes them. */
rlx_status gpu_touch(struct gpu_hazards *h, const struct gpu_touch *touch, size_t count,
                     bool *barrier, struct diag *d);

static inline void gpu_flush(struct gpu_device *g, const struct buffer *buf, uint64_t offset,
                             uint64_t bytes)
{
    if (!buf->coherent)
        g->driver->flush(g, buf, offset, bytes);
}
static inline void gpu_invalidate(struct gpu_device *g, const struct buffer *buf, uint64_t offset,
                                  uint64_t bytes)
{
    if (!buf->coherent)
        g->driver->invalidate(g, buf, offset, bytes);
}

#endif
