/* optimiser_test.c: every optimiser and every schedule against the formulas, in double precision,
 * over 20 updates, with decay, clipping and accumulation. */
#include "train_world.h"

enum { UPDATES = 20 };

/* ---- the reference ---- */

struct reference {
    rlx_train_desc d; /* with its defaults in place */
    double p[PARAMS][MOST], m[PARAMS][MOST], v[PARAMS][MOST];
    int updates;
};

static double or_else(float v, double otherwise)
{
    return v != 0 ? (double)v : otherwise;
}

static void start(struct reference *r, const rlx_train_desc *d)
{
    *r = (struct reference){.d = *d};
    for (int i = 0; i < PARAMS; i++)
        for (size_t k = 0; k < param_size(i); k++)
            r->p[i][k] = (double)first_value(i, k);
}

static double wave(double from, double to, double progress)
{
    return to + (from - to) * (1 + cos(acos(-1.0) * fmin(1, progress))) / 2;
}

static double rate_of(const rlx_train_desc *d, double rate, int k)
{
    double warm = (double)d->warmup_steps, total = (double)d->total_steps;
    double last = rate * (double)d->final_ratio, p = (k - warm) / (total - warm);

    if (d->schedule == RLX_SCHEDULE_ONE_CYCLE) {
        double top = warm - 1, first = rate * or_else(d->start_ratio, 0.04);
        return k < top ? wave(first, rate, k / top)
                       : wave(rate, last, (k - top) / (total - 1 - top));
    }
    if (k < warm)
        return rate * (k + 1) / warm;
    switch (d->schedule) {
    case RLX_SCHEDULE_LINEAR: return rate + (last - rate) * fmin(1, p);
    case RLX_SCHEDULE_COSINE: return wave(rate, last, p);
    default: return rate;
    }
}

/* X = a X + (b A + c A^2) X with A = X X^T, five times; x is [rows, columns], rows <= columns. */
static void newton_schulz(double *x, int rows, int columns)
{
    double a[MOST], aa[MOST], y[MOST], length = 0;

    for (int i = 0; i < rows * columns; i++)
        length += x[i] * x[i];
    for (int i = 0; i < rows * columns; i++)
        x[i] /= sqrt(length);
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++) {
                a[i * rows + j] = 0;
                for (int k = 0; k < columns; k++)
                    a[i * rows + j] += x[i * columns + k] * x[j * columns + k];
            }
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++) {
                aa[i * rows + j] = 0;
                for (int k = 0; k < rows; k++)
                    aa[i * rows + j] += a[i * rows + k] * a[k * rows + j];
            }
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                y[i * columns + j] = 3.4445 * x[i * columns + j];
                for (int k = 0; k < rows; k++)
                    y[i * columns + j] += (-4.7750 * a[i * rows + k] + 2.0315 * aa[i * rows + k]) *
                                          x[k * columns + j];
            }
        memcpy(x, y, sizeof y);
    }
}

