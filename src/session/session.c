/* session.c: a model opened on a device: made, given params and states, taken down. What happens in
 * a run is in execute.c. */
#include <string.h>

#include "base/desc.h"
#include "base/str.h"
#include "compile/stage_options.h"
#include "model/dims.h"
#include "plan/segments.h"
#include "session/observe.h"
#include "session/session.h"

/* States lie one after the other in memory of the session's own. */
static rlx_status lay_out_states(struct rlx_session *s, struct memory_layout *l, struct diag *d)
{
    const struct ir_graph *g = ir_entry(s->model->mod);
    uint64_t bytes;

    IR_EACH(n, g) {
        if (n->op != RLX_OP_state)
            continue;
        if (!type_bytes(&n->type, &bytes))
            return diag_fail(d, RLX_ERROR_LIMIT, "the states together overflow 64 bits");
        diag_at(d, op_info(n->op)->name, ir_id(g, n), n->label);
        TRY(memory_layout_add(l, "state", ir_leaf_name(n), bytes, &s->state_offset[ir_id(g, n)],
                              d));
    }
    diag_at(d, NULL, -1, STR(""));
    return RLX_OK;
}

static rlx_status make_states(struct rlx_session *s, struct diag *d)
{
    size_t count = ir_entry(s->model->mod)->node.len;
    uint64_t *used = arena_array(&s->arena, uint64_t, count + 1);
    struct memory_layout l;

    s->state_offset = arena_array(&s->arena, uint64_t, count);
    if (!s->state_offset || !used)
        return diag_no_memory(d, count * sizeof(uint64_t));
    TRY(memory_layout_begin(&l, s->desc.max_buffer, STORE_ALIGNMENT, used, d));
    TRY(lay_out_states(s, &l, d));
    if (s->plan_only) {
        s->state.bytes = memory_layout_bytes(&l);
        return RLX_OK;
    }
    TRY(budget_check(s, memory_layout_bytes(&l), d));
    return memory_alloc(s->device->backend, &s->model->ctx->mem, l.segment, l.used, l.count,
                        &s->state, d);
}

static rlx_status check_desc(const rlx_session_desc *desc, struct diag *d)
{
    uint64_t a = desc->debug->alignment;

    if (a && (a < 16 || a > 65536 || (a & (a - 1))))
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "alignment must be a power of two from 16 to 65536, not %llu",
                         (unsigned long long)a);
    if (desc->in_flight > 64 || desc->programs > 1024)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s must be at most %d, not %u",
                         desc->in_flight > 64 ? "in_flight" : "programs",
                         desc->in_flight > 64 ? 64 : 1024,
                         (unsigned)(desc->in_flight > 64 ? desc->in_flight : desc->programs));
    if (desc->loop_limit < 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "loop_limit is negative");
    return RLX_OK;
}

/* Arrays by symbol. */
static rlx_status make_symbols(struct rlx_session *s, struct diag *d)
{
    size_t n = s->symbol_count = dim_symbol_count(s->model->mod->dims);
    struct arena *a = &s->arena;

    s->binding = arena_array(a, int64_t, n);
    s->key = arena_array(a, int64_t, n);
    s->upper = arena_array(a, int64_t, n);
    s->bound = arena_array(a, int64_t, n);
    s->by_value = arena_array(a, bool, n);
    s->keep = arena_array(a, bool, n);
    s->dims = dim_table_copy(s->model->mod->dims, &s->model->ctx->mem);
    if (!s->binding || !s->key || !s->upper || !s->bound || !s->by_value || !s->keep || !s->dims)
        return diag_no_memory(d, n * sizeof(int64_t));
    for (size_t i = 0; i < n; i++) {
        s->binding[i] = -1;
        s->bound[i] = dim_symbol_bound(s->dims, i);
    }
    s->uses_rows = dim_symbol_is_used(s->dims, SYMBOL_ROWS);
    return RLX_OK;
}

