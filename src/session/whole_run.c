/* whole_run.c: one run: sizes, inputs, submit, wait, outputs. Nothing here allocates once the
 * program for a binding exists. */
#include <string.h>

#include "base/str.h"
#include "model/dims.h"
#include "session/observe.h"
#include "session/session.h"

/* ---- inputs ---- */

/* Its number among the inputs; input_count: there is none. */
static size_t find_input(const struct program *p, rlx_str name)
{
    size_t i = 0;

    while (i < p->input_count && !str_eq(p->input[i].name, name))
        i++;
    return i;
}

static const rlx_binding *find_binding(const rlx_binding *list, size_t count, rlx_str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(rlx_cstr(list[i].name), name))
            return &list[i];
    return NULL;
}

/* What an input that nothing reads is declared as, at the sizes of this run; what tells none of
 * them may be as it is given. */
static struct ir_type unread_type(const rlx_session *s, const struct program_slot *slot,
                                  const rlx_tensor *given)
{
    const struct ir_graph *g = ir_entry(s->model->mod);
    struct ir_type type = slot->type;
    ir_value v;

    if (ir_find_leaf(g, slot->name, &v))
        type = *ir_type_of(g, v);
    for (int32_t k = 0; k < type.rank; k++) {
        int64_t size = type.dim[k];
        if (!dim_is_static(size))
            size = dim_eval(g->mod->dims, size, s->binding, s->symbol_count, NULL);
        type.dim[k] = size >= 0 || k >= given->rank ? size : given->dim[k];
    }
    return type;
}

/* The shape of this run, or that of the bounds, of which this run's part is taken. */
static bool has_shape(rlx_session *s, const rlx_tensor *t, const struct program_slot *slot)
{
    const struct ir_graph *g = ir_entry(s->model->mod);
    bool same = t->rank == slot->type.rank, upper = same && s->current->symbolic;
    ir_value v;

    for (int32_t k = 0; same && k < t->rank; k++)
        same = t->dim[k] == slot->type.dim[k];
    if (same || !upper || !ir_find_leaf(g, slot->name, &v))
        return same;
    for (int32_t k = 0; upper && k < t->rank; k++)
        upper = t->dim[k] == session_upper_dim(s, ir_type_of(g, v)->dim[k]);
    return upper;
}

static rlx_status check_input(rlx_session *s, const rlx_run_desc *run, size_t i, struct diag *d)
{
    const rlx_binding *in = &run->inputs[i];
    rlx_str name = rlx_cstr(in->name);
    size_t n = find_input(s->current, name);
    struct ir_type given;

    if (n == s->current->input_count)
        return refuse_leaf(s->model, "input", RLX_OP_input, name, d);
    struct program_slot own = s->current->input[n], *slot = &own;
    if (slot->value < 0)
        slot->type = unread_type(s, slot, &in->tensor);
    if (find_binding(run->inputs, i, name))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "input \"%.*s\" is given twice", STR_ARG(name));
    if (in->tensor.data == RLX_UNCHANGED)
        return RLX_OK;
    if (in->tensor.dtype != slot->type.dtype && in->tensor.dtype != RLX_DTYPE_f32)
        return diag_fail(d, RLX_ERROR_DTYPE, "input \"%.*s\" takes %s%s, not %s", STR_ARG(name),
                         rlx_dtype_name(slot->type.dtype),
                         slot->type.dtype == RLX_DTYPE_f32 ? "" : " (or f32)",
                         rlx_dtype_name(in->tensor.dtype));
    given = slot->type;
    bool fits = has_shape(s, &in->tensor, slot);
    if (fits)
        memcpy(given.dim, in->tensor.dim, sizeof given.dim);
    TRY(tensor_check(&in->tensor, &given, "input", name, d));
    if (!fits)
        return refuse_shape(s->model, "input", name, &slot->type, &in->tensor, d);
    return RLX_OK;
}

static rlx_status check_inputs(rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    const struct program *p = s->current;

    for (size_t i = 0; i < run->input_count; i++)
        TRY(check_input(s, run, i, d));
    for (size_t i = 0; i < p->input_count; i++) {
        if (p->input[i].value < 0 || p->steps->value[p->input[i].value].bytes == 0)
            continue; /* nothing reads it */
        if (!s->handle[i].buffer && !find_binding(run->inputs, run->input_count, p->input[i].name))
            return diag_fail(d, RLX_ERROR_MISSING_INPUT, "input \"%.*s\" has no value",
                             STR_ARG(p->input[i].name));
    }
    return RLX_OK;
}

