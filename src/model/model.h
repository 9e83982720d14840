/* model.h: a graph and the values of its params, before and while it is opened on devices. */
#ifndef MODEL_H
#define MODEL_H

#include "context/context.h"
#include "ir/cut.h"
#include "rlx/load.h"
#include "run/memory.h"

struct store;
struct text_parse_options;
struct weight_copy;

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
    struct weight_copy *packed; /* what has the value instead of data; NULL: none */
    struct store *home;         /* whose copy that is */
    struct ir_module *undo;     /* from what it is a copy of to the value; NULL: they are equal */
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
    bool *used;                /* by node: something that runs reads it */
    bool *variance;            /* by node: something reads it as a variance */
    bool *random;              /* by node: it is drawn, or worked out from what is */
    struct artefact *artefact; /* programs compiled earlier; NULL: none */
    void (*artefact_destroy)(struct artefact *a);
    uint64_t fingerprint;              /* 0: not asked for yet; under the lock */
    struct rlx_model *origin;          /* whose constants it shares; NULL: none */
    VEC(struct rlx_weights *) weights; /* files that params lie in */
    void *source;                      /* files that params lie in; NULL: none */
    void (*close_source)(void *source);
};

void model_retain(struct rlx_model *m);
void model_release(struct rlx_model *m); /* one reference; NULL is fine */

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
/* Its value, its own so far, stays in that copy alone, until param_restore. undo: becomes the
 * param's. */
void param_leave_to(struct model_param *p, struct store *home, struct weight_copy *c,
                    struct ir_module *undo, const rlx_allocator *mem);
rlx_status param_restore(struct model_param *p, const rlx_allocator *mem, struct diag *d);
rlx_status model_restore_params(const struct rlx_model *m, struct diag *d);
/* Its value, for a moment: until param_looked, also after a failure. */
rlx_status param_look(const struct model_param *p, const rlx_allocator *mem, const void **out,
                      struct diag *d);
void param_looked(const struct model_param *p, const rlx_allocator *mem, const void *data);
/* The same for good: into *value, whose dims are filled in. Under the model's lock. */
rlx_status param_read(const struct model_param *p, const struct ir_type *type,
                      const rlx_allocator *mem, rlx_tensor *value, struct diag *d);

/* model.c */
/* The graph becomes the model's when this succeeds. */
rlx_status model_create(struct rlx_graph *g, struct rlx_model **out, struct diag *d);
rlx_status model_parse(rlx_context *ctx, rlx_str text, const struct text_parse_options *options,
                       struct rlx_model **out, struct diag *d);
/* Inputs, params, states or outputs. */
size_t model_io_count(const struct rlx_model *m, rlx_io_kind kind);
rlx_status model_io(const struct rlx_model *m, rlx_io_kind kind, size_t i, rlx_io_info *out,
                    struct diag *d);
/* The shape of input i where dims have these sizes. */
rlx_status model_input_shape(const struct rlx_model *m, size_t i, const rlx_dim_size *dims,
                             size_t dim_count, rlx_tensor *out, struct diag *d);
rlx_status model_set_param(struct rlx_model *m, const char *name, const rlx_tensor *value,
                           struct diag *d);
rlx_status model_get_param(struct rlx_model *m, const char *name, rlx_tensor *value,
                           struct diag *d);
bool model_has_param(const struct rlx_model *m, rlx_str name); /* was it set? */
/* f becomes the model's when this succeeds. */
struct file;
rlx_status model_load_text(rlx_context *ctx, const char *path, struct file *f,
                           const rlx_load_desc *desc, rlx_model **out, struct diag *d);
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

/* model_onnx.c: likewise. */
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

#endif
