/* api_artefact.c: rlx/artefact.h: compiled programs in files. */
#include "base/desc.h"
#include "compile/cache/artefact.h"
#include "compile/stage_options.h"
#include "session/session.h"

rlx_status rlx_model_artefact(const rlx_model *m, rlx_artefact_info *out, rlx_error *err)
{
    rlx_artefact_info own;
    struct diag d;

    diag_init(&d, "artefact");
    if (!m)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "m is NULL");
    else if (!m->artefact)
        diag_fail(&d, RLX_ERROR_STATE, "the model was not loaded from an artefact");
    else {
        artefact_describe(m->artefact, &own);
        INFO_WRITE(rlx_artefact_info, &own, out, &d);
    }
    return diag_report(&d, err);
}

bool rlx_model_artefact_program(const rlx_model *m, size_t i, rlx_artefact_program *out)
{
    return m && m->artefact && out && artefact_describe_program(m->artefact, i, out);
}

rlx_status rlx_session_save(rlx_session *s, const char *path, unsigned flags, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "save");
    if (!s || !path || !*path)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is %s", !s ? "s" : "path",
                  s && path ? "empty" : "NULL");
    else
        session_save(s, path, flags, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_load(rlx_device *dev, const char *path, const rlx_load_desc *load_desc,
                            const rlx_session_desc *desc, rlx_model **model, rlx_session **session,
                            rlx_error *err)
{
    rlx_load_desc own_load = {RLX_SIZED(rlx_load_desc)};
    struct session_descs own;
    struct diag d;

    diag_init(&d, "load");
    if (!dev || !path || !model || !session)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL",
                  !dev     ? "dev"
                  : !path  ? "path"
                  : !model ? "model"
                           : "session");
    else if (DESC_READ(rlx_load_desc, &own_load, load_desc, &d) == RLX_OK &&
             session_descs_read(desc, &own, &d) == RLX_OK)
        session_load(dev, path, &own_load, &own.user, model, session, &d);
    return diag_report(&d, err);
}

rlx_status rlx_session_compiled(const rlx_session *s, rlx_compiled_info *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "session");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else if (session_is_whole(s, "tell of one program", &d) == RLX_OK)
        INFO_WRITE(rlx_compiled_info, &s->compiled, out, &d);
    return diag_report(&d, err);
}
