/* log_mel.c: log_mel and log_mel_backward: the energies of a spectrum's bands as logarithms, frame
 * by frame (ops-special.md 5.4, 5.5).
 *
 * A filter is zero outside of its band, so only the part between its first and last bin that is
 * not zero is multiplied. A frame with an infinity or NaN takes all bins: zero times those is NaN.
 */
#include "backend/cpu/kernels/common.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"
#include "backend/cpu/kernels/math.h"

enum { LANES = GEMM_VEC / sizeof(float) };
typedef vec_f32 loose_f32 __attribute__((aligned(4), may_alias));

struct band {
    int64_t from, to;
};

/* Scratch: the bands, then for each worker what a frame needs. */
struct mel {
    const struct cpu_call *c;
    int64_t n_fft, bins, bands, frames;
    const float *spec, *filt, *dy;
    float *out;
    struct band *band;
};

struct frame {
    float *power;          /* [bins]; then the gradient for it */
    float *energy, *level; /* [bands]: what is in a band, and its logarithm */
    float top;             /* the largest level */
    bool is_finite;
};

static uint64_t frame_floats(int64_t bins, int64_t bands)
{
    return ((uint64_t)bins + 2 * (uint64_t)bands + 15) / 16 * 16;
}

static uint64_t band_bytes(int64_t bands)
{
    return ((uint64_t)bands * sizeof(struct band) + 63) / 64 * 64;
}

static uint64_t scratch(const struct cpu_call *c)
{
    const struct cpu_tensor *filt = &c->in[1];
    uint64_t threads = c->pool ? (uint64_t)pool_threads(c->pool) : 1;

    return band_bytes(filt->dim[0]) +
           threads * frame_floats(filt->dim[1], filt->dim[0]) * sizeof(float);
}

static void find_bands(struct mel *m)
{
    for (int64_t b = 0; b < m->bands; b++) {
        const float *row = m->filt + b * m->bins;
        struct band *band = &m->band[b];
        *band = (struct band){0, m->bins};
        while (band->from < band->to && row[band->from] == 0)
            band->from++;
        while (band->from < band->to && row[band->to - 1] == 0)
            band->to--;
    }
}

static void set_job(struct mel *m, const struct cpu_call *c)
{
    const struct cpu_tensor *spec = &c->in[0], *filt = &c->in[1];

    *m = (struct mel){.c = c,
                      .n_fft = spec->dim[spec->rank - 1] / 2,
                      .bins = filt->dim[1],
                      .bands = filt->dim[0],
                      .spec = spec->data,
                      .filt = filt->data,
                      .dy = c->in_count > 2 ? c->in[2].data : NULL,
                      .out = c->out->data,
                      .band = c->scratch};
    m->frames = spec->count / (2 * m->n_fft);
    find_bands(m);
}

static struct frame frame_of(const struct mel *m, int worker)
{
    char *own = (char *)m->c->scratch + band_bytes(m->bands);
    float *f = (float *)(void *)own + (uint64_t)worker * frame_floats(m->bins, m->bands);

    return (struct frame){.power = f, .energy = f + m->bins, .level = f + m->bins + m->bands};
}

/* ---- levels --------------------------------------------------------------------------------- */

static float dot(const float *a, const float *b, int64_t n)
{
    vec_f32 sum[2] = {{0}, {0}};
    float all = 0;
    int64_t i = 0;

    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (int k = 0; k < 2; k++)
            sum[k] = F32_MADD(*(const loose_f32 *)(a + i + k * LANES),
                              *(const loose_f32 *)(b + i + k * LANES), sum[k]);
    sum[0] += sum[1];
    for (int k = 0; k < LANES; k++)
        all += sum[0][k];
    for (; i < n; i++)
        all += a[i] * b[i];
    return all;
}

static struct band band_of(const struct mel *m, const struct frame *f, int64_t b)
{
    return f->is_finite ? m->band[b] : (struct band){0, m->bins};
}

