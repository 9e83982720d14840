/* scan_backward.h: the two ways to differentiate a scan, and what they share. */
#ifndef AUTODIFF_SCAN_BACKWARD_H
#define AUTODIFF_SCAN_BACKWARD_H

#include "autodiff/rule.h"

static inline struct ir_graph *scan_body(const struct ir_graph *g, const struct ir_node *n)
{
    return g->mod->graph.at[n->attr.scan.body];
}
/* rule_scan.c */
ir_value *scan_new_values(struct vjp *v, int32_t count); /* NULL: no memory, which is noted */
ir_value scan_as_row(struct vjp *v, ir_value x);         /* with an axis of length 1 in front */
/* The carries between steps, as many as the scan's attribute says are kept. */
ir_value scan_trajectory(struct vjp *v);

/* scan_backward.c: all gradients, of a scan that keeps all carries; false: it cannot for this one.
 */
bool scan_backward_by_scans(struct vjp *v);

#endif
