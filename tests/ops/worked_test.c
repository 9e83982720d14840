/* worked_test.c: the worked examples of the op manual (ops-core.md 23). */
#include "device_run.h"

struct example {
    const char *body, *want;
    double tol;
};

static void run_all(struct test *t, const struct example *e, size_t count)
{
    struct device_run r;

    if (!device_open(t, &r, test_device(t)))
        return;
    for (size_t i = 0; i < count; i++)
        device_gives(t, &r, e[i].body, e[i].want, e[i].tol);
    device_close(&r);
}
#define RUN(list) run_all(t, list, sizeof list / sizeof list[0])

TEST_DEVICES(worked, casts_and_rounding)
{
    static const struct example list[] = {
        {"%x = const f32[4] {127.9 300 -1.9 nan} %y = cast %x to=i8 return %y", "127 127 -1 0", 0},
        {"%x = const f32[1] {-3} %y = cast %x to=u8 return %y", "0", 0},
        {"%x = const i32[1] {257} %y = cast %x to=u8 return %y", "1", 0},
        {"%x = const f32[3] {1 -0 -inf} %y = bitcast %x to=i32 return %y",
         "1065353216 -2147483648 -8388608", 0},
        {"%x = const i64[2] {4611686018427387904 -4616189618054758400} %y = bitcast %x to=f64 "
         "return %y",
         "2 -1", 0},
        {"%x = const bool[2] {true false} %y = bitcast %x to=i8 return %y", "1 0", 0},
        {"%x = const u16[2] {15360 64512} %y = bitcast %x to=f16 return %y", "1 -inf", 0},
        {"%x = const f32[5] {-2.5 -0.5 0.5 1.5 2.5} %y = round %x return %y", "-2 0 0 2 2", 0},
    };
    RUN(list);
}

TEST_DEVICES(worked, activations)
{
#define XS "%x = const f32[5] {-3 -1 0.5 1 3} "
    static const struct example list[] = {
        {XS "%y = gelu %x return %y",
         "-0.004049694 -0.158655254 0.345731231 0.841344746 2.995950306", 1e-6},
        {XS "%y = gelu_approx %x return %y",
         "-0.003637392 -0.158808009 0.345714010 0.841191991 2.996362608", 1e-6},
        {XS "%y = silu %x return %y",
         "-0.142277620 -0.268941421 0.311229666 0.731058579 2.857722380", 1e-6},
        {"%x = const f32[1] {1} %y = activation_backward %x, %x kind=gelu return %y", "1.083315471",
         1e-6},
        {"%x = const f32[1] {1} %y = activation_backward %x, %x kind=gelu_approx return %y",
         "1.082964084", 1e-6},
    };
#undef XS
    RUN(list);
}

/* Each part of a product or quotient is right, though the other may be far larger. */
TEST_DEVICES(worked, complex_parts_far_apart)
{
#define PARTS                                                                                  \
    "%i = const c64[1] {0 -1} %t = mul %y, %i %r = complex_real %y %s = complex_real %t %k = " \
    "const f32[1] {1e12} %u = mul %s, %k %z = concat %r, %u axis=0 return %z"
    static const struct example list[] = {
        {"%a = const c64[1] {1e20 1e-30} %b = const c64[1] {1e18 0} %y = mul %a, %b " PARTS,
         "1e38 1", 1e-6},
        {"%a = const c64[1] {1e20 1e-30} %b = const c64[1] {1e-18 0} %y = div %a, %b " PARTS,
         "1e38 1", 1e-6},
    };
#undef PARTS
    RUN(list);
}

TEST_DEVICES(worked, movement)
{
    static const struct example list[] = {
        {"%x = const f32[10] {0 1 2 3 4 5 6 7 8 9} %y = narrow %x axis=0 start=3 len=4 return %y",
         "3 4 5 6", 0},
        {"%x = const f32[2,3] {0 1 2 3 4 5} %y = transpose %x perm=[1,0] return %y", "0 3 1 4 2 5",
         0},
        {"%x = const f32[3,1] {7 8 9} %y = expand %x shape=[2,3,4] return %y",
         "7 7 7 7 8 8 8 8 9 9 9 9 7 7 7 7 8 8 8 8 9 9 9 9", 0},
        {"%x = const f32[0,3] {} %y = reshape %x shape=[-1,3] return %y", "", 0},
    };
    RUN(list);
}

