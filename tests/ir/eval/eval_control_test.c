/* eval_control_test.c: whole graphs in ir/eval: sub-graphs, states, leaves, custom ops, failures.
 */
#include "eval_run.h"
#include "ir/custom.h"

/* ---- leaves and states --------------------------------------------------------------------- */

/* A value for node v of the entry, which is a leaf. */
static struct eval_tensor leaf_value(struct run *r, ir_value v, const double *x)
{
    struct eval_tensor out = {0};

    eval_tensor_new(&r->arena, ir_type_of(ir_entry(r->mod), v), &out, &r->diag);
    for (int64_t k = 0; k < out.count; k++)
        eval_set(&out, k, x[k]);
    return out;
}

#define CACHE_GRAPH                                                            \
    "rlx 1 graph (state %s: f32[4,2], input %x: f32[2,2], input %p: i32[]) { " \
    "%before = neg %s %c = cache_append %s, %x, %p %after = neg %s return %before, %c, %after }"

TEST(eval, cache_append_writes_its_state_between_readers)
{
    struct run r;

    require(t, run_open(t, &r, CACHE_GRAPH, NULL));
    struct eval_tensor s = leaf_value(&r, 0, (double[]){1, 2, 3, 4, 5, 6, 7, 8});
    struct eval_tensor x = leaf_value(&r, 1, (double[]){10, 20, 30, 40});
    struct eval_tensor p = leaf_value(&r, 2, (double[]){2});
    struct eval_tensor *leaf[8] = {&s, &x, &p};
    if (expect_ok(t, run_graph(&r, leaf))) {
        expect_cells(t, __FILE__, __LINE__, run_output(&r, 0), 0, "-1 -2 -3 -4 -5 -6 -7 -8", "old");
        expect_cells(t, __FILE__, __LINE__, run_output(&r, 1), 0, "1 2 3 4 10 20 30 40", "result");
        expect_cells(t, __FILE__, __LINE__, run_output(&r, 2), 0, "-1 -2 -3 -4 -10 -20 -30 -40",
                     "new");
        expect_cells(t, __FILE__, __LINE__, &s, 0, "1 2 3 4 10 20 30 40", "state");
    }
    for (int bad = 0; bad < 3; bad++) {
        static const int64_t position[3] = {3, -1, INT32_MAX};
        p.at[0].i = position[bad];
        x.at[0].f = 99;
        diag_init(&r.diag, "eval");
        expect_status(t, run_graph(&r, leaf), RLX_ERROR_INDEX);
        expect_error(t, RLX_ERROR_INDEX, "cache_append", &r.diag.first);
        expect_cells(t, __FILE__, __LINE__, &s, 0, "1 2 3 4 10 20 30 40", "nothing written");
    }
    run_close(&r);
}

TEST(eval, an_ema_scale_moves_its_state)
{
    struct run r;

    require(t,
            run_open(t, &r,
                     "rlx 1 graph (state %s: f32[2], input %x: f32[2,2]) { %y = fake_quantize %x, "
                     "%s bits=4 axis=0 scale_mode=ema decay=0.75 return %y }",
                     NULL));
    struct eval_tensor s = leaf_value(&r, 0, (double[]){0, 3});
    struct eval_tensor x = leaf_value(&r, 1, (double[]){7, 1.4, 49, -2});
    struct eval_tensor *leaf[4] = {&s, &x};
    /* first use takes the scale, 1; then 0.75 * 3 + 0.25 * 7 = 4 */
    if (expect_ok(t, run_graph(&r, leaf))) {
        expect_cells(t, __FILE__, __LINE__, &s, 0, "1 4", "state");
        expect_cells(t, __FILE__, __LINE__, run_output(&r, 0), 0, "7 1 28 -0", "result");
    }
    run_close(&r);
}

TEST(eval, states_start_at_zero_and_unused_leaves_may_be_absent)
{
    struct run r;

    require(t, run_open(t, &r,
                        "rlx 1 graph (state %s: f32[2], input %x: f32[2], param %w: f32[1]) { "
                        "%y = exp %s return %y }",
                        NULL));
    if (expect_ok(t, run_graph(&r, NULL)))
        expect_cells(t, __FILE__, __LINE__, run_output(&r, 0), 0, "1 1", "exp");
    run_close(&r);
}

