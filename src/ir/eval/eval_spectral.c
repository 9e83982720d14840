/* eval_spectral.c: Fourier transforms by their sums, and what is made of spectra (ops-special.md
 * 5).
 *
 * A row of a spectrum holds n_fft real parts and then as many imaginary ones. */
#include <math.h>

#include "ir/eval/eval.h"

#define QUARTER_TURN 1.57079632679489661923

static double *room_for(struct eval_call *c, int64_t count)
{
    double *v = arena_array(c->arena, double, (size_t)count);

    if (!v)
        diag_no_memory(c->diag, (size_t)count * sizeof *v);
    return v;
}

/* The larger; NaN if either is. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

/* ---- fft ----------------------------------------------------------------------------------- */

/* e^(2 pi i j/n), 0 <= j < n: a whole number of quarter turns and the rest, so that the axes are
 * met exactly. */
static struct eval_cell turn(int64_t j, int64_t n)
{
    double rest = QUARTER_TURN * (double)(4 * j % n) / (double)n, x = cos(rest), y = sin(rest);

    switch (4 * j / n) {
    case 0: return (struct eval_cell){.f = x, .im = y};
    case 1: return (struct eval_cell){.f = -y, .im = x};
    case 2: return (struct eval_cell){.f = -x, .im = -y};
    default: return (struct eval_cell){.f = y, .im = -x};
    }
}

/* One row of n points; the table has all n turns. */
static void transform(const struct eval_cell *x, const struct eval_cell *table, int64_t n,
                      bool inverse, double scale, struct eval_cell *y)
{
    if (n == 1) { /* nothing is multiplied by zero: infinities stay as they are */
        y[0] = (struct eval_cell){.f = scale * x[0].f, .im = scale * x[0].im};
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int64_t j = 0, at = 0; j < n; j++, at = (at + k) % n) { /* at: j k mod n */
            double c = table[at].f, s = inverse ? table[at].im : -table[at].im;
            re += x[j].f * c - x[j].im * s;
            im += x[j].f * s + x[j].im * c;
        }
        y[k] = (struct eval_cell){.f = scale * re, .im = scale * im};
    }
}

static double fft_scale(const struct attr_fft *attr, int64_t n)
{
    switch (attr->norm) {
    case RLX_FFT_NORM_forward: return attr->inverse ? 1 / (double)n : 1;
    case RLX_FFT_NORM_ortho: return 1 / sqrt((double)n);
    default: return 1;
    }
}

rlx_status eval_fft(struct eval_call *c)
{
    const struct attr_fft *attr = &c->attr->fft;
    bool complex = c->out->type.dtype == RLX_DTYPE_c64;
    int64_t extent = c->out->type.dim[c->out->type.rank - 1], n = complex ? extent : extent / 2;

    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    struct eval_cell *table = arena_array(c->arena, struct eval_cell, (size_t)n);
    struct eval_cell *x = arena_array(c->arena, struct eval_cell, (size_t)n);
    struct eval_cell *y = arena_array(c->arena, struct eval_cell, (size_t)n);
    if (!table || !x || !y)
        return diag_no_memory(c->diag, (size_t)n * sizeof *x);
    for (int64_t j = 0; j < n; j++)
        table[j] = turn(j, n);
    for (int64_t row = 0; row < c->out->count; row += extent) {
        const struct eval_cell *from = c->in[0]->at + row;
        struct eval_cell *to = c->out->at + row;
        for (int64_t j = 0; j < n; j++)
            x[j] = complex ? from[j] : (struct eval_cell){.f = from[j].f, .im = from[n + j].f};
        transform(x, table, n, attr->inverse, fft_scale(attr, n), y);
        for (int64_t j = 0; j < n; j++) {
            to[j] = y[j];
            if (!complex) {
                to[j].im = 0;
                to[n + j].f = y[j].im;
            }
        }
    }
    return RLX_OK;
}

/* ---- log_mel ------------------------------------------------------------------------------- */

/* One frame: the power of its bins, the energy of each band, that as a logarithm, and the largest
 * of these. */
struct mel {
    const struct eval_tensor *filt;
    int64_t n_fft, bins, bands;
    double *power, *energy, *log; /* [bins], [bands], [bands] */
    double top;
};

static rlx_status mel_open(struct eval_call *c, struct mel *m)
{
    const struct ir_type *spec = &c->in[0]->type;

    *m = (struct mel){.filt = c->in[1],
                      .n_fft = spec->dim[spec->rank - 1] / 2,
                      .bins = c->in[1]->type.dim[1],
                      .bands = c->in[1]->type.dim[0]};
    m->power = room_for(c, m->bins);
    m->energy = room_for(c, m->bands);
    m->log = room_for(c, m->bands);
    return m->power && m->energy && m->log ? RLX_OK : RLX_ERROR_MEMORY;
}

