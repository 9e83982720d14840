/* rlx.h: load a model, open it on a device, run it many times.
 *
 * Ownership: what a _create, _open or _load hands out, its _destroy or _close takes back. Every
 *            other pointer is borrowed, and lives as long as the object it was asked of. The order
 *            does not matter: an object keeps alive what it was made of, contexts included, and an
 *            allocator, a log and custom ops must outlive the last object of their context.
 * Threads:   a context never changes and a device locks itself: share both. A model is fixed
 *            once it has a session. A session is used by one thread at a time.
 * Errors:    a call that can fail returns rlx_status, takes an rlx_error or NULL last and fills
 *            it, and leaves *out alone. Nothing here ends the process.
 *
 * To build a graph by hand include rlx/graph.h as well. */
#ifndef RLX_RLX_H
#define RLX_RLX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define RLX_API
#else
#define RLX_API __attribute__((visibility("default")))
#endif

/* 0.2.0, as major * 10000 + minor * 100 + patch. Programs run with any library of the same major
 * version that is no older than the headers they were compiled with; below 1.0, of the same minor
 * version. Patches never matter. */
#define RLX_VERSION 200
RLX_API uint32_t rlx_version(void); /* of the library in use */

typedef struct rlx_context rlx_context; /* allocator, log, flags, custom ops */
typedef struct rlx_device rlx_device;   /* a CPU or GPU, opened by name; counted, may be shared */
typedef struct rlx_graph rlx_graph;     /* nodes and shapes, while they are being put together */
typedef struct rlx_model rlx_model;     /* a graph and its weights */
typedef struct rlx_session rlx_session; /* a model on a device */

/* ---- structs that grow -------------------------------------------------------------------- */

/* Structs that begin with `size` may get fields in later versions, at their end. size says which of
 * them the caller knows; others are at their defaults, which are zeros. Begin such a struct with
 *
 *     rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .check_indices = true};
 *
 * or, in C++ before C++20, with {RLX_SIZED(rlx_session_desc)} alone, and set fields after it. A
 * size of 0, and a field that is set and that the library does not know, are ARGUMENT. Structs
 * without `size` stay as they are. */
#if defined(__cplusplus) && __cplusplus < 202002L
#define RLX_SIZED(type) sizeof(type)
#else
#define RLX_SIZED(type) .size = sizeof(type)
#endif

/* ---- text, statuses, errors ------------------------------------------------------------- */

/* UTF-8, not terminated. {NULL, 0} is "none". */
typedef struct rlx_str {
    const char *ptr;
    size_t len;
} rlx_str;
RLX_API rlx_str rlx_cstr(const char *s); /* NULL gives "none" */

#define RLX_STATUS_MAP(X)                                                    \
    X(OK, 0, "ok")                                                           \
    X(ERROR_GRAPH, 1, "the graph is malformed")                              \
    X(ERROR_SHAPE, 2, "shapes do not fit")                                   \
    X(ERROR_DTYPE, 3, "element type not allowed here")                       \
    X(ERROR_ATTRIBUTE, 4, "attribute out of its range")                      \
    X(ERROR_UNSUPPORTED, 5, "well-formed, but not supported here")           \
    X(ERROR_NO_RULE, 6, "the op has no derivative or batching rule")         \
    X(ERROR_NO_GRADIENT, 7, "no gradient path to a requested node")          \
    X(ERROR_UNBOUND_DIM, 8, "a symbolic dim has no size")                    \
    X(ERROR_BINDING, 9, "sizes of a symbolic dim contradict each other")     \
    X(ERROR_NAME, 10, "nothing has that name")                               \
    X(ERROR_ARGUMENT, 11, "bad argument to a call")                          \
    X(ERROR_SIZE, 12, "byte or element count differs from the declared one") \
    X(ERROR_MISSING_INPUT, 13, "an input or param has no value")             \
    X(ERROR_INDEX, 14, "an index in the data is out of range")               \
    X(ERROR_LIMIT, 15, "a limit would be exceeded")                          \
    X(ERROR_MEMORY, 16, "out of memory")                                     \
    X(ERROR_NO_DEVICE, 17, "no usable device of that name")                  \
    X(ERROR_DEVICE_LOST, 18, "the device was lost")                          \
    X(ERROR_EXTENT, 19, "actual size above the declared bound")              \
    X(ERROR_STATE, 20, "call not legal in the present state")                \
    X(ERROR_NUMERIC, 21, "a NaN or Inf was found where none may be")         \
    X(ERROR_IO, 22, "file could not be read or written")                     \
    X(ERROR_FORMAT, 23, "file content violates its format")                  \
    X(ERROR_VERSION, 24, "written for an incompatible version")              \
    X(ERROR_INTERNAL, 25, "an invariant inside rlx is broken: please report this")

