/* check_expr.c: expressions, and places that can be written. */
#include <math.h>

#include "kernel/check.h"

static const struct kir_type word = {.scalar = KIR_U32, .lanes = 1};

int64_t kc_check_size(struct kc_checker *c, const struct kc_tree *t, int64_t least, int64_t most)
{
    struct kc_value v = kc_check_expr(c, t);
    int64_t n = least;

    if (kc_bad(c))
        return least;
    if (!kc_as_whole(&v, &n))
        kc_error(c, t->at, "a constant integer is expected");
    else if (n < least || n > most)
        kc_error(c, t->at, "%lld is not between %lld and %lld", (long long)n, (long long)least,
                 (long long)most);
    return kc_bad(c) ? least : n;
}

/* ---- memory ---- */

/* A bool is a byte in a buffer. */
static struct kir_type stored_type(const struct kc_place *p)
{
    struct kir_type t = p->type;

    if (p->buffer && t.scalar == KIR_BOOL)
        t.scalar = KIR_B8;
    return t;
}

struct kc_value kc_load(struct kc_checker *c, const struct kc_place *p)
{
    struct kir_type t = stored_type(p);
    enum kir_op op = p->buffer ? KIR_BUFFER_LOAD : KIR_LOAD;
    struct kc_value v = kc_of(t, kc_emit(c, op, t, p->at, KIR_NONE, KIR_NONE, p->index));

    if (t.scalar == KIR_B8)
        v = kc_convert(c, v, p->type, c->at);
    if (p->lane < 0 || kc_bad(c))
        return v;
    struct kir_type one = kir_scalar_type((enum kir_scalar)t.scalar);
    kir_value lane = kc_emit(c, KIR_CONST, word, KIR_NONE, KIR_NONE, KIR_NONE, (uint64_t)p->lane);
    return kc_of(one, kc_emit(c, KIR_EXTRACT, one, v.id, lane, KIR_NONE, 0));
}

/* One lane: the whole with that lane changed. */
static struct kc_value with_lane(struct kc_checker *c, const struct kc_place *p, struct kc_value v,
                                 uint32_t at)
{
    struct kc_place whole = *p;
    struct kir_type one = kir_scalar_type((enum kir_scalar)p->type.scalar);

    whole.lane = -1;
    kir_value new = kc_id_as(c, v, one, at);
    struct kc_value old = kc_load(c, &whole);
    kir_value lane = kc_emit(c, KIR_CONST, word, KIR_NONE, KIR_NONE, KIR_NONE, (uint64_t)p->lane);
    return kc_of(p->type, kc_emit(c, KIR_INSERT, p->type, old.id, lane, new, 0));
}

void kc_store(struct kc_checker *c, const struct kc_place *p, struct kc_value v, uint32_t at)
{
    struct kir_type t = stored_type(p), none = {0};

    if (p->lane >= 0)
        v = with_lane(c, p, v, at);
    v = kc_fit(c, v, p->type, at);
    if (t.scalar == KIR_B8)
        v = kc_convert(c, v, t, at);
    kir_value id = kc_id(c, v, at);
    kc_emit(c, p->buffer ? KIR_BUFFER_STORE : KIR_STORE, none, p->at, id, KIR_NONE, p->index);
}

/* ---- places ---- */

static int lane_of(rlx_str name, uint32_t lanes)
{
    static const char names[] = "xyzw";

    for (int i = 0; i < 4 && (uint32_t)i < lanes; i++)
        if (name.len == 1 && name.ptr[0] == names[i])
            return i;
    return -1;
}

static bool element_place(struct kc_checker *c, const struct kc_tree *t, struct kc_place *out)
{
    if (!kc_check_place(c, t->a, out))
        return false;
    if (out->at != KIR_NONE || out->lane >= 0 || !(out->buffer || out->type.count)) {
        kc_error(c, t->at, "this has no elements");
        return false;
    }
    out->at = kc_id_as(c, kc_check_expr(c, t->b), word, t->b ? t->b->at : t->at);
    out->type.count = 0;
    return !kc_bad(c);
}

