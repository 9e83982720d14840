/* variants.c: which program a run needs. A session keeps one per binding of the symbols that have
 * no bound; those with a bound are part of one program that runs at any size up to it.
 *
 * Where a graph cannot shrink (something in it grows when a symbol shrinks, or holds only at some
 * sizes), its bounded symbols are bound by value like the others, unless that was forbidden. */
#include <string.h>

#include "base/str.h"
#include "session/session.h"

static bool same_key(const rlx_session *s, const int64_t *a, const int64_t *b)
{
    return s->symbol_count == 0 || memcmp(a, b, s->symbol_count * sizeof *a) == 0;
}

static struct compiled_program *find_program(rlx_session *s)
{
    for (size_t i = 0; i < s->program_count; i++)
        if (same_key(s, s->program[i].binding, s->key))
            return &s->program[i];
    return NULL;
}

struct compiled_program *session_current_program(rlx_session *s)
{
    for (size_t i = 0; i < s->program_count; i++)
        if (s->program[i].program == s->current)
            return &s->program[i];
    return NULL;
}

void session_drop_programs(rlx_session *s)
{
    for (size_t i = 0; i < s->program_count; i++)
        compiled_program_destroy(&s->program[i]);
    s->program_count = 0;
    s->current = NULL;
    upload_forget(s);
}

/* Comparing buffers would not do: a new one may have the address of one that is gone. */
void session_reload_programs(rlx_session *s)
{
    for (size_t i = 0; i < s->program_count; i++)
        s->program[i].program->loaded = false;
}

static bool in_flight(const rlx_session *s, const struct program *p)
{
    for (size_t i = 0; i < s->desc.in_flight; i++)
        if (s->flight[i].ticket && s->flight[i].program == p)
            return true;
    return false;
}

/* The least recently used one that nothing waits for; NULL: there is none. */
static struct compiled_program *oldest_idle(rlx_session *s)
{
    struct compiled_program *p = NULL;

    for (size_t i = 0; i < s->program_count; i++)
        if (!in_flight(s, s->program[i].program) && (!p || s->program[i].last_use < p->last_use))
            p = &s->program[i];
    return p;
}

/* It makes room. */
static rlx_status free_place(rlx_session *s, struct compiled_program **out, struct diag *d)
{
    struct compiled_program *p;

    if (s->program_count < s->desc.programs) {
        *out = &s->program[s->program_count++];
        return RLX_OK;
    }
    p = oldest_idle(s);
    if (!p)
        return diag_fail(d, RLX_ERROR_STATE,
                         "all %zu programs have runs in flight: wait for one of them first",
                         s->program_count);
    if (p->program == s->current)
        s->current = NULL;
    compiled_program_destroy(p);
    *out = p;
    return RLX_OK;
}

/* false: there is none that could go. */
static bool drop_oldest(rlx_session *s)
{
    struct compiled_program *p = oldest_idle(s), *last;

    if (!p)
        return false;
    if (p->program == s->current)
        s->current = NULL;
    compiled_program_destroy(p);
    last = &s->program[--s->program_count];
    int64_t *binding = p->binding;
    *p = *last;
    last->binding = binding; /* each place keeps one array */
    last->program = NULL;
    return true;
}

/* ---- compiling ---- */

static struct buffer *input_buffer(void *user, rlx_str input)
{
    const struct handle *h = handle_of(user, input);

    return h && h->direct ? h->buffer : NULL;
}

static rlx_status may_take(void *user, uint64_t bytes, struct diag *d)
{
    return budget_check(user, bytes, d);
}

static rlx_status may_take_locked(void *user, uint64_t bytes, struct diag *d)
{
    return budget_check_locked(user, bytes, d);
}

struct compile_request session_request(rlx_session *s)
{
    return (struct compile_request){
        .model = s->model,
        .device = s->device,
        .target = &s->target,
        .desc = &s->desc,
        .store = s->store,
        .mem = &s->host,
        .mem_bound = &s->host_bound,
        .symbol_count = s->symbol_count,
        .size = s->key,
        .bound = s->bound,
        .by_value = s->by_value,
        .state = &s->state,
        .state_offset = s->state_offset,
        .plan_only = s->plan_only,
        .input_buffer = input_buffer,
        .may_take = may_take,
        .may_take_locked = may_take_locked,
        .user = s,
        .compiled = &s->compiled,
    };
}

/* Programs for other sizes go where the session may not have one more beside them. */
static rlx_status compile_within(rlx_session *s, struct compiled_program *out, struct diag *d)
{
    const struct compile_request r = session_request(s);
    struct diag own;
    rlx_error why;
    rlx_status status;

    if (!s->desc.memory_limit)
        return compile(&r, out, d);
    do {
        diag_init(&own, "compile");
        memset(&why, 0, sizeof why);
        status = compile(&r, out, &own);
        diag_report(&own, &why);
    } while (status == RLX_ERROR_MEMORY && drop_oldest(s));
    return status == RLX_OK ? RLX_OK : diag_again(d, &why, status);
}

