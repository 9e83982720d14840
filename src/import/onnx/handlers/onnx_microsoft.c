/* onnx_microsoft.c: ops of the domain com.microsoft that exporters of transformers use. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/handlers/onnx_attention.h"
#include "import/onnx/handlers/onnx_quant.h"

static ir_value plus(struct onnx_call *c, ir_value x, size_t i)
{
    return onnx_has(c, i) ? formula_2(&c->f, RLX_OP_add, x, onnx_in(c, i)) : x;
}

void onnx_ms_gelu(struct onnx_call *c)
{
    onnx_give(c, 0, formula_1(&c->f, RLX_OP_gelu, plus(c, onnx_in(c, 0), 1)));
}

void onnx_ms_fast_gelu(struct onnx_call *c)
{
    onnx_give(c, 0, formula_1(&c->f, RLX_OP_gelu_approx, plus(c, onnx_in(c, 0), 1)));
}

void onnx_ms_quick_gelu(struct onnx_call *c)
{
    struct formula *f = &c->f;
    ir_value x = onnx_in(c, 0);

    f->dtype = onnx_type(c, 0)->dtype;
    ir_value gate = onnx_times(f, x, onnx_float(c, "alpha", 1.702));
    onnx_give(c, 0, formula_2(f, RLX_OP_mul, x, formula_1(f, RLX_OP_sigmoid, gate)));
}

void onnx_ms_fused_matmul(struct onnx_call *c)
{
    struct formula *f = &c->f;

    f->dtype = onnx_type(c, 0)->dtype;
    if (onnx_int(c, "transBatchA", 0) || onnx_int(c, "transBatchB", 0))
        onnx_unsupported(c, "batch axes that are transposed");
    ir_value y = formula_matmul(f, onnx_in(c, 0), onnx_in(c, 1), onnx_int(c, "transA", 0) != 0,
                                onnx_int(c, "transB", 0) != 0);
    onnx_give(c, 0, onnx_times(f, y, onnx_float(c, "alpha", 1)));
}

/* ---- norms of a sum ---- */

static ir_value zeros_like(struct onnx_call *c, size_t i)
{
    const struct ir_type t = *onnx_type(c, i);

    return formula_fill(&c->f, &t, 0);
}

/* input + skip + bias; the sum itself is output 3. */
static void skip_norm(struct onnx_call *c, rlx_op op, size_t bias)
{
    struct formula *f = &c->f;
    double eps = onnx_float(c, "epsilon", 1e-12);
    union ir_attr attr;
    ir_value sum = plus(c, formula_2(f, RLX_OP_add, onnx_in(c, 0), onnx_in(c, 1)), bias);
    ir_value in[] = {sum, onnx_in(c, 2), RLX_NO_VALUE};

    attr_defaults(op, &attr);
    if (op == RLX_OP_layer_norm) {
        in[2] = onnx_has(c, 3) ? onnx_in(c, 3) : zeros_like(c, 2);
        attr.layer_norm.eps = (float)eps;
    } else
        attr.rms_norm.eps = (float)eps;
    onnx_give(c, 0, formula_node(f, op, in, op == RLX_OP_layer_norm ? 3 : 2, &attr));
    onnx_give(c, 3, sum);
}

void onnx_ms_skip_layer_norm(struct onnx_call *c)
{
    skip_norm(c, RLX_OP_layer_norm, 4);
}

void onnx_ms_skip_rms_norm(struct onnx_call *c)
{
    skip_norm(c, RLX_OP_rms_norm, 3);
}

/* ---- attention ---- */

static double scale_of(struct onnx_call *c, int64_t head)
{
    double scale = onnx_float(c, "scale", 0);

    return scale != 0 ? scale : 1 / sqrt((double)head);
}

