/* onnx_tree_read.c: the ops of ai.onnx.ml that are decision trees, and how each of them stores its
 * nodes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "import/onnx/handlers/onnx_trees.h"

/* ---- TreeEnsemble ---- */

static const double *reals_of(struct onnx_call *c, const char *name, size_t count)
{
    size_t have;
    const double *at = onnx_numbers(c, name, &have);

    if (at && have == count)
        return at;
    formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%s has %zu entries, not %zu", name, have, count);
    return NULL;
}

/* A node that asks for one of several values becomes one node per value, each with the same yes. */
struct members {
    const double *at;
    size_t count, next; /* next: to be read */
    size_t spare;       /* the first node that is not used yet */
};

static bool split_members(struct onnx_call *c, struct onnx_forest *t, size_t node,
                          struct members *m)
{
    size_t at = node;
    int32_t no = t->no[node];
    bool any = false;

    for (; m->next < m->count && !isnan(m->at[m->next]); m->next++, any = true) {
        if (any) {
            if (m->spare >= t->count)
                break;
            size_t more = m->spare++;
            t->no[at] = (int32_t)more;
            t->feature[more] = t->feature[node];
            t->yes[more] = t->yes[node];
            t->nan_yes[more] = t->nan_yes[node];
            at = more;
        }
        t->mode[at] = ONNX_EQ;
        t->split[at] = m->at[m->next];
    }
    t->no[at] = no;
    m->next++; /* the NaN after them */
    if (!any)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "membership_values lacks those of node %zu", node);
    return any;
}

static bool read_branches(struct onnx_call *c, struct onnx_forest *t, size_t inner, size_t leaves)
{
    const struct onnx_attr *nan = onnx_attr(c, "nodes_missing_value_tracks_true");
    const int64_t *yes = onnx_trees_list(c, "nodes_truenodeids", inner);
    const int64_t *no = onnx_trees_list(c, "nodes_falsenodeids", inner);
    const int64_t *yes_leaf = onnx_trees_list(c, "nodes_trueleafs", inner);
    const int64_t *no_leaf = onnx_trees_list(c, "nodes_falseleafs", inner);
    const int64_t *feature = onnx_trees_list(c, "nodes_featureids", inner);
    const double *mode = reals_of(c, "nodes_modes", inner);
    const double *split = reals_of(c, "nodes_splits", inner);

    if (onnx_failed(c))
        return false;
    for (size_t i = 0; i < inner; i++) {
        if (!onnx_trees_in_range(c, "nodes_truenodeids", yes[i], yes_leaf[i] ? leaves : inner) ||
            !onnx_trees_in_range(c, "nodes_falsenodeids", no[i], no_leaf[i] ? leaves : inner) ||
            !onnx_trees_in_range(c, "nodes_featureids", feature[i], INT32_MAX))
            return false;
        if (!(mode[i] >= ONNX_LEQ && mode[i] <= ONNX_MEMBER)) {
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "node %zu has mode %g", i, mode[i]);
            return false;
        }
        t->yes[i] = (int32_t)((size_t)yes[i] + (yes_leaf[i] ? inner : 0));
        t->no[i] = (int32_t)((size_t)no[i] + (no_leaf[i] ? inner : 0));
        t->feature[i] = (int32_t)feature[i];
        t->mode[i] = (int32_t)mode[i];
        t->split[i] = split[i];
        t->nan_yes[i] = nan && i < nan->ints.count && nan->ints.at[i] != 0;
        t->asks_nan |= t->nan_yes[i] != 0 || t->mode[i] == ONNX_NEQ;
    }
    return true;
}

