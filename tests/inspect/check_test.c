/* check_test.c: comparing tensors, and a graph on several devices. */
#include <math.h>
#include <string.h>

#include "rlx/custom.h"
#include "rlx/graph.h"
#include "rlx/tools.h"
#include "test.h"

static rlx_tensor vector(float *data, int64_t n)
{
    return (rlx_tensor){RLX_DTYPE_f32, 1, {n}, data, (size_t)n * sizeof *data};
}

TEST(compare, measures_what_differs)
{
    float want[4] = {1, -2, 0, 4}, got[4] = {1, -2.5f, 0, 4};
    rlx_tensor a = vector(got, 4), b = vector(want, 4);
    rlx_comparison c;
    rlx_error err;

    expect_ok(t, rlx_compare(&b, &b, RLX_TOLERANCE_STRICT, &c, &err));
    expect(t, c.passed && c.count == 4);
    expect_near(t, c.cosine, 1, 1e-12);
    expect_ok(t, rlx_compare(&a, &b, RLX_TOLERANCE_STRICT, &c, &err));
    expect(t, !c.passed);
    expect_near(t, c.max_abs, 0.5, 0);
    expect_near(t, c.max_rel, 0.25, 0);
    expect_near(t, c.mean_abs, 0.125, 0);
    expect_near(t, c.cosine, (1 + 5 + 16) / (sqrt(1 + 6.25 + 16) * sqrt(21)), 1e-12);
    expect_eq(t, c.worst_index, 1);
}

TEST(compare, presets_differ_and_nan_always_fails)
{
    float want[2] = {1, 100}, near[2] = {1.05f, 100}, nan[2] = {NAN, 100};
    float inf[2] = {INFINITY, 1}, other[2] = {-INFINITY, 1};
    rlx_tensor w = vector(want, 2), n = vector(near, 2), bad = vector(nan, 2);
    rlx_tensor i = vector(inf, 2), j = vector(other, 2);
    rlx_comparison c;

    expect_ok(t, rlx_compare(&n, &w, RLX_TOLERANCE_STRICT, &c, NULL));
    expect(t, c.passed); /* 0.05 is half a thousandth of the largest */
    near[0] = 1.2f;
    expect_ok(t, rlx_compare(&n, &w, RLX_TOLERANCE_STRICT, &c, NULL));
    expect(t, !c.passed);
    expect_ok(t, rlx_compare(&n, &w, RLX_TOLERANCE_HALF, &c, NULL));
    expect(t, c.passed);
    expect_ok(t, rlx_compare(&bad, &bad, RLX_TOLERANCE_HALF, &c, NULL));
    expect(t, !c.passed && c.nan_count == 1 && c.worst_index == 0);
    expect_ok(t, rlx_compare(&i, &i, RLX_TOLERANCE_STRICT, &c, NULL));
    expect(t, c.passed);
    expect_ok(t, rlx_compare(&i, &j, RLX_TOLERANCE_HALF, &c, NULL));
    expect(t, !c.passed);
}

TEST(compare, refuses_what_cannot_be_compared)
{
    float x[4] = {0};
    rlx_tensor a = vector(x, 4), b = vector(x, 3), c = {RLX_DTYPE_c64, 1, {2}, x, 16};
    rlx_comparison out;
    rlx_error err;

    expect_status(t, rlx_compare(&a, &b, RLX_TOLERANCE_STRICT, &out, &err), RLX_ERROR_SHAPE);
    b = vector(x, 2);
    expect_status(t, rlx_compare(&c, &b, RLX_TOLERANCE_STRICT, &out, &err), RLX_ERROR_DTYPE);
    expect_status(t, rlx_compare(&a, NULL, RLX_TOLERANCE_STRICT, &out, &err), RLX_ERROR_ARGUMENT);
    expect_status(t, rlx_compare(&a, &a, (rlx_tolerance)9, &out, &err), RLX_ERROR_ARGUMENT);
    a.bytes = 3;
    expect_status(t, rlx_compare(&a, &a, RLX_TOLERANCE_STRICT, &out, &err), RLX_ERROR_SIZE);
}

/* ---- rlx_check ---- */

/* An op that is right when the reference calls it and off by `wrong` from its nth call on. */
struct moody {
    int calls, from;
    float wrong;
};

static rlx_status moody_infer(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                              size_t size, rlx_tensor *out, char *message)
{
    (void)user, (void)count, (void)attrs, (void)size, (void)message;
    *out = in[0];
    return RLX_OK;
}

static rlx_status moody_cpu(void *user, const rlx_tensor *in, int32_t count, const void *attrs,
                            size_t size, rlx_tensor *out)
{
    struct moody *m = user;
    float add = m->calls++ >= m->from ? m->wrong : 0;

    (void)count, (void)attrs, (void)size;
    for (size_t i = 0; i < out->bytes / sizeof(float); i++)
        ((float *)out->data)[i] = ((const float *)in[0].data)[i] + add;
    return RLX_OK;
}

