/* eval_ops_test.c: what moves, picks, reduces, orders, draws, quantises and fuses in ir/eval. */
#include "eval_run.h"

/* ---- movement ------------------------------------------------------------------------------ */

TEST(eval, movement)
{
    evals(t, 0,
          "%x = const i32[10] {0 1 2 3 4 5 6 7 8 9} %y = narrow %x axis=0 start=3 len=4 "
          "%s = slice %x axis=0 start=9 len=4 step=-3 %e = narrow %x axis=0 start=10 len=0 "
          "return %y, %s, %e",
          "3 4 5 6", "9 6 3 0", "");
    evals(t, 0,
          "%x = const f32[2,3] {0 1 2 3 4 5} %y = transpose %x perm=[1,0] "
          "%r = reshape %x shape=[3,-1] %v = reverse %x axes=[1] return %y, %r, %v",
          "0 3 1 4 2 5", "0 1 2 3 4 5", "2 1 0 5 4 3");
    evals(t, 0, "%x = const u8[3,1] {1 2 3} %y = expand %x shape=[2,3,4] return %y",
          "1 1 1 1 2 2 2 2 3 3 3 3 1 1 1 1 2 2 2 2 3 3 3 3");
    evals(t, 0, "%x = const u8[2,1,3] {1 2 3 4 5 6} %y = transpose %x perm=[2,0,1] return %y",
          "1 4 2 5 3 6");
    evals(t, 0,
          "%a = const i8[2,1] {1 2} %b = const i8[2,0] {} %c = const i8[2,2] {3 4 5 6} "
          "%y = concat %a, %b, %c axis=1 return %y",
          "1 3 4 2 5 6");
    evals(t, 0, "%x = const f32[2] {1 2} %y = tile %x reps=[3] %z = tile %x reps=[0] return %y, %z",
          "1 2 1 2 1 2", "");
    evals(t, 0,
          "%x = const i64[] {7} %y = transpose %x perm=[] %z = reshape %x shape=[1,1] return "
          "%y, %z",
          "7", "7");
}

TEST(eval, padding)
{
    evals(t, 0,
          "%x = const f32[3] {1 2 3} %c = pad %x before=[2] after=[1] value=-inf "
          "%r = pad %x before=[2] after=[2] mode=reflect "
          "%e = pad %x before=[2] after=[1] mode=replicate "
          "%o = pad %x before=[3] after=[2] mode=circular return %c, %r, %e, %o",
          "-inf -inf 1 2 3 -inf", "3 2 1 2 3 2 1", "1 1 1 2 3 3", "1 2 3 1 2 3 1 2");
    evals(t, 0, "%x = const i8[1,2] {1 2} %y = pad %x before=[1,0] after=[0,1] value=9 return %y",
          "9 9 9 1 2 9");
    evals(t, 0, "%x = const c64[0] {} %y = pad %x before=[1] after=[0] value=2 return %y", "2 0");
}

TEST(eval, triangles_and_resizing)
{
    evals(t, 0,
          "%x = const i8[2,3] {1 2 3 4 5 6} %u = trilu %x %l = trilu %x upper=false "
          "%d = trilu %x diagonal=1 %n = trilu %x upper=false diagonal=-1 return %u, %l, %d, %n",
          "1 2 3 0 5 6", "1 0 0 4 5 0", "0 2 3 0 0 6", "0 0 0 4 0 0");
    evals(t, 0, "%x = const i8[1,1,1,2] {1 2} %y = resize_nearest_2x %x return %y",
          "1 1 2 2 1 1 2 2");
    evals(t, 0,
          "%x = const i8[1,1,1,1,3] {1 2 3} %y = interpolate_3d %x size=[1,2,5] "
          "%z = interpolate_3d %x size=[1,1,2] return %y, %z",
          "1 1 2 2 3 1 1 2 2 3", "1 2");
}

/* ---- indexing ------------------------------------------------------------------------------ */

