/* check_math.c: operators: what they take, what they give, and what they are for constants. */
#include <stdio.h>
#include <string.h>

#include "kernel/check.h"

struct operation {
    const char *text;
    enum kir_op op;
    enum { ARITHMETIC, WHOLE, BITS, SHIFT, COMPARE } kind;
    const char *pair; /* of 64-bit integers as pairs: i64_<pair>, or u64_ where the sign matters */
    bool sign_matters;
};

static const struct operation operations[] = {
    {"+", KIR_ADD, ARITHMETIC, "add", false}, {"-", KIR_SUB, ARITHMETIC, "sub", false},
    {"*", KIR_MUL, ARITHMETIC, "mul", false}, {"/", KIR_DIV, ARITHMETIC, "div", true},
    {"%", KIR_REM, WHOLE, "rem", true},       {"&", KIR_AND, BITS, "and", false},
    {"|", KIR_OR, BITS, "or", false},         {"^", KIR_XOR, BITS, "xor", false},
    {"<<", KIR_SHL, SHIFT, "shl", false},     {">>", KIR_SHR, SHIFT, "shr", true},
    {"==", KIR_EQ, COMPARE, "eq", false},     {"!=", KIR_NE, COMPARE, "ne", false},
    {"<", KIR_LT, COMPARE, "lt", true},       {"<=", KIR_LE, COMPARE, "le", true},
    {">", KIR_GT, COMPARE, "gt", true},       {">=", KIR_GE, COMPARE, "ge", true}};

static const struct operation *find(const char *op)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i].text, op) == 0)
            return &operations[i];
    return NULL;
}

/* ---- constants ---- */

static bool fold_compare(enum kir_op op, double a, double b)
{
    switch (op) {
    case KIR_EQ: return a == b;
    case KIR_NE: return a != b;
    case KIR_LT: return a < b;
    case KIR_LE: return a <= b;
    case KIR_GT: return a > b;
    default: return a >= b;
    }
}

static bool fold_whole(enum kir_op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case KIR_ADD: return !__builtin_add_overflow(a, b, out);
    case KIR_SUB: return !__builtin_sub_overflow(a, b, out);
    case KIR_MUL: return !__builtin_mul_overflow(a, b, out);
    case KIR_DIV:
        *out = b && !(a == INT64_MIN && b == -1) ? a / b : 0;
        return b && !(a == INT64_MIN && b == -1);
    case KIR_REM: *out = b && b != -1 ? a % b : 0; return b != 0;
    case KIR_AND: *out = a & b; return true;
    case KIR_OR: *out = a | b; return true;
    case KIR_XOR: *out = a ^ b; return true;
    case KIR_SHL:
        *out = b >= 0 && b < 63 && a >= 0 && a <= (INT64_MAX >> b) ? a << b : 0;
        return b >= 0 && b < 63 && a >= 0 && a <= (INT64_MAX >> b);
    case KIR_SHR: *out = b >= 0 && b < 64 ? a >> b : 0; return b >= 0 && b < 64;
    default: return false;
    }
}

static double fold_real(enum kir_op op, double a, double b)
{
    switch (op) {
    case KIR_ADD: return a + b;
    case KIR_SUB: return a - b;
    case KIR_MUL: return a * b;
    default: return a / b;
    }
}

/* Integers without a type, or of the 32-bit type that the result then has. */
static bool fold_integers(const struct operation *o, const struct kc_value *a,
                          const struct kc_value *b, struct kc_value *out)
{
    int64_t x, y, r;

    if (!kc_as_whole(a, &x) || !kc_as_whole(b, &y))
        return false;
    if (o->kind == COMPARE) {
        bool less = x < y, same = x == y;
        *out = kc_bool(fold_compare(o->op, less ? -1 : 1, same ? (less ? -1 : 1) : 0));
        return true;
    }
    if (!fold_whole(o->op, x, y, &r))
        return false;
    const struct kc_value *typed = a->kind == KC_V_CONST || o->kind == SHIFT ? a : b;
    if (typed->kind == KC_V_WHOLE)
        *out = kc_whole(r);
    else if (typed->type.scalar == KIR_I32 || typed->type.scalar == KIR_U32)
        *out = kc_const(typed->type, (uint32_t)(uint64_t)r);
    else
        return false;
    return true;
}