#define X(name, value, text) RLX_##name = value,
typedef enum rlx_status { RLX_STATUS_MAP(X) } rlx_status;
#undef X
RLX_API const char *rlx_status_name(rlx_status s); /* "SHAPE"; never NULL */
RLX_API const char *rlx_status_text(rlx_status s); /* "shapes do not fit"; never NULL */

/* What went wrong, in full. Yours: on the stack, one per thread, or NULL if you do not care. */
typedef struct rlx_error {
    rlx_status status;
    int32_t node; /* its id; -1: not about a node */
    char stage[16], backend[16], op[48], label[64];
    char message[512]; /* a sentence with the values in it */
} rlx_error;

/* ---- memory ------------------------------------------------------------------------------ */

/* One callback for everything. ptr NULL, old_size 0: allocate. new_size 0: free, answer NULL.
 * Otherwise resize, as realloc does. A result is aligned like malloc's, or NULL: no memory.
 * Called from one thread at a time per object, but from several threads in all. */
typedef struct rlx_allocator {
    void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size);
    void *user;
} rlx_allocator;

/* ---- element types ---------------------------------------------------------------------- */

/* X(name, number, bytes, class, what it is); classes: F float, I signed, U unsigned, B bool, C
 * complex */
#define RLX_DTYPE_MAP(X)                          \
    X(f32, 0, 4, F, "IEEE binary32")              \
    X(f16, 1, 2, F, "IEEE binary16")              \
    X(bf16, 2, 2, F, "upper half of binary32")    \
    X(f64, 3, 8, F, "IEEE binary64")              \
    X(i8, 4, 1, I, "two's complement")            \
    X(i16, 5, 2, I, "two's complement")           \
    X(i32, 6, 4, I, "two's complement")           \
    X(i64, 7, 8, I, "two's complement")           \
    X(u8, 8, 1, U, "also packed quantised bytes") \
    X(u16, 9, 2, U, "unsigned")                   \
    X(u32, 10, 4, U, "unsigned")                  \
    X(u64, 11, 8, U, "unsigned")                  \
    X(bool, 12, 1, B, "0 or 1")                   \
    X(c64, 13, 8, C, "f32 real, f32 imaginary")

#define X(name, number, bytes, cls, text) RLX_DTYPE_##name = number,
typedef enum rlx_dtype { RLX_DTYPE_MAP(X) RLX_DTYPE_count } rlx_dtype;
#undef X
RLX_API const char *rlx_dtype_name(rlx_dtype d); /* "f32"; "?" if there is no such type */
RLX_API size_t rlx_dtype_size(rlx_dtype d);      /* bytes; 0 if there is no such type */

#define RLX_MAX_RANK 8

/* Elements in host memory: dense, row-major, little-endian. */
typedef struct rlx_tensor {
    rlx_dtype dtype;
    int32_t rank;
    int64_t dim[RLX_MAX_RANK];
    void *data;
    size_t bytes; /* of data; checked against dtype and dims wherever one is taken */
} rlx_tensor;

/* A node's result, by the node's position in its graph: see rlx/graph.h. */
typedef int32_t rlx_value;
#define RLX_NO_VALUE ((rlx_value)-1)

/* ---- context ----------------------------------------------------------------------------- */

