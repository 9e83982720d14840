/* budget.c: how much a session has on its device, and whether it may have more.
 *
 * Nothing is counted along the way: what there is is added up when somebody asks, which happens
 * before allocations only. */
#include "base/str.h"
#include "session/session.h"

#define HOST_LEAST (UINT64_C(64) << 20) /* whatever the limit: a compile takes some */
#define HOST_FREE (UINT64_C(2) << 30)   /* without a limit, and so much more: */
#define HOST_PER_NODE 65536
#define HOST_PER_CONST_BYTE 16

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* In proportion to the model, so that only what grows out of proportion meets it. */
static uint64_t usual_bound(const struct ir_module *m)
{
    uint64_t sum = HOST_FREE;

    for (size_t i = 0; i < m->graph.len; i++) {
        IR_EACH(n, m->graph.at[i]) {
            sum += HOST_PER_NODE;
            if (n->op == RLX_OP_const)
                sum += HOST_PER_CONST_BYTE * (uint64_t)n->attr.const_.data.len;
        }
    }
    return sum;
}

void budget_open(struct rlx_session *s)
{
    uint64_t limit = s->desc.memory_limit;

    limit = limit == 0 ? usual_bound(s->model->mod) : limit < HOST_LEAST ? HOST_LEAST : limit;
    s->host = mem_bounded(&s->host_bound, &s->model->ctx->mem,
                          limit < SIZE_MAX ? (size_t)limit : SIZE_MAX);
}

/* What the session has besides the weights and their copies. */
static uint64_t taken(const struct rlx_session *s)
{
    uint64_t sum = s->state.bytes;

    for (size_t i = 0; i < s->program_count; i++)
        if (s->program[i].program)
            sum = add(sum,
                      add(s->program[i].program->acts.bytes, s->program[i].program->consts.bytes));
    for (size_t i = 0; i < s->handle_count; i++)
        if (s->handle[i].buffer)
            sum = add(sum, s->handle[i].bytes);
    for (size_t i = 0; i < s->desc.in_flight; i++)
        sum = add(sum, s->flight[i].outputs.bytes);
    return sum;
}

static rlx_status check(const struct rlx_session *s, uint64_t weights, uint64_t copies,
                        uint64_t bytes, struct diag *d)
{
    uint64_t held = add(taken(s), copies), limit = s->desc.memory_limit, all = s->target.memory;

    if (s->plan_only) /* it takes nothing */
        return RLX_OK;
    if (limit && add(held, bytes) > limit)
        return diag_fail(d, RLX_ERROR_MEMORY,
                         "%llu bytes are wanted besides %llu held, more than memory_limit, %llu",
                         (unsigned long long)bytes, (unsigned long long)held,
                         (unsigned long long)limit);
    if (all && add(add(held, weights), bytes) > all)
        return diag_fail(
            d, RLX_ERROR_MEMORY,
            "%llu bytes are wanted besides %llu held and %llu of weights, more than device %s has, "
            "%llu",
            (unsigned long long)bytes, (unsigned long long)held, (unsigned long long)weights,
            s->device->name, (unsigned long long)all);
    return RLX_OK;
}

rlx_status budget_check(struct rlx_session *s, uint64_t bytes, struct diag *d)
{
    return check(s, store_weight_bytes(s->store), store_copy_bytes(s->store), bytes, d);
}

rlx_status budget_check_locked(const struct rlx_session *s, uint64_t bytes, struct diag *d)
{
    return check(s, store_weight_bytes_locked(s->store), store_copy_bytes_locked(s->store), bytes,
                 d);
}

rlx_status budget_alloc(struct rlx_session *s, const char *what, rlx_str name, uint64_t bytes,
                        struct buffer **out, struct diag *d)
{
    struct backend *b = s->device->backend;
    struct diag own;

    if (s->desc.max_buffer && bytes > s->desc.max_buffer)
        return memory_too_large(what, name, bytes, s->desc.max_buffer, d);
    diag_init(&own, what);
    rlx_status status = budget_check(s, bytes, &own);
    if (status != RLX_OK)
        return diag_fail(d, status, "%s \"%.*s\": %s", what, STR_ARG(name), own.first.message);
    return b->ops->alloc(b, bytes, out, d);
}
