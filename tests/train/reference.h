/* reference.h: what training is to do, in double precision: every optimiser and schedule as its
 * formula says. */
#ifndef TESTS_TRAIN_REFERENCE_H
#define TESTS_TRAIN_REFERENCE_H

#include "train_world.h"

struct reference {
    rlx_train_desc d; /* with its defaults in place */
    double p[PARAMS][MOST], m[PARAMS][MOST], v[PARAMS][MOST];
    int updates;
};

static inline double or_else(float v, double otherwise)
{
    return v != 0 ? (double)v : otherwise;
}

static inline void start(struct reference *r, const rlx_train_desc *d)
{
    *r = (struct reference){.d = *d};
    for (int i = 0; i < PARAMS; i++)
        for (size_t k = 0; k < param_size(i); k++)
            r->p[i][k] = (double)first_value(i, k);
}

static inline double wave(double from, double to, double progress)
{
    return to + (from - to) * (1 + cos(acos(-1.0) * fmin(1, progress))) / 2;
}

static inline double rate_of(const rlx_train_desc *d, double rate, int k)
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
static inline void newton_schulz(double *x, int rows, int columns)
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

static inline void orthogonal(double *x, int rows, int columns)
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

static inline void adam(struct reference *r, int i, const double *grad, double rate, double decay,
                        bool w)
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

static inline void sgd(struct reference *r, int i, const double *grad, double rate, double decay)
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

static inline void lion(struct reference *r, int i, const double *grad, double rate, double decay)
{
    double b1 = or_else(r->d.beta1, 0.9), b2 = or_else(r->d.beta2, 0.99);

    for (size_t k = 0; k < param_size(i); k++) {
        double c = b1 * r->m[i][k] + (1 - b1) * grad[k];
        r->p[i][k] -= rate * decay * r->p[i][k];
        r->p[i][k] -= rate * (c > 0 ? 1 : c < 0 ? -1 : 0);
        r->m[i][k] = b2 * r->m[i][k] + (1 - b2) * grad[k];
    }
}

static inline void muon(struct reference *r, int i, const double *grad, double rate, double decay)
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

static inline double base_rate(const rlx_train_desc *d)
{
    static const double rates[] = {1e-3, 1e-3, 1e-2, 1e-4, 2e-2};

    return or_else(d->rate, rates[d->optimiser]);
}

static inline double update(struct reference *r, double grad[PARAMS][MOST])
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

static inline void compare_params(struct test *t, struct train_world *w, const struct reference *r,
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

#endif
