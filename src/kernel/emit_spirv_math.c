/* emit_spirv_math.c: values from values in SPIR-V. One kir instruction is one or two of its own. */
#include <string.h>

#include "kernel/emit_spirv.h"

enum { NO_CONTRACTION = 42, SCOPE_SUBGROUP = 3 };
enum {
    GLSL_ROUND_EVEN = 2,
    GLSL_TRUNC = 3,
    GLSL_F_ABS = 4,
    GLSL_S_ABS = 5,
    GLSL_FLOOR = 8,
    GLSL_CEIL = 9,
    GLSL_SIN = 13,
    GLSL_COS = 14,
    GLSL_EXP2 = 29,
    GLSL_LOG2 = 30,
    GLSL_SQRT = 31,
    GLSL_F_MIN = 37,
    GLSL_U_MIN = 38,
    GLSL_S_MIN = 39,
    GLSL_F_MAX = 40,
    GLSL_U_MAX = 41,
    GLSL_S_MAX = 42,
    GLSL_FMA = 50,
    GLSL_FIND_LOWEST = 73,
    GLSL_FIND_HIGHEST = 75
};
enum class { UNSIGNED, SIGNED, FLOAT };

static enum class class_of(struct kir_type t) {
    switch (t.scalar){
        case KIR_I32 : case KIR_I64 : return SIGNED;
        case KIR_F32 : case KIR_F16 : case KIR_BF16 : case KIR_F64 : return FLOAT;
        default : return UNSIGNED;
    }
}

static spirv_id glsl(struct emit *e, spirv_id type, uint32_t number, const struct kir_instr *n)
{
    uint32_t word[5] = {e->s.glsl, number};
    size_t count = 2;
    const kir_value operand[3] = {n->a, n->b, n->c};

    for (int i = 0; i < 3; i++)
        if (operand[i] != KIR_NONE)
            word[count++] = e->value[operand[i]];
    return spirv_make(&e->s, OP_EXT_INST, type, word, count);
}

/* ---- arithmetic and comparisons: by class ---- */

static enum spirv_op op_for(enum kir_op op, enum class class)
{
    static const uint16_t table[][3] = {
        [KIR_ADD] = {OP_I_ADD, OP_I_ADD, OP_F_ADD},
        [KIR_SUB] = {OP_I_SUB, OP_I_SUB, OP_F_SUB},
        [KIR_MUL] = {OP_I_MUL, OP_I_MUL, OP_F_MUL},
        [KIR_DIV] = {OP_U_DIV, OP_S_DIV, OP_F_DIV},
        [KIR_REM] = {OP_U_MOD, OP_S_REM, 0},
        [KIR_NEG] = {OP_S_NEGATE, OP_S_NEGATE, OP_F_NEGATE},
        [KIR_AND] = {OP_BITWISE_AND, OP_BITWISE_AND, 0},
        [KIR_OR] = {OP_BITWISE_OR, OP_BITWISE_OR, 0},
        [KIR_XOR] = {OP_BITWISE_XOR, OP_BITWISE_XOR, 0},
        [KIR_NOT] = {OP_NOT, OP_NOT, 0},
        [KIR_SHL] = {OP_SHIFT_LEFT, OP_SHIFT_LEFT, 0},
        [KIR_SHR] = {OP_SHIFT_RIGHT_LOGICAL, OP_SHIFT_RIGHT_ARITHMETIC, 0},
        [KIR_EQ] = {OP_I_EQUAL, OP_I_EQUAL, OP_F_ORD_EQUAL},
        [KIR_NE] = {OP_I_NOT_EQUAL, OP_I_NOT_EQUAL, OP_F_UNORD_NOT_EQUAL},
        [KIR_LT] = {OP_U_LESS, OP_S_LESS, OP_F_ORD_LESS},
        [KIR_LE] = {OP_U_LESS_EQUAL, OP_S_LESS_EQUAL, OP_F_ORD_LESS_EQUAL},
        [KIR_GT] = {OP_U_GREATER, OP_S_GREATER, OP_F_ORD_GREATER},
        [KIR_GE] = {OP_U_GREATER_EQUAL, OP_S_GREATER_EQUAL, OP_F_ORD_GREATER_EQUAL},
        [KIR_COUNT_ONES] = {OP_BIT_COUNT, OP_BIT_COUNT, 0},
        [KIR_LOGIC_AND] = {OP_LOGICAL_AND},
        [KIR_LOGIC_OR] = {OP_LOGICAL_OR},
        [KIR_LOGIC_NOT] = {OP_LOGICAL_NOT},
    };
    return (size_t)op < sizeof table / sizeof table[0] ? (enum spirv_op)table[op][class] : 0;
}

