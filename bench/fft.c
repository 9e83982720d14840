/* fft.c: Fourier transforms against FFTW, whose plans are measured ones. */
#include <stdio.h>

#include "support/job.h"
#include "support/peers.h"

/* One transform of n points, as pairs (c64) or with all real parts first (f32). */
static void one(const struct options *o, struct peers *p, int64_t n, bool pairs, double wanted)
{
    enum { RLX, PAIRS, APART, SIDES };
    double flops = 0;
    struct job j;
    char name[64];

    for (int64_t left = n; left > 1; left /= 2)
        flops += 5 * (double)n; /* as is usual, whatever is really done */
    rlx_graph *g = job_begin(&j, o->threads);
    rlx_value x = pairs ? rlx_state(g, "x", RLX_DTYPE_c64, RLX_LIST(n))
                        : rlx_state(g, "x", RLX_DTYPE_f32, RLX_LIST(2 * n));
    rlx_output(g, rlx_fft(g, x, false, RLX_FFT_NORM_backward));
    job_open(&j, g);
    struct side side[SIDES] = {
        [RLX] = job_side(&j), [PAIRS] = peer_fftw(p, n, true), [APART] = peer_fftw(p, n, false)};
    measure(side, SIDES, o);
    snprintf(name, sizeof name, "fft %s, %d points", pairs ? "c64" : "f32", (int)n);
    compare_rates(name, o, "GFLOP/s", flops, flops, &side[RLX], fastest(&side[PAIRS], 2), wanted);
    job_close(&j);
}

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    struct peers *p = peers_open(o.threads);

    one(&o, p, 1 << 20, true, 1 / 1.5);
    one(&o, p, 1 << 20, false, 1 / 1.5);
    one(&o, p, 1 << 12, true, 0);
    one(&o, p, 480000, true, 0);
    one(&o, p, 100003, true, 0); /* a prime */
    peers_close(p);
    return 0;
}
