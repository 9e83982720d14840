/* shrink.c: the smallest graph that still fails the same check.
 *
 *     outputs are left out; nodes become inputs, or give way to one of their operands; sizes are
 *     halved everywhere they stand
 *
 * again and again, while anything helps. What an edit makes illegal is not tried. */
#include <stdlib.h>
#include <string.h>

#include "random.h"

struct edit {
    int32_t drop_output;  /* -1: none */
    ir_value cut, bypass; /* RLX_NO_VALUE: none */
    int32_t operand;      /* of bypass: what stands in for it */
    ir_value only;        /* the one output; RLX_NO_VALUE: those there are */
    int64_t from, to;     /* sizes; from 0: none */
};
static const struct edit nothing = {
    .drop_output = -1, .cut = RLX_NO_VALUE, .bypass = RLX_NO_VALUE, .only = RLX_NO_VALUE};

/* ---- a graph with an edit ---- */

struct rebuild {
    const struct ir_graph *old;
    struct ir_graph *g;
    const struct edit *e;
    bool *live;
    ir_value *now; /* by old node */
    struct arena *arena;
    struct diag *d;
};

static ir_value stands_for(const struct rebuild *r, ir_value v)
{
    return v == r->e->bypass ? ir_node(r->old, v)->in[r->e->operand] : v;
}

static bool keeps(const struct edit *e, size_t output)
{
    return e->only == RLX_NO_VALUE && (int32_t)output != e->drop_output;
}

static void mark(struct rebuild *r)
{
    for (size_t i = 0; i < r->old->output.len; i++)
        if (keeps(r->e, i))
            r->live[stands_for(r, r->old->output.at[i])] = true;
    if (r->e->only != RLX_NO_VALUE)
        r->live[r->e->only] = true;
    for (ir_value v = (ir_value)r->old->node.len - 1; v >= 0; v--)
        for (int32_t i = 0; r->live[v] && v != r->e->cut && i < ir_node(r->old, v)->in_count; i++)
            r->live[stands_for(r, ir_node(r->old, v)->in[i])] = true;
}

static void resize(const struct edit *e, ir_dim *dim, int32_t count)
{
    for (int32_t i = 0; e->from && i < count; i++)
        if (dim[i] == e->from)
            dim[i] = e->to;
}

static void resize_attrs(const struct edit *e, rlx_op op, union ir_attr *attr)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);

    for (size_t i = 0; i < count; i++) {
        void *at = (char *)attr + a[i].offset;
        if (a[i].kind == ATTR_DIM)
            resize(e, at, 1);
        if (a[i].kind == ATTR_DIMS)
            resize(e, ((rlx_list *)at)->at, ((rlx_list *)at)->count);
    }
    struct ir_type t = {.dtype = attr->const_.dtype, .rank = attr->const_.shape.count};
    uint64_t bytes;
    if (op != RLX_OP_const)
        return;
    memcpy(t.dim, attr->const_.shape.at, sizeof t.dim);
    if (type_bytes(&t, &bytes) && bytes < attr->const_.data.len)
        attr->const_.data.len = (size_t)bytes; /* the first of them */
}

static rlx_status add_node(struct rebuild *r, ir_value v)
{
    const struct ir_node *n = ir_node(r->old, v);
    struct ir_new_node made = {.op = n->op, .in_count = n->in_count, .attr = n->attr};
    ir_value *in = arena_array(r->arena, ir_value, (size_t)n->in_count + 1);
    char name[48];

    if (!in)
        return diag_no_memory(r->d, sizeof *in);
    for (int32_t i = 0; i < n->in_count; i++)
        in[i] = r->now[stands_for(r, n->in[i])];
    made.in = in;
    if (v == r->e->cut) {
        made = (struct ir_new_node){.op = RLX_OP_input};
        leaf_name(&(struct value_spec){KIND_ANY, 0}, 1000 + v, name);
        attr_defaults(made.op, &made.attr);
        made.attr.leaf.name = (struct ir_blob){name, strlen(name)};
        made.attr.leaf.dtype = n->type.dtype;
        made.attr.leaf.shape = rlx_list_of(n->type.rank, n->type.dim);
    }
    resize_attrs(r->e, made.op, &made.attr);
    return ir_add(r->g, &made, &r->now[v], r->d);
}

static rlx_status fill(struct rebuild *r)
{
    mark(r);
    for (ir_value v = 0; v < (ir_value)r->old->node.len; v++)
        if (r->live[v])
            TRY(add_node(r, v));
    for (size_t i = 0; i < r->old->output.len; i++)
        if (keeps(r->e, i))
            TRY(ir_add_output(r->g, r->now[stands_for(r, r->old->output.at[i])], r->d));
    return r->e->only == RLX_NO_VALUE ? RLX_OK : ir_add_output(r->g, r->now[r->e->only], r->d);
}

