/* log_mel.c: the log-mel picture of a tone that rises from 200 Hz to 3 kHz. */
#define RLX_UNSTABLE
#include <math.h>

#include "example.h"
#include "rlx/spectral.h"

enum { RATE = 8000, FRAME = 256, HOP = 160, FRAMES = 48, BANDS = 16, BINS = FRAME / 2 + 1 };

static double mel(double hz)
{
    return 2595 * log10(1 + hz / 700);
}

/* Triangles that overlap by half, evenly spaced in mel. */
static void fill_filters(float filt[BANDS][BINS])
{
    double step = mel(RATE / 2.0) / (BANDS + 1);

    for (int b = 0; b < BANDS; b++)
        for (int k = 0; k < BINS; k++) {
            double off = fabs(mel((double)k * RATE / FRAME) / step - (b + 1));
            filt[b][k] = off < 1 ? (float)(1 - off) : 0;
        }
}

/* The tone, cut into frames with a Hann window each. */
static void fill_frames(float x[FRAMES][FRAME])
{
    const double turn = 6.28318530717958647692, seconds = (double)FRAMES * HOP / RATE;

    for (int f = 0; f < FRAMES; f++)
        for (int i = 0; i < FRAME; i++) {
            double t = (double)(f * HOP + i) / RATE, cycles = t * (200 + 1400 * t / seconds);
            x[f][i] = (float)(sin(turn * cycles) * (0.5 - 0.5 * cos(turn * i / FRAME)));
        }
}

/* Loudest is dark; high bands are at the top. Answers whether the loudest band ever fell. */
static int draw(float y[FRAMES][BANDS])
{
    static const char shade[] = " .:-=+*#%@";
    int last = 0, falls = 0;

    for (int b = BANDS - 1; b >= 0; b--) {
        for (int f = 0; f < FRAMES; f++) {
            double dark = 5 * ((double)y[f][b] - 0.7); /* a frame's values span 2 at most */
            putchar(shade[dark < 0 ? 0 : dark > 9 ? 9 : (int)dark]);
        }
        putchar('\n');
    }
    for (int f = 0; f < FRAMES; f++) {
        int top = 0;
        for (int b = 1; b < BANDS; b++)
            top = y[f][b] > y[f][top] ? b : top;
        falls += top < last;
        last = top;
    }
    return falls > 0 || last < BANDS / 2;
}

int main(void)
{
    static float x[FRAMES][FRAME], filt[BANDS][BINS], y[FRAMES][BANDS];
    struct world world = open_world(NULL);
    rlx_graph *g;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;

    fill_frames(x);
    fill_filters(filt);
    check(rlx_graph_create(world.ctx, &g, &err), &err);
    rlx_value in = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(FRAMES, FRAME));
    rlx_spectrum s = rlx_fft_real(g, in, RLX_FFT_NORM_backward);
    rlx_value spec = rlx_concat(g, (const rlx_value[]){s.re, s.im}, 2, -1);
    rlx_value f = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(BANDS, BINS), filt, sizeof filt);
    rlx_output(g, rlx_log_mel(g, spec, f));
    check(rlx_model_create(g, &model, &err), &err);
    check(rlx_session_create(model, world.dev, NULL, &session, &err), &err);

    rlx_binding input = {"x", {RLX_DTYPE_f32, 2, {FRAMES, FRAME}, x, sizeof x}};
    rlx_binding output = {"out0", {RLX_DTYPE_f32, 2, {0}, y, sizeof y}};
    check(rlx_session_run(session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &input, 1, &output, 1, NULL, 0},
                          &err),
          &err);
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(world);
    return draw(y);
}
