/* shape_b_memory_test.c: a graph of many rules, symbols included, with no memory at each point. */
#include "shape_given.h"

struct step {
    rlx_op op;
    int32_t in[6]; /* numbers of the steps before */
    int32_t in_count;
};

/* Adds one step; inputs are named after their numbers. */
static rlx_status add_step(struct ir_graph *g, const struct step *s, int32_t number,
                           const union ir_attr *attr, rlx_list shape, ir_value *value,
                           struct diag *d)
{
    struct ir_new_node n = {.op = s->op, .in_count = s->in_count, .attr = *attr};
    ir_value in[6];
    char name = (char)('a' + number);

    for (int32_t i = 0; i < s->in_count; i++)
        in[i] = value[s->in[i]];
    n.in = in;
    if (s->op == RLX_OP_input) {
        n.attr.leaf.name = (struct ir_blob){&name, 1};
        n.attr.leaf.dtype = RLX_DTYPE_f32;
        n.attr.leaf.shape = shape;
    }
    return ir_add(g, &n, &value[number], d);
}

/* A symbol; FAILED while there is no memory, which the leaf that holds it then reports. */
static ir_dim sym(struct ir_module *m, const char *name)
{
    return dim_symbol(m->dims, rlx_cstr(name));
}

static rlx_status add_all(struct ir_module *m, struct diag *d)
{
    struct ir_graph *g, *sub;
    ir_value v[16];
    union ir_attr a;
    int32_t at = 0;

    TRY(ir_graph_add(m, STR("main"), &g, d));
    TRY(ir_graph_add(m, STR("sub"), &sub, d));
    const rlx_list shapes[] = {
        RLX_LIST(3, 4, 2), RLX_LIST(sym(m, "s")),
        RLX_LIST(6),       RLX_LIST(sym(m, "n"), sym(m, "k")),
        RLX_LIST(4, 2),    {0},
    };
    if (dim_no_memory(m->dims))
        return diag_no_memory(d, 0);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        attr_defaults(RLX_OP_input, &a);
        TRY(add_step(g, &(struct step){.op = RLX_OP_input}, at++, &a, shapes[i], v, d));
    }
    attr_defaults(RLX_OP_grouped_matmul, &a); /* k = 4 and n = s are left to binding */
    TRY(add_step(g, &(struct step){RLX_OP_grouped_matmul, {3, 0, 1}, 3}, at++, &a, shapes[0], v,
                 d));
    attr_defaults(RLX_OP_matmul, &a);
    TRY(add_step(g, &(struct step){RLX_OP_matmul, {3, 4}, 2}, at++, &a, shapes[0], v, d));
    attr_defaults(RLX_OP_fft, &a);
    TRY(add_step(g, &(struct step){RLX_OP_fft, {3}, 1}, at++, &a, shapes[0], v, d));
    attr_defaults(RLX_OP_fused_swiglu, &a);
    TRY(add_step(g, &(struct step){RLX_OP_fused_swiglu, {3}, 1}, at++, &a, shapes[0], v, d));
    attr_defaults(RLX_OP_gated_residual, &a);
    TRY(add_step(g, &(struct step){RLX_OP_gated_residual, {3, 3, 1}, 3}, at++, &a, shapes[0], v,
                 d));
    attr_defaults(RLX_OP_input, &a);
    ir_value in[1];
    TRY(add_step(sub, &(struct step){.op = RLX_OP_input}, 0, &a, shapes[3], in, d));
    TRY(ir_add_output(sub, in[0], d));
    attr_defaults(RLX_OP_if, &a);
    a.if_.then_graph = a.if_.else_graph = sub->id;
    return add_step(g, &(struct step){RLX_OP_if, {5, 3}, 2}, at++, &a, shapes[0], v, d);
}

static rlx_status build_many(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct ir_module *m;
    struct diag d;

    (void)t;
    (void)ctx;
    diag_init(&d, "build");
    TRY(ir_module_create(mem, &m, &d));
    rlx_status s = add_all(m, &d);
    ir_module_destroy(m);
    return s;
}

TEST(shape_memory, rules_report_no_memory)
{
    expect_survives_no_memory(t, build_many, NULL);
}
