/* eval_cell.c: one element: rounded, cast, ordered, met with another (ops-core.md 1.6, 2.3, 5). */
#include "ir/eval/eval_cell.h"

#include <math.h>

#include "base/half.h"

static struct eval_cell real_cell(double v)
{
    return (struct eval_cell){.f = v};
}

static struct eval_cell int_cell(int64_t v)
{
    return (struct eval_cell){.i = v};
}

static int width_of(rlx_dtype t)
{
    return 8 * (int)rlx_dtype_size(t);
}

/* ---- integers ------------------------------------------------------------------------------ */

int64_t eval_wrap(rlx_dtype t, uint64_t bits)
{
    int width = width_of(t);

    if (dtype_is(t, CLASS_B))
        return bits != 0;
    if (width >= 64)
        return (int64_t)bits;
    uint64_t low = bits & ((UINT64_C(1) << width) - 1), sign = UINT64_C(1) << (width - 1);
    if (dtype_is(t, CLASS_U))
        return (int64_t)low;
    return (int64_t)((low ^ sign) - sign);
}

static int64_t int_least(rlx_dtype t)
{
    return dtype_is(t, CLASS_I) ? (int64_t)(0 - (UINT64_C(1) << (width_of(t) - 1))) : 0;
}

static int64_t int_greatest(rlx_dtype t)
{
    int bits = dtype_is(t, CLASS_B) ? 1 : width_of(t) - (dtype_is(t, CLASS_I) ? 1 : 0);

    return (int64_t)(bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
}

/* Truncated and saturated; NaN gives 0. */
static int64_t int_of(rlx_dtype t, double v)
{
    double least = dtype_is(t, CLASS_I) ? -ldexp(1, width_of(t) - 1) : 0;
    double end = ldexp(1, width_of(t) - (dtype_is(t, CLASS_I) ? 1 : 0)); /* past the greatest */

    if (isnan(v))
        return 0;
    if (v <= least)
        return int_least(t);
    if (v >= end)
        return int_greatest(t);
    return v < 0 ? (int64_t)v : (int64_t)(uint64_t)v;
}

struct eval_cell eval_cell_least(rlx_dtype t)
{
    return dtype_is(t, CLASS_F | CLASS_C) ? real_cell(-INFINITY) : int_cell(int_least(t));
}

struct eval_cell eval_cell_greatest(rlx_dtype t)
{
    return dtype_is(t, CLASS_F | CLASS_C) ? real_cell(INFINITY) : int_cell(int_greatest(t));
}

/* ---- to and from real numbers -------------------------------------------------------------- */

struct eval_cell eval_cell_of(rlx_dtype t, double v)
{
    if (dtype_is(t, CLASS_F | CLASS_C))
        return real_cell(v);
    if (dtype_is(t, CLASS_B))
        return int_cell(v != 0);
    return int_cell(int_of(t, v));
}

double eval_cell_real(rlx_dtype t, struct eval_cell x)
{
    if (dtype_is(t, CLASS_F | CLASS_C))
        return x.f;
    return t == RLX_DTYPE_u64 ? (double)(uint64_t)x.i : (double)x.i;
}

bool eval_cell_true(rlx_dtype t, struct eval_cell x)
{
    return dtype_is(t, CLASS_F | CLASS_C) ? x.f != 0 || x.im != 0 : x.i != 0;
}

static double round_real(rlx_dtype t, double v)
{
    switch (t) {
    case RLX_DTYPE_f16: return (double)f16_to_f32(f64_to_f16(v));
    case RLX_DTYPE_bf16: return (double)bf16_to_f32(f64_to_bf16(v));
    case RLX_DTYPE_f64: return v;
    default: return f64_through_f32(v);
    }
}

struct eval_cell eval_cell_round(rlx_dtype t, struct eval_cell x)
{
    if (dtype_is(t, CLASS_C))
        return (struct eval_cell){.f = round_real(t, x.f), .im = round_real(t, x.im)};
    if (dtype_is(t, CLASS_F))
        return real_cell(round_real(t, x.f));
    return int_cell(eval_wrap(t, (uint64_t)x.i));
}

/* An integer as a double from which any narrower float follows with one rounding: of what does not
 * fit, the last bit remembers whether something was lost. */
static double sticky_real(rlx_dtype from, int64_t i)
{
    bool negative = from != RLX_DTYPE_u64 && i < 0;
    uint64_t size = negative ? 0 - (uint64_t)i : (uint64_t)i;

    if (size >> 53)
        size = (size >> 11 | ((size & 0x7ff) != 0)) << 11;
    return negative ? -(double)size : (double)size;
}

struct eval_cell eval_cell_cast(rlx_dtype from, rlx_dtype to, struct eval_cell x)
{
    bool was_float = dtype_is(from, CLASS_F | CLASS_C);

    if (from == to)
        return x;
    if (dtype_is(to, CLASS_B))
        return int_cell(eval_cell_true(from, x));
    if (dtype_is(to, CLASS_INT))
        return int_cell(was_float ? int_of(to, x.f) : eval_wrap(to, (uint64_t)x.i));
    if (to == RLX_DTYPE_f64) /* straight from the integer: its own rounding is the one wanted */
        return real_cell(eval_cell_real(from, x));
    return real_cell(round_real(to, was_float ? x.f : sticky_real(from, x.i)));
}

/* ---- order --------------------------------------------------------------------------------- */

int eval_cell_order(rlx_dtype t, struct eval_cell a, struct eval_cell b)
{
    if (t == RLX_DTYPE_u64)
        return ((uint64_t)a.i > (uint64_t)b.i) - ((uint64_t)a.i < (uint64_t)b.i);
    if (!dtype_is(t, CLASS_F))
        return (a.i > b.i) - (a.i < b.i);
    if (isnan(a.f) || isnan(b.f))
        return (isnan(a.f) ? 1 : 0) - (isnan(b.f) ? 1 : 0);
    return (a.f > b.f) - (a.f < b.f);
}

bool eval_cell_compare(rlx_op op, rlx_dtype t, struct eval_cell a, struct eval_cell b)
{
    if (dtype_is(t, CLASS_C)) {
        bool same = a.f == b.f && a.im == b.im;
        return op == RLX_OP_eq ? same : !same;
    }
    if (dtype_is(t, CLASS_F) && (isnan(a.f) || isnan(b.f)))
        return op == RLX_OP_ne;
    int order = eval_cell_order(t, a, b);
    switch (op) {
    case RLX_OP_eq: return order == 0;
    case RLX_OP_ne: return order != 0;
    case RLX_OP_lt: return order < 0;
    case RLX_OP_le: return order <= 0;
    case RLX_OP_gt: return order > 0;
    default: return order >= 0;
    }
}

/* ---- two elements -------------------------------------------------------------------------- */

static double real_binary(rlx_op op, double a, double b)
{
    switch (op) {
    case RLX_OP_add: return a + b;
    case RLX_OP_sub: return a - b;
    case RLX_OP_mul: return a * b;
    case RLX_OP_div: return a / b;
    case RLX_OP_max: return isnan(a) || a > b ? a : b;
    case RLX_OP_min: return isnan(a) || a < b ? a : b;
    case RLX_OP_pow: return pow(a, b);
    case RLX_OP_mod: return fmod(a, b);
    case RLX_OP_atan2: return atan2(a, b);
    default: return NAN;
    }
}

static struct eval_cell complex_binary(rlx_op op, struct eval_cell a, struct eval_cell b)
{
    double size = b.f * b.f + b.im * b.im;

    switch (op) {
    case RLX_OP_add: return (struct eval_cell){.f = a.f + b.f, .im = a.im + b.im};
    case RLX_OP_sub: return (struct eval_cell){.f = a.f - b.f, .im = a.im - b.im};
    case RLX_OP_mul:
        return (struct eval_cell){.f = a.f * b.f - a.im * b.im, .im = a.f * b.im + a.im * b.f};
    case RLX_OP_div:
        return (struct eval_cell){.f = (a.f * b.f + a.im * b.im) / size,
                                  .im = (a.im * b.f - a.f * b.im) / size};
    default: return (struct eval_cell){.f = NAN, .im = NAN};
    }
}

/* Towards zero. Nothing is undefined: x / 0 and x % 0 are 0, and -x wraps where it must. */
static uint64_t int_div(bool is_signed, int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (!is_signed)
        return (uint64_t)a / (uint64_t)b;
    return b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static uint64_t int_mod(bool is_signed, int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (!is_signed)
        return (uint64_t)a % (uint64_t)b;
    return b == -1 ? 0 : (uint64_t)(a % b);
}

/* A negative count is a huge one when read as unsigned, so one comparison finds both. */
static uint64_t int_shift(rlx_op op, rlx_dtype t, int64_t a, uint64_t count)
{
    bool out = count >= (uint64_t)width_of(t), negative = dtype_is(t, CLASS_I) && a < 0;

    if (op == RLX_OP_shl)
        return out ? 0 : (uint64_t)a << count;
    if (out)
        return negative ? UINT64_MAX : 0;
    return negative ? ~(~(uint64_t)a >> count) : (uint64_t)a >> count;
}

static int64_t int_binary(rlx_op op, rlx_dtype t, int64_t x, int64_t y)
{
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    bool is_signed = dtype_is(t, CLASS_I);
    int order = eval_cell_order(t, int_cell(x), int_cell(y));

    switch (op) {
    case RLX_OP_add: return eval_wrap(t, a + b);
    case RLX_OP_sub: return eval_wrap(t, a - b);
    case RLX_OP_mul: return eval_wrap(t, a * b);
    case RLX_OP_div: return eval_wrap(t, int_div(is_signed, x, y));
    case RLX_OP_mod: return eval_wrap(t, int_mod(is_signed, x, y));
    case RLX_OP_max: return order > 0 ? x : y;
    case RLX_OP_min: return order < 0 ? x : y;
    case RLX_OP_bit_and: return eval_wrap(t, a & b);
    case RLX_OP_bit_or: return eval_wrap(t, a | b);
    case RLX_OP_bit_xor: return eval_wrap(t, a ^ b);
    case RLX_OP_shl:
    case RLX_OP_shr: return eval_wrap(t, int_shift(op, t, x, b));
    default: return 0;
    }
}

struct eval_cell eval_cell_binary(rlx_op op, rlx_dtype t, struct eval_cell a, struct eval_cell b)
{
    if (dtype_is(t, CLASS_C))
        return complex_binary(op, a, b);
    if (dtype_is(t, CLASS_F))
        return real_cell(real_binary(op, a.f, b.f));
    return int_cell(int_binary(op, t, a.i, b.i));
}
