/* rule_factors.c: a matrix taken apart: svd, qr, eigh (ops-core.md 10). What a part is multiplied
 * with to give the matrix again is recomputed where a gradient needs it. */
#include "autodiff/rule.h"

/* ---- pieces ---- */

static ir_value plus_transposed(struct formula *f, ir_value x)
{
    return ADD(x, formula_swap(f, x));
}

/* 1 / x, and 0 where x is 0: equal values, between which no direction is determined. */
static ir_value finite_inverse(struct formula *f, ir_value x)
{
    ir_value zero = formula_2(f, RLX_OP_eq, x, NUM(0));

    return formula_where(f, zero, NUM(0), DIV(NUM(1), formula_where(f, zero, NUM(1), x)));
}

/* [.., n] as a row [.., 1, n] or a column [.., n, 1]. */
static ir_value as_row(struct formula *f, ir_value x)
{
    rlx_list shape = formula_shape(formula_type(f, x));

    shape.at[shape.count] = shape.at[shape.count - 1];
    shape.at[shape.count++ - 1] = 1;
    return formula_reshape(f, x, shape);
}

static ir_value as_column(struct formula *f, ir_value x)
{
    return formula_swap(f, as_row(f, x));
}

/* 1 / (x_j - x_i) at (i, j). */
static ir_value inverse_gaps(struct formula *f, ir_value x)
{
    return finite_inverse(f, SUB(as_row(f, x), as_column(f, x)));
}

/* a^T b */
static ir_value inner(struct formula *f, ir_value a, ir_value b)
{
    return formula_matmul(f, a, b, true, false);
}

static ir_value product(struct formula *f, ir_value a, ir_value b)
{
    return formula_matmul(f, a, b, false, false);
}

/* ---- svd: a = u diag(s) v^T ---- */

static ir_value svd_part(struct vjp *v, attr_ENUM part)
{
    union ir_attr attr = v->n->attr;

    if (attr.svd.part == part)
        return formula_cast(&v->f, v->y, v->f.dtype);
    attr.svd.part = part;
    return formula_cast(&v->f, formula_node(&v->f, RLX_OP_svd, v->n->in, 1, &attr), v->f.dtype);
}

/* How vectors turn among each other: gaps (x^T dx - dx^T x). */
static ir_value turned(struct formula *f, ir_value s, ir_value x, ir_value dx)
{
    ir_value w = inner(f, x, dx);

    return MUL(inverse_gaps(f, MUL(s, s)), SUB(w, formula_swap(f, w)));
}

/* What of dx does not lie in the space of x's columns. */
static ir_value outside(struct formula *f, ir_value x, ir_value dx)
{
    return SUB(dx, product(f, x, inner(f, x, dx)));
}

/* u turned diag(s) v^T, and what leaves u's space over s. */
static ir_value through_left(struct formula *f, ir_value u, ir_value s, ir_value vt, ir_value du)
{
    ir_value within = product(f, u, MUL(turned(f, s, u, du), as_row(f, s)));
    ir_value beyond = MUL(outside(f, u, du), as_row(f, finite_inverse(f, s)));

    return product(f, ADD(within, beyond), vt);
}

/* The transposed problem: a^T = v diag(s) u^T. */
static ir_value through_right(struct formula *f, ir_value u, ir_value s, ir_value vt, ir_value dvt)
{
    return formula_swap(
        f, through_left(f, formula_swap(f, vt), s, formula_swap(f, u), formula_swap(f, dvt)));
}

void vjp_svd(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value u = svd_part(v, RLX_SVD_PART_u), s = svd_part(v, RLX_SVD_PART_s);
    ir_value vt = svd_part(v, RLX_SVD_PART_vt), dy = formula_cast(f, v->dy, f->dtype);

    switch (v->n->attr.svd.part) {
    case RLX_SVD_PART_u: vjp_add(v, 0, through_left(f, u, s, vt, dy)); break;
    case RLX_SVD_PART_vt: vjp_add(v, 0, through_right(f, u, s, vt, dy)); break;
    default: vjp_add(v, 0, product(f, MUL(u, dy), vt));
    }
}

/* ---- qr: a = q r ---- */

static ir_value qr_part(struct vjp *v, attr_ENUM part)
{
    union ir_attr attr = v->n->attr;

    if (attr.qr.part == part)
        return formula_cast(&v->f, v->y, v->f.dtype);
    attr.qr.part = part;
    return formula_cast(&v->f, formula_node(&v->f, RLX_OP_qr, v->n->in, 1, &attr), v->f.dtype);
}

