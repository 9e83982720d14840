/* parts.c: see parts.h.
 *
 * Every node has a level: how many cuts lie between it and the inputs. A leaf of a cut is one above
 * what it was cut from, and so is whatever has a size that a cut tells; any other node is where the
 * highest of its operands is. Nodes of a level are a part. Parts are made from the last to the
 * first, since what a part reads of earlier ones they have to give. */
#include "pass/parts.h"

#include <string.h>

#include "pass/rebuild.h"

#define MAX_NESTING 128 /* of sub-graphs */
#define MAX_PARTS 64

struct splitter {
    const struct ir_module *whole;
    const struct ir_graph *g; /* its entry */
    const struct ir_cut *cut;
    size_t cut_count;
    const struct ir_cut **cut_of; /* by node: whose leaf it is; NULL: none */
    int32_t *level;               /* by node; of a state: -1 while nothing reads it */
    bool *fixed;                  /* by node: it depends on constants and params alone */
    bool *given;                  /* by node: a part has to give it */
    bool *taken;                  /* by node: a leaf that is in some part */
    bool *here, *outside;         /* by node: in this part; as an input of it */
    const rlx_allocator *mem;
    struct arena *arena, scratch; /* of what is handed out; of everything else */
    struct diag *diag;
};

/* ---- the symbols of a node ---- */

typedef void (*dim_fn)(struct splitter *s, ir_dim d, void *user);

static rlx_status each_dim(struct splitter *s, const struct ir_node *n, int depth, dim_fn fn,
                           void *user)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    if (depth > MAX_NESTING)
        return diag_fail(s->diag, RLX_ERROR_LIMIT, "sub-graphs nest deeper than %d", MAX_NESTING);
    for (int32_t i = 0; i < n->type.rank; i++)
        fn(s, n->type.dim[i], user);
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)&n->attr + a[i].offset;
        const rlx_list *l = at;
        if (a[i].kind == ATTR_DIM)
            fn(s, *(const ir_dim *)at, user);
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            fn(s, l->at[k], user);
        if (a[i].kind == ATTR_GRAPH && *(const attr_GRAPH *)at >= 0)
            IR_EACH(inner, s->whole->graph.at[*(const attr_GRAPH *)at])
                TRY(each_dim(s, inner, depth + 1, fn, user));
    }
    return RLX_OK;
}

static bool is_symbolic(ir_dim d)
{
    return !dim_is_static(d) && d != RLX_DIM_FAILED && d != RLX_DIM_UNKNOWN && d != RLX_DIM_INFER;
}

/* ---- levels ---- */

struct dim_level {
    int32_t level;
    ir_value before; /* counts must come before it */
    bool early;      /* one does not */
};

static void raise_by_dim(struct splitter *s, ir_dim d, void *user)
{
    struct dim_level *l = user;

    for (size_t i = 0; is_symbolic(d) && i < s->cut_count; i++) {
        const struct ir_cut *c = &s->cut[i];
        if (!dim_uses(s->whole->dims, d, c->symbol))
            continue;
        l->early |= c->count >= l->before;
        if (!l->early && s->level[c->count] + 1 > l->level)
            l->level = s->level[c->count] + 1;
    }
}

/* All readers of a state must be in one part: parts have memories of their own. */
static rlx_status place_state(struct splitter *s, ir_value state, int32_t level)
{
    if (s->level[state] >= 0 && s->level[state] != level)
        return diag_fail(s->diag, RLX_ERROR_UNSUPPORTED,
                         "the state \"%.*s\" is used before and after a size that depends on data",
                         STR_ARG(ir_leaf_name(ir_node(s->g, state))));
    s->level[state] = level;
    return RLX_OK;
}

