/* onnx_trees.h: decision trees as tables of nodes, whichever op they came from. */
#ifndef IMPORT_ONNX_TREES_H
#define IMPORT_ONNX_TREES_H

#include "import/onnx/handlers/onnx_ml.h"

enum onnx_branch {
    ONNX_LEQ,
    ONNX_LT,
    ONNX_GTE,
    ONNX_GT,
    ONNX_EQ,
    ONNX_NEQ,
    ONNX_MEMBER,
    ONNX_LEAF
};
enum onnx_aggregate { ONNX_AVERAGE, ONNX_SUM, ONNX_MIN, ONNX_MAX };

struct onnx_forest {
    size_t count; /* nodes, leaves included */
    int32_t *feature, *yes, *no, *mode, *nan_yes;
    double *split;
    int32_t *root;
    size_t trees;
    int64_t targets;
    double *weight; /* [count, targets]; NaN: no vote */
    int64_t levels;
    bool asks_nan;   /* a NaN does not go the way of no by itself */
    rlx_dtype dtype; /* of features and weights */
};

/* Room for that many nodes, all of them leaves that lead to themselves without a vote. */
bool onnx_trees_make(struct onnx_call *c, struct onnx_forest *t, size_t count, int64_t targets);
void onnx_trees_vote(struct onnx_forest *t, size_t node, int64_t target, double weight);
/* Follows every tree from its root; sets levels. all: every node is in a tree. */
bool onnx_trees_check(struct onnx_call *c, struct onnx_forest *t, bool all);
bool onnx_trees_check_features(struct onnx_call *c, const struct onnx_forest *t);
/* What the trees say together of input 0, [N, targets]. */
ir_value onnx_trees_votes(struct onnx_call *c, const struct onnx_forest *t,
                          enum onnx_aggregate how);

/* A list of `count` integers; NULL: there is none of that length, which is a failure. */
const int64_t *onnx_trees_list(struct onnx_call *c, const char *name, size_t count);
/* Is an entry of that list a number below it? Else it is a failure. */
bool onnx_trees_in_range(struct onnx_call *c, const char *name, int64_t v, size_t below);
void onnx_trees_no_memory(struct onnx_call *c, size_t bytes);

#endif
