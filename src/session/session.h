/* session.h: a model opened on a device: its programs, states, handles, and runs in flight. */
#ifndef SESSION_H
#define SESSION_H

#include "compile/compile.h"
#include "rlx/session.h"
#include "rlx/tools.h"

/* After each run, part of an output becomes part of a handle. */
struct feed {
    bool is_set;
    size_t output;
    int32_t axis;          /* that rows are counted along */
    bool all;              /* rows: as many as the output has */
    ir_dim from, to, rows; /* in the session's own dim table */
};

/* An input that stays on the device between runs. */
struct handle {
    ir_value leaf;
    struct buffer *buffer; /* NULL: not bound */
    uint64_t bytes;
    struct ir_type layout; /* how the buffer is laid out: bounded dims at their bounds */
    struct ir_type held;   /* what of it holds data, from the start of each axis */
    bool direct;           /* programs read the buffer itself; else it is copied before each run */
    struct feed feed;
};

/* A run that has begun and whose outputs nobody has taken yet. */
struct flight {
    uint64_t ticket;         /* 0: free */
    uint64_t backend_ticket; /* 0: it is done */
    struct program *program;
    struct run_report report;
    struct ir_type *type; /* by output, as of that run */
    bool kept;            /* the outputs were copied to `outputs`, one after the other */
    struct memory outputs;
    uint64_t *offset;    /* in it, by output */
    uint64_t *used;      /* scratch of its layout */
    struct span *wanted; /* scratch: those that are about to be read */
};

struct rlx_session {
    struct rlx_model *model;
    struct rlx_device *device;
    rlx_allocator host; /* of what its programs are compiled into, and on the way */
    struct mem_bound host_bound;
    const struct session_kind *kind;
    struct session_parts *parts; /* of session_staged, which has little else; otherwise NULL */
    bool plan_only; /* compiled up to the plan: what it would take is known, it takes nothing and
                     * cannot run */
    struct store *store;
    struct memory state;
    uint64_t *state_offset;           /* by node of the model's entry graph */
    rlx_session_desc desc;            /* max_buffer: the device's if that is lower */
    rlx_debug_desc debug;             /* desc.debug */
    struct target target;             /* the device, with that max_buffer */
    struct compiled_program *program; /* room for desc.programs of them */
    size_t program_count;
    uint64_t uses;
    struct program *current; /* of the last run, or of a static model */
    size_t symbol_count;
    int64_t *binding; /* by symbol: of this run; -1: not bound */
    int64_t *key;     /* by symbol: which program that asks for, as compiled_program.binding */
    int64_t *upper;   /* by symbol: its bound, or as binding; scratch */
    int64_t *bound;   /* by symbol; 0: none */
    bool *by_value;   /* by symbol: it has a bound, but something cannot shrink below it */
    bool *keep;       /* by symbol: it stays symbolic in programs */
    bool uses_rows;   /* the graph has an axis of "rows", which may follow from batch and seq */
    bool has_run;
    struct dim_table *dims; /* the model's, and what feeds name besides */
    struct handle *handle;  /* one per input of the model */
    size_t handle_count;
    struct flight *flight; /* desc.in_flight of them */
    size_t flights;        /* taken */
    uint64_t tickets;
    struct upload_mark *mark; /* by input of the model: what is in its slot */
    rlx_profile_fn profile;
    void *profile_user;
    struct run_hooks hooks;
    struct observer *observer; /* what else looks at runs: observe.h; NULL: nothing */
    rlx_compiled_info compiled;
    struct arena arena;
};

#define SESSION_PROGRAMS 4
#define SESSION_FLIGHTS 2

/* ---- what rooms above call ---- */

rlx_status session_create(struct rlx_model *m, struct rlx_device *dev, const rlx_session_desc *desc,
                          struct rlx_session **out, struct diag *d);
/* See rlx_session.plan_only; with the defaults, as the context's flags make them. */
rlx_status session_plan_only(struct rlx_model *m, struct rlx_device *dev, struct rlx_session **out,
                             struct diag *d);
rlx_status session_clone(struct rlx_session *s, unsigned flags, struct rlx_session **out,
                         struct diag *d);
void session_destroy(struct rlx_session *s); /* NULL is fine */
rlx_status session_set_bound(struct rlx_session *s, const char *dim, int64_t upper, struct diag *d);
rlx_status session_bound(struct rlx_session *s, const char *dim, rlx_bound_info *out,
                         struct diag *d);
void session_set_profile(struct rlx_session *s, rlx_profile_fn fn, void *user);

/* session_values.c */
rlx_status session_set_param(struct rlx_session *s, const char *name, const rlx_tensor *value,
                             struct diag *d);
rlx_status session_set_param_bytes(struct rlx_session *s, const char *name, const void *data,
                                   size_t bytes, struct diag *d);