static rlx_status find_level(struct splitter *s, ir_value v)
{
    const struct ir_node *n = ir_node(s->g, v);
    const struct ir_cut *cut = s->cut_of[v];
    struct dim_level l = {.before = v};

    for (int32_t i = 0; i < n->in_count; i++)
        if (ir_node(s->g, n->in[i])->op != RLX_OP_state && s->level[n->in[i]] > l.level)
            l.level = s->level[n->in[i]];
    TRY(each_dim(s, n, 0, raise_by_dim, &l));
    if (l.early)
        return diag_fail(s->diag, RLX_ERROR_GRAPH,
                         "node %d has a size that depends on data not computed yet", v);
    if (cut && s->level[cut->padded] + 1 > l.level)
        l.level = s->level[cut->padded] + 1;
    s->level[v] = n->op == RLX_OP_state ? -1 : l.level;
    for (int32_t i = 0; i < n->in_count; i++)
        if (ir_node(s->g, n->in[i])->op == RLX_OP_state)
            TRY(place_state(s, n->in[i], l.level));
    bool fixed = n->op == RLX_OP_const || n->op == RLX_OP_param ||
                 !op_is(n->op, OP_LEAF | OP_RANDOM | OP_WRITES);
    for (int32_t i = 0; i < n->in_count; i++)
        fixed &= s->fixed[n->in[i]];
    s->fixed[v] = fixed;
    return RLX_OK;
}

static bool is_node(const struct splitter *s, ir_value v)
{
    return v >= 0 && (size_t)v < s->g->node.len;
}

static rlx_status check_cut(const struct splitter *s, size_t i)
{
    const struct ir_cut *c = &s->cut[i];

    if (!is_node(s, c->count) || c->symbol >= dim_symbol_count(s->whole->dims))
        return diag_fail(s->diag, RLX_ERROR_GRAPH, "cut %zu has no count or no symbol", i);
    const struct ir_type *t = ir_type_of(s->g, c->count);
    if (t->rank != 0 || (t->dtype != RLX_DTYPE_i64 && t->dtype != RLX_DTYPE_i32))
        return diag_fail(s->diag, RLX_ERROR_GRAPH, "the count of cut %zu is not an integer", i);
    for (size_t k = 0; k < i; k++)
        if (s->cut[k].symbol == c->symbol && s->cut[k].count != c->count)
            return diag_fail(s->diag, RLX_ERROR_GRAPH, "dim \"%.*s\" is given by two counts",
                             STR_ARG(dim_symbol_name(s->whole->dims, c->symbol)));
    if (c->padded == RLX_NO_VALUE)
        return RLX_OK;
    if (!is_node(s, c->leaf) || !is_node(s, c->padded) || c->padded >= c->leaf ||
        c->count >= c->leaf || ir_node(s->g, c->leaf)->op != RLX_OP_input)
        return diag_fail(s->diag, RLX_ERROR_GRAPH, "cut %zu has no leaf after what it is cut from",
                         i);
    struct ir_type cut = *ir_type_of(s->g, c->padded);
    const struct ir_type *leaf = ir_type_of(s->g, c->leaf);
    if (c->axis >= 0 && c->axis < cut.rank && c->axis < leaf->rank)
        cut.dim[c->axis] = leaf->dim[c->axis];
    if (c->axis < 0 || c->axis >= cut.rank || !type_same(&cut, leaf) ||
        !is_symbolic(cut.dim[c->axis]) || !dim_uses(s->whole->dims, cut.dim[c->axis], c->symbol))
        return diag_fail(s->diag, RLX_ERROR_GRAPH,
                         "cut %zu has no leaf of a new size along axis %d", i, c->axis);
    return RLX_OK;
}

static rlx_status find_levels(struct splitter *s)
{
    if (s->cut_count > MAX_CUTS)
        return diag_fail(s->diag, RLX_ERROR_LIMIT, "%zu sizes depend on data, more than %d",
                         s->cut_count, MAX_CUTS);
    for (size_t i = 0; i < s->cut_count; i++) {
        TRY(check_cut(s, i));
        if (s->cut[i].padded == RLX_NO_VALUE)
            continue;
        if (s->cut_of[s->cut[i].leaf])
            return diag_fail(s->diag, RLX_ERROR_GRAPH, "two cuts have one leaf");
        s->cut_of[s->cut[i].leaf] = &s->cut[i];
    }
    for (size_t i = 0; i < s->g->node.len; i++)
        TRY(find_level(s, (ir_value)i));
    for (size_t i = 0; i < s->g->node.len; i++)
        s->level[i] = s->level[i] < 0 ? 0 : s->level[i];
    return RLX_OK;
}

/* ---- what is in a part ---- */

static void give_counts(struct splitter *s, ir_dim d, void *user)
{
    bool *uses = user;

    for (size_t i = 0; is_symbolic(d) && i < dim_symbol_count(s->whole->dims); i++)
        uses[i] |= dim_uses(s->whole->dims, d, i);
}