TEST(eval, gather_clamps)
{
    evals(t, 0,
          "%x = const f32[2,3] {1 2 3 4 5 6} %i = const i32[3] {2 0 7} "
          "%y = gather %x, %i axis=1 return %y",
          "3 1 3 6 4 6");
    evals(t, 0,
          "%x = const f32[3] {1 2 3} %i = const f32[5] {nan -5 1.9 inf -0.5} "
          "%y = gather %x, %i %j = const i64[] {-1} %s = gather %x, %j return %y, %s",
          "1 1 2 3 1", "1");
    evals(t, 0,
          "%x = const i8[3,2] {1 2 3 4 5 6} %i = const u8[2,2] {2 0 1 1} %y = gather %x, %i "
          "return %y",
          "5 6 1 2 3 4 3 4");
    evals(t, 0, "%x = const f32[0] {} %i = const i32[0] {} %y = gather %x, %i return %y", "");
}

TEST(eval, scatters_drop)
{
    evals(t, 0,
          "%g = const f32[2,3] {1 1 1 1 1 1} %i = const i32[3] {2 0 7} "
          "%y = gather_backward %g, %i axis=1 table_dim=3 return %y",
          "1 0 1 1 0 1");
    evals(t, 0,
          "%u = const f32[4,2] {1 1 2 2 4 4 8 8} %i = const i32[4] {0 2 0 -1} "
          "%y = scatter_add %u, %i out_dim=3 return %y",
          "5 5 0 0 2 2");
    evals(t, 0,
          "%u = const i8[2] {100 100} %i = const f32[2] {0 nan} %j = const i32[] {1} "
          "%k = const i32[2] {0 0} %y = scatter_add %u, %i out_dim=1 "
          "%z = scatter_add %u, %j out_dim=2 %w = scatter_add %u, %k out_dim=1 "
          "return %y, %z, %w",
          "100", "0 0 100 100", "-56");
    evals(t, 0,
          "%u = const f32[2] {1 2} %i = const i32[2] {0 0} %y = scatter_add %u, %i out_dim=0 "
          "return %y",
          "");
}

TEST(eval, elements_by_index)
{
    evals(t, 0,
          "%x = const f32[2,3] {1 2 3 4 5 6} %i = const i32[1,4] {2 -1 9 1} "
          "%y = gather_elements %x, %i axis=1 return %y",
          "3 1 3 2");
    evals(t, 0,
          "%x = const f32[3] {1 2 3} %i = const i32[4] {1 1 5 -1} %u = const f32[4] {10 20 30 nan} "
          "%n = scatter_elements %x, %i, %u "
          "%a = scatter_elements %x, %i, %u reduction=add "
          "%m = scatter_elements %x, %i, %u reduction=mul "
          "%h = scatter_elements %x, %i, %u reduction=max "
          "%l = scatter_elements %x, %i, %u reduction=min return %n, %a, %m, %h, %l",
          "1 20 3", "1 32 3", "1 400 3", "1 20 3", "1 2 3");
    evals(t, 0,
          "%x = const f32[2] {1 2} %i = const i32[1] {0} %u = const f32[1] {nan} "
          "%h = scatter_elements %x, %i, %u reduction=max return %h",
          "nan 2");
}

TEST(eval, slices_by_coordinate)
{
    evals(t, 0,
          "%x = const i8[2,2] {1 2 3 4} %i = const i32[3,2] {0 1 1 0 9 -9} %y = gather_nd %x, %i "
          "%j = const i32[1,1] {1} %r = gather_nd %x, %j %k = const i32[2,1] {1 0} "
          "%b = gather_nd %x, %k batch_dims=1 %e = const i32[2,0] {} %a = gather_nd %x, %e "
          "return %y, %r, %b, %a",
          "2 3 3", "3 4", "2 3", "1 2 3 4 1 2 3 4");
    evals(t, 0,
          "%x = const i8[2,2] {1 2 3 4} %i = const i32[3,1] {1 1 2} "
          "%u = const i8[3,2] {10 20 30 40 50 60} %n = scatter_nd %x, %i, %u "
          "%a = scatter_nd %x, %i, %u reduction=add %j = const i32[2,2] {0 1 1 -1} "
          "%v = const i8[2] {7 8} %s = scatter_nd %x, %j, %v return %n, %a, %s",
          "1 2 30 40", "1 2 43 64", "1 7 3 4");
}

/* ---- reductions ---------------------------------------------------------------------------- */

