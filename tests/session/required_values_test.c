/* required_values_test.c: runtime.md 8.1, the rows that must be supported: small graphs
 * with the numbers they give. */
#include <stdarg.h>

#include "required.h"
#include "rlx/custom.h"
#include "rlx/tools.h"

struct support {
    int row;
    const char *graph;
    const char *in, *want;
};

static const struct support supports[] = {
    /* 3: nothing leaks past legalisation */
    {3,
     "graph (input %a: f32[2,3], input %b: f32[2,3])"
     " { %y = dot_general %a, %b lhs_contracting=[0] rhs_contracting=[0] return %y }",
     "1 2 3 4 5 6 | 1 0 0 0 1 0", "1 4 0 2 5 0 3 6 0"},
    {3,
     "graph @main (input %p: bool[], input %x: f32[2])"
     " { %y = if %p, %x then_graph=@f else_graph=@g return %y }"
     " graph @f (input %x: f32[2]) { %a = neg %x return %a }"
     " graph @g (input %x: f32[2]) { %a = abs %x return %a }",
     "0 | -1 2", "1 2"},
    {3,
     "graph @main (input %x: f32[]) { %y = while %x max_iterations=20 cond_graph=@c body_graph=@b "
     "return %y }"
     " graph @c (input %x: f32[]) { %z = const f32[] {100} %a = lt %x, %z return %a }"
     " graph @b (input %x: f32[]) { %a = add %x, %x return %a }",
     "3", "192"},
    {3,
     "graph @main (input %x: f32[2], input %s: f32[3,2])"
     " { %y = scan %x, %s body=@b length=3 num_xs=1 return %y }"
     " graph @b (input %c: f32[2], input %x: f32[2]) { %a = mul %c, %x return %a }",
     "1 10 | 1 2 3 4 5 6", "15 480"},
    /* 6: general broadcasting */
    {6, "graph (input %a: f32[2,1,1,2], input %b: f32[1,2,2,1]) { %y = matmul %a, %b return %y }",
     "1 2 3 4 | 1 1 1 -1", "3 -1 7 -1"},
    {6, "graph (input %a: f32[1,2], input %b: f32[3,2,1]) { %y = matmul %a, %b return %y }",
     "1 10 | 1 2 3 4 5 6", "21 43 65"},
    {6, "graph (input %a: f32[2,1,2,1], input %b: f32[1,2]) { %y = matmul %a, %b return %y }",
     "1 2 3 4 | 1 10", "1 10 2 20 3 30 4 40"},
    /* 7: batched weights */
    {7,
     "graph (input %a: f32[2,1,2], input %b: f32[2,2,1], input %c: f32[1])"
     " { %y = fused_matmul_bias_act %a, %b, %c activation=relu return %y }",
     "1 2 3 4 | 1 1 1 -1 | 0.5", "3.5 0"},
    /* 8, 9: strides, not copies of equal size */
    {8, "graph (input %a: f32[2,1,2], input %b: f32[3,1]) { %y = sub %a, %b return %y }",
     "10 20 30 40 | 1 2 3", "9 19 8 18 7 17 29 39 28 38 27 37"},
    {8, "graph (input %a: f32[], input %b: f32[2,2]) { %y = div %a, %b return %y }", "8 | 1 2 4 8",
     "8 4 2 1"},
    {8, "graph (input %a: f32[3,1], input %b: f32[2]) { %y = le %a, %b return %y }", "1 2 3 | 1 2",
     "1 1 0 1 0 0"},
    {9,
     "graph (input %c: bool[2,1], input %a: f32[3], input %b: f32[])"
     " { %y = where %c, %a, %b return %y }",
     "1 0 | 1 2 3 | -1", "1 2 3 -1 -1 -1"},
    /* 10: any axis */
    {10, "graph (input %x: f32[2,2,1]) { %y = softmax %x axis=0 return %y }", "0 5 0 5",
     "0.5 0.5 0.5 0.5"},
    {10, "graph (input %x: f32[2,3]) { %y = cumsum %x axis=0 return %y }", "1 2 3 4 5 6",
     "1 2 3 5 7 9"},
    {10, "graph (input %x: f32[2,2,2]) { %y = cumsum %x axis=1 exclusive=true return %y }",
     "1 2 3 4 5 6 7 8", "0 0 1 2 0 0 5 6"},
    /* 11: rows 1 -1 and 3 -3 along axis 0; without eps the mean is 0 and the deviation the value */
    {11,
     "graph (input %x: f32[2,2], input %g: f32[2], input %b: f32[2])"
     " { %y = layer_norm %x, %g, %b axis=0 eps=0 return %y }",
     "1 3 -1 -3 | 1 2 | 0 10", "1 1 8 8"},
    {11,
     "graph (input %x: f32[2,2], input %g: f32[2])"
     " { %y = rms_norm %x, %g axis=0 eps=0 return %y }",
     "3 1 3 -1 | 1 2", "1 1 2 -2"},
    /* 12: any set of axes, in any order; none is a copy */
    {12, "graph (input %x: f32[2,2,2]) { %y = reduce_sum %x axes=[2,0] return %y }",
     "1 2 3 4 5 6 7 8", "14 22"},
    {12, "graph (input %x: f32[2,2,2]) { %y = reduce_max %x axes=[0,-1] keep_dim=true return %y }",
     "1 2 3 4 5 6 7 8", "6 8"},
    {12, "graph (input %x: f32[2,2]) { %y = reduce_mean %x axes=[] return %y }", "1 2 3 4",
     "1 2 3 4"},
    {12, "graph (input %x: f32[2,0,2]) { %y = reduce_prod %x axes=[1] return %y }", "", "1 1 1 1"},
    /* 14: the four layouts; with q = 0 each query gets the mean of its head's values */
    {14,
     "graph (input %q: f32[1,2,4], input %v: f32[1,2,4])"
     " { %y = attention %q, %q, %v num_heads=2 head_dim=2 return %y }",
     "0 0 0 0 0 0 0 0 | 1 2 3 4 5 6 7 8", "3 4 5 6 3 4 5 6"},
    {14,
     "graph (input %q: f32[2,2,2], input %v: f32[2,2,2])"
     " { %y = attention %q, %q, %v num_heads=2 head_dim=2 return %y }",
     "0 0 0 0 0 0 0 0 | 1 2 3 4 5 6 7 8", "2 3 2 3 6 7 6 7"},
    {14,
     "graph (input %q: f32[1,2,2,2], input %v: f32[1,2,2,2])"
     " { %y = attention %q, %q, %v num_heads=2 head_dim=2 layout=bshd return %y }",
     "0 0 0 0 0 0 0 0 | 1 2 3 4 5 6 7 8", "3 4 5 6 3 4 5 6"},
    /* 15: packed gradient with fewer batches than heads. P is 1/2 everywhere: dv_j = sum of dy / 2;
     * dP_j = dy v_j, so dq = dy (v_1 - v_0) (k_1 - k_0) / 4 */
    {15,
     "graph (input %q: f32[1,2,2], input %k: f32[1,2,2], input %v: f32[1,2,2], input %d: "
     "f32[1,2,2])"
     " { %y = attention_backward %q, %k, %v, %d num_heads=2 head_dim=1 wrt=value return %y }",
     "0 0 0 0 | 1 2 3 6 | 1 1 3 5 | 1 10 3 20", "2 15 2 15"},
    {15,
     "graph (input %q: f32[1,2,2], input %k: f32[1,2,2], input %v: f32[1,2,2], input %d: "
     "f32[1,2,2])"
     " { %y = attention_backward %q, %k, %v, %d num_heads=2 head_dim=1 wrt=query return %y }",
     "0 0 0 0 | 1 2 3 6 | 1 1 3 5 | 1 10 3 20", "1 40 3 80"},
    /* 16: one query, two keys, scores 0 and s: y = 1 / (1 + e^-s).
     * s = 2 * 0.5; s = 1.5 tanh(3 / 1.5); the default scale is 1 / sqrt(1) */
    {16,
     "graph (input %q: f32[1,1,1], input %k: f32[1,2,1], input %v: f32[1,2,1])"
     " { %y = attention %q, %k, %v num_heads=1 head_dim=1 score_scale=0.5 return %y }",
     "1 | 0 2 | 0 1", "0.73105858"},
    {16,
     "graph (input %q: f32[1,1,1], input %k: f32[1,2,1], input %v: f32[1,2,1])"
     " { %y = attention %q, %k, %v num_heads=1 head_dim=1 logit_softcap=1.5 return %y }",
     "1 | 0 3 | 0 1", "0.80938845"},
    {16,
     "graph (input %q: f32[1,1,1], input %k: f32[1,2,1], input %v: f32[1,2,1])"
     " { %y = attention %q, %k, %v num_heads=1 head_dim=1 return %y }",
     "1 | 0 2 | 0 1", "0.88079708"},
    /* a quarter turn of the rotated channels, the others are copied */
    {16,
     "graph (input %x: f32[1,4], input %c: f32[1,1], input %s: f32[1,1])"
     " { %y = rope %x, %c, %s head_dim=4 n_rot=2 return %y }",
     "1 2 3 4 | 0 | 1", "-2 1 3 4"},
    {16,
     "graph (input %x: f32[1,4], input %c: f32[1,2], input %s: f32[1,2])"
     " { %y = rope %x, %c, %s head_dim=4 return %y }",
     "1 2 3 4 | 0 0 | 1 1", "-3 -4 1 2"},
    /* 18: one, two and three spatial axes */
    {18,
     "graph (input %x: f32[1,1,4], input %w: f32[1,1,2])"
     " { %y = conv %x, %w stride=[2] padding=[1] return %y }",
     "1 2 3 4 | 1 10", "10 32 4"},
    {18, "graph (input %x: f32[1,1,2,2,2]) { %y = pool %x kind=sum kernel_size=[2,1,2] return %y }",
     "1 2 3 4 5 6 7 8", "14 22"},
    {18, "graph (input %x: f32[1,1,3]) { %y = pool %x kind=max kernel_size=[2] return %y }",
     "1 3 2", "3 3"},
    {19, "graph (input %x: f32[1,1,2,3]) { %y = im2col %x kernel_size=[2,2] return %y }",
     "1 2 3 4 5 6", "1 2 4 5 2 3 5 6"},
    /* 34: a region broadcasts by itself */
    {34,
     "graph (input %a: f32[2,1], input %b: f32[2])"
     " { %y = elementwise_region %a, %b chain=[[add,i0,i1],[mul,s0,i0],[neg,s1]] return %y }",
     "1 2 | 10 20", "-11 -21 -24 -44"},
    /* 51: nothing to do is done */
    {51, "graph (input %a: f32[2,0], input %b: f32[0,3]) { %y = matmul %a, %b return %y }", "|",
     "0 0 0 0 0 0"},
    {51,
     "graph (input %x: f32[0,4]) { %a = exp %x %b = softmax %a %y = reduce_sum %b axes=[0] return "
     "%y }",
     "", "0 0 0 0"},
    {51, "graph (input %x: f32[0]) { %y = neg %x return %y }", "", ""},
    {51,
     "graph (input %x: f32[1,0,2], input %q: f32[1,1,2])"
     " { %y = attention %q, %x, %x num_heads=1 head_dim=2 return %y }",
     "| 1 2", "0 0"},
    {51,
     "graph (input %x: f32[0,2], input %z: f32[2,2])"
     " { %s = sort %x axis=0 %y = concat %s, %z, %x axis=0 return %y }",
     "| 1 2 3 4", "1 2 3 4"},
};