/* Keys that count: 1 in a mask [B, Sk], or the number of leading keys of each item, [B]. */
static ir_value key_mask(struct onnx_call *c, const struct onnx_heads *h, size_t i)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, i);
    ir_value m = onnx_in(c, i);

    if (t.rank == 2 || t.rank == 4) {
        ir_value shown = formula_2(f, RLX_OP_ne, m, formula_number_of(f, t.dtype, 0));
        if (t.rank == 2)
            shown = formula_reshape(f, shown, RLX_LIST(t.dim[0], 1, 1, t.dim[1]));
        return onnx_allow(c, shown);
    }
    if (t.rank == 3) {
        ir_value shown = formula_2(f, RLX_OP_ne, m, formula_number_of(f, t.dtype, 0));
        return onnx_allow(c, formula_reshape(f, shown, RLX_LIST(t.dim[0], 1, t.dim[1], t.dim[2])));
    }
    if (t.rank != 1 || t.dim[0] != h->batch) {
        onnx_unsupported(c, "a mask of rank %d", t.rank);
        return m;
    }
    ir_value len =
        formula_reshape(f, formula_cast(f, m, RLX_DTYPE_i64), RLX_LIST(t.dim[0], 1, 1, 1));
    ir_value j =
        formula_reshape(f, onnx_iota(c, h->keys, RLX_DTYPE_i64), RLX_LIST(1, 1, 1, h->keys));
    return onnx_allow(c, formula_2(f, RLX_OP_lt, j, len));
}

static ir_value causal_bias(struct onnx_call *c, const struct onnx_heads *h)
{
    struct formula *f = &c->f;
    ir_value d = onnx_distance(c, h, onnx_dim_value(f, h->past, RLX_DTYPE_i64));

    return onnx_allow(c, formula_2(f, RLX_OP_ge, d, formula_number_of(f, RLX_DTYPE_i64, 0)));
}

/* The masks together; RLX_NO_VALUE: none, or only causality, which is an attribute of the op. */
static ir_value masks(struct onnx_call *c, const struct onnx_heads *h, size_t mask, size_t added,
                      bool causal)
{
    ir_value bias = RLX_NO_VALUE;

    if (onnx_has(c, mask))
        bias = key_mask(c, h, mask);
    if (onnx_has(c, added))
        bias = onnx_add_bias(c, bias, onnx_in(c, added));
    if (causal && bias != RLX_NO_VALUE)
        bias = onnx_add_bias(c, bias, causal_bias(c, h));
    return bias;
}

/* Part i of three of x's last axis. */
static ir_value third(struct onnx_call *c, ir_value x, int64_t from, int64_t len)
{
    if (onnx_failed(c))
        return RLX_NO_VALUE;
    return formula_narrow(&c->f, x, formula_type(&c->f, x)->rank - 1, from, len);
}

/* all: queries, keys and values side by side; mask and added: numbers of inputs. */
static void attend_all(struct onnx_call *c, ir_value all, size_t mask, size_t added)
{
    int64_t heads = onnx_int(c, "num_heads", 0), at = 0;
    const struct onnx_attr *sizes = onnx_attr_as(c, "qkv_hidden_sizes", ONNX_ATTR_INTS);
    const struct ir_type w = *onnx_type(c, 1);
    struct onnx_heads h = {.past = 0};
    ir_value *part[] = {&h.q, &h.k, &h.v};

    for (size_t i = 0; i < 3; i++) {
        int64_t len = sizes && sizes->ints.count == 3 ? sizes->ints.at[i] : w.dim[1] / 3;
        *part[i] = onnx_split_heads(c, third(c, all, at, len), heads);
        at += len;
    }
    if (!onnx_measure_heads(c, &h))
        return;
    bool causal = onnx_int(c, "unidirectional", 0) != 0;
    ir_value y =
        onnx_attend(c, &h, scale_of(c, h.head), 0, causal, masks(c, &h, mask, added, causal));
    onnx_give(c, 0, onnx_join_heads(c, &h, y));
}

static bool fits_all(struct onnx_call *c, size_t past)
{
    const struct ir_type w = *onnx_type(c, 1);

    if (onnx_has(c, past) || w.rank != 2 || !type_is_static(&w) || onnx_int(c, "num_heads", 0) < 1)
        onnx_unsupported(c, "a past, or weights of rank %d", w.rank);
    return !onnx_failed(c);
}

