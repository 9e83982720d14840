/* shape_build.h: for the tests of shape rules: one graph, nodes added one by one, types as text.
 *
 *     struct build b;
 *     require(t, build_open(t, &b));
 *     ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 15));
 *     union ir_attr a = defaults(RLX_OP_reshape);
 *     a.reshape.shape = RLX_LIST(60);
 *     gives(&b, reshape, &a, "f32[60]", x);
 *     a.reshape.shape = RLX_LIST(61);
 *     fails(&b, reshape, &a, SHAPE, "cannot turn 60 elements", x);
 *     build_close(&b);
 *
 * Every node that is accepted must be accepted again as it was stored, with the same type. */
#ifndef TESTS_IR_SHAPE_BUILD_H
#define TESTS_IR_SHAPE_BUILD_H

#include <stdio.h>

#include "ir/graph.h"
#include "ir/infer.h"
#include "test.h"

#define NONE RLX_NO_VALUE /* the list of inputs of an op without any */
#define SCALAR ((rlx_list){.count = 0})

static inline rlx_list list_of(int32_t count, const int64_t *at)
{
    rlx_list list = {.count = count};

    for (int32_t i = 0; i < count; i++)
        list.at[i] = at[i];
    return list;
}

struct build {
    struct test *t;
    struct ir_module *mod;
    struct ir_graph *g;
    int inputs;
};

static inline bool build_open(struct test *t, struct build *b)
{
    struct diag d;

    *b = (struct build){.t = t};
    diag_init(&d, "build");
    return ir_module_create(mem_default(), &b->mod, &d) == RLX_OK &&
           ir_graph_add(b->mod, STR("main"), &b->g, &d) == RLX_OK;
}

static inline void build_close(struct build *b)
{
    ir_module_destroy(b->mod);
}

static inline union ir_attr defaults(rlx_op op)
{
    union ir_attr a;

    attr_defaults(op, &a);
    return a;
}

static inline ir_dim symbol(struct build *b, const char *name)
{
    return dim_symbol(b->mod->dims, rlx_cstr(name));
}

static inline ir_value build_leaf(struct build *b, rlx_op op, rlx_dtype dtype, rlx_list shape)
{
    struct ir_new_node n = {.op = op, .attr = defaults(op)};
    char name[16];
    struct diag d;
    ir_value v = RLX_NO_VALUE;

    diag_init(&d, "build");
    int len = snprintf(name, sizeof name, "leaf%d", b->inputs++);
    n.attr.leaf.name = (struct ir_blob){name, (size_t)len};
    n.attr.leaf.dtype = dtype;
    n.attr.leaf.shape = shape;
    if (ir_add(b->g, &n, &v, &d) != RLX_OK)
        fail(b->t, "leaf refused: %s", d.first.message);
    return v;
}

static inline ir_value build_input(struct build *b, rlx_dtype dtype, rlx_list shape)
{
    return build_leaf(b, RLX_OP_input, dtype, shape);
}

static inline rlx_status build_node(struct build *b, rlx_op op, const union ir_attr *attr,
                                    const ir_value *in, ir_value *out, struct diag *d)
{
    struct ir_new_node n = {.op = op, .in = in};

    n.attr = attr ? *attr : defaults(op);
    while (in[n.in_count] != RLX_NO_VALUE)
        n.in_count++;
    diag_init(d, "build");
    return ir_add(b->g, &n, out, d);
}

static inline ir_value check_gives(struct build *b, const char *file, int line, rlx_op op,
                                   const union ir_attr *attr, const char *want, const ir_value *in)
{
    struct diag d;
    struct text s;
    struct ir_type again;
    ir_value v = RLX_NO_VALUE;
    const char *name = op_info(op)->name;

    if (build_node(b, op, attr, in, &v, &d) != RLX_OK) {
        test_fail(b->t, file, line, "%s refused: %s", name, d.first.message);
        return RLX_NO_VALUE;
    }
    const struct ir_node *n = ir_node(b->g, v);
    text_init(&s, mem_default());
    text_addf(&s, "%s[", rlx_dtype_name(n->type.dtype));
    for (int32_t i = 0; i < n->type.rank; i++) {
        if (i)
            text_addf(&s, ",");
        dim_print(b->mod->dims, n->type.dim[i], &s);
    }
    text_addf(&s, "]");
    test_expect_str(b->t, file, line, s.at, want, name);
    text_free(&s);

    union ir_attr stored = n->attr;
    rlx_status status = ir_infer_node(b->g, op, &stored, n->in, n->in_count, v, false, &again, &d);
    if (status != RLX_OK)
        test_fail(b->t, file, line, "%s does not take its own form: %s", name, d.first.message);
    else
        test_expect(b->t, file, line,
                    type_same(&again, &n->type) && attr_same(op, &stored, &n->attr),
                    "the stored node infers to itself");
    return v;
}

static inline void check_fails(struct build *b, const char *file, int line, rlx_op op,
                               const union ir_attr *attr, rlx_status want, const char *part,
                               const ir_value *in)
{
    struct diag d;
    ir_value v = RLX_NO_VALUE;
    size_t nodes = b->g->node.len, checks = b->mod->check.len;
    rlx_status got = build_node(b, op, attr, in, &v, &d);

    test_expect_status(b->t, file, line, got, want, op_info(op)->name);
    test_expect_error(b->t, file, line, want, part, &d.first, op_info(op)->name);
    test_expect_contains(b->t, file, line, d.first.message, op_info(op)->name, "the message");
    test_expect(b->t, file, line, b->g->node.len == nodes && b->mod->check.len == checks,
                "a refused node leaves nothing behind");
}

/* The last arguments are the inputs, NONE if there are none. attr NULL: the defaults. */
#define gives(b, op, attr, want, ...)                                 \
    check_gives((b), __FILE__, __LINE__, RLX_OP_##op, (attr), (want), \
                (const ir_value[]){__VA_ARGS__, RLX_NO_VALUE})
#define fails(b, op, attr, status, part, ...)                                             \
    check_fails((b), __FILE__, __LINE__, RLX_OP_##op, (attr), RLX_ERROR_##status, (part), \
                (const ir_value[]){__VA_ARGS__, RLX_NO_VALUE})

/* The module with one or two symbols given sizes: the status of binding it, the last node's type in
 * *out if it went well. */
static inline rlx_status bind_symbols(struct build *b, const char *s, int64_t s_size, const char *u,
                                      int64_t u_size, struct ir_type *out, rlx_error *err)
{
    int64_t size[64];
    size_t number;
    struct ir_module *bound;
    struct diag d;

    diag_init(&d, "bind");
    for (size_t i = 0; i < 64; i++)
        size[i] = -1;
    if (dim_find_symbol(b->mod->dims, rlx_cstr(s), &number) && number < 64)
        size[number] = s_size;
    if (u && dim_find_symbol(b->mod->dims, rlx_cstr(u), &number) && number < 64)
        size[number] = u_size;
    rlx_status status =
        ir_bind(b->mod, size, dim_symbol_count(b->mod->dims), mem_default(), &bound, &d);
    if (status == RLX_OK) {
        struct ir_graph *g = ir_entry(bound);
        if (out)
            *out = g->node.at[g->node.len - 1].type;
        ir_module_destroy(bound);
    }
    if (err)
        *err = d.first;
    return status;
}

#endif
