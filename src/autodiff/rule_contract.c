/* rule_contract.c: products, solvers and determinants (ops-core.md 10). dot_general and lora_matmul
 * are differentiated through the products they stand for. */
#include "autodiff/rule.h"

/* ---- products ---- */

/* Is the operand one matrix for all items of the batch? */
static bool is_shared(const struct ir_type *t)
{
    for (int32_t i = 0; i < t->rank - 2; i++)
        if (t->dim[i] != 1)
            return false;
    return true;
}

static void matmul_left(struct vjp *v)
{
    const struct attr_matmul *t = &v->n->attr.matmul;
    struct formula *f = &v->f;
    ir_value b = rule_conjugate(f, v->n->in[1]);

    vjp_add(v, 0,
            t->transpose_a ? formula_matmul(f, b, v->dy, t->transpose_b, true)
                           : formula_matmul(f, v->dy, b, false, !t->transpose_b));
}

/* One product over the rows of all items where the matrix is shared. */
static void matmul_right(struct vjp *v)
{
    const struct attr_matmul *t = &v->n->attr.matmul;
    struct formula *f = &v->f;
    const struct ir_type b = *vjp_type(v, 1);
    ir_value a = rule_conjugate(f, v->n->in[0]), dy = v->dy;

    if (is_shared(&b) && !t->transpose_a) {
        a = rule_rows(f, a);
        dy = rule_rows(f, dy);
    }
    ir_value db = t->transpose_b ? formula_matmul(f, dy, a, true, t->transpose_a)
                                 : formula_matmul(f, a, dy, !t->transpose_a, false);
    if (is_shared(&b) && !t->transpose_a)
        db = formula_reshape(f, db, formula_shape(&b));
    vjp_add(v, 1, db);
}

void vjp_matmul(struct vjp *v)
{
    if (vjp_wanted(v, 0))
        matmul_left(v);
    if (vjp_wanted(v, 1))
        matmul_right(v);
}

bool vjp_grouped_matmul_applies(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return n->type.dtype != RLX_DTYPE_c64;
}

void vjp_grouped_matmul(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value x = v->n->in[0], w = v->n->in[1], expert = v->n->in[2];
    union ir_attr attr;

    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {v->dy, formula_swap(f, w), expert};
        vjp_add(v, 0, formula_node(f, RLX_OP_grouped_matmul, in, 3, NULL));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {x, v->dy, expert};
        attr_defaults(RLX_OP_grouped_matmul_backward_weight, &attr);
        attr.grouped_matmul_backward_weight.experts = vjp_type(v, 1)->dim[0];
        vjp_add(v, 1, formula_node(f, RLX_OP_grouped_matmul_backward_weight, in, 3, &attr));
    }
}

void vjp_grouped_matmul_backward_weight(struct vjp *v)
{
    const ir_value *in = v->n->in;
    struct formula *f = &v->f;

    if (vjp_wanted(v, 0)) {
        const ir_value of[] = {in[1], formula_swap(f, v->dy), in[2]};
        vjp_add(v, 0, formula_node(f, RLX_OP_grouped_matmul, of, 3, NULL));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value of[] = {in[0], v->dy, in[2]};
        vjp_add(v, 1, formula_node(f, RLX_OP_grouped_matmul, of, 3, NULL));
    }
}

/* ---- solvers, in f32 or better ---- */

/* b as columns: [.., n] becomes [.., n, 1] where a has one axis more. */
static ir_value as_columns(struct vjp *v, ir_value b)
{
    const struct ir_type *t = vjp_type(v, 1);
    rlx_list shape = formula_shape(t);

    if (t->rank < vjp_type(v, 0)->rank)
        shape.at[shape.count++] = 1;
    return formula_reshape(&v->f, b, shape);
}

/* a x = b: db solves a^T db = dy, and da = -db x^T. */
void vjp_dense_solve(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value dy = formula_cast(f, v->dy, f->dtype), x = formula_cast(f, v->y, f->dtype);
    ir_value db = formula_2(f, v->n->op, formula_swap(f, rule_operand(v, 0)), dy);

    vjp_add(v, 1, db);
    if (vjp_wanted(v, 0))
        vjp_add(v, 0, NEG(formula_matmul(f, as_columns(v, db), as_columns(v, x), false, true)));
}

/* The same with one triangle of a, as it is or transposed; only that triangle has a gradient. */
void vjp_triangular_solve(struct vjp *v)
{
    const struct attr_triangular_solve *a = &v->n->attr.triangular_solve;
    struct formula *f = &v->f;
    ir_value dy = formula_cast(f, v->dy, f->dtype), x = formula_cast(f, v->y, f->dtype);
    ir_value db = rule_solve_triangle(f, rule_operand(v, 0), dy, a->lower, !a->transpose);

    vjp_add(v, 1, db);
    if (!vjp_wanted(v, 0))
        return;
    db = as_columns(v, db);
    x = as_columns(v, x);
    ir_value da = formula_matmul(f, a->transpose ? x : db, a->transpose ? db : x, false, true);
    vjp_add(v, 0, NEG(rule_triangle(f, da, !a->lower, 0)));
}

/* S = L^-T half_lower(L^T dy) L^-1, and da = half_lower(S + S^T): only that half of a is read. */
void vjp_cholesky(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value l = formula_cast(f, v->y, f->dtype), dy = formula_cast(f, v->dy, f->dtype);
    ir_value middle = rule_half_lower(f, formula_matmul(f, l, dy, true, false));
    ir_value left = rule_solve_triangle(f, l, middle, true, true);
    ir_value s = rule_solve_triangle(f, l, formula_swap(f, left), true, true); /* S^T */

    vjp_add(v, 0, rule_half_lower(f, ADD(s, formula_swap(f, s))));
}

void vjp_det(struct vjp *v)
{
    struct formula *f = &v->f;
    struct ir_type t = *vjp_type(v, 0);
    ir_value factor = formula_cast(f, v->dy, f->dtype);

    t.dtype = f->dtype;
    ir_value one = rule_triangle(f, rule_triangle(f, formula_fill(f, &t, 1), true, 0), false, 0);
    ir_value inverse = formula_2(f, RLX_OP_dense_solve, formula_swap(f, rule_operand(v, 0)), one);
    if (v->n->op == RLX_OP_det)
        factor = MUL(factor, formula_cast(f, v->y, f->dtype));
    vjp_add(v, 0, MUL(factor, inverse));
}
