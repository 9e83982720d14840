/* rule_quant.c: quantised values (ops-core.md 19.2). Rounding and saturation pass a gradient
 * straight through; what is scaled has the scale in its gradient. An i8 has its gradient in f32:
 * that of the number it holds. */
#include "autodiff/rule.h"

/* ---- scales of a node ---- */

/* One number per channel of x, ready to broadcast: its scale, floored. */
static ir_value scales(struct vjp *v)
{
    const struct attr_quantize *a = &v->n->attr.quantize;
    struct formula *f = &v->f;
    const float *from = a->scales.ptr;
    float *to = arena_array(&f->g->mod->arena, float, a->scales.len + 1);
    union ir_attr attr;

    if (!to) {
        f->status = diag_no_memory(f->diag, a->scales.len * sizeof *to);
        return RLX_NO_VALUE;
    }
    for (size_t i = 0; i < a->scales.len; i++)
        to[i] = from[i] > 1e-12f ? from[i] : 1e-12f;
    attr_defaults(RLX_OP_const, &attr);
    attr.const_.dtype = RLX_DTYPE_f32;
    attr.const_.data = (struct ir_blob){to, a->scales.len * sizeof *to};
    if (a->axis == RLX_ABSENT)
        return formula_node(f, RLX_OP_const, NULL, 0, &attr);
    attr.const_.shape.count = v->n->type.rank - (int32_t)a->axis;
    for (int32_t i = 1; i < attr.const_.shape.count; i++)
        attr.const_.shape.at[i] = 1;
    attr.const_.shape.at[0] = (int64_t)a->scales.len;
    return formula_node(f, RLX_OP_const, NULL, 0, &attr);
}

void vjp_quantize(struct vjp *v)
{
    struct formula *f = &v->f;

    vjp_add(v, 0,
            formula_2(f, v->n->op == RLX_OP_quantize ? RLX_OP_div : RLX_OP_mul, v->dy, scales(v)));
}

/* ---- products of i8 ---- */

/* Operand i as the f32 it stands for. */
static ir_value less_zero(struct vjp *v, int32_t i, int64_t zero)
{
    struct formula *f = &v->f;
    ir_value x = formula_cast(f, v->n->in[i], RLX_DTYPE_f32);

    return zero == 0 ? x : SUB(x, NUM((double)zero));
}

void vjp_qmatmul(struct vjp *v)
{
    const struct attr_qmatmul *a = &v->n->attr.qmatmul;
    struct formula *f = &v->f;
    const struct ir_type x = *vjp_type(v, 0);
    ir_value dy = rule_rows(f, MUL(v->dy, NUM((double)a->mult)));

    if (vjp_wanted(v, 0))
        vjp_add(v, 0,
                formula_reshape(f, formula_matmul(f, dy, less_zero(v, 1, a->w_zp), false, true),
                                formula_shape(&x)));
    if (vjp_wanted(v, 1))
        vjp_add(v, 1, formula_matmul(f, rule_rows(f, less_zero(v, 0, a->x_zp)), dy, true, false));
}