TEST(eval, leaves_that_are_missing_or_wrong_are_said)
{
    struct run r;
    struct eval_tensor *leaf[4] = {0};

    require(t,
            run_open(t, &r, "rlx 1 graph (input %x: f32[2]) { %y = neg %x return %y, %x }", NULL));
    expect_status(t, run_graph(&r, leaf), RLX_ERROR_MISSING_INPUT);
    expect_error(t, RLX_ERROR_MISSING_INPUT, "\"x\"", &r.diag.first);
    struct eval_tensor x = leaf_value(&r, 0, (double[]){1, 2});
    leaf[0] = &x;
    x.type.dtype = RLX_DTYPE_f64;
    expect_status(t, run_graph(&r, leaf), RLX_ERROR_DTYPE);
    x.type.dtype = RLX_DTYPE_f32;
    x.type.dim[0] = 3;
    expect_status(t, run_graph(&r, leaf), RLX_ERROR_SIZE);
    x.type.dim[0] = 2;
    expect_ok(t, run_graph(&r, leaf));
    run_close(&r);
}

TEST(eval, a_symbolic_graph_is_refused)
{
    struct run r;

    require(
        t, run_open(t, &r,
                    "rlx 1 dim n graph (input %x: f32[2]) { %y = rng_uniform shape=[n] return %y }",
                    NULL));
    expect_status(t, run_graph(&r, NULL), RLX_ERROR_UNBOUND_DIM);
    run_close(&r);
}

/* ---- if, while ----------------------------------------------------------------------------- */

TEST(eval, if_takes_one_branch)
{
    static const char *const cond[] = {"{nan}", "{0}", "{-0}", "{1}"};
    static const char *const want[] = {"4 6", "inf inf", "inf inf", "4 6"};
    char source[512];

    for (size_t i = 0; i < 4; i++) {
        snprintf(source, sizeof source,
                 "rlx 1 graph () { %%p = const f32[1] %s %%x = const f32[2] {2 3} "
                 "%%y = if %%p, %%x then_graph=@yes else_graph=@no result=1 return %%y } "
                 "graph @yes (input %%x: f32[2]) { %%y = add %%x, %%x return %%x, %%y } "
                 "graph @no (input %%x: f32[2]) { %%z = sub %%x, %%x %%y = recip %%z "
                 "return %%x, %%y }",
                 cond[i]);
        evals(t, 0, source, want[i]);
    }
}

#define COUNT_DOWN                                                                            \
    "graph @more (input %i: i32[], input %a: f32[], input %b: f32[]) { %z = const i32[] {0} " \
    "%y = gt %i, %z return %y } "                                                             \
    "graph @step (input %i: i32[], input %a: f32[], input %b: f32[]) { %o = const i32[] {1} " \
    "%j = sub %i, %o %s = add %a, %b return %j, %b, %s }"

TEST(eval, while_repeats)
{
    /* Fibonacci: the body also swaps its values */
    evals(t, 0,
          "rlx 1 graph () { %n = const i32[] {10} %a = const f32[] {0} %b = const f32[] {1} "
          "%y = while %n, %a, %b cond_graph=@more body_graph=@step result=1 "
          "%m = while %n, %a, %b cond_graph=@more body_graph=@step result=0 max_iterations=4 "
          "%k = while %n, %a, %b cond_graph=@more body_graph=@step result=2 max_iterations=0 "
          "return %y, %m, %k } " COUNT_DOWN,
          "55", "6", "1");
    evals(
        t, 0,
        "rlx 1 graph () { %n = const i32[] {0} %a = const f32[] {5} %b = const f32[] {1} "
        "%y = while %n, %a, %b cond_graph=@more body_graph=@step result=1 return %y } " COUNT_DOWN,
        "5");
}

TEST(eval, a_long_loop_needs_little_memory)
{
    struct test_alloc count = {0};
    rlx_allocator mem = test_allocator(&count);
    struct run r;

    require(
        t,
        run_open(t, &r,
                 "rlx 1 graph () { %n = const i32[] {3000} %a = const f32[] {0} "
                 "%b = const f32[] {1} "
                 "%y = while %n, %a, %b cond_graph=@more body_graph=@step return %y } " COUNT_DOWN,
                 NULL));
    arena_init(&r.arena, &mem);
    if (expect_ok(t, run_graph(&r, NULL)))
        expect_eq(t, run_output(&r, 0)->at[0].i, 0);
    expect(t, count.peak_bytes < 64 << 10);
    run_close(&r);
    expect_no_leak(t, &count);
}

