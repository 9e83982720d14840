/* onnx_import.c: an ONNX model becomes a module.
 *
 * Nodes are visited in order. Each finds its handler in onnx_ops.def, by domain, op and opset,
 * and the handler writes nodes of ours. A node that cannot be imported is noted, and so is every
 * other one; nodes that need its results are skipped. */
#include "import/onnx/read/onnx.h"

#include <stdio.h>
#include <string.h>

#include "import/onnx/read/onnx_scope.h"
#include "import/onnx/read/onnx_small_float.h"

struct op_row {
    const char *domain, *op;
    int64_t first, last;
    onnx_handler handler;
};

#define NEWEST INT64_MAX
static const struct op_row op_rows[] = {
#define ONNX_OP(domain, op, first, last, handler) {domain, op, first, last, onnx_##handler},
#include "import/onnx/handlers/onnx_ops.def"
};

static const struct {
    const char *domain, *op, *why;
} not_rows[] = {
#define ONNX_NOT(domain, op, why) {domain, op, why},
#include "import/onnx/handlers/onnx_ops.def"
};

bool onnx_is_default_domain(rlx_str domain)
{
    return domain.len == 0 || str_eq(domain, STR("ai.onnx"));
}

static bool same_domain(rlx_str a, rlx_str b)
{
    return str_eq(a, b) || (onnx_is_default_domain(a) && onnx_is_default_domain(b));
}

static const struct op_row *find_row(rlx_str domain, rlx_str op, int64_t opset)
{
    for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++)
        if (str_eq(op, rlx_cstr(op_rows[i].op)) &&
            same_domain(domain, rlx_cstr(op_rows[i].domain)) && opset >= op_rows[i].first &&
            opset <= op_rows[i].last)
            return &op_rows[i];
    return NULL;
}

static rlx_status no_such_op(const struct onnx_node *n, struct diag *d)
{
    for (size_t i = 0; i < sizeof not_rows / sizeof not_rows[0]; i++)
        if (str_eq(n->op, rlx_cstr(not_rows[i].op)) &&
            same_domain(n->domain, rlx_cstr(not_rows[i].domain)))
            return diag_fail(d, RLX_ERROR_UNSUPPORTED, "%s", not_rows[i].why);
    return diag_fail(d, RLX_ERROR_UNSUPPORTED, "there is no such op here");
}

static const struct onnx_function *find_function(const struct onnx_import *im,
                                                 const struct onnx_node *n)
{
    for (size_t i = 0; i < im->model.function.count; i++) {
        const struct onnx_function *f = &im->model.function.at[i];
        if (str_eq(f->name, n->op) && same_domain(f->domain, n->domain))
            return f;
    }
    return NULL;
}

/* Other domains than the default one may go unmentioned: their ops have but one version here. */
static int64_t opset_of(const struct onnx_scope *s, rlx_str domain)
{
    for (size_t i = 0; s->opset && i < s->opset->count; i++)
        if (same_domain(s->opset->at[i].domain, domain))
            return s->opset->at[i].version;
    return 1;
}

/* ---- failures ---- */

void onnx_note_failure(struct onnx_import *im, const struct onnx_node *n, int64_t opset,
                       const rlx_error *e)
{
    struct text *t = &im->out->report;
    size_t start = t->len;

    if (im->failures++ == 0)
        im->first = *e;
    text_addf(t, "%.*s%s%.*s", STR_ARG(n->domain), n->domain.len ? "." : "", STR_ARG(n->op));
    if (opset) /* an input has none */
        text_addf(t, " (opset %lld)", (long long)opset);
    if (n->name.len)
        text_addf(t, " \"%.*s\"", STR_ARG(n->name));
    else if (n->output.count)
        text_addf(t, " for \"%.*s\"", STR_ARG(n->output.at[0]));
    text_addf(t, ": %s", e->message);
    text_end_line(t, start);
}

/* ---- one node ---- */

