/* session_load.c: an artefact becomes a model and a session with its programs, at once. */
#include "compile/cache/artefact.h"
#include "compile/load_model.h"
#include "session/session.h"

/* What the program says of a dim becomes true of the session: its bound, or that it has to be
 * compiled per value in spite of its bound. Gives a size to compile it for. */
static int64_t take_size(rlx_session *s, rlx_str dim, int64_t size)
{
    size_t symbol;

    if (!dim_find_symbol(s->dims, dim, &symbol) || symbol >= s->symbol_count)
        return size < 0 ? 0 : size; /* there is none of that name: prepare will say so */
    if (size < 0)
        return s->bound[symbol] = -2 - size;
    s->by_value[symbol] = s->bound[symbol] != 0;
    return size;
}

/* As many as a session keeps; the others are taken when a run needs them. */
static rlx_status prepare(rlx_session *s, struct diag *d)
{
    const struct artefact *a = s->model->artefact;

    for (size_t i = 0; i < a->program_count && i < s->desc.programs; i++) {
        const struct saved_program *p = &a->program[i];
        rlx_dim_size dims[32];
        if (p->dim_count == 0 || p->dim_count > 32)
            continue; /* compiled already; or, for lack of room here, when a run asks for it */
        for (size_t k = 0; k < p->dim_count; k++)
            dims[k] = (rlx_dim_size){p->dim[k].ptr, take_size(s, p->dim[k], p->size[k])};
        rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .dims = dims, .dim_count = p->dim_count};
        TRY(session_prepare(s, &run, d));
    }
    return RLX_OK;
}

rlx_status session_load(rlx_device *dev, const char *path, const rlx_load_desc *load_desc,
                        const rlx_session_desc *desc, rlx_model **model, rlx_session **session,
                        struct diag *d)
{
    rlx_session *s = NULL;
    rlx_model *m = NULL;
    rlx_status status;

    TRY(load_model(dev->ctx, path, load_desc, &m, d));
    if (!m->artefact)
        status = diag_fail(d, RLX_ERROR_FORMAT, "%s is a model, but not an artefact", path);
    else
        status = session_create(m, dev, desc, &s, d);
    if (status == RLX_OK)
        status = prepare(s, d);
    if (status != RLX_OK) {
        session_destroy(s);
        model_release(m);
        return status;
    }
    *model = m;
    *session = s;
    return RLX_OK;
}
