/* objects.h: the objects behind the handles of include/rlx.
 *
 *     rlx_context   one per program, immutable but for its list of open devices
 *       rlx_device  counted; a backend's device
 *       rlx_model   counted; a module and the values of its params
 *         store     counted; the params of one model on one device
 *           rlx_session   programs (one per binding), states, what is running */
#ifndef API_OBJECTS_H
#define API_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "ir/custom.h"
#include "run/program.h"

struct rlx_context {
    rlx_allocator mem;
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    struct ir_customs customs;
    int32_t threads;
    pthread_mutex_t lock; /* of devices */
    VEC(struct rlx_device *) device;
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

struct model_param {
    ir_value node;
    rlx_str name;
    uint64_t offset, bytes; /* in every store */
    void *data;             /* set before the first session; NULL: not set */
};

struct rlx_model {
    struct rlx_context *ctx;
    atomic_int refs;
    struct ir_module *mod;
    struct model_param *param;
    size_t param_count;
    uint64_t weight_bytes;
    rlx_str *output_name;
    size_t output_count;
    pthread_mutex_t lock; /* of stores */
    VEC(struct store *) store;
    bool has_session; /* it is fixed now */
    bool is_static;   /* no symbolic dim: sessions compile at once */
    struct arena arena;
    bool *used;               /* by node: something that runs reads it */
    struct rlx_model *origin; /* whose constants it shares; NULL: none */
};

/* The weights of a model on a device, shared by its sessions there. */
struct store {
    struct rlx_model *model; /* not counted: sessions count the model */
    struct rlx_device *device;
    struct buffer *buffer;
    bool *set;   /* by param */
    int refs;    /* under the model's lock */
    int running; /* sessions in the middle of a run; under the model's lock */
};

struct session_program {
    struct program *program;
    int64_t *binding; /* by symbol, -1: not bound */
    uint64_t last_use;
};

struct rlx_session {
    struct rlx_model *model;
    struct rlx_device *device;
    struct store *store;
    struct buffer *state;
    uint64_t *state_offset; /* by node of the model's entry graph */
    rlx_session_desc desc;
    struct session_program *program; /* room for SESSION_PROGRAMS */
    size_t program_count;
    uint64_t uses;
    struct program *current; /* of the last run, or of a static model */
    int64_t *binding;        /* scratch of a run, by symbol */
    size_t symbol_count;
    rlx_profile_fn profile;
    void *profile_user;
    struct run_hooks hooks;
    struct run_report report;
    uint64_t ticket; /* 0: nothing is running */
    struct arena arena;
};
#define SESSION_PROGRAMS 4

void device_retain(struct rlx_device *dev);
void model_retain(struct rlx_model *m);

/* store.c */
rlx_status store_open(struct rlx_model *m, struct rlx_device *dev, struct store **out,
                      struct diag *d);
void store_close(struct store *s);
rlx_status store_begin_run(struct store *s, bool params_default_zero, struct diag *d);
void store_end_run(struct store *s);
rlx_status store_write(struct store *s, rlx_str name, const rlx_tensor *value, struct diag *d);
rlx_status store_read(struct store *s, rlx_str name, rlx_tensor *value, struct diag *d);

/* model.c */
/* A model of mod, made from m's; constants of m's are shared, so the new one keeps m alive. mod
 * becomes the new model's when this succeeds. */
rlx_status model_from_copy(const rlx_model *m, struct ir_module *mod, rlx_model **out,
                           struct diag *d);
rlx_status model_find_param(const struct rlx_model *m, rlx_str name, size_t *out, struct diag *d);
/* The tensor's element count and bytes are those of a type with as many elements. */
rlx_status tensor_check(const rlx_tensor *t, const struct ir_type *type, const char *what,
                        rlx_str name, struct diag *d);
/* Names of the leaves of that op, "a, b, c", for messages; cut where it gets long. */
const char *leaf_names(const struct ir_graph *g, rlx_op op, char *out, size_t size);
bool tensor_count(const rlx_tensor *t, size_t *count); /* false: a bad tensor */

/* compile.c */
rlx_status compile(struct rlx_session *s, const int64_t *binding, size_t count,
                   struct program **out, struct diag *d);

/* binding.c */
rlx_status bind_symbols(struct rlx_session *s, const rlx_run_desc *run, struct diag *d);

#endif
