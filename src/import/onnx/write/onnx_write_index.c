/* onnx_write_index.c: elements read and written by index. We clamp an index outside of its axis, or
 * leave it out; ONNX leaves that to the runtime, so indices that mean "nothing" are handled
 * here. */
#include <string.h>

#include "import/onnx/write/onnx_emit.h"

static rlx_str wide_index(struct emit *e, int32_t operand)
{
    return emit_cast(e, e->in[operand], emit_type(e, operand)->dtype, RLX_DTYPE_i64);
}

void write_gather(struct emit *e)
{
    rlx_str y = emit_2(e, "Gather", e->in[0], emit_index(e, 1));

    emit_int(e, "axis", e->n->attr.gather.axis);
    emit_give(e, y);
}

void write_gather_elements(struct emit *e)
{
    rlx_str y = emit_2(e, "GatherElements", e->in[0], emit_index(e, 1));

    emit_int(e, "axis", e->n->attr.gather_elements.axis);
    emit_give(e, y);
}

/* A coordinate of no numbers, which means all of the data, does not exist in ONNX. */
static bool has_coordinates(struct emit *e)
{
    const struct ir_type *t = emit_type(e, 1);

    if (t->dim[t->rank - 1] == 0)
        emit_refuse(e, "its coordinates have length 0");
    return t->dim[t->rank - 1] != 0;
}

void write_gather_nd(struct emit *e)
{
    if (!has_coordinates(e))
        return;
    rlx_str y = emit_2(e, "GatherND", e->in[0], wide_index(e, 1));

    emit_int(e, "batch_dims", e->n->attr.gather_nd.batch_dims);
    emit_give(e, y);
}

static const char *reduction_word(int32_t reduction)
{
    return enum_word("scatter_reduction", reduction); /* ONNX has the same words */
}

void write_scatter_elements(struct emit *e)
{
    rlx_str y = emit_3(e, "ScatterElements", e->in[0], emit_index(e, 1), e->in[2]);

    emit_int(e, "axis", e->n->attr.scatter_elements.axis);
    emit_text(e, "reduction", reduction_word(e->n->attr.scatter_elements.reduction));
    emit_give(e, y);
}

void write_scatter_nd(struct emit *e)
{
    if (!has_coordinates(e))
        return;
    rlx_str y = emit_3(e, "ScatterND", e->in[0], wide_index(e, 1), e->in[2]);

    emit_text(e, "reduction", reduction_word(e->n->attr.scatter_nd.reduction));
    emit_give(e, y);
}

/* Slices added into zeros of that shape, along their first axis. Those whose index lies outside are
 * left out: they are added to one more slice at the end, which is cut off. */
static rlx_str add_slices(struct emit *e, rlx_str updates, rlx_str indices, rlx_list shape)
{
    rlx_dtype t = RLX_DTYPE_i64;
    ir_dim n = shape.at[0];
    rlx_str size = emit_dim(e, n), rest[2] = {emit_2(e, "Add", size, emit_i64(e, 1)), STR("")};
    rlx_str below = emit_2(e, "Less", indices, emit_number(e, t, 0));
    rlx_str outside = emit_2(e, "Or", below, emit_2(e, "GreaterOrEqual", indices, size));

    indices = emit_3(e, "Where", outside, size, indices);
    memmove(shape.at, shape.at + 1, sizeof shape.at - sizeof shape.at[0]);
    shape.count--;
    rest[1] = emit_dims(e, shape);
    rlx_str more = emit_concat(e, rest, 2, 0);
    rlx_str zeros = emit_2(e, "Expand", emit_number(e, e->n->type.dtype, 0), more);
    rlx_str y = emit_3(e, "ScatterND", zeros, emit_unsqueeze(e, indices, -1), updates);
    emit_text(e, "reduction", "add");
    return emit_slice(e, y, 0, emit_i64(e, 0), size, 1);
}

void write_scatter_add(struct emit *e)
{
    rlx_list shape = rlx_list_of(e->n->type.rank, e->n->type.dim);

    emit_give(e, add_slices(e, e->in[0], wide_index(e, 1), shape));
}

/* The axes of the indices come first, then it is as above, then the axis goes where it was. */
void write_gather_backward(struct emit *e)
{
    const struct ir_type *dy = emit_type(e, 0), *out = &e->n->type;
    int32_t axis = (int32_t)e->n->attr.gather_backward.axis, q = emit_type(e, 1)->rank, k = 0;
    int64_t perm[RLX_MAX_RANK], back[RLX_MAX_RANK];
    rlx_list shape = {.count = out->rank};

    for (int32_t i = 0; i < q; i++)
        perm[k++] = axis + i;
    for (int32_t i = 0; i < dy->rank; i++)
        if (i < axis || i >= axis + q)
            perm[k++] = i;
    k = 0;
    shape.at[k++] = out->dim[axis];
    for (int32_t i = 0; i < out->rank; i++) {
        back[i] = i < axis ? i + 1 : i == axis ? 0 : i;
        if (i != axis)
            shape.at[k++] = out->dim[i];
    }
    rlx_str updates = emit_transpose(e, e->in[0], perm, dy->rank);
    rlx_str y = add_slices(e, updates, wide_index(e, 1), shape);
    emit_give(e, emit_transpose(e, y, back, out->rank));
}

/* The numbers from 0 to n-1, as i64. */
rlx_str emit_range(struct emit *e, ir_dim n)
{
    rlx_str end = emit_reshape(e, emit_dim(e, n), RLX_EMPTY);

    return emit_3(e, "Range", emit_number(e, RLX_DTYPE_i64, 0), end,
                  emit_number(e, RLX_DTYPE_i64, 1));
}

/* Rows written into the state from a position on, its axis in front. */
void write_cache_append(struct emit *e)
{
    int32_t axis = (int32_t)e->n->attr.cache_append.axis, rank = e->n->type.rank;
    rlx_str at = emit_reshape(e, wide_index(e, 2), RLX_LIST(1));
    rlx_str rows = emit_2(e, "Add", emit_range(e, emit_type(e, 1)->dim[axis]), at);
    rlx_str state = emit_swap(e, e->in[0], rank, 0, axis);
    rlx_str y = emit_3(e, "ScatterND", state, emit_unsqueeze(e, rows, -1),
                       emit_swap(e, e->in[1], rank, 0, axis));

    emit_give(e, emit_swap(e, y, rank, 0, axis));
}
