/* onnx_attention.c: attention and rotary embedding of ONNX.
 *
 *     Y = softmax(softcap(scale Q K^T) + bias) V      with bias from a mask, causality, a window
 * and how many keys are not padding
 *
 * Where only Y is needed it is our attention; otherwise it is written out. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/handlers/onnx_attention.h"

ir_value onnx_split_heads(struct onnx_call *c, ir_value x, int64_t heads)
{
    struct formula *f = &c->f;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, x);
    if (t.rank == 4)
        return x;
    if (t.rank != 3 || heads < 1 || !dim_is_static(t.dim[2]) || t.dim[2] % heads) {
        formula_fail(f, RLX_ERROR_SHAPE, "rows that are not a multiple of %lld heads",
                     (long long)heads);
        return x;
    }
    x = formula_reshape(f, x, RLX_LIST(t.dim[0], t.dim[1], heads, t.dim[2] / heads));
    return formula_transpose(f, x, RLX_LIST(0, 2, 1, 3));
}

ir_value onnx_join_heads(struct onnx_call *c, const struct onnx_heads *h, ir_value y)
{
    y = formula_transpose(&c->f, y, RLX_LIST(0, 2, 1, 3));
    return formula_reshape(&c->f, y, RLX_LIST(h->batch, h->queries, h->q_heads * h->value_head));
}

bool onnx_measure_heads(struct onnx_call *c, struct onnx_heads *h)
{
    struct formula *f = &c->f;

    if (onnx_failed(c))
        return false;
    const struct ir_type q = *formula_type(f, h->q), k = *formula_type(f, h->k),
                         v = *formula_type(f, h->v);
    if (!dim_is_static(q.dim[1]) || !dim_is_static(k.dim[1]) || !dim_is_static(q.dim[3]) ||
        !dim_is_static(v.dim[3]) || k.dim[1] < 1 || q.dim[1] % k.dim[1]) {
        onnx_unsupported(c, "heads of symbolic number or size, or queries that do not share them");
        return false;
    }
    h->q_heads = q.dim[1];
    h->kv_heads = k.dim[1];
    h->head = q.dim[3];
    h->value_head = v.dim[3];
    h->batch = q.dim[0];
    h->queries = q.dim[2];
    h->keys = k.dim[2];
    return true;
}

static bool begin(struct onnx_call *c, struct onnx_heads *h)
{
    struct formula *f = &c->f;
    int64_t q_heads = onnx_int(c, "q_num_heads", 0), kv_heads = onnx_int(c, "kv_num_heads", 0);

    f->dtype = onnx_type(c, 0)->dtype;
    *h = (struct onnx_heads){.q = onnx_split_heads(c, onnx_in(c, 0), q_heads),
                             .k = onnx_split_heads(c, onnx_in(c, 1), kv_heads),
                             .v = onnx_split_heads(c, onnx_in(c, 2), kv_heads)};
    if (onnx_has(c, 4) && onnx_has(c, 5)) {
        h->past = onnx_type(c, 4)->rank == 4 ? onnx_type(c, 4)->dim[2] : 0;
        h->k = formula_concat(f, (const ir_value[]){onnx_in(c, 4), h->k}, 2, 2);
        h->v = formula_concat(f, (const ir_value[]){onnx_in(c, 5), h->v}, 2, 2);
    }
    return onnx_measure_heads(c, h);
}

/* ---- the bias ---- */

ir_value onnx_allow(struct onnx_call *c, ir_value condition)
{
    struct formula *f = &c->f;

    return formula_where(f, condition, formula_number(f, 0), formula_number(f, -INFINITY));
}

ir_value onnx_add_bias(struct onnx_call *c, ir_value a, ir_value b)
{
    return a == RLX_NO_VALUE ? b : formula_2(&c->f, RLX_OP_add, a, b);
}

