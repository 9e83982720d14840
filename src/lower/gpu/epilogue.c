/* epilogue.c: bias and activation behind a sum. */
#include "lower/gpu/epilogue.h"

/* The numbers of kernels/lib/epilogue. */
static const struct {
    rlx_op op;
    uint32_t number;
    bool whole; /* for every dtype; else for sums in f32 */
} acts[] = {
    {RLX_OP_none, 0, true},         {RLX_OP_relu, 1, true},           {RLX_OP_abs, 2, true},
    {RLX_OP_neg, 3, true},          {RLX_OP_sign, 4, true},           {RLX_OP_gelu, 5, false},
    {RLX_OP_gelu_approx, 6, false}, {RLX_OP_silu, 7, false},          {RLX_OP_sigmoid, 8, false},
    {RLX_OP_tanh, 9, false},        {RLX_OP_exp, 10, false},          {RLX_OP_softplus, 11, false},
    {RLX_OP_hard_swish, 12, false}, {RLX_OP_hard_sigmoid, 13, false}, {RLX_OP_erf, 14, false},
};

rlx_dtype gpu_sum_dtype(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_f32:
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: return RLX_DTYPE_f32;
    case RLX_DTYPE_i8:
    case RLX_DTYPE_i16:
    case RLX_DTYPE_i32: return RLX_DTYPE_i32;
    case RLX_DTYPE_u8:
    case RLX_DTYPE_u16:
    case RLX_DTYPE_u32: return RLX_DTYPE_u32;
    default: return t;
    }
}

static uint32_t act_number(struct gpu_call *c, rlx_op act)
{
    bool f32 = gpu_sum_dtype(c->out->dtype) == RLX_DTYPE_f32;

    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        if (acts[i].op == act && (acts[i].whole || f32) &&
            (act == RLX_OP_none || c->out->dtype != RLX_DTYPE_c64))
            return acts[i].number;
    gpu_refuse(c, RLX_ERROR_UNSUPPORTED, "%s of %s with activation %s has no GPU kernel",
               op_info(c->op)->name, rlx_dtype_name(c->out->dtype), op_info(act)->name);
    return 0;
}

struct gpu_epilogue gpu_no_epilogue(void)
{
    return (struct gpu_epilogue){.bias = -1, .rank = 1, .size = {1}};
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
    struct gpu_epilogue e = gpu_no_epilogue();

    e.act = act_number(c, act);
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

/* Something must be bound; a bias that is not there is not read. */
void gpu_epilogue_bind(struct gpu_call *c, const struct gpu_epilogue *e)
{
    gpu_bind(c, gpu_in(c, e->bias >= 0 ? e->bias : 0));
}

void gpu_epilogue_words(struct gpu_call *c, const struct gpu_epilogue *e)
{
    for (int32_t i = 0; i < e->rank; i++)
        gpu_u32(c, e->size[i]);
    for (int32_t i = 0; i < e->rank; i++)
        gpu_u32(c, e->step[i]);
}
