/* sub_graph.c: see sub_graph.h. The graph is copied, and the walk goes back from its outputs. */
#include "autodiff/sub_graph.h"

#include <string.h>

#include "ir/formula.h"

/* The values that a walk goes from and to. */
struct ends {
    ir_value *out, *dy, *wrt, *dx;
    size_t out_count, count; /* of out and dy; of wrt and dx */
};

static bool takes_part(const struct grad_sub *s, size_t input, ir_value v)
{
    return s->wanted[input] && dtype_is(ir_type_of(s->of, v)->dtype, CLASS_F | CLASS_C);
}

static rlx_status find_ends(const struct grad_sub *s, struct ends *e, struct diag *d)
{
    size_t inputs = ir_inputs(s->of, NULL, 0), outputs = s->of->output.len;
    ir_value *room = arena_array(&s->of->mod->arena, ir_value, 2 * (inputs + outputs) + 1);
    ir_value *input = arena_array(&s->of->mod->arena, ir_value, inputs + 1);

    if (!room || !input)
        return diag_no_memory(d, 2 * (inputs + outputs) * sizeof *room);
    *e = (struct ends){room, room + outputs, room + 2 * outputs, room + 2 * outputs + inputs, 0, 0};
    ir_inputs(s->of, input, inputs);
    for (size_t i = 0; i < outputs; i++)
        if (s->given[i])
            e->out[e->out_count++] = s->of->output.at[i];
    for (size_t i = 0; i < inputs; i++)
        if (takes_part(s, i, input[i]))
            e->wrt[e->count++] = input[i];
    return RLX_OK;
}

rlx_status grad_sub_check(const struct grad_sub *s, struct diag *d)
{
    struct ends e;

    TRY(find_ends(s, &e, d));
    return e.out_count ? grad_check(s->of, e.out, e.out_count, e.wrt, e.count, d) : RLX_OK;
}

/* ---- building it ---- */

rlx_status sub_input(struct ir_graph *g, rlx_dtype dtype, rlx_list shape, ir_value *out,
                     struct diag *d)
{
    struct ir_new_node n = {.op = RLX_OP_input};
    size_t i = g->node.len;
    const char *name;
    ir_value taken;

    do {
        name = arena_printf(&g->mod->arena, "x%zu", i++);
        if (!name)
            return diag_no_memory(d, 0);
    } while (ir_find_leaf(g, rlx_cstr(name), &taken));
    attr_defaults(RLX_OP_input, &n.attr);
    n.attr.leaf.name = (struct ir_blob){name, strlen(name)};
    n.attr.leaf.dtype = dtype;
    n.attr.leaf.shape = shape;
    return ir_add(g, &n, out, d);
}

/* Copies the nodes of s->of to the same places in an empty graph. */
static rlx_status copy_nodes(const struct ir_graph *from, struct ir_graph *to, struct diag *d)
{
    for (size_t i = 0; i < from->node.len; i++) {
        const struct ir_node *n = &from->node.at[i];
        struct ir_new_node copy = {.op = n->op,
                                   .in = n->in,
                                   .in_count = n->in_count,
                                   .attr = n->attr,
                                   .label = n->label,
                                   .borrow_data = true};
        ir_value v;
        TRY(ir_add(to, &copy, &v, d));
        if ((size_t)v != i)
            return diag_fail(d, RLX_ERROR_INTERNAL, "a sub-graph grew while it was copied");
    }
    return RLX_OK;
}

static rlx_status add_outputs(const struct grad_sub *s, const struct ends *e, struct ir_graph *g,
                              struct diag *d)
{
    struct formula f = {.g = g, .diag = d};
    size_t input = 0, walked = 0, nodes = s->of->node.len;

    for (size_t i = 0; i < nodes; i++) {
        if (g->node.at[i].op != RLX_OP_input)
            continue;
        bool part = takes_part(s, input++, (ir_value)i);
        if (!part && !s->all)
            continue;
        ir_value dx = part ? e->dx[walked++] : RLX_NO_VALUE;
        if (dx == RLX_NO_VALUE) {
            const struct ir_type t = *ir_type_of(g, (ir_value)i);
            dx = formula_fill(&f, &t, 0);
        }
        TRY(f.status);
        TRY(ir_add_output(g, dx, d));
    }
    return RLX_OK;
}

rlx_status grad_sub_build(const struct grad_sub *s, int32_t *id, struct diag *d)
{
    struct ir_module *m = s->of->mod;
    struct ir_graph *g;
    struct ends e;
    const char *name = arena_printf(&m->arena, "%.*s_vjp", STR_ARG(s->of->name));

    if (!name)
        return diag_no_memory(d, 0);
    TRY(find_ends(s, &e, d));
    TRY(ir_graph_add(m, ir_free_graph_name(m, rlx_cstr(name)), &g, d));
    TRY(copy_nodes(s->of, g, d));
    for (size_t i = 0; i < e.out_count; i++) {
        const struct ir_type t = *ir_type_of(g, e.out[i]);
        TRY(sub_input(g, t.dtype, formula_shape(&t), &e.dy[i], d));
    }
    for (size_t i = 0; i < e.count; i++)
        e.dx[i] = RLX_NO_VALUE;
    if (e.out_count)
        TRY(grad_walk_all(g, 0, e.out, e.dy, e.out_count, e.wrt, e.count, e.dx, d));
    *id = g->id;
    return add_outputs(s, &e, g, d);
}
