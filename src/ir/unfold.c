/* unfold.c: how large a module is with every sub-graph written out where it is used.
 *
 *     graph @main { two ifs of @a }    @a { two ifs of @b }    @b { 10 nodes }
 *
 * A few lines of text can unfold into more nodes than there is memory for, and whoever inlines,
 * splices or runs them meets every one. So a module that is to become a model may only unfold to
 * what is in proportion to its text. */
#include "ir/graph.h"

#define FEW_NODES 65536 /* however few are written */
#define MOST_TIMES 16   /* as many as are written */

struct unfolding {
    const struct ir_module *mod;
    uint64_t *nodes; /* by graph; 0: not counted yet */
};

static uint64_t count_graph(const struct unfolding *u, int32_t id);

static uint64_t count_node(const struct unfolding *u, const struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);
    uint64_t sum = 1;

    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)&n->attr + a[i].offset;
        if (a[i].kind == ATTR_GRAPH && *(const attr_GRAPH *)at >= 0 &&
            __builtin_add_overflow(sum, count_graph(u, *(const attr_GRAPH *)at), &sum))
            return UINT64_MAX;
    }
    return sum;
}

/* Of a verified module, whose graphs nest only so deep. */
static uint64_t count_graph(const struct unfolding *u, int32_t id)
{
    uint64_t sum = 1; /* so that an empty graph is counted once too */

    if (u->nodes[id])
        return u->nodes[id];
    IR_EACH(n, u->mod->graph.at[id])
        if (__builtin_add_overflow(sum, count_node(u, n), &sum))
            sum = UINT64_MAX;
    return u->nodes[id] = sum;
}

rlx_status ir_check_unfolded(const struct ir_module *m, struct diag *d)
{
    size_t graphs = m->graph.len, written = 0;
    struct unfolding u = {m, mem_alloc(m->mem, graphs * sizeof *u.nodes)};

    if (!u.nodes)
        return diag_no_memory(d, graphs * sizeof *u.nodes);
    for (size_t i = 0; i < graphs; i++)
        written += m->graph.at[i]->node.len;
    uint64_t nodes = count_graph(&u, 0);
    uint64_t most = written > FEW_NODES / MOST_TIMES ? (uint64_t)written * MOST_TIMES : FEW_NODES;
    mem_free(m->mem, u.nodes, graphs * sizeof *u.nodes);
    if (nodes <= most)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_LIMIT,
                     "with its sub-graphs written out wherever they are used the graph has more "
                     "than %llu nodes, the most for %zu that are written",
                     (unsigned long long)most, written);
}
