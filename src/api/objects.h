/* objects.h: the objects behind the handles of include/rlx.
 *
 *     rlx_context   counted; one per program, immutable but for its list of open devices
 *       rlx_device  counted; a backend's device
 *       rlx_model   counted; a module and the values of its params
 *         store     counted; the params of one model on one device
 *           rlx_session   programs (one per binding), states, what is running
 *
 * Whatever names another object counts it: all have a context, sessions a model and a device. So
 * they may be destroyed in any order. */
#ifndef API_OBJECTS_H
#define API_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/flags.h"
#include "ir/custom.h"
#include "ir/cut.h"
#include "rlx/artefact.h"
#include "run/program.h"

struct rlx_context {
    atomic_int refs; /* the program's own, and one for every object of it */
    rlx_allocator mem;
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    struct ir_customs customs;
    int32_t threads;
    char *cache_dir; /* of compiled programs; NULL: none */
    uint64_t cache_bytes;
    pthread_mutex_t lock; /* of devices */
    VEC(struct rlx_device *) device;
    VEC(rlx_device_info) known; /* as rlx_device_list tells of them, once it was asked */
    bool listed;
    struct flags flags;
    struct trace *trace; /* NULL: none is wanted */
};

struct rlx_device {
    struct rlx_context *ctx;
    struct backend *backend;
    char name[32];
    int refs; /* under the context's lock */
};

/* A graph under construction; sub-graphs have the same module. */
struct rlx_graph {
    struct rlx_context *ctx;
    struct ir_module *mod;
    struct ir_graph *g;
    struct rlx_graph *root;
    VEC(struct rlx_graph *) sub; /* of the root */
    rlx_error first;             /* of the root: the first failure */
};

/* Who keeps the memory of a param's value: its own, that of somebody who lives as long, or a mapped
 * file, whose pages need not stay. */
enum param_kept { PARAM_OWN, PARAM_BORROWED, PARAM_MAPPED };

/* A param and its value on the host. */
struct model_param {
    ir_value node;
    rlx_str name;
    uint64_t bytes;
    void *data; /* NULL: not set, or empty, or in `packed` */
    enum param_kept kept;
    uint64_t changed;           /* the version that brought it; 0: it was never set */
    struct weight_copy *packed; /* what has the value in the place of data; NULL: none */
    struct store *home;         /* whose copy that is */
    struct ir_module *way;      /* from what it is a copy of to the value; NULL: they are equal */
};

/* What the params hold: the model's, for all its sessions, or a clone's own. Stores on devices are
 * made from it. Under the model's lock once there are sessions. */
struct param_values {
    struct model_param *param;
    size_t count;
    uint64_t version; /* counts changes; from 1 */
    int running;      /* runs that have begun and not ended: nothing can be set */
};

/* A model with sizes that depend on data runs in parts, one after the other. What goes from one to
 * another, or is an output of the whole, has a slot. */
#define NO_SLOT (-1)
struct model_part {
    struct rlx_model *model;
    int32_t *input_slot; /* by input of it; NO_SLOT: an input of the whole */
    size_t input_count;
    int32_t *output_slot;
    bool *uses; /* by symbol */
};
struct model_cut {
    size_t symbol;
    int32_t count, padded, leaf; /* slots; the latter two NO_SLOT: a size alone */
    int32_t axis;
};
struct model_parts {
    struct model_part *part;
    size_t count;
    struct model_cut *cut; /* those that anything needs */
    size_t cut_count;
    bool *is_cut_leaf;    /* by node of the whole: no input of the model */
    int32_t *output_slot; /* by output of the whole */
    size_t slots;
};

struct rlx_model {
    struct rlx_context *ctx;
    atomic_int refs;
    struct ir_module *mod;
    struct model_parts *parts; /* NULL: it runs as one; else mod has leaves of cuts as inputs */
    struct model_param *param;
    size_t param_count;
    struct param_values values; /* of `param` */
    uint64_t weight_bytes;
    rlx_str *output_name;
    size_t output_count;
    pthread_mutex_t lock; /* of stores */
    VEC(struct store *) store;
    bool has_session; /* it is fixed now */
    bool is_static;   /* no symbolic dim: sessions compile at once */
    struct arena arena;
    bool *used;                        /* by node: something that runs reads it */
    bool *variance;                    /* by node: something reads it as a variance */
    bool *random;                      /* by node: it is drawn, or worked out from what is */
    struct artefact *artefact;         /* programs compiled earlier; NULL: none */
    uint64_t fingerprint;              /* 0: not asked for yet; under the lock */
    struct rlx_model *origin;          /* whose constants it shares; NULL: none */
    VEC(struct rlx_weights *) weights; /* files that params lie in */
    void *source;                      /* files that params lie in; NULL: none */
    void (*close_source)(void *source);
};

