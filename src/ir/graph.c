/* graph.c: modules and graphs as containers: made, copied, looked into, destroyed. */
#include "ir/graph.h"

#include <string.h>

rlx_status ir_module_create(const rlx_allocator *mem, struct ir_module **out, struct diag *d)
{
    struct ir_module *m = mem_alloc(mem, sizeof *m);

    if (!m)
        return diag_no_memory(d, sizeof *m);
    m->mem = mem;
    arena_init(&m->arena, mem);
    m->dims = dim_table_create(mem);
    if (!m->dims) {
        ir_module_destroy(m);
        return diag_no_memory(d, 0);
    }
    *out = m;
    return RLX_OK;
}

/* All but the first `count`: their memory beside the arena. */
static void free_graphs(struct ir_module *m, size_t count)
{
    while (m->graph.len > count) {
        struct ir_graph *g = m->graph.at[--m->graph.len];
        vec_free(m->mem, &g->node);
        vec_free(m->mem, &g->output);
        vec_free(m->mem, &g->written);
        map_free(&g->leaves);
    }
}

struct ir_extent ir_extent_of(const struct ir_graph *g)
{
    return (struct ir_extent){g->node.len, g->written.len, g->mod->graph.len, g->mod->check.len};
}

void ir_shrink(struct ir_graph *g, const struct ir_extent *to)
{
    free_graphs(g->mod, to->graphs);
    g->node.len = to->nodes;
    g->written.len = to->written;
    g->mod->check.len = to->checks;
}

void ir_module_destroy(struct ir_module *m)
{
    if (!m)
        return;
    free_graphs(m, 0);
    vec_free(m->mem, &m->graph);
    vec_free(m->mem, &m->check);
    dim_table_destroy(m->dims);
    arena_free(&m->arena);
    mem_free(m->mem, m, sizeof *m);
}

rlx_status ir_graph_add(struct ir_module *m, rlx_str name, struct ir_graph **out, struct diag *d)
{
    struct ir_graph *g = arena_new(&m->arena, struct ir_graph);

    if (!g || !vec_room(m->mem, &m->graph))
        return diag_no_memory(d, sizeof *g);
    g->mod = m;
    g->id = (int32_t)m->graph.len;
    g->name = arena_str(&m->arena, name);
    if (name.len && !g->name.ptr)
        return diag_no_memory(d, name.len);
    map_init(&g->leaves, m->mem);
    m->graph.at[m->graph.len++] = g;
    /* Its nodes are somewhere even while there are none, as IR_EACH counts from there. */
    if (!vec_room(m->mem, &g->node))
        return diag_no_memory(d, sizeof *g->node.at);
    *out = g;
    return RLX_OK;
}

static bool graph_name_is_taken(const struct ir_module *m, rlx_str name)
{
    for (size_t i = 0; i < m->graph.len; i++)
        if (str_eq(m->graph.at[i]->name, name))
            return true;
    return false;
}

rlx_str ir_free_graph_name(struct ir_module *m, rlx_str name)
{
    rlx_str out = name;

    for (int i = 2; graph_name_is_taken(m, out); i++) {
        out.ptr = arena_printf(&m->arena, "%.*s_%d", STR_ARG(name), i);
        if (!out.ptr)
            return name; /* what comes next runs out of memory too, and says so */
        out.len = strlen(out.ptr);
    }
    return out;
}

static bool leaf_has_name(const void *owner, uint32_t value, const void *key)
{
    const struct ir_graph *g = owner;
    const rlx_str *name = key;
    return value < g->node.len && str_eq(ir_leaf_name(&g->node.at[value]), *name);
}

bool ir_find_leaf(const struct ir_graph *g, rlx_str name, ir_value *out)
{
    uint32_t value;

    if (!map_find(&g->leaves, hash_bytes(name.ptr, name.len), leaf_has_name, g, &name, &value))
        return false;
    *out = (ir_value)value;
    return true;
}

rlx_str ir_leaf_name(const struct ir_node *n)
{
    if (op_info(n->op)->family != FAMILY_leaf)
        return (rlx_str){NULL, 0};
    return (rlx_str){n->attr.leaf.name.ptr, n->attr.leaf.name.len};
}

