/* central.h: gradients against central differences, both in double precision.
 *
 *     agrees(t, 1e-6, "(input %x: f64[3,4], input %w: f64[4,2]) { %y = matmul %x, %w return %y }");
 *
 * The graph's one output gets a random gradient; what reaches each float input is compared with
 * how the output moves when one element of it does. Then the CPU computes it too. Inputs are filled
 * by what their names begin with: "pos": positive; "near": within 0.1 of 1; "idx7": integers
 * below 7; "dom": matrices with a large diagonal; others between -1.5 and 1.5, not near 0. In front
 * of these, "skip": no gradient is asked for, nor for "idx". */
#ifndef TESTS_AUTODIFF_CENTRAL_H
#define TESTS_AUTODIFF_CENTRAL_H

#include <math.h>
#include <stdlib.h>

#include "autodiff/autodiff.h"
#include "ir/eval/eval_special.h"
#include "on_cpu.h"

struct central {
    struct special s;
    struct eval_tensor *value; /* by node, made anew for every pass */
    ir_value out, dy;
    int64_t size; /* that every symbol gets once there are gradients; 0: there are none */
    struct ir_module *before;
};

static inline double central_number(uint64_t *seed, rlx_str name)
{
    double u = (double)dice(seed) / 0x1p31; /* [0, 1) */

    if (str_starts(name, STR("skip")))
        name = (rlx_str){name.ptr + 4, name.len - 4};
    if (str_starts(name, STR("pos")))
        return 0.3 + 1.7 * u;
    if (str_starts(name, STR("near")))
        return 0.9 + 0.2 * u;
    if (str_starts(name, STR("idx")))
        return floor(u * strtod(name.ptr + 3, NULL));
    return u < 0.5 ? -0.1 - 2.8 * u : 0.1 + 2.8 * (u - 0.5);
}

static inline void central_fill(struct eval_tensor *t, rlx_str name, uint64_t *seed)
{
    for (int64_t k = 0; k < t->count; k++)
        if (t->type.dtype == RLX_DTYPE_c64) {
            t->at[k].f = central_number(seed, name);
            t->at[k].im = central_number(seed, name);
        } else {
            eval_set(t, k, central_number(seed, name));
        }
    if (!str_starts(name, STR("dom")))
        return;
    for (int64_t k = 0, n = t->type.dim[t->type.rank - 1]; k < t->count; k++)
        if (k / n % n == k % n)
            eval_set(t, k, eval_real(t, k) + 2 * (double)n);
}

/* Every node from `first` to `last` on the values before it. Nothing is rounded. */
static inline bool central_run(struct test *t, struct central *c, ir_value first, ir_value last)
{
    const struct ir_graph *g = ir_entry(c->s.run.mod);
    struct diag *d = &c->s.run.diag;

    for (ir_value v = first; v <= last; v++) {
        const struct ir_node *n = ir_node(g, v);
        const struct eval_tensor *in[32];
        if (op_info(n->op)->family == FAMILY_leaf)
            continue;
        if (eval_tensor_new(&c->s.run.arena, &n->type, &c->value[v], d))
            return fail(t, "%s", d->first.message);
        if (n->op == RLX_OP_const) {
            eval_load(&c->value[v], n->attr.const_.data.ptr);
            continue;
        }
        for (int32_t i = 0; i < n->in_count; i++)
            in[i] = &c->value[n->in[i]];
        if (eval_node(g, n, in, &c->value[v], NULL, &c->s.run.arena, d))
            return fail(t, "%s: %s", op_info(n->op)->name, d->first.message);
    }
    return true;
}

/* The sum of the output's elements times their gradients. */
static inline double central_loss(const struct central *c)
{
    const struct eval_tensor *y = &c->value[c->out], *dy = &c->value[c->dy];
    double sum = 0;

    for (int64_t k = 0; k < y->count; k++)
        sum += y->type.dtype == RLX_DTYPE_c64
                   ? y->at[k].f * dy->at[k].f + y->at[k].im * dy->at[k].im
                   : eval_real(y, k) * eval_real(dy, k);
    return sum;
}

