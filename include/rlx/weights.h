/* weights.h: files that hold tensors by name, and no graph: GGUF, safetensors, npz, npy.
 *
 * A file comes from a stranger: it is checked before anything is believed, and what breaks its
 * format is refused (FORMAT) with the byte where it does. docs/formats.md lists formats and types.
 */
#ifndef RLX_WEIGHTS_H
#define RLX_WEIGHTS_H

#include "rlx/load.h"
#include "rlx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a file is ---------------------------------------------------------------------- */

/* X(name, number, extension, what it is). Content decides; an extension is only what files are
 * called. */
#define RLX_FILE_KIND_MAP(X)                                                   \
    X(unknown, 0, "", "nothing that rlx knows")                                \
    X(text, 1, ".rlx", "a graph in the text form")                             \
    X(artefact, 2, ".rlxa", "a model with its compiled programs")              \
    X(onnx, 3, ".onnx", "an ONNX model")                                       \
    X(gguf, 4, ".gguf", "tensors and metadata, packed weights among them")     \
    X(safetensors, 5, ".safetensors", "tensors after a JSON header")           \
    X(safetensors_index, 6, ".json", "the index of several safetensors files") \
    X(npy, 7, ".npy", "one NumPy array")                                       \
    X(npz, 8, ".npz", "NumPy arrays in a zip archive")

#define X(name, number, extension, text) RLX_FILE_##name = number,
typedef enum rlx_file_kind { RLX_FILE_KIND_MAP(X) RLX_FILE_count } rlx_file_kind;
#undef X
RLX_API const char *rlx_file_kind_name(rlx_file_kind k); /* "gguf"; "?" if there is no such kind */
RLX_API const char *rlx_file_kind_text(rlx_file_kind k); /* "one NumPy array"; likewise */
/* By what is in the file. */
RLX_API rlx_status rlx_file_detect(rlx_context *ctx, const char *path, rlx_file_kind *out,
                                   rlx_error *err);

/* ---- element types of files -------------------------------------------------------------- */

/* X(name, number, elements of a block, its bytes, id in GGUF or -1, name in safetensors or "", code
 * in npy or "", what it is here, as what). PLAIN: elements of that dtype. BYTES: numbers in a byte
 * each, which that dtype holds. PACKED: blocks of that quant_scheme, which rlx/quant.h and
 * dequant_matmul read. OPAQUE: its bytes can be copied, but nothing here knows their meaning. */
