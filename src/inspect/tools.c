/* tools.c: models as text, tables and pictures; passes by name; the op table: rlx/tools.h. */
#include "rlx/tools.h"
#include "base/desc.h"

#include <stdio.h>
#include <string.h>

#include "autodiff/autodiff.h"
#include "base/diff.h"
#include "base/json.h"
#include "base/str.h"
#include "compile/fold_eval.h"
#include "inspect/category.h"
#include "inspect/hand_out.h"
#include "inspect/stages.h"
#include "ir/eval/eval.h"
#include "ir/shape/shape.h"
#include "ir/text/text.h"
#include "pass/pass.h"
#include "session/session.h"

static bool arguments_hold(const rlx_model *m, rlx_write_fn write, struct diag *d)
{
    if (!m || !write)
        diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", m ? "write" : "m");
    return m && write;
}

/* Parts one after the other, each as a graph that could be read again. */
static void print(const rlx_model *m, const struct text_print_options *o, struct text *t,
                  struct diag *d)
{
    if (!m->parts)
        ir_print(m->mod, o, t, d);
    for (size_t i = 0; m->parts && i < m->parts->count; i++) {
        char title[64];
        model_part_title(m->parts, i, title, sizeof title);
        text_add(t, rlx_cstr(title));
        ir_print(m->parts->part[i].model->mod, o, t, d);
    }
}

rlx_status rlx_model_print(const rlx_model *m, bool elide, bool types, rlx_write_fn write,
                           void *user, rlx_error *err)
{
    struct diag d;
    struct text t;

    diag_init(&d, "print");
    if (arguments_hold(m, write, &d)) {
        text_init(&t, &m->ctx->mem);
        print(m, &(struct text_print_options){.elide = elide, .types = types}, &t, &d);
        hand_out(&t, write, user, &d);
    }
    return diag_report(&d, err);
}

rlx_status rlx_model_draw(const rlx_model *m, rlx_picture kind, rlx_write_fn write, void *user,
                          rlx_error *err)
{
    struct diag d;
    struct text t;

    diag_init(&d, "draw");
    if (arguments_hold(m, write, &d)) {
        text_init(&t, &m->ctx->mem);
        if (kind == RLX_PICTURE_DOT)
            ir_draw_dot(ir_entry(m->mod), &t);
        else
            ir_draw_svg(ir_entry(m->mod), &t, &d);
        hand_out(&t, write, user, &d);
    }
    return diag_report(&d, err);
}

static rlx_status diff(const rlx_model *a, const rlx_model *b, const char *name_a,
                       const char *name_b, struct text *ta, struct text *tb, struct text *out,
                       struct diag *d)
{
    const struct text_print_options o = {.elide = true, .types = true};

    TRY(ir_print(a->mod, &o, ta, d));
    TRY(ir_print(b->mod, &o, tb, d));
    if (ta->failed || tb->failed)
        return diag_no_memory(d, ta->len + tb->len);
    return diff_lines((rlx_str){ta->at, ta->len}, (rlx_str){tb->at, tb->len}, name_a, name_b,
                      &a->ctx->mem, out, d);
}

rlx_status rlx_model_diff(const rlx_model *a, const rlx_model *b, const char *name_a,
                          const char *name_b, rlx_write_fn write, void *user, rlx_error *err)
{
    struct diag d;
    struct text ta, tb, out;

    diag_init(&d, "diff");
    if (arguments_hold(a, write, &d) && arguments_hold(b, write, &d)) {
        text_init(&ta, &a->ctx->mem);
        text_init(&tb, &a->ctx->mem);
        text_init(&out, &a->ctx->mem);
        diff(a, b, name_a ? name_a : "a", name_b ? name_b : "b", &ta, &tb, &out, &d);
        text_free(&ta);
        text_free(&tb);
        hand_out(&out, write, user, &d);
    }
    return diag_report(&d, err);
}

/* ---- describe ---- */

