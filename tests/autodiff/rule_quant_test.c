/* rule_quant_test.c: gradients that pass rounding straight through. Central differences know
 * nothing of that: the numbers are worked out by hand. */
#include "fixed.h"

TEST(grad, quantised_values_pass_it_on)
{
    gives(t,
          "(input %x: f32[2,2]) { %q = quantize %x scales=[0.5] zero_points=[3]"
          " %y = dequantize %q scales=[0.5] zero_points=[3] return %y }",
          (double[]){1, 2, 1000, -3}, (double[]){1, 2, 3, 4}, (double[]){1, 2, 3, 4});
    gives(t,
          "(input %x: f32[2,2]) { %q = quantize %x axis=0 scales=[0.5,0.25] %r = transpose %q"
          " perm=[1,0] %y = dequantize %r axis=0 scales=[1,2] return %y }",
          (double[]){1, 2, 3, 4}, (double[]){1, 2, 3, 4}, (double[]){2, 12, 8, 32});
}

TEST(grad, products_of_quantised_values)
{
    gives(t,
          "(input %x: f32[1,2]) { %q = quantize %x scales=[0.5]"
          " %w = const i8[2,2] {1 2 3 5} %b = const i32[2] {0 0}"
          " %p = qmatmul %q, %w, %b w_zp=1 mult=0.25 %y = dequantize %p scales=[2] return %y }",
          (double[]){1, 2}, (double[]){1, 10},
          /* dq = 2 dy = [2, 20]; times 0.25 (w - 1)^T, over 0.5 */
          (double[]){0.25 * 20 * 1 / 0.5, 0.25 * (2 * 2 + 20 * 4) / 0.5});
    gives(t,
          "(input %w: f32[2,1]) { %q = quantize %w scales=[0.5]"
          " %x = const i8[2,2] {1 2 3 5} %b = const i32[1] {0}"
          " %p = qmatmul %x, %q, %b x_zp=1 mult=0.25 %y = dequantize %p scales=[2] return %y }",
          (double[]){1, 2}, (double[]){1, 10},
          (double[]){0.5 * (1 * 0 + 10 * 2) / 0.5, 0.5 * (1 * 1 + 10 * 4) / 0.5});
    gives(t,
          "(input %x: f32[1,1,1,3]) { %q = quantize %x scales=[1]"
          " %w = const i8[1,1,1,2] {3 4} %b = const i32[1] {0}"
          " %p = qconv_2d %q, %w, %b w_zp=1 mult=0.5 %y = dequantize %p scales=[1] return %y }",
          (double[]){1, 2, 3}, (double[]){1, 10}, (double[]){1, 1.5 + 10, 15});
    gives(t,
          "(input %w: f32[1,1,1,2]) { %q = quantize %w scales=[1]"
          " %x = const i8[1,1,1,3] {3 4 6} %b = const i32[1] {0}"
          " %p = qconv_2d %x, %q, %b x_zp=1 mult=0.5 %y = dequantize %p scales=[1] return %y }",
          (double[]){1, 2}, (double[]){1, 10}, (double[]){0.5 * (2 + 30), 0.5 * (3 + 50)});
}

TEST(grad, an_i8_of_other_origin_has_none)
{
    agrees(t, 1e-6,
           "(input %x: f64[3], input %idx9: i8[3]) { %d = dequantize %idx9 scales=[0.5]"
           " %c = cast %d to=f64 %y = mul %c, %x return %y }");
}

TEST(grad, fake_quantisation)
{
    const double x[] = {0.5, -3, 1, 8};

    gives(t, "(input %x: f32[4]) { %y = fake_quantize %x bits=4 return %y }", x,
          (double[]){1, 2, 3, 4}, (double[]){1, 2, 3, 4});
    gives(t,
          "(input %x: f32[4]) { %s = const f32[] {1} %y = fake_quantize %x, %s bits=4"
          " scale_mode=fixed ste=clipped return %y }",
          x, (double[]){1, 2, 3, 4}, (double[]){1, 2, 3, 0});
    gives(t,
          "(input %x: f32[4]) { %s = const f32[] {1} %y = fake_quantize_lsq %x, %s bits=4 return "
          "%y }",
          x, (double[]){1, 2, 3, 4}, (double[]){1, 2, 3, 0});
    gives(t,
          "(input %s: f32[1]) { %x = const f32[4] {0.25 -3 1 8}"
          " %y = fake_quantize_lsq %x, %s bits=4 return %y }",
          (double[]){1}, (double[]){1, 2, 3, 4}, (double[]){-0.25 + 4 * 7});
}

/* Scales that the node itself updates are read after it. */
TEST(grad, fake_quantisation_with_a_state)
{
    struct central c = {0};
    ir_value wrt, dx;

    require(t,
            run_open(t, &c.s.run,
                     "rlx 1 graph (input %x: f32[2,3], state %s: f32[3])"
                     " { %y = fake_quantize %x, %s axis=1 scale_mode=ema ste=clipped return %y }",
                     NULL));
    struct ir_graph *g = ir_entry(c.s.run.mod);
    require(t, ir_find_leaf(g, rlx_cstr("x"), &wrt));
    require_ok(t, central_seed(&c, &c.s.run.diag));
    expect_ok(t, grad_walk(g, 0, c.out, c.dy, &wrt, 1, &dx, &c.s.run.diag));
    expect_eq(t, ir_node(g, dx)->op, RLX_OP_fake_quantize_backward);
    expect_eq(t, ir_node(g, dx)->in_count, 3);
    expect_ok(t, ir_verify(c.s.run.mod, &c.s.run.diag));
    run_close(&c.s.run);
}
