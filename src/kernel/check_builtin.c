/* check_builtin.c: functions that the language brings. */
#include <string.h>

#include "kernel/check.h"

enum rule {
    FLOATS,   /* all of one float type, which is the result */
    NUMBERS,  /* all of one type of floats or 32-bit integers */
    WORDS,    /* u32, or a vector of it */
    DOT,      /* u32, u32, and a sum of the result's type */
    SUBGROUP, /* one value of 32 bits or a vector */
    BOOLS
};
static const struct builtin {
    const char *name;
    enum kir_op op;
    uint32_t args;
    enum rule rule;
} builtins[] = {
    {"min", KIR_MIN, 2, NUMBERS},
    {"max", KIR_MAX, 2, NUMBERS},
    {"abs", KIR_ABS, 1, NUMBERS},
    {"floor", KIR_FLOOR, 1, FLOATS},
    {"ceil", KIR_CEIL, 1, FLOATS},
    {"trunc", KIR_TRUNC, 1, FLOATS},
    {"round", KIR_ROUND, 1, FLOATS},
    {"sqrt", KIR_SQRT, 1, FLOATS},
    {"native_fma", KIR_FMA, 3, FLOATS},
    {"native_exp2", KIR_NATIVE_EXP2, 1, FLOATS},
    {"native_log2", KIR_NATIVE_LOG2, 1, FLOATS},
    {"native_sin", KIR_NATIVE_SIN, 1, FLOATS},
    {"native_cos", KIR_NATIVE_COS, 1, FLOATS},
    {"count_ones", KIR_COUNT_ONES, 1, WORDS},
    {"highest_bit", KIR_HIGHEST_BIT, 1, WORDS},
    {"lowest_bit", KIR_LOWEST_BIT, 1, WORDS},
    {"dot4_i8", KIR_DOT4_I8, 3, DOT},
    {"dot4_u8", KIR_DOT4_U8, 3, DOT},
    {"subgroup_add", KIR_SUBGROUP_ADD, 1, SUBGROUP},
    {"subgroup_min", KIR_SUBGROUP_MIN, 1, SUBGROUP},
    {"subgroup_max", KIR_SUBGROUP_MAX, 1, SUBGROUP},
    {"subgroup_scan", KIR_SUBGROUP_SCAN, 1, SUBGROUP},
    {"subgroup_first", KIR_SUBGROUP_FIRST, 1, SUBGROUP},
    {"subgroup_shuffle", KIR_SUBGROUP_SHUFFLE, 2, SUBGROUP},
    {"subgroup_xor", KIR_SUBGROUP_XOR, 2, SUBGROUP},
    {"subgroup_any", KIR_SUBGROUP_ANY, 1, BOOLS},
    {"subgroup_all", KIR_SUBGROUP_ALL, 1, BOOLS},
};

static const struct kir_type word = {.scalar = KIR_U32, .lanes = 1};

static bool need_args(struct kc_checker *c, const struct kc_tree *t, uint32_t count)
{
    if (t->args != count)
        kc_error(c, t->at, "%.*s takes %u arguments, not %u", STR_ARG(t->name), count, t->args);
    return !kc_bad(c);
}

/* ---- lane by lane ---- */

static bool suits(const struct kc_checker *c, enum rule rule, struct kir_type t)
{
    enum kir_scalar s = (enum kir_scalar)t.scalar;
    bool plain = !t.count && !t.use && !kc_is_narrow(c, s);

    switch (rule) {
    case FLOATS: return plain && kc_is_float(s);
    case NUMBERS: return plain && (kc_is_float(s) || s == KIR_I32 || s == KIR_U32);
    case WORDS: return plain && s == KIR_U32;
    case SUBGROUP: return plain && s >= KIR_I32 && s <= KIR_F32;
    default: return s == KIR_BOOL && plain;
    }
}

/* The type that the arguments have in common: that of the first which has one, of a vector first.
 */
static struct kir_type common(const struct kc_value *arg, uint32_t count)
{
    struct kir_type t = {0};

    for (uint32_t i = 0; i < count; i++)
        if (arg[i].kind != KC_V_WHOLE && arg[i].kind != KC_V_REAL &&
            (t.scalar == KIR_VOID || (t.lanes == 1 && arg[i].type.lanes > 1)))
            t = arg[i].type;
    for (uint32_t i = 0; t.scalar == KIR_VOID && i < count; i++)
        if (arg[i].kind == KC_V_REAL)
            t = kir_scalar_type(KIR_F32);
    return t.scalar == KIR_VOID ? kc_own_type(&arg[0]) : t;
}

