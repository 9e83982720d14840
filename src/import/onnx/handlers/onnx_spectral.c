/* onnx_spectral.c: Fourier transforms of ONNX, as products with matrices that are worked out at
 * load, and the windows that go with them. */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

#define PI 3.14159265358979323846
#define MAX_LENGTH 8192 /* of a transform */

/* cos and sin of 2 pi i k / n, [n, m]. */
static ir_value waves(struct onnx_call *c, int64_t n, int64_t m, int64_t period, bool sine,
                      double scale)
{
    struct ir_type t = {.dtype = RLX_DTYPE_f64, .rank = 2, .dim = {n, m}};
    double *w = arena_array(onnx_arena(c), double, (size_t)(n * m));

    if (!w) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)(n * m) * sizeof *w);
        return RLX_NO_VALUE;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++) {
            double angle = 2 * PI * (double)(i * k % period) / (double)period;
            w[i * m + k] = (sine ? sin(angle) : cos(angle)) * scale;
        }
    return formula_cast(&c->f, onnx_table_of(c, &t, w), c->f.dtype);
}

/* x [.., n, 1 or 2] as [.., m, 2], along the axis before the last. */
static ir_value transform(struct onnx_call *c, ir_value x, int64_t period, bool inverse,
                          bool onesided)
{
    struct formula *f = &c->f;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);
    int64_t n = t.dim[t.rank - 2], m = onesided ? period / 2 + 1 : period;
    double scale = inverse ? 1 / (double)period : 1;
    rlx_list line = rlx_list_of(t.rank - 1, t.dim);
    ir_value cosine = waves(c, n, m, period, false, scale),
             sine = waves(c, n, m, period, true, scale);
    ir_value re = formula_reshape(f, formula_narrow(f, x, t.rank - 1, 0, 1), line);
    ir_value flat = line.count == 1 ? formula_reshape(f, re, RLX_LIST(1, n)) : re;
    ir_value y[2] = {formula_matmul(f, flat, cosine, false, false),
                     formula_matmul(f, flat, sine, false, false)};
    if (!inverse)
        y[1] = formula_1(f, RLX_OP_neg, y[1]);
    if (t.dim[t.rank - 1] == 2) {
        ir_value im = formula_reshape(f, formula_narrow(f, x, t.rank - 1, 1, 1), line);
        im = line.count == 1 ? formula_reshape(f, im, RLX_LIST(1, n)) : im;
        ir_value turned = formula_matmul(f, im, sine, false, false);
        y[0] = formula_2(f, inverse ? RLX_OP_sub : RLX_OP_add, y[0], turned);
        y[1] = formula_2(f, RLX_OP_add, y[1], formula_matmul(f, im, cosine, false, false));
    }
    line.at[line.count - 1] = m;
    line.at[line.count++] = 1;
    for (int i = 0; i < 2; i++)
        y[i] = formula_reshape(f, y[i], line);
    return formula_concat(f, y, 2, line.count - 1);
}

/* Back to reals, which follow from half of their spectrum: x [.., bins, 2] as [.., n, 1]. The other
 * half mirrors it, so that all bins but the first, and the last of an even n, count twice. */
static ir_value transform_back(struct onnx_call *c, ir_value x, int64_t n)
{
    struct formula *f = &c->f;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);
    int64_t bins = t.dim[t.rank - 2];
    struct ir_type type = {.dtype = RLX_DTYPE_f64, .rank = 2, .dim = {bins, 1}};
    double *times = arena_array(onnx_arena(c), double, (size_t)bins);
    rlx_list line = rlx_list_of(t.rank - 1, t.dim);
    ir_value y[2];

    if (!times) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)bins * sizeof *times);
        return RLX_NO_VALUE;
    }
    for (int64_t k = 0; k < bins; k++)
        times[k] = k == 0 || 2 * k == n ? 1 : 2;
    ir_value weight = formula_cast(f, onnx_table_of(c, &type, times), f->dtype);
    for (int i = 0; i < 2; i++) { /* of a single line, a matrix of one row */
        ir_value part = formula_reshape(f, formula_narrow(f, x, t.rank - 1, i, 1),
                                        t.rank == 2 ? RLX_LIST(1, bins) : line);
        ir_value wave = waves(c, bins, n, n, i == 1, 1 / (double)n);
        y[i] = formula_matmul(f, part, formula_2(f, RLX_OP_mul, wave, weight), false, false);
    }
    line.at[line.count - 1] = n;
    line.at[line.count++] = 1;
    return formula_reshape(f, formula_2(f, RLX_OP_sub, y[0], y[1]), line);
}

