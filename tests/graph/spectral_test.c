/* spectral_test.c: the helpers of rlx/spectral.h against sums in double precision, their round
 * trips, and what they refuse (ops-special.md 5.2). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/graph.h"
#include "rlx/spectral.h"
#include "rlx/tools.h"
#include "test.h"

#define TURN 6.28318530717958647692

/* A graph with inputs a and b, run on the CPU. */
struct bench {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_graph *g;
    rlx_error err;
};

enum { MOST = 4096, INPUTS = 2, OUTPUTS = 2 };

static bool open(struct test *t, struct bench *b)
{
    *b = (struct bench){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &b->ctx, &b->err)) &&
           expect_ok(t, rlx_device_open(b->ctx, "cpu", &b->dev, &b->err)) &&
           expect_ok(t, rlx_graph_create(b->ctx, &b->g, &b->err));
}

static void close(struct bench *b)
{
    rlx_graph_destroy(b->g);
    rlx_device_close(b->dev);
    rlx_context_destroy(b->ctx);
}

static void restart(struct test *t, struct bench *b)
{
    rlx_graph_destroy(b->g);
    b->g = NULL;
    expect_ok(t, rlx_graph_create(b->ctx, &b->g, &b->err));
}

static size_t count_of(const rlx_tensor *x)
{
    size_t n = 1;

    for (int32_t i = 0; i < x->rank; i++)
        n *= (size_t)x->dim[i];
    return n;
}

/* Values of a made-up signal, the same in f32 and in double. */
static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
}

/* Runs the graph on its inputs "a" and "b", made from shapes; the outputs' shapes and numbers. */
struct result {
    float in[INPUTS][MOST];
    float out[OUTPUTS][MOST];
    rlx_tensor shape[OUTPUTS];
    bool ok;
};

static void bind_inputs(const rlx_model *m, struct result *r, rlx_binding *in, size_t count)
{
    static const char *const name[INPUTS] = {"a", "b"};

    for (size_t i = 0; i < count; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL);
        in[i] =
            (rlx_binding){name[i], {.dtype = RLX_DTYPE_f32, .rank = info.rank, .data = r->in[i]}};
        memcpy(in[i].tensor.dim, info.dim, sizeof in[i].tensor.dim);
        size_t n = count_of(&in[i].tensor);
        in[i].tensor.bytes = n * sizeof(float);
        fill(r->in[i], n, (uint32_t)(i + 1));
    }
}

static struct result *run(struct test *t, struct bench *b)
{
    static struct result r;
    rlx_binding in[INPUTS], out[OUTPUTS] = {{0}};
    rlx_model *m = NULL;
    rlx_session *s = NULL;
    static const char *const name[OUTPUTS] = {"out0", "out1"};

    memset(&r, 0, sizeof r);
    if (rlx_model_create(b->g, &m, &b->err) == RLX_OK)
        b->g = NULL; /* it is the model's now */
    if (expect(t, m != NULL) &&
        expect_ok(t, rlx_session_create(m, b->dev,
                                        &(rlx_session_desc){RLX_SIZED(rlx_session_desc),
                                                            .debug = DEBUG(.check_plan = true)},
                                        &s, &b->err))) {
        size_t inputs = rlx_model_io_count(m, RLX_IO_INPUT);
        size_t outputs = rlx_model_io_count(m, RLX_IO_OUTPUT);
        bind_inputs(m, &r, in, inputs);
        for (size_t i = 0; i < outputs; i++)
            out[i] = (rlx_binding){
                name[i], {.dtype = RLX_DTYPE_f32, .data = r.out[i], .bytes = sizeof r.out[i]}};
        r.ok = expect_ok(t, rlx_session_run(s,
                                            &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs,
                                                            out, outputs, NULL, 0},
                                            &b->err));
        for (size_t i = 0; i < outputs; i++)
            r.shape[i] = out[i].tensor;
    }
    if (b->err.status != RLX_OK)
        fail(t, "%s", b->err.message);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    return &r;
}

static void expect_shape(struct test *t, const rlx_tensor *x, rlx_list want)
{
    if (!expect_eq(t, x->rank, want.count))
        return;
    for (int32_t i = 0; i < want.count; i++)
        expect_eq(t, x->dim[i], want.at[i]);
}