TEST_DEVICES(worked, indexing)
{
#define INDICES "%i = const i32[3] {2 0 7} "
    static const struct example list[] = {
        {"%x = const f32[2,3] {1 2 3 4 5 6} " INDICES "%y = gather %x, %i axis=1 return %y",
         "3 1 3 6 4 6", 0},
        {"%x = const f32[2,3] {1 1 1 1 1 1} " INDICES
         "%y = gather_backward %x, %i axis=1 table_dim=3 return %y",
         "1 0 1 1 0 1", 0},
        {"%x = const f32[4,2] {1 1 2 2 4 4 8 8} %i = const i32[4] {0 2 0 -1} "
         "%y = scatter_add %x, %i out_dim=3 return %y",
         "5 5 0 0 2 2", 0},
    };
#undef INDICES
    RUN(list);
}

TEST_DEVICES(worked, reductions)
{
    static const struct example list[] = {
        {"%x = const f32[2,2] {1 2 3 4} %y = reduce_prod %x axes=[0,1] return %y", "24", 0},
        {"%x = const f32[3] {2 0 5} %y = reduce_prod %x axes=[0] return %y", "0", 0},
        {"%x = const f32[3] {3 1 3} %y = reduce_max %x axes=[0] return %y", "3", 0},
        {"%x = const f32[3] {1 2 3} %y = softmax %x return %y", "0.09003057 0.24472847 0.66524096",
         2e-7},
        {"%x = const f32[2] {-inf -inf} %y = softmax %x return %y", "0 0", 0},
        {"%x = const f32[3] {1 2 3} %y = cumsum %x exclusive=true return %y", "0 1 3", 0},
        {"%x = const f32[3] {1 2 3} %y = cumsum_backward %x exclusive=true return %y", "5 3 0", 0},
        {"%x = const f32[3] {1 2 3} %y = cumsum_backward %x return %y", "6 5 3", 0},
        {"%x = const f32[4] {3 1 3 2} %y = topk %x k=3 return %y", "0 2 3", 0},
        {"%x = const f32[3] {1 nan 7} %y = argmax %x return %y", "1", 0},
    };
    RUN(list);
}

TEST_DEVICES(worked, sampling)
{
    static const struct example list[] = {
        {"%x = const f32[2,4] {0 0 0 0 0 0 0 0} %y = sample %x top_k=4 seed=42 return %y", "3 2",
         0},
        {"%x = const f32[2,4] {9 9 9 9 1 2 3 4} %y = sample %x top_k=4 seed=42 return %y", "3 2",
         0},
        {"%x = const f32[4] {0 0 0 0} %o = const i32[] {7} %y = sample %x, %o top_k=4 seed=42 "
         "return %y",
         "0", 0},
    };
    RUN(list);
}

TEST_DEVICES(worked, norms)
{
#define X "%x = const f32[4] {1 2 3 4} %g = const f32[4] {1 1 1 1} "
#define DY "%d = const f32[4] {1 0 0 0} "
    static const struct example list[] = {
        {X "%b = const f32[4] {0 0 0 0} %y = layer_norm %x, %g, %b return %y",
         "-1.3416354 -0.4472118 0.4472118 1.3416354", 1e-6},
        {X DY "%y = layer_norm_backward_input %x, %g, %d return %y",
         "0.2683303 -0.3577684 -0.0894434 0.1788815", 2e-6},
        {X "%y = rms_norm %x, %g return %y", "0.3651481 0.7302963 1.0954444 1.4605925", 1e-6},
        {X DY "%y = rms_norm_backward_input %x, %g, %d return %y",
         "0.3529765 -0.0243432 -0.0365148 -0.0486864", 2e-6},
    };
#undef X
#undef DY
    RUN(list);
}

TEST_DEVICES(worked, windows)
{
    static const struct example list[] = {
        {"%x = const f32[1,1,5] {1 2 3 4 5} %w = const f32[1,1,3] {1 0 -1} "
         "%y = conv %x, %w stride=[2] padding=[1] return %y",
         "-2 -2 4", 0},
        {"%x = const f32[1,1,4] {1 2 3 4} %y = pool %x kind=mean kernel_size=[3] stride=[2] "
         "padding=[1] return %y",
         "1 3", 1e-7},
        {"%x = const f32[1,1,4] {1 2 3 4} "
         "%y = pool %x kind=mean kernel_size=[3] stride=[2] padding=[1] count_include_pad=false "
         "return %y",
         "1.5 3", 1e-7},
        {"%x = const f32[1,1,4] {1 2 3 4} %y = pool %x kind=max kernel_size=[3] stride=[2] "
         "padding=[1] return %y",
         "2 4", 0},
        {"%x = const f32[1,1,2,2] {1 2 3 4} %c = im2col %x kernel_size=[2,2] padding=[1,1] "
         "%y = narrow %c axis=0 start=0 len=1 return %y",
         "0 0 0 1", 0},
        {"%x = const f32[1,1,2,2] {1 2 3 4} %c = im2col %x kernel_size=[2,2] padding=[1,1] "
         "%y = narrow %c axis=0 start=4 len=1 return %y",
         "1 2 3 4", 0},
    };
    RUN(list);
}

