/* lower_epilogue.c: bias and activation after a sum. */
#include "lower/gpu/gemm/lower_epilogue.h"
#include "lower/gpu/elementwise/lower_elementwise.h"

/* The numbers of kernels/lib/epilogue, less 1. The first FOR_INTS are for integers too. */
#define FOR_INTS 4
static const rlx_op acts[] = {
    RLX_OP_relu,       RLX_OP_abs,          RLX_OP_neg,         RLX_OP_sign,     RLX_OP_sigmoid,
    RLX_OP_tanh,       RLX_OP_exp,          RLX_OP_log,         RLX_OP_sqrt,     RLX_OP_rsqrt,
    RLX_OP_recip,      RLX_OP_gelu,         RLX_OP_gelu_approx, RLX_OP_silu,     RLX_OP_round,
    RLX_OP_floor,      RLX_OP_ceil,         RLX_OP_softplus,    RLX_OP_elu,      RLX_OP_erf,
    RLX_OP_hard_swish, RLX_OP_hard_sigmoid, RLX_OP_mish,        RLX_OP_softsign, RLX_OP_log_sigmoid,
};

/* 0: the kernels do not have it. */
static uint32_t act_number(rlx_op act, rlx_dtype t)
{
    uint32_t most = dtype_is(t, CLASS_F)   ? sizeof acts / sizeof acts[0]
                    : dtype_is(t, CLASS_C) ? 0
                                           : FOR_INTS;

    for (uint32_t i = 0; i < most; i++)
        if (acts[i] == act)
            return i + 1;
    return 0;
}

struct gpu_epilogue gpu_no_epilogue(const struct gpu_call *c)
{
    return (struct gpu_epilogue){
        .bias = -1, .after = RLX_OP_none, .stored = c->out->dtype, .rank = 1, .size = {1}};
}

/* Steps through the bias along the result's axes, neighbours that are one run joined. */
static void walk_bias(const struct ir_type *bias, const struct ir_type *out, struct gpu_epilogue *e)
{
    int32_t missing = out->rank - bias->rank, rank = 0;
    uint64_t step[RLX_MAX_RANK] = {0}, at = 1;

    for (int32_t i = out->rank; i-- > missing;) {
        uint64_t n = (uint64_t)bias->dim[i - missing];
        step[i] = n == 1 ? 0 : at;
        at *= n;
    }
    for (int32_t i = 0; i < out->rank; i++) {
        uint64_t n = (uint64_t)out->dim[i];
        if (n == 1)
            continue;
        if (rank && e->step[rank - 1] == step[i] * n) {
            e->size[rank - 1] *= n;
            e->step[rank - 1] = step[i];
        } else {
            e->size[rank] = n;
            e->step[rank++] = step[i];
        }
    }
    e->rank = rank ? rank : 1;
}

struct gpu_epilogue gpu_epilogue_of(struct gpu_call *c, int32_t bias, rlx_op act)
{
    struct gpu_epilogue e = gpu_no_epilogue(c);

    e.act = act_number(act, c->out->dtype);
    if (e.act == 0 && act != RLX_OP_none) {
        e.after = act;
        e.stored = gpu_sum_type(c->out->dtype);
    }
    e.bias = bias;
    if (bias >= 0)
        walk_bias(&c->in[bias], c->out, &e);
    return e;
}

void gpu_epilogue_constants(struct gpu_call *c, const struct gpu_epilogue *e)
{
    gpu_flag(c, "BIAS", e->bias >= 0);
    gpu_const(c, "BRANK", e->rank);
    gpu_const(c, "ACT", e->act);
}

/* Something must be bound; a bias that is not there is not read, so little of it will do. */
void gpu_epilogue_bind(struct gpu_call *c, const struct gpu_epilogue *e)
{
    struct gpu_arg any = gpu_in(c, 0);

    any.bytes = any.bytes < GPU_ALIGN ? any.bytes : GPU_ALIGN;
    gpu_bind(c, e->bias >= 0 ? gpu_in(c, e->bias) : any);
}

void gpu_epilogue_words(struct gpu_call *c, const struct gpu_epilogue *e)
{
    gpu_u32s(c, "bias_size", e->size, e->rank);
    gpu_u32s(c, "bias_step", e->step, e->rank);
}

struct gpu_arg gpu_epilogue_result(struct gpu_call *c, const struct gpu_epilogue *e)
{
    return e->after == RLX_OP_none ? gpu_out(c)
                                   : gpu_temp(c, gpu_count(c->out) * rlx_dtype_size(e->stored));
}

void gpu_epilogue_finish(struct gpu_call *c, const struct gpu_epilogue *e, struct gpu_arg y)
{
    struct ew w;

    if (e->after == RLX_OP_none)
        return;
    struct ir_type sums = *c->out;
    sums.dtype = e->stored;
    ew_begin(&w, c, c->out);
    struct ew_value x = ew_input(&w, y, &sums);
    struct ew_value v = ew_step(&w, "v", e->after, e->stored, &x);
    ew_store(&w, gpu_out(c), c->out->dtype, v.name);
    ew_end(&w);
}