/* The mask as [.., .., Sq, Sk] to add; what it lacks of the keys is not to be seen. */
static ir_value mask_bias(struct onnx_call *c, const struct onnx_heads *h)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 3);
    ir_value m = onnx_in(c, 3);
    bool is_bool = t.dtype == RLX_DTYPE_bool;
    rlx_list before = {.count = t.rank}, after = {.count = t.rank}, shape = {.count = 4};

    if (t.rank < 1 || t.rank > 4) {
        onnx_unsupported(c, "a mask of rank %d", t.rank);
        return m;
    }
    ir_dim have = t.dim[t.rank - 1];
    if (have != h->keys && dim_is_static(have) && dim_is_static(h->keys) && have < h->keys) {
        after.at[t.rank - 1] = h->keys - have;
        m = onnx_pad_of(f, m, before, after, is_bool ? 0 : -INFINITY);
    }
    if (onnx_failed(c))
        return m;
    for (int32_t i = 0; i < 4; i++)
        shape.at[i] = i < 4 - t.rank ? 1 : formula_type(f, m)->dim[i - (4 - t.rank)];
    m = formula_reshape(f, m, shape);
    return is_bool ? onnx_allow(c, m) : formula_cast(f, m, f->dtype);
}

ir_value onnx_distance(struct onnx_call *c, const struct onnx_heads *h, ir_value offset)
{
    struct formula *f = &c->f;
    rlx_dtype t = RLX_DTYPE_i64;
    ir_value i = formula_reshape(f, onnx_iota(c, h->queries, t), RLX_LIST(1, 1, h->queries, 1));
    ir_value j = formula_reshape(f, onnx_iota(c, h->keys, t), RLX_LIST(1, 1, 1, h->keys));

    return formula_2(f, RLX_OP_sub, formula_2(f, RLX_OP_add, i, offset), j);
}

/* The position of the first query: after the past, or so that the last one meets the last key that
 * is not padding. */
static ir_value first_position(struct onnx_call *c, const struct onnx_heads *h)
{
    struct formula *f = &c->f;
    rlx_dtype t = RLX_DTYPE_i64;

    if (!onnx_has(c, 6))
        return onnx_dim_value(f, h->past, t);
    ir_value len = formula_cast(f, onnx_in(c, 6), t);
    ir_value offset = formula_2(f, RLX_OP_sub, len, onnx_dim_value(f, h->queries, t));
    return formula_reshape(f, offset, RLX_LIST(RLX_DIM_INFER, 1, 1, 1));
}

static ir_value compare_distance(struct onnx_call *c, ir_value d, rlx_op op, int64_t n)
{
    return onnx_allow(c,
                      formula_2(&c->f, op, d, formula_number_of(&c->f, RLX_DTYPE_i64, (double)n)));
}

/* RLX_NO_VALUE: there is none. causal: that is left to the op. */
static ir_value bias_of(struct onnx_call *c, const struct onnx_heads *h, bool causal)
{
    struct formula *f = &c->f;
    int64_t left = onnx_int(c, "left_window_size", -1);
    int64_t right = onnx_int(c, "right_window_size", -1);
    ir_value bias = RLX_NO_VALUE;

    if (onnx_has(c, 3))
        bias = mask_bias(c, h);
    if (causal || left >= 0 || right >= 0) {
        ir_value d = onnx_distance(c, h, first_position(c, h));
        if (causal)
            bias = onnx_add_bias(c, bias, compare_distance(c, d, RLX_OP_ge, 0));
        if (left >= 0)
            bias = onnx_add_bias(c, bias, compare_distance(c, d, RLX_OP_le, left));
        if (right >= 0)
            bias = onnx_add_bias(c, bias, compare_distance(c, d, RLX_OP_ge, -right));
    }
    if (onnx_has(c, 6)) {
        ir_value len = formula_reshape(f, formula_cast(f, onnx_in(c, 6), RLX_DTYPE_i64),
                                       RLX_LIST(RLX_DIM_INFER, 1, 1, 1));
        ir_value j =
            formula_reshape(f, onnx_iota(c, h->keys, RLX_DTYPE_i64), RLX_LIST(1, 1, 1, h->keys));
        bias = onnx_add_bias(c, bias, onnx_allow(c, formula_2(f, RLX_OP_lt, j, len)));
    }
    return bias;
}