TEST_DEVICES(worked, attention)
{
#define QKV                                                           \
    "%q = const f32[1,1,2,1] {1 2} %k = const f32[1,1,3,1] {0 1 -1} " \
    "%v = const f32[1,1,3,1] {10 20 30} "
#define HEAD "num_heads=1 head_dim=1 score_scale=1 "
    static const struct example list[] = {
        {QKV "%y = attention %q, %k, %v " HEAD "return %y", "18.453021 18.985658", 1e-6},
        {QKV "%y = attention %q, %k, %v " HEAD "mask_kind=causal return %y", "17.310586 18.985658",
         1e-6},
        {QKV "%y = attention %q, %k, %v " HEAD "mask_kind=sliding_window window=1 return %y",
         "17.310586 20.179862", 1e-6},
        {QKV "%y = attention %q, %k, %v " HEAD "logit_softcap=1 return %y", "18.522759 18.454772",
         1e-6},
        {QKV "%m = const f32[1,3] {0 0 0} %y = attention %q, %k, %v, %m " HEAD
             "mask_kind=custom return %y",
         "0 0", 0},
    };
#undef QKV
#undef HEAD
    RUN(list);
}

TEST_DEVICES(worked, rope)
{
#define TABLES                                                                   \
    "%x = const f32[1,4] {1 2 3 4} %c = const f32[1,2] {0.54030231 0.99995000} " \
    "%s = const f32[1,2] {0.84147098 0.00999983} "
    static const struct example list[] = {
        {TABLES "%y = rope %x, %c, %s head_dim=4 return %y",
         "-1.9841106 1.9599007 2.4623779 4.0197997", 1e-6},
        {TABLES "%y = rope %x, %c, %s head_dim=4 style=interleaved return %y",
         "-1.1426397 1.9220756 2.9598507 4.0297995", 1e-6},
    };
#undef TABLES
    RUN(list);
}

TEST_DEVICES(worked, loss)
{
    static const struct example list[] = {
        {"%x = const f32[1,3] {1 2 3} %l = const i32[1] {2} "
         "%y = softmax_cross_entropy_with_logits %x, %l return %y",
         "0.407605964", 1e-6},
        {"%x = const f32[1,3] {1 2 3} %l = const i32[1] {2} %d = const f32[1] {1} "
         "%y = softmax_cross_entropy_backward %x, %l, %d return %y",
         "0.09003057 0.24472847 -0.33475904", 1e-6},
        {"%x = const f32[1,3] {1 2 3} %l = const i32[1] {-1} "
         "%y = softmax_cross_entropy_with_logits %x, %l return %y",
         "0", 0},
    };
    RUN(list);
}

TEST_DEVICES(worked, region)
{
    static const struct example list[] = {
        {"%x = const f32[2,3] {-1 0 1 2 -3 4} %b = const f32[3] {1 1 1} %s = const f32[] {2} "
         "%y = elementwise_region %x, %b, %s chain=[[add,i0,i1],[relu,s0],[mul,s1,i2]] return %y",
         "0 2 4 6 0 10", 0},
    };
    RUN(list);
}

TEST_DEVICES(worked, scan)
{
#define BODY                                                                   \
    "graph @body (input %c: f32[], input %x: f32[]) { %two = const f32[] {2} " \
    "%d = mul %c, %two %y = add %d, %x return %y }\n"
#define VJP                                                                                    \
    "graph @vjp (input %c: f32[], input %x: f32[], input %d: f32[]) { %two = const f32[] {2} " \
    "%dc = mul %d, %two return %dc, %d }\n"
#define INIT "rlx 1\ngraph @main () { %i = const f32[] {1} %xs = const f32[3] {1 2 3} "
    static const struct example list[] = {
        {INIT
         "%y = scan %i, %xs body=@body length=3 num_xs=1 save_trajectory=true return %y }\n" BODY,
         "3 8 19", 0},
        {INIT "%t = const f32[3] {3 8 19} %g = const f32[] {1} "
              "%y = scan_backward %i, %t, %g, %xs body=@body body_vjp=@vjp length=3 num_xs=1 "
              "return %y }\n" BODY VJP,
         "8", 0},
        {INIT "%t = const f32[3] {3 8 19} %g = const f32[] {1} "
              "%y = scan_backward_xs %i, %t, %g, %xs body=@body body_vjp=@vjp length=3 num_xs=1 "
              "return %y }\n" BODY VJP,
         "4 2 1", 0},
        {"rlx 1\ngraph @main () { %i = const f32[] {0} %xs = const f32[10] {1 1 1 1 1 1 1 1 1 1} "
         "%y = scan %i, %xs body=@sum length=10 num_xs=1 save_trajectory=true num_checkpoints=3 "
         "return %y }\n"
         "graph @sum (input %c: f32[], input %x: f32[]) { %y = add %c, %x return %y }\n",
         "4 7 10", 0},
    };
#undef BODY
#undef VJP
#undef INIT
    RUN(list);
}

