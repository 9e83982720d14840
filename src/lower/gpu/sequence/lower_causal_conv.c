/* lower_causal_conv.c: a convolution of each channel along time; an invocation has some steps of a
 * channel, and one step is one launch of an invocation per channel. */
#include "lower/gpu/sequence/lower_sequence.h"

/* Steps of an invocation: more than the rows that it reads besides, and never fewer. */
static uint64_t chunk_of(uint64_t steps, uint64_t taps)
{
    uint64_t chunk = taps <= 16 ? 32 : 2 * taps;

    return steps < chunk ? steps : chunk;
}

void gpu_lower_causal_conv(struct gpu_call *c)
{
    const struct attr_causal_conv *a = &c->attr->causal_conv;
    const int64_t *dim = c->in[0].dim;
    uint64_t steps = (uint64_t)dim[1], channels = (uint64_t)dim[2];
    uint64_t taps = (uint64_t)c->in[1].dim[1];
    int32_t state = a->carry_state ? 2 : -1, bias = a->carry_state ? 3 : 2;
    bool has_bias = c->in_count > bias;

    if (gpu_count(c->out) == 0)
        return;
    uint64_t chunk = chunk_of(steps, taps), chunks = gpu_ceil(steps, chunk);
    uint64_t count = (uint64_t)dim[0] * chunks * channels;
    struct gpu_arg x = sequence_operand(c, 0, state);
    gpu_kernel(c, "causal_conv", "causal_conv");
    gpu_type(c, "T", c->out->dtype);
    gpu_const(c, "K", (int64_t)taps);
    gpu_flag(c, "CARRY", a->carry_state && taps > 1);
    gpu_flag(c, "BIAS", has_bias);
    gpu_flag(c, "SILU", a->activation == RLX_OP_silu);
    gpu_bind(c, x);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, has_bias ? gpu_in(c, bias) : gpu_temp(c, 16)); /* not looked at */
    gpu_bind(c, gpu_out(c));
    sequence_bind_state(c, taps > 1 ? state : -1); /* of one tap it is empty */
    gpu_u32(c, "steps", steps);
    gpu_u32(c, "channels", channels);
    gpu_u32(c, "chunk", chunk);
    gpu_u32(c, "chunks", chunks);
    gpu_u32(c, "count", count);
    gpu_invocations(c, count, 128);
}
