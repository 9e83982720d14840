/* expand.c: the expansions that take a few lines each, and what all of them are written with. Each
 * is the op's definition (ops-core.md 10.4, 11.3, 15). */
#include "pass/expand/expand.h"

rlx_status expand_1(struct rebuild *r, rlx_op op, ir_value a, ir_value *out)
{
    return rebuild_add(r, op, &a, 1, NULL, out);
}

rlx_status expand_2(struct rebuild *r, rlx_op op, ir_value a, ir_value b, ir_value *out)
{
    const ir_value in[] = {a, b};
    return rebuild_add(r, op, in, 2, NULL, out);
}

rlx_status expand_narrow(struct rebuild *r, ir_value x, int64_t axis, ir_dim start, ir_dim len,
                         ir_value *out)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_narrow, &attr);
    attr.narrow.axis = axis;
    attr.narrow.start = start;
    attr.narrow.len = len;
    return rebuild_add(r, RLX_OP_narrow, &x, 1, &attr, out);
}

rlx_status expand_reshape(struct rebuild *r, ir_value x, rlx_list shape, ir_value *out)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape = shape;
    return rebuild_add(r, RLX_OP_reshape, &x, 1, &attr, out);
}

rlx_status expand_transpose(struct rebuild *r, ir_value x, rlx_list perm, ir_value *out)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_transpose, &attr);
    attr.transpose.perm = perm;
    return rebuild_add(r, RLX_OP_transpose, &x, 1, &attr, out);
}

rlx_status expand_cast(struct rebuild *r, ir_value x, rlx_dtype to, ir_value *out)
{
    union ir_attr attr;

    *out = x;
    if (expand_type(r, x)->dtype == to)
        return RLX_OK;
    attr_defaults(RLX_OP_cast, &attr);
    attr.cast.to = to;
    return rebuild_add(r, RLX_OP_cast, &x, 1, &attr, out);
}

rlx_status expand_activation(struct rebuild *r, rlx_op activation, ir_value x, ir_value *out)
{
    *out = x;
    return activation == RLX_OP_none ? RLX_OK : expand_1(r, activation, x, out);
}

rlx_status expand_reshape_to(struct rebuild *r, ir_value x, rlx_list shape, ir_value *out)
{
    const struct ir_type *t = expand_type(r, x);
    bool same = t->rank == shape.count;

    for (int32_t i = 0; same && i < shape.count; i++)
        same = t->dim[i] == shape.at[i];
    *out = x;
    return same ? RLX_OK : expand_reshape(r, x, shape, out);
}

rlx_status expand_to_shape(struct rebuild *r, ir_value x, rlx_list shape, ir_value *out)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_expand, &attr);
    attr.expand.shape = shape;
    return rebuild_add(r, RLX_OP_expand, &x, 1, &attr, out);
}

/* ---- one op each ---- */

/* Halves are f32 on the way: where the two products nearly cancel, what either lost by rounding
 * would be most of the result. */
rlx_status expand_lora_matmul(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out)
{
    const struct ir_type t = *expand_type(r, in[0]);
    struct formula f = expand_formula(r, n->type.dtype);
    ir_value x = in[0], w[3], base, update;

    if (t.rank == 1) /* one row */
        TRY(expand_reshape(r, x, rlx_list_of(2, (const int64_t[]){1, t.dim[0]}), &x));
    x = formula_cast(&f, x, f.dtype);
    for (int i = 0; i < 3; i++)
        w[i] = formula_cast(&f, in[i + 1], f.dtype);
    base = formula_2(&f, RLX_OP_matmul, x, w[0]);
    update = formula_2(&f, RLX_OP_matmul, formula_2(&f, RLX_OP_matmul, x, w[1]), w[2]);
    update =
        formula_2(&f, RLX_OP_mul, update, formula_number(&f, (double)n->attr.lora_matmul.scale));
    *out = formula_cast(&f, formula_2(&f, RLX_OP_add, base, update), n->type.dtype);
    TRY(f.status);
    return expand_reshape_to(r, *out, rlx_list_of(n->type.rank, n->type.dim), out);
}

rlx_status expand_matmul_bias_act(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                  ir_value *out)
{
    const struct attr_fused_matmul_bias_act *a = &n->attr.fused_matmul_bias_act;
    union ir_attr attr;
    ir_value y;

    attr_defaults(RLX_OP_matmul, &attr);
    attr.matmul.transpose_a = a->transpose_a;
    attr.matmul.transpose_b = a->transpose_b;
    TRY(rebuild_add(r, RLX_OP_matmul, in, 2, &attr, &y));
    TRY(expand_2(r, RLX_OP_add, y, in[2], &y));
    return expand_activation(r, a->activation, y, out);
}

