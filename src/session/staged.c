/* staged.c: a session of a model in parts (model/model_parts.c), which has a session per part.
 *
 * A run goes through the parts. After each, the counts it computed tell the sizes of what follows;
 * what later parts read, and outputs of the whole, is kept on the host, cut to what counts. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "run/convert.h"
#include "session/session.h"

struct held {
    rlx_tensor value; /* data: the slot's own, or what it was cut from */
    void *own;
    size_t room; /* of own */
    bool filled; /* in this run */
};

/* Where a part's profile goes. */
struct part_profile {
    struct rlx_session *whole;
    size_t part;
};

struct session_parts {
    rlx_session **session; /* by part */
    size_t count;
    struct held *held;        /* by slot */
    const char *const **name; /* by part, by input */
    const char *const **output_name;
    const char **symbol;          /* names, by symbol */
    bool *from_data;              /* by symbol: a cut has its size */
    rlx_binding *in;              /* room for the most that a part has */
    rlx_binding *out;             /* likewise */
    rlx_dim_size *dims;           /* one for each symbol */
    struct part_profile *profile; /* by part */
    struct flight result;         /* only its types: those of the last run's outputs */
    bool has_result;
};

/* ---- opening and closing ---- */

static const char **copy_names(struct arena *a, const rlx_str *name, size_t count)
{
    const char **out = arena_array(a, const char *, count);

    for (size_t i = 0; out && i < count; i++)
        if (!(out[i] = arena_str(a, name[i]).ptr))
            return NULL;
    return out;
}

/* Names of a part's inputs, and names of its outputs that nothing else has. */
static rlx_status name_values(struct rlx_session *s, size_t i, struct diag *d)
{
    const struct model_part *part = &s->model->parts->part[i];
    const struct ir_graph *g = ir_entry(part->model->mod);
    rlx_str *input = arena_array(&s->arena, rlx_str, part->input_count);
    size_t n = 0;

    if (!input)
        return diag_no_memory(d, part->input_count * sizeof *input);
    IR_EACH(node, g) {
        if (node->op == RLX_OP_input)
            input[n++] = ir_leaf_name(node);
    }
    s->parts->name[i] = copy_names(&s->arena, input, n);
    s->parts->output_name[i] =
        copy_names(&s->arena, part->model->output_name, part->model->output_count);
    return s->parts->name[i] && s->parts->output_name[i] ? RLX_OK : diag_no_memory(d, n);
}

static rlx_status make_room(struct rlx_session *s, struct diag *d)
{
    const struct model_parts *m = s->model->parts;
    struct session_parts *p = s->parts;
    size_t inputs = 0, outputs = s->model->output_count;

    for (size_t i = 0; i < m->count; i++) {
        const struct model_part *part = &m->part[i];
        inputs = part->input_count > inputs ? part->input_count : inputs;
        outputs = part->model->output_count > outputs ? part->model->output_count : outputs;
    }
    p->session = arena_array(&s->arena, rlx_session *, m->count);
    p->held = arena_array(&s->arena, struct held, m->slots);
    p->name = arena_array(&s->arena, const char *const *, m->count);
    p->output_name = arena_array(&s->arena, const char *const *, m->count);
    p->symbol = arena_array(&s->arena, const char *, s->symbol_count);
    p->from_data = arena_array(&s->arena, bool, s->symbol_count);
    p->in = arena_array(&s->arena, rlx_binding, inputs);
    p->out = arena_array(&s->arena, rlx_binding, outputs);
    p->dims = arena_array(&s->arena, rlx_dim_size, s->symbol_count);
    p->profile = arena_array(&s->arena, struct part_profile, m->count);
    p->result.type = arena_array(&s->arena, struct ir_type, s->model->output_count);
    if (!p->session || !p->held || !p->name || !p->output_name || !p->symbol || !p->from_data ||
        !p->in || !p->out || !p->dims || !p->profile || !p->result.type)
        return diag_no_memory(d, m->slots * sizeof *p->held);
    for (size_t i = 0; i < s->symbol_count; i++) {
        p->symbol[i] = arena_str(&s->arena, dim_symbol_name(s->dims, i)).ptr;
        if (!p->symbol[i])
            return diag_no_memory(d, 16);
    }
    for (size_t i = 0; i < m->cut_count; i++)
        p->from_data[m->cut[i].symbol] = true;
    return RLX_OK;
}

