/* rebuild.c: see rebuild.h. The new graph stands beside the old one until it is complete. */
#include "pass/rebuild.h"

#include "ir/formula.h"

rlx_status rebuild_begin(struct rebuild *r, struct ir_graph *g, struct diag *d)
{
    *r = (struct rebuild){.old = g, .checks = g->mod->check.len, .diag = d};
    r->made = (struct ir_graph){.mod = g->mod, .id = g->id, .name = g->name};
    map_init(&r->made.leaves, g->mod->mem);
    r->map = mem_alloc(g->mod->mem, (g->node.len + 1) * sizeof *r->map);
    if (!r->map)
        return diag_no_memory(d, g->node.len * sizeof *r->map);
    for (size_t i = 0; i < g->node.len; i++)
        r->map[i] = RLX_NO_VALUE;
    return RLX_OK;
}

static void free_graph(struct ir_graph *g)
{
    vec_free(g->mod->mem, &g->node);
    vec_free(g->mod->mem, &g->output);
    vec_free(g->mod->mem, &g->written);
    map_free(&g->leaves);
}

void rebuild_drop(struct rebuild *r)
{
    if (!r->old)
        return;
    free_graph(&r->made);
    r->old->mod->check.len = r->checks;
    mem_free(r->old->mod->mem, r->map, (r->old->node.len + 1) * sizeof *r->map);
    r->old = NULL;
}

rlx_status rebuild_add(struct rebuild *r, rlx_op op, const ir_value *in, int32_t count,
                       const union ir_attr *attr, ir_value *out)
{
    struct ir_new_node n = {.op = op, .in = in, .in_count = count, .borrow_data = true};

    if (attr)
        n.attr = *attr;
    else
        attr_defaults(op, &n.attr);
    return ir_add(&r->made, &n, out, r->diag);
}

rlx_status rebuild_keep(struct rebuild *r, const struct ir_node *n)
{
    struct ir_new_node copy = {.op = n->op,
                               .in_count = n->in_count,
                               .attr = n->attr,
                               .label = n->label,
                               .borrow_data = true};
    ir_value *in = arena_array(&r->old->mod->arena, ir_value, (size_t)n->in_count), v;

    if (!in)
        return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *in);
    for (int32_t i = 0; i < n->in_count; i++)
        in[i] = r->map[n->in[i]];
    copy.in = in;
    TRY(ir_add(&r->made, &copy, &v, r->diag));
    r->map[ir_id(r->old, n)] = v;
    return RLX_OK;
}

void rebuild_replace(struct rebuild *r, const struct ir_node *n, ir_value by)
{
    struct ir_node *to = ir_node(&r->made, by);

    r->map[ir_id(r->old, n)] = by;
    if (to->label.len == 0 && !op_is(to->op, OP_LEAF))
        to->label = n->label;
}

/* The new nodes noted their own checks; those of the nodes they replace go. */
static void drop_old_checks(const struct rebuild *r)
{
    struct ir_module *m = r->old->mod;
    size_t kept = 0;

    for (size_t i = 0; i < m->check.len; i++)
        if (i >= r->checks || m->check.at[i].graph != r->old->id)
            m->check.at[kept++] = m->check.at[i];
    m->check.len = kept;
}

rlx_status rebuild_finish(struct rebuild *r, rlx_status so_far)
{
    struct ir_graph *g = r->old;

    for (size_t i = 0; so_far == RLX_OK && i < g->output.len; i++)
        so_far = ir_add_output(&r->made, r->map[g->output.at[i]], r->diag);
    if (so_far != RLX_OK) {
        rebuild_drop(r);
        return so_far;
    }
    drop_old_checks(r);
    mem_free(g->mod->mem, r->map, (g->node.len + 1) * sizeof *r->map);
    free_graph(g);
    *g = r->made;
    r->old = NULL;
    return RLX_OK;
}

rlx_status rebuild_scalar(struct rebuild *r, rlx_dtype dtype, double value, ir_value *out)
{
    return ir_add_number(&r->made, dtype, &(rlx_list){.count = 0}, value, out, r->diag);
}

rlx_status rebuild_fill(struct rebuild *r, rlx_dtype dtype, int64_t count, double value,
                        ir_value *out)
{
    const rlx_list shape = rlx_list_of(1, &count);

    return ir_add_number(&r->made, dtype, &shape, value, out, r->diag);
}