bool kc_check_place(struct kc_checker *c, const struct kc_tree *t, struct kc_place *out)
{
    if (kc_bad(c))
        return false;
    c->at = t->at;
    if (t->kind == KC_T_INDEX)
        return element_place(c, t, out);
    if (t->kind == KC_T_MEMBER && kc_check_place(c, t->a, out)) {
        out->lane =
            out->type.count || out->type.lanes == 1 ? -1 : lane_of(t->name, out->type.lanes);
        if (out->lane < 0)
            kc_error(c, t->at, "there is no lane called %.*s", STR_ARG(t->name));
        return !kc_bad(c);
    }
    const struct kc_thing *thing = t->kind == KC_T_NAME ? kc_find(c, t->name) : NULL;
    if (!thing || (thing->kind != KC_IS_VAR && thing->kind != KC_IS_BUFFER)) {
        kc_error(c, t->at, "a variable or a buffer is expected");
        return false;
    }
    *out = (struct kc_place){.buffer = thing->kind == KC_IS_BUFFER,
                             .index = thing->index,
                             .type = thing->type,
                             .at = KIR_NONE,
                             .lane = -1};
    out->atomic =
        out->buffer ? c->out->buffer[thing->index].atomic : c->out->var[thing->index].atomic;
    return true;
}

/* ---- names ---- */

static struct kc_value builtin_number(struct kc_checker *c, enum kir_builtin b)
{
    return kc_of(word, kc_emit(c, KIR_BUILTIN, word, KIR_NONE, KIR_NONE, KIR_NONE, b));
}

/* group.x and its like, where no name hides them. */
static bool builtin_member(struct kc_checker *c, const struct kc_tree *t, struct kc_value *out)
{
    static const struct {
        const char *name;
        enum kir_builtin first;
    } vectors[] = {{"group", KIR_GROUP_X}, {"groups", KIR_GROUPS_X}, {"local", KIR_LOCAL_X}};

    if (t->a->kind != KC_T_NAME || kc_find(c, t->a->name))
        return false;
    int lane = lane_of(t->name, 3);
    for (size_t i = 0; i < 3; i++)
        if (lane >= 0 && str_eq(t->a->name, rlx_cstr(vectors[i].name))) {
            *out = builtin_number(c, (enum kir_builtin)((int)vectors[i].first + lane));
            return true;
        }
    if (str_eq(t->a->name, STR("local")) && str_eq(t->name, STR("index"))) {
        *out = builtin_number(c, KIR_LOCAL_INDEX);
        return true;
    }
    return false;
}

static bool builtin_name(struct kc_checker *c, rlx_str name, struct kc_value *out)
{
    static const struct {
        const char *name;
        enum kir_builtin is;
    } numbers[] = {{"subgroup_lane", KIR_SUBGROUP_LANE},
                   {"subgroup_size", KIR_SUBGROUP_SIZE},
                   {"subgroup_id", KIR_SUBGROUP_ID}};

    if (str_eq(name, STR("inf")) || str_eq(name, STR("nan"))) {
        uint32_t bits = str_eq(name, STR("inf")) ? 0x7f800000 : 0x7fc00000;
        *out = kc_const(kir_scalar_type(KIR_F32), bits);
        return true;
    }
    for (size_t i = 0; i < 3; i++)
        if (str_eq(name, rlx_cstr(numbers[i].name))) {
            c->out->uses_subgroups = true;
            if (!c->features->subgroups)
                kc_error(c, c->at, "the device has no subgroups");
            *out = builtin_number(c, numbers[i].is);
            return true;
        }
    return false;
}

static struct kc_value param(struct kc_checker *c, const struct kc_thing *thing, kir_value index)
{
    const struct kir_param *p = &c->out->param[thing->index];
    struct kir_type t = p->type;

    t.count = 0;
    return kc_of(t, kc_emit(c, KIR_PARAM, t, index, KIR_NONE, KIR_NONE, p->word));
}

/* A name, or a field of a struct. */
static struct kc_value name(struct kc_checker *c, const struct kc_tree *t)
{
    struct kc_thing field;
    const struct kc_thing *thing = kc_named(c, t, &field);
    struct kc_value v = {0};
    struct kc_place place;