static rlx_status open_staged(struct rlx_session *s, struct diag *d)
{
    struct rlx_model *m = s->model;

    s->parts = arena_new(&s->arena, struct session_parts);
    if (!s->parts)
        return diag_no_memory(d, sizeof *s->parts);
    TRY(make_room(s, d));
    pthread_mutex_lock(&m->lock);
    if (!m->has_session) /* otherwise they cannot have changed */
        model_parts_share_params(m);
    m->has_session = true;
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < m->parts->count; i++) {
        TRY(name_values(s, i, d));
        TRY(session_create(m->parts->part[i].model, s->device, &s->desc, &s->parts->session[i], d));
        s->parts->count++;
    }
    return RLX_OK;
}

static void close_staged(struct rlx_session *s)
{
    struct session_parts *p = s->parts;

    for (size_t i = 0; p && i < p->count; i++)
        session_destroy(p->session[i]);
    for (size_t i = 0; p && p->held && i < s->model->parts->slots; i++)
        mem_free(&s->model->ctx->mem, p->held[i].own, p->held[i].room);
}

/* Each part clones its own. */
static rlx_status own_weights(struct rlx_session *s, struct store **out, struct diag *d)
{
    (void)s;
    (void)d;
    *out = NULL;
    return RLX_OK;
}

static rlx_status copy_staged(struct rlx_session *from, unsigned flags, struct rlx_session *to,
                              struct diag *d)
{
    struct rlx_session *copy;

    for (size_t i = 0; i < from->parts->count; i++) {
        TRY(session_clone(from->parts->session[i], flags, &copy, d));
        session_destroy(to->parts->session[i]);
        to->parts->session[i] = copy;
    }
    return RLX_OK;
}

/* ---- what a run is given ---- */

static const rlx_binding *find_given(const rlx_run_desc *run, const char *name)
{
    for (size_t i = 0; i < run->input_count; i++)
        if (strcmp(run->inputs[i].name, name) == 0)
            return &run->inputs[i];
    return NULL;
}

static rlx_status check_given(const struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    const struct ir_graph *g = ir_entry(s->model->mod);
    ir_value v;
    size_t symbol;

    for (size_t i = 0; i < run->input_count; i++) {
        const char *name = run->inputs[i].name;
        if (!ir_find_leaf(g, rlx_cstr(name), &v) || !model_is_input(s->model, v))
            return diag_fail(d, RLX_ERROR_NAME, "there is no input \"%s\"", name);
        if (find_given(run, name) != &run->inputs[i])
            return diag_fail(d, RLX_ERROR_ARGUMENT, "input \"%s\" is given twice", name);
    }
    for (size_t i = 0; i < run->dim_count; i++)
        if (run->dims[i].name && dim_find_symbol(s->dims, rlx_cstr(run->dims[i].name), &symbol) &&
            s->parts->from_data[symbol])
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "dim \"%s\" cannot be given: it depends on the data",
                             run->dims[i].name);
    return RLX_OK;
}

rlx_run_desc staged_part_run(struct rlx_session *s, size_t i, const rlx_run_desc *run)
{
    const struct model_part *part = &s->model->parts->part[i];
    struct session_parts *p = s->parts;
    rlx_run_desc own = {RLX_SIZED(rlx_run_desc), .inputs = p->in, .dims = p->dims};

    for (size_t k = 0; k < part->input_count; k++) {
        int32_t slot = part->input_slot[k];
        const rlx_binding *given = slot == NO_SLOT ? find_given(run, p->name[i][k]) : NULL;
        if (slot == NO_SLOT && !given)
            continue;
        p->in[own.input_count++] =
            given ? *given : (rlx_binding){p->name[i][k], p->held[slot].value};
    }
    for (size_t k = 0; k < s->symbol_count; k++)
        if (part->uses[k] && s->binding[k] >= 0)
            p->dims[own.dim_count++] = (rlx_dim_size){p->symbol[k], s->binding[k]};
    return own;
}

