/* bound_ops_test.c: runtime.md 10, line 5, op by op: a program compiled for n <= 12 gives,
 * at every smaller n, the bits of one compiled for that n. bound_test.c has the common ops and the
 * rules of bounds; bound_model_test.c whole models. */
#include "sized.h"

enum { BOUND = 12 };

struct graph {
    const char *leaves, *body;
};

/* n is the outermost axis. */
static const struct graph first_axis[] = {
    /* indices over it, into it, and out of it */
    {"input %x: f32[n,4], param %w: f32[7,4]",
     "%i = cast %x to=i32 %f = reshape %i shape=[n*4] %y = gather %w, %f axis=0"},
    {"input %x: f32[n,4], input %i: i32[5]", "%y = gather %x, %i axis=0"},
    {"input %x: f32[n,4], input %i: i32[n,4]", "%y = gather_elements %x, %i axis=1"},
    {"input %x: f32[n,4], input %i: i32[n,4]", "%y = gather_elements %x, %i axis=0"},
    {"input %x: f32[n,4], input %i: i32[3,2]", "%y = gather_nd %x, %i"},
    {"input %x: f32[n,4], input %i: i32[n]", "%y = scatter_add %x, %i out_dim=3"},
    {"input %x: f32[n,4], input %i: i32[n]", "%y = scatter_add %x, %i out_dim=n"},
    {"input %x: f32[n,4], input %i: i32[2,4], input %u: f32[2,4]",
     "%y = scatter_elements %x, %i, %u axis=0 reduction=add"},
    {"input %x: f32[n,4], input %i: i32[2,1], input %u: f32[2,4]",
     "%y = scatter_nd %x, %i, %u reduction=max"},
    {"input %d: f32[n,4], input %i: i32[n]", "%y = gather_backward %d, %i axis=0 table_dim=5"},
    /* orders and running values */
    {"input %x: f32[n,4]", "%y = topk %x k=3 axis=1"},
    {"input %x: f32[n,4]", "%y = topk %x k=2 axis=1 result=values"},
    {"input %x: f32[n,4]", "%p = pad %x before=[2,0] after=[0,0] %y = topk %p k=2 axis=0"},
    {"input %x: f32[n,4]", "%y = argsort %x axis=0 descending=true"},
    {"input %x: f32[n,4]", "%y = cumprod %x axis=0 exclusive=true"},
    {"input %x: f32[n,4]", "%y = cummax %x axis=0"},
    {"input %x: f32[n,4]", "%p = pad %x before=[1,0] after=[0,0] %y = argmin %p axis=0"},
    /* spectra of rows, and along it: tables are for the points of the run */
    {"input %x: f32[n,12]", "%y = fft %x"},
    {"input %x: f32[n,256]", "%y = fft %x inverse=true norm=forward"},
    {"input %x: f32[n,6]",
     "%t = transpose %x perm=[1,0] %p = pad %t before=[0,0] after=[0,2*n] %r = narrow %p axis=1 "
     "start=0 len=2*n %y = fft %r"},
    {"input %x: f32[n,20]", "%r = reshape %x shape=[n*20] %y = fft %r norm=ortho"},
    /* losses */
    {"input %x: f32[n,4], input %i: i32[n]", "%y = softmax_cross_entropy_with_logits %x, %i"},
    {"input %x: f32[n,4], input %z: f32[n,4]",
     "%s = softmax %z %l = softmax_cross_entropy %x, %s %y = reduce_mean %l axes=[0]"},
    {"input %x: f32[n,4], input %i: i32[n], input %d: f32[n]",
     "%y = softmax_cross_entropy_backward %x, %i, %d"},
    /* windows over it */
    {"input %x: f32[n,4]",
     "%a = reshape %x shape=[1,1,n,4] %y = pool %a kind=max kernel_size=[1,2]"},
    {"input %x: f32[n,4]",
     "%a = reshape %x shape=[1,1,n,4] %y = pool %a kind=mean kernel_size=[3,2] padding=[1,0]"},
    {"input %x: f32[n,4]",
     "%a = reshape %x shape=[1,1,n,4] %p = pad %a before=[0,0,2,0] after=[0,0,0,0]"
     " %y = pool %p kind=sum kernel_size=[2,1] stride=[2,1]"},
    {"input %x: f32[n,3,5,5], param %w: f32[2,3,3,3]", "%y = conv %x, %w padding=[1,1]"},
    {"input %x: f32[n,2,5,3], param %w: f32[2,3,2,2], param %b: f32[3,1,1]",
     "%c = conv_transpose %x, %w stride=[2,1] %y = add %c, %b"},
    {"input %x: f32[n,2,4,4], param %w: f32[3,2,1,1], param %b: f32[3,1,1]",
     "%c = conv %x, %w %a = add %c, %b %y = relu %a"},
    {"input %x: f32[n,1,3,4]", "%y = im2col %x kernel_size=[2,2]"},
    {"input %x: f32[n,2,2,3]", "%y = resize_nearest_2x %x"},
    /* norms */
    {"input %x: f32[n,4,3], param %g: f32[4], param %b: f32[4]",
     "%y = group_norm %x, %g, %b num_groups=2"},
    {"input %x: f32[n,4], param %g: f32[4]", "%y = rms_norm %x, %g"},
    {"input %x: f32[n,4,2,2], param %g: f32[4], param %b: f32[4]", "%y = layer_norm_2d %x, %g, %b"},
    {"input %x: f32[n,4], param %g: f32[4], input %d: f32[n,4]",
     "%y = layer_norm_backward_gamma %x, %d"},
    {"input %x: f32[n,3,4], input %s: f32[n,1,4], input %h: f32[n,1,4]",
     "%y = ada_layer_norm %x, %s, %h"},
    /* positions */
    {"input %x: f32[n,4], input %c: f32[n,2], input %s: f32[n,2]",
     "%y = rope %x, %c, %s head_dim=4"},
    {"input %x: f32[n,8], input %c: f32[n,1], input %s: f32[n,1]",
     "%y = rope %x, %c, %s head_dim=4 n_rot=2 style=interleaved"},
    {"input %x: f32[n,n]", "%y = trilu %x upper=false diagonal=1"},
    /* products */
    {"input %x: f32[n,4,3], input %z: f32[5,3,n]",
     "%y = dot_general %x, %z lhs_contracting=[2] rhs_contracting=[1] lhs_batch=[0] "
     "rhs_batch=[2]"},
    {"input %x: f32[n,4,3], input %z: f32[3,n,2]",
     "%y = dot_general %x, %z lhs_contracting=[0,2] rhs_contracting=[1,0]"},
    {"input %x: f32[n,4], param %w: f32[4,6], param %a: f32[4,2], param %b: f32[2,6]",
     "%y = lora_matmul %x, %w, %a, %b scale=0.5"},
    {"input %x: f32[n,4], param %w: f32[3,4,2], input %e: i32[n]",
     "%y = grouped_matmul %x, %w, %e"},
    {"input %x: f32[n,64], param %w: u8[6,36]", "%y = dequant_matmul %x, %w scheme=q4_0 k=64"},
    {"input %x: f32[n,256], param %w: u8[6,144]",
     "%y = dequant_matmul %x, %w scheme=q4_k k=256 act=q8"},
    {"input %x: f32[n,4], param %w: u8[4,6], param %s: f32[2,6]",
     "%y = dequant_matmul %x, %w, %s, %s scheme=int8_block_asym k=4 block_size=3"},
    {"input %x: f32[n,32], param %w: u8[3,2,34], input %e: i32[n]",
     "%y = dequant_grouped_matmul %x, %w, %e scheme=q8_0 k=32"},
    {"input %x: f32[n,32], param %w: u8[3,34], input %e: i32[n]",
     "%g = dequant_gather %w, %e scheme=q8_0 k=32 %y = add %g, %x"},
    {"input %x: f32[n,4], input %d: f32[n,6], input %e: i32[n]",
     "%w = grouped_matmul_backward_weight %x, %d, %e experts=3"
     " %r = reshape %w shape=[1,72] %z = narrow %x axis=1 start=0 len=1 %y = mul %z, %r"},
    {"input %x: f32[n,4], param %w: f32[4,6], param %b: f32[6]",
     "%m = matmul %x, %w %a = add %m, %b %y = gelu %a"},
    {"input %x: f32[n,4], param %w: f32[4,6], param %u: f32[4,6]",
     "%g = matmul %x, %w %h = matmul %x, %u %s = silu %g %y = mul %s, %h"},
    {"input %x: f32[n,4], param %w: f32[4,6], param %u: f32[4,2]",
     "%q = matmul %x, %w %k = matmul %x, %u %y = concat %q, %k axis=1"},
    /* fused forms */
    {"input %x: f32[n,4], param %w: f32[4,6], param %b: f32[6]",
     "%y = fused_matmul_bias_act %x, %w, %b activation=silu"},
    {"input %x: f32[n,4], input %r: f32[n,4], param %g: f32[4], param %b: f32[4]",
     "%y = fused_residual_ln %x, %r, %g, %b"},
    {"input %x: f32[n,4], input %r: f32[n,4], param %g: f32[4]",
     "%s = add %x, %r %y = rms_norm %s, %g"},
    {"input %x: f32[n,8]", "%y = fused_swiglu %x gate_first=true"},
    {"input %x: f32[n,4], param %b: f32[4]",
     "%y = elementwise_region %x, %b chain=[[add,i0,i1],[tanh,s0],[mul,s1,i0]]"},
    {"input %x: f32[n,2], input %z: f32[n,2]",
     "%y = batch_elementwise_region %x, %z chain=[[exp,i0],[neg,s0]]"},
    {"input %x: f32[n,2,3]", "%s = slice %x axis=2 start=0 len=2 step=2 %y = tile %s reps=[1,2,1]"},
    {"input %x: f32[n,4]", "%y = quantize %x scales=[0.1]"},
    {"input %x: f32[n,4]", "%c = cast %x to=f16 %d = exp %c %y = cast %d to=f32"},
    {"input %x: f32[n,4]", "%i = bitcast %x to=i32 %a = abs %i %y = bitcast %a to=f32"},
    {"input %x: f32[n,4]", "%y = sample %x seed=5 temperature=0.7"},
    {"input %x: f32[n,4]", "%r = rng_uniform shape=[n,4] seed=9 %y = add %x, %r"},
};

