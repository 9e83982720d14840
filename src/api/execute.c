/* execute.c: one run: sizes, inputs, submit, wait, outputs. Nothing here allocates once the program
 * for a binding exists. */
#include <string.h>

#include "api/objects.h"
#include "base/str.h"

/* ---- the program for this run's sizes ---- */

static struct session_program *find_program(rlx_session *s)
{
    for (size_t i = 0; i < s->program_count; i++)
        if (memcmp(s->program[i].binding, s->binding, s->symbol_count * sizeof(int64_t)) == 0)
            return &s->program[i];
    return NULL;
}

/* The least recently used one makes room. */
static struct session_program *free_place(rlx_session *s)
{
    struct session_program *p = &s->program[0];

    if (s->program_count < SESSION_PROGRAMS)
        return &s->program[s->program_count];
    for (size_t i = 1; i < SESSION_PROGRAMS; i++)
        if (s->program[i].last_use < p->last_use)
            p = &s->program[i];
    return p;
}

static rlx_status choose_program(rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    struct session_program *p;
    struct program *made;

    TRY(bind_symbols(s, run, d));
    p = find_program(s);
    if (!p) {
        TRY(compile(s, s->binding, s->symbol_count, &made, d));
        p = free_place(s);
        if (p == &s->program[s->program_count])
            s->program_count++;
        else
            program_destroy(p->program);
        p->program = made;
        memcpy(p->binding, s->binding, s->symbol_count * sizeof(int64_t));
    }
    p->last_use = ++s->uses;
    s->current = p->program;
    return RLX_OK;
}

/* ---- inputs ---- */

static const struct program_slot *find_input(const struct program *p, rlx_str name)
{
    for (size_t i = 0; i < p->input_count; i++)
        if (str_eq(p->input[i].name, name))
            return &p->input[i];
    return NULL;
}

static const rlx_binding *find_binding(const rlx_binding *list, size_t count, rlx_str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(rlx_cstr(list[i].name), name))
            return &list[i];
    return NULL;
}

static rlx_status check_input(const rlx_session *s, const rlx_run_desc *run, size_t i,
                              struct diag *d)
{
    const rlx_binding *in = &run->inputs[i];
    rlx_str name = rlx_cstr(in->name);
    const struct program_slot *slot = find_input(s->current, name);
    char known[200];

    if (!slot)
        return diag_fail(d, RLX_ERROR_NAME, "there is no input \"%.*s\"; there are: %s",
                         STR_ARG(name),
                         leaf_names(ir_entry(s->model->mod), RLX_OP_input, known, sizeof known));
    if (find_binding(run->inputs, i, name))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "input \"%.*s\" is given twice", STR_ARG(name));
    if (in->tensor.dtype != slot->type.dtype && in->tensor.dtype != RLX_DTYPE_f32)
        return diag_fail(d, RLX_ERROR_DTYPE, "input \"%.*s\" takes %s (or f32), not %s",
                         STR_ARG(name), rlx_dtype_name(slot->type.dtype),
                         rlx_dtype_name(in->tensor.dtype));
    TRY(tensor_check(&in->tensor, &slot->type, "input", name, d));
    bool same = in->tensor.rank == slot->type.rank;
    for (int32_t k = 0; same && k < slot->type.rank; k++)
        same = in->tensor.dim[k] == slot->type.dim[k];
    if (!same)
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "input \"%.*s\" has rank %d and the right number of elements, but another "
                         "shape than the graph declares (rank %d)",
                         STR_ARG(name), in->tensor.rank, slot->type.rank);
    return RLX_OK;
}

static rlx_status check_inputs(const rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    const struct program *p = s->current;

    for (size_t i = 0; i < run->input_count; i++)
        TRY(check_input(s, run, i, d));
    for (size_t i = 0; i < p->input_count; i++) {
        if (p->input[i].value < 0 || p->steps->value[p->input[i].value].bytes == 0)
            continue; /* nothing reads it */
        if (!find_binding(run->inputs, run->input_count, p->input[i].name))
            return diag_fail(d, RLX_ERROR_MISSING_INPUT, "input \"%.*s\" has no value",
                             STR_ARG(p->input[i].name));
    }
    return RLX_OK;
}

static rlx_status upload(rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    for (size_t i = 0; i < run->input_count; i++) {
        const rlx_tensor *t = &run->inputs[i].tensor;
        size_t count = 0;
        tensor_count(t, &count);
        TRY(program_write(s->current, find_input(s->current, rlx_cstr(run->inputs[i].name)),
                          t->dtype, t->data, count, d));
    }
    return RLX_OK;
}

/* ---- outputs ---- */

static rlx_status find_output(const rlx_session *s, const char *name, size_t *out, struct diag *d)
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
    return diag_fail(d, RLX_ERROR_NAME, "there is no output \"%s\"; the first of %zu is \"%.*s\"",
                     name ? name : "", m->output_count, STR_ARG(m->output_name[0]));
}