/* The weights of a model on a device, shared by its sessions there. All under the model's lock. */
struct store {
    struct rlx_model *model; /* not counted: sessions count the model */
    struct rlx_device *device;
    struct memory memory;
    uint64_t *offset;            /* by param: where in it */
    uint64_t max_buffer;         /* that it was laid out for */
    struct param_values *values; /* the model's, or own */
    struct param_values own;     /* of one clone: nobody else finds it; else empty */
    uint64_t *has;               /* by param: the version of the value that is here; 0: none */
    uint64_t fresh;              /* the version that all of them are of; 0: not yet */
    struct buffer **plain;       /* by param: a buffer of its own, if it is there; no array: they
                                    are all in memory */
    const void **wraps;          /* by param: whose memory that buffer is; NULL: its own */
    uint32_t *readers;           /* by param: programs that read it as it is */
    VEC(struct weight_copy *) copy;
    bool plan_only; /* of one session: laid out, and memory has bytes but no buffers */
    int refs;
};

/* What is computed from weights alone, as a graph of its own; packs are its outputs. */
struct static_program {
    struct ir_module *mod;          /* NULL: there is none */
    struct weight_copy **pack;      /* by output */
    const struct static_pack *made; /* by output: what it stands for; in mod */
    struct pack_leaf *leaf;         /* by output: where the program has it */
    size_t count;
};
struct pack_leaf {
    int32_t value; /* -1: nowhere */
    bool read;     /* as it is, not only in packed copies */
};

/* A param of a program. */
struct param_leaf {
    int32_t value;
    uint32_t param;
    bool read; /* as it is */
};

struct session_program {
    const rlx_allocator *mem;
    struct program *program;
    struct ir_module *optimised; /* what the passes made, before weights were split off */
    struct static_program fixed;
    uint64_t fresh;      /* the version of the weights its copies are all made from; 0: not yet */
    struct store *store; /* that it has joined; NULL: none */
    struct param_leaf *leaf; /* params of the program, where the store has `plain` */
    size_t leaf_count, leaf_room;
    int64_t *binding; /* by symbol; -1: not bound, -2: it runs at any size up to its bound */
    uint64_t last_use;
};

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
    uint64_t *state_offset;          /* by node of the model's entry graph */
    rlx_session_desc desc;           /* max_buffer: the device's if that is lower */
    struct target target;            /* the device, with that max_buffer */
    struct session_program *program; /* room for desc.programs of them */
    size_t program_count;
    uint64_t uses;
    struct program *current; /* of the last run, or of a static model */
    size_t symbol_count;
    int64_t *binding; /* by symbol: of this run; -1: not bound */
    int64_t *key;     /* by symbol: which program that asks for, as session_program.binding */
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
#define STORE_ALIGNMENT 256 /* what the strictest device wants of a slot */
#define SESSION_PROGRAMS 4
#define SESSION_FLIGHTS 2
#define SYMBOL_KEPT (-2)

struct rlx_context *context_retain(struct rlx_context *ctx); /* rlx_context_destroy takes it back */
void device_retain(struct rlx_device *dev);
void model_retain(struct rlx_model *m);

/* params.c */
rlx_status params_copy(const struct param_values *from, const rlx_allocator *mem,
                       struct param_values *out, struct diag *d);
void params_free(struct param_values *v, const rlx_allocator *mem); /* what they hold */
/* Its value is this from now on. */
void param_take(struct param_values *v, size_t i, void *data, enum param_kept kept,
                const rlx_allocator *mem);
/* Room for its value: where it has some of its own, that; else new, which the caller is to take or
 * to free. NULL for an empty one. */
rlx_status param_room(const struct model_param *p, const rlx_allocator *mem, void **out,
                      struct diag *d);
void param_drop_room(const struct model_param *p, const rlx_allocator *mem, void *room);
/* Its value, its own so far, stays in that copy alone, until param_restore. way: becomes the
 * param's. */
void param_leave_to(struct model_param *p, struct store *home, struct weight_copy *c,
                    struct ir_module *way, const rlx_allocator *mem);
rlx_status param_restore(struct model_param *p, const rlx_allocator *mem, struct diag *d);
rlx_status model_restore_params(const struct rlx_model *m, struct diag *d);
/* Its value, for a moment: until param_looked, also after a failure. */
rlx_status param_look(const struct model_param *p, const rlx_allocator *mem, const void **out,
                      struct diag *d);
