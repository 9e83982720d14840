/* tools.h: looking inside: graphs as text and pictures, memory plans, the op table, self-tests, and
 * tensors in files. What the rlx command is made of. */
#ifndef RLX_TOOLS_H
#define RLX_TOOLS_H

#ifndef RLX_UNSTABLE
#error "rlx/tools.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the next piece of a text. */
typedef void (*rlx_write_fn)(void *user, const char *text, size_t len);

/* ---- the op table ---- */

typedef struct rlx_op_row {
    const char *name, *family, *category, *inputs, *summary;
    char attributes[512]; /* "axis=-1 keep_dim=false"; required ones without a value */
    bool special;         /* of the special-ops manual */
    bool infer, grad, cpu, vulkan, webgpu; /* what exists for it */
} rlx_op_row;
/* Op number i; false: there are no more. */
RLX_API bool rlx_op_at(size_t i, rlx_op_row *out);

/* ---- misspelt names ---- */

/* Which name was meant by one that does not exist: start with {.wanted = name} and offer every name
 * that there is. best is the one that takes the fewest changed, added, left out or swapped letters;
 * none, where all are too far away to be meant. Names are borrowed. */
typedef struct rlx_nearest {
    rlx_str wanted, best;
    size_t distance;
} rlx_nearest;
RLX_API void rlx_nearest_offer(rlx_nearest *n, rlx_str name);
/* For the end of a message: `; did you mean NAME?`, or nothing. Returns out. */
#define RLX_NEAREST_HINT 96
RLX_API const char *rlx_nearest_hint(const rlx_nearest *n, char out[RLX_NEAREST_HINT]);

/* ---- flags of the environment ---- */

typedef struct rlx_flag_row {
    const char *name; /* "RLX_VERBOSE" */
    const char *kind; /* "switch", "number", "text" or "choice" */
    const char *values, *default_value, *stability, *layer, *summary;
    const char *value, *source; /* in this context; "default", "environment" or "override" */
    bool on;                    /* a switch that is on; of the others, any value but none and 0 */
    const char *option; /* that it sets, of rlx_session_desc or rlx_debug_desc; NULL: none */
} rlx_flag_row;
/* Flag number i; false: there are no more. ctx NULL: with its default as its value. */
RLX_API bool rlx_flag_at(const rlx_context *ctx, size_t i, rlx_flag_row *out);

/* ---- models ---- */

/* The canonical text form. elide shortens large constants, for people; types adds every type. */
RLX_API rlx_status rlx_model_print(const rlx_model *m, bool elide, bool types, rlx_write_fn write,
                                   void *user, rlx_error *err);
/* Inputs, params, states, outputs, counts of ops and sizes: a table, or JSON. */
RLX_API rlx_status rlx_model_describe(const rlx_model *m, bool json, rlx_write_fn write, void *user,
                                      rlx_error *err);
typedef enum rlx_picture { RLX_PICTURE_SVG = 0, RLX_PICTURE_DOT = 1 } rlx_picture;
RLX_API rlx_status rlx_model_draw(const rlx_model *m, rlx_picture kind, rlx_write_fn write,
                                  void *user, rlx_error *err);

/* A leaf or an output and its type, as the text form writes it: "f32[batch,3,224,224]". Returns
 * out, which holds what fits. */
RLX_API const char *rlx_model_io_type(const rlx_model *m, rlx_io_kind kind, size_t i, char *out,
                                      size_t size);
/* A symbolic dim that the model uses. */
typedef struct rlx_model_dim {
    rlx_str name;
    int64_t size;  /* -1: not known yet */
    int64_t bound; /* that the model declares; 0: none */
    bool of_input; /* an input that is used has it; else a run's dims give it, or its data */
    bool leads;    /* it is the first axis of an input, as the batch mostly is */
} rlx_model_dim;
RLX_API size_t rlx_model_dim_count(const rlx_model *m);
/* All of them, with the sizes that a run's dims and the shapes of its inputs give; their data is
 * not looked at, and names that are not inputs are ignored. BINDING where sizes contradict each
 * other, SHAPE where an input does not fit. out has room for rlx_model_dim_count. */
