/* mark_regions.c: elementwise ops that feed one another as one op that walks memory once.
 *
 *     %a = add %x, %b
 *     %r = relu %a              =>      %y = elementwise_region %x, %b, %c
 *     %y = mul %r, %c                        chain=[[add,i0,i1],[relu,s0],[mul,s1,i2]]
 *
 * A region is a tree: each member but the last is read by one node, which is a member too. It may
 * have any number of members and inputs, and inputs broadcast as they did.
 * Members are unary, cast, binary, compare and where; the binary ops that a region need not have
 * (ops-core.md 5.1) are left out, and so is what is computed once from params.
 * A node that reads the result of a product or of a splat op begins a region. A node stays outside
 * where it would be computed again for every row.
 * Needs:  every other fusion is done, or the adds they look for are gone.      Keeps: types,
 * labels, outputs; order where a state is read and then written. */
#include "pass/fuse.h"

struct regions {
    const struct fuse *f;
    bool *joined;          /* by node: part of its reader's region */
    int32_t *members;      /* by the last node of a region: how many there are */
    ir_value *head, *next; /* by the last node: the first member; by member: the one after it */
    int32_t *step, *input; /* by node: which step or input of the region in hand */
    ir_value *stamp;       /* by node: for which region its input was numbered */
};

/* Of the families of steps, the ops that every device's regions have (ops-core.md 5.1). */
static bool is_step(const struct ir_node *n)
{
    return op_has_trait(n->op, IS_STEP) && !op_is(n->op, OP_NO_STEP);
}

/* The size of an axis of t, counted from the end; 1 where there is none. */
static ir_dim dim_from_end(const struct ir_type *t, int32_t from_end)
{
    return from_end < t->rank ? t->dim[t->rank - 1 - from_end] : 1;
}

/* Does each operand have the result's size, or a known 1, on every axis? Then the shape of a region
 * of such nodes follows from its inputs in any order. */
static bool broadcasts_plainly(const struct fuse *f, const struct ir_node *n)
{
    for (int32_t k = 0; k < n->in_count; k++)
        for (int32_t i = 0; i < n->type.rank; i++) {
            ir_dim d = dim_from_end(ir_type_of(f->g, n->in[k]), i);
            if (d != 1 && d != dim_from_end(&n->type, i))
                return false;
        }
    return true;
}

static bool is_member(const struct fuse *f, const struct ir_node *n)
{
    return is_step(n) && !f->is_static[ir_id(f->g, n)] && broadcasts_plainly(f, n);
}

static bool reads_product(const struct fuse *f, const struct ir_node *n)
{
    for (int32_t k = 0; k < n->in_count; k++)
        if (op_has_trait(fuse_node(f, n->in[k])->op, IS_PRODUCT))
            return true;
    return false;
}

/* Would v's elements be computed again and again as an operand of n? Not where one of them is good
 * for a whole row: a tile of a row then has just one. */
static bool repeats(const struct ir_type *v, const struct ir_type *n)
{
    if (dim_from_end(v, 0) == 1 && dim_from_end(n, 0) != 1)
        return false;
    for (int32_t i = 0; i < n->rank; i++)
        if (dim_from_end(v, i) != dim_from_end(n, i))
            return true;
    return false;
}

/* May v be a part of the region of n, which stands at `last`? A state that is written in between
 * must be read where it is read now. */
static bool joins(const struct regions *r, ir_value v, const struct ir_node *n, ir_value last)
{
    const struct ir_node *from = fuse_node(r->f, v);

    return fuse_sole(r->f, v, n) && is_member(r->f, from) && !repeats(&from->type, &n->type) &&
           !fuse_crosses_writer(r->f, v, last);
}

/* From the end: a member's reader comes after it, so that its region is known. */
static void find_regions(struct regions *r)
{
    const struct fuse *f = r->f;
    ir_value *last = r->stamp; /* by node, until regions are made: the last of its region */

    for (ir_value i = (ir_value)f->g->node.len - 1; i >= 0; i--) {
        const struct ir_node *n = fuse_node(f, i);
        r->head[i] = RLX_NO_VALUE;
        last[i] = r->joined[i] ? last[f->user[i]] : i;
        if (!is_member(f, n) || reads_product(f, n))
            continue;
        for (int32_t k = 0; k < n->in_count; k++)
            r->joined[n->in[k]] = r->joined[n->in[k]] || joins(r, n->in[k], n, last[i]);
    }
}

/* Members by region, in order. */
static size_t list_members(struct regions *r)
{
    const struct fuse *f = r->f;
    const ir_value *last = r->stamp;
    size_t found = 0;

    for (ir_value i = (ir_value)f->g->node.len - 1; i >= 0; i--) {
        if (!is_member(f, fuse_node(f, i)))
            continue;
        r->next[i] = r->head[last[i]];
        r->head[last[i]] = i;
        found += ++r->members[last[i]] == 2;
    }
    for (size_t i = 0; i < f->g->node.len; i++)
        r->stamp[i] = RLX_NO_VALUE;
    return found;
}