static rlx_status make_programs(struct rlx_session *s, struct diag *d)
{
    s->desc.programs = s->desc.programs ? s->desc.programs : SESSION_PROGRAMS;
    s->program = arena_array(&s->arena, struct compiled_program, s->desc.programs);
    if (!s->program)
        return diag_no_memory(d, s->desc.programs * sizeof *s->program);
    for (size_t i = 0; i < s->desc.programs; i++) {
        s->program[i].binding = arena_array(&s->arena, int64_t, s->symbol_count);
        if (!s->program[i].binding)
            return diag_no_memory(d, s->symbol_count * sizeof(int64_t));
    }
    return RLX_OK;
}

static rlx_status make_flights(struct rlx_session *s, struct diag *d)
{
    s->flight = arena_array(&s->arena, struct flight, s->desc.in_flight);
    if (!s->flight)
        return diag_no_memory(d, s->desc.in_flight * sizeof *s->flight);
    for (size_t i = 0; i < s->desc.in_flight; i++) {
        s->flight[i].type = arena_array(&s->arena, struct ir_type, s->model->output_count);
        s->flight[i].offset = arena_array(&s->arena, uint64_t, s->model->output_count);
        s->flight[i].used = arena_array(&s->arena, uint64_t, s->model->output_count + 1);
        s->flight[i].wanted = arena_array(&s->arena, struct span, s->model->output_count);
        if (!s->flight[i].type || !s->flight[i].offset || !s->flight[i].used ||
            !s->flight[i].wanted)
            return diag_no_memory(d, s->model->output_count * sizeof(struct ir_type));
    }
    return RLX_OK;
}

/* One for every input, bound or not. */
static rlx_status make_handles(struct rlx_session *s, struct diag *d)
{
    const struct ir_graph *g = ir_entry(s->model->mod);
    size_t count = ir_inputs(g, NULL, 0), n = 0;

    s->handle = arena_array(&s->arena, struct handle, count);
    s->mark = arena_alloc_array(&s->arena, count, upload_mark_size(), 16);
    if (!s->handle || !s->mark)
        return diag_no_memory(d, count * sizeof *s->handle);
    memset(s->mark, 0, count * upload_mark_size());
    IR_EACH(node, g) {
        if (node->op == RLX_OP_input)
            s->handle[n++].leaf = ir_id(g, node);
    }
    s->handle_count = count;
    return RLX_OK;
}

static rlx_status build(struct rlx_session *s, struct store *store, struct diag *d)
{
    s->store = store;
    TRY(make_symbols(s, d));
    if (s->model->parts)
        return parts_open(s, d); /* the rest is theirs */
    TRY(make_programs(s, d));
    TRY(make_flights(s, d));
    TRY(make_handles(s, d));
    if (!store)
        TRY((s->plan_only ? store_plan : store_open)(s->model, s->device, s->desc.max_buffer,
                                                     &s->store, d));
    TRY(make_states(s, d));
    return s->model->is_static ? compile_static(s, d) : RLX_OK; /* else in the first run */
}

/* store NULL: the one that the model's sessions on the device share. */
static rlx_status open_session(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                               struct store *store, bool plan_only, rlx_session **out,
                               struct diag *d)
{
    rlx_session *s = mem_alloc(&m->ctx->mem, sizeof *s);
    if (!s)
        return diag_no_memory(d, sizeof *s);
    s->model = m;
    s->device = dev;
    s->plan_only = plan_only;
    s->desc = *desc;
    s->debug = *desc->debug;
    s->desc.debug = &s->debug;
    s->desc.in_flight = desc->in_flight ? desc->in_flight : SESSION_FLIGHTS;
    dev->backend->ops->describe(dev->backend, &s->target);
    if (!desc->max_buffer || (s->target.max_buffer && s->target.max_buffer < desc->max_buffer))
        s->desc.max_buffer = s->target.max_buffer;
    s->target.max_buffer = s->desc.max_buffer;
    if (s->debug.alignment && s->debug.alignment < s->target.least_alignment)
        s->debug.alignment = s->target.least_alignment;
    budget_open(s);
    arena_init(&s->arena, &m->ctx->mem);
    model_retain(m);
    device_retain(dev);
    rlx_status status = observe_open(s, d);
    if (status == RLX_OK)
        status = build(s, store, d);
    if (status != RLX_OK) {
        rlx_session_destroy(s);
        return status;
    }
    *out = s;
    return RLX_OK;
}

