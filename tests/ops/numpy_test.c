/* numpy_test.c: results that NumPy gave, on every level of the CPU.
 *
 * tests/ops/numpy/<file>.txt is made by tools/gen-numpy-vectors. Each case is a graph of constants
 * after two comments, and returns what the op gives and what NumPy gave:
 *
 *     # case add f32 [7] [7]
 *     # bits                     or "exact" (either zero will do), or "tol REL ABS"
 *     rlx 1
 *     graph () { ... return %y, %want }
 *
 * Rewriting passes are off: constants folded at compile time say nothing about the kernels. */
#include <inttypes.h>
#include <math.h>

#include "base/half.h"
#include "device_run.h"

#define CASE_MARK "# case "

struct rule {
    bool zero_signs;
    double relative, absolute;
};

struct answer {
    rlx_tensor tensor;
    char name[16];
};

/* The line at `text`, without its end, and where the next one starts. */
static const char *take_line(const char *text, char *line, size_t size)
{
    size_t len = strcspn(text, "\n");
    size_t kept = len < size - 1 ? len : size - 1;

    memcpy(line, text, kept);
    line[kept] = 0;
    return text + len + (text[len] == '\n');
}

static bool parse_rule(const char *line, struct rule *r)
{
    *r = (struct rule){0};
    r->zero_signs = strcmp(line, "# bits") == 0;
    return r->zero_signs || strcmp(line, "# exact") == 0 ||
           sscanf(line, "# tol %lf %lf", &r->relative, &r->absolute) == 2;
}

static bool get_answer(rlx_session *s, size_t i, struct answer *a, rlx_error *err)
{
    snprintf(a->name, sizeof a->name, "%s", i ? "want" : "y");
    if (rlx_session_output_shape(s, i, &a->tensor, err) != RLX_OK)
        return false;
    a->tensor.data = calloc(a->tensor.bytes + 1, 1);
    return a->tensor.data != NULL;
}

/* Both results of a case; false: it did not run, and err says why. */
static bool run_case(struct device_run *r, const char *text, size_t len, struct answer a[2],
                     rlx_error *err)
{
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                             .debug = DEBUG(.check_plan = true, .no_optimize = true)};
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    bool ran = false;

    if (rlx_model_parse(r->ctx, (rlx_str){text, len}, &m, err) == RLX_OK &&
        rlx_session_create(m, r->dev, &desc, &s, err) == RLX_OK && get_answer(s, 0, &a[0], err) &&
        get_answer(s, 1, &a[1], err)) {
        rlx_binding out[] = {{a[0].name, a[0].tensor}, {a[1].name, a[1].tensor}};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .outputs = out, .output_count = 2};
        ran = rlx_session_run(s, &run, err) == RLX_OK;
    }
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return ran;
}

static double float_at(const rlx_tensor *t, size_t i)
{
    const uint16_t *half = t->data;

    switch (t->dtype) {
    case RLX_DTYPE_f64: return ((const double *)t->data)[i];
    case RLX_DTYPE_f16: return (double)f16_to_f32(half[i]);
    case RLX_DTYPE_bf16: return (double)bf16_to_f32(half[i]);
    default: return (double)((const float *)t->data)[i]; /* f32, and the parts of c64 */
    }
}

static bool same_float(double got, double want, const struct rule *r)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (got == want)
        return !r->zero_signs || signbit(got) == signbit(want);
    return isfinite(got) && isfinite(want) &&
           fabs(got - want) <= r->absolute + r->relative * fabs(want);
}

static bool is_float(rlx_dtype d)
{
    return d == RLX_DTYPE_f32 || d == RLX_DTYPE_f16 || d == RLX_DTYPE_bf16 || d == RLX_DTYPE_f64 ||
           d == RLX_DTYPE_c64;
}

/* Notes the first element that differs, and how many do. */
static void compare(struct test *t, const char *name, const struct rule *r, const rlx_tensor *got,
                    const rlx_tensor *want)
{
    size_t part = got->dtype == RLX_DTYPE_c64 ? 4 : rlx_dtype_size(got->dtype);
    size_t count = got->bytes / part, wrong = 0, first = 0;

    for (size_t i = 0; i < count; i++) {
        const char *g = (const char *)got->data + i * part;
        const char *w = (const char *)want->data + i * part;
        bool same = is_float(got->dtype) ? same_float(float_at(got, i), float_at(want, i), r)
                                         : memcmp(g, w, part) == 0;
        if (!same && wrong++ == 0)
            first = i;
    }
    if (wrong == 0)
        return;
    if (is_float(got->dtype)) {
        fail(t, "%s: %zu of %zu differ, the first at %zu: %.17g, NumPy has %.17g", name, wrong,
             count, first, float_at(got, first), float_at(want, first));
    } else {
        uint64_t g = 0, w = 0;
        memcpy(&g, (const char *)got->data + first * part, part);
        memcpy(&w, (const char *)want->data + first * part, part);
        fail(t, "%s: %zu of %zu differ, the first at %zu: 0x%" PRIx64 ", NumPy has 0x%" PRIx64,
             name, wrong, count, first, g, w);
    }
}

