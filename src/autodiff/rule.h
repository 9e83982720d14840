/* rule.h: what a rule is given, and what it gives.
 *
 *     void vjp_tanh(struct vjp *v) { ir_value y = v->y; ... vjp_add(v, 0, dx); }
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
/* Before anything is built: are the gradients of those operands defined? NO_RULE if not. */
typedef rlx_status (*vjp_check)(const struct ir_graph *g, const struct ir_node *n,
                                const bool *wanted, struct diag *d);

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
void vjp_add(struct vjp *v, int32_t i, ir_value dx);

/* Nodes from `first` on, which end in `out`, were added as an equivalent of the node: operand i's
 * gradient is what the walk through them gives. */
void vjp_through(struct vjp *v, int32_t i, ir_value first, ir_value out, ir_value dy);

/* What a node computes, in ops that have rules: for those that are too seldom differentiated to
 * have one, as gradients are. The result may have the formula's type. */
typedef ir_value (*definition)(struct formula *f, const struct ir_node *n);

/* x again, in the formula's type, as a value of its own: what reaches it is not what reaches other
 * places where x stands. */
ir_value rule_apart(struct formula *f, ir_value x);
/* What reaches wrt from dy, the gradient of y, through the nodes from `first` on; zeros where
 * nothing does. */
ir_value rule_pull(struct formula *f, ir_value first, ir_value y, ir_value dy, ir_value wrt);

/* ---- what several rules are written with (rule_parts.c) ---- */

/* Shorthands, where the formula is called f. */
#define NUM(v) formula_number(f, (v))
#define NEG(a) formula_1(f, RLX_OP_neg, (a))
#define ADD(a, b) formula_2(f, RLX_OP_add, (a), (b))
#define SUB(a, b) formula_2(f, RLX_OP_sub, (a), (b))
#define MUL(a, b) formula_2(f, RLX_OP_mul, (a), (b))
#define DIV(a, b) formula_2(f, RLX_OP_div, (a), (b))

static inline struct dim_table *rule_dims(const struct formula *f)
{
    return f->g->mod->dims;
}
ir_dim rule_product(const struct formula *f, const ir_dim *dim, int32_t count);
/* A size as an i64; 0, 1, 2 .. n-1 as i64 [n]. Sizes may have symbols. */
ir_value rule_size(struct formula *f, ir_dim n);
ir_value rule_positions(struct formula *f, ir_dim n);
/* Zeros like x, which may have symbols. */
ir_value rule_zeros(struct formula *f, ir_value x);
/* z conjugated where it is complex: the factor of a complex gradient. */
ir_value rule_conjugate(struct formula *f, ir_value z);
/* x [.., rows, columns] as one matrix [all rows, columns]. */
ir_value rule_rows(struct formula *f, ir_value x);
/* `value` before and after x, along an axis; x itself where both are 0. */
ir_value rule_pad(struct formula *f, ir_value x, int64_t axis, ir_dim before, ir_dim after,
                  double value);
/* rule_reduce.c: a running sum, product or maximum. */
ir_value rule_cumulative(struct formula *f, rlx_op op, ir_value x, int64_t axis, bool exclusive);
/* base with updates written to indices along the axis, or added there. */
ir_value rule_scatter(struct formula *f, ir_value base, ir_value indices, ir_value updates,
                      int64_t axis, bool add);

/* Operand i in the type that the formula computes in. */
ir_value rule_operand(struct vjp *v, int32_t i);
/* A triangle of the last two axes, with zeros beside it; the lower one with half of the diagonal.
 */
ir_value rule_triangle(struct formula *f, ir_value x, bool upper, int64_t diagonal);
ir_value rule_half_lower(struct formula *f, ir_value x);
/* a x = b, or a^T x = b, where a is a triangle. */
ir_value rule_solve_triangle(struct formula *f, ir_value a, ir_value b, bool lower, bool transpose);

/* rules.def: the rules there are, and the families where asking for one is an error. */
#define RULE(family) void vjp_##family(struct vjp *v);
#define RULE_IF(family)               \
    void vjp_##family(struct vjp *v); \
    bool vjp_##family##_applies(const struct ir_graph *g, const struct ir_node *n);
#define RULE_ASKS(family)                                                              \
    void vjp_##family(struct vjp *v);                                                  \
    rlx_status vjp_##family##_check(const struct ir_graph *g, const struct ir_node *n, \
                                    const bool *wanted, struct diag *d);
#define EXPANDS_IF(family) \
    bool vjp_##family##_applies(const struct ir_graph *g, const struct ir_node *n);
#define DEFINED(family) ir_value define_##family(struct formula *f, const struct ir_node *n);
#define NO_RULE(family)
#include "autodiff/rules.def"
#undef RULE
#undef RULE_IF
#undef RULE_ASKS
#undef EXPANDS_IF
#undef DEFINED
#undef NO_RULE

#endif
