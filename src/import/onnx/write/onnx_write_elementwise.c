/* onnx_write_elementwise.c: ops on each element on its own, where ONNX's is not quite the same. */
#include <math.h>
#include <string.h>

#include "import/onnx/write/onnx_emit.h"

/* ---- two operands ---- */

static void write_pair(struct emit *e, const char *numbers, const char *booleans)
{
    bool is_bool = e->n->type.dtype == RLX_DTYPE_bool;

    emit_give(e, emit_2(e, is_bool ? booleans : numbers, e->in[0], e->in[1]));
}

void write_max(struct emit *e)
{
    write_pair(e, "Max", "Or");
}

void write_min(struct emit *e)
{
    write_pair(e, "Min", "And");
}

void write_bitwise(struct emit *e)
{
    switch (e->n->op) {
    case RLX_OP_bit_and: write_pair(e, "BitwiseAnd", "And"); break;
    case RLX_OP_bit_or: write_pair(e, "BitwiseOr", "Or"); break;
    default: write_pair(e, "BitwiseXor", "Xor"); break;
    }
}

/* The sign of the dividend, as C has it. */
void write_mod(struct emit *e)
{
    rlx_str y = emit_2(e, "Mod", e->in[0], e->in[1]);

    emit_int(e, "fmod", 1);
    emit_give(e, y);
}

void write_ne(struct emit *e)
{
    emit_give(e, emit_1(e, "Not", emit_2(e, "Equal", e->in[0], e->in[1])));
}

static rlx_dtype unsigned_of(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_i8: return RLX_DTYPE_u8;
    case RLX_DTYPE_i16: return RLX_DTYPE_u16;
    case RLX_DTYPE_i32: return RLX_DTYPE_u32;
    case RLX_DTYPE_i64: return RLX_DTYPE_u64;
    default: return t;
    }
}

/* ONNX shifts unsigned numbers by less than their width. Ours takes any count: too large a one, or
 * one below 0, leaves nothing. A negative number is shifted right with its bits turned over. */
void write_shift(struct emit *e)
{
    rlx_dtype t = e->n->type.dtype, u = unsigned_of(t);
    bool left = e->n->op == RLX_OP_shl, turn = !left && u != t;
    rlx_str zero = emit_number(e, u, 0), a = e->in[0], negative = STR("");

    if (turn) {
        negative = emit_2(e, "Less", a, emit_number(e, t, 0));
        a = emit_3(e, "Where", negative, emit_1(e, "BitwiseNot", a), a);
    }
    rlx_str count = emit_cast(e, e->in[1], t, u);
    rlx_str fits = emit_2(e, "Less", count, emit_number(e, u, 8.0 * (double)rlx_dtype_size(u)));
    count = emit_3(e, "Where", fits, count, zero);
    rlx_str y = emit_2(e, "BitShift", emit_cast(e, a, t, u), count);
    emit_text(e, "direction", left ? "LEFT" : "RIGHT");
    y = emit_cast(e, emit_3(e, "Where", fits, y, zero), u, t);
    if (turn)
        y = emit_3(e, "Where", negative, emit_1(e, "BitwiseNot", y), y);
    emit_give(e, y);
}

/* Below 0, -0 counting: 1/x distinguishes the zeros. */
static rlx_str is_negative(struct emit *e, rlx_str x, rlx_str zero)
{
    rlx_str below = emit_2(e, "Less", x, zero);

    return emit_2(e, "Or", below, emit_2(e, "Less", emit_1(e, "Reciprocal", x), zero));
}

/* The angle in the first quadrant, then into the one it is in. 0/0 is 0 here, Inf/Inf is 1. */
void write_atan2(struct emit *e)
{
    rlx_dtype t = emit_up_type(e);
    rlx_str a = emit_up(e, 0), b = emit_up(e, 1), zero = emit_number(e, t, 0),
            one = emit_number(e, t, 1), pi = emit_number(e, t, 3.14159265358979323846);
    rlx_str up = emit_1(e, "Abs", a), right = emit_1(e, "Abs", b);
    rlx_str none = emit_2(e, "And", emit_2(e, "Equal", up, zero), emit_2(e, "Equal", right, zero));
    rlx_str endless = emit_2(e, "And", emit_1(e, "IsInf", up), emit_1(e, "IsInf", right));
    rlx_str ratio = emit_3(e, "Where", endless, one, emit_2(e, "Div", up, right));
    rlx_str angle = emit_1(e, "Atan", emit_3(e, "Where", none, zero, ratio));

    angle = emit_3(e, "Where", is_negative(e, b, zero), emit_2(e, "Sub", pi, angle), angle);
    angle = emit_3(e, "Where", is_negative(e, a, zero), emit_1(e, "Neg", angle), angle);
    emit_give_down(e, angle);
}

