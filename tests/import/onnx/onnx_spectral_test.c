/* onnx_spectral_test.c: Fourier transforms back to reals, of even and odd length, cut and filled.
 */
#include <math.h>

#include "onnx_run.h"

#define PI 3.14159265358979323846
#define MOST 8

static void put_dft(struct bytes *graph, const char *length)
{
    put_op(graph, "DFT", IN("x", length), "y", ATTRS({"inverse", 1, NULL}, {"onesided", 1, NULL}));
}

/* x [2, bins, 2] from the model of one DFT along axis 1, back to n reals; n 0: as long as it tells
 * itself. */
static bool transform(struct test *t, const float *x, int64_t bins, int64_t n, float *out,
                      size_t bytes)
{
    struct bytes g = {.len = 0};
    rlx_tensor y;

    put_tensor(&g, "x", 1, (const int64_t[]){2, bins, 2}, 3, x, (size_t)bins * 16);
    put_tensor(&g, "n", 7, NULL, 0, &n, sizeof n);
    put_dft(&g, n ? "n" : "");
    put_value(&g, 12, "y", 1, NULL);
    struct bytes model = finish(&g, 20);
    return run_model(t, &model, out, bytes, &y) && expect_eq(t, y.rank, 3) &&
           expect_eq(t, y.dim[2], 1);
}

/* The spectrum of reals, by the sum that defines it; what comes back is what it was made of. */
static void goes_back(struct test *t, int n, bool given)
{
    float real[2][MOST], x[4 * (MOST / 2 + 1)], got[2 * MOST];
    int bins = n / 2 + 1;

    for (int row = 0; row < 2; row++)
        for (int k = 0; k < bins; k++) {
            double re = 0, im = 0;
            for (int i = 0; i < n; i++) {
                real[row][i] = (float)((i * 7 + row * 3) % 5) - 1.5f;
                re += (double)real[row][i] * cos(2 * PI * i * k / n);
                im -= (double)real[row][i] * sin(2 * PI * i * k / n);
            }
            x[(row * bins + k) * 2] = (float)re;
            x[(row * bins + k) * 2 + 1] = (float)im;
        }
    if (!transform(t, x, bins, given ? n : 0, got, (size_t)n * 8))
        return;
    for (int i = 0; i < 2 * n; i++)
        expect_near(t, got[i], real[i / n][i % n], 1e-5);
}

TEST(onnx_spectral, spectra_of_reals_go_back)
{
    goes_back(t, 2, false);
    goes_back(t, 6, false);
    goes_back(t, 8, true);
    goes_back(t, 7, true); /* odd: the last bin has its mirror image, too */
    goes_back(t, 1, true);
}

/* Of three bins, a signal of two takes the first two; one of six finds a fourth that is zero. */
TEST(onnx_spectral, spectra_are_cut_and_filled)
{
    static const float x[2][3][2] = {{{4, 0}, {2, 0}, {6, 0}}, {{0, 0}, {0, 0}, {0, 0}}};
    float got[12];

    if (transform(t, &x[0][0][0], 3, 2, got, 16)) {
        expect_near(t, got[0], 3, 1e-6);
        expect_near(t, got[1], 1, 1e-6);
    }
    if (transform(t, &x[0][0][0], 3, 6, got, 48)) {
        expect_near(t, got[0], (4 + 2 * 2 + 2 * 6) / 6.0, 1e-6);
        expect_near(t, got[3], (4 - 2 * 2 + 2 * 6) / 6.0, 1e-6);
    }
}

TEST(onnx_spectral, only_complex_numbers_go_back_to_reals)
{
    struct bytes g = {.len = 0};

    put_value(&g, 11, "x", 1, (const char *const[]){"2", "5", "1", NULL});
    put_dft(&g, "");
    put_value(&g, 12, "y", 1, NULL);
    struct bytes m = finish(&g, 20);
    expect_refused(t, &m, RLX_ERROR_SHAPE, "not complex");
}