    if (!thing && builtin_name(c, t->name, &v))
        return v;
    if (!thing) {
        kc_error(c, t->at, "nothing is called %.*s", STR_ARG(t->name));
        return v;
    }
    switch (thing->kind) {
    case KC_IS_VALUE: return thing->value;
    case KC_IS_PARAM:
        if (thing->type.count)
            kc_error(c, t->at, "%.*s is an array: it needs an index", STR_ARG(t->name));
        return param(c, thing, KIR_NONE);
    case KC_IS_VAR:
        if (thing->type.count)
            kc_error(c, t->at, "%.*s is an array: it needs an index", STR_ARG(t->name));
        if (kc_check_place(c, t, &place))
            return kc_load(c, &place);
        return v;
    case KC_IS_STRUCT:
        kc_error(c, t->at, "%.*s is a struct: name one of its fields, as %.*s.%.*s",
                 STR_ARG(t->name), STR_ARG(t->name), STR_ARG(thing->decl->param->name));
        return v;
    default: kc_error(c, t->at, "%.*s is not a value", STR_ARG(t->name)); return v;
    }
}

/* ---- elements and lanes of values ---- */

static struct kc_value lane_of_value(struct kc_checker *c, struct kc_value v, struct kc_value index,
                                     uint32_t at)
{
    int64_t n;

    if (kc_bad(c))
        return v;
    if (v.kind != KC_V_VALUE || v.type.lanes == 1) {
        if (!kc_as_whole(&index, &n) || n != 0)
            kc_error(c, at, "a scalar has one lane, 0");
        return v;
    }
    if (kc_as_whole(&index, &n) && (n < 0 || n >= v.type.lanes))
        kc_error(c, at, "there is no lane %lld", (long long)n);
    struct kir_type one = kir_scalar_type((enum kir_scalar)v.type.scalar);
    kir_value lane = kc_id_as(c, index, word, at);
    return kc_of(one, kc_emit(c, KIR_EXTRACT, one, v.id, lane, KIR_NONE, 0));
}

static struct kc_value index_expr(struct kc_checker *c, const struct kc_tree *t)
{
    struct kc_thing field;
    const struct kc_thing *thing = kc_named(c, t->a, &field);
    struct kc_place place;

    if (thing && thing->kind == KC_IS_PARAM && thing->type.count)
        return param(c, thing, kc_id_as(c, kc_check_expr(c, t->b), word, t->b->at));
    if (thing && ((thing->kind == KC_IS_VAR && thing->type.count) || thing->kind == KC_IS_BUFFER)) {
        if (!kc_check_place(c, t, &place))
            return (struct kc_value){0};
        if (place.buffer && !(c->out->buffer[place.index].mode & KIR_IN))
            kc_error(c, t->at, "%.*s is only written", STR_ARG(t->a->name));
        return kc_load(c, &place);
    }
    struct kc_value v = kc_check_expr(c, t->a);
    return lane_of_value(c, v, kc_check_expr(c, t->b), t->at);
}

static struct kc_value member(struct kc_checker *c, const struct kc_tree *t)
{
    struct kc_value v = {0};
    struct kc_thing field;

    if (builtin_member(c, t, &v))
        return v;
    if (kc_named(c, t, &field))
        return name(c, t);
    v = kc_check_expr(c, t->a);
    int lane = kc_bad(c) ? 0 : lane_of(t->name, kc_own_type(&v).lanes);
    if (lane < 0)
        kc_error(c, t->at, "there is no lane called %.*s", STR_ARG(t->name));
    return lane_of_value(c, v, kc_whole(lane), t->at);
}

/* ---- and, or ---- */

/* Can it be computed where it may not be wanted? */
static bool is_harmless(const struct kc_tree *t)
{
    if (!t)
        return true;
    if (t->kind == KC_T_CALL || t->kind == KC_T_INDEX)
        return false;
    return is_harmless(t->a) && is_harmless(t->b);
}