static rlx_status create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                         bool plan_only, rlx_session **out, struct diag *d)
{
    rlx_session_desc resolved = {RLX_SIZED(rlx_session_desc)};

    if (!m || !dev || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !dev ? "dev" : "out");
    if (m->ctx != dev->ctx)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "model and device are of different contexts");
    TRY(DESC_READ(rlx_session_desc, &resolved, desc, d));
    rlx_debug_desc debug = *debug_options(&resolved);
    flags_apply(m->ctx, &resolved, &debug);
    resolved.debug = &debug;
    TRY(check_desc(&resolved, d));
    return open_session(m, dev, &resolved, NULL, plan_only, out, d);
}

rlx_status session_plan_only(rlx_model *m, rlx_device *dev, rlx_session **out, struct diag *d)
{
    TRY(model_is_whole(m, "be planned before it runs", d));
    return create(m, dev, NULL, true, out, d);
}

rlx_status rlx_session_create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                              rlx_session **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "compile");
    create(m, dev, desc, false, out, &d);
    return diag_report(&d, err);
}

/* Whatever is still running is waited for. */
static void end_flights(rlx_session *s)
{
    struct backend *b = s->device->backend;

    for (size_t i = 0; s->flight && i < s->desc.in_flight; i++) {
        struct flight *f = &s->flight[i];
        if (f->ticket) {
            if (f->backend_ticket)
                b->ops->wait(b, f->backend_ticket, NULL);
            store_end_run(s->store);
        }
        memory_release(&f->outputs);
    }
}

void rlx_session_destroy(rlx_session *s)
{
    if (!s)
        return;
    const rlx_allocator *mem = &s->model->ctx->mem;
    end_flights(s);
    if (s->parts)
        parts_close(s);
    for (size_t i = 0; i < s->program_count; i++)
        compiled_program_destroy(&s->program[i]);
    if (s->handle)
        handles_release(s);
    memory_release(&s->state);
    if (s->store)
        store_close(s->store);
    dim_table_destroy(s->dims);
    rlx_device_close(s->device);
    observe_close(s);
    arena_free(&s->arena);
    rlx_model *m = s->model;
    mem_free(mem, s, sizeof *s);
    rlx_model_destroy(m);
}

/* ---- clones ---- */

static rlx_status copy_life(rlx_session *from, rlx_session *to, struct diag *d)
{
    for (size_t i = 0; i < from->symbol_count; i++) {
        to->bound[i] = from->bound[i];
        to->by_value[i] = from->by_value[i];
    }
    dim_table_destroy(to->dims);
    to->dims = dim_table_copy(from->dims, &from->model->ctx->mem); /* with the feeds' rows */
    if (!to->dims)
        return diag_no_memory(d, 0);
    TRY(memory_copy(&to->state, &from->state, d));
    return handles_copy(from, to, d);
}

static rlx_status clone_session(rlx_session *s, unsigned flags, rlx_session **out, struct diag *d)
{
    struct store *own = NULL;
    rlx_session *made;

    TRY(check_idle(s, out, s, d));
    if (flags & ~RLX_CLONE_OWN_WEIGHTS)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no flag %#x", flags);
    if (flags & RLX_CLONE_OWN_WEIGHTS && !s->parts)
        TRY(store_clone(s->store, &own, d));
    rlx_status status = open_session(s->model, s->device, &s->desc, own, false, &made, d);
    if (status != RLX_OK)
        return status; /* own went with the session that could not be */
    status = s->parts ? parts_clone(s, flags, made, d) : copy_life(s, made, d);
    if (status != RLX_OK) {
        rlx_session_destroy(made);
        return status;
    }
    made->profile = s->profile;
    made->profile_user = s->profile_user;
    if (made->parts)
        parts_set_profile(made);
    *out = made;
    return RLX_OK;
}

rlx_status rlx_session_clone(rlx_session *s, unsigned flags, rlx_session **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "clone");
    clone_session(s, flags, out, &d);
    return diag_report(&d, err);
}

/* ---- bounds ---- */