/* ---- what it gives ---- */

static rlx_status reserve(const struct rlx_session *s, struct held *h, size_t bytes, struct diag *d)
{
    if (h->room >= bytes && h->own)
        return RLX_OK;
    mem_free(&s->model->ctx->mem, h->own, h->room);
    h->room = bytes ? bytes : 1;
    h->own = mem_alloc(&s->model->ctx->mem, h->room);
    if (h->own)
        return RLX_OK;
    h->room = 0;
    return diag_no_memory(d, bytes);
}

static rlx_status make_part_outputs(struct rlx_session *s, size_t i, struct diag *d)
{
    const struct model_part *part = &s->model->parts->part[i];
    struct rlx_session *of_part = s->parts->session[i];

    for (size_t k = 0; k < part->model->output_count; k++) {
        struct held *h = &s->parts->held[part->output_slot[k]];
        TRY(of_part->kind->output_shape(of_part, k, &h->value, d));
        TRY(reserve(s, h, h->value.bytes, d));
        h->value.data = h->own;
        s->parts->out[k] = (rlx_binding){s->parts->output_name[i][k], h->value};
    }
    return RLX_OK;
}

static rlx_status run_part(struct rlx_session *s, size_t i, const rlx_run_desc *run, struct diag *d)
{
    const struct model_part *part = &s->model->parts->part[i];
    rlx_session *of_part = s->parts->session[i];
    rlx_run_desc own = staged_part_run(s, i, run);
    struct flight *f;

    TRY(whole_run_begin(of_part, &own, true, &f, d));
    rlx_status status = make_part_outputs(s, i, d);
    own.outputs = s->parts->out;
    own.output_count = status == RLX_OK ? part->model->output_count : 0;
    rlx_status ended = whole_run_end(of_part, f, &own, d);
    TRY(status);
    TRY(ended);
    for (size_t k = 0; k < part->model->output_count; k++)
        s->parts->held[part->output_slot[k]].filled = true;
    return RLX_OK;
}

/* The first n of an axis, of every row before it; where rows are one, they lie where they are. */
static rlx_status cut_value(const struct rlx_session *s, const rlx_tensor *from, int32_t axis,
                            int64_t n, struct held *to, struct diag *d)
{
    size_t rows = 1, inner = rlx_dtype_size(from->dtype);
    int64_t all = from->dim[axis];

    for (int32_t i = 0; i < from->rank; i++) {
        rows *= i < axis ? (size_t)from->dim[i] : 1;
        inner *= i > axis ? (size_t)from->dim[i] : 1;
    }
    to->value = *from;
    to->value.dim[axis] = n;
    to->value.bytes = rows * inner * (size_t)n;
    to->filled = true;
    if (rows <= 1 || n == all)
        return RLX_OK;
    TRY(reserve(s, to, to->value.bytes, d));
    to->value.data = to->own;
    for (size_t i = 0; i < rows; i++)
        if (to->value.bytes)
            memcpy((char *)to->own + i * inner * (size_t)n,
                   (const char *)from->data + i * inner * (size_t)all, inner * (size_t)n);
    return RLX_OK;
}