/* ---- the product ---- */

ir_value onnx_attend(struct onnx_call *c, const struct onnx_heads *h, double scale, double softcap,
                     bool causal, ir_value bias)
{
    ir_value in[] = {h->q, h->k, h->v, bias};
    union ir_attr attr;

    attr_defaults(RLX_OP_attention, &attr);
    attr.attention.num_heads = h->q_heads;
    attr.attention.num_kv_heads = h->kv_heads;
    attr.attention.head_dim = h->head;
    if (scale != 1 / sqrt((double)h->head)) /* which is the default, and in f64 exact */
        attr.attention.score_scale = (float)scale;
    if (softcap > 0)
        attr.attention.logit_softcap = (float)softcap;
    enum_from_word("attention_layout", STR("bhsd"), &attr.attention.layout);
    enum_from_word("mask_kind",
                   bias != RLX_NO_VALUE ? STR("bias")
                   : causal             ? STR("causal")
                                        : STR("none"),
                   &attr.attention.mask_kind);
    return formula_node(&c->f, RLX_OP_attention, in, bias == RLX_NO_VALUE ? 3 : 4, &attr);
}

ir_value onnx_in_groups(struct onnx_call *c, ir_value x, int64_t groups, int64_t each)
{
    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(&c->f, x);
    return formula_reshape(&c->f, x, RLX_LIST(t.dim[0], groups, each, t.dim[2], t.dim[3]));
}

static ir_value written_out(struct onnx_call *c, const struct onnx_heads *h, double scale,
                            double softcap, ir_value bias)
{
    struct formula *f = &c->f;
    int64_t each = h->q_heads / h->kv_heads, mode = onnx_int(c, "qk_matmul_output_mode", 0);
    int64_t precision = onnx_int(c, "softmax_precision", 0);
    rlx_dtype in = f->dtype;
    union ir_attr attr;

    ir_value s = formula_matmul(f, onnx_in_groups(c, h->q, h->kv_heads, each),
                                onnx_in_groups(c, h->k, h->kv_heads, 1), false, true);
    s = formula_reshape(f, s, RLX_LIST(h->batch, h->q_heads, h->queries, h->keys));
    s = onnx_times(f, s, scale);
    if (softcap > 0)
        s = onnx_times(f, formula_1(f, RLX_OP_tanh, onnx_times(f, s, 1 / softcap)), softcap);
    ir_value shown = s;
    if (bias != RLX_NO_VALUE)
        s = formula_2(f, RLX_OP_add, s, bias);
    if (mode == 2)
        shown = s;
    if (precision)
        onnx_dtype(precision, &in);
    attr_defaults(RLX_OP_softmax, &attr);
    attr.softmax.axis = 3;
    s = formula_cast(f, s, in);
    s = formula_cast(f, formula_node(f, RLX_OP_softmax, &s, 1, &attr), f->dtype);
    if (mode == 3)
        shown = s;
    onnx_give(c, 3, shown);
    ir_value y = formula_matmul(f, onnx_in_groups(c, s, h->kv_heads, each),
                                onnx_in_groups(c, h->v, h->kv_heads, 1), false, false);
    return formula_reshape(f, y, RLX_LIST(h->batch, h->q_heads, h->queries, h->value_head));
}