static uint32_t glsl_for(enum kir_op op, enum class class)
{
    switch (op) {
    case KIR_MIN: return class == FLOAT ? GLSL_F_MIN : class == SIGNED ? GLSL_S_MIN : GLSL_U_MIN;
    case KIR_MAX: return class == FLOAT ? GLSL_F_MAX : class == SIGNED ? GLSL_S_MAX : GLSL_U_MAX;
    case KIR_ABS: return class == FLOAT ? GLSL_F_ABS : GLSL_S_ABS;
    case KIR_FLOOR: return GLSL_FLOOR;
    case KIR_CEIL: return GLSL_CEIL;
    case KIR_TRUNC: return GLSL_TRUNC;
    case KIR_ROUND: return GLSL_ROUND_EVEN;
    case KIR_SQRT: return GLSL_SQRT;
    case KIR_FMA: return GLSL_FMA;
    case KIR_NATIVE_EXP2: return GLSL_EXP2;
    case KIR_NATIVE_LOG2: return GLSL_LOG2;
    case KIR_NATIVE_SIN: return GLSL_SIN;
    case KIR_NATIVE_COS: return GLSL_COS;
    case KIR_HIGHEST_BIT: return GLSL_FIND_HIGHEST;
    case KIR_LOWEST_BIT: return GLSL_FIND_LOWEST;
    default: return 0;
    }
}

static spirv_id plain(struct emit *e, const struct kir_instr *n, enum spirv_op op)
{
    spirv_id type = emit_type(e, n->type), a = e->value[n->a], made;

    if (n->b == KIR_NONE)
        made = SPIRV_MAKE(&e->s, op, type, a);
    else
        made = SPIRV_MAKE(&e->s, op, type, a, e->value[n->b]);
    /* What is written as two roundings is two: fma is asked for by its name. */
    if (op == OP_F_ADD || op == OP_F_SUB || op == OP_F_MUL)
        SPIRV(&e->s, SPIRV_DECORATIONS, OP_DECORATE, made, NO_CONTRACTION);
    return made;
}

/* Bools are compared by other names. */
static spirv_id compare_bools(struct emit *e, const struct kir_instr *n)
{
    enum spirv_op op = n->op == KIR_EQ ? OP_LOGICAL_EQUAL : OP_LOGICAL_NOT_EQUAL;

    return SPIRV_MAKE(&e->s, op, spirv_bool(&e->s), e->value[n->a], e->value[n->b]);
}

/* ---- types ---- */

static spirv_id of_bool(struct emit *e, const struct kir_instr *n)
{
    struct kir_type t = n->type;
    uint64_t one = 1;

    if (t.scalar == KIR_F32)
        one = 0x3f800000;
    else if (t.scalar == KIR_F64)
        one = UINT64_C(0x3ff0000000000000);
    else if (t.scalar == KIR_F16)
        one = 0x3c00;
    spirv_id type = emit_type(e, t);
    bool wide = kir_scalar_bytes((enum kir_scalar)t.scalar) == 8;
    return SPIRV_MAKE(&e->s, OP_SELECT, type, e->value[n->a],
                      spirv_constant(&e->s, type, one, wide), spirv_constant(&e->s, type, 0, wide));
}

static spirv_id convert(struct emit *e, const struct kir_instr *n)
{
    struct kir_type from = emit_type_of(e, n->a), to = n->type;
    uint32_t had = kir_scalar_bytes((enum kir_scalar)from.scalar);
    uint32_t has = kir_scalar_bytes((enum kir_scalar)to.scalar);
    enum spirv_op op = OP_BITCAST;

    if (from.scalar == KIR_BOOL)
        return of_bool(e, n);
    if (to.use)
        op = OP_F_CONVERT;
    else if (class_of(from) == FLOAT)
        op = class_of(to) == FLOAT    ? OP_F_CONVERT
             : class_of(to) == SIGNED ? OP_CONVERT_F_TO_S
                                      : OP_CONVERT_F_TO_U;
    else if (class_of(to) == FLOAT)
        op = class_of(from) == SIGNED ? OP_CONVERT_S_TO_F : OP_CONVERT_U_TO_F;
    else if (had != has) {
        /* Widths change under the source's sign, then the sign does. */
        bool is_signed = class_of(from) == SIGNED;
        spirv_id middle = spirv_int(&e->s, has * 8, is_signed);
        spirv_id v =
            SPIRV_MAKE(&e->s, is_signed ? OP_S_CONVERT : OP_U_CONVERT, middle, e->value[n->a]);
        return class_of(to) == class_of(from) ? v
                                              : SPIRV_MAKE(&e->s, OP_BITCAST, emit_type(e, to), v);
    }
    return SPIRV_MAKE(&e->s, op, emit_type(e, to), e->value[n->a]);
}

