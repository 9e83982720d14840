/* check_value.c: values, constants and conversions. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/check.h"

#define MAX_INSTRS (1 << 18) /* of one kernel, unrolled and written out */
#define MAX_VARS 4096

void kc_error(struct kc_checker *c, uint32_t at, const char *format, ...)
{
    char text[256];
    va_list args;

    if (kc_bad(c))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->status = kc_fail(&c->program, at, "%s", text);
}

/* ---- instructions and variables ---- */

/* An array that doubles; the old one stays in the arena. */
static void *grown(struct kc_checker *c, void *old, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return old;
    uint32_t more = *room ? *room * 2 : 256;
    void *made = arena_alloc_array(c->program.arena, more, size, 8);
    if (!made) {
        c->status = diag_no_memory(c->program.diag, more * size);
        return old;
    }
    if (count)
        memcpy(made, old, count * size);
    *room = more;
    return made;
}

kir_value kc_emit(struct kc_checker *c, enum kir_op op, struct kir_type type, kir_value a,
                  kir_value b, kir_value d, uint64_t imm)
{
    struct kir *k = c->out;

    if (kc_bad(c))
        return KIR_NONE;
    if (k->instrs == MAX_INSTRS) {
        kc_error(c, c->at, "the kernel comes to more than %d instructions", MAX_INSTRS);
        return KIR_NONE;
    }
    k->instr = grown(c, k->instr, k->instrs, &c->instr_room, sizeof *k->instr);
    if (kc_bad(c))
        return KIR_NONE;
    k->instr[k->instrs] = (struct kir_instr){.op = (uint16_t)op,
                                             .type = type,
                                             .a = a,
                                             .b = b,
                                             .c = d,
                                             .d = KIR_NONE,
                                             .imm = imm,
                                             .at = c->at};
    return k->instrs++;
}

uint32_t kc_new_var(struct kc_checker *c, rlx_str name, struct kir_type type)
{
    struct kir *k = c->out;

    if (kc_bad(c))
        return 0;
    if (k->vars == MAX_VARS)
        kc_error(c, c->at, "the kernel comes to more than %d variables", MAX_VARS);
    else
        k->var = grown(c, k->var, k->vars, &c->var_room, sizeof *k->var);
    if (kc_bad(c))
        return 0;
    k->var[k->vars] = (struct kir_var){.name = name, .type = type};
    return k->vars++;
}

/* ---- kinds of types ---- */

bool kc_is_float(enum kir_scalar s)
{
    return s == KIR_F32 || s == KIR_F16 || s == KIR_F64;
}

bool kc_is_integer(enum kir_scalar s)
{
    return s == KIR_I32 || s == KIR_U32 || s == KIR_I64 || s == KIR_U64;
}

bool kc_is_narrow(const struct kc_checker *c, enum kir_scalar s)
{
    return s >= KIR_BF16 || (s == KIR_F16 && !c->features->f16);
}

void kc_type_text(struct kir_type t, char out[64])
{
    const char *name = kir_scalar_name((enum kir_scalar)t.scalar);
    char element[16];

    if (t.lanes > 1)
        snprintf(element, sizeof element, "%sx%d", name, t.lanes);
    else
        snprintf(element, sizeof element, "%s", name);
    if (t.use)
        snprintf(out, 64, "matrix of %s, %d x %d", element, t.rows, t.cols);
    else if (t.count)
        snprintf(out, 64, "[%s; %u]", element, t.count);
    else
        snprintf(out, 64, "%s", element);
}

/* ---- values ---- */

struct kc_value kc_of(struct kir_type type, kir_value id)
{
    return (struct kc_value){.kind = KC_V_VALUE, .type = type, .id = id};
}

struct kc_value kc_whole(int64_t v)
{
    return (struct kc_value){.kind = KC_V_WHOLE, .whole = v};
}

struct kc_value kc_const(struct kir_type type, uint64_t bits)
{
    return (struct kc_value){.kind = KC_V_CONST, .type = type, .bits = bits};
}

struct kc_value kc_bool(bool v)
{
    return kc_const(kir_scalar_type(KIR_BOOL), v);
}

bool kc_is_constant(const struct kc_value *v)
{
    return v->kind == KC_V_WHOLE || v->kind == KC_V_REAL || v->kind == KC_V_CONST;
}

static double real_of_bits(enum kir_scalar s, uint64_t bits)
{
    float f;
    double d;

    switch (s) {
    case KIR_F32: memcpy(&f, &(uint32_t){(uint32_t)bits}, 4); return (double)f;
    case KIR_F64: memcpy(&d, &bits, 8); return d;
    case KIR_I32: return (double)(int32_t)(uint32_t)bits;
    case KIR_I64: return (double)(int64_t)bits;
    default: return (double)bits;
    }
}

bool kc_as_whole(const struct kc_value *v, int64_t *out)
{
    if (v->kind == KC_V_WHOLE) {
        *out = v->whole;
        return true;
    }
    if (v->kind != KC_V_CONST || !kc_is_integer((enum kir_scalar)v->type.scalar))
        return false;
    *out = v->type.scalar == KIR_I32 ? (int32_t)(uint32_t)v->bits : (int64_t)v->bits;
    return true;
}