static bool is_root(const struct splitter *s, ir_value v, int32_t level)
{
    const struct ir_node *n = ir_node(s->g, v);
    bool writes = op_is(n->op, OP_WRITES) && ir_written_state(s->g, n) != RLX_NO_VALUE;
    bool spare = level == 0 && op_is(n->op, OP_LEAF) && n->op != RLX_OP_const && !s->cut_of[v] &&
                 !s->taken[v]; /* of no part, but of the model */

    return spare || (s->level[v] == level && (s->given[v] || writes));
}

/* A part has to compute it: of a leaf, what it is cut from. */
static void give(struct splitter *s, ir_value v)
{
    const struct ir_cut *cut = s->cut_of[v];

    s->given[cut ? cut->padded : v] = true;
    if (cut)
        s->given[cut->count] = true;
}

/* From the end: roots, and what they need. */
static rlx_status choose_nodes(struct splitter *s, int32_t level, bool *uses)
{
    for (size_t i = s->g->node.len; i-- > 0;) {
        const ir_value v = (ir_value)i;
        const struct ir_node *n = ir_node(s->g, v);
        if (!s->here[v] && !is_root(s, v, level))
            continue;
        s->here[v] = true;
        s->taken[v] = true;
        bool elsewhere = s->level[v] < level && !s->fixed[v] && n->op != RLX_OP_input;
        s->outside[v] = elsewhere;
        if (elsewhere || s->cut_of[v])
            give(s, v);
        for (int32_t k = 0; !elsewhere && k < n->in_count; k++)
            s->here[n->in[k]] = true;
        if (elsewhere)
            for (int32_t k = 0; k < n->type.rank; k++)
                give_counts(s, n->type.dim[k], uses);
        else
            TRY(each_dim(s, n, 0, give_counts, uses));
    }
    for (size_t i = 0; i < s->cut_count; i++)
        if (uses[s->cut[i].symbol])
            s->given[s->cut[i].count] = true;
    return RLX_OK;
}

/* ---- a part as a module ---- */

/* A name that no leaf has. */
static rlx_str free_name(struct splitter *s, ir_value v)
{
    rlx_str name = rlx_cstr(arena_printf(&s->scratch, "value_%d", v));
    ir_value unused;

    while (name.ptr && ir_find_leaf(s->g, name, &unused))
        name = rlx_cstr(arena_printf(&s->scratch, "%s_", name.ptr));
    return name;
}

static rlx_status add_input(struct splitter *s, struct rebuild *r, const struct ir_node *n,
                            ir_value v)
{
    union ir_attr attr;
    rlx_str name = free_name(s, v);
    ir_value made;

    if (!name.ptr)
        return diag_no_memory(s->diag, 32);
    attr_defaults(RLX_OP_input, &attr);
    attr.leaf.name = (struct ir_blob){name.ptr, name.len};
    attr.leaf.dtype = n->type.dtype;
    attr.leaf.shape = rlx_list_of(n->type.rank, n->type.dim);
    TRY(rebuild_add(r, RLX_OP_input, NULL, 0, &attr, &made));
    rebuild_replace(r, n, made);
    return RLX_OK;
}

static bool is_input(const struct splitter *s, size_t i)
{
    return s->here[i] && (s->outside[i] || s->g->node.at[i].op == RLX_OP_input);
}

static rlx_status copy_nodes(struct splitter *s, struct rebuild *r, struct graph_part *p)
{
    for (size_t i = 0; i < s->g->node.len; i++) {
        const struct ir_node *n = &r->old->node.at[i];
        if (!s->here[i])
            continue;
        if (s->outside[i])
            TRY(add_input(s, r, n, (ir_value)i));
        else
            TRY(rebuild_keep(r, n));
        if (is_input(s, i))
            p->input[p->input_count++] = (ir_value)i;
    }
    return RLX_OK;
}

static rlx_status list_outputs(struct splitter *s, int32_t level, struct graph_part *p)
{
    struct ir_graph *g = ir_entry(p->mod);

    g->output.len = 0;
    for (size_t i = 0; i < s->g->node.len; i++)
        if (s->given[i] && s->level[i] == level) {
            TRY(ir_add_output(g, (ir_value)i, s->diag));
            p->output[p->output_count++] = (ir_value)i;
        }
    return RLX_OK;
}

