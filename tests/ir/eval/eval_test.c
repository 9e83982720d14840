/* eval_test.c: what ops mean, element by element: the worked examples of ops-core.md 23,
 * and values that are easily got wrong. Here are cells and elementwise ops; the other eval_ tests
 * follow. */
#include "eval_run.h"

/* ---- the cells themselves ------------------------------------------------------------------ */

TEST(eval, bytes_of_every_type_come_back)
{
    static const unsigned char bytes[16] = {0x00, 0x3c, 0x80, 0x3f, 0x01, 0x80, 0xfe, 0x7f,
                                            0xff, 0xff, 0x00, 0x00, 0x80, 0x12, 0x34, 0x56};
    struct arena a;
    struct diag d;

    arena_init(&a, mem_default());
    diag_init(&d, "eval");
    for (int dtype = 0; dtype < RLX_DTYPE_count; dtype++) {
        int64_t count = 16 / (int64_t)rlx_dtype_size((rlx_dtype)dtype);
        struct ir_type type = {.dtype = (rlx_dtype)dtype, .rank = 1, .dim = {count}};
        struct eval_tensor x;
        unsigned char back[16];

        test_note(t, "%s", rlx_dtype_name((rlx_dtype)dtype));
        require_ok(t, eval_tensor_new(&a, &type, &x, &d));
        eval_load(&x, bytes);
        eval_round(&x); /* what was loaded is already round */
        eval_store(&x, back);
        for (size_t i = 0; i < sizeof bytes; i++)
            expect_eq(t, back[i], dtype == RLX_DTYPE_bool ? bytes[i] != 0 : bytes[i]);
    }
    arena_free(&a);
}

TEST(eval, rounds_once_from_double)
{
    struct eval_cell x = {.f = 1 + 0x1p-11 + 0x1p-40}; /* just above a tie of f16 */

    expect_near(t, eval_cell_round(RLX_DTYPE_f16, x).f, 1 + 0x1p-10, 0);
    x.f = 1 + 0x1p-8 + 0x1p-40; /* and of bf16 */
    expect_near(t, eval_cell_round(RLX_DTYPE_bf16, x).f, 1 + 0x1p-7, 0);
    x.f = 65520;
    expect_near(t, eval_cell_round(RLX_DTYPE_f16, x).f, INFINITY, 0);
    x.f = 65519.99;
    expect_near(t, eval_cell_round(RLX_DTYPE_f16, x).f, 65504, 0);
    x.f = 0x1p-25; /* half of the least f16: to even, which is 0 */
    expect_near(t, eval_cell_round(RLX_DTYPE_f16, x).f, 0, 0);
    x.f = 0x1.8p-25;
    expect_near(t, eval_cell_round(RLX_DTYPE_f16, x).f, 0x1p-24, 0);
    x.f = 1e300;
    expect_near(t, eval_cell_round(RLX_DTYPE_f32, x).f, INFINITY, 0);
    expect_near(t, eval_cell_round(RLX_DTYPE_f64, x).f, 1e300, 0);
}

TEST(eval, indices_out_of_range_stay_out_of_range)
{
    struct eval_cell at[2] = {{.f = NAN}};
    struct eval_tensor x = {.type = {.dtype = RLX_DTYPE_f32, .rank = 1, .dim = {1}}, .count = 1};

    x.at = at;
    expect_eq(t, eval_index(&x, 0), INT64_MIN);
    at[0].f = -0.9;
    expect_eq(t, eval_index(&x, 0), 0);
    at[0].f = -INFINITY;
    expect(t, eval_index(&x, 0) < 0);
    at[0].f = 1e30;
    expect_eq(t, eval_index(&x, 0), INT64_MAX);
    x.type.dtype = RLX_DTYPE_u64;
    at[0].i = -1;
    expect_eq(t, eval_index(&x, 0), INT64_MAX);
    expect_eq(t, eval_clamp_index(INT64_MIN, 3), 0);
    expect_eq(t, eval_clamp_index(INT64_MAX, 3), 2);
    expect_eq(t, eval_clamp_index(1, 3), 1);
}