void param_looked(const struct model_param *p, const rlx_allocator *mem, const void *data);

/* plain.c: params as they are, on a device that works in host memory. Under the model's lock. */
/* s->plain[i] is its value, until plain_let_go finds that no program reads it. */
rlx_status plain_hold(struct store *s, size_t i, struct diag *d);
/* Its next value will be in that memory: all that can fail about holding it is done now. */
rlx_status plain_expect(struct store *s, size_t i, const void *room, struct diag *d);
void plain_let_go(struct store *s, size_t i);
/* A buffer with its value, to make copies from; then what is to become of the value once `c` (NULL:
 * nothing that could stand for it) is made. */
rlx_status plain_source(struct store *s, size_t i, struct buffer **out, struct diag *d);
void plain_packed(struct store *s, size_t i, struct buffer *source, struct weight_copy *c);
/* Is it the model's own memory that holds its value, for nobody but those who make copies? */
bool plain_is_spare(const struct store *s, size_t i);
/* Programs come and go with the params they read as they are. */
rlx_status plain_join(struct store *s, struct session_program *p, struct diag *d);
void plain_leave(struct session_program *p);

/* session.c: see rlx_session.plan_only; with the defaults, as the context's flags make them. */
rlx_status session_plan_only(struct rlx_model *m, struct rlx_device *dev, struct rlx_session **out,
                             struct diag *d);

/* store.c */
/* max_buffer: how it is laid out if nobody has opened it before. */
rlx_status store_open(struct rlx_model *m, struct rlx_device *dev, uint64_t max_buffer,
                      struct store **out, struct diag *d);
/* Laid out, and nothing else: of a session that is only planned. */
rlx_status store_plan(struct rlx_model *m, struct rlx_device *dev, uint64_t max_buffer,
                      struct store **out, struct diag *d);
/* The same weights, but from now on apart. */
rlx_status store_clone(struct store *from, struct store **out, struct diag *d);
void store_close(struct store *s);
/* The copy of that key, with room of its own where there is none yet; like: what it is to be. */
rlx_status store_copy_of(struct store *s, const struct weight_copy *like, struct weight_copy **out,
                         struct diag *d);
bool store_has_copy(struct store *s, uint64_t key, uint64_t bytes);
void stores_destroy(struct rlx_model *m); /* those that stayed for their values */
/* Of params that are there as they are. */
uint64_t store_weight_bytes(struct store *s);
uint64_t store_weight_bytes_locked(const struct store *s);
uint64_t store_copy_bytes(struct store *s);
uint64_t store_copy_bytes_locked(const struct store *s);
/* Until store_end_run no param can be set. refresh, called with the lock held, brings copies up to
 * date. */
rlx_status store_begin_run(struct store *s, bool params_default_zero,
                           rlx_status (*refresh)(void *user, struct diag *d), void *user,
                           struct diag *d);
void store_end_run(struct store *s);
bool store_copy_is_old(const struct store *s, const struct weight_copy *c);
rlx_status store_write(struct store *s, rlx_str name, const rlx_tensor *value, struct diag *d);
rlx_status store_read(struct store *s, rlx_str name, rlx_tensor *value, struct diag *d);

/* model.c */
/* mod becomes the model's when this succeeds. */
rlx_status model_from_module(rlx_context *ctx, struct ir_module *mod, rlx_model **out,
                             struct diag *d);
/* model_parts.c: m, made from a module with these cuts, becomes a model in parts. */
rlx_status model_cut(struct rlx_model *m, const struct ir_cut *cut, size_t count, struct diag *d);
void model_parts_destroy(struct model_parts *p); /* NULL is fine */
/* UNSUPPORTED for a model in parts: it cannot do that. `what`: "be drawn". */
rlx_status model_is_whole(const struct rlx_model *m, const char *what, struct diag *d);
/* The comment above a part's text; its length. */
int model_part_title(const struct model_parts *p, size_t i, char *out, size_t size);
/* Weights that were set on the model since it was cut. */
void model_parts_share_params(struct rlx_model *m);
bool model_is_input(const struct rlx_model *m, ir_value v); /* that its user gives */

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

/* model_onnx.c: f becomes the model's when this succeeds. */
struct file;
rlx_status model_load_onnx(rlx_context *ctx, const char *path, const struct file *f,
                           const rlx_load_desc *desc, rlx_model **out, struct diag *d);
