/* rule_norm_test.c: normalisations, against central differences. */
#include "central.h"

TEST(grad, norms)
{
    static const char *const graphs[] = {
        "(input %x: f64[3,5], input %g: f64[5], input %b: f64[5])"
        " { %y = layer_norm %x, %g, %b eps=0.01 return %y }",
        "(input %x: f64[2,4,3], input %g: f64[4], input %b: f64[4])"
        " { %y = layer_norm %x, %g, %b axis=1 return %y }",
        "(input %x: f64[3,5], input %g: f64[5]) { %y = rms_norm %x, %g return %y }",
        "(input %x: f64[2,4,3], input %g: f64[4], input %b: f64[4])"
        " { %y = rms_norm %x, %g, %b axis=-2 eps=0.01 return %y }",
        "(input %x: f64[2,6,3,2], input %g: f64[6], input %b: f64[6])"
        " { %y = group_norm %x, %g, %b num_groups=3 return %y }",
        "(input %x: f64[2,4], input %g: f64[4], input %b: f64[4])"
        " { %y = group_norm %x, %g, %b num_groups=2 return %y }",
        "(input %x: f64[2,3,2,2], input %g: f64[3], input %b: f64[3])"
        " { %y = layer_norm_2d %x, %g, %b return %y }",
        "(input %x: f64[2,3,4], input %g: f64[3], input %b: f64[3], input %skipm: f64[3],"
        " input %skippos: f64[3])"
        " { %y = batch_norm_inference %x, %g, %b, %skipm, %skippos axis=1 return %y }",
        "(input %x: f64[5,3], input %g: f64[3], input %b: f64[3])"
        " { %s = mul %g, %g %y = fused_residual_ln %x, %x, %g, %b return %y }",
        "(input %x: f64[2,3], input %r: f64[2,3], input %a: f64[3], input %g: f64[3],"
        " input %b: f64[3]) { %y = fused_residual_rms_norm %x, %r, %a, %g, %b has_bias=true"
        " return %y }",
        "(input %x: f64[2,3,4], input %s: f64[2,1,4], input %h: f64[4])"
        " { %y = ada_layer_norm %x, %s, %h return %y }",
        "(input %x: f64[2,4], input %s: f64[4], input %h: f64[2,4])"
        " { %y = ada_layer_norm %x, %s, %h norm=rms return %y }",
        "(input %x: f64[2,3], input %h: f64[2,3], input %g: f64[3])"
        " { %y = gated_residual %x, %h, %g return %y }",
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        agrees(t, 1e-5, graphs[i]);
}