/* The axis as long as the transform: cut, or filled with zeros. */
static ir_value fit(struct onnx_call *c, ir_value x, int32_t axis, int64_t want)
{
    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(&c->f, x);
    rlx_list before = {.count = t.rank}, after = {.count = t.rank};

    if (t.dim[axis] > want)
        return formula_narrow(&c->f, x, axis, 0, want);
    after.at[axis] = want - t.dim[axis];
    return onnx_pad_of(&c->f, x, before, after, 0);
}

/* The axis was an attribute up to opset 19, counted among all axes but the last one. */
void onnx_dft(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    int64_t axis = onnx_int(c, "axis", c->opset < 20 ? 1 : -2);
    double length = 0;
    bool inverse = onnx_int(c, "inverse", 0) != 0, onesided = onnx_int(c, "onesided", 0) != 0;

    f->dtype = t.dtype;
    if (onnx_has(c, 2))
        onnx_whole_in(c, 2, &axis);
    int32_t at = onnx_axis(c, axis, t.rank);
    if (onnx_failed(c))
        return;
    bool to_reals = inverse && onesided;
    length = to_reals ? 2 * ((double)t.dim[at] - 1) : (double)t.dim[at];
    if (onnx_has(c, 1))
        onnx_number_in(c, 1, &length);
    if (t.rank < 2 || at == t.rank - 1 || !dim_is_static(t.dim[at]) ||
        !(length >= 1 && length <= MAX_LENGTH)) {
        onnx_unsupported(c, "a transform that is symbolic, empty, or longer than %d", MAX_LENGTH);
        return;
    }
    if (to_reals && t.dim[t.rank - 1] != 2) {
        formula_fail(f, RLX_ERROR_SHAPE,
                     "an inverse real transform of values that are not complex");
        return;
    }
    int64_t n = (int64_t)length;
    rlx_list perm = onnx_all_axes(t.rank);
    perm.at[at] = t.rank - 2;
    perm.at[t.rank - 2] = at;
    ir_value x = fit(c, onnx_in(c, 0), at, to_reals ? n / 2 + 1 : n);
    x = formula_transpose(f, x, perm);
    ir_value y = to_reals ? transform_back(c, x, n) : transform(c, x, n, inverse, onesided);
    onnx_give(c, 0, formula_transpose(f, y, perm));
}

/* Frames of a signal [B, L, 1], every step, times a window: [B, frames, bins, 2]. */
void onnx_stft(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    double step = 0, length = 0;
    union ir_attr attr;

    f->dtype = t.dtype;
    onnx_number_in(c, 1, &step);
    if (onnx_has(c, 3))
        onnx_number_in(c, 3, &length);
    else if (onnx_has(c, 2) && onnx_type(c, 2)->rank == 1)
        length = (double)onnx_type(c, 2)->dim[0];
    if (onnx_failed(c))
        return;
    if (t.rank != 3 || !dim_is_static(t.dim[1]) || !(step >= 1) || step > 0x1p31 ||
        !(length >= 1 && length <= MAX_LENGTH) || (double)t.dim[1] < length) {
        onnx_unsupported(c, "frames of that length in such a signal");
        return;
    }
    int64_t n = (int64_t)length, count = (t.dim[1] - n) / (int64_t)step + 1;
    struct ir_type table = {.dtype = RLX_DTYPE_i64, .rank = 2, .dim = {count, n}};
    int64_t *index = arena_array(onnx_arena(c), int64_t, (size_t)(count * n));
    if (!index) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)(count * n) * 8);
        return;
    }
    for (int64_t i = 0; i < count * n; i++)
        index[i] = i / n * (int64_t)step + i % n;
    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = 1;
    ir_value in[] = {onnx_in(c, 0), onnx_table_of(c, &table, index)};
    ir_value frames = formula_node(f, RLX_OP_gather, in, 2, &attr); /* [B, frames, n, 1] */
    if (onnx_has(c, 2))
        frames =
            formula_2(f, RLX_OP_mul, frames, formula_reshape(f, onnx_in(c, 2), RLX_LIST(n, 1)));
    onnx_give(c, 0, transform(c, frames, n, false, onnx_int(c, "onesided", 1) != 0));
}

/* ---- windows ---- */

