/* spectral_test.c: the worked vectors of ops-special.md 11.3 for transforms and what is made of
 * them, and the gradient of log_mel against differences. */
#include "session/required.h"

#include <math.h>

TEST(spectral_ops, worked_vectors)
{
    static const struct {
        const char *graph, *in, *want;
    } row[] = {
        {"graph (input %x: f32[8]) { %y = fft %x return %y }", "1 2 3 4 0 0 0 0",
         "10 -2 -2 -2 0 2 0 -2"},
        {"graph (input %x: f32[6]) { %y = fft %x return %y }", "1 2 3 0 0 0",
         "6 -1.5 -1.5 0 0.8660254 -0.8660254"},
        {"graph (input %x: f32[1,8]) { %y = welch_peaks %x k=2 n_segments=1 return %y }",
         "2 1 0 1 0 1 0 -1", "0 4 1 4"},
        {"graph (input %x: f32[8], input %f: f32[2,3]) { %y = log_mel %x, %f return %y }",
         "2 1 0 1 0 1 0 -1 | 1 0.5 0 0 0 1", "1.1747425 -0.8252575"},
        {"graph (input %x: f32[8], input %f: f32[2,3], input %d: f32[2])"
         " { %y = log_mel_backward %x, %f, %d return %y }",
         "2 1 0 1 0 1 0 -1 | 1 0.5 0 0 0 1 | 1 1", "0.0868589 0.0217147 0 0 0 0.0217147 0 0"},
        /* NaN ranks below all others */
        {"graph (input %x: f32[1,8]) { %y = welch_peaks %x k=2 n_segments=1 return %y }",
         "nan 1 0 1 0 1 0 -1", "1 4 2 0"},
        /* segments are averaged */
        {"graph (input %x: f32[2,4]) { %y = welch_peaks %x k=2 n_segments=2 return %y }",
         "2 1 0 0 4 1 0 0", "0 10 1 1"},
    };
    struct place p;

    if (!place_open(t, &p, "cpu", NULL))
        return place_close(&p);
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        test_note(t, "%s", row[i].graph);
        expect_numbers(t, &p, row[i].graph, row[i].in, row[i].want);
    }
    place_close(&p);
}

enum { POINTS = 16, BINS = POINTS / 2 + 1, BANDS = 4 };

static bool run(struct place *p, float *x, float *filt, float *dy, float *out, size_t count)
{
    rlx_binding in[] = {
        {"x", {RLX_DTYPE_f32, 1, {2 * POINTS}, x, 2 * POINTS * sizeof *x}},
        {"f", {RLX_DTYPE_f32, 2, {BANDS, BINS}, filt, BANDS * BINS * sizeof *filt}},
        {"d", {RLX_DTYPE_f32, 1, {BANDS}, dy, BANDS * sizeof *dy}},
    };
    rlx_binding o = {"out0", {.dtype = RLX_DTYPE_f32, .data = out, .bytes = count * sizeof *out}};

    return rlx_session_run(p->session,
                           &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, dy ? 3 : 2, &o, 1, NULL, 0},
                           &p->err) == RLX_OK;
}

/* The change of sum(dy log_mel(x)) with x[i], and what the gradient op says. No band is floored. */
TEST(spectral_ops, log_mel_backward_agrees_with_differences)
{
    float x[2 * POINTS], filt[BANDS * BINS], dy[BANDS] = {1, -0.5f, 2, 0.75f};
    float grad[2 * POINTS], y[2][BANDS];
    double change[2 * POINTS];
    struct place p;

    for (int i = 0; i < 2 * POINTS; i++)
        x[i] = (float)((i * 7 + 3) % 11) * 0.25f - 1.1f;
    for (int i = 0; i < BANDS * BINS; i++)
        filt[i] = (float)((i * 5 + 1) % 7) * 0.125f;
    if (!place_open(t, &p, "cpu", NULL))
        return place_close(&p);
    require_ok(t, place_build(&p,
                              "graph (input %x: f32[32], input %f: f32[4,9]) {"
                              " %y = log_mel %x, %f return %y }",
                              NULL));
    for (int i = 0; i < 2 * POINTS; i++) {
        const float step = 0x1p-6f;
        float was = x[i];
        change[i] = 0;
        x[i] = was + step;
        expect(t, run(&p, x, filt, NULL, y[0], BANDS));
        x[i] = was - step;
        expect(t, run(&p, x, filt, NULL, y[1], BANDS));
        x[i] = was;
        for (int b = 0; b < BANDS; b++)
            change[i] += (double)(dy[b] * (y[0][b] - y[1][b])) / (2 * (double)step);
    }
    require_ok(t, place_build(&p,
                              "graph (input %x: f32[32], input %f: f32[4,9], input %d: f32[4])"
                              " { %y = log_mel_backward %x, %f, %d return %y }",
                              NULL));
    expect(t, run(&p, x, filt, dy, grad, 2 * POINTS));
    for (int i = 0; i < 2 * POINTS; i++)
        expect_near(t, grad[i], change[i], 1e-3 * fmax(fabs(change[i]), 0.05));
    for (int i = BINS; i < POINTS; i++)
        expect(t, grad[i] == 0 && grad[POINTS + i] == 0);
    place_close(&p);
}