/* Where the device has no kernel for the op yet, it must say so. */
struct special {
    struct support s;
    const char *op;
};

static const struct special specials[] = {
    /* a real block: [re re im im] */
    {{20, "graph (input %x: f32[4]) { %y = fft %x return %y }", "1 2 0 0", "3 -1 0 0"}, "fft"},
    {{20, "graph (input %x: f64[4]) { %y = fft %x inverse=true norm=forward return %y }",
      "3 -1 0 0", "1 2 0 0"},
     "fft"},
    /* leading axes of x fold. q8_0 rows: d = 1 (f16 3c00), then 32 times 1 and 32 times -1 */
    {{25,
      "graph (input %a: f32[2,1,1]) { %x = expand %a shape=[2,1,32] %w = const u8[2,34] bytes "
      "0x003c"
      "0101010101010101010101010101010101010101010101010101010101010101003c"
      "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
      " %y = dequant_matmul %x, %w scheme=q8_0 k=32 return %y }",
      "1 0.5", "32 -32 16 -16"},
     "dequant_matmul"},
    /* experts are an axis */
    {{26,
      "graph (input %a: f32[2,1], input %e: i32[2]) { %x = expand %a shape=[2,32]"
      " %w = const u8[2,1,34] bytes 0x003c"
      "0101010101010101010101010101010101010101010101010101010101010101003c"
      "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
      " %y = dequant_grouped_matmul %x, %w, %e scheme=q8_0 k=32 return %y }",
      "1 0.5 | 1 0", "-32 16"},
     "dequant_grouped_matmul"},
};

