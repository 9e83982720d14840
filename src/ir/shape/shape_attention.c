/* shape_attention.c: shape rules of attention and rotary embeddings (ops-core.md 13, 14). */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "ir/attention.h"
#include "ir/shape/shape_need.h"

/* rope_backward lists the attributes of rope in the same order, so that one rule reads both through
 * rope's struct: the common first members of a union's structs. */
_Static_assert(offsetof(struct attr_rope, seq_axis) ==
                   offsetof(struct attr_rope_backward, seq_axis),
               "rope and rope_backward are alike");

/* ---- what fused blocks check as well ------------------------------------------------------- */

rlx_status shape_need_heads(struct shape_call *c, int64_t heads, int64_t *kv_heads,
                            int64_t head_dim)
{
    int64_t columns;

    if (*kv_heads == RLX_ABSENT)
        *kv_heads = heads;
    TRY(shape_need_range(c, "num_heads", heads, 1, INT64_MAX));
    TRY(shape_need_range(c, "num_kv_heads", *kv_heads, 1, INT64_MAX));
    TRY(shape_need_range(c, "head_dim", head_dim, 1, INT64_MAX));
    if (heads % *kv_heads != 0)
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: num_kv_heads %" PRId64 " does not divide num_heads %" PRId64,
                          c->name, *kv_heads, heads);
    if (__builtin_mul_overflow(heads, head_dim, &columns))
        return SHAPE_FAIL(c, LIMIT, "%s: %" PRId64 " heads of %" PRId64 " overflow 64 bits",
                          c->name, heads, head_dim);
    return RLX_OK;
}

rlx_status shape_need_softcap(struct shape_call *c, float softcap)
{
    char text[32];

    if (isnan(softcap) || softcap > 0)
        return RLX_OK;
    str_from_f32(text, softcap);
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: logit_softcap is %s, must be above 0", c->name, text);
}

static rlx_status need_alibi(struct shape_call *c, float max_bias)
{
    char text[32];

    if (isnan(max_bias) || max_bias > 0)
        return RLX_OK;
    str_from_f32(text, max_bias);
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: alibi_max_bias is %s, must be above 0", c->name, text);
}

rlx_status shape_need_mask(struct shape_call *c, int32_t operand, ir_dim batch, int64_t heads,
                           ir_dim queries, ir_dim keys)
{
    const struct ir_type *m = c->in[operand];
    const ir_dim rank2[] = {batch, keys}, rank3[] = {batch, queries, keys},
                 rank4[] = {batch, heads, queries, keys};
    const ir_dim *full = m->rank == 2 ? rank2 : m->rank == 3 ? rank3 : rank4;
    ir_dim want[4];

    TRY(shape_need_rank(c, operand, 2, 4));
    for (int32_t i = 0; i < m->rank; i++) /* all but the keys may be 1, and then broadcast */
        want[i] = m->dim[i] == 1 && i < m->rank - 1 ? 1 : full[i];
    return shape_need_dims(c, operand, want, m->rank);
}

rlx_status shape_need_rope_tables(struct shape_call *c, int32_t operand, ir_dim batch, ir_dim seq,
                                  int64_t pairs)
{
    const struct ir_type *cos = c->in[operand];

    TRY(shape_need_class(c, operand, CLASS_F));
    TRY(shape_need_dtype_or_f32(c, operand, 0));
    TRY(shape_need_rank(c, operand, 2, 3));
    TRY(shape_need_same_dtype(c, operand, operand + 1));
    TRY(shape_need_same_shape(c, operand, operand + 1));
    if (cos->rank == 3)
        TRY(shape_need_equal(c, cos->dim[0], batch, "batch sizes of the tables and x"));
    TRY(shape_need_least(c, cos->dim[cos->rank - 2], seq, "positions of the tables"));
    return shape_need_least(c, cos->dim[cos->rank - 1], pairs, "columns of the tables");
}

/* ---- attention ----------------------------------------------------------------------------- */

