/* onnx_model.h: an ONNX file as plain structs: what it says, before anything is made of it.
 *
 * Names and tensor bytes are views of the file. The numbers of fields are those of onnx.proto. */
#ifndef IMPORT_ONNX_MODEL_H
#define IMPORT_ONNX_MODEL_H

#include "base/file.h"
#include "import/wire.h"
#include "ir/type.h"

/* TensorProto.DataType: X(number, name, dtype here, bits). RLX_DTYPE_count: there is none. Integers
 * of fewer bits than a byte are bytes here, one each, and so are codes of small floats. */
#define ONNX_DTYPE_MAP(X)         \
    X(1, FLOAT, f32, 32)          \
    X(2, UINT8, u8, 8)            \
    X(3, INT8, i8, 8)             \
    X(4, UINT16, u16, 16)         \
    X(5, INT16, i16, 16)          \
    X(6, INT32, i32, 32)          \
    X(7, INT64, i64, 64)          \
    X(8, STRING, count, 0)        \
    X(9, BOOL, bool, 8)           \
    X(10, FLOAT16, f16, 16)       \
    X(11, DOUBLE, f64, 64)        \
    X(12, UINT32, u32, 32)        \
    X(13, UINT64, u64, 64)        \
    X(14, COMPLEX64, c64, 64)     \
    X(15, COMPLEX128, count, 128) \
    X(16, BFLOAT16, bf16, 16)     \
    X(17, FLOAT8E4M3FN, u8, 8)    \
    X(18, FLOAT8E4M3FNUZ, u8, 8)  \
    X(19, FLOAT8E5M2, u8, 8)      \
    X(20, FLOAT8E5M2FNUZ, u8, 8)  \
    X(21, UINT4, u8, 4)           \
    X(22, INT4, i8, 4)            \
    X(23, FLOAT4E2M1, u8, 4)      \
    X(24, FLOAT8E8M0, u8, 8)      \
    X(25, UINT2, u8, 2)           \
    X(26, INT2, i8, 2)            \
    X(27, FLOAT6E2M3, u8, 6)      \
    X(28, FLOAT6E3M2, u8, 6)

enum onnx_dtype {
#define X(number, name, dtype, bits) ONNX_##name = number,
    ONNX_DTYPE_MAP(X)
#undef X
};

const char *onnx_dtype_name(int64_t data_type);     /* "FLOAT16"; "?": there is none */
bool onnx_dtype(int64_t data_type, rlx_dtype *out); /* false: rlx has no such numbers */
bool onnx_is_small_float(int64_t data_type);        /* one that rlx has codes of, not numbers */
/* The type that elements are kept as: numbers, or codes. false: there is none. */
bool onnx_element_dtype(int64_t data_type, rlx_dtype *out);
int onnx_dtype_bits(int64_t data_type); /* of an element in a file; 0: there is none */
/* The type, if it has fewer bits than ours or other numbers; otherwise 0. */
int64_t onnx_narrow_type(int64_t data_type);
/* The least and greatest integer of that type; false: it is none of at most 16 bits. */
bool onnx_dtype_range(int64_t data_type, double *least, double *greatest);
int64_t onnx_dtype_number(rlx_dtype t); /* the other way */

struct onnx_entry {
    rlx_str key, value;
};

struct onnx_tensor {
    wire_i64s dims;
    int64_t data_type;
    rlx_str name;
    bool has_raw;
    rlx_str raw;
    wire_f32s float_data;
    wire_i64s int32_data, int64_data, uint64_data;
    wire_f64s double_data;
    wire_strs string_data;
    WIRE_LIST(struct onnx_entry) external;
    int64_t location; /* 1: the bytes are in another file */
};

struct onnx_sparse {
    struct onnx_tensor *values, *indices;
    wire_i64s dims;
};

struct onnx_dim {
    bool has_value;
    int64_t value;
    rlx_str param;
};
struct onnx_shape {
    WIRE_LIST(struct onnx_dim) dim;
};
struct onnx_tensor_type {
    int64_t elem_type;
    struct onnx_shape *shape; /* NULL: of any rank */
};
struct onnx_type; /* exactly one of its pointers is set */
struct onnx_holder_type {
    struct onnx_type *elem;
};
struct onnx_type {
    struct onnx_tensor_type *tensor;
    struct onnx_holder_type *sequence, *optional;
};
struct onnx_value_info {
    rlx_str name;
    struct onnx_type *type;
};

