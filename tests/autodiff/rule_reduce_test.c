/* rule_reduce_test.c: reductions, orderings and running sums, against central differences; and what
 * these cannot show: ties, zeros and NaN. */
#include "central.h"
#include "fixed.h"

TEST(grad, reductions)
{
    static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min",
                                      "reduce_prod"};
    static const char *const attrs[] = {"axes=[1]", "axes=[0,2] keep_dim=true", "axes=[-1,0]",
                                        "axes=[0,1,2]", "axes=[]"};
    char graph[256];

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (size_t k = 0; k < sizeof attrs / sizeof attrs[0]; k++) {
            snprintf(graph, sizeof graph, "(input %%x: f64[2,3,4]) { %%y = %s %%x %s return %%y }",
                     ops[i], attrs[k]);
            agrees(t, 1e-6, graph);
        }
    agrees(t, 1e-6, "(input %x: c64[2,3]) { %y = reduce_sum %x axes=[0] return %y }");
    agrees(t, 1e-6, "(input %x: c64[2,3]) { %y = reduce_mean %x axes=[1] return %y }");
    agrees(t, 1e-6, "(input %x: c64[2,5,1]) { %y = reduce_prod %x axes=[1,2] return %y }");
}

TEST(grad, reduction_of_ties_zeros_and_nan)
{
    gives(t, "(input %x: f32[3]) { %y = reduce_prod %x axes=[0] return %y }", (double[]){2, 0, 5},
          (double[]){1}, (double[]){0, 10, 0});
    gives(t, "(input %x: f32[3]) { %y = reduce_prod %x axes=[0] return %y }", (double[]){0, 0, 5},
          (double[]){1}, (double[]){0, 0, 0});
    gives(t, "(input %x: f32[2,2]) { %y = reduce_prod %x axes=[0,1] return %y }",
          (double[]){1, 2, 3, 4}, (double[]){1}, (double[]){24, 12, 8, 6});
    gives(t, "(input %x: f32[3]) { %y = reduce_max %x axes=[0] return %y }", (double[]){3, 1, 3},
          (double[]){1}, (double[]){0.5, 0, 0.5});
    gives(t, "(input %x: f32[2,3]) { %y = reduce_min %x axes=[1] return %y }",
          (double[]){3, 1, 3, 2, NAN, 1}, (double[]){1, 1}, (double[]){0, 1, 0, 0, 0, 0});
}

TEST(grad, orderings)
{
    agrees(t, 1e-6, "(input %x: f64[3,5]) { %y = topk %x k=3 result=values return %y }");
    agrees(t, 1e-6, "(input %x: f64[4,3,2]) { %y = topk %x k=2 axis=1 result=values return %y }");
    agrees(t, 1e-6, "(input %x: f64[3,5]) { %y = sort %x return %y }");
    agrees(t, 1e-6, "(input %x: f64[5,2]) { %y = sort %x axis=0 descending=true return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,5]) { %i = topk %x k=1 index_dtype=f32"
           " %f = cast %i to=f64 %y = mul %f, %x return %y }");
}

TEST(grad, softmax_and_scans)
{
    static const char *const ops[] = {"cumsum", "cumprod", "cummax", "cumsum_backward"};
    char graph[256];

    agrees(t, 1e-6, "(input %x: f64[3,5]) { %y = softmax %x return %y }");
    agrees(t, 1e-6, "(input %x: f64[3,2,2]) { %y = softmax %x axis=0 return %y }");
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int exclusive = 0; exclusive < 2; exclusive++) {
            snprintf(graph, sizeof graph,
                     "(input %%x: f64[2,7,2]) { %%c = %s %%x axis=1 exclusive=%s"
                     " %%n = narrow %%c axis=1 start=1 len=6 return %%n }",
                     ops[i], exclusive ? "true" : "false");
            agrees(t, 1e-6, graph);
            snprintf(graph, sizeof graph,
                     "(input %%x: f64[6]) { %%c = %s %%x exclusive=%s"
                     " %%n = narrow %%c axis=0 start=1 len=5 return %%n }",
                     ops[i], exclusive ? "true" : "false");
            agrees(t, 1e-6, graph);
        }
}

TEST(grad, scans_of_zeros_and_nan)
{
    gives(t, "(input %x: f32[4]) { %y = cumprod %x return %y }", (double[]){2, 0, 3, 4},
          (double[]){1, 10, 100, 1000}, (double[]){1, 20 + 600 + 24000, 0, 0});
    gives(t, "(input %x: f32[3]) { %y = cumprod %x exclusive=true return %y }", (double[]){0, 3, 4},
          (double[]){1, 10, 100}, (double[]){10 + 300, 0, 0});
    gives(t, "(input %x: f32[5]) { %y = cummax %x return %y }", (double[]){-INFINITY, 2, 2, NAN, 9},
          (double[]){1, 10, 100, 1000, 10000}, (double[]){1, 110, 0, 11000, 0});
    gives(t, "(input %x: f32[3]) { %y = cummax %x exclusive=true return %y }", (double[]){1, 2, 3},
          (double[]){1, 10, 100}, (double[]){10, 100, 0});
    gives(t, "(input %x: f32[2]) { %y = softmax %x return %y }", (double[]){-INFINITY, -INFINITY},
          (double[]){1, 2}, (double[]){0, 0});
}

TEST(grad, running_products_need_a_length)
{
    refuses(t, RLX_ERROR_NO_RULE, "cumprod", "(input %x: f32[n]) { %y = cumprod %x return %y }");
}