static const struct {
    const char *title, *key;
    rlx_io_kind kind;
} io_kinds[] = {
    {"inputs", "inputs", RLX_IO_INPUT},
    {"params", "params", RLX_IO_PARAM},
    {"states", "states", RLX_IO_STATE},
    {"outputs", "outputs", RLX_IO_OUTPUT},
};

static ir_value io_node(const rlx_model *m, rlx_io_kind kind, size_t i, const rlx_io_info *info)
{
    ir_value v = 0;

    if (kind == RLX_IO_OUTPUT)
        return ir_entry(m->mod)->output.at[i];
    ir_find_leaf(ir_entry(m->mod), info->name, &v);
    return v;
}

static void describe_artefact_text(const rlx_model *m, struct text *t)
{
    rlx_artefact_info a;
    rlx_artefact_program p;

    if (!rlx_model_artefact(m, &a))
        return;
    text_addf(t, "\nartefact\n  format %u, written by %u.%u.%u for %s (%s)\n", a.format,
              a.library / 10000, a.library / 100 % 100, a.library % 100, a.backend, a.device);
    if (a.weights)
        text_addf(t, "  weights of %u params, %.3f MB%s\n", a.weights, (double)a.weight_bytes / 1e6,
                  a.weights_beside ? ", in a file beside it" : "");
    else
        text_addf(t, "  no weights\n");
    for (size_t i = 0; rlx_model_artefact_program(m, i, &p); i++)
        text_addf(t, "  program %zu: %s%s%u steps, activations %llu bytes\n", i, p.sizes,
                  p.sizes[0] ? ", " : "", p.steps, (unsigned long long)p.activations);
}

static void json_number(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_i64(j, (int64_t)v);
}