/* One projection for queries, keys and values: input, weights, bias, mask, past, bias of scores. */
void onnx_ms_attention(struct onnx_call *c)
{
    struct formula *f = &c->f;

    f->dtype = onnx_type(c, 0)->dtype;
    if (fits_all(c, 4))
        attend_all(c, plus(c, formula_matmul(f, onnx_in(c, 0), onnx_in(c, 1), false, false), 2), 3,
                   5);
}

/* The same on integers: input, weights, bias, their scales, mask, zero points, past. */
void onnx_ms_q_attention(struct onnx_call *c)
{
    struct formula *f = &c->f;

    if (!fits_all(c, 8))
        return;
    if (onnx_int(c, "do_rotary", 0))
        onnx_unsupported(c, "rotary embedding");
    f->dtype = onnx_type(c, 2)->dtype;
    ir_value all = formula_matmul(f, onnx_whole(c, 0, 6), onnx_whole(c, 1, 7), false, false);
    ir_value scale = formula_2(f, RLX_OP_mul, onnx_in(c, 3), onnx_in(c, 4));
    all = formula_2(f, RLX_OP_mul, formula_cast(f, all, f->dtype), scale);
    attend_all(c, plus(c, all, 2), 5, SIZE_MAX);
}

/* query, key, value, bias of all three, mask of keys, bias of scores, past key, past value */
void onnx_ms_multi_head_attention(struct onnx_call *c)
{
    struct formula *f = &c->f;
    int64_t heads = onnx_int(c, "num_heads", 0), at = 0;
    struct onnx_heads h = {.past = 0};
    ir_value *part[] = {&h.q, &h.k, &h.v};

    f->dtype = onnx_type(c, 0)->dtype;
    if (onnx_type(c, 0)->rank != 3 || !onnx_has(c, 1) || !onnx_has(c, 2)) {
        onnx_unsupported(c, "packed queries, keys and values");
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        const struct ir_type t = *onnx_type(c, i);
        ir_value x = onnx_in(c, i);
        if (onnx_has(c, 3) && t.rank == 3) {
            x = formula_2(f, RLX_OP_add, x, formula_narrow(f, onnx_in(c, 3), 0, at, t.dim[2]));
            at += t.dim[2];
        }
        *part[i] = onnx_split_heads(c, x, heads);
    }
    if (onnx_has(c, 6) && onnx_has(c, 7)) {
        h.past = onnx_type(c, 6)->dim[2];
        h.k = formula_concat(f, (const ir_value[]){onnx_in(c, 6), h.k}, 2, 2);
        h.v = formula_concat(f, (const ir_value[]){onnx_in(c, 7), h.v}, 2, 2);
    }
    if (!onnx_measure_heads(c, &h))
        return;
    bool causal = onnx_int(c, "unidirectional", 0) != 0;
    ir_value bias = masks(c, &h, 4, 5, causal);
    if (causal && bias == RLX_NO_VALUE && h.queries != h.keys && !onnx_has(c, 6))
        bias = causal_bias(c, &h);
    ir_value y = onnx_attend(c, &h, scale_of(c, h.head), 0, causal, bias);
    onnx_give(c, 0, onnx_join_heads(c, &h, y));
    onnx_give(c, 1, h.k);
    onnx_give(c, 2, h.v);
}

/* ---- grouped queries, with a past that grows ---- */

/* x [B, H, S, D] turned to its positions, which begin at `from`, [B, 1]. */
static ir_value rotate(struct onnx_call *c, const struct onnx_heads *h, ir_value x, ir_value from)
{
    struct formula *f = &c->f;
    ir_value step =
        formula_reshape(f, onnx_iota(c, h->queries, RLX_DTYPE_i64), RLX_LIST(1, h->queries));
    ir_value at = formula_2(f, RLX_OP_add, step, from);
    union ir_attr attr;

    attr_defaults(RLX_OP_rope, &attr);
    attr.rope.head_dim = h->head;
    attr.rope.n_rot = 2 * onnx_type(c, 7)->dim[1];
    attr.rope.seq_axis = 2;
    enum_from_word("rope_style",
                   onnx_int(c, "rotary_interleaved", 0) ? STR("interleaved") : STR("half"),
                   &attr.rope.style);
    ir_value in[] = {x, formula_2(f, RLX_OP_gather, onnx_in(c, 7), at),
                     formula_2(f, RLX_OP_gather, onnx_in(c, 8), at)};
    return formula_node(f, RLX_OP_rope, in, 3, &attr);
}

