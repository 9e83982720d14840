/* builds.h: a program with bounds has all its kernels when it is compiled, so that no run waits for
 * a compiler, whatever its sizes. */
#ifndef TESTS_LOWER_GPU_BUILDS_H
#define TESTS_LOWER_GPU_BUILDS_H

#include "backend/gpu/gpu_kernels.h"
#include "session/session.h"
#include "session/sized.h"

enum { BUILDS_LONG = 60, BUILDS_SHORT = 20, BUILDS_BATCH = 3 }; /* the bounds */

static const char *const builds_graphs[] = {
    /* rows and sums, along the dim and across it */
    "dim n <= 60 graph (input %x: f32[n,24]) { %y = softmax %x %z = softmax %x axis=0"
    " %a = add %y, %z return %a }",
    "dim n <= 60 graph (input %x: f32[5,n], input %b: f32[n]) { %s = softmax %x"
    " %m = reduce_sum %x axes=[0] %t = reduce_max %x axes=[1] %v = add %m, %b return %s, %v, %t }",
    "dim n <= 60 graph (input %x: f32[3,n,4]) { %y = reduce_mean %x axes=[0,2]"
    " %c = cumsum %x axis=1 %e = reduce_sum %x axes=[1] return %y, %c, %e }",
    "dim n <= 60 graph (input %x: f32[n,12], param %g: f32[12], param %b: f32[12])"
    " { %y = layer_norm %x, %g, %b %z = rms_norm %y, %g return %y, %z }",
    /* products: every side of them */
    "dim n <= 60 graph (input %x: f32[n,16], param %w: f32[16,8]) { %y = matmul %x, %w"
    " %z = matmul %x, %x transpose_b=true return %y, %z }",
    "dim n <= 60 graph (input %x: f16[n,16], param %w: f16[16,40], param %b: f16[40])"
    " { %y = matmul %x, %w %z = add %y, %b %r = relu %z return %r }",
    "dim n <= 60 graph (input %x: f32[8,n], input %y: f32[n,6]) { %z = matmul %x, %y return %z }",
    "dim n <= 60 graph (input %x: f32[3,5,n], input %w: f32[n,9]) { %z = matmul %x, %w return %z }",
    /* elements, broadcast and moved */
    "dim n <= 60 graph (input %x: f32[n,3], input %s: f32[n,1]) { %a = mul %x, %s %e = exp %a"
    " %t = transpose %e perm=[1,0] %r = sqrt %t return %r }",
    "dim n <= 60 graph (input %x: f16[2,n]) { %a = neg %x %c = concat %x, %a axis=1"
    " %p = pad %c before=[0,1] after=[0,2] return %c, %p }",
    "dim n <= 60 graph (input %x: f32[n,4], input %i: i32[n]) { %g = gather %x, %i axis=0"
    " %s = narrow %g axis=1 start=1 len=2 %u = neg %s return %u }",
    "dim n <= 60 graph (input %x: f32[2,3,n]) { %t = transpose %x perm=[2,0,1] %e = neg %t"
    " %u = transpose %x perm=[0,2,1] %v = neg %u return %e, %v }",
    /* order */
    "dim n <= 60 graph (input %x: f32[3,n+1]) { %a = argmax %x axis=1 %s = sort %x axis=1"
    " return %a, %s }",
    "dim n <= 60 graph (input %x: f32[2,n], input %i: i32[2,n], input %u: f32[2,n])"
    " { %t = scatter_elements %x, %i, %u axis=0 %c = cumsum %x axis=1 return %t, %c }",
    /* lengths of transforms, sides of matrices */
    "dim n <= 20 graph (input %x: f32[3,2*n+2]) { %y = fft %x return %y }",
    "dim n <= 60 graph (input %x: f32[n,n]) { %y = trilu %x %t = transpose %y perm=[1,0]"
    " %z = matmul %t, %y return %z }",
    /* loops whose values have sizes */
    "dim n <= 60 graph @main (input %c: f16[n], input %x: f16[3,n]) { %y = scan %c, %x body=@b"
    " length=3 num_xs=1 save_trajectory=true return %y } graph @b (input %c: f16[n],"
    " input %x: f16[n]) { %a = add %c, %x return %a }",
    "dim n <= 60 graph @main (input %x: i8[n]) { %y = while %x cond_graph=@c body_graph=@b"
    " max_iterations=3 return %y } graph @c (input %x: i8[n]) { return %x } graph @b"
    " (input %x: i8[n]) { %k = const i8[] {1} %a = sub %x, %k return %a }",
    "dim n <= 60 graph @main (input %x: i8[n]) { %y = while %x cond_graph=@c body_graph=@b"
    " return %y } graph @c (input %x: i8[n]) { %s = reduce_max %x axes=[0] return %s } graph @b"
    " (input %x: i8[n]) { %y = sub %x, %x return %y }",
    /* windows */
    "dim n <= 60 graph (input %x: f32[1,3,n+1], param %w: f32[4,3,3])"
    " { %y = conv %x, %w kernel_size=[3] padding=[1] return %y }",
    /* a layer of a transformer, in batch and sequence */
    "dim b <= 3 dim n <= 20 graph (input %x: f32[b,n,8], param %g: f32[8], param %wq: f32[8,8],"
    " param %wk: f32[8,4], param %wo: f32[8,8]) { %h = rms_norm %x, %g %q = matmul %h, %wq"
    " %k = matmul %h, %wk %v = neg %k %a = attention %q, %k, %v num_heads=2 num_kv_heads=1"
    " head_dim=4 layout=packed mask_kind=causal %o = matmul %a, %wo %r = add %x, %o"
    " %f = reshape %r shape=[b*n,8] %p = softmax %f return %p }",
};

/* Every size there may be, after one run: nothing more is made. */
static inline void builds_run(struct test *t, struct place *p, const char *graph,
                              const struct gpu_target *g)
{
    bool batched = strstr(graph, "dim b") != NULL;
    int64_t most = strstr(graph, "n <= 60") ? BUILDS_LONG : BUILDS_SHORT;
    int64_t first = batched ? BUILDS_BATCH : 1, last = batched ? 0 : 1;
    static struct sized r;
    size_t made = 0;

    for (int64_t b = first; b >= last; b--)
        for (int64_t n = most; n >= 0; n--) {
            const rlx_dim_size dims[] = {{"n", n}, {"b", b}};
            sized_run(p, dims, 1 + batched, &r);
            if (!expect_ok(t, r.status))
                fail(t, "n %lld, b %lld: %s", (long long)n, (long long)b, p->err.message);
            if (b == first && n == most)
                made = g->kernels;
            else if (!expect_eq(t, g->kernels, made))
                return (void)fail(t, "n %lld, b %lld", (long long)n, (long long)b);
        }
}

/* Each graph on a device that has made nothing yet. */
static inline void builds_check(struct test *t, const char *device)
{
    const rlx_flag flag = {"GPU_CACHE", "0"};
    struct place p;

    for (size_t i = 0; i < COUNT_OF(builds_graphs); i++) {
        test_note(t, "graph %zu", i);
        if (!place_open(
                t, &p, device,
                &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = &flag, .flag_count = 1}))
            return;
        if (expect_ok(t, place_build(&p, builds_graphs[i], NULL)) && sized_params(t, &p))
            builds_run(t, &p, builds_graphs[i], &p.dev->backend->ops->gpu(p.dev->backend)->target);
        else
            fail(t, "%s", p.err.message);
        place_close(&p);
    }
}

#endif
