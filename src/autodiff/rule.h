/* rule.h: what a rule is given, and how it answers.
 *
 *     void vjp_tanh(struct vjp *v) { ir_value y = v->y; ... vjp_give(v, 0, dx); }
 *
 * A rule looks at wanted() before it builds what only one operand needs. Failures are the
 * formula's: nothing is checked on the way. */
#ifndef AUTODIFF_RULE_H
#define AUTODIFF_RULE_H

#include "autodiff/autodiff.h"
#include "ir/formula.h"

struct vjp {
    struct formula f;        /* its numbers have the type of dy, or f32 where that is narrower */
    const struct ir_node *n; /* the node: its operands are n->in */
    ir_value y, dy;          /* its value and the gradient of that */
    const bool *wanted_;     /* by operand */
    ir_value *dx;            /* by operand: RLX_NO_VALUE until given */
};
typedef void (*vjp_rule)(struct vjp *v);

static inline bool vjp_wanted(const struct vjp *v, int32_t i)
{
    return v->wanted_[i];
}
static inline const struct ir_type *vjp_type(const struct vjp *v, int32_t i)
{
    return ir_type_of(v->f.g, v->n->in[i]);
}
/* Operand i's gradient: summed where the operand was broadcast, in its type. No-op if not wanted.
 */
void vjp_give(struct vjp *v, int32_t i, ir_value dx);

/* rules.def: the rules there are, and the families where asking for one is an error. */
#define RULE(family) void vjp_##family(struct vjp *v);
#define RULE_IF(family)               \
    void vjp_##family(struct vjp *v); \
    bool vjp_##family##_applies(const struct ir_graph *g, const struct ir_node *n);
#define NO_RULE(family)
#include "autodiff/rules.def"
#undef RULE
#undef RULE_IF
#undef NO_RULE

#endif
