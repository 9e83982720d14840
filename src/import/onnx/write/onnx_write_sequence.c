/* onnx_write_sequence.c: attention, rotary embedding, Fourier transform. */
#include <math.h>

#include "import/onnx/write/onnx_emit.h"
#include "ir/attention.h"

/* ---- attention ---- */

/* An operand as [B, H, S, D], or as [B, S, H D], which ONNX takes as well. */
static rlx_str heads_of(struct emit *e, int32_t operand, int64_t heads)
{
    const struct ir_type *t = emit_type(e, operand);

    if (e->n->attr.attention.layout == RLX_ATTENTION_LAYOUT_bshd)
        return emit_swap(e, e->in[operand], 4, 1, 2);
    if (e->n->attr.attention.layout == RLX_ATTENTION_LAYOUT_folded)
        return emit_reshape(e, e->in[operand],
                            RLX_LIST(RLX_DIM_INFER, heads, t->dim[1], t->dim[2]));
    return e->in[operand];
}

/* Where queries stand, the last one at the last key: [Sq, 1]. */
static rlx_str places(struct emit *e, ir_dim queries, ir_dim keys)
{
    rlx_str i = emit_unsqueeze(e, emit_range(e, queries), 1);
    rlx_str more = emit_2(e, "Sub", emit_dim(e, keys), emit_dim(e, queries));
    rlx_str offset = emit_2(e, "Max", more, emit_i64(e, 0));

    return emit_2(e, "Add", i, offset);
}

/* [Sq, Sk], by how far each key lies before the query. */
static rlx_str window_mask(struct emit *e, ir_dim queries, ir_dim keys)
{
    const struct attr_attention *a = &e->n->attr.attention;
    rlx_str at = places(e, queries, keys), d = emit_2(e, "Sub", at, emit_range(e, keys));
    rlx_str window = {0};

    if (a->mask_kind != RLX_MASK_KIND_causal)
        window = emit_number(e, RLX_DTYPE_i64, (double)a->window);
    if (a->mask_kind == RLX_MASK_KIND_symmetric_window)
        return emit_2(e, "LessOrEqual", emit_1(e, "Abs", d), window);
    rlx_str seen = emit_2(e, "GreaterOrEqual", d, emit_number(e, RLX_DTYPE_i64, 0));
    if (a->mask_kind == RLX_MASK_KIND_causal)
        return seen;
    if (a->mask_kind == RLX_MASK_KIND_chunked_window)
        window = emit_2(e, "Mod", at, window);
    return emit_2(e, "And", seen, emit_2(e, "LessOrEqual", d, window));
}

/* A mask of rank 4: true where a key is seen, or what is added to its score. */
static rlx_str given_mask(struct emit *e, ir_dim queries)
{
    const struct ir_type *m = emit_type(e, 3);
    rlx_str mask = e->in[3];

    if (e->n->attr.attention.mask_kind == RLX_MASK_KIND_bias)
        mask = emit_cast(e, mask, m->dtype, e->n->type.dtype);
    else if (dtype_is(m->dtype, CLASS_F))
        mask = emit_2(e, "GreaterOrEqual", mask, emit_number(e, m->dtype, 0.5));
    else if (m->dtype != RLX_DTYPE_bool)
        mask = emit_2(e, "Greater", mask, emit_number(e, m->dtype, 0));
    if (m->rank < 4)
        mask = emit_2(e, "Unsqueeze", mask,
                      m->rank == 3 ? emit_i64(e, 1) : emit_i64s(e, (const int64_t[]){1, 2}, 2));
    /* Not every runtime repeats a row of it for all queries. */
    bool one_row = m->rank == 2 || m->dim[m->rank - 2] == 1;
    return one_row && queries != 1 ? emit_expand(e, mask, RLX_LIST(1, 1, queries, 1)) : mask;
}

/* "": everything is seen. */
static rlx_str mask_of(struct emit *e, ir_dim queries, ir_dim keys, bool *causal)
{
    *causal = false;
    if (attention_has_mask(e->n->attr.attention.mask_kind))
        return given_mask(e, queries);
    if (e->n->attr.attention.mask_kind == RLX_MASK_KIND_none)
        return STR("");
    if (e->n->attr.attention.mask_kind == RLX_MASK_KIND_causal && queries == keys) {
        *causal = true; /* ONNX puts the first query at the first key */
        return STR("");
    }
    return window_mask(e, queries, keys);
}