static rlx_status make_call(struct onnx_import *im, struct onnx_scope *s, const struct onnx_node *n,
                            struct onnx_call *c, bool *passed_over, struct diag *d)
{
    *c = (struct onnx_call){.im = im,
                            .scope = s,
                            .node = n,
                            .opset = opset_of(s, n->domain),
                            .f = {.g = s->g, .diag = d, .dtype = RLX_DTYPE_f32},
                            .in_count = n->input.count,
                            .out_count = n->output.count};
    c->in = arena_array(im->arena, struct onnx_value *, c->in_count);
    c->out = arena_array(im->arena, struct onnx_value, c->out_count);
    if (!c->in || !c->out)
        return diag_no_memory(d, c->in_count * sizeof *c->in);
    for (size_t i = 0; i < c->out_count; i++)
        c->out[i].node = RLX_NO_VALUE;
    *passed_over = false;
    for (size_t i = 0; i < c->in_count; i++) {
        if (n->input.at[i].len == 0)
            continue;
        c->in[i] = onnx_find(im, s, n->input.at[i]);
        if (!c->in[i])
            return diag_fail(d, RLX_ERROR_FORMAT, "nothing before it gives \"%.*s\"",
                             STR_ARG(n->input.at[i]));
        *passed_over |= c->in[i]->failed;
    }
    if (c->in_count && c->in[0])
        c->f.dtype = c->in[0]->type.dtype;
    return RLX_OK;
}

static rlx_status inline_function(struct onnx_call *c, const struct onnx_function *f)
{
    struct onnx_import *im = c->im;
    struct diag *d = c->f.diag;
    struct onnx_scope s;

    if (c->in_count > f->input.count || c->out_count > f->output.count)
        return diag_fail(d, RLX_ERROR_FORMAT, "the function has %zu inputs and %zu outputs",
                         f->input.count, f->output.count);
    rlx_status status = onnx_scope_begin(im, &s, NULL, c->f.g, d);
    s.depth = c->scope->depth + 1;
    s.opset = &f->opset;
    s.function = c;
    s.definition = f;
    if (s.depth > ONNX_MAX_DEPTH)
        status = diag_fail(d, RLX_ERROR_LIMIT, "functions nest deeper than %d", ONNX_MAX_DEPTH);
    for (size_t i = 0; status == RLX_OK && i < f->input.count; i++) {
        struct onnx_value absent = {.node = RLX_NO_VALUE, .is_absent = true};
        status =
            onnx_bind(im, &s, f->input.at[i], i < c->in_count && c->in[i] ? c->in[i] : &absent, d);
    }
    if (status == RLX_OK)
        status = onnx_walk(im, &s, f->node.at, f->node.count, d);
    for (size_t i = 0; status == RLX_OK && i < c->out_count; i++) {
        const struct onnx_value *v = onnx_find(im, &s, f->output.at[i]);
        if (v)
            c->out[i] = *v;
        else
            status = diag_fail(d, RLX_ERROR_FORMAT, "the function gives no \"%.*s\"",
                               STR_ARG(f->output.at[i]));
    }
    onnx_scope_end(&s);
    return status;
}

static rlx_status check_given(struct onnx_call *c)
{
    for (size_t i = 0; i < c->out_count; i++) {
        const struct onnx_value *v = &c->out[i];
        if (c->node->output.at[i].len && v->node == RLX_NO_VALUE && !v->data && !v->size &&
            !v->is_sequence && !v->is_absent && !v->failed)
            return diag_fail(c->f.diag, RLX_ERROR_UNSUPPORTED, "its output %zu is not computed", i);
    }
    return RLX_OK;
}

/* Of the node itself, or handed to the function around it. */
static bool has_body(const struct onnx_call *c)
{
    for (size_t i = 0; i < c->node->attr.count; i++) {
        const struct onnx_attr *a = onnx_resolve_attr(c, &c->node->attr.at[i]);
        if (a && a->g)
            return true;
    }
    return false;
}

