/* onnx_write_control.c: branches and loops. An ONNX graph sees the names around it, so the operands
 * of our sub-graphs are not passed on: their inputs are those names.
 *
 * Ours has a node per result; ONNX's nodes have all of them, so that nodes which differ in nothing
 * else are written once. */
#include <string.h>

#include "import/onnx/write/onnx_emit.h"

static const struct ir_graph *sub_graph(const struct emit *e, int32_t id)
{
    return e->w->mod->graph.at[id];
}

/* ---- written once ---- */

static bool is_same_call(const struct emit_call *c, const struct emit *e, int32_t a, int32_t b)
{
    if (c->to != e->to || c->op != e->n->op || c->graph[0] != a || c->graph[1] != b ||
        c->in_count != e->n->in_count)
        return false;
    for (int32_t i = 0; i < c->in_count; i++)
        if (!str_eq(c->in[i], e->in[i]))
            return false;
    return true;
}

/* The results of a node with these graphs and operands; NULL: there is none yet. */
static const rlx_str *written_before(const struct emit *e, int32_t a, int32_t b)
{
    for (size_t i = 0; i < e->w->call.len; i++)
        if (is_same_call(&e->w->call.at[i], e, a, b))
            return e->w->call.at[i].out;
    return NULL;
}

/* A graph that is written is not written to again, so its calls, from that one on, are no use. */
static void forget(struct emit *e, size_t from)
{
    e->w->call.len = from;
}

static void remember(struct emit *e, int32_t a, int32_t b, const rlx_str *out)
{
    if (vec_room(e->w->mem, &e->w->call))
        e->w->call.at[e->w->call.len++] =
            (struct emit_call){e->to, e->n->op, {a, b}, e->in, e->n->in_count, out};
    else
        e->w->no_memory = true;
}

/* A node with that many results, all of them named. */
static rlx_str *results(struct emit *e, const char *op, const rlx_str *in, size_t count,
                        size_t outs)
{
    rlx_str *out = outs <= 32 ? arena_array(e->w->arena, rlx_str, outs) : NULL;

    if (!out) {
        emit_refuse(e, "it has more than 32 results");
        return NULL;
    }
    emit_outputs(e, op, in, count, out, outs, ~0u);
    return out;
}

/* ---- if ---- */

static struct onnx_graph *branch(struct emit *e, const char *name, int32_t id)
{
    const struct ir_graph *sub = sub_graph(e, id);
    struct onnx_graph *g = emit_graph_new(e, name);
    rlx_str *out = arena_array(e->w->arena, rlx_str, sub->output.len);
    size_t calls = e->w->call.len;
    struct emit within = *e;

    if (!g || !out)
        return NULL;
    within.to = g;
    emit_inline(&within, sub, e->in + 1, out);
    forget(e, calls);
    for (size_t i = 0; i < sub->output.len; i++)
        emit_graph_output(e, g, out[i], ir_type_of(sub, sub->output.at[i]));
    return g;
}

/* One element as a truth value of rank 0. */
static rlx_str truth(struct emit *e, rlx_str v, const struct ir_type *t)
{
    v = emit_cast(e, v, t->dtype, RLX_DTYPE_bool);
    return t->rank ? emit_reshape(e, v, RLX_EMPTY) : v;
}

void write_if(struct emit *e)
{
    const struct attr_if_ *a = &e->n->attr.if_;
    const rlx_str *before = written_before(e, a->then_graph, a->else_graph);

    if (before) {
        emit_give(e, before[a->result]);
        return;
    }
    struct onnx_graph *yes = branch(e, "then", a->then_graph),
                      *no = branch(e, "else", a->else_graph);
    rlx_str cond = truth(e, e->in[0], emit_type(e, 0));
    rlx_str *out = results(e, "If", &cond, 1, sub_graph(e, a->then_graph)->output.len);
    if (!out)
        return;
    emit_graph(e, "then_branch", yes);
    emit_graph(e, "else_branch", no);
    remember(e, a->then_graph, a->else_graph, out);
    e->result = out[a->result];
}

/* ---- while ---- */

/* Are all elements of what the graph says of these values true? */
static rlx_str goes_on(struct emit *e, const struct ir_graph *cond, const rlx_str *values)
{
    const struct ir_type *t = ir_type_of(cond, cond->output.at[0]);
    rlx_str *out = arena_array(e->w->arena, rlx_str, cond->output.len);

    if (!out)
        return STR("");
    emit_inline(e, cond, values, out);
    if (t->rank == 0)
        return truth(e, out[0], t);
    rlx_str all = emit_cast(e, out[0], t->dtype, RLX_DTYPE_bool);
    all = emit_1(e, "ReduceMin", emit_cast(e, all, RLX_DTYPE_bool, RLX_DTYPE_i32));
    emit_int(e, "keepdims", 0);
    return emit_cast(e, all, RLX_DTYPE_i32, RLX_DTYPE_bool);
}