static bool has_kernel(const char *op)
{
    rlx_op_row row;

    for (size_t i = 0; rlx_op_at(i, &row); i++)
        if (strcmp(row.name, op) == 0)
            return row.cpu;
    return false;
}

TEST_DEVICES(required, supported_rows_give_the_right_numbers)
{
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(supports); i++) {
        const struct support *s = &supports[i];
        test_note(t, "row %d: %s", s->row, s->graph);
        expect_numbers(t, &p, s->graph, s->in, s->want);
    }
    for (size_t i = 0; i < COUNT_OF(specials); i++) {
        const struct support *s = &specials[i].s;
        test_note(t, "row %d: %s", s->row, s->graph);
        if (has_kernel(specials[i].op) && (!strstr(s->graph, "f64") || test_has_f64(t, p.ctx)))
            expect_numbers(t, &p, s->graph, s->in, s->want);
        else
            expect_refused(t, &p, s->graph, RLX_ERROR_UNSUPPORTED, specials[i].op);
    }
    place_close(&p);
}

/* Row 3: everything that the device has no kernel for is named at once, before anything is planned.
 */
TEST_DEVICES(required, missing_kernels_are_all_named)
{
    static const char graph[] = "graph (input %x: f32[1,4]) { %f = fft %x"
                                " %w = welch_peaks %f k=1 n_segments=1 return %w }";
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    test_note(t, "row 3");
    bool fft = has_kernel("fft"), welch = has_kernel("welch_peaks");
    if (fft && welch) /* the spectrum is 3 -1 */
        expect_numbers(t, &p, graph, "1 2 0 0", "0 9");
    if (!fft)
        expect_refused(t, &p, graph, RLX_ERROR_UNSUPPORTED, "fft");
    if (!welch)
        expect_refused(t, &p, graph, RLX_ERROR_UNSUPPORTED, "welch_peaks");
    place_close(&p);
}

