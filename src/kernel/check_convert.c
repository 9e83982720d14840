/* check_convert.c: one type made into another.
 *
 * Devices differ in what they can convert, and in how they round; so narrow types and, where the
 * device has none, 64-bit integers go through functions of the library, which are the same
 * everywhere. What is left is between bool, i32, u32, f32 and what the device has. */
#include <math.h>
#include <string.h>

#include "kernel/check.h"

static struct kir_type scalar(enum kir_scalar s)
{
    return kir_scalar_type(s);
}

static struct kc_value emit_1(struct kc_checker *c, enum kir_op op, struct kir_type type,
                              struct kc_value v, uint32_t at)
{
    return kc_of(type, kc_emit(c, op, type, kc_id(c, v, at), KIR_NONE, KIR_NONE, 0));
}

static bool is_pair(const struct kc_checker *c, enum kir_scalar s)
{
    return (s == KIR_I64 || s == KIR_U64) && !c->features->int64;
}

static struct kc_value library(struct kc_checker *c, const char *file, const char *name,
                               struct kc_value v, uint32_t at)
{
    return kc_call_library(c, file, name, &v, 1, at);
}

/* ---- narrow types ---- */

/* What a narrow value is computed in. */
static enum kir_scalar wide_of(enum kir_scalar s)
{
    switch (s) {
    case KIR_F16:
    case KIR_BF16: return KIR_F32;
    case KIR_I8:
    case KIR_I16: return KIR_I32;
    case KIR_B8: return KIR_BOOL;
    default: return KIR_U32;
    }
}

static struct kc_value widen(struct kc_checker *c, struct kc_value v, uint32_t at)
{
    enum kir_scalar s = (enum kir_scalar)v.type.scalar;
    struct kc_value bits = emit_1(c, KIR_BITS_OF, scalar(KIR_U32), v, at);

    switch (s) {
    case KIR_F16: return library(c, "lib/narrow", "f16_to_f32", bits, at);
    case KIR_BF16: return library(c, "lib/narrow", "bf16_to_f32", bits, at);
    case KIR_I8: return library(c, "lib/narrow", "i8_to_i32", bits, at);
    case KIR_I16: return library(c, "lib/narrow", "i16_to_i32", bits, at);
    case KIR_B8: return kc_binary(c, "!=", bits, kc_whole(0), at);
    default: return bits;
    }
}

static struct kc_value narrow(struct kc_checker *c, struct kc_value v, enum kir_scalar s,
                              uint32_t at)
{
    struct kc_value bits;

    v = kc_convert(c, v, scalar(wide_of(s)), at);
    switch (s) {
    case KIR_F16: bits = library(c, "lib/narrow", "f32_to_f16", v, at); break;
    case KIR_BF16: bits = library(c, "lib/narrow", "f32_to_bf16", v, at); break;
    case KIR_I8:
    case KIR_U8:
        bits = kc_binary(c, "&", kc_convert(c, v, scalar(KIR_U32), at), kc_whole(0xff), at);
        break;
    case KIR_I16:
    case KIR_U16:
        bits = kc_binary(c, "&", kc_convert(c, v, scalar(KIR_U32), at), kc_whole(0xffff), at);
        break;
    default: bits = kc_convert(c, v, scalar(KIR_U32), at); break;
    }
    return emit_1(c, KIR_FROM_BITS, scalar(s), bits, at);
}

/* ---- 64-bit integers as pairs ---- */

static struct kc_value as_pair(struct kc_checker *c, struct kc_value v, uint32_t at)
{
    return emit_1(c, KIR_BITCAST, (struct kir_type){.scalar = KIR_U32, .lanes = 2}, v, at);
}

static struct kc_value from_pair(struct kc_checker *c, struct kc_value v, enum kir_scalar to,
                                 uint32_t at)
{
    bool is_signed = v.type.scalar == KIR_I64;

    if (to == KIR_I64 || to == KIR_U64)
        return emit_1(c, KIR_BITCAST, scalar(to), as_pair(c, v, at), at);
    if (to == KIR_BOOL)
        return library(c, "lib/int64", "i64_is_not_zero", as_pair(c, v, at), at);
    if (to == KIR_I32 || to == KIR_U32)
        return kc_convert(c, library(c, "lib/int64", "i64_low", as_pair(c, v, at), at), scalar(to),
                          at);
    return kc_convert(
        c, library(c, "lib/int64", is_signed ? "i64_to_f32" : "u64_to_f32", as_pair(c, v, at), at),
        scalar(to), at);
}

static struct kc_value to_pair(struct kc_checker *c, struct kc_value v, enum kir_scalar to,
                               uint32_t at)
{
    struct kc_value pair;

    switch (v.type.scalar) {
    case KIR_I32: pair = library(c, "lib/int64", "i64_of_i32", v, at); break;
    case KIR_U32: pair = library(c, "lib/int64", "i64_of_u32", v, at); break;
    case KIR_BOOL:
        pair = library(c, "lib/int64", "i64_of_u32", kc_convert(c, v, scalar(KIR_U32), at), at);
        break;
    default:
        pair = library(c, "lib/int64", to == KIR_I64 ? "f32_to_i64" : "f32_to_u64",
                       kc_convert(c, v, scalar(KIR_F32), at), at);
    }
    return emit_1(c, KIR_BITCAST, scalar(to), pair, at);
}

/* ---- constants ---- */

/* Towards zero; NaN is 0, what is too large the largest. */
static uint64_t wide_bits(enum kir_scalar to, double real)
{
    if (isnan(real) || (to == KIR_U64 && real < 1))
        return 0;
    if (to == KIR_U64)
        return real >= 0x1p64 ? UINT64_MAX : (uint64_t)real;
    if (real >= 0x1p63)
        return INT64_MAX;
    return real < -0x1p63 ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)real;
}