static rlx_value input(struct bench *b, const char *name, rlx_list shape)
{
    return rlx_input(b->g, name, RLX_DTYPE_f32, shape);
}

static void output(struct bench *b, rlx_spectrum s)
{
    rlx_output(b->g, s.re);
    rlx_output(b->g, s.im);
}

/* Bin k of a transform of n points, x being followed by zeros. */
static void bin(const float *x, int64_t have, int64_t n, int64_t k, double scale, double *re,
                double *im)
{
    *re = *im = 0;
    for (int64_t j = 0; j < have && j < n; j++) {
        double a = TURN * (double)(j * k % n) / (double)n;
        *re += scale * (double)x[j] * cos(a);
        *im -= scale * (double)x[j] * sin(a);
    }
}

/* Rows of r->in[0], `have` long, against r->out, `bins` of n points. */
static void expect_bins(struct test *t, const struct result *r, int64_t rows, int64_t have,
                        int64_t n, int64_t bins, double scale)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < bins; k++) {
            double re, im;
            bin(r->in[0] + i * have, have, n, k, scale, &re, &im);
            expect_near(t, r->out[0][i * bins + k], re, 1e-4);
            expect_near(t, r->out[1][i * bins + k], im, 1e-4);
        }
}

TEST(spectral, powers_of_two)
{
    static const int64_t n[] = {1, 2, 3, 8, 9, 100, 511};
    struct bench b;

    expect_eq(t, rlx_next_pow2(-3), 1);
    expect_eq(t, rlx_next_pow2(0), 1);
    expect_eq(t, rlx_next_pow2(5), 8);
    expect_eq(t, rlx_next_pow2((int64_t)1 << 62), (int64_t)1 << 62);
    expect_eq(t, rlx_next_pow2(INT64_MAX), 0);
    if (!open(t, &b))
        return close(&b);
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        int64_t p = rlx_next_pow2(n[i]);
        restart(t, &b);
        output(&b, rlx_fft_real(b.g, input(&b, "a", RLX_LIST(2, n[i])), RLX_FFT_NORM_backward));
        struct result *r = run(t, &b);
        expect_shape(t, &r->shape[0], RLX_LIST(2, p));
        expect_bins(t, r, 2, n[i], p, p, 1);
        restart(t, &b);
        output(&b, rlx_rfft_pow2(b.g, input(&b, "a", RLX_LIST(2, n[i])), RLX_FFT_NORM_ortho));
        r = run(t, &b);
        expect_shape(t, &r->shape[1], RLX_LIST(2, p / 2 + 1));
        expect_bins(t, r, 2, n[i], p, p / 2 + 1, 1 / sqrt((double)p));
    }
    close(&b);
}

TEST(spectral, exact_lengths)
{
    static const int64_t have[] = {1, 2, 5, 12, 17, 40, 40, 360},
                         want[] = {1, 2, 5, 12, 31, 12, 0, 0};
    struct bench b;

    if (!open(t, &b))
        return close(&b);
    for (size_t i = 0; i < sizeof have / sizeof have[0]; i++) {
        int64_t n = want[i] ? want[i] : have[i];
        restart(t, &b);
        output(&b, rlx_rfft(b.g, input(&b, "a", RLX_LIST(3, have[i])),
                            want[i] ? want[i] : RLX_ABSENT, RLX_FFT_NORM_forward));
        struct result *r = run(t, &b);
        expect_shape(t, &r->shape[0], RLX_LIST(3, n / 2 + 1));
        expect_bins(t, r, 3, have[i], n, n / 2 + 1, 1);
    }
    close(&b);
}