static rlx_status run_call(struct onnx_call *c)
{
    const struct onnx_function *f = find_function(c->im, c->node);
    const struct op_row *row = find_row(c->node->domain, c->node->op, c->opset);
    size_t first = c->f.g->node.len, checks = c->f.g->mod->check.len;

    if (f && !(row && onnx_is_default_domain(c->node->domain))) {
        TRY(inline_function(c, f));
        return check_given(c);
    }
    if (!row)
        return no_such_op(c->node, c->f.diag);
    if (!onnx_takes_codes(c) || onnx_fold_sizes(c))
        return c->f.status;
    TRY(c->f.status);
    row->handler(c);
    onnx_pass_type_on(c);
    TRY(c->f.status);
    TRY(check_given(c));
    /* A body may have made nodes of values around it, which would be lost. */
    if (!has_body(c))
        TRY(onnx_fold(c, first, checks));
    return onnx_cut_outputs(c);
}

/* The node's outputs under their names. */
static rlx_status bind_outputs(struct onnx_call *c, struct diag *d)
{
    for (size_t i = 0; i < c->out_count; i++) {
        rlx_str name = c->node->output.at[i];
        struct onnx_value *v = &c->out[i];
        if (name.len == 0)
            continue;
        TRY(onnx_bind(c->im, c->scope, name, v, d));
        struct ir_node *n = v->node == RLX_NO_VALUE ? NULL : ir_node(c->f.g, v->node);
        if (n && !n->label.len && op_info(n->op)->family != FAMILY_leaf && str_is_utf8(name))
            n->label = arena_str(&c->im->mod->arena, name);
    }
    return RLX_OK;
}

static rlx_status import_node(struct onnx_import *im, struct onnx_scope *s,
                              const struct onnx_node *n, struct diag *d)
{
    struct diag own;
    struct onnx_call c;
    bool passed_over;

    if (im->nodes++ >= ONNX_MAX_NODES)
        return diag_fail(d, RLX_ERROR_LIMIT, "the model has more than %d nodes", ONNX_MAX_NODES);
    diag_init(&own, "load");
    rlx_status status = make_call(im, s, n, &c, &passed_over, &own);
    if (status == RLX_OK && !passed_over)
        status = run_call(&c);
    else if (status == RLX_OK && !find_row(n->domain, n->op, c.opset) && !find_function(im, n))
        status = no_such_op(n, &own);
    if (status == RLX_ERROR_MEMORY)
        return diag_again(d, &own.first, status);
    if (status != RLX_OK && dim_no_memory(im->mod->dims))
        return diag_no_memory(d, 0); /* a size failed for that, not for what was made of it */
    if (status != RLX_OK)
        onnx_note_failure(im, n, c.opset, &own.first);
    for (size_t i = 0; (status != RLX_OK || passed_over) && i < c.out_count; i++)
        c.out[i] = (struct onnx_value){.node = RLX_NO_VALUE, .failed = true};
    return bind_outputs(&c, d);
}

rlx_status onnx_walk(struct onnx_import *im, struct onnx_scope *s, const struct onnx_node *node,
                     size_t count, struct diag *d)
{
    for (size_t i = 0; i < count; i++)
        TRY(import_node(im, s, &node[i], d));
    return RLX_OK;
}

/* ---- what a graph has besides nodes ---- */

static rlx_status bind_initializer(struct onnx_import *im, struct onnx_scope *s,
                                   const struct onnx_tensor *t, struct diag *d)
{
    struct onnx_value v = {.node = RLX_NO_VALUE, .is_weight = true};
    struct diag own;

    diag_init(&own, "load");
    rlx_status status = onnx_tensor_data(t, &im->out->files, im->arena, &v.type, &v.data, &own);
    v.narrow = onnx_narrow_type(t->data_type);
    if (status == RLX_OK && (t->name.len == 0 || !str_is_utf8(t->name)))
        return diag_fail(d, RLX_ERROR_FORMAT, "an initializer without a proper name");
    if (status == RLX_ERROR_UNSUPPORTED) {
        struct onnx_node as_node = {.op = STR("initializer"), .name = t->name};
        onnx_note_failure(im, &as_node, 0, &own.first);
        v.failed = true;
    } else if (status != RLX_OK)
        return diag_again(d, &own.first, status);
    return onnx_bind(im, s, t->name, &v, d);
}

