/* session.c: a model opened on a device: made, given params and states, taken down. What happens in
 * a run is in execute.c. */
#include <string.h>

#include "api/objects.h"
#include "base/str.h"

/* States lie one after the other in a buffer of the session's own. */
static rlx_status make_states(struct rlx_session *s, struct diag *d)
{
    const struct ir_graph *g = ir_entry(s->model->mod);
    struct backend *b = s->device->backend;
    uint64_t at = 0, bytes;

    s->state_offset = arena_array(&s->arena, uint64_t, g->node.len);
    if (!s->state_offset)
        return diag_no_memory(d, g->node.len * sizeof(uint64_t));
    IR_EACH(n, g) {
        if (n->op != RLX_OP_state)
            continue;
        s->state_offset[ir_id(g, n)] = at;
        if (!type_bytes(&n->type, &bytes) || bytes > INT64_MAX - 512 - at)
            return diag_fail(d, RLX_ERROR_LIMIT, "the states together overflow 64 bits");
        at += (bytes + 255) / 256 * 256;
    }
    return b->ops->alloc(b, at, &s->state, d);
}

static rlx_status check_desc(const rlx_session_desc *desc, struct diag *d)
{
    uint64_t a = desc->alignment;

    if (a && (a < 16 || a > 65536 || (a & (a - 1))))
        return diag_fail(d, RLX_ERROR_ARGUMENT,
                         "alignment must be a power of two from 16 to 65536, not %llu",
                         (unsigned long long)a);
    if (desc->loop_limit < 0)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "loop_limit is negative");
    return RLX_OK;
}

static rlx_status build(struct rlx_session *s, struct diag *d)
{
    s->symbol_count = dim_symbol_count(s->model->mod->dims);
    s->binding = arena_array(&s->arena, int64_t, s->symbol_count);
    s->program = arena_array(&s->arena, struct session_program, SESSION_PROGRAMS);
    if (!s->binding || !s->program)
        return diag_no_memory(d, s->symbol_count * sizeof(int64_t));
    for (size_t i = 0; i < SESSION_PROGRAMS; i++) {
        s->program[i].binding = arena_array(&s->arena, int64_t, s->symbol_count);
        if (!s->program[i].binding)
            return diag_no_memory(d, s->symbol_count * sizeof(int64_t));
    }
    TRY(store_open(s->model, s->device, &s->store, d));
    TRY(make_states(s, d));
    if (!s->model->is_static)
        return RLX_OK; /* compiled when a run tells the sizes */
    for (size_t i = 0; i < s->symbol_count; i++)
        s->program[0].binding[i] = s->binding[i] = -1;
    TRY(compile(s, s->binding, s->symbol_count, &s->program[0].program, d));
    s->current = s->program[0].program;
    s->program_count = 1;
    return RLX_OK;
}

static rlx_status create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                         rlx_session **out, struct diag *d)
{
    static const rlx_session_desc zero;
    rlx_session *s;

    if (!m || !dev || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !dev ? "dev" : "out");
    if (m->ctx != dev->ctx)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "model and device are of different contexts");
    desc = desc ? desc : &zero;
    TRY(check_desc(desc, d));
    s = mem_alloc(&m->ctx->mem, sizeof *s);
    if (!s)
        return diag_no_memory(d, sizeof *s);
    s->model = m;
    s->device = dev;
    s->desc = *desc;
    arena_init(&s->arena, &m->ctx->mem);
    model_retain(m);
    device_retain(dev);
    rlx_status status = build(s, d);
    if (status != RLX_OK) {
        rlx_session_destroy(s);
        return status;
    }
    *out = s;
    return RLX_OK;
}

rlx_status rlx_session_create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                              rlx_session **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "compile");
    create(m, dev, desc, out, &d);
    return diag_report(&d, err);
}

void rlx_session_destroy(rlx_session *s)
{
    if (!s)
        return;
    const rlx_allocator *mem = &s->model->ctx->mem;
    struct backend *b = s->device->backend;
    if (s->ticket) {
        b->ops->wait(b, s->ticket, NULL);
        store_end_run(s->store);
    }
    for (size_t i = 0; i < s->program_count; i++)
        program_destroy(s->program[i].program);
    b->ops->release(b, s->state);
    if (s->store)
        store_close(s->store);
    rlx_device_close(s->device);
    arena_free(&s->arena);
    rlx_model *m = s->model;
    mem_free(mem, s, sizeof *s);
    rlx_model_destroy(m);
}

/* ---- params and states ---- */

static rlx_status check_idle(const rlx_session *s, const void *a, const void *b, struct diag *d)
{
    if (!s || !a || !b)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !s ? "s" : !a ? "name" : "value");
    if (s->ticket)
        return diag_fail(d, RLX_ERROR_STATE, "the session is running: wait for it first");
    return RLX_OK;
}

rlx_status rlx_session_set_param(rlx_session *s, const char *name, const rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    if (check_idle(s, name, value, &d) == RLX_OK)
        store_write(s->store, rlx_cstr(name), value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_get_param(rlx_session *s, const char *name, rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    if (check_idle(s, name, value, &d) == RLX_OK)
        store_read(s->store, rlx_cstr(name), value, &d);
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
    return store_write(s->store, rlx_cstr(name), &value, d);
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
    *span = (struct span){s->state, s->state_offset[*out], 0};
    type_bytes(ir_type_of(g, *out), &span->bytes);
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
    TRY(tensor_check(value, t, "state", rlx_cstr(name), d));
    tensor_count(value, &count);
    return span_write(s->device->backend, span, t->dtype, value->dtype, value->data, count, d);
}

rlx_status rlx_session_set_state(rlx_session *s, const char *name, const rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "state");
    set_state(s, name, value, &d);
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
    get_state(s, name, value, &d);
    return diag_report(&d, err);
}

void rlx_session_set_profile(rlx_session *s, rlx_profile_fn fn, void *user)
{
    if (!s || s->ticket)
        return;
    s->profile = fn;
    s->profile_user = user;
}

rlx_status rlx_session_memory(rlx_session *s, rlx_memory_info *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else if (!s->current)
        diag_fail(&d, RLX_ERROR_STATE, "the model has symbolic dims: run it once first");
    else {
        const struct plan *p = s->current->plan;
        *out = (rlx_memory_info){
            .weights = s->model->weight_bytes,
            .constants = p->size[REGION_CONSTS],
            .activations = p->size[REGION_ACTS],
            .state = p->size[REGION_STATE],
            .lower_bound = p->lower_bound,
            .unshared = p->unshared,
            .steps = (uint32_t)s->current->steps->step_count,
            .in_place = p->in_place,
        };
    }
    return diag_report(&d, err);
}
