/* required_compile_test.c: runtime.md 8.1, row by row: what a compiler may not abort on,
 * ignore or get wrong. With required_values_test.c, required_run_test.c, required_dims_test.c and
 * required_handle_test.c this is runtime.md 10, line 1. Rows that are elsewhere, or that no CPU can
 * meet, are listed at the end. */
#include <math.h>

#include "rlx/cache.h"
#include "session/required.h"

/* ---- refused, with the reason -------------------------------------------------------------- */

struct refusal {
    int row;
    const char *graph;
    rlx_status status;
    const char *part; /* of the message */
};

static const struct refusal refusals[] = {
    /* matmul: both shapes */
    {6, "graph (input %a: f32[2,3], input %b: f32[4,5]) { %y = matmul %a, %b return %y }",
     RLX_ERROR_SHAPE, "3 and 4"},
    {6, "graph (input %a: f32[2,4,3], input %b: f32[5,3,4]) { %y = matmul %a, %b return %y }",
     RLX_ERROR_SHAPE, "[2,4,3] and [5,3,4]"},
    {6, "graph (input %a: f32[3], input %b: f32[3,4]) { %y = matmul %a, %b return %y }",
     RLX_ERROR_SHAPE, "matmul"},
    {7,
     "graph (input %a: f32[2,2,3], input %b: f32[5,3,1], input %c: f32[1])"
     " { %y = fused_matmul_bias_act %a, %b, %c return %y }",
     RLX_ERROR_SHAPE, "[2,2,3] and [5,3,1]"},
    /* elementwise */
    {8, "graph (input %a: f32[2,3], input %b: f32[2]) { %y = add %a, %b return %y }",
     RLX_ERROR_SHAPE, "[2,3] and [2]"},
    {8, "graph (input %a: f32[4], input %b: f32[3]) { %y = lt %a, %b return %y }", RLX_ERROR_SHAPE,
     "[4] and [3]"},
    {9,
     "graph (input %c: bool[2], input %a: f32[3], input %b: f32[3])"
     " { %y = where %c, %a, %b return %y }",
     RLX_ERROR_SHAPE, "[2] and [3]"},
    /* axes */
    {10, "graph (input %x: f32[2,3]) { %y = softmax %x axis=2 return %y }", RLX_ERROR_ATTRIBUTE,
     "axis"},
    {10, "graph (input %x: f32[2,3]) { %y = cumsum %x axis=-3 return %y }", RLX_ERROR_ATTRIBUTE,
     "-3"},
    {11,
     "graph (input %x: f32[2,3], input %g: f32[3])"
     " { %y = layer_norm %x, %g, %g axis=0 return %y }",
     RLX_ERROR_SHAPE, "gamma"},
    {12, "graph (input %x: f32[2,3]) { %y = reduce_sum %x axes=[0,2] return %y }",
     RLX_ERROR_ATTRIBUTE, "2"},
    {12, "graph (input %x: f32[2,3]) { %y = reduce_sum %x axes=[1,1] return %y }",
     RLX_ERROR_ATTRIBUTE, "axis 1"},
    /* movement */
    {13, "graph (input %x: f32[2,3]) { %y = transpose %x perm=[0,1,2] return %y }",
     RLX_ERROR_ATTRIBUTE, "perm"},
    {13, "graph (input %x: f32[2,3]) { %y = transpose %x perm=[0,0] return %y }",
     RLX_ERROR_ATTRIBUTE, "perm"},
    {13, "graph (input %x: f32[2,3]) { %y = expand %x shape=[3] return %y }", RLX_ERROR_SHAPE,
     "f32[2,3]"},
    {13, "graph (input %x: f32[2,3]) { %y = expand %x shape=[4,3] return %y }", RLX_ERROR_SHAPE,
     "4"},
    {13, "graph (input %x: f32[4]) { %y = narrow %x axis=0 start=3 len=2 return %y }",
     RLX_ERROR_ATTRIBUTE, "4"},
    /* attention: says what it expects */
    {14,
     "graph (input %q: f32[4,8]) { %y = attention %q, %q, %q num_heads=2 head_dim=4 return %y }",
     RLX_ERROR_SHAPE, "[B,S,8]"},
    {14,
     "graph (input %q: f32[3,5,4])"
     " { %y = attention %q, %q, %q num_heads=2 head_dim=4 return %y }",
     RLX_ERROR_SHAPE, "packed"},
    {14,
     "graph (input %q: f32[1,3,5,4])"
     " { %y = attention %q, %q, %q num_heads=2 head_dim=4 return %y }",
     RLX_ERROR_SHAPE, "bhsd"},
    {16,
     "graph (input %q: f32[1,2,4])"
     " { %y = attention %q, %q, %q num_heads=1 head_dim=4 logit_softcap=0 return %y }",
     RLX_ERROR_ATTRIBUTE, "softcap"},
    {16,
     "graph (input %q: f32[1,2,4])"
     " { %y = attention %q, %q, %q num_heads=1 head_dim=4 score_scale=inf return %y }",
     RLX_ERROR_ATTRIBUTE, "score_scale"},
    {16,
     "graph (input %x: f32[2,4], input %c: f32[2,2])"
     " { %y = rope %x, %c, %c head_dim=4 n_rot=6 return %y }",
     RLX_ERROR_ATTRIBUTE, "n_rot"},
    /* rope */
    {17,
     "graph (input %x: f32[2,6], input %c: f32[2,2])"
     " { %y = rope %x, %c, %c head_dim=4 return %y }",
     RLX_ERROR_SHAPE, "head_dim"},
    {17,
     "graph (input %x: f32[2,6], input %c: f32[2,2])"
     " { %y = rope %x, %c, %c head_dim=3 return %y }",
     RLX_ERROR_ATTRIBUTE, "head_dim"},
    {17,
     "graph (input %x: f32[3,4], input %c: f32[2,2])"
     " { %y = rope %x, %c, %c head_dim=4 return %y }",
     RLX_ERROR_SHAPE, "rope"},
    /* windows */
    {18, "graph (input %x: f32[1,5], input %w: f32[1,2]) { %y = conv %x, %w return %y }",
     RLX_ERROR_SHAPE, "rank"},
    {18,
     "graph (input %x: f32[1,1,2,2,2,2], input %w: f32[1,1,1,1,1,1])"
     " { %y = conv %x, %w return %y }",
     RLX_ERROR_SHAPE, "rank"},
    {18, "graph (input %x: f32[1,1,5,5], input %w: f32[1,1,3]) { %y = conv %x, %w return %y }",
     RLX_ERROR_SHAPE, "4 and 3"},
    {18,
     "graph (input %x: f32[1,1,5,5], input %w: f32[1,1,3,3])"
     " { %y = conv %x, %w stride=[2] return %y }",
     RLX_ERROR_ATTRIBUTE, "stride"},
    {18,
     "graph (input %x: f32[1,1,5,5], input %w: f32[1,1,3,3])"
     " { %y = conv %x, %w padding=[1,1,1] return %y }",
     RLX_ERROR_ATTRIBUTE, "padding"},
    {18, "graph (input %x: f32[5,5]) { %y = pool %x kind=max kernel_size=[2,2] return %y }",
     RLX_ERROR_SHAPE, "rank"},
    {18, "graph (input %x: f32[1,1,5,5]) { %y = pool %x kind=max kernel_size=[2] return %y }",
     RLX_ERROR_ATTRIBUTE, "kernel_size"},
    {19, "graph (input %x: f32[1,2,3]) { %y = im2col %x kernel_size=[2,2] return %y }",
     RLX_ERROR_SHAPE, "rank"},
    /* spectra */
    {20, "graph (input %x: i32[8]) { %y = fft %x return %y }", RLX_ERROR_DTYPE, "i32"},
    {20, "graph (input %x: f16[8]) { %y = fft %x return %y }", RLX_ERROR_DTYPE, "f16"},
    {20, "graph (input %x: f32[7]) { %y = fft %x return %y }", RLX_ERROR_SHAPE, "7"},
    {20, "graph (input %x: f32[8]) { %y = fft %x norm=sideways return %y }", RLX_ERROR_FORMAT,
     "sideways"},
    {21, "graph (input %x: f32[4,16]) { %y = welch_peaks %x k=0 n_segments=2 return %y }",
     RLX_ERROR_ATTRIBUTE, "k"},
    {21, "graph (input %x: f32[4,16]) { %y = welch_peaks %x k=2 n_segments=0 return %y }",
     RLX_ERROR_ATTRIBUTE, "n_segments"},
    {21, "graph (input %x: f32[4,16]) { %y = welch_peaks %x k=2 n_segments=3 return %y }",
     RLX_ERROR_SHAPE, "3"},
    {21, "graph (input %x: f32[4,16]) { %y = welch_peaks %x k=6 n_segments=2 return %y }",
     RLX_ERROR_ATTRIBUTE, "5"},
    {21, "graph (input %x: f32[3,16], input %f: f32[4,6]) { %y = log_mel %x, %f return %y }",
     RLX_ERROR_SHAPE, "5"},
    {21, "graph (input %x: f32[3,16], input %f: f32[0,5]) { %y = log_mel %x, %f return %y }",
     RLX_ERROR_SHAPE, "log_mel"},
    /* state sizes: the cap is in the message */
    {22,
     "graph (input %x: f32[1,1,1], input %a: f32[1,257], input %b: f32[1,1,257])"
     " { %y = selective_scan %x, %x, %a, %b, %b state_size=257 return %y }",
     RLX_ERROR_UNSUPPORTED, "256"},
    {22,
     "graph (input %q: f32[1,1,1,129], input %g: f32[1,1,1])"
     " { %y = gated_delta_net %q, %q, %q, %g, %g state_size=129 return %y }",
     RLX_ERROR_UNSUPPORTED, "128"},
    /* regions */
    {23, "graph () { %y = batch_elementwise_region chain=[[neg,i0]] return %y }", RLX_ERROR_GRAPH,
     "batch_elementwise_region"},
    {23, "graph (input %x: f32[2]) { %y = elementwise_region %x chain=[] return %y }",
     RLX_ERROR_ATTRIBUTE, "chain"},
    {23, "graph (input %x: f32[2]) { %y = elementwise_region %x chain=[[neg,i1]] return %y }",
     RLX_ERROR_ATTRIBUTE, "input 1 of 1"},
    {23, "graph (input %x: f32[2]) { %y = elementwise_region %x chain=[[neg,s0]] return %y }",
     RLX_ERROR_ATTRIBUTE, "step 0 reads step 0"},
    {34,
     "graph (input %x: f32[2,3], input %z: f32[2])"
     " { %y = elementwise_region %x, %z chain=[[add,i0,i1]] return %y }",
     RLX_ERROR_SHAPE, "[2,3] and [2]"},
    /* custom */
    {24, "graph (input %x: f32[2]) { %y = custom %x name=\"nobody\" return %y }", RLX_ERROR_GRAPH,
     "nobody"},
    {24, "graph (input %x: f32[2]) { %y = custom %x return %y }", RLX_ERROR_ATTRIBUTE, "name"},
    /* packed weights */
    {25,
     "graph (input %x: f32[2,32], param %w: u8[4,34])"
     " { %y = dequant_matmul %x, %w scheme=q9_0 k=32 return %y }",
     RLX_ERROR_FORMAT, "q9_0"},
    {25,
     "graph (input %x: f32[2,33], param %w: u8[4,34])"
     " { %y = dequant_matmul %x, %w scheme=q8_0 k=33 return %y }",
     RLX_ERROR_ATTRIBUTE, "33"},
    {25,
     "graph (input %x: f32[2,32], param %w: u8[136])"
     " { %y = dequant_matmul %x, %w scheme=q8_0 k=32 return %y }",
     RLX_ERROR_SHAPE, "u8[136]"},
    {25,
     "graph (input %x: f32[2,32], param %w: i8[4,34])"
     " { %y = dequant_matmul %x, %w scheme=q8_0 k=32 return %y }",
     RLX_ERROR_DTYPE, "i8"},
    {25,
     "graph (input %x: f32[2,32], param %w: u8[2,4,34], input %e: i32[2])"
     " { %y = dequant_grouped_matmul %x, %w, %e scheme=int8_block k=32 return %y }",
     RLX_ERROR_ATTRIBUTE, "int8_block"},
    {26,
     "graph (input %x: f32[2,32], param %w: u8[9,34], input %e: i32[2])"
     " { %y = dequant_grouped_matmul %x, %w, %e scheme=q8_0 k=32 return %y }",
     RLX_ERROR_SHAPE, "u8[9,34]"},
    {26,
     "graph (input %x: f32[2,32], param %w: u8[2,4,35], input %e: i32[2])"
     " { %y = dequant_grouped_matmul %x, %w, %e scheme=q8_0 k=32 return %y }",
     RLX_ERROR_SHAPE, "34"},
    /* constants: in a text the count is part of the format */
    {30, "graph () { %x = const f32[2] bytes 0x0000803f return %x }", RLX_ERROR_FORMAT, "8"},
    {30, "graph () { %x = const f32[1] bytes 0x0000803f0000803f return %x }", RLX_ERROR_FORMAT,
     "8"},
    {30, "graph () { %x = const f32[3] {1 2} return %x }", RLX_ERROR_FORMAT, "3"},
    {30, "graph () { %x = const f32[1] {1 2} return %x }", RLX_ERROR_FORMAT, "1"},
    /* sizes that overflow */
    {31, "graph (input %x: f32[4611686018427387904]) { %y = neg %x return %y }", RLX_ERROR_LIMIT,
     "4611686018427387904"},
    {31, "graph (input %x: f32[4294967296,4294967296]) { %y = neg %x return %y }", RLX_ERROR_LIMIT,
     "4294967296"},
    {31,
     "graph (input %x: f32[1,65536]) { %a = expand %x shape=[35184372088832,65536]"
     " %y = neg %a return %y }",
     RLX_ERROR_LIMIT, "35184372088832"},
    /* control flow */
    {33,
     "graph @main (input %p: bool[], input %x: f32[2])"
     " { %y = if %p, %x then_graph=@f else_graph=@g return %y }"
     " graph @f (input %x: f32[2]) { %a = neg %x return %a, %x }"
     " graph @g (input %x: f32[2]) { %a = neg %x return %a }",
     RLX_ERROR_GRAPH, "outputs"},
    {33,
     "graph @main (input %p: bool[], input %x: f32[2])"
     " { %y = if %p, %x then_graph=@f else_graph=@g result=1 return %y }"
     " graph @f (input %x: f32[2]) { %a = neg %x return %a }"
     " graph @g (input %x: f32[2]) { %a = exp %x return %a }",
     RLX_ERROR_ATTRIBUTE, "result"},
    {33,
     "graph @main (input %p: bool[], input %x: f32[2])"
     " { %y = if %p then_graph=@f else_graph=@f return %y }"
     " graph @f (input %x: f32[2]) { %a = neg %x return %a }",
     RLX_ERROR_GRAPH, "f"},
    {33,
     "graph @main (input %x: f32[2]) { %y = while %x cond_graph=@c body_graph=@b return %y }"
     " graph @c (input %x: f32[2]) { %z = const f32[] {0} %a = gt %x, %z return %a }"
     " graph @b (input %x: f32[2]) { %a = neg %x return %a, %x }",
     RLX_ERROR_GRAPH, "b"},
    {33,
     "graph @main (input %x: f32[2]) { %y = while %x cond_graph=@c body_graph=@b return %y }"
     " graph @c (input %x: f32[2]) { %z = const f32[] {0} %a = gt %x, %z return %a }"
     " graph @b (input %x: f32[2]) { %a = reduce_sum %x axes=[0] return %a }",
     RLX_ERROR_SHAPE, "f32[2]"},
    {33,
     "graph @main (input %x: f32[2], input %s: f32[3,2])"
     " { %y = scan %x, %s body=@b length=4 num_xs=1 return %y }"
     " graph @b (input %c: f32[2], input %x: f32[2]) { %a = add %c, %x return %a }",
     RLX_ERROR_SHAPE, "4"},
    {33,
     "graph @main (input %x: f32[2]) { %y = if %x then_graph=@f else_graph=@nowhere return %y }"
     " graph @f () { %a = const f32[] {1} return %a }",
     RLX_ERROR_FORMAT, "nowhere"},
    /* element types */
    {36, "graph (input %x: f32[2], input %z: bool[2]) { %y = bit_and %x, %x return %y }",
     RLX_ERROR_DTYPE, "f32"},
    {36, "graph (input %x: bool[2]) { %y = exp %x return %y }", RLX_ERROR_DTYPE, "bool"},
    {36, "graph (input %x: c64[2]) { %y = sort %x return %y }", RLX_ERROR_DTYPE, "c64"},
};

