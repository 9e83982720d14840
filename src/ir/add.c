/* add.c: a new node, from operands and attributes to a checked and typed member of its graph. */
#include <string.h>

#include "ir/attention.h"
#include "ir/graph.h"
#include "ir/infer.h"

#define MAX_NODES (1 << 20)

/* Is this operand one of those that are brought to a common type? */
static bool is_promoted(rlx_op op, int32_t operand, int32_t count)
{
    enum operand_role role = op_input_role(op, operand, count);

    return role == ROLE_PLAIN || role == ROLE_WEIGHT;
}

/* Contractions mix f16, bf16 and f32 only; elementwise ops meet by the whole table. */
static bool mixes_freely(rlx_op op)
{
    return op_info(op)->category == CATEGORY_ELEMENTWISE;
}

static bool is_small_float(rlx_dtype t)
{
    return t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16 || t == RLX_DTYPE_f32;
}

static bool is_mixed_attention(const struct ir_graph *g, rlx_op op, const ir_value *in,
                               int32_t count)
{
    return op == RLX_OP_attention && count >= 3 &&
           attention_mixes(ir_type_of(g, in[0])->dtype, ir_type_of(g, in[1])->dtype,
                           ir_type_of(g, in[2])->dtype);
}

static rlx_status append(struct ir_graph *g, rlx_op op, const ir_value *in, int32_t in_count,
                         union ir_attr *attr, rlx_str label, ir_value *out, struct diag *d)
{
    struct ir_module *m = g->mod;
    struct ir_node n = {.op = op, .in_count = in_count, .attr = *attr};

    if (g->node.len >= MAX_NODES)
        return diag_fail(d, RLX_ERROR_LIMIT, "a graph holds at most %d nodes", MAX_NODES);
    TRY(ir_infer_node(g, op, &n.attr, in, in_count, (int32_t)g->node.len, true, &n.type, d));
    n.in = arena_array(&m->arena, ir_value, (size_t)in_count);
    n.label = label.len ? arena_str(&m->arena, label) : (rlx_str){NULL, 0};
    if (!n.in || (label.len && !n.label.ptr) || !vec_room(m->mem, &g->node))
        return diag_no_memory(d, sizeof n);
    if (in_count)
        memcpy(n.in, in, (size_t)in_count * sizeof *in);
    *out = (ir_value)g->node.len;
    g->node.at[g->node.len++] = n;
    return RLX_OK;
}

static rlx_status promote(struct ir_graph *g, rlx_op op, ir_value *in, int32_t count,
                          struct diag *d)
{
    rlx_dtype meet = RLX_ABSENT_DTYPE;

    if (is_mixed_attention(g, op, in, count))
        return RLX_OK;
    for (int32_t i = 0; i < count; i++) {
        rlx_dtype t = ir_type_of(g, in[i])->dtype;
        if (!is_promoted(op, i, count))
            continue;
        meet = meet == RLX_ABSENT_DTYPE ? t : meet;
        if (!mixes_freely(op) && t != meet && !(is_small_float(t) && is_small_float(meet)))
            return RLX_OK; /* the op's rule says what is wrong */
        if (!dtype_promote(meet, t, &meet))
            return diag_fail(d, RLX_ERROR_DTYPE, "%s: %s and %s have no common type; cast one",
                             op_info(op)->name, rlx_dtype_name(meet), rlx_dtype_name(t));
    }
    for (int32_t i = 0; i < count; i++) {
        union ir_attr attr;
        if (!is_promoted(op, i, count) || ir_type_of(g, in[i])->dtype == meet)
            continue;
        attr_defaults(RLX_OP_cast, &attr);
        attr.cast.to = meet;
        TRY(append(g, RLX_OP_cast, &in[i], 1, &attr, (rlx_str){NULL, 0}, &in[i], d));
    }
    return RLX_OK;
}

/* Strings, floats and chains given by the caller become the module's own. */
static rlx_status own_blobs(struct ir_module *m, rlx_op op, union ir_attr *attr, bool borrow_data,
                            struct diag *d)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        struct ir_blob *b = (struct ir_blob *)((char *)attr + a[i].offset);
        size_t element = attr_element_size(a[i].kind);
        switch (a[i].kind) {
        case ATTR_FLOATS:
        case ATTR_CHAIN:
        case ATTR_STRING: break;
        case ATTR_BYTES:
            if (borrow_data)
                continue;
            break;
        default: continue;
        }
        if (b->len == 0)
            continue;
        if (!b->ptr)
            return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: %s is NULL", op_info(op)->name, a[i].name);
        void *own = arena_alloc_array(&m->arena, b->len, element, 16);
        if (!own)
            return diag_no_memory(d, b->len);
        memcpy(own, b->ptr, b->len * element);
        b->ptr = own;
    }
    return RLX_OK;
}

