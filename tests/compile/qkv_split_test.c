/* qkv_split_test.c: a product whose thirds are taken apart is stored third by third
 * (lower/joint.h), and gives what it gives as a whole: on the CPU the same bits. */
#include "joint_run.h"

/* x[rows.., k] by w[k, 3 third], or by w[3 third, k] where it is turned. */
struct split_case {
    int rows[3]; /* 0: no such axis */
    int k, third;
    const char *dtype;
    bool turned, bias;
    double tolerance; /* on GPUs, where the kernel may be another */
};

static void write_case(struct source *s, const struct split_case *c)
{
    char shape[64] = "";
    int rank = 0, n = 3 * c->third;

    for (; rank < 3 && c->rows[rank]; rank++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%d,", c->rows[rank]);
    source_start(s, 1);
    source_leaf(s, "input %%x: %s[%s%d]", c->dtype, shape, c->k);
    source_leaf(s, "param %%w: %s[%d,%d]", c->dtype, c->turned ? n : c->k, c->turned ? c->k : n);
    source_leaf(s, "param %%b: %s[%d]", c->dtype, n);
    source_node(s, "%%m = matmul %%x, %%w transpose_b=%s", c->turned ? "true" : "false");
    if (c->bias)
        source_node(s, "%%y = add %%m, %%b");
    for (int i = 0; i < 3; i++)
        source_node(s, "%%n%d = narrow %s axis=%d start=%d len=%d", i, c->bias ? "%y" : "%m", rank,
                    i * c->third, c->third);
    source_node(s, "%%a = sub %%n1, %%n2\n%%c = add %%a, %%n0\nreturn %%c, %%n1, %%a");
}

static const struct split_case cases[] = {
    /* few rows, odd sizes, and enough for tiles; then with a whole tile and a rest */
    {{3}, 4, 8, "f32", false, true, 1e-5},
    {{2, 5}, 37, 19, "f32", false, true, 1e-5},
    {{2, 1, 7}, 33, 40, "f32", false, false, 1e-5},
    {{2, 40}, 64, 64, "f32", false, true, 1e-5},
    {{150}, 300, 136, "f32", false, true, 2e-5},
    {{2, 24}, 2600, 16, "f32", false, true, 1e-4}, /* the depth is split: long sums */
    {{20}, 40, 2, "f32", false, true, 1e-5},       /* few columns */
    {{2, 5}, 37, 19, "f16", false, true, 4e-3},
    {{5}, 48, 32, "f16", false, true, 4e-3},
    {{2, 40}, 64, 72, "f16", false, true, 4e-3},
    {{2, 5}, 37, 19, "bf16", false, true, 3e-2},
    {{130}, 64, 128, "bf16", false, false, 3e-2},
    {{9}, 12, 7, "c64", false, true, 1e-5},
    /* rows of the weight */
    {{3}, 4, 8, "f32", true, true, 1e-5},
    {{2, 5}, 9, 5, "f32", true, true, 1e-5},
    {{2, 1, 7}, 33, 40, "f32", true, false, 1e-5},
    {{2, 40}, 37, 19, "f32", true, true, 1e-5},
    {{2, 5}, 16, 24, "f16", true, true, 4e-3},
};

TEST_DEVICES(qkv_split, products_are_stored_third_by_third)
{
    struct source *s = malloc(sizeof *s);
    bool host = strcmp(test_device(t), "cpu") == 0;
    rlx_context *ctx;
    rlx_device *dev;

    if (s && open_device(t, test_device(t), &ctx, &dev)) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            write_case(s, &cases[i]);
            compare(t, ctx, dev, source_text(s), "qkv_split", host ? 0 : cases[i].tolerance);
        }
        close_device(ctx, dev);
    }
    free(s);
}

/* One row lies the same whole and in thirds: there is nothing to split, and nothing to copy. */
TEST_DEVICES(qkv_split, a_single_row_is_not_split)
{
    static const struct split_case row = {{1, 1}, 37, 19, "f32", false, true, 0};
    struct source *s = malloc(sizeof *s);
    struct schedule schedule;
    rlx_context *ctx;
    rlx_device *dev;

    if (s && open_device(t, test_device(t), &ctx, &dev)) {
        write_case(s, &row);
        refuse(t, ctx, dev, source_text(s));
        if (schedule_of(t, ctx, dev, source_text(s),
                        &(rlx_session_desc){RLX_SIZED(rlx_session_desc)}, &schedule))
            expect(t, !strstr(schedule.text, "narrow"));
        close_device(ctx, dev);
    }
    free(s);
}

#define PRODUCT                                               \
    "rlx 1 graph (input %x: f32[4,6], param %w: f32[6,24]) {" \
    " %n = matmul %x, %w "                                    \
    "%q = narrow %n axis=1 start=0 len=8 %k = narrow %n axis=1 start=8 len=8 "

