/* stages.c: what the compiler makes of a model on the way to a device: who runs which op, the graph
 * after a pass; and params turned into inputs: rlx/tools.h. */
#include "inspect/stages.h"

#include <stdio.h>
#include <string.h>

#include "compile/fold_eval.h"
#include "compile/reports.h"
#include "inspect/hand_out.h"
#include "ir/text/text.h"
#include "pass/dispatch.h"
#include "pass/pass.h"

/* ---- dispatch ---- */

rlx_status rlx_model_dispatch(const rlx_model *m, rlx_device *dev, bool json, rlx_write_fn write,
                              void *user, rlx_error *err)
{
    static const struct pass_options defaults;
    struct diag d;
    struct dispatch_report r;
    struct target target;
    struct text t;

    diag_init(&d, "dispatch");
    if (!m || !dev || !write) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !dev ? "dev" : "write");
        return diag_report(&d, err);
    }
    dev->backend->ops->describe(dev->backend, &target);
    if (dispatch_inspect(m->mod, &target, &defaults, true, &r, &d) == RLX_OK) {
        text_init(&t, &m->ctx->mem);
        if (json)
            dispatch_print_json(&r, &t);
        else
            dispatch_print(&r, &t);
        hand_out(&t, write, user, &d);
        dispatch_free(&r);
    }
    return diag_report(&d, err);
}

/* ---- fusion ---- */

rlx_status rlx_model_fusion(const rlx_model *m, rlx_device *dev, bool json, rlx_write_fn write,
                            void *user, rlx_error *err)
{
    struct diag d;
    struct text t;

    diag_init(&d, "fusion");
    if (!m || !write) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
        return diag_report(&d, err);
    }
    text_init(&t, &m->ctx->mem);
    if (model_is_whole(m, "report on fusions", &d) == RLX_OK)
        fusion_print(m->mod, dev ? dev->backend : NULL, json, &t, &d);
    hand_out(&t, write, user, &d);
    return diag_report(&d, err);
}

/* ---- the graph after a pass ---- */

struct watch {
    const struct pass *pass;
    struct ir_module *seen; /* the module when the pass was made last; NULL: it was not */
    struct diag *diag;
};

static void look(void *user, const struct pass *pass, const struct ir_module *m, uint64_t changes)
{
    struct watch *w = user;

    (void)changes;
    if (pass != w->pass)
        return;
    ir_module_destroy(w->seen);
    w->seen = NULL;
    ir_module_copy(m, m->mem, &w->seen, w->diag);
}

/* Every pass of a compile, up to the one that fails. w->seen shares constants with *made, which the
 * caller destroys after it. */
static rlx_status run_passes(const rlx_model *m, rlx_device *dev, struct watch *w,
                             struct ir_module **made, struct diag *d)
{
    struct fold_eval fold;
    const struct pass_options options = {
        .eval = fold_eval_node, .eval_user = &fold, .after = look, .after_user = w};
    struct target target;

    TRY(ir_module_copy(m->mod, &m->ctx->mem, made, d));
    if (dev)
        dev->backend->ops->describe(dev->backend, &target);
    fold_eval_init(&fold, &m->ctx->mem, dev ? dev->backend : NULL);
    rlx_status s = pass_all(*made, dev ? &target : NULL, &options, d);
    fold_eval_free(&fold);
    return s;
}

/* What was seen is handed out even where a later pass fails: that may be why somebody looks. */
static rlx_status print_after(const rlx_model *m, rlx_device *dev, struct watch *w,
                              const struct text_print_options *print, rlx_write_fn write,
                              void *user, struct diag *d)
{
    struct ir_module *mod = NULL;
    struct text text;

    rlx_status s = run_passes(m, dev, w, &mod, d), printed = RLX_OK;
    text_init(&text, &m->ctx->mem);
    if (w->seen)
        printed = ir_print(w->seen, print, &text, d);
    if (text.failed)
        printed = diag_no_memory(d, text.len);
    else if (text.len && printed == RLX_OK)
        write(user, text.at, text.len);
    text_free(&text);
    ir_module_destroy(w->seen);
    w->seen = NULL;
    ir_module_destroy(mod);
    return s == RLX_OK ? printed : s;
}

rlx_status refuse_pass(rlx_str name, struct diag *d)
{
    rlx_nearest near = {.wanted = name};
    char known[384] = "", hint[RLX_NEAREST_HINT];
    size_t len = 0;

    for (size_t i = 0; pass_at(i); i++) {
        rlx_nearest_offer(&near, rlx_cstr(pass_at(i)->name));
        if (len < sizeof known)
            len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", i ? ", " : "",
                                    pass_at(i)->name);
    }
    return diag_fail(d, RLX_ERROR_NAME, "there is no pass \"%.*s\"; there are: %s%s", STR_ARG(name),
                     known, rlx_nearest_hint(&near, hint));
}

