/* api_run.c: runs, and inputs that stay on the device between them. */
#include "base/desc.h"
#include "session/session.h"

/* The caller's run, as this library knows it; NULL stays NULL. */
static rlx_status read_run(const rlx_run_desc *theirs, rlx_run_desc *own, const rlx_run_desc **out,
                           struct diag *d)
{
    *own = (rlx_run_desc){RLX_SIZED(rlx_run_desc)};
    *out = theirs ? own : NULL;
    return DESC_READ(rlx_run_desc, own, theirs, d);
}

rlx_status rlx_session_run(rlx_session *s, const rlx_run_desc *theirs, rlx_error *err)
{
    const rlx_run_desc *run;
    rlx_run_desc own = {RLX_SIZED(rlx_run_desc)};
    struct diag d;

    diag_init(&d, "run");
    if (read_run(theirs, &own, &run, &d) == RLX_OK)
        session_run(s, run, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_submit(rlx_session *s, const rlx_run_desc *theirs, uint64_t *ticket,
                              rlx_error *err)
{
    const rlx_run_desc *run;
    rlx_run_desc own = {RLX_SIZED(rlx_run_desc)};
    struct diag d;

    diag_init(&d, "run");
    if (!ticket)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "ticket is NULL");
    else if (read_run(theirs, &own, &run, &d) == RLX_OK)
        session_submit(s, run, ticket, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_poll(rlx_session *s, uint64_t ticket, bool *done, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "run");
    if (!s || !done)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", done ? "s" : "done");
    else
        s->kind->poll(s, ticket, done, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_wait(rlx_session *s, uint64_t ticket, rlx_run_desc *theirs, rlx_error *err)
{
    const rlx_run_desc *run;
    rlx_run_desc own = {RLX_SIZED(rlx_run_desc)};
    struct diag d;

    diag_init(&d, "run");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else if (read_run(theirs, &own, &run, &d) == RLX_OK)
        s->kind->wait(s, ticket, run, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_prepare(rlx_session *s, const rlx_run_desc *theirs, rlx_error *err)
{
    const rlx_run_desc *run;
    rlx_run_desc own = {RLX_SIZED(rlx_run_desc)};
    struct diag d;

    diag_init(&d, "compile");
    if (read_run(theirs, &own, &run, &d) == RLX_OK)
        session_prepare(s, run, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_output_shape(rlx_session *s, size_t i, rlx_tensor *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "out" : "s");
    else
        s->kind->output_shape(s, i, out, &d);
    return diag_report(&d, err);
}

/* ---- inputs that stay on the device ---- */

rlx_status rlx_session_bind_handle(rlx_session *s, const char *name, const rlx_tensor *value,
                                   rlx_error *err)
{
    struct diag d;

    diag_init(&d, "handle");
    handle_bind(s, name, value, &d);
    return diag_report(&d, err);
}

bool rlx_session_has_handle(rlx_session *s, const char *name)
{
    return s && name && (handle_is_state(s, name) || handle_of(s, rlx_cstr(name)));
}

rlx_status rlx_session_read_handle(rlx_session *s, const char *name, rlx_tensor *value,
                                   rlx_error *err)
{
    struct diag d;

    diag_init(&d, "handle");
    handle_read(s, name, value, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_unbind_handle(rlx_session *s, const char *name, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "handle");
    handle_unbind(s, name, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_copy_handle(rlx_session *to, rlx_session *from, const char *name,
                                   rlx_error *err)
{
    struct diag d;

    diag_init(&d, "handle");
    handle_copy(to, from, name, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_set_feed(rlx_session *s, const char *name, const rlx_feed *feed,
                                rlx_error *err)
{
    rlx_feed own = {RLX_SIZED(rlx_feed)};
    struct diag d;

    diag_init(&d, "handle");
    if (DESC_READ(rlx_feed, &own, feed, &d) == RLX_OK)
        feed_set(s, name, feed ? &own : NULL, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_clear_feed(rlx_session *s, const char *name, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "handle");
    feed_clear(s, name, &d);
    return diag_report(&d, err);
}