static bool same_type(const rlx_tensor *a, const rlx_tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes;

    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* Only f64 may be too much for a device, and the message says so. */
static void check_refused(struct test *t, struct device_run *r, const char *name,
                          const rlx_error *err)
{
    if (err->status != RLX_ERROR_UNSUPPORTED || test_has_f64(t, r->ctx))
        fail(t, "%s: %s: %s", name, rlx_status_name(err->status), err->message);
    else
        expect_contains(t, err->message, "f64");
}

/* One case: its text, name and rule included. */
static void check_case(struct test *t, struct device_run *r, const char *text, size_t len)
{
    struct answer a[2] = {0};
    struct rule rule;
    rlx_error err = {0};
    char name[160], line[80];

    take_line(take_line(text, name, sizeof name), line, sizeof line);
    memmove(name, name + strlen(CASE_MARK), strlen(name) - strlen(CASE_MARK) + 1);
    if (!parse_rule(line, &rule))
        fail(t, "%s: no rule in \"%s\"", name, line);
    else if (!run_case(r, text, len, a, &err))
        check_refused(t, r, name, &err);
    else if (!same_type(&a[0].tensor, &a[1].tensor))
        fail(t, "%s: not the type and shape that NumPy has", name);
    else
        compare(t, name, &rule, &a[0].tensor, &a[1].tensor);
    free(a[0].tensor.data);
    free(a[1].tensor.data);
}

/* "cpu:avx512", "cpu:baseline": the i-th level that this CPU runs; false: there are no more. */
static bool level_name(rlx_context *ctx, size_t i, char *out, size_t size)
{
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};
    const char *word = info.features;

    for (size_t k = 0; rlx_device_at(ctx, k, &info, NULL) == RLX_OK; k++) {
        if (strcmp(info.name, "cpu") != 0)
            continue;
        for (; i > 0 && *word; i--)
            word += strcspn(word, " ") + strspn(word + strcspn(word, " "), " ");
        snprintf(out, size, "cpu:%.*s", (int)strcspn(word, " "), word);
        return *word != 0;
    }
    return false;
}

/* Every case of a file, of which there are at least so many. */
static void check_all(struct test *t, struct device_run *r, const char *text, int least)
{
    int cases = 0;

    for (const char *at = strstr(text, CASE_MARK), *next; at; at = next) {
        next = strstr(at + 1, CASE_MARK);
        check_case(t, r, at, next ? (size_t)(next - at) : strlen(at));
        cases++;
    }
    expect(t, cases >= least);
}

static void check_gpu(struct test *t, const char *text, int least)
{
    struct device_run r;

    if (!device_open(t, &r, test_device(t)))
        return;
    check_all(t, &r, text, least);
    device_close(&r);
}

/* The file on every level. */
static void check_file(struct test *t, const char *file, int least)
{
    struct device_run any, r;
    char path[80], level[48];
    size_t len, i;

    snprintf(path, sizeof path, "tests/ops/numpy/%s.txt", file);
    const char *text = test_read(t, test_source(t, path), &len);
    if (text && strcmp(test_device(t), "cpu") != 0) {
        check_gpu(t, text, least);
        return;
    }
    if (!text || !device_open(t, &any, "cpu"))
        return;
    for (i = 0; level_name(any.ctx, i, level, sizeof level); i++) {
        test_note(t, "on %s", level);
        if (device_open(t, &r, level))
            check_all(t, &r, text, least);
        device_close(&r);
    }
    test_note(t, "%s", "");
    expect(t, i > 0);
    device_close(&any);
}

#define NUMPY_TEST(file, least)      \
    TEST_DEVICES(numpy, file)        \
    {                                \
        check_file(t, #file, least); \
    }

NUMPY_TEST(arithmetic, 170)
NUMPY_TEST(binary, 90)
NUMPY_TEST(cast, 150)
NUMPY_TEST(compare, 70)
NUMPY_TEST(conv, 15)
NUMPY_TEST(gather, 50)
NUMPY_TEST(matmul, 110)
NUMPY_TEST(movement, 160)
NUMPY_TEST(norm, 50)
NUMPY_TEST(order, 190)
NUMPY_TEST(pad, 39)
NUMPY_TEST(pool, 30)
NUMPY_TEST(promotion, 78)
NUMPY_TEST(reduce, 270)
NUMPY_TEST(scan, 130)
NUMPY_TEST(scatter, 45)
NUMPY_TEST(select, 30)
NUMPY_TEST(sequence, 18)
NUMPY_TEST(softmax, 15)
NUMPY_TEST(solve, 70)
NUMPY_TEST(unary, 190)