TEST_DEVICES(required, compile_errors_are_returned)
{
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        const struct refusal *r = &refusals[i];
        test_note(t, "row %d: %s", r->row, r->graph);
        expect_refused(t, &p, r->graph, r->status, r->part);
    }
    place_close(&p);
}

/* ---- rows that take more than a text ------------------------------------------------------- */

/* Row 1: no device of that name; what there is is said, and is still to be had. */
TEST(required, missing_devices_are_errors)
{
    static const char *const names[] = {"vulkan:99", "toaster", "toaster:7"};
    rlx_context *ctx = NULL;
    rlx_error err = {0};

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        rlx_device *dev = NULL;
        test_note(t, "row 1: \"%s\"", names[i]);
        expect_status(t, rlx_device_open(ctx, names[i], &dev, &err), RLX_ERROR_NO_DEVICE);
        expect_contains(t, err.message, names[i]);
        expect_contains(t, err.message, "cpu"); /* what there is */
        expect(t, dev == NULL);
        expect_ok(t, rlx_device_open(ctx, "auto", &dev, &err));
        rlx_device_close(dev);
    }
    rlx_device *dev = NULL;
    expect_status(t, rlx_device_open(ctx, "cpu:turbo", &dev, &err), RLX_ERROR_NO_DEVICE);
    expect_contains(t, err.message, "baseline"); /* the levels there are */
    expect_status(t, rlx_device_open(ctx, "null:1", &dev, &err), RLX_ERROR_NO_DEVICE);
    expect_contains(t, err.message, "null:1");
    expect_status(t, rlx_device_open(ctx, "", &dev, &err), RLX_ERROR_ARGUMENT);
    expect(t, dev == NULL);
    rlx_context_destroy(ctx);
}

