/* expansion_test.c: ops that stand for simpler ones are differentiated through these; and rules ask
 * for memory that may not be there. */
#include "central.h"

TEST(grad, through_expansions)
{
    static const char *const graphs[] = {
        "(input %x: f64[2,6]) { %y = fused_swiglu %x return %y }",
        "(input %x: f64[2,6]) { %y = fused_swiglu %x gate_first=true return %y }",
        "(input %x: f64[2,3], input %b: f64[3])"
        " { %y = elementwise_region %x, %b chain=[[add,i0,i1],[tanh,s0],[mul,s1,i0]] return %y }",
        "(input %x: f64[2,3], input %z: f64[2,3])"
        " { %y = batch_elementwise_region %x, %z chain=[[exp,i0],[neg,s0]] return %y }",
        "(input %x: f64[1,1,2,2]) { %y = transform_region %x chain=[[resize_nearest_2x,i0]]"
        " return %y }",
        "(input %h: f64[1,3,4], input %w: f64[4,12], input %o: f64[4,4], input %idx2: i32[1,3],"
        " input %b: f64[12], input %e: f64[4], input %skipc: f64[3,1], input %skips: f64[3,1])"
        " { %y = fused_attention_block %h, %w, %o, %idx2, %b, %e, %skipc, %skips num_heads=2"
        " head_dim=2 has_bias=true has_rope=true return %y }",
        "(input %h: f64[1,2,4], input %w: f64[4,12], input %o: f64[4,4], input %g: f64[4],"
        " input %u: f64[4,3], input %v: f64[3,4], input %k: f64[4], input %idx2: i32[1,2])"
        " { %y = fused_transformer_layer %h, %w, %o, %g, %u, %v, %k, %idx2 num_heads=2 head_dim=2"
        " intermediate_size=3 return %y }",
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        agrees(t, 1e-5, graphs[i]);
}

/* Every rule's nodes, with each request for memory refused in turn. */
static rlx_status differentiate(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct text_parse_options o = {0};
    struct ir_module *m = NULL;
    struct diag d;
    ir_value wrt[16], dx[16];

    (void)t;
    diag_init(&d, "test");
    rlx_status s = ir_parse(rlx_cstr(ctx), &o, mem, &m, &d);
    if (s == RLX_OK) {
        struct ir_graph *g = ir_entry(m);
        ir_value out = g->output.at[0];
        s = grad_walk(g, 0, out, out, wrt, central_wrt(g, wrt, 16), dx, &d);
    }
    ir_module_destroy(m);
    return s;
}

TEST(grad, survives_no_memory)
{
    static char graph[] =
        "rlx 1 graph (input %x: f32[2,2,4], input %w: f32[2,2,3], input %idx9: i32[8,1],"
        " input %g: f32[2], input %s: f32[4,4]) {"
        " %c = conv %x, %w padding=[1] %n = group_norm %c, %g, %g num_groups=1"
        " %p = pool %n kind=prod kernel_size=[2] stride=[2] padding=[1]"
        " %q = pool %p kind=mean kernel_size=[2] padding=[1] count_include_pad=false"
        " %f = reshape %q shape=[4,4] %e = dense_solve %s, %f %h = cholesky %e"
        " %r = reduce_prod %h axes=[0] %a = cumprod %r %b = cummax %a %t = topk %b k=4 "
        "result=values"
        " %i = slice %t axis=0 start=3 len=2 step=-2 %j = pad %i before=[1] after=[1] mode=reflect"
        " %u = expand %j shape=[2,4] %v = reshape %u shape=[8]"
        " %l = scatter_nd %a, %idx9, %v %z = quantize %l scales=[0.5]"
        " %y = dequantize %z scales=[0.5] return %y }";

    expect_survives_no_memory(t, differentiate, graph);
}
