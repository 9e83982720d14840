/* lower_elementwise_step.c: an op of the table on elements, as a line of the kernel language. The
 * ops themselves are functions of kernels/lib: op_.. of floats, int_.. and bool_.., c64_... */
#include <stdio.h>

#include "ir/op.h"
#include "lower/gpu/elementwise/lower_elementwise.h"

static bool is_half(rlx_dtype t)
{
    return t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16;
}

static bool is_narrow_integer(rlx_dtype t)
{
    return dtype_is(t, CLASS_INT) && rlx_dtype_size(t) < 4;
}

static bool is_circle(rlx_op op)
{
    return op == RLX_OP_sin || op == RLX_OP_cos || op == RLX_OP_tan || op == RLX_OP_atan ||
           op == RLX_OP_atan2;
}

/* What functions on values of that dtype begin with; notes where they stand. */
static const char *prefix_of(struct ew *e, rlx_op op, rlx_dtype t)
{
    if (dtype_is(t, CLASS_F)) {
        e->uses |= is_circle(op) ? EW_USE_CIRCLE : op == RLX_OP_mod ? EW_USE_FMOD : EW_USE_FLOAT;
        return "op";
    }
    if (dtype_is(t, CLASS_C)) {
        e->uses |= EW_USE_COMPLEX;
        return "c64";
    }
    e->uses |= EW_USE_INT;
    return dtype_is(t, CLASS_B) ? "bool" : "int";
}

/* About how long the code of an op is, in lines. */
static int32_t weight_of(rlx_op op, rlx_dtype t)
{
    if (dtype_is(t, CLASS_C))
        return op == RLX_OP_mul || op == RLX_OP_div ? 16 : 1;
    if (is_circle(op) || op == RLX_OP_pow || op == RLX_OP_mod)
        return 24;
    /* What is exact is an instruction or two. */
    return op_info(op)->family != FAMILY_unary || op_tolerance(op) == TOLERANCE_EXACT ? 1 : 8;
}

/* ---- one dtype as another ---- */

static const char *class_name(rlx_dtype t)
{
    return dtype_is(t, CLASS_F)   ? "float"
           : dtype_is(t, CLASS_C) ? "c64"
           : dtype_is(t, CLASS_B) ? "bool"
                                  : "int";
}

/* To c64: a real part, which is cast to f32 first. */
static void convert(struct ew *e, const char *name, const struct ew_value *x, rlx_dtype to)
{
    bool was_bool = dtype_is(x->dtype, CLASS_B), is_float = dtype_is(to, CLASS_F);

    if (to == RLX_DTYPE_c64) {
        convert(e, "real", x, RLX_DTYPE_f32);
        ew_line(e, "let %s = f32x2(real, 0.0)", name);
    } else if (was_bool && !dtype_is(to, CLASS_B)) {
        e->uses |= EW_USE_CAST;
        ew_line(e, "let %s = %s(bool_to_%s(%s))", name, ew_carrier(to), is_float ? "f32" : "i32",
                x->name);
    } else if (dtype_is(x->dtype, CLASS_F) && is_float && !is_half(to)) {
        ew_line(e, "let %s = %s(%s)", name, ew_carrier(to), x->name);
    } else {
        e->uses |= x->dtype == RLX_DTYPE_c64 ? EW_USE_COMPLEX : EW_USE_CAST;
        ew_line(e, "let %s = %s_to_%s(%s)", name, class_name(x->dtype), rlx_dtype_name(to),
                x->name);
    }
}

/* Promotion: a narrow float is an f32 already, so that only other changes of type do something. */
static struct ew_value promoted(struct ew *e, const char *name, const char *suffix,
                                const struct ew_value *x, rlx_dtype to)
{
    struct ew_value v = *x;
    bool same = x->dtype == to || (dtype_is(x->dtype, CLASS_F) && to == RLX_DTYPE_f32);

    v.dtype = to;
    if (same)
        return v;
    snprintf(v.name, sizeof v.name, "%s%s", name, suffix);
    convert(e, v.name, x, to);
    return v;
}