static rlx_status check_outputs(const rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    for (size_t i = 0; i < run->output_count; i++) {
        size_t k;
        uint64_t need;
        const rlx_tensor *t = &run->outputs[i].tensor;
        TRY(find_output(s, run->outputs[i].name, &k, d));
        const struct ir_type *type = &s->current->output[k].type;
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

static rlx_status download(rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    for (size_t i = 0; i < run->output_count; i++) {
        size_t k, count;
        rlx_tensor *t = &run->outputs[i].tensor;
        TRY(find_output(s, run->outputs[i].name, &k, d));
        const struct program_slot *slot = &s->current->output[k];
        t->rank = slot->type.rank;
        memcpy(t->dim, slot->type.dim, sizeof t->dim);
        tensor_count(t, &count);
        TRY(program_read(s->current, slot, t->dtype, t->data, count, d));
    }
    return RLX_OK;
}

/* ---- the run ---- */

static void profile_step(void *user, int32_t step, uint64_t start, uint64_t end)
{
    const rlx_session *s = user;
    const struct steps *steps = s->current->steps;
    const struct step *st = &steps->step[step];
    rlx_profile_event e = {
        .step = st->name,
        .label = ir_node(ir_entry(s->current->mod), st->node)->label,
        .index = step,
        .node = st->node,
        .start_ns = start,
        .duration_ns = end - start,
    };

    for (uint32_t i = 0; i < st->count; i++) {
        const struct operand *o = &steps->operand[st->first + i];
        uint64_t bytes = steps->value[o->value].bytes;
        if (steps->value[o->value].flags & VALUE_SCRATCH)
            continue;
        e.bytes_read += o->role != ROLE_WRITE ? bytes : 0;
        e.bytes_written += o->role != ROLE_READ ? bytes : 0;
    }
    s->profile(s->profile_user, &e);
}

static rlx_status check_run(const rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    if (!s || !run)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "run" : "s");
    if (s->ticket)
        return diag_fail(d, RLX_ERROR_STATE, "the session is running: wait for it first");
    if ((run->input_count && !run->inputs) || (run->output_count && !run->outputs) ||
        (run->dim_count && !run->dims))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a list of the run is NULL but not empty");
    for (size_t i = 0; i < run->input_count; i++)
        if (!run->inputs[i].name)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "input %zu has no name", i);
    return RLX_OK;
}

static rlx_status submit(rlx_session *s, const rlx_run_desc *run, uint64_t *ticket, struct diag *d)
{
    struct backend *b;
    rlx_status status;

    TRY(check_run(s, run, d));
    b = s->device->backend;
    if (!s->model->is_static || run->dim_count)
        TRY(choose_program(s, run, d));
    TRY(check_inputs(s, run, d));
    TRY(check_outputs(s, run, d));
    TRY(store_begin_run(s->store, s->desc.params_default_zero, d));
    s->hooks = (struct run_hooks){profile_step, s};
    status = upload(s, run, d);
    if (status == RLX_OK)
        status = b->ops->submit(b, s->current->command, s->current->command_count,
                                s->profile ? &s->hooks : NULL, &s->report, ticket, d);
    if (status != RLX_OK) {
        store_end_run(s->store);
        return status;
    }
    s->ticket = *ticket;
    return RLX_OK;
}

/* An index in the data that an op could not live with. */
static rlx_status check_report(const rlx_session *s, struct diag *d)
{
    const struct run_report *r = &s->report;

    if (r->step < 0)
        return RLX_OK;
    const struct step *st = &s->current->steps->step[r->step];
    diag_at(d, st->name, st->node, ir_node(ir_entry(s->current->mod), st->node)->label);
    return diag_fail(d, RLX_ERROR_INDEX, "%s: index %lld at position %lld is out of range",
                     st->name, (long long)r->value, (long long)r->position);
}

static rlx_status finish(rlx_session *s, uint64_t ticket, const rlx_run_desc *run, struct diag *d)
{
    struct backend *b;
    rlx_status status;

    if (!s)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "s is NULL");
    if (s->ticket == 0 || s->ticket != ticket)
        return diag_fail(d, RLX_ERROR_STATE, "ticket %llu is not running",
                         (unsigned long long)ticket);
    if (run)
        TRY(check_outputs(s, run, d));
    b = s->device->backend;
    status = b->ops->wait(b, ticket, d);
    s->ticket = 0;
    store_end_run(s->store);
    TRY(status);
    TRY(check_report(s, d));
    return run ? download(s, run, d) : RLX_OK;
}

rlx_status rlx_session_submit(rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                              rlx_error *err)
{
    struct diag d;

    diag_init(&d, "run");
    if (!ticket)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "ticket is NULL");
    else
        submit(s, run, ticket, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_poll(rlx_session *s, uint64_t ticket, bool *done, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "run");
    if (!s || !done)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "done" : "s");
    else if (s->ticket == 0 || s->ticket != ticket)
        diag_fail(&d, RLX_ERROR_STATE, "ticket %llu is not running", (unsigned long long)ticket);
    else
        s->device->backend->ops->poll(s->device->backend, ticket, done, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_wait(rlx_session *s, uint64_t ticket, rlx_run_desc *run, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "run");
    finish(s, ticket, run, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_run(rlx_session *s, const rlx_run_desc *run, rlx_error *err)
{
    struct diag d;
    uint64_t ticket;

    diag_init(&d, "run");
    if (submit(s, run, &ticket, &d) == RLX_OK)
        finish(s, ticket, run, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_prepare(rlx_session *s, const rlx_run_desc *run, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "compile");
    if (check_run(s, run, &d) == RLX_OK && (!s->model->is_static || run->dim_count))
        choose_program(s, run, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_output_shape(rlx_session *s, size_t i, rlx_tensor *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else if (!s->current)
        diag_fail(&d, RLX_ERROR_STATE, "the model has symbolic dims: run it once first");
    else if (i >= s->model->output_count)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "there are %zu outputs, no number %zu",
                  s->model->output_count, i);
    else {
        const struct ir_type *t = &s->current->output[i].type;
        uint64_t bytes = 0;
        type_bytes(t, &bytes);
        *out = (rlx_tensor){.dtype = t->dtype, .rank = t->rank, .bytes = (size_t)bytes};
        memcpy(out->dim, t->dim, sizeof out->dim);
    }
    return diag_report(&d, err);
}
