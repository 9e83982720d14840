/* text_names.c: what values and graphs are called in text, and in which order values come.
 *
 * A value has its label if that can be a name and nobody printed before it has taken it; a leaf
 * may have its public name instead; all others are v<place>. Places count in the order of printing,
 * leaves first, so they are what node ids will be when the text is parsed: printing that again
 * gives the same names. */
#include <string.h>

#include "ir/text/text_impl.h"

struct taken {
    struct map map;
    const rlx_str *name;
};

static bool has_name(const void *owner, uint32_t value, const void *key)
{
    const struct taken *t = owner;
    const rlx_str *name = key;

    return str_eq(t->name[value], *name);
}

bool text_is_numbered(rlx_str name)
{
    for (size_t i = 1; i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9')
            return false;
    }
    return name.len > 1 && name.ptr[0] == 'v';
}

/* Gives the node that name if it may have it; false: it may not, or there is no memory. */
static bool take_name(struct taken *t, ir_value id, rlx_str name, rlx_str *out, bool *no_memory)
{
    uint64_t hash = hash_bytes(name.ptr, name.len);
    uint32_t other;

    if (!text_is_name(name) || text_is_numbered(name) ||
        map_find(&t->map, hash, has_name, t, &name, &other))
        return false;
    *no_memory |= !map_add(&t->map, hash, (uint32_t)id);
    *out = name;
    return !*no_memory;
}

static bool is_leaf(const struct ir_node *n)
{
    return op_info(n->op)->family == FAMILY_leaf;
}

static void order_nodes(const struct ir_graph *g, struct text_names *names)
{
    size_t count = 0;

    for (int others = 0; others < 2; others++) {
        IR_EACH(n, g) {
            if (is_leaf(n) != (bool)others)
                names->order[count++] = ir_id(g, n);
        }
        if (!others)
            names->leaves = count;
    }
}

rlx_status text_name_values(const struct ir_graph *g, struct arena *arena, struct text_names *out,
                            struct diag *d)
{
    size_t count = g->node.len;
    struct text_names names = {arena_array(arena, rlx_str, count),
                               arena_array(arena, ir_value, count), 0};
    struct taken taken = {.name = names.name};
    bool no_memory = !names.name || !names.order;

    map_init(&taken.map, arena->mem);
    if (!no_memory)
        order_nodes(g, &names);
    for (size_t i = 0; i < count && !no_memory; i++) {
        ir_value id = names.order[i];
        const struct ir_node *n = ir_node(g, id);
        rlx_str *name = &names.name[id];
        if (take_name(&taken, id, n->label, name, &no_memory) ||
            take_name(&taken, id, ir_leaf_name(n), name, &no_memory))
            continue;
        const char *numbered = arena_printf(arena, "v%zu", i);
        no_memory |= !numbered;
        *name = rlx_cstr(numbered);
    }
    map_free(&taken.map);
    if (no_memory)
        return diag_no_memory(d, count * sizeof *names.name);
    *out = names;
    return RLX_OK;
}

/* ---- graphs -------------------------------------------------------------------------------- */

/* Has a graph before `end` that name? */
static bool graph_has_name(const struct ir_module *m, size_t end, rlx_str name)
{
    for (size_t i = 0; i < end; i++) {
        if (str_eq(m->graph.at[i]->name, name))
            return true;
    }
    return false;
}

/* Its own name if it is one and the first of it; else g<number>, and '_' for each time that is
 * somebody's name. */
void text_print_graph_name(const struct ir_module *m, int32_t id, struct text *out)
{
    size_t begin = out->len;
    bool known = id >= 0 && (size_t)id < m->graph.len;
    rlx_str name = known ? m->graph.at[id]->name : (rlx_str){NULL, 0};

    if (text_is_name(name) && !graph_has_name(m, (size_t)id, name)) {
        text_add(out, name);
        return;
    }
    text_addf(out, "g%d", id);
    while (!out->failed &&
           graph_has_name(m, m->graph.len, (rlx_str){out->at + begin, out->len - begin}))
        text_add(out, STR("_"));
}