static void orthogonal(double *x, int rows, int columns)
{
    double turned[MOST];

    if (rows <= columns) {
        newton_schulz(x, rows, columns);
        return;
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            turned[j * rows + i] = x[i * columns + j];
    newton_schulz(turned, columns, rows);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            x[i * columns + j] = turned[j * rows + i];
}

static void adam(struct reference *r, int i, const double *grad, double rate, double decay, bool w)
{
    double b1 = or_else(r->d.beta1, 0.9), b2 = or_else(r->d.beta2, 0.999);
    double eps = or_else(r->d.eps, 1e-8), t = r->updates + 1;

    for (size_t k = 0; k < param_size(i); k++) {
        double *p = &r->p[i][k], *m = &r->m[i][k], *v = &r->v[i][k], g = grad[k];
        if (w)
            *p -= rate * decay * *p;
        else
            g += decay * *p;
        *m = b1 * *m + (1 - b1) * g;
        *v = b2 * *v + (1 - b2) * g * g;
        *p -= rate * (*m / (1 - pow(b1, t))) / (sqrt(*v / (1 - pow(b2, t))) + eps);
    }
}

static void sgd(struct reference *r, int i, const double *grad, double rate, double decay)
{
    double momentum = (double)r->d.momentum;

    for (size_t k = 0; k < param_size(i); k++) {
        double g = grad[k] + decay * r->p[i][k];
        r->m[i][k] = momentum * r->m[i][k] + g;
        if (momentum > 0)
            g = r->d.nesterov ? g + momentum * r->m[i][k] : r->m[i][k];
        r->p[i][k] -= rate * g;
    }
}

static void lion(struct reference *r, int i, const double *grad, double rate, double decay)
{
    double b1 = or_else(r->d.beta1, 0.9), b2 = or_else(r->d.beta2, 0.99);

    for (size_t k = 0; k < param_size(i); k++) {
        double c = b1 * r->m[i][k] + (1 - b1) * grad[k];
        r->p[i][k] -= rate * decay * r->p[i][k];
        r->p[i][k] -= rate * (c > 0 ? 1 : c < 0 ? -1 : 0);
        r->m[i][k] = b2 * r->m[i][k] + (1 - b2) * grad[k];
    }
}

static void muon(struct reference *r, int i, const double *grad, double rate, double decay)
{
    double x[MOST], momentum = or_else(r->d.momentum, 0.95);
    int rows = (int)param_rows[i], columns = (int)param_columns[i];

    for (size_t k = 0; k < param_size(i); k++) {
        r->m[i][k] = momentum * r->m[i][k] + (1 - momentum) * grad[k];
        x[k] = momentum * r->m[i][k] + (1 - momentum) * grad[k];
    }
    orthogonal(x, rows, columns);
    for (size_t k = 0; k < param_size(i); k++)
        r->p[i][k] -= rate * (decay * r->p[i][k] + sqrt(fmax(1, (double)rows / columns)) * x[k]);
}

static double base_rate(const rlx_train_desc *d)
{
    static const double rates[] = {1e-3, 1e-3, 1e-2, 1e-4, 2e-2};

    return or_else(d->rate, rates[d->optimiser]);
}

static double update(struct reference *r, double grad[PARAMS][MOST])
{
    const rlx_train_desc *d = &r->d;
    double rate = rate_of(d, base_rate(d), r->updates), square = 0, clip = 1;
    double plain = rate_of(d, or_else(d->plain_rate, 1e-3), r->updates);

    for (int i = 0; i < PARAMS; i++)
        for (size_t k = 0; k < param_size(i); k++)
            square += grad[i][k] * grad[i][k];
    if (d->clip_norm > 0)
        clip = fmin(1, (double)d->clip_norm / (sqrt(square) + 1e-6));
    for (int i = 0; i < PARAMS; i++) {
        double decay = param_rows[i] > 1 || d->decay_vectors ? (double)d->decay : 0;
        for (size_t k = 0; k < param_size(i); k++)
            grad[i][k] *= clip;
        switch (d->optimiser) {
        case RLX_OPTIMISER_ADAMW: adam(r, i, grad[i], rate, decay, true); break;
        case RLX_OPTIMISER_ADAM: adam(r, i, grad[i], rate, decay, false); break;
        case RLX_OPTIMISER_SGD: sgd(r, i, grad[i], rate, decay); break;
        case RLX_OPTIMISER_LION: lion(r, i, grad[i], rate, decay); break;
        default:
            if (i == 1 || (d->plain_count && i == 2))
                adam(r, i, grad[i], plain, decay, true);
            else
                muon(r, i, grad[i], rate, decay);
        }
    }
    r->updates++;
    return sqrt(square);
}

/* ---- beside the device ---- */

static void compare_params(struct test *t, struct train_world *w, const struct reference *r,
                           double tol)
{
    float got[MOST], want[MOST];

    for (int i = 0; i < PARAMS; i++) {
        size_t n = param_size(i);
        for (size_t k = 0; k < n; k++)
            want[k] = (float)r->p[i][k];
        if (get_state(t, w, param_name[i], RLX_DTYPE_f32, got, n * sizeof *got))
            expect_close(t, got, want, n, tol, tol);
    }
}

static bool same_runs(struct test *t, struct train_world *w, struct reference *r, int runs)
{
    double sum[PARAMS][MOST] = {0}, grad[PARAMS][MOST];

    for (int i = 0; i < runs; i++) {
        struct batch b;
        struct shown s;
        make_batch(&b, r->updates * runs + i);
        double loss = batch_gradients(r->p, &b, grad);
        for (int p = 0; p < PARAMS; p++)
            for (size_t k = 0; k < param_size(p); k++)
                sum[p][k] += grad[p][k] / runs;
        if (!expect_ok(t, run_batch(w, &b, ROWS, &s)))
            return fail(t, "%s", w->err.message);
        if (!expect_near(t, s.loss, loss, 2e-4 * loss) ||
            !expect_near(t, s.rate, rate_of(&r->d, base_rate(&r->d), r->updates),
                         2e-6 * base_rate(&r->d)))
            return false;
        if (i == runs - 1) {
            double norm = update(r, sum);
            return expect_near(t, s.grad_norm, norm, 2e-4 * norm);
        }
    }
    return true;
}

static void check(struct test *t, const char *what, rlx_train_desc desc)
{
    struct train_world w;
    static struct reference r;
    int32_t step = 0, bad[2] = {-1, -1};

    desc.size = sizeof desc;
    test_note(t, "%s", what);
    if (open_trained(t, &w, &desc, RLX_DTYPE_f32)) {
        start(&r, &desc);
        for (int k = 0; k < UPDATES; k++) {
            test_note(t, "%s, update %d", what, k);
            if (!same_runs(t, &w, &r, desc.accumulate ? desc.accumulate : 1))
                break;
        }
        compare_params(t, &w, &r, 2e-4);
        if (get_state(t, &w, "train.step", RLX_DTYPE_i32, &step, sizeof step))
            expect_eq(t, step, UPDATES);
        if (get_state(t, &w, "train.bad", RLX_DTYPE_i32, bad, sizeof bad))
            expect(t, bad[0] == 0);
    }
    close_world(&w);
    test_note(t, "%s", "");
}

#define CHECK(t, ...) check(t, #__VA_ARGS__, (rlx_train_desc){__VA_ARGS__})

TEST_DEVICES(train_optimiser, adamw)
{
    CHECK(t, .rate = 0);
    CHECK(t, .rate = 3e-2f, .decay = 0.1f, .clip_norm = 0.3f);
    CHECK(t, .rate = 3e-2f, .decay = 0.1f, .decay_vectors = true, .beta1 = 0.8f, .beta2 = 0.9f,
          .eps = 1e-3f);
}

TEST_DEVICES(train_optimiser, adam)
{
    CHECK(t, .optimiser = RLX_OPTIMISER_ADAM, .rate = 1e-2f);
    CHECK(t, .optimiser = RLX_OPTIMISER_ADAM, .rate = 1e-2f, .decay = 0.2f, .clip_norm = 0.5f);
}

TEST_DEVICES(train_optimiser, sgd)
{
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .decay = 0.1f, .decay_vectors = true);
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .rate = 5e-2f, .momentum = 0.9f, .decay = 0.1f);
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .rate = 5e-2f, .momentum = 0.9f, .nesterov = true,
          .decay = 0.1f, .clip_norm = 0.2f);
}