struct world {
    rlx_context *ctx;
    rlx_custom_op op;
    rlx_device *dev[3];
    rlx_model *model;
    rlx_error err;
    char seen[256]; /* "op:verdict " per node */
    int outputs;
};

static void see_node(void *user, const rlx_check_node *n)
{
    struct world *w = user;

    strncat(w->seen, n->op, 40);
    strncat(w->seen,
            n->verdict == RLX_PASSED   ? ":ok "
            : n->verdict == RLX_FAILED ? ":differs "
                                       : ":skipped ",
            12);
}

static void see_output(void *user, const rlx_check_output *o)
{
    struct world *w = user;

    w->outputs += o->comparison.passed ? 1 : 100;
}

static bool open_world(struct test *t, struct world *w, const char *text, struct moody *moody)
{
    static const char *const names[] = {"cpu", "cpu:baseline", "null"};

    *w = (struct world){.op = {RLX_SIZED(rlx_custom_op), .name = "moody", .inputs = 1,
                               .infer = moody_infer, .cpu = moody_cpu, .user = moody}};
    if (!expect_ok(t, rlx_context_create(RLX_VERSION,
                                         &(rlx_context_desc){RLX_SIZED(rlx_context_desc),
                                                             .custom_ops = &w->op,
                                                             .custom_op_count = moody != NULL},
                                         &w->ctx, &w->err)))
        return false;
    for (int i = 0; i < 3; i++)
        if (!expect_ok(t, rlx_device_open(w->ctx, names[i], &w->dev[i], &w->err)))
            return false;
    return expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &w->model, &w->err));
}

static void close_world(struct world *w)
{
    rlx_model_destroy(w->model);
    for (int i = 0; i < 3; i++)
        rlx_device_close(w->dev[i]);
    rlx_context_destroy(w->ctx);
}

static rlx_status check(struct world *w, size_t devices, bool exact, float *x,
                        rlx_check_summary *out)
{
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {2, 8}, x, 64}};

    w->seen[0] = 0;
    w->outputs = 0;
    return rlx_check(
        w->model,
        &(rlx_check_desc){RLX_SIZED(rlx_check_desc), .devices = w->dev, .device_count = devices,
                          .run = &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0},
                          .exact = exact, .each_node = see_node, .each_output = see_output,
                          .user = w},
        out, &w->err);
}

/* A state, a product with a param, a constant, a view, a sub-graph, symbolic rows. */
#define MIXED                                                                      \
    "rlx 1\n"                                                                      \
    "graph @main (input %x: f32[n,8], param %w: f32[8,8], state %s: f32[4,8]) {\n" \
    "    %m = matmul %x, %w\n"                                                     \
    "    %k = const f32[8] {1 2 3 4 5 6 7 8}\n"                                    \
    "    %a = add %m, %k\n"                                                        \
    "    %p = const i32[] {1}\n"                                                   \
    "    %c = cache_append %s, %a, %p\n"                                           \
    "    %e = exp %m\n"                                                            \
    "    %t = const bool[] {1}\n"                                                  \
    "    %i = if %t, %e then_graph=@f else_graph=@g\n"                             \
    "    %r = reshape %i shape=[-1]\n"                                             \
    "    %y = reduce_sum %r axes=[0]\n"                                            \
    "    return %y, %c, %i\n}\n"                                                   \
    "graph @f (input %v: f32[n,8]) {\n    %o = tanh %v\n    return %o\n}\n"        \
    "graph @g (input %v: f32[n,8]) {\n    %o = neg %v\n    return %o\n}\n"

static void fill(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = scale * (float)((i * 37 + 11) % 64) / 64 - scale / 2;
}

TEST(check, two_levels_of_a_cpu_agree)
{
    struct world w;
    float x[16], weight[64];
    rlx_check_summary s;

    fill(x, 16, 1);
    fill(weight, 64, 1);
    if (open_world(t, &w, MIXED, NULL)) {
        rlx_tensor value = {RLX_DTYPE_f32, 2, {8, 8}, weight, sizeof weight};
        expect_ok(t, rlx_model_set_param(w.model, "w", &value, &w.err));
        if (!expect_ok(t, check(&w, 2, false, x, &s)))
            fail(t, "%s", w.err.message);
        expect_str(t, w.seen,
                   "matmul:ok add:ok cache_append:ok exp:ok if:ok reshape:ok reduce_sum:ok ");
        expect_eq(t, s.passed, 7);
        expect_eq(t, s.failed + s.skipped, 0);
        expect_eq(t, w.outputs, 3);
        expect_eq(t, s.first_node, -1);
    }
    close_world(&w);
}