static rlx_status find_symbol(rlx_session *s, const char *dim, const void *other, size_t *out,
                              struct diag *d)
{
    TRY(check_idle(s, dim, other, d));
    return find_dim(s->model->mod->dims, dim, out, d);
}

static rlx_status set_bound(rlx_session *s, const char *dim, int64_t upper, struct diag *d)
{
    size_t symbol;

    TRY(find_symbol(s, dim, dim, &symbol, d));
    if (upper < 1)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the bound of \"%s\" must be at least 1, not %lld",
                         dim, (long long)upper);
    if (s->has_run)
        return diag_fail(d, RLX_ERROR_STATE, "the bound of \"%s\" must be set before the first run",
                         dim);
    for (size_t i = 0; i < s->handle_count; i++)
        if (s->handle[i].buffer)
            return diag_fail(d, RLX_ERROR_STATE, "set the bound of \"%s\" before handles are bound",
                             dim);
    if (s->parts)
        TRY(parts_set_bound(s, symbol, upper, d));
    else
        drop_programs(s);
    s->bound[symbol] = upper;
    s->by_value[symbol] = false;
    return RLX_OK;
}

rlx_status rlx_session_set_bound(rlx_session *s, const char *dim, int64_t upper, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    set_bound(s, dim, upper, &d);
    return diag_report(&d, err);
}

/* The parts of a model have the symbols of the whole. */
static bool is_by_value(rlx_session *s, size_t symbol)
{
    struct session_list l = session_parts(&s);
    bool any = false;

    for (size_t i = 0; i < l.count; i++)
        any |= l.at[i]->by_value[symbol];
    return any;
}

rlx_status rlx_session_bound(rlx_session *s, const char *dim, rlx_bound_info *out, rlx_error *err)
{
    struct diag d;
    size_t symbol;

    diag_init(&d, "session");
    if (find_symbol(s, dim, out, &symbol, &d) == RLX_OK) {
        const rlx_bound_info own = {RLX_SIZED(rlx_bound_info), s->bound[symbol],
                                    is_by_value(s, symbol)};
        INFO_WRITE(rlx_bound_info, &own, out, &d);
    }
    return diag_report(&d, err);
}

/* ---- params and states ---- */

rlx_status check_idle(const rlx_session *s, const void *a, const void *b, struct diag *d)
{
    if (!s || !a || !b)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !s ? "s" : !a ? "name" : "value");
    if (s->flights)
        return diag_fail(d, RLX_ERROR_STATE, "the session is running: wait for it first");
    return RLX_OK;
}

static rlx_status write_param(rlx_session *s, const char *name, const rlx_tensor *value,
                              struct diag *d)
{
    return s->parts ? parts_write_param(s, name, value, d)
                    : store_write(s->store, rlx_cstr(name), value, d);
}

