/* carried.h: the state that an op begins from and writes back, where another operand is the same
 * leaf: it is read as it was before the op. Tasks write parts of the state while others still read
 * the operand, so that operand is a copy, made before they begin. */
#ifndef BACKEND_CARRIED_H
#define BACKEND_CARRIED_H

#include <string.h>

#include "backend/cpu/cpu_kernel.h"

/* A view of the state is a value of its own here (lower/select.c): only a leaf of the state's own
 * shape can be the state. When a program is compiled, sizes may be larger than those of a run. */
static inline bool carried_may_be(const struct cpu_tensor *x, const struct cpu_tensor *state)
{
    bool may = x->rank == state->rank;

    for (int32_t a = 0; may && a < x->rank; a++)
        may = x->dim[a] >= state->dim[a];
    return may;
}

/* Bytes for the copy, if one may be wanted. state: which operand it is; negative: there is none. */
static inline uint64_t carried_scratch(const struct cpu_call *c, int32_t state)
{
    for (int32_t i = 0; state >= 0 && i < c->in_count; i++)
        if (i != state && carried_may_be(&c->in[i], &c->in[state]))
            return (uint64_t)c->in[state].count * rlx_dtype_size(c->in[state].dtype);
    return 0;
}

/* The operands as they are to be read, into in[]; room: carried_scratch bytes. */
static inline void carried_operands(const struct cpu_call *c, int32_t state, struct cpu_tensor *in,
                                    void *room)
{
    const struct cpu_tensor *s = state < 0 ? NULL : &c->in[state];

    for (int32_t i = 0; i < c->in_count; i++) {
        in[i] = c->in[i];
        if (!s || i == state || s->count == 0 || in[i].data != s->data)
            continue;
        memcpy(room, s->data, (size_t)s->count * rlx_dtype_size(s->dtype));
        in[i].data = room;
    }
}

#endif