/* irfft(rfft(x)) is x, exactly as long as it was. */
TEST(spectral, there_and_back)
{
    static const rlx_fft_norm norm[] = {RLX_FFT_NORM_forward, RLX_FFT_NORM_ortho};
    struct bench b;

    if (!open(t, &b))
        return close(&b);
    for (int64_t n = 1; n <= 40; n++)
        for (int k = 0; k < 4; k++) {
            restart(t, &b);
            rlx_value x = input(&b, "a", RLX_LIST(2, n));
            rlx_output(
                b.g, k < 2
                         ? rlx_irfft(b.g, rlx_rfft(b.g, x, RLX_ABSENT, norm[k]), n, norm[k])
                         : rlx_irfft_pow2(b.g, rlx_rfft_pow2(b.g, x, norm[k - 2]), n, norm[k - 2]));
            struct result *r = run(t, &b);
            expect_shape(t, &r->shape[0], RLX_LIST(2, n));
            expect_close(t, r->out[0], r->in[0], (size_t)(2 * n), 1e-5, 1e-6);
        }
    restart(t, &b);
    rlx_spectrum s = rlx_fft_real(b.g, input(&b, "a", RLX_LIST(2, 64)), RLX_FFT_NORM_forward);
    rlx_output(b.g, rlx_ifft_spectrum(b.g, s, RLX_FFT_NORM_forward));
    struct result *r = run(t, &b);
    expect_close(t, r->out[0], r->in[0], 128, 1e-5, 1e-6);
    close(&b);
}

TEST(spectral, any_axes)
{
    struct bench b;

    if (!open(t, &b))
        return close(&b);
    /* [re, im] blocks on the middle axis: two points, 3 in front and 2 after */
    rlx_value x = input(&b, "a", RLX_LIST(3, 4, 2));
    rlx_output(b.g, rlx_fft_axis(b.g, x, 1, false));
    struct result *r = run(t, &b);
    expect_shape(t, &r->shape[0], RLX_LIST(3, 4, 2));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            const float *in = r->in[0] + i * 8 + k, *out = r->out[0] + i * 8 + k;
            expect_near(t, out[0], in[0] + in[2], 1e-6);
            expect_near(t, out[2], in[0] - in[2], 1e-6);
            expect_near(t, out[4], in[4] + in[6], 1e-6);
            expect_near(t, out[6], in[4] - in[6], 1e-6);
        }
    /* two axes of c64 there and back, named in any order and twice: 12 times what it was */
    restart(t, &b);
    x = rlx_cast(b.g, input(&b, "a", RLX_LIST(3, 4)), RLX_DTYPE_c64);
    rlx_value y = rlx_fftn(b.g, x, RLX_LIST(1, 0, -1));
    rlx_output(b.g, rlx_complex_norm_sq(b.g, y));
    rlx_output(b.g, rlx_complex_norm_sq(b.g, rlx_ifftn(b.g, y, RLX_LIST(0, 1))));
    r = run(t, &b);
    for (int k = 0; k < 12; k++) {
        double re = 0, im = 0, x2 = 144 * (double)r->in[0][k] * (double)r->in[0][k];
        for (int j = 0; j < 12; j++) {
            double a = TURN * ((double)(k / 4 * (j / 4)) / 3 + (double)(k % 4 * (j % 4)) / 4);
            re += (double)r->in[0][j] * cos(a);
            im -= (double)r->in[0][j] * sin(a);
        }
        expect_near(t, r->out[0][k], re * re + im * im, 1e-4);
        expect_near(t, r->out[1][k], x2, 1e-3);
    }
    restart(t, &b);
    x = input(&b, "a", RLX_LIST(3, 4));
    expect_eq(t, rlx_fftn(b.g, x, RLX_EMPTY), x);
    close(&b);
}

TEST(spectral, short_time_spectra)
{
    static const int64_t row[][3] = {{40, 8, 8}, {41, 8, 3}, {40, 10, 4}, {40, 7, 12},
                                     {9, 9, 5},  {20, 4, 1}, {6, 1, 1},   {5, 3, 1000}};
    struct bench b;

    if (!open(t, &b))
        return close(&b);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        int64_t len = row[i][0], frame = row[i][1], hop = row[i][2];
        int64_t frames = 1 + (len - frame) / hop, half = frame / 2 + 1;
        test_note(t, "%d samples, frames of %d every %d", (int)len, (int)frame, (int)hop);
        restart(t, &b);
        rlx_output(b.g, rlx_stft(b.g, input(&b, "a", RLX_LIST(2, len)), frame, hop,
                                 RLX_FFT_NORM_backward));
        struct result *r = run(t, &b);
        expect_shape(t, &r->shape[0], RLX_LIST(frames, 2, 2 * half));
        for (int64_t f = 0; f < frames * 2; f++)
            for (int64_t k = 0; k < half; k++) {
                double re, im;
                bin(r->in[0] + f % 2 * len + f / 2 * hop, frame, frame, k, 1, &re, &im);
                expect_near(t, r->out[0][f * 2 * half + k], re, 1e-5);
                expect_near(t, r->out[0][f * 2 * half + half + k], im, 1e-5);
            }
    }
    close(&b);
}

