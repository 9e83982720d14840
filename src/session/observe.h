/* observe.h: what looks at a run step by step: profiles, traces, the search for NaN, watchers.
 *
 * All of them hang on the one hook a backend calls after each step, when the step's results are
 * still what it wrote: later steps may take over the bytes. */
#ifndef SESSION_OBSERVE_H
#define SESSION_OBSERVE_H

#include "rlx/tools.h"
#include "run/scan.h"
#include "session/session.h"

struct record { /* of a value, since the run began */
    struct scan scan;
    bool known;
};

struct observer {
    rlx_watch_fn watch;
    void *watch_user;
    rlx_numerics_mode mode;
    rlx_numerics *found;   /* by flight: in its run; the session's */
    rlx_numerics *now;     /* the one of the run under way */
    rlx_numerics last;     /* of the run that was waited for last */
    struct record *record; /* by value of the program; grows when a larger program comes */
    size_t record_count;
    int32_t previous; /* the last value before now->step that was finite; -1: none */
    uint64_t chunk[2048];
};

/* When the session is made, with its final desc, and when it ends. */
rlx_status observe_open(struct rlx_session *s, struct diag *d);
void observe_close(struct rlx_session *s);

/* Before a run of s->current, which becomes that flight. *hooks: NULL when nobody looks. */
rlx_status observe_begin(struct rlx_session *s, const struct flight *f,
                         const struct run_hooks **hooks, struct diag *d);
/* When it has been waited for, and how that went. What it showed is the session's last; NUMERIC if
 * the session is to fail on it and the run has not failed otherwise. */
rlx_status observe_end(struct rlx_session *s, const struct flight *f, rlx_status so_far,
                       struct diag *d);

/* A span of this session's trace, if there is one. */
uint64_t observe_now(const struct rlx_session *s);
void observe_span(const struct rlx_session *s, const char *name, uint64_t start);

/* Called after each step that made a value. */
rlx_status observe_watch(struct rlx_session *s, rlx_watch_fn fn, void *user, struct diag *d);
/* Elements of a node of the current program. */
rlx_status observe_peek(struct rlx_session *s, int32_t node, uint64_t first, size_t count,
                        double *out, struct diag *d);

/* numerics.c */
void numerics_begin(struct rlx_session *s, const struct flight *f);
void numerics_step(struct rlx_session *s, int32_t step);
rlx_status numerics_end(struct rlx_session *s, const struct flight *f, rlx_status so_far,
                        struct diag *d);
/* What the last run showed; STATE where the session does not look. */
rlx_status numerics_of(struct rlx_session *s, rlx_numerics *out, struct diag *d);
void numerics_print(const rlx_numerics *n, rlx_write_fn write, void *user);
/* A value of the present program, looked at now. */
void stats_of_value(struct rlx_session *s, int32_t value, struct scan *scan);
void stats_describe(const struct rlx_session *s, int32_t value, const struct scan *scan,
                    rlx_value_stats *out);

#endif
