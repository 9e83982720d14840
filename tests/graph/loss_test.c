/* loss_test.c: the losses of rlx/train.h against their formulas in double precision, and their
 * gradients against central differences of those. */
#include <math.h>

#include "graph_world.h"
#include "rlx/autodiff.h"
#include "rlx/train.h"

enum { ROWS = 5, CLASSES = 7, COUNT = ROWS * CLASSES };

static float numbers[2][COUNT];
static int32_t labels[ROWS];

static void fill(double scale)
{
    static const int32_t some[ROWS] = {3, 0, 6, 1, 1};

    for (int i = 0; i < COUNT; i++) {
        numbers[0][i] = (float)(scale * sin(1.7 * i + 0.3));
        numbers[1][i] = (float)(scale * cos(2.3 * i * i + 1));
    }
    for (int i = 0; i < ROWS; i++)
        labels[i] = some[i];
}

/* ---- in double ---- */

static double lse(const double *x, int n, int stride)
{
    double top = x[0], sum = 0;

    for (int i = 1; i < n; i++)
        top = fmax(top, x[i * stride]);
    for (int i = 0; i < n; i++)
        sum += exp(x[i * stride] - top);
    return top + log(sum);
}

static double cross_entropy(const double *x, const double *y, const rlx_cross_entropy_desc *desc)
{
    double sum = 0, count = 0, e = (double)desc->smoothing;

    (void)y;
    for (int r = 0; r < ROWS; r++) {
        const double *row = x + r * CLASSES;
        double mean = 0, all = lse(row, CLASSES, 1);
        if (labels[r] < 0 || labels[r] >= CLASSES || (desc->ignore && labels[r] == desc->ignored))
            continue;
        for (int k = 0; k < CLASSES; k++)
            mean += row[k] / CLASSES;
        sum += (1 - e) * (all - row[labels[r]]) + e * (all - mean);
        count++;
    }
    return count > 0 ? sum / count : 0;
}

static double mse(const double *x, const double *y, const void *unused)
{
    double sum = 0;

    (void)unused;
    for (int i = 0; i < COUNT; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]) / COUNT;
    return sum;
}

static double bce(const double *x, const double *t, const void *unused)
{
    double sum = 0;

    (void)unused;
    for (int i = 0; i < COUNT; i++)
        sum += fmax(x[i], 0) - t[i] * x[i] + log1p(exp(-fabs(x[i])));
    return sum / COUNT;
}

static double kl(const double *x, const double *t, const void *unused)
{
    double sum = 0;

    (void)unused;
    for (int r = 0; r < ROWS; r++) {
        double q = lse(x + r * CLASSES, CLASSES, 1), p = lse(t + r * CLASSES, CLASSES, 1);
        for (int i = r * CLASSES; i < (r + 1) * CLASSES; i++)
            sum += exp(t[i] - p) * (t[i] - p - x[i] + q);
    }
    return sum / ROWS;
}

static double contrastive(const double *a, const double *b, const rlx_contrastive_desc *desc)
{
    double s[ROWS][ROWS], sum = 0, heat = desc->temperature > 0 ? (double)desc->temperature : 0.07;

    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < ROWS; k++) {
            double ab = 0, aa = 0, bb = 0;
            for (int j = 0; j < CLASSES; j++) {
                ab += a[i * CLASSES + j] * b[k * CLASSES + j];
                aa += a[i * CLASSES + j] * a[i * CLASSES + j];
                bb += b[k * CLASSES + j] * b[k * CLASSES + j];
            }
            s[i][k] = ab / sqrt(aa) / sqrt(bb) / heat;
        }
    for (int i = 0; i < ROWS; i++) {
        double forth = lse(s[i], ROWS, 1) - s[i][i], back = lse(&s[0][i], ROWS, ROWS) - s[i][i];
        sum += desc->one_way ? forth : (forth + back) / 2;
    }
    return sum / ROWS;
}

/* ---- on the device ---- */

enum kind { CROSS_ENTROPY, MSE, BCE, KL, CONTRASTIVE };

static rlx_value build(rlx_graph *g, enum kind kind, rlx_value x, rlx_value y, rlx_value label,
                       const void *desc)
{
    switch (kind) {
    case CROSS_ENTROPY: return rlx_cross_entropy(g, x, label, desc);
    case MSE: return rlx_mse(g, x, y);
    case BCE: return rlx_bce(g, x, y);
    case KL: return rlx_kl(g, x, y);
    default: return rlx_contrastive(g, x, y, desc);
    }
}

static double formula(enum kind kind, const double *x, const double *y, const void *desc)
{
    static const rlx_cross_entropy_desc plain = {0};

    switch (kind) {
    case CROSS_ENTROPY: return cross_entropy(x, y, desc ? desc : &plain);
    case MSE: return mse(x, y, desc);
    case BCE: return bce(x, y, desc);
    case KL: return kl(x, y, desc);
    default: return contrastive(x, y, desc);
    }
}

