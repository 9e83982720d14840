/* eval_control.c: sub-graphs run once, chosen or repeated, and ops that are a function of the
 * caller's (ops-core.md 17, 18).
 *
 * Each run of a sub-graph has memory of its own, given back when its outputs have been copied out,
 * so a loop of a million turns needs no more than one of two. */
#include "ir/custom.h"
#include "ir/eval/eval.h"

/* ---- running a sub-graph ------------------------------------------------------------------- */

static rlx_status run_in(struct arena *a, const struct ir_graph *g, struct eval_tensor *in,
                         size_t in_count, struct eval_tensor *out, size_t first, size_t out_count,
                         struct diag *d)
{
    struct eval_tensor **leaf = arena_array(a, struct eval_tensor *, g->node.len);
    struct eval_tensor *result = arena_array(a, struct eval_tensor, g->node.len);
    size_t given = 0;

    if (!leaf || !result)
        return diag_no_memory(d, g->node.len * sizeof *result);
    IR_EACH(n, g) {
        if (n->op == RLX_OP_input && given < in_count)
            leaf[ir_id(g, n)] = &in[given++];
    }
    TRY(eval_graph(g, leaf, result, a, d));
    for (size_t i = 0; i < out_count; i++)
        eval_copy(&out[i], &result[g->output.at[first + i]]);
    return RLX_OK;
}

/* Sub-graph `id` on in[]: its outputs first .. first + out_count - 1 are copied to out[], none of
 * which may share cells with in[]. */
static rlx_status run_sub(struct eval_call *c, int32_t id, struct eval_tensor *in, size_t in_count,
                          struct eval_tensor *out, size_t first, size_t out_count)
{
    const struct ir_graph *g = c->graph->mod->graph.at[id];
    struct arena own;

    arena_init(&own, c->arena->mem);
    rlx_status s = run_in(&own, g, in, in_count, out, first, out_count, c->diag);
    arena_free(&own);
    diag_at(c->diag, op_info(c->op)->name, ir_id(c->graph, c->node), c->node->label);
    return s;
}

/* Operands from `first` on, as an array of tensors that share their cells. */
static rlx_status operands_from(struct eval_call *c, int32_t first, struct eval_tensor **out)
{
    size_t count = (size_t)(c->in_count - first);
    struct eval_tensor *t = arena_array(c->arena, struct eval_tensor, count);

    if (!t)
        return diag_no_memory(c->diag, count * sizeof *t);
    for (int32_t i = first; i < c->in_count; i++)
        t[i - first] = *c->in[i];
    *out = t;
    return RLX_OK;
}

/* A tensor with the same type and its own cells. */
static rlx_status tensor_like(struct eval_call *c, const struct eval_tensor *like,
                              struct eval_tensor *out)
{
    return eval_tensor_new(c->arena, &like->type, out, c->diag);
}

static void swap(struct eval_tensor *a, struct eval_tensor *b)
{
    struct eval_tensor t = *a;

    *a = *b;
    *b = t;
}

/* ---- if, while, custom_fn ------------------------------------------------------------------ */

rlx_status eval_if_(struct eval_call *c)
{
    const struct attr_if_ *a = &c->attr->if_;
    struct eval_tensor *captures;

    TRY(operands_from(c, 1, &captures));
    return run_sub(c, eval_true(c->in[0], 0) ? a->then_graph : a->else_graph, captures,
                   (size_t)c->in_count - 1, c->out, (size_t)a->result, 1);
}

rlx_status eval_custom_fn(struct eval_call *c)
{
    struct eval_tensor *in;

    TRY(operands_from(c, 0, &in));
    return run_sub(c, c->attr->custom_fn.fwd_graph, in, (size_t)c->in_count, c->out, 0, 1);
}

static bool all_true(const struct eval_tensor *t)
{
    for (int64_t k = 0; k < t->count; k++)
        if (!eval_true(t, k))
            return false;
    return true;
}

rlx_status eval_while_(struct eval_call *c)
{
    const struct attr_while_ *a = &c->attr->while_;
    const struct ir_graph *cond_graph = c->graph->mod->graph.at[a->cond_graph];
    size_t count = (size_t)c->in_count;
    struct eval_tensor cond, *now, *next;

    TRY(operands_from(c, 0, &now));
    TRY(operands_from(c, 0, &next));
    TRY(eval_tensor_new(c->arena, ir_type_of(cond_graph, cond_graph->output.at[0]), &cond,
                        c->diag));
    for (size_t i = 0; i < count; i++) {
        TRY(tensor_like(c, c->in[i], &now[i]));
        TRY(tensor_like(c, c->in[i], &next[i]));
        eval_copy(&now[i], c->in[i]);
    }
    for (int64_t turn = 0; a->max_iterations == RLX_ABSENT || turn < a->max_iterations; turn++) {
        TRY(run_sub(c, a->cond_graph, now, count, &cond, 0, 1));
        if (!all_true(&cond))
            break;
        TRY(run_sub(c, a->body_graph, now, count, next, 0, count));
        for (size_t i = 0; i < count; i++)
            swap(&now[i], &next[i]);
    }
    eval_copy(c->out, &now[a->result]);
    return RLX_OK;
}

