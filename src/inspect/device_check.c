/* device_check.c: a user's graph on several devices.
 *
 * The first device is the reference. It runs the graph with every node as an output, so that all
 * values are known, and as written. Then each node is put into a graph of its own
 * (device_check_node.c) and run on each other device with the reference's operands: what differs
 * there is that node's doing and nobody else's. At last the whole graph runs everywhere as it is
 * compiled for its user, and the outputs are compared. */
#include "inspect/device_check.h"
#include "base/desc.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* ---- the reference ---- */

static void note_readers(const struct ir_graph *g, bool *read)
{
    IR_EACH(n, g)
        for (int32_t i = 0; i < n->in_count; i++)
            if (n->in[i] >= 0)
                read[n->in[i]] = true;
}

/* Constants are in the graph, and leaves that nothing reads may have no value. */
static bool is_wanted(const struct ir_node *n, bool read)
{
    return n->op != RLX_OP_const && (read || !op_is(n->op, OP_LEAF));
}

/* The graph with every value as an output. Position k of the outputs is node number node[k]. */
static rlx_status mark_all_outputs(struct checker *c, struct ir_module *mod, ir_value *node,
                                   size_t *count)
{
    struct ir_graph *g = ir_entry(mod);
    bool *read = arena_array(&c->arena, bool, g->node.len);

    if (!read)
        return diag_no_memory(c->diag, g->node.len);
    note_readers(g, read);
    *count = 0;
    g->output.len = 0;
    for (size_t i = 0; i < g->node.len; i++) {
        if (!is_wanted(&g->node.at[i], read[i]))
            continue;
        TRY(ir_add_output(g, (ir_value)i, c->diag));
        node[(*count)++] = (ir_value)i;
    }
    return RLX_OK;
}

static rlx_status take_error(struct checker *c, rlx_status s, const rlx_error *e)
{
    return s == RLX_OK ? s : diag_fail(c->diag, e->status, "%s", e->message);
}

/* What the model's params were set to. */
static rlx_status copy_params(struct checker *c, rlx_model *to)
{
    const struct ir_graph *g = ir_entry(c->model->mod);
    rlx_error err;

    TRY(model_restore_params(c->model, c->diag));
    for (size_t i = 0; i < c->model->param_count; i++) {
        const struct model_param *p = &c->model->param[i];
        size_t unused;
        if (!p->data || model_find_param(to, p->name, &unused, NULL) != RLX_OK)
            continue;
        rlx_tensor value = tensor_of_type(ir_type_of(g, p->node), p->data);
        TRY(take_error(c, rlx_model_set_param(to, arena_str(&c->arena, p->name).ptr, &value, &err),
                       &err));
    }
    return RLX_OK;
}

static rlx_status read_all(struct checker *c, rlx_model *all, const ir_value *node, size_t count)
{
    rlx_binding *out = arena_array(&c->arena, rlx_binding, count);
    rlx_session *s;
    rlx_error err;

    if (!out)
        return diag_no_memory(c->diag, count * sizeof *out);
    for (size_t k = 0; k < count; k++) {
        rlx_tensor *t = &c->value[node[k]];
        *t = tensor_of_type(ir_type_of(ir_entry(c->mod), node[k]), NULL);
        t->data = arena_alloc(&c->arena, t->bytes, 64);
        out[k] = (rlx_binding){arena_printf(&c->arena, "out%zu", k), *t};
        if (!t->data || !out[k].name)
            return diag_no_memory(c->diag, t->bytes);
    }
    TRY(take_error(c, rlx_session_create(all, c->desc->devices[0], &as_written, &s, &err), &err));
    rlx_run_desc run = *c->desc->run;
    run.outputs = out;
    run.output_count = count;
    run.dim_count = 0; /* they are bound */
    rlx_status status = rlx_session_run(s, &run, &err);
    rlx_session_destroy(s);
    return take_error(c, status, &err);
}