rlx_status rlx_model_print_after(const rlx_model *m, const char *pass, rlx_device *dev, bool elide,
                                 bool types, rlx_write_fn write, void *user, rlx_error *err)
{
    const struct text_print_options print = {.elide = elide, .types = types};
    struct diag d;

    diag_init(&d, "print");
    if (!m || !pass || !write) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !pass ? "pass" : "write");
        return diag_report(&d, err);
    }
    struct watch w = {.pass = pass_find(rlx_cstr(pass)), .diag = &d};
    if (!w.pass)
        refuse_pass(rlx_cstr(pass), &d);
    else if (!m->parts)
        print_after(m, dev, &w, &print, write, user, &d);
    for (size_t i = 0; m->parts && d.first.status == RLX_OK && i < m->parts->count; i++) {
        char title[64];
        int len = model_part_title(m->parts, i, title, sizeof title);
        write(user, title, (size_t)len);
        print_after(m->parts->part[i].model, dev, &w, &print, write, user, &d);
    }
    return diag_report(&d, err);
}

static void destroy_module(void *module)
{
    ir_module_destroy(module);
}

/* Constants that passes made are in the module they worked on, which stays as long as the model. */
static rlx_status model_after(const rlx_model *m, rlx_device *dev, struct watch *w, rlx_model **out,
                              struct diag *d)
{
    struct ir_module *mod = NULL;

    rlx_status s = run_passes(m, dev, w, &mod, d);
    if (s == RLX_OK && !w->seen)
        s = diag_fail(d, RLX_ERROR_STATE, "a compile of this model does not come to that pass");
    if (s == RLX_OK)
        s = model_from_copy(m, w->seen, out, d);
    if (s == RLX_OK) {
        (*out)->source = mod;
        (*out)->close_source = destroy_module;
        return RLX_OK;
    }
    ir_module_destroy(w->seen);
    ir_module_destroy(mod);
    return s;
}

rlx_status rlx_model_after(const rlx_model *m, const char *pass, rlx_device *dev, rlx_model **out,
                           rlx_error *err)
{
    struct diag d;

    diag_init(&d, "passes");
    if (!m || !pass || !out) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !pass ? "pass" : "out");
        return diag_report(&d, err);
    }
    struct watch w = {.pass = pass_find(rlx_cstr(pass)), .diag = &d};
    if (!w.pass)
        refuse_pass(rlx_cstr(pass), &d);
    else if (model_is_whole(m, "be shown after a pass as one", &d) == RLX_OK)
        model_after(m, dev, &w, out, &d);
    return diag_report(&d, err);
}

/* ---- params to inputs ---- */

/* What the other params were set to stays. */
static rlx_status keep_params(const rlx_model *m, rlx_model *made, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "params");
    if (model_restore_params(m, &d) != RLX_OK)
        return diag_report(&d, err);
    for (size_t i = 0; i < made->param_count; i++) {
        size_t from;
        if (model_find_param(m, made->param[i].name, &from, NULL) != RLX_OK || !m->param[from].data)
            continue;
        const struct ir_type *type = ir_type_of(ir_entry(m->mod), m->param[from].node);
        rlx_tensor value = {.dtype = type->dtype,
                            .rank = type->rank,
                            .data = m->param[from].data,
                            .bytes = (size_t)m->param[from].bytes};
        memcpy(value.dim, type->dim, sizeof value.dim);
        TRY(rlx_model_set_param(made, arena_str(&made->arena, made->param[i].name).ptr, &value,
                                err));
    }
    return RLX_OK;
}

rlx_status rlx_model_promote_params(const rlx_model *m, const char *const *names, size_t count,
                                    rlx_model **out, rlx_error *err)
{
    struct diag d;
    struct ir_module *mod = NULL;
    rlx_model *made;

    diag_init(&d, "promote");
    if (!m || !out || (count && !names)) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !out ? "out" : "names");
        return diag_report(&d, err);
    }
    rlx_status s = ir_module_copy(m->mod, &m->ctx->mem, &mod, &d);
    if (s == RLX_OK)
        s = pass_promote_params(mod, names, count, &d);
    if (s == RLX_OK)
        s = model_from_copy(m, mod, &made, &d);
    if (s != RLX_OK) {
        ir_module_destroy(mod);
        return diag_report(&d, err);
    }
    s = keep_params(m, made, err);
    if (s == RLX_OK)
        *out = made;
    else
        rlx_model_destroy(made);
    return s;
}