static void describe_artefact_json(const rlx_model *m, struct json *j)
{
    rlx_artefact_info a;
    rlx_artefact_program p;

    if (!rlx_model_artefact(m, &a))
        return;
    json_key(j, "artefact");
    json_open(j, '{');
    json_number(j, "format", a.format);
    json_number(j, "library", a.library);
    json_key(j, "backend");
    json_str(j, rlx_cstr(a.backend));
    json_key(j, "device");
    json_str(j, rlx_cstr(a.device));
    json_number(j, "weights", a.weights);
    json_number(j, "weight_bytes", a.weight_bytes);
    json_key(j, "weights_beside");
    json_bool(j, a.weights_beside);
    json_key(j, "programs");
    json_open(j, '[');
    for (size_t i = 0; rlx_model_artefact_program(m, i, &p); i++) {
        json_open(j, '{');
        json_key(j, "sizes");
        json_str(j, rlx_cstr(p.sizes));
        json_number(j, "steps", p.steps);
        json_number(j, "activations", p.activations);
        json_number(j, "constants", p.constants);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

/* What runs after what, and the sizes that only the data tells. */
static void describe_parts_text(const rlx_model *m, struct text *t)
{
    const struct model_parts *p = m->parts;

    if (!p)
        return;
    text_addf(t, "\nparts, one after the other\n");
    for (size_t i = 0; i < p->count; i++)
        text_addf(t, "  %-24zu %6zu nodes\n", i + 1, ir_entry(p->part[i].model->mod)->node.len);
    text_addf(t, "\nsizes that depend on data\n");
    for (size_t i = 0; i < p->cut_count; i++) {
        int64_t bound = dim_symbol_bound(m->mod->dims, p->cut[i].symbol);
        if (i && p->cut[i].symbol == p->cut[i - 1].symbol)
            continue;
        text_addf(t, "  %-*.*s", bound ? 24 : 0,
                  STR_ARG(dim_symbol_name(m->mod->dims, p->cut[i].symbol)));
        if (bound)
            text_addf(t, " at most %lld", (long long)bound);
        text_addf(t, "\n");
    }
}

static void describe_parts_json(const rlx_model *m, struct json *j)
{
    const struct model_parts *p = m->parts;

    if (!p)
        return;
    json_key(j, "parts");
    json_open(j, '[');
    for (size_t i = 0; i < p->count; i++) {
        json_open(j, '{');
        json_number(j, "nodes", ir_entry(p->part[i].model->mod)->node.len);
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* Of the params themselves, without the padding between them in a store. */
static uint64_t param_bytes(const rlx_model *m)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < m->param_count; i++)
        bytes += m->param[i].bytes;
    return bytes;
}

static void describe_text(const rlx_model *m, struct text *t)
{
    const struct ir_graph *g = ir_entry(m->mod);

    text_addf(t, "%zu nodes, %zu sub-graphs, %.3f MB of params\n", g->node.len,
              m->mod->graph.len - 1, (double)param_bytes(m) / 1e6);
    for (size_t k = 0; k < sizeof io_kinds / sizeof io_kinds[0]; k++) {
        size_t count = rlx_model_io_count(m, io_kinds[k].kind);
        if (count)
            text_addf(t, "\n%s\n", io_kinds[k].title);
        for (size_t i = 0; i < count; i++) {
            rlx_io_info info = {RLX_SIZED(rlx_io_info)};
            rlx_model_io(m, io_kinds[k].kind, i, &info, NULL);
            text_addf(t, "  %-24.*s ", STR_ARG(info.name));
            ir_print_type(m->mod, ir_type_of(g, io_node(m, io_kinds[k].kind, i, &info)), t);
            text_addf(t, "%s\n", info.used ? "" : "  (unused)");
        }
    }
    describe_parts_text(m, t);
    text_addf(t, "\nops\n");
    for (int op = 0; op < RLX_OP_count; op++) {
        size_t count = 0;
        for (size_t i = 0; i < m->mod->graph.len; i++)
            IR_EACH(n, m->mod->graph.at[i])
                count += n->op == (rlx_op)op;
        if (count)
            text_addf(t, "  %-32s %6zu\n", op_info((rlx_op)op)->name, count);
    }
    describe_artefact_text(m, t);
}

static void describe_io(const rlx_model *m, rlx_io_kind kind, size_t i, struct json *j)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    rlx_model_io(m, kind, i, &info, NULL);
    const struct ir_type *type = ir_type_of(ir_entry(m->mod), io_node(m, kind, i, &info));
    json_open(j, '{');
    json_key(j, "name");
    json_str(j, info.name);
    json_key(j, "dtype");
    json_str(j, rlx_cstr(rlx_dtype_name(info.dtype)));
    json_key(j, "shape");
    json_open(j, '[');
    for (int32_t a = 0; a < type->rank; a++) {
        struct text dim;
        if (dim_is_static(type->dim[a])) {
            json_i64(j, type->dim[a]);
            continue;
        }
        text_init(&dim, &m->ctx->mem);
        dim_print(m->mod->dims, type->dim[a], &dim);
        json_str(j, (rlx_str){dim.at, dim.len});
        text_free(&dim);
    }
    json_close(j, ']');
    json_key(j, "used");
    json_bool(j, info.used);
    json_close(j, '}');
}

static void describe_json(const rlx_model *m, struct text *t)
{
    struct json j;

    json_init(&j, t);
    json_open(&j, '{');
    json_key(&j, "nodes");
    json_i64(&j, (int64_t)ir_entry(m->mod)->node.len);
    json_key(&j, "sub_graphs");
    json_i64(&j, (int64_t)m->mod->graph.len - 1);
    json_key(&j, "param_bytes");
    json_i64(&j, (int64_t)param_bytes(m));
    for (size_t k = 0; k < sizeof io_kinds / sizeof io_kinds[0]; k++) {
        json_key(&j, io_kinds[k].key);
        json_open(&j, '[');
        for (size_t i = 0; i < rlx_model_io_count(m, io_kinds[k].kind); i++)
            describe_io(m, io_kinds[k].kind, i, &j);
        json_close(&j, ']');
    }
    describe_parts_json(m, &j);
    describe_artefact_json(m, &j);
    json_close(&j, '}');
    text_add(t, STR("\n"));
}

rlx_status rlx_model_describe(const rlx_model *m, bool json, rlx_write_fn write, void *user,
                              rlx_error *err)
{
    struct diag d;
    struct text t;

    diag_init(&d, "describe");
    if (arguments_hold(m, write, &d)) {
        text_init(&t, &m->ctx->mem);
        if (json)
            describe_json(m, &t);
        else
            describe_text(m, &t);
        hand_out(&t, write, user, &d);
    }
    return diag_report(&d, err);
}

/* ---- passes ---- */

bool rlx_pass_list(size_t i, const char **name, const char **summary)
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

rlx_status rlx_model_transform(const rlx_model *m, const char *passes, rlx_device *dev,
                               rlx_model **out, rlx_error *err)
{
    return rlx_model_transform_for(m, passes, dev, NULL, out, err);
}

rlx_status rlx_model_transform_for(const rlx_model *m, const char *passes, rlx_device *dev,
                                   const rlx_session_desc *desc, rlx_model **out, rlx_error *err)
{
    rlx_session_desc own = {RLX_SIZED(rlx_session_desc)};
    struct pass_options options = {0};
    struct diag d;
    struct ir_module *mod = NULL;
    struct target target;

    diag_init(&d, "pass");
    if (!m || !passes || !out) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !passes ? "passes" : "out");
        return diag_report(&d, err);
    }
    if (dev)
        dev->backend->ops->describe(dev->backend, &target);
    struct fold_eval fold;
    options.eval = fold_eval_node;
    options.eval_user = &fold;
    if (DESC_READ(rlx_session_desc, &own, desc, &d) != RLX_OK)
        return diag_report(&d, err);
    options.precision = own.precision;
    options.precision_map = own.precision_map;
    fold_eval_init(&fold, &m->ctx->mem, dev ? dev->backend : NULL);
    rlx_status s = ir_module_copy(m->mod, &m->ctx->mem, &mod, &d);
    if (s == RLX_OK)
        s = run_named(mod, rlx_cstr(passes), dev ? &target : NULL, &options, &d);
    fold_eval_free(&fold);
    if (s == RLX_OK)
        s = model_from_copy(m, mod, out, &d);
    if (s != RLX_OK)
        ir_module_destroy(mod);
    return diag_report(&d, err);
}

