/* onnx_trees_test.c: decision trees; values as ONNX Runtime gives them, and trees that are none. */
#include <math.h>

#include "onnx_node_world.h"

#define ML "ai.onnx.ml"

static const float rows[] = {1, 2, -3, 0.5f, NAN, 0};

/* Two trees of a node and two leaves: x0 <= 0 and x1 > 1. A third of one leaf, where asked for. */
static struct one two_trees(const char *op, size_t outputs)
{
    struct one o = one_node(ML, op, 1, outputs);

    o.symbolic = 0;
    one_in_f32(&o, RLX_LIST(3, 2), rows);
    ONE_INTS(&o, "nodes_treeids", 0, 0, 0, 1, 1, 1);
    ONE_INTS(&o, "nodes_nodeids", 0, 1, 2, 0, 1, 2);
    ONE_FLOATS(&o, "nodes_values", 0, 0, 0, 1, 0, 0);
    one_words(&o, "nodes_modes", "BRANCH_LEQ LEAF LEAF BRANCH_GT LEAF LEAF");
    return o;
}

static void usual_nodes(struct one *o)
{
    ONE_INTS(o, "nodes_featureids", 0, 0, 0, 1, 0, 0);
    ONE_INTS(o, "nodes_truenodeids", 1, 0, 0, 1, 0, 0);
    ONE_INTS(o, "nodes_falsenodeids", 2, 0, 0, 2, 0, 0);
}

static void votes(struct one *o, const char *kind, bool two)
{
    static const float weights[] = {0.2f, -0.3f, 0.1f, 0.4f};
    const int64_t trees[] = {0, 0, 1, 1}, nodes[] = {1, 2, 1, 2}, ids[] = {0, two, 0, two};
    char name[32];

    snprintf(name, sizeof name, "%s_treeids", kind);
    one_ints(o, name, trees, 4);
    snprintf(name, sizeof name, "%s_nodeids", kind);
    one_ints(o, name, nodes, 4);
    snprintf(name, sizeof name, "%s_ids", kind);
    one_ints(o, name, ids, 4);
    snprintf(name, sizeof name, "%s_weights", kind);
    one_floats(o, name, weights, 4);
}

TEST(onnx_trees, votes_are_put_together)
{
    static const struct {
        const char *how;
        float want[3];
    } cases[] = {{"SUM", {-0.2f, 0.6f, 0.1f}},
                 {"AVERAGE", {-0.1f, 0.3f, 0.05f}},
                 {"MIN", {-0.3f, 0.2f, -0.3f}},
                 {"MAX", {0.1f, 0.4f, 0.4f}}};

    for (size_t i = 0; i < 4; i++) {
        struct one o = two_trees("TreeEnsembleRegressor", 1);
        usual_nodes(&o);
        votes(&o, "target", false);
        one_text(&o, "aggregate_function", cases[i].how);
        expect_one(t, &o, 0, 1e-6, 3, cases[i].want);
        ONE_FLOATS(&o, "base_values", 0.5f);
        expect_one(t, &o, 0, 1e-6, 3,
                   (const float[]){cases[i].want[0] + 0.5f, cases[i].want[1] + 0.5f,
                                   cases[i].want[2] + 0.5f});
    }
}

TEST(onnx_trees, classes_have_labels_and_scores)
{
    struct one o = two_trees("TreeEnsembleClassifier", 2);

    usual_nodes(&o);
    votes(&o, "class", false);
    ONE_INTS(&o, "classlabels_int64s", 7, 9);
    expect_one(t, &o, 0, 0, 3, (const float[]){7, 9, 9});
    expect_one(t, &o, 1, 1e-6, 6, (const float[]){0.2f, -0.2f, -0.6f, 0.6f, -0.1f, 0.1f});
    o = two_trees("TreeEnsembleClassifier", 2);
    usual_nodes(&o);
    votes(&o, "class", true);
    ONE_INTS(&o, "classlabels_int64s", 7, 9, 11);
    expect_one(t, &o, 0, 0, 3, (const float[]){7, 9, 9});
    expect_one(t, &o, 1, 1e-6, 9, (const float[]){0.1f, -0.3f, 0, 0.2f, 0.4f, 0, 0, 0.1f, 0});
}