TEST(eval, reductions)
{
    evals(t, 0,
          "%x = const f32[2,2] {1 2 3 4} %p = reduce_prod %x axes=[0,1] "
          "%s = reduce_sum %x axes=[0] %m = reduce_mean %x axes=[-1] keep_dim=true "
          "%c = reduce_sum %x axes=[] %h = reduce_max %x axes=[1] %l = reduce_min %x axes=[0] "
          "return %p, %s, %m, %c, %h, %l",
          "24", "4 6", "1.5 3.5", "1 2 3 4", "2 4", "1 2");
    evals(t, 0,
          "%x = const f32[2,0] {} %s = reduce_sum %x axes=[1] %m = reduce_mean %x axes=[1] "
          "%h = reduce_max %x axes=[1] %l = reduce_min %x axes=[1] %p = reduce_prod %x axes=[1] "
          "%n = reduce_sum %x axes=[0] return %s, %m, %h, %l, %p, %n",
          "0 0", "nan nan", "-inf -inf", "inf inf", "1 1", "");
    evals(t, 0,
          "%x = const i8[0] {} %h = reduce_max %x axes=[0] %l = reduce_min %x axes=[0] "
          "%u = const u16[0] {} %v = reduce_max %u axes=[0] %w = reduce_min %u axes=[0] "
          "%b = const bool[0] {} %o = reduce_max %b axes=[0] %a = reduce_min %b axes=[0] "
          "return %h, %l, %v, %w, %o, %a",
          "-128", "127", "0", "65535", "0", "1");
    evals(t, 0,
          "%x = const f32[3] {3 nan 1} %h = reduce_max %x axes=[0] %l = reduce_min %x axes=[0] "
          "return %h, %l",
          "nan", "nan");
    evals(t, 0,
          "%x = const i8[3] {100 100 3} %s = reduce_sum %x axes=[0] %p = reduce_prod %x axes=[0] "
          "return %s, %p",
          "-53", "48");
    evals(t, 0,
          "%x = const c64[2] {1 2 3 4} %s = reduce_sum %x axes=[0] %m = reduce_mean %x axes=[0] "
          "%p = reduce_prod %x axes=[0] %i = const c64[1] {inf 1} %q = reduce_prod %i axes=[0] "
          "return %s, %m, %p, %q",
          "4 6", "2 3", "-5 10", "inf 1");
    evals(t, 0,
          "%x = const i32[2,1,2] {1 2 3 4} %s = reduce_sum %x axes=[2,0] keep_dim=true return %s",
          "10");
    /* what f32 would lose on the way */
    evals(t, 0, "%x = const f32[3] {16777216 1 1} %s = reduce_sum %x axes=[0] return %s",
          "16777218");
}

TEST(eval, extremes)
{
    evals(t, 0, "%x = const f32[3] {1 nan 7} %h = argmax %x %l = argmin %x return %h, %l", "1",
          "1");
    evals(t, 0,
          "%x = const f32[2,3] {3 1 3 1 5 1} %h = argmax %x axis=1 %l = argmin %x axis=1 "
          "index_dtype=f32 %k = argmax %x axis=0 keep_dim=true return %h, %l, %k",
          "0 1", "1 0", "0 1 0");
    evals(t, 0,
          "%x = const f32[2] {-inf -inf} %h = argmax %x %b = const bool[3] {false true true} "
          "%i = argmax %b %u = const u64[2] {1 18446744073709551615} %j = argmax %u return "
          "%h, %i, %j",
          "0", "1", "1");
}

