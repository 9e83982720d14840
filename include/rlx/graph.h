/* graph.h: build a graph by hand.
 *
 *     rlx_graph *g;
 *     rlx_graph_create(ctx, &g, &err);
 *     rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(4, 8));
 *     rlx_value w = rlx_param(g, "w", RLX_DTYPE_f32, RLX_LIST(8, 16));
 *     rlx_value y = rlx_matmul(g, x, w, false, false);
 *     rlx_output(g, y);
 *     rlx_model_create(g, &model, &err);
 *
 * Every op has a function in rlx/ops.h; rlx/spectral.h has helpers made of several. Shapes and
 * types are worked out and checked as nodes are added. A node that breaks a rule is not added: its
 * function returns RLX_NO_VALUE, and the graph keeps the first such failure for rlx_graph_check and
 * rlx_model_create to report. An op given RLX_NO_VALUE for a required input does nothing, so a
 * chain of calls needs one check at its end.
 */
#ifndef RLX_GRAPH_H
#define RLX_GRAPH_H

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A size: n >= 0 is that size; other values are what the rlx_dim_ functions return. */
typedef int64_t rlx_dim;
#define RLX_DIM_UNKNOWN INT64_MIN      /* a size that depends on data: "?" in text */
#define RLX_DIM_INFER (INT64_MIN + 1)  /* -1 in reshape and expand */
#define RLX_DIM_FAILED (INT64_MIN + 2) /* what a failed rlx_dim_ function gives */

/* Up to eight axes, integers or dims. */
typedef struct rlx_list {
    int32_t count;
    int64_t at[RLX_MAX_RANK];
} rlx_list;
#ifndef __cplusplus
#define RLX_LIST(...) \
    ((rlx_list){(int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#endif
#define RLX_EMPTY (rlx_list_of(0, NULL)) /* an empty list: rank 0, no axes, or "the default" */
RLX_API rlx_list rlx_list_of(int32_t count, const int64_t *at); /* at most 8 are taken */

/* Absent values of optional attributes. */
#define RLX_ABSENT INT64_MIN              /* integers */
#define RLX_ABSENT_F (__builtin_nanf("")) /* floats */
#define RLX_ABSENT_DTYPE RLX_DTYPE_count

/* A step of a fused chain: op (or cast to `to`) on up to three operands. */
typedef struct rlx_chain_step {
    int32_t op;    /* rlx_op */
    int32_t to;    /* rlx_dtype, for cast */
    int32_t in[3]; /* RLX_CHAIN_INPUT(i), or the number of an earlier step */
} rlx_chain_step;
#define RLX_CHAIN_INPUT(i) (-1 - (i))

RLX_API rlx_status rlx_graph_create(rlx_context *ctx, rlx_graph **out, rlx_error *err);
RLX_API void rlx_graph_destroy(rlx_graph *g); /* and its sub-graphs; values end with it */
/* A sub-graph for control flow. It belongs to g, sees only its own inputs and constants. name NULL:
 * none. */
RLX_API rlx_status rlx_graph_sub(rlx_graph *g, const char *name, rlx_graph **out, rlx_error *err);
/* The first failure so far, RLX_OK if none. */
RLX_API rlx_status rlx_graph_check(const rlx_graph *g, rlx_error *err);

/* Leaves. Names are non-empty and unique among inputs, params and states. */
RLX_API rlx_value rlx_input(rlx_graph *g, const char *name, rlx_dtype dtype, rlx_list shape);
RLX_API rlx_value rlx_param(rlx_graph *g, const char *name, rlx_dtype dtype, rlx_list shape);
RLX_API rlx_value rlx_state(rlx_graph *g, const char *name, rlx_dtype dtype, rlx_list shape);
/* bytes must be the shape's; they are copied. */
RLX_API rlx_value rlx_const(rlx_graph *g, rlx_dtype dtype, rlx_list shape, const void *data,
                            size_t bytes);
/* A rank-0 constant of the element type of `like`. */
RLX_API rlx_value rlx_scalar(rlx_graph *g, rlx_value like, double v);
/* Outputs are in the order of these calls; a value may be listed twice. */
RLX_API void rlx_output(rlx_graph *g, rlx_value v);
/* A name for the node, shown in messages, profiles and text. */
RLX_API void rlx_label(rlx_graph *g, rlx_value v, const char *label);

/* Any op by its name in the text form, attributes as there: "axis=1 keep_dim=true". NULL: none. */
RLX_API rlx_status rlx_graph_node(rlx_graph *g, const char *op, const rlx_value *in,
                                  size_t in_count, const char *attrs, rlx_value *out,
                                  rlx_error *err);

/* A whole model as a part of g. Its inputs, and params and states if you like, are bound by name to
 * values of g of the same type; other params and states become leaves of g. out: its outputs, in
 * order. MISSING_INPUT names an input that is bound to nothing. Nothing in g refers to m. */
typedef struct rlx_leaf_value {
    const char *name;
    rlx_value value;
} rlx_leaf_value;
RLX_API rlx_status rlx_graph_inline(rlx_graph *g, const rlx_model *m, const rlx_leaf_value *bind,
                                    size_t bind_count, rlx_value *out, size_t out_count,
                                    rlx_error *err);

/* A model's graph, to build on: the same leaves, nodes, dims and outputs. What its params were set
 * to does not come along (rlx_model_get_param has it). Nothing in g refers to m. */
RLX_API rlx_status rlx_graph_from_model(const rlx_model *m, rlx_graph **out, rlx_error *err);
/* The input, param or state of that name; RLX_NO_VALUE if there is none. */
RLX_API rlx_value rlx_graph_leaf(const rlx_graph *g, const char *name);
/* Output number i so far; RLX_NO_VALUE: there are no more. */
RLX_API rlx_value rlx_graph_output_at(const rlx_graph *g, size_t i);
/* There are no outputs from here on; their nodes stay. */
RLX_API void rlx_graph_clear_outputs(rlx_graph *g);
/* The param of that name becomes a state of the same name and type, whatever reads it. */
RLX_API rlx_status rlx_graph_make_state(rlx_graph *g, const char *name, rlx_error *err);

/* Symbolic sizes. bound 0: none. */
RLX_API rlx_dim rlx_dim_symbol(rlx_graph *g, const char *name);
RLX_API rlx_status rlx_dim_bound(rlx_graph *g, const char *name, int64_t upper, rlx_error *err);
RLX_API rlx_dim rlx_dim_add(rlx_graph *g, rlx_dim a, rlx_dim b);
RLX_API rlx_dim rlx_dim_sub(rlx_graph *g, rlx_dim a, rlx_dim b);
RLX_API rlx_dim rlx_dim_mul(rlx_graph *g, rlx_dim a, rlx_dim b);
RLX_API rlx_dim rlx_dim_div(rlx_graph *g, rlx_dim a, int64_t by); /* rounded down; by >= 1 */

/* What is known of a value. Dims are sizes or expressions. */
RLX_API rlx_status rlx_value_type(const rlx_graph *g, rlx_value v, rlx_dtype *dtype,
                                  rlx_list *shape, rlx_error *err);

#ifdef __cplusplus
}
#endif

#include "rlx/ops.h"
#endif
