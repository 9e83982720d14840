/* bind.c: replace symbols by sizes, and decide what had to wait for them.
 *
 * What nothing needs may have symbols without a size, such as an input that is never given. It
 * cannot be inferred, so it is dropped, and whatever reads it. */
#include "ir/graph.h"
#include "ir/infer.h"
#include "ir/size.h"

struct binding {
    const struct ir_module *from;
    struct ir_module *mod; /* the copy that is being bound */
    const int64_t *size;
    const bool *keep; /* by symbol: it stays a symbol; NULL: none does */
    size_t count;
    bool *used;      /* by graph: the entry comes to it */
    bool *inferred;  /* by graph */
    ir_value *place; /* by node of from's entry: which it is in mod's; RLX_NO_VALUE: dropped */
    struct diag *diag;
};

/* ---- sizes ---- */

/* The other symbols that have no size: whoever gives one will have to give them all. */
static void add_others(const struct binding *b, size_t said, struct text *out)
{
    const struct dim_table *dims = b->from->dims;
    size_t count = 0;

    for (size_t i = 0; i < b->count; i++)
        if (i != said && b->size[i] < 0 && dim_symbol_is_used(dims, i) && !(b->keep && b->keep[i]))
            text_addf(out, "%s\"%.*s\"",
                      count++ ? ", " : "; without one, too: ", STR_ARG(dim_symbol_name(dims, i)));
}

static rlx_status no_size(const struct binding *b, ir_dim d, rlx_status s, const char *why)
{
    const struct dim_table *dims = b->from->dims;
    size_t missing[8];
    size_t count = dim_unbound(dims, d, b->size, b->count, missing, 8);
    struct text text;

    text_init(&text, b->mod->mem);
    dim_print(dims, d, &text);
    for (size_t i = 0; i < count; i++)
        text_addf(&text, "%s\"%.*s\"", i ? ", " : " needs a size for ",
                  STR_ARG(dim_symbol_name(dims, missing[i])));
    if (count)
        add_others(b, missing[0], &text);
    s = text.failed ? diag_no_memory(b->diag, text.cap)
        : count     ? diag_fail(b->diag, s, "%s", text.at)
                    : diag_fail(b->diag, s, "%s has no size: %s", text.at, why);
    text_free(&text);
    return s;
}

/* Does it hold a symbol that has no size and is not to stay? */
static bool is_open(const struct binding *b, ir_dim d)
{
    size_t missing[8];

    if (d >= 0 || d == RLX_DIM_UNKNOWN)
        return d == RLX_DIM_UNKNOWN;
    size_t n = dim_unbound(b->from->dims, d, b->size, b->count, missing, 8);
    for (size_t i = 0; i < n; i++)
        if (!b->keep || missing[i] >= b->count || !b->keep[missing[i]])
            return true;
    return false;
}

static rlx_status bind_dim(const struct binding *b, ir_dim *d)
{
    const char *why = NULL;
    int64_t n;

    if (*d >= 0 || *d == RLX_DIM_INFER)
        return RLX_OK;
    if (b->keep && *d != RLX_DIM_UNKNOWN) {
        ir_dim with = dim_substitute(b->mod->dims, *d, b->size, b->count);
        if (!is_open(b, *d) && with != RLX_DIM_FAILED) {
            *d = with;
            return RLX_OK;
        }
    }
    rlx_status s = dim_size(b->from->dims, *d, b->size, b->count, &n, &why);
    if (s != RLX_OK)
        return no_size(b, *d, s, why);
    *d = n;
    return RLX_OK;
}

static rlx_status bind_attrs(const struct binding *b, struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        void *at = (char *)&n->attr + a[i].offset;
        rlx_list *l = at;
        if (a[i].kind == ATTR_DIM)
            TRY(bind_dim(b, at));
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            TRY(bind_dim(b, &l->at[k]));
    }
    return RLX_OK;
}

/* ---- what nothing needs ---- */

static bool has_open_dim(const struct binding *b, const struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)&n->attr + a[i].offset;
        const rlx_list *l = at;
        if (a[i].kind == ATTR_DIM && is_open(b, *(const ir_dim *)at))
            return true;
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            if (is_open(b, l->at[k]))
                return true;
    }
    return false;
}