static double power(const struct eval_cell *spec, int64_t n_fft, int64_t j)
{
    return spec[j].f * spec[j].f + spec[n_fft + j].f * spec[n_fft + j].f;
}

static void mel_frame(struct mel *m, const struct eval_cell *spec)
{
    for (int64_t j = 0; j < m->bins; j++)
        m->power[j] = power(spec, m->n_fft, j);
    m->top = -INFINITY;
    for (int64_t b = 0; b < m->bands; b++) {
        m->energy[b] = 0;
        for (int64_t j = 0; j < m->bins; j++)
            m->energy[b] += m->filt->at[b * m->bins + j].f * m->power[j];
        m->log[b] = log10(larger(m->energy[b], 1e-10));
        m->top = larger(m->log[b], m->top);
    }
}

rlx_status eval_log_mel(struct eval_call *c)
{
    struct mel m;

    if (c->out->count == 0)
        return RLX_OK;
    TRY(mel_open(c, &m));
    for (int64_t row = 0; row < c->out->count / m.bands; row++) {
        mel_frame(&m, c->in[0]->at + row * 2 * m.n_fft);
        for (int64_t b = 0; b < m.bands; b++)
            c->out->at[row * m.bands + b].f = (larger(m.log[b], m.top - 8) + 4) / 4;
    }
    return RLX_OK;
}

/* The gradient for a band's energy: none where a floor holds. */
static double energy_gradient(const struct mel *m, int64_t b, double dy)
{
    double floor = m->top - 8;

    if (fabs(larger(m->log[b], floor) - floor) <= 1e-6 || m->energy[b] <= 1e-10)
        return 0;
    return dy * 0.25 / (m->energy[b] * log(10));
}

rlx_status eval_log_mel_backward(struct eval_call *c)
{
    struct mel m;

    if (c->out->count == 0)
        return RLX_OK;
    TRY(mel_open(c, &m));
    for (int64_t row = 0; row < c->out->count / (2 * m.n_fft); row++) {
        const struct eval_cell *spec = c->in[0]->at + row * 2 * m.n_fft;
        struct eval_cell *out = c->out->at + row * 2 * m.n_fft;
        mel_frame(&m, spec);
        for (int64_t b = 0; b < m.bands; b++) {
            double g = energy_gradient(&m, b, c->in[2]->at[row * m.bands + b].f);
            for (int64_t j = 0; g != 0 && j < m.bins; j++) {
                double f = g * m.filt->at[b * m.bins + j].f * 2;
                out[j].f += f * spec[j].f;
                out[m.n_fft + j].f += f * spec[m.n_fft + j].f;
            }
        }
    }
    return RLX_OK;
}

/* ---- welch_peaks --------------------------------------------------------------------------- */

/* Bins but the first and the last stand for two. */
static void welch_powers(const struct eval_cell *spec, int64_t n_fft, int64_t segments, double *p)
{
    int64_t bins = n_fft / 2 + 1;

    for (int64_t j = 0; j < bins; j++) {
        double twice = j == 0 || j == bins - 1 ? 1 : 2;
        p[j] = 0;
        for (int64_t s = 0; s < segments; s++)
            p[j] += twice * power(spec + s * 2 * n_fft, n_fft, j) / (double)segments;
    }
}

/* The largest not yet taken, the first of equals; NaN comes last. */
static int64_t next_peak(const double *p, const bool *taken, int64_t bins)
{
    int64_t best = -1;

    for (int64_t j = 0; j < bins; j++)
        if (!taken[j] && (best < 0 || p[j] > p[best] || (isnan(p[best]) && !isnan(p[j]))))
            best = j;
    return best;
}

rlx_status eval_welch_peaks(struct eval_call *c)
{
    int64_t n_fft = c->in[0]->type.dim[1] / 2, bins = n_fft / 2 + 1;
    int64_t k = c->attr->welch_peaks.k, segments = c->attr->welch_peaks.n_segments;

    if (c->out->count == 0)
        return RLX_OK;
    double *p = room_for(c, bins);
    bool *taken = arena_array(c->arena, bool, (size_t)bins);
    if (!p || !taken)
        return diag_no_memory(c->diag, (size_t)bins * sizeof *p);
    for (int64_t b = 0; b < c->out->count / (2 * k); b++) {
        welch_powers(c->in[0]->at + b * segments * 2 * n_fft, n_fft, segments, p);
        for (int64_t j = 0; j < bins; j++)
            taken[j] = false;
        for (int64_t i = 0; i < k; i++) {
            int64_t j = next_peak(p, taken, bins);
            taken[j] = true;
            c->out->at[(b * k + i) * 2].f = (double)j;
            c->out->at[(b * k + i) * 2 + 1].f = p[j];
        }
    }
    return RLX_OK;
}