TEST(eval, orderings)
{
    evals(t, 0,
          "%x = const f32[4] {3 1 3 2} %i = topk %x k=3 %v = topk %x k=3 result=values "
          "%z = topk %x k=0 return %i, %v, %z",
          "0 2 3", "3 3 2", "");
    evals(t, 0, "%x = const f32[4] {-inf nan -inf inf} %i = topk %x k=4 return %i", "1 3 0 2");
    evals(t, 0,
          "%x = const f32[6] {2 nan 1 2 nan -inf} %s = sort %x %d = sort %x descending=true "
          "%a = argsort %x %b = argsort %x descending=true return %s, %d, %a, %b",
          "-inf 1 2 2 nan nan", "nan nan 2 2 1 -inf", "5 2 0 3 1 4", "1 4 0 3 2 5");
    evals(t, 0,
          "%x = const i8[3,2] {3 1 2 2 1 3} %s = sort %x axis=0 %k = topk %x k=1 axis=0 "
          "index_dtype=i64 return %s, %k",
          "1 1 2 2 3 3", "0 2");
    evals(t, 0, "%x = const u64[2] {9223372036854775808 1} %a = argsort %x return %a", "1 0");
    evals(t, 0, "%x = const f32[0,3] {} %s = sort %x axis=0 %a = argsort %x axis=1 return %s, %a",
          "", "");
}

TEST(eval, a_long_sort_is_stable)
{
    enum { N = 1001 };
    struct eval_cell x[N] = {{0}};
    int64_t order[N], spare[N];

    for (int64_t i = 0; i < N; i++)
        x[i].i = i * 7919 % 10;
    for (int down = 0; down < 2; down++) {
        eval_order_line(x, N, 1, RLX_DTYPE_i32, down, order, spare);
        for (int64_t i = 1; i < N; i++) {
            int64_t a = x[order[i - 1]].i, b = x[order[i]].i;
            expect(t, a == b ? order[i - 1] < order[i] : down ? a > b : a < b);
        }
    }
}

TEST(eval, softmax_rows)
{
    evals(t, 1e-7, "%x = const f32[3] {1 2 3} %y = softmax %x return %y",
          "0.09003057 0.24472847 0.66524096");
    evals(t, 0, "%x = const f32[4,2] {-inf -inf nan 1 inf 1 -inf 5} %y = softmax %x return %y",
          "0 0 nan nan nan nan 0 1");
    evals(t, 1e-7, "%x = const f32[2,2] {1000 -1000 1000 -1000} %y = softmax %x axis=0 return %y",
          "0.5 0.5 0.5 0.5");
    evals(t, 0, "%x = const f32[2,0] {} %y = softmax %x return %y", "");
}

TEST(eval, running_values)
{
    evals(t, 0,
          "%x = const f32[3] {1 2 3} %e = cumsum %x exclusive=true %i = cumsum %x "
          "%b = cumsum_backward %x exclusive=true %c = cumsum_backward %x "
          "%p = cumprod %x %q = cumprod %x exclusive=true return %e, %i, %b, %c, %p, %q",
          "0 1 3", "1 3 6", "5 3 0", "6 5 3", "1 2 6", "1 1 2");
    evals(t, 0,
          "%x = const f32[4] {1 nan 3 -1} %m = cummax %x %n = cummax %x exclusive=true return "
          "%m, %n",
          "1 nan nan nan", "-inf 1 nan nan");
    evals(t, 0,
          "%x = const i8[2,2] {100 -5 100 7} %s = cumsum %x axis=0 %m = cummax %x axis=0 "
          "exclusive=true return %s, %m",
          "100 -5 -56 2", "-128 -128 100 -5");
    evals(t, 0, "%x = const f32[0] {} %s = cumsum %x return %s", "");
}

/* ---- random -------------------------------------------------------------------------------- */

TEST(eval, sampling)
{
    evals(t, 0,
          "%x = const f32[2,4] {0 0 0 0 0 0 0 0} %y = sample %x top_k=4 seed=42 "
          "%o = const i32[] {7} %z = sample %x, %o top_k=4 seed=42 return %y",
          "3 2");
    evals(t, 0,
          "%x = const f32[4] {0 0 0 0} %o = const i64[1] {7} %z = sample %x, %o seed=42 "
          "index_dtype=f32 return %z",
          "0");
    evals(t, 0, "%x = const f32[2,4] {0 0 0 9 1 2 3 4} %y = sample %x seed=42 return %y", "3 2");
    evals(t, 0,
          "%x = const f16[3,3] {nan 5 5 -inf -inf -inf 1 nan 0} %y = sample %x top_k=1 "
          "%z = sample %x temperature=0 return %y, %z",
          "1 0 0", "1 0 0");
    evals(t, 0,
          "%x = const f32[3,3] {-inf -inf nan 1 inf inf nan nan 2} %y = sample %x seed=1 return %y",
          "0 1 2");
    /* top_p keeps the one that reaches it; top_k exactly as many, ties by index */
    evals(t, 0, "%x = const f32[8] {0 0 0 0 0 0 0 20} %y = sample %x top_p=0.5 seed=3 return %y",
          "7");
    evals(t, 0, "%x = const f32[4] {0 0 0 0} %y = sample %x top_p=0.2 seed=42 return %y", "0");
    evals(t, 0, "%x = const f32[4] {0 0 0 0} %y = sample %x top_k=3 seed=42 return %y", "2");
}

