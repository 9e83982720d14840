/* rule_attention.c: attention and rotary embeddings (ops-core.md 13, 14). */
#include <math.h>

#include "autodiff/rule.h"
#include "ir/attention.h"

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
        vjp_add(v, 0, formula_node(&v->f, op, in, 3, &attr));
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
    vjp_add(v, 0, swap_pairs(f, turned, &t));
}

/* ---- as products, a mask and a softmax, which hold all scores at once ---- */

struct scores {
    struct attr_attention a;
    ir_dim batch, queries, keys;
};

/* The operands of attention, whatever it is that is given: a mask and sinks may be missing. */
struct operands {
    ir_value q, k, v, mask, sinks;
};

/* [B, heads, S, D] from any layout. */
static ir_value by_head(struct formula *f, const struct scores *s, ir_value x, int64_t heads,
                        ir_dim rows, int64_t d)
{
    if (s->a.layout == RLX_ATTENTION_LAYOUT_bhsd || s->a.layout == RLX_ATTENTION_LAYOUT_folded)
        return formula_reshape(f, x, RLX_LIST(s->batch, heads, rows, d));
    x = formula_reshape(f, x, RLX_LIST(s->batch, rows, heads, d));
    return formula_transpose(f, x, RLX_LIST(0, 2, 1, 3));
}

/* A key or value head once for each query head that reads it. */
static ir_value shared(struct formula *f, const struct scores *s, ir_value x, int64_t d)
{
    int64_t kv = s->a.num_kv_heads, each = s->a.num_heads / kv;

    if (each == 1)
        return x;
    x = formula_reshape(f, x, RLX_LIST(s->batch, kv, 1, s->keys, d));
    x = formula_expand(f, x, RLX_LIST(s->batch, kv, each, s->keys, d));
    return formula_reshape(f, x, RLX_LIST(s->batch, s->a.num_heads, s->keys, d));
}

/* A mask read as rank 4: [B,Sk] is [B,1,1,Sk], [B,Sq,Sk] is [B,1,Sq,Sk]. */
static ir_value mask_of_rank_4(struct formula *f, ir_value mask)
{
    const struct ir_type t = *formula_type(f, mask);
    rlx_list shape = RLX_LIST(t.dim[0], 1, 1, t.dim[t.rank - 1]);

    if (t.rank >= 3)
        shape.at[2] = t.dim[t.rank - 2];
    return t.rank == 4 ? mask : formula_reshape(f, mask, shape);
}

static ir_value whole(struct formula *f, int64_t v)
{
    return formula_number_of(f, RLX_DTYPE_i64, (double)v);
}

/* Where queries stand among the keys: they are the last of them. [queries, 1] */
static ir_value places(struct formula *f, const struct scores *s)
{
    ir_value query = formula_reshape(f, rule_positions(f, s->queries), RLX_LIST(s->queries, 1));
    ir_value ahead = SUB(rule_size(f, s->keys), rule_size(f, s->queries));

    return ADD(query, formula_2(f, RLX_OP_max, ahead, whole(f, 0)));
}

/* Which keys a query sees, by their positions. */
static ir_value seen(struct formula *f, const struct scores *s)
{
    ir_value key = rule_positions(f, s->keys), query = places(f, s);
    ir_value before = formula_2(f, RLX_OP_le, key, query);
    if (s->a.mask_kind == RLX_MASK_KIND_causal)
        return before;
    ir_value window = whole(f, s->a.window), oldest = SUB(query, window);
    if (s->a.mask_kind == RLX_MASK_KIND_symmetric_window)
        before = formula_2(f, RLX_OP_le, SUB(key, query), window);
    if (s->a.mask_kind == RLX_MASK_KIND_chunked_window)
        oldest = SUB(query, formula_2(f, RLX_OP_mod, query, window));
    return formula_2(f, RLX_OP_bit_and, before, formula_2(f, RLX_OP_ge, key, oldest));
}

static ir_value allowed(struct formula *f, ir_value mask)
{
    mask = mask_of_rank_4(f, mask);
    if (formula_type(f, mask)->dtype == RLX_DTYPE_bool)
        return mask;
    rlx_dtype t = formula_type(f, mask)->dtype;
    double least = dtype_is(t, CLASS_F) ? 0.5 : 1; /* in its own type: few GPUs have f64 */
    return formula_2(f, RLX_OP_ge, mask, formula_number_of(f, t, least));
}