/* ---- scan ---------------------------------------------------------------------------------- */

#define DOUBLE_AND_ADD                                                                  \
    "graph @body (input %c: f32[], input %x: f32[]) { %d = add %c, %c %y = add %d, %x " \
    "return %y } "                                                                      \
    "graph @vjp (input %c: f32[], input %x: f32[], input %g: f32[]) { %d = add %g, %g " \
    "return %d, %g }"

TEST(eval, scan_carries)
{
    evals(t, 0,
          "rlx 1 graph () { %i = const f32[] {1} %x = const f32[3] {1 2 3} "
          "%y = scan %i, %x body=@body length=3 num_xs=1 "
          "%t = scan %i, %x body=@body length=3 num_xs=1 save_trajectory=true "
          "%k = scan %i, %x body=@body length=3 num_xs=1 save_trajectory=true num_checkpoints=2 "
          "%e = const f32[0] {} %z = scan %i, %e body=@body length=0 num_xs=1 "
          "%w = scan %i, %e body=@body length=0 num_xs=1 save_trajectory=true "
          "return %y, %t, %k, %z, %w } " DOUBLE_AND_ADD,
          "19", "3 8 19", "8 19", "1", "");
    /* checkpoints of ten steps: after 4, 7 and 10 */
    evals(
        t, 0,
        "rlx 1 graph () { %i = const i32[] {0} %o = const i32[] {1} "
        "%k = scan %i, %o body=@body length=10 num_bcast=1 save_trajectory=true num_checkpoints=3 "
        "%a = scan %i, %o body=@body length=10 num_bcast=1 save_trajectory=true "
        "num_checkpoints=10 return %k, %a } "
        "graph @body (input %c: i32[], input %o: i32[]) { %y = add %c, %o return %y }",
        "4 7 10", "1 2 3 4 5 6 7 8 9 10");
}

TEST(eval, scan_gradients)
{
    evals(t, 0,
          "rlx 1 graph () { %i = const f32[] {1} %x = const f32[3] {1 2 3} %t = const f32[3] {3 8 "
          "19} "
          "%g = const f32[] {1} "
          "%d = scan_backward %i, %t, %g, %x body=@body body_vjp=@vjp length=3 num_xs=1 "
          "%e = scan_backward_xs %i, %t, %g, %x body=@body body_vjp=@vjp length=3 num_xs=1 "
          "return %d, %e } " DOUBLE_AND_ADD,
          "8", "4 2 1");
    /* every row of the trajectory has a gradient of its own */
    evals(t, 0,
          "rlx 1 graph () { %i = const f32[] {1} %x = const f32[3] {1 2 3} %t = const f32[3] {3 8 "
          "19} "
          "%g = const f32[3] {100 10 1} "
          "%d = scan_backward %i, %t, %g, %x body=@body body_vjp=@vjp length=3 num_xs=1 "
          "save_trajectory=true "
          "%e = scan_backward_xs %i, %t, %g, %x body=@body body_vjp=@vjp length=3 num_xs=1 "
          "save_trajectory=true return %d, %e } " DOUBLE_AND_ADD,
          "248", "124 12 1");
    /* c' = c * x: the carries in between are computed again from the one checkpoint */
    evals(t, 0,
          "rlx 1 graph () { %i = const f32[] {2} %x = const f32[3] {3 5 7} %t = const f32[1] {210} "
          "%g = const f32[] {1} "
          "%d = scan_backward %i, %t, %g, %x body=@body body_vjp=@vjp length=3 num_xs=1 "
          "num_checkpoints=1 "
          "%e = scan_backward_xs %i, %t, %g, %x body=@body body_vjp=@vjp length=3 num_xs=1 "
          "num_checkpoints=1 return %d, %e } "
          "graph @body (input %c: f32[], input %x: f32[]) { %y = mul %c, %x return %y } "
          "graph @vjp (input %c: f32[], input %x: f32[], input %g: f32[]) { %a = mul %g, %x "
          "%b = mul %g, %c return %a, %b }",
          "105", "70 42 30");
    evals(t, 0,
          "rlx 1 graph () { %i = const f32[] {1} %x = const f32[0] {} %t = const f32[0] {} "
          "%g = const f32[] {5} "
          "%d = scan_backward %i, %t, %g, %x body=@body body_vjp=@vjp length=0 num_xs=1 "
          "%e = scan_backward_xs %i, %t, %g, %x body=@body body_vjp=@vjp length=0 num_xs=1 "
          "%f = scan_backward %i, %t, %t, %x body=@body body_vjp=@vjp length=0 num_xs=1 "
          "save_trajectory=true return %d, %e, %f } " DOUBLE_AND_ADD,
          "5", "", "0");
}