static rlx_status bind_initializers(struct onnx_import *im, struct onnx_scope *s,
                                    const struct onnx_graph *g, struct diag *d)
{
    for (size_t i = 0; i < g->initializer.count; i++)
        TRY(bind_initializer(im, s, &g->initializer.at[i], d));
    if (g->sparse_initializer.count)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "the graph has sparse initializers");
    return RLX_OK;
}

rlx_status onnx_walk_graph(struct onnx_import *im, struct onnx_scope *s, const struct onnx_graph *g,
                           struct diag *d)
{
    TRY(bind_initializers(im, s, g, d));
    return onnx_walk(im, s, g->node.at, g->node.count, d);
}

static rlx_status sum_up(struct onnx_import *im, struct diag *d)
{
    if (im->failures == 0)
        return RLX_OK;
    const char *line = im->out->report.at ? im->out->report.at : "";
    int len = (int)strcspn(line, "\n");
    rlx_status s = im->first.status == RLX_OK ? RLX_ERROR_UNSUPPORTED : im->first.status;
    if (im->failures == 1)
        return diag_fail(d, s, "%.*s", len, line);
    return diag_fail(d, s, "%zu nodes cannot be imported; the first: %.*s", im->failures, len,
                     line);
}

static rlx_status import_graph(struct onnx_import *im, struct diag *d)
{
    const struct onnx_graph *g = im->model.graph;
    struct onnx_scope s;
    struct ir_graph *main_graph;
    size_t number = 0; /* of the input */

    TRY(ir_graph_add(im->mod, STR("main"), &main_graph, d));
    rlx_status status = onnx_scope_begin(im, &s, NULL, main_graph, d);
    s.opset = &im->model.opset;
    if (status == RLX_OK)
        status = onnx_check_told(im, g, d);
    if (status == RLX_OK)
        status = bind_initializers(im, &s, g, d);
    /* Before IR version 4 initializers were listed among the inputs; those are not inputs for us.
     */
    for (size_t i = 0; status == RLX_OK && i < g->input.count; i++)
        if (!onnx_find(im, &s, g->input.at[i].name))
            status = onnx_add_input(im, &s, number++, &g->input.at[i], d);
    if (status == RLX_OK)
        status = onnx_walk(im, &s, g->node.at, g->node.count, d);
    if (status == RLX_OK)
        status = sum_up(im, d);
    if (status == RLX_OK)
        status = onnx_add_outputs(im, &s, g, d);
    onnx_scope_end(&s);
    return status;
}

rlx_status onnx_import(rlx_str bytes, const struct onnx_import_options *options,
                       const rlx_allocator *mem, struct onnx_imported *out, struct diag *d)
{
    struct onnx_import im = {.mem = mem, .out = out, .arena = &out->arena, .options = options};

    *out = (struct onnx_imported){.files = {options->path, options->mode, mem, {0}}};
    arena_init(&out->arena, mem);
    text_init(&out->report, mem);
    TRY(onnx_read_model(bytes, &im.model, &out->arena, d));
    TRY(ir_module_create(mem, &out->mod, d));
    im.mod = out->mod;
    map_init(&im.params, mem);
    rlx_status status = import_graph(&im, d);
    map_free(&im.params);
    return status;
}

void onnx_imported_free(struct onnx_imported *m)
{
    const rlx_allocator *mem = m->files.mem;

    ir_module_destroy(m->mod);
    vec_free(mem, &m->weight);
    vec_free(mem, &m->cut);
    text_free(&m->report);
    onnx_files_close(&m->files);
    arena_free(&m->arena);
}

/* A message whose first field is the IR version (1) or the producer (2), which no text begins with.
 */
