/* rule_elementwise_test.c: arithmetic, functions of one number, choices and casts, against central
 * differences. */
#include "central.h"

TEST(grad, binary_ops)
{
    static const char *const ops[] = {"add", "sub", "mul", "div", "max", "min", "atan2"};
    char graph[256];

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        snprintf(graph, sizeof graph,
                 "(input %%a: f64[2,1,3], input %%b: f64[4,1]) { %%y = %s %%a, %%b return %%y }",
                 ops[i]);
        agrees(t, 1e-6, graph);
        snprintf(graph, sizeof graph, "(input %%a: f32[3]) { %%y = %s %%a, %%a return %%y }",
                 ops[i]);
        agrees(t, 1e-6, graph);
    }
    agrees(t, 1e-6, "(input %pos: f64[5], input %b: f64[3,1]) { %y = pow %pos, %b return %y }");
    agrees(t, 1e-6, "(input %a: f64[5], input %pos: f64[3,1]) { %y = mod %a, %pos return %y }");
    agrees(t, 1e-6, "(input %a: c64[5], input %b: c64[3,1]) { %y = mul %a, %b return %y }");
    agrees(t, 1e-6, "(input %a: c64[5], input %b: c64[3,1]) { %y = div %a, %b return %y }");
}

TEST(grad, unary_ops)
{
    static const char *const ops[] = {
        "relu",         "sigmoid", "tanh",     "exp",        "neg", "abs",  "gelu",
        "gelu_approx",  "silu",    "sin",      "cos",        "tan", "atan", "recip",
        "floor",        "ceil",    "sign",     "softplus",   "elu", "erf",  "hard_swish",
        "hard_sigmoid", "mish",    "softsign", "log_sigmoid"};
    char graph[128];

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        snprintf(graph, sizeof graph, "(input %%x: f64[3,5]) { %%y = %s %%x return %%y }", ops[i]);
        agrees(t, 1e-6, graph);
    }
    agrees(t, 1e-6, "(input %pos: f64[5]) { %y = log %pos return %y }");
    agrees(t, 1e-6, "(input %pos: f64[5]) { %y = sqrt %pos return %y }");
    agrees(t, 1e-6, "(input %pos: f64[5]) { %y = rsqrt %pos return %y }");
}

TEST(grad, choices_and_casts)
{
    /* casts round, here too */
    agrees(t, 1e-2, "(input %x: f64[3,4]) { %y = cast %x to=f32 return %y }");
    agrees(t, 1e-2, "(input %x: f64[3,4]) { %y = cast %x to=c64 return %y }");
    agrees(t, 1e-2, "(input %x: f32[3], input %z: c64[2,3]) { %y = mul %x, %z return %y }");
    agrees(
        t, 1e-2,
        "(input %a: f32[3], input %b: c64[3]) { %c = mul %a, %b %r = complex_real %c return %r }");
    agrees(t, 1e-6,
           "(input %x: f64[4]) { %i = cast %x to=i32 %f = cast %i to=f64"
           " %y = mul %f, %x return %y }");
    agrees(t, 1e-6,
           "(input %idx2: i32[3,1], input %a: f64[4], input %b: f64[2,3,1])"
           " { %y = where %idx2, %a, %b return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[4], input %a: f64[4], input %b: f64[])"
           " { %y = where %x, %a, %b return %y }");
    agrees(t, 1e-6, "(input %x: f64[5,5]) { %y = clamp %x min=-0.5 max=0.75 return %y }");
    agrees(t, 1e-6, "(input %x: f64[5,5]) { %y = clamp %x max=0.25 return %y }");
    agrees(t, 1e-6, "(input %x: f64[5]) { %y = clamp %x return %y }");
    agrees(t, 1e-6,
           "(input %a: f64[3,1], input %b: f64[4], input %c: f64[2,1,1])"
           " { %y = fma %a, %b, %c return %y }");
    agrees(t, 1e-6, "(input %z: c64[2,3]) { %y = complex_norm_sq %z return %y }");
    agrees(t, 1e-6, "(input %z: c64[2,3]) { %y = conjugate %z %w = mul %y, %z return %w }");
}

/* The walk: values read twice, paths that end, ops written with simpler ones. */
TEST(grad, walks_a_graph)
{
    agrees(t, 1e-6,
           "(input %x: f64[3], input %w: f64[3]) { %a = mul %x, %w %b = tanh %a %c = mul %b, %x"
           " %d = floor %x %e = add %c, %d return %e }");
    agrees(t, 1e-6,
           "(input %x: f64[2,3], input %h: f64[2,3], input %g: f64[2,3])"
           " { %y = gated_residual %x, %h, %g return %y }");
    agrees(t, 1e-6, "(input %x: f64[3]) { %y = gated_residual %x, %x, %x return %y }");
}

/* What nothing flows through hides what is in front of it. */
TEST(grad, ends_where_nothing_flows)
{
    struct central c = {0};
    ir_value wrt, dx;

    require(t,
            run_open(t, &c.s.run,
                     "rlx 1 graph (input %x: f32[3,2]) { %q = qr %x %s = stop_gradient %q"
                     " %k = topk %q k=1 index_dtype=f32 %m = mul %s, %k"
                     " %u = bitcast %x to=i32 %b = bitcast %u to=f32 %y = add %m, %b return %y }",
                     NULL));
    require(t, ir_find_leaf(ir_entry(c.s.run.mod), rlx_cstr("x"), &wrt));
    require_ok(t, central_seed(&c, &c.s.run.diag));
    expect_ok(t, grad_walk(ir_entry(c.s.run.mod), 0, c.out, c.dy, &wrt, 1, &dx, &c.s.run.diag));
    expect_eq(t, dx, RLX_NO_VALUE);
    run_close(&c.s.run);
}

TEST(grad, without_a_rule_is_an_error)
{
    refuses(t, RLX_ERROR_NO_RULE, "scatter_elements",
            "(input %a: f32[3], input %idx3: i32[3]) { %n = neg %a"
            " %q = scatter_elements %n, %idx3, %n axis=0 reduction=max %y = abs %q return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "gaussian_splat_render_backward",
            "(input %p: f32[3], input %s: f32[3], input %r: f32[4], input %o: f32[1], "
            "input %c: f32[3], input %h: f32[0], input %m: f32[23], input %d: f32[4,4,4]) "
            "{ %y = gaussian_splat_render_backward %p, %s, %r, %o, %c, %h, %m, %d width=4 height=4 "
            "return %y }");
}
