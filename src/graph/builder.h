/* builder.h: what the generated builders in builders.c call, and those that put several ops
 * together.
 */
#ifndef GRAPH_BUILDER_H
#define GRAPH_BUILDER_H

#include "context/context.h"
#include "ir/graph.h"

/* A graph under construction; sub-graphs have the same module. */
struct rlx_graph {
    struct rlx_context *ctx;
    struct ir_module *mod;
    struct ir_graph *g;
    struct rlx_graph *root;
    VEC(struct rlx_graph *) sub; /* of the root */
    rlx_error first;             /* of the root: the first failure */
};

rlx_status graph_create(struct rlx_context *ctx, struct rlx_graph **out, struct diag *d);
void graph_destroy(struct rlx_graph *g); /* NULL is fine */

/* The node of op on in[0..count) followed by more[0..more_count). Optional inputs (a bit each in
 * `optional`, for the first ones) that are RLX_NO_VALUE are left out. attr NULL: defaults. */
rlx_value build_node(rlx_graph *g, rlx_op op, const rlx_value *in, size_t count, uint32_t optional,
                     const rlx_value *more, size_t more_count, const union ir_attr *attr);
/* Keep this failure, if it is the graph's first. */
void build_fail(rlx_graph *g, rlx_status s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The attributes that the caller set, over the defaults in *own (base/desc.h). False: the failure
 * is kept, or there is no graph. */
bool build_desc(rlx_graph *g, void *own, size_t own_size, const void *theirs, const char *name);
struct ir_blob build_string(const char *s);
int32_t build_graph_id(const rlx_graph *g,
                       const rlx_graph *sub); /* -1: NULL or not of this module */

/* Keeps a failure of something that is made of several nodes, under its own name. Always false. */
bool build_fail_in(rlx_graph *g, rlx_status s, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* custom_vjp.c: calls op->vjp, as struct ir_customs asks; owner: the context. */
rlx_status custom_vjp(void *owner, const rlx_custom_op *op, struct ir_graph *g,
                      const struct ir_node *n, ir_value y, ir_value dy, ir_value *dx,
                      struct diag *d);

#endif
