/* rule_elementwise.c: element by element: arithmetic, functions of one number, choices, casts
 * (ops-core.md 2.3 and 5). */
#include <math.h>

#include "autodiff/rule.h"

/* G where this side is the one taken, half of it where both are equal, else 0. */
static ir_value share(struct vjp *v, rlx_op taken, ir_value a, ir_value b)
{
    struct formula *f = &v->f;
    ir_value half = formula_number_of(f, v->n->type.dtype, 0.5);
    ir_value zero = formula_number_of(f, v->n->type.dtype, 0);
    ir_value equal = formula_where(f, formula_2(f, RLX_OP_eq, a, b), MUL(v->dy, half), zero);

    return formula_where(f, formula_2(f, taken, a, b), v->dy, equal);
}

static void binary_extreme(struct vjp *v)
{
    rlx_op taken = v->n->op == RLX_OP_max ? RLX_OP_gt : RLX_OP_lt;

    for (int32_t i = 0; i < 2; i++)
        if (vjp_wanted(v, i))
            vjp_add(v, i, share(v, taken, v->n->in[i], v->n->in[1 - i]));
}

/* Both factors are infinite or NaN in places where the gradient is 0; the product must not be. */
static void binary_pow(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value a = formula_cast(f, v->n->in[0], f->dtype), b = formula_cast(f, v->n->in[1], f->dtype);
    ir_value dy = formula_cast(f, v->dy, f->dtype), zero = NUM(0);

    if (vjp_wanted(v, 0)) {
        ir_value less = formula_2(f, RLX_OP_pow, a, formula_2(f, RLX_OP_sub, b, NUM(1)));
        ir_value flat = formula_2(f, RLX_OP_eq, b, zero);
        vjp_add(v, 0, formula_where(f, flat, zero, MUL(dy, MUL(b, less))));
    }
    if (vjp_wanted(v, 1)) {
        ir_value y = formula_cast(f, v->y, f->dtype);
        ir_value slope = MUL(dy, MUL(y, formula_1(f, RLX_OP_log, a)));
        ir_value at_zero = formula_where(f, formula_2(f, RLX_OP_ge, b, zero), zero, slope);
        vjp_add(v, 1, formula_where(f, formula_2(f, RLX_OP_eq, a, zero), at_zero, slope));
    }
}

static void binary_atan2(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value a = v->n->in[0], b = v->n->in[1];
    ir_value each = DIV(v->dy, ADD(MUL(a, a), MUL(b, b)));

    vjp_add(v, 0, MUL(each, b));
    vjp_add(v, 1, NEG(MUL(each, a)));
}

/* a - b trunc(a/b): the quotient, cut, is constant between its jumps. */
static void binary_mod(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value a = v->n->in[0], b = v->n->in[1];

    vjp_add(v, 0, v->dy);
    if (vjp_wanted(v, 1)) /* (y - a) / b is -trunc(a/b), up to rounding */
        vjp_add(v, 1,
                MUL(v->dy, formula_1(f, RLX_OP_round, DIV(formula_2(f, RLX_OP_sub, v->y, a), b))));
}

static void binary_add(struct vjp *v)
{
    vjp_add(v, 0, v->dy);
    vjp_add(v, 1, v->dy);
}

static void binary_sub(struct vjp *v)
{
    struct formula *f = &v->f;

    vjp_add(v, 0, v->dy);
    if (vjp_wanted(v, 1))
        vjp_add(v, 1, NEG(v->dy));
}

static void binary_mul(struct vjp *v)
{
    struct formula *f = &v->f;

    for (int32_t i = 0; i < 2; i++)
        if (vjp_wanted(v, i))
            vjp_add(v, i, MUL(v->dy, rule_conjugate(f, v->n->in[1 - i])));
}

static void binary_div(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value b = v->n->in[1], dy = v->dy;

    if (vjp_wanted(v, 0))
        vjp_add(v, 0, DIV(dy, rule_conjugate(f, b)));
    if (vjp_wanted(v, 1))
        vjp_add(v, 1, NEG(DIV(MUL(dy, rule_conjugate(f, v->y)), rule_conjugate(f, b))));
}