/* n is the second axis, after a batch of B. */
static const struct graph second_axis[] = {
    /* nodes that share a step */
    {"input %x: f32[B,n,4], param %w: f32[24,4]",
     "%m = matmul %x, %w transpose_b=true %q = narrow %m axis=2 start=0 len=8"
     " %k = narrow %m axis=2 start=8 len=8 %v = narrow %m axis=2 start=16 len=8"
     " %y = attention %q, %k, %v num_heads=2 head_dim=4 layout=packed"},
    {"input %x: f32[B,n,12]",
     "%m = reverse %x axes=[2] %q = narrow %m axis=2 start=0 len=4"
     " %k = narrow %m axis=2 start=4 len=4 %v = narrow %m axis=2 start=8 len=4"
     " %y = attention %q, %k, %v num_heads=2 head_dim=2 layout=packed"},
    {"input %x: f32[B,n,4], input %r: f32[B,n,4], param %g: f32[4], param %b: f32[4]",
     "%s = add %x, %r %h = layer_norm %s, %g, %b %y = matmul %s, %h transpose_b=true"},
    {"input %x: f32[B,n,4], input %i: i32[3]", "%y = gather %x, %i axis=1"},
    {"input %x: f32[B,n,4], input %i: i32[B,n,2]", "%y = gather_elements %x, %i axis=2"},
    {"input %x: f32[B,n,4]", "%p = pad %x before=[0,3,0] after=[0,0,0] %y = topk %p k=3 axis=1"},
    {"input %x: f32[B,n,4], input %i: i32[B,n]",
     "%r = reshape %x shape=[B*n,4] %j = reshape %i shape=[B*n]"
     " %l = softmax_cross_entropy_with_logits %r, %j %y = reshape %l shape=[B,n]"},
    {"input %x: f32[B,n,4], param %w: f32[2,4,3], input %k: f32[2]",
     "%t = transpose %x perm=[0,2,1] %y = conv %t, %w padding=[1]"},
    {"input %x: f32[B,n,4]", "%y = pool %x kind=mean kernel_size=[2] stride=[1]"},
    {"input %x: f32[B,4,n], param %g: f32[4], param %b: f32[4]",
     "%y = group_norm %x, %g, %b num_groups=2"},
    {"input %x: f32[B,n,4], param %g: f32[4], param %b: f32[4], input %r: f32[B,n,4]",
     "%s = add %x, %r %a = layer_norm %s, %g, %b %y = add %a, %s"},
    {"input %x: f32[B,n,4], param %g: f32[4], param %w: f32[4,4]",
     "%r = rms_norm %x, %g %f = reshape %r shape=[B*n,4] %y = matmul %f, %w"},
    {"input %x: f32[B,n,8], input %c: f32[n,2], input %s: f32[n,2]",
     "%y = rope %x, %c, %s head_dim=4"},
    {"input %x: f32[B,2,n,4], input %c: f32[n,2], input %s: f32[n,2]",
     "%r = rope %x, %c, %s head_dim=4"
     " %y = attention %r, %r, %x num_heads=2 head_dim=4 mask_kind=sliding_window window=3"},
    {"input %q: f32[B,2,5,4], input %k: f32[B,1,n,4], input %m: f32[B,n]",
     "%y = attention %q, %k, %k, %m num_heads=2 num_kv_heads=1 head_dim=4 mask_kind=custom"},
    {"input %x: f32[B,n,8], input %d: f32[B,n,8]",
     "%y = attention_backward %x, %x, %x, %d num_heads=2 head_dim=4 mask_kind=causal wrt=key"},
    {"input %h: f32[B,n,8], param %w: f32[8,24], param %o: f32[8,8], input %m: f32[B,n]",
     "%y = fused_attention_block %h, %w, %o, %m num_heads=2 head_dim=4"},
    {"input %x: f32[B,n,4], input %z: f32[B,n,4]",
     "%y = dot_general %x, %z lhs_contracting=[1] rhs_contracting=[1] lhs_batch=[0] "
     "rhs_batch=[0]"},
    {"input %x: f32[B,n,4], param %g: f32[4]", "%a = cumsum %x axis=1 %y = rms_norm %a, %g"},
    {"input %x: f32[B,n,n]", "%y = trilu %x"},
};

