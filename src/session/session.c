/* session.c: a model opened on a device: made, cloned, taken down; and what is the same for models
 * that run as one (whole.c) and in parts (staged.c). */
#include <string.h>

#include "base/str.h"
#include "compile/stage_options.h"
#include "model/dims.h"
#include "session/observe.h"
#include "session/session.h"

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
    s->kind = m->parts ? &session_staged : &session_whole;
    s->plan_only = plan_only;
    s->store = store;
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
        status = make_symbols(s, d);
    if (status == RLX_OK)
        status = s->kind->open(s, d);
    if (status != RLX_OK) {
        session_destroy(s);
        return status;
    }
    *out = s;
    return RLX_OK;
}

static rlx_status create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                         bool plan_only, rlx_session **out, struct diag *d)
{
    static const rlx_session_desc zero = {RLX_SIZED(rlx_session_desc)};

    if (m->ctx != dev->ctx)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "model and device are of different contexts");
    rlx_session_desc resolved = desc ? *desc : zero;
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

rlx_status session_create(struct rlx_model *m, struct rlx_device *dev, const rlx_session_desc *desc,
                          struct rlx_session **out, struct diag *d)
{
    return create(m, dev, desc, false, out, d);
}

void session_destroy(struct rlx_session *s)
{
    if (!s)
        return;
    const rlx_allocator *mem = &s->model->ctx->mem;
    s->kind->close(s);
    dim_table_destroy(s->dims);
    device_release(s->device);
    observe_close(s);
    arena_free(&s->arena);
    struct rlx_model *m = s->model;
    mem_free(mem, s, sizeof *s);
    model_release(m);
}

rlx_status session_clone(struct rlx_session *s, unsigned flags, struct rlx_session **out,
                         struct diag *d)
{
    struct store *own = NULL;
    struct rlx_session *made;

    TRY(session_check_idle(s, out, s, d));
    if (flags & ~RLX_CLONE_OWN_WEIGHTS)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no flag %#x", flags);
    if (flags & RLX_CLONE_OWN_WEIGHTS)
        TRY(s->kind->own_weights(s, &own, d));
    rlx_status status = open_session(s->model, s->device, &s->desc, own, false, &made, d);
    if (status != RLX_OK)
        return status; /* own went with the session that could not be */
    status = s->kind->copy(s, flags, made, d);
    if (status != RLX_OK) {
        session_destroy(made);
        return status;
    }
    session_set_profile(made, s->profile, s->profile_user);
    *out = made;
    return RLX_OK;
}

void session_set_profile(struct rlx_session *s, rlx_profile_fn fn, void *user)
{
    s->profile = fn;
    s->profile_user = user;
    s->kind->set_profile(s);
}

/* ---- bounds ---- */

static rlx_status find_symbol(struct rlx_session *s, const char *dim, const void *other,
                              size_t *out, struct diag *d)
{
    TRY(session_check_idle(s, dim, other, d));
    return find_dim(s->model->mod->dims, dim, out, d);
}

rlx_status session_set_bound(struct rlx_session *s, const char *dim, int64_t upper, struct diag *d)
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
    TRY(s->kind->set_bound(s, symbol, upper, d));
    s->bound[symbol] = upper;
    s->by_value[symbol] = false;
    return RLX_OK;
}

/* The parts of a model have the symbols of the whole. */
static bool is_by_value(struct rlx_session *s, size_t symbol)
{
    struct session_list l = s->kind->parts(&s);
    bool any = false;

    for (size_t i = 0; i < l.count; i++)
        any |= l.at[i]->by_value[symbol];
    return any;
}

rlx_status session_bound(struct rlx_session *s, const char *dim, rlx_bound_info *out,
                         struct diag *d)
{
    size_t symbol;

    TRY(find_symbol(s, dim, out, &symbol, d));
    *out = (rlx_bound_info){RLX_SIZED(rlx_bound_info), s->bound[symbol], is_by_value(s, symbol)};
    return RLX_OK;
}

/* ---- refusals ---- */

rlx_status session_check_idle(const struct rlx_session *s, const void *a, const void *b,
                              struct diag *d)
{
    if (!s || !a || !b)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !s ? "s" : !a ? "name" : "value");
    if (s->flights)
        return diag_fail(d, RLX_ERROR_STATE, "the session is running: wait for it first");
    return RLX_OK;
}

rlx_status session_is_whole(const struct rlx_session *s, const char *what, struct diag *d)
{
    return s ? model_is_whole(s->model, what, d) : RLX_OK;
}

rlx_status session_need_program(const struct rlx_session *s, struct diag *d)
{
    if (s->current)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_STATE, "the model has symbolic dims: run it once first");
}

rlx_status session_check_output(const struct rlx_session *s, size_t i, struct diag *d)
{
    if (i < s->model->output_count)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_ARGUMENT, "there are %zu outputs, no number %zu",
                     s->model->output_count, i);
}