rlx_status expand_conv_bias_act(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                ir_value *out)
{
    const struct attr_fused_conv_bias_act *a = &n->attr.fused_conv_bias_act;
    union ir_attr attr;
    ir_value y, bias;
    rlx_list shape = {.count = n->type.rank - 1, .at = {n->type.dim[1], 1, 1, 1}};

    attr_defaults(RLX_OP_conv, &attr);
    attr.conv.kernel_size = a->kernel_size;
    attr.conv.stride = a->stride;
    attr.conv.padding = a->padding;
    attr.conv.dilation = a->dilation;
    attr.conv.groups = a->groups;
    TRY(rebuild_add(r, RLX_OP_conv, in, 2, &attr, &y));
    TRY(expand_reshape(r, in[2], shape, &bias));
    TRY(expand_2(r, RLX_OP_add, y, bias, &y));
    if (a->has_residual)
        TRY(expand_2(r, RLX_OP_add, y, in[3], &y));
    return expand_activation(r, a->activation, y, out);
}

rlx_status expand_residual_norm(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                ir_value *out)
{
    const struct attr_fused_residual_norm *a = &n->attr.fused_residual_norm;
    const ir_value *affine = in + (a->has_bias ? 3 : 2);
    ir_value sum;
    union ir_attr attr;
    rlx_op op = n->op == RLX_OP_fused_residual_ln ? RLX_OP_layer_norm : RLX_OP_rms_norm;

    TRY(expand_2(r, RLX_OP_add, in[0], in[1], &sum));
    if (a->has_bias)
        TRY(expand_2(r, RLX_OP_add, sum, in[2], &sum));
    attr_defaults(op, &attr);
    if (op == RLX_OP_layer_norm)
        attr.layer_norm.eps = a->eps;
    else
        attr.rms_norm.eps = a->eps;
    return rebuild_add(r, op, (const ir_value[]){sum, affine[0], affine[1]}, 3, &attr, out);
}

rlx_status expand_swiglu(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out)
{
    const struct ir_type *x = expand_type(r, in[0]);
    int64_t axis = x->rank - 1;
    ir_dim half = n->type.dim[axis];
    ir_value lo, hi, y;
    bool first = n->attr.fused_swiglu.gate_first;

    TRY(expand_narrow(r, in[0], axis, 0, half, &lo));
    TRY(expand_narrow(r, in[0], axis, half, half, &hi));
    TRY(expand_1(r, RLX_OP_silu, first ? lo : hi, &y));
    TRY(expand_2(r, RLX_OP_mul, y, first ? hi : lo, &y));
    return expand_cast(r, y, n->type.dtype, out);
}

rlx_status expand_layer_norm_2d(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                ir_value *out)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_layer_norm, &attr);
    attr.layer_norm.axis = 1;
    attr.layer_norm.eps = n->attr.layer_norm_2d.eps;
    return rebuild_add(r, RLX_OP_layer_norm, in, 3, &attr, out);
}

/* norm(x) (1 + scale) + shift; the plain norm has gamma 1 and beta 0. Halves are f32 on the way: a
 * norm that was rounded would be scaled with what it lost. */
rlx_status expand_ada_layer_norm(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                 ir_value *out)
{
    const struct attr_ada_layer_norm *a = &n->attr.ada_layer_norm;
    rlx_op op = a->norm == RLX_NORM_KIND_rms ? RLX_OP_rms_norm : RLX_OP_layer_norm;
    ir_dim width = n->type.dim[n->type.rank - 1];
    struct formula f = expand_formula(r, n->type.dtype);
    ir_value x = formula_cast(&f, in[0], f.dtype), gamma, beta, normal, factor;
    union ir_attr attr;

    TRY(f.status);
    TRY(rebuild_fill(r, f.dtype, width, 1, &gamma));
    TRY(rebuild_fill(r, f.dtype, width, 0, &beta));
    attr_defaults(op, &attr);
    if (op == RLX_OP_layer_norm)
        attr.layer_norm.eps = a->eps;
    else
        attr.rms_norm.eps = a->eps;
    TRY(rebuild_add(r, op, (const ir_value[]){x, gamma, beta}, 3, &attr, &normal));
    factor = formula_2(&f, RLX_OP_add, formula_cast(&f, in[1], f.dtype), formula_number(&f, 1));
    normal = formula_2(&f, RLX_OP_mul, normal, factor);
    normal = formula_2(&f, RLX_OP_add, normal, formula_cast(&f, in[2], f.dtype));
    *out = formula_cast(&f, normal, n->type.dtype);
    return f.status;
}

rlx_status expand_gated_residual(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                 ir_value *out)
{
    ir_value gated;

    if (rlx_dtype_size(n->type.dtype) == 2) /* rounded once */
        return rebuild_add(r, RLX_OP_fma, (const ir_value[]){in[2], in[1], in[0]}, 3, NULL, out);
    TRY(expand_2(r, RLX_OP_mul, in[2], in[1], &gated));
    return expand_2(r, RLX_OP_add, in[0], gated, out);
}