bool kc_as_real(const struct kc_value *v, double *out)
{
    switch (v->kind) {
    case KC_V_WHOLE: *out = (double)v->whole; return true;
    case KC_V_REAL: *out = v->real; return true;
    case KC_V_CONST: *out = real_of_bits((enum kir_scalar)v->type.scalar, v->bits); return true;
    default: return false;
    }
}

bool kc_as_bool(const struct kc_value *v, bool *out)
{
    if (v->kind != KC_V_CONST || v->type.scalar != KIR_BOOL)
        return false;
    *out = v->bits != 0;
    return true;
}

struct kir_type kc_own_type(const struct kc_value *v)
{
    switch (v->kind) {
    case KC_V_WHOLE: return kir_scalar_type(v->whole < 0 ? KIR_I32 : KIR_U32);
    case KC_V_REAL: return kir_scalar_type(KIR_F32);
    default: return v->type;
    }
}

/* ---- numbers in a type ---- */

static bool whole_fits(enum kir_scalar s, int64_t v)
{
    switch (s) {
    case KIR_U32: return v >= 0 && v <= UINT32_MAX;
    case KIR_I32: return v >= INT32_MIN && v <= INT32_MAX;
    case KIR_U64: return v >= 0;
    case KIR_I64: return true;
    default: return kc_is_float(s);
    }
}

static uint64_t bits_of_real(enum kir_scalar s, double v)
{
    uint64_t bits = 0;
    float f = (float)v;

    if (s == KIR_F64)
        memcpy(&bits, &v, 8);
    else
        memcpy(&bits, &f, 4);
    return bits;
}

/* A number as a constant of a scalar type; false: it has no place in it. */
static bool number_as(const struct kc_value *v, enum kir_scalar s, struct kc_value *out)
{
    *out = kc_const(kir_scalar_type(s), 0);
    if (s == KIR_F32 || s == KIR_F64) {
        double real = v->kind == KC_V_REAL ? v->real : (double)v->whole;
        out->bits = bits_of_real(s, real);
        return true;
    }
    if (v->kind != KC_V_WHOLE || !whole_fits(s, v->whole) || s == KIR_F16)
        return false;
    out->bits = s == KIR_U32 || s == KIR_I32 ? (uint32_t)v->whole : (uint64_t)v->whole;
    return true;
}

struct kc_value kc_fit(struct kc_checker *c, struct kc_value v, struct kir_type type, uint32_t at)
{
    struct kir_type scalar = kir_scalar_type((enum kir_scalar)type.scalar);
    char have[64], want[64];

    if (kc_bad(c))
        return v;
    if (v.kind == KC_V_WHOLE || v.kind == KC_V_REAL) {
        struct kc_value n;
        if (scalar.scalar == KIR_F16 && c->features->f16)
            n = kc_convert(c, v, scalar, at);
        else if (type.count || type.use || !number_as(&v, (enum kir_scalar)scalar.scalar, &n)) {
            kc_type_text(type, want);
            kc_error(c, at, "this number is not a valid %s", want);
            return v;
        }
        v = n;
    }
    if (kir_type_same(v.type, type))
        return v;
    if (v.kind != KC_V_NONE && kir_type_same(v.type, scalar) && type.lanes > 1 && !type.count)
        return kc_of(type, kc_emit(c, KIR_SPLAT, type, kc_id(c, v, at), KIR_NONE, KIR_NONE, 0));
    kc_type_text(v.type, have);
    kc_type_text(type, want);
    kc_error(c, at, "%s is expected here, this is %s", want,
             v.kind == KC_V_NONE ? "no value" : have);
    return v;
}

/* 64-bit constants on devices without such integers are pairs. */
static kir_value pair_constant(struct kc_checker *c, const struct kc_value *v)
{
    struct kir_type word = kir_scalar_type(KIR_U32), pair = {.scalar = KIR_U32, .lanes = 2};
    kir_value lo = kc_emit(c, KIR_CONST, word, KIR_NONE, KIR_NONE, KIR_NONE, (uint32_t)v->bits);
    kir_value hi = kc_emit(c, KIR_CONST, word, KIR_NONE, KIR_NONE, KIR_NONE, v->bits >> 32);
    kir_value both = kc_emit(c, KIR_VECTOR, pair, lo, hi, KIR_NONE, 0);

    return kc_emit(c, KIR_BITCAST, v->type, both, KIR_NONE, KIR_NONE, 0);
}

kir_value kc_id(struct kc_checker *c, struct kc_value v, uint32_t at)
{
    if (v.kind == KC_V_WHOLE || v.kind == KC_V_REAL)
        v = kc_fit(c, v, kc_own_type(&v), at);
    if (kc_bad(c))
        return KIR_NONE;
    if (v.kind == KC_V_NONE) {
        kc_error(c, at, "a value is expected; this gives none");
        return KIR_NONE;
    }
    if (v.kind == KC_V_VALUE)
        return v.id;
    if ((v.type.scalar == KIR_I64 || v.type.scalar == KIR_U64) && !c->features->int64)
        return pair_constant(c, &v);
    return kc_emit(c, KIR_CONST, v.type, KIR_NONE, KIR_NONE, KIR_NONE, v.bits);
}

kir_value kc_id_as(struct kc_checker *c, struct kc_value v, struct kir_type type, uint32_t at)
{
    return kc_id(c, kc_fit(c, v, type, at), at);
}
