/* fold_batch_norm.c: a batch norm after a convolution goes into its weights and a bias.
 *
 *     %c = conv %x, %w
 *     %y = batch_norm_inference %c, %gamma, %beta, %mean, %var axis=1
 *  =>
 *     %s = gamma * rsqrt(var + eps)
 *     %d = conv %x, w * s                       s along w's first axis
 *     %y = add %d, beta - mean * s
 *
 * Needs: nothing else reads %c; f32; the norm is over the channels; weights and statistics are made
 * of params and constants alone, so that all but the convolution and the sum is computed once.
 * Keeps: types, labels; numbers to the tolerance of a convolution. */
#include "pass/fuse.h"

static bool match(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    const struct ir_node *conv;

    if (n->op != RLX_OP_batch_norm_inference || n->type.dtype != RLX_DTYPE_f32)
        return false;
    conv = fuse_node(f, n->in[0]);
    if (conv->op != RLX_OP_conv || !fuse_sole(f, n->in[0], n) || conv->type.rank < 2 ||
        n->attr.batch_norm_inference.axis != 1 || !f->is_static[conv->in[1]])
        return false;
    m->op = RLX_OP_conv;
    m->attr = conv->attr;
    m->in[m->in_count++] = conv->in[0];
    m->in[m->in_count++] = conv->in[1];
    for (int32_t i = 1; i < n->in_count; i++) {
        if (!f->is_static[n->in[i]] || ir_type_of(f->g, n->in[i])->rank != 1)
            return false;
        m->in[m->in_count++] = n->in[i];
    }
    m->eps = n->attr.batch_norm_inference.eps;
    m->gone[m->gone_count++] = n->in[0];
    return true;
}

static rlx_status add(struct rebuild *r, rlx_op op, ir_value a, ir_value b, ir_value *out)
{
    const ir_value in[2] = {a, b};

    return rebuild_add(r, op, in, b == RLX_NO_VALUE ? 1 : 2, NULL, out);
}

/* A vector as [n,1,..] of that rank. */
static rlx_status as_column(struct rebuild *r, ir_value v, int32_t rank, ir_value *out)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape.count = rank;
    for (int32_t i = 0; i < rank; i++)
        attr.reshape.shape.at[i] = i ? 1 : ir_type_of(&r->made, v)->dim[0];
    return rebuild_add(r, RLX_OP_reshape, &v, 1, &attr, out);
}

/* in: x, w, gamma, beta, mean, var */
static rlx_status build(struct rebuild *r, const struct fuse_match *m, const ir_value *in,
                        ir_value *out)
{
    int32_t rank = ir_type_of(&r->made, in[1])->rank;
    ir_value eps, scale, shift, column, operand[2] = {in[0]}, conv;

    TRY(rebuild_fill(r, RLX_DTYPE_f32, 1, (double)m->eps, &eps));
    TRY(add(r, RLX_OP_add, in[5], eps, &scale));
    TRY(add(r, RLX_OP_rsqrt, scale, RLX_NO_VALUE, &scale));
    TRY(add(r, RLX_OP_mul, in[2], scale, &scale));
    TRY(add(r, RLX_OP_mul, in[4], scale, &shift));
    TRY(add(r, RLX_OP_sub, in[3], shift, &shift));
    TRY(as_column(r, scale, rank, &column));
    TRY(add(r, RLX_OP_mul, in[1], column, &operand[1]));
    TRY(rebuild_add(r, RLX_OP_conv, operand, 2, &m->attr, &conv));
    TRY(as_column(r, shift, rank - 1, &column));
    return add(r, RLX_OP_add, conv, column, out);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match, build};

    if (p->options->no_fusion || p->options->no_static_pack)
        return RLX_OK;
    return fuse_patterns(p, m, &pattern);
}

const struct pass pass_fold_batch_norm = {
    "fold-batch-norm", "batch norms after convolutions as part of their weights", run};