/* ---- steps ---- */

int32_t ew_step_operands(rlx_op op)
{
    switch (op_info(op)->family) {
    case FAMILY_where: return 3;
    case FAMILY_binary:
    case FAMILY_compare: return 2;
    default: return 1;
    }
}

/* Integers narrower than 32 bits are cut to their width. */
static void result_line(struct ew *e, const char *name, rlx_dtype t, const char *expression)
{
    if (is_narrow_integer(t))
        ew_line(e, "let %s = wrap_%s(%s)", name, rlx_dtype_name(t), expression);
    else
        ew_line(e, "let %s = %s", name, expression);
}

static struct ew_value unary(struct ew *e, const char *name, rlx_op op, const struct ew_value *x)
{
    struct ew_value v = {.dtype = x->dtype};
    bool plain = dtype_is(x->dtype, CLASS_U) && (op == RLX_OP_relu || op == RLX_OP_abs);
    char text[160];

    snprintf(text, sizeof text, "%s_%s(%s)", prefix_of(e, op, x->dtype), op_info(op)->name,
             x->name);
    result_line(e, name, x->dtype, plain ? x->name : text);
    snprintf(v.name, sizeof v.name, "%s", name);
    return v;
}

static struct ew_value binary(struct ew *e, const char *name, rlx_op op, const struct ew_value *in)
{
    struct ew_value v = {.dtype = in[0].dtype};
    bool compares = op_info(op)->family == FAMILY_compare;
    char text[160], width[16] = "";

    dtype_promote(in[0].dtype, in[1].dtype, &v.dtype);
    struct ew_value a = promoted(e, name, "a", &in[0], v.dtype);
    struct ew_value b = promoted(e, name, "b", &in[1], v.dtype);
    if (op == RLX_OP_shl || op == RLX_OP_shr)
        snprintf(width, sizeof width, ", %d", 8 * (int)rlx_dtype_size(v.dtype));
    snprintf(text, sizeof text, "%s_%s(%s, %s%s)", prefix_of(e, op, v.dtype), op_info(op)->name,
             a.name, b.name, width);
    result_line(e, name, compares ? RLX_DTYPE_bool : v.dtype, text);
    snprintf(v.name, sizeof v.name, "%s", name);
    if (compares)
        v.dtype = RLX_DTYPE_bool;
    return v;
}

static struct ew_value cast(struct ew *e, const char *name, const struct ew_value *x, rlx_dtype to)
{
    struct ew_value v = {.dtype = to};

    gpu_need_type(e->c, to); /* within a region it belongs to no operand */
    snprintf(v.name, sizeof v.name, "%s", name);
    if (x->dtype == to && !is_half(to))
        ew_line(e, "let %s = %s", name, x->name);
    else
        convert(e, name, x, to); /* what was carried as f32 is rounded now */
    return v;
}

static struct ew_value where(struct ew *e, const char *name, const struct ew_value *in)
{
    struct ew_value v = {.dtype = in[1].dtype};

    dtype_promote(in[1].dtype, in[2].dtype, &v.dtype);
    struct ew_value cond = promoted(e, name, "c", &in[0], RLX_DTYPE_bool);
    struct ew_value a = promoted(e, name, "a", &in[1], v.dtype);
    struct ew_value b = promoted(e, name, "b", &in[2], v.dtype);
    ew_line(e, "let %s = select(%s, %s, %s)", name, cond.name, a.name, b.name);
    snprintf(v.name, sizeof v.name, "%s", name);
    return v;
}

struct ew_value ew_step(struct ew *e, const char *name, rlx_op op, rlx_dtype to,
                        const struct ew_value *in)
{
    e->weight += weight_of(op, in[0].dtype);
    switch (op_info(op)->family) {
    case FAMILY_unary: return unary(e, name, op, in);
    case FAMILY_cast: return cast(e, name, in, to);
    case FAMILY_where: return where(e, name, in);
    default: return binary(e, name, op, in);
    }
}
