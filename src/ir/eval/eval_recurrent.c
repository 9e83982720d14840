/* eval_recurrent.c: lstm, gru and rnn layers, step by step (ops-core.md 21).
 *
 * Both directions have weights of their own, the reverse one second. An item with a length goes
 * through its first `length` steps only, the reverse direction from the last of those back. */
#include <math.h>

#include "ir/eval/eval.h"

/* One direction of a layer, at work on one item. */
struct layer {
    rlx_op op;
    int32_t activation;
    int64_t inputs, hidden, gates;
    const struct eval_cell *w_ih, *w_hh, *b_ih, *b_hh; /* of the direction */
    double *h, *c, *next;                              /* [hidden]; c for lstm */
    double *from_x, *from_h;                           /* [gates hidden] */
};

static int64_t gates_of(rlx_op op)
{
    return op == RLX_OP_lstm ? 4 : op == RLX_OP_gru ? 3 : 1;
}

/* What the step's input and the state before it bring to every gate. */
static void weigh(struct layer *l, const struct eval_cell *x)
{
    for (int64_t r = 0; r < l->gates * l->hidden; r++) {
        double in = l->b_ih[r].f, back = l->b_hh[r].f;
        for (int64_t i = 0; i < l->inputs; i++)
            in += l->w_ih[r * l->inputs + i].f * x[i].f;
        for (int64_t i = 0; i < l->hidden; i++)
            back += l->w_hh[r * l->hidden + i].f * l->h[i];
        l->from_x[r] = in;
        l->from_h[r] = back;
    }
}

static double gate(const struct layer *l, int64_t g, int64_t i)
{
    return l->from_x[g * l->hidden + i] + l->from_h[g * l->hidden + i];
}

/* Gates i, f, g, o. */
static double lstm_unit(struct layer *l, int64_t i)
{
    l->c[i] =
        eval_sigmoid(gate(l, 1, i)) * l->c[i] + eval_sigmoid(gate(l, 0, i)) * tanh(gate(l, 2, i));
    return eval_sigmoid(gate(l, 3, i)) * tanh(l->c[i]);
}

/* Gates r, z, n; r bears on what n gets from the state, its bias included. */
static double gru_unit(const struct layer *l, int64_t i)
{
    double r = eval_sigmoid(gate(l, 0, i)), z = eval_sigmoid(gate(l, 1, i));
    double n = tanh(l->from_x[2 * l->hidden + i] + r * l->from_h[2 * l->hidden + i]);

    return (1 - z) * n + z * l->h[i];
}

static double rnn_unit(const struct layer *l, int64_t i)
{
    rlx_op f = l->activation == RLX_RNN_ACTIVATION_relu ? RLX_OP_relu : RLX_OP_tanh;

    return eval_unary_value(f, gate(l, 0, i));
}

static void step(struct layer *l, const struct eval_cell *x)
{
    weigh(l, x);
    for (int64_t i = 0; i < l->hidden; i++)
        l->next[i] = l->op == RLX_OP_lstm  ? lstm_unit(l, i)
                     : l->op == RLX_OP_gru ? gru_unit(l, i)
                                           : rnn_unit(l, i);
    for (int64_t i = 0; i < l->hidden; i++)
        l->h[i] = l->next[i];
}

static rlx_status layer_open(struct eval_call *c, struct layer *l)
{
    const struct attr_recurrent *attr = &c->attr->recurrent;
    int64_t all = gates_of(c->op) * attr->hidden_size; /* w_hh holds more */

    *l = (struct layer){.op = c->op,
                        .activation = attr->activation,
                        .inputs = c->in[0]->type.dim[2],
                        .hidden = attr->hidden_size,
                        .gates = gates_of(c->op)};
    double **room[] = {&l->h, &l->c, &l->next, &l->from_x, &l->from_h};
    for (size_t i = 0; i < sizeof room / sizeof room[0]; i++) {
        *room[i] = arena_array(c->arena, double, (size_t)(i < 3 ? l->hidden : all));
        if (!*room[i])
            return diag_no_memory(c->diag, (size_t)all * sizeof **room);
    }
    return RLX_OK;
}

/* Weights and first state of direction dir for item b. */
static void layer_begin(struct eval_call *c, struct layer *l, int64_t dir, int64_t b)
{
    const struct attr_recurrent *attr = &c->attr->recurrent;
    int64_t rows = dir * l->gates * l->hidden, items = c->in[0]->type.dim[0];

    l->w_ih = c->in[1]->at + rows * l->inputs;
    l->w_hh = c->in[2]->at + rows * l->hidden;
    l->b_ih = c->in[3]->at + rows;
    l->b_hh = c->in[4]->at + rows;
    for (int64_t i = 0; i < l->hidden; i++) {
        int64_t at = (dir * items + b) * l->hidden + i;
        l->h[i] = attr->has_state ? c->in[5]->at[at].f : 0;
        l->c[i] = attr->has_state && l->op == RLX_OP_lstm ? c->in[6]->at[at].f : 0;
    }
}

static int64_t length_of(const struct eval_call *c, int64_t b, int64_t steps)
{
    if (!c->attr->recurrent.has_lengths)
        return steps;
    int64_t length = eval_index(c->in[c->in_count - 1], b);
    return length < 0 ? 0 : length > steps ? steps : length;
}

static void run_item(struct eval_call *c, struct layer *l, int64_t dir, int64_t b)
{
    const struct attr_recurrent *attr = &c->attr->recurrent;
    int64_t items = c->in[0]->type.dim[0], steps = c->in[0]->type.dim[1];
    int64_t dirs = attr->bidirectional ? 2 : 1, length = length_of(c, b, steps);

    layer_begin(c, l, dir, b);
    for (int64_t s = 0; s < length; s++) {
        int64_t row = b * steps + (dir ? length - 1 - s : s);
        step(l, c->in[0]->at + row * l->inputs);
        for (int64_t i = 0; attr->result == RLX_RNN_RESULT_seq && i < l->hidden; i++)
            c->out->at[(row * dirs + dir) * l->hidden + i].f = l->h[i];
    }
    for (int64_t i = 0; attr->result != RLX_RNN_RESULT_seq && i < l->hidden; i++)
        c->out->at[(dir * items + b) * l->hidden + i].f =
            attr->result == RLX_RNN_RESULT_c ? l->c[i] : l->h[i];
}

rlx_status eval_recurrent(struct eval_call *c)
{
    int64_t dirs = c->attr->recurrent.bidirectional ? 2 : 1;
    struct layer l;

    if (c->out->count == 0) /* whatever its dims are */
        return RLX_OK;
    TRY(layer_open(c, &l));
    for (int64_t dir = 0; dir < dirs; dir++)
        for (int64_t b = 0; b < c->in[0]->type.dim[0]; b++)
            run_item(c, &l, dir, b);
    return RLX_OK;
}
