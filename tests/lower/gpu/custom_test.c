/* custom_test.c: ops of the program's own on a GPU, by the kernel they bring: with the CPU's
 * results, and with words for whatever is wrong with the kernel. */
#include "rlx/custom.h"
#include "session/required.h"

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
    *op = (rlx_custom_op){RLX_SIZED(rlx_custom_op), .name = "rows",  .inputs = 2,
                          .infer = like_first,      .cpu = rows_cpu, .kernel = kernel};
    return place_open(
        t, p, device,
        &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .custom_ops = op, .custom_op_count = 1});
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
    expect_ok(t, rlx_session_run(p->session,
                                 &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                                 &p->err));
    for (int64_t i = 0; i < 3 * n; i++)
        if (!expect_near(t, y[i], x[i] * (float)(i / 3) - v[i % 3] - 15, 0))
            break;
}

TEST_DEVICES(gpu_custom, gives_the_results_of_the_cpu)
{
    rlx_custom_op op = {RLX_SIZED(rlx_custom_op)};
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

/* ---- symbolic dims ---- */

static void run_symbolic(struct test *t, struct place *p, const char *dims)
{
    char text[512];

    snprintf(text, sizeof text,
             "%s graph (input %%x: f32[n,3], input %%v: f32[3]) { %%a = neg %%x"
             " %%y = custom %%a, %%v name=\"rows\" attrs=0x0102030405 %%b = add %%y, %%x"
             " %%c = sub %%b, %%x %%z = neg %%c return %%z }",
             dims);
    test_note(t, "%s", dims);
    if (!expect_ok(t, place_build(p, text, NULL)))
        return (void)fail(t, "%s", p->err.message);
    for (int64_t n = 40; n >= 0; n = n > 3 ? n / 3 : n - 1)
        check_rows(t, p, n);
}

/* A program per binding: a bound changes nothing but that it is checked. */
TEST_DEVICES(gpu_custom, symbolic_dims_are_bound_by_value)
{
    rlx_bound_info bound = {RLX_SIZED(rlx_bound_info)};
    rlx_custom_op op = {RLX_SIZED(rlx_custom_op)};
    struct place p;

    if (!open_rows(t, &p, test_device(t), &op, ROWS))
        return;
    run_symbolic(t, &p, "dim n");
    run_symbolic(t, &p, "dim n <= 40");
    expect_ok(t, rlx_session_bound(p.session, "n", &bound, &p.err));
    expect(t, bound.bound == 40 && bound.by_value);
    place_build(&p,
                "dim n <= 4 graph (input %x: f32[n,3], input %v: f32[3])"
                " { %y = custom %x, %v name=\"rows\" attrs=0x0102030405 return %y }",
                &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .strict_extent = true});
    float x[6] = {0}, v[3] = {0}, y[6];
    rlx_binding in[] = {{"x", {RLX_DTYPE_f32, 2, {2, 3}, x, sizeof x}},
                        {"v", {RLX_DTYPE_f32, 1, {3}, v, sizeof v}}};
    rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};
    expect_status(t,
                  rlx_session_run(p.session,
                                  &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 2, &out, 1, NULL, 0},
                                  &p.err),
                  RLX_ERROR_EXTENT);
    expect_contains(t, p.err.message, "\"rows\"");
    place_close(&p);
}

/* ---- several results, a grid of its own ---- */

static rlx_status infer_range(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                              size_t attrs_size, rlx_tensor *out, char *message)
{
    (void)user, (void)in_count, (void)attrs, (void)attrs_size, (void)message;
    out[0] = (rlx_tensor){RLX_DTYPE_f32, 1, {in[0].dim[0]}, NULL, 0};
    out[1] = (rlx_tensor){RLX_DTYPE_i32, 2, {in[0].dim[0], 2}, NULL, 0};
    return RLX_OK;
}

/* The largest of each row; where it is, and how many there are of its size. */
static rlx_status range_cpu(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                            size_t attrs_size, rlx_tensor *out)
{
    const float *x = in[0].data;
    float *top = out[0].data;
    int32_t *at = out[1].data;

    (void)user, (void)in_count, (void)attrs, (void)attrs_size;
    for (int64_t r = 0; r < in[0].dim[0]; r++, x += in[0].dim[1], at += 2) {
        top[r] = x[0];
        at[0] = 0;
        at[1] = 0;
        for (int32_t k = 0; k < (int32_t)in[0].dim[1]; k++)
            if (x[k] > top[r]) {
                top[r] = x[k];
                at[0] = k;
            }
        for (int64_t k = 0; k < in[0].dim[1]; k++)
            at[1] += x[k] >= top[r];
    }
    return RLX_OK;
}

static rlx_status row_groups(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                             size_t attrs_size, const rlx_tensor *out, uint32_t groups[3])
{
    const rlx_status *answer = user;

    (void)in, (void)in_count, (void)attrs, (void)attrs_size;
    groups[1] = (uint32_t)out[0].dim[0]; /* x and z are 1 group wide */
    groups[0] = groups[2] = 1;
    return *answer;
}

