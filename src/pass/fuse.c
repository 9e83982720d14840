/* fuse.c: see fuse.h. */
#include "pass/fuse.h"

static bool is_static(const struct fuse *f, const struct ir_node *n)
{
    if (n->op == RLX_OP_param || n->op == RLX_OP_const)
        return true;
    if (!op_has_trait(n->op, IS_CHEAP))
        return false;
    for (int32_t k = 0; k < n->in_count; k++)
        if (!f->is_static[n->in[k]])
            return false;
    return true;
}

bool fuse_fits(const struct fuse *f, const struct ir_type *t, uint64_t *sum)
{
    uint64_t bytes;

    if (f->max_buffer == 0 || !type_is_static(t))
        return true;
    return type_bytes(t, &bytes) && !__builtin_add_overflow(*sum, bytes, sum) &&
           *sum <= f->max_buffer;
}

rlx_status fuse_open(struct fuse *f, const struct ir_graph *g, struct diag *d)
{
    const rlx_allocator *mem = g->mod->mem;
    size_t nodes = g->node.len + 1;

    *f = (struct fuse){.g = g,
                       .room = nodes,
                       .uses = mem_alloc(mem, nodes * sizeof *f->uses),
                       .user = mem_alloc(mem, nodes * sizeof *f->user),
                       .is_static = mem_alloc(mem, nodes)};
    if (!f->uses || !f->user || !f->is_static)
        return diag_no_memory(d, nodes * sizeof *f->user);
    for (size_t i = 0; i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        f->user[i] = RLX_NO_VALUE;
        f->is_static[i] = is_static(f, n);
        for (int32_t k = 0; k < n->in_count; k++) {
            f->uses[n->in[k]]++;
            f->user[n->in[k]] = (ir_value)i;
        }
    }
    for (size_t i = 0; i < g->output.len; i++)
        f->uses[g->output.at[i]]++;
    return RLX_OK;
}

void fuse_close(struct fuse *f)
{
    const rlx_allocator *mem = f->g->mod->mem;

    mem_free(mem, f->uses, f->room * sizeof *f->uses);
    mem_free(mem, f->user, f->room * sizeof *f->user);
    mem_free(mem, f->is_static, f->room);
}

/* A view of a state holds what the state was where the view stands; only direct reads matter. */
bool fuse_crosses_writer(const struct fuse *f, ir_value node, ir_value to)
{
    const struct ir_node *n = fuse_node(f, node);

    for (int32_t k = 0; k < n->in_count; k++) {
        if (fuse_node(f, n->in[k])->op != RLX_OP_state)
            continue;
        for (ir_value w = node + 1; w < to; w++)
            if (op_is(fuse_node(f, w)->op, OP_WRITES) &&
                ir_written_state(f->g, fuse_node(f, w)) == n->in[k])
                return true;
    }
    return false;
}

bool fuse_is_row(const struct ir_type *t, ir_dim n)
{
    for (int32_t i = 0; i < t->rank - 1; i++)
        if (t->dim[i] != 1)
            return false;
    return t->rank >= 1 && t->dim[t->rank - 1] == n;
}

/* ---- patterns ---- */

/* The match, unless something in it cannot move to where the result will stand. */
static bool find(const struct fuse *f, const struct fuse_pattern *pattern, const struct ir_node *n,
                 struct fuse_match *m)
{
    *m = (struct fuse_match){0};
    if (!pattern->match(f, n, m))
        return false;
    for (int32_t i = 0; i < m->gone_count; i++)
        if (fuse_crosses_writer(f, m->gone[i], ir_id(f->g, n)))
            return false;
    return true;
}

/* The name of the pattern's last node, or of the nearest one that has any. */
static void keep_label(struct rebuild *r, const struct fuse *f, const struct ir_node *n,
                       const struct fuse_match *m, ir_value made)
{
    rlx_str label = n->label;

    for (int32_t i = 0; i < m->gone_count && label.len == 0; i++)
        label = fuse_node(f, m->gone[i])->label;
    ir_node(&r->made, made)->label = label;
}

static rlx_status replace(struct rebuild *r, const struct fuse *f,
                          const struct fuse_pattern *pattern, const struct ir_node *n,
                          const struct fuse_match *m)
{
    ir_value in[6], made;

    for (int32_t i = 0; i < m->in_count; i++)
        in[i] = rebuild_map(r, m->in[i]);
    if (pattern->build)
        TRY(pattern->build(r, m, in, &made));
    else
        TRY(rebuild_add(r, m->op, in, m->in_count, &m->attr, &made));
    keep_label(r, f, n, m, made);
    rebuild_replace(r, n, made);
    return RLX_OK;
}

static rlx_status rewrite(const struct fuse *f, const struct fuse_pattern *pattern,
                          const bool *gone, struct ir_graph *g, struct diag *d)
{
    struct rebuild r;
    struct fuse_match m;
    rlx_status s = rebuild_begin(&r, g, d);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        if (gone[i])
            continue;
        s = find(f, pattern, n, &m) ? replace(&r, f, pattern, n, &m) : rebuild_keep(&r, n);
    }
    return rebuild_finish(&r, s);
}

static rlx_status fuse_in(struct pass_run *p, struct ir_graph *g,
                          const struct fuse_pattern *pattern)
{
    struct fuse f;
    struct fuse_match m;
    size_t found = 0, nodes = g->node.len + 1;
    bool *gone = mem_alloc(g->mod->mem, nodes);
    rlx_status s = gone ? fuse_open(&f, g, p->diag) : diag_no_memory(p->diag, nodes);

    if (!gone)
        return s;
    f.max_buffer = p->target ? p->target->max_buffer : 0;
    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        if (!find(&f, pattern, &g->node.at[i], &m))
            continue;
        found++;
        for (int32_t k = 0; k < m.gone_count; k++)
            gone[m.gone[k]] = true;
    }
    if (s == RLX_OK && found)
        s = rewrite(&f, pattern, gone, g, p->diag);
    p->changes += found;
    fuse_close(&f);
    mem_free(g->mod->mem, gone, nodes);
    return s;
}

rlx_status fuse_patterns(struct pass_run *p, struct ir_module *m,
                         const struct fuse_pattern *pattern)
{
    for (size_t i = 0; i < m->graph.len; i++)
        TRY(fuse_in(p, m->graph.at[i], pattern));
    return RLX_OK;
}