/* These are unrolled along n, so that there is a program for each n; or shrink, with a kernel. */
static const struct graph unrolled[] = {
    {"input %x: f32[B,n,4], input %b: f32[B,n,2]",
     "%s = softplus %x %z = const f32[4,2] {-1 -2 -3 -1 -2 -3 -1 -2}"
     " %y = selective_scan %x, %s, %z, %b, %b state_size=2"},
    {"input %x: f32[B,n,1,4], input %g: f32[B,n,1]",
     "%d = neg %g %s = sigmoid %g %y = gated_delta_net %x, %x, %x, %d, %s state_size=4"},
};

/* B becomes a number. */
static void put_batch(char *text, size_t size, const char *from, int batch)
{
    size_t n = 0;

    for (; *from && n + 2 < size; from++)
        text[n++] = (char)(*from == 'B' ? '0' + batch : *from);
    text[n] = 0;
}

static bool build(struct test *t, struct place *p, const char *dims, const struct graph *g,
                  int batch)
{
    char text[1024], graph[1024];

    snprintf(text, sizeof text, "%s graph (%s) { %s return %%y }", dims, g->leaves, g->body);
    put_batch(graph, sizeof graph, text, batch);
    if (expect_ok(t, place_build(p, graph, NULL)))
        return sized_params(t, p);
    return fail(t, "%s", p->err.message);
}