static bool fold_extreme(enum kir_op op, const struct kc_value *arg, struct kc_value *out)
{
    int64_t a, b;

    if ((op != KIR_MIN && op != KIR_MAX) || !kc_as_whole(&arg[0], &a) || !kc_as_whole(&arg[1], &b))
        return false;
    *out = (op == KIR_MIN) == (a < b) ? arg[0] : arg[1];
    return true;
}

static struct kc_value on_values(struct kc_checker *c, const struct kc_tree *t,
                                 const struct builtin *b)
{
    struct kc_value arg[3] = {{0}}, folded;
    kir_value id[3] = {KIR_NONE, KIR_NONE, KIR_NONE};
    uint32_t same = b->rule == SUBGROUP ? 1 : b->args;
    char text[64];

    for (uint32_t i = 0; i < b->args; i++)
        arg[i] = kc_check_expr(c, t->arg[i]);
    if (kc_bad(c))
        return arg[0];
    if (fold_extreme(b->op, arg, &folded))
        return folded;
    struct kir_type type = common(arg, same);
    if (b->rule == FLOATS && (arg[0].kind == KC_V_WHOLE) && type.scalar == KIR_U32)
        type = kir_scalar_type(KIR_F32);
    if (!suits(c, b->rule, type)) {
        kc_type_text(type, text);
        kc_error(c, t->at, "%s does not take %s", b->name, text);
        return arg[0];
    }
    for (uint32_t i = 0; i < b->args; i++)
        id[i] = kc_id_as(c, arg[i], i < same ? type : word, t->arg[i]->at);
    c->at = t->at;
    return kc_of(type, kc_emit(c, b->op, type, id[0], id[1], id[2], 0));
}

static struct kc_value dot(struct kc_checker *c, const struct kc_tree *t, const struct builtin *b)
{
    struct kir_type sum = kir_scalar_type(b->op == KIR_DOT4_I8 ? KIR_I32 : KIR_U32);
    kir_value x = kc_id_as(c, kc_check_expr(c, t->arg[0]), word, t->arg[0]->at);
    kir_value y = kc_id_as(c, kc_check_expr(c, t->arg[1]), word, t->arg[1]->at);
    kir_value z = kc_id_as(c, kc_check_expr(c, t->arg[2]), sum, t->arg[2]->at);

    return kc_of(sum, kc_emit(c, b->op, sum, x, y, z, 0));
}

static bool of_table(struct kc_checker *c, const struct kc_tree *t, struct kc_value *out)
{
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
        const struct builtin *b = &builtins[i];
        if (!str_eq(t->name, rlx_cstr(b->name)))
            continue;
        bool subgroup = b->rule == SUBGROUP || b->rule == BOOLS;
        c->out->uses_subgroups |= subgroup;
        if (subgroup && !c->features->subgroups)
            kc_error(c, t->at, "the device has no subgroups");
        if ((b->op == KIR_FMA && !c->features->fma) || (b->rule == DOT && !c->features->dot8))
            kc_error(c, t->at, "the device has no %s", b->name);
        if (need_args(c, t, b->args))
            *out = b->rule == DOT ? dot(c, t, b) : on_values(c, t, b);
        return true;
    }
    return false;
}

/* ---- bits ---- */

static struct kc_value cast_bits(struct kc_checker *c, struct kc_value v, struct kir_type to,
                                 uint32_t at)
{
    if (kir_type_same(v.type, to))
        return v;
    if (v.kind == KC_V_CONST)
        return kc_const(to, v.bits);
    return kc_of(to, kc_emit(c, KIR_BITCAST, to, kc_id(c, v, at), KIR_NONE, KIR_NONE, 0));
}

/* to_bits(x): of a narrow value, or of 32 bits in each lane, as u32; of 64 bits as u32x2. */
static struct kc_value to_bits(struct kc_checker *c, const struct kc_tree *t)
{
    struct kc_value v = kc_check_expr(c, t->arg[0]);
    struct kir_type to = word;

