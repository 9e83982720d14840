/* fusion.c: what fusing makes of a model on a device, as a table or JSON: rlx/tools.h. */
#include "api/fold_eval.h"
#include "api/stages.h"
#include "base/json.h"
#include "base/str.h"
#include "pass/fusion_report.h"
#include "rlx/tools.h"

static void write_text(const struct fusion_report *r, struct text *t)
{
    text_addf(t, "%-28s %8s %8s\n", "", "before", "after");
    text_addf(t, "%-28s %8zu %8zu\n", "nodes", r->before.nodes, r->after.nodes);
    for (int k = 0; k < FUSION_KINDS; k++)
        if (r->before.of[k] || r->after.of[k])
            text_addf(t, "%-28s %8zu %8zu\n", op_info(fusion_kind[k])->name, r->before.of[k],
                      r->after.of[k]);
    text_addf(t, "\n%zu missed\n", r->missed.len);
    for (size_t i = 0; i < r->missed.len; i++) {
        const struct fusion_missed *m = &r->missed.at[i];
        text_addf(t, "  %s ", op_info(m->op)->name);
        if (m->label.len)
            text_addf(t, "%%%.*s", STR_ARG(m->label));
        else
            text_addf(t, "(node %d)", m->node);
        text_addf(t, ": %s; %s\n", fusion_reason_text(m->reason), m->hint);
    }
}

static void write_pair(struct json *j, const char *key, size_t before, size_t after)
{
    json_key(j, key);
    json_open(j, '{');
    json_key(j, "before");
    json_i64(j, (int64_t)before);
    json_key(j, "after");
    json_i64(j, (int64_t)after);
    json_close(j, '}');
}

static void write_missed(struct json *j, const struct fusion_missed *m)
{
    json_open(j, '{');
    json_key(j, "op");
    json_str(j, rlx_cstr(op_info(m->op)->name));
    json_key(j, "label");
    json_str(j, m->label);
    json_key(j, "graph");
    json_i64(j, m->graph);
    json_key(j, "node");
    json_i64(j, m->node);
    json_key(j, "reason");
    json_str(j, rlx_cstr(fusion_reason_text(m->reason)));
    json_key(j, "hint");
    json_str(j, rlx_cstr(m->hint));
    json_close(j, '}');
}

static void write_json(const struct fusion_report *r, struct text *t)
{
    struct json j;

    json_init(&j, t);
    json_open(&j, '{');
    write_pair(&j, "nodes", r->before.nodes, r->after.nodes);
    json_key(&j, "ops");
    json_open(&j, '{');
    for (int k = 0; k < FUSION_KINDS; k++)
        write_pair(&j, op_info(fusion_kind[k])->name, r->before.of[k], r->after.of[k]);
    json_close(&j, '}');
    json_key(&j, "missed");
    json_open(&j, '[');
    for (size_t i = 0; i < r->missed.len; i++)
        write_missed(&j, &r->missed.at[i]);
    json_close(&j, ']');
    json_close(&j, '}');
    text_add(t, STR("\n"));
}

void fusion_text(const struct ir_module *mod, const struct target *t, const struct pass_options *o,
                 struct backend *backend, struct text *out)
{
    struct pass_options options = *o;
    struct fold_eval fold;
    struct ir_module *copy;
    struct fusion_report r;
    struct diag d;

    diag_init(&d, "fusion");
    if (!mod || ir_module_copy(mod, mod->mem, &copy, &d) != RLX_OK)
        return;
    fold_eval_init(&fold, mod->mem, backend);
    options.eval = fold_eval_node;
    options.eval_user = &fold;
    if (fusion_report(copy, t, &options, &r, &d) == RLX_OK)
        write_text(&r, out);
    fusion_report_free(&r);
    fold_eval_free(&fold);
    ir_module_destroy(copy);
}

static void report(const rlx_model *m, const struct target *target, bool json, struct text *t,
                   struct diag *d)
{
    static const struct pass_options defaults;
    struct fusion_report r = {.mem = &m->ctx->mem};
    struct ir_module *mod;

    if (ir_module_copy(m->mod, &m->ctx->mem, &mod, d) != RLX_OK)
        return;
    if (fusion_report(mod, target, &defaults, &r, d) == RLX_OK) {
        if (json)
            write_json(&r, t);
        else
            write_text(&r, t);
    }
    fusion_report_free(&r);
    ir_module_destroy(mod);
}

rlx_status rlx_model_fusion(const rlx_model *m, rlx_device *dev, bool json, rlx_write_fn write,
                            void *user, rlx_error *err)
{
    struct diag d;
    struct text t;
    struct target target;

    diag_init(&d, "fusion");
    if (!m || !write) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
        return diag_report(&d, err);
    }
    if (dev)
        dev->backend->ops->describe(dev->backend, &target);
    text_init(&t, &m->ctx->mem);
    report(m, dev ? &target : NULL, json, &t, &d);
    if (d.first.status == RLX_OK && t.failed)
        diag_no_memory(&d, t.len);
    if (d.first.status == RLX_OK)
        write(user, t.at, t.len);
    text_free(&t);
    return diag_report(&d, err);
}
