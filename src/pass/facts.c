/* facts.c: see facts.h. */
#include "pass/facts.h"

#define MOST_GRAPHS 8192 /* what names a later one is taken for impure */

/* Which graphs were looked into, with nothing found: each is looked into once. */
struct seen {
    uint8_t bit[MOST_GRAPHS / 8];
};

static bool graph_is_pure(const struct ir_module *m, int32_t id, struct seen *seen);

static bool is_pure(const struct ir_module *m, const struct ir_node *n, struct seen *seen)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    if (op_is(n->op, OP_LEAF | OP_WRITES | OP_RANDOM) || n->op == RLX_OP_custom)
        return false;
    for (size_t i = 0; i < count; i++)
        if (a[i].kind == ATTR_GRAPH &&
            !graph_is_pure(m, *(const attr_GRAPH *)((const char *)&n->attr + a[i].offset), seen))
            return false;
    return true;
}

static bool graph_is_pure(const struct ir_module *m, int32_t id, struct seen *seen)
{
    if (id < 0)
        return true;
    if (id >= MOST_GRAPHS || (size_t)id >= m->graph.len)
        return false;
    if (seen->bit[id / 8] >> id % 8 & 1)
        return true;
    seen->bit[id / 8] |= (uint8_t)(1 << id % 8);
    IR_EACH(n, m->graph.at[id]) {
        if (!op_is(n->op, OP_LEAF) && !is_pure(m, n, seen))
            return false;
    }
    return true;
}

bool node_is_pure(const struct ir_module *m, const struct ir_node *n)
{
    struct seen seen;

    if (!node_has_graphs(n))
        return is_pure(m, n, NULL);
    seen = (struct seen){{0}};
    return is_pure(m, n, &seen);
}

bool node_attrs_are_static(const struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)&n->attr + a[i].offset;
        const rlx_list *l = at;
        if (a[i].kind == ATTR_DIM && !dim_is_static(*(const ir_dim *)at))
            return false;
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            if (!dim_is_static(l->at[k]))
                return false;
    }
    return true;
}

bool node_has_graphs(const struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    for (size_t i = 0; i < count; i++)
        if (a[i].kind == ATTR_GRAPH)
            return true;
    return false;
}

static void mark_graph(const struct ir_module *m, int32_t id, bool *used)
{
    if (id < 0 || (size_t)id >= m->graph.len || used[id])
        return;
    used[id] = true;
    IR_EACH(n, m->graph.at[id]) {
        size_t count;
        const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);
        for (size_t i = 0; i < count; i++)
            if (a[i].kind == ATTR_GRAPH)
                mark_graph(m, *(const attr_GRAPH *)((const char *)&n->attr + a[i].offset), used);
    }
}

void graphs_in_use(const struct ir_module *m, bool *used)
{
    mark_graph(m, 0, used);
}

bool value_is_written_state(const struct ir_graph *g, ir_value v)
{
    for (size_t i = 0; i < g->written.len; i++)
        if (g->written.at[i] == v)
            return true;
    return false;
}

rlx_status forward_begin(struct forward *f, struct ir_graph *g, struct diag *d)
{
    size_t bytes = (g->node.len + 1) * sizeof *f->to;

    *f = (struct forward){.g = g, .to = mem_alloc(g->mod->mem, bytes)};
    if (!f->to)
        return diag_no_memory(d, bytes);
    for (size_t i = 0; i < g->node.len; i++)
        f->to[i] = (ir_value)i;
    return RLX_OK;
}

void forward_operands(const struct forward *f, struct ir_node *n)
{
    for (int32_t k = 0; k < n->in_count; k++)
        n->in[k] = f->to[n->in[k]];
}

void forward_to(const struct forward *f, const struct ir_node *n, ir_value by)
{
    struct ir_node *to = ir_node(f->g, by);

    f->to[ir_id(f->g, n)] = f->to[by];
    if (to->label.len == 0 && !op_is(to->op, OP_LEAF))
        to->label = n->label;
}

void forward_end(struct forward *f)
{
    if (!f->to)
        return;
    for (size_t i = 0; i < f->g->output.len; i++)
        f->g->output.at[i] = f->to[f->g->output.at[i]];
    mem_free(f->g->mod->mem, f->to, (f->g->node.len + 1) * sizeof *f->to);
    f->to = NULL;
}
