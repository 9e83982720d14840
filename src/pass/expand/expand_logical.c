/* expand_logical.c: common bodies of ops that most devices have kernels for: group norm, nearest
 * resize, and reductions over any axes for devices that reduce the last one only. */
#include "pass/expand/expand.h"

static ir_dim product(const struct rebuild *r, const struct ir_type *t, int32_t from)
{
    ir_dim p = 1;

    for (int32_t i = from; i < t->rank; i++)
        p = dim_mul(r->old->mod->dims, p, t->dim[i]);
    return p;
}

/* (x - mean) / sqrt(var + eps) over the last axis; the variance is the mean of squared deviations.
 */
static ir_value normalise(struct formula *f, ir_value x, double eps)
{
    const rlx_list last = rlx_list_of(1, (const int64_t[]){-1});
    ir_value mean = formula_reduce(f, RLX_OP_reduce_mean, x, last, true);
    ir_value apart = formula_2(f, RLX_OP_sub, x, mean);
    ir_value square = formula_2(f, RLX_OP_mul, apart, apart);
    ir_value var = formula_reduce(f, RLX_OP_reduce_mean, square, last, true);

    var = formula_2(f, RLX_OP_add, var, formula_number(f, eps));
    return formula_2(f, RLX_OP_mul, apart, formula_1(f, RLX_OP_rsqrt, var));
}

/* [N, C, ...] -> [N, G, C/G ...], normalised along the last axis, and back; then the affine part,
 * one number per channel. */
rlx_status expand_group_norm(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                             ir_value *out)
{
    const struct ir_type t = n->type;
    struct formula f = expand_formula(r, t.dtype);
    int64_t groups = n->attr.group_norm.num_groups;
    ir_dim each = dim_exact_div(r->old->mod->dims, product(r, &t, 1), groups);
    rlx_list channels = {.count = t.rank - 1, .at = {t.dim[1], 1, 1, 1, 1, 1, 1}};
    ir_value x, y, gamma, beta;

    if (each == RLX_DIM_FAILED)
        return diag_fail(r->diag, RLX_ERROR_UNSUPPORTED,
                         "group_norm: the size of a group cannot be written as an expression");
    TRY(expand_cast(r, in[0], f.dtype, &x));
    TRY(expand_reshape(r, x, rlx_list_of(3, (const int64_t[]){t.dim[0], groups, each}), &x));
    y = normalise(&f, x, (double)n->attr.group_norm.eps);
    TRY(f.status);
    TRY(expand_reshape(r, y, rlx_list_of(t.rank, t.dim), &y));
    TRY(expand_reshape_to(r, in[1], channels, &gamma));
    TRY(expand_reshape_to(r, in[2], channels, &beta));
    y = formula_2(&f, RLX_OP_mul, y, formula_cast(&f, gamma, f.dtype));
    y = formula_2(&f, RLX_OP_add, y, formula_cast(&f, beta, f.dtype));
    *out = formula_cast(&f, y, t.dtype);
    return f.status;
}

/* [N, C, H, W] -> [N, C, H, 1, W, 1], each of the ones repeated twice -> [N, C, 2H, 2W] */
rlx_status expand_resize_nearest_2x(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                    ir_value *out)
{
    const struct ir_type x = *expand_type(r, in[0]);
    rlx_list split = {.count = 6, .at = {x.dim[0], x.dim[1], x.dim[2], 1, x.dim[3], 1}};
    rlx_list twice = {.count = 6, .at = {x.dim[0], x.dim[1], x.dim[2], 2, x.dim[3], 2}};

    TRY(expand_reshape(r, in[0], split, out));
    TRY(expand_to_shape(r, *out, twice, out));
    return expand_reshape(r, *out, rlx_list_of(n->type.rank, n->type.dim), out);
}

/* The axes that go are moved to the end and become one. */
rlx_status expand_reduce(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out)
{
    const struct ir_type x = *expand_type(r, in[0]);
    const rlx_list *axes = &n->attr.reduce.axes; /* in order */
    rlx_list perm = {0}, shape = {0};
    ir_dim together = 1;
    bool in_place = true;
    union ir_attr attr;

    for (int32_t i = 0, k = 0; i < x.rank; i++) {
        if (k < axes->count && axes->at[k] == i) {
            together = dim_mul(r->old->mod->dims, together, x.dim[i]);
            k++;
            continue;
        }
        perm.at[perm.count++] = i;
        shape.at[shape.count++] = x.dim[i];
    }
    for (int32_t k = 0; k < axes->count; k++)
        perm.at[perm.count++] = axes->at[k];
    for (int32_t i = 0; i < perm.count; i++)
        in_place = in_place && perm.at[i] == i;
    if (shape.count == RLX_MAX_RANK)
        return diag_fail(r->diag, RLX_ERROR_UNSUPPORTED,
                         "%s: over no axis of a tensor of the highest rank", op_info(n->op)->name);
    shape.at[shape.count++] = together;
    *out = in[0];
    if (!in_place)
        TRY(expand_transpose(r, *out, perm, out));
    TRY(expand_reshape_to(r, *out, shape, out));
    attr_defaults(n->op, &attr);
    attr.reduce.axes = rlx_list_of(1, (const int64_t[]){-1});
    TRY(rebuild_add(r, n->op, out, 1, &attr, out));
    return expand_reshape_to(r, *out, rlx_list_of(n->type.rank, n->type.dim), out);
}
