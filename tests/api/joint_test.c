/* joint_test.c: nodes that share a step (lower/joint.h) give what they give apart: a product split
 * into thirds, attention that reads columns where they lie, a norm with the sum that it is of. */
#include "fusion_run.h"

static bool open_device(struct test *t, const char *device, rlx_context **ctx, rlx_device **dev)
{
    rlx_error err = {0};

    *ctx = NULL;
    *dev = NULL;
    if (!expect_ok(t,
                   rlx_context_create(RLX_VERSION, &(rlx_context_desc){.threads = 2}, ctx, NULL)))
        return false;
    rlx_status s = rlx_device_open(*ctx, rlx_cstr(device), dev, &err);
    if (!test_no_device(t, device, s, err.message))
        return true;
    rlx_context_destroy(*ctx);
    return false;
}

static void close_device(rlx_context *ctx, rlx_device *dev)
{
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

/* ---- schedules ---- */

struct schedule {
    char text[8192];
    size_t len;
    uint32_t steps;
};

static void collect(void *user, const char *text, size_t len)
{
    struct schedule *s = user;
    size_t room = sizeof s->text - 1 - s->len, n = len < room ? len : room;

    memcpy(s->text + s->len, text, n);
    s->len += n;
    s->text[s->len] = 0;
}

static bool schedule_of(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                        const rlx_session_desc *desc, struct schedule *out)
{
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    rlx_memory_info info = {0};
    rlx_error err = {0};

    *out = (struct schedule){0};
    bool ok = rlx_model_parse(ctx, rlx_cstr(text), &m, &err) == RLX_OK &&
              rlx_session_create(m, dev, desc, &s, &err) == RLX_OK &&
              rlx_session_schedule(s, false, collect, out, &err) == RLX_OK &&
              rlx_session_memory(s, &info, &err) == RLX_OK;
    out->steps = info.steps;
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    if (!ok)
        fail(t, "%s in\n%s", err.message, text);
    return ok;
}

static const rlx_session_desc apart = {
    .no_qkv_split = true, .no_packed_qkv = true, .no_norm_tee = true};

/* The step is there, and the results are those of separate steps and of the CPU. */
static void compare(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text,
                    const char *step, double tolerance)
{
    struct schedule joint, separate;
    struct outcome want = {0}, got = {0}, cpu = {0};
    rlx_device *host = NULL;

    test_note(t, "%s", step);
    if (!schedule_of(t, ctx, dev, text, &(rlx_session_desc){0}, &joint) ||
        !schedule_of(t, ctx, dev, text, &apart, &separate))
        return;
    if (!strstr(joint.text, step) || strstr(separate.text, step) || joint.steps >= separate.steps)
        fail(t, "%u and %u steps:\n%s%s in\n%s", joint.steps, separate.steps, joint.text,
             separate.text, text);
    bool runs = run_source(t, ctx, dev, text, &(rlx_session_desc){.check_plan = true}, 2, &got);
    if (runs && run_source(t, ctx, dev, text, &apart, 2, &want))
        same_outcome(t, &got, &want, tolerance, "apart", text);
    if (runs && expect_ok(t, rlx_device_open(ctx, rlx_cstr("cpu"), &host, NULL)) &&
        run_source(t, ctx, host, text, &apart, 2, &cpu))
        same_outcome(t, &got, &cpu, strstr(text, "16[") ? 2e-2 : 2e-5, "the CPU", text);
    rlx_device_close(host);
    outcome_free(&got);
    outcome_free(&want);
    outcome_free(&cpu);
}

/* Steps are as many as apart: nothing may be joined. */
static void refuse(struct test *t, rlx_context *ctx, rlx_device *dev, const char *text)
{
    struct schedule joint, separate;

    if (schedule_of(t, ctx, dev, text, &(rlx_session_desc){0}, &joint) &&
        schedule_of(t, ctx, dev, text, &apart, &separate) && joint.steps != separate.steps)
        fail(t, "%u steps, not %u:\n%s in\n%s", joint.steps, separate.steps, joint.text, text);
}

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

static void third_of_a_product(struct source *s, const int *x, int rank, int k, int third,
                               const char *dtype, bool bias)
{
    char shape[64] = "";

    for (int i = 0; i < rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%d,", x[i]);
    source_start(s, 1);
    source_leaf(s, "input %%x: %s[%s%d]", dtype, shape, k);
    source_leaf(s, "param %%w: %s[%d,%d]", dtype, 3 * third, k);
    source_leaf(s, "param %%b: %s[%d]", dtype, 3 * third);
    source_node(s, "%%m = matmul %%x, %%w transpose_b=true");
    source_node(s, bias ? "%%y = add %%m, %%b" : "%%y = reshape %%m shape=[%s%d]", shape,
                3 * third);
    for (int i = 0; i < 3; i++)
        source_node(s, "%%n%d = narrow %s axis=%d start=%d len=%d", i, bias ? "%y" : "%m", rank,
                    i * third, third);
    source_node(s, "%%a = sub %%n1, %%n2\n%%c = mul %%a, %%n0\nreturn %%c, %%n1, %%a");
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

static void check_split(struct test *t, const char *device)
{
    static const int two[] = {3}, three[] = {2, 5}, four[] = {2, 1, 7};
    struct source *s = malloc(sizeof *s);
    rlx_context *ctx;
    rlx_device *dev;

    if (s && open_device(t, device, &ctx, &dev)) {
        third_of_a_product(s, two, 1, 4, 8, "f32", true);
        compare(t, ctx, dev, source_text(s), "qkv_split", 1e-5);
        third_of_a_product(s, three, 2, 9, 5, "f32", true);
        compare(t, ctx, dev, source_text(s), "qkv_split", 1e-5);
        third_of_a_product(s, four, 3, 33, 40, "f32", false);
        compare(t, ctx, dev, source_text(s), "qkv_split", 1e-5);
        third_of_a_product(s, three, 2, 16, 24, "f16", true);
        compare(t, ctx, dev, source_text(s), "qkv_split", 4e-3);
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

TEST(joint, products_are_stored_third_by_third)
{
    check_split(t, "vulkan");
}

TEST(joint, norms_come_with_their_sum)
{
    check_tee(t, "vulkan");
}

TEST(joint, the_cpu_has_norms_with_their_sum)
{
    check_tee(t, "cpu");
}

TEST_SLOW(joint, webgpu_has_them_too)
{
    check_packed(t, "webgpu");
    check_split(t, "webgpu");
    check_tee(t, "webgpu");
}

/* ---- what must stay apart ---- */

#define QKV "rlx 1 graph (input %x: f32[2,4,24]) { %n = neg %x "
#define THREE                                                                  \
    "%q = narrow %n axis=2 start=0 len=8 %k = narrow %n axis=2 start=8 len=8 " \
    "%v = narrow %n axis=2 start=16 len=8 "
#define ATTEND " num_heads=2 head_dim=4 layout=packed "
#define PRODUCT                                               \
    "rlx 1 graph (input %x: f32[4,6], param %w: f32[24,6]) {" \
    " %n = matmul %x, %w transpose_b=true "                   \
    "%q = narrow %n axis=1 start=0 len=8 %k = narrow %n axis=1 start=8 len=8 "
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
    /* thirds that are none, a fourth reader, the product as a result, an activation */
    PRODUCT "%v = narrow %n axis=1 start=15 len=8 %a = add %q, %k %y = mul %a, %v return %y }",
    PRODUCT "%v = narrow %n axis=1 start=16 len=8 %z = exp %n return %q, %k, %v, %z }",
    PRODUCT "%v = narrow %n axis=1 start=16 len=8 return %q, %k, %v, %n }",
    PRODUCT "%v = narrow %n axis=1 start=8 len=8 %a = add %q, %k %y = mul %a, %v return %y }",
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
    if (schedule_of(t, ctx, dev, text, &(rlx_session_desc){0}, &s)) {
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
    static const struct {
        rlx_session_desc desc;
        uint32_t steps;
        const char *has, *has_not;
    } row[] = {
        {{0}, 9, "qkv_split", "narrow"},
        {{.no_qkv_split = true}, 9, "packed_qkv_attention", "narrow"},
        {{.no_norm_tee = true}, 10, "qkv_split", "tee"},
        {{.no_qkv_split = true, .no_packed_qkv = true}, 12, "narrow", "qkv"},
        {{.no_qkv_split = true, .no_packed_qkv = true, .no_norm_tee = true}, 13, "narrow", "tee"},
        {{.no_residual_fusion = true}, 10, "qkv_split", "tee"},
        {{.no_fusion = true}, 14, "narrow", "tee"}};
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
                      "\"residual_norm_tee\":1}"},
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
    if (run_source(t, ctx, dev, text, &(rlx_session_desc){0}, 1, &got) &&
        run_source(t, ctx, dev, text, &apart, 1, &want))
        same_outcome(t, &got, &want, 0, "apart", text);
    outcome_free(&got);
    outcome_free(&want);
    close_device(ctx, dev);
}
