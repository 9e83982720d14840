/* dequant_q8.c: x as codes of eight bits and back, run by run, then a product in f32
 * (dequant_q8.h). */
#include "backend/cpu/kernels/dequant_q8.h"
#include "backend/cpu/kernels/dequant_exact.h"
#include "ir/quant_encode.h"

static uint64_t x_bytes(const struct cpu_call *c)
{
    return ((uint64_t)c->in[0].count * sizeof(float) + 63) / 64 * 64;
}

uint64_t dequant_q8_scratch(const struct cpu_call *c)
{
    return x_bytes(c) + dequant_exact_scratch(c);
}

struct rounding {
    const float *x;
    float *to;
    int64_t run; /* 32, as Q8_0, or 256, as Q8_K */
};

/* A run with a NaN or an infinity has no codes, and so is NaN throughout. */
static void round_runs(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rounding *r = ctx;
    bool large = r->run == QUANT_ROWS_BLOCK;
    uint8_t block[292];

    (void)worker;
    for (int64_t i = begin * r->run; i < end * r->run; i += r->run) {
        bool coded =
            large ? quant_encode_q8_k(r->x + i, block) : quant_encode_q8_0(r->x + i, block);
        if (coded)
            quant_blocks(large ? RLX_QUANT_SCHEME_q8_k : RLX_QUANT_SCHEME_q8_0, block, 1,
                         r->to + i);
        for (int64_t k = 0; !coded && k < r->run; k++)
            r->to[i + k] = NAN;
    }
}

void dequant_q8_run(const struct cpu_call *c)
{
    struct dequant d = dequant_of(c);
    struct rounding r = {c->in[0].data, c->scratch, d.w.elems};

    if (c->out->count == 0)
        return;
    cpu_for(c->pool, c->in[0].count / r.run, 16, round_runs, &r);
    dequant_exact_run(c, r.to, (char *)c->scratch + x_bytes(c));
}