RLX_API rlx_status rlx_model_dims(const rlx_model *m, const rlx_run_desc *run, rlx_model_dim *out,
                                  rlx_error *err);

/* A new model after the named passes, in the order given: "expand,dce". dev NULL: for none in
 * particular. */
RLX_API rlx_status rlx_model_transform(const rlx_model *m, const char *passes, rlx_device *dev,
                                       rlx_model **out, rlx_error *err);
/* The same, where passes see what a session of that desc would be asked for: its precision and
 * precision_map. NULL: all defaults. */
RLX_API rlx_status rlx_model_transform_for(const rlx_model *m, const char *passes, rlx_device *dev,
                                           const rlx_session_desc *desc, rlx_model **out,
                                           rlx_error *err);
/* A policy by name: "as-declared", "f32", "f16", "mixed-conservative", "mixed", "mixed-bf16"; or a
 * custom one by its parts, what is left out being f32: "compute=f16,movement=bf16". Sets precision
 * and precision_map of the desc. */
RLX_API rlx_status rlx_precision_parse(const char *text, rlx_session_desc *desc, rlx_error *err);
/* What turns the text of one model into that of another, as `diff -u` shows it; nothing where both
 * are the same. */
RLX_API rlx_status rlx_model_diff(const rlx_model *a, const rlx_model *b, const char *name_a,
                                  const char *name_b, rlx_write_fn write, void *user,
                                  rlx_error *err);
/* Pass number i of those there are; false: there are no more. */
RLX_API bool rlx_pass_at(size_t i, const char **name, const char **summary);

/* The graph as it is after that pass of a compile for dev (NULL: for none in particular); of a pass
 * that is made several times, after the last time. */
RLX_API rlx_status rlx_model_print_after(const rlx_model *m, const char *pass, rlx_device *dev,
                                         bool elide, bool types, rlx_write_fn write, void *user,
                                         rlx_error *err);
/* The same as a model, to be drawn or looked at otherwise. STATE where a compile does not reach
 * that pass. */
RLX_API rlx_status rlx_model_after(const rlx_model *m, const char *pass, rlx_device *dev,
                                   rlx_model **out, rlx_error *err);
/* How each op in the model runs on dev: by a kernel of the device, by simpler ops in its place, or
 * not at all: a table, or JSON. */
RLX_API rlx_status rlx_model_dispatch(const rlx_model *m, rlx_device *dev, bool json,
                                      rlx_write_fn write, void *user, rlx_error *err);
/* A new model in which those params are inputs, of the same names and types; NAME where there is no
 * such param. What the others were set to stays. */
RLX_API rlx_status rlx_model_promote_params(const rlx_model *m, const char *const *names,
                                            size_t count, rlx_model **out, rlx_error *err);
/* ---- quantisation ---- */

/* What a calibration found for one value of the entry graph. */
typedef struct rlx_qdq_record {
    const char *name; /* of the leaf, or the node's label */
    bool per_channel; /* false: one scale for the whole value, and axis is ignored */
    int64_t axis;     /* of the channels; from the end where negative */
    const float *scales;
    const float *zero_points; /* integers from -128 to 127; NULL: all 0 */
    size_t count;             /* of scales, and of zero points: one per channel, or 1 */
} rlx_qdq_record;
/* A new model in which each value named is quantised to i8 and back before anything reads it.
 * Values must be floats, and must not be states. */
RLX_API rlx_status rlx_model_insert_qdq(const rlx_model *m, const rlx_qdq_record *records,
                                        size_t count, rlx_model **out, rlx_error *err);
/* What fusing makes of the model on that device (NULL: on one that has every fused op): nodes and
 * ops before and after, and what nearly fused: which node, why not, and what would help. A table,
 * or JSON. */
RLX_API rlx_status rlx_model_fusion(const rlx_model *m, rlx_device *dev, bool json,
                                    rlx_write_fn write, void *user, rlx_error *err);

/* ---- memory plans ---- */