/* Says what the layouts would be. */
static rlx_status no_layout(struct shape_call *c, const struct attr_attention *a)
{
    int64_t h = a->num_heads, d = a->head_dim;
    char value[64] = "";

    if (a->value_dim != RLX_ABSENT)
        snprintf(value, sizeof value, ", those of v of %" PRId64, a->value_dim);

    return SHAPE_FAIL(c, SHAPE,
                      "%s: q %s, k %s and v %s fit no layout: q must be bhsd "
                      "[B,%" PRId64 ",S,%" PRId64 "], bshd [B,S,%" PRId64 ",%" PRId64
                      "], packed [B,S,%" PRId64 "] or folded [B*%" PRId64 ",S,%" PRId64
                      "], and k and v the same with %" PRId64 " heads%s",
                      c->name, type_text(c, c->in[0]), type_text(c, c->in[1]),
                      type_text(c, c->in[2]), h, d, h, d, h * d, h, d, a->num_kv_heads, value);
}

/* `auto`, rank 4: by the axis that holds the heads; bhsd wins a draw. */
static rlx_status layout_of_rank_4(struct shape_call *c, struct attr_attention *a)
{
    const struct ir_type *q = c->in[0], *k = c->in[1], *v = c->in[2];

    for (int32_t axis = 1; axis <= 2; axis++) {
        if (q->dim[axis] != a->num_heads || k->dim[axis] != a->num_kv_heads ||
            v->dim[axis] != a->num_kv_heads)
            continue;
        a->layout = axis == 1 ? RLX_ATTENTION_LAYOUT_bhsd : RLX_ATTENTION_LAYOUT_bshd;
        return RLX_OK;
    }
    return no_layout(c, a);
}

/* `auto`, rank 3: packed if the last axis holds all heads, folded if it holds one. */
static rlx_status layout_of_rank_3(struct shape_call *c, struct attr_attention *a)
{
    const struct ir_type *q = c->in[0];

    if (q->dim[2] == a->num_heads * a->head_dim) {
        a->layout = RLX_ATTENTION_LAYOUT_packed;
        return RLX_OK;
    }
    if (q->dim[2] == a->head_dim && (!dim_is_static(q->dim[0]) || q->dim[0] % a->num_heads == 0)) {
        a->layout = RLX_ATTENTION_LAYOUT_folded;
        return RLX_OK;
    }
    return no_layout(c, a);
}

/* The sizes that attention is about, found in the operands by their layout. */
struct extents {
    ir_dim batch, queries, keys;
};

/* [b,h,s,d] or, with seq and head swapped, [b,s,h,d]. */
static rlx_status extents_4(struct shape_call *c, const struct attr_attention *a, int32_t head,
                            int32_t seq, struct extents *e)
{
    const struct ir_type *q = c->in[0], *k = c->in[1];

    TRY(shape_need_equal(c, q->dim[head], a->num_heads, "heads of q and num_heads"));
    TRY(shape_need_equal(c, k->dim[head], a->num_kv_heads, "heads of k and num_kv_heads"));
    TRY(shape_need_equal(c, q->dim[0], k->dim[0], "batch sizes of q and k"));
    TRY(shape_need_equal(c, q->dim[3], a->head_dim, "head sizes of q and head_dim"));
    TRY(shape_need_equal(c, k->dim[3], a->head_dim, "head sizes of k and head_dim"));
    *e = (struct extents){q->dim[0], q->dim[seq], k->dim[seq]};
    return RLX_OK;
}

/* [b,s,h d] */
static rlx_status extents_packed(struct shape_call *c, const struct attr_attention *a,
                                 struct extents *e)
{
    const struct ir_type *q = c->in[0], *k = c->in[1];

    TRY(shape_need_equal(c, q->dim[0], k->dim[0], "batch sizes of q and k"));
    TRY(shape_need_equal(c, q->dim[2], a->num_heads * a->head_dim,
                         "columns of q and num_heads * head_dim"));
    TRY(shape_need_equal(c, k->dim[2], a->num_kv_heads * a->head_dim,
                         "columns of k and num_kv_heads * head_dim"));
    *e = (struct extents){q->dim[0], q->dim[1], k->dim[1]};
    return RLX_OK;
}

/* [b h,s,d] */
static rlx_status extents_folded(struct shape_call *c, const struct attr_attention *a,
                                 struct extents *e)
{
    const struct ir_type *q = c->in[0], *k = c->in[1];
    ir_dim kv_rows;

