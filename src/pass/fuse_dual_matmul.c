/* fuse_dual_matmul.c: the two products of a SwiGLU as one.
 *
 *     %g = matmul %x, %wg
 *     %u = matmul %x, %wu               %w = concat %wu, %wg
 *     %s = silu %g              =>      %p = matmul %x, %w
 *     %y = mul %s, %u                   %y = fused_swiglu %p
 *
 * Needs:  the products share %x and how operands are stored, and nothing else reads them or %s;
 * weights of rank 2 and one shape; what is made fits in a buffer of the device.      Keeps: types,
 * labels. The gate comes second in the packed product, whichever way round the mul has its
 * operands. */
#include "pass/fuse.h"

/* Do the two make one product: the same left side, weights that can stand side by side? */
static bool pair_up(const struct fuse *f, const struct ir_node *gate, const struct ir_node *up)
{
    const struct ir_type *wg = ir_type_of(f->g, gate->in[1]), *wu = ir_type_of(f->g, up->in[1]);
    uint64_t weights = 0, products = 0; /* bytes */

    return gate->in[0] == up->in[0] &&
           gate->attr.matmul.transpose_a == up->attr.matmul.transpose_a &&
           gate->attr.matmul.transpose_b == up->attr.matmul.transpose_b && wg->rank == 2 &&
           type_same(wg, wu) && fuse_fits(f, wg, &weights) && fuse_fits(f, wu, &weights) &&
           fuse_fits(f, &gate->type, &products) && fuse_fits(f, &up->type, &products);
}

static bool match(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    for (int i = 0; n->op == RLX_OP_mul && i < 2; i++) {
        if (!fuse_gate(f, n, i, m))
            continue;
        const struct ir_node *gate = fuse_node(f, m->gone[2]), *up = fuse_node(f, m->gone[1]);
        if (gate->op != RLX_OP_matmul || up->op != RLX_OP_matmul || !pair_up(f, gate, up))
            continue;
        m->op = RLX_OP_fused_swiglu;
        m->attr = gate->attr;
        m->in_count = 3;
        m->in[0] = gate->in[0];
        m->in[1] = up->in[1];
        m->in[2] = gate->in[1];
        return true;
    }
    return false;
}

static rlx_status build(struct rebuild *r, const struct fuse_match *m, const ir_value *in,
                        ir_value *out)
{
    union ir_attr attr;
    ir_value operand[2] = {in[0]}, packed;

    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = m->attr.matmul.transpose_b ? 0 : 1;
    TRY(rebuild_add(r, RLX_OP_concat, in + 1, 2, &attr, &operand[1]));
    TRY(rebuild_add(r, RLX_OP_matmul, operand, 2, &m->attr, &packed));
    return rebuild_add(r, RLX_OP_fused_swiglu, &packed, 1, NULL, out);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match, build};

    if (!fuse_may_concat(p) || !fuse_may(p, FAMILY_fused_swiglu))
        return RLX_OK;
    return fuse_patterns(p, m, &pattern);
}

const struct pass pass_fuse_dual_matmul = {"fuse-dual-matmul",
                                           "the two products of a SwiGLU as one", run};