static ir_value masked(struct formula *f, const struct scores *s, ir_value z, ir_value mask)
{
    ir_value never = NUM(-(double)INFINITY);

    switch (s->a.mask_kind) {
    case RLX_MASK_KIND_none: return z;
    case RLX_MASK_KIND_bias: return ADD(z, mask_of_rank_4(f, mask));
    case RLX_MASK_KIND_custom: return formula_where(f, allowed(f, mask), z, never);
    default: return formula_where(f, seen(f, s), z, never);
    }
}

/* What ALiBi takes from the scores: a slope of each head by the distance. */
static ir_value far_off(struct formula *f, const struct scores *s)
{
    int64_t heads = s->a.num_heads, period = attention_alibi_period(heads);
    ir_value head = formula_cast(f, rule_positions(f, heads), f->dtype);
    ir_value low = MUL(ADD(head, NUM(1)), NUM(2));
    ir_value high = ADD(MUL(SUB(head, NUM((double)period)), NUM(2)), NUM(1));
    ir_value power =
        formula_where(f, formula_2(f, RLX_OP_lt, head, NUM((double)period)), low, high);
    ir_value d = formula_1(f, RLX_OP_abs, SUB(places(f, s), rule_positions(f, s->keys)));

    power = MUL(power, NUM(-(double)s->a.alibi_max_bias / (2 * (double)period) * log(2)));
    power = formula_reshape(f, formula_1(f, RLX_OP_exp, power), RLX_LIST(heads, 1, 1));
    return MUL(power, formula_cast(f, d, f->dtype));
}

/* Softmax over the keys, with a score more in each row that has no value: its head's sink. */
static ir_value shares(struct formula *f, const struct scores *s, ir_value z, ir_value sinks)
{
    if (sinks == RLX_NO_VALUE)
        return formula_1(f, RLX_OP_softmax, z);
    sinks = formula_reshape(f, sinks, RLX_LIST(1, s->a.num_heads, 1, 1));
    sinks = formula_expand(f, sinks, RLX_LIST(s->batch, s->a.num_heads, s->queries, 1));
    z = formula_1(f, RLX_OP_softmax, formula_concat(f, (const ir_value[]){sinks, z}, 2, 3));
    return formula_narrow(f, z, 3, 1, s->keys);
}

/* The forward op, in the layout of q but not yet in its shape. */
static ir_value attend(struct formula *f, const struct scores *s, const struct operands *in)
{
    const struct attr_attention *a = &s->a;
    int64_t d = a->head_dim, of_v = attention_value_dim(a), kv = a->num_kv_heads;
    ir_value q = by_head(f, s, in->q, a->num_heads, s->queries, d);
    ir_value k = shared(f, s, by_head(f, s, in->k, kv, s->keys, d), d);
    ir_value v = shared(f, s, by_head(f, s, in->v, kv, s->keys, of_v), of_v);
    double scale = isnan(a->score_scale) ? 1 / sqrt((double)a->head_dim) : (double)a->score_scale;
    ir_value z = MUL(formula_matmul(f, q, k, false, true), NUM(scale));

    if (!isnan(a->logit_softcap)) {
        ir_value cap = NUM((double)a->logit_softcap);
        z = MUL(cap, formula_1(f, RLX_OP_tanh, DIV(z, cap)));
    }
    if (!isnan(a->alibi_max_bias))
        z = SUB(z, far_off(f, s));
    z = masked(f, s, z, in->mask);
    ir_value y = formula_matmul(f, shares(f, s, z, in->sinks), v, false, false);
    if (a->layout == RLX_ATTENTION_LAYOUT_bshd || a->layout == RLX_ATTENTION_LAYOUT_packed)
        y = formula_transpose(f, y, RLX_LIST(0, 2, 1, 3));
    return y;
}