/* a0 - a1 cos(w) + a2 cos(2 w) */
static void window(struct onnx_call *c, double a0, double a1, double a2)
{
    struct formula *f = &c->f;
    int64_t to = onnx_int(c, "output_datatype", 1);
    struct ir_type t = {.dtype = RLX_DTYPE_f64, .rank = 1};
    rlx_dtype dtype = RLX_DTYPE_f32;
    double size = 0;

    if (!onnx_number_in(c, 0, &size))
        return;
    if (!(size >= 0 && size <= 1 << 24) || !onnx_dtype(to, &dtype)) {
        onnx_unsupported(c, "a window of that size or type");
        return;
    }
    double period = onnx_int(c, "periodic", 1) ? size : size - 1;
    double *w = arena_array(onnx_arena(c), double, (size_t)size);
    if (!w) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)size * sizeof *w);
        return;
    }
    for (size_t i = 0; i < (size_t)size; i++) {
        double at = 2 * PI * (double)i / period;
        w[i] = a0 - a1 * cos(at) + a2 * cos(2 * at);
    }
    t.dim[0] = (ir_dim)size;
    onnx_give(c, 0, formula_cast(f, onnx_table_of(c, &t, w), dtype));
}

void onnx_hann_window(struct onnx_call *c)
{
    window(c, 0.5, 0.5, 0);
}

void onnx_hamming_window(struct onnx_call *c)
{
    window(c, 25.0 / 46, 1 - 25.0 / 46, 0);
}

void onnx_blackman_window(struct onnx_call *c)
{
    window(c, 0.42, 0.5, 0.08);
}

/* ---- MelWeightMatrix ---- */

#define MAX_MEL (1 << 24) /* elements of the matrix */

static double to_mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

static double to_hertz(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}

/* The bin of the spectrum that edge i of the bands falls into; edges are apart by equal mels. */
static int64_t band_edge(const double *in, int64_t i)
{
    double low = to_mel(in[3]), step = (to_mel(in[4]) - low) / (in[0] + 2);

    return (int64_t)floor((in[1] + 1) * to_hertz(low + (double)i * step) / in[2]);
}

/* Triangles over the bins: up to 1 in the middle of each band, and down to the end of it. */
static void draw_bands(float *m, const double *in, int64_t bins)
{
    int64_t bands = (int64_t)in[0];

    for (int64_t b = 0; b < bands; b++) {
        int64_t from = band_edge(in, b), peak = band_edge(in, b + 1), to = band_edge(in, b + 2);
        for (int64_t i = from < 0 ? 0 : from; i < to && i < bins; i++)
            m[i * bands + b] = i < peak ? (float)(i - from) / (float)(peak - from)
                                        : (float)(to - i) / (float)(to - peak);
        if (peak >= 0 && peak < bins) /* of however narrow a band */
            m[peak * bands + b] = 1;
    }
}

void onnx_mel_weight_matrix(struct onnx_call *c)
{
    double in[5]; /* bands, length of the transform, sample rate, lower and upper edge */
    int64_t to = onnx_int(c, "output_datatype", 1);
    struct ir_type t = {.dtype = RLX_DTYPE_f32, .rank = 2};
    rlx_dtype dtype;

    for (size_t i = 0; i < 5; i++)
        if (!onnx_number_in(c, i, &in[i]))
            return;
    if (!onnx_dtype(to, &dtype) || !dtype_is(dtype, CLASS_REAL)) {
        onnx_unsupported(c, "elements of type %s", onnx_dtype_name(to));
        return;
    }
    if (!(in[0] >= 1 && in[1] >= 1 && in[0] * (in[1] / 2 + 1) <= MAX_MEL && in[2] >= 1 &&
          in[3] >= 0 && in[4] > in[3] && in[4] < 1e9)) {
        formula_fail(&c->f, RLX_ERROR_FORMAT, "%g bands from %g to %g Hz of a transform of %g",
                     in[0], in[3], in[4], in[1]);
        return;
    }
    t.dim[0] = (int64_t)in[1] / 2 + 1;
    t.dim[1] = (int64_t)in[0];
    size_t count = (size_t)(t.dim[0] * t.dim[1]);
    float *m = arena_array(onnx_arena(c), float, count);
    if (!m) {
        c->f.status = diag_no_memory(c->f.diag, count * sizeof *m);
        return;
    }
    memset(m, 0, count * sizeof *m);
    draw_bands(m, in, t.dim[0]);
    onnx_give(c, 0, formula_cast(&c->f, onnx_table_of(c, &t, m), dtype));
}