/* What stands on the right is computed only where the left does not say it all. */
static struct kc_value logic(struct kc_checker *c, const struct kc_tree *t)
{
    struct kir_type type = kir_scalar_type(KIR_BOOL), none = {0};
    bool is_and = t->op[0] == '&', left;
    struct kc_value a = kc_fit(c, kc_check_expr(c, t->a), type, t->a->at);

    if (kc_bad(c))
        return a;
    if (kc_as_bool(&a, &left))
        return left == is_and ? kc_fit(c, kc_check_expr(c, t->b), type, t->b->at) : a;
    if (is_harmless(t->b)) {
        kir_value b = kc_id_as(c, kc_check_expr(c, t->b), type, t->b->at);
        return kc_of(type,
                     kc_emit(c, is_and ? KIR_LOGIC_AND : KIR_LOGIC_OR, type, a.id, b, KIR_NONE, 0));
    }
    uint32_t var = kc_new_var(c, STR("both"), type);
    kc_emit(c, KIR_STORE, none, KIR_NONE, a.id, KIR_NONE, var);
    kir_value cond = is_and ? a.id : kc_emit(c, KIR_LOGIC_NOT, type, a.id, KIR_NONE, KIR_NONE, 0);
    kc_emit(c, KIR_IF, none, cond, KIR_NONE, KIR_NONE, 0);
    kir_value b = kc_id_as(c, kc_check_expr(c, t->b), type, t->b->at);
    kc_emit(c, KIR_STORE, none, KIR_NONE, b, KIR_NONE, var);
    kc_emit(c, KIR_END_IF, none, KIR_NONE, KIR_NONE, KIR_NONE, 0);
    return kc_of(type, kc_emit(c, KIR_LOAD, type, KIR_NONE, KIR_NONE, KIR_NONE, var));
}

/* ---- types ---- */

static bool is_type_name(const struct kc_checker *c, const struct kc_tree *t, struct kir_type *out)
{
    const struct kc_thing *thing = t->kind == KC_T_NAME ? kc_find(c, t->name) : NULL;

    if (thing && thing->kind == KC_IS_TYPE)
        *out = thing->type;
    return thing ? thing->kind == KC_IS_TYPE
                 : t->kind == KC_T_NAME && kc_scalar_of_name(t->name, out);
}

/* T == f64: known when the kernel is made. */
static bool compares_types(const struct kc_checker *c, const struct kc_tree *t,
                           struct kc_value *out)
{
    struct kir_type a, b;

    if (t->op[1] != '=' || (t->op[0] != '=' && t->op[0] != '!') || !is_type_name(c, t->a, &a) ||
        !is_type_name(c, t->b, &b))
        return false;
    *out = kc_bool(kir_type_same(a, b) == (t->op[0] == '='));
    return true;
}

struct kc_value kc_check_expr(struct kc_checker *c, const struct kc_tree *t)
{
    struct kc_value v = {0}, b;

    if (kc_bad(c))
        return v;
    c->at = t->at;
    switch (t->kind) {
    case KC_T_INT:
        if (t->whole > INT64_MAX)
            kc_error(c, t->at, "the number is too large");
        return kc_whole((int64_t)t->whole);
    case KC_T_FLOAT: return (struct kc_value){.kind = KC_V_REAL, .real = t->real};
    case KC_T_BOOL: return kc_bool(t->whole != 0);
    case KC_T_NAME: return name(c, t);
    case KC_T_UNARY: return kc_unary(c, t->op[0], kc_check_expr(c, t->a), t->at);
    case KC_T_BINARY:
        if (t->op[0] == t->op[1] && (t->op[0] == '&' || t->op[0] == '|'))
            return logic(c, t);
        if (compares_types(c, t, &v))
            return v;
        v = kc_check_expr(c, t->a);
        b = kc_check_expr(c, t->b);
        c->at = t->at;
        return kc_binary(c, t->op, v, b, t->at);
    case KC_T_INDEX: return index_expr(c, t);
    case KC_T_MEMBER: return member(c, t);
    case KC_T_CALL: return kc_call(c, t);
    default: kc_error(c, t->at, "a table can only be a const"); return v;
    }
}
