/* windows_test.c: operands that are larger than what a device binds at once, and that cannot go in
 * parts: kernels see them through windows, and the results are those of a device without the limit,
 * bit for bit. The limit is lowered, so that small tensors of odd sizes cross several. */
#include "limited.h"

/* Above 4 KiB. */
static const char *const graphs[] = {
    /* products: the weights are larger than the limit */
    "graph (input %x: f32[3,57], param %w: f32[57,61]) { %y = matmul %x, %w return %y }",
    "graph (input %x: f32[1,57], param %w: f32[57,61]) { %y = matmul %x, %w return %y }",
    "graph (input %x: f32[13,57], param %w: f32[61,57]) { %y = matmul %x, %w transpose_b=true"
    " return %y }",
    "graph (input %x: f32[57,13], param %w: f32[57,61]) { %y = matmul %x, %w transpose_a=true"
    " return %y }",
    "graph (input %x: f16[5,57], param %w: f16[57,61]) { %y = matmul %x, %w return %y }",
    "graph (input %x: f32[3,57], param %w: f32[57,61], param %b: f32[61])"
    " { %m = matmul %x, %w %a = add %m, %b %y = gelu %a return %y }",
    "graph (input %x: f32[9,31], input %w: f32[3,31,23], input %i: i32[9])"
    " { %y = grouped_matmul %x, %w, %i return %y }",
    /* tables, and what is written into one */
    "graph (input %t: f32[61,51], input %i: i32[7]) { %c = const i32[1] {30}"
    " %j = mul %i, %c %y = gather %t, %j axis=0 return %y }",
    "graph (input %t: f32[3,1001], input %i: i32[5]) { %c = const i32[1] {499}"
    " %j = mul %i, %c %y = gather %t, %j axis=1 return %y }",
    "graph (input %t: f16[61,51], input %i: i32[7]) { %c = const i32[1] {30}"
    " %j = mul %i, %c %y = gather %t, %j axis=0 return %y }",
    "graph (input %t: f32[61,51], input %i: i32[3,51]) { %c = const i32[1] {30}"
    " %j = mul %i, %c %y = gather_elements %t, %j axis=0 return %y }",
    "graph (input %t: f32[61,51], input %i: i32[5,2]) { %c = const i32[1] {25}"
    " %j = mul %i, %c %y = gather_nd %t, %j return %y }",
    "graph (input %x: f32[6,51], input %i: i32[6]) { %c = const i32[1] {30}"
    " %j = mul %i, %c %y = scatter_add %x, %j out_dim=61 return %y }",
    "graph (input %t: f32[61,51], input %i: i32[3,51], input %x: f32[3,51]) { %c = const i32[1] "
    "{30}"
    " %j = mul %i, %c %y = scatter_elements %t, %j, %x axis=0 return %y }",
    "graph (input %t: f32[61,51], input %i: i32[3,1], input %x: f32[3,51]) { %c = const i32[1] {30}"
    " %j = mul %i, %c %y = scatter_nd %t, %j, %x return %y }",
    /* elements that only move */
    "graph (input %x: f32[57,61]) { %y = transpose %x perm=[1,0] return %y }",
    "graph (input %x: f16[57,61]) { %y = transpose %x perm=[1,0] return %y }",
    "graph (input %x: f32[7,13,31]) { %y = transpose %x perm=[2,0,1] return %y }",
    "graph (input %x: f32[1001], input %z: f32[1502]) { %y = concat %x, %z axis=0 return %y }",
    "graph (input %x: f32[3,401], input %z: f32[3,302]) { %y = concat %x, %z axis=1 return %y }",
    "graph (input %x: f32[2001]) { %y = pad %x before=[301] after=[7] return %y }",
    "graph (input %x: f32[31,57]) { %y = pad %x before=[3,1] after=[2,5] return %y }",
    "graph (input %x: f32[3001]) { %y = slice %x axis=0 start=1 len=1000 step=3 return %y }",
    "graph (input %x: f32[3001]) { %y = reverse %x axes=[0] return %y }",
    "graph (input %x: f32[701]) { %y = tile %x reps=[4] return %y }",
    "graph (input %x: f32[57,61]) { %y = trilu %x upper=true return %y }",
    "graph (input %x: f32[1,3,13,11]) { %y = resize_nearest_2x %x return %y }",
    "graph (input %x: f32[1,2,13,11]) { %y = im2col %x kernel_size=[3,3] return %y }",
    /* long rows */
    "graph (input %x: f32[3001]) { %y = sort %x axis=0 return %y }",
    "graph (input %x: f32[3001]) { %y = argsort %x axis=0 return %y }",
    "graph (input %x: f32[3001]) { %y = topk %x k=7 axis=0 return %y }",
    "graph (input %x: f32[57,41]) { %y = sort %x axis=0 return %y }",
    "graph (input %x: f32[3001]) { %y = softmax %x axis=0 return %y }",
    "graph (input %x: f32[57,41]) { %y = softmax %x axis=0 return %y }",
    "graph (input %x: f32[3001]) { %y = cumsum %x axis=0 return %y }",
    "graph (input %x: f32[3001]) { %y = argmax %x axis=0 return %y }",
    "graph (input %x: f32[4001]) { %y = reduce_sum %x axes=[0] return %y }",
    "graph (input %x: f32[61,57]) { %y = reduce_max %x axes=[0] return %y }",
    "graph (input %x: f32[1501], param %g: f32[1501], param %b: f32[1501])"
    " { %y = layer_norm %x, %g, %b return %y }",
    "graph (input %x: f32[2001], param %g: f32[2001]) { %y = rms_norm %x, %g return %y }",
    "graph (input %x: f32[61,37], input %d: f32[61,37])"
    " { %y = layer_norm_backward_gamma %x, %d return %y }",
    "graph (input %x: f32[2,1501], input %l: i32[2])"
    " { %y = softmax_cross_entropy_with_logits %x, %l return %y }",
    "graph (input %x: f32[2048]) { %y = fft %x return %y }",
    /* windows of images, heads, sequences, matrices */
    "graph (input %x: f32[1,3,31,33], param %w: f32[2,3,3,3]) { %y = conv %x, %w return %y }",
    "graph (input %x: f32[1,9,7,7], param %w: f32[31,9,3,3]) { %y = conv %x, %w return %y }",
    "graph (input %x: f32[1,3,31,33])"
    " { %y = pool %x kernel_size=[3,3] stride=[2,2] kind=max return %y }",
    "graph (input %x: f32[1,91,24], input %c: f32[91,4], input %s: f32[91,4])"
    " { %y = rope %x, %c, %s head_dim=8 return %y }",
    "graph (input %q: f32[1,2,3,8], input %k: f32[1,2,151,8])"
    " { %y = attention %q, %k, %k num_heads=2 head_dim=8 layout=bhsd return %y }",
    "graph (input %x: f32[1,2,131,8])"
    " { %y = attention %x, %x, %x num_heads=2 head_dim=8 layout=bhsd return %y }",
    "graph (input %x: f32[2,5,61], param %w: f32[1,28,61], param %r: f32[1,28,7],"
    " param %b: f32[1,28], param %d: f32[1,28])"
    " { %y = lstm %x, %w, %r, %b, %d hidden_size=7 return %y }",
    "graph (input %x: f32[43,43]) { %t = transpose %x perm=[1,0] %a = matmul %x, %t"
    " %e = add %a, %a %y = cholesky %e return %y }",
    "graph (input %x: f32[61,61]) { %y = knn %x k=3 return %y }",
};

