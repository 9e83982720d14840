/* precision_test.c: models under every precision policy against the model as declared. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>

#include "run_model.h"

static const char *const transformer =
    "rlx 1\n"
    "dim s <= 32\n"
    "graph (input %ids: i64[2,s], input %cos: f32[s,4], input %sin: f32[s,4],\n"
    "       param %table: f32[3,16], param %g1: f32[16], param %b1: f32[16], param %wq: "
    "f32[16,16],\n"
    "       param %wk: f32[16,16], param %wv: f32[16,16], param %wo: f32[16,16],\n"
    "       param %g2: f32[16], param %wg: f32[16,40], param %wu: f32[16,40],\n"
    "       param %wd: f32[40,16]) {\n"
    "    %x = gather %table, %ids\n"
    "    %n1 = layer_norm %x, %g1, %b1\n"
    "    %q0 = matmul %n1, %wq\n"
    "    %k0 = matmul %n1, %wk\n"
    "    %v = matmul %n1, %wv\n"
    "    %q1 = reshape %q0 shape=[2,s,2,8]\n"
    "    %q2 = rope %q1, %cos, %sin head_dim=8 seq_axis=1\n"
    "    %q = reshape %q2 shape=[2,s,16]\n"
    "    %k1 = reshape %k0 shape=[2,s,2,8]\n"
    "    %k2 = rope %k1, %cos, %sin head_dim=8 seq_axis=1\n"
    "    %k = reshape %k2 shape=[2,s,16]\n"
    "    %att = attention %q, %k, %v num_heads=2 head_dim=8 mask_kind=causal layout=packed\n"
    "    %proj = matmul %att, %wo\n"
    "    %h = add %x, %proj\n"
    "    %n2 = rms_norm %h, %g2\n"
    "    %gate = matmul %n2, %wg\n"
    "    %act = silu %gate\n"
    "    %up = matmul %n2, %wu\n"
    "    %mid = mul %act, %up\n"
    "    %down = matmul %mid, %wd\n"
    "    %y = add %h, %down\n"
    "    %half = cast %y to=f16\n"
    "    %best = argmax %y\n"
    "    return %y, %half, %best\n"
    "}\n";

static const char *const images =
    "rlx 1\n"
    "graph (input %x: f32[2,3,12,10], param %w1: f32[6,3,3,3], param %b1: f32[6,1,1],\n"
    "       param %gamma: f32[6], param %beta: f32[6], param %mean: f32[6], param %var: f32[6],\n"
    "       param %w2: f32[8,6,3,3], param %fc: f32[8,5], param %bias: f32[5]) {\n"
    "    %c1 = conv %x, %w1 kernel_size=[3,3] padding=[1,1]\n"
    "    %a1 = add %c1, %b1\n"
    "    %v2 = abs %var\n"
    "    %n1 = batch_norm_inference %a1, %gamma, %beta, %mean, %v2 axis=1 eps=0.1\n"
    "    %r1 = relu %n1\n"
    "    %p1 = pool %r1 kind=max kernel_size=[2,2] stride=[2,2]\n"
    "    %c2 = conv %p1, %w2 kernel_size=[3,3] stride=[2,2]\n"
    "    %r2 = gelu %c2\n"
    "    %m = reduce_mean %r2 axes=[2,3]\n"
    "    %l = matmul %m, %fc\n"
    "    %o = add %l, %bias\n"
    "    %y = softmax %o\n"
    "    return %y, %o\n"
    "}\n";

static const struct {
    const char *policy;
    double tolerance; /* of the largest value */
} policies[] = {
    {"as-declared", 0},
    {"f32", 1e-5},
    {"f16", 0.02},
    {"mixed-conservative", 0.02},
    {"mixed", 0.02},
    {"mixed-bf16", 0.12},
    {"compute=f16,elementwise=bf16", 0.12},
};

static double largest(const rlx_tensor *t, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(ran_element(t, i)));
    return most;
}

/* Floats within tol of the largest; only floats are compared: an argmax may move. */
static void expect_near_all(struct test *t, const struct ran *got, const struct ran *want,
                            double tol)
{
    require(t, got->count == want->count && got->count > 0);
    for (size_t i = 0; i < got->count; i++) {
        const rlx_tensor *g = &got->out[i], *w = &want->out[i];
        expect_eq(t, g->dtype, w->dtype);
        if (!expect_eq_u64(t, g->bytes, w->bytes) || g->dtype == RLX_DTYPE_i32)
            continue;
        size_t count = g->bytes / rlx_dtype_size(g->dtype), bad = 0;
        double most = largest(w, count);
        for (size_t k = 0; k < count; k++)
            bad += (size_t) !(fabs(ran_element(g, k) - ran_element(w, k)) <= tol * most);
        expect_eq_u64(t, bad, 0);
        expect(t, most > 0.01);
    }
}

static void try_policies(struct test *t, const char *source, const char *symbol, int64_t size)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_error err = {0};
    struct ran want = {0}, got = {0};

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err));
    bool ok = expect_ok(t, rlx_device_open(ctx, "cpu", &dev, &err)) &&
              expect_ok(t, rlx_model_parse(ctx, rlx_cstr(source), &m, &err));
    for (size_t i = 0; ok && i < sizeof policies / sizeof policies[0]; i++) {
        rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .params_default_zero = true};
        struct ran *out = i ? &got : &want;
        test_note(t, "%s: %s", policies[i].policy, err.message);
        expect_ok(t, rlx_precision_parse(policies[i].policy, &desc, &err));
        ok = expect_ok(t, run_model(m, dev, &desc, symbol, size, 1, out, &err));
        if (ok && i)
            expect_near_all(t, &got, &want, policies[i].tolerance);
        ran_free(&got);
    }
    test_note(t, "%s", "");
    ran_free(&want);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