/* The bits of a narrow value are what stands for it, but for f16 where the device has it. */
static spirv_id bits(struct emit *e, const struct kir_instr *n)
{
    struct spirv *s = &e->s;
    bool to = n->op == KIR_BITS_OF;
    struct kir_type t = to ? emit_type_of(e, n->a) : n->type;
    spirv_id half, pair;

    if (t.scalar != KIR_F16 || !e->f->f16)
        return e->value[n->a];
    half = emit_type(e, kir_scalar_type(KIR_F16));
    pair = spirv_vector(s, half, 2);
    if (!to)
        return SPIRV_MAKE(s, OP_COMPOSITE_EXTRACT, half,
                          SPIRV_MAKE(s, OP_BITCAST, pair, e->value[n->a]), 0);
    spirv_id both = SPIRV_MAKE(s, OP_COMPOSITE_CONSTRUCT, pair, e->value[n->a],
                               spirv_constant(s, half, 0, false));
    return SPIRV_MAKE(s, OP_BITCAST, spirv_int(s, 32, false), both);
}

/* Pairs that stand for 64-bit integers are u32x2 already. */
static spirv_id bitcast(struct emit *e, const struct kir_instr *n)
{
    spirv_id from = emit_type(e, emit_type_of(e, n->a)), to = emit_type(e, n->type);

    return from == to ? e->value[n->a] : SPIRV_MAKE(&e->s, OP_BITCAST, to, e->value[n->a]);
}

static spirv_id vector(struct emit *e, const struct kir_instr *n)
{
    const kir_value operand[4] = {n->a, n->b, n->c, n->d};
    uint32_t lane[4];

    for (uint32_t i = 0; i < n->type.lanes; i++)
        lane[i] = e->value[n->op == KIR_SPLAT ? n->a : operand[i]];
    return spirv_make(&e->s, OP_COMPOSITE_CONSTRUCT, emit_type(e, n->type), lane, n->type.lanes);
}

static spirv_id lane(struct emit *e, const struct kir_instr *n)
{
    const struct kir_instr *index = &e->k->instr[n->b];
    spirv_id type = emit_type(e, n->type);

    if (n->op == KIR_INSERT)
        return SPIRV_MAKE(&e->s, OP_COMPOSITE_INSERT, type, e->value[n->c], e->value[n->a],
                          (uint32_t)index->imm);
    if (index->op == KIR_CONST)
        return SPIRV_MAKE(&e->s, OP_COMPOSITE_EXTRACT, type, e->value[n->a], (uint32_t)index->imm);
    return SPIRV_MAKE(&e->s, OP_VECTOR_EXTRACT, type, e->value[n->a], e->value[n->b]);
}

/* One bool for all lanes; a pair is a vector too. */
static spirv_id select(struct emit *e, const struct kir_instr *n)
{
    uint32_t lanes = emit_is_pair(e, (enum kir_scalar)n->type.scalar) ? 2 : n->type.lanes;
    spirv_id cond = e->value[n->a];
    const uint32_t same[4] = {cond, cond, cond, cond};

    if (lanes > 1)
        cond = spirv_make(&e->s, OP_COMPOSITE_CONSTRUCT,
                          spirv_vector(&e->s, spirv_bool(&e->s), lanes), same, lanes);
    return SPIRV_MAKE(&e->s, OP_SELECT, emit_type(e, n->type), cond, e->value[n->b],
                      e->value[n->c]);
}