/* What is known now of the sizes that depend on data. */
static rlx_status take_counts(struct rlx_session *s, struct diag *d)
{
    struct session_parts *p = s->parts;

    for (size_t i = 0; i < s->model->parts->cut_count; i++) {
        const struct model_cut *c = &s->model->parts->cut[i];
        const rlx_tensor *count = &p->held[c->count].value;
        if (!p->held[c->count].filled)
            continue;
        int64_t n = count->dtype == RLX_DTYPE_i64 ? *(const int64_t *)count->data
                                                  : *(const int32_t *)count->data;
        bool cuts = c->leaf != NO_SLOT && p->held[c->padded].filled && !p->held[c->leaf].filled;
        int64_t most = cuts ? p->held[c->padded].value.dim[c->axis] : INT64_MAX;
        if (n < 0 || n > most)
            return diag_fail(d, RLX_ERROR_EXTENT, "dim \"%s\" is %lld, above its bound %lld",
                             p->symbol[c->symbol], (long long)n, (long long)most);
        s->binding[c->symbol] = n;
        if (cuts)
            TRY(cut_value(s, &p->held[c->padded].value, c->axis, n, &p->held[c->leaf], d));
    }
    return RLX_OK;
}

/* ---- runs ---- */

static rlx_status begin(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    if (s->flights)
        return diag_fail(d, RLX_ERROR_STATE,
                         "a run is in flight, and a model in parts has one at a time");
    TRY(check_given(s, run, d));
    TRY(session_bind_symbols(s, run, d));
    s->parts->has_result = false;
    for (size_t i = 0; i < s->model->parts->slots; i++)
        s->parts->held[i].filled = false;
    return RLX_OK;
}

static rlx_status prepare(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    TRY(begin(s, run, d));
    rlx_run_desc own = staged_part_run(s, 0, run);
    return session_prepare(s->parts->session[0], &own, d);
}

static rlx_status run_parts(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    struct session_parts *p = s->parts;

    TRY(begin(s, run, d));
    for (size_t i = 0; i < p->count; i++) {
        TRY(run_part(s, i, run, d));
        TRY(take_counts(s, d));
    }
    for (size_t i = 0; i < s->model->output_count; i++) {
        const rlx_tensor *t = &p->held[s->model->parts->output_slot[i]].value;
        p->result.type[i] = (struct ir_type){.dtype = t->dtype, .rank = t->rank};
        memcpy(p->result.type[i].dim, t->dim, sizeof t->dim);
    }
    s->has_run = true;
    p->has_result = true;
    return RLX_OK;
}

static rlx_status read_outputs(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    size_t k = 0, count = 0;

    TRY(session_check_outputs(s, &s->parts->result, run, d));
    for (size_t i = 0; i < run->output_count; i++) {
        rlx_tensor *t = &run->outputs[i].tensor;
        TRY(session_find_output(s, run->outputs[i].name, &k, d));
        const rlx_tensor *from = &s->parts->held[s->model->parts->output_slot[k]].value;
        t->rank = from->rank;
        memcpy(t->dim, from->dim, sizeof t->dim);
        if (tensor_count(from, &count) && count)
            convert(t->dtype, t->data, from->dtype, from->data, count);
    }
    return RLX_OK;
}

static rlx_status run_staged(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    TRY(run_parts(s, run, d));
    return read_outputs(s, run, d);
}

/* The sizes of later parts are known when earlier ones are done: all of it runs at once. */
static rlx_status submit(struct rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                         struct diag *d)
{
    TRY(run_parts(s, run, d));
    s->flights = 1;
    *ticket = ++s->tickets;
    return RLX_OK;
}

static rlx_status check_ticket(const struct rlx_session *s, uint64_t ticket, struct diag *d)
{
    if (s->flights && ticket == s->tickets)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_STATE, "ticket %llu is not running", (unsigned long long)ticket);
}

static rlx_status poll(struct rlx_session *s, uint64_t ticket, bool *done, struct diag *d)
{
    TRY(check_ticket(s, ticket, d));
    *done = true;
    return RLX_OK;
}

static rlx_status wait(struct rlx_session *s, uint64_t ticket, const rlx_run_desc *run,
                       struct diag *d)
{
    TRY(check_ticket(s, ticket, d));
    if (run)
        TRY(read_outputs(s, run, d));
    s->flights = 0;
    return RLX_OK;
}