TEST(precision, transformer_block_under_every_policy)
{
    try_policies(t, transformer, "s", 7);
}

TEST(precision, images_under_every_policy)
{
    try_policies(t, images, NULL, 0);
}

/* Half precision is really used: the result differs from f32, and has f16's grain. */
TEST(precision, halves_are_computed_with)
{
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_error err = {0};
    struct ran r = {0};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .precision = RLX_PRECISION_F16};

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err));
    expect_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    expect_ok(t, rlx_model_parse(ctx, rlx_cstr(images), &m, &err));
    if (expect_ok(t, run_model(m, dev, &desc, NULL, 0, 1, &r, &err))) {
        size_t count = r.out[1].bytes / sizeof(float);
        for (size_t i = 0; i < count; i++) {
            double v = ran_element(&r.out[1], i);
            expect(t, (double)f16_to_f32(f64_to_f16(v)) == v);
        }
    }
    ran_free(&r);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}

TEST(precision, bad_policies_are_refused)
{
    rlx_context *ctx = NULL;
    rlx_model *m = NULL, *out = NULL;
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
    rlx_error err = {0};

    expect_status(t, rlx_precision_parse("f8", &desc, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "\"f8\"");
    expect_status(t, rlx_precision_parse("compute=f16,solve=f32", &desc, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "solve=f32");
    expect_status(t, rlx_precision_parse("movement=i32", &desc, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "i32");
    expect_status(t, rlx_precision_parse("", &desc, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_precision_parse(NULL, &desc, &err), RLX_ERROR_ARGUMENT);
    expect_eq(t, desc.precision, RLX_PRECISION_AS_DECLARED);

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err));
    expect_ok(t, rlx_model_parse(ctx, rlx_cstr(images), &m, &err));
    desc.precision = (rlx_precision)99;
    expect_status(t, rlx_model_transform_for(m, "precision", NULL, &desc, &out, &err),
                  RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "99");
    desc.precision = RLX_PRECISION_CUSTOM;
    desc.precision_map.reduction = RLX_DTYPE_i64;
    expect_status(t, rlx_model_transform_for(m, "precision", NULL, &desc, &out, &err),
                  RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "i64");
    expect(t, out == NULL);
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
}

/* ---- every op ---- */

static void expect_outputs_keep_types(struct test *t, const rlx_model *a, const rlx_model *b)
{
    size_t count = rlx_model_io_count(a, RLX_IO_OUTPUT);

    expect_eq_u64(t, rlx_model_io_count(b, RLX_IO_OUTPUT), count);
    for (size_t i = 0; i < count; i++) {
        rlx_io_info was = {RLX_SIZED(rlx_io_info)}, is = {RLX_SIZED(rlx_io_info)};
        expect_ok(t, rlx_model_io(a, RLX_IO_OUTPUT, i, &was, NULL));
        expect_ok(t, rlx_model_io(b, RLX_IO_OUTPUT, i, &is, NULL));
        expect_eq(t, is.dtype, was.dtype);
        expect(t, is.name.len == was.name.len && !memcmp(is.name.ptr, was.name.ptr, is.name.len));
    }
}

static void transform_all(struct test *t, const rlx_model *m)
{
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
        rlx_model *out = NULL;
        rlx_error err = {0};
        expect_ok(t, rlx_precision_parse(policies[i].policy, &desc, &err));
        if (rlx_model_transform_for(m, "precision", NULL, &desc, &out, &err) == RLX_OK)
            expect_outputs_keep_types(t, m, out);
        else
            fail(t, "%s: %s", policies[i].policy, err.message);
        rlx_model_destroy(out);
    }
}

/* The graphs that the fuzzer starts from hold nearly every op there is. */
TEST(precision, every_op_can_be_rewritten)
{
    DIR *folder = opendir(test_source(t, "fuzz/corpus/ir_text"));
    rlx_context *ctx = NULL;
    struct dirent *entry;
    int count = 0;

    require(t, folder != NULL);
    expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, NULL));
    while ((entry = readdir(folder)) != NULL) {
        char path[512];
        rlx_model *m = NULL;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "fuzz/corpus/ir_text/%s", entry->d_name);
        test_note(t, "%s", path);
        if (rlx_model_load(ctx, test_source(t, path), NULL, &m, NULL) != RLX_OK)
            continue; /* custom ops that are not registered, or a file that must be refused */
        transform_all(t, m);
        rlx_model_destroy(m);
        count++;
    }
    test_note(t, "%s", "");
    expect(t, count >= 10);
    closedir(folder);
    rlx_context_destroy(ctx);
}

/* ---- memory ---- */

static rlx_status transform(struct test *t, const rlx_allocator *mem, void *source)
{
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                   .precision = RLX_PRECISION_MIXED_CONSERVATIVE};
    rlx_context *ctx = NULL;
    rlx_model *m = NULL, *out = NULL;
    rlx_error err;

    (void)t;
    rlx_status s = rlx_context_create(
        RLX_VERSION, &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = mem}, &ctx,
        &err);
    if (s == RLX_OK)
        s = rlx_model_parse(ctx, rlx_cstr(source), &m, &err);
    if (s == RLX_OK)
        s = rlx_model_transform_for(m, "precision", NULL, &desc, &out, &err);
    rlx_model_destroy(out);
    rlx_model_destroy(m);
    rlx_context_destroy(ctx);
    return s;
}

TEST(precision, survives_no_memory)
{
    char small[] = "rlx 1 graph (input %x: f32[2,4], param %w: f32[4,3]) {"
                   "%y = matmul %x, %w %s = softmax %y return %s }";

    expect_survives_no_memory(t, transform, small);
}
