/* flight.c: runs that were submitted and not yet waited for.
 *
 * Outputs of a run stay in their slots until the next run of the same program needs these. Only
 * then, if nobody has taken them, are they copied to a buffer of the flight's own: a session that
 * waits for each run before the next one copies nothing, unless feeds write to its outputs. */
#include "session/session.h"

rlx_status flight_begin(rlx_session *s, struct flight **out, struct diag *d)
{
    for (size_t i = 0; i < s->desc.in_flight; i++) {
        struct flight *f = &s->flight[i];
        if (f->ticket)
            continue;
        f->ticket = ++s->tickets;
        f->program = s->current;
        f->backend_ticket = 0;
        f->kept = false;
        for (size_t k = 0; k < s->current->output_count; k++)
            f->type[k] = s->current->output[k].type;
        s->flights++;
        *out = f;
        return RLX_OK;
    }
    return diag_fail(d, RLX_ERROR_STATE, "%u runs are in flight: wait for one of them first",
                     (unsigned)s->desc.in_flight);
}

struct flight *flight_find(rlx_session *s, uint64_t ticket)
{
    for (size_t i = 0; i < s->desc.in_flight && ticket; i++)
        if (s->flight[i].ticket == ticket)
            return &s->flight[i];
    return NULL;
}

void flight_end(rlx_session *s, struct flight *f)
{
    f->ticket = 0;
    s->flights--;
}

/* Outputs one after the other; memory of an earlier flight is used again if it was as large. */
static rlx_status make_room(rlx_session *s, struct flight *f, struct diag *d)
{
    struct memory_layout l;
    struct memory made;

    TRY(memory_layout_begin(&l, s->desc.max_buffer, STORE_ALIGNMENT, f->used, d));
    for (size_t i = 0; i < f->program->output_count; i++) {
        uint64_t bytes = 0;
        type_bytes(&f->type[i], &bytes);
        TRY(memory_layout_add(&l, "output", s->model->output_name[i], bytes, &f->offset[i], d));
    }
    bool fits = f->outputs.count >= l.count;
    for (size_t i = 0; i < l.count && fits; i++)
        fits = f->outputs.part[i].bytes >= l.used[i];
    if (fits)
        return RLX_OK;
    TRY(budget_check(s, memory_layout_bytes(&l), d));
    TRY(memory_alloc(s->device->backend, &s->model->ctx->mem, l.segment, l.used, l.count, &made,
                     d));
    memory_release(&f->outputs);
    f->outputs = made;
    return RLX_OK;
}

static rlx_status keep(rlx_session *s, struct flight *f, struct diag *d)
{
    struct backend *b = s->device->backend;

    TRY(make_room(s, f, d));
    for (size_t i = 0; i < f->program->output_count; i++) {
        struct span from = program_span(f->program, f->program->output[i].value);
        if (from.bytes)
            TRY(b->ops->copy(b, memory_span(&f->outputs, f->offset[i], from.bytes), from, d));
    }
    f->kept = true;
    return RLX_OK;
}

rlx_status flight_keep(rlx_session *s, const struct program *p, struct diag *d)
{
    for (size_t i = 0; i < s->desc.in_flight; i++) {
        struct flight *f = &s->flight[i];
        if (f->ticket && f->program == p && !f->kept)
            TRY(keep(s, f, d));
    }
    return RLX_OK;
}

/* An output that is a handle lies where a feed is about to write. */
static bool feeds_overwrite(const rlx_session *s, const struct flight *f)
{
    for (size_t i = 0; i < s->handle_count; i++)
        for (size_t k = 0; s->handle[i].feed.is_set && k < f->program->output_count; k++)
            if (program_span(f->program, f->program->output[k].value).buffer == s->handle[i].buffer)
                return true;
    return false;
}

rlx_status flight_before_feeds(rlx_session *s, struct flight *f, struct diag *d)
{
    return feeds_overwrite(s, f) ? keep(s, f, d) : RLX_OK;
}

struct span flight_span(const struct flight *f, size_t output)
{
    uint64_t bytes = 0;

    if (!f->kept)
        return program_span(f->program, f->program->output[output].value);
    type_bytes(&f->type[output], &bytes);
    return memory_span(&f->outputs, f->offset[output], bytes);
}

rlx_status flight_read(rlx_session *s, struct flight *f, size_t output, rlx_tensor *to,
                       struct diag *d)
{
    const struct ir_type *t = &f->type[output];
    int64_t count = 0;

    type_count(t, &count);
    return span_read(s->device->backend, flight_span(f, output), t->dtype, to->dtype, to->data,
                     (size_t)count, d);
}
