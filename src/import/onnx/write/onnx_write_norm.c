/* onnx_write_norm.c: norms. Where scales are wider than what they scale, or one op of ours is two,
 * all is computed in f32. */
#include "import/onnx/write/onnx_emit.h"

/* May ONNX's op have the operands as they are? */
static bool takes_all(const struct emit *e)
{
    if (e->n->op == RLX_OP_rms_norm && e->n->in_count > 2)
        return false; /* the sum is a separate node */
    for (int32_t i = 1; i < e->n->in_count; i++)
        if (emit_type(e, i)->dtype != emit_type(e, 0)->dtype)
            return false;
    return true;
}

static rlx_str operand(struct emit *e, int32_t i)
{
    return takes_all(e) ? e->in[i] : emit_up(e, i);
}

static void give(struct emit *e, rlx_str y)
{
    if (takes_all(e))
        emit_give(e, y);
    else
        emit_give_down(e, y);
}

/* ONNX normalises over the last axes. */
void write_layer_norm(struct emit *e)
{
    int32_t axis = (int32_t)e->n->attr.layer_norm.axis, last = e->n->type.rank - 1;
    rlx_str x = emit_swap(e, operand(e, 0), last + 1, axis, last);
    rlx_str y = emit_3(e, "LayerNormalization", x, operand(e, 1), operand(e, 2));

    emit_int(e, "axis", -1);
    emit_float(e, "epsilon", (double)e->n->attr.layer_norm.eps);
    give(e, emit_swap(e, y, last + 1, axis, last));
}

void write_rms_norm(struct emit *e)
{
    int32_t axis = (int32_t)e->n->attr.rms_norm.axis, last = e->n->type.rank - 1;
    rlx_str x = emit_swap(e, operand(e, 0), last + 1, axis, last);
    rlx_str y = emit_2(e, "RMSNormalization", x, operand(e, 1));

    emit_int(e, "axis", -1);
    emit_float(e, "epsilon", (double)e->n->attr.rms_norm.eps);
    if (e->n->in_count > 2)
        y = emit_2(e, "Add", y, operand(e, 2));
    give(e, emit_swap(e, y, last + 1, axis, last));
}

void write_group_norm(struct emit *e)
{
    rlx_str y = emit_3(e, "GroupNormalization", operand(e, 0), operand(e, 1), operand(e, 2));

    emit_int(e, "num_groups", e->n->attr.group_norm.num_groups);
    emit_float(e, "epsilon", (double)e->n->attr.group_norm.eps);
    give(e, y);
}

/* Channels are axis 1 there; a vector of them is one item. */
void write_batch_norm(struct emit *e)
{
    int32_t axis = (int32_t)e->n->attr.batch_norm_inference.axis, rank = e->n->type.rank;
    rlx_str x = operand(e, 0);

    x = rank == 1 ? emit_unsqueeze(e, x, 0) : emit_swap(e, x, rank, 1, axis);
    const rlx_str in[] = {x, operand(e, 1), operand(e, 2), operand(e, 3), operand(e, 4)};
    rlx_str y = emit_node(e, "BatchNormalization", in, 5);
    emit_float(e, "epsilon", (double)e->n->attr.batch_norm_inference.eps);
    give(e, rank == 1 ? emit_2(e, "Squeeze", y, emit_i64(e, 0)) : emit_swap(e, y, rank, 1, axis));
}
