/* fixed.h: gradients with known numbers.
 *
 *     gives(t, "(input %x: f32[2]) { %y = abs %x return %y }",
 *           (double[]){-1, 2}, (double[]){5, 7}, (double[]){-5, 7});
 *
 * One input, one output: the input's numbers, those of the output's gradient, and what reaches the
 * input. */
#ifndef TESTS_AUTODIFF_FIXED_H
#define TESTS_AUTODIFF_FIXED_H

#include "central.h"

static inline void gives_body(struct test *t, struct central *c, const double *x, const double *dy,
                              const double *want, const char *source)
{
    struct ir_graph *g = ir_entry(c->s.run.mod);
    struct diag *d = &c->s.run.diag;
    ir_value wrt, dx;

    if (!expect(t, central_wrt(g, &wrt, 1) == 1))
        return;
    if (central_seed(c, d) || grad_walk(g, 0, c->out, c->dy, &wrt, 1, &dx, d)) {
        fail(t, "%s\n  in: %s", d->first.message, source);
        return;
    }
    c->value = arena_array(&c->s.run.arena, struct eval_tensor, g->node.len);
    eval_tensor_new(&c->s.run.arena, ir_type_of(g, wrt), &c->value[wrt], d);
    eval_tensor_new(&c->s.run.arena, ir_type_of(g, c->dy), &c->value[c->dy], d);
    for (int64_t k = 0; k < c->value[wrt].count; k++)
        eval_set(&c->value[wrt], k, x[k]);
    for (int64_t k = 0; k < c->value[c->dy].count; k++)
        eval_set(&c->value[c->dy], k, dy[k]);
    if (!expect(t, dx != RLX_NO_VALUE) || !central_run(t, c, 0, (ir_value)g->node.len - 1))
        return;
    for (int64_t k = 0; k < c->value[dx].count; k++)
        if (!(fabs(eval_real(&c->value[dx], k) - want[k]) <= 1e-6 * (1 + fabs(want[k]))))
            fail(t, "element %d is %.9g, not %.9g\n  in: %s", (int)k, eval_real(&c->value[dx], k),
                 want[k], source);
    on_cpu(t, c->s.run.mod, c->value, &dx, 1, source);
}

static inline void gives(struct test *t, const char *graph, const double *x, const double *dy,
                         const double *want)
{
    struct central c = {0};

    if (!central_open(t, &c, graph))
        return;
    gives_body(t, &c, x, dy, want, graph);
    run_close(&c.s.run);
}

#endif
