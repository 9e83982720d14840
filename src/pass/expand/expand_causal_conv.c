/* expand_causal_conv.c: causal_conv as a sum over its taps (ops-special.md 3.4), for devices
 * without kernels of their own and for differentiation.
 *
 *     x with K-1 rows of zeros before it; tap k times the rows from row k on */
#include "pass/expand/expand.h"

/* x [b,s,c] with rows of zeros before it. */
static ir_value after_zeros(struct formula *f, ir_value x, int64_t rows)
{
    union ir_attr attr;

    if (rows == 0)
        return x;
    attr_defaults(RLX_OP_pad, &attr);
    attr.pad.before = RLX_LIST(0, rows, 0);
    attr.pad.after = RLX_LIST(0, 0, 0);
    return formula_node(f, RLX_OP_pad, &x, 1, &attr);
}

rlx_status expand_causal_conv(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out)
{
    struct formula whole = expand_formula(r, n->type.dtype), *f = &whole;
    const struct ir_type w_type = *expand_type(r, in[1]);
    ir_dim steps = n->type.dim[1], channels = n->type.dim[2];
    int64_t taps = w_type.dim[1];
    ir_value w = formula_cast(f, in[1], f->dtype), y = RLX_NO_VALUE;
    ir_value x = after_zeros(f, formula_cast(f, in[0], f->dtype), taps - 1);

    if (n->in_count > 2)
        y = formula_cast(f, in[2], f->dtype);
    for (int64_t k = 0; k < taps; k++) {
        ir_value tap = formula_reshape(f, formula_narrow(f, w, 1, k, 1), RLX_LIST(channels));
        ir_value part = formula_2(f, RLX_OP_mul, formula_narrow(f, x, 1, k, steps), tap);
        y = y == RLX_NO_VALUE ? part : formula_2(f, RLX_OP_add, part, y);
    }
    if (n->attr.causal_conv.activation != RLX_OP_none)
        y = formula_1(f, n->attr.causal_conv.activation, y);
    *out = formula_cast(f, y, n->type.dtype);
    return f->status;
}
