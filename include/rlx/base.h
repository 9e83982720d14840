/* base.h: what all headers of rlx share: the version, statuses and errors, element types, tensors.
 * rlx/rlx.h includes it. */
#ifndef RLX_BASE_H
#define RLX_BASE_H

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

/* 0.2.0, as major * 10000 + minor * 100 + patch. A program runs with any library of the same major
 * version whose minor version is not older than that of the headers it was compiled with. Below
 * 1.0, the minor versions must be equal. Patch versions never matter. */
#define RLX_VERSION 200
RLX_API uint32_t rlx_version(void); /* of the library in use */

/* ---- structs that grow -------------------------------------------------------------------- */

/* Structs that begin with `size` may gain fields at their end in later versions. size tells the
 * library which fields the caller knows; all others take their default, zero. Set it first, in C
 * and in C++:
 *
 *     rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .check_indices = true};
 *     rlx_session_desc desc{}; desc.size = sizeof desc;
 *
 * It is an ARGUMENT error if size is 0, or if a field is set that the library does not know.
 * Structs without `size`, such as those passed in arrays, never change. */
#ifndef __cplusplus
#define RLX_SIZED(type) .size = sizeof(type)
#endif

/* ---- text, statuses, errors ------------------------------------------------------------- */

/* UTF-8, not terminated: texts, names that the library returns, and calls that look up such names.
 * {NULL, 0} is "none". Names that a program makes up are const char *, terminated by a 0. */
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

/* One callback for everything. ptr NULL, old_size 0: allocate. new_size 0: free, return NULL.
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
RLX_API const char *rlx_dtype_name(rlx_dtype d); /* "f32"; "?" for an unknown type */
RLX_API size_t rlx_dtype_size(rlx_dtype d);      /* bytes; 0 for an unknown type */

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

#ifdef __cplusplus
}
#endif
#endif
