/* along.h: derivatives along a direction, and those of gradients, against differences.
 *
 *     moves(t, 1e-5, 1e-5, "(input %x: f64[3]) { %y = tanh %x return %y }", true);
 *
 * Inputs and their names are those of central.h. Every input that may have a gradient moves along a
 * direction of its own; how the output changes, and how what reaches the inputs does, is compared
 * with what they are a little way ahead and behind. Then the CPU computes both. */
#ifndef TESTS_AUTODIFF_ALONG_H
#define TESTS_AUTODIFF_ALONG_H

#include "central.h"
#include "ir/formula.h"

enum { ALONG_MOST = 14 };

struct along {
    struct central c;
    ir_value wrt[ALONG_MOST], tangent[ALONG_MOST], dx[ALONG_MOST];
    ir_value moved[ALONG_MOST + 1]; /* the output, then each dx that there is */
    ir_value watched[ALONG_MOST + 1];
    size_t count, watched_count;
};

/* A constant of v's type: small numbers, different in every element. */
static inline rlx_status along_direction(struct ir_graph *g, ir_value v, ir_value *out,
                                         struct diag *d)
{
    const struct ir_type t = *ir_type_of(g, v);
    size_t parts = t.dtype == RLX_DTYPE_c64 ? 2 : 1, size = rlx_dtype_size(t.dtype) / parts;
    struct ir_new_node n = {.op = RLX_OP_const};
    int64_t count;

    if (!type_count(&t, &count))
        return RLX_ERROR_LIMIT;
    uint8_t *data = arena_alloc_array(&g->mod->arena, (size_t)count * parts, size, 16);
    for (size_t k = 0; data && k < (size_t)count * parts; k++) {
        uint8_t one[8];
        rlx_dtype part = parts == 2 ? RLX_DTYPE_f32 : t.dtype;
        ir_number_bytes(part, 0.25 + 0.5 * sin(1.7 * (double)k + (double)v), one);
        memcpy(data + k * size, one, size);
    }
    attr_defaults(RLX_OP_const, &n.attr);
    n.attr.const_.dtype = t.dtype;
    n.attr.const_.shape = formula_shape(&t);
    n.attr.const_.data = (struct ir_blob){data, (size_t)count * parts * size};
    return ir_add(g, &n, out, d);
}

/* second: gradients are watched, too. */
static inline rlx_status along_build(struct along *a, bool second)
{
    struct ir_graph *g = ir_entry(a->c.s.run.mod);
    struct diag *d = &a->c.s.run.diag;

    a->count = central_wrt(g, a->wrt, ALONG_MOST);
    TRY(central_seed(&a->c, d));
    for (size_t i = 0; i < a->count; i++)
        TRY(along_direction(g, a->wrt[i], &a->tangent[i], d));
    a->watched[a->watched_count++] = a->c.out;
    if (second)
        TRY(grad_walk(g, 0, a->c.out, a->c.dy, a->wrt, a->count, a->dx, d));
    for (size_t i = 0; second && i < a->count; i++)
        if (a->dx[i] != RLX_NO_VALUE)
            a->watched[a->watched_count++] = a->dx[i];
    return grad_push(g, a->watched, a->watched_count, a->wrt, a->tangent, a->count, a->moved, d);
}

/* All inputs `by` directions further; then everything up to `last`. */
static inline bool along_step(struct test *t, struct along *a, double by, ir_value last)
{
    struct central *c = &a->c;

    for (size_t i = 0; i < a->count; i++) {
        struct eval_tensor *x = &c->value[a->wrt[i]], *v = &c->value[a->tangent[i]];
        for (int64_t k = 0; k < x->count; k++) {
            x->at[k].f += by * v->at[k].f;
            x->at[k].im += by * v->at[k].im;
        }
    }
    return central_run(t, c, 0, last);
}

static inline void along_compare(struct test *t, struct along *a, size_t i, double tol, double h,
                                 const struct eval_tensor *ahead, const struct eval_tensor *behind,
                                 const char *source)
{
    ir_value moved = a->moved[i];
    const struct eval_tensor *got = moved == RLX_NO_VALUE ? NULL : &a->c.value[moved];

    for (int64_t k = 0; k < ahead->count; k++) {
        double re = (ahead->at[k].f - behind->at[k].f) / (2 * h), g = got ? got->at[k].f : 0;
        double im = (ahead->at[k].im - behind->at[k].im) / (2 * h), gi = got ? got->at[k].im : 0;
        if (fabs(g - re) <= tol * (1 + fabs(re)) && fabs(gi - im) <= tol * (1 + fabs(im)))
            continue;
        fail(t, "%s %zu, element %d, moves by %.9g%+.9gi, not %.9g%+.9gi\n  in: %s",
             i ? "gradient" : "value", i, (int)k, g, gi, re, im, source);
        return;
    }
}

static inline void along_body(struct test *t, struct along *a, double tol, double h,
                              const char *source)
{
    struct ir_graph *g = ir_entry(a->c.s.run.mod);
    ir_value last = (ir_value)g->node.len - 1;
    struct eval_tensor ahead[ALONG_MOST + 1], behind[ALONG_MOST + 1];

    /* central_run makes the tensors anew: those of other runs stay as they are. */
    if (!central_inputs(&a->c) || !central_run(t, &a->c, 0, last) || !along_step(t, a, h, last))
        return;
    for (size_t i = 0; i < a->watched_count; i++)
        ahead[i] = a->c.value[a->watched[i]];
    if (!along_step(t, a, -2 * h, last))
        return;
    for (size_t i = 0; i < a->watched_count; i++)
        behind[i] = a->c.value[a->watched[i]];
    if (!along_step(t, a, h, last))
        return;
    for (size_t i = 0; i < a->watched_count; i++) {
        if (a->moved[i] != RLX_NO_VALUE &&
            !type_same(ir_type_of(g, a->moved[i]), ir_type_of(g, a->watched[i])))
            fail(t, "value %zu moves in another type\n  in: %s", i, source);
        along_compare(t, a, i, tol, h, &ahead[i], &behind[i], source);
    }
    on_cpu(t, a->c.s.run.mod, a->c.value, a->moved, a->watched_count, source);
}

/* Differences over h. Whether there is such a derivative is what it answers. */
static inline bool moves(struct test *t, double tol, double h, const char *graph, bool second)
{
    struct along a = {0};
    bool found = true;

    if (!central_open(t, &a.c, graph))
        return false;
    rlx_status s = along_build(&a, second);
    if (s == RLX_ERROR_NO_RULE)
        found = false;
    else if (s != RLX_OK)
        fail(t, "%s\n  in: %s", a.c.s.run.diag.first.message, graph);
    else
        along_body(t, &a, tol, h, graph);
    run_close(&a.c.s.run);
    return found;
}

#endif