void onnx_attention(struct onnx_call *c)
{
    struct onnx_heads h;
    double softcap = onnx_float(c, "softcap", 0);
    bool causal = onnx_int(c, "is_causal", 0) != 0;

    if (!begin(c, &h))
        return;
    double scale = onnx_float(c, "scale", 1 / sqrt((double)h.head));
    bool shows = c->out_count > 3 && c->node->output.at[3].len;
    bool windowed =
        onnx_int(c, "left_window_size", -1) >= 0 || onnx_int(c, "right_window_size", -1) >= 0;
    /* Ours lets the last query see the last key. */
    bool aligned = onnx_has(c, 4) || h.queries == h.keys;
    bool plain = causal && aligned && !onnx_has(c, 3) && !onnx_has(c, 6) && !windowed;
    bool fits = !shows && h.head == h.value_head && !onnx_attr(c, "softmax_precision");
    ir_value bias = bias_of(c, &h, causal && !(plain && fits));
    ir_value y = fits ? onnx_attend(c, &h, scale, softcap, causal, bias)
                      : written_out(c, &h, scale, softcap, bias);
    if (onnx_type(c, 0)->rank == 3)
        y = onnx_join_heads(c, &h, y);
    onnx_give(c, 0, y);
    onnx_give(c, 1, h.k);
    onnx_give(c, 2, h.v);
}

/* ---- rotary embedding ---- */

/* Tables [P, T] by position, [B, S]; or [B, S, T] already. */
static ir_value table(struct onnx_call *c, size_t i, ir_value position)
{
    return position == RLX_NO_VALUE ? onnx_in(c, i)
                                    : formula_2(&c->f, RLX_OP_gather, onnx_in(c, i), position);
}

static void rotate(struct onnx_call *c, size_t cos, size_t sin, ir_value position, int64_t heads)
{
    const struct ir_type t = *onnx_type(c, 0);
    int64_t rotated = onnx_int(c, "rotary_embedding_dim", 0);
    union ir_attr attr;

    if (t.rank < 3 || t.rank > 4 || !dim_is_static(t.dim[t.rank - 1]) ||
        (t.rank == 3 && (heads < 1 || t.dim[2] % heads))) {
        onnx_unsupported(c, "a tensor of rank %d in %lld heads", t.rank, (long long)heads);
        return;
    }
    attr_defaults(RLX_OP_rope, &attr);
    attr.rope.head_dim = t.rank == 4 ? t.dim[3] : t.dim[2] / heads;
    if (rotated)
        attr.rope.n_rot = rotated;
    attr.rope.seq_axis = t.rank - 2;
    enum_from_word("rope_style", onnx_int(c, "interleaved", 0) ? STR("interleaved") : STR("half"),
                   &attr.rope.style);
    ir_value in[] = {onnx_in(c, 0), table(c, cos, position), table(c, sin, position)};
    onnx_give(c, 0, formula_node(&c->f, RLX_OP_rope, in, 3, &attr));
}

void onnx_rotary_embedding(struct onnx_call *c)
{
    rotate(c, 1, 2, onnx_has(c, 3) ? onnx_in(c, 3) : RLX_NO_VALUE, onnx_int(c, "num_heads", 0));
}

/* The same with positions in front; a single one is where all items begin. */
void onnx_ms_rotary_embedding(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0), p = *onnx_type(c, 1);
    int64_t heads = onnx_int(c, "num_heads", 0), rotated = onnx_int(c, "rotary_embedding_dim", 0);
    ir_value at = formula_cast(f, onnx_in(c, 1), RLX_DTYPE_i64);

    if (t.rank < 3 || t.rank > 4 || onnx_failed(c)) {
        onnx_unsupported(c, "a tensor of rank %d", t.rank);
        return;
    }
    if (heads == 0 && t.rank == 3 && rotated == 0 && dim_is_static(t.dim[2])) {
        ir_dim half = onnx_type(c, 2)->dim[1]; /* the size of a head follows from the tables */
        heads = half > 0 ? t.dim[2] / (2 * half) : 0;
    }
    if (p.rank == 1) {
        ir_dim len = t.dim[t.rank - 2];
        at = formula_2(f, RLX_OP_add, at, onnx_iota(c, len, RLX_DTYPE_i64));
        at = formula_expand(f, formula_reshape(f, at, RLX_LIST(1, len)), RLX_LIST(t.dim[0], len));
    }
    rotate(c, 2, 3, at, heads);
}
