/* session_run.c: runs of a session of either kind. */
#include "session/session.h"

rlx_status session_check_run(const struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    if (!s || !run)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "run" : "s");
    if ((run->input_count && !run->inputs) || (run->output_count && !run->outputs) ||
        (run->dim_count && !run->dims))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "a list of the run is NULL but not empty");
    for (size_t i = 0; i < run->input_count; i++)
        if (!run->inputs[i].name)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "input %zu has no name", i);
    return RLX_OK;
}

rlx_status session_run(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    TRY(session_check_run(s, run, d));
    return s->kind->run(s, run, d);
}

rlx_status session_submit(struct rlx_session *s, const rlx_run_desc *run, uint64_t *ticket,
                          struct diag *d)
{
    TRY(session_check_run(s, run, d));
    return s->kind->submit(s, run, ticket, d);
}

rlx_status session_prepare(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    TRY(session_check_run(s, run, d));
    return s->kind->prepare(s, run, d);
}