static rlx_status check_leaf(const struct ir_graph *g, const struct ir_new_node *n, struct diag *d)
{
    ir_value other;
    rlx_str name = {n->attr.leaf.name.ptr, n->attr.leaf.name.len};

    if (g->id != 0 && n->op != RLX_OP_input)
        return diag_fail(d, RLX_ERROR_GRAPH, "%s: a sub-graph holds inputs and constants only",
                         op_info(n->op)->name);
    if (name.len && name.ptr && ir_find_leaf(g, name, &other))
        return diag_fail(d, RLX_ERROR_GRAPH, "%s: the name \"%.*s\" is taken by an %s",
                         op_info(n->op)->name, STR_ARG(name), op_info(ir_node(g, other)->op)->name);
    return RLX_OK;
}

static rlx_status check_operands(const struct ir_graph *g, const struct ir_new_node *n,
                                 struct diag *d)
{
    const char *name = op_info(n->op)->name;

    if (n->in_count < 0 || (n->in_count && !n->in))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s: no operands given", name);
    for (int32_t i = 0; i < n->in_count; i++)
        if (n->in[i] < 0 || (size_t)n->in[i] >= g->node.len)
            return diag_fail(d, RLX_ERROR_GRAPH, "%s: input %d is not a node of this graph (%d)",
                             name, i, n->in[i]);
    return RLX_OK;
}

/* A state is written by one node at most. */
static rlx_status note_writer(struct ir_graph *g, ir_value node, struct diag *d)
{
    ir_value state = ir_written_state(g, ir_node(g, node));

    if (state == RLX_NO_VALUE)
        return RLX_OK;
    for (size_t i = 0; i < g->written.len; i++)
        if (g->written.at[i] == state)
            return diag_fail(d, RLX_ERROR_GRAPH, "%s: the state \"%.*s\" already has a writer",
                             op_info(ir_node(g, node)->op)->name,
                             STR_ARG(ir_leaf_name(ir_node(g, state))));
    if (!vec_room(g->mod->mem, &g->written))
        return diag_no_memory(d, sizeof state);
    g->written.at[g->written.len++] = state;
    return RLX_OK;
}

static rlx_status add(struct ir_graph *g, const struct ir_new_node *n, ir_value *in, ir_value *out,
                      struct diag *d)
{
    union ir_attr attr = n->attr;
    bool leaf = op_info(n->op)->family == FAMILY_leaf;

    if (leaf)
        TRY(check_leaf(g, n, d));
    if (op_is(n->op, OP_PROMOTES))
        TRY(promote(g, n->op, in, n->in_count, d));
    TRY(own_blobs(g->mod, n->op, &attr, n->borrow_data, d));
    TRY(append(g, n->op, in, n->in_count, &attr, n->label, out, d));
    if (leaf) {
        rlx_str name = ir_leaf_name(ir_node(g, *out));
        if (!map_add(&g->leaves, hash_bytes(name.ptr, name.len), (uint32_t)*out))
            return diag_no_memory(d, 0);
    }
    return note_writer(g, *out, d);
}

#define FEW_INPUTS 16

rlx_status ir_add(struct ir_graph *g, const struct ir_new_node *n, ir_value *out, struct diag *d)
{
    ir_value few[FEW_INPUTS], *in = few, id = RLX_NO_VALUE;
    size_t nodes = g->node.len, checks = g->mod->check.len;
    size_t bytes = (size_t)n->in_count * sizeof *in;

    diag_at(d, op_info(n->op)->name, (int32_t)nodes, n->label);
    TRY(check_operands(g, n, d));
    if (n->in_count > FEW_INPUTS && !(in = mem_alloc(g->mod->mem, bytes)))
        return diag_no_memory(d, bytes);
    if (n->in_count)
        memcpy(in, n->in, bytes);
    rlx_status s = add(g, n, in, &id, d);
    if (in != few)
        mem_free(g->mod->mem, in, bytes);
    if (s != RLX_OK) {
        g->node.len = nodes;
        g->mod->check.len = checks;
        return s;
    }
    *out = id;
    diag_at(d, NULL, -1, (rlx_str){NULL, 0});
    return RLX_OK;
}

rlx_status ir_add_output(struct ir_graph *g, ir_value v, struct diag *d)
{
    if (v < 0 || (size_t)v >= g->node.len)
        return diag_fail(d, RLX_ERROR_GRAPH, "output %zu is not a node of this graph (%d)",
                         g->output.len, v);
    if (!vec_room(g->mod->mem, &g->output))
        return diag_no_memory(d, sizeof v);
    g->output.at[g->output.len++] = v;
    return RLX_OK;
}