static void measure(const struct mel *m, const float *re, struct frame *f)
{
    const float *im = re + m->n_fft;
    float odd = 0; /* becomes NaN */

    for (int64_t j = 0; j < m->bins; j++)
        f->power[j] = re[j] * re[j] + im[j] * im[j];
    for (int64_t j = 0; j < m->bins; j++)
        odd += f->power[j] * 0.0f;
    f->is_finite = odd == 0;
    for (int64_t b = 0; b < m->bands; b++) {
        struct band at = band_of(m, f, b);
        f->energy[b] = dot(m->filt + b * m->bins + at.from, f->power + at.from, at.to - at.from);
    }
    for (int64_t b = 0; b < m->bands; b++)
        f->level[b] = math_log(cpu_max_f32(f->energy[b], 1e-10f)) * 0.43429448190325182765f;
    f->top = -INFINITY;
    for (int64_t b = 0; b < m->bands; b++)
        f->top = cpu_max_f32(f->level[b], f->top);
}

static void write_levels(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct mel *m = ctx;
    struct frame f = frame_of(m, worker);

    for (int64_t i = begin; i < end; i++) {
        float *y = m->out + i * m->bands;
        measure(m, m->spec + i * 2 * m->n_fft, &f);
        for (int64_t b = 0; b < m->bands; b++)
            y[b] = (cpu_max_f32(f.level[b], f.top - 8) + 4) * 0.25f;
    }
}

/* ---- gradient ------------------------------------------------------------------------------- */

/* The gradient for a band's energy: none where a floor holds. */
static float energy_gradient(const struct frame *f, int64_t b, float dy)
{
    float floor = f->top - 8;

    if (fabsf(cpu_max_f32(f->level[b], floor) - floor) <= 1e-6f || f->energy[b] <= 1e-10f)
        return 0;
    return dy * 0.25f / (f->energy[b] * 2.30258509299404568402f);
}

static void write_gradient(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct mel *m = ctx;
    struct frame f = frame_of(m, worker);

    for (int64_t i = begin; i < end; i++) {
        const float *re = m->spec + i * 2 * m->n_fft, *im = re + m->n_fft;
        float *to = m->out + i * 2 * m->n_fft, *sum = f.power;
        bool any = false;
        measure(m, re, &f);
        memset(sum, 0, (size_t)m->bins * sizeof *sum);
        memset(to, 0, (size_t)(2 * m->n_fft) * sizeof *to);
        for (int64_t b = 0; b < m->bands; b++) {
            const float *filt = m->filt + b * m->bins;
            float g = energy_gradient(&f, b, m->dy[i * m->bands + b]);
            struct band at = band_of(m, &f, b);
            if (g == 0)
                continue;
            any = true;
            for (int64_t j = at.from; j < at.to; j++)
                sum[j] += g * filt[j];
        }
        for (int64_t j = 0; any && j < m->bins; j++) {
            to[j] = 2 * sum[j] * re[j];
            to[m->n_fft + j] = 2 * sum[j] * im[j];
        }
    }
}

static int64_t grain(const struct mel *m)
{
    return cpu_max_i64(1, 16384 / (m->bins + 16 * m->bands));
}

static void run_forward(const struct cpu_call *c)
{
    struct mel m;

    if (c->out->count == 0)
        return;
    set_job(&m, c);
    cpu_for(c->pool, m.frames, grain(&m), write_levels, &m);
}

static void run_backward(const struct cpu_call *c)
{
    struct mel m;

    if (c->out->count == 0)
        return;
    set_job(&m, c);
    cpu_for(c->pool, m.frames, grain(&m), write_gradient, &m);
}

const struct cpu_kernel CPU_NAME(cpu_log_mel) = {.run = run_forward, .scratch = scratch};
const struct cpu_kernel CPU_NAME(cpu_log_mel_backward) = {.run = run_backward, .scratch = scratch};
