/* parts_test.c: runtime.md 10, line 9: operands above what a kernel can see at once, of
 * which rows go in parts (windows_test.c: the others). The limit is lowered: results are those of a
 * device without it. Line 10: more groups than fit into a row of a grid. */
#include "limited.h"

static const char *const graphs[] = {
    "graph (input %x: f32[64,40]) { %y = softmax %x axis=1 return %y }",
    "graph (input %x: f32[50,3,16]) { %y = softmax %x axis=1 return %y }",
    "graph (input %x: f32[1,64,40]) { %y = softmax %x axis=2 return %y }",
    "graph (input %x: f32[64,40]) { %y = cumsum %x axis=1 return %y }",
    "graph (input %x: f32[64,40]) { %y = sort %x axis=1 return %y }",
    "graph (input %x: f32[64,40]) { %y = argsort %x axis=1 return %y }",
    "graph (input %x: f32[64,40]) { %y = topk %x k=3 axis=1 return %y }",
    "graph (input %x: f32[64,40]) { %y = argmax %x axis=1 return %y }",
    "graph (input %x: f32[64,40]) { %y = reduce_sum %x axes=[1] return %y }",
    "graph (input %x: f32[64,4,10]) { %y = reduce_mean %x axes=[1] keep_dim=true return %y }",
    "graph (input %x: f32[64,40]) { %y = reduce_max %x axes=[1] return %y }",
    "graph (input %x: f32[64,40], param %g: f32[40], param %b: f32[40])"
    " { %y = layer_norm %x, %g, %b return %y }",
    "graph (input %x: f32[64,40], param %g: f32[40]) { %y = rms_norm %x, %g return %y }",
    "graph (input %x: f32[64,40], input %r: f32[64,40], param %g: f32[40], param %b: f32[40])"
    " { %s = add %x, %r %y = layer_norm %s, %g, %b return %y }",
    "graph (input %x: f32[64,40], input %r: f32[64,40], param %g: f32[40], param %b: f32[40])"
    " { %s = add %x, %r %n = layer_norm %s, %g, %b %y = mul %n, %s return %y }",
    "graph (input %x: f32[80,16], param %w: f32[36,16]) { %m = matmul %x, %w transpose_b=true"
    " %a = narrow %m axis=1 start=0 len=12 %b = narrow %m axis=1 start=12 len=12"
    " %c = narrow %m axis=1 start=24 len=12 %d = mul %a, %b %y = add %d, %c return %y }",
    "graph (input %x: f32[64,40]) { %y = fused_swiglu %x return %y }",
    "graph (input %x: f32[40,4,16]) { %y = transpose %x perm=[0,2,1] return %y }",
    "graph (input %x: f32[64,1,10]) { %y = expand %x shape=[64,4,10] return %y }",
    "graph (input %x: f32[40]) { %y = expand %x shape=[64,40] return %y }",
    "graph (input %x: f32[64,20], input %z: f32[64,20]) { %y = concat %x, %z axis=1 return %y }",
    "graph (input %x: f32[64,30]) { %y = pad %x before=[0,3] after=[0,7] return %y }",
    "graph (input %x: f32[80,16], param %w: f32[16,24]) { %y = matmul %x, %w return %y }",
    "graph (input %x: f32[1,80,16], param %w: f32[16,24]) { %y = matmul %x, %w return %y }",
    "graph (input %x: f32[1,40], param %w: f32[97,40]) { %y = matmul %x, %w transpose_b=true"
    " return %y }",
    "graph (input %x: f32[1,40], param %w: f32[97,40], param %b: f32[97])"
    " { %m = matmul %x, %w transpose_b=true %a = add %m, %b %y = relu %a return %y }",
    "graph (input %x: f32[1,3,17,19], param %w: f32[9,3,3,3]) { %y = conv %x, %w return %y }",
    "graph (input %x: f32[3,20,40], input %s: f32[3,1,40], input %b: f32[40])"
    " { %y = ada_layer_norm %x, %s, %b return %y }",
    "graph (input %x: f32[16,8,16], input %z: f32[16,16,8]) { %y = matmul %x, %z return %y }",
    "graph (input %x: f32[16,8,16], input %z: f32[16,8]) { %y = matmul %x, %z return %y }",
    "graph (input %x: f32[80,16], param %w: f32[16,24], param %b: f32[24])"
    " { %m = matmul %x, %w %a = add %m, %b %y = gelu %a return %y }",
    "graph (input %x: f32[20,2,8,8], param %w: f32[3,2,3,3]) { %y = conv %x, %w return %y }",
    "graph (input %x: f32[20,2,8,8], param %w: f32[2,2,3,3]) { %y = conv_transpose %x, %w return "
    "%y }",
    "graph (input %x: f32[20,2,8,8], param %g: f32[2], param %b: f32[2])"
    " { %y = group_norm %x, %g, %b num_groups=2 return %y }",
    "graph (input %x: f32[20,2,8,8], param %g: f32[2], param %b: f32[2])"
    " { %y = layer_norm_2d %x, %g, %b return %y }",
    "graph (input %x: f32[20,2,8,8])"
    " { %y = pool %x kernel_size=[2,2] stride=[2,2] kind=max return %y }",
    "graph (input %x: f32[64,40]) { %y = gelu %x return %y }",
    "graph (input %x: f32[64,40], input %v: f32[40]) { %y = mul %x, %v return %y }",
    "graph (input %x: f32[64,40]) { %y = cumsum_backward %x axis=1 return %y }",
    "graph (input %x: f32[64,32]) { %y = fft %x return %y }",
    "graph (input %x: f32[64,40], input %l: i32[64])"
    " { %y = softmax_cross_entropy_with_logits %x, %l return %y }",
    "graph (input %x: f32[64,40], input %l: f32[64,40])"
    " { %y = softmax_cross_entropy %x, %l return %y }",
    "graph (input %x: f32[64,40], input %l: i32[64], input %d: f32[64])"
    " { %y = softmax_cross_entropy_backward %x, %l, %d return %y }",
    "graph (input %x: f32[64,40], param %g: f32[40], input %d: f32[64,40])"
    " { %y = layer_norm_backward_input %x, %g, %d return %y }",
    "graph (input %x: f32[64,40], param %g: f32[40], input %d: f32[64,40])"
    " { %y = rms_norm_backward_input %x, %g, %d return %y }",
    "graph (input %x: f32[20,2,8,8], param %g: f32[2], input %d: f32[20,2,8,8])"
    " { %y = group_norm_backward_input %x, %g, %d num_groups=2 return %y }",
    "graph (input %x: f32[20,2,8,8], param %g: f32[8], param %b: f32[8], param %m: f32[8],"
    " input %v: f32[8]) { %e = exp %v %y = batch_norm_inference %x, %g, %b, %m, %e return %y }",
    "graph (input %x: f32[20,2,8,8], param %w: f32[3,2,3,3], param %b: f32[3])"
    " { %c = conv %x, %w %r = reshape %b shape=[3,1,1] %a = add %c, %r %y = relu %a return %y }",
    "graph (input %x: f32[20,8,8,2], input %k: f32[20,8,8,2])"
    " { %y = attention %x, %k, %k num_heads=8 head_dim=2 layout=bhsd return %y }",
    "graph (input %x: f32[20,8,16], input %k: f32[20,8,16], input %m: f32[1,1,8,8]) { %y ="
    " attention %x, %k, %k, %m num_heads=4 head_dim=4 layout=packed mask_kind=bias return %y }",
    "graph (input %x: f32[20,8,16], input %m: f32[20,1,8,8]) { %y = attention %x, %x, %x, %m"
    " num_heads=4 head_dim=4 layout=packed mask_kind=bias return %y }",
    "graph (input %x: f32[20,8,16], input %d: f32[20,8,16])"
    " { %y = attention_backward %x, %x, %x, %d num_heads=4 head_dim=4 layout=packed wrt=key"
    " return %y }",
    "graph (input %t: f32[20,16], input %i: i32[100]) { %y = gather %t, %i axis=0 return %y }",
    "graph (input %t: f32[40,3,20], input %i: i32[2]) { %y = gather %t, %i axis=1 return %y }",
    "graph (input %x: f32[200,3,3]) { %t = transpose %x perm=[0,2,1] %a = add %x, %t"
    " %y = eigh_batch %a return %y }",
    "graph (input %x: f32[200,3,3], input %b: f32[200,3,2]) { %k = const f32[3,3] {9 0 0 0 9 0 0"
    " 0 9} %a = add %x, %k %y = batched_dense_solve %a, %b return %y }",
};