/* false: not a constant that has a value there. Cut towards zero, kept in range. */
static bool fold(const struct kc_value *v, enum kir_scalar to, struct kc_value *out)
{
    double real, lo, hi;
    int64_t whole = 0;
    bool is_whole = kc_as_whole(v, &whole), truth;

    if (kc_as_bool(v, &truth)) {
        real = truth;
        whole = truth;
        is_whole = true;
    } else if (!kc_as_real(v, &real)) {
        return false;
    }
    *out = kc_const(scalar(to), 0);
    switch (to) {
    case KIR_BOOL: out->bits = real != 0; return true;
    case KIR_F32: memcpy(&out->bits, &(float){(float)real}, 4); return true;
    case KIR_F64: memcpy(&out->bits, &real, 8); return true;
    case KIR_I32: lo = INT32_MIN, hi = INT32_MAX; break;
    case KIR_U32: lo = 0, hi = UINT32_MAX; break;
    case KIR_I64:
    case KIR_U64: out->bits = is_whole ? (uint64_t)whole : wide_bits(to, real); return true;
    default: return false;
    }
    if (is_whole) /* its low bits, as between typed integers */
        out->bits = (uint32_t)(uint64_t)whole;
    else
        out->bits = isnan(real) ? 0 : (uint32_t)(int64_t)fmin(fmax(trunc(real), lo), hi);
    return true;
}

/* ---- all of it ---- */

static struct kc_value convert_scalar(struct kc_checker *c, struct kc_value v, enum kir_scalar to,
                                      uint32_t at)
{
    enum kir_scalar from = (enum kir_scalar)v.type.scalar;
    bool small_f16 = to == KIR_F16 && !c->features->f16_rounds;

    if (from == to)
        return v;
    if (kc_is_narrow(c, from))
        return kc_convert(c, widen(c, v, at), scalar(to), at);
    if (kc_is_narrow(c, to) || (small_f16 && from == KIR_F32))
        return narrow(c, v, to, at);
    if ((to == KIR_F64 || from == KIR_F64) && !c->features->f64) {
        kc_error(c, at, "the device has no f64");
        return v;
    }
    if (is_pair(c, from))
        return from_pair(c, v, to, at);
    if (is_pair(c, to))
        return to_pair(c, v, to, at);
    if ((from == KIR_F16 && to != KIR_F32) || (to == KIR_F16 && from != KIR_F32))
        return kc_convert(c, kc_convert(c, v, scalar(KIR_F32), at), scalar(to), at);
    if (to == KIR_BOOL)
        return kc_binary(c, "!=", v, kc_whole(0), at);
    return emit_1(c, KIR_CONVERT, scalar(to), v, at);
}

/* Lane by lane, where that cannot be done at once. */
static struct kc_value convert_lanes(struct kc_checker *c, struct kc_value v, struct kir_type type,
                                     uint32_t at)
{
    struct kir_type from = scalar((enum kir_scalar)v.type.scalar), word = scalar(KIR_U32);
    kir_value lane[4] = {KIR_NONE, KIR_NONE, KIR_NONE, KIR_NONE};

    for (uint32_t i = 0; i < type.lanes; i++) {
        kir_value n = kc_emit(c, KIR_CONST, word, KIR_NONE, KIR_NONE, KIR_NONE, i);
        struct kc_value one =
            kc_of(from, kc_emit(c, KIR_EXTRACT, from, kc_id(c, v, at), n, KIR_NONE, 0));
        lane[i] = kc_id(c, convert_scalar(c, one, (enum kir_scalar)type.scalar, at), at);
    }
    kir_value made = kc_emit(c, KIR_VECTOR, type, lane[0], lane[1], lane[2], 0);
    if (!kc_bad(c))
        c->out->instr[made].d = lane[3];
    return kc_of(type, made);
}

struct kc_value kc_convert(struct kc_checker *c, struct kc_value v, struct kir_type type,
                           uint32_t at)
{
    struct kc_value folded;
    char have[64], want[64];

    if (kc_bad(c) || (v.kind == KC_V_VALUE && kir_type_same(v.type, type)))
        return v;
    if (v.kind == KC_V_NONE || type.count || type.use || v.type.count || v.type.use ||
        (v.kind == KC_V_VALUE && v.type.lanes != type.lanes && v.type.lanes != 1)) {
        kc_type_text(v.type, have);
        kc_type_text(type, want);
        kc_error(c, at, "%s cannot become %s", v.kind == KC_V_NONE ? "no value" : have, want);
        return v;
    }
    if (kc_is_constant(&v)) {
        if (fold(&v, (enum kir_scalar)type.scalar, &folded))
            v = folded;
        else
            v = convert_scalar(c, kc_of(kc_own_type(&v), kc_id(c, v, at)),
                               (enum kir_scalar)type.scalar, at);
        return type.lanes > 1 ? kc_fit(c, v, type, at) : v;
    }
    if (v.type.lanes == 1) {
        v = convert_scalar(c, v, (enum kir_scalar)type.scalar, at);
        return type.lanes > 1 ? kc_fit(c, v, type, at) : v;
    }
    if (v.type.scalar == type.scalar)
        return v;
    bool plain = type.scalar >= KIR_I32 && type.scalar <= KIR_F32 && v.type.scalar >= KIR_I32 &&
                 v.type.scalar <= KIR_F32;
    return plain ? emit_1(c, KIR_CONVERT, type, v, at) : convert_lanes(c, v, type, at);
}
