/* onnx_write.c: from graph to ModelProto: names, inputs, initializers, outputs, and going through
 * nodes. How an op is written is in onnx_written.def and the onnx_write_*.c files.
 *
 *     input            an input
 *     param            an initializer; without a value an input
 *     state            an input, and an output NAME.next where something writes it
 *     const            an initializer */
#include "import/onnx/write/onnx_write.h"

#include <string.h>

#include "import/onnx/write/onnx_emit.h"

/* ---- the table ---- */

static const struct {
    const char *onnx;   /* one node of that op, operands as they are; NULL: see write */
    onnx_writing write; /* NULL: see why */
    const char *why;    /* why it is not written; NULL: ONNX has no counterpart */
    bool complex;       /* may operands be c64? */
} ops[RLX_OP_count] = {
#define ONNX_SAME(op, onnx, complex) [RLX_OP_##op] = {onnx, NULL, NULL, complex},
#define ONNX_WRITE(op, how, complex, function) \
    [RLX_OP_##op] = {NULL, write_##function, NULL, complex},
#define ONNX_CANNOT(op, why) [RLX_OP_##op] = {NULL, NULL, why, false},
#include "import/onnx/write/onnx_written.def"
};

static bool is_written(rlx_op op)
{
    return ops[op].onnx || ops[op].write;
}

bool onnx_writes(enum op_family f)
{
    bool any = false;

    for (int op = 0; op < RLX_OP_count; op++) {
        if (op_info((rlx_op)op)->family != f || f == FAMILY_none)
            continue;
        if (!is_written((rlx_op)op))
            return false;
        any = true;
    }
    return any;
}

/* ---- nodes ---- */

static bool has_complex(const struct emit *e)
{
    bool any = e->n->type.dtype == RLX_DTYPE_c64;

    for (int32_t i = 0; i < e->n->in_count; i++)
        any |= emit_type(e, i)->dtype == RLX_DTYPE_c64;
    return any;
}

static void write_node(struct emit *e)
{
    rlx_op op = e->n->op;

    if (!is_written(op))
        emit_refuse(e, "%s", ops[op].why ? ops[op].why : "ONNX has no such op");
    else if (!ops[op].complex && has_complex(e))
        emit_refuse(e, "ONNX's ops for this take no complex numbers");
    else if (ops[op].write)
        ops[op].write(e);
    else
        emit_give(e, emit_node(e, ops[op].onnx, e->in, (size_t)e->n->in_count));
}

static rlx_str written_const(struct emit *e)
{
    rlx_str name = emit_fresh(
        e->w, e->n->label.len ? e->n->label : emit_text_of(e->w, "const_%zu", e->w->constants++));

    emit_tensor(e->w, name, &e->n->type, e->n->attr.const_.data.ptr);
    return name;
}

static bool *live_nodes(struct onnx_writer *w, const struct ir_graph *g)
{
    bool *live = arena_array(w->arena, bool, g->node.len + 1);

    if (live)
        ir_mark_live(g, live);
    else
        w->no_memory = true;
    return live;
}

/* All that is needed, but the leaves, which have their names already. wanted[i]: of node i; NULL:
 * no name is wanted. */
static void write_nodes(struct onnx_writer *w, struct onnx_graph *to, const struct ir_graph *g,
                        rlx_str *name, const rlx_str *wanted)
{
    const bool *live = live_nodes(w, g);

    for (size_t i = 0; i < g->node.len && !w->no_memory; i++) {
        const struct ir_node *n = &g->node.at[i];
        struct emit e = {.w = w, .to = to, .first = to->node.count, .g = g, .n = n};
        rlx_str *in = arena_array(w->arena, rlx_str, (size_t)n->in_count);
        if (name[i].len || !live[i])
            continue;
        if (!in) {
            w->no_memory = true;
            return;
        }
        for (int32_t k = 0; k < n->in_count; k++)
            in[k] = name[n->in[k]];
        e.in = in;
        e.wanted = wanted ? wanted[i] : STR("");
        if (n->op == RLX_OP_const)
            e.result = written_const(&e);
        else
            write_node(&e);
        name[i] = e.result;
        /* A node that reads the state after its writer reads what was written. */
        ir_value state = op_is(n->op, OP_WRITES) ? ir_written_state(g, n) : RLX_NO_VALUE;
        if (state != RLX_NO_VALUE)
            name[state] = e.written.len ? e.written : e.result;
    }
}

/* ---- graphs within graphs ---- */

void emit_inline(struct emit *e, const struct ir_graph *sub, const rlx_str *in, rlx_str *out)
{
    struct onnx_writer *w = e->w;
    rlx_str *name = arena_array(w->arena, rlx_str, sub->node.len + 1);
    size_t k = 0;

    for (size_t i = 0; i < sub->output.len; i++)
        out[i] = STR("?");
    if (!name || w->depth >= EMIT_MAX_DEPTH) {
        w->no_memory |= !name;
        emit_refuse(e, "graphs nest deeper than %d", EMIT_MAX_DEPTH);
        return;
    }
    IR_EACH(n, sub) {
        if (n->op == RLX_OP_input)
            name[ir_id(sub, n)] = in[k++];
    }
    w->depth++;
    write_nodes(w, e->to, sub, name, NULL);
    w->depth--;
    for (size_t i = 0; i < sub->output.len && !w->no_memory; i++)
        out[i] = name[sub->output.at[i]];
}

struct onnx_graph *emit_graph_new(struct emit *e, const char *name)
{
    struct onnx_graph *g = arena_new(e->w->arena, struct onnx_graph);

    if (!g)
        e->w->no_memory = true;
    else
        g->name = rlx_cstr(name);
    return g;
}

static void add_info(struct onnx_writer *w, struct onnx_value_info *info, rlx_str name,
                     const struct ir_type *type)
{
    if (!info)
        return;
    info->name = name;
    info->type = emit_tensor_type(w, type);
}

rlx_str emit_graph_input(struct emit *e, struct onnx_graph *g, const char *name,
                         const struct ir_type *type)
{
    rlx_str fresh = emit_fresh(e->w, rlx_cstr(name));

    add_info(e->w, EMIT_MORE(e->w, &g->input), fresh, type);
    return fresh;
}

/* A graph gives what one of its own nodes made. */
void emit_graph_output(struct emit *e, struct onnx_graph *g, rlx_str v, const struct ir_type *type)
{
    struct emit within = *e;

    within.to = g;
    add_info(e->w, EMIT_MORE(e->w, &g->output), emit_1(&within, "Identity", v), type);
}

/* ---- the entry ---- */

static void write_leaves(struct onnx_writer *w, const struct onnx_write_options *o, rlx_str *name)
{
    const struct ir_graph *g = ir_entry(w->mod);
    const bool *live = live_nodes(w, g);

    IR_EACH(n, g) {
        if (op_info(n->op)->family != FAMILY_leaf || w->no_memory)
            continue;
        if (n->op == RLX_OP_param && !live[ir_id(g, n)])
            continue; /* a weight of nothing; inputs and states are the model's interface */
        const void *data =
            n->op == RLX_OP_param && o->param ? o->param(o->user, ir_leaf_name(n)) : NULL;
        name[ir_id(g, n)] =
            emit_fresh(w, ir_leaf_name(n)); /* free: leaves differ, and come first */
        if (data)
            emit_tensor(w, ir_leaf_name(n), &n->type, data);
        else
            add_info(w, EMIT_MORE(w, &w->top->input), ir_leaf_name(n), &n->type);
    }
}

/* What outputs are called; wanted[v]: the name of a node that is one and not yet named. */
static rlx_str *reserve_outputs(struct onnx_writer *w, const struct onnx_write_options *o,
                                const rlx_str *name, rlx_str *wanted)
{
    const struct ir_graph *g = ir_entry(w->mod);
    rlx_str *as = arena_array(w->arena, rlx_str, g->output.len);

    for (size_t i = 0; as && i < g->output.len; i++) {
        ir_value v = g->output.at[i];
        if (str_eq(o->output_name[i], name[v])) { /* a leaf that is itself an output */
            as[i] = name[v];
            continue;
        }
        as[i] = emit_fresh(w, o->output_name[i]);
        if (!wanted[v].len && !name[v].len)
            wanted[v] = as[i];
    }
    return as;
}

static void write_outputs(struct onnx_writer *w, const rlx_str *name, const rlx_str *as)
{
    const struct ir_graph *g = ir_entry(w->mod);

    for (size_t i = 0; i < g->output.len && !w->no_memory; i++) {
        ir_value v = g->output.at[i];
        struct emit e = {.w = w, .to = w->top, .g = g, .n = ir_node(g, v), .wanted = as[i]};
        if (!str_eq(name[v], as[i]))
            emit_give(&e, emit_1(&e, "Identity", name[v]));
        add_info(w, EMIT_MORE(w, &w->top->output), as[i], ir_type_of(g, v));
    }
}

static void write_states(struct onnx_writer *w, const rlx_str *name)
{
    const struct ir_graph *g = ir_entry(w->mod);

    for (size_t i = 0; i < g->written.len && !w->no_memory; i++) {
        const struct ir_node *n = ir_node(g, g->written.at[i]);
        struct emit e = {.w = w, .to = w->top, .g = g, .n = n};
        e.wanted = emit_fresh(w, emit_text_of(w, "%.*s.next", STR_ARG(ir_leaf_name(n))));
        emit_give(&e, emit_1(&e, "Identity", name[g->written.at[i]]));
        add_info(w, EMIT_MORE(w, &w->top->output), e.wanted, &n->type);
    }
}

static void write_entry(struct onnx_writer *w, const struct onnx_write_options *o)
{
    const struct ir_graph *g = ir_entry(w->mod);
    rlx_str *name = arena_array(w->arena, rlx_str, g->node.len + 1);
    rlx_str *wanted = arena_array(w->arena, rlx_str, g->node.len + 1), *as = NULL;

    if (name && wanted) {
        write_leaves(w, o, name);
        as = reserve_outputs(w, o, name, wanted);
    }
    if (!as) {
        w->no_memory = true;
        return;
    }
    write_nodes(w, w->top, g, name, wanted);
    if (w->no_memory)
        return;
    write_outputs(w, name, as);
    write_states(w, name);
}

static void fill_model(struct onnx_writer *w, struct onnx_model *m)
{
    struct onnx_opset *opset = EMIT_MORE(w, &m->opset);
    rlx_str name = ir_entry(w->mod)->name;

    m->ir_version = ONNX_WRITTEN_IR;
    m->producer = STR("rlx");
    m->producer_version = emit_text_of(w, "%d.%d.%d", RLX_VERSION / 10000, RLX_VERSION / 100 % 100,
                                       RLX_VERSION % 100);
    m->graph = w->top;
    if (opset)
        opset->version = ONNX_WRITTEN_OPSET;
    w->top->name = name.len ? name : STR("graph");
}

static rlx_status conclude(const struct onnx_writer *w, const struct onnx_written *out,
                           struct diag *d)
{
    const char *line = out->report.at ? out->report.at : "";

    if (w->no_memory || out->report.failed)
        return diag_no_memory(d, w->name.len);
    if (w->refused)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "%zu node%s cannot be written as ONNX: %.*s",
                         w->refused, w->refused == 1 ? "" : "s", (int)strcspn(line, "\n"), line);
    return RLX_OK;
}

rlx_status onnx_write(const struct ir_module *m, const struct onnx_write_options *options,
                      const rlx_allocator *mem, struct onnx_written *out, struct diag *d)
{
    struct onnx_writer w = {.mod = m, .mem = mem, .arena = &out->arena, .report = &out->report};

    memset(out, 0, sizeof *out);
    arena_init(&out->arena, mem);
    text_init(&out->report, mem);
    map_init(&w.by_name, mem);
    w.top = arena_new(w.arena, struct onnx_graph);
    if (w.top) {
        write_entry(&w, options);
        fill_model(&w, &out->model);
    } else
        w.no_memory = true;
    rlx_status s = conclude(&w, out, d);
    map_free(&w.by_name);
    vec_free(mem, &w.name);
    vec_free(mem, &w.dim);
    vec_free(mem, &w.call);
    return s;
}

void onnx_written_free(struct onnx_written *w)
{
    text_free(&w->report);
    arena_free(&w->arena);
}
