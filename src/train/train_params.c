/* train_params.c: which params are trained. A param takes part if the loss depends on it, `train`
 * names it or there is no such list, and `keep` does not. */
#include "autodiff/autodiff.h"
#include "base/str.h"
#include "graph/builder.h"
#include "rlx/autodiff.h"
#include "train/train.h"

bool train_matches(const char *pattern, rlx_str name)
{
    size_t i = 0, retry = 0;
    const char *star = NULL;

    while (i < name.len) {
        if (*pattern == '*') {
            star = pattern++;
            retry = i;
        } else if (*pattern && *pattern == name.ptr[i]) {
            pattern++;
            i++;
        } else if (star) { /* the last star takes one more */
            pattern = star + 1;
            i = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool any_matches(const char *const *pattern, size_t count, rlx_str name)
{
    for (size_t i = 0; i < count; i++)
        if (train_matches(pattern[i], name))
            return true;
    return false;
}

static bool names_in_full(const char *const *pattern, size_t count, rlx_str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(rlx_cstr(pattern[i]), name))
            return true;
    return false;
}

/* Each pattern is good for something, or it is a slip. */
static rlx_status check_patterns(const struct train *t, const char *what,
                                 const char *const *pattern, size_t count)
{
    if (count && !pattern)
        return diag_fail(t->diag, RLX_ERROR_ARGUMENT, "%s is NULL", what);
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        if (!pattern[i])
            return diag_fail(t->diag, RLX_ERROR_ARGUMENT, "%s[%zu] is NULL", what, i);
        IR_EACH(n, t->g->g)
            found |= n->op == RLX_OP_param && train_matches(pattern[i], ir_leaf_name(n));
        if (!found)
            return diag_fail(t->diag, RLX_ERROR_NAME,
                             "the graph has no param \"%s\", which %s names", pattern[i], what);
    }
    return RLX_OK;
}

/* Is it, or what it is cast to, a table that rows are taken from? */
static bool is_table(const struct ir_graph *g, ir_value v)
{
    IR_EACH(n, g) {
        if (n->op == RLX_OP_gather && n->in[0] == v)
            return true;
        if (n->op == RLX_OP_cast && n->in[0] == v && is_table(g, ir_id(g, n)))
            return true;
    }
    return false;
}

static void describe(const struct train *t, rlx_value leaf, struct train_param *p)
{
    const rlx_train_desc *desc = t->desc;
    const struct ir_node *n = ir_node(t->g->g, leaf);
    bool matrix = n->type.rank == 2;

    *p =
        (struct train_param){.leaf = leaf,
                             .name = ir_leaf_name(n),
                             .dtype = n->type.dtype,
                             .wide = n->type.dtype == RLX_DTYPE_f64 ? RLX_DTYPE_f64 : RLX_DTYPE_f32,
                             .shape = rlx_list_of(n->type.rank, n->type.dim),
                             .by = desc->optimiser,
                             .decays = desc->decay > 0 && (n->type.rank > 1 || desc->decay_vectors),
                             .grad = RLX_NO_VALUE};
    if (desc->optimiser == RLX_OPTIMISER_MUON &&
        (!matrix || any_matches(desc->plain, desc->plain_count, p->name) ||
         is_table(t->g->g, leaf)))
        p->by = RLX_OPTIMISER_ADAMW;
}

static rlx_status check_param(const struct train *t, const struct ir_node *n)
{
    rlx_str name = ir_leaf_name(n);

    if (n->type.rank == 0)
        return diag_fail(t->diag, RLX_ERROR_SHAPE,
                         "the param \"%.*s\" has no axis; to be trained it must have one, as [1] "
                         "has",
                         STR_ARG(name));
    return RLX_OK;
}

/* Is n to be trained, as far as its name and type say? */
static rlx_status is_wanted(const struct train *t, const struct ir_node *n, bool *wanted)
{
    const rlx_train_desc *desc = t->desc;
    rlx_str name = ir_leaf_name(n);

    *wanted = n->op == RLX_OP_param &&
              (!desc->train_count || any_matches(desc->train, desc->train_count, name)) &&
              !any_matches(desc->keep, desc->keep_count, name);
    if (!*wanted || dtype_is(n->type.dtype, CLASS_F))
        return RLX_OK;
    *wanted = false;
    if (names_in_full(desc->train, desc->train_count, name))
        return diag_fail(t->diag, RLX_ERROR_DTYPE,
                         "the param \"%.*s\" is %s: only floats can be trained", STR_ARG(name),
                         rlx_dtype_name(n->type.dtype));
    return RLX_OK;
}

static rlx_status take(struct train *t, rlx_value loss, rlx_value leaf)
{
    struct ir_graph *g = t->g->g;
    rlx_str name = ir_leaf_name(ir_node(g, leaf));
    rlx_error err;
    bool reached;

    if (rlx_gradient_reaches(t->g, loss, &leaf, 1, &reached, &err) != RLX_OK)
        return diag_again(t->diag, &err, err.status);
    if (!reached) {
        if (!names_in_full(t->desc->train, t->desc->train_count, name))
            return RLX_OK;
        return diag_fail(t->diag, RLX_ERROR_GRAPH,
                         "the loss, node %d, does not depend on the param \"%.*s\", which is to be "
                         "trained",
                         (int)loss, STR_ARG(name));
    }
    TRY(check_param(t, ir_node(g, leaf)));
    describe(t, leaf, &t->param[t->count++]);
    return RLX_OK;
}

static size_t count_params(const struct ir_graph *g)
{
    size_t count = 0;

    IR_EACH(n, g)
        count += n->op == RLX_OP_param;
    return count;
}

/* Before anything is added, as leaves cannot be taken back. */
static rlx_status check_rules(const struct train *t, rlx_value loss)
{
    rlx_value *wrt = mem_alloc(t->mem, t->count * sizeof *wrt);

    if (!wrt)
        return diag_no_memory(t->diag, t->count * sizeof *wrt);
    for (size_t i = 0; i < t->count; i++)
        wrt[i] = t->param[i].leaf;
    rlx_status s = grad_check(t->g->g, &loss, 1, wrt, t->count, t->diag);
    mem_free(t->mem, wrt, t->count * sizeof *wrt);
    return s;
}

rlx_status train_find_params(struct train *t, rlx_value loss)
{
    struct ir_graph *g = t->g->g;

    TRY(check_patterns(t, "train", t->desc->train, t->desc->train_count));
    TRY(check_patterns(t, "keep", t->desc->keep, t->desc->keep_count));
    TRY(check_patterns(t, "plain", t->desc->plain, t->desc->plain_count));
    t->room = count_params(g);
    t->param = mem_alloc(t->mem, t->room * sizeof *t->param);
    if (t->room && !t->param)
        return diag_no_memory(t->diag, t->room * sizeof *t->param);
    for (ir_value v = 0; v < (ir_value)g->node.len; v++) {
        bool wanted;
        TRY(is_wanted(t, ir_node(g, v), &wanted));
        if (wanted)
            TRY(take(t, loss, v));
    }
    if (t->count == 0)
        return diag_fail(t->diag, RLX_ERROR_GRAPH,
                         "the loss, node %d, depends on no param that is to be trained", (int)loss);
    return check_rules(t, loss);
}

void train_free_params(struct train *t)
{
    mem_free(t->mem, t->param, t->room * sizeof *t->param);
}
