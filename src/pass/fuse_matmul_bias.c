/* fuse_matmul_bias.c: a product, its bias and its activation as one op.
 *
 *     %m = matmul %x, %w
 *     %a = add %m, %b            =>      %y = fused_matmul_bias_act %x, %w, %b activation=gelu
 *     %y = gelu %a
 *
 * Needs:  nothing else reads %m, nor %a where there is an activation; %b is [n] or [1,..,1,n] and
 * does not enlarge the product.      Keeps: types, labels, where the product's operands are stored
 * transposed. The result stands where the last of the nodes stood, so %b may come after %m. */
#include "pass/fuse.h"

/* The operand of the add that is a product which only the add reads; -1: neither. */
static int product_of(const struct fuse *f, const struct ir_node *add)
{
    for (int i = 0; i < 2; i++) {
        const struct ir_node *m = fuse_node(f, add->in[i]);
        const struct ir_type *b = ir_type_of(f->g, fuse_other(add, i));
        if (m->op == RLX_OP_matmul && fuse_sole(f, add->in[i], add) &&
            fuse_is_row(b, m->type.dim[m->type.rank - 1]) && type_same(&m->type, &add->type))
            return i;
    }
    return -1;
}

static bool is_bias_add(const struct fuse *f, const struct ir_node *n)
{
    return n->op == RLX_OP_add && product_of(f, n) >= 0;
}

/* The add whose activation this is, if it may be taken in. */
static const struct ir_node *activated(const struct fuse *f, const struct ir_node *n)
{
    const struct ir_node *add = n->in_count ? fuse_node(f, n->in[0]) : NULL;
    bool fits = fuse_family(n) == FAMILY_unary && is_bias_add(f, add) && fuse_sole(f, n->in[0], n);

    return fits ? add : NULL;
}

static bool match(const struct fuse *f, const struct ir_node *n, struct fuse_match *m)
{
    const struct ir_node *add = activated(f, n), *product;
    int side;

    m->op = RLX_OP_fused_matmul_bias_act;
    attr_defaults(m->op, &m->attr);
    if (add) {
        m->attr.fused_matmul_bias_act.activation = n->op;
        m->gone[m->gone_count++] = n->in[0];
    } else {
        ir_value id = ir_id(f->g, n);
        if (!is_bias_add(f, n) || (f->uses[id] == 1 && f->user[id] != RLX_NO_VALUE &&
                                   activated(f, fuse_node(f, f->user[id]))))
            return false; /* its activation will take it */
        add = n;
    }
    side = product_of(f, add);
    product = fuse_node(f, add->in[side]);
    m->gone[m->gone_count++] = add->in[side];
    m->attr.fused_matmul_bias_act.transpose_a = product->attr.matmul.transpose_a;
    m->attr.fused_matmul_bias_act.transpose_b = product->attr.matmul.transpose_b;
    m->in[m->in_count++] = product->in[0];
    m->in[m->in_count++] = product->in[1];
    m->in[m->in_count++] = fuse_other(add, side);
    return true;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    static const struct fuse_pattern pattern = {match, NULL};

    if (p->options->no_matmul_fusion || !fuse_may(p, FAMILY_fused_matmul_bias_act))
        return RLX_OK;
    return fuse_patterns(p, m, &pattern);
}

const struct pass pass_fuse_matmul_bias = {"fuse-matmul-bias",
                                           "a product with its bias and activation as one op", run};