/* Handles first: an input that replaces one may still find that the handle is fed. */
static rlx_status upload(rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    for (size_t i = 0; i < run->input_count; i++) {
        size_t n = find_input(s->current, rlx_cstr(run->inputs[i].name));
        if (s->handle[n].buffer && run->inputs[i].tensor.data != RLX_UNCHANGED)
            TRY(handle_replace(s, &s->handle[n], &run->inputs[i].tensor, d));
    }
    TRY(handles_attach(s, d)); /* those just replaced */
    TRY(program_load(s->current, s->binding, d));
    TRY(handles_stage(s, d));
    for (size_t i = 0; i < run->input_count; i++) {
        size_t n = find_input(s->current, rlx_cstr(run->inputs[i].name));
        if (!s->handle[n].buffer)
            TRY(upload_input(s, n, &run->inputs[i].tensor, d));
    }
    return RLX_OK;
}

/* ---- outputs ---- */

rlx_status session_find_output(const rlx_session *s, const char *name, size_t *out, struct diag *d)
{
    const struct rlx_model *m = s->model;
    int64_t number;

    for (size_t i = 0; i < m->output_count; i++) {
        if (name && str_eq(m->output_name[i], rlx_cstr(name))) {
            *out = i;
            return RLX_OK;
        }
    }
    if (name && strncmp(name, "out", 3) == 0 && str_to_i64(rlx_cstr(name + 3), &number) &&
        number >= 0 && (size_t)number < m->output_count) {
        *out = (size_t)number;
        return RLX_OK;
    }
    return refuse_output(m, rlx_cstr(name), d);
}

rlx_status session_check_outputs(const rlx_session *s, const struct flight *f,
                                 const rlx_run_desc *run, struct diag *d)
{
    for (size_t i = 0; i < run->output_count; i++) {
        size_t k;
        uint64_t need;
        const rlx_tensor *t = &run->outputs[i].tensor;
        TRY(session_find_output(s, run->outputs[i].name, &k, d));
        const struct ir_type *type = f ? &f->type[k] : &s->current->output[k].type;
        if (t->dtype != type->dtype && !(t->dtype == RLX_DTYPE_f32 && type->dtype != RLX_DTYPE_c64))
            return diag_fail(d, RLX_ERROR_DTYPE, "output \"%s\" is %s, not %s",
                             run->outputs[i].name, rlx_dtype_name(type->dtype),
                             rlx_dtype_name(t->dtype));
        type_bytes(type, &need);
        need = need / rlx_dtype_size(type->dtype) * rlx_dtype_size(t->dtype);
        if (t->bytes < need)
            return diag_fail(d, RLX_ERROR_SIZE,
                             "output \"%s\" needs %llu bytes, there is room for %zu",
                             run->outputs[i].name, (unsigned long long)need, t->bytes);
        if (need && !t->data)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "output \"%s\": data is NULL",
                             run->outputs[i].name);
    }
    return RLX_OK;
}

static rlx_status download(rlx_session *s, struct flight *f, const rlx_run_desc *run,
                           struct diag *d)
{
    for (size_t i = 0; i < run->output_count; i++) {
        size_t k = 0;
        rlx_tensor *t = &run->outputs[i].tensor;
        TRY(session_find_output(s, run->outputs[i].name, &k, d));
        t->rank = f->type[k].rank;
        memcpy(t->dim, f->type[k].dim, sizeof t->dim);
        TRY(flight_read(s, f, k, t, d));
    }
    return RLX_OK;
}

/* Each output that is wanted, once, in their order. */
static void fetch(rlx_session *s, struct flight *f, const rlx_run_desc *run, struct diag *d)
{
    struct backend *b = s->device->backend;
    size_t all = f->program->output_count, count = 0, k;

    if (!b->ops->fetch)
        return;
    memset(f->wanted, 0, all * sizeof *f->wanted);
    for (size_t i = 0; i < run->output_count; i++)
        if (session_find_output(s, run->outputs[i].name, &k, d) == RLX_OK)
            f->wanted[k] = flight_span(f, k);
    for (k = 0; k < all; k++)
        if (f->wanted[k].bytes)
            f->wanted[count++] = f->wanted[k];
    if (count)
        b->ops->fetch(b, f->wanted, count);
}

/* ---- the run ---- */

static rlx_status refresh(void *user, struct diag *d)
{
    rlx_session *s = user;
    const struct compile_request r = session_request(s);

    return copies_refresh(&r, session_current_program(s), d);
}

/* here: it may as well be done on this thread, before the call returns. */
static rlx_status hand_over(struct backend *b, const struct program *p,
                            const struct run_hooks *hooks, bool here, struct flight *f,
                            struct diag *d)
{
    if (here && b->ops->run)
        return b->ops->run(b, p->command, p->command_count, hooks, &f->report, d);
    return b->ops->submit(b, p->command, p->command_count, hooks, &f->report, &f->backend_ticket,
                          d);
}

