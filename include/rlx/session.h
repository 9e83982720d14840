/* session.h: what else a session can do: params and states, inputs that stay on the device, several
 * runs at a time, copies for other threads, measurements. */
#ifndef RLX_SESSION_H
#define RLX_SESSION_H

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- params, bounds, states ------------------------------------------------------------- */

/* The model keeps it: all its sessions see it in their next runs, on any device, and so do sessions
 * made later. A clone with weights of its own keeps it to itself. STATE while one of them runs. */
RLX_API rlx_status rlx_session_set_param(rlx_session *s, const char *name, const rlx_tensor *value,
                                         rlx_error *err);
/* value->data must hold the param in value->dtype; its dims are filled in. */
RLX_API rlx_status rlx_session_get_param(rlx_session *s, const char *name, rlx_tensor *value,
                                         rlx_error *err);
/* Raw bytes of a param, exactly as declared. */
RLX_API rlx_status rlx_session_set_param_bytes(rlx_session *s, const char *name, const void *data,
                                               size_t bytes, rlx_error *err);
/* The dim is never larger than this: one program is compiled for the bound and runs at any smaller
 * size, given by the inputs' shapes or rlx_run_desc.dims. Before the first run, else STATE. The
 * text form says the same with "dim seq <= 512". */
RLX_API rlx_status rlx_session_set_bound(rlx_session *s, const char *dim, int64_t upper,
                                         rlx_error *err);
typedef struct rlx_bound_info {
    uint32_t size;
    int64_t bound; /* 0: none */
    bool by_value; /* the graph cannot shrink along it: it is compiled per value (so far known) */
} rlx_bound_info;
RLX_API rlx_status rlx_session_bound(rlx_session *s, const char *dim, rlx_bound_info *out,
                                     rlx_error *err);

/* Resident tensors: zero until set, kept between runs. */
RLX_API rlx_status rlx_session_set_state(rlx_session *s, const char *name, const rlx_tensor *value,
                                         rlx_error *err);
RLX_API rlx_status rlx_session_get_state(rlx_session *s, const char *name, rlx_tensor *value,
                                         rlx_error *err);

/* ---- handles: inputs that stay on the device between runs ---- */

/* Inputs and states. Runs need no input of that name any more; one given replaces the value. The
 * value has the input's shape, or fewer rows along a bounded dim (the rest is zero). Best before
 * the first run: binding one that was not bound before compiles again. */
RLX_API rlx_status rlx_session_bind_handle(rlx_session *s, const char *name,
                                           const rlx_tensor *value, rlx_error *err);
RLX_API bool rlx_session_has_handle(rlx_session *s, const char *name);
/* What the next run would read. value->data has value->bytes of room; dims are filled in. */
RLX_API rlx_status rlx_session_read_handle(rlx_session *s, const char *name, rlx_tensor *value,
                                           rlx_error *err);
RLX_API rlx_status rlx_session_unbind_handle(rlx_session *s, const char *name, rlx_error *err);
/* The value of another session's handle of that name, device to device; what does not fit is cut,
 * what is not there is zero. Both sessions are on one device. */
RLX_API rlx_status rlx_session_copy_handle(rlx_session *to, rlx_session *from, const char *name,
                                           rlx_error *err);

/* After each run, part of an output becomes part of the handle, on the device. */
typedef enum rlx_feed_mode {
    RLX_FEED_WHOLE = 0,  /* all of the output is the handle's new value */
    RLX_FEED_PREFIX = 1, /* the first `rows` rows of the output become the handle's first */
    RLX_FEED_ROW = 2,    /* `rows` rows from src_row on go to dst_row on; rows NULL: 1 */
    RLX_FEED_BATCH = 3   /* the same along the second axis, for every index of the first */
} rlx_feed_mode;
typedef struct rlx_feed {
    uint32_t size;
    rlx_feed_mode mode;
    size_t output;                        /* its number */
    const char *src_row, *dst_row, *rows; /* expressions over dims, "past+1"; NULL: 0 */
} rlx_feed;
RLX_API rlx_status rlx_session_set_feed(rlx_session *s, const char *name, const rlx_feed *feed,
                                        rlx_error *err);
RLX_API rlx_status rlx_session_clear_feed(rlx_session *s, const char *name, rlx_error *err);

/* ---- clones ---- */

#define RLX_CLONE_OWN_WEIGHTS 1u /* params set on one are not seen by the other */
/* An independent session, for another thread: the same model, bounds, states, handles and feeds. */
RLX_API rlx_status rlx_session_clone(rlx_session *s, unsigned flags, rlx_session **out,
                                     rlx_error *err);

/* ---- runs ------------------------------------------------------------------------------- */

/* As an input's data: it is what it was in the last run. */
RLX_API extern const char rlx_unchanged;
#define RLX_UNCHANGED ((void *)&rlx_unchanged)

/* Compiles the program for a run's sizes without running it (inputs' data may be NULL): so that the
 * first run costs what later ones do, or to look at its memory beforehand. */
RLX_API rlx_status rlx_session_prepare(rlx_session *s, const rlx_run_desc *run, rlx_error *err);

/* The same in two steps: submit copies the inputs and returns before the work is done; wait fills
 * the outputs and ends the run, and fails if the run did. Up to rlx_session_desc.in_flight runs may
 * be waited for, in any order. A device does what is submitted to it in that order, a CPU on a
 * thread of its own; submit waits where an input's place is still read by the run before. */
RLX_API rlx_status rlx_session_submit(rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                                      rlx_error *err);
RLX_API rlx_status rlx_session_poll(rlx_session *s, uint64_t ticket, bool *done, rlx_error *err);
RLX_API rlx_status rlx_session_wait(rlx_session *s, uint64_t ticket, rlx_run_desc *run,
                                    rlx_error *err);

/* ---- measurements ----------------------------------------------------------------------- */

/* Called after each step of each run, on the thread that runs or submits; a submit then returns
 * when the work is done. NULL stops it. */
typedef struct rlx_profile_event {
    const char *step; /* stable name */
    rlx_str label;    /* the node's */
    int32_t index, node;
    uint64_t start_ns, duration_ns;
    uint64_t bytes_read, bytes_written;
    uint64_t flops; /* that the node asks for, a multiply-add counting as two; 0: not known */
} rlx_profile_event;
typedef void (*rlx_profile_fn)(void *user, const rlx_profile_event *e);
RLX_API void rlx_session_set_profile(rlx_session *s, rlx_profile_fn fn, void *user);

typedef struct rlx_memory_info {
    uint32_t size;
    uint64_t weights, constants, activations, state; /* bytes; weights: those read as they are */
    uint64_t weight_copies;                          /* packed and combined weights */
    uint64_t lower_bound, unshared;                  /* of the activations */
    uint32_t steps, in_place;
    uint32_t buffers; /* that the activations lie in: several, where one would be too large */
    /* What an activation_budget costs and saves; zeros without one, and where the program came from
     * a file. */
    uint64_t recomputed;       /* steps that are computed again */
    uint64_t recomputed_flops; /* their arithmetic, */
    uint64_t flops;            /* and that of all the others */
    uint64_t kept;             /* bytes alive at once, in place of `alive`, if all were kept */
    uint64_t alive;
} rlx_memory_info;
RLX_API rlx_status rlx_session_memory(rlx_session *s, rlx_memory_info *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