void write_attention(struct emit *e)
{
    const struct attr_attention *a = &e->n->attr.attention;
    int32_t seq = e->n->attr.attention.layout == RLX_ATTENTION_LAYOUT_bhsd ? 2 : 1;
    bool causal, packed = e->n->attr.attention.layout == RLX_ATTENTION_LAYOUT_packed;
    int64_t kv = a->num_kv_heads;

    if (a->has_sinks || !isnan(a->alibi_max_bias)) {
        emit_refuse(e, "ONNX has no attention with %s", a->has_sinks ? "sinks" : "ALiBi");
        return;
    }
    rlx_str q = heads_of(e, 0, a->num_heads), k = heads_of(e, 1, kv), v = heads_of(e, 2, kv);
    k = emit_cast(e, k, emit_type(e, 1)->dtype, emit_type(e, 0)->dtype);
    v = emit_cast(e, v, emit_type(e, 2)->dtype, emit_type(e, 0)->dtype);
    rlx_str mask = mask_of(e, emit_type(e, 0)->dim[seq], emit_type(e, 1)->dim[seq], &causal);
    const rlx_str in[] = {q, k, v, mask};

    rlx_str y = emit_node(e, "Attention", in, mask.len ? 4 : 3);
    if (packed) {
        emit_int(e, "q_num_heads", a->num_heads);
        emit_int(e, "kv_num_heads", kv);
    }
    if (causal)
        emit_int(e, "is_causal", 1);
    if (!isnan(a->score_scale))
        emit_float(e, "scale", (double)a->score_scale);
    if (!isnan(a->logit_softcap))
        emit_float(e, "softcap", (double)a->logit_softcap);
    if (e->n->attr.attention.layout == RLX_ATTENTION_LAYOUT_bshd)
        y = emit_swap(e, y, 4, 1, 2);
    if (e->n->attr.attention.layout == RLX_ATTENTION_LAYOUT_folded)
        y = emit_reshape(e, y, rlx_list_of(3, e->n->type.dim));
    emit_give(e, y);
}

/* ---- rotary embedding ---- */

struct turn {
    rlx_dtype dtype; /* that it is computed in */
    int32_t rank;    /* of x, its heads apart */
    int64_t pairs, rotated, head;
    bool interleaved, back;
};

/* A table as [B or 1, .., S, .., pairs], to be multiplied with half of the channels. */
static rlx_str table_of(struct emit *e, const struct turn *r, int32_t operand, int32_t seq_axis)
{
    const struct ir_type *t = emit_type(e, operand), *x = emit_type(e, 0);
    rlx_list shape = {.count = r->rank};
    rlx_str table = emit_cast(e, e->in[operand], t->dtype, r->dtype);

    table = emit_slice(e, table, t->rank - 2, emit_i64(e, 0), emit_dim(e, x->dim[seq_axis]), 1);
    table = emit_part(e, table, t->rank - 1, 0, r->pairs);
    for (int32_t i = 0; i < r->rank; i++)
        shape.at[i] = 1;
    shape.at[seq_axis] = x->dim[seq_axis];
    shape.at[r->rank - 1] = r->pairs;
    if (t->rank == 3)
        shape.at[0] = RLX_DIM_INFER;
    return emit_reshape(e, table, shape);
}

/* Every other channel of those that turn, or one half of them. */
static rlx_str half_of(struct emit *e, const struct turn *r, rlx_str x, int64_t which)
{
    int64_t last = r->rank - 1;

    if (r->interleaved)
        return emit_slice(e, x, last, emit_i64(e, which), emit_i64(e, r->rotated), 2);
    return emit_part(e, x, last, which * r->pairs, r->pairs);
}