/* Above 1 KiB: of small elements. */
static const char *const small[] = {
    "graph (input %x: f32[2,96], input %w: u8[37,102])"
    " { %y = dequant_matmul %x, %w scheme=q8_0 k=96 return %y }",
    "graph (input %x: f32[2,96], input %w: u8[67,54])"
    " { %y = dequant_matmul %x, %w scheme=q4_0 k=96 return %y }",
    "graph (input %t: u8[61,54], input %i: i32[7]) { %c = const i32[1] {30}"
    " %j = mul %i, %c %y = dequant_gather %t, %j scheme=q4_0 k=96 return %y }",
    "graph (input %x: u8[57,61]) { %y = transpose %x perm=[1,0] return %y }",
    "graph (input %x: u8[1501]) { %y = sort %x axis=0 return %y }",
    "graph (input %x: i8[1501], input %z: i8[1502]) { %y = concat %x, %z axis=0 return %y }",
};

/* Cut into rows as well, of which other kernels make other sums. */
static const char *const in_parts[] = {
    "graph (input %x: f32[33,57], param %w: f32[57,61]) { %y = matmul %x, %w return %y }",
    "graph (input %x: f32[53,53]) { %y = matmul %x, %x return %y }", /* both in one binding */
    "graph (input %x: f32[2,2,91,8])"
    " { %y = attention %x, %x, %x num_heads=2 head_dim=8 layout=bhsd return %y }",
    "graph (input %x: f32[2,1501], param %g: f32[1501], param %b: f32[1501])"
    " { %y = layer_norm %x, %g, %b return %y }",
};