#define RLX_WEIGHT_TYPE_MAP(X)                                           \
    X(F32, 0, 1, 4, 0, "F32", "f4", PLAIN, RLX_DTYPE_f32)                \
    X(F16, 1, 1, 2, 1, "F16", "f2", PLAIN, RLX_DTYPE_f16)                \
    X(BF16, 2, 1, 2, 30, "BF16", "", PLAIN, RLX_DTYPE_bf16)              \
    X(F64, 3, 1, 8, 28, "F64", "f8", PLAIN, RLX_DTYPE_f64)               \
    X(I8, 4, 1, 1, 24, "I8", "i1", PLAIN, RLX_DTYPE_i8)                  \
    X(I16, 5, 1, 2, 25, "I16", "i2", PLAIN, RLX_DTYPE_i16)               \
    X(I32, 6, 1, 4, 26, "I32", "i4", PLAIN, RLX_DTYPE_i32)               \
    X(I64, 7, 1, 8, 27, "I64", "i8", PLAIN, RLX_DTYPE_i64)               \
    X(U8, 8, 1, 1, -1, "U8", "u1", PLAIN, RLX_DTYPE_u8)                  \
    X(U16, 9, 1, 2, -1, "U16", "u2", PLAIN, RLX_DTYPE_u16)               \
    X(U32, 10, 1, 4, -1, "U32", "u4", PLAIN, RLX_DTYPE_u32)              \
    X(U64, 11, 1, 8, -1, "U64", "u8", PLAIN, RLX_DTYPE_u64)              \
    X(BOOL, 12, 1, 1, -1, "BOOL", "b1", PLAIN, RLX_DTYPE_bool)           \
    X(C64, 13, 1, 8, -1, "C64", "c8", PLAIN, RLX_DTYPE_c64)              \
    X(F8_E4M3, 14, 1, 1, -1, "F8_E4M3", "", BYTES, RLX_DTYPE_u8)         \
    X(F8_E5M2, 15, 1, 1, -1, "F8_E5M2", "", BYTES, RLX_DTYPE_u8)         \
    X(F8_E8M0, 16, 1, 1, -1, "F8_E8M0", "", OPAQUE, RLX_DTYPE_u8)        \
    X(F4, 17, 2, 1, -1, "F4", "", OPAQUE, RLX_DTYPE_u8)                  \
    X(F6_E2M3, 18, 4, 3, -1, "F6_E2M3", "", OPAQUE, RLX_DTYPE_u8)        \
    X(F6_E3M2, 19, 4, 3, -1, "F6_E3M2", "", OPAQUE, RLX_DTYPE_u8)        \
    X(Q4_0, 20, 32, 18, 2, "", "", PACKED, RLX_QUANT_SCHEME_q4_0)        \
    X(Q4_1, 21, 32, 20, 3, "", "", PACKED, RLX_QUANT_SCHEME_q4_1)        \
    X(Q5_0, 22, 32, 22, 6, "", "", PACKED, RLX_QUANT_SCHEME_q5_0)        \
    X(Q5_1, 23, 32, 24, 7, "", "", PACKED, RLX_QUANT_SCHEME_q5_1)        \
    X(Q8_0, 24, 32, 34, 8, "", "", PACKED, RLX_QUANT_SCHEME_q8_0)        \
    X(Q8_1, 25, 32, 36, 9, "", "", PACKED, RLX_QUANT_SCHEME_q8_1)        \
    X(Q2_K, 26, 256, 84, 10, "", "", PACKED, RLX_QUANT_SCHEME_q2_k)      \
    X(Q3_K, 27, 256, 110, 11, "", "", PACKED, RLX_QUANT_SCHEME_q3_k)     \
    X(Q4_K, 28, 256, 144, 12, "", "", PACKED, RLX_QUANT_SCHEME_q4_k)     \
    X(Q5_K, 29, 256, 176, 13, "", "", PACKED, RLX_QUANT_SCHEME_q5_k)     \
    X(Q6_K, 30, 256, 210, 14, "", "", PACKED, RLX_QUANT_SCHEME_q6_k)     \
    X(Q8_K, 31, 256, 292, 15, "", "", PACKED, RLX_QUANT_SCHEME_q8_k)     \
    X(IQ4_NL, 32, 32, 18, 20, "", "", PACKED, RLX_QUANT_SCHEME_iq4_nl)   \
    X(IQ4_XS, 33, 256, 136, 23, "", "", PACKED, RLX_QUANT_SCHEME_iq4_xs) \
    X(IQ2_XXS, 34, 256, 66, 16, "", "", OPAQUE, RLX_DTYPE_u8)            \
    X(IQ2_XS, 35, 256, 74, 17, "", "", OPAQUE, RLX_DTYPE_u8)             \
    X(IQ3_XXS, 36, 256, 98, 18, "", "", OPAQUE, RLX_DTYPE_u8)            \
    X(IQ1_S, 37, 256, 50, 19, "", "", OPAQUE, RLX_DTYPE_u8)              \
    X(IQ3_S, 38, 256, 110, 21, "", "", OPAQUE, RLX_DTYPE_u8)             \
    X(IQ2_S, 39, 256, 82, 22, "", "", OPAQUE, RLX_DTYPE_u8)              \
    X(IQ1_M, 40, 256, 56, 29, "", "", OPAQUE, RLX_DTYPE_u8)              \
    X(TQ1_0, 41, 256, 54, 34, "", "", PACKED, RLX_QUANT_SCHEME_tq1_0)    \
    X(TQ2_0, 42, 256, 66, 35, "", "", PACKED, RLX_QUANT_SCHEME_tq2_0)    \
    X(MXFP4, 43, 32, 17, 39, "", "", PACKED, RLX_QUANT_SCHEME_mxfp4)     \
    X(NVFP4, 44, 64, 36, 40, "", "", PACKED, RLX_QUANT_SCHEME_nvfp4)     \
    X(Q1_0, 45, 128, 18, 41, "", "", OPAQUE, RLX_DTYPE_u8)               \
    X(Q2_0, 46, 64, 18, 42, "", "", OPAQUE, RLX_DTYPE_u8)

#define X(name, number, elems, bytes, gguf, safetensors, npy, use, as) RLX_WEIGHT_##name = number,
typedef enum rlx_weight_type { RLX_WEIGHT_TYPE_MAP(X) RLX_WEIGHT_TYPE_count } rlx_weight_type;
#undef X
typedef enum rlx_weight_use {
    RLX_WEIGHT_PLAIN = 0,
    RLX_WEIGHT_BYTES = 1,
    RLX_WEIGHT_PACKED = 2,
    RLX_WEIGHT_OPAQUE = 3
} rlx_weight_use;
typedef struct rlx_weight_type_info {
    uint32_t size;
    const char *name;
    int32_t block_elems, block_bytes;
    rlx_weight_use use;
    rlx_dtype dtype;         /* PLAIN: of the elements; else u8 */
    rlx_quant_scheme scheme; /* PACKED */
} rlx_weight_type_info;
/* DTYPE: there is no such type. */
RLX_API rlx_status rlx_weight_type_describe(rlx_weight_type t, rlx_weight_type_info *out,
                                            rlx_error *err);
