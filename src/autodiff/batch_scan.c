/* batch_scan.c: one example after another, by a scan that keeps what each of its steps gives. For
 * any node that reads no state: what has no rule of its own, or not in this form. */
#include "autodiff/batch.h"
#include "autodiff/sub_graph.h"

/* The body and the scan's operands: the carry, which nothing reads; what is the same in each
 * example; slices. */
struct one_by_one {
    struct ir_graph *body;
    ir_value *given;  /* by operand of the node: the body's input for it */
    ir_value *in;     /* of the scan */
    int32_t in_count; /* so far */
};

static rlx_status add_inputs(struct batch *b, struct one_by_one *o, bool slices)
{
    for (int32_t i = 0; i < b->n->in_count; i++) {
        if (b->has[i] != slices)
            continue;
        const struct ir_type t = batch_type(b, i);
        TRY(sub_input(o->body, t.dtype, formula_shape(&t), &o->given[i], b->f.diag));
        o->in[o->in_count++] = b->in[i];
    }
    return RLX_OK;
}

static rlx_status build(struct batch *b, struct one_by_one *o, union ir_attr *attr)
{
    struct ir_module *m = b->f.g->mod;
    const char *name = arena_printf(&m->arena, "%s_each", op_info(b->n->op)->name);
    size_t room = (size_t)b->n->in_count + 1;
    struct ir_new_node n = {
        .op = b->n->op, .in_count = b->n->in_count, .attr = b->n->attr, .borrow_data = true};
    ir_value v, zero = formula_fill(&b->f, &b->n->type, 0);

    o->given = arena_array(&m->arena, ir_value, room);
    o->in = arena_array(&m->arena, ir_value, room);
    if (!name || !o->given || !o->in)
        return diag_no_memory(b->f.diag, room * sizeof *o->in);
    TRY(b->f.status);
    TRY(ir_graph_add(m, ir_free_graph_name(m, rlx_cstr(name)), &o->body, b->f.diag));
    TRY(sub_input(o->body, b->n->type.dtype, formula_shape(&b->n->type), &v, b->f.diag));
    o->in[o->in_count++] = zero;
    TRY(add_inputs(b, o, false));
    attr->scan.num_bcast = o->in_count - 1;
    TRY(add_inputs(b, o, true));
    attr->scan.num_xs = o->in_count - 1 - attr->scan.num_bcast;
    n.in = o->given;
    TRY(ir_add(o->body, &n, &v, b->f.diag));
    attr->scan.body = o->body->id;
    return ir_add_output(o->body, v, b->f.diag);
}

ir_value batch_one_by_one(struct batch *b)
{
    struct one_by_one o = {0};
    union ir_attr attr;

    attr_defaults(RLX_OP_scan, &attr);
    attr.scan.length = b->size;
    attr.scan.save_trajectory = true;
    b->f.status = build(b, &o, &attr);
    return formula_node(&b->f, RLX_OP_scan, o.in, o.in_count, &attr);
}
