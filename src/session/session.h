/* session.h: a model opened on a device: its programs, states, handles, and runs in flight. */
#ifndef SESSION_H
#define SESSION_H

#include "compile/compile.h"
#include "rlx/session.h"

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
    struct session_parts *parts; /* of a model in parts: it has little else; session_parts.c */
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

/* session.c: see rlx_session.plan_only; with the defaults, as the context's flags make them. */
rlx_status session_plan_only(struct rlx_model *m, struct rlx_device *dev, struct rlx_session **out,
                             struct diag *d);

/* session_parts.c: a session of a model in parts. */
rlx_status parts_open(struct rlx_session *s, struct diag *d);
void parts_close(struct rlx_session *s);
rlx_status parts_clone(struct rlx_session *from, unsigned flags, struct rlx_session *to,
                       struct diag *d);
rlx_status parts_prepare(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
/* All of a run; then its outputs, with the shapes they have. */
rlx_status parts_run(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
/* Inputs and sizes of part i, once those before it ran. */
rlx_run_desc part_run(struct rlx_session *s, size_t i, const rlx_run_desc *run);
rlx_status parts_read(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
rlx_status parts_submit(struct rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                        struct diag *d);
rlx_status parts_wait(struct rlx_session *s, uint64_t ticket, const rlx_run_desc *run,
                      struct diag *d);
rlx_status parts_poll(const struct rlx_session *s, uint64_t ticket, struct diag *d); /* it is */
rlx_status parts_output_shape(const struct rlx_session *s, size_t i, rlx_tensor *out,
                              struct diag *d);
rlx_status parts_set_bound(struct rlx_session *s, size_t symbol, int64_t upper, struct diag *d);
void parts_set_profile(struct rlx_session *s);
rlx_status parts_memory(struct rlx_session *s, rlx_memory_info *out, struct diag *d);
rlx_status parts_write_param(struct rlx_session *s, const char *name, const rlx_tensor *value,
                             struct diag *d);
/* The sessions of its parts; itself, where it has none. */
struct session_list {
    struct rlx_session *const *at;
    size_t count;
};
struct session_list session_parts(struct rlx_session *const *s);
/* The part that has that leaf; the first, where none has: it says so. */
struct rlx_session *part_with_leaf(struct rlx_session *s, const char *name);
rlx_status session_is_whole(const struct rlx_session *s, const char *what, struct diag *d);

/* budget.c: is there room on the device, and may the session have it? Asked before allocating. */
void budget_open(struct rlx_session *s); /* how much of the host's memory compiling may take */
rlx_status budget_check(struct rlx_session *s, uint64_t bytes, struct diag *d);
/* The same while the model's lock is held: in store_begin_run's refresh. */
rlx_status budget_check_locked(const struct rlx_session *s, uint64_t bytes, struct diag *d);
/* One buffer for one thing, named like `what "name"`: LIMIT where it is larger than buffers are. */
rlx_status budget_alloc(struct rlx_session *s, const char *what, rlx_str name, uint64_t bytes,
                        struct buffer **out, struct diag *d);

/* binding.c: s->binding from the run's inputs, handles and dims. */
rlx_status bind_symbols(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
/* A dim of the model's at the symbols' bounds, others as bound in this run; -1: not known. */
int64_t upper_dim(struct rlx_session *s, ir_dim dim);

/* variants.c: the program for this run's sizes, loaded for them, becomes s->current. */
rlx_status choose_program(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
rlx_status compile_static(struct rlx_session *s, struct diag *d); /* of a model without symbols */
/* What the session asks the compiler for: a program for s->key. It points into the session. */
struct compile_request session_request(struct rlx_session *s);
void drop_programs(struct rlx_session *s);
/* A buffer that programs read was replaced: they are to look where it is now. */
void reload_programs(struct rlx_session *s);
struct compiled_program *current_program(struct rlx_session *s);

/* handle.c, feed.c */
struct handle *handle_of(struct rlx_session *s, rlx_str name); /* bound ones only; else NULL */
/* Before the current program is loaded: it reads handles where they lie. */
rlx_status handles_attach(struct rlx_session *s, struct diag *d);
/* Before it runs: what it cannot read there is copied to where it can. */
rlx_status handles_stage(struct rlx_session *s, struct diag *d);
/* Before anything is written: do all feeds fit? */
rlx_status feeds_check(struct rlx_session *s, struct diag *d);
rlx_status handles_feed(struct rlx_session *s, struct flight *f, struct diag *d);
/* An explicit input takes the place of what the handle held. */
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

/* execute.c: a run of a session that is not in parts. here: the caller waits for it anyway, so this
 * thread may do the work. run: the outputs that are wanted; NULL: none. */
rlx_status run_begin(struct rlx_session *s, const rlx_run_desc *run, bool here, struct flight **out,
                     struct diag *d);
rlx_status run_end(struct rlx_session *s, struct flight *f, const rlx_run_desc *run,
                   struct diag *d);
/* Is there room for a run's outputs, of the types of that flight, or of the current program (NULL)?
 */
rlx_status check_outputs(const struct rlx_session *s, const struct flight *f,
                         const rlx_run_desc *run, struct diag *d);
rlx_status find_output(const struct rlx_session *s, const char *name, size_t *out, struct diag *d);

/* session.c */
rlx_status check_idle(const rlx_session *s, const void *a, const void *b, struct diag *d);

#endif
