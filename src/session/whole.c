/* whole.c: a session of a model that runs as one (session_whole): programs, states, inputs that
 * stay, and the weights it shares. Its runs are in whole_run.c. */
#include <string.h>

#include "plan/segments.h"
#include "session/session.h"

/* ---- opening ---- */

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

static rlx_status open_whole(struct rlx_session *s, struct diag *d)
{
    struct rlx_model *m = s->model;

    TRY(make_programs(s, d));
    TRY(make_flights(s, d));
    TRY(make_handles(s, d));
    if (!s->store)
        TRY((s->plan_only ? store_plan : store_open)(m, s->device, s->desc.max_buffer, &s->store,
                                                     d));
    TRY(make_states(s, d));
    return m->is_static ? session_compile_static(s, d) : RLX_OK; /* otherwise in the first run */
}

/* ---- closing ---- */

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

static void close_whole(struct rlx_session *s)
{
    end_flights(s);
    for (size_t i = 0; i < s->program_count; i++)
        compiled_program_destroy(&s->program[i]);
    if (s->handle)
        handles_release(s);
    memory_release(&s->state);
    if (s->store)
        store_close(s->store);
}

/* ---- clones ---- */

static rlx_status own_weights(struct rlx_session *s, struct store **out, struct diag *d)
{
    return store_clone(s->store, out, d);
}

static rlx_status copy_whole(struct rlx_session *from, unsigned flags, struct rlx_session *to,
                             struct diag *d)
{
    (void)flags; /* its store is its own already */
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

/* ---- its other sides ---- */

static rlx_status set_bound(struct rlx_session *s, size_t symbol, int64_t upper, struct diag *d)
{
    (void)symbol;
    (void)upper;
    (void)d;
    session_drop_programs(s);
    return RLX_OK;
}

static rlx_status write_param(struct rlx_session *s, const char *name, const rlx_tensor *value,
                              struct diag *d)
{
    return store_write(s->store, rlx_cstr(name), value, d);
}

/* Profiles are looked for in each run. */
static void set_profile(struct rlx_session *s)
{
    (void)s;
}

static rlx_status memory_of(struct rlx_session *s, rlx_memory_info *out, struct diag *d)
{
    TRY(session_need_program(s, d));
    const struct plan *p = s->current->plan;
    const struct recompute_report *again = &session_current_program(s)->recomputed;
    *out = (rlx_memory_info){
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
        .recomputed = again->nodes,
        .recomputed_flops = again->flops,
        .flops = again->flops_once,
        .kept = again->bytes_kept,
        .alive = again->bytes,
    };
    return RLX_OK;
}

static rlx_status output_shape(struct rlx_session *s, size_t i, rlx_tensor *out, struct diag *d)
{
    uint64_t bytes = 0;

    TRY(session_need_program(s, d));
    TRY(session_check_output(s, i, d));
    const struct ir_type *t = &s->current->output[i].type;
    type_bytes(t, &bytes);
    *out = (rlx_tensor){.dtype = t->dtype, .rank = t->rank, .bytes = (size_t)bytes};
    memcpy(out->dim, t->dim, sizeof out->dim);
    return RLX_OK;
}

static struct session_list parts_of(struct rlx_session *const *s)
{
    return (struct session_list){s, 1};
}

static struct rlx_session *part_with(struct rlx_session *s, const char *leaf)
{
    (void)leaf;
    return s;
}

const struct session_kind session_whole = {
    .open = open_whole,
    .close = close_whole,
    .own_weights = own_weights,
    .copy = copy_whole,
    .run = whole_run,
    .submit = whole_submit,
    .poll = whole_poll,
    .wait = whole_wait,
    .prepare = session_choose_program,
    .output_shape = output_shape,
    .memory = memory_of,
    .set_bound = set_bound,
    .write_param = write_param,
    .set_profile = set_profile,
    .parts = parts_of,
    .part_with = part_with,
};
