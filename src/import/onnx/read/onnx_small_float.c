/* onnx_small_float.c: see onnx_small_float.h.
 *
 * Codes are looked up in a table one way. The other way is worked out in integers, on the bits of
 * the float, so that it is exact on every device, whatever that does with subnormals:
 *
 *     f32      s eeeeeeee fffffffffffffffffffffff      the bits that do not fit are rounded off,
 * and a E4M3     s     eeee fff                          carry out of the fraction raises the
 * exponent */
#include "import/onnx/read/onnx_small_float.h"

#include <math.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"
#include "import/onnx/read/onnx_scope.h"

struct small_float {
    int64_t type;
    int bits, fraction, bias;
    unsigned greatest; /* code of the greatest number */
    unsigned beyond;   /* what is greater still becomes, unless it saturates */
    unsigned nan;
    bool one_zero; /* no -0: its code is NaN's */
};

static const struct small_float small_floats[] = {
    {ONNX_FLOAT8E4M3FN, 8, 3, 7, 0x7e, 0x7f, 0x7f, false},
    {ONNX_FLOAT8E4M3FNUZ, 8, 3, 8, 0x7f, 0x80, 0x80, true},
    {ONNX_FLOAT8E5M2, 8, 2, 15, 0x7b, 0x7c, 0x7e, false},
    {ONNX_FLOAT8E5M2FNUZ, 8, 2, 16, 0x7f, 0x80, 0x80, true},
    {ONNX_FLOAT8E8M0, 8, 0, 127, 0xfe, 0xff, 0xff, true},
    {ONNX_FLOAT4E2M1, 4, 1, 1, 7, 7, 8, false}, /* these saturate always; NaN becomes -0 */
    {ONNX_FLOAT6E2M3, 6, 3, 1, 0x1f, 0x1f, 0x20, false},
    {ONNX_FLOAT6E3M2, 6, 2, 3, 0x1f, 0x1f, 0x20, false},
};

static const struct small_float *find(struct onnx_call *c, int64_t data_type)
{
    for (size_t i = 0; i < sizeof small_floats / sizeof small_floats[0]; i++)
        if (small_floats[i].type == data_type)
            return &small_floats[i];
    onnx_unsupported(c, "elements of type %s", onnx_dtype_name(data_type));
    return &small_floats[0];
}

/* ---- from codes ---- */

static float value_of(const struct small_float *s, unsigned code)
{
    unsigned sign = 1u << (s->bits - 1), plain = code & (sign - 1);
    unsigned exponent = plain >> s->fraction, fraction = plain & ((1u << s->fraction) - 1);
    float v;

    if (s->type == ONNX_FLOAT8E8M0)
        return code == s->nan ? NAN : ldexpf(1, (int)code - s->bias);
    if (s->one_zero && code == s->nan)
        return NAN;
    if (plain > s->greatest)
        v = plain == s->nan || plain != s->beyond ? NAN : INFINITY;
    else if (exponent)
        v = ldexpf((float)(fraction | 1u << s->fraction), (int)exponent - s->bias - s->fraction);
    else
        v = ldexpf((float)fraction, 1 - s->bias - s->fraction);
    return code & sign ? -v : v;
}

ir_value onnx_decode(struct onnx_call *c, ir_value code, int64_t data_type)
{
    const struct small_float *s = find(c, data_type);
    struct ir_type type = {.dtype = RLX_DTYPE_f32, .rank = 1, .dim = {1 << s->bits}};
    union ir_attr attr;
    float table[256];

    for (unsigned i = 0; i < 1u << s->bits; i++)
        table[i] = value_of(s, i);
    ir_value in[2] = {onnx_table_of(c, &type, table), formula_cast(&c->f, code, RLX_DTYPE_i32)};
    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = 0;
    return formula_node(&c->f, RLX_OP_gather, in, 2, &attr);
}

/* ---- to codes ---- */

/* A float as an integer of as many bits. */
struct bits {
    struct formula *f;
    rlx_dtype type;
    int fraction, bias;
    ir_value sign;      /* 0 or 1 */
    ir_value magnitude; /* exponent and fraction */
};

static ir_value number(const struct bits *b, double v)
{
    return formula_number_of(b->f, b->type, v);
}

static ir_value with(const struct bits *b, rlx_op op, ir_value x, double v)
{
    return formula_2(b->f, op, x, number(b, v));
}

/* What is not a float becomes an f32, or an f64 where that rounds and it matters: all codes except
 * those of FLOAT8E8M0 represent less than the integers that an f32 does not hold. */
