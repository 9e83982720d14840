/* derive_test.c: rlx/autodiff.h through the public calls, and graphs made from models. */
#include <math.h>

#include "graph_world.h"
#include "rlx/autodiff.h"

/* loss = sum((x w)^2): its gradient is 2 x^T (x w). */
TEST(derive, gradient_of_a_graph_made_from_a_model)
{
    static const char text[] = "rlx 1 graph (input %x: f32[n,2], param %w: f32[2,1]) {"
                               " %y = matmul %x, %w %s = mul %y, %y"
                               " %l = reduce_sum %s axes=[0,1] return %l }";
    float x[] = {1, 2, 3, 4, -1, 0.5f}, w[] = {0.5f, -2}, kept[2] = {0};
    float loss, d[2];
    struct world v;
    rlx_model *m, *made;
    rlx_session *s;
    rlx_error err;

    require(t, open_world(t, &v));
    rlx_graph_destroy(v.g);
    v.g = NULL;
    require_ok(t, rlx_model_parse(v.ctx, rlx_cstr(text), &m, &err));
    rlx_tensor weight = {RLX_DTYPE_f32, 2, {2, 1}, w, sizeof w};
    rlx_tensor back = {RLX_DTYPE_f32, 2, {0}, kept, sizeof kept};
    expect_status(t, rlx_model_get_param(m, "w", &back, &err), RLX_ERROR_STATE);
    require_ok(t, rlx_model_set_param(m, "w", &weight, &err));
    require_ok(t, rlx_model_get_param(m, "w", &back, &err));
    expect_close(t, kept, w, 2, 0, 0);
    expect_eq(t, back.dim[0], 2);

    require_ok(t, rlx_graph_from_model(m, &v.g, &err));
    rlx_value wrt = rlx_graph_leaf(v.g, "w"), of = rlx_graph_output_at(v.g, 0), out;
    expect_eq(t, rlx_graph_leaf(v.g, "nobody"), RLX_NO_VALUE);
    expect_eq(t, rlx_graph_output_at(v.g, 1), RLX_NO_VALUE);
    require_ok(t, rlx_gradient(v.g, of, &wrt, 1, &out, &err));
    rlx_output(v.g, out);
    require_ok(t, rlx_graph_make_state(v.g, "w", &err));
    expect_status(t, rlx_graph_make_state(v.g, "x", &err), RLX_ERROR_NAME);
    require_ok(t, rlx_model_create(v.g, &made, &err));
    v.g = NULL;
    expect_eq(t, rlx_model_io_count(made, RLX_IO_STATE), 1);
    expect_eq(t, rlx_model_io_count(made, RLX_IO_PARAM), 0);

    require_ok(t, rlx_session_create(made, v.dev, NULL, &s, &err));
    require_ok(t, rlx_session_set_state(s, "w", &weight, &err));
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {3, 2}, x, sizeof x}};
    rlx_binding got[] = {{"l", {RLX_DTYPE_f32, 0, {0}, &loss, sizeof loss}},
                         {"out1", {RLX_DTYPE_f32, 2, {0}, d, sizeof d}}};
    require_ok(t, rlx_session_run(
                      s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, got, 2, NULL, 0}, &err));
    float y[3], want[2] = {0}, sum = 0;
    for (int i = 0; i < 3; i++) {
        y[i] = x[2 * i] * w[0] + x[2 * i + 1] * w[1];
        sum += y[i] * y[i];
        want[0] += 2 * y[i] * x[2 * i];
        want[1] += 2 * y[i] * x[2 * i + 1];
    }
    expect_near(t, loss, sum, 1e-5);
    expect_close(t, d, want, 2, 1e-5, 1e-6);
    rlx_session_destroy(s);
    rlx_model_destroy(made);
    rlx_model_destroy(m);
    close_world(&v);
}

TEST(derive, what_cannot_be_differentiated_is_named)
{
    struct world w;
    rlx_error err = {0};
    rlx_value out, ints;
    bool reaches[2];

    require(t, open_world(t, &w));
    rlx_value x = rlx_input(w.g, "x", RLX_DTYPE_f32, RLX_LIST(3));
    rlx_value q = rlx_param(w.g, "q", RLX_DTYPE_f32, RLX_LIST(3));
    ints = rlx_input(w.g, "labels", RLX_DTYPE_i32, RLX_LIST(3));
    rlx_value sum = rlx_reduce_sum(w.g, x, RLX_LIST(0), false);

    expect_status(t, rlx_gradient(w.g, x, &x, 1, &out, &err), RLX_ERROR_SHAPE);
    expect_contains(t, err.message, "3 elements");
    expect_status(t, rlx_gradient(w.g, sum, &ints, 1, &out, &err), RLX_ERROR_DTYPE);
    expect_contains(t, err.message, "labels");
    expect_status(t, rlx_gradient(w.g, 77, &x, 1, &out, &err), RLX_ERROR_GRAPH);
    expect_status(t, rlx_gradient(NULL, sum, &x, 1, &out, &err), RLX_ERROR_ARGUMENT);
    require_ok(t, rlx_gradient_reaches(w.g, sum, (const rlx_value[]){x, q}, 2, reaches, &err));
    expect(t, reaches[0] && !reaches[1]);
    require_ok(t, rlx_gradient(w.g, sum, &q, 1, &out, &err)); /* zeros */
    rlx_list shape;
    rlx_dtype dtype;
    require_ok(t, rlx_value_type(w.g, out, &dtype, &shape, &err));
    expect_eq(t, shape.at[0], 3);
    expect_eq(t, dtype, RLX_DTYPE_f32);
    close_world(&w);
}
