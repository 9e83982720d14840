/* lower_elementwise.c: elementwise ops by themselves. */
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "ir/op.h"
#include "lower/gpu/elementwise/lower_elementwise.h"

static struct ew_value input(struct ew *e, int32_t i)
{
    return ew_input(e, gpu_in(e->c, i), &e->c->in[i]);
}

static void result(struct ew *e, const char *name)
{
    ew_store(e, gpu_out(e->c), e->c->out->dtype, name);
    ew_end(e);
}

/* ---- ops that can be steps of a chain ---- */

static void lower_step(struct gpu_call *c)
{
    struct ew_value in[3];
    struct ew e;

    ew_begin(&e, c, c->out);
    for (int32_t i = 0; i < c->in_count; i++)
        in[i] = input(&e, i);
    ew_step(&e, "s", c->op, c->out->dtype, in);
    result(&e, "s");
}

void gpu_lower_unary(struct gpu_call *c)
{
    lower_step(c);
}

void gpu_lower_binary(struct gpu_call *c)
{
    lower_step(c);
}

void gpu_lower_compare(struct gpu_call *c)
{
    lower_step(c);
}

void gpu_lower_cast(struct gpu_call *c)
{
    lower_step(c);
}

void gpu_lower_where(struct gpu_call *c)
{
    lower_step(c);
}

/* ---- clamp ---- */

/* A bound as an element of the dtype: cut to values that integers hold. */
static uint64_t bound_bits(rlx_dtype t, double v)
{
    double top = t == RLX_DTYPE_u64 ? 0x1p64 : 0x1p63;
    int bits = 8 * (int)rlx_dtype_size(t);
    uint64_t out = 0;
    float f = (float)v;

    if (t == RLX_DTYPE_f16)
        f = f16_to_f32(f64_to_f16(v));
    if (t == RLX_DTYPE_bf16)
        f = bf16_to_f32(f64_to_bf16(v));
    if (t == RLX_DTYPE_f64) {
        memcpy(&out, &v, sizeof v);
    } else if (dtype_is(t, CLASS_F)) {
        memcpy(&out, &f, sizeof f);
    } else if (dtype_is(t, CLASS_U)) {
        uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        out = v >= top ? most : v <= 0 ? 0 : (uint64_t)v;
        out = out > most ? most : out;
    } else {
        int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));
        int64_t whole = v >= top ? most : v <= -top ? INT64_MIN : (int64_t)v;
        out = (uint64_t)(whole > most ? most : whole < -most - 1 ? -most - 1 : whole);
    }
    return out;
}

static void bound_line(struct ew *e, const char *name, rlx_dtype t, double v)
{
    const char *carrier = ew_carrier(t);
    uint64_t bits = bound_bits(t, v);
    int32_t low = ew_word(e, (uint32_t)bits);

    if (rlx_dtype_size(t) == 8)
        ew_line(e, "let %s = from_bits(%s, u32x2(w[%d], w[%d]))", name, carrier, low,
                ew_word(e, (uint32_t)(bits >> 32)));
    else
        ew_line(e, "let %s = from_bits(%s, w[%d])", name, carrier, low);
}

void gpu_lower_clamp(struct gpu_call *c)
{
    rlx_dtype t = c->out->dtype;
    bool is_float = dtype_is(t, CLASS_F);
    struct ew e;

    ew_begin(&e, c, c->out);
    struct ew_value x = input(&e, 0);
    e.uses = is_float ? EW_USE_FLOAT : EW_USE_INT;
    bound_line(&e, "low", t, c->attr->clamp.min);
    bound_line(&e, "high", t, c->attr->clamp.max);
    ew_line(&e, "let s = %s_clamp(%s, low, high)", is_float ? "op" : "int", x.name);
    result(&e, "s");
}

/* ---- the others ---- */

void gpu_lower_fma(struct gpu_call *c)
{
    struct ew e;

    ew_begin(&e, c, c->out);
    struct ew_value x = input(&e, 0), y = input(&e, 1), z = input(&e, 2);
    e.uses = EW_USE_FLOAT;
    ew_line(&e, "let s = op_fma(%s, %s, %s)", x.name, y.name, z.name);
    result(&e, "s");
}

/* c64 has the slope of neg alone. */
static void lower_slope(struct gpu_call *c, rlx_op kind)
{
    struct ew e;

    ew_begin(&e, c, c->out);
    struct ew_value x = input(&e, 0), dy = input(&e, 1);
    e.uses = EW_USE_FLOAT;
    e.weight = 8;
    if (kind == RLX_OP_sin || kind == RLX_OP_cos || kind == RLX_OP_tan) {
        e.uses |= EW_USE_CIRCLE;
        e.weight = 24;
    }
    if (c->out->dtype == RLX_DTYPE_c64)
        ew_line(&e, "let s = -%s", dy.name);
    else
        ew_line(&e, "let s = %s * slope_%s(%s)", dy.name, op_info(kind)->name, x.name);
    result(&e, "s");
}

void gpu_lower_relu_backward(struct gpu_call *c)
{
    lower_slope(c, RLX_OP_relu);
}

void gpu_lower_activation_backward(struct gpu_call *c)
{
    lower_slope(c, (rlx_op)c->attr->activation_backward.kind);
}

static void lower_complex(struct gpu_call *c, const char *format)
{
    struct ew e;

    ew_begin(&e, c, c->out);
    struct ew_value z = input(&e, 0);
    e.uses = EW_USE_COMPLEX;
    ew_line(&e, "let s = %s(%s)", format, z.name);
    result(&e, "s");
}

void gpu_lower_complex_norm_sq(struct gpu_call *c)
{
    lower_complex(c, "c64_norm_sq");
}

void gpu_lower_conjugate(struct gpu_call *c)
{
    lower_complex(c, "c64_conjugate");
}

void gpu_lower_complex_real(struct gpu_call *c)
{
    lower_complex(c, "c64_real");
}

void gpu_lower_gated_residual(struct gpu_call *c)
{
    struct ew e;

    ew_begin(&e, c, c->out);
    struct ew_value x = input(&e, 0), y = input(&e, 1), gate = input(&e, 2);
    ew_line(&e, "let s = %s + %s * %s", x.name, gate.name, y.name);
    result(&e, "s");
}

/* Rows of two halves: the gate's silu times the other one. */
void gpu_lower_fused_swiglu(struct gpu_call *c)
{
    const struct ir_type *x = &c->in[0];
    int64_t half = x->dim[x->rank - 1] / 2, step[EW_RANK] = {0}, at = 2 * half;
    uint64_t skip = (uint64_t)half * rlx_dtype_size(x->dtype);
    struct gpu_arg all = gpu_in(c, 0), low = all, high = gpu_part(all, skip, all.bytes - skip);
    bool gate_first = c->attr->fused_swiglu.gate_first;
    struct ew e;

    if (gpu_count(c->out) == 0)
        return;
    step[x->rank - 1] = 1;
    for (int32_t i = x->rank - 1; i-- > 0;) {
        step[i] = at;
        at *= x->dim[i];
    }
    ew_begin(&e, c, c->out);
    struct ew_value gate = ew_input_steps(&e, gate_first ? low : high, x->dtype, step);
    struct ew_value up = ew_input_steps(&e, gate_first ? high : low, x->dtype, step);
    e.uses = EW_USE_FLOAT;
    e.weight = 8;
    ew_line(&e, "let s = op_silu(%s) * %s", gate.name, up.name);
    struct ew_value s = {.name = "s", .dtype = x->dtype};
    ew_step(&e, "cut", RLX_OP_cast, c->out->dtype, &s);
    result(&e, "cut");
}
