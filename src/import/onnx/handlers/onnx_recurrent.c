/* onnx_recurrent.c: RNN, GRU and LSTM of ONNX.
 *
 *     X [T, B, I]   W [dirs, G H, I]   R [dirs, G H, H]   B [dirs, 2 G H]: of W, then of R
 *     Y [T, dirs, B, H]   Y_h, Y_c [dirs, B, H]          layout 1: batch first
 *
 * Where our layers fit it is one of them. Else steps are written out, one after the other, with
 * whatever activation, peephole and clipping there is. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

#define MAX_STEPS 1024
#define MAX_GATES 4

struct layer {
    int gates; /* 1: RNN, 3: GRU, 4: LSTM */
    int64_t dirs, hidden;
    ir_dim batch, steps;
    bool batch_first;
    size_t lengths, h0, c0, peephole; /* numbers of inputs */
    ir_value x;                       /* [T, B, I] */
};

/* What one direction is computed with. */
struct direction {
    ir_value w, r;           /* [G H, I], [G H, H] */
    ir_value bias_w, bias_r; /* [G H]; RLX_NO_VALUE: none */
    ir_value peephole;       /* [3 H]; likewise */
    ir_value h, c;           /* [B, H] */
    int64_t number;
};

/* ---- activations ---- */

static double constant(struct onnx_call *c, const char *name, size_t i, double otherwise)
{
    const struct onnx_attr *a = onnx_attr_as(c, name, ONNX_ATTR_FLOATS);

    return a && i < a->floats.count ? (double)a->floats.at[i] : otherwise;
}

static ir_value apply(struct onnx_call *c, rlx_str name, size_t i, ir_value x)
{
    struct formula *f = &c->f;

    if (str_eq(name, STR("Sigmoid")))
        return formula_1(f, RLX_OP_sigmoid, x);
    if (str_eq(name, STR("Tanh")))
        return formula_1(f, RLX_OP_tanh, x);
    if (str_eq(name, STR("Relu")))
        return formula_1(f, RLX_OP_relu, x);
    if (str_eq(name, STR("Softsign")))
        return formula_1(f, RLX_OP_softsign, x);
    if (str_eq(name, STR("Softplus")))
        return formula_1(f, RLX_OP_softplus, x);
    if (str_eq(name, STR("HardSigmoid"))) {
        ir_value line = onnx_times(f, x, constant(c, "activation_alpha", i, 0.2));
        return onnx_clamp_of(f, onnx_plus(f, line, constant(c, "activation_beta", i, 0.5)), 0, 1);
    }
    if (str_eq(name, STR("Affine")))
        return onnx_plus(f, onnx_times(f, x, constant(c, "activation_alpha", i, 1)),
                         constant(c, "activation_beta", i, 0));
    onnx_unsupported(c, "activation %.*s", STR_ARG(name));
    return x;
}

/* Activation `which` of the direction: clipped first, if the node says so. */
static ir_value activate(struct onnx_call *c, const struct layer *l, int64_t dir, int which,
                         ir_value x)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh"};
    const struct onnx_attr *a = onnx_attr_as(c, "activations", ONNX_ATTR_STRINGS);
    const struct onnx_attr *clip = onnx_attr_as(c, "clip", ONNX_ATTR_FLOAT);
    int each = l->gates == 4 ? 3 : l->gates == 3 ? 2 : 1;
    size_t i = (size_t)(dir * each + which);
    rlx_str name = rlx_cstr(defaults[l->gates == 1 ? 1 : which]);

    if (clip)
        x = onnx_clamp_of(&c->f, x, -fabs((double)clip->f), fabs((double)clip->f));
    if (a && i < a->strings.count)
        name = a->strings.at[i];
    return apply(c, name, i, x);
}

/* ---- one step ---- */

static ir_value gate(struct onnx_call *c, const struct layer *l, ir_value v, int32_t axis, int g)
{
    return formula_narrow(&c->f, v, axis, g * l->hidden, l->hidden);
}