static rlx_status run_reference(struct checker *c)
{
    struct ir_module *mod;
    rlx_model *all = NULL;
    size_t count;

    c->value = arena_array(&c->arena, rlx_tensor, ir_entry(c->mod)->node.len);
    ir_value *node = arena_array(&c->arena, ir_value, ir_entry(c->mod)->node.len);
    if (!c->value || !node)
        return diag_no_memory(c->diag, ir_entry(c->mod)->node.len * sizeof *c->value);
    TRY(ir_module_copy(c->mod, &c->ctx->mem, &mod, c->diag));
    rlx_status s = mark_all_outputs(c, mod, node, &count);
    if (s == RLX_OK)
        s = model_from_copy(c->model, mod, &all, c->diag);
    if (s != RLX_OK) {
        ir_module_destroy(mod);
        return s;
    }
    s = copy_params(c, all);
    if (s == RLX_OK)
        s = read_all(c, all, node, count);
    rlx_model_destroy(all);
    return s;
}

/* ---- each node ---- */

static void report_node(struct checker *c, rlx_device *dev, const struct ir_node *n,
                        const struct node_result *r)
{
    rlx_check_node report = {
        .device = dev->name,
        .op = op_info(n->op)->name,
        .label = n->label,
        .node = ir_id(ir_entry(c->mod), n),
        .verdict = r->verdict,
        .message = r->message,
        .error = r->error,
    };
    rlx_check_summary *s = &c->sum;

    s->passed += r->verdict == RLX_PASSED;
    s->skipped += r->verdict == RLX_SKIPPED;
    if (r->verdict == RLX_FAILED && s->failed++ == 0) {
        s->first_node = report.node;
        snprintf(s->first_device, sizeof s->first_device, "%s", dev->name);
        snprintf(s->first_op, sizeof s->first_op, "%s", report.op);
        snprintf(s->first_label, sizeof s->first_label, "%.*s", STR_ARG(n->label));
    }
    if (c->desc->each_node)
        c->desc->each_node(c->desc->user, &report);
}

static rlx_status check_nodes(struct checker *c, rlx_device *dev)
{
    const struct ir_graph *g = ir_entry(c->mod);

    IR_EACH(n, g) {
        struct node_result r = {.verdict = RLX_PASSED};
        if (op_is(n->op, OP_LEAF))
            continue;
        TRY(check_node(c, dev, n, &r));
        report_node(c, dev, n, &r);
    }
    return RLX_OK;
}

/* ---- the whole graph ---- */

/* Its outputs, as its user would get them. */
static rlx_status run_whole(struct checker *c, rlx_device *dev, rlx_binding *out, rlx_error *err)
{
    size_t count = c->model->output_count;
    rlx_run_desc run = *c->desc->run;
    rlx_session *s;
    rlx_status status = rlx_session_create(c->model, dev, NULL, &s, err);

    if (status != RLX_OK)
        return status;
    run.outputs = NULL;
    run.output_count = 0;
    status = rlx_session_prepare(s, &run, err);
    for (size_t i = 0; i < count && status == RLX_OK; i++) {
        rlx_tensor *t = &out[i].tensor;
        status = rlx_session_output_shape(s, i, t, err);
        out[i].name = arena_printf(&c->arena, "out%zu", i);
        t->data = status == RLX_OK ? arena_alloc(&c->arena, t->bytes, 64) : NULL;
        if (status == RLX_OK && (!t->data || !out[i].name)) {
            *err = (rlx_error){.status = RLX_ERROR_MEMORY, .node = -1, .message = "out of memory"};
            status = RLX_ERROR_MEMORY;
        }
    }
    run.outputs = out;
    run.output_count = count;
    if (status == RLX_OK)
        status = rlx_session_run(s, &run, err);
    rlx_session_destroy(s);
    return status;
}

static rlx_status compare_outputs(struct checker *c, rlx_device *dev, const rlx_binding *got)
{
    rlx_error err;

    for (size_t i = 0; i < c->model->output_count; i++) {
        rlx_check_output o = {.device = dev->name, .name = c->model->output_name[i]};
        const rlx_tensor *want = &c->output[i].tensor;
        bool half = want->dtype == RLX_DTYPE_f16 || want->dtype == RLX_DTYPE_bf16;
        TRY(take_error(c,
                       rlx_compare(&got[i].tensor, want,
                                   half ? RLX_TOLERANCE_HALF : RLX_TOLERANCE_STRICT, &o.comparison,
                                   &err),
                       &err));
        if (c->desc->exact && o.comparison.max_abs > 0)
            o.comparison.passed = false;
        c->sum.outputs++;
        c->sum.outputs_failed += !o.comparison.passed;
        if (c->desc->each_output)
            c->desc->each_output(c->desc->user, &o);
    }
    return RLX_OK;
}