static bool is_f32_or_free(const struct kc_value *v)
{
    return v->kind == KC_V_WHOLE || v->kind == KC_V_REAL ||
           (v->kind == KC_V_CONST && v->type.scalar == KIR_F32);
}

static bool fold_reals(const struct operation *o, const struct kc_value *a,
                       const struct kc_value *b, struct kc_value *out)
{
    bool typed = a->kind == KC_V_CONST || b->kind == KC_V_CONST;
    double x, y;

    if (!is_f32_or_free(a) || !is_f32_or_free(b) || !kc_as_real(a, &x) || !kc_as_real(b, &y))
        return false;
    if (o->kind == COMPARE) {
        *out = kc_bool(fold_compare(o->op, x, y));
        return true;
    }
    *out = (struct kc_value){.kind = KC_V_REAL, .real = fold_real(o->op, x, y)};
    if (typed) {
        float rounded = (float)out->real;
        *out = kc_const(kir_scalar_type(KIR_F32), 0);
        memcpy(&out->bits, &rounded, 4);
    }
    return o->kind == ARITHMETIC;
}

static bool fold(const struct operation *o, const struct kc_value *a, const struct kc_value *b,
                 struct kc_value *out)
{
    bool p, q, whole = a->kind == KC_V_WHOLE && b->kind == KC_V_WHOLE;

    if (!kc_is_constant(a) || !kc_is_constant(b))
        return false;
    if (kc_as_bool(a, &p) && kc_as_bool(b, &q) && (o->op == KIR_EQ || o->op == KIR_NE)) {
        *out = kc_bool((p == q) == (o->op == KIR_EQ));
        return true;
    }
    return fold_integers(o, a, b, out) || (!whole && fold_reals(o, a, b, out));
}

/* ---- types ---- */

/* Both in one type: a number takes that of the other side, a scalar fills a vector. */
static struct kir_type meet(struct kc_checker *c, struct kc_value *a, struct kc_value *b,
                            uint32_t at)
{
    bool a_free = a->kind == KC_V_WHOLE || a->kind == KC_V_REAL;
    bool b_free = b->kind == KC_V_WHOLE || b->kind == KC_V_REAL;
    struct kir_type t = a_free && !b_free ? b->type : kc_own_type(a);

    if (a_free && b_free && (a->kind == KC_V_REAL || b->kind == KC_V_REAL))
        t = kir_scalar_type(KIR_F32);
    if (!b_free && !a_free && a->type.lanes == 1 && b->type.lanes > 1)
        t = b->type;
    *a = kc_fit(c, *a, t, at);
    *b = kc_fit(c, *b, t, at);
    return t;
}

static bool takes(const struct operation *o, enum kir_scalar s)
{
    switch (o->kind) {
    case ARITHMETIC: return kc_is_float(s) || kc_is_integer(s);
    case COMPARE: return kc_is_float(s) || kc_is_integer(s) || s == KIR_BOOL;
    case BITS: return kc_is_integer(s) || s == KIR_BOOL;
    default: return kc_is_integer(s);
    }
}

static struct kc_value on_pairs(struct kc_checker *c, const struct operation *o, struct kir_type t,
                                struct kc_value a, struct kc_value b, uint32_t at)
{
    struct kir_type pair = {.scalar = KIR_U32, .lanes = 2};
    bool is_unsigned = o->sign_matters && t.scalar == KIR_U64;
    char name[16];
    struct kc_value arg[2] = {
        kc_of(pair, kc_emit(c, KIR_BITCAST, pair, kc_id(c, a, at), KIR_NONE, KIR_NONE, 0)), b};

    if (o->kind != SHIFT)
        arg[1] = kc_of(pair, kc_emit(c, KIR_BITCAST, pair, kc_id(c, b, at), KIR_NONE, KIR_NONE, 0));
    snprintf(name, sizeof name, "%s_%s", is_unsigned ? "u64" : "i64", o->pair);
    struct kc_value r = kc_call_library(c, "lib/int64", name, arg, 2, at);
    if (o->kind == COMPARE || kc_bad(c))
        return r;
    return kc_of(t, kc_emit(c, KIR_BITCAST, t, kc_id(c, r, at), KIR_NONE, KIR_NONE, 0));
}