/* By its name, in either case: "Q4_K", "bf16". */
RLX_API bool rlx_weight_type_find(const char *name, rlx_weight_type *out);

/* ---- reading ----------------------------------------------------------------------------- */

/* Any number of threads may ask an open file. */
typedef struct rlx_weights rlx_weights;
/* GGUF (all parts of a split one, given the first), safetensors, the index of several of them, npz,
 * npy. Files are mapped unless desc says otherwise, and tensors stay where they are. */
RLX_API rlx_status rlx_weights_open(rlx_context *ctx, const char *path, const rlx_load_desc *desc,
                                    rlx_weights **out, rlx_error *err);
/* A file that is in memory already: bytes stay yours, and must outlive what is made of them. Files
 * that it names are refused. */
RLX_API rlx_status rlx_weights_parse(rlx_context *ctx, const void *bytes, size_t size,
                                     rlx_weights **out, rlx_error *err);
RLX_API void rlx_weights_close(rlx_weights *w); /* models that use it keep what they need */

typedef struct rlx_weights_info {
    uint32_t size;
    rlx_file_kind kind;
    uint32_t version;   /* of GGUF; 0 elsewhere */
    uint32_t files;     /* that it is made of */
    uint64_t bytes;     /* of those files */
    uint64_t alignment; /* of tensors in the file; 0: none is promised */
    size_t tensor_count, meta_count;
} rlx_weights_info;
RLX_API rlx_status rlx_weights_describe(const rlx_weights *w, rlx_weights_info *out,
                                        rlx_error *err);

#define RLX_WEIGHT_MAX_RANK 16 /* of files; a model's values have RLX_MAX_RANK at most */
typedef struct rlx_weight {
    rlx_str name;
    rlx_weight_type type;
    int32_t rank;
    int64_t dim[RLX_WEIGHT_MAX_RANK]; /* row-major: the last one is the fastest */
    uint64_t bytes;
} rlx_weight;
/* Tensor number i, in the order of the file; false: there are no more. */
RLX_API bool rlx_weights_at(const rlx_weights *w, size_t i, rlx_weight *out);
RLX_API bool rlx_weights_find(const rlx_weights *w, rlx_str name, size_t *i);
/* Its bytes, row-major and little-endian. Of most files they lie in the map, and any alignment is
 * possible; what has to be inflated, swapped or transposed is made on first use and then kept. */
RLX_API rlx_status rlx_weights_data(rlx_weights *w, size_t i, const void **out, rlx_error *err);
/* Elements first to first + count - 1 as f32: converted, or unpacked. Both are multiples of the
 * type's block_elems. DTYPE for complex numbers, UNSUPPORTED for BYTES and OPAQUE types. */
RLX_API rlx_status rlx_weights_read_f32(rlx_weights *w, size_t i, uint64_t first, uint64_t count,
                                        float *out, rlx_error *err);

/* ---- metadata ---------------------------------------------------------------------------- */

/* X(name, id in GGUF, bytes) */
#define RLX_META_TYPE_MAP(X) \
    X(u8, 0, 1)              \
    X(i8, 1, 1)              \
    X(u16, 2, 2)             \
    X(i16, 3, 2)             \
    X(u32, 4, 4)             \
    X(i32, 5, 4)             \
    X(f32, 6, 4)             \
    X(bool, 7, 1)            \
    X(string, 8, 0)          \
    X(u64, 10, 8)            \
    X(i64, 11, 8)            \
    X(f64, 12, 8)
#define X(name, id, bytes) RLX_META_##name = id,
typedef enum rlx_meta_type { RLX_META_TYPE_MAP(X) } rlx_meta_type;
#undef X
RLX_API const char *rlx_meta_type_name(rlx_meta_type t); /* "u32"; "?" if there is none */