static bool runs_graphs(const struct ir_graph *g)
{
    IR_EACH(n, g) {
        if (op_info(n->op)->category == CATEGORY_CONTROL)
            return true;
    }
    return false;
}

/* Its text; NULL: the edit is not legal. */
static char *edited(const struct ir_module *from, const struct edit *e)
{
    struct ir_module *mod;
    struct arena arena;
    struct text text;
    struct diag d;
    char *out = NULL;

    diag_init(&d, "shrink");
    if (ir_module_copy(from, mem_default(), &mod, &d) != RLX_OK)
        return NULL;
    arena_init(&arena, mem_default());
    text_init(&text, mem_default());
    size_t nodes = ir_entry(from)->node.len;
    struct rebuild r = {
        .old = ir_entry(from), .g = ir_entry(mod), .e = e, .arena = &arena, .d = &d};
    r.live = arena_array(&arena, bool, nodes);
    r.now = arena_array(&arena, ir_value, nodes);
    r.g->node.len = r.g->output.len = r.g->written.len = mod->check.len = 0;
    map_free(&r.g->leaves);
    map_init(&r.g->leaves, mod->mem);
    if (fill(&r) == RLX_OK && r.g->output.len > 0) {
        if (!runs_graphs(r.g))
            module_drop_graphs(mod, 1);
        if (ir_verify(mod, &d) == RLX_OK && ir_print(mod, NULL, &text, &d) == RLX_OK)
            out = strdup(text.at);
    }
    text_free(&text);
    arena_free(&arena);
    ir_module_destroy(mod);
    return out;
}

char *without_dead(const struct ir_module *m)
{
    return edited(m, &nothing);
}

/* ---- the search ---- */

struct search {
    struct world *w;
    struct question q;
    enum check failed;
    struct outcome *last;
    char *text;
    int tries;
};

static bool try_edit(struct search *s, const struct ir_module *m, const struct edit *e)
{
    struct outcome o = {0};
    char *text = edited(m, e);

    if (!text)
        return false;
    s->q.text = text;
    s->tries++;
    ask(s->w, &s->q, &o);
    if (o.failed != s->failed || strlen(text) >= strlen(s->text)) {
        free(text);
        return false;
    }
    free(s->text);
    s->text = text;
    *s->last = o;
    return true;
}

static bool try_sizes(struct search *s, const struct ir_module *m)
{
    const struct ir_graph *g = ir_entry(m);

    IR_EACH(n, g)
        for (int32_t i = 0; op_is(n->op, OP_LEAF) && i < n->type.rank; i++) {
            struct edit e = nothing;
            e.from = n->type.dim[i];
            for (int half = 0; half < 2 && e.from > 1; half++) {
                e.to = half ? e.from / 2 : 1;
                if (try_edit(s, m, &e))
                    return true;
            }
        }
    return false;
}

static bool try_nodes(struct search *s, const struct ir_module *m)
{
    const struct ir_graph *g = ir_entry(m);

    for (ir_value v = (ir_value)g->node.len - 1; v >= 0; v--) {
        const struct ir_node *n = ir_node(g, v);
        struct edit e = nothing;
        if (n->op == RLX_OP_input || n->op == RLX_OP_param)
            continue;
        e.cut = v;
        if (try_edit(s, m, &e))
            return true;
        e.cut = RLX_NO_VALUE;
        e.bypass = v;
        for (e.operand = 0; e.operand < n->in_count; e.operand++)
            if (try_edit(s, m, &e))
                return true;
    }
    return false;
}

static bool try_outputs(struct search *s, const struct ir_module *m)
{
    for (ir_value v = 0; v < (ir_value)ir_entry(m)->node.len; v++) {
        struct edit e = nothing;
        e.only = v;
        if (!op_is(ir_node(ir_entry(m), v)->op, OP_LEAF) && try_edit(s, m, &e))
            return true;
    }
    for (size_t i = 0; ir_entry(m)->output.len > 1 && i < ir_entry(m)->output.len; i++) {
        struct edit e = nothing;
        e.drop_output = (int32_t)i;
        if (try_edit(s, m, &e))
            return true;
    }
    return false;
}

char *shrink(struct world *w, const struct question *q, enum check failed, struct outcome *last)
{
    struct search s = {w, *q, failed, last, strdup(q->text), 0};
    bool smaller = s.text;

    if (failed != CHECK_crash)
        s.q.checks = UINT64_C(1) << failed;
    while (smaller && s.tries < 3000) {
        struct ir_module *m;
        struct diag d;
        diag_init(&d, "shrink");
        if (ir_parse(rlx_cstr(s.text), NULL, mem_default(), &m, &d) != RLX_OK)
            break;
        smaller =
            try_edit(&s, m, &nothing) || try_outputs(&s, m) || try_nodes(&s, m) || try_sizes(&s, m);
        ir_module_destroy(m);
    }
    return s.text;
}