static spirv_id dot(struct emit *e, const struct kir_instr *n)
{
    enum { PACKED_4X8 = 0 };
    spirv_id type = emit_type(e, n->type);

    spirv_capability(&e->s, CAP_DOT, "SPV_KHR_integer_dot_product");
    spirv_capability(&e->s, CAP_DOT_PACKED, NULL);
    spirv_id sum = SPIRV_MAKE(&e->s, n->op == KIR_DOT4_I8 ? OP_S_DOT : OP_U_DOT, type,
                              e->value[n->a], e->value[n->b], PACKED_4X8);
    return SPIRV_MAKE(&e->s, OP_I_ADD, type, sum, e->value[n->c]);
}

/* ---- subgroups ---- */

static spirv_id subgroup(struct emit *e, const struct kir_instr *n)
{
    enum { REDUCE = 0, EXCLUSIVE = 2 };
    struct spirv *s = &e->s;
    enum class class = class_of(n->type);
    spirv_id type = emit_type(e, n->type), scope = spirv_word(s, SCOPE_SUBGROUP);
    enum spirv_op op;

    spirv_capability(s, CAP_GROUP, NULL);
    switch (n->op) {
    case KIR_SUBGROUP_ANY:
    case KIR_SUBGROUP_ALL:
        spirv_capability(s, CAP_GROUP_VOTE, NULL);
        return SPIRV_MAKE(s, n->op == KIR_SUBGROUP_ANY ? OP_GROUP_ANY : OP_GROUP_ALL, type, scope,
                          e->value[n->a]);
    case KIR_SUBGROUP_FIRST:
        spirv_capability(s, CAP_GROUP_BALLOT, NULL);
        return SPIRV_MAKE(s, OP_GROUP_BROADCAST_FIRST, type, scope, e->value[n->a]);
    case KIR_SUBGROUP_SHUFFLE:
    case KIR_SUBGROUP_XOR:
        spirv_capability(s, CAP_GROUP_SHUFFLE, NULL);
        op = n->op == KIR_SUBGROUP_XOR ? OP_GROUP_SHUFFLE_XOR : OP_GROUP_SHUFFLE;
        return SPIRV_MAKE(s, op, type, scope, e->value[n->a], e->value[n->b]);
    case KIR_SUBGROUP_MIN:
        op = class == FLOAT ? OP_GROUP_F_MIN : class == SIGNED ? OP_GROUP_S_MIN : OP_GROUP_U_MIN;
        break;
    case KIR_SUBGROUP_MAX:
        op = class == FLOAT ? OP_GROUP_F_MAX : class == SIGNED ? OP_GROUP_S_MAX : OP_GROUP_U_MAX;
        break;
    default: op = class == FLOAT ? OP_GROUP_F_ADD : OP_GROUP_I_ADD; break;
    }
    spirv_capability(s, CAP_GROUP_ARITHMETIC, NULL);
    return SPIRV_MAKE(s, op, type, scope, n->op == KIR_SUBGROUP_SCAN ? EXCLUSIVE : REDUCE,
                      e->value[n->a]);
}

spirv_id emit_math(struct emit *e, const struct kir_instr *n)
{
    enum kir_op op = (enum kir_op)n->op;
    struct kir_type operand = n->a == KIR_NONE ? n->type : emit_type_of(e, n->a);

    switch (op) {
    case KIR_CONVERT: return convert(e, n);
    case KIR_BITCAST: return bitcast(e, n);
    case KIR_BITS_OF:
    case KIR_FROM_BITS: return bits(e, n);
    case KIR_VECTOR:
    case KIR_SPLAT: return vector(e, n);
    case KIR_EXTRACT:
    case KIR_INSERT: return lane(e, n);
    case KIR_SELECT: return select(e, n);
    case KIR_DOT4_I8:
    case KIR_DOT4_U8: return dot(e, n);
    default: break;
    }
    if (op >= KIR_SUBGROUP_ADD && op <= KIR_SUBGROUP_ALL)
        return subgroup(e, n);
    if (op >= KIR_COOP_FILL && op <= KIR_COOP_BETWEEN)
        return emit_matrix(e, n);
    if (operand.scalar == KIR_BOOL && (op == KIR_EQ || op == KIR_NE))
        return compare_bools(e, n);
    if (glsl_for(op, class_of(operand))) {
        /* u32 from the two that find bits */
        return glsl(e, emit_type(e, n->type), glsl_for(op, class_of(operand)), n);
    }
    return plain(e, n, op_for(op, class_of(operand)));
}
