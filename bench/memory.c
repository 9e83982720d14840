/* memory.c: ops that read a tensor of 64 MB and write one, against the bandwidth of a copy. */
#include "support/ceilings.h"
#include "support/job.h"

enum { ROWS = 8192, COLUMNS = 2048 }; /* of f32: 64 MB */
#define BYTES (2.0 * ROWS * COLUMNS * sizeof(float))

static rlx_value vector(rlx_graph *g, const char *name)
{
    return rlx_param(g, name, RLX_DTYPE_f32, RLX_LIST(COLUMNS));
}

/* One pass over memory if its four steps are fused, four if not. */
static rlx_value chain(rlx_graph *g, rlx_value x)
{
    rlx_value y = rlx_add(g, rlx_mul(g, x, vector(g, "scale.gamma")), vector(g, "shift.beta"));

    return rlx_relu(g, rlx_mul(g, y, rlx_scalar(g, y, 0.5)));
}

static rlx_value softmax(rlx_graph *g, rlx_value x)
{
    return rlx_softmax(g, x, -1);
}

static rlx_value layer_norm(rlx_graph *g, rlx_value x)
{
    return rlx_layer_norm(g, x, vector(g, "norm.gamma"), vector(g, "norm.beta"), -1, 1e-5f);
}

static rlx_value rms_norm(rlx_graph *g, rlx_value x)
{
    return rlx_rms_norm(g, x, vector(g, "norm.gamma"), RLX_NO_VALUE, -1, 1e-5f);
}

static const struct {
    const char *name;
    rlx_value (*build)(rlx_graph *g, rlx_value x);
} cases[] = {{"elementwise chain, 64 MB", chain},
             {"softmax, 64 MB", softmax},
             {"layer norm, 64 MB", layer_norm},
             {"rms norm, 64 MB", rms_norm}};
enum { CASES = sizeof cases / sizeof *cases };

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    struct ceiling copy[3];
    struct job jobs[CASES];
    struct side side[CASES + 3];

    for (int i = 0; i < CASES; i++) {
        rlx_graph *g = job_begin(&jobs[i], o.threads);
        rlx_value x = rlx_state(g, "x", RLX_DTYPE_f32, RLX_LIST(ROWS, COLUMNS));
        rlx_output(g, cases[i].build(g, x));
        job_open(&jobs[i], g);
        side[i] = job_side(&jobs[i]);
    }
    ceiling_open(&copy[0], CEILING_COPY, o.threads);
    ceiling_open(&copy[1], CEILING_COPY_HUGE, o.threads);
    side[CASES] = ceiling_side(&copy[0]);
    side[CASES].name = "memcpy";
    side[CASES + 1] = ceiling_side(&copy[1]);
    side[CASES + 1].name = "memcpy, huge pages";
    ceiling_open(&copy[2], CEILING_COPY_STREAM, o.threads);
    side[CASES + 2] = ceiling_side(&copy[2]);
    side[CASES + 2].name = "copy past the caches";
    measure(side, CASES + 3, &o);
    /* The limit is for as many threads as the memory has use for. */
    double wanted = o.threads > 1 ? 0.8 : 0;
    for (int i = 0; i < CASES; i++) {
        compare_rates(cases[i].name, &o, "GB/s", BYTES, copy[0].work, &side[i],
                      fastest(&side[CASES], 2), wanted);
        compare_rates(cases[i].name, &o, "GB/s", BYTES, copy[2].work, &side[i], &side[CASES + 2],
                      0);
        job_close(&jobs[i]);
    }
    for (int i = 0; i < 3; i++)
        ceiling_close(&copy[i]);
    return 0;
}