static inline double central_slope(struct test *t, struct central *c, double *x)
{
    const double h = 1e-5, was = *x;
    double up, down;

    *x = was + h;
    central_run(t, c, 0, c->out);
    up = central_loss(c);
    *x = was - h;
    central_run(t, c, 0, c->out);
    down = central_loss(c);
    *x = was;
    return (up - down) / (2 * h);
}

static inline void central_compare(struct test *t, struct central *c, double tol, ir_value leaf,
                                   const struct eval_tensor *got, const char *source)
{
    struct eval_tensor *x = &c->value[leaf];
    int parts = x->type.dtype == RLX_DTYPE_c64 ? 2 : 1;

    expect(t, c->value[c->out].count > 0);
    for (int64_t k = 0; k < x->count * parts; k++) {
        double *at = k % parts ? &x->at[k / parts].im : &x->at[k / parts].f;
        double want = central_slope(t, c, at), g = 0;
        if (got)
            g = k % parts ? got->at[k / parts].im : got->at[k / parts].f;
        if (!(fabs(g - want) <= tol * (1 + fabs(want)))) {
            fail(t, "d %.*s[%d] is %.9g, central differences give %.9g\n  in: %s",
                 STR_ARG(ir_leaf_name(ir_node(ir_entry(c->s.run.mod), leaf))), (int)k, g, want,
                 source);
            return;
        }
    }
}

/* The gradient of the output, as one more input. */
static inline rlx_status central_seed(struct central *c, struct diag *d)
{
    struct ir_graph *g = ir_entry(c->s.run.mod);
    struct ir_new_node n = {.op = RLX_OP_input};

    c->out = g->output.at[0];
    attr_defaults(RLX_OP_input, &n.attr);
    n.attr.leaf.name = (struct ir_blob){"d_output", 8};
    n.attr.leaf.dtype = ir_type_of(g, c->out)->dtype;
    n.attr.leaf.shape = rlx_list_of(ir_type_of(g, c->out)->rank, ir_type_of(g, c->out)->dim);
    return ir_add(g, &n, &c->dy, d);
}

static inline size_t central_wrt(const struct ir_graph *g, ir_value *wrt, size_t room)
{
    size_t count = 0;

    for (size_t v = 0; v < g->node.len && count < room; v++)
        if (ir_node(g, (ir_value)v)->op == RLX_OP_input &&
            dtype_is(ir_node(g, (ir_value)v)->type.dtype, CLASS_F | CLASS_C) &&
            !str_starts(ir_leaf_name(ir_node(g, (ir_value)v)), STR("skip")) &&
            !str_starts(ir_leaf_name(ir_node(g, (ir_value)v)), STR("idx")))
            wrt[count++] = (ir_value)v;
    return count;
}

/* The same module with sizes for its symbols, and wrt and dx in it. */
static inline bool central_bind(struct central *c, ir_value *wrt, ir_value *dx, size_t count)
{
    struct ir_module *from = c->s.run.mod, *to;
    struct ir_graph *g = ir_entry(from);
    struct diag *d = &c->s.run.diag;
    int64_t size[64];
    bool found = true;

    for (size_t i = 0; i < count; i++)
        if (ir_add_output(g, dx[i] == RLX_NO_VALUE ? c->out : dx[i], d))
            return false;
    for (size_t i = 0; i < 64; i++)
        size[i] = c->size;
    if (ir_bind(from, size, dim_symbol_count(from->dims), mem_default(), &to, d))
        return false;
    for (size_t i = 0; i < count; i++) {
        found &= ir_find_leaf(ir_entry(to), ir_leaf_name(ir_node(g, wrt[i])), &wrt[i]);
        dx[i] = dx[i] == RLX_NO_VALUE ? RLX_NO_VALUE : ir_entry(to)->output.at[i + 1];
    }
    found &= ir_find_leaf(ir_entry(to), rlx_cstr("d_output"), &c->dy);
    c->out = ir_entry(to)->output.at[0];
    c->before = from; /* whose strings and constants it shares */
    c->s.run.mod = to;
    return found;
}