/* The past with the new elements right after what each item has of it; they begin at `from`, [B,
 * 1].
 */
static ir_value extend(struct onnx_call *c, const struct onnx_heads *h, size_t past, ir_value fresh,
                       ir_value from)
{
    struct formula *f = &c->f;
    union ir_attr attr;

    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(f, fresh);
    ir_value room = formula_concat(f, (const ir_value[]){onnx_in(c, past), fresh}, 2, 2);
    ir_value step =
        formula_reshape(f, onnx_iota(c, h->queries, RLX_DTYPE_i64), RLX_LIST(1, 1, h->queries, 1));
    ir_value at =
        formula_2(f, RLX_OP_add, step, formula_reshape(f, from, RLX_LIST(RLX_DIM_INFER, 1, 1, 1)));
    attr_defaults(RLX_OP_scatter_elements, &attr);
    attr.scatter_elements.axis = 2;
    ir_value in[] = {room, formula_expand(f, at, formula_shape(&t)), fresh};
    return formula_node(f, RLX_OP_scatter_elements, in, 3, &attr);
}

/* The position of each item's first query: after what the item has of the past; a prompt begins at
 * 0, and shorter items are padded at the end. [B, 1] */
static ir_value first_positions(struct onnx_call *c, const struct onnx_heads *h)
{
    struct formula *f = &c->f;
    rlx_dtype t = RLX_DTYPE_i64;
    ir_value last = formula_cast(f, onnx_in(c, 5), t); /* of the valid keys */

    last = formula_reshape(f, last, RLX_LIST(RLX_DIM_INFER, 1));
    ir_value valid = formula_2(f, RLX_OP_add, last, formula_number_of(f, t, 1));
    ir_value from = formula_2(f, RLX_OP_sub, valid, onnx_dim_value(f, h->queries, t));
    return formula_2(f, RLX_OP_max, from, formula_number_of(f, t, 0));
}

/* Keys up to the query's own position, and no further back than the window. */
static ir_value group_bias(struct onnx_call *c, const struct onnx_heads *h, ir_value from)
{
    struct formula *f = &c->f;
    int64_t window = onnx_int(c, "local_window_size", -1);
    ir_value d = onnx_distance(c, h, formula_reshape(f, from, RLX_LIST(RLX_DIM_INFER, 1, 1, 1)));
    ir_value zero = formula_number_of(f, RLX_DTYPE_i64, 0);
    ir_value bias = onnx_allow(c, formula_2(f, RLX_OP_ge, d, zero));

    if (window < 0)
        return bias;
    ir_value far = formula_number_of(f, RLX_DTYPE_i64, (double)window);
    return onnx_add_bias(c, bias, onnx_allow(c, formula_2(f, RLX_OP_lt, d, far)));
}

/* query, key, value, past key, past value, last valid position of each item, total length, tables
 */