static struct onnx_graph *loop_body(struct emit *e, const struct ir_graph *cond,
                                    const struct ir_graph *body)
{
    static const struct ir_type number = {.dtype = RLX_DTYPE_i64}, flag = {.dtype = RLX_DTYPE_bool};
    size_t n = (size_t)e->n->in_count;
    struct onnx_graph *g = emit_graph_new(e, "body");
    rlx_str *in = arena_array(e->w->arena, rlx_str, n), *out = arena_array(e->w->arena, rlx_str, n);
    size_t calls = e->w->call.len;
    struct emit within = *e;

    if (!g || !in || !out)
        return NULL;
    within.to = g;
    emit_graph_input(e, g, "round", &number);
    emit_graph_input(e, g, "going", &flag);
    for (size_t i = 0; i < n; i++)
        in[i] = emit_graph_input(e, g, "value", emit_type(e, (int32_t)i));
    emit_inline(&within, body, in, out);
    rlx_str again = goes_on(&within, cond, out);
    forget(e, calls);
    emit_graph_output(e, g, again, &flag);
    for (size_t i = 0; i < n; i++)
        emit_graph_output(e, g, out[i], emit_type(e, (int32_t)i));
    return g;
}

void write_while(struct emit *e)
{
    const struct attr_while_ *a = &e->n->attr.while_;
    const struct ir_graph *cond = sub_graph(e, a->cond_graph), *body = sub_graph(e, a->body_graph);
    const rlx_str *before = written_before(e, a->cond_graph, a->body_graph);
    size_t n = (size_t)e->n->in_count;
    rlx_str *in = arena_array(e->w->arena, rlx_str, n + 2);

    if (before) {
        emit_give(e, before[a->result]);
        return;
    }
    struct onnx_graph *g = loop_body(e, cond, body);
    if (!in || !g) {
        e->w->no_memory = true;
        return;
    }
    in[0] = a->max_iterations == RLX_ABSENT
                ? STR("")
                : emit_reshape(e, emit_i64(e, a->max_iterations), RLX_EMPTY);
    in[1] = goes_on(e, cond, e->in);
    memcpy(in + 2, e->in, n * sizeof *in);
    rlx_str *out = results(e, "Loop", in, n + 2, n);
    if (!out)
        return;
    emit_graph(e, "body", g);
    remember(e, a->cond_graph, a->body_graph, out);
    e->result = out[a->result];
}

/* ---- scan ---- */

/* One step: inputs as Scan gives them, or after the two that Loop gives. */
static struct onnx_graph *scan_body(struct emit *e, bool loop)
{
    static const struct ir_type number = {.dtype = RLX_DTYPE_i64}, flag = {.dtype = RLX_DTYPE_bool};
    const struct attr_scan *a = &e->n->attr.scan;
    const struct ir_graph *body = sub_graph(e, a->body);
    struct onnx_graph *g = emit_graph_new(e, "body");
    rlx_str *in = arena_array(e->w->arena, rlx_str, (size_t)e->n->in_count), out;
    const struct ir_type *carry = emit_type(e, 0);
    size_t calls = e->w->call.len;
    struct emit within = *e;

    if (!g || !in)
        return NULL;
    within.to = g;
    if (loop) {
        emit_graph_input(e, g, "round", &number);
        rlx_str going = emit_graph_input(e, g, "going", &flag);
        emit_graph_output(e, g, going, &flag);
    }
    in[0] = emit_graph_input(e, g, "carry", carry);
    for (int32_t i = 1; i < e->n->in_count; i++) {
        struct ir_type t = *emit_type(e, i);
        if (i <= a->num_bcast) {
            in[i] = e->in[i];
            continue;
        }
        memmove(t.dim, t.dim + 1, sizeof t.dim - sizeof t.dim[0]);
        t.rank--;
        in[i] = emit_graph_input(e, g, "slice", &t);
    }
    emit_inline(&within, body, in, &out);
    forget(e, calls);
    emit_graph_output(e, g, out, carry);
    if (a->save_trajectory)
        emit_graph_output(e, g, out, carry);
    return g;
}

/* Of all carries, those that are followed by a checkpoint. */
static rlx_str checkpoints(struct emit *e, rlx_str all)
{
    const struct attr_scan *a = &e->n->attr.scan;
    int64_t k = a->num_checkpoints, n = a->length;

    if (k == 0 || k == n)
        return all;
    int64_t *row = dim_is_static(n) ? arena_array(e->w->arena, int64_t, (size_t)k) : NULL;
    if (!row) {
        emit_refuse(e, "it keeps some carries of a symbolic number");
        return all;
    }
    for (int64_t i = 0; i < k; i++)
        row[i] = (int64_t)(((__int128)(i + 1) * n + k - 1) / k) - 1;
    return emit_2(e, "Gather", all, emit_i64s(e, row, (size_t)k));
}

void write_scan(struct emit *e)
{
    const struct attr_scan *a = &e->n->attr.scan;
    bool loop = a->num_xs == 0; /* Scan must have something to go along */
    struct onnx_graph *g = scan_body(e, loop);
    size_t xs = (size_t)a->num_xs, count = 0, which = a->save_trajectory ? 1 : 0;
    rlx_str *in = arena_array(e->w->arena, rlx_str, xs + 3), out[2];

    if (!g || !in) {
        e->w->no_memory = true;
        return;
    }
    if (loop) {
        in[count++] = emit_reshape(e, emit_dim(e, a->length), RLX_EMPTY);
        in[count++] = STR("");
    }
    in[count++] = e->in[0];
    for (size_t i = 0; i < xs; i++)
        in[count++] = e->in[1 + (size_t)a->num_bcast + i];
    emit_outputs(e, loop ? "Loop" : "Scan", in, count, out, which + 1, ~0u);
    emit_graph(e, "body", g);
    if (!loop)
        emit_int(e, "num_scan_inputs", a->num_xs);
    emit_give(e, a->save_trajectory ? checkpoints(e, out[1]) : out[0]);
}
