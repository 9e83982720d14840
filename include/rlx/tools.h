/* tools.h: looking inside: graphs as text and pictures, memory plans, the op table, self-tests, and
 * tensors in files. What the rlx command is made of. */
#ifndef RLX_TOOLS_H
#define RLX_TOOLS_H

#include "rlx/rlx.h"

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
RLX_API bool rlx_op_list(size_t i, rlx_op_row *out);

/* ---- models ---- */

/* The canonical text form. elide shortens large constants, for people; types adds every type. */
RLX_API rlx_status rlx_model_print(const rlx_model *m, bool elide, bool types, rlx_write_fn write,
                                   void *user, rlx_error *err);
/* Inputs, params, states, outputs, counts of ops and sizes: a table, or JSON. */
RLX_API rlx_status rlx_model_describe(const rlx_model *m, bool json, rlx_write_fn write, void *user,
                                      rlx_error *err);
typedef enum rlx_picture { RLX_PICTURE_SVG, RLX_PICTURE_DOT } rlx_picture;
RLX_API rlx_status rlx_model_draw(const rlx_model *m, rlx_picture kind, rlx_write_fn write,
                                  void *user, rlx_error *err);

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
/* Pass number i of those there are; false: there are no more. */
RLX_API bool rlx_pass_list(size_t i, const char **name, const char **summary);

/* The graph as it is after that pass of a compile for dev (NULL: for none in particular); of a pass
 * that is made several times, after the last time. */
RLX_API rlx_status rlx_model_print_after(const rlx_model *m, const char *pass, rlx_device *dev,
                                         bool elide, bool types, rlx_write_fn write, void *user,
                                         rlx_error *err);
/* Who runs what on dev: for each op in the model whether the device has a kernel, simpler ops stand
 * in for it, or nothing does: a table, or JSON. */
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
    bool per_channel; /* false: one scale for the whole value, and axis is not looked at */
    int64_t axis;     /* of the channels; from the end where negative */
    const float *scales;
    const float *zero_points; /* whole numbers of -128 to 127; NULL: all 0 */
    size_t count;             /* of scales, and of zero points: one per channel, or 1 */
} rlx_qdq_record;
/* A new model in which each value named is quantised to i8 and back before anything reads it.
 * Values must be floats, and no states. */
RLX_API rlx_status rlx_model_insert_qdq(const rlx_model *m, const rlx_qdq_record *records,
                                        size_t count, rlx_model **out, rlx_error *err);
/* What fusing makes of the model on that device (NULL: on one that has every fused op): nodes and
 * ops before and after, and what nearly fused: which node, why not, and what would help. A table,
 * or JSON. */
RLX_API rlx_status rlx_model_fusion(const rlx_model *m, rlx_device *dev, bool json,
                                    rlx_write_fn write, void *user, rlx_error *err);

/* ---- memory plans ---- */

typedef enum rlx_plan_format { RLX_PLAN_TEXT, RLX_PLAN_JSON, RLX_PLAN_SVG } rlx_plan_format;
typedef struct rlx_plan_summary {
    uint64_t arena, lower_bound, unshared;
    size_t values;
    const char *method;
} rlx_plan_summary;
/* Of the session's program (after a run, if the model has symbolic dims). */
RLX_API rlx_status rlx_session_plan(rlx_session *s, rlx_plan_format format, rlx_write_fn write,
                                    void *user, rlx_plan_summary *out, rlx_error *err);
/* A bare problem in MiniMalloc's CSV form. capacity 0: as small as it gets. */
RLX_API rlx_status rlx_plan_csv(rlx_context *ctx, rlx_str csv, uint64_t capacity,
                                rlx_plan_format format, rlx_write_fn write, void *user,
                                rlx_plan_summary *out, rlx_error *err);

/* ---- tensors in files ---- */

/* An .npy file; the data is the caller's, to be given back with rlx_tensor_free. */
RLX_API rlx_status rlx_tensor_load(rlx_context *ctx, const char *path, rlx_tensor *out,
                                   rlx_error *err);
RLX_API rlx_status rlx_tensor_save(rlx_context *ctx, const char *path, const rlx_tensor *t,
                                   rlx_error *err);
/* Room for a tensor of that dtype and dims (zeros). */
RLX_API rlx_status rlx_tensor_alloc(rlx_context *ctx, rlx_tensor *t, rlx_error *err);
RLX_API void rlx_tensor_free(rlx_context *ctx, rlx_tensor *t);

/* ---- self-test ---- */

typedef enum rlx_verdict { RLX_PASSED, RLX_FAILED, RLX_SKIPPED } rlx_verdict;
typedef struct rlx_selftest_result {
    const char *op;
    const char *what; /* "f16 [2,1,3] [4,1] nasty" */
    rlx_verdict verdict;
    const char *message; /* why it failed or was skipped */
    double max_error;    /* as a multiple of what is allowed */
    size_t done, total;
} rlx_selftest_result;
typedef struct rlx_selftest_desc {
    const char *op; /* only this one; NULL: all */
    uint64_t seed;  /* of the random values; 0 is as good as any */
    void (*each)(void *user, const rlx_selftest_result *r); /* NULL: nobody listens */
    void *user;
} rlx_selftest_desc;
typedef struct rlx_selftest_summary {
    size_t passed, failed, skipped;
} rlx_selftest_summary;
/* Every op on the device, ordinary and nasty values and shapes: the CPU against the definition of
 * each op, other devices against the CPU. */
RLX_API rlx_status rlx_selftest(rlx_context *ctx, rlx_device *dev, const rlx_selftest_desc *desc,
                                rlx_selftest_summary *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
