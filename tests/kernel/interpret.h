/* interpret.h: kir run on the CPU, one invocation at a time: slow and obvious, for tests of the
 * library of kernels. Barriers, subgroups and matrices are not for it. */
#ifndef TESTS_KERNEL_INTERPRET_H
#define TESTS_KERNEL_INTERPRET_H

#include <math.h>
#include <stdlib.h>

#include "source.h"

struct cell {
    uint64_t lane[4];
};

/* What a driver may make of floats: quotients and roots that are off, and a * b + c with one
 * rounding. */
struct liberty {
    int units_off; /* in the last place, added to every quotient and root */
    bool contracts;
};

struct machine {
    const struct kir *k;
    struct liberty liberty;
    void *const *buffer; /* elements as they lie in memory */
    const uint32_t *param;
    uint32_t builtin[13];
    struct cell *value;
    struct cell **var;
};

static inline float as_f32(uint64_t bits)
{
    float f;

    memcpy(&f, &(uint32_t){(uint32_t)bits}, 4);
    return f;
}

static inline uint64_t of_f32(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, 4);
    return bits;
}

static inline uint64_t machine_binary(enum kir_op op, enum kir_scalar s, uint64_t a, uint64_t b)
{
    float x = as_f32(a), y = as_f32(b);
    int32_t i = (int32_t)(uint32_t)a, j = (int32_t)(uint32_t)b;
    uint32_t u = (uint32_t)a, v = (uint32_t)b;
    bool real = s == KIR_F32, is_signed = s == KIR_I32;

    switch (op) {
    case KIR_ADD: return real ? of_f32(x + y) : (uint32_t)(u + v);
    case KIR_SUB: return real ? of_f32(x - y) : (uint32_t)(u - v);
    case KIR_MUL: return real ? of_f32(x * y) : (uint32_t)(u * v);
    case KIR_DIV: return real ? of_f32(x / y) : is_signed ? (uint32_t)(i / j) : u / v;
    case KIR_REM: return is_signed ? (uint32_t)(i % j) : u % v;
    case KIR_AND: return u & v;
    case KIR_OR: return u | v;
    case KIR_XOR: return u ^ v;
    case KIR_SHL: return (uint32_t)(u << v);
    case KIR_SHR: return is_signed ? (uint32_t)(i >> v) : u >> v;
    case KIR_MIN:
        return real        ? of_f32(x < y ? x : y)
               : is_signed ? (uint32_t)(i < j ? i : j)
                           : (u < v ? u : v);
    case KIR_MAX:
        return real        ? of_f32(x > y ? x : y)
               : is_signed ? (uint32_t)(i > j ? i : j)
                           : (u > v ? u : v);
    case KIR_EQ: return real ? x == y : u == v;
    case KIR_NE: return real ? x != y : u != v;
    case KIR_LT: return real ? x < y : is_signed ? i < j : u < v;
    case KIR_LE: return real ? x <= y : is_signed ? i <= j : u <= v;
    case KIR_GT: return real ? x > y : is_signed ? i > j : u > v;
    case KIR_GE: return real ? x >= y : is_signed ? i >= j : u >= v;
    case KIR_LOGIC_AND: return a && b;
    default: return a || b;
    }
}

static inline uint64_t machine_unary(enum kir_op op, enum kir_scalar s, uint64_t a)
{
    float x = as_f32(a);
    int32_t i = (int32_t)(uint32_t)a;

    switch (op) {
    case KIR_NEG: return s == KIR_F32 ? of_f32(-x) : (uint32_t) - (uint32_t)a;
    case KIR_ABS: return s == KIR_F32 ? of_f32(fabsf(x)) : (uint32_t)(i < 0 ? -i : i);
    case KIR_FLOOR: return of_f32(floorf(x));
    case KIR_CEIL: return of_f32(ceilf(x));
    case KIR_TRUNC: return of_f32(truncf(x));
    case KIR_ROUND: return of_f32(rintf(x));
    case KIR_NOT: return (uint32_t)~a;
    case KIR_LOGIC_NOT: return !a;
    case KIR_HIGHEST_BIT:
        return (uint32_t)a ? (uint32_t)(31 - __builtin_clz((uint32_t)a)) : UINT32_MAX;
    case KIR_LOWEST_BIT: return (uint32_t)a ? (uint32_t)__builtin_ctz((uint32_t)a) : UINT32_MAX;
    default: return (uint32_t)__builtin_popcount((uint32_t)a);
    }
}

static inline uint64_t machine_convert(enum kir_scalar from, enum kir_scalar to, uint64_t a)
{
    int32_t i = (int32_t)(uint32_t)a;
    float x = as_f32(a);

    if (to == KIR_F32)
        return of_f32(from == KIR_I32 ? (float)i : (float)(uint32_t)a);
    if (from != KIR_F32)
        return (uint32_t)a;
    return to == KIR_I32 ? (uint32_t)(int32_t)x : (uint32_t)x;
}