static void check(struct test *t, enum kind kind, const void *desc)
{
    double in[2][COUNT];
    float loss, got[COUNT], want[COUNT];
    rlx_session *s;
    rlx_model *m;
    struct world w;
    rlx_error err = {0};

    require(t, open_world(t, &w));
    rlx_device_close(w.dev);
    w.dev = NULL;
    rlx_status opened = rlx_device_open(w.ctx, test_device(t), &w.dev, &err);
    if (test_no_device(t, test_device(t), opened, err.message)) {
        close_world(&w);
        return;
    }
    rlx_value x = rlx_input(w.g, "x", RLX_DTYPE_f32, RLX_LIST(ROWS, CLASSES));
    rlx_value y = rlx_input(w.g, "y", RLX_DTYPE_f32, RLX_LIST(ROWS, CLASSES));
    rlx_value label = rlx_input(w.g, "label", RLX_DTYPE_i32, RLX_LIST(ROWS));
    rlx_value of = build(w.g, kind, x, y, label, desc), dx;
    require_ok(t, rlx_graph_check(w.g, &err));
    require_ok(t, rlx_gradient(w.g, of, &x, 1, &dx, &err));
    rlx_output(w.g, of);
    rlx_output(w.g, dx);
    require_ok(t, rlx_model_create(w.g, &m, &err));
    w.g = NULL;
    require_ok(t, rlx_session_create(m, w.dev, NULL, &s, &err));
    rlx_binding given[] = {
        {"x", {RLX_DTYPE_f32, 2, {ROWS, CLASSES}, numbers[0], sizeof numbers[0]}},
        {"y", {RLX_DTYPE_f32, 2, {ROWS, CLASSES}, numbers[1], sizeof numbers[1]}},
        {"label", {RLX_DTYPE_i32, 1, {ROWS}, labels, sizeof labels}}};
    rlx_binding out[] = {{"out0", {RLX_DTYPE_f32, 0, {0}, &loss, sizeof loss}},
                         {"out1", {RLX_DTYPE_f32, 0, {0}, got, sizeof got}}};
    require_ok(
        t, rlx_session_run(s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), given, 3, out, 2, NULL, 0},
                           &err));

    for (int i = 0; i < COUNT; i++) {
        in[0][i] = (double)numbers[0][i];
        in[1][i] = (double)numbers[1][i];
    }
    double value = formula(kind, in[0], in[1], desc);
    expect_near(t, loss, value, 1e-5 * (1 + fabs(value)));
    for (int i = 0; i < COUNT; i++) {
        double kept = in[0][i], step = 1e-5 * (1 + fabs(kept));
        in[0][i] = kept + step;
        double above = formula(kind, in[0], in[1], desc);
        in[0][i] = kept - step;
        want[i] = (float)((above - formula(kind, in[0], in[1], desc)) / (2 * step));
        in[0][i] = kept;
    }
    expect_close(t, got, want, COUNT, 1e-4, 1e-6);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    close_world(&w);
}

TEST_DEVICES(loss, cross_entropy)
{
    fill(3);
    check(t, CROSS_ENTROPY, NULL);
    labels[1] = -100; /* no class: does not count */
    labels[4] = CLASSES;
    check(t, CROSS_ENTROPY, NULL);
    check(t, CROSS_ENTROPY,
          &(rlx_cross_entropy_desc){RLX_SIZED(rlx_cross_entropy_desc), .smoothing = 0.1f});
    check(t, CROSS_ENTROPY,
          &(rlx_cross_entropy_desc){RLX_SIZED(rlx_cross_entropy_desc), .smoothing = 0.3f,
                                    .ignore = true, .ignored = 3});
    for (int i = 0; i < ROWS; i++)
        labels[i] = -1;
    check(t, CROSS_ENTROPY, NULL);
    fill(200); /* beyond what e^x holds */
    check(t, CROSS_ENTROPY,
          &(rlx_cross_entropy_desc){RLX_SIZED(rlx_cross_entropy_desc), .smoothing = 0.1f});
}

TEST_DEVICES(loss, element_by_element)
{
    fill(2);
    check(t, MSE, NULL);
    check(t, KL, NULL);
    fill(300);
    check(t, KL, NULL);
    for (int i = 0; i < COUNT; i++)
        numbers[1][i] = (float)i / COUNT;
    check(t, BCE, NULL);
    fill(1);
    for (int i = 0; i < COUNT; i++)
        numbers[1][i] = (float)(i % 2);
    check(t, BCE, NULL);
}

