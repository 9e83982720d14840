/* inline_module.c: a whole model in the middle of a graph: see inline.h. What refers to its module,
 * dims and sub-graphs, is made over for the one it comes into. */
#include "pass/inline.h"

struct importer {
    struct ir_module *to;
    const struct ir_module *from;
    int32_t *graph; /* by graph of from: which it is now; -1: not copied yet */
    struct diag *diag;
};

/* ---- attributes and types ---- */

static rlx_status import_dim(const struct importer *im, ir_dim *d)
{
    ir_dim was = *d;

    *d = dim_import(im->to->dims, im->from->dims, was);
    if (*d != RLX_DIM_FAILED || was == RLX_DIM_FAILED)
        return RLX_OK;
    return dim_no_memory(im->to->dims)
               ? diag_no_memory(im->diag, 0)
               : diag_fail(im->diag, RLX_ERROR_LIMIT, "a size is too large an expression");
}

static rlx_status copy_graph(struct importer *im, int32_t id);

static rlx_status import_attrs(struct importer *im, rlx_op op, union ir_attr *attr)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        void *at = (char *)attr + a[i].offset;
        rlx_list *l = at;
        attr_GRAPH *sub = at;
        if (a[i].kind == ATTR_DIM)
            TRY(import_dim(im, at));
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            TRY(import_dim(im, &l->at[k]));
        if (a[i].kind == ATTR_GRAPH && *sub >= 0) {
            TRY(copy_graph(im, *sub));
            *sub = im->graph[*sub];
        }
    }
    return RLX_OK;
}

/* ---- nodes ---- */

static rlx_status copy_node(struct importer *im, struct ir_graph *to, const struct ir_node *n,
                            const ir_value *map, ir_value *operand, ir_value *out)
{
    struct ir_new_node copy = {
        .op = n->op, .in = operand, .in_count = n->in_count, .attr = n->attr, .label = n->label};

    TRY(import_attrs(im, n->op, &copy.attr));
    for (int32_t k = 0; k < n->in_count; k++)
        operand[k] = map[n->in[k]];
    return ir_add(to, &copy, out, im->diag);
}

/* map: by node of `from`; those that have a value already are bound and stay. */
static rlx_status copy_nodes(struct importer *im, const struct ir_graph *from, struct ir_graph *to,
                             ir_value *map)
{
    size_t widest = 0;

    IR_EACH(n, from)
        widest = (size_t)n->in_count > widest ? (size_t)n->in_count : widest;
    ir_value *operand = mem_alloc(im->to->mem, (widest + 1) * sizeof *operand);
    rlx_status s = operand ? RLX_OK : diag_no_memory(im->diag, widest * sizeof *operand);
    for (size_t i = 0; s == RLX_OK && i < from->node.len; i++)
        if (map[i] == RLX_NO_VALUE)
            s = copy_node(im, to, &from->node.at[i], map, operand, &map[i]);
    mem_free(im->to->mem, operand, (widest + 1) * sizeof *operand);
    return s;
}

static ir_value *new_map(const struct importer *im, const struct ir_graph *g)
{
    ir_value *map = mem_alloc(im->to->mem, (g->node.len + 1) * sizeof *map);

    for (size_t i = 0; map && i < g->node.len; i++)
        map[i] = RLX_NO_VALUE;
    return map;
}

static void free_map(const struct importer *im, const struct ir_graph *g, ir_value *map)
{
    mem_free(im->to->mem, map, (g->node.len + 1) * sizeof *map);
}

/* ---- sub-graphs ---- */

static rlx_status copy_graph(struct importer *im, int32_t id)
{
    const struct ir_graph *from = im->from->graph.at[id];
    struct ir_graph *to;
    ir_value *map;

    if (im->graph[id] >= 0)
        return RLX_OK;
    TRY(ir_graph_add(im->to, ir_free_graph_name(im->to, from->name), &to, im->diag));
    if (!(map = new_map(im, from)))
        return diag_no_memory(im->diag, from->node.len * sizeof *map);
    rlx_status s = copy_nodes(im, from, to, map);
    for (size_t i = 0; s == RLX_OK && i < from->output.len; i++)
        s = ir_add_output(to, map[from->output.at[i]], im->diag);
    free_map(im, from, map);
    im->graph[id] = to->id;
    return s;
}

/* ---- the entry ---- */

