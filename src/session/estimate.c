/* estimate.c: how much memory a model will take on a device, before anything is put there: a
 * session that is only planned says of itself what any session does. */
#include "base/str.h"
#include "session/session.h"

static uint64_t input_bytes(const struct program *p)
{
    uint64_t sum = 0; /* of slots that lie apart, in an arena that fits 64 bits */

    for (size_t i = 0; i < p->input_count; i++)
        if (p->input[i].value >= 0)
            sum += p->steps->value[p->input[i].value].bytes;
    return sum;
}

static rlx_status estimate(rlx_session *s, const rlx_dim_size *dims, size_t count, uint64_t budget,
                           rlx_memory_estimate *out, struct diag *d)
{
    const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .dims = dims, .dim_count = count};
    rlx_memory_info m = {RLX_SIZED(rlx_memory_info)};

    TRY(session_choose_program(s, &run, d));
    TRY(s->kind->memory(s, &m, d));
    rlx_memory_estimate e = {.weights = m.weights,
                             .weight_copies = m.weight_copies,
                             .constants = m.constants,
                             .activations = m.activations,
                             .states = m.state,
                             .inputs = input_bytes(s->current),
                             .budget = budget ? budget : s->target.memory,
                             .kept = m.kept,
                             .alive = m.alive,
                             .flops = m.flops,
                             .recomputed_flops = m.recomputed_flops,
                             .recomputed = (uint32_t)m.recomputed};
    if (__builtin_add_overflow(e.weights, e.constants, &e.total) ||
        __builtin_add_overflow(e.total, e.weight_copies, &e.total) ||
        __builtin_add_overflow(e.total, e.activations, &e.total) ||
        __builtin_add_overflow(e.total, e.states, &e.total))
        return diag_fail(d, RLX_ERROR_LIMIT, "the sum of the model's memory overflows 64 bits");
    e.deficit = e.budget && e.total > e.budget ? e.total - e.budget : 0;
    *out = e;
    return RLX_OK;
}

rlx_status session_estimate(struct rlx_model *m, struct rlx_device *dev, const rlx_dim_size *dims,
                            size_t dim_count, uint64_t budget, rlx_memory_estimate *out,
                            struct diag *d)
{
    rlx_session *s;

    TRY(session_plan_only(m, dev, &s, d));
    rlx_status status = estimate(s, dims, dim_count, budget, out, d);
    session_destroy(s);
    return status;
}