static enum kir_op of_bools(enum kir_op op)
{
    switch (op) {
    case KIR_AND: return KIR_LOGIC_AND;
    case KIR_OR: return KIR_LOGIC_OR;
    case KIR_XOR: return KIR_NE;
    default: return op;
    }
}

struct kc_value kc_binary(struct kc_checker *c, const char *op, struct kc_value a,
                          struct kc_value b, uint32_t at)
{
    const struct operation *o = find(op);
    struct kc_value folded;
    char text[64];

    if (kc_bad(c))
        return a;
    if (fold(o, &a, &b, &folded))
        return folded;
    struct kir_type t;
    if (o->kind == SHIFT) {
        a = kc_fit(c, a, t = kc_own_type(&a), at);
        b = kc_fit(c, b, (struct kir_type){.scalar = KIR_U32, .lanes = t.lanes}, at);
    } else {
        t = meet(c, &a, &b, at);
    }
    if (kc_bad(c))
        return a;
    enum kir_scalar s = (enum kir_scalar)t.scalar;
    bool matrix = t.use && (t.use != KIR_MATRIX_ACC || o->kind != ARITHMETIC);
    if (!takes(o, s) || kc_is_narrow(c, s) || t.count || matrix ||
        (o->kind == COMPARE && t.lanes > 1)) {
        kc_type_text(t, text);
        kc_error(c, at, "%s does not take %s", op, text);
        return a;
    }
    if ((s == KIR_I64 || s == KIR_U64) && !c->features->int64)
        return on_pairs(c, o, t, a, b, at);
    struct kir_type result = o->kind == COMPARE ? kir_scalar_type(KIR_BOOL) : t;
    enum kir_op made = s == KIR_BOOL ? of_bools(o->op) : o->op;
    if (s == KIR_BOOL && o->kind == COMPARE && o->op != KIR_EQ && o->op != KIR_NE)
        kc_error(c, at, "%s does not take bool", op);
    kir_value x = kc_id(c, a, at), y = kc_id(c, b, at);
    return kc_of(result, kc_emit(c, made, result, x, y, KIR_NONE, 0));
}

struct kc_value kc_unary(struct kc_checker *c, char op, struct kc_value a, uint32_t at)
{
    char text[64];
    bool truth;

    if (kc_bad(c))
        return a;
    if (op == '-' && a.kind == KC_V_WHOLE && a.whole != INT64_MIN)
        return kc_whole(-a.whole);
    if (op == '-' && a.kind == KC_V_REAL)
        return (struct kc_value){.kind = KC_V_REAL, .real = -a.real};
    if (op == '!' && kc_as_bool(&a, &truth))
        return kc_bool(!truth);
    if (op == '-' && a.kind == KC_V_CONST && a.type.scalar == KIR_F32)
        return kc_const(a.type, a.bits ^ 0x80000000);
    if (op == '-' && a.kind == KC_V_CONST && a.type.scalar == KIR_I32)
        return kc_const(a.type, (uint32_t)(0 - a.bits));
    struct kir_type t = kc_own_type(&a);
    enum kir_scalar s = (enum kir_scalar)t.scalar;
    bool pair = (s == KIR_I64 || s == KIR_U64) && !c->features->int64;
    if (op == '-' && pair)
        return kc_binary(c, "-", kc_const(t, 0), a, at);
    bool fine = op == '!' ? s == KIR_BOOL
                : op == '~'
                    ? kc_is_integer(s) && !pair
                    : (kc_is_float(s) || s == KIR_I32 || s == KIR_I64) && !kc_is_narrow(c, s);
    if (!fine || t.count || t.use) {
        kc_type_text(t, text);
        kc_error(c, at, "%c does not take %s", op, text);
        return a;
    }
    enum kir_op made = op == '!' ? KIR_LOGIC_NOT : op == '~' ? KIR_NOT : KIR_NEG;
    return kc_of(t, kc_emit(c, made, t, kc_id(c, a, at), KIR_NONE, KIR_NONE, 0));
}