TEST(eval, random_tensors)
{
    evals(t, 1e-7,
          "%x = rng_uniform shape=[2] seed=42 low=-1 high=3 %y = rng_uniform shape=[0] "
          "%n = rng_normal shape=[3] seed=42 mean=10 scale=0 return %x, %y, %n",
          "1.4391953945159912 0.16486144065856934", "", "10 10 10");
}

TEST(eval, normal_numbers_are_normal)
{
    struct run r;
    double sum = 0, squares = 0;
    enum { N = 20000 };

    require(t,
            run_open(t, &r, "%x = rng_normal shape=[20000] seed=7 mean=3 scale=2 return %x", NULL));
    if (expect_ok(t, run_graph(&r, NULL))) {
        for (int64_t k = 0; k < N; k++) {
            double x = run_output(&r, 0)->at[k].f - 3;
            sum += x;
            squares += x * x;
        }
        expect_near(t, sum / N, 0, 0.06);
        expect_near(t, squares / N, 4, 0.2);
    }
    run_close(&r);
}

/* ---- losses and quantisation --------------------------------------------------------------- */

TEST(eval, cross_entropy)
{
    evals(t, 1e-7,
          "%x = const f32[3,3] {1 2 3 1 2 3 1 2 3} %l = const i32[3] {2 -1 3} %g = const f32[3] {1 "
          "1 1} "
          "%y = softmax_cross_entropy_with_logits %x, %l "
          "%d = softmax_cross_entropy_backward %x, %l, %g return %y, %d",
          "0.407605964 0 0", "0.09003057 0.24472847 -0.33475904 0 0 0 0 0 0");
    evals(t, 1e-7,
          "%x = const f32[2,3] {1 2 3 1000 0 -1000} %p = const f32[2,3] {0 0 1 0 1 0} "
          "%y = softmax_cross_entropy %x, %p return %y",
          "0.407605964 1000");
    evals(t, 0,
          "%x = const f32[2,0] {} %l = const f32[2] {nan 0} "
          "%y = softmax_cross_entropy_with_logits %x, %l %s = softmax_cross_entropy %x, %x "
          "return %y, %s",
          "0 0", "0 0");
}

TEST(eval, quantize_and_back)
{
    evals(t, 0,
          "%x = const f32[7] {0.25 0.75 1.25 1000 -1000 nan -0.75} "
          "%y = quantize %x scales=[0.5] zero_points=[3] return %y",
          "3 5 5 127 -128 0 1");
    evals(t, 0,
          "%x = const i8[2,2] {1 2 3 -128} %y = dequantize %x axis=1 scales=[0.5,2] "
          "zero_points=[1,-1] return %y",
          "0 6 1 -254");
    /* a scale below the least is the least */
    evals(t, 1e-18, "%x = const i8[2] {3 -128} %y = dequantize %x scales=[-1] return %y",
          "3e-12 -128e-12");
}

