/* fuse_shared_matmul.c: products with one left side as one product.
 *
 *     %q = matmul %x, %wq               %w = concat %wq, %wk, %wv
 *     %k = matmul %x, %wk       =>      %p = matmul %x, %w
 *     %v = matmul %x, %wv               %q = narrow %p ...    %k = narrow %p ...    %v = narrow %p
 * ...
 *
 * Needs:  all products of %x have weights of rank 2 that are made of params and constants (so that
 * the concatenation is computed once) and store their operands alike; at most WIDEST columns; what
 * is made fits in a buffer of the device.
 * Keeps: types, labels, outputs. The product stands where the first of them stood; what the other
 * weights are made of is moved up to there. */
#include "base/str.h"
#include "pass/fuse_shared.h"

bool fuse_shared_fits(const struct fuse *f, const struct fuse_shared *s, const char **why)
{
    const struct ir_node *first = fuse_node(f, s->product[0]);
    uint64_t weights = 0, products = 0; /* bytes */
    int64_t columns = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct ir_node *n = fuse_node(f, s->product[i]);
        const struct ir_type *w = ir_type_of(f->g, n->in[1]);
        ir_dim wide = n->type.dim[n->type.rank - 1];
        if (w->rank != 2 || !f->is_static[n->in[1]])
            *why = "a weight is not a matrix made of params and constants";
        else if (n->attr.matmul.transpose_a != first->attr.matmul.transpose_a ||
                 n->attr.matmul.transpose_b != first->attr.matmul.transpose_b)
            *why = "the products store their operands differently";
        else if (!dim_is_static(wide) || wide > FUSE_WIDEST - columns)
            *why = "together the weights have too many columns";
        else if (!fuse_fits(f, w, &weights) || !fuse_fits(f, &n->type, &products))
            *why = "together they would be larger than a buffer of the device";
        else if (fuse_crosses_writer(f, s->product[0], s->product[i]))
            *why = "the left side is written in between";
        else {
            columns += wide;
            continue;
        }
        return false;
    }
    return true;
}

rlx_status fuse_shared_list(const struct fuse *f, struct arena *arena, struct fuse_shared **out,
                            struct diag *d)
{
    const struct ir_graph *g = f->g;
    size_t nodes = g->node.len;
    struct fuse_shared *by_left = arena_array(arena, struct fuse_shared, nodes);

    if (!by_left)
        return diag_no_memory(d, nodes * sizeof *by_left);
    IR_EACH(n, g)
        by_left[n->in_count ? n->in[0] : 0].count += n->op == RLX_OP_matmul;
    IR_EACH(n, g) {
        if (n->op != RLX_OP_matmul)
            continue;
        struct fuse_shared *s = &by_left[n->in[0]];
        if (!s->product) {
            s->product = arena_array(arena, ir_value, s->count);
            if (!s->product)
                return diag_no_memory(d, s->count * sizeof *s->product);
            s->count = 0;
        }
        s->product[s->count++] = ir_id(g, n);
    }
    *out = by_left;
    return RLX_OK;
}

/* ---- rewriting ---- */

struct shared_rewrite {
    const struct fuse *f;
    struct rebuild r;
    struct fuse_shared *by_left;
    struct arena *arena;
};

/* Brings what v is made of into the new graph; all of it is static, so it may stand anywhere. */
static rlx_status hoist(struct shared_rewrite *w, ir_value v)
{
    bool *need = arena_array(w->arena, bool, (size_t)v + 1);

    if (!need)
        return diag_no_memory(w->r.diag, (size_t)v + 1);
    need[v] = rebuild_map(&w->r, v) == RLX_NO_VALUE;
    for (ir_value i = v; i >= 0; i--) {
        const struct ir_node *n = fuse_node(w->f, i);
        for (int32_t k = 0; need[i] && k < n->in_count; k++)
            need[n->in[k]] = rebuild_map(&w->r, n->in[k]) == RLX_NO_VALUE;
    }
    for (ir_value i = 0; i <= v; i++)
        if (need[i])
            TRY(rebuild_keep(&w->r, fuse_node(w->f, i)));
    return RLX_OK;
}