static rlx_status check_type(const struct importer *im, const struct ir_graph *g,
                             const struct ir_node *leaf, ir_value v)
{
    struct ir_type want = leaf->type;
    rlx_str name = ir_leaf_name(leaf);

    if (v < 0 || (size_t)v >= g->node.len)
        return diag_fail(im->diag, RLX_ERROR_GRAPH,
                         "\"%.*s\" is bound to no node of the graph (%d)", STR_ARG(name), v);
    for (int32_t i = 0; i < want.rank; i++)
        TRY(import_dim(im, &want.dim[i]));
    if (want.dtype != ir_type_of(g, v)->dtype)
        return diag_fail(im->diag, RLX_ERROR_DTYPE, "\"%.*s\" is %s, bound to a value of %s",
                         STR_ARG(name), rlx_dtype_name(want.dtype),
                         rlx_dtype_name(ir_type_of(g, v)->dtype));
    if (!type_same(&want, ir_type_of(g, v)))
        return diag_fail(im->diag, RLX_ERROR_SHAPE, "\"%.*s\" is bound to a value of another shape",
                         STR_ARG(name));
    if (leaf->op == RLX_OP_state && ir_node(g, v)->op != RLX_OP_state)
        return diag_fail(im->diag, RLX_ERROR_GRAPH, "the state \"%.*s\" is bound to no state",
                         STR_ARG(name));
    return RLX_OK;
}

static rlx_status find_bound(const struct ir_graph *entry, rlx_str name, ir_value *leaf,
                             struct diag *d)
{
    if (!ir_find_leaf(entry, name, leaf))
        return diag_fail(d, RLX_ERROR_NAME, "the model has no input, param or state \"%.*s\"",
                         STR_ARG(name));
    return RLX_OK;
}

static rlx_status bind_leaves(const struct importer *im, const struct ir_graph *g,
                              const struct inline_binding *bind, size_t count, ir_value *map)
{
    const struct ir_graph *entry = ir_entry(im->from);
    ir_value leaf;

    for (size_t i = 0; i < count; i++) {
        TRY(find_bound(entry, bind[i].name, &leaf, im->diag));
        TRY(check_type(im, g, ir_node(entry, leaf), bind[i].value));
        map[leaf] = bind[i].value;
    }
    return RLX_OK;
}

static bool is_bound(rlx_str name, const struct inline_binding *bind, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(bind[i].name, name))
            return true;
    return false;
}

rlx_status inline_check_names(const struct ir_module *from, const struct inline_binding *bind,
                              size_t count, struct diag *d)
{
    ir_value leaf;

    for (size_t i = 0; i < count; i++)
        TRY(find_bound(ir_entry(from), bind[i].name, &leaf, d));
    IR_EACH(n, ir_entry(from)) {
        if (n->op == RLX_OP_input && !is_bound(ir_leaf_name(n), bind, count))
            return diag_fail(d, RLX_ERROR_MISSING_INPUT,
                             "the model's input \"%.*s\" is bound to nothing",
                             STR_ARG(ir_leaf_name(n)));
    }
    return RLX_OK;
}

static rlx_status copy_entry(struct importer *im, struct ir_graph *g,
                             const struct inline_binding *bind, size_t count, ir_value *out)
{
    const struct ir_graph *entry = ir_entry(im->from);
    ir_value *map = new_map(im, entry);

    if (!map)
        return diag_no_memory(im->diag, entry->node.len * sizeof *map);
    rlx_status s = bind_leaves(im, g, bind, count, map);
    if (s == RLX_OK)
        s = copy_nodes(im, entry, g, map);
    for (size_t i = 0; s == RLX_OK && i < entry->output.len; i++)
        out[i] = map[entry->output.at[i]];
    free_map(im, entry, map);
    return s;
}

rlx_status inline_module(struct ir_graph *g, const struct ir_module *from,
                         const struct inline_binding *bind, size_t count, ir_value *out,
                         struct diag *d)
{
    struct ir_module *m = g->mod;
    const struct ir_extent before = ir_extent_of(g);
    size_t room = from->graph.len + 1;
    struct importer im = {.to = m, .from = from, .diag = d};

    im.graph = mem_alloc(m->mem, room * sizeof *im.graph);
    if (!im.graph)
        return diag_no_memory(d, room * sizeof *im.graph);
    for (size_t i = 0; i < room; i++)
        im.graph[i] = -1;
    rlx_status s = copy_entry(&im, g, bind, count, out);
    if (s != RLX_OK)
        ir_shrink(g, &before);
    mem_free(m->mem, im.graph, room * sizeof *im.graph);
    return s;
}
