/* simplify.c: ops that do nothing, and pairs of ops that are one.
 *
 *     %y = mul %x, 1                       =>      uses of %y become uses of %x
 *     %t = transpose %x perm=[1,2,0]       =>      %y = transpose %x perm=[2,0,1]
 *     %y = transpose %t perm=[1,2,0]
 *
 * Needs:  nothing.      Keeps: types, order. Leaves: the nodes; dce takes them.
 * Only what is right for every number: x + 0 makes +0 of -0, so floats lose x + (-0) and x - 0; and
 * x * 0 is not 0 where x is NaN or infinite, so it stays. Where a state is read decides what is
 * read: nothing here lets a later node read a written state instead of an earlier one. */
#include <string.h>

#include "base/half.h"
#include "pass/facts.h"
#include "pass/pass.h"

/* ---- constants that change nothing ---- */

enum neutral { NEUTRAL_ZERO, NEUTRAL_MINUS_ZERO, NEUTRAL_ONE };

/* One element of the dtype; false: the dtype has none. */
static bool neutral_bytes(rlx_dtype dtype, enum neutral what, uint8_t out[8])
{
    double v = what == NEUTRAL_ONE ? 1 : what == NEUTRAL_MINUS_ZERO ? -0.0 : 0;

    memset(out, 0, 8);
    switch (dtype) {
    case RLX_DTYPE_f64: memcpy(out, &v, 8); return true;
    case RLX_DTYPE_f32: memcpy(out, &(float){(float)v}, 4); return true;
    case RLX_DTYPE_f16: memcpy(out, &(uint16_t){f64_to_f16(v)}, 2); return true;
    case RLX_DTYPE_bf16: memcpy(out, &(uint16_t){f64_to_bf16(v)}, 2); return true;
    default: break;
    }
    out[0] = what == NEUTRAL_ONE; /* little-endian integers */
    return dtype_is(dtype, CLASS_INT);
}

/* The constant that v repeats, if that is all it does. */
static const struct ir_node *repeated_const(const struct ir_graph *g, ir_value v)
{
    const struct ir_node *n = ir_node(g, v);

    while (n->op == RLX_OP_expand || n->op == RLX_OP_reshape)
        n = ir_node(g, n->in[0]);
    return n->op == RLX_OP_const ? n : NULL;
}

static bool is_all(const struct ir_graph *g, ir_value v, enum neutral what)
{
    const struct ir_node *c = repeated_const(g, v);
    uint8_t one[8];

    if (!c || !neutral_bytes(c->type.dtype, what, one))
        return false;
    const struct ir_blob *data = &c->attr.const_.data;
    size_t size = rlx_dtype_size(c->type.dtype);
    for (size_t at = 0; at + size <= data->len; at += size)
        if (memcmp((const uint8_t *)data->ptr + at, one, size) != 0)
            return false;
    return true;
}

/* x op c with nothing to do: x, which is the operand that is not the constant. */
static ir_value without_neutral(const struct ir_graph *g, const struct ir_node *n)
{
    enum neutral what;
    bool is_float = dtype_is(n->type.dtype, CLASS_F);
    bool either = n->op == RLX_OP_add || n->op == RLX_OP_mul;

    switch (n->op) {
    case RLX_OP_add: what = is_float ? NEUTRAL_MINUS_ZERO : NEUTRAL_ZERO; break;
    case RLX_OP_sub: what = NEUTRAL_ZERO; break;
    case RLX_OP_mul:
    case RLX_OP_div: what = NEUTRAL_ONE; break;
    default: return RLX_NO_VALUE;
    }
    if (is_all(g, n->in[1], what))
        return n->in[0];
    return either && is_all(g, n->in[0], what) ? n->in[1] : RLX_NO_VALUE;
}

/* ---- pairs ---- */