/* "q+k+v", for messages and profiles; none if fewer than two have a name. */
static rlx_str joined_label(struct shared_rewrite *w, const struct fuse_shared *s)
{
    struct arena *arena = &w->r.old->mod->arena;
    const char *text = "";
    size_t labels = 0;

    for (size_t i = 0; i < s->count && text; i++) {
        rlx_str label = fuse_node(w->f, s->product[i])->label;
        if (label.len)
            text = arena_printf(arena, "%s%s%.*s", text, labels++ ? "+" : "", STR_ARG(label));
    }
    return rlx_cstr(labels >= 2 ? text : NULL);
}

static rlx_status narrow_to(struct shared_rewrite *w, ir_value packed, const struct ir_node *n,
                            ir_dim *start)
{
    int32_t last = n->type.rank - 1;
    union ir_attr attr;
    ir_value part;

    attr_defaults(RLX_OP_narrow, &attr);
    attr.narrow.axis = last;
    attr.narrow.start = *start;
    attr.narrow.len = n->type.dim[last];
    TRY(rebuild_add(&w->r, RLX_OP_narrow, &packed, 1, &attr, &part));
    rebuild_replace(&w->r, n, part);
    *start += attr.narrow.len;
    return RLX_OK;
}

static rlx_status merge(struct shared_rewrite *w, const struct fuse_shared *s)
{
    const struct ir_node *first = fuse_node(w->f, s->product[0]);
    ir_value *weight = arena_array(w->arena, ir_value, s->count), packed;
    ir_value operand[2] = {rebuild_map(&w->r, first->in[0])};
    union ir_attr attr;
    ir_dim start = 0;

    if (!weight)
        return diag_no_memory(w->r.diag, s->count * sizeof *weight);
    for (size_t i = 0; i < s->count; i++) {
        ir_value v = fuse_node(w->f, s->product[i])->in[1];
        TRY(hoist(w, v));
        weight[i] = rebuild_map(&w->r, v);
    }
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = first->attr.matmul.transpose_b ? 0 : 1;
    TRY(rebuild_add(&w->r, RLX_OP_concat, weight, (int32_t)s->count, &attr, &operand[1]));
    TRY(rebuild_add(&w->r, RLX_OP_matmul, operand, 2, &first->attr, &packed));
    ir_node(&w->r.made, packed)->label = joined_label(w, s);
    for (size_t i = 0; i < s->count; i++)
        TRY(narrow_to(w, packed, fuse_node(w->f, s->product[i]), &start));
    return RLX_OK;
}

static rlx_status rewrite(struct shared_rewrite *w, struct ir_graph *g, struct diag *d)
{
    rlx_status s = rebuild_begin(&w->r, g, d);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        const struct fuse_shared *shared = n->in_count ? &w->by_left[n->in[0]] : NULL;
        if (rebuild_map(&w->r, (ir_value)i) != RLX_NO_VALUE)
            continue; /* moved up, or a part of a product by now */
        if (n->op == RLX_OP_matmul && shared->merge)
            s = merge(w, shared);
        else
            s = rebuild_keep(&w->r, n);
    }
    return rebuild_finish(&w->r, s);
}

static rlx_status fuse_in(struct pass_run *p, struct ir_graph *g, struct arena *arena)
{
    struct fuse f;
    struct shared_rewrite w = {.f = &f, .arena = arena};
    rlx_status s = fuse_open(&f, g, p->diag);
    size_t groups = 0;
    const char *why;

    f.max_buffer = p->target ? p->target->max_buffer : 0;
    if (s == RLX_OK)
        s = fuse_shared_list(&f, arena, &w.by_left, p->diag);
    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        struct fuse_shared *shared = &w.by_left[i];
        shared->merge = shared->count >= 2 && fuse_shared_fits(&f, shared, &why);
        groups += shared->merge;
    }
    if (s == RLX_OK && groups)
        s = rewrite(&w, g, p->diag);
    p->changes += groups;
    fuse_close(&f);
    return s;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    if (!fuse_may_concat(p) || !fuse_may(p, FAMILY_matmul))
        return RLX_OK;
    for (size_t i = 0; i < m->graph.len; i++) {
        struct arena arena;
        arena_init(&arena, m->mem);
        rlx_status s = fuse_in(p, m->graph.at[i], &arena);
        arena_free(&arena);
        TRY(s);
    }
    return RLX_OK;
}

const struct pass pass_fuse_shared_matmul = {"fuse-shared-matmul",
                                             "products with one left side as one", run};
