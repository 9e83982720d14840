/* scan_way_back.h: the two ways back through a scan, and what they share. */
#ifndef AUTODIFF_SCAN_WAY_BACK_H
#define AUTODIFF_SCAN_WAY_BACK_H

#include "autodiff/rule.h"

static inline struct ir_graph *scan_body(const struct ir_graph *g, const struct ir_node *n)
{
    return g->mod->graph.at[n->attr.scan.body];
}
/* rule_scan.c */
ir_value *scan_new_values(struct vjp *v, int32_t count); /* NULL: no memory, which is noted */
ir_value scan_as_row(struct vjp *v, ir_value x);         /* with an axis of length 1 in front */
/* The carries along the way, as many as the scan says are to be kept. */
ir_value scan_trajectory(struct vjp *v);

/* scan_way_back.c: all gradients, of a scan of which all carries are kept; false: not of this one.
 */
bool scan_way_back(struct vjp *v);

#endif
