/* graph.h: a module of graphs, each a list of nodes in the order they may run.
 *
 * The first graph of a module is the entry; the others are sub-graphs that control flow names.
 * Everything in a module lives in its arena; references are indices, so graphs can grow and be
 * copied. A node's inputs have smaller indices than the node. */
#ifndef IR_GRAPH_H
#define IR_GRAPH_H

#include "base/arena.h"
#include "ir/dim.h"
#include "ir/op.h"

struct ir_node {
    rlx_op op;
    int32_t in_count;
    ir_value *in; /* its own array */
    struct ir_type type;
    union ir_attr attr;
    rlx_str label; /* what text and messages call it; may be none */
};

struct ir_graph {
    struct ir_module *mod;
    int32_t id; /* its number in the module */
    rlx_str name;
    VEC(struct ir_node) node;
    VEC(ir_value) output;
    struct map leaves;     /* inputs, params and states by name */
    VEC(ir_value) written; /* states that have their writer */
};

/* What must hold of two dims once symbols are bound. */
enum ir_check_kind {
    CHECK_EQUAL,
    CHECK_AT_LEAST,  /* a >= b */
    CHECK_DIVIDES,   /* b divides a */
    CHECK_STRETCHES, /* a is 1 or b */
    CHECK_FILLED,    /* a is not 0, or b is */
};
struct ir_check {
    ir_dim a, b;
    int32_t graph, node;
    enum ir_check_kind kind;
    rlx_status status;
    const char *what; /* "inner dimensions", for the message */
};

struct ir_customs; /* registered custom ops: custom.h */

struct ir_module {
    const rlx_allocator *mem;
    struct arena arena;
    struct dim_table *dims;
    const struct ir_customs *customs; /* may be NULL */
    VEC(struct ir_graph *) graph;
    VEC(struct ir_check) check;
};

rlx_status ir_module_create(const rlx_allocator *mem, struct ir_module **out, struct diag *d);
void ir_module_destroy(struct ir_module *m); /* NULL is fine */
/* A deep copy with the same node ids. Constant bytes are shared: `from` must outlive the copy. */
rlx_status ir_module_copy(const struct ir_module *from, const rlx_allocator *mem,
                          struct ir_module **out, struct diag *d);
rlx_status ir_graph_add(struct ir_module *m, rlx_str name, struct ir_graph **out, struct diag *d);
/* A name that no graph of m has: this one, or this one with a number after it. */
rlx_str ir_free_graph_name(struct ir_module *m, rlx_str name);
/* Append a node: casts its operands where the op promotes, normalises its attributes, works out its
 * type. On failure the graph is as it was. Strings and blobs in attr are copied, except the data of
 * constants when `borrow_data` is set (then it must outlive the module). */
struct ir_new_node {
    rlx_op op;
    const ir_value *in;
    int32_t in_count;
    union ir_attr attr; /* start from attr_defaults */
    rlx_str label;
    bool borrow_data;
};
rlx_status ir_add(struct ir_graph *g, const struct ir_new_node *n, ir_value *out, struct diag *d);
rlx_status ir_add_output(struct ir_graph *g, ir_value v, struct diag *d);

/* How far g and its module have grown; and back to that, when what was added since is not to be.
 * Leaves cannot be taken back. */
struct ir_extent {
    size_t nodes, written, graphs, checks;
};
struct ir_extent ir_extent_of(const struct ir_graph *g);
void ir_shrink(struct ir_graph *g, const struct ir_extent *to);

static inline struct ir_node *ir_node(const struct ir_graph *g, ir_value v)
{
    return &g->node.at[v];
}
static inline const struct ir_type *ir_type_of(const struct ir_graph *g, ir_value v)
{
    return &g->node.at[v].type;
}
static inline struct ir_graph *ir_entry(const struct ir_module *m)
{
    return m->graph.at[0];
}
/* for every node, in order: IR_EACH(n, g) { ... } */
#define IR_EACH(n, g) \
    for (struct ir_node *n = (g)->node.at, *end_ = n + (g)->node.len; n != end_; n++)
static inline ir_value ir_id(const struct ir_graph *g, const struct ir_node *n)
{
    return (ir_value)(n - g->node.at);
}

/* Does n give the bytes of its first operand, or a run of them? */
bool ir_is_view(const struct ir_graph *g, const struct ir_node *n);
bool family_is_view(enum op_family f);         /* the bytes of the operand, whatever that is */
rlx_str ir_leaf_name(const struct ir_node *n); /* of an input, param or state; else none */
bool ir_find_leaf(const struct ir_graph *g, rlx_str name, ir_value *out);
/* The state leaf this node writes, or RLX_NO_VALUE. */
ir_value ir_written_state(const struct ir_graph *g, const struct ir_node *n);
/* What outputs and writers need, by node; of a sub-graph also its inputs, which are its interface.
 * live: g->node.len of them, all false. */
void ir_mark_live(const struct ir_graph *g, bool *live);
/* Inputs of a sub-graph in id order, at most max; returns how many there are. */
size_t ir_inputs(const struct ir_graph *g, ir_value *out, size_t max);
bool ir_module_is_static(const struct ir_module *m); /* no symbol anywhere */

/* Replace symbols by sizes (size[symbol], -1: unbound) in every type and attribute, then infer
 * everything again and make the deferred checks. Nodes of the entry that hold unbound symbols are
 * dropped where no output and no writer needs them, else it is UNBOUND_DIM; a graph that the entry
 * does not come to stays as it is. */
rlx_status ir_bind(const struct ir_module *from, const int64_t *size, size_t count,
                   const rlx_allocator *mem, struct ir_module **out, struct diag *d);

/* The same, but symbols with keep[symbol] stay as they are: the module is still symbolic in them.
 */
rlx_status ir_bind_some(const struct ir_module *from, const int64_t *size, const bool *keep,
                        size_t count, const rlx_allocator *mem, struct ir_module **out,
                        struct diag *d);

/* Every dim as it stands in a copy of another table, symbols by their names: numbers of symbols are
 * then those of that table. */
rlx_status ir_adopt_dims(struct ir_module *m, const struct dim_table *like, struct diag *d);

/* size.c: a static copy of a symbolic module (by ir_bind, so with the same nodes) for other sizes:
 * every type and attribute of `sized` becomes what `symbolic` says. Nothing is allocated. */
rlx_status ir_resize(const struct ir_module *symbolic, struct ir_module *sized, const int64_t *size,
                     size_t count, struct diag *d);
/* Does it hold of these sizes? */
bool ir_check_holds(enum ir_check_kind kind, int64_t a, int64_t b);
/* The checks that had to wait for sizes; those that hold an unbound symbol keep waiting. */
rlx_status ir_check_sizes(const struct ir_module *m, const int64_t *size, size_t count,
                          struct diag *d);

/* verify.c: every rule of a well-formed module; all violations go through d->each, the first is
 * returned. */
rlx_status ir_verify(const struct ir_module *m, struct diag *d);
/* unfold.c: LIMIT where sub-graphs, written out wherever the entry comes to them, are out of
 * proportion to what is written. m: verified. */
rlx_status ir_check_unfolded(const struct ir_module *m, struct diag *d);

#endif