TEST_DEVICES(loss, contrastive)
{
    rlx_contrastive_desc desc = {RLX_SIZED(rlx_contrastive_desc)};

    fill(2);
    check(t, CONTRASTIVE, &desc);
    desc.temperature = 0.5f;
    check(t, CONTRASTIVE, &desc);
    desc.one_way = true;
    check(t, CONTRASTIVE, &desc);
}

/* Halves are added up in f32, and so is what the result is. */
TEST(loss, is_wide)
{
    struct world w;
    rlx_dtype dtype;

    require(t, open_world(t, &w));
    rlx_value x = rlx_input(w.g, "x", RLX_DTYPE_bf16, RLX_LIST(2, 3, 4));
    rlx_value label = rlx_input(w.g, "l", RLX_DTYPE_u8, RLX_LIST(2, 3));
    require_ok(t, rlx_value_type(w.g, rlx_cross_entropy(w.g, x, label, NULL), &dtype, NULL, NULL));
    expect_eq(t, dtype, RLX_DTYPE_f32);
    rlx_value d = rlx_input(w.g, "d", RLX_DTYPE_f64, RLX_LIST(2));
    require_ok(t, rlx_value_type(w.g, rlx_mse(w.g, d, d), &dtype, NULL, NULL));
    expect_eq(t, dtype, RLX_DTYPE_f64);
    close_world(&w);
}

/* ---- refusals ---- */

static void refused(struct test *t, int which, rlx_status status, const char *part)
{
    struct world w;
    rlx_error err = {0};

    require(t, open_world(t, &w));
    rlx_value x = rlx_input(w.g, "x", RLX_DTYPE_f32, RLX_LIST(2, 3));
    rlx_value y = rlx_input(w.g, "y", RLX_DTYPE_f32, RLX_LIST(2, 4));
    rlx_value n = rlx_input(w.g, "n", RLX_DTYPE_i32, RLX_LIST(2));
    rlx_cross_entropy_desc smooth = {RLX_SIZED(rlx_cross_entropy_desc), .smoothing = 1.5f};
    rlx_contrastive_desc cold = {RLX_SIZED(rlx_contrastive_desc), .temperature = -1};
    rlx_value v = RLX_NO_VALUE;
    switch (which) {
    case 0: v = rlx_cross_entropy(w.g, x, y, NULL); break;
    case 1: v = rlx_cross_entropy(w.g, n, n, NULL); break;
    case 2: v = rlx_cross_entropy(w.g, rlx_reshape(w.g, x, RLX_LIST(3, 2)), n, NULL); break;
    case 3: v = rlx_cross_entropy(w.g, x, n, &smooth); break;
    case 4: v = rlx_mse(w.g, x, y); break;
    case 5: v = rlx_bce(w.g, x, n); break;
    case 6: v = rlx_kl(w.g, x, 99); break;
    case 7: v = rlx_contrastive(w.g, x, x, &cold); break;
    case 8: v = rlx_cross_entropy(w.g, x, rlx_reshape(w.g, n, RLX_LIST(2, 1)), NULL); break;
    case 9: v = rlx_kl(w.g, rlx_scalar(w.g, x, 1), rlx_scalar(w.g, x, 2)); break;
    default:
        v = rlx_contrastive(w.g, rlx_reshape(w.g, x, RLX_LIST(6)), rlx_reshape(w.g, x, RLX_LIST(6)),
                            NULL);
        break;
    }
    test_note(t, "refusal %d", which);
    expect_eq(t, v, RLX_NO_VALUE);
    expect_status(t, rlx_graph_check(w.g, &err), status);
    expect_contains(t, err.message, part);
    close_world(&w);
}

TEST(loss, refusals_name_the_loss)
{
    refused(t, 0, RLX_ERROR_DTYPE, "cross_entropy: labels must be integers, not f32");
    refused(t, 1, RLX_ERROR_DTYPE, "logits must be floats, not i32");
    refused(t, 2, RLX_ERROR_SHAPE, "axis 0");
    refused(t, 3, RLX_ERROR_ATTRIBUTE, "smoothing is 1.5");
    refused(t, 4, RLX_ERROR_SHAPE, "mse: x and target differ in the size of axis 1");
    refused(t, 5, RLX_ERROR_DTYPE, "bce: target must be floats");
    refused(t, 6, RLX_ERROR_GRAPH, "kl: target");
    refused(t, 7, RLX_ERROR_ATTRIBUTE, "temperature is -1");
    refused(t, 8, RLX_ERROR_SHAPE, "must have rank 1, not 2");
    refused(t, 9, RLX_ERROR_SHAPE, "at least one axis");
    refused(t, 10, RLX_ERROR_SHAPE, "rank 2, not 1");
    expect_eq(t, rlx_mse(NULL, 0, 0), RLX_NO_VALUE);
    expect_eq(t, rlx_cross_entropy(NULL, 0, 0, NULL), RLX_NO_VALUE);
}