/* Row 2: more memory than there is. An allocator that stops at 1 MiB stands for a small device. */
static void *small_memory(void *user, void *ptr, size_t old_size, size_t new_size)
{
    const rlx_allocator *inner = user;

    return new_size > 1 << 20 ? NULL : inner->resize(inner->user, ptr, old_size, new_size);
}

TEST(required, too_large_for_memory_is_an_error)
{
    struct test_alloc counts = {0};
    rlx_allocator inner = test_allocator(&counts), small = {small_memory, &inner};
    struct place p;

    if (!place_open(
            t, &p, "cpu",
            &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = &small, .threads = 1}))
        return place_close(&p);
    test_note(t, "row 2");
    expect_refused(t, &p,
                   "graph (input %x: f32[1000]) { %big = expand %x shape=[500,1000]"
                   " %e = exp %big %y = reduce_sum %e axes=[0] return %y }",
                   RLX_ERROR_MEMORY, "big");
    /* Params take memory when they are set. */
    static float w[500 * 1000];
    const rlx_tensor value = {RLX_DTYPE_f32, 2, {500, 1000}, w, sizeof w};
    expect_ok(t, place_build(&p,
                             "graph (param %w: f32[500,1000])"
                             " { %y = reduce_sum %w axes=[0] return %y }",
                             NULL));
    expect_status(t, rlx_session_set_param(p.session, "w", &value, &p.err), RLX_ERROR_MEMORY);
    expect_error(t, RLX_ERROR_MEMORY, "2000", &p.err);
    expect_status(t, rlx_session_run(p.session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc)}, &p.err),
                  RLX_ERROR_MISSING_INPUT);
    place_build(&p, "graph (state %s: f32[500,1000]) { %y = reduce_sum %s axes=[0] return %y }",
                NULL);
    expect_error(t, RLX_ERROR_MEMORY, "2000", &p.err);
    expect_working(t, &p);
    place_close(&p);
    expect_no_leak(t, &counts);
}