/* A model of mod, made from m's; constants of m's are shared, so the new one keeps m alive. mod
 * becomes the new model's when this succeeds. */
rlx_status model_from_copy(const rlx_model *m, struct ir_module *mod, rlx_model **out,
                           struct diag *d);
/* STATE once it has a session: params are then the store's. */
rlx_status model_need_open(struct rlx_model *m, struct diag *d);
rlx_status model_find_param(const struct rlx_model *m, rlx_str name, size_t *out, struct diag *d);
/* The tensor's element count and bytes are those of a type with as many elements. */
rlx_status tensor_check(const rlx_tensor *t, const struct ir_type *type, const char *what,
                        rlx_str name, struct diag *d);
/* The same for a param or a state of the model, whose shape the tensor must have, too. */
rlx_status leaf_check(const struct rlx_model *m, const rlx_tensor *t, const struct ir_type *type,
                      const char *what, rlx_str name, struct diag *d);
/* Names of the leaves of that op, "a, b, c", for messages; cut where it gets long. */
const char *leaf_names(const struct ir_graph *g, rlx_op op, char *out, size_t size);
bool tensor_count(const rlx_tensor *t, size_t *count); /* false: a bad tensor */

/* budget.c: is there room on the device, and may the session have it? Asked before allocating. */
void budget_open(struct rlx_session *s); /* how much of the host's memory compiling may take */
rlx_status budget_check(struct rlx_session *s, uint64_t bytes, struct diag *d);
/* The same while the model's lock is held: in store_begin_run's refresh. */
rlx_status budget_check_locked(const struct rlx_session *s, uint64_t bytes, struct diag *d);
/* One buffer for one thing, named like `what "name"`: LIMIT where it is larger than buffers are. */
rlx_status budget_alloc(struct rlx_session *s, const char *what, rlx_str name, uint64_t bytes,
                        struct buffer **out, struct diag *d);
/* The store's copy of that key; a new one must be within the budget. */
rlx_status budget_copy_of(struct rlx_session *s, const struct weight_copy *like,
                          struct weight_copy **out, struct diag *d);

/* compile.c: the program for s->key. EXTENT: a bounded symbol in it cannot be kept; which ones is
 * in s->by_value. */
rlx_status compile(struct rlx_session *s, struct session_program *out, struct diag *d);
void session_program_destroy(struct session_program *p);

/* flags.c: what the context's flags say where the caller said nothing. */
void flags_apply(const struct rlx_context *ctx, rlx_session_desc *desc);
static inline const struct flag_value *context_flag(const struct rlx_context *ctx, enum flag_id id)
{
    return &ctx->flags.at[id];
}
/* What "auto" means here (RLX_DEVICE, RLX_DEVICES, else the first there is). */
rlx_str flags_auto_device(const struct rlx_context *ctx);
/* May a device of that name be opened? Or, if asked, one that is a kind of it? (RLX_DEVICES) */
bool flags_allow_device(const struct rlx_context *ctx, rlx_str name, bool or_kind_of_it);
/* custom_vjp.c: calls op->vjp, as struct ir_customs asks. */
rlx_status custom_vjp(void *owner, const rlx_custom_op *op, struct ir_graph *g,
                      const struct ir_node *n, ir_value y, ir_value dy, ir_value *dx,
                      struct diag *d);
/* One line for whoever listens, if anybody does. */
void context_log(const struct rlx_context *ctx, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Each line of it that is not empty. */
void context_log_text(const struct rlx_context *ctx, int level, rlx_str lines);

/* copies.c: whatever the program needs of copied and combined weights, made where it is old. */
struct static_part;
rlx_status copies_register(struct rlx_session *s, const struct static_part *fixed,
                           struct static_program *out, struct diag *d);
rlx_status copies_refresh(struct rlx_session *s, struct session_program *p, struct diag *d);

/* binding.c: s->binding from the run's inputs, handles and dims. */
rlx_status bind_symbols(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
/* A dim of the model's at the symbols' bounds, others as bound in this run; -1: not known. */
int64_t upper_dim(struct rlx_session *s, ir_dim dim);

/* variants.c: the program for this run's sizes, loaded for them, becomes s->current. */
rlx_status choose_program(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);
rlx_status compile_static(struct rlx_session *s, struct diag *d); /* of a model without symbols */
void drop_programs(struct rlx_session *s);
/* A buffer that programs read was replaced: they are to look where it is now. */
void reload_programs(struct rlx_session *s);
struct session_program *current_program(struct rlx_session *s);

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