static ir_value add(struct onnx_call *c, ir_value a, ir_value b)
{
    return b == RLX_NO_VALUE ? a : formula_2(&c->f, RLX_OP_add, a, b);
}

static ir_value mul(struct onnx_call *c, ir_value a, ir_value b)
{
    return formula_2(&c->f, RLX_OP_mul, a, b);
}

/* Gate g of x with the cell seen through a peephole, if there is one. */
static ir_value peephole(struct onnx_call *c, const struct layer *l, const struct direction *d,
                         ir_value x, int which, ir_value cell)
{
    if (d->peephole == RLX_NO_VALUE)
        return x;
    return add(c, x, mul(c, gate(c, l, d->peephole, 0, which), cell));
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void step_lstm(struct onnx_call *c, const struct layer *l, struct direction *d, ir_value all)
{
    struct formula *f = &c->f;
    ir_value in = activate(c, l, d->number, 0, peephole(c, l, d, gate(c, l, all, 1, 0), 0, d->c));
    ir_value forget =
        onnx_int(c, "input_forget", 0)
            ? formula_2(f, RLX_OP_sub, formula_number(f, 1), in)
            : activate(c, l, d->number, 0, peephole(c, l, d, gate(c, l, all, 1, 2), 2, d->c));
    ir_value fresh = activate(c, l, d->number, 1, gate(c, l, all, 1, 3));
    ir_value cell = add(c, mul(c, forget, d->c), mul(c, in, fresh));
    ir_value out = activate(c, l, d->number, 0, peephole(c, l, d, gate(c, l, all, 1, 1), 1, cell));

    d->c = cell;
    d->h = mul(c, out, activate(c, l, d->number, 2, cell));
}

/* Gates z, r, h; the last one's product with the state is reset before or after it. */
static void step_gru(struct onnx_call *c, const struct layer *l, struct direction *d, ir_value x,
                     ir_value h)
{
    struct formula *f = &c->f;
    ir_value z = activate(c, l, d->number, 0, add(c, gate(c, l, x, 1, 0), gate(c, l, h, 1, 0)));
    ir_value r = activate(c, l, d->number, 0, add(c, gate(c, l, x, 1, 1), gate(c, l, h, 1, 1)));
    ir_value from;

    if (onnx_int(c, "linear_before_reset", 0))
        from = mul(c, r, gate(c, l, h, 1, 2));
    else {
        from = formula_matmul(f, mul(c, r, d->h), gate(c, l, d->r, 0, 2), false, true);
        if (d->bias_r != RLX_NO_VALUE)
            from = add(c, from, gate(c, l, d->bias_r, 0, 2));
    }
    ir_value fresh = activate(c, l, d->number, 1, add(c, gate(c, l, x, 1, 2), from));
    ir_value keep = formula_2(f, RLX_OP_sub, formula_number(f, 1), z);
    d->h = add(c, mul(c, keep, fresh), mul(c, z, d->h));
}

/* x: what the step's input brings to the gates, [B, G H]. Items that have ended keep their state
 * and give zeros. */
static ir_value step(struct onnx_call *c, const struct layer *l, struct direction *d, ir_value x,
                     int64_t t)
{
    struct formula *f = &c->f;
    ir_value before_h = d->h, before_c = d->c;
    ir_value h = add(c, formula_matmul(f, d->h, d->r, false, true), d->bias_r);

    if (l->gates == 4)
        step_lstm(c, l, d, add(c, x, h));
    else if (l->gates == 3)
        step_gru(c, l, d, x, h);
    else
        d->h = activate(c, l, d->number, 0, add(c, x, h));
    if (!onnx_has(c, l->lengths))
        return d->h;
    ir_value len = formula_reshape(f, onnx_in(c, l->lengths), RLX_LIST(l->batch, 1));
    ir_value runs = formula_2(f, RLX_OP_gt, len,
                              formula_number_of(f, onnx_type(c, l->lengths)->dtype, (double)t));
    ir_value out = formula_where(f, runs, d->h, formula_number(f, 0));
    d->h = formula_where(f, runs, d->h, before_h);
    if (l->gates == 4)
        d->c = formula_where(f, runs, d->c, before_c);
    return out;
}

/* ---- a direction, a layer ---- */

static ir_value of_direction(struct onnx_call *c, ir_value v, int64_t dir)
{
    if (onnx_failed(c))
        return RLX_NO_VALUE;
    const struct ir_type t = *formula_type(&c->f, v);
    return formula_reshape(&c->f, formula_narrow(&c->f, v, 0, dir, 1),
                           rlx_list_of(t.rank - 1, &t.dim[1]));
}

static ir_value first_state(struct onnx_call *c, const struct layer *l, size_t i, int64_t dir)
{
    struct formula *f = &c->f;
    struct ir_type t = {.dtype = f->dtype, .rank = 2, .dim = {l->batch, l->hidden}};

    if (!onnx_has(c, i))
        return formula_fill(f, &t, 0);
    ir_value v = onnx_in(c, i);
    if (l->batch_first)
        v = formula_transpose(f, v, RLX_LIST(1, 0, 2));
    return of_direction(c, v, dir);
}

static struct direction begin_direction(struct onnx_call *c, const struct layer *l, int64_t dir)
{
    struct formula *f = &c->f;
    int64_t all = l->gates * l->hidden;
    struct direction d = {.w = of_direction(c, onnx_in(c, 1), dir),
                          .r = of_direction(c, onnx_in(c, 2), dir),
                          .bias_w = RLX_NO_VALUE,
                          .bias_r = RLX_NO_VALUE,
                          .peephole = RLX_NO_VALUE,
                          .h = first_state(c, l, l->h0, dir),
                          .number = dir};

    if (l->gates == 4)
        d.c = first_state(c, l, l->c0, dir);
    if (onnx_has(c, 3)) {
        ir_value b = of_direction(c, onnx_in(c, 3), dir);
        d.bias_w = formula_narrow(f, b, 0, 0, all);
        d.bias_r = formula_narrow(f, b, 0, all, all);
    }
    if (l->gates == 4 && onnx_has(c, l->peephole))
        d.peephole = of_direction(c, onnx_in(c, l->peephole), dir);
    return d;
}

/* All steps; y gets their outputs as [T, 1, B, H], in the order of time. */
static struct direction run_direction(struct onnx_call *c, const struct layer *l, int64_t dir,
                                      bool backward, ir_value *y)
{
    struct formula *f = &c->f;
    struct direction d = begin_direction(c, l, dir);
    ir_value part[MAX_STEPS];
    ir_value x = add(c, formula_matmul(f, l->x, d.w, false, true), d.bias_w); /* [T, B, G H] */
    rlx_list shape = RLX_LIST(1, 1, l->batch, l->hidden);

    for (int64_t i = 0; i < l->steps && !onnx_failed(c); i++) {
        int64_t t = backward ? l->steps - 1 - i : i;
        part[t] = formula_reshape(f, step(c, l, &d, of_direction(c, x, t), t), shape);
    }
    if (!onnx_failed(c))
        *y = formula_concat(f, part, (int32_t)l->steps, 0);
    return d;
}

static bool begin_layer(struct onnx_call *c, int gates, struct layer *l)
{
    const struct ir_type x = *onnx_type(c, 0), r = *onnx_type(c, 2);

    *l = (struct layer){.gates = gates,
                        .lengths = 4,
                        .h0 = 5,
                        .c0 = 6,
                        .peephole = 7,
                        .batch_first = onnx_int(c, "layout", 0) != 0};
    c->f.dtype = x.dtype;
    if (onnx_failed(c))
        return false;
    if (x.rank != 3 || r.rank != 3 || !type_is_static(&r) || r.dim[0] < 1 || r.dim[0] > 2) {
        formula_fail(&c->f, RLX_ERROR_SHAPE, "an input of rank %d, weights of rank %d", x.rank,
                     r.rank);
        return false;
    }
    l->dirs = r.dim[0];
    l->hidden = r.dim[2];
    l->steps = x.dim[l->batch_first ? 1 : 0];
    l->batch = x.dim[l->batch_first ? 0 : 1];
    l->x = onnx_in(c, 0);
    if (l->batch_first)
        l->x = formula_transpose(&c->f, l->x, RLX_LIST(1, 0, 2));
    return true;
}

/* ---- as a layer of ours ---- */

/* Our gates, as numbers of ONNX's: i f g o of i o f c; r z n of z r h. */
static const int gate_order[][MAX_GATES] = {[1] = {0}, [3] = {1, 0, 2}, [4] = {0, 2, 3, 1}};

static ir_value reorder(struct onnx_call *c, const struct layer *l, ir_value v)
{
    ir_value part[MAX_GATES];

    if (l->gates == 1)
        return v;
    for (int g = 0; g < l->gates; g++)
        part[g] = gate(c, l, v, 1, gate_order[l->gates][g]);
    return formula_concat(&c->f, part, l->gates, 1);
}

static bool has_usual_activations(struct onnx_call *c, const struct layer *l, bool *relu)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const struct onnx_attr *a = onnx_attr_as(c, "activations", ONNX_ATTR_STRINGS);
    size_t each = l->gates == 4 ? 3 : l->gates == 3 ? 2 : 1;

    *relu = l->gates == 1 && a && a->strings.count && str_eq(a->strings.at[0], STR("Relu"));
    for (size_t i = 0; a && i < a->strings.count; i++) {
        rlx_str want = *relu ? STR("Relu") : rlx_cstr(usual[l->gates == 1 ? 1 : i % each]);
        if (!str_eq(a->strings.at[i], want))
            return false;
    }
    return true;
}