static inline uint32_t machine_bytes(const struct kir_buffer *b)
{
    return kir_scalar_bytes((enum kir_scalar)b->type.scalar);
}

/* 64-bit integers are pairs here: two words of one element. */
static inline void machine_load(const struct machine *m, const struct kir_instr *n,
                                struct cell *out)
{
    const struct kir_buffer *b = &m->k->buffer[n->imm];
    uint32_t bytes = machine_bytes(b), index = (uint32_t)m->value[n->a].lane[0];
    const char *at = (const char *)m->buffer[n->imm] + (size_t)index * bytes * b->type.lanes;

    for (uint32_t l = 0; l < b->type.lanes; l++)
        memcpy(&out->lane[l], at + l * bytes, bytes == 8 ? 4 : bytes);
    if (bytes == 8)
        memcpy(&out->lane[1], at + 4, 4);
}

static inline void machine_store(const struct machine *m, const struct kir_instr *n)
{
    const struct kir_buffer *b = &m->k->buffer[n->imm];
    uint32_t bytes = machine_bytes(b), index = (uint32_t)m->value[n->a].lane[0];
    char *at = (char *)m->buffer[n->imm] + (size_t)index * bytes * b->type.lanes;

    for (uint32_t l = 0; l < b->type.lanes; l++)
        memcpy(at + l * bytes, &m->value[n->b].lane[l], bytes == 8 ? 4 : bytes);
    if (bytes == 8)
        memcpy(at + 4, &m->value[n->b].lane[1], 4);
}

static inline float machine_off(const struct machine *m, float q)
{
    for (int i = 0; isfinite(q) && q != 0 && i < abs(m->liberty.units_off); i++)
        q = nextafterf(q, m->liberty.units_off < 0 ? -INFINITY : INFINITY);
    return q;
}

static inline bool is_product(const struct machine *m, kir_value v)
{
    return m->k->instr[v].op == KIR_MUL && m->k->instr[v].type.scalar == KIR_F32;
}

/* A sum or difference with a product that is not rounded; false: it has none. */
static inline bool machine_contract(const struct machine *m, const struct kir_instr *n, uint32_t l,
                                    uint64_t *out)
{
    bool left = is_product(m, n->a);
    const struct kir_instr *p = &m->k->instr[left ? n->a : n->b];

    if (!m->liberty.contracts || (!left && !is_product(m, n->b)))
        return false;
    float x = as_f32(m->value[p->a].lane[l]), y = as_f32(m->value[p->b].lane[l]);
    float z = as_f32(m->value[left ? n->b : n->a].lane[l]);
    if (n->op == KIR_SUB && left)
        z = -z;
    else if (n->op == KIR_SUB)
        x = -x;
    *out = of_f32(fmaf(x, y, z));
    return true;
}

static inline uint64_t machine_two(const struct machine *m, const struct kir_instr *n,
                                   enum kir_scalar s, uint32_t l)
{
    uint64_t a = m->value[n->a].lane[l], b = m->value[n->b].lane[l], out;

    if (s == KIR_F32 && n->op == KIR_DIV)
        return of_f32(machine_off(m, as_f32(a) / as_f32(b)));
    if (s == KIR_F32 && (n->op == KIR_ADD || n->op == KIR_SUB) && machine_contract(m, n, l, &out))
        return out;
    return machine_binary((enum kir_op)n->op, s, a, b);
}

/* The value of an instruction that is not a jump. */
static inline void machine_step(struct machine *m, uint32_t i)
{
    const struct kir_instr *n = &m->k->instr[i];
    struct cell *out = &m->value[i], none = {{0}};
    const struct cell *a = n->a == KIR_NONE ? &none : &m->value[n->a];
    const struct cell *b = n->b == KIR_NONE ? &none : &m->value[n->b];
    const struct cell *c = n->c == KIR_NONE ? &none : &m->value[n->c];
    const kir_value part[4] = {n->a, n->b, n->c, n->d};
    enum kir_scalar s =
        n->a == KIR_NONE ? KIR_VOID : (enum kir_scalar)m->k->instr[n->a].type.scalar;

    switch (n->op) {
    case KIR_CONST: *out = (struct cell){{n->imm}}; return;
    case KIR_PARAM:
        *out = (struct cell){{m->param[n->imm + (n->a == KIR_NONE ? 0 : a->lane[0])]}};
        return;
    case KIR_BUILTIN: *out = (struct cell){{m->builtin[n->imm]}}; return;
    case KIR_LOAD: *out = m->var[n->imm][a->lane[0]]; return;
    case KIR_STORE: m->var[n->imm][a->lane[0]] = *b; return;
    case KIR_BUFFER_LOAD:
        *out = none;
        machine_load(m, n, out);
        return;
    case KIR_BUFFER_STORE: machine_store(m, n); return;
    case KIR_SELECT: *out = a->lane[0] ? *b : *c; return;
    case KIR_BITCAST:
    case KIR_BITS_OF:
    case KIR_FROM_BITS: *out = *a; return;
    case KIR_EXTRACT: *out = (struct cell){{a->lane[b->lane[0]]}}; return;
    case KIR_INSERT:
        *out = *a;
        out->lane[b->lane[0]] = c->lane[0];
        return;
    default: break;
    }
    for (uint32_t l = 0; l < n->type.lanes; l++)
        if (n->op == KIR_VECTOR)
            out->lane[l] = m->value[part[l]].lane[0];
        else if (n->op == KIR_SPLAT)
            out->lane[l] = a->lane[0];
        else if (n->op == KIR_CONVERT)
            out->lane[l] = machine_convert(s, (enum kir_scalar)n->type.scalar, a->lane[l]);
        else if (n->op == KIR_FMA)
            out->lane[l] = of_f32(fmaf(as_f32(a->lane[l]), as_f32(b->lane[l]), as_f32(c->lane[l])));
        else if (n->op == KIR_SQRT)
            out->lane[l] = of_f32(machine_off(m, sqrtf(as_f32(a->lane[l]))));
        else if (n->b == KIR_NONE)
            out->lane[l] = machine_unary((enum kir_op)n->op, s, a->lane[l]);
        else
            out->lane[l] = machine_two(m, n, s, l);
}