typedef enum rlx_plan_format {
    RLX_PLAN_TEXT = 0,
    RLX_PLAN_JSON = 1,
    RLX_PLAN_SVG = 2
} rlx_plan_format;
typedef struct rlx_plan_summary {
    uint64_t arena, lower_bound, unshared;
    size_t values;
    const char *method;
} rlx_plan_summary;
/* Of the session's program (after a run, if the model has symbolic dims). */
RLX_API rlx_status rlx_session_plan(rlx_session *s, rlx_plan_format format, rlx_write_fn write,
                                    void *user, rlx_plan_summary *out, rlx_error *err);
/* Its steps by kind: how many, bytes read and written, arithmetic; a table, or JSON. */
RLX_API rlx_status rlx_session_schedule(rlx_session *s, bool json, rlx_write_fn write, void *user,
                                        rlx_error *err);
/* What goes in and out of it, with types, places and bytes, and the weights in groups: params whose
 * names agree up to their last dot. A table, or JSON. */
RLX_API rlx_status rlx_session_bindings(rlx_session *s, bool json, rlx_write_fn write, void *user,
                                        rlx_error *err);
/* What a session of the model will take, before one is made: what rlx_session_memory then says.
 * Dims with a bound count at their bound. A param that several nodes read counts once. */
typedef struct rlx_memory_estimate {
    uint64_t weights, constants, activations, states, total; /* bytes */
    uint64_t weight_copies;                                  /* weights as kernels pack them */
    uint64_t inputs;                                         /* of the activations */
    uint64_t budget;  /* what was given, else the device's memory; 0: not known */
    uint64_t deficit; /* how far the total is above the budget; 0: it fits */
    uint64_t kept, alive, flops, recomputed_flops; /* as in rlx_memory_info */
    uint32_t recomputed;
} rlx_memory_estimate;
RLX_API rlx_status rlx_model_memory(const rlx_model *m, rlx_device *dev, const rlx_dim_size *dims,
                                    size_t dim_count, uint64_t budget, rlx_memory_estimate *out,
                                    rlx_error *err);
/* A bare problem in MiniMalloc's CSV form. capacity 0: as small as it gets. */
RLX_API rlx_status rlx_plan_csv(rlx_context *ctx, rlx_str csv, uint64_t capacity,
                                rlx_plan_format format, rlx_write_fn write, void *user,
                                rlx_plan_summary *out, rlx_error *err);

/* ---- a page to look at a model with ---- */

typedef struct rlx_page_desc {
    uint32_t size;
    const char *title; /* NULL: "a model" */
    const char *view;  /* what the model's own graph is called; NULL: "as written" */
    const char *note;  /* a sentence for the reader; NULL: none */
    /* Of the model, prepared: its program is shown too, with memory and FLOPs. NULL: none. */
    rlx_session *session;
    const uint64_t *step_ns; /* how long each step of the program took; NULL: not known */
    size_t step_count;
} rlx_page_desc;
/* One HTML file that needs nothing else: the graph, to fold and unfold, to search and to zoom in.
 */
RLX_API rlx_status rlx_page_write(const rlx_model *m, const rlx_page_desc *desc, rlx_write_fn write,
                                  void *user, rlx_error *err);

/* ---- numbers in the middle of a run ---- */

/* What a value holds. */
typedef struct rlx_value_stats {
    char name[64]; /* the node's label, a leaf's name, or "op#node" */
    char op[48];
    int32_t node; /* of the program, after all passes */
    rlx_dtype dtype;
    int32_t rank;
    int64_t dim[RLX_MAX_RANK];
    bool known; /* false: it was not looked at, and what follows is zero */
    uint64_t count, nan_count, inf_count, nonzero;
    int64_t first_index;      /* of the first NaN or Inf; -1: none */
    double min, max, max_abs; /* of the finite elements */
    int64_t around_first;     /* elements around the first NaN or Inf: */
    int32_t around_count;
    double around[5];
} rlx_value_stats;

/* Called right after a step, on the thread that runs or submits, for each value it wrote; NULL
 * stops it. The nodes are those of the program: what fusion absorbed is not seen (see
 * rlx_debug_desc.no_optimize). */
typedef struct rlx_watch_event {
    rlx_session *session;
    int32_t step;
    const char *step_name;
    rlx_value_stats value;
} rlx_watch_event;
typedef void (*rlx_watch_fn)(void *user, const rlx_watch_event *e);
RLX_API rlx_status rlx_session_set_watch(rlx_session *s, rlx_watch_fn fn, void *user,
                                         rlx_error *err);
