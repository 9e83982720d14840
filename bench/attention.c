/* attention.c: attention of 8 heads over 1024 positions of 64 channels, against what rlx itself
 * reaches in a plain matrix product. */
#include "support/job.h"

enum { HEADS = 8, POSITIONS = 1024, CHANNELS = 64, SIZE = 1024 };

static void open_attention(struct job *j, int threads)
{
    rlx_graph *g = job_begin(j, threads);
    rlx_list shape = RLX_LIST(1, HEADS, POSITIONS, CHANNELS);
    rlx_value q = rlx_state(g, "q", RLX_DTYPE_f32, shape);
    rlx_value k = rlx_state(g, "k", RLX_DTYPE_f32, shape);
    rlx_value v = rlx_state(g, "v", RLX_DTYPE_f32, shape);

    rlx_attention_desc d = RLX_ATTENTION_DESC_INIT;
    d.num_heads = HEADS;
    d.head_dim = CHANNELS;
    d.layout = RLX_ATTENTION_LAYOUT_bhsd;
    rlx_output(g, rlx_attention(g, q, k, v, RLX_NO_VALUE, &d));
    job_open(j, g);
}

static void open_matmul(struct job *j, int threads)
{
    rlx_graph *g = job_begin(j, threads);
    rlx_value a = rlx_state(g, "a", RLX_DTYPE_f32, RLX_LIST(SIZE, SIZE));
    rlx_value b = rlx_param(g, "b", RLX_DTYPE_f32, RLX_LIST(SIZE, SIZE));

    rlx_output(g, rlx_matmul(g, a, b, false, false));
    job_open(j, g);
}

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    struct job attention, matmul;
    /* Two products: every query with every key, then with every value. */
    double flops = 2 * 2.0 * HEADS * POSITIONS * POSITIONS * CHANNELS;

    open_attention(&attention, o.threads);
    open_matmul(&matmul, o.threads);
    struct side side[] = {job_side(&attention), job_side(&matmul)};
    side[1].name = "rlx matmul 1024^3";
    measure(side, 2, &o);
    compare_rates("attention f32, 8 heads x 1024 x 64", &o, "GFLOP/s", flops,
                  2.0 * SIZE * SIZE * SIZE, &side[0], &side[1], 0.6);
    job_close(&attention);
    job_close(&matmul);
    return 0;
}