/* What a NaN does is the node's to say. */
TEST(onnx_trees, a_missing_value_goes_where_it_is_told)
{
    struct one o = two_trees("TreeEnsembleRegressor", 1);

    usual_nodes(&o);
    votes(&o, "target", false);
    ONE_INTS(&o, "nodes_missing_value_tracks_true", 1, 0, 0, 0, 0, 0);
    expect_one(t, &o, 0, 1e-6, 3, (const float[]){-0.2f, 0.6f, 0.6f});
}

static void refuse(struct test *t, const int64_t *feature, const int64_t *yes, const int64_t *no,
                   const char *part)
{
    struct one o = two_trees("TreeEnsembleRegressor", 1);

    one_ints(&o, "nodes_featureids", feature, 6);
    one_ints(&o, "nodes_truenodeids", yes, 6);
    one_ints(&o, "nodes_falsenodeids", no, 6);
    votes(&o, "target", false);
    struct bytes m = one_model(&o);
    struct result r = import(m.at, m.len);
    expect(t, r.status == RLX_ERROR_FORMAT || r.status == RLX_ERROR_ATTRIBUTE);
    expect_contains(t, r.diag.first.message, part);
    onnx_imported_free(&r.m);
}

TEST(onnx_trees, nodes_that_lead_nowhere_are_refused)
{
    static const int64_t feature[] = {0, 0, 0, 1, 0, 0}, yes[] = {1, 0, 0, 1, 0, 0};
    static const int64_t no[] = {2, 0, 0, 2, 0, 0};

    refuse(t, (const int64_t[]){2, 0, 0, 1, 0, 0}, yes, no, "nodes_featureids leads to 2, of 2");
    refuse(t, (const int64_t[]){-1, 0, 0, 1, 0, 0}, yes, no, "nodes_featureids leads to -1");
    refuse(t, feature, (const int64_t[]){3, 0, 0, 1, 0, 0}, no, "tree 0 has no node 3");
    refuse(t, feature, (const int64_t[]){0, 0, 0, 0, 0, 0}, no, "no tree leads to node 0");
}

/* ---- TreeEnsemble ---- */

static struct one ensemble(const int64_t *yes, const int64_t *yes_leaf, int64_t root)
{
    static const float x[] = {1, 2, 3, 8};
    static const float weights[] = {10, 20, 30}, splits[] = {4, 0}, members[] = {1, 3, NAN};
    static const uint8_t modes[] = {0, 6}; /* <=, one of */
    struct one o = one_node(ML, "TreeEnsemble", 5, 1);

    one_in_f32(&o, RLX_LIST(4, 1), x);
    ONE_INTS(&o, "nodes_featureids", 0, 0);
    one_ints(&o, "nodes_truenodeids", yes, 2);
    one_ints(&o, "nodes_trueleafs", yes_leaf, 2);
    ONE_INTS(&o, "nodes_falsenodeids", 2, 1);
    ONE_INTS(&o, "nodes_falseleafs", 1, 1);
    one_tensor(&o, "nodes_modes", RLX_DTYPE_u8, 2, modes);
    one_tensor(&o, "nodes_splits", RLX_DTYPE_f32, 2, splits);
    one_tensor(&o, "membership_values", RLX_DTYPE_f32, 3, members);
    one_tensor(&o, "leaf_weights", RLX_DTYPE_f32, 3, weights);
    ONE_INTS(&o, "leaf_targetids", 0, 0, 0);
    ONE_INTS(&o, "tree_roots", root);
    one_int(&o, "n_targets", 1);
    return o;
}

TEST(onnx_trees, sets_are_asked_one_by_one)
{
    struct one o = ensemble((const int64_t[]){1, 0}, (const int64_t[]){0, 1}, 0);

    expect_one(t, &o, 0, 0, 4, (const float[]){10, 20, 10, 30});
    expect_one_survives(t, &o);
}

TEST(onnx_trees, circles_and_strangers_are_refused)
{
    struct one o = ensemble((const int64_t[]){1, 0}, (const int64_t[]){0, 0}, 0);

    expect_one_refused(t, &o, RLX_ERROR_FORMAT, "with two ways to node 0");
    o = ensemble((const int64_t[]){1, 3}, (const int64_t[]){0, 1}, 0);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "nodes_truenodeids leads to 3, of 3");
    o = ensemble((const int64_t[]){1, 0}, (const int64_t[]){0, 1}, 2);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "tree_roots leads to 2, of 2");
}