/* Row 30: constants through the API; the graph keeps what it had. */
TEST_DEVICES(required, constants_have_exactly_their_bytes)
{
    struct place p;
    rlx_graph *g = NULL;
    float data[3] = {1, 2, 3}, y[2];

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
        test_note(t, "row 30: %zu bytes", bytes);
        if (!expect_ok(t, rlx_graph_create(p.ctx, &g, &p.err)))
            break;
        rlx_value c = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(2), data, bytes);
        expect(t, (c == RLX_NO_VALUE) == (bytes != 8));
        if (bytes != 8) {
            rlx_graph_check(g, &p.err);
            expect_error(t, RLX_ERROR_SIZE, "8", &p.err);
        }
        rlx_graph_destroy(g);
    }
    expect_ok(t, rlx_graph_create(p.ctx, &g, &p.err));
    rlx_output(g, rlx_neg(g, rlx_const(g, RLX_DTYPE_f32, RLX_LIST(2), data, 8)));
    expect_ok(t, rlx_model_create(g, &p.model, &p.err));
    expect_ok(t, rlx_session_create(p.model, p.dev, NULL, &p.session, &p.err));
    rlx_binding out = {"out0", {RLX_DTYPE_f32, 0, {0}, y, sizeof y}};
    expect_ok(t, rlx_session_run(
                     p.session,
                     &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = &out, .output_count = 1},
                     &p.err));
    expect_near(t, y[1], -2, 0);
    place_close(&p);
}