static struct scores scores_of(const struct formula *f, const struct ir_node *n)
{
    const struct ir_type *q = ir_type_of(f->g, n->in[0]), *k = ir_type_of(f->g, n->in[1]);
    const struct attr_attention a = attention_attrs(n->op, &n->attr);
    int32_t axis = a.layout == RLX_ATTENTION_LAYOUT_bhsd ? 2 : 1;
    struct scores s = {a, q->dim[0], q->dim[axis], k->dim[axis]};

    if (a.layout == RLX_ATTENTION_LAYOUT_folded)
        s.batch = dim_exact_div(rule_dims(f), q->dim[0], a.num_heads);
    return s;
}

/* What may have a gradient is apart from other places where it stands. */
static struct operands operands_of(struct formula *f, const struct ir_node *n)
{
    const struct attr_attention a = attention_attrs(n->op, &n->attr);
    int32_t first = n->op == RLX_OP_attention ? 3 : 4;
    int32_t mask = attention_mask_operand(&a, first), sinks = attention_sinks_operand(&a, first);
    struct operands o = {rule_apart(f, n->in[0]), rule_apart(f, n->in[1]), rule_apart(f, n->in[2]),
                         RLX_NO_VALUE, RLX_NO_VALUE};

    if (mask >= 0)
        o.mask = a.mask_kind == RLX_MASK_KIND_bias ? rule_apart(f, n->in[mask]) : n->in[mask];
    if (sinks >= 0)
        o.sinks = rule_apart(f, n->in[sinks]);
    return o;
}

ir_value define_attention_backward(struct formula *f, const struct ir_node *n)
{
    const struct scores s = scores_of(f, n);
    const struct ir_type like = *ir_type_of(f->g, n->in[3]);
    const struct operands in = operands_of(f, n);
    const ir_value wrt[] = {in.q, in.k, in.v, in.mask}; /* as words of attention_wrt are numbered */
    ir_value dy = formula_cast(f, n->in[3], f->dtype), first = (ir_value)f->g->node.len;
    ir_value y = formula_reshape(f, attend(f, &s, &in), formula_shape(&like));

    return rule_pull(f, first, y, dy, wrt[n->attr.attention_backward.wrt]);
}

/* ---- gradients ---- */

static ir_value backward(struct vjp *v, int32_t wrt)
{
    ir_value in[6] = {v->n->in[0], v->n->in[1], v->n->in[2], v->dy};
    union ir_attr attr;

    for (int32_t i = 1; i < 3; i++) /* a cache may be narrower */
        in[i] = formula_cast(&v->f, in[i], vjp_type(v, 0)->dtype);
    for (int32_t i = 3; i < v->n->in_count; i++)
        in[i + 1] = v->n->in[i];
    attr_defaults(RLX_OP_attention_backward, &attr);
    attention_to_backward(&v->n->attr.attention, &attr.attention_backward);
    attr.attention_backward.wrt = wrt;
    return formula_node(&v->f, RLX_OP_attention_backward, in, v->n->in_count + 1, &attr);
}

/* No op has the gradient of sinks: it is what reaches them through all scores. */
static ir_value reaches_sinks(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct scores s = scores_of(f, v->n);
    const struct ir_type like = v->n->type;
    const struct operands in = operands_of(f, v->n);
    ir_value dy = formula_cast(f, v->dy, f->dtype), first = (ir_value)f->g->node.len;
    ir_value y = formula_reshape(f, attend(f, &s, &in), formula_shape(&like));

    return rule_pull(f, first, y, dy, in.sinks);
}

/* A custom mask has no gradient. */
void vjp_attention(struct vjp *v)
{
    static const int32_t wrt[] = {RLX_ATTENTION_WRT_query, RLX_ATTENTION_WRT_key,
                                  RLX_ATTENTION_WRT_value, RLX_ATTENTION_WRT_bias};
    const struct attr_attention *a = &v->n->attr.attention;
    int32_t sinks = attention_sinks_operand(a, 3);

    for (int32_t i = 0; i < (a->mask_kind == RLX_MASK_KIND_bias ? 4 : 3); i++)
        if (vjp_wanted(v, i))
            vjp_add(v, i, backward(v, wrt[i]));
    if (sinks >= 0 && vjp_wanted(v, sinks))
        vjp_add(v, sinks, reaches_sinks(v));
}