/* Fewer rows may be summed up by another kernel, in another order. */
static void expect_same(struct test *t, const struct sized *a, const struct sized *b)
{
    for (size_t k = 0; k < a->outputs; k++)
        if (expect_eq_u64(t, sized_count(&a->shape[k]), sized_count(&b->shape[k])))
            expect_close(t, a->y[k], b->y[k], sized_count(&b->shape[k]), 1e-5, 1e-6);
}

/* Every graph on a device with the flag and on one without. */
static void compare(struct test *t, const char *flag, const char *value)
{
    static struct sized a, b;
    struct place limited = {0}, plain = {0};

    if (open_limited(t, &limited, flag, value) && open_limited(t, &plain, NULL, NULL))
        for (size_t i = 0; i < COUNT_OF(graphs); i++) {
            test_note(t, "%s=%s: %s", flag, value, graphs[i]);
            if (run_one(t, &limited, graphs[i], &a) && run_one(t, &plain, graphs[i], &b))
                expect_same(t, &a, &b);
        }
    place_close(&limited);
    place_close(&plain);
}

TEST_GPUS(gpu_parts, operands_above_the_binding_limit)
{
    compare(t, "GPU_MAX_BINDING", "4096");
}

TEST_GPUS(gpu_parts, more_groups_than_a_row_of_a_grid_has)
{
    compare(t, "GPU_MAX_GROUPS", "6");
}

/* Sizes that shrink below the limit, and that grow above it again. */
TEST_GPUS(gpu_parts, sizes_on_both_sides_of_the_limit)
{
    static const char graph[] =
        "graph (input %x: f32[n,40], param %w: f32[40,24]) { %s = softmax %x axis=1"
        " %m = matmul %s, %w %r = reduce_sum %m axes=[1] return %m, %r }";
    static const int64_t sizes[] = {64, 1, 0, 25, 26, 27, 60, 3, 64};
    static struct sized a, b;
    struct place limited = {0}, plain = {0};
    char text[256];

    snprintf(text, sizeof text, "dim n <= 64 %s", graph);
    if (open_limited(t, &limited, "GPU_MAX_BINDING", "4096") &&
        open_limited(t, &plain, NULL, NULL) && expect_ok(t, place_build(&limited, text, NULL)) &&
        expect_ok(t, place_build(&plain, text, NULL)) && sized_params(t, &limited) &&
        sized_params(t, &plain))
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            const rlx_dim_size dim = {"n", sizes[i]};
            test_note(t, "n = %lld", (long long)sizes[i]);
            sized_run(&limited, &dim, 1, &a);
            sized_run(&plain, &dim, 1, &b);
            if (expect_ok(t, a.status) && expect_ok(t, b.status))
                expect_same(t, &a, &b);
        }
    place_close(&limited);
    place_close(&plain);
}