/* Row 31: sizes above 32 bits are sizes like any other. */
TEST(required, sizes_are_of_64_bits)
{
    struct place p;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    if (!place_open(t, &p, "null", NULL))
        return place_close(&p);
    test_note(t, "row 31");
    expect_ok(t, rlx_model_parse(p.ctx,
                                 rlx_cstr("rlx 1 graph (input %x: f32[8589934592,16]) {"
                                          " %r = reshape %x shape=[-1] %n = narrow %r axis=0"
                                          " start=137438953471 len=1 return %r, %n }"),
                                 &p.model, &p.err));
    expect_ok(t, rlx_model_io(p.model, RLX_IO_OUTPUT, 0, &info, &p.err));
    expect_eq(t, info.dim[0], INT64_C(137438953472));
    place_close(&p);
}

/* Row 33: a loop that would never end stops at the session's ceiling, and the session lives on. */
TEST_DEVICES(required, loops_without_bound_have_a_ceiling)
{
    static const char loop[] =
        "graph @main (input %x: f32[]) { %y = while %x cond_graph=@c body_graph=@b return %y }"
        " graph @c (input %x: f32[]) { %z = const f32[] {0} %a = gt %x, %z return %a }"
        " graph @b (input %x: f32[]) { %h = const f32[] {1} %a = sub %x, %h return %a }";
    struct place p;
    float x = INFINITY, y = 0;
    rlx_binding in = {"x", {RLX_DTYPE_f32, 0, {0}, &x, 4}},
                out = {"y", {RLX_DTYPE_f32, 0, {0}, &y, 4}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    test_note(t, "row 33");
    expect_ok(t, place_build(&p, loop,
                             &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .loop_limit = 50}));
    rlx_session_run(p.session, &run, &p.err);
    expect_error(t, RLX_ERROR_LIMIT, "50", &p.err);
    x = 49.5f;
    expect_ok(t, rlx_session_run(p.session, &run, &p.err)); /* exactly fifty */
    expect_near(t, y, -0.5, 0);
    expect_error(
        t, RLX_ERROR_ARGUMENT, "loop_limit",
        (place_build(&p, loop, &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .loop_limit = -1}),
         &p.err));
    place_close(&p);
}

