/* onnx_emit.h: what a function that writes one of our ops as ONNX works with.
 *
 *     void write_rsqrt(struct emit *e)
 *     {
 *         emit_give(e, emit_1(e, "Reciprocal", emit_1(e, "Sqrt", e->in[0])));
 *     }
 *
 * Values are names. Failures stick in the writer, so that nothing needs checks between its lines.
 * src/import/README.md says how to write an op. */
#ifndef IMPORT_ONNX_EMIT_H
#define IMPORT_ONNX_EMIT_H

#include "base/map.h"
#include "base/str.h"
#include "import/onnx/read/onnx_model.h"
#include "ir/graph.h"
#include "rlx/ops.h"

#define ONNX_WRITTEN_OPSET 23
#define ONNX_WRITTEN_IR 11
#define EMIT_MAX_DEPTH 16 /* of graphs in graphs */

/* A name that is taken, and the number to try next after it. */
struct emit_name {
    rlx_str text;
    size_t next;
};

/* A size that was computed already. */
struct emit_dim {
    ir_dim dim;
    rlx_str name;
};

/* A node with graphs, written with all its results. */
struct emit_call {
    const struct onnx_graph *to;
    rlx_op op;
    int32_t graph[2];
    const rlx_str *in;
    int32_t in_count;
    const rlx_str *out;
};

struct onnx_writer {
    const struct ir_module *mod;
    const rlx_allocator *mem;
    struct arena *arena;    /* of all that is written */
    struct onnx_graph *top; /* constants and sizes go here, and are seen from everywhere */
    struct text *report;    /* a line per node that cannot be written */
    size_t refused;         /* such nodes */
    struct map by_name;
    VEC(struct emit_name) name;
    VEC(struct emit_dim) dim;
    VEC(struct emit_call) call; /* of the graphs that are being written */
    size_t constants;
    int depth;
    bool no_memory;
};

struct emit {
    struct onnx_writer *w;
    struct onnx_graph *to; /* nodes go here */
    size_t first;          /* how many were there before */
    const struct ir_graph *g;
    const struct ir_node *n; /* what is being written */
    const rlx_str *in;       /* the operands */
    rlx_str wanted;          /* what the result should be called; "": anything */
    rlx_str result;          /* "": none yet */
    rlx_str written;         /* of a state that n writes: its new content */
    bool refused;
};
typedef void (*onnx_writing)(struct emit *e);

/* ---- nodes ---- */

/* Another node and the name of its (first) output. An input "" is left out. */
rlx_str emit_node(struct emit *e, const char *op, const rlx_str *in, size_t count);
rlx_str emit_1(struct emit *e, const char *op, rlx_str a);
rlx_str emit_2(struct emit *e, const char *op, rlx_str a, rlx_str b);
rlx_str emit_3(struct emit *e, const char *op, rlx_str a, rlx_str b, rlx_str c);
/* The same with several outputs; those not wanted by bit are "". */
void emit_outputs(struct emit *e, const char *op, const rlx_str *in, size_t count, rlx_str *out,
                  size_t outs, unsigned wanted);
/* Attributes of the node that was written last. */
void emit_int(struct emit *e, const char *name, int64_t v);
void emit_float(struct emit *e, const char *name, double v);
void emit_text(struct emit *e, const char *name, const char *v);
void emit_ints(struct emit *e, const char *name, const int64_t *v, size_t count);
void emit_texts(struct emit *e, const char *name, const char *const *v, size_t count);
void emit_graph(struct emit *e, const char *name, struct onnx_graph *g);