void onnx_tree_ensemble(struct onnx_call *c)
{
    const struct onnx_attr *roots = onnx_attr(c, "tree_roots");
    const struct onnx_attr *features = onnx_attr(c, "nodes_featureids");
    size_t inner = features ? features->ints.count : 0, leaves;
    const double *weight = onnx_numbers(c, "leaf_weights", &leaves);
    const int64_t *target = onnx_trees_list(c, "leaf_targetids", leaves);
    struct members m = {.spare = inner + leaves};
    struct onnx_forest t = {.dtype = onnx_type(c, 0)->dtype == RLX_DTYPE_f64 ? RLX_DTYPE_f64
                                                                             : RLX_DTYPE_f32};
    int64_t how = onnx_int(c, "aggregate_function", ONNX_SUM);

    m.at = onnx_numbers(c, "membership_values", &m.count);
    if (!weight || !target || how < ONNX_AVERAGE || how > ONNX_MAX)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "no leaves, or aggregate_function %lld",
                     (long long)how);
    if (onnx_failed(c) ||
        !onnx_trees_make(c, &t, inner + leaves + m.count, onnx_int(c, "n_targets", 1)) ||
        !read_branches(c, &t, inner, leaves))
        return;
    t.trees = roots ? roots->ints.count : 0;
    if (t.trees < 1 || t.trees > t.count)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%zu trees", t.trees);
    for (size_t i = 0; !onnx_failed(c) && i < t.trees; i++)
        if (onnx_trees_in_range(c, "tree_roots", roots->ints.at[i], inner))
            t.root[i] = (int32_t)roots->ints.at[i];
    for (size_t i = 0; !onnx_failed(c) && i < leaves; i++)
        if (onnx_trees_in_range(c, "leaf_targetids", target[i], (size_t)t.targets))
            onnx_trees_vote(&t, inner + i, target[i], weight[i]);
    for (size_t i = 0; !onnx_failed(c) && i < inner; i++)
        if (t.mode[i] == ONNX_MEMBER)
            split_members(c, &t, i, &m);
    if (onnx_failed(c) || !onnx_trees_check(c, &t, false) || !onnx_trees_check_features(c, &t))
        return;
    ir_value y = onnx_trees_votes(c, &t, (enum onnx_aggregate)how);
    y = onnx_post(c, onnx_post_of(c, t.targets), y);
    onnx_give(c, 0, formula_cast(&c->f, y, onnx_type(c, 0)->dtype));
}

/* ---- TreeEnsembleRegressor, TreeEnsembleClassifier ---- */

