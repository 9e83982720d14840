/* expand_recurrent.c: mamba2 and the recurrent layers as scans (ops-core.md 17.3, 21), for devices
 * without kernels of their own and for differentiation.
 *
 *     mamba2            carries M [b,h,d,n]; y is read from all of them at the end
 *     lstm, gru, rnn    a scan per direction, which carries h [b,h], lstm h and c as [2,b,h]; what
 *                       inputs bring to the gates is one product before it
 *
 * The reverse direction goes through x from its last step on. Steps past an item's length come
 * first there, and leave its state alone, so that it too begins where the item ends. */
#include "base/str.h"
#include "pass/expand/expand.h"

#define LIST(...)                                                              \
    rlx_list_of((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                (const int64_t[]){__VA_ARGS__})
#define MUL(a, b) formula_2(f, RLX_OP_mul, (a), (b))
#define ADD(a, b) formula_2(f, RLX_OP_add, (a), (b))

/* ---- formulas with shapes ------------------------------------------------------------------ */

/* a w^T */
static ir_value product(struct formula *f, ir_value a, ir_value w)
{
    return formula_matmul(f, a, w, false, true);
}

/* ---- bodies -------------------------------------------------------------------------------- */

/* A scan being built: its operands in order, and its body, whose inputs are like them. */
struct loop {
    struct formula *f; /* of the graph that the scan stands in */
    struct formula body;
    struct ir_graph *graph;
    ir_dim length;
    int32_t count, bcasts; /* operands; how many of them stay the same */
    ir_value operand[8], input[8];
};

static rlx_status loop_begin(struct loop *l, struct formula *f, ir_dim length)
{
    *l = (struct loop){.f = f, .length = length};
    TRY(f->status);
    TRY(ir_graph_add(f->g->mod, ir_free_graph_name(f->g->mod, STR("step")), &l->graph, f->diag));
    l->body = (struct formula){.g = l->graph, .diag = f->diag, .dtype = f->dtype};
    return RLX_OK;
}

/* The next operand: the first is carried, and xs are seen step by step. */
static ir_value loop_operand(struct loop *l, ir_value v, bool xs)
{
    static const char *const name[8] = {"carry", "a", "b", "c", "d", "e", "f", "g"};
    union ir_attr attr;

    if (l->f->status != RLX_OK)
        return RLX_NO_VALUE;
    const struct ir_type *t = formula_type(l->f, v);
    attr_defaults(RLX_OP_input, &attr);
    attr.leaf.name = (struct ir_blob){name[l->count], rlx_cstr(name[l->count]).len};
    attr.leaf.dtype = t->dtype;
    attr.leaf.shape = rlx_list_of(t->rank - (xs ? 1 : 0), t->dim + (xs ? 1 : 0));
    l->operand[l->count] = v;
    l->input[l->count] = formula_node(&l->body, RLX_OP_input, NULL, 0, &attr);
    l->bcasts += l->count > 0 && !xs;
    return l->input[l->count++];
}

/* The scan itself, whose body gives `next`. */
static ir_value loop_end(struct loop *l, ir_value next, bool trajectory)
{
    union ir_attr attr;
    rlx_status s = l->f->status != RLX_OK ? l->f->status : l->body.status;

    if (s == RLX_OK)
        s = ir_add_output(l->graph, next, l->f->diag);
    l->f->status = s;
    attr_defaults(RLX_OP_scan, &attr);
    attr.scan.body = l->graph->id;
    attr.scan.length = l->length;
    attr.scan.num_bcast = l->bcasts;
    attr.scan.num_xs = l->count - 1 - l->bcasts;
    attr.scan.save_trajectory = trajectory;
    return formula_node(l->f, RLX_OP_scan, l->operand, l->count, &attr);
}

/* ---- mamba2 -------------------------------------------------------------------------------- */

/* M = decay M + x b^T, M being [b,h,d,n]. */
static ir_value mamba_loop(struct formula *f, ir_dim length, ir_value init, ir_value decay,
                           ir_value x, ir_value b)
{
    struct loop l;

    f->status = loop_begin(&l, f, length);
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    ir_value m = loop_operand(&l, init, false), e = loop_operand(&l, decay, true);
    ir_value in = loop_operand(&l, x, true), key = loop_operand(&l, b, true);
    m = formula_2(&l.body, RLX_OP_mul, m, e);
    m = formula_2(&l.body, RLX_OP_add, m, formula_2(&l.body, RLX_OP_mul, in, key));
    return loop_end(&l, m, true);
}

/* b or c [b,s,groups,n] for all heads: [b,s,h,n]. */
static ir_value of_heads(struct formula *f, const struct ir_node *n, ir_value x)
{
    ir_dim items = n->type.dim[0], steps = n->type.dim[1], heads = n->type.dim[2];
    int64_t groups = n->attr.mamba2.groups, states = n->attr.mamba2.state_size;

    if (groups == RLX_ABSENT)
        return x;
    ir_dim each = dim_exact_div(f->g->mod->dims, heads, groups);
    x = formula_reshape(f, x, LIST(items, steps, groups, 1, states));
    x = formula_expand(f, x, LIST(items, steps, groups, each, states));
    return formula_reshape(f, x, LIST(items, steps, heads, states));
}

/* Operands with time first: decay [s,b,h,1,1], dt x [s,b,h,d,1], b [s,b,h,1,n], c [s,b,h,n,1]. */
rlx_status expand_mamba2(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out)
{
    struct formula whole = expand_formula(r, RLX_DTYPE_f32), *f = &whole;
    ir_dim items = n->type.dim[0], steps = n->type.dim[1], heads = n->type.dim[2];
    int64_t width = n->attr.mamba2.head_dim, states = n->attr.mamba2.state_size;
    rlx_list time_first = LIST(1, 0, 2, 3);

    ir_value dt = formula_reshape(f, formula_transpose(f, in[1], LIST(1, 0, 2)),
                                  LIST(steps, items, heads, 1));
    ir_value a = formula_reshape(f, in[2], LIST(heads, 1));
    ir_value decay = formula_1(f, RLX_OP_exp, MUL(dt, a));
    ir_value x = MUL(formula_transpose(f, in[0], time_first), dt);
    ir_value init = formula_expand(f, formula_number(f, 0), LIST(items, heads, width, states));
    ir_value m =
        mamba_loop(f, steps, init, formula_reshape(f, decay, LIST(steps, items, heads, 1, 1)),
                   formula_reshape(f, x, LIST(steps, items, heads, width, 1)),
                   formula_reshape(f, formula_transpose(f, of_heads(f, n, in[3]), time_first),
                                   LIST(steps, items, heads, 1, states)));
    ir_value c = formula_reshape(f, formula_transpose(f, of_heads(f, n, in[4]), time_first),
                                 LIST(steps, items, heads, states, 1));
    ir_value y = formula_2(f, RLX_OP_matmul, m, c);
    *out =
        formula_transpose(f, formula_reshape(f, y, LIST(steps, items, heads, width)), time_first);
    return f->status;
}

/* ---- recurrent layers ---------------------------------------------------------------------- */

struct layer {
    const struct ir_node *n;
    const struct attr_recurrent *attr;
    ir_dim items, steps;
    int64_t gates, hidden;
    ir_value x;            /* [s,b,i] */
    ir_value weight[4];    /* w_ih, w_hh, b_ih, b_hh, of all directions */
    ir_value h0, c0, mask; /* [dirs,b,h]; [s,b,1], true where there is a step; none: no value */
};

/* Gate g of [b, gates h]. */
static ir_value gate(struct formula *f, const struct layer *l, ir_value all, int64_t g)
{
    return formula_narrow(f, all, 1, g * l->hidden, l->hidden);
}

static ir_value lstm_units(struct formula *f, const struct layer *l, ir_value z, ir_value *c)
{
    ir_value i = formula_1(f, RLX_OP_sigmoid, gate(f, l, z, 0));
    ir_value keep = formula_1(f, RLX_OP_sigmoid, gate(f, l, z, 1));
    ir_value g = formula_1(f, RLX_OP_tanh, gate(f, l, z, 2));
    ir_value o = formula_1(f, RLX_OP_sigmoid, gate(f, l, z, 3));

    *c = ADD(MUL(keep, *c), MUL(i, g));
    return MUL(o, formula_1(f, RLX_OP_tanh, *c));
}

/* m = tanh(x + r h); the next is (1 - z) m + z h. */
static ir_value gru_units(struct formula *f, const struct layer *l, ir_value x, ir_value back,
                          ir_value h)
{
    ir_value r = formula_1(f, RLX_OP_sigmoid, ADD(gate(f, l, x, 0), gate(f, l, back, 0)));
    ir_value z = formula_1(f, RLX_OP_sigmoid, ADD(gate(f, l, x, 1), gate(f, l, back, 1)));
    ir_value m = formula_1(f, RLX_OP_tanh, ADD(gate(f, l, x, 2), MUL(r, gate(f, l, back, 2))));

    return ADD(MUL(formula_2(f, RLX_OP_sub, formula_number(f, 1), z), m), MUL(z, h));
}

/* The next carry. x, back [b, gates h]: what input and state bring, biases included. */
static ir_value step(struct formula *f, const struct layer *l, ir_value carry, ir_value x,
                     ir_value w, ir_value bias)
{
    rlx_list one = LIST(l->items, l->hidden), row = LIST(1, l->items, l->hidden);
    bool lstm = l->n->op == RLX_OP_lstm;
    ir_value h = lstm ? formula_reshape(f, formula_narrow(f, carry, 0, 0, 1), one) : carry;
    ir_value back = ADD(product(f, h, w), bias);

    if (lstm) {
        ir_value c = formula_reshape(f, formula_narrow(f, carry, 0, 1, 1), one);
        h = formula_reshape(f, lstm_units(f, l, ADD(x, back), &c), row);
        return formula_concat(f, (const ir_value[]){h, formula_reshape(f, c, row)}, 2, 0);
    }
    if (l->n->op == RLX_OP_gru)
        return gru_units(f, l, x, back, h);
    return formula_1(f, l->attr->activation == RLX_RNN_ACTIVATION_relu ? RLX_OP_relu : RLX_OP_tanh,
                     ADD(x, back));
}

/* Direction dir of a weight [dirs, ..] of that shape. */
static ir_value direction(struct formula *f, ir_value w, int64_t dir, rlx_list shape)
{
    return formula_reshape(f, formula_narrow(f, w, 0, dir, 1), shape);
}

/* Where a direction begins: h0 [b,h], or h0 and c0 as [2,b,h]. */
static ir_value beginning(struct formula *f, const struct layer *l, int64_t dir)
{
    bool lstm = l->n->op == RLX_OP_lstm;
    rlx_list one = LIST(l->items, l->hidden), both = LIST(2, l->items, l->hidden);

    if (l->h0 == RLX_NO_VALUE)
        return formula_expand(f, formula_number(f, 0), lstm ? both : one);
    if (!lstm)
        return direction(f, l->h0, dir, one);
    return formula_concat(f,
                          (const ir_value[]){formula_narrow(f, l->h0, 0, dir, 1),
                                             formula_narrow(f, l->c0, 0, dir, 1)},
                          2, 0);
}

static ir_value layer_loop(struct formula *f, const struct layer *l, int64_t dir, ir_value x,
                           ir_value mask)
{
    int64_t all = l->gates * l->hidden;
    struct loop loop;

    f->status = loop_begin(&loop, f, l->steps);
    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    ir_value carry = loop_operand(&loop, beginning(f, l, dir), false);
    ir_value w = direction(f, l->weight[1], dir, LIST(all, l->hidden));
    ir_value bias = direction(f, l->weight[3], dir, LIST(all));
    w = loop_operand(&loop, w, false);
    bias = loop_operand(&loop, bias, false);
    x = loop_operand(&loop, x, true);
    ir_value next = step(&loop.body, l, carry, x, w, bias);
    if (mask != RLX_NO_VALUE)
        next = formula_where(&loop.body, loop_operand(&loop, mask, true), next, carry);
    return loop_end(&loop, next, l->attr->result == RLX_RNN_RESULT_seq);
}

/* What direction dir yields: [b,s,h], or its last state [1,b,h]. */
static ir_value one_direction(struct formula *f, const struct layer *l, int64_t dir)
{
    bool lstm = l->n->op == RLX_OP_lstm, seq = l->attr->result == RLX_RNN_RESULT_seq;
    int64_t all = l->gates * l->hidden;
    ir_dim inputs = formula_type(f, l->weight[0])->dim[2];
    ir_value mask = l->mask, y;

    ir_value x = product(f, l->x, direction(f, l->weight[0], dir, LIST(all, inputs)));
    x = ADD(x, direction(f, l->weight[2], dir, LIST(all)));
    if (dir) {
        x = formula_reverse(f, x, 0);
        mask = mask == RLX_NO_VALUE ? mask : formula_reverse(f, mask, 0);
    }
    y = layer_loop(f, l, dir, x, mask);
    if (!seq) {
        if (lstm)
            y = formula_narrow(f, y, 0, l->attr->result == RLX_RNN_RESULT_c ? 1 : 0, 1);
        return formula_reshape(f, y, LIST(1, l->items, l->hidden));
    }
    if (lstm)
        y = formula_narrow(f, y, 1, 0, 1);
    y = formula_reshape(f, y, LIST(l->steps, l->items, l->hidden));
    if (mask != RLX_NO_VALUE)
        y = formula_where(f, mask, y, formula_number(f, 0));
    return formula_transpose(f, dir ? formula_reverse(f, y, 0) : y, LIST(1, 0, 2));
}

/* Step t of item b is one where t < its length. Steps are counted in f32, in which they are exact
 * as far as anybody will go. */
static ir_value steps_within(struct formula *f, const struct layer *l, ir_value lengths)
{
    union ir_attr attr;
    ir_value ones, count, limit = formula_cast(f, lengths, RLX_DTYPE_f32);
    struct formula plain = {
        .g = f->g, .diag = f->diag, .dtype = RLX_DTYPE_f32, .status = f->status};

    ones = formula_expand(&plain, formula_number(&plain, 1), LIST(l->steps, 1, 1));
    attr_defaults(RLX_OP_cumsum, &attr);
    attr.cumulative.axis = 0;
    attr.cumulative.exclusive = true;
    count = formula_node(&plain, RLX_OP_cumsum, &ones, 1, &attr);
    f->status = f->status == RLX_OK ? plain.status : f->status;
    return formula_2(f, RLX_OP_lt, count, formula_reshape(f, limit, LIST(1, l->items, 1)));
}

rlx_status expand_recurrent(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                            ir_value *out)
{
    struct formula whole = expand_formula(r, n->type.dtype), *f = &whole;
    const struct attr_recurrent *a = &n->attr.recurrent;
    const struct ir_type x = *expand_type(r, in[0]);
    struct layer l = {.n = n,
                      .attr = a,
                      .items = x.dim[0],
                      .steps = x.dim[1],
                      .hidden = a->hidden_size,
                      .gates = n->op == RLX_OP_lstm  ? 4
                               : n->op == RLX_OP_gru ? 3
                                                     : 1,
                      .h0 = RLX_NO_VALUE,
                      .c0 = RLX_NO_VALUE,
                      .mask = RLX_NO_VALUE};
    ir_value y[2];

    l.x = formula_transpose(f, formula_cast(f, in[0], f->dtype), LIST(1, 0, 2));
    for (int i = 0; i < 4; i++)
        l.weight[i] = formula_cast(f, in[1 + i], f->dtype);
    if (a->has_state)
        l.h0 = formula_cast(f, in[5], f->dtype);
    if (a->has_state && n->op == RLX_OP_lstm)
        l.c0 = formula_cast(f, in[6], f->dtype);
    if (a->has_lengths)
        l.mask = steps_within(f, &l, in[n->in_count - 1]);
    int32_t dirs = a->bidirectional ? 2 : 1;
    for (int32_t dir = 0; f->status == RLX_OK && dir < dirs; dir++)
        y[dir] = one_direction(f, &l, dir);
    TRY(f->status);
    *out = formula_concat(f, y, dirs, a->result == RLX_RNN_RESULT_seq ? 2 : 0);
    *out = formula_cast(f, *out, n->type.dtype);
    return f->status;
}