/* The result. The node that made it takes the name that is wanted, if it was the last one. */
void emit_give(struct emit *e, rlx_str v);
/* A line of the report: why ONNX cannot say this. */
void emit_refuse(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- constants and sizes ---- */

rlx_str emit_const(struct emit *e, rlx_dtype dtype, rlx_list shape, const void *data);
/* An initializer; data lives on, name is taken already. */
void emit_tensor(struct onnx_writer *w, rlx_str name, const struct ir_type *type, const void *data);
rlx_str emit_number(struct emit *e, rlx_dtype dtype, double v); /* a scalar */
rlx_str emit_i64s(struct emit *e, const int64_t *v, size_t count);
rlx_str emit_i64(struct emit *e, int64_t v); /* of one element, rank 1 */
/* onnx_emit_dims.c: sizes, which may hold symbols, as i64 of rank 1. */
rlx_str emit_dims(struct emit *e, rlx_list dims);
rlx_str emit_dim(struct emit *e, ir_dim d);
rlx_str emit_dim_sum(struct emit *e, ir_dim a, ir_dim b);

/* ---- what many need ---- */

static inline const struct ir_type *emit_type(const struct emit *e, int32_t operand)
{
    return ir_type_of(e->g, e->n->in[operand]);
}
rlx_str emit_cast(struct emit *e, rlx_str x, rlx_dtype from, rlx_dtype to); /* x itself if same */
rlx_str emit_reshape(struct emit *e, rlx_str x, rlx_list shape);
rlx_str emit_transpose(struct emit *e, rlx_str x, const int64_t *perm, int32_t rank);
rlx_str emit_swap(struct emit *e, rlx_str x, int32_t rank, int32_t a, int32_t b); /* two axes */
rlx_str emit_unsqueeze(struct emit *e, rlx_str x, int64_t axis);
rlx_str emit_slice(struct emit *e, rlx_str x, int64_t axis, rlx_str start, rlx_str end,
                   int64_t step);
rlx_str emit_part(struct emit *e, rlx_str x, int64_t axis, int64_t start, int64_t len);
rlx_str emit_concat(struct emit *e, const rlx_str *part, size_t count, int64_t axis);
rlx_str emit_expand(struct emit *e, rlx_str x, rlx_list shape);
rlx_str emit_range(struct emit *e, ir_dim n); /* 0 .. n-1, as i64 */
/* Numbers of an index operand, which may be floats here and may not there. */
rlx_str emit_index(struct emit *e, int32_t operand);
/* Where one op of ours is several of ONNX, 16-bit floats are computed in f32 and rounded once: an
 * operand in that type, the type of the first one, and the result out of it. */
rlx_str emit_up(struct emit *e, int32_t operand);
rlx_dtype emit_up_type(const struct emit *e);
void emit_give_down(struct emit *e, rlx_str v);
/* An op that ONNX has no 8- and 16-bit integers for: wide is what to compute in. */
rlx_dtype emit_wide(rlx_dtype t);

/* ---- graphs: onnx_write.c ---- */

/* The nodes of a sub-graph in the place they are written to: in[] for its inputs, out[] are then
 * its outputs. */
void emit_inline(struct emit *e, const struct ir_graph *sub, const rlx_str *in, rlx_str *out);
/* A graph for an attribute; NULL: no memory, or too deep. Nodes go to it when e->to is. */
struct onnx_graph *emit_graph_new(struct emit *e, const char *name);
rlx_str emit_graph_input(struct emit *e, struct onnx_graph *g, const char *name,
                         const struct ir_type *type);
void emit_graph_output(struct emit *e, struct onnx_graph *g, rlx_str v, const struct ir_type *type);

/* For the files above. A name that is not taken: this one, or this one followed by a number. */
rlx_str emit_fresh(struct onnx_writer *w, rlx_str base);
rlx_str emit_text_of(struct onnx_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Room for one more after `count` elements, zeroed; NULL: no memory. */
void *emit_room(struct onnx_writer *w, void *at, size_t *count, size_t size);
#define EMIT_MORE(w, list)                                                   \
    (emit_room((w), (void *)&(list)->at, &(list)->count, sizeof *(list)->at) \
         ? &(list)->at[(list)->count - 1]                                    \
         : NULL)
struct onnx_type *emit_tensor_type(struct onnx_writer *w, const struct ir_type *t);

#define ONNX_WRITE(op, how, complex, function) void write_##function(struct emit *e);
#include "import/onnx/write/onnx_written.def"

#endif