static rlx_status find_or_compile(rlx_session *s, struct diag *d)
{
    struct compiled_program *p = find_program(s), made;

    if (!p) {
        TRY(compile_within(s, &made, d));
        rlx_status status = free_place(s, &p, d);
        if (status != RLX_OK) {
            compiled_program_destroy(&made);
            return status;
        }
        memcpy(p->binding, s->key, s->symbol_count * sizeof *s->key);
        made.binding = p->binding;
        *p = made;
    }
    p->last_use = ++s->uses;
    if (s->current != p->program)
        upload_forget(s); /* the marks are of the other's slots */
    s->current = p->program;
    return RLX_OK;
}

/* ---- symbols with a bound ---- */

static rlx_status check_bounds(const rlx_session *s, struct diag *d)
{
    for (size_t i = 0; i < s->symbol_count; i++)
        if (s->bound[i] && s->binding[i] > s->bound[i])
            return diag_fail(d, RLX_ERROR_EXTENT, "dim \"%.*s\" is %lld, its bound is %lld",
                             STR_ARG(dim_symbol_name(s->dims, i)), (long long)s->binding[i],
                             (long long)s->bound[i]);
    return RLX_OK;
}

/* false: there is none that could be bound by value instead. */
static bool give_up_bounds(rlx_session *s, const rlx_error *why)
{
    bool any = false, chosen = false;

    for (size_t i = 0; i < s->symbol_count; i++)
        chosen |= s->keep[i] && s->by_value[i];
    for (size_t i = 0; i < s->symbol_count; i++) {
        if (!s->keep[i] || (chosen && !s->by_value[i]))
            continue;
        s->by_value[i] = any = true;
        s->keep[i] = false;
        context_log(s->model->ctx, 1, "dim \"%.*s\" is compiled per value, not at its bound: %s",
                    STR_ARG(dim_symbol_name(s->dims, i)), why->message);
    }
    return any;
}

/* Might it work when symbols are bound by value? Some ops can be built from others only for
 * sizes that are known. */
static bool is_about_sizes(rlx_status s)
{
    return s == RLX_ERROR_EXTENT || s == RLX_ERROR_SHAPE || s == RLX_ERROR_ATTRIBUTE ||
           s == RLX_ERROR_BINDING || s == RLX_ERROR_LIMIT || s == RLX_ERROR_UNSUPPORTED;
}

/* Outputs of the run before lie where this one's will, and are taken away first. */
static rlx_status load_current(rlx_session *s, struct diag *d)
{
    if (s->plan_only)
        return RLX_OK;
    TRY(flight_keep(s, s->current, d));
    TRY(handles_attach(s, d));
    return program_load(s->current, s->binding, d);
}

static rlx_status try_program(rlx_session *s, struct diag *d)
{
    for (size_t i = 0; i < s->symbol_count; i++) {
        s->keep[i] = s->bound[i] && !s->by_value[i];
        s->key[i] = s->keep[i] ? SYMBOL_KEPT : s->binding[i];
    }
    TRY(find_or_compile(s, d));
    for (size_t i = 0; i < s->symbol_count; i++)
        if (s->keep[i] && s->binding[i] < 0 && s->current->uses[i])
            return diag_fail(
                d, RLX_ERROR_UNBOUND_DIM,
                "dim \"%.*s\" has no size: no input's shape gives it, and it is not in "
                "rlx_run_desc.dims",
                STR_ARG(dim_symbol_name(s->dims, i)));
    return load_current(s, d);
}

rlx_status session_compile_static(rlx_session *s, struct diag *d)
{
    for (size_t i = 0; i < s->symbol_count; i++)
        s->key[i] = s->binding[i] = -1;
    TRY(find_or_compile(s, d));
    return load_current(s, d);
}

rlx_status session_choose_program(rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    struct diag own;
    rlx_error why;
    rlx_status status;

    if (s->model->is_static && run->dim_count == 0)
        return session_compile_static(s, d);
    TRY(session_bind_symbols(s, run, d));
    TRY(check_bounds(s, d));
    TRY(ir_check_sizes(s->model->mod, s->binding, s->symbol_count, d));
    do {
        diag_init(&own, "compile");
        memset(&why, 0, sizeof why);
        status = try_program(s, &own);
        diag_report(&own, &why);
        if (status == RLX_OK)
            return RLX_OK;
        if (s->desc.strict_extent && is_about_sizes(status))
            for (size_t i = 0; i < s->symbol_count; i++)
                if (s->keep[i])
                    return diag_again(d, &why, RLX_ERROR_EXTENT);
    } while (is_about_sizes(status) && give_up_bounds(s, &why));
    return diag_again(d, &why, status);
}