TEST(eval, families_are_found)
{
    expect(t, eval_fn_of(FAMILY_none) == NULL);
    expect(t, eval_fn_of(FAMILY_count) == NULL);
    expect(t, eval_fn_of(FAMILY_binary) == eval_binary);
    expect(t, eval_fn_of(FAMILY_const_) == eval_const_);
    expect(t, eval_fn_of(FAMILY_scan_backward) == eval_scan_backward);
}

/* ---- elementwise --------------------------------------------------------------------------- */

TEST(eval, binary_broadcasts)
{
    evals(t, 0,
          "%a = const f32[2,1,3] {0 1 2 10 11 12} %b = const f32[2,1] {100 200} %y = add %a, %b "
          "return %y",
          "100 101 102 200 201 202 110 111 112 210 211 212");
    evals(t, 0, "%a = const f32[0,3] {} %b = const f32[1,3] {1 2 3} %y = mul %a, %b return %y", "");
    evals(t, 0, "%a = const f32[] {2} %b = const f32[1,1] {5} %y = sub %a, %b return %y", "-3");
}

TEST(eval, binary_special_values)
{
    evals(t, 0,
          "%a = const f32[4] {nan 1 inf -inf} %b = const f32[4] {1 nan -inf nan} "
          "%x = max %a, %b %n = min %a, %b return %x, %n",
          "nan nan inf nan", "nan nan -inf nan");
    evals(t, 0,
          "%a = const f32[6] {nan 1 -8 -0 0 -8} %b = const f32[6] {0 nan 0.5 0.5 -1 3} "
          "%y = pow %a, %b return %y",
          "1 1 nan 0 inf -512");
    evals(t, 0,
          "%a = const f32[4] {-7 7 5 inf} %b = const f32[4] {3 -3 inf 2} %y = mod %a, %b return %y",
          "-1 1 5 nan");
    evals(t, 0, "%a = const f32[3] {1 -1 0} %b = const f32[3] {0 0 0} %y = div %a, %b return %y",
          "inf -inf nan");
    evals(t, 1e-7, "%a = const f32[2] {1 -0} %b = const f32[2] {-1 -1} %y = atan2 %a, %b return %y",
          "2.356194490192345 -3.141592653589793");
}

TEST(eval, integers_wrap_and_nothing_is_undefined)
{
    evals(t, 0,
          "%a = const i8[6] {127 -128 -128 7 -7 5} %b = const i8[6] {1 1 -1 2 2 0} "
          "%s = add %a, %b %d = sub %a, %b %p = mul %a, %b %q = div %a, %b %m = mod %a, %b "
          "return %s, %d, %p, %q, %m",
          "-128 -127 127 9 -5 5", "126 127 -127 5 -9 5", "127 -128 -128 14 -14 0",
          "127 -128 -128 3 -3 0", "0 0 0 1 -1 0");
    evals(t, 0,
          "%a = const u8[3] {250 3 7} %b = const u8[3] {10 5 0} "
          "%s = add %a, %b %d = sub %a, %b %q = div %a, %b return %s, %d, %q",
          "4 8 7", "240 254 7", "25 0 0");
    evals(t, 0,
          "%a = const i16[6] {-5 -5 -5 1 1 3} %b = const i16[6] {1 16 -1 15 16 1} "
          "%l = shl %a, %b %r = shr %a, %b return %l, %r",
          "-10 0 0 -32768 0 6", "-3 -1 -1 0 0 1");
    evals(t, 0, "%a = const u8[2] {255 255} %b = const u8[2] {7 8} %r = shr %a, %b return %r",
          "1 0");
    evals(t, 0,
          "%a = const i32[2] {12 -1} %b = const i32[2] {10 7} "
          "%x = bit_and %a, %b %o = bit_or %a, %b %e = bit_xor %a, %b return %x, %o, %e",
          "8 7", "14 -1", "6 -8");
    evals(t, 0,
          "%a = const bool[4] {true true false false} %b = const bool[4] {true false true false} "
          "%x = max %a, %b %n = min %a, %b %e = bit_xor %a, %b return %x, %n, %e",
          "1 1 1 0", "1 0 0 0", "0 1 1 0");
}

