/* device_check_node.c: one node alone: a graph that holds its operands as leaves, and nothing else.
 *
 *     %y = op %a, %a, %c   =>   graph (input %x0, const %c) { %y = op %x0, %x0, %c  return %y }
 *
 * Sums are allowed errors in proportion to the sizes of their terms; those come from the same graph
 * on the reference, with every operand made positive. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "inspect/device_check.h"
#include "inspect/selftest/selftest.h"

rlx_tensor tensor_of_type(const struct ir_type *type, void *data)
{
    rlx_tensor t = {.dtype = type->dtype, .rank = type->rank, .data = data};
    uint64_t bytes = 0;

    memcpy(t.dim, type->dim, sizeof t.dim);
    type_bytes(type, &bytes);
    t.bytes = (size_t)bytes;
    return t;
}

/* A node, where it comes from, and what it is given. */
struct alone {
    struct checker *c;
    const struct ir_graph *from;
    const struct ir_node *node;
    struct arena arena;
    rlx_model *model;
    rlx_binding *leaf; /* by operand: a name and a value; no name: a constant, or one before it */
    bool *state;       /* by operand: it is a state that the node writes */
    struct diag *diag;
};

/* ---- its graph ---- */

static rlx_status add_leaf(struct alone *a, struct ir_graph *g, int32_t i, ir_value *out)
{
    const struct ir_node *operand = ir_node(a->from, a->node->in[i]);
    struct ir_new_node n = {.op = a->state[i] ? RLX_OP_state : RLX_OP_input};

    if (operand->op == RLX_OP_const) {
        n = (struct ir_new_node){.op = RLX_OP_const, .attr = operand->attr, .borrow_data = true};
        return ir_add(g, &n, out, a->diag);
    }
    a->leaf[i].name = arena_printf(&a->arena, "x%d", i);
    if (!a->leaf[i].name)
        return diag_no_memory(a->diag, 8);
    attr_defaults(n.op, &n.attr);
    n.attr.leaf.name = (struct ir_blob){a->leaf[i].name, strlen(a->leaf[i].name)};
    n.attr.leaf.dtype = operand->type.dtype;
    n.attr.leaf.shape.count = operand->type.rank;
    memcpy(n.attr.leaf.shape.at, operand->type.dim, sizeof n.attr.leaf.shape.at);
    return ir_add(g, &n, out, a->diag);
}

/* The same value twice is one leaf. */
static int32_t same_before(const struct ir_node *n, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (n->in[k] == n->in[i])
            return k;
    return -1;
}

static rlx_status fill_graph(struct alone *a, struct ir_graph *g)
{
    const struct ir_node *n = a->node;
    ir_value *in = arena_array(&a->arena, ir_value, (size_t)n->in_count), made;

    if (!in)
        return diag_no_memory(a->diag, (size_t)n->in_count * sizeof *in);
    for (int32_t i = 0; i < n->in_count; i++) {
        int32_t before = same_before(n, i);
        a->state[i] = op_is(n->op, OP_WRITES) && ir_written_state(a->from, n) == n->in[i];
        if (before >= 0)
            in[i] = in[before];
        else
            TRY(add_leaf(a, g, i, &in[i]));
    }
    TRY(ir_add(
        g, &(struct ir_new_node){.op = n->op, .in = in, .in_count = n->in_count, .attr = n->attr},
        &made, a->diag));
    return ir_add_output(g, made, a->diag);
}

/* A copy of the module whose entry is emptied for the node; sub-graphs stay as they are. */
static rlx_status build(struct alone *a)
{
    struct ir_module *mod;

    TRY(ir_module_copy(a->c->mod, &a->c->ctx->mem, &mod, a->diag));
    struct ir_graph *g = ir_entry(mod);
    g->node.len = g->output.len = g->written.len = 0;
    mod->check.len = 0;
    map_free(&g->leaves);
    map_init(&g->leaves, mod->mem);
    rlx_status s = fill_graph(a, g);
    if (s == RLX_OK)
        s = model_from_copy(a->c->model, mod, &a->model, a->diag);
    if (s != RLX_OK)
        ir_module_destroy(mod);
    return s;
}

/* ---- its values ---- */

