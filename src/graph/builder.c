/* builder.c: graphs built by hand: what rlx/graph.h declares, and what the builders of builders.c
 * call. The first failure is kept, so that a chain of calls needs one check at its end. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "base/str.h"
#include "graph/builder.h"
#include "graph/find_dim.h"
#include "ir/text/text.h"
#include "run/convert.h"

rlx_status graph_create(rlx_context *ctx, rlx_graph **out, struct diag *d)
{
    rlx_graph *g;
    rlx_status s;

    if (!ctx || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "out" : "ctx");
    g = mem_alloc(&ctx->mem, sizeof *g);
    if (!g)
        return diag_no_memory(d, sizeof *g);
    g->ctx = context_retain(ctx);
    g->root = g;
    s = ir_module_create(&ctx->mem, &g->mod, d);
    if (s == RLX_OK) {
        g->mod->customs = &ctx->customs;
        s = ir_graph_add(g->mod, STR("main"), &g->g, d);
    }
    if (s != RLX_OK) {
        graph_destroy(g);
        return s;
    }
    *out = g;
    return RLX_OK;
}

rlx_status rlx_graph_create(rlx_context *ctx, rlx_graph **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    graph_create(ctx, out, &d);
    return diag_report(&d, err);
}

/* Sub-graphs go with their root. */
void graph_destroy(struct rlx_graph *g)
{
    if (!g || g->root != g)
        return;
    rlx_context *ctx = g->ctx;
    const rlx_allocator *mem = &ctx->mem;
    for (size_t i = 0; i < g->sub.len; i++)
        mem_free(mem, g->sub.at[i], sizeof *g);
    vec_free(mem, &g->sub);
    ir_module_destroy(g->mod);
    mem_free(mem, g, sizeof *g);
    context_release(ctx);
}

void rlx_graph_destroy(rlx_graph *g)
{
    graph_destroy(g);
}

static rlx_status create_sub(rlx_graph *g, rlx_str name, rlx_graph **out, struct diag *d)
{
    rlx_graph *sub;

    if (!g || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", g ? "out" : "g");
    if (name.len && (!name.ptr || !str_is_utf8(name)))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the sub-graph's name is not valid UTF-8");
    sub = mem_alloc(&g->ctx->mem, sizeof *sub);
    if (!sub || !vec_room(&g->ctx->mem, &g->root->sub)) {
        mem_free(&g->ctx->mem, sub, sizeof *sub);
        return diag_no_memory(d, sizeof *sub);
    }
    *sub = (rlx_graph){.ctx = g->ctx, .mod = g->mod, .root = g->root};
    rlx_status s = ir_graph_add(g->mod, name, &sub->g, d);
    if (s != RLX_OK) {
        mem_free(&g->ctx->mem, sub, sizeof *sub);
        return s;
    }
    g->root->sub.at[g->root->sub.len++] = sub;
    *out = sub;
    return RLX_OK;
}

rlx_status rlx_graph_sub(rlx_graph *g, const char *name, rlx_graph **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    create_sub(g, rlx_cstr(name), out, &d);
    return diag_report(&d, err);
}

rlx_status rlx_graph_check(const rlx_graph *g, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    if (!g)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "g is NULL");
    else if (g->root->first.status != RLX_OK) {
        if (err)
            *err = g->root->first;
        return g->root->first.status;
    }
    return diag_report(&d, err);
}

/* ---- nodes ---- */

static void keep_first(rlx_graph *g, const struct diag *d)
{
    if (g->root->first.status == RLX_OK)
        diag_report(d, &g->root->first);
}

static rlx_value add(rlx_graph *g, const struct ir_new_node *n)
{
    struct diag d;
    ir_value v = RLX_NO_VALUE;

    diag_init(&d, "build");
    if (ir_add(g->g, n, &v, &d) == RLX_OK)
        return v;
    keep_first(g, &d);
    return RLX_NO_VALUE;
}

bool build_desc(rlx_graph *g, void *own, size_t own_size, const void *theirs, const char *name)
{
    struct diag d;

    if (!g)
        return false;
    diag_init(&d, "build");
    if (desc_read(own, own_size, theirs, name, &d) == RLX_OK)
        return true;
    keep_first(g, &d);
    return false;
}

__attribute__((format(printf, 4, 0))) static void
keep_failure(rlx_graph *g, rlx_status s, const char *name, const char *fmt, va_list args)
{
    char text[sizeof g->root->first.message];
    struct diag d;

    vsnprintf(text, sizeof text, fmt, args);
    diag_init(&d, "build");
    diag_at(&d, name, -1, (rlx_str){NULL, 0});
    diag_fail(&d, s, "%s%s%s", name ? name : "", name ? ": " : "", text);
    keep_first(g, &d);
}

void build_fail(rlx_graph *g, rlx_status s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    keep_failure(g, s, NULL, fmt, args);
    va_end(args);
}

bool build_fail_in(rlx_graph *g, rlx_status s, const char *name, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    keep_failure(g, s, name, fmt, args);
    va_end(args);
    return false;
}

