/* rule_half_test.c: gradients of f16 and bf16 have those types, and lose no more than their last
 * rounding; scales beside them may be f32. */
#include "central.h"

TEST(grad_half, types_and_precision)
{
    static const char *const graphs[] = {
        "(input %a: T[3,4], input %b: T[4]) { %y = max %a, %b return %y }",
        "(input %pos: T[3,4], input %b: T[4]) { %y = pow %pos, %b return %y }",
        "(input %a: T[3,4]) { %y = clamp %a min=-0.5 max=0.5 return %y }",
        "(input %a: T[3,4], input %b: T[3,1]) { %y = fma %a, %b, %b return %y }",
        "(input %a: T[9]) { %y = slice %a axis=0 start=1 len=3 step=3 return %y }",
        "(input %a: T[4,3], input %idx4: i32[5]) { %y = gather %a, %idx4 return %y }",
        "(input %a: T[4,3]) { %y = reduce_mean %a axes=[0] return %y }",
        "(input %a: T[4,3]) { %y = reduce_max %a axes=[1] return %y }",
        "(input %a: T[4,3]) { %y = reduce_prod %a axes=[0] return %y }",
        "(input %a: T[4,3]) { %y = softmax %a return %y }",
        "(input %a: T[5]) { %y = cumprod %a return %y }",
        "(input %a: T[2,3,4], input %b: T[4,2]) { %y = matmul %a, %b return %y }",
        "(input %dom: T[3,3], input %b: T[3]) { %y = dense_solve %dom, %b return %y }",
        "(input %dom: T[3,3]) { %y = cholesky %dom return %y }",
        "(input %a: T[3,4], input %g: f32[4], input %b: f32[4])"
        " { %y = layer_norm %a, %g, %b return %y }",
        "(input %a: T[3,4], input %g: f32[4], input %b: f32[4])"
        " { %y = rms_norm %a, %g, %b return %y }",
        "(input %a: T[2,4,2], input %g: f32[4], input %b: T[4])"
        " { %y = group_norm %a, %g, %b num_groups=2 return %y }",
        "(input %a: T[2,3,4], input %g: f32[4], input %b: f32[4], input %skipm: f32[4],"
        " input %skippos: f32[4]) { %y = batch_norm_inference %a, %g, %b, %skipm, %skippos"
        " return %y }",
        "(input %a: T[1,2,5], input %w: T[2,2,3]) { %y = conv %a, %w return %y }",
        "(input %a: T[1,2,5]) { %y = pool %a kind=mean kernel_size=[3] padding=[1] return %y }",
        "(input %a: T[1,2,5]) { %y = pool %a kind=prod kernel_size=[3] return %y }",
        "(input %q: T[1,2,3,2], input %k: T[1,2,3,2], input %v: T[1,2,3,2], input %m: f32[1,3])"
        " { %y = attention %q, %k, %v, %m num_heads=2 head_dim=2 mask_kind=bias return %y }",
        "(input %a: T[3,4], input %skipc: f32[3,2], input %skips: f32[3,2])"
        " { %y = rope %a, %skipc, %skips head_dim=4 return %y }",
        "(input %a: T[3,4], input %b: T[3,4]) { %y = softmax_cross_entropy %a, %b return %y }",
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        for (int brain = 0; brain < 2; brain++) {
            char graph[512];
            size_t n = 0;
            for (const char *at = graphs[i]; *at && n + 8 < sizeof graph; at++)
                n += (size_t)snprintf(graph + n, sizeof graph - n, "%.*s", *at == 'T' ? 4 : 1,
                                      *at != 'T' ? at
                                      : brain    ? "bf16"
                                                 : "f16");
            agrees(t, brain ? 3e-2 : 4e-3, graph);
        }
}
