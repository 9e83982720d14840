/* api_session.c: sessions: made, given params and states, asked what they take and did. */
#include "base/desc.h"
#include "compile/stage_options.h"
#include "model/precision_text.h"
#include "session/observe.h"
#include "session/session.h"

rlx_status rlx_session_create(rlx_model *m, rlx_device *dev, const rlx_session_desc *desc,
                              rlx_session **out, rlx_error *err)
{
    struct session_descs own;
    struct diag d;

    diag_init(&d, "compile");
    if (!m || !dev || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !dev ? "dev" : "out");
    else if (session_descs_read(desc, &own, &d) == RLX_OK)
        session_create(m, dev, &own.user, out, &d);
    return diag_report(&d, err);
}

void rlx_session_destroy(rlx_session *s)
{
    session_destroy(s);
}

rlx_status rlx_session_clone(rlx_session *s, unsigned flags, rlx_session **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "clone");
    session_clone(s, flags, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_precision_parse(const char *text, rlx_session_desc *desc, rlx_error *err)
{
    rlx_session_desc own = {RLX_SIZED(rlx_session_desc)};
    struct diag d;

    diag_init(&d, "precision");
    if (!text || !desc)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", text ? "desc" : "text");
    else if (DESC_READ(rlx_session_desc, &own, desc, &d) == RLX_OK &&
             precision_parse(text, &own, &d) == RLX_OK)
        INFO_WRITE(rlx_session_desc, &own, desc, &d);
    return diag_report(&d, err);
}

/* ---- bounds ---- */

rlx_status rlx_session_set_bound(rlx_session *s, const char *dim, int64_t upper, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    session_set_bound(s, dim, upper, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_bound(rlx_session *s, const char *dim, rlx_bound_info *out, rlx_error *err)
{
    rlx_bound_info own = {RLX_SIZED(rlx_bound_info)};
    struct diag d;

    diag_init(&d, "session");
    if (session_bound(s, dim, out ? &own : NULL, &d) == RLX_OK)
        INFO_WRITE(rlx_bound_info, &own, out, &d);
    return diag_report(&d, err);
}

/* ---- params and states ---- */

rlx_status rlx_session_set_param(rlx_session *s, const char *name, const rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    session_set_param(s, name, value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_get_param(rlx_session *s, const char *name, rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    session_get_param(s, name, value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_set_param_bytes(rlx_session *s, const char *name, const void *data,
                                       size_t bytes, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    session_set_param_bytes(s, name, data, bytes, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_set_state(rlx_session *s, const char *name, const rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "state");
    session_set_state(s, name, value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_get_state(rlx_session *s, const char *name, rlx_tensor *value,
                                 rlx_error *err)
{
    struct diag d;

    diag_init(&d, "state");
    session_get_state(s, name, value, &d);
    return diag_report(&d, err);
}

/* ---- what it takes, and what it does ---- */

rlx_status rlx_session_memory(rlx_session *s, rlx_memory_info *out, rlx_error *err)
{
    rlx_memory_info own = {RLX_SIZED(rlx_memory_info)};
    struct diag d;

    diag_init(&d, "session");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else if (s->kind->memory(s, &own, &d) == RLX_OK)
        INFO_WRITE(rlx_memory_info, &own, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_model_memory(const rlx_model *m, rlx_device *dev, const rlx_dim_size *dims,
                            size_t dim_count, uint64_t budget, rlx_memory_estimate *out,
                            rlx_error *err)
{
    struct diag d;

    diag_init(&d, "memory");
    if (!m || !dev || !out || (dim_count && !dims))
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !m     ? "m"
                  : !dev ? "dev"
                  : !out ? "out"
                         : "dims");
    else
        session_estimate((rlx_model *)m /* to count it */, dev, dims, dim_count, budget, out, &d);
    return diag_report(&d, err);
}

void rlx_session_set_profile(rlx_session *s, rlx_profile_fn fn, void *user)
{
    if (s && !s->flights)
        session_set_profile(s, fn, user);
}

rlx_status rlx_session_set_watch(rlx_session *s, rlx_watch_fn fn, void *user, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else
        observe_watch(s, fn, user, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_peek(rlx_session *s, int32_t node, uint64_t first, size_t count, double *out,
                            rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else
        observe_peek(s, node, first, count, out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_numerics(rlx_session *s, rlx_numerics *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else
        numerics_of(s, out, &d);
    return diag_report(&d, err);
}

void rlx_numerics_print(const rlx_numerics *n, rlx_write_fn write, void *user)
{
    if (n && write)
        numerics_print(n, write, user);
}