    TRY(shape_divided(c, q->dim[0], a->num_heads, "rows of q in heads", &e->batch));
    kv_rows = dim_mul(c->mod->dims, e->batch, a->num_kv_heads);
    TRY(shape_need_equal(c, k->dim[0], kv_rows, "rows of k and batch * num_kv_heads"));
    TRY(shape_need_equal(c, q->dim[2], a->head_dim, "head sizes of q and head_dim"));
    TRY(shape_need_equal(c, k->dim[2], a->head_dim, "head sizes of k and head_dim"));
    e->queries = q->dim[1];
    e->keys = k->dim[1];
    return RLX_OK;
}

/* How many elements the last axis has, of operands or results with so many heads of that size. */
static int64_t last_axis(const struct attr_attention *a, int64_t heads, int64_t dim)
{
    return a->layout == RLX_ATTENTION_LAYOUT_packed ? heads * dim : dim;
}

/* v is like k, but for the size of its heads. */
static rlx_status need_values(struct shape_call *c, const struct attr_attention *a)
{
    const struct ir_type *k = c->in[1], *v = c->in[2];
    int32_t last = k->rank - 1;

    if (a->value_dim == RLX_ABSENT)
        return shape_need_same_shape(c, 1, 2);
    for (int32_t i = 0; i < last; i++)
        TRY(shape_need_equal(c, k->dim[i], v->dim[i], "sizes of k and v before the last axis"));
    return shape_need_equal(c, v->dim[last], last_axis(a, a->num_kv_heads, a->value_dim),
                            "last axis of v and what value_dim says");
}

/* Layout and sizes of q, k and v, the layout decided if it was open. */
static rlx_status settle_layout(struct shape_call *c, struct attr_attention *a, struct extents *e)
{
    int32_t rank = c->in[0]->rank, want;

    if (rank != 3 && rank != 4)
        return no_layout(c, a);
    TRY(shape_need_rank(c, 1, rank, rank));
    TRY(shape_need_rank(c, 2, rank, rank));
    if (a->layout == RLX_ATTENTION_LAYOUT_auto)
        TRY(rank == 4 ? layout_of_rank_4(c, a) : layout_of_rank_3(c, a));
    want = a->layout == RLX_ATTENTION_LAYOUT_bhsd || a->layout == RLX_ATTENTION_LAYOUT_bshd ? 4 : 3;
    if (rank != want)
        return SHAPE_FAIL(c, SHAPE, "%s: layout %s needs rank %d, q has rank %d", c->name,
                          enum_word("attention_layout", a->layout), want, rank);
    TRY(need_values(c, a));
    switch (a->layout) {
    case RLX_ATTENTION_LAYOUT_bhsd: return extents_4(c, a, 1, 2, e);
    case RLX_ATTENTION_LAYOUT_bshd: return extents_4(c, a, 2, 1, e);
    case RLX_ATTENTION_LAYOUT_packed: return extents_packed(c, a, e);
    default: return extents_folded(c, a, e);
    }
}

/* As large as those of k: not worth saying. */
static rlx_status need_value_dim(struct shape_call *c, struct attr_attention *a)
{
    int64_t columns;

    if (a->value_dim == RLX_ABSENT)
        return RLX_OK;
    TRY(shape_need_range(c, "value_dim", a->value_dim, 1, INT64_MAX));
    if (__builtin_mul_overflow(a->num_heads, a->value_dim, &columns))
        return SHAPE_FAIL(c, LIMIT, "%s: %" PRId64 " heads of %" PRId64 " overflow 64 bits",
                          c->name, a->num_heads, a->value_dim);
    if (a->value_dim == a->head_dim)
        a->value_dim = RLX_ABSENT;
    return RLX_OK;
}

static rlx_status need_window(struct shape_call *c, const struct attr_attention *a)
{
    bool chunks = a->mask_kind == RLX_MASK_KIND_chunked_window;
    const char *kind = enum_word("mask_kind", a->mask_kind);

    if (chunks || a->mask_kind == RLX_MASK_KIND_sliding_window ||
        a->mask_kind == RLX_MASK_KIND_symmetric_window) {
        if (a->window == RLX_ABSENT)
            return SHAPE_FAIL(c, ATTRIBUTE, "%s: mask_kind %s needs window", c->name, kind);
        return shape_need_range(c, "window", a->window, chunks ? 1 : 0, INT64_MAX);
    }
    if (a->window != RLX_ABSENT)
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: window %" PRId64 " without a mask_kind that has windows, which %s "
                          "has not",
                          c->name, a->window, kind);
    return RLX_OK;
}