/* The end of the block that instruction i is in or opens: its ELSE (if wanted) or its END. */
static inline uint32_t machine_skip(const struct kir *k, uint32_t i, enum kir_op stop,
                                    enum kir_op end)
{
    int depth = 0;

    for (i++;; i++) {
        enum kir_op op = (enum kir_op)k->instr[i].op;
        if (depth == 0 && (op == stop || op == end))
            return i;
        depth += op == KIR_IF || op == KIR_LOOP;
        depth -= op == KIR_END_IF || op == KIR_END_LOOP;
    }
}

/* From inside a loop, through the blocks around the place: its CONTINUING or its END. */
static inline uint32_t machine_leave(const struct kir *k, uint32_t i, bool to_end)
{
    int depth = 0;

    for (i++;; i++) {
        enum kir_op op = (enum kir_op)k->instr[i].op;
        if (depth == 0 && op == (to_end ? KIR_END_LOOP : KIR_CONTINUING))
            return i;
        if (op == KIR_IF || op == KIR_LOOP)
            depth++;
        else if ((op == KIR_END_IF || op == KIR_END_LOOP) && depth > 0)
            depth--;
    }
}

static inline void machine_run(struct machine *m)
{
    const struct kir *k = m->k;
    uint32_t loop[64], loops = 0;

    for (uint32_t i = 0; i < k->instrs; i++) {
        const struct kir_instr *n = &k->instr[i];
        switch (n->op) {
        case KIR_IF:
            if (!m->value[n->a].lane[0])
                i = machine_skip(k, i, KIR_ELSE, KIR_END_IF);
            break;
        case KIR_ELSE: i = machine_skip(k, i, KIR_END_IF, KIR_END_IF); break;
        case KIR_LOOP: loop[loops++] = i; break;
        case KIR_END_LOOP: i = loop[loops - 1]; break;
        case KIR_BREAK:
            i = machine_leave(k, i, true);
            loops--;
            break;
        case KIR_CONTINUE: i = machine_leave(k, i, false); break;
        case KIR_END_IF:
        case KIR_CONTINUING: break;
        case KIR_RETURN: return;
        default: machine_step(m, i);
        }
    }
}

/* The kernel of s, group by group of one invocation each, by a driver that takes liberties. */
static inline void interpret_freely(struct source *s, void *const *buffer, const uint32_t *param,
                                    uint32_t groups, struct liberty liberty)
{
    struct machine m = {.k = &s->kir, .liberty = liberty, .buffer = buffer, .param = param};

    m.value = arena_array(&s->arena, struct cell, s->kir.instrs);
    m.var = arena_array(&s->arena, struct cell *, s->kir.vars);
    for (uint32_t v = 0; v < s->kir.vars; v++) {
        uint32_t count = s->kir.var[v].type.count ? s->kir.var[v].type.count : 1;
        m.var[v] = arena_array(&s->arena, struct cell, count);
        for (uint32_t e = 0; s->kir.var[v].table && e < count; e++)
            m.var[v][e].lane[0] = s->kir.var[v].table[e];
    }
    for (uint32_t g = 0; g < groups; g++) {
        m.builtin[KIR_GROUP_X] = g;
        m.builtin[KIR_GROUPS_X] = groups;
        machine_run(&m);
    }
}

/* The same by one that takes none. */
static inline void interpret(struct source *s, void *const *buffer, const uint32_t *param,
                             uint32_t groups)
{
    interpret_freely(s, buffer, param, groups, (struct liberty){0});
}

#endif