/* ---- scan ---------------------------------------------------------------------------------- */

/* Row t of a tensor, sharing its cells. */
static struct eval_tensor row_of(const struct eval_tensor *x, int64_t t)
{
    struct eval_tensor row = {.type = {.dtype = x->type.dtype, .rank = x->type.rank - 1}};

    for (int32_t i = 0; i < row.type.rank; i++)
        row.type.dim[i] = x->type.dim[i + 1];
    row.count = x->count / x->type.dim[0];
    row.at = x->at + t * row.count;
    return row;
}

/* Which carries a scan of `length` steps keeps when it keeps `rows` of them: those after step
 * ceil((k+1) length / rows), k = 0, 1 .. Steps are asked about in order, from 0. */
struct keeping {
    int64_t length, rows, part; /* part: (t+1) * rows modulo length */
    int64_t next;               /* the row that comes next */
};

/* Step t: is the carry after it kept? *row says where. */
static bool keeps(struct keeping *k, int64_t *row)
{
    if (k->rows < k->length - k->part) {
        k->part += k->rows;
        return false;
    }
    k->part = k->rows - (k->length - k->part);
    *row = k->next++;
    return true;
}

static struct keeping keeping_of(int64_t length, int64_t checkpoints)
{
    return (struct keeping){.length = length, .rows = checkpoints ? checkpoints : length};
}

rlx_status eval_scan(struct eval_call *c)
{
    const struct attr_scan *a = &c->attr->scan;
    struct keeping keep = keeping_of(a->length, a->num_checkpoints);
    int32_t first_xs = 1 + (int32_t)a->num_bcast;
    struct eval_tensor now, next, *in;
    int64_t row;

    TRY(operands_from(c, 0, &in));
    TRY(tensor_like(c, c->in[0], &now));
    TRY(tensor_like(c, c->in[0], &next));
    eval_copy(&now, c->in[0]);
    for (int64_t t = 0; t < a->length; t++) {
        in[0] = now;
        for (int32_t i = first_xs; i < c->in_count; i++)
            in[i] = row_of(c->in[i], t);
        TRY(run_sub(c, a->body, in, (size_t)c->in_count, &next, 0, 1));
        swap(&now, &next);
        if (a->save_trajectory && keeps(&keep, &row)) {
            struct eval_tensor to = row_of(c->out, row);
            eval_copy(&to, &now);
        }
    }
    if (!a->save_trajectory)
        eval_copy(c->out, &now);
    return RLX_OK;
}

/* ---- scan_backward ------------------------------------------------------------------------- */

/* Going back through a scan. Operands: init, trajectory, upstream, xs. */
struct way_back {
    struct eval_call *call;
    const struct attr_scan_backward *attr;
    struct eval_tensor *carry; /* c_0 .. c_length */
    int64_t *row;              /* the row of the trajectory that holds it; -1: none */
    struct eval_tensor d;      /* gradient of the carry we have come to */
    struct eval_tensor *in;    /* of body_vjp: carry, slices, d_next; one more than body has */
    struct eval_tensor *out;   /* of body_vjp: d_carry, d of each slice */
};

static void set_operands(struct way_back *w, int64_t t)
{
    w->in[0] = w->carry[t];
    for (int64_t i = 0; i < w->attr->num_xs; i++)
        w->in[1 + i] = row_of(w->call->in[3 + i], t);
    w->in[1 + w->attr->num_xs] = w->d;
}

/* All carries again: taken from the trajectory where they are kept there, else computed. */
static rlx_status find_carries(struct way_back *w)
{
    struct eval_call *c = w->call;
    struct keeping keep = keeping_of(w->attr->length, w->attr->num_checkpoints);
    size_t count = (size_t)w->attr->length + 1;

    w->carry = arena_array(c->arena, struct eval_tensor, count);
    w->row = arena_array(c->arena, int64_t, count);
    if (!w->carry || !w->row)
        return diag_no_memory(c->diag, count * sizeof *w->carry);
    w->carry[0] = *c->in[0];
    w->row[0] = -1;
    for (int64_t t = 0; t < w->attr->length; t++) {
        w->row[t + 1] = -1;
        if (keeps(&keep, &w->row[t + 1])) {
            w->carry[t + 1] = row_of(c->in[1], w->row[t + 1]);
            continue;
        }
        TRY(tensor_like(c, c->in[0], &w->carry[t + 1]));
        set_operands(w, t);
        TRY(run_sub(c, w->attr->body, w->in, (size_t)w->attr->num_xs + 1, &w->carry[t + 1], 0, 1));
    }
    return RLX_OK;
}

