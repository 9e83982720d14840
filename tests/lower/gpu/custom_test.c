/* custom_test.c: ops of the program's own on a GPU, by the kernel they bring: with the CPU's
 * results, and with words for whatever is wrong with the kernel. */
#include "../../api/required.h"

static rlx_status like_first(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                             size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)in_count, (void)attrs, (void)attrs_size, (void)message;
    out->dtype = in[0].dtype;
    out->rank = in[0].rank;
    memcpy(out->dim, in[0].dim, sizeof out->dim);
    return RLX_OK;
}

/* Each row times its number, plus the bytes of the attributes. */
static rlx_status rows_cpu(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                           size_t attrs_size, rlx_tensor *out)
{
    const uint8_t *byte = attrs;
    float sum = 0;

    (void)user, (void)in_count;
    for (size_t i = 0; i < attrs_size; i++)
        sum += (float)byte[i];
    for (int64_t r = 0; r < in[0].dim[0]; r++)
        for (int64_t k = 0; k < in[0].dim[1]; k++) {
            int64_t at = r * in[0].dim[1] + k;
            ((float *)out->data)[at] =
                ((const float *)in[0].data)[at] * (float)r + ((const float *)in[1].data)[k] + sum;
        }
    return RLX_OK;
}

#define ROWS                                                              \
    "use \"lib/grid\"\n"                                                  \
    "kernel custom(x: in [f32], v: in [f32], y: out [f32], count: u32,\n" \
    "              dims: [u32; 24], attrs: [u32; 2]) group(256) {\n"      \
    "    let i = invocation_number(256)\n"                                \
    "    if i >= count { return }\n"                                      \
    "    var sum = 0.0\n"                                                 \
    "    unroll for k in 0..2 { unroll for b in 0..4 {\n"                 \
    "        sum += f32((attrs[k] >> (8 * b)) & 255) } }\n"               \
    "    y[i] = x[i] * f32(i / dims[1]) + v[i % dims[8]] + sum\n"         \
    "}\n"

/* The context's, with the kernel in place of the right one. */
static bool open_rows(struct test *t, struct place *p, const char *device, rlx_custom_op *op,
                      const char *kernel)
{
    *op = (rlx_custom_op){
        .name = "rows", .inputs = 2, .infer = like_first, .cpu = rows_cpu, .kernel = kernel};
    return place_open(t, p, device, &(rlx_context_desc){.custom_ops = op, .custom_op_count = 1});
}

static rlx_status build_rows(struct place *p, int64_t n)
{
    char text[256];

    snprintf(text, sizeof text,
             "graph (input %%x: f32[%lld,3], input %%v: f32[3]) { %%a = neg %%x"
             " %%y = custom %%a, %%v name=\"rows\" attrs=0x0102030405 %%z = neg %%y return %%z }",
             (long long)n);
    return place_build(p, text, NULL);
}

static void check_rows(struct test *t, struct place *p, int64_t n)
{
    static float x[400 * 3], y[400 * 3];
    float v[3] = {10, 20, 30};

    for (int64_t i = 0; i < 3 * n; i++)
        x[i] = (float)(i % 17);
    rlx_binding in[] = {
        {"x", {RLX_DTYPE_f32, 2, {n, 3}, x, (size_t)n * 12}},
        {"v", {RLX_DTYPE_f32, 1, {3}, v, sizeof v}},
    };
    rlx_binding out = {"z", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    expect_ok(t, rlx_session_run(p->session, &(rlx_run_desc){in, 2, &out, 1, NULL, 0}, &p->err));
    for (int64_t i = 0; i < 3 * n; i++)
        if (!expect_near(t, y[i], x[i] * (float)(i / 3) - v[i % 3] - 15, 0))
            break;
}

TEST_DEVICES(gpu_custom, gives_the_results_of_the_cpu)
{
    rlx_custom_op op;
    struct place p;

    if (!open_rows(t, &p, test_device(t), &op, ROWS))
        return;
    for (int64_t n = 0; n < 400; n = 3 * n + 1) {
        test_note(t, "%lld rows", (long long)n);
        if (expect_ok(t, build_rows(&p, n)))
            check_rows(t, &p, n);
        else
            fail(t, "%s", p.err.message);
    }
    place_close(&p);
}

/* Kernels that are no good are the caller's mistake; the message shows where it is. */
TEST_GPUS(gpu_custom, mistakes_in_a_kernel_are_shown)
{
    static const struct {
        const char *kernel;
        rlx_status status;
        const char *part, *too;
    } rows[] = {
        {NULL, RLX_ERROR_UNSUPPORTED, "\"rows\"", "rlx_custom_op.kernel"},
        {"", RLX_ERROR_ARGUMENT, "rows", "custom"},
        {"kernel other(y: out [f32]) group(64) { y[0] = 1.0 }", RLX_ERROR_ARGUMENT, "rows",
         "custom"},
        {"kernel custom(y: out [f32]) group(64) { y[0] = 1.0 }", RLX_ERROR_ARGUMENT, "rows",
         "takes 1 buffers and 0 words, and is given 3 and 27"},
        {"kernel custom(x: in [f32], v: in [f32], y: out [f32], count: u32) group(64) {\n"
         "    let i = local.x +\n}",
         RLX_ERROR_ARGUMENT, ":3:1: an expression is expected", "^"},
        {"kernel custom(x: in [f32], v: in [f32], y: out [f32], count: u32, dims: [u32; 24],\n"
         "              attrs: [u32; 2]) group(256) {\n"
         "    y[0] = unknown(3)\n}",
         RLX_ERROR_ARGUMENT, ":3:", "unknown"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        rlx_custom_op op;
        struct place p;
        test_note(t, "row %zu", i);
        if (!open_rows(t, &p, test_device(t), &op, rows[i].kernel))
            return;
        expect_status(t, build_rows(&p, 4), rows[i].status);
        expect_contains(t, p.err.message, rows[i].part);
        expect_contains(t, p.err.message, rows[i].too);
        expect_working(t, &p);
        place_close(&p);
    }
}
