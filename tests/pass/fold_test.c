/* fold_test.c: a folded value is the value that the kernels compute, bit for bit; and folding
 * survives the want of memory. */
#include "model_run.h"

static const char *const graphs[] = {
    "graph () { %a = const f32[5] {0.1 -0.7 1.3 nan -inf} %b = gelu %a %c = exp %a %d = tanh %b"
    " %y = add %c, %d return %b, %c, %y }",
    "graph () { %a = const f16[2,3] {1 2 3 0.1 0.2 0.3} %b = const f16[3,2] {0.1 0.2 0.3 0.4 0.5 7}"
    " %m = matmul %a, %b %s = softmax %m %l = log %s return %m, %s, %l }",
    "graph () { %a = const bf16[4] {1.5 -2 3 100} %b = rsqrt %a %c = cumsum %b %y = cast %c to=i32"
    " return %b, %c, %y }",
    "graph () { %a = const f32[2,4] {1 5 3 2 9 8 7 0.5} %s = sort %a descending=true"
    " %i = argsort %a %g = gather_elements %a, %i axis=1 %t = topk %a k=2 return %s, %i, %g, %t }",
    "graph () { %x = const f32[1,2,3,3] {1 2 3 4 5 6 7 8 9 9 8 7 6 5 4 3 2 1}"
    " %w = const f32[1,2,2,2] {0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8} %c = conv %x, %w"
    " %p = pool %x kind=max kernel_size=[2,2] return %c, %p }",
    "graph () { %a = const i32[3] {-7 7 2147483647} %b = const i32[3] {2 -2 1} %d = div %a, %b"
    " %m = mod %a, %b %s = add %a, %b return %d, %m, %s }",
    "graph () { %x = const f32[2,4] {1 2 3 4 5 6 7 8} %g = const f32[4] {1 1 2 2}"
    " %b = const f32[4] {0 0 0 1} %y = layer_norm %x, %g, %b %q = fused_swiglu %x return %y, %q }",
};

TEST(pass, folded_is_computed)
{
    static struct outputs folded, computed;
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_error err = {0};

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        char text[1024] = "rlx 1\n";
        rlx_model *m = NULL;
        rlx_session *s = NULL;
        rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};
        strcat(text, graphs[i]);
        test_note(t, "graph %zu", i);
        if (!expect_ok(t, rlx_model_parse(ctx, rlx_cstr(text), &m, &err))) {
            fail(t, "%s", err.message);
            continue;
        }
        expect_ok(t, run_outputs(m, dev, NULL, &folded, &err));
        expect_ok(t, run_outputs(m, dev,
                                 &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                     .debug = DEBUG(.no_optimize = true)},
                                 &computed, &err));
        expect_outputs(t, &folded, &computed);
        if (expect_ok(t, rlx_session_create(m, dev, NULL, &s, &err)))
            rlx_session_memory(s, &memory, NULL);
        expect_eq(t, memory.steps, 0);
        rlx_session_destroy(s);
        if (expect_ok(t, rlx_session_create(m, dev,
                                            &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                                .debug = DEBUG(.no_fold = true)},
                                            &s, &err)))
            rlx_session_memory(s, &memory, NULL);
        expect(t, memory.steps > 0);
        rlx_session_destroy(s);
        rlx_model_destroy(m);
    }
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

static rlx_status fold_once(struct test *t, const rlx_allocator *mem, void *unused)
{
    const rlx_context_desc desc = {RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL, *made = NULL;
    rlx_error err;

    (void)t, (void)unused;
    rlx_status s = rlx_context_create(RLX_VERSION, &desc, &ctx, &err);
    if (s == RLX_OK)
        s = rlx_model_parse(ctx,
                            rlx_cstr("rlx 1 graph (input %x: f32[2]) { %a = const f32[2] {1 2}"
                                     " %b = exp %a %c = exp %a %d = add %b, %c %z = mul %x, %d"
                                     " %w = cast %z to=f32 return %w }"),
                            &m, &err);
    if (s == RLX_OK)
        s = rlx_model_transform(m, "fold,cse,simplify,dce", NULL, &made, &err);
    rlx_model_destroy(made);
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
    return s;
}

TEST(pass, cleaning_survives_no_memory)
{
    expect_survives_no_memory(t, fold_once, NULL);
}