/* ---- making them ---- */

/* An operand of a step: an earlier step, or an input, which is numbered when it is met. */
static int32_t operand(struct regions *r, ir_value v, ir_value last, ir_value *in, int32_t *count)
{
    if (r->joined[v])
        return r->step[v];
    if (r->stamp[v] != last) {
        r->stamp[v] = last;
        r->input[v] = *count;
        in[(*count)++] = v;
    }
    return RLX_CHAIN_INPUT(r->input[v]);
}

static rlx_status make_region(struct regions *r, struct rebuild *b, ir_value last)
{
    struct arena *arena = &b->old->mod->arena;
    const struct ir_node *end = fuse_node(r->f, last);
    size_t members = (size_t)r->members[last], len = 0;
    rlx_chain_step *chain = arena_array(arena, rlx_chain_step, members);
    ir_value *in = arena_array(arena, ir_value, 3 * members), made;
    rlx_str label = end->label;
    int32_t count = 0;
    union ir_attr attr;

    if (!chain || !in)
        return diag_no_memory(b->diag, members * sizeof *chain);
    for (ir_value v = r->head[last]; v != RLX_NO_VALUE; v = r->next[v]) {
        const struct ir_node *n = fuse_node(r->f, v);
        rlx_chain_step *s = &chain[len];
        *s = (rlx_chain_step){.op = (int32_t)n->op};
        if (n->op == RLX_OP_cast)
            s->to = (int32_t)n->attr.cast.to;
        for (int32_t k = 0; k < n->in_count; k++)
            s->in[k] = operand(r, n->in[k], last, in, &count);
        r->step[v] = (int32_t)len++;
        label = label.len ? label : n->label;
    }
    for (int32_t i = 0; i < count; i++)
        in[i] = rebuild_map(b, in[i]);
    attr_defaults(RLX_OP_elementwise_region, &attr);
    attr.elementwise_region.chain = (struct ir_blob){chain, members};
    TRY(rebuild_add(b, RLX_OP_elementwise_region, in, count, &attr, &made));
    ir_node(&b->made, made)->label = label;
    rebuild_replace(b, end, made);
    return RLX_OK;
}

static rlx_status rewrite(struct regions *r, struct ir_graph *g, struct diag *d)
{
    struct rebuild b;
    rlx_status s = rebuild_begin(&b, g, d);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        if (r->joined[i])
            continue;
        s = r->members[i] >= 2 ? make_region(r, &b, (ir_value)i) : rebuild_keep(&b, &g->node.at[i]);
    }
    return rebuild_finish(&b, s);
}

static rlx_status open_regions(struct regions *r, const struct fuse *f, struct arena *arena,
                               struct diag *d)
{
    size_t nodes = f->g->node.len;

    *r = (struct regions){.f = f,
                          .joined = arena_array(arena, bool, nodes),
                          .members = arena_array(arena, int32_t, nodes),
                          .head = arena_array(arena, ir_value, nodes),
                          .next = arena_array(arena, ir_value, nodes),
                          .step = arena_array(arena, int32_t, nodes),
                          .input = arena_array(arena, int32_t, nodes),
                          .stamp = arena_array(arena, ir_value, nodes)};
    if (!r->joined || !r->members || !r->head || !r->next || !r->step || !r->input || !r->stamp)
        return diag_no_memory(d, nodes * 7 * sizeof(ir_value));
    return RLX_OK;
}

static rlx_status mark_in(struct pass_run *p, struct ir_graph *g, struct arena *arena)
{
    struct fuse f;
    struct regions r;
    rlx_status s = fuse_open(&f, g, p->diag);
    size_t found = 0;

    if (s == RLX_OK)
        s = open_regions(&r, &f, arena, p->diag);
    if (s == RLX_OK) {
        find_regions(&r);
        found = list_members(&r);
    }
    if (s == RLX_OK && found)
        s = rewrite(&r, g, p->diag);
    p->changes += found;
    fuse_close(&f);
    return s;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    if (p->options->no_regions || !fuse_may(p, FAMILY_elementwise_region))
        return RLX_OK;
    for (size_t i = 0; i < m->graph.len; i++) {
        struct arena arena;
        arena_init(&arena, m->mem);
        rlx_status s = mark_in(p, m->graph.at[i], &arena);
        arena_free(&arena);
        TRY(s);
    }
    return RLX_OK;
}

const struct pass pass_mark_regions = {"mark-regions", "chains of elementwise ops as one op", run};
