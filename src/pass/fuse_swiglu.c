/* fuse_swiglu.c: the two halves of a packed value, gated, as one op.
 *
 *     %u = narrow %c axis=-1 start=0 len=n
 *     %g = narrow %c axis=-1 start=n len=n
 *     %s = silu %g                               =>      %y = fused_swiglu %c
 *     %y = mul %u, %s
 *
 * With the halves the other way round: gate_first=true.
 * Needs:  nothing else reads the halves or %s; together they are all of %c's last axis.
 * Keeps: types, labels. */
#include "pass/fuse.h"

/* Is n the half of its operand's last axis that begins at `start`? */
static bool is_half(const struct fuse *f, const struct ir_node *n, ir_dim start, ir_dim len)
{
    const struct attr_narrow *a = &n->attr.narrow;

    return n->op == RLX_OP_narrow && a->axis == ir_type_of(f->g, n->in[0])->rank - 1 &&
           a->start == start && a->len == len;
}

/* Are lo and hi the two halves of one value? */
static bool are_halves(const struct fuse *f, const struct ir_node *lo, const struct ir_node *hi)
{
    const struct ir_type *whole;
    ir_dim len;

    if (lo->op != RLX_OP_narrow || hi->op != RLX_OP_narrow || lo->in[0] != hi->in[0])
        return false;
    len = lo->attr.narrow.len;
    whole = ir_type_of(f->g, lo->in[0]);
    return is_half(f, lo, 0, len) && is_half(f, hi, len, len) &&
           whole->dim[whole->rank - 1] == dim_mul(f->g->mod->dims, 2, len);
}

static bool match(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    for (int i = 0; n->op == RLX_OP_mul && i < 2; i++) {
        if (!fuse_gate(f, n, i, m))
            continue;
        const struct ir_node *gate = fuse_node(f, m->gone[2]), *up = fuse_node(f, m->gone[1]);
        bool gate_first = are_halves(f, gate, up);
        if (!gate_first && !are_halves(f, up, gate))
            continue;
        m->op = RLX_OP_fused_swiglu;
        attr_defaults(m->op, &m->attr);
        m->attr.fused_swiglu.gate_first = gate_first;
        m->in_count = 1;
        m->in[0] = gate->in[0];
        return true;
    }
    return false;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match, NULL};

    if (!fuse_may(p, FAMILY_fused_swiglu))
        return RLX_OK;
    return fuse_patterns(p, m, &pattern);
}

const struct pass pass_fuse_swiglu = {"fuse-swiglu", "a gated pair of halves as one op", run};