ir_value ir_written_state(const struct ir_graph *g, const struct ir_node *n)
{
    bool reads = n->op == RLX_OP_fake_quantize && /* scales that are only read, in other modes */
                 n->attr.fake_quantize.scale_mode != RLX_SCALE_MODE_ema;

    reads |= !attr_integer(n->op, &n->attr, "carry_state", true);

    if (!op_is(n->op, OP_WRITES) || reads)
        return RLX_NO_VALUE;
    for (int32_t i = 0; i < n->in_count; i++) {
        ir_value v = n->in[i];
        if (op_input_role(n->op, i, n->in_count) == ROLE_STATE)
            return ir_node(g, v)->op == RLX_OP_state ? v : RLX_NO_VALUE;
    }
    return RLX_NO_VALUE;
}

void ir_mark_live(const struct ir_graph *g, bool *live)
{
    for (size_t i = 0; i < g->output.len; i++)
        live[g->output.at[i]] = true;
    for (size_t i = g->node.len; i-- > 0;) {
        const struct ir_node *n = &g->node.at[i];
        if (op_is(n->op, OP_WRITES) && ir_written_state(g, n) != RLX_NO_VALUE)
            live[i] = true;
        if (g->id != 0 && n->op == RLX_OP_input)
            live[i] = true;
        for (int32_t k = 0; live[i] && k < n->in_count; k++)
            live[n->in[k]] = true;
    }
}

size_t ir_inputs(const struct ir_graph *g, ir_value *out, size_t max)
{
    size_t count = 0;

    IR_EACH(n, g) {
        if (n->op != RLX_OP_input)
            continue;
        if (count < max)
            out[count] = ir_id(g, n);
        count++;
    }
    return count;
}

bool ir_module_is_static(const struct ir_module *m)
{
    for (size_t i = 0; i < m->graph.len; i++)
        IR_EACH(n, m->graph.at[i]) {
            if (!type_is_static(&n->type))
                return false;
        }
    return true;
}

static rlx_status copy_graph(const struct ir_graph *from, struct ir_graph *to, struct diag *d)
{
    struct ir_module *m = to->mod;

    if (!vec_room_for(m->mem, &to->node, from->node.len) ||
        !vec_room_for(m->mem, &to->output, from->output.len) ||
        !vec_room_for(m->mem, &to->written, from->written.len))
        return diag_no_memory(d, from->node.len * sizeof(struct ir_node));
    for (size_t i = 0; i < from->node.len; i++) {
        struct ir_node *n = &to->node.at[i];
        *n = from->node.at[i];
        n->in = arena_array(&m->arena, ir_value, (size_t)n->in_count);
        if (!n->in)
            return diag_no_memory(d, (size_t)n->in_count * sizeof(ir_value));
        if (n->in_count)
            memcpy(n->in, from->node.at[i].in, (size_t)n->in_count * sizeof(ir_value));
        to->node.len = i + 1;
        rlx_str name = ir_leaf_name(n);
        if (name.len && !map_add(&to->leaves, hash_bytes(name.ptr, name.len), (uint32_t)i))
            return diag_no_memory(d, 0);
    }
    if (from->output.len)
        memcpy(to->output.at, from->output.at, from->output.len * sizeof(ir_value));
    to->output.len = from->output.len;
    if (from->written.len)
        memcpy(to->written.at, from->written.at, from->written.len * sizeof(ir_value));
    to->written.len = from->written.len;
    return RLX_OK;
}

static rlx_status copy_into(const struct ir_module *from, struct ir_module *m, struct diag *d)
{
    struct dim_table *dims = dim_table_copy(from->dims, m->mem);

    if (!dims)
        return diag_no_memory(d, 0);
    dim_table_destroy(m->dims);
    m->dims = dims;
    m->customs = from->customs;
    for (size_t i = 0; i < from->graph.len; i++) {
        struct ir_graph *g;
        TRY(ir_graph_add(m, from->graph.at[i]->name, &g, d));
        TRY(copy_graph(from->graph.at[i], g, d));
    }
    if (!vec_room_for(m->mem, &m->check, from->check.len))
        return diag_no_memory(d, from->check.len * sizeof(struct ir_check));
    if (from->check.len)
        memcpy(m->check.at, from->check.at, from->check.len * sizeof(struct ir_check));
    m->check.len = from->check.len;
    return RLX_OK;
}

rlx_status ir_module_copy(const struct ir_module *from, const rlx_allocator *mem,
                          struct ir_module **out, struct diag *d)
{
    struct ir_module *m;

    TRY(ir_module_create(mem, &m, d));
    rlx_status s = copy_into(from, m, d);
    if (s != RLX_OK) {
        ir_module_destroy(m);
        return s;
    }
    *out = m;
    return RLX_OK;
}
