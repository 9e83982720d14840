/* onnx_trees.c: ensembles of decision trees of ai.onnx.ml.
 *
 * All nodes of all trees are rows of tables. Every item is at one node of each tree, [N, trees],
 * and goes down one level per step, for as many steps as the deepest tree has levels; a leaf leads
 * to itself. What a file says about its trees is checked beforehand: where nodes lead, and that
 * none is reached twice. */
#include <math.h>

#include "import/onnx/handlers/onnx_trees.h"

#define MAX_LEVELS 512
#define MAX_NODES (1 << 24)
#define MAX_WEIGHTS (1 << 26)

void onnx_trees_no_memory(struct onnx_call *c, size_t bytes)
{
    c->f.status = diag_no_memory(c->f.diag, bytes);
}

bool onnx_trees_make(struct onnx_call *c, struct onnx_forest *t, size_t count, int64_t targets)
{
    struct arena *a = onnx_arena(c);

    if (count < 1 || count > MAX_NODES || targets < 1 || targets > (int64_t)(MAX_WEIGHTS / count)) {
        onnx_unsupported(c, "%zu nodes with %lld targets", count, (long long)targets);
        return false;
    }
    t->targets = targets;
    t->feature = arena_array(a, int32_t, count);
    t->yes = arena_array(a, int32_t, count);
    t->no = arena_array(a, int32_t, count);
    t->mode = arena_array(a, int32_t, count);
    t->nan_yes = arena_array(a, int32_t, count);
    t->root = arena_array(a, int32_t, count);
    t->split = arena_array(a, double, count);
    t->weight = arena_array(a, double, count *(size_t)targets);
    t->count = count;
    if (!t->feature || !t->yes || !t->no || !t->mode || !t->nan_yes || !t->root || !t->split ||
        !t->weight) {
        onnx_trees_no_memory(c, count * sizeof(double));
        return false;
    }
    for (size_t i = 0; i < count * (size_t)targets; i++)
        t->weight[i] = NAN;
    for (size_t i = 0; i < count; i++) {
        t->mode[i] = ONNX_LEAF;
        t->yes[i] = t->no[i] = (int32_t)i;
        t->feature[i] = t->nan_yes[i] = 0;
        t->split[i] = 0;
    }
    return true;
}

void onnx_trees_vote(struct onnx_forest *t, size_t node, int64_t target, double weight)
{
    double *at = &t->weight[node * (size_t)t->targets + (size_t)target];

    *at = isnan(*at) ? weight : *at + weight;
}

const int64_t *onnx_trees_list(struct onnx_call *c, const char *name, size_t count)
{
    const struct onnx_attr *a = onnx_attr(c, name);

    if (a && a->ints.count == count)
        return a->ints.at;
    formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%s has %zu entries, not %zu", name,
                 a ? a->ints.count : 0, count);
    return NULL;
}

bool onnx_trees_in_range(struct onnx_call *c, const char *name, int64_t v, size_t below)
{
    if (v >= 0 && (uint64_t)v < below)
        return true;
    formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%s leads to %lld, of %zu", name, (long long)v, below);
    return false;
}

/* ---- checking ---- */

bool onnx_trees_check(struct onnx_call *c, struct onnx_forest *t, bool all)
{
    int32_t *stack = arena_array(onnx_arena(c), int32_t, t->count);
    int32_t *level = arena_array(onnx_arena(c), int32_t, t->count); /* 0: not come to */
    size_t depth = 0;

    if (!stack || !level) {
        onnx_trees_no_memory(c, t->count * sizeof *stack);
        return false;
    }
    for (size_t i = 0; i < t->count; i++)
        level[i] = 0;
    for (size_t i = 0; i < t->trees; i++) {
        if (level[t->root[i]]) {
            formula_fail(&c->f, RLX_ERROR_FORMAT, "two trees share node %d", t->root[i]);
            return false;
        }
        level[t->root[i]] = 1;
        stack[depth++] = t->root[i];
        while (depth) {
            int32_t at = stack[--depth], next[] = {t->yes[at], t->no[at]};
            t->levels = level[at] > t->levels ? level[at] : t->levels;
            for (int k = 0; k < 2 && t->mode[at] != ONNX_LEAF; k++) {
                if (t->mode[next[k]] == ONNX_LEAF) {
                    level[next[k]] = 1; /* which several may lead to */
                    continue;
                }
                if (level[next[k]] || level[at] >= MAX_LEVELS) {
                    formula_fail(&c->f, RLX_ERROR_FORMAT,
                                 "a tree deeper than %d, or with two ways to node %d", MAX_LEVELS,
                                 next[k]);
                    return false;
                }
                level[next[k]] = level[at] + 1;
                stack[depth++] = next[k];
            }
        }
    }
    for (size_t i = 0; all && i < t->count; i++)
        if (!level[i]) {
            formula_fail(&c->f, RLX_ERROR_FORMAT, "no tree leads to node %zu", i);
            return false;
        }
    return true;
}