/* States begin as zeros in every session, so that is what their writer met. */
static rlx_status give_values(struct alone *a, bool absolute)
{
    for (int32_t i = 0; i < a->node->in_count; i++) {
        rlx_tensor *t = &a->leaf[i].tensor;
        if (!a->leaf[i].name)
            continue;
        *t = a->c->value[a->node->in[i]];
        void *data = arena_alloc(&a->arena, t->bytes, 64);
        if (!data)
            return diag_no_memory(a->diag, t->bytes);
        if (t->bytes && !a->state[i])
            memcpy(data, t->data, t->bytes);
        t->data = data;
        if (!absolute || !dtype_is(t->dtype, CLASS_F | CLASS_C))
            continue;
        struct eval_tensor cells;
        TRY(eval_tensor_new(&a->arena, ir_type_of(a->from, a->node->in[i]), &cells, a->diag));
        eval_load(&cells, data);
        for (int64_t k = 0; k < cells.count; k++) {
            struct eval_cell *cell = &cells.at[k];
            cell->f = t->dtype == RLX_DTYPE_c64 ? hypot(cell->f, cell->im) : fabs(cell->f);
            cell->im = 0;
        }
        eval_store(&cells, data);
    }
    return RLX_OK;
}

const rlx_session_desc as_written = {
    RLX_SIZED(rlx_session_desc),
    .debug = &(const rlx_debug_desc){RLX_SIZED(rlx_debug_desc), .no_optimize = true}};

static rlx_status run_on(struct alone *a, rlx_device *dev, struct eval_tensor *got, rlx_error *err)
{
    rlx_binding *in = arena_array(&a->arena, rlx_binding, (size_t)a->node->in_count + 1);
    rlx_binding out = {"out0", tensor_of_type(&a->node->type, NULL)};
    rlx_session *s;
    size_t count = 0;

    out.tensor.data = arena_alloc(&a->arena, out.tensor.bytes, 64);
    if (!in || !out.tensor.data) {
        *err = (rlx_error){.status = RLX_ERROR_MEMORY, .node = -1, .message = "out of memory"};
        return RLX_ERROR_MEMORY;
    }
    rlx_status status = rlx_session_create(a->model, dev, &as_written, &s, err);
    if (status != RLX_OK)
        return status;
    for (int32_t i = 0; i < a->node->in_count && status == RLX_OK; i++) {
        if (!a->leaf[i].name)
            continue;
        if (a->state[i])
            status = rlx_session_set_state(s, a->leaf[i].name, &a->leaf[i].tensor, err);
        else
            in[count++] = a->leaf[i];
    }
    if (status == RLX_OK)
        status = rlx_session_run(
            s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, &out, 1, NULL, 0}, err);
    rlx_session_destroy(s);
    if (status == RLX_OK)
        eval_load(got, out.tensor.data);
    return status;
}

/* ---- the verdict ---- */

/* Both devices may be off by what is allowed. */
#define ALLOWED 2.0

/* How large the terms of each element are, where the tolerance goes by that; false: it does not, or
 * they could not be had. */
static bool term_sizes(struct alone *a, struct eval_tensor *sizes, rlx_status *status)
{
    enum op_family family = op_info(a->node->op)->family;
    /* A packed weight cannot be made positive, and an activation cannot be left out. The terms of
     * such products are larger, all together, than the largest result. */
    bool closed = family == FAMILY_dequant_matmul || family == FAMILY_dequant_grouped_matmul ||
                  family == FAMILY_fused_matmul_bias_act || family == FAMILY_fused_conv_bias_act;
    ir_value like = closed                            ? ir_id(a->from, a->node)
                    : a->node->op == RLX_OP_attention ? a->node->in[2]
                                                      : RLX_NO_VALUE;
    struct eval_tensor v;
    double most = 0;
    rlx_error err;

    if (!closed && selftest_wants_abs(a->node->op)) {
        *status = give_values(a, true);
        if (*status != RLX_OK)
            return false;
        rlx_status ran = run_on(a, a->c->desc->devices[0], sizes, &err);
        if (ran == RLX_ERROR_MEMORY)
            *status = diag_fail(a->diag, ran, "%s", err.message);
        return ran == RLX_OK;
    }
    if (like == RLX_NO_VALUE || !a->c->value[like].data)
        return false;
    *status = eval_tensor_new(&a->arena, ir_type_of(a->from, like), &v, a->diag);
    if (*status != RLX_OK)
        return false;
    eval_load(&v, a->c->value[like].data);
    for (int64_t k = 0; k < v.count; k++)
        most = isfinite(v.at[k].f) ? fmax(most, fabs(v.at[k].f)) : most;
    for (int64_t k = 0; k < sizes->count; k++)
        sizes->at[k].f = most;
    return true;
}