/* ---- ops-special.md 11.3 --------------------------------------------------------------------- */

TEST_DEVICES(worked, gate)
{
    static const struct example list[] = {
        {"%s = const f32[4] {.9 .1 .6 .5} %r = const f32[4] {.8 .1 .55 .5} "
         "%y = group_limited_gate %s, %r n_group=2 topk_group=1 top_k=2 scaling=2.5 return %y",
         "2 3 1.3636364 1.1363636", 1e-6},
        /* one of each group, ties to the smaller index; NaN is last, but may have to be taken */
        {"%s = const f32[4] {.5 .5 .25 .25} %r = const f32[4] {1 nan 1 2} "
         "%y = group_limited_gate %s, %r n_group=4 topk_group=4 top_k=4 scaling=3 return %y",
         "3 0 2 1 0.5 1 0.5 1", 1e-6},
        {"%s = const f32[4] {.5 .125 .25 .25} %r = const f32[4] {1 1 1 1} "
         "%y = group_limited_gate %s, %r n_group=2 topk_group=1 top_k=1 scaling=3 return %y",
         "0 1.5", 1e-6},
        {"%s = const f32[2] {0 0} %y = group_limited_gate %s, %s n_group=1 topk_group=1 top_k=2 "
         "return %y",
         "0 1 0 0", 0},
        /* shares of what adds up to more than an f32 holds */
        {"%s = const f32[3] {3e38 3e38 1} %y = group_limited_gate %s, %s n_group=1 topk_group=1 "
         "top_k=2 scaling=1 return %y",
         "0 1 0.5 0.5", 1e-6},
    };
    RUN(list);
}

TEST_DEVICES(worked, neighbours)
{
#define D "%d = const f32[4,4] {0 1 1 3 1 0 2 2 1 2 0 nan 3 2 inf 0} "
    static const struct example list[] = {
        {D "%y = knn %d k=2 return %y", "1 2 1 1 0 2 1 2 0 1 1 2 1 0 2 3", 0},
        {D "%y = knn %d k=3 return %y",
         "1 2 3 1 1 3 0 2 3 1 2 2 0 1 4 1 2 3.4028234663852886e38 1 0 4 2 3 3.4028234663852886e38",
         0},
        {D "%g = const f32[4,2] {1 2 3 4 5 6 7 8} %y = knn_backward %d, %g k=2 return %y",
         "0 1 2 0 3 0 4 0 5 6 0 0 8 7 0 0", 0},
        /* the diagonal is never looked at; what is not below FLT_MAX is nobody's neighbour */
        {"%d = const f32[2,2] {-1 -inf 3.4028234663852886e38 -9} %y = knn %d k=1 return %y",
         "1 -inf 2 3.4028234663852886e38", 0},
        {"%d = const f32[3,3] {9 0 -0 -1 9 -2 5 5 5} %y = knn %d k=2 return %y",
         "1 2 0 -0 2 0 -2 -1 0 1 5 5", 0},
    };
#undef D
    RUN(list);
}

/* A factor of 0 counts where the element above it was none: 0 times infinity is NaN. */
TEST_DEVICES(worked, an_infinite_pivot)
{
#define REST "0 0 0 0 0 0 1 0 0 0 0 0 0 1 0 0 0 0 0 0 1 0 0 0 0 0 0 1} "
#define SOLVE "%b = const f32[6,1] {1 1 1 1 1 1} %y = dense_solve %a, %b "
    static const struct example list[] = {
        {"%a = const f32[2,2] {inf inf 1 2} %b = const f32[2,1] {1 1} %y = dense_solve %a, %b "
         "return %y",
         "nan nan", 0},
        {"%a = const f32[6,6] {inf inf 0 0 0 0 1 2 " REST SOLVE "return %y", "nan nan 1 1 1 1", 0},
        {"%a = const f32[6,6] {inf inf 0 0 0 0 0 2 " REST SOLVE
         "%x = narrow %y axis=0 start=1 len=5 return %x",
         "0.5 1 1 1 1", 0},
    };
#undef REST
#undef SOLVE
    RUN(list);
}