/* Row 36: element types that are none. */
TEST_DEVICES(required, element_types_are_checked)
{
    struct place p;
    rlx_graph *g = NULL;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    test_note(t, "row 36");
    for (int d = -1; d <= RLX_DTYPE_count; d += RLX_DTYPE_count + 1) {
        expect_ok(t, rlx_graph_create(p.ctx, &g, &p.err));
        expect(t, rlx_input(g, "x", (rlx_dtype)d, RLX_LIST(2)) == RLX_NO_VALUE);
        rlx_graph_check(g, &p.err);
        expect_error(t, RLX_ERROR_ATTRIBUTE, "not an element type", &p.err);
        rlx_graph_destroy(g);
    }
    expect_refused(t, &p, "graph (input %x: i4[2]) { %y = neg %x return %y }", RLX_ERROR_FORMAT,
                   "i4");
    place_close(&p);
}

/* Row 5: the list of what was missed; without the contract the same model compiles. */
TEST_DEVICES(required, the_fusion_contract_fails_with_its_list)
{
    static const char graph[] = "graph (input %x: f32[1,2], input %w: f32[2,2], input %b: f32[2]) {"
                                " %m = matmul %x, %w %y = add %m, %b return %y, %m }";
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    test_note(t, "row 5");
    place_build(&p, graph,
                &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                    .debug = DEBUG(.assert_fusion_clean = true)});
    expect_error(t, RLX_ERROR_GRAPH, "%m (matmul): multi-consumer", &p.err);
    expect(t, p.session == NULL);
    expect_numbers(t, &p, graph, "1 2 | 1 0 0 1 | 10 20", "11 22");
    place_close(&p);
}