TEST_DEVICES(qkv_split, what_must_stay_whole_does)
{
    /* thirds that are none, a fourth reader, the product as a result, one third twice */
    static const char *const refused[] = {
        PRODUCT "%v = narrow %n axis=1 start=15 len=8 %a = add %q, %k %y = mul %a, %v return %y }",
        PRODUCT "%v = narrow %n axis=1 start=16 len=8 %z = exp %n return %q, %k, %v, %z }",
        PRODUCT "%v = narrow %n axis=1 start=16 len=8 return %q, %k, %v, %n }",
        PRODUCT "%v = narrow %n axis=1 start=8 len=8 %a = add %q, %k %y = mul %a, %v return %y }",
        /* thirds of rows; an operand that is stored turned; an activation */
        "rlx 1 graph (input %x: f32[6,6], param %w: f32[6,24]) { %n = matmul %x, %w "
        "%q = narrow %n axis=0 start=0 len=2 %k = narrow %n axis=0 start=2 len=2 "
        "%v = narrow %n axis=0 start=4 len=2 %a = add %q, %k %y = mul %a, %v return %y }",
        "rlx 1 graph (input %x: f32[6,4], param %w: f32[6,24]) { "
        "%n = matmul %x, %w transpose_a=true %q = narrow %n axis=1 start=0 len=8 "
        "%k = narrow %n axis=1 start=8 len=8 %v = narrow %n axis=1 start=16 len=8 "
        "%a = add %q, %k %y = mul %a, %v return %y }",
        "rlx 1 graph (input %x: f32[4,6], param %w: f32[6,24], param %b: f32[24]) { "
        "%m = matmul %x, %w %s = add %m, %b %n = relu %s %q = narrow %n axis=1 start=0 len=8 "
        "%k = narrow %n axis=1 start=8 len=8 %v = narrow %n axis=1 start=16 len=8 "
        "%a = add %q, %k %y = mul %a, %v return %y }",
    };
    rlx_context *ctx;
    rlx_device *dev;

    if (!open_device(t, test_device(t), &ctx, &dev))
        return;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        refuse(t, ctx, dev, refused[i]);
    close_device(ctx, dev);
}

/* ---- sizes that runs choose ---- */

enum { DEPTH = 37, THIRD = 19, MOST_ROWS = 40 };

/* Two results of n rows of a third each; values depend on the place alone. */
static bool run_rows(struct test *t, rlx_session *s, int64_t n, float *q, float *v)
{
    static float x[MOST_ROWS * DEPTH];
    size_t bytes = (size_t)n * THIRD * sizeof *q;
    rlx_error err = {0};

    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = (float)((i * 37 + 11) % 101) / 50 - 1;
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {n, DEPTH}, x, (size_t)n * DEPTH * sizeof *x}};
    rlx_binding out[] = {{"out0", {.dtype = RLX_DTYPE_f32, .data = q, .bytes = bytes}},
                         {"out1", {.dtype = RLX_DTYPE_f32, .data = v, .bytes = bytes}}};
    if (rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, out, 2, NULL, 0},
                        &err) == RLX_OK)
        return true;
    fail(t, "%lld rows: %s", (long long)n, err.message);
    return false;
}

static void same_rows(struct test *t, size_t n, float got[2][MOST_ROWS * THIRD],
                      float want[2][MOST_ROWS * THIRD])
{
    double tolerance = strcmp(test_device(t), "cpu") == 0 ? 0 : 1e-5;

    for (int i = 0; i < 2; i++)
        expect_close(t, got[i], want[i], n * THIRD, tolerance, tolerance);
}

TEST_DEVICES(qkv_split, bounded_rows_are_split_at_every_size)
{
    static const char text[] =
        "rlx 1 dim n <= 40 graph (input %x: f32[n,37], param %w: f32[37,57], param %b: f32[57]) {"
        " %m = matmul %x, %w %y = add %m, %b %q = narrow %y axis=1 start=0 len=19"
        " %k = narrow %y axis=1 start=19 len=19 %v = narrow %y axis=1 start=38 len=19"
        " %a = mul %q, %k return %a, %v }";
    static const int64_t sizes[] = {40, 7, 1, 33, 2};
    static float got[2][MOST_ROWS * THIRD], want[2][MOST_ROWS * THIRD];
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *m = NULL;
    rlx_session *joint = NULL, *whole = NULL;
    rlx_error err = {0};

    if (!open_device(t, test_device(t), &ctx, &dev))
        return;
    if (rlx_model_parse(ctx, rlx_cstr(text), &m, &err) == RLX_OK && set_params(m, &err) &&
        rlx_session_create(m, dev, NULL, &joint, &err) == RLX_OK &&
        rlx_session_create(m, dev, &apart, &whole, &err) == RLX_OK) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            if (run_rows(t, joint, sizes[i], got[0], got[1]) &&
                run_rows(t, whole, sizes[i], want[0], want[1]))
                same_rows(t, (size_t)sizes[i], got, want);
        rlx_memory_info less = {RLX_SIZED(rlx_memory_info)}, more = {RLX_SIZED(rlx_memory_info)};
        expect_ok(t, rlx_session_memory(joint, &less, NULL));
        expect_ok(t, rlx_session_memory(whole, &more, NULL));
        expect(t, less.steps < more.steps);
    } else
        fail(t, "%s", err.message);
    rlx_session_destroy(joint);
    rlx_session_destroy(whole);
    rlx_model_destroy(m);
    close_device(ctx, dev);
}
