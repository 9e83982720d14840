/* rebuild.h: a graph written again, node by node, for passes that replace a node by several or by
 * none.
 *
 *     rebuild_begin(&r, g, diag);
 *     for each node of g: rebuild_keep(&r, n), or rebuild_add(...) and rebuild_replace(&r, n, v)
 *     return rebuild_finish(&r, status);         the new nodes are the graph's now
 *
 * Operands given to rebuild_add are values of the new graph; rebuild_map gives an old value's new
 * one. The graph stays as it was where a step failed, and after rebuild_drop. */
#ifndef PASS_REBUILD_H
#define PASS_REBUILD_H

#include "ir/graph.h"

struct rebuild {
    struct ir_graph *old;
    struct ir_graph made;
    ir_value *map; /* by old id; RLX_NO_VALUE: gone */
    size_t checks; /* of the module, before */
    struct diag *diag;
};

rlx_status rebuild_begin(struct rebuild *r, struct ir_graph *g, struct diag *d);
rlx_status rebuild_keep(struct rebuild *r, const struct ir_node *n);
void rebuild_replace(struct rebuild *r, const struct ir_node *n, ir_value by);
rlx_status rebuild_finish(struct rebuild *r, rlx_status so_far);
void rebuild_drop(struct rebuild *r);

/* Nodes at the end of g, which stays as it is otherwise: only rebuild_add may be called between
 * these two. The second returns what it is given. */
static inline struct rebuild rebuild_append(struct ir_graph *g, struct diag *d)
{
    return (struct rebuild){.old = g, .made = *g, .diag = d};
}
static inline rlx_status rebuild_appended(struct rebuild *r, rlx_status s)
{
    *r->old = r->made;
    return s;
}

static inline ir_value rebuild_map(const struct rebuild *r, ir_value old)
{
    return r->map[old];
}
/* A new node; attr NULL: defaults. */
rlx_status rebuild_add(struct rebuild *r, rlx_op op, const ir_value *in, int32_t count,
                       const union ir_attr *attr, ir_value *out);
/* A constant: the same number in every element of a vector, or a scalar. */
rlx_status rebuild_fill(struct rebuild *r, rlx_dtype dtype, int64_t count, double value,
                        ir_value *out);
rlx_status rebuild_scalar(struct rebuild *r, rlx_dtype dtype, double value, ir_value *out);

#endif
