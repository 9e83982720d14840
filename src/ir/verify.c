/* verify.c: every rule a well-formed module keeps; all violations are reported, not just the first.
 *
 * Runs on whatever is in memory, a pass's output or a loaded file, so it trusts no index before it
 * has checked it: a rule about a node is asked only where all that it would look at is sound. */
#include "ir/graph.h"
#include "ir/infer.h"
#include "ir/text/text.h"

struct verifier {
    const struct ir_module *mod;
    struct diag *diag;
    rlx_status first;
};

static void violation(struct verifier *v, rlx_status s)
{
    if (v->first == RLX_OK)
        v->first = s;
}

/* ---- what every rule takes for granted ---- */

static bool inputs_are_earlier(const struct ir_node *n, int32_t id)
{
    bool ok = n->in_count >= 0 && (n->in_count == 0 || n->in);

    for (int32_t i = 0; ok && i < n->in_count; i++)
        ok = n->in[i] >= 0 && n->in[i] < id;
    return ok;
}

static bool type_is_sound(const struct ir_type *t)
{
    return (unsigned)t->dtype < RLX_DTYPE_count && t->rank >= 0 && t->rank <= RLX_MAX_RANK;
}

static bool is_node(const struct ir_graph *g, ir_value v)
{
    return v >= 0 && (size_t)v < g->node.len;
}

/* May the node that names this graph look at its inputs and outputs? */
static bool graph_is_sound(const struct ir_graph *g)
{
    for (size_t i = 0; i < g->output.len; i++)
        if (!is_node(g, g->output.at[i]))
            return false;
    IR_EACH(n, g) {
        if (!type_is_sound(&n->type))
            return false;
    }
    return true;
}

/* Its operands and the graphs it names, as far as there are any. */
static bool may_infer(const struct ir_graph *g, const struct ir_node *n, int32_t id)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    if (!inputs_are_earlier(n, id))
        return false;
    for (int32_t i = 0; i < n->in_count; i++)
        if (!type_is_sound(ir_type_of(g, n->in[i])))
            return false;
    for (size_t i = 0; i < count; i++) {
        if (a[i].kind != ATTR_GRAPH)
            continue;
        int32_t sub = *(const int32_t *)((const char *)&n->attr + a[i].offset);
        if (sub >= 0 && (size_t)sub < g->mod->graph.len && !graph_is_sound(g->mod->graph.at[sub]))
            return false;
    }
    return true;
}

static void check_inputs(struct verifier *v, const struct ir_node *n, int32_t id)
{
    const char *name = op_info(n->op)->name;

    if (n->in_count < 0 || (n->in_count && !n->in)) {
        violation(v, diag_fail(v->diag, RLX_ERROR_GRAPH, "%s: has %d inputs and no list of them",
                               name, n->in_count));
        return;
    }
    for (int32_t i = 0; i < n->in_count; i++)
        if (n->in[i] < 0 || n->in[i] >= id)
            violation(v, diag_fail(v->diag, RLX_ERROR_GRAPH,
                                   "%s: input %d is node %d, which does not come before node %d",
                                   name, i, n->in[i], id));
}

/* ---- nodes ---- */

static void type_differs(struct verifier *v, const struct ir_node *n,
                         const struct ir_type *inferred)
{
    struct text stored, type;

    text_init(&stored, v->mod->mem);
    text_init(&type, v->mod->mem);
    ir_print_type(v->mod, &n->type, &stored);
    ir_print_type(v->mod, inferred, &type);
    violation(v, diag_fail(v->diag, RLX_ERROR_INTERNAL,
                           "%s: the type stored is %s, but the inferred one is %s",
                           op_info(n->op)->name, stored.at ? stored.at : "?",
                           type.at ? type.at : "?"));
    text_free(&stored);
    text_free(&type);
}

static void check_type(struct verifier *v, struct ir_graph *g, const struct ir_node *n, int32_t id)
{
    struct ir_type type;
    union ir_attr attr = n->attr;
    rlx_status s = ir_infer_node(g, n->op, &attr, n->in, n->in_count, id, false, &type, v->diag);

    if (s != RLX_OK) {
        violation(v, s);
        return;
    }
    if (type_is_sound(&n->type) && !type_same(&type, &n->type))
        type_differs(v, n, &type);
    if (!attr_same(n->op, &attr, &n->attr))
        violation(v,
                  diag_fail(v->diag, RLX_ERROR_ATTRIBUTE,
                            "%s: attributes are not in their normal form", op_info(n->op)->name));
}

