/* derive_along_test.c: what rlx/autodiff.h says beside gradients, through the public calls; and
 * gradients of what runs graphs. */
#include <math.h>

#include "graph/builder.h"
#include "graph_world.h"
#include "rlx/autodiff.h"

/* The graph's outputs so far as a model, run once. */
static void run_graph(struct test *t, struct world *w, const rlx_binding *in, size_t count,
                      rlx_binding *out, size_t out_count)
{
    rlx_model *m;
    rlx_session *s;
    rlx_error err;

    require_ok(t, rlx_model_create(w->g, &m, &err));
    w->g = NULL;
    if (expect_ok(t, rlx_session_create(m, w->dev, NULL, &s, &err))) {
        if (rlx_session_run(
                s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, out, out_count, NULL, 0},
                &err))
            fail(t, "%s", err.message);
        rlx_session_destroy(s);
    }
    rlx_model_destroy(m);
}

/* y = x^3, and f its sum: J v = 3 x^2 v, H v = 6 x v. The size is a symbol. */
TEST(derive, along_a_direction)
{
    float x[] = {1, -2, 3}, v[] = {0.5f, 1, -1}, jv[3], hv[3], zero[3] = {1, 1, 1};
    struct world w;
    rlx_error err;
    rlx_value out[2], none;

    require(t, open_world(t, &w));
    rlx_list n = RLX_LIST(rlx_dim_symbol(w.g, "n"));
    rlx_value at = rlx_input(w.g, "x", RLX_DTYPE_f32, n),
              to = rlx_input(w.g, "v", RLX_DTYPE_f32, n);
    rlx_value y = rlx_mul(w.g, at, rlx_mul(w.g, at, at));
    rlx_value f = rlx_reduce_sum(w.g, y, RLX_LIST(0), false);
    require_ok(t, rlx_jvp(w.g, &y, 1, &at, &to, 1, &out[0], &err));
    require_ok(t, rlx_hvp(w.g, f, &at, &to, 1, &out[1], &err));
    require_ok(t, rlx_jvp(w.g, &at, 1, &to, &at, 1, &none, &err)); /* it does not depend on it */
    rlx_output(w.g, out[0]);
    rlx_output(w.g, out[1]);
    rlx_output(w.g, none);
    const rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 1, {3}, x, sizeof x}},
                              {"v", {RLX_DTYPE_f32, 1, {3}, v, sizeof v}}};
    rlx_binding got[] = {{"out0", {RLX_DTYPE_f32, 1, {0}, jv, sizeof jv}},
                         {"out1", {RLX_DTYPE_f32, 1, {0}, hv, sizeof hv}},
                         {"out2", {RLX_DTYPE_f32, 1, {0}, zero, sizeof zero}}};
    run_graph(t, &w, in, 2, got, 3);
    for (int i = 0; i < 3; i++) {
        expect_near(t, jv[i], 3 * x[i] * x[i] * v[i], 1e-5);
        expect_near(t, hv[i], 6 * x[i] * v[i], 1e-5);
        expect_near(t, zero[i], 0, 0);
    }
    close_world(&w);
}

/* (x w)^2 of one row: its gradient for w, 2 (x w) x, for each of n rows, n a symbol. */
TEST(derive, a_gradient_for_each_example)
{
    static const float none[2];
    float rows[] = {1, 2, 3, 4, -1, 0.5f}, weight[] = {0.5f, -2}, each[6], sums[3];
    struct world w;
    rlx_error err;
    rlx_value dw, out[2];

    require(t, open_world(t, &w));
    rlx_value one = rlx_const(w.g, RLX_DTYPE_f32, RLX_LIST(2), none, sizeof none);
    rlx_value all = rlx_input(w.g, "x", RLX_DTYPE_f32, RLX_LIST(rlx_dim_symbol(w.g, "n"), 2));
    rlx_value wt = rlx_input(w.g, "w", RLX_DTYPE_f32, RLX_LIST(2));
    rlx_value y = rlx_reduce_sum(w.g, rlx_mul(w.g, one, wt), RLX_LIST(0), false);
    rlx_value f = rlx_mul(w.g, y, y);
    require_ok(t, rlx_gradient(w.g, f, &wt, 1, &dw, &err));
    require_ok(t, rlx_vmap(w.g, (const rlx_value[]){dw, f}, 2, &one, &all, 1, out, &err));
    rlx_output(w.g, out[0]);
    rlx_output(w.g, out[1]);
    const rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 2, {3, 2}, rows, sizeof rows}},
                              {"w", {RLX_DTYPE_f32, 1, {2}, weight, sizeof weight}}};
    rlx_binding got[] = {{"out0", {RLX_DTYPE_f32, 2, {0}, each, sizeof each}},
                         {"out1", {RLX_DTYPE_f32, 1, {0}, sums, sizeof sums}}};
    run_graph(t, &w, in, 2, got, 2);
    for (int i = 0; i < 3; i++) {
        float p = rows[2 * i] * weight[0] + rows[2 * i + 1] * weight[1];
        expect_near(t, sums[i], p * p, 1e-5);
        expect_near(t, each[2 * i], 2 * p * rows[2 * i], 1e-5);
        expect_near(t, each[2 * i + 1], 2 * p * rows[2 * i + 1], 1e-5);
    }
    close_world(&w);
}