/* ---- custom ops and functions -------------------------------------------------------------- */

static rlx_status like_first(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                             size_t size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)size, (void)message;
    *out = in[0];
    return RLX_OK;
}

/* out = in + the first attribute byte; fails on a negative element, with the status in user. */
static rlx_status add_byte(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                           size_t size, rlx_tensor *out)
{
    const float *x = in[0].data;
    float *y = out->data;

    for (size_t i = 0; i < in[0].bytes / sizeof *x; i++) {
        if (x[i] < 0)
            return *(const rlx_status *)user;
        y[i] = x[i] + (float)(count == 1 && size ? ((const unsigned char *)attrs)[0] : 0);
    }
    return RLX_OK;
}

TEST(eval, custom_ops_see_bytes)
{
    rlx_status refusal = RLX_ERROR_NUMERIC;
    rlx_custom_op op[] = {
        {RLX_SIZED(rlx_custom_op), .name = "add_byte", .inputs = 1, .infer = like_first,
         .cpu = add_byte, .user = &refusal},
        {RLX_SIZED(rlx_custom_op), .name = "no_cpu", .inputs = 1, .infer = like_first},
    };
    struct ir_customs customs = {.op = op, .count = 2};
    struct run r;

    require(t, run_open(t, &r,
                        "%x = const f32[3] {0.1 1 2} %y = custom %x name=\"add_byte\" attrs=0x05 "
                        "return %y",
                        &customs));
    if (expect_ok(t, run_graph(&r, NULL)))
        expect_cells(t, __FILE__, __LINE__, run_output(&r, 0), 1e-7, "5.1 6 7", "custom");
    run_close(&r);

    require(t, run_open(t, &r, "%x = const f32[1] {-1} %y = custom %x name=\"add_byte\" return %y",
                        &customs));
    expect_status(t, run_graph(&r, NULL), RLX_ERROR_NUMERIC);
    expect_error(t, RLX_ERROR_NUMERIC, "add_byte", &r.diag.first);
    run_close(&r);

    require(t, run_open(t, &r, "%x = const f32[1] {-1} %y = custom %x name=\"no_cpu\" return %y",
                        &customs));
    expect_status(t, run_graph(&r, NULL), RLX_ERROR_UNSUPPORTED);
    run_close(&r);
}

TEST(eval, functions_are_inlined)
{
    evals(t, 0,
          "rlx 1 graph () { %a = const f32[2] {1 2} %b = const f32[2] {10 20} "
          "%y = custom_fn %a, %b fwd_graph=@f return %y } "
          "graph @f (input %b: f32[2], input %a: f32[2]) { %y = sub %b, %a return %y }",
          "-9 -18");
}

/* ---- memory -------------------------------------------------------------------------------- */

static rlx_status run_with(struct test *t, const rlx_allocator *mem, void *ctx)
{
    const struct ir_graph *g = ctx;
    struct arena a;
    struct diag d;

    (void)t;
    arena_init(&a, mem);
    diag_init(&d, "eval");
    struct eval_tensor *result = arena_array(&a, struct eval_tensor, g->node.len);
    rlx_status s = result ? eval_graph(g, NULL, result, &a, &d) : RLX_ERROR_MEMORY;
    arena_free(&a);
    return s;
}

TEST(eval, survives_no_memory)
{
    struct run r;

    require(
        t, run_open(
               t, &r,
               "rlx 1 graph () { %n = const i32[] {3} %a = const f32[] {0} "
               "%b = const f32[] {1} %x = const f32[2,3] {3 1 2 6 5 4} "
               "%w = while %n, %a, %b cond_graph=@more body_graph=@step result=1 "
               "%s = sort %x %m = softmax %x %r = reduce_sum %x axes=[0] %p = sample %x "
               "%q = fake_quantize %x axis=1 %e = elementwise_region %x, %w "
               "chain=[[add,i0,i1],[relu,s0]] %t = reduce_prod %x axes=[1] return %e } " COUNT_DOWN,
               NULL));
    expect_survives_no_memory(t, run_with, ir_entry(r.mod));
    run_close(&r);
}
