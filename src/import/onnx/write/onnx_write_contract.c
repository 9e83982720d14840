/* onnx_write_contract.c: products of matrices. */
#include "import/onnx/write/onnx_emit.h"

void write_matmul(struct emit *e)
{
    const struct attr_matmul *a = &e->n->attr.matmul;
    int32_t ra = emit_type(e, 0)->rank, rb = emit_type(e, 1)->rank;
    rlx_str x = a->transpose_a ? emit_swap(e, e->in[0], ra, ra - 2, ra - 1) : e->in[0];
    rlx_str y = a->transpose_b ? emit_swap(e, e->in[1], rb, rb - 2, rb - 1) : e->in[1];

    emit_give(e, emit_2(e, "MatMul", x, y));
}

static bool holds(const rlx_list *l, int64_t axis)
{
    for (int32_t i = 0; i < l->count; i++)
        if (l->at[i] == axis)
            return true;
    return false;
}

/* A letter per axis: those of the left side are a, b, ..; the right side has the same ones where it
 * is paired with it, otherwise the next. */
void write_dot_general(struct emit *e)
{
    const struct attr_dot_general *a = &e->n->attr.dot_general;
    int32_t ra = emit_type(e, 0)->rank, rb = emit_type(e, 1)->rank;
    char left[RLX_MAX_RANK + 1] = "", right[RLX_MAX_RANK + 1] = "", out[2 * RLX_MAX_RANK + 1] = "";
    size_t n = 0;

    for (int32_t i = 0; i < ra; i++)
        left[i] = (char)('a' + i);
    for (int32_t i = 0; i < rb; i++)
        right[i] = (char)('a' + ra + i);
    for (int32_t i = 0; i < a->rhs_contracting.count; i++)
        right[a->rhs_contracting.at[i]] = left[a->lhs_contracting.at[i]];
    for (int32_t i = 0; i < a->rhs_batch.count; i++)
        right[a->rhs_batch.at[i]] = out[n++] = left[a->lhs_batch.at[i]];
    for (int32_t i = 0; i < ra; i++)
        if (!holds(&a->lhs_contracting, i) && !holds(&a->lhs_batch, i))
            out[n++] = left[i];
    for (int32_t i = 0; i < rb; i++)
        if (!holds(&a->rhs_contracting, i) && !holds(&a->rhs_batch, i))
            out[n++] = right[i];
    rlx_dtype t = e->n->type.dtype, taken = t == RLX_DTYPE_bf16 ? RLX_DTYPE_f32 : t;
    rlx_str y =
        emit_2(e, "Einsum", emit_cast(e, e->in[0], t, taken), emit_cast(e, e->in[1], t, taken));
    emit_text(e, "equation", emit_text_of(e->w, "%s,%s->%s", left, right, out).ptr);
    emit_give(e, emit_cast(e, y, taken, t));
}

/* Each row with the matrix it asks for. */
void write_grouped_matmul(struct emit *e)
{
    rlx_str w = emit_2(e, "Gather", e->in[1], emit_index(e, 2));
    rlx_str y = emit_2(e, "MatMul", emit_unsqueeze(e, e->in[0], 1), w);

    emit_give(e, emit_2(e, "Squeeze", y, emit_i64(e, 1)));
}

/* In f64: the determinant itself is soon too large for less. */
void write_logdet(struct emit *e)
{
    rlx_dtype t = RLX_DTYPE_f64;
    rlx_str det = emit_1(e, "Det", emit_cast(e, e->in[0], emit_type(e, 0)->dtype, t));

    emit_give(e, emit_cast(e, emit_1(e, "Log", emit_1(e, "Abs", det)), t, e->n->type.dtype));
}