/* Two right sets of factors may differ: then each is judged by what it is for. */
static rlx_status judge_factors(struct alone *a, const struct eval_tensor *want,
                                const struct eval_tensor *got, struct comparison *cmp)
{
    struct eval_tensor x;

    if (a->node->in_count != 1 || !a->c->value[a->node->in[0]].data)
        return RLX_OK;
    TRY(eval_tensor_new(&a->arena, ir_type_of(a->from, a->node->in[0]), &x, a->diag));
    eval_load(&x, a->c->value[a->node->in[0]].data);
    return selftest_compare_factors(a->node, &x, want, got, &a->arena, a->diag, cmp);
}

static rlx_status judge(struct alone *a, const struct eval_tensor *sizes,
                        const struct eval_tensor *want, const struct eval_tensor *got,
                        struct node_result *r)
{
    double allowed = a->c->desc->exact ? 0 : ALLOWED;
    struct comparison cmp;

    selftest_compare(a->from, a->node, want, sizes, got, &cmp);
    if (cmp.worst > allowed && !a->c->desc->exact)
        TRY(judge_factors(a, want, got, &cmp));
    r->error = cmp.worst;
    if (cmp.worst <= allowed)
        return RLX_OK;
    r->verdict = RLX_FAILED;
    snprintf(r->message, sizeof r->message,
             "element %lld is %.9g, on the reference it is %.9g (%.3g times what is allowed)",
             (long long)cmp.position, cmp.got, cmp.want, cmp.worst);
    return RLX_OK;
}

/* The node cannot run there: for want of memory the check fails, else the node has. */
static rlx_status refuse(struct alone *a, struct node_result *r, const rlx_error *err)
{
    if (err->status == RLX_ERROR_MEMORY)
        return diag_fail(a->diag, err->status, "%s", err->message);
    r->verdict = err->status == RLX_ERROR_UNSUPPORTED ? RLX_SKIPPED : RLX_FAILED;
    snprintf(r->message, sizeof r->message, "%s: %s", rlx_status_name(err->status), err->message);
    return RLX_OK;
}

static rlx_status try_alone(struct alone *a, rlx_device *dev, struct node_result *r)
{
    const rlx_tensor *reference = &a->c->value[ir_id(a->from, a->node)];
    struct eval_tensor want, got, sizes;
    rlx_status status = RLX_OK;
    rlx_error err;

    TRY(build(a));
    TRY(eval_tensor_new(&a->arena, &a->node->type, &want, a->diag));
    TRY(eval_tensor_new(&a->arena, &a->node->type, &got, a->diag));
    TRY(eval_tensor_new(&a->arena, &a->node->type, &sizes, a->diag));
    eval_load(&want, reference->data);
    TRY(give_values(a, false));
    if (run_on(a, dev, &got, &err) != RLX_OK)
        return refuse(a, r, &err);
    bool sized = term_sizes(a, &sizes, &status);
    TRY(status);
    return judge(a, sized ? &sizes : NULL, &want, &got, r);
}

rlx_status check_node(struct checker *c, rlx_device *dev, const struct ir_node *n,
                      struct node_result *r)
{
    struct alone a = {.c = c, .from = ir_entry(c->mod), .node = n, .diag = c->diag};

    arena_init(&a.arena, &c->ctx->mem);
    a.leaf = arena_array(&a.arena, rlx_binding, (size_t)n->in_count);
    a.state = arena_array(&a.arena, bool, (size_t)n->in_count);
    rlx_status s =
        a.leaf && a.state ? try_alone(&a, dev, r) : diag_no_memory(c->diag, (size_t)n->in_count);
    rlx_model_destroy(a.model);
    arena_free(&a.arena);
    return s;
}