/* Elements of a node's value as numbers (of c64 the real part). Within a watcher, of the value it
 * was called for; other values may be gone. Elements come as they are stored: of a product that is
 * split (rlx_debug_desc.no_qkv_split) third by third. STATE for columns that are read where they
 * lie (no_packed_qkv). */
RLX_API rlx_status rlx_session_peek(rlx_session *s, int32_t node, uint64_t first, size_t count,
                                    double *out, rlx_error *err);

/* What check_numerics found in the run that was waited for last. */
#define RLX_NUMERICS_SHOWN 3
#define RLX_NUMERICS_OPERANDS 8
typedef struct rlx_numerics {
    uint64_t steps;      /* that were looked at */
    uint64_t bad_values; /* that held a NaN or Inf */
    int32_t step;        /* the first that gave one; -1: none did */
    const char *step_name;
    int32_t bad_count; /* the first few values with NaN or Inf, in the order of the steps */
    rlx_value_stats bad[RLX_NUMERICS_SHOWN];
    int32_t operand_count; /* what the first such step read */
    rlx_value_stats operand[RLX_NUMERICS_OPERANDS];
    bool has_previous; /* the last value before it that was finite */
    rlx_value_stats previous;
} rlx_numerics;
RLX_API rlx_status rlx_session_numerics(rlx_session *s, rlx_numerics *out, rlx_error *err);
RLX_API void rlx_numerics_print(const rlx_numerics *n, rlx_write_fn write, void *user);

/* ---- tensors in files ---- */

/* An .npy file; the data is the caller's, to be given back with rlx_tensor_free. */
RLX_API rlx_status rlx_tensor_load(rlx_context *ctx, const char *path, rlx_tensor *out,
                                   rlx_error *err);
RLX_API rlx_status rlx_tensor_save(rlx_context *ctx, const char *path, const rlx_tensor *t,
                                   rlx_error *err);
/* Room for a tensor of that dtype and dims (zeros). */
RLX_API rlx_status rlx_tensor_alloc(rlx_context *ctx, rlx_tensor *t, rlx_error *err);
RLX_API void rlx_tensor_free(rlx_context *ctx, rlx_tensor *t);

/* A picture as u8[height,width,channels], where channels are grey, grey and alpha, RGB or RGBA:
 * PNG, PGM and PPM, and JPEG where libturbojpeg is installed. 16 bits become 8. */
RLX_API rlx_status rlx_image_load(rlx_context *ctx, const char *path, rlx_tensor *out,
                                  rlx_error *err);
RLX_API rlx_status rlx_image_parse(rlx_context *ctx, const void *bytes, size_t size,
                                   rlx_tensor *out, rlx_error *err);

/* A sequence or an optional, as ONNX's tests keep them in .pb files. An optional that holds a
 * tensor is a list of one; that holds a sequence, that sequence. */
typedef struct rlx_tensor_list {
    rlx_tensor *at; /* in memory of the context */
    size_t count;
    bool absent; /* an optional that holds nothing */
} rlx_tensor_list;
RLX_API rlx_status rlx_tensor_list_load(rlx_context *ctx, const char *path, rlx_tensor_list *out,
                                        rlx_error *err);
RLX_API void rlx_tensor_list_free(rlx_context *ctx, rlx_tensor_list *l);

/* ---- how fast a device is ---- */

/* At best: measured on the device in a second or a few, and kept in a file of the user's cache for
 * the next time; fresh: measured again. Zeros of a device that computes nothing. */
typedef struct rlx_ceilings {
    char device[128];  /* the CPU's model, or what the GPU calls itself */
    int32_t threads;   /* CPU workers; 0 on a GPU */
    double flops;      /* f32 multiply-adds count as two, per second; of a GPU, in a matmul */
    double copy_bytes; /* read and written, per second */
    bool cached;       /* it came from the file */
    char name[32];     /* of the device, as rlx_device_open takes it */
} rlx_ceilings;
RLX_API rlx_status rlx_ceilings_measure(rlx_device *dev, bool fresh, rlx_ceilings *out,
                                        rlx_error *err);