/* A node by the number of its tree and its own. */
struct key {
    int64_t tree, node;
    size_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static const struct key *sorted_keys(struct onnx_call *c, size_t count)
{
    const int64_t *tree = onnx_trees_list(c, "nodes_treeids", count);
    const int64_t *node = onnx_trees_list(c, "nodes_nodeids", count);
    struct key *k = arena_array(onnx_arena(c), struct key, count);

    if (!k)
        onnx_trees_no_memory(c, count * sizeof *k);
    if (onnx_failed(c) || !k)
        return NULL;
    for (size_t i = 0; i < count; i++)
        k[i] = (struct key){tree[i], node[i], i};
    qsort(k, count, sizeof *k, by_key);
    for (size_t i = 1; i < count; i++)
        if (by_key(&k[i - 1], &k[i]) == 0) {
            formula_fail(&c->f, RLX_ERROR_FORMAT, "tree %lld has two nodes %lld",
                         (long long)k[i].tree, (long long)k[i].node);
            return NULL;
        }
    return k;
}

static bool find_node(struct onnx_call *c, const struct key *k, size_t count, int64_t tree,
                      int64_t node, int32_t *out)
{
    struct key want = {tree, node, 0};
    const struct key *at = bsearch(&want, k, count, sizeof *k, by_key);

    if (at)
        *out = (int32_t)at->index;
    else
        formula_fail(&c->f, RLX_ERROR_FORMAT, "tree %lld has no node %lld", (long long)tree,
                     (long long)node);
    return at != NULL;
}

static int mode_of(rlx_str word)
{
    static const char *const words[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};

    for (int i = ONNX_LEQ; i <= ONNX_LEAF; i++)
        if (i != ONNX_MEMBER && str_eq(word, rlx_cstr(words[i])))
            return i;
    return -1;
}

/* Lists that may be floats, or a tensor of doubles. */
static const double *floats_or_tensor(struct onnx_call *c, const char *name, const char *tensor,
                                      size_t *count)
{
    const double *at = onnx_numbers(c, name, count);

    return at ? at : onnx_numbers(c, tensor, count);
}

/* A tree begins at the one of its nodes that no node leads to. */
static void find_roots(struct onnx_call *c, struct onnx_forest *t, const struct key *k)
{
    uint8_t *led_to = arena_array(onnx_arena(c), uint8_t, t->count);
    size_t roots = 0;

    if (!led_to) {
        onnx_trees_no_memory(c, t->count);
        return;
    }
    memset(led_to, 0, t->count);
    for (size_t i = 0; i < t->count; i++)
        if (t->mode[i] != ONNX_LEAF)
            led_to[t->yes[i]] = led_to[t->no[i]] = 1;
    for (size_t i = 0; i < t->count; i++) { /* in the order of trees */
        if (!led_to[k[i].index] && roots++ == 0)
            t->root[t->trees++] = (int32_t)k[i].index;
        if (i + 1 < t->count && k[i + 1].tree == k[i].tree)
            continue;
        if (roots != 1) {
            formula_fail(&c->f, RLX_ERROR_FORMAT, "tree %lld has %zu roots", (long long)k[i].tree,
                         roots);
            return;
        }
        roots = 0;
    }
}

static const struct key *read_nodes(struct onnx_call *c, struct onnx_forest *t, int64_t targets)
{
    const struct onnx_attr *modes = onnx_attr(c, "nodes_modes");
    const struct onnx_attr *nan = onnx_attr(c, "nodes_missing_value_tracks_true");
    size_t count = modes ? modes->strings.count : 0, have;
    const int64_t *yes = onnx_trees_list(c, "nodes_truenodeids", count);
    const int64_t *no = onnx_trees_list(c, "nodes_falsenodeids", count);
    const int64_t *feature = onnx_trees_list(c, "nodes_featureids", count);
    const int64_t *tree = onnx_trees_list(c, "nodes_treeids", count);
    const double *split = floats_or_tensor(c, "nodes_values", "nodes_values_as_tensor", &have);
    const struct key *k = sorted_keys(c, count);

    if (!split || have != count)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "nodes_values has %zu entries, not %zu", have,
                     count);
    if (onnx_failed(c) || !k || !onnx_trees_make(c, t, count, targets))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        t->mode[i] = mode_of(modes->strings.at[i]);
        if (t->mode[i] < 0) {
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "mode \"%.*s\"",
                         STR_ARG(modes->strings.at[i]));
            return NULL;
        }
        if (t->mode[i] == ONNX_LEAF)
            continue;
        if (!find_node(c, k, count, tree[i], yes[i], &t->yes[i]) ||
            !find_node(c, k, count, tree[i], no[i], &t->no[i]) ||
            !onnx_trees_in_range(c, "nodes_featureids", feature[i], INT32_MAX))
            return NULL;
        t->feature[i] = (int32_t)feature[i];
        t->split[i] = split[i];
        t->nan_yes[i] = nan && i < nan->ints.count && nan->ints.at[i] != 0;
        t->asks_nan |= t->nan_yes[i] != 0 || t->mode[i] == ONNX_NEQ;
    }
    find_roots(c, t, k);
    return onnx_failed(c) || !onnx_trees_check(c, t, true) || !onnx_trees_check_features(c, t)
               ? NULL
               : k;
}

/* Names of the attributes that say which leaf votes for what. */
struct vote_names {
    const char *trees, *nodes, *ids, *weights, *tensor;
};

static bool read_votes(struct onnx_call *c, struct onnx_forest *t, const struct key *k,
                       const struct vote_names *n, bool *all_positive, bool *one_id)
{
    size_t votes;
    const double *weight = floats_or_tensor(c, n->weights, n->tensor, &votes);
    const int64_t *tree = onnx_trees_list(c, n->trees, votes),
                  *node = onnx_trees_list(c, n->nodes, votes);
    const int64_t *id = onnx_trees_list(c, n->ids, votes);
    int32_t at;

    *all_positive = *one_id = true;
    if (!weight)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%s is empty", n->weights);
    for (size_t i = 0; !onnx_failed(c) && i < votes; i++) {
        if (!onnx_trees_in_range(c, n->ids, id[i], (size_t)t->targets) ||
            !find_node(c, k, t->count, tree[i], node[i], &at))
            return false;
        onnx_trees_vote(t, (size_t)at, id[i], weight[i]);
        *all_positive &= weight[i] >= 0;
        *one_id &= id[i] == id[0];
    }
    return !onnx_failed(c);
}