static bool is_layer(struct onnx_call *c, const struct layer *l, bool *relu)
{
    rlx_str way = onnx_text(c, "direction", "forward");
    bool back = str_eq(way, STR("reverse"));

    return has_usual_activations(c, l, relu) && !onnx_attr(c, "clip") &&
           !(l->gates == 4 && onnx_has(c, l->peephole)) && !onnx_int(c, "input_forget", 0) &&
           (l->gates != 3 || onnx_int(c, "linear_before_reset", 0)) &&
           !(back && onnx_has(c, l->lengths));
}

/* Both states as [dirs, B, H]; zeros for the one that was left out. */
static ir_value layer_state(struct onnx_call *c, const struct layer *l, size_t i)
{
    struct ir_type t = {.dtype = c->f.dtype, .rank = 3, .dim = {l->dirs, l->batch, l->hidden}};

    if (!onnx_has(c, i))
        return formula_fill(&c->f, &t, 0);
    return l->batch_first ? formula_transpose(&c->f, onnx_in(c, i), RLX_LIST(1, 0, 2))
                          : onnx_in(c, i);
}

static int32_t layer_operands(struct onnx_call *c, const struct layer *l, bool back, ir_value *in,
                              struct attr_recurrent *attr)
{
    struct formula *f = &c->f;
    int64_t all = l->gates * l->hidden;
    struct ir_type none = {.dtype = f->dtype, .rank = 2, .dim = {l->dirs, all}};
    int32_t count = 0;