static void compare(struct test *t, const char *bytes, const char *const *graph, size_t count,
                    double tolerance)
{
    static struct sized a, b;
    struct place limited = {0}, plain = {0};

    if (open_limited(t, &limited, "GPU_MAX_BINDING", bytes) && open_limited(t, &plain, NULL, NULL))
        for (size_t i = 0; i < count; i++) {
            test_note(t, "%s", graph[i]);
            if (!run_one(t, &limited, graph[i], &a) || !run_one(t, &plain, graph[i], &b))
                continue;
            if (tolerance > 0)
                expect_close(t, a.y[0], b.y[0], sized_count(&b.shape[0]), tolerance, tolerance);
            else
                sized_same(t, &a, &b);
        }
    place_close(&limited);
    place_close(&plain);
}

TEST_GPUS(gpu_windows, as_without_the_limit)
{
    compare(t, "4096", graphs, COUNT_OF(graphs), 0);
}

TEST_GPUS(gpu_windows, small_elements)
{
    compare(t, "1024", small, COUNT_OF(small), 0);
}

TEST_GPUS(gpu_windows, rows_in_parts)
{
    compare(t, "4096", in_parts, COUNT_OF(in_parts), 1e-5);
}

/* Sizes below the limit, and far above it: as many windows as each needs. */
TEST_GPUS(gpu_windows, sizes_on_both_sides_of_the_limit)
{
    static const char graph[] =
        "dim n <= 1200 graph (input %x: f32[n]) { %s = sort %x axis=0 %y = softmax %s axis=0"
        " return %s, %y }";
    static const int64_t sizes[] = {1200, 1, 0, 255, 256, 257, 1023, 3, 1200};
    static struct sized a, b;
    struct place limited = {0}, plain = {0};

    if (open_limited(t, &limited, "GPU_MAX_BINDING", "1024") &&
        open_limited(t, &plain, NULL, NULL) && expect_ok(t, place_build(&limited, graph, NULL)) &&
        expect_ok(t, place_build(&plain, graph, NULL)))
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            const rlx_dim_size dim = {"n", sizes[i]};
            test_note(t, "n = %lld", (long long)sizes[i]);
            sized_run(&limited, &dim, 1, &a);
            sized_run(&plain, &dim, 1, &b);
            if (expect_ok(t, a.status))
                sized_same(t, &a, &b);
        }
    place_close(&limited);
    place_close(&plain);
}

/* What needs more windows than a kernel has is refused when it is compiled, with numbers, and
 * nothing else suffers. */
TEST_GPUS(gpu_windows, too_many_are_refused)
{
    struct place p;

    if (!open_limited(t, &p, "GPU_MAX_BINDING", "1024"))
        return;
    expect_status(
        t, place_build(&p, "graph (input %x: f32[20000]) { %y = sort %x axis=0 return %y }", NULL),
        RLX_ERROR_LIMIT);
    expect_contains(t, p.err.message, "sort works on ");
    expect_contains(t, p.err.message, "windows of 1024 bytes");
    expect_working(t, &p);
    place_close(&p);
}