static struct bits bits_of(struct onnx_call *c, ir_value x, int64_t data_type)
{
    struct bits b = {.f = &c->f, .sign = RLX_NO_VALUE, .magnitude = RLX_NO_VALUE};
    union ir_attr attr;

    if (onnx_failed(c))
        return b;
    rlx_dtype from = formula_type(b.f, x)->dtype;
    bool wide = from == RLX_DTYPE_f64 || (data_type == ONNX_FLOAT8E8M0 &&
                                          dtype_is(from, CLASS_INT) && rlx_dtype_size(from) > 2);
    b.type = wide ? RLX_DTYPE_u64 : RLX_DTYPE_u32;
    b.fraction = wide ? 52 : 23;
    b.bias = wide ? 1023 : 127;
    x = formula_cast(b.f, x, wide ? RLX_DTYPE_f64 : RLX_DTYPE_f32);
    attr_defaults(RLX_OP_bitcast, &attr);
    attr.bitcast.to = b.type;
    x = formula_node(b.f, RLX_OP_bitcast, &x, 1, &attr);
    b.sign = with(&b, RLX_OP_shr, x, wide ? 63 : 31);
    b.magnitude = with(&b, RLX_OP_shr, with(&b, RLX_OP_shl, x, 1), 1);
    return b;
}

/* The code where there is one that great, and NaN's where it is none of a number. */
static ir_value limit(const struct bits *b, const struct small_float *s, ir_value code,
                      bool saturates)
{
    double inf = ldexp(2 * b->bias + 1, b->fraction);

    code = formula_where(b->f, with(b, RLX_OP_gt, code, s->greatest),
                         number(b, saturates ? s->greatest : s->beyond), code);
    return formula_where(b->f, with(b, RLX_OP_gt, b->magnitude, inf), number(b, s->nan), code);
}

/* The magnitude as a code, without a limit: a significand of the fraction's bits and one more is
 * rounded to nearest even, and put after an exponent that counts from the least one. */
static ir_value round_magnitude(const struct bits *b, const struct small_float *s)
{
    struct formula *f = b->f;
    int least = 1 - s->bias + b->bias, dropped = b->fraction - s->fraction;
    ir_value one = number(b, 1);
    ir_value exponent = with(b, RLX_OP_shr, b->magnitude, b->fraction);
    ir_value base = with(b, RLX_OP_max, exponent, least);
    /* Subnormals of the small type lose more; beyond all bits there is nothing left to lose. */
    ir_value drop = with(b, RLX_OP_add, formula_2(f, RLX_OP_sub, base, exponent), dropped);
    drop = with(b, RLX_OP_min, drop, b->fraction + 2);
    /* Those of the large type are far below all that counts, with or without a 1 in front. */
    ir_value whole = with(b, RLX_OP_bit_and, b->magnitude, ldexp(1, b->fraction) - 1);
    whole = with(b, RLX_OP_add, whole, ldexp(1, b->fraction));
    ir_value half = formula_2(f, RLX_OP_shl, one, formula_2(f, RLX_OP_sub, drop, one));
    ir_value odd = with(b, RLX_OP_bit_and, formula_2(f, RLX_OP_shr, whole, drop), 1);
    whole = formula_2(f, RLX_OP_add, whole, formula_2(f, RLX_OP_sub, half, one));
    whole = formula_2(f, RLX_OP_shr, formula_2(f, RLX_OP_add, whole, odd), drop);
    base = with(b, RLX_OP_shl, with(b, RLX_OP_sub, base, least), s->fraction);
    return formula_2(f, RLX_OP_add, base, whole);
}

static ir_value encode_signed(const struct bits *b, const struct small_float *s, bool saturates)
{
    struct formula *f = b->f;
    ir_value code = limit(b, s, round_magnitude(b, s), saturates);
    ir_value sign = with(b, RLX_OP_shl, b->sign, s->bits - 1);
    if (s->one_zero)
        sign = formula_where(f, with(b, RLX_OP_eq, code, 0), number(b, 0), sign);
    return formula_2(f, RLX_OP_bit_or, code, sign);
}

/* What round_mode adds to a fraction that counts up to `one`, so that it is cut off rounded. */
static double rounds_up(struct onnx_call *c, double one)
{
    rlx_str mode = onnx_text(c, "round_mode", "up");

    if (str_eq(mode, STR("up")))
        return one - 1;
    if (str_eq(mode, STR("nearest")))
        return one / 2;
    if (!str_eq(mode, STR("down")))
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "round_mode \"%.*s\"", STR_ARG(mode));
    return 0;
}