static void compare(struct test *t, struct place *bounded, struct place *plain,
                    const struct graph *g, int batch, bool may_be_by_value)
{
    static const int64_t sizes[] = {BOUND, 0, 1, BOUND / 2, BOUND - 1, BOUND};
    static struct sized a, b;
    rlx_bound_info info = {RLX_SIZED(rlx_bound_info)};
    size_t answers = 0;

    test_note(t, "%s", g->body);
    if (!build(t, bounded, "dim n <= 12", g, batch) || !build(t, plain, "dim n", g, batch))
        return;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rlx_dim_size dim = {"n", sizes[i]};
        test_note(t, "%s, batch %d, n %lld", g->body, batch, (long long)sizes[i]);
        sized_run(bounded, &dim, 1, &a);
        sized_run(plain, &dim, 1, &b);
        if (!sized_same(t, &a, &b))
            fail(t, "%s / %s", bounded->err.message, plain->err.message);
        answers += a.status == RLX_OK;
    }
    expect(t, answers >= 5); /* at n = 0 some have none */
    expect_ok(t, rlx_session_bound(bounded->session, "n", &info, &bounded->err));
    expect(t, info.bound == BOUND && (may_be_by_value || !info.by_value));
}

TEST_DEVICES_SLOW(bound_ops, along_the_first_axis)
{
    struct place bounded = {0}, plain = {0};

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(first_axis); i++)
            compare(t, &bounded, &plain, &first_axis[i], 1, false);
    place_close(&bounded);
    place_close(&plain);
}

TEST_DEVICES_SLOW(bound_ops, along_the_second_axis_of_a_batch)
{
    struct place bounded = {0}, plain = {0};

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(second_axis); i++)
            for (int batch = 1; batch <= 3; batch += 2)
                compare(t, &bounded, &plain, &second_axis[i], batch, false);
    place_close(&bounded);
    place_close(&plain);
}

TEST_DEVICES_SLOW(bound_ops, what_is_unrolled_along_the_axis)
{
    struct place bounded = {0}, plain = {0};

    if (place_open(t, &bounded, test_device(t), NULL) &&
        place_open(t, &plain, test_device(t), NULL))
        for (size_t i = 0; i < COUNT_OF(unrolled); i++)
            for (int batch = 1; batch <= 3; batch += 2)
                compare(t, &bounded, &plain, &unrolled[i], batch, true);
    place_close(&bounded);
    place_close(&plain);
}
