/* rlx.h: load a model, open it on a device, run it many times.
 *
 * Ownership. What a _create, _open or _load gives out, its _destroy or _close takes back, in any
 * order: objects are counted, and each keeps alive what it was made of. Two things that belong to
 * the caller must outlive objects: the functions and data of an allocator, of a log and of custom
 * ops, the last object of their context; and bytes given to rlx_weights_parse, what was made of
 * them. Other pointers that the library gives, names among them, are good until the object that
 * they were asked of is destroyed. Descs are read during the call.
 *
 * Threads. A context never changes and a device locks itself: share both. A model is fixed once it
 * has a session. A session is used by one thread at a time.
 *
 * Errors. A call that can fail returns rlx_status, takes an rlx_error or NULL last and fills it,
 * and leaves *out alone. Nothing here ends the process.
 *
 * More is in rlx/load.h (how a model is loaded), rlx/session.h (states, handles, several runs at a
 * time), rlx/graph.h (graphs built by hand), rlx/weights.h (files of weights) and
 * rlx/custom.h (ops of your own). Headers that ask for RLX_UNSTABLE to be defined may change with
 * any version. */
#ifndef RLX_RLX_H
#define RLX_RLX_H

#include "rlx/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlx_context rlx_context; /* allocator, log, flags, custom ops */
typedef struct rlx_device rlx_device;   /* a CPU or GPU, opened by name; counted, may be shared */
typedef struct rlx_graph rlx_graph;     /* nodes and shapes, while the graph is being built */
typedef struct rlx_model rlx_model;     /* a graph and its weights */
typedef struct rlx_session rlx_session; /* a model on a device */

/* ---- context ----------------------------------------------------------------------------- */

/* A flag of the environment, set in code: its name (with or without RLX_, or that of the option it
 * sets: "no_cse") and its value. */
typedef struct rlx_flag {
    const char *name, *value;
} rlx_flag;

/* Zero is every field's default, and a NULL desc is all zeros. */
typedef struct rlx_context_desc {
    uint32_t size;
    const rlx_allocator *allocator; /* NULL: malloc */
    /* One line per call, level 0 error, 1 warning, 2 info, 3 debug. NULL: silence. */
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    const struct rlx_custom_op *custom_ops; /* rlx/custom.h; each as long as the first says */
    size_t custom_op_count;
    int32_t threads;       /* CPU workers; 0: one per core this process may use */
    const rlx_flag *flags; /* beat the environment, for this context alone; copied */
    size_t flag_count;
    /* A file for a trace of compiles and runs, as Perfetto and chrome://tracing read it; NULL: as
     * RLX_TRACE_PERFETTO says. It is whole after every event. */
    const char *trace;
    /* A folder for compiled programs, made if it is not there. What was compiled before, here or in
     * another process, is then loaded from it. NULL: every program is compiled. */
    const char *cache_dir;
    uint64_t cache_bytes; /* that all of them may take; the least recently used go. 0: 1 GiB */
} rlx_context_desc;

/* Pass RLX_VERSION: a library of an incompatible version fails (VERSION). */
RLX_API rlx_status rlx_context_create(uint32_t version, const rlx_context_desc *desc,
                                      rlx_context **out, rlx_error *err);
RLX_API void rlx_context_destroy(rlx_context *ctx); /* NULL is fine, here and in every _destroy */

/* ---- devices ----------------------------------------------------------------------------- */

/* "cpu", "vulkan", "vulkan:1", "null"; "auto": what RLX_DEVICE names, else the first of
 * RLX_DEVICES, else the CPU. Opening it again adds a reference. */
RLX_API rlx_status rlx_device_open(rlx_context *ctx, const char *name, rlx_device **out,
                                   rlx_error *err);
RLX_API void rlx_device_close(rlx_device *dev);