TEST(spectral, power)
{
    struct bench b;
    struct result *r;

    if (!open(t, &b))
        return close(&b);
    rlx_spectrum s = {input(&b, "a", RLX_LIST(2, 5)), input(&b, "b", RLX_LIST(2, 5))};
    rlx_output(b.g, rlx_psd(b.g, s));
    r = run(t, &b);
    for (int i = 0; i < 10; i++)
        expect_near(t, r->out[0][i], (r->in[0][i] * r->in[0][i] + r->in[1][i] * r->in[1][i]) / 5,
                    1e-6);
    restart(t, &b);
    rlx_output(b.g, rlx_psd_real(b.g, input(&b, "a", RLX_LIST(2, 12)), RLX_FFT_NORM_ortho));
    r = run(t, &b);
    expect_shape(t, &r->shape[0], RLX_LIST(2, 7));
    for (int64_t i = 0; i < 14; i++) {
        double re, im;
        bin(r->in[0] + i / 7 * 12, 12, 12, i % 7, 1 / sqrt(12.0), &re, &im);
        expect_near(t, r->out[0][i], (re * re + im * im) / 7, 1e-6);
    }
    close(&b);
}

TEST(spectral, convolution)
{
    struct bench b;

    if (!open(t, &b))
        return close(&b);
    for (int64_t n_fft = 0; n_fft <= 64; n_fft += 64) {
        restart(t, &b);
        rlx_value x = input(&b, "a", RLX_LIST(3, 10)), y = input(&b, "b", RLX_LIST(4));
        rlx_output(b.g, rlx_fft_conv1d(b.g, x, y, n_fft, RLX_FFT_NORM_forward));
        struct result *r = run(t, &b);
        expect_shape(t, &r->shape[0], RLX_LIST(3, 13));
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 13; k++) {
                double sum = 0;
                for (int j = 0; j < 4; j++)
                    if (k - j >= 0 && k - j < 10)
                        sum += (double)r->in[0][i * 10 + k - j] * (double)r->in[1][j];
                expect_near(t, r->out[0][i * 13 + k], sum, 1e-5);
            }
    }
    close(&b);
}

TEST(spectral, frequencies)
{
    static const float five[] = {0, 0.2f, 0.4f, -0.4f, -0.2f}, four[] = {0, 0.25f, -0.5f, -0.25f};
    static const float half[] = {0, 0.25f, 0.5f};
    struct bench b;
    struct result *r;

    if (!open(t, &b))
        return close(&b);
    rlx_output(b.g, rlx_fftfreq(b.g, 5));
    rlx_output(b.g, rlx_fftfreq(b.g, 4));
    r = run(t, &b);
    expect_close(t, r->out[0], five, 5, 0, 1e-7);
    expect_close(t, r->out[1], four, 4, 0, 0);
    restart(t, &b);
    rlx_output(b.g, rlx_rfftfreq(b.g, 4));
    rlx_output(b.g, rlx_rfftfreq(b.g, 1));
    r = run(t, &b);
    expect_shape(t, &r->shape[0], RLX_LIST(3));
    expect_shape(t, &r->shape[1], RLX_LIST(1));
    expect_close(t, r->out[0], half, 3, 0, 0);
    close(&b);
}

