/* fuse_residual_norm.c: a residual sum and the norm after it as one op.
 *
 *     %s = add %x, %r
 *     %y = layer_norm %s, %g, %b      =>      %y = fused_residual_ln %x, %r, %g, %b
 *
 * The same for rms_norm, which may have no %b: then it gets zeros.
 * Needs:  nothing but the norm reads %s; %x and %r have its shape; the norm is over the last axis.
 * Keeps: types, labels, eps. */
#include "pass/fuse.h"

/* n is a norm over that axis, op what it becomes after a sum. */
static bool match_norm(const struct fuse *f, const struct ir_node *n, int64_t axis, float eps,
                       rlx_op op, struct fuse_match *m)
{
    const struct ir_node *sum = fuse_node(f, n->in[0]);

    if (sum->op != RLX_OP_add || axis != n->type.rank - 1 || !fuse_sole(f, n->in[0], n) ||
        !type_same(ir_type_of(f->g, sum->in[0]), &n->type) ||
        !type_same(ir_type_of(f->g, sum->in[1]), &n->type))
        return false;
    m->op = op;
    attr_defaults(op, &m->attr);
    m->attr.fused_residual_norm.eps = eps;
    m->gone[m->gone_count++] = n->in[0];
    m->in[m->in_count++] = sum->in[0];
    m->in[m->in_count++] = sum->in[1];
    for (int32_t k = 1; k < n->in_count; k++)
        m->in[m->in_count++] = n->in[k];
    return true;
}

static bool match_layer(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    const struct attr_layer_norm *a = &n->attr.layer_norm;

    return n->op == RLX_OP_layer_norm &&
           match_norm(f, n, a->axis, a->eps, RLX_OP_fused_residual_ln, m);
}

static bool match_rms(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    const struct attr_rms_norm *a = &n->attr.rms_norm;

    return n->op == RLX_OP_rms_norm &&
           match_norm(f, n, a->axis, a->eps, RLX_OP_fused_residual_rms_norm, m);
}

/* A norm without beta gets one of zeros, of gamma's type. */
static rlx_status build(struct rebuild *r, const struct fuse_match *m, const ir_value *in,
                        ir_value *out)
{
    const struct ir_type *gamma = ir_type_of(&r->made, in[2]);
    ir_value operand[4] = {in[0], in[1], in[2], in[3]};

    if (m->in_count == 3)
        TRY(rebuild_fill(r, gamma->dtype, gamma->dim[0], 0, &operand[3]));
    return rebuild_add(r, m->op, operand, 4, &m->attr, out);
}

static rlx_status run_one(struct pass_run *p, struct ir_module *m,
                          const struct fuse_pattern *pattern)
{
    if (p->options->no_residual_fusion || !fuse_may(p, FAMILY_fused_residual_norm))
        return RLX_OK;
    return fuse_patterns(p, m, pattern);
}

static rlx_status run_layer(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match_layer, build};
    return run_one(p, m, &pattern);
}

static rlx_status run_rms(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match_rms, build};
    return run_one(p, m, &pattern);
}

const struct pass pass_fuse_residual_ln = {
    "fuse-residual-ln", "a residual sum with its layer norm as one op", run_layer};
const struct pass pass_fuse_residual_rms = {"fuse-residual-rms",
                                            "a residual sum with its rms norm as one op", run_rms};