    if (kc_bad(c))
        return v;
    v = kc_fit(c, v, kc_own_type(&v), t->at);
    enum kir_scalar s = (enum kir_scalar)v.type.scalar;
    if (s == KIR_BOOL || v.type.use || v.type.count) {
        kc_error(c, t->at, "this type has no bits to reinterpret");
        return v;
    }
    if (s == KIR_F16 || s >= KIR_BF16)
        return kc_of(word,
                     kc_emit(c, KIR_BITS_OF, word, kc_id(c, v, t->at), KIR_NONE, KIR_NONE, 0));
    to.lanes = s == KIR_F64 || s == KIR_I64 || s == KIR_U64 ? 2 : v.type.lanes;
    if (to.lanes == 2 && v.type.lanes == 1) /* a constant of 64 bits has to be made first */
        v = kc_of(v.type, kc_id(c, v, t->at));
    return cast_bits(c, v, to, t->at);
}

/* from_bits(T, u): the value of type T that has them. */
static struct kc_value from_bits(struct kc_checker *c, const struct kc_tree *t)
{
    struct kir_type to = {0}, from = word;

    if (t->arg[0]->kind != KC_T_NAME)
        kc_error(c, t->at, "from_bits takes the name of a type first");
    else
        to = kc_resolve_type(c, &(struct kc_type_tree){.at = t->at, .name = t->arg[0]->name});
    if (kc_bad(c))
        return (struct kc_value){0};
    enum kir_scalar s = (enum kir_scalar)to.scalar;
    from.lanes = s == KIR_F64 || s == KIR_I64 || s == KIR_U64 ? 2 : to.lanes;
    struct kc_value v = kc_fit(c, kc_check_expr(c, t->arg[1]), from, t->arg[1]->at);
    if (s == KIR_F16 || s >= KIR_BF16)
        return kc_of(to, kc_emit(c, KIR_FROM_BITS, to, kc_id(c, v, t->at), KIR_NONE, KIR_NONE, 0));
    return cast_bits(c, v, to, t->at);
}

static struct kc_value select(struct kc_checker *c, const struct kc_tree *t)
{
    struct kir_type truth = kir_scalar_type(KIR_BOOL);
    struct kc_value cond = kc_fit(c, kc_check_expr(c, t->arg[0]), truth, t->arg[0]->at);
    struct kc_value arg[2] = {kc_check_expr(c, t->arg[1]), kc_check_expr(c, t->arg[2])};
    bool known;

    if (kc_bad(c))
        return cond;
    if (kc_as_bool(&cond, &known))
        return known ? arg[0] : arg[1];
    struct kir_type type = common(arg, 2);
    kir_value a = kc_id_as(c, arg[0], type, t->arg[1]->at);
    kir_value b = kc_id_as(c, arg[1], type, t->arg[2]->at);
    return kc_of(type, kc_emit(c, KIR_SELECT, type, cond.id, a, b, 0));
}

/* ---- memory of the group ---- */

static struct kc_value atomic(struct kc_checker *c, const struct kc_tree *t, enum kir_op op)
{
    struct kc_place p;
    struct kc_value none = {0};
    uint32_t args = op == KIR_ATOMIC_CAS ? 3 : 2;

    if (!need_args(c, t, args) || !kc_check_place(c, t->arg[0], &p))
        return none;
    if (!p.atomic || p.lane >= 0) {
        kc_error(c, t->at, "an element of something atomic is expected");
        return none;
    }
    kir_value value = kc_id_as(c, kc_check_expr(c, t->arg[1]), p.type, t->arg[1]->at);
    kir_value old = KIR_NONE;
    if (args == 3)
        old = kc_id_as(c, kc_check_expr(c, t->arg[2]), p.type, t->arg[2]->at);
    uint64_t target = p.index | (p.buffer ? KIR_IN_BUFFER : 0);
    return kc_of(p.type, kc_emit(c, op, p.type, p.at, value, old, target));
}

static bool atomics(struct kc_checker *c, const struct kc_tree *t, struct kc_value *out)
{
    static const struct {
        const char *name;
        enum kir_op op;
    } ops[] = {{"atomic_add", KIR_ATOMIC_ADD},   {"atomic_min", KIR_ATOMIC_MIN},
               {"atomic_max", KIR_ATOMIC_MAX},   {"atomic_and", KIR_ATOMIC_AND},
               {"atomic_or", KIR_ATOMIC_OR},     {"atomic_xor", KIR_ATOMIC_XOR},
               {"atomic_swap", KIR_ATOMIC_SWAP}, {"atomic_cas", KIR_ATOMIC_CAS}};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (str_eq(t->name, rlx_cstr(ops[i].name))) {
            *out = atomic(c, t, ops[i].op);
            return true;
        }
    return false;
}

/* group_value(place): what is there, known to be the same for all of the group. */
static struct kc_value group_value(struct kc_checker *c, const struct kc_tree *t)
{
    struct kc_place p;
    struct kc_value none = {0};

