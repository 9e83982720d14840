/* joint_test.c: nodes that share a step (lower/joint.h) give what they give apart: attention that
 * reads columns where they lie, a norm with the sum that it is of, an
 * lstm with its last cell. Products: qkv_split_test.c. */
#include "joint_run.h"

/* ---- graphs ---- */

struct heads {
    int batch, seq, heads, kv, dim;
};

/* [B,S,(H + 2 K) D] columns, in a layout that keeps lines whole. */
static void columns_of_lines(struct source *s, const struct heads *h, const char *layout,
                             const char *dtype, const char *attrs)
{
    int q = h->heads * h->dim, k = h->kv * h->dim;
    bool four = strcmp(layout, "bshd") == 0;

    source_start(s, 1);
    source_leaf(s, "input %%x: %s[%d,%d,%d]", dtype, h->batch, h->seq, q + 2 * k);
    source_node(s, "%%n = neg %%x");
    source_node(s, "%%q = narrow %%n axis=2 start=0 len=%d", q);
    source_node(s, "%%k = narrow %%n axis=2 start=%d len=%d", q, k);
    source_node(s, "%%v = narrow %%n axis=2 start=%d len=%d", q + k, k);
    if (four) {
        source_node(s, "%%qr = reshape %%q shape=[%d,%d,%d,%d]", h->batch, h->seq, h->heads,
                    h->dim);
        source_node(s, "%%kr = reshape %%k shape=[%d,%d,%d,%d]", h->batch, h->seq, h->kv, h->dim);
        source_node(s, "%%vr = reshape %%v shape=[%d,%d,%d,%d]", h->batch, h->seq, h->kv, h->dim);
    }
    source_node(s, "%%y = attention %s num_heads=%d num_kv_heads=%d head_dim=%d layout=%s %s",
                four ? "%qr, %kr, %vr" : "%q, %k, %v", h->heads, h->kv, h->dim, layout, attrs);
    source_node(s, "return %%y");
}

/* One of five axes is the three of q, k and v; the rest is what the layout wants. */
static void columns_of_five(struct source *s, const struct heads *h, const char *layout, int axis,
                            const char *dtype)
{
    bool folded = strcmp(layout, "folded") == 0, bshd = strcmp(layout, "bshd") == 0;
    int dims[5], rest[4] = {h->batch, bshd ? h->seq : h->heads, bshd ? h->heads : h->seq, h->dim};

    for (int i = 0, k = 0; i < 5; i++)
        dims[i] = i == axis ? 3 : rest[k++];
    source_start(s, 1);
    source_leaf(s, "input %%x: %s[%d,%d,%d,%d,%d]", dtype, dims[0], dims[1], dims[2], dims[3],
                dims[4]);
    source_node(s, "%%n = neg %%x");
    for (int i = 0; i < 3; i++) {
        source_node(s, "%%n%d = narrow %%n axis=%d start=%d len=1", i, axis, i);
        if (folded)
            source_node(s, "%%o%d = reshape %%n%d shape=[%d,%d,%d]", i, i, rest[0] * rest[1],
                        rest[2], rest[3]);
        else
            source_node(s, "%%o%d = reshape %%n%d shape=[%d,%d,%d,%d]", i, i, rest[0], rest[1],
                        rest[2], rest[3]);
    }
    source_node(s, "%%y = attention %%o0, %%o1, %%o2 num_heads=%d head_dim=%d layout=%s", h->heads,
                h->dim, layout);
    source_node(s, "return %%y");
}

static void norm_of_a_sum(struct source *s, const char *shape, int width, const char *dtype,
                          const char *norm, const char *gamma)
{
    source_start(s, 1);
    source_leaf(s, "input %%x: %s[%s]", dtype, shape);
    source_leaf(s, "input %%r: %s[%s]", dtype, shape);
    source_leaf(s, "param %%g: %s[%d]", gamma, width);
    source_leaf(s, "param %%e: %s[%d]", gamma, width);
    source_node(s,
                "%%d = reverse %%x axes=[0]\n%%s = add %%d, %%r\n%%n = %s\n%%z = mul %%s, %%s\n"
                "return %%n, %%z, %%s",
                norm);
}