TEST(derive, refusals_leave_the_graph)
{
    static const int32_t first_row[2];
    struct world w;
    rlx_error err = {0};
    rlx_value out[2];

    require(t, open_world(t, &w));
    rlx_value a = rlx_input(w.g, "a", RLX_DTYPE_f32, RLX_LIST(3, 2));
    rlx_value other = rlx_input(w.g, "b", RLX_DTYPE_f32, RLX_LIST(2, 3));
    rlx_value all = rlx_input(w.g, "all", RLX_DTYPE_f32, RLX_LIST(4, 3, 2));
    rlx_value less = rlx_input(w.g, "less", RLX_DTYPE_f32, RLX_LIST(5, 3, 2));
    rlx_value at = rlx_const(w.g, RLX_DTYPE_i32, RLX_LIST(1, 2), first_row, sizeof first_row);
    rlx_value row = rlx_narrow(w.g, a, 0, 1, 1);
    rlx_value s = rlx_scatter_elements(w.g, a, at, row, 0, RLX_SCATTER_REDUCTION_max);
    rlx_value f = rlx_reduce_sum(w.g, s, RLX_LIST(0, 1), false);
    rlx_value drawn = rlx_sample(w.g, a, RLX_NO_VALUE, NULL);
    size_t before = w.g->g->node.len;

    expect_status(t, rlx_hvp(w.g, f, &a, &a, 1, out, &err), RLX_ERROR_NO_RULE);
    expect_contains(t, err.message, "scatter_elements");
    expect_status(t, rlx_hvp(w.g, f, &a, &other, 1, out, &err), RLX_ERROR_SHAPE);
    expect_status(t, rlx_hvp(w.g, s, &a, &a, 1, out, &err), RLX_ERROR_SHAPE);
    expect_status(t, rlx_jvp(w.g, &f, 1, &a, &other, 1, out, &err), RLX_ERROR_SHAPE);
    expect_contains(t, err.message, "tangent[0]");
    expect_status(t, rlx_jvp(w.g, &f, 1, &a, NULL, 1, out, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_jvp(w.g, &drawn, 1, &a, &a, 1, out, &err), RLX_ERROR_DTYPE);
    expect_status(t, rlx_vmap(w.g, &f, 1, &a, &other, 1, out, &err), RLX_ERROR_SHAPE);
    expect_status(t, rlx_vmap(w.g, &f, 1, NULL, NULL, 0, out, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_vmap(w.g, &f, 1, &a, &all, 1, NULL, &err), RLX_ERROR_ARGUMENT);
    expect_status(t,
                  rlx_vmap(w.g, &f, 1, (const rlx_value[]){a, a}, (const rlx_value[]){all, less}, 2,
                           out, &err),
                  RLX_ERROR_SHAPE);
    expect_contains(t, err.message, "examples");
    expect_status(t, rlx_vmap(w.g, &drawn, 1, &a, &all, 1, out, &err), RLX_ERROR_NO_RULE);
    expect_contains(t, err.message, "sample");
    expect_eq(t, w.g->g->node.len, before);
    expect_ok(t, rlx_graph_check(w.g, &err));
    close_world(&w);
}

/* ---- what runs graphs ---- */

enum { SIZE = 3 };

struct slopes {
    rlx_session *s;
    float f, d[SIZE], h[SIZE];
};

static void run_at(struct test *t, struct slopes *r, float *x, float *v)
{
    rlx_error err;
    const rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 1, {SIZE}, x, SIZE * sizeof *x}},
                              {"v", {RLX_DTYPE_f32, 1, {SIZE}, v, SIZE * sizeof *v}}};
    rlx_binding out[] = {{"f", {RLX_DTYPE_f32, 0, {0}, &r->f, sizeof r->f}},
                         {"out1", {RLX_DTYPE_f32, 1, {0}, r->d, sizeof r->d}},
                         {"out2", {RLX_DTYPE_f32, 1, {0}, r->h, sizeof r->h}}};

    if (rlx_session_run(r->s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, out, 3, NULL, 0},
                        &err))
        fail(t, "%s", err.message);
}