/* ---- graphs that are too long for a line --------------------------------------------------- */

struct text {
    char at[16384];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *x, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    x->len += (size_t)vsnprintf(x->at + x->len, sizeof x->at - x->len, fmt, args);
    va_end(args);
}

/* Row 23: more inputs, steps and slices than any fixed limit of old. */
TEST_DEVICES(required, regions_of_any_size)
{
    struct place p;
    struct text many = {0}, tall = {0}, wide = {0}, in = {0}, want = {0};

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    put(&many, "graph (");
    for (int i = 0; i < 24; i++)
        put(&many, "%sinput %%x%d: f32[2]", i ? ", " : "", i), put(&in, "%d 1 | ", i);
    put(&many, ") { %%y = elementwise_region ");
    for (int i = 0; i < 24; i++)
        put(&many, "%s%%x%d", i ? ", " : "", i);
    put(&many, " chain=[[add,i0,i1]");
    for (int i = 2; i < 24; i++)
        put(&many, ",[add,s%d,i%d]", i - 2, i);
    put(&many, "] return %%y }");
    test_note(t, "row 23: 24 inputs"); /* 0 + 1 + ... + 23 */
    expect_numbers(t, &p, many.at, in.at, "276 24");

    put(&tall, "graph (input %%x: f32[2]) { %%y = elementwise_region %%x chain=[[add,i0,i0]");
    for (int i = 1; i < 100; i++)
        put(&tall, ",[%s,s%d,i0]", i % 2 ? "sub" : "add", i - 1);
    put(&tall, "] return %%y }");
    test_note(t, "row 23: 100 steps");
    expect_numbers(t, &p, tall.at, "1 -3", "1 -3");

    put(&wide, "graph (input %%x: f32[1], input %%z: f32[1]) { %%y = batch_elementwise_region ");
    for (int i = 0; i < 90; i++)
        put(&wide, "%s%s", i ? ", " : "", i % 7 ? "%x" : "%z"), put(&want, "%d ", i % 7 ? -5 : -7);
    put(&wide, " chain=[[neg,i0]] return %%y }");
    test_note(t, "row 23: 90 slices");
    expect_numbers(t, &p, wide.at, "5 | 7", want.at);
    place_close(&p);
}

/* Row 24: every byte of a custom op's attributes arrives; its input's size is not a limit either.
 */
static rlx_status like_input(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                             size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)in_count, (void)attrs;
    *out = in[0];
    if (attrs_size)
        return RLX_OK;
    snprintf(message, 256, "weigh needs its bytes");
    return RLX_ERROR_ATTRIBUTE;
}

static rlx_status weigh(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                        size_t attrs_size, rlx_tensor *out)
{
    const unsigned char *byte = attrs;
    float sum = 0;

    (void)user, (void)in_count;
    for (size_t i = 0; i < attrs_size; i++)
        sum += (float)byte[i];
    for (size_t i = 0; i < out->bytes / sizeof(float); i++)
        ((float *)out->data)[i] = ((const float *)in[0].data)[i] * sum;
    return RLX_OK;
}