/* ---- each kind, on any device that has them ---- */

static void check_packed(struct test *t, const char *device)
{
    static const struct heads sizes[] = {
        {2, 5, 3, 3, 8}, {1, 7, 4, 2, 4}, {2, 33, 6, 1, 5}, {3, 1, 2, 2, 16}, {1, 70, 2, 2, 32}};
    static const struct {
        const char *layout;
        int axis;
    } five[] = {{"bshd", 2}, {"bshd", 1}, {"bshd", 3},   {"bhsd", 1},
                {"bhsd", 2}, {"bhsd", 3}, {"folded", 1}, {"folded", 3}};
    struct source *s = malloc(sizeof *s);
    rlx_context *ctx;
    rlx_device *dev;

    if (s && open_device(t, device, &ctx, &dev)) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            columns_of_lines(s, &sizes[i], i % 2 ? "bshd" : "packed", "f32",
                             i == 1 ? "mask_kind=causal" : "");
            compare(t, ctx, dev, source_text(s), "packed_qkv_attention", 0);
        }
        for (size_t i = 0; i < sizeof five / sizeof five[0]; i++) {
            columns_of_five(s, &(struct heads){2, 5, 3, 3, 8}, five[i].layout, five[i].axis, "f32");
            compare(t, ctx, dev, source_text(s), "packed_qkv_attention", 0);
        }
        close_device(ctx, dev);
    }
    free(s);
}

/* An lstm whose sequence, last state and last cell are read, in that order or another. */
static void layer_with_cell(struct source *s, const char *dtype, const char *attrs, bool lengths,
                            bool cell_first, const char *results)
{
    bool both = strstr(attrs, "bidirectional") != NULL;
    const char *more = lengths ? ", %l" : "", *with = lengths ? "has_lengths=true" : "";

    source_start(s, 1);
    source_leaf(s, "input %%x: %s[3,5,6]", dtype);
    source_leaf(s, "param %%w: %s[%d,16,6]", dtype, both ? 2 : 1);
    source_leaf(s, "param %%u: %s[%d,16,4]", dtype, both ? 2 : 1);
    source_leaf(s, "param %%b: %s[%d,16]", dtype, both ? 2 : 1);
    if (lengths)
        source_node(s, "%%l = const i32[3] {2, 5, 0}");
    for (const char *r = results; *r; r++) {
        char which = cell_first ? results[strlen(results) - 1 - (size_t)(r - results)] : *r;
        source_node(s, "%%%c = lstm %%x, %%w, %%u, %%b, %%b%s hidden_size=4 %s %s result=%s", which,
                    more, attrs, with,
                    which == 's'   ? "seq"
                    : which == 'h' ? "h"
                                   : "c");
    }
    source_node(s, "return %%%c, %%c%s", results[0], strlen(results) > 2 ? ", %h" : "");
}

static void check_cell(struct test *t, const char *device)
{
    const rlx_session_desc without = {RLX_SIZED(rlx_session_desc),
                                      .debug = DEBUG(.no_fusion = true)};
    struct source *s = malloc(sizeof *s);
    rlx_context *ctx;
    rlx_device *dev;

    if (s && open_device(t, device, &ctx, &dev)) {
        layer_with_cell(s, "f32", "", false, false, "sc");
        compare_with(t, ctx, dev, source_text(s), &without, "lstm_with_cell", 0);
        layer_with_cell(s, "f32", "bidirectional=true", false, true, "sc");
        compare_with(t, ctx, dev, source_text(s), &without, "lstm_with_cell", 0);
        layer_with_cell(s, "f16", "bidirectional=true", false, false, "shc");
        compare_with(t, ctx, dev, source_text(s), &without, "lstm_with_cell", 0);
        layer_with_cell(s, "f32", "", true, false, "shc");
        compare_with(t, ctx, dev, source_text(s), &without, "lstm_with_cell", 0);
        layer_with_cell(s, "f32", "", true, false, "hc");
        compare_with(t, ctx, dev, source_text(s), &without, "lstm_with_cell", 0);
        close_device(ctx, dev);
    }
    free(s);
}