static void compare_with_differences(struct test *t, struct slopes *r)
{
    float x[] = {0.4f, -0.7f, 0.9f}, v[] = {0.5f, 0.25f, -1}, up[SIZE], down[SIZE];
    const float h = 1e-2f;

    run_at(t, r, x, v);
    const struct slopes at = *r;
    for (int i = 0; i < SIZE; i++) {
        float was = x[i], high;
        x[i] = was + h;
        run_at(t, r, x, v);
        high = r->f;
        x[i] = was - h;
        run_at(t, r, x, v);
        expect_near(t, at.d[i], (high - r->f) / (2 * h), 4e-3 * (1 + fabs((double)at.d[i])));
        x[i] = was;
    }
    for (int i = 0; i < SIZE; i++) {
        up[i] = x[i] + h * v[i];
        down[i] = x[i] - h * v[i];
    }
    run_at(t, r, up, v);
    const struct slopes ahead = *r;
    run_at(t, r, down, v);
    for (int i = 0; i < SIZE; i++)
        expect_near(t, at.h[i], (ahead.d[i] - r->d[i]) / (2 * h),
                    4e-3 * (1 + fabs((double)at.h[i])));
}

/* text: a graph of x and v, f32[3], whose output f is one number. */
static void slopes(struct test *t, const char *text)
{
    struct slopes r = {0};
    rlx_value out[2];
    rlx_model *m, *made;
    struct world w;
    rlx_error err;

    test_note(t, "%s", text);
    require(t, open_world(t, &w));
    rlx_graph_destroy(w.g);
    w.g = NULL;
    require_ok(t, rlx_model_parse(w.ctx, rlx_cstr(text), &m, &err));
    require_ok(t, rlx_graph_from_model(m, &w.g, &err));
    rlx_value x = rlx_graph_leaf(w.g, "x"), v = rlx_graph_leaf(w.g, "v");
    rlx_value f = rlx_graph_output_at(w.g, 0);
    require_ok(t, rlx_gradient(w.g, f, &x, 1, &out[0], &err));
    require_ok(t, rlx_hvp(w.g, f, &x, &v, 1, &out[1], &err));
    rlx_output(w.g, out[0]);
    rlx_output(w.g, out[1]);
    require_ok(t, rlx_model_create(w.g, &made, &err));
    w.g = NULL;
    require_ok(t, rlx_session_create(made, w.dev, NULL, &r.s, &err));
    compare_with_differences(t, &r);
    rlx_session_destroy(r.s);
    rlx_model_destroy(made);
    rlx_model_destroy(m);
    close_world(&w);
}

TEST(derive, through_what_runs_graphs)
{
#define LEAVES "rlx 1 graph (input %x: f32[3], input %v: f32[3]) { "
#define SUM "%c = mul %y, %y %f = reduce_sum %c axes=[0] return %f }"
    for (int taken = 0; taken < 2; taken++)
        slopes(t, taken ? LEAVES
                      "%p = const bool[] {1} %y = if %p, %x then_graph=@yes else_graph=@no " SUM
                      " graph @yes (input %a: f32[3]) { %s = mul %a, %a %y = tanh %s return %y }"
                      " graph @no (input %a: f32[3]) { %y = sin %a return %y }"
                        : LEAVES
                      "%p = const bool[] {0} %y = if %p, %x then_graph=@yes else_graph=@no " SUM
                      " graph @yes (input %a: f32[3]) { %s = log %a return %s }"
                      " graph @no (input %a: f32[3]) { %y = sin %a return %y }");
    slopes(t, LEAVES
           "%i = const i32[] {0} %y = while %i, %x cond_graph=@more body_graph=@turn result=1"
           " max_iterations=5 " SUM
           " graph @more (input %i: i32[], input %a: f32[3]) { %z = const i32[] {3} %y = lt %i, %z"
           " return %y } graph @turn (input %i: i32[], input %a: f32[3]) { %o = const i32[] {1}"
           " %j = add %i, %o %s = mul %a, %a %u = sin %s return %j, %u }");
#define STEP \
    " graph @step (input %c: f32[3], input %x: f32[]) { %p = mul %c, %x %u = tanh %p return %u }"
    slopes(t, LEAVES "%y = scan %x, %x body=@step length=3 num_xs=1 " SUM STEP);
    slopes(t, LEAVES "%y = scan %x, %x body=@step length=3 num_xs=1 num_checkpoints=2 " SUM STEP);
    slopes(t, LEAVES
           "%r = scan %x, %x body=@step length=3 num_xs=1 num_checkpoints=2 save_trajectory=true"
           " %y = reduce_sum %r axes=[0] " SUM STEP);
    slopes(t, LEAVES "%y = custom_fn %x fwd_graph=@g vjp_graph=@d " SUM
                     " graph @g (input %a: f32[3]) { %y = sin %a return %y }"
                     " graph @d (input %a: f32[3], input %primal_output: f32[3], input %d_output: "
                     "f32[3]) { %c = cos %a %y = mul %c, %d_output return %y }");
}