typedef struct rlx_meta {
    rlx_str key;
    rlx_meta_type type; /* of the value, or of an array's elements */
    bool is_array;
    size_t count;     /* of elements; 1 where it is not an array */
    const void *data; /* that many numbers, aligned; bools are bytes; strings: const rlx_str * */
} rlx_meta;
RLX_API bool rlx_weights_meta_at(const rlx_weights *w, size_t i, rlx_meta *out);
RLX_API bool rlx_weights_meta(const rlx_weights *w, rlx_str key, rlx_meta *out);
/* A single value. A key that is not there leaves *out as it was, and that is fine; a value that is
 * of another type, or does not fit, is DTYPE. Any integer that fits is taken for u32 and u64;
 * integers and f64 (rounded) for f32; of bool and string, only their own. */
RLX_API rlx_status rlx_weights_get_u32(const rlx_weights *w, rlx_str key, uint32_t *out,
                                       rlx_error *err);
RLX_API rlx_status rlx_weights_get_u64(const rlx_weights *w, rlx_str key, uint64_t *out,
                                       rlx_error *err);
RLX_API rlx_status rlx_weights_get_f32(const rlx_weights *w, rlx_str key, float *out,
                                       rlx_error *err);
RLX_API rlx_status rlx_weights_get_bool(const rlx_weights *w, rlx_str key, bool *out,
                                        rlx_error *err);
RLX_API rlx_status rlx_weights_get_str(const rlx_weights *w, rlx_str key, rlx_str *out,
                                       rlx_error *err);

/* ---- a model's params -------------------------------------------------------------------- */

typedef struct rlx_weights_use {
    uint32_t size;
    size_t set;       /* params that have a value now */
    size_t in_file;   /* of them: whose bytes stay where they are in the file */
    size_t missing;   /* params that the file has no tensor for; they stay as they were */
    size_t unused;    /* tensors whose name no param has */
    char example[64]; /* the first param that is missing, or "" */
} rlx_weights_use;
/* Every param of the model takes the tensor of its name. Shapes must agree; a PACKED tensor [...,
 * k] is the u8 [..., bytes of a row] of dequant_matmul, or is unpacked for a param of floats;
 * dtypes convert as for rlx_model_set_param. The model keeps the file open as long as it needs it.
 * Before the first session; a failure names the param, and changes nothing. out may be NULL. */
RLX_API rlx_status rlx_model_load_weights(rlx_model *m, rlx_weights *w, rlx_weights_use *out,
                                          rlx_error *err);

/* ---- writing ----------------------------------------------------------------------------- */

/* What a file will hold; all is copied. */
typedef struct rlx_weights_content {
    uint32_t size;
    rlx_file_kind kind;       /* gguf (version 3), safetensors, npz, or npy, which has one tensor */
    const rlx_weight *tensor; /* its `bytes` is ignored: type and dims say how many */
    size_t tensor_count;
    const rlx_meta *meta; /* safetensors: strings; npz and npy: none */
    size_t meta_count;
    uint32_t alignment; /* of GGUF; 0: 32. A key general.alignment is not copied, but made */
} rlx_weights_content;

typedef struct rlx_weights_writer rlx_weights_writer;
/* Checks the content against the format, then begins the file. Nothing shows under path before
 * rlx_weights_finish. DTYPE: a type that the format lacks; SHAPE: a shape it cannot hold. */
RLX_API rlx_status rlx_weights_begin(rlx_context *ctx, const char *path,
                                     const rlx_weights_content *content, rlx_weights_writer **out,
                                     rlx_error *err);
/* Which tensor comes next, and how many of its bytes are left; false: all are there. Formats have
 * orders of their own. */
RLX_API bool rlx_weights_next(const rlx_weights_writer *w, size_t *i, uint64_t *left);
/* Bytes of that tensor, all of them or a piece. */
RLX_API rlx_status rlx_weights_write(rlx_weights_writer *w, const void *data, size_t bytes,
                                     rlx_error *err);
/* The same from numbers: the next `count` elements of that tensor, converted or packed; a multiple
 * of its type's block_elems. NUMERIC, LIMIT: numbers that cannot be packed. */
RLX_API rlx_status rlx_weights_write_f32(rlx_weights_writer *w, const float *x, uint64_t count,
                                         rlx_error *err);
/* The file is to be on the disk when rlx_weights_finish returns, so that a crash at any moment
 * leaves the old file or the new one. */
RLX_API void rlx_weights_make_durable(rlx_weights_writer *w);
/* Ends the file and the writer, whether it succeeds or not. SIZE: bytes are missing. */
RLX_API rlx_status rlx_weights_finish(rlx_weights_writer *w, rlx_error *err);
RLX_API void rlx_weights_abandon(rlx_weights_writer *w); /* instead: as if there had been nothing */

#ifdef __cplusplus
}
#endif
#endif