/* What is added to scores, or is one, has the type of q or f32. */
static rlx_status need_score_dtype(struct shape_call *c, int32_t operand, const char *what)
{
    rlx_dtype t = c->in[operand]->dtype;

    if (t == RLX_DTYPE_f32 || t == c->in[0]->dtype)
        return RLX_OK;
    return SHAPE_FAIL(c, DTYPE, "%s: %s must be f32 or like q, %s, not %s", c->name, what,
                      rlx_dtype_name(c->in[0]->dtype), rlx_dtype_name(t));
}

/* A custom mask holds 0 and 1; a bias is added. */
static rlx_status need_mask_dtype(struct shape_call *c, int32_t operand, int32_t kind)
{
    if (kind == RLX_MASK_KIND_custom)
        return shape_need_class(c, operand, CLASS_B | CLASS_REAL);
    return need_score_dtype(c, operand, "a bias");
}

/* [num_heads] */
static rlx_status need_sinks(struct shape_call *c, const struct attr_attention *a, int32_t operand)
{
    TRY(need_score_dtype(c, operand, "sinks"));
    TRY(shape_need_rank(c, operand, 1, 1));
    return shape_need_equal(c, c->in[operand]->dim[0], a->num_heads, "sinks and num_heads");
}

/* Operands from `first` on are the mask and the sinks, where there are any. */
static rlx_status need_inputs(struct shape_call *c, const struct attr_attention *a, int32_t first)
{
    bool mask = attention_has_mask(a->mask_kind);
    const char *why = mask && a->has_sinks ? "this mask_kind, whose mask is an operand, and sinks"
                      : a->has_sinks       ? "this mask_kind, which has no mask operand, and sinks"
                      : mask               ? "this mask_kind, whose mask is an operand"
                                           : "this mask_kind, which has no mask operand";

    return shape_need_inputs(c, first + mask + a->has_sinks, why);
}

/* Floats of one type; keys and values of a cache may be narrower than queries. */
static rlx_status need_types(struct shape_call *c, bool backward)
{
    if (!backward && attention_mixes(c->in[0]->dtype, c->in[1]->dtype, c->in[2]->dtype))
        return RLX_OK;
    return shape_need_floats(c, 3);
}

/* q, k and v; operands from `first` on are the mask and the sinks. */
static rlx_status need_attention(struct shape_call *c, struct attr_attention *a, int32_t first)
{
    int32_t mask = attention_mask_operand(a, first), sinks = attention_sinks_operand(a, first);
    struct extents e;

    TRY(need_inputs(c, a, first));
    TRY(need_types(c, first > 3));
    TRY(shape_need_heads(c, a->num_heads, &a->num_kv_heads, a->head_dim));
    TRY(need_value_dim(c, a));
    TRY(need_window(c, a));
    TRY(shape_need_softcap(c, a->logit_softcap));
    TRY(need_alibi(c, a->alibi_max_bias));
    TRY(settle_layout(c, a, &e));
    if (sinks >= 0)
        TRY(need_sinks(c, a, sinks));
    if (mask < 0)
        return RLX_OK;
    TRY(need_mask_dtype(c, mask, a->mask_kind));
    return shape_need_mask(c, mask, e.batch, a->num_heads, e.queries, e.keys);
}

/* Like q, with heads as large as those of v. */
static struct ir_type result_of(const struct shape_call *c, const struct attr_attention *a)
{
    struct ir_type t = *c->in[0];

    if (a->value_dim != RLX_ABSENT)
        t.dim[t.rank - 1] = last_axis(a, a->num_heads, a->value_dim);
    return t;
}

rlx_status shape_attention(struct shape_call *c)
{
    TRY(need_attention(c, &c->attr->attention, 3));
    *c->out = result_of(c, &c->attr->attention);
    return RLX_OK;
}