/* The lower triangle of m, and again as the upper one. */
static ir_value mirrored(struct formula *f, ir_value m)
{
    return ADD(rule_triangle(f, m, false, 0), formula_swap(f, rule_triangle(f, m, false, -1)));
}

/* Of a matrix with no more columns than rows: (dq + q mirrored(r dr^T - dq^T q)) r^-T. A gradient
 * that is RLX_NO_VALUE is 0. */
static ir_value tall(struct formula *f, ir_value q, ir_value r, ir_value dq, ir_value dr)
{
    ir_value m = RLX_NO_VALUE, sum;

    if (dr != RLX_NO_VALUE)
        m = formula_matmul(f, r, dr, false, true);
    if (dq != RLX_NO_VALUE)
        m = m == RLX_NO_VALUE ? NEG(inner(f, dq, q)) : SUB(m, inner(f, dq, q));
    sum = product(f, q, mirrored(f, m));
    if (dq != RLX_NO_VALUE)
        sum = ADD(sum, dq);
    return formula_swap(f, rule_solve_triangle(f, r, formula_swap(f, sum), false, false));
}

/* Of more columns than rows: a = [x y], r = [s q^T y], and x = q s. */
static ir_value wide(struct vjp *v, ir_value q, ir_value r, ir_value dq, ir_value dr)
{
    struct formula *f = &v->f;
    const struct ir_type *t = vjp_type(v, 0);
    ir_dim m = t->dim[0], rest = t->dim[1] - m; /* both known: see the op's shape rule */
    ir_value s = formula_narrow(f, r, 1, 0, m), ds = RLX_NO_VALUE, dy;

    if (dr == RLX_NO_VALUE) {
        dy = rule_zeros(f, formula_narrow(f, r, 1, m, rest));
    } else {
        ir_value y = formula_narrow(f, rule_operand(v, 0), 1, m, rest);
        ir_value dw = formula_narrow(f, dr, 1, m, rest);
        ds = formula_narrow(f, dr, 1, 0, m);
        dq = formula_matmul(f, y, dw, false, true);
        dy = product(f, q, dw);
    }
    ir_value part[] = {tall(f, q, s, dq, ds), dy};
    return formula_concat(f, part, 2, 1);
}

void vjp_qr(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct ir_type *t = vjp_type(v, 0);
    bool is_q = v->n->attr.qr.part == RLX_QR_PART_q;
    bool is_wide = t->dim[0] != t->dim[1] && t->dim[0] < t->dim[1];
    ir_value q = qr_part(v, RLX_QR_PART_q), r = qr_part(v, RLX_QR_PART_r);
    ir_value dy = formula_cast(f, v->dy, f->dtype);
    ir_value dq = is_q ? dy : RLX_NO_VALUE, dr = is_q ? RLX_NO_VALUE : dy;

    vjp_add(v, 0, is_wide ? wide(v, q, r, dq, dr) : tall(f, q, r, dq, dr));
}

/* ---- eigh: a = v diag(l) v^T, of which the lower triangle is read ---- */

/* Values [.., n] and vectors [.., n, n], as they lie one after the other. */
static void take_apart(struct vjp *v, ir_value x, ir_value *values, ir_value *vectors)
{
    struct formula *f = &v->f;
    const struct ir_type t = *vjp_type(v, 0);
    int32_t axis = t.rank - 2;
    ir_dim n = t.dim[axis];

    x = formula_cast(f, x, f->dtype);
    *values = formula_narrow(f, x, axis, 0, n);
    *vectors = formula_narrow(f, x, axis, n, dim_mul(rule_dims(f), n, n));
    *vectors = formula_reshape(f, *vectors, formula_shape(&t));
}

/* s = v (diag(dl) + gaps v^T dv) v^T; half of s + s^T is what the triangle has. */
void vjp_eigh(struct vjp *v)
{
    struct formula *f = &v->f;
    struct ir_type t = *vjp_type(v, 0);
    ir_value l, x, dl, dx;

    take_apart(v, v->y, &l, &x);
    take_apart(v, v->dy, &dl, &dx);
    t.dtype = f->dtype;
    ir_value one = rule_triangle(f, rule_triangle(f, formula_fill(f, &t, 1), true, 0), false, 0);
    ir_value middle = ADD(MUL(one, as_row(f, dl)), MUL(inverse_gaps(f, l), inner(f, x, dx)));
    ir_value s = formula_matmul(f, product(f, x, middle), x, false, true);
    vjp_add(v, 0, rule_half_lower(f, plus_transposed(f, s)));
}