TEST(eval, wide_integers_are_exact)
{
    struct run r;

    require(t, run_open(t, &r,
                        "%a = const u64[2] {18446744073709551615 9223372036854775808} "
                        "%b = const u64[2] {3 1} %x = max %a, %b %q = div %a, %b %g = gt %a, %b "
                        "%c = const i64[1] {-9223372036854775808} %m = const i64[1] {-1} "
                        "%p = div %c, %m %o = mod %c, %m %s = abs %c return %x",
                        NULL));
    if (expect_ok(t, run_graph(&r, NULL))) {
        expect_eq_u64(t, r.result[2].at[0].i, UINT64_MAX);
        expect_eq_u64(t, r.result[2].at[1].i, UINT64_C(1) << 63);
        expect_eq_u64(t, r.result[3].at[0].i, UINT64_MAX / 3);
        expect_eq(t, r.result[4].at[1].i, 1);
        expect_eq(t, r.result[7].at[0].i, INT64_MIN);
        expect_eq(t, r.result[8].at[0].i, 0);
        expect_eq(t, r.result[9].at[0].i, INT64_MIN);
    }
    run_close(&r);
}

TEST(eval, complex_arithmetic)
{
    evals(t, 1e-7,
          "%a = const c64[2] {1 2 3 -4} %b = const c64[2] {-3 1 0 2} "
          "%s = add %a, %b %p = mul %a, %b %q = div %a, %b %n = neg %a %c = conjugate %a "
          "%z = complex_norm_sq %a return %s, %p, %q, %n, %c, %z",
          "-2 3 3 -2", "-5 -5 8 6", "-0.1 -0.7 -2 -1.5", "-1 -2 -3 4", "1 -2 3 4", "5 25");
    evals(t, 0,
          "%a = const c64[2] {1 nan 1 2} %b = const c64[2] {1 nan 1 2} %e = eq %a, %b "
          "%n = ne %a, %b return %e, %n",
          "0 1", "1 0");
}

TEST(eval, compare_with_nan)
{
    evals(t, 0,
          "%a = const f32[4] {nan -0 1 2} %b = const f32[4] {nan 0 2 1} %e = eq %a, %b "
          "%n = ne %a, %b %l = lt %a, %b %k = le %a, %b %g = gt %a, %b %h = ge %a, %b "
          "return %e, %n, %l, %k, %g, %h",
          "0 1 0 0", "1 0 1 1", "0 0 1 0", "0 1 1 0", "0 0 0 1", "0 1 0 1");
}

TEST(eval, casts)
{
    evals(t, 0, "%x = const f32[7] {127.9 300 -1.9 nan -300 inf -inf} %y = cast %x to=i8 return %y",
          "127 127 -1 0 -128 127 -128");
    evals(t, 0, "%x = const f32[3] {-3 256 255.9} %y = cast %x to=u8 return %y", "0 255 255");
    evals(t, 0,
          "%x = const i32[3] {257 -1 -129} %u = cast %x to=u8 %i = cast %x to=i8 return %u, %i",
          "1 255 127", "1 -1 127");
    evals(t, 0, "%x = const f32[4] {nan 0 -0 0.1} %y = cast %x to=bool return %y", "1 0 0 1");
    evals(t, 0,
          "%x = const bool[2] {true false} %y = cast %x to=f16 %c = cast %x to=c64 return %y, %c",
          "1 0", "1 0 0 0");
    evals(t, 0, "%x = const f64[2] {1e10 -1e-9} %y = cast %x to=f16 return %y", "inf -0");
    /* a narrowing cast is not a no-op */
    evals(t, 0, "%x = const f32[1] {1.0001} %h = cast %x to=f16 %y = cast %h to=f32 return %y",
          "1");
    /* one rounding, whichever way the numbers go */
    evals(t, 0,
          "%x = const i64[2] {1157425104234217473 -1157425104234217473} %y = cast %x to=bf16 "
          "return %y",
          "1161928703861587968 -1161928703861587968");
    evals(t, 0, "%x = const i64[1] {1152921573326323713} %y = cast %x to=f32 return %y",
          "1152921642045800448");
    evals(t, 0,
          "%x = const u64[1] {18446744073709551615} %y = cast %x to=f32 %z = cast %x to=f16 "
          "return %y, %z",
          "18446744073709551616", "inf");
}