/* Outputs, writers, and what they are made from. Without outputs it is all there is to see. */
static void mark_needed(const struct ir_graph *g, bool *needed)
{
    for (size_t i = 0; i < g->output.len; i++)
        needed[g->output.at[i]] = true;
    for (size_t i = g->node.len; i-- > 0;) {
        const struct ir_node *n = &g->node.at[i];
        if (g->output.len == 0 || ir_written_state(g, n) != RLX_NO_VALUE)
            needed[i] = true;
        for (int32_t k = 0; needed[i] && k < n->in_count; k++)
            needed[n->in[k]] = true;
    }
}

/* Who stays, and where. A node that reads a dropped one is not needed either. */
static void choose_places(const struct binding *b, const struct ir_graph *g, const bool *needed)
{
    ir_value next = 0;

    for (size_t i = 0; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        bool drop = !needed[i] && has_open_dim(b, n);
        for (int32_t k = 0; k < n->in_count; k++)
            drop |= b->place[n->in[k]] == RLX_NO_VALUE;
        b->place[i] = drop ? RLX_NO_VALUE : next++;
    }
}

static rlx_status move_nodes(const struct binding *b, struct ir_graph *g)
{
    size_t kept = 0;

    map_free(&g->leaves);
    map_init(&g->leaves, b->mod->mem);
    for (size_t i = 0; i < g->node.len; i++) {
        struct ir_node *n = &g->node.at[i];
        if (b->place[i] == RLX_NO_VALUE)
            continue;
        for (int32_t k = 0; k < n->in_count; k++)
            n->in[k] = b->place[n->in[k]];
        rlx_str name = ir_leaf_name(n);
        if (name.len && !map_add(&g->leaves, hash_bytes(name.ptr, name.len), (uint32_t)kept))
            return diag_no_memory(b->diag, 0);
        g->node.at[kept++] = *n;
    }
    g->node.len = kept;
    for (size_t i = 0; i < g->output.len; i++)
        g->output.at[i] = b->place[g->output.at[i]];
    for (size_t i = 0; i < g->written.len; i++)
        g->written.at[i] = b->place[g->written.at[i]];
    return RLX_OK;
}

static rlx_status drop_unneeded(const struct binding *b)
{
    struct ir_graph *g = ir_entry(b->mod);
    bool *needed = arena_array(&b->mod->arena, bool, g->node.len);

    if (!needed)
        return diag_no_memory(b->diag, g->node.len);
    mark_needed(g, needed);
    choose_places(b, g, needed);
    for (size_t i = 0; i < g->node.len; i++)
        if (b->place[i] == RLX_NO_VALUE)
            return move_nodes(b, g);
    return RLX_OK;
}

/* ---- graphs ---- */

/* Calls fn for every graph that the node names. */
static rlx_status each_graph(const struct ir_node *n, const struct binding *b,
                             rlx_status (*fn)(const struct binding *b, int32_t id))
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    for (size_t k = 0; k < count; k++) {
        int32_t sub = -1;
        if (a[k].kind == ATTR_GRAPH)
            sub = *(const int32_t *)((const char *)&n->attr + a[k].offset);
        if (sub >= 0)
            TRY(fn(b, sub));
    }
    return RLX_OK;
}

static rlx_status bind_graph(const struct binding *b, int32_t id)
{
    struct ir_graph *g = b->mod->graph.at[id];

    if (b->used[id])
        return RLX_OK;
    b->used[id] = true;
    IR_EACH(n, g) {
        diag_at(b->diag, op_info(n->op)->name, ir_id(g, n), n->label);
        TRY(bind_attrs(b, n));
        TRY(each_graph(n, b, bind_graph));
    }
    return RLX_OK;
}

/* Types follow from leaves and attributes; sub-graphs come before the nodes that name them. */
static rlx_status infer_graph(const struct binding *b, int32_t id)
{
    struct ir_graph *g = b->mod->graph.at[id];

    if (b->inferred[id])
        return RLX_OK;
    b->inferred[id] = true;
    IR_EACH(n, g) {
        int32_t node = ir_id(g, n);
        TRY(each_graph(n, b, infer_graph));
        diag_at(b->diag, op_info(n->op)->name, node, n->label);
        TRY(ir_infer_node(g, n->op, &n->attr, n->in, n->in_count, node, b->keep != NULL, &n->type,
                          b->diag));
    }
    return RLX_OK;
}