TEST_DEVICES(train_optimiser, lion)
{
    CHECK(t, .optimiser = RLX_OPTIMISER_LION, .rate = 1e-3f);
    CHECK(t, .optimiser = RLX_OPTIMISER_LION, .rate = 1e-3f, .decay = 0.5f, .clip_norm = 0.1f,
          .beta1 = 0.5f, .beta2 = 0.9f);
}

TEST_DEVICES(train_optimiser, muon)
{
    static const char *const plain[] = {"u*"};

    CHECK(t, .optimiser = RLX_OPTIMISER_MUON);
    CHECK(t, .optimiser = RLX_OPTIMISER_MUON, .decay = 0.1f, .plain = plain, .plain_count = 1,
          .plain_rate = 5e-3f, .momentum = 0.8f);
}

TEST_DEVICES(train_optimiser, several_runs_to_an_update)
{
    CHECK(t, .accumulate = 3, .rate = 1e-2f, .clip_norm = 0.3f);
    CHECK(t, .optimiser = RLX_OPTIMISER_SGD, .accumulate = 2, .momentum = 0.9f);
}

TEST_DEVICES(train_schedule, follows_its_formula)
{
    CHECK(t, .warmup_steps = 4);
    CHECK(t, .schedule = RLX_SCHEDULE_LINEAR, .total_steps = 15);
    CHECK(t, .schedule = RLX_SCHEDULE_LINEAR, .warmup_steps = 3, .total_steps = 20,
          .final_ratio = 0.1f);
    CHECK(t, .schedule = RLX_SCHEDULE_COSINE, .warmup_steps = 5, .total_steps = 15,
          .final_ratio = 0.2f, .rate = 1e-2f);
    CHECK(t, .schedule = RLX_SCHEDULE_COSINE, .total_steps = 18, .accumulate = 2);
    CHECK(t, .schedule = RLX_SCHEDULE_ONE_CYCLE, .warmup_steps = 6, .total_steps = 20,
          .final_ratio = 1e-3f, .rate = 2e-2f);
    CHECK(t, .schedule = RLX_SCHEDULE_ONE_CYCLE, .warmup_steps = 4, .total_steps = 12,
          .start_ratio = 0.5f);
}
