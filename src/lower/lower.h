/* lower.h: how a backend says which steps a node becomes. The steps have operands but no addresses;
 * lower/select.c calls the backend for every node that is neither a leaf nor a view. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "base/arena.h"
#include "ir/graph.h"
#include "lower/joint.h"
#include "plan/steps.h"

struct step_builder; /* lower/select.c */

struct select_options {
    bool check_indices;
    bool pack_weights;   /* kernels may have copies of weights in their own layout */
    bool f16_weights;    /* GPUs: matmul and conv read copies of f32 weights in f16 */
    uint64_t max_buffer; /* bytes of such a copy at most; 0: no limit */
    uint64_t slot_align; /* of every slot, where it is less than the device's own; 0: it is not */
    int64_t loop_limit;  /* iterations of a loop without a bound of its own; 0: no limit */
    struct joint_options joint;
};

/* Sizes that a program may run at, to ask kernels what they would need then. */
struct size_probes {
    const int64_t *size; /* count rows of a size for each symbol */
    size_t count, symbol_count;
    const int64_t *upper; /* by symbol: the largest */
    const bool *varies;   /* by symbol: it may be smaller */
};

struct select_call {
    const struct ir_graph *graph;
    const struct ir_graph *symbolic; /* the same nodes while sizes may shrink; NULL: they do not */
    const struct size_probes *probes;
    const struct ir_node *node;
    ir_value id;
    const struct joints *joints; /* which nodes share steps: node is not JOINT_SUM or _CELL */
    const struct select_options *options;
    void **sub;          /* by graph of the module: what the backend made of it; NULL: not yet */
    struct arena *arena; /* lives as long as the program */
    struct diag *diag;
    struct step_builder *steps;
};

/* The node as one step, which the backend's work will do: its operands, then its result, except
 * where that is its state's own memory. in_place: a bit for each operand that the work may write
 * its result over; of those, the ones that are as large as the result whatever the sizes are marked
 * so. */
rlx_status select_node(struct select_call *c, void *work, uint32_t in_place);
/* The node as a step that it shares with others: what is read, then its result, and the sum that
 * comes with a norm. */
rlx_status select_joint(struct select_call *c, const char *name, const ir_value *read,
                        int32_t count, void *work);
/* Bytes that live during this step only; they come last among the operands. */
rlx_status select_scratch(struct select_call *c, uint64_t bytes);
/* Bytes that the backend fills when it loads the step, and that nobody else writes: tables. */
rlx_status select_table(struct select_call *c, uint64_t bytes);
/* The same, but one for all steps of the graph that give this key; *first: nobody had given it. */
rlx_status select_shared_table(struct select_call *c, uint64_t key, uint64_t bytes, bool *first);

/* A copy of the weight what->source, in that layout, for an operand of the step: it is read like
 * any other, and made by the backend's pack. The value and the step of `what` are filled in. */
rlx_status select_packed(struct select_call *c, const struct packing *what, uint64_t bytes);

/* The type that a value has at probe number i; false: it has none (sizes that contradict). */
bool select_type_at(const struct select_call *c, ir_value v, size_t i, struct ir_type *out);

/* lower/select.c: the steps of a whole graph. leaf_offset[v]: where a param or state lies in its
 * region (other entries unused). Values are numbered like nodes; scratch and copies follow. */
struct backend;
struct select_graph {
    const struct ir_graph *graph;    /* static, at the largest sizes */
    const struct ir_graph *symbolic; /* or NULL, as in select_call */
    const struct size_probes *probes;
    const uint64_t *leaf_offset; /* NULL: all 0 */
    const bool *outside;         /* by node: a leaf with a buffer of its own; NULL: none */
    void *
        *sub; /* of a sub-graph: select_call.sub of those who name it, so that each is made once */
};
rlx_status lower_select(const struct select_graph *from, struct backend *b,
                        const struct select_options *options, struct arena *arena,
                        struct steps **out, struct diag *d);
/* into_state.c: where a step computes all that another one then copies into a state, it writes the
 * state itself, and there is no copy. */
void lower_into_state(const struct ir_graph *g, const struct ir_graph *symbolic, struct steps *s);
/* The graph's types have changed: bytes of values and places of views follow. LIMIT when something
 * does not fit where it was planned. */
rlx_status lower_resize(const struct ir_graph *g, struct steps *s, struct diag *d);
/* Does the node's value lie inside its first operand's, `offset` bytes in, with no step at all?
 * Only where a state under it is written before it is last read, select gives it bytes and a step
 * of its own. */
bool lower_is_view(const struct ir_graph *g, const struct ir_node *n, uint64_t *offset);

/* Which row of a scan's trajectory of `rows` out of `length` steps holds the carry after step t;
 * -1: none. Row k holds the carry after step ceil((k+1) length / rows) - 1. */
static inline int64_t lower_trajectory_row(int64_t t, int64_t rows, int64_t length)
{
    /* the only candidate: the smallest k whose step is not before t */
    int64_t k = (int64_t)((__int128)t * rows / length);
    __int128 step = ((__int128)(k + 1) * length + rows - 1) / rows - 1;

    return k < rows && step == t ? k : -1;
}

#endif