/* ---- are two results the same? ---- */

/* No element is off by more than abs + rel times the largest |want|, and the cosine is at least:
 * strict 1e-4, 1e-3, 0.9999; half 5e-2, 5e-2, 0.999. */
typedef enum rlx_tolerance { RLX_TOLERANCE_STRICT = 0, RLX_TOLERANCE_HALF = 1 } rlx_tolerance;
typedef struct rlx_comparison {
    uint64_t count, nan_count; /* NaN on either side fails */
    double max_abs, max_rel;   /* the latter of each element by itself */
    double mean_abs, cosine;
    int64_t worst_index; /* of the first NaN, else of max_abs; -1: there are no elements */
    bool passed;
} rlx_comparison;
/* Shapes must be equal, element types need not be. */
RLX_API rlx_status rlx_compare(const rlx_tensor *got, const rlx_tensor *want, rlx_tolerance preset,
                               rlx_comparison *out, rlx_error *err);

/* ---- self-test ---- */

typedef enum rlx_verdict { RLX_PASSED = 0, RLX_FAILED = 1, RLX_SKIPPED = 2 } rlx_verdict;
typedef struct rlx_selftest_result {
    const char *op;
    const char *what; /* "f16 [2,1,3] [4,1] nasty" */
    rlx_verdict verdict;
    const char *message; /* why it failed or was skipped */
    double max_error;    /* as a multiple of what is allowed */
    size_t done, total;
} rlx_selftest_result;
typedef struct rlx_selftest_desc {
    uint32_t size;
    const char *op; /* only this one; NULL: all */
    uint64_t seed;  /* of the random values; 0 is as good as any */
    void (*each)(void *user, const rlx_selftest_result *r); /* NULL: nobody listens */
    void *user;
    /* Each case is written as ONNX (rlx/onnx.h) and read back before it runs; what cannot be
     * written is skipped. */
    bool through_onnx;
} rlx_selftest_desc;
typedef struct rlx_selftest_summary {
    size_t passed, failed, skipped;
} rlx_selftest_summary;
/* Every op on the device, ordinary and nasty values and shapes: the CPU against the definition of
 * each op, other devices against the CPU. */
RLX_API rlx_status rlx_selftest(rlx_context *ctx, rlx_device *dev, const rlx_selftest_desc *desc,
                                rlx_selftest_summary *out, rlx_error *err);

/* ---- a graph on several devices ---- */

/* One node alone on one device, fed with the values the reference had. */
typedef struct rlx_check_node {
    const char *device, *op;
    rlx_str label;
    int32_t node; /* of the graph once its dims are bound */
    rlx_verdict verdict;
    const char *message; /* why it failed or was skipped */
    double error;        /* as a multiple of what is allowed; 0: not a bit of difference */
} rlx_check_node;
/* One output of the whole graph on one device. */
typedef struct rlx_check_output {
    const char *device;
    rlx_str name;
    rlx_comparison comparison;
} rlx_check_output;
typedef struct rlx_check_desc {
    uint32_t size;
    rlx_device *const *devices; /* the first is what the others are compared with */
    size_t device_count;
    const rlx_run_desc *run; /* inputs and dims; its outputs are not used */
    bool exact;              /* nothing may differ, where otherwise each op has its tolerance */
    void (*each_node)(void *user, const rlx_check_node *n);     /* may be NULL, like */
    void (*each_output)(void *user, const rlx_check_output *o); /* this one */
    void *user;
} rlx_check_desc;
typedef struct rlx_check_summary {
    size_t passed, failed, skipped; /* nodes, times devices */
    size_t outputs, outputs_failed;
    size_t devices_skipped; /* they compute nothing, or cannot run the graph */
    char first_device[32];  /* where a node failed first; empty: nowhere */
    char first_op[48], first_label[64];
    int32_t first_node;
} rlx_check_summary;
/* Every node of the model on every device, alone, and the whole model. A difference is not a
 * failure of the call: see out. The values of all nodes are in memory at once. */
RLX_API rlx_status rlx_check(rlx_model *m, const rlx_check_desc *desc, rlx_check_summary *out,
                             rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