static rlx_status make_lists(struct splitter *s, int32_t level, struct graph_part *p)
{
    size_t inputs = 0, outputs = 0;

    for (size_t i = 0; i < s->g->node.len; i++) {
        inputs += is_input(s, i);
        outputs += s->given[i] && s->level[i] == level;
    }
    p->input = arena_array(s->arena, ir_value, inputs);
    p->output = arena_array(s->arena, ir_value, outputs);
    return p->input && p->output ? RLX_OK
                                 : diag_no_memory(s->diag, (inputs + outputs) * sizeof *p->input);
}

static rlx_status make_part(struct splitter *s, int32_t level, struct graph_part *p)
{
    size_t nodes = s->g->node.len, symbols = dim_symbol_count(s->whole->dims);
    struct rebuild r;

    p->uses = arena_array(s->arena, bool, symbols);
    if (!p->uses)
        return diag_no_memory(s->diag, symbols);
    memset(s->here, 0, nodes * sizeof *s->here);
    memset(s->outside, 0, nodes * sizeof *s->outside);
    TRY(choose_nodes(s, level, p->uses));
    TRY(make_lists(s, level, p));
    TRY(ir_module_copy(s->whole, s->mem, &p->mod, s->diag));
    for (size_t i = 0; i < symbols; i++)
        if (!p->uses[i]) /* lest it asks for a size */
            dim_set_bound(p->mod->dims, i, 0);
    TRY(list_outputs(s, level, p));
    TRY(rebuild_begin(&r, ir_entry(p->mod), s->diag));
    return rebuild_finish(&r, copy_nodes(s, &r, p));
}

/* ---- all of it ---- */

static rlx_status prepare(struct splitter *s)
{
    size_t n = s->g->node.len;

    s->cut_of = arena_array(&s->scratch, const struct ir_cut *, n);
    s->level = arena_array(&s->scratch, int32_t, n);
    s->fixed = arena_array(&s->scratch, bool, n);
    s->given = arena_array(&s->scratch, bool, n);
    s->taken = arena_array(&s->scratch, bool, n);
    s->here = arena_array(&s->scratch, bool, n);
    s->outside = arena_array(&s->scratch, bool, n);
    if (!s->cut_of || !s->level || !s->fixed || !s->given || !s->taken || !s->here || !s->outside)
        return diag_no_memory(s->diag, n * sizeof *s->cut_of);
    return find_levels(s);
}

/* Outputs and writers of states are what all is computed for. */
static int32_t last_level(struct splitter *s)
{
    int32_t last = 0;

    for (size_t i = 0; i < s->g->output.len; i++)
        give(s, s->g->output.at[i]);
    for (size_t i = 0; i < s->g->node.len; i++)
        if ((s->given[i] || is_root(s, (ir_value)i, s->level[i])) && s->level[i] > last)
            last = s->level[i];
    return last;
}

/* Modules of the parts that could be made are in the list even if another could not. */
static rlx_status split(struct splitter *s, struct graph_part **out, size_t *count)
{
    TRY(prepare(s));
    size_t parts = (size_t)last_level(s) + 1;
    if (parts > MAX_PARTS)
        return diag_fail(s->diag, RLX_ERROR_LIMIT,
                         "sizes that depend on data make %zu parts, more than %d", parts,
                         MAX_PARTS);
    *out = arena_array(s->arena, struct graph_part, parts);
    if (!*out)
        return diag_no_memory(s->diag, parts * sizeof **out);
    *count = parts;
    for (size_t i = parts; i-- > 0;)
        TRY(make_part(s, (int32_t)i, &(*out)[i]));
    return RLX_OK;
}

rlx_status cut_into_parts(const struct ir_module *whole, const struct ir_cut *cut, size_t cut_count,
                          const rlx_allocator *mem, struct arena *arena, struct graph_part **out,
                          size_t *count, struct diag *d)
{
    struct splitter s = {.whole = whole,
                         .g = ir_entry(whole),
                         .cut = cut,
                         .cut_count = cut_count,
                         .mem = mem,
                         .arena = arena,
                         .diag = d};
    struct graph_part *part = NULL;
    size_t parts = 0;

    arena_init(&s.scratch, mem);
    rlx_status status = split(&s, &part, &parts);
    arena_free(&s.scratch);
    if (status == RLX_OK) {
        *out = part;
        *count = parts;
        return RLX_OK;
    }
    for (size_t i = 0; i < parts; i++)
        ir_module_destroy(part[i].mod);
    return status;
}
