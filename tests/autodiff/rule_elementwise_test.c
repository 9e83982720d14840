/* rule_elementwise_test.c: arithmetic and functions of one number, against central differences. */
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

TEST(grad, without_a_rule_is_an_error)
{
    refuses(t, RLX_ERROR_NO_RULE, "qr",
            "(input %a: f32[3,2]) { %n = neg %a %q = qr %n part=r %y = abs %q return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "relu_backward",
            "(input %a: f32[3]) { %y = relu_backward %a, %a return %y }");
}
