/* rule_window_test.c: convolutions, pooling and windows as rows, against central differences. */
#include "central.h"
#include "fixed.h"

static void convolves(struct test *t, const char *op, const char *x, const char *w,
                      const char *attrs)
{
    char graph[256];

    snprintf(graph, sizeof graph,
             "(input %%x: %s, input %%w: %s) { %%y = %s %%x, %%w %s return %%y }", x, w, op, attrs);
    agrees(t, 1e-6, graph);
}

TEST(grad, conv)
{
    convolves(t, "conv", "f64[2,2,7]", "f64[3,2,3]", "stride=[2] padding=[1]");
    convolves(t, "conv", "f64[1,2,6]", "f64[2,2,2]", "stride=[3]");
    convolves(t, "conv", "f64[1,4,4,5]", "f64[2,2,3,2]", "groups=2 padding=[1,0]");
    convolves(t, "conv", "f64[1,2,6,6]", "f64[2,1,2,2]", "groups=2 dilation=[2,3] stride=[1,2]");
    convolves(t, "conv", "f64[1,1,3,3,3]", "f64[2,1,2,2,2]", "padding=[0,1,0]");
    agrees(t, 1e-6,
           "(input %x: f64[1,2,4], input %w: f64[3,2,2], input %b: f64[3], input %r: f64[1,3,3])"
           " { %y = fused_conv_bias_act %x, %w, %b, %r activation=silu has_residual=true"
           " return %y }");
}

TEST(grad, conv_transpose)
{
    convolves(t, "conv_transpose", "f64[1,2,3,2]", "f64[2,3,2,2]", "");
    convolves(t, "conv_transpose", "f64[2,2,2,3]", "f64[2,1,3,2]",
              "stride=[2,3] padding=[1,0] output_padding=[1,2]");
    convolves(t, "conv_transpose", "f64[1,4,2,2]", "f64[4,1,2,2]", "groups=2 dilation=[2,3]");
    convolves(t, "conv_transpose", "f64[1,1,2,2]", "f64[1,1,2,2]",
              "dilation=[3,1] output_padding=[2,0]");
    convolves(t, "conv_transpose", "f64[1,1,2,2,1]", "f64[1,2,2,1,2]", "stride=[1,2,1]");
}

TEST(grad, pools)
{
    static const char *const kinds[] = {"sum", "mean", "max", "min", "prod"};
    static const char *const forms[][2] = {
        {"f64[2,2,7]", "kernel_size=[3] stride=[2] padding=[1]"},
        {"f64[1,2,4,5]", "kernel_size=[2,3]"},
        {"f64[1,2,4,5]", "kernel_size=[2,3] stride=[2,3] padding=[1,2] count_include_pad=false"},
        {"f64[1,1,3,3,4]", "kernel_size=[2,2,2] stride=[1,1,3] padding=[1,0,1]"},
    };
    char graph[256];

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            snprintf(graph, sizeof graph,
                     "(input %%x: %s) { %%y = pool %%x kind=%s %s return %%y }", forms[i][0],
                     kinds[k], forms[i][1]);
            agrees(t, 1e-6, graph);
        }
    gives(t, "(input %x: f32[1,1,3]) { %y = pool %x kind=prod kernel_size=[2] return %y }",
          (double[]){2, 0, 5}, (double[]){1, 10}, (double[]){0, 2 + 50, 0});
    gives(t, "(input %x: f32[1,1,3]) { %y = pool %x kind=max kernel_size=[3] return %y }",
          (double[]){4, 4, 1}, (double[]){1}, (double[]){1, 0, 0});
}

TEST(grad, im2col)
{
    agrees(t, 1e-6, "(input %x: f64[2,2,4,3]) { %y = im2col %x kernel_size=[2,2] return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[1,2,5,6]) { %y = im2col %x kernel_size=[3,2] stride=[2,1]"
           " padding=[1,2] dilation=[1,3] return %y }");
}