static rlx_status output_shape(struct rlx_session *s, size_t i, rlx_tensor *out, struct diag *d)
{
    TRY(session_check_output(s, i, d));
    if (!s->parts->has_result)
        return diag_fail(d, RLX_ERROR_STATE,
                         "the sizes of a model in parts depend on data: run it first");
    *out = s->parts->held[s->model->parts->output_slot[i]].value;
    out->data = NULL;
    return RLX_OK;
}

/* ---- its other sides ---- */

/* Steps are numbered through the parts. */
static void forward_profile(void *user, const rlx_profile_event *e)
{
    const struct part_profile *p = user;
    rlx_profile_event numbered = *e;

    for (size_t i = 0; i < p->part; i++) {
        const struct program *before = p->whole->parts->session[i]->current;
        numbered.index += before ? (int32_t)before->steps->step_count : 0;
    }
    p->whole->profile(p->whole->profile_user, &numbered);
}

static void set_profile(struct rlx_session *s)
{
    for (size_t i = 0; i < s->parts->count; i++) {
        s->parts->profile[i] = (struct part_profile){s, i};
        session_set_profile(s->parts->session[i], s->profile ? forward_profile : NULL,
                            &s->parts->profile[i]);
    }
}

static rlx_status memory_of(struct rlx_session *s, rlx_memory_info *out, struct diag *d)
{
    rlx_memory_info sum = {RLX_SIZED(rlx_memory_info)}, one = {RLX_SIZED(rlx_memory_info)};

    for (size_t i = 0; i < s->parts->count; i++) {
        struct rlx_session *part = s->parts->session[i];
        TRY(part->kind->memory(part, &one, d));
        sum.weights += one.weights;
        sum.constants += one.constants;
        sum.activations += one.activations;
        sum.state += one.state;
        sum.weight_copies += one.weight_copies;
        sum.lower_bound += one.lower_bound;
        sum.unshared += one.unshared;
        sum.steps += one.steps;
        sum.in_place += one.in_place;
        sum.buffers += one.buffers;
    }
    *out = sum;
    return RLX_OK;
}

static rlx_status set_bound(struct rlx_session *s, size_t symbol, int64_t upper, struct diag *d)
{
    for (size_t i = 0; i < s->parts->count; i++)
        if (s->model->parts->part[i].uses[symbol])
            TRY(session_set_bound(s->parts->session[i], s->parts->symbol[symbol], upper, d));
    return RLX_OK;
}

static struct session_list parts_of(struct rlx_session *const *s)
{
    return (struct session_list){(*s)->parts->session, (*s)->parts->count};
}

static bool has_leaf(const struct rlx_session *s, rlx_str name)
{
    ir_value v;

    return ir_find_leaf(ir_entry(s->model->mod), name, &v);
}

static struct rlx_session *part_with(struct rlx_session *s, const char *leaf)
{
    for (size_t i = 0; i < s->parts->count; i++)
        if (has_leaf(s->parts->session[i], rlx_cstr(leaf)))
            return s->parts->session[i];
    return s->parts->session[0];
}

static rlx_status write_param(struct rlx_session *s, const char *name, const rlx_tensor *value,
                              struct diag *d)
{
    size_t i;

    TRY(model_find_param(s->model, rlx_cstr(name), &i, d));
    for (size_t k = 0; k < s->parts->count; k++)
        if (has_leaf(s->parts->session[k], rlx_cstr(name)))
            TRY(session_set_param(s->parts->session[k], name, value, d));
    return RLX_OK;
}

const struct session_kind session_staged = {
    .open = open_staged,
    .close = close_staged,
    .own_weights = own_weights,
    .copy = copy_staged,
    .run = run_staged,
    .submit = submit,
    .poll = poll,
    .wait = wait,
    .prepare = prepare,
    .output_shape = output_shape,
    .memory = memory_of,
    .set_bound = set_bound,
    .write_param = write_param,
    .set_profile = set_profile,
    .parts = parts_of,
    .part_with = part_with,
};