TEST(required, custom_ops_are_found_checked_and_given_all_their_bytes)
{
    static const rlx_custom_op ops[] = {
        {RLX_SIZED(rlx_custom_op), .name = "weigh", .inputs = 1, .infer = like_input, .cpu = weigh},
        {RLX_SIZED(rlx_custom_op), .name = "idea", .inputs = 1,
         .infer = like_input}, /* nothing runs it */
    };
    struct place p;
    struct text x = {0};

    if (!place_open(t, &p, test_device(t),
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .custom_ops = ops,
                                        .custom_op_count = 2}))
        return place_close(&p);
    test_note(t, "row 24");
    put(&x, "graph (input %%x: f32[2]) { %%y = custom %%x name=\"weigh\" attrs=0x");
    for (int i = 0; i < 3000; i++)
        put(&x, "01");
    put(&x, " return %%y }");
    expect_numbers(t, &p, x.at, "1 -2", "3000 -6000");
    expect_refused(t, &p,
                   "graph (input %x: f32[2]) { %y = custom %x name=\"idea\" attrs=0x01 return %y }",
                   RLX_ERROR_UNSUPPORTED, "idea");
    expect_refused(t, &p, "graph (input %x: f32[2]) { %y = custom %x name=\"weigh\" return %y }",
                   RLX_ERROR_ATTRIBUTE, "weigh needs its bytes");
    expect_refused(
        t, &p,
        "graph (input %x: f32[2]) { %y = custom %x, %x name=\"weigh\" attrs=0x01 return %y }",
        RLX_ERROR_GRAPH, "weigh");
    expect_refused(t, &p, "graph (input %x: f32[2]) { %y = custom %x name=\"weight\" return %y }",
                   RLX_ERROR_GRAPH, "custom_ops");
    place_close(&p);
}

/* Row 22: the largest state sizes that are promised. With a = 0 and everything else 1, each of the
 * n states grows by 1 per step; the delta rule with one key of norm 1 stores v and reads it back.
 */
TEST_DEVICES(required, largest_state_sizes)
{
    struct place p;
    struct text x = {0};

    if (!place_open(t, &p, test_device(t), NULL))
        return place_close(&p);
    test_note(t, "row 22");
    put(&x, "graph (input %%s: f32[1,1,1]) { %%x = expand %%s shape=[1,2,1] %%z = sub %%s, %%s"
            " %%r = reshape %%z shape=[1,1] %%a = expand %%r shape=[1,256]"
            " %%b = expand %%s shape=[1,2,256]"
            " %%y = selective_scan %%x, %%x, %%a, %%b, %%b state_size=256 return %%y }");
    expect_numbers(t, &p, x.at, "1", "256 512"); /* by a kernel, or unrolled */
    x = (struct text){0};
    put(&x, "graph (input %%s: f32[1,1,1,1], input %%g: f32[1,1,1])"
            " { %%v = expand %%s shape=[1,1,1,128] %%z = sub %%v, %%v"
            " %%h = narrow %%z axis=3 start=0 len=127 %%k = concat %%s, %%h axis=3"
            " %%b = reshape %%s shape=[1,1,1]"
            " %%o = gated_delta_net %%k, %%k, %%v, %%g, %%b state_size=128"
            " %%y = reduce_sum %%o axes=[0,1,2,3] return %%y }");
    expect_numbers(t, &p, x.at, "1 | 0", "11.3137085"); /* 128 / sqrt(128) */
    place_close(&p);
}

/* Row 62: more batches than a grid of 65535. */
TEST_DEVICES(required, more_than_65535_batches)
{
    enum { N = 70001 };
    struct place p;
    float *x = malloc(N * 2 * sizeof *x), *y = malloc(N * sizeof *y);

    if (!place_open(t, &p, test_device(t), NULL) || !expect(t, x && y))
        goto out;
    test_note(t, "row 62");
    for (int i = 0; i < N; i++)
        x[2 * i] = (float)i, x[2 * i + 1] = 1;
    if (!expect_ok(t,
                   place_build(&p,
                               "graph (input %x: f32[70001,1,2])"
                               " { %t = transpose %x perm=[0,2,1] %y = matmul %x, %t return %y }",
                               NULL)))
        goto out;
    rlx_binding in = {"x", {RLX_DTYPE_f32, 3, {N, 1, 2}, x, N * 2 * sizeof *x}};
    rlx_binding out = {"y", {RLX_DTYPE_f32, 0, {0}, y, N * sizeof *y}};
    expect_ok(t, rlx_session_run(p.session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                                 &p.err));
    expect_eq(t, out.tensor.dim[0], N);
    expect_near(t, y[0], 1, 0);
    expect_near(t, y[255], 65026, 0);
    expect_near(t, y[70000], 4.9e9, 1e3);
out:
    free(x);
    free(y);
    place_close(&p);
}
