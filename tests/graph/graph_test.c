/* graph_test.c: building graphs by hand: failures are kept, objects stay usable, sub-graphs work.
 */
#include <math.h>

#include "ir/op.h"
#include "rlx/graph.h"
#include "rlx/tools.h"
#include "test.h"

static rlx_context *open_context(struct test *t)
{
    rlx_context *ctx = NULL;

    expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    return ctx;
}

TEST(graph, keeps_the_first_failure)
{
    rlx_context *ctx = open_context(t);
    rlx_graph *g = NULL;
    rlx_model *m = NULL;
    rlx_error err;

    require_ok(t, rlx_graph_create(ctx, &g, &err));
    rlx_value a = rlx_input(g, "a", RLX_DTYPE_f32, RLX_LIST(4, 8));
    rlx_value b = rlx_input(g, "b", RLX_DTYPE_f32, RLX_LIST(9, 2));
    rlx_value bad = rlx_matmul(g, a, b, false, false);
    expect_eq(t, bad, RLX_NO_VALUE);
    rlx_output(g, rlx_exp(g, bad)); /* says nothing more */
    expect_status(t, rlx_graph_check(g, &err), RLX_ERROR_SHAPE);
    expect_contains(t, err.message, "8");
    expect_contains(t, err.message, "9");
    expect_str(t, err.op, "matmul");
    expect_status(t, rlx_model_create(g, &m, &err), RLX_ERROR_SHAPE);
    expect(t, m == NULL);
    rlx_graph_destroy(g); /* still ours */
    rlx_context_destroy(ctx);
}

TEST(graph, refuses_bad_leaves)
{
    static const struct {
        const char *name;
        rlx_dtype dtype;
        int64_t dim;
        rlx_status want;
    } rows[] = {
        {"", RLX_DTYPE_f32, 3, RLX_ERROR_GRAPH},
        {"x", (rlx_dtype)99, 3, RLX_ERROR_ATTRIBUTE},
        {"x", RLX_DTYPE_f32, INT64_MAX, RLX_ERROR_LIMIT},
        {"\xff\xfe", RLX_DTYPE_f32, 3, RLX_ERROR_GRAPH},
        {NULL, RLX_DTYPE_f32, 3, RLX_ERROR_GRAPH},
    };
    rlx_context *ctx = open_context(t);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rlx_graph *g;
        rlx_error err;
        test_note(t, "row %zu", i);
        require_ok(t, rlx_graph_create(ctx, &g, &err));
        rlx_input(g, rows[i].name, rows[i].dtype, RLX_LIST(rows[i].dim, 2));
        expect_status(t, rlx_graph_check(g, &err), rows[i].want);
        rlx_graph_destroy(g);
    }
    rlx_context_destroy(ctx);
}

TEST(graph, names_are_unique)
{
    rlx_context *ctx = open_context(t);
    rlx_graph *g;
    rlx_error err;

    require_ok(t, rlx_graph_create(ctx, &g, &err));
    rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(3));
    expect_eq(t, rlx_param(g, "x", RLX_DTYPE_f32, RLX_LIST(3)), RLX_NO_VALUE);
    expect_status(t, rlx_graph_check(g, &err), RLX_ERROR_GRAPH);
    expect_contains(t, err.message, "x");
    rlx_graph_destroy(g);
    rlx_context_destroy(ctx);
}

TEST(graph, promotes_operands)
{
    rlx_context *ctx = open_context(t);
    rlx_graph *g;
    rlx_error err;
    rlx_dtype dtype;
    rlx_list shape;

    require_ok(t, rlx_graph_create(ctx, &g, &err));
    rlx_value a = rlx_input(g, "a", RLX_DTYPE_i32, RLX_LIST(2, 1, 3));
    rlx_value b = rlx_input(g, "b", RLX_DTYPE_f32, RLX_LIST(4, 1));
    rlx_value y = rlx_add(g, a, b);
    require_ok(t, rlx_value_type(g, y, &dtype, &shape, &err));
    expect_eq(t, dtype, RLX_DTYPE_f32);
    expect_eq(t, shape.count, 3);
    expect_eq(t, shape.at[1], 4);
    rlx_value u = rlx_input(g, "u", RLX_DTYPE_u64, RLX_LIST(3));
    expect_eq(t, rlx_add(g, a, u), RLX_NO_VALUE);
    expect_status(t, rlx_graph_check(g, &err), RLX_ERROR_DTYPE);
    rlx_graph_destroy(g);
    rlx_context_destroy(ctx);
}

