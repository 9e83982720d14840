/* observe.c: see observe.h. */
#include "session/observe.h"

#include <string.h>

#include "base/str.h"
#include "context/trace.h"
#include "ir/cost.h"
#include "run/convert.h"

static struct trace *trace_of(const struct rlx_session *s)
{
    return s->model->ctx->trace;
}

uint64_t observe_now(const struct rlx_session *s)
{
    return trace_now(trace_of(s));
}

void observe_span(const struct rlx_session *s, const char *name, uint64_t start)
{
    if (trace_of(s))
        trace_span(trace_of(s), name, start, 0,
                   &(struct trace_args){.category = s->device->backend->ops->name});
}

rlx_status observe_open(struct rlx_session *s, struct diag *d)
{
    if (s->desc.check_numerics == RLX_NUMERICS_OFF)
        return RLX_OK;
    if (s->desc.check_numerics > RLX_NUMERICS_FAIL)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no check_numerics %d",
                         (int)s->desc.check_numerics);
    s->observer = mem_alloc(&s->model->ctx->mem, sizeof *s->observer);
    if (!s->observer)
        return diag_no_memory(d, sizeof *s->observer);
    s->observer->mode = s->desc.check_numerics;
    s->observer->last.step = -1;
    s->observer->found = arena_array(&s->arena, rlx_numerics, s->desc.in_flight);
    return s->observer->found ? RLX_OK
                              : diag_no_memory(d, s->desc.in_flight * sizeof(rlx_numerics));
}

void observe_close(struct rlx_session *s)
{
    const rlx_allocator *mem = &s->model->ctx->mem;

    if (!s->observer)
        return;
    mem_free(mem, s->observer->record, s->observer->record_count * sizeof *s->observer->record);
    mem_free(mem, s->observer, sizeof *s->observer);
}

/* ---- after each step ---- */

struct traffic {
    uint64_t read, written;
};

static struct traffic traffic_of(const struct steps *steps, const struct step *st)
{
    struct traffic t = {0};

    for (uint32_t i = 0; i < st->count; i++) {
        const struct operand *o = &steps->operand[st->first + i];
        uint64_t bytes = steps->value[o->value].bytes;
        if (steps->value[o->value].flags & VALUE_SCRATCH)
            continue;
        t.read += o->role != ROLE_WRITE ? bytes : 0;
        t.written += o->role != ROLE_READ ? bytes : 0;
    }
    return t;
}

static void watch_step(struct rlx_session *s, int32_t step)
{
    const struct steps *steps = s->current->steps;
    const struct step *st = &steps->step[step];
    rlx_watch_event e = {.session = s, .step = step, .step_name = st->name};
    struct scan scan;

    for (uint32_t i = 0; i < st->count; i++) {
        const struct operand *o = &steps->operand[st->first + i];
        if (o->role == ROLE_READ || steps->value[o->value].node < 0)
            continue;
        stats_of_value(s, o->value, &scan);
        stats_describe(s, o->value, &scan, &e.value);
        s->observer->watch(s->observer->watch_user, &e);
    }
}

static void after_step(void *user, int32_t step, uint64_t start, uint64_t end)
{
    struct rlx_session *s = user;
    const struct steps *steps = s->current->steps;
    const struct step *st = &steps->step[step];
    const struct ir_graph *g = ir_entry(s->current->mod);
    struct traffic t = traffic_of(steps, st);

    if (s->profile)
        s->profile(s->profile_user, &(rlx_profile_event){
                                        .step = st->name,
                                        .label = ir_node(g, st->node)->label,
                                        .index = step,
                                        .node = st->node,
                                        .start_ns = start,
                                        .duration_ns = end - start,
                                        .bytes_read = t.read,
                                        .bytes_written = t.written,
                                        .flops = ir_node_flops(g, ir_node(g, st->node)),
                                    });
    if (trace_of(s))
        trace_span(trace_of(s), st->name, end ? start : observe_now(s), end,
                   &(struct trace_args){.category = s->device->backend->ops->name,
                                        .device = s->target.threads ? NULL : s->device->name,
                                        .is_step = true,
                                        .step = step,
                                        .label = ir_node(g, st->node)->label,
                                        .bytes = t.read + t.written});
    if (s->observer && s->observer->mode != RLX_NUMERICS_OFF)
        numerics_step(s, step);
    if (s->observer && s->observer->watch)
        watch_step(s, step);
}

