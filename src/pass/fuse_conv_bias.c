/* fuse_conv_bias.c: a convolution, its bias, a residual and its activation as one op.
 *
 *     %c = conv %x, %w
 *     %a = add %c, %b            =>      %v = reshape %b shape=[channels]
 *     %r = add %a, %skip                 %y = fused_conv_bias_act %x, %w, %v, %skip
 *     %y = relu %r                            has_residual=true activation=relu
 *
 * Needs:  nothing else reads the nodes before the last; %b has one element per channel and is 1
 * elsewhere; %skip has the shape of the result; floats. %skip and the activation may be missing.
 * Keeps: types, labels, the order of the sum. */
#include "pass/fuse.h"

/* [c,1,..] with an axis for each spatial one, and any 1s before. */
static bool is_per_channel(const struct ir_type *b, const struct ir_type *y)
{
    int32_t channel = b->rank - (y->rank - 1);

    if (channel < 0 || b->rank > y->rank)
        return false;
    for (int32_t i = 0; i < b->rank; i++)
        if (b->dim[i] != (i == channel ? y->dim[1] : 1))
            return false;
    return true;
}

/* The operand of a bias add that is the convolution; -1: n is none. */
static int conv_of(const struct fuse *f, const struct ir_node *n)
{
    for (int i = 0; n->op == RLX_OP_add && i < 2; i++) {
        const struct ir_node *c = fuse_node(f, n->in[i]);
        if (c->op == RLX_OP_conv && dtype_is(c->type.dtype, CLASS_F) && fuse_sole(f, n->in[i], n) &&
            type_same(&c->type, &n->type) &&
            is_per_channel(ir_type_of(f->g, fuse_other(n, i)), &c->type))
            return i;
    }
    return -1;
}

/* The operand of a residual add that is a bias add; -1: n is none. */
static int biased_of(const struct fuse *f, const struct ir_node *n)
{
    for (int i = 0; n->op == RLX_OP_add && i < 2; i++)
        if (fuse_sole(f, n->in[i], n) && conv_of(f, fuse_node(f, n->in[i])) >= 0 &&
            type_same(ir_type_of(f->g, fuse_other(n, i)), &n->type))
            return i;
    return -1;
}

static bool is_sum(const struct fuse *f, const struct ir_node *n)
{
    return conv_of(f, n) >= 0 || biased_of(f, n) >= 0;
}

/* Will a node after n take it in? */
static bool goes_on(const struct fuse *f, const struct ir_node *n)
{
    ir_value id = ir_id(f->g, n);
    const struct ir_node *next;

    if (f->uses[id] != 1 || f->user[id] == RLX_NO_VALUE)
        return false;
    next = fuse_node(f, f->user[id]);
    if (fuse_family(next) == FAMILY_unary)
        return true;
    /* Of two sums that meet, a residual add takes the first. */
    return conv_of(f, n) >= 0 && biased_of(f, next) >= 0 && next->in[biased_of(f, next)] == id;
}

static void take_attributes(const struct attr_conv *from, struct attr_fused_conv_bias_act *to)
{
    to->kernel_size = from->kernel_size;
    to->stride = from->stride;
    to->padding = from->padding;
    to->dilation = from->dilation;
    to->groups = from->groups;
}

static bool match(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    struct attr_fused_conv_bias_act *a = &m->attr.fused_conv_bias_act;
    ir_value residual = RLX_NO_VALUE;
    const struct ir_node *sum = n;
    int side;

    m->op = RLX_OP_fused_conv_bias_act;
    attr_defaults(m->op, &m->attr);
    if (fuse_family(n) == FAMILY_unary && is_sum(f, fuse_node(f, n->in[0])) &&
        fuse_sole(f, n->in[0], n)) {
        a->activation = n->op;
        m->gone[m->gone_count++] = n->in[0];
        sum = fuse_node(f, n->in[0]);
    } else if (!is_sum(f, n) || goes_on(f, n)) {
        return false;
    }
    if (conv_of(f, sum) < 0) {
        side = biased_of(f, sum);
        residual = fuse_other(sum, side);
        m->gone[m->gone_count++] = sum->in[side];
        sum = fuse_node(f, sum->in[side]);
        a->has_residual = true;
    }
    side = conv_of(f, sum);
    const struct ir_node *conv = fuse_node(f, sum->in[side]);
    m->gone[m->gone_count++] = sum->in[side];
    take_attributes(&conv->attr.conv, a);
    m->in[m->in_count++] = conv->in[0];
    m->in[m->in_count++] = conv->in[1];
    m->in[m->in_count++] = fuse_other(sum, side);
    if (a->has_residual)
        m->in[m->in_count++] = residual;
    return true;
}

/* The bias as a vector: what it was before a reshape, or after one. */
static rlx_status bias_vector(struct rebuild *r, ir_value bias, ir_dim channels, ir_value *out)
{
    const struct ir_node *n = ir_node(&r->made, bias);
    union ir_attr attr;

    *out = bias;
    if (n->type.rank == 1)
        return RLX_OK;
    if (n->op == RLX_OP_reshape && ir_type_of(&r->made, n->in[0])->rank == 1) {
        *out = n->in[0];
        return RLX_OK;
    }
    attr_defaults(RLX_OP_reshape, &attr);
    attr.reshape.shape = rlx_list_of(1, &channels);
    return rebuild_add(r, RLX_OP_reshape, &bias, 1, &attr, out);
}

static rlx_status build(struct rebuild *r, const struct fuse_match *m, const ir_value *in,
                        ir_value *out)
{
    ir_dim channels = ir_type_of(&r->made, in[1])->dim[0];
    ir_value operand[4] = {in[0], in[1], in[2], m->in_count > 3 ? in[3] : RLX_NO_VALUE};

    TRY(bias_vector(r, in[2], channels, &operand[2]));
    return rebuild_add(r, m->op, operand, m->in_count, &m->attr, out);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match, build};

    if (p->options->no_matmul_fusion || !fuse_may(p, FAMILY_fused_conv_bias_act))
        return RLX_OK;
    return fuse_patterns(p, m, &pattern);
}

const struct pass pass_fuse_conv_bias = {
    "fuse-conv-bias", "a convolution with bias, residual and activation as one op", run};