rlx_status session_get_param(struct rlx_session *s, const char *name, rlx_tensor *value,
                             struct diag *d);
rlx_status session_set_state(struct rlx_session *s, const char *name, const rlx_tensor *value,
                             struct diag *d);
rlx_status session_get_state(struct rlx_session *s, const char *name, rlx_tensor *value,
                             struct diag *d);

/* session_run.c */
rlx_status session_run(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
rlx_status session_submit(struct rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                          struct diag *d);
rlx_status session_prepare(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
/* ARGUMENT where s, run or one of run's lists is NULL. */
rlx_status session_check_run(const struct rlx_session *s, const rlx_run_desc *run, struct diag *d);

/* handle.c, feed.c: see rlx_session_bind_handle and so on. A state stands for a handle of its name.
 */
rlx_status handle_bind(struct rlx_session *s, const char *name, const rlx_tensor *value,
                       struct diag *d);
rlx_status handle_read(struct rlx_session *s, const char *name, rlx_tensor *value, struct diag *d);
rlx_status handle_unbind(struct rlx_session *s, const char *name, struct diag *d);
rlx_status handle_copy(struct rlx_session *to, struct rlx_session *from, const char *name,
                       struct diag *d);
rlx_status feed_set(struct rlx_session *s, const char *name, const rlx_feed *feed, struct diag *d);
rlx_status feed_clear(struct rlx_session *s, const char *name, struct diag *d);
bool handle_is_state(const struct rlx_session *s, const char *name);
struct handle *handle_of(struct rlx_session *s, rlx_str name); /* bound ones only; otherwise NULL */

/* session_save.c, session_load.c, estimate.c */
rlx_status session_save(struct rlx_session *s, const char *path, unsigned flags, struct diag *d);
rlx_status session_load(struct rlx_device *dev, const char *path, const rlx_load_desc *load_desc,
                        const rlx_session_desc *desc, struct rlx_model **model,
                        struct rlx_session **session, struct diag *d);
rlx_status session_estimate(struct rlx_model *m, struct rlx_device *dev, const rlx_dim_size *dims,
                            size_t dim_count, uint64_t budget, rlx_memory_estimate *out,
                            struct diag *d);

/* Refusals: a model in parts cannot do `what`; the session is running, or a or b is NULL; no run
 * has compiled a program; there is no output i. */
rlx_status session_is_whole(const struct rlx_session *s, const char *what, struct diag *d);
rlx_status session_check_idle(const struct rlx_session *s, const void *a, const void *b,
                              struct diag *d);
rlx_status session_need_program(const struct rlx_session *s, struct diag *d);
rlx_status session_check_output(const struct rlx_session *s, size_t i, struct diag *d);

/* ---- the two kinds ---- */

struct session_list {
    struct rlx_session *const *at;
    size_t count;
};

/* What a session of a model that runs as one (whole.c) does in one way, and that of a model in
 * parts (staged.c) in another. Arguments were checked. */
struct session_kind {
    /* Everything but symbols. s->store NULL: it shares the weights of other sessions there. */
    rlx_status (*open)(struct rlx_session *s, struct diag *d);
    void (*close)(struct rlx_session *s); /* also what was only half opened */
    /* A clone: weights apart from everybody else's; then what the session has now. */
    rlx_status (*own_weights)(struct rlx_session *s, struct store **out, struct diag *d);
    rlx_status (*copy)(struct rlx_session *from, unsigned flags, struct rlx_session *to,
                       struct diag *d);
    rlx_status (*run)(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
    rlx_status (*submit)(struct rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                         struct diag *d);
    rlx_status (*poll)(struct rlx_session *s, uint64_t ticket, bool *done, struct diag *d);
    rlx_status (*wait)(struct rlx_session *s, uint64_t ticket, const rlx_run_desc *run,
                       struct diag *d); /* run NULL: outputs are not wanted */
    rlx_status (*prepare)(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
    rlx_status (*output_shape)(struct rlx_session *s, size_t i, rlx_tensor *out, struct diag *d);
    rlx_status (*memory)(struct rlx_session *s, rlx_memory_info *out, struct diag *d);
    rlx_status (*set_bound)(struct rlx_session *s, size_t symbol, int64_t upper, struct diag *d);
    rlx_status (*write_param)(struct rlx_session *s, const char *name, const rlx_tensor *value,
                              struct diag *d);
    void (*set_profile)(struct rlx_session *s);                 /* s->profile changed */
    struct session_list (*parts)(struct rlx_session *const *s); /* itself, where it has none */
    /* The part with that leaf; the first, where none has it, which will say so. */
    struct rlx_session *(*part_with)(struct rlx_session *s, const char *leaf);
};
extern const struct session_kind session_whole, session_staged;

/* staged.c: inputs and sizes of part i, once those before it ran. */
rlx_run_desc staged_part_run(struct rlx_session *s, size_t i, const rlx_run_desc *run);

/* ---- inside the room ---- */

/* budget.c: is there room on the device, and may the session have it? Asked before allocating. */
void budget_open(struct rlx_session *s); /* how much of the host's memory compiling may take */
rlx_status budget_check(struct rlx_session *s, uint64_t bytes, struct diag *d);
/* The same while the model's lock is held: in store_begin_run's refresh. */
rlx_status budget_check_locked(const struct rlx_session *s, uint64_t bytes, struct diag *d);
/* One buffer for one thing, named like `what "name"`: LIMIT where it is larger than buffers are. */
rlx_status budget_alloc(struct rlx_session *s, const char *what, rlx_str name, uint64_t bytes,
                        struct buffer **out, struct diag *d);

/* binding.c: the dims of a model, with what that run would tell of their sizes; -1: nothing. */
rlx_status binding_of_model(const struct rlx_model *m, const rlx_run_desc *run, rlx_model_dim *out,
                            struct diag *d);
/* s->binding from the run's inputs, handles and dims. */
rlx_status session_bind_symbols(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
/* A dim of the model's at the symbols' bounds, others as bound in this run; -1: not known. */
int64_t session_upper_dim(struct rlx_session *s, ir_dim dim);

/* variants.c: the program for this run's sizes, loaded for them, becomes s->current. */
rlx_status session_choose_program(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
rlx_status session_compile_static(struct rlx_session *s,
                                  struct diag *d); /* of a model without symbols */
/* What the session asks the compiler for: a program for s->key. It points into the session. */
struct compile_request session_request(struct rlx_session *s);
void session_drop_programs(struct rlx_session *s);
/* A buffer that programs read was replaced: they are to look where it is now. */
void session_reload_programs(struct rlx_session *s);
struct compiled_program *session_current_program(struct rlx_session *s);

/* handle.c, feed.c */
/* Before the current program is loaded: it reads handles where they lie. */
rlx_status handles_attach(struct rlx_session *s, struct diag *d);
/* Before it runs: what it cannot read there is copied to where it can. */
rlx_status handles_stage(struct rlx_session *s, struct diag *d);
/* Before anything is written: do all feeds fit? */
rlx_status feeds_check(struct rlx_session *s, struct diag *d);
rlx_status handles_feed(struct rlx_session *s, struct flight *f, struct diag *d);
/* An explicit input replaces what the handle held. */
rlx_status handle_replace(struct rlx_session *s, struct handle *h, const rlx_tensor *value,
                          struct diag *d);
rlx_status handles_copy(struct rlx_session *from, struct rlx_session *to, struct diag *d);
void handles_release(struct rlx_session *s);

/* upload.c: inputs into their slots, without those that are there already. */
rlx_status upload_input(struct rlx_session *s, size_t i, const rlx_tensor *t, struct diag *d);
void upload_forget(struct rlx_session *s);
size_t upload_mark_size(void);

/* flight.c */
rlx_status flight_begin(struct rlx_session *s, struct flight **out, struct diag *d);
struct flight *flight_find(struct rlx_session *s, uint64_t ticket);
void flight_end(struct rlx_session *s, struct flight *f);
/* Outputs that still lie in this program's slots move out of the way. */
rlx_status flight_keep(struct rlx_session *s, const struct program *p, struct diag *d);
/* The same for outputs that lie in handles which feeds are about to change. */
rlx_status flight_before_feeds(struct rlx_session *s, struct flight *f, struct diag *d);
struct span flight_span(const struct flight *f, size_t output);
rlx_status flight_read(struct rlx_session *s, struct flight *f, size_t output, rlx_tensor *to,
                       struct diag *d);

/* whole_run.c: a run of a session of a whole model. here: the caller waits for it anyway, so this
 * thread may do the work. run: the outputs that are wanted; NULL: none. */
rlx_status whole_run_begin(struct rlx_session *s, const rlx_run_desc *run, bool here,
                           struct flight **out, struct diag *d);
rlx_status whole_run_end(struct rlx_session *s, struct flight *f, const rlx_run_desc *run,
                         struct diag *d);
rlx_status whole_run(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
rlx_status whole_submit(struct rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                        struct diag *d);
rlx_status whole_poll(struct rlx_session *s, uint64_t ticket, bool *done, struct diag *d);
rlx_status whole_wait(struct rlx_session *s, uint64_t ticket, const rlx_run_desc *run,
                      struct diag *d);
/* Is there room for a run's outputs, of the types of that flight, or of the current program (NULL)?
 */
rlx_status session_check_outputs(const struct rlx_session *s, const struct flight *f,
                                 const rlx_run_desc *run, struct diag *d);
rlx_status session_find_output(const struct rlx_session *s, const char *name, size_t *out,
                               struct diag *d);

#endif