TEST(eval, activations)
{
    evals(t, 1e-9,
          "%x = const f64[5] {-3 -1 0.5 1 3} %a = gelu %x %b = gelu_approx %x %c = silu %x "
          "return %a, %b, %c",
          "-0.004049694 -0.158655254 0.345731231 0.841344746 2.995950306",
          "-0.003637392 -0.158808009 0.345714010 0.841191991 2.996362608",
          "-0.142277620 -0.268941421 0.311229666 0.731058579 2.857722380");
    evals(t, 0,
          "%x = const f32[3] {-inf inf nan} %a = gelu %x %b = gelu_approx %x %c = silu %x "
          "return %a, %b, %c",
          "0 inf nan", "0 inf nan", "0 inf nan");
    evals(t, 1e-12, "%x = const f64[2] {-10 -5.5} %y = gelu %x return %y",
          "-7.619853024160593e-23 -1.0444259356238256e-07");
    evals(t, 0, "%x = const f32[5] {-2.5 -0.5 0.5 1.5 2.5} %y = round %x return %y", "-2 -0 0 2 2");
    evals(t, 0, "%x = const f32[4] {nan -1 -0 2} %y = relu %x %s = sign %x return %y, %s",
          "nan 0 0 2", "nan -1 0 1");
    evals(t, 0,
          "%x = const f32[4] {0 -0 -1 4} %y = rsqrt %x %s = sqrt %x %l = log %x %r = recip %x "
          "return %y, %s, %r",
          "inf inf nan 0.5", "0 -0 nan 2", "inf -inf -1 0.25");
    evals(t, 1e-6,
          "%x = const f32[4] {-1000 1000 -2 nan} %a = sigmoid %x %b = softplus %x "
          "%c = log_sigmoid %x %d = tanh %x return %a, %b, %c, %d",
          "0 1 0.119202922 nan", "0 1000 0.126928011 nan", "-1000 0 -2.126928011 nan",
          "-1 1 -0.964027580 nan");
    evals(t, 1e-6,
          "%x = const f32[4] {-4 -1 1 4} %a = hard_swish %x %b = hard_sigmoid %x %c = elu %x "
          "%d = softsign %x %e = mish %x return %a, %b, %c, %d, %e",
          "0 -0.333333333 0.666666667 4", "0 0.333333333 0.666666667 1",
          "-0.981684361 -0.632120559 1 4", "-0.8 -0.5 0.5 0.8",
          "-0.072591741 -0.303401461 0.865098388 3.997412807");
    evals(t, 0,
          "%x = const i8[3] {-128 -1 5} %a = abs %x %n = neg %x %r = relu %x return %a, %n, %r",
          "-128 1 5", "-128 1 -5", "0 0 5");
    evals(t, 0, "%x = const bool[2] {true false} %y = not %x return %y", "0 1");
}