static void check_tee(struct test *t, const char *device)
{
    static const char layer[] = "layer_norm %s, %g, %e", rms[] = "rms_norm %s, %g eps=1e-3",
                      side[] = "layer_norm %s, %g, %e axis=1";
    struct source *s = malloc(sizeof *s);
    rlx_context *ctx;
    rlx_device *dev;

    if (s && open_device(t, device, &ctx, &dev)) {
        norm_of_a_sum(s, "2,3,12", 12, "f32", layer, "f32");
        compare(t, ctx, dev, source_text(s), "residual_norm_tee", 0);
        norm_of_a_sum(s, "5,7", 7, "f32", rms, "f32");
        compare(t, ctx, dev, source_text(s), "residual_norm_tee", 0);
        if (strcmp(device, "cpu") != 0) { /* its kernel has rows along the last axis */
            norm_of_a_sum(s, "3,9,5", 9, "f32", side, "f32");
            compare(t, ctx, dev, source_text(s), "residual_norm_tee", 0);
        }
        norm_of_a_sum(s, "1,1", 1, "f32", layer, "f32");
        compare(t, ctx, dev, source_text(s), "residual_norm_tee", 0);
        norm_of_a_sum(s, "3,40", 40, "f16", layer, "f32");
        compare(t, ctx, dev, source_text(s), "residual_norm_tee", 0);
        norm_of_a_sum(s, "3,40", 40, "bf16", rms, "bf16");
        compare(t, ctx, dev, source_text(s), "residual_norm_tee", 0);
        norm_of_a_sum(s, "2,70000", 70000, "f32", layer, "f32"); /* too long for one group */
        compare(t, ctx, dev, source_text(s), "residual_norm_tee",
                strcmp(device, "cpu") == 0 ? 1e-5 : 0);
        norm_of_a_sum(s, "0,5", 5, "f32", layer, "f32");
        refuse(t, ctx, dev, source_text(s)); /* no steps at all */
        close_device(ctx, dev);
    }
    free(s);
}

TEST(joint, attention_reads_columns_where_they_lie)
{
    check_packed(t, "vulkan");
}

TEST(joint, norms_come_with_their_sum)
{
    check_tee(t, "vulkan");
    check_cell(t, "vulkan");
}

TEST(joint, the_cpu_has_norms_with_their_sum)
{
    check_tee(t, "cpu");
    check_cell(t, "cpu");
}

TEST_SLOW(joint, webgpu_has_them_too)
{
    check_packed(t, "webgpu");
    check_tee(t, "webgpu");
    check_cell(t, "webgpu");
}

/* ---- what must stay apart ---- */

#define QKV "rlx 1 graph (input %x: f32[2,4,24]) { %n = neg %x "
#define THREE                                                                  \
    "%q = narrow %n axis=2 start=0 len=8 %k = narrow %n axis=2 start=8 len=8 " \
    "%v = narrow %n axis=2 start=16 len=8 "
#define ATTEND " num_heads=2 head_dim=4 layout=packed "
#define SUM                                                                     \
    "rlx 1 graph (input %x: f32[3,8], input %r: f32[3,8], input %o: f32[1,8], " \
    "param %g: f32[8], param %b: f32[8]) { "