TEST(eval, fake_quantisation)
{
    evals(t, 1e-7,
          "%x = const f32[2,2] {1 7 -0.6 0.35} %y = fake_quantize %x bits=4 axis=0 "
          "%s = const f32[] {2} %f = fake_quantize %x, %s bits=2 scale_mode=fixed "
          "%l = fake_quantize_lsq %x, %s bits=8 return %y, %f, %l",
          "1 7 -0.6 0.342857143", "0 2 -0 0", "0 8 -0 0");
    evals(t, 0,
          "%x = const f32[3] {0 0 0} %y = fake_quantize %x %n = const f32[2] {nan 1} "
          "%z = fake_quantize %n return %y, %z",
          "0 0 0", "nan nan");
    evals(t, 1e-7,
          "%x = const f32[3] {0.5 3 -20} %s = const f32[1] {2} %g = const f32[3] {1 10 100} "
          "%i = fake_quantize_backward %x, %s, %g bits=4 scale_mode=fixed "
          "%c = fake_quantize_backward %x, %s, %g bits=4 scale_mode=fixed ste=clipped "
          "%h = fake_quantize_backward %x, %s, %g bits=4 scale_mode=fixed ste=hard_tanh "
          "%t = fake_quantize_backward %x, %s, %g bits=4 scale_mode=fixed ste=tanh "
          "%p = fake_quantize_backward %x, %g bits=4 ste=clipped "
          "%dx = fake_quantize_lsq_backward_x %x, %s, %g bits=4 "
          "%ds = fake_quantize_lsq_backward_scale %x, %s, %g bits=4 "
          "return %i, %c, %h, %t, %p, %dx, %ds",
          "1 10 100", "1 10 0", "0.964285714 7.857142857 0",
          "0.940014849 1.807066389 8.244614546e-07", "1 10 100", "1 10 0", "-695.25");
}

/* ---- regions ------------------------------------------------------------------------------- */

TEST(eval, regions)
{
    evals(t, 0,
          "%x = const f32[2,3] {-1 0 1 2 -3 4} %b = const f32[3] {1 1 1} %s = const f32[] {2} "
          "%y = elementwise_region %x, %b, %s chain=[[add,i0,i1],[relu,s0],[mul,s1,i2]] return %y",
          "0 2 4 6 0 10");
    evals(t, 0,
          "%x = const f32[1,1,1,2] {1 2} %b = const f32[1,1,2,4] {10 20 30 40 50 60 70 80} "
          "%y = elementwise_region %x, %b chain=[[add,i0,i1]] prologue=resize_nearest_2x return %y",
          "11 21 32 42 51 61 72 82");
    evals(t, 0,
          "%x = const i32[3] {1 -2 3} %f = const f32[3] {0.5 0.5 nan} "
          "%y = elementwise_region %x, %f "
          "chain=[[add,i0,i1],[gt,s0,i0],[where,s1,i0,s0],[cast,s2,i8]] "
          "return %y",
          "1 -2 0");
    evals(t, 0,
          "%a = const f32[1,2] {1 -2} %b = const f32[1,2] {3 -4} "
          "%y = batch_elementwise_region %a, %b chain=[[abs,i0],[neg,s0]] return %y",
          "-1 -2 -3 -4");
    evals(t, 0,
          "%a = const f32[1,1,1,1] {1} %b = const f32[1,1,1,1] {2} "
          "%y = batch_elementwise_region %a, %b chain=[[neg,i0]] prologue=resize_nearest_2x "
          "return %y",
          "-1 -1 -1 -1 -2 -2 -2 -2");
    evals(t, 0,
          "%a = const i8[1,1,1,2] {1 2} %y = transform_region %a "
          "chain=[[resize_nearest_2x,i0],[resize_nearest_2x,s0]] return %y",
          "1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2");
}

TEST(eval, regions_round_where_their_ops_would)
{
    /* f32 after each step; below f32 only where a cast says so */
    evals(t, 0,
          "%x = const f32[1] {16777216} %i = const f32[1] {1} "
          "%y = elementwise_region %x, %i chain=[[add,i0,i1],[sub,s0,i0]] return %y",
          "0");
    evals(t, 0,
          "%x = const f16[1] {2048} %i = const f16[1] {1} "
          "%y = elementwise_region %x, %i chain=[[add,i0,i1],[sub,s0,i0]] "
          "%z = elementwise_region %x, %i chain=[[add,i0,i1],[cast,s0,f16],[sub,s1,i0]] "
          "return %y, %z",
          "1", "0");
    evals(t, 0,
          "%x = const f32[1] {1.0001} %y = elementwise_region %x chain=[[cast,i0,f16],"
          "[cast,s0,f32]] return %y",
          "1");
    evals(t, 0, "%x = const f32[0,3] {} %y = elementwise_region %x chain=[[neg,i0]] return %y", "");
}
