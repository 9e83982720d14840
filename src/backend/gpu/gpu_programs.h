/* gpu_programs.h: programs on their way through a GPU's queue, the same for every driver.
 *
 * A program is known by the list of its commands, and has a few recordings, one for each set of
 * sizes that came up lately: a run whose sizes were seen before is handed to the queue as it is.
 * What a recording holds, and how it gets to the queue, is the driver's (struct gpu_queue). Where a
 * program has loops whose rounds the host counts, it is recorded in pieces, and a run waits for the
 * words that tell whether to go on.
 *
 * Everything that goes to the queue gets the next ticket, and tickets are done in order. */
#ifndef BACKEND_GPU_PROGRAMS_H
#define BACKEND_GPU_PROGRAMS_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/gpu/gpu_kernels.h"

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

/* A driver's recording begins with this; all zeros is one that was never made. */
struct gpu_recording {
    bool valid, timed, faults; /* timed: it measures every command. faults: kernels tell of indices;
                                  record sets it */
    uint64_t key;
    uint64_t used;               /* when; 0: never */
    uint64_t ticket;             /* of its last run */
    struct run_report *report;   /* to be filled when that is done; NULL: nobody waits for one */
    struct gpu_recording *later; /* the next one that has a report to fill */
};

/* What a driver brings; the lock is held where nothing else is said. */
struct gpu_queue {
    size_t recording_bytes;
    /* Take the memory that a recording of the piece may want at any of its sizes. All recordings of
     * a program have it from its first run on, so that later ones ask for none. NULL: they never
     * do.
     */
    rlx_status (*reserve)(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                          struct diag *d);
    /* What was recorded before is done. It may be run any number of times, not at once. */
    rlx_status (*record)(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                         struct diag *d);
    /* Hand it to the queue, behind all that came before, and note its ticket. */
    rlx_status (*run)(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                      struct diag *d);
    /* The first words of its fault, after a run that is done. */
    rlx_status (*read_fault)(struct backend *b, struct gpu_recording *r, uint32_t *word,
                             uint32_t words, struct diag *d);
    /* When command i of a timed recording that is done began and ended on the device's clock, in
     * ns; false: nobody knows. The lock is not held. */
    bool (*read_times)(struct backend *b, struct gpu_recording *r, size_t i, uint64_t out[2]);
    void (*drop)(struct backend *b, struct gpu_recording *r);

    rlx_status (*check)(struct backend *b, struct diag *d); /* DEVICE_LOST, if it is */
    bool (*is_done)(struct backend *b, uint64_t ticket);
    /* Until it is; the lock may be held or not. */
    rlx_status (*await)(struct backend *b, uint64_t ticket, struct diag *d);
    /* Until all that was asked for is done. */
    void (*settle)(struct backend *b);
};

struct gpu_program; /* gpu_recordings.c */

struct gpu_programs { /* part of a driver's device */
    struct backend *backend;
    const struct gpu_queue *queue;
    pthread_mutex_t *lock; /* the device's; of all that follows too */
    atomic_bool *lost;
    uint64_t lose_after; /* runs and rounds of loops until it is set, for tests; 0: never */
    bool no_times;       /* the device's clock is of no use */
    bool no_cache;       /* every run is recorded anew */

    _Atomic uint64_t released; /* counts buffers that are gone: a recording may name one */
    uint64_t runs;
    struct gpu_program *first;
    struct gpu_recording *due, *last_due; /* reports to be filled, in the order of tickets */
};

/* backend_ops.submit and .unload. */
rlx_status gpu_submit(struct gpu_programs *g, const struct command *list, size_t count,
                      const struct run_hooks *hooks, struct run_report *report, uint64_t *ticket,
                      struct diag *d);
void gpu_unload(struct gpu_programs *g, const struct command *list);
/* Fill the reports of all runs that are done: for poll and wait. Takes the lock. */
rlx_status gpu_take_reports(struct gpu_programs *g, struct diag *d);
/* The end: nothing is under way any more. */
void gpu_drop_programs(struct gpu_programs *g);

/* ---- what comes between launches (gpu_hazards.c) ---- */

/* Since the last barrier, which bytes were read and written? */
struct gpu_hazards {
    const rlx_allocator *mem;
    VEC(struct gpu_touch) touched;
};
struct gpu_touch {
    struct span span;
    bool writes;
};
/* Must there be a barrier before a launch that touches these? It notes them. */
rlx_status gpu_touch(struct gpu_hazards *h, const struct gpu_touch *touch, size_t count,
                     bool *barrier, struct diag *d);

/* ---- gpu_features.c ---- */

/* Features that RLX_GPU_WITHOUT names become false; so does clock, for timestamps. ARGUMENT for a
 * name that is none. flags may be NULL. */
rlx_status gpu_leave_out(const struct flags *flags, struct kc_features *f, bool *clock,
                         struct diag *d);

#endif