/* AttributeProto.AttributeType */
enum onnx_attr_type {
    ONNX_ATTR_FLOAT = 1,
    ONNX_ATTR_INT,
    ONNX_ATTR_STRING,
    ONNX_ATTR_TENSOR,
    ONNX_ATTR_GRAPH,
    ONNX_ATTR_FLOATS,
    ONNX_ATTR_INTS,
    ONNX_ATTR_STRINGS
};
struct onnx_attr {
    rlx_str name, ref; /* ref: the value is that attribute of the function around */
    int64_t type;
    float f;
    int64_t i;
    rlx_str s;
    struct onnx_tensor *t;
    struct onnx_graph *g;
    struct onnx_sparse *sparse;
    wire_f32s floats;
    wire_i64s ints;
    wire_strs strings;
};
struct onnx_node {
    wire_strs input, output; /* "": left out */
    rlx_str name, op, domain;
    WIRE_LIST(struct onnx_attr) attr;
};
struct onnx_graph {
    WIRE_LIST(struct onnx_node) node;
    rlx_str name;
    WIRE_LIST(struct onnx_tensor) initializer;
    WIRE_LIST(struct onnx_sparse) sparse_initializer;
    WIRE_LIST(struct onnx_value_info) input, output;
};
struct onnx_opset {
    rlx_str domain;
    int64_t version;
};
typedef WIRE_LIST(struct onnx_opset) onnx_opsets;
struct onnx_function {
    rlx_str name, domain;
    wire_strs input, output, attribute;
    WIRE_LIST(struct onnx_attr) attr; /* with their defaults */
    WIRE_LIST(struct onnx_node) node;
    onnx_opsets opset;
};
struct onnx_model {
    int64_t ir_version;
    rlx_str producer, producer_version;
    struct onnx_graph *graph;
    onnx_opsets opset;
    WIRE_LIST(struct onnx_function) function;
};

/* SequenceProto, and OptionalProto, which has the same fields: a list of one value, or of none. */
struct onnx_list {
    int64_t elem_type; /* enum onnx_list_type */
    WIRE_LIST(struct onnx_tensor) tensor;
    WIRE_LIST(struct onnx_list) sequence;
};
enum onnx_list_type { ONNX_LIST_UNDEFINED, ONNX_LIST_TENSOR, ONNX_LIST_SEQUENCE = 3 };

rlx_status onnx_read_model(rlx_str bytes, struct onnx_model *out, struct arena *arena,
                           struct diag *d);
rlx_status onnx_read_tensor(rlx_str bytes, struct onnx_tensor *out, struct arena *arena,
                            struct diag *d);

/* A sequence of tensors, or an optional that holds one or a tensor; absent: it holds none. */
rlx_status onnx_read_list(rlx_str bytes, struct onnx_list *out, bool *absent, struct arena *arena,
                          struct diag *d);

/* The other way: bytes of the file (UINT64_MAX: graphs nest too deep), and the file itself. */
struct wire_sink;
uint64_t onnx_model_size(const struct onnx_model *m);
rlx_status onnx_put_model(const struct onnx_model *m, const struct wire_sink *sink, struct diag *d);

/* Files that tensors name, opened once each; they live as long as this. */
struct onnx_files {
    const char *model; /* path of the model; NULL: none may be opened */
    unsigned mode;     /* enum file_mode, and FILE_FOLLOW */
    const rlx_allocator *mem;
    VEC(struct onnx_external) file;
};
struct onnx_external {
    rlx_str name;
    struct file file;
};
void onnx_files_close(struct onnx_files *f);

/* Its type, and its elements as bytes of that type: where they lie in a file (at any address), or
 * in the arena. files: NULL refuses tensors outside of the file. */
rlx_status onnx_tensor_data(const struct onnx_tensor *t, struct onnx_files *files,
                            struct arena *arena, struct ir_type *type, const void **data,
                            struct diag *d);

#endif