/* What the device does for a run, from its inputs to its feeds. */
static rlx_status start(rlx_session *s, const rlx_run_desc *run, bool here, struct flight *f,
                        struct diag *d)
{
    const struct run_hooks *hooks;
    uint64_t start = observe_now(s);

    TRY(observe_begin(s, f, &hooks, d));
    TRY(upload(s, run, d));
    observe_span(s, "upload", start);
    start = observe_now(s);
    TRY(hand_over(s->device->backend, s->current, hooks, here, f, d));
    observe_span(s, "submit", start);
    s->has_run = true;
    return handles_feed(s, f, d);
}

rlx_status whole_run_begin(rlx_session *s, const rlx_run_desc *run, bool here, struct flight **out,
                           struct diag *d)
{
    struct flight *f;

    if (s->flights == s->desc.in_flight)
        return diag_fail(d, RLX_ERROR_STATE, "%u runs are in flight: wait for one of them first",
                         (unsigned)s->desc.in_flight);
    TRY(session_choose_program(s, run, d));
    TRY(check_inputs(s, run, d));
    TRY(session_check_outputs(s, NULL, run, d));
    TRY(feeds_check(s, d));
    TRY(store_begin_run(s->store, s->desc.params_default_zero, refresh, s, d));
    rlx_status status = flight_begin(s, &f, d);
    if (status == RLX_OK) {
        status = start(s, run, here, f, d);
        if (status != RLX_OK && f->backend_ticket)
            s->device->backend->ops->wait(s->device->backend, f->backend_ticket, NULL);
        if (status != RLX_OK)
            flight_end(s, f);
    }
    if (status != RLX_OK) {
        store_end_run(s->store);
        return status;
    }
    *out = f;
    return RLX_OK;
}

/* A step that failed, or an index in the data that an op could not live with. */
static rlx_status check_report(const struct flight *f, struct diag *d)
{
    const struct run_report *r = &f->report;

    if (r->failed.status != RLX_OK)
        return diag_again(d, &r->failed, r->failed.status);
    if (r->step < 0)
        return RLX_OK;
    const struct step *st = &f->program->steps->step[r->step];
    diag_at(d, st->name, st->node, ir_node(ir_entry(f->program->mod), st->node)->label);
    return diag_fail(d, RLX_ERROR_INDEX, "%s: index %lld at position %lld is out of range",
                     st->name, (long long)r->value, (long long)r->position);
}

rlx_status whole_run_end(rlx_session *s, struct flight *f, const rlx_run_desc *run, struct diag *d)
{
    struct backend *b = s->device->backend;
    rlx_status status = RLX_OK;

    if (run)
        TRY(session_check_outputs(s, f, run, d));
    uint64_t start = observe_now(s);
    if (run)
        fetch(s, f, run, d);
    if (f->backend_ticket)
        status = b->ops->wait(b, f->backend_ticket, d);
    observe_span(s, "wait", start);
    store_end_run(s->store);
    if (status == RLX_OK)
        status = check_report(f, d);
    status = observe_end(s, f, status, d);
    start = observe_now(s);
    if (status == RLX_OK && run)
        status = download(s, f, run, d);
    observe_span(s, "readback", start);
    flight_end(s, f);
    return status;
}

static rlx_status find_flight(struct rlx_session *s, uint64_t ticket, struct flight **out,
                              struct diag *d)
{
    *out = flight_find(s, ticket);
    return *out ? RLX_OK
                : diag_fail(d, RLX_ERROR_STATE, "ticket %llu is not running",
                            (unsigned long long)ticket);
}

rlx_status whole_run(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    struct flight *f;

    TRY(whole_run_begin(s, run, true, &f, d));
    return whole_run_end(s, f, run, d);
}

rlx_status whole_submit(struct rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                        struct diag *d)
{
    struct flight *f;

    TRY(whole_run_begin(s, run, false, &f, d));
    *ticket = f->ticket;
    return RLX_OK;
}

rlx_status whole_poll(struct rlx_session *s, uint64_t ticket, bool *done, struct diag *d)
{
    struct flight *f;

    TRY(find_flight(s, ticket, &f, d));
    return s->device->backend->ops->poll(s->device->backend, f->backend_ticket, done, d);
}

rlx_status whole_wait(struct rlx_session *s, uint64_t ticket, const rlx_run_desc *run,
                      struct diag *d)
{
    struct flight *f;

    TRY(find_flight(s, ticket, &f, d));
    return whole_run_end(s, f, run, d);
}