/* ---- the op table ---- */

static void list_attributes(enum op_family family, char *out, size_t size)
{
    size_t count, len = 0;
    const struct attr_info *a = family_attrs(family, &count);

    out[0] = 0;
    for (size_t i = 0; i < count && len < size; i++) {
        const char *def = a[i].default_text;
        bool plain = strcmp(def, "REQUIRED") == 0 || strcmp(def, "ABSENT") == 0;
        len += (size_t)snprintf(out + len, size - len, "%s%s%s%s", i ? " " : "", a[i].name,
                                plain ? (def[0] == 'A' ? "?" : "") : "=",
                                plain                       ? ""
                                : strcmp(def, "EMPTY") == 0 ? "[]"
                                                            : def);
    }
}

bool rlx_op_list(size_t i, rlx_op_row *out)
{
    struct target cpu, vulkan, webgpu;

    if (!out || i + 1 >= RLX_OP_count)
        return false;
    const struct op_info *o = op_info((rlx_op)(i + 1));
    backend_find(STR("cpu"))->describe(NULL, &cpu);
    backend_find(STR("vulkan"))->describe(NULL, &vulkan);
    backend_find(STR("webgpu"))->describe(NULL, &webgpu);
    *out = (rlx_op_row){
        .name = o->name,
        .family = family_name(o->family),
        .category = category_name(o->category),
        .inputs = o->inputs,
        .summary = o->summary,
        .special = (o->flags & OP_SPECIAL) != 0,
        .infer = shape_rule_of(o->family) != NULL,
        .grad = grad_has_rule((rlx_op)(i + 1)),
        .cpu = pass_covers(&cpu, o->family),
        .vulkan = pass_covers(&vulkan, o->family),
        .webgpu = pass_covers(&webgpu, o->family),
    };
    list_attributes(o->family, out->attributes, sizeof out->attributes);
    return true;
}