/* FLOAT8E8M0: the exponent, which the fraction may raise. Numbers below 0 have no code but NaN. */
static ir_value encode_power(struct onnx_call *c, const struct bits *b, const struct small_float *s,
                             bool saturates)
{
    struct formula *f = b->f;
    double one = ldexp(1, b->fraction), least = (b->bias - s->bias) * one;
    double more = rounds_up(c, one);
    ir_value code = with(b, RLX_OP_shr, with(b, RLX_OP_add, b->magnitude, more), b->fraction);

    if (least == 0) { /* 2^-127 is a subnormal f32, from where to 2^-126 it is half as far */
        ir_value raised = with(b, RLX_OP_add, b->magnitude, floor(more / 2));
        ir_value last = formula_cast(f, with(b, RLX_OP_ge, raised, one), b->type);
        code = formula_where(f, with(b, RLX_OP_lt, b->magnitude, one), last, code);
        least = one / 2;
    } else
        code = with(b, RLX_OP_sub, code, b->bias - s->bias);
    code = formula_where(f, with(b, RLX_OP_lt, b->magnitude, least),
                         number(b, saturates ? 0 : s->nan), code);
    code = limit(b, s, code, saturates);
    ir_value below = formula_2(f, RLX_OP_min, b->magnitude, b->sign);
    return formula_where(f, with(b, RLX_OP_gt, below, 0), number(b, s->nan), code);
}

ir_value onnx_encode(struct onnx_call *c, ir_value x, int64_t data_type)
{
    const struct small_float *s = find(c, data_type);
    bool saturates = onnx_int(c, "saturate", 1) != 0;
    struct bits b = bits_of(c, x, data_type);
    ir_value code = data_type == ONNX_FLOAT8E8M0 ? encode_power(c, &b, s, saturates)
                                                 : encode_signed(&b, s, saturates);

    return formula_cast(&c->f, code, RLX_DTYPE_u8);
}

/* ---- which ops may be given codes ---- */

static const char *const movers[] = {
    "Compress",       "Concat",       "DepthToSpace", "Expand",  "Flatten", "Gather",
    "GatherElements", "GatherND",     "Identity",     "Pad",     "Reshape", "ReverseSequence",
    "Slice",          "SpaceToDepth", "Split",        "Squeeze", "Tile",    "Transpose",
    "Unsqueeze",      "Where",
};

/* These look at the type, or not at the elements, or leave that to the nodes of their bodies. */
static const char *const others[] = {"BitCast", "Cast", "CastLike", "DequantizeLinear",
                                     "If",      "Loop", "Scan",     "QuantizeLinear",
                                     "Shape",   "Size"};

static bool is_among(rlx_str op, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(op, rlx_cstr(list[i])))
            return true;
    return false;
}

static bool moves(const struct onnx_call *c)
{
    return onnx_is_default_domain(c->node->domain) &&
           is_among(c->node->op, movers, sizeof movers / sizeof movers[0]);
}

/* The first input whose type ours does not express; c->in_count: there is none. */
static size_t first_narrow(const struct onnx_call *c)
{
    size_t i = 0;

    while (i < c->in_count && !(c->in[i] && c->in[i]->narrow))
        i++;
    return i;
}

bool onnx_takes_codes(struct onnx_call *c)
{
    size_t first = first_narrow(c);

    if (first == c->in_count)
        return true;
    for (size_t i = 0; i < c->in_count && moves(c); i++) {
        if (!c->in[i] || c->in[i]->type.dtype != c->in[first]->type.dtype)
            continue; /* a shape, indices and the like */
        if (c->in[i]->narrow != c->in[first]->narrow) {
            formula_fail(&c->f, RLX_ERROR_FORMAT, "inputs of types %s and %s",
                         onnx_dtype_name(onnx_type_number(c, first)),
                         onnx_dtype_name(onnx_type_number(c, i)));
            return false;
        }
    }
    for (size_t i = 0; i < c->in_count; i++) {
        if (!c->in[i] || !onnx_is_small_float(c->in[i]->narrow) || moves(c) ||
            is_among(c->node->op, others, sizeof others / sizeof others[0]))
            continue;
        onnx_unsupported(c, "it computes with elements of type %s, which are converted only",
                         onnx_dtype_name(c->in[i]->narrow));
        return false;
    }
    return true;
}

void onnx_pass_type_on(struct onnx_call *c)
{
    size_t first = first_narrow(c);

    for (size_t i = 0; first < c->in_count && i < c->out_count && moves(c); i++)
        c->out[i].narrow = c->in[first]->narrow;
}