#define FEW_INPUTS 16

rlx_value build_node(rlx_graph *g, rlx_op op, const rlx_value *in, size_t count, uint32_t optional,
                     const rlx_value *more, size_t more_count, const union ir_attr *attr)
{
    rlx_value few[FEW_INPUTS], *all = few;
    size_t n = 0, room = count + more_count;
    struct ir_new_node node = {.op = op};

    if (!g)
        return RLX_NO_VALUE;
    if (more_count && !more) {
        build_fail(g, RLX_ERROR_ARGUMENT, "the list of inputs is NULL");
        return RLX_NO_VALUE;
    }
    if (more_count > INT32_MAX / 2) {
        build_fail(g, RLX_ERROR_LIMIT, "too many inputs");
        return RLX_NO_VALUE;
    }
    for (size_t i = 0; i < count; i++) /* an earlier failure already said why */
        if (in[i] == RLX_NO_VALUE && !(optional >> i & 1) && g->root->first.status != RLX_OK)
            return RLX_NO_VALUE;
    if (room > FEW_INPUTS && !(all = mem_alloc(&g->ctx->mem, room * sizeof *all))) {
        build_fail(g, RLX_ERROR_MEMORY, "out of memory for the list of inputs");
        return RLX_NO_VALUE;
    }
    for (size_t i = 0; i < count; i++)
        if (in[i] != RLX_NO_VALUE || !(optional >> i & 1))
            all[n++] = in[i];
    for (size_t i = 0; i < more_count; i++)
        all[n++] = more[i];
    node.in = all;
    node.in_count = (int32_t)n;
    if (attr)
        node.attr = *attr;
    else
        attr_defaults(op, &node.attr);
    rlx_value v = add(g, &node);
    if (all != few)
        mem_free(&g->ctx->mem, all, room * sizeof *all);
    return v;
}

struct ir_blob build_string(const char *s)
{
    return (struct ir_blob){s, s ? strlen(s) : 0};
}

int32_t build_graph_id(const rlx_graph *g, const rlx_graph *sub)
{
    return g && sub && sub->mod == g->mod ? sub->g->id : -1;
}

static rlx_value leaf(rlx_graph *g, rlx_op op, const char *name, rlx_dtype dtype, rlx_list shape)
{
    struct ir_new_node n = {.op = op};

    if (!g)
        return RLX_NO_VALUE;
    attr_defaults(op, &n.attr);
    n.attr.leaf.name = build_string(name);
    n.attr.leaf.dtype = dtype;
    n.attr.leaf.shape = shape;
    return add(g, &n);
}

rlx_value rlx_input(rlx_graph *g, const char *name, rlx_dtype dtype, rlx_list shape)
{
    return leaf(g, RLX_OP_input, name, dtype, shape);
}

rlx_value rlx_param(rlx_graph *g, const char *name, rlx_dtype dtype, rlx_list shape)
{
    return leaf(g, RLX_OP_param, name, dtype, shape);
}

rlx_value rlx_state(rlx_graph *g, const char *name, rlx_dtype dtype, rlx_list shape)
{
    return leaf(g, RLX_OP_state, name, dtype, shape);
}

rlx_value rlx_graph_leaf(const rlx_graph *g, const char *name)
{
    ir_value v;

    return g && name && ir_find_leaf(g->g, rlx_cstr(name), &v) ? v : RLX_NO_VALUE;
}

static rlx_status make_state(rlx_graph *g, const char *name, struct diag *d)
{
    ir_value v;

    if (!g || !name)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", g ? "name" : "g");
    if (!ir_find_leaf(g->g, rlx_cstr(name), &v) || ir_node(g->g, v)->op != RLX_OP_param)
        return diag_fail(d, RLX_ERROR_NAME, "the graph has no param \"%s\"", name);
    if (!type_is_static(ir_type_of(g->g, v)))
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "the param \"%s\" has a symbolic size, which a state cannot have", name);
    ir_node(g->g, v)->op = RLX_OP_state;
    return RLX_OK;
}

rlx_status rlx_graph_make_state(rlx_graph *g, const char *name, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    make_state(g, name, &d);
    return diag_report(&d, err);
}

rlx_value rlx_const(rlx_graph *g, rlx_dtype dtype, rlx_list shape, const void *data, size_t bytes)
{
    struct ir_new_node n = {.op = RLX_OP_const};

    if (!g)
        return RLX_NO_VALUE;
    attr_defaults(RLX_OP_const, &n.attr);
    n.attr.const_.dtype = dtype;
    n.attr.const_.shape = shape;
    n.attr.const_.data = (struct ir_blob){data, bytes};
    return add(g, &n);
}

