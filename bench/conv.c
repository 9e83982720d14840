/* conv.c: a convolution as a ResNet has many, against oneDNN's. */
#include "support/job.h"
#include "support/peers.h"

int main(int argc, char **argv)
{
    const struct conv_shape s = {.from = 64, .to = 64, .kernel = 3, .size = 56};
    struct options o = options_read(argc, argv);
    struct peers *p = peers_open(o.threads);
    struct job j;

    rlx_graph *g = job_begin(&j, o.threads);
    rlx_value x = rlx_state(g, "x", RLX_DTYPE_f32, RLX_LIST(1, s.from, s.size, s.size));
    rlx_value w =
        rlx_param(g, "w.weight", RLX_DTYPE_f32, RLX_LIST(s.to, s.from, s.kernel, s.kernel));
    rlx_conv_desc d = RLX_CONV_DESC_INIT;
    d.padding = RLX_LIST(1, 1);
    rlx_output(g, rlx_conv(g, x, w, &d));
    job_open(&j, g);
    struct side side[] = {job_side(&j), peer_onednn_conv(p, &s, true),
                          peer_onednn_conv(p, &s, false)};
    measure(side, 3, &o);
    double flops = 2.0 * (double)(s.from * s.to * s.kernel * s.kernel * s.size * s.size);
    const char *name = "conv f32 3x3, 64 to 64 channels, 56x56";
    compare_rates(name, &o, "GFLOP/s", flops, flops, &side[0], &side[1], 0.8);
    compare_rates(name, &o, "GFLOP/s", flops, flops, &side[0], &side[2], 0);
    job_close(&j);
    peers_close(p);
    return 0;
}
