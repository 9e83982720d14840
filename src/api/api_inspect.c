/* api_inspect.c: rlx/tools.h: models, compiles and sessions as text. */
#include "base/desc.h"
#include "compile/reports.h"
#include "inspect/inspect.h"
#include "ir/text/text.h"
#include "pass/pass.h"

/* Text in one piece, unless memory ran out or something else went wrong; frees it. */
static void write_text(struct text *t, rlx_write_fn write, void *user, struct diag *d)
{
    if (d->first.status == RLX_OK && t->failed)
        diag_no_memory(d, t->len);
    if (d->first.status == RLX_OK && t->len)
        write(user, t->at, t->len);
    text_free(t);
}

/* ---- models ---- */

rlx_status rlx_model_print(const rlx_model *m, bool elide, bool types, rlx_write_fn write,
                           void *user, rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "print");
    if (!m || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
    else {
        text_init(&out, &m->ctx->mem);
        model_print(m, elide, types, &out, &d);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_model_draw(const rlx_model *m, rlx_picture kind, rlx_write_fn write, void *user,
                          rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "draw");
    if (!m || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
    else {
        text_init(&out, &m->ctx->mem);
        model_draw(m, kind, &out, &d);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_model_diff(const rlx_model *a, const rlx_model *b, const char *name_a,
                          const char *name_b, rlx_write_fn write, void *user, rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "diff");
    if (!a || !b || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", a && b ? "write" : "m");
    else {
        text_init(&out, &a->ctx->mem);
        model_diff(a, b, name_a ? name_a : "a", name_b ? name_b : "b", &out, &d);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_model_describe(const rlx_model *m, bool json, rlx_write_fn write, void *user,
                              rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "describe");
    if (!m || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
    else {
        text_init(&out, &m->ctx->mem);
        model_describe(m, json, &out);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_page_write(const rlx_model *m, const rlx_page_desc *desc, rlx_write_fn write,
                          void *user, rlx_error *err)
{
    rlx_page_desc own = {RLX_SIZED(rlx_page_desc)};
    struct diag d;
    struct text out;

    diag_init(&d, "page");
    if (!m || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
    else if (DESC_READ(rlx_page_desc, &own, desc, &d) == RLX_OK) {
        text_init(&out, &m->ctx->mem);
        page_print(m, &own, &out, &d);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

/* ---- what a device makes of them ---- */

rlx_status rlx_model_dispatch(const rlx_model *m, rlx_device *dev, bool json, rlx_write_fn write,
                              void *user, rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "dispatch");
    if (!m || !dev || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !dev ? "dev" : "write");
    else {
        text_init(&out, &m->ctx->mem);
        dispatch_of(m->mod, dev->backend, json, &out, &d);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_model_fusion(const rlx_model *m, rlx_device *dev, bool json, rlx_write_fn write,
                            void *user, rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "fusion");
    if (!m || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
    else {
        text_init(&out, &m->ctx->mem);
        if (model_is_whole(m, "report on fusions", &d) == RLX_OK)
            fusion_of(m->mod, dev ? dev->backend : NULL, json, &out, &d);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_model_print_after(const rlx_model *m, const char *pass, rlx_device *dev, bool elide,
                                 bool types, rlx_write_fn write, void *user, rlx_error *err)
{
    const struct text_print_options print = {.elide = elide, .types = types};
    struct diag d;

    diag_init(&d, "print");
    if (!m || !pass || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !pass ? "pass" : "write");
    else
        model_print_after(m, pass, dev, &print, write, user, &d);
    return diag_report(&d, err);
}

/* ---- sessions ---- */

rlx_status rlx_session_schedule(rlx_session *s, bool json, rlx_write_fn write, void *user,
                                rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "schedule");
    if (!s || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "write" : "s");
    else {
        text_init(&out, &s->model->ctx->mem);
        if (session_is_whole(s, "show one schedule", &d) == RLX_OK &&
            session_need_program(s, &d) == RLX_OK)
            (json ? schedule_json : schedule_text)(s->current, &out);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_session_bindings(rlx_session *s, bool json, rlx_write_fn write, void *user,
                                rlx_error *err)
{
    struct diag d;
    struct text out;

    diag_init(&d, "session");
    if (!s || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "write" : "s");
    else {
        text_init(&out, &s->model->ctx->mem);
        session_bindings(s, json, &out, &d);
        write_text(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

/* Nobody has to write it. */
static void write_plan_text(struct text *t, rlx_write_fn write, void *user, struct diag *d)
{
    if (write)
        write_text(t, write, user, d);
    else
        text_free(t);
}

rlx_status rlx_session_plan(rlx_session *s, rlx_plan_format format, rlx_write_fn write, void *user,
                            rlx_plan_summary *out, rlx_error *err)
{
    struct diag d;
    struct text t;

    diag_init(&d, "plan");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else {
        text_init(&t, &s->model->ctx->mem);
        session_plan(s, format, &t, out, &d);
        write_plan_text(&t, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_plan_csv(rlx_context *ctx, rlx_str csv, uint64_t capacity, rlx_plan_format format,
                        rlx_write_fn write, void *user, rlx_plan_summary *out, rlx_error *err)
{
    struct diag d;
    struct text t;

    diag_init(&d, "plan");
    if (!ctx || !csv.ptr)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "csv" : "ctx");
    else {
        text_init(&t, &ctx->mem);
        plan_of_csv(ctx, csv, capacity, format, &t, out, &d);
        write_plan_text(&t, write, user, &d);
    }
    return diag_report(&d, err);
}

/* ---- tables ---- */

bool rlx_pass_at(size_t i, const char **name, const char **summary)
{
    const struct pass *p = pass_at(i);

    if (!p)
        return false;
    if (name)
        *name = p->name;
    if (summary)
        *summary = p->summary;
    return true;
}

bool rlx_op_at(size_t i, rlx_op_row *out)
{
    return out && op_row(i, out);
}