/* q, k, v, dy and the mask -> like the operand that wrt names. */
rlx_status shape_attention_backward(struct shape_call *c)
{
    struct attr_attention_backward *attr = &c->attr->attention_backward;
    struct attr_attention forward;

    attention_of_backward(attr, &forward);
    TRY(need_attention(c, &forward, 4));
    attention_to_backward(&forward, attr);
    struct ir_type y = result_of(c, &forward);
    TRY(shape_need_same_dtype(c, 3, 0));
    TRY(shape_need_dims(c, 3, y.dim, y.rank));
    if (attr->wrt == RLX_ATTENTION_WRT_bias && attr->mask_kind != RLX_MASK_KIND_bias)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: wrt bias needs mask_kind bias, not %s", c->name,
                          enum_word("mask_kind", attr->mask_kind));
    switch (attr->wrt) {
    case RLX_ATTENTION_WRT_key: return shape_result_like(c, 1);
    case RLX_ATTENTION_WRT_value: return shape_result_like(c, 2);
    case RLX_ATTENTION_WRT_bias: return shape_result_like(c, 4);
    default: return shape_result_like(c, 0);
    }
}

/* ---- rotary embeddings --------------------------------------------------------------------- */

static rlx_status need_even(struct shape_call *c, const char *attr, int64_t v)
{
    if (v % 2 == 0)
        return RLX_OK;
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s %" PRId64 " is odd", c->name, attr, v);
}

/* rope, rope_backward: x [..., heads head_dim] and tables of angles -> like x. */
rlx_status shape_rope(struct shape_call *c)
{
    struct attr_rope *a = &c->attr->rope;
    const struct ir_type *x = c->in[0];

    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 2, RLX_MAX_RANK));
    TRY(shape_need_range(c, "head_dim", a->head_dim, 2, INT64_MAX));
    TRY(need_even(c, "head_dim", a->head_dim));
    if (a->n_rot == RLX_ABSENT)
        a->n_rot = a->head_dim;
    TRY(shape_need_range(c, "n_rot", a->n_rot, 0, a->head_dim));
    TRY(need_even(c, "n_rot", a->n_rot));
    TRY(shape_axis(c, "seq_axis", &a->seq_axis, x->rank));
    if (a->seq_axis == x->rank - 1)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: seq_axis %" PRId64 " is the last axis of x %s",
                          c->name, a->seq_axis, dims_text(c, x->dim, x->rank));
    TRY(shape_need_multiple(c, x->dim[x->rank - 1], a->head_dim, "channels of x in head_dim"));
    TRY(shape_need_rope_tables(c, 1, x->dim[0], x->dim[a->seq_axis], a->n_rot / 2));
    return shape_result_like(c, 0);
}

/* axial_rope_2d: x [b, end_x end_y repeat_factor, num_heads head_dim] -> like x. */
rlx_status shape_axial_rope_2d(struct shape_call *c)
{
    const struct attr_axial_rope_2d *a = &c->attr->axial_rope_2d;
    const struct ir_type *x = c->in[0];
    struct dim_table *t = c->mod->dims;
    char text[32];

    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 3, 3));
    TRY(shape_need_range(c, "end_x", a->end_x, 1, INT64_MAX));
    TRY(shape_need_range(c, "end_y", a->end_y, 1, INT64_MAX));
    TRY(shape_need_range(c, "repeat_factor", a->repeat_factor, 1, INT64_MAX));
    TRY(shape_need_range(c, "num_heads", a->num_heads, 1, INT64_MAX));
    TRY(shape_need_range(c, "head_dim", a->head_dim, 4, INT64_MAX));
    if (a->head_dim % 4 != 0)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: head_dim %" PRId64 " is not a multiple of 4", c->name,
                          a->head_dim);
    if (!isfinite(a->theta) || a->theta <= 0) {
        str_from_f32(text, a->theta);
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: theta is %s, must be finite and above 0", c->name,
                          text);
    }
    TRY(shape_need_equal(c, x->dim[1], dim_mul(t, dim_mul(t, a->end_x, a->end_y), a->repeat_factor),
                         "tokens of x and end_x * end_y * repeat_factor"));
    TRY(shape_need_equal(c, x->dim[2], dim_mul(t, a->num_heads, a->head_dim),
                         "columns of x and num_heads * head_dim"));
    return shape_result_like(c, 0);
}