/* An op of your own (ops-core.md 18.1). All pointers must outlive the context. */
typedef struct rlx_custom_op {
    const char *name;
    int32_t inputs; /* how many it takes */
    /* Fill out's dtype, rank and dims from the inputs' (data is NULL); dims are sizes. A failure's
     * sentence goes to message (256 bytes). Pure: called when a graph is built and again later. In
     * a graph with symbolic dims it is called with made-up sizes first, to learn which sizes of the
     * result are an input's, and with those of each binding then. */
    rlx_status (*infer)(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                        size_t attrs_size, rlx_tensor *out, char *message);
    /* Read the inputs, write every element of out, which overlaps none of them. Deterministic. For
     * an op of several results, out is an array of all of them, here and in infer. Called on the
     * thread that runs: the caller's of rlx_session_run, the device's own after a submit. */
    rlx_status (*cpu)(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                      size_t attrs_size, rlx_tensor *out);
    void *user;
    /* Its gradient, in ordinary nodes that the builders of rlx/graph.h add to g: dy is that of its
     * value y; put that of in[i], a value of the same type, into dx[i], or leave RLX_NO_VALUE for
     * none. What the builders refuse is reported. NULL: asking for the gradient is an error. */
    rlx_status (*vjp)(void *user, rlx_graph *g, const rlx_value *in, int32_t in_count,
                      const void *attrs, size_t attrs_size, rlx_value y, rlx_value dy,
                      rlx_value *dx);
    bool non_differentiable; /* it has none, and nothing flows through it */
    /* For GPUs: source in the kernel language (docs/kernel-language.md) with a kernel named
     * `custom`. Its parameters: a buffer for each input, one for the result, `count: u32`, the
     * elements of the result, `dims: [u32; 8 * (inputs + 1)]`, the sizes of each, the result's
     * last, with ones behind, and, where there are attributes, their bytes as `attrs: [u32; n]`,
     * zeros behind. There is an invocation per element, in groups of 256. NULL: no GPU runs it. An
     * op of several results has a buffer and eight sizes for each; count is of the first. */
    const char *kernel;
    /* How many results it has, 8 at most; 0 is 1. A node `custom` has the one that its attribute
     * `result` says, 0 if it says none, so nodes that differ in it alone give them all. */
    int32_t outputs;
    /* How many groups of its kernel there are, along x, y and z; the group's size is then whatever
     * the kernel declares. Any of them 0: the kernel has nothing to do. Pure. NULL: as above. */
    rlx_status (*grid)(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                       size_t attrs_size, const rlx_tensor *out, uint32_t groups[3]);
} rlx_custom_op;

/* A flag of the environment, set in code: its name (with or without RLX_) and its value. */
typedef struct rlx_flag {
    const char *name, *value;
} rlx_flag;

