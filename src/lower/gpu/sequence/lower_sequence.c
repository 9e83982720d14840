/* lower_sequence.c: operands of ops that carry a state. */
#include "lower/gpu/sequence/lower_sequence.h"

#include "lower/gpu/move/lower_move.h"

struct gpu_arg sequence_operand(struct gpu_call *c, int32_t i, int32_t state)
{
    struct gpu_arg from = gpu_in(c, i);

    /* A view of the state is a value of its own here (lower/select.c). */
    if (state < 0 || c->node->in[i] != c->node->in[state])
        return from;
    struct gpu_arg copy = gpu_temp(c, from.bytes);
    gpu_copy(c, from, copy, c->in[i].dtype);
    return copy;
}

void sequence_bind_state(struct gpu_call *c, int32_t state)
{
    gpu_bind(c, state < 0 ? gpu_temp(c, 16) : gpu_in(c, state));
}