/* Room for a record per value; only the first run of a larger program allocates. */
static rlx_status make_records(struct rlx_session *s, struct diag *d)
{
    struct observer *o = s->observer;
    size_t count = s->current->steps->value_count, size = sizeof *o->record, bytes;

    if (count > o->record_count) {
        if (!size_mul(count, size, &bytes))
            return diag_no_memory(d, SIZE_MAX);
        struct record *more =
            mem_resize(&s->model->ctx->mem, o->record, o->record_count * size, bytes);
        if (!more)
            return diag_no_memory(d, bytes);
        o->record = more;
        o->record_count = count;
    }
    if (count)
        memset(o->record, 0, count * size);
    return RLX_OK;
}

rlx_status observe_begin(struct rlx_session *s, const struct flight *f,
                         const struct run_hooks **hooks, struct diag *d)
{
    bool checks = s->observer && s->observer->mode != RLX_NUMERICS_OFF;
    bool watches = s->observer && s->observer->watch;

    *hooks = NULL;
    if (!s->profile && !trace_of(s) && !checks && !watches)
        return RLX_OK;
    if (checks) {
        TRY(make_records(s, d));
        numerics_begin(s, f);
    }
    s->hooks = (struct run_hooks){after_step, s, checks || watches};
    *hooks = &s->hooks;
    return RLX_OK;
}

rlx_status observe_end(struct rlx_session *s, const struct flight *f, rlx_status so_far,
                       struct diag *d)
{
    bool checks = s->observer && s->observer->mode != RLX_NUMERICS_OFF;

    return checks ? numerics_end(s, f, so_far, d) : so_far;
}

/* ---- asked from outside ---- */

static rlx_status set_watch(rlx_session *s, rlx_watch_fn fn, void *user, struct diag *d)
{
    if (!s->observer && !(s->observer = mem_alloc(&s->model->ctx->mem, sizeof *s->observer)))
        return diag_no_memory(d, sizeof *s->observer);
    s->observer->watch = fn;
    s->observer->watch_user = user;
    return RLX_OK;
}

rlx_status observe_watch(struct rlx_session *s, rlx_watch_fn fn, void *user, struct diag *d)
{
    struct session_list l = s->kind->parts(&s);

    if (s->flights)
        return diag_fail(d, RLX_ERROR_STATE, "the session is running: wait for it first");
    for (size_t i = 0; i < l.count; i++)
        TRY(set_watch(l.at[i], fn, user, d));
    return RLX_OK;
}

/* Does the value lie in rows of another, apart from each other? */
static bool is_separate(const struct program *p, ir_value v)
{
    const struct ir_graph *g = ir_entry(p->mod);

    return p->steps->value[joint_renamed(g, v)].flags & VALUE_COLUMNS;
}

rlx_status observe_peek(struct rlx_session *s, int32_t node, uint64_t first, size_t count,
                        double *out, struct diag *d)
{
    uint8_t element[16];

    TRY(session_is_whole(s, "show nodes by number", d));
    if (!s->current || node < 0 || (size_t)node >= ir_entry(s->current->mod)->node.len)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the program has no node %d", node);
    if (is_separate(s->current, node))
        return diag_fail(d, RLX_ERROR_STATE,
                         "node %d has no bytes of its own: attention reads it where it lies "
                         "(no_packed_qkv)",
                         node);
    rlx_dtype dtype = ir_type_of(ir_entry(s->current->mod), node)->dtype;
    struct span span = program_span(s->current, node);
    size_t size = rlx_dtype_size(dtype);
    if (first > span.bytes / size || count > span.bytes / size - first)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "node %d has %llu elements", node,
                         (unsigned long long)(span.bytes / size));
    for (size_t i = 0; i < count; i++) {
        struct span one = {span.buffer, span.offset + (first + i) * size, size};
        TRY(s->device->backend->ops->read(s->device->backend, one, element, d));
        convert(RLX_DTYPE_f64, &out[i], dtype == RLX_DTYPE_c64 ? RLX_DTYPE_f32 : dtype, element, 1);
    }
    return RLX_OK;
}