TEST(graph, node_by_name_and_attributes)
{
    rlx_context *ctx = open_context(t);
    rlx_graph *g;
    rlx_error err;
    rlx_value y;
    rlx_list shape;

    require_ok(t, rlx_graph_create(ctx, &g, &err));
    rlx_value x = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(3, 5));
    expect_ok(t, rlx_graph_node(g, "reduce_sum", &x, 1, "axes=[1] keep_dim=true", &y, &err));
    expect_ok(t, rlx_value_type(g, y, NULL, &shape, &err));
    expect_eq(t, shape.at[1], 1);
    expect_status(t, rlx_graph_node(g, "no_such_op", &x, 1, NULL, &y, &err), RLX_ERROR_GRAPH);
    expect(t, rlx_graph_node(g, "reduce_sum", &x, 1, "axes=[7]", &y, &err) != RLX_OK);
    expect(t, rlx_graph_node(g, "reduce_sum", &x, 1, "nonsense=1", &y, &err) != RLX_OK);
    expect(t, rlx_graph_node(g, "add", &x, 1, NULL, &y, &err) == RLX_ERROR_GRAPH);
    x = 77;
    expect(t, rlx_graph_node(g, "exp", &x, 1, NULL, &y, &err) == RLX_ERROR_GRAPH);
    expect_ok(t, rlx_graph_check(g, &err)); /* these calls reported their failures themselves */
    rlx_graph_destroy(g);
    rlx_context_destroy(ctx);
}

TEST(graph, control_flow_by_hand)
{
    rlx_context *ctx = open_context(t);
    rlx_device *dev = NULL;
    rlx_graph *g = NULL, *yes = NULL, *no = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;
    float x[2] = {1, 4}, y[2];

    require_ok(t, rlx_graph_create(ctx, &g, &err));
    require_ok(t, rlx_graph_sub(g, "yes", &yes, &err));
    require_ok(t, rlx_graph_sub(g, "no", &no, &err));
    rlx_output(yes, rlx_sqrt(yes, rlx_input(yes, "a", RLX_DTYPE_f32, RLX_LIST(2))));
    rlx_output(no, rlx_neg(no, rlx_input(no, "a", RLX_DTYPE_f32, RLX_LIST(2))));
    rlx_value p = rlx_input(g, "p", RLX_DTYPE_f32, RLX_EMPTY);
    rlx_value v = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(2));
    const rlx_value captures[] = {v};
    rlx_output(g, rlx_if(g, p, captures, 1, yes, no, 0));
    require_ok(t, rlx_model_create(g, &m, &err));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    require_ok(t, rlx_session_create(m, dev, NULL, &s, &err));
    for (float pred = 0; pred < 2; pred++) {
        rlx_binding in[2] = {{"p", {RLX_DTYPE_f32, 0, {0}, &pred, sizeof pred}},
                             {"x", {RLX_DTYPE_f32, 1, {2}, x, sizeof x}}};
        rlx_binding out = {"out0", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
        require_ok(
            t, rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                               &err));
        expect_near(t, y[1], pred != 0 ? 2 : -4, 0);
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

TEST(graph, an_unbounded_loop_can_be_limited)
{
    static const char text[] =
        "rlx 1\n"
        "graph @main (input %x: f32[]) { %y = while %x cond_graph=@c body_graph=@b return %y }\n"
        "graph @c (input %x: f32[]) { %t = const bool[] {true} return %t }\n"
        "graph @b (input %x: f32[]) { %y = neg %x return %y }\n";
    rlx_context *ctx = open_context(t);
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err;
    float x = 1;

    require_ok(t, rlx_model_parse(ctx, rlx_cstr(text), &m, &err));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    require_ok(t, rlx_session_create(
                      m, dev, &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .loop_limit = 100},
                      &s, &err));
    rlx_binding in = {"x", {RLX_DTYPE_f32, 0, {0}, &x, sizeof x}};
    expect_status(t,
                  rlx_session_run(
                      s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0}, &err),
                  RLX_ERROR_LIMIT);
    expect_contains(t, err.message, "100");
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

TEST(graph, out_of_range_indices_are_reported_when_asked)
{
    static const char text[] = "rlx 1 graph (input %i: i32[3]) { %x = const f32[2] {5 6} "
                               "%y = gather %x, %i axis=0 return %y }";
    rlx_context *ctx = open_context(t);
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_error err;
    int32_t i[3] = {0, 1, 9};
    float y[3];
    rlx_binding in = {"i", {RLX_DTYPE_i32, 1, {3}, i, sizeof i}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 1, {0}, y, sizeof y}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};

    require_ok(t, rlx_model_parse(ctx, rlx_cstr(text), &m, &err));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    for (int checked = 0; checked < 2; checked++) {
        rlx_session *s;
        require_ok(t, rlx_session_create(m, dev,
                                         &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                             .check_indices = checked},
                                         &s, &err));
        expect_status(t, rlx_session_run(s, &run, &err), checked ? RLX_ERROR_INDEX : RLX_OK);
        if (checked)
            expect_contains(t, err.message, "9");
        else
            expect_near(t, y[2], 6, 0); /* clamped */
        rlx_session_destroy(s);
    }
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

TEST(ops, the_table_has_no_hole)
{
    rlx_op_row r;
    size_t count = 0;

    for (size_t i = 0; rlx_op_at(i, &r); i++, count++) {
        test_note(t, "%s", r.name);
        expect(t, r.infer);
        expect(t, r.cpu);
        expect_eq(t, r.grad, op_is((rlx_op)(i + 1), OP_DIFF));
    }
    expect_eq(t, count, 203);
}
