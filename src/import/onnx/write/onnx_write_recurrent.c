/* onnx_write_recurrent.c: recurrent layers. ONNX wants the steps before the batch, gates in a
 * different order, and both biases in one tensor. */
#include "import/onnx/write/onnx_emit.h"

#define MAX_GATES 4

struct layer {
    const char *op;
    int gates;
    int order[MAX_GATES]; /* which of ours each of ONNX's is */
};

/* The rows of a weight or bias in ONNX's order. */
static rlx_str in_order(struct emit *e, const struct layer *l, int32_t operand)
{
    int64_t hidden = e->n->attr.recurrent.hidden_size;
    int64_t *row =
        l->gates > 1 ? arena_array(e->w->arena, int64_t, (size_t)(l->gates * hidden)) : NULL;

    if (!row)
        return e->in[operand]; /* one gate; or no memory, which shows elsewhere */
    for (int64_t i = 0; i < l->gates * hidden; i++)
        row[i] = l->order[i / hidden] * hidden + i % hidden;
    rlx_str y = emit_2(e, "Gather", e->in[operand], emit_i64s(e, row, (size_t)(l->gates * hidden)));
    emit_int(e, "axis", 1);
    return y;
}

static rlx_str lengths_of(struct emit *e, int32_t operand)
{
    rlx_str len = emit_cast(e, e->in[operand], emit_type(e, operand)->dtype, RLX_DTYPE_i32);
    rlx_str most = emit_cast(e, emit_dim(e, emit_type(e, 0)->dim[1]), RLX_DTYPE_i64, RLX_DTYPE_i32);

    return emit_2(e, "Max", emit_2(e, "Min", len, most), emit_number(e, RLX_DTYPE_i32, 0));
}

/* ONNX has the activations of each direction. */
static void name_activation(struct emit *e)
{
    static const char *const relu[] = {"Relu", "Relu"};
    const struct attr_recurrent *a = &e->n->attr.recurrent;

    if (a->activation == RLX_RNN_ACTIVATION_relu)
        emit_texts(e, "activations", relu, a->bidirectional ? 2 : 1);
}

static void write_layer(struct emit *e, const struct layer *l)
{
    const struct attr_recurrent *a = &e->n->attr.recurrent;
    bool is_lstm = l->gates == 4;
    size_t wanted = a->result == RLX_RNN_RESULT_seq ? 0 : a->result == RLX_RNN_RESULT_h ? 1 : 2;
    int32_t next = 5;
    const rlx_str biases[] = {in_order(e, l, 3), in_order(e, l, 4)};
    rlx_str none = STR(""), out[3];
    rlx_str in[7] = {emit_swap(e, e->in[0], 3, 0, 1),
                     in_order(e, l, 1),
                     in_order(e, l, 2),
                     emit_concat(e, biases, 2, 1),
                     none,
                     none,
                     none};

    if (a->has_state) {
        in[5] = e->in[next++];
        in[6] = is_lstm ? e->in[next++] : none;
    }
    if (a->has_lengths)
        in[4] = lengths_of(e, next);
    emit_outputs(e, l->op, in, is_lstm ? 7 : 6, out, is_lstm ? 3 : 2, 1u << wanted);
    emit_int(e, "hidden_size", a->hidden_size);
    emit_text(e, "direction", a->bidirectional ? "bidirectional" : "forward");
    if (l->gates == 3)
        emit_int(e, "linear_before_reset", 1);
    if (l->gates == 1)
        name_activation(e);
    if (wanted != 0) {
        emit_give(e, out[wanted]);
        return;
    }
    rlx_str y = emit_transpose(e, out[0], (const int64_t[]){2, 0, 1, 3}, 4); /* [T, dirs, B, H] */
    int64_t columns = a->hidden_size * (a->bidirectional ? 2 : 1);
    const int64_t shape[] = {0, 0, columns}; /* 0: as it was */
    emit_give(e, emit_2(e, "Reshape", y, emit_i64s(e, shape, 3)));
}

void write_lstm(struct emit *e)
{
    write_layer(e, &(const struct layer){"LSTM", 4, {0, 3, 1, 2}}); /* i f g o: i o f g */
}

void write_gru(struct emit *e)
{
    write_layer(e, &(const struct layer){"GRU", 3, {1, 0, 2}}); /* r z n: z r n */
}

void write_rnn(struct emit *e)
{
    write_layer(e, &(const struct layer){"RNN", 1, {0}});
}
