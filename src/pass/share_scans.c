/* share_scans.c: the result of a scan whose carries another one keeps is the last of these.
 *
 *     %y = scan %c, %x body=@f length=8                         %t = scan .. save_trajectory=true
 *     %t = scan %c, %x body=@f length=8              =>         %r = narrow %t axis=0 start=7 len=1
 *              save_trajectory=true                             %y = reshape %r
 *
 * Needs:  nothing.      Keeps: types, labels. The one that keeps them comes to where the first of
 * the two was: gradients ask for the carries of a scan that stands long before. Only where there is
 * a last one, and where nothing is read that is written in between. */
#include "pass/expand/expand.h"
#include "pass/facts.h"
#include "pass/share.h"

static bool same_scan(const struct ir_graph *g, const struct ir_node *a, const struct ir_node *b)
{
    const struct attr_scan *x = &a->attr.scan, *y = &b->attr.scan;

    return x->body == y->body && x->length == y->length && x->num_bcast == y->num_bcast &&
           share_operands(g, a, b);
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

static rlx_status last_carry(struct rebuild *r, const struct ir_node *n, ir_value rows,
                             ir_value *out)
{
    TRY(expand_narrow(r, rows, 0, expand_type(r, rows)->dim[0] - 1, 1, out));
    return expand_reshape(r, *out, rlx_list_of(n->type.rank, n->type.dim), out);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    return share_nodes(p, m, &(struct sharing){keeper_of, last_carry});
}

const struct pass pass_share_scans = {"share-scans", "scans that are the last carry of another",
                                      run};