typedef struct rlx_device_info {
    uint32_t size;
    char name[32]; /* what rlx_device_open takes */
    char description[128];
    bool present;        /* false: description says what is missing */
    int32_t threads;     /* CPU workers, 0 elsewhere */
    uint64_t memory;     /* bytes in all, 0: not known */
    uint64_t max_buffer; /* bytes of the largest single allocation, 0: no limit known */
    uint64_t alignment;  /* of slots */
    char features[256];  /* words */
} rlx_device_info;
/* Device number i of those rlx knows, present or not; ARGUMENT: there are no more. */
RLX_API rlx_status rlx_device_at(rlx_context *ctx, size_t i, rlx_device_info *out, rlx_error *err);

/* ---- models ------------------------------------------------------------------------------ */

/* The graph moves into the model, and g is destroyed, when it succeeds; else g stays yours. */
RLX_API rlx_status rlx_model_create(rlx_graph *g, rlx_model **out, rlx_error *err);

struct rlx_load_desc; /* rlx/load.h */
/* A file in the text form (*.rlx), an artefact (docs/artefacts.md), or an ONNX model
 * (docs/onnx.md). desc NULL: files are mapped. */
RLX_API rlx_status rlx_model_load(rlx_context *ctx, const char *path,
                                  const struct rlx_load_desc *desc, rlx_model **out,
                                  rlx_error *err);
/* The text itself; files it names are refused. */
RLX_API rlx_status rlx_model_parse(rlx_context *ctx, rlx_str text, rlx_model **out, rlx_error *err);
/* Sessions of it stay usable, and keep what they need. */
RLX_API void rlx_model_destroy(rlx_model *m);

typedef enum rlx_io_kind {
    RLX_IO_INPUT = 0,
    RLX_IO_PARAM = 1,
    RLX_IO_STATE = 2,
    RLX_IO_OUTPUT = 3
} rlx_io_kind;
typedef struct rlx_io_info {
    uint32_t size;
    rlx_io_kind kind;
    rlx_str name; /* outputs: the node's label, or "out0", "out1" ... */
    rlx_dtype dtype;
    int32_t rank;
    int64_t dim[RLX_MAX_RANK]; /* -1: symbolic; ask the session after a run */
    bool used;                 /* false: nothing that runs reads it */
    bool variance;             /* a node reads it as a variance: below 0 it gives NaN */
    bool random;               /* of an output: random numbers may have gone into it */
} rlx_io_info;
typedef struct rlx_dim_size { /* the size of a symbolic dim */
    const char *name;
    int64_t size;
} rlx_dim_size;
RLX_API size_t rlx_model_io_count(const rlx_model *m, rlx_io_kind kind);
RLX_API rlx_status rlx_model_io(const rlx_model *m, rlx_io_kind kind, size_t i, rlx_io_info *out,
                                rlx_error *err);
/* Before the model's first session. dtype conversions are exact, or allowed because the declared
 * type is the narrower one; the element count must match. */
RLX_API rlx_status rlx_model_set_param(rlx_model *m, const char *name, const rlx_tensor *value,
                                       rlx_error *err);
/* What it is set to: value->data has value->bytes of room for it in value->dtype; its dims are
 * filled in. STATE: it was never set. */
RLX_API rlx_status rlx_model_get_param(rlx_model *m, const char *name, rlx_tensor *value,
                                       rlx_error *err);

/* ---- sessions ---------------------------------------------------------------------------- */

/* What floats are computed in. Integers, booleans, complex numbers and packed weights keep their
 * type; outputs come back in the type they were declared in; sums are always f32 or better. */
typedef enum rlx_precision {
    RLX_PRECISION_AS_DECLARED = 0,
    RLX_PRECISION_F32 = 1,
    RLX_PRECISION_F16 = 2,
    RLX_PRECISION_MIXED_CONSERVATIVE = 3, /* f16, but f32 in norms, softmax and reductions */
    RLX_PRECISION_MIXED = 4,              /* f16 */
    RLX_PRECISION_MIXED_BF16 = 5,
    RLX_PRECISION_CUSTOM = 6 /* as precision_map says */
} rlx_precision;
typedef struct rlx_precision_map { /* f32, f16 or bf16 each; zero is f32 */
    rlx_dtype compute, reduction, elementwise, movement;
} rlx_precision_map;

