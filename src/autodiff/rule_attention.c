/* rule_attention.c: attention and rotary embeddings (ops-core.md 13, 14). */
#include "autodiff/rule.h"

static ir_value backward(struct vjp *v, int32_t wrt)
{
    const struct attr_attention *a = &v->n->attr.attention;
    const ir_value in[] = {v->n->in[0], v->n->in[1], v->n->in[2], v->dy,
                           v->n->in_count > 3 ? v->n->in[3] : RLX_NO_VALUE};
    union ir_attr attr;

    attr_defaults(RLX_OP_attention_backward, &attr);
    attr.attention_backward.num_heads = a->num_heads;
    attr.attention_backward.num_kv_heads = a->num_kv_heads;
    attr.attention_backward.head_dim = a->head_dim;
    attr.attention_backward.mask_kind = a->mask_kind;
    attr.attention_backward.window = a->window;
    attr.attention_backward.score_scale = a->score_scale;
    attr.attention_backward.logit_softcap = a->logit_softcap;
    attr.attention_backward.layout = a->layout;
    attr.attention_backward.wrt = wrt;
    return formula_node(&v->f, RLX_OP_attention_backward, in, v->n->in_count + 1, &attr);
}

/* A custom mask has no gradient. */
void vjp_attention(struct vjp *v)
{
    static const int32_t wrt[] = {RLX_ATTENTION_WRT_query, RLX_ATTENTION_WRT_key,
                                  RLX_ATTENTION_WRT_value, RLX_ATTENTION_WRT_bias};
    bool biased = v->n->attr.attention.mask_kind == RLX_MASK_KIND_bias;

    for (int32_t i = 0; i < (biased ? 4 : 3); i++)
        if (vjp_wanted(v, i))
            vjp_give(v, i, backward(v, wrt[i]));
}

/* ---- rotations: turn back, or forth again ---- */

static void turn(struct vjp *v, rlx_op op)
{
    const ir_value in[] = {v->dy, v->n->in[1], v->n->in[2]};
    union ir_attr attr;

    attr_defaults(op, &attr);
    if (op == RLX_OP_rope) {
        const struct attr_rope_backward *a = &v->n->attr.rope_backward;
        attr.rope = (struct attr_rope){a->head_dim, a->n_rot, a->style, a->seq_axis};
    } else {
        const struct attr_rope *a = &v->n->attr.rope;
        attr.rope_backward =
            (struct attr_rope_backward){a->head_dim, a->n_rot, a->style, a->seq_axis};
    }
    if (vjp_wanted(v, 0))
        vjp_give(v, 0, formula_node(&v->f, op, in, 3, &attr));
}

void vjp_rope(struct vjp *v)
{
    turn(v, RLX_OP_rope_backward);
}

void vjp_rope_backward(struct vjp *v)
{
    turn(v, RLX_OP_rope);
}

/* [.., pairs 2] with the two elements of every pair swapped. */
static ir_value swap_pairs(struct formula *f, ir_value x, const struct ir_type *t)
{
    ir_value pairs = formula_reshape(f, x, RLX_LIST(t->dim[0], t->dim[1], t->dim[2] / 2, 2));

    return formula_reshape(f, formula_reverse(f, pairs, 3), formula_shape(t));
}

/* (b, a) turned by an angle is (a, b) turned back by it, the other way round. */
void vjp_axial_rope_2d(struct vjp *v)
{
    struct formula *f = &v->f;
    struct ir_type t = *vjp_type(v, 0);

    t.dim[2] = v->n->attr.axial_rope_2d.num_heads * v->n->attr.axial_rope_2d.head_dim;
    ir_value swapped = swap_pairs(f, v->dy, &t);
    ir_value turned = formula_node(f, RLX_OP_axial_rope_2d, &swapped, 1, &v->n->attr);
    vjp_give(v, 0, swap_pairs(f, turned, &t));
}