/* ---- one operand ---- */

void write_relu(struct emit *e)
{
    bool is_unsigned = dtype_is(e->n->type.dtype, CLASS_U);

    emit_give(e, is_unsigned ? e->in[0] : emit_1(e, "Relu", e->in[0]));
}

void write_rsqrt(struct emit *e)
{
    emit_give_down(e, emit_1(e, "Reciprocal", emit_1(e, "Sqrt", emit_up(e, 0))));
}

void write_gelu_approx(struct emit *e)
{
    rlx_str y = emit_1(e, "Gelu", e->in[0]);

    emit_text(e, "approximate", "tanh");
    emit_give(e, y);
}

void write_silu(struct emit *e)
{
    rlx_str x = emit_up(e, 0);

    emit_give_down(e, emit_2(e, "Mul", x, emit_1(e, "Sigmoid", x)));
}

void write_hard_sigmoid(struct emit *e)
{
    rlx_str y = emit_1(e, "HardSigmoid", e->in[0]);

    emit_float(e, "alpha", 1.0 / 6);
    emit_float(e, "beta", 0.5);
    emit_give(e, y);
}

void write_log_sigmoid(struct emit *e)
{
    rlx_str y = emit_1(e, "Softplus", emit_1(e, "Neg", emit_up(e, 0)));

    emit_give_down(e, emit_1(e, "Neg", y));
}

void write_cast(struct emit *e)
{
    emit_give(e, emit_cast(e, e->in[0], emit_type(e, 0)->dtype, e->n->type.dtype));
}

void write_stop_gradient(struct emit *e)
{
    emit_give(e, e->in[0]);
}

/* ---- three ---- */

void write_where(struct emit *e)
{
    rlx_str cond = emit_cast(e, e->in[0], emit_type(e, 0)->dtype, RLX_DTYPE_bool);

    emit_give(e, emit_3(e, "Where", cond, e->in[1], e->in[2]));
}

/* A bound of integers, cut off at the ends of the type; "": beyond which there is nothing. */
static rlx_str bound(struct emit *e, double v, bool is_max)
{
    rlx_dtype t = e->n->type.dtype;
    double bits = 8.0 * (double)rlx_dtype_size(t);
    double least = dtype_is(t, CLASS_I) ? -ldexp(1, (int)bits - 1) : 0;
    double most = ldexp(1, (int)bits - dtype_is(t, CLASS_I));

    if (dtype_is(t, CLASS_F))
        return isinf(v) && is_max == (v > 0) ? STR("") : emit_number(e, t, v);
    if (is_max ? v >= most - 1 : v <= least)
        return STR("");
    return emit_number(e, t, v < least ? least : v);
}

void write_clamp(struct emit *e)
{
    rlx_str min = bound(e, e->n->attr.clamp.min, false), max = bound(e, e->n->attr.clamp.max, true);

    emit_give(e, emit_3(e, "Clip", e->in[0], min, max));
}

/* ONNX rounds the product, too, so it is computed in a type that holds the whole of it. */
void write_fma(struct emit *e)
{
    rlx_dtype t = e->n->type.dtype, wide = t == RLX_DTYPE_f32 ? RLX_DTYPE_f64 : RLX_DTYPE_f32;
    rlx_str in[3];

    if (t == RLX_DTYPE_f64) {
        emit_refuse(e, "ONNX would round the product");
        return;
    }
    for (int32_t i = 0; i < 3; i++)
        in[i] = emit_cast(e, e->in[i], t, wide);
    rlx_str sum = emit_2(e, "Add", emit_2(e, "Mul", in[0], in[1]), in[2]);
    emit_give(e, emit_cast(e, sum, wide, t));
}