/* ops-special.md 11.5, 5: what a transform must keep. */
TEST(spectral, linear_and_of_the_same_energy)
{
    static const int64_t n[] = {1, 2, 3, 4, 5, 7, 16, 17, 31, 97, 128, 1000, 1024};
    struct bench b;

    if (!open(t, &b))
        return close(&b);
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        const rlx_fft_norm ortho = RLX_FFT_NORM_ortho;
        restart(t, &b);
        rlx_value x = input(&b, "a", RLX_LIST(2 * n[i])), y = input(&b, "b", RLX_LIST(2 * n[i]));
        rlx_value fx = rlx_fft(b.g, x, false, ortho), fy = rlx_fft(b.g, y, false, ortho);
        rlx_value two = rlx_scalar(b.g, x, 2);
        rlx_value sum = rlx_fft(b.g, rlx_add(b.g, rlx_mul(b.g, x, two), y), false, ortho);
        rlx_output(b.g, rlx_sub(b.g, sum, rlx_add(b.g, rlx_mul(b.g, fx, two), fy)));
        rlx_output(b.g, fx);
        struct result *r = run(t, &b);
        double before = 0, after = 0, most = 0;
        for (int64_t k = 0; k < 2 * n[i]; k++) {
            before += (double)r->in[0][k] * (double)r->in[0][k];
            after += (double)r->out[1][k] * (double)r->out[1][k];
            most = fmax(most, fabs((double)r->out[0][k]));
        }
        expect_near(t, after / before, 1, 2e-6);
        expect_near(t, most, 0, 1e-5);
    }
    close(&b);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void expect_refusal(struct test *t, struct bench *b, rlx_value v, rlx_status status,
                           const char *part)
{
    rlx_error err = {0};

    expect_eq(t, v, RLX_NO_VALUE);
    expect_status(t, rlx_graph_check(b->g, &err), status);
    expect_error(t, status, part, &err);
    restart(t, b);
}

TEST(spectral, refusals_name_the_numbers)
{
    const rlx_fft_norm n = RLX_FFT_NORM_forward;
    struct bench b;

    if (!open(t, &b))
        return close(&b);
#define X(...) input(&b, "a", RLX_LIST(__VA_ARGS__))
#define Y(...) input(&b, "b", RLX_LIST(__VA_ARGS__))
#define S(x, y) ((rlx_spectrum){x, y})
    expect_refusal(t, &b, rlx_stft(b.g, X(9), 0, 1, n), RLX_ERROR_ATTRIBUTE,
                   "stft: frame_len must be at least 1, not 0");
    expect_refusal(t, &b, rlx_stft(b.g, X(9), 4, 0, n), RLX_ERROR_ATTRIBUTE,
                   "stft: hop must be at least 1, not 0");
    expect_refusal(t, &b, rlx_stft(b.g, X(9), 10, 1, n), RLX_ERROR_SHAPE,
                   "stft: 9 samples are less than a frame of 10");
    expect_refusal(t, &b, rlx_psd(b.g, S(X(2, 5), Y(2, 6))), RLX_ERROR_SHAPE,
                   "psd: axis 1 of re has size 5 and that of im 6");
    expect_refusal(t, &b, rlx_ifft_spectrum(b.g, S(X(5), Y(2, 5)), n), RLX_ERROR_SHAPE,
                   "re has rank 1 and im has rank 2");
    expect_refusal(t, &b, rlx_irfft(b.g, S(X(5), Y(5)), 10, n), RLX_ERROR_SHAPE,
                   "irfft: 10 points need 6 bins, not 5");
    expect_refusal(t, &b, rlx_irfft_pow2(b.g, S(X(5), Y(5)), 10, n), RLX_ERROR_SHAPE,
                   "irfft_pow2: 16 points need 9 bins, not 5");
    expect_refusal(t, &b, rlx_irfft(b.g, S(X(1), Y(1)), 0, n), RLX_ERROR_ATTRIBUTE,
                   "irfft: n must be at least 1, not 0");
    expect_refusal(t, &b, rlx_rfft(b.g, X(4), 0, n).re, RLX_ERROR_ATTRIBUTE,
                   "rfft: n must be at least 1, not 0");
    expect_refusal(t, &b, rlx_rfft(b.g, X(4, 0), RLX_ABSENT, n).re, RLX_ERROR_ATTRIBUTE,
                   "rfft: n must be at least 1, not 0");
    expect_refusal(t, &b, rlx_rfft(b.g, X(4), INT64_MAX, n).re, RLX_ERROR_LIMIT, "too many");
    expect_refusal(t, &b, rlx_fft_real(b.g, rlx_cast(b.g, X(4), RLX_DTYPE_c64), n).im,
                   RLX_ERROR_DTYPE, "fft_real: the signal must be f32 or f64, not c64");
    expect_refusal(t, &b, rlx_fft_real(b.g, rlx_scalar(b.g, X(4), 1), n).re, RLX_ERROR_SHAPE,
                   "rank 0");
    expect_refusal(t, &b, rlx_fftn(b.g, X(4, 4), RLX_LIST(0, 2)), RLX_ERROR_ATTRIBUTE,
                   "fftn: axis 2 is outside of rank 2");
    expect_refusal(t, &b, rlx_ifftn(b.g, X(4, 4), RLX_LIST(0, 1)), RLX_ERROR_DTYPE,
                   "ifftn: 2 axes need c64, not f32");
    expect_refusal(t, &b, rlx_fft_axis(b.g, X(3, 4), 0, false), RLX_ERROR_SHAPE, "3");
    expect_refusal(t, &b, rlx_fft_axis(b.g, X(3, 4), -3, false), RLX_ERROR_ATTRIBUTE, "axis -3");
    expect_refusal(t, &b, rlx_fftfreq(b.g, 0), RLX_ERROR_ATTRIBUTE, "fftfreq: n must be");
    expect_refusal(t, &b, rlx_rfftfreq(b.g, -1), RLX_ERROR_ATTRIBUTE, "not -1");
    expect_refusal(t, &b, rlx_psd(b.g, S(X(5), RLX_NO_VALUE)), RLX_ERROR_GRAPH, "psd");
    /* a failure earlier in the chain stays the one that is reported */
    rlx_spectrum s = rlx_rfft(b.g, X(4), 0, n);
    expect_refusal(t, &b, rlx_fft_conv1d(b.g, rlx_psd(b.g, s), s.re, 0, n), RLX_ERROR_ATTRIBUTE,
                   "rfft: n must be at least 1, not 0");
    close(&b);
}

