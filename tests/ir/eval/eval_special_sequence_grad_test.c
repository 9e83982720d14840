/* eval_special_sequence_grad_test.c: the gradients of the selective scan and of the gated delta
 * rule agree with central differences of what they are gradients of. */
#include "eval_special.h"

#define MOST_INPUTS 6

/* One node of a graph of inputs, on cells that a test may move; nothing is rounded. */
struct node_run {
    struct special s;
    const struct ir_node *n;
    const struct eval_tensor *in[MOST_INPUTS];
    struct eval_tensor out;
};

static bool node_open(struct test *t, struct node_run *r, const char *source)
{
    if (!special_open(t, &r->s, source))
        return false;
    const struct ir_graph *g = ir_entry(r->s.run.mod);
    r->n = ir_node(g, g->output.at[0]);
    for (int32_t i = 0; i < r->n->in_count; i++)
        r->in[i] = &r->s.value[r->n->in[i]];
    return expect_ok(t, eval_tensor_new(&r->s.run.arena, &r->n->type, &r->out, &r->s.run.diag));
}

static bool node_run(struct test *t, struct node_run *r)
{
    for (int64_t k = 0; k < r->out.count; k++)
        r->out.at[k].f = 0;
    return expect_ok(t, eval_node(ir_entry(r->s.run.mod), r->n, r->in, &r->out, NULL,
                                  &r->s.run.arena, &r->s.run.diag));
}

/* Sum of dy times the output. */
static double loss(struct test *t, struct node_run *forth, const struct eval_tensor *dy)
{
    double sum = 0;

    if (!node_run(t, forth))
        return 0;
    for (int64_t k = 0; k < forth->out.count; k++)
        sum += dy->at[k].f * forth->out.at[k].f;
    return sum;
}

/* The operands of both are given in the same order; dy is the last of the second. */
static void check(struct test *t, const char *forward, const char *backward, const double *lo,
                  const double *hi)
{
    const double eps = 1e-5;
    struct node_run forth, back;

    if (!node_open(t, &forth, forward))
        return;
    if (!node_open(t, &back, backward)) {
        special_close(&forth.s);
        return;
    }
    int32_t count = forth.n->in_count;
    struct eval_tensor *dy = (struct eval_tensor *)(uintptr_t)back.in[count];
    fill_reals(dy, 99, -1, 1);
    for (int32_t i = 0; i < count; i++) {
        fill_reals((struct eval_tensor *)(uintptr_t)forth.in[i], (uint64_t)i + 1, lo[i], hi[i]);
        eval_copy((struct eval_tensor *)(uintptr_t)back.in[i], forth.in[i]);
    }
    bool ran = node_run(t, &back);
    int64_t at = 0;
    for (int32_t i = 0; ran && i < count; i++) {
        test_note(t, "operand %d", i);
        for (int64_t k = 0; k < forth.in[i]->count; k++, at++) {
            double *x = &forth.in[i]->at[k].f, was = *x;
            *x = was + eps;
            double up = loss(t, &forth, dy);
            *x = was - eps;
            double down = loss(t, &forth, dy);
            *x = was;
            double slope = (up - down) / (2 * eps);
            expect_near(t, back.out.at[at].f, slope, 1e-6 * fmax(1, fabs(slope)));
        }
    }
    expect_eq(t, at, back.out.count);
    test_note(t, "%s", "");
    special_close(&back.s);
    special_close(&forth.s);
}

#define SCAN_INPUTS                                                                 \
    "rlx 1 graph (input %x: f32[2,5,3], input %d: f32[2,5,3], input %a: f32[3,4], " \
    "input %b: f32[2,5,4], input %c: f32[2,5,4]"

TEST(sequence, selective_scan_backward)
{
    static const double lo[] = {-1, 0, -2, -1, -1}, hi[] = {1, 1, 0.5, 1, 1};

    check(t, SCAN_INPUTS ") { %y = selective_scan %x, %d, %a, %b, %c state_size=4 return %y }",
          SCAN_INPUTS
          ", input %g: f32[2,5,3]) { "
          "%y = selective_scan_backward %x, %d, %a, %b, %c, %g state_size=4 return %y }",
          lo, hi);
    evals(t, 0, /* no steps: zeros for a, and nothing else */
          "%x = const f32[2,0,3] {} %a = const f32[3,1] {1 2 3} %b = const f32[2,0,1] {} "
          "%y = selective_scan_backward %x, %x, %a, %b, %b, %x state_size=1 return %y",
          "0 0 0");
    evals(t, 0, /* no channels: zeros for b and c */
          "%x = const f32[1,2,0] {} %a = const f32[0,1] {} %b = const f32[1,2,1] {1 2} "
          "%y = selective_scan_backward %x, %x, %a, %b, %b, %x state_size=1 return %y",
          "0 0 0 0");
}

#define DELTA_INPUTS                                                                        \
    "rlx 1 graph (input %q: f32[2,4,2,3], input %k: f32[2,4,2,3], input %v: f32[2,4,2,3], " \
    "input %g: f32[2,4,2], input %b: f32[2,4,2]"

TEST(sequence, gated_delta_net_backward)
{
    static const double lo[] = {-1, -1, -1, -1, 0}, hi[] = {1, 1, 1, 0.2, 1};

    check(t, DELTA_INPUTS ") { %y = gated_delta_net %q, %k, %v, %g, %b state_size=3 return %y }",
          DELTA_INPUTS ", input %d: f32[2,4,2,3]) { %y = gated_delta_net_backward %q, %k, %v, %g, "
                       "%b, %d state_size=3 return %y }",
          lo, hi);
    evals(t, 0,
          "%q = const f32[2,0,1,2] {} %g = const f32[2,0,1] {} "
          "%y = gated_delta_net_backward %q, %q, %q, %g, %g, %q state_size=2 return %y",
          "");
}
