/* rule_loss.c: cross entropies (ops-core.md 19.1). */
#include "autodiff/rule.h"

void vjp_softmax_cross_entropy_with_logits(struct vjp *v)
{
    const ir_value in[] = {v->n->in[0], v->n->in[1], v->dy};

    if (vjp_wanted(v, 0))
        vjp_add(v, 0, formula_node(&v->f, RLX_OP_softmax_cross_entropy_backward, in, 3, NULL));
}

static ir_value per_row(struct formula *f, rlx_op op, ir_value x)
{
    return formula_reduce(f, op, x, RLX_LIST(1), true);
}

/* dlogits = (softmax sum(t) - t) dy, dtargets = (lse - x) dy. */
void vjp_softmax_cross_entropy(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value x = formula_cast(f, v->n->in[0], f->dtype);
    ir_value t = formula_cast(f, v->n->in[1], f->dtype);
    ir_value dy = formula_cast(f, v->dy, f->dtype);

    dy = formula_reshape(f, dy, RLX_LIST(v->n->type.dim[0], 1));
    if (vjp_wanted(v, 0)) {
        ir_value all = MUL(formula_1(f, RLX_OP_softmax, x), per_row(f, RLX_OP_reduce_sum, t));
        vjp_add(v, 0, MUL(SUB(all, t), dy));
    }
    if (vjp_wanted(v, 1)) {
        ir_value below = SUB(x, per_row(f, RLX_OP_reduce_max, x));
        ir_value sum = per_row(f, RLX_OP_reduce_sum, formula_1(f, RLX_OP_exp, below));
        vjp_add(v, 1, MUL(SUB(formula_1(f, RLX_OP_log, sum), below), dy));
    }
}

/* (softmax - onehot) dloss, and nothing in a row whose label is outside the classes. */
ir_value define_softmax_cross_entropy_backward(struct formula *f, const struct ir_node *n)
{
    const struct ir_type t = *ir_type_of(f->g, n->in[0]);
    rlx_list column = RLX_LIST(t.dim[0], 1);
    ir_value label = formula_reshape(f, formula_cast(f, n->in[1], RLX_DTYPE_i64), column);
    ir_value hot = formula_2(f, RLX_OP_eq, label, rule_positions(f, t.dim[1]));
    ir_value p = formula_1(f, RLX_OP_softmax, formula_cast(f, n->in[0], f->dtype));
    ir_value dloss = formula_reshape(f, formula_cast(f, n->in[2], f->dtype), column);
    ir_value dx = MUL(SUB(p, formula_cast(f, hot, f->dtype)), dloss);

    return formula_where(f, per_row(f, RLX_OP_reduce_max, hot), dx, NUM(0));
}
