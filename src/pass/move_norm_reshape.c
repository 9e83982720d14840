/* move_norm_reshape.c: flatten before an RMS norm, not after it.
 *
 *     %n = rms_norm %x, %g                       %f = reshape %x shape=[rows,h]
 *     %y = reshape %n shape=[rows,h]      =>     %y = rms_norm %f, %g
 *
 * The reshape then sits on a value that others flatten too, and the norm next to the product that
 * reads it.
 * Needs:  nothing but the reshape reads %n; neither is an output; the norm is over the last axis,
 * whose size h is known; rows is the product of the other axes.      Keeps: types, labels, eps. */
#include "pass/fuse.h"

static bool is_output(const struct ir_graph *g, ir_value v)
{
    for (size_t i = 0; i < g->output.len; i++)
        if (g->output.at[i] == v)
            return true;
    return false;
}

/* Is `flat` [product of the leading dims of x, its last dim]? */
static bool flattens(struct dim_table *dims, const struct ir_type *x, const struct ir_type *flat)
{
    ir_dim rows = 1, width = x->dim[x->rank - 1];

    for (int32_t i = 0; i < x->rank - 1; i++)
        rows = dim_mul(dims, rows, x->dim[i]);
    return flat->rank == 2 && dim_is_static(width) && flat->dim[1] == width && flat->dim[0] == rows;
}

static bool match(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    const struct ir_node *norm;

    if (n->op != RLX_OP_reshape)
        return false;
    norm = fuse_node(f, n->in[0]);
    if (norm->op != RLX_OP_rms_norm || !fuse_sole(f, n->in[0], n) ||
        is_output(f->g, ir_id(f->g, n)) || norm->attr.rms_norm.axis != norm->type.rank - 1 ||
        norm->type.rank == 2 || !flattens(f->g->mod->dims, &norm->type, &n->type))
        return false;
    m->op = RLX_OP_rms_norm;
    m->attr = norm->attr;
    m->attr.rms_norm.axis = 1;
    m->gone[m->gone_count++] = n->in[0];
    for (int32_t k = 0; k < norm->in_count; k++)
        m->in[m->in_count++] = norm->in[k];
    return true;
}

static rlx_status build(struct rebuild *r, const struct fuse_match *m, const ir_value *in,
                        ir_value *out)
{
    const struct ir_type *x = ir_type_of(&r->made, in[0]);
    ir_value operand[3] = {in[0], in[1], m->in_count > 2 ? in[2] : RLX_NO_VALUE};
    ir_dim shape[2] = {1, x->dim[x->rank - 1]};
    union ir_attr attr;

    for (int32_t i = 0; i < x->rank - 1; i++)
        shape[0] = dim_mul(r->old->mod->dims, shape[0], x->dim[i]);
    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape = rlx_list_of(2, shape);
    TRY(rebuild_add(r, RLX_OP_reshape, in, 1, &attr, &operand[0]));
    return rebuild_add(r, m->op, operand, m->in_count, &m->attr, out);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match, build};

    if (p->options->no_fusion)
        return RLX_OK;
    return fuse_patterns(p, m, &pattern);
}

const struct pass pass_move_norm_reshape = {"move-norm-reshape",
                                            "flatten before an rms norm, not after it", run};