static void check_leaf(struct verifier *v, const struct ir_graph *g, const struct ir_node *n)
{
    ir_value first;
    rlx_str name = ir_leaf_name(n);

    if (op_info(n->op)->family != FAMILY_leaf)
        return;
    if (g->id != 0 && n->op != RLX_OP_input)
        violation(v, diag_fail(v->diag, RLX_ERROR_GRAPH,
                               "%s: a sub-graph holds inputs and constants only",
                               op_info(n->op)->name));
    if (name.len == 0 || !name.ptr)
        return; /* its rule has said so */
    if (!ir_find_leaf(g, name, &first))
        violation(v, diag_fail(v->diag, RLX_ERROR_INTERNAL,
                               "%s: the graph's leaves do not list the name \"%.*s\"",
                               op_info(n->op)->name, STR_ARG(name)));
    else if (first != ir_id(g, n))
        violation(v, diag_fail(v->diag, RLX_ERROR_GRAPH, "%s: the name \"%.*s\" is used twice",
                               op_info(n->op)->name, STR_ARG(name)));
}

/* ---- graphs ---- */

static ir_value state_written_by(const struct ir_graph *g, size_t i)
{
    const struct ir_node *n = &g->node.at[i];

    if (!op_is(n->op, OP_WRITES) || !inputs_are_earlier(n, (int32_t)i))
        return RLX_NO_VALUE;
    return ir_written_state(g, n);
}

static void check_writers(struct verifier *v, const struct ir_graph *g)
{
    for (size_t i = 0; i < g->node.len; i++) {
        ir_value s = state_written_by(g, i);
        for (size_t k = i + 1; s != RLX_NO_VALUE && k < g->node.len; k++) {
            const struct ir_node *n = &g->node.at[k];
            if (state_written_by(g, k) != s)
                continue;
            diag_at(v->diag, op_info(n->op)->name, (int32_t)k, n->label);
            violation(v, diag_fail(v->diag, RLX_ERROR_GRAPH,
                                   "nodes %zu and %zu both write the state \"%.*s\"", i, k,
                                   STR_ARG(ir_leaf_name(ir_node(g, s)))));
        }
    }
}

static void check_outputs(struct verifier *v, const struct ir_graph *g)
{
    diag_at(v->diag, NULL, -1, (rlx_str){NULL, 0});
    if (g->output.len == 0)
        violation(v, diag_fail(v->diag, RLX_ERROR_GRAPH, "graph \"%.*s\" has no output",
                               STR_ARG(g->name)));
    for (size_t i = 0; i < g->output.len; i++)
        if (!is_node(g, g->output.at[i]))
            violation(v, diag_fail(v->diag, RLX_ERROR_GRAPH,
                                   "output %zu of graph \"%.*s\" is not a node (%d)", i,
                                   STR_ARG(g->name), g->output.at[i]));
}

static void check_graph(struct verifier *v, struct ir_graph *g)
{
    for (size_t i = 0; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        diag_at(v->diag, op_info(n->op)->name, (int32_t)i, n->label);
        check_inputs(v, n, (int32_t)i);
        if (!type_is_sound(&n->type))
            violation(v, diag_fail(v->diag, RLX_ERROR_INTERNAL,
                                   "%s: the type stored has rank %d and element type number %d",
                                   op_info(n->op)->name, n->type.rank, (int)n->type.dtype));
        if (may_infer(g, n, (int32_t)i))
            check_type(v, g, n, (int32_t)i);
        check_leaf(v, g, n);
    }
    check_writers(v, g);
    check_outputs(v, g);
}

rlx_status ir_verify(const struct ir_module *m, struct diag *d)
{
    struct verifier v = {m, d, RLX_OK};

    if (m->graph.len == 0)
        return diag_fail(d, RLX_ERROR_GRAPH, "a module needs at least one graph");
    for (size_t i = 0; i < m->graph.len; i++)
        check_graph(&v, m->graph.at[i]);
    diag_at(d, NULL, -1, (rlx_str){NULL, 0});
    return v.first;
}