/* A group per row, counted along y, of one invocation that works and seven that do not. */
#define RANGE                                                                 \
    "kernel custom(x: in [f32], top: out [f32], at: out [i32], count: u32,\n" \
    "              dims: [u32; 24]) group(8) {\n"                             \
    "    if local.x > 0 { return }\n"                                         \
    "    let n = dims[1]\n"                                                   \
    "    var best = x[group.y * n]\n"                                         \
    "    var place = i32(0)\n"                                                \
    "    for k in 0..n { if x[group.y * n + k] > best {\n"                    \
    "        best = x[group.y * n + k]\n"                                     \
    "        place = i32(k) } }\n"                                            \
    "    var many = i32(0)\n"                                                 \
    "    for k in 0..n { if x[group.y * n + k] >= best { many += 1 } }\n"     \
    "    top[group.y] = best\n"                                               \
    "    at[2 * group.y] = place\n"                                           \
    "    at[2 * group.y + 1] = many\n"                                        \
    "}\n"

static bool open_range(struct test *t, struct place *p, rlx_custom_op *op, const char *kernel,
                       rlx_status *answer)
{
    *op = (rlx_custom_op){RLX_SIZED(rlx_custom_op),
                          .name = "range",
                          .inputs = 1,
                          .infer = infer_range,
                          .cpu = op->cpu ? op->cpu : range_cpu,
                          .kernel = kernel,
                          .outputs = 2,
                          .grid = row_groups,
                          .user = answer};
    return place_open(
        t, p, test_device(t),
        &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .custom_ops = op, .custom_op_count = 1});
}

TEST_DEVICES(gpu_custom, several_results_and_a_grid)
{
    rlx_status answer = RLX_OK;
    rlx_custom_op op = {RLX_SIZED(rlx_custom_op)};
    struct place p;

    if (!open_range(t, &p, &op, RANGE, &answer))
        return;
    expect_ok(t, place_build(&p,
                             "dim n graph (input %x: f32[n,5]) { %a = neg %x %t = custom %a"
                             " name=\"range\" %i = custom %a name=\"range\" result=1"
                             " %u = neg %t return %u, %i }",
                             NULL));
    for (int64_t n = 0; n < 100; n = 4 * n + 1) {
        float x[500], top[100];
        int32_t at[200];
        for (int64_t i = 0; i < 5 * n; i++)
            x[i] = (float)((i * 7919 + 13) % 4);
        rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {n, 5}, x, (size_t)n * 20}};
        rlx_binding out[] = {{"out0", {.dtype = RLX_DTYPE_f32, .data = top, .bytes = sizeof top}},
                             {"out1", {.dtype = RLX_DTYPE_i32, .data = at, .bytes = sizeof at}}};
        test_note(t, "%lld rows", (long long)n);
        if (!expect_ok(t, rlx_session_run(
                              p.session,
                              &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, out, 2, NULL, 0},
                              &p.err)))
            fail(t, "%s", p.err.message);
        for (int64_t r = 0; r < n; r++) {
            int32_t place = 0, many = 0;
            for (int32_t k = 1; k < 5; k++)
                place = x[5 * r + k] < x[5 * r + place] ? k : place;
            for (int32_t k = 0; k < 5; k++)
                many += x[5 * r + k] <= x[5 * r + place];
            expect_near(t, top[r], x[5 * r + place], 0);
            expect(t, at[2 * r] == place && at[2 * r + 1] == many);
        }
    }
    expect_refused(
        t, &p, "graph (input %x: f32[2,5]) { %y = custom %x name=\"range\" result=2 return %y }",
        RLX_ERROR_ATTRIBUTE, "\"range\" has results 0 to 1");
    place_close(&p);
}

/* ---- what its functions return ---- */

static rlx_status fails_cpu(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                            size_t attrs_size, rlx_tensor *out)
{
    (void)in, (void)in_count, (void)attrs, (void)attrs_size, (void)out;
    return *(const rlx_status *)user;
}

TEST(gpu_custom, a_status_that_does_not_exist_is_told_by_its_number)
{
    static const int answers[] = {77, -1, RLX_ERROR_NUMERIC};
    float x[10] = {0}, y[2];
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {2, 5}, x, sizeof x}};
    rlx_binding out = {"y", {.dtype = RLX_DTYPE_f32, .data = y, .bytes = sizeof y}};

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        rlx_status answer = (rlx_status)answers[i];
        char number[16];
        rlx_custom_op op = {RLX_SIZED(rlx_custom_op), .cpu = fails_cpu};
        struct place p;
        if (!open_range(t, &p, &op, NULL, &answer))
            return;
        expect_ok(
            t, place_build(&p,
                           "graph (input %x: f32[2,5]) { %y = custom %x name=\"range\" return %y }",
                           NULL));
        snprintf(number, sizeof number, "returned %d", answers[i]);
        bool known = answer == RLX_ERROR_NUMERIC;
        expect_status(
            t,
            rlx_session_run(p.session,
                            &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0},
                            &p.err),
            known ? RLX_ERROR_NUMERIC : RLX_ERROR_ARGUMENT);
        expect_contains(t, p.err.message, "\"range\"");
        expect_contains(t, p.err.message, known ? "NaN" : number);
        place_close(&p);
    }
}

TEST_GPUS(gpu_custom, a_grid_that_fails_is_told_by_its_number)
{
    rlx_status answer = (rlx_status)99;
    rlx_custom_op op = {RLX_SIZED(rlx_custom_op)};
    struct place p;

    if (!open_range(t, &p, &op, RANGE, &answer))
        return;
    expect_refused(t, &p, "graph (input %x: f32[2,5]) { %y = custom %x name=\"range\" return %y }",
                   RLX_ERROR_ARGUMENT, "\"range\": its grid function returned 99");
    place_close(&p);
}

/* Broken kernels are the caller's mistake; the message shows where it is. */
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
        rlx_custom_op op = {RLX_SIZED(rlx_custom_op)};
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