/* Zero is every field's default, and a NULL desc is all zeros. New fields go at the end. */
typedef struct rlx_context_desc {
    const rlx_allocator *allocator; /* NULL: malloc */
    /* One line per call, level 0 error, 1 warning, 2 info, 3 debug. NULL: silence. */
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    const rlx_custom_op *custom_ops;
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

/* Pass RLX_VERSION: a library that does not serve this program says so (VERSION). */
RLX_API rlx_status rlx_context_create(uint32_t version, const rlx_context_desc *desc,
                                      rlx_context **out, rlx_error *err);
RLX_API void rlx_context_destroy(rlx_context *ctx); /* NULL is fine, here and in every _destroy */

/* ---- devices ----------------------------------------------------------------------------- */

/* "cpu", "vulkan", "vulkan:1", "null"; "auto": what RLX_DEVICE names, else the first of
 * RLX_DEVICES, else the CPU. Opening it again counts up. */
RLX_API rlx_status rlx_device_open(rlx_context *ctx, rlx_str name, rlx_device **out,
                                   rlx_error *err);
RLX_API void rlx_device_close(rlx_device *dev);

typedef struct rlx_device_info {
    char name[32]; /* what rlx_device_open takes */
    char description[128];
    bool present;        /* false: description says what is missing */
    int32_t threads;     /* CPU workers, 0 elsewhere */
    uint64_t memory;     /* bytes in all, 0: not known */
    uint64_t max_buffer; /* bytes of the largest single allocation, 0: no limit known */
    uint64_t alignment;  /* of slots */
    char features[256];  /* words */
} rlx_device_info;
/* Device number i of those rlx knows, present or not; false: there are no more. */
RLX_API bool rlx_device_list(rlx_context *ctx, size_t i, rlx_device_info *out);

/* ---- models ------------------------------------------------------------------------------ */

/* The graph moves into the model, and g is destroyed, when it succeeds; else g stays yours. */
RLX_API rlx_status rlx_model_create(rlx_graph *g, rlx_model **out, rlx_error *err);

/* What is told of an input of an ONNX model before the model is loaded: see rlx_load_desc. */
typedef struct rlx_load_input {
    const char *name;  /* NULL: the input whose number this entry has */
    bool absent;       /* an optional without a value */
    size_t item_count; /* of a sequence */
    /* The shapes of its items (of what is no sequence: one, its own), where the model does not tell
     * them or they are to be fixed; nothing but rank and dim is read. NULL: as the model says. */
    const struct rlx_tensor *shape;
} rlx_load_input;

typedef struct rlx_load_desc {
    bool read_files; /* read files into memory instead of mapping them. A mapped file that another
                        process truncates kills the reader. */
    bool skip_checksums; /* of an artefact. All else in it is checked as ever. */
    /* Files that the file names may be anywhere. Otherwise they are in its folder or below it, and
     * a name that is absolute, holds ".." or leads through a symbolic link is refused. */
    bool follow_external;
    /* Of an ONNX model: inputs whose values are known already, by name, or by number where the name
     * is NULL (data NULL: not this one). An input that tells a shape or an axis must be known, as
     * nothing can be compiled without; so may be one that chooses a branch. Given at a run, such an
     * input changes nothing any more. */
    const struct rlx_binding *known;
    size_t known_count;
    /* Of an ONNX model whose inputs are sequences or optionals. A sequence "x" of three items is
     * the inputs "x[0]", "x[1]" and "x[2]" of the model; how many must be told here. An optional
     * has a value, given under its own name, unless it is told to be absent. Outputs likewise. */
    const struct rlx_load_input *inputs;
    size_t input_count;
    /* Of an artefact that you made yourself, or have from somebody you trust: its compiled graphs
     * are run as they are. Otherwise the passes are made again, and have to give these very graphs.
     */
    bool trust_programs;
} rlx_load_desc;
/* A file in the text form (*.rlx), an artefact (rlx/artefact.h), or an ONNX model (docs/onnx.md).
 */
RLX_API rlx_status rlx_model_load(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                                  rlx_model **out, rlx_error *err);
/* The text itself; files it names are refused. */
RLX_API rlx_status rlx_model_parse(rlx_context *ctx, rlx_str text, rlx_model **out, rlx_error *err);
RLX_API void
rlx_model_destroy(rlx_model *m); /* sessions of it stay usable and keep what they need */

typedef enum rlx_io_kind {
    RLX_IO_INPUT = 0,
    RLX_IO_PARAM = 1,
    RLX_IO_STATE = 2,
    RLX_IO_OUTPUT = 3
} rlx_io_kind;
typedef struct rlx_io_info {
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
/* The shape input i has when symbolic dims have these sizes: out's dtype, rank, dims and bytes. */
RLX_API rlx_status rlx_model_input_shape(const rlx_model *m, size_t i, const rlx_dim_size *dims,
                                         size_t dim_count, rlx_tensor *out, rlx_error *err);

/* Before the model's first session. dtype conversions are exact, or allowed because the declared
 * type is the narrower one; the element count must match. */
RLX_API rlx_status rlx_model_set_param(rlx_model *m, const char *name, const rlx_tensor *value,
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
/* Where an op has both a kernel of its own and a body of simpler ops. */
typedef enum rlx_dispatch {
    RLX_DISPATCH_AUTO = 0,
    RLX_DISPATCH_COMMON = 1,
    RLX_DISPATCH_NATIVE = 2
} rlx_dispatch;

/* Is an input uploaded that is, by a hash of its bytes, what its slot holds already? */
typedef enum rlx_uploads {
    RLX_UPLOADS_AUTO = 0, /* where hashing is cheaper than uploading: not on the CPU */
    RLX_UPLOADS_ALWAYS = 1,
    RLX_UPLOADS_CHANGED = 2
} rlx_uploads;

/* Whether every step's results are searched for NaN and Inf right after it. */
typedef enum rlx_numerics_mode {
    RLX_NUMERICS_OFF = 0,
    RLX_NUMERICS_REPORT = 1, /* rlx_session_numerics tells; the log hears of the first */
    RLX_NUMERICS_FAIL = 2    /* and the run fails with NUMERIC */
} rlx_numerics_mode;

typedef struct rlx_session_desc {
    uint64_t alignment; /* of slots, 16 to 65536; 0: the device's; GPUs take no less than theirs */
    bool no_reuse;      /* every tensor its own bytes: for debugging */
    bool no_in_place;
    bool params_default_zero; /* unset params read as zero instead of failing the run */
    bool check_plan;          /* verify the memory plan */
    bool check_indices;       /* out-of-range indices fail the run with INDEX */
    bool no_optimize;         /* skip rewriting passes */
    int64_t loop_limit;       /* LIMIT after so many iterations of an unbounded while; 0: never */
    rlx_precision precision;
    rlx_precision_map precision_map;
    rlx_dispatch dispatch;
    bool no_fold, no_cse; /* constants are not computed beforehand; equal nodes stay apart */
    bool no_fusion;       /* none of the fusions, or not these: */
    bool no_matmul_fusion, no_residual_fusion, no_weight_concat, no_regions;
    bool no_static_pack;      /* what depends on params alone is computed in every run */
    bool assert_fusion_clean; /* GRAPH when a fusion was missed, with the list */
    bool no_packed_weights;   /* kernels read weights as they are: slower, but no copies */
    bool strict_extent;       /* EXTENT where a bounded dim would have to be compiled per value */
    bool reseed_handles;      /* an input given for a fed handle becomes its new value */
    uint32_t in_flight;       /* runs that may be submitted before one is waited for; 0: 2 */
    uint32_t programs;        /* kept at most, one per binding of the symbolic dims; 0: 4 */
    rlx_uploads uploads;
    bool verify_passes; /* the graph is verified after every pass */
    rlx_numerics_mode check_numerics;
    /* Exceptions from dispatch: names of ops with commas between them, which must outlive the
     * session; what stands in both lists is native. */
    const char *native_ops, *common_ops;
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
    /* Nodes that would share a step stay apart: a product and the thirds of its columns, these and
     * the attention that reads them, a residual sum and the norm of it. */
    bool no_qkv_split, no_packed_qkv, no_norm_tee;
    /* On GPUs, f32 params that are an operand of a matmul or a convolution are read as f16, from
     * copies that are made when they are set; sums stay in f32. */
    bool f16_weights;
} rlx_session_desc;
RLX_API rlx_status rlx_session_create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                                      rlx_session **out, rlx_error *err);
RLX_API void rlx_session_destroy(rlx_session *s);

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
 * size, told by the inputs' shapes or rlx_run_desc.dims. Before the first run, else STATE. The text
 * form says the same with "dim seq <= 512". */
RLX_API rlx_status rlx_session_set_bound(rlx_session *s, const char *dim, int64_t upper,
                                         rlx_error *err);
typedef struct rlx_bound_info {
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
 * the first run: binding one that was not bound before compiles anew. */
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

/* ---- runs ---- */

/* As an input's data: it is what it was in the last run. */
RLX_API extern const char rlx_unchanged;
#define RLX_UNCHANGED ((void *)&rlx_unchanged)

/* One input, or one output that you want, by name. Outputs are written to tensor.data in
 * tensor.dtype; tensor.bytes is the room there; rank and dims are filled in. */
typedef struct rlx_binding {
    const char *name;
    rlx_tensor tensor;
} rlx_binding;

typedef struct rlx_run_desc {
    const rlx_binding *inputs;
    size_t input_count;
    rlx_binding *outputs; /* those you want; the others are computed and not read back */
    size_t output_count;
    const rlx_dim_size *dims; /* sizes that no input's shape tells */
    size_t dim_count;
} rlx_run_desc;
RLX_API rlx_status rlx_session_run(rlx_session *s, const rlx_run_desc *run, rlx_error *err);
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

/* Shape of output i after the last run (or, for a static model, at once). Of a model with sizes
 * that depend on data: after it was run, or between submit and wait. */
RLX_API rlx_status rlx_session_output_shape(rlx_session *s, size_t i, rlx_tensor *out,
                                            rlx_error *err);

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
    uint64_t weights, constants, activations, state; /* bytes; weights: those read as they are */
    uint64_t weight_copies;                          /* packed and combined weights */
    uint64_t lower_bound, unshared;                  /* of the activations */
    uint32_t steps, in_place;
    uint32_t buffers; /* that the activations lie in: several, where one would be too large */
} rlx_memory_info;
RLX_API rlx_status rlx_session_memory(rlx_session *s, rlx_memory_info *out, rlx_error *err);

#ifdef __cplusplus
}
#endif
#endif