/* Row 39: caches that could hold nothing, and buckets that are none. */
static rlx_status make_session(void *user, uint64_t key, rlx_session **out, rlx_error *err)
{
    struct place *p = user;

    (void)key;
    return rlx_session_create(p->model, p->dev, NULL, out, err);
}

TEST_DEVICES(required, caches_and_buckets_are_checked)
{
    static const rlx_bucket overlap[] = {{1, 4}, {4, 8}}, empty[] = {{1, 4}, {6, 5}};
    static const rlx_bucket good[] = {{1, 4}, {5, 8}};
    rlx_cache *cache = NULL;
    rlx_bucket_cache *buckets = NULL;
    rlx_session *s = NULL;
    rlx_bucket ladder[70];
    size_t n = 70;
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL) || !expect_working(t, &p))
        return place_close(&p);
    test_note(t, "row 39");
    rlx_cache_create(p.ctx, 0, 0, &cache, &p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "capacity", &p.err);
    rlx_bucket_cache_create(p.ctx, overlap, 2, &buckets, &p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "4", &p.err);
    rlx_bucket_cache_create(p.ctx, empty, 2, &buckets, &p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "6", &p.err);
    rlx_bucket_cache_create(p.ctx, NULL, 0, &buckets, &p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "", &p.err);
    rlx_bucket_ladder(1, INT64_MAX, ladder, &n, &p.err);
    expect_error(t, RLX_ERROR_ARGUMENT, "64 bits", &p.err);
    expect(t, cache == NULL && buckets == NULL && n == 70);
    expect_ok(t, rlx_cache_create(p.ctx, 1, 0, &cache, &p.err));
    expect_ok(t, rlx_cache_get(cache, 7, make_session, &p, &s, &p.err));
    expect(t, s != NULL);
    expect_ok(t, rlx_bucket_cache_create(p.ctx, good, 2, &buckets, &p.err));
    expect_ok(t, rlx_bucket_cache_get(buckets, 6, make_session, &p, &s, NULL, &p.err));
    expect(t, s != NULL);
    rlx_cache_destroy(cache);
    rlx_bucket_cache_destroy(buckets);
    place_close(&p);
}

/* Rows of 8.1 that are not here:
 *   4         as row 3; a custom op that no kernel runs: required_values_test.c
 *   10-26     that are supported: required_values_test.c; 20, 22, 25, 26 there as far as there are
 *             kernels
 *   32        there is no such row
 *   35        needs runs: required_dims_test.c
 * and those that no CPU can meet:
 *   27-29     bindings, staging, mirrors and compiled variants belong to GPUs
 *   37        Vulkan memory
 *   38        there is no differentiation yet */
