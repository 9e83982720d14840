/* gpu_recordings.c: programs and their recordings, kept from one run to the next.
 *
 * The recording of a key can be run again once its report is taken, as it has one place for what
 * kernels report. A key without one takes the recording that was used longest ago. */
#include <stdalign.h>
#include <stddef.h>

#include "backend/gpu/gpu_run.h"
#include "base/map.h"

#define KEPT 8 /* recordings of one program; one more is for single steps */

struct gpu_program { /* or a piece of one */
    struct gpu_program *next;
    const struct command *list; /* all of it */
    size_t command;             /* where the piece begins */
    uint32_t launch;
    alignas(max_align_t) unsigned char recording[]; /* KEPT + 1, as the driver has them */
};

static size_t program_bytes(const struct gpu_device *g)
{
    return sizeof(struct gpu_program) + (KEPT + 1) * g->driver->recording_bytes;
}

static struct gpu_recording *recording(const struct gpu_device *g, struct gpu_program *p, size_t i)
{
    return (struct gpu_recording *)(void *)(p->recording + i * g->driver->recording_bytes);
}

/* Those that were asked for last come first, as loops ask for the same again and again. */
static rlx_status find_program(struct gpu_device *g, const struct command *list,
                               const struct gpu_piece *piece, struct gpu_program **out,
                               struct diag *d)
{
    size_t command = (size_t)(piece->list - list);
    struct gpu_program **at = &g->programs;

    while (*at &&
           ((*at)->list != list || (*at)->command != command || (*at)->launch != piece->first))
        at = &(*at)->next;
    struct gpu_program *p = *at;
    if (p) {
        *at = p->next;
    } else {
        p = mem_alloc(g->base.mem, program_bytes(g));
        if (!p)
            return diag_no_memory(d, program_bytes(g));
        p->list = list;
        p->command = command;
        p->launch = piece->first;
    }
    p->next = g->programs;
    *out = g->programs = p;
    return RLX_OK;
}

/* ---- recordings ---- */

static uint64_t key_of(const struct gpu_device *g, const struct gpu_piece *p, bool timed)
{
    uint64_t h = hash_mix(hash_mix(g->released, p->end), 2 * p->count + timed);

    for (size_t i = 0; i < p->count; i++)
        h = hash_mix(h, p->list[i].idle ? 0 : ((const struct gpu_work *)p->list[i].work)->stamp);
    return h;
}

/* The recording of this key, if it can be run now; else the one that was used longest ago. */
static struct gpu_recording *choose(const struct gpu_device *g, struct gpu_program *p, uint64_t key,
                                    bool *found)
{
    struct gpu_recording *oldest = recording(g, p, 0);

    *found = false;
    for (size_t i = 0; i < KEPT; i++) {
        struct gpu_recording *r = recording(g, p, i);
        if (r->valid && r->key == key && !r->report && !g->options.no_cache) {
            *found = true;
            return r;
        }
        if (r->used < oldest->used)
            oldest = r;
    }
    return oldest;
}

/* All recordings of a program have what they may want from its first run on, so that later ones ask
 * for nothing. */
static rlx_status reserve(struct gpu_device *g, struct gpu_program *p,
                          const struct gpu_piece *piece, struct diag *d)
{
    for (size_t i = 0; i < KEPT; i++)
        TRY(gpu_reserve(g, recording(g, p, i), piece, d));
    return RLX_OK;
}

rlx_status gpu_find_recording(struct gpu_device *g, const struct command *of,
                              const struct gpu_piece *piece, bool timed, struct gpu_recording **out,
                              struct diag *d)
{
    uint64_t key = key_of(g, piece, timed);
    struct gpu_program *p;
    bool found;

    TRY(find_program(g, of, piece, &p, d));
    TRY(gpu_take_due(g, d));
    struct gpu_recording *r = *out = choose(g, p, key, &found);
    r->used = g->runs;
    if (found)
        return RLX_OK;
    TRY(gpu_await(g, r->ticket, d));
    TRY(gpu_take_due(g, d));
    TRY(reserve(g, p, piece, d));
    r->timed = timed;
    r->key = key;
    return gpu_record(g, r, piece, d);
}

rlx_status gpu_record_single(struct gpu_device *g, const struct command *of,
                             const struct gpu_piece *piece, struct gpu_recording **out,
                             struct diag *d)
{
    struct gpu_program *p;

    TRY(find_program(g, of, &(struct gpu_piece){.list = of}, &p, d));
    *out = recording(g, p, KEPT);
    TRY(gpu_reserve(g, *out, piece, d));
    return gpu_record(g, *out, piece, d);
}

/* ---- reports ---- */

void gpu_note_report(struct gpu_device *g, struct gpu_recording *r, struct run_report *report)
{
    if (!r->faults)
        return;
    r->report = report;
    r->later = NULL;
    if (g->due)
        g->last_due->later = r;
    else
        g->due = r;
    g->last_due = r;
}

/* Word 0: 0, or 1 + the step; then where in the index operand, and what was there, 64 bits each.
 * The first to tell is heard. */
static rlx_status take(struct gpu_device *g, struct gpu_recording *r, struct diag *d)
{
    struct run_report *report = r->report;
    uint32_t word[5];

    g->due = r->later;
    r->report = NULL;
    TRY(gpu_read_fault(g, r, word, 5, d));
    if (word[0] == 0 || report->step >= 0)
        return RLX_OK;
    report->step = (int32_t)(word[0] - 1);
    report->position = (int64_t)((uint64_t)word[2] << 32 | word[1]);
    report->value = (int64_t)((uint64_t)word[4] << 32 | word[3]);
    return RLX_OK;
}

rlx_status gpu_take_due(struct gpu_device *g, struct diag *d)
{
    while (g->due && gpu_is_done(g, g->due->ticket))
        TRY(take(g, g->due, d));
    return RLX_OK;
}

void gpu_forget_report(struct gpu_device *g, const struct run_report *report)
{
    struct gpu_recording **at = &g->due;

    g->last_due = NULL;
    while (*at) {
        struct gpu_recording *r = *at;
        if (r->report == report) {
            r->report = NULL;
            *at = r->later;
        } else {
            g->last_due = r;
            at = &r->later;
        }
    }
}

/* ---- the end ---- */

static void drop_program(struct gpu_device *g, struct gpu_program *p)
{
    for (size_t i = 0; i <= KEPT; i++) {
        struct gpu_recording *r = recording(g, p, i);
        if (r->report)
            gpu_forget_report(g, r->report);
        gpu_drop_recording(g, r);
    }
    mem_free(g->base.mem, p, program_bytes(g));
}

void gpu_unload(struct backend *b, const struct command *list)
{
    struct gpu_device *g = gpu_device_of(b);

    pthread_mutex_lock(&g->lock);
    bool settled = false;
    for (struct gpu_program **at = &g->programs; *at;) {
        struct gpu_program *p = *at;
        if (p->list != list) {
            at = &p->next;
            continue;
        }
        if (!settled)
            gpu_settle(g);
        settled = true;
        *at = p->next;
        drop_program(g, p);
    }
    pthread_mutex_unlock(&g->lock);
}

void gpu_drop_programs(struct gpu_device *g)
{
    while (g->programs) {
        struct gpu_program *p = g->programs;
        g->programs = p->next;
        drop_program(g, p);
    }
}