/* A value for every input, by its name. */
static inline bool central_inputs(struct central *c)
{
    struct ir_graph *g = ir_entry(c->s.run.mod);
    uint64_t seed = 7;

    c->value = arena_array(&c->s.run.arena, struct eval_tensor, g->node.len);
    for (size_t v = 0; c->value && v < g->node.len; v++)
        if (ir_node(g, (ir_value)v)->op == RLX_OP_input) {
            if (eval_tensor_new(&c->s.run.arena, &g->node.at[v].type, &c->value[v], &c->s.run.diag))
                return false;
            central_fill(&c->value[v], ir_leaf_name(&g->node.at[v]), &seed);
        }
    return c->value;
}

/* `like`: the graph whose differences count, with the same inputs; c itself, mostly. */
static inline void agrees_body(struct test *t, struct central *c, struct central *like, double tol,
                               const char *source)
{
    struct ir_graph *g = ir_entry(c->s.run.mod);
    struct diag *d = &c->s.run.diag;
    ir_value wrt[16], dx[16];
    size_t count = central_wrt(g, wrt, 16);

    if (central_seed(c, d) || grad_walk(g, 0, c->out, c->dy, wrt, count, dx, d) ||
        (c->size > 0 && !central_bind(c, wrt, dx, count)) || !central_inputs(c)) {
        fail(t, "%s\n  in: %s", d->first.message, source);
        return;
    }
    g = ir_entry(c->s.run.mod);
    if (!central_run(t, c, 0, (ir_value)g->node.len - 1))
        return;
    for (size_t i = 0; i < count; i++) {
        bool flows = dx[i] != RLX_NO_VALUE;
        if (flows && !type_same(ir_type_of(g, dx[i]), ir_type_of(g, wrt[i])))
            fail(t, "the gradient of operand %zu has another type\n  in: %s", i, source);
        struct eval_tensor got = flows ? c->value[dx[i]] : (struct eval_tensor){0};
        central_compare(t, like, tol, wrt[i], flows ? &got : NULL, source);
    }
    if (central_run(t, c, 0, (ir_value)g->node.len - 1)) /* where nothing has been moved */
        on_cpu(t, c->s.run.mod, c->value, dx, count, source);
}

/* The text of a graph from its opening bracket on, parsed. */
static inline bool central_open(struct test *t, struct central *c, const char *graph)
{
    struct text s;

    text_init(&s, mem_default());
    text_addf(&s, "rlx 1 graph %s", graph);
    bool opened = run_open(t, &c->s.run, s.at, NULL);
    text_free(&s);
    return opened;
}

/* With that size for all its symbols. */
static inline void agrees_at(struct test *t, double tol, int64_t size, const char *graph)
{
    struct central c = {.size = size};

    if (!central_open(t, &c, graph))
        return;
    agrees_body(t, &c, &c, tol, graph);
    run_close(&c.s.run);
    ir_module_destroy(c.before);
}

static inline void agrees(struct test *t, double tol, const char *graph)
{
    agrees_at(t, tol, 0, graph);
}

/* What reaches the inputs of `graph` is how the output of `like` moves, whose inputs are the same.
 */
static inline void agrees_with(struct test *t, double tol, const char *graph, const char *like)
{
    struct central c = {0}, smooth = {0};

    if (!central_open(t, &c, graph))
        return;
    if (central_open(t, &smooth, like)) {
        if (expect_ok(t, central_seed(&smooth, &smooth.s.run.diag)) && central_inputs(&smooth) &&
            central_run(t, &smooth, 0, smooth.out))
            agrees_body(t, &c, &smooth, tol, graph);
        run_close(&smooth.s.run);
    }
    run_close(&c.s.run);
}

/* Asking for the gradient is refused, with that in the message. */
static inline void refuses(struct test *t, rlx_status want, const char *part, const char *graph)
{
    struct central c = {0};
    ir_value wrt[16], dx[16];

    if (!central_open(t, &c, graph))
        return;
    struct ir_graph *g = ir_entry(c.s.run.mod);
    size_t count = central_wrt(g, wrt, 16);
    expect_ok(t, central_seed(&c, &c.s.run.diag));
    size_t before = g->node.len;
    expect_status(t, grad_walk(g, 0, c.out, c.dy, wrt, count, dx, &c.s.run.diag), want);
    expect_contains(t, c.s.run.diag.first.message, part);
    expect_eq(t, g->node.len, before);
    run_close(&c.s.run);
}

#endif