static rlx_status make_check(const struct binding *b, const struct ir_check *c)
{
    ir_dim x = c->a, y = c->b;
    const struct ir_node *n = ir_node(b->from->graph.at[c->graph], c->node);

    if (!b->used[c->graph] || (c->graph == 0 && b->place[c->node] == RLX_NO_VALUE))
        return RLX_OK;
    diag_at(b->diag, op_info(n->op)->name, c->node, n->label);
    TRY(bind_dim(b, &x));
    TRY(bind_dim(b, &y));
    return x < 0 || y < 0 ? RLX_OK : ir_check_fits(c, n, x, y, b->diag);
}

static rlx_status bind_module(struct binding *b)
{
    struct arena *arena = &b->mod->arena;
    size_t graphs = b->mod->graph.len, nodes = graphs ? ir_entry(b->mod)->node.len : 0;

    if (graphs == 0)
        return RLX_OK;
    b->used = arena_array(arena, bool, graphs);
    b->inferred = arena_array(arena, bool, graphs);
    b->place = arena_array(arena, ir_value, nodes);
    if (!b->used || !b->inferred || !b->place)
        return diag_no_memory(b->diag, nodes * sizeof *b->place);
    TRY(drop_unneeded(b));
    TRY(bind_graph(b, 0));
    b->mod->check.len = 0; /* what still waits is noted again */
    TRY(infer_graph(b, 0));
    for (size_t i = 0; i < b->from->check.len; i++)
        TRY(make_check(b, &b->from->check.at[i]));
    diag_at(b->diag, NULL, -1, (rlx_str){NULL, 0});
    return RLX_OK;
}

rlx_status ir_bind_some(const struct ir_module *from, const int64_t *size, const bool *keep,
                        size_t count, const rlx_allocator *mem, struct ir_module **out,
                        struct diag *d)
{
    struct binding b = {.from = from, .size = size, .keep = keep, .count = count, .diag = d};

    TRY(ir_module_copy(from, mem, &b.mod, d));
    rlx_status s = bind_module(&b);
    if (s != RLX_OK) {
        ir_module_destroy(b.mod);
        return s;
    }
    *out = b.mod;
    return RLX_OK;
}

rlx_status ir_bind(const struct ir_module *from, const int64_t *size, size_t count,
                   const rlx_allocator *mem, struct ir_module **out, struct diag *d)
{
    return ir_bind_some(from, size, NULL, count, mem, out, d);
}

/* ---- another table ---- */

static bool adopt_dim(struct dim_table *to, const struct dim_table *from, ir_dim *d)
{
    if (*d < 0)
        *d = dim_import(to, from, *d);
    return *d != RLX_DIM_FAILED;
}

static bool adopt_node(struct dim_table *to, const struct dim_table *from, struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);
    bool ok = true;

    for (int32_t i = 0; i < n->type.rank; i++)
        ok &= adopt_dim(to, from, &n->type.dim[i]);
    for (size_t i = 0; i < count; i++) {
        void *at = (char *)&n->attr + a[i].offset;
        rlx_list *l = at;
        if (a[i].kind == ATTR_DIM)
            ok &= adopt_dim(to, from, at);
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            ok &= adopt_dim(to, from, &l->at[k]);
    }
    return ok;
}

rlx_status ir_adopt_dims(struct ir_module *m, const struct dim_table *like, struct diag *d)
{
    struct dim_table *to = dim_table_copy(like, m->mem);
    bool ok = to != NULL;

    for (size_t i = 0; ok && i < m->graph.len; i++) {
        IR_EACH(n, m->graph.at[i]) {
            ok = ok && adopt_node(to, m->dims, n);
        }
    }
    for (size_t i = 0; ok && i < m->check.len; i++)
        ok = adopt_dim(to, m->dims, &m->check.at[i].a) && adopt_dim(to, m->dims, &m->check.at[i].b);
    if (!ok) {
        dim_table_destroy(to);
        return diag_no_memory(d, 0);
    }
    dim_table_destroy(m->dims);
    m->dims = to;
    return RLX_OK;
}
