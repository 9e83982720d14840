/* eval.h: the slow and obvious meaning of every op, in double precision.
 *
 * This is what every device is checked against, so it is written straight from the manual, one
 * element at a time, and shares nothing with the kernels. What it needs comes from an arena; it
 * fails by a status, and never on a graph that ir_verify accepts, except for want of memory and
 * where the manual says that a run fails. */
#ifndef IR_EVAL_H
#define IR_EVAL_H

#include "ir/eval/eval_cell.h"
#include "ir/graph.h"

struct eval_tensor {
    struct ir_type type; /* static */
    int64_t count;
    struct eval_cell *at;
};

struct eval_call {
    const struct ir_graph *graph;
    const struct ir_node *node;
    rlx_op op;
    const union ir_attr *attr;
    int32_t in_count;
    const struct eval_tensor *const *in; /* values of their dtypes, rounded */
    struct eval_tensor *out;   /* typed, cells zero; to be filled, not rounded to its dtype */
    struct eval_tensor *state; /* the state that the op writes, to be updated; else NULL. It shares
                                * its cells with the operand: read that before writing this. */
    bool sizes;                /* eval_node_sizes: what it says there */
    struct arena *arena;       /* for whatever the op needs besides; ends with the call */
    struct diag *diag;
};
typedef rlx_status (*eval_fn)(struct eval_call *c);
eval_fn eval_fn_of(enum op_family f); /* NULL: no such family */

/* An element as a real number (integers and bool converted; the real part of c64), as a truth value
 * (NaN is true), as an index that may be out of range (INT64_MIN for NaN; floats truncate; what
 * 64 bits do not hold saturates). */
double eval_real(const struct eval_tensor *t, int64_t k);
bool eval_true(const struct eval_tensor *t, int64_t k);
int64_t eval_index(const struct eval_tensor *t, int64_t k);
/* Where an op that reads by index reads in an axis of n >= 1 (ops-core.md 1.9): clamped, NaN: 0. */
int64_t eval_clamp_index(int64_t index, int64_t n);
/* Store a real number in whatever class the tensor has (integers: truncate, saturate). */
void eval_set(struct eval_tensor *t, int64_t k, double v);
/* Row-major position of an index, and back. */
int64_t eval_at(const struct eval_tensor *t, const int64_t *index);
void eval_unflatten(const struct eval_tensor *t, int64_t k, int64_t *index);
/* Where a broadcast operand is read for output position k of out. */
int64_t eval_broadcast(const struct eval_tensor *operand, const struct eval_tensor *out, int64_t k);

/* The lines of a tensor along one axis: `outer` times `inner` of them, each n long. Element i of
 * line (o, j) is at eval_line_at(&l, o, j) + i * l.inner. An empty tensor has no lines. */
struct eval_lines {
    int64_t outer, n, inner;
};
struct eval_lines eval_lines(const struct eval_tensor *t, int64_t axis);
static inline int64_t eval_line_at(const struct eval_lines *l, int64_t o, int64_t j)
{
    return o * l->n * l->inner + j;
}
/* softmax of n numbers (ops-core.md 8.5): all -Inf gives zeros, a NaN or +Inf NaN throughout. */
void eval_softmax_line(const double *x, double *y, int64_t n);
/* The order of n elements, `step` apart, by value (NaN is the largest), equal ones by index, as
 * element numbers; spare has room for n. */
void eval_order_line(const struct eval_cell *x, int64_t n, int64_t step, rlx_dtype t,
                     bool descending, int64_t *order, int64_t *spare);

/* LIMIT where the size overflows, UNBOUND_DIM where a dim is not static. */
rlx_status eval_tensor_new(struct arena *a, const struct ir_type *type, struct eval_tensor *out,
                           struct diag *d);
/* From and to bytes of the tensor's dtype; storing rounds to nearest even. */
void eval_load(struct eval_tensor *t, const void *bytes);
void eval_store(const struct eval_tensor *t, void *bytes);
void eval_round(struct eval_tensor *t); /* every cell to its dtype's nearest value */
/* The cells of one tensor to another of as many. */
void eval_copy(struct eval_tensor *to, const struct eval_tensor *from);

/* Run a static graph. leaf[v] is the value of node v where v is an input, param or state; NULL: an
 * input or param that nothing reads (else MISSING_INPUT), a state that is still zero. States are
 * updated in place. result[v] is filled for every node, rounded to its dtype; that of a leaf shares
 * the leaf's cells, and has a count of -1 where there is no value. */
rlx_status eval_graph(const struct ir_graph *g, struct eval_tensor *const *leaf,
                      struct eval_tensor *result, struct arena *arena, struct diag *d);
/* One node on given operands, out made by eval_tensor_new; out is not rounded, the state is. */
rlx_status eval_node(const struct ir_graph *g, const struct ir_node *n,
                     const struct eval_tensor *const *in, struct eval_tensor *out,
                     struct eval_tensor *state, struct arena *arena, struct diag *d);
/* How large the terms of each element are, given operands made positive: eval_node, but products
 * with packed weights, which cannot be made so beforehand, add up magnitudes, and fused products
 * leave their activation out. */
rlx_status eval_node_sizes(const struct ir_graph *g, const struct ir_node *n,
                           const struct eval_tensor *const *in, struct eval_tensor *out,
                           struct eval_tensor *state, struct arena *arena, struct diag *d);

#define FAMILY(name, ...) rlx_status eval_##name(struct eval_call *c);
#include "ir/ops.def"

#endif
