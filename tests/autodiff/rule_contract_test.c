/* rule_contract_test.c: products, solvers and determinants, against central differences. */
#include "central.h"

static void multiplies(struct test *t, const char *a, const char *b, const char *attrs)
{
    char graph[256];

    snprintf(graph, sizeof graph,
             "(input %%a: %s, input %%b: %s) { %%y = matmul %%a, %%b %s return %%y }", a, b, attrs);
    agrees(t, 1e-6, graph);
}

TEST(grad, matmul)
{
    multiplies(t, "f64[2,3]", "f64[3,4]", "");
    multiplies(t, "f64[3,2]", "f64[3,4]", "transpose_a=true");
    multiplies(t, "f64[2,3]", "f64[4,3]", "transpose_b=true");
    multiplies(t, "f64[3,2]", "f64[4,3]", "transpose_a=true transpose_b=true");
    multiplies(t, "f64[2,2,3,4]", "f64[4,2]", "");
    multiplies(t, "f64[2,3,4]", "f64[1,2,4]", "transpose_b=true");
    multiplies(t, "f64[2,4,3]", "f64[4,2]", "transpose_a=true");
    multiplies(t, "f64[2,4,3]", "f64[2,4]", "transpose_a=true transpose_b=true");
    multiplies(t, "f64[2,3]", "f64[2,2,3,2]", "");
    multiplies(t, "f64[2,1,2,3]", "f64[3,3,2]", "");
    multiplies(t, "f64[1,2,2,3]", "f64[2,1,4,3]", "transpose_b=true");
    multiplies(t, "c64[2,3]", "c64[3,2]", "");
    multiplies(t, "c64[2,3,2]", "c64[2,3]", "transpose_a=true transpose_b=true");
}

TEST(grad, products_of_other_kinds)
{
    agrees(t, 1e-6,
           "(input %a: f64[2,3,4], input %b: f64[4,2,5]) { %y = dot_general %a, %b"
           " lhs_contracting=[2] rhs_contracting=[0] lhs_batch=[0] rhs_batch=[1] return %y }");
    agrees(t, 1e-6,
           "(input %a: f64[3], input %b: f64[2,2]) { %y = dot_general %a, %b"
           " lhs_contracting=[] rhs_contracting=[] return %y }");
    agrees(t, 1e-6,
           "(input %a: f64[2,3,2], input %b: f64[2,4,3]) { %y = dot_general %a, %b"
           " lhs_contracting=[0,1] rhs_contracting=[0,2] return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[6,3], input %w: f64[4,3,2], input %idx3: i32[6])"
           " { %y = grouped_matmul %x, %w, %idx3 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[2,3], input %w: f64[3,2], input %a: f64[3,1], input %b: f64[1,2])"
           " { %y = lora_matmul %x, %w, %a, %b scale=0.5 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3], input %w: f64[3,2], input %a: f64[3,2], input %b: f64[2,2])"
           " { %y = lora_matmul %x, %w, %a, %b return %y }");
    agrees(t, 1e-6,
           "(input %a: f64[2,2,3], input %b: f64[3,4], input %c: f64[4])"
           " { %y = fused_matmul_bias_act %a, %b, %c activation=tanh return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "grouped_matmul",
            "(input %x: c64[2,3], input %w: c64[2,3,2], input %idx2: i32[2])"
            " { %y = grouped_matmul %x, %w, %idx2 return %y }");
}

TEST(grad, solvers)
{
    agrees(t, 1e-6,
           "(input %dom: f64[4,4], input %b: f64[4]) { %y = dense_solve %dom, %b return %y }");
    agrees(t, 1e-6,
           "(input %dom: f64[3,3], input %b: f64[3,2]) { %y = dense_solve %dom, %b return %y }");
    agrees(t, 1e-6,
           "(input %dom: f64[2,3,3], input %b: f64[2,3])"
           " { %y = batched_dense_solve %dom, %b return %y }");
    agrees(t, 1e-6,
           "(input %dom: f64[2,3,3], input %b: f64[2,3,2])"
           " { %y = batched_dense_solve %dom, %b return %y }");
    agrees(t, 1e-6, "(input %dom: f64[4,4]) { %y = cholesky %dom return %y }");
    agrees(t, 1e-6, "(input %dom: f64[4,4]) { %y = det %dom return %y }");
    agrees(t, 1e-6, "(input %dom: f64[4,4]) { %y = logdet %dom return %y }");
}

TEST(grad, triangular_solve)
{
    char graph[256];

    for (int form = 0; form < 8; form++) {
        snprintf(graph, sizeof graph,
                 "(input %%dom: f64[4,4], input %%b: f64[4%s])"
                 " { %%y = triangular_solve %%dom, %%b lower=%s transpose=%s return %%y }",
                 form & 4 ? ",3" : "", form & 1 ? "true" : "false", form & 2 ? "true" : "false");
        agrees(t, 1e-6, graph);
    }
}