/* Whether an input is uploaded if, by a hash of its bytes, its slot already holds the same. */
typedef enum rlx_uploads {
    RLX_UPLOADS_AUTO = 0, /* where hashing is cheaper than uploading: not on the CPU */
    RLX_UPLOADS_ALWAYS = 1,
    RLX_UPLOADS_CHANGED = 2
} rlx_uploads;

/* Whether every step's results are searched for NaN and Inf right after it. */
typedef enum rlx_numerics_mode {
    RLX_NUMERICS_OFF = 0,
    RLX_NUMERICS_REPORT = 1, /* rlx_session_numerics has them; the first is logged */
    RLX_NUMERICS_FAIL = 2    /* and the run fails with NUMERIC */
} rlx_numerics_mode;

/* What a session is to be. Each field is a row of a table, src/base/options.def, in the same order;
 * those that a flag sets as well are in docs/debugging.md. */
typedef struct rlx_session_desc {
    uint32_t size;
    rlx_precision precision;
    rlx_precision_map precision_map;
    /* On GPUs, f32 params that are an operand of a matmul or a convolution are read as f16, from
     * copies that are made when they are set; sums stay in f32. */
    bool f16_weights;
    bool check_indices; /* out-of-range indices fail the run with INDEX */
    rlx_numerics_mode check_numerics;
    int64_t loop_limit; /* LIMIT after so many iterations of an unbounded while; 0: never */
    bool strict_extent; /* EXTENT where a bounded dim would have to be compiled per value */
    /* Bytes of one allocation on the device, where that is less than its own limit; 0: its own.
     * What is larger together is put into several; one value that is larger is LIMIT. The weights
     * are laid out by the first session of a model on a device. */
    uint64_t max_buffer;
    /* Bytes that activations, constants, states, handles, outputs of unfinished runs and copies of
     * weights (which the model's sessions share) may take together; 0: what the device has. More is
     * MEMORY, before anything is allocated. What compiling takes of the host's memory, programs
     * included, is bounded by it too, but not below 64 MiB; 0: by 2 GiB and a multiple of the
     * model. */
    uint64_t memory_limit;
    uint32_t programs;  /* kept at most, one per binding of the symbolic dims; 0: 4 */
    uint32_t in_flight; /* runs that may be submitted before one is waited for; 0: 2 */
    rlx_uploads uploads;
    bool params_default_zero;           /* unset params read as zero instead of failing the run */
    bool reseed_handles;                /* an input given for a fed handle becomes its new value */
    const struct rlx_debug_desc *debug; /* what the compiler leaves out or checks: rlx/debug.h;
                                         * copied. NULL: all defaults */
    /* Bytes that activations should not exceed, where computing values again instead of keeping
     * them can help: training, above all. Results are the same, bit for bit. 0: all are kept. Not
     * for models with symbolic dims that have a bound. */
    uint64_t activation_budget;
} rlx_session_desc;
RLX_API rlx_status rlx_session_create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                                      rlx_session **out, rlx_error *err);
RLX_API void rlx_session_destroy(rlx_session *s);

/* ---- runs ---- */

/* One input, or one output that you want, by name. Outputs are written to tensor.data in
 * tensor.dtype; tensor.bytes is the room there; rank and dims are filled in. */
typedef struct rlx_binding {
    const char *name;
    rlx_tensor tensor;
} rlx_binding;

typedef struct rlx_run_desc {
    uint32_t size;
    const rlx_binding *inputs;
    size_t input_count;
    rlx_binding *outputs; /* those you want; the others are computed and not read back */
    size_t output_count;
    const rlx_dim_size *dims; /* sizes that no input's shape gives */
    size_t dim_count;
} rlx_run_desc;
RLX_API rlx_status rlx_session_run(rlx_session *s, const rlx_run_desc *run, rlx_error *err);

/* Shape of output i after the last run (or, for a static model, at once). Of a model with sizes
 * that depend on data: after it was run, or between submit and wait. */
RLX_API rlx_status rlx_session_output_shape(rlx_session *s, size_t i, rlx_tensor *out,
                                            rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