/* d += the gradient of the row that holds carry t, if a scan that yields rows keeps it. */
static void add_upstream(struct way_back *w, int64_t t)
{
    if (!w->attr->save_trajectory || w->row[t] < 0)
        return;
    struct eval_tensor up = row_of(w->call->in[2], w->row[t]);
    for (int64_t k = 0; k < w->d.count; k++)
        w->d.at[k] = eval_cell_binary(RLX_OP_add, w->d.type.dtype, w->d.at[k], up.at[k]);
    eval_round(&w->d);
}

static rlx_status make_room(struct way_back *w)
{
    struct eval_call *c = w->call;
    size_t xs = (size_t)w->attr->num_xs;

    w->in = arena_array(c->arena, struct eval_tensor, xs + 2);
    w->out = arena_array(c->arena, struct eval_tensor, xs + 1);
    if (!w->in || !w->out)
        return diag_no_memory(c->diag, (xs + 2) * sizeof *w->in);
    TRY(tensor_like(c, c->in[0], &w->d));
    TRY(tensor_like(c, c->in[0], &w->out[0]));
    for (size_t i = 0; i < xs && w->attr->length > 0; i++) {
        struct eval_tensor slice = row_of(c->in[3 + i], 0);
        TRY(tensor_like(c, &slice, &w->out[1 + i]));
    }
    return RLX_OK;
}

rlx_status eval_scan_backward(struct eval_call *c)
{
    struct way_back w = {.call = c, .attr = &c->attr->scan_backward};
    size_t xs = (size_t)w.attr->num_xs;

    TRY(make_room(&w));
    TRY(find_carries(&w));
    if (!w.attr->save_trajectory)
        eval_copy(&w.d, c->in[2]);
    add_upstream(&w, w.attr->length);
    for (int64_t t = w.attr->length; t-- > 0;) {
        set_operands(&w, t);
        TRY(run_sub(c, w.attr->body_vjp, w.in, xs + 2, w.out, 0, xs + 1));
        swap(&w.d, &w.out[0]);
        if (c->op == RLX_OP_scan_backward_xs) {
            struct eval_tensor to = row_of(c->out, t);
            eval_copy(&to, &w.out[1 + w.attr->xs_idx]);
        }
        add_upstream(&w, t);
    }
    if (c->op == RLX_OP_scan_backward)
        eval_copy(c->out, &w.d);
    return RLX_OK;
}

/* ---- custom -------------------------------------------------------------------------------- */

/* A tensor's type and, in memory of its own, room for its bytes. */
static rlx_status host_tensor(struct eval_call *c, const struct eval_tensor *t, rlx_tensor *out)
{
    uint64_t bytes = 0;

    if (!type_bytes(&t->type, &bytes))
        return diag_fail(c->diag, RLX_ERROR_LIMIT, "custom: the byte count overflows 64 bits");
    *out = (rlx_tensor){.dtype = t->type.dtype, .rank = t->type.rank, .bytes = (size_t)bytes};
    for (int32_t i = 0; i < t->type.rank; i++)
        out->dim[i] = t->type.dim[i];
    out->data = arena_alloc(c->arena, (size_t)bytes, 64);
    return out->data ? RLX_OK : diag_no_memory(c->diag, (size_t)bytes);
}

rlx_status eval_custom(struct eval_call *c)
{
    const struct attr_custom *a = &c->attr->custom;
    rlx_str name = {a->name.ptr, a->name.len};
    const rlx_custom_op *op = custom_find(c->graph->mod->customs, name);
    rlx_tensor *in = arena_array(c->arena, rlx_tensor, (size_t)c->in_count), out[CUSTOM_RESULTS];

    if (!op || !op->cpu)
        return diag_fail(c->diag, RLX_ERROR_UNSUPPORTED, "custom: \"%.*s\" has no CPU function",
                         STR_ARG(name));
    if (!in)
        return diag_no_memory(c->diag, (size_t)c->in_count * sizeof *in);
    for (int32_t i = 0; i < c->in_count; i++) {
        TRY(host_tensor(c, c->in[i], &in[i]));
        eval_store(c->in[i], in[i].data);
    }
    TRY(custom_infer(op, in, c->in_count, &a->attrs, out, c->diag));
    for (int32_t i = 0; i < custom_results(op); i++) {
        out[i].data = arena_alloc(c->arena, out[i].bytes, 64);
        if (!out[i].data)
            return diag_no_memory(c->diag, out[i].bytes);
    }
    void *data = out[a->result].data;
    rlx_status s = op->cpu(op->user, in, c->in_count, a->attrs.ptr, a->attrs.len, out);
    if (s != RLX_OK)
        return custom_failed(op, "cpu", s, NULL, c->diag);
    eval_load(c->out, data);
    return RLX_OK;
}