static const char *const refused[] = {
    /* a narrow that somebody else reads, or that is a result */
    QKV THREE "%y = attention %q, %k, %v" ATTEND "%z = exp %k return %y, %z }",
    QKV THREE "%y = attention %q, %k, %v" ATTEND "return %y, %v }",
    QKV THREE "%r = reshape %v shape=[8,8] %y = attention %q, %k, %v" ATTEND "return %y, %r }",
    /* columns of two tensors */
    QKV "%m = exp %x %q = narrow %n axis=2 start=0 len=8 %k = narrow %n axis=2 start=8 len=8 "
        "%v = narrow %m axis=2 start=16 len=8 %y = attention %q, %k, %v" ATTEND "return %y }",
    /* heads across rows */
    "rlx 1 graph (input %x: f32[2,8,9]) { %n = neg %x %q0 = narrow %n axis=2 start=0 len=3 "
    "%k0 = narrow %n axis=2 start=3 len=3 %v0 = narrow %n axis=2 start=6 len=3 "
    "%q = reshape %q0 shape=[2,6,4] %k = reshape %k0 shape=[2,6,4] %v = reshape %v0 shape=[2,6,4] "
    "%y = attention %q, %k, %v num_heads=2 head_dim=2 layout=packed return %y }",
    /* a sum of one reader, a broadcast one, and what a norm needs that comes later */
    SUM "%s = add %x, %o %n = layer_norm %s, %g, %b return %n, %s }",
    SUM "%s = add %x, %r %h = reduce_sum %s axes=[0] %n = layer_norm %s, %h, %b return %n, %s }",
};

TEST(joint, what_must_stay_apart_does)
{
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_device(t, "vulkan", &ctx, &dev))
        return;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        refuse(t, ctx, dev, refused[i]);
    close_device(ctx, dev);
}

/* Only the first of two norms comes with the sum. */
TEST(joint, a_sum_has_one_tee)
{
    static const char text[] =
        SUM "%s = add %x, %r %n = layer_norm %s, %g, %b %m = rms_norm %s, %g return %n, %m, %s }";
    struct schedule s;
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_device(t, "vulkan", &ctx, &dev))
        return;
    if (schedule_of(t, ctx, dev, text, &(rlx_session_desc){RLX_SIZED(rlx_session_desc)}, &s)) {
        expect_eq(t, s.steps, 2);
        expect_contains(t, s.text, "1 x  residual_norm_tee");
        expect_contains(t, s.text, "1 x  rms_norm");
    }
    close_device(ctx, dev);
}

/* ---- a block ---- */

static const char block[] =
    "rlx 1\ngraph (input %x: f32[2,9,24], param %w: f32[72,24], param %b: f32[72],"
    " param %o: f32[24,24], param %g: f32[24], param %e: f32[24], param %u: f32[24,50],"
    " param %d: f32[50,24]) {\n"
    " %h = layer_norm %x, %g, %e\n"
    " %m = matmul %h, %w transpose_b=true %y = add %m, %b\n"
    " %q = narrow %y axis=2 start=0 len=24 %k = narrow %y axis=2 start=24 len=24"
    " %v = narrow %y axis=2 start=48 len=24\n"
    " %a = attention %q, %k, %v num_heads=3 head_dim=8 layout=packed mask_kind=causal\n"
    " %p = matmul %a, %o %s = add %x, %p %n = layer_norm %s, %g, %e\n"
    " %f = matmul %n, %u %i = gelu %f %j = matmul %i, %d %z = add %s, %j\n"
    " return %z\n}\n";

TEST(joint, a_transformer_block_has_fewer_steps)
{
    const struct {
        rlx_session_desc desc;
        uint32_t steps;
        const char *has, *has_not;
    } row[] = {
        {{RLX_SIZED(rlx_session_desc)}, 9, "qkv_split", "narrow"},
        {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_qkv_split = true)},
         9,
         "packed_qkv_attention",
         "narrow"},
        {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_norm_tee = true)},
         10,
         "qkv_split",
         "tee"},
        {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_qkv_split = true, .no_packed_qkv = true)},
         12,
         "narrow",
         "qkv"},
        {{RLX_SIZED(rlx_session_desc),
          .debug = DEBUG(.no_qkv_split = true, .no_packed_qkv = true, .no_norm_tee = true)},
         13,
         "narrow",
         "tee"},
        {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_residual_fusion = true)},
         10,
         "qkv_split",
         "tee"},
        {{RLX_SIZED(rlx_session_desc), .debug = DEBUG(.no_fusion = true)}, 14, "narrow", "tee"}};
    struct schedule s;
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_device(t, "vulkan", &ctx, &dev))
        return;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        test_note(t, "row %zu", i);
        if (!schedule_of(t, ctx, dev, block, &row[i].desc, &s))
            continue;
        expect_eq(t, s.steps, row[i].steps);
        expect_contains(t, s.text, row[i].has);
        expect(t, !strstr(s.text, row[i].has_not));
    }
    compare(t, ctx, dev, block, "residual_norm_tee", 1e-5);
    close_device(ctx, dev);
}