static ir_value with_base(struct onnx_call *c, const struct onnx_forest *t, ir_value y)
{
    size_t count;
    const double *base = floats_or_tensor(c, "base_values", "base_values_as_tensor", &count);

    if (!base)
        return y;
    if (count != (size_t)t->targets && count != 1) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "base_values has %zu entries, not %lld", count,
                     (long long)t->targets);
        return y;
    }
    return formula_2(&c->f, RLX_OP_add, y,
                     onnx_list_of(c, base, t->dtype, RLX_LIST((int64_t)count)));
}

static rlx_dtype trees_dtype(struct onnx_call *c)
{
    bool wide = onnx_type(c, 0)->dtype == RLX_DTYPE_f64 || onnx_attr(c, "nodes_values_as_tensor");

    return wide ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
}

void onnx_tree_regressor(struct onnx_call *c)
{
    static const struct vote_names names = {"target_treeids", "target_nodeids", "target_ids",
                                            "target_weights", "target_weights_as_tensor"};
    static const char *const words[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    rlx_str word = onnx_text(c, "aggregate_function", "SUM");
    struct onnx_forest t = {.dtype = trees_dtype(c)};
    const struct key *k = read_nodes(c, &t, onnx_int(c, "n_targets", 1));
    bool positive, one_id;
    int how = -1;

    for (int i = ONNX_AVERAGE; i <= ONNX_MAX; i++)
        how = str_eq(word, rlx_cstr(words[i])) ? i : how;
    if (how < 0)
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "aggregate_function \"%.*s\"", STR_ARG(word));
    if (!k || onnx_failed(c) || !read_votes(c, &t, k, &names, &positive, &one_id))
        return;
    ir_value y = with_base(c, &t, onnx_trees_votes(c, &t, (enum onnx_aggregate)how));
    y = onnx_post(c, onnx_post_of(c, t.targets), y);
    onnx_give(c, 0, formula_cast(&c->f, y, RLX_DTYPE_f32));
}

/* Of two classes whose votes are all in one column: above a half if there are none against. */
static ir_value one_of_two(struct onnx_call *c, const struct onnx_forest *t, ir_value *y,
                           bool positive)
{
    struct formula *f = &c->f;
    ir_value s = formula_narrow(f, *y, 1, 0, 1);
    ir_value edge = formula_number_of(f, t->dtype, positive ? 0.5 : 0);
    ir_value number = formula_cast(f, formula_2(f, RLX_OP_gt, s, edge), RLX_DTYPE_i32);

    *y = onnx_post_pair(c, onnx_post_of(c, 2), s, positive ? 1 : 0);
    return formula_reshape(f, number, RLX_LIST(onnx_type(c, 0)->dim[0]));
}

void onnx_tree_classifier(struct onnx_call *c)
{
    static const struct vote_names names = {"class_treeids", "class_nodeids", "class_ids",
                                            "class_weights", "class_weights_as_tensor"};
    const struct onnx_attr *labels = onnx_attr(c, "classlabels_int64s");
    const struct onnx_attr *ids = onnx_attr(c, "class_ids");
    struct onnx_forest t = {.dtype = trees_dtype(c)};
    bool positive, one_id;
    union ir_attr attr;
    size_t base;

    if (!labels || !labels->ints.count) {
        onnx_unsupported(c, "class labels that are not integers");
        return;
    }
    const struct key *k = read_nodes(c, &t, (int64_t)labels->ints.count);
    if (!k || !read_votes(c, &t, k, &names, &positive, &one_id))
        return;
    floats_or_tensor(c, "base_values", "base_values_as_tensor", &base);
    bool pair = t.targets == 2 && one_id;
    if (pair && (ids->ints.at[0] != 0 || base > 1)) {
        onnx_unsupported(c, "two classes with votes for the second alone, or two base values");
        return;
    }
    ir_value y = with_base(c, &t, onnx_trees_votes(c, &t, ONNX_SUM)), number;
    if (pair)
        number = one_of_two(c, &t, &y, positive);
    else {
        attr_defaults(RLX_OP_argmax, &attr);
        attr.arg_extreme.axis = 1;
        number = formula_node(&c->f, RLX_OP_argmax, &y, 1, &attr);
        y = onnx_post(c, onnx_post_of(c, t.targets), y);
    }
    onnx_give(c, 0, onnx_label(c, "classlabels_int64s", number));
    onnx_give(c, 1, formula_cast(&c->f, y, RLX_DTYPE_f32));
}
