/* gemm.c: matrix products against OpenBLAS and oneDNN, and in bf16 against the AMX ceiling. */
#include <stdio.h>

#include "support/ceilings.h"
#include "support/job.h"
#include "support/peers.h"

static double flops(const struct matmul_shape *s)
{
    return 2.0 * (double)s->m * (double)s->n * (double)s->k;
}

/* weights: b is a param, which may be packed beforehand; else it is one more operand. */
static void open_matmul(struct job *j, const struct options *o, const struct matmul_shape *s,
                        rlx_dtype dtype, bool weights)
{
    rlx_graph *g = job_begin(j, o->threads);
    rlx_value a = rlx_state(g, "a", dtype, RLX_LIST(s->m, s->k));
    rlx_list shape = RLX_LIST(s->k, s->n);
    rlx_value b = weights ? rlx_param(g, "b", dtype, shape) : rlx_state(g, "b", dtype, shape);

    rlx_output(g, rlx_matmul(g, a, b, false, false));
    job_open(j, g);
}

static void square(const struct options *o, struct peers *p, int64_t size)
{
    enum { WEIGHTS, OPERAND, ONEDNN, OPENBLAS, PACKED, SIDES };
    struct matmul_shape s = {size, size, size};
    struct job weights, operand;
    char name[64];

    open_matmul(&weights, o, &s, RLX_DTYPE_f32, true);
    open_matmul(&operand, o, &s, RLX_DTYPE_f32, false);
    struct side side[SIDES] = {[WEIGHTS] = job_side(&weights),
                               [OPERAND] = job_side(&operand),
                               [ONEDNN] = peer_onednn_matmul(p, &s, false),
                               [OPENBLAS] = peer_openblas_matmul(p, &s),
                               [PACKED] = peer_onednn_matmul(p, &s, true)};
    measure(side, SIDES, o);
    const struct side *best = fastest(&side[ONEDNN], 2);
    snprintf(name, sizeof name, "matmul f32 %d^3, b a weight", (int)size);
    compare_rates(name, o, "GFLOP/s", flops(&s), flops(&s), &side[WEIGHTS], best, 0.9);
    compare_rates(name, o, "GFLOP/s", flops(&s), flops(&s), &side[WEIGHTS], &side[PACKED], 0);
    snprintf(name, sizeof name, "matmul f32 %d^3, b an operand", (int)size);
    compare_rates(name, o, "GFLOP/s", flops(&s), flops(&s), &side[OPERAND], best, 0.9);
    job_close(&weights);
    job_close(&operand);
}

static void few_rows(const struct options *o, struct peers *p, int64_t rows)
{
    struct matmul_shape s = {rows, 2048, 2048};
    struct job j;
    char name[64];

    open_matmul(&j, o, &s, RLX_DTYPE_f32, true);
    struct side side[] = {job_side(&j), peer_onednn_matmul(p, &s, true)};
    measure(side, 2, o);
    snprintf(name, sizeof name, "matmul f32 %d x 2048 x 2048, b a weight", (int)rows);
    compare_rates(name, o, "GFLOP/s", flops(&s), flops(&s), &side[0], &side[1], 1);
    job_close(&j);
}

static void in_bf16(const struct options *o)
{
    struct matmul_shape s = {2048, 2048, 2048};
    struct job j;
    struct ceiling amx;

    open_matmul(&j, o, &s, RLX_DTYPE_bf16, true);
    ceiling_open(&amx, CEILING_AMX_BF16, o->threads);
    struct side side[] = {job_side(&j), ceiling_side(&amx)};
    side[1].name = "AMX ceiling";
    measure(side, 2, o);
    compare_rates("matmul bf16 2048^3, b a weight", o, "GFLOP/s", flops(&s), amx.work, &side[0],
                  &side[1], 0.35);
    ceiling_close(&amx);
    job_close(&j);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {1024, 2048}, rows[] = {1, 4, 8, 32};
    struct options o = options_read(argc, argv);
    struct peers *p = peers_open(o.threads);

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        square(&o, p, sizes[i]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        few_rows(&o, p, rows[i]);
    in_bf16(&o);
    peers_close(p);
    return 0;
}
