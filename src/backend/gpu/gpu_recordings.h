/* gpu_recordings.h: what is kept of programs between runs, for the runs themselves (submit.c). The
 * lock is held in all of these. */
#ifndef BACKEND_GPU_RECORDINGS_H
#define BACKEND_GPU_RECORDINGS_H

#include "backend/gpu/gpu_programs.h"

/* A recording of the piece that can be run now. of: the list that the program is known by. */
rlx_status gpu_find_recording(struct gpu_programs *g, const struct command *of,
                              const struct gpu_piece *p, bool timed, struct gpu_recording **out,
                              struct diag *d);
/* One that is recorded for this once; what it was used for before must be done. */
rlx_status gpu_record_single(struct gpu_programs *g, const struct command *of,
                             const struct gpu_piece *p, struct gpu_recording **out, struct diag *d);
/* Its run was handed to the queue: the report will be filled when that is done, if the kernels have
 * something to say. */
void gpu_note_report(struct gpu_programs *g, struct gpu_recording *r, struct run_report *report);
/* Fill those that are due, in the order of their runs. */
rlx_status gpu_take_due(struct gpu_programs *g, struct diag *d);
/* Its run has failed, and nobody waits for it any more. */
void gpu_forget_report(struct gpu_programs *g, const struct run_report *report);

#endif