TEST(joint, the_fusion_report_names_them)
{
    static const struct {
        bool json;
        const char *part;
    } row[] = {{true, "\"shared_steps\":{\"qkv_split\":1,\"packed_qkv_attention\":0,"
                      "\"residual_norm_tee\":1,\"lstm_with_cell\":0}"},
               {false, "residual_norm_tee                   0        1"}};
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *m = NULL;

    if (!open_device(t, "vulkan", &ctx, &dev))
        return;
    expect_ok(t, rlx_model_parse(ctx, rlx_cstr(block), &m, NULL));
    for (size_t i = 0; m && i < sizeof row / sizeof row[0]; i++) {
        struct schedule text = {0};
        expect_ok(t, rlx_model_fusion(m, dev, row[i].json, collect, &text, NULL));
        expect_contains(t, text.text, row[i].part);
    }
    rlx_model_destroy(m);
    close_device(ctx, dev);
}

/* What has no bytes of its own cannot be looked at; what is stored otherwise can. */
TEST(joint, columns_cannot_be_peeked_at)
{
    static const char text[] = QKV THREE "%y = attention %q, %k, %v" ATTEND "return %y }";
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_error err = {0};
    double x;

    if (!open_device(t, "vulkan", &ctx, &dev))
        return;
    if (expect_ok(t, rlx_model_parse(ctx, rlx_cstr(text), &m, NULL)) &&
        expect_ok(t, rlx_session_create(m, dev, NULL, &s, &err))) {
        expect_ok(t, rlx_session_peek(s, 1, 0, 1, &x, &err));
        expect_status(t, rlx_session_peek(s, 2, 0, 1, &x, &err), RLX_ERROR_STATE);
        expect_contains(t, err.message, "node 2 has no bytes of its own");
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    close_device(ctx, dev);
}

/* The steps of a scan's body may be shared as well. */
TEST(joint, bodies_of_scans_have_them)
{
    static const char text[] =
        "rlx 1\ngraph @main (input %i: f32[2,3,12], input %xs: f32[4,2,3,12], param %g: f32[12]) "
        "{\n"
        " %y = scan %i, %g, %xs body=@body length=4 num_xs=1 num_bcast=1 return %y\n}\n"
        "graph @body (input %c: f32[2,3,12], input %g: f32[12], input %x: f32[2,3,12]) {\n"
        " %s = add %c, %x %n = layer_norm %s, %g, %g\n"
        " %q = narrow %n axis=2 start=0 len=4 %k = narrow %n axis=2 start=4 len=4"
        " %v = narrow %n axis=2 start=8 len=4\n"
        " %a = attention %q, %k, %v num_heads=2 head_dim=2 layout=packed\n"
        " %z = concat %a, %a, %a axis=2 %t = add %z, %s return %t\n}\n";
    struct outcome want = {0}, got = {0};
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_device(t, "vulkan", &ctx, &dev))
        return;
    if (run_source(t, ctx, dev, text, &(rlx_session_desc){RLX_SIZED(rlx_session_desc)}, 1, &got) &&
        run_source(t, ctx, dev, text, &apart, 1, &want))
        same_outcome(t, &got, &want, 0, "apart", text);
    outcome_free(&got);
    outcome_free(&want);
    close_device(ctx, dev);
}