    ir_value x = formula_transpose(f, l->x, RLX_LIST(1, 0, 2));
    in[count++] = back ? formula_reverse(f, x, 1) : x;
    in[count++] = reorder(c, l, onnx_in(c, 1));
    in[count++] = reorder(c, l, onnx_in(c, 2));
    for (int64_t k = 0; k < 2; k++)
        in[count++] = onnx_has(c, 3)
                          ? reorder(c, l, formula_narrow(f, onnx_in(c, 3), 1, k * all, all))
                          : formula_fill(f, &none, 0);
    attr->has_state = onnx_has(c, l->h0) || (l->gates == 4 && onnx_has(c, l->c0));
    if (attr->has_state) {
        in[count++] = layer_state(c, l, l->h0);
        if (l->gates == 4)
            in[count++] = layer_state(c, l, l->c0);
    }
    attr->has_lengths = onnx_has(c, l->lengths);
    if (attr->has_lengths)
        in[count++] = onnx_in(c, l->lengths);
    return count;
}

static void give_states(struct onnx_call *c, const struct layer *l, ir_value y, ir_value h,
                        ir_value cell)
{
    struct formula *f = &c->f;

    if (l->batch_first) {
        y = formula_transpose(f, y, RLX_LIST(2, 0, 1, 3));
        h = formula_transpose(f, h, RLX_LIST(1, 0, 2));
        cell = l->gates == 4 ? formula_transpose(f, cell, RLX_LIST(1, 0, 2)) : cell;
    }
    onnx_give(c, 0, y);
    onnx_give(c, 1, h);
    if (l->gates == 4)
        onnx_give(c, 2, cell);
}

