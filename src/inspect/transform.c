/* transform.c: what passes make of a model: those that are named, all up to one, and params turned
 * into inputs. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "compile/fold_eval.h"
#include "inspect/inspect.h"
#include "ir/text/text.h"
#include "pass/pass.h"

static rlx_status refuse_pass(rlx_str name, struct diag *d)
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

/* ---- passes by name ---- */

static rlx_status run_named(struct ir_module *mod, rlx_str names, const struct target *target,
                            const struct pass_options *options, struct diag *d)
{
    while (names.len) {
        const char *comma = memchr(names.ptr, ',', names.len);
        rlx_str name = {names.ptr, comma ? (size_t)(comma - names.ptr) : names.len};
        const struct pass *p = pass_find(name);
        if (!p)
            return refuse_pass(name, d);
        TRY(pass_one(p, mod, target, options, NULL, d));
        names.ptr += name.len + (comma != NULL);
        names.len -= name.len + (comma != NULL);
    }
    return RLX_OK;
}

rlx_status model_transform(const struct rlx_model *m, const char *passes, struct rlx_device *dev,
                           const rlx_session_desc *desc, struct rlx_model **out, struct diag *d)
{
    struct fold_eval fold;
    struct pass_options options = {.eval = fold_eval_node, .eval_user = &fold};
    struct ir_module *mod = NULL;
    struct target target;

    if (dev)
        dev->backend->ops->describe(dev->backend, &target);
    if (desc) {
        options.precision = desc->precision;
        options.precision_map = desc->precision_map;
    }
    fold_eval_init(&fold, &m->ctx->mem, dev ? dev->backend : NULL);
    rlx_status s = ir_module_copy(m->mod, &m->ctx->mem, &mod, d);
    if (s == RLX_OK)
        s = run_named(mod, rlx_cstr(passes), dev ? &target : NULL, &options, d);
    fold_eval_free(&fold);
    if (s == RLX_OK)
        s = model_from_copy(m, mod, out, d);
    if (s != RLX_OK)
        ir_module_destroy(mod);
    return s;
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

rlx_status model_print_after(const struct rlx_model *m, const char *pass, struct rlx_device *dev,
                             const struct text_print_options *print, rlx_write_fn write, void *user,
                             struct diag *d)
{
    struct watch w = {.pass = pass_find(rlx_cstr(pass)), .diag = d};

    if (!w.pass)
        return refuse_pass(rlx_cstr(pass), d);
    if (!m->parts)
        return print_after(m, dev, &w, print, write, user, d);
    for (size_t i = 0; i < m->parts->count; i++) {
        char title[64];
        int len = model_part_title(m->parts, i, title, sizeof title);
        write(user, title, (size_t)len);
        TRY(print_after(m->parts->part[i].model, dev, &w, print, write, user, d));
    }
    return RLX_OK;
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
        s = diag_fail(d, RLX_ERROR_STATE, "a compile of this model does not reach that pass");
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

rlx_status model_after_pass(const struct rlx_model *m, const char *pass, struct rlx_device *dev,
                            struct rlx_model **out, struct diag *d)
{
    struct watch w = {.pass = pass_find(rlx_cstr(pass)), .diag = d};

    if (!w.pass)
        return refuse_pass(rlx_cstr(pass), d);
    TRY(model_is_whole(m, "be shown after a pass as one", d));
    return model_after(m, dev, &w, out, d);
}

/* ---- params to inputs ---- */

/* What the other params were set to stays. */
static rlx_status keep_params(const rlx_model *m, rlx_model *made, struct diag *d)
{
    TRY(model_restore_params(m, d));
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
        const char *name = arena_str(&made->arena, made->param[i].name).ptr;
        TRY(name ? model_set_param(made, name, &value, d) : diag_no_memory(d, 1));
    }
    return RLX_OK;
}

rlx_status model_promote_params(const struct rlx_model *m, const char *const *names, size_t count,
                                struct rlx_model **out, struct diag *d)
{
    struct ir_module *mod = NULL;
    rlx_model *made;

    rlx_status s = ir_module_copy(m->mod, &m->ctx->mem, &mod, d);
    if (s == RLX_OK)
        s = pass_promote_params(mod, names, count, d);
    if (s == RLX_OK)
        s = model_from_copy(m, mod, &made, d);
    if (s != RLX_OK) {
        ir_module_destroy(mod);
        return s;
    }
    s = keep_params(m, made, d);
    if (s == RLX_OK)
        *out = made;
    else
        model_release(made);
    return s;
}
