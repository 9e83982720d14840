/* causal_conv.c: a convolution of each channel along time that sees no later rows (ops-special.md
 * 3.4).
 *
 *     y[t] = act(bias + sum over k of w[k] x[t - (K-1) + k])
 *
 * A task is a block of channels of one item, and keeps the last K rows of it in a ring: row g of
 * the rows before the run and those of the run, one after the other, is in slot g % K. */
#include "backend/cpu/kernels/elementwise/row.h"
#include "backend/cpu/kernels/sequence/carried.h"
#include "backend/cpu/kernels/sequence/lanes.h"

enum { TAPS = 64 }; /* at most, says the shape rule */

struct job {
    const struct cpu_call *c;
    struct cpu_tensor in[4];
    int64_t steps, channels, taps, blocks;
    rlx_op act;
    const struct cpu_tensor *state, *bias; /* NULL: there is none */
};

/* Of a block: the ring, its weights and bias, with channels side by side. */
struct rows {
    LANES_OF(ring[TAPS]);
    LANES_OF(w[TAPS]);
    LANES_OF(bias);
    float room[TAPS * LANES]; /* for weights of other types */
};

/* y of the row in the slot `last`: tap 0 meets the one after it, which is the oldest. */
static void weigh(const struct job *j, const struct rows *r, int64_t last, float *y)
{
    vec_f32 sum[LANES_VECS];
    int64_t slot = last;

    for (int v = 0; v < LANES_VECS; v++)
        sum[v] = vec_load(r->bias + v * VEC_F32);
    for (int64_t k = 0; k < j->taps; k++) {
        slot = slot + 1 == j->taps ? 0 : slot + 1;
        GEMM_UNROLL
        for (int v = 0; v < LANES_VECS; v++)
            sum[v] = F32_MADD(vec_load(r->w[k] + v * VEC_F32),
                              vec_load(r->ring[slot] + v * VEC_F32), sum[v]);
    }
    for (int v = 0; v < LANES_VECS; v++)
        vec_store(y + v * VEC_F32, sum[v]);
}

static void begin_rows(const struct job *j, int64_t item, int64_t first, int64_t w, struct rows *r)
{
    const struct cpu_tensor *weights = &j->in[1];
    int64_t held = j->taps - 1;

    const float *from =
        cpu_as_f32(weights->dtype, cpu_at(weights, first * j->taps), r->room, w * j->taps);
    lanes_turn(from, w, j->taps, r->w[0]);
    memset(r->bias, 0, sizeof r->bias);
    if (j->bias)
        lanes_load(j->bias->dtype, cpu_at(j->bias, first), w, r->bias);
    memset(r->ring, 0, (size_t)j->taps * sizeof r->ring[0]);
    for (int64_t g = 0; j->state && g < held; g++)
        lanes_load(j->state->dtype, cpu_at(j->state, (item * held + g) * j->channels + first), w,
                   r->ring[g]);
}

static void run_block(const struct job *j, int64_t block, struct rows *r)
{
    rlx_dtype t = j->c->out->dtype;
    int64_t item = block / j->blocks, first = block % j->blocks * LANES;
    int64_t w = cpu_min_i64(LANES, j->channels - first), held = j->taps - 1, slot = held;
    LANES_OF(y);

    begin_rows(j, item, first, w, r);
    for (int64_t s = 0; s < j->steps; s++) {
        int64_t at = (item * j->steps + s) * j->channels + first;
        lanes_load(t, cpu_at(&j->in[0], at), w, r->ring[slot]);
        weigh(j, r, slot, y);
        if (j->act != RLX_OP_none)
            cpu_row_unary(j->act, RLX_DTYPE_f32, y, y, LANES);
        cpu_store_f32(t, y, cpu_at(j->c->out, at), w);
        slot = slot + 1 == j->taps ? 0 : slot + 1;
    }
    for (int64_t g = 0; j->state && g < held; g++)
        cpu_store_f32(t, r->ring[(j->steps + g) % j->taps],
                      cpu_at(j->state, (item * held + g) * j->channels + first), w);
}

static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct rows r;

    (void)worker;
    for (int64_t at = begin; at < end; at++)
        run_block(ctx, at, &r);
}

static int32_t state_of(const struct cpu_call *c)
{
    return c->attr->causal_conv.carry_state ? 2 : -1;
}

static uint64_t scratch(const struct cpu_call *c)
{
    return carried_scratch(c, state_of(c));
}

static void run(const struct cpu_call *c)
{
    const int64_t *dim = c->in[0].dim;
    int32_t state = state_of(c), bias = state < 0 ? 2 : 3;
    struct job j = {.c = c,
                    .steps = dim[1],
                    .channels = dim[2],
                    .taps = c->in[1].dim[1],
                    .blocks = lanes_blocks(dim[2]),
                    .act = c->attr->causal_conv.activation,
                    .state = state < 0 ? NULL : &c->in[state],
                    .bias = c->in_count > bias ? &c->in[bias] : NULL};

    if (c->out->count == 0)
        return;
    carried_operands(c, state, j.in, c->scratch);
    double work = 2.0 * (double)j.taps + (j.act == RLX_OP_none ? 0 : 40);
    cpu_for(c->pool, dim[0] * j.blocks, lanes_grain(work * (double)j.steps * LANES), run_blocks,
            &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_causal_conv);
const struct cpu_kernel CPU_NAME(cpu_causal_conv) = {.run = run, .scratch = scratch};