    if (!need_args(c, t, 1) || !kc_check_place(c, t->arg[0], &p))
        return none;
    if (p.buffer || !c->out->var[p.index].shared || p.atomic || p.lane >= 0 || p.type.count) {
        kc_error(c, t->at, "an element of shared memory is expected, not an atomic one");
        return none;
    }
    return kc_of(p.type, kc_emit(c, KIR_GROUP_LOAD, p.type, p.at, KIR_NONE, KIR_NONE, p.index));
}

/* ---- cooperative matrices ---- */

/* coop_load(m, place, stride, by_column): m is a variable. coop_store the same way. */
static void move_matrix(struct kc_checker *c, const struct kc_tree *t, bool load)
{
    struct kc_place m, p;
    bool by_column = false;
    struct kir_type none = {0};

    if (!need_args(c, t, 4) || !kc_check_place(c, t->arg[0], &m) ||
        !kc_check_place(c, t->arg[1], &p))
        return;
    kir_value stride = kc_id_as(c, kc_check_expr(c, t->arg[2]), word, t->arg[2]->at);
    struct kc_value column = kc_check_expr(c, t->arg[3]);
    if (!kc_bad(c) && !kc_as_bool(&column, &by_column))
        kc_error(c, t->arg[3]->at, "true or false is expected");
    if (!m.type.use || p.at == KIR_NONE)
        kc_error(c, t->at, "a matrix and an element of memory are expected");
    uint64_t target = p.index | (p.buffer ? KIR_IN_BUFFER : 0);
    kir_value made, whole = KIR_NONE;
    if (!load)
        whole = kc_load(c, &m).id;
    made = kc_emit(c, load ? KIR_COOP_LOAD : KIR_COOP_STORE, load ? m.type : none, p.at, stride,
                   whole, target);
    if (kc_bad(c))
        return;
    c->out->instr[made].d = by_column;
    if (load)
        kc_store(c, &m, kc_of(m.type, made), t->at);
}

/* coop_load_tile(m, place, shape, corner, turned, inside): what lies outside of the shape is zero;
 * nothing does where inside is true. coop_store_tile(m, place, shape, corner, inside). */
static void move_tile(struct kc_checker *c, const struct kc_tree *t, bool load)
{
    const struct kir_type shape_type = {.scalar = KIR_U32, .lanes = 3};
    const struct kir_type corner_type = {.scalar = KIR_U32, .lanes = 2}, none = {0};
    struct kc_place m, p;
    bool turned = false, inside = false;

    if (!need_args(c, t, load ? 6 : 5) || !kc_check_place(c, t->arg[0], &m) ||
        !kc_check_place(c, t->arg[1], &p))
        return;
    kir_value shape = kc_id_as(c, kc_check_expr(c, t->arg[2]), shape_type, t->arg[2]->at);
    kir_value corner = kc_id_as(c, kc_check_expr(c, t->arg[3]), corner_type, t->arg[3]->at);
    for (uint32_t i = 4; i < t->args && !kc_bad(c); i++) {
        struct kc_value flag = kc_check_expr(c, t->arg[i]);
        if (!kc_bad(c) && !kc_as_bool(&flag, i == t->args - 1 ? &inside : &turned))
            kc_error(c, t->arg[i]->at, "true or false is expected");
    }
    if (!m.type.use || p.at == KIR_NONE || !p.buffer)
        kc_error(c, t->at, "a matrix and an element of a buffer are expected");
    if (!c->features->coop_group)
        kc_error(c, t->at, "the device has no tiles of cooperative matrices");
    kir_value whole = load ? KIR_NONE : kc_load(c, &m).id;
    kir_value made =
        kc_emit(c, load ? KIR_COOP_LOAD_TILE : KIR_COOP_STORE_TILE, load ? m.type : none, p.at,
                shape, corner, p.index | KIR_IN_BUFFER | (inside ? KIR_INSIDE : 0));
    if (kc_bad(c))
        return;
    c->out->instr[made].d = load ? turned : whole;
    if (load)
        kc_store(c, &m, kc_of(m.type, made), t->at);
}

static struct kc_value multiply(struct kc_checker *c, const struct kc_tree *t)
{
    struct kc_value v[3];

