/* fusion_text.c: what fusing makes of a graph on a device, as a table or JSON. */
#include "base/json.h"
#include "base/str.h"
#include "compile/fold_eval.h"
#include "compile/reports.h"
#include "lower/joint.h"
#include "pass/fusion_report.h"
#include "rlx/tools.h"

/* Steps that several nodes of the compiled module share. */
struct shared_steps {
    size_t count[JOINT_COUNT];
};

static rlx_status count_shared(const struct ir_module *mod, struct backend *b,
                               const struct joint_options *o, struct shared_steps *out,
                               struct diag *d)
{
    struct arena arena;
    rlx_status s = RLX_OK;

    *out = (struct shared_steps){{0}};
    arena_init(&arena, mod->mem);
    for (size_t i = 0; b && i < mod->graph.len && s == RLX_OK; i++) {
        const struct ir_graph *g = mod->graph.at[i];
        struct joints joints;
        s = joint_find(g, g, b, o, &arena, &joints, d);
        for (size_t k = 0; k < g->node.len && s == RLX_OK; k++)
            out->count[joints.as[k]]++;
    }
    arena_free(&arena);
    return s;
}

static void write_text(const struct fusion_report *r, const struct shared_steps *s, struct text *t)
{
    text_addf(t, "%-28s %8s %8s\n", "", "before", "after");
    text_addf(t, "%-28s %8zu %8zu\n", "nodes", r->before.nodes, r->after.nodes);
    for (int k = 0; k < FUSION_KINDS; k++)
        if (r->before.of[k] || r->after.of[k])
            text_addf(t, "%-28s %8zu %8zu\n", op_info(fusion_kind[k])->name, r->before.of[k],
                      r->after.of[k]);
    for (enum joint k = 0; k < JOINT_COUNT; k++)
        if (joint_step_name(k) && s->count[k])
            text_addf(t, "%-28s %8d %8zu\n", joint_step_name(k), 0, s->count[k]);
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

static void write_json(const struct fusion_report *r, const struct shared_steps *s, struct text *t)
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
    json_key(&j, "shared_steps");
    json_open(&j, '{');
    for (enum joint k = 0; k < JOINT_COUNT; k++) {
        if (!joint_step_name(k))
            continue;
        json_key(&j, joint_step_name(k));
        json_i64(&j, (int64_t)s->count[k]);
    }
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
                 const struct joint_options *joint, struct backend *backend, struct text *out)
{
    struct pass_options options = *o;
    struct shared_steps shared;
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
    if (fusion_report(copy, t, &options, &r, &d) == RLX_OK &&
        count_shared(copy, backend, joint, &shared, &d) == RLX_OK)
        write_text(&r, &shared, out);
    fusion_report_free(&r);
    fold_eval_free(&fold);
    ir_module_destroy(copy);
}

rlx_status fusion_of(const struct ir_module *mod, struct backend *backend, bool json,
                     struct text *out, struct diag *d)
{
    static const struct pass_options defaults;
    static const struct joint_options all;
    struct shared_steps shared;
    struct target target;
    struct fusion_report r = {.mem = mod->mem};
    struct ir_module *copy;

    if (backend)
        backend->ops->describe(backend, &target);
    TRY(ir_module_copy(mod, mod->mem, &copy, d));
    rlx_status status = fusion_report(copy, backend ? &target : NULL, &defaults, &r, d);
    if (status == RLX_OK)
        status = count_shared(copy, backend, &all, &shared, d);
    if (status == RLX_OK)
        (json ? write_json : write_text)(&r, &shared, out);
    fusion_report_free(&r);
    ir_module_destroy(copy);
    return status;
}
