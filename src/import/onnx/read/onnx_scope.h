/* onnx_scope.h: names and their values, while a graph is read.
 *
 * A graph inside of a node sees the names around it. It has its own scope, whose nodes go to
 * the same graph of ours (a branch that is known at load, a function) or to a sub-graph. */
#ifndef IMPORT_ONNX_SCOPE_H
#define IMPORT_ONNX_SCOPE_H

#include "base/map.h"
#include "import/onnx/read/onnx.h"
#include "import/onnx/read/onnx_call.h"

#define ONNX_MAX_DEPTH 64
#define ONNX_MAX_NODES (1 << 20)  /* visited in total, functions and branches included */
#define ONNX_MAX_ITEMS 4096       /* of a sequence */
#define ONNX_ALL_ITEMS (1 << 20)  /* of all of them */
#define ONNX_FOLD_LIMIT (1 << 16) /* elements of what is worked out at load */

struct onnx_import {
    const rlx_allocator *mem;
    struct arena *arena;
    struct onnx_imported *out;
    const struct onnx_import_options *options;
    struct onnx_model model;
    struct ir_module *mod;
    struct map params; /* by their bytes' address: their place in out->weight */
    size_t nodes;
    size_t items; /* of all sequences made so far */
    size_t failures;
    rlx_status status; /* of the first failure that is not a missing op */
    rlx_error first;
};

struct onnx_scope {
    struct onnx_scope *outer; /* NULL: the model's graph, or a function's body */
    struct ir_graph *g;
    const onnx_opsets *opset;
    const struct onnx_call *function;       /* whose body this is: attributes may refer to it */
    const struct onnx_function *definition; /* of that function */
    struct map names;
    VEC(struct onnx_value *) value;
    int depth;
};

/* outer NULL: a function's body, in caller's graph. */
rlx_status onnx_scope_begin(struct onnx_import *im, struct onnx_scope *s, struct onnx_scope *outer,
                            struct ir_graph *g, struct diag *d);
void onnx_scope_end(struct onnx_scope *s);
/* NULL: there is no such name. What is known of a value outside of our graph is known here too. */
struct onnx_value *onnx_find(struct onnx_import *im, struct onnx_scope *s, rlx_str name);
/* A copy of v under that name. */
rlx_status onnx_bind(struct onnx_import *im, struct onnx_scope *s, rlx_str name,
                     const struct onnx_value *v, struct diag *d);
/* Initializers, then nodes in order. Nodes that cannot be imported are noted, not returned. */
rlx_status onnx_walk_graph(struct onnx_import *im, struct onnx_scope *s, const struct onnx_graph *g,
                           struct diag *d);
rlx_status onnx_walk(struct onnx_import *im, struct onnx_scope *s, const struct onnx_node *node,
                     size_t count, struct diag *d);

bool onnx_is_default_domain(rlx_str domain);

/* onnx_control.c: the body's results for these inputs, in the graph of the call; names around it
 * are seen. false: that failed. */
bool onnx_run_body(struct onnx_call *c, const struct onnx_graph *g, const struct onnx_value *in,
                   size_t in_count, struct onnx_value *out, size_t out_count);
/* So many values that are nothing yet; NULL after a failure. */
struct onnx_value *onnx_make_values(struct onnx_call *c, size_t count);
const struct onnx_graph *onnx_body(struct onnx_call *c, const char *name); /* NULL: none */

/* onnx_sequence.c: output i is a sequence, whose items are for the caller to fill; NULL after a
 * failure. */
struct onnx_value *onnx_give_items(struct onnx_call *c, size_t i, size_t count);

/* A line of the report: that node could not be imported. */
void onnx_note_failure(struct onnx_import *im, const struct onnx_node *n, int64_t opset,
                       const rlx_error *e);

/* onnx_io.c: what was given about inputs names some of them; input `number` of the model; all its
 * outputs. */
rlx_status onnx_check_told(const struct onnx_import *im, const struct onnx_graph *g,
                           struct diag *d);
rlx_status onnx_add_input(struct onnx_import *im, struct onnx_scope *s, size_t number,
                          const struct onnx_value_info *info, struct diag *d);
rlx_status onnx_add_outputs(struct onnx_import *im, struct onnx_scope *s,
                            const struct onnx_graph *g, struct diag *d);

/* An attribute of the call's node, or the one of the function around that it refers to; NULL: it
 * has no value. */
const struct onnx_attr *onnx_resolve_attr(const struct onnx_call *c, const struct onnx_attr *a);

/* onnx_fold.c: nodes from `first` on, which need nothing but inputs whose bytes are known, become
 * bytes themselves. Leaves them as they are where that is too much work. */
rlx_status onnx_fold(struct onnx_call *c, size_t first, size_t checks);

/* onnx_counted.c: leaves for the outputs that were given with a count. */
rlx_status onnx_cut_outputs(struct onnx_call *c);

#endif