TEST(eval, slopes_are_derivatives)
{
    static const double at[] = {-3.5, -1.25, -0.3, 0.2, 0.7, 1.9, 3.2};

    for (int op = RLX_OP_relu; op <= RLX_OP_log_sigmoid; op++) {
        rlx_op kind = (rlx_op)op;
        if (op_info(kind)->family != FAMILY_unary || kind == RLX_OP_round)
            continue;
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            double x = at[i], h = 1e-6;
            double want = (eval_unary_value(kind, x + h) - eval_unary_value(kind, x - h)) / (2 * h);
            double got = eval_unary_slope(kind, x);
            if (isnan(want))
                continue; /* not defined there */
            test_note(t, "%s at %g", op_info(kind)->name, x);
            expect_near(t, got, want, 1e-7 * fmax(1, fabs(want)));
        }
    }
    test_note(t, "%s", "");
    expect_near(t, eval_unary_slope(RLX_OP_gelu, 1), 1.083315471, 1e-9);
    expect_near(t, eval_unary_slope(RLX_OP_gelu_approx, 1), 1.082964084, 1e-9);
    expect_near(t, eval_unary_slope(RLX_OP_sqrt, 0), 0, 0);
    expect_near(t, eval_unary_slope(RLX_OP_rsqrt, 0), 0, 0);
    expect_near(t, eval_unary_slope(RLX_OP_round, 0.4), 1, 0);
    expect_near(t, eval_unary_slope(RLX_OP_relu, 0), 0, 0);
    expect_near(t, eval_unary_slope(RLX_OP_gelu_approx, 1e200), 1, 0);
    expect_near(t, eval_unary_slope(RLX_OP_mish, -1e300), 0, 0);
}

TEST(eval, gradients_of_activations)
{
    evals(t, 1e-7,
          "%x = const f32[3] {1 -1 0} %g = const f32[3] {2 3 4} %r = relu_backward %x, %g "
          "%e = activation_backward %x, %g kind=exp return %r, %e",
          "2 0 0", "5.43656365691809 1.103638323514327 4");
    evals(t, 0,
          "%z = const c64[1] {1 2} %g = const c64[1] {3 4} "
          "%y = activation_backward %z, %g kind=neg return %y",
          "-3 -4");
}

TEST(eval, where_clamp_stop_gradient)
{
    evals(t, 0,
          "%c = const f32[3] {nan 0 2} %a = const f32[3] {1 nan 3} %b = const f32[1] {7} "
          "%y = where %c, %a, %b return %y",
          "1 7 3");
    evals(t, 0, "%x = const f32[5] {nan -inf inf 0.5 9} %y = clamp %x min=-1 max=1 return %y",
          "nan -1 1 0.5 1");
    evals(t, 0,
          "%x = const i8[4] {-128 -1 3 127} %y = clamp %x min=-1.9 max=inf %u = clamp %x "
          "min=-inf max=2 return %y, %u",
          "-1 -1 3 127", "-128 -1 2 2");
    evals(t, 0, "%x = const u8[2] {0 200} %y = clamp %x min=-5 max=100 return %y", "0 100");
    evals(t, 0, "%x = const i32[2] {3 4} %y = stop_gradient %x return %y", "3 4");
}

TEST(eval, fma_rounds_once)
{
    /* The product lies on a tie of f32; only a c too small for a double to notice breaks it. */
    evals(t, 0,
          "%a = const f32[3] {1.000244140625 1.000244140625 1.000244140625} "
          "%c = const f32[3] {8.271806125530277e-25 -8.271806125530277e-25 0} %y = fma %a, %a, %c "
          "return %y",
          "1.00048840045928955078125 1.00048828125 1.00048828125");
    evals(t, 0,
          "%a = const f32[1] {-1.000244140625} %b = const f32[1] {1.000244140625} "
          "%c = const f32[2] {8.271806125530277e-25 -8.271806125530277e-25} %y = fma %a, %b, %c "
          "return %y",
          "-1.00048828125 -1.00048840045928955078125");
    /* In f64 the low half of the product survives. */
    evals(t, 0,
          "%a = const f64[1] {1.0000000074505806} %c = const f64[1] {-1.0000000149011612} "
          "%y = fma %a, %a, %c return %y",
          "5.551115123125783e-17");
    evals(t, 0,
          "%a = const f16[3] {65504 inf 2} %b = const f16[3] {2 0 3} %c = const f16[3] {-65504 1 "
          "nan} "
          "%y = fma %a, %b, %c return %y",
          "65504 nan nan");
}