rlx_status rlx_session_set_param(rlx_session *s, const char *name, const rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    if (check_idle(s, name, value, &d) == RLX_OK)
        write_param(s, name, value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_get_param(rlx_session *s, const char *name, rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    if (check_idle(s, name, value, &d) == RLX_OK)
        store_read(part_with_leaf(s, name)->store, rlx_cstr(name), value, &d);
    return diag_report(&d, err);
}

static rlx_status set_bytes(rlx_session *s, const char *name, const void *data, size_t bytes,
                            struct diag *d)
{
    size_t i;

    TRY(check_idle(s, name, data ? data : (bytes ? NULL : ""), d));
    TRY(model_find_param(s->model, rlx_cstr(name), &i, d));
    const struct ir_type *t = ir_type_of(ir_entry(s->model->mod), s->model->param[i].node);
    if (bytes != s->model->param[i].bytes)
        return diag_fail(d, RLX_ERROR_SIZE, "param \"%s\" has %llu bytes, %zu were given", name,
                         (unsigned long long)s->model->param[i].bytes, bytes);
    rlx_tensor value = {.dtype = t->dtype, .rank = t->rank, .data = (void *)data, .bytes = bytes};
    memcpy(value.dim, t->dim, sizeof value.dim);
    return write_param(s, name, &value, d);
}

rlx_status rlx_session_set_param_bytes(rlx_session *s, const char *name, const void *data,
                                       size_t bytes, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    set_bytes(s, name, data, bytes, &d);
    return diag_report(&d, err);
}

static rlx_status find_state(const rlx_session *s, const char *name, const rlx_tensor *value,
                             ir_value *out, struct span *span, struct diag *d)
{
    char known[200];

    TRY(check_idle(s, name, value, d));
    const struct ir_graph *g = ir_entry(s->model->mod);
    if (!ir_find_leaf(g, rlx_cstr(name), out) || ir_node(g, *out)->op != RLX_OP_state)
        return diag_fail(d, RLX_ERROR_NAME, "there is no state \"%s\"; there are: %s", name,
                         leaf_names(g, RLX_OP_state, known, sizeof known));
    uint64_t bytes = 0;
    type_bytes(ir_type_of(g, *out), &bytes);
    *span = memory_span(&s->state, s->state_offset[*out], bytes);
    return RLX_OK;
}

static rlx_status set_state(rlx_session *s, const char *name, const rlx_tensor *value,
                            struct diag *d)
{
    ir_value v;
    size_t count;
    struct span span;

    TRY(find_state(s, name, value, &v, &span, d));
    const struct ir_type *t = ir_type_of(ir_entry(s->model->mod), v);
    TRY(leaf_check(s->model, value, t, "state", rlx_cstr(name), d));
    tensor_count(value, &count);
    return span_write(s->device->backend, span, t->dtype, value->dtype, value->data, count, d);
}

rlx_status rlx_session_set_state(rlx_session *s, const char *name, const rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "state");
    set_state(part_with_leaf(s, name), name, value, &d);
    return diag_report(&d, err);
}

static rlx_status get_state(rlx_session *s, const char *name, rlx_tensor *value, struct diag *d)
{
    ir_value v;
    size_t count;
    struct span span;

    TRY(find_state(s, name, value, &v, &span, d));
    const struct ir_type *t = ir_type_of(ir_entry(s->model->mod), v);
    value->rank = t->rank;
    memcpy(value->dim, t->dim, sizeof value->dim);
    TRY(tensor_check(value, t, "state", rlx_cstr(name), d));
    tensor_count(value, &count);
    return span_read(s->device->backend, span, t->dtype, value->dtype, value->data, count, d);
}

rlx_status rlx_session_get_state(rlx_session *s, const char *name, rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "state");
    get_state(part_with_leaf(s, name), name, value, &d);
    return diag_report(&d, err);
}

void rlx_session_set_profile(rlx_session *s, rlx_profile_fn fn, void *user)
{
    if (!s || s->flights)
        return;
    s->profile = fn;
    s->profile_user = user;
    if (s->parts)
        parts_set_profile(s);
}

rlx_status rlx_session_memory(rlx_session *s, rlx_memory_info *out, rlx_error *err)
{
    rlx_memory_info own = {RLX_SIZED(rlx_memory_info)};
    struct diag d;

    diag_init(&d, "session");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else if (s->parts)
        parts_memory(s, &own, &d);
    else if (!s->current)
        diag_fail(&d, RLX_ERROR_STATE, "the model has symbolic dims: run it once first");
    else {
        const struct plan *p = s->current->plan;
        own = (rlx_memory_info){
            RLX_SIZED(rlx_memory_info),
            .weights = p->held[REGION_WEIGHTS],
            .weight_copies = store_copy_bytes(s->store),
            .constants = p->held[REGION_CONSTS],
            .activations = p->held[REGION_ACTS],
            .state = p->held[REGION_STATE],
            .lower_bound = p->lower_bound,
            .unshared = p->unshared,
            .steps = (uint32_t)s->current->steps->step_count,
            .in_place = p->in_place,
            .buffers = (uint32_t)segment_count(p->segment, p->size[REGION_ACTS]),
        };
    }
    if (d.count == 0)
        INFO_WRITE(rlx_memory_info, &own, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_compiled(const rlx_session *s, rlx_compiled_info *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else if (session_is_whole(s, "tell of one program", &d) == RLX_OK)
        *out = s->compiled;
    return diag_report(&d, err);
}
