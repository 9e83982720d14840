/* trace.h: what happened when, as a file for Perfetto or chrome://tracing.
 *
 * Every event is written at once and the closing bracket with it, to be overwritten by the next
 * event: the file is valid JSON whenever it is looked at, after a crash as well. Every thread and
 * every device has a track of its own, which is named when its first event comes. All of these take
 * NULL for "no trace is wanted" and then do nothing. */
#ifndef CONTEXT_TRACE_H
#define CONTEXT_TRACE_H

#include "base/diag.h"

struct trace;

rlx_status trace_open(struct trace **out, const char *path, const rlx_allocator *mem,
                      struct diag *d);
void trace_close(struct trace *t);

uint64_t trace_now(const struct trace *t); /* a start for a span; 0 without a trace */

/* What a span may say besides its name; zeros and none are left out, except by a step. */
struct trace_args {
    const char *category; /* the backend; NULL: "rlx" */
    const char *device;   /* whose queue did it: it is on that track; NULL: this thread did */
    bool is_step;
    int32_t step;
    rlx_str label;
    uint64_t bytes;
};
/* From start to end, of CLOCK_MONOTONIC in ns; end 0: now. Any thread may call it. */
void trace_span(struct trace *t, const char *name, uint64_t start, uint64_t end,
                const struct trace_args *args);

#endif