/* What a compile makes one step, or computes beforehand, is checked node by node all the same. */
TEST(check, nodes_are_those_of_the_graph_as_written)
{
    struct world w;
    float x[16], b[8] = {1, 2, 3, 4, 5, 6, 7, 8}, weight[64];
    rlx_check_summary s;

    fill(x, 16, 1);
    fill(weight, 64, 1);
    if (open_world(t, &w,
                   "rlx 1\ndim n <= 4\n"
                   "graph (input %x: f32[n,8], param %w: f32[8,8], param %b: f32[8]) {\n"
                   "    %m = matmul %x, %w\n    %a = add %m, %b\n    %r = relu %a\n"
                   "    %k = const f32[8] {1 2 3 4 5 6 7 8}\n    %l = log %k\n"
                   "    %c = mul %r, %l\n    %y = tanh %c\n    return %y\n}\n",
                   NULL)) {
        rlx_tensor matrix = {RLX_DTYPE_f32, 2, {8, 8}, weight, sizeof weight};
        rlx_tensor bias = vector(b, 8);
        expect_ok(t, rlx_model_set_param(w.model, "w", &matrix, &w.err));
        expect_ok(t, rlx_model_set_param(w.model, "b", &bias, &w.err));
        expect_ok(t, check(&w, 2, false, x, &s));
        expect_str(t, w.seen, "matmul:ok add:ok relu:ok log:ok mul:ok tanh:ok ");
        expect_eq(t, w.outputs, 1);
    }
    close_world(&w);
}

TEST(check, exact_lets_nothing_pass_that_differs)
{
    struct world w;
    float x[16];
    rlx_check_summary s;

    fill(x, 16, 3);
    if (open_world(t, &w,
                   "rlx 1\ngraph (input %x: f32[2,8]) {\n    %a = neg %x\n    %b = gelu %a\n"
                   "    return %b\n}\n",
                   NULL)) {
        expect_ok(t, check(&w, 2, false, x, &s));
        expect_eq(t, s.failed, 0);
        expect_ok(t, check(&w, 2, true, x, &s));
        expect(t, s.passed >= 1); /* neg cannot differ; gelu may */
        expect_eq(t, s.failed + s.passed, 2);
    }
    close_world(&w);
}

TEST(check, names_the_first_node_that_differs)
{
    /* The reference calls it twice: with all values, and as the whole graph. */
    struct moody m = {.from = 2, .wrong = 0.25f};
    struct world w;
    float x[16];
    rlx_check_summary s;

    fill(x, 16, 1);
    if (open_world(t, &w,
                   "rlx 1\ngraph (input %x: f32[2,8]) {\n    %a = neg %x\n"
                   "    %odd = custom %a name=\"moody\"\n    %b = exp %odd\n    return %b\n}\n",
                   &m)) {
        expect_ok(t, check(&w, 2, false, x, &s));
        expect_str(t, w.seen, "neg:ok custom:differs exp:ok ");
        expect_eq(t, s.failed, 1);
        expect_str(t, s.first_op, "custom");
        expect_str(t, s.first_label, "odd");
        expect_str(t, s.first_device, "cpu:baseline");
        expect_eq(t, s.outputs_failed, 1);
        expect_eq(t, w.outputs, 100);
    }
    close_world(&w);
}

TEST(check, skips_devices_that_compute_nothing)
{
    struct world w;
    float x[16];
    rlx_check_summary s;

    fill(x, 16, 1);
    if (open_world(t, &w,
                   "rlx 1\ngraph (input %x: f32[2,8]) {\n    %a = neg %x\n    return %a\n}\n",
                   NULL)) {
        rlx_device *first = w.dev[0];
        expect_ok(t, check(&w, 3, false, x, &s));
        expect_eq(t, s.passed, 1);
        expect_eq(t, s.devices_skipped, 1);
        expect_status(t, check(&w, 1, false, x, &s), RLX_ERROR_ARGUMENT);
        w.dev[0] = w.dev[2];
        expect_status(t, check(&w, 2, false, x, &s), RLX_ERROR_ARGUMENT);
        w.dev[0] = first;
    }
    close_world(&w);
}

static rlx_status check_small(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct world w = {0};
    float x[16];
    rlx_check_summary sum;
    rlx_status s;

    (void)t, (void)ctx;
    fill(x, 16, 1);
    s = rlx_context_create(
        RLX_VERSION,
        &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .allocator = mem, .threads = 1}, &w.ctx,
        NULL);
    if (s == RLX_OK)
        s = rlx_device_open(w.ctx, "cpu", &w.dev[0], NULL);
    if (s == RLX_OK)
        s = rlx_device_open(w.ctx, "cpu:baseline", &w.dev[1], NULL);
    if (s == RLX_OK)
        s = rlx_model_parse(w.ctx,
                            rlx_cstr("rlx 1\ngraph (input %x: f32[2,8]) {\n"
                                     "    %a = matmul %x, %x transpose_b=true\n    return %a\n}\n"),
                            &w.model, NULL);
    if (s == RLX_OK)
        s = check(&w, 2, false, x, &sum);
    close_world(&w);
    return s;
}

TEST(check, survives_want_of_memory)
{
    expect_survives_no_memory(t, check_small, NULL);
}