static void run_layer(struct onnx_call *c, const struct layer *l, bool relu)
{
    struct formula *f = &c->f;
    rlx_op op = l->gates == 4 ? RLX_OP_lstm : l->gates == 3 ? RLX_OP_gru : RLX_OP_rnn;
    bool back = str_eq(onnx_text(c, "direction", "forward"), STR("reverse"));
    ir_value in[8], part[3] = {RLX_NO_VALUE, RLX_NO_VALUE, RLX_NO_VALUE};
    static const char *const results[] = {"seq", "h", "c"};
    union ir_attr attr;

    attr_defaults(op, &attr);
    attr.recurrent.hidden_size = l->hidden;
    attr.recurrent.bidirectional = l->dirs == 2;
    enum_from_word("rnn_activation", relu ? STR("relu") : STR("tanh"), &attr.recurrent.activation);
    int32_t count = layer_operands(c, l, back, in, &attr.recurrent);
    for (int k = 0; k < (l->gates == 4 ? 3 : 2); k++) {
        enum_from_word("rnn_result", rlx_cstr(results[k]), &attr.recurrent.result);
        part[k] = formula_node(f, op, in, count, &attr);
    }
    ir_value y = back ? formula_reverse(f, part[0], 1) : part[0];
    y = formula_reshape(f, y, RLX_LIST(l->batch, l->steps, l->dirs, l->hidden));
    give_states(c, l, formula_transpose(f, y, RLX_LIST(1, 2, 0, 3)), part[1], part[2]);
}

/* ---- step by step ---- */

static ir_value join(struct onnx_call *c, const struct layer *l, const ir_value *of, int64_t axis)
{
    return l->dirs == 1 ? of[0] : formula_concat(&c->f, of, 2, axis);
}

static void run_steps(struct onnx_call *c, const struct layer *l)
{
    struct formula *f = &c->f;
    ir_value y[2] = {0}, h[2], cell[2];
    bool reverse = str_eq(onnx_text(c, "direction", "forward"), STR("reverse"));
    rlx_list state = RLX_LIST(1, l->batch, l->hidden);

    if (!dim_is_static(l->steps) || l->steps < 1 || l->steps > MAX_STEPS) {
        onnx_unsupported(c, "sequences that are symbolic, empty or longer than %d", MAX_STEPS);
        return;
    }
    for (int64_t dir = 0; dir < l->dirs; dir++) {
        struct direction d = run_direction(c, l, dir, reverse || dir == 1, &y[dir]);
        h[dir] = formula_reshape(f, d.h, state);
        cell[dir] = l->gates == 4 ? formula_reshape(f, d.c, state) : RLX_NO_VALUE;
    }
    give_states(c, l, join(c, l, y, 1), join(c, l, h, 0),
                l->gates == 4 ? join(c, l, cell, 0) : RLX_NO_VALUE);
}

static void recurrent(struct onnx_call *c, int gates)
{
    struct layer l;
    bool relu;

    if (!begin_layer(c, gates, &l))
        return;
    if (is_layer(c, &l, &relu))
        run_layer(c, &l, relu);
    else
        run_steps(c, &l);
}

void onnx_rnn(struct onnx_call *c)
{
    recurrent(c, 1);
}

void onnx_gru(struct onnx_call *c)
{
    recurrent(c, 3);
}

void onnx_lstm(struct onnx_call *c)
{
    recurrent(c, 4);
}