void onnx_ms_group_query_attention(struct onnx_call *c)
{
    struct onnx_heads h = {.past = 0};
    int64_t kv_heads = onnx_int(c, "kv_num_heads", 0);

    c->f.dtype = onnx_type(c, 0)->dtype;
    if (!onnx_has(c, 1) || !onnx_has(c, 2) || onnx_type(c, 0)->rank != 3) {
        onnx_unsupported(c, "packed queries, keys and values");
        return;
    }
    h.q = onnx_split_heads(c, onnx_in(c, 0), onnx_int(c, "num_heads", 0));
    h.k = onnx_split_heads(c, onnx_in(c, 1), kv_heads);
    h.v = onnx_split_heads(c, onnx_in(c, 2), kv_heads);
    if (!onnx_measure_heads(c, &h))
        return;
    ir_value from = first_positions(c, &h);
    if (onnx_int(c, "do_rotary", 0)) {
        h.q = rotate(c, &h, h.q, from);
        h.k = rotate(c, &h, h.k, from);
    }
    if (onnx_has(c, 3) && onnx_has(c, 4)) {
        h.k = extend(c, &h, 3, h.k, from);
        h.v = extend(c, &h, 4, h.v, from);
    }
    if (!onnx_measure_heads(c, &h))
        return;
    ir_value y = onnx_attend(c, &h, scale_of(c, h.head), onnx_float(c, "softcap", 0), true,
                             group_bias(c, &h, from));
    onnx_give(c, 0, onnx_join_heads(c, &h, y));
    onnx_give(c, 1, h.k);
    onnx_give(c, 2, h.v);
}

/* ---- packed weights ---- */

/* B [N, blocks, bytes]: the low half of a byte is the first of two. */
static ir_value unpack(struct onnx_call *c, ir_value packed, int64_t n, int64_t count)
{
    struct formula *f = &c->f;
    ir_value low = formula_2(f, RLX_OP_bit_and, packed, formula_number_of(f, RLX_DTYPE_u8, 15));
    ir_value high = formula_2(f, RLX_OP_shr, packed, formula_number_of(f, RLX_DTYPE_u8, 4));
    rlx_list apart = RLX_LIST(n, count / 2, 1);
    ir_value both[] = {formula_reshape(f, low, apart), formula_reshape(f, high, apart)};

    return formula_reshape(f, formula_concat(f, both, 2, 2), RLX_LIST(n, count));
}

/* A [.., K] times the transpose of a weight [N, K] in blocks of 4 or 8 bits, each with a scale and
 * a zero point. The weight is made whole from weights alone, so once. */
void onnx_ms_matmul_nbits(struct onnx_call *c)
{
    struct formula *f = &c->f;
    int64_t k = onnx_int(c, "K", 0), n = onnx_int(c, "N", 0), block = onnx_int(c, "block_size", 0);
    int64_t bits = onnx_int(c, "bits", 4);
    rlx_dtype t = onnx_type(c, 0)->dtype;

    if ((bits != 4 && bits != 8) || k < 1 || n < 1 || block < 2 || block % 2 || k > 1 << 24 ||
        n > 1 << 24 || onnx_has(c, 4)) {
        onnx_unsupported(c, "%lld bits in blocks of %lld, or a reordering of groups",
                         (long long)bits, (long long)block);
        return;
    }
    int64_t blocks = (k + block - 1) / block, row = blocks * block;
    f->dtype = t;
    rlx_list apart = RLX_LIST(n, blocks, block), per_block = RLX_LIST(n, blocks, 1);
    ir_value w = formula_reshape(f, onnx_in(c, 1), RLX_LIST(n, row * bits / 8));
    w = formula_cast(f, bits == 4 ? unpack(c, w, n, row) : w, t);
    ir_value zero = formula_number(f, bits == 4 ? 8 : 128);
    if (onnx_has(c, 3)) {
        zero = onnx_in(c, 3);
        if (onnx_type(c, 3)->dtype == RLX_DTYPE_u8 && bits == 4) {
            int64_t even = (blocks + 1) / 2 * 2;
            zero = formula_reshape(f, zero, RLX_LIST(n, even / 2));
            zero = formula_narrow(f, unpack(c, zero, n, even), 1, 0, blocks);
        }
        zero = formula_reshape(f, formula_cast(f, zero, t), per_block);
    }
    w = formula_2(f, RLX_OP_sub, formula_reshape(f, w, apart), zero);
    w = formula_2(f, RLX_OP_mul, w, formula_reshape(f, onnx_in(c, 2), per_block));
    w = formula_narrow(f, formula_reshape(f, w, RLX_LIST(n, row)), 1, 0, k);
    onnx_give(c, 0, plus(c, formula_matmul(f, onnx_in(c, 0), w, false, true), 5));
}