/* A batch whose size runs tell, and a signal's. */
TEST(spectral, symbolic_sizes)
{
    struct bench b;
    rlx_list shape;

    if (!open(t, &b))
        return close(&b);
    rlx_dim n = rlx_dim_symbol(b.g, "n");
    rlx_value x = input(&b, "a", RLX_LIST(n, 6));
    rlx_value y =
        rlx_irfft(b.g, rlx_rfft(b.g, x, 7, RLX_FFT_NORM_forward), 7, RLX_FFT_NORM_forward);
    expect_ok(t, rlx_value_type(b.g, y, NULL, &shape, &b.err));
    expect_eq(t, shape.at[0], n);
    expect_eq(t, shape.at[1], 7);
    rlx_value z = input(&b, "b", RLX_LIST(2, n));
    rlx_spectrum s = rlx_rfft(b.g, z, RLX_ABSENT, RLX_FFT_NORM_forward);
    expect_ok(t, rlx_graph_check(b.g, &b.err));
    expect_ok(t, rlx_value_type(b.g, s.im, NULL, &shape, &b.err));
    expect_eq(t, shape.at[1], rlx_dim_add(b.g, rlx_dim_div(b.g, n, 2), 1));
    expect_refusal(t, &b, rlx_stft(b.g, z, 4, 2, RLX_FFT_NORM_forward), RLX_ERROR_SHAPE,
                   "stft: the size of the last axis must be known");
    close(&b);
}

/* What transforms keep from run to run lies among the constants, and counts as such. */
TEST(spectral, tables_count_as_constants)
{
    rlx_memory_estimate e = {0};
    rlx_model *m = NULL;
    struct bench b;

    if (!open(t, &b))
        return close(&b);
    rlx_value x = input(&b, "a", RLX_LIST(2048));
    rlx_output(b.g, rlx_fft(b.g, x, false, RLX_FFT_NORM_backward));
    if (expect_ok(t, rlx_model_create(b.g, &m, &b.err))) {
        b.g = NULL;
        expect_ok(t, rlx_model_memory(m, b.dev, NULL, 0, 0, &e, &b.err));
        expect(t, e.constants > 1024 && e.constants < 1 << 20);
        expect_eq_u64(t, e.total, e.constants + e.activations);
    }
    rlx_model_destroy(m);
    close(&b);
}
