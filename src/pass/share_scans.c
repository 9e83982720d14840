/* share_scans.c: the result of a scan whose carries another one keeps is the last of these.
 *
 *     %y = scan %c, %x body=@f length=8                         %t = scan .. save_trajectory=true
 *     %t = scan %c, %x body=@f length=8              =>         %r = narrow %t axis=0 start=7 len=1
 *              save_trajectory=true                             %y = reshape %r
 *
 * Needs:  nothing.      Keeps: types, labels. The one that keeps them comes to where the first of
 * the two was: gradients ask for the carries of a scan that stands long before. Only where there is
 * a last one, and where nothing is read that is written in between. */
#include "pass/expand.h"
#include "pass/facts.h"
#include "pass/pass.h"

static bool same_scan(const struct ir_graph *g, const struct ir_node *a, const struct ir_node *b)
{
    const struct attr_scan *x = &a->attr.scan, *y = &b->attr.scan;

    if (a->in_count != b->in_count || x->body != y->body || x->length != y->length ||
        x->num_bcast != y->num_bcast)
        return false;
    for (int32_t i = 0; i < a->in_count; i++)
        if (a->in[i] != b->in[i] || value_is_written_state(g, a->in[i]))
            return false;
    return true;
}

/* The scan that keeps the carries of n; NULL: there is none. */
static const struct ir_node *keeper_of(const struct ir_graph *g, const struct ir_node *n)
{
    if (n->op != RLX_OP_scan || n->attr.scan.save_trajectory ||
        !dim_is_static(n->attr.scan.length) || n->attr.scan.length == 0 || !node_is_pure(g->mod, n))
        return NULL;
    IR_EACH(k, g) {
        if (k->op == RLX_OP_scan && k->attr.scan.save_trajectory && same_scan(g, n, k))
            return k;
    }
    return NULL;
}

static rlx_status share(struct rebuild *r, const struct ir_node *n, const struct ir_node *keeper)
{
    ir_value rows, last;

    if (rebuild_map(r, ir_id(r->old, keeper)) == RLX_NO_VALUE)
        TRY(rebuild_keep(r, keeper)); /* its operands are those of n */
    rows = rebuild_map(r, ir_id(r->old, keeper));
    TRY(expand_narrow(r, rows, 0, expand_type(r, rows)->dim[0] - 1, 1, &last));
    TRY(expand_reshape(r, last, rlx_list_of(n->type.rank, n->type.dim), &last));
    rebuild_replace(r, n, last);
    return RLX_OK;
}

static rlx_status rewrite(struct pass_run *p, struct ir_graph *g)
{
    struct rebuild r;
    rlx_status s = rebuild_begin(&r, g, p->diag);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i], *keeper = keeper_of(g, n);
        if (keeper)
            s = share(&r, n, keeper);
        else if (rebuild_map(&r, (ir_value)i) == RLX_NO_VALUE)
            s = rebuild_keep(&r, n);
        p->changes += keeper != NULL;
    }
    return rebuild_finish(&r, s);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    for (size_t i = 0; i < m->graph.len; i++) {
        bool any = false;
        IR_EACH(n, m->graph.at[i])
            any = any || keeper_of(m->graph.at[i], n);
        if (any)
            TRY(rewrite(p, m->graph.at[i]));
    }
    return RLX_OK;
}

const struct pass pass_share_scans = {"share-scans", "scans that are the last carry of another",
                                      run};