bool onnx_trees_check_features(struct onnx_call *c, const struct onnx_forest *t)
{
    const struct ir_type x = *onnx_type(c, 0);

    if (x.rank != 2 || !dim_is_static(x.dim[1])) {
        onnx_unsupported(c, "features that are not [N, F]");
        return false;
    }
    for (size_t i = 0; i < t->count; i++)
        if (t->mode[i] != ONNX_LEAF &&
            !onnx_trees_in_range(c, "nodes_featureids", t->feature[i], (size_t)x.dim[1]))
            return false;
    return true;
}

/* ---- going down ---- */

static ir_value table(struct onnx_call *c, const struct onnx_forest *t, const int32_t *at)
{
    struct ir_type type = {.dtype = RLX_DTYPE_i32, .rank = 1, .dim = {(ir_dim)t->count}};

    return onnx_table_of(c, &type, at);
}

/* Does x, the feature of each node that is stood at, go the way of yes? */
static ir_value compare(struct onnx_call *c, const struct onnx_forest *t, ir_value x,
                        ir_value split, ir_value mode)
{
    static const rlx_op ops[] = {RLX_OP_le, RLX_OP_lt, RLX_OP_ge, RLX_OP_gt, RLX_OP_eq, RLX_OP_ne};
    struct formula *f = &c->f;
    ir_value yes = RLX_NO_VALUE;
    bool used[ONNX_LEAF + 1] = {false};

    for (size_t i = 0; i < t->count; i++)
        used[t->mode[i]] = true;
    for (int m = ONNX_LEQ; m <= ONNX_NEQ; m++) {
        if (!used[m])
            continue;
        ir_value own = formula_2(f, ops[m], x, split);
        ir_value is = formula_2(f, RLX_OP_eq, mode, formula_number_of(f, RLX_DTYPE_i32, m));
        yes = yes == RLX_NO_VALUE ? own : formula_where(f, is, own, yes);
    }
    return yes;
}

/* The leaves that items end at, [N, trees]. */
static ir_value go_down(struct onnx_call *c, const struct onnx_forest *t)
{
    struct formula *f = &c->f;
    struct ir_type roots = {.dtype = RLX_DTYPE_i32, .rank = 2, .dim = {1, (ir_dim)t->trees}};
    ir_dim items = onnx_type(c, 0)->dim[0];
    ir_value x = formula_cast(f, onnx_in(c, 0), t->dtype);
    ir_value feature = table(c, t, t->feature), yes = table(c, t, t->yes), no = table(c, t, t->no);
    ir_value mode = table(c, t, t->mode), nan_yes = table(c, t, t->nan_yes);
    ir_value split = onnx_list_of(c, t->split, t->dtype, RLX_LIST((int64_t)t->count));
    ir_value at =
        formula_expand(f, onnx_table_of(c, &roots, t->root), RLX_LIST(items, (int64_t)t->trees));
    union ir_attr attr;

    attr_defaults(RLX_OP_gather_elements, &attr);
    attr.gather_elements.axis = 1;
    for (int64_t i = 0; i < t->levels && !onnx_failed(c); i++) {
        ir_value in[] = {x, formula_2(f, RLX_OP_gather, feature, at)};
        ir_value v = formula_node(f, RLX_OP_gather_elements, in, 2, &attr);
        ir_value is = compare(c, t, v, formula_2(f, RLX_OP_gather, split, at),
                              formula_2(f, RLX_OP_gather, mode, at));
        if (is == RLX_NO_VALUE)
            break; /* there are leaves only */
        if (t->asks_nan) {
            ir_value way = formula_2(f, RLX_OP_ne, formula_2(f, RLX_OP_gather, nan_yes, at),
                                     formula_number_of(f, RLX_DTYPE_i32, 0));
            is = formula_where(f, formula_2(f, RLX_OP_ne, v, v), way, is);
        }
        at = formula_where(f, is, formula_2(f, RLX_OP_gather, yes, at),
                           formula_2(f, RLX_OP_gather, no, at));
    }
    return at;
}

ir_value onnx_trees_votes(struct onnx_call *c, const struct onnx_forest *t, enum onnx_aggregate how)
{
    struct formula *f = &c->f;
    size_t weights = t->count * (size_t)t->targets;
    double none = how == ONNX_MIN ? INFINITY : how == ONNX_MAX ? -INFINITY : 0;
    rlx_op op = how == ONNX_MIN   ? RLX_OP_reduce_min
                : how == ONNX_MAX ? RLX_OP_reduce_max
                                  : RLX_OP_reduce_sum;

    for (size_t i = 0; i < weights; i++)
        if (isnan(t->weight[i]))
            t->weight[i] = none;
    ir_value w = onnx_list_of(c, t->weight, t->dtype, RLX_LIST((int64_t)t->count, t->targets));
    ir_value v = formula_2(f, RLX_OP_gather, w, go_down(c, t)); /* [N, trees, targets] */
    ir_value y = formula_reduce(f, op, v, RLX_LIST(1), false);
    if (how == ONNX_AVERAGE)
        return formula_2(f, RLX_OP_mul, y, formula_number_of(f, t->dtype, 1 / (double)t->trees));
    if (how == ONNX_SUM)
        return y;
    ir_value nothing = formula_2(f, RLX_OP_eq, y, formula_number_of(f, t->dtype, none));
    return formula_where(f, nothing, formula_number_of(f, t->dtype, 0), y);
}