void vjp_binary(struct vjp *v)
{
    static void (*const rule[RLX_OP_count])(struct vjp * v) = {
        [RLX_OP_add] = binary_add, [RLX_OP_sub] = binary_sub,     [RLX_OP_mul] = binary_mul,
        [RLX_OP_div] = binary_div, [RLX_OP_max] = binary_extreme, [RLX_OP_min] = binary_extreme,
        [RLX_OP_pow] = binary_pow, [RLX_OP_mod] = binary_mod,     [RLX_OP_atan2] = binary_atan2,
    };

    if (rule[v->n->op]) /* bits have no gradient */
        rule[v->n->op](v);
}

/* Steps have no slope; rounding passes it through. The others are one op that takes x and G. */
void vjp_unary(struct vjp *v)
{
    struct formula *f = &v->f;
    const ir_value in[] = {v->n->in[0], v->dy};
    union ir_attr attr;

    switch (v->n->op) {
    case RLX_OP_floor:
    case RLX_OP_ceil:
    case RLX_OP_sign: break;
    case RLX_OP_round: vjp_add(v, 0, v->dy); break;
    case RLX_OP_neg: vjp_add(v, 0, NEG(v->dy)); break;
    case RLX_OP_relu: vjp_add(v, 0, formula_2(f, RLX_OP_relu_backward, in[0], in[1])); break;
    default:
        attr_defaults(RLX_OP_activation_backward, &attr);
        attr.activation_backward.kind = v->n->op;
        vjp_add(v, 0, formula_node(f, RLX_OP_activation_backward, in, 2, &attr));
    }
}

/* ---- choices and conversions ---- */

void vjp_cast(struct vjp *v)
{
    bool real = dtype_is(vjp_type(v, 0)->dtype, CLASS_F);
    bool widened = real && v->n->type.dtype == RLX_DTYPE_c64;

    vjp_add(v, 0, widened ? formula_1(&v->f, RLX_OP_complex_real, v->dy) : v->dy);
}

void vjp_complex_real(struct vjp *v)
{
    vjp_add(v, 0, v->dy); /* the cast to c64 is all that is needed */
}

/* Selected, not multiplied by a mask: what was not taken may be NaN. */
void vjp_where(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value zero = formula_number_of(f, v->n->type.dtype, 0), cond = v->n->in[0];

    if (vjp_wanted(v, 1))
        vjp_add(v, 1, formula_where(f, cond, v->dy, zero));
    if (vjp_wanted(v, 2))
        vjp_add(v, 2, formula_where(f, cond, zero, v->dy));
}

void vjp_clamp(struct vjp *v)
{
    const struct attr_clamp *a = &v->n->attr.clamp;
    struct formula *f = &v->f;
    ir_value zero = formula_number_of(f, v->n->type.dtype, 0), dx = v->dy;
    ir_value x = formula_cast(f, v->n->in[0], f->dtype);

    if (!isinf(a->min))
        dx = formula_where(f, formula_2(f, RLX_OP_ge, x, NUM(a->min)), dx, zero);
    if (!isinf(a->max))
        dx = formula_where(f, formula_2(f, RLX_OP_le, x, NUM(a->max)), dx, zero);
    vjp_add(v, 0, dx);
}

void vjp_fma(struct vjp *v)
{
    struct formula *f = &v->f;

    for (int32_t i = 0; i < 2; i++)
        if (vjp_wanted(v, i))
            vjp_add(v, i, MUL(v->dy, v->n->in[1 - i]));
    vjp_add(v, 2, v->dy);
}

void vjp_complex_norm_sq(struct vjp *v)
{
    struct formula *f = &v->f;
    ir_value twice = formula_cast(f, ADD(v->dy, v->dy), RLX_DTYPE_c64);

    vjp_add(v, 0, MUL(twice, v->n->in[0]));
}

void vjp_conjugate(struct vjp *v)
{
    vjp_add(v, 0, formula_1(&v->f, RLX_OP_conjugate, v->dy));
}