/* Does every value of the first type have its like in the second? */
static bool cast_is_lossless(rlx_dtype from, rlx_dtype to)
{
    size_t a = rlx_dtype_size(from), b = rlx_dtype_size(to);
    bool whole = dtype_is(from, CLASS_INT);

    if (from == RLX_DTYPE_bool)
        return dtype_is(to, CLASS_REAL);
    if (dtype_is(from, CLASS_F))
        return dtype_is(to, CLASS_F) && b > a; /* neither f16 nor bf16 contains the other */
    if (whole && dtype_is(to, CLASS_F))
        return b > a; /* 8 bits in 16, 16 in 32, 32 in 64: each significand is wide enough */
    if (whole && dtype_is(to, CLASS_I))
        return b > a; /* a sign needs a bit, which unsigned types have to spare then */
    return dtype_is(from, CLASS_U) && dtype_is(to, CLASS_U) && b > a;
}

static bool perm_is_identity(const rlx_list *perm)
{
    for (int32_t i = 0; i < perm->count; i++)
        if (perm->at[i] != i)
            return false;
    return true;
}

/* Makes the node read what its operand reads, where both together are one such op. */
static bool join_with_operand(const struct ir_graph *g, struct ir_node *n)
{
    const struct ir_node *inner = n->in_count ? ir_node(g, n->in[0]) : NULL;

    if (!inner || inner->op != n->op || value_is_written_state(g, inner->in[0]))
        return false;
    switch (n->op) {
    case RLX_OP_reshape:
    case RLX_OP_bitcast: break;
    case RLX_OP_transpose:
        for (int32_t i = 0; i < n->attr.transpose.perm.count; i++)
            n->attr.transpose.perm.at[i] =
                inner->attr.transpose.perm.at[n->attr.transpose.perm.at[i]];
        break;
    case RLX_OP_cast:
        if (!cast_is_lossless(ir_type_of(g, inner->in[0])->dtype, inner->type.dtype))
            return false;
        break;
    default: return false;
    }
    n->in[0] = inner->in[0];
    return true;
}

/* ---- ops that do nothing ---- */

static bool does_nothing(const struct ir_node *n)
{
    switch (n->op) {
    case RLX_OP_reshape:
    case RLX_OP_cast:
    case RLX_OP_bitcast:
    case RLX_OP_expand: return true; /* as the type is the same */
    case RLX_OP_transpose: return perm_is_identity(&n->attr.transpose.perm);
    case RLX_OP_narrow: return n->attr.narrow.start == 0;
    case RLX_OP_slice: return n->attr.slice.start == 0 && n->attr.slice.step == 1;
    default: return false;
    }
}

/* The earlier value that this node is equal to. */
static ir_value same_as(const struct ir_graph *g, const struct ir_node *n)
{
    ir_value x = RLX_NO_VALUE;

    if (does_nothing(n))
        x = n->in[0];
    else if (n->op == RLX_OP_neg && ir_node(g, n->in[0])->op == RLX_OP_neg)
        x = ir_node(g, n->in[0])->in[0];
    else if (op_info(n->op)->family == FAMILY_binary)
        x = without_neutral(g, n);
    if (x == RLX_NO_VALUE || !type_same(&n->type, ir_type_of(g, x)) || value_is_written_state(g, x))
        return RLX_NO_VALUE;
    return x;
}

static rlx_status simplify(struct pass_run *p, struct ir_graph *g)
{
    struct forward f;

    TRY(forward_begin(&f, g, p->diag));
    IR_EACH(n, g) {
        forward_operands(&f, n);
        p->changes += join_with_operand(g, n);
        ir_value x = same_as(g, n);
        if (x == RLX_NO_VALUE)
            continue;
        forward_to(&f, n, x);
        p->changes++;
    }
    forward_end(&f);
    return RLX_OK;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    for (size_t i = 0; i < m->graph.len; i++)
        TRY(simplify(p, m->graph.at[i]));
    return RLX_OK;
}

const struct pass pass_simplify = {"simplify", "drop ops that do nothing, join pairs", run};