    for (int i = 0; i < 3; i++)
        v[i] = kc_check_expr(c, t->arg[i]);
    if (kc_bad(c))
        return v[0];
    if (v[0].type.use != KIR_MATRIX_A || v[1].type.use != KIR_MATRIX_B ||
        v[2].type.use != KIR_MATRIX_ACC || v[0].type.rows != v[2].type.rows ||
        v[1].type.cols != v[2].type.cols || v[0].type.cols != v[1].type.rows)
        kc_error(c, t->at, "these matrices do not go together");
    return kc_of(v[2].type, kc_emit(c, KIR_COOP_MULADD, v[2].type, v[0].id, v[1].id, v[2].id, 0));
}

/* Functions of the rows and elements of sums: the first argument, or both, are such matrices. */
static const struct row_builtin {
    const char *name;
    enum kir_op op;
    uint32_t args;
} row_builtins[] = {{"coop_row_max", KIR_COOP_ROW_MAX, 1},
                    {"coop_row_sum", KIR_COOP_ROW_SUM, 1},
                    {"coop_max", KIR_COOP_MAX, 2},
                    {"coop_exp2", KIR_COOP_EXP2, 1},
                    {"coop_between", KIR_COOP_BETWEEN, 4}};

static struct kc_value rows_of(struct kc_checker *c, const struct kc_tree *t, enum kir_op op)
{
    const struct kir_type step = {.scalar = KIR_I32, .lanes = 1};
    kir_value id[4] = {KIR_NONE, KIR_NONE, KIR_NONE, KIR_NONE};
    struct kir_type type = {0};

    for (uint32_t i = 0; i < t->args && !kc_bad(c); i++) {
        struct kc_value v = kc_check_expr(c, t->arg[i]);
        bool matrix = i == 0 || op == KIR_COOP_MAX;
        if (i == 0)
            type = v.type;
        if (!kc_bad(c) && matrix &&
            (v.type.use != KIR_MATRIX_ACC || v.type.scalar != KIR_F32 || v.type.rows != type.rows ||
             v.type.cols != type.cols))
            kc_error(c, t->arg[i]->at, "a matrix of sums of f32 is expected");
        id[i] = matrix ? v.id : kc_id_as(c, v, i == 3 ? word : step, t->arg[i]->at);
    }
    if (!c->features->coop_rows)
        kc_error(c, t->at, "the device has no functions of the rows of matrices");
    kir_value made = kc_emit(c, op, type, id[0], id[1], id[2], 0);
    if (!kc_bad(c))
        c->out->instr[made].d = id[3];
    return kc_of(type, made);
}

static bool matrices(struct kc_checker *c, const struct kc_tree *t, struct kc_value *out)
{
    for (size_t i = 0; i < sizeof row_builtins / sizeof row_builtins[0]; i++)
        if (str_eq(t->name, rlx_cstr(row_builtins[i].name))) {
            if (need_args(c, t, row_builtins[i].args))
                *out = rows_of(c, t, row_builtins[i].op);
            return true;
        }
    if (str_eq(t->name, STR("coop_load")) || str_eq(t->name, STR("coop_store"))) {
        move_matrix(c, t, str_eq(t->name, STR("coop_load")));
        return true;
    }
    if (str_eq(t->name, STR("coop_load_tile")) || str_eq(t->name, STR("coop_store_tile"))) {
        move_tile(c, t, str_eq(t->name, STR("coop_load_tile")));
        return true;
    }
    if (!str_eq(t->name, STR("coop_muladd")))
        return false;
    if (need_args(c, t, 3))
        *out = multiply(c, t);
    return true;
}

bool kc_builtin(struct kc_checker *c, const struct kc_tree *t, struct kc_value *out)
{
    struct kir_type none = {0};

    *out = (struct kc_value){0};
    if (str_eq(t->name, STR("barrier")) || str_eq(t->name, STR("buffer_barrier"))) {
        enum kir_op op = t->name.len == 7 ? KIR_BARRIER : KIR_BUFFER_BARRIER;
        if (need_args(c, t, 0))
            kc_emit(c, op, none, KIR_NONE, KIR_NONE, KIR_NONE, 0);
    } else if (str_eq(t->name, STR("group_value"))) {
        *out = group_value(c, t);
    } else if (str_eq(t->name, STR("to_bits"))) {
        if (need_args(c, t, 1))
            *out = to_bits(c, t);
    } else if (str_eq(t->name, STR("from_bits"))) {
        if (need_args(c, t, 2))
            *out = from_bits(c, t);
    } else if (str_eq(t->name, STR("select"))) {
        if (need_args(c, t, 3))
            *out = select(c, t);
    } else {
        return of_table(c, t, out) || atomics(c, t, out) || matrices(c, t, out);
    }
    return true;
}