static rlx_str turned(struct emit *e, const struct turn *r, rlx_str x, rlx_str cos, rlx_str sin)
{
    rlx_str a = half_of(e, r, x, 0), b = half_of(e, r, x, 1), part[3];
    const char *first = r->back ? "Add" : "Sub", *second = r->back ? "Sub" : "Add";

    part[0] = emit_2(e, first, emit_2(e, "Mul", a, cos), emit_2(e, "Mul", b, sin));
    part[1] = emit_2(e, second, emit_2(e, "Mul", b, cos), emit_2(e, "Mul", a, sin));
    if (r->interleaved) { /* [.., pairs, 2] and flat again */
        part[0] = emit_unsqueeze(e, part[0], -1);
        part[1] = emit_unsqueeze(e, part[1], -1);
        rlx_str both = emit_concat(e, part, 2, -1);
        int64_t copy[RLX_MAX_RANK + 2] = {0}; /* 0: as it was */
        copy[r->rank - 1] = r->rotated;
        part[0] = emit_2(e, "Reshape", both, emit_i64s(e, copy, (size_t)r->rank));
        part[1] = emit_part(e, x, r->rank - 1, r->rotated, r->head - r->rotated);
        return r->rotated < r->head ? emit_concat(e, part, 2, -1) : part[0];
    }
    part[2] = r->rotated < r->head ? emit_part(e, x, r->rank - 1, r->rotated, r->head - r->rotated)
                                   : STR("");
    return emit_concat(e, part, r->rotated < r->head ? 3 : 2, -1);
}

static void write_turn(struct emit *e, bool back)
{
    const struct attr_rope *a = &e->n->attr.rope; /* the gradient has the same */
    const struct ir_type *x = emit_type(e, 0);
    int64_t rotated = a->n_rot == RLX_ABSENT ? a->head_dim : a->n_rot;
    int64_t heads = x->dim[x->rank - 1] / a->head_dim;
    struct turn r = {.dtype = emit_up_type(e),
                     .rank = x->rank + (heads != 1),
                     .pairs = rotated / 2,
                     .rotated = rotated,
                     .head = a->head_dim,
                     .interleaved = a->style == RLX_ROPE_STYLE_interleaved,
                     .back = back};
    rlx_list shape = rlx_list_of(x->rank, x->dim);

    if (rotated == 0) {
        emit_give(e, e->in[0]);
        return;
    }
    if (r.rank > RLX_MAX_RANK) {
        emit_refuse(e, "it has more than %d axes with its heads apart", RLX_MAX_RANK);
        return;
    }
    rlx_str y = emit_up(e, 0);
    if (heads != 1) {
        shape.at[shape.count - 1] = heads;
        shape.at[shape.count++] = a->head_dim;
        y = emit_reshape(e, y, shape);
    }
    y = turned(e, &r, y, table_of(e, &r, 1, (int32_t)a->seq_axis),
               table_of(e, &r, 2, (int32_t)a->seq_axis));
    if (heads != 1)
        y = emit_reshape(e, y, rlx_list_of(x->rank, x->dim));
    emit_give_down(e, y);
}

void write_rope(struct emit *e)
{
    write_turn(e, false);
}

void write_rope_backward(struct emit *e)
{
    write_turn(e, true);
}

/* ---- Fourier transform ---- */

/* Ours scales nothing unless asked to; ONNX divides the inverse by the length. */
static double fft_scale(const struct attr_fft *a, double n)
{
    if (a->norm == RLX_FFT_NORM_ortho)
        return a->inverse ? sqrt(n) : 1 / sqrt(n);
    return a->inverse && a->norm == RLX_FFT_NORM_backward ? n : 1;
}

/* [.., re, im] here, pairs there. */
void write_fft(struct emit *e)
{
    const struct attr_fft *a = &e->n->attr.fft;
    const struct ir_type *x = emit_type(e, 0);
    int32_t rank = x->rank;
    rlx_list shape = rlx_list_of(rank, x->dim);

    if (rank >= RLX_MAX_RANK || !dim_is_static(x->dim[rank - 1])) {
        emit_refuse(e, "its last axis is of a symbolic size, or there are too many axes");
        return;
    }
    int64_t n = x->dim[rank - 1] / 2;
    double scale = fft_scale(a, (double)n);
    shape.at[rank - 1] = 2;
    shape.at[shape.count++] = n;
    rlx_str y = emit_swap(e, emit_reshape(e, e->in[0], shape), rank + 1, rank - 1, rank);
    y = emit_3(e, "DFT", y, STR(""), emit_number(e, RLX_DTYPE_i64, rank - 1));
    emit_int(e, "inverse", a->inverse);
    y = emit_swap(e, y, rank + 1, rank - 1, rank);
    if (scale != 1)
        y = emit_2(e, "Mul", y, emit_number(e, x->dtype, scale));
    emit_give(e, emit_reshape(e, y, rlx_list_of(rank, x->dim)));
}