void vjp_qconv_2d(struct vjp *v)
{
    const struct attr_qconv_2d *a = &v->n->attr.qconv_2d;
    struct formula *f = &v->f;
    ir_value dy = MUL(v->dy, NUM((double)a->mult));
    union ir_attr attr;

    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {dy, less_zero(v, 1, a->w_zp)};
        attr_defaults(RLX_OP_conv_backward_input, &attr);
        attr.conv_backward_input = (struct attr_conv_backward_input){
            a->kernel_size, a->stride, a->padding,
            a->dilation,    a->groups, formula_shape(vjp_type(v, 0))};
        vjp_add(v, 0, formula_node(f, RLX_OP_conv_backward_input, in, 2, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {less_zero(v, 0, a->x_zp), dy};
        attr_defaults(RLX_OP_conv_backward_weight, &attr);
        attr.conv_backward_weight = (struct attr_conv_backward_weight){
            a->kernel_size, a->stride, a->padding, a->dilation, a->groups};
        vjp_add(v, 1, formula_node(f, RLX_OP_conv_backward_weight, in, 2, &attr));
    }
}

/* ---- both at once ---- */

/* A state of scales is read after the node that writes it, with the values that the node used. */
void vjp_fake_quantize(struct vjp *v)
{
    const struct attr_fake_quantize *a = &v->n->attr.fake_quantize;
    int32_t count = v->n->in_count;
    const ir_value in[] = {v->n->in[0], count == 2 ? v->n->in[1] : v->dy, v->dy};
    union ir_attr attr;

    attr_defaults(RLX_OP_fake_quantize_backward, &attr);
    attr.fake_quantize_backward.bits = a->bits;
    attr.fake_quantize_backward.axis = a->axis;
    attr.fake_quantize_backward.ste = a->ste;
    attr.fake_quantize_backward.scale_mode = a->scale_mode;
    if (vjp_wanted(v, 0))
        vjp_add(v, 0, formula_node(&v->f, RLX_OP_fake_quantize_backward, in, count + 1, &attr));
}

void vjp_fake_quantize_lsq(struct vjp *v)
{
    static const rlx_op op[] = {RLX_OP_fake_quantize_lsq_backward_x,
                                RLX_OP_fake_quantize_lsq_backward_scale};
    const ir_value in[] = {v->n->in[0], v->n->in[1], v->dy};
    union ir_attr attr;

    attr_defaults(op[0], &attr);
    attr.fake_quantize_lsq_backward.bits = v->n->attr.fake_quantize_lsq.bits;
    attr.fake_quantize_lsq_backward.axis = v->n->attr.fake_quantize_lsq.axis;
    for (int32_t i = 0; i < 2; i++)
        if (vjp_wanted(v, i))
            vjp_add(v, i, formula_node(&v->f, op[i], in, 3, &attr));
}

/* ---- their gradients ---- */

static double largest(int64_t bits)
{
    return (double)((INT64_C(1) << (bits - 1)) - 1);
}

/* The straight-through factor is held: it has no slope itself, or it is an estimate, whose slope is
 * that of nothing. */
rlx_status vjp_fake_quantize_backward_check(const struct ir_graph *g, const struct ir_node *n,
                                            const bool *wanted, struct diag *d)
{
    int32_t ste = n->attr.fake_quantize_backward.ste;

    (void)g;
    if (!wanted[0] || ste == RLX_STE_KIND_identity || ste == RLX_STE_KIND_clipped)
        return RLX_OK;
    return diag_fail(d, RLX_ERROR_NO_RULE,
                     "fake_quantize with ste=%s has no second derivative: its first one is an "
                     "estimate",
                     enum_word("ste_kind", ste));
}

void vjp_fake_quantize_backward(struct vjp *v)
{
    int32_t count = v->n->in_count;
    const ir_value in[] = {v->n->in[0], count == 3 ? v->n->in[1] : v->dy, v->dy};

    if (vjp_wanted(v, count - 1))
        vjp_add(v, count - 1,
                formula_node(&v->f, RLX_OP_fake_quantize_backward, in, count, &v->n->attr));
}

/* x / s with one scale per channel; scales below the floor count as that. */
static ir_value scaled(struct formula *f, const struct ir_node *n, const struct ir_type *t)
{
    int64_t axis = n->attr.fake_quantize_lsq_backward.axis;
    rlx_list shape = {.count = axis == RLX_ABSENT ? 0 : t->rank - (int32_t)axis,
                      .at = {1, 1, 1, 1, 1, 1, 1, 1}};
    ir_value s = formula_cast(f, n->in[1], f->dtype);

    if (axis != RLX_ABSENT)
        shape.at[0] = t->dim[axis];
    s = formula_reshape(f, formula_2(f, RLX_OP_max, s, NUM(1e-12)), shape);
    return DIV(formula_cast(f, n->in[0], f->dtype), s);
}

/* For x: dy inside the range. For the scale: the sum of dy (round(z) - z) inside it, and of dy
 * times its end outside; rounding passes straight through, so that z itself has no slope there. */
ir_value define_fake_quantize_lsq_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_fake_quantize_lsq_backward *a = &n->attr.fake_quantize_lsq_backward;
    const struct ir_type t = *ir_type_of(f->g, n->in[0]), scale = *ir_type_of(f->g, n->in[1]);
    ir_value dy = formula_cast(f, n->in[2], f->dtype), z = scaled(f, n, &t);
    ir_value most = NUM(largest(a->bits)), least = NUM(-largest(a->bits));
    ir_value above = formula_2(f, RLX_OP_gt, z, most), below = formula_2(f, RLX_OP_lt, z, least);
    rlx_list axes = {0};

    if (n->op == RLX_OP_fake_quantize_lsq_backward_x) {
        ir_value inside = formula_2(f, RLX_OP_le, formula_1(f, RLX_OP_abs, z), most);
        return formula_where(f, inside, dy, NUM(0));
    }
    ir_value slope = SUB(formula_1(f, RLX_OP_round, z), z);
    slope = formula_where(f, above, most, formula_where(f, below, least, slope));
    for (int32_t i = 0; i < t.rank; i++)
        if (i != a->axis)
            axes.at[axes.count++] = i;
    ir_value sum = formula_reduce(f, RLX_OP_reduce_sum, MUL(dy, slope), axes, false);
    return formula_reshape(f, sum, formula_shape(&scale));
}
