/* onnx_call.h: what a handler of an ONNX op sees: one node, its inputs, and a formula to write our
 * nodes with.
 *
 *     void onnx_gemm(struct onnx_call *c)
 *     {
 *         ir_value y = formula_matmul(&c->f, onnx_in(c, 0), onnx_in(c, 1), ...);
 *         onnx_give(c, 0, y);
 *     }
 *
 * Failures stick in c->f, so that a handler needs no checks between its lines; values asked for
 * after one are RLX_NO_VALUE. src/import/README.md says how to add an op. */
#ifndef IMPORT_ONNX_CALL_H
#define IMPORT_ONNX_CALL_H

#include "import/onnx/read/onnx_model.h"
#include "ir/formula.h"

struct onnx_import;
struct onnx_scope;

/* An element of a shape tensor: a number, or a size that holds symbols. */
struct onnx_size {
    bool is_dim;
    int64_t number; /* unless is_dim */
    ir_dim dim;
};

/* The value of a name. A tensor is a node, or bytes known at load, or small integers some of
 * which are sizes; the latter two become nodes when a handler asks for one (onnx_in). */
struct onnx_value {
    rlx_str name;
    bool failed;      /* its node could not be imported; neither can those that need it */
    bool is_weight;   /* an initializer: if it becomes a node, a param */
    bool is_sequence; /* a list of tensors: item */
    bool is_absent;   /* an optional without a value */
    bool is_counted;  /* only `count` of its node's axis `count_axis` are there, until it is cut */
    ir_value count;
    int32_t count_axis;
    struct ir_type type; /* of a tensor */
    int64_t narrow;      /* ONNX's type, where ours is not the same (onnx_narrow_type); otherwise
                          * 0 */
    ir_value node;       /* RLX_NO_VALUE: none yet */
    const void *data;    /* of that type, at any address; NULL: not known */
    const struct onnx_size *size; /* as many as it has elements; NULL: not known */
    struct onnx_value *item;      /* of a sequence */
    size_t item_count;
};

struct onnx_call {
    struct onnx_import *im;
    struct onnx_scope *scope;
    const struct onnx_node *node;
    int64_t opset;          /* the version in force of the node's domain */
    struct formula f;       /* f.g: where nodes go; f.dtype: that of the first input */
    struct onnx_value **in; /* NULL: left out */
    size_t in_count;
    struct onnx_value *out; /* for the handler to fill, by onnx_give */
    size_t out_count;
};
typedef void (*onnx_handler)(struct onnx_call *c);

/* ---- inputs ---- */

bool onnx_has(const struct onnx_call *c, size_t i);
/* Input i as a node; a failure if it was left out. */
ir_value onnx_in(struct onnx_call *c, size_t i);
/* Its type, without making a node of it; never NULL (f32[] after a failure). */
const struct ir_type *onnx_type(struct onnx_call *c, size_t i);
bool onnx_is_known(const struct onnx_call *c, size_t i); /* its bytes are there */
/* The elements of a small input that must be known at load; false: it is not, and that is the
 * call's failure. Integers, at most RLX_MAX_RANK of them; sizes that hold symbols become dims of
 * `out` in onnx_dims_in, where any other number below 0 stays what it is. */
bool onnx_ints_in(struct onnx_call *c, size_t i, rlx_list *out);
bool onnx_sizes_in(struct onnx_call *c, size_t i, struct onnx_size *out, size_t room,
                   size_t *count);
bool onnx_number_in(struct onnx_call *c, size_t i, double *out); /* one element, of any real type */
bool onnx_whole_in(struct onnx_call *c, size_t i, int64_t *out); /* the same; at most 2^40 or so */
/* Elements of an input known at load, as doubles or integers, in the arena; NULL: not known. */
const double *onnx_reals(struct onnx_call *c, size_t i, size_t *count);
const int64_t *onnx_i64s(struct onnx_call *c, size_t i, size_t *count);

/* ---- attributes ---- */

/* Whatever it holds; NULL: none. */
const struct onnx_attr *onnx_attr(const struct onnx_call *c, const char *name);
/* The same of an attribute that must be of that type, as it must be for all that follow: one of
 * another type fails the call. */
const struct onnx_attr *onnx_attr_as(struct onnx_call *c, const char *name,
                                     enum onnx_attr_type type);
int64_t onnx_int(struct onnx_call *c, const char *name, int64_t otherwise);
double onnx_float(struct onnx_call *c, const char *name, double otherwise);
rlx_str onnx_text(struct onnx_call *c, const char *name, const char *otherwise);
/* A list of at most RLX_MAX_RANK integers; false: there is none. Longer ones fail the call. */
bool onnx_ints(struct onnx_call *c, const char *name, rlx_list *out);
/* The numbers of an attribute, in the arena: of a list, or of a tensor. NULL: there are none. */
const double *onnx_numbers(struct onnx_call *c, const char *name, size_t *count);
/* Integers that were an attribute before they became input i. */
bool onnx_ints_or_in(struct onnx_call *c, const char *name, size_t i, rlx_list *out);

/* ---- results ---- */

void onnx_give(struct onnx_call *c, size_t i, ir_value v);
/* Bytes of that type in the arena, or longer lived. */
void onnx_give_known(struct onnx_call *c, size_t i, const struct ir_type *type, const void *data);
/* A tensor of i64: of rank 1, or 0 with count 1. */
void onnx_give_sizes(struct onnx_call *c, size_t i, int32_t rank, const struct onnx_size *size,
                     size_t count);

/* A result that is as large as the data says: the first `count` (an integer) along that axis of
 * `padded`. Results of one call with the same count have the same size. */
void onnx_give_counted(struct onnx_call *c, size_t i, ir_value padded, int32_t axis,
                       ir_value count);
/* A size that is what `count` says at run time, for nodes that are written from here on. */
ir_dim onnx_counted_dim(struct onnx_call *c, ir_value count);

/* ---- odds and ends ---- */

/* ONNX's number of the type of input i. */
int64_t onnx_type_number(struct onnx_call *c, size_t i);
/* Output i has that type of ONNX, which may have fewer bits than ours. */
void onnx_give_type(struct onnx_call *c, size_t i, int64_t data_type);

/* A failure that says what the node asks for and rlx has not. */
void onnx_unsupported(struct onnx_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool onnx_failed(const struct onnx_call *c);
struct arena *onnx_arena(const struct onnx_call *c); /* lives as long as the import */
struct dim_table *onnx_dims(const struct onnx_call *c);
/* 0 .. rank-1, from the end where negative; outside of it a failure and 0. */
int32_t onnx_axis(struct onnx_call *c, int64_t axis, int32_t rank);
rlx_list onnx_axes(struct onnx_call *c, rlx_list axes, int32_t rank); /* the same of each */
rlx_list onnx_all_axes(int32_t rank);
/* The bytes as our node: a constant, or a param if it is a large weight. */
ir_value onnx_node_of(struct onnx_import *im, struct onnx_scope *s, struct formula *f,
                      struct onnx_value *v);

/* onnx_sizes.c: the node on inputs that are integers and sizes; false: it cannot be worked out, so
 * that they must become nodes. */
bool onnx_fold_sizes(struct onnx_call *c);

#define ONNX_OP(domain, op, first, last, handler) void onnx_##handler(struct onnx_call *c);
#include "import/onnx/handlers/onnx_ops.def"

#endif