rlx_value rlx_scalar(rlx_graph *g, rlx_value like, double v)
{
    uint64_t bytes[1];

    if (!g || (like == RLX_NO_VALUE && g->root->first.status != RLX_OK))
        return RLX_NO_VALUE;
    if (like < 0 || (size_t)like >= g->g->node.len) {
        build_fail(g, RLX_ERROR_GRAPH, "scalar: like is not a node of this graph");
        return RLX_NO_VALUE;
    }
    rlx_dtype t = ir_type_of(g->g, like)->dtype;
    if (dtype_is(t, CLASS_INT | CLASS_B) && !(v == (double)(int64_t)v)) {
        build_fail(g, RLX_ERROR_ATTRIBUTE, "scalar: an integer tensor takes an integer");
        return RLX_NO_VALUE;
    }
    convert(t, bytes, RLX_DTYPE_f64, &v, 1);
    return rlx_const(g, t, RLX_EMPTY, bytes, rlx_dtype_size(t));
}

void rlx_output(rlx_graph *g, rlx_value v)
{
    struct diag d;

    if (!g || (v == RLX_NO_VALUE && g->root->first.status != RLX_OK))
        return;
    diag_init(&d, "build");
    if (ir_add_output(g->g, v, &d) != RLX_OK)
        keep_first(g, &d);
}

rlx_value rlx_graph_output_at(const rlx_graph *g, size_t i)
{
    return g && i < g->g->output.len ? g->g->output.at[i] : RLX_NO_VALUE;
}

void rlx_graph_clear_outputs(rlx_graph *g)
{
    if (g)
        g->g->output.len = 0;
}

void rlx_label(rlx_graph *g, rlx_value v, const char *label)
{
    if (!g || v < 0 || (size_t)v >= g->g->node.len)
        return;
    rlx_str own = arena_str(&g->mod->arena, rlx_cstr(label));
    if (own.ptr || own.len == 0)
        ir_node(g->g, v)->label = own;
    else
        build_fail(g, RLX_ERROR_MEMORY, "out of memory for a label");
}

static rlx_status node_by_name(rlx_graph *g, const char *op, const rlx_value *in, size_t in_count,
                               const char *attrs, rlx_value *out, struct diag *d)
{
    struct ir_new_node n = {.in = in, .in_count = (int32_t)in_count};

    if (!g || !op || !out)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !g ? "g" : !op ? "op" : "out");
    if (in_count > INT32_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu inputs are too many", in_count);
    if (!op_from_name(rlx_cstr(op), &n.op))
        return diag_fail(d, RLX_ERROR_GRAPH, "there is no op \"%s\"", op);
    attr_defaults(n.op, &n.attr);
    if (attrs)
        TRY(ir_parse_attrs(g->mod, n.op, rlx_cstr(attrs), &n.attr, d));
    return ir_add(g->g, &n, out, d);
}

rlx_status rlx_graph_node(rlx_graph *g, const char *op, const rlx_value *in, size_t in_count,
                          const char *attrs, rlx_value *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    node_by_name(g, op, in, in_count, attrs, out, &d);
    return diag_report(&d, err);
}

/* ---- dims ---- */

rlx_dim rlx_dim_symbol(rlx_graph *g, const char *name)
{
    return g ? dim_symbol(g->mod->dims, rlx_cstr(name)) : RLX_DIM_FAILED;
}

rlx_status rlx_dim_bound(rlx_graph *g, const char *name, int64_t upper, rlx_error *err)
{
    struct diag d;
    size_t symbol;

    diag_init(&d, "build");
    if (!g || !name)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", g ? "name" : "g");
    else if (upper < 1)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "the bound of \"%s\" must be at least 1, not %lld", name,
                  (long long)upper);
    else if (find_dim(g->mod->dims, name, &symbol, &d) == RLX_OK)
        dim_set_bound(g->mod->dims, symbol, upper);
    return diag_report(&d, err);
}

rlx_dim rlx_dim_add(rlx_graph *g, rlx_dim a, rlx_dim b)
{
    return g ? dim_add(g->mod->dims, a, b) : RLX_DIM_FAILED;
}

rlx_dim rlx_dim_sub(rlx_graph *g, rlx_dim a, rlx_dim b)
{
    return g ? dim_sub(g->mod->dims, a, b) : RLX_DIM_FAILED;
}

rlx_dim rlx_dim_mul(rlx_graph *g, rlx_dim a, rlx_dim b)
{
    return g ? dim_mul(g->mod->dims, a, b) : RLX_DIM_FAILED;
}

rlx_dim rlx_dim_div(rlx_graph *g, rlx_dim a, int64_t by)
{
    return g ? dim_floor_div(g->mod->dims, a, by) : RLX_DIM_FAILED;
}

rlx_status rlx_value_type(const rlx_graph *g, rlx_value v, rlx_dtype *dtype, rlx_list *shape,
                          rlx_error *err)
{
    struct diag d;

    diag_init(&d, "build");
    if (!g)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "g is NULL");
    else if (v < 0 || (size_t)v >= g->g->node.len)
        diag_fail(&d, RLX_ERROR_GRAPH, "%d is not a node of this graph", v);
    else {
        const struct ir_type *t = ir_type_of(g->g, v);
        if (dtype)
            *dtype = t->dtype;
        if (shape)
            *shape = rlx_list_of(t->rank, t->dim);
    }
    return diag_report(&d, err);
}