static rlx_status check_whole(struct checker *c, rlx_device *dev)
{
    rlx_binding *got = arena_array(&c->arena, rlx_binding, c->model->output_count);
    rlx_error err;

    if (!got)
        return diag_no_memory(c->diag, c->model->output_count * sizeof *got);
    rlx_status s = run_whole(c, dev, got, &err);
    if (s == RLX_ERROR_UNSUPPORTED) {
        c->sum.devices_skipped++;
        return RLX_OK;
    }
    TRY(take_error(c, s, &err));
    return compare_outputs(c, dev, got);
}

/* ---- all of it ---- */

/* The sizes that the inputs and dims of the run give, as a session finds them. */
static rlx_status bind_model(struct checker *c)
{
    rlx_session *s;
    rlx_error err;
    rlx_run_desc run = *c->desc->run;

    run.outputs = NULL;
    run.output_count = 0;
    TRY(take_error(c, rlx_session_create(c->model, c->desc->devices[0], NULL, &s, &err), &err));
    rlx_status status = take_error(c, rlx_session_prepare(s, &run, &err), &err);
    if (status == RLX_OK)
        status =
            ir_bind(c->model->mod, s->binding, s->symbol_count, &c->ctx->mem, &c->mod, c->diag);
    rlx_session_destroy(s);
    return status;
}

static bool computes(const rlx_device *dev)
{
    struct target t;

    dev->backend->ops->describe(dev->backend, &t);
    return !t.computes_nothing;
}

static rlx_status run_checks(struct checker *c)
{
    rlx_device *reference = c->desc->devices[0];
    rlx_error err;

    if (!computes(reference))
        return diag_fail(c->diag, RLX_ERROR_ARGUMENT,
                         "device \"%s\" computes nothing to compare with", reference->name);
    TRY(bind_model(c));
    TRY(run_reference(c));
    c->output = arena_array(&c->arena, rlx_binding, c->model->output_count);
    if (!c->output)
        return diag_no_memory(c->diag, c->model->output_count * sizeof *c->output);
    TRY(take_error(c, run_whole(c, reference, c->output, &err), &err));
    for (size_t i = 1; i < c->desc->device_count; i++) {
        rlx_device *dev = c->desc->devices[i];
        if (!computes(dev)) {
            c->sum.devices_skipped++;
            continue;
        }
        TRY(check_nodes(c, dev));
        TRY(check_whole(c, dev));
    }
    return RLX_OK;
}

static rlx_status check_arguments(const rlx_model *m, const rlx_check_desc *desc,
                                  const rlx_check_summary *out, struct diag *d)
{
    if (!m || !desc || !out || !desc->run || !desc->devices)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL",
                         !m           ? "m"
                         : !desc      ? "desc"
                         : !out       ? "out"
                         : !desc->run ? "run"
                                      : "devices");
    if (desc->device_count < 2)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%zu devices cannot be compared",
                         desc->device_count);
    for (size_t i = 0; i < desc->device_count; i++)
        if (!desc->devices[i] || desc->devices[i]->ctx != m->ctx)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "device %zu is %s", i,
                             desc->devices[i] ? "of another context" : "NULL");
    return RLX_OK;
}

rlx_status rlx_check(rlx_model *m, const rlx_check_desc *theirs, rlx_check_summary *out,
                     rlx_error *err)
{
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc)};
    rlx_check_desc own = {RLX_SIZED(rlx_check_desc)}, *desc = &own;
    struct diag d;

    diag_init(&d, "check");
    bool fine = DESC_READ(rlx_check_desc, &own, theirs, &d) == RLX_OK &&
                check_arguments(m, theirs ? desc : NULL, out, &d) == RLX_OK &&
                DESC_READ(rlx_run_desc, &run, own.run, &d) == RLX_OK;
    own.run = &run;
    if (fine && m->parts)
        check_parts(m, desc, out, &d);
    else if (fine) {
        struct checker c = {.ctx = m->ctx, .model = m, .desc = desc, .diag = &d};
        c.sum.first_node = -1;
        arena_init(&c.arena, &m->ctx->mem);
        if (run_checks(&c) == RLX_OK)
            *out = c.sum;
        ir_module_destroy(c.mod);
        arena_free(&c.arena);
    }
    return diag_report(&d, err);
}
